"""Label recovery accuracy: does the judge see what the dialogue was generated from? (METHODS 4; S0 Appendix D)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.tables import grouped
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    import pandas as pd


def label_recovery(
    given: Sequence[Mapping[str, str]], recovered: Sequence[Mapping[str, str | None]], cluster: Sequence[int]
) -> list[Estimate]:
    """Share of dialogues whose parameter the judge recovers, for each parameter, then the mean over dialogues.

    ``given`` (N) are the parameters of each dialogue, ``recovered`` (N) the judge's reading; a parameter it doesn't
    name (absent or None) is missing, not wrong. Spelling is compared without case and outer blanks.
    """
    names = sorted({name for parameters in given for name in parameters})
    hits = np.full((len(given), len(names)), np.nan)
    for i, (truth, reading) in enumerate(zip(given, recovered, strict=True)):
        for j, name in enumerate(names):
            if name in truth and (seen := reading.get(name)) is not None:
                hits[i, j] = truth[name].strip().casefold() == seen.strip().casefold()
    where = np.asarray(cluster)
    known = ~np.isnan(hits)
    any_known = known.any(axis=1)
    of_each = [
        _share(hits[known[:, j], j], where[known[:, j]], name, int((~known[:, j]).sum()))
        for j, name in enumerate(names)
    ]
    overall = np.nanmean(hits[any_known], axis=1) if any_known.any() else np.empty(0)
    return [*of_each, _share(overall, where[any_known], "all", int((~any_known).sum()))]


def _share(hits: NDArray[np.float64], cluster: NDArray[np.intp], variant: str, n_missing: int) -> Estimate:
    estimate = classical_mean(hits, cluster).with_(statistic="label_recovery", variant=variant, n_missing=n_missing)
    return estimate if estimate.is_defined else estimate.with_(reason="the judge names this parameter nowhere")


def report(
    frame: pd.DataFrame, parameters: Sequence[str], *, prefix: str = "judge_", by: Sequence[str] = ()
) -> list[CellEstimate]:
    """``label_recovery`` of each parameter in every cell of a frame with a row per dialogue.

    The column ``industry`` holds the parameter, ``judge_industry`` (``prefix``) the judge's reading; an empty cell is
    none. ``cluster`` (else ``item``, else the row) is what is independent.
    """
    found = []
    for key, rows in grouped(frame, list(by)):
        given, read = [], []
        for record in rows.to_dict("records"):
            given.append({name: text for name in parameters if (text := _text(record[name]))})
            read.append({name: _text(record[prefix + name]) or None for name in parameters})
        owner = next((name for name in ("cluster", "item") if name in rows), None)
        names = rows[owner].astype(str).to_numpy() if owner else np.arange(len(rows))
        cluster = np.unique(names, return_inverse=True)[1]
        cell = dict(zip(by, key, strict=True))
        rows_of_cell = label_recovery(given, read, cluster.tolist())
        found += [CellEstimate(estimate=row.with_(n_raters=1), cell=cell) for row in rows_of_cell]
    return found


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value).strip()
