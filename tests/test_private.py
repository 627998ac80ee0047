"""What is nobody else's: files of an instance, answers to those signed in, cookies, links in mails."""

from __future__ import annotations

import base64
import json
import re
import resource
import signal
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core import mail
from django.test import Client

from accounts import tokens
from accounts.models import Heartbeat, Scope
from annotation.models import Dataset
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.test_cli import panelbench


def test_files_of_an_instance_are_for_its_user_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert panelbench("migrate", cwd=tmp_path, PANELBENCH_DATA_DIR=str(data)).returncode == 0
    assert (data / "panelbench.sqlite3").exists()
    for path in (data, *data.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.django_db
def test_health_fails_where_nothing_can_be_written(client: Client, settings: Any, tmp_path: Path) -> None:
    for kind in (Heartbeat.WORKER, Heartbeat.BEAT):
        Heartbeat.objects.pulse(kind, f"{kind}@here")
    assert client.get("/healthz").status_code == 200
    settings.DATA_DIR = tmp_path / "gone"
    reply = client.get("/healthz")
    assert (reply.status_code, reply.json()["status"]) == (503, "failing")
    assert "nothing can be written" in reply.json()["disk"]


@pytest.mark.django_db
def test_health_fails_on_a_full_disk(client: Client) -> None:
    client.get("/healthz")  # what is looked up once is looked up by then
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        reply = client.get("/healthz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (reply.status_code, reply.json()["disk"]) == (503, "the disk of the data directory is full")


@pytest.mark.django_db
def test_answers_to_those_signed_in_are_not_stored(cast: Cast) -> None:
    lead = cast.client("aino")
    for page in ("/", "/me/", "/p/kassa/people/", "/p/kassa/export/", "/p/kassa/datasets/", "/api/v1/projects/kassa/"):
        assert "no-store" in lead.get(page)["Cache-Control"], page
    _token, secret = tokens.issue(user=cast.aino, name="script", scope=Scope.READ)
    script = Client(headers={"authorization": f"Bearer {secret}"})
    assert "no-store" in script.get("/api/v1/projects/kassa/")["Cache-Control"]


@pytest.mark.django_db
def test_the_language_cookie_is_secure_where_the_site_is(client: Client, settings: Any) -> None:
    for secure in (True, False):
        settings.LANGUAGE_COOKIE_SECURE = secure
        cookie = client.post("/language/", {"language": "et"}).cookies[settings.LANGUAGE_COOKIE_NAME]
        assert bool(cookie["secure"]) is secure


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["localhost:8765", "bench.example.org", "bench.example.org:8443"])
def test_a_password_reset_leads_back_to_the_port_that_was_asked(
    cast: Cast,
    settings: Any,
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[object]],
    host: str,
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "bench.example.org"]
    app.conf.task_always_eager = True  # the worker's mail is written here
    try:
        with django_capture_on_commit_callbacks(execute=True):
            form = {"email": "aino@panelbench.test"}
            assert Client().post("/account/password/reset/", form, headers={"host": host}).status_code == 302
    finally:
        app.conf.task_always_eager = False
    assert set(re.findall(r"https?://([^/\s]+)/", str(mail.outbox[-1].body))) == {host}


@pytest.mark.django_db
@pytest.mark.parametrize("position", ["\0", "1\0", "abc", "1 OR 1=1", "9" * 40, "-1"])
def test_a_cursor_that_is_none_is_refused(cast: Cast, position: str) -> None:
    cursor = base64.b64encode(f"p={quote(position)}".encode()).decode()
    answer = cast.client("aino").get("/api/v1/projects/kassa/datasets/", {"cursor": cursor})
    assert (answer.status_code, set(answer.json()["fields"])) == (400, {"cursor"})


@pytest.mark.django_db
@pytest.mark.parametrize("depth", [80, 900, 200_000])
def test_json_that_nests_too_deep_is_refused(cast: Cast, depth: int) -> None:
    browser = cast.client("aino")
    for body in ("[" * depth + "]" * depth, '{"name":' * depth + "1" + "}" * depth):
        for address in ("/api/v1/projects/", "/api/v1/projects/kassa/imports/"):
            answer = browser.post(address, body, content_type="application/json")
            assert (answer.status_code, "inside one another" in answer.json()["detail"]) == (400, True), address


@pytest.mark.django_db
def test_json_of_the_usual_depth_is_read(cast: Cast) -> None:
    body: Any = {"campaign": 1}
    for _level in range(20):
        body = {"inner": body}
    answer = cast.client("aino").post("/api/v1/projects/", json.dumps(body), content_type="application/json")
    assert "inside one another" not in answer.json()["detail"]


@pytest.mark.django_db
def test_nothing_tells_whether_another_project_has_something(cast: Cast) -> None:
    item = make.item_row(0, "et", external_id="hidden")
    campaign = make.campaign(cast.kassa, items=[item], name="Hidden")
    dataset = Dataset.objects.get(pk=campaign.dataset_id)
    stranger = cast.client("zoltan")
    for path, hidden in (
        ("/api/v1/projects/teine/datasets/{}/", dataset.pk),
        ("/api/v1/projects/teine/campaigns/{}/", campaign.pk),
        ("/api/v1/projects/teine/exports/items/?dataset={}", dataset.pk),
        ("/api/v1/projects/teine/exports/items/?dataset={}", dataset.name),
        ("/api/v1/projects/teine/exports/ratings/?campaign={}", campaign.pk),
        ("/api/v1/projects/teine/exports/rubric/?rubric={}", campaign.rubric_version.rubric.key),
        ("/api/v1/projects/{}/", "kassa"),
        ("/api/v1/projects/{}/members/", "kassa"),
        ("/p/teine/datasets/{}/", dataset.pk),
        ("/p/{}/people/", "kassa"),
    ):
        nowhere = "nowhere" if isinstance(hidden, str) else 999_999
        there, not_there = (stranger.get(path.format(name)) for name in (hidden, nowhere))
        assert there.status_code == not_there.status_code == 404, path
        bodies = [
            re.sub(rf"(?<=[/“]){name}(?=[/”])|csrfmiddlewaretoken[^>]+", "", answer.content.decode())
            for answer, name in ((there, hidden), (not_there, nowhere))
        ]
        assert bodies[0] == bodies[1], path
