"""Adjudication and calibration meetings, for leads and researchers: the queue, one item, and the items to talk about.

Raters are shown by codes that are valid for one item only, and no verdict is shown before a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import languages
from accounts.models import User
from accounts.refusals import Refused
from analytics import disagreements
from analytics.disagreements import QueueChoice, QueuedItem, QueueOptions
from analytics.views.exports import download
from analytics.views.items import criterion_name, number_text, point_label, point_text, shown_campaign, verdict_text
from annotation import adjudication
from annotation.adjudication import CriterionDecision, SeenRating
from annotation.desk import presentation
from annotation.models import Adjudication, Campaign, Criterion, Item, MeetingDecision
from annotation.writers.csv import csv_lines
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run
from judging.versions.seen_labels import record_seen_labels

PAGE = 50
MEETING_ITEMS = 20
STATE_NAMES = {
    "open": gettext_lazy("To decide"),
    "stale": gettext_lazy("Ratings changed since"),
    "decided": gettext_lazy("Decided"),
    "all": gettext_lazy("All"),
}
_MEASURES = {
    "range": gettext_lazy("Largest score less the smallest, divided by the width of the scale."),
    "entropy": gettext_lazy("Entropy of the scores in bits: 0 where all are the same."),
    "na": gettext_lazy("The smaller of two shares: raters who gave a score, and raters who gave N/A."),
    "critical": gettext_lazy("The smaller share: of those who gave the critical mark, and of those who did not."),
    "judge": gettext_lazy(
        "Distance of the judge's first score from the panel's mean (labels: mode), divided by the width of "
        "the scale. Labels with a tied mode have none."
    ),
}


# --- what the templates read -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AnchoredPoint:
    """One point of a scale with its anchor."""

    value: str
    text: str
    label: str
    anchor: str
    is_chosen: bool


@dataclass(slots=True)
class CriterionToDecide:
    """One criterion of an item: its ratings without names, what was decided, and what stands in the form."""

    criterion: Criterion
    ratings: Sequence[SeenRating]
    decided: Sequence[Adjudication]
    is_stale: bool
    value: float | None
    adjudicators: Mapping[int | None, str]
    posted: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    shows_measure: bool = True

    @property
    def key(self) -> str:
        return self.criterion.key

    @property
    def name(self) -> str:
        return criterion_name(self.criterion)

    @property
    def is_disputed(self) -> bool:
        return adjudication.is_disputed(self.ratings)

    @property
    def is_open(self) -> bool:
        """Whether the form is shown open: there is no decision, ratings changed after it, or the posted form was
        refused."""
        waits = (self.value is not None or self.is_disputed) and (not self.decided or self.is_stale)
        return waits or bool(self.problems) or bool(self.chosen)

    @property
    def measure(self) -> str:
        return number_text(self.value) if self.shows_measure else ""

    @property
    def given(self) -> list[tuple[SeenRating, str, str, list[presentation.SpanShown]]]:
        """Each rating with its score, the label of the point and what was marked for it."""
        return [
            (
                one,
                self._score(one.status, one.score),
                point_label(self.criterion, one.score),
                list(map(presentation.show_span, one.evidence)),
            )
            for one in self.ratings
        ]

    @property
    def newest(self) -> Adjudication | None:
        return self.decided[-1] if self.decided else None

    @property
    def history(self) -> list[tuple[Adjudication, str, str]]:
        """The decisions with their score and adjudicator, the newest first."""
        return [
            (one, self._score(one.status, one.score), self.adjudicators.get(one.adjudicator_id, ""))
            for one in reversed(self.decided)
        ]

    @property
    def judge_score(self) -> str:
        given = self.verdict
        if given is None:
            return ""
        return verdict_text(self.criterion, given.status, given.score, applicable=given.applicable)

    @property
    def chosen(self) -> str:
        return self.posted.get(f"score-{self.key}", "")

    @property
    def cause(self) -> str:
        return self.posted.get(f"cause-{self.key}", "")

    @property
    def note(self) -> str:
        return self.posted.get(f"note-{self.key}", "")

    @property
    def rationale(self) -> str:
        return self.posted.get(f"rationale-{self.key}", "")

    @property
    def seen(self) -> str:
        return adjudication.digest_of(one.stored for one in self.ratings)

    @property
    def problem(self) -> list[str]:
        """The problem of this part of the form."""
        names = (f"{part}-{self.key}" for part in ("score", "cause", "note", "rationale"))
        return list(dict.fromkeys(self.problems[name] for name in names if name in self.problems))

    @property
    def points(self) -> list[AnchoredPoint]:
        """The points of the scale; none for a long scale, which has a number field."""
        spoken = get_language() or "en"
        values = [(number_text(value), value) for value in self.criterion.values]
        return [
            AnchoredPoint(
                value=f"{value!r}",
                text=text,
                label=point_label(self.criterion, value),
                anchor=self.criterion.anchor(value, spoken)["text"],
                is_chosen=self.chosen == f"{value!r}",
            )
            for text, value in values
        ]

    def _score(self, status: str, score: float | None) -> str:
        if score is not None:
            return point_text(self.criterion, score)
        return _("N/A") if status == Adjudication.Status.NOT_APPLICABLE else _("stopped")


def criteria_to_decide(
    campaign: Campaign, item: Item, choice: QueueChoice, posted: Mapping[str, str], problems: Mapping[str, str]
) -> list[CriterionToDecide]:
    """The criteria that somebody rated: disputed ones first, each group in the order of the rubric."""
    seen = adjudication.seen_ratings(campaign, [item.pk], with_evidence=True)
    rows = list(adjudication.history(campaign).filter(item=item))
    newest = {(row.item_id, row.criterion_id): row for row in rows}
    old = adjudication.stale(campaign, newest)
    values = disagreements.measured_items(campaign, choice)[0].get(item.pk, (0, {}))[1]
    verdicts = _verdicts(item, choice.run) if choice.order == "judge" and choice.run else {}
    names = adjudication.adjudicator_names(campaign)
    shown = []
    for criterion in campaign.rubric_version.criteria.all():
        place = (item.pk, criterion.pk)
        if given := seen.get(place):
            decided = [row for row in rows if row.criterion_id == criterion.pk]
            is_settled = bool(decided) and place not in old  # only then a verdict may be read
            shown.append(
                CriterionToDecide(
                    criterion,
                    given,
                    decided,
                    place in old,
                    values.get(criterion.pk),
                    names,
                    posted,
                    problems,
                    verdicts.get(criterion.pk) if is_settled else None,
                    is_settled
                    or choice.order != Adjudication.Order.JUDGE,  # with the panel's score, it reveals the verdict
                )
            )
    return sorted(shown, key=lambda one: (one.value is None, not one.is_disputed, one.criterion.position))


def _verdicts(item: Item, run: JudgeRun) -> dict[int, Verdict]:
    """Map each criterion to the judge's first verdict on the item."""
    rows = Verdict.objects.filter(run__in=whole_run([run]), item=item).order_by("-repeat")
    return {verdict.criterion_id: verdict for verdict in rows}


