"""Ranking stability as a report: every pair of languages, criterion by criterion (METHODS 4).

And the ranking of the generators by a judge beside the panel's (METHODS 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    NO_FAMILY,
    CellEstimate,
    Estimate,
    Interval,
    corrected_together,
    holm,
    percentile,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import THESE, THIS_JUDGE, RatersAs, of_report, resampled_sums
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge import corrected_means
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key, numbers
from analytics.stats.judge.measures import report_on_measure
from analytics.stats.judge.soundness import panel_means
from analytics.stats.ranking import concordance
from analytics.stats.ranking.concordance import Scores, Standing, tau_b_of_sums

if TYPE_CHECKING:
    import pandas as pd


_FEW_CLUSTERS = 30
_MOST_NAMED = 5
"""Confirmed inversions named in a note."""
STATISTICS = ("mean", "kendall_tau_b", "spearman", "inversions", "confirmed_inversions", "tied_pairs", "rank")
PAPER_COMPAT = "paper_compat"
_JOINT, _INDEPENDENT = (
    Message("%(method)s, scenarios jointly", method="").template,
    Message("%(method)s, languages independently", method="").template,
)


def stability_report(
    table: RatingsTable,
    *,
    judge: str | None = None,
    by: Sequence[str] = ("criterion",),
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    paper_compat: bool = True,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """Generator means per language, then tau-b, Spearman and inversions of every pair of languages.

    Parameters
    ----------
    judge : whose scores rank the generators; None: the panel's mean score of each item.
    paper_compat : also give the figures by S0's procedure (variant ``paper_compat``): the mean of tau and rho over
        resamples drawn independently per generator and language, and inversions with the doubled p of plain label
        shuffling.
    raters_as : "sample" makes the intervals of ``mean`` for raters like these; ranks jump when a rater is left out, and
        what is made of them stays with these raters.

    Returns
    -------
    Per cell: ``mean`` rows (generator, language), then per language pair ``kendall_tau_b``, ``spearman``,
    ``inversions`` (p by permutation, Holm-corrected p in the note), ``confirmed_inversions`` (Holm over all pairs of
    generators and languages) and ``tied_pairs``. ``rank`` rows (generator, language) have sets of ranks for intervals;
    rank 1 is the highest mean, on scales where lower is better the lowest, as the note says. Intervals of ``mean`` and
    ``rank`` from fewer than 30 clusters say that they are approximate.
    """
    if raters_as == "sample":
        settings: dict[str, Any] = {"by": by, "pool": pool, "seed": seed, "paper_compat": paper_compat}
        plain = stability_report(table, bootstrap=bootstrap, confidence=confidence, **settings)
        of_means = of_report(
            plain, lambda kept: stability_report(kept, bootstrap=0, **settings), table, {"mean": "free"}
        )
        across = [column for column in by if column not in ("language", "generator")]
        return corrected_means.cut_means(of_means, table, by=across, pool=pool)
    report: list[CellEstimate] = []
    for cell in cells(table, by=[column for column in by if column not in ("language", "generator")], pool=pool):
        rows = ranking_rows(cell, judge)
        scores = scores_of(rows)
        if not len(scores.score):
            report.append(_placed(CellEstimate(estimate=_nothing(cell)), cell, judge, rows))
            continue
        rng = np.random.default_rng(seed)
        parallel = scores.is_parallel
        boards = (
            concordance.resampled_boards(scores, resamples=bootstrap, rng=rng, parallel=parallel) if bootstrap else None
        )
        how = _How(bootstrap, confidence, seed, paper_compat, _JOINT if parallel else _INDEPENDENT)
        ranked = [row for row, _ in _ranks(scores, boards, how, lower_is_better=_is_lower_better(cell, table))]
        estimates = _means(scores, boards, how) + ranked + _pairs(scores, boards, how, rng)
        report += [_placed(one, cell, judge, rows) for one in estimates]
    return report


@dataclass(frozen=True, slots=True)
class _How:
    """How intervals and tests are made; ``drawn`` says what is resampled together."""

    resamples: int
    confidence: float
    seed: int
    paper_compat: bool
    drawn: str


def ranks_in_cell(
    cell: Cell, table: RatingsTable, *, judge: str | None, bootstrap: int, confidence: float, seed: int
) -> list[tuple[CellEstimate, Standing | None]]:
    """``rank`` of every generator in each language of a cell, as `stability_report` gives it, and how it stands among
    the others where the rank has an interval; empty without scores.
    """
    rows = ranking_rows(cell, judge)
    scores = scores_of(rows)
    if not len(scores.score):
        return []
    parallel, boards = scores.is_parallel, None
    if bootstrap:
        rng = np.random.default_rng(seed)
        boards = concordance.resampled_boards(scores, resamples=bootstrap, rng=rng, parallel=parallel)
    how = _How(bootstrap, confidence, seed, False, _JOINT if parallel else _INDEPENDENT)
    ranked = _ranks(scores, boards, how, lower_is_better=_is_lower_better(cell, table))
    return [(_placed(row, cell, judge, rows), standing) for row, standing in ranked]


def _is_lower_better(cell: Cell, table: RatingsTable) -> bool:
    """Whether rank 1 is the lowest mean: on all of the cell's criteria lower is better."""
    criteria = cell.frame["criterion"].unique()
    return all(key in table.scales and table.scales[key].lower_is_better for key in criteria)


