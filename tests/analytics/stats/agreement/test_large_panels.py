"""Panels of hundreds: pairs on request only, in time; intraclass correlations computed once (issue 26, C23 and C24)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from analytics.stats.agreement.coefficients import cohen_kappa_kernel, pair_kappas
from analytics.stats.agreement.reliability import FORMS, icc, iccs
from analytics.stats.cli.commandline import run_command
from analytics.stats.core.scales import Weighting, disagreement, scale_of
from tests.analytics.stats.cli.test_wrong_numbers import matrix_rows


def written(path: Path, n_items: int, n_raters: int) -> Path:
    rng = np.random.default_rng(8)
    scores = np.clip(np.round(2 + rng.normal(size=(n_items, 1)) + rng.normal(size=(n_items, n_raters))), 0, 4)
    rows = [f"i{i},r{j},{int(scores[i, j])}" for i in range(n_items) for j in range(n_raters)]
    path.write_text("\n".join(["item,rater,score", *rows]) + "\n")
    return path


def test_three_hundred_raters_give_a_page_of_rows_in_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: 134,584 rows, 47 s, 110 MB."""
    path, started = written(tmp_path / "many.csv", 12, 300), time.process_time()
    assert run_command(["agreement", str(path), "--format", "json"]) == 0
    assert time.process_time() - started < 25
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert len(rows) < 40 and not any(row["raters"] for row in rows)
    means = [row for row in rows if row["statistic"] == "cohen_kappa"]
    assert [row["variant"] for row in means] == ["unweighted", "linear", "quadratic"]
    said = "pairs of more than 24 raters are left out: --pairs all lists them"
    assert all(said in row["note"] and row["value"] is not None for row in means)


def test_pairs_of_a_large_panel_are_listed_on_request_and_the_mean_is_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "some.csv", 30, 25)
    found = {}
    for pairs in ("few", "all"):
        asked = ["--statistic", "cohen_kappa", "--bootstrap", "0", "--pairs", pairs, "--format", "json"]
        assert run_command(["agreement", str(path), *asked]) == 0
        found[pairs] = json.loads(capsys.readouterr().out)["estimates"]
    assert (len(found["few"]), len(found["all"])) == (3, 3 * (300 + 1))
    for mean in found["few"]:
        own = [row for row in found["all"] if row["variant"] == mean["variant"]]
        of_pairs = [row["value"] for row in own if row["raters"]]
        assert mean["value"] == pytest.approx(np.mean(of_pairs))
        (listed,) = (row for row in own if not row["raters"])
        assert listed["value"] == pytest.approx(mean["value"]) and "are left out" not in (listed["note"] or "")


@pytest.mark.parametrize("weighting", ["identity", "linear", "quadratic"])
def test_kappas_of_all_pairs_are_those_of_each_pair(weighting: Weighting) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(-1, 4, size=(15, 7))
    d = disagreement(scale_of(range(4)), weighting)
    kappas, shared = pair_kappas(codes, d)
    for a in range(7):
        for b in range(a):
            one = cohen_kappa_kernel(codes[:, a], codes[:, b], np.ones((1, 15)), d)[0]
            assert kappas[a, b] == pytest.approx(one, nan_ok=True)
            assert shared[a, b] == ((codes[:, a] >= 0) & (codes[:, b] >= 0)).sum()
    alone = pair_kappas(np.array([[0, -1], [-1, 1]]), d)
    assert np.isnan(alone[0][0, 1]) and alone[1][0, 1] == 0


@pytest.mark.parametrize("cluster", [None, 3])
def test_forms_of_icc_together_are_those_of_each(cluster: int | None) -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(30, 1)) + rng.normal(size=(30, 4))
    where = None if cluster is None else np.arange(30) // cluster
    assert iccs(scores, FORMS, cluster=where) == [icc(scores, form, cluster=where) for form in FORMS]
    empty = iccs(np.full((3, 2), np.nan), FORMS)
    assert [row.reason for row in empty] == ["fewer than two items were scored by all 2 raters"] * 6


def test_precision_near_one_says_that_it_is_approximate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 70 answers half a one is expected to be false: .912 of 95 % held, unmarked."""
    rng = np.random.default_rng(5)
    truth = (rng.random(100) < 0.3).astype(int)
    judge = truth.copy()
    judge[np.flatnonzero(truth == 1)[0]] = 0
    rows = matrix_rows(np.column_stack([truth, truth, truth, judge]), names="abcg")
    path = tmp_path / "flags.csv"
    path.write_text("\n".join(["item,rater,score", *(",".join(map(str, row)) for row in rows)]) + "\n")
    asked = ["calibration", str(path), "--judge", "g", "--level", "nominal", "--statistic", "precision,recall"]
    assert run_command([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    assert found and all("(approximate: few answers differ)" in row["method"] for row in found if row["value"] < 1)
    assert run_command([*asked, "--format", "csv"]) == 0
    assert "approximate: few answers differ" in capsys.readouterr().out
