"""Files nobody meant to write: all subcommands give figures or name the line, and never break."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command

HEADER = "item,rater,score\n"
SCORES = [(2, 1, 2), (0, 0, 1), (1, 1, 1), (3, 2, 3), (0, 1, 0), (2, 2, 2)]
CELLS = [(i, rater, score) for i, row in enumerate(SCORES) for rater, score in zip(("a", "b", "gpt"), row, strict=True)]
OWN = {
    "calibration": ["--judge", "gpt", "--reference", "mode"],
    "alt-test": ["--judge", "gpt"],
    "correct": ["--judge", "gpt"],
    "plan": ["--judge", "gpt"],
    "compare": ["--raters", "a,b"],
    "contrast": ["--panels", "crowd,experts"],
    "audit": ["--judge", "gpt", "--against", "a"],
    "equivalence": ["--raters", "a,gpt"],
    "severity": ["--judge", "gpt"],
    "conformal": ["--judge", "gpt"],
    "jury": ["--judge", "gpt,b"],
    "gate": ["--judge", "gpt"],
}
# The others read dialogues, which have no score.
RATINGS = [name for name in SUBCOMMANDS if name not in ("surface", "recovery")]


def csv_of(cells: Any = CELLS, header: str = HEADER) -> str:
    return header + "".join(",".join(map(str, cell)) + "\n" for cell in cells)


def respelt(spell: Any) -> str:
    return csv_of([(item, rater, spell(item, rater, score)) for item, rater, score in CELLS])


def written(folder: Path, content: str | bytes, name: str = "odd.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def ran(capsys: pytest.CaptureFixture[str], subcommand: str, path: str, *options: str) -> tuple[int, str, list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = run_command(
            [subcommand, path, *OWN.get(subcommand, []), *options, "--bootstrap", "200", "--format", "json"]
        )
    printed = capsys.readouterr()
    return status, printed.out, printed.err.splitlines()


def soundly(capsys: pytest.CaptureFixture[str], subcommand: str, path: str, *options: str) -> list[dict[str, Any]]:
    """The estimates, each a finite number or a sentence that says why there is none."""
    status, out, errors = ran(capsys, subcommand, path, *options)
    assert (status, [line for line in errors if ": note: " not in line]) == (0, [])
    found: list[dict[str, Any]] = json.loads(out)["estimates"]
    assert found
    for row in found:
        assert (row["value"] is None) == bool(row["reason"]), row
        numbers = [row[name] for name in ("value", "se", "p", "low", "high") if row[name] is not None]
        assert all(math.isfinite(number) for number in numbers), row
    return found


# --- files that give figures -----------------------------------------------------------------------------------------

BLANK = csv_of(
    [
        (*cell[:2], criterion, cell[2] if criterion == "tone" else "")
        for criterion in ("tone", "form")
        for cell in CELLS
    ],
    "item,rater,criterion,score\n",
)
"""One criterion without a score; files without any, or without those of people or of judges, are in test_edges.py."""


def with_columns_of(subcommand: str, text: str) -> str:
    """The ratings with the columns that this subcommand can't do without."""
    rows = [dict(zip(text.split("\n", 1)[0].split(","), line.split(","), strict=True)) for line in text.split()[1:]]
    for row in rows:
        if subcommand in ("severity", "stability", "consistency"):
            row["language"] = "en" if int(row["item"]) % 2 else "et"
        if subcommand in ("stability", "consistency"):
            row["generator"] = "old" if int(row["item"]) < 3 else "new"
        if subcommand == "contrast":
            row["panel"] = "crowd" if row["rater"] == "a" else "experts"
        if subcommand == "rationales":
            row["rationale"] = "" if row["rater"] == "b" else "It answers what was asked."
    if subcommand == "criteria" and "criterion" not in rows[0]:
        rows = [{**row, "criterion": criterion} for criterion in ("tone", "form") for row in rows]
    return "\n".join(map(",".join, [list(rows[0]), *(list(row.values()) for row in rows)])) + "\n"


def test_blank_scores_are_missing_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for subcommand in RATINGS:
        soundly(capsys, subcommand, written(tmp_path, with_columns_of(subcommand, BLANK)))


