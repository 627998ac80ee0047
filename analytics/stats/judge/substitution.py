"""A judge in one annotator's place: how Verdict Confidence changes when it replaces a rater (METHODS 1; S2, D.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    Estimate,
    Interval,
    jackknife_interval,
)
from analytics.stats.core.messages import Message
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import error_of_mean, number_of
from analytics.stats.core.scales import snapped
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from analytics.stats.judge.modes import run_lengths

if TYPE_CHECKING:
    pass


PAPER_TRIALS = 100
_PAPER_NOTE = Message("S2's own procedure; an exact expectation needs no trials")


def substitution_estimates(compared: JudgeAgainstPanel, *, confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """``verdict_confidence`` of the panel on the items the judge scored, and with the judge in one rater's place.

    Variants: ``observed`` (the panel alone), ``substituted`` (expectation over the rater replaced),
    ``paper_compat`` (mean of 100 random replacements). Items with two annotators or more; the judge's fractions are
    rounded half up. Undefined without such an item. Level: any. Source: METHODS 1 (S2, D.2.2).
    """
    kept = ~np.isnan(compared.judge) & (compared.n_human >= 2)
    base = Estimate(
        statistic="verdict_confidence", level=compared.scale.level, value=None, n_items=int(kept.sum()),
        n_raters=len(compared.annotators), n_ratings=int(compared.n_human[kept].sum()),
        n_clusters=number_of(compared.cluster[kept]),
        reason=Message("no judged item has two annotators"),
    )  # fmt: skip
    if compared.scale.is_continuous:
        kept, base = (
            np.zeros(0, dtype=bool),
            base.with_(reason=compared.scale.why_continuous),
        )
    if not kept.any():
        return [base.with_(variant=variant) for variant in ("observed", "substituted", "paper_compat")]
    scores, judge = compared.humans[kept], compared.scale.values[snapped(compared.judge[kept], compared.scale)]
    after, before = replaced(np.sort(scores, axis=1), judge)
    values = np.column_stack([before, np.nanmean(after, axis=1)])
    estimates = [
        base.with_(variant=variant, value=float(x.mean()), reason=None).with_(
            **interval_of_shares(x, compared.cluster[kept], confidence).as_changes()
        )
        for variant, x in zip(("observed", "substituted"), values.T, strict=True)
    ]
    trials = substituted_by_trials(scores, judge, rng=np.random.default_rng(seed))
    spread = Message("%(number)s random trials, sd %(sd)s", number=len(trials), sd=f"{trials.std(ddof=1):.4f}")
    printed = base.with_(variant="paper_compat", value=float(trials.mean()), reason=None, seed=seed, note=_PAPER_NOTE)
    return [*estimates, printed.with_(interval_reason=spread)]


def interval_of_shares(x: Floats, cluster: NDArray[np.intp], confidence: float) -> Interval:
    """The interval of the mean of shares (N,): Wilson's with t, from clusters left out one by one."""
    se, df = error_of_mean(x, cluster)
    n = float(len(np.unique(cluster)))
    return jackknife_interval(float(x.mean()), se, df, "share", n=n, confidence=confidence)


def replaced(scores: Floats, judge: Floats) -> tuple[Floats, Floats]:
    """(N, R) largest share of an item's labels after the judge's label (N,) replaces the r-th.

    Rows of ``scores`` (N, R) are sorted, with NaN (no score) last. Also (N,) the largest share before. Replacing
    removes one label of the r-th score's point and adds one of the judge's point. Any level, no table of items by
    points. Source: METHODS 1 (S2, D.2.2).
    """
    length = run_lengths(scores)
    n = (~np.isnan(scores)).sum(axis=1)
    own = np.zeros(len(scores))
    others, same = length.astype(np.float64), np.zeros(scores.shape)
    later = np.zeros(len(scores))
    for r in range(scores.shape[1] - 1, -1, -1):
        later = np.where(length[:, r] > 0, length[:, r], later)
        same[:, r] = later
        is_judges = (scores[:, r] == judge) & (length[:, r] > 0)
        own += np.where(is_judges, length[:, r], 0)
        others[is_judges, r] = 0
    top = others.max(axis=1, initial=0)
    is_only_top = ((others == top[:, None]).sum(axis=1) == 1)[:, None]
    leaves_own = scores == judge[:, None]
    loses_top = is_only_top & ~leaves_own & (same == top[:, None])
    most = np.maximum(own[:, None] + 1 - leaves_own, top[:, None] - loses_top)
    with np.errstate(invalid="ignore", divide="ignore"):
        before = length.max(axis=1, initial=0) / n
        return np.where(np.isnan(scores), np.nan, most / n[:, None]), before


def substituted(scores: Floats, judge: Floats) -> Floats:
    """(N,) expected confidence of each item when the judge's label (N,) replaces a random rater's.

    Scores (N, R), NaN where missing, one or more an item. The expectation over n_i raters in closed form:
    sum_k (n_ik / n_i) max_l(n_il - [l = k] + [l = j]) / n_i. Source: METHODS 1 (S2, D.2.2).
    """
    return np.asarray(np.nanmean(replaced(np.sort(scores, axis=1), judge)[0], axis=1))


def substituted_by_trials(
    scores: Floats, judge: Floats, *, rng: np.random.Generator, trials: int = PAPER_TRIALS
) -> Floats:
    """(trials,) mean confidence when in each trial one random rater of every item is replaced: S2's own procedure.

    Scores (N, R), NaN where missing. Its mean over many trials is the mean of ``substituted``; 100 trials leave a Monte
    Carlo error of their own. Source: METHODS 1 (S2, D.2.2).
    """
    in_order = np.sort(scores, axis=1)
    after, _ = replaced(in_order, judge)
    n, rows = (~np.isnan(in_order)).sum(axis=1), np.arange(len(in_order))
    return np.array([after[rows, rng.integers(0, n)].mean() for _ in range(trials)])
