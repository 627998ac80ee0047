"""The jobs of an import: its check, the lease under which it is stored, its end, and what `accounts.jobs` needs.

An import that is checked or stored has an open job; the parts of a study are stored under the study's job. A worker
ends an import only while it still has the lease.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import orjson
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import data_folder, jobs, webhooks
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Event, Job, User
from accounts.refusals import Refused
from annotation.imports import targets, uploads
from annotation.imports.check_reports import PreviewReport, preview_report
from annotation.imports.parsed_files import forget_parsed
from annotation.imports.previews import Preview
from annotation.models import DryRun, Import

State, Kind = Import.State, Import.Kind
# `judging` stores verdicts and studies; this app knows only the names of its tasks and pages.
HERE = (Kind.DATASET, Kind.RUBRIC, Kind.RATINGS)
CHECKING = {
    **dict.fromkeys(HERE, "annotation.tasks.check_import"),
    Kind.VERDICTS: "judging.tasks.check_verdicts",
    Kind.STUDY: "judging.tasks.check_study",
}
OPENING = "annotation.tasks.open_packed"
UNDOING = {
    **dict.fromkeys(HERE, "annotation.tasks.undo_large_import"),
    Kind.VERDICTS: "judging.tasks.undo_verdicts",
    Kind.STUDY: "judging.tasks.undo_study",
}
STORING = {
    **dict.fromkeys(HERE, "annotation.tasks.store_import"),
    Kind.VERDICTS: "judging.tasks.store_verdicts",
    Kind.STUDY: "judging.tasks.store_study",
}


# --- storing under a lease ------------------------------------------------------------------------------------------
class ImportLease:
    """Context manager: the lease on an import while it is stored. Raises ``Refused`` when another process holds it.

    The caller reports progress: ``reading(done, total)`` in bytes, then ``writing(share)`` from 0 to 1. A part of a
    study has no lease of its own and reports nothing.
    """

    def __init__(self, file_import: Import) -> None:
        self._file_import = file_import
        self._heartbeat: JobHeartbeat | None = None
        self._total = 0

    def __enter__(self) -> Self:
        held, tries = self._file_import, self._file_import.report.get("tries", 0) + 1
        if held.part_of_id is None:
            if (job := jobs.take_job(held, Job.Kind.STORE)) is None:
                raise _taken()
            tries = job.tries
        if not Import.objects.filter(pk=held.pk, state=State.STORING).update(report={"tries": tries}):
            raise _taken()
        held.report = {"tries": tries}
        if held.part_of_id is None:
            self._heartbeat = JobHeartbeat(cast(Job, held.job)).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._heartbeat:
            self._heartbeat.__exit__(kind, error, trace)

    def tell(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` is done. Refused if the lease is lost."""
        self._total = total
        if self._heartbeat:
            self._heartbeat.tell(done, total)

    def reading(self, done: int, total: int) -> None:
        """Report bytes of the files as read. Storing needs about the same time, so reading is half of the progress."""
        self.tell(done, 2 * total)

    def writing(self, share: float) -> None:
        """Report the share of the rows that is in the database."""
        self.tell(int(self._total * (1 + share) / 2), self._total)


def _taken() -> Refused:
    return Refused(_("This import is being stored, or is already stored. Reload the page."), code="wrong_state")


def _is_ours(file_import: Import) -> bool:
    """Whether this process may end an import: it has the lease, or no process has it. Does not end the job."""
    whole = file_import.part_of or file_import
    if whole.job is not None and whole.job.lease is not None:
        return jobs.is_held(whole.job)
    return not Import.objects.filter(pk=whole.pk, job__state=Job.State.RUNNING).exists()


def settle(file_import: Import | None) -> None:
    """Mark an import as stored, in the transaction that stores its last rows, so that it can't be stored twice."""
    if file_import is None:
        return
    with transaction.atomic():
        jobs.hold_project(file_import.project_id)
        unstored = Import.objects.filter(pk=file_import.pk).exclude(state=State.STORED)
        is_ours = unstored.update(state=State.STORED, state_since=timezone.now()) and _is_ours(file_import)
        if not is_ours or not _ended(file_import, ""):
            raise Refused(_("This import is already stored. Reload the page."), code="already_stored")
        transaction.on_commit(partial(forget_parsed, file_import.pk))
        file_import.state = State.STORED
        announce_end(file_import)


