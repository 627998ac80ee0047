"""The connection to a Panelbench server: token, timeouts, retries, pagination, downloads, and the exceptions.

The token is in no exception and no representation.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import httpx

SHOWN = 5  # problems of a file in the text of an error; all are in its `problems` or `report`


class PanelbenchError(Exception):
    """The base class of all exceptions of this client."""


class Unreachable(PanelbenchError):
    """The server did not answer, after all retries."""


class TimedOut(PanelbenchError):
    """The awaited result did not come in time. It may still come."""


class ImportFailed(PanelbenchError):
    """An import was refused while it was stored. ``report`` gives the reasons, by row where possible."""

    def __init__(self, file_import: int, report: Mapping[str, Any]) -> None:
        problems = report.get("problems") or ()
        sentence = str(report.get("sentence") or f"Import {file_import} failed.")
        super().__init__(_lines(sentence, problems, report.get("more") or 0))
        self.file_import, self.report = file_import, report


class TransferFailed(PanelbenchError):
    """An export could not be written, or a bundle could not be loaded."""


class Forged(PanelbenchError):
    """A webhook request that was not signed by Panelbench, or is too old."""


class ApiError(PanelbenchError):
    """An error response: ``code`` for programs, ``detail`` for people, ``fields`` by input, ``problems`` of files,
    ``more``: what else the response says, such as ``confirm``. ``request_id`` is the response's `X-Request-ID`, "" if
    the server's proxy does not set it."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str,
        fields: Mapping[str, Sequence[str]] | None = None,
        problems: Sequence[Mapping[str, Any]] = (),
        request_id: str = "",
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.more = dict(more or {})
        self.status, self.code, self.detail = status, code, detail
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}
        self.problems, self.request_id = list(problems), request_id
        super().__init__(self._message())

    def _message(self) -> str:
        named = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in self.fields.items())
        text = f"{self.detail} ({self.status} {self.code})"
        return _lines(f"{text} {named}" if named else text, self.problems)


class BadRequest(ApiError):
    """400: some fields are invalid."""


class NotSignedIn(ApiError):
    """401: the token is unknown, revoked or has expired."""


class Forbidden(ApiError):
    """403: your role, or the token's scope, does not allow that."""


class NotFound(ApiError):
    """404: it does not exist, or you can't see it."""


class Conflict(ApiError):
    """409: not possible in the present state."""


class Gone(ApiError):
    """410: it was used or cancelled before."""


class TooLarge(ApiError):
    """413: larger than one request, or this server, allows."""


class Refused(ApiError):
    """422: refused; ``fields`` and, for a file, ``problems`` give the reasons."""


class TooMany(ApiError):
    """429: too many requests, also after retries."""


class Unavailable(ApiError):
    """5xx: an error of the server."""


KINDS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: NotSignedIn,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Refused,
    429: TooMany,
}


def error_for(status: int) -> type[ApiError]:
    """The exception class for a status."""
    return KINDS.get(status, Unavailable if status >= 500 else ApiError)


def _lines(sentence: str, problems: Sequence[Mapping[str, Any]], more: int = 0) -> str:
    """A sentence, then the first problems, one per line, and the number of the others."""
    shown = [f"  {problem.get('sentence')}" for problem in problems[:SHOWN]]
    left = len(problems) + more - len(shown)
    return "\n".join([sentence, *shown, *([f"  and {left} more"] if left else [])])


TRIES = 5
FIRST_PAUSE = 0.5  # seconds, about; each further one is twice as long
LONGEST_PAUSE = 60.0  # seconds between two tries, whatever Retry-After says
IDEMPOTENT = ("GET", "HEAD", "PUT", "DELETE")
PASSING = (429, 502, 503, 504)
REFUSED_UNDONE = (429, 503)  # with Retry-After: the server did nothing, so even a POST may be sent again
PAGE = 1000
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
F = TypeVar("F", bound=Callable[..., Any])


def operation(method: str, path: str, **named: str) -> Callable[[F], F]:
    """Mark a method with the API operation that it calls. ``named`` maps inputs of the API to the method's
    parameters, and to ``""`` the inputs that the method fills in itself. tests/client/test_schema.py compares the
    marks with the schema."""

    def note(function: F) -> F:
        noted = getattr(function, "operations", ())
        function.operations = (*noted, (method, f"/api/v1{path}", named))  # type: ignore[attr-defined]
        return function

    return note


