"""The judge against the panel, cell by cell, with cluster bootstrap intervals (METHODS 3).

``report(table, judge="gpt")`` returns a list of ``CellEstimate``: for every cell MAE, RMSE, bias, Pearson, Spearman,
Kendall tau-b, accuracy (exact and adjacent), weighted F1, F1 / precision / recall of each label, Cohen's kappa
(unweighted, linear, quadratic), each with an interval or the reason there is none, then the counts of what was left
out: ``out_of_range`` judge scores and items ``without_reference``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import continuous_scales
from analytics.stats.core import resampling
from analytics.stats.core.estimates import (
    CARRIED,
    FEW_POINTS,
    MAX_UNDEFINED_SHARE,
    CellEstimate,
    Doubt,
    Estimate,
    Interval,
    Keeps,
    doubted,
    few_for_shares,
    few_off_point,
    jackknife_interval,
    log_t_interval,
    percentile,
    tails_of,
    wilson_interval,
)
from analytics.stats.core.messages import Message, approximate, conservative
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import MOST_LEFT_OUT, RatersAs, Units, left_out_error, number_of
from analytics.stats.core.scales import Scale, snapped
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.judge import agreement_classes, association, calibration_curve, human_ceiling, substitution
from analytics.stats.judge.association import (
    CORRELATIONS,
    MOST_LABELS,
    PairFigure,
    confusion,
    inapplicable,
    row_shares,
    values,
)
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
from analytics.stats.judge.modes import modes
from analytics.stats.judge.reference import Rule, Ties, labels_of

Doubts = Callable[[PairFigure], Doubt | None]

REFERENCES = ("mode", "median", "mean", "minimum", "each", "dawid_skene", "adjudicated", "adjudicated_first")
SETTLED = ("dawid_skene", "adjudicated", "adjudicated_first")
"""Rules that look beyond an item's own scores."""
COUNTS = ("out_of_range", "without_reference")
_BESIDE = (*human_ceiling.CEILING_STATISTICS, "panel_given_judge", "verdict_confidence")
_ON_REQUEST = ("confusion", *agreement_classes.CLASS_STATISTICS)
"""Long lists, shown when they are asked for by name."""
STATISTICS = (*association.STATISTICS, *COUNTS, *_BESIDE, *_ON_REQUEST)
SHARE_WITHOUT_MODE = 0.1
"""Share of items without a mode from which on the command asks for the rule by name (METHODS 3)."""
FEW_ANSWERS = 10
"""A share of fewer is covered more often than asked for (bench/results/coverage_judges.md): approximate."""
ENOUGH_ANSWERS = 150
"""Precision and recall of fewer independent answers, whatever they are, are approximate: where few are false, samples
with more of them than usual have too narrow an interval, and no mark that looks at the answers finds these."""
WIDE_ANSWERS, WIDE_UNITS = 50, 15
"""The F1 of a label from fewer answers, F1 of a label and accuracy from fewer units cover up to .98: conservative."""
WIDE_AT_A_POINT = ("accuracy", "f1_weighted", "mae", "bias")
"""Figures whose intervals are conservative where few answers are off the commonest point."""
_FEW_DIFFER = 3
"""Fewer answers that differ from the others leave precision and recall near 0 or 1 approximate."""
ENOUGH_FOR_TAILS = 1000
"""Fewer errors on a continuous scale may have no large one among them: RMSE is then approximate."""
ENOUGH_FOR_SQUARES, ENOUGH_FOR_F1, OFF_POINT_FOR_F1 = 45, 60, 28
"""Of fewer items with judge score and label RMSE covers .90 to .92 (28 to 36 grades; 42 and 45: .94 and .95), and
weighted F1 at a ceiling .92 to .93 (49 items; 58: .94): approximate (docs/decisions/0017). Weighted F1 of 50 items with
25 to 27 off the commonest point covers .91."""
_POOLED = Message("criteria are pooled: what differs between them counts as correlation")


