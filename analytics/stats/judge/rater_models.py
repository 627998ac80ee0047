"""Models of raters together: Rasch, drift, variance by source, Dawid and Skene."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.stats.agreement import generalizability, rasch, rasch_drift
from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.tables import RatingsTable
from analytics.stats.judge import reference


def rater_models_report(
    table: RatingsTable, *, by: Sequence[str], pool: bool, confidence: float, statistics: Sequence[str]
) -> list[CellEstimate]:
    """The rows of these models. Dawid and Skene's is fitted in each language; judges are in Rasch's model only."""
    rows: list[CellEstimate] = []
    if names := [name for name in statistics if name in rasch.STATISTICS]:
        rows += rasch.rasch_report(table, statistics=names, by=by, pool=pool, confidence=confidence)
    if set(rasch_drift.STATISTICS) & set(statistics):
        rows += rasch_drift.drift_report(table, by=by, pool=pool, confidence=confidence)
    if names := [name for name in statistics if name in generalizability.STATISTICS]:
        rows += generalizability.generalizability_report(
            table, statistics=names, by=by, pool=pool, confidence=confidence
        )
    if "annotator_accuracy" in statistics:
        columns = by if "language" in by else (*by, "language")
        of_labels = reference.reference_report(table, rule="dawid_skene", by=columns, pool=pool)
        rows += [row for row in of_labels if row.estimate.statistic == "annotator_accuracy"]
    return rows
