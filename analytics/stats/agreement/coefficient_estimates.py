"""Figures that don't ask who gave a score: one pass over a cell's patterns gives all of them and their intervals.

Items as patterns: how many raters gave each point, counted once per distinct pattern.

Every coefficient that doesn't ask who gave a score sees an item i only through its counts n_ik. A million items rated
by three people on five points show 55 different rows of counts, so the kernels work on (P, q) rows and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import coefficients, continuous_scales
from analytics.stats.agreement import coefficients as kernels
from analytics.stats.core.estimates import (
    CARRIED,
    MAX_UNDEFINED_SHARE,
    Doubt,
    Estimate,
    Interval,
    Shape,
    bca,
    doubted,
    few_for_shares,
    few_off_point,
    jackknife_interval,
    percentile,
    t_interval,
    tails_of,
    wilson_interval,
)
from analytics.stats.core.messages import Message, approximate
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import MOST_LEFT_OUT, Units, jackknife, left_out, left_out_error, resampled
from analytics.stats.core.scales import Scale, Weighting, agreement_weights
from analytics.stats.declared.register import BY_PLAIN_NAME, STATISTICS, is_chance_corrected

if TYPE_CHECKING:
    from analytics.stats.core.tables import Coded


# --- items with the same counts, taken together ----------------------------------------------------------------------

TABULATED_CODES = 1 << 16
"""Largest number of ordered patterns that is counted in a table instead of sorted."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """``counts`` (P, q): n_pk raters gave the point k in pattern p; ``units``: what is resampled, made of patterns.

    ``rated`` (P,): raters per item, where ``counts`` are other sums of an item's scores.
    """

    counts: Floats
    units: Units
    rated: Floats | None = None

    @property
    def weights(self) -> Floats:
        """(1, P) how many items show each pattern: the sample itself, as kernels take it."""
        return self.units.pattern_totals[None, :]

    @property
    def n(self) -> Floats:
        """(P,) raters per item, n_p."""
        return np.asarray(self.counts.sum(axis=1)) if self.rated is None else self.rated

    def where(self, keep: NDArray[np.bool_]) -> Patterns:
        """The same items without those whose pattern is not kept; a cluster may so become empty but stays a unit."""
        counts, rated = self.counts[keep], None if self.rated is None else self.rated[keep]
        if self.units.composition is None:
            return Patterns(counts, Units(self.units.multiplicity[keep]), rated)
        return Patterns(counts, Units(self.units.multiplicity, self.units.composition[:, keep]), rated)


def patterns_of(cell: Coded) -> Patterns:
    """Patterns of a coded cell; its clusters are the units."""
    return patterns_of_counts(cell.counts(), cell.cluster)


def patterns_of_counts(counts: NDArray[np.int64], cluster: NDArray[np.intp] | None = None) -> Patterns:
    """Patterns of (N, q) counts n_ik, items being resampled by their (N,) cluster (METHODS 1)."""
    distinct, pattern = _distinct(counts)
    return Patterns(distinct.astype(np.float64), Units.of(pattern, cluster))


def patterns_of_codes(codes: NDArray[np.integer], q: int) -> Patterns:
    """Patterns of an (N, R) array of codes 0..q-1, negative where missing, every item standing alone (METHODS 1).

    With few raters and points the ordered patterns fit a table: one pass over the codes and no sorting.
    """
    n_items, n_raters = codes.shape
    n_ordered = (q + 1) ** n_raters
    if n_ordered > TABULATED_CODES:
        return patterns_of_counts(_counted(codes, q))
    number: NDArray[np.uint16] = np.zeros(n_items, dtype=np.uint16)
    for rater in range(n_raters):
        number *= np.uint16(q + 1)
        number += (np.maximum(codes[:, rater], -1) + 1).astype(np.uint16)
    seen = np.bincount(number, minlength=n_ordered)
    ordered = np.flatnonzero(seen)
    digits = ordered[:, None] // (q + 1) ** np.arange(n_raters) % (q + 1) - 1
    counts, index = np.unique(_counted(digits, q), axis=0, return_inverse=True)
    multiplicity = np.bincount(index.ravel(), weights=seen[ordered], minlength=len(counts)).astype(np.int64)
    return Patterns(counts.astype(np.float64), Units(multiplicity))


def _counted(codes: NDArray[np.integer], q: int) -> NDArray[np.int64]:
    """(N, q) n_ik from (N, R) codes."""
    item, rater = np.nonzero(codes >= 0)
    return np.bincount(item * q + codes[item, rater], minlength=len(codes) * q).reshape(len(codes), q)


def _distinct(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Distinct rows and the row each item shows, by one number per row where the counts fit one."""
    base = int(counts.max()) + 1 if counts.size else 1
    if base ** counts.shape[1] < 2**62:
        number = counts @ base ** np.arange(counts.shape[1], dtype=np.int64)
        _, first, pattern = np.unique(number, return_index=True, return_inverse=True)
        return counts[first], pattern
    distinct, pattern = np.unique(counts, axis=0, return_inverse=True)
    return distinct, pattern.ravel()