def calibration_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    reference: str | None = None,
    raters: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    ties: Ties = "exclude",
    raters_as: RatersAs = "these",
    keeps: Keeps | None = None,
) -> list[CellEstimate]:
    """Every calibration figure of one judge in every cell of the table.

    Parameters
    ----------
    reference : "mode", "median", "mean", "minimum" or "each"; by default the mode, on interval scales the mean. Items
        whose mode is tied have no reference label: left out and counted. ``each`` faces the judge with every annotator
        in turn and averages the annotators' figures. Or a rule of ``reference.reference_labels``: ``dawid_skene``,
        ``adjudicated``, ``adjudicated_first``.
    ties : what the mode does with items on which several points lead (``reference.settled_labels``).
    raters : the annotators that make the panel, all by default.
    statistics : names of figures (``association.STATISTICS``, ``COUNTS``), all by default; ``confusion`` (row shares
        of the confusion matrix, variant "reference label ~ judge label") only when it is named.
    bootstrap : resamples of clusters; 0 gives values without intervals.
    raters_as : "sample" makes intervals for raters like these (``resampling``), not for these raters alone.
    keeps : variants that it refuses are not computed.

    Returns
    -------
    One ``CellEstimate`` per figure. ``n_items`` counts the items compared, ``n_raters`` the annotators,
    ``n_ratings`` the human scores behind the reference, ``n_missing`` the items left out.
    """
    rows = []
    for cell in cells(table, by=by, pool=pool):
        rule = reference or default_reference(cell.scale)
        compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
        if rule in SETTLED or (rule == "mode" and ties != "exclude"):
            settle = partial(labels_of, cell, compared.rows, rule=cast("Rule", rule), ties=ties)
            compared = replace(compared, labels=settle(raters=raters))
        else:
            settle = None
        shown = rule if ties == "exclude" or rule not in ("mode", "adjudicated_first") else f"{rule}, ties: {ties}"
        estimates = calibrate(
            compared, rule=rule, statistics=statistics, bootstrap=bootstrap, confidence=confidence, seed=seed,
            keeps=keeps,
        )  # fmt: skip
        if raters_as == "these":
            estimates = [e if e.statistic in COUNTS else resampling.for_these(e) for e in estimates]
        else:
            left = [_without_annotator(compared, i, settle) for i in range(len(compared.annotators))]
            estimates = calibration_for_raters_like_these(estimates, compared, left, rule)
        if pool and cell.frame["criterion"].nunique() > 1:
            estimates = [e.with_(note=_POOLED) if e.statistic in CORRELATIONS else e for e in estimates]
        rows += [CellEstimate(estimate=e, cell=cell_key(cell), judge=judge, reference=shown) for e in estimates]
    return rows


