"""Means of panel scores from few human labels and many judge scores: prediction-powered inference (METHODS 3).

``y`` (n,): mean human score of each labelled item; ``f`` (n,): the judge's score of the same items; ``f_rest`` (N,):
the judge's scores of the items without labels. Level: interval (a scale whose mean means something).
Sources: Angelopoulos et al. 2023, doi:10.1126/science.adi6000; PPI++: Angelopoulos, Duchi & Zrnic 2023,
arXiv:2311.01453; cross-fitting: Zrnic & Candes 2024, doi:10.1073/pnas.2322083121.

Prevalence of a binary flag from an imperfect judge: Rogan-Gladen with the Lang-Reiczigel interval (METHODS 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.bounded import Ends, added, is_bounded, within_bounds
from analytics.stats.core.estimates import (
    ENOUGH_UNITS,
    Estimate,
    Interval,
    normal_interval,
    percentile,
    t_interval,
)
from analytics.stats.core.messages import Message, approximate, conservative, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import effective_number, error_of_mean, jackknife_error, number_of, resampled_sums
from analytics.stats.judge.calibrators import (
    CALIBRATORS,
    Fit,
    Predict,
    default_calibrator,
    folds_by_cluster,
    pooled,
    raised,
)

FEWEST_LABELS = 20
WARN_BELOW = 50
FEWEST_IN_STRATUM = 10
"""Labelled clusters of a stratum below which the interval of a mean over strata is approximate."""
TYPE_WITHOUT_LABEL = Message("a task type has no label")
_NO_REST = Message("no item without a human label has a judge score: the classical mean says all there is")
_ONE_WITHOUT = Message("one item without a label does not say how far judge scores spread")
_TOO_FEW = Message("two labelled items are the least a standard error needs")


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Labels, judge scores and the clusters both belong to; ``f`` is finite wherever ``y`` is."""

    y: Floats
    f: Floats
    f_rest: Floats
    cluster: Codes
    cluster_rest: Codes

    @classmethod
    def of(
        cls, y: Floats, f: Floats, f_rest: Floats, cluster: Codes | None = None, cluster_rest: Codes | None = None
    ) -> LabelledSample:
        """A sample in which every item is a cluster of its own unless clusters are given."""
        n = len(y)
        alone = (np.arange(n), np.arange(n, n + len(f_rest)))
        first, rest = alone if cluster is None or cluster_rest is None else (cluster, cluster_rest)
        return cls(y, f, f_rest, first, rest)

    @property
    def size(self) -> float:
        """The largest label or judge score, without its sign: what counts as rounding depends on it."""
        return float(max(np.abs(part).max(initial=0.0) for part in (self.y, self.f, self.f_rest)))

    @property
    def has_clusters(self) -> bool:
        """Whether some cluster holds more than one item."""
        both = np.concatenate([self.cluster, self.cluster_rest])
        return len(np.unique(both)) < len(both)


@dataclass(frozen=True, slots=True)
class OtherLabels:
    """Labels of other languages: ``y``, ``f`` (M,), their ``cluster`` (M,), and ``language`` (M,), a number from 1."""

    y: Floats
    f: Floats
    cluster: Codes
    language: Codes


def classical_mean(
    y: Floats, cluster: Codes, *, confidence: float = 0.95, ends: Ends | None = None, share: float = 0.0
) -> Estimate:
    """Mean of the human labels alone (n,), cluster-robust standard error and t (``resampling.error_of_mean``).

    ``ends`` of the scale: if labels are skewed, the interval accounts for these ends (``bounded``). ``share``: the
    labelled share of the items that the mean is about; the interval is narrower by sqrt(1 - share) (Cochran 1977, 2.6).
    """
    base: dict[str, Any] = {"statistic": "classical_mean", "n_items": len(y), "n_clusters": number_of(cluster)}
    if not len(y):
        return Estimate(value=None, reason=Message("no item has a human label"), **base)
    mean = float(y.mean())
    se, df = error_of_mean(y, cluster)
    size = float(np.abs(y).max())
    interval = t_interval(
        mean, se, df, method=Message("%(method)s t", method=Message("cluster-robust")), confidence=confidence, unit=size
    )
    interval = within_bounds(interval, mean, y, cluster, ends, df=df, confidence=confidence)
    return Estimate(value=mean, **base).with_(**_finite(interval, mean, share).as_changes())


def _finite(interval: Interval, value: float, share: float) -> Interval:
    """The interval of a mean of these very items, of which a share is labelled: its arms times sqrt(1 - share)."""
    if not share or interval.low is None or interval.high is None:
        return interval
    left = math.sqrt(max(1 - share, 0.0))
    se = None if interval.se is None else interval.se * left
    low, high = value - left * (value - interval.low), value + left * (interval.high - value)
    return replace(interval, low=low, high=high, se=se)


