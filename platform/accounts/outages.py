"""Outages: what a request answers while the database, Redis, the broker or the data folder does not work.

503 with `Retry-After` (507 if a disk is full): JSON for programs and scripts, a page for people. An outage is found by
the exception that it raises, wherever that happens; `OutageMiddleware` and the handler of server errors ask here. While
PostgreSQL is away, requests are refused at once and only one a second tries it, so that no thread waits for it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import InterfaceError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from accounts import data_folder
from accounts.data_folder import FolderState

logger = logging.getLogger(__name__)

HEALTH = "/healthz"
NO_SPACE = 507  # Insufficient Storage
LOGGED_EVERY = 10.0  # seconds, of each process
ASKED_EVERY = 1.0  # seconds, while the database is away
CONNECT_TIMEOUT = 2  # seconds, for asking it


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What does not work, in one sentence for people."""

    code: str
    sentence: str | Promise
    status: int = 503
    retry_after: int = 5  # seconds


DATABASE = Outage(
    code="database_unavailable",
    sentence=gettext_lazy("The database does not answer. Keep your input and try again in a minute."),
)
BUSY = Outage(
    code="database_busy",
    sentence=gettext_lazy("The database is busy. Keep your input and try again in a minute."),
)
SERVICE = Outage(
    code="service_unavailable",
    sentence=gettext_lazy("A service of this server does not answer. Keep your input and try again in a minute."),
)
FOLDER = {
    FolderState.FULL: Outage(
        code=FolderState.FULL,
        status=NO_SPACE,
        retry_after=60,
        sentence=gettext_lazy(
            "The server's disk is full, so nothing can be stored now. Keep your input and try again later."
        ),
    ),
    FolderState.READ_ONLY: Outage(
        code=FolderState.READ_ONLY,
        retry_after=30,
        sentence=gettext_lazy(
            "The server's disk cannot be written to, so nothing can be stored now. Keep your input and try again later."
        ),
    ),
    FolderState.MISSING: Outage(
        code=FolderState.MISSING,
        retry_after=30,
        sentence=gettext_lazy(
            "The server's data folder is missing, so nothing can be stored now. Keep your input and try again later."
        ),
    ),
    FolderState.FROZEN: Outage(
        code=FolderState.FROZEN,
        sentence=gettext_lazy(
            "The server's disk does not answer, so nothing can be stored now. Keep your input and try again later."
        ),
    ),
    FolderState.BROKEN: Outage(
        code=FolderState.BROKEN,
        retry_after=30,
        sentence=gettext_lazy(
            "The server's disk reports errors, so nothing can be stored now. Keep your input and try again later."
        ),
    ),
}
DISK_FULL = FOLDER[FolderState.FULL]


# --- what an exception means -----------------------------------------------------------------------------------------
def outage_of(error: BaseException | None) -> Outage | None:
    """The outage behind an exception: its own, or that of one of its causes. None if it is an error of the program."""
    found = next(filter(None, map(_meaning, _with_causes(error))), None)
    if found is DATABASE:
        _database.note_outage()
    return found


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and its causes, each once: a cause may be its own cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _meaning(error: BaseException) -> Outage | None:
    if name := getattr(error, "sqlite_errorname", ""):
        return _of_sqlite(str(name))
    if isinstance(error, InterfaceError):  # the connection broke earlier in the same transaction
        return DATABASE if connection.vendor == "postgresql" else None
    library = type(error).__module__.partition(".")[0]
    if library in ("psycopg", "psycopg_pool"):
        return _of_postgresql(error)
    if library == "redis":
        return _of_redis(error)
    if library == "kombu":
        from kombu.exceptions import OperationalError

        return SERVICE if isinstance(error, OperationalError) else None
    if isinstance(error, OSError):
        return FOLDER.get(data_folder.state_behind(error))
    return None


def _of_sqlite(name: str) -> Outage | None:
    if name == "SQLITE_FULL":
        return DISK_FULL
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BUSY
    if name.startswith("SQLITE_READONLY"):
        return FOLDER[FolderState.READ_ONLY]
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR")):
        return FOLDER[data_folder.folder_state(fresh=True) or FolderState.BROKEN]
    return None


# Classes and codes of SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
_AWAY = ("08", "57P01", "57P02", "57P03", "57P05", "53300", "53400")  # no connection, shutting down, too many
_CONFLICT = ("40001", "40P01", "55P03", "57014", "53200")  # to be tried again
_NOT_WRITABLE = ("25006", "58030", "58P01")  # read-only, an error of its disk


