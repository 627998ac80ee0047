"""A judge in one annotator's place: how Verdict Confidence changes when it replaces a rater (S2, D.2.2)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from analytics.stats import resampling
from analytics.stats.estimate import Estimate
from analytics.stats.figures import MOST_POINTS
from analytics.stats.intervals import Interval
from analytics.stats.meeting import Meeting
from analytics.stats.resampling import Units
from analytics.stats.scales import snapped

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

PAPER_TRIALS = 100
_PAPER_NOTE = "S2's own procedure; an exact expectation needs no trials"


def estimates(meeting: Meeting, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """``verdict_confidence`` of the panel on the items the judge scored, and with the judge in one rater's place.

    Variants: ``observed`` (the panel alone), ``substituted`` (expectation over the rater replaced),
    ``paper_compat`` (mean of 100 random replacements). Items with two annotators or more; the judge's fractions are
    rounded half up. Undefined without such an item. Level: any. Source: METHODS 1 (S2, D.2.2).
    """
    kept = ~np.isnan(meeting.judge) & (meeting.n_human >= 2)
    base = Estimate(
        statistic="verdict_confidence", level=meeting.scale.level, value=None, n_items=int(kept.sum()),
        n_raters=len(meeting.annotators), n_ratings=int(meeting.n_human[kept].sum()),
        reason="no judged item has two annotators",
    )  # fmt: skip
    if meeting.scale.q > MOST_POINTS:
        kept, base = (
            np.zeros(0, dtype=bool),
            base.with_(reason=f"the scores take {meeting.scale.q} values: no majority"),
        )
    if not kept.any():
        return [base.with_(variant=variant) for variant in ("observed", "substituted", "paper_compat")]
    counts, judge = meeting.point_counts()[kept], snapped(meeting.judge[kept], meeting.scale)
    values = np.column_stack([counts.max(axis=1) / counts.sum(axis=1), substituted(counts, judge)])
    found = [
        base.with_(variant=variant, value=float(x.mean()), reason=None, seed=seed if bootstrap else None).with_(
            **_interval(x, meeting.cluster[kept], bootstrap, confidence, seed).as_changes()
        )
        for variant, x in zip(("observed", "substituted"), values.T, strict=True)
    ]
    trials = substituted_by_trials(counts, judge, rng=np.random.default_rng(seed))
    spread = f"{len(trials)} random trials, sd {trials.std(ddof=1):.4f}"
    printed = base.with_(variant="paper_compat", value=float(trials.mean()), reason=None, seed=seed, note=_PAPER_NOTE)
    return [*found, printed.with_(interval_reason=spread)]


def _interval(x: Floats, cluster: NDArray[np.intp], resamples: int, confidence: float, seed: int) -> Interval:
    """Of the mean of (N,) items: clusters resampled, or left out one by one."""
    distinct, pattern = np.unique(x, return_inverse=True)
    units = Units.of(pattern, cluster)
    mean = partial(_weighted_mean, distinct)
    if not resamples:
        return resampling.jackknife(mean, units, confidence=confidence)
    rng = np.random.default_rng(seed)
    return resampling.bootstrap(mean, units, rng=rng, resamples=resamples, confidence=confidence)


def _weighted_mean(x: Floats, weights: Floats) -> Floats:
    """(B,) means of values (P,) under weights (B, P)."""
    return np.asarray(weights @ x / weights.sum(axis=1))


def substituted(counts: Counts, judge: NDArray[np.intp]) -> Floats:
    """(N,) expected confidence of each item when the judge's point replaces a random rater's.

    Counts n_ik (N, q) with n_i >= 1, the judge's point j (N,). The expectation in closed form:
    sum_k (n_ik / n_i) max_l(n_il - [l = k] + [l = j]) / n_i. Source: METHODS 1 (S2, D.2.2).
    """
    n = counts.sum(axis=1)
    expected = np.zeros(len(counts))
    for k in range(counts.shape[1]):
        after = counts.copy()
        after[:, k] -= 1
        after[np.arange(len(counts)), judge] += 1
        expected += np.where(counts[:, k] > 0, counts[:, k] / n * after.max(axis=1) / n, 0)
    return expected


def substituted_by_trials(
    counts: Counts, judge: NDArray[np.intp], *, rng: np.random.Generator, trials: int = PAPER_TRIALS
) -> Floats:
    """(trials,) mean confidence when in each trial one random rater of every item is replaced: S2's own procedure.

    Its mean over many trials is the mean of ``substituted``; 100 trials leave a Monte Carlo error of their own.
    Source: METHODS 1 (S2, D.2.2).
    """
    n = counts.sum(axis=1)
    cumulative = np.cumsum(counts, axis=1)
    rows, means = np.arange(len(counts)), np.empty(trials)
    for trial in range(trials):
        after = counts.copy()
        after[rows, (cumulative > rng.integers(0, n)[:, None]).argmax(axis=1)] -= 1
        after[rows, judge] += 1
        means[trial] = (after.max(axis=1) / n).mean()
    return means
