"""Is a judge sound, cell by cell: audits, equivalence of two judges, conformal intervals, severity by language, juries.

The statistics are in ``audits``, ``equivalence``, ``conformal``, ``severity`` and ``juries``; here the ratings table
becomes their arrays. Each ``*_report`` returns what its subcommand prints.

Label recovery accuracy: does the judge see what the dialogue was generated from? (METHODS 4; S0 Appendix D)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import WILSON, CellEstimate, Estimate, corrected_together, wilson_interval
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.resampling import THIS_JUDGE, RatersAs, error_of_mean, number_of
from analytics.stats.core.scales import snapped
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, TableError, TableProblem, cells, grouped
from analytics.stats.judge import association, audits, calibration, rated_items
from analytics.stats.judge.audits import MARGIN, tost
from analytics.stats.judge.consistency import PIVOT
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key, numbers
from analytics.stats.judge.ppi import classical_mean

if TYPE_CHECKING:
    import pandas as pd


AUDITS = (
    "repeat_sd", "flip_rate", "scale_use", "unreadable", "verbosity", "self_preference",
    "perturbation", "condition_mae", "condition_shift", "rated_difference", "bias_weighted",
)  # fmt: skip
CONFORMAL = ("conformal_radius", "conformal_width", "for_people", "conformal_interval")
JURY = ("jury_unsettled", *association.STATISTICS, *calibration.COUNTS)
SEVERITY = ("severity_shift", "severity_uniform", "severity_nonuniform")
_LENGTH, _FAMILY = "length_of_text", "judge_family"
"""Columns with the characters of each item, and with the family of each judge's model."""
JURY_NAME = "jury"
_NO_NUMBERS = Message("a nominal scale has no distances")


def audit_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    against: Sequence[str] = (),
    length: str | None = None,
    families: Mapping[str, str] | None = None,
    pool: bool = False,
    confidence: float = 0.95,
) -> list[CellEstimate]:
    """Audits of one judge in every cell (METHODS 5).

    Repeats of the judge (column ``repeat``), use of the scale beside the panel's, unreadable replies (rows without a
    score), rated items beside those that only the judge scored, and, where they are named: ``length`` a column of
    numbers or texts (verbosity), ``against`` other raters that are the same judge under another prompt, temperature or
    on changed texts (perturbation, conditions), ``families`` the family of each judge, to set beside the item's column
    ``generator_family``, else ``generator``. ``confidence`` is that of self-preference; other audits have 95 %.
    """
    if length is not None and length not in table.frame:
        raise TableError([TableProblem(None, f"the column {length!r} (given by --length) is missing")])
    report = []
    for cell in cells(table, by=by, pool=pool):
        rows = [*_steadiness(cell, judge, raters)]
        if length is not None:
            rows.append(_verbosity(cell, judge, raters, length))
        rows += _rated_and_not(cell, judge, raters, length)
        if families:
            rows.append(_self_preference(cell, families, confidence))
        if against:
            rows += _conditions(cell, [judge, *against], raters)
        clusters = int(cell.frame["cluster"][(cell.frame["rater"] == judge).to_numpy()].nunique())
        report += [
            CellEstimate(estimate=_counted(_levelled(row, cell), clusters), cell=cell_key(cell), judge=judge)
            for row in rows
        ]
    # Each kind of effect is one family over all cells: length, self-preference, shifts between conditions.
    return corrected_together(report, lambda row: row.estimate.statistic)


def audits_of_judge(
    table: RatingsTable, *, judge: str, by: Sequence[str], pool: bool = False, confidence: float = 0.95
) -> list[CellEstimate]:
    """``audit_report`` with the columns ``length_of_text`` and ``judge_family`` of the table.

    The audit of the judge's own family compares it with all other judges; all others set it beside the annotators
    alone. A jury has no family.
    """
    is_beside = (table.frame["rater_kind"] == "annotator") | (table.frame["rater"] == judge)
    beside = replace(table, frame=table.frame[is_beside.to_numpy()])
    length = _LENGTH if _LENGTH in table.frame else None
    own = audit_report(beside, judge=judge, length=length, by=by, pool=pool)
    families = judge_families(table)
    if judge not in families:
        return own
    of_all = audit_report(table, judge=judge, families=families, by=by, pool=pool, confidence=confidence)
    return [*own, *(row for row in of_all if row.estimate.statistic == "self_preference")]


