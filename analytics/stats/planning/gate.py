"""The trust gate: may this judge be trusted here, how far, and what would change the answer? (METHODS 7)

One decision per judge configuration, rubric version, criterion and language, from thresholds declared beforehand,
with the evidence of each cell and every finding on the way to its decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.stats.agreement import rater_agreement
from analytics.stats.core.estimates import (
    NO_RESAMPLE_DIFFERS,
    NO_UNIT_DIFFERS,
    CellEstimate,
    Estimate,
)
from analytics.stats.core.messages import Message, approximate, joined
from analytics.stats.core.resampling import number_of
from analytics.stats.core.tables import RatingsTable, cells
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA
from analytics.stats.judge import alt_test, audits, calibration, corrected_means, soundness
from analytics.stats.judge.copies import CopiedAnnotator, copied_annotator
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel, cell_key
from analytics.stats.planning.pilot import items_for_alt_test
from analytics.stats.ranking.stability import ranked_generators, ranking_agreement

if TYPE_CHECKING:
    from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel


# --- the decision ----------------------------------------------------------------------------------------------------
class Decision(StrEnum):
    """What the judge may be used for, in the order the gate asks."""

    STALE = "stale"
    INSUFFICIENT = "insufficient"
    RUBRIC_PROBLEM = "rubric_problem"
    JUDGE_ALONE = "judge_alone"
    JUDGE_WITH_CORRECTION = "judge_with_correction"
    RANKING_ONLY = "ranking_only"
    HUMANS_ONLY = "humans_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What a project declares before it sees the figures; ``bias_margin`` is a share of the scale's width.

    ``audits``: those that have to be run before a judge is used alone, besides repeats and readable replies.
    """

    version: str
    epsilon: float
    bias_margin: float
    flip_rate: float
    fewest_items: int = 30
    alpha_ceiling: float = 0.2
    ac_ceiling: float = 0.4
    omega: float = 0.5
    readable: float = 0.99
    tau_b: float = 0.8
    tau_b_low: float = 0.5
    audits: tuple[str, ...] = ("verbosity",)


