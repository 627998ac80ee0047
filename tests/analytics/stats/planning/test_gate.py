"""The trust gate: every decision, the preset thresholds, and what would change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale, range_scale, scale_of
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.copies import CopiedAnnotator
from analytics.stats.planning.gate import (
    PRESETS,
    Decision,
    Evidence,
    FindingState,
    GatedCell,
    GateFinding,
    decide,
    gated_cells,
)


def known(statistic: str, value: float, low: float, high: float, n: int = 100) -> Estimate:
    return Estimate(statistic=statistic, value=value, low=low, high=high, n_items=n)


GOOD: dict[str, Any] = {
    "n_items": 100,
    "scale_width": 3.0,
    "alpha": known("krippendorff_alpha", 0.5, 0.4, 0.6),
    "ac": known("gwet_ac", 0.6, 0.5, 0.7),
    "alt_test_omega": Estimate(statistic="alt_test_omega", value=1.0),
    "bias": known("bias", 0.05, -0.05, 0.15),
    "readable": known("readable", 1.0, 0.99, 1.0, 400),
    "flip_rate": known("flip_rate", 0.02, 0.0, 0.06),
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
    ({"readable": known("readable", 1.0, 0.98, 1.0)}, Decision.JUDGE_WITH_CORRECTION),
    ({"readable": Estimate(statistic="readable", value=1.0)}, Decision.JUDGE_WITH_CORRECTION),  # without an interval
    ({"flip_rate": known("flip_rate", 0.05, 0.02, 0.09)}, Decision.JUDGE_WITH_CORRECTION),
    ({"copied": CopiedAnnotator("h1", 100, 98, 0.6, 0.0)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.5, 0.3, 0.7),)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.3, 0.1, 0.5),)}, Decision.JUDGE_ALONE),  # not severe, and not certain
    ({"audits": (known("verbosity", 0.24, -0.03, 0.51),)}, Decision.JUDGE_ALONE),
    ({"audits": ()}, Decision.JUDGE_WITH_CORRECTION),  # what was not run does not pass
    ({"audits": (Estimate(statistic="verbosity", value=None, reason="no lengths"),)}, Decision.JUDGE_WITH_CORRECTION),
    ({"flip_rate": None}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (*GOOD["audits"], known("self_preference", 0.5, 0.3, 0.7))}, Decision.JUDGE_WITH_CORRECTION),
    # Boundary values: at the threshold a share passes; an interval has to lie within, not on, its margin (.225).
    ({"n_items": 30}, Decision.JUDGE_ALONE),
    ({"alt_test_omega": Estimate(statistic="alt_test_omega", value=0.5)}, Decision.JUDGE_ALONE),
    ({"readable": known("readable", 0.995, 0.99, 1.0)}, Decision.JUDGE_ALONE),
    ({"flip_rate": known("flip_rate", 0.04, 0.01, 0.08, 30)}, Decision.JUDGE_ALONE),
    ({"bias": known("bias", 0.1, 0.0, 0.224999)}, Decision.JUDGE_ALONE),
    ({"bias": known("bias", 0.1, 0.0, 0.225)}, Decision.JUDGE_WITH_CORRECTION),
    ({"bias": known("bias", -0.1, -0.225, 0.0)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", 0.1, -0.1, 0.225),)}, Decision.JUDGE_ALONE),
    ({"audits": (known("verbosity", 0.1, -0.1, 0.2251),)}, Decision.JUDGE_ALONE),
    ({"audits": (known("verbosity", 0.3, 0.2249, 0.5),)}, Decision.JUDGE_ALONE),
    ({"audits": (known("verbosity", 0.3, 0.226, 0.5),)}, Decision.JUDGE_WITH_CORRECTION),
    ({"audits": (known("verbosity", -0.3, -0.5, -0.226),)}, Decision.JUDGE_WITH_CORRECTION),
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


def test_more_labels_than_anybody_gives_are_no_advice() -> None:
    # Margin .3, value .2: half width .3 needs (.3 / .1)^2 * 100 - 100 = 800 more; 500 is the most that is advised.
    verdict = decide(Evidence(**(GOOD | {"scale_width": 4.0, "bias": known("bias", 0.2, -0.1, 0.5)})), SKILLED)
    (bias,) = verdict.would_change_it
    assert (bias.more_labels, bias.too_many) == (None, True)
    assert bias.change == "more than 500 further items would be needed: more labels are unlikely to help"
    lacking = {"alt_test_omega": Estimate(statistic="alt_test_omega", value=0.0), "alt_test_items": 859}
    alt_test = next(f for f in decide(Evidence(**(GOOD | lacking)), SKILLED).findings if f.name == "alt_test")
    assert (alt_test.more_labels, alt_test.too_many) == (None, True)


def test_two_generators_are_no_ranking() -> None:
    verdict = decide(Evidence(**(GOOD | NO_ALT | NO_GAIN | {"n_generators": 2})), SKILLED)
    assert verdict.decision is Decision.HUMANS_ONLY
    tau_b = verdict.findings[-1]
    assert (tau_b.measured, tau_b.text) == (False, "a ranking needs at least 3 generators; this cell has 2")


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


def gated(humans: Any, judge: Any, scale: Scale, **options: Any) -> GatedCell:
    """The gate on (N, J) scores of people and (N, R) repeats of a judge, NaN where missing."""
    rows = []
    for kind, scores in (("annotator", np.asarray(humans, dtype=float)), ("judge", np.asarray(judge, dtype=float))):
        for item, given in enumerate(scores):
            for place, score in enumerate(given):
                if kind == "judge" or score == score:
                    rater, repeat = ("gpt", place) if kind == "judge" else (f"h{place}", 0)
                    rows.append((f"i{item}", "c", rater, kind, score, repeat))
    frame = pd.DataFrame(rows, columns=["item", "criterion", "rater", "rater_kind", "score", "repeat"])
    table = ratings_table(frame, scales={"c": scale})
    (cell,) = gated_cells(table, SKILLED, judge="gpt", bootstrap=200, **options)
    return cell


def finding(cell: GatedCell, name: str) -> GateFinding:
    return next(each for each in (*cell.verdict.findings, *cell.verdict.others) if each.name == name)


def test_raters_at_random_on_a_continuous_scale_are_a_rubric_problem() -> None:
    """AC2 needs points to agree on: where the scale has none, alpha alone decides."""
    draw = np.random.default_rng(1)
    cell = gated(
        draw.uniform(0, 100, (200, 3)), 50 + draw.uniform(-1, 1, (200, 1)), range_scale(0, 100, None, "interval")
    )
    assert cell.verdict.decision is Decision.RUBRIC_PROBLEM
    unknown = Evidence(**(GOOD | {"alpha": None, "ac": None}))
    assert decide(unknown, SKILLED).decision is not Decision.RUBRIC_PROBLEM


def test_bias_counts_items_on_which_two_annotators_differ() -> None:
    """60 items on which both agree with the judge, 40 on which they differ by a point and it lies 1.5 above."""
    humans = np.array([[k % 5, k % 5] for k in range(60)] + [[1, 2]] * 40)
    judge = [[k % 5] for k in range(60)] + [[3]] * 40
    bias = gated(humans, judge, scale_of(range(5))).evidence.bias
    assert bias is not None and bias.value is not None
    assert bias.value == pytest.approx(40 * 1.5 / 100)
    assert (bias.n_items, "mean of the panel" in (bias.method or "")) == (100, True)


def test_a_flip_rate_needs_as_many_repeated_items_as_a_decision() -> None:
    scores = np.arange(60) % 5
    judge = np.column_stack([scores, np.where(np.arange(60) < 29, scores, np.nan)])
    few = finding(gated(scores[:, None].repeat(3, axis=1), judge, scale_of(range(5))), "flip_rate")
    assert (few.holds, few.measured) == (False, False)
    judge[29, 1] = scores[29]
    enough = finding(gated(scores[:, None].repeat(3, axis=1), judge, scale_of(range(5))), "flip_rate")
    # Wilson with t of 0 of 30: up to 12 %, above the 8 % of the threshold. 0 of 45: up to 7.9 %.
    assert (enough.holds, enough.measured, enough.is_certain) == (False, True, False)
    assert enough.more_replies == 15
    judge[:45, 1] = scores[:45]
    certain = finding(gated(scores[:, None].repeat(3, axis=1), judge, scale_of(range(5))), "flip_rate")
    assert (certain.holds, certain.measured, certain.is_certain) == (True, True, True)


def test_calls_that_failed_and_replies_off_the_scale_cannot_be_used() -> None:
    scores = np.arange(60) % 5
    humans = scores[:, None].repeat(3, axis=1)
    failed = gated(humans, scores[:32, None], scale_of(range(5)), failed_calls={("c", None): 28})
    assert finding(failed, "readable").estimates[0].value == pytest.approx(32 / 60)
    off = np.where(np.arange(60) < 24, 9, scores)[:, None]
    readable = finding(gated(humans, off, scale_of(range(5))), "readable")
    assert (readable.holds, readable.estimates[0].value) == (False, pytest.approx(36 / 60))
    assert readable.estimates[0].n_items == 60


def test_a_bias_that_is_the_same_everywhere_is_known() -> None:
    """METHODS 3: a constant difference is decided by its value, given 30 clusters."""
    scores = np.arange(100) % 4
    humans = scores[:, None].repeat(3, axis=1)
    same, above = (finding(gated(humans, scores[:, None] + c, scale_of(range(5))), "bias") for c in (0, 1))
    assert (same.holds, same.measured) == (True, True)
    assert (above.holds, above.measured) == (False, True)
    assert (above.estimates[0].low, above.estimates[0].high) == (1, 1)
    few = finding(gated(humans[:29], scores[:29, None], scale_of(range(5))), "bias")
    assert (few.holds, few.measured) == (False, False)


def test_items_without_a_score_by_the_judge_are_named_by_reason() -> None:
    """40 items of two raters: the judge has no readable reply on one, a score off the scale on one, no row on two."""
    humans = [[1, 2] for _ in range(40)]
    judge: list[list[float]] = [[1] for _ in range(38)]
    judge[3], judge[4] = [np.nan], [9]
    cell = gated(humans, judge, range_scale(1, 3, 1, "ordinal"))
    assert cell.unscored == {"missing": ("i3",), "none": ("i38", "i39"), "out_of_range": ("i4",)}
    assert cell.counts["n_items"] == 36


def test_381_readable_replies_are_certain_of_99_percent() -> None:
    """Wilson: n / (n + 1.96^2) >= .99 from n = 381."""
    for n, holds in ((380, False), (381, True)):
        scores = np.arange(n) % 5
        cell = gated(scores[:, None].repeat(3, axis=1), scores[:, None], scale_of(range(5)))
        readable = finding(cell, "readable")
        assert (readable.holds, readable.is_certain) == (holds, holds), n
        assert readable.more_replies == (None if holds else 1)
    bad = finding(
        gated(scores[:, None].repeat(3, axis=1), np.where(scores, scores, 9)[:, None], scale_of(range(5))), "readable"
    )
    assert (bad.holds, bad.is_certain, bad.more_replies) == (False, True, None)


def test_omega_is_not_certain_where_annotators_are_neither_beaten_nor_ahead() -> None:
    """40 items: each annotator is off in a third of them, the judge in a little more."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 5, 40).astype(float)

    def noisy(share: float) -> Any:
        return np.clip(truth + np.where(rng.random(40) < share, rng.choice([-1, 1], 40), 0), 0, 4)

    humans = np.column_stack([noisy(0.35) for _ in range(3)])
    omega = finding(gated(humans, noisy(0.45)[:, None], scale_of(range(5))), "alt_test")
    assert (omega.holds, omega.is_certain) == (False, False)
    far = finding(gated(humans, (4 - truth)[:, None], scale_of(range(5))), "alt_test")
    assert (far.holds, far.is_certain) == (False, True)
    assert far.estimates[0].interval_reason == "every annotator is beaten or ahead"