def beside_humans(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """The statistics shown beside the figures, per cell.

    The human ceiling (``ceiling_accuracy``, ``ceiling_mae``, ``ceiling_pearson``), ``panel_given_judge``, Verdict
    Confidence with the judge in a rater's place; and the distribution of scores by class of agreement (``class_share``,
    ``score_share``) when it is named.
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
        rows = []
        if statistics is None or set(statistics) & set(human_ceiling.CEILING_STATISTICS):
            rows += human_ceiling.ceiling_estimates(compared, bootstrap=bootstrap, confidence=confidence, seed=seed)
        if statistics is None or "panel_given_judge" in statistics:
            rows += calibration_curve.reliability_table(compared, confidence=confidence)
        if statistics is None or "verdict_confidence" in statistics:
            rows += substitution.substitution_estimates(compared, confidence=confidence, seed=seed)
        kept = [row for row in rows if statistics is None or row.statistic in statistics]
        report += [CellEstimate(estimate=row, cell=cell_key(cell), judge=judge) for row in kept]
        if set(statistics or ()) & set(agreement_classes.CLASS_STATISTICS):
            report += agreement_classes.of_cell(cell, judges=[judge], raters=raters)
    return report


def default_reference(scale: Scale) -> str:
    """The panel's mode, or its mean where scores are distances."""
    return "mean" if scale.level in ("interval", "ratio") else "mode"


def calibrate(
    compared: JudgeAgainstPanel,
    *,
    rule: str,
    statistics: Sequence[str] | None = None,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    keeps: Keeps | None = None,
) -> list[Estimate]:
    """The figures of one judge against one panel."""
    chosen = association.figures(compared.scale, statistics)
    if keeps:
        chosen = [figure for figure in chosen if keeps(figure.statistic, figure.variant, compared.scale.level)]
    faced = face(compared, rule)
    if association.is_many(faced.part, faced.judge, faced.reference):
        doubts = _doubts(faced, compared.scale)
        estimates = [_linearised(figure, compared, faced, confidence, doubts) for figure in chosen]
    else:
        units = faced.units()
        point = faced.kernel(chosen, compared.scale)(units.pattern_totals[None, :])[:, 0]
        intervals = _intervals(faced, chosen, compared.scale, units, bootstrap, confidence, seed)
        estimates = [
            _estimate(figure, value, interval, compared, faced).with_(seed=seed if bootstrap else None)
            for figure, value, interval in zip(chosen, point.tolist(), intervals, strict=True)
        ]
    names = COUNTS if statistics is None else statistics
    if "confusion" in names:
        estimates += _confusion(compared, rule)
    return estimates + [count for count in _counts(compared, faced) if count.statistic in names]


def calibration_for_raters_like_these(
    estimates: Sequence[Estimate], compared: JudgeAgainstPanel, left: Sequence[JudgeAgainstPanel], rule: str
) -> list[Estimate]:
    """Intervals that take the annotators for a sample; ``left`` are judge and panel without each of them.

    Against the most frequent score they cover .987 to .999 with 30 raters of whom some are careless: conservative
    (bench/results/coverage_processes.md).
    """
    shapes = {figure.statistic: figure.shape for figure in association.figures(compared.scale)}
    names = [e.statistic for e in estimates if e.statistic in shapes]
    sizes = (~np.isnan(compared.humans)).sum(axis=0)
    values: list[dict[tuple[str, str | None], float | None]] = [
        {(e.statistic, e.variant): e.value for e in calibrate(one, rule=rule, statistics=names, bootstrap=0)}
        for one, size in zip(left, sizes, strict=True) if size
    ] if (sizes > 0).sum() >= resampling.FEWEST_RATERS else []  # fmt: skip
    found = []
    for e in estimates:
        if e.statistic not in shapes:
            found.append(e)
            continue
        without = [one.get((e.statistic, e.variant)) for one in values]
        wide = _cut(resampling.for_raters_like_these(e, without, sizes, shapes[e.statistic]), compared.scale)
        if rule == "mode" and wide.method is not None:
            why = Message("the most frequent scores of a sample of raters")
            wide = wide.with_(method=conservative(wide.method, why))
        found.append(wide)
    return found


def _without_annotator(
    compared: JudgeAgainstPanel, index: int, settle: Callable[..., Floats] | None
) -> JudgeAgainstPanel:
    """Judge and panel without one annotator, the labels settled anew."""
    kept = tuple(name for i, name in enumerate(compared.annotators) if i != index)
    humans = np.delete(compared.humans, index, axis=1)
    return replace(compared, humans=humans, annotators=kept, labels=settle(raters=kept) if settle else None)


@dataclass(frozen=True)
class Faced:
    """Judge scores and reference labels side by side, (M,) each.

    ``part`` (M,) is 0 everywhere, or the annotator whose scores are the reference (rule ``each``).
    """

    judge: Floats
    reference: Floats
    part: Codes
    cluster: Codes
    n_items: int
    n_ratings: int
    n_without_reference: int
    n_left_out: int

    @cached_property
    def clusters(self) -> Codes:
        """(M,) number of each pair's cluster, from 0."""
        return np.unique(self.cluster, return_inverse=True)[1]

    @cached_property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.clusters.max(initial=-1)) + 1

    @cached_property
    def parts(self) -> list[Codes]:
        """Places of the pairs of each part."""
        return [np.flatnonzero(self.part == one) for one in np.unique(self.part)]

    def units(self) -> Units:
        """The units that are resampled: clusters made of distinct (part, judge, reference) patterns."""
        return Units.of(self._patterns[1], self.cluster)

    def kernel(self, chosen: Sequence[PairFigure], scale: Scale) -> resampling.Statistic:
        """The chosen figures as a function of pattern weights (b, P) -> (F, b), averaged over parts."""
        patterns, _ = self._patterns
        part, x, y = patterns.T
        parts = [np.flatnonzero(part == one) for one in np.unique(part)] or [np.empty(0, dtype=np.intp)]

        def statistic(weights: Floats) -> Floats:
            of_parts = np.array([values(chosen, x[p], y[p], weights[:, p], scale) for p in parts])
            defined = ~np.isnan(of_parts)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean: Floats = np.where(defined, of_parts, 0).sum(axis=0) / defined.sum(axis=0)
            return mean

        return statistic

    @cached_property
    def _patterns(self) -> tuple[Floats, Codes]:
        """(P, 3) the distinct combinations of part, judge's score and label, sorted; (M,) the one of each pair."""
        number = np.zeros(len(self.judge), dtype=np.int64)
        for column in (self.part, self.judge, self.reference):
            values, codes = np.unique(column, return_inverse=True)
            number = np.unique(number * max(len(values), 1) + codes, return_inverse=True)[1]
        first = np.unique(number, return_index=True)[1]
        columns = (self.part[first], self.judge[first], self.reference[first])
        return np.column_stack(columns).astype(np.float64), number


