"""The judge against the panel: worked by hand, against scikit-learn and scipy, and the edge rulings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics

from analytics.stats.core import tables, validation
from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.judge import calibration, human_ceiling
from analytics.stats.judge.consistency import consistency_report
from analytics.stats.judge.corrected_means import correction_report, means_report
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel
from tests.analytics.stats.panels import ZERO_TO_THREE, panel_table

NAN = np.nan


def figures_of(table: RatingsTable, **options: Any) -> dict[tuple[str, str | None], Estimate]:
    """{(statistic, variant): estimate} of a table with one cell."""
    cells = calibration.calibration_report(table, judge="gpt", **({"bootstrap": 0} | options))
    return {(c.estimate.statistic, c.estimate.variant): c.estimate for c in cells}


def noisy(n: int = 150, seed: int = 8) -> tuple[calibration.Floats, calibration.Floats]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    humans = np.where(rng.random((n, 3)) < 0.7, truth[:, None], rng.integers(0, 4, (n, 3))).astype(float)
    return humans, np.where(rng.random(n) < 0.6, truth, rng.integers(0, 4, n)).astype(float)


def test_four_items_worked_by_hand() -> None:
    # Modes 2, 0, tie, 3; judge 1.5, 0, 2, 5 (beyond the scale). Two items stay: errors -.5 and 0.
    table = panel_table([[2, 2, 1], [0, 0, 3], [0, 1, NAN], [3, 3, 3]], [1.5, 0, 2, 5])
    found = figures_of(table)
    assert found["mae", None].value == 0.25
    assert found["bias", None].value == -0.25
    assert found["rmse", None].value == pytest.approx(np.sqrt(0.125))
    assert found["accuracy", None].value == 1  # 1.5 is rounded half up to 2
    assert found["out_of_range", None].value == 1
    assert found["without_reference", None].value == 1
    assert (found["mae", None].n_items, found["mae", None].n_ratings, found["mae", None].n_missing) == (2, 6, 2)


def test_figures_match_scikit_learn_and_scipy() -> None:
    humans, judge = noisy()
    table = panel_table(humans, judge)
    compared = JudgeAgainstPanel.of(next(tables.cells(table)), "gpt")
    labels = calibration.panel_labels(compared, "mode")
    kept = ~np.isnan(labels)
    y, x = labels[kept], compared.judge[kept]
    found = figures_of(table)
    assert found["mae", None].value == pytest.approx(metrics.mean_absolute_error(y, x))
    assert found["f1_weighted", None].value == pytest.approx(metrics.f1_score(y, x, average="weighted"))
    assert found["cohen_kappa", "quadratic"].value == pytest.approx(
        metrics.cohen_kappa_score(y.astype(int), x.astype(int), weights="quadratic")
    )
    assert found["kendall_tau_b", None].value == pytest.approx(stats.kendalltau(x, y).statistic)
    assert found["spearman", None].value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found["pearson", None].value == pytest.approx(stats.pearsonr(x, y).statistic)


def test_the_mean_is_the_default_reference_of_an_interval_scale() -> None:
    table = panel_table([[10, 20], [30, 50], [0, 100]], [15, 30, 60], scale=scale_of([0, 100], "interval"))
    (first, *_) = calibration.calibration_report(table, judge="gpt", bootstrap=0)
    assert first.reference == "mean"
    assert first.estimate.value == pytest.approx((0 + 10 + 10) / 3)


def test_each_averages_over_annotators() -> None:
    # Against h1 (0, 1): errors 0, 1; against h2 (2, NaN): error 2. MAE (.5 + 2) / 2.
    table = panel_table([[0, 2], [1, NAN]], [0, 2])
    assert figures_of(table, reference="each")["mae", None].value == 1.25


def test_intervals_hold_the_value_and_repeat_with_the_seed() -> None:
    table = panel_table(*noisy())
    first, second = (figures_of(table, bootstrap=300) for _ in range(2))
    assert first == second
    for estimate in first.values():
        if estimate.low is not None:
            assert estimate.low <= estimate.value <= estimate.high
            shares = ("accuracy", "accuracy_adjacent", "precision", "recall", "f1", "f1_weighted", "f1_macro")
            methods = dict.fromkeys(shares, "Wilson t, jackknife") | {"bias": "jackknife t"}
            methods |= dict.fromkeys(("mae", "rmse"), "jackknife t of the logarithm")
            assert estimate.method.startswith(methods.get(estimate.statistic, "jackknife t of Fisher's z"))
            assert estimate.confidence == 0.95


@pytest.mark.parametrize("figure", [("mae", None), ("accuracy", None), ("recall", "3")])
def test_clusters_are_resampled_whole(figure: tuple[str, str | None]) -> None:
    # Every item copied ten times into one cluster: the interval must be that of the 40 originals, not of 400 items.
    humans, judge = noisy(40)
    alone = figures_of(panel_table(humans, judge), bootstrap=2000)[figure]
    copies = figures_of(
        panel_table(np.repeat(humans, 10, axis=0), np.repeat(judge, 10), cluster=np.repeat(np.arange(40), 10)),
        bootstrap=2000,
    )[figure]
    assert copies.value == pytest.approx(alone.value)
    assert copies.high - copies.low == pytest.approx(alone.high - alone.low, rel=0.15)


@pytest.mark.parametrize("copies", [1, 10])
def test_a_judge_who_is_always_right_is_not_known_to_be(copies: int) -> None:
    # 20 of 20: Wilson's lower end is 20 / (20 + 1.96^2), however often each of the 20 is repeated in its cluster.
    labels = np.repeat(np.arange(20) % 4, copies).astype(float)
    table = panel_table(np.column_stack([labels, labels]), labels, cluster=np.repeat(np.arange(20), copies))
    found = figures_of(table, bootstrap=200)
    assert (found["accuracy", None].low, found["accuracy", None].high) == (pytest.approx(20 / 23.8415, abs=1e-4), 1)
    assert found["recall", "3"].low == pytest.approx(5 / 8.8415, abs=1e-4)
    assert "approximate" not in found["accuracy", None].method
    assert "approximate" in found["recall", "3"].method


def test_a_constant_judge_has_errors_but_no_correlation() -> None:
    found = figures_of(panel_table([[0, 0], [1, 1], [3, 3]], [1, 1, 1]))
    assert found["mae", None].value == 1
    for name in ("pearson", "spearman", "kendall_tau_b"):
        assert found[name, None].value is None
        assert "vary" in found[name, None].reason
    assert found["precision", "0"].reason == "the judge never gives this label"


def test_one_label_only_leaves_kappa_undefined() -> None:
    found = figures_of(panel_table([[2, 2], [2, 2]], [2, 2]))
    assert found["cohen_kappa", "linear"].reason == "only one label is used"
    assert found["accuracy", None].value == 1


def test_text_labels_have_figures_of_labels_only() -> None:
    table = panel_table([["yes", "yes"], ["no", "no"], ["no", "no"]], ["yes", "no", "yes"], scale=None)
    found = figures_of(table)
    assert found["accuracy", None].value == pytest.approx(2 / 3)
    assert found["f1", "yes"].value == pytest.approx(2 / 3)
    assert "nominal" in found["mae", None].reason
    assert "nominal" in found["cohen_kappa", "linear"].reason


def test_a_judge_that_scored_nothing_in_a_cell_is_said() -> None:
    table = panel_table([[1, 1], [2, 2]], [1, None], language=["et", "fi"])
    reasons = {
        c.cell["language"]: c.estimate.reason
        for c in calibration.calibration_report(table, judge="gpt", statistics=["mae"])
    }
    assert reasons == {"et": None, "fi": "the judge scored no item here"}


def test_repeats_of_the_judge_count_once() -> None:
    table = panel_table([[1, 1]], [1])
    import pandas as pd

    again = table.frame.assign(repeat=0)[["item", "rater", "rater_kind", "score", "repeat"]]
    extra = pd.DataFrame([{"item": "i0", "rater": "gpt", "rater_kind": "judge", "score": 3.0, "repeat": 1}])
    both = validation.ratings_table(pd.concat([again, extra]), scales={"*": ZERO_TO_THREE})
    assert figures_of(both)["mae", None].value == 0


def test_confusion_matrix_counts_reference_in_rows() -> None:
    table = panel_table([[0, 0], [0, 0], [3, 3]], [0, 1, 3])
    matrix = calibration.confusion_matrix(JudgeAgainstPanel.of(next(tables.cells(table)), "gpt"), rule="mode")
    assert matrix.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_intervals_in_points_stay_within_what_the_scale_allows() -> None:
    """Two of four scores of 0 or 1 differ: t with 3 degrees of freedom alone would reach beyond 1 and -1."""
    given = {"annotator": [1, 1, 1, 0], "judge": [1, 1, 0, 1]}
    rows = [
        {"item": str(n), "cluster": str(n), "criterion": "f", "language": "en", "generator": "g", "rater": kind,
         "rater_kind": kind, "score": score, "repeat": 1}
        for kind, scores in given.items() for n, score in enumerate(scores)
    ]  # fmt: skip
    table = validation.ratings_table(pd.DataFrame(rows), scales={"f": Scale(points=(0, 1), level="ordinal")})
    bias = next(e.estimate for e in calibration.calibration_report(table, judge="judge", statistics=["bias"]))
    assert (bias.low, bias.high) == (-1, 1)
    for row in means_report(table):  # three of four: skewed, so that the bounds of the scale are in the interval
        e = row.estimate
        assert e.method == "bounded empirical likelihood (approximate: few labels differ)"
        assert e.value == 0.75 and 0 < (e.low or 0) < 0.75 < (e.high or 0) <= 1
    for row in consistency_report(table, judge="judge", pivot="en", statistics=["mean"]):
        assert (row.estimate.value, row.estimate.low, row.estimate.high) == (0.75, 0, 1)
        assert (row.estimate.method or "").endswith("cut at the ends of the scale")


def test_a_value_outside_the_scale_keeps_its_interval() -> None:
    """A PPI mean of 5 + mean(5 - f) = 6.5 on a scale from 1 to 5: cut at 5, its interval would not hold it."""
    scale = Scale(points=(1, 2, 3, 4, 5), level="ordinal")
    humans, judge = [[5.0]] * 30 + [[NAN]] * 30, [3.0, 4.0] * 15 + [5.0] * 30
    rows = correction_report(panel_table(humans, judge, scale=scale), judge="gpt", statistics=["ppi_mean"])
    plain = rows[0].estimate
    assert plain.value == pytest.approx(6.5)
    assert plain.low < plain.value < plain.high


def test_intervals_of_raters_as_a_sample_and_of_the_ceiling_stay_within_the_scale() -> None:
    humans = [(row * 7)[:20] for row in ([1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1])]
    table = panel_table(humans, [0, 1, 0, 0], scale=Scale(points=(0, 1), level="ordinal"))
    like_these = {"judge": "gpt", "raters_as": "sample"}
    mae = calibration.calibration_report(table, statistics=["mae"], reference="mean", **like_these)
    mean = correction_report(table, statistics=["classical_mean"], **like_these)
    ceiling = human_ceiling.ceiling_estimates(JudgeAgainstPanel.of(next(tables.cells(table)), "gpt"))
    within = [row.estimate for row in (*mae, *mean)] + [e for e in ceiling if e.statistic == "ceiling_mae"]
    assert len(within) == 5
    for e in within:
        assert (-1 if e.variant == "difference" else 0) <= e.low <= e.value <= e.high <= 1
        assert (e.method or "").count("cut at") <= 1
    assert any((row.estimate.method or "").endswith("raters), cut at the ends of the scale") for row in mean)
