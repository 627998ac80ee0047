"""Position preference: of two candidates, how often an annotator or a judge chose the one that was shown first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from analytics.workload import FEWEST_ITEMS, wilson_low
from annotation.desk import pairs
from annotation.models import Annotation, Campaign, Rating
from judging.digests import canonical
from judging.models import Judge, JudgeRun, Verdict


@dataclass(slots=True)
class PositionPreference:
    """The choices of one annotator in one duty: `first` of `chosen` fell on the candidate that was shown first.

    Ties are counted apart. The order was drawn, so that without a preference for a position one half falls on it. It is
    drawn once for an item: `by_item` has, for each, how many choices fell on the first, and how many there are.
    """

    pseudonym: str
    ties: int = 0
    by_item: dict[int, tuple[int, int]] = field(default_factory=dict)

    def count(self, item: int, *, first: int, chosen: int) -> None:
        """Add choices on an item."""
        firsts, all_here = self.by_item.get(item, (0, 0))
        self.by_item[item] = firsts + first, all_here + chosen

    @property
    def first(self) -> int:
        return sum(first for first, _chosen in self.by_item.values())

    @property
    def chosen(self) -> int:
        return sum(chosen for _first, chosen in self.by_item.values())

    @property
    def items(self) -> int:
        return len(self.by_item)

    @property
    def share(self) -> float | None:
        return self.first / self.chosen if self.chosen else None

    @property
    def _independent(self) -> float:
        """How many independent choices say as much: p (1 - p) / v, v = sum over items of (first - p chosen)^2 / n^2.

        From half the items up to all choices; the items where the share does not vary. Source: effective number of a
        share, Kish 1965, Survey Sampling, 8.2.
        """
        n, p = self.chosen, self.first / self.chosen
        spread = sum((first - p * chosen) ** 2 for first, chosen in self.by_item.values()) / n**2
        if not 0 < p < 1 or not spread:
            return float(self.items)
        return min(float(n), max(self.items / 2, p * (1 - p) / spread))

    @property
    def low(self) -> float:
        """The lower end of Wilson's 95% interval of the share; choices on one item are not independent."""
        return self._wilson_low(self.share or 0.0) if self.chosen else 0.0

    @property
    def high(self) -> float:
        """The upper end."""
        return 1 - self._wilson_low(1 - (self.share or 0.0)) if self.chosen else 1.0

    def _wilson_low(self, share: float) -> float:
        return wilson_low(share * self._independent, self._independent)

    @property
    def is_flagged(self) -> bool:
        """Whether one half lies outside the interval, on enough items."""
        return self.items >= FEWEST_ITEMS and not self.low <= 0.5 <= self.high


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
    about = ("duty", "item")
    columns = (*(f"annotation__assignment__{name}" for name in about), "annotation__annotator__pseudonym")
    for duty, item, pseudonym, swapped, score in rows.values_list(*columns, "annotation__swapped", "score").iterator():
        one = found[duty].setdefault(pseudonym, PositionPreference(pseudonym))
        if score == pairs.TIE:
            one.ties += 1
        else:
            one.count(item, first=int(score == (pairs.SECOND if swapped else pairs.FIRST)), chosen=1)
    return {duty: _with_everybody([*people.values()]) for duty, people in found.items()}


def _with_everybody(people: list[PositionPreference]) -> list[PositionPreference]:
    if len(people) < 2:
        return people
    everybody = PositionPreference("", sum(one.ties for one in people))
    for one in people:
        for item, (first, chosen) in one.by_item.items():
            everybody.count(item, first=first, chosen=chosen)
    return [everybody, *people]


def judge_positions(campaign: Campaign, judge: Judge) -> PositionPreference | None:
    """The choices of a judge on the campaign's items, in both orders of the candidates; None without both.

    Its own, where it swaps in every second repeat, and those of the judge that differs from it only in the order
    (`PromptVariant.candidate_order`). Only items that were asked about in both orders, each order counted equally: by
    repeat, as often as in the other order.
    """
    asked = [criterion.pk for criterion in campaign.rubric_version.criteria.all() if pairs.is_preference(criterion)]
    orders = {other.pk: other.variant.get("candidate_order", "given") for other in _in_other_orders(judge)}
    if not asked or set(orders.values()) == {"given"}:
        return None
    rows = Verdict.objects.filter(
        run__in=JudgeRun.objects.ordinary().filter(judge__in=orders, dataset=campaign.dataset_id),
        run__rubric_version=campaign.rubric_version_id,
        criterion__in=asked,
        status="ok",
        score__isnull=False,
    )
    chosen: dict[tuple[int, int], dict[bool, list[float]]] = defaultdict(lambda: {False: [], True: []})
    columns = ("item", "criterion", "repeat", "run__judge", "score")
    for item, criterion, repeat, asking, score in rows.order_by("pk").values_list(*columns).iterator():
        order = orders[asking]
        swapped = order == "swapped" or (order == "both" and repeat % 2 == 0)
        chosen[item, criterion][swapped].append(score)
    found = PositionPreference(judge.name)
    for (item, _criterion), by_order in chosen.items():
        both = min(map(len, by_order.values()))
        for swapped, scores in by_order.items():
            first = pairs.SECOND if swapped else pairs.FIRST
            decided = [score for score in scores[:both] if score != pairs.TIE]
            found.ties += both - len(decided)
            if decided:
                found.count(item, first=decided.count(first), chosen=len(decided))
    return found if found.chosen or found.ties else None


def _in_other_orders(judge: Judge) -> list[Judge]:
    """The judge and those that differ from it only in the order of candidates."""
    others = Judge.objects.filter(project=judge.project_id, provider=judge.provider, model=judge.model)
    return [other for other in others if _but_for_order(other) == _but_for_order(judge)]


def _but_for_order(judge: Judge) -> str:
    variant = {name: level for name, level in (judge.variant or {}).items() if name != "candidate_order"}
    return str(canonical([variant, judge.parameters]))
