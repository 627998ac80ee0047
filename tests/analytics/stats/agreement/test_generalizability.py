"""Variance by source: by hand, against mean squares, against Henderson for items and raters, and invariances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.stats.agreement.generalizability import (
    dependability,
    facet_components,
    generalizability_report,
)
from analytics.stats.agreement.reliability import mean_squares, variance_components
from analytics.stats.core.validation import ratings_table


def test_two_items_by_two_raters_by_hand() -> None:
    # 1 2 / 3 6. Means: items 1.5, 4.5; raters 2, 4; all 3. Sums of squares: items 2 (1.5^2 + 1.5^2) = 9, raters 4,
    # total 4 + 1 + 0 + 9 = 14, rest 1; mean squares 9, 4, 1: rest 1, item (9 - 1) / 2 = 4, rater (4 - 1) / 2 = 1.5.
    y, item, rater = np.array([1.0, 2, 3, 6]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    found = facet_components(y, {"item": item, "rater": rater})
    assert found == pytest.approx({"item": 4, "rater": 1.5, "residual": 1})
    assert dependability(found, 1) == pytest.approx(4 / 6.5)
    assert dependability(found, 5) == pytest.approx(4 / 4.5)


def test_a_full_design_has_the_components_of_its_mean_squares() -> None:
    scores = np.random.default_rng(2).normal(size=(30, 4)) + np.random.default_rng(3).normal(size=(30, 1))
    m = mean_squares(scores)
    item, rater = np.indices(scores.shape)
    found = facet_components(scores.ravel(), {"item": item.ravel(), "rater": rater.ravel()})
    expected = {"item": (m.bms - m.ems) / 4, "rater": (m.jms - m.ems) / 30, "residual": m.ems}
    assert found == pytest.approx(expected)


def test_an_incomplete_design_has_those_of_henderson() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(40, 5)) + rng.normal(size=(40, 1)) + rng.normal(size=(1, 5))
    scores[rng.random(scores.shape) < 0.4] = np.nan
    item, rater = np.nonzero(~np.isnan(scores))
    found, known = facet_components(scores[item, rater], {"item": item, "rater": rater}), variance_components(scores)
    assert found is not None and known is not None
    assert found == pytest.approx({"item": known.item, "rater": known.rater, "residual": known.residual})


def test_expectations_hold_with_languages_and_criteria() -> None:
    """The mean over 400 draws of a design with raters nested in languages gives the variances that were put in."""
    rng, found = np.random.default_rng(8), []
    true = {"item": 1.0, "rater": 0.5, "language": 0.7, "residual": 0.8}
    item = np.repeat(np.arange(60), 3)
    language = item % 6
    rater = language * 4 + np.concatenate([rng.choice(4, 3, replace=False) for _ in range(60)])
    for _ in range(400):
        y = rng.normal(0, np.sqrt(0.8), 180)
        for codes, variance in ((item, 1.0), (rater, 0.5), (language, 0.7)):
            y += rng.normal(0, np.sqrt(variance), codes.max() + 1)[codes]
        found.append(facet_components(y, {"item": item, "rater": rater, "language": language}))
    means = pd.DataFrame(found).mean().to_dict()
    assert means == pytest.approx(true, abs=0.12)


def test_a_design_that_does_not_separate_has_no_components() -> None:
    one = np.arange(6)
    assert facet_components(np.arange(6.0), {"item": one, "rater": one % 2}) is None  # one score an item


def table(pooled: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    rows = []
    for item in range(80):
        level = rng.normal(0, 1)
        for rater in rng.choice(4, 3, replace=False):
            for criterion in ("tone", "sense") if pooled else ("tone",):
                score = int(np.clip(np.round(3 + level + 0.3 * rater + rng.normal(0, 0.7)), 1, 5))
                rows.append((f"i{item}", f"c{item // 2}", criterion, f"r{rater}", score, "etfi"[item % 2 * 2 :][:2]))
    columns = ["item", "cluster", "criterion", "rater", "score", "language"]
    return pd.DataFrame(rows, columns=columns).assign(rater_kind="annotator")


def test_the_report_has_shares_of_all_and_a_rising_curve() -> None:
    found = [row.estimate for row in generalizability_report(ratings_table(table()))]
    shares = {e.variant: e for e in found if e.statistic == "variance_share"}
    assert set(shares) == {"item", "rater", "language", "residual"}
    assert sum(e.value or 0 for e in shares.values()) == pytest.approx(1)
    item = shares["item"]
    assert item.low is not None and item.high is not None and item.low < (item.value or 0) < item.high
    assert "approximate" not in (item.method or "") and "approximate" in (shares["language"].method or "approximate")
    curve = [e.value or 0 for e in found if e.statistic == "dependability"]
    assert len(curve) == 10 and curve == sorted(curve) and 0 < curve[0] < curve[-1] < 1


def test_other_units_and_orders_change_no_share_and_a_judge_has_none() -> None:
    frame = table()
    found = [row.estimate.value for row in generalizability_report(ratings_table(frame))]
    judge = frame.assign(rater="J", rater_kind="judge", score=5).drop_duplicates("item")
    more = pd.concat([frame.sample(frac=1, random_state=1), judge])
    assert [row.estimate.value for row in generalizability_report(ratings_table(more))] == pytest.approx(found)
    scaled = [
        row.estimate.value for row in generalizability_report(ratings_table(frame.assign(score=frame.score * 10)))
    ]
    assert scaled == pytest.approx(found)


def test_pooled_criteria_are_facets() -> None:
    names = {
        row.estimate.variant
        for row in generalizability_report(ratings_table(table(pooled=True)), by=("criterion",), pool=True)
        if row.estimate.statistic == "variance_share"
    }
    assert names == {"item", "rater", "language", "criterion", "item x criterion", "rater x criterion", "residual"}
