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
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast
from urllib.parse import urljoin, urlsplit

import orjson

from accounts.inputs import storable, storable_value
from judging.asking.declarations import OPENAI
from judging.asking.limit_headers import Quota, read_quotas, retry_after
from judging.asking.refused_parts import (
    RESERVED,
    SYSTEM_ROLE,
    TOKEN_LIMITS,
    SentParts,
    names_no_cause,
    next_guess,
    refused_part,
)
from judging.asking.wire import (
    NOTHING_COUNTED,
    ErrorWords,
    ModelReply,
    ProviderCount,
    Question,
    Wire,
    json_object,
    read_stored,
    wire_of,
)
from judging.prompts import Message
from judging.replies import CUT_OFF

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_TOGETHER: Final = {"top_logprobs": "logprobs"}  # the first is left out with the second
_MOST_IN_VAIN: Final = 2  # questions
_MANY_BRACKETS: Final = 300
_RENAMED: Final = {TOKEN_LIMITS[0]: TOKEN_LIMITS[1], TOKEN_LIMITS[1]: TOKEN_LIMITS[0]}
LARGEST_BODY: Final = 8 * 2**20  # bytes of a reply that are read; of one that is packed, fewer: they unpack
LARGEST_PACKED: Final = 2**17
LARGEST_FILE: Final = 2**28  # bytes of the results of a batch
_LARGE: Final = 2**16  # bytes from which a body is read in a thread of its own, away from the event loop
_KEPT: Final = 2**18  # bytes of a body that are stored as they came; of a larger one, what was said is kept, shortened
KEPT_TEXT: Final = 20_000  # characters
_MOST_DIGITS: Final = 19  # of a whole number in 64 bits, with its sign
_GAVE_UP: Final = frozenset({408, 504, 524})  # statuses of a timeout: the request may have been paid for


class ProviderUnavailable(Exception):
    """No reply this time: rate limit, server error, timeout, lost connection. Try again, after ``retry_after``.

    ``maybe_paid`` says that the provider may have worked and count it, and ``counted`` what an error counts;
    ``body`` is what came, shortened, where that can't be read as a reply."""

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        maybe_paid: bool = False,
        body: str = "",
        quotas: Mapping[str, Quota] | None = None,
        status: int | None = None,
        counted: ProviderCount = NOTHING_COUNTED,
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
        counted: ProviderCount = NOTHING_COUNTED,
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
    api: str = OPENAI

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

    @property
    def wire(self) -> Wire:
        """How requests are written for this endpoint, and its replies are read."""
        return wire_of(self.endpoint.api)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer(ModelReply):
    """One reply, and the JSON as it came. ``dropped`` names what the request went out without."""

    latency: float = 0.0
    raw: dict[str, Any] = field(default_factory=dict)
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
    headers = {**wire_of(endpoint.api).headers(key), "Content-Type": "application/json", "Accept": "application/json"}
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
    leaving: Callable[[], None] | None = None,
) -> ProviderAnswer:
    """Put one question and return the reply, whatever it says.

    ``leaving`` is called before the first byte goes out: until then, nothing of the question has left this machine.

    A format or parameter that the model refuses is left out and the question put again (json_schema, then json_object,
    then a tool call, then no format): such refusals cost nothing. A refusal that counts anything was billed, and is
    final. One call finds out what the model takes; others that were refused meanwhile wait for it. Raises
    ``Unavailable`` or ``Refused``; nothing else. ``ValueError`` is for a caller's mistake: a reserved parameter.
    """
    if reserved := RESERVED & parameters.keys():
        raise ValueError(f"not a parameter of a judge: {', '.join(sorted(reserved))}")
    refused, wire = connection.refused.setdefault(model, []), connection.wire
    asked = Question(model=model, messages=messages, parameters=parameters, schema=schema)
    lock = connection.finding_out.setdefault(model, asyncio.Lock())

    async def put(left_out: Sequence[str]) -> ProviderAnswer:
        request = written_request(wire, asked, left_out)
        started = time.perf_counter()
        parts: Any = {"body": request.body, "sent": request.sent, "leaving": leaving}
        response = await exchange(connection, request.path, seconds=timeout, **parts)
        latency = time.perf_counter() - started
        large = len(response.content) > _LARGE
        reply, raw = await asyncio.to_thread(_reply, connection, response) if large else _reply(connection, response)
        connection.answered.add(model)
        return _answer(reply, raw, latency=latency, dropped=request.dropped, quotas=read_quotas(response.headers))

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
            guess = next_guess(complaint.sent, [*refused, *guesses])
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


