"""The people of the siege: annotators, a lead who downloads, visitors who look at pages, attackers who send slowly.

Every thread has an address of its own on loopback, a session of its own, and a list of what it was answered.

Annotators live in client processes (``python -m bench.siege_clients FILE``), several signed-in people in each. The file
is to them what local storage is to a browser: before a submission is sent, its key and its scores are in it, and a
process that is started again after a SIGKILL goes on from it. The siege counts from these files.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

PASSWORD = "a siege of many kills"
ANSWER_LIMIT = 45.0  # seconds after which a request counts as stuck
RETRY = 0.7  # seconds before the same submission is sent again
GIVE_UP_AFTER = 20.0  # seconds after the end, for submissions that are not acknowledged
MARKED = {"evidence-grammar": json.dumps({"turn": 0, "start": 0, "end": 5, "quote": "Tere!"})}
TOKEN = "a" * 32


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request: when it was sent and answered (seconds of the monotonic clock); status 0 is no answer at all."""

    what: str
    sent: float
    answered: float
    status: int
    note: str = ""

    @property
    def plain(self) -> str:
        """What was asked for, without the key of one item."""
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "KEY", self.what)

    @property
    def failed(self) -> bool:
        return self.status == 0 or self.status >= 500


@dataclass(slots=True)
class Browser:
    """One signed-in person's browser: one kept connection, from an address of its own."""

    port: int
    address: str
    session: str = ""
    requests: list[SentRequest] = field(default_factory=list)
    locked: int = 0  # answers that showed a lock of the database
    _connection: http.client.HTTPConnection | None = None

    def sign_in(self, email: str) -> None:
        """Sign in with the password, as a person does."""
        status, headers, _body = self.send("POST", "/account/login/", {"login": email, "password": PASSWORD})
        cookies = headers.get_all("Set-Cookie") or [] if headers else []
        found = [cookie.partition(";")[0] for cookie in cookies if cookie.startswith("sessionid=")]
        if status != 302 or not found:
            raise RuntimeError(f"{email} could not sign in: {status}")
        self.session = found[0].removeprefix("sessionid=")

    def send(
        self, method: str, path: str, form: dict[str, Any] | None = None, *, accept: str = "text/html"
    ) -> tuple[int, Any, bytes]:
        """One request and its whole answer; (0, None, reason) where there was none. Noted either way."""
        sent, note = time.monotonic(), ""
        headers = {"Accept": accept, "Accept-Language": "en", "Cookie": f"sessionid={self.session}; csrftoken={TOKEN}"}
        body = None
        if form is not None:
            body = urlencode({"csrfmiddlewaretoken": TOKEN, **form})
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            try:
                answer, content = self._exchange(method, path, body, headers)
            except (ConnectionError, http.client.BadStatusLine):
                if self._connection is None:  # it was a new one
                    raise
                self.hang_up()  # kept too long, or its server died since: every browser then tries a new one
                answer, content = self._exchange(method, path, body, headers)
            status, found = answer.status, answer.headers
            self.locked += b"is locked" in content
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            status, found, content, note = 0, None, repr(error).encode(), type(error).__name__
        what = f"{method} {path}"
        self.requests.append(SentRequest(what, sent, time.monotonic(), status, note))
        return status, found, content

    def _exchange(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """A request on the kept connection, which is dropped where it is new and fails."""
        kept = self._connection
        connection = kept or http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=ANSWER_LIMIT, source_address=(self.address, 0)
        )
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            if kept is None:
                connection.close()
            raise
        self._connection = connection
        return answer, content

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class DeviceStorage:
    """A file of JSON lines that outlives the process that writes it: the system has each line once `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(self._file, b"\n")  # after a line that a SIGKILL cut off

    def write(self, **entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    @staticmethod
    def entries(path: Path) -> Iterator[dict[str, Any]]:
        for line in path.read_bytes().split(b"\n"):
            with contextlib.suppress(ValueError):
                yield json.loads(line)


@dataclass(slots=True)
class AnnotatorRecord:
    """What a client's file holds of one annotator."""

    requests: list[SentRequest] = field(default_factory=list)
    drafts: dict[str, dict[str, int]] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    acknowledged: dict[str, tuple[float, dict[str, int]]] = field(default_factory=dict)
    not_acknowledged: set[str] = field(default_factory=set)
    resent: int = 0  # sent again by a client that was started again
    taken_away: int = 0
    changed_answer: int = 0
    locked: int = 0

    def add(self, entry: dict[str, Any]) -> None:
        if "request" in entry:
            self.requests.append(SentRequest(*entry["request"]))
            self.locked += entry["locked"]
        elif "draft" in entry:
            self.drafts[entry["draft"]] = entry["scores"]
            self.marked |= {entry["draft"]} if entry["marked"] else set()
        elif "acknowledged" in entry:
            self.acknowledged[entry["acknowledged"]] = (entry["at"], self.drafts[entry["acknowledged"]])
        elif "given_up" in entry:
            self.not_acknowledged.add(entry["given_up"])
        else:
            setattr(self, entry["count"], getattr(self, entry["count"]) + 1)

    def open_keys(self) -> list[str]:
        """What was written down to be sent, and has no answer."""
        return [key for key in self.drafts if key not in self.acknowledged]


