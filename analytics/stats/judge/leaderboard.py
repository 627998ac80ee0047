"""Corrected results: the generators of a cell side by side, from a judge's scores of all items and the panel's of some.

The intervals of all means are simultaneous, and so are the intervals of all differences of two generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.bounded import FEW_DIFFER, added, is_bounded, needs_bounds
from analytics.stats.core.estimates import FEW_UNITS, CellEstimate, Estimate, Interval, t_interval
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import effective_number, error_of_mean, number_of
from analytics.stats.core.scales import Scale
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.judge.calibrators import folds_by_cluster
from analytics.stats.judge.corrected_means import NOMINAL, ScoredItems, cut_mean, own_means
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
from analytics.stats.judge.ppi import (
    FEWEST_LABELS,
    TYPE_WITHOUT_LABEL,
    WARN_BELOW,
    LabelledSample,
    OtherLabels,
    active_mean,
    answered_probability,
    classical_mean,
    crossfit_mean,
    interval_of,
    macro_mean,
    weighted_values,
)

ALL_LABELLED = Message("the panel labelled every item that the judge scored: there is nothing to add to its mean")
_TASKS = ("task_type", "macro_group")
"""Attributes of items that name their task type; the first attribute with at least two values in a table is used."""
UNEQUALLY_DRAWN = Message("labels drawn with unequal probabilities are weighted by them: see the corrected mean")
_AS_MEAN = {
    "panel_mean": "classical_mean",
    "judge_mean": "judge_mean",
    **dict.fromkeys(("corrected_mean", "pooled_mean", "macro_mean"), "ppi_plus_mean"),
}
_TWO_OF_ONE = Message("a cluster has several items of one generator and language: which belong together?")
_NO_PAIRS = Message("fewer than two scenarios are labelled for both")


def leaderboard_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    pool: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Every generator of every cell, by the panel, by the judge and corrected; then every difference of two.

    Rows with ``generator``: ``panel_mean`` of its labelled items, ``judge_mean`` of all that the judge scored,
    ``corrected_mean`` (cross-fitted PPI++, METHODS 3; where labels have unequal probabilities, ``active_mean``) and
    ``effective_labels``, its labels times the gain. If there are several languages, each language cell also has
    ``pooled_mean``: the corrected mean with its calibrator shrunk towards the calibrator of all languages. Where items
    have a task type (``_TASKS``) ``macro_mean``: every type counts once, items without a type are left out. Rows of
    ``corrected_difference``: ``generator`` less ``variant``, by scenarios that both answered, or of two independent
    means if they share no scenario. Bonferroni: with G generators the means have intervals at 1 - (1 - confidence) / G,
    the differences at 1 - (1 - confidence) / (G (G - 1) / 2); ``effective_labels`` stays at 95%, alone. Columns of
    ``by`` are those of the table; "generator" among them is left out.
    """
    report: list[CellEstimate] = []
    found = [
        (cell_key(cell), JudgeAgainstPanel.of(cell, judge))
        for cell in cells(table, by=[column for column in by if column != "generator"], pool=pool)
    ]
    for key, compared in found:
        elsewhere = [each for other, each in found if _is_other_language(key, other)]
        for name, estimate in leaderboard(compared, elsewhere, confidence=confidence, seed=seed):
            report.append(CellEstimate(estimate=estimate, cell={**key, "generator": name}, judge=judge))
    return report


def _is_other_language(key: Mapping[str, str | None], other: Mapping[str, str | None]) -> bool:
    """Whether two cells differ in their language alone."""
    if "language" not in key or not key["language"] or key["language"] == other["language"]:
        return False
    return {**key, "language": None} == {**other, "language": None}


