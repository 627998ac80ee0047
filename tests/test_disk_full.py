"""While the disk is full nobody gets a 500 page: a sentence in their language says what became of what they entered."""

from __future__ import annotations

import errno

import pytest
from django.db import connection
from django.test import Client

from accounts import outages
from accounts.models import User
from tests.annotation import scene
from tests.cast import Cast

FULL = """
CREATE FUNCTION full_disk() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON annotation_draft EXECUTE FUNCTION full_disk();
CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON annotation_assignment EXECUTE FUNCTION full_disk();
"""
ROOM = "DROP FUNCTION full_disk() CASCADE"


@pytest.fixture
def client(cast: Cast) -> Client:
    """Maarika's browser, reading Arabic, on a server whose disk is full."""
    if connection.vendor != "postgresql":
        pytest.skip("the full disk of this test is one of PostgreSQL")
    User.objects.filter(pk=cast.maarika.pk).update(ui_language="ar")
    browser = cast.client("maarika")
    browser.raise_request_exception = False
    return browser


def fill() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FULL)


def test_a_page_says_it_in_the_annotators_language(cast: Cast, client: Client) -> None:
    duty = scene.duty(cast)
    fill()
    answer = client.post(f"/desk/{duty.pk}/")
    page = answer.content.decode()
    assert answer.status_code == 507
    assert 'lang="ar" dir="rtl"' in page
    assert "\u0627\u0644\u0642\u0631\u0635" in page
    assert answer["Retry-After"]


def test_a_draft_and_a_submission_by_script_and_by_api_get_our_error_shape(cast: Cast, client: Client) -> None:
    taken = scene.taken(cast, scene.duty(cast))
    fill()
    form = {"key": str(taken.key), **scene.FULL}
    for address in (f"/desk/at/{taken.key}/draft/", f"/desk/at/{taken.key}/submit/"):
        answer = client.post(address, form, headers=scene.JSON)
        assert answer.status_code == 507
        assert answer.json()["code"] == "disk_full"
    body = {"answers": [{"criterion": name, "score": 1} for name in ("fluency", "coherence")], "seconds": 3}
    answer = client.post(f"/api/v1/projects/kassa/desk/at/{taken.key}/", body, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")


def test_what_says_that_a_disk_is_full() -> None:
    wrapped = RuntimeError()
    wrapped.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert outages.outage_of(wrapped) is outages.DISK_FULL
    assert outages.outage_of(OSError(errno.EACCES, "Permission denied")) is None
    assert outages.outage_of(None) is None
