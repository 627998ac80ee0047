"""The states of an import: its files are kept unchanged, read by its mapping, and stored completely or not at all.

An import goes uploaded -> storing -> stored | failed, each step by compare-and-set; a large one is checked in between
(`import_jobs`). A failed one can get another mapping and be stored; a stored one that nothing depends on can be undone,
and then its state is uploaded again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, data_folder, jobs
from accounts.models import User
from accounts.refusals import Refused
from annotation import rubrics
from annotation.imports import checks, import_jobs, opening, previews, storage, targets, uploads
from annotation.imports.import_jobs import ImportLease
from annotation.imports.parsed_files import parse_import
from annotation.imports.storage import FileRefused
from annotation.models import Import, RubricVersion
from annotation.readers import Mapping as ColumnMapping
from annotation.readers import Report, without_absent_columns

State = Import.State
UNSTORED = (State.UPLOADED, State.FAILED)


# --- correcting -----------------------------------------------------------------------------------------------------
def revise(
    *,
    file_import: Import,
    kind: str | None = None,
    mapping: ColumnMapping | None = None,
    is_whole: bool = False,
    target: Mapping[str, Any] | None = None,
    actor: User | None = None,
) -> None:
    """Correct the kind, mapping or target of an unstored import. For another kind the mapping is guessed again.

    ``mapping`` replaces the guess, as at the upload; columns that it does not mention are guessed. If it ``is_whole``,
    nothing is guessed, unless it changes the layout of the files. A running check is cancelled.
    """
    changes: dict[str, Any] = {}
    about = file_import.target if target is None else opening.storable_target(target)
    if kind is not None and kind != file_import.kind:
        changes = {
            "kind": kind,
            **_mapping_changes(file_import, kind, opening.layout_of(file_import.column_mapping()), about),
        }
    elif mapping is not None and file_import.kind in opening.UNMAPPED:
        changes = {"mapping": opening.storable_mapping(mapping)}
    elif mapping is not None:
        has_new_layout = is_whole and opening.layout_of(mapping) != opening.layout_of(file_import.column_mapping())
        is_complete = is_whole and bool(mapping.columns) and not has_new_layout and file_import.is_packed()
        complete = {"mapping": opening.storable_mapping(mapping)} if is_complete else None
        changes = complete or _mapping_changes(
            file_import, file_import.kind, mapping, about, drop_absent=has_new_layout
        )
    if target is not None:
        changes["target"] = about
    if changes:
        _change(file_import, changes, actor)


def _mapping_changes(
    file_import: Import, kind: str, given: ColumnMapping, about: Mapping[str, Any], *, drop_absent: bool = False
) -> dict[str, Any]:
    """The fields of an import for the given mapping, completed by a guess: now, or later by the worker that opens
    packed files. ``drop_absent`` leaves out the columns that the files no longer have after a change of layout."""
    if file_import.is_packed():
        later = {**opening.unopened_fields(kind, given, about), **({"narrow": True} if drop_absent else {})}
        return {"mapping": opening.storable_mapping(given), "unread": later}
    with file_import.opened() as files:
        given = without_absent_columns(files, given) if drop_absent else given
        return {"mapping": opening.storable_mapping(opening.proposal(file_import.project, kind, files, given))}


def _change(file_import: Import, changes: dict[str, Any], actor: User | None) -> None:
    with transaction.atomic():
        _move(file_import, import_jobs.EDITABLE, State.UPLOADED, report={}, **changes)
        jobs.drop(file_import)
        audit.record(
            actor=actor, project=file_import.project, verb="map import", subject=file_import, fields=sorted(changes)
        )
    for name, value in changes.items():
        setattr(file_import, name, value)


def earlier_mappings(file_import: Import, most: int = 20) -> list[Import]:
    """Stored imports of the same kind in the project, newest first: their mappings can be used again."""
    stored = Import.objects.filter(project=file_import.project_id, kind=file_import.kind, state=State.STORED)
    return list(stored.exclude(pk=file_import.pk).prefetch_related("files")[:most])


# --- storing --------------------------------------------------------------------------------------------------------
def carry_out(*, file_import: Import, actor: User | None = None) -> Import:
    """Store what `preview` shows, all or nothing; raises `FileRefused` with every problem, and the import is failed."""
    start(file_import=file_import, actor=actor)
    return finish(file_import=file_import, actor=actor)


def start(*, file_import: Import, actor: User | None = None) -> None:
    """Set the state to storing; the caller then calls `finish`, or enqueues the job. A running check is cancelled."""
    with transaction.atomic():
        _move(file_import, import_jobs.EDITABLE, State.STORING, report={})
        if file_import.part_of_id is None:
            import_jobs.begin_storing(file_import=file_import, owner=actor)
        audit.record(actor=actor, project=file_import.project, verb="start import", subject=file_import)


def started(import_pk: int) -> Import | None:
    """An import whose storing has started and not ended, with its job; None when there is none."""
    unfinished = Import.objects.filter(pk=import_pk, state=State.STORING)
    return unfinished.select_related("project", "job__owner").first()


def store_after_opening(*, file_import: Import) -> bool:
    """Have an import stored as soon as a worker has opened its packed files; False if they have been opened already.

    Their mapping is not known before. If they turn out to be several imports, only this one is stored.
    """
    unopened = Import.objects.select_for_update().filter(pk=file_import.pk, state=State.CHECKING, unread__isnull=False)
    with transaction.atomic():
        if (unread_import := unopened.first()) is None:
            return False
        # The request is valid for this job only.
        unread_import.unread = {**(unread_import.unread or {}), "store": unread_import.job_id}
        unread_import.save(update_fields=["unread"])
    return True


def finish(*, file_import: Import, actor: User | None = None, keeps: bool = False) -> Import:
    """Store a started import of a dataset, a rubric or ratings. Safe to repeat: nothing is stored twice.

    ``keeps``: the parsed file is kept for the next reading, as in a trial that is rolled back.
    """
    with hold_for_storing(file_import) as held:
        store = {
            Import.Kind.DATASET: _store_dataset,
            Import.Kind.RUBRIC: _store_rubrics,
            Import.Kind.RATINGS: _store_ratings,
        }[Import.Kind(file_import.kind)]
        store(file_import, actor, held, keeps)
    return file_import


@contextmanager
def hold_for_storing(file_import: Import) -> Iterator[ImportLease]:
    """Hold the lease of a started import while it is stored. After an error it is failed, and its report says why."""
    with ImportLease(file_import) as held:
        try:
            yield held
        except FileRefused as refused:
            problems = [problem.as_dict() for problem in refused.problems]
            _fail(file_import, refused.sentence, {"problems": problems, "more": refused.problems.more})
            raise
        except Refused as refused:
            _fail(file_import, refused.sentence, {})
            raise
        except BaseException as error:
            wrong = _("Something went wrong here; nothing was stored. Try again, and tell the operator.")
            _fail(file_import, uploads.no_room().sentence if data_folder.is_full(error) else wrong, {})
            raise


def _fail(file_import: Import, sentence: str, report: dict[str, Any]) -> None:
    import_jobs.fail_import(file_import, {"sentence": sentence, **file_import.report, **report})


def save_report(file_import: Import, report: Report, **rows: Any) -> None:
    """Save the report of an import with the extra fields ``rows``, unless the import has failed or was cancelled."""
    file_import.report = {"tries": file_import.report.get("tries", 1), **report.as_dict(), **rows}
    Import.objects.filter(pk=file_import.pk).exclude(state=State.FAILED).update(report=file_import.report)


def _store_dataset(file_import: Import, actor: User | None, held: ImportLease, keeps: bool) -> None:
    is_more = bool(file_import.target.get("extends"))
    extends = targets.extended(project=file_import.project, target_fields=file_import.target) if is_more else None
    if is_more and extends is None:
        raise Refused(
            _("The dataset to which these items should be added no longer exists. Choose another dataset, or none."),
            code="no_target",
        )
    choice = file_import.target.get("generator_names", "")
    parsed = parse_import(file_import, file_import.column_mapping(), progress=held.reading, keeps=keeps)
    checks.note_people(parsed, file_import.project)
    report, shown = checks.compare_items(parsed, extends, names=choice)
    save_report(file_import, report)
    if parsed.problems:
        raise FileRefused(parsed.problems)
    if shown:
        audit.record(
            actor=actor,
            project=file_import.project,
            verb="keep generator names",
            subject=file_import,
            fields=["generator_names"],
        )
    licence, count = file_import.target.get("licence", ""), len(parsed.rows)

    def staged(so_many: int) -> None:
        held.writing(so_many / count)

    if extends:
        storage.append_items(
            dataset=extends, items=parsed.rows, file_import=file_import, licence=licence, actor=actor, staged=staged
        )
        return
    storage.store(
        project=file_import.project,
        name=file_import.target.get("name") or file_import.default_name(),
        licence=licence,
        items=parsed.rows,
        file_import=file_import,
        actor=actor,
        staged=staged,
        names_shown=[finding.as_dict() for finding in shown],
    )


def _store_rubrics(file_import: Import, actor: User | None, _held: ImportLease, keeps: bool) -> None:
    with file_import.opened() as files:
        documents, problems = previews.read_rubrics(files)
    if problems:
        raise FileRefused(problems)
    with transaction.atomic():
        before = set(RubricVersion.objects.filter(rubric__project=file_import.project).values_list("pk", flat=True))
        drafts = [rubrics.draft(project=file_import.project, document=document, actor=actor) for document in documents]
        import_jobs.settle(file_import)
        new_versions = [draft.pk for draft in drafts if draft.pk not in before]
        report = Report(read=len(files), stored=len(new_versions), collapsed=len(files) - len(new_versions)).as_dict()
        file_import.report = {**report, "versions": [draft.pk for draft in drafts], "made": new_versions}
        Import.objects.filter(pk=file_import.pk).update(report=file_import.report)


def _store_ratings(file_import: Import, actor: User | None, held: ImportLease, keeps: bool) -> None:
    target = targets.resolve(project=file_import.project, target_fields=file_import.target)
    if target is None:
        raise Refused(
            _("Choose the campaign that these ratings belong to, or a dataset and a rubric."), code="no_target"
        )
    parsed = parse_import(file_import, file_import.column_mapping(), target.rubric_version, held.reading, keeps=keeps)
    report = checks.report_ratings(parsed, target)
    save_report(file_import, report)
    if parsed.problems:
        raise FileRefused(parsed.problems)
    with transaction.atomic():
        campaign = targets.campaign_of(target=target, actor=actor)
        stored = storage.store_ratings(
            campaign=campaign,
            rows=parsed.rows,
            file_import=file_import,
            identified=not parsed.mapping.positional,
            actor=actor,
            progress=held.writing,
        )
        checks.add_stored(report, stored)
        opened_here = {} if target.campaign else {"opened_campaign": campaign.pk}
        save_report(file_import, report, campaign=campaign.pk, **opened_here)


def _move(file_import: Import, before: Sequence[str], after: str, **changes: Any) -> None:
    """Change the state by compare-and-set; refuses if it is no longer one of ``before``."""
    movable = Import.objects.filter(pk=file_import.pk, state__in=before)
    if not movable.update(state=after, state_since=timezone.now(), **changes):
        raise _wrong_state(file_import)
    file_import.state = after
    file_import.report = changes.get("report", file_import.report)


def _wrong_state(file_import: Import) -> Refused:
    """The refusal of a step that the present state of an import does not allow."""
    state = Import.objects.filter(pk=file_import.pk).values_list("state", flat=True).first()
    sentence = (
        {
            State.STORING: _("This import is being stored. Reload the page."),
            State.STORED: _("This import is already stored. Reload the page."),
        }.get(State(state))
        if state
        else None
    )
    return Refused(sentence or _("This import no longer exists. Upload the files again."), code="wrong_state")


# --- imports from one upload ----------------------------------------------------------------------------------------
def set_targets_of_siblings(*, file_import: Import) -> None:
    """Make this dataset the target of the ratings and verdicts uploaded with it that have no target yet."""
    if file_import.kind != Import.Kind.DATASET:
        return
    for sibling in file_import.siblings():
        is_waiting = sibling.kind in opening.ABOUT_ITEMS and sibling.state in UNSTORED
        if is_waiting and targets.resolve(project=file_import.project, target_fields=sibling.target) is None:
            target = {**sibling.target, **targets.about(file_import)}
            Import.objects.filter(pk=sibling.pk, state=sibling.state).update(target=target)