# --- the queue -------------------------------------------------------------------------------------------------------
@require_safe
@login_required
def adjudication_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The items of a campaign on which raters differ, in the order chosen."""
    current = shown_campaign(request.user, project, campaign)
    options = disagreements.queue_options(current)
    choice, refusal = _choice(options, request.GET)
    found = disagreements.queue(current, choice, request.user)
    page = Paginator(found.items, PAGE).get_page(request.GET.get("page"))
    record_seen_labels(campaign=current, items=[one.pk for one in page.object_list], actor=request.user)
    context = {
        "title": _("Adjudication"),
        "queue": found,
        "rows": [(one, _value_text(one, choice)) for one in page.object_list],
        "page_obj": page,
        "refusal": refusal,
        "states": [(key, name, found.counts[key]) for key, name in STATE_NAMES.items()],
        **_context(current, options, choice),
    }
    return render(request, "analytics/adjudication.html", context, status=422 if refusal else 200)


def _value_text(one: QueuedItem, choice: QueueChoice) -> str:
    """The item's value; a judge's distance gives its verdict away, so it is shown only after the decision."""
    return "–" if choice.order == Adjudication.Order.JUDGE and one.state != "decided" else number_text(one.value)


def _choice(options: QueueOptions, query: QueryDict) -> tuple[QueueChoice, str]:
    """The choice in the address; or the usual queue, and the problem of the address."""
    try:
        return disagreements.chosen_queue(options, query), ""
    except Refused as refused:
        return disagreements.chosen_queue(options, QueryDict()), refused.sentence


def _context(campaign: Campaign, options: QueueOptions, choice: QueueChoice) -> dict[str, Any]:
    spoken = get_language()
    return {
        "project": campaign.project,
        "campaign": campaign,
        "options": options,
        "choice": choice,
        "orders": [(value, name) for value, name in Adjudication.Order.choices if value != "judge" or options.judges],
        "measure": _MEASURES[choice.order],
        "criterion_names": [(key, criterion_name(criterion)) for key, criterion in options.criteria.items()],
        "languages": [
            (tag, languages.name_for(tag, spoken)) for tag in languages.in_name_order(options.languages, spoken)
        ],
        "most": disagreements.MOST_RATINGS,
    }


# --- one item --------------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def adjudicate_item(request: HttpRequest, project: str, campaign: int, item: int) -> HttpResponse:
    """One item with its ratings, names hidden: decide criterion by criterion."""
    current = shown_campaign(request.user, project, campaign)
    stored = get_object_or_404(Item.objects.visible_to(request.user).of(current.dataset), pk=item)
    options = disagreements.queue_options(current)
    choice, _refusal = _choice(options, request.GET)
    here = f"{reverse('adjudicate_item', args=[project, campaign, item])}?{choice.query}"
    refused: Refused | None = None
    if request.method == "POST":
        try:
            _store(current, stored, options, choice, request.POST, request.user)
        except Refused as error:
            refused = error
        else:
            messages.success(
                request, f"{_('The decision is saved. The ratings are unchanged.')} {_left_text(current, stored)}"
            )
            return redirect(here)
    record_seen_labels(campaign=current, items=[stored.pk], actor=request.user)
    posted = request.POST if refused else {}
    problems = refused.fields if refused else {}
    context = {
        "title": stored.title or stored.external_id,
        "stored": stored,
        "item": presentation.show_item(stored, (), current.dataset.layout),
        "criteria": criteria_to_decide(current, stored, choice, posted, problems),
        "causes": Adjudication.Cause.choices,
        "key": request.POST.get("key") or uuid4(),
        "refusal": refused.sentence if refused else "",
        "is_own": stored.pk in adjudication.rated_by(current, request.user),
        "following": disagreements.following_item(current, choice, request.user, stored.pk),
        **_context(current, options, choice),
    }
    return render(request, "analytics/adjudicate_item.html", context, status=422 if refused else 200)


def _left_text(campaign: Campaign, item: Item) -> str:
    """How many criteria of the item on which raters differ have no decision yet."""
    seen, decided = adjudication.seen_ratings(campaign, [item.pk]), adjudication.current(campaign, [item.pk])
    left = sum(adjudication.is_disputed(given) and place not in decided for place, given in seen.items())
    if not left:
        return _("Every criterion of this item on which raters differ is decided.")
    return (
        ngettext("%d criterion of this item is left to decide.", "%d criteria of this item are left to decide.", left)
        % left
    )


def _store(
    campaign: Campaign, item: Item, options: QueueOptions, choice: QueueChoice, posted: Mapping[str, str], user: User
) -> None:
    """Store what a form decides: each criterion with a score chosen."""
    decisions = [
        CriterionDecision(
            criterion=criterion,
            score=None if posted[f"score-{key}"] == "na" else _number(posted[f"score-{key}"]),
            cause=posted.get(f"cause-{key}", ""),
            cause_note=posted.get(f"note-{key}", ""),
            rationale=posted.get(f"rationale-{key}", ""),
            seen=posted.get(f"seen-{key}", ""),
        )
        for key, criterion in options.criteria.items()
        if posted.get(f"score-{key}", "").strip()
    ]
    try:
        key = UUID(posted.get("key", ""))
    except ValueError:
        key = uuid4()
    adjudication.adjudicate(campaign=campaign, item=item, decisions=decisions, order=choice.order, key=key, actor=user)


def _number(text: str) -> float:
    """The number; infinity, which is on no scale, if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("inf")


