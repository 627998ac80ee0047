"""The page of an import: its context, the reading of its form, and the mappings that it offers.

One page serves every kind of import. The app that stores a kind passes the addresses to store and undo it: annotation
for datasets, rubrics and ratings, judging for verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.inputs import whole_number, without_nul
from accounts.models import Job, Project, User
from accounts.refusals import Refused
from annotation.desk import presentation
from annotation.imports import import_jobs, lifecycle, opening, targets
from annotation.imports.check_reports import PreviewReport, preview_report
from annotation.imports.previews import Preview
from annotation.models import Campaign, Dataset, Import, Item, RubricVersion, SavedMapping
from annotation.readers import (
    ENCODINGS,
    NAMED_FIELDS,
    FormatError,
    Mapping,
    PersonScores,
    Report,
    StudyImport,
    case_folded,
    codec_called,
    is_unnamed,
    is_with_decimal_comma,
)
from annotation.readers import TURNS_COLUMN as TURNS
from annotation.readers import Mapping as ColumnMapping
from annotation.readers import known_studies as studies
from annotation.views.import_words import IGNORE, field_label, problem_on_page, report_on_page
from annotation.writers.csv import csv_lines

# --- mappings --------------------------------------------------------------------------------------------------------
SAVED, EARLIER, READY = "saved", "import", "ready"


@dataclass(frozen=True, slots=True)
class Offer:
    """One mapping: the value of its option, and its name."""

    value: str
    name: str


def offered_mappings(*, user: User, file_import: Import) -> list[tuple[str, list[Offer]]]:
    """The mappings that fit this kind of import, in groups by origin. Groups without mappings are left out."""
    saved = SavedMapping.objects.visible_to(user).filter(project=file_import.project_id, kind=file_import.kind)
    groups = [
        (_("Saved in this project"), [Offer(f"{SAVED}-{mapping.pk}", mapping.name) for mapping in saved]),
        (
            _("From earlier imports"),
            [
                Offer(f"{EARLIER}-{earlier_import.pk}", _named(earlier_import))
                for earlier_import in _earlier(file_import)
            ],
        ),
        (
            _("Ready mappings"),
            [Offer(f"{READY}-{key}", name) for key, (name, _part) in _ready(file_import.kind).items()],
        ),
    ]
    return [(origin, offers) for origin, offers in groups if offers]


def _earlier(file_import: Import) -> list[Import]:
    return lifecycle.earlier_mappings(file_import)


def _named(file_import: Import) -> str:
    return f"{file_import.pk}: {', '.join(file.name for file in file_import.files.all())}"


def _ready(kind: str) -> dict[str, tuple[str, StudyImport]]:
    """The ready mappings for a kind, by ``STUDY.POSITION``: a name that is unique in the list, and the study's part."""
    return {
        f"{study.name}.{place}": (f"{study.name}: {part.name or part.dataset} ({_marks(part)})", part)
        for study in studies().values()
        for place, part in enumerate(study.imports)
        if part.kind == kind
    }


def _marks(part: StudyImport) -> str:
    """The names of files or columns by which this part of a study is recognised, at most three."""
    return ", ".join([*part.files, *part.mapping.aligned, *part.columns][:3])


def chosen_mapping(*, user: User, file_import: Import, choice: str) -> Mapping:
    """The mapping of an option's value. Raises `Refused` when none is chosen."""
    if not choice:
        raise Refused(_("Choose a mapping."), code="no_mapping")
    place, _dash, key = choice.partition("-")
    if place == READY:
        if key not in (ready := _ready(file_import.kind)):
            raise Http404("There is no such built-in mapping.")
        return ready[key][1].mapping
    pk = whole_number(key) or 0
    if place == SAVED:
        saved = SavedMapping.objects.visible_to(user).filter(project=file_import.project_id, kind=file_import.kind)
        return Mapping.from_dict(get_object_or_404(saved, pk=pk).mapping)
    earlier = Import.objects.visible_to(user).filter(project=file_import.project_id)
    return get_object_or_404(earlier, pk=pk).column_mapping()