def test_a_judge_that_copies_an_annotator_is_named() -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 5, 80).astype(float)
    humans = np.column_stack([np.clip(truth + rng.choice([-1, 0, 1], 80), 0, 4) for _ in range(3)])
    copy = humans[:, 1].copy()
    copy[:3] = (copy[:3] + 1) % 5
    found = finding(gated(humans, copy[:, None], scale_of(range(5))), "copy")
    assert not found.holds
    assert "those of h1 on 77 of 80 items" in found.text
    # Another judge of the same quality copies nobody, and where all agree there is nobody to copy.
    other = np.clip(truth + rng.choice([-1, 0, 1], 80), 0, 4)[:, None]
    assert gated(humans, other, scale_of(range(5))).evidence.copied is None
    assert gated(truth[:, None].repeat(3, axis=1), truth[:, None], scale_of(range(5))).evidence.copied is None


def test_a_copy_with_changes_is_named_and_a_good_judge_is_not() -> None:
    """Copied at 85 %: not named before. A judge that is always right beside good annotators: named a copy before."""
    rng = np.random.default_rng(26)
    truth = rng.integers(0, 5, 200).astype(float)

    def noisy(right: float) -> NDArray[np.float64]:
        return np.where(rng.random(200) < right, truth, np.clip(truth + rng.choice([-1, 1], 200), 0, 4))

    humans = np.column_stack([noisy(0.7) for _ in range(3)])
    copy = np.where(np.arange(200) % 20 < 17, humans[:, 2], (humans[:, 2] + 1) % 5)
    found = finding(gated(humans, copy[:, None], scale_of(range(5))), "copy")
    assert not found.holds
    assert "those of h2 on 170 of 200 items" in found.text
    right = np.column_stack([noisy(0.93) for _ in range(3)])
    assert gated(right, truth[:, None], scale_of(range(5))).evidence.copied is None
    assert gated(right[:, :2], truth[:, None], scale_of(range(5))).evidence.copied is None
    unequal = np.column_stack([noisy(0.96), noisy(0.8), noisy(0.8)])
    assert gated(unequal, truth[:, None], scale_of(range(5))).evidence.copied is None


