"""Cells of a ratings table, each computed once and stored by the digest of all that it depends on.

The digests are made of the table's coded columns, before anything is checked or becomes a DataFrame. After a submission
only the rows of the criteria with new cells are checked and computed (docs/decisions/0027, 0033). pandas and scipy are
loaded by workers and commands alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, transaction

from analytics.models import StoredCell
from analytics.ratings.rating_rows import Row
from analytics.ratings.ratings_tables import FRAME_KINDS
from analytics.stats.core.messages import MessageDecoder, coded_messages
from analytics.stats.declared.register import is_usual
from annotation.models import Campaign
from annotation.writers.coded_rows import CodedColumn, CodedRows, combined_codes
from annotation.writers.tables import Table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

    Cut = tuple[list[NDArray[np.intp]], list[bytes]]

logger = logging.getLogger(__name__)

Rows = list[dict[str, Any]]
NEEDED = (
    *("item", "item_key", "rater", "rater_kind", "rater_identified", "panel", "criterion", "cluster", "language"),
    *("generator", "score", "code", "applicable", "missing", "out_of_range", "missing_reason", "repeat"),
    *("first_repeat", "inclusion_prob"),
)
"""The columns of a validated ratings table that figures depend on, beside those that cut it into cells."""
READ = tuple(name for name in NEEDED if name in Row._fields)
"""Those of them that a ratings table has before it is checked: the others follow from these and the scales."""
_NAMES = ("item", "rater", "rater_kind", "criterion", "cluster", "language", "generator")
"""Columns of names, which are compared as `stats.core.validation` spells them."""
_JUDGE_KINDS = ("judge", "jury")
ALL_JUDGES = "*"
AT_ONCE = 500
"""Stored cells in one statement."""
MOST_KEPT_ROWS = 400_000
"""Rows of cells that are kept for other reports on the same rows: some 60 MB."""


# --- what is stored --------------------------------------------------------------------------------------------------
class CellStore:
    """The cells that were computed under some settings of a campaign, by digest; nothing is kept without a campaign."""

    def __init__(self, campaign: Campaign | None, settings_digest: str, code_version: str) -> None:
        self.campaign, self.settings_digest, self.version = campaign, settings_digest, code_version
        self.used: set[str] = set()
        self.computed = 0

    def digest(self, *parts: bytes) -> str:
        """The digest of these inputs, of the version of the code, and of nothing else."""
        return hashlib.sha256(b"\0".join([self.version.encode(), *parts])).hexdigest()

    @cached_property
    def stored(self) -> dict[str, str]:
        """By digest the content, as text, of every cell that was stored when it was first asked for, or since."""
        if self.campaign is None:
            return {}
        here = StoredCell.objects.filter(campaign=self.campaign, settings_digest=self.settings_digest)
        return dict(here.values_list("digest", "content"))

    def contents(self, digests: Sequence[str], compute: Callable[[int], Any]) -> list[Any]:
        """The content of each digest: what is stored, or else what ``compute(place)`` gives, which is stored now."""
        missing = {digest: place for place, digest in enumerate(digests) if digest not in self.stored}
        new = {digest: compute(place) for digest, place in missing.items()}
        # As a text, because PostgreSQL gives the keys of JSON objects in an order of its own.
        written = {digest: json.dumps(coded_messages(content)) for digest, content in new.items()}
        self._keep(written)
        self.used |= set(digests)
        self.computed += len(new)
        return [
            new[digest] if digest in new else json.loads(self.stored[digest], cls=MessageDecoder) for digest in digests
        ]

    def forget_others(self) -> None:
        """Delete the cells of these settings that were not asked for since: their inputs have changed."""
        if self.campaign is not None:
            here = StoredCell.objects.filter(campaign=self.campaign, settings_digest=self.settings_digest)
            old = [pk for pk, digest in here.values_list("pk", "digest") if digest not in self.used]
            try:
                with transaction.atomic():
                    for place in range(0, len(old), AT_ONCE):
                        StoredCell.objects.filter(pk__in=old[place : place + AT_ONCE]).delete()
            except OperationalError:
                logger.warning("the database is busy: old cells of campaign %s stay for now", self.campaign.pk)

    def _keep(self, new: Mapping[str, str]) -> None:
        """What another worker stored meanwhile is the same. A busy database only costs the next computation time."""
        self.stored.update(new)
        if self.campaign is None or not new:
            return
        about = {"campaign": self.campaign, "settings_digest": self.settings_digest}
        rows = [StoredCell(**about, digest=digest, content=content) for digest, content in new.items()]
        try:
            with transaction.atomic():
                StoredCell.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)
        except OperationalError:
            logger.warning("the database is busy: %s cells of campaign %s are not kept", len(rows), self.campaign.pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """A report that computes every cell from that cell's rows alone.

    ``by``: the columns that cut the table; ``is_whole``: it is computed as one cell all the same. ``judge``: whose
    verdicts it reads beside the panel's ratings: None for no judge, ``ALL_JUDGES`` for all. ``criteria`` and ``panel``:
    the only ones it is about. ``options``: what the rows depend on beside the table. ``in_file_order``: the order of
    the rows counts. ``more``: columns that figures depend on beside ``NEEDED``. ``row``: what is
    stored of what it computes; None is left out.
    """

    name: str
    compute: Callable[[RatingsTable], Iterable[Any]]
    options: Mapping[str, Any]
    by: tuple[str, ...]
    pool: bool = False
    judge: str | None = None
    criteria: Sequence[str] | None = None
    panel: str | None = None
    in_file_order: bool = False
    is_whole: bool = False
    more: tuple[str, ...] = ()
    row: Callable[[Any], dict[str, Any] | None] = dict

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that cut the table, as `stats.core.tables.cells` does."""
        if self.is_whole:
            return ()
        columns = [column for column in self.by if not (self.pool and column == "criterion")]
        return (*columns,) if self.pool or "criterion" in columns else (*columns, "criterion")


