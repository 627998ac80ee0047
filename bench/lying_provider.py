"""A provider that lies about money, in more than 40 ways, and what runs of ours booked beside its own count.

``python -m bench.lying_provider`` starts it in a process of its own (loopback, stops with this one), asks it in 72
calls under a cap of $2, 64 in flight, by two work sessions at once, and writes a table. Each lie is a base address
(``/LIE/v1``) with a count of its own: what it says it is due, whatever its replies say. ``--serve`` is the provider
alone; ``--database sqlite`` asks on the embedded database; ``--only LIE`` prints one row.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "lying_provider.md"
MODEL, CHEAPER, DEARER, UNDECLARED = "judge-1", "judge-1-mini", "judge-1-large", "judge-9"
PRICES = {MODEL: (2, 60), CHEAPER: (0.2, 6), DEARER: (200, 6000)}
LIMIT = 400  # tokens of a reply
CAP = Decimal(2)
CALLS = 72
SLOW = ("drip", "silent")  # a second each, two at a time: fewer calls
HONEST_FIRST = 40
CENT = Decimal("0.01")


# --- the provider -----------------------------------------------------------------------------------------------------


@dataclass
class Account:
    """What the provider counts for one lie: requests, replies that bill more than was declared, and USD."""

    asked: int = 0
    lies: int = 0
    largest: Decimal = Decimal(0)
    due: Decimal = Decimal(0)
    elsewhere: int = 0
    models: set[str] = field(default_factory=set)
    seen: set[bytes] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)

    def bill(self, into: int, out: int, *, model: str = MODEL, times: int = 1) -> None:
        price = PRICES.get(model, (20, 600))
        due = times * (Decimal(str(price[0])) * into + Decimal(str(price[1])) * out) / 1_000_000
        self.due += due
        self.largest = max(self.largest, due)
        self.lies += times > 1 or out > LIMIT or model in (DEARER, UNDECLARED)


@dataclass
class LyingRequest:
    """One request as the provider reads it, with what an honest reply would say and cost."""

    account: Account
    body: dict[str, Any]
    raw: bytes
    elsewhere: str

    @property
    def into(self) -> int:
        return sum(4 + -(-len(str(message["content"]).encode()) // 4) for message in self.body["messages"])

    @property
    def text(self) -> str:
        form = self.body.get("response_format") or {}
        schema = (form.get("json_schema") or {}).get("schema") or {"type": "object"}
        return json.dumps(_fitting(schema), ensure_ascii=False)

    @property
    def out(self) -> int:
        return -(-len(self.text.encode()) // 4)

    def completion(self, **changes: Any) -> dict[str, Any]:
        """An honest reply, but for the changes; its usage is that of `into` and `out`."""
        message = {"role": "assistant", "content": self.text}
        usage = {"prompt_tokens": self.into, "completion_tokens": self.out}
        usage["total_tokens"] = self.into + self.out
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "c", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}
        self.account.models.add(str(changes.get("model", MODEL)))
        return whole | changes

    def counted(self, into: Any, out: Any, **changes: Any) -> dict[str, Any]:
        return self.completion(usage={"prompt_tokens": into, "completion_tokens": out}, **changes)


def _fitting(schema: dict[str, Any]) -> Any:
    """The least value that keeps a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _fitting(schema["anyOf"][0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: _fitting(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "string": "Selge ja õige.", "boolean": True, "null": None}.get(kind, schema.get("minimum", 1))


Reply = bytes | tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""Raw bytes of a whole response (an empty one closes the connection), or status, body and headers."""
Lie = Callable[[LyingRequest], Reply]


def _over(times: int, *, of_prompt: bool = False, first: int = 0, every: int = 1) -> Lie:
    """Bills so many times the limit of a reply, or so many times the prompt."""

    def answer(asked: LyingRequest) -> Reply:
        account, into, out = asked.account, asked.into, asked.out
        if account.asked > first and account.asked % every == 0:
            into, out = (times * into * 4, out) if of_prompt else (into, times * LIMIT)
            account.lies += of_prompt
        account.bill(into, out)
        return 200, asked.counted(into, out)

    return answer


def _counts(out: Callable[[LyingRequest], int]) -> Lie:
    """Counts a reply as so long, and bills that."""

    def answer(asked: LyingRequest) -> Reply:
        asked.account.bill(asked.into, out(asked))
        return 200, asked.counted(asked.into, out(asked))

    return answer


def _invoiced(asked: LyingRequest) -> Reply:
    asked.account.bill(asked.into, asked.out, times=32)
    return 200, asked.completion()


def _usage(usage: Callable[[LyingRequest], Any], *, times: int = 1) -> Lie:
    """Bills honestly, or so many times a whole reply, and says something else."""

    def answer(asked: LyingRequest) -> Reply:
        asked.account.bill(asked.into, times * LIMIT if times > 1 else asked.out)
        stated = usage(asked)
        changed = asked.completion(usage=stated)
        if stated is None:
            del changed["usage"]
        return 200, changed

    return answer


def _served(model: Any, *, price: str = MODEL, first: int = 0) -> Lie:
    def answer(asked: LyingRequest) -> Reply:
        is_honest = asked.account.asked <= first
        asked.account.bill(asked.into, asked.out, model=MODEL if is_honest else price)
        return 200, asked.completion(model=MODEL if is_honest else model)

    return answer


def _raw(form: Callable[[LyingRequest], Reply]) -> Lie:
    """Works, bills that, and sends something else than a reply."""

    def answer(asked: LyingRequest) -> Reply:
        asked.account.bill(asked.into, asked.out)
        return form(asked)

    return answer


def _length(more: int) -> Callable[[LyingRequest], Reply]:
    def response(asked: LyingRequest) -> Reply:
        body = json.dumps(asked.completion()).encode()
        return f"HTTP/1.1 200 OK\r\ncontent-length: {len(body) + more}\r\n\r\n".encode() + body

    return response


def _half(asked: LyingRequest) -> Reply:
    body = json.dumps(asked.completion()).encode()
    return f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body[: len(body) // 2]


def _stream(asked: LyingRequest) -> Reply:
    piece = json.dumps({"object": "chat.completion.chunk", "choices": [{"delta": {"content": asked.text}}]})
    body = f"data: {piece}\n\ndata: [DONE]\n\n".encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + body


def _storm(status: int, *, billed: bool = False, headers: dict[str, str] | None = None) -> Lie:
    def answer(asked: LyingRequest) -> Reply:
        if billed:
            asked.account.bill(asked.into, asked.out)
        return status, {"error": {"message": "Not now.", "code": "busy"}}, headers or {}

    return answer


def _redirect(status: int) -> Lie:
    return lambda asked: (status, {}, {"location": f"{asked.elsewhere}/v1/chat/completions"})


def _dearer_retry(asked: LyingRequest) -> Reply:
    """Fails each request once, and bills both tries twice when the second is answered."""
    if asked.raw not in asked.account.seen:
        asked.account.seen.add(asked.raw)
        return 500, {"error": {"message": "Try again."}}
    into, out = 4 * asked.into, 4 * asked.out
    asked.account.bill(into, out)
    return 200, asked.counted(into, out)


def _wrong_types(asked: LyingRequest) -> Reply:
    asked.account.bill(asked.into, asked.out)
    return 200, asked.completion(choices={"message": {"content": 5}}, object=7, id=["x"])


def _many_choices(asked: LyingRequest) -> Reply:
    out = 32 * max(asked.out, LIMIT // 4)
    asked.account.bill(asked.into, out)
    choice = {"index": 0, "message": {"role": "assistant", "content": asked.text}, "finish_reason": "stop"}
    return 200, asked.counted(asked.into, out, choices=[{**choice, "index": number} for number in range(32)])


def _error_in_reply(times: int) -> Lie:
    def answer(asked: LyingRequest) -> Reply:
        out = times * LIMIT if times else asked.out
        asked.account.bill(asked.into, out)
        usage = {"usage": {"prompt_tokens": asked.into, "completion_tokens": out}} if times else {}
        return 200, {"error": {"message": "Upstream failed.", "code": 502}, **usage}

    return answer


def _dearer_error(asked: LyingRequest) -> Reply:
    asked.account.bill(asked.into, asked.out, model=DEARER)
    body = asked.completion(model=DEARER, error={"message": "Upstream failed.", "code": 502})
    return 200, {name: value for name, value in body.items() if name != "choices"}


def _usd(into: int, out: int) -> float:
    return (PRICES[MODEL][0] * into + PRICES[MODEL][1] * out) / 1_000_000


def _refusal_with_bill(asked: LyingRequest) -> Reply:
    asked.account.bill(asked.into, 32 * LIMIT)
    usage = {"prompt_tokens": asked.into, "completion_tokens": 32 * LIMIT}
    return 400, {"error": {"message": "No."}, "usage": usage}


def _refused_form_with_bill(asked: LyingRequest) -> Reply:
    """As if another form of the request were taken: each is billed."""
    status, body = _refusal_with_bill(asked)[:2]
    return status, body | {"error": {"message": "Unsupported parameter: response_format", "param": "response_format"}}


def _refused_form_with_odd_bill(asked: LyingRequest) -> Reply:
    status, body = _refused_form_with_bill(asked)[:2]
    return status, body | {"usage": {"tokens_of_the_reply": 32 * LIMIT}}


LIES: dict[str, tuple[str, Lie]] = {
    "honest": ("nothing: a model that is what it says", _over(1, first=10**9)),
    "x4": ("each reply is billed as 4 whole replies", _over(4)),
    "x8": ("... as 8", _over(8)),
    "x16": ("... as 16", _over(16)),
    "x32": ("... as 32, 64 in flight", _over(32)),
    "x32_later": (f"... as 32 after {HONEST_FIRST} honest bills", _over(32, first=HONEST_FIRST)),
    "x32_tenth": ("every tenth reply as 32", _over(32, every=10)),
    "x2_quiet": ("each reply twice as long as it is, within the limit", _counts(lambda a: 2 * a.out)),
    "prompt_x32": ("the prompt is billed as 128 prompts", _over(32, of_prompt=True)),
    "total_only": (
        "hidden reasoning, in total_tokens alone",
        _usage(
            lambda a: {"prompt_tokens": a.into, "completion_tokens": a.out, "total_tokens": a.into + 32 * LIMIT},
            times=32,
        ),
    ),
    "huge": ("10^15 tokens", _counts(lambda a: 10**15)),
    "many_choices": ("32 choices for one, each billed", _many_choices),
    "usage_0": ("usage 0 and 0, bills what it did", _usage(lambda a: _tokens(0, 0))),
    "usage_1": ("usage 1 and 1", _usage(lambda a: _tokens(1, 1))),
    "usage_0_out": ("usage of the reply 0", _usage(lambda a: _tokens(a.into, 0))),
    "usage_negative": ("usage -5 and -5", _usage(lambda a: _tokens(-5, -5))),
    "usage_words": ("usage “many”", _usage(lambda a: _tokens("many", "few"))),
    "usage_text_x32": (
        "32 whole replies, the number as a text",
        _usage(lambda a: _tokens(str(a.into), str(32 * LIMIT)), times=32),
    ),
    "usage_float_x32": (
        "32 whole replies, as 12800.0",
        _usage(lambda a: _tokens(float(a.into), float(32 * LIMIT)), times=32),
    ),
    "usage_comma_x32": (
        "32 whole replies, as “12,800”",
        _usage(lambda a: _tokens(a.into, f"{32 * LIMIT:,}"), times=32),
    ),
    "usage_fraction_x32": (
        "32 whole replies, as 12799.5",
        _usage(lambda a: _tokens(a.into, 32 * LIMIT - 0.5), times=32),
    ),
    "other_names_x32": (
        "32 whole replies, as input_tokens and output_tokens",
        _usage(lambda a: {"input_tokens": a.into, "output_tokens": 32 * LIMIT}, times=32),
    ),
    "unknown_names_x32": (
        "32 whole replies, under names of its own",
        _usage(lambda a: {"billing": [{"tokensOfTheReply": str(32 * LIMIT)}]}, times=32),
    ),
    "total_alone_x32": (
        "32 whole replies, and no count but the total",
        _usage(lambda a: {"total_tokens": a.into + 32 * LIMIT}, times=32),
    ),
    "reasoning_apart_x32": (
        "32 whole replies of reasoning, in the details alone",
        _usage(
            lambda a: _tokens(a.into, a.out) | {"completion_tokens_details": {"reasoning_tokens": 32 * LIMIT}},
            times=32,
        ),
    ),
    "stated_cost_x32": (
        "an honest count, and a cost of 32 whole replies beside it",
        _usage(lambda a: _tokens(a.into, a.out) | {"cost": _usd(a.into, 32 * LIMIT)}, times=32),
    ),
    "usage_true": ("usage true and true", _usage(lambda a: _tokens(True, True))),
    "usage_null": ("usage null and null", _usage(lambda a: _tokens(None, None))),
    "usage_list": ("usage is a list", _usage(lambda a: [1, 2])),
    "usage_missing": ("no usage", _usage(lambda a: None)),
    "dearer_model": (f"{DEARER} answers, 100 times the price", _served(DEARER, price=DEARER)),
    "dearer_later": (f"{DEARER} after {HONEST_FIRST} honest ones", _served(DEARER, price=DEARER, first=HONEST_FIRST)),
    "cheaper_model": (f"{CHEAPER} answers, a tenth of the price", _served(CHEAPER, price=CHEAPER)),
    "undeclared_model": (f"{UNDECLARED} answers, no declared price", _served(UNDECLARED, price=UNDECLARED)),
    "undeclared_organisation": (
        f"acme/{UNDECLARED} answers, no declared price",
        _served(f"acme/{UNDECLARED}", price=UNDECLARED),
    ),
    "snapshot": ("a dated snapshot of the model", _served(f"{MODEL}-2026-01-31")),
    "no_name": ("the model's name is a number", _served(7)),
    "redirect_302": ("302 to another host", _redirect(302)),
    "redirect_303": ("303 to another host", _redirect(303)),
    "redirect_307": ("307 to another host, with the texts", _redirect(307)),
    "redirect_308": ("308 to another host, with the texts", _redirect(308)),
    "longer": ("a content-length of 500 bytes more than come", _raw(_length(500))),
    "shorter": ("a content-length of 40 bytes fewer", _raw(_length(-40))),
    "half": ("half a reply, then nothing", _raw(_half)),
    "dropped": ("works, bills, and hangs up", _raw(lambda asked: b"")),
    "drip": ("one byte in a while, for ever", _raw(lambda asked: b"drip")),
    "silent": ("works, bills, and never answers", _raw(lambda asked: b"silent")),
    "page": ("200 with a page of HTML", _raw(lambda asked: (200, "<html>busy</html>"))),
    "stream": ("streams, though nobody asked", _raw(_stream)),
    "types": ("wrong types everywhere", _wrong_types),
    "error_200": ("200 with an error, billed", _error_in_reply(0)),
    "error_200_x32": ("200 with an error that counts 32 replies", _error_in_reply(32)),
    "error_dearer": (f"200 with an error, billed as {DEARER}", _dearer_error),
    "refusal_x32": ("400 that counts 32 replies", _refusal_with_bill),
    "refused_form_x32": ("400 that names the form, counting 32 replies", _refused_form_with_bill),
    "refused_form_odd_x32": ("... under a name of its own", _refused_form_with_odd_bill),
    "storm_402": ("402 for every request", _storm(402)),
    "storm_429": ("429 for every request, to wait 0 s", _storm(429, headers={"retry-after": "0"})),
    "storm_429_bare": ("429, no time named", _storm(429)),
    "storm_500": ("500, each billed in full", _storm(500, billed=True)),
    "storm_503": ("503 to wait 0 s, each billed", _storm(503, billed=True, headers={"retry-after": "0"})),
    "retry": ("fails each request once, then bills it four times", _dearer_retry),
    "batch_x32": ("a batch, each line as 32 replies", _over(32)),
    "batch_x32_later": (f"a batch, as 32 after {HONEST_FIRST} honest lines", _over(32, first=HONEST_FIRST)),
    "batch_refused_form_x32": ("a batch, each line a 400 that names the form and counts 32", _refused_form_with_bill),
    "batch_undeclared": (f"a batch, answered by {UNDECLARED}", _served(UNDECLARED, price=UNDECLARED)),
    "batch_silent": ("a batch without results, billed", _raw(lambda asked: b"")),
}
UNSEEN: dict[str, tuple[str, Lie]] = {
    "invoice_x32": ("says what it did, and invoices 32 times that", _invoiced),
    "storm_429_billed": ("invoices each 429", _storm(429, billed=True)),
}
"""Lies that no reply shows: only the invoice does."""


def _tokens(into: Any, out: Any) -> dict[str, Any]:
    return {"prompt_tokens": into, "completion_tokens": out}


class LyingServer:
    """Answers ``/LIE/v1/...``, tells its own count at ``/LIE/count``, and counts what comes to another host."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.elsewhere = ""

    async def converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, other: bool = False
    ) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _colon, value in (line.partition(":") for line in lines)
                }
                raw = await reader.readexactly(int(headers.get("content-length") or 0))
                method, path, _version = first.split(" ")
                if other:
                    for account in self.accounts.values():
                        account.elsewhere += 1
                reply = await self._reply(method, path, headers, raw) if not other else (200, {})
                if reply == b"drip":
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")
                    for _byte in range(50):
                        writer.write(b" ")
                        await writer.drain()
                        await asyncio.sleep(0.1)
                if reply == b"silent":
                    await asyncio.sleep(600)
                if isinstance(reply, bytes):
                    writer.write(b"" if reply in (b"drip", b"silent") else reply)
                    await writer.drain()
                    break
                writer.write(_response(*reply))
                await writer.drain()
        await self._close(writer)

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def _reply(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> Reply:
        _empty, lie, *rest = path.partition("?")[0].split("/")
        account = self.accounts.setdefault(lie, Account())
        match method, rest:
            case "GET", ["count"]:
                counts = {"asked": account.asked, "due": str(account.due), "lies": account.lies}
                counts |= {"largest": str(account.largest), "elsewhere": account.elsewhere}
                return 200, counts | {"models": sorted(account.models)}
            case "POST", ["v1", "chat", "completions"]:
                account.asked += 1
                await asyncio.sleep(0.02)
                return self._lied(lie, account, json.loads(raw), raw)
            case _, ["v1", *of_batches]:
                return self._batch(lie, account, method, of_batches, headers, raw)
        return 404, {"error": {"message": "Nothing here."}}

    def _lied(self, lie: str, account: Account, body: dict[str, Any], raw: bytes) -> Reply:
        _words, answer = (LIES | UNSEEN)[lie]
        return answer(LyingRequest(account, body, raw, self.elsewhere))

    def _batch(
        self, lie: str, account: Account, method: str, path: list[str], headers: dict[str, str], raw: bytes
    ) -> Reply:
        """As much of a batch API as is needed: a batch ends at once."""
        match method, path:
            case "POST", ["files"]:
                name = f"file-{len(account.files)}"
                account.files[name] = b"\n".join(re.findall(rb'^\{"custom_id".*$', raw, re.MULTILINE))
                return 200, {"id": name}
            case "POST", ["batches"]:
                lines = []
                for line in account.files[json.loads(raw)["input_file_id"]].splitlines():
                    entry = json.loads(line)
                    account.asked += 1
                    reply = self._lied(lie, account, entry["body"], line)
                    if not isinstance(reply, bytes):
                        response = {"status_code": reply[0], "body": reply[1]}
                        lines.append(json.dumps({"custom_id": entry["custom_id"], "response": response}))
                name = f"file-{len(account.files)}"
                account.files[name] = "\n".join(lines).encode()
                return 200, {"id": f"batch-{name}", "status": "completed", "output_file_id": name}
            case "GET", ["batches"]:
                return 200, {"data": []}
            case "GET", ["batches", name]:
                return 200, {"id": name, "status": "completed", "output_file_id": name.removeprefix("batch-")}
            case "GET", ["files", name, "content"]:
                content = account.files[name]
                return f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content
        return 200, {}


def _response(status: int, body: Any, headers: dict[str, str] | None = None) -> bytes:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    named = {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + content


async def _serve() -> None:
    lying = LyingServer()
    server = await asyncio.start_server(lying.converse, "127.0.0.1", 0, limit=2**24)
    other = await asyncio.start_server(
        lambda reader, writer: lying.converse(reader, writer, other=True), "127.0.0.1", 0, limit=2**24
    )
    lying.elsewhere = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}"
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the process that started this one has ended


@contextlib.contextmanager
def lying_provider() -> Iterator[str]:
    """The provider in a process of its own: its address, to which ``/LIE/v1`` is added."""
    command = [sys.executable, "-m", "bench.lying_provider", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started.stdout.readline().strip() if started.stdout else ""
        finally:
            started.kill()


def own_count(address: str, lie: str) -> dict[str, Any]:
    """What the provider itself counts."""
    with urllib.request.urlopen(f"{address}/{lie}/count", timeout=30) as response:
        counts: dict[str, Any] = json.load(response)
    return counts | {"due": Decimal(counts["due"]), "largest": Decimal(counts["largest"])}


def declaration(address: str, lie: str) -> dict[str, Any]:
    """What an operator declares who believes the provider."""
    priced = {name: list(price) for name, price in PRICES.items()}
    name = f"provider {lie}"
    return {"name": name, "base_url": f"{address}/{lie}/v1", "simulated": True, "prices": priced, "batches": True}


# --- what we do with it -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LyingOutcome:
    """How a run with this lie ended."""

    planned: int
    sent: int
    models: str
    booked: Decimal
    due: Decimal
    lies: int
    largest: Decimal
    elsewhere: int
    state: str
    reason: str

    @property
    def is_kept(self) -> bool:
        """Whether the cap was kept to the cent of the provider's own count, or passed by two calls at most."""
        return self.due <= CAP + CENT / 2 or (self.state == "paused" and self.lies <= 2)

    @property
    def verdict(self) -> str:
        if self.elsewhere:
            return "SENT ELSEWHERE"
        if self.due <= CAP + CENT / 2:
            return "ok, within the cap"
        return f"ok, stopped after {self.lies}" if self.is_kept else f"EXCEEDED by ${self.due - CAP:.2f}"


def asked_under_cap(address: str, lie: str, project: Any) -> LyingOutcome:
    """One run: its calls, a cap, 64 in flight at most, two work sessions at once; until nothing more happens."""
    from django.conf import settings

    from judging import judges, runs
    from judging.models import Call, JudgeRun
    from panelbench import environment
    from tests import make

    declared = {"PANELBENCH_PROVIDERS": json.dumps([declaration(address, lie)])}
    settings.PROVIDERS = environment.declared_providers(declared)
    named = {"name": f"Judge of “{lie}” عربي", "provider": f"provider {lie}", "model": MODEL}
    paces = {"timeout": 1 if lie in SLOW else 20, "tries": 2, "concurrency": 64}
    judge = judges.declare(project=project, **named, parameters={"max_tokens": LIMIT}, **paces)
    by_batch = lie.startswith("batch")
    about = {
        "dataset": make.dataset(project, CALLS // 6 if lie in SLOW else CALLS),
        "rubric_version": make.rubric(project),
    }
    run = runs.start_judge_run(judge=judge, budget=CAP, by_batch=by_batch, **about)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        Call.objects.filter(run=run).update(not_before=None)
        _one_round(run.pk, by_batch=by_batch)
        run = JudgeRun.objects.select_related("judge").get(pk=run.pk)
        progress = runs.run_progress(run)
        if progress.finished or run.state != "running":
            break
    counts = own_count(address, lie)
    return LyingOutcome(
        planned=progress.planned,
        sent=counts["asked"],
        models=", ".join(counts["models"]) or "none",
        booked=progress.cost or Decimal(0),
        due=counts["due"],
        lies=counts["lies"],
        largest=counts["largest"],
        elsewhere=counts["elsewhere"],
        state="finished" if progress.finished else run.state,
        reason=run.reason,
    )


def _one_round(run_pk: int, *, by_batch: bool) -> None:
    from django.db import connection

    from judging import batches, work_sessions
    from judging.models import CallBatch

    if by_batch:
        batches.begin_batch(run_pk=run_pk)
        for batch in CallBatch.objects.filter(run=run_pk, ended_at=None):
            batches.carry_out_batch(batch_pk=batch.pk)
        return

    def work() -> None:
        try:
            work_sessions.work_on_run(run_pk)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _worker in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


HEAD = (
    "| lie | in words | calls | models named | sent | booked by us | due by its own count | cap | state | reason "
    "| verdict |\n|---|---|---|---|---|---|---|---|---|---|---|"
)
ABOUT = """# A provider that lies about money

`python -m bench.lying_provider`: a provider in a process of its own, {lies} lies, each asked in {calls} calls under a
cap of ${cap}, at most 64 in flight, by two work sessions at once, on {database}. The declared price is $2 and $60 per
million tokens and the limit of a reply {limit} tokens. *Due* is what the provider counts for itself, whatever its
replies say. The verdict is *ok* if that keeps the cap to the cent, or if the run stopped within two calls that billed
more than was declared. {took:.0f} seconds in all.

"""
AFTER = """

## Lies that no reply shows
An invoice that differs from every reply can't be seen here. Only a limit that is set at the provider helps (a prepaid
account, or its own monthly limit). These rows say how far it goes; they are not counted above.

"""


def _row(lie: str, words: str, outcome: LyingOutcome) -> str:
    def usd(amount: Decimal) -> str:
        return f"${amount.quantize(Decimal('0.0001'), ROUND_HALF_UP):,}"

    cells = [
        lie,
        words,
        outcome.planned,
        outcome.models,
        outcome.sent,
        usd(outcome.booked),
        usd(outcome.due),
        f"${CAP}",
    ]
    row = "| " + " | ".join(map(str, [*cells, outcome.state, outcome.reason.replace("|", "/"), outcome.verdict])) + " |"
    print(row, flush=True)
    return row


def _measured(lies: dict[str, tuple[str, Lie]], address: str) -> list[str]:
    from accounts import people
    from accounts.models import User

    rows = []
    for number, (lie, (words, _answer)) in enumerate(lies.items()):
        lead = User.objects.create_user(f"{lie}@panelbench.test", "correct horse battery", name="Lead")
        project = people.create_project(name=f"Bench of {lie}", slug=f"bench-{number}-{len(lies)}", founder=lead)
        rows.append(_row(lie, words, asked_under_cap(address, lie, project)))
    return rows


def measure_lies() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the provider, until standard input ends")
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--only", action="append", choices=[*LIES, *UNSEEN], help="print this row only")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve())
        return
    from bench import server

    began = time.monotonic()
    with server.database(options.database), lying_provider() as address:
        if options.only:
            _measured({lie: (LIES | UNSEEN)[lie] for lie in options.only}, address)
            return
        print(HEAD)
        rows, unseen = _measured(LIES, address), _measured(UNSEEN, address)
    about = {"lies": len(LIES) - 1, "calls": CALLS, "cap": CAP, "limit": LIMIT, "took": time.monotonic() - began}
    about["database"] = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}[options.database]
    text = ABOUT.format(**about) + "\n".join([HEAD, *rows]) + AFTER + "\n".join([HEAD, *unseen]) + "\n"
    if options.database == "postgresql":
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    measure_lies()
