"""Tables at the edges that once gave a wrong number or a traceback (issue 9, A and B), through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.stats.agreement.reliability import FORMS, icc
from analytics.stats.cli.commandline import run_command

Row = dict[str, Any]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes (item, rater, score, ...) rows under a header as a CSV file and gives its name."""

    def _write(rows: Iterable[Sequence[Any]], header: str = "item,rater,score") -> str:
        path = tmp_path / "ratings.csv"
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return _write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --format json and gives its rows; its notes are in ``.notes``."""

    def _run(*argv: str, seed: int = 0) -> list[Row]:
        status = run_command([*argv, "--format", "json", "--seed", str(seed)])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        document = json.loads(printed.out)
        _run.notes = printed.err  # type: ignore[attr-defined]
        return list(document["estimates"])

    return _run


def one(rows: Iterable[Row], statistic: str, variant: str | None = None, **wanted: Any) -> Row:
    found = [row for row in rows if row["statistic"] == statistic and (variant is None or row["variant"] == variant)]
    found = [row for row in found if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


def matrix_rows(scores: Any, names: str = "abcdefgh") -> list[tuple[Any, ...]]:
    return [(f"i{i}", names[j], score) for i, row in enumerate(scores) for j, score in enumerate(row)]


def test_more_distinct_scores_than_sixteen_bits_number(write: Any, run: Any) -> None:
    """ICC and variance components of 45,000 distinct scores: codes of 16 bits gave .034 for .794."""
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(0, 2, 15_000)[:, None] + rng.normal(0, 1, (15_000, 3)), 9)
    assert len(np.unique(scores)) > 32_767
    rows = run("agreement", write(matrix_rows(scores.tolist())), "--bootstrap", "0", "--statistic",
               "icc,variance_component")  # fmt: skip
    n, k = scores.shape
    centred = scores - scores.mean()
    bms = k * (centred.mean(axis=1) ** 2).sum() / (n - 1)
    wms = ((centred - centred.mean(axis=1, keepdims=True)) ** 2).sum() / (n * (k - 1))
    assert one(rows, "icc", "1,1")["value"] == pytest.approx((bms - wms) / (bms + (k - 1) * wms), abs=1e-12)
    assert one(rows, "variance_component", "item")["value"] == pytest.approx(4, rel=0.05)


def test_a_slider_of_two_hundred_distinct_points(write: Any, run: Any) -> None:
    """Cohen's kappa from 182 points on: the product of two 16-bit codes overflowed."""
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 1001, (300, 2)) / 10
    scores[:, 1] = np.where(rng.random(300) < 0.6, scores[:, 0], scores[:, 1])
    rows = run("agreement", write(matrix_rows(scores.tolist())), "--bootstrap", "0", "--statistic", "cohen_kappa")
    found = one(rows, "cohen_kappa", "unweighted", raters=["a", "b"])
    points, code = np.unique(scores, return_inverse=True)
    table = np.zeros((len(points), len(points)))
    np.add.at(table, tuple(code.reshape(scores.shape).T), 1 / len(scores))
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    assert found["value"] == pytest.approx((np.trace(table) - chance) / (1 - chance), abs=1e-12)
    assert found["se"] > 0