def asked_row(
    statistics: Collection[str], variants: Collection[str], prefix: str, panel: str | None, row: CellEstimate
) -> dict[str, Any] | None:
    """A row as plain values; None if its statistic (which has the report's prefix) or its variant is not asked for."""
    estimate, asked = row.estimate, prefix + row.estimate.statistic
    is_variant = (
        estimate.variant in variants
        if variants
        else is_usual(estimate.statistic, estimate.variant, estimate.level or "")
    )
    if asked not in statistics or not is_variant:
        return None
    if panel is not None:
        row = replace(row, cell={**row.cell, "panel": panel})
    return {**row.as_row(), "asked": asked}


def usual_row(row: CellEstimate) -> dict[str, Any] | None:
    """The row without the fields that are None; None if its variant is not the usual one."""
    estimate = row.estimate
    if not is_usual(estimate.statistic, estimate.variant, estimate.level or ""):
        return None
    return {name: value for name, value in row.as_row().items() if value is not None}


def computed_cells(
    table: CodedTable,
    reports: Sequence[CellReport],
    *,
    store: CellStore,
    progress: Callable[[int, int], None],
    beside: Sequence[CellReport] = (),
) -> list[Rows]:
    """The rows of each report, then of those ``beside``, which take no time and are no progress.

    Cells that are stored are read, the others are computed and stored.
    """
    cut, found = CutTable(table, store), []
    cut.prepare([*reports, *beside])
    for done, report in enumerate(reports):
        progress(done, len(reports))
        found.append(cut.rows(report))
    progress(len(reports), len(reports))
    return found + [cut.rows(report) for report in beside]


