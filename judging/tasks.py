"""What workers do for judges. Every task may be delivered twice, or die halfway: rows say what is left to do."""

import logging
from contextlib import suppress

from celery import shared_task
from kombu.exceptions import OperationalError

from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Intake
from judging import intake_verdicts, leases, working

logger = logging.getLogger(__name__)

LULL = 30.0  # seconds; where no worker is free so soon, the next sweep asks again


@shared_task
def work(run_pk: int) -> None:
    """One shift on a run, and the next one queued behind it when due calls are left."""
    if working.work(run_pk):
        work.delay(run_pk)


@shared_task
def store_verdicts(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import of verdicts. A refusal is on the import itself, for its page."""
    started = Intake.objects.filter(pk=intake_pk, state=Intake.State.STORING).select_related("project").first()
    if started is None:
        return
    with suppress(Refused):
        intake_verdicts.finish(intake=started, actor=User.objects.filter(pk=actor_pk or 0).first())


@shared_task
def sweep() -> None:
    """Take up again what dead workers and passing troubles left behind."""
    for run_pk in leases.sweep():
        enqueue(run_pk, expires=LULL)


def enqueue(run_pk: int, *, expires: float | None = None) -> None:
    """Set as many workers on a run as share one; too many only find nothing to lease.

    A queue that is away loses nothing: the sweep finds the run once it is back.
    """
    try:
        for _worker in range(leases.MOST_HOLDERS):
            work.apply_async_on_commit((run_pk,), expires=expires)
    except OperationalError as error:
        logger.warning("The queue is away; judge run %s waits for the sweep: %s", run_pk, error)
