"""McNemar's test: do two raters get equally many of the same items right? (METHODS 3; S3 judge vs annotator.)

With clusters that hold several items the unit is the cluster: d_k = items that only the first gets right less items
that only the second does, in cluster k. If the raters are alike, every d_k may as well have the other sign. With one
item to a cluster d_k is +-1 and every variant below is the published one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln

from analytics.stats.core.estimates import NO_FAMILY, CellEstimate, Estimate, corrected_together
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.scales import snapped
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.calibration import panel_labels
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key

Whole = NDArray[np.int64]

FEW_DISCORDANT = 25
"""Below this many discordant items (or clusters) the mid-p variant is the default, from there the plain chi-square."""
DIRECT_PRODUCTS = 10**7
"""Larger convolutions go through Fourier transforms, whose rounding leaves no p value below 1e-15."""


def exact(b: int, c: int) -> float:
    """Two-sided binomial p of discordant counts b, c: min(1, 2 P(X <= min(b, c))), X ~ Bin(b + c, 1/2); 1 at 0, 0.

    Source: McNemar 1947, doi:10.1007/BF02295996.
    """
    return min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5)))


def midp(b: int, c: int) -> float:
    """Mid-p of discordant counts b, c: the doubled tail less P(X = min(b, c)); 1 where b = c.

    Source: Fagerland, Lydersen & Laake 2013, doi:10.1186/1471-2288-13-91.
    """
    n, k = b + c, min(b, c)
    below = float(bdtr(k - 1, n, 0.5)) if k else 0.0
    # 2 P(X <= k) - P(X = k), written as a sum so that nothing cancels.
    return min(1.0, float(bdtr(k, n, 0.5)) + below)


def chi2(b: int, c: int) -> float | None:
    """Chi-square p, 1 df, of (b - c)^2 / (b + c); undefined when b + c = 0."""
    return _tail((b - c) ** 2 / (b + c)) if b + c else None


def chi2_corrected(b: int, c: int) -> float | None:
    """Chi-square p with Edwards' continuity correction, max(0, |b - c| - 1)^2 / (b + c); undefined when b + c = 0.

    Source: Edwards 1948, doi:10.1007/BF02289261.
    """
    return _tail(max(0, abs(b - c) - 1) ** 2 / (b + c)) if b + c else None


VARIANTS: dict[str, Callable[[int, int], float | None]] = {
    "exact": exact,
    "midp": midp,
    "chi2": chi2,
    "chi2_corrected": chi2_corrected,
}


def clustered(difference: Whole) -> dict[str, float | None]:
    """p of each variant from (K,) differences d_k = b_k - c_k of clusters.

    ``exact``: the share of all 2^K choices of signs with |sum +-d_k| >= |sum d_k|, counted exactly; ``midp``: less half
    of those with equality (1 at sum 0). ``chi2``: (sum d_k)^2 / sum d_k^2 with 1 df; ``chi2_corrected``:
    (|sum d_k| - 1)^2 / sum d_k^2. Undefined as in the unclustered test. Source: Yang, Sun & Hardin 2010
    (doi 10.1002/bimj.201000035), after Obuchowski 1998; signs: Fisher's randomisation test on clusters.
    """
    d = difference[difference != 0]
    total, squares = abs(int(d.sum())), int((d**2).sum())
    more, same = _sign_flips(np.abs(d), total)
    return {
        "exact": min(1.0, more + same),
        "midp": 1.0 if total == 0 else min(1.0, more + same / 2),
        "chi2": _tail(total**2 / squares) if squares else None,
        "chi2_corrected": _tail(max(0, total - 1) ** 2 / squares) if squares else None,
    }


def _sign_flips(sizes: Whole, total: int) -> tuple[float, float]:
    """P(|S| > total) and P(|S| = total), S the sum of ``sizes`` with random signs: sizes of one kind are binomial."""
    chances = np.ones(1)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        x = np.arange(count + 1)
        own = np.zeros(2 * size * count + 1)
        own[:: 2 * size] = np.exp(gammaln(count + 1) - gammaln(x + 1) - gammaln(count - x + 1) - count * np.log(2))
        if len(chances) * len(own) <= DIRECT_PRODUCTS:
            chances = np.convolve(chances, own)
        else:
            from scipy.signal import fftconvolve

            chances = np.clip(fftconvolve(chances, own), 0, None)
    away = np.abs(np.arange(len(chances)) - len(chances) // 2)
    return float(chances[away > total].sum()), float(chances[away == total].sum())


def default_variant(b: int, c: int) -> str:
    """The variant to read first: mid-p for few discordant items or clusters, the plain chi-square otherwise."""
    return "midp" if b + c < FEW_DISCORDANT else "chi2"


def mcnemar_estimates(
    is_right: NDArray[np.bool_], is_other_right: NDArray[np.bool_], cluster: NDArray[np.intp] | None = None
) -> list[Estimate]:
    """All variants for two raters' hits (N,), (N,) on the same items; the p value stands in ``value`` and ``p``.

    ``cluster`` (N,): the unit of the test where a cluster holds several of the items. The variant to read first says
    so in its note.
    """
    n = len(is_right)
    b, c = int((is_right & ~is_other_right).sum()), int((~is_right & is_other_right).sum())
    names, index = np.unique(np.arange(n) if cluster is None else cluster, return_inverse=True)
    if len(names) == n:
        p_values = {name: test(b, c) if n else None for name, test in VARIANTS.items()}
        default, method = default_variant(b, c), None
    else:
        gaps = is_right.astype(np.int64) - is_other_right
        difference = np.bincount(index, weights=gaps, minlength=len(names)).astype(np.int64)
        discordant = int((difference != 0).sum())
        p_values, default = clustered(difference), default_variant(discordant, 0)
        method = Message(
            "%(clusters)s clusters, %(discordant)s of them discordant", clusters=len(names), discordant=discordant
        )
    return [_estimate(name, p, n, method, name == default).with_(n_clusters=len(names)) for name, p in p_values.items()]


_METHODS = {
    "exact": Message("sign flips"),
    "midp": Message("sign flips, mid-p"),
    "chi2": Message("clustered chi-square"),
    "chi2_corrected": Message("clustered chi-square, corrected"),
}


def _estimate(variant: str, p: float | None, n_items: int, clusters: str | None, first: bool) -> Estimate:
    reason = None
    if p is None:
        reason = (
            Message("no discordant item: both raters are right on the same ones")
            if n_items
            else Message("no item in common")
        )
    return Estimate(
        statistic="mcnemar", variant=variant, value=p, p=p, n_items=n_items, n_raters=2, n_ratings=2 * n_items,
        reason=reason, method=clusters and f"{_METHODS[variant]} of {clusters}",
        note=Message("read this one first") if first and n_items else None,
    )  # fmt: skip


def _tail(statistic: float) -> float:
    """Upper tail of chi-square with one degree of freedom."""
    return erfc(sqrt(statistic / 2))


# Two raters on the same items: McNemar's test, cell by cell (METHODS 3; S3).


_NO_TRUTH = {
    "labels": Message("a scale of two points is needed to know the label of the flag"),
    "mode": Message("no shared item has a mode of other annotators to be right about"),
    "reference": Message("no shared item has a reference or adjudicated score"),
}


def mcnemar_report(
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
    rows: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        rule = truth or _default_truth(cell)
        estimates = _estimates(cell, raters, rule)
        rows += [CellEstimate(estimate=e, cell=cell_key(cell), raters=raters, reference=rule) for e in estimates]
    # The same test in every cell is one family.
    return corrected_together(rows, lambda row: row.estimate.variant if row.estimate.variant in VARIANTS else NO_FAMILY)


def _default_truth(cell: Cell) -> str:
    if cell.frame["rater_kind"].isin(["reference", "adjudicator"]).any():
        return "reference"
    return "labels" if cell.scale.q == 2 else "mode"


def _estimates(cell: Cell, raters: tuple[str, str], truth: str) -> list[Estimate]:
    scores, labels, cluster = _scored(cell, raters, truth)
    shared = ~np.isnan(scores).any(axis=1)
    both = shared & ~np.isnan(labels)
    first, second = ((scores[both, k] == labels[both]) for k in range(2))
    estimates = mcnemar_estimates(first, second, cluster[both])
    if shared.any() and not both.any():
        estimates = [e.with_(reason=_NO_TRUTH[truth]) for e in estimates]
    b, c = int((first & ~second).sum()), int((~first & second).sum())
    note = f"{raters[0]} alone {b}, {raters[1]} alone {c}"
    return [
        e.with_(
            level=cell.scale.level,
            note=joined((note, e.note)),
            n_missing=int((~both).sum()),
        )
        for e in estimates
    ]


def _scored(cell: Cell, raters: tuple[str, str], truth: str) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """(N, 2) the raters' scores, rounded half up to the scale, (N,) what counts as right, (N,) the cluster."""
    pair = _columns(cell, raters)
    if truth == "labels":
        right = np.full(len(pair.humans), pair.scale.values[-1] if pair.scale.q == 2 else np.nan)
        return pair.humans, right, pair.cluster
    return pair.humans, _truth(cell, raters, truth, pair), pair.cluster