PRESETS = {
    "experts": Thresholds(version="experts-1", epsilon=0.20, bias_margin=0.05, flip_rate=0.05),
    "skilled": Thresholds(version="skilled-1", epsilon=0.15, bias_margin=0.075, flip_rate=0.08),
    "crowd": Thresholds(version="crowd-1", epsilon=0.10, bias_margin=0.10, flip_rate=0.10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about a judge in one cell; an estimate that was not made is None and counts against the judge.

    ``audits`` are effects in points of the scale (perturbation: what must not matter; verbosity, self-preference): one
    is harmless when its interval lies within the bias margin, severe when it lies beyond, and else not certain.
    ``sensitivity``: how far scores fall with changes that make a text worse. Of the items that the judge scored,
    ``n_items`` have two raters or more, ``n_single`` one, ``n_unrated`` none: those a correction is for.
    ``alt_test_items``: further items with which the alternative annotator test would pass. ``n_generators``: those with
    scores by the judge and by the panel.
    ``copied``: the annotator of whom the judge has nearly all scores.
    """

    stale_because: str | None = None
    n_items: int
    n_single: int = 0
    n_unrated: int | None = None
    n_generators: int | None = None
    alt_test_items: int | None = None
    scale_width: float
    alpha: Estimate | None = None
    ac: Estimate | None = None
    alt_test_omega: Estimate | None = None
    bias: Estimate | None = None
    readable: Estimate | None = None
    flip_rate: Estimate | None = None
    audits: tuple[Estimate, ...] = ()
    sensitivity: tuple[Estimate, ...] = ()
    ppi_gain: Estimate | None = None
    tau_b: Estimate | None = None
    copied: CopiedAnnotator | None = None


MOST_FURTHER_ITEMS = 500
"""With more further items than this, labels are unlikely to change a decision: today's figure is too close to the
threshold, or beyond it, to be planned with."""
FEWEST_GENERATORS = 3
"""Two generators have one order or the other: that is no ranking."""


class FindingState(StrEnum):
    """What is known of a condition; only HOLDS says that it is met.

    NOT_CERTAIN: its interval contains the threshold. NOT_RUN: it has no figure.
    """

    HOLDS = "holds"
    FAILS = "fails"
    NOT_CERTAIN = "not_certain"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class GateFinding:
    """One condition: whether it holds, in words with its figure; what would change it, and the labels that takes.

    ``estimates`` are its figures. ``measured`` is False where there is none: what was not measured does not hold.
    ``gap``: how far the figure is from its threshold, as a share of the threshold; 0 where it holds. ``too_many``:
    it would take more than MOST_FURTHER_ITEMS, so that labels are no advice and their number is not given.
    ``is_certain`` is False where the interval contains the threshold: the condition is neither met nor failed, and
    does not hold. ``more_replies``: about how many further replies of the judge that takes. ``only_severe``: an effect
    of an audit, which stands against a use only where it is severe.
    """

    name: str
    holds: bool
    text: str
    change: str | None = None
    more_labels: int | None = None
    measured: bool = True
    gap: float = 0.0
    estimates: tuple[Estimate, ...] = ()
    too_many: bool = False
    is_certain: bool = True
    more_replies: int | None = None
    only_severe: bool = False

    @property
    def prevents(self) -> bool:
        """Whether it stands against the use that it is asked for."""
        return not self.holds and not (self.only_severe and self.state is FindingState.NOT_CERTAIN)

    @property
    def state(self) -> FindingState:
        if not self.measured:
            return FindingState.NOT_RUN
        if not self.is_certain:
            return FindingState.NOT_CERTAIN
        return FindingState.HOLDS if self.holds else FindingState.FAILS


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The decision and every finding on the way to it; ``others`` are those that it did not need."""

    decision: Decision
    thresholds: str
    findings: tuple[GateFinding, ...] = field(default=())
    others: tuple[GateFinding, ...] = field(default=())

    @property
    def would_change_it(self) -> list[GateFinding]:
        """The findings that stand against a use and could change."""
        return [finding for finding in self.findings if finding.prevents and finding.change]


def decide(evidence: Evidence, thresholds: Thresholds) -> GateVerdict:
    """The first use whose conditions all hold, from the strictest; the findings of every use asked about."""
    findings: list[GateFinding] = []
    decision: Decision | None = None
    asked = 0
    for use, conditions in _STEPS:
        answers = [_capped(finding) for ask in conditions for finding in ask(evidence, thresholds)]
        findings += answers
        if decision is None:
            asked = len(findings)
            decision = use if not any(finding.prevents for finding in answers) else None
    return GateVerdict(
        decision or Decision.HUMANS_ONLY, thresholds.version, tuple(findings[:asked]), tuple(findings[asked:])
    )


def _capped(finding: GateFinding) -> GateFinding:
    """Without a number of labels where it is too large to be advice."""
    if finding.more_labels is None or finding.more_labels <= MOST_FURTHER_ITEMS:
        return finding
    change = f"more than {MOST_FURTHER_ITEMS} further items would be needed: more labels are unlikely to help"
    return replace(finding, change=change, more_labels=None, too_many=True)


Findings = Iterator[GateFinding]
_SENSITIVITY, VERBOSITY = "sensitivity", "verbosity"


def _is_stale(e: Evidence, t: Thresholds) -> Findings:
    text = e.stale_because or "judge, prompt and rubric are as they were measured"
    yield GateFinding("stale", bool(e.stale_because), text)


def _is_insufficient(e: Evidence, t: Thresholds) -> Findings:
    text = f"{e.n_items} items have two raters or more; {t.fewest_items} are needed"
    short = max(0, t.fewest_items - e.n_items)
    yield GateFinding("insufficient", short > 0, text, None, short, gap=short / max(1, t.fewest_items))


def _has_rubric_problem(e: Evidence, t: Thresholds) -> Findings:
    """Both upper bounds must be low: alpha alone blames a criterion that is merely skewed.

    AC2 is undefined on a continuous scale, which has no points to agree on: there alpha decides. The raters certainly
    agree where the lower bound of one of them reaches its threshold; else it is not certain, and nobody is blamed.
    """
    without_ac = e.ac is None or e.ac.value is None
    low = _high(e.alpha) < t.alpha_ceiling and (without_ac or _high(e.ac) < t.ac_ceiling)
    agree = _least(e.alpha) >= t.alpha_ceiling or _least(e.ac) >= t.ac_ceiling
    shown = "not defined" if without_ac else f"{_high(e.ac):.2f} ({t.ac_ceiling}?)"
    text = f"upper bounds: alpha {_high(e.alpha):.2f} (below {t.alpha_ceiling}?), AC2 {shown}"
    figures = _known(e.alpha, e.ac)
    measured = any(figure.value is not None for figure in figures)
    yield GateFinding(
        "rubric_problem", low, text, None, None, measured, estimates=figures, is_certain=low or agree or not measured
    )


def _passes_alt_test(e: Evidence, t: Thresholds) -> Findings:
    """Not certain where the annotators that are beaten are too few, and those that are not ahead are enough."""
    figure, figures = e.alt_test_omega, _known(e.alt_test_omega)
    omega = figure.value if figure else None
    shown = "not known" if omega is None else f"{omega:.0%}"
    text, change = f"beats {shown} of annotators; {t.omega:.0%} are needed", "a better judge or prompt"
    if omega is None:
        yield GateFinding("alt_test", False, text, change, e.alt_test_items, False, 1.0, figures)
        return
    holds = omega >= t.omega
    is_certain = holds or figure is None or figure.high is None or figure.high < t.omega
    gap, more = (0.0, None) if holds else ((t.omega - omega) / t.omega, e.alt_test_items)
    yield GateFinding("alt_test", holds, text, change, more, True, gap, figures, is_certain=is_certain)


def _is_unbiased(e: Evidence, t: Thresholds) -> Findings:
    margin, figures = t.bias_margin * e.scale_width, _known(e.bias)
    text = f"bias {_shown(e.bias)} within +-{margin:.3g}"
    if e.bias is None or e.bias.value is None or e.bias.low is None:
        yield GateFinding("bias", False, text, "an offset, or another judge", None, False, 1.0, figures)
        return
    beyond = max(-e.bias.low, _high(e.bias)) - margin
    holds, gap = beyond < 0, max(0.0, beyond) / margin if margin else 1.0
    is_certain = holds or e.bias.low >= margin or _high(e.bias) <= -margin
    if holds or abs(e.bias.value) >= margin:
        change = "an offset, or another judge"
        yield GateFinding("bias", holds, text, change, None, True, gap, figures, is_certain=is_certain)
        return
    change, more = "more labels: the bias may lie within the margin", _for_reach(e.bias, -margin, margin)
    yield GateFinding("bias", False, text, change, more, True, gap, figures, is_certain=False)


def _is_readable(e: Evidence, t: Thresholds) -> Findings:
    """The whole interval has to lie at or above the threshold: 381 replies, all readable, are certain of 99 %."""
    figure = e.readable if e.readable is not None and e.readable.value is not None else None
    value, low, high = _bounds(figure)
    text = f"{_percent(figure)} of replies readable; lower bound {t.readable:.0%} needed"
    holds = low is not None and low >= t.readable
    is_certain = holds or high is None or high < t.readable
    more = _replies_until(lambda n: _wilson_low(value or 0.0, n) >= t.readable, figure) if not is_certain else None
    change = "more replies: the share may be high enough" if more else "a stricter reply format"
    gap = 0.0 if holds or low is None else t.readable - low
    yield GateFinding(
        "readable", holds, text, change, None, figure is not None, gap, _known(e.readable),
        is_certain=is_certain, more_replies=more,
    )  # fmt: skip


def _is_steady(e: Evidence, t: Thresholds) -> Findings:
    """Known from as many repeated items as a decision needs; the whole interval lies at or below the threshold."""
    repeated = e.flip_rate.n_items if e.flip_rate else 0
    enough = e.flip_rate is not None and e.flip_rate.value is not None and repeated >= t.fewest_items
    figure = e.flip_rate if enough else None
    value, low, high = _bounds(figure)
    text = f"{_percent(figure)} of items flip over repeats; upper bound {t.flip_rate:.0%} at most"
    if figure is None and repeated:
        text += f" ({repeated} items have repeats; {t.fewest_items} are needed)"
    holds = high is not None and high <= t.flip_rate
    is_certain = holds or low is None or low > t.flip_rate
    more = _replies_until(lambda n: _wilson_high(value or 0.0, n) <= t.flip_rate, figure) if not is_certain else None
    gap = 0.0 if holds or high is None else (high - t.flip_rate) / max(t.flip_rate, 0.01)
    change = "repeats at temperature 0, or their median" if figure is not None else "repeats of the judge: not run"
    if more:
        change = "more items with repeats: the share may be low enough"
    yield GateFinding(
        "flip_rate", holds, text, change, None, figure is not None, gap, _known(e.flip_rate),
        is_certain=is_certain, more_replies=more,
    )  # fmt: skip


def _bounds(figure: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if figure is None else (figure.value, figure.low, figure.high)


def _percent(figure: Estimate | None) -> str:
    if figure is None or figure.value is None:
        return "unknown"
    bounds = "" if figure.low is None else f" [{figure.low:.1%}, {_high(figure):.1%}]"
    return f"{figure.value:.1%}{bounds}"


Z = 1.959964


def _wilson_low(p: float, n: int) -> float:
    return (p + Z**2 / (2 * n) - Z * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))) / (1 + Z**2 / n)


def _wilson_high(p: float, n: int) -> float:
    return (p + Z**2 / (2 * n) + Z * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))) / (1 + Z**2 / n)


