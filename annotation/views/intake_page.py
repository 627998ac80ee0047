"""What an import's page shows, and how its form is read. One page serves every kind of import.

Whoever can store a kind gives the addresses: annotation for datasets, rubrics and ratings, judging for verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from accounts.models import Project, User
from annotation import reception, sheet, targets
from annotation.formats.columns import ColumnFacts
from annotation.formats.items import NAMED_FIELDS, ItemRow
from annotation.formats.mapping import Mapping as ColumnMapping
from annotation.formats.report import Report
from annotation.models import Campaign, Dataset, Intake, Item, RubricVersion
from annotation.previews import Preview

IGNORE = "ignore"
ITEMS_SHOWN = 5
FIELDS = {
    "dataset": (
        *("id", "language", "generator", "scenario", "title", "turns"),
        *NAMED_FIELDS,
        *("content_warning", "attributes", IGNORE),
    ),
    "ratings": ("item", "rater", "criterion", "score", "rationale", "seconds", "scale_max", "language"),
    "verdicts": ("item", "judge", "criterion", "score", "rationale", "repeat", "reply", "generator"),
}
CONSTANTS = {
    "dataset": ("language", "generator", "scenario"),
    "ratings": ("rater", "criterion"),
    "verdicts": ("judge", "criterion", "generator"),
}
PER_CRITERION = {"ratings": ("score", "rationale", "ratings"), "verdicts": ("score", "rationale")}


@dataclass(frozen=True, slots=True)
class ColumnShown:
    """A column, and the fields that it may give."""

    facts: ColumnFacts
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConstantShown:
    """A field that no column gives, with the value that all rows have."""

    field: str
    value: str


def context(request: HttpRequest, project: Project, intake: Intake, seen: Preview | None) -> dict[str, Any]:
    """The page of an intake; ``seen`` is its preview while it is not stored."""
    shown: dict[str, Any] = {
        "title": ", ".join(each.name for each in intake.files.all()) or intake.get_kind_display(),
        "project": project,
        "intake": intake,
        "files": intake.files.all(),
        "report": Report.from_dict(intake.report),
    }
    return shown if seen is None else shown | _unstored(request.user, project, intake, seen)


def _unstored(user: User, project: Project, intake: Intake, seen: Preview) -> dict[str, Any]:
    keys = _keys(project, intake)
    return {
        "seen": seen,
        "report": seen.report,
        "problems": list(seen.problems),
        "kinds": Intake.Kind.choices,
        "columns": _columns(intake.kind, seen.columns, keys),
        "constants": _constants(intake.kind, seen.mapping),
        "criteria": _criteria(seen),
        "keys": keys,
        "items": [_item(row) for row in seen.rows[:ITEMS_SHOWN]] if intake.kind == Intake.Kind.DATASET else [],
        "mapping_yaml": seen.mapping.as_yaml() if seen.columns else "",
        "earlier": reception.earlier_mappings(intake),
        "default_name": reception.default_name(intake),
        **_choices(user, project),
    }


def _choices(user: User, project: Project) -> dict[str, Any]:
    """What ratings and verdicts may be about."""
    versions = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
    return {
        "campaigns": Campaign.objects.visible_to(user).filter(project=project),
        "datasets": Dataset.objects.visible_to(user).filter(project=project),
        "versions": versions.select_related("rubric"),
    }


def _keys(project: Project, intake: Intake) -> tuple[str, ...]:
    target = targets.resolve(project=project, said=intake.target)
    return tuple(each.key for each in target.rubric_version.criteria.all()) if target else ()


def _columns(kind: str, columns: Iterable[ColumnFacts], keys: Iterable[str]) -> list[ColumnShown]:
    fields = [*FIELDS.get(kind, ()), *(f"{part}.{key}" for part in PER_CRITERION.get(kind, ()) for key in keys)]
    return [
        ColumnShown(each, tuple(dict.fromkeys([*fields, each.target] if each.target else fields))) for each in columns
    ]


def _constants(kind: str, mapping: ColumnMapping) -> list[ConstantShown]:
    names = dict.fromkeys([*CONSTANTS.get(kind, ()), *mapping.constants])
    given = set(mapping.columns.values())
    return [ConstantShown(name, mapping.constants.get(name, "")) for name in names if name not in given]


def _criteria(seen: Preview) -> dict[str, str]:
    """The file's names for criteria, with the key that each is taken for ("" where nobody knows)."""
    unknown = {name: "" for name, key in seen.criteria.items() if not key}
    return {**seen.mapping.values.get("criterion", {}), **unknown}


def _item(row: ItemRow) -> dict[str, Any]:
    item = Item(
        external_id=row.external_id,
        language=row.language,
        title=row.title,
        turns=row.turns,
        fields=row.fields,
        content_warning=row.content_warning,
    )
    return {"row": row, "shown": sheet.show_item(item, ())}


# --- reading the form -----------------------------------------------------------------------------------------------
def read_mapping(form: QueryDict, before: ColumnMapping) -> ColumnMapping:
    """The mapping as the table has it; what the table does not show (layout, objects that are spread) stays."""
    listed = dict(zip(form.getlist("column"), form.getlist("field"), strict=False))
    chosen = {column: field for column, field in listed.items() if field not in ("", IGNORE)}
    kept = {column: field for column, field in before.columns.items() if column not in listed}
    ignored = [column for column in before.ignore if column not in listed]
    ignored += [column for column, field in listed.items() if field == IGNORE]
    return replace(
        before,
        columns={**kept, **chosen},
        ignore=tuple(ignored),
        constants=_read_constants(form, before),
        values=_read_values(form, before),
    )


def _read_constants(form: QueryDict, before: ColumnMapping) -> dict[str, str]:
    said = {name.partition("-")[2]: form.get(name, "").strip() for name in form if name.startswith("constant-")}
    return {name: value for name, value in {**before.constants, **said}.items() if value}


def _read_values(form: QueryDict, before: ColumnMapping) -> dict[str, dict[str, str]]:
    named = zip(form.getlist("criterion"), form.getlist("criterion_key"), strict=False)
    criteria = {name: key for name, key in named if key}
    others = {field: values for field, values in before.values.items() if field != "criterion"}
    return {**others, "criterion": criteria} if criteria else others


def read_target(form: QueryDict, kind: str) -> dict[str, Any]:
    """Where the rows go, as an intake keeps it."""
    if kind == Intake.Kind.DATASET:
        return {name: text(form, name)[:longest] for name, longest in (("name", 120), ("licence", 200))}
    named = {name: key(form.get(name, "")) for name in ("campaign", "dataset", "rubric_version")}
    chosen: dict[str, Any] = {name: pk for name, pk in named.items() if pk}
    if name := text(form, "campaign_name"):
        chosen["name"] = name[:120]
    return chosen


def text(form: QueryDict, name: str) -> str:
    """A line of text as posted, without NUL, which PostgreSQL does not store."""
    return form.get(name, "").replace("\x00", "").strip()


def key(posted: str) -> int:
    """A primary key as posted; 0, which no row has, for anything else."""
    return int(posted) if posted.isascii() and posted.isdecimal() and len(posted) < 19 else 0


def address(intake: Intake) -> str:
    """The page of an intake; judging has that of verdicts."""
    name = "verdict_import" if intake.kind == Intake.Kind.VERDICTS else "intake"
    return reverse(name, args=[intake.project.slug, intake.pk])
