"""``panelbench stats agreement`` from the outside: files in, figures or complaints out."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command
from analytics.stats.core.estimates import COLUMNS
from tests.analytics.stats.published import KRIPPENDORFF


@pytest.fixture
def published_csv(tmp_path: Path) -> Path:
    """Krippendorff's 12 units by 4 coders under other column names, one score blank."""
    path = tmp_path / "reliability.csv"
    rows = [f"{unit},coder {coder},{'' if score != score else int(score)}"
            for unit, scores in enumerate(KRIPPENDORFF, 1) for coder, score in enumerate(scores, 1)]  # fmt: skip
    path.write_text("\n".join(["unit,coder,value", *rows]) + "\n", encoding="utf-8")
    return path


def written(tmp_path: Path, text: str, name: str = "ratings.csv") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


COLUMNS_OF_IT = ["--item", "unit", "--rater", "coder", "--score", "value"]


def run_json(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    assert run_command([*argv, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_published_figures_as_json(published_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "agreement", str(published_csv), *COLUMNS_OF_IT, "--level", "nominal", "--bootstrap", "0")
    rows = {(row["statistic"], row["variant"]): row for row in found["estimates"] if row["raters"] is None}
    assert rows["krippendorff_alpha", None]["value"] == pytest.approx(0.743421, abs=5e-7)
    assert rows["gwet_ac", "identity"]["value"] == pytest.approx(0.77544, abs=5e-6)
    assert rows["gwet_ac", "identity"]["se"] == pytest.approx(0.14295, abs=5e-6)
    assert rows["krippendorff_alpha", None]["n_missing"] == 7
    pairs = [row["raters"] for row in found["estimates"] if row["statistic"] == "cohen_kappa"]
    assert pairs[0] == ["coder 1", "coder 2"]
    assert pairs[-1] is None
    assert all(list(row)[: len(COLUMNS)] == list(COLUMNS) for row in found["estimates"])
    assert set(found["provenance"]) == {"command", "version", "seed", "input_sha256"}


def test_the_same_seed_prints_the_same_bytes(published_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["agreement", str(published_csv), *COLUMNS_OF_IT, "--format", "json", "--seed", "4", "--bootstrap", "300"]
    printed = []
    for _ in range(2):
        assert run_command(argv) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_csv_has_one_header_and_a_row_per_estimate(published_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["agreement", str(published_csv), *COLUMNS_OF_IT, "--format", "csv", "--statistic", "krippendorff_alpha,icc"]
    assert run_command(argv) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["statistic"] for row in rows] == ["krippendorff_alpha"] + ["icc"] * 6
    assert float(rows[0]["value"]) == pytest.approx(0.815388, abs=5e-7)


def test_the_table_says_undefined_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "item,rater,score\na,1,2\na,2,2\nb,1,2\nb,2,2\n")
    assert run_command(["agreement", path, "--statistic", "fleiss_kappa", "--bootstrap", "0"]) == 0
    out = capsys.readouterr().out
    assert "undefined" in out
    assert "only one category is used" in out


def test_undefined_is_null_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "item,rater,score\na,1,2\nb,1,1\n")
    found = run_json(capsys, "agreement", path)
    assert {row["value"] for row in found["estimates"]} == {None}
    assert all(row["reason"] for row in found["estimates"])


def test_by_any_column_under_its_own_name_or_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "item,rater,score,lang,task\na,1,1,et,qa\na,2,1,et,qa\nb,1,2,fi,qa\nb,2,1,fi,qa\nc,1,2,fi,sum\nc,2,2,fi,sum\n"
    )
    path = written(tmp_path, text)
    options = ["--statistic", "percent_agreement", "--bootstrap", "0", "--language", "lang"]
    for by in ("lang,task", "language,task"):
        found = run_json(capsys, "agreement", path, *options, "--by", by)["estimates"]
        assert [(row["language"], row["task"], row["value"]) for row in found] == [
            ("et", "qa", 1.0),
            ("fi", "qa", 0.0),
            ("fi", "sum", 1.0),
        ]


def test_raters_are_chosen_by_name(published_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--raters", "coder 2,coder 4", "--statistic", "percent_agreement", "--bootstrap", "0"]
    (row,) = run_json(capsys, "agreement", str(published_csv), *COLUMNS_OF_IT, *options)["estimates"]
    assert row["value"] == pytest.approx(9 / 10)
    assert row["n_raters"] == 2


@pytest.mark.parametrize(
    ("text", "options", "complaints"),
    [
        ("item,score\na,1\n", [], [":1: the column 'rater' is missing"]),
        ("item,rater,score\na,1,2\na,2,x\nb,1,y\n", ["--level", "ordinal"], [":3: score 'x'", ":4: score 'y'"]),
        ("item,rater,score\na,1,2\na,2,7\n", ["--scale", "1,2,3"], [":3: score '7' is not on the scale 1, 2, 3"]),
        ("item,rater,score\na,1\n", [], [":2: has 2 fields"]),
        ("item,rater,score\na,1,2\n", ["--by", "colour"], [":1: the column 'colour'"]),
        ("item,rater,score\na,1,2\n", ["--raters", "nobody"], [":1: no rater is called 'nobody'"]),
        ("item,rater,score\na,1,2\n", ["--item", "unit"], [":1: the column 'unit'"]),
        ("item,rater,score\na,1,-2\na,2,2\n", ["--level", "ratio"], [":2: score '-2' is below 0 on a ratio scale"]),
        (
            "item,rater,score\na,1,2\n",
            ["--statistic", "kapa"],
            [":1: --statistic: 'kapa' is not one of percent_agreement"],
        ),
        ("item,rater,score\na,1,2\n", ["--scale", "3,3"], [":1: --scale: a scale names each point once"]),
    ],
)
def test_a_bad_file_ends_with_two_and_a_line_per_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, options: list[str], complaints: list[str]
) -> None:
    assert run_command(["agreement", written(tmp_path, text), *options]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(complaints)
    assert all(complaint in line for complaint, line in zip(complaints, lines, strict=True))


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["agreement", str(tmp_path / "none.csv")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_rows_that_stand_twice_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "item,rater,score\na,1,2\na,1,2\na,2,2\nb,1,1\nb,2,1\n")
    assert run_command(["agreement", path, "--bootstrap", "0"]) == 0
    assert "same score: 1;" in capsys.readouterr().err


def test_csv_output_is_safe_in_a_spreadsheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "item,rater,score,language\na,1,2,=1+1\na,2,2,=1+1\n")
    assert run_command(["agreement", path, "--format", "csv", "--bootstrap", "0"]) == 0
    assert {row["language"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))} == {"'=1+1"}


@pytest.mark.parametrize("argv", [["--help"], ["agreement", "--help"]])
def test_help_imports_neither_django_nor_pandas_nor_scipy(argv: list[str]) -> None:
    code = (
        "import sys\nfrom analytics.stats.cli.commandline import run_command\n"
        "try:\n    run_command(sys.argv[1:])\nexcept SystemExit: pass\n"
        "sys.stderr.write(','.join(m for m in ('django', 'pandas', 'scipy', 'numpy') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert all(name in done.stdout for name in (SUBCOMMANDS if argv == ["--help"] else ["--bootstrap", "--min-items"]))


def test_a_rater_whose_name_holds_a_comma_is_named_in_quotes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ratings.csv"
    names = ("Tamm, Jaan", "Mari", "Noor")
    rows = [f'd{item},"{name}",{item % 2}' for item in range(6) for name in names]
    file.write_text("\n".join(["item,rater,score", *rows]))
    asked = ["agreement", str(file), "--statistic", "percent_agreement", "--format", "json"]
    assert run_command([*asked, "--raters", '"Tamm, Jaan",Mari']) == 0
    assert '"n_raters": 2' in capsys.readouterr().out