MODEL_LISTS: Final = {OPENAI: "/models", "anthropic": "/models?limit=1000", "gemini": "/models?pageSize=1000"}


async def list_models(connection: Connection, *, seconds: float) -> list[str]:
    """The names of the models that the endpoint lists, sorted. Raises ``Unavailable`` or ``Refused``, also where it has
    no such list."""
    response = await exchange(connection, MODEL_LISTS[connection.endpoint.api], seconds=seconds)
    try:
        body = json_object(loaded(response.content))
    except (ValueError, RecursionError):
        body = {}
    rows = [row for row in body.get("data") or body.get("models") or () if isinstance(row, dict)]
    names = {str(row.get("id") or row.get("name") or "").removeprefix("models/") for row in rows} - {""}
    if not names:
        raise ProviderRefused(f"{connection.endpoint.name} has no list of its models.")
    return sorted(names)


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
    """The provider refused the request and named no cause; holds the refusal and what was sent."""

    def __init__(self, refusal: ProviderRefused, sent: SentParts) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.sent = sent


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request as it goes out: where to, its body, what was left out, and what of it may be refused."""

    path: str
    body: dict[str, Any]
    dropped: tuple[str, ...]
    sent: SentParts


def written_request(wire: Wire, asked: Question, refused: Sequence[str]) -> OutgoingRequest:
    """The request without what the model refuses, and without parameters that the API has not."""
    given, messages = asked.parameters, asked.messages
    dropped = [name for name in given if name in refused or _TOGETHER.get(name) in refused]
    kept = {name: value for name, value in given.items() if name not in dropped}
    kept |= {_RENAMED[name]: given[name] for name in dropped if _RENAMED.get(name, name) not in {name, *refused}}
    if SYSTEM_ROLE in refused and messages[0]["role"] == "system":
        messages = _without_system_role(messages)
        dropped.append(SYSTEM_ROLE)
    form = None
    if asked.schema is not None:
        form = strictest_form(refused, wire.FORMS)
        dropped += wire.FORMS[: wire.FORMS.index(form)]
    written = wire.write(replace(asked, messages=messages, parameters=kept, form=form))
    has_system = len(messages) > 1 and messages[0]["role"] == "system"
    sent = SentParts(form=form, has_system=has_system, names=written.names, form_words=wire.FORM_WORDS)
    return OutgoingRequest(path=written.path, body=written.body, dropped=(*dropped, *written.left_out), sent=sent)


def _without_system_role(messages: Sequence[Message]) -> list[Message]:
    """The same words, with those of the system message first in the user's."""
    rubric, asked, *rest = messages
    return [{"role": "user", "content": f"{rubric['content']}\n\n{asked['content']}"}, *rest]


def strictest_form(refused: Sequence[str], forms: Sequence[str]) -> str:
    """The strictest of an API's forms of a reply that a model has not refused."""
    return next(form for form in forms if form == "none" or form not in refused)


async def exchange(
    connection: Connection,
    path: str,
    *,
    body: dict[str, Any] | None = None,
    file: tuple[str, bytes] | None = None,
    remove: bool = False,
    sent: SentParts | None = None,
    leaving: Callable[[], None] | None = None,
    seconds: float,
) -> httpx2.Response:
    """The HTTP exchange alone (GET or, to `remove`, DELETE without a body), with every failure sorted, in a deadline.

    ``sent``: what of the body a model may refuse, where it is a question; ``leaving`` as of `ask`. Raises
    ``Unavailable``, ``Refused``, and ``Unsupported`` for what a model refuses by name."""
    import httpx2
    import openai

    too_late = f"No reply within {seconds:g} seconds."
    try:
        async with asyncio.timeout(seconds):
            if body is None:
                send = connection.client.delete if remove else connection.client.get
                options: Any = {"timeout": seconds}
                if connection.endpoint.api != OPENAI:
                    options["headers"] = dict(connection.headers)
                return await send(path, cast_to=httpx2.Response, options=options)
            if file is not None:
                form: Any = {"timeout": seconds, "headers": {"Content-Type": "multipart/form-data"}}
                whole: Any = {"cast_to": httpx2.Response, "body": body, "files": [("file", file)], "options": form}
                return cast("httpx2.Response", await connection.client.post(path, **whole))
            response = await _post(connection, path, body, seconds, leaving)
    except openai.APIStatusError as error:
        _sort(connection, error.response, sent)
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
    return response if response.is_success else _sort(connection, response, sent)


