"""Is a judge the same judge in every language? Parallel items as items, languages as raters (METHODS 4; S1).

Fleiss's kappa over all languages and Cohen's kappa of each language against a pivot come from
``rater_agreement.agreement_report`` on a table in which the language stands as the rater.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import rater_agreement
from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats
from analytics.stats.core.scales import Scale, snapped
from analytics.stats.core.tables import RatingsTable, grouped
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import association
from analytics.stats.judge.audits import RULES, jury_scores
from analytics.stats.judge.corrected_means import cut_mean
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    import pandas as pd


PIVOT = "en"
_AGREEMENT = ("fleiss_kappa", "cohen_kappa", "percent_agreement", "krippendorff_alpha")
"""The statistics shown by default; a person may ask for any agreement statistic."""
LEVELS = ("mean", "language_shift")
AGAINST_LEVEL = "kappa_against_level"
STATISTICS = (*rater_agreement.STATISTICS, *LEVELS, AGAINST_LEVEL)
NOT_PARALLEL = Message("every scenario has several items of one language: which of them are parallel is not known")
TWINS_LEFT_OUT = Message("scenarios with several items of one language are left out: %(number)s", number="").template


def consistency_report(
    table: RatingsTable,
    *,
    judge: str | None = None,
    pivot: str = PIVOT,
    by: Sequence[str] = ("criterion",),
    pool: bool = False,
    statistics: Sequence[str] | None = None,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Agreement of each judge with itself across languages, its kappas against the pivot, its means and shifts.

    ``judge`` is one rater; without it every judge of the table is taken in turn (every rater when it has no judges).
    ``languages`` names the pair a Cohen's kappa or a ``language_shift`` (score less the pivot's, on the same scenario)
    is about; a pivot in which nothing was scored is said to be missing.
    """
    names = (*_AGREEMENT, *LEVELS) if statistics is None else tuple(statistics)
    agreement_names = tuple(name for name in names if name not in (*LEVELS, AGAINST_LEVEL))
    cut = [column for column in by if column not in (("language", "criterion") if pool else ("language",))]
    report: list[CellEstimate] = []
    for name in [judge] if judge is not None else judges_of(table):
        across, own = as_raters(table, name), _judged(table, name)
        twins = own[_has_twins(own)].groupby(["criterion", "unit"]).ngroups
        rows = rater_agreement.agreement_report(
            across, by=cut, pool=pool, statistics=agreement_names, bootstrap=bootstrap, confidence=confidence, seed=seed
        )
        # A pair of raters is a pair of languages here.
        rows = [replace(row, languages=row.raters) for row in rows if row.raters is None or pivot in row.raters]
        if twins:
            rows = [replace(row, estimate=_beside_twins(row.estimate, twins)) for row in rows] or [
                CellEstimate(estimate=_beside_twins(Estimate(statistic=one, value=None, reason=NOT_PARALLEL), twins))
                for one in agreement_names
            ]
        levels = cut if pool or "criterion" in cut else [*cut, "criterion"]
        rows += [row for row in _levels(table, name, levels, pivot, confidence) if row.estimate.statistic in names]
        if pivot not in set(across.frame["rater"]):
            reason = Message(
                "nothing is scored in the pivot language %(language)s: name another with --pivot", language=f"{pivot!r}"
            )
            rows.append(CellEstimate(estimate=Estimate(statistic="language_shift", value=None, reason=reason)))
        report += [replace(row, judge=name) for row in rows]
    return report


def _beside_twins(estimate: Estimate, twins: int) -> Estimate:
    """An estimate that says how many scenarios were left out because their items can't be matched."""
    return estimate.with_(note=joined((estimate.note, Message(TWINS_LEFT_OUT, number=twins))))


def judges_of(table: RatingsTable) -> list[str]:
    """The judges of a table in order, or all its raters when none is a judge."""
    frame = table.frame
    judges = frame[frame["rater_kind"].isin(["judge", "jury"])]
    return sorted(map(str, (judges if len(judges) else frame)["rater"].unique()))


