"""Checking a frame of ratings, whole columns at a time: every bad row is named, nothing is dropped silently."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.stats.core.identifiers import identifier_notes, normal_identifier
from analytics.stats.core.scales import (
    Level,
    Scale,
    default_level,
    inferred_scale,
    scale_of,
    snapped,
    spelled,
    western,
)
from analytics.stats.core.tables import (
    FALSE_WORDS,
    HUMAN_KINDS,
    MISSING,
    RATER_KINDS,
    REQUIRED,
    TRUE_WORDS,
    RatingsTable,
    TableError,
    TableProblem,
    declared_scales,
    with_table_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

_NOT_APPLICABLE = ("N/A", "n/a")
JUDGE_KINDS = ("judge", "jury")
_MOST_REPEATS = 2**53
_LARGEST = 1e50
"""A larger score is a typing error, and its powers would overflow."""
CODES_FOR_MISSING = frozenset(
    float(sign * number) for sign in (1, -1) for number in (9, 99, 999, 9999, 88, 888, 98, 998, 77, 777, 97, 997)
) | {-1.0}
DECIMAL_COMMA = r"[-+]?\d+,\d+"


def ratings_table(
    frame: pd.DataFrame,
    *,
    scales: Mapping[str, Scale] | None = None,
    level: Level | None = None,
    judges: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
    allow_values: bool = False,
) -> RatingsTable:
    """Validate a frame of ratings and number its scores; raise ``TableError`` naming every bad row.

    ``scales`` declares the scale of some criteria ("*" for all others); without a declared scale, if all scores are
    whole numbers, the scale is every whole number from lowest to highest; otherwise it is the distinct scores, sorted.
    Its level is ``level`` or the default level (text nominal, whole numbers ordinal, others interval). On such scales,
    values that are probably codes for missing (-1, 9, 99 far from the rest) and labels that differ only in case or
    spaces are problems unless ``allow_values``. ``missing``: texts that mean "no score" in the score column, beside an
    empty one; points of a declared scale are scores whatever they are called. ``judges`` names raters to be treated as
    judges when there is no ``rater_kind`` column. Names of items, raters, criteria and clusters are compared in one
    Unicode form without outer spaces (``identifiers.normal_identifier``); ``notes`` says how many were changed.
    """
    scales = scales or {}
    frame, read = with_table_names(frame)
    if absent := [column for column in REQUIRED if column not in frame.columns]:
        raise TableError([TableProblem(None, _missing(column, frame)) for column in absent])
    rows, problems, named = _with_defaults(frame, judges)
    read += named
    problems += _empty_keys(rows)
    scales = {normal_identifier(name): scale for name, scale in scales.items()}
    levels: Mapping[str, Level] = {}
    if not scales:
        scales, levels = declared_scales(frame)
        read += _about_scales(scales, levels)
        scales = {name: replace(scale, level=level or scale.level) for name, scale in scales.items()}
    texts, notes = _given(rows, scales, missing)
    scored = _scored(rows, texts, scales, level or levels, problems, allow_values=allow_values)
    problems += [*_contradictions(rows), *_contradicting_probabilities(rows)]
    rows, repeated = _without_repeated_rows(rows, problems)
    if problems:
        raise TableError(sorted(problems, key=lambda problem: -1 if problem.row is None else problem.row))
    same = rows.groupby(["item_key", "criterion", "rater"], sort=False)["repeat"]
    rows["first_repeat"] = rows["repeat"] if rows["repeat"].nunique() < 2 else same.transform("min")
    table = RatingsTable(_in_order(rows), scored)
    return replace(table, notes=(*read, *notes, *repeated, *notes_off_points(*scores_off_points(table))))


def _about_scales(scales: Mapping[str, Scale], levels: Mapping[str, Level]) -> list[str]:
    if scales:
        return ["the scale and the level of each criterion are read from the columns 'scale' and 'level'"]
    return ["the level of each criterion is read from the column 'level'"] if levels else []


def _missing(column: str, frame: pd.DataFrame) -> str:
    """The default value of a column that a file does not have."""
    alike = [name for name in map(str, frame.columns) if name.strip().lower() == column]
    hint = f": is it {alike[0]!r}? say --{column} {alike[0]}" if alike else ""
    return f"the column {column!r} is missing{hint}"


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Sorted by names, so that no figure depends on the order of the file (``row`` remembers it)."""
    import pandas as pd

    rater, criterion = (pd.factorize(rows[column], sort=True)[0] for column in ("rater", "criterion"))
    order = np.lexsort((rows["repeat"].to_numpy(), rater, rows["item_key"].to_numpy(), criterion))
    return rows.iloc[order].reset_index(drop=True)