ATTRIBUTE = "attributes."
_WRITTEN = "written_mapping"  # in the session
PROBLEM = ("file", "line", "column", "found", "expected", "code")
UNDER_WAY = (Import.State.CHECKING, Import.State.STORING, Import.State.UNDOING)
FIELDS = {
    "dataset": (
        *("id", "language", "generator", "scenario", "title", "turns"),
        *("turn.speaker", "turn.name", "turn.text", "turn.number"),
        *NAMED_FIELDS,
        *("content_warning", "attributes", IGNORE),
    ),
    "ratings": ("item", "rater", "criterion", "score", "rationale", "evidence", "seconds", "scale_max", "language"),
    "verdicts": (
        *("item", "judge", "variant", "criterion", "score", "rationale", "repeat", "repeat_number", "generator"),
        *("prompt", "reply", "served_model", "tokens_in", "tokens_out", "cost", "latency"),
    ),
}
CONSTANTS = {
    "dataset": ("language", "generator", "scenario"),
    "ratings": ("rater", "criterion"),
    "verdicts": ("judge", "criterion", "generator"),
    "study": ("language", "generator", "scenario", "judge"),
}
SWITCHES = ("short_rows", "trust_ids", "decimal_comma")
LINE_BREAK = "\\n"  # how a form shows a line break in a text that replaces another
PER_CRITERION = {"ratings": ("score", "rationale", "ratings"), "verdicts": ("score", "rationale")}


@dataclass(frozen=True, slots=True)
class ColumnShown:
    """A column of the preview (``facts``), and the fields that it can be used as: value and label."""

    facts: PreviewReport
    options: tuple[tuple[str, str], ...]
    attribute: str | None = None  # the name for a dataset's column without a name; None if the column has a name


@dataclass(frozen=True, slots=True)
class ConstantShown:
    """A field that no column gives, and the value that is the same for all rows."""

    field: str
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Way:
    """How far a worker is, ``done`` of ``total``.

    The first ``size`` units are the bytes of the files that are read; the rest is for storing or comparing their rows.
    """

    done: int
    total: int
    size: int

    @property
    def read(self) -> int:
        return min(self.done, self.size)


def way(file_import: Import) -> Way:
    """How far the worker of an import is."""
    size = sum(file.size for file in file_import.files.all())
    return Way(file_import.done, file_import.total, size)


def current_preview(file_import: Import, preview: Callable[[], Preview]) -> PreviewReport | None:
    """What storing would do: computed now, or the result of the last check if the files are large. None if the import
    is stored, or no check has ended."""
    if file_import.state not in lifecycle.UNSTORED:
        return None
    if file_import.is_large():
        return import_jobs.current_check(file_import)
    has_target = file_import.kind in opening.ABOUT_ITEMS
    target = targets.resolve(project=file_import.project, target_fields=file_import.target) if has_target else None
    return preview_report(preview(), target)


def context(request: HttpRequest, project: Project, file_import: Import, seen: PreviewReport | None) -> dict[str, Any]:
    """The template context of an import's page; ``seen`` is what storing would do (see `seen`), None if not known."""
    together = file_import.siblings()
    shown: dict[str, Any] = {
        "title": ", ".join(file.name for file in file_import.files.all()) or file_import.get_kind_display(),
        "project": project,
        "file_import": file_import,
        "files": file_import.files.all(),
        "way": way(file_import) if file_import.state in UNDER_WAY else None,
        "is_under_way": file_import.state in UNDER_WAY,
        "undo_failure": _undo_failure(file_import),
        "is_editable": file_import.state in import_jobs.EDITABLE,
        "siblings": together,
        "has_ratings_sibling": any(sibling.kind == Import.Kind.RATINGS for sibling in together),
        "report": Report.from_dict(file_import.report),
    }
    if seen is None:
        return shown
    return shown | _unstored(request.user, project, file_import, seen) | {"written": _written(request, file_import)}


def _undo_failure(file_import: Import) -> str:
    """Why an import whose undo failed is still stored; empty for others."""
    job = file_import.job if file_import.state == Import.State.STORED else None
    return job.sentence if job is not None and job.kind == Job.Kind.UNDO else ""


def keep_written(request: HttpRequest, file_import: Import, problem: str) -> None:
    """Keep a mapping that can't be read, so that the page shows it with its problem instead of losing it."""
    request.session[_WRITTEN] = {"file_import": file_import.pk, "yaml": text(request.POST, "yaml"), "problem": problem}


