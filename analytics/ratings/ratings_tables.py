"""The only reader of the database for numbers: ratings and verdicts as one ratings table (METHODS 0).

Training and exam never enter it; a superseded annotation does not either. A verdict off the scale keeps its number and
says so in `missing_reason`: the statistics count it and let it enter no mean. The rows are those of the exports of
ratings and of verdicts (`exporting.combined_rows`) in their order, under the table's own names. They are read as
numbers and put in order without a loop over them and without pandas, so that a web process can stream them: a rating is
five numbers, a verdict eight; names, scales, panels and probabilities come from the small tables that these refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, models
from django.db.models import Case, IntegerField, Q, Value, When
from django.db.models.functions import Length

from analytics.ratings.item_attributes import ItemAttributes
from analytics.ratings.raters import newest_runs, rater_names, ratings_condition
from analytics.ratings.rating_rows import COLUMNS, Row
from annotation.exports import SelectionsByDuty, consistent, dataset_versions, on_scales, pseudonyms
from annotation.models import Annotation, Annotator, Campaign, Dataset, Duty, Item, Rating, RubricVersion, SelectedItem
from annotation.whole_item import WHOLE_ITEM_COLUMNS
from annotation.writers.coded_rows import CodedColumn, CodedRows, combined_codes
from annotation.writers.tables import Table, nested
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Numbers = dict[str, NDArray[Any]]


def table(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
    more: Q | None = None,
    names: Mapping[int, str] | None = None,
) -> Table:
    """The ratings table in a stable order, as `CodedRows`: COLUMNS, then a column for each attribute.

    `runs` defaults to one run of each judge (`newest_runs`), and brings along those that they continue; `raters` names
    the annotators wanted, none of them meaning all. `blind_only` leaves out ratings by people who could see verdicts;
    ratings of which nobody knows whether they could stay. `more` is a further condition on ratings.
    `names`: what `rater_names` gives for the runs, where the caller knows it.
    """
    heads = list(newest_runs(campaign) if runs is None else runs)
    only = more or Q()
    if raters or blind_only:
        only &= ratings_condition(raters, blind_only=blind_only)
    names = rater_names(campaign, heads) if names is None else names
    with consistent():
        found = _CodedScores(campaign, only=only, runs=whole_run(heads), names=names).columns()
        attributes = ItemAttributes(campaign.dataset)
    item = found["item"]
    own = [attributes.of(name) for name in item.values]
    more_columns = [CodedColumn(item.codes, [row[place] for row in own]) for place in range(len(attributes.keys))]
    rows = CodedRows([*(found[name] for name in Row._fields), *more_columns])
    return Table(f"{campaign.name} ratings", (*COLUMNS, *attributes.columns), rows)


def rows(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> Iterator[Row]:
    """The rows of `table` without attributes."""
    found = table(campaign=campaign, runs=runs, raters=raters, blind_only=blind_only)
    return (Row(*row[: len(COLUMNS)]) for row in found.rows)


def load(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> pd.DataFrame:
    """The table as a DataFrame."""
    return frame(table(campaign=campaign, runs=runs, raters=raters, blind_only=blind_only))


def frame(found: Table, only: Collection[str] | None = None) -> pd.DataFrame:
    """A ratings table, or ``only`` some of its columns, as a DataFrame: missing scores are NaN, a scale is JSON."""
    import pandas as pd

    columns: dict[str, Any] = {}
    rows = None if isinstance(found.rows, CodedRows) else list(found.rows)
    for place, name in enumerate(found.names):
        if only is None or name in only:
            if isinstance(found.rows, CodedRows):  # each value is converted once
                column = found.rows.columns[place]
                values = list(map(nested, column.values)) if name == "scale" else column.values
                columns[name] = pd.Series(values, dtype=None if len(values) else object).array.take(column.codes)
            else:
                given = [row[place] for row in rows or ()]
                columns[name] = list(map(nested, given)) if name == "scale" else given
    return pd.DataFrame(columns).astype({name: kind for name, kind in FRAME_KINDS.items() if name in columns})


FRAME_KINDS = {
    **dict.fromkeys(("rater_identified", "applicable"), bool),
    **dict.fromkeys(("score", "inclusion_prob", "weight", "seconds"), float),
    **dict.fromkeys(("repeat", "rationale_length"), int),
    "scale": object,
}
"""The types of columns of a DataFrame, where pandas would choose by the values."""


# --- reading ---------------------------------------------------------------------------------------------------------
STATUSES = tuple(dict.fromkeys([*Rating.Status.values, *Verdict.Status.values]))
WITHOUT_REASON = ("scored", "ok", "na")
"""Statuses of a score, and of a criterion that is not applicable: `missing_reason` names every other status."""


class _CodedScores:
    """The scores of a campaign's annotators (those that ``only`` lets through) and of some judge runs. ``names``: the
    judges' by run.
    """

    def __init__(self, campaign: Campaign, *, only: Q, runs: Collection[JudgeRun], names: Mapping[int, str]) -> None:
        self._campaign, self._runs, self._names = campaign, sorted(runs, key=lambda run: run.pk), names
        read = ("pk", "external_id", "language", "generator", "scenario", "dataset")
        self._items = list(Item.objects.of(campaign.dataset).values_list(*read))
        versions = {campaign.rubric_version_id, *(run.rubric_version_id for run in runs)}
        self._criteria = on_scales(versions)
        self._annotations = self._read_annotations()
        self._order(self._people(only), self._judges())

    # --- reading -----------------------------------------------------------------------------------------------------
    def _read_annotations(self) -> Numbers:
        """The annotations that count, by primary key."""
        here = Annotation.objects.filter(campaign=self._campaign, superseded_at=None)
        names = ("pk", "item", "annotator", "assignment__duty", "seconds", "blind", *WHOLE_ITEM_COLUMNS)
        kinds: Any = dict.fromkeys(("id", "item", "person", "duty"), int) | {"seconds": float, "blind": bool}
        found = _read_numbers(here.values_list(*names), **kinds, **dict.fromkeys(WHOLE_ITEM_COLUMNS, int))
        order = found["id"].argsort()
        return {name: values[order] for name, values in found.items()}

    def _people(self, only: Q) -> Numbers:
        rows = Rating.objects.filter(only, annotation__campaign=self._campaign, annotation__superseded_at=None)
        read = ("annotation", "criterion", _status(Rating), "score", Length("rationale"), "given_version")
        kinds: Any = {"annotation": int, "criterion": int, "status": int, "score": float, "written": int, "given": int}
        found = _read_numbers(rows.values_list(*read), **kinds)
        known = self._annotations["id"]
        source = known.searchsorted(found["annotation"])
        if not (is_there := _at(known, source) == found["annotation"]).all():  # on SQLite one came or went meanwhile
            source, found = source[is_there], {name: values[is_there] for name, values in found.items()}
        return {**found, "source": source, "item": self._annotations["item"][source], "repeat": source * 0}

    def _judges(self) -> Numbers:
        import numpy as np

        keys = [run.pk for run in self._runs]
        rows = Verdict.objects.filter(run__in=keys)
        read = ("run", "item", "criterion", "repeat", _status(Verdict), "score", "applicable", Length("rationale"))
        kinds: Any = dict.fromkeys(("run", "item", "criterion", "repeat", "status"), int) | {"score": float}
        found = _read_numbers(rows.values_list(*read), **kinds, applicable=bool, written=int)
        is_na = (found["status"] == STATUSES.index("ok")) & (found["applicable"] == 0)
        found["status"][is_na] = STATUSES.index("na")
        source = np.array(keys, dtype=np.int64).searchsorted(found["run"]) + len(self._annotations["id"])
        # Repeats count from 0 in files, as our importer reads them.
        return {**found, "source": source, "repeat": found["repeat"] - 1, "given": source * 0 - 1}

    def _order(self, people: Numbers, judges: Numbers) -> None:
        """By item and criterion; people first, by annotation; then judges, by run and repeat."""
        import numpy as np

        every = {name: np.concatenate([people[name], judges[name]]) for name in people if name in judges}
        shown = (scale for scale in self._criteria.values() if scale.version == self._campaign.rubric_version_id)
        in_order = sorted(shown, key=attrgetter("position"))
        positions = {scale.key: place for place, scale in enumerate(in_order)}
        places = np.array([positions[scale.key] for scale in self._criteria.values()], dtype=np.int64)
        item = _places([item[0] for item in self._items], every["item"])
        criterion = _places([*self._criteria], every["criterion"])
        key = item * max(len(positions), 1) + (places[criterion] if len(places) else criterion)
        key = key * (len(self._annotations["id"]) + len(self._runs) + 1) + every["source"]
        order = np.lexsort((every["repeat"], key)) if every["repeat"].any() else key.argsort(kind="stable")
        self._item, self._criterion = item[order], criterion[order]
        names = ("source", "status", "score", "repeat", "written")
        self._source, self._status, self._score, self._repeat, self._written = (every[name][order] for name in names)
        self._given = every["given"][order]

    # --- what rows share ---------------------------------------------------------------------------------------------
    def _shared(self) -> dict[str, CodedColumn]:
        """What all ratings of an annotation, or all verdicts of a run, share: the values of every row, by column."""
        import numpy as np

        campaign, found, version = self._campaign, self._annotations, self._campaign.rubric_version.number
        versions = JudgeRun.objects.filter(pk__in=[run.pk for run in self._runs])
        of_run = dict(versions.values_list("pk", "rubric_version__number"))
        names = pseudonyms(campaign.project)
        identified = dict(Annotator.objects.filter(project=campaign.project_id).values_list("pk", "identified"))
        rows = Duty.objects.filter(campaign=campaign).values_list("pk", "name", "panel__name")
        duties = {pk: (name or None, panel or None) for pk, name, panel in rows}
        number_of_runs = np.arange(len(self._runs))

        def column(key: str, of_annotation: Callable[[Any], Any], of_runs: Sequence[Any]) -> CodedColumn:
            codes, keys = _distinct_numbers(found[key])
            values = [*map(of_annotation, keys), *of_runs]
            return CodedColumn(np.concatenate([codes, len(keys) + number_of_runs])[self._source], values).distinct()

        nobody: list[None] = [None] * len(self._runs)
        return {
            "rater": column("person", names.__getitem__, [self._names[run.pk] for run in self._runs]),
            "kind": column("person", lambda _person: "annotator", ["judge"] * len(self._runs)),
            "identified": column("person", identified.__getitem__, [True] * len(self._runs)),
            "panel": column("duty", lambda duty: duties.get(duty, (None, None))[1], nobody),
            "duty": column("duty", lambda duty: duties.get(duty, (None, None))[0], nobody),
            "blind": column("blind", _BLIND.__getitem__, nobody),
            "seconds": column("seconds", lambda seconds: None if seconds != seconds else seconds, nobody),
            **{name: column(name, lambda said: None if said < 0 else said, nobody) for name in WHOLE_ITEM_COLUMNS},
            "rubric_version": column("person", lambda _person: version, [of_run[run.pk] for run in self._runs]),
        }

    def _drawn(self) -> NDArray[np.float64]:
        """With which probability the item of each annotation was drawn into its duty; 1 for every run."""
        import numpy as np

        found = self._annotations
        drawn = SelectionsByDuty(np.unique(found["duty"][found["duty"] >= 0]).tolist())
        pairs = zip(found["duty"].tolist(), found["item"].tolist(), strict=True)
        of_annotations = [drawn.of(None if duty < 0 else duty, item).probability for duty, item in pairs]
        return np.array([*of_annotations, *[1.0] * len(self._runs)], dtype=np.float64)

    # --- columns -----------------------------------------------------------------------------------------------------
    def columns(self) -> dict[str, CodedColumn]:
        """The columns of a ratings table by name (`rating_rows.Row`), without attributes."""
        _pks, externals, languages, generators, scenarios, datasets = list(zip(*self._items, strict=True)) or [()] * 6
        studies = dataset_versions(Dataset.objects.parts_of(self._campaign.dataset))
        scales = list(self._criteria.values())
        of = self._shared()
        codes, values = _distinct_numbers(self._score)
        scores = CodedColumn(codes, [None if value != value else value for value in values])
        of_criterion, pairs = combined_codes(self._criterion, codes, len(values))
        labels = [scales[criterion].labels.get(scores.values[score], "") for criterion, score in pairs]
        probability = self._probability()
        return {
            "item": self._of_item(externals),
            "cluster": self._of_item([scenario or item for scenario, item in zip(scenarios, externals, strict=True)]),
            "criterion": CodedColumn(self._criterion, [scale.key for scale in scales]),
            "rater": of["rater"],
            "rater_kind": of["kind"],
            "rater_identified": of["identified"],
            "panel": of["panel"],
            "language": self._of_item(languages),
            "generator": self._of_item([generator or None for generator in generators]),
            "score": scores,
            "applicable": CodedColumn(self._status, [status != "na" for status in STATUSES]),
            "missing_reason": CodedColumn(
                self._status, [None if status in WITHOUT_REASON else status for status in STATUSES]
            ),
            "repeat": CodedColumn(*_distinct_numbers(self._repeat)),
            "inclusion_prob": probability,
            "weight": probability._replace(values=[1 / value for value in probability.values]),
            "blind": of["blind"],
            "level": CodedColumn(self._criterion, [scale.level for scale in scales]),
            "scale": CodedColumn(self._criterion, [scale.scale for scale in scales]),
            "score_label": CodedColumn(of_criterion, labels),
            "scenario": self._of_item([scenario or None for scenario in scenarios]),
            "dataset": self._of_item([studies[dataset][0] for dataset in datasets]),
            "dataset_version": self._of_item([studies[dataset][1] for dataset in datasets]),
            "rubric_version": self._version(of["rubric_version"]),
            "duty": of["duty"],
            "seconds": of["seconds"],
            "rationale_length": CodedColumn(*_distinct_numbers(self._written)),
            **{name: of[name] for name in WHOLE_ITEM_COLUMNS},
        }

    def _version(self, of_source: CodedColumn) -> CodedColumn:
        """The version of the rubric that each row was given under: an earlier one where a rating was kept or mapped."""
        earlier = self._given >= 0
        if not earlier.any():
            return of_source
        import numpy as np

        numbers = np.array(of_source.values, dtype=np.int64)[of_source.codes]
        known = dict(RubricVersion.objects.in_bulk(np.unique(self._given[earlier]).tolist()))
        for pk, version in known.items():
            numbers[self._given == pk] = version.number
        return CodedColumn(*_distinct_numbers(numbers))

    def _probability(self) -> CodedColumn:
        """With which probability each row was drawn: into its duty, or into the selection of its run."""
        import numpy as np

        numbers = self._drawn()[self._source]
        places = {item[0]: place for place, item in enumerate(self._items)}
        for source, run in enumerate(self._runs, start=len(self._annotations["id"])):
            if run.selection_id is None:
                continue
            drawn, here = np.ones(len(places)), self._source == source
            chosen = SelectedItem.objects.filter(selection=run.selection_id).values_list("item", "probability")
            for item, probability in chosen:
                if item in places:
                    drawn[places[item]] = probability
            numbers[here] = drawn[self._item[here]]
        return CodedColumn(*_distinct_numbers(numbers))

    def _of_item(self, values: Sequence[Any]) -> CodedColumn:
        return CodedColumn(self._item, values)


_BLIND = {-1: None, 0: False, 1: True}


def _status(model: Any) -> Case:
    """The place of a row's status in `STATUSES`."""
    cases = [When(status=status, then=Value(STATUSES.index(status))) for status in model.Status.values]
    return Case(*cases, output_field=IntegerField())