@pytest.mark.parametrize("kept", ["neither", "asked", "read"])
def test_blank_parameters_are_missing(kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [("shop" if kept == "asked" else "", "shop" if kept == "read" else "") for _ in range(6)]
    text = "item,trade,judge_trade\n" + "".join(f"{i},{asked},{read}\n" for i, (asked, read) in enumerate(values))
    found = soundly(capsys, "recovery", written(tmp_path, text), "--parameters", "trade")
    assert {row["value"] for row in found} == {None}


SPELLINGS = {
    "thai": lambda _, rater, score: "๐๑๒๓"[score] if rater == "a" else score,
    "arabic": lambda _, rater, score: "٠١٢٣"[score],
    "full_width": lambda _, rater, score: "０１２３"[score],
    "padded": lambda _, rater, score: f"0{score}.0",
    "signed": lambda _, rater, score: f"+{score}",
    "powers": lambda _, rater, score: f"{score}e0",
    "spaces": lambda _, rater, score: f"\u00a0{score} ",
}


@pytest.mark.parametrize("subcommand", ["agreement", "calibration", "correct"])
@pytest.mark.parametrize("name", SPELLINGS)
def test_a_number_is_the_same_in_any_spelling(
    name: str, subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = soundly(capsys, subcommand, written(tmp_path, csv_of()))
    assert soundly(capsys, subcommand, written(tmp_path, respelt(SPELLINGS[name]))) == plain


def test_a_scale_in_other_digits_and_below_nought(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, respelt(lambda _, rater, score: "\u2212๑" if score == 0 else score - 1))
    western = written(tmp_path, respelt(lambda *cell: cell[2] - 1), "plain.csv")
    plain = soundly(capsys, "agreement", western, "--scale", "-1,0,1,2")
    assert [row["value"] for row in soundly(capsys, "agreement", path, "--scale", "\u2212๑,๐,๑,๒")][:4] == [
        row["value"] for row in plain
    ][:4]


def test_spreadsheets_of_half_europe_write_semicolons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = soundly(capsys, "agreement", written(tmp_path, csv_of()))
    for name, text in {"s.csv": csv_of(), "quoted.csv": csv_of(header='"item","rater","score"\n')}.items():
        path = written(tmp_path, "\ufeff" + text.replace(",", ";").replace("\n", "\r\n"), name)
        assert soundly(capsys, "agreement", path) == plain


def test_a_label_is_the_same_however_its_number_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = respelt(lambda item, rater, score: "none" if score == 0 else f"{score}.0" if rater == "a" else score)
    found = soundly(capsys, "agreement", written(tmp_path, words), "--level", "nominal", "--raters", "a,b")
    assert next(row["value"] for row in found if row["statistic"] == "percent_agreement") == 3 / 6
    declared = soundly(capsys, "agreement", written(tmp_path, words), "--scale", "none,1,2,3", "--raters", "a,b")
    assert next(row["value"] for row in declared if row["statistic"] == "percent_agreement") == 3 / 6


def test_many_values_cost_no_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, csv_of([(i, rater, i + k) for i in range(120) for k, rater in enumerate(("a", "gpt"))]))
    found = soundly(capsys, "correct", path, "--statistic", "calibration_gain")
    refused = {row["variant"]: row["reason"] for row in found if row["value"] is None}
    assert refused == {"ordinal_logit": "the labels take 120 values: an ordinal model is for 50 at most"}


def test_the_papers_own_figure_keeps_its_own_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # n = 2 from the first row makes the others' three ratings count too much: 3.10 is no agreement, but what S0 prints.
    path = written(tmp_path, respelt(lambda item, rater, score: "" if (item, rater) == (0, "a") else score))
    (found,) = (row for row in soundly(capsys, "agreement", path) if row["variant"] == "paper_compat")
    assert found["low"] <= found["value"] <= found["high"]
    assert found["value"] > 1


# --- files that are refused ------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str | bytes, str, list[str]]] = {
    "comma": ('item,rater,score\n1,a,"2,5"\n1,b,3\n2,a,"1,5"\n', "odd.csv", [
        "2: score '2,5' has a decimal comma: write a point", "4: score '1,5' has a decimal comma: write a point"]),
    "semicolons_and_comma": ("item;rater;score\n1;a;2,5\n1;b;2,0\n", "odd.csv", [
        "2: score '2,5' has a decimal comma", "3: score '2,0' has a decimal comma"]),
    "too_large": (csv_of([(1, "a", "1e200"), (1, "b", -10**60), (1, "gpt", 1)]), "odd.csv", [
        "2: score '1e200' is too large to compute with", "3: score '-1" + "0" * 60 + "' is too large"]),
    "underscore": (csv_of([*CELLS, (9, "a", "1_0")]), "odd.csv", ["20: score '1_0' is not a number"]),
    "capitals": (csv_of(header="Item,Rater,Score\n"), "odd.csv", [
        "1: the column 'item' is missing: is it 'Item'? say --item Item", "1: the column 'rater' is missing",
        "1: the column 'score' is missing"]),
    "repeats": ("item,rater,score,repeat\n1,a,2,inf\n1,b,2,99999999999999999999\n1,gpt,2,1.5\n", "odd.csv", [
        "2: repeat is not a whole number", "3: repeat is not a whole number", "4: repeat is not a whole number"]),
    "list": ('[{"item":1,\n"rater":"a","score":1}]\n', "odd.jsonl", ["1: is a JSON list: write each of its objects"]),
    "deep": ('{"item":' + "[" * 100_000, "odd.jsonl", ["1: holds lists within lists without end"]),
    "digits": ('{"item":1,"rater":"a","score":1}\n{"item":1,"rater":"b","score":' + "9" * 5000 + "}\n", "odd.jsonl", [
        "2: score '9999"]),
    "half_a_character": ('{"item":"\\ud800","rater":"a","score":1}\n', "odd.jsonl", ["1: holds half a character"]),
    "named_twice": ('{"item":1,"rater":"a","score":1,"score":2}\n', "odd.jsonl", ["1: gives 'score' twice"]),
}  # fmt: skip


