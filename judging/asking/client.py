"""Send one request to one model: the only importer of ``openai``, which it imports late (0.9 s).

A client belongs to the event loop it was made in: ``async with connect(endpoint) as connection`` inside the task that
uses it. Every way a request can fail comes out as ``Unavailable`` (worth trying again) or ``Refused`` (recorded, not
tried again). The key of an endpoint is read from the environment when connecting and is in no representation, log or
message.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast
from urllib.parse import urljoin, urlsplit

import orjson

from accounts.inputs import storable, storable_value
from judging.asking.limit_headers import Quota, read_quotas, retry_after
from judging.asking.refused_parts import (
    FORMATS,
    RESERVED,
    SYSTEM_ROLE,
    TOKEN_LIMITS,
    names_no_cause,
    next_guess,
    refused_part,
)
from judging.prompts import Message
from judging.replies import CUT_OFF, VERDICTS_TOOL, answer_text, plain_text

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_OUT_OF_MONEY: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TOGETHER: Final = {"top_logprobs": "logprobs"}  # the first is left out with the second
_MOST_IN_VAIN: Final = 2  # questions
_MANY_BRACKETS: Final = 300
_RENAMED: Final = {TOKEN_LIMITS[0]: TOKEN_LIMITS[1], TOKEN_LIMITS[1]: TOKEN_LIMITS[0]}
LARGEST_BODY: Final = 8 * 2**20  # bytes of a reply that are read; of one that is packed, fewer: they unpack
LARGEST_PACKED: Final = 2**17
LARGEST_FILE: Final = 2**28  # bytes of the results of a batch
_LARGE: Final = 2**16  # bytes from which a body is read in a thread of its own, away from the event loop
_KEPT: Final = 2**18  # bytes of a body that are stored as they came; of a larger one, the texts are shortened
KEPT_TEXT: Final = 20_000  # characters
LONGEST_TEXT: Final = 200_000  # characters of a reply's text that are kept and read
_TEXT_FIELDS: Final = ("content", "refusal", "reasoning_content", "reasoning")
_GAVE_UP: Final = frozenset({408, 504, 524})  # the time was up: what was under way by then may have been paid for


class ProviderUnavailable(Exception):
    """No reply this time: rate limit, server error, timeout, lost connection. Try again, after ``retry_after``.

    ``maybe_paid`` says that the provider may have worked and count it, and ``counted`` the tokens in and out that an
    error counts; ``body`` is what came, shortened, where that can't be read as a reply."""

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        maybe_paid: bool = False,
        body: str = "",
        quotas: Mapping[str, Quota] | None = None,
        status: int | None = None,
        counted: tuple[int | None, int | None] = (None, None),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.maybe_paid = maybe_paid
        self.body = body
        self.quotas = quotas or {}
        self.status = status
        self.counted = counted


