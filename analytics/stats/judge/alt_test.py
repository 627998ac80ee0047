"""The alternative annotator test: may the judge stand in for a panel member? (METHODS 3)

Calderon, Reichart & Dror 2025, arXiv:2501.10970. For each annotator j the judge and j are compared, item by item, by
how well each agrees with the item's *other* raters; the judge is credited a cost advantage epsilon for being cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    NO_WIDTH,
    CellEstimate,
    Estimate,
    Interval,
    benjamini_yekutieli,
    jackknife_interval,
)
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import RatersAs, Units, error_of_mean, left_out_error, number_of, of_report
from analytics.stats.core.scales import snapped
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key

Score = Literal["accuracy", "rmse"]

STATISTICS = ("alt_test_omega", "alt_test_rho")
ANONYMOUS = Message("the test compares persons: it has no meaning for anonymous slots")
EPSILON = {"experts": 0.20, "skilled": 0.15, "crowd": 0.10}
PASS_AT = 0.5
_ALPHA = 0.05
BOTH_DIRECTIONS = Message("tests in both directions: beaten, and not ahead (Benjamini-Yekutieli)")
"""The bounds of omega: the annotators that are beaten, and the annotators that are not ahead of the judge."""
ALL_DECIDED = Message("every annotator is beaten or ahead")
FEW_ITEMS = 30
"""Below this many items Wilcoxon's signed ranks replace the t-test."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The judge against one annotator: ``p`` and ``is_beaten`` are None when the annotator stays outside the test.

    ``p_ahead`` and ``is_ahead`` are of the test in the other direction: the annotator leads by more than epsilon. One
    who is neither beaten nor ahead is not decided by these items.
    """

    annotator: str
    n_items: int
    judge_wins: float | None
    annotator_wins: float | None
    p: float | None
    is_beaten: bool | None
    n_clusters: int = 0
    p_ahead: float | None = None
    is_ahead: bool | None = None


@dataclass(frozen=True, slots=True)
class AltTest:
    """omega = share of annotators the judge beats, rho = its mean advantage; None with a reason when nobody counts.

    ``omega_high``: the share that it beats or that are not decided, by the tests in the other direction.
    """

    omega: float | None
    rho: float | None
    comparisons: tuple[Comparison, ...]
    n_items: int
    reason: str | None = None
    n_clusters: int = 0
    omega_high: float | None = None

    @property
    def passes(self) -> bool:
        """Whether the judge may replace the annotators: omega >= .5."""
        return self.omega is not None and self.omega >= PASS_AT


def run_alt_test(
    judge: Floats,
    humans: Floats,
    annotators: list[str],
    *,
    epsilon: float = 0.15,
    score: Score = "rmse",
    min_items: int = 30,
    alpha: float = _ALPHA,
    cluster: NDArray[np.integer] | None = None,
) -> AltTest:
    """The whole test from judge (N,) and human scores (N, J), NaN where missing; clusters (N,) where items have them.

    An annotator with fewer than ``min_items`` comparable items (judge present, two raters or more) is listed and left
    out of the Benjamini-Yekutieli family, omega and rho. ``rmse`` scores by -RMSE against the others, ``accuracy`` by
    the share of others with the same label.
    """
    judge_wins, annotator_wins = advantage(judge, humans, score)
    where = np.arange(len(judge)) if cluster is None else cluster
    comparisons = [
        _compare(name, judge_wins[:, j], annotator_wins[:, j], where, epsilon, min_items)
        for j, name in enumerate(annotators)
    ]
    tested = [c for c in comparisons if c.p is not None]
    is_shared = (~np.isnan(judge_wins)).any(axis=1)
    n_items, n_clusters = int(is_shared.sum()), number_of(where[is_shared])
    if not tested:
        reason = Message("no annotator has %(number)s items shared with the judge and another rater", number=min_items)
        return AltTest(None, None, tuple(comparisons), n_items, reason, n_clusters)
    names = [c.annotator for c in tested]
    beaten = dict(zip(names, benjamini_yekutieli([c.p for c in tested if c.p is not None], alpha), strict=True))
    ahead = dict(
        zip(names, benjamini_yekutieli([c.p_ahead for c in tested if c.p_ahead is not None], alpha), strict=True)
    )
    judged = tuple(replace(c, is_beaten=beaten.get(c.annotator), is_ahead=ahead.get(c.annotator)) for c in comparisons)
    rho = float(np.mean([c.judge_wins for c in tested if c.judge_wins is not None]))
    omega, omega_high = sum(beaten.values()) / len(tested), 1 - sum(ahead.values()) / len(tested)
    return AltTest(omega, rho, judged, n_items, None, n_clusters, omega_high)


def advantage(judge: Floats, humans: Floats, score: Score) -> tuple[Floats, Floats]:
    """W_f and W_h of judge (N,), humans (N, J) -> two (N, J) arrays of 0 and 1, NaN where j cannot be compared.

    W_f = [S(judge) >= S(j)], W_h = [S(j) >= S(judge)], S over the item's raters other than j; ties count for both.
    """
    others = (~np.isnan(humans)).sum(axis=1, keepdims=True) - 1
    s_judge, s_human = (_accuracies if score == "accuracy" else _negative_rmse)(judge, humans, others)
    is_comparable = ~np.isnan(humans) & ~np.isnan(judge)[:, None] & (others >= 1)
    lead = np.where(is_comparable, s_judge - s_human, np.nan)
    tie = _rounding(judge, humans)
    return (
        np.where(is_comparable, lead >= -tie, np.nan).astype(np.float64),
        np.where(is_comparable, lead <= tie, np.nan).astype(np.float64),
    )


def _rounding(judge: Floats, humans: Floats) -> Floats:
    """(N, 1) difference of S up to which two raters of an item tie, where the item's largest error is 1."""
    size = _largest_error(judge, humans)
    largest = np.where(np.isnan(humans), 0.0, abs(humans)).max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(1e-9 + 16 * np.finfo(np.float64).eps * largest / size)


