"""What workers do for judges. Every task may be delivered twice, or die halfway: rows say what is left to do."""

import logging
from collections.abc import Callable
from contextlib import suppress

from celery import shared_task, signals
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from accounts.models import User
from accounts.refusals import Refused
from annotation import checks, reception
from annotation.checks import Progress
from annotation.models import Intake
from annotation.previews import Preview
from annotation.tasks import LONGEST, ask_for_check, is_large, resume
from annotation.tasks import enqueue as enqueue_import
from judging import intake_verdicts, judges, leases, stopping, studies, working

logger = logging.getLogger(__name__)

LULL = 30.0  # seconds; where no worker is free so soon, the next sweep asks again


SOFT_LIMIT = int(working.LONGEST_SESSION + judges.PACES["timeout"][2] + working.LAST)  # seconds
HARD_LIMIT = SOFT_LIMIT + 300  # far below the broker's visibility timeout

signals.worker_init.connect(lambda **_worker: stopping.prepare(), weak=False)
signals.worker_shutting_down.connect(lambda **_worker: stopping.ask(), weak=False)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def work(run_pk: int) -> None:
    """One work session on a run, and the next one queued behind it when due calls are left."""
    if working.work(run_pk):
        work.delay(run_pk)


def preview(intake: Intake, progress: Progress | None = None) -> Preview:
    """What storing an intake of verdicts would come to."""
    with reception.opened(intake) as files:
        mapping = reception.mapping_of(intake)
        return intake_verdicts.preview(
            project=intake.project, files=files, mapping=mapping, said=intake.target, progress=progress
        )


def store(intake: Intake, actor: User) -> bool:
    """Store an intake of verdicts, or of a whole study; whether that is done, or else begun: a worker stores what is
    large."""
    if intake.unread is not None:
        sentence = _("The files are being opened. Store the import when its check is over.")
        raise Refused(sentence, code="not_checked")
    if is_large(intake):
        reception.start(intake=intake, actor=actor)
        enqueue_import(store_study if intake.kind == Intake.Kind.STUDY else store_verdicts, intake, actor)
        return False
    intake_verdicts.carry_out(intake=intake, actor=actor)
    return True


@shared_task(**LONGEST)
def check_verdicts(intake_pk: int) -> None:
    """Look at a large intake of verdicts, and keep what was seen."""
    checks.carry_out(intake_pk=intake_pk, look=preview)


@shared_task(**LONGEST)
def store_verdicts(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import of verdicts. A refusal is on the import itself, for its page."""
    _finish(intake_verdicts.finish, intake_pk, actor_pk)


@shared_task(**LONGEST)
def check_study(intake_pk: int) -> None:
    """Store a whole study, keep what was seen, and roll it back."""
    checks.carry_out(intake_pk=intake_pk, look=studies.look)


@shared_task(**LONGEST)
def store_study(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started study. A refusal is on the import itself, for its page."""
    _finish(studies.finish, intake_pk, actor_pk)


def _finish(finish: Callable[..., Intake], intake_pk: int, actor_pk: int | None) -> None:
    started = Intake.objects.filter(pk=intake_pk, state=Intake.State.STORING).select_related("project").first()
    if started is None:
        return
    with suppress(Refused):
        finish(intake=started, actor=User.objects.filter(pk=actor_pk or 0).first())


@shared_task
def sweep() -> None:
    """Take up again what dead workers and passing troubles left behind."""
    for run_pk in leases.sweep():
        enqueue(run_pk, expires=LULL)
    for kind, store_kind in ((Intake.Kind.VERDICTS, store_verdicts), (Intake.Kind.STUDY, store_study)):
        for intake_pk in checks.sweep(kinds=[kind]):
            ask_for_check(intake_pk, kind)
        resume(store_kind, kinds=[kind])
    studies.clear_commands()


def enqueue(run_pk: int, *, expires: float | None = None) -> None:
    """Set as many workers on a run as share one; too many only find nothing to lease.

    A queue that is away loses nothing: the sweep finds the run once it is back.
    """
    try:
        for _worker in range(leases.MOST_HOLDERS):
            work.apply_async_on_commit((run_pk,), expires=expires)
    except OperationalError as error:
        logger.warning("The queue is away; judge run %s waits for the sweep: %s", run_pk, error)
