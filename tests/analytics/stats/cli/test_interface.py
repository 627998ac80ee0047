"""What the command line promises, word by word: options, names, keys, kinds of file, complaints, exit statuses."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command

HEADER = "item,rater,score\n"
ROWS = "a,1,2\na,2,1\nb,1,0\nb,2,0\nc,1,1\nc,2,1\n"
PLAIN = HEADER + ROWS
QUICK = ["--statistic", "percent_agreement,krippendorff_alpha", "--bootstrap", "0"]
JUDGED = "item,rater,score\na,1,2\na,2,2\na,gpt,1.5\nb,1,0\nb,2,0\nb,gpt,0\nc,1,1\nc,2,1\nc,gpt,3\n"
LONG_CELL = "x" * 140_000
KEYS = [
    "statistic", "variant", "level", "criterion", "language", "languages", "judge", "raters", "generator", "annotator",
    "reference", "weights", "value", "se", "p", "low", "high", "confidence", "method", "n_items", "n_raters",
    "n_ratings", "n_missing", "reason",
]  # fmt: skip


def study() -> str:
    """Two criteria of two generators' answers to parallel items in two languages; two annotators and a judge."""
    lines = ["item,rater,rater_kind,criterion,score,language,generator,cluster,task"]
    for i in range(24):
        for language in ("en", "et"):
            for g in ("atlas", "birch"):
                for criterion in ("fluency", "tone"):
                    truth = (i * 7 + (g == "atlas") * (2 if criterion == "tone" else 1) + (language == "et")) % 4
                    given = {"ann": truth, "ben": min(3, truth + i % 2), "gpt": min(3, truth + (i % 3 == 0))}
                    lines += [
                        f"s{i},{rater},{'judge' if rater == 'gpt' else 'annotator'},{criterion},{score},{language},{g},"
                        f"s{i},{'qa' if i % 2 else 'chat'}"
                        for rater, score in given.items()
                        if rater == "gpt" or i < 22
                    ]
    return "\n".join(lines) + "\n"