# --- estimates -------------------------------------------------------------------------------------------------------
Kernel = Callable[[Floats, Floats], Floats]

MANY_UNITS = 5000
"""From here on continuous scores are linearised: 2,000 resamples would say the same after many seconds."""
NOTHING_DIFFERS = Message("no two scores that share an item differ")

SKEWED = ("fleiss_kappa", "krippendorff_alpha")
"""Where nearly all scores lie on one point, chance takes nearly all agreement of these: their errors follow value."""
CONSERVATIVE_AT_A_POINT = {
    ("percent_agreement", None): False, ("percent_agreement_exact", None): False,
    ("verdict_confidence", "observed"): False, ("verdict_confidence", "corrected"): True, ("gwet_ac", "identity"): True,
}  # fmt: skip
"""Figures that are not SKEWED and whose intervals are conservative where few scores are off the commonest point;
whether they are corrected for chance: then also of many items."""

CONFIDENCE_BANDS = (0.60, 0.75, 0.85)
"""S2 reads Verdict Confidence by these bounds."""
PAPER_NOTE = Message("S0's script: n taken from the first item; biased when items have unequal ratings")


@dataclass(frozen=True, slots=True)
class CountFigure:
    """One statistic and variant as a kernel (P, q), (B, P) -> (B,).

    ``influence`` (P, q), (P,) -> (P,) linearises it where a published standard error exists. ``complete`` restricts it
    to the items with that many ratings. ``is_share``: a mean of answers between 0 and 1, with Wilson's interval by
    default and the spread of the resamples (decision 0015).
    """

    statistic: str
    variant: str | None
    kernel: Kernel
    influence: Kernel | None = None
    weights: Weighting | None = None
    complete: int | None = None
    paper: bool = False
    is_share: bool = False

    @property
    def is_corrected(self) -> bool:
        """Whether chance is taken out, so that values below 0 have a meaning."""
        return is_chance_corrected(self.statistic) or self.variant == "corrected"

    @property
    def shape(self) -> Shape:
        """The range of values that the statistic can have."""
        if self.is_share:
            return "share"
        return "coefficient" if self.is_corrected and not self.paper else "free"


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are made: ``resamples`` 0 asks for closed-form and jackknife ones.

    ``method``: ``percentile``, ``bca``, or ``default``: jackknife t where units are few enough to leave out one by one
    (docs/decisions/0017), else what covers best for the statistic, and percentile where BCa has no acceleration.
    """

    resamples: int = 2000
    method: str = "default"
    confidence: float = 0.95

    def leaves_out(self, units: Units) -> bool:
        """Whether intervals come from leaving out units, not from resampling them."""
        return self.method == "default" and units.n_kinds <= MOST_LEFT_OUT

    def wants_bca(self, statistic: str) -> bool:
        """Whether a statistic's resamples are to be corrected for bias and skewness."""
        if self.method != "default":
            return self.method == "bca"
        return statistic in BY_PLAIN_NAME and BY_PLAIN_NAME[statistic].prefers_bca

    def interval(
        self, statistic: str, value: float, draws: Floats, without: Floats | None, multiplicity: Floats
    ) -> Interval:
        """The interval from (B,) draws and, for BCa, (U,) values with a unit of each kind left out."""
        plain = percentile(draws, confidence=self.confidence)
        if without is None or not self.wants_bca(statistic) or plain.low is None:
            return plain
        corrected = bca(value, draws, without, multiplicity, confidence=self.confidence)
        return plain if corrected.low is None and self.method == "default" else corrected


