"""A judge across languages: the same kappas as on the same numbers laid out by hand; juries; S1's printed table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as oracle

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import consistency
from analytics.stats.judge.audits import jury_scores

NAN = np.nan
LANGUAGES = ("en", "et", "hi")


def parallel(scores: Any, judge: Any = "gpt", cluster: bool = False) -> RatingsTable:
    """A table of (N, 3) scores of one judge in three languages."""
    rows = [
        {"item": f"{k}-{i}" if cluster else f"s{i}", "cluster": f"s{i}", "language": language, "rater": judge,
         "rater_kind": "judge", "score": value}
        for i, row in enumerate(scores) for k, (language, value) in enumerate(zip(LANGUAGES, row, strict=True))
    ]  # fmt: skip
    return ratings_table(pd.DataFrame(rows))


SCORES = np.random.default_rng(17).integers(1, 4, (60, 3)).astype(float)
SCORES[:, 1] = np.where(np.random.default_rng(18).random(60) < 0.7, SCORES[:, 0], SCORES[:, 1])


def found(table: RatingsTable, **options: Any) -> dict[Any, Estimate]:
    rows = consistency.consistency_report(table, judge="gpt", **({"bootstrap": 0} | options))
    return {(r.estimate.statistic, r.estimate.variant, r.languages or r.language): r.estimate for r in rows}


@pytest.mark.parametrize("cluster", [False, True])
def test_languages_are_the_raters_whether_items_share_a_name_or_a_cluster(cluster: bool) -> None:
    kappa = found(parallel(SCORES, cluster=cluster))["fleiss_kappa", "unequal", None]
    assert kappa.value == pytest.approx(oracle(aggregate_raters(SCORES)[0]))
    assert (kappa.n_items, kappa.n_raters) == (60, 3)


def test_scenarios_whose_items_cannot_be_matched_are_left_out_and_counted() -> None:
    frame = parallel(SCORES, cluster=True).frame[["item", "cluster", "language", "rater", "rater_kind", "score"]]
    twin = frame.iloc[[0]].assign(item="another", score=frame["score"].iloc[0] % 3 + 1)  # English, in scenario s0
    rows = consistency.consistency_report(ratings_table(pd.concat([frame, twin])), judge="gpt", bootstrap=0)
    kappa = next(row.estimate for row in rows if row.estimate.variant == "unequal")
    assert kappa.value == pytest.approx(oracle(aggregate_raters(SCORES[1:])[0]))
    assert (kappa.n_items, kappa.note) == (59, "scenarios with several items of one language are left out: 1")
    only = consistency.consistency_report(
        ratings_table(pd.concat([frame[frame["cluster"] == "s0"], twin])), judge="gpt", bootstrap=0
    )
    kappas = [row.estimate for row in only if row.estimate.statistic == "fleiss_kappa"]
    assert [one.value for one in kappas] == [None] and kappas[0].reason == consistency.NOT_PARALLEL


def test_each_language_meets_the_pivot_only() -> None:
    pairs = {key[2] for key in found(parallel(SCORES)) if key[0] == "cohen_kappa" and key[2]}
    assert pairs == {("en", "et"), ("en", "hi")}


def test_shift_is_the_paired_difference_from_the_pivot() -> None:
    shift = found(parallel(SCORES))["language_shift", None, ("en", "hi")]
    assert shift.value == pytest.approx((SCORES[:, 2] - SCORES[:, 0]).mean())
    assert shift.low < shift.value < shift.high


def test_every_judge_is_taken_in_turn_when_none_is_named() -> None:
    both = pd.concat([parallel(SCORES).frame, parallel(SCORES[::-1], "llama").frame])
    table = ratings_table(both[["item", "cluster", "language", "rater", "rater_kind", "score"]])
    rows = consistency.consistency_report(table, bootstrap=0, statistics=["fleiss_kappa"])
    assert {r.judge for r in rows} == {"gpt", "llama"}


def test_a_majority_that_is_tied_gives_no_label() -> None:
    scores = np.array([[1, 1, 2], [1, 2, NAN], [NAN, NAN, NAN], [3, NAN, NAN]])
    assert jury_scores(scores, "majority").tolist()[0::3] == [1, 3]
    assert np.isnan(jury_scores(scores, "majority")[1:3]).all()
    assert jury_scores(scores, "median").tolist()[:2] == [1, 1.5]
    assert np.isnan(jury_scores(scores, "mean")[2])


def test_ensemble_gives_the_jury_the_least_consistent_judge_and_the_gain() -> None:
    rng = np.random.default_rng(19)
    truth = rng.integers(1, 4, (80, 1)).repeat(3, axis=1).astype(float)
    frames = [
        parallel(np.where(rng.random((80, 3)) < 0.7, truth, rng.integers(1, 4, (80, 3))), f"j{j}").frame
        for j in range(3)
    ]
    table = ratings_table(pd.concat(frames)[["item", "cluster", "language", "rater", "rater_kind", "score"]])
    ens, low, gain = consistency.ensemble(table, judges=["j0", "j1", "j2"])
    assert ens.value > low.value
    assert gain.value == pytest.approx(ens.value - low.value)


@pytest.mark.parametrize(
    ("accuracy", "kappa", "printed"),
    [
        ([96.86, 79.03, 93.47, 97.67, 92.04], [0.2999, 0.0748, 0.3620, 0.1399, 0.3694], 0),
        ([56.29, 64.25, 75.93, 74.51, 84.98], [0.1895, 0.0991, 0.2631, 0.1855, 0.2352], 0.6),
        ([92.64, 53.57, 92.42, 94.17, 85.88], [0.1307, 0.1463, 0.0775, 0.1327, 0.1691], -0.5),
    ],
)
def test_published_correlations_of_consistency_and_level(
    accuracy: list[float], kappa: list[float], printed: float
) -> None:
    # S1, Tables 2 and 3, Yes/No on XQuAD, MGSM and WMT23: five judges.
    assert consistency.kappa_against_level(kappa, accuracy).value == pytest.approx(printed, abs=1e-9)


def test_the_gap_between_two_criteria_is_the_difference_of_their_kappas() -> None:
    coarse, fine = parallel((SCORES > 1).astype(float)).frame, parallel(SCORES).frame
    both = pd.concat([coarse.assign(criterion="yes/no"), fine.assign(criterion="grade")])
    kept = ["item", "cluster", "language", "rater", "rater_kind", "score", "criterion"]
    gap = consistency.criterion_gap(ratings_table(both[kept]), judge="gpt", first="yes/no", second="grade")
    expected = [oracle(aggregate_raters(scores)[0]) for scores in ((SCORES > 1).astype(float), SCORES)]
    assert gap.value == pytest.approx(expected[0] - expected[1])
