"""The stability report on a small parallel file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.ranking import stability


def parallel(effect: Any, n: int = 40, seed: int = 14) -> RatingsTable:
    rng = np.random.default_rng(seed)
    rows = [
        {"item": f"s{i}", "generator": g, "language": language, "rater": "gpt", "rater_kind": "judge",
         "score": float(np.clip(np.round(effect[g][k] + rng.normal(0, 0.7)), 0, 5))}
        for i in range(n) for g in effect for k, language in enumerate(("et", "fi", "hu"))
    ]  # fmt: skip
    return ratings_table(pd.DataFrame(rows))


TABLE = parallel({"a": (1, 1, 4), "b": (2, 2, 3), "c": (3, 3, 2), "d": (4, 4, 1)})


def figures(**options: Any) -> dict[Any, Estimate]:
    found = stability.stability_report(TABLE, judge="gpt", **({"bootstrap": 300} | options))
    return {(c.estimate.statistic, c.estimate.variant, c.languages): c.estimate for c in found if c.languages}


def test_the_reversed_language_is_found_and_the_faithful_one_is_not() -> None:
    found = figures()
    assert found["kendall_tau_b", None, ("et", "fi")].value == 1
    assert found["kendall_tau_b", None, ("et", "hu")].value == -1
    assert found["inversions", None, ("et", "hu")].value == 6
    assert found["confirmed_inversions", None, ("et", "hu")].value == 6
    assert "family of 18 pairs" in found["confirmed_inversions", None, ("et", "hu")].note
    assert found["inversions", None, ("et", "hu")].p < 0.15
    assert found["inversions", None, ("et", "fi")].p == 1
    assert "family of 3" in found["inversions", None, ("et", "hu")].note
    assert "jointly" in found["kendall_tau_b", None, ("et", "fi")].method


def test_paper_compat_stands_beside_the_sound_figures() -> None:
    found = figures()
    printed = found["kendall_tau_b", "paper_compat", ("et", "hu")]
    assert -1 <= printed.value <= -0.9
    assert printed.low is None, "every resample has the reversed ranking"
    near = parallel({"a": (1, 1, 3), "b": (2, 2, 3), "c": (3, 3, 2), "d": (4, 4, 2)}, n=10)
    rows = stability.stability_report(near, judge="gpt", bootstrap=300)
    drawn = next(
        row.estimate for row in rows if row.estimate.variant == "paper_compat" and row.languages == ("et", "hu")
    )
    assert drawn.low < drawn.high
    assert "independently" in drawn.method
    assert not any(variant for _, variant, _ in figures(paper_compat=False))


def test_without_resampling_there_are_values_only() -> None:
    found = figures(bootstrap=0)
    assert found["spearman", None, ("et", "hu")].value == -1
    assert found["spearman", None, ("et", "hu")].low is None
    assert found["inversions", None, ("et", "hu")].p is None


def test_means_carry_their_generator_language_and_count() -> None:
    means = [c for c in stability.stability_report(TABLE, judge="gpt", bootstrap=0) if c.estimate.statistic == "mean"]
    assert len(means) == 12
    frame = TABLE.frame
    for mean in means:
        own = frame[(frame["generator"] == mean.generator) & (frame["language"] == mean.language)]
        assert mean.estimate.value == pytest.approx(own["score"].mean())
        assert mean.estimate.n_items == 40


def test_the_same_seed_gives_the_same_figures() -> None:
    assert figures(seed=5) == figures(seed=5)


def ranks_of(table: RatingsTable) -> dict[tuple[Any, Any], Estimate]:
    rows = stability.stability_report(table, judge="gpt", by=("criterion",), bootstrap=300, paper_compat=False)
    return {(row.generator, row.language): row.estimate for row in rows if row.estimate.statistic == "rank"}


def test_rank_one_follows_the_direction_of_the_scale() -> None:
    turned = replace(TABLE, scales={key: replace(s, lower_is_better=True) for key, s in TABLE.scales.items()})
    highest, lowest = ranks_of(TABLE), ranks_of(turned)
    assert [highest[g, "et"].value for g in "abcd"] == [4, 3, 2, 1]
    assert [lowest[g, "et"].value for g in "abcd"] == [1, 2, 3, 4]
    for place, rank in highest.items():
        assert (lowest[place].low, lowest[place].high) == (5 - rank.high, 5 - rank.low)
    assert "rank 1 is the highest mean" in highest["a", "et"].note
    assert "rank 1 is the lowest mean" in lowest["a", "et"].note


def test_means_and_ranks_of_few_clusters_say_that_they_are_approximate() -> None:
    effect = {"a": (1, 1, 4), "b": (2, 2, 3)}
    for n, is_approximate in ((12, True), (30, False)):
        rows = stability.stability_report(parallel(effect, n=n), judge="gpt", bootstrap=300, paper_compat=False)
        found = [row.estimate for row in rows if row.estimate.statistic in ("mean", "rank")]
        assert len(found) == 12
        assert all(("approximate" in each.method) is is_approximate for each in found)
