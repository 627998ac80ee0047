"""The edge rulings of METHODS 1 to 4, for every statistic the command line knows: a value, or why there is none."""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command, subcommand_named
from analytics.stats.judge import calibrators, ppi

Row = dict[str, Any]
HEADER = ("item", "rater", "rater_kind", "score", "language", "generator", "cluster", "panel", "rationale", "criterion")
OWN = {
    "calibration": ["--judge", "gpt", "--reference", "mode"],
    "alt-test": ["--judge", "gpt", "--min-items", "2"],
    "correct": ["--judge", "gpt"],
    "plan": ["--judge", "gpt", "--budget", "1000"],
    "compare": ["--raters", "a,b"],
    "contrast": ["--panels", "crowd,experts"],
    "audit": ["--judge", "gpt", "--against", "a", "--family", "gpt=g0", "--length", "rationale"],
    "equivalence": ["--raters", "a,gpt"],
    "severity": ["--judge", "gpt"],
    "conformal": ["--judge", "gpt"],
    "jury": ["--judge", "gpt,c"],
    "gate": ["--judge", "gpt"],
}
RATINGS = [name for name in SUBCOMMANDS if name not in ("surface", "recovery")]
"""The others read dialogues, which have no score."""
PERSONS = ("alt-test", "compare", "gate")
"""These refuse slots: they compare persons."""

POINTS = [0, 1, 2, 3, 1, 2, 0, 3]
PANEL = [(p, p if i % 3 else (p + 1) % 4, p, p if i % 2 else (p + 3) % 4) for i, p in enumerate(POINTS)]
"""Scores of the annotators a, b, c and of the judge."""


def spelt(rows: Any, words: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(words[score] if isinstance(score, int) else score for score in row) for row in rows]