def _largest_error(judge: Floats, humans: Floats) -> Floats:
    """(N, 1) the judge's largest distance from a rater of each item; 1 where there is none."""
    apart = np.abs(humans - judge[:, None])
    largest = np.where(np.isnan(apart), 0.0, apart).max(axis=1, initial=0.0, keepdims=True)
    return np.where(largest > 0, largest, 1.0)


def p_value(difference: Floats, epsilon: float, cluster: NDArray[np.integer] | None = None) -> float:
    """One-sided p of H1: mean(W_h - W_f) < epsilon, differences (n,): t-test, Wilcoxon below 30 items.

    Where a cluster (n,) holds several items, items are no independent witnesses: t with the jackknife error over
    clusters, and degrees of freedom by their effective number (``resampling.error_of_mean``); 1 for one cluster only,
    which tells nothing. A constant difference c has p = 0 if c < epsilon, else 1.
    """
    n = len(difference)
    witness = np.arange(n) if cluster is None else cluster
    n_witnesses = len(np.unique(witness))
    if n_witnesses < min(n, 2):
        return 1.0
    if np.ptp(difference) == 0:
        return 0.0 if difference[0] < epsilon else 1.0
    if n < FEW_ITEMS and n_witnesses == n:
        from scipy.stats import wilcoxon

        return float(wilcoxon(difference - epsilon, alternative="less").pvalue)
    from scipy.special import stdtr

    se, df = error_of_mean(difference, witness)
    gap = float(difference.mean()) - epsilon
    if se <= NO_WIDTH:
        return float(gap >= 0)
    return float(stdtr(df, gap / se))