class ProviderRefused(Exception):
    """The provider will not answer this request. ``fatal`` means it will not answer any: pause the run.

    ``maybe_paid`` and ``counted`` as of ``ProviderUnavailable``."""

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        fatal: bool = False,
        maybe_paid: bool = False,
        counted: tuple[int | None, int | None] = (None, None),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.fatal = fatal
        self.maybe_paid = maybe_paid
        self.counted = counted


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider as the operator declared it. Holds the name of the variable that holds the key, never the key."""

    name: str
    base_url: str
    api_key_variable: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"endpoint {self.name!r}: base_url must start with http:// or https://")


@dataclass(frozen=True, slots=True)
class Connection:
    """An open client, and what each model has refused over it so far, so that it is not sent again.

    ``answered``: the models that have replied. ``in_vain``: by model, how many questions were refused without a cause,
    whatever was left out. One call at a time finds out what a model takes, under its lock in ``finding_out``.
    """

    endpoint: Endpoint
    client: AsyncOpenAI = field(repr=False)
    http: httpx2.AsyncClient = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    refused: dict[str, list[str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    in_vain: dict[str, int] = field(default_factory=dict)
    finding_out: dict[str, asyncio.Lock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """One reply, as it came. ``dropped`` names what the model would not take, so the request went out without it."""

    text: str
    finish_reason: str | None
    refusal: str | None
    reasoning: str
    tokens_in: int | None
    tokens_out: int | None
    served_model: str
    latency: float
    raw: dict[str, Any]
    dropped: tuple[str, ...] = ()
    quotas: Mapping[str, Quota] = field(default_factory=dict)

    @property
    def readable(self) -> str:
        """The text to parse: some servers put all of it where the reasoning belongs and leave the content empty.

        Reasoning that was cut off is no answer.
        """
        return self.text if self.text.strip() or self.finish_reason in CUT_OFF else self.reasoning


@asynccontextmanager
async def connect(endpoint: Endpoint, *, refused: Mapping[str, list[str]] | None = None) -> AsyncIterator[Connection]:
    """A connection made in the running loop and closed there. Raises ``Refused`` (fatal) when its key is not set.

    No redirect is followed: it would send the rubric and the items to a host that nobody declared.

    ``refused`` is what models are known to refuse; what they refuse now is added to its lists."""
    import openai

    key = _key(endpoint)
    kind = openai.DefaultAioHttpClient if find_spec("aiohttp") else openai.DefaultAsyncHttpxClient
    http = kind(event_hooks={"response": [_bound]}, verify=_trusted_certificates(), follow_redirects=False)
    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=endpoint.base_url,
        max_retries=0,
        http_client=http,
        # OPENAI_ORG_ID and OPENAI_PROJECT_ID of the environment are nobody's business but OpenAI's.
        default_headers={
            "OpenAI-Organization": openai.Omit(),  # type: ignore[dict-item]
            "OpenAI-Project": openai.Omit(),  # type: ignore[dict-item]
            "Accept-Encoding": "identity",
        },
    )
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": "application/json"}
    headers |= {"Accept-Encoding": "identity", "User-Agent": client.user_agent}
    async with client:
        yield Connection(endpoint, client, http, headers, refused=dict(refused or {}))


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """What every connection of this process trusts, read once: it takes 25 to 80 ms, in which the loop stands still."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


def _key(endpoint: Endpoint) -> str:
    """The key of the endpoint from the environment; a server of one's own may need none."""
    if not endpoint.api_key_variable:
        return "none"
    key = os.environ.get(endpoint.api_key_variable, "").strip()
    if not key:
        raise ProviderRefused(
            f"Set the variable {endpoint.api_key_variable} to the key of {endpoint.name}.", fatal=True
        )
    if not key.isascii():
        raise ProviderRefused(
            f"The variable {endpoint.api_key_variable} contains characters that a key cannot have.", fatal=True
        )
    return key


async def ask(
    connection: Connection,
    *,
    model: str,
    messages: Sequence[Message],
    parameters: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    timeout: float,  # noqa: ASYNC109 - it is part of what is asked, and kept by asyncio.timeout below
) -> ProviderAnswer:
    """Put one question and return the reply, whatever it says.

    A format or parameter that the model refuses is left out and the question put again (json_schema, then json_object,
    then a tool call, then no format): such refusals cost nothing. One call finds out what the model takes; others that
    were refused meanwhile wait for it. Raises ``Unavailable`` or ``Refused``; nothing else. ``ValueError`` is for a
    caller's mistake: a reserved parameter.
    """
    if reserved := RESERVED & parameters.keys():
        raise ValueError(f"not a parameter of a judge: {', '.join(sorted(reserved))}")
    refused = connection.refused.setdefault(model, [])
    lock = connection.finding_out.setdefault(model, asyncio.Lock())

    async def put(left_out: Sequence[str]) -> ProviderAnswer:
        body, dropped = request_body(model, messages, parameters, schema, left_out)
        started = time.perf_counter()
        response = await exchange(connection, "/chat/completions", body=body, seconds=timeout)
        latency = time.perf_counter() - started
        large = len(response.content) > _LARGE
        reply = await asyncio.to_thread(_reply, connection, response) if large else _reply(connection, response)
        connection.answered.add(model)
        return _answer(reply, latency, dropped, read_quotas(response.headers))

    while True:
        known = tuple(refused)
        try:
            return await put(known)
        except (Unsupported, _Unnamed) as complaint:
            first = complaint
        async with lock:
            if tuple(refused) != known:
                continue  # another call has found out more
            if isinstance(first, _Unnamed) and not _may_guess(connection, model):
                raise first.refusal
            return await _find_out(connection, model, parameters, first, put)


def _may_guess(connection: Connection, model: str) -> bool:
    """Whether a refusal without a cause may be about the form of the request: not where the model has replied to that
    form, nor where guessing has failed twice."""
    return model not in connection.answered and connection.in_vain.get(model, 0) < _MOST_IN_VAIN


