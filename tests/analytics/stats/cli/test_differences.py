"""``stats compare --between``: the paired and Welch's t-test where statistics are means, and coverage where not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analytics.stats.cli.commandline import run_command


def write(path: Path, scores: Any, clusters: Any, raters: list[str]) -> str:
    """Scores (2, N, R) of two languages in a file; clusters (2, N)."""
    rows = [
        {"item": f"{language}{i}", "cluster": clusters[k][i], "language": language, "rater": rater,
         "score": scores[k, i, r], "rater_kind": "judge" if rater.startswith("gpt") else "annotator"}
        for k, language in enumerate(("en", "et")) for i in range(scores.shape[1]) for r, rater in enumerate(raters)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(path, index=False)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert run_command([*argv, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["estimates"]


def test_differences_of_means_are_the_paired_and_welchs_t_test(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(1, 25, 1))
    scores = shared + 0.5 * rng.normal(size=(2, 25, 1)) + np.array([0.4, 0.0])[:, None, None]
    options = ("--between", "language=en,et", "--statistic", "judge_mean", "--judge", "gpt")
    paired = write(tmp_path / "paired.csv", scores, [[f"s{i}" for i in range(25)]] * 2, ["gpt"])
    (row,) = run(capsys, "compare", paired, *options)
    theirs = stats.ttest_rel(scores[0, :, 0], scores[1, :, 0])
    assert row["value"] == pytest.approx((scores[0] - scores[1]).mean())
    assert row["p"] == pytest.approx(theirs.pvalue)
    assert (row["low"], row["high"]) == pytest.approx(tuple(theirs.confidence_interval()))
    assert "paired by 25 shared clusters" in row["note"]
    alone = write(tmp_path / "alone.csv", scores, [[f"{k}{i}" for i in range(25)] for k in "ab"], ["gpt"])
    (row,) = run(capsys, "compare", alone, *options)
    assert row["p"] == pytest.approx(stats.ttest_ind(scores[0, :, 0], scores[1, :, 0], equal_var=False).pvalue)
    assert "not paired" in row["note"]


def test_agreement_of_two_languages_and_errors_of_two_judges(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(2)
    quality = rng.normal(size=(1, 90, 1))
    noise = np.array([0.3, 1.2])[:, None, None] * rng.normal(size=(2, 90, 5))
    scores = np.clip(np.round(1.5 + quality + noise + np.array([0, 0, 0, 0, 1.0])), 0, 3).astype(int)
    raters = ["a", "b", "c", "gpt1", "gpt2"]
    path = write(tmp_path / "r.csv", scores, [[f"s{i}" for i in range(90)]] * 2, raters)
    rows = run(capsys, "compare", path, "--between", "language=en,et", "--statistic", "krippendorff_alpha,icc")
    alpha = next(row for row in rows if row["statistic"] == "krippendorff_alpha")
    assert 0 < alpha["low"] < alpha["value"] < alpha["high"]
    assert "60 groups of clusters" in alpha["note"] and "family of 7" in alpha["note"]
    few = write(
        tmp_path / "few.csv", scores[:, :24], [[f"s{i}" for i in range(24)]] * 2, ["a", "b", "c", "gpt1", "gpt2"]
    )
    judges = run(capsys, "compare", few, "--between", "judge=gpt1,gpt2", "--statistic", "mae", "--by", "language")
    assert [row["language"] for row in judges] == ["en", "et"]
    assert judges[0]["value"] < judges[0]["high"] < 0  # gpt2 is a point too lenient
    turned = run(capsys, "compare", few, "--between", "judge=gpt2,gpt1", "--statistic", "mae", "--by", "language")
    assert [row["value"] for row in turned] == pytest.approx([-row["value"] for row in judges])


def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: Any) -> None:
    path = write(tmp_path / "r.csv", np.ones((2, 3, 2)), [["x", "y", "z"]] * 2, ["a", "b"])
    for options, said in (
        (("--between", "language=en,fi", "--statistic", "icc"), "no language is called 'fi'"),
        (("--between", "language=en,et"), "name what to compare"),
        (("--between", "language=en,et", "--statistic", "mae"), "mae is about a judge"),
        (("--statistic", "icc", "--raters", "a,b"), "add --between"),
    ):
        assert run_command(["compare", path, *options]) == 2
        assert said in capsys.readouterr().err
