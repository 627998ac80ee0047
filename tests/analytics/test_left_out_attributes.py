"""Attributes of items in public exports: all are listed, those about persons are marked, and any can be left out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import CommandError, call_command

from analytics.exporting import transfers
from analytics.models import Transfer
from analytics.ratings.item_attributes import offered_attributes
from annotation.models import Campaign, Dataset
from tests import make
from tests.cast import Cast

NAME = "rating_E\u0301ve “O’Neil”"
ATTRIBUTES = {"topic": "post", NAME: "3", "rating_سارة": "2", "author name": "Mari"}


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    return make.campaign(cast.kassa, items=[make.item_row(n, attributes=ATTRIBUTES) for n in range(1, 5)])


def body(answer: Any) -> bytes:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content)


def in_folder(raw: bytes) -> str:
    with ZipFile(io.BytesIO(raw)) as folder:
        names = folder.namelist()
        return "".join(folder.read(name).decode(errors="replace") for name in names) + " ".join(names)


def test_the_page_lists_them_and_marks_those_about_persons(cast: Cast, campaign: Campaign) -> None:
    page = cast.client("boris").get("/p/kassa/export/").content.decode()
    card = page[page.index('id="export-croissant"') :]
    for name in ATTRIBUTES:
        assert f'name="without_attributes" value="{name}"' in card
    marked = [
        part.split("</span>")[0]
        for part in card.split("<span><bdi>")[1:]
        if "Looks like a person" in part.split("</label>")[0]
    ]
    assert [name.removesuffix("</bdi>") for name in marked] == ["author name", NAME, "rating_سارة"]
    refused = cast.client("boris").post(
        "/p/kassa/export/file/", {"what": "items", "look": "on", "without_attributes": [NAME, "topic"]}, follow=True
    )
    text = refused.content.decode()
    assert text.count(f'value="{NAME}" checked') and text.count('value="topic" checked')
    assert 'value="rating_سارة" checked' not in text


@pytest.mark.parametrize("what", ["items", "croissant", "scores", "ratings", "hugging-face", "label-studio"])
def test_what_is_left_out_is_nowhere_in_the_file(cast: Cast, campaign: Campaign, what: str) -> None:
    make.rated(campaign, {"fluency": {"mari": [1, 2, 1, 0], "jaan": [1, 2, 0, 0]}})
    subject = {"dataset": campaign.dataset_id} if what in ("items", "croissant") else {"campaign": campaign.pk}
    form = {
        "what": what,
        **subject,
        "format": {"hugging-face": "zip", "croissant": "zip", "label-studio": "json"}.get(what, "jsonl"),
    }
    given = {"without_attributes": [NAME, "author name"]}
    raw = body(cast.client("boris").post("/p/kassa/export/file/", form | given))
    if what in ("croissant", "hugging-face"):
        with ZipFile(io.BytesIO(raw)) as folder:
            (path,) = (name for name in folder.namelist() if name.startswith("data/items"))
            raw = folder.read(path)
    text = raw.decode(errors="replace")
    assert "Mari" not in text and "Neil" not in text
    assert "post" in text and ("سارة" in text or "\\u0633" in text or path.endswith("parquet"))


def test_api_command_and_worker_leave_them_out(cast: Cast, campaign: Campaign, tmp_path: Path) -> None:
    boris = cast.client("boris")
    query = {"format": "jsonl", "without_attributes": [NAME, "author name"]}
    rows = [json.loads(line) for line in body(boris.get("/api/v1/projects/kassa/exports/items/", query)).splitlines()]
    assert [row["attributes"] for row in rows] == [{"topic": "post", "rating_سارة": "2"}] * 4
    path = tmp_path / "items.jsonl"
    call_command("export", "kassa", "items", "--without-attribute", NAME, "--without-attribute", "topic", out=path)
    assert "Neil" not in path.read_text() and "Mari" in path.read_text()
    boris.post("/p/kassa/export/file/", {"what": "items", "format": "jsonl", "later": "on", **query})
    transfers.carry_out_transfer(transfer_pk=Transfer.objects.get().pk)
    with Transfer.objects.get().content.open("rb") as written:
        assert "Neil" not in written.read().decode()


def test_unknown_keys_and_bundles_are_refused(cast: Cast, campaign: Campaign, tmp_path: Path) -> None:
    boris, address = cast.client("boris"), "/api/v1/projects/kassa/exports/"
    refused = boris.get(f"{address}items/", {"format": "jsonl", "without_attributes": ["topik"]})
    assert refused.status_code == 422 and "unknown_choice" in refused.content.decode()
    assert "topik" in refused.content.decode() and "author name" in refused.content.decode()
    refused = boris.get(f"{address}bundle/", {"without_attributes": ["topic"]})
    assert refused.status_code == 422 and "unknown_choice" in refused.content.decode()
    with pytest.raises(CommandError, match="topik"):
        call_command("export", "kassa", "items", "--without-attribute", "topik", out=tmp_path / "never.jsonl")


def test_attributes_of_a_dataset_are_offered_once_it_is_ready(cast: Cast, campaign: Campaign) -> None:
    make.dataset(cast.kassa, name="Later", items=[make.item_row(9, attributes={"Maria note": "2"})])
    first = Dataset.objects.filter(pk=campaign.dataset_id)
    first.update(state=Dataset.State.LOADING)
    assert [one.name for one in offered_attributes(cast.kassa)] == ["Maria note"]
    first.update(state=Dataset.State.READY)
    assert "topic" in [one.name for one in offered_attributes(cast.kassa)], "it began earlier and ended later"


def test_what_a_publication_needs_is_written_with_one_click(cast: Cast, campaign: Campaign) -> None:
    boris = cast.client("boris")
    shown = boris.get("/p/kassa/export/").content.decode()
    assert "For a publication" in shown and 'href="#export-hugging-face"' in shown
    croissant = shown[shown.index('id="export-croissant"') :]
    assert f"selected>{campaign.dataset}</option>" in croissant[: croissant.index("</form>")]
    boris.post("/p/kassa/export/publication/", {"campaign": campaign.pk, "without_attributes": [NAME]})
    asked = [(one.asked["what"], one.asked["options"]["without_attributes"]) for one in Transfer.objects.order_by("pk")]
    assert asked == [("hugging-face", [NAME]), ("report", [NAME])]