def leaderboard(
    compared: JudgeAgainstPanel, elsewhere: Sequence[JudgeAgainstPanel] = (), *, confidence: float = 0.95, seed: int = 0
) -> Iterator[tuple[str, Estimate]]:
    """Estimates of one judge and panel, each with the generator it is about; ``elsewhere``: of other languages."""
    boards = {name: _Board.of(compared, name) for name in _generators(compared)}
    if not compared.scale.has_order:
        for name in boards:
            yield name, Estimate(statistic="corrected_mean", value=None, reason=NOMINAL)
        return
    together = (
        Message("simultaneous for %(number)s generators, Bonferroni", number=len(boards)) if len(boards) > 1 else ""
    )
    each = 1 - (1 - confidence) / max(len(boards), 1)
    for name, board in boards.items():
        others = [_Board.of(other, name) for other in elsewhere]
        pooled = board.pooled([other for other in others if other.items.has_both.any()], confidence=each, seed=seed)
        for estimate in (*board.estimates(confidence=each, seed=seed), *pooled, *board.macro(each, seed)):
            yield name, _placed(estimate, compared.scale, together)
    pairs = list(combinations(boards, 2))
    each = 1 - (1 - confidence) / max(len(pairs), 1)
    together = (
        Message("simultaneous for %(number)s differences, Bonferroni", number=len(pairs)) if len(pairs) > 1 else ""
    )
    for first, second in pairs:
        estimate = difference(boards[first], boards[second], confidence=each, seed=seed).with_(variant=second)
        yield first, _placed(estimate, compared.scale, together)


def _generators(compared: JudgeAgainstPanel) -> list[str]:
    return sorted({name for name in compared.rows["generator"].fillna("").astype(str) if name})


