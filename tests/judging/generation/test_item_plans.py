"""Plans over the items of a dataset: every prompt is answered by each model, in its language, under its scenario."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from accounts.refusals import Refused
from annotation.imports import storage
from annotation.models import Dataset, Item
from judging.generation import item_plans, plans, storing
from judging.generation.plans import GeneratorChoice
from judging.generation.specs import ANSWERS, parse_spec, preset
from judging.models import GenerationPlan, Realisation
from tests import make
from tests.cast import Cast
from tests.judging.generation.test_writing import written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

PROMPTS = {
    "p «1»": ("et", "Kirjuta lühike kiri {naabrile}, kes „jättis“ värava lahti."),
    "p2": ("et", "Selgita lapsele, miks taevas on sinine."),
    "طلب": ("ar", "اكتب رسالة قصيرة إلى جارك تشكره فيها على مساعدته لك."),
    "p4": ("en", "Explain in three sentences why bread goes stale."),
}
MODELS = [GeneratorChoice(provider="simulated", model=model) for model in ("sim-steady", "sim-chatty")]


def prompts(cast: Cast, **more: str) -> Dataset:
    rows = [
        make.item_row(
            number,
            language,
            external_id=key,
            scenario=key,
            generator="",
            turns=[],
            fields={"question": text, **more},
            attributes={"task": "Letter", "author": "A01", "version": 2, "plan": "theirs", "prompt": "x"},
        )
        for number, (key, (language, text)) in enumerate(PROMPTS.items(), 1)
    ]
    return storage.store(project=cast.kassa, name="Prompts", items=rows, allocatable=False)


@pytest.mark.both_databases
def test_a_prompt_is_answered_in_its_own_language_only(cast: Cast, provider: RunningProvider) -> None:
    plan = item_plans.plan_answers(dataset=prompts(cast), name="Answers", generators=MODELS, actor=cast.aino)
    assert plan.languages == ["et", "ar", "en"] and plan.families_planned == 4
    assert Realisation.objects.filter(plan=plan).count() == 8
    pairs = set(Realisation.objects.filter(plan=plan).values_list("family__scenario", "language"))
    assert pairs == {(key, language) for key, (language, _text) in PROMPTS.items()}
    assert plans.plan_progress(plan).planned == 8


def test_the_answers_stand_under_the_scenario_of_their_prompt(cast: Cast, provider: RunningProvider) -> None:
    prompts(cast)
    models = "simulated/sim-steady,simulated/sim-chatty"
    names = ("--prompts", "Prompts", "--generators", models, "--name", "Answers")
    call_command("generate", "kassa", "--here", "--store", "Answered", *names)
    items = Item.objects.filter(dataset__name="Answered")
    assert items.count() == 8
    for key, (language, text) in PROMPTS.items():
        those = items.filter(scenario=key)
        assert set(those.values_list("generator", flat=True)) == {"sim-steady", "sim-chatty"}
        for item in those:
            assert item.language == language and item.fields["question"] == text and item.fields["answer"]
            assert item.attributes["task"] == "Letter" and item.attributes["version"] == 2
            assert item.attributes["plan"] == "Answers" and item.attributes["family_is_whole"]
            assert "prompt" not in item.attributes


@pytest.mark.both_databases
def test_answers_keep_the_warning_layout_and_licence_of_their_prompt(cast: Cast, provider: RunningProvider) -> None:
    """Without the warning a rater would know an answer of a model from that of a person."""
    source = prompts(cast)
    source.items.filter(external_id="p2").update(content_warning="Mentions «surm»")
    layout = {"fields": ["question", "answer"]}
    Dataset.objects.filter(pk=source.pk).update(licence="CC BY 4.0", layout=layout)
    source.refresh_from_db()
    plan = item_plans.plan_answers(dataset=source, name="Answers", generators=MODELS)
    assert plans.start_plan(plan=plan)
    written(plan)
    stored = storing.store_dataset(plan=plan, name="Answered")
    warned = stored.items.exclude(content_warning="").values_list("scenario", "content_warning")
    assert list(warned) == [("p2", "Mentions «surm»")] * 2
    assert (stored.licence, stored.layout) == ("CC BY 4.0", layout)


def test_what_can_not_be_answered_is_refused(cast: Cast, provider: RunningProvider) -> None:
    dialogues = make.dataset(cast.kassa)
    with pytest.raises(Refused, match="has no “question”"):
        item_plans.plan_answers(dataset=dialogues, name="Answers", generators=MODELS)
    with pytest.raises(Refused) as drawn:
        item_plans.plan_answers(dataset=prompts(cast), name="Answers", generators=MODELS, spec=preset("single-answers"))
    assert drawn.value.fields.keys() == {"spec"}
    with pytest.raises(Refused) as without:
        plans.create_plan(
            project=cast.kassa,
            name="Answers",
            spec=preset(ANSWERS),
            languages=["et"],
            families=2,
            generators=MODELS,
        )
    assert without.value.fields.keys() == {"spec"}
    with pytest.raises(Refused, match="source"):
        parse_spec({**preset(ANSWERS).stored, "parameters": [{"name": "prompt", "source": "elsewhere"}]})
    assert parse_spec(preset(ANSWERS).stored) == preset(ANSWERS)
    assert not GenerationPlan.objects.exists()


def test_a_page_plans_answers_to_a_dataset(cast: Cast, provider: RunningProvider) -> None:
    dataset, browser = prompts(cast), cast.client("boris")
    there = f"/p/kassa/datasets/{dataset.pk}/answers/"
    assert there in browser.get(f"/p/kassa/datasets/{dataset.pk}/").content.decode()
    assert browser.get(there).status_code == 200
    sent = {"name": "Vastused “1”", "further_generators": "simulated/sim-steady", "repeats": 1, "spec": ""}
    answer = browser.post(there, {**sent, "further_generators": "nobody/model"})
    assert answer.status_code == 200 and not GenerationPlan.objects.exists()
    answer = browser.post(there, sent)
    plan = GenerationPlan.objects.get()
    assert answer.headers["Location"] == f"/p/kassa/generation/{plan.pk}/"
    page = browser.get(answer.headers["Location"])
    assert page.status_code == 200
    assert browser.get(f"/p/kassa/generation/{plan.pk}/texts/?family=1").status_code == 200
    assert browser.get(f"/p/kassa/generation/specs/plan-{plan.pk}/").status_code == 200
    body = {"name": "By API", "generators": [{"provider": "simulated", "model": "sim-chatty"}]}
    made = browser.post(f"/api/v1/projects/kassa/datasets/{dataset.pk}/answers/", body, content_type="application/json")
    assert made.status_code == 201 and made.json()["progress"]["planned"] == 4
    assert storing.written_texts(GenerationPlan.objects.get(name="By API")) == ([], set())