def fail_import(file_import: Import, report: Mapping[str, Any]) -> None:
    """Mark an import as failed, with the reason, unless another process has got its lease since."""
    with transaction.atomic():
        if _is_ours(file_import) and _failed(file_import, report) and _ended(file_import, report.get("sentence", "")):
            file_import.state, file_import.report = State.FAILED, dict(report)
        else:
            transaction.set_rollback(True)


def _ended(file_import: Import, sentence: str) -> bool:
    """End the job of an import: failed if there is a sentence, else finished. A part of a study has no job."""
    job = file_import.job if file_import.part_of_id is None else None
    if job is None or job.lease is None:
        jobs.drop(file_import)
        return True
    return jobs.fail(job, sentence) if sentence else jobs.finish_job(job)


def _failed(file_import: Import, report: Mapping[str, Any]) -> bool:
    storing = Import.objects.filter(pk=file_import.pk, state=State.STORING)
    if not storing.update(state=State.FAILED, report=dict(report), state_since=timezone.now()):
        return False
    file_import.state, file_import.report = State.FAILED, dict(report)
    announce_end(file_import)
    return True


def keep_stored(file_import: Import) -> bool:
    """Set an import that is being undone back to stored; False if it is undone already. Does not end the job."""
    undoing = Import.objects.filter(pk=file_import.pk, state=State.UNDOING)
    return bool(undoing.update(state=State.STORED, state_since=timezone.now()))


def announce_end(file_import: Import) -> None:
    """Send the end of an import to the project's webhooks, in the transaction that ends it; not for parts of a study.

    The message has keys and counts; file names, contents and problems are not sent.
    """
    if file_import.part_of_id is not None:
        return
    problems = len(file_import.report.get("problems", ())) + file_import.report.get("more", 0)
    payload = {
        "import_id": file_import.pk,
        "intake": file_import.pk,  # the former name; removed with the next version of the API
        "kind": file_import.kind,
        "state": file_import.state,
        "problems": problems,
    }
    webhooks.announce(project=file_import.project_id, event=Event.IMPORT, subject=file_import.pk, payload=payload)


# --- checking in the background -------------------------------------------------------------------------------------
# The states of a check: uploaded | failed -> checking -> uploaded | failed. A worker stops when it finds that its lease
# is lost. So a mapping can be corrected, or the import discarded, while its check runs.
Progress = Callable[[int, int], None]
Look = Callable[[Import, Progress], Preview | PreviewReport]
EDITABLE = (State.UPLOADED, State.FAILED, State.CHECKING)


def start_check(*, file_import: Import) -> None:
    """Create the job of a check; the caller enqueues it."""
    file_imports = Import.objects.filter(pk=file_import.pk, state__in=EDITABLE)
    with transaction.atomic():
        if not file_imports.update(state=State.CHECKING, state_since=timezone.now(), report={}):
            raise Refused(_("This import is being stored, or is already stored. Reload the page."), code="wrong_state")
        owner, project = file_import.created_by, file_import.project
        jobs.begin(kind=Job.Kind.CHECK, subject=file_import, project=project, owner=owner, unit=Job.Unit.BYTES)
    file_import.state, file_import.report = State.CHECKING, {}


def current_check(file_import: Import) -> PreviewReport | None:
    """The report of the last check, if it belongs to the present mapping and target; else None."""
    run = DryRun.objects.filter(file_import=file_import, asked=_asked(file_import)).first()
    return run.seen if run else None