@dataclass(frozen=True, slots=True)
class _Board:
    """The items of one generator; ``rated`` (N, J): which of the panel scored an item; ``task`` (N,): its type, where
    items have one.
    """

    items: ScoredItems
    keys: tuple[tuple[str, ...], ...]
    rated: NDArray[np.bool_]
    task: NDArray[np.str_] | None = None

    @classmethod
    def of(cls, compared: JudgeAgainstPanel, generator: str) -> _Board:
        own = (compared.rows["generator"].fillna("").astype(str) == generator).to_numpy()
        part = replace(
            compared,
            judge=compared.judge[own],
            humans=compared.humans[own],
            cluster=compared.cluster[own],
            probability=None if compared.probability is None else compared.probability[own],
        )
        names = (compared.rows[name][own].fillna("").astype(str) for name in ("cluster", "language", "criterion"))
        types = (compared.rows[name].fillna("").astype(str) for name in _TASKS if name in compared.rows)
        task = next((each[own].to_numpy(dtype=np.str_) for each in types if len({*each} - {""}) > 1), None)
        return cls(ScoredItems.of(part), tuple(zip(*names, strict=True)), ~np.isnan(part.humans), task)

    def estimates(self, *, confidence: float, seed: int) -> Iterator[Estimate]:
        items = self.items
        of_panel, of_judge = own_means(items, confidence)
        if items.is_weighted:
            of_panel = weighted_mean(items, np.zeros(len(items.y)), confidence)
        yield of_panel.with_(statistic="panel_mean", **_counts(self.rated[items.is_labelled]))
        yield of_judge.with_(n_raters=1, n_ratings=of_judge.n_items, n_missing=items.n_unjudged)
        yield from self._corrected(confidence, seed)

    def pooled(self, others: Sequence[_Board], *, confidence: float, seed: int) -> Iterator[Estimate]:
        """The corrected mean with calibrators shrunk towards the calibrator of all languages; empty without other
        languages.

        The mean itself is not shrunk: shrunk means are wrong for a language that differs
        (bench/results/coverage_results.md).
        """
        sample = self.items.sample
        if not others or len(sample.f_rest) < 2 or self.items.is_weighted:
            return
        places = {key[0]: int(code) for key, code in zip(self.keys, self.items.cluster, strict=True)}
        unused = int(self.items.cluster.max()) + 1
        y, f, cluster, language = [], [], [], []
        for number, other in enumerate(others, 1):
            both = np.flatnonzero(other.items.has_both)
            y.append(other.items.y[both])
            f.append(other.items.f[both])
            language.append(np.full(len(both), number))
            cluster.append([places.setdefault(other.keys[place][0], unused + len(places)) for place in both])
        labels = OtherLabels(*(np.concatenate(part) for part in (y, f, cluster, language)))
        rng = np.random.default_rng(seed)
        how: dict[str, Any] = {"confidence": confidence, "others": labels, "ends": self.items.ends}
        found = crossfit_mean(sample, rng=rng, **how).estimate
        counts = _counts(self.rated[self.items.has_both]) | {"n_missing": self.items.n_unjudged}
        method = found.method and Message(
            "%(method)s, calibrator of %(number)s languages", method=found.method, number=len(others) + 1
        )
        yield found.with_(statistic="pooled_mean", variant=None, seed=seed, method=method, **counts)

    def macro(self, confidence: float, seed: int) -> Iterator[Estimate]:
        """The mean over task types, each type with equal weight; empty if items have no type.

        Items without a type are left out; their labels count as missing. Only labels are used if the judge scored no
        labelled item of some type.
        """
        if self.task is None:
            return
        labelled, typed = self.items.is_labelled, self.task != ""
        both = self.items.has_both & typed
        use_judge = both.sum() >= FEWEST_LABELS and {*self.task[both]} == {*self.task[typed]}
        both = both if use_judge else labelled & typed
        rest = typed & ~labelled & ~np.isnan(self.items.f) if use_judge else np.zeros_like(labelled)
        y, f, cluster = self.items.y, np.nan_to_num(self.items.f), self.items.cluster
        counts = {"n_missing": int((labelled & ~both).sum()), **_counts(self.rated[both])}
        if self.items.is_weighted or {*self.task[both]} != {*self.task[typed]}:
            reason = UNEQUALLY_DRAWN if self.items.is_weighted else TYPE_WITHOUT_LABEL
            refused = Estimate(statistic="macro_mean", value=None, reason=reason, n_items=int(both.sum()))
            yield refused.with_(n_clusters=number_of(cluster[both]), **counts)
            return
        sample = LabelledSample(y[both], f[both], f[rest], cluster[both], cluster[rest])
        rng = np.random.default_rng(seed)
        types = self.task[both], self.task[rest]
        found = macro_mean(sample, *types, rng=rng, confidence=confidence, ends=self.items.ends)
        yield found.with_(seed=seed, **counts)

    def _corrected(self, confidence: float, seed: int) -> Iterator[Estimate]:
        """The corrected mean, and its effective number of labels."""
        sample = self.items.sample
        counts: dict[str, Any] = {"n_items": len(sample.y), "n_clusters": number_of(sample.cluster)}
        counts |= _counts(self.rated[self.items.has_both]) | {"n_missing": self.items.n_unjudged}
        if len(sample.f_rest) >= 2 and self.items.is_weighted:
            yield from self._weighted(counts, confidence)
            return
        if len(sample.f_rest) < 2:
            for name in ("corrected_mean", "effective_labels"):
                yield Estimate(statistic=name, value=None, reason=ALL_LABELLED, **counts)
            return
        rng = np.random.default_rng(seed)
        fit = crossfit_mean(sample, rng=rng, confidence=confidence, ends=self.items.ends)
        yield fit.estimate.with_(statistic="corrected_mean", variant=None, seed=seed, **counts)
        if fit.gain is None:
            reason = fit.estimate.reason or Message("the labels do not vary")
            yield Estimate(statistic="effective_labels", value=None, reason=reason, **counts)
            return
        n = len(sample.y)
        ends = Interval(interval_reason=fit.gain_reason)
        if fit.gain_low is not None and fit.gain_high is not None:
            method = (
                approximate(Message("bootstrap percentile")) if n < 2 * WARN_BELOW else Message("bootstrap percentile")
            )
            ends = Interval(low=n * fit.gain_low, high=n * fit.gain_high, confidence=0.95, method=method)
        labels = Estimate(statistic="effective_labels", value=n * fit.gain, seed=seed, **counts)
        yield labels.with_(**ends.as_changes())

    def _weighted(self, counts: dict[str, Any], confidence: float) -> Iterator[Estimate]:
        """The corrected mean from labels that were drawn with unequal probabilities, and its effective number of
        labels.
        """
        found = weighted_mean(self.items, self.items.f, confidence)
        yield found.with_(statistic="corrected_mean", variant=None, **counts)
        alone = weighted_mean(self.items, np.zeros(len(self.items.y)), confidence)
        if not found.se or not alone.se:
            reason = found.reason or found.interval_reason or Message("the labels do not vary")
            yield Estimate(statistic="effective_labels", value=None, reason=reason, **counts)
            return
        worth = counts["n_items"] * (alone.se / found.se) ** 2
        why = Message("labels drawn with unequal probabilities have no interval here")
        yield Estimate(statistic="effective_labels", value=worth, interval_reason=why, **counts)