def judge_families(table: RatingsTable) -> dict[str, str]:
    """By judge, the family of its model."""
    if _FAMILY not in table.frame:
        return {}
    own = table.frame[table.frame["rater_kind"] == "judge"].drop_duplicates("rater")
    return dict(zip(own["rater"], own[_FAMILY], strict=True))


def equivalence_report(
    table: RatingsTable,
    *,
    raters: Sequence[str],
    by: Sequence[str] = ("language", "criterion"),
    margin: float = MARGIN,
    pool: bool = False,
) -> list[CellEstimate]:
    """Two raters (the same judge under two instructions) on the items both scored: ``tost`` per cell (METHODS 4)."""
    report = []
    for cell in cells(table, by=by, pool=pool):
        scores, cluster, _ = matrix(cell, raters)
        estimate = _only_numbers(cell, "tost") or tost(scores[:, 0], scores[:, 1], cluster, margin=margin)
        counted = estimate.with_(n_raters=2, n_missing=int(np.isnan(scores).any(axis=1).sum()))
        report.append(CellEstimate(estimate=_levelled(counted, cell), cell=cell_key(cell), raters=tuple(raters)))
    return corrected_together(report)


def conformal_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    coverage: float = 0.9,
    widest: float | None = None,
    items: bool = False,
    pool: bool = False,
) -> list[CellEstimate]:
    """How far the panel's mean lies from the judge's score, with the promised coverage, per cell (METHODS 3).

    ``conformal_radius`` from the items that both scored; on the items that only the judge scored (all where there are
    none) ``conformal_width``, the mean width of their intervals, and ``for_people``, the share wider than ``widest``
    (by default half of the scale). ``items`` adds each of these items as ``conformal_interval``.
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=by, pool=pool):
        rows = [_only_numbers(cell, "conformal_radius")] if not cell.scale.has_order else None
        rows = rows or [*_conformal(cell, judge, raters, coverage, widest, items)]
        report += [CellEstimate(estimate=_levelled(row, cell), cell=cell_key(cell), judge=judge) for row in rows if row]
    return report


def severity_report(
    table: RatingsTable,
    *,
    judge: str,
    by: Sequence[str] = ("criterion",),
    raters: Sequence[str] | None = None,
    pivot: str | None = None,
    pool: bool = False,
) -> list[CellEstimate]:
    """Is the judge more lenient in one language, on answers the panel finds equally good? Per cell (METHODS 4).

    ``severity_shift`` of each language against ``pivot`` (by default the first by name), in logits of a cumulative
    logit of the judge's score on the panel's mean; positive is more lenient. Its interval and p leave out groups of
    clusters. ``severity_uniform`` and ``severity_nonuniform`` carry the p of likelihood ratios. Variant ``corrected``
    draws each panel mean towards its language's by what the mean of so few annotators is worth; ``raw`` does not.
    """
    report = []
    for cell in cells(table, by=[column for column in by if column != "language"], pool=pool):
        for row, language in _severity(cell, judge, raters, pivot):
            report.append(
                CellEstimate(estimate=_levelled(row, cell), cell={**cell_key(cell), "language": language}, judge=judge)
            )
    return corrected_together(report, lambda row: (row.estimate.statistic, row.estimate.variant))


def severity_against_pivot(table: RatingsTable, *, judge: str, by: Sequence[str], pool: bool) -> list[CellEstimate]:
    """``severity_report`` with the pivot of ``consistency``, where the table has this language."""
    pivot = PIVOT if PIVOT in set(table.frame["language"].dropna()) else None
    return severity_report(table, judge=judge, by=by, pool=pool, pivot=pivot)


def jury_report(
    table: RatingsTable,
    *,
    judges: Sequence[str],
    rule: str = "majority",
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    reference: str | None = None,
    statistics: Sequence[str] | None = None,
    pool: bool = False,
    bootstrap: int = 2000,
    seed: int = 0,
    raters_as: RatersAs = "these",
) -> list[CellEstimate]:
    """Several judges as one rater, set against the panel as each of them is (METHODS 4).

    ``jury_unsettled`` is the share of the items that the judges leave without a label (ties of a majority); then the
    calibration figures of the jury, and of each member.
    """
    seated, unsettled = _seated(table, judges, rule, by, pool)
    shown = association.STATISTICS if statistics is None else statistics
    rows = [
        row for name in (JURY_NAME, *judges)
        for row in calibration.calibration_report(
            seated, judge=name, by=by, raters=raters, reference=reference, statistics=shown, pool=pool,
            bootstrap=bootstrap, seed=seed, raters_as=raters_as
        )
    ]  # fmt: skip
    return [*unsettled, *rows]


def readable(cell: Cell, judge: str, failed_calls: int) -> Estimate:
    """``readable``: the share of the judge's calls, failed ones among them, that gave a score on the scale.

    Wilson's interval, its standard error from clusters left out one by one, and a failed call as its own; t by their
    effective number. Where every reply is readable nothing varies: replies are taken for independent, and the method
    says so.
    """
    own = cell.frame[(cell.frame["rater"] == judge).to_numpy()]
    usable = ~(own["missing"] | own["out_of_range"]).to_numpy(dtype=bool)
    x = np.concatenate([usable, np.zeros(failed_calls, dtype=bool)]).astype(np.float64)
    n_clusters = own["cluster"].nunique()
    estimate = audits.share("readable", int(usable.sum()), len(x), clusters=n_clusters)
    if estimate.value is not None and 0 < estimate.value < 1 and n_clusters < len(own):
        cluster = np.concatenate([_codes(own["cluster"]), n_clusters + np.arange(failed_calls)])
        se, df = error_of_mean(x, cluster)
        method = Message("Wilson t, %(method)s", method=Message("clusters left out"))
        interval = wilson_interval(estimate.value, se, len(x), df=max(df, 1.0), method=method)
        estimate = estimate.with_(**interval.as_changes())
    note = Message("%(number)s calls failed", number=failed_calls) if failed_calls else None
    return estimate.with_(level=cell.scale.level, n_raters=1, n_clusters=n_clusters, note=note)


NO_ROW = "none"


def unscored(cell: Cell, judge: str, compared: JudgeAgainstPanel) -> dict[str, tuple[str, ...]]:
    """By reason (that of the judge's row, NO_ROW where it has none), the items with two raters and no score by it."""
    is_own = (cell.frame["rater"] == judge) & (cell.frame["repeat"] == cell.frame["first_repeat"])
    own = cell.frame[is_own.to_numpy()]
    reasons = own["missing_reason"] if "missing_reason" in own else [None] * len(own)
    columns = (own["item_key"], own["criterion"], reasons, own["applicable"], own["out_of_range"])
    why = {(key, criterion): _why(*rest) for key, criterion, *rest in zip(*columns, strict=True)}
    rows = compared.rows[(compared.n_human >= 2) & np.isnan(compared.judge)]
    found: dict[str, list[str]] = {}
    for key, criterion, item in zip(rows["item_key"], rows["criterion"], rows["item"], strict=True):
        found.setdefault(why.get((key, criterion), NO_ROW), []).append(str(item))
    return {reason: tuple(items) for reason, items in sorted(found.items())}


def _why(missing_reason: object, applicable: object, out_of_range: object) -> str:
    if not applicable:
        return "not_applicable"
    if out_of_range:
        return "out_of_range"
    return missing_reason if isinstance(missing_reason, str) and missing_reason else "missing"


def matrix(cell: Cell, raters: Sequence[str]) -> tuple[Floats, Codes, pd.DataFrame]:
    """(N, R) numbers of the first repeats of named raters, NaN where missing; (N,) clusters; the items' first rows.

    Any level; text points stand as their place on the scale. Source: METHODS 0.
    """
    import pandas as pd

    frame = cell.frame[(cell.frame["repeat"] == cell.frame["first_repeat"]).to_numpy()]
    frame = frame[frame["rater"].isin(list(raters)).to_numpy()]
    item, first = np.unique(
        frame["item_key"].astype(str) + "\0" + frame["criterion"].astype(str), return_index=True
    ) if len(frame) else (np.empty(0, dtype=object), np.empty(0, dtype=np.intp))  # fmt: skip
    place = pd.Index(item).get_indexer(pd.Index(frame["item_key"].astype(str) + "\0" + frame["criterion"].astype(str)))
    scores = np.full((len(item), len(raters)), np.nan)
    scores[place, pd.Index(list(raters)).get_indexer(pd.Index(frame["rater"]))] = numbers(frame, cell.scale)
    cluster = pd.factorize(frame["cluster"].to_numpy()[first])[0]
    return scores, np.asarray(cluster, dtype=np.intp), frame.iloc[first]


def panel_means(humans: Floats) -> Floats:
    """(N,) mean of an item's annotators (N, R), NaN where nobody scored it. Level: interval. Source: METHODS 3."""
    n = (~np.isnan(humans)).sum(axis=1)
    return np.where(n > 0, np.nansum(humans, axis=1) / np.maximum(n, 1), np.nan)


def _levelled(estimate: Estimate, cell: Cell) -> Estimate:
    return estimate.with_(level=cell.scale.level)


def _counted(row: Estimate, clusters: int) -> Estimate:
    """One judge, where nothing else is said; shares of more answers than clusters are approximate."""
    if row.is_defined and row.statistic in _OF_JUDGE and not (row.variant or "").startswith("panel_"):
        row = row.with_(speaks_for=THIS_JUDGE)
    row = row.with_(n_raters=row.n_raters or 1, n_clusters=clusters if row.n_clusters is None else row.n_clusters)
    if row.method == WILSON and (row.n_clusters or clusters) < row.n_items:
        return row.with_(method=approximate(WILSON, Message("answers taken for independent")))
    return row


_OF_JUDGE = ("repeat_sd", "flip_rate", "scale_use", "unreadable", "perturbation", "condition_shift")
"""Audits that no annotator enters."""


def _only_numbers(cell: Cell, statistic: str, variant: str | None = None) -> Estimate | None:
    if cell.scale.has_order:
        return None
    return Estimate(statistic=statistic, variant=variant, value=None, reason=_NO_NUMBERS)


def _steadiness(cell: Cell, judge: str, raters: Sequence[str] | None) -> Iterator[Estimate]:
    """Repeats, use of the scale and readable replies of one judge."""
    import pandas as pd

    own = cell.frame[(cell.frame["rater"] == judge).to_numpy()]
    key = pd.factorize(own["item_key"].to_numpy() * cell.frame["criterion"].nunique() + _codes(own["criterion"]))[0]
    repeat, names = pd.factorize(own["repeat"].to_numpy(), sort=True)
    scores = np.full((int(key.max(initial=-1)) + 1, max(len(names), 1)), np.nan)
    scores[key, repeat] = numbers(own, cell.scale)
    cluster = np.zeros(len(scores), dtype=np.intp)
    cluster[key] = _codes(own["cluster"])
    steady = audits.repeat_consistency(scores, cluster)
    yield from (row for row in steady if row.statistic == "flip_rate" or cell.scale.has_order)
    if cell.scale.has_order and cell.scale.is_numeric and cell.scale.q > 1:
        human = cell.frame["rater_kind"].isin(HUMAN_KINDS).to_numpy() & (cell.frame["rater"] != judge).to_numpy()
        if raters is not None:
            human &= cell.frame["rater"].isin(list(raters)).to_numpy()
        panel = cell.frame["score"].to_numpy()[human] if human.any() else None
        of_panel = int(cell.frame["cluster"][human].nunique())
        for row in audits.scale_use(own["score"].to_numpy(), cell.scale.values, panel):
            yield row.with_(n_clusters=of_panel) if (row.variant or "").startswith("panel_") else row
    else:
        yield Estimate(statistic="scale_use", value=None, reason=Message("it needs an ordered scale of numbers"))
    yield audits.unreadable(int(own["missing"].sum()), len(own))


def _codes(column: pd.Series[Any]) -> Codes:
    """A number for each distinct name, none for nothing counting as a name."""
    import pandas as pd

    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.intp)


