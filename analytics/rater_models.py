"""Models of raters of a question (METHODS 1): Rasch severities, variance by source, and Dawid and Skene's accuracies.

scipy and pandas are loaded when a report is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable

STATISTICS = ("rasch_severity", "rasch_infit", "variance_share", "dependability", "annotator_accuracy")


def rater_model_rows(
    table: RatingsTable, *, by: Sequence[str], pool: bool, confidence: float, statistics: Sequence[str]
) -> list[CellEstimate]:
    """The rows of these models. Dawid and Skene's is fitted in each language; judges are in the first model only."""
    from analytics.stats.agreement import generalizability, rasch
    from analytics.stats.judge import reference

    how = {"by": by, "pool": pool, "confidence": confidence}
    rows: list[CellEstimate] = []
    if names := [name for name in statistics if name in rasch.STATISTICS]:
        rows += rasch.rasch_report(table, statistics=names, **how)  # type: ignore[arg-type]
    if names := [name for name in statistics if name in generalizability.STATISTICS]:
        rows += generalizability.generalizability_report(table, statistics=names, **how)  # type: ignore[arg-type]
    if "annotator_accuracy" in statistics:
        columns = by if "language" in by else (*by, "language")
        of_labels = reference.reference_report(table, rule="dawid_skene", by=columns, pool=pool)
        rows += [row for row in of_labels if row.estimate.statistic == "annotator_accuracy"]
    return rows
