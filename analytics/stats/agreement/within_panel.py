"""Who and what makes a panel agree: annotators left out, pairs, the commonest score, rationales, the items that divide.

Definitions: METHODS 1. All reports take a ratings table and give rows of cells, as ``rater_agreement`` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import coefficient_estimates, coefficients, pairwise
from analytics.stats.agreement.coefficient_estimates import CountFigure, Resampling
from analytics.stats.core.estimates import CellEstimate, Estimate, Interval, wilson_interval
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import MOST_LEFT_OUT, Units, left_out_interval, number_of
from analytics.stats.core.scales import agreement_weights
from analytics.stats.core.tables import HUMAN_KINDS, Cell, Coded, RatingsTable, cells, coded
from analytics.stats.declared.register import is_usual

if TYPE_CHECKING:
    import pandas as pd

PAIRS = ("cohen_kappa", "percent_agreement")
MOST_WITH_INTERVALS = 190
"""Pairs of a panel (20 raters) whose kappas get intervals of their own."""
ONE_RATER, NO_PAIRS = Message("only one rater"), Message("no two raters share an item")


# --- annotators left out ---------------------------------------------------------------------------------------------
def left_out_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    statistics: Collection[str] = ("krippendorff_alpha",),
    pool: bool = False,
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell and annotator: the coefficient without that annotator, and ``<coefficient>_change``: without minus with.

    A positive change: without the annotator the others agree better. Its interval is a jackknife t over clusters of the
    difference itself, so that what both coefficients share cancels (METHODS 1). Undefined, with the reason, for
    anonymous raters, two annotators or fewer, and where either coefficient is.
    """
    names = {name.removesuffix("_change") for name in statistics}
    return [
        row
        for cell in cells(table.annotators(), by=by, pool=pool)
        for row in _without_annotators(cell, names, confidence)
        if row.estimate.statistic in statistics
    ]


def _without_annotators(cell: Cell, names: Collection[str], confidence: float) -> Iterator[CellEstimate]:
    scores = coded(cell)
    figures = [
        figure
        for figure in coefficient_estimates.figures_for(scores, names)
        if is_usual(figure.statistic, figure.variant, scores.scale.level)
    ]
    why = pairwise.ANONYMOUS if not cell.has_persons else _too_few(scores)
    for figure in figures:
        with_all = _value(scores, figure)
        if why:
            for name in (figure.statistic, f"{figure.statistic}_change"):
                yield _cell_row(cell, with_all.with_(statistic=name, value=None, reason=why))
            continue
        for place, annotator in enumerate(scores.raters):
            without = _value(scores.without_rater(place), figure)
            yield _cell_row(cell, without, annotator=annotator)
            change = _change(scores, place, figure, with_all, without, confidence)
            yield _cell_row(cell, change, annotator=annotator)


def _too_few(scores: Coded) -> str | None:
    if len(scores.raters) < 2:
        return ONE_RATER if scores.raters else Message("nothing is rated")
    return Message("two raters: without one of them nobody is left to agree with") if len(scores.raters) == 2 else None


def _value(scores: Coded, figure: CountFigure) -> Estimate:
    """The figure without an interval."""
    chosen = [
        each
        for each in coefficient_estimates.figures_for(scores, [figure.statistic])
        if (each.statistic, each.variant) == (figure.statistic, figure.variant)
    ]
    quiet, rng = Resampling(0), np.random.default_rng(0)
    estimate = coefficient_estimates.estimates_from_counts(scores, chosen, rng=rng, how=quiet)[0]
    none = dict.fromkeys(("se", "low", "high", "confidence", "method"))
    why = Message("the change has one") if estimate.is_defined else None
    # Clusters of the items with two scores or more.
    return estimate.with_(
        **none,
        interval_reason=why,
        n_clusters=number_of(scores.cluster[np.bincount(scores.item, minlength=scores.n_items) >= 2]),
    )


