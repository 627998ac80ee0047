"""Every figure about a judge and a reference, under many weightings of the same pairs at once (METHODS 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.stats import association, confusion
from analytics.stats.intervals import Shape
from analytics.stats.scales import Scale, Weighting, disagreement, snapped

Floats = NDArray[np.float64]

MOST_LABELS = 11
"""Scales with more points (0-100) get no figures label by label."""
_NO_ORDER = "a nominal scale has no distances: only labels can be compared"
_NO_LABELS = "an interval scale without declared points has no labels to compare"


class Pairs:
    """Judge x and reference y, distinct pairs (m,) on a scale, under weights w (b, m)."""

    def __init__(self, x: Floats, y: Floats, w: Floats, scale: Scale) -> None:
        self.x, self.y, self.w, self.scale = x, y, w, scale

    @cached_property
    def confusion(self) -> Floats:
        """(b, q, q) counts with both rounded half up to the points of the scale, reference in rows."""
        return confusion.confusion(snapped(self.y, self.scale), snapped(self.x, self.scale), self.w, self.scale.q)

    def mean(self, of_pairs: Floats) -> Floats:
        """(b,) weighted mean of a value per pair (m,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = (self.w @ of_pairs) / self.w.sum(axis=1)
        return mean

    def kappa(self, weighting: Weighting) -> Floats:
        """(b,) Cohen's kappa between judge and reference."""
        return confusion.cohen_kappa(self.confusion, disagreement(self.scale, weighting))


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure of pairs -> (b,), and what is to be said when it comes out NaN.

    ``base`` (b,) counts the pairs a share (or F1) rests on; None for what is no share. ``shape``: what values it takes.
    ``skewed``: whether few pairs off the commonest one, or heavy tails (``distances``), leave its interval approximate.
    """

    statistic: str
    kernel: Callable[[Pairs], Floats]
    undefined: str
    variant: str | None = None
    base: Callable[[Pairs], Floats] | None = None
    shape: Shape = "coefficient"
    skewed: bool = False
    distances: bool = False


def mean_signed_error(pairs: Pairs) -> Floats:
    """Bias: mean of judge - reference; positive when the judge is lenient. Level: interval."""
    return pairs.mean(pairs.x - pairs.y)


def mean_absolute_error(pairs: Pairs) -> Floats:
    """MAE: mean of |judge - reference| (POLLUX D.2.1). Level: interval."""
    return pairs.mean(abs(pairs.x - pairs.y))


def root_mean_squared_error(pairs: Pairs) -> Floats:
    """RMSE: root of the mean of (judge - reference)^2. Level: interval."""
    return np.sqrt(pairs.mean((pairs.x - pairs.y) ** 2))


def _all_pairs(pairs: Pairs) -> Floats:
    total: Floats = pairs.w.sum(axis=1)
    return total


_NOTHING = "no item has both a judge score and a reference label"
_FLAT = "the judge's or the reference's scores do not vary"
_ONE_LABEL = "only one label is used"

DISTANCES = (
    Figure("mae", mean_absolute_error, _NOTHING, shape="positive"),
    Figure("rmse", root_mean_squared_error, _NOTHING, shape="positive", distances=True),
    Figure("bias", mean_signed_error, _NOTHING, shape="free"),
    Figure("pearson", lambda p: association.pearson(p.x, p.y, p.w), _FLAT, skewed=True, distances=True),
    Figure("spearman", lambda p: association.spearman(p.x, p.y, p.w), _FLAT, skewed=True),
    Figure("kendall_tau_b", lambda p: association.kendall_tau_b(p.x, p.y, p.w), _FLAT, skewed=True),
)
STEPS = (
    Figure("accuracy_adjacent", lambda p: confusion.adjacent(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
    Figure("cohen_kappa", lambda p: p.kappa("linear"), _ONE_LABEL, "linear", skewed=True, distances=True),
    Figure("cohen_kappa", lambda p: p.kappa("quadratic"), _ONE_LABEL, "quadratic", skewed=True, distances=True),
)
IN_SCORES = ("mae", "rmse", "bias")
"""Figures in the unit of the scores; all others have none."""
CORRELATIONS = ("pearson", "spearman", "kendall_tau_b")
LABELS = (
    Figure("accuracy", lambda p: confusion.accuracy(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
    Figure("cohen_kappa", lambda p: p.kappa("identity"), _ONE_LABEL, "unweighted", skewed=True),
    Figure("f1_weighted", lambda p: confusion.f1_weighted(p.confusion), _NOTHING, base=_all_pairs, shape="share"),
)
_BY_LABEL = {
    "f1": (confusion.f1, confusion.involved, "neither the judge nor the reference gives this label"),
    "precision": (confusion.precision, confusion.judged, "the judge never gives this label"),
    "recall": (confusion.recall, confusion.referred, "the reference never gives this label"),
}
STATISTICS = tuple(dict.fromkeys(f.statistic for f in (*DISTANCES, *LABELS, *STEPS))) + tuple(_BY_LABEL)


def figures(scale: Scale, statistics: Sequence[str] | None = None) -> list[Figure]:
    """The figures that apply to a scale, those of ``statistics`` only when it is given."""
    wanted = STATISTICS if statistics is None else statistics
    found = [*DISTANCES, *LABELS, *STEPS, *_each_label(scale)]
    return [figure for figure in found if figure.statistic in wanted]


def inapplicable(figure: Figure, scale: Scale) -> str | None:
    """Why a figure makes no sense on a scale, if so."""
    if not scale.has_order and figure in (*DISTANCES, *STEPS):
        return _NO_ORDER
    if figure in DISTANCES:
        return None
    if scale.is_continuous:
        return scale.why_continuous
    return None if scale.declared or scale.level in ("nominal", "ordinal") else _NO_LABELS


def values(chosen: Sequence[Figure], x: Floats, y: Floats, w: Floats, scale: Scale) -> Floats:
    """All chosen figures of pairs (m,), (m,) under weights (b, m) -> (F, b), NaN where undefined."""
    has_matrix = any(not inapplicable(figure, scale) for figure in chosen if figure not in DISTANCES)
    blocks = [_block(chosen, Pairs(x, y, rows, scale)) for rows in _blocks(w, scale.q**2 if has_matrix else 1)]
    return np.concatenate(blocks, axis=1)


def _block(chosen: Sequence[Figure], pairs: Pairs) -> Floats:
    if not pairs.x.size:
        return np.full((len(chosen), len(pairs.w)), np.nan)
    return np.array([_or_nan(figure, pairs) for figure in chosen]).reshape(len(chosen), len(pairs.w))


def _or_nan(figure: Figure, pairs: Pairs) -> Floats:
    return np.full(len(pairs.w), np.nan) if inapplicable(figure, pairs.scale) else figure.kernel(pairs)


def _blocks(w: Floats, width: int) -> Iterator[Floats]:
    step = max(1, association.BLOCK_CELLS // max(width, 1))
    for start in range(0, len(w), step):
        yield w[start : start + step]


def _each_label(scale: Scale) -> Iterator[Figure]:
    if scale.q > MOST_LABELS:
        return
    for statistic, (kernel, base, undefined) in _BY_LABEL.items():
        for k in range(scale.q):
            yield Figure(statistic, _of_label(kernel, k), undefined, scale.label(k), _of_label(base, k), shape="share")


def _of_label(kernel: Callable[[Floats, int], Floats], k: int) -> Callable[[Pairs], Floats]:
    return lambda pairs: kernel(pairs.confusion, k)
