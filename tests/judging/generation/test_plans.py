"""Plans of texts: what is planned, what is refused, and how their state changes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from accounts.refusals import Refused
from judging.generation import plans
from judging.generation.plans import GeneratorChoice, PlanPhase
from judging.generation.specs import parse_spec, preset
from judging.models import GenerationPlan, Realisation
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


GIVEN_IN_ESTONIAN = parse_spec(
    {
        **preset("single-answers").stored,
        "fields": [{"name": "question", "text": {"et": "Küsimus: {question}"}}, {"name": "answer"}],
    }
)


def planned(cast: Cast, **options: Any) -> GenerationPlan:
    about: dict[str, Any] = {
        "project": cast.kassa,
        "name": "Klienditugi “1”",
        "spec": preset("support-dialogues"),
        "languages": ["et", "AR"],
        "families": 5,
        "generators": [GeneratorChoice(provider="simulated", model=model) for model in ("sim-steady", "sim-b")],
        "actor": cast.boris,
    }
    return plans.create_plan(**{**about, **options})


@pytest.mark.both_databases
def test_every_text_is_planned_once(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast, repeats=2)
    rows = Realisation.objects.filter(plan=plan)
    assert rows.count() == rows.values("family", "language", "generator", "repeat").distinct().count() == 40
    assert (plan.languages, plan.families.count(), plan.state) == (["et", "ar"], 5, "draft")
    assert {generator.parameters["max_tokens"] for generator in plan.generators.all()} == {plans.LONGEST_REPLY}
    progress = plans.plan_progress(plan)
    assert (progress.planned, progress.waiting, progress.phase) == (40, 40, PlanPhase.DRAFT)
    assert [(family.number, family.planned) for family in progress.families] == [(n, 8) for n in range(1, 6)]
    assert [(cell.language, cell.generator, cell.planned) for cell in plans.progress_by_cell(plan)] == [
        ("et", "sim-steady", 10),
        ("et", "sim-b", 10),
        ("ar", "sim-steady", 10),
        ("ar", "sim-b", 10),
    ]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"languages": []}, "languages"),
        ({"languages": ["eesti"]}, "languages"),
        ({"families": 0}, "families"),
        ({"families": plans.MOST_FAMILIES, "repeats": 20}, "families"),
        ({"repeats": 0}, "repeats"),
        ({"name": "  "}, "name"),
        ({"generators": []}, "generators"),
        ({"generators": [GeneratorChoice(provider="simulated", model="m")] * 2}, "generators"),
        ({"generators": [GeneratorChoice(provider="nobody", model="m")]}, "generators"),
        ({"budget": Decimal(-1)}, "budget"),
        ({"budget": Decimal(1)}, "budget"),
        *(
            (
                {"generators": [GeneratorChoice(provider="simulated", model="sim-steady", parameters=given)]},
                "generators",
            )
            for given in (
                {"max_completion_tokens": -1},
                {"max_completion_tokens": None},
                {"max_completion_tokens": "4000"},
                {"max_tokens": True},
                {"max_tokens": 4_000, "max_completion_tokens": None},
                {"max_tokens": 10**9},
            )
        ),
        (
            {
                "generators": [
                    GeneratorChoice(provider="simulated", model="sim-steady", name=name) for name in ("m", "m/2")
                ],
                "repeats": 2,
            },
            "generators",
        ),
        ({"spec": parse_spec({**preset("support-dialogues").stored, "templates": {"et": "{channel}"}})}, "languages"),
        ({"spec": GIVEN_IN_ESTONIAN}, "languages"),
    ],
)
def test_a_plan_that_could_not_be_started_is_refused(
    cast: Cast, provider: RunningProvider, wrong: dict[str, Any], name: str
) -> None:
    with pytest.raises(Refused) as refused:
        planned(cast, **wrong)
    assert name in refused.value.fields
    assert not GenerationPlan.objects.exists()


def test_generators_may_be_alike_in_name_where_no_repeat_makes_them_equal(
    cast: Cast, provider: RunningProvider
) -> None:
    alike = [GeneratorChoice(provider="simulated", model="sim-steady", name=name) for name in ("m", "m/2")]
    assert planned(cast, generators=alike).generators.count() == 2


def test_one_limit_on_the_tokens_of_a_reply_is_enough(cast: Cast, provider: RunningProvider) -> None:
    choice = GeneratorChoice(provider="simulated", model="sim-steady", parameters={"max_completion_tokens": 700.0})
    assert planned(cast, generators=[choice]).generators.get().parameters == {"max_completion_tokens": 700}


def test_a_name_is_taken_once(cast: Cast, provider: RunningProvider) -> None:
    planned(cast)
    with pytest.raises(Refused) as refused:
        planned(cast)
    assert refused.value.code == "name_taken"


def test_states_change_one_way(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast)
    assert not plans.pause_plan(plan=plan)
    assert plans.start_examples(plan=plan, actor=cast.boris)
    assert not plans.start_examples(plan=plan)
    assert plans.open_realisations(plan).count() == plans.EXAMPLES * 4
    assert plans.pause_plan(plan=plan)
    assert plan.reason
    assert plans.resume_plan(plan=plan)
    assert plans.start_plan(plan=plan)
    assert not plans.start_plan(plan=plan)
    assert plans.open_realisations(plan).count() == 20
    assert plans.cancel_plan(plan=plan)
    assert not plans.resume_plan(plan=plan)
    assert plans.plan_phase(plan) == PlanPhase.CANCELLED