def _accuracies(judge: Floats, humans: Floats, others: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Share of the others with the judge's, and with j's, label."""
    same_as_judge = humans == judge[:, None]
    with_judge = same_as_judge.sum(axis=1, keepdims=True) - same_as_judge
    with_j = np.zeros(humans.shape)
    for label in np.unique(humans[~np.isnan(humans)]):
        has = humans == label
        with_j += has * (has.sum(axis=1, keepdims=True) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return with_judge / others, with_j / others


def _negative_rmse(judge: Floats, humans: Floats, others: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """-RMSE of the judge, and of j, against the others, from the item's sums of errors and of their squares.

    Errors e are the raters' distances from the judge in units of the item's largest, so that no unit of the scores and
    no offset costs digits; comparisons within an item do not change.
    """
    e = (humans - judge[:, None]) / _largest_error(judge, humans)
    total = np.nansum(e, axis=1, keepdims=True)
    squares = np.nansum(e**2, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_judge = (squares - e**2) / others
        of_j = ((others + 1) * e**2 - 2 * e * total + squares) / others
        # Equal errors must tie exactly, and a perfect match must not dip below zero.
        return -np.sqrt(np.round(of_judge.clip(0), 12)), -np.sqrt(np.round(of_j.clip(0), 12))


def _compare(
    name: str, w_f: Floats, w_h: Floats, cluster: NDArray[np.integer], epsilon: float, min_items: int
) -> Comparison:
    is_compared = ~np.isnan(w_f)
    n = int(is_compared.sum())
    if not n:
        return Comparison(name, 0, None, None, None, None)
    w_f, w_h = w_f[is_compared], w_h[is_compared]
    where = cluster[is_compared]
    p = p_value(w_h - w_f, epsilon, where) if n >= min_items else None
    # H1 of the other direction: mean(W_h - W_f) > epsilon.
    p_ahead = p_value(w_f - w_h, -epsilon, where) if n >= min_items else None
    return Comparison(name, n, float(w_f.mean()), float(w_h.mean()), p, None, number_of(where), p_ahead)


def alt_test_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    epsilon: float = 0.15,
    score: Score | None = None,
    min_items: int = 30,
    raters: Sequence[str] | None = None,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """``alt_test_omega`` and ``alt_test_rho`` of every cell, then rho and p for each annotator.

    ``score`` is accuracy on nominal scales and -RMSE on others unless given; for accuracy a judge's fractions are
    rounded half up to the scale. The interval of rho resamples clusters; the bounds of omega are the annotators that
    are beaten and those that are not ahead. Undefined where the table says that raters are anonymous slots.
    ``raters_as`` "sample": the interval of rho leaves out the annotators, too; each annotator's own row stays with
    them.
    """
    if raters_as == "sample":
        settings: dict[str, Any] = {
            "judge": judge,
            "by": by,
            "epsilon": epsilon,
            "score": score,
            "min_items": min_items,
        }
        settings |= {"raters": raters, "pool": pool, "seed": seed}
        plain = alt_test_report(table, bootstrap=bootstrap, confidence=confidence, **settings)
        return of_report(
            plain,
            lambda kept: alt_test_report(kept, bootstrap=0, **settings),
            table,
            {"alt_test_rho": "share"},
            raters=raters,
        )
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
        measure, scores = measured(compared, score)
        names = list(compared.annotators)
        if cell.has_persons:
            result = run_alt_test(
                scores, compared.humans, names, epsilon=epsilon, score=measure, min_items=min_items,
                cluster=compared.cluster,
            )  # fmt: skip
        else:
            result = AltTest(None, None, (), 0, ANONYMOUS)
        interval = _interval_of_rho(result, compared, scores, measure, bootstrap, confidence)
        rows = _estimates(
            result, compared, interval, Message("%(score)s, epsilon %(epsilon)s", score=measure, epsilon=f"{epsilon:g}")
        )
        report += [
            CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge, annotator=name) for estimate, name in rows
        ]
    return report


def measured(compared: JudgeAgainstPanel, score: Score | None = None) -> tuple[Score, Floats]:
    """How the test scores raters, and the judge's (N,) values it compares: the power is that of this test.

    Accuracy on nominal scales, the judge's fractions rounded half up to the scale; -RMSE on others, unless given.
    """
    measure: Score = score or ("accuracy" if compared.scale.level == "nominal" else "rmse")
    return measure, _on_labels(compared) if measure == "accuracy" else compared.judge


def _on_labels(compared: JudgeAgainstPanel) -> Floats:
    judged = ~np.isnan(compared.judge)
    labels = compared.judge.copy()
    labels[judged] = compared.scale.values[snapped(compared.judge[judged], compared.scale)]
    return labels


def _interval_of_rho(
    result: AltTest, compared: JudgeAgainstPanel, scores: Floats, measure: Score, resamples: int, confidence: float
) -> Interval:
    """Interval of the mean over tested annotators of their mean W_f, from clusters left out one by one."""
    tested = [j for j, c in enumerate(result.comparisons) if c.p is not None]
    wins = advantage(scores, compared.humans, measure)[0][:, tested]
    n = int(compared.cluster.max()) + 1 if len(compared.cluster) else 0
    if not (resamples and tested and n > 1):
        reason = Message("an interval needs two clusters") if resamples else Message("no resampling was asked for")
        return Interval(interval_reason=reason if tested else None)
    known = ~np.isnan(wins)
    sums, counts = np.zeros((2, n, len(tested)))
    np.add.at(sums, compared.cluster, np.where(known, wins, 0))
    np.add.at(counts, compared.cluster, known)
    totals = sums.sum(axis=0), counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float((totals[0] / totals[1]).mean())
        without = ((totals[0] - sums) / (totals[1] - counts)).mean(axis=1)
    holding = counts.any(axis=1)
    units = Units(np.ones(int(holding.sum()), dtype=np.intp), counts[holding].sum(axis=1, keepdims=True))
    se = float(left_out_error(np.array(value), without[holding], units)[0])
    return jackknife_interval(value, se, units.df, "share", n=float(units.n), confidence=confidence)


def _estimates(
    result: AltTest, compared: JudgeAgainstPanel, interval: Interval, variant: str
) -> list[tuple[Estimate, str | None]]:
    tested = [c for c in result.comparisons if c.p is not None]
    base: dict[str, Any] = {
        "level": compared.scale.level,
        "n_items": result.n_items,
        "n_clusters": result.n_clusters,
        "n_raters": len(tested),
        "n_ratings": int(compared.n_human.sum()),
        "reason": result.reason,
    }
    omega = Estimate(statistic="alt_test_omega", value=result.omega, note=_verdict(result, variant), **base)
    if result.omega is not None:
        if result.omega_high is not None and result.omega_high > result.omega:
            omega = omega.with_(low=result.omega, high=result.omega_high, confidence=1 - _ALPHA, method=BOTH_DIRECTIONS)
        else:
            omega = omega.with_(interval_reason=ALL_DECIDED)
    rho = Estimate(statistic="alt_test_rho", value=result.rho, note=variant, **base).with_(**interval.as_changes())
    rows: list[tuple[Estimate, str | None]] = [(omega, None), (rho, None)]
    return rows + [(_of_annotator(c, compared.scale.level), c.annotator) for c in result.comparisons]


def _verdict(result: AltTest, variant: str) -> str:
    if result.omega is None:
        return variant
    share = f"{result.omega:.0%}"
    passes = Message("passes: the judge beats %(share)s of annotators", share=share)
    return joined(
        (variant, passes if result.passes else Message("fails: the judge beats %(share)s of annotators", share=share))
    )


def _of_annotator(c: Comparison, level: str) -> Estimate:
    note = Message("beaten") if c.is_beaten else Message("not beaten")
    if c.p is None:
        note = Message("too few items: listed, not tested")
    return Estimate(
        statistic="alt_test_rho", value=c.judge_wins, p=c.p, level=level, n_items=c.n_items, n_raters=1, note=note,
        n_clusters=c.n_clusters, n_ratings=c.n_items,
        reason=None if c.judge_wins is not None else Message("no item shared with the judge and another rater"),
    )  # fmt: skip