def written(folder: Path, content: str | bytes, name: str = "ratings.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


def estimates(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert run_command([*argv, "--format", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["estimates"]
    return found


# --- every subcommand, name and key ----------------------------------------------------------------------------------

NAMES = {
    "agreement": """percent_agreement percent_agreement_pooled percent_agreement_exact percent_agreement_adjacent
        cohen_kappa fleiss_kappa krippendorff_alpha gwet_ac brennan_prediger icc verdict_confidence""",
    "calibration --judge gpt --reference mode": """mae rmse bias accuracy f1
        f1_weighted f1_macro precision recall pearson spearman kendall_tau_b
        cohen_kappa out_of_range""",
    "alt-test --judge gpt --min-items 10": "alt_test_omega alt_test_rho",
    "stability --judge gpt": "mean kendall_tau_b spearman inversions",
    "consistency --judge gpt": "fleiss_kappa cohen_kappa mean",
    "correct --judge gpt": "classical_mean ppi_mean ppi_plus_mean",
    "compare --raters ann,ben": "mcnemar",
    "plan": "labels_needed",
}


@pytest.mark.parametrize(("call", "names"), list(NAMES.items()))
def test_every_published_name_is_printed_and_may_be_asked_for(
    call: str, names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subcommand, *options = call.split()
    argv = [subcommand, written(tmp_path, study()), *options, "--bootstrap", "200", "--scale", "0,1,2,3"]
    found = estimates(capsys, *argv)
    assert set(names.split()) <= {row["statistic"] for row in found}
    assert all(list(row)[: len(KEYS)] == KEYS for row in found)
    assert all(row["value"] is not None or row["reason"] for row in found)
    one = names.rsplit(maxsplit=1)[-1]
    assert {row["statistic"] for row in estimates(capsys, *argv, "--statistic", one)} == {one}


@pytest.mark.parametrize(
    ("subcommand", "options", "statistic", "variants"),
    [
        ("agreement", [], "cohen_kappa", {"unweighted", "linear", "quadratic"}),
        ("agreement", [], "fleiss_kappa", {"unequal", "complete", "paper_compat"}),
        ("agreement", [], "gwet_ac", {"identity", "linear", "quadratic", "ordinal"}),
        ("agreement", [], "icc", {"1,1", "1,k", "2,1", "2,k", "3,1", "3,k"}),
        ("agreement", [], "verdict_confidence", {"observed", "chance", "corrected"}),
        ("calibration", ["--judge", "gpt", "--reference", "mode"], "f1", {"0", "1", "2", "3"}),
        ("compare", ["--raters", "ann,ben", "--truth", "mode"], "mcnemar", {"exact", "midp", "chi2", "chi2_corrected"}),
        ("correct", ["--judge", "gpt"], "ppi_plus_mean", {"plain", "crossfit"}),
    ],
)
def test_variants(
    subcommand: str,
    options: list[str],
    statistic: str,
    variants: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, study())
    argv = [subcommand, path, *options, "--statistic", statistic, "--bootstrap", "0", "--scale", "0,1,2,3"]
    assert {row["variant"] for row in estimates(capsys, *argv)} == variants


OWN_CELLS = ("surface", "recovery", "reference", "criteria", "contrast", "rationales", "severity", "gate")
"""Subcommands that read other files, need a column of their own or settle their cells themselves."""


@pytest.mark.parametrize("subcommand", [name for name in SUBCOMMANDS if name not in OWN_CELLS])
def test_shared_options_are_taken_everywhere(
    subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = study().replace(
        "item,rater,rater_kind,criterion,score,language,generator,cluster",
        "unit,coder,rater_kind,facet,points,lang,model,scene",
        1,
    )
    columns = {
        "item": "unit", "rater": "coder", "criterion": "facet", "score": "points", "language": "lang",
        "generator": "model", "cluster": "scene",
    }  # fmt: skip
    judged = ("calibration", "alt-test", "correct", "audit", "conformal")
    own = ["--judge", "gpt"] if subcommand in judged else ["--judge", "gpt,ben"] if subcommand == "jury" else []
    own += ["--reference", "mode"] if subcommand == "calibration" else []
    raters = ["--raters", "ann,ben"] if subcommand in ("agreement", "compare", "equivalence") else []
    argv = [subcommand, written(tmp_path, renamed), *own, *raters, "--by", "criterion,task", "--level", "ordinal",
            "--scale", "0,1,2,3", "--min-items", "5", "--bootstrap", "200", "--seed", "3"]  # fmt: skip
    found = estimates(capsys, *argv, *(word for name, own in columns.items() for word in (f"--{name}", own)))
    assert {row["task"] for row in found if row.get("criterion")} == {"chat", "qa"}
    assert estimates(capsys, *argv, "--pool", *(w for n, own in columns.items() for w in (f"--{n}", own)))


@pytest.mark.parametrize("name", [*SUBCOMMANDS, ""])
def test_help_ends_with_nought(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run_command([name, "--help"] if name else ["--help"])
    assert left.value.code == 0
    assert "usage" in capsys.readouterr().out


# --- kinds of file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", PLAIN),
        ("mark.csv", "\ufeff" + PLAIN),
        ("windows.csv", PLAIN.replace("\n", "\r\n")),
        ("old_mac.csv", PLAIN.replace("\n", "\r")),
        ("no_last_break.csv", PLAIN.rstrip("\n")),
        ("blank_lines.csv", PLAIN.replace("b,1", "\nb,1")),
        ("spaces.csv", PLAIN.replace(",", " , ")),
        ("decimals.csv", PLAIN.replace(",2\n", ",2.0\n")),
        ("tabs.tsv", PLAIN.replace(",", "\t")),
        ("UPPER.CSV", PLAIN),
        ("long_cell.csv", f"item,rater,score,note\na,1,2,{LONG_CELL}\n" + ROWS.replace("\n", ",\n")[7:]),
        ("long_quoted_cell.csv", f'item,rater,score,note\na,1,2,"{LONG_CELL}"\n' + ROWS.replace("\n", ",\n")[7:]),
        ("long_cell.tsv", f"item\trater\tscore\tnote\na\t1\t2\t{LONG_CELL}\n"
         + ROWS.replace("\n", ",\n").replace(",", "\t")[7:]),
        ("lines.jsonl", "".join(json.dumps(dict(zip(["item", "rater", "score"], row.split(","), strict=True))) + "\n"
                                for row in ROWS.split())),
        ("numbers.jsonl", "".join(json.dumps({"item": i, "rater": r, "score": int(s)}) + "\n"
                                  for i, r, s in (row.split(",") for row in ROWS.split()))),
        ("twice.csv", PLAIN + "a,1,2\n"),
        ("blank_score.csv", PLAIN + "a,3,\nb,3,NA\nc,3,NaN\n"),
    ],
)  # fmt: skip
def test_the_same_ratings_give_the_same_figures(
    name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Margins n = (2, 3, 1), one pair a step apart; squared ordinal steps 2.5, 4.5 and 2: alpha = 1 - 5 * 4 / 90.
    found = {row["statistic"]: row for row in estimates(capsys, "agreement", written(tmp_path, content, name), *QUICK)}
    assert found["percent_agreement"]["value"] == pytest.approx(2 / 3)
    assert found["krippendorff_alpha"]["value"] == pytest.approx(1 - 5 * 4 / (6 * 2.5**2 + 2 * 4.5**2 + 3 * 2**2))
    assert found["krippendorff_alpha"]["n_missing"] == (3 if name == "blank_score.csv" else 0)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas as pd

    path = tmp_path / "ratings.parquet"
    pd.read_csv(io.StringIO(PLAIN)).to_parquet(path)
    assert {row["value"] for row in estimates(capsys, "agreement", str(path), *QUICK)} != {None}
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run_command(["agreement", str(path)]) == 2
    assert capsys.readouterr().err == f"{path}:1: reading Parquet needs pyarrow: pip install 'panelbench[parquet]'\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "complaints"),
    [
        ("empty.csv", "", [], ["1: the file is empty"]),
        ("blank.csv", "\n\n", [], ["1: the file is empty"]),
        ("empty.jsonl", "\n", [], ["1: the file holds no rows"]),
        ("header.csv", HEADER, [], ["1: the file holds no rows"]),
        ("header.tsv", "item\trater\tscore\n", [], ["1: the file holds no rows"]),
        ("nul.csv", PLAIN + "d,\0,1\n", [], ["8: holds a NUL byte: is it text?"]),
        ("utf16.csv", PLAIN.encode("utf-16"), [], ["1: is not UTF-8 text"]),
        ("contradiction.csv", PLAIN + "a,1,0\n", [], ["8: rater '1' already rated item 'a' with another score"]),
        ("infinite.csv", PLAIN + "d,1,inf\nd,2,-inf\n", ["--level", "ordinal"],
         ["8: score 'inf' is not a number, but the level is ordinal",
          "9: score '-inf' is not a number, but the level is ordinal"]),
        ("strange.csv", PLAIN, ["--scale", "0,1"], ["2: score '2' is not on the scale 0, 1"]),
        ("judge_text.csv", JUDGED.replace("1.5", "good"), ["--scale", "0,1,2,3"], ["4: score 'good' is not a number"]),
        ("half.csv", JUDGED, ["--scale", "0,1,2,3"], ["4: score '1.5' is not on the scale 0, 1, 2, 3"]),
        ("ragged.csv", PLAIN + "d,1\ne,1,2,3\n", [], ["8: has 2 fields, the header has 3",
                                                    "9: has 4 fields, the header has 3"]),
        ("nobody.csv", PLAIN + ",1,2\nd,,2\n", [], ["8: the item is empty", "9: the rater is empty"]),
        ("broken.jsonl", '{"item": 1}\nnot json\n', [], ["2: is not JSON: Expecting value"]),
        ("truth.jsonl", '{"item": 1, "rater": "a", "score": 2}\n{"item": 1, "rater": "b", "score": true}\n',
         ["--level", "ordinal"], ["2: score 'true' is not a number, but the level is ordinal"]),
        ("words.parquet", b"no such thing", [], ["1: is not a Parquet file"]),
        ("sheet.xlsx", b"PK", [], ["1: the file name should end in .csv, .tsv, .jsonl or .parquet"]),
    ],
)  # fmt: skip
def test_a_bad_file_ends_with_two_and_a_line_for_each_problem(
    name: str,
    content: str | bytes,
    options: list[str],
    complaints: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["agreement", path := written(tmp_path, content, name), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == len(complaints)
    assert all(line.startswith(f"{path}:{said}") for line, said in zip(lines, complaints, strict=True))


@pytest.mark.parametrize(
    "options",
    [["--bootstrap", "-1"], ["--seed", "x"], ["--level", "loud"], ["--by", ""], ["--format", "xml"], ["--nonsense"]],
)
def test_a_bad_option_ends_with_two_and_one_line_that_names_it(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run_command(["agreement", written(tmp_path, PLAIN), *options])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert options[0] in line


# --- scales and levels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "scores", "quadratic"),
    [
        (["--scale", "0,1,2"], "210", True),
        (["--scale", "2,1,0"], "210", True),
        (["--scale", "-1,0,1"], ["1", "0", "-1"], True),
        (["--scale=-1,0,1"], ["1", "0", "-1"], True),
        (["--scale", "0,50,100"], ["100", "50", "0"], True),
        (["--scale", "low,mid,high", "--level", "ordinal"], ["high", "mid", "low"], True),
        (["--scale", "No,Unsure,Yes"], ["Yes", "Unsure", "No"], False),
        ([], ["Yes", "Unsure", "No"], False),
    ],
)
def test_a_scale_in_any_spelling(
    scale: list[str], scores: list[str], quadratic: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top, middle, bottom = scores
    text = HEADER + f"a,1,{top}\na,2,{middle}\nb,1,{bottom}\nb,2,{bottom}\nc,1,{middle}\nc,2,{middle}\n"
    argv = ["agreement", written(tmp_path, text), "--bootstrap", "0", "--statistic", "percent_agreement,cohen_kappa"]
    found = {(row["statistic"], row["variant"]): row for row in estimates(capsys, *argv, *scale) if not row["raters"]}
    assert found["percent_agreement", None]["value"] == pytest.approx(2 / 3)
    # Margins (1, 1, 1) and (1, 2, 0): p_e = 1/9 + 2/9; squared steps seen 1/3, by chance 1.
    assert found["cohen_kappa", "unweighted"]["value"] == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))
    assert (("cohen_kappa", "quadratic") in found) == quadratic
    if quadratic:
        assert found["cohen_kappa", "quadratic"]["value"] == pytest.approx(1 - (1 / 3) / 1)


def test_a_judge_beyond_the_scale_is_counted_and_between_its_points_is_rounded_for_labels_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["calibration", written(tmp_path, JUDGED), "--judge", "gpt", "--scale", "0,1,2", "--bootstrap", "0"]
    found = {(row["statistic"], row["variant"]): row["value"] for row in estimates(capsys, *argv)}
    assert found["out_of_range", None] == 1
    assert (found["mae", None], found["bias", None]) == (0.25, -0.25)
    assert (found["accuracy", None], found["f1", "2"]) == (1, 1)


def test_compare_takes_a_judges_fractions_where_it_is_told_who_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compare", written(tmp_path, JUDGED), "--raters", "1,gpt", "--scale", "0,1,2,3"]
    assert run_command(argv) == 2
    assert "score '1.5' is not on the scale" in capsys.readouterr().err
    exact = next(row for row in estimates(capsys, *argv, "--judge", "gpt") if row["variant"] == "exact")
    # Against rater 2's labels 2, 0, 1: rater 1 is right thrice, the judge (2, 0, 3) twice; b = 1, c = 0: p = 1.
    assert (exact["value"], exact["n_items"]) == (1, 3)


# --- anonymous slots -------------------------------------------------------------------------------------------------


def test_slots_have_no_person_level_kappa(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = estimates(capsys, "agreement", written(tmp_path, PLAIN), "--positional", "--bootstrap", "0")
    refused = {row["statistic"] for row in found if row["value"] is None and "anonymous slots" in row["reason"]}
    assert refused == {"cohen_kappa", "conger_kappa"}
    sound = {row["statistic"] for row in found if row["value"] is not None}
    assert {"krippendorff_alpha", "fleiss_kappa", "gwet_ac", "brennan_prediger", "icc"} <= sound
    warned = {row["variant"] for row in found if row["statistic"] == "icc" and row["note"] and "slots" in row["note"]}
    assert warned == {"2,1", "2,k", "3,1", "3,k"}


@pytest.mark.parametrize(
    "argv", [["compare", "--raters", "1,2"], ["alt-test", "--judge", "1"], ["agreement", "--leave-one-out"]]
)
def test_what_compares_persons_refuses_slots(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([argv[0], written(tmp_path, PLAIN), *argv[1:], "--positional"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "anonymous" in line


# --- output ----------------------------------------------------------------------------------------------------------


def test_json_csv_and_table_tell_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["agreement", written(tmp_path, PLAIN), *QUICK]
    rows = estimates(capsys, *argv)
    run_command([*argv, "--format", "csv"])
    spread = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(row["value"]) for row in spread] == [row["value"] for row in rows]
    assert list(spread[0])[: len(KEYS)] == KEYS
    assert spread[0]["scale"] == rows[0]["scale"] == "0, 1, 2 (ordinal, inferred)"
    run_command(argv)
    _, *lines, scale = capsys.readouterr().out.splitlines()
    assert all(f"{row['value']:.4f}" in line for row, line in zip(rows, lines, strict=True))
    assert scale == f"scale: {rows[0]['scale']}"


def test_clusters_are_counted_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{item},{rater},{item % 3},s{item // 2}" for item in range(8) for rater in ("a", "b")]
    path = written(tmp_path, "item,rater,score,cluster\n" + "\n".join(rows) + "\n")
    assert {row["n_clusters"] for row in estimates(capsys, "agreement", path, *QUICK)} == {4}
    run_command(["agreement", path, *QUICK, "--format", "csv"])
    assert {row["n_clusters"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))} == {"4"}
    run_command(["agreement", path, *QUICK])
    assert "8 in 4 clusters x 2" in capsys.readouterr().out


def test_provenance_names_command_version_seed_and_the_files_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import hashlib

    path = written(tmp_path, PLAIN)
    assert run_command(["agreement", path, "--format", "json", "--seed", "7", *QUICK]) == 0
    said = json.loads(capsys.readouterr().out)["provenance"]
    assert said["command"].startswith(f"panelbench stats agreement {path} --format json --seed 7")
    assert said["seed"] == 7
    assert said["input_sha256"] == hashlib.sha256(PLAIN.encode()).hexdigest()
    assert said["version"]
