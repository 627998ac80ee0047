"""Measures of items, numbers that nobody rated: correlations with each other, with the panel and with judges.

A measure is a column of the ratings table with one number for each item: an attribute, or a surface metric of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.stats.judge import calibration, corrected_means

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable

STATISTICS = ("pearson", "spearman", "kendall_tau_b")


def _measured(table: RatingsTable, measure: str) -> pd.DataFrame:
    """A row for each item that has the measure, with its number as ``score``."""
    import pandas as pd

    of_items = table.frame.drop_duplicates("item_key")
    numbers = pd.to_numeric(of_items[measure], errors="coerce")
    own: dict[str, Any] = {"rater": measure, "rater_kind": "judge", "criterion": measure, "score": numbers}
    return of_items.assign(**own)[numbers.notna().to_numpy()]


_NEW = frozenset(
    {"level", "scale", "score_label", "code", "missing", "out_of_range", "applicable", "missing_reason", "item_key"}
    | {"row", "repeat", "first_repeat", "rater_identified", "inclusion_prob", "weight", "panel", "blind"}
)
"""Columns of the table that say something of a rating and not of its item."""


def _as_table(rows: pd.DataFrame) -> RatingsTable:
    """A ratings table of these rows on one interval scale, from the lowest to the highest number."""
    from analytics.stats.core.scales import range_scale
    from analytics.stats.core.validation import ratings_table

    low, high = (float(rows["score"].min()), float(rows["score"].max())) if len(rows) else (0.0, 1.0)
    scale = range_scale(low, high if high > low else low + 1, None, "interval")
    plain = rows[[column for column in rows.columns if column not in _NEW]]
    return ratings_table(plain.reset_index(drop=True), scales={str(name): scale for name in rows["criterion"].unique()})


def report_on_measure(
    report: Callable[..., list[CellEstimate]],
    measure: str,
    table: RatingsTable,
    *,
    statistics: Sequence[str],
    **options: Any,
) -> list[CellEstimate]:
    """The result of ``report`` for a table with only the measure's numbers as scores, one for each item (n_items,).

    Nobody rated them: no rater and no rating is counted. Source: METHODS 6.
    """
    rows = _measured(table, measure)
    found = report(_as_table(rows), **options) if len(rows) else []
    return [
        replace(row, estimate=row.estimate.with_(n_raters=0, n_ratings=0))
        for row in found
        if row.estimate.statistic in statistics
    ]


def means_of_measure(
    table: RatingsTable, *, measure: str, by: Sequence[str], statistics: Sequence[str], confidence: float
) -> list[CellEstimate]:
    """``judge_mean`` of a measure of the items, as of a judge."""
    report = corrected_means.means_report
    return report_on_measure(report, measure, table, statistics=statistics, by=by, confidence=confidence)


def measure_report(
    table: RatingsTable, *, measure: str, other: str | None, is_measure: bool, **how: Any
) -> list[CellEstimate]:
    """Per cell the correlation of a measure's numbers (n_items,) with another one's, or on every criterion with
    numbers, with a judge's scores or (None) the panel's means. ``raters`` of a row: the pair.

    Source: METHODS 3, 6.
    """
    import pandas as pd

    mine = _measured(table, measure)
    by = [name for name in how.pop("by") if not (is_measure and name == "criterion")]
    if is_measure and other is not None:
        theirs = _measured(table, other).assign(rater_kind="annotator", criterion=measure)
        parts = [pd.concat([mine, theirs])]
    else:
        frame = table.frame
        chosen = frame["rater_kind"] == "annotator" if other is None else frame["rater"] == other
        usable = chosen & (frame["repeat"] == frame["first_repeat"]) & frame["score"].notna() & ~frame["out_of_range"]
        scored = frame[usable.to_numpy()]
        parts = [
            pd.concat([mine.assign(criterion=key), rows.assign(rater_kind="annotator")])
            for key, rows in scored.groupby("criterion")
            if table.scales[str(key)].is_numeric
        ]
    found: list[CellEstimate] = []
    for rows in parts:
        options = {**how, "by": by, "judge": measure, "reference": "mean"}
        found += calibration.calibration_report(_as_table(rows), **options)
    names = (measure, other or "panel")
    cleared = {"criterion": None} if is_measure else {}
    return [
        replace(row, judge=None, raters=names, reference=None, cell={**row.cell, **cleared})
        for row in found
        if row.estimate.statistic in how["statistics"]
    ]
