"""What a pilot says about the labels still needed (``panelbench stats plan``), and which items to label (METHODS 8).

How many labels, which raters, whose language: planning the human side. Items that a judge is likely to get wrong are
drawn more often. Each draw has a known probability above zero, so that the mean from those labels stays unbiased
(``ppi.active_mean``). Intervals of a sequence hold all at once, however often somebody looks at them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import rater_agreement
from analytics.stats.agreement.reliability import variance_components
from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import number_of
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA
from analytics.stats.judge import alt_test, association
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
from analytics.stats.judge.ppi import is_unequally_drawn

SHRINKAGE = 20.0
"""Labels that the error of one judge score is drawn towards that of all by."""
UNIFORM_SHARE = 0.3
"""The share of the probability that every item has alike: none is left out, and no weight becomes extreme."""
FEWEST_FOR_ERRORS = 20
"""Labels below which nothing is known of the judge's errors: all items then have one probability."""
# --- how many labels -------------------------------------------------------------------------------------------------

FLOOR = 30
_MOST_RATERS = 25


def labels_for_mean(sd: float, half_width: float, *, confidence: float = 0.95) -> int:
    """Human labels for a mean known to +- half_width: n = ceil((z sd / h)^2). Level: interval."""
    return ceil((_z(confidence) * sd / half_width) ** 2)


def labels_with_judge(sd: float, half_width: float, rho: float, *, confidence: float = 0.95) -> int:
    """The same with a judge that correlates rho with the labels and has scored everything: about n (1 - rho^2)."""
    return ceil((_z(confidence) * sd / half_width) ** 2 * (1 - rho**2))


def sd_by_clusters(labels: Floats, cluster: NDArray[Any]) -> float:
    """The sd of a label, from labels (n,) and their clusters (n,), for the error of a mean of items in clusters.

    s^2 = C / (C - 1) sum_c (sum of c's residuals)^2 / n: with one label a cluster the variance; of one cluster, too.
    Source: Liang & Zeger 1986, doi:10.1093/biomet/73.1.13.
    """
    _names, index = np.unique(cluster, return_inverse=True)
    n, clusters = len(labels), int(index.max(initial=-1)) + 1
    if clusters < 2:
        return float(labels.std(ddof=1)) if n > 1 else 0.0
    sums = np.bincount(index, weights=labels - labels.mean())
    return float((clusters / (clusters - 1) * (sums**2).sum() / n) ** 0.5)


def half_width_of_mean(sd: float, n: float, clusters: float, *, confidence: float = 0.95) -> float:
    """Half the interval of a mean of n labels in so many clusters: t with clusters - 1 degrees of freedom."""
    from scipy.special import stdtrit

    quantile = float(stdtrit(max(1.0, clusters - 1), (1 + confidence) / 2))
    return float(quantile * sd / n**0.5)


