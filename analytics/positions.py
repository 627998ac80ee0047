"""Position preference: of two candidates, how often an annotator chose the one that was shown first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from analytics.workload import FEWEST_ITEMS, wilson_low
from annotation.desk import pairs
from annotation.models import Annotation, Campaign, Rating


@dataclass(slots=True)
class PositionPreference:
    """The choices of one annotator in one duty: `first` of `chosen` fell on the candidate that was shown first.

    Ties are counted apart. The order was drawn, so that without a preference for a position one half falls on it.
    """

    pseudonym: str
    first: int = 0
    chosen: int = 0
    ties: int = 0

    @property
    def share(self) -> float | None:
        return self.first / self.chosen if self.chosen else None

    @property
    def low(self) -> float:
        """The lower end of Wilson's 95% interval of the share."""
        return wilson_low(self.first, self.chosen) if self.chosen else 0.0

    @property
    def high(self) -> float:
        """The upper end."""
        return 1 - wilson_low(self.chosen - self.first, self.chosen) if self.chosen else 1.0

    @property
    def is_flagged(self) -> bool:
        """Whether one half lies outside the interval, of enough choices."""
        return self.chosen >= FEWEST_ITEMS and not self.low <= 0.5 <= self.high


def position_preferences(campaign: Campaign) -> Mapping[int, list[PositionPreference]]:
    """By duty, every annotator with pairwise choices, by pseudonym; if they are several, all together are the first."""
    asked = [criterion.pk for criterion in campaign.rubric_version.criteria.all() if pairs.is_preference(criterion)]
    found: dict[int, dict[str, PositionPreference]] = defaultdict(dict)
    if not asked or not Annotation.objects.filter(campaign=campaign, swapped__isnull=False).exists():
        return {}
    rows = Rating.objects.filter(
        annotation__campaign=campaign,
        annotation__superseded_at=None,
        annotation__swapped__isnull=False,
        criterion__in=asked,
        score__isnull=False,
    ).order_by("annotation__annotator__pseudonym")
    columns = ("annotation__assignment__duty", "annotation__annotator__pseudonym", "annotation__swapped", "score")
    for duty, pseudonym, swapped, score in rows.values_list(*columns).iterator():
        one = found[duty].setdefault(pseudonym, PositionPreference(pseudonym))
        if score == pairs.TIE:
            one.ties += 1
        else:
            one.chosen += 1
            one.first += score == (pairs.SECOND if swapped else pairs.FIRST)
    return {duty: _with_everybody([*people.values()]) for duty, people in found.items()}


def _with_everybody(people: list[PositionPreference]) -> list[PositionPreference]:
    if len(people) < 2:
        return people
    sums = (sum(getattr(one, name) for one in people) for name in ("first", "chosen", "ties"))
    return [PositionPreference("", *sums), *people]
