"""Corrected means, cell by cell: what ``panelbench stats correct`` prints (METHODS 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.bounded import Ends
from analytics.stats.core.estimates import CellEstimate, Estimate, Shape
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import THIS_JUDGE, RatersAs, number_of, of_report
from analytics.stats.core.scales import Scale, snapped
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.judge import ppi
from analytics.stats.judge.calibration import panel_labels
from analytics.stats.judge.calibrators import CALIBRATORS, MOST_OUTSIDE, cross_validate, share_outside
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
from analytics.stats.judge.ppi import FEWEST_LABELS, Flags, LabelledSample, rogan_gladen

STATISTICS = (
    "classical_mean", "judge_mean", "ppi_mean", "ppi_plus_mean", "mean_of_these_items", "ppi_plus_difference",
    "ppi_gain", "calibration_gain", "rogan_gladen",
)  # fmt: skip
OF_PANELS: dict[str, Shape] = {
    "classical_mean": "free", "ppi_mean": "free", "ppi_plus_mean": "free", "mean_of_these_items": "free",
    "ppi_plus_difference": "free",
    "rogan_gladen": "share",
}  # fmt: skip
"""The statistics whose intervals change if the raters count as a sample, and the range of their values."""
MEANS = ("classical_mean", "judge_mean", "ppi_mean", "ppi_plus_mean", "mean_of_these_items", "mean")
"""Means of scores: they lie within the scale."""
DIFFERENCES = ("ppi_plus_difference", "language_shift", "panel_difference")
_MOST_CATEGORIES = 50
"""An ordinal model has a parameter for each distinct label. With more of them, it takes minutes and gives no useful
result."""
ENOUGH_FOR_GAINS = 100
"""With fewer labels the interval of a gain covers too little (bench/results/coverage_judges.md)."""
UNSTEADY = ("cell_means", "ordinal_logit")
"""Calibrators for which the interval of the gain covers too little even with 100 labels, or was not tested by
simulation."""
NOMINAL = Message("labels without an order have no mean")


def correction_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
    pool: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    raters_as: RatersAs = "these",
    stratum: str | None = None,
    generators: Sequence[str] | None = None,
) -> list[CellEstimate]:
    """The mean panel score of every cell, computed from its labelled items and from the judge's scores of all items.

    Rows: ``classical_mean``, ``judge_mean`` (all items, raw), ``ppi_mean``, ``ppi_plus_mean`` (plain, crossfit, and
    ``active`` where the file has inclusion_prob), ``mean_of_these_items`` (the mean of exactly these items as a finite
    population, of which some are labelled), ``ppi_gain``, ``calibration_gain`` of each calibrator, on two-point scales
    ``rogan_gladen``. ``raters_as`` "sample": intervals of the means and of ``rogan_gladen`` are for raters like these;
    ``judge_mean`` and the gains do not change. ``stratum``: the column by which the draw of labels was stratified
    (variant ``stratified``). ``generators``: ``ppi_plus_difference`` of two, first - second, on the items that share
    cluster and language.
    """
    if raters_as == "sample":
        how: dict[str, Any] = {"judge": judge, "by": by, "raters": raters, "pool": pool, "seed": seed}
        how |= {"stratum": stratum, "generators": generators}
        chosen = [name for name in statistics or STATISTICS if name in OF_PANELS]
        rows = correction_report(table, statistics=statistics, confidence=confidence, **how)
        rows = of_report(
            rows, lambda kept: correction_report(kept, statistics=chosen, **how), table, OF_PANELS, raters=raters
        )
        return cut_means(rows, table, by=by, pool=pool)
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
        more = [*_stratified(compared, stratum, confidence), *_paired(compared, generators, confidence)]
        estimates = correct(compared, statistics=statistics, confidence=confidence, seed=seed, more=more)
        report += [CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge) for estimate in estimates]
    return report


def correct(
    compared: JudgeAgainstPanel,
    *,
    statistics: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    more: Sequence[Estimate] = (),
) -> list[Estimate]:
    """The corrected means of one judge and panel; the rows of ``more`` are inserted after the means."""
    split = ScoredItems.of(compared)
    estimates = [
        *_means(split, confidence, seed),
        *more,
        *_prevalence(compared, confidence),
        *(_calibrations(split, seed) if statistics is None or "calibration_gain" in statistics else ()),
    ]
    counts = {
        "level": compared.scale.level,
        "n_raters": len(compared.annotators),
        "n_ratings": int(compared.n_human.sum()),
        "n_missing": compared.n_out_of_range + split.n_unjudged,
    }
    chosen = [e.with_(**counts) for e in estimates if statistics is None or e.statistic in statistics]
    return [cut_mean(estimate, compared.scale) for estimate in chosen]


def cut_means(
    rows: Sequence[CellEstimate], table: RatingsTable, *, by: Sequence[str], pool: bool = False
) -> list[CellEstimate]:
    """The rows of a report by these columns. Intervals of means and of their differences are cut to what the scales
    allow."""
    scales = {tuple(cell_key(cell).items()): cell.scale for cell in cells(table, by=by, pool=pool)}
    keys = [tuple((column, value or None) for column, value in row.cell.items()) for row in rows]
    return [replace(row, estimate=cut_mean(row.estimate, scales.get(key))) for row, key in zip(rows, keys, strict=True)]


def cut_mean(estimate: Estimate, scale: Scale | None) -> Estimate:
    """The estimate, with the interval cut to the declared scale if it is a mean of scores or a difference of two
    means."""
    if scale is None or not scale.declared or not scale.q:
        return estimate
    lowest, highest = float(scale.values[0]), float(scale.values[-1])
    if estimate.statistic in DIFFERENCES:
        return estimate.cut(lowest - highest, highest - lowest)
    return estimate.cut(lowest, highest) if estimate.statistic in MEANS else estimate


def means_report(
    table: RatingsTable, *, by: Sequence[str] = ("generator", "criterion"), confidence: float = 0.95
) -> list[CellEstimate]:
    """Per cell the mean of the panel (``classical_mean``; an item's mean score counts once) and of each judge
    (``judge_mean``), where the scale has numbers and somebody scored.
    """
    report: list[CellEstimate] = []
    judges = sorted(table.frame["rater"][(table.frame["rater_kind"] == "judge").to_numpy()].unique())
    for cell in cells(table, by=by):
        if not cell.scale.has_order:
            continue
        for place, judge in enumerate(judges or [""]):
            compared = JudgeAgainstPanel.of(cell, judge)
            of_panel, of_judge = own_means(ScoredItems.of(compared), confidence)
            ratings = int(compared.n_human.sum())
            counted = of_panel.with_(level=cell.scale.level, n_raters=len(compared.annotators), n_ratings=ratings)
            if of_panel.is_defined and place == 0:
                report.append(CellEstimate(estimate=cut_mean(counted, cell.scale), cell=cell_key(cell)))
            counted = of_judge.with_(level=cell.scale.level, n_raters=1, n_ratings=of_judge.n_items)
            if of_judge.is_defined:
                report.append(CellEstimate(estimate=cut_mean(counted, cell.scale), cell=cell_key(cell), judge=judge))
    return report


def scale_ends(scale: Scale) -> Ends | None:
    """The ends of a scale. None if the scale has no order, or if an interval or ratio scale was not declared."""
    if not scale.has_order or not scale.q or (not scale.declared and scale.level in ("interval", "ratio")):
        return None
    return (float(scale.values[0]), float(scale.values[-1])) if scale.is_numeric else (0.0, float(scale.q - 1))


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """The items that panel or judge scored: panel means ``y`` (N,) and judge scores ``f`` (N,), NaN where missing.

    ``sample``: those with both, and those with a judge's score alone.
    """

    y: Floats
    f: Floats
    cluster: NDArray[np.intp]
    sample: LabelledSample
    probability: Floats | None
    has_distances: bool
    ends: Ends | None = None

    @classmethod
    def of(cls, compared: JudgeAgainstPanel) -> ScoredItems:
        """The panel's mean of each item is its label."""
        rated = compared.n_human > 0
        y = np.full(len(compared.judge), np.nan)
        y[rated] = np.nanmean(compared.humans[rated], axis=1)
        scale = compared.scale
        found = cls.of_scores(y, compared.judge, compared.cluster, compared.probability, scale.has_order)
        return replace(found, ends=scale_ends(scale))

    @classmethod
    def of_scores(
        cls,
        y: Floats,
        f: Floats,
        cluster: NDArray[np.intp],
        probability: Floats | None = None,
        has_distances: bool = True,
    ) -> ScoredItems:
        """From labels and judge scores (N,), (N,) in clusters (N,)."""
        has_label, has_judge = ~np.isnan(y), ~np.isnan(f)
        both, rest = has_label & has_judge, ~has_label & has_judge
        sample = LabelledSample(y[both], f[both], f[rest], cluster[both], cluster[rest])
        return cls(y, f, cluster, sample, probability, has_distances)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.y)

    @property
    def has_both(self) -> NDArray[np.bool_]:
        """(N,) items with a label and a judge's score: those that a correction learns from."""
        return ~(np.isnan(self.y) | np.isnan(self.f))

    @property
    def is_weighted(self) -> bool:
        """Whether labels were drawn with probabilities that differ."""
        return ppi.is_unequally_drawn(self.y, self.probability)

    @property
    def drawn(self) -> Floats:
        """(N,) the probabilities, 1 where none is stated."""
        return np.ones(len(self.y)) if self.probability is None else np.nan_to_num(self.probability, nan=1.0)

    @property
    def n_unjudged(self) -> int:
        """Labelled items the judge gave no usable score."""
        return int((self.is_labelled & np.isnan(self.f)).sum())