class ServerConnection:
    """A connection to one Panelbench server, and to one project on it."""

    def __init__(
        self, address: str, token: str, project: str = "", *, timeout: float = 60.0, allow_http: bool = False
    ) -> None:
        place = urlsplit(address)
        if place.scheme != "https" and not (place.scheme == "http" and (allow_http or place.hostname in LOCAL_HOSTS)):
            raise ValueError("The address has to start with https://, or others could read the token.")
        self.address, self.project = f"{place.scheme}://{place.netloc}", project
        self._http = httpx.Client(
            base_url=f"{self.address}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=timeout,
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address} {self.project}>"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # --- one request ------------------------------------------------------------------------------------------------
    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return the successful response. Raises `ApiError` for an error response, `Unreachable`
        without a response."""
        with self.opened(method, path, **options) as answer:
            answer.read()
            return answer

    def json(self, method: str, path: str, **options: Any) -> Any:
        """The parsed body of a successful response; None if it is empty."""
        answer = self.send(method, path, **options)
        return answer.json() if answer.content else None

    @contextmanager
    def opened(self, method: str, path: str, *, repeatable: bool = False, **options: Any) -> Iterator[httpx.Response]:
        """A successful response whose body is not read yet; retries if that is safe.

        ``repeatable``: a POST that can be sent twice without a different result, so that it may be retried.
        """
        headers = options.pop("headers", {})
        options["params"] = _plain(options.get("params") or {})
        build = partial(self._http.build_request, method, path, headers=headers, **options)
        answer = self._tried(build, repeatable=repeatable or method in IDEMPOTENT)
        try:
            if not answer.is_success:
                raise _error(answer)
            yield answer
        finally:
            answer.close()

    def _tried(self, build: Callable[[], httpx.Request], *, repeatable: bool) -> httpx.Response:
        """The first response that is not a temporary failure, else the last response."""
        for tried in count(1):
            answer = self._answer(build(), give_up=tried == TRIES or not repeatable)
            pause = _pause(answer, tried, repeatable=repeatable)
            if answer is not None and (pause is None or tried == TRIES):
                return answer
            if answer is not None:
                answer.close()
            time.sleep(pause or 0.0)
        raise AssertionError("counting has no end")

    def _answer(self, request: httpx.Request, *, give_up: bool) -> httpx.Response | None:
        try:
            return self._http.send(request, stream=True)
        except httpx.TransportError as error:
            if give_up:
                raise Unreachable(self._unanswered(request, error)) from None
            return None

    def _unanswered(self, request: httpx.Request, error: httpx.TransportError) -> str:
        what = f"{request.method} {request.url.path}"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return f"No connection to {self.address} ({error}). Is the address right, and is Panelbench running there?"
        if isinstance(error, httpx.TimeoutException):
            return f"No answer to {what} in time. Check whether it was done, or give the client a longer timeout."
        return f"The connection was cut during {what} ({error}). Check whether it was done, then try again."

    # --- many of them -----------------------------------------------------------------------------------------------
    def pages(self, path: str, **params: Any) -> Iterator[Any]:
        """All rows of a list, requested page by page. From the link to the next page only the cursor is used, never
        the address."""
        cursor: str | None = None
        while True:
            page = self.json("GET", path, params={**params, "limit": PAGE, "cursor": cursor})
            yield from page["results"]
            if not page.get("next"):
                return
            cursor = parse_qs(urlsplit(page["next"]).query)["cursor"][0]

    def save(self, path: str, to: str | os.PathLike[str], **options: Any) -> Path:
        """Write a download to the file ``to``. The file appears only when it is complete."""
        target = Path(to)
        partial = target.with_name(f"{target.name}.part")
        try:
            with self.opened("GET", path, headers={"Accept": "*/*"}, **options) as answer, partial.open("wb") as file:
                for piece in answer.iter_bytes():
                    file.write(piece)
            partial.replace(target)
        except httpx.TransportError as error:
            raise Unreachable(f"The download was interrupted, and nothing was saved: {error}. Try again.") from None
        finally:
            partial.unlink(missing_ok=True)
        return target

    def wait(self, poll: Callable[[], Any], *, timeout: float, what: str) -> Any:
        """Call ``poll`` with growing pauses until it returns a true value, and return that. Raises `TimedOut` after
        ``timeout`` seconds; ``what`` names the work in the error."""
        ends, pause = time.monotonic() + timeout, 0.2
        while not (value := poll()):
            if time.monotonic() + pause > ends:
                raise TimedOut(
                    f"{what} took more than {timeout:g} seconds. It is still running: wait for it again, or longer."
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 10.0)
        return value

    def at(self, path: str, *parts: object) -> str:
        """A path in the project, with its ``{}`` replaced by ``parts``."""
        if not self.project:
            raise ValueError("Name the project: Client(address, token, project).")
        return f"/projects/{quote(self.project, safe='')}/{path.format(*(quote(str(part), safe='') for part in parts))}"


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None: what is left out has the API's default."""
    return {name: value for name, value in fields.items() if value is not None}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters as text, without those that are None or empty."""
    written = {True: "true", False: "false"}
    return {
        name: written[value] if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None and value != ()
    }


def _pause(answer: httpx.Response | None, tried: int, *, repeatable: bool) -> float | None:
    """Seconds until the next try; None if there should be none."""
    grown: float = FIRST_PAUSE * 2.0 ** (tried - 1) * (0.75 + random.random() / 2)
    if answer is None:
        return grown
    retry_after = answer.headers.get("Retry-After", "")
    is_undone = answer.status_code in REFUSED_UNDONE and retry_after.isdecimal()
    if answer.status_code in PASSING and (is_undone or repeatable):
        return min(float(retry_after) if is_undone else grown, LONGEST_PAUSE)
    return None


def _error(answer: httpx.Response) -> Exception:
    answer.read()
    try:
        body = answer.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    return error_for(answer.status_code)(
        status=answer.status_code,
        code=str(body.get("code", "error")),
        detail=str(body.get("detail") or f"The server answered {answer.status_code}."),
        fields=body.get("fields") or {},
        problems=body.get("problems") or (),
        request_id=answer.headers.get("X-Request-ID", ""),
        more={name: value for name, value in body.items() if name not in ("code", "detail", "fields", "problems")},
    )