def _rated_and_not(cell: Cell, judge: str, raters: Sequence[str] | None, length: str | None) -> Iterator[Estimate]:
    """The difference between rated items and items that only the judge scored, and the bias over all items."""
    compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
    sizes = None if length is None else _sizes(compared.rows[length])
    yield from rated_items.rated_differences(compared, sizes)
    yield rated_items.weighted_bias(compared, panel_means(compared.humans))


def _sizes(texts: pd.Series[Any]) -> Floats:
    """A column of numbers as it is; of texts their characters."""
    import pandas as pd

    size = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(size).all():
        size = texts.fillna("").astype(str).str.len().to_numpy(dtype=np.float64)
    return np.asarray(size, dtype=np.float64)


def _verbosity(cell: Cell, judge: str, raters: Sequence[str] | None, length: str) -> Estimate:
    if not cell.scale.has_order:
        return Estimate(statistic="verbosity", value=None, reason=_NO_NUMBERS)
    compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
    size = _sizes(compared.rows[length])
    language = _codes(compared.rows["language"])
    error = compared.judge - panel_means(compared.humans)
    estimate = audits.verbosity(error, size, language)
    clustered = len(np.unique(compared.cluster)) < len(compared.cluster)
    if estimate.method and clustered:
        estimate = estimate.with_(method=approximate(estimate.method, Message("items taken for independent")))
    return estimate