def _replies_until(is_enough: Callable[[int], bool], figure: Estimate | None) -> int | None:
    """Further items until Wilson's bound around today's share is enough, by bisection; None where 100,000 are not."""
    n = figure.n_items if figure else 0
    if not n or not is_enough(MOST_REPLIES):
        return None
    low, high = n, MOST_REPLIES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return max(1, high - n)


MOST_REPLIES = 100_000


def _is_no_copy(e: Evidence, t: Thresholds) -> Findings:
    """Fails where the judge has nearly the scores of one annotator: then the panel is compared with itself."""
    if e.copied is None:
        return
    share = e.copied
    text = (
        f"its scores are those of {share.annotator} on {share.n_same} of {share.n_items} items; other pairs of "
        f"annotators agree on {share.others:.0%} at most"
    )
    yield GateFinding("copy", False, text, f"compare it without {share.annotator}", None, True, 1.0)


def _is_sound(e: Evidence, t: Thresholds) -> Findings:
    """A finding for each audit that is asked for or was run: one that was not run does not hold.

    An effect is harmless where its whole interval lies within the margin, and severe where it lies beyond (METHODS 7):
    only that stands against the use. Where the interval lies partly beyond, the condition is not met, but not certain.
    """
    margin = t.bias_margin * e.scale_width
    for name in dict.fromkeys((*t.audits, *(audit.statistic for audit in e.audits))):
        if name == _SENSITIVITY:
            continue
        effects = tuple(audit for audit in e.audits if audit.statistic == name)
        measured = bool(effects) and all(_has_bounds(audit) for audit in effects)
        if not measured:
            yield GateFinding(name, False, f"{name}: not run", f"run the audit: {name}", None, False, 0.0, effects)
            continue
        reach = max(max(-a.low, _high(a)) if a.low is not None else 0.0 for a in effects) - margin
        beyond = max(max(a.low, -_high(a)) if a.low is not None else 0.0 for a in effects) - margin
        is_severe, is_within = bool(beyond > 0), bool(reach <= 0)
        place = "within" if is_within else "beyond" if is_severe else "partly beyond"
        text = f"{name} {', '.join(map(_shown, effects))} lies {place} +-{margin:.3g}"
        gap = max(0.0, reach) / margin if margin else float(not is_within)
        change = "a judge without this effect" if is_severe else "more items: the effect may lie within the margin"
        further = [_for_reach(effect, -margin, margin) for effect in effects] if name == VERBOSITY else []
        more = max((items for items in further if items), default=None) if not is_within and all(further) else None
        yield GateFinding(
            name, is_within, text, change, more, True, gap, effects, is_certain=is_severe or is_within, only_severe=True
        )


