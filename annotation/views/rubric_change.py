"""Go on with a newer version of a campaign's rubric: the differences, the decision on each, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from accounts import access, jobs, languages, refusals
from accounts.models import Role
from accounts.refusals import Refused
from annotation import rubric_changes
from annotation.carried_ratings import ChangedCriterion, RatingDecision
from annotation.models import Assignment, Campaign, QualificationRule, RubricChange, RubricVersion
from annotation.readers import plain_number
from annotation.views import import_page

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
    """The differences from a newer version with a decision on each; posting goes on with it."""
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
