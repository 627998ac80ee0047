"""What so many more ratings buy: how many items of each task, in how much time and for what price, and how exact the
means become.

The widths are those of the preview of a draw (`planning.precision_of`), so that the two never differ. Ratings are
counted as a project has them: a rating is one score on one criterion, an assignment one item for one annotator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Exists, OuterRef
from django.utils.translation import gettext_lazy

from analytics import planning
from annotation import allocation
from annotation.models import Annotation, Assignment, Campaign, Criterion, Duty, PayRate, Selection

UNITS = {
    "items": gettext_lazy("Items"),
    "assignments": gettext_lazy("Assignments"),
    "ratings": gettext_lazy("Ratings"),
}
MOST_FURTHER = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanWidth:
    """Half the 95% interval of a criterion's mean, now and after: of the panel's mean, and of that with the judge.

    None where it is not known. `is_approximate`: it is based on few scenarios.
    """

    criterion: str
    before: float | None
    after: float | None
    judge_before: float | None
    judge_after: float | None
    is_approximate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShare:
    """What one task gets: `items` of those that are `left`. `seconds`: of one assignment, None if no time is known."""

    duty: Duty
    left: int
    items: int
    n_criteria: int
    seconds: float | None
    widths: Sequence[MeanWidth]
    is_drawable: bool
    """Whether the Planner offers to draw into this task now."""

    @property
    def assignments(self) -> int:
        return self.items * self.duty.overlap

    @property
    def ratings(self) -> int:
        return self.assignments * self.n_criteria

    @property
    def hours(self) -> float | None:
        return planning.hours_of(self.assignments, self.seconds)

    @property
    def price(self) -> Decimal | None:
        return planning.price_of(self.duty, self.assignments, self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherRatings:
    """The plan. `lacking`: of the number asked for, in its unit, how much no item is left for. `open_assignments`:
    those that are given out and not submitted yet."""

    wanted: int
    unit: str
    judge: str
    shares: Sequence[TaskShare]
    lacking: int
    open_assignments: int

    @property
    def items(self) -> int:
        return sum(share.items for share in self.shares)

    @property
    def assignments(self) -> int:
        return sum(share.assignments for share in self.shares)

    @property
    def ratings(self) -> int:
        return sum(share.ratings for share in self.shares)

    @property
    def hours(self) -> float | None:
        """Of all tasks; None where the time of one is not known."""
        known = [share.hours for share in self.shares if share.items]
        return None if None in known else sum(hours for hours in known if hours is not None)

    @property
    def price(self) -> Decimal | None:
        """Of all tasks; None where the price of one is not known."""
        known = [share.price for share in self.shares if share.items]
        return None if None in known else sum((price for price in known if price is not None), Decimal(0))

    @property
    def is_approximate(self) -> bool:
        """Whether every known width is based on few scenarios, so that it is said once."""
        known = [width for share in self.shares for width in share.widths if width.before is not None]
        return bool(known) and all(width.is_approximate for width in known)

    @property
    def lacks_pay(self) -> bool:
        """Whether a task that gets items has no rate of pay."""
        return any(not PayRate.objects.filter(duty=share.duty).exists() for share in self.shares if share.items)


def rating_tasks(campaign: Campaign) -> list[Duty]:
    """The tasks of a campaign in which people rate items that are not known beforehand."""
    own = campaign.duties.filter(purpose=Duty.Purpose.RATING, stands_for=None)
    return list(own.select_related("panel", "campaign__dataset", "pay_rate").order_by("pk"))


def further_ratings(
    campaign: Campaign, *, wanted: int, unit: str, judge: str = "", duty: int | None = None
) -> FurtherRatings:
    """What `wanted` more of `unit` are: evenly over the tasks, or for one of them, as far as items are left."""
    tasks = [task for task in rating_tasks(campaign) if duty in (None, task.pk)]
    criteria = {task.pk: allocation.criteria_of(task.pk, campaign.rubric_version_id) for task in tasks}
    left = {task.pk: planning.items_left(task).count() for task in tasks}
    price = {
        task.pk: {"items": 1, "assignments": task.overlap}.get(unit, task.overlap * len(criteria[task.pk]))
        for task in tasks
    }
    drawable = _drawable_now(campaign, tasks) if judge else set()
    given, lacking = _split(wanted, left, price)
    waiting = Assignment.objects.filter(duty__in=tasks).exclude(state=Assignment.State.SUBMITTED)
    return FurtherRatings(
        wanted=wanted,
        unit=unit,
        judge=judge,
        shares=[
            TaskShare(
                duty=task,
                left=left[task.pk],
                items=given[task.pk],
                n_criteria=len(criteria[task.pk]),
                seconds=planning.seconds_of(task),
                widths=_widths(task, criteria[task.pk], given[task.pk], judge),
                is_drawable=task.pk in drawable,
            )
            for task in tasks
        ],
        lacking=lacking,
        open_assignments=waiting.aggregate(n=Count("pk"))["n"],
    )


def _drawable_now(campaign: Campaign, tasks: Sequence[Duty]) -> set[int]:
    """The tasks of an open campaign whose drawn items are all rated, so that a next draw may be made."""
    if campaign.state == Campaign.State.CLOSED:
        return set()
    rated = Annotation.objects.filter(assignment__duty=OuterRef("duty"), item=OuterRef("item"), superseded_at=None)
    waiting = Selection.objects.filter(~Exists(rated), duty__in=tasks).values_list("duty", flat=True)
    return {task.pk for task in tasks} - set(waiting)


def _split(wanted: int, left: Mapping[int, int], price: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Items by task, as even in what they cost as whole items can be; and what is not spent, because nothing is left.

    What is less than an item costs is not lacking.
    """
    given, rest = dict.fromkeys(left, 0), wanted
    while open_to := [key for key in left if given[key] < left[key] and price[key] <= rest]:
        key = min(open_to, key=lambda key: given[key] * price[key])
        given[key] += 1
        rest -= price[key]
    is_all_given = all(given[key] == left[key] for key in left)
    return given, rest if is_all_given and rest >= min(price.values(), default=1) else 0


def _widths(task: Duty, criteria: Sequence[Criterion], more: int, judge: str) -> list[MeanWidth]:
    found = []
    for criterion in criteria:
        if criterion.level == Criterion.Level.NOMINAL:
            continue
        precision = planning.precision_of(task, criterion, judge)
        found.append(
            MeanWidth(
                criterion=criterion.key,
                before=precision.half_width(0),
                after=precision.half_width(more),
                judge_before=precision.half_width_with_judge(0),
                judge_after=precision.half_width_with_judge(more),
                is_approximate=precision.clusters < planning.CLUSTERS_FOR_WIDTH,
            )
        )
    return found
