"""Agreement among raters, cell by cell: what ``panelbench stats agreement`` prints and the dashboard shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from analytics.stats.estimate import CellEstimate
from analytics.stats.tables import RatingsTable

STATISTICS = (
    "percent_agreement",
    "percent_agreement_pooled",
    "percent_agreement_exact",
    "percent_agreement_adjacent",
    "cohen_kappa",
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac",
    "brennan_prediger",
    "conger_kappa",
    "icc",
    "verdict_confidence",
)


def report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    statistics: Collection[str] | None = None,
    raters: Sequence[str] | None = None,
    positional: bool = False,
    pool: bool = False,
    bootstrap: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    interval: str = "percentile",
    leave_one_out: bool = False,
) -> list[CellEstimate]:
    """Every agreement statistic of every cell, in the order of ``STATISTICS``.

    ``raters`` names who is compared; without it the annotators are (judges, juries, adjudicators and references stay
    out). ``positional`` says that raters are anonymous slots: statistics that need to know who is who are then
    undefined with a reason. ``bootstrap=0`` gives closed-form and jackknife intervals only. ``interval`` is
    ``percentile`` or ``bca``. ``leave_one_out`` adds every count-based coefficient with each annotator left out
    (``annotator`` names the one left out). Each cell draws from its own generator, seeded by ``seed`` and the cell's
    key, so that a cell's figures don't depend on which other cells or statistics are asked for.
    """
    raise NotImplementedError
