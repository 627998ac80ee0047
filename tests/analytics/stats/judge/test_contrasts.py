"""Criteria against each other, panels against each other, and rationales of people and judges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.differences import between_criteria, between_panels
from analytics.stats.text import surface


def test_criteria_that_go_together_are_found() -> None:
    rng = np.random.default_rng(0)
    quality = rng.integers(1, 6, 60)
    scores = {"fluency": quality, "coherence": np.clip(quality + rng.integers(-1, 2, 60), 1, 5), "safety": np.ones(60)}
    rows = [(f"i{i}", "r", name, int(values[i])) for name, values in scores.items() for i in range(60)]
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "criterion", "score"]))
    found = {row.estimate.variant: row.estimate for row in between_criteria(table, resamples=200)}
    expected = stats.spearmanr(scores["coherence"], scores["fluency"]).statistic
    close = found["coherence ~ fluency"]
    assert close.value == pytest.approx(expected)
    assert (close.low or 1) < expected < (close.high or -1)
    assert found["fluency ~ safety"].reason == "one side does not vary"


def test_two_panels_on_the_items_both_scored() -> None:
    rows = [
        ("a", "1", "crowd", 2), ("a", "2", "crowd", 3), ("a", "3", "experts", 2),
        ("b", "1", "crowd", 3), ("b", "3", "experts", 1), ("c", "1", "crowd", 3), ("d", "3", "experts", 1),
        ("e", "2", "crowd", 1), ("e", "4", "experts", 0),
    ]  # fmt: skip
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "panel", "score"]))
    difference, order = (row.estimate for row in between_panels(table, "crowd", "experts", by=(), resamples=0))
    assert difference.value == pytest.approx((-0.5 - 2 - 1) / 3)
    assert difference.n_items == 3
    assert order.value == pytest.approx(stats.spearmanr([2.5, 3, 1], [2, 1, 0]).statistic)
    (nobody, _) = between_panels(table, "crowd", "strangers", by=(), resamples=0)
    assert nobody.estimate.reason == "no item has both"


def test_rationales_of_people_and_judges() -> None:
    rows = [
        ("a", "1", 1, "annotator", "en", "The answer is short."),
        ("b", "1", 1, "annotator", "en", "It repeats the question."),
        ("c", "1", 1, "annotator", "en", ""),
        ("a", "j", 1, "judge", "en", "Vastus on lühike ja kordab küsimust mitu korda järjest."),
    ]
    table = ratings_table(pd.DataFrame(rows, columns=["item", "rater", "score", "rater_kind", "language", "rationale"]))
    found = {(row.judge, row.estimate.statistic): row.estimate for row in surface.rationale_report(table, resamples=0)}
    people, judge = found[None, "rationale_words"], found["j", "rationale_words"]
    assert (people.value, people.n_ratings, people.n_missing) == (4.0, 2, 1)
    assert judge.value == 9.0
    assert (
        (found[None, "rationale_in_language"].value or 0) > 0.9 > 0.5 > (found["j", "rationale_in_language"].value or 0)
    )
    assert found[None, "rationale_mattr"].value == pytest.approx(7 / 8)
