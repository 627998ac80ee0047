"""Preferences between two candidates: win, tie and loss of every pair of generators, and their Bradley-Terry strengths.

A preference is scored 1 (the first candidate), 2 (the second), or 1.5 (a tie); the items' attributes ``model_a`` and
``model_b`` name who wrote them (METHODS 4). The log odds that i is preferred to j are strength i - strength j. Sources:
Bradley & Terry 1952 (doi 10.2307/2334029); ties as half a win to each: Chiang et al. 2024, arXiv:2403.04132.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import CellEstimate, Estimate, t_interval
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import Units, left_out_error, number_of
from analytics.stats.core.scales import Scale
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, cells
from analytics.stats.judge.judge_against_panel import numbers
from analytics.stats.judge.substitution import interval_of_shares

_CANDIDATES = ("model_a", "model_b")
SCORES = (1.0, 1.5, 2.0)
_ENOUGH_CLUSTERS = 30
"""With fewer clusters of comparisons, the interval of a generator's strength is approximate."""
FEWEST_COMPARISONS = 20
"""With fewer comparisons of two generators, the interval of a share is approximate."""
_STEPS, _AT_REST, AT_ONCE = 100, 1e-10, 200
NEVER_BEATEN = Message("a generator, or a group of them, wins or loses every comparison with the others")
NOT_COMPARED = Message("the generators fall into groups that were never compared with each other")
NO_PREFERENCES = Message("no two generators were compared")
_TOO_FEW = Message("without one of the clusters the strengths have no bounds")


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """``strength`` (G,) in log odds, with mean 0; ``without`` (C, G): the strengths with a cluster left out."""

    strength: Floats
    without: Floats | None


def bradley_terry(first: Codes, second: Codes, win: Floats, cluster: Codes, *, n: int) -> BradleyTerry | str:
    """Strengths of n generators from M comparisons: first, second (M,) generators, win (M,) the share of the first in
    [0, 1] (a tie is .5), cluster (M,).

    Level: ordinal. Maximises sum of win log p + (1 - win) log(1 - p), logit p = s_first - s_second, by Newton's method;
    concave. A cluster is left out by one step of Newton's method with its part of the information. Returns the reason
    as a sentence if no finite strengths exist (Ford 1957, doi 10.2307/2308513). Source: the module's.
    """
    if not len(win):
        return NO_PREFERENCES
    if reason := _not_finite(first, second, win, n):
        return reason
    design = np.zeros((len(win), n))
    design[np.arange(len(win)), first] += 1
    design[np.arange(len(win)), second] -= 1
    strength = np.zeros(n)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(design @ strength)))
        information = design.T @ (design * (p * (1 - p))[:, None]) + 1.0  # + 1: strengths add up to 0
        move = np.linalg.solve(information, design.T @ (win - p))
        move *= min(1.0, 2.0 / max(float(np.abs(move).max()), 1e-300))
        strength = strength + move
        if np.abs(move).max() < _AT_REST:
            break
    else:
        return Message("the iterations did not come to rest")
    return BradleyTerry(strength - strength.mean(), _without(design, win - p, p * (1 - p), cluster, strength))


def _without(design: Floats, rest: Floats, weight: Floats, cluster: Codes, strength: Floats) -> Floats | None:
    """(C, G) the strengths with each cluster left out; None if one of these strengths is not finite."""
    names, place = np.unique(cluster, return_inverse=True)
    n, order = design.shape[1], np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(names) + 1))
    information = design.T @ (design * weight[:, None]) + 1.0
    found = np.empty((len(names), n))
    for begin in range(0, len(names), AT_ONCE):
        block = range(begin, min(begin + AT_ONCE, len(names)))
        own = [order[starts[c] : starts[c + 1]] for c in block]
        slope = np.stack([design[at].T @ rest[at] for at in own])
        less = np.stack([design[at].T @ (design[at] * weight[at, None]) for at in own])
        try:
            found[block.start : block.stop] = strength - np.linalg.solve(information - less, slope[..., None])[..., 0]
        except np.linalg.LinAlgError:
            return None
    found -= found.mean(axis=1, keepdims=True)
    return found if np.abs(found).max() < 1e6 else None


