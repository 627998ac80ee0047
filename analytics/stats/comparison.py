"""Two raters on the same items: McNemar's test, cell by cell (METHODS 3; S3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analytics.stats import mcnemar
from analytics.stats.calibration import panel_labels
from analytics.stats.estimate import CellEstimate, Estimate
from analytics.stats.meeting import Meeting, key_of, meet
from analytics.stats.multiple import holm
from analytics.stats.scales import snapped
from analytics.stats.tables import Cell, RatingsTable, cells

Floats = NDArray[np.float64]

TRUTHS = ("labels", "mode", "reference")
_NO_TRUTH = {
    "labels": "a scale of two points is needed to say which label is the flag",
    "mode": "no shared item has a mode of other annotators to be right about",
    "reference": "no shared item has a reference or adjudicated score",
}


def report(
    table: RatingsTable,
    *,
    raters: tuple[str, str],
    by: Sequence[str] = ("language", "criterion"),
    truth: str | None = None,
    pool: bool = False,
) -> list[CellEstimate]:
    """McNemar's test of two raters in every cell, variants exact, midp, chi2, chi2_corrected.

    ``truth`` says what counts as a hit. ``labels``: giving the higher of two labels (do both flag equally often?).
    ``mode``: matching the mode of the other annotators. ``reference``: matching the file's reference or adjudicated
    score. By default the file's reference where it has one, labels on a two-point scale, else the mode. Where clusters
    hold several of the items, the clusters are compared (``mcnemar.clustered``).
    """
    found: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        rule = truth or _default_truth(cell)
        estimates = _estimates(cell, raters, rule)
        found += [CellEstimate(estimate=e, cell=key_of(cell), raters=raters, reference=rule) for e in estimates]
    return _with_holm(found)


def _with_holm(found: list[CellEstimate]) -> list[CellEstimate]:
    """The same test in every cell is one family: Holm's p in the note, with its size."""
    for variant in mcnemar.VARIANTS:
        family = [i for i, one in enumerate(found) if one.estimate.variant == variant and one.estimate.p is not None]
        corrected = holm([p for i in family if (p := found[i].estimate.p) is not None])
        for i, p in zip(family, corrected, strict=True):
            if len(family) > 1:
                note = f"{found[i].estimate.note}; Holm p {p:.4g} in a family of {len(family)}"
                found[i] = replace(found[i], estimate=found[i].estimate.with_(note=note))
    return found


def _default_truth(cell: Cell) -> str:
    if cell.frame["rater_kind"].isin(["reference", "adjudicator"]).any():
        return "reference"
    return "labels" if cell.scale.q == 2 else "mode"


def _estimates(cell: Cell, raters: tuple[str, str], truth: str) -> list[Estimate]:
    scores, labels, cluster = _scored(cell, raters, truth)
    shared = ~np.isnan(scores).any(axis=1)
    both = shared & ~np.isnan(labels)
    first, second = ((scores[both, k] == labels[both]) for k in range(2))
    found = mcnemar.estimates(first, second, cluster[both])
    if shared.any() and not both.any():
        found = [e.with_(reason=_NO_TRUTH[truth]) for e in found]
    b, c = int((first & ~second).sum()), int((~first & second).sum())
    note = f"{raters[0]} alone {b}, {raters[1]} alone {c}"
    return [
        e.with_(
            level=cell.scale.level,
            note="; ".join(filter(None, (note, e.note))),
            n_missing=int((~both).sum()),
        )
        for e in found
    ]


def _scored(cell: Cell, raters: tuple[str, str], truth: str) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """(N, 2) the raters' scores, rounded half up to the scale, (N,) what counts as right, (N,) the cluster."""
    pair = _columns(cell, raters)
    if truth == "labels":
        right = np.full(len(pair.humans), pair.scale.values[-1] if pair.scale.q == 2 else np.nan)
        return pair.humans, right, pair.cluster
    return pair.humans, _truth(cell, raters, truth, pair), pair.cluster


def _columns(cell: Cell, raters: tuple[str, str]) -> Meeting:
    """Both raters as columns of a panel, whatever kind they are."""
    frame = cell.frame[cell.frame["rater"].isin(raters)].assign(rater_kind="annotator")
    pair = meet(Cell(cell.key, frame, cell.scale), judge="", raters=raters)
    humans = np.full((len(pair.humans), 2), np.nan)
    for k, name in enumerate(raters):
        if name in pair.annotators:
            own = pair.humans[:, pair.annotators.index(name)]
            given = ~np.isnan(own)
            humans[given, k] = cell.scale.values[snapped(own[given], cell.scale)]
    return Meeting(pair.judge, humans, pair.cluster, raters, cell.scale, pair.rows)


def _truth(cell: Cell, raters: tuple[str, str], truth: str, pair: Meeting) -> Floats:
    """(N,) the reference label of each item both raters scored, NaN where there is none."""
    others = cell.frame[~cell.frame["rater"].isin(raters)]
    if truth == "reference":
        others = others[others["rater_kind"].isin(["reference", "adjudicator"])].assign(rater_kind="annotator")
    rest = meet(Cell(cell.key, others, cell.scale), judge="")
    labels = panel_labels(rest, "mode") if len(rest.humans) else np.empty(0)
    keys = ["item_key", "criterion"]
    known = dict(zip(rest.rows[keys].itertuples(index=False, name=None), labels, strict=True))
    return np.array(
        [known.get(key, np.nan) for key in pair.rows[keys].itertuples(index=False, name=None)], dtype=np.float64
    )
