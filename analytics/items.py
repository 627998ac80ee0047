"""The items behind the numbers: what the panel and a judge gave each item, and how far the ratings are apart.

A list is about one criterion: scores on different scales are never mixed. The scores of all items on that criterion are
counted by the database (at most one row per item and score) and sorted here, without numpy: web processes use this.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlencode

from django.core.cache import caches
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from accounts.inputs import without_nul
from accounts.refusals import Refused
from analytics import ratings
from annotation import adjudication
from annotation.adjudication import Adjudicated
from annotation.models import Annotation, Campaign, Criterion, Dataset, Duty, Item, Rating, Skip
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

Sort = Literal["disagreement", "judge_error", "id", "n"]
Measure = Literal["mode_share", "pair_difference"]
SORTS: tuple[Sort, ...] = ("disagreement", "judge_error", "id", "n")
REFERENCES = ("mode", "median", "mean")
BLIND_ONLY = "only"
ATTRIBUTE = "attribute."
MOST_VALUES = 200
"""An attribute with more values than this is filtered by its address only."""
KEPT_SECONDS = 24 * 3600
CHUNK = 20_000
BATCH = 500


# --- what a reader may choose, and what was chosen -------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ItemOptions:
    """What the list of a campaign's items can be filtered by. An attribute with too many values has None."""

    criteria: dict[str, Criterion]
    languages: tuple[str, ...]
    generators: tuple[str, ...]
    attributes: dict[str, tuple[str, ...] | None]
    judges: dict[str, JudgeRun]
    of_designs: frozenset[str]
    raters: tuple[str, ...]
    panels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChoice:
    """Which items on which criterion, whose ratings count, and the order. `run` is the judge's; None without a judge.

    `reference` is the rule that settles the panel's score: by default the mode, on interval scales the mean (METHODS
    3).
    """

    criterion: Criterion
    language: str = ""
    generator: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    judge: str = ""
    run: JudgeRun | None = None
    raters: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    blind_only: bool = False
    q: str = ""
    sort: Sort = "disagreement"
    reference: str = "mode"

    @property
    def measure(self) -> Measure:
        """How disagreement on one item is measured at the criterion's level (`item_disagreement`)."""
        return "mode_share" if self.criterion.level == Criterion.Level.NOMINAL else "pair_difference"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The choice as parameters of an address."""
        reference = "" if self.reference == default_rule(self.criterion) else self.reference
        single = {
            "criterion": self.criterion.key,
            "language": self.language,
            "generator": self.generator,
            "judge": self.judge,
            "q": self.q,
            "sort": "" if self.sort == SORTS[0] else self.sort,
            "reference": reference,
            "blind": BLIND_ONLY if self.blind_only else "",
        }
        several = [("rater", name) for name in self.raters] + [("panel", name) for name in self.panels]
        by_attribute = [(f"{ATTRIBUTE}{key}", value) for key, value in self.attributes]
        return [pair for pair in (*single.items(), *several, *by_attribute) if pair[1]]

    @property
    def query(self) -> str:
        return urlencode(self.parameters)


def item_options(campaign: Campaign) -> ItemOptions:
    """What the items of this campaign can be filtered by."""
    runs = list(ratings.newest_runs(campaign))
    names = ratings.rater_names(campaign, runs)
    judged, of_designs = {names[run.pk]: run for run in runs}, ratings.names_of_designs(runs, names)
    panels = Duty.objects.filter(campaign=campaign).order_by("panel__name").values_list("panel__name", flat=True)
    languages, generators, attributes = _described(campaign.dataset)
    return ItemOptions(
        criteria={criterion.key: criterion for criterion in campaign.rubric_version.criteria.all()},
        languages=languages,
        generators=generators,
        attributes=attributes,
        judges={name: judged[name] for name in sorted(judged, key=lambda name: name in of_designs)},
        of_designs=of_designs,
        raters=tuple(ratings.annotators(campaign).values_list("pseudonym", flat=True)),
        panels=tuple(dict.fromkeys(panels)),
    )


def chosen_items(campaign: Campaign, options: ItemOptions, query: QueryDict) -> ItemChoice:
    """The choice in an address; `Refused` with one sentence for each parameter that names nothing.

    Parameters: criterion, language, generator, attribute.KEY, judge, rater and panel (may be repeated), blind=only, q,
    sort, reference.
    """
    given = {name: without_nul(query.get(name, "")).strip() for name in ("language", "generator", "judge", "q")}
    raters, panels = (tuple(filter(None, query.getlist(name))) for name in ("rater", "panel"))
    attributes = tuple(
        (name.removeprefix(ATTRIBUTE), value)
        for name, values in query.lists()
        for value in values
        if name.startswith(ATTRIBUTE) and value
    )
    sort, reference = query.get("sort") or SORTS[0], query.get("reference") or ""
    wrong = dict(_wrong(options, query, given, raters, panels, attributes))
    if wrong:
        raise Refused(" ".join(wrong.values()), code="unknown_choice", fields=wrong)
    if sort == "judge_error" and not options.judges:
        sentence = _("No judge has rated these items, so they can't be sorted by the judge's error.")
        raise Refused(sentence, code="no_judge", fields={"sort": sentence})
    criterion = _criterion(campaign, options, query.get("criterion", ""))
    judge = given["judge"] or next(iter(options.judges), "")
    return ItemChoice(
        criterion=criterion,
        language=given["language"],
        generator=given["generator"],
        attributes=attributes,
        judge=judge,
        run=options.judges.get(judge),
        raters=tuple(dict.fromkeys(raters)),
        panels=tuple(dict.fromkeys(panels)),
        blind_only=query.get("blind") == BLIND_ONLY,
        q=given["q"],
        sort=next(known for known in SORTS if known == sort),
        reference=_rule_of(criterion, reference),
    )


def default_rule(criterion: Criterion) -> str:
    """The panel's mode, or its mean where scores are distances (as `stats.judge.calibration.default_reference`)."""
    return "mean" if criterion.level == Criterion.Level.INTERVAL else "mode"


