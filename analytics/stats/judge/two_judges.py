"""One judge beside another: the figures of a judge and a panel with the second judge in the panel's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.tables import RatingsTable
from analytics.stats.judge import calibration, mcnemar, soundness


def two_judges_report(
    table: RatingsTable,
    *,
    pair: tuple[str, str],
    statistics: Sequence[str],
    by: Sequence[str] = ("language", "criterion"),
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Per cell the first judge of ``pair`` beside the second as if it were the panel; both judges' first answers.

    ``tost`` is their equivalence, ``mcnemar`` the test of their errors; all others are those of calibration.
    """
    frame = table.frame
    mine = frame[(frame["rater"].isin(pair) & (frame["repeat"] == frame["first_repeat"])).to_numpy()]
    both = replace(table, frame=mine)
    rows: list[CellEstimate] = []
    if figures := [name for name in statistics if name not in ("tost", "mcnemar")]:
        kinds = mine["rater_kind"].where(mine["rater"] != pair[1], "annotator")
        rows += calibration.calibration_report(
            replace(table, frame=mine.assign(rater_kind=kinds)), judge=pair[0], reference="median", statistics=figures,
            by=by, pool=pool, bootstrap=bootstrap, confidence=confidence, seed=seed,
        )  # fmt: skip
    if "tost" in statistics:
        rows += soundness.equivalence_report(both, raters=pair, by=by, pool=pool)
    if "mcnemar" in statistics:
        rows += mcnemar.mcnemar_report(both, raters=pair, truth="labels", by=by, pool=pool)
    return [replace(row, judge=None, raters=pair, reference=None) for row in rows]
