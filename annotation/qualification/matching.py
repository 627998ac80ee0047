"""Answers compared with reference scores, criterion by criterion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from annotation.models import (
    Annotation,
    Assignment,
    Criterion,
    MismatchReview,
    QualificationRule,
    Rating,
    ReferenceScore,
)

ROUNDING = 1e-6
"""Steps: .4 - .3 is more than .1 in binary numbers, and still one step of .1."""

NO_KEY = 0
"""No row has it. Django does not ask the database for rows with keys in an empty list."""


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """One answer beside its reference score. ``agrees``: by the rule; ``review``: what a lead decided about it."""

    assignment: Assignment
    criterion: Criterion
    given: Rating
    reference: ReferenceScore
    agrees: bool
    review: MismatchReview | None

    @property
    def matched(self) -> bool:
        """Whether it counts as a match: it agrees, or a lead has accepted it."""
        return self.agrees or (self.review is not None and self.review.state == MismatchReview.State.ACCEPTED)


@dataclass(frozen=True, slots=True)
class MatchedShare:
    """The share of matching answers on one criterion in one language."""

    criterion: Criterion
    language: str
    matched: int
    compared: int

    @property
    def share(self) -> float:
        """From 0 to 1; there is at least one answer."""
        return self.matched / self.compared

    @property
    def percent(self) -> int:
        """The share in whole percent, rounded down: 16 of 23 do not reach 70 %."""
        return 100 * self.matched // self.compared


def agrees(*, criterion: Criterion, given: Rating, reference: ReferenceScore, rule: QualificationRule) -> bool:
    """Whether an answer matches its reference score.

    N/A matches N/A only. A score in the accepted range matches. Otherwise by the rule: the same score, or at most
    ``rule.tolerance`` steps of the scale away (points in their order; nominal scales have no steps). What a critical
    mark stopped does not match.
    """
    if reference.score is None:
        return given.status == Rating.Status.NOT_APPLICABLE
    if given.score is None:
        return False
    if given.score == reference.score:
        return True
    low, high = reference.lowest, reference.highest
    is_ordered = criterion.level != Criterion.Level.NOMINAL
    if low is not None and high is not None and is_ordered and low <= given.score <= high:
        return True
    if rule.matching != QualificationRule.Matching.TOLERANCE or not is_ordered:
        return False
    return _steps(criterion, given.score, reference.score) <= rule.tolerance + ROUNDING


def _steps(criterion: Criterion, first: float, second: float) -> float:
    """How many steps lie between two scores: places in the list of points, else the step, else units of the scale."""
    points = criterion.values
    if first in points and second in points:
        return abs(points.index(first) - points.index(second))
    return abs(first - second) / (criterion.step or 1.0)


def compare(assignments: Iterable[Assignment], *, campaign: int, rule: QualificationRule) -> list[ReferenceComparison]:
    """The current answers of submitted assignments beside their reference scores, in order of assignment and criterion.

    ``campaign`` is the visible campaign, whose reference items count. Three queries, however many assignments; also
    without any, so that an annotator cannot tell by the time taken that the last item was their first control.
    """
    by_pk = {assignment.pk: assignment for assignment in assignments}
    keys = [*by_pk] or [NO_KEY]
    items = {assignment.item_id for assignment in by_pk.values()} or {NO_KEY}
    references: dict[int, list[ReferenceScore]] = defaultdict(list)
    scores = ReferenceScore.objects.filter(reference__campaign=campaign, reference__item__in=items)
    for score in scores.select_related("criterion", "reference").order_by("criterion__position"):
        references[score.reference.item_id].append(score)
    current = Annotation.objects.filter(assignment__in=keys, superseded_at=None)
    given = {
        (rating.annotation.assignment_id, rating.criterion_id): rating
        for rating in Rating.objects.filter(annotation__in=current).select_related("annotation")
    }
    looked_at = MismatchReview.objects.filter(assignment__in=keys).select_related("decided_by")
    reviews = {(review.assignment_id, review.criterion_id): review for review in looked_at}
    return [
        ReferenceComparison(
            assignment=assignment,
            criterion=score.criterion,
            given=rating,
            reference=score,
            agrees=agrees(criterion=score.criterion, given=rating, reference=score, rule=rule),
            review=reviews.get((pk, score.criterion_id)),
        )
        for pk, assignment in by_pk.items()
        for score in references[assignment.item_id]
        if (rating := given.get((pk, score.criterion_id)))
    ]


def shares(compared: Sequence[ReferenceComparison]) -> list[MatchedShare]:
    """Map each criterion and language (without regions) to the share that matches. Needs ``assignment.item``."""
    counts: dict[tuple[int, str], list[ReferenceComparison]] = defaultdict(list)
    for one in compared:
        counts[one.criterion.pk, one.assignment.item.language.partition("-")[0]].append(one)
    found = [
        MatchedShare(together[0].criterion, language, sum(one.matched for one in together), len(together))
        for (_criterion, language), together in counts.items()
    ]
    return sorted(found, key=lambda share: (share.language, share.criterion.position))
