"""Scales with one point far beyond the others, and scores of any size: tolerances follow what occurs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.stats.agreement import coefficients, continuous_scales
from analytics.stats.agreement.coefficients import krippendorff_alpha_kernel
from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.cli.commandline import run_command
from analytics.stats.core.scales import disagreement, scale_of
from analytics.stats.core.tables import coded_from_matrix
from analytics.stats.judge import association
from analytics.stats.judge.association import pearson

RNG = np.random.default_rng(11)
SCORES = np.clip(RNG.integers(1, 4, (60, 1)) + RNG.integers(-1, 2, (60, 3)), 1, 3).astype(float)
FAR = 3e7


def report(path: Path, capsys: pytest.CaptureFixture[str], *argv: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    assert run_command([argv[0], str(path), *argv[1:], "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    return {(row["statistic"], row["variant"], *(row["raters"] or ())): row for row in rows}


def written(path: Path, scores: np.ndarray[Any, Any], unit: float = 1.0) -> Path:
    lines = ["item,rater,rater_kind,score"]
    for i, row in enumerate(scores):
        lines += [f"{i},{name},{'judge' if name == 'c' else 'annotator'},{score * unit!r}"
                  for name, score in zip("abc", row.tolist(), strict=True)]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("level", ["ordinal", "interval"])
@pytest.mark.parametrize(("factor", "more"), [(1.0, ["30000000"]), (1.0, ["3e12"]), (1e-20, []), (1e20, [])])
def test_kappas_and_alpha_do_not_see_points_that_nobody_uses(
    level: str, factor: float, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near = written(tmp_path / "near.csv", SCORES)
    far = written(tmp_path / "far.csv", SCORES, factor)
    points = ",".join([*(repr(x * factor) for x in (1.0, 2.0, 3.0)), *more])
    for command in (["agreement", "--raters", "a,b,c", "--statistic", "cohen_kappa,conger_kappa,krippendorff_alpha"],
                    ["calibration", "--judge", "c", "--reference", "each",
                     "--statistic", "cohen_kappa,ceiling_pearson,pearson,spearman"]):  # fmt: skip
        level_of = ["--level", level, "--bootstrap", "200"]
        plain = report(near, capsys, command[0], *command[1:], "--scale", "1,2,3", *level_of)
        found = report(far, capsys, command[0], *command[1:], "--scale", points, *level_of)
        for key, row in plain.items():
            if key[:2] == ("conger_kappa", "ordinal"):
                continue  # its weights are those of ranks among all points
            assert row["value"] is not None
            assert found[key]["value"] == pytest.approx(row["value"], abs=1e-8), key
            assert (found[key]["low"], found[key]["high"]) == pytest.approx((row["low"], row["high"]), abs=1e-6), key
            if row["se"] is not None:
                assert found[key]["se"] == pytest.approx(row["se"], rel=1e-5), key


def test_a_far_score_does_not_undefine_what_is_left_without_it() -> None:
    """One item far off, alone in its cluster: without it the near points still differ."""
    scores = np.vstack([SCORES[:, :2], [FAR, FAR]])
    for statistic, variant in (("cohen_kappa", "quadratic"), ("conger_kappa", "quadratic"),
                               ("krippendorff_alpha", None)):  # fmt: skip
        found = measure(scores, statistic, variant=variant, scale=scale_of([1, 2, 3, FAR], "interval"),
                        rng=np.random.default_rng(0))  # fmt: skip
        assert found.value is not None and found.interval_reason is None, (statistic, found.interval_reason)
    x, y = SCORES[:, 0], SCORES[:, 1]
    weights = np.append(np.ones(60), 0.0)[None, :]
    assert pearson(np.append(x, FAR), np.append(y, FAR), weights)[0] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-8)


@pytest.mark.parametrize("points", [[1, 2, 3, FAR], [1e-9, 2e-9, 3e-9, 1.0], [-1e40, 1e39, 2e39, 1e40]])
def test_one_point_only_stays_undefined(points: list[float]) -> None:
    scale = scale_of(points, "interval")
    for one in (0, 1, 3):
        codes = np.full((5, 2), one)
        counts = np.zeros((1, 4))
        counts[0, one] = 2
        for weighting in ("identity", "linear", "quadratic", "ordinal"):
            d = disagreement(scale, weighting)
            assert np.isnan(coefficients.cohen_kappa_kernel(codes[:, 0], codes[:, 1], np.ones((1, 5)), d)[0])
            assert np.isnan(coefficients.conger_kappa_kernel(codes, np.ones((1, 5)), d)[0])
            matrix = np.zeros((1, 4, 4))
            matrix[0, one, one] = 5
            assert np.isnan(association.cohen_kappa_of_confusion(matrix, d)[0])
            assert np.isnan(
                continuous_scales.cohen_kappa_of_many_points(
                    codes[:, 0], codes[:, 1], continuous_scales.Distance.of(scale, weighting)
                )[0]
            )
        for level in ("nominal", "ordinal", "interval", "ratio"):
            assert np.isnan(krippendorff_alpha_kernel(counts, np.full((1, 1), 5.0), scale.values, level)[0])  # type: ignore[arg-type]
        found = measure(scale.values[codes], "cohen_kappa", variant="quadratic", scale=scale, bootstrap=0)
        assert found.reason == "only one category is used: chance alone would agree always"


@pytest.mark.parametrize("weighting", ["linear", "quadratic"])
def test_the_long_form_keeps_its_digits_beside_a_far_point(weighting: str) -> None:
    near, far = scale_of([1, 2, 3], "interval"), scale_of([1, 2, 3, FAR], "interval")
    codes = SCORES.astype(np.intp) - 1
    expected = continuous_scales.cohen_kappa_of_many_points(
        codes[:, 0], codes[:, 1], continuous_scales.Distance.of(near, weighting)
    )  # type: ignore[arg-type]
    found = continuous_scales.cohen_kappa_of_many_points(
        codes[:, 0], codes[:, 1], continuous_scales.Distance.of(far, weighting)
    )  # type: ignore[arg-type]
    assert found[0] == pytest.approx(expected[0], abs=1e-7)
    assert found[1] == pytest.approx(expected[1], abs=1e-7)
    long = [continuous_scales.LongScores(coded_from_matrix(SCORES, scale=scale)) for scale in (near, far)]
    for kernel in (
        lambda s: continuous_scales.conger_kappa_of_many_points(s, continuous_scales.Distance.of(s.scale, weighting)),
        continuous_scales.alpha,
    ):  # type: ignore[arg-type]
        (plain, slope), (value, gradient) = (kernel(one) for one in long)
        assert value == pytest.approx(plain, abs=1e-7)
        assert gradient == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_alpha_of_continuous_scores_has_no_unit(unit: float) -> None:
    scores = np.round(
        np.random.default_rng(2).normal(0, 2, (80, 1)) + np.random.default_rng(3).normal(0, 1, (80, 3)), 9
    )
    plain = measure(scores, "krippendorff_alpha", scale=scale_of(np.unique(scores), "interval", declared=False),
                    bootstrap=0)  # fmt: skip
    scaled = scores * unit
    found = measure(scaled, "krippendorff_alpha", scale=scale_of(np.unique(scaled), "interval", declared=False),
                    bootstrap=0)  # fmt: skip
    assert found.value == pytest.approx(plain.value, abs=1e-9)