def ranking_rows(cell: Cell, judge: str | None = None) -> pd.DataFrame:
    """The rows that rank: the judge's, or the panel's; ``number`` is the score on the scale, NaN without one."""
    frame = cell.frame.assign(number=numbers(cell.frame, cell.scale) if cell.scale.has_order else np.nan)
    frame = frame[frame["language"].notna() & frame["generator"].notna()]
    return frame[frame["rater"] == judge if judge is not None else _is_panel(frame)]


def scores_of(rows: pd.DataFrame) -> Scores:
    """Rows ready for ranking: one score per item, the mean of its raters'."""
    import pandas as pd

    keys = ["item_key", "generator", "language", "cluster"]
    scored = rows[rows["number"].notna()]
    items: pd.DataFrame = scored.groupby(keys, sort=True, observed=True)["number"].mean().reset_index()
    generator, generators = pd.factorize(items["generator"], sort=True)
    language, languages = pd.factorize(items["language"], sort=True)
    scenario, _ = pd.factorize(items["cluster"], sort=True)
    names = (tuple(map(str, generators)), tuple(map(str, languages)))
    return Scores(items["number"].to_numpy(dtype=np.float64), generator, language, scenario, *names)


def _is_panel(frame: pd.DataFrame) -> pd.Series[bool]:
    """The annotators; where there are none, whoever scored."""
    human = frame["rater_kind"] == "annotator"
    return human if human.any() else frame["rater"].notna()


def _nothing(cell: Cell) -> Estimate:
    reason = Message("nobody scored an item that has a language and a generator")
    if not cell.scale.has_order:
        reason = Message("labels without an order rank nothing")
    return Estimate(statistic="kendall_tau_b", value=None, reason=reason)


def _means(s: Scores, boards: Floats | None, how: _How) -> list[CellEstimate]:
    means = concordance.board(s)
    counts = np.bincount(s.cell, minlength=means.size).reshape(means.shape)
    rows = []
    for g, k in zip(*np.nonzero(counts), strict=True):
        estimate = Estimate(statistic="mean", value=float(means[g, k]), n_items=int(counts[g, k]), seed=how.seed)
        if boards is not None and counts[g, k] > 1:
            size = float(np.abs(s.score).max())
            interval = _drawn(percentile(boards[:, g, k], confidence=how.confidence, unit=size), how.drawn)
            estimate = estimate.with_(**interval.as_changes())
        rows.append(CellEstimate(estimate=estimate, generator=s.generators[g], language=s.languages[k]))
    return rows


def _pairs(s: Scores, boards: Floats | None, how: _How, rng: np.random.Generator) -> list[CellEstimate]:
    means, compat = concordance.board(s), None
    if how.resamples and how.paper_compat:
        compat = concordance.resampled_boards(s, resamples=how.resamples, rng=rng, parallel=False)
    rows = []
    for first, second in concordance.language_pairs(len(s.languages)):
        compared = concordance.compare_rankings(means[:, first], means[:, second], s.tie)
        estimates = _figures(s, compared, boards, first, second, how)
        if boards is not None and compared.inversions is not None:
            estimates[2] = estimates[2].with_(p=_p(s, first, second, compared.inversions, how.resamples, rng))
            estimates.append(_tested(s, boards, first, second))
        if compat is not None and compared.reason is None:
            estimates += _as_printed(s, compat, first, second, compared.inversions or 0, how.confidence, rng)
        n_items = int(np.isin(s.language, (first, second)).sum())
        languages = (s.languages[first], s.languages[second])
        rows += [CellEstimate(estimate=e.with_(n_items=n_items, seed=how.seed), languages=languages) for e in estimates]
    # The sound permutation tests of the cell are one family.
    return corrected_together(
        _confirmed(rows, how.confidence), lambda row: NO_FAMILY if row.estimate.variant is not None else None
    )


