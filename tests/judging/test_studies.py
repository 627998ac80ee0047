"""Whole studies come in by one command; test_equal_rows.py brings the shared folders in."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Annotator, Dataset, Import, ImportFile, Rating
from tests.cast import Cast


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