def _written(request: HttpRequest, file_import: Import) -> dict[str, Any] | None:
    kept = request.session.get(_WRITTEN)
    return request.session.pop(_WRITTEN) if kept and kept["file_import"] == file_import.pk else None


def _unstored(user: User, project: Project, file_import: Import, seen: PreviewReport) -> dict[str, Any]:
    mapping, keys = ColumnMapping.from_dict(seen["mapping"]), tuple(seen["scales"])
    names, words = {column["name"] for column in seen["columns"]}, seen.get("words", {})
    columns = _columns(file_import.kind, [*seen["columns"], *_unseen(seen, mapping)], keys)
    return {
        "seen": seen,
        "report": report_on_page(Report.from_dict(seen["report"]), words),
        "problems": [problem_on_page(problem, names, words) for problem in seen["problems"]],
        "kinds": Import.Kind.choices,
        "columns": columns,
        "has_scales": any(column.facts["off_scale"] is not None for column in columns),
        "constants": _constants(file_import.kind, mapping),
        "criteria": _criteria(seen, mapping),
        "keys": keys,
        "kinds_of_problems": [problem_on_page(kind, names, words) for kind in seen.get("kinds_of_problems", [])],
        "unread": _unread(seen),
        "speakers": [*mapping.speakers.items(), ("", ""), ("", "")] if "turns" in mapping.columns.values() else [],
        "replacements": _replacements(mapping),
        "layout": _layout(file_import, mapping, seen),
        "items": [_item(row) for row in seen["rows"]] if file_import.kind == Import.Kind.DATASET else [],
        "people": _people(file_import.kind, seen, mapping),
        "lacks_target": _lacks_target(file_import),
        "mapping_yaml": mapping.as_yaml() if seen["columns"] else "",
        "default_name": file_import.default_name(),
        **_choices(user, project, file_import.kind),
    }


def _lacks_target(file_import: Import) -> bool:
    """Whether these are ratings or verdicts without a chosen campaign, or dataset and rubric."""
    return (
        file_import.kind in opening.ABOUT_ITEMS
        and targets.resolve(project=file_import.project, target_fields=file_import.target) is None
    )


def _choices(user: User, project: Project, kind: str) -> dict[str, Any]:
    """What the rows can be stored for: campaigns, datasets and rubric versions; items only extend a dataset."""
    datasets = Dataset.objects.visible_to(user).filter(project=project)
    if kind not in opening.ABOUT_ITEMS:
        return {"datasets": datasets}
    versions = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
    return {
        "campaigns": Campaign.objects.visible_to(user).filter(project=project),
        "datasets": datasets,
        "versions": versions.select_related("rubric"),
    }


def _columns(kind: str, columns: Iterable[PreviewReport], keys: Iterable[str]) -> list[ColumnShown]:
    fields = [*FIELDS.get(kind, ()), *(f"{part}.{key}" for part in PER_CRITERION.get(kind, ()) for key in keys)]
    return [
        ColumnShown(
            column,
            tuple(
                (field, field_label(field))
                for field in dict.fromkeys([*fields, column["target"]] if column["target"] else fields)
            ),
            _attribute(column["target"]) if kind == Import.Kind.DATASET and is_unnamed(column["name"]) else None,
        )
        for column in columns
    ]


def _attribute(field: str) -> str:
    return field.removeprefix(ATTRIBUTE) if field.startswith(ATTRIBUTE) else ""


def _unread(seen: PreviewReport) -> list[dict[str, Any]]:
    """The values in the files that have no known meaning, with their column and the field that they fill."""
    return [
        {**value, "field": column["target"], "column": column["name"], "means": value["means"] or value["likely"]}
        for column in seen["columns"]
        for value in column.get("unread", [])
    ]


def _unseen(seen: PreviewReport, mapping: ColumnMapping) -> list[PreviewReport]:
    """The columns that are in the mapping and not in the preview, for example if a file can't be read. They stay in the
    table, so that no choice is lost."""
    shown = {column["name"] for column in seen["columns"]}
    outer = {name.partition(".")[0] for name in shown}
    faults = [problem["column"] for problem in seen["problems"] if problem["code"] in ("header", "unnamed_column")]
    unnamed = {column: "" for column in faults if column and is_unnamed(column)}
    named = {
        **unnamed,
        **mapping.columns,
        **dict.fromkeys(mapping.unmapped, ""),
        **dict.fromkeys(mapping.ignore, IGNORE),
    }
    missing = {
        name: field
        for name, field in named.items()
        if name not in outer | shown and name.partition(".")[0] not in outer and "*" not in name and name != TURNS
    }
    nothing = {"filled": 0, "blank": 0, "distinct": 0, "is_many": False, "examples": [], "most": [], "off_scale": None}
    return [{"name": name, "target": field, "is_missing": True, **nothing} for name, field in missing.items()]