def _self_preference(cell: Cell, families: Mapping[str, str], confidence: float) -> Estimate:
    judges = sorted(families)
    if not cell.scale.has_order:
        return Estimate(statistic="self_preference", value=None, reason=_NO_NUMBERS)
    scores, cluster, rows = matrix(cell, judges)
    column = "generator_family" if "generator_family" in rows else "generator"
    of_item = rows[column].fillna("").astype(str).to_numpy()
    own = np.array([[family == families[judge] for judge in judges] for family in of_item], dtype=bool)
    if not len(scores):
        return Estimate(statistic="self_preference", value=None, reason=Message("none of the judges scored an item"))
    estimate = audits.self_preference(scores, own.reshape(scores.shape), cluster, confidence=confidence)
    return estimate.with_(n_raters=len(judges))


def _conditions(cell: Cell, judges: Sequence[str], raters: Sequence[str] | None) -> Iterator[Estimate]:
    """The first judge beside the others: what changes with the prompt, the temperature or the text."""
    if not cell.scale.has_order:
        yield Estimate(statistic="perturbation", value=None, reason=_NO_NUMBERS)
        return
    humans = sorted(cell.frame["rater"][cell.frame["rater_kind"].isin(HUMAN_KINDS).to_numpy()].unique())
    panel = [name for name in (raters or humans) if name not in judges]
    scores, cluster, _ = matrix(cell, [*judges, *panel])
    k = len(judges)
    for other, name in enumerate(judges[1:], start=1):
        for row in audits.perturbation(scores[:, 0], scores[:, other], cluster):
            yield row.with_(variant=f"{row.variant} {name}", n_raters=2)
    yield from audits.conditions(scores[:, :k], list(judges), panel_means(scores[:, k:]), cluster)


