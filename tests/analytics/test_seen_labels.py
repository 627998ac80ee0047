"""Who saw human labels of locked items is recorded, on whatever way they are seen, and said where looks are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client, override_settings
from django.utils import timezone

from accounts.models import AuditEntry
from analytics.exporting import shares
from annotation.models import Campaign, Import, Item
from judging.models import Alignment
from judging.versions import alignment
from panelbench import environment
from tests import make
from tests.analytics.scene import answered
from tests.analytics.test_alignment import ROOT, flawed, words_of
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

PAGES = "/p/kassa/numbers/{campaign}/"
API = "/api/v1/projects/kassa/campaigns/{campaign}/"
SAW, DOWNLOADED, READ = (
    "saw labels of locked items of an alignment",
    "downloaded the scores of locked items of an alignment",
    "read a file of an import",
)
WAYS = {
    "items": (f"{PAGES}items/", SAW),
    "items of a criterion": (f"{PAGES}items/?criterion=fluency&sort=id", SAW),
    "table of items": (f"{PAGES}items.csv", DOWNLOADED),
    "item": (f"{PAGES}items/{{item}}/", SAW),
    "queue": (f"{PAGES}adjudication/", SAW),
    "item of the queue": (f"{PAGES}adjudication/{{item}}/", SAW),
    "meeting": (f"{PAGES}meeting/", SAW),
    "API: items": (f"{API}items/", SAW),
    "API: item": (f"{API}items/{{item}}/", SAW),
    "API: queue": (f"{API}adjudication/", SAW),
    "API: item of the queue": (f"{API}items/{{item}}/adjudications/", SAW),
    "file of an import": ("/p/kassa/imports/{file_import}/files/{file}/", READ),
    "API: file of an import": ("/api/v1/projects/kassa/imports/{file_import}/files/{file}/", READ),
}


def silent_provider() -> Mapping[str, Any]:
    """The settings with a provider of which nothing is asked."""
    entry = {"name": "simulated", "simulated": True, "base_url": "http://127.0.0.1:1/v1"}
    return {"PROVIDERS": environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})}


@pytest.fixture
def aligned(module_scene: tuple[Cast, Alignment]) -> Iterator[Alignment]:
    with override_settings(**silent_provider()):
        yield module_scene[1]


def make_scene(cast: Cast) -> Alignment:
    """Two raters differ on every item of a campaign, and an alignment has locked some of the items."""
    version = make.rubric(cast.kassa, make.criterion("fluency"))
    rows = [make.item_row(number, scenario=f"“s” {number} لغة", generator=f"g {number}") for number in range(24)]
    campaign = make.campaigns.open_campaign(
        project=cast.kassa, name="Round “1” جولة", dataset=make.dataset(cast.kassa, rows), rubric_version=version
    )
    first = [float(number % 3) for number in range(24)]
    make.rated(campaign, {"fluency": {"Aiño “a”": first, "b b": [score + 1 for score in first]}})
    brought = Import.objects.get(kind=Import.Kind.RATINGS)
    brought.files.create(name="ratings.csv", content=ContentFile(b"item,score\n", name="ratings.csv"), size=11)
    plan = {"name": "Closer", "looks": 2, "seed": 3, "share": 0.5, "actor": cast.aino}
    with override_settings(**silent_provider()):
        return alignment.create_alignment(campaign=campaign, base=flawed(cast), **plan)


def side(current: Alignment, which: str) -> Item:
    """An item of a side of the alignment."""
    return getattr(current, which).selected.order_by("pk").first().item


def address(way: str, current: Alignment, item: Item) -> str:
    brought = Import.objects.get(kind=Import.Kind.RATINGS)
    names = {"campaign": current.campaign_id, "item": item.pk}
    return WAYS[way][0].format(**names, file_import=brought.pk, file=brought.files.get().pk)


def seen(client: Client, shown: str) -> None:
    """The page or file is there, and is read to its end."""
    answer = client.get(shown)
    assert answer.status_code == 200, shown
    assert answer.getvalue()


@pytest.mark.parametrize("way", WAYS)
def test_whoever_is_shown_labels_of_locked_items_is_listed_once_a_day(cast: Cast, aligned: Alignment, way: str) -> None:
    aino, boris = cast.client("aino"), cast.client("boris")
    page, line = f"{ROOT}{aligned.pk}/", f"Boris · {WAYS[way][1]}"
    assert line not in words_of(aino, page)
    shown = address(way, aligned, side(aligned, "test"))
    for _again in range(3):
        seen(boris, shown)
    assert words_of(aino, page).count(line) == 1
    assert "· saw" not in words_of(aino, page).replace(line, "")
    entry = AuditEntry.objects.get(actor=cast.boris)
    AuditEntry.objects.filter(pk=entry.pk).update(at=timezone.now() - timedelta(days=1))
    for reader in (aino, boris, boris):
        seen(reader, shown)
    said = words_of(aino, page)
    assert (said.count(line), said.count(line.replace("Boris", "Aino"))) == (2, 1)
    assert line.partition(" · ")[2] in words_of(aino, "/p/kassa/audit/")


def test_a_reader_of_a_share_link_is_listed_without_a_name(cast: Cast, aligned: Alignment) -> None:
    _share, secret = shares.make(campaign=aligned.campaign, label="Reviewer “2”", actor=cast.boris)
    page, line = f"{ROOT}{aligned.pk}/", "Server · gave the scores of locked items to somebody with a share link"
    for shown in ("", "rubric/", "items.csv"):
        assert Client().get(f"/shared/{secret}/{shown}").getvalue()
    assert line not in words_of(cast.client("aino"), page)
    for reader in (Client(), Client(), cast.client("boris")):
        seen(reader, f"/shared/{secret}/scores.csv")
    assert words_of(cast.client("aino"), page).count(line) == 1
    assert line.partition(" · ")[2] in words_of(cast.client("aino"), "/p/kassa/audit/")


@pytest.mark.parametrize(
    "way", ["agreement/items/?", "explore/?{of}", "explore/cells.csv?{of}", "explore/cells.json?{of}", "API"]
)
def test_soft_labels_of_items_on_which_raters_differ_are_listed(cast: Cast, aligned: Alignment, way: str) -> None:
    """A section of Agreement has the distribution of scores of single items; so has any answer to its question."""
    campaign, of = aligned.campaign, "statistic=label_spread&statistic=label_share"
    boris, page, line = cast.client("boris"), f"{ROOT}{aligned.pk}/", f"Boris · {SAW}"
    place = f"{API}estimates/?{of}" if way == "API" else f"{PAGES}{way}".replace("{of}", of)
    section = f"{PAGES}explore/?{of}".format(campaign=campaign.pk) if "explore" in way or way == "API" else place
    answered(boris, campaign, section.format(campaign=campaign.pk))
    AuditEntry.objects.filter(actor=cast.boris).delete()
    seen(boris, place.format(campaign=campaign.pk))
    assert words_of(cast.client("aino"), page).count(line) == 1


@pytest.mark.parametrize("way", ["item", "item of the queue", "API: item", "API: item of the queue"])
def test_items_of_the_tuning_side_are_no_entry(cast: Cast, aligned: Alignment, way: str) -> None:
    boris = cast.client("boris")
    seen(boris, address(way, aligned, side(aligned, "tuning")))
    assert not AuditEntry.objects.filter(actor=cast.boris).exists()


def test_a_copy_of_a_locked_item_in_another_campaign_counts_for_its_alignment(cast: Cast, aligned: Alignment) -> None:
    first = aligned.campaign
    rows = [make.item_row(number, scenario=f"“s” {number} لغة", generator=f"g {number}") for number in range(24)]
    other: Campaign = make.campaigns.open_campaign(
        project=cast.kassa,
        name="Round 2",
        dataset=make.dataset(cast.kassa, rows, name="Copy"),
        rubric_version=first.rubric_version,
    )
    make.rated(other, {"fluency": {"c": [1.0] * 24}})
    copy = other.dataset.items.get(digest=side(aligned, "test").digest)
    boris = cast.client("boris")
    seen(boris, f"{PAGES}items/{{item}}/".format(campaign=other.pk, item=copy.pk))
    assert words_of(cast.client("aino"), f"{ROOT}{aligned.pk}/").count(f"Boris · {SAW}") == 1


def test_a_list_is_an_entry_only_if_a_locked_item_is_on_it(cast: Cast, aligned: Alignment) -> None:
    boris = cast.client("boris")
    for which, entries in (("tuning", 0), ("test", 1)):
        listed = f"{PAGES}items/?generator={{generator}}".format(
            campaign=aligned.campaign_id, generator=side(aligned, which).generator
        )
        seen(boris, listed)
        assert AuditEntry.objects.filter(actor=cast.boris).count() == entries


def test_once_no_look_is_left_nothing_is_recorded(cast: Cast, aligned: Alignment) -> None:
    alignment.close_alignment(alignment=aligned, actor=cast.aino)
    boris = cast.client("boris")
    seen(boris, address("item", aligned, side(aligned, "test")))
    assert not AuditEntry.objects.filter(actor=cast.boris).exists()


def test_a_decision_on_a_locked_item_by_api_shows_its_labels(cast: Cast, aligned: Alignment) -> None:
    item, boris = side(aligned, "test"), cast.client("boris")
    at = f"{API}items/{{item}}/adjudications/".format(campaign=aligned.campaign_id, item=item.pk)
    digest = boris.get(at).json()[0]["seen"]
    AuditEntry.objects.filter(actor=cast.boris).update(actor=cast.aino)
    decision = {"criterion": "fluency", "score": 1, "cause": "slip", "rationale": "Checked.", "seen": digest}
    answer = boris.post(at, {"decisions": [decision]}, content_type="application/json")
    assert answer.status_code == 201, answer.json()
    assert AuditEntry.objects.filter(actor=cast.boris, verb="read locked labels").count() == 1