def _is_sensitive(e: Evidence, t: Thresholds) -> Findings:
    """Holds where one of these changes lowers scores by the margin at least, by its whole interval.

    Fails where every interval lies below the margin: no change that makes the text worse is known to matter.
    """
    if not e.sensitivity and _SENSITIVITY not in t.audits:
        return
    margin = t.bias_margin * e.scale_width
    known = [drop for drop in e.sensitivity if drop.low is not None and drop.high is not None]
    if not known:
        yield GateFinding(
            _SENSITIVITY, False, f"{_SENSITIVITY}: not run", "run the audit", None, False, 0.0, e.sensitivity
        )
        return
    most = max(known, key=lambda drop: (_low(drop) >= margin, _high(drop)))
    is_enough, may_be = _low(most) >= margin, _high(most) >= margin
    text = f"strongest fall with a worse text {_shown(most)}; {margin:.3g} or more is needed"
    gap = 0.0 if is_enough or not margin else max(0.0, margin - _low(most)) / margin
    change = "more items: the fall may be large enough" if may_be else "a judge that reads the text"
    figures = (most, *(drop for drop in e.sensitivity if drop is not most))
    is_certain = is_enough or not may_be
    yield GateFinding(
        _SENSITIVITY, is_enough, text, change, None, True, gap, figures, is_certain=is_certain, only_severe=True
    )


