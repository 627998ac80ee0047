"""Intervals that cover more than they say, and precision and recall of few answers, say so (docs/decisions/0017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.stats.agreement import coefficient_estimates
from analytics.stats.agreement.coefficient_estimates import Resampling
from analytics.stats.cli.commandline import run_command
from analytics.stats.core.estimates import Estimate, Shape, jackknife_interval
from analytics.stats.core.messages import is_approximate, is_conservative
from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import coded_from_matrix
from analytics.stats.judge import calibration
from analytics.stats.judge.ppi import Flags, rogan_gladen
from bench.coverage_processes import IntervalTally
from bench.populations import against_panel, careless_raters, panel
from tests.analytics.stats.cli.test_wrong_numbers import matrix_rows

Floats = NDArray[np.float64]
FLAG, GRADES = scale_of([0, 1], "nominal"), scale_of(range(4))


@pytest.mark.parametrize(
    ("value", "units", "is_kappa", "marked"),
    [
        (0.0, 10, True, True),
        (0.1, 29, True, True),
        (0.6, 10, True, False),
        (0.0, 30, True, False),
        (0.0, 10, False, False),
    ],
)
def test_kappas_of_few_units_near_0(value: float, units: int, is_kappa: bool, marked: bool) -> None:
    shape: Shape = "coefficient"
    made = jackknife_interval(value, 0.08, units - 1, shape, is_kappa=is_kappa)
    assert is_conservative(made.method) is marked and not is_approximate(made.method)
    if marked:
        assert made.method == "Wilson t, jackknife (conservative: near 0)"


def test_fewer_than_six_units_are_a_doubt_before_anything_else() -> None:
    method = jackknife_interval(0.0, 0.1, 4, "coefficient", is_kappa=True).method
    assert method == "Wilson t, jackknife (approximate: 5 independent units)"


def flags_of(n: int, off: int, differ: int) -> Floats:
    """(n, 3) flags of which the first ``off`` items have one, ``differ`` of these of one rater alone."""
    scores = np.zeros((n, 3))
    scores[:off] = 1
    scores[:differ, 1:] = 0
    return scores


def agreement(scores: Floats, cluster: NDArray[np.intp] | None = None) -> dict[tuple[str, str | None], str]:
    """The methods of agreement's intervals."""
    cell = coded_from_matrix(scores, scale=FLAG, clusters=cluster)
    rows = coefficient_estimates.estimates_from_counts(
        cell, coefficient_estimates.figures_for(cell), rng=np.random.default_rng(0), how=Resampling(300)
    )
    return {(e.statistic, e.variant): e.method or "" for e in rows}


JUDGED = ("accuracy", "f1", "f1_weighted", "precision", "recall", "mae", "bias")
SHARES = [("percent_agreement", None), ("percent_agreement_exact", None), ("verdict_confidence", "observed")]
CORRECTED = [("gwet_ac", "identity"), ("verdict_confidence", "corrected")]


@pytest.mark.parametrize("differ", [1, 4, 9])
def test_shares_of_few_items_off_the_commonest_point_however_many_differ(differ: int) -> None:
    few, more = agreement(flags_of(50, 12, differ)), agreement(flags_of(100, 12, differ))
    for name in (*SHARES, *CORRECTED):
        assert few[name].endswith(" (conservative: 12 items off the commonest point)")
    assert [is_conservative(more[name]) for name in (*SHARES, *CORRECTED)] == [False] * 3 + [True] * 2
    assert "(approximate: 12 items off the commonest point)" in few["krippendorff_alpha", None]


