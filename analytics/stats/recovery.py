"""Label recovery accuracy: does the judge see what the dialogue was generated from? (METHODS 4; S0 Appendix D)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.stats.correction import classical_mean
from analytics.stats.estimate import Estimate


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