def _conformal(
    cell: Cell, judge: str, raters: Sequence[str] | None, coverage: float, widest: float | None, items: bool
) -> Iterator[Estimate]:
    compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
    panel, points = panel_means(compared.humans), cell.scale.values
    both = ~(np.isnan(panel) | np.isnan(compared.judge))
    base = Estimate(
        statistic="conformal_radius", value=None, n_items=int(both.sum()), n_raters=len(compared.annotators),
        n_ratings=int(compared.n_human[both].sum()), reason=Message("no item has both a judge score and human scores"),
        n_clusters=number_of(compared.cluster[both]),
        confidence=coverage,
    )  # fmt: skip
    half = audits.radius(compared.judge[both], panel[both], compared.cluster[both], confidence=coverage)
    if not np.isfinite(half):
        few = Message(
            "%(clusters)s labelled clusters are too few to promise %(share)s",
            clusters=len(np.unique(compared.cluster[both])),
            share=f"{coverage:.0%}",
        )
        reason = base.reason if not both.any() else few
        yield from (base.with_(statistic=name, reason=reason) for name in CONFORMAL[:3])
        return
    method = Message("split conformal, clusters exchangeable")
    yield base.with_(value=half, reason=None, method=method, interval_reason=Message("it is a bound of its own"))
    new = ~np.isnan(compared.judge) & np.isnan(panel)
    chosen = new if new.any() else ~np.isnan(compared.judge)
    bounds = audits.conformal_intervals(compared.judge[chosen], half, points, snap=cell.scale.level == "ordinal")
    limit = float(np.ptp(points)) / 2 if widest is None else widest
    widths, wide = bounds[:, 1] - bounds[:, 0], audits.for_people(bounds, limit)
    counted = base.with_(
        n_items=int(chosen.sum()),
        n_clusters=number_of(compared.cluster[chosen]),
        note=None if new.any() else Message("of the labelled items: there are no others"),
    )
    why = Message("a description of these items")
    yield counted.with_(statistic="conformal_width", value=float(widths.mean()), reason=None, interval_reason=why)
    share = counted.with_(statistic="for_people", value=float(wide.mean()), reason=None, interval_reason=why)
    yield share.with_(variant=Message("wider than %(limit)s", limit=f"{limit:g}"))
    if items:
        names = compared.rows["item"].to_numpy()[chosen]
        for name, value, (low, high) in zip(names, compared.judge[chosen].tolist(), bounds.tolist(), strict=True):
            yield base.with_(statistic="conformal_interval", variant=str(name), value=value, reason=None, low=low,
                             high=high, method=method, n_items=1, n_clusters=1, n_ratings=0,
                             n_raters=1)  # fmt: skip