def read_records(path: Path) -> dict[int, AnnotatorRecord]:
    """By the annotator's number."""
    records: dict[int, AnnotatorRecord] = {}
    for entry in DeviceStorage.entries(path):
        if "annotator" in entry:
            records.setdefault(entry.pop("annotator"), AnnotatorRecord()).add(entry)
    return records


@dataclass(slots=True)
class AnnotatorThread:
    """Takes an item, reads it, submits it under its key, and sends it again until it is acknowledged.

    Every other item has a marked text. What a killed process had not had acknowledged, the next one first sends again.
    """

    number: int
    browser: Browser
    storage: DeviceStorage
    record: AnnotatorRecord
    duty: int
    criteria: Sequence[str]
    pause: tuple[float, float]
    stop: threading.Event
    give_up: threading.Event
    random: random.Random

    def work(self) -> None:
        for key in self.record.open_keys():
            self._note(count="resent")
            self._submit(key)
        while not self.stop.is_set():
            status, headers, _body = self._send("POST", f"/desk/{self.duty}/", {})
            location = headers.get("Location", "") if headers else ""
            if status != 302 or "/desk/at/" not in location:
                self.stop.wait(RETRY if status != 200 else 2 * self.pause[1])
                continue
            self._send("GET", location)
            self.stop.wait(self.random.uniform(*self.pause))
            self._submit(location.rstrip("/").rpartition("/")[2])

    def _note(self, **entry: Any) -> None:
        self.record.add(entry)
        self.storage.write(annotator=self.number, **entry)

    def _send(self, method: str, path: str, form: dict[str, Any] | None = None, **more: str) -> tuple[int, Any, bytes]:
        locked = self.browser.locked
        answer = self.browser.send(method, path, form, **more)
        sent = self.browser.requests.pop()
        fields = [sent.what, sent.sent, sent.answered, sent.status, sent.note]
        self._note(request=fields, locked=self.browser.locked - locked)
        return answer

    def _form(self, key: str) -> dict[str, object]:
        if key not in self.record.drafts:
            scores = {name: self.random.randint(0, 4) for name in self.criteria}
            self._note(draft=key, scores=scores, marked=self.random.random() < 0.5)
        written = {f"score-{name}": score for name, score in self.record.drafts[key].items()}
        return {"key": key, "seconds": 30, **written, **(MARKED if key in self.record.marked else {})}

    def _submit(self, key: str) -> None:
        form = self._form(key)
        while True:
            status = self._sent_submission(key, form)
            if status == 200:
                self._note(acknowledged=key, at=time.monotonic())
                if self.random.random() < 0.1 and self._sent_submission(key, form) in (403, 404, 409, 422):
                    self._note(count="changed_answer")  # to a double click
                return
            if 400 <= status < 500 and status != 429:
                self._note(count="taken_away")
                return
            if self.give_up.is_set():
                self._note(given_up=key)
                return
            time.sleep(RETRY)

    def _sent_submission(self, key: str, form: dict[str, object]) -> int:
        return self._send("POST", f"/desk/at/{key}/submit/", form, accept="application/json")[0]