def scores_off_points(table: RatingsTable) -> tuple[int, int]:
    """How many scores of judges lie beyond the ends of the scale, and how many between its points."""
    rows, between = table.frame, 0
    for criterion, scores in rows.loc[(rows["code"] >= 0).to_numpy()].groupby("criterion", sort=False)["score"]:
        scale = table.scales[str(criterion)]
        if scale.is_numeric:
            between += int((~scores.isin(scale.points)).sum())
    return int(rows["out_of_range"].sum()), between


def notes_off_points(beyond: int, between: int) -> Iterator[str]:
    """The notes for a reader about these numbers of scores (`scores_off_points`)."""
    if beyond:
        yield f"scores of judges beyond the ends of the scale: {beyond}; they enter no figure"
    if between:
        yield f"scores of judges between the points of the scale: {between}; rounded half up where labels are compared"


def _with_defaults(frame: pd.DataFrame, judges: Sequence[str]) -> tuple[pd.DataFrame, list[TableProblem], list[str]]:
    """The canonical columns, text for names, a ``row`` column that remembers the input's order; problems and notes."""
    import pandas as pd

    notes = [
        note
        for column, kind in IDENTIFIERS.items()
        if column in frame and not (column == "cluster" and frame[column] is frame["item"])
        for note in _about_names(frame[column], kind)
    ]
    judges = [normal_identifier(name) for name in judges]
    rows = pd.DataFrame({"item": _text(frame["item"]), "rater": _text(frame["rater"])}, index=frame.index)
    rows["row"] = np.arange(len(frame))
    rows["criterion"] = _text(frame["criterion"]) if "criterion" in frame else ""
    rows["cluster"] = _text(frame["cluster"]) if "cluster" in frame else rows["item"]
    for column in ("language", "generator"):
        rows[column] = _text(frame[column], nothing=None) if column in frame else None
    rows["item_key"] = _numbered(rows, ["item", "language", "generator"])
    kinds, problems = _rater_kinds(frame, rows, judges)
    rows["rater_kind"] = kinds
    rows["applicable"], more = _applicable(frame)
    rows["repeat"], still_more = _repeats(frame)
    rows["raw"] = frame["score"].astype(object)
    extra = [column for column in frame.columns if column not in rows and column not in ("score", "rater_kind")]
    rows[extra] = frame[extra]
    return rows.reset_index(drop=True), [*problems, *more, *still_more, *_probabilities(frame)], notes


IDENTIFIERS = {"item": "Items", "rater": "Raters", "criterion": "Criteria", "cluster": "Clusters"}


def _about_names(column: pd.Series[Any], kind: str) -> Iterator[str]:
    """Notes on the identifiers of a column: how many were changed, and which names differ so little that they may mean
    the same thing.
    """
    import pandas as pd

    if _kind(column) != "O":
        return
    names = [str(name) for name in pd.unique(column.dropna())]
    compared = {name: normal_identifier(name) for name in names}
    yield from identifier_notes(kind, [name for name in names if compared[name] != name], compared.values())


def _text(column: pd.Series[Any], nothing: str | None = "") -> pd.Series[Any]:
    """Names as text, whole numbers without .0, ``nothing`` for a missing name (code -1); each distinct name is
    converted only once.
    """
    import pandas as pd

    codes, names = pd.factorize(column)
    spelt = [spelled(float(name)) if column.dtype.kind == "f" else normal_identifier(str(name)) for name in names]
    texts = np.array([*(text or nothing for text in spelt), nothing], dtype=object)
    return pd.Series(texts[codes], index=column.index, dtype=object)


def _kind(column: pd.Series[Any]) -> str:
    """The kind of a column of numpy's numbers or bools, which need not be read as text; "O" for any other."""
    return column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"


def _numbered(rows: pd.DataFrame, columns: list[str]) -> NDArray[np.int64]:
    """A number for each distinct combination, in sorted order."""
    import pandas as pd

    number = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        codes, names = pd.factorize(rows[column].fillna(""), sort=True)
        number = np.asarray(pd.factorize(number * max(len(names), 1) + codes, sort=True)[0], dtype=np.int64)
    return number