def figures_for(cell: Coded, statistics: Collection[str] | None = None) -> list[CountFigure]:
    """The count-based figures that mean something on the cell's scale, in the published order."""
    weighted = _weighted(cell.scale, statistics)
    figures = [*_percentages(cell.scale), *_fleiss(cell), _alpha(cell.scale), *weighted, *_confidence()]
    if not coefficients.is_wide(cell.scale, cell.n_items):
        figures += [
            CountFigure(
                declared.plain, None, getattr(coefficients, declared.kernel), is_share=declared.written == "share"
            )
            for declared in STATISTICS.values()
            if declared.kernel
        ]
    return [figure for figure in figures if statistics is None or figure.statistic in statistics]


def estimates_from_counts(
    cell: Coded, figures: Sequence[CountFigure], *, rng: np.random.Generator, how: Resampling = Resampling()
) -> list[Estimate]:
    """An estimate per figure; all figures see the same resamples. Cells of ``wide`` are linearised, not resampled."""
    if not cell.scale.is_sparse and coefficients.is_wide(cell.scale, cell.n_items):
        return _wide(cell, figures, how)
    if cell.scale.is_continuous:
        return [_continuous(cell, figure, rng, how) for figure in figures]
    patterns = patterns_of(cell)
    values = [float(value) for value in _together(patterns, figures)(patterns.weights)[:, 0]] if cell.n_items else []
    reasons = [reason_undefined(cell, patterns, figure) for figure in figures]
    estimates = []
    for figure, reason, value in zip(figures, reasons, values or [np.nan] * len(figures), strict=True):
        why = reason or (Message("chance alone would agree always") if np.isnan(value) else None)
        base = _described(cell, figure)
        estimates.append(_banded(base.with_(value=None if why else value, reason=why)))
    return _with_intervals(
        patterns, figures, estimates, rng, how, doubt_of(patterns.counts, patterns.units, cell.scale)
    )


def _banded(estimate: Estimate) -> Estimate:
    """Verdict Confidence with the band it falls into."""
    if estimate.value is None or (estimate.statistic, estimate.variant) != ("verdict_confidence", "observed"):
        return estimate
    bounds = [0.0, *(bound for bound in CONFIDENCE_BANDS if bound <= estimate.value)]
    above = [bound for bound in (*CONFIDENCE_BANDS, 1.0) if bound > estimate.value] or [1.0]
    return estimate.with_(note=Message("band %(low)s to %(high)s", low=f"{bounds[-1]:.2f}", high=f"{above[0]:.2f}"))


def reason_undefined(cell: Coded, patterns: Patterns, figure: CountFigure) -> str | None:
    """Why a figure has no value here, by METHODS 1's edge rulings."""
    return _reason(cell, figure, patterns.n, lambda kept: int((patterns.counts[kept].sum(axis=0) > 0).sum()))


def _reason(cell: Coded, figure: CountFigure, n: Floats, points_used: Callable[[NDArray[np.bool_]], int]) -> str | None:
    """The same from the ratings per item or pattern n (P,) and how many points the kept ones (P,) use."""
    if not cell.code.size:
        return Message("nothing is rated")
    if len(cell.raters) < 2:
        return Message("only one rater")
    if not (n >= 2).any():
        return Message("no item has two ratings")
    if figure.complete is not None and not (n == figure.complete).any():
        return Message("no item was rated by all %(raters)s raters", raters=figure.complete)
    if figure.variant == "corrected" and cell.scale.q < 2:
        return Message("the scale has a single point")
    if not is_chance_corrected(figure.statistic):
        return None
    kept = np.ones(len(n), dtype=bool)
    if figure.complete is not None:
        kept = n == figure.complete
    elif figure.statistic == "krippendorff_alpha":
        kept = n >= 2
    return None if points_used(kept) > 1 else _reason_without_contrast(cell.scale, figure)


