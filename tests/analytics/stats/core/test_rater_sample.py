"""Intervals for raters like these: two ways of sampling, for whom a figure speaks."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.cli.commandline import run_command
from analytics.stats.core.estimates import Estimate
from analytics.stats.core.resampling import LIKE_THESE, THESE, TOO_FEW, for_raters_like_these
from analytics.stats.core.scales import scale_of
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.differences import DifferenceQuestion, difference_report
from analytics.stats.ranking.stability import stability_report
from bench.populations import careless_raters, fresh_raters

GRADES = scale_of(range(4))


def test_the_parts_of_items_and_raters_add_as_worked_by_hand() -> None:
    mean = Estimate(statistic="bias", value=2.0, low=1.7, high=2.3, confidence=0.95, method="jackknife t")
    # without = ten times 1 and ten times 3: mean 2, squares 20, error sqrt(19/20 * 20); t has 19 degrees of freedom.
    found = for_raters_like_these(mean, [1.0, 3.0] * 10, [4] * 20, "free")
    half = math.hypot(0.3, float(stdtrit(19, 0.975)) * math.sqrt(19))
    assert (found.low, found.high) == (pytest.approx(2 - half), pytest.approx(2 + half))
    assert found.speaks_for == LIKE_THESE
    assert found.method == "jackknife t and raters left out (approximate: 20 raters)"
    assert for_raters_like_these(mean, [1.0, 3.0] * 15, [4] * 30, "free").method == "jackknife t and raters left out"
    uneven = for_raters_like_these(mean, [1.0, 3.0] * 10, [4] * 19 + [80], "free")  # 156^2 / (19 16 + 6400)
    assert uneven.method == "jackknife t and raters left out (approximate: 3.63 raters)"


@pytest.mark.parametrize("n_raters", [6, 19])
def test_too_few_raters_are_refused_with_the_reason(n_raters: int) -> None:
    """Before: six raters, each careless with probability .2, gave an interval that covered .74 to .84, unmarked."""
    scores = careless_raters(60, n_raters, np.random.default_rng(5)).humans
    for statistic in ("percent_agreement", "krippendorff_alpha", "gwet_ac"):
        found = measure(scores, statistic, scale=GRADES, bootstrap=0, raters_as="sample")
        assert (found.low, found.interval_reason, found.speaks_for) == (None, TOO_FEW, LIKE_THESE)
        assert found.value == measure(scores, statistic, scale=GRADES, bootstrap=0).value


@pytest.mark.slow
def test_with_careless_raters_among_them_twenty_cover() -> None:
    """Coverage of 60 samples of 20 raters: the mean alpha of panels like these is .46 (bench/coverage_processes.py)."""
    truth = float(
        np.mean(
            [
                measure(careless_raters(200, 20, np.random.default_rng([1, k])).humans, "gwet_ac", scale=GRADES,
                        variant="quadratic", bootstrap=0).value
                for k in range(60)
            ]
        )
    )  # fmt: skip
    held = []
    for k in range(60):
        drawn = careless_raters(50, 20, np.random.default_rng([2, k])).humans
        found = measure(drawn, "gwet_ac", scale=GRADES, variant="quadratic", bootstrap=0, raters_as="sample")
        assert found.low is not None and found.high is not None
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) > 0.88


def test_raters_who_are_all_alike_leave_the_interval_as_it_is() -> None:
    scores = np.repeat(np.random.default_rng(3).integers(0, 4, size=(40, 1)), 4, axis=1).astype(float)
    scores[:5, :] = (scores[:5, :] + [0, 1, 2, 3]) % 4  # every rater is off the others once on each of five items
    for statistic in ("percent_agreement", "krippendorff_alpha"):
        these = measure(scores, statistic, scale=GRADES, bootstrap=0)
        alike = measure(scores[:, [0] * 20], statistic, scale=GRADES, bootstrap=0, raters_as="sample")
        own = measure(scores[:, [0] * 20], statistic, scale=GRADES, bootstrap=0)
        assert (alike.low, alike.high) == (own.low, own.high)
        assert these.speaks_for == THESE


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["percent_agreement", "krippendorff_alpha", "gwet_ac", "cohen_kappa",
                                       "conger_kappa", "brennan_prediger", "fleiss_kappa", "icc"])  # fmt: skip
def test_names_of_raters_do_not_matter_and_the_interval_only_grows(statistic: str) -> None:
    scores = fresh_raters(40, 20, np.random.default_rng(5)).humans
    how = {"scale": GRADES, "bootstrap": 0}
    these = measure(scores, statistic, **how)
    sample = measure(scores, statistic, raters_as="sample", **how)
    turned = measure(scores[:, np.random.default_rng(1).permutation(20)], statistic, raters_as="sample", **how)
    assert sample.value == these.value
    assert (turned.low, turned.high) == (pytest.approx(sample.low), pytest.approx(sample.high))
    assert sample.low is not None and these.low is not None and sample.high is not None and these.high is not None
    assert sample.low < these.low < these.high < sample.high
    assert (these.speaks_for, sample.speaks_for) == (THESE, LIKE_THESE)


def test_two_raters_are_no_sample_and_f_takes_raters_for_one() -> None:
    scores = fresh_raters(40, 2, np.random.default_rng(5)).humans
    two = measure(scores, "krippendorff_alpha", scale=GRADES, bootstrap=0, raters_as="sample")
    assert (two.low, two.interval_reason) == (None, TOO_FEW)
    assert measure(scores, "icc", variant="2,1", scale=GRADES, bootstrap=0).speaks_for == LIKE_THESE
    assert measure(scores, "icc", variant="3,1", scale=GRADES, bootstrap=0, raters_as="sample").speaks_for == THESE


@pytest.mark.parametrize(("n_raters", "mark"), [(5, " (approximate: 5 raters)"), (30, "")])
def test_f_of_few_raters_taken_as_a_sample_is_approximate(n_raters: int, mark: str) -> None:
    """It covers .85 with five raters who differ in their errors."""
    scores = fresh_raters(50, n_raters, np.random.default_rng(5)).humans
    for form in ("2,1", "2,k"):
        assert measure(scores, "icc", variant=form, scale=GRADES, bootstrap=0).method == f"F{mark}"
    for form in ("1,1", "1,k", "3,1", "3,k"):
        assert measure(scores, "icc", variant=form, scale=GRADES, bootstrap=0).method == "F"
    sample = measure(scores, "icc", variant="2,1", scale=GRADES, bootstrap=0, raters_as="sample")
    assert sample.method == (f"F and raters left out{mark}" if n_raters >= 20 else None)


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Twenty annotators and a judge on 40 items."""
    drawn = fresh_raters(40, 20, np.random.default_rng(8))
    path = tmp_path / "ratings.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "rater", "score"])
        for item, (scores, judge) in enumerate(zip(drawn.humans, drawn.judge, strict=True)):
            rows.writerows([f"i{item}", name, int(x)] for name, x in zip("abcdefghijklmnopqrst", scores, strict=True))
            rows.writerow([f"i{item}", "gpt", int(judge)])
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["agreement", "--raters", ",".join("abcdefghijklmnopqrst"), "--statistic", "krippendorff_alpha"],
        ["calibration", "--judge", "gpt", "--reference", "each", "--statistic", "mae"],
    ],
)
def test_the_commands_say_for_whom_their_figures_speak(
    command: list[str], ratings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(*more: str) -> str:
        assert run_command([command[0], str(ratings), *command[1:], "--scale", "0,1,2,3", *more]) == 0
        return capsys.readouterr().out

    these, sample = (
        json.loads(asked("--format", "json", *more))["estimates"][0] for more in ((), ("--raters-as", "sample"))
    )
    assert (these["speaks_for"], sample["speaks_for"]) == (THESE, LIKE_THESE)
    assert sample["low"] < these["low"] < these["high"] < sample["high"]
    assert "; for these raters" in asked()
    assert "; for raters like these" in asked("--raters-as", "sample")
    assert next(csv.DictReader(io.StringIO(asked("--format", "csv"))))["speaks_for"] == THESE


def test_agreement_on_applicability_speaks_for_raters_like_these_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty annotators, who differ in how often they find that a criterion does not apply."""
    rng = np.random.default_rng(6)
    applies = rng.random(60)
    lines = ["item,cluster,rater,score"]
    for i, share in enumerate(applies):
        lines += [f"i{i},c{i // 2},{name},{'N/A' if share + rng.normal(0, 0.2) < 0.2 + 0.02 * r else 1 + i % 3}"
                  for r, name in enumerate("abcdefghijklmnopqrst")]  # fmt: skip
    path = tmp_path / "applicable.csv"
    path.write_text("\n".join(lines) + "\n")
    asked = ["agreement", str(path), "--statistic", "applicability_agreement,applicability_alpha,applicability_ac",
             "--format", "json"]  # fmt: skip
    found = {}
    for whom in ("these", "sample"):
        assert run_command([*asked, "--raters-as", whom]) == 0
        found[whom] = json.loads(capsys.readouterr().out)["estimates"]
    assert [row["statistic"] for row in found["these"]] == [
        "applicability_agreement", "applicability_alpha", "applicability_ac"
    ]  # fmt: skip
    for these, sample in zip(*found.values(), strict=True):
        assert (these["value"], these["n_items"], these["n_clusters"]) == (sample["value"], 60, 30)
        assert (these["speaks_for"], sample["speaks_for"]) == (THESE, LIKE_THESE)
        assert sample["low"] < these["low"] < these["high"] < sample["high"]
        assert "and raters left out (approximate: 20 raters)" in sample["method"]


def test_anonymous_slots_are_no_sample(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["agreement", str(ratings), "--positional", "--raters-as", "sample"]) == 2
    assert "needs persons" in capsys.readouterr().err


def test_intervals_end_where_figures_and_their_differences_can(tmp_path: Path) -> None:
    """Twenty people who differ much, on two generators and in two languages: their spread reaches beyond the scale."""
    rng = np.random.default_rng(3)
    rows = [
        {"item": f"{tag}{i}", "cluster": f"s{i // 2}", "language": tag, "generator": maker, "rater": name,
         "criterion": "tone", "score": float(np.clip(round(base + rng.normal(0, 0.8)), 0, 3))}
        for tag in ("et", "ar") for i, maker in ((i, "ab"[i % 2]) for i in range(12))
        for name, base in ((f"{who}{k}", 2.9 if who == "z" and k == 9 else low) for k in range(10)
                           for who, low in (("x", -1.0), ("z", -0.9)))
    ]  # fmt: skip
    judged = [{**row, "rater": "gpt", "score": 3.0} for row in rows if row["rater"] == "x0"]
    table = ratings_table(pd.DataFrame([*rows, *judged]), scales={"tone": scale_of(range(4))}, judges=["gpt"])
    means = stability_report(table, by=("criterion",), paper_compat=False, raters_as="sample")
    bounds = [(row.estimate.low, row.estimate.high) for row in means if row.estimate.statistic == "mean"]
    assert bounds and all(low is None or (low >= 0 and high is not None and high <= 3) for low, high in bounds)
    assert any("cut at the ends of the scale" in (row.estimate.method or "") for row in means)
    names = ("mae", "bias", "accuracy")
    asked = DifferenceQuestion("language", ("et", "ar"), names, judge="gpt", by=("criterion",), raters_as="sample")
    for row in difference_report(table, asked):
        most = {"mae": 3, "bias": 6, "accuracy": 1}[row.estimate.statistic]
        assert row.estimate.low is None or (row.estimate.low >= -most and (row.estimate.high or 0) <= most)
