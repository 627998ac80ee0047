"""Other people's ratings, held against items, scales and what a campaign has already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from annotation.formats.nearness import hint, loosely, nearest
from annotation.formats.problems import Problem, Problems, excerpt
from annotation.formats.progress import Told, between
from annotation.formats.ratings import RatingRow
from annotation.formats.shelves import Shelves
from annotation.formats.spool import Plain, Spool
from annotation.models import Annotation, Annotator, Campaign, Criterion, Dataset, Item, Rating, RubricVersion

LONGEST_RATER = 80
MOST_RATERS = 50_000
TOGETHER = 5_000  # rows that are looked up at once
MOST_REMEMBERED = 100_000  # items
Scored, NotApplicable = Rating.Status.SCORED.value, Rating.Status.NOT_APPLICABLE.value
T = TypeVar("T")


@dataclass(slots=True)
class RatingsReport:
    """What became of the rows: ``given = stored + not_applicable + collapsed + missing`` and those refused.

    ``off_scale`` counts, of those refused, the scores that their criterion's scale has not got, by column.
    """

    given: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    missing: int = 0
    raters: list[str] = field(default_factory=list)
    off_scale: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Fit:
    """What becomes of each row. Those to be stored are on shelves by item and rater: ``(item, rater, criterion, status,
    score, rationale, seconds)``, item and criterion by primary key."""

    rows: Shelves
    report: RatingsReport
    problems: Problems = field(default_factory=Problems)


def fit_ratings(
    *,
    dataset: Dataset,
    rubric_version: RubricVersion,
    campaign: Campaign | None,
    rows: Collection[RatingRow],
    told: Told | None = None,
) -> Fit:
    """Hold ratings against the items, the scales and what the campaign, where there is one, has already."""
    fit = Fit(shelves(rows), RatingsReport(given=len(rows)))
    items, scales, stored = Items(dataset), Scales(rubric_version), _Stored(campaign)
    raters: set[str] = set()
    for some in chunks(rows, TOGETHER, told):
        found = items.named({row.item for row in some})
        before = stored.on({found[row.item].pk for row in some if row.item in found})
        fitting = [plain for row in some if (plain := _fitted(row, fit, items, scales, before))]
        raters.update(row[1] for row in fitting)
        if len(raters) > MOST_RATERS:
            expected = f"at most {MOST_RATERS:,}: is this the column that says who rated?"
            fit.problems.add(Problem(some[0].file, some[0].line, "rater", "too many raters", expected, "raters"))
            break
        fit.rows.extend(fitting)
    fit.report.raters = sorted(raters)
    return fit


def shelves(rows: Collection[Any]) -> Shelves:
    """Shelves for what becomes of these rows, put together by their first two columns."""
    return Shelves(itemgetter(0, 1), len(rows), rows.weight if isinstance(rows, Spool) else 0)


def chunks(rows: Collection[T], size: int, told: Told | None = None) -> Iterator[list[T]]:
    """The rows, so many at a time; ``told`` hears which share of them has been seen to."""
    tell, source, done = between(told, 0, 1), iter(rows), 0
    while chunk := list(islice(source, size)):
        yield chunk
        done += len(chunk)
        tell(done / len(rows))


class ItemKey(NamedTuple):
    pk: int
    generator: str


class Items:
    """A dataset's items by external id; a bounded number of them is remembered."""

    def __init__(self, dataset: Dataset) -> None:
        self._items = Item.objects.of(dataset).order_by()
        self._known: dict[str, ItemKey] = {}

    def named(self, names: set[str]) -> Mapping[str, ItemKey]:
        """At least those of these names that there are."""
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        if asked := names.difference(self._known):
            found = self._items.filter(external_id__in=asked).values_list("external_id", "pk", "generator")
            self._known.update((name, ItemKey(pk, generator)) for name, pk, generator in found)
        return self._known

    def known(self, name: str) -> ItemKey | None:
        """The item of that name, which has been asked for among others."""
        return self._known.get(name)

    def expected(self, name: str) -> str:
        """What is expected where a file names an item that the dataset has not got."""
        return f"{hint(self._alike.get(loosely(name), ''))}the id of an item in the dataset"

    @cached_property
    def _alike(self) -> dict[str, str]:
        """The ids of the first many items by what ids that mean the same have in common."""
        ids = self._items.order_by("pk").values_list("external_id", flat=True)[:MOST_REMEMBERED]
        return {loosely(each): each for each in ids.iterator(TOGETHER)}


