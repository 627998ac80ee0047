"""Files come in: kept byte for byte, read as their mapping says, then stored whole or not at all, and taken back whole.

An intake goes uploaded -> storing -> stored | failed, each step by compare-and-set; `checks` lets a large one be looked
at in between. A failed one can be mapped anew and stored after all; a stored one that nothing depends on goes back to
uploaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple, cast
from uuid import UUID

from django.conf import settings
from django.core.files import File as StoredFile
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from accounts.storable import is_storable
from annotation import appending, checks, custody, matching, previews, rubrics, targets, uploads
from annotation import intake as storing
from annotation.custody import Held
from annotation.formats import containers
from annotation.formats.mapping import Mapping as ColumnMapping
from annotation.formats.proposing import propose, still_there
from annotation.formats.reading import File
from annotation.formats.report import Report
from annotation.intake import FileRefused
from annotation.models import Intake, IntakeFile, RubricVersion, Upload
from annotation.previews import Preview

State = Intake.State
UNSTORED = (State.UPLOADED, State.FAILED)
UNMAPPED = (Intake.Kind.RUBRIC, Intake.Kind.STUDY)


class Kept(NamedTuple):
    """A file that the media directory holds already: open for reading, its name there, its size and SHA-256."""

    file: File
    content: str
    size: int
    sha256: str


# --- coming in ------------------------------------------------------------------------------------------------------
def open_intake(
    *,
    project: Project,
    kind: str,
    files: Sequence[File],
    mapping: ColumnMapping | None = None,
    target: Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> Intake:
    """Keep the files byte for byte, with a mapping guessed for all of them and ``mapping`` put over the guess."""
    if not files:
        raise no_file()
    proposed = proposal(project, kind, files, mapping or ColumnMapping())
    return enter(project=project, kind=kind, files=files, mapping=proposed, target=target, actor=actor)


def no_file() -> Refused:
    """The refusal of an upload of nothing."""
    sentence = _("Choose at least one file.")
    return Refused(sentence, code="no_file", fields={"files": sentence})


def proposal(project: Project, kind: str, files: Sequence[File], said: ColumnMapping) -> ColumnMapping:
    """The mapping guessed for ``files`` with what was ``said`` over it; rubrics and whole studies have none.

    The criteria of the project's rubrics are known by any of their names.
    """
    if kind in UNMAPPED:
        return said
    return propose(kind, files, said, matching.names_known(project))  # type: ignore[arg-type]


def enter(
    *,
    project: Project,
    kind: str,
    mapping: ColumnMapping,
    files: Sequence[File] = (),
    kept: Sequence[Kept] = (),
    target: Mapping[str, Any] | None = None,
    batch: UUID | None = None,
    part_of: Intake | None = None,
    unread: Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> Intake:
    """Write an intake down with its files: new ones are copied, those the media directory holds are taken over.

    ``unread`` is what is said of files that a worker is to open first (`batches.open_packed`).
    """
    access.refuse_archived(project)
    with transaction.atomic():
        entered = Intake.objects.create(
            project=project,
            kind=kind,
            mapping=kept_mapping(mapping),
            target=_kept_target(target),
            batch=batch,
            part_of=part_of,
            unread=None if unread is None else _kept_target(unread),
            created_by=actor,
        )
        for name, raw in files:
            _keep(entered, name, raw)
        for each in kept:
            name, size, sha256 = uploads.short_name(each.file[0]), each.size, each.sha256
            IntakeFile.objects.create(intake=entered, name=name, content=each.content, size=size, sha256=sha256)
        audit.record(actor=actor, project=project, verb="upload files", subject=entered, fields=["kind"])
    return entered


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Refuse the files of one request, by name, when they are together more than it may bring."""
    if sum(sizes.values()) > settings.UPLOAD_LIMIT:
        name = max(sizes, key=lambda each: sizes[each])
        raise uploads.too_large(name, sizes[name])
    if sum(sizes.values()) > uploads.AT_ONCE:
        raise uploads.too_long(sum(sizes.values()))


