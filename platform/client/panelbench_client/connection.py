"""A connection to one Panelbench: the token, timeouts, what is tried again, pages and files, and what can go wrong.

No exception, and nothing else here, ever holds the token.
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
    """The root of everything that this client raises."""


class Unreachable(PanelbenchError):
    """No answer came, however often it was tried."""


class TimedOut(PanelbenchError):
    """What was waited for did not happen in time. It may still happen."""


class ImportFailed(PanelbenchError):
    """An import was refused while it was stored; ``report`` says why, row by row where it can."""

    def __init__(self, file_import: int, report: Mapping[str, Any]) -> None:
        problems = report.get("problems") or ()
        sentence = str(report.get("sentence") or f"Import {file_import} failed.")
        super().__init__(_lines(sentence, problems, report.get("more") or 0))
        self.file_import, self.report = file_import, report


class TransferFailed(PanelbenchError):
    """An export could not be written, or a bundle not be loaded."""


class Forged(PanelbenchError):
    """A request to your own program that Panelbench did not sign, or not just now."""


class ApiError(PanelbenchError):
    """The server said no: ``code`` is for programs, ``detail`` for people, ``fields`` names what was wrong with which
    input. ``request_id`` is the `X-Request-ID` of the answer, empty where nothing in front of the server gives one.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str,
        fields: Mapping[str, Sequence[str]] | None = None,
        problems: Sequence[Mapping[str, Any]] = (),
        request_id: str = "",
    ) -> None:
        self.status, self.code, self.detail = status, code, detail
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}
        self.problems, self.request_id = list(problems), request_id
        super().__init__(self._message())

    def _message(self) -> str:
        named = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in self.fields.items())
        text = f"{self.detail} ({self.status} {self.code})"
        return _lines(f"{text} {named}" if named else text, self.problems)


class BadRequest(ApiError):
    """400: some fields need another look."""


class NotSignedIn(ApiError):
    """401: the token is unknown, revoked or has expired."""


class Forbidden(ApiError):
    """403: your role, or the token's scope, does not allow that."""


class NotFound(ApiError):
    """404: there is no such thing, or none that you may see."""


class Conflict(ApiError):
    """409: not as they are."""


class Gone(ApiError):
    """410: it was there, and was used or given up meanwhile."""


class TooLarge(ApiError):
    """413: more than one request, or this server, takes."""


class Refused(ApiError):
    """422: understood and refused; ``fields`` and, for a file, ``problems`` say why."""


class TooMany(ApiError):
    """429: too many requests, and it stayed so."""


class Unavailable(ApiError):
    """5xx: the server is in trouble."""


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
    """The exception that a status is raised as."""
    return KINDS.get(status, Unavailable if status >= 500 else ApiError)


def _lines(sentence: str, problems: Sequence[Mapping[str, Any]], more: int = 0) -> str:
    """A sentence and, below it, the first problems, each with its file, line and column."""
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
    """Note on a method which operation of the API it is for; ``named`` maps inputs of the API to its parameters, and to
    ``""`` those that it sees to itself. tests/client/test_schema.py holds these notes against the schema.
    """

    def note(function: F) -> F:
        noted = getattr(function, "operations", ())
        function.operations = (*noted, (method, f"/api/v1{path}", named))  # type: ignore[attr-defined]
        return function

    return note


class ServerConnection:
    """A connection to one Panelbench, and to one project in it."""

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
        """The good answer to a request; raises `ApiError` for another and `Unreachable` for none."""
        with self.opened(method, path, **options) as answer:
            answer.read()
            return answer

    def json(self, method: str, path: str, **options: Any) -> Any:
        """What a good answer holds; None when it is empty."""
        answer = self.send(method, path, **options)
        return answer.json() if answer.content else None

    @contextmanager
    def opened(self, method: str, path: str, *, repeatable: bool = False, **options: Any) -> Iterator[httpx.Response]:
        """A good answer whose body is not read yet, after as many tries as are worth it.

        ``repeatable`` says of a POST that doing it twice comes to the same, so that it may be sent again.
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
        """The first answer that is not about passing trouble, or else the last."""
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
        """Every row of a list, asked for a page at a time. Only the cursor of the next page is believed, no address."""
        cursor: str | None = None
        while True:
            page = self.json("GET", path, params={**params, "limit": PAGE, "cursor": cursor})
            yield from page["results"]
            if not page.get("next"):
                return
            cursor = parse_qs(urlsplit(page["next"]).query)["cursor"][0]

    def save(self, path: str, to: str | os.PathLike[str], **options: Any) -> Path:
        """Write a download to the file ``to`` piece by piece; it is there whole or not at all."""
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
        """A path below the project, its ``{}`` filled with ``parts``."""
        if not self.project:
            raise ValueError("Name the project: Client(address, token, project).")
        return f"/projects/{quote(self.project, safe='')}/{path.format(*(quote(str(part), safe='') for part in parts))}"


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters as they are written, without those that were not given."""
    written = {True: "true", False: "false"}
    return {
        name: written[value] if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None and value != ()
    }


def _pause(answer: httpx.Response | None, tried: int, *, repeatable: bool) -> float | None:
    """Seconds until the next try; None when this answer is the one."""
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
    )