def _layout(file_import: Import, mapping: ColumnMapping, seen: PreviewReport) -> dict[str, Any]:
    """The questions about the layout of the files, such as the sheet of a workbook, or the encoding if not UTF-8."""
    problems = [*seen["problems"], *seen.get("kinds_of_problems", [])]
    amiss = {problem["code"] for problem in problems}
    commas = {problem["code"] for problem in problems if is_with_decimal_comma(problem["found"].strip("“”"))}
    is_workbook = any(".xlsx" in file.name.lower() for file in file_import.files.all())
    encoding = mapping.encoding and codec_called(mapping.encoding)
    choices = dict(ENCODINGS) if encoding or "encoding" in amiss else {}
    sheets = seen.get("sheets", [])
    return {
        "sheet": (mapping.sheet or "") if is_workbook or "sheet" in amiss else None,
        "sheets": [*sheets, *([mapping.sheet] if mapping.sheet and mapping.sheet not in (*sheets, "*") else [])],
        "encodings": {encoding: mapping.encoding, **choices} if encoding else choices,
        "encoding": encoding,
        "first_lines": seen.get("first_lines", []),
        "header_row": mapping.header_row,
        "is_table": bool(seen.get("first_lines")),
        "short_rows": mapping.short_rows,
        "asks_short_rows": mapping.short_rows or "too_few_cells" in amiss,
        "trust_ids": mapping.trust_ids,
        "asks_trust_ids": mapping.trust_ids or "mangled_id" in amiss,
        "decimal_comma": mapping.decimal_comma,
        "asks_decimal_comma": mapping.decimal_comma or "not_a_number" in commas,
    }


def _replacements(mapping: ColumnMapping) -> list[tuple[str, str]]:
    """The texts to replace and their replacements, with an empty pair for one more."""
    return [*((part, words.replace("\n", LINE_BREAK)) for part, words in mapping.replace.items()), ("", "")]


def _constants(kind: str, mapping: ColumnMapping) -> list[ConstantShown]:
    names = dict.fromkeys([*CONSTANTS.get(kind, ()), *mapping.constants])
    mapped = set(mapping.columns.values())
    return [
        ConstantShown(name, field_label(name), mapping.constants.get(name, "")) for name in names if name not in mapped
    ]


def _criteria(seen: PreviewReport, mapping: ColumnMapping) -> dict[str, str]:
    """By name of a criterion in the files: the key of the rubric's criterion, "" if it is unknown."""
    unknown = {name: "" for name, key in seen["criteria"].items() if not key}
    return {**mapping.values.get("criterion", {}), **unknown}


@dataclass(frozen=True, slots=True)
class PersonShown:
    """A column with the scores of one person, the columns that can take its place, and the criterion of the scores."""

    column: str
    choices: tuple[str, ...]
    person: str
    criterion: str


def _people(kind: str, seen: PreviewReport, mapping: ColumnMapping) -> list[PersonShown]:
    """The columns with the scores of one person each, and an empty row for one more; none for other kinds."""
    if kind != Import.Kind.RATINGS or not seen["columns"]:
        return []
    step = _step_of_people(mapping)
    keys, made = mapping.values.get("criterion", {}), (step.rater, step.criterion, step.score, step.rationale)
    free = [column["name"] for column in seen["columns"] if not (step.scores and column["name"] in made)]
    rows = [
        PersonShown(column, (column,), person, keys.get(named := step.criteria.get(column, ""), named))
        for column, person in step.scores.items()
    ]
    return [*rows, PersonShown("", tuple(free), "", "")]


def _step_of_people(mapping: ColumnMapping) -> PersonScores:
    return next((step for step in mapping.shape if isinstance(step, PersonScores)), PersonScores(scores={}))