def labels_in_clusters(sd: float, half_width: float, clusters_per_label: float) -> int:
    """The fewest labels whose mean is known to +- half_width by `half_width_of_mean`."""
    n = max(1, labels_for_mean(sd, half_width))
    while half_width_of_mean(sd, n, n * clusters_per_label) > half_width:
        n += 1
    return n


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMean:
    """From what the error of a mean by PPI++ follows when n of the N items with a judge score are labelled.

    n Var = S_yy - 2 l S_yf + l^2 S_ff + n l^2 S_rest / (N - n) + 2 n l (X_y - l X_f), l = b (N - n) / N clipped to
    [0, 1], b = cov(y, f) / var f: the lambda of ``ppi.optimal_lambda``. S are variances by clusters as in
    ``sd_by_clusters``, S_rest that of the scores without labels (of all N where those have fewer than ``FEWEST_PAIRS``
    clusters): what the judge's own mean is not certain of. X are the covariances with the scores of unlabelled items in
    the same clusters. With n = N it is the labels' own error. By this lambda PPI++ can be less exact than the labels.
    """

    labels: int
    """n of the pilot."""
    items: int
    """N."""
    clusters_per_label: float
    slope: float
    yy: float
    yf: float
    ff: float
    rest: float
    shared_y: float
    shared_f: float

    @classmethod
    def of(
        cls, y: Floats, f: Floats, f_rest: Floats, cluster: NDArray[Any], cluster_rest: NDArray[Any]
    ) -> JudgedMean | None:
        """From labels and judge scores (n,), the scores of the other items (N - n,), and their clusters; None where
        labels or scores do not vary, and for labels of one cluster."""
        every, clusters = np.concatenate([f, f_rest]), number_of(cluster)
        if clusters < 2 or not y.std() or not f.std():
            return None
        n, rest = len(y), len(f_rest)
        _names, place = np.unique(np.concatenate([cluster, cluster_rest]), return_inverse=True)
        sums = [
            np.bincount(at, weights=x - x.mean() if len(x) else x, minlength=place.max() + 1)
            for at, x in ((place[:n], y), (place[:n], f), (place[n:], f_rest))
        ]
        own, shared = clusters / (clusters - 1) / n, 1 / (n * rest) if rest else 0.0
        has_others = number_of(cluster_rest) >= FEWEST_PAIRS
        return cls(
            labels=n,
            items=n + rest,
            clusters_per_label=clusters / n,
            slope=float(((y - y.mean()) * (f - f.mean())).mean() / every.var(ddof=1)),
            yy=float(sums[0] @ sums[0]) * own,
            yf=float(sums[0] @ sums[1]) * own,
            ff=float(sums[1] @ sums[1]) * own,
            rest=sd_by_clusters(*((f_rest, place[n:]) if has_others else (every, place))) ** 2,
            shared_y=float(sums[0] @ sums[2]) * shared,
            shared_f=float(sums[1] @ sums[2]) * shared,
        )

    def half_width(self, n: int) -> float | None:
        """Half the interval at 95% with n labels, as `half_width_of_mean`; None for more labels than items."""
        return float(self._half_widths(np.array([n]))[0]) if 0 < n <= self.items else None

    def labels_for(self, half_width: float) -> int | None:
        """The fewest labels with which, and with any more, the mean is known to +- half_width; None if not even
        with all N."""
        wider = np.flatnonzero(self._half_widths(np.arange(1, self.items + 1)) > half_width)
        fewest = int(wider[-1]) + 2 if len(wider) else 1
        return fewest if fewest <= self.items else None

    def _half_widths(self, n: NDArray[np.integer]) -> Floats:
        from scipy.special import stdtrit

        left = self.items - n
        lam = np.clip(self.slope * left / self.items, 0.0, 1.0)
        square = self.yy - 2 * lam * self.yf + lam**2 * self.ff
        square += n * lam**2 * self.rest / np.maximum(left, 1) + 2 * n * lam * (self.shared_y - lam * self.shared_f)
        df = np.maximum(1.0, n * self.clusters_per_label - 1)
        return np.asarray(stdtrit(df, 0.975) * np.sqrt(np.maximum(square, 0.0) / n), dtype=np.float64)


def items_by_pilot(n_pilot: int, pilot_half_width: float, half_width: float) -> int:
    """Items for alpha or kappa known to +- half_width, from a pilot's interval: widths fall as 1 / sqrt n."""
    return ceil(n_pilot * (pilot_half_width / half_width) ** 2)


def reliability_of(n_raters: int, item: float, rater: float, residual: float) -> float:
    """Reliability of the mean of n raters from variance components: item / (item + (rater + residual) / n).

    Source: Brennan 2001, Generalizability Theory, doi:10.1007/978-1-4757-3456-0.
    """
    noise = (rater + residual) / n_raters
    return item / (item + noise) if item + noise > 0 else 1.0


def raters_per_item(item: float, rater: float, residual: float, *, target: float = 0.8) -> int | None:
    """Fewest raters whose mean is as reliable as the target; None when 25 don't suffice."""
    enough = (n for n in range(1, _MOST_RATERS + 1) if reliability_of(n, item, rater, residual) >= target)
    return next(enough, None)


def allocate_labels(
    budget: float,
    sd: Mapping[str, float],
    price: Mapping[str, float],
    *,
    size: Mapping[str, float] | None = None,
    floor: int = FLOOR,
    minimax: bool = False,
) -> dict[str, int]:
    """Labels per language within a budget: Neyman (n ~ size sd / sqrt price) or minimax interval width (n ~ sd^2).

    Every language gets ``floor`` labels first. Raises ``ValueError`` when the budget doesn't pay for them. Source:
    Cochran 1977, Sampling Techniques, section 5.5.
    """
    cost = sum(floor * price[language] for language in sd)
    if cost > budget:
        raise ValueError(f"{floor} labels in every language cost {cost:g}, more than the budget of {budget:g}")
    share = {k: sd[k] ** 2 if minimax else (size[k] if size else 1.0) * sd[k] / price[k] ** 0.5 for k in sd}
    at_floor: set[str] = set()
    while True:
        free = [k for k in sd if k not in at_floor]
        left = budget - sum(floor * price[k] for k in at_floor)
        weight = sum(share[k] * price[k] for k in free)
        labels = {k: int(left * share[k] / weight) if weight > 0 else floor for k in free}
        short = {k for k in free if labels[k] < floor}
        if not short:
            return {k: labels.get(k, floor) for k in sd}
        at_floor |= short


