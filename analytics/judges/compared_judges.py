"""Compares judges: their factor levels, their costs, the items on which two judges differ most, and their chart."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.cache import caches
from django.db.models import Case, F, FloatField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Abs, NullIf
from django.utils import timezone

from analytics.figures import MINUS, Figure
from analytics.models import Snapshot
from analytics.ratings.raters import newest_runs, rater_names
from annotation import pay
from annotation.models import Campaign, Criterion, Item
from annotation.writers.tables import Column, Table
from judging import designs, known_replies
from judging.models import DesignCell, JudgeRun, Verdict
from judging.runs import whole_run

FEWEST_COMMON = 10
"""A cell with fewer common items is not part of any mean (`analytics.stats.judge.comparison.MIN_ITEMS`)."""
LEVELS = "levels"
"""The column with a judge's factor levels as JSON; empty for people and juries."""


# --- what they differ in ----------------------------------------------------------------------------------------------
def with_levels(found: Table, runs: Sequence[JudgeRun], names: Mapping[int, str]) -> Table:
    """The table with the column `levels` of each judge: the factors of the design if all runs belong to one design;
    otherwise the differences in model, prompt and parameters.
    """
    levels = levels_of_runs(runs)
    written = {names[run.pk]: json.dumps(levels[run.pk], sort_keys=True) for run in runs}
    rater_at, kind_at = found.names.index("rater"), found.names.index("rater_kind")
    rows = ((*row, written.get(row[rater_at]) if row[kind_at] == "judge" else None) for row in found.rows)
    return replace(found, columns=(*found.columns, Column(LEVELS, "text")), rows=rows)


def levels_of_runs(runs: Sequence[JudgeRun]) -> dict[int, dict[str, str]]:
    """By run, the level of each factor in which its judge differs from another one."""
    designs = {run.design_id for run in runs}
    found: dict[int, dict[str, Any]] = {}
    if len(designs) == 1 and None not in designs:
        cells = DesignCell.objects.filter(design__in=designs)
        of_judge = dict(cells.values_list("judge", "levels"))
        found = {run.pk: of_judge.get(run.judge_id, {}) for run in runs}
    else:
        for run in runs:
            judge = run.judge
            found[run.pk] = {"model": judge.model, **judge.variant, **judge.parameters}
    texts = {pk: {name: _level_text(level) for name, level in levels.items()} for pk, levels in found.items()}
    factors = {name for levels in texts.values() for name in levels}
    kept = {name for name in factors if len({levels.get(name, "") for levels in texts.values()}) > 1}
    return {pk: {name: levels.get(name, "") for name in sorted(kept)} for pk, levels in texts.items()}


def _level_text(level: Any) -> str:
    return level if isinstance(level, str) else json.dumps(level)


# --- what they cost ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCost:
    """What the run of one rater cost: requests, USD and verdicts as in `designs.CellResult`; the cost of a jury is the
    cost of its members.

    ``per_item``: USD of one item rated once, on all criteria, by the prices when the replies were sent; None if they
    are not known. ``ratings``: how many items were rated, each repeat counted. ``shared``: by the name of another
    judge, how many calls use the same replies as calls of that judge; by its own name, how many use replies to items of
    equal text.
    """

    name: str
    run: JudgeRun | None = None
    levels: Mapping[str, str]
    calls: int = 0
    sent: int = 0
    reused: int = 0
    paid: Decimal | None = None
    worth: Decimal | None = None
    ratings: float = 0.0
    verdicts: int = 0
    unreadable: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)

    @property
    def per_item(self) -> float | None:
        return float(self.worth) / self.ratings if self.worth is not None and self.ratings else None


@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """One row of the table: a judge's cost, its agreement on the mean of the cells, and its repeats."""

    cost: JudgeCost
    name: str
    agreement: Figure | None
    repeat_sd: float | None
    repeat_sd_unit: str
    is_efficient: bool
    lower_is_better: bool

    @property
    def is_firm(self) -> bool:
        """Whether its agreement has an interval and enough common items for the Pareto line."""
        return is_firm_agreement(self.agreement)

    @property
    def per_thousand(self) -> float | None:
        """USD for 1,000 items."""
        return None if self.cost.per_item is None else 1000 * self.cost.per_item

    @property
    def per_point(self) -> float | None:
        """USD for 1,000 items, per point (0.01) of agreement; None if the measure is an error, or without agreement."""
        value = self.agreement.value if self.agreement else None
        if self.per_thousand is None or self.lower_is_better or value is None or value <= 0:
            return None
        return self.per_thousand / (100 * value)


