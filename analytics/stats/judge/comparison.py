"""Several judges beside the panel on the same items: agreement, paired differences, effects of what judges differ in.

METHODS 3, 4. Every judge is compared on the items that all of them scored and that have a reference label; a jury on
those of them on which it has a score, so that its ties restrict nobody else. Clusters are resampled once for all
judges, criteria and languages, so that differences are paired. What an interval rests on: the bootstrap standard error
and Student's t with the effective number of clusters less one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    FEW_UNITS,
    MAX_UNDEFINED_SHARE,
    NO_RESAMPLE_DIFFERS,
    NO_WIDTH,
    CellEstimate,
    Estimate,
    corrected_together,
    t_interval,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import Units, effective_number
from analytics.stats.core.scales import Scale, snapped
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.reference import labels_of

if TYPE_CHECKING:
    import pandas as pd


MEASURES = ("accuracy", "mae", "kappa")
"""Exact agreement; mean absolute error; Cohen's kappa, unweighted on nominal scales, else quadratic."""
STATISTICS = (
    *MEASURES,
    *(f"{name}_{kind}" for name in MEASURES for kind in ("difference", "effect", "interaction")),
    "common_items",
    "left_out",
)
_LEVELS = "levels"
"""The column with the factor levels of each judge, as JSON."""
MOST_PAIRED = 12
"""Judges up to which each pair is compared; of more, each with the first, or with the one that is asked for."""
MOST_INTERACTIONS = 6
MIN_ITEMS = 10
"""Common items below which a cell is in no mean and has no effects: kappa of few items takes few values by chance."""
NO_MEAN = Message("interactions are those of the mean of the cells, and there is none")
ONE_FACTOR = Message("an interaction needs judges at each combination of two factors")
METHOD = Message("cluster bootstrap standard error, t")
WITHOUT_REFERENCE = Message("without a reference label")
WITHOUT_SCORE = Message("without a score on the scale")
TIED_JURY = Message("a tied jury")


@dataclass(frozen=True, slots=True)
class JudgedItems:
    """The N items of one cell that have a reference label and that all K judges scored.

    ``moments`` (K, N, M): means over a judge's repeats of equal, |x - y|, x, x^2, (x - y)^2, then whether x is each
    point (nominal scales only); ``reference`` (N, M'): y, y^2, then whether y is each point. ``left_out``: by judge,
    how many items with a reference label it did not score, without the ``tied`` ones of a jury.
    """

    cell: Cell
    judges: tuple[str, ...]
    moments: Floats
    reference: Floats
    cluster: NDArray[np.str_]
    item: Codes
    n_raters: int
    n_scores: Codes
    left_out: Mapping[str, int]
    tied: Mapping[str, int]
    without_reference: int
    rule: str

    @property
    def n(self) -> int:
        """N."""
        return len(self.cluster)

    @property
    def is_nominal(self) -> bool:
        return self.cell.scale.level == "nominal"