def as_raters(table: RatingsTable, judge: str) -> RatingsTable:
    """One judge's scores with the language as rater and the scenario (and its generator) as item.

    Fractions are rounded half up to the scale; values beyond it are left out. So are scenarios with several items of
    one language and generator that differ in their scores: which of them are parallel is not known.
    """
    import pandas as pd

    frame = _judged(table, judge)
    frame = frame[~_has_twins(frame)]
    parts = [_on_points(rows, table.scales[str(criterion)]) for criterion, rows in frame.groupby("criterion")]
    extra = [column for column in frame.columns if column not in _OWN]
    rows = pd.concat(parts) if parts else frame
    return ratings_table(
        rows[["criterion", "score", "cluster", *extra]].assign(
            item=rows["unit"], rater=rows["language"], rater_kind="annotator"
        ),
        scales=table.scales,
    )


_OWN = frozenset({
    "item", "rater", "rater_kind", "language", "generator", "criterion", "cluster", "unit", "score", "code", "missing",
    "out_of_range", "applicable", "item_key", "row", "repeat", "first_repeat",
})  # fmt: skip
"""Columns of the table that mean something else, or nothing, once languages are raters."""


def _judged(table: RatingsTable, judge: str) -> pd.DataFrame:
    """The judge's usable rows, with ``unit``: what is the same in every language."""
    frame = table.frame
    first = frame["repeat"] == frame["first_repeat"]
    frame = frame[first & (frame["rater"] == judge) & (frame["code"].ge(0) | frame["score"].notna())]
    frame = frame[~frame["out_of_range"] & frame["language"].notna()]
    return frame.assign(unit=_scenario(frame) + "\0" + frame["generator"].fillna(""))


def _has_twins(frame: pd.DataFrame) -> pd.Series[bool]:
    """By row, whether its unit has items of one language with different scores."""
    if not frame.duplicated(["criterion", "unit", "language"]).any():
        return frame["unit"] != frame["unit"]
    scores = frame.groupby(["criterion", "unit", "language"], dropna=False)[["score", "code"]].transform("nunique")
    differ = scores.max(axis=1) > 1
    return differ.groupby([frame["criterion"], frame["unit"]], dropna=False).transform("any").astype(bool)


def _scenario(frame: pd.DataFrame) -> pd.Series[str]:
    """The item's name where names recur across languages, else its cluster."""
    per_item = frame.groupby("item")["language"].nunique()
    return frame["item"] if len(per_item) and per_item.max() > 1 else frame["cluster"]


