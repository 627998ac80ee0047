"""The database, Redis or the data folder does not work: 503 with the reason, no thread lost, and all is well after.

The web server runs as in production, in a process of its own; PostgreSQL and Redis are cut off from it by a proxy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import OperationalError, connection

from accounts import outages, tokens
from accounts.data_folder import FolderState
from accounts.models import Scope, User
from bench.server import free_port
from tests import disks
from tests.annotation import scene
from tests.cast import PASSWORD, Cast
from tests.conftest import database_url
from tests.outage_proxy import Address, OutageProxy, at_once, proxied

WITHOUT_SERVERS = not os.environ.get("DATABASE_URL") or not os.environ.get("REDIS_URL")
SOON = 10.0  # seconds within which everything is answered while a server is away
THREADS = 8  # of the web server
TOKEN = "a" * 32


@dataclass(frozen=True, slots=True)
class Site:
    """A web server behind proxies, and what is asked of it."""

    url: str
    database: OutageProxy
    redis: OutageProxy
    session: str
    token: str
    duty: int
    item: str  # the key of an assignment

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        headers = {"Cookie": f"sessionid={self.session}; csrftoken={TOKEN}", "Accept-Language": "et"}
        headers |= options.pop("headers", {})  # type: ignore[operator]
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=60, **options)  # type: ignore[arg-type]

    def api(self, path: str = "/api/v1/projects/") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=60)

    def submit(self) -> httpx.Response:
        form = {"csrfmiddlewaretoken": TOKEN, "key": self.item, **scene.FULL}
        return self.ask("POST", f"/desk/at/{self.item}/submit/", data=form, headers={"Accept": "application/json"})

    def sign_in(self) -> httpx.Response:
        form = {"csrfmiddlewaretoken": TOKEN, "login": "aino@panelbench.test", "password": PASSWORD}
        return httpx.post(
            f"{self.url}/account/login/",
            data=form,
            headers={"Cookie": f"csrftoken={TOKEN}", "Accept-Language": "et"},
            timeout=60,
        )

    def is_well(self) -> bool:
        answers = (self.ask("GET", f"/desk/at/{self.item}/"), self.api())
        return [answer.status_code for answer in answers] == [200, 200]

    def is_submitted(self) -> bool:
        """Whether a submission is stored. Each process of the server finds by itself that an outage is over."""
        return self.submit().status_code == 200

    def is_signed_in(self) -> bool:
        return self.sign_in().status_code == 302


@pytest.fixture
def site(transactional_db: None, cast: Cast, tmp_path: Path) -> Iterator[Site]:
    if WITHOUT_SERVERS:
        pytest.skip("no servers that could be away")
    User.objects.filter(pk=cast.aino.pk).update(password=PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1000))
    duty = scene.duty(cast)
    taken = scene.taken(cast, duty)
    cookie = cast.client("maarika").cookies["sessionid"].value
    _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.WRITE)
    url = urlsplit(database_url())
    redis = urlsplit(os.environ["REDIS_URL"])
    with (
        proxied(_address(url.netloc, url.query)) as database,
        proxied((redis.hostname or "", redis.port or 0)) as broker,
    ):
        port = free_port()
        user = url.netloc.partition("@")[0] if "@" in url.netloc else "postgres"
        environment = {
            **os.environ,
            "DATABASE_URL": f"postgres://{user}@127.0.0.1:{database.port}{url.path}",
            "REDIS_URL": f"redis://127.0.0.1:{broker.port}{redis.path}",
            "PANELBENCH_DATA_DIR": str(tmp_path),
            "LOG_LEVEL": "ERROR",
        }
        command = [sys.executable, "-m", "panelbench.cli", "web", "--port", str(port)]
        started = subprocess.Popen(command, env=environment)
        made = Site(f"http://127.0.0.1:{port}", database, broker, cookie, secret, duty.pk, str(taken.key))
        try:
            _wait_until(lambda: _is_up(made), 60)
            yield made
        finally:
            started.terminate()
            started.wait()


def _address(place: str, query: str) -> Address:
    """Where the test's PostgreSQL listens: on a Unix socket, if its URL names a folder."""
    host = parse_qs(query).get("host", [place.rpartition("@")[2]])[0]
    if "/" in unquote(host):
        return f"{unquote(host)}/.s.PGSQL.5432"
    name, _, port = host.partition(":")
    return name, int(port or 5432)


def _is_up(site: Site) -> bool:
    try:
        return site.is_well()
    except httpx.TransportError:
        return False


def _wait_until(condition: object, seconds: float) -> float:
    """Seconds until ``condition`` is true."""
    began = time.monotonic()
    while not condition():  # type: ignore[operator]
        assert time.monotonic() - began < seconds, "waited in vain"
        time.sleep(0.1)
    return time.monotonic() - began


def refused_by(answer: httpx.Response, code: str) -> None:
    """An answer to a program: 503, when to come back, and our format of errors."""
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/json"), answer.text
    assert int(answer.headers["Retry-After"]) > 0
    body = answer.json()
    assert body.keys() == {"code", "detail", "fields"}
    assert body["code"] == code


def shown_by(answer: httpx.Response) -> None:
    """An answer to a person: a page in their language that says that nothing is lost."""
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    assert 'lang="et"' in answer.text
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "Content-Security-Policy" in answer.headers


