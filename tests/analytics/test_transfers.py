"""Exports that a worker writes and bundles that it loads: asked for, watched, fetched, interrupted and swept."""

from __future__ import annotations

import time
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, TestCase
from django.utils import timezone

from accounts import jobs, tasks, tokens
from accounts.jobs import JobHeartbeat
from accounts.models import AuditEntry, Job, Membership, Project, Role, Scope
from accounts.refusals import Refused
from analytics.exporting import bundles, exports, transfers
from analytics.models import Transfer
from annotation.imports import uploads
from annotation.models import Campaign, Item, Upload
from tests import make
from tests.analytics import scene
from tests.analytics.test_exports import downloaded
from tests.cast import Cast, person

API = "/api/v1/projects/kassa/transfers/"


@pytest.fixture
def rated(cast: Cast) -> Campaign:
    return scene.rated_campaign(cast)


def asked(client: Client, **said: Any) -> Transfer:
    answer = client.post(API, {"what": "ratings", "format": "csv", **said}, content_type="application/json")
    assert answer.status_code == 202, answer.content
    assert (answer.json()["state"], answer.json()["size"]) == ("waiting", None)
    return Transfer.objects.get(key=answer.json()["key"])


def carried(transfer: Transfer) -> Transfer:
    """What a worker makes of it, to the end of its transaction."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        transfers.carry_out_transfer(transfer_pk=transfer.pk)
    transfer.refresh_from_db()
    return transfer


def fetched(client: Client, transfer: Transfer) -> bytes:
    answer = client.get(f"{API}{transfer.key}/content/")
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def test_what_a_worker_wrote_is_what_would_have_been_sent(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    done = carried(asked(browser))
    assert (done.state, done.done, done.total) == ("done", 36, 36)
    sent = fetched(browser, done)
    assert sent == downloaded(browser, "ratings", format="csv")
    assert (done.size, done.name) == (len(sent), "round-1-ratings.csv")
    told = browser.get(f"{API}{done.key}/").json()
    assert (told["state"], told["size"]) == ("done", len(sent))
    assert [each["key"] for each in browser.get(API).json()["results"]] == [str(done.key)]


def test_only_who_asked_for_a_file_reaches_it(cast: Cast, rated: Campaign) -> None:
    done = carried(asked(cast.client("boris")))
    for who in ("aino", "maarika", "zoltan"):
        for address in (f"{API}{done.key}/content/", f"/p/kassa/export/transfers/{done.key}/"):
            assert cast.client(who).get(address).status_code in (403, 404)
    Membership.objects.filter(project=cast.kassa, user=cast.boris).update(role=Role.ANNOTATOR)
    assert cast.client("boris").get(f"{API}{done.key}/content/").status_code == 403


def test_names_are_guarded_when_they_are_fetched_too(cast: Cast, rated: Campaign) -> None:
    done = carried(asked(cast.client("aino"), names=True))
    assert b"rater_name" in fetched(cast.client("aino"), done)
    _token, secret = tokens.issue(user=cast.aino, name="script", scope=Scope.READ)
    script = Client(headers={"authorization": f"Bearer {secret}"})
    assert script.get(f"{API}{done.key}/content/").status_code == 403
    Membership.objects.filter(project=cast.kassa, user=cast.aino).update(role=Role.RESEARCHER)
    assert cast.client("aino").get(f"{API}{done.key}/content/").status_code == 403


def test_a_token_that_only_reads_asks_no_worker(cast: Cast, rated: Campaign) -> None:
    _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
    script = Client(headers={"authorization": f"Bearer {secret}"})
    assert script.post(API, {"what": "ratings"}, content_type="application/json").status_code == 403


def test_asking_leaves_a_line_in_the_audit_trail(cast: Cast, rated: Campaign) -> None:
    asked(cast.client("boris"), rationales=False)
    assert AuditEntry.objects.get(verb="export ratings").fields == ["format=csv", "rationales"]


def test_what_cannot_be_written_says_why_and_leaves_no_file(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=[make.item_row(1, title="x" * 40_000)])
    failed = carried(asked(cast.client("boris"), what="items", format="xlsx", dataset=campaign.dataset.name))
    assert failed.state == "failed"
    assert "at most 32,767" in failed.sentence and not failed.content
    assert cast.client("boris").get(f"{API}{failed.key}/content/").status_code == 404


def test_a_transfer_is_carried_out_once(cast: Cast, rated: Campaign) -> None:
    done = carried(asked(cast.client("boris")))
    assert carried(done).job.tries == 1


def test_a_dead_workers_transfer_is_begun_again_and_given_up_in_the_end(cast: Cast, rated: Campaign) -> None:
    transfer = asked(cast.client("boris"))
    for tries in (1, 2, 3):
        assert jobs.take_job(transfer, Job.Kind.EXPORT).tries == tries
        assert cast.client("boris").get(f"{API}{transfer.key}/").json()["state"] == "working"
        assert jobs.sweep_jobs(now=timezone.now() + timedelta(minutes=3)) == ([transfer.job] if tries < 3 else [])
    transfer.refresh_from_db()
    assert (transfer.state, "interrupted 3 times" in transfer.sentence) == ("failed", True)


def test_a_living_worker_is_left_alone(cast: Cast, rated: Campaign) -> None:
    transfer = asked(cast.client("boris"))
    assert jobs.take_job(transfer, Job.Kind.EXPORT)
    assert jobs.sweep_jobs() == []


def test_a_file_that_has_had_its_time_is_swept(cast: Cast, rated: Campaign) -> None:
    done = carried(asked(cast.client("boris")))
    path = Path(done.content.path)
    assert done.expires_at > timezone.now() + timedelta(days=2)
    assert path.is_file()
    Transfer.objects.filter(pk=done.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    tasks.sweep_all()
    assert not Transfer.objects.exists() and not path.exists()


def test_a_file_can_be_removed_before(cast: Cast, rated: Campaign) -> None:
    done = carried(asked(cast.client("boris")))
    path = Path(done.content.path)
    assert cast.client("boris").delete(f"{API}{done.key}/").status_code == 204
    assert not path.exists()


def test_so_many_are_made_at_once_and_no_more(cast: Cast, rated: Campaign) -> None:
    for _number in range(transfers.MOST_AT_ONCE):
        asked(cast.client("boris"))
    answer = cast.client("boris").post(API, {"what": "ratings"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many")


# --- how large ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_size_is_told_before(cast: Cast, rated: Campaign, kind: str) -> None:
    browser = cast.client("boris")
    told = browser.get("/api/v1/projects/kassa/exports/ratings/size/", {"format": kind}).json()
    assert (told["rows"], told["large"]) == (36, False)
    assert told["size"] == len(downloaded(browser, "ratings", format=kind))


def test_a_document_is_one_row_and_a_bundle_as_many_as_it_carries(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    told = {what: browser.get(f"/api/v1/projects/kassa/exports/{what}/size/").json() for what in ("rubric", "bundle")}
    assert {what: (each["rows"], each["size"]) for what, each in told.items()} == {
        "rubric": (1, None),
        "bundle": (12 + 36, None),
    }


# --- the page -------------------------------------------------------------------------------------------------------
FORM = {"what": "ratings", "campaign": "Round 1", "format": "csv", "renumbered": ""}


def test_the_page_sends_what_is_small_and_has_a_worker_write_what_is_large(
    cast: Cast, rated: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = cast.client("boris")
    sent = b"".join(browser.post("/p/kassa/export/file/", FORM).streaming_content)
    assert sent == downloaded(browser, "ratings", format="csv")
    monkeypatch.setattr(exports, "AT_ONCE", 10)
    page = browser.post("/p/kassa/export/file/", FORM, follow=True).content.decode()
    assert "round-1-ratings.csv" in page and 'hx-trigger="every 2s"' in page
    done = carried(Transfer.objects.get())
    part = browser.get("/p/kassa/export/transfers/").content.decode()
    assert f"/p/kassa/export/transfers/{done.key}/" in part and "hx-trigger" not in part
    assert b"".join(browser.get(f"/p/kassa/export/transfers/{done.key}/").streaming_content) == sent
    browser.post(f"/p/kassa/export/transfers/{done.key}/remove/")
    assert not Transfer.objects.exists()


def test_the_page_says_how_large_it_would_be(cast: Cast, rated: Campaign) -> None:
    page = cast.client("boris").post("/p/kassa/export/file/", {**FORM, "look": "on"}, follow=True).content.decode()
    assert "round-1-ratings.csv: 36 rows, about" in page
    assert not Transfer.objects.exists()


# --- bundles come in ------------------------------------------------------------------------------------------------
@pytest.fixture
def empty(cast: Cast) -> Project:
    """A project without anything, which Aino leads."""
    made = Project.objects.create(slug="elsewhere", name="Elsewhere")
    Membership.objects.create(project=made, user=cast.aino, role=Role.LEAD)
    Membership.objects.create(project=made, user=cast.boris, role=Role.RESEARCHER)
    return made


@pytest.fixture
def bundle(cast: Cast, rated: Campaign) -> bytes:
    return b"".join(bundles.bundle_pieces(cast.kassa))


def test_a_bundle_comes_in_by_the_page(cast: Cast, empty: Project, bundle: bytes) -> None:
    browser = cast.client("aino")
    assert "data-uploads-to" in browser.get("/p/elsewhere/import-bundle/").content.decode()
    form = {"files": SimpleUploadedFile("study.zip", bundle)}
    page = browser.post("/p/elsewhere/import-bundle/", form, follow=True).content.decode()
    assert "The bundle is being loaded." in page and "study.zip" in page
    assert not Item.objects.filter(dataset__project=empty).exists()
    waiting = Transfer.objects.get()
    path = Path(waiting.content.path)
    done = carried(waiting)
    assert (done.state, done.done) == ("done", done.total)
    assert "12 items" in done.sentence
    assert b"".join(bundles.bundle_pieces(empty)) == bundle
    assert not path.exists(), "a bundle that is loaded is not kept"


def test_a_bundle_comes_in_by_the_api_from_an_upload(cast: Cast, empty: Project, bundle: bytes) -> None:
    upload = uploads.begin_upload(project=empty, name="study.zip", size=len(bundle), actor=cast.aino)
    uploads.append_part(upload=upload, offset=0, chunk=bundle)
    there, said = "/api/v1/projects/elsewhere/bundles/", {"upload": str(upload.key)}
    answer = cast.client("aino").post(there, said, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"]) == (202, "bundle")
    assert not Upload.objects.exists()
    assert carried(Transfer.objects.get()).state == "done"
    assert b"".join(bundles.bundle_pieces(empty)) == bundle


def test_only_a_lead_loads_a_bundle(cast: Cast, empty: Project, bundle: bytes) -> None:
    form = {"files": SimpleUploadedFile("study.zip", bundle)}
    assert cast.client("boris").post("/p/elsewhere/import-bundle/", form).status_code == 403
    assert not Transfer.objects.exists()


@pytest.mark.parametrize(
    ("slug", "content", "said"),
    [
        ("kassa", None, "loaded into an empty project"),
        ("elsewhere", b"PK nonsense", "no zip, or a damaged one"),
        ("elsewhere", b"", "The submitted file is empty."),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_kept(
    cast: Cast, empty: Project, bundle: bytes, slug: str, content: bytes | None, said: str
) -> None:
    form = {"files": SimpleUploadedFile("study.zip", bundle if content is None else content)}
    page = cast.client("aino").post(f"/p/{slug}/import-bundle/", form).content.decode()
    assert said in page
    assert not Transfer.objects.exists()


def test_a_bundle_that_is_damaged_inside_is_refused_by_the_worker_with_the_member(
    cast: Cast, empty: Project, bundle: bytes
) -> None:
    place = bundle.index(b"PK\x03\x04", 1000) - 20
    damaged = bundle[:place] + bytes([bundle[place] ^ 0xFF]) + bundle[place + 1 :]
    begun = transfers.receive_bundle(project=empty, name="study.zip", content=BytesIO(damaged), actor=cast.aino)
    failed = carried(begun)
    assert (failed.state, "Nothing was stored." in failed.sentence) == ("failed", True)
    assert not Item.objects.filter(dataset__project=empty).exists() and not failed.content


def test_what_was_filled_in_the_meantime_is_left_as_it_is(cast: Cast, empty: Project, bundle: bytes) -> None:
    begun = transfers.receive_bundle(project=empty, name="study.zip", content=BytesIO(bundle), actor=cast.aino)
    make.dataset(empty, 1)
    failed = carried(begun)
    assert (failed.state, "This project already has datasets." in failed.sentence) == ("failed", True)


def test_a_worker_that_lost_its_lease_loads_nothing(cast: Cast, empty: Project, bundle: bytes) -> None:
    begun = transfers.receive_bundle(project=empty, name="study.zip", content=BytesIO(bundle), actor=cast.aino)
    held = jobs.take_job(begun, Job.Kind.BUNDLE)
    Job.objects.update(lease=begun.key)  # another worker's
    with pytest.raises(Refused, match="Nothing was stored"), JobHeartbeat(held) as heartbeat:
        transfers._load(begun, heartbeat)
    assert not Item.objects.filter(dataset__project=empty).exists()


def test_an_export_of_what_is_gone_fails_with_a_reason(cast: Cast, rated: Campaign) -> None:
    export = exports.checked_export(project=cast.kassa, what="ratings", subject=rated)
    begun = transfers.prepare(export=export, actor=person("Kaido"))
    Transfer.objects.filter(pk=begun.pk).update(asked={**begun.asked, "subject": 0})
    assert carried(begun).sentence == "Name the campaign."


# --- through a real worker ------------------------------------------------------------------------------------------
def ended(transfer: Transfer) -> Transfer:
    """The transfer once a worker is done with it."""
    deadline = time.monotonic() + 180
    while transfer.is_moving:
        assert time.monotonic() < deadline, "no worker did it"
        time.sleep(0.02)
        transfer.refresh_from_db()
    return transfer


def test_a_worker_writes_a_bundle_and_loads_it_elsewhere(worker: Any, cast: Cast, rated: Campaign) -> None:
    empty = Project.objects.create(slug="elsewhere", name="Elsewhere")
    Membership.objects.create(project=empty, user=cast.aino, role=Role.LEAD)
    browser = cast.client("aino")
    written = ended(asked(browser, what="bundle", format="zip"))
    form = {"files": SimpleUploadedFile("kassa.zip", fetched(browser, written))}
    browser.post("/p/elsewhere/import-bundle/", form)
    loaded = ended(Transfer.objects.get(kind="bundle"))
    assert (written.state, loaded.state) == ("done", "done"), (written.sentence, loaded.sentence)
    assert Item.objects.filter(dataset__project=empty).count() == 12
