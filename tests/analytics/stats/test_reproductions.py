"""Every command of docs/reproductions.md, run on the study files and held against the figures the document prints.

The study files stay outside the repository; where they are absent there is nothing to reproduce.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analytics.stats.cli.commandline import run_command
from tests.study_data import FOLDER

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "reproductions.md"
DATA = FOLDER
PANEL = "--raters Annotator1,Annotator2,Annotator4"
LANGUAGES = (
    "ar",
    "cs",
    "de",
    "en",
    "enzh",
    "es",
    "eten",
    "fr",
    "hi",
    "it",
    "ja",
    "neen",
    "nl",
    "pt",
    "ruen",
    "sien",
    "zh",
)
CRITERIA = ("RE", "CH", "EM", "SU", "EG", "CX", "fluency", "coherence", "safety")

pytestmark = pytest.mark.study_data


class Row(NamedTuple):
    """A line of a table: what the figure is, the whole command, what the document says we print."""

    figure: str
    command: str
    printed: str


def rows() -> Iterator[Row]:
    """The lines of tables whose head, or the sentence before them, starts the command."""
    start, before = "", ""
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if said := re.search(r"`panelbench stats (\w[\w-]*) (build/long/[\w.-]*)`", line):
            start = " ".join(said.groups())
        if said := re.search(r"`panelbench stats calibration build/long/`; add `([^`]*)`", line):
            start = f"calibration build/long/{{}} {said.group(1)}"
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_command = len(cells) == 5 and ("`" in cells[1] or cells[1].startswith("the same"))
        if not line.startswith("|") or not is_command or cells[0] == "figure":
            continue
        before = _following(cells[1], before)
        yield Row(cells[0], _whole(start, before), cells[3])


def _following(said: str, before: str) -> str:
    """The options of a line: its own, those of the line before, or those with another statistic."""
    own = " ".join(re.findall(r"`([^`]*)`", said)).replace("K ", f"{PANEL} ")
    if said.startswith("the same"):
        return before
    if own.startswith("--statistic") and ".csv" in before:
        return re.sub(r"--statistic \S+", own, before)
    # A variant is named after the command, in backquotes of its own.
    return re.sub(r" (complete|unequal|paper_compat|quadratic|2,k)$", "", own)


def _whole(start: str, options: str) -> str:
    if "{}" not in start:
        return f"{start} {options}"
    file, _, rest = options.partition(" ")
    return f"{start.format(file)} {rest}"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study files as ratings tables, made by the two scripts the document names."""
    from bench import long_form

    folder = tmp_path_factory.mktemp("long")
    long_form.write_long_form(DATA, folder)
    rated = re.sub(r",[23]$", ",", (folder / "mlqe-flags.csv").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (folder / "mlqe-flags-rated.csv").write_text(rated, encoding="utf-8")
    return folder


@cache
def estimates(folder: Path, command: str) -> list[dict[str, Any]]:
    argv = shlex.split(command.replace("build/long", str(folder)))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run_command([*argv, "--bootstrap", "0", "--format", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(out.getvalue())["estimates"]
    return found


def _told(row: Row) -> dict[str, Any]:
    """What the words of a figure say about the estimate."""
    words = re.split(r"[ ,]+", row.figure)
    told: dict[str, Any] = {}
    if named := [word for word in words if word in CRITERIA]:
        told["criterion"] = named[0]
    elif named := [word for word in words if word in LANGUAGES]:
        told["language"] = named[0]
    if "Cohen" in words:
        pair = next(word for word in words if re.fullmatch(r"\d-\d", word))
        told["raters"] = [f"Annotator{number}" for number in pair.split("-")]
        told["variant"] = "quadratic" if "quadratic" in words else "unweighted"
    if "Fleiss" in words:
        kinds = {"complete": "complete", "script": "paper_compat"}
        told["variant"] = next((kind for word, kind in kinds.items() if word in words), "unequal")
    if "ICC(2" in words:
        told["variant"] = "2,k"
    return told


ROWS = list(rows())


def test_the_document_is_understood() -> None:
    assert len(ROWS) >= 60
    assert all(row.command.split()[0] in ("agreement", "calibration") for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.command.split()[1].split('/')[-1]}: {row.figure}")
def test_the_command_prints_the_documents_figure(row: Row, long: Path) -> None:
    told = _told(row)
    found = [e for e in estimates(long, row.command) if all(e[name] == value for name, value in told.items())]
    (value,) = {e["value"] for e in found}
    digits = len(row.printed.partition(".")[2])
    assert value == pytest.approx(float(row.printed), abs=0.5 * 10 ** -min(digits, 12) + 1e-12)


def test_flags_of_hanna(long: Path) -> None:
    found = estimates(
        long, "agreement build/long/hanna-flags.csv --positional --level nominal --statistic gwet_ac,fleiss_kappa"
    )
    ac = [e for e in found if e["statistic"] == "gwet_ac"]
    shown = [f"{e['value']:.4f} ({e['low']:.4f}, {e['high']:.4f})" for e in ac if e["value"] is not None]
    printed = re.findall(r"^\|.*\| (0\.\d{4} \(.*?\)) \| 0 \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(printed)
    assert len(printed) == 5
    assert [e["reason"] for e in ac if e["value"] is None] == ["only one category is used and no scale is declared"]
    unequal = [e for e in found if (e["statistic"], e["variant"]) == ("fleiss_kappa", "unequal")]
    fleiss = {e["criterion"]: e["value"] for e in unequal}
    assert fleiss["Answer.a-2-syntax.1"] == pytest.approx(-0.0169, abs=5e-5)


@pytest.mark.slow
def test_beluga_on_the_human_stories(long: Path) -> None:
    found = estimates(
        long,
        'correct build/long/hanna.csv --judge "Beluga-13B 1" --scale 1,2,3,4,5 --by criterion,generator '
        "--statistic judge_mean",
    )
    of_human = {e["criterion"]: e["value"] for e in found if e["generator"] == "Human"}
    shown = " ".join(f"{of_human[criterion]:.4f}" for criterion in ("RE", "CH", "EM", "SU", "EG", "CX"))
    assert f"| {shown} |" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
def test_settled_scores_of_dices(long: Path) -> None:
    import pandas as pd

    from analytics.stats.core.validation import ratings_table
    from analytics.stats.judge.reference import reference_labels

    frame = pd.read_csv(long / "dices.csv", dtype=str, keep_default_na=False)
    assert frame["score"].value_counts().to_dict() == {"No": 26292, "Yes": 14064, "Unsure": 2694}
    settled = reference_labels(ratings_table(frame), rule="mode")
    assert settled.frame["label"].value_counts().to_dict() == {"No": 269, "Yes": 79}
    assert sum(settled.excluded.values()) == 2