async def _post(
    connection: Connection,
    path: str,
    body: Mapping[str, Any],
    seconds: float,
    leaving: Callable[[], None] | None = None,
) -> httpx2.Response:
    """The request of any wire, by the transport of OpenAI's SDK.

    With ``leaving``, the body is a stream: the transport takes it when it has a connection, and writes the headers
    with it.

    Its own `post` takes twice as much processor time, and knows one wire (measured in decision 0052)."""
    import httpx2

    try:
        content = orjson.dumps(body)
    except TypeError:  # half a surrogate pair, or a whole number beyond 64 bits
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    address = _address(f"{connection.endpoint.base_url.rstrip('/')}{path}")
    extensions = {"timeout": httpx2.Timeout(seconds).as_dict()}
    headers = {**connection.headers, "Content-Length": str(len(content))}
    streamed = content if leaving is None else _announced(content, leaving)
    sent = httpx2.Request("POST", address, headers=headers, content=streamed, extensions=extensions)
    try:
        return await connection.http.send(sent)
    except Exception as error:
        if isinstance(error, httpx2.RequestError | _TooLarge | TimeoutError):
            raise
        raise httpx2.TransportError(str(error), request=sent) from error  # such as a reply that is not HTTP


async def _announced(content: bytes, leaving: Callable[[], None]) -> AsyncIterator[bytes]:
    leaving()
    yield content


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
    """Limit how much of a response's body is read."""
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
        return _failure(ErrorWords(code="", message=_scrubbed(connection, body)), status=too_large.status, headers={})
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


def _sort(connection: Connection, response: httpx2.Response, sent: SentParts | None) -> NoReturn:
    """Raise what an error status means. Nothing of the original exception is kept: it holds the request's headers."""
    status = response.status_code
    if 300 <= status < 400:
        raise ProviderRefused(_redirected(connection, response), status=status, fatal=True) from None
    stated: Any = response.text.strip()
    with suppress(ValueError, RecursionError):
        stated = loaded(stated.encode())
    words = connection.wire.read_error(stated)
    words = replace(words, message=words.message or response.text or f"Error code: {status}")
    counted = connection.wire.read(json_object(stated)).counted
    if counted:  # it was billed: no other form of the request is tried, each would be billed, too
        sent = None
    if sent and (what := refused_part(status=status, stated=stated, message=words.message, sent=sent)):
        raise Unsupported(what) from None
    failure = _failure(
        replace(words, message=_scrubbed(connection, words.message)),
        status=status,
        headers=response.headers,
        counted=counted,
    )
    unnamed = sent and not words.is_fatal and names_no_cause(status=status, message=words.message)
    if sent and unnamed and isinstance(failure, ProviderRefused):
        raise _Unnamed(failure, sent) from None
    raise failure from None


def _redirected(connection: Connection, response: httpx2.Response) -> str:
    """The sentence that says why a redirect is not followed, with the host that it names."""
    host = ""
    with suppress(ValueError):
        host = urlsplit(urljoin(connection.endpoint.base_url, response.headers.get("location", ""))).netloc
    named = f" to {host.rpartition('@')[2][:200]}" if host else ""
    return f"{response.status_code}: {connection.endpoint.name} redirects{named}, and redirects are not followed."


def _failure(
    words: ErrorWords,
    *,
    status: int,
    headers: Mapping[str, str],
    maybe_paid: bool = False,
    counted: ProviderCount = NOTHING_COUNTED,
) -> ProviderUnavailable | ProviderRefused:
    """What an error means; ``maybe_paid``: it came as a reply, with the status 200."""
    reason = f"{status} {words.code}: {words.message}"[:400]
    if status in (401, 402) or words.is_fatal:
        return ProviderRefused(reason, status=status, fatal=True, counted=counted)
    if status in _RETRYABLE or status >= 500:
        wait = retry_after(headers)
        return ProviderUnavailable(
            reason,
            retry_after=words.retry_after if wait is None else wait,
            maybe_paid=maybe_paid or status in _GAVE_UP,
            quotas=read_quotas(headers),
            status=status,
            counted=counted,
        )
    return ProviderRefused(reason, status=status, maybe_paid=maybe_paid, counted=counted)