def _rule_of(criterion: Criterion, wanted: str) -> str:
    """The rule wanted, or the default; labels without an order have a mode alone."""
    return default_rule(criterion) if criterion.level == Criterion.Level.NOMINAL else wanted or default_rule(criterion)


def _wrong(
    options: ItemOptions,
    query: QueryDict,
    given: Mapping[str, str],
    raters: Sequence[str],
    panels: Sequence[str],
    attributes: Sequence[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    """A sentence by parameter for everything that there is not."""
    no_order = _("“%s” is not a sort order. Choose disagreement, judge_error, id or n.")
    no_rule = _("“%s” is not a reference rule. Choose mode, median or mean.")
    known: tuple[tuple[str, Sequence[str], Iterable[str], str], ...] = (
        ("criterion", [query.get("criterion", "")], options.criteria, _("This rubric has no criterion “%s”.")),
        ("language", [given["language"]], options.languages, _("No item of this campaign has the language “%s”.")),
        ("generator", [given["generator"]], options.generators, _("No item of this campaign is by generator “%s”.")),
        ("judge", [given["judge"]], options.judges, _("No judge “%s” has rated these items.")),
        ("rater", raters, options.raters, _("Nobody called %s has rated in this campaign.")),
        ("panel", panels, options.panels, _("No panel “%s” rates in this campaign.")),
        ("sort", [query.get("sort", "")], SORTS, no_order),
        ("reference", [query.get("reference", "")], REFERENCES, no_rule),
        ("blind", [query.get("blind", "")], [BLIND_ONLY], _("“blind” can only be “only”, not “%s”.")),
    )
    for name, values, choices, sentence in known:
        if unknown := [value for value in values if value and value not in set(choices)]:
            yield name, sentence % ", ".join(unknown)
    for key, value in attributes:
        if key not in options.attributes:
            yield f"{ATTRIBUTE}{key}", _("No item of this campaign has the attribute “%s”.") % key
        elif (existing := options.attributes[key]) is not None and value not in existing:
            sentence = _("No item of this campaign has “%(value)s” as its attribute “%(key)s”.")
            yield f"{ATTRIBUTE}{key}", sentence % {"value": value, "key": key}


def _criterion(campaign: Campaign, options: ItemOptions, key: str) -> Criterion:
    """The criterion of that key, else the first with a score, else the first."""
    if key:
        return options.criteria[key]
    current = Rating.objects.filter(
        criterion=OuterRef("pk"), annotation__campaign=campaign, annotation__superseded_at=None
    )
    judged = Verdict.objects.filter(criterion=OuterRef("pk"), run__in=whole_run(options.judges.values()))
    scored = campaign.rubric_version.criteria.filter(Exists(current) | Exists(judged)).order_by("position").first()
    return options.criteria[scored.key] if scored else next(iter(options.criteria.values()))


def _described(dataset: Dataset) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...] | None]]:
    """Languages, generators and attributes with their values. The items of a dataset never change: kept for a day."""
    name = f"item-choices:{dataset.pk}:{dataset.created_at.timestamp()}"
    kept = caches["content"].get(name)
    if kept is None:
        kept = _read(dataset)
        caches["content"].set(name, kept, KEPT_SECONDS)
    return kept  # type: ignore[no-any-return]


