"""Pages of figures kept as they were rendered, for the person who asked for them, until the project changes.

Who may read a page is checked before anything kept is looked at. A page is kept under everything that it depends on:
the person with role and settings, the language, the address, the release, and the state of the project
(`project_state`), so that nothing has to be invalidated. A page that asked for a computation is not kept, nor one with
a message. CSRF tokens are put into a kept page anew for each answer. The memory that a process uses is bounded.
"""

from __future__ import annotations

import re
import secrets
import struct
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, cast

from django.conf import settings
from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language

from accounts import access
from accounts.middleware import CHANGED
from accounts.models import Project, User
from analytics.project_state import ProjectState, project_state

STATE_SECONDS = 1.0
"""For so long a project is taken not to have changed; a person who changed something is given the state as it is."""
LONGEST_KEPT = 600.0  # seconds
MOST_PAGES = 500
UNSEEN_OF_PERSON = ("password", "last_login")
CSRF_TOKEN = secrets.token_hex(32)
"""Stands in a kept page for the token of whoever reads it."""
PACKED = re.compile(r"(^|,)\s*gzip\s*(,|$|;\s*q=(?!0(\.0*)?\s*(,|$)))")

View = Callable[..., HttpResponseBase]
_may_keep: ContextVar[bool] = ContextVar("may_keep", default=False)


def cached_page(view: View) -> View:
    """A view of figures of a project, for leads and researchers, whose pages may be kept.

    It stands innermost, below `require_safe` and `login_required`. The view takes the project's slug as `project`.
    """

    @wraps(view)
    def kept(request: HttpRequest, *args: Any, project: str, **parts: Any) -> HttpResponseBase:
        if not settings.PAGE_CACHE_MB or request.method != "GET" or len(get_messages(request)):
            return view(request, *args, project=project, **parts)
        member = access.membership(user=cast(User, request.user), slug=project)
        about = _about(request, member.role)
        state = STATES.read(member.project, fully=True) if CHANGED in request.COOKIES else STATES.recent(member.project)
        if page := PAGES.get((about, state)):
            return page.answer(request)
        with _RENDERING[hash(about) % len(_RENDERING)]:
            for find in (STATES.recent, STATES.read):  # first, whether another thread has rendered it meanwhile
                state = find(member.project)
                if page := PAGES.get((about, state)):
                    return page.answer(request)
            return _rendered(request, (about, state), lambda: view(request, *args, project=project, **parts))

    return kept


def do_not_keep() -> None:
    """Said while a page is rendered that is not to be kept: it asked for a computation, or shows how far one is."""
    _may_keep.set(False)


_RENDERING = tuple(threading.Lock() for _number in range(64))
"""Of several who ask for one page at once, one renders it."""


def _about(request: HttpRequest, role: str) -> Hashable:
    """Everything that a page depends on beside its project."""
    user: Any = request.user
    names = (column.attname for column in user._meta.concrete_fields if column.attname not in UNSEEN_OF_PERSON)
    person = repr([getattr(user, name) for name in names])
    asked = tuple(request.headers.get(name, "") for name in ("HX-Request", "HX-Target", "HX-Boosted"))
    languages = get_language(), getattr(request, "chosen_language", "")
    where = request.scheme, request.get_host(), request.get_full_path()
    return settings.VERSION, person, role, languages, where, asked


