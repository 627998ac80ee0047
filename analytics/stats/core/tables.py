"""The ratings table: one row per score (METHODS 0), validated once, then cut into cells and coded as small integers.

Columns of ``RatingsTable.frame`` after ``validation.ratings_table``:

=============== ======== =======================================================================================
item            str      the unit rated; with language and generator it names one item (``item_key`` numbers them)
rater           str      annotator, judge or jury; a slot when raters are anonymous (``--positional``)
criterion       str      "" when the file has none
score           float64  the number given, NaN for text points, N/A and missing
code            int32    index into ``scales[criterion].points``, of the nearest (half up) for a judge's fraction; -1
                         for N/A, missing, or a judge value beyond the ends
applicable      bool     False when the rater decided "not applicable"
missing         bool     True when there is neither a score nor N/A
out_of_range    bool     True for a judge value beyond the ends of the scale: counted, never clipped
rater_kind      str      annotator | judge | jury | adjudicator | reference
cluster         str      what is resampled: dialogue or scenario; the item itself when not given
language, generator      str or None
repeat          int64    0 unless given
=============== ======== =======================================================================================

Rows are sorted by criterion, item, rater and repeat, so that no figure depends on the order of the file; ``row`` is a
record's 0-based place in it. Any other column of the input is kept as it is and may be a ``by`` column.

Our own exports have other names for some columns (``with_table_names``), so that the same file gives the same figures
as the page:

=========================== =========================================================================================
``judge``                   the rater, in a file of verdicts
``not_applicable``          true for N/A, where there is no ``applicable``
``scenario``                the cluster, where there is no ``cluster``; an item without one is its own
``inclusion_probability``   ``inclusion_prob``
``level``                   nominal, ordinal, interval or ratio: of the criterion
``scale``                   of the criterion, as JSON: ``[0, 1, 2]``, ``{"min": 0, "max": 100}``, or with a ``"step"``
``panelbench_marks``        of a CSV: which cells have an apostrophe more than their text
=========================== =========================================================================================

A column ``level`` or ``scale`` that holds anything else is an attribute like any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from analytics.stats.core.identifiers import normal_identifier
from analytics.stats.core.scales import LEVELS, Level, Scale, inferred_scale, range_scale, scale_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

REQUIRED = ("item", "rater", "score")
RATER_KINDS = ("annotator", "judge", "jury", "adjudicator", "reference")
HUMAN_KINDS = ("annotator",)
MISSING = ("NA", "NaN", "nan", "null", "NULL", "<NA>", "#N/A")
"""Texts in the score column that mean "no score", as an empty one does; a note counts them where they occur."""
TRUE_WORDS = ("true", "1", "1.0", "yes")
FALSE_WORDS = ("false", "0", "0.0", "no")


class TableProblem(NamedTuple):
    """The problem of one record: its 0-based row in the frame (None: the table as a whole) and a sentence."""

    row: int | None
    message: str


class TableError(ValueError):
    """A table that can't be used, with every problem found."""

    def __init__(self, problems: Sequence[TableProblem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems[:5]))
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class RatingsTable:
    """A validated ratings table, the scale of each criterion, and what a reader should be told about the input."""

    frame: pd.DataFrame
    scales: Mapping[str, Scale]
    notes: tuple[str, ...] = ()

    def scale_in_words(self, criterion: str | None) -> str:
        """The scale of a criterion, or of every one where figures speak of several at once."""
        if criterion is not None and criterion in self.scales:
            return self.scales[criterion].described()
        words = {name: scale.described() for name, scale in self.scales.items()}
        if len(set(words.values())) < 2:
            return next(iter(words.values()), "")
        return "; ".join(f"{name}: {scale}" for name, scale in words.items())

    def only(self, **kept: Sequence[str]) -> RatingsTable:
        """The rows whose columns hold one of the wanted values: ``table.only(rater_kind=["annotator"])``."""
        keep = np.ones(len(self.frame), dtype=bool)
        for column, values in kept.items():
            keep &= self.frame[column].isin(list(values)).to_numpy()
        return RatingsTable(self.frame[keep], self.scales, self.notes)

    def annotators(self) -> RatingsTable:
        """Only the panel: no judge, jury, adjudicator or reference."""
        return self.only(rater_kind=HUMAN_KINDS)


@dataclass(frozen=True, slots=True)
class Cell:
    """The rows of the ratings table that share a key, with the scale they were scored on."""

    key: dict[str, str | None]
    frame: pd.DataFrame
    scale: Scale

    @property
    def has_persons(self) -> bool:
        """Whether the table says of nobody that the rater is an anonymous slot (column ``rater_identified``)."""
        if "rater_identified" not in self.frame:
            return True
        return not self.frame["rater_identified"].astype(str).str.lower().isin(FALSE_WORDS).any()