def _item(row: dict[str, Any]) -> dict[str, Any]:
    shown_fields = ("external_id", "language", "title", "turns", "fields", "content_warning")
    shown = presentation.show_item(Item(**{name: row[name] for name in shown_fields}), ())
    texts = [*(turn.text for turn in shown.turns), *(field.text for field in shown.fields)]
    return {"row": row, "shown": shown, "opening": row["title"] or next(iter(texts), "")}


# --- reading the form -----------------------------------------------------------------------------------------------
def mapping_from_form(form: QueryDict, before: ColumnMapping) -> ColumnMapping:
    """The mapping in the posted table. Parts that the table does not show (layout, nested objects) do not change."""
    listed = {
        column: _named_attribute(field, text(form, f"attribute-{column}"))
        for column, field in zip(form.getlist("column"), form.getlist("field"), strict=False)
    }
    chosen = {column: field for column, field in listed.items() if field not in ("", IGNORE)}
    kept = {column: field for column, field in before.columns.items() if column not in listed}
    ignored = [column for column in before.ignore if column not in listed]
    ignored += [column for column, field in listed.items() if field == IGNORE]
    unmapped = [column for column in before.unmapped if column not in listed]
    unmapped += [column for column, field in listed.items() if not field]
    before, chosen, unmapped = _read_people(form, before, chosen, unmapped)
    return replace(
        before,
        columns={**kept, **chosen},
        ignore=tuple(ignored),
        unmapped=tuple(unmapped),
        constants=_read_constants(form, before),
        values=_read_values(form, before),
        speakers=_read_speakers(form, before),
        replace=_read_replacements(form, before),
        **_read_layout(form),
    )


def _read_people(
    form: QueryDict, before: ColumnMapping, chosen: dict[str, str], unmapped: list[str]
) -> tuple[ColumnMapping, dict[str, str], list[str]]:
    """The mapping with the posted columns of people as a step; the chosen fields and the unmapped columns beside it."""
    if "person_column" not in form:
        return before, chosen, unmapped
    given = zip(*(form.getlist(f"person_{part}") for part in ("column", "name", "criterion")), strict=False)
    people = {column: (name.strip() or column, key.strip()) for column, name, key in given if column}
    step, others = _step_of_people(before), [one for one in before.shape if not isinstance(one, PersonScores)]
    made = {step.rater: "rater", step.criterion: "criterion", step.score: "score"}
    gone = [column for column in step.scores if column not in people]
    fields = {column: field for column, field in chosen.items() if column not in people}
    unmapped = [column for column in [*unmapped, *gone] if column not in people]
    if not people:
        fields = {column: field for column, field in fields.items() if not (step.scores and column in made)}
        return replace(before, shape=tuple(others)), fields, unmapped
    persons = {person for person, _key in people.values()}
    renamed = {step.scores[column]: person for column, (person, _key) in people.items() if column in step.scores}
    whys = {column: renamed.get(person, person) for column, person in step.rationales.items()}
    moved = {
        (person, case_folded(step.criteria.get(column, ""))): key
        for column, (person, key) in people.items()
        if column in step.scores
    }
    about = {
        column: moved.get((whys[column], case_folded(step.criteria[column])), step.criteria[column])
        for column in whys
        if column in step.criteria
    }
    new = replace(
        step,
        scores={column: person for column, (person, _key) in people.items()},
        criteria={column: key for column, key in about.items() if key and whys[column] in persons}
        | {column: key for column, (_person, key) in people.items() if key},
        rationales={column: person for column, person in whys.items() if person in persons},
    )
    return replace(before, shape=(*others, new)), {**made, **fields}, unmapped


def _named_attribute(field: str, name: str) -> str:
    """The field of a column: the attribute ``name`` if a name is given and no other field is chosen."""
    return f"{ATTRIBUTE}{name}" if name and (not field or field.startswith(ATTRIBUTE)) else field


def _read_layout(form: QueryDict) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "sheet": text(form, "sheet") or None,
        "encoding": codec_called(text(form, "encoding")),
        "header_row": key(text(form, "header_row")) or None,
        **{name: text(form, name) == "on" for name in SWITCHES},
    }
    return {name: value for name, value in fields.items() if name in form}


def _read_constants(form: QueryDict, before: ColumnMapping) -> dict[str, str]:
    texts = {name.partition("-")[2]: form.get(name, "").strip() for name in form if name.startswith("constant-")}
    return {name: value for name, value in {**before.constants, **texts}.items() if value}


