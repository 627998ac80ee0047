"""Everything that can be taken out of a project, and in which formats: asked for, named, and written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import Project, Role, Scope, Token, User
from accounts.refusals import Refused
from analytics import bundles, hugging_face, label_studio, ratings
from annotation import exports as rated
from annotation.exports import consistent
from annotation.models import Dataset
from annotation.readers import FormatError, parquet_is_installed, rubric_from_dict
from annotation.writers import files
from annotation.writers import label_studio as studio
from annotation.writers.tables import Column, Table, told
from judging import exports as judged
from judging.continuing import whole
from judging.models import JudgeRun

TABLES = tuple(files.FORMATS)
FORMATS: dict[str, tuple[str, ...]] = {
    "items": TABLES,
    "ratings": TABLES,
    "verdicts": TABLES,
    "dataset-verdicts": TABLES,
    "scores": TABLES,
    "rubric": ("yaml", "json"),
    "campaign": ("json",),
    "label-studio": ("json", "xml"),
    "hugging-face": ("zip",),
    "bundle": ("zip",),
}
"""What there is, and the formats of each, the usual one first."""
PARQUET = "parquet"
SUBJECTS = {
    "items": "dataset",
    "dataset-verdicts": "dataset",
    "rubric": "rubric",
    **dict.fromkeys(("ratings", "verdicts", "scores", "campaign", "label-studio", "hugging-face"), "campaign"),
    "bundle": "project",
}
"""Which of the project's things each is about."""
MADE_APART = ("hugging-face", "bundle")
"""What sees to it by itself that it is of one moment: numbers may have to be computed and stored before."""
NAMED = ("ratings", "scores")
"""What has a column for the names behind the pseudonyms, for those who may ask."""
_DOCUMENTS = {
    "yaml": ("yaml", "application/yaml; charset=utf-8"),
    "json": ("json", "application/json; charset=utf-8"),
    "xml": ("xml", "application/xml; charset=utf-8"),
    "zip": ("zip", "application/zip"),
}

