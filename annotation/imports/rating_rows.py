"""Check imported ratings against the items, the scales and the existing ratings of a campaign."""

from __future__ import annotations

from collections import Counter, abc
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

from django.utils import timezone

from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation import bulk
from annotation.evidence import PARTS
from annotation.models import (
    Annotation,
    Annotator,
    Campaign,
    Criterion,
    Dataset,
    EvidenceSpan,
    Import,
    Item,
    Rating,
    RubricVersion,
)
from annotation.readers import (
    InvalidValue,
    PartitionedRows,
    PlainRow,
    Problem,
    Problems,
    RatingRow,
    ShareProgress,
    Spool,
    Words,
    as_spans,
    did_you_mean,
    excerpt,
    item_texts,
    located_span,
    loose_key,
    nearest_name,
    progress_between,
    spans_as_json,
)

LONGEST_RATER = 80
MOST_RATERS = 50_000
TOGETHER = 5_000  # rows that are looked up in one query
MOST_REMEMBERED = 100_000  # items
Scored, NotApplicable = Rating.Status.SCORED.value, Rating.Status.NOT_APPLICABLE.value
T = TypeVar("T")
Before = abc.Mapping[tuple[str, int, int], float | None]
"""Scores by rater, item and criterion."""
_NAME, _RATER, _EVIDENCE = itemgetter(0), itemgetter(1), itemgetter(-1)  # of a row: its item, who rated it, its spans


@dataclass(slots=True)
class RatingsReport:
    """Counts of rows: ``given = stored + not_applicable + collapsed + missing`` plus the refused rows.

    ``off_scale`` counts the refused scores that are not on their criterion's scale, by column.
    """

    given: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    missing: int = 0
    raters: list[str] = field(default_factory=list)
    off_scale: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class RatingFit:
    """The result of the check. The rows to store, plain `FittedRating`s, are in partitions by item and rater.
    ``has_evidence``: at least one rating has spans."""

    rows: PartitionedRows
    report: RatingsReport
    has_evidence: bool = False
    problems: Problems = field(default_factory=Problems)


class FittedRating(NamedTuple):
    """A rating to store: `item` and `criterion` are primary keys, `evidence` its spans as JSON."""

    item: int
    rater: str
    criterion: int
    status: str
    score: float | None
    rationale: str
    seconds: float | None
    evidence: str


def fit_ratings(
    *,
    dataset: Dataset,
    rubric_version: RubricVersion,
    campaign: Campaign | None,
    rows: Collection[RatingRow],
    progress: ShareProgress | None = None,
) -> RatingFit:
    """Check ratings against the items, the scales, and the existing ratings of the campaign if there is one."""
    fit = RatingFit(partitions(rows), RatingsReport(given=len(rows)))
    items, scales, stored = Items(dataset), Scales(rubric_version), _Stored(campaign)
    raters: set[str] = set()
    for some in chunks(cast("Collection[PlainRow]", rows), TOGETHER, progress, plain=True):
        items_by_name = items.named(names := set(map(_NAME, some)))
        before = stored.on({items_by_name[name].pk for name in names if name in items_by_name})
        fitting = _fitting(_with_spans(some, fit, items), fit, items, scales, before)
        raters.update(map(_RATER, fitting))
        if len(raters) > MOST_RATERS:
            first = RatingRow._make(some[0])
            expected = Words("at most %(number)s: is this the column that says who rated?", number=f"{MOST_RATERS:,}")
            fit.problems.add(Problem(first.file, first.line, "rater", Words("too many raters"), expected, "raters"))
            break
        fit.rows.extend(fitting)
    fit.report.raters = sorted(raters)
    return fit


def partitions(rows: Collection[Any]) -> PartitionedRows:
    """Partitions of these checked rows, by their first two columns."""
    return PartitionedRows(itemgetter(0, 1), len(rows), rows.weight if isinstance(rows, Spool) else 0)


def chunks(
    rows: Collection[T], size: int, progress: ShareProgress | None = None, *, plain: bool = False
) -> Iterator[list[T]]:
    """The rows (``plain``: as plain tuples) in lists of ``size``; ``progress`` is called with the share done."""
    tell, done = progress_between(progress, 0, 1), 0
    source: Iterator[Any] = rows.plain() if plain and isinstance(rows, Spool) else iter(rows)
    while chunk := list(islice(source, size)):
        yield chunk
        done += len(chunk)
        tell(done / len(rows))


class ItemKey(NamedTuple):
    pk: int
    generator: str


