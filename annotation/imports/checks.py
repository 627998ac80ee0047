"""Check a large import in a background worker, store the report, and show it on the import's page.

A check goes uploaded | failed -> checking -> uploaded | failed, and has a job (`accounts.jobs`). A worker that finds
its lease gone stops, so a mapping may be corrected, or the import discarded, while its check runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

import orjson
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import jobs
from accounts.jobs import JobHeartbeat
from accounts.models import Job
from accounts.refusals import Refused
from annotation.imports import targets, uploads
from annotation.imports.previews import Preview, PreviewReport, preview_report
from annotation.models import DryRun, Import

State = Import.State
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


def current(file_import: Import) -> PreviewReport | None:
    """The report of the last check, while it belongs to the present mapping and target."""
    run = DryRun.objects.filter(file_import=file_import, asked=asked(file_import)).first()
    return run.seen if run else None


def asked(file_import: Import) -> str:
    """A digest of everything in the project that the result of a check depends on."""
    question = orjson.dumps([file_import.kind, file_import.mapping, file_import.target], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(question).hexdigest()


def carry_out_check(*, import_pk: int, look: Look) -> None:
    """Check an import and store the report. Delivered twice, or late, it does nothing.

    A check that lost its import ends where it next tells how far it is; what it saw is not kept.
    """
    held = _take(import_pk)
    if held is None:
        return
    try:
        with JobHeartbeat(cast(Job, held.job)) as heartbeat:
            seen = look(held, heartbeat.tell)
    except Refused as refused:
        end(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException as error:
        wrong = _("Something went wrong while the files were checked. Try again, and tell the operator.")
        end(held, State.FAILED, {"sentence": uploads.no_room().sentence if uploads.is_full(error) else wrong})
        raise
    else:
        if isinstance(seen, Preview):
            seen = preview_report(seen, targets.resolve(project=held.project, target_fields=held.target))
        _keep(held, seen)


def open_under_job(*, import_pk: int, look_into: Callable[[Import], list[Import]]) -> list[Import]:
    """Open files that only a worker may open; returns the imports created from them, to be checked next."""
    held = _take(import_pk)
    if held is None:
        return []
    try:
        with JobHeartbeat(cast(Job, held.job)):
            return look_into(held)
    except Refused as refused:
        end(held, State.FAILED, {"sentence": refused.sentence})
    except BaseException:
        wrong = _("Something went wrong while the files were opened. Try again, and tell the operator.")
        end(held, State.FAILED, {"sentence": wrong})
        raise
    return []


def _take(import_pk: int) -> Import | None:
    """The import with a lease on it; None when its check is over, or another worker holds it."""
    file_imports = Import.objects.filter(pk=import_pk, state=State.CHECKING)
    due = file_imports.select_related("project", "created_by").first()
    if due is None or (job := jobs.take_job(due, Job.Kind.CHECK)) is None:
        return None
    Import.objects.filter(pk=due.pk, state=State.CHECKING).update(report={"tries": job.tries})
    return due


def end(held: Import, state: str, report: dict[str, Any], **changes: Any) -> bool:
    """End a check; the caller holds its lease. False, and nothing changes, when the lease is lost."""
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
        if end(held, State.UPLOADED, {}):
            kept = {"asked": asked(held), "seen": seen, "made_at": timezone.now()}
            DryRun.objects.update_or_create(file_import=held, defaults=kept)