def face(compared: JudgeAgainstPanel, rule: str) -> Faced:
    """The judge's scores beside the reference labels that a rule makes of the panel's."""
    judged = ~np.isnan(compared.judge)
    if rule == "each":
        item, part = np.nonzero(~np.isnan(compared.humans) & judged[:, None])
        label = compared.humans[item, part]
    else:
        labels = panel_labels(compared, rule)
        item = np.flatnonzero(judged & ~np.isnan(labels))
        part, label = np.zeros(len(item), dtype=np.intp), labels[item]
    used = np.unique(item)
    rated = compared.n_human > 0
    if compared.labels is not None:
        rated |= ~np.isnan(compared.labels)
    tied = int((rated & judged).sum()) - len(used)
    return Faced(
        compared.judge[item], label, part, compared.cluster[item], len(used), int(compared.n_human[used].sum()), tied,
        int((rated | judged).sum()) - len(used),
    )  # fmt: skip


def panel_labels(compared: JudgeAgainstPanel, rule: str) -> Floats:
    """(N,) reference label of each item, NaN where the panel gave no score or its mode is tied."""
    if compared.labels is not None:
        return compared.labels
    rated = compared.n_human > 0
    labels: Floats = np.full(len(rated), np.nan)
    if rule == "mode":
        labels = modes(compared.humans)[0]
    else:
        summaries: dict[str, Callable[..., Floats]] = {"median": np.nanmedian, "minimum": np.nanmin}
        if rated.any():
            labels[rated] = summaries.get(rule, np.nanmean)(compared.humans[rated], axis=1)
    return labels


def confusion_matrix(compared: JudgeAgainstPanel, *, rule: str) -> NDArray[np.int64]:
    """(q, q) counts of reference label (rows) against judge label (columns), both rounded half up to the scale."""
    faced = face(compared, rule)
    reference, judge = (snapped(x, compared.scale) for x in (faced.reference, faced.judge))
    counts: Floats = confusion(reference, judge, np.ones((1, len(judge))), compared.scale.q)[0]
    return counts.astype(np.int64)


