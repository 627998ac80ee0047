"""Create imports from uploaded files: keep the files byte for byte, detect their kind, propose a mapping.

A worker opens archives later. If storing was requested before that, the worker then stores the import.
Files uploaded together become one import per kind (rubric, dataset, ratings, verdicts), in the order of storing.
"""

from __future__ import annotations

import hashlib
from collections import abc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from django.core.files import File as StoredFile
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.inputs import is_storable
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.imports import import_jobs, targets, undoing, uploads
from annotation.imports.criterion_names import labels_known, names_known
from annotation.models import Import, ImportFile, KeptFile, Upload, opened_files
from annotation.readers import (
    MOST_LISTED,
    File,
    Mapping,
    PersonScores,
    guess_kind,
    is_compressed,
    is_not_data,
    kinds_of_files,
    propose_mapping,
    ready_mapping,
    recognise,
    with_cached_head,
    without_absent_columns,
)

Kind = Import.Kind
ABOUT_ITEMS = (Kind.RATINGS, Kind.VERDICTS)
UNMAPPED = (Kind.RUBRIC, Kind.STUDY)


# --- one import ------------------------------------------------------------------------------------------------------
def open_import(
    *,
    project: Project,
    kind: str,
    files: Sequence[File],
    mapping: Mapping | None = None,
    target: abc.Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> Import:
    """Keep the files byte for byte, with a mapping guessed for all of them and updated by ``mapping``."""
    if not files:
        raise no_file()
    proposed = proposal(project, kind, files, mapping or Mapping())
    return create_import(project=project, kind=kind, files=files, mapping=proposed, target=target, actor=actor)


def no_file() -> Refused:
    """The refusal of an upload of nothing."""
    sentence = _("Choose at least one file.")
    return Refused(sentence, code="no_file", fields={"files": sentence})


def proposal(project: Project, kind: str, files: Sequence[File], given: Mapping) -> Mapping:
    """The mapping guessed for ``files``, updated by the ``given`` mapping; rubrics and whole studies have no mapping.

    The criteria of the project's rubrics are recognised by any of their names. Ratings and verdicts in the files of a
    known tool are read with its ready mapping, unless the given mapping has its own ``shape``.
    """
    if kind in UNMAPPED:
        return given
    ready = ready_mapping(kind, files) if kind in ABOUT_ITEMS and not (given.shape or given.columns) else None
    if ready is not None:
        return ready.updated(given)
    return propose_mapping(kind, files, given, names_known(project), labels_known(project))  # type: ignore[arg-type]


def layout_of(mapping: Mapping) -> Mapping:
    """The part of a mapping that describes the files, such as their format and encoding, not their columns."""
    names = ("format", "encoding", "sheet", "delimiter", "quoting", "line_breaks", "header", "header_row", "short_rows")
    return Mapping(**{name: getattr(mapping, name) for name in names})


def _proposal_for_ratings(project: Project, files: Sequence[File], of_items: Mapping) -> Mapping:
    """The mapping of the ratings in the files of a dataset. If each person has a column, the items' ids come from the
    column chosen for the items, and values are read as chosen there."""
    proposed = proposal(project, Kind.RATINGS, files, layout_of(of_items))
    if not any(isinstance(step, PersonScores) for step in proposed.shape):
        return proposed
    ids = {column: "item" for column, field in of_items.columns.items() if field == "id"}
    chosen = replace(
        layout_of(of_items), columns=ids, trust_ids=of_items.trust_ids, decimal_comma=of_items.decimal_comma
    )
    return proposal(project, Kind.RATINGS, files, chosen)


def create_import(
    *,
    project: Project,
    kind: str,
    mapping: Mapping,
    files: Sequence[File] = (),
    kept: Sequence[KeptFile] = (),
    target: abc.Mapping[str, Any] | None = None,
    batch: UUID | None = None,
    part_of: Import | None = None,
    unread: abc.Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> Import:
    """Create an import with its files: new ones are copied, those already in the media directory are used as they are.

    ``unread``: kind, mapping and target given for files that a worker has to open first (`opening.open_files`).
    """
    access.refuse_archived(project)
    with transaction.atomic():
        entered = Import.objects.create(
            project=project,
            kind=kind,
            mapping=storable_mapping(mapping),
            target=storable_target(target),
            batch=batch,
            part_of=part_of,
            unread=None if unread is None else storable_target(unread),
            created_by=actor,
        )
        for name, raw in files:
            _keep(entered, uploads.name_in_archive(name) if part_of else uploads.short_name(name), raw)
        for kept_file in kept:
            name, size, sha256 = uploads.short_name(kept_file.file[0]), kept_file.size, kept_file.sha256
            ImportFile.objects.create(
                file_import=entered, name=name, content=kept_file.content, size=size, sha256=sha256
            )
        audit.record(actor=actor, project=project, verb="upload files", subject=entered, fields=["kind"])
    return entered


def check_sizes(sizes: abc.Mapping[str, int]) -> None:
    """Refuse the files of one request, with their names, if together they are larger than a request may be."""
    if sum(sizes.values()) > settings.UPLOAD_LIMIT:
        name = max(sizes, key=lambda file_name: sizes[file_name])
        raise uploads.too_large(name, sizes[name])
    if sum(sizes.values()) > uploads.AT_ONCE:
        raise uploads.too_long(sum(sizes.values()), max(sizes, key=lambda file_name: sizes[file_name]))


def _keep(file_import: Import, name: str, raw: bytes | BinaryIO) -> None:
    content = ContentFile(raw) if isinstance(raw, bytes) else StoredFile(raw)
    digest, size = hashlib.sha256(), 0
    kept = ImportFile(file_import=file_import, name=name)
    kept.content.save(uploads.stored_name(uploads.short_name(name)), ContentFile(b""), save=False)
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


def storable_mapping(mapping: Mapping) -> dict[str, Any]:
    """The mapping as values that the database can store. Raises ``Refused`` for NUL and half a surrogate pair."""
    fields = mapping.as_dict()
    if is_storable(fields):
        return fields
    sentence = _("The mapping contains characters that are not text, such as NUL. Remove them.")
    raise Refused(sentence, code="invalid", fields={"mapping": sentence})


def storable_target(target: abc.Mapping[str, Any] | None) -> dict[str, Any]:
    fields = dict(target or {})
    if is_storable(fields):
        return fields
    sentence = _("The values for all files contain characters that are not text, such as NUL. Remove them.")
    raise Refused(sentence, code="invalid", fields={"target": sentence})


def unopened_fields(kind: str, mapping: Mapping, target: abc.Mapping[str, Any] | None) -> dict[str, Any]:
    """The kind, mapping and target given for files that are not opened yet, as `Import.unread` keeps them."""
    return {"kind": kind, "mapping": storable_mapping(mapping), "target": target}


# --- files that come together ----------------------------------------------------------------------------------------
class Part(NamedTuple):
    """The files, kind and mapping of one import."""

    kind: str
    mapping: Mapping
    files: list[File]
    kept: list[KeptFile]


def open_imports(
    *,
    project: Project,
    files: Sequence[File] = (),
    keys: Sequence[UUID] = (),
    kind: str = "",
    mapping: Mapping | None = None,
    target: dict[str, Any] | None = None,
    actor: User,
) -> list[Import]:
    """Open an import for each kind of content in the files, both those sent and those uploaded under ``keys``.

    With ``kind``, all files are one import. Without kind, mapping and target, the files of a known study are also
    one import.
    """
    arrived = uploads.whole(project=project, keys=keys, actor=actor)
    with opened_files(arrived) as kept:
        if not files and not kept:
            raise no_file()
        given = mapping or Mapping()
        if any(is_compressed(name) for name, _raw in (*files, *(kept_file.file for kept_file in kept))):
            unread = unopened_fields(kind, given, target)
            with transaction.atomic():
                _take_over(arrived)
                return [_create_unopened(project, unread, files=files, kept=kept, actor=actor)]
        kind, target, parts = _parts_by_kind(project, files, kept, kind, given, target)
        with transaction.atomic():
            _take_over(arrived)
            return _create_parts(project, parts, target, actor)


def _parts_by_kind(
    project: Project,
    files: Sequence[File],
    kept: Sequence[KeptFile],
    kind: str,
    given: Mapping,
    target: dict[str, Any] | None,
) -> tuple[str, dict[str, Any] | None, list[Part]]:
    """The parts of the files by kind, and the kind and target of all of them if they belong to a study."""
    heads = {id(file): with_cached_head(file, given) for file in (*files, *(kept_file.file for kept_file in kept))}
    if kind == Kind.STUDY or (not kind and target is None and given == Mapping()):
        kind, target = _recognised(list(heads.values()), kind, target)
    return kind, target, _parts(project, files, kept, kind, given, heads)


def _create_unopened(project: Project, unread: dict[str, Any], **files: Any) -> Import:
    """One import of files that a worker must open first, because their content is not known yet."""
    given = Mapping.from_dict(unread["mapping"])
    kind, target = unread["kind"] or Kind.DATASET, unread["target"] or {}
    return create_import(
        project=project, kind=kind, mapping=given, target=target, unread=unread, batch=uuid4(), **files
    )


def open_files(*, file_import: Import) -> list[Import]:
    """Open the ``unread`` files of an import: it becomes the import of the first part; new imports get the others.

    The caller has the lease on it; if another process has got the lease since, nothing changes.
    """
    unread, project, actor = (
        file_import.unread or unopened_fields("", Mapping(), None),
        file_import.project,
        file_import.created_by,
    )
    given = Mapping.from_dict(unread["mapping"])
    with opened_files(file_import.files.order_by("pk")) as kept:
        given = without_absent_columns([kept_file.file for kept_file in kept], given) if unread.get("narrow") else given
        _kind, target, parts = _parts_by_kind(project, (), kept, unread["kind"], given, unread["target"])
        first, *others = parts
        brings_items = any(part.kind == Kind.DATASET for part in parts)
        about = {
            part.kind: target if target is not None else {} if brings_items else likely_target(project, part.kind)
            for part in parts
        }
        with transaction.atomic():
            held = Import.objects.filter(pk=file_import.pk, state=Import.State.CHECKING)
            now = held.select_for_update().values_list("unread", flat=True).first() or {}
            changes = {
                "kind": first.kind,
                "mapping": storable_mapping(first.mapping),
                "target": about[first.kind],
            }
            is_meant = now.get("store") in (True, file_import.job_id)  # True: requested before the upgrade
            is_asked_for = is_meant and first.kind in (Kind.DATASET, Kind.RUBRIC, Kind.RATINGS)
            state = Import.State.STORING if is_asked_for else Import.State.UPLOADED
            if not import_jobs.end_check(file_import, state, {}, **changes, unread=None):
                return []
            if is_asked_for:
                import_jobs.begin_storing(file_import=file_import, owner=actor)
                audit.record(actor=actor, project=project, verb="start import", subject=file_import)
            own = [kept_file.content for kept_file in first.kept]
            file_import.files.exclude(content__in=own).delete()
            entered = [
                create_import(
                    project=project,
                    kind=part.kind,
                    mapping=part.mapping,
                    kept=part.kept,
                    target=about[part.kind],
                    batch=file_import.batch,
                    actor=actor,
                )
                for part in others
            ]
    file_import.refresh_from_db()
    return [file_import, *entered]


def _recognised(files: Sequence[File], kind: str, target: dict[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
    """The kind and target of files; if they were given without, or as a study, those of the recognised study."""
    if target and "study" in target:
        return kind, target
    study = recognise(files)
    return (Kind.STUDY, {**(target or {}), "study": study.name}) if study else (kind, target)


def _parts(
    project: Project,
    files: Sequence[File],
    kept: Sequence[KeptFile],
    kind: str,
    given: Mapping,
    heads: dict[int, File] | None = None,
) -> list[Part]:
    """The files by kind, each part with its guessed mapping. ``heads`` maps the identity of a file to another file that
    is read in its place to guess."""
    heads = heads or {id(file): file for file in (*files, *(kept_file.file for kept_file in kept))}
    kinds = {key: kind or _kind_of(head, given) for key, head in heads.items()}
    parts = []
    for part_kind in Import.STORING_ORDER:
        own = [file for file in files if kinds[id(file)] == part_kind]
        own_kept = [kept_file for kept_file in kept if kinds[id(kept_file.file)] == part_kind]
        if own or own_kept:
            read = [heads[id(file)] for file in (*own, *(kept_file.file for kept_file in own_kept))]
            parts.append(Part(part_kind, proposal(project, part_kind, read, given), own, own_kept))
    return parts


def _kind_of(file: File, given: Mapping) -> str:
    """The kind of a file; if an archive has files of several kinds, it would be read as one of these kinds."""
    file_kinds = kinds_of_files([file], given)
    if len(set(file_kinds.values())) > 1:
        kinds = ", ".join(f"{name} ({Kind(kind).label})" for name, kind in list(file_kinds.items())[:MOST_LISTED])
        several = _("%(file)s contains several kinds of files: %(kinds)s.") % {"file": file[0], "kinds": kinds}
        sentence = several + " " + _("Unpack it and choose the files together, or choose what it contains.")
        raise Refused(sentence, code="several_kinds", fields={"files": sentence})
    return guess_kind([file], given)


def _take_over(arrived: Sequence[Upload]) -> None:
    gone, _each = Upload.objects.filter(pk__in=[upload.pk for upload in arrived]).delete()
    if gone != len(arrived):
        raise Refused(_("These files are already part of an import. See the page “Imports”."), code="gone")


def _create_parts(
    project: Project, parts: Sequence[Part], target: dict[str, Any] | None, actor: User | None
) -> list[Import]:
    batch = uuid4()
    brings_items = any(part.kind == Kind.DATASET for part in parts)
    return [
        create_import(
            project=project,
            kind=part.kind,
            mapping=part.mapping,
            files=part.files,
            kept=part.kept,
            target=target if target is not None else {} if brings_items else likely_target(project, part.kind),
            batch=batch,
            actor=actor,
        )
        for part in parts
    ]


def likely_target(project: Project, kind: str) -> dict[str, Any]:
    """The only campaign, or the only dataset and rubric; empty if there are several, so a person must choose."""
    if kind not in ABOUT_ITEMS:
        return {}
    try:
        find_one = targets.find_target if kind == Kind.RATINGS else targets.only
        return find_one(project=project).as_dict()
    except Refused:
        return {}


# --- other kinds of the same files ------------------------------------------------------------------------------------


def import_as_kind(*, file_import: Import, kind: str, actor: User | None = None) -> Import:
    """One more import of the same files, for another kind of their content; nothing is uploaded or copied again."""
    if kind == file_import.kind or kind not in Kind.values:
        raise Refused(_("These files are already imported as this kind."), code="same_kind")
    if Kind.STUDY in (kind, file_import.kind):
        raise Refused(
            _("A whole study is one import. Import its files one by one, or upload them together."), code="study"
        )
    batch = file_import.batch or uuid4()
    unread = unopened_fields(kind, Mapping(), None) if file_import.is_packed() else None
    with opened_files(file_import.files.order_by("pk")) as kept:
        files = [kept_file.file for kept_file in kept]
        mapping = Mapping()
        if unread is None and (kind, file_import.kind) == (Kind.RATINGS, Kind.DATASET):
            mapping = _proposal_for_ratings(file_import.project, files, file_import.column_mapping())
        elif unread is None:
            mapping = proposal(file_import.project, kind, files, Mapping())
    with transaction.atomic():
        # The row is locked, so that the import is not discarded with its files now.
        if not Import.objects.select_for_update().filter(pk=file_import.pk).update(batch=batch):
            raise Refused(_("This import no longer exists. Upload the files again."), code="gone")
        target = targets.about(file_import) if file_import.state == Import.State.STORED else {}
        return create_import(
            project=file_import.project,
            kind=kind,
            mapping=mapping,
            kept=kept,
            target=target,
            unread=unread and {**unread, "target": target},
            batch=batch,
            actor=actor,
        )


def split_study(*, file_import: Import, actor: User | None = None) -> list[Import]:
    """Import the files of a study kind by kind after all; nothing is uploaded or copied again."""
    if file_import.kind != Kind.STUDY:
        raise Refused(_("These files are not the import of a whole study."), code="wrong_kind")
    with opened_files(file_import.files.order_by("pk")) as kept, transaction.atomic():
        own = [kept_file for kept_file in kept if not is_not_data(kept_file.file[0])] or kept
        if file_import.is_packed():
            # A target keeps the study from being recognised once more.
            entered = [_create_unopened(file_import.project, unopened_fields("", Mapping(), {}), kept=own, actor=actor)]
            undoing.discard(file_import=file_import, actor=actor)
            return entered
        entered = _create_parts(file_import.project, _parts(file_import.project, [], own, "", Mapping()), None, actor)
        undoing.discard(file_import=file_import, actor=actor)
    return entered
