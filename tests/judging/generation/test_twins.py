"""Translated twins: a plan over a dataset, through the pages and the command, to native against translated."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.refusals import Refused
from annotation import campaigns
from annotation.models import Dataset, Item
from annotation.readers.items import ItemRow
from judging.generation import plan_forecasts, plans, storing
from judging.generation.specs import preset
from judging.models import GenerationAttempt, GenerationPlan, Realisation
from tests import make
from tests.analytics.scene import answered
from tests.cast import Cast
from tests.judging.generation.test_writing import kill_a_worker, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
BREAKS = {"untranslated": 0.06, "wrong_count": 0.06, "missing_part": 0.06, "unreadable": 0.06, "changed_role": 0.06}
ENGLISH = (
    (
        "My order 48213 has not arrived, and [NAME] needs it before the weekend.",
        "I am sorry about this, I shall look for it now.",
    ),
    (
        "The lamp “Aurora” flickers in the evening; what shall I do about it?",
        "Turn it off first, then write to help@shop.test please.",
    ),
    (
        "I was charged 129.90 twice for the same pair of shoes last Friday.",
        "You will have 129.90 back within 14 days, I promise.",
    ),
)
ESTONIAN = (
    ("Minu tellimus ei ole ikka veel kohale jõudnud ja mul on seda vaja.", "Mul on kahju, otsin selle kohe üles."),
    ("Lamp vilgub õhtuti ja ma ei tea, mida sellega ette võtta.", "Lülitage see kõigepealt välja ja kirjutage meile."),
    ("Samade kingade eest võeti minult reedel kaks korda raha.", "Saate raha kahe nädala jooksul tagasi."),
)  # fmt: skip


def natives(cast: Cast) -> Dataset:
    """Three scenarios by two generators, written in English and in Estonian."""
    rows: list[ItemRow] = []
    for language, texts in (("en", ENGLISH), ("et", ESTONIAN)):
        for scenario, said in enumerate(texts):
            for generator in ("atlas", "boreas"):
                turns = [{"speaker": who, "text": text} for who, text in zip(("user", "assistant"), said, strict=True)]
                row = make.item_row(
                    len(rows),
                    language,
                    generator,
                    external_id=f"{language} {scenario} “{generator}”",
                    scenario=f"stseen {scenario}",
                    turns=turns,
                    attributes={"tone": "plain"},
                )
                rows.append(row)
    return make.dataset(cast.kassa, rows, name="Kõned «päris»")


def twins(cast: Cast, source: Dataset, **options: Any) -> GenerationPlan:
    about: dict[str, Any] = {
        "project": cast.kassa,
        "name": "Twins",
        "spec": preset("translations"),
        "languages": ["et"],
        "families": 100,
        "generators": [
            plans.GeneratorChoice(provider="simulated", model=name, parameters={"seed": 5})
            for name in ("sim-steady", "sim-chatty")
        ],
        "seed": 3,
        "source": source,
        "source_language": "en",
        "actor": cast.boris,
    }
    return plans.create_plan(**{**about, **options})


@pytest.mark.both_databases
def test_every_item_is_translated_and_what_is_broken_is_asked_for_again(cast: Cast, provider: RunningProvider) -> None:
    provider.control(written_breaks=BREAKS)
    source = natives(cast)
    plan = twins(cast, source, languages=["et", "ja", "ar"], spec=replace(preset("translations"), retries=9))
    assert (plan.families_planned, plan.realisations.count()) == (6, 36), "items in English only"
    likely = plan_forecasts.forecast_plan(plan)
    assert (likely.texts, likely.requests) == (36, 36) and likely.tokens > 36 * 100
    assert plans.start_plan(plan=plan, actor=cast.boris)
    progress = written(plan)
    counts = provider.control()
    assert (progress.phase, progress.written) == (plans.PlanPhase.FINISHED, 36), progress.problems
    assert sum(counts["written_breaks"].values()) == progress.discarded > 0, "every planted break, and nothing else"
    assert counts["requests"] == progress.attempts == 36 + progress.discarded
    for row in Realisation.objects.filter(plan=plan).select_related("family__source"):
        original = row.family.source
        assert original is not None
        assert [turn["speaker"] for turn in row.turns] == ["user", "assistant"]
        assert all(
            kept not in original.turns[0]["text"] or kept in row.turns[0]["text"] for kept in ("[NAME]", "129.90")
        )
    retold = GenerationAttempt.objects.filter(number=2).first()
    assert retold and "A reply to this request could not be used" in retold.request["messages"][-1]["content"]

    dataset = storing.store_dataset(plan=plan, name="Kaksikud", actor=cast.boris)
    assert (dataset.items.count(), dataset.derived_from) == (36, source)
    item = dataset.items.get(external_id="en 1 “atlas”/ja/sim-chatty")
    assert (item.language, item.generator, item.scenario) == ("ja", "atlas", "stseen 1")
    assert item.attributes.items() >= {
        "is_translation": True, "translated_by": "sim-chatty", "source_language": "en",
        "source_item": "en 1 “atlas”", "tone": "plain",
    }.items()  # fmt: skip


@pytest.mark.both_databases
@pytest.mark.parametrize("moment", ["between reply and store", "between the last row and the end"])
def test_a_worker_that_translates_is_killed_at_each_write(cast: Cast, provider: RunningProvider, moment: str) -> None:
    provider.control(latency=0.05)
    steady = plans.GeneratorChoice(provider="simulated", model="sim-steady")
    plan = twins(cast, natives(cast), languages=["et", "ja", "ar"], generators=[steady])
    assert plans.start_plan(plan=plan, actor=cast.boris)
    kill_a_worker(provider, plan, before_store=moment == "between reply and store", times=2)
    rows = Realisation.objects.filter(plan=plan, state="written")
    before = dict(rows.values_list("pk", "turns"))
    lost = GenerationAttempt.objects.filter(outcome="sent").count()
    assert (lost > 0, len(before) == 18) == (moment == "between reply and store", lost == 0)
    progress = written(plan)
    assert (progress.written, progress.phase, progress.lost) == (18, plans.PlanPhase.FINISHED, lost)
    assert dict(rows.filter(pk__in=before).values_list("pk", "turns")) == before, "what was stored stays"
    assert provider.control()["requests"] == 18 + lost, "no translation that was stored is paid again"


@pytest.mark.both_databases
def test_native_against_translated_is_a_question_of_the_pages(cast: Cast, provider: RunningProvider) -> None:
    """Twins are stored beside the natives; people rate both blind; rows by the attribute answer the question."""
    plan = twins(cast, natives(cast), generators=[plans.GeneratorChoice(provider="simulated", model="sim-steady")])
    assert plans.start_plan(plan=plan)
    written(plan)
    client = cast.client("boris")
    page = client.get(reverse("generation_plan", args=["kassa", plan.pk])).content.decode()
    assert "Store them beside their sources" in page and "Kõned «päris»" in page
    stored = client.post(
        reverse("generation_store", args=["kassa", plan.pk]), {"name": "Segu", "only": "whole", "with_natives": "on"}
    )
    dataset = Dataset.objects.get(name="Segu")
    assert stored.headers["Location"] == reverse("dataset", args=["kassa", dataset.pk])
    assert dataset.items.count() == 6 + 12
    assert Realisation.objects.filter(plan=plan, item__dataset=dataset).count() == 6
    about = {item.external_id: item.attributes["is_translation"] for item in dataset.items.filter(language="et")}
    assert sorted(about.values()) == [False] * 6 + [True] * 6

    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Pime", dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    items = list(Item.objects.of(dataset).order_by("ordinal"))
    scores = [None if item.language == "en" else 1.0 if item.attributes["is_translation"] else 3.0 for item in items]
    make.rated(campaign, {"fluency": {"mari": scores, "jaan": scores}})
    query = "rows=is_translation&columns=criterion&statistic=means.classical_mean&where=language%3Det"
    asked = f"{reverse('numbers_explore', args=['kassa', campaign.pk])}?{query}"
    assert "Mean of the panel" in answered(client, campaign, asked).content.decode()
    cells = client.get(asked.replace("/explore/", "/explore/cells.csv"))
    rows = list(csv.DictReader(io.StringIO(b"".join(cells.streaming_content).decode("utf-8-sig"))))  # type: ignore[attr-defined]
    means = {row["is_translation"]: (float(row["value"]), row["n_items"]) for row in rows}
    assert means == {"false": (3.0, "6"), "true": (1.0, "6")}


@pytest.mark.both_databases
def test_a_twin_joins_its_source_by_family_and_does_not_inherit_its_fault(
    cast: Cast, provider: RunningProvider
) -> None:
    source = natives(cast)
    made = {"family": 7, "family_is_whole": False, "repeat": 2, "plan": "Algne", "spec": "own 3"}
    Item.objects.filter(dataset=source).update(attributes={**made, "set_aside": "role_confusion"})
    plan = twins(cast, source, generators=[plans.GeneratorChoice(provider="simulated", model="sim-steady")])
    assert plans.start_plan(plan=plan)
    written(plan)
    for item in storing.store_dataset(plan=plan, name="Kaksikud").items.all():
        assert item.attributes.items() >= made.items()
        assert item.attributes["source_set_aside"] == "role_confusion" and "set_aside" not in item.attributes
        assert (item.attributes["translation_plan"], item.attributes["translation_repeat"]) == ("Twins", 1)


@pytest.mark.both_databases
def test_earlier_twins_are_no_natives_and_an_id_that_is_taken_is_refused(cast: Cast, provider: RunningProvider) -> None:
    model = [plans.GeneratorChoice(provider="simulated", model="sim-steady")]
    natives(cast)
    for source, name in (("Kõned «päris»", "Segu"), ("Segu", "Segu 2")):
        plan = twins(cast, Dataset.objects.get(name=source), name=name, generators=model)
        assert plans.start_plan(plan=plan)
        written(plan)
        client = cast.client("boris")
        store = reverse("generation_store", args=["kassa", plan.pk])
        client.post(store, {"name": name, "only": "whole", "with_natives": "on"})
        kept = [item.attributes["is_translation"] for item in Dataset.objects.get(name=name).items.all()]
        assert (kept.count(True), kept.count(False)) == (6, 12)
    first = Item.objects.filter(dataset=plan.source, language="et", attributes__is_translation=True).first()
    native = Item.objects.filter(dataset=plan.source, language="et", attributes__is_translation=False).first()
    assert first is not None and native is not None
    taken = first.external_id
    Item.objects.filter(pk=first.pk).update(external_id="muu")
    Item.objects.filter(pk=native.pk).update(external_id=taken)
    answer = client.post(store, {"name": "Segu 3", "only": "whole", "with_natives": "on"}, follow=True)
    assert "would have the id of a translation" in answer.content.decode()
    assert not Dataset.objects.filter(name="Segu 3").exists()


def test_a_plan_of_twins_is_made_on_the_pages_and_read_beside_its_source(cast: Cast, provider: RunningProvider) -> None:
    source = natives(cast)
    client = cast.client("boris")
    begin = client.get(f"{reverse('generation_new', args=['kassa'])}?spec=translations&source={source.pk}")
    assert begin.context["form"]["source"].value() == source.pk
    assert "Text to translate" in begin.content.decode()
    assert f"source={source.pk}" in client.get(reverse("dataset", args=["kassa", source.pk])).content.decode()
    steps: list[dict[str, Any]] = [
        {"spec": "translations"},
        {"source": source.pk, "source_language": "", "languages": ["et"], "further_languages": "ja"},
        {"further_generators": "simulated/sim-steady", "max_tokens": "3000"},
        {"name": "Kaksikud “1”", "families": "2", "repeats": "1", "budget": "", "seed": "7"},
    ]

    def sent(step: int, go: str, **changes: Any) -> Any:
        fields: dict[str, Any] = {"step": step, "visited": step, "go": go}
        for filled in steps[: step + 1]:
            fields |= filled
        return client.post(reverse("generation_new", args=["kassa"]), {**fields, **changes})

    second = sent(0, "next")
    assert "Dataset to translate" in second.content.decode()
    assert list(sent(1, "next", source="").context["form"].errors) == ["source"]
    assert list(sent(1, "next", languages=["et"], further_languages="en").context["form"].errors) == ["source_language"]
    assert sent(2, "next").context["forecast"].texts == 6 * 2, "all of them, while nothing else is said"
    assert sent(3, "forecast").context["forecast"].texts == 2 * 2
    assert sent(3, "make").status_code == 302
    plan = GenerationPlan.objects.get()
    assert (plan.source, plan.source_language, plan.families_planned) == (source, "en", 2)
    assert (
        client.get(f"{reverse('generation_new', args=['kassa'])}?like={plan.pk}").context["form"].initial["source"]
        == source.pk
    )
    client.post(reverse("generation_move", args=["kassa", plan.pk]), {"to": "start"})
    written(plan)
    text = plan.realisations.first()
    assert text is not None and text.family.source is not None
    for name in ("generation_reading", "generation_text"):
        parts = ["kassa", plan.pk] + ([text.pk] if name == "generation_text" else [])
        shown = client.get(reverse(name, args=parts)).content.decode()
        assert "Translated from" in shown and text.family.source.external_id in shown
    read = client.get(f"/api/v1/projects/kassa/generation/{plan.pk}/texts/").json()["results"][0]
    assert read["source_item"] == text.family.source.external_id


def test_api_and_command_make_twins(cast: Cast, provider: RunningProvider) -> None:
    source = natives(cast)
    client = cast.client("boris")
    about = {"name": "Twins", "spec": "translations", "languages": ["ar"], "families": 3, "source_language": "et"}
    about |= {"generators": [{"provider": "simulated", "model": "sim-steady"}]}
    made = _posted(client, {**about, "source_dataset": source.pk})
    assert (made.status_code, made.json()["source_dataset"], made.json()["families"]) == (201, source.pk, 3), (
        made.json()
    )
    hidden = make.dataset(cast.teine, 2, name="Hidden")
    for wrong in ({}, {"source_dataset": hidden.pk}, {"source_dataset": source.pk, "source_language": "ar"}):
        assert _posted(client, {**about, "name": "Other", **wrong}).status_code == 422
    assert _posted(client, {**about, "spec": "stories", "source_dataset": source.pk}).status_code == 422
    out = io.StringIO()
    call_command(
        "generate", "kassa", "--spec", "translations", "--source", source.name, "--source-language", "en",
        "--languages", "et", "--generators", "simulated/sim-steady", "--here", "--store", "Paarid", "--with-natives",
        stdout=out,
    )  # fmt: skip
    assert "6 of 6 texts written" in out.getvalue() and "Dataset “Paarid”: 18 items" in out.getvalue()


def _posted(client: Client, body: dict[str, Any]) -> Any:
    return client.post("/api/v1/projects/kassa/generation/", json.dumps(body), content_type="application/json")


def test_a_sample_depends_on_the_seed_and_what_cannot_be_translated_is_refused(
    cast: Cast, provider: RunningProvider
) -> None:
    source = natives(cast)
    drawn = [
        [
            family.source.external_id
            for family in twins(cast, source, name=name, families=2, seed=seed).families.all()
            if family.source
        ]
        for name, seed in (("a", 1), ("b", 1), ("c", 2), ("d", 4))
    ]
    assert drawn[0] == drawn[1] and len({tuple(keys) for keys in drawn}) > 1
    for wrong in ({"source": None}, {"source_language": ""}, {"languages": ["en"]}, {"spec": preset("stories")}):
        if wrong == {"source_language": ""}:
            wrong["languages"] = ["ja"]
        with pytest.raises(Refused):
            twins(cast, **{"source": source, "name": "e", **wrong})
    with pytest.raises(Refused):
        storing.store_dataset(plan=make_stories(cast), name="x", with_natives=True)


def make_stories(cast: Cast) -> GenerationPlan:
    plan = plans.create_plan(
        project=cast.kassa, name="Stories", spec=preset("stories"), languages=["et"], families=1,
        generators=[plans.GeneratorChoice(provider="simulated", model="sim-steady")],
    )  # fmt: skip
    assert plans.start_plan(plan=plan)
    written(plan)
    return plan