def _gains_by_correction(e: Evidence, t: Thresholds) -> Findings:
    low = e.ppi_gain.low if e.ppi_gain else None
    holds, measured = low is not None and low > 1, low is not None
    text = f"gain of the judge over labels alone {_shown(e.ppi_gain)}, lower bound above 1 needed"
    gain, figures = e.ppi_gain.value if e.ppi_gain else None, _known(e.ppi_gain)
    gap = 0.0 if holds else 1 - low if low is not None else 1.0
    if e.n_unrated == 0 and not holds:
        text = "people have rated every item that the judge scored: there is nothing to correct"
        yield GateFinding("ppi_gain", False, text, "items that only the judge scores", None, False, gap, figures)
        return
    if holds or e.ppi_gain is None or gain is None or gain <= 1:
        change, is_certain = "a judge that correlates better with the panel", holds or not _high(e.ppi_gain) > 1
        yield GateFinding(
            "ppi_gain", holds, text, change, None, measured, gap, figures, is_certain=is_certain or not measured
        )
        return
    more = _for_reach(e.ppi_gain, 1.0, float("inf"))
    change = "more labels: the gain may be real"
    yield GateFinding("ppi_gain", False, text, change, more, measured, gap, figures, is_certain=not measured)


def _ranks_alike(e: Evidence, t: Thresholds) -> Findings:
    value, low = (e.tau_b.value, e.tau_b.low) if e.tau_b else (None, None)
    holds = value is not None and low is not None and value >= t.tau_b and low > t.tau_b_low
    text = f"tau-b with the panel {_shown(e.tau_b)}; {t.tau_b} needed, lower bound above {t.tau_b_low}"
    figures = _known(e.tau_b)
    if e.n_generators is not None and e.n_generators < FEWEST_GENERATORS:
        text = f"a ranking needs at least {FEWEST_GENERATORS} generators; this cell has {e.n_generators}"
        yield GateFinding("tau_b", False, text, "items of more generators", None, False, 1.0, figures)
        return
    gap = 0.0 if holds else 1.0 if value is None or low is None else max(t.tau_b - value, t.tau_b_low - low, 0.0)
    if holds or e.tau_b is None or value is None or value < t.tau_b:
        change, is_certain = "a judge that ranks generators as the panel does", holds or _high(e.tau_b) < t.tau_b
        yield GateFinding(
            "tau_b", holds, text, change, None, low is not None, gap, figures, is_certain=is_certain or low is None
        )
        return
    more = _for_reach(e.tau_b, t.tau_b_low, float("inf"))
    yield GateFinding(
        "tau_b", False, text, "more labels: the ranking may be right", more, low is not None, gap, figures,
        is_certain=low is None,
    )  # fmt: skip