def assert_refused(name: str, subcommand: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, file, complaints = REFUSED[name]
    status, out, errors = ran(capsys, subcommand, path := written(folder, content, file))
    assert (status, out) == (2, "")
    assert len(errors) == len(complaints)
    assert all(line.startswith(f"{path}:{said}") for line, said in zip(errors, complaints, strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_line_by_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(name, "agreement", tmp_path, capsys)


@pytest.mark.parametrize("name", ["semicolons_and_comma", "list"])
def test_all_subcommands_refuse_alike(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for subcommand in RATINGS:
        assert_refused(name, subcommand, tmp_path, capsys)


@pytest.mark.parametrize("scale", [[], ["--scale", "0,1,2,3"]])
@pytest.mark.parametrize("subcommand", ["calibration", "alt-test", "correct", "plan"])
def test_a_judges_words_are_no_numbers_beyond_the_scale(
    subcommand: str, scale: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, respelt(lambda item, rater, score: "good" if (item, rater) == (0, "gpt") else score))
    status, out, errors = ran(capsys, subcommand, path, *scale)
    assert (status, out, errors) == (2, "", [f"{path}:4: score 'good' is not a number"])


@pytest.mark.parametrize("raters", ["a", "a,a", "a,b,gpt"])
def test_nobody_is_compared_with_themselves(raters: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", written(tmp_path, csv_of()), "--raters", raters]) == 2
    assert capsys.readouterr().err.endswith(":1: name two raters: --raters A,B\n")


@pytest.mark.parametrize("subcommand", ["agreement", "calibration", "alt-test", "correct", "plan", "compare"])
def test_pooling_leaves_a_criterion_without_scores_aside(
    subcommand: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = csv_of(
        [(*cell[:2], "tone", "fine" if cell[2] else "poor") for cell in CELLS], "item,rater,criterion,score\n"
    )
    blank = csv_of([(*cell[:2], "form", "") for cell in CELLS], "")
    alone, beside = written(tmp_path, words, "alone.csv"), written(tmp_path, words + blank, "beside.csv")
    plain, pooled = (soundly(capsys, subcommand, path, "--pool") for path in (alone, beside))
    assert [row["value"] for row in pooled] == [row["value"] for row in plain]


def test_a_plan_for_a_kind_of_rater_that_is_no_panel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [(*cell, "judge" if cell[1] == "gpt" else "annotator") for cell in CELLS]
    path = written(tmp_path, csv_of(cells, "item,rater,score,rater_kind\n"))
    found = soundly(capsys, "plan", path, "--by", "rater_kind")
    assert {row["rater_kind"] for row in found} == {"annotator", "judge"}


def test_a_turn_without_text_is_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [{"speaker": None, "text": None}, {"speaker": "a", "text": 5}]
    path = written(tmp_path, json.dumps({"item": 1, "turns": turns}), "odd.jsonl")
    found = {row["statistic"]: row["value"] for row in soundly(capsys, "surface", path)}
    assert (found["words"], found["turns"]) == (1, 2)
    path = written(tmp_path, json.dumps({"item": 1, "turns": [{"text": ["x"]}]}), "odd.jsonl")
    status, _, errors = ran(capsys, "surface", path)
    assert (status, errors) == (2, [f"{path}:1: turns is not a JSON list of {{speaker, text}}"])


@pytest.mark.parametrize("subcommand", ["agreement", "calibration", "alt-test"])
def test_one_column_may_be_the_item_and_its_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, subcommand: str
) -> None:
    """It was refused: the column of the item had been renamed before the cluster was looked for."""
    header = "tekst “t”,rater,score\n"
    same = written(tmp_path, csv_of(header=header), "same.csv")
    copied = written(
        tmp_path, csv_of([(item, item, *rest) for item, *rest in CELLS], "item,cluster,rater,score\n"), "copied.csv"
    )
    named = ("--item", "tekst “t”", "--cluster", "tekst “t”")
    found = soundly(capsys, subcommand, same, *named)
    assert found and found == soundly(capsys, subcommand, copied)
