"""What can go wrong, as exceptions. None of them, and nothing else here, ever holds the token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
        super().__init__(self._said())

    def _said(self) -> str:
        named = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in self.fields.items())
        told = f"{self.detail} ({self.status} {self.code})"
        return _lines(f"{told} {named}" if named else told, self.problems)


class BadRequest(ApiError):
    """400: some fields need another look."""


class NotSignedIn(ApiError):
    """401: the token is unknown, revoked or has expired."""


class Forbidden(ApiError):
    """403: your role, or the token's scope, does not allow that."""


class NotFound(ApiError):
    """404: there is no such thing, or none that you may see."""


class Conflict(ApiError):
    """409: not as things stand."""


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
