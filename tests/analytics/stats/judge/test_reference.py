"""Reference labels under every rule, Dawid-Skene, agreement classes, and a judge in a rater's place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from analytics.stats.core.scales import scale_of
from analytics.stats.core.tables import RatingsTable, coded_from_matrix
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import agreement_classes
from analytics.stats.judge.modes import modes
from analytics.stats.judge.reference import Rule, Ties, excluding, fit, medians, reference_labels, settled_labels
from analytics.stats.judge.substitution import substituted, substituted_by_trials

Array = NDArray[Any]

X = np.array([1.0, 2.0, 4.0])
TIED = np.array([[1, 1, 0], [0, 2, 1], [1, 0, 1], [0, 0, 0]])


def table(*rows: Any) -> RatingsTable:
    return ratings_table(pd.DataFrame(rows, columns=["item", "rater", "score", "rater_kind"], dtype=object))


PANEL = table(
    ("a", "1", 3, ""), ("a", "2", 3, ""), ("a", "3", 1, ""), ("a", "j", 1, "judge"),
    ("b", "1", 1, ""), ("b", "2", 3, ""), ("b", "x", 3, "adjudicator"),
    ("c", "1", 1, ""), ("c", "2", 2, ""), ("c", "j", 1, "judge"),
    ("d", "j", 2, "judge"), ("e", "1", "", ""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("ties", "scores"),
    [
        ("exclude", [None, 2, None, None]),
        ("lower", [1, 2, 1, None]),
        ("upper", [2, 2, 4, None]),
        ("median", [1.5, 2, 2.5, None]),
        ("adjudicated", [4, 2, None, None]),
    ],
)
def test_ties_are_broken_by_rule_only(ties: Ties, scores: Array) -> None:
    found, tied = settled_labels(TIED, X, ties, np.array([4.0, 4.0, np.nan, np.nan]))
    assert [None if np.isnan(score) else score for score in found] == scores
    assert tied.tolist() == [True, False, True, False]


def test_medians_of_counts_are_those_of_the_scores() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (50, 3))
    expected = [np.median(np.repeat(X, row)) if row.sum() else np.nan for row in counts]
    assert medians(counts, X) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("rule", "expected", "excluded"),
    [
        ("mode", {"a": 3}, {"tied": 2, "not rated": 1}),
        ("median", {"a": 3, "b": 2, "c": 1.5}, {"not rated": 1}),
        ("mean", {"a": 7 / 3, "b": 2, "c": 1.5}, {"not rated": 1}),
        ("adjudicated_first", {"a": 3, "b": 3}, {"tied": 1, "not rated": 1}),
    ],
)
def test_rules_over_a_table(rule: Rule, expected: dict[str, float], excluded: dict[str, int]) -> None:
    found = reference_labels(PANEL, rule=rule)
    assert dict(zip(found.frame["item"], found.frame["score"], strict=True)) == pytest.approx(expected)
    assert found.excluded == excluded


def test_a_label_knows_its_share_and_its_words() -> None:
    found = reference_labels(PANEL).frame.iloc[0]
    assert (found["label"], found["n_ratings"], found["tied"]) == ("3", 3, False)
    assert found["share"] == pytest.approx(2 / 3)
    assert reference_labels(PANEL, rule="mean").frame["label"].tolist()[0] == ""


def test_adjudicators_break_ties_where_asked() -> None:
    found = reference_labels(PANEL, ties="adjudicated").frame
    assert dict(zip(found["item"], found["score"], strict=True)) == {"a": 3, "b": 3}


def test_exclusions_go_in_order_and_are_counted() -> None:
    rows = [
        ("a", 1, 0, 0),
        ("a", 2, 1, 0),
        ("a", 3, 0, 0),
        ("b", 1, 0, 0),
        ("b", 2, 0, 1),
        ("b", 3, 1, 0),
        ("c", 1, 0, 0),
    ]
    frame = pd.DataFrame(rows, columns=["item", "rater", "broken", "critical"]).assign(score=1)
    left, counted = excluding(ratings_table(frame), broken_rationale="broken", critical="critical")
    assert (counted.broken_rationale, counted.critical, counted.single, counted.left) == (2, 2, 1, 2)
    assert left.frame["item"].unique().tolist() == ["a"]


def panel_of(rng: np.random.Generator, n_items: int, accuracies: list[float], q: int = 3) -> tuple[Array, Array]:
    true = rng.integers(0, q, n_items)
    right = rng.random((n_items, len(accuracies))) < np.array(accuracies)
    wrong = (true[:, None] + rng.integers(1, q, right.shape)) % q
    return true, np.where(right, true[:, None], wrong).astype(float)


def test_dawid_skene_finds_who_is_right() -> None:
    true, scores = panel_of(np.random.default_rng(2), 800, [0.95, 0.6, 0.6, 0.55])
    found = fit(coded_from_matrix(scores, scale=scale_of(range(3), "nominal")))
    majority = np.array([np.bincount(row.astype(int), minlength=3).argmax() for row in scores])
    assert found.converged
    assert (found.code == true).mean() > (majority == true).mean() + 0.05
    assert np.diagonal(found.confusion[0]).mean() == pytest.approx(0.95, abs=0.04)
    assert found.confusion.sum(axis=2) == pytest.approx(np.ones((4, 3)))
    assert found.posterior.sum(axis=1) == pytest.approx(np.ones(800))


def test_dawid_skene_never_loses_likelihood() -> None:
    _, scores = panel_of(np.random.default_rng(5), 200, [0.8, 0.7, 0.5])
    scores[np.random.default_rng(6).random(scores.shape) < 0.2] = np.nan
    gains = np.diff(fit(coded_from_matrix(scores, scale=scale_of(range(3), "nominal")), smoothing=0).log_likelihood)
    assert (gains > -1e-9).all()


def test_one_step_of_dawid_skene_by_hand() -> None:
    # Items AA, BB, AB: T0 = (1,0), (0,1), (1/2,1/2); p = 1/2; pi_1(A|A) = 1.5/1.5, pi_1(A|B) = .5/1.5,
    # pi_2(B|A) = .5/1.5, pi_2(B|B) = 1. Item AB: A 1 * 1/3, B 1/3 * 1: stays at a half. Item AA: A 1 * 2/3, B 1/3 * 0.
    found = fit(
        coded_from_matrix([[0, 0], [1, 1], [0, 1]], scale=scale_of([0, 1], "nominal")), smoothing=0, iterations=1
    )
    assert found.posterior == pytest.approx(np.array([[1, 0], [0, 1], [0.5, 0.5]]))
    assert found.code.tolist() == [0, 1, -1]


def test_the_judge_replaces_each_rater_in_turn() -> None:
    # AAB with judge B: replace an A (2/3 of the time): ABB, 2/3; replace B: AAB, 2/3. With judge A: 1/3 * AAA.
    scores = np.array([[0.0, 0, 1], [0, 1, 0]])
    assert substituted(scores, np.array([1.0, 0])) == pytest.approx([2 / 3, 2 / 3 * 2 / 3 + 1 / 3])


def test_the_papers_trials_scatter_around_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    scores = rng.choice([0.0, 1, 2], p=[0.5, 0.3, 0.2], size=(60, 4))
    scores[:20, 3] = np.nan
    judge = rng.choice([0.0, 1, 2, 3], size=60)
    trials = substituted_by_trials(scores, judge, rng=rng, trials=4000)
    assert trials.mean() == pytest.approx(substituted(scores, judge).mean(), abs=4 * trials.std() / np.sqrt(4000))


@given(st.integers(0, 10**6))
def test_a_replaced_rater_and_the_mode_are_what_counting_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.choice([0.0, 1, 2.5, 7], size=(6, int(rng.integers(1, 6))))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    scores[:, 0] = np.where(np.isnan(scores[:, 0]), 1, scores[:, 0])
    judge = rng.choice([0.0, 1, 2.5, 7], size=6)
    mode, tied = modes(scores)
    expected = substituted(scores, judge)
    for i, row in enumerate(scores):
        given_labels = row[~np.isnan(row)].tolist()
        rests = [given_labels[:r] + given_labels[r + 1 :] + [judge[i]] for r in range(len(given_labels))]
        shares = [max(Counter(rest).values()) / len(rest) for rest in rests]
        assert expected[i] == pytest.approx(np.mean(shares))
        (top, most), *others = Counter(given_labels).most_common()
        assert bool(tied[i]) == any(count == most for _, count in others)
        assert tied[i] or mode[i] == top


def test_agreement_classes_and_what_is_given_in_each() -> None:
    assert agreement_classes.agreement_class(np.array([[3, 0, 0], [2, 1, 0], [1, 1, 1], [1, 0, 0]])).tolist() == [
        "full", "partial", "none", ""]  # fmt: skip
    rows = {
        (row.cell["agreement_class"], row.estimate.statistic, row.judge, row.estimate.variant): row.estimate.value
        for row in agreement_classes.agreement_class_report(PANEL, by=())
    }
    assert rows["partial", "class_share", None, None] == pytest.approx(1 / 3)
    assert rows["partial", "score_share", None, "3"] == pytest.approx(2 / 3)
    assert rows["none", "score_share", "j", "1"] == 1.0
    assert rows["full", "class_share", None, None] == 0.0


@pytest.mark.parametrize("rule", ["mode", "median", "mean", "dawid_skene", "adjudicated_first"])
def test_a_criterion_nobody_scored_has_no_labels(rule: Rule) -> None:
    frame = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["1", "2", "1"], "score": ["", "N/A", ""]})
    found = reference_labels(ratings_table(frame), rule=rule)
    assert (len(found.frame), found.excluded) == (0, {"not rated": 2})
