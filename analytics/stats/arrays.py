"""Estimates from plain arrays, as a notebook has them; ``analytics.stats`` offers each function here by name.

Scores are numbers or texts, NaN or None where missing. Functions that need a scale take its ``points`` in order and its
``level``; without points the scale is what occurs: whole numbers from least to greatest, other values as they are.
``clusters`` names what is resampled together (the scenario of each item); without it every item stands alone.
``bootstrap=0`` gives closed-form and jackknife intervals only; the same ``seed`` gives the same interval.
The formulas stand with the functions that each of these calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.scales import Level, Scale, Weighting, inferred_scale, scale_of
from analytics.stats.core.tables import codes_on
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import alt_test as alternative_annotators
from analytics.stats.judge import ppi
from analytics.stats.judge.calibration import calibrate, default_reference
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from analytics.stats.ranking import stability

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate, Estimate


def percent_agreement(
    scores: ArrayLike, *, clusters: ArrayLike | None = None, bootstrap: int = 2000, seed: int = 0
) -> Estimate:
    """Share of pairs of raters that agree, the mean over items, of (items, raters) scores.

    Any level. Undefined without an item that two raters scored. Source: ``coefficients.percent_agreement_kernel``.
    """
    return _measured(scores, "percent_agreement", None, None, None, clusters, bootstrap, seed)


def krippendorff_alpha(
    scores: ArrayLike,
    *,
    level: Level | None = None,
    points: Iterable[Any] | None = None,
    clusters: ArrayLike | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Krippendorff's alpha of (items, raters) scores; missing scores allowed.

    ``level``: nominal, ordinal, interval or ratio; without it texts are nominal, whole numbers ordinal, others
    interval. Undefined where one point only is paired. Source: ``coefficients.krippendorff_alpha_kernel``.
    """
    return _measured(scores, "krippendorff_alpha", None, level, points, clusters, bootstrap, seed)