def _figures(
    s: Scores, compared: concordance.Compared, boards: Floats | None, first: int, second: int, how: _How
) -> list[Estimate]:
    """tau-b, rho, inversions and tied pairs of one pair of languages."""
    point = (compared.tau_b, compared.spearman, compared.inversions)
    names = ("kendall_tau_b", "spearman", "inversions")
    intervals = [Interval()] * 3
    if boards is not None and compared.reason is None:
        intervals = [_drawn(one, how.drawn) for one in _compatible(s, boards, first, second, how.confidence)]
    estimates = [
        Estimate(statistic=name, value=None if value is None else float(value), reason=compared.reason).with_(
            **(interval.as_changes() if value is not None else {})
        )
        for name, value, interval in zip(names, point, intervals, strict=True)
    ]
    return [*estimates, Estimate(statistic="tied_pairs", value=float(compared.tied_pairs))]


def _compatible(s: Scores, boards: Floats, first: int, second: int, confidence: float) -> tuple[Interval, ...]:
    """Intervals of tau-b, rho and inversions, over the generators both languages have."""
    both, n_scenarios = [first, second], concordance.scenarios(s)
    shared = (n_scenarios[:, both] > 0).all(axis=1)
    means = concordance.board(s)[shared][:, both]
    fewest = int(n_scenarios[shared][:, both].min())
    drawn = boards[:, shared][:, :, both]
    return concordance.rank_intervals(means, drawn, n_scenarios=fewest, confidence=confidence, tie=s.tie)


def _resampled(boards: Floats, first: int, second: int, tie: float) -> Floats:
    """(3, B) tau-b, rho and inversions of two languages on resampled boards, over generators both have."""
    both = boards[:, :, [first, second]]
    shared = ~np.any(np.all(np.isnan(both), axis=0), axis=1)
    signs = concordance.rank_pairs(both[:, shared], tie)
    s, t = signs[..., 0], signs[..., 1]
    return np.stack(
        [concordance.tau_b(s, t), concordance.rank_spearman(s, t, int(shared.sum())), concordance.inversions(s, t)]
    )