def _confusion(compared: JudgeAgainstPanel, rule: str) -> list[Estimate]:
    """Row shares of the confusion matrix, the counts behind them in ``n_items``."""
    scale = compared.scale
    if scale.q > MOST_LABELS:
        reason = Message("a matrix of %(number)s labels: declare a shorter scale", number=scale.q)
        return [Estimate(statistic="confusion", value=None, level=scale.level, reason=reason)]
    counts, faced = confusion_matrix(compared, rule=rule), face(compared, rule)
    places = [snapped(x, scale) for x in (faced.reference, faced.judge)]
    shares = row_shares(counts[None].astype(np.float64))[0]
    estimates = []
    for (k, j), share in np.ndenumerate(shares):
        base = Estimate(
            statistic="confusion", variant=f"{scale.label(k)} ~ {scale.label(j)}", level=scale.level, value=None,
            reason=Message("the reference never gives this label"), n_items=int(counts[k, j]),
            interval_reason=Message("a share of what was seen; no interval"), n_raters=len(compared.annotators),
            n_clusters=number_of(faced.cluster[(places[0] == k) & (places[1] == j)]),
        )  # fmt: skip
        estimates.append(base if np.isnan(share) else base.with_(value=float(share), reason=None))
    return estimates


def _linearised(
    figure: PairFigure, compared: JudgeAgainstPanel, faced: Faced, confidence: float, doubts: Doubts
) -> Estimate:
    """One figure of many different pairs, averaged over parts, with a linearised interval."""
    values, gradient, base, scale = [], np.zeros(len(faced.judge)), 0.0, compared.scale
    for here in () if inapplicable(figure, scale) else faced.parts:
        x, y = faced.judge[here], faced.reference[here]
        value, slope = association.value_of(figure, x, y, scale)
        if not np.isnan(value):
            values.append(value)
            gradient[here] = slope
            base += float(figure.base(association.Pairs(x, y, np.ones((1, len(x))), scale))[0]) if figure.base else 0.0
    value = float(np.mean(values)) if values else np.nan
    size = float(max(np.abs(faced.judge).max(), np.abs(faced.reference).max()))
    unit = size if figure.statistic in association.IN_SCORES else 1.0
    gradient /= max(len(values), 1)
    interval = (
        _of_gradient(figure, value, gradient, base, faced.clusters, confidence, unit, doubts) if values else Interval()
    )
    return _estimate(figure, value, interval, compared, faced)


def _of_gradient(
    figure: PairFigure,
    value: float,
    gradient: Floats,
    base: float,
    cluster: Codes,
    confidence: float,
    unit: float,
    doubts: Doubts,
) -> Interval:
    """By the shape of the figure, as when units are left out; a share rests on ``base`` answers."""
    (se, df, tail_df), units = continuous_scales.gradient_standard_error(gradient, cluster), int(cluster.max()) + 1
    answers, doubt = float(units), doubts(figure)
    if figure.base is not None and base > 0:
        answers = max(1.0, base * units / len(cluster))
        se = max(se, (value * (1 - value) / base) ** 0.5) if 0 < value < 1 else se
        doubt = _few(base if 0 < value < 1 else answers) or doubt or _of_size(figure, base, answers, df + 1)
    return jackknife_interval(
        value, se, df, figure.shape, tail_df=tail_df, n=answers, doubt=doubt,
        is_kappa=figure.statistic == "cohen_kappa", confidence=confidence, unit=unit, by=Message("linearised"),
    )  # fmt: skip


def _intervals(
    faced: Faced, chosen: Sequence[PairFigure], scale: Scale, units: Units, resamples: int, confidence: float, seed: int
) -> list[Interval]:
    if not resamples:
        return [Interval(interval_reason=Message("no resampling was asked for"))] * len(chosen)
    if units.n < 2:
        return [Interval(interval_reason=Message("an interval needs two units to resample"))] * len(chosen)
    maker = _IntervalMaker(faced, chosen, scale, units, confidence)
    intervals: list[Interval | None] = [None] * len(chosen)
    carried = units.n_kinds <= MOST_LEFT_OUT
    if carried:
        without = resampling.left_out(maker.kernel, units)
        intervals = [maker.left_out(index, row) for index, row in enumerate(without)]
    if None in intervals:
        rows = resampling.resampled(maker.kernel, units, resamples=resamples, rng=np.random.default_rng(seed))
        intervals = [
            maker.resampled(i, rows[i], carried=carried) if one is None else one for i, one in enumerate(intervals)
        ]
    return [one or Interval() for one in intervals]


