"""Drift of raters: planted drift is found, steady raters are left alone, and what must not matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.stats.agreement import rasch_drift
from analytics.stats.agreement.rasch_drift import drift_report
from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import scale_of
from analytics.stats.core.validation import ratings_table

NAMES = ["Maija Mägi", 'Said "Sam" O\'Hara', "ليلى", "Zoe\u0301"]


def rated(n: int, drift: list[float], seed: int, *, one_order: bool = False, per_cluster: int = 1) -> pd.DataFrame:
    """Raters of n items on five points, who drift by so many logits at half of their ratings."""
    rng, points = np.random.default_rng([26, seed]), np.arange(5)
    steps = np.r_[0.0, np.cumsum(np.arange(4) - 1.5)]
    level, severity, rows = rng.normal(0, 1.5, n), rng.normal(0, 0.5, len(drift)), []
    for rater, moves in enumerate(drift):
        for time, item in enumerate(range(n) if one_order else rng.permutation(n)):
            chance = np.exp(points * (level[item] + severity[rater] + moves * (time >= n / 2)) - steps)
            rows.append((item, item // per_cluster, NAMES[rater], rng.choice(5, p=chance / chance.sum()), time))
    frame = pd.DataFrame(rows, columns=["item", "cluster", "rater", "score", "submitted_at"])
    return frame.assign(criterion="tone", rater_kind="annotator", language="et")


def drifts(frame: pd.DataFrame) -> dict[str | None, Estimate]:
    report = drift_report(ratings_table(frame, scales={"*": scale_of(range(5))}))
    return {row.annotator: row.estimate for row in report}


def summary(frame: pd.DataFrame) -> dict[str | None, tuple[float, ...]]:
    return {name: (e.value or 0, e.low or 0, e.high or 0, e.p or 0) for name, e in drifts(frame).items()}


@pytest.mark.slow
@pytest.mark.parametrize("one_order", [False, True])
def test_a_planted_drift_is_found_and_those_who_are_steady_are_not(one_order: bool) -> None:
    found = alarms = 0
    for seed in range(12):
        by_name = drifts(rated(80, [2.0, 0, 0, 0], seed, one_order=one_order))
        assert len(by_name) == 4 and all(e.family == 4 for e in by_name.values())
        moved = by_name.pop(NAMES[0])
        found += (moved.p_corrected or 1) < 0.05 and (moved.low or 0) > 0
        alarms += any((e.p_corrected or 1) < 0.05 for e in by_name.values())
    assert found >= 11 and alarms <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("n", "one_order", "per_cluster"), [(30, False, 1), (30, True, 1), (120, False, 4)])
def test_without_drift_false_alarms_are_5_percent_at_most(n: int, one_order: bool, per_cluster: int) -> None:
    p = []
    for seed in range(40):
        found = drifts(rated(n, [0, 0, 0], seed, one_order=one_order, per_cluster=per_cluster))
        p.append(min(e.p_corrected or 1 for e in found.values()))
    assert sum(value < 0.05 for value in p) <= 5  # of 40 with .05: 6 or more have probability .014


def test_all_who_drift_together_are_seen_only_where_orders_differ() -> None:
    apart = drifts(rated(80, [2.0, 2.0, 2.0], 1))
    assert all((e.low or 0) > 0 for e in apart.values())
    together = drifts(rated(80, [2.0, 2.0, 2.0], 1, one_order=True))
    assert {e.note for e in together.values() if e.note} != set()
    for e in together.values():
        assert (e.note or "").startswith(rasch_drift.IN_ONE_ORDER)
        assert "approximate: all rated in one order" in (e.method or "")
    assert not any((e.p_corrected or 1) < 0.05 for e in together.values())


def test_order_of_rows_names_reversal_and_the_unit_of_time_do_not_matter() -> None:
    frame = rated(60, [1.0, 0, 0], 5)
    expected = summary(frame)
    for other in (
        frame.sample(frac=1, random_state=1),
        frame.assign(submitted_at=frame["submitted_at"] * 3600.5 - 7),
        frame.assign(submitted_at=pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(frame["submitted_at"], "h")),
        frame.assign(submitted_at=[f"2026-03-{1 + t // 24:02}T{t % 24:02}:00:00+02:00" for t in frame["submitted_at"]]),
    ):
        assert summary(other) == {name: pytest.approx(values) for name, values in expected.items()}
    backwards = summary(frame.assign(submitted_at=-frame["submitted_at"]))
    upside_down = summary(frame.assign(score=4 - frame["score"]))
    for name, (value, low, high, p) in expected.items():
        assert backwards[name] == pytest.approx((-value, -high, -low, p))
        assert upside_down[name] == pytest.approx((-value, -high, -low, p))


def test_two_raters_of_yes_and_no_by_hand() -> None:
    # In the earlier half "a" says yes alone 3 times and "b" 6 times, in the later half 8 and 4; "b", a judge, is
    # steady: the drift of "a" is the log odds ratio of the two tables of McNemar, log((8 / 4) / (3 / 6)) = log 4.
    answers = [(1, 0)] * 3 + [(0, 1)] * 6 + [(1, 1)] * 11 + [(1, 0)] * 8 + [(0, 1)] * 4 + [(0, 0)] * 8
    rows = [
        {"item": item, "rater": rater, "score": score, "submitted_at": item, "rater_kind": kind}
        for item, pair in enumerate(answers)
        for rater, kind, score in zip("ab", ("annotator", "judge"), pair, strict=True)
    ]
    table = ratings_table(pd.DataFrame(rows).assign(criterion="safe"), scales={"*": scale_of([0, 1], "ordinal")})
    (row,) = drift_report(table)
    assert row.annotator == "a" and row.estimate.value == pytest.approx(np.log(4))
    assert row.estimate.n_items == 40 and "approximate: 20 clusters in a half" in (row.estimate.method or "")


def test_too_few_ratings_no_times_and_one_time_are_refused_with_a_number() -> None:
    few = drifts(rated(2 * rasch_drift.FEWEST - 2, [0, 0, 0], 3))
    assert {e.reason for e in few.values()} == {"a half has 14 items that others rated too; 15 are needed"}
    frame = rated(40, [0, 0, 0], 3)
    assert {e.reason for e in drifts(frame.drop(columns="submitted_at")).values()} == {rasch_drift.NO_TIMES}
    assert {e.reason for e in drifts(frame.assign(submitted_at="2026-03-01")).values()} == {rasch_drift.SAME_TIME}
    seldom = frame[(frame["rater"] != NAMES[0]) | (frame["item"] < 12)]
    assert drifts(seldom)[NAMES[0]].reason == "a half has 6 items that others rated too; 15 are needed"
    assert drifts(seldom)[NAMES[1]].value is not None and drifts(seldom)[NAMES[1]].family == 2
    # Equal times stay in one half: 30 of the 40 ratings came on one day.
    days = frame.assign(submitted_at=np.where(frame["submitted_at"] < 30, 0, frame["submitted_at"]))
    assert {e.reason for e in drifts(days).values()} == {"a half has 10 items that others rated too; 15 are needed"}
