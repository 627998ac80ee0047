"""What workers do for imports."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from celery import shared_task
from django.db.models import Sum
from kombu.exceptions import OperationalError

from accounts.models import User
from accounts.refusals import Refused
from annotation import intake as storing
from annotation import reception, uploads
from annotation.models import Intake

logger = logging.getLogger(__name__)

AT_ONCE = 4 * 2**20  # bytes that a page can wait for


def is_large(intake: Intake) -> bool:
    """Whether storing takes longer than anybody should look at a page that loads."""
    return (intake.files.aggregate(size=Sum("size"))["size"] or 0) > AT_ONCE


def enqueue(store: Any, intake: Intake, actor: User) -> None:
    """Hand a started import to the task that stores its kind; where the queue is away, store it here and now."""
    try:
        store.delay_on_commit(intake.pk, actor.pk)
    except OperationalError as error:
        logger.warning("The queue is away; import %s is stored at once: %s", intake.pk, error)
        store(intake.pk, actor.pk)


@shared_task
def store_intake(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import. A refusal is on the import itself, for its page."""
    started = Intake.objects.filter(pk=intake_pk, state=Intake.State.STORING).select_related("project").first()
    if started is None:
        return
    with suppress(Refused):
        reception.finish(intake=started, actor=User.objects.filter(pk=actor_pk or 0).first())


@shared_task
def sweep() -> None:
    """Clear what abandoned imports left behind."""
    storing.sweep()
    reception.sweep()
    uploads.sweep()
