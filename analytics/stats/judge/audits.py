"""Is the judge sound? Repeats, perturbations, verbosity, self-preference, use of the scale (METHODS 5).

Every audit takes arrays and gives estimates with intervals; clusters are what varies independently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.clusters import number_of
from analytics.stats.core.estimate import Estimate
from analytics.stats.core.intervals import approximate, wilson_interval
from analytics.stats.judge.ppi import classical_mean

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

MOST_EXAMPLES_PER_CLASS = 2


def repeat_consistency(scores: Floats, cluster: Codes) -> list[Estimate]:
    """Repeats of one judge on the same items (N, R), NaN where missing -> ``repeat_sd`` and ``flip_rate``.

    repeat_sd: mean over items of the standard deviation of the repeats (ddof 1). flip_rate: share of items whose
    repeats aren't all the same. Items with fewer than two repeats are left out and counted. Source: S4, section 3.
    """
    n = (~np.isnan(scores)).sum(axis=1)
    kept = n >= 2
    repeated, where = scores[kept], cluster[kept]
    spread = np.nanstd(repeated, axis=1, ddof=1) if kept.any() else np.empty(0)
    flips = np.nanmax(repeated, axis=1) > np.nanmin(repeated, axis=1) if kept.any() else np.empty(0)
    found = [("repeat_sd", spread), ("flip_rate", flips.astype(np.float64))]
    missing = int((~kept).sum())
    return [_mean(name, x, where, "no item has two repeats").with_(n_missing=missing) for name, x in found]


def perturbation(before: Floats, after: Floats, cluster: Codes) -> list[Estimate]:
    """Scores of the same items before and after a change (N,), (N,) -> shares that ``fall``, ``stay``, ``rise``, shift.

    A change that matters (a tenth of the words shuffled) should make scores fall; one that doesn't (white space) must
    leave all of them: read ``stay``. Source: S4, section 3.
    """
    both = ~(np.isnan(before) | np.isnan(after))
    gap, where = (after - before)[both], cluster[both]
    reason = "no item was scored before and after"
    shares = {"fall": gap < 0, "stay": gap == 0, "rise": gap > 0}
    found = [_mean("perturbation", x.astype(np.float64), where, reason, name) for name, x in shares.items()]
    return [*found, _mean("perturbation", gap, where, reason, "shift")]


def verbosity(error: Floats, length: Floats, language: Codes) -> Estimate:
    """Slope of the judge's error (judge - panel) (N,) on log2 of length (N,) within language (N,): points per doubling.

    Ordinary least squares after centring within language; HC3 standard error, normal interval. Undefined where length
    doesn't vary within any language. Source: HC3: MacKinnon & White 1985, doi:10.1016/0304-4076(85)90158-7.
    """
    known = ~(np.isnan(error) | np.isnan(length)) & (length > 0)
    y, x, group = error[known], np.log2(length[known]), np.unique(language[known], return_inverse=True)[1]
    size = np.bincount(group)
    y, x = (v - (np.bincount(group, weights=v) / size)[group] for v in (y, x))
    sxx = float((x**2).sum())
    n, k = len(x), len(size)
    if n < k + 2 or sxx < 1e-12:
        reason = "length does not vary within a language, or there are too few items"
        return Estimate(statistic="verbosity", value=None, n_items=n, reason=reason)
    slope = float((x * y).sum() / sxx)
    leverage = 1 / size[group] + x**2 / sxx
    scaled = (y - slope * x) / np.clip(1 - leverage, 1e-9, None)
    se = float(np.sqrt(((x * scaled) ** 2).sum()) / sxx)
    return _normal("verbosity", slope, se, n, "OLS within language, HC3")


def self_preference(scores: Floats, own: NDArray[np.bool_], cluster: Codes) -> Estimate:
    """What judges give texts of their own family beyond what other judges give the same texts.

    ``scores`` (N, J) of J judges on the same N items, ``own`` (N, J) whether the item's generator is of the judge's
    family. Item and judge means are taken out (an item all judges like, a judge that is lenient throughout); the
    estimate is the slope on ``own``. Undefined below two judges, or where no item has both kinds.
    """
    known = ~np.isnan(scores)
    if scores.shape[1] < 2 or not own[known].any() or own[known].all():
        reason = "it needs two judges or more, and texts of their own and of other families"
        return Estimate(statistic="self_preference", value=None, n_items=len(scores), reason=reason)
    x, y = _residuals(own.astype(np.float64), known), _residuals(scores, known)
    sxx = float((x**2).sum())
    if sxx < 1e-12:
        reason = "own and other families are not told apart within items"
        return Estimate(statistic="self_preference", value=None, n_items=len(scores), reason=reason)
    slope = float((x * y).sum() / sxx)
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=(x * (y - slope * x)).sum(axis=1))
    scale = len(sums) / max(len(sums) - 1, 1)
    se = float(np.sqrt(scale * (sums**2).sum()) / sxx)
    method = "difference in differences, cluster-robust"
    judged = known.any(axis=1)
    found = _normal("self_preference", slope, se, int(judged.sum()), method)
    return found.with_(n_clusters=number_of(cluster[judged]), n_ratings=int(known.sum()))


def scale_use(scores: Floats, points: Floats, panel: Floats | None = None) -> list[Estimate]:
    """How a judge uses the scale: shares of the top, the bottom and the middle points, and of replies beyond it.

    ``scores`` (N,) as given, ``points`` (q,); with the panel's scores (M,) their shares follow as variant ``panel_top``
    and so on, to read the judge's beside. The middle is every point but the two ends.
    """
    found = _shares(scores, points, "")
    return found + (_shares(panel, points, "panel_") if panel is not None else [])


def unreadable(n_unreadable: int, n_calls: int) -> Estimate:
    """Share of replies that gave no score, with Wilson's interval. Source: Wilson 1927, doi:10.2307/2276774."""
    return share("unreadable", n_unreadable, n_calls)