def test_without_its_database_everything_answers_503_soon_and_all_is_well_after(site: Site) -> None:
    with site.database.away():
        for _round in range(2):
            began = time.monotonic()
            refused_by(site.api(), "database_unavailable")
            refused_by(site.submit(), "database_unavailable")
            shown_by(site.ask("GET", f"/desk/at/{site.item}/"))
            shown_by(site.ask("GET", "/p/kassa/numbers/"))
            shown_by(site.sign_in())
            assert time.monotonic() - began < SOON
        began = time.monotonic()
        answers = at_once(3 * THREADS, lambda _place: site.submit())
        assert time.monotonic() - began < SOON
        for answer in answers:
            refused_by(answer, "database_unavailable")
        health = site.ask("GET", "/healthz")
        assert (health.status_code, health.json()["database"]) == (503, "unreachable")
    for is_over in (site.is_well, site.is_signed_in, site.is_submitted):
        assert _wait_until(is_over, 30) < SOON


def test_a_database_that_hangs_keeps_no_thread(site: Site) -> None:
    with site.database.hanging():
        began = time.monotonic()
        answers = at_once(2 * THREADS, lambda _place: site.submit())
        assert time.monotonic() - began < 3 * SOON
        for answer in answers:
            refused_by(answer, "database_unavailable")
        began = time.monotonic()
        shown_by(site.ask("GET", f"/desk/at/{site.item}/"))
        assert time.monotonic() - began < SOON
    for is_over in (site.is_well, site.is_submitted):
        assert _wait_until(is_over, 30) < SOON


@pytest.mark.parametrize("how", ["away", "hanging"])
def test_without_redis_what_needs_it_answers_503_soon_and_work_goes_on(site: Site, how: str) -> None:
    with getattr(site.redis, how)():
        began = time.monotonic()
        refused_by(site.api(), "service_unavailable")
        shown_by(site.sign_in())
        assert site.ask("GET", f"/desk/at/{site.item}/").status_code == 200
        assert site.submit().status_code == 200
        for answer in at_once(2 * THREADS, lambda _place: site.api()):
            refused_by(answer, "service_unavailable")
        assert time.monotonic() - began < 3 * SOON
        assert site.ask("GET", "/healthz").json()["broker"] == "unreachable"
    assert _wait_until(lambda: site.api().status_code == 200, 30) < SOON
    assert _wait_until(site.is_signed_in, 30) < SOON


def test_a_cause_that_is_its_own_cause_ends_the_search() -> None:
    """`raise X from X`, which an upload did that could not be written: the search for a full disk never ended."""
    wrong = OSError(errno.EACCES, "Permission denied")
    wrong.__cause__ = wrong
    assert outages.outage_of(wrong) is None
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__context__ = second, first
    assert outages.outage_of(first) is None


@pytest.mark.django_db
def test_an_error_of_the_program_is_no_outage() -> None:
    with pytest.raises(Exception) as wrong, connection.cursor() as cursor:  # noqa: PT011
        cursor.execute("SELECT 1 / 0")
    assert outages.outage_of(wrong.value) is None
    assert outages.outage_of(OperationalError("no such table: annotation_item")) is None
    assert outages.outage_of(FileNotFoundError(errno.ENOENT, "No such file", "/nowhere/at/all")) is None


# --- an embedded instance ---------------------------------------------------------------------------------------------
@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The web server of an instance that has all in its data folder: its address, and the folder."""
    folder, port = tmp_path / "data", free_port()
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environment = {**kept, "PANELBENCH_DATA_DIR": str(folder), "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "panelbench.cli"]
    subprocess.run([*command, "migrate", "-v", "0"], env=environment, check=True)
    started = subprocess.Popen([*command, "web", "--port", str(port)], env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until(lambda: _status(f"{address}/account/login/") == 200, 60)
        yield address, folder
    finally:
        started.terminate()
        started.wait()


def _status(url: str) -> int:
    try:
        return httpx.get(url, timeout=30).status_code
    except httpx.TransportError:
        return 0


def test_without_its_data_folder_an_instance_stores_nothing_and_works_again_with_it(
    embedded: tuple[str, Path],
) -> None:
    """SQLite writes on to a file that was moved away, and begins an empty one in its place."""
    address, folder = embedded
    script = {"Accept": "application/json"}
    with disks.vanished(folder):
        assert at_once(4, lambda _place: _status(f"{address}/account/login/")) == [503] * 4
        refused_by(httpx.get(f"{address}/api/v1/projects/", timeout=30), "data_folder_missing")
        refused_by(httpx.post(f"{address}/account/login/", headers=script, timeout=30), "data_folder_missing")
        health = httpx.get(f"{address}/healthz", timeout=30)
        assert (health.status_code, "does not exist" in health.json()["disk"]) == (503, True)
        folder.mkdir()
        assert _status(f"{address}/account/login/") == 503
        assert list(folder.glob("panelbench.sqlite3*")) == []
    assert _status(f"{address}/account/login/") == 200


def test_a_database_file_that_cannot_be_written_is_an_outage(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as writing:
        writing.execute("CREATE TABLE one (a)")
        writing.commit()
        writing.execute("BEGIN IMMEDIATE")
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as second:
            assert _outage(second, "INSERT INTO one VALUES (1)") is outages.BUSY
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reading:
        assert _outage(reading, "INSERT INTO one VALUES (1)") is outages.FOLDER[FolderState.READ_ONLY]
        assert _outage(reading, "SELECT b FROM one") is None


def _outage(database: sqlite3.Connection, statement: str) -> outages.Outage | None:
    with pytest.raises(sqlite3.Error) as wrong:
        database.execute(statement)
    return outages.outage_of(wrong.value)
