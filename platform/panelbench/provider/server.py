"""The HTTP server of the simulated provider: its faults (by name), and its counts of requests."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import math
import re
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from ipaddress import ip_address
from random import Random
from typing import Any, Final

import orjson

from panelbench.provider import answers
from panelbench.provider.answers import EMBEDDING_MODEL, MODELS, Completion, compose_reply, spoil_text
from panelbench.provider.batches import BATCH_KINDS, SimulatedBatches, UnknownName
from panelbench.provider.conversing import TURN_BREAKS, compose_turn, planted_turn_break, read_turn_request
from panelbench.provider.shapes import MalformedRequest, Shape, shape_of
from panelbench.provider.writing import BREAKS, compose_writing, planted_break, read_writing_request

OVERLOADED: Final = 529  # Anthropic's status, which is none of HTTP
_LARGEST_BODY: Final = 128 * 2**20  # a file of many requests


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One JSON response; a body of bytes is sent as it is."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    """The misbehaviour that it plays."""


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request on the connection, or ``None`` when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", 0))
    if length > _LARGEST_BODY or "chunked" in headers.get("transfer-encoding", ""):
        return None
    return Request(method, path.partition("?")[0], headers, await reader.readexactly(length))


async def write_response(writer: asyncio.StreamWriter, response: Response) -> None:
    """Send the response and keep the connection open."""
    body = response.body if isinstance(response.body, bytes) else orjson.dumps(response.body)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **response.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    phrase = HTTPStatus(response.status).phrase if response.status != OVERLOADED else "Overloaded"
    writer.write(f"HTTP/1.1 {response.status} {phrase}\r\n{head}\r\n".encode() + body)
    await writer.drain()


# What `sim-broken` plays in turn: replies that came back and are no good ...
SPOILT_REPLIES: Final = (
    "unparsable",
    "out_of_range",
    "truncated",
    "refusal",
    "content_filter",
    "empty",
    "ratio",
    "wrong_keys",
)
# ... and replies that did not come.
OUTAGES: Final = ("rate_limit", "server_error", "dropped", "slow")
IN_TURN: Final = (*SPOILT_REPLIES, *OUTAGES)

# All but the first two stop a run or change the next request, so they are played only when asked for by name.
_ERRORS: Final = {
    "rate_limit": (429, "rate_limit_exceeded", "Rate limit reached; try again in a second."),
    "server_error": (500, "server_error", "The simulated server had an error."),
    "overloaded": (503, "overloaded", "The simulated server is overloaded."),
    "quota": (429, "insufficient_quota", "You exceeded your current quota."),
    "unauthorized": (401, "invalid_api_key", "Incorrect API key provided: {key}."),
    "forbidden": (403, "forbidden", "This project may not use the model."),
    "no_schema": (400, "unsupported_value", "Invalid parameter: 'response_format' of type 'json_schema'."),
    "no_format": (400, "unsupported_value", "'response_format' is not supported with this model."),
    "no_structure": (400, "unsupported_value", "This server supports neither response_format nor tools."),
    "no_temperature": (400, "unsupported_value", "Unsupported value: 'temperature' does not support 0 here."),
    "no_max_tokens": (
        400,
        "unsupported_parameter",
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    ),
    "no_max_completion_tokens": (422, "extra_forbidden", "Extra inputs are not permitted: 'max_completion_tokens'."),
    "no_seed": (400, "unsupported_parameter", "Unrecognized request argument supplied: 'seed'."),
    "no_logprobs": (400, "unsupported_parameter", "This model does not support 'logprobs'."),
    "no_system": (400, "BadRequestError", "System role not supported"),
}
# The same in the words of other servers: FastAPI's validation (vLLM), gateways, chat templates, constrained decoding.
_IN_OTHER_WORDS: Final[dict[str, tuple[int, Any]]] = {
    "loc_response_format": (
        422,
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}
            ]
        },
    ),
    "loc_temperature": (
        422,
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}
            ]
        },
    ),
    "bare_temperature": (400, {"error": "Unsupported parameter: temperature"}),
    "two_roles": (400, {"object": "error", "message": "Only user and assistant roles are supported!"}),
    "unnamed_schema": (400, {"error": {"message": "Bad Request"}}),
    "unnamed_format": (400, {"error": {"message": "Bad Request"}}),
    "unnamed_structure": (400, "Bad Request"),
    "unnamed_temperature": (400, {"message": "Invalid request."}),
    "unnamed": (400, {"error": {"message": "Bad Request"}}),
    "guided_decoding": (
        500,
        {"error": {"message": "Guided decoding failed: the grammar can't be compiled.", "code": 500}},
    ),
}
_PARAMETERS: Final = {
    "loc_response_format": "response_format",
    "loc_temperature": "temperature",
    "bare_temperature": "temperature",
    "unnamed_temperature": "temperature",
    "unnamed_format": "response_format",
    "no_schema": "response_format",
    "no_format": "response_format",
    "no_temperature": "temperature",
    "no_max_tokens": "max_tokens",
    "no_max_completion_tokens": "max_completion_tokens",
    "no_seed": "seed",
    "no_logprobs": "logprobs",
}
KINDS: Final = tuple(
    dict.fromkeys((*IN_TURN, *_ERRORS, *_IN_OTHER_WORDS, "not_json", "error_in_reply", "no_usage", "plain_refusal"))
)


def applies(kind: str, body: dict[str, object]) -> bool:
    """Whether this fault concerns a part of this request."""
    if kind in ("no_schema", "unnamed_schema", "guided_decoding"):
        reply_format = body.get("response_format")
        return isinstance(reply_format, dict) and reply_format.get("type") == "json_schema"
    if kind in ("no_structure", "unnamed_structure"):
        return "response_format" in body or "tools" in body
    if kind in ("no_system", "two_roles"):
        messages = body.get("messages")
        return isinstance(messages, list) and any(message.get("role") == "system" for message in messages)
    return _PARAMETERS.get(kind, "model") in body


def error(kind: str, *, key: str = "", retry_after: str = "1") -> Response | None:
    """The error response of this kind; None if the kind is not an error. An unauthorized reply repeats the key."""
    if kind in _IN_OTHER_WORDS:
        status, words = _IN_OTHER_WORDS[kind]
        return Response(words, status, kind=kind)
    if kind not in _ERRORS:
        return None
    status, code, message = _ERRORS[kind]
    headers = {"retry-after": retry_after} if kind == "rate_limit" else {}
    refused = refusal(status, code, message.format(key=key), parameter=_PARAMETERS.get(kind), headers=headers)
    return replace(refused, kind=kind)


def refusal(
    status: int, code: str, message: str, *, parameter: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """An error in OpenAI's format."""
    words = {"message": f"{message} (simulated)", "type": code, "param": parameter, "code": code}
    return Response({"error": words}, status, headers or {})