def ppi_mean(s: LabelledSample, *, lam: float = 1.0, confidence: float = 0.95, ends: Ends | None = None) -> Estimate:
    """theta = lam mean(f_rest) + mean(y - lam f), the raw judge at a fixed lambda (1: plain PPI).

    Normal interval; if clusters have several items, a t interval from the jackknife over clusters.
    """
    return _plain("ppi_mean", s, lam, confidence, ends)


def ppi_plus_mean(s: LabelledSample, *, confidence: float = 0.95, ends: Ends | None = None) -> Estimate:
    """PPI++ as published: raw judge, one lambda chosen from the same labels, normal interval.

    Where clusters hold several items, each is left out in turn, lambda chosen again, and the interval is t.
    A constant judge, or no item to power with, gives lambda 0: the mean of the labels. Undefined without a label.
    """
    return _plain("ppi_plus_mean", s, optimal_lambda(s.y, s.f, s.f_rest), confidence, ends, chosen=True)


def optimal_lambda(y: Floats, f: Floats, f_rest: Floats) -> float:
    """lambda* = cov(y, f) / ((1 + n/N) var f), clipped to [0, 1].

    cov over the n labels (divided by n), var over all n + N judge scores (by n + N - 1), as the authors' code has it.
    """
    n, rest = len(y), len(f_rest)
    if not n or not rest or np.ptp(every := np.concatenate([f, f_rest])) == 0:
        return 0.0
    exponent = raised(every)
    cov = float(((y - y.mean()) * np.ldexp(f - f.mean(), exponent)).mean())
    variance = float(np.ldexp(every - every.mean(), exponent).var(ddof=1))
    half = math.ldexp(1.0, exponent // 2)  # two steps, because the full power of two may overflow a double
    slope = cov / ((1 + n / rest) * variance) * half * math.ldexp(1.0, exponent - exponent // 2)
    return min(max(slope, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class CrossFit:
    """The cross-fitted estimate, the gain over the labels alone, and its interval.

    ``gain`` = n_eff / n: how many times more labels the classical mean would need for the same standard error.
    """

    estimate: Estimate
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    gain_reason: str | None = None
    these: Estimate | None = None
    """The mean of these very items, of which some are labelled: a finite population."""


def crossfit_mean(
    s: LabelledSample,
    *,
    rng: np.random.Generator,
    calibrator: str | None = None,
    folds: int = 5,
    confidence: float = 0.95,
    others: OtherLabels | None = None,
    ends: Ends | None = None,
) -> CrossFit:
    """PPI++ with calibrator and lambda fitted on the other folds of clusters, t interval, cluster-robust error.

    theta = mean over labels of e_i, e_i = y_i - lambda_k (g_k(f_i) - mean g_k(f_rest)) with k the fold of i. Refuses
    below 20 labels; below 50 the interval is marked approximate. ``others``: g_k is shrunk towards the calibrator of
    all languages; its own weight is n / (n + 20) (METHODS 3). Labels of held-out clusters are not used in any language.
    Lambda, labels and error are of this language only, so the mean itself is not shrunk. ``ends`` of the scale: if
    residuals are skewed, the interval accounts for these ends (``bounded``).

    ``these``: the mean that the n + N items would have if all of them were labelled. Its value is the same, because
    lambda is cov / var times N / (n + N); its error is that of y - b g, b = lambda (n + N) / N, times sqrt(1 - n / (n +
    N)): the difference estimator of survey sampling (Cochran 1977, 7.3; Sarndal, Swensson & Wretman 1992, 6.4).
    """
    n = len(s.y)
    base: dict[str, Any] = {
        "statistic": "ppi_plus_mean",
        "variant": "crossfit",
        "n_items": n,
        "n_clusters": number_of(s.cluster),
    }
    if n < FEWEST_LABELS or len(np.unique(s.cluster)) < 2:
        reason = Message(
            "%(labels)s labels; cross-fitting needs %(number)s, in two clusters or more", labels=n, number=FEWEST_LABELS
        )
        return CrossFit(Estimate(value=None, reason=reason, **base))
    fit = CALIBRATORS[calibrator or default_calibrator(n)]
    e, h = _corrected(s, fit, folds_by_cluster(s.cluster, folds=folds, rng=rng), others)
    theta = float(e.mean())
    se = _robust(_pooled((e - theta) / n, h / max(len(h), 1), s), np.concatenate([s.cluster, s.cluster_rest]))
    df = effective_number(np.unique(s.cluster, return_counts=True)[1]) - 1
    method = Message("cross-fitted t")
    if n < WARN_BELOW:
        method = Message("%(method)s, approximate: %(why)s", method=method, why=Message("fewer than 50 labels"))
    interval = t_interval(theta, se, df, method=method, confidence=confidence, unit=s.size)
    interval = within_bounds(
        interval, theta, e, s.cluster, _ends_of(s.y - e, h, ends), df=df, se=se, confidence=confidence
    )
    estimate = Estimate(value=theta, **base).with_(**interval.as_changes())
    of_these = _mean_of_these(s, e, h, estimate, df, method, ends, confidence)
    return replace(CrossFit(estimate, *_gain(s.y, e, h, s, rng)), these=of_these)


def _ends_of(moved: Floats, rest: Floats, ends: Ends | None) -> Ends | None:
    """The lowest and highest possible y - c, given the corrections c of the labels (n,) and of the other items (N,)."""
    if ends is None:
        return None
    every = np.concatenate([moved, rest])
    return ends[0] - float(every.max(initial=0.0)), ends[1] - float(every.min(initial=0.0))


def _mean_of_these(
    s: LabelledSample, e: Floats, h: Floats, estimate: Estimate, df: float, method: str, ends: Ends | None,
    confidence: float,
) -> Estimate:  # fmt: skip
    """The mean of these n + N items, computed from the corrected labels ``e`` and the judge's part ``h`` of the
    cross-fit."""
    n, rest, theta = len(s.y), len(s.f_rest), float(e.mean())
    grown = (s.y - e) * ((n + rest) / rest if rest else 1.0)  # b (g - mean of the rest)
    r = s.y - grown
    se = error_of_mean(r, s.cluster)[0]
    interval = t_interval(float(r.mean()), se, df, method=method, confidence=confidence, unit=s.size)
    of_rest = h * ((n + rest) / rest) if rest else h
    bounds = _ends_of(grown, of_rest, ends)
    interval = within_bounds(interval, float(r.mean()), r, s.cluster, bounds, df=df, confidence=confidence)
    interval = _finite(interval, float(r.mean()), n / (n + rest))
    if interval.low is not None and interval.high is not None:
        moved = theta - float(r.mean())
        interval = replace(interval, low=interval.low + moved, high=interval.high + moved)
    bare = Estimate(
        statistic="mean_of_these_items", value=theta, n_items=n, n_clusters=estimate.n_clusters,
        note=Message("%(number)s of %(all)s items are labelled", number=n, all=n + rest),
    )  # fmt: skip
    return bare.with_(**interval.as_changes())


def macro_mean(
    s: LabelledSample,
    stratum: NDArray[Any],
    stratum_rest: NDArray[Any],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    ends: Ends | None = None,
) -> Estimate:
    """The mean over H strata, each counting once: theta = 1/H sum_h theta_h; strata (n,) of labels, (N,) of the rest.

    theta_h = mean over its labels of y_i - lambda_k (g_k(f_i) - mean of g_k(f_rest) in h), g_k and lambda_k fitted on
    the other folds of clusters of all strata, as in ``crossfit_mean``; below 20 labels, and in strata without other
    items, lambda is 0. Cluster-robust error; t with Satterthwaite's degrees of freedom. Undefined where a stratum has
    no label. Sources: METHODS 3; Cochran 1977, Sampling Techniques, 5.4 (strata, effective degrees of freedom).
    """
    n, names = len(s.y), np.unique(np.concatenate([stratum, stratum_rest]))
    base: dict[str, Any] = {"statistic": "macro_mean", "n_items": n, "n_clusters": number_of(s.cluster)}
    if len(names) < 2 or not np.isin(names, stratum).all():
        reason = TYPE_WITHOUT_LABEL if len(names) > 1 else Message("the items are of one task type")
        return Estimate(value=None, reason=reason, **base)
    is_corrected = n >= FEWEST_LABELS and len(s.f_rest) >= 2 and len(np.unique(s.cluster)) > 1
    e, h = _corrected_within(s, stratum, stratum_rest, rng) if is_corrected else (s.y, np.zeros(len(s.f_rest)))
    means = np.array([e[stratum == one].mean() for one in names])
    influence, variances, dfs = np.zeros(n + len(h)), [], []
    for one, mean in zip(names, means, strict=True):
        own, rest = stratum == one, stratum_rest == one
        part = LabelledSample(s.y[own], s.f[own], s.f_rest[rest], s.cluster[own], s.cluster_rest[rest])
        moved = _pooled((e[own] - mean) / own.sum(), h[rest] / max(int(rest.sum()), 1), part) / len(names)
        influence[np.r_[own, rest]] = moved
        variances.append(_robust(moved, np.concatenate([part.cluster, part.cluster_rest])) ** 2)
        dfs.append(effective_number(np.unique(part.cluster, return_counts=True)[1]) - 1)
    theta, se = float(means.mean()), _robust(influence, np.concatenate([s.cluster, s.cluster_rest]))
    if min(dfs) <= 0:
        return Estimate(value=theta, interval_reason=Message("a task type has labels in one cluster only"), **base)
    weight = sum(v**2 / df for v, df in zip(variances, dfs, strict=True))
    df = sum(variances) ** 2 / weight if weight > 0 else min(dfs)
    method = Message("cross-fitted, strata, t") if is_corrected else Message("labels alone, strata, t")
    if n < WARN_BELOW or min(dfs) < FEWEST_IN_STRATUM - 1:
        method = approximate(method, Message("few labels"))
    interval = t_interval(theta, se, df, method=method, confidence=confidence, unit=s.size)
    parts, moved = [], s.y - e
    for one, mean, variance, own_df in zip(names, means, variances, dfs, strict=True):
        own = stratum == one
        se_own = math.sqrt(variance) * len(names)
        alone = t_interval(float(mean), se_own, own_df, method=method, confidence=confidence, unit=s.size)
        bounds = _ends_of(moved[own], h[stratum_rest == one], ends)
        how: dict[str, Any] = {"df": own_df, "se": se_own, "confidence": confidence}
        parts.append(
            (1 / len(names), float(mean), within_bounds(alone, float(mean), e[own], s.cluster[own], bounds, **how))
        )
    return Estimate(value=theta, **base).with_(**_of_parts(interval, theta, parts, confidence).as_changes())


def _of_parts(
    interval: Interval, value: float, parts: list[tuple[float, float, Interval]], confidence: float
) -> Interval:
    """The interval; but if the interval of any part is bounded, the sum of the intervals of all parts (they are
    independent)."""
    if not any(is_bounded(part.method) for _, _, part in parts):
        return interval
    summed = added(
        value, parts, approximate(Message("bounded empirical likelihood, strata"), Message("few labels")), confidence
    )
    return replace(summed, se=interval.se) if summed.low is not None else interval


def _corrected_within(
    s: LabelledSample, stratum: NDArray[Any], stratum_rest: NDArray[Any], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """e (n,) and h (N,) as ``_corrected``, the judge's part centred on the other items of the same stratum."""
    fit, fold = CALIBRATORS[default_calibrator(len(s.y))], folds_by_cluster(s.cluster, folds=5, rng=rng)
    names = np.unique(np.concatenate([stratum, stratum_rest]))
    e, h = s.y.copy(), np.zeros(len(s.f_rest))
    for one in np.unique(fold):
        held = fold == one
        predict = fit(s.f[~held], s.y[~held])
        g, rest = predict(s.f), predict(s.f_rest)
        y = s.y.copy()
        for name in names:
            own, others = (stratum == name) & ~held, stratum_rest == name
            middle = rest[others].mean() if others.any() else np.nan
            y[own] -= s.y[own].mean() if own.any() else 0.0
            g[stratum == name] -= middle
            rest[others] -= middle
        used = ~held & ~np.isnan(g)
        lam = optimal_lambda(y[used], g[used], rest)
        e[held] -= lam * np.nan_to_num(g[held])
        for name in names:
            own = stratum == name
            h[stratum_rest == name] += (held & own).sum() / max(own.sum(), 1) * lam * rest[stratum_rest == name]
    return e, h


def stratified_mean(strata: list[LabelledSample], *, confidence: float = 0.95, ends: Ends | None = None) -> Estimate:
    """PPI++ within each stratum, weighted by its share of all items; two labels per stratum at least.

    theta = sum_h W_h theta_h, var = sum_h W_h^2 var_h. Source: Fisch et al. 2024, arXiv:2406.04291.
    """
    n = sum(len(s.y) for s in strata)
    parts = [ppi_plus_mean(s, confidence=confidence, ends=ends) for s in strata]
    base: dict[str, Any] = {"statistic": "ppi_plus_mean", "variant": "stratified", "n_items": n}
    if not parts or any(part.se is None for part in parts):
        return Estimate(value=None, reason=Message("a stratum has fewer than two labels"), **base)
    size = np.array([len(s.y) + len(s.f_rest) for s in strata])
    share = size / size.sum()
    theta = float(share @ np.array([part.value for part in parts], dtype=np.float64))
    se = float(np.sqrt(share**2 @ np.array([part.se for part in parts], dtype=np.float64) ** 2))
    largest = max(stratum.size for stratum in strata)
    method = approximate(Message("stratified normal"))
    interval = normal_interval(theta, se, method=method, confidence=confidence, unit=largest)
    own = [(float(w), float(p.value or 0.0), interval_of(p)) for w, p in zip(share, parts, strict=True)]
    return Estimate(value=theta, **base).with_(**_of_parts(interval, theta, own, confidence).as_changes())


def interval_of(estimate: Estimate) -> Interval:
    """The interval as an estimate shows it."""
    return Interval(
        low=estimate.low, high=estimate.high, confidence=estimate.confidence, method=estimate.method, se=estimate.se,
        interval_reason=estimate.interval_reason,
    )  # fmt: skip


def active_mean(
    y: Floats,
    f: Floats,
    probability: Floats,
    cluster: Codes,
    *,
    lam: float = 1.0,
    confidence: float = 0.95,
    is_ratio: bool = False,
    ends: Ends | None = None,
) -> Estimate:
    """Mean from labels drawn with known probabilities: y (M,) NaN where not drawn, f (M,), probability (M,).

    theta = mean of lam f_i + [i drawn] (y_i - lam f_i) / pi_i (Horvitz-Thompson). Source: Zrnic & Candes 2024,
    arXiv:2403.03208. ``is_ratio``: for draws of which only a part is labelled; pi_i as in ``answered_probability``
    (Hajek 1971). The degrees of freedom of t are at most the effective number of the weights 1 / pi_i, less 1. If every
    item is labelled, all pi_i count as 1: people and judge then share one draw. Undefined if sum 1 / pi_i over the
    labels exceeds M by more than 3 standard errors, sqrt(sum (1 - pi_i) / pi_i^2). Then the probabilities belong to a
    larger set of items than the judge's.
    """
    drawn = ~np.isnan(y)
    if drawn.all():
        probability = np.ones_like(probability)
    base: dict[str, Any] = {"statistic": "ppi_plus_mean", "variant": "active", "n_items": int(drawn.sum())}
    base["n_clusters"] = number_of(cluster[drawn])
    if not drawn.any() or np.isnan(probability[drawn]).any():
        reason = Message("every labelled item needs one probability that it was drawn with (inclusion_prob)")
        return Estimate(value=None, reason=reason, **base)
    pi = probability[drawn]
    if (1 / pi).sum() - len(y) > 3 * np.sqrt(((1 - pi) / pi**2).sum()):
        reason = Message(
            "more items are labelled than their probabilities allow: judge and people were not drawn apart"
        )
        return Estimate(value=None, reason=reason, **base)
    if is_ratio:
        probability = answered_probability(y, probability)
    z = weighted_values(y, f, probability, lam=lam)
    theta = float(z.mean())
    se, df = error_of_mean(z, cluster)
    labels = effective_number(1 / probability[drawn]) if is_ratio else float(drawn.sum())
    method, size = (
        Message("Hajek t") if is_ratio else Message("%(method)s t", method="Horvitz-Thompson"),
        float(np.nanmax(np.abs(y))),
    )
    interval = t_interval(theta, se, min(df, labels - 1), method=method, confidence=confidence, unit=size)
    left, of_judge = y[drawn] - lam * f[drawn], lam * f
    interval = within_bounds(
        interval, theta, left, cluster[drawn], _ends_of(of_judge, np.zeros(0), ends), df=min(df, labels - 1),
        weights=1 / probability[drawn], se=se, confidence=confidence,
    )  # fmt: skip
    return Estimate(value=theta, **base).with_(**interval.as_changes())


def answered_probability(y: Floats, probability: Floats) -> Floats:
    """(M,) probabilities of being drawn and labelled, from those of being drawn; y (M,) NaN where not labelled.

    Probabilities below 1 are multiplied by (sum of 1 / pi over their labels) / (number of items that are not certain).
    This treats items without a label, in a wave under way or without a score, as missing by chance. Source: Hajek 1971,
    the ratio estimator.
    """
    has_label = ~np.isnan(y)
    uncertain = has_label & (probability < 1)
    if not uncertain.any():
        return probability
    others = len(y) - int((has_label & ~uncertain).sum())
    answered = probability.copy()
    answered[uncertain] *= (1 / probability[uncertain]).sum() / others
    return answered


def weighted_values(y: Floats, f: Floats, probability: Floats, *, lam: float = 1.0) -> Floats:
    """(M,) lam f_i + [i drawn] (y_i - lam f_i) / pi_i: their mean is that of y over all items, whatever was drawn."""
    drawn = ~np.isnan(y)
    z = lam * f
    z[drawn] += (y[drawn] - lam * f[drawn]) / probability[drawn]
    return z


def is_unequally_drawn(y: Floats, probability: Floats | None) -> bool:
    """Whether labels y (M,), NaN where missing, have probabilities (M,) that differ: weights are then needed."""
    if probability is None:
        return False
    stated = probability[~np.isnan(y)]
    return len(stated) > 0 and not np.isnan(stated).any() and bool(np.ptp(stated) > 0)


def paired_difference(
    first: tuple[Floats, Floats],
    second: tuple[Floats, Floats],
    cluster: Codes,
    *,
    confidence: float = 0.95,
    ends: Ends | None = None,
) -> Estimate:
    """PPI++ mean of first - second over parallel items: each a pair y (M,), f (M,), y NaN where unlabelled.

    D_i = y_1i - y_2i on items labelled for both, judged by f_1i - f_2i.
    """
    d, g = first[0] - second[0], first[1] - second[1]
    has_label, has_judge = ~np.isnan(d), ~np.isnan(g)
    both, rest = has_label & has_judge, ~has_label & has_judge
    s = LabelledSample(d[both], g[both], g[rest], cluster[both], cluster[rest])
    bounds = None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])
    found = ppi_plus_mean(s, confidence=confidence, ends=bounds)
    return found.with_(statistic="ppi_plus_difference", variant="paired")


def _plain(
    statistic: str, s: LabelledSample, lam: float, confidence: float, ends: Ends | None, *, chosen: bool = False
) -> Estimate:
    n, rest = len(s.y), len(s.f_rest)
    base: dict[str, Any] = {"statistic": statistic, "variant": "plain", "n_items": n}
    base["n_clusters"] = number_of(s.cluster)
    if not n or (lam > 0 and not rest):
        reason = _NO_REST if n else Message("no item has both a human label and a judge score")
        return Estimate(value=None, reason=reason, **base)
    theta = float((lam * s.f_rest.mean() if rest else 0.0) + (s.y - lam * s.f).mean())
    if n < 2 or (lam > 0 and rest < 2):
        return Estimate(value=theta, interval_reason=_TOO_FEW if n < 2 else _ONE_WITHOUT, **base)
    base["note"] = f"lambda {lam:.4f}"
    if s.has_clusters:
        interval = _left_out(s, theta, None if chosen else lam, confidence)
    else:
        se = float(np.sqrt((s.y - lam * s.f).var() / n + (lam**2 * s.f_rest.var() / rest if rest else 0.0)))
        interval = normal_interval(theta, se, method=Message("normal"), confidence=confidence, unit=s.size)
    bounds = _ends_of(lam * s.f, lam * s.f_rest, ends)
    df = effective_number(np.unique(s.cluster, return_counts=True)[1]) - 1
    interval = within_bounds(
        interval, theta, s.y - lam * s.f, s.cluster, bounds, df=df, se=interval.se, confidence=confidence
    )
    return Estimate(value=theta, **base).with_(**interval.as_changes())


def _left_out(s: LabelledSample, theta: float, lam: float | None, confidence: float) -> Interval:
    """t interval of theta from leaving out each cluster with all of its items, lambda chosen anew where it is None.

    Clusters with labels and those without are two samples; the effective number of the former gives the degrees of
    freedom. Source: ``resampling.jackknife_error``.
    """
    names, place = np.unique(np.concatenate([s.cluster, s.cluster_rest]), return_inverse=True)
    here, there = np.split(place, [len(s.y)])
    y, f, rest = s.y - s.y.mean(), s.f - s.f.mean(), s.f_rest - s.f.mean()
    columns = [(here, x) for x in (np.ones(len(y)), y, f, y * f, f * f)]
    columns += [(there, x) for x in (np.ones(len(rest)), rest, rest * rest)]
    sums = np.stack([np.bincount(at, weights=x, minlength=len(names)) for at, x in columns])
    n, sy, sf, syf, sff, m, sr, srr = sums.sum(axis=1, keepdims=True) - sums
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (sff + srr - (sf + sr) ** 2 / (n + m)) / (n + m - 1)
        values = np.clip((syf / n - sy / n * sf / n) / ((1 + n / m) * spread), 0, 1)
        weight = np.where((m > 0) & (spread > 0), values, 0.0) if lam is None else np.full(len(names), lam)
        without = sy / n + np.where(weight > 0, weight * (sr / m - sf / n), 0.0)
    if not np.isfinite(without).all():
        return Interval(interval_reason=Message("without one of the clusters there are no labels, or no other items"))
    has_labels = sums[0] > 0
    se = jackknife_error(theta - float(s.y.mean()), without, has_labels)
    df = effective_number(sums[0][has_labels]) - 1
    return t_interval(theta, se, df, method=Message("cluster jackknife t"), confidence=confidence, unit=s.size)


def _corrected(s: LabelledSample, fit: Fit, fold: Codes, others: OtherLabels | None) -> tuple[Floats, Floats]:
    """e (n,) of the labels and h (N,) = sum_k n_k/n lambda_k (g_k(f_rest) - mean), both from other folds' fits."""
    e, h = np.empty(len(s.y)), np.zeros(len(s.f_rest))
    for one in np.unique(fold):
        held = fold == one
        predict = _without(s, fit, held, others)
        rest, own = predict(s.f_rest), predict(s.f[~held])
        lam = optimal_lambda(s.y[~held], own, rest)
        centred = lam * (rest - rest.mean()) if len(rest) else rest
        h += held.mean() * centred
        e[held] = s.y[held] - (lam * (predict(s.f[held]) - rest.mean()) if len(rest) else 0.0)
    return e, h


def _without(s: LabelledSample, fit: Fit, held: NDArray[np.bool_], others: OtherLabels | None) -> Predict:
    """The calibrator fitted without the held-out labels; with ``others``, it is shrunk towards the calibrator of all
    languages."""
    if others is None:
        return fit(s.f[~held], s.y[~held])
    apart = ~np.isin(others.cluster, s.cluster[held])
    own = np.zeros(int((~held).sum()), dtype=np.intp)
    f, y = np.r_[s.f[~held], others.f[apart]], np.r_[s.y[~held], others.y[apart]]
    of_language = pooled(fit, f, y, np.r_[own, others.language[apart]])
    return lambda x: of_language(x, np.zeros(len(x), dtype=np.intp))


def _pooled(own: Floats, rest: Floats, s: LabelledSample) -> Floats:
    """The influence of every item on theta, scaled as if the item's cluster were left out of its mean (jackknife,
    CV3)."""
    scaled = []
    for part, cluster in ((own, s.cluster), (rest, s.cluster_rest)):
        _, index, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
        n = len(sizes)
        scaled.append(part * (len(part) / (len(part) - sizes) * np.sqrt((n - 1) / n))[index] if n > 1 else part)
    return np.concatenate(scaled)


def _robust(influence: Floats, cluster: Codes) -> float:
    """Standard error: root of the squared cluster sums of each item's influence on the estimate."""
    _, index = np.unique(cluster, return_inverse=True)
    return float(np.sqrt((np.bincount(index, weights=influence) ** 2).sum()))


def _gain(y: Floats, e: Floats, h: Floats, s: LabelledSample, rng: np.random.Generator) -> tuple[Any, ...]:
    """The gain (variance of the labels' mean / variance of theta), both bounds from resampled labelled clusters, and
    why bounds are missing.
    """
    _, index = np.unique(s.cluster, return_inverse=True)
    extra = float(h.var() / len(h)) if len(h) else 0.0
    sums = np.stack([np.bincount(index, weights=column) for column in (np.ones(len(y)), y, y**2, e, e**2)])
    drawn = resampled_sums(sums.T, resamples=2000, rng=rng)
    m, sy, syy, se, see = np.vstack([sums.sum(axis=1), drawn]).T
    classical, powered = (syy / m - (sy / m) ** 2) / m, (see / m - (se / m) ** 2) / m + extra
    # Without any variation, sums of squares differ by rounding. So a variance below this limit counts as 0.
    least = 1e-12 * max(float(np.abs(y).max()), float(np.abs(e).max())) ** 2 / m
    ratio = np.divide(classical, powered, out=np.full(len(m), np.nan), where=(classical > least) & (powered > least))
    if np.isnan(ratio[0]):
        return None, None, None, None
    interval = percentile(ratio[1:])
    return float(ratio[0]), interval.low, interval.high, interval.interval_reason


# --- the prevalence of a binary flag ---------------------------------------------------------------------------------
_LAST_CLUSTER = Message("without one of the clusters no items of a kind are left")
_PLUS = 2.0
"""Pseudo-observations added to each of the two validation samples (Lang & Reiczigel 2014)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Counts of a flag: the judge's on items without labels, and its hits on labelled ones.

    ``flagged`` of ``judged`` items carry the judge's flag; of ``positives`` truly flagged items the judge flags
    ``true_positives``; of ``negatives``, items truly without the flag, it does not flag ``true_negatives``.
    """

    flagged: int
    judged: int
    true_positives: int
    positives: int
    true_negatives: int
    negatives: int


def rogan_gladen(flags: Flags, *, by_cluster: Floats | None = None, confidence: float = 0.95) -> Estimate:
    """Prevalence = (AP + Sp - 1) / (Se + Sp - 1) from apparent prevalence, sensitivity and specificity.

    ``by_cluster`` (C, 6): the same counts of each cluster, in the order of ``Flags``, where clusters hold several
    items. The three samples then count for less, by the design effect: the jackknife variance over clusters divided by
    that of independent items; the quantile is that of t.

    The interval allows for all three samples; resampling the labelled one alone under-covers. Undefined without items
    of both kinds or where Se + Sp = 1 (the judge is no better than chance); if Se + Sp is below 1, a note says so.
    Level: binary. Sources: Rogan & Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510; Lang & Reiczigel 2014,
    doi:10.1016/j.prevetmed.2013.09.015.
    """
    n_items = flags.judged + flags.positives + flags.negatives
    if not (flags.judged and flags.positives and flags.negatives):
        reason = Message("it needs labelled items with and without the flag, and judged items without labels")
        return Estimate(statistic="rogan_gladen", value=None, reason=reason, n_items=n_items)
    apparent = flags.flagged / flags.judged
    sensitivity, specificity = flags.true_positives / flags.positives, flags.true_negatives / flags.negatives
    youden = sensitivity + specificity - 1
    if abs(youden) < 1e-12:
        reason = Message("sensitivity + specificity = 1: the judge tells nothing about the flag")
        return Estimate(statistic="rogan_gladen", value=None, reason=reason, n_items=n_items)
    raw = (apparent + specificity - 1) / youden
    estimate = Estimate(
        statistic="rogan_gladen", value=min(1.0, max(0.0, raw)), n_items=n_items,
        note=_note(raw, sensitivity, specificity),
    )  # fmt: skip
    if by_cluster is None:
        low, high = lang_reiczigel(flags, confidence=confidence)
        return estimate.with_(low=low, high=high, confidence=confidence, method="Lang-Reiczigel")
    effect, df = _design_effect(flags, by_cluster, raw, youden)
    if not np.isfinite(effect) or df < 1:
        return estimate.with_(interval_reason=_LAST_CLUSTER)
    low, high = lang_reiczigel(flags, effect=effect, df=df, confidence=confidence)
    method = Message("Lang-Reiczigel t, design effect %(effect)s of clusters", effect=f"{effect:.2f}")
    if df + 1 < ENOUGH_UNITS:
        method = conservative(method, Message("%(number)s independent units", number=f"{df + 1:.3g}"))
    return estimate.with_(low=low, high=high, confidence=confidence, method=method)


def _design_effect(flags: Flags, by_cluster: Floats, raw: float, youden: float) -> tuple[float, float]:
    """Jackknife variance over clusters divided by that of independent items, at least 1; degrees of freedom.

    NaN if the prevalence is undefined without one of the clusters.
    """
    ap, n, tp, p, tn, q = np.array([getattr(flags, one.name) for one in fields(flags)])[:, None] - by_cluster.T
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (ap / n + tn / q - 1) / (tp / p + tn / q - 1)
    labelled = by_cluster[:, 3] + by_cluster[:, 5]
    if not np.isfinite(without).all():
        return float("nan"), 0.0
    variance = jackknife_error(raw, without, labelled > 0) ** 2
    shares = [flags.flagged / flags.judged, flags.true_positives / flags.positives,
              flags.true_negatives / flags.negatives]  # fmt: skip
    sizes = (flags.judged, flags.positives, flags.negatives)
    slopes = (1.0, raw, 1 - raw)
    alone = sum(b**2 * x * (1 - x) / m for b, x, m in zip(slopes, shares, sizes, strict=True)) / youden**2
    return max(1.0, variance / alone) if alone > 0 else 1.0, effective_number(labelled[labelled > 0]) - 1


def lang_reiczigel(
    flags: Flags, *, effect: float = 1.0, df: float | None = None, confidence: float = 0.95
) -> tuple[float, float]:
    """Both bounds, clipped to [0, 1]: adjusted estimate + shift -+ z se, all from samples with pseudo-observations.

    The size of each sample is divided by the design ``effect``. z is the quantile of t if ``df`` is given.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1 + confidence) / 2
    z = float(ndtri(tail) if df is None else stdtrit(df, tail))
    n, n_se, n_sp = (size / effect for size in (flags.judged, flags.positives, flags.negatives))
    flagged, hits, spared = (x / effect for x in (flags.flagged, flags.true_positives, flags.true_negatives))
    n, n_se, n_sp = n + z**2, n_se + _PLUS, n_sp + _PLUS
    p, se, sp = (flagged + z**2 / 2) / n, (hits + _PLUS / 2) / n_se, (spared + _PLUS / 2) / n_sp
    youden = se + sp - 1
    if abs(youden) < 1e-12:
        return 0.0, 1.0
    theta = (p + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    half = z * (p * (1 - p) / n + theta**2 * of_se + (1 - theta) ** 2 * of_sp) ** 0.5 / abs(youden)
    middle = theta + 2 * z**2 * (theta * of_se - (1 - theta) * of_sp)
    return min(1.0, max(0.0, middle - half)), min(1.0, max(0.0, middle + half))


def _note(raw: float, sensitivity: float, specificity: float) -> str:
    notes = [f"sensitivity {sensitivity:.3f}, specificity {specificity:.3f}"]
    if sensitivity + specificity < 1:
        notes.append(Message("below 1 together: the judge's flag points the wrong way"))
    if not 0 <= raw <= 1:
        notes.append(Message("clipped from %(value)s", value=f"{raw:.3f}"))
    return joined(notes)
