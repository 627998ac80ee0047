"""The trust gate: every decision, the preset thresholds, and what would change it."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.stats.core.estimates import Estimate
from analytics.stats.planning.gate import PRESETS, Decision, Evidence, decide


def known(statistic: str, value: float, low: float, high: float, n: int = 100) -> Estimate:
    return Estimate(statistic=statistic, value=value, low=low, high=high, n_items=n)


GOOD: dict[str, Any] = {
    "n_items": 100,
    "scale_width": 3.0,
    "alpha": known("krippendorff_alpha", 0.5, 0.4, 0.6),
    "ac": known("gwet_ac", 0.6, 0.5, 0.7),
    "alt_test_omega": Estimate(statistic="alt_test_omega", value=1.0),
    "bias": known("bias", 0.05, -0.05, 0.15),
    "readable": Estimate(statistic="readable", value=1.0),
    "flip_rate": Estimate(statistic="flip_rate", value=0.02),
    "ppi_gain": known("ppi_gain", 1.5, 1.2, 1.9),
    "tau_b": known("kendall_tau_b", 0.9, 0.7, 1.0),
}
SKILLED = PRESETS["skilled"]
NO_ALT: dict[str, Any] = {"alt_test_omega": Estimate(statistic="alt_test_omega", value=0.0)}
NO_GAIN: dict[str, Any] = {"ppi_gain": known("ppi_gain", 1.1, 0.9, 1.3)}
CASES: list[tuple[dict[str, Any], Decision]] = [
    ({}, Decision.JUDGE_ALONE),
    ({"stale_because": "the prompt changed"}, Decision.STALE),
    ({"n_items": 29}, Decision.INSUFFICIENT),
    ({"alpha": known("a", 0.0, -0.1, 0.15), "ac": known("b", 0.2, 0.1, 0.3)}, Decision.RUBRIC_PROBLEM),
    ({"alpha": known("a", 0.0, -0.1, 0.15), "ac": known("b", 0.8, 0.7, 0.9)}, Decision.JUDGE_ALONE),
    (NO_ALT, Decision.JUDGE_WITH_CORRECTION),
    ({"bias": known("bias", 0.3, 0.2, 0.4)}, Decision.JUDGE_WITH_CORRECTION),
    ({"readable": Estimate(statistic="readable", value=0.98)}, Decision.JUDGE_WITH_CORRECTION),
    ({"flip_rate": Estimate(statistic="flip_rate", value=0.09)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.5, 0.3, 0.7),)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.3, 0.1, 0.5),)}, Decision.JUDGE_ALONE),
    (NO_ALT | NO_GAIN, Decision.RANKING_ONLY),
    (NO_ALT | NO_GAIN | {"tau_b": known("kendall_tau_b", 0.9, 0.4, 1.0)}, Decision.HUMANS_ONLY),
    ({"alt_test_omega": None, "ppi_gain": None, "tau_b": None}, Decision.HUMANS_ONLY),
]


@pytest.mark.parametrize(("changes", "decision"), CASES)
def test_each_condition_decides(changes: dict[str, Any], decision: Decision) -> None:
    assert decide(Evidence(**(GOOD | changes)), SKILLED).decision is decision


def test_presets_are_those_declared() -> None:
    found = {name: (t.epsilon, t.bias_margin, t.flip_rate) for name, t in PRESETS.items()}
    assert found == {"experts": (0.20, 0.05, 0.05), "skilled": (0.15, 0.075, 0.08), "crowd": (0.10, 0.10, 0.10)}


def test_too_few_items_say_how_many_are_missing() -> None:
    verdict = decide(Evidence(**(GOOD | {"n_items": 12})), SKILLED)
    assert verdict.findings[-1].more_labels == 18


def test_a_wide_bias_interval_says_how_many_labels_would_settle_it() -> None:
    # Margin .075 * 4 = .3; value 0, half width .6: (.6 / .3)^2 * 100 - 100 = 300 more.
    verdict = decide(Evidence(**(GOOD | {"scale_width": 4.0, "bias": known("bias", 0.0, -0.6, 0.6)})), SKILLED)
    (finding,) = verdict.would_change_it
    assert (finding.name, finding.more_labels) == ("bias", 300)


def test_the_verdict_carries_its_thresholds_and_evidence() -> None:
    verdict = decide(Evidence(**GOOD), SKILLED)
    assert verdict.thresholds == "skilled-1"
    assert "0.05 [-0.05, 0.15]" in next(f.text for f in verdict.findings if f.name == "bias")
