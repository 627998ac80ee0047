"""Downloads on real transactions: whatever becomes of one, the connection of its thread is as good as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import pytest
from django.db import connection
from django.http import HttpResponseBase
from django.test import Client

from accounts.models import AuditEntry
from analytics.exporting import shares
from analytics.views import exports
from annotation.models import Campaign, Item
from tests.analytics import scene
from tests.cast import Cast, make_cast

PAGES_AFTER = 2  # a test has one thread and one connection: what the first page does not meet, no later one does
FORMS = {
    "items": ("jsonl", "csv", "xlsx", "parquet"),
    "ratings": ("jsonl", "csv", "xlsx", "parquet"),
    "verdicts": ("jsonl", "csv", "xlsx", "parquet"),
    "dataset-verdicts": ("jsonl", "csv", "xlsx", "parquet"),
    "scores": ("jsonl", "csv", "xlsx", "parquet"),
    "rubric": ("yaml", "json"),
    "campaign": ("json",),
    "label-studio": ("json", "xml"),
    "hugging-face": ("zip",),
    "croissant": ("zip",),
    "bundle": ("zip",),
}
EXPORTS = [(what, kind) for what, kinds in FORMS.items() for kind in kinds]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people() -> Cast:
    return make_cast()


@pytest.fixture
def rated(people: Cast) -> Campaign:
    campaign = scene.rated_campaign(people)
    scene.with_verdicts(campaign)
    return campaign


def require_ordinary_pages(browser: Client) -> None:
    """Pages that write, on the connection that the download had."""
    assert not connection.in_atomic_block
    for _page in range(PAGES_AFTER):
        assert browser.post("/language/", {"language": "et", "next": "/"}).status_code == 302


def sent(answer: HttpResponseBase) -> Iterator[bytes]:
    assert answer.status_code == 200
    return iter(answer.streaming_content)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "address", ["/p/kassa/export/file/?what={}&format={}", "/api/v1/projects/kassa/exports/{}/?format={}"]
)
def test_pages_answer_after_an_export_read_whole_and_one_broken_off(
    people: Cast, rated: Campaign, address: str
) -> None:
    browser = people.client("aino")
    for what, kind in EXPORTS:
        whole = browser.get(address.format(what, kind))
        body = b"".join(sent(whole))
        assert whole["Content-Length"] == str(len(body)) != "0", (what, kind)
        broken_off = browser.get(address.format(what, kind))
        next(sent(broken_off))
        assert not connection.in_atomic_block, (what, kind)
        broken_off.close()
        require_ordinary_pages(browser)
    assert AuditEntry.objects.filter(verb__startswith="export").count() == 2 * len(EXPORTS)


@pytest.mark.parametrize("table", ["scores", "items"])
def test_pages_answer_after_a_shared_table_was_read_whole_and_broken_off(
    people: Cast, rated: Campaign, table: str
) -> None:
    _share, secret = shares.make(campaign=rated, label="Reviewer", actor=people.aino)
    address = f"/shared/{secret}/{table}.csv"
    assert b"".join(sent(Client().get(address))).count(b"\n") > 10
    broken_off = Client().get(address)
    next(sent(broken_off))
    require_ordinary_pages(people.client("aino"))
    broken_off.close()
    require_ordinary_pages(people.client("aino"))


def test_pages_answer_after_the_ratings_table_was_read_whole_and_broken_off(people: Cast, rated: Campaign) -> None:
    browser = people.client("aino")
    address = f"/api/v1/projects/kassa/campaigns/{rated.pk}/ratings.csv"
    assert b"".join(sent(browser.get(address))).count(b"\n") > 36
    broken_off = browser.get(address)
    next(sent(broken_off))
    require_ordinary_pages(browser)
    broken_off.close()
    require_ordinary_pages(browser)


def test_pages_answer_after_an_export_that_can_not_be_written(people: Cast, rated: Campaign) -> None:
    item = Item.objects.of(rated.dataset).order_by("ordinal")[0]
    Item.objects.filter(pk=item.pk).update(title="x" * 40_000)  # more than a cell of a workbook holds
    browser = people.client("aino")
    refused = browser.get("/api/v1/projects/kassa/exports/items/?format=xlsx")
    assert (refused.status_code, refused.json()["code"]) == (409, "unwritable")
    assert browser.get("/p/kassa/export/file/?what=items&format=xlsx").status_code == 302
    assert not AuditEntry.objects.filter(verb="export items").exists()
    require_ordinary_pages(browser)


def test_pages_answer_after_the_disk_was_full(people: Cast, rated: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: Any) -> IO[bytes]:
        return open("/dev/full", "w+b", buffering=0)  # noqa: PTH123 the code under test closes it

    monkeypatch.setattr(exports, "TemporaryFile", full)
    browser = people.client("aino")
    for address in ("exports/scores/?format=csv", f"campaigns/{rated.pk}/ratings.csv"):
        answer = browser.get(f"/api/v1/projects/kassa/{address}")
        assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
        require_ordinary_pages(browser)


def test_pages_answer_after_the_database_broke_off_an_export(people: Cast, rated: Campaign) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no server that could end a connection")
    browser = people.client("aino")
    browser.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotation_rating RENAME COLUMN score TO gone")
    try:
        for _turn in range(2):
            assert browser.get("/api/v1/projects/kassa/exports/scores/?format=csv").status_code == 500
            require_ordinary_pages(browser)
    finally:
        with connection.cursor() as cursor, suppress(Exception):
            cursor.execute("ALTER TABLE annotation_rating RENAME COLUMN gone TO score")