def _not_finite(first: Codes, second: Codes, win: Floats, n: int) -> str | None:
    """Why no finite strengths exist: the graph of wins and ties between generators must be strongly connected."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    won, lost = win > 0, win < 1
    tail, head = np.r_[second[won], first[lost]], np.r_[first[won], second[lost]]
    graph = csr_array((np.ones(len(tail)), (tail, head)), shape=(n, n))
    if connected_components(graph, directed=False)[0] > 1:
        return NOT_COMPARED
    return NEVER_BEATEN if connected_components(graph, directed=True, connection="strong")[0] > 1 else None


# --- the report ------------------------------------------------------------------------------------------------------
def preference_report(
    table: RatingsTable,
    *,
    judge: str | None = None,
    by: Sequence[str] = ("criterion",),
    pool: bool = False,
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Per cell, of the annotators or of one judge: ``win``, ``tie`` and ``loss`` of ``generator`` against ``variant``,
    and the ``strength`` of every generator.

    An item counts once, with the mean of its scores: shares by Wilson's interval with t, from clusters left out;
    strengths by the jackknife with t, simultaneous for all generators of the cell (Bonferroni). Only criteria on a
    scale from 1 to 2, and items whose attributes name both candidates.
    """
    if not set(_CANDIDATES) <= set(table.frame.columns):
        return []
    frame = table.frame
    own = frame["rater"] == judge if judge else frame["rater_kind"].isin(HUMAN_KINDS)
    chosen = RatingsTable(frame[(own & (frame["repeat"] == frame["first_repeat"])).to_numpy()], table.scales)
    across = [column for column in by if column not in ("generator", *_CANDIDATES)]
    return [
        CellEstimate(estimate=row, cell={**{k: v or None for k, v in cell.key.items()}, "generator": name}, judge=judge)
        for cell in cells(chosen, by=across, pool=pool)
        if cell.scale.has_order and cell.scale.is_numeric and _is_preference(cell.scale)
        for name, row in _of_cell(cell, confidence)
    ]


def _is_preference(scale: Scale) -> bool:
    """Scores between the points, where a scale allows any number, count as missing and not as another scale."""
    values = scale.values
    ends = (values[0], values[-1]) if len(values) else ()
    return ends == (SCORES[0], SCORES[-1]) and (scale.any_number or set(values) <= set(SCORES))


@dataclass(frozen=True, slots=True)
class _Compared:
    """Items (M,) that compare two generators, ``first`` before ``second`` by name; ``share`` (M, 3): of its scores that
    prefer the first, neither, the second. ``rated`` (M, J): by whom. ``missing`` (G, G): ratings without a score, by
    pair of generators.
    """

    names: tuple[str, ...]
    first: Codes
    second: Codes
    share: Floats
    ratings: Codes
    cluster: Codes
    rated: NDArray[np.bool_]
    missing: Codes

    @classmethod
    def of(cls, cell: Cell) -> _Compared:
        import pandas as pd

        frame, score = cell.frame, numbers(cell.frame, cell.scale)
        sides = [frame[name].fillna("").astype(str).to_numpy() for name in _CANDIDATES]
        both = (sides[0] != "") & (sides[1] != "") & (sides[0] != sides[1])
        used = np.isin(score, SCORES) & both
        names, codes = np.unique(np.concatenate([side[used] for side in sides]), return_inverse=True)
        a, b = np.split(codes, 2)
        choice = np.where(a < b, score[used], 3 - score[used])
        item, _ = pd.factorize(frame["item_key"].to_numpy()[used])
        n = int(item.max(initial=-1)) + 1
        at = np.zeros(n, dtype=np.intp)
        at[item[::-1]] = np.arange(len(item))[::-1]
        counts = np.stack([np.bincount(item[choice == value], minlength=n) for value in SCORES], axis=1)
        cluster, _ = pd.factorize(frame["cluster"].to_numpy()[used][at])
        ends = np.minimum(a, b)[at], np.maximum(a, b)[at]
        total = counts.sum(axis=1)
        rater, raters = pd.factorize(frame["rater"].to_numpy()[used])
        rated = np.zeros((n, len(raters)), dtype=np.bool_)
        rated[item, rater] = True
        missing = np.zeros((len(names), len(names)), dtype=np.intp)
        lost = both & ~used & np.isin(sides[0], names) & np.isin(sides[1], names)
        np.add.at(missing, tuple(np.sort(np.searchsorted(names, [side[lost] for side in sides]), axis=0)), 1)
        share = counts / np.maximum(total, 1)[:, None]
        return cls(tuple(map(str, names)), *ends, share, total, cluster, rated, missing)

    def counts(self, own: NDArray[np.bool_]) -> dict[str, int]:
        """The counts of raters and ratings for the selected items (M,)."""
        return {
            "n_items": int(own.sum()),
            "n_ratings": int(self.ratings[own].sum()),
            "n_raters": int(self.rated[own].any(axis=0).sum()),
            "n_clusters": number_of(self.cluster[own]),
        }