def _reason_without_contrast(scale: Scale, figure: CountFigure) -> str | None:
    """Every score kept is the same point."""
    if BY_PLAIN_NAME[figure.statistic].counts_unused_points:
        if not scale.declared:
            return Message("only one category is used and no scale is declared")
        return None if scale.q > 1 else Message("the scale has a single point")
    return Message("only one category is used: chance alone would agree always")


def _percentages(scale: Scale) -> list[CountFigure]:
    figures = [
        CountFigure("percent_agreement", None, kernels.percent_agreement_kernel, is_share=True),
        CountFigure("percent_agreement_pooled", None, kernels.percent_agreement_pooled, is_share=True),
        CountFigure("percent_agreement_exact", None, kernels.percent_agreement_exact, is_share=True),
    ]
    adjacent = CountFigure("percent_agreement_adjacent", None, kernels.percent_agreement_adjacent, is_share=True)
    return [*figures, adjacent] if scale.has_order else figures


def _fleiss(cell: Coded) -> list[CountFigure]:
    """The sound value over unequal numbers of raters, the one over complete items, and S0's script."""
    identity = np.eye(1 if cell.scale.is_continuous else cell.scale.q)
    influence = partial(coefficients.fleiss_influence, w=identity)
    # Ratings of the first item, in the order of the file, that has two or more.
    per_row = np.bincount(cell.item, minlength=1)[cell.item]
    places = np.where(per_row >= 2, cell.place, np.iinfo(np.intp).max)
    as_printed = partial(kernels.fleiss_kappa_fixed, n=(int(per_row[places.argmin()]) if per_row.size else 0))
    return [
        CountFigure("fleiss_kappa", "unequal", kernels.fleiss_kappa_kernel, influence),
        CountFigure("fleiss_kappa", "complete", kernels.fleiss_kappa_kernel, influence, complete=len(cell.raters)),
        CountFigure("fleiss_kappa", "paper_compat", as_printed, paper=True),
    ]


def _alpha(scale: Scale) -> CountFigure:
    if scale.is_continuous:
        return CountFigure("krippendorff_alpha", None, kernels.krippendorff_alpha_interval)
    return CountFigure(
        "krippendorff_alpha", None, partial(kernels.krippendorff_alpha_kernel, x=scale.values, level=scale.level)
    )


def _weighted(scale: Scale, statistics: Collection[str] | None) -> list[CountFigure]:
    """Without those that nobody wants: their weights are tables of points by points."""
    names: tuple[Weighting, ...] = ("identity", "linear", "quadratic", "ordinal") if scale.has_order else ("identity",)
    figures = []
    for statistic, kernel, influence in (
        ("gwet_ac", kernels.gwet_ac_kernel, coefficients.gwet_influence),
        ("brennan_prediger", kernels.brennan_prediger, coefficients.brennan_prediger_influence),
    ):
        for name in names if statistics is None or statistic in statistics else ():
            w = np.eye(1) if scale.is_continuous else agreement_weights(scale, name)
            figures.append(CountFigure(statistic, name, partial(kernel, w=w), partial(influence, w=w), name))
    return figures


def _confidence() -> list[CountFigure]:
    return [
        CountFigure("verdict_confidence", "observed", kernels.verdict_confidence, is_share=True),
        CountFigure("verdict_confidence", "chance", kernels.verdict_confidence_chance),
        CountFigure("verdict_confidence", "corrected", kernels.verdict_confidence_corrected),
    ]


def _together(patterns: Patterns, figures: Sequence[CountFigure]) -> Callable[[Floats], Floats]:
    """All figures as one statistic of weights (B, P) -> (figures, B)."""
    views = [_view(patterns, figure) for figure in figures]

    def values(weights: Floats) -> Floats:
        return np.stack(
            [figure.kernel(counts, weights if keep is None else weights[:, keep])
             for figure, (counts, keep) in zip(figures, views, strict=True)]
        )  # fmt: skip

    return values


