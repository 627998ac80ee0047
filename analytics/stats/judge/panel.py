"""A judge meets the panel: both on the items of one cell, as arrays.

The reliability table: what panel score stands behind each judge score; its plot is the calibration curve.

The human ceiling: does the judge agree with the panel as well as a panel member does? (METHODS 3)

For each annotator j and item, the judge and j meet the same other raters of that item; both figures and their
difference come from the same (item, j) pairs, so that an easy item helps neither.

A judge in one annotator's place: how Verdict Confidence changes when it replaces a rater (S2, D.2.2).

Classes of agreement (S4): which scores are given where the panel agrees fully, partly or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import (
    CellEstimate,
    Estimate,
    Interval,
    Shape,
    approximate,
    jackknife_interval,
    n_points,
    tails_of,
    wilson_interval,
)
from analytics.stats.core.resampling import Units, effective_number, error_of_mean, left_out_error, number_of
from analytics.stats.core.scales import Scale, snapped, spelled
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, cells
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Scores of one judge and of a panel on N items, NaN where missing.

    ``judge`` (N,): its first repeat, fractions kept, values beyond the scale left out and counted in
    ``n_out_of_range``. ``humans`` (N, J): one column per name in ``annotators``. ``cluster`` (N,): what is resampled.
    ``probability`` (N,): with which the item was drawn for people, NaN where none or more than one is given; None where
    the file gives none at all. ``labels`` (N,): reference labels settled by a rule that sees more than the annotators'
    scores of the item (adjudication, Dawid-Skene, ties); None: the scores settle it. Text points stand as their place
    on the scale.
    """

    judge: Floats
    humans: Floats
    cluster: Codes
    annotators: tuple[str, ...]
    scale: Scale
    rows: pd.DataFrame
    n_out_of_range: int = 0
    probability: Floats | None = None
    labels: Floats | None = None

    @property
    def n_human(self) -> Codes:
        """(N,) how many annotators scored each item."""
        return np.asarray((~np.isnan(self.humans)).sum(axis=1), dtype=np.intp)


def meet(cell: Cell, judge: str, *, raters: Sequence[str] | None = None) -> Meeting:
    """The judge and the annotators (or those of ``raters``) on every item of the cell that either scored."""
    import pandas as pd

    frame = cell.frame[(cell.frame["repeat"] == cell.frame["first_repeat"]).to_numpy()]
    is_judge = (frame["rater"] == judge).to_numpy()
    is_human = frame["rater_kind"].isin(HUMAN_KINDS).to_numpy() & ~is_judge
    if raters is not None:
        is_human &= frame["rater"].isin(list(raters)).to_numpy()
    is_here = is_judge | is_human
    frame, is_judge, is_human = frame if is_here.all() else frame[is_here], is_judge[is_here], is_human[is_here]
    criterion, names_of_criteria = pd.factorize(frame["criterion"])
    item, _ = pd.factorize(frame["item_key"].to_numpy() * max(len(names_of_criteria), 1) + criterion)
    n = int(item.max()) + 1 if item.size else 0
    first = np.zeros(n, dtype=np.intp)
    first[item[::-1]] = np.arange(len(item))[::-1]
    score = numbers(frame, cell.scale)
    judge_score = np.full(n, np.nan)
    judge_score[item[is_judge]] = score[is_judge]
    rater, names = pd.factorize(frame["rater"].to_numpy()[is_human], sort=True)
    humans = np.full((n, len(names)), np.nan)
    humans[item[is_human], rater] = score[is_human]
    cluster, _ = pd.factorize(frame["cluster"].to_numpy()[first])
    beyond = int((frame["out_of_range"].to_numpy() & is_judge).sum())
    rows = frame.iloc[first].set_axis(range(n))
    probability = _probability(frame, item, is_human)
    return Meeting(judge_score, humans, cluster, tuple(map(str, names)), cell.scale, rows, beyond, probability)