# --- calibration meetings --------------------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def meeting_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The items that disagree most, with all rationales and no names, and the decisions of the campaign's meetings."""
    current = shown_campaign(request.user, project, campaign)
    options = disagreements.queue_options(current)
    choice, refusal = _choice(options, request.GET)
    problems: Mapping[str, str] = {}
    if request.method == "POST":
        try:
            _record(current, request.POST, request.user)
        except Refused as refused:
            refusal, problems = refused.sentence, refused.fields
        else:
            messages.success(request, _("The decision is on the list."))
            return redirect(f"{reverse('meeting', args=[project, campaign])}?{choice.query}#decisions")
    listed = disagreements.queue(current, replace(choice, state="all")).items[:MEETING_ITEMS]
    record_seen_labels(campaign=current, items=[one.pk for one in listed], actor=request.user)
    context = {
        "title": _("Calibration meeting"),
        "rows": discussed_items(current, listed, choice),
        "decisions": adjudication.meeting_decisions(current),
        "refusal": refusal,
        "problems": problems,
        "posted": request.POST,
        "today": timezone.localdate().isoformat(),
        **_context(current, options, choice),
    }
    return render(request, "analytics/meeting.html", context, status=422 if refusal else 200)


@dataclass(frozen=True, slots=True)
class DiscussedItem:
    """One item of a meeting: its text, how far the raters are apart, and the criteria that they differ on."""

    place: int
    stored: Item
    item: presentation.ItemShown
    measure: str
    criteria: Sequence[CriterionToDecide]


