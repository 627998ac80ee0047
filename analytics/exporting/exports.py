"""The exports that are possible, their formats, their sizes and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from itertools import chain, groupby, islice
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.inputs import whole_number
from accounts.models import Project, Role, Scope, Token, User
from accounts.refusals import Refused
from analytics.exporting import bundles, combined_rows, croissant_folders, hugging_face, training_sets
from analytics.models import BY_WORKER
from analytics.questions.asked import asked_question
from analytics.ratings.item_attributes import ItemAttributes, offered_attributes
from analytics.ratings.raters import judge_names, newest_runs_on, rater_names
from analytics.ratings.rating_rows import COLUMNS
from annotation import adjudication
from annotation import exports as rated
from annotation.exports import consistent
from annotation.models import Campaign, Dataset, Item, Rating, RubricVersion
from annotation.readers import FormatError, parquet_is_installed, rubric_from_dict
from annotation.writers import archives, formats, label_studio
from annotation.writers.label_studio import Interface, LabelStudioAnswer
from annotation.writers.tables import Table, with_progress
from judging import exports as judged
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

# --- Label Studio ----------------------------------------------------------------------------------------------------
LABEL_STUDIO_STATUSES = ("scored", "na", "ok")
"""Statuses that Label Studio has a place for: an answer, or N/A. It would refuse a number off the scale."""


def label_studio_interface(campaign: Campaign) -> Interface:
    """The labelling configuration of the campaign's rubric and items."""
    there = [column.name for column in rated.items(campaign.dataset).columns]
    turns = [label_studio.TURNS] if Item.objects.of(campaign.dataset).exclude(turns=[]).exists() else []
    return Interface(rubric_from_dict(campaign.rubric_version.document), parts=[*there, *turns])


