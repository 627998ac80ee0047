"""Whole studies come in by one command: every shared folder with the counts of its SOURCE.md."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Annotator, Dataset, Import, ImportFile, Rating
from judging.models import Verdict
from tests.cast import Cast
from tests.study_data import FOLDER

# Folder -> what is read, stored, collapsed, missing and flagged by each import, in order.
COUNTS: dict[str, list[tuple[str, dict[str, int]]]] = {
    "dices-350": [
        ("dataset DICES-350 v1", {"read": 350, "stored": 350}),
        ("rubric dices-safety v1", {"stored": 1}),
        ("ratings DICES-350 v1 × dices-safety v1", {"read": 43_050, "stored": 43_050}),
    ],
    "hanna": [
        ("dataset HANNA stories v1", {"read": 1056, "stored": 1056, "flagged": 1056}),
        ("rubric hanna-stories v1", {"stored": 1}),
        ("ratings HANNA stories v1 × hanna-stories v1", {"read": 19_008, "stored": 19_008}),
        ("verdicts 20 runs", {"read": 126_720, "stored": 126_720}),
        ("dataset HANNA explanations v1", {"read": 300, "stored": 100, "collapsed": 200}),
        ("rubric hanna-explanations v1", {"stored": 1}),
        ("ratings HANNA explanations v1 × hanna-explanations v1", {"read": 1800, "stored": 1800}),
    ],
    "mlqe-pe": [
        ("dataset MLQE-PE direct assessments v1", {"read": 5000, "stored": 5000}),
        ("rubric mlqe-quality v1", {"stored": 1}),
        ("ratings MLQE-PE direct assessments v1 × mlqe-quality v1", {"read": 27_000, "stored": 27_000}),
        ("dataset MLQE-PE critical errors v1", {"read": 4000, "stored": 4000}),
        ("rubric mlqe-critical-errors v1", {"stored": 1}),
        ("ratings MLQE-PE critical errors v1 × mlqe-critical-errors v1", {"read": 12_000, "stored": 12_000}),
        ("dataset MLQE-PE Pashto to English v1", {"read": 1000, "stored": 1000}),
    ],
    "multipico-dev": [
        ("dataset MultiPICo v1", {"read": 3005, "stored": 3005}),
        ("rubric multipico-irony v1", {"stored": 1}),
        ("ratings MultiPICo v1 × multipico-irony v1", {"read": 15_178, "stored": 15_178}),
    ],
    "xls-estonian": [
        ("dataset Estonian dialogues v1", {"read": 120, "stored": 120}),
        ("rubric estonian v1", {"stored": 1}),
        (
            "ratings Estonian dialogues v1 × estonian v1",
            {"read": 1268, "stored": 1016, "collapsed": 248, "collapsed_blank": 1, "missing": 4},
        ),
        ("ratings Estonian dialogues v1 × estonian v1", {"read": 1016, "stored": 0, "collapsed": 1016}),
        ("dataset Dialogues of the paper v1", {"read": 2765, "stored": 2765, "flagged": 1}),
    ],
}


class Told:
    """A command's two streams and its exit status."""

    def __init__(self, *arguments: Any) -> None:
        out, err = StringIO(), StringIO()
        self.status = 0
        try:
            call_command("import_study", *map(str, arguments), stdout=out, stderr=err)
        except SystemExit as ended:
            self.status = int(ended.code or 0)
        self.out, self.err = out.getvalue(), err.getvalue()

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@pytest.mark.study_data
@pytest.mark.parametrize("name", COUNTS)
def test_a_shared_folder_comes_in_with_the_counts_of_its_source(cast: Cast, name: str) -> None:
    told = Told("kassa", FOLDER / name, "--json")
    assert told.status == 0, told.err
    found = [(f"{each['kind']} {each['made']}", each["report"]) for each in told.outcomes]
    assert [made for made, _report in found] == [made for made, _counts in COUNTS[name]]
    for (made, report), (_made, counts) in zip(found, COUNTS[name], strict=True):
        assert {key: report[key] for key in counts} == counts, made
        assert report["refused"] == 0
        assert report["read"] == report["stored"] + report["collapsed"] + report["missing"]
    stored = sum(report["stored"] for made, report in found if made.startswith("ratings"))
    assert Rating.objects.count() == stored
    persons = set(Annotator.objects.values_list("identified", flat=True))
    assert persons == {name in {"multipico-dev", "xls-estonian"}}, "raters by position are slots, not persons"
    if name == "hanna":
        assert Verdict.objects.filter(status=Verdict.Status.OUT_OF_RANGE, score__lt=1).count() == 1051
    again = Told("kassa", FOLDER / name, "--json")
    assert {each["report"]["stored"] for each in again.outcomes} == {0}
    assert Rating.objects.count() == stored


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Two tasks with a choice and stars, as Label Studio writes them."""
    given = [("tone", "choices", {"choices": ["polite"]}), ("stars", "rating", {"rating": 4})]
    result = [{"from_name": name, "type": kind, "value": value} for name, kind, value in given]
    by = [{"completed_by": {"id": 5}, "was_cancelled": False, "result": result}, {"completed_by": 6, "result": []}]
    tasks = [{"id": number, "data": {"text": f"Tere {number}"}, "annotations": by} for number in (1, 2)]
    (tmp_path / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    return tmp_path / "export.json"


def test_an_export_of_a_tool_is_recognised_and_its_scales_are_proposed(cast: Cast, export: Path) -> None:
    told = Told("kassa", export, "--set", "language=et", "--json")
    assert told.status == 0, told.err
    assert [each["report"]["stored"] for each in told.outcomes] == [2, 1, 4]
    assert "stars: " in told.outcomes[1]["report"]["notes"][0] and "tone: polite, other" in told.out
    assert set(Annotator.objects.values_list("pseudonym", flat=True)) == {"5"}


def test_a_dry_run_stores_nothing_and_leaves_no_file(cast: Cast, export: Path) -> None:
    told = Told("kassa", export, "--set", "language=et", "--dry-run")
    assert (told.status, told.out.splitlines()[-1]) == (0, "Nothing was stored.")
    kept = (Dataset.objects.count(), Import.objects.count(), ImportFile.objects.count(), Rating.objects.count())
    assert kept == (0, 0, 0, 0)


@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_a_refused_part_says_why_and_nothing_is_stored(cast: Cast, export: Path, how: list[str]) -> None:
    told = Told("kassa", export, *how)
    assert told.status == 1
    assert "line 1, [0].language: found nothing" in told.err
    assert Import.objects.count() == 0


def test_a_field_that_no_file_has_is_not_passed_over(cast: Cast, export: Path) -> None:
    told = Told("kassa", export, "--set", "lang=et")
    assert told.status == 1 and "There is no field “lang”" in told.err and "language" in told.err
    assert Import.objects.count() == 0


def test_what_is_of_no_study_is_told_which_there_are(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for arguments in ([], ["--as", "dices-350"], ["--as", "nothing"]):
        with pytest.raises(CommandError, match=r"dices-350") as error:
            Told("kassa", tmp_path / "x.csv", *arguments)
        assert error.value.returncode == 2
