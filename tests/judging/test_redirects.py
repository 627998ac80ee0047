"""No redirect of a provider is followed, whatever is asked of it and wherever it leads: a server in front of an honest
provider sends one kind of request on."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench import lying_provider
from bench.lying_provider import LIMIT, MODEL
from judging import batches, judges, providers, runs, work_sessions
from judging.models import CallBatch, JudgeRun, ProviderListing, ProviderTest
from panelbench import environment
from tests import make
from tests.cast import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ASKED = {
    "chat": r"POST .*/chat/completions",
    "models": r"GET .*/models",
    "upload": r"POST .*/files$",
    "batch": r"POST .*/batches$",
    "state": r"GET .*/batches/",
    "results": r"GET .*/files/.*/content",
}
STATUSES = (301, 302, 303, 307, 308, 307)
PLACES = (
    "http://127.0.0.1:{other}/landed",
    "http://localhost:{other}/landed",
    "//127.0.0.1:{other}/landed",
    "/landed",
    "../landed",
    "https://127.0.0.1:{own}/landed",
)


@dataclass
class Front:
    """What the server does, and what came where no redirect should lead."""

    address: str = ""
    behind: str = ""
    other: int = 0
    pattern: str = "nothing"
    status: int = 307
    place: str = "/landed"
    redirected: int = 0
    landed: list[str] = field(default_factory=list)


def handler_of(state: Front) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            port = self.server.server_address[1]
            if port == state.other or "landed" in self.path:
                state.landed.append(f"{self.command} {self.path} {len(body)}")
                return self.reply(200, b"{}")
            if re.match(state.pattern, f"{self.command} {self.path}"):
                state.redirected += 1
                location = state.place.format(other=state.other, own=port)
                return self.reply(state.status, b"{}", {"Location": location})
            behind = urlsplit(state.behind)
            with contextlib.closing(
                http.client.HTTPConnection(behind.hostname or "", behind.port, timeout=30)
            ) as asked:
                asked.request(self.command, self.path, body, {"Content-Type": self.headers.get("Content-Type") or ""})
                came = asked.getresponse()
                return self.reply(came.status, came.read())

        def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    state = Front()
    handler = handler_of(state)
    with (
        lying_provider.lying_provider() as behind,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as own,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other,
    ):
        state.behind, state.other = behind, other.server_address[1]
        for server in (own, other):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        state.address = f"http://127.0.0.1:{own.server_address[1]}"
        yield state
        for server in (own, other):
            server.shutdown()


@pytest.fixture
def provider(front: Front, settings: Any) -> str:
    entry = lying_provider.declaration(front.address, "honest") | {"name": "moved"}
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    front.redirected, front.landed = 0, []
    return "moved"


@pytest.mark.parametrize("asked", ASKED)
def test_no_redirect_is_followed_and_its_reason_is_kept(cast: Cast, front: Front, provider: str, asked: str) -> None:
    front.pattern = ASKED[asked]
    rubric, dataset = make.rubric(cast.kassa), make.dataset(cast.kassa, 2)
    for number, (status, place) in enumerate(zip(STATUSES, PLACES, strict=True)):
        front.status, front.place, before = status, place, front.redirected
        said = _reason(cast, asked, provider, number, dataset, rubric)
        assert front.redirected > before, "it was asked"
        assert front.landed == [], (status, place)
        assert f"{status}" in said and "redirect" in said, (status, place, said)


def _reason(cast: Cast, asked: str, provider: str, number: int, dataset: Any, rubric: Any) -> str:
    """What people read after one request of the kind."""
    if asked == "models":
        providers.read_listing(provider)
        return ProviderListing.objects.get(provider=provider).reason
    if asked == "chat" and number % 2:
        test = providers.begin_test(name=provider, model=MODEL)
        providers.carry_out_test(test.pk)
        return str(ProviderTest.objects.get(pk=test.pk).result["reason"])
    parameters = {"max_tokens": LIMIT, "seed": number}
    judge = judges.declare(
        project=cast.kassa, name=f"“J” {number}", provider=provider, model=MODEL, parameters=parameters
    )
    by_batch = asked != "chat"
    run = runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=rubric, by_batch=by_batch)
    if by_batch:
        batches.begin_batch(run_pk=run.pk)
        for batch in CallBatch.objects.filter(run=run, ended_at=None):
            batches.carry_out_batch(batch_pk=batch.pk)
    else:
        work_sessions.work_on_run(run.pk)
    after = JudgeRun.objects.get(pk=run.pk)
    assert not after.verdicts.exists()
    told = [batch.reason if hasattr(batch, "reason") else "" for batch in CallBatch.objects.filter(run=run)]
    return f"{after.state} {after.reason} {told}"
