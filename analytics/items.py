"""The items behind the numbers: what the panel and a judge gave each item, and how far the ratings are apart.

A list is about one criterion: scores on different scales are never mixed. The scores of all items on that criterion are
counted by the database (at most one row per item and score) and sorted here, without numpy: web processes use this.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from analytics.item_choices import CHUNK, ItemChoice, ItemOptions, Measure, Sort, default_rule, settled_rule
from analytics.questions.reference_rules import ADJUDICATED
from analytics.ratings.item_attributes import attribute_text
from analytics.ratings.rating_times import item_times
from annotation import adjudication
from annotation.adjudication import Adjudicated
from annotation.models import Annotation, Assignment, Campaign, Criterion, Item, Rating, Skip
from judging.models import Verdict
from judging.runs import whole_run

BATCH = 500


# --- scores of one item on one criterion -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class JudgeScore:
    """A judge's first verdict on an item: a score, N/A, or the reason there is none; and how many repeats there are."""

    status: str
    score: float | None
    applicable: bool
    repeats: int = 1

    @property
    def is_usable(self) -> bool:
        """Whether it is a score on the scale: an unreadable reply is missing, never wrong."""
        return self.status == Verdict.Status.OK and self.score is not None

    @property
    def status_text(self) -> str:
        """ok, na, or why there is no score."""
        return self.status if self.applicable else "na"


@dataclass(slots=True)
class ItemScores:
    """What one item was given on one criterion. `counts`: how many ratings gave each score, by ascending score.
    `adjudications`: the one that counts, None for N/A; or nothing.
    """

    item: int
    ordinal: int
    counts: dict[float, int] = field(default_factory=dict)
    not_applicable: int = 0
    stopped: int = 0
    judge: JudgeScore | None = None
    adjudications: tuple[float | None, ...] = ()
    disagreement: float | None = None
    reference: float | None = None
    signed_error: float | None = None

    @property
    def judge_error(self) -> float | None:
        return None if self.signed_error is None else abs(self.signed_error)

    @property
    def n(self) -> int:
        """How many ratings are scores."""
        return sum(self.counts.values())

    @property
    def agreement(self) -> str:
        """The class of agreement of two scores or more: full, partial or none (METHODS 1)."""
        most = max(self.counts.values(), default=0)
        return "" if self.n < 2 else "full" if most == self.n else "none" if most == 1 else "partial"

    @property
    def n_ratings(self) -> int:
        return self.n + self.not_applicable + self.stopped

    def settle(self, choice: ItemChoice) -> None:
        """Derive disagreement, reference and the judge's error from the counts."""
        in_order = tuple(sorted(self.counts.items()))
        self.counts = dict(in_order)
        self.disagreement, self.reference = _disagreement_and_reference(in_order, choice.measure, choice.reference)
        if self.adjudications and choice.reference in ADJUDICATED:
            self.reference = self.adjudications[0]
        judge = self.judge.score if self.judge and self.judge.is_usable else None
        self.signed_error = signed_error(judge, self.reference, choice.criterion.level)


@lru_cache(maxsize=4096)
def _disagreement_and_reference(
    counts: tuple[tuple[float, int], ...], measure: Measure, rule: str
) -> tuple[float | None, float | None]:
    """Disagreement and reference, computed once for all items of a list that were given the same scores."""
    return item_disagreement(dict(counts), measure), reference_score(dict(counts), rule)


def item_disagreement(counts: Mapping[float, int], measure: Measure) -> float | None:
    """Disagreement on one item from {score: how many gave it}; None for fewer than two scores. 0: all the same.

    ``mode_share``: 1 - max_k n_k / n, the share of ratings that are not the commonest score (nominal scales).
    ``pair_difference``: sum_{k<l} n_k n_l |x_k - x_l| / (n (n - 1) / 2), the mean absolute difference over all pairs of
    ratings, in points of the scale (Gini's mean difference; METHODS 1).
    """
    n = sum(counts.values())
    if n < 2:
        return None
    if measure == "mode_share":
        return 1 - max(counts.values()) / n
    total, before, sum_before = 0.0, 0, 0.0
    for score, count in sorted(counts.items()):
        total += count * (score * before - sum_before)
        before += count
        sum_before += count * score
    return total / (n * (n - 1) / 2)


