"""The study of docs/client.md, run as it stands there: over HTTP, with a real worker and a judge."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accounts import tokens
from accounts.models import Scope
from tests import make
from tests.cast import Cast
from tests.provider_server import RunningProvider

DOCS = Path(__file__).parents[2] / "docs"
RUBRIC = {"key": "quality", "name": {"en": "Quality"}, "source_language": "en", "criteria": [make.criterion("fluency")]}

pytestmark = pytest.mark.django_db(transaction=True)


def example(name: str) -> str:
    """The Python of a page, one block after the other."""
    return "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL))


def write_study(folder: Path) -> None:
    items = [{"id": f"d{n}", "language": "et", "generator": "g", "question": f"Küsimus {n}?"} for n in range(6)]
    (folder / "dialogues.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items), "utf-8")
    (folder / "rubric.json").write_text(json.dumps(RUBRIC), "utf-8")
    rows = [f"d{n},{rater},fluency,{(n + (rater == 'b' and n > 3)) % 3}" for n in range(6) for rater in "ab"]
    (folder / "ratings.csv").write_text("\n".join(["item,rater,criterion,score", *rows, ""]), "utf-8")


def test_the_study_of_the_page_runs(
    cast: Cast,
    live_server: Any,
    provider: RunningProvider,
    worker: subprocess.Popen[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.WRITE, project=cast.kassa)
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    script = example("client.md").replace("https://bench.example.org", live_server.url).replace("pb_...", secret)
    names: dict[str, Any] = {}
    exec(compile(script, "docs/client.md", "exec"), names)  # our own page
    names["bench"].close()
    said = capsys.readouterr().out
    assert "6 items would be stored" in said
    assert re.search(r"\d calls", said)
    assert "fluency" in said
    assert len((tmp_path / "ratings-out.csv").read_text("utf-8").splitlines()) == 13
    assert len((tmp_path / "verdicts-out.jsonl").read_text("utf-8").splitlines()) == 6