def weighted_mean(items: ScoredItems, f: Floats, confidence: float, *, seed: int = 0) -> Estimate:
    """The mean of all items with a finite f (N,), from labels with unequal probabilities (``ppi.active_mean``).

    Labels are predicted by a line in f that is fitted, with weights 1 / pi, to the labels of other clusters (5 folds):
    the draw of an item has no part in its own prediction. f of one value gives the weighted mean of the labels. Source:
    Zrnic & Candes 2024, arXiv:2403.03208; cross-fitting: arXiv:2309.16598.
    """
    here = ~np.isnan(f)
    y, f, drawn, cluster = items.y[here], f[here], items.drawn[here], items.cluster[here]
    predicted = _predicted(y, f, drawn, cluster, np.random.default_rng(seed))
    return active_mean(y, predicted, drawn, cluster, confidence=confidence, is_ratio=True, ends=items.ends)


def _predicted(y: Floats, f: Floats, drawn: Floats, cluster: Codes, rng: np.random.Generator) -> Floats:
    """(N,) each item's label by the weighted line through the labels of the other folds' clusters."""
    fold, predicted = folds_by_cluster(cluster, folds=5, rng=rng), np.zeros(len(f))
    has_label = ~np.isnan(y)
    for one in np.unique(fold):
        held, used = fold == one, has_label & (fold != one)
        weight = 1 / drawn[used]
        if not used.any():
            continue
        mean_f, mean_y = np.average(f[used], weights=weight), np.average(y[used], weights=weight)
        spread = float((weight * (f[used] - mean_f) ** 2).sum())
        together = float((weight * (f[used] - mean_f) * (y[used] - mean_y)).sum())
        predicted[held] = mean_y + (together / spread if spread > 0 else 0.0) * (f[held] - mean_f)
    return predicted


def _counts(*rated: NDArray[np.bool_]) -> dict[str, int]:
    """The raters and ratings of some items, (N, J) each, of the same J raters."""
    given = np.concatenate(rated)
    return {"n_raters": int(given.any(axis=0).sum()), "n_ratings": int(given.sum())}