def _means(s: ScoredItems, confidence: float, seed: int) -> Iterator[Estimate]:
    names = [("classical_mean", None), ("judge_mean", None), ("ppi_mean", "plain"), ("ppi_plus_mean", "plain"),
             ("ppi_plus_mean", "crossfit"), ("mean_of_these_items", None)]  # fmt: skip
    if not s.has_distances:
        yield from (Estimate(statistic=name, variant=variant, value=None, reason=NOMINAL) for name, variant in names)
        return
    judged = ~np.isnan(s.f)
    yield from own_means(s, confidence)
    yield ppi.ppi_mean(s.sample, confidence=confidence, ends=s.ends)
    yield ppi.ppi_plus_mean(s.sample, confidence=confidence, ends=s.ends)
    rng = np.random.default_rng(seed)
    crossfit = ppi.crossfit_mean(s.sample, rng=rng, confidence=confidence, ends=s.ends)
    yield crossfit.estimate.with_(seed=seed)
    yield _of_these(s, crossfit, confidence, seed)
    yield _gain(crossfit)
    if s.probability is not None:
        drawn = s.y[judged], s.f[judged], s.probability[judged], s.cluster[judged]
        yield ppi.active_mean(*drawn, confidence=confidence, ends=s.ends)


def _of_these(s: ScoredItems, crossfit: ppi.CrossFit, confidence: float, seed: int) -> Estimate:
    """The mean of exactly these items: corrected by the judge if that is possible, otherwise of the labels alone."""
    base = Estimate(statistic="mean_of_these_items", value=None, reason=ALL_LABELLED_KNOWN)
    n, every = int(s.is_labelled.sum()), len(s.y)
    if s.is_weighted:
        return base.with_(
            reason=Message("labels drawn with unequal probabilities: see ppi_plus_mean (active)"), n_items=n
        )
    if crossfit.these is not None and len(s.sample.f_rest) >= 2 and s.n_unjudged == 0:
        return crossfit.these.with_(seed=seed)
    y, cluster = s.y[s.is_labelled], s.cluster[s.is_labelled]
    found = ppi.classical_mean(y, cluster, confidence=confidence, ends=s.ends, share=n / every if every else 0.0)
    found = found.with_(
        statistic=base.statistic, note=Message("%(number)s of %(all)s items are labelled", number=n, all=every)
    )
    if n < every or not found.is_defined:
        return found
    return found.with_(low=None, high=None, confidence=None, method=None, se=None, interval_reason=ALL_LABELLED_KNOWN)


