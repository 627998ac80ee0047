"""What is shown beside a judge's figures: its confusion with the reference, Verdict Confidence, F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.tables import RatingsTable
from analytics.stats.judge import calibration, differences
from analytics.stats.judge.reference import Rule, Ties


def beside_report(
    table: RatingsTable, *, judge: str, reference: Rule | None, ties: Ties, statistics: Sequence[str], **how: Any
) -> list[CellEstimate]:
    """Figures of a judge beside its main ones: ``confusion`` with the reference, the panel's mean for each of its
    scores, and Verdict Confidence if it replaces an annotator. Also F1 of each label against every annotator, and F1 of
    the annotators against each other.
    """
    rows: list[CellEstimate] = []
    if "confusion" in statistics:
        rows += calibration.calibration_report(
            table, judge=judge, statistics=["confusion"], reference=reference, ties=ties, **how
        )
    if of_items := [name for name in ("panel_given_judge", "verdict_confidence") if name in statistics]:
        rows += calibration.beside_humans(table, judge=judge, statistics=of_items, **how)
    if "f1" in statistics:
        rows += calibration.calibration_report(table, judge=judge, statistics=["f1"], reference="each", **how)
    if "human_f1" in statistics:
        of_people = differences.human_f1_report(table, by=how["by"], pool=how["pool"])
        rows += [replace(row, judge=judge) for row in of_people]
    return rows