class Items:
    """A dataset's items by external id, with a cache of bounded size."""

    def __init__(self, dataset: Dataset) -> None:
        self._items = Item.objects.of(dataset).order_by()
        self._known: dict[str, ItemKey] = {}

    def named(self, names: set[str]) -> abc.Mapping[str, ItemKey]:
        """The items with these names that exist; the result may have further items."""
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        if asked := names.difference(self._known):
            rows = self._items.filter(external_id__in=spellings_of(asked)).values_list("external_id", "pk", "generator")
            self._known.update((normal_identifier(name), ItemKey(pk, generator)) for name, pk, generator in rows)
        return self._known

    def texts(self, names: set[str]) -> dict[str, dict[int | str, str]]:
        """The texts in which spans may be, for each existing item with one of these names."""
        rows = self._items.filter(external_id__in=spellings_of(names)).values_list("external_id", "turns", "fields")
        return {normal_identifier(name): item_texts(turns, fields) for name, turns, fields in rows}

    def known(self, name: str) -> ItemKey | None:
        """The item with this name, which an earlier call of `named` has looked up."""
        return self._known.get(name)

    def expected(self, name: str) -> str:
        """The expected value in the problem of an item that the dataset does not have."""
        return did_you_mean(self._alike.get(loose_key(name), ""), Words("the id of an item in the dataset"))

    @cached_property
    def _alike(self) -> dict[str, str]:
        """The ids of the first items by their `loose_key`, which is equal for ids that probably mean the same item."""
        ids = self._items.order_by("pk").values_list("external_id", flat=True)[:MOST_REMEMBERED]
        return {loose_key(external_id): external_id for external_id in ids.iterator(TOGETHER)}


class _Stored:
    """The scores that a campaign has already.

    Each table is queried alone: right after a load, the database's planner assumes that full tables are empty, and
    would join them by comparing every row with every other row.
    """

    def __init__(self, campaign: Campaign | None) -> None:
        self._current = Annotation.objects.filter(campaign=campaign, superseded_at=None)
        self._is_empty = campaign is None or not self._current.exists()

    def on(self, items: set[int]) -> Before:
        """The scores on some items, by (rater, item, criterion)."""
        if self._is_empty:
            return {}
        kept = list(self._current.filter(item__in=items).values_list("pk", "annotator_id", "item_id"))
        raters = Annotator.objects.filter(pk__in={annotator for _, annotator, _ in kept})
        called = dict(raters.values_list("pk", "pseudonym"))
        places = {pk: (normal_identifier(called[annotator]), item) for pk, annotator, item in kept}
        return {(*places[pk], criterion): score for pk, criterion, score in self._scores(list(places))}

    def _scores(self, annotations: list[int]) -> Iterator[tuple[int, int, float | None]]:
        for start in range(0, len(annotations), TOGETHER):
            some = annotations[start : start + TOGETHER]
            yield from Rating.objects.filter(annotation__in=some).values_list("annotation_id", "criterion_id", "score")


class Asked(NamedTuple):
    """The rule that checks an answer against its scale."""

    criterion: str
    score: float | None
    applicable: bool
    scale_max: float | None
    column: str


class Scales:
    """The criteria of a rubric version, and a check of answers on them; the result for equal answers is cached."""

    def __init__(self, rubric_version: RubricVersion) -> None:
        self.criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()}
        self._faults: dict[Asked, tuple[str, str, str, str] | None] = {}

    def fault(self, asked: Asked) -> tuple[str, str, str, str] | None:
        """What is wrong with an answer: column, actual value, expected value, code."""
        if asked not in self._faults:
            if len(self._faults) > MOST_REMEMBERED:
                self._faults.clear()
            self._faults[asked] = self._found(asked)
        return self._faults[asked]

    def _found(self, row: Asked) -> tuple[str, str, str, str] | None:
        criterion = self.criteria.get(row.criterion)
        if criterion is None:
            return "criterion", excerpt(row.criterion), one_of(row.criterion, self.criteria), "unknown_criterion"
        if row.scale_max is not None and row.scale_max != criterion.maximum:
            expected = Words(
                "%(score)s, where the rubric's scale of %(criterion)s ends",
                score=f"{criterion.maximum:g}",
                criterion=criterion.key,
            )
            return "scale_max", Words("a scale up to %(number)s", number=f"{row.scale_max:g}"), expected, "other_scale"
        if not row.applicable and not criterion.not_applicable:
            return (
                row.column,
                Words("N/A"),
                Words("a score: %(criterion)s allows no N/A", criterion=criterion.key),
                "na_not_allowed",
            )
        if row.score is not None and not criterion.is_on_scale(row.score):
            return (
                row.column,
                f"{row.score:g}",
                Words("a score on the scale %(scale)s", scale=scale_words(criterion)),
                "off_scale",
            )
        return None


