"""Embeddings through an endpoint on this machine: asked once per text, kept whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from analytics.stats.cli.commandline import run_command
from analytics.stats.text.surface import EmbeddingEndpoint, cached, local_embedding


class _Provider(BaseHTTPRequestHandler):
    """Answers out of order with (length, 1) of each text, and remembers what it was asked."""

    asked: list[tuple[list[str], str | None]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body["input"], self.headers.get("Authorization")))
        rows = [{"index": i, "embedding": [len(text), 1]} for i, text in enumerate(body["input"])]
        reply = json.dumps({"data": rows[::-1]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def provider() -> Iterator[tuple[str, list[tuple[list[str], str | None]]]]:
    asked: list[tuple[list[str], str | None]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Provider", (_Provider,), {"asked": asked}))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", asked
    server.shutdown()
    server.server_close()


def test_vectors_come_in_the_order_of_the_texts_with_the_key_of_the_environment(
    provider: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = provider
    monkeypatch.setenv("SOME_KEY", "secret")
    assert EmbeddingEndpoint(url, "e5", "SOME_KEY")(["a", "bbb"]).tolist() == [[1, 1], [3, 1]]
    assert asked == [(["a", "bbb"], "Bearer secret")]


def test_each_text_is_asked_for_once_per_model(provider: tuple[str, Any], tmp_path: Path) -> None:
    url, asked = provider
    embed = cached(EmbeddingEndpoint(url, "e5"), model="e5", directory=tmp_path)
    first, again = embed(["a", "bb"]), embed(["bb", "ccc"])
    assert [texts for texts, _ in asked] == [["a", "bb"], ["ccc"]]
    assert (first[1] == again[0]).all()
    cached(EmbeddingEndpoint(url, "other"), model="other", directory=tmp_path)(["a"])
    assert len(asked) == 3


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_the_key_goes_nowhere_else(
    provider: tuple[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, asked = provider
    monkeypatch.setenv("SOME_KEY", "secret")

    class Redirecting(_Provider):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", f"{elsewhere}/embeddings")
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    Thread(target=server.serve_forever, daemon=True).start()
    host = elsewhere.removeprefix("http://").removesuffix("/v1")
    with pytest.raises(ValueError, match=f"{status}, a redirect to {host}, which is not followed"):
        EmbeddingEndpoint(f"http://127.0.0.1:{server.server_port}/v1", "e5", "SOME_KEY")(["a"])
    assert asked == []
    server.shutdown()
    server.server_close()


def test_only_http_addresses_are_asked() -> None:
    with pytest.raises(ValueError, match="http"):
        EmbeddingEndpoint("file:///etc", "e5")(["a"])


@pytest.mark.parametrize(
    ("path", "reply", "complaint"),
    [
        ("/v1/embeddings", {"error": "no such model"}, "is not a list of embeddings"),
        ("/v1/embeddings", {"data": [{"index": 0, "embedding": [1]}]}, "gave 1 vectors for 2 texts"),
        ("/elsewhere", {}, "/v1/embeddings gave no embeddings: HTTP Error 404"),
        (None, {}, "/v1/embeddings gave no embeddings: urlopen error"),
    ],
)
def test_an_address_that_gives_no_embeddings_is_named_in_one_line(
    path: str | None, reply: Any, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Canned(_Provider):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path == path else 404)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

    server = HTTPServer(("127.0.0.1", 0), Canned)
    Thread(target=server.serve_forever, daemon=True).start()
    if path is None:
        server.shutdown()
        server.server_close()
    texts = tmp_path / "texts.csv"
    texts.write_text("item,text\n1,a\n2,abc\n")
    url = f"http://127.0.0.1:{server.server_port}/v1"
    assert run_command(["surface", str(texts), "--embeddings", url, "--cache", str(tmp_path / "kept")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line
    if path is not None:
        server.shutdown()
        server.server_close()


def test_a_local_model_says_what_to_install() -> None:
    with pytest.raises(ValueError, match=r"pip install .panelbench\[sentence-transformers\]"):
        local_embedding("e5")


def test_surface_prints_the_mean_cosine(
    provider: tuple[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("item,language,text\n1,en,a\n2,en,abc\n")
    argv = ["surface", str(path), "--embeddings", provider[0], "--cache", str(tmp_path / "kept"), "--format", "json"]
    assert run_command(argv) == 0
    found = {e["statistic"]: e for e in json.loads(capsys.readouterr().out)["estimates"]}
    assert found["pairwise_cosine"]["value"] == pytest.approx(4 / np.sqrt(2 * 10))