async def _find_out(
    connection: Connection,
    model: str,
    parameters: Mapping[str, Any],
    complaint: Unsupported | _Unnamed,
    put: Callable[[Sequence[str]], Awaitable[ProviderAnswer]],
) -> ProviderAnswer:
    """Put the question without what the model refuses, step by step. What it names is kept for all other calls at once;
    what was only guessed, when it has replied without that."""
    refused, guesses = connection.refused[model], list[str]()
    unnamed: ProviderRefused | None = None
    while True:
        if isinstance(complaint, Unsupported):
            # A guess was wrong or not enough if something is named now; the name is known for certain.
            if complaint.what not in refused:
                refused.append(complaint.what)
            keep_token_limit(parameters, refused)
        else:
            unnamed = unnamed or complaint.refusal
            guess = next_guess(complaint.body, [*refused, *guesses])
            if guess is None:
                connection.in_vain[model] = connection.in_vain.get(model, 0) + 1
                raise unnamed
            guesses.append(guess)
        try:
            answer = await put([*refused, *(guess for guess in guesses if guess not in refused)])
        except (Unsupported, _Unnamed) as next_complaint:
            complaint = next_complaint
            continue
        refused.extend(guess for guess in guesses if guess not in refused)
        return answer


def keep_token_limit(parameters: Mapping[str, Any], refused: Sequence[str]) -> None:
    """A limit on spending is renamed, not dropped."""
    if any(name in parameters for name in TOKEN_LIMITS) and all(name in refused for name in TOKEN_LIMITS):
        raise ProviderRefused(
            "The model accepts no limit on the tokens of a reply: neither max_tokens nor max_completion_tokens."
        )


class Unsupported(Exception):
    """The model refused one named part of the request, and the question can be put without it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class _Unnamed(Exception):
    """The provider refused the request and named no cause; holds the refusal and the body."""

    def __init__(self, refusal: ProviderRefused, body: Mapping[str, Any]) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.body = body


def request_body(
    model: str,
    messages: Sequence[Message],
    parameters: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    refused: Sequence[str],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request without what the model refuses, and what was left out of it."""
    dropped = [name for name in parameters if name in refused or _TOGETHER.get(name) in refused]
    kept = {name: value for name, value in parameters.items() if name not in dropped}
    kept |= {_RENAMED[name]: parameters[name] for name in dropped if _RENAMED.get(name, name) not in {name, *refused}}
    if SYSTEM_ROLE in refused and messages[0]["role"] == "system":
        messages = _without_system_role(messages)
        dropped.append(SYSTEM_ROLE)
    body: dict[str, Any] = {"model": model, "messages": list(messages), **kept}
    if schema is not None:
        chosen = reply_form(refused)
        dropped += FORMATS[: FORMATS.index(chosen)]
        body |= _response_format(chosen, schema)
    return body, tuple(dropped)


def _without_system_role(messages: Sequence[Message]) -> list[Message]:
    """The same words, with those of the system message first in the user's."""
    rubric, asked, *rest = messages
    return [{"role": "user", "content": f"{rubric['content']}\n\n{asked['content']}"}, *rest]


def reply_form(refused: Sequence[str]) -> str:
    """The strictest form of a reply that a model has not refused."""
    return next(form for form in FORMATS if form == "none" or form not in refused)