@pytest.mark.parametrize("form", FORMS)
def test_icc_where_all_means_are_equal(form: str) -> None:
    """A value where the formula has one, and no interval; before, a division by zero."""
    found = icc(np.array([[0.0, 1], [1, 0], [0, 1], [1, 0]]), form)  # type: ignore[arg-type]
    assert found.value == {"1,1": -1.0, "2,1": -2.0, "3,1": -1.0}.get(form)
    assert found.low is None
    assert found.reason or found.interval_reason


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1.0, 1e12])
def test_icc_does_not_depend_on_the_unit_of_the_scores(unit: float) -> None:
    scores = np.array([[9.0, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    found, plain = icc(scores * unit, "2,1"), icc(scores, "2,1")
    assert (found.value, found.low, found.high) == pytest.approx((plain.value, plain.low, plain.high), rel=1e-9)


def test_a_constant_judge_and_a_rare_flag(write: Any, run: Any) -> None:
    """Some resamples have no flag at all: NaN made the JSON unwritable."""
    rows = [(f"i{i}", "gpt", "judge", 0) for i in range(200)]
    rows += [(f"i{i}", "a", "annotator", int(i == 3)) for i in range(60)]
    found = run("correct", write(rows, "item,rater,rater_kind,score"), "--judge", "gpt")
    gain = one(found, "ppi_gain")
    assert gain["value"] == pytest.approx(1.0)
    assert gain["low"] is None
    assert "resamples" in gain["interval_reason"]


def test_shares_of_one_get_wilsons_interval(write: Any, run: Any) -> None:
    """51 of 51 items agreed upon is no proof that all items would be: [1, 1] before."""
    rows = run("agreement", write(matrix_rows([[i % 3] * 3 for i in range(51)])))
    for name in ("percent_agreement", "percent_agreement_pooled", "percent_agreement_exact",
                 "percent_agreement_adjacent"):  # fmt: skip
        found = one(rows, name)
        assert found["value"] == 1.0
        assert found["low"] == pytest.approx(51 / (51 + 1.959964**2), abs=1e-6)
        assert found["high"] == 1.0
        assert "Wilson" in found["method"]
    for name, variant in (("krippendorff_alpha", None), ("fleiss_kappa", "unequal"), ("conger_kappa", "identity")):
        found = one(rows, name, variant)
        assert (found["value"], found["low"]) == (1.0, None)
        assert "same value" in found["interval_reason"]


def test_a_figure_that_no_resample_moves_has_no_interval(write: Any, run: Any) -> None:
    """A judge always one point above the only annotator: bias, MAE and the mean have no width to show."""
    rows = [(f"i{i}", "gpt", "judge", 1e-13) for i in range(30)]
    rows += [(f"i{i}", "a", "annotator", 2e-13) for i in range(30)]
    found = run("calibration", write(rows, "item,rater,rater_kind,score"), "--judge", "gpt")
    for name in ("mae", "bias", "rmse"):
        assert one(found, name)["low"] is None
        assert "same value" in one(found, name)["interval_reason"]
    rows = [
        (item, rater, kind, score if rater == "gpt" else float(item[1:]) * 1e-13) for item, rater, kind, score in rows
    ]
    found = run("calibration", write(rows, "item,rater,rater_kind,score"), "--judge", "gpt")
    mae = one(found, "mae")
    assert 0 < mae["low"] < mae["value"] < mae["high"]


@pytest.mark.parametrize("few", ["1", "20", "199"])
def test_fewer_than_two_hundred_resamples_are_refused(write: Any, capsys: pytest.CaptureFixture[str], few: str) -> None:
    path = write(matrix_rows([[0, 1], [1, 1], [0, 0]]))
    with pytest.raises(SystemExit) as stopped:
        run_command(["agreement", path, "--bootstrap", few])
    assert stopped.value.code == 2
    assert "200" in capsys.readouterr().err
    assert run_command(["agreement", path, "--bootstrap", "0"]) == 0


def nominal_study(n: int) -> list[tuple[Any, ...]]:
    """Labels a to d; two annotators right in four of five items, a judge right in one of two but never far in code."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 4, n)
    rows: list[tuple[Any, ...]] = []
    for i in range(n):
        near = min(3, truth[i] + 1) if truth[i] < 3 else 2
        rows.append((f"i{i}", "gpt", "judge", "abcd"[truth[i] if rng.random() < 0.5 else near]))
        rows += [(f"i{i}", name, "annotator", "abcd"[truth[i] if rng.random() < 0.8 else rng.integers(4)])
                 for name in ("ann", "bob", "cid")]  # fmt: skip
    return rows


def test_power_is_that_of_the_test_that_is_run(write: Any, run: Any) -> None:
    """On labels without an order the test scores by accuracy; the power did by RMSE on their codes (.97 for .045)."""
    path = write(nominal_study(100), "item,rater,rater_kind,score")
    test = one(run("alt-test", path, "--judge", "gpt"), "alt_test_omega")
    assert test["value"] == 0.0
    assert "accuracy" in test["note"]
    power = one(run("plan", path, "--judge", "gpt", "--bootstrap", "0"), "alt_test_power", "100 items")
    assert power["value"] < 0.2
    assert "accuracy" in power["note"]


def test_power_of_a_pilot_too_small_for_the_test_is_undefined(write: Any, run: Any) -> None:
    """Twenty items, and the test asks for thirty: power 0.0 before."""
    path = write(nominal_study(20), "item,rater,rater_kind,score")
    for row in run("plan", path, "--judge", "gpt", "--bootstrap", "0"):
        if row["statistic"] == "alt_test_power":
            assert row["value"] is None
            assert "30 items" in row["reason"]
    lowered = run("plan", path, "--judge", "gpt", "--bootstrap", "0", "--min-items", "10")
    assert one(lowered, "alt_test_power", "20 items")["value"] is not None


@pytest.mark.parametrize("unit", [1e-9, 1e-5, 1.0, 1e9])
def test_the_alternative_test_does_not_depend_on_the_unit_of_the_scores(write: Any, run: Any, unit: float) -> None:
    """Ties were rounded at an absolute 1e-9: scores near 1e-5 gave rho 1.0."""
    rng = np.random.default_rng(2)
    truth = rng.normal(0, 1, 60)
    rows = [(f"i{i}", "gpt", "judge", float(truth[i] + rng.normal(0, 0.8)) * unit) for i in range(60)]
    rows += [(f"i{i}", name, "annotator", float(truth[i] + rng.normal(0, 0.5)) * unit)
             for i in range(60) for name in "abc"]  # fmt: skip
    rho = one(run("alt-test", write(rows, "item,rater,rater_kind,score"), "--judge", "gpt"), "alt_test_rho",
              annotator=None)  # fmt: skip
    assert rho["value"] == pytest.approx(0.3888889, abs=0.2)
    assert 0 < rho["value"] < 0.8
    rows = [(item, rater, kind, score / unit) for item, rater, kind, score in rows]
    plain = one(run("alt-test", write(rows, "item,rater,rater_kind,score"), "--judge", "gpt"), "alt_test_rho",
                annotator=None)  # fmt: skip
    assert rho["value"] == plain["value"]


@pytest.mark.parametrize("unit", [1e-10, 1.0, 1e10])
def test_rankings_do_not_depend_on_the_unit_of_the_scores(write: Any, run: Any, unit: float) -> None:
    """Means closer than an absolute 1e-9 tied, so that small scores had no ranking."""
    rng = np.random.default_rng(8)
    rows = [(f"s{i}", "gpt", "judge", language, f"g{g}", unit * (g + float(rng.normal(0, 0.3))))
            for i in range(20) for language in ("et", "fi") for g in range(3)]  # fmt: skip
    found = run("stability", write(rows, "item,rater,rater_kind,language,generator,score"), "--judge", "gpt",
                "--bootstrap", "200")  # fmt: skip
    assert [row["value"] for row in found if row["statistic"] == "tied_pairs"] == [0]
    assert [row["value"] for row in found if row["statistic"] == "kendall_tau_b" and not row["variant"]] == [1.0]


GAPPED = [(1, 1), (2, 1), (5, 5), (2, 5), (1, 2), (5, 2), (2, 2), (1, 5), (5, 5), (2, 1)]


def test_whole_numbers_span_the_scale_and_the_scale_is_printed(
    write: Any, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """1, 2, 5 was taken for three points in a row: 2 and 5 counted as one step apart."""
    path = write(matrix_rows(GAPPED))
    rows = run("agreement", path, "--bootstrap", "0")
    assert one(rows, "percent_agreement_adjacent")["value"] == pytest.approx(0.7)
    declared = run("agreement", path, "--bootstrap", "0", "--scale", "1,2,3,4,5")
    values = [[row["value"] for row in found] for found in (rows, declared)]
    assert values[0] == values[1]
    assert {row["scale"] for row in rows} == {"1, 2, 3, 4, 5 (ordinal, inferred)"}
    assert {row["scale"] for row in declared} == {"1, 2, 3, 4, 5 (ordinal)"}
    assert run_command(["agreement", path, "--bootstrap", "0"]) == 0
    assert capsys.readouterr().out.endswith("\nscale: 1, 2, 3, 4, 5 (ordinal, inferred)\n")
    assert run_command(["agreement", path, "--bootstrap", "0", "--format", "csv"]) == 0
    assert '"1, 2, 3, 4, 5 (ordinal, inferred)"' in capsys.readouterr().out


def test_each_criterion_has_the_scale_of_the_whole_file(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"i{i}", rater, name, language, score + shift)
            for i, scores in enumerate(GAPPED) for rater, score in zip("ab", scores, strict=True)
            for name, shift in (("fluency", 0), ("safety", 3)) for language in ("et", "fi")]  # fmt: skip
    rows.append(("i99", "a", "safety", "fi", 11))
    path = write(rows, "item,rater,criterion,language,score")
    assert run_command(["agreement", path, "--bootstrap", "0", "--statistic", "gwet_ac"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [
        "scale of fluency: 1, 2, 3, 4, 5 (ordinal, inferred)",
        "scale of safety: 4, 5, 6, 7, 8, 9, 10, 11 (ordinal, inferred)",
    ]


@pytest.mark.parametrize(("code", "points"), [("-1", "1,2,3,4,5,-1"), ("99", "1,2,3,4,5,99"), ("9", "1,2,3,4,5,9"),
                                              ("-99", "-99,1,2,3,4,5"), ("999", "1,2,3,4,5,999")])  # fmt: skip
def test_likely_codes_for_missing_are_refused_until_settled(
    write: Any, run: Any, capsys: pytest.CaptureFixture[str], code: str, points: str
) -> None:
    """-1 and 99 became points of the scale."""
    path = write([*matrix_rows(GAPPED), ("i98", "a", code), ("i98", "b", 2), ("i99", "a", code), ("i99", "b", 1)])
    assert run_command(["agreement", path, "--bootstrap", "0"]) == 2
    refused = capsys.readouterr().err
    assert f":22: score '{code}' (in 2 rows) looks like a code for a missing score" in refused
    assert "--missing" in refused
    as_missing = run("agreement", path, "--bootstrap", "0", "--missing", code)
    assert f"scores read as missing: '{code}' (2 times)" in run.notes
    assert one(as_missing, "percent_agreement")["n_missing"] == 2
    assert one(as_missing, "percent_agreement")["value"] == 0.4
    for settled in (["--allow-values"], ["--scale", points]):
        rows = run("agreement", path, "--bootstrap", "0", *settled)
        assert one(rows, "percent_agreement")["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("points", [[-1, 0, 1], [-2, -1, 0], list(range(11)), [0, 25, 50, 75, 99], [1, 3, 5, 7, 9]])
def test_scales_with_such_values_in_their_place_are_not_refused(write: Any, run: Any, points: list[int]) -> None:
    rows = matrix_rows([(points[i % len(points)], points[(i * i) % len(points)]) for i in range(40)])
    assert run("agreement", write(rows), "--bootstrap", "0", "--statistic", "percent_agreement")


def test_labels_that_differ_only_in_case_or_spaces_are_refused_until_settled(
    write: Any, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(matrix_rows([("Yes", "yes"), ("no", "no"), ("Yes", "Yes"), ("not sure", "not  sure")]))
    assert run_command(["agreement", path, "--bootstrap", "0"]) == 2
    refused = capsys.readouterr().err.splitlines()
    assert len(refused) == 2
    assert "'Yes' (in 3 rows) and 'yes' (in 1 rows) differ only in case or spaces" in refused[0]
    for settled in (["--allow-values"], ["--scale", "Yes,yes,no,not sure,not  sure"]):
        rows = run("agreement", path, "--bootstrap", "0", *settled)
        assert one(rows, "percent_agreement")["value"] == 0.5


def test_words_for_missing_are_printed_and_a_declared_point_is_none_of_them(write: Any, run: Any) -> None:
    """A region called NA is a label where the scale says so, and a value of its own in any other column."""
    labels = [("NA", "NA"), ("EU", "NA"), ("EU", "EU"), ("AS", "AS")]
    rows = [(*row, "NA" if i < 4 else "EU") for i, row in enumerate(matrix_rows(labels))]
    path = write(rows, "item,rater,score,region")
    found = run("agreement", path, "--bootstrap", "0", "--by", "region", "--statistic", "percent_agreement")
    assert [(row["region"], row["n_missing"]) for row in found] == [("EU", 0), ("NA", 3)]
    assert "scores read as missing: 'NA' (3 times)" in run.notes
    found = run("agreement", path, "--bootstrap", "0", "--scale", "NA,EU,AS")
    assert "missing" not in run.notes
    assert (one(found, "percent_agreement")["value"], one(found, "percent_agreement")["n_missing"]) == (0.75, 0)


def test_the_table_shows_method_error_p_and_what_is_missing(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON and CSV do: the table dropped them, and with them the word "approximate"."""
    rng = np.random.default_rng(4)
    kinds = {"a": "annotator", "b": "annotator", "c": "annotator", "gpt": "judge"}
    rows = [(f"i{i}", rater, kind, "" if (i, rater) == (0, "a") else int(rng.integers(0, 2)))
            for i in range(40) for rater, kind in kinds.items()]  # fmt: skip
    path = write(rows, "item,rater,rater_kind,score")
    assert run_command(["agreement", path, "--bootstrap", "0", "--statistic", "cohen_kappa"]) == 0
    heading, first = capsys.readouterr().out.splitlines()[:2]
    assert heading.split() == ["cell", "statistic", "value", "se", "interval", "items", "x", "raters", "missing",
                               "method"]  # fmt: skip
    assert "Fleiss-Cohen-Everitt (approximate)" in first
    assert run_command(["alt-test", path, "--judge", "gpt", "--bootstrap", "0"]) == 0
    assert " p " in capsys.readouterr().out.splitlines()[0]


def test_every_statistic_is_shown_with_each_annotator_left_out(write: Any, run: Any) -> None:
    """ICC, Cohen and Conger ended in a traceback when they were asked for by name, and were missing otherwise."""
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 4, 40)
    scores = np.clip(truth[:, None] + rng.integers(-1, 2, (40, 4)) * (rng.random((40, 4)) < 0.5), 0, 3)
    names = ("icc", "cohen_kappa", "conger_kappa", "krippendorff_alpha", "fleiss_kappa", "gwet_ac", "percent_agreement",
             "brennan_prediger", "verdict_confidence", "variance_component", "panel_reliability")  # fmt: skip
    for asked in ([",".join(names)], [",".join(names), "--bootstrap", "200"], *([name] for name in names)):
        rows = run("agreement", write(matrix_rows(scores.tolist())), "--leave-one-out", "--bootstrap", "0",
                   "--statistic", *asked)  # fmt: skip
        for name in asked[0].split(","):
            found = [row for row in rows if row["statistic"] == name and row["annotator"]]
            assert {row["annotator"] for row in found} == set("abcd")
            assert all(row["value"] is not None or row["reason"] for row in found)
            assert all("this annotator left out" in row["note"] for row in found)
    without_d = run("agreement", write(matrix_rows(scores[:, :3].tolist())), "--bootstrap", "0", "--scale", "0,1,2,3",
                    "--statistic", "icc,cohen_kappa,conger_kappa")  # fmt: skip
    rows = run("agreement", write(matrix_rows(scores.tolist())), "--bootstrap", "0", "--scale", "0,1,2,3",
               "--statistic", "icc,cohen_kappa,conger_kappa", "--leave-one-out")  # fmt: skip
    expected = {(row["statistic"], row["variant"]): row["value"] for row in without_d if row["raters"] is None}
    shown = {(row["statistic"], row["variant"]): row["value"] for row in rows if row["annotator"] == "d"}
    assert shown == pytest.approx(expected)


def test_a_mode_that_leaves_out_much_has_to_be_chosen(write: Any, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With two annotators every disagreement has no mode: the judge met the easy items only."""

    def study(ties: int) -> str:
        rows = [(f"i{i}", "gpt", "judge", 1) for i in range(40)]
        rows += [(f"i{i}", "a", "annotator", i % 3) for i in range(40)]
        rows += [(f"i{i}", "b", "annotator", (i + (i < ties)) % 3) for i in range(40)]
        return str(write(rows, "item,rater,rater_kind,score"))

    path = study(16)
    assert run_command(["calibration", path, "--judge", "gpt", "--bootstrap", "0"]) == 2
    refused = capsys.readouterr().err
    assert "no mode on 16 of 40 judged items (40%)" in refused
    assert all(word in refused for word in ("--reference mode", "--reference each", "median", "mean"))
    for rule, n in (("mode", 24), ("median", 40), ("mean", 40), ("each", 40)):
        mae = one(run("calibration", path, "--judge", "gpt", "--bootstrap", "0", "--reference", rule), "mae")
        assert mae["n_items"] == n
        assert ("40.0% of the items have no mode and are left out" in (mae["note"] or "")) == (rule == "mode")
    mae = one(run("calibration", study(2), "--judge", "gpt", "--bootstrap", "0"), "mae")
    assert mae["note"] == "5.0% of the items have no mode and are left out"


def test_the_only_annotator_left_out_leaves_nothing(write: Any, run: Any) -> None:
    """Scores so far apart that no category table holds them: the middle of no score was asked for."""
    path = write([("i0", "a", 1), ("i1", "a", 700_000_000)])
    rows = run("agreement", path, "--leave-one-out", "--statistic", "krippendorff_alpha", "--allow-values",
               "--level", "interval")  # fmt: skip
    left = one(rows, "krippendorff_alpha", annotator="a")
    assert (left["value"], left["n_ratings"]) == (None, 0)
    assert left["reason"] == "no two scores that share an item differ"