def one_of(name: str, criteria: Iterable[str]) -> str:
    """The expected value in the problem of a criterion that the rubric does not have."""
    keys = list(criteria)
    expected = Words("one of the rubric's criteria: %(names)s", names=", ".join(keys))
    return did_you_mean(nearest_name(name, keys), expected)


def scale_words(criterion: Criterion) -> str:
    """The scale as people write it: ``0, 1, 2, 3`` or ``0 to 100 in steps of 1``."""
    if criterion.points:
        return ", ".join(f"{value:g}" for value in criterion.values)
    low, high = f"{criterion.minimum:g}", f"{criterion.maximum:g}"
    if criterion.step:
        return Words("%(low)s to %(high)s in steps of %(step)s", low=low, high=high, step=f"{criterion.step:g}")
    return Words("%(low)s to %(high)s", low=low, high=high)


def _fitting(some: Sequence[PlainRow], fit: RatingFit, items: Items, scales: Scales, before: Before) -> list[PlainRow]:
    """The rows to store: checked column by column if possible, else row by row."""
    together = _fitted_together(some, fit, items, scales, before)
    if together is not None:
        return together
    rows = map(RatingRow._make, some)
    return [plain for row in rows if (plain := _fitted(row, fit, items, scales, before))]


def _with_spans(some: list[PlainRow], fit: RatingFit, items: Items) -> list[PlainRow]:
    """The rows with the positions of their spans in the items' texts; rows with a span in no text are refused."""
    if not any(map(_EVIDENCE, some)):
        return some
    fit.has_evidence = True
    texts = items.texts({_NAME(row) for row in some if _EVIDENCE(row)})
    found = []
    for row in some:
        try:
            own = texts.get(_NAME(row)) if _EVIDENCE(row) else None
            spans = spans_as_json(located_span(span, own) for span in as_spans(_EVIDENCE(row))) if own else ""
            found.append((*row[:-1], spans))
        except InvalidValue as fault:
            place = RatingRow._make(row)
            fit.problems.refuse(fault.at(place.file, place.line, "evidence"))
    return found


def _fitted_together(
    some: Sequence[PlainRow], fit: RatingFit, items: Items, scales: Scales, before: Before
) -> list[PlainRow] | None:
    """The result of `_fitted` for all rows, computed a column at a time; repeated values are checked once. None, with
    nothing counted, if a row is refused or is stored already."""
    if not some:
        return []
    given = dict(zip(RatingRow._fields, zip(*some, strict=True), strict=True))
    names, raters, applicable, missing = (given[name] for name in ("item", "rater", "applicable", "missing"))
    known = {name: items.known(name) for name in set(names)}
    pks = {name: item.pk for name, item in known.items() if item is not None}
    asked = map(Asked._make, set(zip(*(given[name] for name in Asked._fields), strict=True)))
    if len(pks) < len(known) or any(map(scales.fault, asked)) or len(max(raters, key=len)) > LONGEST_RATER:
        return None
    keys = {name: criterion.pk for name, criterion in scales.criteria.items()}
    places = [list(map(pks.__getitem__, names)), list(map(keys.__getitem__, given["criterion"]))]
    if before and not before.keys().isdisjoint(zip(raters, *places, strict=True)):
        return None
    fitted: dict[str, Sequence[Any]] = given | {"item": places[0], "criterion": places[1]}
    fitted["status"] = list(map((NotApplicable, Scored).__getitem__, applicable))
    rows = zip(*(fitted[name] for name in FittedRating._fields), strict=True)
    fitting = [row for row, is_missing in zip(rows, missing, strict=True) if not is_missing]
    fit.report.missing += len(some) - len(fitting)
    fit.report.not_applicable += applicable.count(False)
    fit.report.stored += len(fitting) - applicable.count(False)
    return fitting


def _fitted(
    row: RatingRow,
    fit: RatingFit,
    items: Items,
    scales: Scales,
    before: Before,
) -> PlainRow | None:
    """The row to store; None if it is refused, stored already or blank; these cases are counted."""
    if (fault := _fault(row, items, scales)) is not None:
        column, actual, expected, code = fault
        fit.problems.refuse(Problem(row.file, row.line, column, actual, expected, code))
        fit.report.off_scale[column] += code == "off_scale"
        return None
    if row.missing or (item := items.known(row.item)) is None:
        fit.report.missing += 1
        return None
    criterion = scales.criteria[row.criterion].pk
    if before and (key := (row.rater, item.pk, criterion)) in before:
        _meet(row, fit, before[key])
        return None
    fit.report.stored += row.applicable
    fit.report.not_applicable += not row.applicable
    status = Scored if row.applicable else NotApplicable
    fitted = FittedRating(
        item=item.pk,
        rater=row.rater,
        criterion=criterion,
        status=status,
        score=row.score,
        rationale=row.rationale,
        seconds=row.seconds,
        evidence=row.evidence,
    )
    return tuple(fitted)


