"""The items behind the numbers, for leads and researchers: a list by disagreement or judge's error, and one item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access, languages
from accounts.models import Project, User
from accounts.refusals import Refused
from accounts.sentences import left_to_right
from analytics import item_choices, items, page_cache
from analytics.item_choices import ItemChoice, ItemOptions
from analytics.items import CriterionScores, GivenVerdict, ItemRaters, ItemScores
from analytics.questions.question_names import EXCLUSION_NAMES, ITEM_RULE_NAMES, REFERENCE_NAMES, column_name
from analytics.ratings.raters import usual_judges
from analytics.score_views import CLASS_NAMES
from analytics.views.exports import download
from annotation import evidence
from annotation.adjudication import Adjudicated
from annotation.desk import presentation
from annotation.desk.answers import worst
from annotation.desk.presentation import SpanShown, show_span
from annotation.exports import consistent
from annotation.models import Campaign, Criterion, Duty, Item, PanelSeat, Rating
from annotation.writers.csv import csv_lines
from judging import error_tags
from judging.models import Verdict
from judging.versions.seen_labels import DOWNLOADED_SCORES, record_seen_labels

PAGE = 12
MOST_BARS = 12
BAR, GAP, TALLEST = 7, 2, 20
MOST_SCORES_LISTED = 12
NOT_FILTERS = ("criterion", "exclude", "judge", "language", "reference", "sort")
"""Parameters of the list that are no filters of its form: the bar has most of them."""
SORT_NAMES = {
    "disagreement": gettext_lazy("Disagreement"),
    "judge_error": gettext_lazy("Judge’s error"),
    "judge_above": gettext_lazy("Judge above the reference"),
    "judge_below": gettext_lazy("Judge below the reference"),
    "n": gettext_lazy("Number of scores"),
    "id": gettext_lazy("Order of the dataset"),
}


# --- what the templates read -----------------------------------------------------------------------------------------
def number_text(value: float | None) -> str:
    """0.67, 2, or nothing."""
    return "" if value is None else f"{round(value, 2):g}"


def signed_text(value: float | None, level: str) -> str:
    """+0.67, −2, 0, or nothing; labels without an order are equal or not, without a sign."""
    text = "" if value is None else number_text(abs(value))
    if level == Criterion.Level.NOMINAL or text in ("", "0"):
        return text
    return left_to_right(f"{'−' if value is not None and value < 0 else '+'}{text}")


@dataclass(frozen=True, slots=True)
class Bar:
    """One point of the scale in a small chart: x and y from the top left, in pixels."""

    x: int
    y: int
    height: int
    is_empty: bool


@dataclass(frozen=True, slots=True)
class ScoresShown:
    """One item's scores on one criterion, as text and as a small chart."""

    scores: ItemScores
    choice: ItemChoice
    raters: ItemRaters = field(default_factory=ItemRaters)

    @property
    def criterion(self) -> Criterion:
        return self.choice.criterion

    @property
    def text(self) -> str:
        """2, 3 ×2, N/A: each answer, and how many gave it."""
        answers = [(point_text(self.criterion, score), count) for score, count in self.scores.counts.items()]
        shown = [f"{text} ×{count}" if count > 1 else text for text, count in answers[:MOST_SCORES_LISTED]]
        more = ["…"] if len(answers) > MOST_SCORES_LISTED else []
        missing = ((_("N/A"), self.scores.not_applicable), (_("stopped"), self.scores.stopped))
        return ", ".join([*shown, *more, *(f"{text} ×{count}" for text, count in missing if count)])

    @property
    def bars(self) -> list[Bar]:
        """A bar for every point of a short scale; nothing for a long one, or without scores."""
        points = self.criterion.values
        if not self.scores.n or not 1 < len(points) <= MOST_BARS:
            return []
        most = max(self.scores.counts.values())
        heights = [round(TALLEST * self.scores.counts.get(point, 0) / most) for point in points]
        return [
            Bar(place * (BAR + GAP), TALLEST - max(height, 1), max(height, 1), not height)
            for place, height in enumerate(heights)
        ]

    @property
    def width(self) -> int:
        return len(self.criterion.values) * (BAR + GAP) - GAP

    @property
    def disagreement(self) -> str:
        return number_text(self.scores.disagreement)

    @property
    def reference(self) -> str:
        return point_text(self.criterion, self.scores.reference)

    @property
    def no_reference(self) -> str:
        """Why there is no reference."""
        return _("tied") if self.scores.n else _("no score")

    @property
    def judge(self) -> str:
        """The judge's score, N/A, or why there is none."""
        judge = self.scores.judge
        if judge is None:
            return ""
        return verdict_text(self.criterion, judge.status, judge.score, applicable=judge.applicable)

    @property
    def judge_error(self) -> str:
        return signed_text(self.scores.signed_error, self.criterion.level)

    @property
    def n_raters(self) -> str:
        """2 of 3: how many people have answered, of all who were asked; 2 where only some of their ratings count."""
        n = self.raters.people
        if self.raters.open_slots is None:
            return str(n)
        return _("%(n)d of %(total)d") % {"n": n, "total": n + self.raters.open_slots}

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Who answered, and what."""
        return [
            (name, point_text(self.criterion, score) or str(Rating.Status(status).label))
            for name, status, score in self.raters.given
        ]


@dataclass(frozen=True, slots=True)
class RatingShown:
    """One person's rating of the item."""

    rating: Rating

    @property
    def score(self) -> str:
        if self.rating.score is None:
            return str(self.rating.get_status_display())
        return point_text(self.rating.criterion, self.rating.score)

    @property
    def label(self) -> str:
        return point_label(self.rating.criterion, self.rating.score)

    @property
    def evidence(self) -> list[SpanShown]:
        return [show_span(evidence.as_span(marked)) for marked in self.rating.evidence.all()]

    @property
    def is_critical_mark(self) -> bool:
        """Whether it is the worst point of a critical criterion, which stops the rest of the assignment."""
        criterion, score = self.rating.criterion, self.rating.score
        return criterion.is_critical and score is not None and score == worst(criterion)

    @property
    def panel(self) -> str:
        assignment = self.rating.annotation.assignment
        return assignment.duty.panel.name if assignment else ""


