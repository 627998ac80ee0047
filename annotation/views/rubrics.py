"""Rubrics: their versions, what changed between them, and the form that writes them; for leads and researchers.

One page continues a campaign with a newer version of its rubric: the differences, a decision on each, and the undo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, jobs, languages, refusals
from accounts.models import Project, Role
from accounts.refusals import Refused
from annotation import rubric_changes, rubrics
from annotation.carried_ratings import ChangedCriterion, RatingDecision
from annotation.desk import presentation
from annotation.models import Assignment, Campaign, Criterion, QualificationRule, RubricChange, RubricVersion
from annotation.readers import CriterionDocument, RubricDocument, plain_number, rubric_from_dict
from annotation.views import import_page, rubric_form
from annotation.views.rubric_form import RubricFields

PART_NAMES = {
    "name": gettext_lazy("Name"),
    "question": gettext_lazy("Question"),
    "definition": gettext_lazy("Definition"),
    "label": gettext_lazy("Label"),
    "anchor": gettext_lazy("Anchor"),
    "mark_if": gettext_lazy("Mark if"),
    "dont_mark_if": gettext_lazy("Don't mark if"),
    "examples": gettext_lazy("Examples"),
    "scale": gettext_lazy("Scale"),
    "not_applicable": gettext_lazy("N/A allowed"),
    "rationale": gettext_lazy("Rationale, fewest words"),
    "evidence": gettext_lazy("Evidence"),
    "group": gettext_lazy("Group"),
    "direction": gettext_lazy("Direction"),
    "speaker": gettext_lazy("Speaker"),
}
DECISION_NAMES = {
    "keep": gettext_lazy("Keep the ratings: they are valid under the new version."),
    "requeue": gettext_lazy("Rate again: the annotators get these items once more."),
    "map": gettext_lazy("Map the scores by a table."),
}
ADDED_NAMES = {
    "keep": gettext_lazy("Ask only about items that are not rated yet."),
    "requeue": gettext_lazy("Ask about all items: rated ones come again."),
}


def _versions(request: HttpRequest, project: str) -> tuple[Project, QuerySet[RubricVersion]]:
    current_project = access.require(user=request.user, slug=project)
    versions = RubricVersion.objects.visible_to(request.user).filter(rubric__project=current_project)
    return current_project, versions.select_related("rubric__project")


def _version(request: HttpRequest, project: str, rubric: str, number: int) -> tuple[Project, RubricVersion]:
    current_project, versions = _versions(request, project)
    return current_project, get_object_or_404(versions, rubric__key=rubric, number=number)


@require_safe
@login_required
def rubrics_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every rubric with its versions, newest first."""
    current_project, rubric_versions = _versions(request, project)
    ordered = rubric_versions.order_by("rubric__key", "-number")
    by_rubric = [list(versions) for _rubric, versions in groupby(ordered, key=lambda version: version.rubric)]
    listed = [(versions[0].name(request.LANGUAGE_CODE), versions) for versions in by_rubric]
    return render(
        request, "annotation/rubrics.html", {"title": _("Rubrics"), "project": current_project, "rubrics": listed}
    )