def _columns(cell: Cell, raters: tuple[str, str]) -> JudgeAgainstPanel:
    """Both raters as columns of a panel, whatever kind they are."""
    frame = cell.frame[cell.frame["rater"].isin(raters)].assign(rater_kind="annotator")
    pair = JudgeAgainstPanel.of(Cell(cell.key, frame, cell.scale), judge="", raters=raters)
    humans = np.full((len(pair.humans), 2), np.nan)
    for k, name in enumerate(raters):
        if name in pair.annotators:
            own = pair.humans[:, pair.annotators.index(name)]
            has_score = ~np.isnan(own)
            humans[has_score, k] = cell.scale.values[snapped(own[has_score], cell.scale)]
    return JudgeAgainstPanel(pair.judge, humans, pair.cluster, raters, cell.scale, pair.rows)


def _truth(cell: Cell, raters: tuple[str, str], truth: str, pair: JudgeAgainstPanel) -> Floats:
    """(N,) the reference label of each item both raters scored, NaN where there is none."""
    others = cell.frame[~cell.frame["rater"].isin(raters)]
    if truth == "reference":
        others = others[others["rater_kind"].isin(["reference", "adjudicator"])].assign(rater_kind="annotator")
    rest = JudgeAgainstPanel.of(Cell(cell.key, others, cell.scale), judge="")
    labels = panel_labels(rest, "mode") if len(rest.humans) else np.empty(0)
    keys = ["item_key", "criterion"]
    known = dict(zip(rest.rows[keys].itertuples(index=False, name=None), labels, strict=True))
    return np.array(
        [known.get(key, np.nan) for key in pair.rows[keys].itertuples(index=False, name=None)], dtype=np.float64
    )