def _on_points(rows: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    if not scale.is_numeric:
        return rows.assign(score=np.array(scale.points, dtype=object)[rows["code"].to_numpy()])
    return rows.assign(score=scale.values[snapped(rows["score"].to_numpy(dtype=np.float64), scale)])


def _levels(table: RatingsTable, judge: str, by: Sequence[str], pivot: str, confidence: float) -> list[CellEstimate]:
    """Mean score per language and its paired shift from the pivot, per cell, where the scale has numbers."""
    estimates = []
    frame = _judged(table, judge)
    for key, rows in grouped(frame[frame["score"].notna()], list(by)):
        cell = {column: part or None for column, part in zip(by, key, strict=True)}
        criteria = rows["criterion"].unique()
        scale = table.scales[criteria[0]] if len(criteria) == 1 else None
        wide = rows.pivot_table(index=["cluster", "unit"], columns="language", values="score")
        cluster = np.unique(wide.index.get_level_values("cluster"), return_inverse=True)[1]
        for language in wide.columns:
            mean = cut_mean(_mean("mean", wide[language].to_numpy(), cluster, confidence), scale)
            estimates.append(CellEstimate(estimate=mean, cell=cell, language=str(language)))
            if pivot in wide and language != pivot:
                gap = (wide[language] - wide[pivot]).to_numpy()
                shift = cut_mean(_mean("language_shift", gap, cluster, confidence), scale)
                estimates.append(CellEstimate(estimate=shift, cell=cell, languages=(pivot, str(language))))
    return estimates


def _mean(statistic: str, x: Floats, cluster: NDArray[np.intp], confidence: float) -> Estimate:
    known = ~np.isnan(x)
    estimate = classical_mean(x[known], cluster[known], confidence=confidence).with_(statistic=statistic)
    estimate = estimate.with_(n_raters=1, n_ratings=int(known.sum()))
    return (
        estimate if estimate.is_defined else estimate.with_(reason=Message("no scenario was judged in both languages"))
    )


def languages_report(table: RatingsTable, *, judges: Sequence[str], statistics: Sequence[str]) -> list[CellEstimate]:
    """Of all judges by criterion: ``ensemble_kappa`` of their jury, the least consistent of them and the difference;
    ``kappa_gap`` of every two criteria; ``kappa_against_level``.
    """
    part = table.only(rater=judges)
    rows: list[CellEstimate] = []
    if "ensemble_kappa" in statistics and len(judges) > 1:
        of_jury = beside(part, jury=list(judges), statistics=["fleiss_kappa"])
        rows += [replace(row, estimate=row.estimate.with_(statistic="ensemble_kappa")) for row in of_jury]
    if "kappa_gap" in statistics:
        for pair in combinations(sorted(map(str, part.frame["criterion"].unique())), 2):
            gaps = beside(part, gap=pair, statistics=["fleiss_kappa"])
            rows += [replace(row, estimate=row.estimate.with_(statistic="kappa_gap")) for row in gaps]
    if "kappa_against_level" in statistics:
        rows += beside(part, statistics=["kappa_against_level"])
    return rows


def beside(
    table: RatingsTable,
    *,
    judge: str | None = None,
    jury: Sequence[str] | None = None,
    rule: str = "majority",
    gap: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
) -> list[CellEstimate]:
    """What S1 sets beside a judge's consistency, criterion by criterion.

    ``jury``: Fleiss's kappa of these judges' jury, of the least consistent of them, and the difference. ``gap``: kappa
    on the first criterion less that on the second, for ``judge`` or every judge. ``kappa_against_level`` where it is
    named: Spearman's rho over the judges between kappa and mean score.
    """
    criteria = sorted(map(str, table.frame["criterion"].unique()))
    shows = statistics is None or "fleiss_kappa" in statistics
    report: list[CellEstimate] = []
    for criterion in criteria:
        cell = {"criterion": criterion or None}
        if jury and shows:
            report += [
                CellEstimate(estimate=one, cell=cell, judge=" + ".join(jury))
                for one in ensemble(table, judges=jury, rule=rule, criterion=criterion)
            ]
        if AGAINST_LEVEL in (statistics or ()):
            report.append(CellEstimate(estimate=_against_level(table, criterion), cell=cell))
    if not (gap and shows):
        return report
    for name in [judge] if judge is not None else judges_of(table):
        estimate = criterion_gap(table, judge=name, first=gap[0], second=gap[1])
        report.append(CellEstimate(estimate=estimate.with_(variant=f"{gap[0]} - {gap[1]}"), judge=name))
    return report


def _against_level(table: RatingsTable, criterion: str) -> Estimate:
    """Spearman's rho over judges between Fleiss's kappa and the mean score, of one criterion."""
    kappas, means = [], []
    for name in judges_of(table):
        own = _judged(table.only(criterion=[criterion]), name)["score"].dropna()
        kappa = _fleiss(as_raters(table, name), criterion).value
        if kappa is not None and len(own):
            kappas.append(kappa)
            means.append(float(own.mean()))
    return kappa_against_level(kappas, means).with_(statistic=AGAINST_LEVEL)


def ensemble(
    table: RatingsTable, *, judges: Sequence[str], rule: str = "majority", criterion: str = ""
) -> tuple[Estimate, Estimate, Estimate]:
    """Ens, Min and Ens - Min: Fleiss's kappa over languages of the judges' jury, and of the least consistent judge.

    Source: S1 (multilingual LLM-as-a-judge), Table 5.
    """
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}: use one of {', '.join(RULES)}")
    of_judges = [_fleiss(as_raters(table, judge), criterion) for judge in judges]
    ens = _fleiss(as_raters(with_jury(table, judges, rule), JURY), criterion).with_(variant="ens")
    values = [one.value for one in of_judges if one.value is not None]
    if len(values) < len(of_judges) or ens.value is None:
        reason = Message("a judge's or the jury's kappa is undefined")
        blank = Estimate(statistic="fleiss_kappa", value=None, reason=reason)
        return ens, blank.with_(variant="min"), blank.with_(variant="ens-min")
    low = min(of_judges, key=lambda one: one.value or 0.0)
    return (
        ens,
        low.with_(variant="min"),
        Estimate(statistic="fleiss_kappa", variant="ens-min", value=ens.value - min(values), **_counts(ens)),
    )