def _response_format(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "none":
        return {}
    if kind == "tool_call":
        function = {"name": VERDICTS_TOOL, "description": "The verdicts on the material.", "parameters": dict(schema)}
        chosen = {"type": "function", "function": {"name": VERDICTS_TOOL}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}
    if kind == "json_object":
        return {"response_format": {"type": kind}}
    return {"response_format": {"type": kind, kind: {"name": "verdicts", "strict": True, "schema": dict(schema)}}}


async def exchange(
    connection: Connection,
    path: str,
    *,
    body: dict[str, Any] | None = None,
    file: tuple[str, bytes] | None = None,
    remove: bool = False,
    seconds: float,
) -> httpx2.Response:
    """The HTTP exchange alone (GET or, to `remove`, DELETE without a body), with every failure sorted, in a deadline.

    Raises ``Unavailable``, ``Refused``, and ``Unsupported`` for what a model refuses by name."""
    import httpx2
    import openai

    too_late = f"No reply within {seconds:g} seconds."
    try:
        async with asyncio.timeout(seconds):
            if body is None:
                send = connection.client.delete if remove else connection.client.get
                return await send(path, cast_to=httpx2.Response, options={"timeout": seconds})
            if file is not None:
                form: Any = {"timeout": seconds, "headers": {"Content-Type": "multipart/form-data"}}
                whole: Any = {"cast_to": httpx2.Response, "body": body, "files": [("file", file)], "options": form}
                return cast("httpx2.Response", await connection.client.post(path, **whole))
            response = await _post(connection, path, body, seconds)
    except openai.APIStatusError as error:
        _sort(connection, error.response, body or {})
    except _TooLarge as too_large:
        raise _overflown(connection, too_large) from None
    except TimeoutError:
        raise ProviderUnavailable(too_late, maybe_paid=True) from None
    except (openai.APIConnectionError, httpx2.RequestError) as error:
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
        # The SDK's aiohttp transport calls every lost or refused connection a ConnectTimeout.
        late = isinstance(cause, httpx2.TimeoutException) and not isinstance(cause, httpx2.ConnectTimeout)
        reason = too_late if late else _scrubbed(connection, f"No connection: {_no_connection(cause)}")
        raise ProviderUnavailable(reason, maybe_paid=not _never_connected(error)) from None
    except UnicodeEncodeError:
        raise ProviderRefused("The prompt contains half a surrogate pair, which cannot be sent.") from None
    return response if response.is_success else _sort(connection, response, body)


async def _post(connection: Connection, path: str, body: Mapping[str, Any], seconds: float) -> httpx2.Response:
    """The request by the SDK's transport alone: its own `post` takes as much processor time again."""
    import httpx2

    try:
        content = orjson.dumps(body)
    except TypeError:  # half a surrogate pair, or a whole number beyond 64 bits
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    address = _address(f"{connection.endpoint.base_url.rstrip('/')}{path}")
    extensions = {"timeout": httpx2.Timeout(seconds).as_dict()}
    sent = httpx2.Request("POST", address, headers=connection.headers, content=content, extensions=extensions)
    try:
        return await connection.http.send(sent)
    except Exception as error:
        if isinstance(error, httpx2.RequestError | _TooLarge | TimeoutError):
            raise
        raise httpx2.TransportError(str(error), request=sent) from error  # such as a reply that is not HTTP


@cache
def _address(text: str) -> httpx2.URL:
    import httpx2

    return httpx2.URL(text)


class _TooLarge(Exception):
    """A body that is longer than anything we read; holds how it began."""

    def __init__(self, status: int, start: bytes) -> None:
        super().__init__(f"a body of more than {len(start)} bytes")
        self.status = status
        self.start = start


async def _bound(response: httpx2.Response) -> None:
    """Have the body of a response read only up to its limit."""
    packed = response.headers.get("content-encoding", "identity") != "identity"
    largest = LARGEST_FILE if response.request.url.path.endswith("/content") else LARGEST_BODY
    response.stream = _bounded()(response, LARGEST_PACKED if packed else largest)


@cache
def _bounded() -> Callable[[httpx2.Response, int], httpx2.AsyncByteStream]:
    """A stream that ends in ``_TooLarge`` beyond its limit; made late, for httpx2 is imported late."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, response: httpx2.Response, limit: int) -> None:
            self.stream: Any = response.stream
            self.status, self.limit = response.status_code, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read, start = 0, b""
            async for chunk in self.stream:
                read += len(chunk)
                start += chunk[: max(0, KEPT_TEXT - len(start))]
                if read > self.limit:
                    raise _TooLarge(self.status, start)
                yield chunk

        async def aclose(self) -> None:
            await self.stream.aclose()

    return Bounded


def _overflown(connection: Connection, too_large: _TooLarge) -> ProviderUnavailable | ProviderRefused:
    body = storable(too_large.start.decode("utf-8", "replace"))
    if too_large.status >= 400:
        return _failure(status=too_large.status, code="", message=_scrubbed(connection, body), headers={})
    return ProviderUnavailable(f"The reply is longer than {LARGEST_BODY // 2**20} MB.", maybe_paid=True, body=body)


def _never_connected(error: BaseException | None) -> bool:
    """Whether a request did not even reach the endpoint; in doubt, it did."""
    import httpx2

    while error is not None:
        names = {ancestor.__name__ for ancestor in type(error).__mro__}
        if isinstance(error, httpx2.ConnectError | ConnectionRefusedError) or "ClientConnectorError" in names:
            return True
        error = error.__cause__
    return False


def _no_connection(error: BaseException) -> str:
    """What the operating system says of a connection that failed, such as "Connection refused"; else the error."""
    deepest: BaseException | None = error
    seen: list[BaseException] = []
    while deepest is not None and deepest not in seen:
        seen.append(deepest)
        deepest = deepest.__cause__ or deepest.__context__
    for cause in reversed(seen):
        if isinstance(cause, OSError) and cause.errno:
            return f"{os.strerror(cause.errno) if cause.errno > 0 else cause.strerror}."
    last = seen[-1]
    names_timeout = type(last).__name__ == "ConnectTimeout"  # the transport's word for anything that went wrong
    return str(last) or "it was closed without a reply." if names_timeout else repr(last)


def _sort(connection: Connection, response: httpx2.Response, body: Mapping[str, Any]) -> NoReturn:
    """Raise what an error status means. Nothing of the original exception is kept: it holds the request's headers."""
    if 300 <= response.status_code < 400:
        raise ProviderRefused(_redirected(connection, response), status=response.status_code, fatal=True) from None
    stated: Any = response.text.strip()
    with suppress(ValueError, RecursionError):
        stated = json.loads(stated)
    usage = _object(stated).get("usage")
    stated = (stated.get("error") or stated) if isinstance(stated, dict) else stated
    status = response.status_code
    words, message = _object(stated), _complaint(stated) or response.text or f"Error code: {status}"
    if what := refused_part(status=status, stated=stated, message=message, body=body):
        raise Unsupported(what) from None
    failure = _failure(
        status=status,
        code=str(words.get("code") or words.get("type") or ""),
        message=_scrubbed(connection, message),
        headers=response.headers,
        usage=usage,
    )
    if isinstance(failure, ProviderRefused) and names_no_cause(status=status, message=message, body=body):
        raise _Unnamed(failure, body) from None
    raise failure from None


def _redirected(connection: Connection, response: httpx2.Response) -> str:
    """Why nothing is sent where a redirect points to, with the host that it names."""
    host = ""
    with suppress(ValueError):
        host = urlsplit(urljoin(connection.endpoint.base_url, response.headers.get("location", ""))).netloc
    named = f" to {host.rpartition('@')[2][:200]}" if host else ""
    return f"{response.status_code}: {connection.endpoint.name} redirects{named}, and redirects are not followed."


def _complaint(body: Any) -> str:
    """What an error says, in the words of whatever server: OpenAI's `message`, others' `detail` or `error`."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, map(_complaint, body[:5])))
    words = _object(body)
    candidates = (words.get(name) for name in ("message", "msg", "detail", "error", "error_description", "title"))
    return next((text for candidate in candidates if candidate and (text := _complaint(candidate))), "")


def _failure(
    *,
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str],
    maybe_paid: bool = False,
    usage: Any = None,
) -> ProviderUnavailable | ProviderRefused:
    """What an error means; ``maybe_paid``: it came as a reply, with the status 200."""
    reason, counted = f"{status} {code}: {message}"[:400], _usage(usage)
    if status in (401, 402) or code in _OUT_OF_MONEY:
        return ProviderRefused(reason, status=status, fatal=True, counted=counted)
    if status in _RETRYABLE or status >= 500:
        return ProviderUnavailable(
            reason,
            retry_after=retry_after(headers),
            maybe_paid=maybe_paid or status in _GAVE_UP,
            quotas=read_quotas(headers),
            status=status,
            counted=counted,
        )
    return ProviderRefused(reason, status=status, maybe_paid=maybe_paid, counted=counted)


def _reply(connection: Connection, response: httpx2.Response) -> dict[str, Any]:
    """The JSON of a 200. A gateway's page, or an error wrapped in a 200, is a failure like any other."""
    try:
        reply = loaded(response.content)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        body = storable(response.content[: 4 * KEPT_TEXT].decode("utf-8", "replace")[:KEPT_TEXT])
        raise ProviderUnavailable("The reply is not a JSON object.", maybe_paid=True, body=body)
    error = reply.get("error")
    if error and not reply.get("choices"):
        words = error if isinstance(error, dict) else {"message": str(error)}
        code = words.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        raise _failure(
            status=status,
            code=str(code or ""),
            message=_scrubbed(connection, _complaint(words)),
            headers=response.headers,
            maybe_paid=True,
            usage=reply.get("usage"),
        )
    return reply if len(response.content) <= _KEPT else _shortened(reply, len(response.content))


def line_answer(line: Mapping[str, Any], *, body: Mapping[str, Any], dropped: tuple[str, ...]) -> ProviderAnswer:
    """The reply in one line of a batch's results to the request ``body``; raises as `exchange` does."""
    response, failure = _object(line.get("response")), _object(line.get("error"))
    reply, status = _object(response.get("body")), response.get("status_code")
    if reply.get("choices") and status in (None, 200):
        size = len(orjson.dumps(reply))
        return _answer(reply if size <= _KEPT else _shortened(reply, size), 0.0, dropped, {})
    words = _object(reply.get("error")) or failure or reply
    stated_status = status if isinstance(status, int) else 0
    if what := refused_part(status=stated_status, stated=words, message=_complaint(words), body=body):
        raise Unsupported(what)
    code, sent = str(words.get("code") or words.get("type") or ""), status if isinstance(status, int) else 500
    was_paid = status == 200
    raise _failure(
        status=500 if was_paid else sent,
        code=code,
        message=_masked(_complaint(words)),
        headers={},
        maybe_paid=was_paid,
        usage=reply.get("usage"),
    )


def _shortened(reply: dict[str, Any], size: int) -> dict[str, Any]:
    """What is kept of a very large reply: what was said, up to a limit, and the provider's own counts."""
    choices = reply.get("choices")
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    message = _object(choice.get("message"))
    message_parts = {name: plain_text(message.get(name))[:LONGEST_TEXT] for name in _TEXT_FIELDS if message.get(name)}
    if answer := answer_text(message):
        message_parts["content"] = answer[:LONGEST_TEXT]
    ended = plain_text(choice.get("finish_reason"))[:80] or None
    kept = {
        name: plain_text(reply.get(name))[:200] for name in ("id", "model", "system_fingerprint") if reply.get(name)
    }
    usage = {name: _count(count) for name, count in list(_object(reply.get("usage")).items())[:40]}
    return {
        **kept,
        "usage": {name[:80]: count for name, count in usage.items() if count is not None},
        "choices": [{"index": 0, "message": message_parts, "finish_reason": ended}],
        "shortened_from_bytes": size,
    }


def stored_answer(reply: Mapping[str, Any]) -> ProviderAnswer:
    """A stored reply as it was when it came; what it cost and how long it took is not in it."""
    return _answer(dict(reply), 0.0, (), {})


def _answer(
    reply: dict[str, Any], latency: float, dropped: tuple[str, ...], quotas: Mapping[str, Quota]
) -> ProviderAnswer:
    """Read leniently: whatever a server leaves out or mistypes is missing, not an error."""
    choices = reply.get("choices")
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    message, (into, out) = _object(choice.get("message")), _usage(reply.get("usage"))
    return ProviderAnswer(
        text=answer_text(message),
        finish_reason=plain_text(choice.get("finish_reason")) or None,
        refusal=plain_text(message.get("refusal")) or None,
        reasoning=plain_text(message.get("reasoning_content") or message.get("reasoning")),
        tokens_in=into,
        tokens_out=out,
        served_model=plain_text(reply.get("model")),
        latency=latency,
        raw=reply,
        dropped=dropped,
        quotas=quotas,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(usage: Any) -> tuple[int | None, int | None]:
    """The tokens in and out that a provider counts. Some leave reasoning out of the reply's, and count it in total."""
    counts = _object(usage)
    into, out = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    total = _count(counts.get("total_tokens"))
    if into is not None and out is not None and total is not None:
        out = max(out, total - into)
    return into, out


def _count(value: Any) -> int | None:
    """A count of tokens, also as 12.0 or "12"; None of anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def loaded(body: bytes) -> Any:
    """The JSON of a body, fit for a JSON column. The strict and fast reader first: most bodies need no mending.

    A body with very many brackets is walked in any case, so that nesting too deep to be stored is found out here."""
    try:
        value = orjson.loads(body)
    except ValueError:
        return storable_value(json.loads(body))
    needs_mending = b"\\u0000" in body or body.count(b"{") + body.count(b"[") > _MANY_BRACKETS
    return storable_value(value) if needs_mending else value


def _scrubbed(connection: Connection, message: str) -> str:
    """Providers repeat the key they were given: take it out, whole or by its recognisable ends."""
    key = connection.client.api_key
    message = message.replace(key, "[key]") if connection.endpoint.api_key_variable else message
    return _masked(message)


def _masked(message: str) -> str:
    return storable(re.sub(r"\b(sk|gsk|key|pk)-[\w*.-]{6,}", "[key]", message))