# --- a table as coded columns ----------------------------------------------------------------------------------------
class CodedTable:
    """A ratings table before it is checked, as coded columns: who and what is in it, and a hash of every row.

    ``scales``: the declared one of each criterion, "*" for all others.
    """

    def __init__(self, found: Table, scales: Mapping[str, Scale], names: Collection[str]) -> None:
        self.scales = scales
        self.described = tuple(column for column in found.columns if column.name in names)
        self.raw = {column.name: coded for column, coded in zip(self.described, _coded(found, names), strict=True)}
        self.columns = {name: _spelt(column) if name in _NAMES else column for name, column in self.raw.items()}
        self._hashes: dict[str, NDArray[np.uint64]] = {}
        self._cuts: dict[tuple[str, ...], NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.columns["item"].codes)

    def values(self, name: str, keep: NDArray[np.bool_] | None = None) -> list[str]:
        """The names that occur in a column, sorted; in the rows (M,) that are True where they are given."""
        import numpy as np

        if name not in self.columns:
            return []
        column = self.columns[name]
        occurs = np.bincount(column.codes if keep is None else column.codes[keep], minlength=len(column.values)) > 0
        return sorted(value for value, there in zip(column.values, occurs.tolist(), strict=True) if there and value)

    def where(self, name: str, wanted: Collection[str]) -> NDArray[np.bool_]:
        """(M,) whether the row has one of these names in a column."""
        import numpy as np

        if name not in self.columns:
            return np.zeros(len(self), dtype=bool)
        column = self.columns[name]
        return np.array([value in wanted for value in column.values], dtype=bool)[column.codes]

    @cached_property
    def is_judge(self) -> NDArray[np.bool_]:
        """(M,) whether the row is a verdict, of a judge or a jury."""
        return self.where("rater_kind", _JUDGE_KINDS)

    @cached_property
    def judges(self) -> list[str]:
        """The judges that have verdicts, without juries."""
        return self.values("rater", self.where("rater_kind", ("judge",)))

    @cached_property
    def criteria(self) -> list[str]:
        return self.values("criterion")

    def scale(self, criterion: str) -> Scale:
        """The declared scale of a criterion, whose points may become more by scores between them."""
        return self.scales.get(criterion) or self.scales["*"]

    def has_repeats(self, judge: str) -> bool:
        """Whether a judge was asked about an item again."""
        return bool((self.repeat != self.first_repeat)[self.where("rater", (judge,))].any())

    @cached_property
    def repeat(self) -> NDArray[np.int64]:
        """(M,) as in the checked table: 0 where there is no such column."""
        import numpy as np

        if "repeat" not in self.columns:
            return np.zeros(len(self), dtype=np.int64)
        column = self.columns["repeat"]
        return np.array(column.values, dtype=np.int64)[column.codes]

    @cached_property
    def first_repeat(self) -> NDArray[np.int64]:
        """(M,) the lowest repeat of the same rater, item and criterion."""
        import numpy as np

        if len(np.unique(self.repeat)) < 2:
            return self.repeat
        group = self.item_keys
        for name in ("criterion", "rater"):
            group = group * len(self.columns[name].values) + self.columns[name].codes
        group = np.unique(group, return_inverse=True)[1]
        lowest = np.full(int(group.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(lowest, group, self.repeat)
        return lowest[group]

    @cached_property
    def item_keys(self) -> NDArray[np.intp]:
        """(M,) a number for each item, which its name, language and generator make."""
        import numpy as np

        number = self.columns["item"].codes
        for name in ("language", "generator"):
            if name in self.columns:
                number = number * len(self.columns[name].values) + self.columns[name].codes
        return np.unique(number, return_inverse=True)[1]

    def frame(self, criteria: Collection[str]) -> tuple[pd.DataFrame, NDArray[np.intp]]:
        """The rows of these criteria as a DataFrame, names as categories, and (K,) their places in this table."""
        import numpy as np
        import pandas as pd

        keep = self.where("criterion", criteria)
        rows = CodedRows(list(self.raw.values())).kept(keep)
        columns = {
            name: _categories(column) if name in _NAMES else _taken(*column)
            for name, column in zip(self.raw, rows.columns, strict=True)
        }
        kinds = {name: kind for name, kind in FRAME_KINDS.items() if name in columns}
        return pd.DataFrame(columns).astype(kinds), np.flatnonzero(keep)

    def cut(self, columns: tuple[str, ...]) -> NDArray[Any]:
        """(M,) the number of each row's cell, in the order of the cells' keys."""
        import numpy as np
        import pandas as pd

        if columns not in self._cuts:
            codes, places = self.columns[columns[0]].codes, [np.arange(len(self.columns[columns[0]].values))]
            for name in columns[1:]:
                column = self.columns[name]
                codes, pairs = combined_codes(codes, column.codes, len(column.values))
                first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
                places = [*(each[first] for each in places), second]
            keys = {name: self._keys(name, codes) for name, codes in zip(columns, places, strict=True)}
            cells = pd.DataFrame(keys).groupby(list(columns), sort=True, observed=True, dropna=False).ngroup()
            smallest = np.uint16 if len(cells) < 1 << 16 else np.int64  # which are sorted in a tenth of the time
            self._cuts[columns] = cells.to_numpy().astype(smallest)[codes]
        return self._cuts[columns]

    def _keys(self, name: str, codes: NDArray[np.intp]) -> Any:
        values = self.columns[name].values
        named = [value or None for value in values] if name in _NAMES else values
        return _taken(codes, named)

    # --- hashes -------------------------------------------------------------------------------------------------------
    @cached_property
    def row_hashes(self) -> NDArray[np.uint64]:
        """(M, 2) 128 bits for the columns of every row that all figures depend on."""
        import numpy as np

        needed = [(name, self.hashed(name)) for name in READ if name in self.columns]
        needed.append(("first_repeat", self.first_repeat.astype(np.uint64)))
        # What is the same in every row needs no pass over the rows.
        same = [(name, int(column[0])) for name, column in needed if len(column) and self._is_constant(name)]
        differing = [column for name, column in needed if not self._is_constant(name)]
        start = int.from_bytes(hashlib.sha256(repr(same).encode()).digest()[:8])
        hashes = []
        for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
            row_hash = np.full(len(self), factor ^ start, dtype=np.uint64)
            for column in differing:
                row_hash ^= column
                row_hash *= np.uint64(factor)
                row_hash ^= row_hash >> np.uint64(29)
            hashes.append(row_hash)
        return np.stack(hashes, axis=1)

    def _is_constant(self, name: str) -> bool:
        """Whether a column has one value; which columns do is part of every hash."""
        if name == "first_repeat":
            return self.first_repeat is self.repeat and self._is_constant("repeat")
        return name not in self.columns or len(self.columns[name].values) == 1

    def hashed(self, name: str) -> NDArray[np.uint64]:
        """(M,) a number of 64 bits for every value of a column."""
        import numpy as np
        from pandas.util import hash_array

        if name not in self._hashes:
            column = self.columns[name]
            if set(map(type, column.values)) <= {float, type(None)}:
                of_values = np.array(column.values, dtype=np.float64).view(np.uint64)
            else:
                texts = np.array([f"{type(value).__name__} {value}" for value in column.values], dtype=object)
                of_values = hash_array(texts) if len(texts) else np.zeros(0, dtype=np.uint64)
            self._hashes[name] = of_values.take(column.codes)
        return self._hashes[name]

    @cached_property
    def scale_texts(self) -> list[str]:
        """By code of a criterion, all that its scale depends on: the declared one and, where scores between its points
        become points, the scores that occur.
        """
        import numpy as np

        criterion, score, kind = (self.columns[name] for name in ("criterion", "score", "rater_kind"))
        declared = [self.scale(str(key)) if key else None for key in criterion.values]
        texts = [repr((key, scale)) for key, scale in zip(criterion.values, declared, strict=True)]
        for place, scale in enumerate(declared):
            if scale is not None and (scale.any_number or scale.level in ("interval", "ratio")):
                here = criterion.codes == place
                codes = np.unique(score.codes[here] * len(kind.values) + kind.codes[here]).tolist()
                pairs = (divmod(code, len(kind.values)) for code in codes)
                occurring = sorted((repr(score.values[number]), kind.values[of_kind]) for number, of_kind in pairs)
                texts[place] += hashlib.sha256(repr(occurring).encode()).hexdigest()
        return texts


def _coded(found: Table, names: Collection[str]) -> Iterator[CodedColumn]:
    """The columns of these names with each value once."""
    import numpy as np

    places = [place for place, name in enumerate(found.names) if name in names]
    if isinstance(found.rows, CodedRows):
        yield from (found.rows.columns[place].distinct() for place in places)
        return
    rows = list(found.rows)
    every = np.arange(len(rows))
    yield from (CodedColumn(every, [row[place] for row in rows]).distinct() for place in places)


def _taken(codes: NDArray[np.intp], values: Sequence[Any]) -> Any:
    """A column of a DataFrame: each value is converted once."""
    import pandas as pd

    return pd.Series(values, dtype=None if len(values) else object).array.take(codes)


def _categories(column: CodedColumn) -> Any:
    """A column of names as categories of a DataFrame, nothing as no category; as `_taken` where a name is no text."""
    import numpy as np
    import pandas as pd

    codes, values = column.distinct()
    if {*map(type, values)} - {str, type(None)}:
        return _taken(codes, values)
    is_name = np.array([value is not None for value in values], dtype=bool)
    places = np.where(is_name, is_name.cumsum() - 1, -1)
    names = pd.Index([value for value in values if value is not None], dtype=object)
    return pd.Categorical.from_codes(places[codes], categories=names)


def _spelt(column: CodedColumn) -> CodedColumn:
    """Names without spaces around them, as the checked table has them; nothing is an empty text."""
    spelt = ["" if value is None or value != value else str(value).strip() for value in column.values]
    return CodedColumn(column.codes, spelt).distinct()


# --- cells by report -------------------------------------------------------------------------------------------------
class CutTable:
    """A ratings table that reports are computed from cell by cell; what is stored is not computed again."""

    def __init__(self, table: CodedTable, store: CellStore) -> None:
        self.table, self.store = table, store
        self._wanted = set[str]()
        self._cuts: dict[Any, Cut] = {}
        self._kept: dict[Any, tuple[NDArray[np.intp], Cut]] = {}
        self._digests: dict[int, tuple[CellReport, list[str]]] = {}
        self._parts: dict[tuple[bytes, tuple[str, ...], bool], RatingsTable] = {}
        self._rows_of_parts = 0

    def prepare(self, reports: Iterable[CellReport]) -> None:
        """Find out which cells of these reports are not stored: the rows of their criteria are checked, once."""
        self._wanted = {
            criterion
            for report in reports
            for places, digest in zip(self._cells(report)[0], self._known(report), strict=True)
            if digest not in self.store.stored
            for criterion in self._criteria(places)
        }

    def rows(self, report: CellReport) -> Rows:
        """The rows of every cell in the order of the cells."""
        cut, hashes = self._cells(report)

        def compute(number: int) -> Rows:
            part = self._part(report, cut[number], hashes[number])
            return [row for estimate in report.compute(part) if (row := report.row(estimate)) is not None]

        return [row for rows in self.store.contents(self._known(report), compute) for row in rows]

    def checked(self, criteria: Collection[str]) -> tuple[RatingsTable, NDArray[np.intp]]:
        """The rows of these criteria as a validated table, and (M,) where each row of the whole stands in it, or -1."""
        import numpy as np

        from analytics.stats.core.validation import ratings_table

        found, places = self.table.frame(criteria)
        table = ratings_table(found, scales=self.table.scales)
        at = np.full(len(self.table), -1, dtype=np.intp)
        at[places[table.frame["row"].to_numpy()]] = np.arange(len(table.frame))
        return table, at

    @cached_property
    def _new(self) -> tuple[RatingsTable, NDArray[np.intp]]:
        return self.checked(self._wanted)

    def _known(self, report: CellReport) -> list[str]:
        """The digest of each cell of a report."""
        if id(report) not in self._digests:
            about = json.dumps([report.name, report.options, report.by, report.judge, report.panel, report.pool])
            cells = zip(*self._cells(report), strict=True)
            digests = [self._digest(report, about, places, of_rows) for places, of_rows in cells]
            self._digests[id(report)] = report, digests  # with the report, whose id is nobody else's so long
        return self._digests[id(report)][1]

    def _digest(self, report: CellReport, about: str, places: NDArray[np.intp], of_rows: bytes) -> str:
        more = [self.table.hashed(name)[places].tobytes() for name in self._beside(report)]
        order = b"in the order of the file" if report.in_file_order else b""
        return self.store.digest(about.encode(), of_rows, *more, order)

    def _cells(self, report: CellReport) -> Cut:
        """The places of the rows of each cell, cells in the order of their keys, and a digest of these rows."""
        import numpy as np

        criteria = None if report.criteria is None else tuple(report.criteria)
        key = (report.columns, report.panel, report.judge, criteria)
        if key in self._cuts:
            return self._cuts[key]
        table, keep = self.table, ~self.table.is_judge
        if report.panel is not None:
            keep = keep & table.where("panel", (report.panel,))
        if report.judge == ALL_JUDGES:
            keep = keep | table.is_judge
        elif report.judge is not None:
            keep = keep | (table.is_judge & table.where("rater", (report.judge,)))
        if criteria is not None:
            keep &= table.where("criterion", criteria)
        places = np.flatnonzero(keep)
        for (columns, *_more), (former, known) in self._kept.items():
            if columns == report.columns and np.array_equal(former, places):  # the only judge is all judges
                self._cuts[key] = known
                return known
        if report.columns and len(places):
            numbers = table.cut(report.columns).take(places)
            order = np.argsort(numbers, kind="stable")
            places_of_cells, ends = places.take(order), np.flatnonzero(np.diff(numbers[order])) + 1
        else:
            places_of_cells, ends = places, np.zeros(0, dtype=np.intp)
        cut = np.split(places_of_cells, ends) if len(places) else []
        self._cuts[key] = cut, [*self._digests_of_rows(report, cut, places_of_cells)]
        self._kept[key] = places, self._cuts[key]
        return self._cuts[key]

    def _digests_of_rows(
        self, report: CellReport, cut: Sequence[NDArray[np.intp]], places: NDArray[np.intp]
    ) -> Iterator[bytes]:
        """Of rows and scales of each cell; ``places``: those of all cells. Rows stand in the order of the table, so
        that each order has its own digest.
        """
        hashes, start = self.table.row_hashes.take(places, axis=0), 0
        codes = self.table.columns["criterion"].codes
        for part in cut:
            found = hashlib.sha256(hashes[start : start + len(part)].data)
            start += len(part)
            for code in (codes[part[0]],) if "criterion" in report.columns else self._criterion_codes(part):
                found.update(self.table.scale_texts[code].encode())
            yield found.digest()

    def _criteria(self, places: NDArray[np.intp]) -> Iterator[str]:
        values = self.table.columns["criterion"].values
        return (str(values[code]) for code in self._criterion_codes(places))

    def _criterion_codes(self, places: NDArray[np.intp]) -> list[int]:
        """The codes of the criteria that these rows are about, sorted."""
        import numpy as np

        codes: list[int] = np.flatnonzero(np.bincount(self.table.columns["criterion"].codes[places])).tolist()
        return codes

    def _beside(self, report: CellReport) -> list[str]:
        """The columns that a report reads beside the needed ones."""
        columns = dict.fromkeys((*report.by, *report.more))
        return [name for name in columns if name not in NEEDED and name in self.table.columns]

    def _part(self, report: CellReport, places: NDArray[np.intp], of_rows: bytes) -> RatingsTable:
        """The rows of a cell as a table of their own, which reports on the same rows share: they change nothing."""
        names = tuple(name for name in (*NEEDED, *self._beside(report)) if name in self._new[0].frame)
        key = of_rows, names, report.in_file_order
        if key not in self._parts:
            part = self._cut_out(names, places, in_file_order=report.in_file_order)
            if self._rows_of_parts + len(places) > MOST_KEPT_ROWS:
                return part
            self._parts[key] = part
            self._rows_of_parts += len(places)
        return self._parts[key]

    def _cut_out(self, names: tuple[str, ...], places: NDArray[np.intp], *, in_file_order: bool) -> RatingsTable:
        """Nothing in the rows of a cell depends on other cells."""
        import numpy as np
        import pandas as pd

        table, at = self._new
        here = np.sort(at[places])
        here = here[here >= 0]
        columns = {name: self._columns[name].take(here) for name in names}
        columns["item_key"] = np.unique(columns["item_key"], return_inverse=True)[1]
        file_order = self._columns["row"].take(here)
        columns["row"] = file_order.argsort().argsort() if in_file_order else np.arange(len(here))
        index = pd.RangeIndex(len(here))  # with their own types: pandas takes names for a type of its own
        series = {name: pd.Series(each, index, dtype=each.dtype, copy=False) for name, each in columns.items()}
        return replace(table, frame=pd.DataFrame(series, index, copy=False))

    @cached_property
    def _columns(self) -> dict[str, Any]:
        """The columns of `_new` as arrays, of which rows are taken without a frame of all columns."""
        import numpy as np

        frame = self._new[0].frame
        columns = {str(name): frame[name] for name in frame}
        return {
            name: each.to_numpy() if isinstance(each.dtype, np.dtype) else each.array for name, each in columns.items()
        }