class _IntervalMaker:
    """Intervals of the chosen figures, from units left out one by one or resampled."""

    def __init__(
        self, faced: Faced, chosen: Sequence[PairFigure], scale: Scale, units: Units, confidence: float
    ) -> None:
        self.chosen, self.faced, self.units, self.confidence = chosen, faced, units, confidence
        self.kernel = faced.kernel(chosen, scale)
        self.point = self.kernel(units.pattern_totals[None, :])[:, 0]
        self.bases = dict(_bases(faced, chosen, scale, units))
        self.size = float(max(np.abs(faced.judge).max(initial=0), np.abs(faced.reference).max(initial=0)))
        self.doubts = _doubts(faced, scale)

    def unit(self, figure: PairFigure) -> float:
        """Size of the numbers the figure is made of."""
        return self.size if figure.statistic in association.IN_SCORES else 1.0

    def left_out(self, index: int, without: Floats) -> Interval | None:
        """From (U,) values with a unit of each kind left out; None where one of them is undefined."""
        figure, value = self.chosen[index], np.array(self.point[index])
        if figure.statistic == "f1":
            value, without = _jaccard(value), _jaccard(without)
        se, tail_df = (float(part) for part in left_out_error(value, without, self.units))
        if np.isnan(se) and not np.isnan(value):
            return None
        answers, doubt = self.answers(index), self.doubts(figure)
        if figure.base:
            base = self.bases[index]
            doubt = _few(base if 0 < value < 1 else answers) or doubt or self._few_differ(index)
            doubt = doubt or _of_size(figure, base, answers, self.units.df + 1)
        if figure.shape == "share" and figure.statistic not in ("f1_weighted", "f1_macro"):
            se = max(se, (float(value) * (1 - float(value)) / self.bases[index]) ** 0.5) if 0 < value < 1 else 0.0
        interval = jackknife_interval(
            float(value), se, self.units.df, figure.shape, tail_df=tail_df, n=answers, doubt=doubt,
            is_kappa=figure.statistic == "cohen_kappa", confidence=self.confidence, unit=self.unit(figure),
        )  # fmt: skip
        return _from_jaccard(interval) if figure.statistic == "f1" else interval

    def _few_differ(self, index: int) -> Doubt | None:
        """Near 0 and 1 half an answer may be expected to differ: precision then covers .91 (coverage_processes.md)."""
        value = float(self.point[index])
        near = self.chosen[index].statistic in ("precision", "recall")
        return (
            Doubt(Message("few answers differ"))
            if near and self.answers(index) * min(value, 1 - value) < _FEW_DIFFER
            else None
        )

    def answers(self, index: int) -> float:
        """How many independent answers a share that does not vary rests on: what comes in one cluster counts once."""
        return max(1.0, self.bases.get(index, 0.0) * self.faced.n_clusters / len(self.faced.judge))

    def resampled(self, index: int, row: Floats, *, carried: bool) -> Interval:
        """From (B,) resampled values; ``carried`` says that leaving out a unit makes the figure undefined."""
        figure, value = self.chosen[index], float(self.point[index])
        interval = percentile(row, confidence=self.confidence, unit=self.unit(figure))
        if figure.statistic == "rmse" and interval.low is not None:
            interval = log_t_interval(value, row, self.units.df, confidence=self.confidence, unit=self.size)
        if figure.base and figure.statistic != "f1" and (interval.undefined_share or 0) <= MAX_UNDEFINED_SHARE:
            interval = _of_share(value, row, self.bases[index], self.faced, self.confidence)
        doubt = CARRIED if carried else self.doubts(figure)
        if figure.base:
            doubt = doubt or _of_size(figure, self.bases[index], self.answers(index), self.units.df + 1)
        return doubted(interval, doubt)