def reference_score(counts: Mapping[float, int], rule: str) -> float | None:
    """The panel's settled score by `rule` from {score: how many gave it}; None without scores, or where modes tie.

    Source: METHODS 2.
    """
    n = sum(counts.values())
    if not n:
        return None
    if rule == "minimum":
        return min(counts)
    if rule == "mean":
        return sum(score * count for score, count in counts.items()) / n
    if rule == "median":
        in_order = [score for score, count in sorted(counts.items()) for _copy in range(count)]
        return (in_order[(n - 1) // 2] + in_order[n // 2]) / 2
    if rule == "adjudicated":
        return None  # nobody has decided: else there is no need to count
    most = max(counts.values())
    leading = [score for score, count in counts.items() if count == most]
    if len(leading) == 1:
        return leading[0]
    return _of_tied(rule, leading, counts)


def _of_tied(rule: str, leading: Sequence[float], counts: Mapping[float, int]) -> float | None:
    if rule == "mode_split":
        return reference_score(counts, "median")
    return {"mode_lower": min(leading), "mode_upper": max(leading)}.get(rule)


def signed_error(score: float | None, reference: float | None, level: str) -> float | None:
    """score - reference in points of the scale; on a nominal scale 0 where they are the same and 1 where not."""
    if score is None or reference is None:
        return None
    return float(score != reference) if level == Criterion.Level.NOMINAL else score - reference


# --- the list --------------------------------------------------------------------------------------------------------
def listed_items(campaign: Campaign, choice: ItemChoice) -> list[ItemScores]:
    """The chosen items that have a rating or a verdict on the criterion, in the order chosen.

    Ties and items without a value keep the order of the dataset; those without a value come last.
    """
    scores = _scores(campaign, choice)
    if choice.by:
        scores = {pk: scores[pk] for pk in _scored_by(campaign, choice) & scores.keys()}
    if choice.reference in ADJUDICATED:
        for (pk, criterion), decided in adjudication.current(campaign).items():
            if criterion == choice.criterion.pk and pk in scores:
                scores[pk].adjudications = (decided.score,)
    found = [scores[pk] for pk in _matching(campaign, choice, scores) if pk in scores]
    for scored in found:
        scored.settle(choice)
    scale = choice.criterion.declared_scale
    middles = [] if scale.any_number else [(low + high) / 2 for low, high in pairwise(scale.values.tolist())]
    return sorted((scored for scored in found if _is_of_cell(scored, choice, middles)), key=_KEYS[choice.sort])


def _is_of_cell(scored: ItemScores, choice: ItemChoice, middles: Sequence[float]) -> bool:
    """Whether it has the scores, the class and the number of scores that are asked for.

    The judge's score and the reference count as the point nearest to them (`stats.core.scales.snapped`): between the
    same `middles`.
    """
    if choice.scored is not None and choice.scored not in scored.counts:
        return False
    if scored.n < choice.scores or (choice.agreement and choice.agreement != scored.agreement):
        return False
    judge = scored.judge.score if scored.judge and scored.judge.is_usable else None
    if choice.compared and (judge is None or scored.reference is None):
        return False
    asked = ((choice.settled, scored.reference), (choice.judged, judge))
    return all(wanted is None or _is_same_point(wanted, score, choice, middles) for wanted, score in asked)


def _is_same_point(wanted: float, score: float | None, choice: ItemChoice, middles: Sequence[float]) -> bool:
    if score is None or not middles or wanted not in choice.criterion.values:
        return score == wanted
    return bisect_right(middles, score) == bisect_right(middles, wanted)


def _downwards(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)


_KEYS: dict[Sort, Callable[[ItemScores], Any]] = {
    "disagreement": lambda scored: (*_downwards(scored.disagreement), scored.ordinal),
    "judge_error": lambda scored: (*_downwards(scored.judge_error), scored.ordinal),
    "judge_above": lambda scored: (*_downwards(scored.signed_error), scored.ordinal),
    "judge_below": lambda scored: (scored.signed_error is None, scored.signed_error or 0.0, scored.ordinal),
    "n": lambda scored: (-scored.n, scored.ordinal),
    "id": lambda scored: scored.ordinal,
}


def _matching(campaign: Campaign, choice: ItemChoice, scores: Mapping[int, ItemScores]) -> Iterator[int]:
    """Primary keys of the items that fit the filters; their places in the dataset are noted in `scores`."""
    wanted = {"language": choice.language, "generator": choice.generator, "q": choice.q}
    items = Item.objects.of(campaign.dataset).matching(wanted).filter(_cut_to(campaign, choice))
    by_attribute = dict[str, set[str]]()
    for key, value in choice.attributes:
        by_attribute.setdefault(key, set()).add(value)
    columns = ("pk", "ordinal", "attributes") if by_attribute else ("pk", "ordinal")
    for pk, ordinal, *rest in items.values_list(*columns).iterator(CHUNK):
        if pk in scores and (not rest or _has(rest[0], by_attribute)):
            scores[pk].ordinal = ordinal
            yield pk


_FIELDS = {"scenario": "scenario", "item": "external_id", "dataset_version": "dataset__version"}
_FIELDS |= {"language": "language", "generator": "generator"}


def _cut_to(campaign: Campaign, choice: ItemChoice) -> Q:
    """The condition on items of the filters that a question has, too."""
    found = Q()
    for column, name in _FIELDS.items():
        if values := choice.wanted(column):
            numbers = {value for value in values if value.isdecimal() and len(value) < 10}  # more is no integer in SQL
            found &= Q(**{f"{name}__in": numbers if column == "dataset_version" else values})
    weeks, hundreds = choice.wanted("week"), choice.wanted("hundred")
    if weeks or hundreds:
        times = item_times(campaign).items()
        there = [
            item
            for item, (week, hundred, _place) in times
            if (not weeks or week in weeks) and (not hundreds or hundred in hundreds)
        ]
        found &= Q(external_id__in=there)
    return found


def _has(attributes: Mapping[str, Any], wanted: Mapping[str, set[str]]) -> bool:
    return all(attribute_text(attributes.get(key)) in values for key, values in wanted.items())


def _scores(campaign: Campaign, choice: ItemChoice) -> dict[int, ItemScores]:
    """By item, the counts of its ratings and the judge's first verdict, on the chosen criterion."""
    scores: dict[int, ItemScores] = {}
    current = ratings_of_choice(campaign, choice).filter(criterion=choice.criterion, annotation__superseded_at=None)
    counted = current.order_by().values_list("annotation__item", "status", "score")
    for pk, status, score, count in counted.annotate(count=Count("pk")).iterator(CHUNK):
        scored = scores.setdefault(pk, ItemScores(pk, 0))
        if status == Rating.Status.SCORED:
            scored.counts[score] = count
        elif status == Rating.Status.NOT_APPLICABLE:
            scored.not_applicable += count
        else:
            scored.stopped += count
    for pk, verdict in _first_verdicts(choice):
        scores.setdefault(pk, ItemScores(pk, 0)).judge = verdict
    return scores


def _scored_by(campaign: Campaign, choice: ItemChoice) -> set[int]:
    """The items to which each of the people in `by` gave a score on the criterion."""
    given = ratings_of_choice(campaign, choice).filter(
        criterion=choice.criterion, annotation__superseded_at=None, status=Rating.Status.SCORED
    )
    of = (given.filter(annotation__annotator__pseudonym=name).values_list("annotation__item") for name in choice.by)
    return set.intersection(*({pk for (pk,) in rows} for rows in of))


def ratings_of_choice(campaign: Campaign, choice: ItemChoice) -> QuerySet[Rating]:
    """The ratings by the chosen raters and panels, on any criterion, superseded ones too."""
    return Rating.objects.filter(choice.about_ratings, annotation__campaign=campaign)


def _first_verdicts(choice: ItemChoice) -> Iterator[tuple[int, JudgeScore]]:
    """By item, the judge's first repeat (the one that calibration compares), and the number of repeats."""
    if choice.run is None:
        return
    verdicts = Verdict.objects.filter(run__in=whole_run([choice.run]), criterion=choice.criterion)
    rows = verdicts.order_by().values_list("item", "repeat", "status", "score", "applicable")
    first: dict[int, tuple[int, str, float | None, bool]] = {}
    repeats: dict[int, int] = defaultdict(int)
    for item, repeat, status, score, applicable in rows.iterator(CHUNK):
        repeats[item] += 1
        if item not in first or repeat < first[item][0]:
            first[item] = (repeat, status, score, applicable)
    for item, (_repeat, status, score, applicable) in first.items():
        yield item, JudgeScore(status, score, applicable, repeats[item])


# --- who rated -------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class ItemRaters:
    """Who answered the criterion on one item: pseudonym, status and score; and how many slots are still to be rated.

    `open_slots`: None where only some of the ratings count, so that it is not known who was asked for them.
    """

    given: list[tuple[str, str, float | None]] = field(default_factory=list)
    open_slots: int | None = None

    @property
    def people(self) -> int:
        return len({name for name, _status, _score in self.given})


def raters_of(campaign: Campaign, choice: ItemChoice, listed: Sequence[int]) -> dict[int, ItemRaters]:
    """By item. Slots are not counted where the choice is about some of the people, or of their ratings."""
    is_part = bool(choice.raters or choice.without or choice.min_seconds or choice.blind_only)
    found = {pk: ItemRaters() for pk in listed}
    current = ratings_of_choice(campaign, choice).filter(
        criterion=choice.criterion, annotation__superseded_at=None, annotation__item__in=listed
    )
    columns = ("annotation__item", "annotation__annotator__pseudonym", "status", "score")
    for pk, *answer in current.order_by("annotation__annotator__pseudonym", "pk").values_list(*columns):
        found[pk].given.append((answer[0], answer[1], answer[2]))
    if is_part:
        return found
    slots = Assignment.objects.filter(duty__campaign=campaign, item__in=listed, duty__criteria=choice.criterion)
    if choice.panels:
        slots = slots.filter(duty__panel__name__in=choice.panels)
    open_slots = slots.exclude(state=Assignment.State.SUBMITTED)
    counted = Counter(
        pk
        for pk, number, sets in open_slots.values_list("item", "criteria_set", "duty__criteria_sets")
        if not number or choice.criterion.key in sets[number - 1]
    )
    for pk, raters in found.items():
        raters.open_slots = counted[pk]
    return found


COLUMNS = (
    "item", "language", "generator", "scenario", "criterion", "level", "n_scores", "n_not_applicable", "n_stopped",
    "scores", "disagreement", "disagreement_measure", "reference", "reference_rule", "judge", "judge_score",
    "judge_status", "judge_error", "signed_error",
)  # fmt: skip
"""Of the list as CSV; `scores` maps each score to how many gave it, as JSON."""


def with_items(scored: Sequence[ItemScores]) -> Iterator[tuple[Item, ItemScores]]:
    """Each of the scores with its item, without the texts; read in batches, as they are asked for."""
    light = Item.objects.defer("turns", "fields", "content_warning")
    for start in range(0, len(scored), BATCH):
        batch = scored[start : start + BATCH]
        items = light.in_bulk([scores.item for scores in batch])
        yield from ((items[scores.item], scores) for scores in batch)


def csv_rows(scored: Sequence[ItemScores], choice: ItemChoice) -> Iterator[tuple[object, ...]]:
    """The list under COLUMNS."""
    key, level = choice.criterion.key, choice.criterion.level
    for item, scores in with_items(scored):
        counts = json.dumps({f"{score:g}": count for score, count in scores.counts.items()})
        judge = scores.judge
        yield (
            item.external_id, item.language, item.generator, item.scenario, key, level, scores.n,
            scores.not_applicable, scores.stopped, counts, scores.disagreement, choice.measure,
            scores.reference, choice.reference, choice.judge or None, judge.score if judge else None,
            judge.status_text if judge else None, scores.judge_error, scores.signed_error,
        )  # fmt: skip


# --- one item --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """One verdict with its run. `counts`: whether the numbers read this run; errors are against the reference."""

    verdict: Verdict
    judge: str
    counts: bool
    signed_error: float | None

    @property
    def error(self) -> float | None:
        return None if self.signed_error is None else abs(self.signed_error)

    @property
    def call(self) -> int | None:
        """The call that was paid for it; none where it was imported."""
        return self.verdict.attempt.call_id if self.verdict.attempt else None


@dataclass(slots=True)
class CriterionScores:
    """Everything that was given to one item on one criterion: ratings by pseudonym, then verdicts by judge."""

    choice: ItemChoice
    scores: ItemScores
    ratings: list[Rating] = field(default_factory=list)
    superseded: list[Rating] = field(default_factory=list)
    verdicts: list[GivenVerdict] = field(default_factory=list)
    adjudications: list[Adjudicated] = field(default_factory=list)

    def add(self, rating: Rating) -> None:
        """Count a rating, or keep it as history where a later one replaced it."""
        if rating.annotation.superseded_at:
            self.superseded.append(rating)
            return
        self.ratings.append(rating)
        if rating.score is not None:
            self.scores.counts[rating.score] = self.scores.counts.get(rating.score, 0) + 1
        elif rating.status == Rating.Status.NOT_APPLICABLE:
            self.scores.not_applicable += 1
        else:
            self.scores.stopped += 1

    @property
    def criterion(self) -> Criterion:
        return self.choice.criterion

    @property
    def shares(self) -> list[tuple[float | None, int, float]]:
        """The distribution of answers (a soft label): score, how many gave it, their share; N/A last, as None."""
        answers: list[tuple[float | None, int]] = [*self.scores.counts.items()]
        if self.scores.not_applicable:
            answers.append((None, self.scores.not_applicable))
        total = sum(count for _score, count in answers)
        return [(score, count, count / total) for score, count in answers]


def scores_of_item(campaign: Campaign, item: Item, options: ItemOptions, choice: ItemChoice) -> list[CriterionScores]:
    """Every rating and verdict on an item, by criterion, for the criteria that have any; the chosen one first.

    Ratings of people that the choice leaves out are not among them. Verdicts are of every run on this rubric version.
    """
    by_criterion = {
        criterion.pk: CriterionScores(_about(choice, criterion), ItemScores(item.pk, item.ordinal))
        for criterion in options.criteria.values()
    }
    for rating in _ratings_of(campaign, item, choice):
        by_criterion[rating.criterion_id].add(rating)
    for decided in adjudication.adjudications_of(campaign, item):
        scored = by_criterion[decided.adjudication.criterion_id]
        scored.adjudications.append(decided)
        if decided.counts:
            scored.scores.adjudications = (decided.adjudication.score,)
    for scored in by_criterion.values():
        scored.scores.settle(scored.choice)
    for verdict, judge, is_counted in _verdicts_of(campaign, item, options):
        scored = by_criterion[verdict.criterion_id]
        usable = verdict.score if verdict.status == Verdict.Status.OK else None
        error = signed_error(usable, scored.scores.reference, scored.criterion.level)
        scored.verdicts.append(GivenVerdict(verdict, judge, is_counted, error))
    given = [scored for scored in by_criterion.values() if scored.ratings or scored.superseded or scored.verdicts]
    return sorted(given, key=lambda scored: (scored.criterion.pk != choice.criterion.pk, scored.criterion.position))


def _about(choice: ItemChoice, criterion: Criterion) -> ItemChoice:
    """The same choice about another criterion, whose reference is its own by default."""
    is_default = choice.reference == default_rule(choice.criterion)
    reference = settled_rule(criterion, "" if is_default else choice.reference)
    return replace(choice, criterion=criterion, reference=reference)


def _ratings_of(campaign: Campaign, item: Item, choice: ItemChoice) -> QuerySet[Rating]:
    """Ratings of the item by the chosen people, superseded ones too."""
    of_item = ratings_of_choice(campaign, choice).filter(annotation__item=item)
    columns = ("criterion", "annotation__annotator", "annotation__assignment__duty__panel")
    return (
        of_item.select_related(*columns)
        .prefetch_related("evidence")
        .order_by("annotation__annotator__pseudonym", "annotation", "pk")
    )


def _verdicts_of(campaign: Campaign, item: Item, options: ItemOptions) -> Iterator[tuple[Verdict, str, bool]]:
    """Every verdict on the item under this rubric version, the judge's name, and whether the numbers read its run."""
    counted = {run.pk for run in whole_run(options.judges.values())}
    names = {run.judge_id: name for name, run in options.judges.items()}
    verdicts = Verdict.objects.filter(
        item=item,
        run__project=campaign.project_id,
        run__rubric_version=campaign.rubric_version_id,
        run__perturbation__isnull=True,
    )
    whole = verdicts.select_related("run__judge", "attempt").defer("attempt__request", "attempt__reply")
    whole = whole.prefetch_related("error_tags")
    in_order = whole.order_by("run__judge__name", "-run", "repeat")
    for verdict in sorted(in_order, key=lambda verdict: verdict.run_id not in counted):
        judge = verdict.run.judge
        yield verdict, names.get(judge.pk, judge.name), verdict.run_id in counted


def skips_of_item(campaign: Campaign, item: Item) -> QuerySet[Skip]:
    """Who put the item aside, and why."""
    skips = Skip.objects.filter(duty__campaign=campaign, item=item)
    return skips.select_related("annotator", "duty__panel").order_by("at")


def other_campaigns(campaign: Campaign, item: Item) -> QuerySet[Campaign]:
    """The project's other campaigns in which somebody rated this item."""
    rated = Annotation.objects.filter(campaign=OuterRef("pk"), item=item, superseded_at=None)
    others = Campaign.objects.filter(Exists(rated), project=campaign.project_id).exclude(pk=campaign.pk)
    return others.order_by("name")
