"""Pages of figures kept as they were rendered, for the person who asked for them, until the project changes.

Who may read a page is checked before anything kept is looked at. A page is kept under everything that it depends on:
the person with role and settings, the language, the address, the release, and the state of the project
(`project_state`), so that nothing has to be invalidated. A page that asked for a computation is not kept, nor one with
a message. CSRF tokens are put into a kept page anew for each answer. The memory that a process uses is bounded.

The state of a project is one short text, which changes with everything that its pages of figures show. A table of a
project enters with all its columns unless it is named here: tables that only grow enter by the count and the newest of
their rows. Those with most rows (`LONG`) are counted again only where something else has changed, or they were counted
a minute ago: whoever writes to them changes an assignment, a call, a run or an import with it.
"""

from __future__ import annotations

import hashlib
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
from functools import cache, cached_property, wraps
from typing import Any, cast

from django.apps import apps
from django.conf import settings
from django.contrib.messages import get_messages
from django.db import connection
from django.db.models import Count, F, Max, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language

from accounts import access
from accounts.middleware import CHANGED
from accounts.models import Heartbeat, Project, User

APPS = ("accounts", "annotation", "judging", "analytics")
SOME_COLUMNS: dict[str, tuple[str, ...]] = {
    "accounts.Project": ("name", "description", "archived_at", "requires_second_factor"),
    "accounts.Membership": ("user", "role", "user__name"),
    "accounts.Job": ("kind", "state", "done", "total", "sentence"),
    "annotation.Import": ("kind", "state", "state_since"),
    "annotation.ItemQuestion": ("duty", "answered_at"),
    "annotation.Skip": ("duty", "at", "resolved_at"),  # whoever skips an item again changes the row
    "annotation.RubricVersion": ("number", "state", "digest", "published_at"),
    "judging.Judge": ("name", "provider", "model", "simulated", "parent", "digest"),  # of its variant and parameters
}
"""Tables that enter with these columns: others are long, or change without any page of figures changing."""
COUNTED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "accounts.AuditEntry": (("project",), ()),
    "annotation.Assignment": (("duty", "state", "revision"), ()),
    "annotation.Selection": (("duty",), ()),
    "annotation.Annotation": (("campaign",), ("superseded_at",)),
    "annotation.Adjudication": (("campaign",), ()),
    "annotation.MeetingDecision": (("campaign",), ()),
    "judging.Call": (("run", "state"), ()),
    "judging.Verdict": (("run",), ()),
    "judging.ErrorTag": (("verdict__run",), ()),
    "analytics.Snapshot": (("campaign",), ()),
    "analytics.GateDecision": (("campaign",), ()),
}
"""Tables whose rows do not change, by some columns, how many there are and the newest; then the columns that may be
filled later, of which the filled ones are counted."""
LONG = ("annotation.Annotation", "judging.Verdict")
COUNT_SECONDS = 60.0
LEFT_OUT = {
    **dict.fromkeys(("accounts.Invitation", "accounts.Token", "accounts.Webhook", "accounts.Delivery"), "not shown"),
    **dict.fromkeys(("accounts.ProjectDeletion", "accounts.SuspendedMembership"), "nobody sees a deleted project"),
    **dict.fromkeys(("annotation.ImportFile", "annotation.Upload", "annotation.DryRun"), "not shown"),
    **dict.fromkeys(("annotation.SavedMapping", "annotation.InvitedSeat", "annotation.Draft"), "not shown"),
    "annotation.DatasetCheckup": "on pages that are not kept",
    **dict.fromkeys(("annotation.PromptCollection", "annotation.PromptSlot"), "on pages that are not kept"),
    **dict.fromkeys(("annotation.CollectedPrompt", "annotation.PromptVersion"), "on pages that are not kept"),
    **dict.fromkeys(("annotation.CollectionMember", "annotation.CollectionDataset"), "on pages that are not kept"),
    "annotation.KeptDraft": "for the annotator alone who entered it",
    "annotation.PrivateNote": "for the annotator alone who writes it; the desk saves it again and again",
    **dict.fromkeys(("annotation.WritingDuty", "annotation.WritingText"), "on pages that are not kept"),
    **dict.fromkeys(("annotation.WritingSubmission", "annotation.WritingDecision"), "on pages that are not kept"),
    **dict.fromkeys(("analytics.Share", "analytics.Transfer", "analytics.StoredCell"), "not shown"),
    "annotation.Item": "never changes in a dataset that is ready",
    "annotation.Criterion": "its rubric version's digest",
    **dict.fromkeys(("annotation.Curation", "annotation.CuratedItem"), "never change; on pages that are not kept"),
    "annotation.SelectedItem": "never changes; its selection counts",
    "annotation.Rating": "comes with its annotation",
    "annotation.RubricChange": "comes with its annotations and the version of its campaign",
    "judging.DesignCell": "comes with its design",
    "judging.Attempt": "ends when its call's state changes",
    **dict.fromkeys(("judging.Alignment", "judging.AlignmentCandidate"), "on pages that are not kept"),
    **dict.fromkeys(("judging.AlignmentLook", "judging.AlignmentProposal"), "on pages that are not kept"),
    **dict.fromkeys(("judging.AlignmentSearch", "judging.CallBatch"), "on pages that are not kept"),
    "judging.JudgeTrial": "on pages that are not kept",
    **dict.fromkeys(("judging.GenerationPlan", "judging.PlanGenerator"), "on pages that are not kept"),
    **dict.fromkeys(("judging.GenerationFamily", "judging.Realisation"), "on pages that are not kept"),
    **dict.fromkeys(("judging.GenerationAttempt", "judging.PlanDataset"), "on pages that are not kept"),
    "analytics.Chart": "comes with its snapshot",
}
"""Tables of a project that do not enter, and why."""
ANY_PROJECT = -1
Rows = QuerySet[Any, dict[str, Any]]
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
"""If several requests want the same page at the same time, only one request renders the page."""


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
        """The approximate size in bytes: uncompressed plus compressed."""
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