def _change(
    scores: Coded, place: int, figure: CountFigure, with_all: Estimate, without: Estimate, confidence: float
) -> Estimate:
    """Without minus with, from items as patterns of both their counts."""
    name = f"{figure.statistic}_change"
    if with_all.value is None or without.value is None:
        missing = with_all if with_all.value is None else without
        return without.with_(statistic=name, value=None, reason=missing.reason, interval_reason=None)
    shared = {name: getattr(with_all, name) for name in ("n_items", "n_raters", "n_ratings", "n_clusters")}
    change = without.with_(statistic=name, value=without.value - with_all.value, interval_reason=None, **shared)
    scale = scores.scale
    if scale.is_continuous or scale.is_sparse or coefficients.is_wide(scale, scores.n_items):
        return change.with_(interval_reason=Message("too many points to leave out cluster by cluster"))
    counts = scores.counts()
    own = scores.rater == place
    rest = counts.copy()
    rest[scores.item[own], scores.code[own]] -= 1
    distinct, pattern = np.unique(np.hstack([counts, rest]), axis=0, return_inverse=True)
    units = Units.of(pattern.ravel(), scores.cluster)
    if units.n_kinds > MOST_LEFT_OUT:
        return change.with_(
            interval_reason=Message(
                "more than %(number)s different clusters are not left out one by one", number=MOST_LEFT_OUT
            )
        )
    of_all, of_rest = np.hsplit(distinct.astype(np.float64), 2)

    def difference(weights: Floats) -> Floats:
        return np.asarray(figure.kernel(of_rest, weights) - figure.kernel(of_all, weights))

    interval = left_out_interval(difference, units, "free", confidence=confidence)
    return change.with_(**interval.as_changes())


# --- pairs of annotators ---------------------------------------------------------------------------------------------
def pair_matrices(codes: NDArray[np.integer], points: Floats, *, ordered: bool) -> tuple[Floats, Floats, Floats]:
    """Of codes (N, R), -1 where missing: kappas, shares of equal scores and common items of all pairs, each (R, R).

    Cohen's kappa 1 - D_o / D_e on the items both scored, with each rater's own margins there; nominal: unweighted,
    ``ordered``: quadratic on the points (q,). NaN where undefined. No table of points by points is made: D_e of squares
    is E[x^2] + E[y^2] - 2 E[x] E[y]. Source: Cohen 1960, 1968 (doi 10.1177/001316446002000104, 10.1037/h0026256).
    """
    seen = (codes >= 0).astype(np.float64)
    n = seen.T @ seen
    equal, expected = np.zeros_like(n), np.zeros_like(n)
    for code in np.unique(codes[codes >= 0]):
        has = (codes == code).astype(np.float64)
        equal += has.T @ has
        margin = has.T @ seen  # how often the row's rater gave it on the items of both
        expected += margin * margin.T
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(n > 0, equal / n, np.nan)
        observed_distance, expected_distance = n - equal, n - expected / n
        if ordered:
            x = np.where(codes >= 0, points[np.maximum(codes, 0)], 0.0)
            x = np.where(codes >= 0, x - x[codes >= 0].mean(), 0.0)
            sums, squares = x.T @ seen, (x**2).T @ seen
            observed_distance = squares + squares.T - 2 * x.T @ x
            expected_distance = squares + squares.T - 2 * sums * sums.T / n
        # One point only: equality of every score says so exactly, differences of squares say it but for rounding.
        contrast = n - expected / n > 1e-9
        kappa = np.where((n > 0) & contrast, 1 - observed_distance / expected_distance, np.nan)
    return kappa, share, n


def pair_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    statistics: Collection[str] = PAIRS,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    pairs: pairwise.Pairs = "few",
) -> list[CellEstimate]:
    """Per cell: Cohen's kappa and the share of equal scores of every pair of annotators who share an item.

    ``raters`` names the pair. A row with ``annotator`` and no pair is the mean over that annotator's pairs that have a
    value. Kappa is unweighted on nominal criteria, else quadratic. Panels of up to ``MOST_WITH_INTERVALS`` pairs have
    intervals of kappa as in ``pairwise``; pairs of more than ``pairwise.MOST_PAIRED_RATERS`` annotators are listed
    where ``pairs`` is "all", else their means say that they are left out. Undefined for anonymous raters (METHODS 1).
    """
    how = Resampling(bootstrap, confidence=confidence)
    rows: list[CellEstimate] = []
    for cell in cells(table.annotators(), by=by, pool=pool):
        scores = coded(cell)
        why = pairwise.ANONYMOUS if not cell.has_persons else ONE_RATER if len(scores.raters) < 2 else None
        if why:
            base = _pair_estimate(scores, 0, None, why)
            rows += [_cell_row(cell, base.with_(statistic=name)) for name in PAIRS if name in statistics]
            continue
        is_listed = pairs == "all" or len(scores.raters) <= pairwise.MOST_PAIRED_RATERS
        rows += _pair_rows(cell, scores, statistics, how, seed, is_listed=is_listed)
    return rows