@dataclass(frozen=True, slots=True)
class VerdictShown:
    """One verdict on the item."""

    given: GivenVerdict
    criterion: Criterion

    @property
    def score(self) -> str:
        verdict = self.given.verdict
        return verdict_text(self.criterion, verdict.status, verdict.score, applicable=verdict.applicable)

    @property
    def label(self) -> str:
        verdict = self.given.verdict
        return point_label(self.criterion, verdict.score) if verdict.status == Verdict.Status.OK else ""

    @property
    def error(self) -> str:
        return signed_text(self.given.signed_error, self.criterion.level)


@dataclass(frozen=True, slots=True)
class ItemCriterion:
    """Everything on one criterion of one item."""

    given: CriterionScores

    @property
    def key(self) -> str:
        return self.given.criterion.key

    @property
    def name(self) -> str:
        return criterion_name(self.given.criterion)

    @property
    def shown(self) -> ScoresShown:
        return ScoresShown(self.given.scores, self.given.choice)

    @property
    def rule(self) -> str:
        return str(ITEM_RULE_NAMES[self.given.choice.reference])

    @property
    def shares(self) -> list[tuple[str, str, int, int]]:
        """The distribution of answers: score, its label, how many gave it, and that in percent."""
        criterion = self.given.criterion
        return [
            (point_text(criterion, score) or _("N/A"), point_label(criterion, score), count, round(100 * share))
            for score, count, share in self.given.shares
        ]

    @property
    def anchors(self) -> list[tuple[str, str, str]]:
        """The points of the scale whose meaning the rubric says: score, label, and the anchor."""
        criterion, spoken = self.given.criterion, get_language() or "en"
        known = [(value, criterion.anchor(value, spoken)["text"]) for value in criterion.values]
        return [(point_text(criterion, value), point_label(criterion, value), text) for value, text in known if text]

    @property
    def ratings(self) -> list[RatingShown]:
        return list(map(RatingShown, self.given.ratings))

    @property
    def superseded(self) -> list[RatingShown]:
        return list(map(RatingShown, self.given.superseded))

    @property
    def adjudications(self) -> list[tuple[Adjudicated, str]]:
        """Each adjudication with its score as text, the newest first."""
        return [
            (one, point_text(self.given.criterion, one.adjudication.score) or _("N/A"))
            for one in self.given.adjudications
        ]

    @property
    def has_rationales(self) -> bool:
        return any(given.verdict.rationale for given in self.given.verdicts)

    @property
    def verdicts(self) -> list[VerdictShown]:
        return [VerdictShown(verdict, self.given.criterion) for verdict in self.given.verdicts]

    @property
    def basis(self) -> str:
        """3 ratings, 2 verdicts."""
        n_ratings, n_verdicts = len(self.given.ratings), len(self.given.verdicts)
        return ", ".join(
            [
                ngettext("%d rating", "%d ratings", n_ratings) % n_ratings,
                ngettext("%d verdict", "%d verdicts", n_verdicts) % n_verdicts,
            ]
        )