def fleiss_kappa(
    scores: ArrayLike,
    *,
    points: Iterable[Any] | None = None,
    clusters: ArrayLike | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Fleiss' kappa of (items, raters) scores, the number of raters free to differ between items.

    Level: nominal. Undefined where one point only is used. Source: ``coefficients.fleiss_kappa_kernel``.
    """
    return _measured(scores, "fleiss_kappa", None, "nominal", points, clusters, bootstrap, seed)


def gwet_ac(
    scores: ArrayLike,
    *,
    weighting: Weighting = "identity",
    level: Level | None = None,
    points: Iterable[Any] | None = None,
    clusters: ArrayLike | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Gwet's AC1 (``weighting`` "identity") or AC2 of (items, raters) scores.

    It depends on the length of the scale: give its ``points`` when some of them were never used. ValueError for a
    weighting that the level does not allow. Source: ``coefficients.gwet_ac_kernel``.
    """
    return _measured(scores, "gwet_ac", weighting, level, points, clusters, bootstrap, seed)


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    *,
    weighting: Literal["unweighted", "linear", "quadratic"] = "unweighted",
    level: Level | None = None,
    points: Iterable[Any] | None = None,
    clusters: ArrayLike | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Cohen's kappa of two raters' scores (N,), (N,), from the items that both scored.

    ``linear`` and ``quadratic`` need a scale with an order (ValueError). Source: ``coefficients.cohen_kappa_kernel``.
    """
    both = np.column_stack([np.asarray(first, dtype=object), np.asarray(second, dtype=object)])
    return _measured(both, "cohen_kappa", weighting, level, points, clusters, bootstrap, seed)


def calibration(
    judge: ArrayLike,
    humans: ArrayLike,
    *,
    rule: Literal["mode", "median", "mean", "each"] | None = None,
    statistics: Sequence[str] | None = None,
    level: Level | None = None,
    points: Iterable[float] | None = None,
    clusters: ArrayLike | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> dict[str, Estimate]:
    """The judge's scores (N,) against reference labels made of human scores (N, J): figures by their names.

    Numbers only. ``rule`` makes the labels: without it the mode (items with a tied mode are left out and counted), or
    the mean on interval scales. A figure with several variants is named ``statistic/variant``. Scores of the judge
    beyond the ends of the scale are left out. ValueError for a human score that is not on the scale, or for lengths
    that differ. Source: ``judge.association``.
    """
    import pandas as pd

    scored, panel = _judge_and_panel(judge, humans)
    scale = scale_of(points, level) if points is not None else _scale_of_both(scored, panel, level)
    codes_on(panel, scale)
    is_beyond = (scored < scale.values[0]) | (scored > scale.values[-1]) if scale.q else np.zeros(len(scored), bool)
    compared = JudgeAgainstPanel(
        judge=np.where(is_beyond, np.nan, scored),
        humans=panel,
        cluster=_clusters(clusters, len(scored)),
        annotators=_names(panel),
        scale=scale,
        rows=pd.DataFrame(index=range(len(scored))),
        n_out_of_range=int(is_beyond.sum()),
    )
    estimates = calibrate(
        compared, rule=rule or default_reference(scale), statistics=statistics, bootstrap=bootstrap, seed=seed
    )
    return {f"{e.statistic}/{e.variant}" if e.variant else e.statistic: e for e in estimates}


def alt_test(
    judge: ArrayLike,
    humans: ArrayLike,
    *,
    annotators: Sequence[str] = (),
    epsilon: float = 0.15,
    score: alternative_annotators.Score = "rmse",
    min_items: int = 30,
    clusters: ArrayLike | None = None,
) -> alternative_annotators.AltTest:
    """The alternative annotator test of a judge's scores (N,) against human scores (N, J): may it replace one of them?

    ``epsilon``: how much worse it may be for being cheaper (``alt_test.EPSILON``: .20 experts, .15 skilled, .10 crowd).
    ``score`` "accuracy" for labels without distances. Annotators without a name are 1, 2, ...
    Source: ``judge.alt_test``.
    """
    scored, panel = _judge_and_panel(judge, humans)
    names = list(annotators) or list(_names(panel))
    where = _clusters(clusters, len(scored))
    return alternative_annotators.run_alt_test(
        scored, panel, names, epsilon=epsilon, score=score, min_items=min_items, cluster=where
    )


def corrected_mean(
    labels: ArrayLike,
    judge: ArrayLike,
    *,
    variant: Literal["crossfit", "plain"] = "crossfit",
    clusters: ArrayLike | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Mean human score of all N items from labels (N,), NaN where nobody labelled, and the judge's scores (N,) of all.

    Items must have been drawn for labelling at random. ``crossfit``: the judge is calibrated on the other folds; it is
    undefined below 20 labels. ``plain``: PPI++ as published. Items without a score of the judge are left out.
    ValueError for lengths that differ. Source: ``judge.ppi``.
    """
    y, f = np.asarray(labels, dtype=np.float64), np.asarray(judge, dtype=np.float64)
    if y.shape != f.shape:
        raise ValueError(f"{len(y)} labels beside {len(f)} scores of the judge: both have one entry per item")
    where = _clusters(clusters, len(f))
    both, rest = ~np.isnan(y) & ~np.isnan(f), np.isnan(y) & ~np.isnan(f)
    sample = ppi.LabelledSample(y[both], f[both], f[rest], where[both], where[rest])
    if variant == "plain":
        return ppi.ppi_plus_mean(sample, confidence=confidence)
    return ppi.crossfit_mean(sample, rng=np.random.default_rng(seed), confidence=confidence).estimate


def ranking_stability(
    scores: ArrayLike,
    generators: ArrayLike,
    languages: ArrayLike,
    scenarios: ArrayLike,
    *,
    bootstrap: int = 2000,
    seed: int = 0,
) -> list[CellEstimate]:
    """Do languages rank generators alike? From scores (M,) with the generator, language and scenario (M,) of each.

    Means of every generator in every language, then tau-b, Spearman and inversions of every pair of languages.
    Level: interval. Source: ``ranking.stability``.
    """
    import pandas as pd

    frame = pd.DataFrame({"score": scores, "generator": generators, "language": languages, "cluster": scenarios})
    frame = frame.assign(item=[str(number) for number in range(len(frame))], rater="panel", criterion="score")
    table = ratings_table(frame, level="interval", allow_values=True)
    return stability.stability_report(table, bootstrap=bootstrap, seed=seed, paper_compat=False)


def _measured(
    scores: ArrayLike,
    statistic: str,
    variant: str | None,
    level: Level | None,
    points: Iterable[Any] | None,
    clusters: ArrayLike | None,
    bootstrap: int,
    seed: int,
) -> Estimate:
    """``measure`` on a scale of ``points``, or of what occurs in (items, raters) scores."""
    table = np.asarray(scores, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"scores have {table.ndim} dimensions: give an array of (items, raters)")
    known = [score for score in table.ravel() if score is not None and score == score]
    if points is not None:
        scale = scale_of(points, level)
    elif any(isinstance(score, str) for score in known):
        scale = scale_of(sorted(set(known), key=str), level, declared=False)
    else:
        scale = inferred_scale(known, level)
    rng = np.random.default_rng(seed)
    return measure(table, statistic, scale=scale, variant=variant, clusters=clusters, bootstrap=bootstrap, rng=rng)


def _judge_and_panel(judge: ArrayLike, humans: ArrayLike) -> tuple[Floats, Floats]:
    """The judge's scores (N,) and the panel's (N, J) as numbers."""
    scored, panel = np.asarray(judge, dtype=np.float64), np.asarray(humans, dtype=np.float64)
    if scored.ndim != 1 or panel.ndim != 2 or len(scored) != len(panel):
        shapes = f"judge {scored.shape}, humans {panel.shape}"
        raise ValueError(f"{shapes}: the judge has one score per item, people are (items, annotators)")
    return scored, panel


def _scale_of_both(judge: Floats, humans: Floats, level: Level | None) -> Scale:
    """The scale of human scores, long enough for the judge's; fractions of a judge are no points of a whole scale."""
    people, machine = humans[~np.isnan(humans)], judge[~np.isnan(judge)]
    is_whole = bool((people == np.floor(people)).all())
    ends = [np.floor(machine.min()), np.ceil(machine.max())] if is_whole and machine.size else machine
    return inferred_scale([*people, *ends], level)


def _clusters(clusters: ArrayLike | None, n: int) -> Codes:
    """Number of each item's cluster (N,)."""
    return np.arange(n) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]


def _names(panel: Floats) -> tuple[str, ...]:
    """Annotators by their column, counted from 1."""
    return tuple(str(number + 1) for number in range(panel.shape[1]))