CHAT: Final = "/v1/chat/completions"
_CREATED: Final = 1_767_225_600  # 1 January 2026: replies don't depend on the clock
_DIMENSIONS: Final = 64
_SERVED: Final = "2026-01"


class _Dropped(Exception):
    """The connection is to be closed without a reply."""


@dataclass(slots=True)
class RequestCounts:
    """The counts that tests compare with a run. ``prompts``: completions sent, by request body; ``batch_lines``: the
    requests of ``batches`` that were answered; ``written_breaks``: replies that break a rule of generation, by rule;
    ``turn_breaks``: the same of simulated conversations, as ``step:rule``.

    ``tokens_in`` and ``tokens_out``: the billed tokens of every completion, delivered or not.
    """

    requests: int = 0
    answered: int = 0
    abandoned: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    misbehaviours: Counter[str] = field(default_factory=Counter)
    prompts: Counter[str] = field(default_factory=Counter)
    written_breaks: Counter[str] = field(default_factory=Counter)
    turn_breaks: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    batch_lines: int = 0

    def as_json(self) -> dict[str, Any]:
        """The counts by name; keys as text."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"statuses": {str(status): count for status, count in self.statuses.items()}}


class SimulatedProvider:
    """One simulated endpoint. All its state is in one process and one event loop."""

    def __init__(
        self,
        *,
        seed: int = 7,
        latency: float = 0.05,
        rates: Mapping[str, float] | None = None,
        written_breaks: Mapping[str, float] | None = None,
    ) -> None:
        self.seed = seed
        self.latency = latency
        self.slowness = 10.0
        self._changed = asyncio.Event()  # by `_control`
        self.rates = dict(rates or {})
        self.written_breaks: dict[str, float] = dict(written_breaks or {})
        self.turn_breaks: dict[str, dict[str, float]] = {}
        self.required_key = ""
        self.dearer = 0
        self.retry_after = "1"
        self.limits: dict[str, str] = {}
        self.counts = RequestCounts()
        self.batches = SimulatedBatches(answer=self._line, clock=time.monotonic, seed=seed)
        self._scripted: deque[str] = deque()
        self._turn = 0
        self._luck = Random(seed)
        self._routes: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("GET", "/healthz"): lambda _: Response({"status": "ok", "simulated": True}),
            ("GET", "/v1/models"): lambda _: Response({"object": "list", "data": [_card(name) for name in MODELS]}),
            ("GET", "/control"): lambda _: Response({"simulated": True, **self.counts.as_json()}),
            ("POST", "/control"): self._control,
            ("POST", "/v1/embeddings"): _embeddings,
        }

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request on one connection until the client leaves."""
        try:
            while request := await read_request(reader):
                response = await self._respond(request, writer)
                if reader.at_eof() or writer.is_closing():
                    self.counts.abandoned += 1
                    return
                await self._send(request, response, writer)
        except _Dropped:
            writer.transport.abort()
        except asyncio.CancelledError:
            pass  # the server stops; asyncio's streams of Python 3.11 would log a cancelled conversation as an error
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client left, or does not speak HTTP: either way there is nobody to answer
        finally:
            writer.close()

    async def _send(self, request: Request, response: Response, writer: asyncio.StreamWriter) -> None:
        if request.path == CHAT or shape_of(request.path):
            self.counts.statuses[response.status] += 1
            if response.status == 200:
                self.counts.answered += 1
                self.counts.prompts[hashlib.sha256(request.body).hexdigest()] += 1
        await write_response(writer, response)

    async def _respond(self, request: Request, writer: asyncio.StreamWriter) -> Response:
        if request.path == "/control" and not ip_address(writer.get_extra_info("peername")[0]).is_loopback:
            return refusal(403, "forbidden", "Control is for this machine only.")
        try:
            if (request.method, request.path) == ("POST", CHAT):
                return await self._complete(request)
            if request.method == "POST" and (shape := shape_of(request.path)):
                return await self._complete_in(shape, request)
            if request.path.startswith(("/v1/files", "/v1/batches")):
                return self._batched(request)
            route = self._routes.get((request.method, request.path))
            return route(request) if route else refusal(404, "not_found", f"No {request.path} here.")
        except UnknownName as missing:
            return refusal(404, "not_found", f"There is no {missing}.")
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
            return refusal(400, "invalid_request_error", f"This request cannot be read: {error!r}.")

    def _control(self, request: Request) -> Response:
        """Change the behaviour: latency, slowness, rates, required_key, next (a list of kinds), reset.

        Also dearer (tokens of hidden reasoning by which every reply is longer than the one before), retry_after (the
        wait that a rate limit asks for), limits (headers of every completion), batch_seconds (until a batch ends) and
        next_batches (kinds of the next batches). written_breaks: shares of the dialogues and texts that break a rule;
        turn_breaks: shares of the turns of simulated conversations, by step: {"utterance": {"inverted_role": 0.1}}.
        """
        settings = orjson.loads(request.body)
        scripted = settings.get("next", [])
        kinds = settings.get("next_batches", [])
        if unknown := {*kinds} - {*BATCH_KINDS, ""}:
            return refusal(400, "unknown_kind", f"No such misbehaviour of a batch: {sorted(unknown)}.")
        if unknown := {*scripted, *settings.get("rates", {})} - {*KINDS, "none"}:
            return refusal(400, "unknown_kind", f"No such misbehaviour: {sorted(unknown)}.")
        if unknown := {*settings.get("written_breaks", {})} - {*BREAKS}:
            return refusal(400, "unknown_kind", f"No such rule to break: {sorted(unknown)}.")
        wanted = {(step, code) for step, codes in settings.get("turn_breaks", {}).items() for code in codes}
        if unknown := {f"{step}:{code}" for step, code in wanted if code not in TURN_BREAKS.get(step, ())}:
            return refusal(400, "unknown_kind", f"No such rule of a turn to break: {sorted(unknown)}.")
        if settings.get("reset"):
            self.counts, self._turn, self._luck = RequestCounts(), 0, Random(self.seed)
            self._scripted.clear()
            self.batches.kinds.clear()
        names = ("latency", "slowness", "rates", "written_breaks", "turn_breaks", "required_key", "dearer")
        for name in (*names, "retry_after", "limits"):
            setattr(self, name, settings.get(name, getattr(self, name)))
        self._scripted.extend(scripted)
        self.batches.kinds.extend(kinds)
        self.batches.seconds = settings.get("batch_seconds", self.batches.seconds)
        self._changed.set()
        self._changed = asyncio.Event()
        return Response({"simulated": True, **self.counts.as_json()})

    async def _complete(self, request: Request) -> Response:
        counts = self.counts
        counts.requests += 1
        counts.in_flight += 1
        counts.peak_in_flight = max(counts.peak_in_flight, counts.in_flight)
        try:
            return await self._completion(request)
        finally:
            counts.in_flight -= 1

    async def _complete_in(self, shape: Shape, request: Request) -> Response:
        """A completion in the shape of another API."""
        try:
            asked = shape.asked(request.path, request.headers, orjson.loads(request.body))
        except MalformedRequest as malformed:
            status, words, headers = shape.refused(400, "", str(malformed), self.retry_after)
            return Response(words, status, headers)
        authorization = f"Bearer {request.headers.get(shape.key_header, '')}"
        inner = Request("POST", CHAT, {"authorization": authorization}, orjson.dumps(asked))
        response = await self._complete(inner)
        if response.status == 200:
            is_completion = isinstance(response.body, dict) and "choices" in response.body
            return replace(response, body=shape.replied(response.body)) if is_completion else response
        message = response.body["error"]["message"] if "error" in response.body else str(response.body)
        status, words, headers = shape.refused(response.status, response.kind, message, self.retry_after)
        return Response(words, status, {**headers, **self.limits}, kind=response.kind)

    async def _completion(self, request: Request) -> Response:
        body = orjson.loads(request.body)
        model, _, named = body["model"].partition(":")
        if model not in MODELS or named not in ("", *KINDS):
            return refusal(404, "model_not_found", f"There is no model {body['model']!r}.", parameter="model")
        kind = self._misbehaviour(model, named)
        if kind and applies(kind, body):
            self.counts.misbehaviours[kind] += 1
        else:
            kind = None
        if kind in ("slow", "dropped", "not_json"):  # billed, although the client gets no usable reply
            self._bill(body, _chat_completion(body, model, self._completed(body, model, None, request), self._hidden))
        await self._delay(kind)
        if kind == "dropped":
            raise _Dropped
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.required_key and key != self.required_key:
            kind = "unauthorized"
        if kind and (failure := error(kind, key=key, retry_after=self.retry_after)):
            return replace(failure, headers={**failure.headers, **self.limits})
        return self._reply(body, model, kind, request)

    def _batched(self, request: Request) -> Response:
        """Files and batches."""
        if self.required_key and request.headers.get("authorization") != f"Bearer {self.required_key}":
            return error("unauthorized", key="?") or Response({})
        _empty, _version, what, *rest = request.path.split("/")
        match request.method, what, rest:
            case "POST", "files", []:
                return Response(self.batches.store_file(request.headers["content-type"], request.body))
            case "DELETE", "files", [name]:
                return Response(self.batches.delete(name))
            case "GET", "files", [name, "content"]:
                return Response(self.batches.content(name))
            case "POST", "batches", []:
                self.counts.batches += 1
                made, kind = self.batches.create(orjson.loads(request.body))
                if kind == "unanswered":
                    raise _Dropped
                return Response(made)
            case "GET", "batches", []:
                return Response(self.batches.listed())
            case "GET", "batches", [name]:
                return Response(self.batches.shown(name))
            case "POST", "batches", [name, "cancel"]:
                return Response(self.batches.cancel(name))
        return refusal(404, "not_found", f"No {request.path} here.")

    def _line(self, body: dict[str, Any]) -> tuple[int, Any] | None:
        """Status and body for one line of a batch; None where it gets no result, though it is billed."""
        request = Request("POST", CHAT, {}, orjson.dumps(body))
        model, _, named = body["model"].partition(":")
        if model not in MODELS or named not in ("", *KINDS):
            answered = refusal(404, "model_not_found", f"There is no model {body['model']!r}.", parameter="model")
            return answered.status, answered.body
        kind = self._misbehaviour(model, named)
        kind = kind if kind and applies(kind, body) else None
        if kind and (failure := error(kind, retry_after=self.retry_after)):
            return failure.status, failure.body
        answered = self._reply(body, model, None if kind in ("slow", "dropped") else kind, request)
        self.counts.batch_lines += 1
        self.counts.prompts[hashlib.sha256(request.body).hexdigest()] += 1
        return None if kind == "dropped" else (answered.status, answered.body)

    async def _delay(self, kind: str | None) -> None:
        """Wait as long as a reply takes; a change of that holds for the requests in flight too."""
        clock = asyncio.get_running_loop().time
        started = clock()
        while (left := started + (self.slowness if kind == "slow" else self.latency) - clock()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def _reply(self, body: dict[str, Any], model: str, kind: str | None, request: Request) -> Response:
        if body.get("stream"):
            return refusal(400, "unsupported_value", "This server does not stream.", parameter="stream")
        if kind == "not_json":
            return Response("<html>simulated gateway page</html>")
        if kind == "error_in_reply":
            return Response({"error": {"code": 503, "message": "No server is free. (simulated)"}})
        fields = _chat_completion(body, model, self._completed(body, model, kind, request), self._hidden)
        if kind != "slow":
            self._bill(body, fields)
        if read_writing_request(body) and (broken := planted_break(body, self.written_breaks, self.seed)):
            self.counts.written_breaks[broken] += 1
        elif (turn := self._planted_in_turn(body, request)) and turn[1]:
            self.counts.turn_breaks[":".join(turn)] += 1
        if kind == "no_usage":
            del fields["usage"]
        return Response(fields, headers=self.limits)

    def _completed(self, body: dict[str, Any], model: str, kind: str | None, request: Request) -> Completion:
        if wanted := read_writing_request(body):
            broken = planted_break(body, self.written_breaks, self.seed)
            written = compose_writing(wanted, model=model, rng=self._rng(body, request.body), broken=broken)
            return spoil_text(kind, written) if kind else written
        if turn := read_turn_request(body):
            _step, broken = self._planted_in_turn(body, request)
            said = compose_turn(turn, rng=self._rng(body, request.body), broken=broken)
            return spoil_text(kind, said) if kind else said
        return compose_reply(
            answers.read_score_request(body), model=model, rng=self._rng(body, request.body), spoilt=kind
        )

    def _planted_in_turn(self, body: dict[str, Any], request: Request) -> tuple[str, str]:
        """Above temperature 0, the same request without a seed is another draw every time."""
        varies = bool(body.get("temperature")) and body.get("seed") is None
        again = self.counts.prompts[hashlib.sha256(request.body).hexdigest()] if varies else 0
        return planted_turn_break(body, self.turn_breaks, self.seed, again)

    @property
    def _hidden(self) -> int:
        return self.dearer * self.counts.answered

    def _bill(self, body: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self.counts.tokens_in += fields["usage"]["prompt_tokens"]
        self.counts.tokens_out += fields["usage"]["completion_tokens"]

    def _misbehaviour(self, model: str, named: str) -> str | None:
        if self._scripted:
            scripted = self._scripted.popleft()
            return None if scripted == "none" else scripted
        if named:
            return named
        if model == "sim-broken":
            self._turn += 1
            return IN_TURN[(self._turn - 1) % len(IN_TURN)]
        draw = self._luck.random()
        for kind, share in self.rates.items():
            if (draw := draw - share) < 0:
                return kind
        return None

    def _rng(self, body: Mapping[str, Any], raw: bytes) -> Random:
        """Determined by the conversation; above temperature 0 also by the seed, else by the number of earlier
        identical requests."""
        fixed = [self.seed, body["model"], body["messages"]]
        if temperature := body.get("temperature"):
            again = self.counts.prompts[hashlib.sha256(raw).hexdigest()]
            fixed += [temperature, body.get("seed", again)]
        return Random(orjson.dumps(fixed))


def _chat_completion(body: Mapping[str, Any], model: str, completion: Completion, hidden: int = 0) -> dict[str, Any]:
    """The completion, after ``hidden`` tokens of reasoning; a token limit applies to both together."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    content, ending = completion.content, completion.finish_reason
    if limit and hidden + _tokens(content) > limit:
        hidden = min(hidden, limit)
        content, ending = content.encode()[: 4 * (limit - hidden)].decode(errors="ignore"), "length"
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": completion.refusal}
    logged = _logged_tokens(content) if body.get("logprobs") else None
    if (tools := body.get("tools")) and content and ending == "stop":
        function = {"name": tools[0]["function"]["name"], "arguments": content}
        called = [{"id": "call_simulated", "type": "function", "function": function}]
        message, ending, logged = {**message, "content": None, "tool_calls": called}, "tool_calls", None
    if completion.reasoning is not None:
        message["reasoning_content"] = completion.reasoning
    return {
        "id": f"chatcmpl-simulated-{hashlib.sha256(orjson.dumps(body)).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": f"{model}-{_SERVED}",
        "system_fingerprint": "simulated",
        "choices": [{"index": 0, "message": message, "logprobs": logged, "finish_reason": ending}],
        "usage": _usage(body, content + (completion.reasoning or ""), hidden),
    }


def _logged_tokens(content: str) -> dict[str, Any]:
    """The tokens with their probabilities: a number n is n with .6, n - 1 with .3 and n + 1 with .1."""
    tokens = []
    for token in re.findall(r"\d+|\D{1,4}", content):
        shares = {token: 1.0}
        if token.isdigit():
            shares = {token: 0.6, str(int(token) - 1): 0.3, str(int(token) + 1): 0.1}
        ranked = [{"token": other, "logprob": math.log(share)} for other, share in shares.items()]
        tokens.append({**ranked[0], "top_logprobs": ranked})
    return {"content": tokens}


def _usage(body: Mapping[str, Any], text: str, hidden: int) -> dict[str, int]:
    prompt = sum(4 + _tokens(str(message.get("content"))) for message in body["messages"])
    out = hidden + _tokens(text)
    return {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out}


def _tokens(text: str) -> int:
    """About four bytes of UTF-8 per token, so that scripts other than Latin need more tokens, as with real models."""
    return -(-len(text.encode()) // 4)


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "simulated"}


def _embeddings(request: Request) -> Response:
    body = orjson.loads(request.body)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    packed = body.get("encoding_format") == "base64"
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else vector,
        }
        for index, vector in enumerate(map(_embedding, texts))
    ]
    used = sum(map(_tokens, texts))
    usage = {"prompt_tokens": used, "total_tokens": used}
    return Response({"object": "list", "model": f"{EMBEDDING_MODEL}-{_SERVED}", "data": rows, "usage": usage})


def _embedding(text: str) -> list[float]:
    """Hashed three-letter pieces as a unit vector: texts with common pieces have similar vectors."""
    vector = [0.0] * _DIMENSIONS
    padded = f"  {text.casefold()} "
    for start in range(len(padded) - 2):
        digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=2).digest()
        vector[digest[0] % _DIMENSIONS] += 1 if digest[1] % 2 else -1
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]