def alt_test_power(
    judge: Floats,
    humans: Floats,
    n_items: int,
    *,
    rng: np.random.Generator,
    score: alt_test.Score,
    cluster: NDArray[np.integer] | None = None,
    epsilon: float = 0.15,
    min_items: int = 30,
    simulations: int = 200,
) -> float | None:
    """Share of simulated studies of n items, drawn from a pilot (M,), (M, J), in which the judge passes the test.

    Whole clusters (M,) are drawn, as many as make n items on average, and the test takes them for its witnesses.
    ``score`` and ``min_items`` are those of the test (``alt_test.measured``, ``alt_test.run``). None where no simulated
    study has an annotator with enough items: the test would say nothing, which is not a failure of the judge.
    """
    names = [str(j) for j in range(humans.shape[1])]
    of_cluster = np.unique(np.arange(len(judge)) if cluster is None else cluster, return_inverse=True)[1]
    members = np.split(np.argsort(of_cluster, kind="stable"), np.cumsum(np.bincount(of_cluster))[:-1])
    n_clusters = max(1, round(n_items * len(members) / len(judge)))
    studies = []
    for _ in range(simulations):
        chosen = [members[index] for index in rng.integers(0, len(members), n_clusters)]
        drawn, witness = np.concatenate(chosen), np.repeat(np.arange(n_clusters), [len(items) for items in chosen])
        studies.append(
            alt_test.run_alt_test(
                judge[drawn], humans[drawn], names, epsilon=epsilon, score=score, min_items=min_items, cluster=witness
            )
        )
    if all(study.omega is None for study in studies):
        return None
    return sum(study.passes for study in studies) / simulations


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


