"""`panelbench generate`."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Dataset
from judging.generation.specs import preset
from judging.models import GenerationPlan
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def generate(*arguments: str, spec: str = "support-dialogues", models: str = "simulated/sim-steady") -> str:
    out = StringIO()
    about = ("--spec", spec, "--languages", "et,en", "--generators", models, "--families", "4")
    call_command("generate", "kassa", *about, *arguments, stdout=out)
    return out.getvalue()


def test_here_writes_and_stores(cast: Cast, provider: RunningProvider) -> None:
    shown = generate("--here", "--seed", "5", "--store", "Kõned", models="simulated/sim-steady,simulated/sim-chatty")
    assert "16 of 16 texts written" in shown
    assert "Dataset “Kõned”: 16 items" in shown
    assert Dataset.objects.get(name="Kõned").items.values("generator").distinct().count() == 2
    again = generate("--examples", "--here", "--seed", "5")
    assert "6 of 8 texts written" in again
    first, second = GenerationPlan.objects.order_by("pk")
    assert first.name != second.name
    drawn = [list(plan.families.values_list("parameters", flat=True)) for plan in (first, second)]
    assert drawn[0] == drawn[1], "the same seed draws the same families"


def test_wait_shows_the_workers_progress(cast: Cast, provider: RunningProvider, worker: Any) -> None:
    assert "100 %  8 of 8 texts written" in generate("--wait")


def test_a_spec_may_be_a_file(cast: Cast, provider: RunningProvider, tmp_path: Path) -> None:
    file = tmp_path / "oma spec.yaml"
    file.write_text(preset("stories").as_yaml, encoding="utf-8")
    assert "8 of 8" in generate("--here", "--name", "Jutud", spec=str(file))
    assert GenerationPlan.objects.get().name == "Jutud"


def test_what_is_missing_or_asked_for_wrongly_has_its_exit_status(cast: Cast, provider: RunningProvider) -> None:
    for wrong in ({"spec": "nothing.yaml"}, {"models": "sim-steady"}):
        with pytest.raises(CommandError) as refused:
            generate("--here", **wrong)
        assert refused.value.returncode == 2
    provider.control(written_breaks={"no_greeting": 1.0})
    with pytest.raises(CommandError, match="8 texts are missing: no_greeting") as missing:
        generate("--here")
    assert missing.value.returncode == 1


def test_a_spent_budget_ends_badly(cast: Cast, provider: RunningProvider, settings: Any) -> None:
    object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
    with pytest.raises(CommandError, match="Paused: The budget is spent") as ended:
        generate("--budget", "0.045", "--here")
    assert ended.value.returncode == 1
