"""The people of the siege: annotators, a lead who downloads, visitors who look at pages, attackers who send slowly.

Every thread has an address of its own on loopback, a session of its own, and a list of what it was answered.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

PASSWORD = "a siege of many kills"
ANSWER_LIMIT = 45.0  # seconds after which a request counts as stuck
RETRY = 0.7  # seconds before the same submission is sent again
BEGINS_ANEW = (1.0, 4.0)  # seconds until a person whose browser was killed is back
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
    killed: threading.Event = field(default_factory=threading.Event)
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
                if self._connection is None or self.killed.is_set():  # it was a new one, or nobody is there any more
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

    def kill(self) -> None:
        """Cut the connection as the system does when a browser is killed: what was sent arrives, no answer is read."""
        self.killed.set()
        kept = self._connection
        if kept is not None and kept.sock is not None:
            with contextlib.suppress(OSError):
                kept.sock.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(slots=True)
class AnnotatorThread:
    """Takes an item, reads it, submits it under its key, and sends it again until it is acknowledged.

    Every other item has a marked text. A killed browser remembers nothing but the draft that its device keeps.
    """

    browser: Browser
    duty: int
    criteria: Sequence[str]
    pause: tuple[float, float]
    stop: threading.Event
    give_up: threading.Event
    random: random.Random
    acknowledged: dict[str, tuple[float, dict[str, int]]] = field(default_factory=dict)
    not_acknowledged: list[str] = field(default_factory=list)
    drafts: dict[str, dict[str, int]] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    taken_away: int = 0
    changed_answer: int = 0
    killed: int = 0

    def work(self) -> None:
        while not self.stop.is_set():
            if self._was_killed():
                continue
            status, headers, _body = self.browser.send("POST", f"/desk/{self.duty}/", {})
            location = headers.get("Location", "") if headers else ""
            if status != 302 or "/desk/at/" not in location:
                self.stop.wait(RETRY if status != 200 else 2 * self.pause[1])
                continue
            self.browser.send("GET", location)
            self.stop.wait(self.random.uniform(*self.pause))
            self._submit(location.rstrip("/").rpartition("/")[2])

    def _was_killed(self) -> bool:
        if not self.browser.killed.is_set():
            return False
        self.browser.hang_up()
        self.killed += 1
        self.stop.wait(self.random.uniform(*BEGINS_ANEW))
        self.browser.killed.clear()
        return True

    def _form(self, key: str) -> dict[str, object]:
        if key not in self.drafts:
            self.drafts[key] = {name: self.random.randint(0, 4) for name in self.criteria}
            if self.random.random() < 0.5:
                self.marked.add(key)
        scores = {f"score-{name}": score for name, score in self.drafts[key].items()}
        return {"key": key, "seconds": 30, **scores, **(MARKED if key in self.marked else {})}

    def _submit(self, key: str) -> None:
        form = self._form(key)
        while not self.browser.killed.is_set():
            status, _headers, _body = self.browser.send(
                "POST", f"/desk/at/{key}/submit/", form, accept="application/json"
            )
            if status == 200:
                self.acknowledged[key] = (time.monotonic(), self.drafts[key])
                if self.random.random() < 0.1:  # a double click
                    again = self.browser.send("POST", f"/desk/at/{key}/submit/", form, accept="application/json")
                    self.changed_answer += again[0] in (403, 404, 409, 422)
                return
            if 400 <= status < 500 and status != 429:
                self.taken_away += 1
                return
            if self.give_up.is_set():
                self.not_acknowledged.append(key)
                return
            time.sleep(RETRY)


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
