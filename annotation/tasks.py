"""What workers do for imports."""

from __future__ import annotations

from celery import shared_task
from django.db.models import Sum

from accounts.models import User
from accounts.refusals import Refused
from annotation import intake as storing
from annotation import reception
from annotation.models import Intake

AT_ONCE = 4 * 2**20  # bytes that a page can wait for


def is_large(intake: Intake) -> bool:
    """Whether storing takes longer than anybody should look at a page that loads."""
    return (intake.files.aggregate(size=Sum("size"))["size"] or 0) > AT_ONCE


@shared_task
def store_intake(intake_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import. A refusal is on the import itself, for its page."""
    started = Intake.objects.filter(pk=intake_pk, state=Intake.State.STORING).select_related("project").first()
    if started is None:
        return
    try:
        reception.finish(intake=started, actor=User.objects.filter(pk=actor_pk or 0).first())
    except Refused:
        return


@shared_task
def sweep() -> None:
    """Clear what abandoned imports left behind."""
    storing.sweep()
    reception.sweep()