@pytest.mark.parametrize(
    ("low", "high", "holds", "certain"),
    [(-0.2, 0.2, True, True), (0.1, 0.5, False, False), (0.23, 0.5, False, True), (-0.5, -0.23, False, True)],
)
def test_an_audit_has_three_states_and_only_one_within_the_margin_holds(
    low: float, high: float, holds: bool, certain: bool
) -> None:
    """Margin .225: within it, partly beyond it, beyond it on either side."""
    effect = known("verbosity", (low + high) / 2, low, high)
    found = next(
        f for f in decide(Evidence(**(GOOD | {"audits": (effect,)})), SKILLED).findings if f.name == "verbosity"
    )
    assert (found.holds, found.is_certain) == (holds, certain)


@pytest.mark.parametrize(
    ("drops", "holds", "certain"),
    [
        ([(0.3, 0.6)], True, True),
        ([(0.1, 0.6)], False, False),
        ([(0.0, 0.2)], False, True),
        ([(0.1, 0.9), (0.23, 0.4)], True, True),
    ],
)
def test_sensitivity_has_three_states(drops: list[tuple[float, float]], holds: bool, certain: bool) -> None:
    effects = tuple(known("perturbation", (low + high) / 2, low, high) for low, high in drops)
    verdict = decide(Evidence(**(GOOD | {"sensitivity": effects})), SKILLED)
    found = next(f for f in (*verdict.findings, *verdict.others) if f.name == "sensitivity")
    assert (found.holds, found.is_certain) == (holds, certain)