def _rater_kinds(
    frame: pd.DataFrame, rows: pd.DataFrame, judges: Sequence[str]
) -> tuple[pd.Series[Any], list[TableProblem]]:
    import pandas as pd

    kinds = _text(frame["rater_kind"] if "rater_kind" in frame else pd.Series("", index=rows.index))
    kinds = kinds.replace({"human": "annotator", "": "annotator"})
    kinds = kinds.where(~rows["rater"].isin(list(judges)) | kinds.isin(JUDGE_KINDS), "judge")
    wrong = ~kinds.isin(RATER_KINDS)
    allowed = ", ".join(RATER_KINDS)
    return kinds, [
        TableProblem(int(row), f"rater_kind {kind!r} is not one of {allowed}")
        for row, kind in zip(rows["row"][wrong], kinds[wrong], strict=True)
    ]


def _applicable(frame: pd.DataFrame) -> tuple[NDArray[np.bool_], list[TableProblem]]:
    """False if the rater decided N/A: the ``applicable`` column is false or the score is "N/A"."""
    may_say = _kind(frame["score"]) not in "biuf"
    is_na = frame["score"].isin(_NOT_APPLICABLE).to_numpy() if may_say else np.zeros(len(frame), dtype=bool)
    if "applicable" not in frame:
        return ~is_na, []
    if _kind(frame["applicable"]) == "b":
        return frame["applicable"].to_numpy() & ~is_na, []
    words = _text(frame["applicable"]).str.lower()
    wrong = ~words.isin([*TRUE_WORDS, *FALSE_WORDS, ""]).to_numpy()
    problems = [
        TableProblem(int(row), f"applicable {words.iloc[row]!r} is neither true nor false")
        for row in wrong.nonzero()[0]
    ]
    return ~(words.isin(FALSE_WORDS).to_numpy() | is_na), problems


