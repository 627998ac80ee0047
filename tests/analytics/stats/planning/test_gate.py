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
    "audits": (known("verbosity", 0.0, -0.1, 0.1),),
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
    ({"audits": ()}, Decision.JUDGE_WITH_CORRECTION),  # what was not run does not pass
    ({"audits": (Estimate(statistic="verbosity", value=None, reason="no lengths"),)}, Decision.JUDGE_WITH_CORRECTION),
    ({"flip_rate": None}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (*GOOD["audits"], known("self_preference", 0.5, 0.3, 0.7))}, Decision.JUDGE_WITH_CORRECTION),
    # Boundary values: at the threshold a share passes; an interval has to lie within, not on, its margin (.225).
    ({"n_items": 30}, Decision.JUDGE_ALONE),
    ({"alt_test_omega": Estimate(statistic="alt_test_omega", value=0.5)}, Decision.JUDGE_ALONE),
    ({"readable": Estimate(statistic="readable", value=0.99)}, Decision.JUDGE_ALONE),
    ({"flip_rate": Estimate(statistic="flip_rate", value=0.08)}, Decision.JUDGE_ALONE),
    ({"bias": known("bias", 0.1, 0.0, 0.224999)}, Decision.JUDGE_ALONE),
    ({"bias": known("bias", 0.1, 0.0, 0.225)}, Decision.JUDGE_WITH_CORRECTION),
    ({"bias": known("bias", -0.1, -0.225, 0.0)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.3, 0.2249, 0.5),)}, Decision.JUDGE_ALONE),
    ({"audits": (known("verbosity", 0.3, 0.226, 0.5),)}, Decision.JUDGE_WITH_CORRECTION),
    (NO_ALT | {"ppi_gain": known("ppi_gain", 1.5, 1.0, 1.9)}, Decision.RANKING_ONLY),
    (NO_ALT | NO_GAIN | {"tau_b": known("kendall_tau_b", 0.8, 0.51, 1.0)}, Decision.RANKING_ONLY),
    (NO_ALT | NO_GAIN | {"tau_b": known("kendall_tau_b", 0.8, 0.5, 1.0)}, Decision.HUMANS_ONLY),
    ({"alpha": known("a", 0.0, -0.1, 0.2), "ac": known("b", 0.2, 0.1, 0.3)}, Decision.JUDGE_ALONE),
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
    assert (finding.measured, finding.gap) == (True, 1.0)
    assert (finding.name, finding.more_labels) == ("bias", 300)


def test_the_verdict_carries_its_thresholds_and_evidence() -> None:
    verdict = decide(Evidence(**GOOD), SKILLED)
    assert verdict.thresholds == "skilled-1"
    assert "0.05 [-0.05, 0.15]" in next(f.text for f in verdict.findings if f.name == "bias")


def test_what_was_not_run_says_so() -> None:
    """An audit without a figure is neither passed nor failed: it is not measured, and running it is what helps."""
    verdict = decide(Evidence(**(GOOD | {"audits": (), "flip_rate": None})), SKILLED)
    lacking = {finding.name: finding for finding in verdict.findings if not finding.measured}
    assert set(lacking) == {"verbosity", "flip_rate"}
    assert not any(finding.holds for finding in lacking.values())
    assert lacking["verbosity"].text == "verbosity: not run"


def test_every_condition_has_a_finding_whatever_is_decided() -> None:
    stale = decide(Evidence(**(GOOD | {"stale_because": "the prompt changed"})), SKILLED)
    assert [finding.name for finding in stale.findings] == ["stale"]
    assert {finding.name for finding in stale.others} == {
        "insufficient", "rubric_problem", "alt_test", "bias", "readable", "flip_rate", "verbosity", "ppi_gain", "tau_b",
    }  # fmt: skip