def test_shares_of_many_items_off_the_commonest_point_or_of_clusters_are_not_marked() -> None:
    spread, clusters = agreement(flags_of(50, 25, 4)), agreement(flags_of(50, 12, 4), np.arange(50) // 2)
    assert not any("conservative" in found[name] for found in (spread, clusters) for name in (*SHARES, *CORRECTED))


def judged(scores: Floats, judge: Floats, scale: Scale, clusters: int) -> Iterator[tuple[str, Estimate]]:
    """The judge's figures by name, with intervals."""
    compared = against_panel(scores, judge, scale, np.arange(len(judge)) % clusters)
    rule = calibration.default_reference(scale)
    for e in calibration.calibrate(compared, rule=rule, statistics=JUDGED, bootstrap=200, seed=1):
        if e.low is not None:
            yield f"{e.statistic} {e.variant or ''}".strip(), e


def methods_of(n: int, clusters: int, *, share: float, false: int, scale: Scale = FLAG) -> dict[str, str]:
    """Methods of a judge who errs on ``false`` items of each kind."""
    truth = (np.arange(n) % 10 < 10 * share).astype(float) * (1 if scale is FLAG else 3)
    judge = truth.copy()
    for value in np.unique(truth):
        judge[np.flatnonzero(truth == value)[:false]] = truth.max() - value
    return {name: e.method or "" for name, e in judged(np.column_stack([truth] * 3), judge, scale, clusters)}


@pytest.mark.parametrize("false", [4, 15, 30])
def test_precision_and_recall_of_fewer_than_150_answers_whatever_they_are(false: int) -> None:
    few, many = methods_of(200, 200, share=0.5, false=false), methods_of(400, 400, share=0.5, false=false)
    for name in ("precision 0", "recall 1"):
        assert few[name] == "Wilson t, jackknife (approximate: 100 answers)"
        assert many[name] == "Wilson t, jackknife"
    assert methods_of(400, 40, share=0.5, false=30)["recall 1"].endswith("(approximate: 20 answers)")


def test_f1_of_few_answers_and_f1_and_accuracy_of_few_clusters() -> None:
    assert methods_of(200, 200, share=0.2, false=5)["f1 1"].endswith("(conservative: 45 answers)")
    assert not is_conservative(methods_of(200, 200, share=0.2, false=5)["f1 0"])
    ten, twenty = (methods_of(200, clusters, share=0.5, false=20) for clusters in (10, 20))
    for name in ("f1 0", "f1 1", "accuracy"):
        assert ten[name] == "Wilson t, jackknife (conservative: 10 independent units)"
        assert twenty[name] == "Wilson t, jackknife"
    assert ten["f1_weighted"] == "Wilson t, jackknife"


def test_errors_of_few_items_off_the_commonest_grade() -> None:
    few, spread = (methods_of(50, 50, share=share, false=3, scale=GRADES) for share in (0.2, 0.5))
    for name in ("mae", "bias"):
        assert few[name].endswith("(conservative: 13 items off the commonest point)"), few[name]
        assert "conservative" not in spread[name]


def test_prevalence_from_few_clusters() -> None:
    for clusters, marked in ((20, True), (30, False)):
        drawn = np.random.default_rng(3)
        marked_of = {"flagged": (10, 0.3), "true_positives": (3, 0.7), "true_negatives": (7, 0.9)}
        counts = {name: drawn.binomial(n, p, clusters) for name, (n, p) in marked_of.items()}
        counts |= {name: np.full(clusters, n) for name, n in (("judged", 10), ("positives", 3), ("negatives", 7))}
        flags = Flags(**{name: int(found.sum()) for name, found in counts.items()})
        by_cluster = np.column_stack([counts[one.name] for one in fields(flags)]).astype(float)
        found = rogan_gladen(flags, by_cluster=by_cluster)
        assert is_conservative(found.method) is marked


def test_a_row_of_a_table_is_conservative_where_most_of_its_wide_intervals_say_so() -> None:
    tally = IntervalTally(samples=2000, given=2000, held=1970, plain_held=1970, wide=1200)
    assert tally.verdict(0.93, 0.97) == "conservative"
    assert IntervalTally(samples=2000, given=2000, held=1970, plain_held=1970, wide=900).verdict(0.93, 0.97) == "wide"


def test_commands_say_it_in_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flags é.csv"
    rows = matrix_rows(flags_of(50, 12, 4).astype(int), names="abc")
    path.write_text("\n".join(["item,rater,score", *(",".join(map(str, row)) for row in rows)]) + "\n", "utf-8")
    asked = ["agreement", str(path), "--level", "nominal", "--statistic", "percent_agreement"]
    for form in ("json", "csv"):
        assert run_command([*asked, "--format", form]) == 0
        assert "(conservative: 12 items off the commonest point)" in capsys.readouterr().out


@pytest.mark.parametrize(("reference", "is_wide"), [("mode", True), ("mean", False), ("each", False)])
def test_a_judge_against_the_most_frequent_scores_of_a_sample_of_raters(reference: str, is_wide: bool) -> None:
    drawn = careless_raters(40, 30, np.random.default_rng(5))
    rows = calibration.calibration_report(
        panel(drawn.humans, drawn.judge),
        judge="gpt",
        by=[],
        reference=reference,
        statistics=["mae", "bias"],
        bootstrap=200,
        raters_as="sample",
    )
    assert len(rows) == 2
    for row in rows:
        assert row.estimate.low is not None
        assert is_conservative(row.estimate.method) is is_wide, row.estimate.method