@dataclass(frozen=True, slots=True)
class Coded:
    """One cell's scores as small integers, in long form.

    ``item``, ``rater``, ``code`` (M,): indices into ``items`` (N,), ``raters`` (R,) and the scale's points; M scores.
    ``place`` (M,): where each score stands in the file. ``cluster`` (N,): index of each item's cluster. ``n_missing``:
    rows of the cell with neither score nor N/A.
    """

    item: NDArray[np.intp]
    rater: NDArray[np.intp]
    code: NDArray[np.intp]
    place: NDArray[np.intp]
    cluster: NDArray[np.intp]
    scale: Scale
    raters: tuple[str, ...]
    n_missing: int = 0

    @property
    def n_items(self) -> int:
        """N, items with at least one score."""
        return int(self.cluster.size)

    def counts(self) -> NDArray[np.int64]:
        """(N, q) n_ik: how many raters gave item i the point k."""
        q = self.scale.q
        return np.bincount(self.item * q + self.code, minlength=self.n_items * q).reshape(self.n_items, q)

    def matrix(self) -> NDArray[np.int32]:
        """(N, R) the code each rater gave each item; -1 marks "no score" inside kernels only.

        32 bits: a continuous scale has as many codes as distinct scores, and kernels multiply codes by q.
        """
        codes = np.full((self.n_items, len(self.raters)), -1, dtype=np.int32)
        codes[self.item, self.rater] = self.code
        return codes

    def values(self) -> NDArray[np.float64]:
        """(N, R) the number each rater gave each item, NaN where there is none."""
        values = np.full((self.n_items, len(self.raters)), np.nan)
        values[self.item, self.rater] = self.scale.values[self.code]
        return values

    def without_rater(self, index: int) -> Coded:
        """The same cell with one rater left out."""
        keep = self.rater != index
        raters = tuple(name for position, name in enumerate(self.raters) if position != index)
        moved = self.rater[keep] - (self.rater[keep] > index)
        item, cluster = _compact(self.item[keep], self.cluster)
        return Coded(item, moved, self.code[keep], self.place[keep], cluster, self.scale, raters, self.n_missing)


