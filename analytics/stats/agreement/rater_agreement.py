"""Agreement among raters, cell by cell: what ``panelbench stats agreement`` prints and the dashboard shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from analytics.stats.agreement import coefficient_estimates, pairwise, reliability
from analytics.stats.agreement.coefficient_estimates import Resampling
from analytics.stats.core import resampling
from analytics.stats.core.estimates import CellEstimate, Estimate, Keeps, Shape
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.resampling import RatersAs, number_of
from analytics.stats.core.scales import WEIGHTINGS, Scale
from analytics.stats.core.tables import Cell, Coded, RatingsTable, cells, coded, coded_from_matrix
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT
from analytics.stats.declared.register import BY_PLAIN_NAME, statistics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

_SHOWN_FIRST = (
    "percent_agreement",
    "percent_agreement_pooled",
    "percent_agreement_exact",
    "percent_agreement_adjacent",
    "cohen_kappa",
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac",
    "brennan_prediger",
    "conger_kappa",
    "icc",
    "verdict_confidence",
    "variance_component",
    "panel_reliability",
)
APPLICABILITY = {name: BY_PLAIN_NAME[name].of_use for name in (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC)}
STATISTICS = (
    *_SHOWN_FIRST,
    *(name for name in statistics_of("agreement") if name not in (*_SHOWN_FIRST, *APPLICABILITY.values())),
)
"""In the order they are shown. Agreement on "not applicable" stands beside them where somebody used it:
``applicability_agreement``, ``applicability_alpha``, ``applicability_ac``."""
WEIGHTED = {name for name, each in BY_PLAIN_NAME.items() if each.usual and {*each.usual.values()} <= {*WEIGHTINGS}}
"""Statistics whose variants are names of weights."""
_LEFT_OUT = Message("this annotator left out")
APPLICABLE = Scale(("applicable", "N/A"), "nominal")


@dataclass(frozen=True, slots=True)
class _Request:
    """The settings that apply to every cell."""

    statistics: frozenset[str] | None
    positional: bool
    how: Resampling
    seed: int
    leave_one_out: bool
    raters_as: RatersAs = "these"
    keeps: Keeps | None = None
    pairs: pairwise.Pairs = "few"

    def wants(self, statistic: str) -> bool:
        return self.statistics is None or statistic in self.statistics

    def rng(self, key: dict[str, str | None], stream: int) -> np.random.Generator:
        """A generator of the cell's own: its figures don't depend on which other cells or statistics are asked for."""
        name = "\0".join(f"{column}={value}" for column, value in sorted(key.items()))
        return np.random.default_rng([self.seed, crc32(name.encode()), stream])


def agreement_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language", "criterion"),
    statistics: Collection[str] | None = None,
    raters: Sequence[str] | None = None,
    positional: bool = False,
    pool: bool = False,
    bootstrap: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    interval: str = "default",
    leave_one_out: bool = False,
    raters_as: RatersAs = "these",
    keeps: Keeps | None = None,
    pairs: pairwise.Pairs = "few",
) -> list[CellEstimate]:
    """Every agreement statistic of every cell, in the order of ``STATISTICS``.

    ``raters`` names who is compared; without it the annotators are (judges, juries, adjudicators and references stay
    out). ``positional`` says that raters are anonymous slots (a ``rater_identified`` column says it too): statistics
    that need to know who is who are then undefined with a reason. ``bootstrap=0`` gives closed-form and jackknife
    intervals only. ``interval`` is ``percentile``, ``bca``, or ``default``: percentile, and BCa for statistics that
    prefer it (``Statistic.prefers_bca``). ``leave_one_out`` adds every figure of the panel with each annotator left out
    (``annotator`` names the one left out). ``raters_as`` "sample" makes intervals for raters like these
    (``resampling``); those of one pair and of ICC(3,.) stay with these raters. Each cell draws from its own generators,
    seeded by ``seed`` and the cell's key, so that a cell's figures don't depend on which other cells are asked for.
    ``keeps``: variants of figures of counts that it refuses are not computed. ``pairs`` "few": Cohen's kappas of more
    than ``pairwise.MOST_PAIRED_RATERS`` raters come as their mean alone.
    """
    how = Resampling(bootstrap, interval, confidence)
    names = None if statistics is None else frozenset(statistics)
    request = _Request(names, positional, how, seed, leave_one_out, raters_as, keeps, pairs)
    chosen = table.annotators() if raters is None else table.only(rater=raters)
    return [estimate for cell in cells(chosen, by=by, pool=pool) for estimate in _of_cell(cell, request)]


def measure(
    scores: Any,
    statistic: str,
    *,
    scale: Scale,
    variant: str | None = None,
    clusters: Any = None,
    bootstrap: int = 2000,
    interval: str = "default",
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    raters_as: RatersAs = "these",
) -> Estimate:
    """One statistic of an (items, raters) array of scores, NaN or None where missing.

    ``variant`` chooses among the variants of ``report`` (by default the first: unequal, identity, observed, 1,1; for
    Cohen's kappa the mean over pairs). ``clusters`` (items,) names what is resampled. ``rng`` is needed when
    ``bootstrap`` is not 0.
    """
    cell = coded_from_matrix(scores, scale=scale, clusters=clusters)
    how = Resampling(bootstrap, interval, confidence)
    request = _Request(frozenset([statistic]), False, how, 0, False, raters_as)
    if bootstrap and rng is None:
        raise ValueError("resampling needs rng=numpy.random.default_rng(seed), or bootstrap=0")
    streams = [rng or np.random.default_rng(0)] * 3
    figures = _for_whom(cell, list(_figures(cell, request, streams)), request)
    of_panel = [estimate for estimate, raters in figures if raters is None]
    for estimate in of_panel:
        if variant is None or estimate.variant == variant:
            return estimate
    raise ValueError(f"no {statistic} {variant or ''} on a {scale.level} scale")


def _of_cell(cell: Cell, request: _Request) -> Iterator[CellEstimate]:
    """The rows of one cell: its figures, then agreement on applicability, then each annotator left out."""
    scores = coded(cell)
    if not cell.has_persons:
        request = replace(request, positional=True)
    streams = [request.rng(cell.key, stream) for stream in range(3)]
    figures = sorted(_figures(scores, request, streams), key=lambda row: STATISTICS.index(row[0].statistic))
    counted = _clusters(scores)
    for estimate, raters in _for_whom(scores, figures, request):
        yield _row(cell, _seeded(estimate, request).with_(n_clusters=counted(estimate, raters)), raters=raters)
    for estimate in _inapplicable(scores, request, {estimate.statistic for estimate, _ in figures}):
        yield _row(cell, estimate)
    for estimate in _applicability(cell, request):
        yield _row(cell, estimate)
    if request.leave_one_out and not request.positional:
        yield from _left_out(cell, scores, request)


def _clusters(scores: Coded) -> Callable[[Estimate, tuple[str, ...] | None], int | None]:
    """How many clusters the items of an estimate come in, or of one about a pair of raters.

    By how many items: those with one score, with two, with every rater's. Each of these sets holds the next one, so
    two of one size are the same items.
    """
    n = np.bincount(scores.item, minlength=scores.n_items)
    sets = [scores.cluster[n >= least] for least in (1, 2, max(2, len(scores.raters)))]
    known = {len(clusters): number_of(clusters) for clusters in sets}
    alone = number_of(scores.cluster) == scores.n_items
    names = {name: place for place, name in enumerate(scores.raters)}

    def counted(estimate: Estimate, raters: tuple[str, ...] | None) -> int | None:
        if raters is None or alone:
            return estimate.n_items if alone else known.get(estimate.n_items)
        first, second = (scores.item[scores.rater == names[name]] for name in raters)
        return number_of(scores.cluster[np.intersect1d(first, second)])

    return counted


def _figures(cell: Coded, request: _Request, streams: Sequence[np.random.Generator]) -> Iterator[pairwise.Row]:
    counted = coefficient_estimates.figures_for(cell, request.statistics)
    if request.keeps:
        level = cell.scale.level
        counted = [figure for figure in counted if request.keeps(figure.statistic, figure.variant, level)]
    for estimate in (
        coefficient_estimates.estimates_from_counts(cell, counted, rng=streams[0], how=request.how) if counted else ()
    ):
        yield estimate, None
    if request.wants("cohen_kappa"):
        yield from pairwise.cohen_rows(
            cell, rng=streams[1], how=request.how, positional=request.positional, pairs=request.pairs
        )
    if request.wants("conger_kappa"):
        yield from pairwise.conger_rows(cell, rng=streams[2], how=request.how, positional=request.positional)
    if cell.scale.has_order and cell.scale.is_numeric:
        yield from ((estimate.with_(level=cell.scale.level), None) for estimate in _numeric(cell, request))
    elif cell.scale.q == 2:
        yield from ((estimate.with_(level=cell.scale.level), None) for estimate in _components(cell, request))


def _quiet(request: _Request) -> _Request:
    """The same request with closed forms only."""
    return replace(request, how=Resampling(0, confidence=request.how.confidence), leave_one_out=False)


def _for_whom(cell: Coded, figures: Sequence[pairwise.Row], request: _Request) -> list[pairwise.Row]:
    """The figures with intervals for these raters, or for raters like these; each says for which.

    A pair's figure and ICC(3,.) are about these raters by definition. F intervals of ICC(2,.) take raters as a sample.
    """
    if request.raters_as == "these":
        return [(_as_defined(estimate), raters) for estimate, raters in figures]
    quiet, streams, many = _quiet(request), [np.random.default_rng(0)] * 3, len(cell.raters)
    panel_statistics = frozenset(estimate.statistic for estimate, raters in figures if raters is None)
    quiet, sizes = replace(quiet, statistics=panel_statistics), np.bincount(cell.rater, minlength=many)
    with_scores = np.flatnonzero(sizes)
    left = [
        {
            (e.statistic, e.variant): e.value
            for e, raters in _figures(cell.without_rater(int(i)), quiet, streams)
            if not raters
        }
        for i in (with_scores if not request.positional and len(with_scores) >= resampling.FEWEST_RATERS else ())
    ]
    rows: list[pairwise.Row] = []
    for estimate, raters in figures:
        fixed = estimate.statistic == "icc" and str(estimate.variant).startswith("3")
        if raters is not None or fixed:
            changed = _as_defined(estimate)
        elif estimate.statistic == "icc" and str(estimate.variant).endswith("k"):
            changed = reliability.stepped_up(rows[-1][0], estimate)
        elif request.positional and estimate.value is not None:
            changed = resampling.without_interval(estimate, resampling.ANONYMOUS)
        else:
            values = [one.get((estimate.statistic, estimate.variant)) for one in left]
            bare = estimate.with_(method="F") if _is_random(estimate) else estimate
            changed = resampling.for_raters_like_these(bare, values, sizes, _shape(estimate))
        rows.append((changed, raters))
    return rows


def _as_defined(estimate: Estimate) -> Estimate:
    """For these raters, but where F takes those of ICC(2,.) as a sample."""
    return resampling.for_these(estimate, resampling.LIKE_THESE if _is_random(estimate) else resampling.THESE)


def _is_random(estimate: Estimate) -> bool:
    """Whether F takes its raters for a sample."""
    of_two_ways = estimate.statistic == "icc" and (estimate.variant or "").startswith("2")
    return of_two_ways and (estimate.method or "").startswith("F")


def _shape(estimate: Estimate) -> Shape:
    """The range of values that a figure can have."""
    if estimate.statistic.startswith("percent") or estimate.variant == "observed":
        return "share"
    return "free" if estimate.statistic == "verdict_confidence" and estimate.variant != "corrected" else "coefficient"


def _inapplicable(cell: Coded, request: _Request, computed: Collection[str]) -> Iterator[Estimate]:
    """A figure asked for by name that the scale has no meaning for is shown with the reason."""
    for name in STATISTICS:
        if name in (request.statistics or ()) and name not in computed:
            reason = (
                Message("it needs numbers")
                if cell.scale.has_order
                else Message("a nominal scale has no order and no distances")
            )
            yield Estimate(statistic=name, value=None, level=cell.scale.level, reason=reason, n_missing=cell.n_missing)


def _numeric(cell: Coded, request: _Request) -> Iterator[Estimate]:
    """Intraclass correlations; variance components and the curve of raters per item only when they are asked for."""
    values = cell.values()
    if request.wants("icc"):
        how: dict[str, Any] = {"confidence": request.how.confidence, "positional": request.positional}
        for estimate in reliability.iccs(values, reliability.FORMS, cluster=cell.cluster, **how):
            yield estimate.with_(n_missing=cell.n_missing)
    yield from _components(cell, request)


def _components(cell: Coded, request: _Request) -> Iterator[Estimate]:
    """Of numbers, or of two labels as 0 and 1: the mean is then a share."""
    values = cell.values() if cell.scale.has_order else np.where(cell.matrix() < 0, np.nan, cell.matrix())
    for name in ("variance_component", "panel_reliability"):
        if request.statistics is not None and name in request.statistics:
            yield from reliability.component_estimates(values, name, n_missing=cell.n_missing)


def _applicability(cell: Cell, request: _Request) -> Iterator[Estimate]:
    """Agreement on whether the criterion applies at all (METHODS 0), where anybody said it doesn't."""
    names = [name for name in APPLICABILITY if request.wants(name) or request.wants(APPLICABILITY[name])]
    if cell.frame["applicable"].all() or not names:
        return
    decided = cell.frame[~cell.frame["missing"]]
    codes = np.where(decided["applicable"], 0, 1).astype(np.int32)
    scores = coded(Cell(cell.key, decided.assign(code=codes), APPLICABLE))
    figures = coefficient_estimates.figures_for(scores, names)
    computed, counted = (
        coefficient_estimates.estimates_from_counts(scores, figures, rng=request.rng(cell.key, 3), how=request.how),
        _clusters(scores),
    )
    for estimate, _ in _for_whom(scores, [(estimate, None) for estimate in computed], request):
        named = _seeded(estimate, request).with_(statistic=APPLICABILITY[estimate.statistic])
        yield named.with_(n_clusters=counted(estimate, None))


def _left_out(cell: Cell, scores: Coded, request: _Request) -> Iterator[CellEstimate]:
    """Every figure of the panel without each annotator in turn, from closed forms: does one person move it?"""
    quiet, streams = _quiet(request), [request.rng(cell.key, 4)] * 3
    for index, name in enumerate(scores.raters):
        left = scores.without_rater(index)
        figures = sorted(_figures(left, quiet, streams), key=lambda row: STATISTICS.index(row[0].statistic))
        counted = _clusters(left)
        for estimate, pair in figures:
            if pair is None and estimate.variant != "paper_compat":
                note = joined((_LEFT_OUT, estimate.note))
                yield _row(
                    cell,
                    resampling.for_these(estimate.with_(note=note, n_clusters=counted(estimate, None))),
                    annotator=name,
                )


def _row(
    cell: Cell, estimate: Estimate, *, raters: tuple[str, ...] | None = None, annotator: str | None = None
) -> CellEstimate:
    key = {column: value or None for column, value in cell.key.items()}
    weights = (
        pairwise.COHEN_VARIANTS.get(estimate.variant or "")
        if estimate.statistic == "cohen_kappa"
        else (estimate.variant if estimate.statistic in WEIGHTED else None)
    )
    return CellEstimate(estimate=estimate, cell=key, raters=raters, annotator=annotator, weights=weights)


def _seeded(estimate: Estimate, request: _Request) -> Estimate:
    """The seed where random numbers made the interval."""
    return estimate.with_(seed=request.seed if "bootstrap" in (estimate.method or "") else None)