def _places(keys: Sequence[int], wanted: NDArray[Any]) -> NDArray[np.intp]:
    """(M,) where each wanted key stands among the keys."""
    import numpy as np

    every = np.array(keys, dtype=np.int64)
    order = every.argsort()
    return order[every[order].searchsorted(wanted)] if len(keys) else wanted


def _at(values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """The values at places of which the last may be one too far."""
    return values[places.clip(max=len(values) - 1)] if len(values) else places * 0 - 1


def _distinct_numbers(numbers: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """The codes and the values of a column of numbers, sorted; NaN is one value, the last."""
    import numpy as np

    is_number = numbers == numbers
    low, high = (float(end(numbers, initial=0, where=is_number)) for end in (np.min, np.max))
    if high - low >= _MOST_NUMBERS or not (np.floor(numbers) == numbers)[is_number].all():
        values, codes = np.unique(numbers, return_inverse=True)
        return codes, values.tolist()
    places = np.where(is_number, numbers - low, high - low + 1).astype(np.intp)  # whole numbers need not be sorted
    occurring = np.flatnonzero(np.bincount(places))
    codes = np.zeros(int(high - low) + 2, dtype=np.intp)
    codes[occurring] = np.arange(len(occurring))
    values = (occurring + low).astype(numbers.dtype)
    if not is_number.all():
        values[-1] = np.nan
    return codes[places], values.tolist()


_MOST_NUMBERS = 1 << 20
"""Between the ends of a column of whole numbers whose values are marked instead of sorted."""


# --- reading columns of numbers --------------------------------------------------------------------------------------
Number = type[int | float | bool]
AT_ONCE = 2_000  # rows, on SQLite


def _read_numbers(rows: models.QuerySet[Any, Any], **kinds: Number) -> dict[str, NDArray[Any]]:
    """The columns of `values_list` rows as arrays, by the names and kinds that are given in their order; rows come in
    any order.

    Whole numbers without a value, and a bool without one, are -1, others NaN. PostgreSQL sends them in binary, as rows
    of one width that are not read one by one.
    """
    import numpy as np

    try:
        statement, parameters = rows.order_by().query.sql_with_params()
    except EmptyResultSet:  # a condition that nothing can fulfil
        return {name: _numbers((), kind) for name, kind in kinds.items()}
    if connection.vendor != "postgresql":
        columns = list(zip(*rows.order_by().iterator(AT_ONCE), strict=True)) or [()] * len(kinds)
        return {name: _numbers(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}
    fields = " || ".join(_FIELDS[kind].format(name) for name, kind in kinds.items())
    # A message of PostgreSQL holds at most a gigabyte.
    group = f"GROUP BY {next(iter(kinds))} / {IN_A_MESSAGE}" if _is_large(rows.model) else ""
    inner = f"SELECT string_agg({fields}, '') FROM ({statement}) AS numbers ({', '.join(kinds)}) {group}"  # noqa: S608
    with connection.cursor() as cursor, connection.wrap_database_errors:
        operations: Any = connection.ops
        copied = operations.compose_sql(f"COPY ({inner}) TO STDOUT (FORMAT binary)", parameters)
        with cursor.cursor.copy(copied) as copy:
            content = b"".join(copy)
    row = np.dtype([(name, _WIDTHS[kind]) for name, kind in kinds.items()])
    found = np.frombuffer(b"".join(_messages(content)), row)
    return {name: found[name].astype(_ARRAYS[kind]) for name, kind in kinds.items()}


IN_A_MESSAGE = 1_000
LARGE = 5_000_000  # rows of a table


def _is_large(model: type[models.Model]) -> bool:
    """Whether all rows of a table may be too many for one message."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        return bool(cursor.fetchone()[0] > LARGE)


def _messages(content: bytes) -> Iterator[memoryview]:
    """The one field of each row as COPY writes them in binary: a head of 19 bytes, then per row the number of fields,
    the field's length, which is negative where there is none, and the field.
    """
    place, whole = 19, memoryview(content)
    while int.from_bytes(content[place : place + 2], signed=True) == 1:
        size = int.from_bytes(content[place + 2 : place + 6], signed=True)
        place += 6
        yield whole[place : place + max(size, 0)]
        place += max(size, 0)


# Rows of one width: an array of PostgreSQL has a length before each element, and takes twice as long.
_FIELDS = {
    int: "int8send(COALESCE({}::int8, -1))",
    bool: "int2send(COALESCE({}::int4, -1)::int2)",
    float: "float8send(COALESCE({}::float8, 'NaN'))",
}
_WIDTHS = {int: ">i8", bool: ">i2", float: ">f8"}
_ARRAYS = {int: "int64", bool: "int64", float: "float64"}


def _numbers(column: Sequence[Any], kind: Number) -> NDArray[Any]:
    import numpy as np

    nothing = float("nan") if kind is float else -1
    return np.array([nothing if value is None else value for value in column], dtype=_ARRAYS[kind])