def _probability(frame: pd.DataFrame, item: Codes, is_human: NDArray[np.bool_]) -> Floats | None:
    """(N,) of each item from all of its rows: people's, or, where they say nothing, the judge's."""
    import pandas as pd

    if "inclusion_prob" not in frame:
        return None
    stated = pd.to_numeric(frame["inclusion_prob"], errors="coerce").to_numpy(dtype=np.float64)
    has_value = ~np.isnan(stated)
    if not has_value.any():
        return None
    n = int(item.max()) + 1
    by_people = np.bincount(item[has_value & is_human], minlength=n) > 0
    counts = has_value & (is_human | ~by_people[item])
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, item[counts], stated[counts])
    np.maximum.at(high, item[counts], stated[counts])
    return np.where(low == high, low, np.nan)


def cell_key(cell: Cell) -> dict[str, str | None]:
    """The cell's key as estimates carry it: a criterion without a name is None."""
    return {column: value or None for column, value in cell.key.items()}


def numbers(frame: pd.DataFrame, scale: Scale) -> Floats:
    """Each row's score as a number on the scale, NaN when missing, not applicable or out of range."""
    score = frame["score"].to_numpy() if scale.is_numeric else frame["code"].to_numpy().astype(np.float64)
    is_number = ~frame["out_of_range"].to_numpy() & ~frame["missing"].to_numpy() & frame["applicable"].to_numpy()
    return np.where(is_number, score, np.nan)