def _doubts(faced: Faced, scale: Scale) -> Doubts:
    """Why the interval of a figure is approximate, if so: too few pairs off the commonest, or heavy tails."""
    x, y = faced.judge, faced.reference
    commonest = [np.unique(v, return_counts=True) for v in (x, y)]
    tops = [values[counts.argmax()] for values, counts in commonest] if len(x) else [0.0, 0.0]
    off = (x != tops[0]) | (y != tops[1])
    n_off, n_units = int(off.sum()), int(np.count_nonzero(np.bincount(faced.clusters[off])))
    few = few_off_point(n_off, n_units)
    rare = _rare_label(x, y)
    of_points, n_points = scale.q > 2 or scale.level in ("interval", "ratio"), max(len(v) for v, _ in commonest)
    errors = tails_of(n_points, faced.n_items, (x - y,)) if of_points else None
    has_any_tails = of_points and n_points > FEW_POINTS and not scale.declared
    if faced.n_items < (ENOUGH_FOR_TAILS if has_any_tails else ENOUGH_FOR_SQUARES):
        errors = errors or Doubt(Message("%(items)s items do not show whether tails are heavy", items=faced.n_items))
    either = (tails_of(n_points, faced.n_items, (x,)) or tails_of(n_points, faced.n_items, (y,), *_residuals(x, y))
              if of_points else None)  # fmt: skip

    def doubt(figure: PairFigure) -> Doubt | None:
        if figure.statistic == "f1_macro":
            return rare
        if figure.statistic == "f1_weighted" and faced.n_items < ENOUGH_FOR_F1:
            return few_off_point(n_off, n_units, OFF_POINT_FOR_F1)
        if figure.skewed and few:
            return few
        if figure.statistic in WIDE_AT_A_POINT:
            return few_for_shares(few, faced.n_items)
        return (errors if figure.statistic == "rmse" else either) if figure.distances else None

    return doubt


FEW_OF_LABEL = 15


def _rare_label(x: Floats, y: Floats) -> Doubt | None:
    """The doubt of a mean of labels that one of them was given to few items."""
    labels = np.unique(np.concatenate([x, y]))
    fewest = min((int(((x == label) | (y == label)).sum()) for label in labels), default=0)
    return (
        Doubt(Message("%(items)s items of one label", items=fewest))
        if fewest < FEW_OF_LABEL and len(labels) <= MOST_USED
        else None
    )


MOST_USED = 50


def _residuals(x: Floats, y: Floats) -> Iterator[tuple[Floats]]:
    """What either (n,) does not tell of the other by a straight line."""
    for predictor, left in ((x, y), (y, x)):
        d = predictor - predictor.mean()
        spread = float(d @ d)
        if spread > 0:
            yield (left - float(d @ left) / spread * d,)


def _few(answers: float) -> Doubt | None:
    """The doubt of a share of few answers; where it does not vary, what comes in one cluster is one answer."""
    return Doubt(Message("%(number)s answers", number=f"{answers:.3g}")) if answers < FEW_ANSWERS else None


def _of_size(figure: PairFigure, base: float, answers: float, n_units: float) -> Doubt | None:
    """What the size of a sample says of the interval of a share, whatever the answers are (coverage_processes.md).

    ``base`` answers, of which ``answers`` are independent, from ``n_units`` (their effective number).
    """
    if figure.statistic in ("precision", "recall"):
        return Doubt(Message("%(number)s answers", number=f"{answers:.3g}")) if answers < ENOUGH_ANSWERS else None
    if figure.statistic in ("f1", "accuracy") and n_units < WIDE_UNITS:
        return Doubt(Message("%(number)s independent units", number=f"{n_units:.3g}"), is_wide=True)
    if figure.statistic == "f1" and base < WIDE_ANSWERS:
        return Doubt(Message("%(number)s answers", number=f"{base:.3g}"), is_wide=True)
    return None