# --- from a pilot ----------------------------------------------------------------------------------------------------
STATISTICS = (
    "labels_needed", "items_needed", "raters_needed", "alt_test_power", "labels_affordable", "items_for_difference",
)  # fmt: skip
PLACE = "rated_place"
"""The column with the place of each item in the order of rating."""
POWER = 0.8
"""The share of studies in which a difference of two generators is to be found."""
FEWEST_PAIRS = 10
"""Clusters with items of both generators, from which the spread of their difference is taken."""
LOW_ALPHA, LOW_AC = 0.2, 0.4
"""Where both agreement coefficients lie below, scores vary by chance, and their spread is nothing to plan on."""
TOO_EARLY = Message("the interval is still the whole scale: too early to say")
_ONE_CLUSTER = Message("all labels are of one cluster: how far clusters differ is not known")
NO_SPREAD = Message("no item has a human score, or they do not vary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The precision that the study should reach, and its budget."""

    half_width: float = 0.1
    difference: float = 0.25
    reliability: float = 0.8
    epsilon: float = 0.15
    min_items: int = 30
    budget: float | None = None
    price: Mapping[str, float] = field(default_factory=dict)
    minimax: bool = False


def pilot_report(
    table: RatingsTable,
    goals: Goals,
    *,
    judge: str | None = None,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    positional: bool = False,
    pool: bool = False,
    statistics: Sequence[str] | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> list[CellEstimate]:
    """Per cell ``labels_needed`` (variants humans, judge), ``items_needed`` for alpha, ``raters_needed``,
    ``items_for_difference`` where there are two generators, ``alt_test_power`` at the pilot's size and at 100 items;
    with a budget ``labels_affordable`` per language. The test
    compares persons: it has no power where raters are ``positional``. ``statistics``: only these rows.
    """
    report: list[CellEstimate] = []
    wanted = STATISTICS if statistics is None else statistics
    spread: dict[str, list[float]] = {}
    doubts: dict[str, Message] = {}
    for cell in cells(table, by=by, pool=pool):
        compared = JudgeAgainstPanel.of(cell, judge or "", raters=raters)
        sd = _sd(compared)
        is_doubted = {"labels_needed", "items_for_difference", "labels_affordable"} & {*wanted}
        doubt = _too_little_agreement(cell, raters, bootstrap, seed) if is_doubted else None
        estimates = [*_labels(compared, sd, goals, judge, doubt)] if "labels_needed" in wanted else []
        estimates += _difference(compared, goals, doubt) if "items_for_difference" in wanted else []
        estimates += [_items(cell, goals, raters, bootstrap, seed)] if "items_needed" in wanted else []
        estimates += [_raters(compared, goals)] if "raters_needed" in wanted else []
        if judge and "alt_test_power" in wanted:
            estimates += _power(compared, goals, seed, slots=positional or not cell.has_persons)
        estimates += [running_mean(compared, goals)] if "sequence_mean" in wanted else []
        estimates = [_counted(estimate, compared) for estimate in estimates]
        report += [CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge) for estimate in estimates]
        if language := cell.key.get("language"):
            if doubt is not None:
                doubts.setdefault(language, doubt)
            elif sd is not None:
                spread.setdefault(language, []).append(sd)
    return report + (list(_budget(spread, doubts, goals)) if "labels_affordable" in wanted else [])


def plan_report(
    table: RatingsTable, *, judge: str | None, statistics: Sequence[str], goals: Mapping[str, Any], **how: Any
) -> list[CellEstimate]:
    """``pilot_report`` with the ratings until now as the pilot; ``goals`` as the fields of `Goals`.

    If there is no budget, or if the budget is too small, a row of ``labels_affordable`` says this.
    """
    wanted = Goals(**goals)

    def rows(*names: str) -> list[CellEstimate]:
        return pilot_report(table, wanted, judge=judge, statistics=names, **how) if names else []

    found = rows(*(name for name in statistics if name != "labels_affordable"))
    if "labels_affordable" in statistics:
        reason: str = NO_SPREAD if wanted.budget else Message("no budget is given")
        try:
            affordable = rows("labels_affordable")
        except ValueError as error:
            affordable, reason = [], str(error)
        missing = CellEstimate(estimate=Estimate(statistic="labels_affordable", value=None, reason=reason))
        found += affordable or [missing]
    return found


def alt_test_with_power(
    table: RatingsTable, *, judge: str, statistics: Sequence[str], by: Sequence[str], pool: bool, seed: int, **how: Any
) -> list[CellEstimate]:
    """The alternative annotator test and, where it is named, its power in a study of this size."""
    rows = alt_test.alt_test_report(table, judge=judge, by=by, pool=pool, seed=seed, **how)
    if "alt_test_power" in statistics:
        rows += alt_test_power_report(table, judge=judge, by=by, pool=pool, seed=seed)
    return rows


def _counted(estimate: Estimate, compared: JudgeAgainstPanel) -> Estimate:
    """With the raters of the pilot, and the clusters of its rated items or of those that the judge scored, too."""
    rated = compared.n_human > 0
    if estimate.n_items < int(rated.sum()):
        rated &= ~np.isnan(compared.judge)
    if estimate.n_items < int(rated.sum()):
        rated &= compared.n_human > 1
    n = estimate.n_clusters if estimate.n_clusters is not None else number_of(compared.cluster[rated])
    return estimate.with_(n_clusters=n, n_raters=estimate.n_raters or len(compared.annotators))


def _sd(compared: JudgeAgainstPanel) -> float | None:
    """Standard deviation of the panel's mean score of an item, with clusters counted in."""
    rated = compared.n_human > 0
    if rated.sum() < 2 or not compared.scale.has_order:
        return None
    return sd_by_clusters(np.nanmean(compared.humans[rated], axis=1), compared.cluster[rated]) or None


def _too_little_agreement(cell: Cell, raters: Sequence[str] | None, bootstrap: int, seed: int) -> Message | None:
    """Why the spread of the scores is nothing to plan on; None where the raters agree, or where that is not certain.

    Means of scores that are given by chance vary little, so that few labels would seem to be enough. The rule is that
    of the gate: the upper bounds are low.
    """
    alone = RatingsTable(cell.frame, {str(name): cell.scale for name in cell.frame["criterion"].unique()})
    for resamples in (0, bootstrap):  # the values first: where they are not low, neither are their upper bounds
        rows = rater_agreement.agreement_report(
            alone, by=(), pool=True, raters=raters, statistics=[KRIPPENDORFF_ALPHA, GWET_AC],
            bootstrap=resamples, seed=seed,
        )  # fmt: skip
        found = {row.estimate.statistic: row.estimate for row in rows if row.estimate.variant in (None, "quadratic")}
        alpha, ac = found.get(KRIPPENDORFF_ALPHA), found.get(GWET_AC)
        if not _is_below(alpha, LOW_ALPHA, bound=resamples > 0):
            return None
        if ac is not None and ac.value is not None and not _is_below(ac, LOW_AC, bound=resamples > 0):
            return None
    shown = f"{alpha.value:.2f}" if alpha is not None else ""
    return Message("the raters agree too little to plan on their scores: alpha %(alpha)s", alpha=shown)


def _is_below(figure: Estimate | None, threshold: float, *, bound: bool) -> bool:
    """Whether the value, or its upper bound, is known and low."""
    shown = None if figure is None else figure.high if bound else figure.value
    return shown is not None and shown < threshold


def _difference(compared: JudgeAgainstPanel, goals: Goals, doubt: Message | None) -> list[Estimate]:
    """Items of each generator with which a difference of two is found in 80 % of studies, at 5 %; none for fewer.

    n = ((z.975 + z.8) sd / d)^2. paired: sd of the differences of two generators within clusters that have both;
    independent: sqrt(2) times the pooled sd within generators. Source: Cohen 1988, ch. 2, doi:10.4324/9780203771587.
    """
    import pandas as pd

    generator = compared.rows["generator"].fillna("").astype(str).to_numpy() if "generator" in compared.rows else None
    rated = compared.n_human > 0
    if generator is None or len(np.unique(generator[rated & (generator != "")])) < 2:
        return []
    rated &= generator != ""
    base = Estimate(statistic="items_for_difference", value=None, reason="-", n_items=int(rated.sum()))
    if not compared.scale.has_order:
        return [base.with_(reason=Message("labels without an order have no mean"))]
    if doubt is not None:
        return [base.with_(reason=doubt)]
    scored = pd.DataFrame(
        {"cluster": compared.cluster[rated], "generator": generator[rated],
         "label": np.nanmean(compared.humans[rated], axis=1)}
    )  # fmt: skip
    means = scored.pivot_table(index="cluster", columns="generator", values="label")
    pairs = [(means[a] - means[b]).dropna() for n, a in enumerate(means) for b in list(means)[n + 1 :]]
    if all(len(pair) >= FEWEST_PAIRS for pair in pairs):
        variant, variance, fewest = "paired", float(np.mean([pair.var() for pair in pairs])), min(map(len, pairs))
        n_clusters = fewest
    else:
        groups = scored.groupby("generator")["label"]
        sizes = groups.size()
        freedom = float((sizes - 1).sum())
        within = float((groups.var().fillna(0.0) * (sizes - 1)).sum()) / freedom if freedom else 0.0
        variant, variance, fewest = "independent", 2 * within, int(sizes.min())
        n_clusters = int(scored.groupby("generator")["cluster"].nunique().min())
    if not variance > 0:
        return [base.with_(reason=NO_SPREAD)]
    z = _z(0.95) + _z(2 * POWER - 1)
    note = Message(
        "for a difference of %(points)s points in 80 %% of studies; its sd is %(sd)s",
        points=f"{goals.difference:g}", sd=f"{variance**0.5:.3f}",
    )  # fmt: skip
    n = float(ceil(z**2 * variance / goals.difference**2))
    return [base.with_(variant=variant, value=n, reason=None, n_items=fewest, n_clusters=n_clusters, note=note)]


def _labels(
    compared: JudgeAgainstPanel, sd: float | None, goals: Goals, judge: str | None, doubt: Message | None
) -> Iterator[Estimate]:
    n = int((compared.n_human > 0).sum())
    if sd is None or doubt is not None:
        reason = NO_SPREAD if compared.scale.has_order else Message("labels without an order have no mean")
        reason = doubt or reason
        yield Estimate(statistic="labels_needed", variant="humans", value=None, n_items=n, reason=reason)
        return
    goal = joined(
        (
            Message("for a mean known to +-%(width)s", width=f"{goals.half_width:g}"),
            Message("the labels' sd is %(sd)s", sd=f"{sd:.3f}"),
        )
    )
    per_label = number_of(compared.cluster[compared.n_human > 0]) / n
    if per_label * n < 2:
        yield Estimate(statistic="labels_needed", variant="humans", value=None, n_items=n, reason=_ONE_CLUSTER)
        return
    value = float(labels_in_clusters(sd, goals.half_width, per_label))
    yield Estimate(statistic="labels_needed", variant="humans", value=value, n_items=n, note=goal)
    if judge is not None:
        yield _labels_with_judge(compared, goals)


def _labels_with_judge(compared: JudgeAgainstPanel, goals: Goals) -> Estimate:
    has_judge = ~np.isnan(compared.judge)
    both, rest = (compared.n_human > 0) & has_judge, (compared.n_human == 0) & has_judge
    label, cluster = np.nanmean(compared.humans[both], axis=1), compared.cluster
    base = Estimate(statistic="labels_needed", variant="judge", value=None, reason="-", n_items=int(both.sum()))
    mean = JudgedMean.of(label, compared.judge[both], compared.judge[rest], cluster[both], cluster[rest])
    if mean is None:
        varies = len(label) > 0 and label.std() and compared.judge[both].std()
        return base.with_(reason=_ONE_CLUSTER if varies else Message("the judge or the labels do not vary"))
    needed = mean.labels_for(goals.half_width)
    if needed is None:
        return base.with_(
            reason=Message("even labels of all %(items)s items with a judge score are too few", items=mean.items)
        )
    rho = association.pearson(compared.judge[both], label, np.ones((1, len(label))))[0]
    note = Message("correlation with the labels %(value)s", value=f"{rho:.3f}")
    return base.with_(value=float(needed), reason=None, note=note)


def running_mean(compared: JudgeAgainstPanel, goals: Goals, *, confidence: float = 0.95) -> Estimate:
    """``sequence_mean``: the mean of the labels with the last interval of ``interval_sequence``.

    One value per cluster, the mean of its labelled items, in the order in which clusters were rated (``PLACE``). The
    note says whether the interval is as narrow as the goal, or ``TOO_EARLY``. Undefined where labels have unequal
    probabilities, where no scale is declared, and for labels without an order.
    """
    import pandas as pd

    rated = compared.n_human > 0
    base = Estimate(statistic="sequence_mean", value=None, reason="-", n_items=int(rated.sum()))
    if not (compared.scale.has_order and compared.scale.declared and compared.scale.q and rated.any()):
        return base.with_(reason=Message("it needs labels on a declared scale with an order"))
    place = pd.to_numeric(compared.rows[PLACE], errors="coerce") if PLACE in compared.rows else None
    if place is None or place.to_numpy()[rated].size == 0 or np.isnan(place.to_numpy(dtype=np.float64)[rated]).any():
        return base.with_(reason=Message("the order in which items were rated is not known"))
    label = np.full(len(rated), np.nan)
    label[rated] = np.nanmean(compared.humans[rated], axis=1)
    if is_unequally_drawn(label, compared.probability):
        return base.with_(reason=Message("labels drawn with unequal probabilities are in no random order"))
    _names, index = np.unique(compared.cluster[rated], return_inverse=True)
    sizes = np.bincount(index)
    last = np.zeros(len(sizes))
    np.maximum.at(last, index, place.to_numpy(dtype=np.float64)[rated])
    x = (np.bincount(index, weights=label[rated]) / sizes)[np.argsort(last, kind="stable")]
    lower, upper = interval_sequence(x, *map(float, compared.scale.values[[0, -1]]), confidence=confidence)
    half = float(upper[-1] - lower[-1]) / 2
    widths = {"width": f"{half:.3f}", "goal": f"{goals.half_width:g}"}
    note = Message("half width %(width)s, wider than the goal of %(goal)s", **widths)
    if half <= goals.half_width:
        note = Message("half width %(width)s, as narrow as the goal of %(goal)s", **widths)
    if (lower[-1], upper[-1]) == (compared.scale.values[0], compared.scale.values[-1]):
        note = TOO_EARLY  # whatever the goal is
    return base.with_(
        value=float(x.mean()), reason=None, low=float(lower[-1]), high=float(upper[-1]), confidence=confidence,
        method=Message("confidence sequence (empirical Bernstein)"), n_clusters=len(x),
        note=note,
    )  # fmt: skip


def _items(cell: Cell, goals: Goals, raters: Sequence[str] | None, bootstrap: int, seed: int) -> Estimate:
    """Items for an alpha known to the half width, by scaling the pilot's interval."""
    alone = RatingsTable(cell.frame, {str(name): cell.scale for name in cell.frame["criterion"].unique()})
    rows = rater_agreement.agreement_report(
        alone, by=(), pool=True, raters=raters, statistics=[KRIPPENDORFF_ALPHA], bootstrap=bootstrap, seed=seed
    )
    alpha = next((row.estimate for row in rows if row.estimate.statistic == KRIPPENDORFF_ALPHA), None)
    if alpha is None or alpha.low is None or alpha.high is None:
        reason = (alpha and (alpha.reason or alpha.interval_reason)) or Message("alpha has no interval in the pilot")
        return Estimate(statistic="items_needed", variant=KRIPPENDORFF_ALPHA, value=None, reason=reason)
    needed = items_by_pilot(alpha.n_items, (alpha.high - alpha.low) / 2, goals.half_width)
    return Estimate(
        statistic="items_needed", variant=KRIPPENDORFF_ALPHA, value=float(needed), n_items=alpha.n_items,
        n_clusters=alpha.n_clusters, n_raters=alpha.n_raters, n_ratings=alpha.n_ratings,
        note=Message("the pilot's alpha is %(value)s", value=f"{alpha.value:.3f} [{alpha.low:.3f}, {alpha.high:.3f}]"),
    )  # fmt: skip


def _raters(compared: JudgeAgainstPanel, goals: Goals) -> Estimate:
    """Raters whose mean reaches the reliability asked for."""
    components = variance_components(compared.humans) if compared.scale.has_order else None
    if components is None:
        reason = Message("variance components need an ordered scale, two raters and items with two ratings")
        return Estimate(statistic="raters_needed", value=None, reason=reason)
    if not components.item + components.rater + components.residual > 0:
        return Estimate(statistic="raters_needed", value=None, reason=Message("the scores do not vary"))
    needed = raters_per_item(components.item, components.rater, components.residual, target=goals.reliability)
    curve = ", ".join(
        f"{n}: {reliability_of(n, components.item, components.rater, components.residual):.2f}" for n in (1, 2, 3, 5)
    )
    return Estimate(
        statistic="raters_needed", value=None if needed is None else float(needed),
        n_items=int((compared.n_human > 0).sum()), n_raters=len(compared.annotators),
        reason=None if needed else Message("not even %(raters)s raters suffice", raters=_MOST_RATERS),
        note=Message("reliability of the mean by raters %(curve)s", curve=curve),
    )  # fmt: skip


def alt_test_power_report(
    table: RatingsTable, *, judge: str, by: Sequence[str] = ("language", "criterion"), pool: bool = False, seed: int = 0
) -> list[CellEstimate]:
    """``alt_test_power`` of every cell: of a study as large as this one, and of one of 100 items (variant).

    The share of 200 simulated studies in which the judge passes the alternative annotator test with epsilon .15, drawn
    from the cell's own items; no interval. Source: METHODS 8.
    """
    report = []
    for cell in cells(table, by=by, pool=pool):
        compared = JudgeAgainstPanel.of(cell, judge)
        for row in _power(compared, Goals(), seed, slots=not cell.has_persons):
            made = row.with_(
                level=cell.scale.level, n_raters=len(compared.annotators), n_ratings=int(compared.n_human.sum()),
                n_clusters=number_of(compared.cluster), seed=seed,
                interval_reason=Message("a share of simulated studies"),
            )  # fmt: skip
            report.append(CellEstimate(estimate=made, cell=cell_key(cell), judge=judge))
    return report


def items_for_alt_test(compared: JudgeAgainstPanel, *, epsilon: float, omega: float) -> int | None:
    """Further items with which as many annotators would be beaten as are needed, if the judge stays as good.

    Differences keep their mean and spread; the last of k annotators out of J is beaten at k alpha / (J sum 1/i). None
    where too few annotators are within epsilon of the judge: more items of the same kind change nothing.
    """
    from scipy.special import ndtri

    score, scores = alt_test.measured(compared)
    judge_wins, annotator_wins = alt_test.advantage(scores, compared.humans, score)
    gaps = annotator_wins - judge_wins
    n = (~np.isnan(gaps)).sum(axis=0)
    n_items = int((~np.isnan(gaps)).any(axis=1).sum())
    J = len(n)
    if not n_items:
        return None
    k = max(1, ceil(omega * J))
    z = float(ndtri(1 - 0.05 * k / (J * sum(1 / i for i in range(1, J + 1)))))
    more = []
    for j in np.flatnonzero(n >= 2):
        own = gaps[~np.isnan(gaps[:, j]), j]
        lead = epsilon - float(own.mean())
        if lead > 0:
            needed = max(alt_test.FEW_ITEMS, (z * float(own.std(ddof=1)) / lead) ** 2)
            more.append(max(0, ceil(needed * n_items / n[j]) - n_items))
    return max(1, sorted(more)[k - 1]) if len(more) >= k else None


def _power(compared: JudgeAgainstPanel, goals: Goals, seed: int, *, slots: bool) -> list[Estimate]:
    """Power of the test that ``alt-test`` runs on this compared: its score, its fewest items per annotator."""
    if slots:
        return [Estimate(statistic="alt_test_power", value=None, reason=alt_test.ANONYMOUS)]
    score, scores = alt_test.measured(compared)
    usable = ~np.isnan(scores) & (compared.n_human >= 2)
    judge, humans, cluster = scores[usable], compared.humans[usable], compared.cluster[usable]
    pilot = alt_test.run_alt_test(
        judge, humans, list(compared.annotators), score=score, min_items=goals.min_items, cluster=cluster
    )
    estimates = []
    for n in sorted({len(judge), 100}):
        base = Estimate(statistic="alt_test_power", variant=f"{n} items", value=None, n_items=len(judge), reason="-")
        if len(judge) < 2 or pilot.omega is None:
            why = (
                pilot.reason if len(judge) >= 2 else Message("the pilot has no items with the judge and two annotators")
            )
            estimates.append(
                base.with_(
                    reason=Message("%(why)s: --min-items lowers the test's demand", why=why) if len(judge) >= 2 else why
                )
            )
            continue
        power = alt_test_power(
            judge, humans, n, rng=np.random.default_rng(seed), score=score, cluster=cluster, epsilon=goals.epsilon,
            min_items=goals.min_items,
        )  # fmt: skip
        if power is None:
            reason = Message(
                "in %(items)s items no annotator has %(number)s shared with the judge and another rater",
                items=n,
                number=goals.min_items,
            )
            estimates.append(base.with_(reason=reason))
            continue
        note = Message(
            "%(score)s, epsilon %(epsilon)s, 200 simulated studies drawn from the pilot",
            score=score,
            epsilon=f"{goals.epsilon:g}",
        )
        estimates.append(base.with_(value=power, reason=None, note=note))
    return estimates


def _budget(
    spread: Mapping[str, Sequence[float]], doubts: Mapping[str, Message], goals: Goals
) -> Iterator[CellEstimate]:
    """The budget's share of each language, by its widest-spread criterion; why a language has none (``doubts``)."""
    if goals.budget is None:
        return
    for language in sorted(doubts.keys() - spread.keys()):  # a set has another order in each process
        none = Estimate(statistic="labels_affordable", value=None, reason=doubts[language])
        yield CellEstimate(estimate=none, language=language)
    if not spread:
        return
    sd = {language: max(values) for language, values in spread.items()}
    price = {language: goals.price.get(language, 1.0) for language in sd}
    rule = "minimax" if goals.minimax else "neyman"
    for language, n in allocate_labels(goals.budget, sd, price, minimax=goals.minimax).items():
        note = Message("price %(price)s, sd %(sd)s", price=f"{price[language]:g}", sd=f"{sd[language]:.3f}")
        estimate = Estimate(statistic="labels_affordable", variant=rule, value=float(n), note=note)
        yield CellEstimate(estimate=estimate, language=language)


def expected_error(y: Floats, f: Floats, *, shrinkage: float = SHRINKAGE) -> Floats:
    """(M,) root mean squared error of the judge that its score lets one expect, from labels y (M,), NaN where missing.

    v_k = (n_k m_k + s m) / (n_k + s): m_k of the n_k labels with the judge score k, m of all labels, after the judge's
    mean error is taken off; s the shrinkage. Below ``FEWEST_FOR_ERRORS`` labels all are 1. f (M,) is finite.
    """
    has_label = ~np.isnan(y)
    if has_label.sum() < FEWEST_FOR_ERRORS:
        return np.ones(len(f))
    error = y[has_label] - f[has_label]
    squared = (error - error.mean()) ** 2
    overall = float(squared.mean())
    _values, place = np.unique(f, return_inverse=True)
    counts = np.bincount(place[has_label], minlength=place.max() + 1)
    sums = np.bincount(place[has_label], weights=squared, minlength=place.max() + 1)
    spread = np.sqrt((sums + shrinkage * overall) / (counts + shrinkage))
    return np.asarray(spread[place], dtype=np.float64) if overall > 0 else np.ones(len(f))


def inclusion_probabilities(error: Floats, expected: float, *, uniform: float = UNIFORM_SHARE) -> Floats:
    """(M,) probabilities in (0, 1] that add up to the expected number of labels, n <= M.

    pi_i = min(1, c ((1 - u) e_i / mean(e) + u)), c such that sum pi = n. Source: Zrnic & Candes 2024, arXiv:2403.03208
    (section 4: a mixture with uniform draws).
    """
    if not 0 < expected <= len(error):
        raise ValueError("the expected number of labels is above 0 and at most the number of items")
    share = (1 - uniform) * error / error.mean() + uniform if error.mean() > 0 else np.ones(len(error))
    certain = np.zeros(len(error), dtype=np.bool_)
    while True:
        free = ~certain
        factor = (expected - certain.sum()) / share[free].sum() if free.any() else 0.0
        probability = np.where(certain, 1.0, np.minimum(1.0, factor * share))
        beyond = free & (factor * share >= 1)
        if not beyond.any():
            return np.asarray(probability, dtype=np.float64)
        certain |= beyond


def independent_draws(probability: Floats, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(M,) which items are drawn, each by itself with its own probability (Poisson sampling); their number varies."""
    return np.asarray(rng.random(len(probability)) < probability)


# --- when to stop ----------------------------------------------------------------------------------------------------
def interval_sequence(x: Floats, low: float, high: float, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper bounds (n,), (n,) after each of x (n,) in [low, high]: all hold at once with this confidence.

    Predictable plug-in empirical Bernstein: with x scaled to [0, 1], mu_t = (1/2 + sum x) / (t + 1), s_t^2 = (1/4 +
    sum (x - mu)^2) / (t + 1), l_t = min(1/2, sqrt(2 log(2/a) / (s_{t-1}^2 t log(1 + t)))), the centre is sum l x /
    sum l, the half width (log(2/a) + sum 4 (x - mu_{t-1})^2 psi(l)) / sum l with psi(l) = (-log(1 - l) - l) / 4; bounds
    are those of all former ones. x are in random order. Source: Waudby-Smith & Ramdas 2024,
    doi:10.1093/jrsssb/qkad009, theorem 2.
    """
    n, alpha = len(x), 1 - confidence
    scaled = (np.asarray(x, dtype=np.float64) - low) / (high - low)
    if n == 0 or scaled.min() < 0 or scaled.max() > 1:
        raise ValueError("there are values, all within the bounds")
    t = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(scaled)) / (t + 1)
    before = np.concatenate([[0.5], mean[:-1]])
    spread = (0.25 + np.cumsum((scaled - mean) ** 2)) / (t + 1)
    spread_before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(0.5, np.sqrt(2 * math.log(2 / alpha) / (spread_before * t * np.log1p(t))))
    cost = 4 * (scaled - before) ** 2 * (-np.log1p(-bet) - bet) / 4
    total = np.cumsum(bet)
    centre, half = np.cumsum(bet * scaled) / total, (math.log(2 / alpha) + np.cumsum(cost)) / total
    lower = np.maximum.accumulate(np.maximum(centre - half, 0.0))
    upper = np.minimum.accumulate(np.minimum(centre + half, 1.0))
    return low + (high - low) * lower, low + (high - low) * upper
