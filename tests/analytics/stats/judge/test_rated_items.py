"""Rated items beside those that only the judge scored: by hand, and ratings that are missing by the judge's score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import range_scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import soundness

SCALE = range_scale(-10, 20, None, "interval")


def audited(
    judge: Any, panel: Any, *, cluster: Any = None, probability: Any = None, length: Any = None
) -> dict[tuple[str, str | None], Estimate]:
    """The audits of a judge (N,) whose items have one person's score (N,), NaN where nobody rated them."""
    frame = pd.DataFrame({"item": [f"i{k}" for k in range(len(judge))], "judge": judge, "panel": panel})
    frame["cluster"] = frame["item"] if cluster is None else cluster
    frame["length"] = 100 if length is None else length
    if probability is not None:
        frame["inclusion_probability"] = probability
    rows = [frame.assign(rater="j", rater_kind="judge", score=frame["judge"])]
    rows.append(frame[frame["panel"].notna()].assign(rater="h", rater_kind="annotator", score=frame["panel"]))
    given = pd.concat(rows).drop(columns=["judge", "panel"]).assign(criterion="c")
    table = ratings_table(given, scales={"c": SCALE})
    found = soundness.audit_report(table, judge="j", by=("criterion",), length="length")
    return {(row.estimate.statistic, row.estimate.variant): row.estimate for row in found}


def test_a_difference_of_rated_items_is_welchs_without_clusters() -> None:
    """Of items that stand alone the jackknife error of a difference of means is nearly Welch's."""
    rng = np.random.default_rng(3)
    judge, length = rng.normal(4, 1, 200), rng.integers(50, 400, 200)
    panel = np.where(np.arange(200) < 120, judge, np.nan)
    judge[:120] += 1
    found = audited(judge, panel, length=length)
    score = found["rated_difference", "judge score"]
    assert score.value == pytest.approx(judge[:120].mean() - judge[120:].mean())
    welch = stats.ttest_ind(judge[:120], judge[120:], equal_var=False)
    assert abs(score.value or 0) / (score.se or 1) == pytest.approx(abs(welch.statistic), rel=0.02)
    assert score.note is not None and score.note.startswith("120 rated and 80 not rated")
    assert score.p_corrected is not None and score.p_corrected < 0.001
    assert score.family == 2
    doublings = found["rated_difference", "length"]
    assert doublings.value == pytest.approx(np.log2(length[:120]).mean() - np.log2(length[120:]).mean())


def test_the_weighted_bias_by_hand() -> None:
    """Judge 1: 10 items, 5 rated, gap 0.5. Judge 3: 30 items, 10 rated, gap 2. (10 x 0.5 + 30 x 2) / 40 = 1.625."""
    judge = np.array([1.0] * 10 + [3.0] * 30)
    panel = np.full(40, np.nan)
    panel[:5], panel[10:20] = 0.5, 1.0
    found = audited(judge, panel)["bias_weighted", None]
    assert found.value == pytest.approx(1.625)
    assert "weighted to the judge's scores of all items" in (found.note or "")
    assert "approximate: right where being rated depends on the judge's score alone" in (found.method or "")


def test_probabilities_of_the_draw_are_used_where_they_are_known() -> None:
    """Half of the rated items were drawn with 0.2, half with 0.8: weights 5 and 1.25, gaps 1 and 0."""
    judge, panel = np.full(40, 3.0), np.full(40, np.nan)
    panel[:10], panel[10:20] = 2.0, 3.0
    probability = np.where(np.arange(40) < 10, 0.2, 0.8)
    found = audited(judge, panel, probability=probability)["bias_weighted", None]
    assert found.value == pytest.approx((10 * 5 * 1) / (10 * 5 + 10 * 1.25))
    assert "approximate" not in (found.method or "")


@pytest.mark.parametrize(("n_rated", "why"), [(40, "people rated all"), (3, "fewer than 5"), (37, "fewer than 5")])
def test_too_few_of_either_kind_say_so(n_rated: int, why: str) -> None:
    judge = np.arange(40) % 5 + 0.0
    found = audited(judge, np.where(np.arange(40) < n_rated, judge, np.nan))
    assert why in (found["bias_weighted", None].reason or "")
    assert why in (found["rated_difference", "judge score"].reason or "")


@pytest.mark.slow
def test_ratings_that_are_missing_by_the_judges_score_cover_when_weighted() -> None:
    """The judge is high where it is wrong, and high scores are rated thrice as often: the plain bias misses 0."""
    weighted = plain = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 7])
        truth = rng.normal(4, 1, 240)
        judge = np.round(truth + rng.normal(0, 1, 240))
        rated = rng.random(240) < np.where(judge > 4, 0.6, 0.2)
        found = audited(judge, np.where(rated, truth, np.nan))["bias_weighted", None]
        assert found.low is not None and found.high is not None
        weighted += found.low <= 0 <= found.high
        gaps = (judge - truth)[rated]
        half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
        plain += abs(gaps.mean()) <= half
    assert weighted / 200 > 0.91
    assert plain / 200 < 0.5