ALL_LABELLED_KNOWN = Message("every item is labelled: the mean of these items is known")


def own_means(s: ScoredItems, confidence: float) -> tuple[Estimate, Estimate]:
    """The panel's mean and the judge's, neither corrected by the other."""
    labelled, judged = ~np.isnan(s.y), ~np.isnan(s.f)
    how: dict[str, Any] = {"confidence": confidence, "ends": s.ends}
    raw = ppi.classical_mean(s.f[judged], s.cluster[judged], **how).with_(statistic="judge_mean")
    return ppi.classical_mean(s.y[labelled], s.cluster[labelled], **how), raw.with_(
        reason=None if raw.is_defined else Message("the judge scored no item here"),
        speaks_for=THIS_JUDGE if raw.is_defined else None,
    )


def _stratified(compared: JudgeAgainstPanel, column: str | None, confidence: float) -> Iterator[Estimate]:
    """PPI++ with the values of a column as strata; nothing if no column is given."""
    if column is None:
        return
    s, rated = ScoredItems.of(compared), compared.n_human > 0
    if not s.has_distances:
        yield Estimate(statistic="ppi_plus_mean", variant="stratified", value=None, reason=NOMINAL)
        return
    names = compared.rows[column].fillna("").astype(str).to_numpy()
    judged = ~np.isnan(s.f)
    strata = []
    for name in np.unique(names[judged]):
        both, rest = (names == name) & judged & rated, (names == name) & judged & ~rated
        strata.append(LabelledSample(s.y[both], s.f[both], s.f[rest], s.cluster[both], s.cluster[rest]))
    estimate = ppi.stratified_mean(strata, confidence=confidence, ends=s.ends)
    note = Message("%(number)s strata by %(column)s", number=len(strata), column=column)
    yield estimate.with_(note=note, n_clusters=number_of(s.cluster[judged & rated]))


