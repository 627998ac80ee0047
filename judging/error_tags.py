"""Error analysis: people who have read wrong verdicts tag why they are wrong; the tags are counted by judge."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from judging.models import ErrorTag, Judge, Verdict

LONGEST_TAG = 60
MOST_TAGS = 10
"""Of one verdict."""


@dataclass(frozen=True, slots=True)
class TagCount:
    """How often a tag was given to a judge's verdicts: verdicts, items, and verdicts by criterion and language."""

    text: str
    verdicts: int
    items: int
    criteria: Mapping[str, int]
    languages: Mapping[str, int]


@transaction.atomic
def tag_verdict(*, verdict: Verdict, text: str, actor: User | None) -> ErrorTag:
    """Tag a verdict; the same tag again is the one there is. Upper and lower case of a tag of the project are kept as
    they were first written."""
    written = " ".join(unicodedata.normalize("NFC", text).split())
    if not written or len(written) > LONGEST_TAG:
        sentence = _("Write a tag of 1 to %d characters.") % LONGEST_TAG
        raise Refused(sentence, fields={"text": sentence})
    known = ErrorTag.objects.filter(verdict__run__project=verdict.run.project_id, text__iexact=written)
    written = known.order_by("pk").values_list("text", flat=True).first() or written
    tags = ErrorTag.objects.filter(verdict=Verdict.objects.select_for_update().get(pk=verdict.pk))
    if found := tags.filter(text=written).first():
        return found
    if tags.count() >= MOST_TAGS:
        raise Refused(_("A verdict has at most %d tags.") % MOST_TAGS, code="too_many")
    tag = ErrorTag.objects.create(verdict=verdict, text=written, created_by=actor)
    audit.record(actor=actor, project=verdict.run.project, verb="tag error", subject=tag)
    return tag


@transaction.atomic
def remove_tag(*, tag: ErrorTag, actor: User | None) -> None:
    """Take a tag from its verdict."""
    audit.record(actor=actor, project=tag.verdict.run.project, verb="remove error tag", subject=tag)
    tag.delete()


def tags_of_judge(judge: Judge) -> QuerySet[ErrorTag]:
    """The tags of a judge's verdicts, newest first, each with its verdict, item and criterion."""
    about = ("verdict__item", "verdict__criterion", "verdict__run__judge", "verdict__run__project", "created_by")
    tags = ErrorTag.objects.filter(verdict__run__judge=judge).select_related(*about)
    return tags.defer(*(f"verdict__item__{field}" for field in ("turns", "fields", "attributes"))).order_by("-pk")


def count_tags(judge: Judge) -> list[TagCount]:
    """The tags of a judge's verdicts, the most frequent first; equal counts by text."""
    by_text: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    columns = ("text", "verdict__item", "verdict__criterion__key", "verdict__item__language")
    for text, *row in ErrorTag.objects.filter(verdict__run__judge=judge).values_list(*columns):
        by_text[text].append(tuple(row))
    counts = [
        TagCount(
            text=text,
            verdicts=len(rows),
            items=len({item for item, _criterion, _language in rows}),
            criteria=dict(Counter(criterion for _item, criterion, _language in rows).most_common()),
            languages=dict(Counter(language for _item, _criterion, language in rows).most_common()),
        )
        for text, rows in by_text.items()
    ]
    return sorted(counts, key=lambda count: (-count.verdicts, count.text))


def used_tags(project: Project) -> list[str]:
    """The tags of a project, by name, for a list to choose from."""
    tags = ErrorTag.objects.filter(verdict__run__project=project)
    return list(tags.order_by("text").values_list("text", flat=True).distinct())