# name, changes of the evidence, state: every interval that contains its threshold is neither met nor failed
STATES: list[tuple[str, dict[str, Any], FindingState]] = [
    ("verbosity", {"audits": (known("verbosity", 0.24, -0.03, 0.51),)}, FindingState.NOT_CERTAIN),
    ("bias", {"bias": known("bias", 0.24, -0.03, 0.51)}, FindingState.NOT_CERTAIN),
    ("bias", {"bias": known("bias", 0.05, -0.03, 0.51)}, FindingState.NOT_CERTAIN),
    ("ppi_gain", {"ppi_gain": known("ppi_gain", 0.98, 0.9, 1.2)}, FindingState.NOT_CERTAIN),
    ("ppi_gain", {"ppi_gain": known("ppi_gain", 1.1, 0.9, 1.3)}, FindingState.NOT_CERTAIN),
    ("ppi_gain", {"ppi_gain": known("ppi_gain", 0.9, 0.8, 1.0)}, FindingState.FAILS),
    ("tau_b", {"tau_b": known("kendall_tau_b", 0.7, 0.4, 0.9)}, FindingState.NOT_CERTAIN),
    ("tau_b", {"tau_b": known("kendall_tau_b", 0.3, 0.1, 0.7)}, FindingState.FAILS),
    (
        "rubric_problem",
        {"alpha": known("a", 0.1, -0.1, 0.4), "ac": known("b", 0.3, 0.1, 0.5)},
        FindingState.NOT_CERTAIN,
    ),
    ("rubric_problem", {"alpha": known("a", 0.1, -0.1, 0.4), "ac": known("b", 0.6, 0.4, 0.8)}, FindingState.FAILS),
    ("rubric_problem", {"alpha": known("a", 0.1, -0.1, 0.19), "ac": known("b", 0.2, 0.1, 0.3)}, FindingState.HOLDS),
    ("rubric_problem", {"alpha": None, "ac": None}, FindingState.NOT_RUN),
]


@pytest.mark.parametrize(("name", "changes", "state"), STATES)
def test_no_condition_is_met_while_its_interval_contains_the_threshold(
    name: str, changes: dict[str, Any], state: FindingState
) -> None:
    verdict = decide(Evidence(**(GOOD | changes)), SKILLED)
    found = next(each for each in (*verdict.findings, *verdict.others) if each.name == name)
    assert found.state is state
    assert found.holds is (state is FindingState.HOLDS)


def test_agreement_that_never_varies_is_known() -> None:
    """Everybody agrees on every item: alpha has no interval, and needs none in 30 clusters."""
    scores = np.arange(60) % 5
    cell = gated(scores[:, None].repeat(3, axis=1), scores[:, None], scale_of(range(5)))
    assert finding(cell, "rubric_problem").state is FindingState.FAILS, "no problem, and certainly none"


def test_a_wide_effect_of_length_says_how_many_labels_would_settle_it() -> None:
    # Margin .225; value 0, half width .45: (.45 / .225)^2 * 100 - 100 = 300 more. Beyond the margin no number helps.
    for value, more in ((0.0, 300), (0.24, None)):
        effect = known("verbosity", value, value - 0.45, value + 0.45)
        verdict = decide(Evidence(**(GOOD | {"audits": (effect,)})), SKILLED)
        lacking = next(each for each in verdict.findings if each.name == "verbosity")
        assert (lacking.state, lacking.prevents, lacking.more_labels) == (FindingState.NOT_CERTAIN, False, more)
