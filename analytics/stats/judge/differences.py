"""The difference of any statistic between two languages, judges, panels or values of any column, with its interval.

The statistic is computed on both sides again and again, each time without one cluster (or one of 60 groups of clusters)
on whichever side has it. Sides that share clusters are so compared in pairs: what a cluster does to both cancels.

Are criteria independent of each other, and do two panels see the same? (METHODS 1: S2, footnote 11 and G.3.)

Both compare two means of the same items, so both work on distinct pairs of values and resample whole clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import rater_agreement
from analytics.stats.core.estimates import (
    FEW_UNITS,
    CellEstimate,
    Estimate,
    Interval,
    Shape,
    corrected_together,
    t_interval,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.resampling import (
    MOST_LEFT_OUT,
    RatersAs,
    Units,
    bootstrap,
    effective_number,
    left_out_interval,
    number_of,
    of_report,
)
from analytics.stats.core.tables import RatingsTable, cells, grouped
from analytics.stats.judge import association, calibration, corrected_means
from analytics.stats.judge.association import spearman

if TYPE_CHECKING:
    import pandas as pd


# --- criteria and panels ---------------------------------------------------------------------------------------------
Kernel = Callable[[Floats, Floats, Floats], Floats]
_FREE: Shape = "free"
_COEFFICIENT: Shape = "coefficient"


def between_criteria(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("language",),
    resamples: int = 2000,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """``criteria_spearman`` of every pair of criteria over the items both were scored on, from the annotators' means.

    ``variant`` names the pair. Undefined where a criterion's means don't vary. Independent criteria stay near 0; the
    largest one reported for S2's criteria is .13. ``raters_as`` "sample": intervals for raters like these.
    """
    if raters_as == "sample":
        rows_of = between_criteria(table, by=by, resamples=resamples, seed=seed)
        return of_report(
            rows_of, lambda kept: between_criteria(kept, by=by, resamples=0), table, {"criteria_spearman": _COEFFICIENT}
        )
    report = []
    for key, rows in grouped(table.annotators().frame, list(by)):
        means = rows.groupby(["item_key", "criterion"])["score"].mean().unstack()
        clusters = rows.groupby("item_key")["cluster"].first()
        for first, second in combinations(means.columns, 2):
            both = means[[first, second]].dropna()
            estimate = paired_estimate(
                "criteria_spearman",
                f"{first} ~ {second}",
                spearman,
                both.to_numpy(),
                clusters[both.index],
                resamples,
                seed,
            ).with_(n_raters=int(rows["rater"].nunique()))
            report.append(CellEstimate(estimate=estimate, cell=dict(zip(by, key, strict=True))))
    return report


def between_panels(
    table: RatingsTable,
    first: str,
    second: str,
    *,
    by: Sequence[str] = ("language", "criterion"),
    resamples: int = 2000,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """Two panels (column ``panel``) on the items both scored, from their item means.

    ``panel_difference``: mean of second minus first; ``panel_spearman``: do they order the items alike? ``variant``
    names the two. Say crowd first, experts second. ``raters_as`` "sample": both panels are samples of such raters.
    """
    if raters_as == "sample":
        shapes: dict[str, Shape] = {"panel_difference": _FREE, "panel_spearman": _COEFFICIENT}
        found = of_report(
            between_panels(table, first, second, by=by, resamples=resamples, seed=seed),
            lambda kept: between_panels(kept, first, second, by=by, resamples=0),
            table, shapes, sides=("panel", (first, second)),
        )  # fmt: skip
        return corrected_means.cut_means(found, table, by=by)
    rows = []
    for cell in cells(table.annotators(), by=by):
        means = cell.frame.groupby(["item_key", "panel"])["score"].mean().unstack().reindex(columns=[first, second])
        both = means.dropna()
        clusters = cell.frame.groupby("item_key")["cluster"].first()[both.index]
        for statistic, kernel in (("panel_difference", _difference), ("panel_spearman", spearman)):
            estimate = paired_estimate(
                statistic, f"{first} ~ {second}", kernel, both.to_numpy(dtype=np.float64), clusters, resamples, seed
            ).with_(n_raters=int(cell.frame["rater"][cell.frame["panel"].isin([first, second]).to_numpy()].nunique()))
            rows.append(CellEstimate(estimate=estimate, cell=cell.key))
    return corrected_means.cut_means(rows, table, by=by)


def _difference(x: Floats, y: Floats, w: Floats) -> Floats:
    """(B,) weighted mean of y - x; NaN where no item is left."""
    total = w.sum(axis=1)
    return np.asarray(np.divide(w @ (y - x), total, out=np.full(len(w), np.nan), where=total > 0))


def paired_estimate(
    statistic: str,
    variant: str | None,
    kernel: Kernel,
    pairs: Floats,
    clusters: pd.Series[str],
    resamples: int,
    seed: int,
    confidence: float = 0.95,
) -> Estimate:
    """One figure of (N, 2) paired means; N items in clusters (N,)."""
    base = Estimate(
        statistic=statistic,
        variant=variant,
        value=None,
        reason=Message("no item has both"),
        n_items=len(pairs),
        n_ratings=2 * len(pairs),
        n_clusters=number_of(clusters.to_numpy(dtype=str)),
    )
    if not len(pairs):
        return base
    distinct, pattern = np.unique(pairs, axis=0, return_inverse=True)
    units = Units.of(pattern.ravel(), np.unique(clusters.to_numpy(dtype=str), return_inverse=True)[1])

    def value(weights: Floats) -> Floats:
        return kernel(distinct[:, 0], distinct[:, 1], weights)

    difference = float(value(units.pattern_totals[None, :])[0])
    if np.isnan(difference):
        return base.with_(reason=Message("one side does not vary"))
    unit, shape = (float(np.abs(pairs).max()), _FREE) if kernel is _difference else (1.0, _COEFFICIENT)
    drawn = units.n_kinds > MOST_LEFT_OUT
    if drawn and resamples:
        rng = np.random.default_rng(seed)
        interval = bootstrap(value, units, rng=rng, resamples=resamples, confidence=confidence, unit=unit)
    else:
        interval = left_out_interval(value, units, shape, confidence=confidence, unit=unit)
    estimate = base.with_(value=difference, reason=None, seed=seed if drawn and resamples else None)
    return estimate.with_(**interval.as_changes())


# --- any statistic between two sides ---------------------------------------------------------------------------------
Key = tuple[str, str | None, tuple[tuple[str, str | None], ...], tuple[str, ...] | None]
"""Statistic, variant, cell, pair of raters."""
Side = Callable[[RatingsTable], list[CellEstimate]]

MOST_GROUPS = 60
"""More clusters are left out in so many groups: the statistic is computed twice for each."""
OF_JUDGES = (*association.STATISTICS, *corrected_means.STATISTICS)
OF_PANELS = tuple(name for name in rater_agreement.STATISTICS if name not in OF_JUDGES)
STATISTICS = tuple(dict.fromkeys((*rater_agreement.STATISTICS, *OF_JUDGES)))
_SHARES = (
    *("accuracy", "accuracy_adjacent", "f1", "f1_weighted", "f1_macro", "precision", "recall", "rogan_gladen"),
    *("percent_agreement", "percent_agreement_pooled", "percent_agreement_exact", "percent_agreement_adjacent"),
)
_IN_SCORES = (*association.IN_SCORES, *corrected_means.MEANS)
"""Figures whose differences cannot leave an interval: shares, and figures in the unit of the scores."""
_HOLM = "; Holm p "
_UNDEFINED = Message("it is undefined on one side, or without some of the clusters")


@dataclass(frozen=True, slots=True)
class DifferenceQuestion:
    """The comparison that is asked for: two values of a column (``judge``: two judges), statistics, and the judge of
    both sides.
    """

    column: str
    values: tuple[str, str]
    statistics: tuple[str, ...]
    judge: str | None = None
    by: tuple[str, ...] = ("language", "criterion")
    reference: str | None = None
    raters: tuple[str, ...] | None = None
    pool: bool = False
    seed: int = 0
    confidence: float = 0.95
    raters_as: RatersAs = "these"


def difference_report(table: RatingsTable, question: DifferenceQuestion) -> list[CellEstimate]:
    """``first - second`` of each statistic in every cell both sides have, with p of no difference (Holm in the note).

    Interval: t from the delete-a-group jackknife. Clusters that both sides have, and those of one side only, are left
    out within their kind; degrees of freedom by Satterthwaite: of means these are the paired and Welch's t-test.
    Undefined where a side is. Source: Kott 2001, The delete-a-group jackknife (Journal of Official Statistics 17, 521);
    stratified: ``resampling.jackknife_error``. Raters as a sample are left out on the side or sides where they
    rate; p, which takes the raters as they are, is then none.
    """
    if question.raters_as == "sample":
        rows = difference_report(table, replace(question, raters_as="these"))
        return _for_raters_like_these(rows, table, question)
    sides = [_side(table, question, value) for value in question.values]
    parts, groups = _groups(sides, question.seed)
    of_sides = [_values(side, question, value) for side, value in zip(sides, question.values, strict=True)]
    without = [
        [
            _values(_without(side, groups, g), question, value)
            for side, value in zip(sides, question.values, strict=True)
        ]
        for g in range(len(parts))
    ]
    rows = [_difference_of_sides(key, question, of_sides, without, parts) for key in of_sides[0] if key in of_sides[1]]
    return corrected_together([_cut(row, table) for row in rows])


def _for_raters_like_these(
    rows: Sequence[CellEstimate], table: RatingsTable, q: DifferenceQuestion
) -> list[CellEstimate]:
    """The differences with the raters of both sides taken for samples; judges are none."""
    shapes: dict[str, Shape] = dict.fromkeys(q.statistics, "free")
    plain = [_plain(row) for row in rows]
    compared = None if q.column == "judge" else (q.column, q.values)
    found = of_report(plain, lambda kept: _bare(kept, q), table, shapes, raters=q.raters, sides=compared)
    return [_cut(row, table) for row in found]


def _cut(row: CellEstimate, table: RatingsTable) -> CellEstimate:
    """The same, its interval no wider than the two figures can lie apart."""
    e, scale = row.estimate, table.scales.get(row.cell.get("criterion") or "")
    if e.statistic in _SHARES:
        return replace(row, estimate=e.cut(-1.0, 1.0))
    if scale is None or not scale.declared or not scale.is_numeric or e.statistic not in _IN_SCORES:
        return row
    width = float(np.ptp(scale.values)) * (2 if e.statistic == "bias" else 1)
    return replace(row, estimate=e.cut(-width, width))


def _plain(row: CellEstimate) -> CellEstimate:
    note = (row.estimate.note or "").split(_HOLM)[0] or None
    return replace(row, estimate=row.estimate.with_(p=None, note=note))


def _bare(table: RatingsTable, q: DifferenceQuestion) -> list[CellEstimate]:
    """The differences alone."""
    of_sides = [_values(_side(table, q, value), q, value) for value in q.values]
    return [_difference_of_sides(key, q, of_sides, [], []) for key in of_sides[0] if key in of_sides[1]]


def _side(table: RatingsTable, q: DifferenceQuestion, value: str) -> RatingsTable:
    """The rows of one side; judges stay on both sides of a comparison of panels."""
    if q.column == "judge":
        return table
    keep = (table.frame[q.column].astype(str) == value).to_numpy()
    if q.column == "panel":
        keep |= table.frame["rater_kind"].isin(["judge", "jury"]).to_numpy()
    return replace(table, frame=table.frame[keep])


def _values(side: RatingsTable, q: DifferenceQuestion, value: str) -> dict[Key, Estimate]:
    """Every figure asked for, by what it is of; without intervals."""
    by = [column for column in q.by if column != q.column]
    judge = value if q.column == "judge" else q.judge
    shared = {"by": by, "raters": q.raters, "pool": q.pool, "bootstrap": 0}
    rows: list[CellEstimate] = []
    of_panels = [
        name for name in q.statistics if name in OF_PANELS or (judge is None and name in rater_agreement.STATISTICS)
    ]
    of_judges = [name for name in q.statistics if name not in of_panels]
    if of_panels:
        rows += rater_agreement.agreement_report(side, statistics=of_panels, **shared)  # type: ignore[arg-type]
    if judge is not None and (chosen := [n for n in of_judges if n in association.STATISTICS]):
        rows += calibration.calibration_report(side, judge=judge, statistics=chosen, reference=q.reference, **shared)  # type: ignore[arg-type]
    if judge is not None and (chosen := [n for n in of_judges if n in corrected_means.STATISTICS]):
        del shared["bootstrap"]
        rows += corrected_means.correction_report(side, judge=judge, statistics=chosen, seed=q.seed, **shared)  # type: ignore[arg-type]
    return {(r.estimate.statistic, r.estimate.variant, tuple(r.cell.items()), r.raters): r.estimate for r in rows}


def _groups(sides: Sequence[RatingsTable], seed: int) -> tuple[list[int], dict[str, int]]:
    """The kind of each group (0: clusters of both sides, 1 and 2: of one), and the group of each cluster."""
    names = [set(side.frame["cluster"].astype(str)) for side in sides]
    kinds = [names[0] & names[1], names[0] - names[1], names[1] - names[0]]
    rng, parts, groups = np.random.default_rng(seed), list[int](), dict[str, int]()
    for kind, clusters in enumerate(kinds):
        order = rng.permutation(np.array(sorted(clusters), dtype=object))
        n = min(len(order), MOST_GROUPS)
        groups |= {str(name): len(parts) + place % n for place, name in enumerate(order)}
        parts += [kind] * n
    return parts, groups


def _without(side: RatingsTable, groups: dict[str, int], group: int) -> RatingsTable:
    keep = (side.frame["cluster"].astype(str).map(groups) != group).to_numpy()
    return side if keep.all() else replace(side, frame=side.frame[keep])


def _difference_of_sides(
    key: Key,
    q: DifferenceQuestion,
    of_sides: Sequence[dict[Key, Estimate]],
    without: Sequence[Sequence[dict[Key, Estimate]]],
    parts: Sequence[int],
) -> CellEstimate:
    statistic, variant, cell, raters = key
    first, second = (side[key] for side in of_sides)
    difference_of = " - ".join(q.values)
    base = Estimate(
        statistic=statistic, variant=f"{variant}, {difference_of}" if variant else difference_of,
        level=first.level, value=None, reason=_UNDEFINED,
        n_items=first.n_items + second.n_items, n_raters=max(first.n_raters, second.n_raters),
        n_ratings=first.n_ratings + second.n_ratings, n_missing=first.n_missing + second.n_missing,
        n_clusters=_clusters(first, second, parts),
    )  # fmt: skip
    if first.value is not None and second.value is not None:
        left = np.array([_gap(*(side.get(key) for side in sides)) for sides in without], dtype=np.float64)
        base = _tested(base.with_(value=first.value - second.value, reason=None), left, np.array(parts), q.confidence)
        sizes = [f"{v} {e.value:.4g} ({e.n_items} items)" for v, e in zip(q.values, (first, second), strict=True)]
        base = base.with_(note=joined((", ".join(sizes), _how_paired(parts))))
    return CellEstimate(estimate=base, cell=dict(cell), raters=raters)


def _clusters(first: Estimate, second: Estimate, parts: Sequence[int]) -> int | None:
    """Clusters of both sides together; those on both sides count once."""
    if first.n_clusters is None or second.n_clusters is None:
        return None
    both = first.n_clusters + second.n_clusters
    return both if 0 not in parts else max(first.n_clusters, second.n_clusters, both - parts.count(0))


def _gap(first: Estimate | None, second: Estimate | None) -> float:
    if first is None or second is None or first.value is None or second.value is None:
        return float("nan")
    return first.value - second.value


def _how_paired(parts: Sequence[int]) -> str:
    shared = sum(part == 0 for part in parts)
    paired = (
        Message("paired by %(number)s groups of clusters", number=shared)
        if shared == MOST_GROUPS
        else Message("paired by %(number)s shared clusters", number=shared)
    )
    return Message("not paired: no cluster is on both sides") if not shared else paired


def _tested(e: Estimate, left: Floats, parts: NDArray[np.intp], confidence: float) -> Estimate:
    """Standard error, p and interval of a difference from its values without each group (G,), groups of kinds (G,)."""
    from scipy.special import stdtr

    value, variances, dfs = float(e.value or 0.0), [], []
    if np.isnan(left).any():
        return e.with_(interval_reason=Message("without one of the clusters it is undefined on one side"))
    for part in np.unique(parts):
        own = left[parts == part] - value
        if len(own) < 2:
            return e.with_(interval_reason=Message("an interval needs two clusters on each side"))
        variances.append((len(own) - 1) / len(own) * float((own**2).sum()))
        dfs.append(effective_number(np.ones(len(own))) - 1)
    total = sum(variances)
    if total <= 0:
        return e.with_(interval_reason=Message("no cluster changes the difference"))
    df, se = total**2 / sum(v**2 / d for v, d in zip(variances, dfs, strict=True)), float(np.sqrt(total))
    method = Message("%(method)s t of the difference", method=Message("jackknife"))
    interval: Interval = t_interval(value, se, df, method=method, confidence=confidence)
    if df + 1 < FEW_UNITS and interval.method:
        interval = replace(
            interval,
            method=approximate(interval.method, Message("%(number)s independent units", number=f"{df + 1:.3g}")),
        )
    return e.with_(p=float(2 * stdtr(df, -abs(value) / se)), **interval.as_changes())


# --- annotators against each other, label by label -------------------------------------------------------------------
def human_f1_report(
    table: RatingsTable, *, by: Sequence[str] = ("language", "criterion"), pool: bool = False
) -> list[CellEstimate]:
    """``human_f1`` of each label (variant): F1 of every annotator against every other one, averaged.

    Each annotator in turn takes the judge's place against the others (`calibration_report`, reference ``each``), then
    the annotators' figures are averaged. It is the ceiling of a judge's F1 against every annotator. Level: nominal; no
    interval. Undefined where no two annotators share an item, or the label never occurs. Source: METHODS 3 (S3, 5.3.1).
    """
    annotators = table.annotators()
    found: dict[tuple[tuple[str, str | None], ...], dict[str, list[Estimate]]] = {}
    for name in sorted(annotators.frame["rater"].unique()):
        kinds = annotators.frame["rater_kind"].where(annotators.frame["rater"] != name, "judge")
        seated = replace(annotators, frame=annotators.frame.assign(rater_kind=kinds))
        of_one = calibration.calibration_report(
            seated, judge=name, by=by, statistics=["f1"], pool=pool, bootstrap=0, reference="each"
        )
        for row in of_one:
            key = tuple(row.cell.items())
            found.setdefault(key, {}).setdefault(row.estimate.variant or "", []).append(row.estimate)
    return [
        CellEstimate(estimate=_averaged(label, of_label), cell=dict(key))
        for key, labels in found.items()
        for label, of_label in labels.items()
    ]


def _averaged(label: str, rows: Sequence[Estimate]) -> Estimate:
    """The mean over annotators of their F1 of one label."""
    values = [row.value for row in rows if row.value is not None]
    most = max(rows, key=lambda row: row.n_items)
    return Estimate(
        statistic="human_f1", variant=label or None, level=most.level, n_items=most.n_items, n_clusters=most.n_clusters,
        n_raters=len(values), n_ratings=max(row.n_ratings for row in rows),
        value=sum(values) / len(values) if values else None, reason=None if values else rows[0].reason,
        interval_reason=Message("a mean over annotators"),
        note=Message("mean over %(number)s annotators, each against the others", number=len(values)),
    )  # fmt: skip