def _pair_rows(
    cell: Cell, scores: Coded, statistics: Collection[str], how: Resampling, seed: int, *, is_listed: bool
) -> Iterator[CellEstimate]:
    scale = scores.scale
    points = scale.values if scale.has_order and scale.is_numeric else np.arange(max(scale.q, 1), dtype=np.float64)
    kappa, share, n = pair_matrices(scores.matrix(), points, ordered=scale.has_order)
    first, second = np.nonzero(np.triu(n, 1))
    variant = "quadratic" if scale.has_order else "unweighted"
    of_pairs = _with_intervals(scores, variant, how, seed) if len(first) <= MOST_WITH_INTERVALS else {}
    none = (
        Message("a panel of this size has no intervals of its pairs") if not of_pairs else Message("none was computed")
    )
    for name, values in (("cohen_kappa", kappa), ("percent_agreement", share)):
        if name not in statistics:
            continue
        labels = {"statistic": name, "variant": variant if name == "cohen_kappa" else None}
        if is_listed:
            for a, b in zip(first.tolist(), second.tolist(), strict=True):
                pair = scores.raters[a], scores.raters[b]
                known = of_pairs.get(pair) if name == "cohen_kappa" else None
                estimate = known or _pair_estimate(scores, int(n[a, b]), float(values[a, b]), None)
                if estimate.is_defined and known is None:
                    estimate = estimate.with_(interval_reason=none)
                yield _cell_row(cell, estimate.with_(**labels), raters=pair)
        for row in _means(cell, scores, values, n, labels):
            note = joined((row.estimate.note, "" if is_listed else pairwise.PAIRS_LEFT_OUT))
            yield replace(row, estimate=row.estimate.with_(note=note or None))


def _with_intervals(scores: Coded, variant: str, how: Resampling, seed: int) -> dict[tuple[str, ...], Estimate]:
    found = pairwise.cohen_rows(scores, rng=np.random.default_rng(seed), how=how, positional=False)
    return {raters: estimate for estimate, raters in found if raters and estimate.variant == variant}


def _means(
    cell: Cell, scores: Coded, values: Floats, n: Floats, labels: dict[str, str | None]
) -> Iterator[CellEstimate]:
    """For every annotator, the mean over the pairs with the other annotators."""
    apart = ~np.eye(len(n), dtype=bool) & (n > 0)
    seen = np.bincount(scores.rater, minlength=len(n))
    for place, annotator in enumerate(scores.raters):
        own = values[place, apart[place] & ~np.isnan(values[place])]
        reason = (
            None
            if own.size
            else NO_PAIRS
            if not apart[place].any()
            else Message("no pair of this annotator has a value")
        )
        estimate = Estimate(
            value=float(own.mean()) if own.size else None, reason=reason, level=scores.scale.level,
            n_items=int(seen[place]), n_raters=int(apart[place].sum()) + 1, n_ratings=int(seen[place]),
            note=Message("mean over %(number)s pairs", number=own.size),
            interval_reason=Message("a mean over pairs") if own.size else None,
            statistic=str(labels["statistic"]), variant=labels["variant"],
        )  # fmt: skip
        yield _cell_row(cell, estimate, annotator=annotator)


def _pair_estimate(scores: Coded, n: int, value: float | None, reason: str | None) -> Estimate:
    if value is not None and np.isnan(value):
        value, reason = None, Message("only one category is used: chance alone would agree always")
    return Estimate(
        statistic="cohen_kappa", value=value, reason=reason, level=scores.scale.level, n_items=n,
        n_raters=2 if n else len(scores.raters), n_ratings=2 * n,
    )  # fmt: skip


# --- the commonest score, rationales ---------------------------------------------------------------------------------
def commonest_report(
    table: RatingsTable, *, by: Sequence[str] = ("language", "criterion"), pool: bool = False
) -> list[CellEstimate]:
    """Per cell ``commonest_share``: the share of the annotators' scores on the commonest point, named by ``variant``.

    Undefined on a continuous scale. Where it is high, chance-corrected coefficients are low although raters mostly
    agree: the kappa paradox (METHODS 1; Feinstein & Cicchetti 1990, doi 10.1016/0895-4356(90)90158-L).
    """
    rows = []
    for cell in cells(table.annotators(), by=by, pool=pool):
        scores = coded(cell)
        base = Estimate(
            statistic="commonest_share", value=None, reason=Message("nothing is rated"), level=cell.scale.level,
            n_items=scores.n_items, n_raters=len(scores.raters), n_ratings=int(scores.code.size),
            n_missing=scores.n_missing, n_clusters=number_of(scores.cluster),
        )  # fmt: skip
        if cell.scale.is_continuous:
            base = base.with_(reason=Message("a continuous scale has no points"))
        elif scores.code.size:
            counts = np.bincount(scores.code)
            most = int(counts.argmax())
            base = base.with_(
                variant=cell.scale.label(most), value=float(counts[most] / counts.sum()), reason=None,
                interval_reason=Message("a description of these scores"),
            )  # fmt: skip
        rows.append(_cell_row(cell, base))
    return rows