@require_safe
@login_required
def version_page(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """One version: criteria and anchors in every language, and the changes since the version before."""
    current_project, shown = _version(request, project, rubric, number)
    document = rubric_from_dict(shown.document)
    beside = _versions(request, project)[1].filter(rubric=shown.rubric)
    earlier = beside.filter(number__lt=number).order_by("-number").first()
    context = {
        "title": shown.name(request.LANGUAGE_CODE),
        "project": current_project,
        "version": shown,
        "versions": beside,
        "earlier": earlier,
        "changes": _changes(rubric_from_dict(earlier.document), document) if earlier else [],
        "stops_nothing": ", ".join(rubrics.stops_nothing(document)),
        "publish_warning": _publish_warning(shown) if shown.state == RubricVersion.State.DRAFT else "",
        **wording(document),
    }
    return render(request, "annotation/rubric_version.html", context)


def _publish_warning(version: RubricVersion) -> str:
    """The consequences of publishing, and the languages in which texts are missing."""
    sentences = [_("It can then be used in campaigns and can no longer be changed.")]
    if missing := rubric_form.missing_texts(version.document):
        counts = ", ".join(f"{languages.both_names(tag, get_language())}: {count}" for tag, count in missing)
        sentences.append(_("Missing texts: %s. Annotators see these in the source language.") % counts)
    return " ".join(sentences)


def wording(document: RubricDocument) -> dict[str, Any]:
    """What `annotation/_wording.html` shows: the languages, and every criterion's texts in each of them."""
    spoken = _languages(document)
    return {
        "languages": [(tag, languages.endonym(tag), languages.direction(tag)) for tag in spoken],
        "source_language": document.source_language,
        "criteria": [_criterion(criterion, spoken) for criterion in document.criteria],
    }


def _languages(document: RubricDocument) -> list[str]:
    """The languages of all texts, source language first."""
    tags = {*document.name}
    for criterion in document.criteria:
        tags |= criterion.name.keys() | criterion.question.keys() | criterion.definition.keys()
        tags |= {tag for anchors in criterion.anchors.values() for tag in anchors}
    return sorted(tags, key=lambda tag: (tag != document.source_language, tag))


def _criterion(document: CriterionDocument, spoken: list[str]) -> dict[str, Any]:
    """A criterion as rows of texts by language: its wording, then each point with its anchor."""
    values = [point.value for point in document.scale.points] or sorted(document.anchors)
    labels = {point.value: point.label for point in document.scale.points}
    own = {*document.name, *document.question, *document.definition}
    own = own.union(*document.anchors.values(), *labels.values())
    wording = {_("Name"): document.name, _("Question"): document.question, _("Definition"): document.definition}
    return {
        "document": document,
        "level": Criterion.Level(document.scale.level).label,
        "states": [document.translations.get(tag, "draft") if tag in own else "" for tag in spoken],
        "wording": [(what, [text.get(tag, "") for tag in spoken]) for what, text in wording.items() if text],
        "points": [
            (
                plain_number(value),
                [(labels.get(value, {}).get(tag), document.anchors.get(value, {}).get(tag)) for tag in spoken],
            )
            for value in values
        ],
        "guidance": [
            (tag, document.mark_if.get(tag, ()), document.dont_mark_if.get(tag, ()), document.examples.get(tag, ()))
            for tag in spoken
            if any(tag in part for part in (document.mark_if, document.dont_mark_if, document.examples))
        ],
    }


def _changes(before: RubricDocument, after: RubricDocument) -> list[str]:
    """The removed and added lines of the documents' YAML, with some lines of context."""
    lines = unified_diff(before.as_yaml().splitlines(), after.as_yaml().splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++"))]


@require_POST
@login_required
def publish_version(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Publish a draft; it can no longer be changed."""
    current_project, draft = _version(request, project, rubric, number)
    with refusals.refusals_as_messages(request):
        rubrics.publish(version=draft, actor=request.user)
        messages.success(request, _("Published. It can now be used in campaigns and can no longer be changed."))
    return redirect("rubric_version", current_project.slug, rubric, number)


@require_POST
@login_required
def withdraw_version(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Delete a draft."""
    current_project, draft = _version(request, project, rubric, number)
    try:
        rubrics.withdraw(version=draft, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("rubric_version", current_project.slug, rubric, number)
    return redirect("rubrics", current_project.slug)


@require_safe
@login_required
def version_yaml(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """The document as YAML; importing it gives the same rubric."""
    _project, shown = _version(request, project, rubric, number)
    headers = {"Content-Disposition": f'attachment; filename="{rubric}-v{number}.yaml"'}
    return HttpResponse(
        rubric_from_dict(shown.document).as_yaml(), content_type="application/yaml; charset=utf-8", headers=headers
    )


# --- the form -------------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_rubric(request: HttpRequest, project: str) -> HttpResponse:
    """A rubric by form, empty or begun from another rubric's version (``?from=``)."""
    current_project, versions = _versions(request, project)
    if request.method != "POST":
        begun = _begun_from(versions, request.GET.get("from", ""))
        return _show_form(request, current_project, begun)

    def save(document: RubricDocument, _former_digest: str) -> RubricVersion:
        return rubrics.draft_new(project=current_project, document=document, actor=request.user)

    return _posted_form(request, current_project, save)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_rubric(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Edit a draft, or begin the next version from a published one."""
    current_project, edited = _version(request, project, rubric, number)
    if request.method != "POST":
        return _show_form(request, current_project, rubric_form.fields_of(edited.document), edited=edited)

    def save(document: RubricDocument, former_digest: str) -> RubricVersion:
        return rubrics.edit(version=edited, document=document, former_digest=former_digest, actor=request.user)

    return _posted_form(request, current_project, save, edited=edited)


def _begun_from(versions: QuerySet[RubricVersion], chosen: str) -> RubricFields:
    """The fields of a copy without its key, or of a rubric with one empty criterion."""
    if chosen.isdecimal() and (version := versions.filter(pk=int(chosen[:18])).first()):
        fields = rubric_form.fields_of(version.document)
        fields.key = ""
        return fields
    fields = RubricFields()
    rubric_form.change(fields, "add-criterion", "")
    return fields


def _posted_form(
    request: HttpRequest,
    project: Project,
    save: Callable[[RubricDocument, str], RubricVersion],
    *,
    edited: RubricVersion | None = None,
) -> HttpResponse:
    """Save, or carry out another button of the form and show it again with everything that was typed."""
    fields, action = rubric_form.posted_fields(request.POST), request.POST.get("action", "save")
    if edited:
        fields.key = edited.rubric.key
    if action != "save":
        try:
            focus = rubric_form.change(fields, action, request.POST.get("new_language", ""))
        except ValueError as error:
            return _show_form(request, project, fields, edited=edited, refusal=str(error))
        return _show_form(request, project, fields, edited=edited, focus=focus)
    parsed = fields.parsed()
    if parsed.document is None:
        problems = rubric_form.problems_by_criterion(parsed)
        return _show_form(request, project, fields, edited=edited, problems=problems)
    try:
        version = save(parsed.document, request.POST.get("digest", ""))
    except Refused as refused:
        return _show_form(request, project, fields, edited=edited, refusal=refused.sentence)
    messages.success(request, _("Saved as a draft. Publish it to use it in campaigns."))
    return redirect("rubric_version", project.slug, version.rubric.key, version.number)


def _show_form(
    request: HttpRequest,
    project: Project,
    fields: RubricFields,
    *,
    edited: RubricVersion | None = None,
    problems: Mapping[int, list[str]] | None = None,
    refusal: str = "",
    focus: str = "",
) -> HttpResponse:
    context = {
        "title": _("Edit %s") % edited if edited else _("New rubric"),
        "project": project,
        "edited": edited,
        "digest": request.POST.get("digest") or (rubrics.opened_digest(edited) if edited else ""),
        "refusal": refusal,
        **rubric_form.shown_fields(fields, problems or {}, focus),
    }
    status = 400 if problems or refusal else 200
    return render(request, "annotation/rubric_form.html", context, status=status)


@require_POST
@login_required
def preview_rubric(request: HttpRequest, project: str) -> HttpResponse:
    """The criteria of the form as annotators see them on the desk; nothing is stored."""
    _versions(request, project)
    fields = rubric_form.posted_fields(request.POST)
    parsed = list(fields.parsed_alone())
    complete = [(one, part.document) for one, part in zip(fields.criteria, parsed, strict=True) if part.document]
    criteria = [rubrics.unsaved_criteria(document)[0] for _fields, document in complete]
    wanted, source = fields.preview_language, fields.languages[0]
    language = presentation.text_language(criteria, wanted)
    desk = {"text_language": language, "text_direction": languages.direction(language), "item": {"language": language}}
    missing = [", ".join(rubric_form.missing_parts(one, source, wanted)) for one, _document in complete]
    context = {
        "desk": desk,
        "criteria": list(zip(presentation.show_criteria(criteria, language, {}), missing, strict=True)),
        "incomplete": len(parsed) - len(criteria),
        "language_name": languages.both_names(wanted, get_language()),
        "source_name": languages.both_names(source, get_language()),
    }
    return render(request, "annotation/_rubric_preview.html", context)


@dataclass(frozen=True, slots=True)
class ShownPart:
    """One part of a criterion that differs, as the page names it."""

    name: str
    language: str
    direction: str
    before: str
    after: str


@dataclass(slots=True)
class DecisionRow:
    """A criterion with what differs and the choices of the form, as posted or as suggested."""

    changed: ChangedCriterion
    posted: Mapping[str, str]
    problem: str = ""
    choices: list[tuple[str, Any, bool]] = field(init=False)

    def __post_init__(self) -> None:
        names = ADDED_NAMES if self.changed.difference.kind == "added" else DECISION_NAMES
        possible = self.changed.decisions
        chosen = self.posted.get(f"decision-{self.key}") or next(iter(possible), "")
        self.choices = [(code, names[code], code == chosen) for code in possible]

    @property
    def key(self) -> str:
        return self.changed.difference.key

    @property
    def name(self) -> str:
        criterion = self.changed.after or self.changed.before
        return (criterion.says("name", "en") if criterion else "") or self.key

    @property
    def parts(self) -> list[ShownPart]:
        return [
            ShownPart(
                name=str(PART_NAMES[part.part]) + (f" {plain_number(part.point)}" if part.point is not None else ""),
                language=part.language,
                direction=languages.direction(part.language) if part.language else "ltr",
                before=part.before,
                after=part.after,
            )
            for part in self.changed.difference.parts
        ]

    @property
    def mapped(self) -> list[tuple[str, int, str]]:
        """Each old score as its field names it, how often it was given, and the new score that was typed."""
        if "map" not in self.changed.decisions:
            return []
        scores = ((str(plain_number(score)), count) for score, count in self.changed.rated.scores)
        return [(score, count, self.posted.get(f"map-{self.key}-{score}", "")) for score, count in scores]

    def decision(self) -> RatingDecision:
        """What was chosen. Raises ``Refused`` for a score that is no number."""
        chosen = next((code for code, _name, is_chosen in self.choices if is_chosen), "")
        if chosen != "map":
            return RatingDecision(self.posted.get(f"decision-{self.key}", chosen))
        typed = {float(old): new.strip().replace(",", ".") for old, _count, new in self.mapped}
        try:
            return RatingDecision("map", {old: float(new) if new else None for old, new in typed.items()})
        except ValueError:
            sentence = _("Give “%s” new scores as numbers, or leave them empty.") % self.key
            raise Refused(sentence, code="invalid", fields={self.key: sentence}) from None


def _led(request: HttpRequest, project: str, campaign: int) -> Campaign:
    current = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    visible = Campaign.objects.visible_to(request.user).filter(project=current)
    return get_object_or_404(visible.select_related("rubric_version__rubric", "project"), pk=campaign)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def rubric_change_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """GET: the differences from a newer version with a decision on each. POST: continue with that version."""
    current = _led(request, project, campaign)
    posted = request.POST if request.method == "POST" else QueryDict()
    newer = list(rubric_changes.newer_versions(current))
    wanted = import_page.key(posted.get("version") or request.GET.get("version", ""))
    version = next((each for each in newer if each.pk == wanted), newer[0] if newer else None)
    rows = [DecisionRow(one, posted) for one in rubric_changes.touched_criteria(current, version)] if version else []
    if posted and version and (change := _gone_on(request, current, version, rows)):
        if change.finished_at is None:
            return redirect("rubric_change", current.project.slug, current.pk)
        return redirect("campaign", current.project.slug, current.pk)
    return render(request, "annotation/rubric_change.html", _shown(current, newer, version, rows))


def _gone_on(
    request: HttpRequest, campaign: Campaign, version: RubricVersion, rows: list[DecisionRow]
) -> RubricChange | None:
    """The change, done or with a waiting job; None: the sentences are shown with the criteria."""
    try:
        decisions = {row.key: row.decision() for row in rows if row.changed.decisions}
        seen = import_page.key(request.POST.get("from_version", "")) or 0
        change = rubric_changes.change_version(
            campaign=campaign,
            version=version,
            decisions=decisions,
            from_version=seen,
            qualify_again="qualify_again" in request.POST,
            is_large=rubric_changes.is_large(campaign),
            actor=request.user,
        )
    except Refused as refused:
        for row in rows:
            row.problem = refused.fields.get(row.key, "")
        messages.error(request, refused.sentence)
        return None
    if change.job:
        jobs.enqueue(change)
    else:
        messages.success(request, _("The campaign now uses %s.") % version + " " + counts_sentence(change))
    return change


def counts_sentence(change: RubricChange) -> str:
    """What a change did with the ratings, in words."""
    found = change.counts
    again = found.get("assignments", 0)
    sentence = ngettext(
        "Kept: %(kept)s. Mapped: %(mapped)s. %(again)s assignment is rated again.",
        "Kept: %(kept)s. Mapped: %(mapped)s. %(again)s assignments are rated again.",
        again,
    )
    named = {name: f"{found.get(name, 0):,}" for name in ("kept", "mapped")}
    return sentence % (named | {"again": f"{again:,}"})


def _shown(
    campaign: Campaign, newer: list[RubricVersion], version: RubricVersion | None, rows: list[DecisionRow]
) -> dict[str, Any]:
    last = rubric_changes.last_change(campaign)
    on_desk = Assignment.objects.filter(duty__campaign=campaign, state=Assignment.State.LEASED)
    return {
        "title": _("A newer version of the rubric"),
        "project": campaign.project,
        "campaign": campaign,
        "newer": newer,
        "version": version,
        "rows": [row for row in rows if row.changed.difference.kind != "same"],
        "same": sum(row.changed.difference.kind == "same" for row in rows),
        "on_desk": on_desk.count(),
        "pending": rubric_changes.pending_change(campaign),
        "qualifies": QualificationRule.objects.filter(
            Q(training=True) | Q(exam_items__gt=0), campaign=campaign
        ).exists(),
        "last": last,
        "last_counts": counts_sentence(last) if last else "",
        "why_final": rubric_changes.why_final(last) if last else "",
        "is_paused": campaign.state == Campaign.State.PAUSED,
        "back": reverse("campaign", args=[campaign.project.slug, campaign.pk]),
    }


@require_POST
@login_required
def undo_rubric_change(request: HttpRequest, project: str, campaign: int, change: int) -> HttpResponse:
    """Go back to the former version."""
    current = _led(request, project, campaign)
    undone = get_object_or_404(current.rubric_changes.select_related("from_version__rubric"), pk=change)
    with refusals.refusals_as_messages(request):
        if is_large := rubric_changes.is_large(current):
            rubric_changes.undo_change(change=undone, is_large=is_large, actor=request.user)
            jobs.enqueue(undone)
            return redirect("rubric_change", current.project.slug, current.pk)
        rubric_changes.undo_change(change=undone, actor=request.user)
        messages.success(request, _("The campaign has %s again, with all its ratings.") % undone.from_version)
    return redirect("campaign", current.project.slug, current.pk)