def _jaccard(f1: Floats) -> Floats:
    """F1 = 2 J / (1 + J) of the share J of the items given the label by either that both give it."""
    return f1 / (2 - f1)


def _from_jaccard(interval: Interval) -> Interval:
    """The interval of F1 from that of the share J."""
    if interval.low is None or interval.high is None:
        return interval
    low, high = (2 * bound / (1 + bound) for bound in (interval.low, interval.high))
    return replace(interval, low=low, high=high, se=None)


def _bases(faced: Faced, chosen: Sequence[PairFigure], scale: Scale, units: Units) -> Iterator[tuple[int, float]]:
    """Places of the shares among the chosen figures, and how many pairs each is a share of."""
    counted = {index: figure.base for index, figure in enumerate(chosen) if figure.base}
    if counted:
        shares = [replace(chosen[index], kernel=base) for index, base in counted.items()]
        per_part = faced.kernel(shares, scale)(units.pattern_totals[None, :])[:, 0]
        yield from zip(counted, (per_part * len(faced.parts)).tolist(), strict=True)


def _of_share(value: float, row: Floats, base: float, faced: Faced, confidence: float) -> Interval:
    """Wilson's interval of a share with the spread of its resamples (B,), at least that of ``base`` single answers.

    A share of 0 or 1 has no spread: then whatever comes in one cluster counts as one answer.
    """
    se = max(float(np.nanstd(row)), (value * (1 - value) / base) ** 0.5) if 0 < value < 1 else 0.0
    answers = max(1.0, base * faced.n_clusters / len(faced.judge))
    method = (
        Message("Wilson, bootstrap spread")
        if answers >= FEW_ANSWERS
        else approximate(Message("Wilson, bootstrap spread"))
    )
    interval = wilson_interval(value, se, answers, method=method, confidence=confidence)
    return replace(interval, undefined_share=float(np.isnan(row).mean()))


def _estimate(
    figure: PairFigure, value: float, interval: Interval, compared: JudgeAgainstPanel, faced: Faced
) -> Estimate:
    counts: dict[str, Any] = {
        "level": compared.scale.level,
        "n_items": faced.n_items,
        "n_clusters": faced.n_clusters,
        "n_raters": len(compared.annotators),
        "n_ratings": faced.n_ratings,
        "n_missing": faced.n_left_out,
    }
    if np.isnan(value):
        reason = inapplicable(figure, compared.scale) or (figure.undefined if faced.n_items else _nothing(compared))
        return Estimate(statistic=figure.statistic, variant=figure.variant, value=None, reason=reason, **counts)
    left_out = faced.n_without_reference
    # Only a mode leaves out what people scored.
    note = (
        Message(
            "%(share)s of the items have no mode and are left out", share=f"{left_out / (left_out + faced.n_items):.1%}"
        )
        if left_out
        else None
    )
    estimate = Estimate(statistic=figure.statistic, variant=figure.variant, value=value, note=note, **counts)
    return _cut(estimate.with_(**interval.as_changes()), compared.scale)


def _cut(estimate: Estimate, scale: Scale) -> Estimate:
    """An interval in points reaches no further than two points of a declared scale can lie apart."""
    if estimate.statistic not in association.IN_SCORES:
        return estimate
    return human_ceiling.cut_distance(estimate, scale, signed=estimate.statistic == "bias")


def _nothing(compared: JudgeAgainstPanel) -> str:
    if np.isnan(compared.judge).all():
        return Message("the judge scored no item here")
    return Message("no item has both a judge score and a reference label")


def _counts(compared: JudgeAgainstPanel, faced: Faced) -> list[Estimate]:
    counted = (compared.n_out_of_range, faced.n_without_reference)
    return [
        Estimate(
            statistic=name,
            value=float(n),
            n_items=faced.n_items,
            n_raters=len(compared.annotators),
            n_clusters=faced.n_clusters,
        )
        for name, n in zip(COUNTS, counted, strict=True)
    ]
