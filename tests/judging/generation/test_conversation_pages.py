"""Pages and API of a simulation: its conversations turn by turn, what was set aside and why, and what is stored."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from analytics.exporting import exports
from annotation.models import Dataset, Item
from judging import judges
from judging.generation import storing
from judging.generation.utterance_judge import declare_utterance_judge, utterance_rubric
from judging.models import GenerationPlan, Judge, PlanDataset, Realisation
from tests.cast import Cast
from tests.judging.generation.conversed import BOTS, LANGUAGES, SIMULATED_USERS, TURN_TEXTS, simulated_plan
from tests.judging.generation.test_writing import priced
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_a_conversation_is_shown_turn_by_turn_with_every_refused_try(cast: Cast) -> None:
    plan = simulated_plan(cast)
    text = Realisation.objects.filter(plan=plan, family__number=3, language="et").first()
    assert text is not None
    page = cast.client("boris").get(f"/p/kassa/generation/{plan.pk}/texts/{text.pk}/")
    shown = page.content.decode()
    first, second = page.context["conversation"]
    assert (first.number, first.is_shared, first.refused, len(first.attempts)) == (1, True, 2, 6)
    assert [each.is_refused_by_guard for each in first.tries] == [True, False, False]
    assert [each.refusal is not None for each in first.tries] == [False, True, False]
    assert (first.user, first.answer) == tuple(TURN_TEXTS["et"][:2])
    assert (second.user, second.answer, second.refused, second.is_shared) == (*TURN_TEXTS["et"][2:], 0, False)
    for words in ("2 tries refused", "shared by all chatbots", "refused by the reply guard", "refused by the judge"):
        assert words in shown
    assert "&lt;think&gt;Ma olen kasutaja" in shown and "<think>" not in shown
    assert "Nobody writes “Dear chatbot” &lt;b&gt;." in shown
    assert "Request opening 1" in shown and "Request verdict 3" in shown and "The user ended it" in shown
    assert first.cost == Decimal("0.006")

    told = cast.client("boris").get(f"/api/v1/projects/kassa/generation/{plan.pk}/texts/{text.pk}/").json()
    assert (told["simulator"], told["generator"], told["ended"]) == (SIMULATED_USERS[0], BOTS[0], "stopped")
    assert [(each["step"], each["turn"]) for each in told["attempts"]] == [
        ("answer", 0), ("utterance", 1), ("verdict", 1), ("answer", 1),
    ]  # fmt: skip
    assert [each["step"] for each in told["opening_attempts"]].count("opening") == 3
    assert cast.client("maarika").get(f"/p/kassa/generation/{plan.pk}/texts/{text.pk}/").status_code in (403, 404)


def test_what_was_set_aside_is_counted_by_reason_language_and_generator(cast: Cast) -> None:
    plan = simulated_plan(cast)
    boris = cast.client("boris")
    by_hand = Realisation.objects.filter(plan=plan, language="ar", generator__name=BOTS[1]).first()
    assert by_hand is not None
    boris.post(f"/p/kassa/generation/{plan.pk}/texts/{by_hand.pk}/decision/", {"decision": "set_aside", "reason": "x"})
    page = boris.get(f"/p/kassa/generation/{plan.pk}/")
    assert page.context["aside_codes"][:2] == ["mixed_language", "role_confusion"]
    rows = {(row.language, row.generator): counts for row, counts in page.context["aside_rows"]}
    assert rows == {
        **{(tag, BOTS[0]): [2, 2, 0] for tag in LANGUAGES},
        ("et", BOTS[1]): [0, 0, 0],
        ("ar", BOTS[1]): [0, 0, 1],
    }
    assert "9 texts are set aside" in page.content.decode() and "by a reader" in page.content.decode()
    listed = boris.get(f"/p/kassa/generation/{plan.pk}/texts/?decision=set_aside&simulator=")
    assert listed.context["page_obj"].paginator.count == 9
    user = plan.user_models.first()
    assert user is not None
    listed = boris.get(f"/p/kassa/generation/{plan.pk}/texts/?simulator={user.pk}")
    assert listed.context["page_obj"].paginator.count == 16
    api = f"/api/v1/projects/kassa/generation/{plan.pk}/texts/"
    assert boris.get(f"{api}?decision=set_aside").json()["results"][0]["problems"][0]["code"] == "mixed_language"


def test_stored_with_and_without_what_was_set_aside(cast: Cast) -> None:
    plan = simulated_plan(cast)
    boris = cast.client("boris")
    at = f"/p/kassa/generation/{plan.pk}/store/"
    for name, only, count in (("Terved", "whole", 16), ("Kõik", "all", 24), ("Ka vigased", "every", 32)):
        answer = boris.post(at, {"name": name, "only": only})
        dataset = Dataset.objects.get(name=name)
        assert answer["Location"] == f"/p/kassa/datasets/{dataset.pk}/"
        items = Item.objects.of(dataset)
        assert items.count() == count == items.filter(attributes__has_key="simulator").count()
        assert PlanDataset.objects.get(dataset=dataset).only == only
    aside = {
        f"{item.scenario}/{item.language}/{item.generator}/{item.attributes['simulator']}": item.attributes["set_aside"]
        for item in items
        if "set_aside" in item.attributes
    }
    assert aside == {
        f"family-{number:04}/{tag}/{BOTS[0]}/{user}": code
        for number, code in ((1, "mixed_language"), (2, "role_confusion"))
        for tag in LANGUAGES
        for user in SIMULATED_USERS
    }
    item = items.get(generator=BOTS[1], language="et", attributes__family=3, attributes__simulator=SIMULATED_USERS[1])
    assert re.fullmatch(r"family-0003/et/[0-9a-f]{12}", item.external_id), "the key names no model"
    assert (item.attributes["simulator"], item.attributes["user_turns"], item.attributes["ended"]) == (
        SIMULATED_USERS[1], 2, "stopped",
    )  # fmt: skip
    assert (item.generator, item.scenario) == (BOTS[1], "family-0003")


def sent(client: Client, step: int, go: str, **changes: Any) -> Any:
    """The answer to a step of the form of a new plan, as a browser without scripts sends it."""
    steps: list[dict[str, Any]] = [
        {"spec": "simulated-users"},
        {"languages": ["et", "ar"]},
        {
            "further_generators": "simulated/sim-steady\nsimulated/sim-chatty",
            "further_user_models": "simulated/sim-user",
            "utterance_judge": "model-simulated\x1fsim-steady",
            "utterance_rubric": "",
            "max_tokens": "4000",
        },
        {"name": "Vestlused “1” – محادثات", "families": "3", "repeats": "1", "budget": "", "seed": "7"},
    ]
    fields: dict[str, Any] = {"step": step, "visited": step, "go": go}
    for filled in steps[: step + 1]:
        fields |= filled
    return client.post("/p/kassa/generation/new/", {**fields, **changes})


def test_a_simulation_is_planned_in_four_steps(cast: Cast, provider: RunningProvider) -> None:
    priced()  # so that the provider names its models
    client = cast.client("boris")
    first = sent(client, 0, "example", example="1")
    shown = first.content.decode()
    assert "Conversations of simulated users with chatbots" in shown and "What a chatbot gets" in shown
    assert "You play a person" not in shown and "Write the first" in shown
    third = sent(client, 1, "next")
    shown = third.content.decode()
    assert third.context["step"] == 2 and "None: the reply guard alone" in shown and "User models" in shown
    assert 'name="temperature" type="number"' not in shown
    without = sent(client, 2, "next", further_user_models="")
    assert (without.context["step"], list(without.context["form"].errors)) == (2, ["user_models"])
    wrong = sent(client, 2, "next", further_user_models="nowhere/gpt")
    assert (wrong.context["step"], list(wrong.context["form"].errors)) == (2, ["further_user_models"])
    assert sent(client, 2, "next").context["step"] == 3
    forecast_page = sent(client, 3, "forecast")
    forecast = forecast_page.context["forecast"]
    roles = ["generator", "generator", "user_model", "utterance_judge"]
    assert [part.role for part in forecast.generators] == roles, "one model may have two of them"
    for label in ("Chatbot", "User model", "Judge of the user’s turns"):
        assert f'<span class="quiet small">{label}</span>' in forecast_page.content.decode()
    assert [part.name for part in forecast.generators] == ["sim-steady", "sim-chatty", "sim-user", "sim-steady"]
    assert forecast.texts == 3 * 2 * 2 and forecast.requests > 3 * forecast.texts
    assert not Judge.objects.exists()
    made = sent(client, 3, "make")
    plan = GenerationPlan.objects.get()
    assert made.headers["Location"] == f"/p/kassa/generation/{plan.pk}/"
    assert [model.name for model in plan.writers] == ["sim-steady", "sim-chatty"]
    assert [model.name for model in plan.user_models] == ["sim-user"]
    assert plan.utterance_judge == Judge.objects.get() and plan.utterance_rubric is not None
    assert all(model.parameters.get("max_tokens") != 4000 for model in plan.writers)
    page = client.get(made.headers["Location"]).content.decode()
    assert "sim-user" in page and str(plan.utterance_judge) in page and str(plan.utterance_rubric) in page
    like = client.get(f"/p/kassa/generation/new/?like={plan.pk}").context["form"].initial
    assert (like["spec"], like["user_models"]) == ("simulated-users", ["simulated\x1fsim-user"])
    assert like["utterance_judge"] == f"judge-{plan.utterance_judge_id}"
    again = sent(client, 3, "make", name="Teine", utterance_judge=like["utterance_judge"])
    assert again.status_code == 302 and Judge.objects.count() == 1
    taken = sent(client, 3, "make", utterance_judge="model-simulated\x1fsim-chatty")
    assert "Another plan of this project" in taken.content.decode()
    assert Judge.objects.count() == 1, "a judge is declared only for a plan that is made"
    assert "Conversations of simulated users" in client.get("/p/kassa/generation/specs/").content.decode()
    assert client.get("/p/kassa/generation/specs/simulated-users/").status_code == 200


def test_a_judge_that_may_not_judge_turns_is_not_offered_and_refused_where_it_stands(
    cast: Cast, provider: RunningProvider
) -> None:
    priced()
    about: dict[str, Any] = {"project": cast.kassa, "provider": "simulated", "model": "sim-steady"}
    one_by_one = judges.declare(name="Üks “haaval”", variant={"grouping": "single"}, **about)
    fit = judges.declare(name="قاضٍ", **about)
    client = cast.client("boris")
    shown = sent(client, 1, "next").content.decode()
    assert f'value="judge-{fit.pk}"' in shown and f'value="judge-{one_by_one.pk}"' not in shown
    refused = sent(client, 3, "make", utterance_judge=f"judge-{one_by_one.pk}")
    assert (refused.status_code, refused.context["step"]) == (200, 2), "the step that has the error is shown"
    assert list(refused.context["form"].errors) == ["utterance_judge"]
    assert not GenerationPlan.objects.exists()


def test_a_simulation_is_planned_by_api(cast: Cast, provider: RunningProvider) -> None:
    boris, at = cast.client("boris"), "/api/v1/projects/kassa/generation/"
    about: dict[str, Any] = {
        "name": "Vestlused",
        "spec": "simulated-users",
        "languages": ["et"],
        "families": 2,
        "generators": [{"provider": "simulated", "model": "sim-steady"}],
        "user_models": [{"provider": "simulated", "model": "sim-user", "name": "Mängija “1”"}],
    }
    made = boris.post(at, about, content_type="application/json")
    assert made.status_code == 201, made.content
    told = made.json()
    assert [one["name"] for one in told["generators"]] == ["sim-steady"]
    assert [one["name"] for one in told["user_models"]] == ["Mängija “1”"]
    assert (told["utterance_judge"], told["utterance_rubric"]) == (None, None)
    judge = declare_utterance_judge(project=cast.kassa, provider="simulated", model="sim-steady")
    judged = boris.post(
        at, {**about, "name": "Kohtunikuga", "utterance_judge": judge.pk}, content_type="application/json"
    )
    assert judged.status_code == 201, judged.content
    assert judged.json()["utterance_judge"] == judge.pk and judged.json()["utterance_rubric"]
    assert boris.get(at).json()["results"][0]["user_models"][0]["model"] == "sim-user"
    without = boris.post(at, {**about, "name": "x", "user_models": []}, content_type="application/json")
    assert without.status_code in (400, 422) and "user_models" in without.json()["fields"]
    text = {**about, "name": "y", "spec": "stories"}
    assert "user_models" in boris.post(at, text, content_type="application/json").json()["fields"]
    assert (
        boris.post(at, {**about, "name": "z", "utterance_judge": 10**6}, content_type="application/json").status_code
        == 404
    )


def test_judged_turns_are_stored_for_natives(cast: Cast, provider: RunningProvider) -> None:
    plan = simulated_plan(cast)
    boris, at = cast.client("boris"), f"/p/kassa/generation/{plan.pk}/"
    assert "Store the user turns" not in boris.get(at).content.decode(), "a plan without a judge"
    plan.utterance_judge = declare_utterance_judge(project=cast.kassa, provider="simulated", model="sim-steady")
    plan.utterance_rubric = utterance_rubric(project=cast.kassa)
    plan.save()
    assert "Store the user turns" in boris.get(at).content.decode()
    stored = boris.post(f"{at}utterances/", {"name": "Kasutajate sõnumid", "most": ""})
    dataset = Dataset.objects.get(name="Kasutajate sõnumid")
    assert stored["Location"] == f"/p/kassa/datasets/{dataset.pk}/"
    items = Item.objects.of(dataset)
    assert items.count() == 16 * 2 + 32, "two verdicts on each opening, one on each second turn"
    assert items.filter(attributes__accepted=False).count() == 16
    refused = boris.post(f"{at}utterances/", {"name": "Kasutajate sõnumid"}, follow=True).content.decode()
    assert "Another dataset of this project is called" in refused
    api = f"/api/v1/projects/kassa/generation/{plan.pk}/utterances/"
    made = boris.post(api, {"name": "Viis", "most": 5, "seed": 1}, content_type="application/json")
    assert made.status_code == 201, made.content
    assert Item.objects.filter(dataset=made.json()["dataset"]).count() == 5


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_conversations_come_back_from_a_file_with_what_was_drawn(cast: Cast, kind: str) -> None:
    plan = simulated_plan(cast, families=2)
    stored = storing.store_dataset(plan=plan, name="Vestlused", only="every", actor=cast.boris)
    export = exports.checked_export(project=cast.kassa, what="items", kind=kind, subject=stored)
    client, name = cast.client("boris"), f'{{"name": "From {kind}"}}'
    address = f"/api/v1/projects/kassa/imports/?name=d.{kind}&kind=dataset&target={quote(name)}"
    body = b"".join(exports.export_pieces(export))
    opened = client.post(address, body, content_type="application/octet-stream").json()
    assert client.post(f"/api/v1/projects/kassa/imports/{opened['id']}/store/").status_code == 200
    again = Dataset.objects.get(name=f"From {kind}")
    columns = ("external_id", "language", "generator", "scenario", "turns", "fields", "attributes")
    before, after = (list(one.items.order_by("ordinal").values(*columns)) for one in (stored, again))
    assert before == after
    assert len(after) == 16
    assert {"scene", "persona", "simulator", "user_turns", "ended", "family"} <= set(after[0]["attributes"])