def rationale_length_report(
    table: RatingsTable,
    *,
    column: str = "rationale_length",
    by: Sequence[str] = ("language", "criterion"),
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell, for the annotators together (``judge`` None) and for each judge, from lengths in characters.

    ``rationale_share``: scores and N/A with a rationale, of all that were given, Wilson's interval with the spread of
    the clusters. ``rationale_length``: the median length of those written. No text is read (METHODS 1).
    """
    rows: list[CellEstimate] = []
    for cell in cells(table, by=by):
        kind = cell.frame["rater_kind"]
        given = ~cell.frame["missing"].to_numpy()
        parts: list[tuple[str | None, NDArray[np.bool_]]] = [(None, kind.isin(HUMAN_KINDS).to_numpy() & given)]
        judges = sorted(cell.frame["rater"][(kind == "judge").to_numpy()].unique())
        parts += [(str(judge), (cell.frame["rater"] == judge).to_numpy() & given) for judge in judges]
        for judge_name, own in parts:
            if own.any():
                estimates = _lengths(cell.frame[own], column, confidence)
                rows += [_cell_row(cell, estimate, judge=judge_name) for estimate in estimates]
    return rows


def _lengths(frame: pd.DataFrame, column: str, confidence: float) -> tuple[Estimate, Estimate]:
    lengths = frame[column].to_numpy(dtype=np.float64)
    written = lengths > 0
    share = Estimate(
        statistic="rationale_share", value=float(written.mean()), n_items=int(frame["item_key"].nunique()),
        n_clusters=int(frame["cluster"].nunique()), n_raters=int(frame["rater"].nunique()), n_ratings=len(frame),
    )  # fmt: skip
    interval = _share_interval(written, frame["cluster"].to_numpy(dtype=str), confidence)
    length = share.with_(
        statistic="rationale_length", value=float(np.median(lengths[written])) if written.any() else None,
        reason=None if written.any() else Message("nobody wrote one"), n_ratings=int(written.sum()),
        interval_reason=Message("a description of these texts") if written.any() else None,
        n_missing=int((~written).sum()),
    )  # fmt: skip
    return share.with_(**interval.as_changes()), length


def _share_interval(yes: NDArray[np.bool_], cluster: NDArray[np.str_], confidence: float) -> Interval:
    """Wilson's interval of the share of (M,) answers, its standard error linearised from the clusters' sums."""
    rest = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=yes - yes.mean())
    se = float(np.sqrt((rest**2).sum() * len(rest) / max(len(rest) - 1, 1))) / len(yes)
    return wilson_interval(
        float(yes.mean()),
        se,
        len(rest),
        df=len(rest) - 1,
        method=Message("%(method)s t", method=Message("Wilson")),
        confidence=confidence,
    )


# --- panels on the same items ----------------------------------------------------------------------------------------
def same_mode_report(
    table: RatingsTable,
    first: str,
    second: str,
    *,
    by: Sequence[str] = ("language", "criterion"),
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell ``panel_same_mode``: the share of items on which two panels (column ``panel``) have the same mode.

    Of the items on which both have one; ``n_missing`` counts those that both scored and on which a mode ties. The
    figure for nominal criteria, whose means say nothing (METHODS 1: S2, G.3). Wilson's interval from clusters.
    """
    rows = []
    for cell in cells(table.annotators(), by=by):
        frame = cell.frame[(cell.frame["code"] >= 0).to_numpy() & cell.frame["panel"].isin([first, second]).to_numpy()]
        items = frame.groupby("item_key")["cluster"].first()
        place = np.searchsorted(items.index.to_numpy(), frame["item_key"].to_numpy())
        counts = np.zeros((2, len(items), max(cell.scale.q, 1)), dtype=np.int64)
        np.add.at(counts, ((frame["panel"] == second).to_numpy().astype(int), place, frame["code"].to_numpy()), 1)
        most = counts.max(axis=2)
        both = (most > 0).all(axis=0)
        single = both & ((counts == most[..., None]).sum(axis=2) == 1).all(axis=0)
        same = (counts.argmax(axis=2)[0] == counts.argmax(axis=2)[1])[single]
        cluster = items.to_numpy(dtype=str)[single]
        why = (
            None
            if single.any()
            else Message("no item was scored by both")
            if not both.any()
            else Message("every mode ties")
        )
        estimate = Estimate(
            statistic="panel_same_mode", variant=f"{first} ~ {second}", reason=why, level=cell.scale.level,
            value=float(same.mean()) if single.any() else None, n_items=int(single.sum()),
            n_raters=int(frame["rater"].nunique()), n_ratings=int(counts[:, single].sum()),
            n_missing=int((both & ~single).sum()), n_clusters=number_of(cluster),
        )  # fmt: skip
        if single.any():
            estimate = estimate.with_(**_share_interval(same, cluster, confidence).as_changes())
        rows.append(_cell_row(cell, estimate))
    return rows


# --- the items that divide a panel -----------------------------------------------------------------------------------
def spread_of_items(scores: Coded) -> Floats:
    """(N,) mean distance of two annotators' scores of an item, 0 to 1, NaN for fewer than two scores.

    1 - the item's pairwise agreement with linear weights: nominal [k != l], else |x_k - x_l| / (x_max - x_min) of the
    scale (METHODS 1).
    """
    n = np.bincount(scores.item, minlength=scores.n_items)
    if not scores.scale.is_continuous and scores.n_items * scores.scale.q <= coefficients.MOST_COUNTS * 10:
        w = agreement_weights(scores.scale, "linear" if scores.scale.has_order else "identity")
        agreed = coefficients.item_agreement(scores.counts().astype(np.float64), w)
        return np.where(n >= 2, 1 - agreed, np.nan)
    x = scores.scale.values[scores.code]
    order = np.lexsort((x, scores.item))
    item, x = scores.item[order], x[order]
    rank = np.arange(len(item)) - np.searchsorted(item, item)
    # sum over pairs of |x_a - x_b| = sum over the sorted scores of (2 rank - n + 1) x
    total = np.bincount(item, weights=(2 * rank - n[item] + 1) * x, minlength=scores.n_items)
    width = float(np.ptp(scores.scale.values)) or 1.0
    return np.where(n >= 2, total / np.maximum(n * (n - 1) / 2, 1) / width, np.nan)


def spread_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    most: int = 25,
    pool: bool = False,
) -> list[CellEstimate]:
    """The ``most`` items on whose criteria the annotators differ most: ``label_spread`` and every ``label_share``.

    The cell gains ``item``. ``label_share`` is the share of the item's scores on the point named by ``variant``: the
    soft label (docs: LeWiDi; METHODS 1). Ties go to more scores, then to the order of criteria and items.
    """
    found: list[tuple[float, int, int, Cell, Coded, int]] = []
    for number, cell in enumerate(cells(table.annotators(), by=by, pool=pool)):
        scores = coded(cell)
        spread = spread_of_items(scores)
        n = np.bincount(scores.item, minlength=scores.n_items)
        order = np.lexsort((np.arange(len(n)), -n, -np.nan_to_num(spread, nan=-1.0)))[:most]
        found += [(-spread[i], -int(n[i]), number, cell, scores, int(i)) for i in order if spread[i] > 0]
    found.sort(key=lambda each: (each[0], each[1], each[2], each[5]))
    rows: list[CellEstimate] = []
    for negative, _n, _number, cell, scores, i in found[:most]:
        rows += _of_item(cell, scores, i, -float(negative))
    return rows


