"""A campaign goes on with a later version of its dataset, and loses nothing by it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.refusals import Refused
from annotation import allocation, campaigns, panels
from annotation.desk import leasing, service
from annotation.imports import storage
from annotation.models import Annotation, Assignment, Campaign, Dataset, Duty, Item, Selection
from tests import make
from tests.annotation import scene
from tests.cast import Cast


def added_to(duty: Duty, *numbers: int, language: str = "et") -> Dataset:
    rows = [make.item_row(number, language) for number in numbers]
    return storage.append_items(dataset=duty.campaign.dataset, items=rows)


def worked(cast: Cast, duty: Duty) -> None:
    """Maarika submits everything that her desk has for her."""
    annotator = scene.annotator(cast, cast.maarika)
    while taken := leasing.take(duty=duty, annotator=annotator):
        service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)


def drawn(duty: Duty) -> dict[int, list[str]]:
    """By wave, the items."""
    found = Selection.objects.filter(duty=duty).order_by("wave", "item__ordinal")
    waves: dict[int, list[str]] = {}
    for wave, name in found.values_list("wave", "item__external_id"):
        waves.setdefault(wave, []).append(name)
    return waves


def test_a_campaign_goes_on_with_more_items_from_its_page(cast: Cast) -> None:
    duty = scene.duty(cast, items=2, overlap=2)
    worked(cast, duty)
    before = list(Annotation.objects.values()), list(Assignment.objects.values()), list(Selection.objects.values())
    second = added_to(duty, 3, 4, 5)
    aino, there = cast.client("aino"), f"/p/kassa/campaigns/{duty.campaign_id}/"
    assert "newer version: Dialogues v2, with 3 more items" in text(aino, there)
    assert "keeps" not in (moved := posted(aino, f"{there}dataset/", dataset=second.pk))
    assert "The campaign continues with “Dialogues v2”" in moved
    assert "3 new items wait for the panels" in moved
    assert before == (
        list(Annotation.objects.values()),
        list(Assignment.objects.values()),
        list(Selection.objects.values()),
    )
    assert leasing.take(duty=duty, annotator=scene.annotator(cast, cast.maarika)) is None
    assert "6 assignments were created." in (handed := posted(aino, f"{there}hand-out/"))
    assert "wait for the panels" not in handed
    assert "newer version" not in handed
    assert drawn(duty) == {1: ["d1", "d2"], 2: ["d3", "d4", "d5"]}
    worked(cast, duty)
    assert set(Annotation.objects.values_list("item__external_id", flat=True)) == {"d1", "d2", "d3", "d4", "d5"}
    (progress,) = campaigns.progress(Campaign.objects.get())
    assert (progress.items, progress.slots, progress.submitted) == (5, 10, 5)


def text(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def posted(client: Client, address: str, **form: Any) -> str:
    return client.post(address, form, follow=True).content.decode()


def test_the_same_by_api(cast: Cast) -> None:
    duty = scene.duty(cast, items=1, overlap=1)
    other = make.dataset(cast.kassa, 3, name="Others")
    second = added_to(duty, 2)
    client, there = cast.client("boris"), f"/api/v1/projects/kassa/campaigns/{duty.campaign_id}/"
    refused = client.post(f"{there}dataset/", {"dataset": other.pk}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "no_extension")
    assert "“Others v1” does not contain all items of “Dialogues v1”" in refused.json()["fields"]["dataset"][0]
    moved = client.post(f"{there}dataset/", {"dataset": second.pk}, content_type="application/json")
    assert (moved.status_code, moved.json()["dataset"]) == (200, second.pk)
    assert [client.post(f"{there}hand-out/").json() for _twice in range(2)] == [{"assignments": 1}, {"assignments": 0}]


def test_there_is_no_way_back_and_none_out_of_a_closed_campaign(cast: Cast) -> None:
    duty = scene.duty(cast, items=1)
    first, second = duty.campaign.dataset, added_to(duty, 2)
    campaign = campaigns.extend_campaign(campaign=duty.campaign, dataset=second)
    for dataset, reason in ((second, "already"), (first, "does not contain all items")):
        with pytest.raises(Refused, match=reason):
            campaigns.extend_campaign(campaign=campaign, dataset=dataset)
    campaigns.move(campaign=campaign, to=Campaign.State.CLOSED)
    third = storage.append_items(dataset=second, items=[make.item_row(3)])
    with pytest.raises(Refused, match="closed"):
        campaigns.extend_campaign(campaign=campaign, dataset=third)
    with pytest.raises(Refused, match="closed"):
        allocation.hand_out(campaign=campaign)


def test_each_duty_gets_the_new_items_of_its_languages_only(cast: Cast) -> None:
    duty = scene.duty(cast, items=1, overlap=1)
    spanish = panels.create(project=cast.kassa, name="Spanish", language="es")
    second = storage.append_items(
        dataset=duty.campaign.dataset, items=[make.item_row(2, "es"), make.item_row(3, "es-MX")]
    )
    campaign = campaigns.extend_campaign(campaign=duty.campaign, dataset=second)
    mexican = allocation.allocate(campaign=campaign, panel=spanish, overlap=2, languages=["es-MX"])
    assert drawn(mexican) == {1: ["d3"]}
    more = [make.item_row(4), make.item_row(5, "es"), make.item_row(6, "es-MX")]
    campaign = campaigns.extend_campaign(campaign=campaign, dataset=storage.append_items(dataset=second, items=more))
    assert allocation.hand_out(campaign=campaign) == 3
    assert (drawn(duty), drawn(mexican)) == ({1: ["d1"], 2: ["d4"]}, {1: ["d3"], 2: ["d6"]})


def test_a_draw_may_choose_among_all_parts(cast: Cast) -> None:
    duty = scene.duty(cast, items=1)
    campaigns.extend_campaign(campaign=duty.campaign, dataset=added_to(duty, 2, 3))
    items = list(Item.objects.of(duty.campaign.dataset).filter(external_id__in=["d1", "d3"]))
    assert allocation.draw(duty=duty, items=items, probabilities=[1.0, 0.5], origin="active") == 1
    strangers = list(make.dataset(cast.kassa, 1, name="Others").items.all())
    with pytest.raises(ValueError, match="campaign's dataset"):
        allocation.draw(duty=duty, items=strangers, probabilities=[1.0], origin="active")


def test_an_import_that_a_campaign_goes_on_with_is_not_taken_back(cast: Cast) -> None:
    duty = scene.duty(cast, items=1)
    client = cast.client("boris")
    body = b'{"id": "q9", "language": "et", "question": "Kas?"}'
    address = '/api/v1/projects/kassa/imports/?name=d.jsonl&kind=dataset&target={"extends": %d}'
    opened = client.post(address % duty.campaign.dataset_id, body, content_type="application/octet-stream").json()
    there = f"/api/v1/projects/kassa/imports/{opened['id']}/"
    assert client.post(f"{there}store/").status_code == 200
    second = Dataset.objects.get(extends=duty.campaign.dataset_id)
    campaigns.extend_campaign(campaign=duty.campaign, dataset=second)
    refused = client.post(f"{there}undo/")
    assert (refused.status_code, Dataset.objects.count()) == (409, 2)
    assert "“Dialogues v2” is in use by 1 campaign" in refused.json()["detail"]