@dataclass(slots=True)
class ClientProcess:
    """A process with some annotators, that can be killed and started again. ``kills`` counts people, not processes."""

    path: Path
    people: Sequence[tuple[int, str, str]]  # number, address on loopback, session
    kills: int = 0
    _running: subprocess.Popen[bytes] | None = None

    def prepare(self, **settings: Any) -> None:
        self.path.write_text(json.dumps({**settings, "people": self.people}) + "\n", encoding="utf-8")

    def start(self) -> None:
        self._running = subprocess.Popen([sys.executable, "-m", "bench.siege_clients", str(self.path)])

    def kill(self) -> None:
        """SIGKILL: what it had not written into its file is gone."""
        assert self._running
        self._running.kill()
        self._running.wait()
        self.kills += len(self.people)

    def end(self) -> None:
        """Ask it to finish what it has begun; `wait` for it afterwards."""
        assert self._running
        self._running.terminate()

    def wait(self, seconds: float) -> None:
        assert self._running
        try:
            self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()


def _run_client(path: Path) -> None:
    """The body of a client process: its people work until SIGTERM, and then finish what they have begun."""
    settings, records = next(DeviceStorage.entries(path)), read_records(path)
    storage, stop, give_up = DeviceStorage(path), threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    people = [
        AnnotatorThread(
            number,
            Browser(settings["port"], address, session),
            storage,
            records.get(number, AnnotatorRecord()),
            settings["duty"],
            settings["criteria"],
            tuple(settings["pause"]),
            stop,
            give_up,
            random.Random(),
        )
        for number, address, session in settings["people"]
    ]
    threads = start_threads([person.work for person in people])
    while not stop.wait(1):
        pass
    deadline = time.monotonic() + GIVE_UP_AFTER
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    give_up.set()
    for thread in threads:
        thread.join(ANSWER_LIMIT)


@dataclass(slots=True)
class Visitor:
    """Looks at pages one after the other, without end."""

    browser: Browser
    paths: Sequence[str]
    pause: float
    stop: threading.Event
    truncated: int = 0
    downloaded: int = 0

    def work(self) -> None:
        while True:
            for path in self.paths:
                if self.stop.is_set():
                    return
                status, _headers, body = self.browser.send("GET", path)
                self.downloaded += len(body) if status == 200 else 0
                self.stop.wait(self.pause)


class Attack:
    """Connections that send or read next to nothing: slow headers, slow bodies without signing in, unread downloads."""

    def __init__(self, port: int, *, session: str, download: str, count: int = 25) -> None:
        self.port = port
        self._sending: list[socket.socket] = []
        self._unread: list[socket.socket] = []
        self._ended = threading.Event()
        head = f"Host: 127.0.0.1:{port}\r\n"
        form = f"Cookie: csrftoken={TOKEN}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        body = f"{head}{form}Content-Length: 100000\r\n\r\ncsrfmiddlewaretoken={TOKEN}&login="
        unread = f"{head}Cookie: sessionid={session}\r\n\r\n"
        for number in range(count):
            self._open(number, f"POST /account/login/ HTTP/1.1\r\n{body}")
        for number in range(count, count + 10):
            self._open(number, f"GET /account/login/ HTTP/1.1\r\n{head}X-Slow: ")
        for number in range(count + 10, count + 16):
            self._open(number, f"GET {download} HTTP/1.1\r\n{unread}", unread=True)
        self._thread = threading.Thread(target=self._drip)
        self._thread.start()

    def _open(self, number: int, text: str, *, unread: bool = False) -> None:
        with contextlib.suppress(OSError):
            opened = socket.socket()
            if unread:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.bind((f"127.0.9.{number + 1}", 0))
            opened.settimeout(5)
            opened.connect(("127.0.0.1", self.port))
            opened.sendall(text.encode())
            (self._unread if unread else self._sending).append(opened)

    def _drip(self) -> None:
        while not self._ended.wait(1):
            for each in self._sending:
                with contextlib.suppress(OSError):
                    each.sendall(b"a")

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        for each in (*self._sending, *self._unread):
            each.close()


def start_threads(jobs: Sequence[Callable[[], None]]) -> list[threading.Thread]:
    """Every job in a thread of its own."""
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    return threads


if __name__ == "__main__":
    _run_client(Path(sys.argv[1]))