CASES: dict[str, tuple[list[tuple[Any, ...]], list[str]]] = {
    "plain": (PANEL, []),
    "one category": ([(1, 1, 1, 1)] * 8, []),
    "one category of a longer scale": ([(1, 1, 1, 1)] * 8, ["--scale", "0,1,2,3"]),
    "a scale of one point": ([(1, 1, 1, 1)] * 8, ["--scale", "1"]),
    "one rater": ([(row[0], "", "", row[3]) for row in PANEL], []),
    "one item, unanimous": ([(1, 1, 1, 1)], ["--scale", "0,1,2,3"]),
    "one item, two labels": ([(1, 2, "", 1)], ["--scale", "0,1,2,3"]),
    "nothing rated": ([("", "", "", "")] * 4, []),
    "nothing rated on a scale": ([("", "", "", "")] * 4, ["--scale", "0,1,2,3"]),
    "nothing applicable": ([("N/A", "N/A", "N/A", "N/A")] * 4, []),
    "no judge": ([(*row[:3], "") for row in PANEL], []),
    "no annotator": ([("", "", "", row[3]) for row in PANEL], []),
    "never two on an item": ([tuple(row[k] if k == i % 3 else "" for k in range(3)) + row[3:]
                              for i, row in enumerate(PANEL)], []),
    "a category never used": (PANEL, ["--scale", "0,1,2,3,4"]),
    "a constant judge": ([(*row[:3], 2) for row in PANEL], []),
    "constant annotators": ([(2, 2, 2, row[3]) for row in PANEL], []),
    "ties everywhere": ([(0, 1, "", i % 2) for i in range(8)], []),
    "perfect": ([(p, p, p, p) for p in POINTS], []),
    "opposed": ([(p % 2, 1 - p % 2, "", p % 2) for p in POINTS], []),
    "unequal ratings": ([tuple(s if k <= i % 4 else "" for k, s in enumerate(row[:3])) + row[3:]
                         for i, row in enumerate(PANEL)], []),
    "words": (spelt(PANEL, ["poor", "fair", "good", "fine"]), []),
    "words in order": (spelt(PANEL, ["poor", "fair", "good", "fine"]),
                       ["--scale", "poor,fair,good,fine", "--level", "ordinal"]),
    "below nought": (spelt(PANEL, [-2, -1, 0, 1]), []),
    "to a hundred": (spelt(PANEL, [0, 33, 66, 100]), ["--scale", ",".join(map(str, range(101)))]),
    "interval": (spelt(PANEL, [0, 1.5, 2, 7.25]), ["--level", "interval"]),
    "ratio with noughts": (PANEL, ["--level", "ratio"]),
    "nothing but noughts": ([(0, 0, 0, 0)] * 8, ["--level", "ratio"]),
    "flags": ([tuple(int(s > 1) for s in row) for row in PANEL], []),
    "Se + Sp = 1": ([(p % 2, p % 2, "", i // 2 % 2) for i, p in enumerate([0, 1] * 4)] + [("", "", "", 1)] * 3, []),
    "Se + Sp below 1": ([(p % 2, p % 2, "", 1 - p % 2) for p in POINTS] + [("", "", "", 1)] * 3, []),
    "a judge beyond the scale": ([(*row[:3], row[3] + 10) for row in PANEL], ["--scale", "0,1,2,3"]),
    "slots": (PANEL, ["--positional"]),
}  # fmt: skip


ACROSS = ("stability", "consistency", "severity")
"""These compare languages; the others get one."""


def file_of(
    folder: Path,
    rows: Sequence[tuple[Any, ...]],
    languages: Sequence[str] = ("en",),
    criteria: Sequence[str] = ("",),
) -> str:
    """The same scores in every language and on every criterion, of two generators in turn, one scenario an item."""
    path = folder / "edge.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(HEADER)
        for i, row in enumerate(rows):
            for rater, score in zip(("a", "b", "c", "gpt"), row, strict=True):
                kind = "judge" if rater == "gpt" else "annotator"
                panel, rationale = (
                    ("crowd" if rater == "a" else "experts"),
                    "" if rater == "b" else "It is " + "so " * i,
                )
                for language, criterion in product(languages, criteria):
                    own = (language, f"g{i % 2}", f"s{i}", panel, rationale, criterion)
                    lines.writerow((f"s{i}", rater, kind, score, *own))
    return str(path)


def asked(capsys: pytest.CaptureFixture[str], subcommand: str, path: str, *options: str) -> list[Row]:
    """Every statistic of the subcommand, asked for by name; warnings are errors."""
    names = subcommand_named(subcommand).statistics()
    if subcommand == "compare":
        names = ("mcnemar",)  # the others compare two sides (--between): test_differences.py
    argv = [subcommand, path, *OWN.get(subcommand, []), "--statistic", ",".join(names), *options]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = run_command([*argv, "--bootstrap", "200", "--format", "json"])
    printed = capsys.readouterr()
    assert (status, [line for line in printed.err.splitlines() if ": note: " not in line]) == (0, [])
    found: list[Row] = json.loads(printed.out)["estimates"]
    assert {row["statistic"] for row in found} == set(names)
    return found


def assert_sound(row: Row) -> None:
    """A finite value with bounds in order, or a sentence that says why there is none."""
    numbers = {name: row[name] for name in ("value", "se", "p", "low", "high") if row[name] is not None}
    assert all(math.isfinite(number) for number in numbers.values()), row
    assert row["p"] is None or 0 <= row["p"] <= 1, row
    if row["value"] is None:
        assert len(row["reason"].split()) > 2, row
        assert row["low"] is None, row
    else:
        assert row["reason"] is None, row
        assert row["low"] is None or row["low"] <= row["high"], row


FUZZED = ("agreement", "calibration", "alt-test", "stability", "consistency", "correct", "plan", "reference", "compare")
"""A thousand random tables go through these (test_fuzz.py); what METHODS rules of them is below."""


@pytest.mark.parametrize("subcommand", [name for name in RATINGS if name not in FUZZED])
def test_every_statistic_is_finite_or_says_why(
    subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows, options in CASES.values():
        languages = ("en", "et") if subcommand in ACROSS else ("en",)
        path = file_of(tmp_path, rows, languages, ("tone", "form") if subcommand == "criteria" else ("",))
        if "--positional" in options and subcommand in PERSONS:
            assert_refuses_slots(subcommand, path, capsys)
            continue
        for row in asked(capsys, subcommand, path, *options):
            assert_sound(row)


def assert_refuses_slots(subcommand: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([subcommand, path, *OWN[subcommand], "--positional"]) == 2
    assert "anonymous" in capsys.readouterr().err


@pytest.mark.parametrize("subcommand", PERSONS)
def test_what_compares_persons_refuses_slots(
    subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refuses_slots(subcommand, file_of(tmp_path, PANEL), capsys)


# --- what METHODS rules, case by case --------------------------------------------------------------------------------

ONE = "only one category is used: chance alone would agree always"
UNDECLARED = "only one category is used and no scale is declared"
NOT_RATED = "nothing is rated"
NO_PAIR = "no item has two ratings"
FLAT = "the judge's or the reference's scores do not vary"
UNMET = "no item has both a judge score and a reference label"
SLOTS = "raters are anonymous slots (--positional): who agrees with whom is unknown"
RULINGS: dict[str, dict[tuple[str, str, str | None], float | str]] = {
    "one category": {
        ("agreement", "percent_agreement", None): 1,
        ("agreement", "krippendorff_alpha", None): ONE,
        ("agreement", "fleiss_kappa", "unequal"): ONE,
        ("agreement", "fleiss_kappa", "complete"): ONE,
        ("agreement", "cohen_kappa", "unweighted"): ONE,
        ("agreement", "conger_kappa", "identity"): ONE,
        ("agreement", "icc", "1,1"): "the scores do not differ",
        ("agreement", "gwet_ac", "identity"): UNDECLARED,
        ("agreement", "brennan_prediger", "quadratic"): UNDECLARED,
        ("agreement", "verdict_confidence", "observed"): 1,
        ("agreement", "verdict_confidence", "corrected"): "the scale has a single point",
        ("calibration", "mae", None): 0,
        ("calibration", "bias", None): 0,
        ("calibration", "accuracy", None): 1,
        ("calibration", "pearson", None): FLAT,
        ("calibration", "spearman", None): FLAT,
        ("calibration", "kendall_tau_b", None): FLAT,
        ("calibration", "cohen_kappa", "unweighted"): "only one label is used",
        ("stability", "kendall_tau_b", None): "all generators have the same mean in a language: no ranking (ceiling)",
        ("compare", "mcnemar", "exact"): 1,
        ("alt-test", "alt_test_omega", None): 1,  # no difference anywhere, which is below epsilon: p = 0
    },
    "one category of a longer scale": {
        ("agreement", "krippendorff_alpha", None): ONE,
        ("agreement", "gwet_ac", "identity"): 1,
        ("agreement", "gwet_ac", "ordinal"): 1,
        ("agreement", "brennan_prediger", "identity"): 1,
        # Three raters on four points: P(max = 3) = 1/16, P(max = 2) = 9/16, P(max = 1) = 6/16; mean max 27/16 of 3.
        ("agreement", "verdict_confidence", "chance"): 27 / 48,
        ("agreement", "verdict_confidence", "corrected"): 1,
    },
    "a scale of one point": {
        ("agreement", "gwet_ac", "identity"): "the scale has a single point",
        ("agreement", "brennan_prediger", "identity"): "the scale has a single point",
        ("agreement", "krippendorff_alpha", None): ONE,
    },
    "one rater": {
        ("agreement", name, variant): "only one rater"
        for name, variant in [("krippendorff_alpha", None), ("fleiss_kappa", "unequal"), ("gwet_ac", "identity"),
                              ("brennan_prediger", "identity"), ("cohen_kappa", "unweighted"),
                              ("conger_kappa", "identity"), ("verdict_confidence", "observed")]
    },
    "one item, unanimous": {
        ("agreement", "krippendorff_alpha", None): ONE,
        ("agreement", "gwet_ac", "identity"): 1,
        ("agreement", "icc", "2,1"): "fewer than two items were scored by all 3 raters",
        ("calibration", "mae", None): 0,
        ("calibration", "pearson", None): FLAT,
    },
    "one item, two labels": {
        ("agreement", "krippendorff_alpha", None): 0,
        # p_a = 0, pi = (1/2, 1/2), q = 4: p_e = (1/4 + 1/4) / 3 = 1/6.
        ("agreement", "gwet_ac", "identity"): (0 - 1 / 6) / (1 - 1 / 6),
        ("agreement", "brennan_prediger", "identity"): (0 - 1 / 4) / (1 - 1 / 4),
        ("calibration", "mae", None): UNMET,
        ("calibration", "without_reference", None): 1,
    },
    "nothing rated": {("agreement", "krippendorff_alpha", None): NOT_RATED,
                      ("agreement", "cohen_kappa", "unweighted"): NOT_RATED,
                      ("calibration", "mae", None): "the judge scored no item here",
                      ("compare", "mcnemar", "exact"): "no item in common",
                      ("correct", "classical_mean", None): "no item has a human label"},
    "nothing rated on a scale": {("agreement", "gwet_ac", "identity"): NOT_RATED,
                                 ("agreement", "percent_agreement", None): NOT_RATED},
    "nothing applicable": {("agreement", "applicability_agreement", None): 1,
                           ("agreement", "applicability_alpha", None): ONE,
                           ("agreement", "applicability_ac", "identity"): 1,
                           ("agreement", "percent_agreement", None): NOT_RATED},
    "no annotator": {("calibration", "mae", None): UNMET,
                     ("correct", "ppi_plus_mean", "plain"): "no item has both a human label and a judge score",
                     ("correct", "classical_mean", None): "no item has a human label"},
    "never two on an item": {("agreement", "krippendorff_alpha", None): NO_PAIR,
                             ("agreement", "cohen_kappa", "unweighted"): NO_PAIR,
                             ("agreement", "gwet_ac", "identity"): NO_PAIR,
                             ("agreement", "icc", "1,1"): "fewer than two items were scored by all 3 raters",
                             ("compare", "mcnemar", "exact"): "no item in common"},
    "a constant judge": {("calibration", "pearson", None): FLAT,
                         ("calibration", "cohen_kappa", "unweighted"): 0,
                         ("calibration", "precision", "0"): "the judge never gives this label",
                         # lambda 0: the mean of the labels, 7 * 5 / 3 = 35 / 24 over eight items
                         ("correct", "ppi_plus_mean", "plain"): 35 / 24,
                         ("correct", "classical_mean", None): 35 / 24},
    "constant annotators": {("calibration", "spearman", None): FLAT,
                            ("calibration", "recall", "0"): "the reference never gives this label",
                            ("agreement", "krippendorff_alpha", None): ONE},
    "ties everywhere": {("calibration", "mae", None): UNMET, ("calibration", "without_reference", None): 8},
    "perfect": {("agreement", "krippendorff_alpha", None): 1, ("agreement", "icc", "2,1"): 1,
                ("calibration", "kendall_tau_b", None): 1, ("calibration", "f1", "3"): 1,
                ("calibration", "mae", None): 0,
                ("compare", "mcnemar", "exact"): 1, ("compare", "mcnemar", "midp"): 1,  # b + c = 0
                ("compare", "mcnemar", "chi2"): "no discordant item: both raters are right on the same ones",
                ("compare", "mcnemar", "chi2_corrected"): "no discordant item: both raters are right on the same ones"},
    "opposed": {("agreement", "percent_agreement", None): 0, ("agreement", "cohen_kappa", "unweighted"): -1,
                ("compare", "mcnemar", "chi2"): 1, ("compare", "mcnemar", "chi2_corrected"): 1},  # b = c
    "nothing but noughts": {("agreement", "krippendorff_alpha", None): ONE},
    "Se + Sp = 1": {("correct", "rogan_gladen", None):
                    "sensitivity + specificity = 1: the judge tells nothing about the flag"},
    "Se + Sp below 1": {("correct", "rogan_gladen", None): 0, ("calibration", "f1_weighted", None): 0},
    "a judge beyond the scale": {("calibration", "out_of_range", None): 8},
    "slots": {("agreement", "cohen_kappa", "unweighted"): SLOTS, ("agreement", "conger_kappa", "identity"): SLOTS},
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "subcommand"),
    [(case, subcommand) for case, ruled in RULINGS.items() for subcommand in dict.fromkeys(key[0] for key in ruled)],
)
def test_the_rulings_hold(case: str, subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, options = CASES[case]
    path = file_of(tmp_path, rows, ("en", "et") if subcommand in ACROSS else ("en",))
    rows_found = asked(capsys, subcommand, path, *options)
    for row in rows_found:
        assert_sound(row)
    found = {
        (row["statistic"], row["variant"]): row["reason"] if row["value"] is None else pytest.approx(row["value"])
        for row in rows_found
        if not row["raters"] or subcommand == "compare"
        if not row["annotator"]
    }
    ruled = {key[1:]: ruling for key, ruling in RULINGS[case].items() if key[0] == subcommand}
    assert {key: found[key] for key in ruled} == ruled


def test_slots_keep_what_needs_no_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "agreement", file_of(tmp_path, PANEL), "--positional")
    defined = {(row["statistic"], row["variant"]) for row in found if row["value"] is not None}
    assert {("krippendorff_alpha", None), ("fleiss_kappa", "unequal"), ("gwet_ac", "identity"), ("icc", "1,1"),
            ("icc", "1,k")} <= defined  # fmt: skip


# --- what may not matter ---------------------------------------------------------------------------------------------

FREE_OF_SHIFTS = ("kappa", "alpha", "ac", "prediger", "icc", "percent", "verdict", "pearson", "spearman", "tau", "mae",
                  "rmse", "bias", "accuracy", "f1", "precision", "recall", "mcnemar", "alt_test", "gain")  # fmt: skip


def figures(rows: Sequence[Row], *, labels: dict[str, str] | None = None) -> dict[Any, Any]:
    """Value and bounds by statistic, variant, raters and annotator; the variants of labels renamed."""
    return {
        (row["statistic"], (labels or {}).get(row["variant"], row["variant"]), tuple(sorted(row["raters"] or ())),
         row["annotator"], row["language"], row["generator"]): tuple(
            None if row[name] is None else pytest.approx(row[name], abs=1e-9) for name in ("value", "low", "high"))
        for row in rows if any(name in row["statistic"] for name in FREE_OF_SHIFTS)
    }  # fmt: skip


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("subcommand", ["agreement", "calibration", "alt-test", "compare"])
def test_where_a_scale_starts_does_not_matter(
    subcommand: str, level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = asked(capsys, subcommand, file_of(tmp_path, PANEL), "--level", level)
    for points in ([-2, -1, 0, 1], [7, 8, 9, 10]):
        moved = asked(capsys, subcommand, file_of(tmp_path, spelt(PANEL, points)), "--level", level)
        labels = {str(k): str(point) for k, point in enumerate(points)}
        assert figures(moved) == figures(plain, labels=labels)


def test_interval_figures_are_free_of_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, scaled = (
        figures(
            asked(
                capsys, "agreement", file_of(tmp_path, spelt(PANEL, points)), "--level", "interval",
                f"--scale={','.join(map(str, points))}",
            )
        )
        for points in ([0, 1, 2, 3], [-40, -15, 10, 35])
    )  # fmt: skip
    assert scaled == plain


def test_names_of_labels_do_not_matter_to_nominal_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for subcommand in ("agreement", "compare"):
        plain, renamed = (
            figures(asked(capsys, subcommand, file_of(tmp_path, spelt(PANEL, words)), "--level", "nominal"))
            for words in (["a", "b", "c", "d"], ["d", "a", "c", "b"])
        )
        assert {key: found[0] for key, found in renamed.items()} == {key: found[0] for key, found in plain.items()}


def test_who_is_called_what_does_not_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = figures(asked(capsys, "agreement", file_of(tmp_path, PANEL)))
    swapped = figures(asked(capsys, "agreement", file_of(tmp_path, [(c, b, a, j) for a, b, c, j in PANEL])))
    panel = [key for key in plain if not key[2] and key[:2] != ("fleiss_kappa", "paper_compat")]
    assert {key: swapped[key][0] for key in panel} == {key: plain[key][0] for key in panel}


def test_bounds_that_do_not_hold_the_value_are_not_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = (("a", (56.9, 25.5, 43.4)), ("b", (58.0, 3.2, 77.0)))
    path = tmp_path / "sliders.csv"
    rows = [f"{item},h{at},{score}" for item, given in scores for at, score in enumerate(given)]
    path.write_text("\n".join(["item,rater,score", *rows]) + "\n")
    assert run_command(["agreement", str(path), "--statistic", "icc", "--level", "interval", "--format", "json"]) == 0
    found = {row["variant"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    assert found["2,1"]["value"] == pytest.approx(-0.16698, abs=1e-5)
    for form in ("2,1", "2,k"):
        assert (found[form]["low"], found[form]["high"]) == (None, None)
        assert "do not include the value" in found[form]["interval_reason"]


@pytest.mark.parametrize("unit", [5e-324, 1e-200])
def test_scores_whose_squares_are_nought(unit: float) -> None:
    f = np.arange(8) * unit
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = [fit(f, np.arange(8.0))(f) for fit in (calibrators.ridge_affine, calibrators.ordinal_logit)]
        weight = ppi.optimal_lambda(f, f, f)
    assert np.isfinite(lines).all()
    assert (np.diff(lines) > 0).all()
    assert 0 <= weight <= 1
    if unit > 1e-300:
        assert lines[0] == pytest.approx(7 / 2 + (np.arange(8) - 7 / 2) * 8 / 9)
        assert weight == pytest.approx(ppi.optimal_lambda(*[f / unit] * 3))