def _p(s: Scores, first: int, second: int, observed: int, resamples: int, rng: np.random.Generator) -> float:
    shuffled = concordance.permuted(s, first, second, resamples=resamples, rng=rng, centre=True)
    return concordance.p_inversions(observed, _resampled(shuffled, 0, 1, s.tie)[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested(Estimate):
    """``confirmed_inversions`` of one pair of languages before the family is known: p of each pair of generators."""

    pairs: tuple[tuple[str, str], ...]
    p_values: tuple[float, ...]


def _tested(s: Scores, boards: Floats, first: int, second: int) -> _Tested:
    both, n_scenarios = [first, second], concordance.scenarios(s)
    shared = np.flatnonzero((n_scenarios[:, both] > 0).all(axis=1))
    df = max(1, int(n_scenarios[shared][:, both].min()) - 1)
    p = concordance.p_of_inversions(
        concordance.board(s)[shared][:, both], boards[:, shared][:, :, both], df=df, tie=s.tie
    )
    pairs = tuple(combinations([s.generators[g] for g in shared], 2))
    return _Tested(statistic="confirmed_inversions", value=0.0, pairs=pairs, p_values=tuple(p.tolist()))


def _confirmed(rows: list[CellEstimate], confidence: float) -> list[CellEstimate]:
    """Counts of the pairs of generators whose inversion is certain, Holm-corrected over all pairs of the cell."""
    tests = [c.estimate for c in rows if isinstance(c.estimate, _Tested)]
    corrected = iter(holm([p for test in tests for p in test.p_values]))
    family = sum(len(test.p_values) for test in tests)
    confirmed = []
    for one in rows:
        test = one.estimate
        if isinstance(test, _Tested):
            adjusted = [next(corrected) for _ in test.p_values]
            sure = [pair for pair, p in zip(test.pairs, adjusted, strict=True) if p < 1 - confidence]
            named = [Message("%(one)s and %(other)s change places", one=a, other=b) for a, b in sure[:_MOST_NAMED]]
            note = joined((Message("Holm in a family of %(number)s pairs of generators", number=family), *named))
            plain = Estimate(statistic=test.statistic, value=float(len(sure)), n_items=test.n_items, seed=test.seed)
            confirmed.append(replace(one, estimate=plain.with_(note=note)))
        else:
            confirmed.append(one)
    return confirmed


def _ranks(
    s: Scores, boards: Floats | None, how: _How, *, lower_is_better: bool
) -> list[tuple[CellEstimate, Standing | None]]:
    """``rank`` of every generator in each language, with the set of ranks that the clear differences leave it."""
    means, n_scenarios = concordance.board(s), concordance.scenarios(s)
    rows: list[tuple[CellEstimate, Standing | None]] = []
    first = (
        Message("rank 1 is the lowest mean: lower is better")
        if lower_is_better
        else Message("rank 1 is the highest mean")
    )
    if lower_is_better:
        means, boards = -means, None if boards is None else -boards
    for k, language in enumerate(s.languages):
        here = np.flatnonzero(n_scenarios[:, k] > 0)
        if len(here) < 2:
            continue
        own = means[here, k]
        ranks = concordance.ranks(concordance.rank_pairs(own[:, None], s.tie)[:, 0], len(here))
        fewest = int(n_scenarios[here, k].min())
        standings: Sequence[Standing | None] = [None] * len(here)
        if boards is not None and fewest > 1:
            standings = concordance.clear_standings(
                [s.generators[g] for g in here], own, boards[:, here, k],
                n_scenarios=fewest, confidence=how.confidence, tie=s.tie,
            )  # fmt: skip
        together = Message("the interval includes the ranks of all %(number)s generators together", number=len(here))
        for g, rank, standing in zip(here, ranks, standings, strict=True):
            estimate = Estimate(
                statistic="rank", value=float(rank), note=first,
                n_items=int((s.cell == g * means.shape[1] + k).sum()),
            )  # fmt: skip
            if standing is not None:
                low, high = standing.places()
                estimate = estimate.with_(
                    low=float(low), high=float(high), confidence=how.confidence, seed=how.seed,
                    method=Message(how.drawn, method=concordance.RANK_SETS), note=joined((first, together)),
                )  # fmt: skip
            rows.append((CellEstimate(estimate=estimate, generator=s.generators[g], language=language), standing))
    return rows


def _as_printed(
    s: Scores, boards: Floats, first: int, second: int, observed: int, confidence: float, rng: np.random.Generator
) -> list[Estimate]:
    """S0's own figures: bootstrap means of tau and rho; inversions with twice the p of plain label shuffling."""
    estimates = []
    for name, row in zip(("kendall_tau_b", "spearman"), _resampled(boards, first, second, s.tie), strict=False):
        interval = _drawn(percentile(row, confidence=confidence), _INDEPENDENT)
        value = float(np.nanmean(row)) if not np.isnan(row).all() else None
        reason = None if value is not None else Message("no resample has a ranking in both languages")
        one = Estimate(statistic=name, variant=PAPER_COMPAT, value=value, reason=reason)
        estimates.append(one.with_(**interval.as_changes()))
    shuffled = concordance.permuted(s, first, second, resamples=len(boards), rng=rng, centre=False)
    p = concordance.p_inversions(observed, _resampled(shuffled, 0, 1, s.tie)[2], paper_compat=True)
    return [*estimates, Estimate(statistic="inversions", variant=PAPER_COMPAT, value=float(observed), p=p)]


def _drawn(interval: Interval, what: str) -> Interval:
    """The interval, its method naming what was drawn, when there is one."""
    return interval if interval.method is None else replace(interval, method=Message(what, method=interval.method))


def _placed(one: CellEstimate, cell: Cell, judge: str | None, rows: pd.DataFrame) -> CellEstimate:
    """An estimate in its place, with the raters and ratings of its languages and generator."""
    of = one.languages or (one.language,) if one.languages or one.language else rows["language"].unique()
    here = rows["language"].isin(list(of)) & ((rows["generator"] == one.generator) if one.generator else True)
    kept = rows[here]
    scored = kept[kept["number"].notna()]
    estimate = one.estimate.with_(
        level=cell.scale.level,
        n_raters=int(scored["rater"].nunique()),
        n_ratings=len(scored),
        n_missing=len(kept) - len(scored),
        n_clusters=int(scored["cluster"].nunique()),
        speaks_for=(one.estimate.value is not None and (THIS_JUDGE if judge else THESE)) or None,
    )
    if estimate.statistic in ("mean", "rank") and estimate.method and (estimate.n_clusters or 0) < _FEW_CLUSTERS:
        clusters = f"{estimate.n_clusters} cluster{'s' if estimate.n_clusters != 1 else ''}"
        estimate = estimate.with_(method=approximate(estimate.method, clusters))
    return replace(one, cell=cell_key(cell), judge=judge, estimate=estimate)


# --- the ranking by a judge against the panel's -----------------------------------------------------------------------
def ranking_agreement(compared: JudgeAgainstPanel, *, bootstrap: int = 2000, seed: int = 0) -> Estimate:
    """``ranking_tau_b``: Kendall's tau-b of the generators' means by the judge and by the panel, on the same items.

    Clusters are resampled; where all resamples of 30 clusters or more agree, the interval is that one value; with fewer
    clusters it says that it is approximate. Level: interval. Undefined below two generators or where one side ties them
    all. Source: METHODS 7; Kendall 1945, doi:10.1093/biomet/33.3.239.
    """
    panel = panel_means(compared.humans)
    both, generator = ranked_generators(compared)
    names, who = np.unique(generator, return_inverse=True)
    clusters, where = np.unique(compared.cluster[both], return_inverse=True)
    base = Estimate(
        statistic="ranking_tau_b", value=None, level=compared.scale.level, n_items=int(both.sum()),
        n_raters=len(compared.annotators), n_clusters=len(clusters), n_ratings=int(compared.n_human[both].sum()),
        reason=Message("fewer than two generators have scores by the judge and by the panel"),
    )  # fmt: skip
    if len(names) < 2 or not compared.scale.has_order:
        return base if compared.scale.has_order else base.with_(reason=Message("a nominal scale ranks nothing"))
    g = len(names)
    flat = where * g + who
    sums = [
        np.bincount(flat, weights=weights, minlength=len(clusters) * g).reshape(len(clusters), g)
        for weights in (compared.judge[both], panel[both], np.ones(int(both.sum())))
    ]
    value = float(tau_b_of_sums(np.hstack([part.sum(axis=0, keepdims=True) for part in sums]), g)[0])
    if np.isnan(value):
        return base.with_(reason=Message("the judge or the panel gives all generators the same mean"))
    estimate = base.with_(value=value, reason=None, note=Message("%(number)s generators", number=g))
    if not bootstrap or len(clusters) < 2:
        return estimate.with_(interval_reason=Message("an interval needs resampling and two clusters"))
    draws = tau_b_of_sums(resampled_sums(np.hstack(sums), resamples=bootstrap, rng=np.random.default_rng(seed)), g)
    if len(clusters) >= _FEW_CLUSTERS and bool(np.all(np.abs(draws - value) < 1e-9)):
        method = approximate(Message("percentile"), Message("every resample ranks them alike"))
        return estimate.with_(seed=seed, low=value, high=value, confidence=0.95, method=method)
    estimate = estimate.with_(seed=seed, **percentile(draws).as_changes())
    if estimate.method and len(clusters) < _FEW_CLUSTERS:
        return estimate.with_(method=approximate(estimate.method, Message("%(number)s clusters", number=len(clusters))))
    return estimate


def ranking_report(
    table: RatingsTable, *, judge: str, by: Sequence[str], pool: bool = False, bootstrap: int = 2000, seed: int = 0
) -> list[CellEstimate]:
    """``ranking_tau_b`` of every cell; generators are what is ranked, so that they do not cut the table."""
    return [
        CellEstimate(
            estimate=ranking_agreement(JudgeAgainstPanel.of(cell, judge), bootstrap=bootstrap, seed=seed),
            cell=cell_key(cell),
            judge=judge,
        )
        for cell in cells(table, by=[name for name in by if name != "generator"], pool=pool)
    ]


def stability_of_measure(
    table: RatingsTable, *, measure: str, statistics: Sequence[str], **how: Any
) -> list[CellEstimate]:
    """The rankings of generators by a measure of their items, as by a judge."""
    how |= {"judge": measure, "paper_compat": False}
    return report_on_measure(stability_report, measure, table, statistics=statistics, **how)


def ranked_generators(compared: JudgeAgainstPanel) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """(N,) which items have a generator and scores by the judge and by the panel; their generators."""
    generator = compared.rows["generator"].fillna("").astype(str).to_numpy()
    both = (compared.n_human > 0) & ~np.isnan(compared.judge) & (generator != "")
    return both, generator[both]
