"""Resumable upload over HTTP, tus 1.0.0: chunks lost, repeated, out of order, from two tabs, across restarts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts import tasks as account_tasks
from accounts import tokens
from accounts.models import Scope
from annotation.imports import uploads
from annotation.models import ImportFile, Upload
from tests import disks
from tests.cast import Cast
from tests.workers import wait_for_workers

ADDRESS = "/api/v1/projects/kassa/uploads/"
TUS = {"Tus-Resumable": "1.0.0"}
CONTENT = os.urandom(1000)


def begun(client: Client, size: int = len(CONTENT), name: str = "dialogues.csv") -> str:
    """Begin an upload; its address."""
    metadata = f"filename {base64.b64encode(name.encode()).decode()},filetype dGV4dC9jc3Y="
    answer = client.post(ADDRESS, headers={**TUS, "Upload-Length": str(size), "Upload-Metadata": metadata})
    assert answer.status_code == 201, answer.content
    return str(answer["Location"]).removeprefix("http://testserver")


def patched(client: Client, address: str, offset: int, chunk: bytes, **headers: str) -> HttpResponse:
    said = {**TUS, "Upload-Offset": str(offset), **headers}
    return client.patch(address, chunk, content_type="application/offset+octet-stream", headers=said)  # type: ignore[return-value]


def offset(client: Client, address: str) -> int:
    answer = client.head(address, headers=TUS)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    return int(answer["Upload-Offset"])


def stored() -> bytes:
    return Path(Upload.objects.get().content.path).read_bytes()


def test_a_file_comes_in_by_chunks_and_is_what_it_was(cast: Cast) -> None:
    boris = cast.client("boris")
    address = begun(boris, name="../../études.csv")
    for place in range(0, 1000, 300):
        answer = patched(boris, address, place, CONTENT[place : place + 300])
        assert (answer.status_code, answer["Upload-Offset"]) == (204, str(min(place + 300, 1000)))
    assert stored() == CONTENT
    told = boris.get(address).json()
    assert (told["name"], told["received"]) == ("études.csv", 1000)
    assert told["sha256"] == hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("name", ["😀", "..", "!?"])
def test_a_name_of_which_no_letter_would_be_left_is_kept(cast: Cast, name: str) -> None:
    boris = cast.client("boris")
    assert boris.get(begun(boris, name=name)).json()["name"] == name
    boris.post("/api/v1/projects/kassa/imports/", {"files": SimpleUploadedFile(f"{name}.", b'{"id": "d0"}')})
    assert ImportFile.objects.get().size == 12


def test_a_chunk_that_is_repeated_or_comes_too_early_changes_nothing(cast: Cast) -> None:
    boris = cast.client("boris")
    address = begun(boris)
    assert patched(boris, address, 0, CONTENT[:400]).status_code == 204
    for place in (0, 399, 401, 700):
        refused = patched(boris, address, place, b"x" * 100)
        assert (refused.status_code, refused.json()["code"]) == (409, "wrong_offset")
    assert offset(boris, address) == 400
    assert patched(boris, address, 400, CONTENT[400:]).status_code == 204
    assert patched(boris, address, 1000, b"more").status_code == 413
    assert stored() == CONTENT


def test_what_a_dead_process_left_behind_the_offset_is_written_over(cast: Cast) -> None:
    boris = cast.client("boris")
    address = begun(boris)
    patched(boris, address, 0, CONTENT[:400])
    with Path(Upload.objects.get().content.path).open("ab") as file:
        file.write(b"never acknowledged")
    # Another process, another connection of the same person: the row says where to go on.
    again = cast.client("boris")
    assert patched(again, address, offset(again, address), CONTENT[400:]).status_code == 204
    assert stored() == CONTENT


def test_a_broken_chunk_is_known_by_its_checksum(cast: Cast) -> None:
    boris = cast.client("boris")
    address = begun(boris)
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    broken = patched(boris, address, 0, b"x" + CONTENT[1:], **{"Upload-Checksum": f"sha256 {digest}"})
    assert (broken.status_code, broken.json()["code"], offset(boris, address)) == (460, "checksum", 0)
    assert patched(boris, address, 0, CONTENT, **{"Upload-Checksum": f"md5 {digest}"}).status_code == 400
    assert patched(boris, address, 0, CONTENT, **{"Upload-Checksum": f"sha256 {digest}"}).status_code == 204


@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_send_the_same_chunk_store_it_once(cast: Cast) -> None:
    address = begun(cast.client("boris"))
    statuses: list[int] = []

    def send() -> None:
        statuses.append(patched(cast.client("boris"), address, 0, CONTENT).status_code)
        connection.close()

    tabs = [threading.Thread(target=send) for _tab in range(4)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert sorted(statuses) == [204, 409, 409, 409]
    assert stored() == CONTENT


def test_a_long_body_is_taken_in_pieces(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "CHUNK", 128)
    boris = cast.client("boris")
    address = begun(boris)
    assert patched(boris, address, 0, CONTENT)["Upload-Offset"] == "1000"
    assert stored() == CONTENT


def test_the_protocol_is_told_and_asked_for(cast: Cast) -> None:
    boris = cast.client("boris")
    offered = boris.options(ADDRESS)
    assert offered["Tus-Version"] == "1.0.0" and "creation" in offered["Tus-Extension"]
    unspoken = boris.post(ADDRESS, headers={"Upload-Length": "1"})
    assert (unspoken.status_code, unspoken["Tus-Version"]) == (412, "1.0.0")
    assert boris.post(ADDRESS, headers=TUS).status_code == 400
    address = begun(boris)
    wrong = boris.patch(address, CONTENT, content_type="text/plain", headers={**TUS, "Upload-Offset": "0"})
    assert wrong.status_code == 415
    override = {**TUS, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    sent = boris.post(address, CONTENT, content_type="application/offset+octet-stream", headers=override)
    assert (sent.status_code, stored()) == (204, CONTENT)


def test_what_is_too_large_or_finds_no_room_is_refused_at_once(cast: Cast, settings: Any) -> None:
    boris = cast.client("boris")
    settings.UPLOAD_LIMIT = 500
    refused = boris.post(ADDRESS, headers={**TUS, "Upload-Length": "501"})
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    settings.UPLOAD_LIMIT = 2**62
    refused = boris.post(ADDRESS, headers={**TUS, "Upload-Length": str(2**58)})
    assert (refused.status_code, refused.json()["code"]) == (507, "no_room")
    assert not Upload.objects.exists()


def test_a_disk_that_fills_up_is_said_and_the_upload_goes_on_later(cast: Cast) -> None:
    boris = cast.client("boris")
    address = begun(boris)
    path = Path(Upload.objects.get().content.path)
    path.unlink()
    path.symlink_to("/dev/full")
    refused = patched(boris, address, 0, CONTENT)
    assert (refused.status_code, refused.json()["code"]) == (507, "no_room")
    path.unlink()
    path.touch()
    assert patched(boris, address, offset(boris, address), CONTENT).status_code == 204


def test_an_upload_given_up_or_forgotten_leaves_nothing(cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    boris = cast.client("boris")
    address = begun(boris)
    path = Path(Upload.objects.get().content.path)
    with django_capture_on_commit_callbacks(execute=True):
        assert boris.delete(address, headers=TUS).status_code == 204
    assert (boris.head(address, headers=TUS).status_code, path.exists()) == (404, False)
    fresh, old = begun(boris), begun(boris)
    forgotten = Upload.objects.get(key=old.rstrip("/").rpartition("/")[2])
    Upload.objects.filter(pk=forgotten.pk).update(changed_at=timezone.now() - timedelta(days=1, minutes=1))
    with django_capture_on_commit_callbacks(execute=True):
        account_tasks.sweep_all()
    assert [boris.head(each, headers=TUS).status_code for each in (fresh, old)] == [200, 404]
    assert not Path(forgotten.content.path).exists()


def test_nobody_else_reaches_an_upload(cast: Cast) -> None:
    address = begun(cast.client("boris"))
    expected = {"aino": 404, "maarika": 403, "zoltan": 404}
    for who, status in expected.items():
        assert patched(cast.client(who), address, 0, CONTENT).status_code == status
        assert cast.client(who).delete(address, headers=TUS).status_code == status
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.boris)
    assert patched(strict, address, 0, CONTENT).status_code == 403


def test_a_token_uploads_if_it_may_write(cast: Cast) -> None:
    for scope, status in ((Scope.READ, 403), (Scope.WRITE, 201)):
        _token, secret = tokens.issue(user=cast.boris, name=str(scope), scope=scope)
        headers = {**TUS, "Upload-Length": "3", "Authorization": f"Bearer {secret}"}
        assert Client().post(ADDRESS, headers=headers).status_code == status


# --- a data folder that takes nothing ---------------------------------------------------------------------------------
@pytest.fixture
def on_disk(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """The data folder on a disk of its own."""
    with disks.own_disk(tmp_path) as disk:
        settings.DATA_DIR, settings.MEDIA_ROOT = disk / "panelbench", disk / "panelbench" / "uploads"
        settings.MEDIA_ROOT.mkdir(parents=True)
        yield disk


def refused_for_now(answer: HttpResponse, code: str) -> None:
    assert answer.status_code == 503, answer.content
    assert int(answer["Retry-After"]) > 0
    assert json.loads(answer.content)["code"] == code


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["read_only", "frozen", "vanished"])
def test_a_data_folder_that_takes_nothing_is_said_soon_and_the_upload_continues_after(
    cast: Cast, on_disk: Path, name: str
) -> None:
    """Each thread that such an upload came to was lost: it looked for a full disk among the causes, without end."""
    boris = cast.client("boris")
    boris.raise_request_exception = False
    address = begun(boris, name="تقييم «اثنان».csv")
    assert patched(boris, address, 0, CONTENT[:400]).status_code == 204
    code = {"read_only": "read_only", "frozen": "frozen", "vanished": "missing"}[name]
    place = on_disk / "panelbench" if name == "vanished" else on_disk
    with getattr(disks, name)(place):
        began = time.monotonic()
        for _attempt in range(2):
            refused_for_now(patched(boris, address, 400, CONTENT[400:]), f"data_folder_{code}")
        headers = {**TUS, "Upload-Length": "9", "Upload-Metadata": "filename YQ=="}
        refused_for_now(boris.post(ADDRESS, headers=headers), f"data_folder_{code}")
        health = boris.get("/healthz")
        assert (health.status_code, health.json()["disk"]) != (200, "ok")
        assert "data directory" in health.json()["disk"]
        assert time.monotonic() - began < 20
    answers: list[int] = []

    def is_taken() -> bool:
        """Whether the rest is answered otherwise than during the outage, whose end may be noticed a little later."""
        answers.append(patched(boris, address, 400, CONTENT[400:]).status_code)
        return answers[-1] != 503

    wait_for_workers(is_taken, seconds=20)
    assert answers[-1] == 204, answers
    assert stored() == CONTENT


@pytest.mark.both_databases
def test_an_upload_that_another_machine_began_says_so(cast: Cast, settings: Any, tmp_path: Path) -> None:
    """Two web machines that do not share a disk: one has the file's beginning, the other gets the next chunk."""
    boris = cast.client("boris")
    boris.raise_request_exception = False
    settings.MEDIA_ROOT = tmp_path / "one"
    address = begun(boris)
    patched(boris, address, 0, CONTENT[:400])
    settings.MEDIA_ROOT = tmp_path / "two"
    for _attempt in range(2):
        answer = patched(boris, address, 400, CONTENT[400:])
        assert (answer.status_code, answer.json()["code"]) == (421, "other_machine")  # type: ignore[attr-defined]
        assert "another web machine" in answer.json()["detail"]  # type: ignore[attr-defined]
    settings.MEDIA_ROOT = tmp_path / "one"
    assert patched(boris, address, 400, CONTENT[400:]).status_code == 204
    assert stored() == CONTENT


def test_a_file_that_cannot_be_opened_ends_the_request(cast: Cast) -> None:
    """The very error: the file's place is taken by a folder, which is no full disk."""
    boris = cast.client("boris")
    boris.raise_request_exception = False
    address = begun(boris)
    path = Path(Upload.objects.get().content.path)
    path.unlink()
    path.mkdir()
    refused_for_now(patched(boris, address, 0, CONTENT), "data_folder_broken")