def comparison_report(
    table: RatingsTable,
    *,
    judges: Sequence[str],
    rules: Sequence[tuple[Sequence[str], str | None, str]],
    statistics: Sequence[str] = STATISTICS,
    by: Sequence[str] = ("language", "criterion"),
    levels: Mapping[str, Mapping[str, str]] | None = None,
    against: str = "",
    min_items: int = MIN_ITEMS,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Agreement of each judge with the panel, and what differs between them, in every cell and on the mean of cells.

    ``rules``: criteria with their rule of reference (None: the mode, on interval scales the mean) and what it does with
    a tie. ``levels``: by judge, its level of each factor; effects are deviations from the mean of all judges, fitted by
    least squares on effect-coded factors. Undefined where a factor can't be told from another. Interactions: the
    largest, with Bonferroni's correction for all of them. Differences and effects have a p of zero, corrected by Holm
    within the measure. ``min_items``: common items that a cell needs to be in the
    mean of the cells and to have effects. A jury (``rater_kind``) is compared on the judges' common items on which it
    has a score, two juries on those of both; the judges, their mean and effects do not depend on it. Source: Davison &
    Hinkley 1997, 3.8 (doi 10.1017/CBO9780511802843); Searle 1987, Linear Models for Unbalanced Data
    (ISBN 978-0-471-84096-1).
    """
    parts = [
        (cell, rule, ties) for criteria, rule, ties in rules for cell in cells(table.only(criterion=criteria), by=by)
    ]
    compared = []
    for raters, about in _compared_together(table, judges):
        judged = (judged_items(cell, raters, rule=rule, ties=ties) for cell, rule, ties in parts)
        compared.append(([part for part in judged if part is not None], about))
    clusters = [part.cluster for found, _about in compared for part in found]
    names = np.unique(np.concatenate(clusters)) if clusters else np.zeros(0, dtype=str)
    how = _How(bootstrap, confidence, seed, against if against in judges else "", levels or {}, min_items)
    report: list[CellEstimate] = []
    for found, about in compared:
        for part in found:
            report += _counts(part, about) if {"common_items", "left_out"} & set(statistics) else []
    for measure in MEASURES:
        if any(name.partition("_")[0] == measure for name in statistics) and len(names):
            for found, about in compared:
                report += _of_measure(found, measure, names, how, by, about)
    juries = set(table.frame.loc[(table.frame["rater_kind"] == "jury").to_numpy(), "rater"])

    def family(row: CellEstimate) -> tuple[str, bool]:
        """The differences of one measure, and its effects; those of juries apart, so that judges' depend on none."""
        return row.estimate.statistic, bool(juries.intersection(row.raters or ()))

    return corrected_together([row for row in report if row.estimate.statistic in statistics], family)


def comparison_by_levels(table: RatingsTable, **how: Any) -> list[CellEstimate]:
    """``comparison_report`` with the factor levels of each judge from the column ``levels``, where there is one."""
    frame = table.frame
    if _LEVELS not in frame:
        return comparison_report(table, **how)
    named = frame[frame[_LEVELS].notna().to_numpy()].drop_duplicates("rater")
    levels = {str(rater): json.loads(text) for rater, text in zip(named["rater"], named[_LEVELS], strict=True)}
    return comparison_report(table, levels=levels, **how)


def _compared_together(table: RatingsTable, judges: Sequence[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Raters that are compared on the same items, and the juries of them that the rows are about: the judges alone,
    each jury with them, and every two juries with them.
    """
    frame = table.frame
    of_juries = set(frame.loc[(frame["rater_kind"] == "jury").to_numpy(), "rater"])
    juries = [name for name in judges if name in of_juries]
    alone = tuple(name for name in judges if name not in of_juries)
    yield alone, ()
    for about in (*((name,) for name in juries), *combinations(juries, 2)):
        yield (*alone, *about), about


@dataclass(frozen=True, slots=True)
class _How:
    bootstrap: int
    confidence: float
    seed: int
    against: str
    levels: Mapping[str, Mapping[str, str]]
    min_items: int


# --- the items that all judges scored ---------------------------------------------------------------------------------
def judged_items(cell: Cell, judges: Sequence[str], *, rule: str | None, ties: str) -> JudgedItems | None:
    """The common items of a cell; None where a judge has no row in it or the scale has no numbers."""
    frame = cell.frame
    present = [judge for judge in judges if (frame["rater"] == judge).any()]
    if not present or not cell.scale.is_numeric:
        return None
    chosen = rule or ("mean" if cell.scale.level == "interval" else "mode")
    chosen = "mode" if chosen == "each" else chosen
    people = frame[frame["rater_kind"].isin(["annotator", "adjudicator"]).to_numpy()]
    rows = people.drop_duplicates(["item_key", "criterion"])
    panel = replace(cell, frame=people)
    labels = labels_of(panel, rows, rule=cast("Any", chosen), ties=cast("Any", ties), raters=None)
    has_label = ~np.isnan(labels)
    reference = dict(zip(rows["item_key"][has_label], labels[has_label], strict=True))
    usable = frame["applicable"] & ~frame["missing"] & ~frame["out_of_range"] & frame["score"].notna()
    scored = frame[(usable & frame["rater"].isin(present) & frame["item_key"].isin(list(reference))).to_numpy()]
    number_of_judges = scored.groupby("item_key")["rater"].nunique()
    keys = np.sort(number_of_judges.index[(number_of_judges == len(present)).to_numpy()].to_numpy())
    answered = scored.groupby("rater")["item_key"].nunique()
    is_tied = frame["item_key"].isin(list(reference)) & (frame.get("missing_reason", default="") == "tied")
    tied = {judge: int((is_tied & (frame["rater"] == judge)).sum()) for judge in present}
    items = rows.set_index("item_key").loc[keys]
    scores = scored[scored["item_key"].isin(keys).to_numpy()]
    y = np.array([reference[key] for key in keys], dtype=np.float64)
    scale = cell.scale
    y_point = _points(y, scale)
    columns = [y_point, y_point**2]
    if scale.level == "nominal":
        columns += [(y_point == point).astype(np.float64) for point in scale.values]
    return JudgedItems(
        cell=cell,
        judges=tuple(present),
        moments=_moments(scores, present, keys, y, cell.scale),
        reference=np.stack(columns, axis=1),
        cluster=items["cluster"].to_numpy(dtype=str),
        item=keys.astype(np.intp),
        n_raters=int(people["rater"].nunique()),
        n_scores=np.array([int((scores["rater"] == judge).sum()) for judge in present], dtype=np.intp),
        left_out={judge: len(reference) - int(answered.get(judge, 0)) - tied[judge] for judge in present},
        tied=tied,
        without_reference=int(rows["item_key"].nunique()) - len(reference),
        rule=chosen,
    )


def _points(x: Floats, scale: Scale) -> Floats:
    """(N,) the point of the scale nearest to each value, halves upwards."""
    return np.asarray(scale.values[snapped(x, scale)], dtype=np.float64)


def _moments(scores: pd.DataFrame, judges: Sequence[str], keys: NDArray[Any], y: Floats, scale: Scale) -> Floats:
    """(K, N, M) as in `JudgedItems`."""
    place = np.searchsorted(keys, scores["item_key"].to_numpy())
    x = scores["score"].to_numpy(dtype=np.float64)
    x_point, y_point = _points(x, scale), _points(y, scale)[place]
    columns = [x_point == y_point, np.abs(x - y[place]), x_point, x_point**2, (x_point - y_point) ** 2]
    if scale.level == "nominal":
        columns += [x_point == point for point in scale.values]
    rater = scores["rater"].to_numpy()
    moments = np.zeros((len(judges), len(keys), len(columns)))
    for k, judge in enumerate(judges):
        mine = rater == judge
        n = np.bincount(place[mine], minlength=len(keys))
        for m, column in enumerate(columns):
            sums = np.bincount(place[mine], weights=np.asarray(column, dtype=np.float64)[mine], minlength=len(keys))
            moments[k, :, m] = sums / np.maximum(n, 1)
    return moments


def _counts(part: JudgedItems, about: tuple[str, ...]) -> Iterator[CellEstimate]:
    """The common items and who left out how many; of a jury its own; nothing of two juries."""
    named: dict[str, Any] = {"cell": part.cell.key, "reference": part.rule}
    if len(about) > 1 or not set(about) <= set(part.judges):
        return
    plain: dict[str, Any] = {"n_items": part.n, "n_raters": part.n_raters, "n_clusters": len(np.unique(part.cluster))}
    plain["interval_reason"] = Message("a count of what was seen")
    jury = about[0] if about else None
    yield CellEstimate(estimate=Estimate(statistic="common_items", value=float(part.n), **plain), judge=jury, **named)
    counts: list[tuple[str | None, int, str]] = []
    if jury is None or len(part.judges) == 1:
        counts.append((None, part.without_reference, WITHOUT_REFERENCE))
    counts += [(judge, part.left_out[judge], WITHOUT_SCORE) for judge in about or part.judges]
    counts += [(judge, part.tied[judge], TIED_JURY) for judge in about]
    for judge, items, why in counts:
        left_out = Estimate(statistic="left_out", value=float(items), variant=why, **plain)
        yield CellEstimate(estimate=left_out, judge=judge, **named)


# --- one measure ------------------------------------------------------------------------------------------------------
def agreement_values(part: JudgedItems, measure: str, weights: Floats, sums: tuple[Floats, Floats, Floats]) -> Floats:
    """(b, K) the measure of each judge under (b, C) weights of clusters; ``sums``: what each cluster adds.

    Quadratic kappa from moments: 1 - E(x - y)^2 / (E x^2 + E y^2 - 2 E x E y) (Fleiss & Cohen 1973,
    doi 10.1177/001316447303300309); unweighted: (p_o - p_e) / (1 - p_e). NaN where undefined.
    """
    of_judges, of_reference, sizes = sums
    n = weights @ sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.einsum("bc,ckm->bkm", weights, of_judges, optimize=True) / n[:, None, None]
        y = (weights @ of_reference) / n[:, None]
        if measure == "accuracy":
            return np.asarray(means[:, :, 0])
        if measure == "mae":
            return np.asarray(means[:, :, 1])
        if part.is_nominal:
            observed, expected = means[:, :, 0], (means[:, :, 5:] * y[:, None, 2:]).sum(axis=2)
            return np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)
        by_chance = means[:, :, 3] + y[:, None, 1] - 2 * means[:, :, 2] * y[:, None, 0]
        return np.where(by_chance > 1e-12, 1 - means[:, :, 4] / by_chance, np.nan)


def _cluster_sums(part: JudgedItems, names: NDArray[np.str_]) -> tuple[Floats, Floats, Floats]:
    """The sums that each of C clusters adds: (C, K, M) of the judges, (C, M') of the reference, (C,) items."""
    place = np.searchsorted(names, part.cluster)
    of_judges = np.zeros((len(names), *part.moments.shape[::2]))
    np.add.at(of_judges, place, part.moments.transpose(1, 0, 2))
    of_reference = np.zeros((len(names), part.reference.shape[1]))
    np.add.at(of_reference, place, part.reference)
    return of_judges, of_reference, np.bincount(place, minlength=len(names)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Part:
    """A cell's values, or those of the mean of several: (K,) as seen and (B, K) resampled."""

    judges: tuple[str, ...]
    value: Floats
    resampled: Floats
    df: float
    key: Mapping[str, str | None]
    counts: Mapping[str, Any]
    n_scores: Codes
    level: str | None
    reference: str
    note: str | None = None


def _of_measure(
    found: Sequence[JudgedItems],
    measure: str,
    names: NDArray[np.str_],
    how: _How,
    by: Sequence[str],
    about: tuple[str, ...],
) -> Iterator[CellEstimate]:
    """The rows of one measure that are about these juries; without one, those of all judges, with effects."""
    rng = np.random.default_rng(how.seed)
    kept = [part for part in found if part.n and not (measure == "mae" and part.is_nominal)]
    sums = [_cluster_sums(part, names) for part in kept]
    drawn: list[list[Floats]] = [[] for _part in kept]
    for weights in Units(np.ones(len(names), dtype=np.int64)).draw(rng, how.bootstrap) if how.bootstrap else ():
        for values, part, of_part in zip(drawn, kept, sums, strict=True):
            values.append(agreement_values(part, measure, weights, of_part))
    parts = []
    for values, part, of_part in zip(drawn, kept, sums, strict=True):
        seen = agreement_values(part, measure, np.ones((1, len(names))), of_part)[0]
        parts.append(_one(part, seen, np.concatenate(values) if values else np.zeros((0, len(part.judges)))))
    whole = _mean_of(parts, kept, by, measure, how.min_items)
    for shown in [*parts, *([whole] if whole else [])]:
        for row in _of_part(shown, measure, how):
            named = row.raters or ((row.judge,) if row.judge else ())
            if set(about) <= set(named):
                yield row
    if parts and not about:
        for shown in [*parts, *([whole] if whole else [])]:
            yield from _effects(shown, measure, how)
        yield from _interactions(parts, whole, measure, how)


def _one(part: JudgedItems, seen: Floats, resampled: Floats) -> _Part:
    sizes = np.unique(part.cluster, return_counts=True)[1]
    counts = {"n_items": part.n, "n_raters": part.n_raters, "n_clusters": len(sizes)}
    level = part.cell.scale.level
    key = part.cell.key
    return _Part(
        part.judges, seen, resampled, effective_number(sizes) - 1, key, counts, part.n_scores, level, part.rule
    )


def _mean_of(
    parts: Sequence[_Part], found: Sequence[JudgedItems], by: Sequence[str], measure: str, min_items: int
) -> _Part | None:
    """The plain mean of the cells with ``min_items`` and a value of all judges; of errors only on scales of one width.

    Kappa with and without weights is not averaged: where a scale has an order, nominal ones are left out and counted.
    """
    everyone = {judge for part in parts for judge in part.judges}
    usable = [
        (part, items)
        for part, items in zip(parts, found, strict=True)
        if set(part.judges) == everyone and np.isfinite(part.value).all()
    ]
    incomplete, nominal, small = len(parts) - len(usable), 0, len(usable)
    usable = [(part, items) for part, items in usable if items.n >= min_items]
    small -= len(usable)
    if measure == "kappa" and any(not items.is_nominal for _part, items in usable):
        nominal = sum(items.is_nominal for _part, items in usable)
        usable = [(part, items) for part, items in usable if not items.is_nominal]
    widths = {float(np.ptp(items.cell.scale.values)) for _part, items in usable}
    if len(usable) < 2 or (measure == "mae" and len(widths) > 1):
        return None
    clusters = np.unique(np.concatenate([items.cluster for _part, items in usable]), return_counts=True)[1]
    item = np.unique(np.concatenate([items.item for _part, items in usable]))
    raters = max(items.n_raters for _part, items in usable)
    rules = sorted({items.rule for _part, items in usable})
    first = usable[0][0]
    return _Part(
        judges=first.judges,
        value=np.mean([part.value for part, _items in usable], axis=0),
        resampled=np.mean([part.resampled for part, _items in usable], axis=0),
        df=effective_number(clusters) - 1,
        key=dict.fromkeys((*by, *(() if "criterion" in by else ("criterion",)))),
        counts={"n_items": len(item), "n_raters": raters, "n_clusters": len(clusters)},
        n_scores=np.sum([part.n_scores for part, _items in usable], axis=0),
        level=None,
        reference=", ".join(rules),
        note=joined(
            [
                Message("mean of %(number)s cells", number=len(usable)),
                *_left_out_of_mean(incomplete, small, min_items, nominal),
            ]
        ),
    )


def _left_out_of_mean(incomplete: int, small: int, min_items: int, nominal: int) -> Iterator[str]:
    """Why cells are not in a mean, with how many."""
    if incomplete:
        yield Message("left out without a value of every judge: %(number)s", number=incomplete)
    if small:
        yield Message("left out with fewer than %(number)s common items: %(cells)s", number=min_items, cells=small)
    if nominal:
        yield Message("left out on nominal scales: %(number)s", number=nominal)


def _fewer_than(min_items: int) -> str:
    return Message("fewer than %(number)s common items", number=min_items)


def _of_part(part: _Part, measure: str, how: _How) -> Iterator[CellEstimate]:
    """Agreement of each judge, and the differences of pairs."""
    named: dict[str, Any] = {"cell": dict(part.key), "reference": part.reference}
    for k, judge in enumerate(part.judges):
        estimate = _estimate(part, measure, part.value[k], part.resampled[:, k], how, scores=int(part.n_scores[k]))
        yield CellEstimate(estimate=_cut(estimate, measure), judge=judge, **named)
    for first, second in _pairs(part.judges, how.against):
        a, b = part.judges.index(first), part.judges.index(second)
        drawn = part.resampled[:, a] - part.resampled[:, b]
        scores = int(part.n_scores[a] + part.n_scores[b])
        difference = _estimate(part, f"{measure}_difference", part.value[a] - part.value[b], drawn, how, scores=scores)
        yield CellEstimate(estimate=difference, raters=(first, second), **named)


def _pairs(judges: Sequence[str], against: str) -> list[tuple[str, str]]:
    if against:
        return [(judge, against) for judge in judges if against in judges and judge != against]
    if len(judges) <= MOST_PAIRED:
        return list(combinations(judges, 2))
    return [(judge, judges[0]) for judge in judges[1:]]


def _cut(estimate: Estimate, measure: str) -> Estimate:
    ends = {"accuracy": (0.0, 1.0), "kappa": (-1.0, 1.0), "mae": (0.0, np.inf)}
    return estimate.cut(*ends[measure])


def _estimate(
    part: _Part, statistic: str, value: float, drawn: Floats, how: _How, *, scores: int = 0, family: int = 1
) -> Estimate:
    """One figure with its interval; ``family``: the number of figures in its family (Bonferroni)."""
    plain: dict[str, Any] = {**part.counts, "level": part.level, "n_ratings": scores, "seed": how.seed}
    plain |= {"note": part.note, "speaks_for": "these raters"}
    if not np.isfinite(value):
        return Estimate(statistic=statistic, value=None, reason=Message("judge or panel used one point only"), **plain)
    estimate = Estimate(statistic=statistic, value=float(value), **plain)
    undefined = float(np.isnan(drawn).mean()) if len(drawn) else 1.0
    if not len(drawn):
        return estimate.with_(interval_reason=Message("no resamples were asked for"))
    if undefined > MAX_UNDEFINED_SHARE:
        why = Message(
            "%(share)s of the resamples leave the statistic undefined (more than 5%%)", share=f"{undefined:.1%}"
        )
        return estimate.with_(interval_reason=why, undefined_share=undefined)
    from scipy.special import stdtr

    clusters = part.counts["n_clusters"]
    if clusters < 2:
        return estimate.with_(interval_reason=Message("an interval needs two clusters"), undefined_share=undefined)
    se = float(np.nanstd(drawn, ddof=1)) * np.sqrt(clusters / (clusters - 1))
    if se <= NO_WIDTH * max(1.0, abs(value)):
        return estimate.with_(interval_reason=NO_RESAMPLE_DIFFERS, undefined_share=undefined)
    method = METHOD if family == 1 else Message("%(method)s, Bonferroni over %(number)s", method=METHOD, number=family)
    if part.df + 1 < FEW_UNITS:
        method = approximate(method, Message("%(number)s clusters", number=clusters))
    tail = 1 - (1 - how.confidence) / family
    interval = t_interval(float(value), se, max(part.df, 1.0), method=method, confidence=tail)
    if statistic.endswith(("_difference", "_effect")):
        estimate = estimate.with_(p=float(2 * stdtr(max(part.df, 1.0), -abs(value) / se)))
    return estimate.with_(**interval.as_changes()).with_(confidence=how.confidence, undefined_share=undefined)


# --- what judges differ in --------------------------------------------------------------------------------------------
def factor_levels(levels: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """By factor that differs among these judges, its levels in order of appearance."""
    names = dict.fromkeys(name for each in levels for name in each)
    found = {name: list(dict.fromkeys(each.get(name, "") for each in levels)) for name in names}
    return {name: values for name, values in found.items() if len(values) > 1}


def _coded(levels: Sequence[str], level: str) -> Floats:
    """Effect code of a level: a column for each level but the last, which is -1 in all."""
    place = levels.index(level)
    return -np.ones(len(levels) - 1) if place == len(levels) - 1 else np.eye(len(levels) - 1)[place]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A linear combination of K judges' values: ``weights`` (K,), or None where the judges don't tell it."""

    name: str
    weights: Floats | None


def main_effects(levels: Sequence[Mapping[str, str]]) -> list[Contrast]:
    """The effect of each level of each factor: its deviation from the mean, at equal other factors."""
    factors = factor_levels(levels)
    wanted = [(f"{name} = {level}", {name: level}) for name, values in factors.items() for level in values]
    return _contrasts(levels, factors, [(name,) for name in factors], wanted)


def interactions(levels: Sequence[Mapping[str, str]]) -> list[Contrast]:
    """What a pair of levels adds to the sum of their effects; of a factor with two levels the first only."""
    factors = factor_levels(levels)
    pairs = list(combinations(factors, 2))
    shown = {name: values if len(values) > 2 else values[:1] for name, values in factors.items()}
    wanted = [
        (f"{first} = {a} × {second} = {b}", {first: a, second: b})
        for first, second in pairs
        for a in shown[first]
        for b in shown[second]
    ]
    found = _contrasts(levels, factors, [*((name,) for name in factors), *pairs], wanted)
    return [contrast for contrast in found if contrast.weights is not None]


def _contrasts(
    levels: Sequence[Mapping[str, str]],
    factors: Mapping[str, Sequence[str]],
    terms: Sequence[tuple[str, ...]],
    wanted: Sequence[tuple[str, Mapping[str, str]]],
) -> list[Contrast]:
    """Least squares on effect codes: weights r X^+ of each wanted row r, where r lies in the row space of X."""

    def columns(term: tuple[str, ...], at: Mapping[str, str]) -> Floats:
        code = _coded(factors[term[0]], at.get(term[0], ""))
        for name in term[1:]:
            code = np.multiply.outer(code, _coded(factors[name], at.get(name, ""))).ravel()
        return np.asarray(code)

    widths = [int(np.prod([len(factors[name]) - 1 for name in term])) for term in terms]
    x = np.stack([np.concatenate([[1.0], *(columns(term, at) for term in terms)]) for at in levels])
    ends = np.cumsum([1, *widths])
    inverse = np.linalg.pinv(x)
    found = []
    for name, at in wanted:
        row = np.zeros(x.shape[1])
        for term, (start, end) in zip(terms, pairwise(ends), strict=True):
            if set(term) == set(at):
                row[start:end] = columns(term, at)
        weights = row @ inverse
        is_told = bool(np.allclose(weights @ x, row, atol=1e-8))
        found.append(Contrast(name, np.asarray(weights) if is_told else None))
    return found


def _effects(part: _Part, measure: str, how: _How) -> Iterator[CellEstimate]:
    """The effect of each level in a cell with enough items, or why there is none."""
    statistic = f"{measure}_effect"
    named: dict[str, Any] = {"cell": dict(part.key), "reference": part.reference}
    known, levels = _known_levels(part, how)
    if why := _without_effects(part, levels, how):
        yield CellEstimate(estimate=_undefined(part, statistic, why, how), **named)
        return
    value, drawn = part.value[known], part.resampled[:, known]
    scores = int(part.n_scores[known].sum())
    for contrast in main_effects(levels):
        if contrast.weights is None:
            estimate = _undefined(part, statistic, Message("these judges don't tell this factor from another"), how)
        else:
            w = contrast.weights
            estimate = _estimate(part, statistic, float(value @ w), drawn @ w, how, scores=scores)
        yield CellEstimate(estimate=estimate.with_(variant=contrast.name), **named)


def _interactions(parts: Sequence[_Part], whole: _Part | None, measure: str, how: _How) -> Iterator[CellEstimate]:
    """The largest interactions on the mean of the cells, or in the only cell; or that there is no mean of several."""
    statistic = f"{measure}_interaction"
    part = whole or parts[0]
    if whole is None and len(parts) > 1:
        none = Estimate(statistic=statistic, value=None, reason=NO_MEAN)
        yield CellEstimate(estimate=none, cell=dict.fromkeys((*part.key, "criterion")))
        return
    named: dict[str, Any] = {"cell": dict(part.key), "reference": part.reference}
    known, levels = _known_levels(part, how)
    why = _without_effects(part, levels, how)
    defined = [] if why else [each for each in interactions(levels) if each.weights is not None]
    if not defined:
        yield CellEstimate(estimate=_undefined(part, statistic, why or ONE_FACTOR, how), **named)
        return
    value, drawn = part.value[known], part.resampled[:, known]
    scores = int(part.n_scores[known].sum())
    figures = [(each.name, w) for each in defined if (w := each.weights) is not None]
    for name, w in sorted(figures, key=lambda figure: -abs(float(value @ figure[1])))[:MOST_INTERACTIONS]:
        estimate = _estimate(part, statistic, float(value @ w), drawn @ w, how, scores=scores, family=len(defined))
        yield CellEstimate(estimate=estimate.with_(variant=name), **named)


def _known_levels(part: _Part, how: _How) -> tuple[list[int], list[Mapping[str, str]]]:
    """Which of the K judges have levels, and these."""
    known = [k for k, judge in enumerate(part.judges) if how.levels.get(judge)]
    return known, [how.levels[part.judges[k]] for k in known]


def _without_effects(part: _Part, levels: Sequence[Mapping[str, str]], how: _How) -> str:
    if not levels or not factor_levels(levels):
        return Message("these judges differ in no factor that is known")
    return _fewer_than(how.min_items) if part.counts["n_items"] < how.min_items else ""


def _undefined(part: _Part, statistic: str, why: str, how: _How) -> Estimate:
    return _estimate(part, statistic, np.nan, np.zeros(0), how).with_(reason=why)