def difference(first: _Board, second: _Board, *, confidence: float, seed: int) -> Estimate:
    """``corrected_difference``: the mean of the first less that of the second.

    By shared scenarios: D_i = y_1i - y_2i with the judge's f_1i - f_2i, cross-fitted from FEWEST_LABELS pairs on and
    with pairs left to label, else the mean of D_i; t intervals, approximate if few D_i differ from the others. A
    bounded interval would assume that an unseen pair may differ by the whole width of the scale, and could rank no
    generator (decision 0044). Without a shared scenario the two means are independent: Welch's t.
    """
    base = Estimate(statistic="corrected_difference", value=None, reason=_NO_PAIRS)
    one, other = first.items, second.items
    if not set(one.cluster) & set(other.cluster):
        return _independent(first, second, base, confidence, seed)
    places = [{key: place for place, key in enumerate(board.keys)} for board in (first, second)]
    if any(len(own) < len(board.keys) for own, board in zip(places, (first, second), strict=True)):
        return base.with_(reason=_TWO_OF_ONE)
    shared = sorted(set(places[0]) & set(places[1]))
    a, b = (np.array([own[key] for key in shared], dtype=np.intp) for own in places)
    pairs = ScoredItems.of_scores(one.y[a] - other.y[b], one.f[a] - other.f[b], one.cluster[a])
    labelled, both, sample = pairs.is_labelled, pairs.has_both, pairs.sample
    if labelled.sum() < 2:
        return base.with_(n_items=int(labelled.sum()))
    if one.is_weighted or other.is_weighted:
        return _weighted_difference(first, second, base, (a, b), confidence, seed)
    if len(sample.y) >= FEWEST_LABELS and len(sample.f_rest) >= 2:
        rng = np.random.default_rng(seed)
        found = crossfit_mean(sample, rng=rng, confidence=confidence).estimate
        if found.is_defined:
            counts = _counts(first.rated[a][both], second.rated[b][both]) | {"n_missing": pairs.n_unjudged}
            found = found.with_(seed=seed, **counts)
            return found.with_(statistic="corrected_difference", method=_with_pairs(found.method, pairs))
    found = classical_mean(pairs.y[labelled], pairs.cluster[labelled], confidence=confidence)
    counts = _counts(first.rated[a][labelled], second.rated[b][labelled])
    return found.with_(statistic="corrected_difference", method=_with_pairs(found.method, pairs), **counts)


def _weighted_difference(
    first: _Board, second: _Board, base: Estimate, places: tuple[Codes, Codes], confidence: float, seed: int
) -> Estimate:
    """The mean of z_1i - z_2i over shared scenarios (``ppi.weighted_values``): valid for unequal probabilities."""
    values, rated, units = [], [], []
    for board, at in zip((first, second), places, strict=True):
        y, f, drawn = board.items.y[at], board.items.f[at], board.items.drawn[at]
        has_value = ~np.isnan(f)
        z = np.full(len(at), np.nan)
        cluster = first.items.cluster[places[0]][has_value]
        predicted = _predicted(y[has_value], f[has_value], drawn[has_value], cluster, np.random.default_rng(seed))
        answered = answered_probability(y[has_value], drawn[has_value])
        z[has_value] = weighted_values(y[has_value], predicted, answered)
        values.append(z)
        units.append(effective_number(1 / answered[~np.isnan(y[has_value])]))
        rated.append(board.rated[at][board.items.has_both[at]])
    difference_of = values[0] - values[1]
    has_value = ~np.isnan(difference_of)
    z, cluster = difference_of[has_value], first.items.cluster[places[0]][has_value]
    n = min(int(board.items.has_both[at].sum()) for board, at in zip((first, second), places, strict=True))
    if n < 2 or not len(z):
        return base.with_(n_items=n)
    se, df = error_of_mean(z, cluster)
    method = Message("%(method)s, paired by scenario", method=Message("Hajek t"))
    interval = t_interval(
        float(z.mean()), se, min(df, *(unit - 1 for unit in units)), method=method, confidence=confidence,
        unit=float(np.abs(z).max()),
    )  # fmt: skip
    counts = {"n_items": n, "n_clusters": number_of(cluster), **_counts(*rated)}
    return base.with_(value=float(z.mean()), reason=None, **counts, **interval.as_changes())