def criterion_name(criterion: Criterion) -> str:
    """The criterion's name, in the reader's language if the rubric has that language."""
    return str(criterion.says("name", get_language() or "en") or criterion.key)


def point_text(criterion: Criterion, score: float | None) -> str:
    """A score as a list shows it: 3 or 2.33; on a nominal scale the name of the point where it has one."""
    if score is None:
        return ""
    name = point_label(criterion, score) if criterion.level == Criterion.Level.NOMINAL else ""
    return name or number_text(score)


def point_label(criterion: Criterion, score: float | None) -> str:
    """The rubric's label of the point, in the reader's language if possible."""
    return "" if score is None else criterion.label(score, get_language() or "en")


def verdict_text(criterion: Criterion, status: str, score: float | None, *, applicable: bool) -> str:
    """A verdict's score, N/A, or why there is none; a number off the scale is shown with that reason."""
    if status == Verdict.Status.OK:
        return point_text(criterion, score) if applicable else _("N/A")
    return " · ".join(filter(None, (number_text(score), str(Verdict.Status(status).label))))


# --- views -----------------------------------------------------------------------------------------------------------
def shown_campaign(user: User, project: str, campaign: int) -> Campaign:
    """The campaign, to leads and researchers of its project."""
    current_project: Project = access.require(user=user, slug=project)
    mine = Campaign.objects.visible_to(user).filter(project=current_project)
    with_parts = mine.select_related("project", "dataset", "rubric_version__rubric")
    return get_object_or_404(with_parts.prefetch_related("rubric_version__criteria"), pk=campaign)


