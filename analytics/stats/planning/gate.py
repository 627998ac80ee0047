"""The trust gate: may this judge be trusted here, how far, and what would change the answer? (METHODS 7)

One decision per judge configuration, rubric version, criterion and language, from thresholds declared beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil

from analytics.stats.core.estimate import Estimate


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
    """What a project declares before it sees the figures; ``bias_margin`` is a share of the scale's width."""

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


PRESETS = {
    "experts": Thresholds(version="experts-1", epsilon=0.20, bias_margin=0.05, flip_rate=0.05),
    "skilled": Thresholds(version="skilled-1", epsilon=0.15, bias_margin=0.075, flip_rate=0.08),
    "crowd": Thresholds(version="crowd-1", epsilon=0.10, bias_margin=0.10, flip_rate=0.10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about a judge in one cell; an estimate that was not made is None and counts against the judge.

    ``audits`` are effects in points of the scale (perturbation shift, verbosity, self-preference): one is severe when
    its interval lies beyond the bias margin.
    """

    stale_because: str | None = None
    n_items: int
    scale_width: float
    alpha: Estimate | None = None
    ac: Estimate | None = None
    alt_test_omega: Estimate | None = None
    bias: Estimate | None = None
    readable: Estimate | None = None
    flip_rate: Estimate | None = None
    audits: tuple[Estimate, ...] = ()
    ppi_gain: Estimate | None = None
    tau_b: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition: whether it holds, in words with its figure; what would change it, and the labels that takes."""

    name: str
    holds: bool
    text: str
    change: str | None = None
    more_labels: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision and every finding on the way to it."""

    decision: Decision
    thresholds: str
    findings: tuple[Finding, ...] = field(default=())

    @property
    def would_change_it(self) -> list[Finding]:
        """What failed and could be otherwise."""
        return [finding for finding in self.findings if not finding.holds and finding.change]


def decide(evidence: Evidence, thresholds: Thresholds) -> Verdict:
    """The first use whose conditions all hold, from the strictest; the findings of every use asked about."""
    findings: list[Finding] = []
    for decision, questions in _STEPS:
        found = [ask(evidence, thresholds) for ask in questions]
        findings += found
        if all(finding.holds for finding in found):
            return Verdict(decision, thresholds.version, tuple(findings))
    return Verdict(Decision.HUMANS_ONLY, thresholds.version, tuple(findings))


def _is_stale(e: Evidence, t: Thresholds) -> Finding:
    return Finding(
        "stale", bool(e.stale_because), e.stale_because or "judge, prompt and rubric are as they were measured"
    )


def _is_insufficient(e: Evidence, t: Thresholds) -> Finding:
    text = f"{e.n_items} items have two raters or more; {t.fewest_items} are needed"
    return Finding("insufficient", e.n_items < t.fewest_items, text, None, max(0, t.fewest_items - e.n_items))


def _has_rubric_problem(e: Evidence, t: Thresholds) -> Finding:
    """Both upper bounds must be low: alpha alone blames a criterion that is merely skewed."""
    low = _high(e.alpha) < t.alpha_ceiling and _high(e.ac) < t.ac_ceiling
    text = (
        f"upper bounds: alpha {_high(e.alpha):.2f} (below {t.alpha_ceiling}?), AC2 {_high(e.ac):.2f} ({t.ac_ceiling}?)"
    )
    return Finding("rubric_problem", low, text, None)


def _passes_alt_test(e: Evidence, t: Thresholds) -> Finding:
    omega = e.alt_test_omega.value if e.alt_test_omega else None
    holds = omega is not None and omega >= t.omega
    shown = "not known" if omega is None else f"{omega:.0%}"
    return Finding(
        "alt_test", holds, f"beats {shown} of annotators; {t.omega:.0%} are needed", "a better judge or prompt"
    )


def _is_unbiased(e: Evidence, t: Thresholds) -> Finding:
    margin = t.bias_margin * e.scale_width
    holds = e.bias is not None and e.bias.low is not None and -margin < e.bias.low and _high(e.bias) < margin
    text = f"bias {_shown(e.bias)} within +-{margin:.3g}"
    if holds or e.bias is None or e.bias.value is None or abs(e.bias.value) >= margin:
        return Finding("bias", holds, text, "an offset, or another judge")
    return Finding("bias", False, text, "more labels: the bias may lie within the margin", _for_width(e.bias, margin))


def _is_readable(e: Evidence, t: Thresholds) -> Finding:
    value = e.readable.value if e.readable else None
    text = f"{'unknown' if value is None else format(value, '.1%')} of replies readable; {t.readable:.0%} needed"
    return Finding("readable", value is not None and value >= t.readable, text, "a stricter reply format")


def _is_steady(e: Evidence, t: Thresholds) -> Finding:
    value = e.flip_rate.value if e.flip_rate else None
    text = (
        f"{'unknown' if value is None else format(value, '.1%')} of items flip over repeats; at most {t.flip_rate:.0%}"
    )
    return Finding(
        "flip_rate", value is not None and value <= t.flip_rate, text, "repeats at temperature 0, or their median"
    )


def _is_sound(e: Evidence, t: Thresholds) -> Finding:
    margin = t.bias_margin * e.scale_width
    severe = [a.statistic for a in e.audits if a.low is not None and (a.low > margin or _high(a) < -margin)]
    text = f"severe: {', '.join(severe)}" if severe else f"no effect of {len(e.audits)} audits lies beyond the margin"
    return Finding("audits", not severe, text, "a judge without this effect" if severe else None)


def _gains_by_correction(e: Evidence, t: Thresholds) -> Finding:
    low = e.ppi_gain.low if e.ppi_gain else None
    holds = low is not None and low > 1
    text = f"gain of the judge over labels alone {_shown(e.ppi_gain)}, lower bound above 1 needed"
    gain = e.ppi_gain.value if e.ppi_gain else None
    if holds or e.ppi_gain is None or gain is None or gain <= 1:
        return Finding("ppi_gain", holds, text, "a judge that correlates better with the panel")
    return Finding(
        "ppi_gain", False, text, "more labels: the gain may be real", _for_width(e.ppi_gain, gain - 1, centred=True)
    )


def _ranks_alike(e: Evidence, t: Thresholds) -> Finding:
    value, low = (e.tau_b.value, e.tau_b.low) if e.tau_b else (None, None)
    holds = value is not None and low is not None and value >= t.tau_b and low > t.tau_b_low
    text = f"tau-b with the panel {_shown(e.tau_b)}; {t.tau_b} needed, lower bound above {t.tau_b_low}"
    if holds or e.tau_b is None or value is None or value < t.tau_b:
        return Finding("tau_b", holds, text, "a judge that ranks generators as the panel does")
    more = _for_width(e.tau_b, value - t.tau_b_low, centred=True)
    return Finding("tau_b", False, text, "more labels: the ranking may be right", more)


_STEPS: tuple[tuple[Decision, tuple[Callable[[Evidence, Thresholds], Finding], ...]], ...] = (
    (Decision.STALE, (_is_stale,)),
    (Decision.INSUFFICIENT, (_is_insufficient,)),
    (Decision.RUBRIC_PROBLEM, (_has_rubric_problem,)),
    (Decision.JUDGE_ALONE, (_passes_alt_test, _is_unbiased, _is_readable, _is_steady, _is_sound)),
    (Decision.JUDGE_WITH_CORRECTION, (_gains_by_correction,)),
    (Decision.RANKING_ONLY, (_ranks_alike,)),
)


def _high(estimate: Estimate | None) -> float:
    """The upper bound; infinite when it isn't known, so that nothing is blamed for want of data."""
    return float("inf") if estimate is None or estimate.high is None else estimate.high


def _shown(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "unknown"
    bounds = "" if estimate.low is None else f" [{estimate.low:.2f}, {_high(estimate):.2f}]"
    return f"{estimate.value:.2f}{bounds}"


def _for_width(estimate: Estimate, reach: float, *, centred: bool = False) -> int | None:
    """Further labels until the interval around today's value stays within ``reach``: widths fall as 1 / sqrt n."""
    if estimate.value is None or estimate.low is None or not estimate.n_items:
        return None
    half = (_high(estimate) - estimate.low) / 2
    room = reach if centred else reach - abs(estimate.value)
    return max(1, ceil(estimate.n_items * (half / room) ** 2) - estimate.n_items) if room > 0 else None
