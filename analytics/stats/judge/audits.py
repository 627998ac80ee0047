"""Is the judge sound? Repeats, perturbations, verbosity, self-preference, use of the scale (METHODS 5).

Every audit takes arrays and gives estimates with intervals; clusters are what varies independently.

What changes of texts and requests do (METHODS 5; S4, section 3.5): the judge's rows of the ratings table have what it
gave the same item before and after each change (`changed_scores`).

Conformal intervals: which items a judge's score leaves too open, and people should see (METHODS 3).

Is the judge stricter in one language than in another, on answers the panel finds equally good? (METHODS 4)

Differential item functioning by ordinal logistic regression: the judge's score on the panel's reference, the language,
and their product. A language effect beside the reference is uniform severity; a product is severity that changes
along the scale. Source: Zumbo 1999; Swaminathan & Rogers 1990, doi:10.1111/j.1745-3984.1990.tb00754.x.

Several judges as one: majority, median or mean of their scores (METHODS 4).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    NO_RESAMPLE_DIFFERS,
    NO_WIDTH,
    WILSON,
    CellEstimate,
    Doubt,
    Estimate,
    Shape,
    corrected_together,
    jackknife_interval,
    percentile,
    t_interval,
    wilson_interval,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import THIS_JUDGE, effective_number, error_of_mean, number_of, resampled_sums
from analytics.stats.core.scales import rounding
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.calibrators import fit_ordinal
from analytics.stats.judge.judge_against_panel import cell_key
from analytics.stats.judge.ppi import classical_mean

MOST_EXAMPLES_PER_CLASS = 2
FEW_CHANGED = 10
"""With fewer items whose repeats differ, the interval of their mean spread covers too little: approximate."""


def repeat_consistency(scores: Floats, cluster: Codes) -> list[Estimate]:
    """Repeats of one judge on the same items (N, R), NaN where missing -> ``repeat_sd`` and ``flip_rate``.

    repeat_sd: mean over items of the standard deviation of the repeats (ddof 1). flip_rate: share of items whose
    repeats aren't all the same. Items with fewer than two repeats are left out and counted; n_ratings: scores of the
    others. Intervals from clusters left out one by one: Wilson's with t of the share, t of the logarithm of the spread.
    Level: ordinal; flip_rate any. Source: S4, section 3.
    """
    n = (~np.isnan(scores)).sum(axis=1)
    kept = n >= 2
    repeated, where = scores[kept], cluster[kept]
    spread = np.nanstd(repeated, axis=1, ddof=1) if kept.any() else np.empty(0)
    flips = np.nanmax(repeated, axis=1) > np.nanmin(repeated, axis=1) if kept.any() else np.empty(0)
    measures: list[tuple[str, Floats, Shape]] = [("repeat_sd", spread, "positive")]
    measures.append(("flip_rate", flips.astype(np.float64), "share"))
    counts = {"n_missing": int((~kept).sum()), "n_ratings": int(n[kept].sum())}
    reason = Message("no item has two repeats")
    return [_mean(name, x, where, reason, shape=shape).with_(**counts) for name, x, shape in measures]


def perturbation(before: Floats, after: Floats, cluster: Codes) -> list[Estimate]:
    """Scores of the same items before and after a change (N,), (N,) -> shares that ``fall``, ``stay``, ``rise``, shift.

    A change that matters (a tenth of the words shuffled) should make scores fall; one that doesn't (white space) must
    leave all of them: read ``stay``. Source: S4, section 3.
    """
    both = ~(np.isnan(before) | np.isnan(after))
    gap, where = (after - before)[both], cluster[both]
    reason = Message("no item was scored before and after")
    shares = {"fall": gap < 0, "stay": gap == 0, "rise": gap > 0}
    estimates = [
        _mean("perturbation", x.astype(np.float64), where, reason, name, shape="share") for name, x in shares.items()
    ]
    return [*estimates, _mean("perturbation", gap, where, reason, "shift")]


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
        reason = Message("length does not vary within a language, or there are too few items")
        return Estimate(statistic="verbosity", value=None, n_items=n, reason=reason)
    slope = float((x * y).sum() / sxx)
    leverage = 1 / size[group] + x**2 / sxx
    scaled = (y - slope * x) / np.clip(1 - leverage, 1e-9, None)
    se = float(np.sqrt(((x * scaled) ** 2).sum()) / sxx)
    return _normal("verbosity", slope, se, n, Message("OLS within language, HC3"))


_ENOUGH_CLUSTERS = 15
"""With fewer clusters (their effective number) the interval of self-preference was not simulated: approximate."""


def self_preference(scores: Floats, own: NDArray[np.bool_], cluster: Codes, *, confidence: float = 0.95) -> Estimate:
    """What judges give texts of their own family beyond what other judges give the same texts.

    ``scores`` (N, J) of J judges on the same N items, ``own`` (N, J) whether the item's generator is of the judge's
    family. Item and judge means are taken out (an item all judges like, a judge that is lenient throughout); the
    estimate is the slope on ``own``. Clusters left out one by one, the judge means held, their effective number less 1
    as degrees of freedom. Undefined below two judges, or where no item has both kinds.
    Source: CV3, MacKinnon, Nielsen & Webb 2023 (doi 10.1016/j.jeconom.2022.04.001).
    """
    from scipy.special import stdtr

    known = ~np.isnan(scores)
    if scores.shape[1] < 2 or not own[known].any() or own[known].all():
        reason = Message("it needs two judges or more, and texts of their own and of other families")
        return Estimate(statistic="self_preference", value=None, n_items=len(scores), reason=reason)
    x, y = _residuals(own.astype(np.float64), known), _residuals(scores, known)
    sxx = float((x**2).sum())
    if sxx < 1e-12:
        reason = Message("own and other families are not separate within items")
        return Estimate(statistic="self_preference", value=None, n_items=len(scores), reason=reason)
    slope = float((x * y).sum() / sxx)
    index = np.unique(cluster, return_inverse=True)[1]
    moved, parts = (np.bincount(index, weights=part.sum(axis=1)) for part in (x * (y - slope * x), x**2))
    # A cluster without a text of either family says nothing about the preference: it gives no degree of freedom.
    df = effective_number(parts) - 1
    method = Message("difference in differences, cluster-robust")
    if df + 1 < _ENOUGH_CLUSTERS:
        method = approximate(method, Message("few clusters"))
    with np.errstate(divide="ignore", invalid="ignore"):
        se = float(np.sqrt((len(parts) - 1) / len(parts) * ((moved / (sxx - parts)) ** 2).sum()))
    judged = known.any(axis=1)
    p = float(2 * stdtr(df, -abs(slope) / se)) if math.isfinite(se) and se > NO_WIDTH and df >= 1 else None
    interval = t_interval(slope, se, df, method=method, confidence=confidence)
    return Estimate(
        statistic="self_preference", value=slope, p=p, n_items=int(judged.sum()),
        n_clusters=number_of(cluster[judged]), n_ratings=int(known.sum()),
    ).with_(**interval.as_changes())  # fmt: skip


def scale_use(scores: Floats, points: Floats, panel: Floats | None = None) -> list[Estimate]:
    """How a judge uses the scale: shares of the top, the bottom and the middle points, and of replies beyond it.

    ``scores`` (N,) as given, ``points`` (q,); with the panel's scores (M,) their shares follow as variant ``panel_top``
    and so on, to read the judge's beside. The middle is every point but the two ends.
    """
    estimates = _shares(scores, points, "")
    return estimates + (_shares(panel, points, "panel_") if panel is not None else [])


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
        return Estimate(statistic=statistic, variant=variant, value=None, reason=Message("nothing was counted"))
    p = hits / n
    method = approximate(WILSON, Message("answers taken for independent")) if (clusters or n) < n else WILSON
    interval = wilson_interval(p, math.sqrt(p * (1 - p) / n), n, method=method, confidence=confidence)
    estimate = Estimate(statistic=statistic, variant=variant, value=p, n_items=n, n_clusters=clusters)
    return estimate.with_(**interval.as_changes())


def conditions(scores: Floats, names: Sequence[str], reference: Floats, cluster: Codes) -> list[Estimate]:
    """One judge under several prompts or temperatures (N, K) against the panel (N,): error and shift of each.

    ``condition_mae``: mean distance from the reference. ``condition_shift``: mean paired difference from the first
    condition, with its interval (S1 Table 4; S4 3.3).
    """
    estimates = []
    for k, name in enumerate(names):
        judged = ~(np.isnan(scores[:, k]) | np.isnan(reference))
        error = abs(scores[:, k] - reference)
        estimates.append(_mean("condition_mae", error[judged], cluster[judged], Message("nothing was judged"), name))
        if k:
            both = ~np.isnan(scores[:, [0, k]]).any(axis=1)
            gap = (scores[:, k] - scores[:, 0])[both]
            estimates.append(
                _mean("condition_shift", gap, cluster[both], Message("no item was judged under both"), name)
            )
    return estimates


def few_shot_examples(labels: Floats, rng: np.random.Generator, *, per_class: int = MOST_EXAMPLES_PER_CLASS) -> Codes:
    """Indices of at most ``per_class`` held-out items per settled label (N,), NaN where the panel settled none (S4).

    The chosen items must not be judged afterwards.
    """
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:per_class] for label in np.unique(labels[~np.isnan(labels)])
    ]
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.intp)


def _mean(
    statistic: str, x: Floats, cluster: Codes, reason: str, variant: str | None = None, *, shape: Shape = "free"
) -> Estimate:
    """Mean of (n,) numbers with its interval from clusters (n,), made for what the mean can be."""
    estimate = classical_mean(x, cluster).with_(statistic=statistic, variant=variant)
    if not estimate.is_defined:
        return estimate.with_(reason=reason)
    if shape == "free":
        return estimate.with_(p=_p_of_zero(estimate, cluster))
    value, n_clusters = float(x.mean()), number_of(cluster)
    changed = int(np.count_nonzero(x))
    few = (
        Doubt(Message("%(items)s items are not 0", items=changed))
        if shape == "positive" and changed < FEW_CHANGED
        else None
    )
    size = float(np.abs(x).max())
    interval = jackknife_interval(
        value, *error_of_mean(x, cluster), shape, n=n_clusters, doubt=few, unit=size, by=Message("clusters left out")
    )
    base = Estimate(statistic=statistic, variant=variant, value=value, n_items=len(x), n_clusters=n_clusters)
    return base.with_(**interval.as_changes())


def _p_of_zero(estimate: Estimate, cluster: Codes) -> float | None:
    """Two-sided p that a mean is 0: t from clusters left out one by one; None where nothing varies."""
    from scipy.special import stdtr

    if estimate.value is None or not estimate.se or estimate.se <= NO_WIDTH or number_of(cluster) < 2:
        return None
    df = max(effective_number(np.unique(cluster, return_counts=True)[1]) - 1, 1.0)
    return float(2 * stdtr(df, -abs(estimate.value) / estimate.se))


def _normal(statistic: str, value: float, se: float, n_items: int, method: str) -> Estimate:
    from scipy.special import ndtr

    from analytics.stats.core.estimates import normal_interval

    interval = normal_interval(value, se, method=method)
    p = float(2 * ndtr(-abs(value) / se)) if math.isfinite(se) and se > NO_WIDTH else None
    return Estimate(statistic=statistic, value=value, p=p, n_items=n_items).with_(**interval.as_changes())


def _shares(scores: Floats, points: Floats, prefix: str) -> list[Estimate]:
    known = scores[~np.isnan(scores)]
    low, high = points.min(), points.max()
    inside = known[(known >= low) & (known <= high)]
    counted = {"top": inside == high, "bottom": inside == low, "middle": (inside > low) & (inside < high)}
    estimates = [share("scale_use", int(x.sum()), len(inside), f"{prefix}{name}") for name, x in counted.items()]
    return [*estimates, share("scale_use", len(known) - len(inside), len(known), f"{prefix}out_of_range")]


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
        return gap.with_(value=None, reason=Message("equivalence needs pairs in two clusters or more"))
    df, margins = len(np.unique(cluster)) - 1, Message("margin %(margin)s", margin=f"{margin:g}")
    if gap.se == 0:
        return gap.with_(
            p=float(abs(gap.value) >= margin), note=joined((margins, Message("every difference is the same")))
        )
    t_low, t_high = (gap.value + margin) / gap.se, (gap.value - margin) / gap.se
    p = max(1 - float(stdtr(df, t_low)), float(stdtr(df, t_high)))
    return gap.with_(p=p, method=Message("TOST, cluster-robust t"), note=margins)


# --- conformal intervals ---------------------------------------------------------------------------------------------
def radius(f: Floats, y: Floats, cluster: Codes, *, confidence: float = 0.9) -> float:
    """Split-conformal radius from held-out judge (or calibrated) scores f (n,) and panel scores y (n,).

    The ceil((n + 1) confidence)-th smallest error |y - f|, each cluster standing with its largest error: clusters are
    what is exchangeable. Infinite when there are too few of them to promise anything. f must not have been fitted on
    these labels. Source: Lei et al. 2018, doi:10.1080/01621459.2017.1307116.
    """
    clusters, index = np.unique(cluster, return_inverse=True)
    worst = np.zeros(len(clusters))
    np.maximum.at(worst, index, abs(y - f))
    place = int(np.ceil((len(worst) + 1) * confidence))
    return float(np.sort(worst)[place - 1]) if place <= len(worst) else float("inf")


def conformal_intervals(f: Floats, half: float, points: Floats, *, snap: bool = True) -> Floats:
    """(m, 2) bounds of the panel score of new items from their scores f (m,), cut to the scale's ends.

    ``snap`` keeps only the points of an ordinal scale inside the interval; where there are none, the nearest point.
    """
    low, high = np.clip(f - half, points[0], points[-1]), np.clip(f + half, points[0], points[-1])
    if not snap:
        return np.column_stack([low, high])
    # A hair's width lets a point on the very edge count as inside.
    edge = rounding(points)
    first = np.searchsorted(points, low - edge)
    last = np.searchsorted(points, high + edge, side="right") - 1
    nearest = abs(points[:, None] - f).argmin(axis=0)
    is_empty = first > last
    return np.column_stack([points[np.where(is_empty, nearest, first)], points[np.where(is_empty, nearest, last)]])


def for_people(bounds: Floats, widest: float) -> NDArray[np.bool_]:
    """(m,) items whose interval (m, 2) is wider than what may be left to the judge."""
    wide: NDArray[np.bool_] = bounds[:, 1] - bounds[:, 0] > widest * (1 + 1e-9)
    return wide


# --- severity by language --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Functioning:
    """Likelihood-ratio tests and the language effect in logits (positive: more lenient than the first language).

    ``shift`` (L - 1,), ``p_uniform`` and ``p_nonuniform`` are None with a ``reason`` when the model can't be fitted.
    """

    shift: tuple[float, ...] | None
    p_uniform: float | None
    p_nonuniform: float | None
    n_items: int
    reason: str | None = None


def differential_functioning(judge: Codes, reference: Floats, language: Codes) -> Functioning:
    """DIF of judge codes (N,) given reference (N,) and language index (N,), 0 being the pivot."""
    n = len(judge)
    languages = np.unique(language)
    if len(languages) < 2 or len(np.unique(judge)) < 2 or np.ptp(reference) == 0:
        reason = Message("it needs two languages, two judge scores and a reference that varies")
        return Functioning(None, None, None, n, reason)
    from scipy.special import chdtrc

    x = ((reference - reference.mean()) / reference.std())[:, None]
    dummies = (language[:, None] == languages[1:]).astype(np.float64)
    codes = np.unique(judge, return_inverse=True)[1]
    models = (x, np.hstack([x, dummies]), np.hstack([x, dummies, x * dummies]))
    fits = [fit_ordinal(codes, columns) for columns in models]
    base, uniform, full = (fit.loss for fit in fits)
    df = dummies.shape[1]
    shift = tuple(float(b) for b in fits[1].slopes[1:])
    p_uniform, p_full = (float(chdtrc(df, max(0.0, 2 * gain))) for gain in (base - uniform, uniform - full))
    return Functioning(shift, p_uniform, p_full, n)


def regressed_means(humans: Floats, language: Codes) -> Floats:
    """(N,) what an item's panel mean says of its true score: drawn towards its language's mean by its reliability.

    m_L + v / (v + e / n_i) (mean_i - m_L), v and e the variances of items and of single scores within the items of the
    language, scores (N, R), NaN where missing, language (N,). Matching on raw means finds a severity that is not there
    wherever languages differ in quality, for error draws an item back to its own language's mean. Level: interval.
    Source: Kelley's regressed scores; the regression correction of Shealy & Stout 1993, doi:10.1007/BF02294572.
    """
    n = (~np.isnan(humans)).sum(axis=1)
    mean = np.nansum(humans, axis=1) / np.maximum(n, 1)
    regressed = mean.copy()
    for one in np.unique(language):
        here = language == one
        size, own = n[here], mean[here]
        freedom = int((size - 1).sum())
        if freedom < 1 or len(own) < 3:
            continue
        error = float(np.nansum((humans[here] - own[:, None]) ** 2)) / freedom
        items = max(float(own.var(ddof=1)) - error * float((1 / size).mean()), 0.0)
        trust = items / (items + error / size) if items > 0 else np.zeros(len(size))
        trust = np.ones(len(size)) if error == 0 else trust
        regressed[here] = own.mean() + trust * (own - own.mean())
    return np.asarray(regressed, dtype=np.float64)


_MOST_GROUPS = 40


def shift_errors(judge: Codes, reference: Floats, language: Codes, cluster: Codes) -> list[tuple[float, int]]:
    """Standard error and degrees of freedom of each language's shift (L - 1): clusters left out, in 40 groups at most.

    judge, reference, language and cluster (N,); NaN where a model without a group cannot be fitted. Level: ordinal.
    Source: delete-a-group jackknife, Kott 2001 (Journal of Official Statistics 17:521-526).
    """
    clusters = np.unique(cluster, return_inverse=True)[1]
    groups = min(int(clusters.max(initial=-1)) + 1, _MOST_GROUPS)
    group = clusters % max(groups, 1)
    others = len(np.unique(language)) - 1
    without = []
    for one in range(groups):
        kept = group != one
        shifts = differential_functioning(judge[kept], reference[kept], language[kept])
        if shifts.shift is None or len(shifts.shift) != others:
            return [(float("nan"), 0)] * others
        without.append(shifts.shift)
    if groups < 2:
        return [(float("nan"), 0)] * others
    spread = np.array(without) - np.mean(without, axis=0)
    errors = np.sqrt((groups - 1) / groups * (spread**2).sum(axis=0))
    return [(float(se), groups - 1) for se in errors]


# --- juries ----------------------------------------------------------------------------------------------------------
Rule = Literal["majority", "median", "mean"]
RULES: tuple[Rule, ...] = get_args(Rule)


def jury_scores(scores: Floats, rule: str) -> Floats:
    """One score per item from (N, J) judges' scores, NaN where missing -> (N,).

    ``majority`` is the most frequent score; a tie gives no label (NaN), never the first or the lowest.
    """
    if rule == "majority":
        return _majority(scores)
    has_score = ~np.isnan(scores).all(axis=1)
    out = np.full(len(scores), np.nan)
    out[has_score] = (np.nanmedian if rule == "median" else np.nanmean)(scores[has_score], axis=1)
    return out


def _majority(scores: Floats) -> Floats:
    points = np.unique(scores[~np.isnan(scores)])
    counts = np.stack([(scores == point).sum(axis=1) for point in points], axis=1) if len(points) else None
    if counts is None:
        return np.full(len(scores), np.nan)
    top = counts.max(axis=1, keepdims=True)
    is_settled = ((counts == top).sum(axis=1) == 1) & (top[:, 0] > 0)
    return np.where(is_settled, points[counts.argmax(axis=1)], np.nan)


# --- changed texts and requests --------------------------------------------------------------------------------------
CHANGED = "changed_scores"
"""The column of a judge's rows: a JSON object, by change the score before and after it."""
STATISTICS = ("score_drop", "fall", "stay", "rise")
_FEW_CLUSTERS = 30
NOT_RUN = Message("not run: the judge was not asked about changed texts")
_NOMINAL = Message("a nominal scale has no distances")