def _repeats(frame: pd.DataFrame) -> tuple[NDArray[np.int64], list[TableProblem]]:
    import pandas as pd

    if "repeat" not in frame:
        return np.zeros(len(frame), dtype=np.int64), []
    if _kind(frame["repeat"]) == "i" and (abs(frame["repeat"]) < _MOST_REPEATS).all():
        return frame["repeat"].to_numpy(dtype=np.int64), []
    numbers = pd.to_numeric(frame["repeat"].replace("", 0), errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~((numbers == np.floor(numbers)) & (abs(numbers) < _MOST_REPEATS))
    problems = [TableProblem(int(row), "repeat is not a whole number") for row in wrong.nonzero()[0]]
    return np.where(wrong, 0, numbers).astype(np.int64), problems


def _probabilities(frame: pd.DataFrame) -> list[TableProblem]:
    import pandas as pd

    if "inclusion_prob" not in frame:
        return []
    is_number = _kind(frame["inclusion_prob"]) == "f"
    is_filled = (frame["inclusion_prob"].notna() if is_number else _text(frame["inclusion_prob"]) != "").to_numpy()
    numbers = pd.to_numeric(frame["inclusion_prob"], errors="coerce").to_numpy(dtype=np.float64)
    wrong = is_filled & ~((numbers > 0) & (numbers <= 1))
    return [TableProblem(int(row), "inclusion_prob is not in (0, 1]") for row in wrong.nonzero()[0]]


def _empty_keys(rows: pd.DataFrame) -> list[TableProblem]:
    columns = ["item", "rater", *(["criterion"] if (rows["criterion"] != "").any() else [])]
    return [
        TableProblem(int(row), f"the {column} is empty")
        for column in columns
        for row in (rows[column] == "").to_numpy().nonzero()[0]
    ]


def _given(
    rows: pd.DataFrame, declared: Mapping[str, Scale], missing: Sequence[str]
) -> tuple[tuple[NDArray[np.float64], NDArray[Any]], list[str]]:
    """Every score as a number (NaN if it is not a number) and as text ("" if missing), and a note on words for
    missing.
    """
    import pandas as pd

    words = frozenset(missing) - {str(point) for scale in declared.values() for point in scale.points}
    codes, distinct = pd.factorize(rows["raw"].where(rows["raw"].notna(), ""))
    texts = np.array([str(value).strip() for value in distinct], dtype=object)
    spelt = pd.Series([western(text) for text in texts], dtype=object)
    numbers = pd.to_numeric(spelt, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    numbers[~np.isfinite(numbers)] = np.nan
    labels = [text if number != number else spelled(number) for text, number in zip(texts, numbers, strict=True)]
    is_word = np.array([bool({text, label} & words) for text, label in zip(texts, labels, strict=True)], dtype=bool)
    times = np.bincount(codes[rows["applicable"].to_numpy()], minlength=len(distinct))
    used = sorted((text, int(times[at])) for at, text in enumerate(texts) if is_word[at] and times[at])
    counted = ", ".join(f"{text!r} ({number} times)" for text, number in used)
    texts[is_word], numbers[is_word] = "", np.nan
    notes = [f"scores read as missing: {counted}; --missing says which words are"] if counted else []
    return (numbers[codes], texts[codes]), notes


def _scored(
    rows: pd.DataFrame,
    parsed: tuple[NDArray[np.float64], NDArray[Any]],
    declared: Mapping[str, Scale],
    level: Level | Mapping[str, Level] | None,
    problems: list[TableProblem],
    *,
    allow_values: bool,
) -> dict[str, Scale]:
    """Fill score, code, missing and out_of_range in place; returns the scale of each criterion."""
    numbers, texts = parsed
    rows["missing"] = rows["applicable"].to_numpy() & (texts == "")
    is_scored = rows["applicable"].to_numpy() & (texts != "")
    score, code, beyond = np.full(len(rows), np.nan), np.full(len(rows), -1, np.int32), np.zeros(len(rows), bool)
    scales = {}
    human = rows["rater_kind"].isin([*HUMAN_KINDS, "adjudicator", "reference"]).to_numpy()
    for criterion, everywhere in rows.groupby("criterion", sort=True).indices.items():
        index = everywhere[is_scored[everywhere]]
        scale = declared.get(str(criterion), declared.get("*"))
        part = _Scores(index, numbers[index], texts[index], human[index], str(criterion))
        try:
            own = level if isinstance(level, str) else (level or {}).get(str(criterion))
            scale = part.scale(scale, own, allow_values=allow_values)
        except TableError as error:
            problems += error.problems
            continue
        scales[str(criterion)] = scale
        score[index], code[index], beyond[index] = part.on(scale)
        problems += part.off(scale, code[index], beyond[index])
    rows["score"], rows["code"], rows["out_of_range"] = score, code, beyond
    del rows["raw"]
    return scales


class _Scores:
    """The given scores of one criterion: rows (M,), numbers, texts and whether a person gave them."""

    def __init__(
        self,
        rows: NDArray[np.intp],
        numbers: NDArray[np.float64],
        texts: NDArray[Any],
        human: NDArray[np.bool_],
        criterion: str,
    ) -> None:
        self.rows, self.numbers, self.texts, self.human = rows, numbers, texts, human
        self.name = f"criterion {criterion!r}: " if criterion else ""

    def scale(self, declared: Scale | None, level: Level | None, *, allow_values: bool) -> Scale:
        """The declared scale (an interval scale is widened by the values that occur), or the scale made from the
        values.
        """
        if declared is None:
            return self._occurring(level, allow_values=allow_values)
        if declared.any_number:
            low, high = declared.values.min(), declared.values.max()
            inside = self.numbers[(self.numbers >= low) & (self.numbers <= high)]
            return replace(declared, points=tuple(map(float, np.union1d(declared.values, inside))))
        if declared.is_numeric and declared.level in ("interval", "ratio"):
            low, high = declared.values.min(), declared.values.max()
            inside = self._points()[(self._points() >= low) & (self._points() <= high)]
            return replace(declared, points=tuple(map(float, np.union1d(declared.values, inside))), declared=True)
        return declared

    def _occurring(self, level: Level | None, *, allow_values: bool) -> Scale:
        decisive = self.human if self.human.any() else np.ones(len(self.rows), bool)
        textual = decisive & np.isnan(self.numbers)
        if not textual.any():
            if not allow_values:
                self._refuse_codes_for_missing()
            return inferred_scale(self._points(), level or default_level(np.unique(self.numbers[decisive])))
        self._refuse_slips(textual, level, is_rare=textual.sum() <= decisive.sum() / 2)
        labels = self._labels()
        if not allow_values:
            self._refuse_twins(labels)
        return scale_of(sorted(set(labels)), level or "nominal", declared=False)

    def _refuse_codes_for_missing(self) -> None:
        """Refuse numbers that mean "no score" in many files, if they are outside the range of all other scores and far
        from it.
        """
        points = self._points()
        others = points[~np.isin(points, list(CODES_FOR_MISSING))]
        if not others.size:
            return
        low, high = float(others[0]), float(others[-1])
        far = max(1.0, (high - low) / 2) if (points == np.floor(points)).all() else (high - low) / 2
        below, above = low - points > far, points - high > far
        if low >= 0 and high > 1:
            below |= points < 0  # -1, 0, 1 is a scale; -1 beside 0 to 3 hardly is
        suspects = points[(below | above) & np.isin(points, list(CODES_FOR_MISSING))]
        problems = []
        for point in suspects:
            here = np.flatnonzero(self.numbers == point)
            problems.append(
                TableProblem(
                    int(self.rows[here[0]]),
                    f"{self.name}score {self.texts[here[0]]!r} (in {len(here)} rows) looks like a code for a missing "
                    f"score: the others lie from {spelled(low)} to {spelled(high)}. Say which: --missing "
                    f"{self.texts[here[0]]}, or --scale with all points, or --allow-values to take it for a score",
                )
            )
        if problems:
            raise TableError(problems)

    def _refuse_twins(self, labels: NDArray[Any]) -> None:
        """Refuse labels that differ only in upper and lower case or spaces."""
        spellings: dict[str, list[str]] = {}
        for label in sorted(set(labels)):
            spellings.setdefault(" ".join(unicodedata.normalize("NFKC", label).casefold().split()), []).append(label)
        problems = []
        for twins in spellings.values():
            if len(twins) > 1:
                counted = " and ".join(f"{twin!r} (in {int((labels == twin).sum())} rows)" for twin in twins)
                first = int(self.rows[np.isin(labels, twins)].min())
                problems.append(
                    TableProblem(
                        first,
                        f"{self.name}scores {counted} differ only in case or spaces: write them alike, or say that "
                        "they are different labels with --scale or --allow-values",
                    )
                )
        if problems:
            raise TableError(problems)

    def _refuse_slips(self, textual: NDArray[np.bool_], level: Level | None, *, is_rare: bool) -> None:
        """Refuse texts among numbers as typing errors, unless the level says that all scores are labels.

        ``textual`` decides. If it refuses, the texts of every rater are named, so that a person can correct a file in
        one step.
        """
        rows = list(self._of(np.isnan(self.numbers)))
        fault = f"is not a number, but the level is {level}" if level not in (None, "nominal") else None
        if level is None and any(re.fullmatch(DECIMAL_COMMA, text) for text in self.texts[textual]):
            rows = [(row, text) for row, text in rows if re.fullmatch(DECIMAL_COMMA, text)]
            fault = "has a decimal comma: write a point (labels? say --level nominal)"
        elif level is None and is_rare:
            fault = "is not a number, but most of the others are (labels? say --level nominal)"
        if fault:
            raise TableError([TableProblem(row, f"{self.name}score {text!r} {fault}") for row, text in rows])

    def _labels(self) -> NDArray[Any]:
        """(M,) the scores as labels: a number is one label however it is written."""
        pairs = zip(self.texts, self.numbers.tolist(), strict=True)
        return np.array([text if number != number else spelled(number) for text, number in pairs], dtype=object)

    def _points(self) -> NDArray[np.float64]:
        """Sorted distinct numbers; fractions from a judge are not points of a scale on which people give whole
        numbers.
        """
        people = self.numbers[self.human & ~np.isnan(self.numbers)]
        whole = people.size > 0 and bool((people == np.floor(people)).all())
        numbers = self.numbers[~np.isnan(self.numbers)]
        kept = numbers[numbers == np.floor(numbers)] if whole else numbers
        return np.unique(kept)

    def on(self, scale: Scale) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.bool_]]:
        """(M,) the score, code and out_of_range of every score on the scale."""
        if not scale.is_numeric:
            order = {spelled(point): index for index, point in enumerate(scale.points)}
            codes = np.array([order.get(label, -1) for label in self._labels()], dtype=np.int32)
            return np.full(len(codes), np.nan), codes, ~self.human & (codes < 0)
        points = scale.values
        position = np.clip(np.searchsorted(points, self.numbers), 0, max(len(points) - 1, 0))
        hit = points[position] == self.numbers if len(points) else np.zeros(len(self.rows), bool)
        ends = (points.min(), points.max()) if len(points) else (np.inf, -np.inf)
        beyond = (self.numbers < ends[0]) | (self.numbers > ends[1])
        code = np.where(hit, position, -1)
        between = ~hit & ~beyond & ~self.human & ~np.isnan(self.numbers)
        code[between] = snapped(self.numbers[between], scale)
        return self.numbers, code.astype(np.int32), beyond & ~self.human

    def off(self, scale: Scale, code: NDArray[np.int32], beyond: NDArray[np.bool_]) -> Iterator[TableProblem]:
        """Scores by people that are not on the scale, and texts from judges if numbers are expected."""
        for row, text in self._of(~beyond & (abs(self.numbers) > _LARGEST)):
            yield TableProblem(row, f"{self.name}score {text!r} is too large to compute with")
        stray = (code < 0) & ~beyond & (self.human | np.isnan(self.numbers))
        points = ", ".join(spelled(point) for point in scale.points[:12])
        if scale.any_number:
            points = f"from {scale.label(0)} to {scale.label(-1)}"
        for row, text, number in zip(self.rows[stray], self.texts[stray], self.numbers[stray], strict=True):
            missing_number = scale.is_numeric and bool(np.isnan(number))
            fault = "is not a number" if missing_number else f"is not on the scale {points}"
            yield TableProblem(int(row), f"{self.name}score {text!r} {fault}")
        for row, text in self._of((self.numbers < 0) & (scale.level == "ratio")):
            yield TableProblem(row, f"{self.name}score {text!r} is below 0 on a ratio scale")

    def _of(self, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, str]]:
        return zip(self.rows[chosen].tolist(), self.texts[chosen], strict=True)


