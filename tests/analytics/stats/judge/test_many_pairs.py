"""A judge against a panel on many different scores: closed forms equal the kernels that count pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.cli.commandline import run_command
from analytics.stats.core.scales import Scale
from analytics.stats.judge import association

pytestmark = pytest.mark.slow


@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from(["nominal", "ordinal", "interval"]))
@settings(max_examples=3 * settings().max_examples // 2, deadline=None)
def test_values_and_gradients_equal_the_kernels(seed: int, q: int, level: str) -> None:
    rng = np.random.default_rng(seed)
    points = np.sort(rng.choice(np.arange(40.0), q, replace=False)) / 4
    scale = Scale(tuple(map(float, points)), level)  # type: ignore[arg-type]
    n = int(rng.integers(2, 30))
    y = rng.choice(points, n)
    x = np.where(rng.random(n) < 0.5, y, rng.uniform(points[0], points[-1], n).round(2))
    for figure in association.figures(scale):
        if association.inapplicable(figure, scale):
            continue
        direct = association.values([figure], x, y, np.ones((1, n)), scale)[0, 0]
        value, gradient = association.value_of(figure, x, y, scale)
        assert value == pytest.approx(direct, abs=1e-9, nan_ok=True), (figure.statistic, figure.variant)
        if np.isnan(value) or figure.statistic == "kendall_tau_b":
            continue
        step = 1e-5 * np.eye(n)
        change = (
            association.values([figure], x, y, 1 + step, scale) - association.values([figure], x, y, 1 - step, scale)
        )[0]
        slope = change / 2e-5
        # A label that is given once: its F1 is no straight line over a hundredth of an item.
        assert gradient == pytest.approx(slope, abs=1e-3 * max(1, abs(slope).max())), (figure.statistic, figure.variant)


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_concordance_counts_every_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, int(rng.integers(2, 30)), (2, int(rng.integers(2, 60))))
    direct = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1)
    assert association.concordance(x, y).tolist() == direct.tolist()


def test_the_standard_error_of_tau_is_that_of_leaving_items_out() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    x = x.round(1)
    _, gradient = association.kendall_tau_b_value(x, y)
    keep = ~np.eye(400, dtype=bool)
    without = np.array([association.kendall_tau_b_value(x[row], y[row])[0] for row in keep])
    jackknife = np.sqrt(399 / 400 * ((without - without.mean()) ** 2).sum())
    assert np.sqrt((gradient**2).sum()) == pytest.approx(jackknife, rel=0.02)


def test_many_scores_of_a_slider_give_the_figures_of_a_few_and_their_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,200 items with decimals: linearised; beside it the same file by the resampling kernels."""
    rng = np.random.default_rng(7)
    truth = rng.normal(50, 15, (1200, 1))
    scores = np.clip(truth + rng.normal(0, 8, (1200, 4)), 0, 100).round(2)
    i, r = np.indices(scores.shape).reshape(2, -1)
    frame = pd.DataFrame({"item": i, "rater": np.array(["a", "b", "c", "judge"])[r], "score": scores.ravel()})
    frame.to_csv(tmp_path / "slider.csv", index=False)
    path = str(tmp_path / "slider.csv")
    assert run_command(["calibration", path, "--judge", "judge", "--format", "json"]) == 0
    linearised = {row["statistic"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(association, "MANY_PAIRS", 10**9)
        assert run_command(["calibration", path, "--judge", "judge", "--format", "json", "--bootstrap", "500"]) == 0
    resampled = {row["statistic"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    for name in ("mae", "rmse", "bias", "pearson", "spearman", "kendall_tau_b"):
        ours, theirs = linearised[name], resampled[name]
        assert ours["method"].startswith("linearised t")
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-9)
        width = theirs["high"] - theirs["low"]
        assert ours["low"] == pytest.approx(theirs["low"], abs=0.15 * width)
        assert ours["high"] == pytest.approx(theirs["high"], abs=0.15 * width)
