"""The human ceiling and the reliability table: worked by hand, and by loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.stats.core import tables
from analytics.stats.judge import human_ceiling
from analytics.stats.judge.calibration_curve import reliability_table
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from tests.analytics.stats.panels import panel_table

NAN = np.nan


def compared(humans: Any, judge: Any, **columns: Any) -> JudgeAgainstPanel:
    return JudgeAgainstPanel.of(next(tables.cells(panel_table(humans, judge, **columns))), "gpt")


def figures(m: JudgeAgainstPanel, **options: Any) -> dict[tuple[str, str | None], Any]:
    return {(e.statistic, e.variant): e for e in human_ceiling.ceiling_estimates(m, **({"bootstrap": 0} | options))}


def noisy(n: int = 80) -> tuple[Any, Any]:
    rng = np.random.default_rng(25)
    truth = rng.integers(0, 4, n)
    humans = np.where(rng.random((n, 4)) < 0.6, truth[:, None], rng.integers(0, 4, (n, 4))).astype(float)
    humans[rng.random((n, 4)) < 0.3] = NAN
    return humans, np.where(rng.random(n) < 0.5, truth, rng.integers(0, 4, n)).astype(float)


def test_two_items_worked_by_hand() -> None:
    # Item 1, humans 2, 2, 0, judge 2: without h1 the others are 2, 0: judge 1/2, h1 1/2; h2 alike; without h3: judge 1,
    # h3 0. Item 2, humans 1, 3, judge 3: without h1 judge 1, h1 0; without h2 judge 0, h2 0. Means 3/5 and 1/5.
    found = figures(compared([[2, 2, 0], [1, 3, NAN]], [2, 3]))
    assert found["ceiling_accuracy", "judge"].value == pytest.approx(3 / 5)
    assert found["ceiling_accuracy", "human"].value == pytest.approx(1 / 5)
    assert found["ceiling_accuracy", "difference"].value == pytest.approx(2 / 5)


def test_figures_follow_the_definition_with_missing_scores() -> None:
    humans, judge = noisy()
    m = compared(humans, judge)
    rows = []
    for i, scores in enumerate(m.humans):
        for j, score in enumerate(scores):
            others = [x for k, x in enumerate(scores) if k != j and not np.isnan(x)]
            if not np.isnan(score) and others and not np.isnan(m.judge[i]):
                rows.append((m.judge[i], score, np.mean(others)))
    f, h, o = np.array(rows).T
    found = figures(m)
    assert found["ceiling_mae", "judge"].value == pytest.approx(abs(f - o).mean())
    assert found["ceiling_mae", "human"].value == pytest.approx(abs(h - o).mean())
    assert found["ceiling_pearson", "judge"].value == pytest.approx(np.corrcoef(f, o)[0, 1])
    assert found["ceiling_pearson", "human"].value == pytest.approx(np.corrcoef(h, o)[0, 1])


def test_the_difference_has_an_interval_of_its_own() -> None:
    found = figures(compared(*noisy()), bootstrap=400)
    gap = found["ceiling_accuracy", "difference"]
    assert gap.low < gap.value < gap.high
    sides = [found["ceiling_accuracy", side] for side in ("judge", "human")]
    # Judge and human meet the same raters of the same items, so their errors move together.
    assert gap.high - gap.low < sum(side.high - side.low for side in sides)


def test_single_raters_have_no_ceiling() -> None:
    found = figures(compared([[1, NAN], [2, NAN]], [1, 2]))
    assert all(e.value is None and "two annotators" in e.reason for e in found.values())


def test_the_reliability_table_is_the_panel_mean_behind_each_judge_score() -> None:
    table = {e.variant: e for e in reliability_table(compared([[0, 1], [1, 1], [3, 3]], [0, 0, 3]))}
    assert table["0"].value == pytest.approx(0.75)
    assert table["0"].n_items == 2
    assert (table["3"].value, table["3"].low) == (3, None)


def test_a_continuous_judge_is_cut_into_bins_that_hold_everything() -> None:
    rng = np.random.default_rng(26)
    humans = rng.integers(0, 4, (100, 2))
    table = reliability_table(compared(humans, rng.uniform(0, 3, 100)))
    assert len(table) == 10
    assert sum(e.n_items for e in table) == 100