def _of_cell(cell: Cell, confidence: float) -> Iterator[tuple[str, Estimate]]:
    found = _Compared.of(cell)
    for i, j in combinations(range(len(found.names)), 2):
        here = (found.first == i) & (found.second == j)
        if here.any():
            counts = found.counts(here) | {"n_missing": int(found.missing[i, j])}
            yield from ((found.names[i], row) for row in _shares(found, here, j, counts, confidence))
    yield from _strengths(found, cell, confidence)


def _shares(
    found: _Compared, here: NDArray[np.bool_], other: int, counts: dict[str, Any], confidence: float
) -> Iterator[Estimate]:
    for name, x in zip(("win", "tie", "loss"), found.share[here].T, strict=True):
        row = Estimate(statistic=name, value=float(x.mean()), variant=found.names[other], **counts)
        interval = interval_of_shares(x, found.cluster[here], confidence)
        row = row.with_(**interval.as_changes())
        if row.method and counts["n_clusters"] < FEWEST_COMPARISONS:
            row = row.with_(method=approximate(row.method, Message("few comparisons")))
        yield row


def _strengths(found: _Compared, cell: Cell, confidence: float) -> Iterator[tuple[str, Estimate]]:
    n = len(found.names)
    base = Estimate(statistic="strength", value=None, reason=NO_PREFERENCES, level=cell.scale.level)
    win = found.share @ np.array([1.0, 0.5, 0.0])
    fit = bradley_terry(found.first, found.second, win, found.cluster, n=n)
    together = Message("simultaneous for %(number)s generators, Bonferroni", number=n) if n > 1 else None
    for place, name in enumerate(found.names):
        own = (found.first == place) | (found.second == place)
        counts = found.counts(own)
        missing = int(found.missing[place].sum() + found.missing[:, place].sum())
        row, clusters = base.with_(**counts, n_missing=missing), counts["n_clusters"]
        if isinstance(fit, str):
            yield name, row.with_(reason=fit)
            continue
        row = row.with_(value=float(fit.strength[place]), reason=None)
        if fit.without is None or len(fit.without) < 2:
            yield name, row.with_(interval_reason=_TOO_FEW)
            continue
        units = Units(np.ones(len(fit.without), dtype=np.int64))
        se, df = (float(x) for x in left_out_error(np.array(row.value), fit.without[:, place], units))
        method = joined((Message("jackknife t, clusters"), together))
        if clusters < _ENOUGH_CLUSTERS:
            method = approximate(method, Message("%(number)s clusters", number=clusters))
        each = 1 - (1 - confidence) / n
        df = max(1.0, min(df, clusters - 1))
        yield name, row.with_(**t_interval(row.value or 0.0, se, df, method=method, confidence=each).as_changes())