_STEPS: tuple[tuple[Decision, tuple[Callable[[Evidence, Thresholds], Findings], ...]], ...] = (
    (Decision.STALE, (_is_stale,)),
    (Decision.INSUFFICIENT, (_is_insufficient,)),
    (Decision.RUBRIC_PROBLEM, (_has_rubric_problem,)),
    (
        Decision.JUDGE_ALONE,
        (_is_no_copy, _passes_alt_test, _is_unbiased, _is_readable, _is_steady, _is_sound, _is_sensitive),
    ),
    (Decision.JUDGE_WITH_CORRECTION, (_gains_by_correction,)),
    (Decision.RANKING_ONLY, (_ranks_alike,)),
)


def _has_bounds(audit: Estimate) -> bool:
    """Whether an effect has an interval; one of exactly nothing, as of a judge without errors, needs none."""
    return audit.low is not None or audit.value == 0


def _known(*estimates: Estimate | None) -> tuple[Estimate, ...]:
    return tuple(estimate for estimate in estimates if estimate is not None)


def _high(estimate: Estimate | None) -> float:
    """The upper bound; infinite when it isn't known, so that nothing is blamed for want of data."""
    return float("inf") if estimate is None or estimate.high is None else estimate.high


def _least(estimate: Estimate | None) -> float:
    """The lower bound; the value itself where it is the same in 30 clusters or more, and minus infinity if unknown."""
    if estimate is None or estimate.value is None:
        return -float("inf")
    if estimate.low is None and estimate.interval_reason in SAME_EVERYWHERE:
        return estimate.value if (estimate.n_clusters or 0) >= alt_test.FEW_ITEMS else -float("inf")
    return _low(estimate)


def _low(estimate: Estimate) -> float:
    return -float("inf") if estimate.low is None else estimate.low