def _keep(intake: Intake, name: str, raw: bytes | BinaryIO) -> None:
    content = ContentFile(raw) if isinstance(raw, bytes) else StoredFile(raw)
    digest, size = hashlib.sha256(), 0
    short = uploads.short_name(name)
    kept = IntakeFile(intake=intake, name=short)
    kept.content.save(uploads.stored_name(short), ContentFile(b""), save=False)
    try:
        with Path(kept.content.path).open("r+b") as file:
            for chunk in content.chunks():
                digest.update(chunk)
                size += file.write(chunk)
        kept.size, kept.sha256 = size, digest.hexdigest()
        kept.save()
    except BaseException:
        kept.content.storage.delete(str(kept.content.name))
        raise


@contextmanager
def opened(intake: Intake) -> Iterator[list[File]]:
    """The kept files, open for reading, in the order in which they came."""
    with reopened(intake.files.order_by("pk")) as kept:
        yield [each.file for each in kept]


@contextmanager
def reopened(rows: Iterable[IntakeFile | Upload]) -> Iterator[list[Kept]]:
    """Files that are kept already, open for reading, so that an intake can take them over."""
    with ExitStack() as stack:
        yield [
            Kept(
                (each.name, cast(BinaryIO, stack.enter_context(each.content.open("rb")))),
                str(each.content.name),
                each.size,
                each.sha256,
            )
            for each in rows
        ]


# --- looking and correcting -----------------------------------------------------------------------------------------
def preview(intake: Intake, progress: checks.Progress | None = None) -> Preview:
    """What `carry_out` would store, and what it would refuse; stores nothing."""
    with opened(intake) as files:
        return previews.preview(
            project=intake.project,
            kind=intake.kind,
            files=files,
            mapping=mapping_of(intake),
            said=intake.target,
            progress=progress,
        )


def kept_mapping(mapping: ColumnMapping) -> dict[str, Any]:
    """The mapping as the database can keep it; refuses what is no text: NUL, and half a surrogate pair."""
    said = mapping.as_dict()
    if is_storable(said):
        return said
    sentence = _("The mapping holds characters that are no text, such as NUL. Take them out.")
    raise Refused(sentence, code="invalid", fields={"mapping": sentence})


def _kept_target(target: Mapping[str, Any] | None) -> dict[str, Any]:
    said = dict(target or {})
    if is_storable(said):
        return said
    sentence = _("What is said of the files holds characters that are no text, such as NUL. Take them out.")
    raise Refused(sentence, code="invalid", fields={"target": sentence})


def mapping_of(intake: Intake) -> ColumnMapping:
    """The mapping that an intake keeps."""
    return ColumnMapping.from_dict(intake.mapping)


def _layout(mapping: ColumnMapping) -> ColumnMapping:
    """What a mapping says of the files themselves, whatever they hold."""
    said = ("format", "encoding", "sheet", "delimiter", "quoting", "line_breaks", "header", "header_row", "short_rows")
    return ColumnMapping(**{name: getattr(mapping, name) for name in said})


def is_packed(intake: Intake) -> bool:
    """Whether small files of it may unfold to large ones, so that only workers open them."""
    said = mapping_of(intake).format in ("xlsx", "parquet")
    names = IntakeFile.objects.filter(intake=intake.pk).values_list("name", flat=True)
    return said or any(map(containers.is_packed, names))