def _reply(connection: Connection, response: httpx2.Response) -> tuple[ModelReply, dict[str, Any]]:
    """What a 200 says, and its JSON. A gateway's page, or an error wrapped in a 200, is a failure like any other."""
    try:
        reply = loaded(response.content)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        body = storable(response.content[: 4 * KEPT_TEXT].decode("utf-8", "replace")[:KEPT_TEXT])
        raise ProviderUnavailable("The reply is not a JSON object.", maybe_paid=True, body=body)
    wire = connection.wire
    if reply.get("error") and not wire.holds_reply(reply):
        words = wire.read_error(reply)
        code = json_object(reply["error"]).get("code")
        raise _failure(
            replace(words, message=_scrubbed(connection, words.message)),
            status=code if isinstance(code, int) and 400 <= code < 600 else 500,
            headers=response.headers,
            maybe_paid=True,
            counted=wire.read(reply).counted,
        )
    return _kept(wire.read(reply), reply, len(response.content))


def _kept(reply: ModelReply, raw: dict[str, Any], size: int) -> tuple[ModelReply, dict[str, Any]]:
    """A reply and its JSON as they are stored: of a very large one, what was said up to a limit, and no JSON."""
    return (reply, raw) if size <= _KEPT else (reply.shortened(), {"shortened_from_bytes": size})


def batch_answer(entry: Mapping[str, Any], *, request: OutgoingRequest) -> ProviderAnswer:
    """The reply in one line of a batch's results to a request in OpenAI's form; raises as `exchange` does."""
    wire, response, failure = wire_of(OPENAI), json_object(entry.get("response")), json_object(entry.get("error"))
    reply, status = json_object(response.get("body")), response.get("status_code")
    if not isinstance(status, int) or not 100 <= status < 600:
        status = None
    if reply.get("choices") and status in (None, 200):
        return _answer(*_kept(wire.read(reply), reply, len(orjson.dumps(reply))), dropped=request.dropped)
    stated = json_object(reply.get("error")) or failure or reply
    words = wire.read_error({"error": stated})
    counted, was_paid = wire.read(reply).counted, status == 200
    what = refused_part(status=status or 0, stated=stated, message=words.message, sent=request.sent)
    if what and not counted:  # as in `_sort`
        raise Unsupported(what)
    raise _failure(
        replace(words, message=_masked(words.message)),
        status=500 if was_paid or status is None else status,
        headers={},
        maybe_paid=was_paid,
        counted=counted,
    )


def stored_answer(reply: Mapping[str, Any], answer: Mapping[str, Any] | None = None) -> ProviderAnswer:
    """A stored ``answer``, as it was when it came, with its JSON; what it cost and how long it took is not in it.

    Rows of before it was stored have only the ``reply``, a chat completion."""
    return _answer(read_stored(answer) if answer else wire_of(OPENAI).read(reply), dict(reply))


def _answer(reply: ModelReply, raw: dict[str, Any], **came: Any) -> ProviderAnswer:
    return ProviderAnswer(**{each.name: getattr(reply, each.name) for each in fields(ModelReply)}, raw=raw, **came)


def loaded(body: bytes) -> Any:
    """The JSON of a body, fit for a JSON column. The strict and fast reader first: most bodies need no mending.

    Whole numbers beyond 64 bits become fractional ones, or "inf". A body with very many brackets is walked in any case,
    so that nesting too deep to be stored is found out here."""
    try:
        value = orjson.loads(body)
    except ValueError:
        return storable_value(json.loads(body, parse_int=_whole))
    needs_mending = b"\\u0000" in body or body.count(b"{") + body.count(b"[") > _MANY_BRACKETS
    return storable_value(value) if needs_mending else value


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _scrubbed(connection: Connection, message: str) -> str:
    """Providers repeat the key they were given: take it out, whole or by its recognisable ends."""
    key = connection.client.api_key
    message = message.replace(key, "[key]") if connection.endpoint.api_key_variable else message
    return _masked(message)


def _masked(message: str) -> str:
    return storable(re.sub(r"\b(sk|gsk|key|pk)-[\w*.-]{6,}", "[key]", message))