def _read(dataset: Dataset) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...] | None]]:
    languages, generators = set[str](), set[str]()
    values: dict[str, set[str]] = defaultdict(set)
    rows = Item.objects.of(dataset).values_list("language", "generator", "attributes")
    for language, generator, attributes in rows.iterator(CHUNK):
        languages.add(language)
        generators.add(generator)
        for key, value in attributes.items():
            existing, text = values[key], ratings.attribute_text(value)
            if text is not None and len(existing) <= MOST_VALUES:
                existing.add(text)
    by_key = {key: tuple(sorted(texts)) if len(texts) <= MOST_VALUES else None for key, texts in sorted(values.items())}
    return tuple(sorted(languages)), tuple(sorted(generators - {""})), by_key


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
    """What one item was given on one criterion. `counts`: how many ratings gave each score, by ascending score."""

    item: int
    ordinal: int
    counts: dict[float, int] = field(default_factory=dict)
    not_applicable: int = 0
    stopped: int = 0
    judge: JudgeScore | None = None
    disagreement: float | None = None
    reference: float | None = None
    judge_error: float | None = None

    @property
    def n(self) -> int:
        """How many ratings are scores."""
        return sum(self.counts.values())

    @property
    def n_ratings(self) -> int:
        return self.n + self.not_applicable + self.stopped

    def settle(self, choice: ItemChoice) -> None:
        """Derive disagreement, reference and the judge's error from the counts."""
        in_order = tuple(sorted(self.counts.items()))
        self.counts = dict(in_order)
        self.disagreement, self.reference = _disagreement_and_reference(in_order, choice.measure, choice.reference)
        self.judge_error = None
        if self.judge and self.judge.is_usable:
            self.judge_error = judge_error(self.judge.score, self.reference, choice.criterion.level)


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
    if rule == "mean":
        return sum(score * count for score, count in counts.items()) / n
    if rule == "median":
        in_order = [score for score, count in sorted(counts.items()) for _copy in range(count)]
        return (in_order[(n - 1) // 2] + in_order[n // 2]) / 2
    most = max(counts.values())
    leading = [score for score, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else None


def judge_error(score: float | None, reference: float | None, level: str) -> float | None:
    """|score - reference| in points of the scale; on a nominal scale 0 where they are the same and 1 where not."""
    if score is None or reference is None:
        return None
    return float(score != reference) if level == Criterion.Level.NOMINAL else abs(score - reference)


# --- the list --------------------------------------------------------------------------------------------------------
def listed_items(campaign: Campaign, choice: ItemChoice) -> list[ItemScores]:
    """The chosen items that have a rating or a verdict on the criterion, in the order chosen.

    Ties and items without a value keep the order of the dataset; those without a value come last.
    """
    scores = _scores(campaign, choice)
    found = [scores[pk] for pk in _matching(campaign, choice, scores) if pk in scores]
    for scored in found:
        scored.settle(choice)
    return sorted(found, key=_KEYS[choice.sort])


def _downwards(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)


_KEYS = {
    "disagreement": lambda scored: (*_downwards(scored.disagreement), scored.ordinal),
    "judge_error": lambda scored: (*_downwards(scored.judge_error), scored.ordinal),
    "n": lambda scored: (-scored.n, scored.ordinal),
    "id": lambda scored: scored.ordinal,
}


def _matching(campaign: Campaign, choice: ItemChoice, scores: Mapping[int, ItemScores]) -> Iterator[int]:
    """Primary keys of the items that fit the filters; their places in the dataset are noted in `scores`."""
    wanted = {"language": choice.language, "generator": choice.generator, "q": choice.q}
    items = Item.objects.of(campaign.dataset).matching(wanted)
    by_attribute = dict[str, set[str]]()
    for key, value in choice.attributes:
        by_attribute.setdefault(key, set()).add(value)
    columns = ("pk", "ordinal", "attributes") if by_attribute else ("pk", "ordinal")
    for pk, ordinal, *rest in items.values_list(*columns).iterator(CHUNK):
        if pk in scores and (not rest or _has(rest[0], by_attribute)):
            scores[pk].ordinal = ordinal
            yield pk


def _has(attributes: Mapping[str, Any], wanted: Mapping[str, set[str]]) -> bool:
    return all(ratings.attribute_text(attributes.get(key)) in values for key, values in wanted.items())


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


def ratings_of_choice(campaign: Campaign, choice: ItemChoice) -> QuerySet[Rating]:
    """The ratings by the chosen raters and panels, on any criterion, superseded ones too."""
    found = Rating.objects.filter(annotation__campaign=campaign)
    if choice.raters:
        found = found.filter(annotation__annotator__pseudonym__in=choice.raters)
    if choice.panels:
        found = found.filter(annotation__assignment__duty__panel__name__in=choice.panels)
    if choice.blind_only:
        found = found.filter(Q(annotation__blind=True) | Q(annotation__blind=None))
    return found


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


COLUMNS = (
    "item", "language", "generator", "scenario", "criterion", "level", "n_scores", "n_not_applicable", "n_stopped",
    "scores", "disagreement", "disagreement_measure", "reference", "reference_rule", "judge", "judge_score",
    "judge_status", "judge_error",
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
            judge.status_text if judge else None, scores.judge_error,
        )  # fmt: skip


# --- one item --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """One verdict with its run. `counts`: whether the numbers read this run; `error` is against the reference."""

    verdict: Verdict
    judge: str
    counts: bool
    error: float | None

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
    for scored in by_criterion.values():
        scored.scores.settle(scored.choice)
    for verdict, judge, is_counted in _verdicts_of(campaign, item, options):
        scored = by_criterion[verdict.criterion_id]
        usable = verdict.score if verdict.status == Verdict.Status.OK else None
        error = judge_error(usable, scored.scores.reference, scored.criterion.level)
        scored.verdicts.append(GivenVerdict(verdict, judge, is_counted, error))
    for decided in adjudication.adjudications_of(campaign, item):
        by_criterion[decided.adjudication.criterion_id].adjudications.append(decided)
    given = [scored for scored in by_criterion.values() if scored.ratings or scored.superseded or scored.verdicts]
    return sorted(given, key=lambda scored: (scored.criterion.pk != choice.criterion.pk, scored.criterion.position))


def _about(choice: ItemChoice, criterion: Criterion) -> ItemChoice:
    """The same choice about another criterion, whose reference is its own by default."""
    is_default = choice.reference == default_rule(choice.criterion)
    reference = _rule_of(criterion, "" if is_default else choice.reference)
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