def _rendered(request: HttpRequest, key: Hashable, view: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    request.csrf_placeholder = CSRF_TOKEN  # type: ignore[attr-defined]
    before = request.META.pop("CSRF_COOKIE_NEEDS_UPDATE", None)
    reset = _may_keep.set(True)
    try:
        response = view()
        may_keep = _may_keep.get()
    finally:
        _may_keep.reset(reset)
        del request.csrf_placeholder  # type: ignore[attr-defined]  # a page of an error is rendered with a token
        has_token = "CSRF_COOKIE_NEEDS_UPDATE" in request.META  # then some part of the page has a token of its own
        if before is not None:
            request.META["CSRF_COOKIE_NEEDS_UPDATE"] = before
    if not isinstance(response, HttpResponse) or response.streaming:
        return response
    page = KeptPage(response.status_code, dict(response.items()), tuple(response.content.split(CSRF_TOKEN.encode())))
    if has_token or response.cookies or response.status_code not in (200, 204):
        response.content = page.with_token(request)
        return response
    if may_keep:
        PAGES.keep(key, page)
    return page.answer(request)


# --- one page ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KeptPage:
    """A response: between its `parts` stands the reader's CSRF token."""

    status: int
    headers: dict[str, str]
    parts: tuple[bytes, ...]
    made: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """In bytes, as it is and compressed, about."""
        return sum(map(len, self.parts)) * 5 // 4

    @cached_property
    def packed(self) -> tuple[bytes, ...]:
        """Each part as blocks of DEFLATE that end at a byte and refer to nothing before them."""
        packed = []
        for part in self.parts:
            compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed.append(compressor.compress(part) + compressor.flush(zlib.Z_FULL_FLUSH))
        return tuple(packed)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The page for this reader, compressed where the browser takes that."""
        response = HttpResponse(status=self.status)
        for name, value in self.headers.items():
            response[name] = value
        if self.parts != (b"",):
            patch_vary_headers(response, ["Accept-Encoding"])
            if PACKED.search(request.headers.get("Accept-Encoding", "")):
                response["Content-Encoding"] = "gzip"
                response.content = self.as_gzip(request)
            else:
                response.content = self.with_token(request)
        response.headers.pop("Content-Length", None)
        return response

    def with_token(self, request: HttpRequest) -> bytes:
        return self._token(request).join(self.parts)

    def as_gzip(self, request: HttpRequest) -> bytes:
        """The parts, compressed once, and between them the token, which is not compressed.

        A token is new in each answer and no block refers to it, so that the page's size says nothing of it.
        """
        token = self._token(request)
        stored = struct.pack("<BHH", 0, len(token), len(token) ^ 0xFFFF) + token
        checksum = length = 0
        for place, part in enumerate(self.parts):
            for piece in (token, part) if place else (part,):
                checksum, length = zlib.crc32(piece, checksum), length + len(piece)
        head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
        return head + stored.join(self.packed) + b"\x03\0" + struct.pack("<II", checksum, length & 0xFFFFFFFF)

    def _token(self, request: HttpRequest) -> bytes:
        return get_token(request).encode() if len(self.parts) > 1 else b""


# --- what is kept -----------------------------------------------------------------------------------------------------
class PageStore:
    """Pages by key, those not asked for longest leave first."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, KeptPage] = OrderedDict()
        self._lock, self.size = threading.Lock(), 0

    def get(self, key: Hashable) -> KeptPage | None:
        with self._lock:
            page = self._pages.get(key)
            if page is None:
                return None
            if time.monotonic() - page.made > LONGEST_KEPT:
                self._forget(key)
                return None
            self._pages.move_to_end(key)
            return page

    def keep(self, key: Hashable, page: KeptPage) -> None:
        with self._lock:
            if key in self._pages:
                self._forget(key)
            self._pages[key] = page
            self.size += page.size
            while self.size > settings.PAGE_CACHE_MB * 2**20 or len(self._pages) > MOST_PAGES:
                self._forget(next(iter(self._pages)))

    def clear(self) -> None:
        with self._lock:
            self._pages.clear()
            self.size = 0

    def __len__(self) -> int:
        return len(self._pages)

    def _forget(self, key: Hashable) -> None:
        self.size -= self._pages.pop(key).size


class ProjectStates:
    """The digest of each project's state, read at most once in `STATE_SECONDS`; one thread reads, others take the
    former."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, ProjectState]] = {}
        self._reading: dict[int, threading.Lock] = {}

    def recent(self, project: Project) -> str:
        """As it is, or was a moment ago."""
        if (known := self._known.get(project.pk)) is None:
            return self.read(project)
        age = time.monotonic() - known[0]
        lock = self._reading.setdefault(project.pk, threading.Lock())
        if age > 2 * STATE_SECONDS:
            return self.read(project)
        if age > STATE_SECONDS and lock.acquire(blocking=False):
            try:
                return self.read(project)
            finally:
                lock.release()
        return known[1].digest

    def read(self, project: Project, *, fully: bool = False) -> str:
        """As it is; ``fully``: its long tables are counted in any case."""
        started, known = time.monotonic(), self._known.get(project.pk)
        state = project_state(project, None if fully or known is None else known[1])
        if (newest := self._known.get(project.pk)) is None or newest[0] < started:
            self._known[project.pk] = started, state
        return state.digest

    def clear(self) -> None:
        self._known.clear()


PAGES, STATES = PageStore(), ProjectStates()