def discussed_items(campaign: Campaign, listed: Sequence[QueuedItem], choice: QueueChoice) -> list[DiscussedItem]:
    """The items with the ratings of the criteria on which raters differ. The number of SQL statements is fixed."""
    stored = Item.objects.in_bulk([one.pk for one in listed])
    seen = adjudication.seen_ratings(campaign, stored, with_evidence=True)
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    found = []
    for place, one in enumerate(listed, 1):
        differing = [
            CriterionToDecide(
                criterion, seen[one.pk, pk], (), False, one.values[pk], {}, shows_measure=choice.order != "judge"
            )
            for pk, criterion in criteria.items()
            if pk in one.values and (one.pk, pk) in seen
        ]
        text = presentation.show_item(stored[one.pk], (), campaign.dataset.layout)
        found.append(DiscussedItem(place, stored[one.pk], text, _value_text(one, choice), differing))
    return found


def _record(campaign: Campaign, posted: Mapping[str, str], user: User) -> MeetingDecision:
    """Store the decision that a form describes."""
    given = {name: posted.get(name, "").strip() for name in ("criterion", "item", "held_on")}
    about = adjudication.subject_of_decision(campaign, criterion=given["criterion"], item=given["item"])
    try:
        held_on = date.fromisoformat(given["held_on"])
    except ValueError:
        held_on = None
    return adjudication.record_decision(
        campaign=campaign,
        held_on=held_on,
        decision=posted.get("decision", ""),
        guideline_change=posted.get("guideline_change", ""),
        **about,
        actor=user,
    )


@require_safe
@login_required
def decisions_file(request: HttpRequest, project: str, campaign: int) -> HttpResponseBase:
    """The decisions of a campaign's meetings as CSV."""
    current = shown_campaign(request.user, project, campaign)
    rows = adjudication.decision_rows(current)
    lines = (line.encode() for line in csv_lines(adjudication.DECISION_COLUMNS, rows))
    name = f"{slugify(current.name) or f'campaign-{current.pk}'}-meeting-decisions.csv"
    return download(lines, name=name, media_type="text/csv; charset=utf-8")
