"""`panelbench run_judge` and `panelbench judge_status`."""

from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from judging.models import Judge, JudgeRun
from tests import make
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kassa(cast: Cast, provider: RunningProvider) -> Cast:
    make.dataset(cast.kassa, 3)
    make.rubric(cast.kassa)
    return cast


def run_judge(*arguments: str, dataset: str = "Dialogues") -> str:
    out = StringIO()
    call_command("run_judge", "--project", "kassa", "--dataset", dataset, "--rubric", "quality", *arguments, stdout=out)
    return out.getvalue()


def declared(model: str = "sim-steady") -> tuple[str, ...]:
    return ("--judge", "J", "--provider", "simulated", "--model", model, "--grouping", "single")


def test_here_declares_runs_and_finishes(kassa: Cast) -> None:
    said = run_judge(*declared(), "--no-explanation", "--repeats", "2", "--here")
    assert "100 %  12 of 12 calls; 12 ok" in said
    assert Judge.objects.get(name="J").variant["explanation"] is False


def test_wait_shows_the_workers_progress(kassa: Cast, worker: Any) -> None:
    assert "100 %  6 of 6 calls; 6 ok" in run_judge(*declared(), "--wait")


def test_a_declared_judge_is_named_and_a_version_chosen(kassa: Cast) -> None:
    run_judge(*declared())
    assert "Dialogues v1, 6 calls" in run_judge("--judge", "J", "--again", dataset="Dialogues v1")
    assert JudgeRun.objects.count() == 2


def test_a_spent_budget_ends_badly(kassa: Cast, settings: Any) -> None:
    object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
    with pytest.raises(CommandError, match="Paused: The budget is spent") as ended:
        run_judge(*declared(), "--parameters", '{"max_tokens": 200}', "--budget", "0.001", "--here")
    assert ended.value.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "dataset", "sentence"),
    [
        (("--judge", "Nobody"), "Dialogues", r"--judge \(there are: none\)"),
        ((*declared(),), "Monologues", "There is no dataset 'Monologues' in kassa"),
        (("--judge", "J", "--provider", "openai", "--model", "m"), "Dialogues", "“openai” is not declared"),
    ],
)
def test_what_is_not_there_is_said(kassa: Cast, arguments: tuple[str, ...], dataset: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as ended:
        run_judge(*arguments, dataset=dataset)
    assert ended.value.returncode == 2
    assert not Judge.objects.exists()


def test_status_in_words_and_as_json(kassa: Cast) -> None:
    run_judge(*declared(), "--here")
    run = JudgeRun.objects.get()
    out = StringIO()
    call_command("judge_status", str(run.pk), stdout=out)
    assert "calls     6 of 6, 0 in flight, 0 failed" in out.getvalue()
    out = StringIO()
    call_command("judge_status", str(run.pk), "--json", stdout=out)
    assert json.loads(out.getvalue())["verdicts"] == {"ok": 6}


def test_status_of_a_cancelled_run_ends_badly(kassa: Cast) -> None:
    run_judge(*declared())
    JudgeRun.objects.update(state="cancelled")
    with pytest.raises(SystemExit, match="1"):
        call_command("judge_status", str(JudgeRun.objects.get().pk), stdout=StringIO())
