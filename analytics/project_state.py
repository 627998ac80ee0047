"""The state of a project as one short text, which changes with everything that its pages of figures show.

One statement reads it: small tables with all their columns that matter, tables that only grow by the count and the
newest of their rows. Every table of a project is named here; tests/analytics/test_page_cache.py sees to that.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Count, F, Max, Model, QuerySet

from accounts.models import Heartbeat, Project

APPS = ("accounts", "annotation", "judging", "analytics")
WHOLE: dict[str, tuple[str, ...]] = {
    "accounts.Project": ("name", "description", "archived_at", "requires_second_factor"),
    "accounts.Membership": ("user", "role", "user__name"),
    "accounts.Job": ("kind", "state", "done", "total", "sentence"),
    "annotation.Import": ("kind", "state", "state_since"),
    "annotation.Dataset": ("name", "version", "state", "allocatable", "layout", "names_shown", "simulated"),
    "annotation.Annotator": ("user", "pseudonym", "identified"),
    "annotation.Panel": ("name", "language"),
    "annotation.PanelSeat": ("panel", "annotator"),
    "annotation.Rubric": ("key",),
    "annotation.RubricVersion": ("number", "state", "digest", "published_at"),
    "annotation.Campaign": ("name", "dataset", "rubric_version", "state"),
    "annotation.Duty": ("campaign", "panel", "name", "overlap", "languages", "chosen"),
    "annotation.ItemSelection": ("campaign", "name", "rule"),
    "judging.ProviderAllowance": ("provider", "cap_total", "cap_per_day"),
    "judging.Judge": ("name", "digest", "simulated"),
    "judging.JudgeDesign": ("name", "started_at", "budget", "jury"),
    "judging.JudgeRun": ("judge", "state", "reason", "is_pilot", "budget", "continues", "design"),
    "analytics.Computation": ("campaign", "settings_digest", "tries", "next_at", "reason", "detail"),
    "analytics.GateThresholds": ("number",),
}
"""Small tables: the columns that pages show and that may change."""
COUNTED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "accounts.AuditEntry": (("project",), ()),
    "annotation.Assignment": (("duty", "state"), ()),
    "annotation.Skip": (("duty",), ()),
    "annotation.Selection": (("duty",), ()),
    "annotation.Annotation": (("campaign",), ("superseded_at",)),
    "judging.Call": (("run", "state"), ()),
    "judging.Verdict": (("run",), ()),
    "analytics.Snapshot": (("campaign",), ()),
    "analytics.GateDecision": (("campaign",), ()),
}
"""Tables whose rows do not change: by some columns, how many there are and the newest; then the columns that may be
filled later, of which the filled ones are counted."""
LEFT_OUT = {
    **dict.fromkeys(("accounts.Invitation", "accounts.Token", "accounts.Webhook", "accounts.Delivery"), "not shown"),
    **dict.fromkeys(("annotation.ImportFile", "annotation.Upload", "annotation.DryRun"), "not shown"),
    **dict.fromkeys(("annotation.SavedMapping", "annotation.InvitedSeat", "annotation.Draft"), "not shown"),
    **dict.fromkeys(("analytics.Share", "analytics.Transfer", "analytics.StoredCell"), "not shown"),
    "annotation.Item": "never changes in a dataset that is ready",
    "annotation.Criterion": "its rubric version's digest",
    "annotation.SelectedItem": "never changes; its selection counts",
    "annotation.Rating": "comes with its annotation",
    "judging.DesignCell": "comes with its design",
    "judging.Attempt": "ends when its call's state changes",
    "analytics.Chart": "comes with its snapshot",
}
"""Tables of a project that do not enter, and why."""


def project_state(project: Project) -> str:
    """A digest that differs whenever a page of figures of the project may; one statement, and one for the notices."""
    parts, parameters = [], []
    for rows in (*map(_whole, WHOLE), *map(_counted, COUNTED)):
        sql, given = rows(project)
        parts.append(sql)
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", parameters)
        found = cursor.fetchone()
    return hashlib.sha256(repr((found, Heartbeat.objects.silent())).encode()).hexdigest()


def path_to_project(model: type[Model]) -> str:
    """The shortest way over foreign keys from a table to the project, as a lookup; "" for the project itself.

    Not over keys that may be empty, but for rows that may belong to none. `LookupError` for a table of no project.
    """
    for may_be_empty in (False, True):
        ways, seen = [(model, "")], {model}
        for table, way in ways:  # grows meanwhile
            if table is Project:
                return way
            for column in table._meta.concrete_fields:
                further: Any = column.related_model
                if further is None or further in seen or (column.null and not may_be_empty):
                    continue
                seen.add(further)
                ways.append((further, f"{way}__{column.name}" if way else column.name))
    raise LookupError(f"{model._meta.label} belongs to no project")


def _whole(label: str) -> Any:
    def rows(project: Project) -> tuple[str, list[Any]]:
        return _as_text(_of(label, project).order_by("pk").values(c0=F("pk"), **_named(WHOLE[label], 1)))

    return rows


def _counted(label: str) -> Any:
    by, filled = COUNTED[label]

    def rows(project: Project) -> tuple[str, list[Any]]:
        counts = {f"n{place}": Count(name) for place, name in enumerate(filled)}
        grouped = _of(label, project).order_by(*by).values(**_named(by, 0))
        return _as_text(grouped.annotate(n=Count("pk"), newest=Max("pk"), **counts))

    return rows


def _named(columns: tuple[str, ...], start: int) -> dict[str, F]:
    return {f"c{place}": F(name) for place, name in enumerate(columns, start)}


def _of(label: str, project: Project) -> QuerySet[Any]:
    model: Any = apps.get_model(label)
    rows: QuerySet[Any] = model._default_manager.filter(**{path_to_project(model) or "pk": project.pk})
    return rows


def _as_text(rows: QuerySet[Any, dict[str, Any]]) -> tuple[str, list[Any]]:
    """An expression of SQL with all rows as one text, and its parameters."""
    sql, parameters = rows.query.get_compiler(connection=connection).as_sql()
    if connection.vendor == "postgresql":
        return f"(SELECT md5(string_agg(found::text, ' ')) FROM ({sql}) AS found)", list(parameters)  # noqa: S608 Django's
    names = [*rows.query.values_select, *rows.query.annotation_select]
    row = " || ' ' || ".join(f"quote({connection.ops.quote_name(name)})" for name in names)
    return f"(SELECT group_concat({row}) FROM ({sql}) AS found)", list(parameters)  # noqa: S608 Django's own