def label_studio_tasks(
    campaign: Campaign, *, people: Table, judges: Table, without: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Each item of the campaign, with its rows of the two tables, which come in the items' order."""
    shown, items = label_studio_interface(campaign), rated.items(campaign.dataset, without=without)
    by_people, by_judges = _ByItem(people), _ByItem(judges)
    for row in items.rows:
        item = dict(zip(items.names, row, strict=True))
        yield label_studio.task(shown, item, people=by_people.of(item["id"]), judges=by_judges.of(item["id"]))


class _ByItem:
    """The answers of a table, asked for item by item in its own order; an item may have none."""

    def __init__(self, table: Table) -> None:
        self._read = {name: place for place, name in enumerate(table.names)}
        self._groups = groupby(table.rows, key=lambda row: row[self._read["item"]])
        self._next: tuple[str, Iterable[Sequence[Any]]] | None = next(self._groups, None)

    def of(self, item: str) -> list[LabelStudioAnswer]:
        """The answers on this item that can be said."""
        if self._next is None or self._next[0] != item:
            return []
        answers = [self._answer(row) for row in self._next[1] if row[self._read["status"]] in LABEL_STUDIO_STATUSES]
        self._next = next(self._groups, None)
        return answers

    def _answer(self, row: Sequence[Any]) -> LabelStudioAnswer:
        rater = "judge" if "judge" in self._read else "rater"
        names = ("criterion", rater, "score", "rationale")
        criterion, said_by, score, rationale = (row[self._read[name]] for name in names)
        seconds = row[self._read["seconds"]] if "seconds" in self._read else None
        return LabelStudioAnswer(criterion, said_by, score, rationale, seconds, row[self._read["repeat"]])


# --- one export ------------------------------------------------------------------------------------------------------
TABLES = tuple(formats.FORMATS)
FORMATS: dict[str, tuple[str, ...]] = {
    "items": TABLES,
    "ratings": TABLES,
    "verdicts": TABLES,
    "dataset-verdicts": TABLES,
    "scores": TABLES,
    "adjudications": TABLES,
    "training-set": TABLES,
    "rubric": ("yaml", "json"),
    "campaign": ("json",),
    "label-studio": ("json", "xml"),
    "hugging-face": ("zip",),
    "croissant": ("zip",),
    "report": ("html", "pdf", "zip"),
    "recomputation": ("zip",),
    "bundle": ("zip",),
}
"""What there is, and the formats of each, the usual one first."""
PARQUET = "parquet"
SUBJECTS = {
    "items": "dataset",
    "dataset-verdicts": "dataset",
    "croissant": "dataset",
    "rubric": "rubric",
    **dict.fromkeys(("ratings", "verdicts", "scores", "adjudications"), "campaign"),
    **dict.fromkeys(("training-set", "campaign"), "campaign"),
    **dict.fromkeys(("label-studio", "hugging-face", "report", "recomputation"), "campaign"),
    "bundle": "project",
}
"""Which of the project's things each is about."""
MADE_APART = ("hugging-face", "bundle")
"""What sees to it by itself that it is of one moment: numbers may have to be computed and stored before."""
LAYOUTS = ("S0", "S1", "S2", "S3", "S4")
"""The studies as which a report can be laid out."""
NAMED = ("ratings", "scores")
"""What has a column for the names behind the pseudonyms, for those who may ask."""
_DOCUMENTS = {
    "yaml": ("yaml", "application/yaml; charset=utf-8"),
    "json": ("json", "application/json; charset=utf-8"),
    "xml": ("xml", "application/xml; charset=utf-8"),
    "html": ("html", "text/html; charset=utf-8"),
    "pdf": ("pdf", "application/pdf"),
    "zip": ("zip", "application/zip"),
}

MEDIA_TYPES = tuple(
    media_type.partition(";")[0]
    for media_type in (
        *(each.media_type for each in formats.FORMATS.values()),
        *(media_type for _ending, media_type in _DOCUMENTS.values()),
    )
)


def ending_of(kind: str) -> str:
    """The ending of the name of a file in a format."""
    return formats.FORMATS[kind].ending if kind in formats.FORMATS else _DOCUMENTS[kind][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is wanted of it. ``renumbered``: other pseudonyms in place of the stored ones, the same for the same seed.

    ``every_run``: all runs of the judges, not only the newest of each. ``revisions``: superseded ratings too.
    ``names``: the names of those behind the pseudonyms, which `permit` grants to few. ``split_seed`` and ``test_share``
    are those of a training set: the share of its scenarios that are for testing. ``question`` is the query string of
    the question whose settings a report has, ``layout`` one of `LAYOUTS`. ``without_attributes``: keys of attributes of
    the items that are left out; the project's items must have them. ``hides_generators``: nothing that says how
    an item was made (`HOW_MADE`), for share links.
    """

    renumbered: int | None = None
    rationales: bool = True
    replies: bool = False
    revisions: bool = False
    every_run: bool = False
    names: bool = False
    split_seed: int = 1
    test_share: float = 0.2
    question: str = ""
    layout: str = ""
    without_attributes: tuple[str, ...] = ()
    hides_generators: bool = False

    @property
    def not_default(self) -> list[str]:
        """The options that differ from the defaults, for the audit trail."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]


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
        return self.kind in formats.FORMATS

    @property
    def is_whole(self) -> bool:
        """Whether the file must be there before the first of it can be sent."""
        return self.kind == "zip" or (self.is_table and formats.FORMATS[self.kind].whole is not None)

    @property
    def ending(self) -> str:
        return ending_of(self.kind)

    @property
    def media_type(self) -> str:
        return formats.FORMATS[self.kind].media_type if self.is_table else _DOCUMENTS[self.kind][1]

    @property
    def file_name(self) -> str:
        name = slugify(str(self.subject)) or f"{SUBJECTS[self.what]}-{self.subject.pk}"
        return f"{name}.{self.ending}" if self.what in {"rubric", "bundle"} else f"{name}-{self.what}.{self.ending}"


def checked_export(
    *, project: Project, what: str, kind: str = "", subject: Any = None, options: Options = Options()
) -> Export:
    """The export with that name and format; refused, naming what there is, when there is none such."""
    if what not in FORMATS:
        sentence = _("There is no export called “%(what)s”. Available: %(all)s.")
        raise Refused(sentence % {"what": what, "all": ", ".join(FORMATS)}, code="unknown_export")
    kind = kind or FORMATS[what][0]
    if kind not in FORMATS[what]:
        sentence = _("%(what)s can't be exported as “%(kind)s”. Choose one of: %(all)s.")
        sentence = sentence % {"what": what.capitalize(), "kind": kind, "all": ", ".join(FORMATS[what])}
        raise Refused(sentence, code="unknown_format", fields={"format": sentence})
    if kind not in offered_exports(what):
        sentence = _(
            "This server can't write %(name)s. The operator can install it: pip install 'panelbench[%(kind)s]'."
        )
        sentence %= {"name": kind.capitalize() if kind == PARQUET else kind.upper(), "kind": kind}
        raise Refused(sentence, code="unwritable", fields={"format": sentence})
    if subject is None:
        name = SUBJECTS[what]
        sentence = _("Name the %(subject)s.") % {"subject": name}
        raise Refused(sentence, code="no_subject", fields={name: sentence})
    if not 0 <= options.test_share < 1:
        sentence = _("The share for the test split must be a number from 0 to less than 1.")
        raise Refused(sentence, code="test_share", fields={"test_share": sentence})
    if options.layout and options.layout not in LAYOUTS:
        sentence = _("There is no layout “%(name)s”. Available: %(all)s.")
        sentence %= {"name": options.layout, "all": ", ".join(LAYOUTS)}
        raise Refused(sentence, code="unknown_choice", fields={"layout": sentence})
    if what in BY_WORKER:
        asked_question(subject, parse_qsl(options.question.lstrip("?"), keep_blank_values=True))
    if options.names and what not in NAMED:
        sentence = _("Only these exports can contain names: %(all)s. Leave the names out of this one.") % {
            "all": ", ".join(NAMED)
        }
        raise Refused(sentence, code="no_names", fields={"names": sentence})
    if options.without_attributes:
        _check_left_out(what, project, options.without_attributes)
    return Export(project=project, what=what, kind=kind, subject=subject, options=options)


def _check_left_out(what: str, project: Project, keys: Collection[str]) -> None:
    """Refuse keys that no item of the project has, and exports from which attributes can't be left out."""
    if what == "bundle":
        sentence = _("A bundle contains all attributes of the items. None can be left out.")
        raise Refused(sentence, code="unknown_choice", fields={"without_attributes": sentence})
    known = [one.name for one in offered_attributes(project)]
    if unknown := [key for key in keys if key not in known]:
        sentence = _("The items have no attribute “%(name)s”. Available: %(all)s.")
        sentence %= {"name": "”, “".join(unknown), "all": ", ".join(known) or "-"}
        raise Refused(sentence, code="unknown_choice", fields={"without_attributes": sentence})


def offered_exports(what: str) -> tuple[str, ...]:
    """The formats of an export that this server can write; Parquet needs pyarrow, PDF WeasyPrint."""
    missing = {PARQUET: not parquet_is_installed(), "pdf": find_spec("weasyprint") is None}
    return tuple(kind for kind in FORMATS[what] if not missing.get(kind))


def permit(export: Export, *, user: User, token: Token | None = None) -> None:
    """Refuse names to all but leads, and to a token that only reads. Raises `PermissionDenied`."""
    if not export.options.names:
        return
    if not access.holds(user=user, project=export.project, roles=(Role.LEAD,)):
        raise PermissionDenied(_("Only a lead of the project can export names. Without names, raters have pseudonyms."))
    if token is not None and token.scope != Scope.WRITE:
        raise PermissionDenied(_("This token can only read. Use a token that can write, or leave the names out."))


def record_export(export: Export, actor: User | None) -> None:
    """Leave a line in the audit trail: who took what out, in which format, and what was unusual about it."""
    with transaction.atomic():
        audit.record(
            actor=actor,
            project=export.project,
            verb=f"export {export.what}",
            subject=export.subject,
            fields=[f"format={export.kind}", *export.options.not_default],
        )


def record_labels(campaign: Campaign, actor: User | None) -> None:
    """Leave a line in the audit trail: who took the labels of a campaign as a table."""
    with transaction.atomic():
        audit.record(
            actor=actor, project=campaign.project, verb="export ratings", subject=campaign, fields=["format=csv"]
        )


def export_pieces(export: Export, tell: Callable[[int], None] | None = None) -> Generator[bytes]:
    """The file, piece by piece, all of it as they are at one moment. Raises `Refused` for what can't be written.

    Of a table, ``tell`` hears every so often how many rows are read.
    """
    try:
        if export.what in BY_WORKER:
            count, hear = row_count(export), tell or (lambda _rows: None)
            yield from BY_WORKER[export.what](export, lambda done, total: hear(count * done // max(total, 1)))
            return
        if export.what in MADE_APART:
            yield from _DOCUMENT_MAKERS[export.what](export)
            return
        with consistent():
            if export.is_table:
                wanted = export_table(export)
                rows = with_progress(wanted.rows, tell) if tell else wanted.rows
                yield from formats.pieces(Table(wanted.name, wanted.columns, rows), export.kind)
            else:
                yield from _DOCUMENT_MAKERS[export.what](export)
    except FormatError as error:
        raise Refused(str(error), code="unwritable") from None


# --- tables ---------------------------------------------------------------------------------------------------------
def export_table(export: Export) -> Table:
    """The rows that were asked for, not read yet."""
    made = {
        "items": _items,
        "ratings": lambda export: _with_attributes(export, _ratings(export), export.subject.dataset),
        "verdicts": lambda export: _with_attributes(export, _verdicts(export), export.subject.dataset),
        "dataset-verdicts": lambda export: _with_attributes(export, _verdicts(export), export.subject),
        "scores": _scores,
        "adjudications": lambda export: adjudication.adjudications(
            export.subject, rationales=export.options.rationales
        ),
        "training-set": _training_set,
    }[export.what](export)
    if export.options.hides_generators:
        dataset = export.subject.dataset if isinstance(export.subject, Campaign) else export.subject
        hidden = {*HOW_MADE, *ItemAttributes(dataset).names}
        kept = [place for place, name in enumerate(made.names) if name not in hidden]
        rows = (tuple(row[place] for place in kept) for row in made.rows)
        made = Table(made.name, tuple(made.columns[place] for place in kept), rows)
    return Table(export.file_name.removesuffix(f".{export.ending}"), made.columns, made.rows)


HOW_MADE = ("generator", "scenario", "cluster", "attributes")
"""Columns that say how an item was made: the attributes of items often name the model and its prompt, too."""


def _items(export: Export) -> Table:
    return rated.items(export.subject, without=export.options.without_attributes)


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
        named = judge_names if export.options.every_run else rater_names
        names = named(export.subject, chosen)
    options = export.options
    return judged.exported_verdicts(chosen, names=names, rationales=options.rationales, replies=options.replies)


def _with_attributes(export: Export, table: Table, dataset: Dataset) -> Table:
    """The same rows with the attributes of their items, without those that the export leaves out."""
    attributes, item = ItemAttributes(dataset, without=export.options.without_attributes), table.names.index("item")
    rows = ((*row, *attributes.of(row[item])) for row in table.rows)
    return Table(table.name, (*table.columns, *attributes.columns), rows)


def _scores(export: Export) -> Table:
    """The ratings table with people and judges, then what only exports have: empty where it is the other's."""
    people, judges = _ratings(export), _verdicts(export)
    attributes = ItemAttributes(export.subject.dataset, without=export.options.without_attributes)
    here = {column.name for column in COLUMNS} | {"judge"}
    more = {column.name: column for column in (*people.columns, *judges.columns) if column.name not in here}
    of_people, of_judges = (
        [table.names.index(name) if name in table.names else None for name in more] for table in (people, judges)
    )

    def rest(row: Sequence[Any], places: Sequence[int | None]) -> Iterator[Any]:
        return (None if place is None else row[place] for place in places)

    rows = (
        (*row, *attributes.of(row.item), *(rest(person, of_people) if person else rest(judge or (), of_judges)))
        for row, person, judge in combined_rows.combined(export.subject, people, judges)
    )
    return Table("scores", (*COLUMNS, *attributes.columns, *more.values()), rows)


def _training_set(export: Export) -> Table:
    options = export.options
    return training_sets.training_set(
        export.subject, seed=options.split_seed, share=options.test_share, rationales=options.rationales
    )


def runs(export: Export) -> list[JudgeRun]:
    """The newest run of each judge on the campaign's items, as in the numbers; or every one.

    Of a dataset: on each rubric version that a judge was run on, with or without a campaign.
    """
    if export.what == "dataset-verdicts":
        dataset, wanted = export.subject, Q()
    else:
        dataset, wanted = export.subject.dataset, Q(rubric_version=export.subject.rubric_version_id)
    parts = Dataset.objects.parts_of(dataset)
    here = JudgeRun.objects.ordinary().filter(wanted, dataset__in=parts).select_related("judge").order_by("pk")
    if export.options.every_run:
        return whole_run(here)
    versions = sorted(set(here.values_list("rubric_version", flat=True)))
    newest = (newest_runs_on(dataset=dataset, rubric_version=version) for version in versions)
    return whole_run(chain.from_iterable(newest))


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
        return [label_studio_interface(export.subject).as_xml().encode()]
    # One annotation of each person, one run of each judge: there is no place for more.
    current = replace(export, options=replace(export.options, revisions=False, every_run=False))
    people, judges = _ratings(current), _verdicts(current)
    return label_studio.as_json(
        label_studio_tasks(export.subject, people=people, judges=judges, without=export.options.without_attributes)
    )


def _hugging_face(export: Export) -> Iterator[bytes]:
    by_name: dict[str, Callable[[], Table]] = {
        "items": lambda: rated.items(export.subject.dataset, without=export.options.without_attributes),
        "ratings": lambda: _ratings(export),
        "verdicts": lambda: _verdicts(export),
    }
    study = hugging_face.Study(export.subject, by_name, runs(export))
    return archives.spooled(lambda out: hugging_face.write_hugging_face(study, out))


def _croissant(export: Export) -> Iterator[bytes]:
    return archives.spooled(
        lambda out: croissant_folders.write_croissant(export.subject, out, without=export.options.without_attributes)
    )


def _bundle(export: Export) -> Iterator[bytes]:
    return bundles.bundle_pieces(export.project, replies=export.options.replies, renumbered=export.options.renumbered)


_DOCUMENT_MAKERS: dict[str, Callable[[Export], Iterable[bytes]]] = {
    "rubric": lambda export: [_rubric(export)],
    "campaign": lambda export: [_campaign(export)],
    "label-studio": _label_studio,
    "hugging-face": _hugging_face,
    "croissant": _croissant,
    "bundle": _bundle,
}


# --- an export in the words of a page, an address or a command line --------------------------------------------------
def named_export(*, project: Project, what: str, parameters: Mapping[str, str], options: Options) -> Export:
    """The export of these words: ``format``, and ``campaign``, ``dataset`` or ``rubric`` by name or by number."""
    kind, subject = parameters.get("format", ""), SUBJECTS.get(what, "")
    found: Any = project if subject == "project" else None
    if subject and found is None:
        found = chosen_subject(project=project, subject=subject, name=parameters.get(subject, ""))
    return checked_export(project=project, what=what, kind=kind, subject=found, options=options)


def subject_choices(*, project: Project, subject: str) -> QuerySet[Any]:
    """The things of a kind that a project has, as they are offered."""
    if subject == "dataset":
        return Dataset.objects.ready().filter(project=project).select_related("project")
    if subject == "rubric":
        return RubricVersion.objects.filter(rubric__project=project).select_related("rubric__project")
    campaigns = Campaign.objects.filter(project=project)
    return campaigns.select_related("project", "dataset", "rubric_version__rubric")


def chosen_subject(*, project: Project, subject: str, name: str = "") -> Any:
    """The thing of that name (the newest version, or the very one: ``Dialogues v2``) or number; without either, the
    only one there is.
    """
    there = list(subject_choices(project=project, subject=subject))
    found = [row for row in there if str(row) == name] or [row for row in there if _base(row) == name]
    if not found:
        found = [row for row in there if row.pk == whole_number(name)]
    if not name and len({_base(row) or str(row) for row in there}) == 1:
        found = there
    if found:
        return found[0]  # the newest version comes first
    text = _("There is no %(subject)s “%(name)s” in this project. Available: %(all)s.")
    if not name:
        text = _("Name the %(subject)s. Available: %(all)s.")
    sentence = text % {"subject": subject, "name": name, "all": "; ".join(map(str, there)) or _("none")}
    raise Refused(sentence, code="no_subject", fields={subject: sentence})


def _base(row: Model) -> str:
    return str(row).rpartition(" v")[0]


# --- how large it is -------------------------------------------------------------------------------------------------
AT_ONCE = 100_000  # rows that a page waits for as they come
WHOLE_AT_ONCE = 20_000  # rows, where the file must be whole first
SAMPLE = 500


class Extent(NamedTuple):
    """Rows, and about how many bytes; None where only writing it all would tell."""

    rows: int
    size: int | None


def is_large_export(export: Export) -> bool:
    """Whether a worker should write it while its reader does something else."""
    if export.what in BY_WORKER:
        return True
    return row_count(export) > (WHOLE_AT_ONCE if export.is_whole else AT_ONCE)


def export_extent(export: Export) -> Extent:
    """How large it will be, estimated from its first rows."""
    count = row_count(export)
    if not export.is_table:
        return Extent(count, None)
    with consistent():
        table = export_table(export)
        first = list(islice(table.rows, SAMPLE))
    written = sum(map(len, formats.pieces(Table(table.name, table.columns, first), export.kind)))
    return Extent(count, written * count // len(first) if first else written)


def row_count(export: Export) -> int:
    """How many rows of the database it is made of; one for a document."""
    if export.what == "bundle":
        return _in(export.project)
    if export.what in {"items", "croissant"}:
        return Item.objects.of(export.subject).count()
    if export.what in {"rubric", "campaign"} or export.kind == "xml":
        return 1
    if export.what == "adjudications":
        return adjudication.history(export.subject).count()
    if export.what == "training-set":
        return training_sets.rated_places(export.subject).count()
    count = 0
    if export.what not in {"verdicts", "dataset-verdicts"}:
        ratings = Rating.objects.filter(annotation__campaign=export.subject)
        kept = ratings if export.options.revisions else ratings.filter(annotation__superseded_at=None)
        count += kept.count()
    if export.what != "ratings":
        count += Verdict.objects.filter(run__in=runs(export)).count()
    if export.what in {"label-studio", "hugging-face"}:
        count += Item.objects.of(export.subject.dataset).count()
    return count


def _in(project: Project) -> int:
    items = Item.objects.filter(dataset__project=project).count()
    ratings = Rating.objects.filter(annotation__campaign__in=Campaign.objects.filter(project=project)).count()
    return items + ratings + Verdict.objects.filter(run__project=project).count()