@dataclass(frozen=True, slots=True)
class ItemCosts:
    """The cost in USD of one item of a campaign: rated once by an annotator, and rated by the judge with the median
    cost.
    """

    campaign: Campaign
    people: float | None
    judge: float | None
    n_items: int
    n_judges: int

    @property
    def ratio(self) -> float | None:
        """How many times a judge is cheaper."""
        return self.people / self.judge if self.people is not None and self.judge else None


def item_costs(campaign: Campaign) -> ItemCosts:
    """Costs from the pay rates of duties and from the prices when the replies were sent; None if they are not known."""
    paid = [(work.earned, work.items) for work in pay.work_in(campaign) if work.earned is not None]
    items = sum(count for _earned, count in paid)
    earned = sum((float(amount) for amount, _count in paid if amount is not None), 0.0)
    known = [cost.per_item for cost in judge_costs(campaign, list(newest_runs(campaign)))]
    judges = sorted(each for each in known if each is not None)
    return ItemCosts(
        campaign=campaign,
        people=earned / items if items else None,
        judge=statistics.median(judges) if judges else None,
        n_items=items,
        n_judges=len(judges),
    )


def is_firm_agreement(figure: Figure | None) -> bool:
    """Whether agreement has an interval and enough common items for the Pareto line."""
    return figure is not None and figure.has_interval and figure.n_items >= FEWEST_COMMON


def judge_costs(campaign: Campaign, runs: Sequence[JudgeRun]) -> list[JudgeCost]:
    """By name, the cost of each rater of these runs; the runs that they continue are included."""
    names, levels = rater_names(campaign, runs), levels_of_runs(runs)
    parts = whole_run(runs)
    sums, shared = designs.run_results(parts), _common_replies(parts, names)
    criteria = max(1, campaign.rubric_version.criteria.count())
    found = []
    for run in runs:
        own = [sums[part.pk] for part in parts if names.get(part.pk) == names[run.pk]]
        total: dict[str, Any] = {name: sum(each.get(name) or 0 for each in own) for name in _SUMMED}
        known = [each["worth"] for each in own if each.get("worth") is not None]
        single = run.judge.variant.get("grouping") == "single"
        settled = sum(each.get("done", 0) - each.get("failed", 0) for each in own)
        found.append(
            JudgeCost(
                name=names[run.pk],
                run=run,
                levels=levels[run.pk],
                calls=total["planned"],
                sent=total["sent"],
                reused=total["reused"],
                paid=total["paid"] if known else None,
                worth=total["worth"] if known else None,
                ratings=settled / criteria if single else settled,
                verdicts=total["verdicts"],
                unreadable=total["unreadable"],
                shared=shared.get(names[run.pk], {}),
            )
        )
    return sorted(found, key=lambda cost: cost.name)


