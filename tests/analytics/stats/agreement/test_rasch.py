"""Many-facet Rasch: by hand, against maximum likelihood written out, against statsmodels, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from analytics.stats.agreement import rasch
from analytics.stats.agreement.rasch import RaschFit, many_facet_rasch
from analytics.stats.core.validation import ratings_table

Codes = NDArray[np.integer]


def simulated(n: int, severity: list[float], q: int, seed: int) -> tuple[Codes, Codes, Codes]:
    """Three raters of each item, scores from the model with steps one logit apart."""
    rng, points = np.random.default_rng(seed), np.arange(q)
    total = np.r_[0.0, np.cumsum(np.arange(q - 1) - (q - 2) / 2)]
    rows = []
    for item, level in enumerate(rng.normal(0, 1.5, n)):
        for rater in rng.choice(len(severity), 3, replace=False):
            chance = np.exp(points * (level + severity[rater]) - total)
            rows.append((item, rater, rng.choice(q, p=chance / chance.sum())))
    item, rater, code = np.array(rows).T
    return item, rater, code


def fitted(item: Codes, rater: Codes, code: Codes, n_raters: int, q: int) -> RaschFit:
    found = many_facet_rasch(item, rater, code, np.arange(item.max() + 1), n_raters=n_raters, q=q)
    assert isinstance(found, RaschFit), found
    return found


def test_two_raters_of_yes_and_no_by_hand() -> None:
    # 6 items yes-no, 2 items no-yes, 2 equal: the log odds of McNemar's table, log(6 / 2), half to each side.
    item, rater = np.repeat(np.arange(10), 2), np.tile([0, 1], 10)
    code = np.array([1, 0] * 6 + [0, 1] * 2 + [1, 1, 0, 0])
    found = fitted(item, rater, code, 2, 2)
    assert found.severity == pytest.approx([math.log(3) / 2, -math.log(3) / 2])
    assert found.infit == pytest.approx([1, 1])  # one parameter for one proportion: nothing is left over


def test_the_likelihood_written_out_has_its_maximum_there() -> None:
    q, n_raters = 4, 4
    item, rater, code = simulated(60, [-0.6, 0, 0.2, 0.4], q, 3)
    found = fitted(item, rater, code, n_raters, q)

    def minus_likelihood(given: NDArray[np.float64]) -> float:
        severity, total = np.r_[given[: n_raters - 1], -given[: n_raters - 1].sum()], np.r_[0, given[n_raters - 1 :], 0]
        value = 0.0
        for one in range(item.max() + 1):
            own = [(rater[at], code[at]) for at in np.flatnonzero(item == one)]
            for place, (r, a) in enumerate(own):
                for s, b in own[place + 1 :]:
                    ways = range(max(0, a + b - q + 1), min(a + b, q - 1) + 1)
                    logits = [severity[r] * x + severity[s] * (a + b - x) - total[x] - total[a + b - x] for x in ways]
                    here = severity[r] * a + severity[s] * b - total[a] - total[b]
                    value += (here - np.logaddexp.reduce(logits)) / (len(own) - 1)
        return -value + rasch.PENALTY / 2 * float(total @ total)

    best = minimize(minus_likelihood, np.zeros(n_raters - 1 + q - 2), method="BFGS", options={"gtol": 1e-7})
    assert found.severity[:-1] == pytest.approx(best.x[: n_raters - 1], abs=1e-4)
    assert np.cumsum(found.step)[:-1] == pytest.approx(best.x[n_raters - 1 :], abs=1e-4)


def test_two_raters_are_a_conditional_logit_of_statsmodels() -> None:
    from statsmodels.discrete.conditional_models import ConditionalLogit

    item, rater, code = simulated(200, [0.5, -0.2, -0.3], 2, 5)
    kept = rater < 2
    sums, sizes = np.bincount(item[kept], weights=code[kept]), np.bincount(item[kept])
    kept &= np.isin(item, np.flatnonzero((sizes == 2) & (sums == 1)))  # equal answers tell nothing
    item, rater, code = np.unique(item[kept], return_inverse=True)[1], rater[kept], code[kept]
    told = ConditionalLogit(code, (rater == 0)[:, None].astype(float), groups=item).fit(disp=False)
    found = fitted(item, rater, code, 2, 2)
    assert found.severity[0] - found.severity[1] == pytest.approx(told.params[0], abs=1e-3)


def test_many_items_give_the_severities_back_and_an_infit_of_1() -> None:
    true = [-0.8, -0.3, 0.0, 0.4, 0.7]
    found = fitted(*simulated(3000, true, 5, 1), 5, 5)
    assert found.severity == pytest.approx(true, abs=0.12)
    assert found.infit == pytest.approx(np.ones(5), abs=0.08)
    assert np.diff(found.step) == pytest.approx(np.ones(3), abs=0.15)


def test_order_and_reversal() -> None:
    item, rater, code = simulated(80, [-0.5, 0.1, 0.1, 0.3], 4, 9)
    found = fitted(item, rater, code, 4, 4)
    order = np.random.default_rng(0).permutation(len(item))
    assert fitted(item[order], rater[order], code[order], 4, 4).severity == pytest.approx(found.severity)
    assert fitted(item, rater, 3 - code, 4, 4).severity == pytest.approx(-found.severity)
    assert fitted(item, 3 - rater, code, 4, 4).severity == pytest.approx(found.severity[::-1])


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([(0, 0, 1), (1, 1, 0)], "no two raters share an item"),
        ([(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0)], rasch.ALWAYS_ABOVE),
        ([(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 2, 1), (2, 3, 0), (3, 2, 0), (3, 3, 1)], rasch.NOT_CONNECTED),
    ],
)
def test_no_finite_severity_has_a_reason(scores: list[tuple[int, int, int]], reason: str) -> None:
    item, rater, code = np.array(scores).T
    found = many_facet_rasch(item, rater, code, np.arange(9), n_raters=int(rater.max()) + 1, q=2)
    assert found == reason


def rows_of(item: Codes, rater: Codes, code: Codes, judge: int) -> pd.DataFrame:
    kinds = np.where(rater == judge, "judge", "annotator")
    return pd.DataFrame(
        {"item": item, "cluster": item // 2, "criterion": "tone", "rater": [f"r{one}" for one in rater]}
        | {"rater_kind": kinds, "score": code + 1, "language": "et"}
    )


def test_the_report_puts_a_judge_on_the_annotators_scale() -> None:
    frame = rows_of(*simulated(200, [-0.4, 0.1, 0.3, 1.0], 5, 2), judge=3)
    found = rasch.rasch_report(ratings_table(frame), by=("criterion",))
    severity = {row.annotator: row for row in found if row.estimate.statistic == "rasch_severity"}
    people = [severity[f"r{n}"].estimate.value or 0.0 for n in range(3)]
    assert sum(people) == pytest.approx(0)
    of_judge = severity["r3"]
    assert of_judge.judge == "r3" and severity["r0"].judge is None
    assert (of_judge.estimate.low or 0) > 0 and of_judge.estimate.n_raters == 4
    again = rasch.rasch_report(ratings_table(frame.sample(frac=1, random_state=4)), by=("criterion",))
    assert [row.estimate.value for row in again] == pytest.approx([row.estimate.value for row in found])


def test_an_interval_from_few_clusters_says_so_and_slots_are_no_persons() -> None:
    frame = rows_of(*simulated(30, [-0.2, 0.0, 0.1, 0.3], 3, 6), judge=9)
    few = rasch.rasch_report(ratings_table(frame))[0].estimate
    assert "approximate: 15 clusters" in (few.method or "")
    many = rows_of(*simulated(120, [-0.2, 0.0, 0.1, 0.3], 3, 6), judge=9)
    items = sorted(many["item"][many["rater"] == "r3"].unique())[:10]
    seldom = many[(many["rater"] != "r3") | many["item"].isin(items)]
    methods = {
        row.annotator: row.estimate.method or ""
        for row in rasch.rasch_report(ratings_table(seldom))
        if row.estimate.statistic == "rasch_severity"
    }
    assert "approximate" in methods["r3"] and "approximate" not in methods["r0"]
    slots = rasch.rasch_report(ratings_table(frame.assign(rater_identified=False)))
    assert {row.estimate.reason for row in slots} == {rasch.ANONYMOUS}


def test_a_rater_with_extreme_scores_is_named_and_the_others_are_fitted() -> None:
    item, rater, code = simulated(80, [-0.4, 0.0, 0.1, 0.3], 4, 7)
    frame = rows_of(item, rater, code, judge=9)
    top = pd.DataFrame({"item": range(4), "cluster": [n // 2 for n in range(4)], "criterion": "tone", "rater": "r9"})
    top = top.assign(rater_kind="annotator", score=4, language="et")
    rows = rasch.rasch_report(ratings_table(pd.concat([frame, top], ignore_index=True)))
    severity = {row.annotator: row.estimate for row in rows if row.estimate.statistic == "rasch_severity"}
    alone = {row.annotator: row.estimate for row in rasch.rasch_report(ratings_table(frame))
             if row.estimate.statistic == "rasch_severity"}  # fmt: skip
    assert severity["r9"].value is None and severity["r9"].reason == rasch.LEFT_OUT
    for name, row in alone.items():
        assert severity[name].value == pytest.approx(row.value) and severity[name].note == "fitted without r9"
        assert severity[name].low == pytest.approx(row.low)