def _read_values(form: QueryDict, before: ColumnMapping) -> dict[str, dict[str, str]]:
    named = zip(form.getlist("criterion"), form.getlist("criterion_key"), strict=False)
    criteria = {name: key for name, key in named if key}
    others = {field: dict(values) for field, values in before.values.items() if field != "criterion"}
    meant = zip(*(form.getlist(f"value_{part}") for part in ("field", "found", "means")), strict=False)
    for field, text_in_file, means in meant:
        others.setdefault(field, {}).pop(text_in_file, None)
        if means.strip():
            others[field][text_in_file] = means.strip()
    kept = {field: values for field, values in others.items() if values}
    return {**kept, "criterion": criteria} if criteria else kept


def _read_speakers(form: QueryDict, before: ColumnMapping) -> dict[str, str]:
    """Speakers by prefix: a text is split into turns at every prefix, such as "User:"."""
    if "speaker_prefix" not in form:
        return before.speakers
    pairs = zip(form.getlist("speaker_prefix"), form.getlist("speaker"), strict=False)
    prefixes = {prefix.strip().removesuffix(":").strip(): speaker.strip() for prefix, speaker in pairs}
    return {prefix: speaker or prefix.lower() for prefix, speaker in prefixes.items() if prefix}


def _read_replacements(form: QueryDict, before: ColumnMapping) -> dict[str, str]:
    """Texts to replace, with their spaces. Raises ``Refused`` for one that cannot be replaced."""
    if "replaced_text" not in form:
        return before.replace
    pairs = zip(form.getlist("replaced_text"), form.getlist("replacement"), strict=False)
    replacements = {part: words.replace(LINE_BREAK, "\n") for part, words in pairs if part}
    try:
        return ColumnMapping.from_dict({"replace": replacements}).replace
    except FormatError as error:
        sentence = _("%(text)s can't be replaced. A * must be inside the text, and only once, as in <span*>.")
        raise Refused(sentence % {"text": error.problem.found}, code="invalid") from None


def read_target(form: QueryDict, file_import: Import) -> dict[str, Any]:
    """The posted target of an import; the earlier decision about generators' names does not change."""
    decided = {name: choice for name, choice in file_import.target.items() if name == "generator_names"}
    if file_import.kind == Import.Kind.DATASET:
        fields: dict[str, Any] = {
            name: text(form, name)[:longest] for name, longest in (("name", 120), ("licence", 200))
        }
        extended = key(form.get("extends", ""))
        return {**fields, **decided, **({"extends": extended} if extended else {})}
    if file_import.kind == Import.Kind.STUDY:
        constants = {name: text(form, f"constant-{name}") for name in CONSTANTS["study"]}
        filled = {name: value for name, value in constants.items() if value}
        return {"study": text(form, "study"), "constants": filled, **decided}
    named = {name: key(form.get(name, "")) for name in ("campaign", "dataset", "rubric_version")}
    chosen: dict[str, Any] = {name: pk for name, pk in named.items() if pk}
    if name := text(form, "campaign_name"):
        chosen["name"] = name[:120]
    return chosen


def text(form: QueryDict, name: str) -> str:
    """One posted text, without NUL characters and surrounding spaces."""
    return without_nul(form.get(name, "")).strip()


def key(posted: str) -> int:
    """A posted primary key; 0, which no row has, if it is not a number."""
    return whole_number(posted) or 0


def yaml_file(mapping: ColumnMapping, name: str) -> HttpResponse:
    """A mapping as a download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(mapping.as_yaml(), content_type="application/yaml", headers=headers)


def problems_csv(file_import: Import, seen: PreviewReport | None) -> HttpResponse:
    """The problems of the files as CSV that is safe in a spreadsheet. The last row counts the problems not listed."""
    faults = seen or {
        "problems": file_import.report.get("problems", []),
        "more_problems": file_import.report.get("more", 0),
    }
    headers = {"Content-Disposition": f'attachment; filename="problems-{file_import.pk}.csv"'}
    rows = [[problem[name] for name in PROBLEM] for problem in faults["problems"]]
    if faults["more_problems"]:
        rows.append(["", "", "", f"{faults['more_problems']} more problems", "", "more"])
    lines = csv_lines(PROBLEM, rows, ending="\r\n")
    return HttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
