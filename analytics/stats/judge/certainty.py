"""How sure annotators are of their scores, and whether they agree more with the others where they are surer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.association import spearman
from analytics.stats.judge.differences import paired_estimate
from analytics.stats.judge.judge_against_panel import cell_key
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("mean_certainty", "certainty_rho")
ENDS = (0.0, 100.0)
_ANNOTATION = ["item_key", "rater"]


def certainty_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    statistics: Sequence[str] = STATISTICS,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Per cell, from the column ``certainty``, which has one number from 0 to 100 for all scores of an annotation.
    Of several annotations of one item by one annotator (pooled criteria) it is the mean of their certainties.

    ``mean_certainty``: the mean over items of the annotators' mean, cluster-robust, within 0 and 100.
    ``certainty_rho`` of each annotator: Spearman's rho between their certainty and how near their score is to those of
    the others on the same item and criterion. Nearness is the mean distance in points, or on a nominal scale the share
    of equal scores; of several criteria it is their mean. Clusters are left out, or resampled where they are many.
    Cells without a certainty have no rows. Level: ordinal. Source: Spearman 1904, doi:10.2307/1412159.
    """
    if "certainty" not in table.frame:
        return []
    report: list[CellEstimate] = []
    for cell in cells(table.annotators(), by=by, pool=pool):
        frame = _first_ratings(cell)
        distinct = frame.drop_duplicates([*_ANNOTATION, "certainty"]).groupby(_ANNOTATION, observed=True)["certainty"]
        means = distinct.mean().rename("certainty").reset_index()
        frame = frame.drop(columns="certainty").merge(means, on=_ANNOTATION, how="left")
        sure = frame[frame["certainty"].notna().to_numpy()]
        if sure.empty:
            continue
        if "mean_certainty" in statistics:
            report.append(CellEstimate(estimate=_mean(frame, confidence), cell=cell_key(cell)))
        near = _nearness(sure, cell) if "certainty_rho" in statistics else {}
        for name, own in near.items():
            estimate = paired_estimate(
                "certainty_rho", None, spearman, own[["certainty", "near"]].to_numpy(dtype=np.float64), own["cluster"],
                resamples=bootstrap, seed=seed, confidence=confidence,
            ).with_(n_raters=1, n_ratings=len(own), level=cell.scale.level)  # fmt: skip
            report.append(CellEstimate(estimate=estimate, cell=cell_key(cell), annotator=name))
    return report


def _first_ratings(cell: Cell) -> pd.DataFrame:
    """What was given at first, scores and N/A, with the certainty as a number."""
    import pandas as pd

    is_first = (cell.frame["repeat"] == cell.frame["first_repeat"]) & ~cell.frame["missing"]
    rows = cell.frame[is_first.to_numpy()]
    return rows.assign(certainty=pd.to_numeric(rows["certainty"], errors="coerce"))


def _mean(frame: pd.DataFrame, confidence: float) -> Estimate:
    annotations = frame.drop_duplicates(_ANNOTATION)
    sure = annotations[annotations["certainty"].notna().to_numpy()]
    of_items = sure.groupby("item_key").agg(certainty=("certainty", "mean"), cluster=("cluster", "first"))
    cluster = np.unique(of_items["cluster"].to_numpy(dtype=str), return_inverse=True)[1]
    mean = classical_mean(of_items["certainty"].to_numpy(dtype=np.float64), cluster, confidence=confidence, ends=ENDS)
    return mean.with_(
        statistic="mean_certainty", n_raters=int(sure["rater"].nunique()), n_ratings=len(sure),
        n_missing=len(annotations) - len(sure),
    )  # fmt: skip


def _nearness(sure: pd.DataFrame, cell: Cell) -> dict[str, pd.DataFrame]:
    """By annotator, a row for each item that somebody else scored, too: certainty, ``near``, cluster."""
    scored = cell.frame[(cell.frame["code"] >= 0).to_numpy()][["item_key", "criterion", "rater", "score"]]
    mine = sure[(sure["code"] >= 0).to_numpy()]
    pairs = mine.merge(scored, on=["item_key", "criterion"], suffixes=("", "_other"))
    pairs = pairs[(pairs["rater"] != pairs["rater_other"]).to_numpy()]
    distance = (pairs["score"] - pairs["score_other"]).abs()
    near = -distance if cell.scale.has_order else (distance == 0).astype(float)
    pairs = pairs.assign(near=near, rater=pairs["rater"].astype(str))
    columns = {"certainty": ("certainty", "first"), "near": ("near", "mean"), "cluster": ("cluster", "first")}
    of_items = pairs.groupby(_ANNOTATION, observed=True).agg(**columns).reset_index()
    return {str(name): own for name, own in of_items.groupby("rater")}