MEDIA_TYPES = tuple(
    said.partition(";")[0]
    for said in (
        *(each.media_type for each in files.FORMATS.values()),
        *(said for _ending, said in _DOCUMENTS.values()),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is wanted of it. ``renumbered``: other pseudonyms in place of the stored ones, the same for the same seed.

    ``every_run``: all runs of the judges, not only the newest of each. ``revisions``: superseded ratings too.
    ``names``: the names of those behind the pseudonyms, which `permit` grants to few.
    """

    renumbered: int | None = None
    rationales: bool = True
    replies: bool = False
    revisions: bool = False
    every_run: bool = False
    names: bool = False

    @property
    def said(self) -> list[str]:
        """What differs from the usual, for the audit trail."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One thing to be taken out, in one format. ``subject`` is the dataset, rubric version or campaign it is about."""

    project: Project
    what: str
    kind: str
    subject: Any
    options: Options = Options()

    @property
    def is_table(self) -> bool:
        """Whether it has rows and columns."""
        return self.kind in files.FORMATS

    @property
    def is_whole(self) -> bool:
        """Whether the file must be there before the first of it can be sent."""
        return self.kind == "zip" or (self.is_table and files.FORMATS[self.kind].whole is not None)

    @property
    def ending(self) -> str:
        return files.FORMATS[self.kind].ending if self.is_table else _DOCUMENTS[self.kind][0]

    @property
    def media_type(self) -> str:
        return files.FORMATS[self.kind].media_type if self.is_table else _DOCUMENTS[self.kind][1]

    @property
    def file_name(self) -> str:
        name = slugify(str(self.subject)) or f"{SUBJECTS[self.what]}-{self.subject.pk}"
        return f"{name}.{self.ending}" if self.what in {"rubric", "bundle"} else f"{name}-{self.what}.{self.ending}"


def asked(*, project: Project, what: str, kind: str = "", subject: Any = None, options: Options = Options()) -> Export:
    """The export with that name and format; refused, naming what there is, when there is none such."""
    if what not in FORMATS:
        sentence = _("There is no export called “%(what)s”. Available: %(all)s.")
        raise Refused(sentence % {"what": what, "all": ", ".join(FORMATS)}, code="unknown_export")
    kind = kind or FORMATS[what][0]
    if kind not in FORMATS[what]:
        sentence = _("%(what)s can't be exported as “%(kind)s”. Choose one of: %(all)s.")
        told = sentence % {"what": what.capitalize(), "kind": kind, "all": ", ".join(FORMATS[what])}
        raise Refused(told, code="unknown_format", fields={"format": told})
    if kind not in offered(what):
        told = _("This server can't write Parquet. The operator can install it: pip install 'panelbench[parquet]'.")
        raise Refused(told, code="unwritable", fields={"format": told})
    if subject is None:
        name = SUBJECTS[what]
        told = _("Name the %(subject)s.") % {"subject": name}
        raise Refused(told, code="no_subject", fields={name: told})
    if options.names and what not in NAMED:
        told = _("Only these exports can contain names: %(all)s. Leave the names out of this one.") % {
            "all": ", ".join(NAMED)
        }
        raise Refused(told, code="no_names", fields={"names": told})
    return Export(project=project, what=what, kind=kind, subject=subject, options=options)


def offered(what: str) -> tuple[str, ...]:
    """The formats of an export that this server can write; Parquet needs pyarrow."""
    return tuple(kind for kind in FORMATS[what] if kind != PARQUET or parquet_is_installed())


def permit(export: Export, *, user: User, token: Token | None = None) -> None:
    """Refuse names to all but leads, and to a token that only reads. Raises `PermissionDenied`."""
    if not export.options.names:
        return
    if not access.holds(user=user, project=export.project, roles=(Role.LEAD,)):
        raise PermissionDenied(_("Only a lead of the project can export names. Without names, raters have pseudonyms."))
    if token is not None and token.scope != Scope.WRITE:
        raise PermissionDenied(_("This token can only read. Use a token that can write, or leave the names out."))


def record(export: Export, actor: User | None) -> None:
    """Leave a line in the audit trail: who took what out, in which format, and what was unusual about it."""
    with transaction.atomic():
        audit.record(
            actor=actor,
            project=export.project,
            verb=f"export {export.what}",
            subject=export.subject,
            fields=[f"format={export.kind}", *export.options.said],
        )


def pieces(export: Export, tell: Callable[[int], None] | None = None) -> Generator[bytes]:
    """The file, piece by piece, all of it as they are at one moment. Raises `Refused` for what can't be written.

    Of a table, ``tell`` hears every so often how many rows are read.
    """
    try:
        if export.what in MADE_APART:
            yield from _DOCUMENT_MAKERS[export.what](export)
            return
        with consistent():
            if export.is_table:
                wanted = table(export)
                rows = told(wanted.rows, tell) if tell else wanted.rows
                yield from files.pieces(Table(wanted.name, wanted.columns, rows), export.kind)
            else:
                yield from _DOCUMENT_MAKERS[export.what](export)
    except FormatError as error:
        raise Refused(str(error), code="unwritable") from None


# --- tables ---------------------------------------------------------------------------------------------------------
def table(export: Export) -> Table:
    """The rows that were asked for, not read yet."""
    made = {
        "items": _items,
        "ratings": _ratings,
        "verdicts": _verdicts,
        "dataset-verdicts": _verdicts,
        "scores": _scores,
    }[export.what](export)
    return Table(export.file_name.removesuffix(f".{export.ending}"), made.columns, made.rows)


def _items(export: Export) -> Table:
    return rated.items(export.subject)


def _ratings(export: Export) -> Table:
    options = export.options
    return rated.ratings(
        export.subject,
        names=rated.pseudonyms(export.project, options.renumbered),
        rationales=options.rationales,
        revisions=options.revisions,
        people=rated.people(export.project) if options.names else None,
    )


def _verdicts(export: Export) -> Table:
    chosen = list(runs(export))
    if export.what == "dataset-verdicts":
        names = {run.pk: run.judge.name for run in chosen}
    else:
        names = ratings.rater_names(export.subject, chosen)
    options = export.options
    return judged.verdicts(chosen, names=names, rationales=options.rationales, replies=options.replies)


def _scores(export: Export) -> Table:
    """People and judges in one table: what only the other kind of rater has is empty."""
    people, judges = _ratings(export), _verdicts(export)
    shared = len(rated.SHARED)
    own = len(people.columns) - shared
    nothing: tuple[None, ...] = (None,) * (len(judges.columns) - shared)
    padding: tuple[None, ...] = (None,) * own
    of_people = ((*row, *nothing) for row in people.rows)
    of_judges = ((*row[:shared], *padding, *row[shared:]) for row in judges.rows)
    columns: tuple[Column, ...] = (*people.columns, *judges.columns[shared:])
    return Table("scores", columns, chain(of_people, of_judges))


def runs(export: Export) -> list[JudgeRun]:
    """The newest run of each judge on the campaign's items, as in the numbers; or every one.

    Of a dataset: on each rubric version that a judge was run on, with or without a campaign.
    """
    if export.what == "dataset-verdicts":
        dataset, wanted = export.subject, Q()
    else:
        dataset, wanted = export.subject.dataset, Q(rubric_version=export.subject.rubric_version_id)
    parts = Dataset.objects.parts_of(dataset)
    here = JudgeRun.objects.filter(wanted, dataset__in=parts).select_related("judge").order_by("pk")
    if export.options.every_run:
        return whole(here)
    versions = sorted(set(here.values_list("rubric_version", flat=True)))
    newest = (ratings.newest_runs_on(dataset=dataset, rubric_version=version) for version in versions)
    return whole(chain.from_iterable(newest))


# --- documents ------------------------------------------------------------------------------------------------------
def _rubric(export: Export) -> bytes:
    """The document, as our importer reads it."""
    document = rubric_from_dict(export.subject.document)
    if export.kind == "yaml":
        return document.as_yaml().encode()
    return orjson.dumps(document.as_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)


def _campaign(export: Export) -> bytes:
    return orjson.dumps(rated.design(export.subject), option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z)


def _label_studio(export: Export) -> Iterable[bytes]:
    if export.kind == "xml":
        return [label_studio.interface(export.subject).as_xml().encode()]
    # One annotation of each person, one run of each judge: there is no place for more.
    current = replace(export, options=replace(export.options, revisions=False, every_run=False))
    people, judges = _ratings(current), _verdicts(current)
    return studio.as_json(label_studio.tasks(export.subject, people=people, judges=judges))


def _hugging_face(export: Export) -> Iterator[bytes]:
    tables: dict[str, Callable[[], Table]] = {
        "items": lambda: rated.items(export.subject.dataset),
        "ratings": lambda: _ratings(export),
        "verdicts": lambda: _verdicts(export),
    }
    study = hugging_face.Study(export.subject, tables, runs(export))
    return files.spooled(lambda out: hugging_face.write(study, out))


def _bundle(export: Export) -> Iterator[bytes]:
    return bundles.pieces(export.project, replies=export.options.replies, renumbered=export.options.renumbered)


_DOCUMENT_MAKERS: dict[str, Callable[[Export], Iterable[bytes]]] = {
    "rubric": lambda export: [_rubric(export)],
    "campaign": lambda export: [_campaign(export)],
    "label-studio": _label_studio,
    "hugging-face": _hugging_face,
    "bundle": _bundle,
}
