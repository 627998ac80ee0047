"""docs/exporting.md is true: its commands and its Python run, and it says what every column is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import call_command

from accounts.models import Project
from analytics.exporting.exports import FORMATS
from annotation.exports import NAME, OWN, SHARED
from judging import exports as judged
from tests.analytics import scene
from tests.cast import Cast

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_every_example_runs(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    scene.with_verdicts(scene.rated_campaign(cast))
    Project.objects.create(slug="elsewhere", name="Elsewhere")
    monkeypatch.chdir(tmp_path)
    ran = EXAMPLE.findall(PAGE)
    assert [language for language, _text in ran].count("python") >= 8
    for language, text in ran:
        if language == "python":
            exec(text, {})
            continue
        for line in text.splitlines():
            _panelbench, command, *arguments = shlex.split(line)
            call_command(command, *arguments, verbosity=0)


def test_every_column_is_documented() -> None:
    told = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## Columns of") : PAGE.index("## JSONL")]))
    columns = {column.name for column in (*SHARED, *OWN, NAME, *judged.OWN)}
    assert columns - told == set()


def test_every_export_and_format_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| WHAT |") : PAGE.index("## Who may")]
    told = dict(re.findall(r"^\| `([\w-]+)` \|[^|]+\| ([a-z ]+) \|$", table, re.MULTILINE))
    assert {what: tuple(kinds.split()) for what, kinds in told.items()} == FORMATS