def unread(kind: str, mapping: ColumnMapping, target: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is said of files that nobody has opened yet."""
    return {"kind": kind, "mapping": kept_mapping(mapping), "target": target}


def revise(
    *,
    intake: Intake,
    kind: str | None = None,
    mapping: ColumnMapping | None = None,
    is_whole: bool = False,
    target: Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> None:
    """Correct what an unstored intake is, how it is read or where it goes. Another kind is guessed anew.

    ``mapping`` is laid over the guess, as when the files came in. One that ``is_whole`` says something of each column:
    there is nothing left to guess, unless it lays out the files in another way. A check that runs is given up.
    """
    changes: dict[str, Any] = {}
    about = intake.target if target is None else _kept_target(target)
    if kind is not None and kind != intake.kind:
        changes = {"kind": kind, **_laid(intake, kind, _layout(mapping_of(intake)), about)}
    elif mapping is not None and intake.kind in UNMAPPED:
        changes = {"mapping": kept_mapping(mapping)}
    elif mapping is not None:
        is_laid_out_anew = is_whole and _layout(mapping) != _layout(mapping_of(intake))
        is_complete = is_whole and bool(mapping.columns) and not is_laid_out_anew and is_packed(intake)
        complete = {"mapping": kept_mapping(mapping)} if is_complete else None
        changes = complete or _laid(intake, intake.kind, mapping, about, narrow=is_laid_out_anew)
    if target is not None:
        changes["target"] = about
    if changes:
        _change(intake, changes, actor)


def _laid(
    intake: Intake, kind: str, said: ColumnMapping, about: Mapping[str, Any], *, narrow: bool = False
) -> dict[str, Any]:
    """The mapping ``said``, laid over the guess: here and now, or by the worker who may open the files. ``narrow``
    leaves out the columns that the files, laid out in another way, have no longer."""
    if is_packed(intake):
        later = {**unread(kind, said, about), **({"narrow": True} if narrow else {})}
        return {"mapping": kept_mapping(said), "unread": later}
    with opened(intake) as files:
        said = still_there(files, said) if narrow else said
        return {"mapping": kept_mapping(proposal(intake.project, kind, files, said))}


def _change(intake: Intake, changes: dict[str, Any], actor: User | None) -> None:
    with transaction.atomic():
        _move(intake, checks.EDITABLE, State.UPLOADED, report={}, lease=None, **changes)
        audit.record(actor=actor, project=intake.project, verb="map import", subject=intake, fields=sorted(changes))
    for name, value in changes.items():
        setattr(intake, name, value)


def earlier_mappings(intake: Intake, most: int = 20) -> list[Intake]:
    """Stored imports of the same kind in the project, newest first: their mappings can be used again."""
    stored = Intake.objects.filter(project=intake.project_id, kind=intake.kind, state=State.STORED)
    return list(stored.exclude(pk=intake.pk).prefetch_related("files")[:most])


# --- storing --------------------------------------------------------------------------------------------------------
def carry_out(*, intake: Intake, actor: User | None = None) -> Intake:
    """Store what `preview` shows, all or nothing; raises `FileRefused` with every problem, and the intake is failed."""
    start(intake=intake, actor=actor)
    return finish(intake=intake, actor=actor)


def start(*, intake: Intake, actor: User | None = None) -> None:
    """Say that storing has begun; the edge calls `finish`, or the task that does. A check that runs is given up."""
    with transaction.atomic():
        _move(intake, checks.EDITABLE, State.STORING, report={}, lease=None, beat_at=timezone.now(), done=0, total=0)
        audit.record(actor=actor, project=intake.project, verb="start import", subject=intake)


def store_once_read(*, intake: Intake) -> bool:
    """Have an intake stored as soon as a worker has opened its files; False where they are open already.

    Until then nobody knows how they are read. Of several imports that come of them, this one is stored.
    """
    unread = Intake.objects.select_for_update().filter(pk=intake.pk, state=State.CHECKING, unread__isnull=False)
    with transaction.atomic():
        if (found := unread.first()) is None:
            return False
        found.unread = {**(found.unread or {}), "store": True}
        found.save(update_fields=["unread"])
    return True


def finish(*, intake: Intake, actor: User | None = None) -> Intake:
    """Store a started intake. Safe to repeat: what is stored once is not stored again."""
    with recording(intake) as held, opened(intake) as files:
        store = {
            Intake.Kind.DATASET: _store_dataset,
            Intake.Kind.RUBRIC: _store_rubrics,
            Intake.Kind.RATINGS: _store_ratings,
        }[Intake.Kind(intake.kind)]
        store(intake, files, actor, held)
    return intake


@contextmanager
def recording(intake: Intake) -> Iterator[Held]:
    """Hold a started intake while it is stored. Whatever keeps it from being stored leaves it failed, and says why."""
    with Held(intake) as held:
        try:
            yield held
        except FileRefused as refused:
            problems = [problem.as_dict() for problem in refused.problems]
            _fail(intake, refused.sentence, {"problems": problems, "more": refused.problems.more})
            raise
        except Refused as refused:
            _fail(intake, refused.sentence, {})
            raise
        except BaseException as error:
            wrong = _("Something went wrong here; nothing was stored. Try again, and tell the operator.")
            _fail(intake, uploads.no_room().sentence if uploads.is_full(error) else wrong, {})
            raise


def _fail(intake: Intake, sentence: str, report: dict[str, Any]) -> None:
    custody.fail(intake, {"sentence": sentence, **intake.report, **report})


def tell(intake: Intake, report: Report, **rows: Any) -> None:
    """Keep the report of an intake, and the keys of ``rows`` it is about, for its page and for later."""
    intake.report = {"tries": intake.report.get("tries", 1), **report.as_dict(), **rows}
    Intake.objects.filter(pk=intake.pk).update(report=intake.report)


def _store_dataset(intake: Intake, files: list[File], actor: User | None, held: Held) -> None:
    extends = targets.extended(project=intake.project, said=intake.target)
    if intake.target.get("extends") and extends is None:
        raise Refused(_("The dataset to add these items to is gone. Choose another, or none."), code="no_target")
    choice = intake.target.get("generator_names", "")
    parsed, report, shown = previews.read_dataset(files, mapping_of(intake), extends, held.reading, names=choice)
    tell(intake, report)
    if parsed.problems:
        raise FileRefused(parsed.problems)
    if shown:
        audit.record(
            actor=actor, project=intake.project, verb="keep generator names", subject=intake, fields=["generator_names"]
        )
    licence, count = intake.target.get("licence", ""), len(parsed.items)

    def staged(so_many: int) -> None:
        held.writing(so_many / count)

    if extends:
        appending.append(
            dataset=extends, items=parsed.items, intake=intake, licence=licence, actor=actor, staged=staged
        )
        return
    storing.store(
        project=intake.project,
        name=intake.target.get("name") or default_name(intake),
        licence=licence,
        items=parsed.items,
        intake=intake,
        actor=actor,
        staged=staged,
        names_shown=[each.as_dict() for each in shown],
    )


def default_name(intake: Intake) -> str:
    """A dataset is called after its first file unless somebody says otherwise."""
    first = intake.files.order_by("pk").first()
    return (PurePath(first.name).stem if first else "")[:120] or "Dataset"


def _store_rubrics(intake: Intake, files: list[File], actor: User | None, _held: Held) -> None:
    documents, problems = previews.read_rubrics(files)
    if problems:
        raise FileRefused(problems)
    with transaction.atomic():
        before = set(RubricVersion.objects.filter(rubric__project=intake.project).values_list("pk", flat=True))
        drafts = [rubrics.draft(project=intake.project, document=document, actor=actor) for document in documents]
        storing.settle(intake)
        made = [draft.pk for draft in drafts if draft.pk not in before]
        report = Report(read=len(files), stored=len(made), collapsed=len(files) - len(made)).as_dict()
        intake.report = {**report, "versions": [draft.pk for draft in drafts], "made": made}
        Intake.objects.filter(pk=intake.pk).update(report=intake.report)


def _store_ratings(intake: Intake, files: list[File], actor: User | None, held: Held) -> None:
    target = targets.resolve(project=intake.project, said=intake.target)
    if target is None:
        raise Refused(_("Say which campaign these ratings belong to, or which dataset and rubric."), code="no_target")
    parsed, mapping, report = previews.read_ratings(files, mapping_of(intake), target, held.reading)
    tell(intake, report)
    if parsed.problems:
        raise FileRefused(parsed.problems)
    with transaction.atomic():
        campaign = targets.campaign_of(target=target, actor=actor)
        stored = storing.store_ratings(
            campaign=campaign,
            rows=parsed.rows,
            intake=intake,
            identified=not mapping.positional,
            actor=actor,
            told=held.writing,
        )
        previews.add_stored(report, stored)
        opened_here = {} if target.campaign else {"opened_campaign": campaign.pk}
        tell(intake, report, campaign=campaign.pk, **opened_here)


def _move(intake: Intake, before: Sequence[str], after: str, **changes: Any) -> None:
    """Compare-and-set; refuses when somebody was faster."""
    found = Intake.objects.filter(pk=intake.pk, state__in=before)
    if not found.update(state=after, state_since=timezone.now(), **changes):
        raise Refused(_("This import is being stored, or was stored already. Reload the page."), code="wrong_state")
    intake.state = after
    intake.report = changes.get("report", intake.report)