def _view(patterns: Patterns, figure: CountFigure) -> tuple[Floats, NDArray[np.bool_] | None]:
    if figure.complete is None:
        return patterns.counts, None
    keep = patterns.n == figure.complete
    return patterns.counts[keep], keep


def _described(cell: Coded, figure: CountFigure) -> Estimate:
    """The counts an estimate carries: the items that enter its observed agreement, their raters and ratings."""
    per_item = np.bincount(cell.item, minlength=cell.n_items)
    enters = per_item == figure.complete if figure.complete is not None else per_item >= 2
    return Estimate(
        statistic=figure.statistic,
        variant=figure.variant,
        level=cell.scale.level,
        value=None,
        reason=Message("not computed"),
        n_items=int(enters.sum()),
        n_raters=int(np.count_nonzero(np.bincount(cell.rater[enters[cell.item]]))),
        n_ratings=int(per_item[enters].sum()),
        n_missing=cell.n_missing,
        note=PAPER_NOTE if figure.paper else None,
    )


def _with_intervals(
    patterns: Patterns,
    figures: Sequence[CountFigure],
    estimates: list[Estimate],
    rng: np.random.Generator,
    how: Resampling,
    doubt: Doubt | None,
) -> list[Estimate]:
    """Standard errors where a formula is published, then intervals: jackknife, resampled, or closed-form.

    ``doubt`` says why those of SKEWED figures are approximate.
    """
    with_se = [_with_se(patterns, figure, estimate) for figure, estimate in zip(figures, estimates, strict=True)]
    defined = [index for index, estimate in enumerate(with_se) if estimate.value is not None]
    units, kept = patterns.units, [figures[index] for index in defined]
    if not defined or units.n < 2:
        reason = Message("an interval needs two items") if defined else None
        return [e.with_(interval_reason=reason) if e.is_defined else e for e in with_se]
    intervals = (
        _intervals(patterns, kept, [with_se[index] for index in defined], rng, how, doubt)
        if how.resamples
        else [_closed(patterns, figures[index], with_se[index], how) for index in defined]
    )
    for index, interval in zip(defined, intervals, strict=True):
        lowest = -np.inf if figures[index].is_corrected else 0.0
        highest = np.inf if figures[index].paper else 1.0
        with_se[index] = with_se[index].with_(**interval.within(lowest, highest).as_changes())
    return with_se


def _with_se(patterns: Patterns, figure: CountFigure, estimate: Estimate) -> Estimate:
    if estimate.value is None or figure.influence is None:
        return estimate
    counts, keep = _view(patterns, figure)
    units = patterns.units if keep is None else patterns.units.holding(keep)
    se = coefficients.linearised_standard_error(figure.influence(counts, units.pattern_totals), units)
    return estimate.with_(se=se if np.isfinite(se) else None)


def _intervals(
    patterns: Patterns,
    figures: Sequence[CountFigure],
    estimates: Sequence[Estimate],
    rng: np.random.Generator,
    how: Resampling,
    doubt: Doubt | None,
) -> list[Interval]:
    """Jackknife intervals where units are few enough to leave each out, and resampled ones for what that undefines."""
    doubts = [doubt if figure.statistic in SKEWED else None for figure in figures]
    if not how.leaves_out(patterns.units):
        intervals = _resampled(patterns, figures, estimates, rng, how)
        return [doubted(interval, why) for interval, why in zip(intervals, doubts, strict=True)]
    for index, figure in enumerate(figures):
        if (is_corrected := CONSERVATIVE_AT_A_POINT.get((figure.statistic, figure.variant))) is not None:
            doubts[index] = few_for_shares(doubt, 0 if is_corrected else patterns.units.n)
    values = np.array([estimate.value for estimate in estimates], dtype=np.float64)
    errors, dfs = left_out_error(values, left_out(_together(patterns, figures), patterns.units), patterns.units)
    undefined = [index for index, se in enumerate(errors) if np.isnan(se)]
    again = [figures[index] for index in undefined], [estimates[index] for index in undefined]
    resampled_ones = iter(_resampled(patterns, *again, rng, how)) if undefined else iter(())
    return [
        doubted(next(resampled_ones), CARRIED)
        if np.isnan(se)
        else _left_out(patterns, figure, estimate, (float(se), float(df)), how, why)
        for figure, estimate, se, df, why in zip(figures, estimates, errors, dfs, doubts, strict=True)
    ]


