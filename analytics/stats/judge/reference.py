"""Reference labels: the panel's settled score of each item, by a declared rule; every exclusion is counted.

METHODS 2. Only annotators enter; judges and juries never do. Adjudicators' scores are used where the rule says so. Ties
are never broken by sort order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import number_of
from analytics.stats.core.tables import TRUE_WORDS, Cell, Coded, RatingsTable, cells, coded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

Rule = Literal["mode", "median", "mean", "minimum", "dawid_skene", "adjudicated", "adjudicated_first"]
Ties = Literal["exclude", "lower", "upper", "median", "adjudicated"]
RULES: tuple[Rule, ...] = get_args(Rule)
TIES: tuple[Ties, ...] = get_args(Ties)
MOST_LABELS = 101
"""Longer scales get no share of each label."""


@dataclass(frozen=True, slots=True)
class ReferenceLabels:
    """``frame``: item_key, item, language, generator, criterion, cluster, score, label, n_ratings, share, tied.

    One row per item that has a reference; ``score`` is a number (the rank of a text point), ``label`` the point as text
    ("" when a mean or median lies between points), ``share`` of its raters that gave it. ``excluded`` counts items
    without a reference by reason.
    """

    frame: pd.DataFrame
    rule: Rule
    ties: Ties
    excluded: dict[str, int]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """How many ratings each rule removed, in order, and how many are left."""

    broken_rationale: int
    critical: int
    single: int
    left: int


def reference_labels(table: RatingsTable, *, rule: Rule = "mode", ties: Ties = "exclude") -> ReferenceLabels:
    """The settled score of every item on every criterion.

    ``mode``: the point most annotators gave; ``ties`` says what happens when several did: ``exclude``, the ``lower`` or
    ``upper`` of them, the ``median`` of the item's scores, or what an adjudicator gave (``adjudicated``; excluded where
    nobody did). ``median``: middle score, the mean of the two middle ones when they differ. ``mean``: of numbers.
    ``minimum``: the lowest score.
    ``dawid_skene``: the most probable point under a fit per criterion and language. ``adjudicated``: the adjudicator's
    score; items without one are excluded. ``adjudicated_first``: the adjudicator's score where there is one, else the
    mode under ``ties``. An item that an adjudicator found not applicable has no reference under either.
    """
    import pandas as pd

    parts, excluded = [], dict[str, int]()
    chosen = table.only(rater_kind=("annotator", "adjudicator"))
    for cell in cells(chosen, by=("language", "criterion")):
        part, reasons = _of_cell(cell, rule, ties)
        parts.append(part)
        for reason in reasons:
            excluded[reason] = excluded.get(reason, 0) + 1
    frame = pd.concat(parts, ignore_index=True) if parts else chosen.frame.iloc[:0]
    return ReferenceLabels(frame, rule, ties, excluded)


STATISTICS = (
    "reference_share",
    "reference_excluded",
    "label_share",
    "annotator_accuracy",
    "confusion",
    "reference_label",
    "few_shot_example",
)
ON_REQUEST = ("confusion", "reference_label")


def reference_report(
    table: RatingsTable,
    *,
    rule: Rule = "mode",
    ties: Ties = "exclude",
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
    pool: bool = False,
    examples: int = 0,
    seed: int = 0,
) -> list[CellEstimate]:
    """What a rule makes of every cell: ``reference_share`` of the items that get a label, the others by reason
    (``reference_excluded``), ``label_share`` of each label.

    With ``dawid_skene`` also ``annotator_accuracy`` (probability of the true point, averaged over the points) and on
    request ``confusion`` ("true point ~ given point"); on request ``reference_label`` of each item. ``examples``: so
    many items of each label (``few_shot_example``), drawn with ``seed``, for the prompt of a judge.
    """
    chosen = table.only(rater_kind=("annotator", "adjudicator"))
    if raters is not None:
        adjudicators = chosen.frame["rater"][(chosen.frame["rater_kind"] == "adjudicator").to_numpy()].unique()
        chosen = chosen.only(rater=[*raters, *adjudicators])
    report = []
    for cell in cells(chosen, by=by, pool=pool):
        key = {column: value or None for column, value in cell.key.items()}
        for row, annotator in _reported(cell, rule, ties, statistics or (), np.random.default_rng(seed), examples):
            report.append(
                CellEstimate(estimate=row.with_(level=cell.scale.level), cell=key, annotator=annotator, reference=rule)
            )
    return report


def reference_labels_report(
    table: RatingsTable, *, reference: Rule | None, ties: Ties, **how: Any
) -> list[CellEstimate]:
    """``reference_report`` of a rule, by default the mode, and the mean where all criteria are on interval scales."""
    levels = {table.scales[str(key)].level for key in table.frame["criterion"].unique()}
    return reference_report(table, rule=reference or ("mean" if levels == {"interval"} else "mode"), ties=ties, **how)


def labels_of(cell: Cell, rows: pd.DataFrame, *, rule: Rule, ties: Ties, raters: Sequence[str] | None) -> Floats:
    """(N,) the label that a rule gives each of ``rows`` (one an item and criterion), NaN where it gives none.

    Any level. Source: METHODS 2.
    """
    frame = cell.frame
    if raters is not None:
        kept = frame["rater"].isin(list(raters)) | (frame["rater_kind"] == "adjudicator")
        frame = frame[kept.to_numpy()]
    labels: Floats = np.full(len(rows), np.nan)
    for criterion in rows["criterion"].unique():
        of_criterion = Cell(cell.key, frame[(frame["criterion"] == criterion).to_numpy()], cell.scale)
        settled = _of_cell(of_criterion, rule, ties)[0]
        score = dict(zip(settled["item_key"], settled["score"], strict=True))
        here = (rows["criterion"] == criterion).to_numpy()
        labels[here] = [score.get(key, np.nan) for key in rows["item_key"][here]]
    return labels


def _reported(
    cell: Cell, rule: Rule, ties: Ties, names: Sequence[str], rng: np.random.Generator, examples: int
) -> Iterator[tuple[Estimate, str | None]]:
    from analytics.stats.judge.audits import few_shot_examples, share

    labels, reasons = _of_cell(cell, rule, ties)
    people = cell.frame[(cell.frame["rater_kind"] == "annotator").to_numpy()]
    n, clusters = len(labels), int(cell.frame["cluster"].nunique())
    of_labels = int(labels["cluster"].nunique())
    counts: dict[str, Any] = {"n_raters": int(people["rater"].nunique()), "n_ratings": int((people["code"] >= 0).sum())}
    tie_rule = f"{rule}, ties: {ties}" if rule in ("mode", "adjudicated_first") else rule
    yield share("reference_share", n, n + len(reasons), tie_rule, clusters=clusters).with_(**counts), None
    why = Message("a count of what was seen")
    for reason in sorted(set(reasons)):
        left = reasons.count(reason)
        yield Estimate(statistic="reference_excluded", variant=reason, value=float(left), interval_reason=why,
                       n_items=n + len(reasons), n_clusters=clusters, **counts), None  # fmt: skip
    for name in [*map(cell.scale.label, range(cell.scale.q)), ""] if cell.scale.q <= MOST_LABELS else ():
        count = int((labels["label"] == name).sum())
        if count or name:
            yield (
                share("label_share", count, n, name or Message("between points"), clusters=of_labels).with_(**counts),
                None,
            )
    if rule == "dawid_skene":
        yield from _annotators(Cell(cell.key, people, cell.scale), "confusion" in names)
    if examples:
        for place in few_shot_examples(labels["score"].to_numpy(dtype=np.float64), rng, per_class=examples):
            chosen = labels.iloc[int(place)]
            yield Estimate(statistic="few_shot_example", variant=str(chosen["item"]), value=float(chosen["score"]),
                           n_items=1, n_clusters=1, n_ratings=int(chosen["n_ratings"]), n_raters=counts["n_raters"],
                           note=joined((Message("label %(label)s", label=chosen["label"]),
                                        Message("leave it out: it must not be judged"))),
                           interval_reason=Message("a label")), None  # fmt: skip
    if "reference_label" in names:
        raters = people[(people["code"] >= 0).to_numpy()].groupby("item_key")["rater"].nunique()
        for item, key, score, label, n_ratings in zip(
            *(labels[c] for c in ("item", "item_key", "score", "label", "n_ratings")), strict=True
        ):
            yield Estimate(statistic="reference_label", variant=item, value=float(score), n_items=1, n_clusters=1,
                           n_ratings=int(n_ratings), n_raters=int(raters.get(key, 1)),
                           note=Message("label %(label)s", label=label) if label else None,
                           interval_reason=Message("a label")), None  # fmt: skip


def _annotators(cell: Cell, with_confusion: bool) -> Iterator[tuple[Estimate, str | None]]:
    """The estimates of Dawid and Skene's model for each annotator."""
    scores = coded(cell)
    if not scores.code.size:
        return
    fitted = fit(scores)
    per_rater = np.bincount(scores.rater, minlength=len(scores.raters))
    note = None if fitted.converged else Message("the iterations did not come to rest")
    for r, name in enumerate(scores.raters):
        base = Estimate(statistic="annotator_accuracy", value=float(fitted.prior @ np.diag(fitted.confusion[r])),
                        method="Dawid-Skene EM", n_items=int(per_rater[r]), n_raters=1, n_ratings=int(per_rater[r]),
                        n_clusters=number_of(scores.cluster[scores.item[scores.rater == r]]), note=note,
                        interval_reason=Message("no interval: the model's own fit"))  # fmt: skip
        yield base, name
        for (j, k), p in np.ndenumerate(fitted.confusion[r]) if with_confusion else ():
            variant = f"{cell.scale.label(j)} ~ {cell.scale.label(k)}"
            yield base.with_(statistic="confusion", variant=variant, value=float(p)), name


