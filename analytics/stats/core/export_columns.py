"""What our own exports call their columns, read by name: the same file gives the same figures as the page.

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
from typing import TYPE_CHECKING, Any, cast

from analytics.stats.core.scales import LEVELS, Level, Scale, range_scale, scale_of
from analytics.stats.core.tables import FALSE_WORDS, TRUE_WORDS, TableError, TableProblem

if TYPE_CHECKING:
    import pandas as pd

MARKS, ADDED = "panelbench_marks", "'"
OTHER_NAMES = {"rater": "judge", "cluster": "scenario", "inclusion_prob": "inclusion_probability"}


def with_table_names(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame with the ratings table's own names for the columns of an export, and a note on what was read so.

    Columns keep their export's name beside the table's. The frame that was given stays as it is.
    """
    found = {name: other for name, other in OTHER_NAMES.items() if name not in frame.columns and other in frame.columns}
    if MARKS in frame.columns:
        frame = _unmarked(frame)
    read = {name: frame[other] for name, other in found.items()}
    if "cluster" in read and "item" in frame:
        scenario = frame["scenario"].fillna("")
        read["cluster"] = scenario.where(scenario.astype(str).str.strip() != "", frame["item"])
    if "applicable" not in frame.columns and "not_applicable" in frame.columns:
        found["applicable"] = "not_applicable"
        read["applicable"] = _opposite(frame["not_applicable"])
    if not read:
        return frame, []
    words = ", ".join(f"{other!r} as {name}" for name, other in found.items())
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
    """What the column says of each criterion; a file without criteria has one, called nothing."""
    import pandas as pd

    criterion = frame["criterion"].reset_index(drop=True) if "criterion" in frame else pd.Series("", range(len(frame)))
    pairs = pd.DataFrame(
        {
            "row": range(len(frame)),
            "criterion": criterion.fillna("").astype(str).str.strip(),
            "said": frame[column].to_numpy(),
        }
    )
    pairs = pairs[pairs["said"].fillna("").astype(str).str.strip() != ""]
    kept = pairs.drop_duplicates("criterion")
    known = dict(zip(kept["criterion"], kept["said"], strict=True))
    wrong = (pairs["said"] != pairs["criterion"].map(known)).to_numpy().nonzero()[0]
    if wrong.size:
        first = pairs.iloc[wrong[0]]
        sentence = (
            f"{column} {first['said']!r} contradicts {known[first['criterion']]!r} given earlier for the criterion"
        )
        raise TableError([TableProblem(int(first["row"]), sentence)])
    return {name: str(said).strip() for name, said in known.items()}


def _opposite(column: pd.Series[Any]) -> pd.Series[Any]:
    """``applicable`` from ``not_applicable``; what is neither true nor false stays for validation to refuse."""
    words = column.fillna("").astype(str).str.strip().str.lower()
    return words.replace({**dict.fromkeys(TRUE_WORDS, "false"), **dict.fromkeys(FALSE_WORDS, "true")})


def _unmarked(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the apostrophes that keep a spreadsheet from running a text, where the marks say that one was added."""
    marks = frame[MARKS].fillna("").astype(str)
    columns = {mark[1:] for said in marks.unique() for mark in said.split() if mark.startswith(ADDED)}
    exact = {}
    for column in columns & set(frame.columns):
        added = marks.str.split().map(lambda said, mark=f"{ADDED}{column}": mark in said)
        exact[column] = frame[column].where(~added, frame[column].str[1:])
    return frame.assign(**exact).drop(columns=MARKS)
