"""Generators' names that annotators and judges would see: found at import and at allocation, masked or kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accounts.models import AuditEntry
from annotation import blinding, campaigns, panels
from annotation.models import Dataset, Duty, Item
from judging.requests import item_text
from tests import make
from tests.annotation import scene
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.cast import Cast

pytestmark = pytest.mark.django_db
IMPORTS = "/api/v1/projects/kassa/imports/"


def dialogue(
    number: int, generator: str, speaker: str = "agent", text: str = "Vaatan järele.", **said: Any
) -> dict[str, Any]:
    turns = [{"speaker": "customer", "text": "Tere!"}, {"speaker": speaker, "text": text}]
    return {"id": f"d{number}", "language": "et", "generator": generator, "turns": turns, **said}


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


TELLING = lines(
    dialogue(1, "gpt-4o", "GPT 4o", "GPT-4o: Vaatan järele. Mina, gpt_4o, aitan."),
    dialogue(2, "openai/gpt-4o", title="Pakk (Gpt-4O)"),
    dialogue(3, "claude", "Claude"),
    {**dialogue(4, "claude"), "context": "Vastas claude"},
    {**dialogue(5, "human"), "content_warning": "ＧＰＴ-4o vandus"},
)


def desk_and_prompt(cast: Cast, dataset: Dataset) -> str:
    """All that annotators see of a dataset by page and API, and all that judges do."""
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Round 1", dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    posted = {"panel": panel.pk, "overlap": 1}
    made = cast.client("aino").post(
        f"/api/v1/projects/kassa/campaigns/{campaign.pk}/duties/", posted, "application/json"
    )
    assert made.status_code == 201, made.content
    seen, annotator = "", cast.client("maarika")
    for _item in range(Item.objects.of(dataset).count()):
        address = scene.next_page(annotator, Duty.objects.get())
        seen += annotator.get(address).content.decode()
        annotator.post(f"{address}submit/", scene.FULL, headers=scene.JSON)
    return seen + "".join(str(item_text(item)) for item in Item.objects.of(dataset).select_related("dataset"))


def test_names_are_listed_and_nothing_is_stored_until_somebody_decides(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.jsonl", TELLING))
    address = f"/p/kassa/imports/{file_import.pk}/"

    shown = page(boris, address)
    assert "would see who wrote the text" in shown and "Mask the names" in shown
    seen = boris.get(f"{IMPORTS}{file_import.pk}/preview/").json()
    listed = {(each["column"], each["found"].split("“")[1].split("”")[0]) for each in seen["problems"]}
    assert {each["code"] for each in seen["problems"]} == {"generator_name"}
    assert {("speaker", "gpt-4o"), ("text", "gpt-4o"), ("title", "gpt-4o"), ("content warning", "gpt-4o")} <= listed
    assert {("speaker", "claude"), ("context", "claude")} <= listed
    assert not any(name == "human" for _place, name in listed)
    boris.post(f"{address}store/")
    assert boris.post(f"{IMPORTS}{file_import.pk}/store/").status_code == 422
    assert not Dataset.objects.exists()


def test_one_click_masks_them_on_the_desk_and_in_the_judges_prompt(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.jsonl", TELLING))
    address = f"/p/kassa/imports/{file_import.pk}/"
    boris.post(f"{address}map/", {"generator_names": "mask"})
    boris.post(f"{address}map/", {"kind": "dataset", "name": "Masked", "licence": ""})  # the page's table: it stays

    boris.post(f"{address}store/")

    dataset = Dataset.objects.get(name="Masked")
    seen = desk_and_prompt(cast, dataset).casefold()
    for name in ("gpt-4o", "gpt 4o", "gpt_4o", "ｇｐｔ", "claude"):
        assert name not in seen
    first, second = Item.objects.of(dataset)[:2]
    assert [turn["speaker"] for turn in first.turns] == ["customer", "assistant"]
    assert first.turns[1]["text"] == "Vaatan järele. Mina, […], aitan."
    assert (first.generator, second.title) == ("gpt-4o", "Pakk ([…])")
    assert "masked" in page(boris, address) and not AuditEntry.objects.filter(verb="keep generator names").exists()


def test_they_are_kept_knowingly_by_the_api_and_the_trail_says_so(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.jsonl", TELLING))
    wrong = boris.patch(f"{IMPORTS}{file_import.pk}/", {"target": {"generator_names": "no"}}, "application/json")
    assert wrong.status_code == 400
    kept = {"target": {"name": "Kept", "generator_names": "keep"}}
    assert boris.patch(f"{IMPORTS}{file_import.pk}/", kept, "application/json").status_code == 200

    assert boris.post(f"{IMPORTS}{file_import.pk}/store/").status_code == 200

    entry = AuditEntry.objects.get(verb="keep generator names")
    assert (entry.actor, entry.subject_pk) == (cast.boris, file_import.pk)
    dataset = Dataset.objects.get(name="Kept")
    assert Item.objects.of(dataset)[0].turns[1]["speaker"] == "gpt 4o"
    assert "gpt 4o" in desk_and_prompt(cast, dataset)


@pytest.mark.parametrize(
    ("choice", "status", "speaker"), [("", 1, None), ("mask", 0, "assistant"), ("keep", 0, "gpt 4o")]
)
def test_the_command_asks_for_a_decision(
    cast: Cast, tmp_path: Path, choice: str, status: int, speaker: str | None
) -> None:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(TELLING, encoding="utf-8")
    how = ["--generator-names", choice] if choice else []

    dry, told = run("import_dataset", path, *how, "--dry-run"), run("import_dataset", path, *how)

    assert dry.status == told.status == status
    stored = Item.objects.filter(external_id="d1").first()
    assert (stored.turns[1]["speaker"] if stored else None) == speaker
    if choice:
        assert any("Generators' names" in line for line in told.lines)
    else:
        assert "--generator-names mask" in told.problems[-1] and "“gpt-4o” (items: " in told.err.getvalue()


def test_a_dataset_that_came_another_way_is_refused_when_it_is_allocated(cast: Cast) -> None:
    telling = [make.item_row(1, generator="gpt-4o", turns=[{"speaker": "GPT-4o", "text": "Tere!"}]), make.item_row(2)]
    campaign = make.campaign(cast.kassa, items=telling)
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    lead, api = cast.client("aino"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/duties/"
    address = f"/p/kassa/campaigns/{campaign.pk}/duties/new/"
    share: dict[str, Any] = {"panel": panel.pk, "overlap": 1}
    keys = [criterion.pk for criterion in campaign.rubric_version.criteria.all()]
    form = {
        f"panel-{panel.pk}-{name}": value
        for name, value in {"takes_part": "on", "overlap": 1, "criteria": keys}.items()
    }

    refused = lead.post(api, share, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "generator_names")
    assert "gpt-4o" in refused.json()["detail"]
    assert "annotators may see these names" in page(lead, address)
    assert lead.post(address, form).status_code == 200 and not Duty.objects.exists()

    assert lead.post(address, {**form, "keep_names": "1"}).status_code == 302
    assert (
        lead.post(api, {**share, "name": "More", "keep_names": True, "again": True}, "application/json").status_code
        == 201
    )
    trail = AuditEntry.objects.filter(verb="allocate").values_list("fields", flat=True)
    assert ["generator_names" in fields for fields in trail] == [True, True]


@pytest.mark.parametrize(
    ("items", "found"),
    [
        # Roles that are the same whoever wrote the text say nothing, and neither do single letters.
        ([("human", "Human", ""), ("gpt-4o", "Human", "")], []),
        ([("A", "A", ""), ("B", "A", "")], []),
        ([("reference", "agent", "See reference 4."), ("atlas", "agent", "A reference.")], []),
        ([("model-1", "agent", "This is model 1 of the phone."), ("model-2", "agent", "")], []),
        # Where only their own texts have them, they do.
        ([("human", "Human", ""), ("gpt-4o", "agent", "")], [("human", "speaker")]),
        ([("A", "A", ""), ("B", "B", "")], [("A", "speaker"), ("B", "speaker")]),
        # A name that is a word counts in running text only where it tells.
        ([("atlas", "agent", "The Atlas mountains"), ("birch", "agent", "An atlas")], []),
        ([("atlas", "agent", "I am Atlas."), ("birch", "agent", "Hi")], [("atlas", "text")]),
        ([("atlas", "agent", "Hi"), ("birch", "agent", "**Atlas**: Hi")], [("atlas", "text")]),
        ([("atlas", "Atlas", "Hi")], [("atlas", "speaker")]),
        # Letters around it make it another word; other writing systems do not.
        ([("gpt-4", "agent", "xgpt-4 gpt-4o gpt-45"), ("o1", "agent", "")], []),
        ([("gpt-4", "agent", "これはGPT-4です")], [("gpt-4", "text")]),
        ([("claude-3-opus-20240229", "Claude 3 Opus", "")], [("claude-3-opus-20240229", "speaker")]),
        ([("meta/llama-3", "agent", "[Llama3] Tere")], [("meta/llama-3", "text")]),
        ([("gpt-4o", "agent", "g\u200bpt")], []),
        ([("gpt-4o", "agent", "gpt\u200b-\u200b4o")], [("gpt-4o", "text")]),
    ],
)  # fmt: skip
def test_what_counts_as_a_name(items: list[tuple[str, str, str]], found: list[tuple[str, str]]) -> None:
    rows = [
        make.item_row(number, generator=generator, title="", turns=[{"speaker": speaker, "text": text}])
        for number, (generator, speaker, text) in enumerate(items)
    ]
    names = [generator for generator, _speaker, _text in items]

    seen = blinding.find_generator_names(rows, generators=names)
    assert [(each.generator, each.place) for each in seen] == found
    left = blinding.find_generator_names(map(blinding.masker(seen), rows), generators=names)
    assert left == []


def test_many_generators_are_looked_for_each_in_its_own_items() -> None:
    turns = [{"speaker": "bird-7x", "text": "bird-8x"}]
    rows = [make.item_row(number, generator=f"bird-{number}x", turns=turns) for number in range(10)]

    seen = blinding.find_generator_names(rows, generators=[row.generator or "" for row in rows], most=5)

    assert [(each.generator, each.place) for each in seen] == [("bird-7x", "speaker"), ("bird-8x", "text")]