@require_safe
@login_required
@page_cache.cached_page
def items_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The items of a campaign with their scores on one criterion, filtered, in the order chosen."""
    current = shown_campaign(request.user, project, campaign)
    options = item_choices.item_options(current)
    choice, refusal = _choice(current, options, request.GET)
    scored = [] if refusal else items.listed_items(current, choice)
    page = Paginator(scored, PAGE).get_page(request.GET.get("page"))
    shown = [scores.item for scores in page.object_list]
    record_seen_labels(campaign=current, items=shown, actor=request.user)
    raters = items.raters_of(current, choice, shown)
    rows = [
        (item, ScoresShown(scores, choice, raters[scores.item])) for item, scores in items.with_items(page.object_list)
    ]
    context = {
        "title": _("Items"),
        "rows": rows,
        "page_obj": page,
        "n_ratings": sum(scores.n_ratings for scores in scored),
        "n_verdicts": sum(scores.judge is not None for scores in scored),
        "refusal": refusal,
        **_context(request, current, options, choice),
    }
    return render(request, "analytics/items.html", context, status=422 if refusal else 200)


@require_safe
@login_required
def items_file(request: HttpRequest, project: str, campaign: int) -> HttpResponseBase:
    """The whole list as CSV; the page shows the problem if the address is wrong."""
    current = shown_campaign(request.user, project, campaign)
    choice, refusal = _choice(current, item_choices.item_options(current), request.GET)
    if refusal:
        return redirect(f"{reverse('numbers_items', args=[project, campaign])}?{request.GET.urlencode()}")
    name = slugify(current.name) or f"campaign-{current.pk}"
    listed = [scores.item for scores in items.listed_items(current, choice)]
    record_seen_labels(campaign=current, items=listed, actor=request.user, verb=DOWNLOADED_SCORES)
    with consistent():
        rows = items.csv_rows(items.listed_items(current, choice), choice)
        lines = (line.encode() for line in csv_lines(items.COLUMNS, rows))
        name = f"{name}-{choice.criterion.key}-items.csv"
        return download(lines, name=name, media_type="text/csv; charset=utf-8")


@require_safe
@login_required
@page_cache.cached_page
def item_scores_page(request: HttpRequest, project: str, campaign: int, item: int) -> HttpResponse:
    """One item as the desk shows it, and beside it every rating and every verdict, by criterion."""
    current = shown_campaign(request.user, project, campaign)
    stored = get_object_or_404(Item.objects.visible_to(request.user).of(current.dataset), pk=item)
    options = item_choices.item_options(current)
    choice, refusal = _choice(current, options, request.GET)
    record_seen_labels(campaign=current, items=[stored.pk], actor=request.user)
    scored = items.scores_of_item(current, stored, options, choice)
    context = {
        "title": stored.title or stored.external_id,
        "stored": stored,
        "item": presentation.show_item(stored, (), current.dataset.layout),
        "criteria": [ItemCriterion(given) for given in scored],
        "skips": items.skips_of_item(current, stored),
        "used_tags": error_tags.used_tags(current.project),
        "others": items.other_campaigns(current, stored),
        "refusal": refusal,
        **_neighbours(current, choice, stored),
        **_context(request, current, options, choice),
    }
    return render(request, "analytics/item.html", context, status=422 if refusal else 200)


def _choice(campaign: Campaign, options: ItemOptions, query: QueryDict) -> tuple[ItemChoice, str]:
    """The choice in the address; or the choice without parameters, and the problem of the given parameters."""
    try:
        return item_choices.chosen_items(campaign, options, query), ""
    except Refused as refused:
        return item_choices.chosen_items(campaign, options, QueryDict()), refused.sentence


def _neighbours(campaign: Campaign, choice: ItemChoice, item: Item) -> dict[str, Any]:
    """The items before and after this one in the list, and its number there; nothing where it is not in the list."""
    in_order = [scores.item for scores in items.listed_items(campaign, choice)]
    if item.pk not in in_order:
        return {}
    place = in_order.index(item.pk)
    return {
        "before": in_order[place - 1] if place else None,
        "after": in_order[place + 1] if place + 1 < len(in_order) else None,
        "number": place + 1,
        "total": len(in_order),
    }


def _context(request: HttpRequest, campaign: Campaign, options: ItemOptions, choice: ItemChoice) -> dict[str, Any]:
    """The context about the campaign and the choice that both pages use."""
    seats = PanelSeat.objects.filter(
        annotator__user=request.user, panel__in=Duty.objects.filter(campaign=campaign).values("panel")
    )
    chosen, spoken = dict(choice.attributes), get_language()
    with_designs = request.GET.get("designs") == "show"
    hidden = () if with_designs else options.of_designs
    listed = usual_judges(tuple(options.judges), hidden, chosen=[choice.judge])
    first_unusable = 1 if options.judges else 0  # labels without an order have no sign
    is_nominal = choice.criterion.level == Criterion.Level.NOMINAL
    unusable = item_choices.ERROR_ORDERS[first_unusable:] if is_nominal or not options.judges else ()
    return {
        "project": campaign.project,
        "campaign": campaign,
        "options": options,
        "choice": choice,
        "judges": listed,
        "hidden_judges": len(options.judges) - len(listed),
        "with_designs": with_designs,
        "criterion_names": [(key, criterion_name(criterion)) for key, criterion in options.criteria.items()],
        "criterion_name": criterion_name(choice.criterion),
        "languages": [
            (tag, languages.name_for(tag, spoken)) for tag in languages.in_name_order(options.languages, spoken)
        ],
        "attributes": [
            (f"{item_choices.ATTRIBUTE}{key}", key, values, chosen.get(key, ""))
            for key, values in options.attributes.items()
            if (values and len(values) > 1) or key in chosen
        ],
        "cut": _cut_in_words(choice, spoken),
        "left_out": [str(EXCLUSION_NAMES[name]) for name in choice.left_out],
        "n_filters": len([name for name, _value in choice.parameters if name not in NOT_FILTERS]),
        "sorts": [(key, name) for key, name in SORT_NAMES.items() if key not in unusable],
        "rule": ITEM_RULE_NAMES[choice.reference],
        "asked_rule": REFERENCE_NAMES[choice.asked_rule] if choice.asked_rule else "",
        "classes": CLASS_NAMES.items(),
        "ends": (number_text(choice.criterion.minimum), number_text(choice.criterion.maximum)),
        "rates_here": seats.exists(),
        "simulated": bool(choice.run and choice.run.judge.simulated),
    }


def _cut_in_words(choice: ItemChoice, spoken: str | None) -> list[tuple[str, str, str]]:
    """Each filter of a figure that led here: the parameter's value, and what it is in words."""
    found = []
    for column, value in choice.where:
        shown = languages.name_for(value, spoken) if column == "language" else value
        shown = f"{value}–{int(value) + 99}" if column == "hundred" and value.isdecimal() else shown
        found.append((f"{column}={value}", str(column_name(column)), shown))
    return found