def _left_out(
    patterns: Patterns,
    figure: CountFigure,
    estimate: Estimate,
    error: tuple[float, float],
    how: Resampling,
    doubt: Doubt | None,
) -> Interval:
    """The jackknife interval of one figure; its published standard error, where there is one, stays."""
    is_skewed, paired = figure.statistic in SKEWED, patterns.units.holding(patterns.n >= 2)
    # Items with a single rating are no part of these figures: they give no degree of freedom.
    entering = paired if figure.complete is None else patterns.units.holding(patterns.n == figure.complete)
    interval = jackknife_interval(
        float(estimate.value or 0.0), error[0], (entering if is_skewed else patterns.units).df, figure.shape,
        tail_df=error[1], n=float(paired.n), doubt=doubt, is_kappa=is_skewed, confidence=how.confidence,
    )  # fmt: skip
    return interval if estimate.se is None else replace(interval, se=None)


def doubt_of(counts: Floats, units: Units, scale: Scale, *, weighted: bool = False) -> Doubt | None:
    """Why chance-corrected figures of patterns (P, q) are skewed, if so.

    Few items of two ratings or more leave the commonest point, or all of them in few clusters; or scores have heavy
    tails and a figure takes them for distances (``weighted``, or by the level of the scale).
    Source: bench/results/coverage_processes.md.
    """
    items = units.pattern_totals
    totals = items @ counts
    if not totals.sum():
        return None
    n = counts.sum(axis=1)
    off = (n >= 2) & (n > counts[:, totals.argmax()])
    n_items, n_units = int(items @ off), units.holding(off).n
    if few := few_off_point(n_items, n_units):
        return few
    if scale.q <= 2 or not (weighted or scale.level in ("interval", "ratio")):
        return None
    used = totals > 0
    x, per_point, n_or_1 = scale.values[used], counts[:, used], np.maximum(n, 1)
    means = per_point @ x / n_or_1
    left = (x - means[:, None]).ravel(), (per_point * items[:, None]).ravel()
    return tails_of(len(x), int(items @ (n >= 2)), (x, totals[used]), (means, items * (n >= 2)), left)


def _resampled(
    patterns: Patterns,
    figures: Sequence[CountFigure],
    estimates: Sequence[Estimate],
    rng: np.random.Generator,
    how: Resampling,
) -> list[Interval]:
    statistic = _together(patterns, figures)
    values = resampled(statistic, patterns.units, resamples=how.resamples, rng=rng)
    skewed = [index for index, figure in enumerate(figures) if how.wants_bca(figure.statistic)]
    without: dict[int, Floats] = {}
    if skewed:
        rows = left_out(_together(patterns, [figures[index] for index in skewed]), patterns.units)
        without = dict(zip(skewed, rows, strict=True))
    m = patterns.units.multiplicity.astype(np.float64)
    return [
        _of_share(patterns, estimate, row, how)
        if how.method == "default" and figures[index].is_share
        else how.interval(estimate.statistic, float(estimate.value or 0.0), row, without.get(index), m)
        for index, (estimate, row) in enumerate(zip(estimates, values, strict=True))
    ]


def _of_share(patterns: Patterns, estimate: Estimate, draws: Floats, how: Resampling) -> Interval:
    """Wilson's interval with the spread of (B,) resamples; units in which everybody agrees still count as answers."""
    undefined = float(np.isnan(draws).mean())
    if undefined > MAX_UNDEFINED_SHARE:
        return percentile(draws, confidence=how.confidence)
    answers = patterns.units.holding(patterns.n >= 2).n
    spread = float(np.nanstd(draws))
    interval = wilson_interval(
        float(estimate.value or 0.0),
        spread,
        answers,
        method=Message("Wilson, bootstrap spread"),
        confidence=how.confidence,
    )
    return replace(interval, undefined_share=undefined)