def _with_pairs(method: str | None, pairs: ScoredItems) -> str | None:
    """The method of a paired difference, approximate if few of the human differences differ from the others."""
    if not method:
        return None
    y, index = pairs.y[pairs.is_labelled], np.unique(pairs.cluster[pairs.is_labelled], return_inverse=True)[1]
    sizes = np.bincount(index).astype(np.float64)
    paired = Message("%(method)s, paired by scenario", method=method)
    return approximate(paired, FEW_DIFFER) if needs_bounds(np.bincount(index, weights=y) / sizes, sizes) else paired


def _independent(first: _Board, second: _Board, base: Estimate, confidence: float, seed: int) -> Estimate:
    """The difference of two corrected means by Welch's t, or of two panel means if one mean can't be corrected.

    Each mean has the degrees of freedom of its labelled clusters: their effective number less 1.
    """
    boards = first, second
    rows = [{row.statistic: row for row in board.estimates(confidence=confidence, seed=seed)} for board in boards]
    for name in ("corrected_mean", "panel_mean"):
        one, other = (found[name] for found in rows)
        if one.value is None or other.value is None:
            continue
        used = [board.items.has_both if name == "corrected_mean" else board.items.is_labelled for board in boards]
        value = one.value - other.value
        base = base.with_(
            value=value,
            reason=None,
            n_items=one.n_items + other.n_items,
            n_clusters=sum(number_of(board.items.cluster[own]) for board, own in zip(boards, used, strict=True)),
            n_missing=one.n_missing + other.n_missing,
            **_counts(*(board.rated[own] for board, own in zip(boards, used, strict=True))),
        )
        if one.se is None or other.se is None:
            return base.with_(interval_reason=one.interval_reason or other.interval_reason)
        units = [_units(board.items, own) for board, own in zip(boards, used, strict=True)]
        se, df = _welch((one.se, other.se), units)
        method = (
            Message("Welch t of two corrected means")
            if name == "corrected_mean"
            else Message("Welch t of two panel means")
        )
        if min(one.n_items, other.n_items) < WARN_BELOW or min(units) < FEW_UNITS:
            method = approximate(method)
        size = max(abs(one.value), abs(other.value))
        interval = t_interval(value, se, df, method=method, confidence=confidence, unit=size)
        if is_bounded(one.method) or is_bounded(other.method):
            parts = [(sign, float(e.value or 0.0), interval_of(e)) for sign, e in ((1.0, one), (-1.0, other))]
            summed = added(
                value, parts, approximate(Message("bounded empirical likelihood, two means"), FEW_DIFFER), confidence
            )
            interval = replace(summed, se=se) if summed.low is not None else interval
        return base.with_(**interval.as_changes())
    return base


def _units(items: ScoredItems, used: NDArray[np.bool_]) -> float:
    """The effective number of clusters of the items used (N,), and the weights of the clusters if they have weights."""
    units = effective_number(np.unique(items.cluster[used], return_counts=True)[1])
    if not items.is_weighted:
        return units
    return min(units, effective_number(1 / answered_probability(items.y, items.drawn)[used]))


def _welch(errors: tuple[float, float], units: Sequence[float]) -> tuple[float, float]:
    """The standard error of a difference of two independent means and its degrees of freedom (Welch-Satterthwaite)."""
    variances = [error**2 for error in errors]
    total = sum(variances)
    if not total or min(units) <= 1:
        return float(np.sqrt(total)), 0.0
    df = total**2 / sum(v**2 / (n - 1) for v, n in zip(variances, units, strict=True))
    return float(np.sqrt(total)), df


def _placed(estimate: Estimate, scale: Scale, together: str) -> Estimate:
    """The estimate, clipped at the ends of the scale; its method names the family of its simultaneous interval."""
    alike = _AS_MEAN.get(estimate.statistic) or (
        "ppi_plus_difference" if estimate.statistic == "corrected_difference" else estimate.statistic
    )
    cut = cut_mean(estimate.with_(level=scale.level, statistic=alike), scale)
    method = joined((cut.method, together)) if cut.method and together and alike != "effective_labels" else cut.method
    return cut.with_(statistic=estimate.statistic, method=method)