def _of_item(cell: Cell, scores: Coded, item: int, spread: float) -> list[CellEstimate]:
    codes = scores.code[scores.item == item]
    place = scores.place[scores.item == item][0]
    name = str(cell.frame.loc[(cell.frame["row"] == place).to_numpy(), "item"].iloc[0])
    base = Estimate(
        statistic="label_spread", value=spread, level=cell.scale.level, n_items=1, n_clusters=1, n_raters=len(codes),
        n_ratings=len(codes), interval_reason=Message("a description of one item"),
    )  # fmt: skip
    estimates = [base]
    if not cell.scale.is_continuous:
        shares = np.bincount(codes, minlength=cell.scale.q) / len(codes)
        points = range(cell.scale.q) if cell.scale.q <= coefficients.FEW_POINTS else np.flatnonzero(shares)
        estimates += [
            base.with_(statistic="label_share", variant=cell.scale.label(int(k)), value=float(shares[k]))
            for k in points
        ]
    return [CellEstimate(estimate=estimate, cell={**_key(cell), "item": name}) for estimate in estimates]


def _key(cell: Cell) -> dict[str, str | None]:
    return {column: value or None for column, value in cell.key.items()}


def _cell_row(cell: Cell, estimate: Estimate, **about: Any) -> CellEstimate:
    return CellEstimate(estimate=estimate, cell=_key(cell), **about)