def criterion_gap(table: RatingsTable, *, judge: str, first: str, second: str) -> Estimate:
    """Fleiss's kappa over languages on one criterion less that on another: yes/no less grade in S1, section 4.2."""
    across = as_raters(table, judge)
    one, other = _fleiss(across, first), _fleiss(across, second)
    if one.value is None or other.value is None:
        reason = one.reason or other.reason
        return Estimate(statistic="fleiss_kappa", variant="gap", value=None, reason=reason)
    fewer = min(one, other, key=lambda estimate: estimate.n_items)
    return Estimate(statistic="fleiss_kappa", variant="gap", value=one.value - other.value, **_counts(fewer))


def _counts(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("n_items", "n_clusters", "n_raters", "n_ratings")}


JURY = "jury"


def with_jury(table: RatingsTable, judges: Sequence[str], rule: str) -> RatingsTable:
    """The table with the judges' jury as one more rater of kind ``jury`` named "jury"."""
    import pandas as pd

    frame = table.frame
    own = frame[frame["rater"].isin(list(judges)) & (frame["repeat"] == frame["first_repeat"])]
    keys = ["item", "language", "generator", "criterion", "cluster"]
    wide = own.pivot_table(index=keys, columns="rater", values="score", dropna=False, observed=True).dropna(how="all")
    labels = jury_scores(wide.to_numpy(dtype=np.float64), rule)
    jury = wide.index.to_frame(index=False).assign(score=labels, rater=JURY, rater_kind="jury")
    rows = frame[[*keys, "rater", "rater_kind", "repeat", "score"]]
    jury = jury[~np.isnan(labels)].assign(repeat=0)
    return ratings_table(pd.concat([rows, jury], ignore_index=True), scales=table.scales)


def _fleiss(across: RatingsTable, criterion: str) -> Estimate:
    rows = rater_agreement.agreement_report(
        across.only(criterion=[criterion]), by=["criterion"], statistics=["fleiss_kappa"], bootstrap=0
    )
    for row in rows:
        if row.estimate.variant == "unequal":
            return row.estimate
    return Estimate(statistic="fleiss_kappa", value=None, reason=Message("the judge scored nothing here"))


def kappa_against_level(kappas: Sequence[float], levels: Sequence[float]) -> Estimate:
    """Spearman's rho over judges between consistency (kappa) and accuracy or mean grade (S1, Table 3)."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (kappas, levels))
    rho = association.spearman(x, y, np.ones((1, len(x))))[0] if len(x) > 1 else np.nan
    if np.isnan(rho):
        return Estimate(
            statistic="spearman", value=None, reason=Message("it needs two judges that differ"), n_raters=len(x)
        )
    return Estimate(statistic="spearman", value=float(rho), n_raters=len(x))
