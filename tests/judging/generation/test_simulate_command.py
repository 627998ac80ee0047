"""`panelbench simulate`."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Dataset
from judging.models import GenerationPlan, Judge
from tests.cast import Cast
from tests.judging.generation.test_conversations import short_spec
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def simulate(spec: str, *arguments: str, users: str = "simulated/sim-flawed") -> str:
    out = StringIO()
    about = ("--spec", spec, "--languages", "en", "--generators", "simulated/sim-steady", "--users", users)
    call_command("simulate", "kassa", *about, "--families", "2", *arguments, stdout=out)
    return out.getvalue()


def test_here_simulates_and_stores(cast: Cast, provider: RunningProvider, tmp_path: Path) -> None:
    file = tmp_path / "lühike “1”.yaml"
    file.write_text(short_spec().as_yaml, encoding="utf-8")
    judged = ("--utterance-judge", "simulated/sim-steady", "--seed", "5")
    shown = simulate(str(file), "--here", *judged, "--store", "Vestlused", "--only", "every")
    assert "2 of 2 texts written" in shown
    plan = GenerationPlan.objects.get()
    assert plan.utterance_judge == Judge.objects.get()
    items = Dataset.objects.get(name="Vestlused").items.all()
    assert {item.attributes["simulator"] for item in items} == {"sim-flawed"}
    again = simulate(str(file), "--here", "--utterance-judge", plan.utterance_judge.name)
    assert "2 of 2" in again
    assert Judge.objects.count() == 1


def test_what_is_asked_for_wrongly_has_its_exit_status(cast: Cast, provider: RunningProvider) -> None:
    for users, arguments in (
        ("sim-flawed", ()),
        ("simulated/sim-flawed", ("--utterance-judge", "nobody")),
        ("simulated/sim-flawed", ("--utterance-judge", "simulated/sim-steady", "--rubric-version", "0")),
    ):
        with pytest.raises(CommandError) as refused:
            simulate("simulated-users", "--here", *arguments, users=users)
        assert refused.value.returncode == 2
    with pytest.raises(CommandError):
        simulate("stories", "--here")
