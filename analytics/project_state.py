"""The state of a project as one short text, which changes with everything that its pages of figures show.

A table of a project enters with all its columns unless it is named here: tables that only grow enter by the count and
the newest of their rows. Those with most rows (`LONG`) are counted again only where something else has changed, or they
were counted a minute ago: whoever writes to them changes an assignment, a call, a run or an import with it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from django.apps import apps
from django.db import connection
from django.db.models import Count, F, Max, Model, QuerySet

from accounts.models import Heartbeat, Project

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
    "analytics.Snapshot": (("campaign",), ()),
    "analytics.GateDecision": (("campaign",), ()),
}
"""Tables whose rows do not change, by some columns, how many there are and the newest; then the columns that may be
filled later, of which the filled ones are counted."""
LONG = ("annotation.Annotation", "judging.Verdict")
COUNT_SECONDS = 60.0
LEFT_OUT = {
    **dict.fromkeys(("accounts.Invitation", "accounts.Token", "accounts.Webhook", "accounts.Delivery"), "not shown"),
    **dict.fromkeys(("annotation.ImportFile", "annotation.Upload", "annotation.DryRun"), "not shown"),
    **dict.fromkeys(("annotation.SavedMapping", "annotation.InvitedSeat", "annotation.Draft"), "not shown"),
    "annotation.PrivateNote": "for the annotator alone who writes it; the desk saves it again and again",
    **dict.fromkeys(("analytics.Share", "analytics.Transfer", "analytics.StoredCell"), "not shown"),
    "annotation.Item": "never changes in a dataset that is ready",
    "annotation.Criterion": "its rubric version's digest",
    "annotation.SelectedItem": "never changes; its selection counts",
    "annotation.Rating": "comes with its annotation",
    "annotation.RubricChange": "comes with its annotations and the version of its campaign",
    "judging.DesignCell": "comes with its design",
    "judging.Attempt": "ends when its call's state changes",
    **dict.fromkeys(("judging.Alignment", "judging.AlignmentCandidate"), "on pages that are not kept"),
    **dict.fromkeys(("judging.AlignmentLook", "judging.AlignmentProposal"), "on pages that are not kept"),
    **dict.fromkeys(("judging.AlignmentSearch", "judging.CallBatch"), "on pages that are not kept"),
    "analytics.Chart": "comes with its snapshot",
}
"""Tables of a project that do not enter, and why."""
ANY_PROJECT = -1
Rows = QuerySet[Any, dict[str, Any]]


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