# --- the commonest score of an item -----------------------------------------------------------------------------------
def modes(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Mode of each item's scores (N, R), NaN where missing: (N,) scores, NaN where tied or not rated, and (N,) ties.

    Any level; scales of any length, for no table of items by points is made. Source: METHODS 2.
    """
    in_order = np.sort(scores, axis=1)
    length = run_lengths(in_order)
    top = length.max(axis=1, initial=0)
    tied = (length == top[:, None]).sum(axis=1) > 1
    at = length.argmax(axis=1)[:, None] if scores.shape[1] else np.zeros((len(scores), 0), dtype=np.intp)
    value = np.take_along_axis(in_order, at, axis=1).sum(axis=1)
    return np.where((top > 0) & ~tied, value, np.nan), tied & (top > 0)


def run_lengths(in_order: Floats) -> NDArray[np.intp]:
    """(N, R) at the last of each run of equal scores in sorted rows (N, R) the run's length; 0 elsewhere and at NaN.

    Any level. Source: METHODS 2.
    """
    place, length = np.zeros(len(in_order), dtype=np.intp), np.zeros(in_order.shape, dtype=np.intp)
    for r in range(in_order.shape[1]):
        has_score = ~np.isnan(in_order[:, r])
        goes_on = has_score & (in_order[:, r] == in_order[:, r - 1]) if r else np.zeros(len(in_order), dtype=bool)
        place = np.where(goes_on, place + 1, has_score.astype(np.intp))
        length[:, r] = place
        if r:
            length[goes_on, r - 1] = 0
    return length


# --- the reliability table -------------------------------------------------------------------------------------------
MOST_BINS = 10
FEW_UNITS = 5
"""Below so many independent items an interval says more about the scale than about the scores: approximate."""


def reliability_table(meeting: Meeting, *, confidence: float = 0.95) -> list[Estimate]:
    """E[panel mean | judge score = s], one estimate per judge score; statistic ``panel_given_judge``, variant s.

    A judge with more than ten distinct scores is cut into ten bins of about equal size, named by their ends.
    Intervals are cluster-robust: Wilson's between the ends of the scale, with t; plain t where nothing bounds the
    scores.
    """
    both = ~np.isnan(meeting.judge) & (meeting.n_human > 0)
    judge, cluster = meeting.judge[both], meeting.cluster[both]
    panel = np.nanmean(meeting.humans[both], axis=1) if both.any() else np.empty(0)
    return [
        _row(panel[at], cluster[at], meeting.scale, confidence).with_(
            variant=name,
            level=meeting.scale.level,
            n_raters=len(meeting.annotators),
            n_ratings=int(meeting.n_human[both][at].sum()),
        )
        for name, at in _bins(judge)
    ]


def _row(panel: Floats, cluster: Codes, scale: Scale, confidence: float) -> Estimate:
    """Mean of the panel's scores behind one judge score."""
    mean = classical_mean(panel, cluster, confidence=confidence).with_(statistic="panel_given_judge")
    if mean.value is None or mean.se is None or not _is_bounded(scale):
        return mean
    sizes = np.unique(cluster, return_counts=True)[1]
    units = len(sizes)
    df = max(1.0, effective_number(sizes) - 1)
    interval = wilson_interval(
        mean.value, mean.se, units, ends=(float(scale.values[0]), float(scale.values[-1])), df=df,
        method="cluster-robust Wilson t", confidence=confidence,
    )  # fmt: skip
    if units < FEW_UNITS:
        interval = replace(interval, method=interval.method and approximate(interval.method))
    return mean.with_(**interval.as_changes())


def _is_bounded(scale: Scale) -> bool:
    """Whether the points are all there is: an interval scale nobody declared may go on beyond them."""
    return scale.q > 1 and (scale.declared or scale.level in ("nominal", "ordinal"))


def _bins(judge: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    scores = np.unique(judge)
    if len(scores) <= MOST_BINS:
        return [(spelled(float(score)), judge == score) for score in scores]
    edges = np.unique(np.quantile(judge, np.linspace(0, 1, MOST_BINS + 1)))
    place = np.clip(np.searchsorted(edges, judge, side="right") - 1, 0, len(edges) - 2)
    return [(f"{low:.4g} to {high:.4g}", place == k) for k, (low, high) in enumerate(pairwise(edges))]


# --- the human ceiling -----------------------------------------------------------------------------------------------
CEILING_STATISTICS = ("ceiling_accuracy", "ceiling_mae", "ceiling_pearson")
SIDES = ("judge", "human", "difference")
_FREE: Shape = "free"
_FLAT = 1e-14
"""Variance, in units of the mean square, below which scores count as constant: what rounding leaves."""
_FLAT_SCORES = "the scores of the judge, of the annotator or of the others do not vary"
_NO_PANEL = "no judged item has two annotators"


def ceiling_estimates(
    meeting: Meeting, *, bootstrap: int = 2000, confidence: float = 0.95, seed: int = 0
) -> list[Estimate]:
    """``ceiling_accuracy``, and on ordered scales ``ceiling_mae`` and ``ceiling_pearson``; variants in ``SIDES``.

    accuracy: mean share of the other raters with the same label. mae: mean distance from their mean. pearson:
    correlation with their mean over all (item, j) pairs. difference = judge - human.
    """
    item, moments = _moments(meeting)
    figures = {"ceiling_accuracy": _accuracy}
    if meeting.scale.has_order:
        figures |= {"ceiling_mae": _mae, "ceiling_pearson": _pearson}
    clusters, place = np.unique(meeting.cluster[item], return_inverse=True)
    sums = np.stack([np.bincount(place, weights=column, minlength=len(clusters)) for column in moments], axis=1)
    units = Units(np.ones(len(clusters), dtype=np.intp), sums[:, :1])
    estimates = []
    for statistic, figure in figures.items():
        totals = sums.sum(axis=0, keepdims=True)
        both, without = figure(totals)[:, 0], figure(totals - sums)
        intervals = _intervals(statistic, both, without, units, meeting, confidence) if bootstrap else [Interval()] * 3
        three = _three(statistic, both, intervals, meeting, len(np.unique(item)), len(clusters))
        if statistic == "ceiling_mae":
            three = [cut_distance(e, meeting.scale, signed=e.variant == "difference") for e in three]
        estimates += three
    return estimates


def cut_distance(estimate: Estimate, scale: Scale, *, signed: bool = False) -> Estimate:
    """The interval of a distance in points, cut at how far two points of a declared scale can lie apart."""
    if not scale.declared or not scale.q:
        return estimate
    width = float(scale.values[-1] - scale.values[0])
    return estimate.cut(-width if signed else 0.0, width)


def _intervals(
    statistic: str, both: Floats, without: Floats, units: Units, meeting: Meeting, confidence: float
) -> list[Interval]:
    """Of judge, human and difference: their two figures (2,) and those with each cluster left out (2, C)."""
    values = np.array([*both, both[0] - both[1]])
    errors, dfs = left_out_error(values, np.vstack([without, without[0] - without[1]]), units)
    shapes: dict[str, Shape] = {
        "ceiling_accuracy": "share",
        "ceiling_mae": "positive",
        "ceiling_pearson": "coefficient",
    }
    has_score = ~np.isnan(meeting.humans)
    scores, judged = meeting.humans[has_score], _judged(meeting)
    doubt = (
        tails_of(n_points(scores), len(judged), (scores,)) or tails_of(n_points(judged), len(judged), (judged,))
        if statistic == "ceiling_pearson"
        else None
    )
    unit = float(np.abs(scores).max(initial=0.0)) if statistic == "ceiling_mae" else 1.0
    return [
        jackknife_interval(
            float(value), float(se), units.df, shape, tail_df=float(df), n=float(units.n), confidence=confidence,
            doubt=doubt, unit=unit,
        )
        for value, se, df, shape in zip(values, errors, dfs, (shapes[statistic], shapes[statistic], _FREE), strict=True)
    ]  # fmt: skip


def _judged(meeting: Meeting) -> Floats:
    return meeting.judge[~np.isnan(meeting.judge)]


def _moments(meeting: Meeting) -> tuple[Codes, Floats]:
    """Items (M,) of all (item, j) pairs, and per pair (13, M) what the figures are sums of."""
    known = ~np.isnan(meeting.humans)
    item, j = np.nonzero(known & ~np.isnan(meeting.judge)[:, None] & (known.sum(axis=1) > 1)[:, None])
    human, judge = meeting.humans[item, j], meeting.judge[item]
    rest = known.sum(axis=1)[item] - 1
    others = (np.nansum(meeting.humans, axis=1)[item] - human) / rest
    label = meeting.scale.values[snapped(judge, meeting.scale)] if len(judge) else judge
    with_human = (meeting.humans[item] == human[:, None]).sum(axis=1) - 1
    with_judge = (meeting.humans[item] == label[:, None]).sum(axis=1) - (human == label)
    errors = (abs(judge - others), abs(human - others))
    f, h, o = (_centred(x) for x in (judge, human, others))
    products = (f, h, o, f * f, h * h, o * o, f * o, h * o)
    return item, np.stack([np.ones(len(item)), with_judge / rest, with_human / rest, *errors, *products])


def _centred(x: Floats) -> Floats:
    """Scores from the middle one in units of their range: sums of squares then lose no digits."""
    return np.asarray((x - np.median(x)) / (float(np.ptp(x)) or 1.0)) if len(x) else x


def _accuracy(sums: Floats) -> Floats:
    return _over(sums[:, 1:3], sums[:, :1]).T


def _mae(sums: Floats) -> Floats:
    return _over(sums[:, 3:5], sums[:, :1]).T


def _pearson(sums: Floats) -> Floats:
    f, h, o, ff, hh, oo, fo, ho = _over(sums[:, 5:], sums[:, :1]).T
    pairs = ((fo - f * o, ff - f**2, ff), (ho - h * o, hh - h**2, hh))
    spread = oo - o**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r = [np.where((s > _FLAT * ss) & (spread > _FLAT * oo), c / np.sqrt(s * spread), np.nan) for c, s, ss in pairs]
    return np.stack(r)


def _over(sums: Floats, n: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / n)


def _three(
    statistic: str, both: Floats, intervals: Sequence[Interval], meeting: Meeting, n_items: int, n_clusters: int
) -> list[Estimate]:
    """The judge, the human and their difference."""
    values = (both[0], both[1], both[0] - both[1])
    kept = ~np.isnan(meeting.judge) & (meeting.n_human > 1)
    estimates = []
    for side, value, interval in zip(SIDES, values, intervals, strict=True):
        base = Estimate(
            statistic=statistic, variant=side, level=meeting.scale.level, n_items=n_items, value=None,
            n_clusters=n_clusters, n_ratings=int(meeting.n_human[kept].sum()),
            n_raters=len(meeting.annotators), reason=_FLAT_SCORES if n_items else _NO_PANEL,
        )  # fmt: skip
        if not np.isnan(value):
            base = base.with_(value=float(value), reason=None).with_(**interval.as_changes())
        estimates.append(base)
    return estimates


# --- a judge in one annotator's place --------------------------------------------------------------------------------
PAPER_TRIALS = 100
_PAPER_NOTE = "S2's own procedure; an exact expectation needs no trials"


def substitution_estimates(meeting: Meeting, *, confidence: float = 0.95, seed: int = 0) -> list[Estimate]:
    """``verdict_confidence`` of the panel on the items the judge scored, and with the judge in one rater's place.

    Variants: ``observed`` (the panel alone), ``substituted`` (expectation over the rater replaced),
    ``paper_compat`` (mean of 100 random replacements). Items with two annotators or more; the judge's fractions are
    rounded half up. Undefined without such an item. Level: any. Source: METHODS 1 (S2, D.2.2).
    """
    kept = ~np.isnan(meeting.judge) & (meeting.n_human >= 2)
    base = Estimate(
        statistic="verdict_confidence", level=meeting.scale.level, value=None, n_items=int(kept.sum()),
        n_raters=len(meeting.annotators), n_ratings=int(meeting.n_human[kept].sum()),
        n_clusters=number_of(meeting.cluster[kept]),
        reason="no judged item has two annotators",
    )  # fmt: skip
    if meeting.scale.is_continuous:
        kept, base = (
            np.zeros(0, dtype=bool),
            base.with_(reason=meeting.scale.why_continuous),
        )
    if not kept.any():
        return [base.with_(variant=variant) for variant in ("observed", "substituted", "paper_compat")]
    scores, judge = meeting.humans[kept], meeting.scale.values[snapped(meeting.judge[kept], meeting.scale)]
    after, before = replaced(np.sort(scores, axis=1), judge)
    values = np.column_stack([before, np.nanmean(after, axis=1)])
    estimates = [
        base.with_(variant=variant, value=float(x.mean()), reason=None).with_(
            **interval_of_shares(x, meeting.cluster[kept], confidence).as_changes()
        )
        for variant, x in zip(("observed", "substituted"), values.T, strict=True)
    ]
    trials = substituted_by_trials(scores, judge, rng=np.random.default_rng(seed))
    spread = f"{len(trials)} random trials, sd {trials.std(ddof=1):.4f}"
    printed = base.with_(variant="paper_compat", value=float(trials.mean()), reason=None, seed=seed, note=_PAPER_NOTE)
    return [*estimates, printed.with_(interval_reason=spread)]


def interval_of_shares(x: Floats, cluster: NDArray[np.intp], confidence: float) -> Interval:
    """Of the mean of shares (N,): Wilson's with t, from clusters left out one by one."""
    se, df = error_of_mean(x, cluster)
    n = float(len(np.unique(cluster)))
    return jackknife_interval(float(x.mean()), se, df, "share", n=n, confidence=confidence)


def replaced(scores: Floats, judge: Floats) -> tuple[Floats, Floats]:
    """(N, R) largest share of an item's labels after the judge's (N,) replaces the r-th, scores (N, R) sorted by row.

    NaN where there is no score (they stand last); and (N,) the share before. The r-th leaves one label less of its own
    point, the judge adds one to its own. Any level, no table of items by points. Source: METHODS 1 (S2, D.2.2).
    """
    length = run_lengths(scores)
    n = (~np.isnan(scores)).sum(axis=1)
    own = np.zeros(len(scores))
    others, same = length.astype(np.float64), np.zeros(scores.shape)
    later = np.zeros(len(scores))
    for r in range(scores.shape[1] - 1, -1, -1):
        later = np.where(length[:, r] > 0, length[:, r], later)
        same[:, r] = later
        is_judges = (scores[:, r] == judge) & (length[:, r] > 0)
        own += np.where(is_judges, length[:, r], 0)
        others[is_judges, r] = 0
    top = others.max(axis=1, initial=0)
    is_only_top = ((others == top[:, None]).sum(axis=1) == 1)[:, None]
    leaves_own = scores == judge[:, None]
    loses_top = is_only_top & ~leaves_own & (same == top[:, None])
    most = np.maximum(own[:, None] + 1 - leaves_own, top[:, None] - loses_top)
    with np.errstate(invalid="ignore", divide="ignore"):
        before = length.max(axis=1, initial=0) / n
        return np.where(np.isnan(scores), np.nan, most / n[:, None]), before


def substituted(scores: Floats, judge: Floats) -> Floats:
    """(N,) expected confidence of each item when the judge's label (N,) replaces a random rater's.

    Scores (N, R), NaN where missing, one or more an item. The expectation over n_i raters in closed form:
    sum_k (n_ik / n_i) max_l(n_il - [l = k] + [l = j]) / n_i. Source: METHODS 1 (S2, D.2.2).
    """
    return np.asarray(np.nanmean(replaced(np.sort(scores, axis=1), judge)[0], axis=1))


def substituted_by_trials(
    scores: Floats, judge: Floats, *, rng: np.random.Generator, trials: int = PAPER_TRIALS
) -> Floats:
    """(trials,) mean confidence when in each trial one random rater of every item is replaced: S2's own procedure.

    Scores (N, R), NaN where missing. Its mean over many trials is the mean of ``substituted``; 100 trials leave a Monte
    Carlo error of their own. Source: METHODS 1 (S2, D.2.2).
    """
    in_order = np.sort(scores, axis=1)
    after, _ = replaced(in_order, judge)
    n, rows = (~np.isnan(in_order)).sum(axis=1), np.arange(len(in_order))
    return np.array([after[rows, rng.integers(0, n)].mean() for _ in range(trials)])


# --- classes of agreement --------------------------------------------------------------------------------------------
CLASS_STATISTICS = ("class_share", "score_share")
CLASSES = ("full", "partial", "none")
"""Of items with two raters or more: all gave one point; some did; no two did. With three raters 3-0, 2-1, 1-1-1."""


def agreement_class(counts: NDArray[np.int64]) -> NDArray[np.str_]:
    """(N,) class of each row of counts n_ik (N, q): full, partial, none, or "" with fewer than two ratings.

    Any level. Source: METHODS 1 (S4, agreement classes).
    """
    n, top = counts.sum(axis=1), counts.max(axis=1, initial=0)
    names = np.where(top == n, "full", np.where(top == 1, "none", "partial"))
    return np.where(n >= 2, names, "")


def agreement_class_report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell and class: ``class_share`` of the items; ``score_share`` of each point among annotators and each judge.

    ``variant`` is the point; ``judge`` names the judge, None for the panel; the cell gains ``agreement_class``. A
    judge's fractions count for the nearest point, half up. Source: METHODS 1 (S4, 4.2).
    """
    return [row for cell in cells(table, by=by) for row in of_cell(cell)]


MOST_SHOWN = 11
"""Points of the longest scale whose shares are shown one by one."""


def score_share_report(table: RatingsTable, *, by: Sequence[str] = ("language", "criterion")) -> list[CellEstimate]:
    """Per cell: ``score_share`` of each point among the annotators' scores and each judge's first answers.

    ``variant`` is the point; ``judge`` names the judge, None for the panel. Scales of MOST_SHOWN points at most.
    Source: METHODS 1 (S4).
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by):
        if cell.scale.q > MOST_SHOWN:
            continue
        scored = _Scored.of(cell)
        is_judge = scored.rater_kind == "judge"
        names = [name for place, name in enumerate(scored.raters) if (is_judge & (scored.rater == place)).any()]
        given = [(None, scored.is_human), *((name, is_judge & scored.has(name)) for name in sorted(names))]
        for judge, keep in given:
            if keep.any():
                items = len(np.unique(scored.item_key[keep]))
                report += _score_shares(cell, cell_key(cell), scored, keep, judge, items)
    return report


def of_cell(
    cell: Cell, *, judges: Sequence[str] | None = None, raters: Sequence[str] | None = None
) -> list[CellEstimate]:
    """The rows of one cell: ``judges`` or all of them, beside the annotators or those of ``raters``."""
    scored = _Scored.of(cell)
    if judges is None:
        places = np.unique(scored.rater[np.isin(scored.rater_kind, ("judge", "jury"))])
        judges = sorted(scored.raters[place] for place in places)
    human = scored.is_human & ~scored.has(*judges)
    if raters is not None:
        human &= scored.has(*raters)
    of_row, sizes = _classes(scored, human, cell.scale.q)
    shared, n_raters = len(np.unique(scored.cluster[of_row != ""])), len(np.unique(scored.rater[human]))
    report: list[CellEstimate] = []
    about = {"level": cell.scale.level, "n_clusters": shared, "n_raters": n_raters}
    for name in CLASSES:
        key = {**cell_key(cell), "agreement_class": name}
        share = _share("class_share", None, sizes[name], sum(sizes.values()), sum(sizes.values()))
        report.append(CellEstimate(estimate=share.with_(**about), cell=key))
        inside = of_row == name
        report += _score_shares(cell, key, scored, inside & human, None, sizes[name])
        for judge in judges:
            report += _score_shares(cell, key, scored, inside & scored.has(judge), judge, sizes[name])
    return report


@dataclass(frozen=True, slots=True)
class _Scored:
    """First answers on the scale, all (M,): ``item`` is of one criterion, ``rater`` a place in ``raters``."""

    code: Codes
    item: Codes
    item_key: Codes
    rater: Codes
    cluster: Codes
    rater_kind: NDArray[Any]
    raters: tuple[str, ...]

    @classmethod
    def of(cls, cell: Cell) -> _Scored:
        import pandas as pd

        frame = cell.frame
        is_first = (frame["repeat"] == frame["first_repeat"]).to_numpy()
        rows = frame[is_first & (frame["code"] >= 0).to_numpy()]
        criterion, criteria = pd.factorize(rows["criterion"])
        rater, raters = pd.factorize(rows["rater"])
        code, key, kind = (rows[name].to_numpy() for name in ("code", "item_key", "rater_kind"))
        item, cluster = pd.factorize(key * max(len(criteria), 1) + criterion)[0], pd.factorize(rows["cluster"])[0]
        return cls(code, item, key, rater, cluster, kind, tuple(map(str, raters)))

    @property
    def is_human(self) -> NDArray[np.bool_]:
        return np.isin(self.rater_kind, HUMAN_KINDS)

    def has(self, *names: str) -> NDArray[np.bool_]:
        """(M,) whether one of these raters gave the score."""
        return np.array([*(name in names for name in self.raters), False])[self.rater]


def _classes(scored: _Scored, human: NDArray[np.bool_], q: int) -> tuple[NDArray[np.str_], dict[str, int]]:
    """(M,) class of each row's item, "" where it has fewer than two scores; and how many items each class has."""
    n = int(scored.item.max()) + 1 if scored.item.size else 0
    flat = scored.item[human] * q + scored.code[human]
    of_item = agreement_class(np.bincount(flat, minlength=n * q).reshape(n, q))
    return of_item[scored.item], {name: int((of_item == name).sum()) for name in CLASSES}


def _score_shares(
    cell: Cell, key: dict[str, str | None], scored: _Scored, keep: NDArray[np.bool_], judge: str | None, n_items: int
) -> Iterator[CellEstimate]:
    counts = np.bincount(scored.code[keep], minlength=cell.scale.q)
    total, raters, clusters = (int(counts.sum()), *(len(np.unique(x[keep])) for x in (scored.rater, scored.cluster)))
    about = {"level": cell.scale.level, "n_raters": raters, "n_ratings": total, "n_clusters": clusters}
    for code, count in enumerate(counts):
        share = _share("score_share", cell.scale.label(code), int(count), total, n_items)
        yield CellEstimate(estimate=share.with_(**about), cell=key, judge=judge)


def _share(statistic: str, variant: str | None, count: int, total: int, n_items: int) -> Estimate:
    value = count / total if total else None
    reason = None if total else "nothing was rated here"
    note = "a share of what was seen; no interval"
    return Estimate(
        statistic=statistic, variant=variant, value=value, reason=reason, n_items=n_items, interval_reason=note
    )  # fmt: skip