def _of_postgresql(error: BaseException) -> Outage | None:
    import psycopg

    code = getattr(error, "sqlstate", None) or ""
    if code == "53100":
        return DISK_FULL
    if code.startswith(_NOT_WRITABLE):
        return FOLDER[FolderState.READ_ONLY if code == "25006" else FolderState.BROKEN]
    if code.startswith(_CONFLICT):
        return BUSY
    is_lost = not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return DATABASE if is_lost or code.startswith(_AWAY) else None


def _of_redis(error: BaseException) -> Outage | None:
    from redis import exceptions

    known = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ReadOnlyError, exceptions.OutOfMemoryError)
    return SERVICE if isinstance(error, known) else None


# --- a database that is away -----------------------------------------------------------------------------------------
def database_answers() -> bool:
    """Whether PostgreSQL accepts a new connection, outside the pool, within `CONNECT_TIMEOUT`."""
    import psycopg

    parameters = {**connection.get_connection_params(), "connect_timeout": CONNECT_TIMEOUT, "autocommit": True}
    try:
        psycopg.connect(**parameters).close()
    except psycopg.Error:
        return False
    return True


class _DatabaseWatch:
    """Whether PostgreSQL was away when it was last needed; one request a second then tries it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_away = False
        self._next_try = 0.0

    def note_outage(self) -> None:
        if connection.vendor == "postgresql":
            with self._lock:
                self._is_away, self._next_try = True, time.monotonic() + ASKED_EVERY

    def is_away(self) -> bool:
        """Whether it still is."""
        if not self._is_away:
            return False
        with self._lock:
            if not self._is_away or time.monotonic() < self._next_try:
                return self._is_away
            self._next_try = time.monotonic() + CONNECT_TIMEOUT + ASKED_EVERY
        if not database_answers():
            self._next_try = time.monotonic() + ASKED_EVERY
            return True
        self._is_away = False
        return False


_database = _DatabaseWatch()


def present_outage() -> Outage | None:
    """The outage that is known before a request begins."""
    if _database.is_away():
        return DATABASE
    return FOLDER[FolderState.MISSING] if data_folder.is_database_missing() else None


# --- requests --------------------------------------------------------------------------------------------------------
_thread = threading.local()


def in_web_request() -> bool:
    """Whether this thread works on a web request, which may not wait for ever."""
    return getattr(_thread, "in_request", False)


@contextmanager
def _web_request() -> Iterator[None]:
    _thread.in_request = True
    try:
        yield
    finally:
        _thread.in_request = False


class OutageMiddleware:
    """Answers 503 or 507 during an outage; `/healthz` reports it in its own words."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with _web_request():
            if request.path == HEALTH:
                request.COOKIES = {}  # whoever asks need not be looked up in the database
            elif (outage := present_outage()) is not None:
                return unavailable(request, outage)
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        outage = outage_of(error)
        return None if outage is None else unavailable(request, outage, error)


def unavailable(request: HttpRequest, outage: Outage, error: BaseException | None = None) -> HttpResponse:
    """The answer of a request that an outage ended, in the person's language."""
    _log(outage, error)
    language = getattr(request, "chosen_language", "") or translation.get_language_from_request(request)
    with translation.override(language):
        body = {"code": str(outage.code), "detail": str(outage.sentence), "fields": {}}
        if request.path.startswith("/api/") or "application/json" in request.headers.get("Accept", ""):
            response: HttpResponse = JsonResponse(body, status=outage.status)
        else:
            page = loader.get_template("507.html" if outage.status == NO_SPACE else "503.html")
            response = HttpResponse(page.render({"sentence": outage.sentence}), status=outage.status)
        response.headers["Content-Language"] = language
    response.headers["Retry-After"] = str(outage.retry_after)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Frame-Options"] = "DENY"
    return response


_logged: dict[str, float] = {}


def _log(outage: Outage, error: BaseException | None) -> None:
    """One line for each kind of outage every `LOGGED_EVERY` seconds, not one for every request."""
    now = time.monotonic()
    if now - _logged.get(outage.code, float("-inf")) >= LOGGED_EVERY:
        _logged[outage.code] = now
        reason = str(error or sys.exc_info()[1] or "").strip().partition("\n")[0]
        logger.error("requests are answered with %d %s: %s", outage.status, outage.code, reason)