def _closed(patterns: Patterns, figure: CountFigure, estimate: Estimate, how: Resampling) -> Interval:
    counts, keep = _view(patterns, figure)
    units = patterns.units if keep is None else patterns.units.holding(keep)
    if estimate.se is not None and estimate.value is not None:
        method: str = Message("linearised t")
        if (patterns.n == 1).any():
            method = approximate(method, Message("single ratings"))
        return t_interval(estimate.value, estimate.se, units.df, method=method, confidence=how.confidence)
    interval = jackknife(lambda weights: figure.kernel(counts, weights), units, confidence=how.confidence)
    if figure.is_share and how.method == "default" and interval.se is not None:
        answers = units.holding(patterns.n >= 2).n
        value = float(estimate.value or 0.0)
        return wilson_interval(value, interval.se, answers, method="Wilson, jackknife", confidence=how.confidence)
    return interval


def _wide(cell: Coded, figures: Sequence[CountFigure], how: Resampling) -> list[Estimate]:
    """Many points and many items: exact values from the long list of scores, with linearised intervals."""
    scores, estimates = continuous_scales.LongScores(cell), []
    for figure in figures:
        base = _described(cell, figure)
        reason = _reason(cell, figure, scores.n, scores.points_used)
        value = continuous_scales.coefficient(scores, figure.statistic, figure.variant) if reason is None else None
        if value is None or np.isnan(value[0]):
            estimates.append(base.with_(reason=reason or Message("chance alone would agree always")))
            continue
        estimates.append(_linearised(cell, base, value, figure, how))
    return estimates


def _linearised(
    cell: Coded, base: Estimate, value: continuous_scales.Value, figure: CountFigure, how: Resampling
) -> Estimate:
    if np.isnan(value[0]):
        return base.with_(reason=NOTHING_DIFFERS)
    is_kappa = figure.statistic in SKEWED
    interval = continuous_scales.interval(
        value, cell.cluster, figure.shape, is_kappa=is_kappa, confidence=how.confidence
    )
    lowest, highest = -np.inf if figure.is_corrected else 0.0, np.inf if figure.paper else 1.0
    return _banded(base.with_(value=value[0], reason=None, **interval.within(lowest, highest).as_changes()))


def _continuous(cell: Coded, figure: CountFigure, rng: np.random.Generator, how: Resampling) -> Estimate:
    """On a continuous scale only interval alpha is left; it needs no categories."""
    base = _described(cell, figure)
    if figure.statistic != "krippendorff_alpha" or cell.scale.level != "interval":
        return base.with_(reason=cell.scale.why_continuous)
    if len(np.unique(cell.cluster)) > MANY_UNITS:
        return _linearised(cell, base, continuous_scales.alpha(continuous_scales.LongScores(cell)), figure, how)
    if not cell.code.size:
        return base.with_(reason=NOTHING_DIFFERS)
    x = cell.scale.values[cell.code]
    # Around the middle score, so that what is left without a far one keeps its digits.
    x = (x - np.median(x)) / (float(np.ptp(x)) or 1.0)
    sums = [np.bincount(cell.item, weights=power, minlength=cell.n_items) for power in (x**0, x, x**2)]
    moments = np.stack(sums, axis=1).astype(np.float64)
    patterns = Patterns(moments, Units.of(np.arange(cell.n_items), cell.cluster), sums[0].astype(np.float64))
    value = float(figure.kernel(moments, patterns.weights)[0])
    if np.isnan(value):
        return base.with_(reason=NOTHING_DIFFERS)
    means = sums[1] / np.maximum(sums[0], 1)
    doubt = tails_of(
        len(np.unique(x)), int((sums[0] >= 2).sum()), (x,), (means[sums[0] >= 2],), (x - means[cell.item],)
    )
    return _with_intervals(patterns, [figure], [base.with_(value=value, reason=None)], rng, how, doubt)[0]