def _common_replies(parts: Sequence[JudgeRun], names: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """By judge and other judge, the number of calls that use the same replies."""
    found: dict[str, dict[str, int]] = {}
    for (first, second), count in known_replies.common_replies(parts).items():
        for one, other in {(names[first], names[second]), (names[second], names[first])}:
            of_one = found.setdefault(one, {})
            of_one[other] = of_one.get(other, 0) + count
    return found


def same_replies(costs: Sequence[JudgeCost]) -> dict[tuple[str, ...], int]:
    """By pair of judges, sorted by name, the number of shared replies; only pairs that share the replies of all
    calls.
    """
    calls = {cost.name: cost.calls for cost in costs}
    pairs = {(cost.name, other): n for cost in costs for other, n in cost.shared.items() if cost.name < other}
    return {pair: n for pair, n in pairs.items() if n >= min(calls[pair[0]], calls.get(pair[1], n)) > 0}


_SUMMED = ("planned", "sent", "reused", "paid", "worth", "verdicts", "unreadable")


COSTS_KEPT = 60
"""Seconds for which computed costs are cached: a page reloads itself while figures are computed."""


def kept_costs(campaign: Campaign, runs: Sequence[JudgeRun], snapshot: Snapshot) -> tuple[list[JudgeCost], datetime]:
    """`judge_costs` beside the figures of a stored snapshot, and when they were computed: at most a minute ago."""
    key = f"costs {snapshot.pk} {snapshot.created_at} {sorted(run.pk for run in runs)}"
    name = f"comparison:{hashlib.sha256(key.encode()).hexdigest()}"
    kept = caches["content"].get(name) if snapshot.pk else None
    if kept is None:
        kept = ([replace(cost, run=None) for cost in judge_costs(campaign, runs)], timezone.now())
        if snapshot.pk:
            caches["content"].set(name, kept, COSTS_KEPT)
    names = rater_names(campaign, runs)
    of_name = {names[run.pk]: run for run in runs}
    return [replace(cost, run=of_name.get(cost.name)) for cost in kept[0]], kept[1]


def jury_cost(name: str, members: Sequence[JudgeCost]) -> JudgeCost:
    """The cost of a jury for each item: the sum of its members' costs, with a shared reply counted once.

    The cost is unknown if the cost of one member is unknown.
    """
    known = [member.worth for member in members if member.worth is not None]
    ratings_each = max((member.ratings for member in members), default=0.0)
    each = [(member.per_item or 0) * _own_share(member, members[:place]) for place, member in enumerate(members)]
    total = None if len(known) < len(members) else Decimal(f"{sum(each) * ratings_each:.8f}")
    return JudgeCost(name=name, levels={}, worth=total, ratings=ratings_each)


def _own_share(member: JudgeCost, others: Sequence[JudgeCost]) -> float:
    """The share of a judge's calls that use no reply of the other judges."""
    shared = max((member.shared.get(other.name, 0) for other in others), default=0)
    return 1 - min(1.0, shared / member.calls) if member.calls else 1.0


def efficient(points: Mapping[str, tuple[float, float]], *, lower_is_better: bool = False) -> set[str]:
    """The names on the Pareto line of (cost, agreement): no other judge agrees better at the same or a lower cost, or
    equally well at a lower cost.
    """
    sign = -1 if lower_is_better else 1
    kept = set()
    for name, (cost, value) in points.items():
        beaten = any(
            other_cost <= cost and sign * other >= sign * value and (other_cost < cost or sign * other > sign * value)
            for other_cost, other in points.values()
        )
        if not beaten:
            kept.add(name)
    return kept


# --- items on which two of them differ --------------------------------------------------------------------------------
MOST_DISAGREEMENTS = 30


@dataclass(frozen=True, slots=True)
class JudgeDisagreement:
    """One item and criterion on which the first answers of two judges differ, with both rationales."""

    item: Item
    criterion: Criterion
    first: Verdict
    second: Verdict

    @property
    def difference(self) -> float:
        return (self.first.score or 0.0) - (self.second.score or 0.0)


def disagreements(first: JudgeRun, second: JudgeRun, *, most: int = MOST_DISAGREEMENTS) -> list[JudgeDisagreement]:
    """The items on which two judges' first answers differ most, largest first; equal differences by item.

    Differences are shares of the width of the criterion's scale; on a nominal scale each counts as the whole width.
    """
    differing = _of_both(first, second).filter(distance__gt=0).select_related("item", "criterion")
    width = NullIf(F("criterion__maximum") - F("criterion__minimum"), Value(0.0))
    is_nominal = When(criterion__level=Criterion.Level.NOMINAL, then=Value(1.0))
    share = Case(is_nominal, default=F("distance") / width, output_field=FloatField())
    largest = differing.order_by(share.desc(nulls_last=True), "item__ordinal", "criterion__position")
    rows = list(largest.defer("item__turns", "item__fields", "item__attributes")[:most])
    others = Verdict.objects.in_bulk([row.other for row in rows])
    return [JudgeDisagreement(row.item, row.criterion, row, others[row.other]) for row in rows]


def count_disagreements(first: JudgeRun, second: JudgeRun) -> tuple[int, int]:
    """The number of pairs of item and criterion with both first answers on the scale, and how many of these differ."""
    both = _of_both(first, second).exclude(distance=None)
    return both.count(), both.filter(distance__gt=0).count()


def _of_both(first: JudgeRun, second: JudgeRun) -> QuerySet[Any]:
    """The first answers of one judge with the `other` judge's, and the `distance` between their scores."""
    mine, theirs = (
        {"run__in": whole_run([run]), "repeat": 1, "status": Verdict.Status.OK, "score__isnull": False}
        for run in (first, second)
    )
    same = Verdict.objects.filter(item=OuterRef("item"), criterion=OuterRef("criterion"), **theirs)
    distance = Abs(F("score") - Subquery(same.values("score")[:1]))
    return Verdict.objects.filter(**mine).annotate(other=Subquery(same.values("pk")[:1]), distance=distance)


# --- the chart of cost and agreement: where each judge, tick and line is, in pixels ----------------------------------
CHART = {"width": 640, "height": 330, "left": 72, "bottom": 52, "top": 16, "right": 28}
LABEL_PLACES = ((14, -6), (14, 16), (-14, -6), (-14, 16), (0, -14), (0, 22), (28, 4), (-28, 4))
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A judge in the chart: its number in the table, its name, its position in pixels, and the position of the
    number.
    """

    number: int
    name: str
    x: float
    y: float
    is_efficient: bool
    label_x: float = 0.0
    label_y: float = 0.0


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis from its first to its last tick; ticks are multiples of 1, 2, 2.5 or 5 times a power of ten."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Sequence[float], *, from_zero: bool = False) -> ChartAxis:
        """The axis on which all of these values lie, with at most `MOST_TICKS` + 1 ticks."""
        low, high = min(values), max(values)
        low = min(low, 0.0) if from_zero else low
        width = (high - low) or abs(high) or 1.0
        raw = width / MOST_TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(each * power for each in STEPS if each * power >= raw * (1 - 1e-9))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(first * step, max(last, first + 1) * step, step)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Each tick with its text, as many decimals as the step has."""
        count = round((self.high - self.low) / self.step)
        decimals = next(n for n in range(20) if abs(round(self.step, n) - self.step) < 1e-9 * self.step)
        places = [self.low + place * self.step for place in range(count + 1)]
        return [(at, f"{at + 0.0:.{decimals}f}".replace("-", MINUS)) for at in places]


def cost_chart(judges: Sequence[tuple[int, str, float, float, bool]]) -> dict[str, Any]:
    """The chart of judges: number, name, cost, agreement, and whether it is on the Pareto line; two at least."""
    across = ChartAxis.over([cost for _number, _name, cost, _value, _best in judges], from_zero=True)
    up = ChartAxis.over([value for _number, _name, _cost, value, _best in judges])
    left, right = CHART["left"], CHART["width"] - CHART["right"]
    top, bottom = CHART["top"], CHART["height"] - CHART["bottom"]

    def x(cost: float) -> float:
        return round(left + across.share(cost) * (right - left), 1)

    def y(value: float) -> float:
        return round(bottom - up.share(value) * (bottom - top), 1)

    points = _labelled([ChartPoint(n, name, x(cost), y(value), best) for n, name, cost, value, best in judges])
    line = sorted((point.x, point.y) for point in points if point.is_efficient)
    return {
        **CHART,
        "points": points,
        "line": " ".join(f"{at},{height}" for at, height in line),
        "floor": bottom,
        "end": right,
        "x_ticks": [(x(at), f"${text}") for at, text in across.ticks],
        "y_ticks": [(y(at), text) for at, text in up.ticks],
        "x_middle": (left + right) / 2,
        "y_turned": -(top + bottom) / 2,
    }


def _labelled(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """The points with a position for each number: beside its point, and not over an earlier number."""
    placed: list[ChartPoint] = []
    for point in points:
        places = [(point.x + x, point.y + y) for x, y in LABEL_PLACES]
        free = [
            (x, y)
            for x, y in places
            if all(abs(x - other.label_x) > 14 or abs(y - other.label_y) > 12 for other in placed)
        ]
        x, y = (free or places)[0]
        placed.append(replace(point, label_x=round(x, 1), label_y=round(y, 1)))
    return placed