def _without_repeated_rows(rows: pd.DataFrame, problems: list[TableProblem]) -> tuple[pd.DataFrame, list[str]]:
    """Identical repeated rows count once, with a note; contradicting rows are problems."""
    key = ["item_key", "rater", "criterion", "repeat"]
    again = rows.duplicated(key, keep="first")
    if not again.any():
        return rows, []
    same = rows.duplicated([*key, "code", "score", "applicable", "missing"], keep="first")
    problems += [
        TableProblem(int(row), f"rater {rater!r} already rated item {item!r} with another score")
        for row, rater, item in rows.loc[again & ~same, ["row", "rater", "item"]].itertuples(index=False)
    ]
    note = f"rows that repeat a rating with the same score: {int(same.sum())}; each rating counts once"
    return rows[~again].copy(), [note]


def _contradictions(rows: pd.DataFrame) -> list[TableProblem]:
    """Contradictions: an item in more than one cluster, or a rater of more than one kind."""
    import pandas as pd

    problems = []
    for owner, column, noun in (("item_key", "cluster", "item"), ("rater", "rater_kind", "rater")):
        owners, values = (pd.factorize(rows[name])[0] for name in (owner, column))
        first = np.zeros(int(owners.max(initial=-1)) + 1, dtype=np.intp)
        first[owners[::-1]] = np.arange(len(rows))[::-1]  # of several rows the first is written last
        place = first[owners]
        wrong = values != values[place]
        problems += [
            TableProblem(int(row), f"{column} {here!r} contradicts {before!r} given earlier for the same {noun}")
            for row, here, before in zip(
                rows["row"][wrong], rows[column][wrong], rows[column].to_numpy()[place[wrong]], strict=True
            )
        ]
    return problems


def _contradicting_probabilities(rows: pd.DataFrame) -> list[TableProblem]:
    """An item and criterion has one probability for all people on one panel, because it was drawn once.

    A judge's rows may differ: a judge scores everything (1) or a draw of its own, whatever was drawn for people.
    """
    import pandas as pd

    if "inclusion_prob" not in rows:
        return []
    stated = pd.to_numeric(rows["inclusion_prob"], errors="coerce")
    if stated.nunique() < 2:
        return []
    draw = ["item_key", "criterion", *(["panel"] if "panel" in rows else [])]
    judge = rows["rater"].where(rows["rater_kind"].isin(JUDGE_KINDS), "")
    first = stated.groupby([*(rows[column] for column in draw), judge], sort=False, dropna=False).transform("first")
    wrong = (stated.notna() & (stated != first)).to_numpy()
    return [
        TableProblem(int(row), f"inclusion_prob {here:g} contradicts {before:g} given earlier for the same item")
        for row, here, before in zip(rows["row"][wrong], stated[wrong], first[wrong], strict=True)
    ]
