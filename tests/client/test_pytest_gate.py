"""The plugin of pytest, in a process of its own, against decisions of the server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts import tokens
from accounts.models import Scope
from analytics.judges import decisions, thresholds
from tests.analytics.test_judge_pages import judged_campaign
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
MARKED = """
import pytest

@pytest.mark.panelbench_gate(campaign={campaign}, judge="Anna", language="et", fail_on="{fail_on}")
def test_summaries():
    assert True
"""


def gated(folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest with the plugin; warnings are errors."""
    paths = os.pathsep.join(map(str, (ROOT / "platform" / "client",)))
    known = {name: text for name, text in os.environ.items() if not name.startswith(("PANELBENCH", "PYTEST", "COV"))}
    call = [sys.executable, "-m", "pytest", "-p", "panelbench_client.pytest_gate", "-p", "no:cacheprovider"]
    call += ["-p", "no:django", "-W", "error", "--rootdir", str(folder), "-v", *options]
    found = {**known, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}
    return subprocess.run(call, cwd=folder, env=found, capture_output=True, text=True, check=False)


def test_every_decision_is_a_test(cast: Cast, live_server: Any, tmp_path: Path) -> None:
    campaign = judged_campaign(cast)
    thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=None)
    decided = decisions.decide_now(campaign)
    _token, secret = tokens.issue(user=cast.boris, name="pipeline", scope=Scope.READ, project=cast.kassa)
    here = {"PANELBENCH_URL": live_server.url, "PANELBENCH_TOKEN": secret, "PANELBENCH_PROJECT": "kassa"}

    everything = gated(tmp_path, "--panelbench-gate", str(campaign.pk), **here)
    assert len(decided.cells) == 4 and everything.stdout.count("::panelbench[") >= 4, (
        everything.stdout + everything.stderr
    )
    failing = [cell for cell in decided.cells if cell.use.value in ("humans_only", "insufficient")]
    assert everything.returncode == (1 if failing else 0) and f"{len(failing)} failed" in everything.stdout
    assert failing[0].reasons[0] in everything.stdout and failing[0].use.value.upper() in everything.stdout

    one = ("--panelbench-judge", "Anna", "--panelbench-language", "et", "--panelbench-fail-on", "STALE")
    passing = gated(tmp_path, "--panelbench-gate", str(campaign.pk), *one, **here)
    assert passing.returncode == 0 and "1 passed" in passing.stdout, passing.stdout

    use = next(cell.use.value for cell in decided.of_judge("Anna") if cell.row["language"] == "et")
    for fail_on, status in (("stale", 0), (use, 1)):
        (tmp_path / "test_marked.py").write_text(MARKED.format(campaign=campaign.pk, fail_on=fail_on))
        marked = gated(tmp_path, **here)
        assert marked.returncode == status and (use.upper() in marked.stdout) == bool(status), marked.stdout

    for options, sentence in (
        (("--panelbench-judge", "Nobody"), "Nothing is decided in campaign"),
        (("--panelbench-language", "et", "--panelbench-language", "fr"), f"campaign {campaign.pk} about language fr."),
        (("--panelbench-fail-on", "maybe"), "There is no decision maybe"),
    ):
        refused = gated(tmp_path, "--panelbench-gate", str(campaign.pk), *options, **here)
        assert refused.returncode == 4 and sentence in refused.stderr + refused.stdout, refused.stdout
    nowhere = gated(tmp_path, "--panelbench-gate", "1")
    assert nowhere.returncode == 4 and "Set PANELBENCH_URL, PANELBENCH_TOKEN, PANELBENCH_PROJECT" in nowhere.stderr