@dataclass(frozen=True, slots=True)
class ProjectState:
    """What a project was like at a time: `changing` is read each time, `counted` of the long tables was read before."""

    changing: str
    counted: str
    counted_at: float

    @property
    def digest(self) -> str:
        """Differs whenever a page of figures of the project may."""
        return hashlib.sha256(f"{self.changing} {self.counted}".encode()).hexdigest()


def project_state(project: Project, former: ProjectState | None = None) -> ProjectState:
    """The project as it is; without a former state its long tables are counted, too. At most three statements."""
    now = time.monotonic()
    changing = repr((_read(_statement(is_long=False), project), Heartbeat.objects.silent()))
    if former and former.changing == changing and now - former.counted_at < COUNT_SECONDS:
        return ProjectState(changing, former.counted, former.counted_at)
    return ProjectState(changing, repr(_read(_statement(is_long=True), project)), now)


def _read(statement: tuple[str, list[Any]], project: Project) -> Any:
    sql, parameters = statement
    with connection.cursor() as cursor:
        cursor.execute(sql, [project.pk if given == ANY_PROJECT else given for given in parameters])
        return cursor.fetchone()


@cache
def _statement(*, is_long: bool) -> tuple[str, list[Any]]:
    """The statement for `ANY_PROJECT`, which Django writes once in a process; of long tables or of all others.

    Of a long table the others have the newest row, of any project: an index knows it.
    """
    project = Project(pk=ANY_PROJECT)
    shown = [model for model in project_tables() if model._meta.label not in LEFT_OUT]
    chosen = [model for model in shown if (model._meta.label in LONG) is is_long]
    rows = (_counted(model, project) if model._meta.label in COUNTED else _whole(model, project) for model in chosen)
    parts = [_as_text(each) for each in rows]
    newest = [] if is_long else [_newest(model) for model in shown if model._meta.label in LONG]
    columns = ", ".join([*(sql for sql, _given in parts), *newest])
    return f"SELECT {columns}", [each for _sql, given in parts for each in given]


def _newest(model: type[Model]) -> str:
    table, column = model._meta.db_table, cast(Any, model._meta.pk).column
    return f"(SELECT MAX({connection.ops.quote_name(column)}) FROM {connection.ops.quote_name(table)})"  # noqa: S608


@cache
def project_tables() -> tuple[type[Model], ...]:
    """The tables of which every row belongs to a project."""
    models = (model for app in APPS for model in apps.get_app_config(app).get_models())
    return tuple(model for model in models if path_to_project(model) is not None)


@cache
def path_to_project(model: type[Model]) -> str | None:
    """The shortest way over foreign keys from a table to the project, as a lookup; "pk" for the project itself.

    Over keys that may be empty only where there is no other way. None for a table of no project.
    """
    for may_be_empty in (False, True):
        ways, seen = [(model, "pk" if model is Project else "")], {model}
        for table, way in ways:  # grows meanwhile
            if table is Project:
                return way
            for column in table._meta.concrete_fields:
                further: Any = column.related_model
                if further is None or further in seen or (column.null and not may_be_empty):
                    continue
                seen.add(further)
                ways.append((further, f"{way}__{column.name}" if way else column.name))
    return None


def _whole(model: type[Model], project: Project) -> Rows:
    columns = SOME_COLUMNS.get(model._meta.label) or tuple(column.name for column in model._meta.concrete_fields)
    rows: Rows = _of(model, project).order_by("pk").values(c0=F("pk"), **_named(columns, 1))
    return rows


def _counted(model: type[Model], project: Project) -> Rows:
    by, filled = COUNTED[model._meta.label]
    counts = {f"n{place}": Count(name) for place, name in enumerate(filled)}
    grouped = _of(model, project).order_by(*by).values(**_named(by, 0))
    rows: Rows = grouped.annotate(n=Count("pk"), newest=Max("pk"), **counts)
    return rows


def _named(columns: tuple[str, ...], start: int) -> dict[str, F]:
    return {f"c{place}": F(name) for place, name in enumerate(columns, start)}


def _of(model: Any, project: Project) -> QuerySet[Any]:
    rows: QuerySet[Any] = model._default_manager.filter(**{str(path_to_project(model)): project.pk})
    return rows


def _as_text(rows: Rows) -> tuple[str, list[Any]]:
    """An expression of SQL with all rows as one text, and its parameters."""
    sql, parameters = rows.query.get_compiler(connection=connection).as_sql()
    if connection.vendor == "postgresql":
        return f"(SELECT md5(string_agg(found::text, ' ')) FROM ({sql}) AS found)", list(parameters)  # noqa: S608 Django's
    names = [*rows.query.values_select, *rows.query.annotation_select]
    row = " || ' ' || ".join(f"quote({connection.ops.quote_name(name)})" for name in names)
    return f"(SELECT group_concat({row}) FROM ({sql}) AS found)", list(parameters)  # noqa: S608 Django's own