def cells(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion"), pool: bool = False) -> Iterator[Cell]:
    """The cells of the table in sorted order of their keys.

    Criteria are never pooled unless ``pool`` says so (then all pooled criteria must share one scale's points).
    """
    columns = [column for column in by if not (pool and column == "criterion")]
    if not pool and "criterion" not in columns:
        columns.append("criterion")
    for key, rows in grouped(table.frame, columns):
        yield _cell(dict(zip(columns, key, strict=True)), table, rows)


def coded(cell: Cell, *, raters: Sequence[str] | None = None) -> Coded:
    """A cell's scores as integers, the first repeat of each rater and item only; items in sorted order."""
    import pandas as pd

    rows = cell.frame if raters is None else cell.frame[cell.frame["rater"].isin(list(raters))]
    n_missing = int(rows["missing"].sum())
    rows = rows[(rows["code"] >= 0).to_numpy() & (rows["repeat"] == rows["first_repeat"]).to_numpy()]
    item, _ = pd.factorize(_item_identity(rows), sort=True)
    rater, names = pd.factorize(rows["rater"], sort=True)
    cluster, _ = pd.factorize(rows["cluster"], sort=True)
    of_item = np.zeros(int(item.max()) + 1 if item.size else 0, dtype=np.intp)
    of_item[item] = cluster
    code, place = (np.asarray(rows[column], dtype=np.intp) for column in ("code", "row"))
    return Coded(item, rater, code, place, of_item, cell.scale, tuple(map(str, names)), n_missing)


def coded_from_matrix(scores: Any, *, scale: Scale, clusters: Any = None, raters: Sequence[str] = ()) -> Coded:
    """An (items, raters) array of scores, NaN or None where missing, as a coded cell on a scale.

    Text points are matched as text, numbers as numbers; ``ValueError`` for a score that is no point of the scale.
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=object if not scale.is_numeric else np.float64))
    codes = codes_on(scores, scale)
    item, rater = np.nonzero(codes >= 0)
    names = tuple(raters) or tuple(str(number + 1) for number in range(scores.shape[1]))
    cluster = np.arange(len(scores)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    n_missing = int((codes < 0).sum())
    item_kept, cluster_kept = _compact(item, cluster)
    code = codes[item, rater].astype(np.intp)
    return Coded(item_kept, rater, code, np.arange(len(code)), cluster_kept, scale, names, n_missing)


def codes_on(scores: NDArray[Any], scale: Scale) -> NDArray[np.int64]:
    """Index of each score among the scale's points, -1 where missing (NaN, None); ValueError for another value."""
    import pandas as pd

    codes = np.full(scores.shape, -1, dtype=np.int64)
    for index, point in enumerate(scale.points):
        codes[scores == point] = index
    missing = pd.isna(scores)
    if strangers := sorted({str(value) for value in scores[(codes < 0) & ~missing]}):
        raise ValueError(f"not on the scale: {', '.join(strangers[:5])}")
    return codes


def grouped(frame: pd.DataFrame, columns: list[str]) -> Iterator[tuple[tuple[str | None, ...], pd.DataFrame]]:
    """The rows of each combination of values, in sorted order; nothing in a column is a value of its own, None."""
    import pandas as pd

    if not columns:
        if len(frame):
            yield (), frame
        return
    if len(frame) and all(_is_one_value(frame[column]) for column in columns):  # as cells that are computed alone are
        first = (frame[column].iloc[0] for column in columns)
        yield tuple(None if pd.isna(part) else str(part) for part in first), frame
        return
    for key, rows in frame.groupby(columns, sort=True, observed=True, dropna=False):
        yield tuple(None if pd.isna(part) else str(part) for part in cast("tuple[Any, ...]", key)), rows


def _is_one_value(column: pd.Series[Any]) -> bool:
    import pandas as pd

    if column.dtype == object and isinstance(first := column.iloc[0], str):
        try:
            return bool((column.to_numpy() == first).all())
        except TypeError:  # pd.NA == first is neither true nor false
            return False
    return int(pd.factorize(column, use_na_sentinel=False)[0].max()) == 0


def _cell(key: dict[str, str | None], table: RatingsTable, rows: pd.DataFrame) -> Cell:
    """A cell; when criteria are pooled their points are merged and the codes renumbered."""
    known = {
        criterion: table.scales[criterion] for criterion in rows["criterion"].unique() if criterion in table.scales
    }
    used = {criterion: scale for criterion, scale in known.items() if scale.points} or known
    if len(set(used.values())) == 1:
        return Cell(key, rows, next(iter(used.values())))
    scale = _merged(list(used.values()))
    code = rows["code"].to_numpy(copy=True)
    for criterion, own in used.items():
        here = (rows["criterion"] == criterion).to_numpy() & (code >= 0)
        code[here] = np.array([scale.points.index(point) for point in own.points])[rows["code"].to_numpy()[here]]
    return Cell(key, rows.assign(code=code), scale)


def _merged(scales: Sequence[Scale]) -> Scale:
    """One scale for pooled criteria: points that only occur are merged, declared points must be the same."""
    levels = {scale.level for scale in scales}
    fixed = any(scale.declared and scale.level not in ("interval", "ratio") for scale in scales)
    if len(levels) != 1 or fixed or len({scale.is_numeric for scale in scales}) != 1:
        sentence = (
            "criteria with different scales can't be pooled: choose those with the same scale (of a file: --scale)"
        )
        raise TableError([TableProblem(None, sentence)])
    points = {point for scale in scales for point in scale.points}
    if all(scale.any_number for scale in scales):
        return Scale(tuple(sorted(cast("set[float]", points))), levels.pop(), any_number=True)
    if all(scale.declared for scale in scales) or not all(scale.is_whole for scale in scales):
        return scale_of(points, levels.pop(), declared=all(scale.declared for scale in scales))
    return inferred_scale(cast("set[float]", points), levels.pop())


def _item_identity(rows: pd.DataFrame) -> pd.Series[Any]:
    """Pooled criteria keep their items apart: the unit is then an (item, criterion) pair."""
    if rows["criterion"].nunique() < 2:
        return rows["item_key"]
    return rows["item_key"].astype(str) + "\0" + rows["criterion"].astype(str)


def _compact(item: NDArray[np.intp], cluster: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Item indices renumbered without gaps, and the clusters of the items that remain."""
    kept, renumbered = np.unique(item, return_inverse=True)
    return renumbered, cluster[kept]


# --- the columns of our own exports -----------------------------------------------------------------------------------


MARKS, ADDED = "panelbench_marks", "'"
OTHER_NAMES = {"rater": "judge", "cluster": "scenario", "inclusion_prob": "inclusion_probability"}


def with_table_names(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame with the ratings table's own names for the columns of an export, and a note on what was read so.

    Columns keep their export's name beside the table's. The frame that was given stays as it is.
    """
    other_names = {
        name: other for name, other in OTHER_NAMES.items() if name not in frame.columns and other in frame.columns
    }
    if MARKS in frame.columns:
        frame = _unmarked(frame)
    read = {name: frame[other] for name, other in other_names.items()}
    if "cluster" in read and "item" in frame:
        scenario = frame["scenario"].fillna("")
        read["cluster"] = scenario.where(scenario.astype(str).str.strip() != "", frame["item"])
    if "applicable" not in frame.columns and "not_applicable" in frame.columns:
        other_names["applicable"] = "not_applicable"
        read["applicable"] = _opposite(frame["not_applicable"])
    if not read:
        return frame, []
    words = ", ".join(f"{other!r} as {name}" for name, other in other_names.items())
    return frame.assign(**read), [f"columns read by the names that exports give them: {words}"]


def declared_scales(frame: pd.DataFrame) -> tuple[dict[str, Scale], dict[str, Level]]:
    """By criterion, the scales and levels that the columns ``scale`` and ``level`` say. ``TableError`` where the rows
    of one criterion say different things.
    """
    levels = cast("dict[str, Level]", _of_criteria(frame, "level") if _holds(frame, "level", _is_level) else {})
    if not _holds(frame, "scale", _is_scale):
        return {}, levels
    written = _of_criteria(frame, "scale")
    return {criterion: _scale(text, levels.get(criterion)) for criterion, text in written.items()}, levels


def _holds(frame: pd.DataFrame, column: str, is_one: Any) -> bool:
    """Whether a column says nothing else than what an export writes into it."""
    values = {str(value).strip() for value in frame[column].dropna().unique()} if column in frame else set()
    return bool(values - {""}) and all(map(is_one, values - {""}))


def _is_level(text: str) -> bool:
    return text in LEVELS


def _is_scale(text: str) -> bool:
    try:
        _scale(text, None)
    except (ValueError, TypeError, KeyError):
        return False
    return True


def _scale(text: str, level: Level | None) -> Scale:
    """``ValueError``, ``TypeError`` or ``KeyError`` for what is no scale."""
    written = json.loads(text)
    if isinstance(written, list):
        return scale_of(written, level)
    return range_scale(float(written["min"]), float(written["max"]), written.get("step"), level or "interval")


def _of_criteria(frame: pd.DataFrame, column: str) -> dict[str, str]:
    """The value of the column for each criterion; a file without criteria has one criterion with an empty name."""
    import pandas as pd

    criterion = frame["criterion"].reset_index(drop=True) if "criterion" in frame else pd.Series("", range(len(frame)))
    pairs = pd.DataFrame(
        {
            "row": range(len(frame)),
            "criterion": criterion.fillna("").astype(str).map(normal_identifier),
            "text": frame[column].to_numpy(),
        }
    )
    pairs = pairs[pairs["text"].fillna("").astype(str).str.strip() != ""]
    kept = pairs.drop_duplicates("criterion")
    known = dict(zip(kept["criterion"], kept["text"], strict=True))
    wrong = (pairs["text"] != pairs["criterion"].map(known)).to_numpy().nonzero()[0]
    if wrong.size:
        first = pairs.iloc[wrong[0]]
        sentence = (
            f"{column} {first['text']!r} contradicts {known[first['criterion']]!r} given earlier for the criterion"
        )
        raise TableError([TableProblem(int(first["row"]), sentence)])
    return {name: str(text).strip() for name, text in known.items()}


def _opposite(column: pd.Series[Any]) -> pd.Series[Any]:
    """``applicable`` from ``not_applicable``; what is neither true nor false stays for validation to refuse."""
    words = column.fillna("").astype(str).str.strip().str.lower()
    return words.replace({**dict.fromkeys(TRUE_WORDS, "false"), **dict.fromkeys(FALSE_WORDS, "true")})


def _unmarked(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the apostrophes that keep a spreadsheet from running a text, where the marks say that one was added."""
    marks = frame[MARKS].astype(object).fillna("").astype(str)
    columns = {mark[1:] for mark_words in marks.unique() for mark in mark_words.split() if mark.startswith(ADDED)}
    exact = {}
    for column in columns & set(frame.columns):
        added = marks.str.split().map(lambda words, mark=f"{ADDED}{column}": mark in words)
        exact[column] = frame[column].where(~added, frame[column].str[1:])
    return frame.assign(**exact).drop(columns=MARKS)