def _severity(
    cell: Cell, judge: str, raters: Sequence[str] | None, pivot: str | None
) -> Iterator[tuple[Estimate, str | None]]:
    compared = JudgeAgainstPanel.of(cell, judge, raters=raters)
    language = compared.rows["language"].fillna("").astype(str).to_numpy()
    known = ~np.isnan(compared.judge) & (compared.n_human > 0) & (language != "")
    names = sorted(set(language[known]))
    if pivot in names:
        names = [str(pivot), *(name for name in names if name != pivot)]
    index = np.array([names.index(name) for name in language[known]], dtype=np.intp)
    humans, cluster = compared.humans[known], compared.cluster[known]
    base = Estimate(
        statistic="severity_shift", value=None, reason=_NO_NUMBERS, n_items=int(known.sum()),
        n_raters=len(compared.annotators), n_ratings=int(compared.n_human[known].sum()),
        n_clusters=number_of(compared.cluster[known]),
    )  # fmt: skip
    if not cell.scale.has_order:
        yield base, None
        return
    codes = snapped(compared.judge[known], cell.scale)
    for variant, reference in (
        ("corrected", audits.regressed_means(humans, index)), ("raw", panel_means(humans)),
    ):  # fmt: skip
        result = audits.differential_functioning(codes, reference, index)
        row = base.with_(variant=variant, reason=result.reason or Message("the model could not be fitted"))
        if result.shift is None:
            yield row, None
            continue
        spread = audits.shift_errors(codes, reference, index, cluster)
        for place, (shift, (se, df)) in enumerate(zip(result.shift, spread, strict=True), start=1):
            yield _shifted(row, shift, se, df, names[0]), names[place]
        note = approximate(Message("likelihood ratio"), Message("items taken for independent"))
        for statistic, p in (("severity_uniform", result.p_uniform), ("severity_nonuniform", result.p_nonuniform)):
            yield (
                row.with_(
                    statistic=statistic, value=p, p=p, reason=None, method=note, interval_reason=Message("a p value")
                ),
                None,
            )