def _asked(file_import: Import) -> str:
    """A digest of everything in the project that the result of a check depends on."""
    question = orjson.dumps([file_import.kind, file_import.mapping, file_import.target], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(question).hexdigest()


def carry_out_check(*, import_pk: int, look: Look) -> None:
    """Check an import and store the report. If the task is delivered twice, or late, nothing happens.

    A check that lost its lease ends at its next report of progress, and its result is not stored.
    """
    held = _take_check(import_pk)
    if held is None:
        return
    try:
        with JobHeartbeat(cast(Job, held.job)) as heartbeat:
            seen = look(held, heartbeat.tell)
    except Refused as refused:
        end_check(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException as error:
        wrong = _("Something went wrong while the files were checked. Try again, and tell the operator.")
        end_check(held, State.FAILED, {"sentence": uploads.no_room().sentence if data_folder.is_full(error) else wrong})
        raise
    else:
        if isinstance(seen, Preview):
            seen = preview_report(seen, targets.resolve(project=held.project, target_fields=held.target))
        _keep(held, seen)


def open_under_job(*, import_pk: int, look_into: Callable[[Import], list[Import]]) -> list[Import]:
    """Open files that only a worker may open; return the imports created from them, which are checked next."""
    held = _take_check(import_pk)
    if held is None:
        return []
    try:
        with JobHeartbeat(cast(Job, held.job)):
            return look_into(held)
    except Refused as refused:
        end_check(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException:
        wrong = _("Something went wrong while the files were opened. Try again, and tell the operator.")
        end_check(held, State.FAILED, {"sentence": wrong})
        raise
    return []


def _take_check(import_pk: int) -> Import | None:
    """The import with a lease on it; None if its check is over, or if another worker has the lease."""
    file_imports = Import.objects.filter(pk=import_pk, state=State.CHECKING)
    due = file_imports.select_related("project", "created_by").first()
    if due is None or (job := jobs.take_job(due, Job.Kind.CHECK)) is None:
        return None
    Import.objects.filter(pk=due.pk, state=State.CHECKING).update(report={"tries": job.tries})
    return due


def end_check(held: Import, state: str, report: dict[str, Any], **changes: Any) -> bool:
    """End a check; the caller has its lease. If the lease is lost, nothing changes, and False is returned."""
    checking = Import.objects.filter(pk=held.pk, state=State.CHECKING)
    job = cast(Job, held.job)
    with transaction.atomic():
        if checking.update(state=state, state_since=timezone.now(), report=report, **changes):
            sentence = report.get("sentence", "")
            if jobs.fail(job, sentence) if sentence else jobs.finish_job(job):
                return True
        transaction.set_rollback(True)
    return False


def _keep(held: Import, seen: PreviewReport) -> None:
    with transaction.atomic():
        if end_check(held, State.UPLOADED, {}):
            kept = {"asked": _asked(held), "seen": seen, "made_at": timezone.now()}
            DryRun.objects.update_or_create(file_import=held, defaults=kept)


# --- for the rules of jobs -------------------------------------------------------------------------------------------
def _title(file_import: Import) -> str:
    return ", ".join(file.name for file in file_import.files.all()) or str(file_import.get_kind_display())


def _check_failed(file_import: Import, sentence: str) -> bool:
    checking = Import.objects.filter(pk=file_import.pk, state=State.CHECKING)
    return bool(checking.update(state=State.FAILED, state_since=timezone.now(), report={"sentence": sentence}))


def _stranded(file_import: Import) -> str:
    """Why only the dead command could continue this import; empty if a worker can."""
    if file_import.created_by_id is not None:
        return ""
    return _(
        "The command that started this import ended before everything was stored. Nothing was stored. Run it again."
    )


KINDS: dict[str, JobKind] = {
    Job.Kind.CHECK: JobKind(
        model=Import,
        task=lambda file_import: OPENING if file_import.unread is not None else CHECKING[Kind(file_import.kind)],
        fail=_check_failed,
        title=_title,
        address=Import.get_absolute_url,
        related=("project", "files"),
        interrupted=gettext_lazy(
            "The check was interrupted %d times. Split the file, or ask the operator for more memory."
        ),
    ),
    Job.Kind.STORE: JobKind(
        model=Import,
        task=lambda file_import: STORING[Kind(file_import.kind)],
        fail=lambda file_import, sentence: _failed(file_import, {"sentence": sentence}),
        title=_title,
        address=Import.get_absolute_url,
        related=("project", "files"),
        stranded=_stranded,
        interrupted=gettext_lazy(
            "Storing was interrupted %d times, and nothing was stored. Split the file, or start it again."
        ),
        loses=gettext_lazy("Everything stored so far is deleted. The files are kept and can be stored again."),
    ),
    Job.Kind.UNDO: JobKind(
        model=Import,
        task=lambda file_import: UNDOING[Kind(file_import.kind)],
        fail=lambda file_import, _sentence: keep_stored(file_import),
        title=_title,
        address=Import.get_absolute_url,
        related=("project", "files"),
        interrupted=gettext_lazy("The undo was interrupted %d times. The import is still stored."),
    ),
}


def begin_storing(*, file_import: Import, owner: User | None) -> Job:
    """Create the job that stores an import, in the transaction that sets the state to storing."""
    return jobs.begin(
        kind=Job.Kind.STORE, subject=file_import, project=file_import.project, owner=owner, unit=Job.Unit.BYTES
    )