def _shown(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "unknown"
    bounds = "" if estimate.low is None else f" [{estimate.low:.2f}, {_high(estimate):.2f}]"
    return f"{estimate.value:.2f}{bounds}"


def _for_reach(estimate: Estimate, low: float, high: float) -> int | None:
    """Further labels until the interval around today's value lies within low and high: widths fall as 1 / sqrt n."""
    if estimate.value is None or estimate.low is None or not estimate.n_items:
        return None
    reach = (estimate.value - low, high - estimate.value)
    if min(reach) <= 0:
        return None
    widest = max((estimate.value - estimate.low) / reach[0], (_high(estimate) - estimate.value) / reach[1])
    return max(1, ceil(estimate.n_items * widest**2 - 1e-9) - estimate.n_items)


# --- its evidence ----------------------------------------------------------------------------------------------------
Key = tuple[tuple[str, str | None], ...]

STATISTICS = ("gate_decision", "gate_finding", "ranking_tau_b")
STATE_WORDS = {
    FindingState.HOLDS: "holds",
    FindingState.FAILS: "does not hold",
    FindingState.NOT_CERTAIN: "not certain",
    FindingState.NOT_RUN: "does not hold",
}
WITHOUT_ANSWER = {
    FindingState.NOT_CERTAIN: Message("not certain: the interval contains the threshold"),
    FindingState.NOT_RUN: Message("not measured"),
}
"""Why a condition is neither met nor failed."""
SAME_EVERYWHERE = (NO_UNIT_DIFFERS, NO_RESAMPLE_DIFFERS)
BIAS: dict[str, Any] = {"statistics": ("bias",), "reference": "mean"}
"""A mode would leave out the items on which the panel is tied: those on which a bias matters most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedCell:
    """What the gate decides in one cell, from which evidence; ``counts`` are those of the items that it rests on.

    ``unscored``: of the items with two raters or more and no score by the judge, the names by the reason: that of its
    row, out_of_range, not_applicable, or none where it has no row.
    """

    cell: dict[str, str | None]
    evidence: Evidence
    verdict: GateVerdict
    counts: Mapping[str, int]
    unscored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def gate_report(
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

    The value of a finding is 1 where its condition holds and 0 where it fails, undefined where it is not certain or not
    measured; its note has the figure, what would change it and how many more labels that takes. ``stale_because`` says
    that judge, prompt or rubric have changed.
    """
    gated = gated_cells(
        table, thresholds, judge=judge, by=by, raters=raters, length=length, stale_because=stale_because,
        bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    report: list[CellEstimate] = []
    for each in gated:
        rows = [*_rows(each.verdict, each.counts), *_known(each.evidence.tau_b)]
        report += [CellEstimate(estimate=row, cell=each.cell, judge=judge) for row in rows]
    return report


def gated_cells(
    table: RatingsTable,
    thresholds: Thresholds,
    *,
    judge: str,
    by: Sequence[str] = ("language", "criterion"),
    raters: Sequence[str] | None = None,
    length: str | None = None,
    stale_because: str | None = None,
    failed_calls: Mapping[tuple[str | None, str | None], int] | None = None,
    families: Mapping[str, str] | None = None,
    expects: Mapping[str, str] | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
) -> list[GatedCell]:
    """The decision of every cell with its evidence. ``length``: a column of numbers or texts, for verbosity.

    ``failed_calls``: by criterion and language, the judge's calls that have no row, for no reply came. ``families`` as
    in ``audit_report``. ``expects``: by change that the table knows scores after (``perturbed``), what a sound judge
    does with it: fall, same or no_rise.
    """
    chosen = table if raters is None else table.only(rater=[*raters, judge])
    failed, expects = failed_calls or {}, expects or {}
    shared: dict[str, Any] = {"judge": judge, "by": by, "bootstrap": bootstrap, "seed": seed}
    estimates = _cell_estimates(
        chosen, thresholds, length=length, families=families, perturbed_too=bool(expects), **shared
    )
    by_cell: dict[Key, list[CellEstimate]] = {}
    for estimate in estimates:
        by_cell.setdefault(_key(estimate.cell), []).append(estimate)
    gated: list[GatedCell] = []
    for cell in cells(chosen, by=by):
        key, compared = cell_key(cell), JudgeAgainstPanel.of(cell, judge)
        place = key.get("criterion") or None, key.get("language") or None
        judged = ~np.isnan(compared.judge)
        paired = (compared.n_human >= 2) & judged
        evidence = replace(
            _evidence(by_cell.get(_key(key), []), expects),
            stale_because=stale_because,
            n_items=int(paired.sum()),
            n_single=int(((compared.n_human == 1) & judged).sum()),
            n_unrated=int(((compared.n_human == 0) & judged).sum()),
            n_generators=len(np.unique(ranked_generators(compared)[1])),
            scale_width=_width(compared),
            readable=soundness.readable(cell, judge, failed.get(place, 0)),
            tau_b=ranking_agreement(compared, bootstrap=bootstrap, seed=seed),
            alt_test_items=items_for_alt_test(compared, epsilon=thresholds.epsilon, omega=thresholds.omega)
            if cell.has_persons
            else None,
            copied=copied_annotator(compared) if cell.has_persons else None,
        )
        counts = {
            "n_items": evidence.n_items,
            "n_clusters": number_of(compared.cluster[paired]),
            "n_raters": len(compared.annotators),
            "n_ratings": int(compared.n_human.sum()),
        }
        verdict, unscored = decide(evidence, thresholds), soundness.unscored(cell, judge, compared)
        gated.append(GatedCell(cell=key, evidence=evidence, verdict=verdict, counts=counts, unscored=unscored))
    return gated


def _cell_estimates(
    table: RatingsTable,
    thresholds: Thresholds,
    *,
    length: str | None,
    families: Mapping[str, str] | None,
    perturbed_too: bool,
    bootstrap: int,
    **shared: Any,
) -> list[CellEstimate]:
    """The estimates that the decisions use, by cell: agreement, alternative annotators, bias, correction, audits."""
    drawn = {**shared, "bootstrap": bootstrap}
    among = {"by": shared["by"], "seed": shared["seed"], "bootstrap": bootstrap}
    return [
        *rater_agreement.agreement_report(table, statistics=(KRIPPENDORFF_ALPHA, GWET_AC), **among),
        *alt_test.alt_test_report(table, epsilon=thresholds.epsilon, bootstrap=0, **shared),
        *calibration.calibration_report(table, **BIAS, **drawn),
        *corrected_means.correction_report(table, statistics=("ppi_gain",), **shared),
        *soundness.audit_report(table, judge=shared["judge"], by=shared["by"], length=length, families=families),
        *(audits.perturbation_report(table, **drawn) if perturbed_too else ()),
    ]


def _key(cell: dict[str, str | None]) -> Key:
    return tuple(sorted((column, value or None) for column, value in cell.items()))


def _width(compared: JudgeAgainstPanel) -> float:
    return float(np.ptp(compared.scale.values)) if compared.scale.q else 0.0


def _evidence(rows: Sequence[CellEstimate], expects: Mapping[str, str]) -> Evidence:
    """The evidence from the reports of one cell; the caller sets its counts."""

    def named(statistic: str, *variants: str | None) -> Estimate | None:
        of_cell = [row.estimate for row in rows if row.estimate.statistic == statistic and row.annotator is None]
        for variant in variants or (None,):
            for estimate in of_cell:
                if variant is None or estimate.variant == variant:
                    return estimate
        return None

    effects = [row.estimate for row in rows if row.estimate.statistic in EFFECTS and row.estimate.is_defined]
    drops, moved = audits.by_expectation([row.estimate for row in rows], expects)
    return Evidence(
        n_items=0,
        scale_width=0.0,
        alpha=named(KRIPPENDORFF_ALPHA),
        ac=named(GWET_AC, "quadratic", "identity"),
        alt_test_omega=named("alt_test_omega"),
        bias=_against_the_mean(named("bias")),
        flip_rate=named("flip_rate"),
        audits=(*effects, *moved),
        sensitivity=drops,
        ppi_gain=named("ppi_gain"),
    )


EFFECTS = ("verbosity", "self_preference")


def _against_the_mean(bias: Estimate | None) -> Estimate | None:
    """With its reference in its method. The same difference in 30 clusters or more is its own interval (METHODS 3)."""
    if bias is None or bias.value is None:
        return bias
    if bias.interval_reason in SAME_EVERYWHERE and (bias.n_clusters or 0) >= alt_test.FEW_ITEMS:
        method = approximate(Message("constant"), Message("every item has the same difference"))
        bias = bias.with_(low=bias.value, high=bias.value, confidence=0.95, method=method, interval_reason=None)
    return bias.with_(method=joined((bias.method, Message("reference: mean of the panel")))) if bias.method else bias


def _rows(verdict: GateVerdict, counts: Mapping[str, int]) -> list[Estimate]:
    why = Message("a decision from thresholds, not a figure")
    decision = Estimate(
        statistic="gate_decision", variant=str(verdict.decision), value=1.0, interval_reason=why,
        method=Message("thresholds %(names)s", names=verdict.thresholds), **counts,  # type: ignore[arg-type]
    )  # fmt: skip
    findings = []
    for finding in verdict.findings:
        change = f"; would change it: {finding.change}" if finding.change and not finding.holds else ""
        more = f" ({finding.more_labels} more labels)" if finding.more_labels else ""
        if finding.more_replies:
            more = f" (about {finding.more_replies} more)"
        note, unknown = f"{STATE_WORDS[finding.state]}: {finding.text}{change}{more}", WITHOUT_ANSWER.get(finding.state)
        value = None if unknown else float(finding.holds)
        findings.append(
            Estimate(statistic="gate_finding", variant=finding.name, value=value, reason=unknown, note=note,
                     interval_reason=None if unknown else why, **counts)  # type: ignore[arg-type]
        )  # fmt: skip
    return [decision, *findings]
