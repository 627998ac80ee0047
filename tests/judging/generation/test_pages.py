"""Pages and API of generation plans, through HTTP, from "new plan" to a dataset."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.generation.specs import PRESETS, SIMULATIONS, from_yaml, parse_spec, preset
from judging.models import GenerationAttempt, GenerationPlan, Realisation
from tests.cast import Cast
from tests.judging.generation.test_writing import begun, planned, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
STEPS: list[dict[str, Any]] = [
    {"spec": "support-dialogues"},
    {"languages": ["et", "ar"], "further_languages": "JA"},
    {"further_generators": "simulated/sim-steady\n simulated / sim-flawed", "temperature": "0.7", "max_tokens": "3000"},
    {"name": "Klienditugi “1” – خدمة", "families": "4", "repeats": "1", "budget": "", "seed": "7"},
]


def address(name: str, *parts: Any) -> str:
    return reverse(f"generation{name}", args=["kassa", *parts])


def sent(client: Client, step: int, go: str, **changes: Any) -> Any:
    """The answer to a step of the form, as a browser without scripts sends it: what was filled in before is hidden."""
    fields: dict[str, Any] = {"step": step, "visited": step, "go": go}
    for filled in STEPS[: step + 1]:
        fields |= filled
    return client.post(address("_new"), {**fields, **changes})


def test_a_plan_is_made_in_four_steps(cast: Cast, provider: RunningProvider) -> None:
    client = cast.client("boris")
    assert "No plan yet" in client.get(address("")).content.decode()
    first = client.get(address("_new"))
    assert first.context["step"] == 0
    assert first.context["drawn"][0][0] == "Industry"
    another = sent(client, 0, "example", example="1")
    assert another.context["example"] == 2 and another.context["drawn"] != first.context["drawn"]
    for step in (0, 1, 2):
        answer = sent(client, step, "next")
        assert (answer.status_code, answer.context["step"]) == (200, step + 1), answer.context["form"].errors
        assert not answer.context["form"].errors, "what was not filled in yet is not wrong"
    assert answer.context["forecast"].texts == 20 * 3 * 2
    again = sent(client, 3, "forecast")
    assert again.context["forecast"].texts == 4 * 3 * 2
    assert sent(client, 3, "1").context["step"] == 1, "back to a step that was filled in"
    made = sent(client, 3, "make")
    plan = GenerationPlan.objects.get()
    assert made.headers["Location"] == address("_plan", plan.pk)
    assert (plan.languages, plan.families_planned, plan.seed) == (["et", "ar", "ja"], 4, 7)
    assert plan.spec_digest == preset("support-dialogues").digest
    writers = [(writer.name, writer.parameters) for writer in plan.generators.all()]
    assert writers == [
        ("sim-steady", {"temperature": 0.7, "max_tokens": 3000}),
        ("sim-flawed", {"temperature": 0.7, "max_tokens": 3000}),
    ]
    assert plan.name in client.get(address("")).content.decode()
    like = client.get(f"{address('_new')}?like={plan.pk}").context["form"].initial
    assert (like["languages"], like["families"]) == (plan.languages, 4)


def test_what_is_wrong_is_said_in_its_step(cast: Cast, provider: RunningProvider) -> None:
    client = cast.client("boris")
    wrong = sent(client, 0, "next", spec="own", own_spec="kind: novel\n")
    assert wrong.context["step"] == 0
    assert any("kind: Write one of: dialogue" in error for error in wrong.context["form"].errors["own_spec"])
    none = sent(client, 1, "next", languages=[], further_languages="")
    assert (none.context["step"], list(none.context["form"].errors)) == (1, ["languages"])
    assert sent(client, 1, "next", further_languages="eesti keel").context["form"].errors["further_languages"]
    unknown = sent(client, 2, "next", further_generators="nowhere/gpt")
    assert (unknown.context["step"], list(unknown.context["form"].errors)) == (2, ["further_generators"])
    assert sent(client, 3, "make", name="").context["form"].errors["name"]
    assert "max_tokens" in sent(client, 2, "3", max_tokens="none").context["form"].errors
    assert not GenerationPlan.objects.exists()
    planned(cast, name=STEPS[3]["name"])
    assert "Another plan" in sent(client, 3, "make").content.decode()


def test_a_spec_is_edited_as_its_next_version(cast: Cast, provider: RunningProvider) -> None:
    client = cast.client("boris")
    edited = sent(client, 0, "edit", spec="stories")
    form = edited.context["form"]
    assert form["spec"].value() == "own"
    text = form["own_spec"].value()
    assert from_yaml(text).version == 2
    own = {"spec": "own", "own_spec": text.replace("Short stories", "Lühijutud “õhtuks”").replace("\n", "\r\n")}
    assert sent(client, 0, "next", **own).context["step"] == 1
    assert sent(client, 3, "make", **own).status_code == 302
    plan = GenerationPlan.objects.get()
    assert (plan.spec["title"], plan.spec["version"]) == ("Lühijutud “õhtuks”", 2)
    listed = client.get(address("_specs"))
    assert [spec.title for spec, _plan, _key in listed.context["own"]] == ["Lühijutud “õhtuks”"]
    assert "Lühijutud" in client.get(address("_spec", f"plan-{plan.pk}")).content.decode()
    for key in PRESETS:
        page = client.get(f"{address('_spec', key)}?example=3")
        assert page.context["example"] == 3
        assert from_yaml(page.context["spec"].as_yaml) == preset(key)
    assert client.get(address("_spec", "plan-999")).status_code == 404


def test_a_plan_is_watched_read_and_stored(cast: Cast, provider: RunningProvider) -> None:
    provider.control(written_breaks={"no_greeting": 0.25})
    client = cast.client("boris")
    plan = planned(cast, models=("sim-steady",), languages=["et", "ar"], families=4)
    page = client.get(address("_plan", plan.pk)).content.decode()
    assert "Three examples first" in page
    assert page.count(f'action="{address("_move", plan.pk)}"') == 2, "the forms to write and to cancel"
    client.post(address("_move", plan.pk), {"to": "examples"})
    written(plan)
    assert Realisation.objects.filter(state="written", family__number=4).count() == 0
    page = client.get(address("_plan", plan.pk)).content.decode()
    assert "The examples are written" in page
    client.post(address("_move", plan.pk), {"to": "start"})
    assert client.get(address("_live", plan.pk)).status_code == 200
    progress = written(plan)
    assert client.get(address("_live", plan.pk)).headers["HX-Refresh"] == "true"
    shown = client.get(address("_plan", plan.pk))
    assert shown.context["progress"].problems == progress.problems
    assert f"?problem={next(iter(progress.problems))}" in shown.content.decode()

    broken = client.get(f"{address('_texts', plan.pk)}?problem=no_greeting").context["page_obj"].object_list
    assert len(broken) == len({*progress.problems}) or len(broken) > 0
    text = broken[0]
    page = client.get(address("_text", plan.pk, text.pk)).content.decode()
    assert "The first turn of this speaker has no greeting: agent" in page
    assert text.turns[0]["text"].split("“")[0][:20] in page.replace("&#x27;", "'")
    family = client.get(f"{address('_texts', plan.pk)}?family=2&language=ar")
    assert [(row.family.number, row.language) for row in family.context["page_obj"]] == [(2, "ar")]
    assert "Nothing" not in family.content.decode()
    assert "No such text" in client.get(f"{address('_texts', plan.pk)}?decision=keep").content.decode()

    queue = client.get(f"{address('_reading', plan.pk)}?language=ar")
    first, left = queue.context["text"], queue.context["left"]
    assert (first.language, first.family.number, left) == ("ar", 1, 4)
    assert '<option value="ar" selected>' in queue.content.decode()
    assert '<input type="hidden" name="language" value="ar">' in queue.content.decode()
    skipped = client.get(f"{address('_reading', plan.pk)}?language=ar&after={first.pk}").context["text"]
    assert skipped.family.number == 2
    decided = {"reading": "1", "language": "ar", "decision": "set_aside", "reason": "vale “toon”"}
    answer = client.post(address("_decision", plan.pk, first.pk), decided, follow=True)
    assert (answer.context["left"], answer.context["decided"].pk) == (3, first.pk)
    undone = client.post(address("_decision", plan.pk, first.pk), {**decided, "decision": ""}, follow=True)
    assert (undone.context["left"], undone.context["text"].pk) == (4, first.pk)
    for _text in range(4):
        text = client.get(f"{address('_reading', plan.pk)}?language=ar").context["text"]
        choice = "set_aside" if text.family.number == 3 else "keep"
        client.post(address("_decision", plan.pk, text.pk), {**decided, "decision": choice})
    assert "Everything is read" in client.get(f"{address('_reading', plan.pk)}?language=ar").content.decode()

    stored = client.post(address("_store", plan.pk), {"name": "Kõned “A”", "only": "whole"})
    dataset = plan.datasets.get().dataset
    assert stored.headers["Location"] == reverse("dataset", args=["kassa", dataset.pk])
    assert dataset.items.count() == 6, "the family with a text that was set aside stays out"
    again = client.post(address("_store", plan.pk), {"name": "Kõned “A”", "only": "all"}, follow=True)
    assert "Another dataset" in again.content.decode()
    assert "Kõned" in client.get(address("_plan", plan.pk)).content.decode()


def test_a_plan_is_steered(cast: Cast, provider: RunningProvider) -> None:
    client = cast.client("aino")
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=4)
    assert "Another state" not in client.post(address("_move", plan.pk), {"to": "pause"}, follow=True).content.decode()
    plan.refresh_from_db()
    assert plan.state == "paused"
    refused = client.post(address("_move", plan.pk), {"to": "pause"}, follow=True).content.decode()
    assert "The plan is in another state now" in refused
    client.post(address("_move", plan.pk), {"to": "resume"})
    client.post(address("_move", plan.pk), {"to": "cancel"})
    plan.refresh_from_db()
    assert plan.state == "cancelled"
    assert client.post(address("_budget", plan.pk), {"budget": "-1"}, follow=True).status_code == 200


def test_plans_of_the_api(cast: Cast, provider: RunningProvider) -> None:
    client = cast.client("boris")
    root = "/api/v1/projects/kassa/generation/"
    body = {
        "name": "API “1”",
        "spec": "single-answers",
        "languages": ["et", "es"],
        "families": 4,
        "generators": [{"provider": "simulated", "model": "sim-steady"}],
        "seed": 3,
    }
    wrong = client.post(root, {**body, "spec": {"key": "x"}}, content_type="application/json")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid")
    assert "templates" in wrong.json()["fields"]
    made = client.post(root, body, content_type="application/json")
    assert made.status_code == 201, made.json()
    plan = GenerationPlan.objects.get()
    forecast = client.get(f"{root}{plan.pk}/forecast/").json()
    assert (forecast["texts"], forecast["is_measured"]) == (8, False)
    started = client.post(f"{root}{plan.pk}/start/", content_type="application/json")
    assert started.json()["state"] == "running"
    assert client.post(f"{root}{plan.pk}/start/", content_type="application/json").status_code == 409
    written(plan)
    shown = client.get(f"{root}{plan.pk}/").json()
    assert (shown["progress"]["phase"], shown["progress"]["whole"]) == ("finished", 4)
    assert [(cell["language"], cell["written"]) for cell in shown["cells"]] == [("et", 4), ("es", 4)]
    texts = client.get(f"{root}{plan.pk}/texts/?language=es&state=written").json()["results"]
    assert len(texts) == 4 and set(texts[0]["fields"]) == {"question", "answer"}
    one = client.get(f"{root}{plan.pk}/texts/{texts[0]['id']}/").json()
    assert one["attempts"][0]["problems"] == [] and one["attempts"][0]["request"]["messages"]
    decision = {"decision": "keep", "reason": ""}
    kept = client.put(f"{root}{plan.pk}/texts/{texts[0]['id']}/decision/", decision, content_type="application/json")
    assert kept.json()["decision"] == "keep"
    stored = client.post(f"{root}{plan.pk}/store/", {"name": "From the API"}, content_type="application/json")
    assert plan.datasets.get().dataset_id == stored.json()["dataset"]
    assert client.get(f"{root}{plan.pk}/texts/?family=x").status_code == 422
    assert [spec["key"] for spec in client.get(f"{root}specs/").json()] == [*PRESETS, *SIMULATIONS]


def test_others_see_nothing_of_a_plan(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast)
    text = plan.realisations.first()
    assert text is not None
    for who in ("maarika", "zoltan"):
        client = cast.client(who)
        for place in (address(""), address("_plan", plan.pk), address("_text", plan.pk, text.pk), address("_new")):
            assert client.get(place).status_code in (403, 404)
        for project in ("kassa", "teine"):
            there = f"/api/v1/projects/{project}/generation/{plan.pk}/"
            assert client.get(there).status_code in (403, 404)
        moved = client.post(address("_move", plan.pk), {"to": "start"})
        assert moved.status_code in (403, 404)
    plan.refresh_from_db()
    assert plan.state == "draft"


@pytest.mark.both_databases
def test_texts_are_found_by_a_problem_and_not_by_words_that_look_like_one(
    cast: Cast, provider: RunningProvider
) -> None:
    plan = planned(cast, models=("sim-steady",), languages=["en"], families=3)
    first, second, third = plan.realisations.order_by("pk")
    stored = {
        first: [{"code": "no_greeting", "values": {"role": "agent"}}],
        second: [{"code": "stand_in", "values": {"text": '[a", "code": "no_greeting"]'}}],
        third: [{"code": "unknown_role", "values": {"role": "no_greeting"}}, {"code": "no_text", "values": {}}],
    }
    for text, problems in stored.items():
        GenerationAttempt.objects.create(realisation=text, number=1, outcome="replied", problems=problems)
    client = cast.client("boris")
    for code, found in (("no_greeting", [first]), ("no_text", [third]), ("stand_in", [second]), ("no_.*", [])):
        page = client.get(address("_texts", plan.pk), {"problem": code})
        assert [text.pk for text in page.context["page_obj"]] == [text.pk for text in found], code


def test_the_live_part_is_sent_when_something_has_changed(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, models=("sim-steady",), languages=["en"], families=2)
    client = cast.client("boris")
    page = client.get(address("_plan", plan.pk))
    live = f"{address('_live', plan.pk)}?revision={page.context['revision']}"
    assert live.replace(":", "%3A") in page.content.decode()
    assert (client.get(live).status_code, client.get(live).content) == (204, b"")
    text = plan.realisations.order_by("pk").first()
    assert text is not None
    Realisation.objects.filter(pk=text.pk).update(discarded=1)
    changed = client.get(live)
    assert (changed.status_code, changed.context["revision"] in live) == (200, False)
    written(plan)
    assert client.get(live).headers["HX-Refresh"] == "true"


def test_specs_of_plans_are_read_once_each(cast: Cast, provider: RunningProvider) -> None:
    own = parse_spec({**preset("stories").stored, "key": "own-stories", "title": "Jutud"})
    for number in range(5):
        planned(cast, name=f"Plan {number}", families=1, spec=own if number % 2 else preset("stories"))
    client = cast.client("boris")
    like = f"{address('_new')}?like={GenerationPlan.objects.get(name='Plan 1').pk}"
    with CaptureQueriesContext(connection) as captured:
        page = client.get(like)
    read = [query["sql"] for query in captured if '"judging_generationplan"."spec"' in query["sql"]]
    assert len(read) == 2, ("of the plan, and of the newest of each", read)
    newest = GenerationPlan.objects.get(name="Plan 3")
    assert page.context["form"].initial["spec"] == f"plan-{newest.pk}"
    options = [key for key, _title in page.context["form"].fields["spec"].choices]
    assert options == [*PRESETS, *SIMULATIONS, f"plan-{newest.pk}", "own"]


def test_the_list_takes_few_queries(cast: Cast, provider: RunningProvider, django_assert_max_num_queries: Any) -> None:
    for number in range(4):
        planned(cast, name=f"Plan {number}", families=2)
    client = cast.client("boris")
    client.get(address(""))
    with django_assert_max_num_queries(8):
        page = client.get(address(""))
    assert [(row["planned"], row["phase"]) for row in page.context["rows"]] == [(24, "draft")] * 4
    assert preset("support-dialogues").title in page.content.decode()
    text = Realisation.objects.first()
    assert text is not None
    with django_assert_max_num_queries(14):
        client.get(address("_texts", text.plan_id))