def _paired(compared: JudgeAgainstPanel, generators: Sequence[str] | None, confidence: float) -> Iterator[Estimate]:
    """PPI++ of the difference of two generators on the items that share cluster, language and criterion."""
    if generators is None:
        return
    s, rows = ScoredItems.of(compared), compared.rows
    base = Estimate(statistic="ppi_plus_difference", variant=" - ".join(generators), value=None, reason=NOMINAL)
    if not s.has_distances:
        yield base
        return
    keys = list(zip(*(rows[name].fillna("").astype(str) for name in ("cluster", "language", "criterion")), strict=True))
    maker = rows["generator"].fillna("").astype(str).to_numpy()
    first, second = ([i for i in range(len(keys)) if maker[i] == name] for name in generators)
    places = [{keys[i]: i for i in own} for own in (first, second)]
    if len(places[0]) < len(first) or len(places[1]) < len(second):
        yield base.with_(
            reason=Message("a cluster has several items of one generator and language: which belong together?")
        )
        return
    shared = sorted(set(places[0]) & set(places[1]))
    a, b = (np.array([place[key] for key in shared], dtype=np.intp) for place in places)
    first_scores, second_scores = (s.y[a], s.f[a]), (s.y[b], s.f[b])
    estimate = ppi.paired_difference(first_scores, second_scores, s.cluster[a], confidence=confidence, ends=s.ends)
    yield estimate.with_(variant=base.variant)


def _gain(crossfit: ppi.CrossFit) -> Estimate:
    reason = None if crossfit.gain is not None else crossfit.estimate.reason or Message("the labels do not vary")
    n = crossfit.estimate.n_items
    estimate = Estimate(statistic="ppi_gain", variant="crossfit", value=crossfit.gain, n_items=n, reason=reason)
    estimate = estimate.with_(n_clusters=crossfit.estimate.n_clusters)
    return estimate.with_(**_gained(crossfit.gain_low, crossfit.gain_high, _how_gained(n), crossfit.gain_reason))


