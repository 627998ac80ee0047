"""The trust gate from a file of ratings: the evidence of each cell, its decision and every finding on the way to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.agreement import among_raters
from analytics.stats.core.clusters import number_of
from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.intervals import percentile
from analytics.stats.core.resampling import resampled_sums
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.judge import alt_test, calibration, corrected_means, soundness
from analytics.stats.judge.paired_scores import key_of, meet
from analytics.stats.planning.gate import Evidence, Thresholds, Verdict, decide
from analytics.stats.ranking.concordance import rank_pairs, tau_b

if TYPE_CHECKING:
    from analytics.stats.judge.paired_scores import Meeting

Floats = NDArray[np.float64]
Key = tuple[tuple[str, str | None], ...]

STATISTICS = ("gate_decision", "gate_finding", "ranking_tau_b")
HOLDS, FAILS = "holds", "does not hold"


def report(
    table: RatingsTable,
    thresholds: Thresholds,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    length: str | None = None,
    stale_because: str | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> list[CellEstimate]:
    """``gate_decision`` of every cell (variant: the decision), then a ``gate_finding`` per condition asked about.

    The value of a finding is 1 where its condition holds and 0 where it does not; its note has the figure, what would
    change it and how many more labels that takes. ``stale_because`` says that judge, prompt or rubric have changed.
    """
    chosen = table if raters is None else table.only(rater=[*raters, judge])
    shared = {"by": by, "seed": seed}
    estimates = [
        *among_raters.report(chosen, statistics=("krippendorff_alpha", "gwet_ac"), bootstrap=bootstrap, **shared),  # type: ignore[arg-type]
        *alt_test.report(chosen, judge=judge, epsilon=thresholds.epsilon, bootstrap=0, **shared),  # type: ignore[arg-type]
        *calibration.report(chosen, judge=judge, statistics=("bias",), bootstrap=bootstrap, **shared),  # type: ignore[arg-type]
        *corrected_means.report(chosen, judge=judge, statistics=("ppi_gain",), **shared),  # type: ignore[arg-type]
        *soundness.audit_report(chosen, judge=judge, by=by, length=length),
    ]
    by_cell: dict[Key, list[CellEstimate]] = {}
    for estimate in estimates:
        by_cell.setdefault(_key(estimate.cell), []).append(estimate)
    found: list[CellEstimate] = []
    for cell in cells(chosen, by=by):
        key, meeting = key_of(cell), meet(cell, judge)
        tau = ranking_agreement(meeting, bootstrap=bootstrap, seed=seed)
        paired = meeting.n_human >= 2
        evidence = _evidence(by_cell.get(_key(key), []), tau, stale_because, int(paired.sum()), _width(meeting))
        verdict = decide(evidence, thresholds)
        counts = {
            "n_items": evidence.n_items,
            "n_clusters": number_of(meeting.cluster[paired]),
            "n_raters": len(meeting.annotators),
            "n_ratings": int(meeting.n_human.sum()),
        }
        rows = [*_rows(verdict, counts), tau]
        found += [CellEstimate(estimate=row, cell=key, judge=judge) for row in rows]
    return found


def ranking_agreement(meeting: Meeting, *, bootstrap: int = 2000, seed: int = 0) -> Estimate:
    """``ranking_tau_b``: Kendall's tau-b of the generators' means by the judge and by the panel, on the same items.

    Clusters are resampled. Level: interval. Undefined below two generators or where one side ties them all. Source:
    METHODS 7; Kendall 1945, doi:10.1093/biomet/33.3.239.
    """
    panel = soundness.panel_means(meeting.humans)
    generator = meeting.rows["generator"].fillna("").astype(str).to_numpy()
    both = ~(np.isnan(panel) | np.isnan(meeting.judge)) & (generator != "")
    names, who = np.unique(generator[both], return_inverse=True)
    clusters, where = np.unique(meeting.cluster[both], return_inverse=True)
    base = Estimate(
        statistic="ranking_tau_b", value=None, level=meeting.scale.level, n_items=int(both.sum()),
        n_raters=len(meeting.annotators), n_clusters=len(clusters), n_ratings=int(meeting.n_human[both].sum()),
        reason="fewer than two generators have scores by the judge and by the panel",
    )  # fmt: skip
    if len(names) < 2 or not meeting.scale.has_order:
        return base if meeting.scale.has_order else base.with_(reason="a nominal scale ranks nothing")
    g = len(names)
    flat = where * g + who
    sums = [
        np.bincount(flat, weights=weights, minlength=len(clusters) * g).reshape(len(clusters), g)
        for weights in (meeting.judge[both], panel[both], np.ones(int(both.sum())))
    ]
    value = float(_taus(np.hstack([part.sum(axis=0, keepdims=True) for part in sums]), g)[0])
    if np.isnan(value):
        return base.with_(reason="the judge or the panel gives all generators the same mean")
    found = base.with_(value=value, reason=None, note=f"{g} generators")
    if not bootstrap or len(clusters) < 2:
        return found.with_(interval_reason="an interval needs resampling and two clusters")
    draws = _taus(resampled_sums(np.hstack(sums), resamples=bootstrap, rng=np.random.default_rng(seed)), g)
    return found.with_(seed=seed, **percentile(draws).as_changes())


def _taus(sums: Floats, g: int) -> Floats:
    """(B,) tau-b of means from (B, 3 g) sums of judge, panel and numbers of items."""
    judge, panel, n = np.split(sums, 3, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.stack([judge / n, panel / n], axis=-1)
    signs = np.nan_to_num(rank_pairs(means))
    return tau_b(signs[..., 0], signs[..., 1])


def _key(cell: dict[str, str | None]) -> Key:
    return tuple(sorted((column, value or None) for column, value in cell.items()))


def _width(meeting: Meeting) -> float:
    return float(np.ptp(meeting.scale.values)) if meeting.scale.q else 0.0


def _evidence(
    rows: Sequence[CellEstimate], tau: Estimate, stale_because: str | None, n_items: int, width: float
) -> Evidence:
    def named(statistic: str, *variants: str | None) -> Estimate | None:
        of_cell = [row.estimate for row in rows if row.estimate.statistic == statistic and row.annotator is None]
        for variant in variants or (None,):
            for estimate in of_cell:
                if variant is None or estimate.variant == variant:
                    return estimate
        return None

    unreadable = named("unreadable")
    readable = None
    if unreadable is not None and unreadable.value is not None:
        readable = unreadable.with_(statistic="readable", value=1 - unreadable.value)
    effects = [row.estimate for row in rows if row.estimate.statistic == "verbosity" and row.estimate.is_defined]
    return Evidence(
        stale_because=stale_because,
        n_items=n_items,
        scale_width=width,
        alpha=named("krippendorff_alpha"),
        ac=named("gwet_ac", "quadratic", "identity"),
        alt_test_omega=named("alt_test_omega"),
        bias=named("bias"),
        readable=readable,
        flip_rate=named("flip_rate"),
        audits=tuple(effects),
        ppi_gain=named("ppi_gain"),
        tau_b=tau,
    )


def _rows(verdict: Verdict, counts: Mapping[str, int]) -> list[Estimate]:
    why = "a decision from thresholds, not a figure"
    decision = Estimate(
        statistic="gate_decision", variant=str(verdict.decision), value=1.0, method=f"thresholds {verdict.thresholds}",
        interval_reason=why, **counts,  # type: ignore[arg-type]
    )  # fmt: skip
    findings = []
    for finding in verdict.findings:
        change = f"; would change it: {finding.change}" if finding.change and not finding.holds else ""
        more = f" ({finding.more_labels} more labels)" if finding.more_labels else ""
        note = f"{HOLDS if finding.holds else FAILS}: {finding.text}{change}{more}"
        findings.append(
            Estimate(statistic="gate_finding", variant=finding.name, value=float(finding.holds), note=note,
                     interval_reason=why, **counts)  # type: ignore[arg-type]
        )  # fmt: skip
    return [decision, *findings]