def _fault(row: RatingRow, items: Items, scales: Scales) -> tuple[str, str, str, str] | None:
    if items.known(row.item) is None:
        return "item", excerpt(row.item), items.expected(row.item), "unknown_item"
    if len(row.rater) > LONGEST_RATER:
        return (
            "rater",
            Words("a name of %(number)s characters", number=len(row.rater)),
            Words("at most %(number)s characters", number=LONGEST_RATER),
            "too_long",
        )
    return scales.fault(Asked(row.criterion, row.score, row.applicable, row.scale_max, row.column))


def _meet(row: RatingRow, fit: RatingFit, before: float | None) -> None:
    """Compare a rating with the earlier rating of the same rater."""
    if row.score == before:
        fit.report.collapsed += 1
        return
    actual, expected = (
        Words("the score %(score)s", score=_score_in_words(row.score)),
        Words("%(score)s, which this rater gave before", score=_score_in_words(before)),
    )
    fit.problems.refuse(Problem(row.file, row.line, row.column, actual, expected, "conflict"))


def _score_in_words(score: float | None) -> str:
    return "N/A" if score is None else f"{score:g}"


# Imported ratings as rows: an annotation for each rater on each item, and its ratings.

ANNOTATION = ("id", "campaign_id", "item_id", "annotator_id", "file_import_id", "revision", "seconds", "submitted_at")
RATING = ("annotation_id", "criterion_id", "status", "score", "rationale")


def write_ratings(
    *,
    campaign: Campaign,
    file_import: Import,
    rows: PartitionedRows,
    raters: Collection[str],
    identified: bool,
    has_evidence: bool,
    progress: ShareProgress | None = None,
) -> None:
    """Insert checked ratings in the caller's transaction, partition by partition."""
    people = _annotators(campaign, raters, identified)
    with bulk.Load() as load:
        for partition in rows.with_progress(progress):
            _write_partition(load, campaign.pk, file_import.pk, partition, people, has_evidence)


def _write_partition(
    load: bulk.Load,
    campaign: int,
    file_import: int,
    partition: list[PlainRow],
    people: dict[str, int],
    has_evidence: bool,
) -> None:
    given = dict(zip(FittedRating._fields, zip(*partition, strict=True), strict=True))
    pairs = list(zip(given["item"], given["rater"], strict=True))
    taken = dict(zip(pairs, given["seconds"], strict=True))
    numbers = dict(zip(taken, bulk.reserve_keys(Annotation, len(taken)), strict=True))
    now = timezone.now()
    load.insert(
        Annotation,
        ANNOTATION,
        [
            (number, campaign, item, people[rater], file_import, 1, taken[item, rater], now)
            for (item, rater), number in numbers.items()
        ],
    )
    answers = (given[name] for name in ("criterion", "status", "score", "rationale"))
    ratings = list(zip(map(numbers.__getitem__, pairs), *answers, strict=True))
    if not has_evidence:
        load.insert(Rating, RATING, ratings)
        return
    keys = bulk.reserve_keys(Rating, len(ratings))
    load.insert(Rating, ("id", *RATING), [(key, *rating) for key, rating in zip(keys, ratings, strict=True)])
    marked = [(key, *span) for key, own in zip(keys, given["evidence"], strict=True) for span in as_spans(own)]
    load.insert(EvidenceSpan, ("rating_id", *PARTS), marked)


def _annotators(campaign: Campaign, names: Collection[str], identified: bool) -> dict[str, int]:
    """Annotator primary keys by pseudonym; missing annotators are created."""
    project = campaign.project
    there_are = Annotator.objects.filter(project=project).values_list("pseudonym", "pk")
    known = {normal_identifier(name) for name, _pk in there_are.iterator()}
    Annotator.objects.bulk_create(
        [Annotator(project=project, pseudonym=name, identified=identified) for name in names if name not in known],
        ignore_conflicts=True,
        batch_size=5_000,
    )
    wanted = set(names)
    called = ((normal_identifier(name), pk) for name, pk in there_are.iterator())
    return {name: pk for name, pk in called if name in wanted}