def settled_labels(
    counts: NDArray[np.int64], x: Floats, ties: Ties, adjudicated: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mode of (N, q) counts on points x (q,): (N,) scores, NaN where there is none, and (N,) whether it was a tie."""
    if not len(x):
        return np.full(len(counts), np.nan), np.zeros(len(counts), dtype=bool)
    top = counts == counts.max(axis=1, keepdims=True)
    rated, tied = counts.sum(axis=1) > 0, top.sum(axis=1) > 1
    score = x[top.argmax(axis=1)]
    if ties == "upper":
        score = x[len(x) - 1 - top[:, ::-1].argmax(axis=1)]
    elif ties == "median":
        score = np.where(tied, medians(counts, x), score)
    elif ties != "lower":
        instead = np.nan if ties == "exclude" or adjudicated is None else adjudicated
        score = np.where(tied, instead, score)
    return np.where(rated, score, np.nan), tied & rated


def medians(counts: NDArray[np.int64], x: Floats) -> Floats:
    """(N,) median of the scores counted in (N, q) on points x (q,); the mean of the two middle ones; NaN for none."""
    n = counts.sum(axis=1)
    if not len(x):
        return np.full(len(n), np.nan)
    below = np.cumsum(counts, axis=1)
    low = (below > ((n - 1) // 2)[:, None]).argmax(axis=1)
    high = (below > (n // 2)[:, None]).argmax(axis=1)
    return np.where(n > 0, (x[low] + x[high]) / 2, np.nan)


def excluding(
    table: RatingsTable, *, broken_rationale: str | None = None, critical: str | None = None, at_least: int = 2
) -> tuple[RatingsTable, Exclusions]:
    """S2's exclusions in its order, each counted; read the result with and without them.

    ``broken_rationale`` and ``critical`` name boolean columns. First the ratings whose rationale breaks the rule go,
    then every rating of an (item, criterion) with a critical mark, then (item, criterion) pairs left with fewer than
    ``at_least`` ratings. Source: METHODS 2 (S2).
    """
    frame = table.frame
    broken = _flags(frame, broken_rationale)
    keep = ~broken
    marked = _any_of_pair(frame, _flags(frame, critical))
    hit = keep & marked
    keep &= ~marked
    pair = _pair(frame)
    sizes = np.bincount(pair[keep], minlength=int(pair.max()) + 1 if pair.size else 0)
    single = keep & (sizes[pair] < at_least)
    keep &= ~single
    counted = Exclusions(int(broken.sum()), int(hit.sum()), int(single.sum()), int(keep.sum()))
    return RatingsTable(frame[keep], table.scales, table.notes), counted


def _of_cell(cell: Cell, rule: Rule, ties: Ties) -> tuple[pd.DataFrame, list[str]]:
    kinds = cell.frame["rater_kind"]
    items = cell.frame.drop_duplicates("item_key")[
        ["item_key", "item", "language", "generator", "criterion", "cluster"]
    ]
    annotators = Cell(cell.key, cell.frame[(kinds == "annotator").to_numpy()], cell.scale)
    scores, order = _coded_by_item(annotators, items["item_key"])
    counts = np.zeros((len(items), cell.scale.q), dtype=np.int64)
    counts[order] = scores.counts()
    adjudicated, has_none = _adjudicated(cell, items["item_key"])
    value, tied = _by_rule(scores, order, counts, adjudicated, rule, ties)
    reasons = np.where(
        tied, "tied", np.where(counts.sum(axis=1) == 0, Message("not rated"), Message("no single label"))
    )
    if rule in ("adjudicated", "adjudicated_first"):
        value[has_none] = np.nan
        reasons = np.where(has_none, Message("adjudicated as not applicable"), reasons)
    if rule == "adjudicated":
        reasons = np.where(has_none, reasons, Message("not adjudicated"))
    return _labelled(items, cell, counts, value, tied), list(map(str, reasons[np.isnan(value)]))


def _coded_by_item(cell: Cell, keys: pd.Series[int]) -> tuple[Coded, NDArray[np.intp]]:
    """The annotators' scores and, for each of their items, its place among ``keys``."""
    import pandas as pd

    scores = coded(cell)
    rows = cell.frame[(cell.frame["code"] >= 0).to_numpy()]
    rows = rows[(rows["repeat"] == rows["first_repeat"]).to_numpy()]
    return scores, np.asarray(pd.Index(keys).get_indexer(pd.Index(np.unique(rows["item_key"]))), dtype=np.intp)


def _adjudicated(cell: Cell, keys: pd.Series[int]) -> tuple[Floats, NDArray[np.bool_]]:
    """(N,) the adjudicator's score of each item, NaN where there is none; of several the file's last. And (N,) whether
    that one says that the criterion is not applicable.
    """
    rows = cell.frame[(cell.frame["rater_kind"] == "adjudicator").to_numpy()].sort_values("row")
    rows = rows[((rows["code"] >= 0) | ~rows["applicable"].astype(bool)).to_numpy()]
    codes = rows["code"].to_numpy()
    scores = np.where(codes >= 0, cell.scale.values[codes] if cell.scale.q else np.nan, np.nan)
    by_item = dict(zip(rows["item_key"], scores, strict=True))
    found = np.array([by_item.get(key, np.nan) for key in keys], dtype=np.float64)
    return found, np.array([key in by_item for key in keys], dtype=bool) & np.isnan(found)


def _by_rule(
    scores: Coded, order: NDArray[np.intp], counts: NDArray[np.int64], adjudicated: Floats, rule: Rule, ties: Ties
) -> tuple[Floats, NDArray[np.bool_]]:
    x = scores.scale.values
    no_ties = np.zeros(len(counts), dtype=bool)
    if rule == "median":
        return medians(counts, x), no_ties
    if rule == "mean":
        with np.errstate(invalid="ignore"):
            return counts @ x / counts.sum(axis=1), no_ties
    if rule == "minimum":
        return np.where(counts.any(axis=1), x[(counts > 0).argmax(axis=1)] if len(x) else np.nan, np.nan), no_ties
    if rule == "dawid_skene":
        return _most_probable(scores, order, len(counts))
    value, tied = settled_labels(counts, x, ties, adjudicated)
    if rule == "adjudicated":
        return adjudicated.copy(), no_ties
    if rule == "adjudicated_first":
        decided = ~np.isnan(adjudicated)
        return np.where(decided, adjudicated, value), tied & ~decided
    return value, tied


def _most_probable(scores: Coded, order: NDArray[np.intp], n_items: int) -> tuple[Floats, NDArray[np.bool_]]:
    value, tied = np.full(n_items, np.nan), np.zeros(n_items, dtype=bool)
    if scores.code.size:
        code = fit(scores).code
        value[order] = np.where(code >= 0, scores.scale.values[code], np.nan)
        tied[order] = code < 0
    return value, tied


def _labelled(
    items: pd.DataFrame, cell: Cell, counts: NDArray[np.int64], value: Floats, tied: NDArray[np.bool_]
) -> pd.DataFrame:
    """The rows of the items that have a value."""
    known, x = ~np.isnan(value), cell.scale.values
    counts, value = counts[known], value[known]
    place = np.clip(np.searchsorted(x, value), 0, len(x) - 1)
    on_point = x[place] == value
    n = counts.sum(axis=1)
    labels = np.array([*map(cell.scale.label, range(cell.scale.q)), ""], dtype=object)
    return items[known].assign(
        score=value,
        label=np.where(on_point, labels[place], labels[-1]),
        n_ratings=n,
        share=np.where(on_point & (n > 0), counts[np.arange(len(n)), place] / np.maximum(n, 1), np.nan),
        tied=tied[known],
    )


def _flags(frame: pd.DataFrame, column: str | None) -> NDArray[np.bool_]:
    """A boolean column, also when it was read as text."""
    if column is None:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(frame[column].astype(str).str.lower().isin(TRUE_WORDS), dtype=bool)


def _pair(frame: pd.DataFrame) -> NDArray[np.intp]:
    """(rows,) number of each row's (item, criterion)."""
    return np.asarray(frame.groupby(["item_key", "criterion"], sort=False).ngroup(), dtype=np.intp)


def _any_of_pair(frame: pd.DataFrame, flag: NDArray[np.bool_]) -> NDArray[np.bool_]:
    pair = _pair(frame)
    return np.asarray(np.bincount(pair, weights=flag)[pair] > 0) if pair.size else flag


# Dawid-Skene: what the settled score probably is, and how each annotator confuses the points, from ratings alone.

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from analytics.stats.core.tables import Coded


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """``prior`` (q,), ``confusion`` (R, q, q): P(rater gives k | true j) as [rater, j, k], ``posterior`` (N, q).

    ``log_likelihood`` of the ratings after each of the iterations; ``converged`` says whether they came to rest.
    """

    prior: Floats
    confusion: Floats
    posterior: Floats
    log_likelihood: tuple[float, ...]
    converged: bool

    @property
    def code(self) -> NDArray[np.intp]:
        """(N,) the most probable point of each item; -1 where two are equally probable to 1e-9."""
        top = np.sort(self.posterior, axis=1)
        tied = (top[:, -1] - top[:, -2] < 1e-9) if top.shape[1] > 1 else np.zeros(len(top), dtype=bool)
        return np.where(tied, -1, self.posterior.argmax(axis=1))


def fit(cell: Coded, *, smoothing: float = 0.01, iterations: int = 200, tolerance: float = 1e-7) -> DawidSkene:
    """Fit one cell (one criterion and language) of annotators' ratings by EM; judges must not be among the raters.

    E: log T_ij = log p_j + sum_{r, k} n_irk log pi_rjk, normalised over j. M: p_j = mean_i T_ij, pi_rjk proportional to
    smoothing + sum_i T_ij n_irk (a Dirichlet prior that keeps an unseen confusion possible). Starts from the raters'
    votes; stops when the log-likelihood per rating gains less than ``tolerance``. Level: nominal. Source: Dawid & Skene
    1979 (doi 10.2307/2346806); smoothing: Kim & Ghahramani 2012 (PMLR 22:619-627).
    """
    votes = _votes(cell)
    by_rater = votes.T.tocsr()
    n_raters, q = len(cell.raters), cell.scale.q
    posterior = cell.counts() / np.maximum(cell.counts().sum(axis=1, keepdims=True), 1)
    likelihoods: list[float] = []
    converged = False
    for _ in range(iterations):
        prior, confusion = _maximised(by_rater, posterior, n_raters, smoothing)
        posterior, likelihood = _expected(votes, prior, confusion)
        likelihoods.append(likelihood)
        if len(likelihoods) > 1 and abs(likelihoods[-1] - likelihoods[-2]) < tolerance * cell.code.size:
            converged = True
            break
    return DawidSkene(
        prior, confusion.reshape(n_raters, q, q).transpose(0, 2, 1), posterior, tuple(likelihoods), converged
    )


def _votes(cell: Coded) -> csr_array:
    """(N, R q) sparse: 1 where rater r gave item i the point k, at column r q + k."""
    from scipy.sparse import csr_array

    q = cell.scale.q
    ones = np.ones(cell.code.size)
    shape = (cell.n_items, len(cell.raters) * q)
    return csr_array((ones, (cell.item, cell.rater * q + cell.code)), shape=shape)


def _maximised(by_rater: csr_array, posterior: Floats, n_raters: int, smoothing: float) -> tuple[Floats, Floats]:
    """Prior (q,) and P(k | j) as (R q, q) rows r q + k and columns j."""
    q = posterior.shape[1]
    counts = np.asarray(by_rater @ posterior).reshape(n_raters, q, q) + smoothing
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return posterior.mean(axis=0), shares.reshape(n_raters * q, q)


def _expected(votes: csr_array, prior: Floats, confusion: Floats) -> tuple[Floats, float]:
    """Posterior (N, q) and the log-likelihood of the ratings."""
    tiny = np.finfo(np.float64).tiny
    logs = np.asarray(votes @ np.log(np.maximum(confusion, tiny))) + np.log(np.maximum(prior, tiny))
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float((np.log(total) + top).sum())
