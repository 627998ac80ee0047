"""Preferences: by hand, the published table of four journals, statsmodels, and exact refits without a cluster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import Scale, range_scale
from analytics.stats.core.shares import wilson_of_share
from analytics.stats.core.validation import ratings_table
from analytics.stats.ranking import preferences
from analytics.stats.ranking.preferences import BradleyTerry, bradley_terry

Floats = NDArray[np.float64]
SCALE = {"better": Scale(points=(1.0, 1.5, 2.0), level="ordinal")}
JOURNALS = {(0, 1): (730, 33), (0, 2): (498, 320), (0, 3): (221, 284), (1, 2): (68, 813), (1, 3): (17, 276),
            (2, 3): (142, 325)}  # fmt: skip
"""Citations among Biometrika, Communications in Statistics, JASA and JRSS-B (Stigler 1994)."""


def fitted(first: Any, second: Any, win: Any, n: int, cluster: Any = None) -> BradleyTerry:
    own = np.arange(len(first)) if cluster is None else np.asarray(cluster)
    found = bradley_terry(np.asarray(first), np.asarray(second), np.asarray(win, dtype=float), own, n=n)
    assert isinstance(found, BradleyTerry), found
    return found


def test_two_generators_by_hand() -> None:
    # 6 wins, 2 losses, 2 ties: 7 wins of 10; log(7 / 3), half to each side
    found = fitted([0] * 10, [1] * 10, [1] * 6 + [0] * 2 + [0.5] * 2, 2)
    assert found.strength == pytest.approx([math.log(7 / 3) / 2, -math.log(7 / 3) / 2])


def test_the_published_abilities_of_four_journals() -> None:
    rows = [(i, j, won) for (i, j), (a, b) in JOURNALS.items() for won, n in ((1, a), (0, b)) for _ in range(n)]
    first, second, win = map(np.array, zip(*rows, strict=True))
    strength = fitted(first, second, win, 4).strength
    assert strength[1:] - strength[0] == pytest.approx([-2.9491, -0.4796, 0.2690], abs=5e-5)


def simulated(n: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, NDArray[np.intp]]:
    rng, ability = np.random.default_rng(seed), np.array([0.8, 0.0, -0.3, -0.5])
    first = rng.integers(0, 4, n)
    second = (first + rng.integers(1, 4, n)) % 4
    p = 1 / (1 + np.exp(ability[second] - ability[first]))
    win = np.where(rng.random(n) < 0.2, 0.5, (rng.random(n) < p).astype(float))
    return first, second, win, np.arange(n) // 3


def test_ties_and_all_are_a_binomial_model_of_statsmodels() -> None:
    import statsmodels.api as sm

    first, second, win, cluster = simulated(150, 2)
    design = np.zeros((150, 4))
    design[np.arange(150), first] += 1
    design[np.arange(150), second] -= 1
    fit = sm.GLM(win, design[:, 1:], family=sm.families.Binomial()).fit()
    strength = fitted(first, second, win, 4, cluster).strength
    assert strength[1:] - strength[0] == pytest.approx(fit.params, abs=1e-6)


def test_a_cluster_left_out_is_nearly_a_fit_without_it() -> None:
    first, second, win, cluster = simulated(240, 5)
    found = fitted(first, second, win, 4, cluster)
    assert found.without is not None and found.without.shape == (80, 4)
    exact = np.stack([fitted(first[k], second[k], win[k], 4).strength for k in (cluster != c for c in range(80))])
    assert found.without == pytest.approx(exact, abs=5e-3)
    assert found.without.std(axis=0) == pytest.approx(exact.std(axis=0), rel=0.03)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], preferences.NO_PREFERENCES),
        ([(0, 1, 1.0), (0, 1, 1.0)], preferences.NEVER_BEATEN),
        ([(0, 1, 1.0), (0, 1, 0.0), (2, 3, 0.5)], preferences.NOT_COMPARED),
    ],
)
def test_no_finite_strength_has_a_reason(rows: list[tuple[int, int, float]], reason: str) -> None:
    first, second, win = (np.array([row[k] for row in rows]) for k in range(3))
    found = bradley_terry(
        first.astype(int), second.astype(int), win, np.arange(len(rows)), n=4 if len(rows) == 3 else 2
    )
    assert found == reason


def compared(n: int) -> pd.DataFrame:
    """Two people and a judge on pairs of three models; the better model stands second in half of the items."""
    rows = []
    for place in range(n):
        a, b = (("atlas", "birch"), ("cedar", "atlas"), ("birch", "cedar"))[place % 3]
        for rater, score in (("mari", (1.0, 2.0, 1.5)[place % 3]), ("jaan", (1.0, 2.0)[place % 2]), ("judge", 1.0)):
            kind = "judge" if rater == "judge" else "annotator"
            rows.append(
                {"item": f"i{place}", "cluster": f"s{place}", "criterion": "better", "language": "en", "repeat": 1}
                | {"rater": rater, "rater_kind": kind, "score": score, "model_a": a, "model_b": b}
            )
    return pd.DataFrame(rows)


def rows_of(frame: pd.DataFrame, **options: Any) -> dict[tuple[str, str, str | None], Estimate]:
    rows = preferences.preference_report(ratings_table(frame, scales=SCALE), **options)
    return {(row.estimate.statistic, str(row.cell["generator"]), row.estimate.variant): row.estimate for row in rows}


def test_an_item_counts_once_and_the_side_is_that_of_the_generator() -> None:
    frame = compared(60)
    rows = rows_of(frame)
    # atlas against cedar: mari always 2 (atlas), jaan 2 on odd items: 20 items, 10 of them with half a win
    win, tie, loss = (rows[name, "atlas", "cedar"] for name in ("win", "tie", "loss"))
    assert (win.value, tie.value, loss.value) == pytest.approx((0.75, 0, 0.25))
    assert (win.n_items, win.n_ratings, win.n_raters) == (20, 40, 2)
    assert rows["tie", "birch", "cedar"].value == pytest.approx(0.5)
    assert win.low is not None and win.high is not None and 0 < win.low < 0.75 < win.high < 1
    strength = rows["strength", "atlas", None]
    assert strength.n_items == 40 and "simultaneous for 3 generators" in (strength.method or "")
    turned = frame.assign(model_a=frame["model_b"], model_b=frame["model_a"], score=3 - frame["score"])
    for key, row in rows_of(turned).items():
        assert row.value == pytest.approx(rows[key].value), key
    of_judge = rows_of(frame, judge="judge")
    # It always takes the first: a circle of three equal generators.
    assert of_judge["strength", "atlas", None].value == pytest.approx(0, abs=1e-9)
    assert of_judge["win", "atlas", "birch"].value == 1
    assert of_judge["win", "atlas", "birch"].low == pytest.approx(wilson_of_share(1, 20)[0], abs=0.03)


def test_items_without_two_models_and_other_scales_have_no_preferences() -> None:
    frame = compared(6)
    assert rows_of(frame.drop(columns="model_a")) == {}
    assert rows_of(frame.assign(model_b="atlas", model_a="atlas")) == {}
    wide = ratings_table(frame, scales={"better": Scale(points=(1.0, 1.5, 2.0, 3.0), level="ordinal")})
    assert preferences.preference_report(wide) == []


def test_every_row_counts_the_raters_and_the_missing_scores_of_its_own_items() -> None:
    frame = compared(60)
    apart = frame["model_b"].eq("birch") | frame["model_a"].eq("birch")
    frame = frame[~(apart & frame["rater"].eq("jaan"))]  # jaan compares cedar with atlas alone
    frame.loc[frame["item"].isin(["i0", "i3"]) & frame["rater"].eq("mari"), "score"] = np.nan
    rows = rows_of(frame)
    assert [rows["win", *pair].n_raters for pair in (("atlas", "birch"), ("atlas", "cedar"))] == [1, 2]
    assert [rows["win", *pair].n_missing for pair in (("atlas", "birch"), ("atlas", "cedar"))] == [2, 0]
    strengths = [rows["strength", name, None] for name in ("atlas", "birch", "cedar")]
    assert [(row.n_raters, row.n_missing) for row in strengths] == [(2, 2), (1, 2), (2, 0)]


def test_a_score_between_the_points_is_missing_and_does_not_end_all_comparisons() -> None:
    frame = compared(60)
    frame.loc[(frame["item"] == "i0") & (frame["rater"] == "mari"), "score"] = 1.2
    table = ratings_table(frame, scales={"better": range_scale(1, 2, None, "interval")})
    rows = [row.estimate for row in preferences.preference_report(table)]
    (win,) = (row for row in rows if row.statistic == "win" and row.variant == "birch")
    assert (win.n_items, win.n_ratings, win.n_missing) == (20, 39, 1)