def _shifted(row: Estimate, shift: float, se: float, df: int, pivot: str) -> Estimate:
    from scipy.special import stdtr

    from analytics.stats.core.estimates import t_interval

    row = row.with_(
        value=shift,
        reason=None,
        note=joined((Message("against %(pivot)s", pivot=pivot), Message("logits, positive is more lenient"))),
    )
    if not (se > 0 and df >= 1):
        return row.with_(interval_reason=Message("the standard error needs two clusters a language or more"))
    p = 2 * float(stdtr(df, -abs(shift) / se))
    return row.with_(p=p, **t_interval(shift, se, df, method=Message("jackknife t, groups of clusters")).as_changes())


def _seated(
    table: RatingsTable, judges: Sequence[str], rule: str, by: Sequence[str], pool: bool
) -> tuple[RatingsTable, list[CellEstimate]]:
    """The table with a rater ``jury`` added, and per cell the share of items on which the judges settle nothing."""
    import pandas as pd

    if JURY_NAME in set(table.frame["rater"]):
        raise TableError([TableProblem(None, f"a rater is called {JURY_NAME!r} already: rename it")])
    added, unsettled = [], []
    for cell in cells(table, by=by, pool=pool):
        if rule != "majority" and not cell.scale.has_order:
            raise TableError([TableProblem(None, f"--rule {rule}: {_NO_NUMBERS}; a majority is settled by counting")])
        scores, cluster, rows = matrix(cell, judges)
        if not len(scores):
            continue
        verdicts = audits.jury_scores(scores, rule)
        left = np.isnan(verdicts) & ~np.isnan(scores).all(axis=1)
        share = audits.share("jury_unsettled", int(left.sum()), int((~np.isnan(scores).all(axis=1)).sum()), rule,
                             clusters=len(np.unique(cluster)))  # fmt: skip
        unsettled.append(CellEstimate(estimate=share.with_(n_raters=len(judges)), cell=cell_key(cell), judge=JURY_NAME))
        kept, value = rows[~np.isnan(verdicts)], verdicts[~np.isnan(verdicts)]
        code = snapped(value, cell.scale) if len(value) else np.empty(0, dtype=np.intp)
        added.append(kept.assign(
            rater=JURY_NAME, rater_kind="jury", code=code.astype(np.int32), applicable=True, missing=False,
            score=value if cell.scale.is_numeric else np.nan, out_of_range=False, repeat=0, first_repeat=0,
        ))  # fmt: skip
    frame = pd.concat([table.frame, *added], ignore_index=True) if added else table.frame
    return RatingsTable(frame, table.scales, table.notes), unsettled