def _gained(low: float | None, high: float | None, method: str, reason: str | None) -> dict[str, Any]:
    """The fields of a gain's interval, or why it has none."""
    if low is None:
        return {"interval_reason": reason}
    return {"low": low, "high": high, "confidence": 0.95, "method": method}


def _how_gained(n: int, calibrator: str = "") -> str:
    """The method of the interval. It resamples out-of-fold errors without fitting again, so the interval is too narrow
    with few labels."""
    method = Message("bootstrap percentile")
    return approximate(method) if n < ENOUGH_FOR_GAINS or calibrator in UNSTEADY else method


def _calibrations(s: ScoredItems, seed: int) -> Iterator[Estimate]:
    """Out-of-sample gain of each calibrator over the labels' mean, and a warning about scores the labels never saw."""
    n, n_clusters = len(s.sample.y), number_of(s.sample.cluster)
    too_few = n < FEWEST_LABELS or n_clusters < 2 or not s.has_distances
    outside = share_outside(s.sample.f, s.sample.f_rest) if n else 0.0
    for name in CALIBRATORS:
        if name == "constant":
            continue
        too_many = name == "ordinal_logit" and (q := len(np.unique(s.sample.y))) > _MOST_CATEGORIES
        if too_few or too_many:
            reason = Message(
                "cross-validation needs %(number)s labels in two clusters, on an ordered scale", number=FEWEST_LABELS
            )
            if not too_few:
                reason = Message(
                    "the labels take %(number)s values: an ordinal model is for %(most)s at most",
                    number=q,
                    most=_MOST_CATEGORIES,
                )
            yield Estimate(statistic="calibration_gain", variant=name, value=None, n_items=n, reason=reason,
                           n_clusters=n_clusters)  # fmt: skip
            continue
        checked = cross_validate(name, s.sample.f, s.sample.y, s.sample.cluster, rng=np.random.default_rng(seed))
        notes = [] if checked.is_useful else [Message("useless: no better than the labels' mean")]
        if outside >= MOST_OUTSIDE:
            notes.append(
                Message(
                    "%(share)s of the judge's scores lie beyond those seen in labels: no claim about levels",
                    share=f"{outside:.0%}",
                )
            )
        gain = Estimate(
            statistic="calibration_gain", variant=name, value=checked.gain, n_items=n, n_clusters=n_clusters, seed=seed,
            reason=None if checked.gain is not None else Message("the labels do not vary"), note=joined(notes) or None,
        )  # fmt: skip
        yield gain.with_(**_gained(checked.gain_low, checked.gain_high, _how_gained(n, name), checked.gain_reason))


def _prevalence(compared: JudgeAgainstPanel, confidence: float) -> Iterator[Estimate]:
    """Rogan-Gladen on two-point scales. The higher point is the flag; the panel's mode says whether an item truly has
    it."""
    if compared.scale.q != 2:
        return
    judged = ~np.isnan(compared.judge)
    flag = np.zeros(len(judged), dtype=bool)
    flag[judged] = snapped(compared.judge[judged], compared.scale) == 1
    label = panel_labels(compared, "mode")
    is_true, is_false = label == compared.scale.values[1], label == compared.scale.values[0]
    rest = judged & (compared.n_human == 0)
    marks = np.stack([flag & rest, rest, flag & is_true & judged, is_true & judged, ~flag & is_false & judged,
                      is_false & judged])  # fmt: skip
    used = marks.any(axis=0)
    names, index = np.unique(compared.cluster[used], return_inverse=True)
    counts = [np.bincount(index, weights=row, minlength=len(names)) for row in marks[:, used]]
    by_cluster: Floats = np.stack(counts, axis=1).astype(np.float64)
    flags = Flags(**dict(zip(_COUNTED, marks.sum(axis=1).tolist(), strict=True)))
    clustered = len(names) < int(used.sum())
    estimate = rogan_gladen(flags, by_cluster=by_cluster if clustered else None, confidence=confidence)
    yield estimate.with_(n_clusters=len(names))


_COUNTED = tuple(one.name for one in fields(Flags))
