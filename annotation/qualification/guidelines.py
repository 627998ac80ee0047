"""Versioned guidelines of a campaign, by language: publish, show, acknowledge. A new version asks everybody again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, QuerySet
from django.utils.translation import gettext as _

from accounts import audit, languages
from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Acknowledgement, Annotator, Campaign, Duty, Guideline

LONGEST_TEXT = 100_000
MOST_EXAMPLES = 40


def publish_guideline(
    *,
    campaign: Campaign,
    language: str,
    text: str,
    examples: Sequence[Mapping[str, Any]] = (),
    actor: User | None = None,
) -> Guideline:
    """Store a new version in this language. Earlier versions stay; annotators acknowledge the new one before work."""
    tag = _checked_language(language)
    wrong = {}
    if not text.strip():
        wrong["text"] = _("Write the guidelines.")
    elif len(text) > LONGEST_TEXT:
        wrong["text"] = _("Shorten the guidelines to %(most)d characters.") % {"most": LONGEST_TEXT}
    keys = set(campaign.rubric_version.criteria.values_list("key", flat=True))
    unknown = sorted({example.get("criterion") or "" for example in examples} - keys - {""})
    if unknown:
        wrong["examples"] = _("This campaign has no criterion “%(key)s”.") % {"key": unknown[0]}
    if len(examples) > MOST_EXAMPLES:
        wrong["examples"] = _("Give at most %(most)d worked examples.") % {"most": MOST_EXAMPLES}
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)
    stored = [
        {
            "text": example.get("text") or "",
            "criterion": example.get("criterion") or "",
            "score": example.get("score"),
            "explanation": example.get("explanation") or "",
        }
        for example in examples
    ]
    try:
        with transaction.atomic():
            number = (versions(campaign).filter(language=tag).aggregate(last=Max("number"))["last"] or 0) + 1
            guideline = Guideline.objects.create(
                campaign=campaign, language=tag, number=number, text=text, examples=stored, created_by=actor
            )
            audit.record(actor=actor, project=campaign.project, verb="publish guidelines", subject=guideline)
    except IntegrityError:
        raise Refused(_("Somebody has just published a version. Look at it first."), code="wrong_state") from None
    return guideline


def _checked_language(language: str) -> str:
    try:
        return languages.canonical_language(language)
    except ValueError as error:
        raise Refused(str(error), code="invalid", fields={"language": str(error)}) from None


def versions(campaign: Campaign) -> QuerySet[Guideline]:
    """Every version, by language, newest first, with ``acknowledged``: how many annotators confirmed it."""
    found = Guideline.objects.filter(campaign=campaign)
    return found.annotate(acknowledged=Count("acknowledgements")).order_by("language", "-number")


def guideline_for(*, duty: Duty, user: User | None) -> Guideline | None:
    """The newest version in the language of the duty's panel, else in the user's interface language, else in English,
    else in the first language there is; None if the campaign has no guidelines."""
    return guideline_among(newest_guidelines(duty.campaign_id), duty=duty, user=user)


def newest_guidelines(campaign: int) -> dict[str, Guideline]:
    """Map each language to the newest version."""
    rows = Guideline.objects.filter(campaign=campaign).order_by("language", "number")
    return {guideline.language: guideline for guideline in rows}


def guideline_among(newest: Mapping[str, Guideline], *, duty: Duty, user: User | None) -> Guideline | None:
    """As `guideline_for`, among the newest versions of the duty's campaign."""
    if not newest:
        return None
    wanted = [duty.panel.language, user.ui_language if user else "", "en"]
    for tag in filter(None, wanted):
        base = tag.partition("-")[0]
        near = [language for language in newest if language.partition("-")[0] == base]
        for language in (tag, base, *near):
            if language in newest:
                return newest[language]
    return newest[min(newest)]


def is_acknowledged(*, guideline: Guideline, annotator: Annotator) -> bool:
    """Whether the annotator has confirmed this version."""
    return Acknowledgement.objects.filter(guideline=guideline, annotator=annotator).exists()


def acknowledge(*, guideline: Guideline, annotator: Annotator) -> None:
    """Store that the annotator has read this version; a second time changes nothing."""
    Acknowledgement.objects.get_or_create(guideline=guideline, annotator=annotator)


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt

    # Without HTML: tags are shown as text. Links with a script or a data address stay text, too.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "html_block", "html_inline"])


def rendered(text: str) -> str:
    """Markdown as HTML that is safe on a page: written tags are escaped, and images are left out.

    Headings are one level lower than written, below the page's own.
    """
    markdown = _markdown()
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
    return str(markdown.renderer.render(tokens, markdown.options, {}))