# --- label recovery --------------------------------------------------------------------------------------------------
def label_recovery(
    labels: Sequence[Mapping[str, str]], recovered: Sequence[Mapping[str, str | None]], cluster: Sequence[int]
) -> list[Estimate]:
    """Share of dialogues whose parameter the judge recovers, for each parameter, then the mean over dialogues.

    ``given`` (N) are the parameters of each dialogue, ``recovered`` (N) the judge's reading; a parameter it doesn't
    name (absent or None) is missing, not wrong. Spelling is compared without case and outer blanks.
    """
    names = sorted({name for parameters in labels for name in parameters})
    hits = np.full((len(labels), len(names)), np.nan)
    for i, (truth, reading) in enumerate(zip(labels, recovered, strict=True)):
        for j, name in enumerate(names):
            if name in truth and (seen := reading.get(name)) is not None:
                hits[i, j] = truth[name].strip().casefold() == seen.strip().casefold()
    where = np.asarray(cluster)
    known = ~np.isnan(hits)
    any_known = known.any(axis=1)
    of_each = [
        _share(hits[known[:, j], j], where[known[:, j]], name, int((~known[:, j]).sum()))
        for j, name in enumerate(names)
    ]
    overall = np.nanmean(hits[any_known], axis=1) if any_known.any() else np.empty(0)
    return [*of_each, _share(overall, where[any_known], "all", int((~any_known).sum()))]


def _share(hits: NDArray[np.float64], cluster: NDArray[np.intp], variant: str, n_missing: int) -> Estimate:
    estimate = classical_mean(hits, cluster).with_(statistic="label_recovery", variant=variant, n_missing=n_missing)
    return estimate if estimate.is_defined else estimate.with_(reason=Message("the judge names this parameter nowhere"))


def recovery_report(
    frame: pd.DataFrame, parameters: Sequence[str], *, prefix: str = "judge_", by: Sequence[str] = ()
) -> list[CellEstimate]:
    """``label_recovery`` of each parameter in every cell of a frame with a row per dialogue.

    The column ``industry`` holds the parameter, ``judge_industry`` (``prefix``) the judge's reading; an empty cell is
    none. ``cluster`` (else ``item``, else the row) is what is independent.
    """
    report = []
    for key, rows in grouped(frame, list(by)):
        labels, read = [], []
        for record in rows.to_dict("records"):
            labels.append({name: text for name in parameters if (text := _text(record[name]))})
            read.append({name: _text(record[prefix + name]) or None for name in parameters})
        owner = next((name for name in ("cluster", "item") if name in rows), None)
        names = rows[owner].astype(str).to_numpy() if owner else np.arange(len(rows))
        cluster = np.unique(names, return_inverse=True)[1]
        cell = dict(zip(by, key, strict=True))
        rows_of_cell = label_recovery(labels, read, cluster.tolist())
        report += [CellEstimate(estimate=row.with_(n_raters=1), cell=cell) for row in rows_of_cell]
    return report


def recovery_by_criterion(table: RatingsTable, *, judge: str, by: Sequence[str]) -> list[CellEstimate]:
    """``label_recovery`` of every parameter: a nominal criterion with the name of an attribute of the items, whose
    values are its labels.
    """
    frame = table.frame
    own = frame[((frame["rater"] == judge) & (frame["repeat"] == frame["first_repeat"])).to_numpy()]
    columns = {key: name for key in table.scales for name in (key, f"attribute_{key}") if name in frame}
    if not columns or own.empty:
        return []
    first = own.groupby("item_key", sort=False).first()
    read = own.pivot_table(index="item_key", columns="criterion", values="score_label", aggfunc="first", dropna=False)
    part = first.assign(
        **{f"parameter_{key}": first[name] for key, name in columns.items()},
        **{f"judge_parameter_{key}": read.get(key) for key in columns},
    )
    names = [f"parameter_{key}" for key in columns]
    rows = recovery_report(part, names, by=[name for name in by if name != "criterion"])
    plain = [row.estimate.with_(variant=(row.estimate.variant or "").removeprefix("parameter_")) for row in rows]
    return [replace(row, judge=judge, estimate=estimate) for row, estimate in zip(rows, plain, strict=True)]


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value).strip()