def perturbation_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """For each change (the variant) in every cell: ``score_drop``, the mean of before less after in points of the
    scale, and the shares of the scores that ``fall``, ``stay`` and ``rise``.

    Undefined, with the reason, in cells where the judge was asked about nothing changed.
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        own = (cell.frame["rater"] == judge).to_numpy()
        if not own.any():
            continue
        rows = [*_of_cell(cell, own, bootstrap, confidence, seed)]
        rows = rows or [Estimate(statistic=name, value=None, reason=NOT_RUN) for name in STATISTICS]
        report += [
            CellEstimate(
                estimate=row.with_(
                    level=cell.scale.level, n_raters=1, speaks_for=THIS_JUDGE if row.is_defined else None
                ),
                cell=cell_key(cell),
                judge=judge,
            )
            for row in rows
        ]
    # The falls after all changes in all cells are one family.
    return corrected_together(report)


def _of_cell(cell: Cell, own: NDArray[np.bool_], bootstrap: int, confidence: float, seed: int) -> Iterator[Estimate]:
    frame = cell.frame[own & (cell.frame["repeat"] == cell.frame["first_repeat"]).to_numpy()]
    if CHANGED not in frame:
        return
    given = [json.loads(text) if isinstance(text, str) and text else {} for text in frame[CHANGED]]
    clusters = np.unique(frame["cluster"].astype(str).to_numpy(), return_inverse=True)[1] if len(frame) else np.empty(0)
    for change in sorted({name for scores in given for name in scores}):
        at = [place for place, scores in enumerate(given) if change in scores]
        pairs = np.array([given[place][change] for place in at], dtype=np.float64)
        cluster = np.asarray(clusters[at], dtype=np.intp)
        for row in perturbed(pairs[:, 0], pairs[:, 1], cluster, bootstrap=bootstrap, confidence=confidence, seed=seed):
            if row.statistic == "stay" or cell.scale.has_order:
                yield row.with_(variant=change)
            elif row.statistic == "score_drop":
                yield Estimate(statistic="score_drop", variant=change, value=None, reason=_NOMINAL)


def perturbed(
    before: Floats, after: Floats, cluster: Codes, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """Scores of the same items before and after a change (N,), (N,), clusters (N,) -> STATISTICS.

    score_drop: mean of before - after; clusters are resampled, percentile interval; approximate below 30 clusters.
    Where every difference is the same, it is its own interval from 30 clusters on, and has none below. Shares:
    Wilson. Source: S4, section 3.5; METHODS 5.
    """
    gap = before - after
    n, c = len(gap), number_of(cluster)
    drop = _drop(gap, cluster, bootstrap, confidence, seed).with_(statistic="score_drop", n_items=n, n_clusters=c)
    shares = {"fall": gap > 0, "stay": gap == 0, "rise": gap < 0}
    return [
        drop,
        *(share(name, int(hits.sum()), n, clusters=c, confidence=confidence) for name, hits in shares.items()),
    ]


def _drop(gap: Floats, cluster: Codes, bootstrap: int, confidence: float, seed: int) -> Estimate:
    estimate = Estimate(statistic="score_drop", value=float(gap.mean()), n_ratings=2 * len(gap))
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=gap)
    sizes = np.bincount(np.unique(cluster, return_inverse=True)[1])
    if np.ptp(gap) == 0:
        if len(sums) < _FEW_CLUSTERS:
            return estimate.with_(interval_reason=NO_RESAMPLE_DIFFERS)
        method = approximate(Message("constant"), Message("every item has the same difference"))
        return estimate.with_(low=estimate.value, high=estimate.value, confidence=confidence, method=method)
    if not bootstrap or len(sums) < 2:
        return estimate.with_(interval_reason=Message("an interval needs resampling and two clusters"))
    drawn = resampled_sums(np.column_stack([sums, sizes]), resamples=bootstrap, rng=np.random.default_rng(seed))
    interval = percentile(drawn[:, 0] / drawn[:, 1], confidence=confidence)
    estimate = estimate.with_(seed=seed, **interval.as_changes())
    estimate = estimate.with_(p=_p_of_zero(estimate.with_(se=error_of_mean(gap, cluster)[0]), cluster))
    if estimate.method and len(sums) < _FEW_CLUSTERS:
        return estimate.with_(method=approximate(estimate.method, Message("%(number)s clusters", number=len(sums))))
    return estimate


def by_expectation(
    rows: Sequence[Estimate], expects: Mapping[str, str]
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """Of the defined score drops: those after changes with which scores should fall, and the shifts (after less before,
    as ``perturbation``) after those that must not matter. A fall after one that must only not raise it is no shift.
    """
    drops = [row for row in rows if row.statistic == "score_drop" and row.is_defined]
    falls = tuple(drop for drop in drops if expects.get(drop.variant or "") == "fall")
    others = (drop for drop in drops if expects.get(drop.variant or "", "fall") != "fall")
    return falls, tuple(_shift(drop, expects[drop.variant or ""]) for drop in others)


def _shift(drop: Estimate, expects: str) -> Estimate:
    floor = 0.0 if expects == "no_rise" else -float("inf")
    value, low, high = (None if x is None else max(floor, 0.0 - x) for x in (drop.value, drop.high, drop.low))
    return drop.with_(statistic="perturbation", value=value, low=low, high=high)