def share(
    statistic: str,
    hits: int,
    n: int,
    variant: str | None = None,
    *,
    clusters: int | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """hits / n with Wilson's interval; undefined when n is 0.

    Fewer ``clusters`` than answers: the interval takes for independent what is not, and says that it is approximate.
    """
    if not n:
        return Estimate(statistic=statistic, variant=variant, value=None, reason="nothing was counted")
    p = hits / n
    method = approximate("Wilson", "answers taken for independent") if (clusters or n) < n else "Wilson"
    interval = wilson_interval(p, math.sqrt(p * (1 - p) / n), n, method=method, confidence=confidence)
    found = Estimate(statistic=statistic, variant=variant, value=p, n_items=n, n_clusters=clusters)
    return found.with_(**interval.as_changes())


def conditions(scores: Floats, names: Sequence[str], reference: Floats, cluster: Codes) -> list[Estimate]:
    """One judge under several prompts or temperatures (N, K) against the panel (N,): error and shift of each.

    ``condition_mae``: mean distance from the reference. ``condition_shift``: mean paired difference from the first
    condition, with its interval (S1 Table 4; S4 3.3).
    """
    found = []
    for k, name in enumerate(names):
        judged = ~(np.isnan(scores[:, k]) | np.isnan(reference))
        error = abs(scores[:, k] - reference)
        found.append(_mean("condition_mae", error[judged], cluster[judged], "nothing was judged", name))
        if k:
            both = ~np.isnan(scores[:, [0, k]]).any(axis=1)
            gap = (scores[:, k] - scores[:, 0])[both]
            found.append(_mean("condition_shift", gap, cluster[both], "no item was judged under both", name))
    return found


def few_shot_examples(labels: Floats, rng: np.random.Generator, *, per_class: int = MOST_EXAMPLES_PER_CLASS) -> Codes:
    """Indices of at most ``per_class`` held-out items per settled label (N,), NaN where the panel settled none (S4).

    The chosen items must not be judged afterwards.
    """
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:per_class] for label in np.unique(labels[~np.isnan(labels)])
    ]
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.intp)


def _mean(statistic: str, x: Floats, cluster: Codes, reason: str, variant: str | None = None) -> Estimate:
    estimate = classical_mean(x, cluster).with_(statistic=statistic, variant=variant)
    return estimate if estimate.is_defined else estimate.with_(reason=reason)


def _normal(statistic: str, value: float, se: float, n_items: int, method: str) -> Estimate:
    from analytics.stats.core.intervals import normal_interval

    interval = normal_interval(value, se, method=method)
    return Estimate(statistic=statistic, value=value, n_items=n_items).with_(**interval.as_changes())


def _shares(scores: Floats, points: Floats, prefix: str) -> list[Estimate]:
    given = scores[~np.isnan(scores)]
    low, high = points.min(), points.max()
    inside = given[(given >= low) & (given <= high)]
    counted = {"top": inside == high, "bottom": inside == low, "middle": (inside > low) & (inside < high)}
    found = [share("scale_use", int(x.sum()), len(inside), f"{prefix}{name}") for name, x in counted.items()]
    return [*found, share("scale_use", len(given) - len(inside), len(given), f"{prefix}out_of_range")]


def _residuals(x: Floats, known: NDArray[np.bool_]) -> Floats:
    """(N, J) deviations from item and judge means over known cells, by alternating until they settle; 0 if unknown."""
    left = np.where(known, x, 0.0)
    for _ in range(200):
        before = left.copy()
        for axis in (1, 0):
            n = np.maximum(known.sum(axis=axis, keepdims=True), 1)
            left = np.where(known, left - left.sum(axis=axis, keepdims=True) / n, 0.0)
        if abs(left - before).max() <= 1e-12 * abs(left).max():
            break
    return left


# Two instructions, same scores? Equivalence by two one-sided tests (METHODS 4: meta-prompt language, S0 3.5).

MARGIN = 0.05


def tost(first: Floats, second: Floats, cluster: NDArray[np.intp], *, margin: float = MARGIN) -> Estimate:
    """Mean paired difference (N,) - (N,) and the p of H1: its size is below the margin; 90 % interval.

    p = max of the one-sided p of mean > -margin and of mean < margin, cluster-robust t. p < .05 says equivalent, which
    is the same as the 90 % interval lying within the margins. Source: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    from scipy.special import stdtr

    both = ~(np.isnan(first) | np.isnan(second))
    cluster = cluster[both]
    gap = classical_mean((first - second)[both], cluster, confidence=0.90).with_(statistic="tost")
    if gap.value is None or gap.se is None:
        return gap.with_(value=None, reason="equivalence needs pairs in two clusters or more")
    df = len(np.unique(cluster)) - 1
    if gap.se == 0:
        return gap.with_(p=float(abs(gap.value) >= margin), note=f"margin {margin:g}; every difference is the same")
    t_low, t_high = (gap.value + margin) / gap.se, (gap.value - margin) / gap.se
    p = max(1 - float(stdtr(df, t_low)), float(stdtr(df, t_high)))
    return gap.with_(p=p, method="TOST, cluster-robust t", note=f"margin {margin:g}")
