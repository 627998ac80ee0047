"""A bad line between client and server: nothing is lost, nothing is done twice, and errors say what to do."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import panelbench_client
from accounts import tokens
from accounts.models import Scope
from annotation.models import Panel, Upload
from panelbench_client import Client, connection, files
from tests import make
from tests.cast import Cast
from tests.client.proxy import Proxy, proxy

pytestmark = pytest.mark.django_db(transaction=True)

MEGABYTE = 2**20
# A body that ends too soon, in either way of saying how long it is.
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n5\r\nitem,\r\n"
COUNTED = "Content-Length: 9\r\n\r\nitem,"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.01)


@pytest.fixture
def line(live_server: Any) -> Iterator[Proxy]:
    with proxy(live_server.url) as running:
        yield running


@pytest.fixture
def secret(cast: Cast) -> str:
    return tokens.issue(user=cast.boris, name="client", scope=Scope.WRITE, project=cast.kassa)[1]


@pytest.fixture
def bench(secret: str, line: Proxy) -> Iterator[Client]:
    with Client(line.address, secret, "kassa") as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three and a half pieces."""
    monkeypatch.setattr(files, "PIECE", MEGABYTE)
    made = tmp_path / "dialogues.jsonl"
    made.write_bytes(os.urandom(7 * MEGABYTE // 2))
    return made


def arrived() -> bytes:
    return Path(Upload.objects.get().content.path).read_bytes()


def test_an_upload_goes_on_where_the_line_was_cut(bench: Client, line: Proxy, file: Path) -> None:
    line.requests = [MEGABYTE // 2, 3 * MEGABYTE // 2, MEGABYTE // 3]
    done = bench.upload(file)
    assert line.cut == 3
    assert done["received"] == done["size"]
    assert arrived() == file.read_bytes()


def test_an_upload_goes_on_where_only_the_answer_was_lost(bench: Client, secret: str, line: Proxy, file: Path) -> None:
    begun = bench.begin_upload(file)
    bench.close()
    line.answers = [10, 10]
    with Client(bench.address, secret, "kassa") as again:
        again.upload(file, key=begun["key"])
    assert line.cut == 2
    assert arrived() == file.read_bytes()


def test_an_upload_on_a_dead_line_ends_and_another_goes_on_with_it(bench: Client, line: Proxy, file: Path) -> None:
    line.requests = [MEGABYTE // 2] * 100
    key = bench.begin_upload(file)["key"]
    with pytest.raises(panelbench_client.Unreachable, match="cut during PATCH"):
        bench.upload(file, key=key)
    line.requests.clear()
    assert bench.upload(file, key=key)["received"] == file.stat().st_size
    assert arrived() == file.read_bytes()


def test_what_is_only_read_is_asked_again(cast: Cast, bench: Client, line: Proxy) -> None:
    made = make.dataset(cast.kassa, 3)
    line.answers = [20, 20, 20]
    assert bench.dataset(made.pk)["items"] == 3
    assert line.cut == 3


def test_what_would_be_done_twice_is_not_sent_again(bench: Client, line: Proxy) -> None:
    line.answers = [10]
    with pytest.raises(panelbench_client.Unreachable, match="Check whether it was done"):
        bench.make_panel("Estonian")
    assert Panel.objects.count() == 1


def test_what_comes_to_the_same_twice_is_sent_again(bench: Client, line: Proxy) -> None:
    line.answers = [10, 10]
    there = {"key": "quality", "name": {"en": "Quality"}, "source_language": "en"}
    assert bench.draft_rubric({**there, "criteria": [make.criterion("fluency")]})["number"] == 1
    assert (line.cut, len(list(bench.rubric_versions("quality")))) == (2, 1)


@pytest.mark.parametrize("framed", [CHUNKED, COUNTED])
def test_a_download_is_there_whole_or_not_at_all(tmp_path: Path, framed: str) -> None:
    """As Granian frames it. Django's own server, before which the other tests stand, ends a stream by hanging up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        here, _peer = listening.accept()
        with here:
            here.recv(65536)
            here.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{framed}".encode())

    answering = threading.Thread(target=answer)
    answering.start()
    (tmp_path / "items.csv").write_text("kept", "utf-8")
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with (
        Client(address, "pb_x", "kassa") as bench,
        pytest.raises(panelbench_client.Unreachable, match="nothing was saved"),
    ):
        bench.export("items", tmp_path / "items.csv", format="csv")
    answering.join()
    listening.close()
    assert [(file.name, file.read_text("utf-8")) for file in tmp_path.iterdir()] == [("items.csv", "kept")]


def test_a_silent_server_is_waited_for_no_longer_than_said(bench: Client, line: Proxy) -> None:
    line.is_silent = True
    with Client(bench.address, "pb_x", "kassa", timeout=0.2) as hurried:
        started = time.monotonic()
        with pytest.raises(panelbench_client.Unreachable, match="longer timeout"):
            hurried.make_panel("Estonian")
    assert time.monotonic() - started < 30


def test_nobody_there_is_said() -> None:
    with (
        Client("http://127.0.0.1:9", "pb_x") as nowhere,
        pytest.raises(panelbench_client.Unreachable, match="running there"),
    ):
        nowhere.me()


def test_a_refused_import_names_the_rows(cast: Cast, bench: Client, tmp_path: Path) -> None:
    wrong = tmp_path / "d.jsonl"
    row = '{{"id": "1", "language": "et", "question": "{}?"}}\n'
    wrong.write_text("".join(row.format(n) for n in range(8)), "utf-8")
    opened = bench.open_import(wrong, kind="dataset")
    with pytest.raises(panelbench_client.ApiError, match=r"line 2") as refused:
        bench.store_import(opened["id"])
    assert refused.value.problems[0]["line"] == 2
    assert "and 2 more" in str(refused.value)
    with pytest.raises(panelbench_client.ImportFailed, match=r"line 2"):
        bench.wait_for_import(opened["id"])


def test_waiting_ends(bench: Client) -> None:
    with pytest.raises(panelbench_client.TimedOut, match="It is still running"):
        bench.wait(lambda: None, timeout=0.1, what="Run 1")