class _Stored:
    """The scores that a campaign has already.

    Asked for table by table: right after a load the planner takes full tables for empty ones, and would join them by
    comparing every row with every other.
    """

    def __init__(self, campaign: Campaign | None) -> None:
        self._current = Annotation.objects.filter(campaign=campaign, superseded_at=None)
        self._is_empty = campaign is None or not self._current.exists()

    def on(self, items: set[int]) -> dict[tuple[str, int, int], float | None]:
        """Those on some items, by (rater, item, criterion)."""
        if self._is_empty:
            return {}
        kept = list(self._current.filter(item__in=items).values_list("pk", "annotator_id", "item_id"))
        raters = Annotator.objects.filter(pk__in={annotator for _, annotator, _ in kept})
        called = dict(raters.values_list("pk", "pseudonym"))
        places = {pk: (called[annotator], item) for pk, annotator, item in kept}
        return {(*places[pk], criterion): score for pk, criterion, score in self._scores(list(places))}

    def _scores(self, annotations: list[int]) -> Iterator[tuple[int, int, float | None]]:
        for start in range(0, len(annotations), TOGETHER):
            some = annotations[start : start + TOGETHER]
            yield from Rating.objects.filter(annotation__in=some).values_list("annotation_id", "criterion_id", "score")


class Scales:
    """The criteria of a rubric version, and whether an answer on one of them is good; asked once for each answer."""

    def __init__(self, rubric_version: RubricVersion) -> None:
        self.criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()}
        self._faults: dict[tuple[Any, ...], tuple[str, str, str, str] | None] = {}

    def fault(self, row: RatingRow) -> tuple[str, str, str, str] | None:
        """What is wrong with an answer: column, found, expected, code."""
        asked = (row.criterion, row.score, row.applicable, row.scale_max, row.column)
        if asked not in self._faults:
            if len(self._faults) > MOST_REMEMBERED:
                self._faults.clear()
            self._faults[asked] = self._found(row)
        return self._faults[asked]

    def _found(self, row: RatingRow) -> tuple[str, str, str, str] | None:
        criterion = self.criteria.get(row.criterion)
        if criterion is None:
            return "criterion", excerpt(row.criterion), one_of(row.criterion, self.criteria), "unknown_criterion"
        if row.scale_max is not None and row.scale_max != criterion.maximum:
            expected = f"{criterion.maximum:g}, where the rubric's scale of {criterion.key} ends"
            return "scale_max", f"a scale up to {row.scale_max:g}", expected, "other_scale"
        if not row.applicable and not criterion.not_applicable:
            return row.column, "N/A", f"a score: {criterion.key} allows no N/A", "na_not_allowed"
        if row.score is not None and not criterion.is_on_scale(row.score):
            return row.column, f"{row.score:g}", f"a score on the scale {scale_words(criterion)}", "off_scale"
        return None


def one_of(name: str, criteria: Iterable[str]) -> str:
    """What is expected where a file names a criterion that the rubric has not got."""
    keys = list(criteria)
    return f"{hint(nearest(name, keys))}one of the rubric's criteria: {', '.join(keys)}"


def scale_words(criterion: Criterion) -> str:
    """The scale as people write it: ``0, 1, 2, 3`` or ``0 to 100``."""
    if criterion.points:
        return ", ".join(f"{value:g}" for value in criterion.values)
    return f"{criterion.minimum:g} to {criterion.maximum:g}"


def _fitted(
    row: RatingRow,
    fit: Fit,
    items: Items,
    scales: Scales,
    before: Mapping[tuple[str, int, int], float | None],
) -> Plain | None:
    """The row as it is to be stored; None when it is refused, there already, or says nothing, which is counted."""
    if (fault := _fault(row, items, scales)) is not None:
        column, found, expected, code = fault
        fit.problems.refuse(Problem(row.file, row.line, column, found, expected, code))
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
    return item.pk, row.rater, criterion, status, row.score, row.rationale, row.seconds


def _fault(row: RatingRow, items: Items, scales: Scales) -> tuple[str, str, str, str] | None:
    if items.known(row.item) is None:
        return "item", excerpt(row.item), items.expected(row.item), "unknown_item"
    if len(row.rater) > LONGEST_RATER:
        return "rater", f"a name of {len(row.rater)} characters", f"at most {LONGEST_RATER} characters", "too_long"
    return scales.fault(row)


def _meet(row: RatingRow, fit: Fit, before: float | None) -> None:
    """Hold a rating against the one that the same rater gave before."""
    if row.score == before:
        fit.report.collapsed += 1
        return
    found, expected = f"the score {_said(row.score)}", f"{_said(before)}, which this rater gave before"
    fit.problems.refuse(Problem(row.file, row.line, row.column, found, expected, "conflict"))


def _said(score: float | None) -> str:
    return "N/A" if score is None else f"{score:g}"
