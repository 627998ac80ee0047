"""What workers do for webhooks and mails. A delivery may be sent twice, never lost: its row says what is left to do."""

import logging
from collections.abc import Callable

from celery import shared_task

from accounts import deliveries, jobs, mail, removal
from accounts.webhooks import LULL

logger = logging.getLogger(__name__)


@shared_task
def deliver(webhook_pk: int) -> None:
    """One turn of sending to one webhook, and the next queued behind it while things get through."""
    if deliveries.send_due(webhook_pk=webhook_pk) and webhook_pk in deliveries.due():
        deliver.delay(webhook_pk)


@shared_task
def sweep() -> None:
    """Take up again what dead workers left undone, have sent what waits, and forget what is old: for all kinds of jobs.

    One that can't be cleared away keeps nothing else waiting.
    """
    clearing: list[Callable[[], object]] = [
        jobs.sweep,
        deliveries.sweep_deliveries,
        removal.forget_sessions,
        *jobs.cleanings,
    ]
    for clear in clearing:
        try:
            clear()
        except Exception:
            logger.exception("%s could not be cleared away; the next sweep tries again", clear.__module__)
    for webhook_pk in deliveries.due():
        deliver.apply_async((webhook_pk,), expires=LULL)


@shared_task
def send_mail(subject: str, body: str, to: list[str]) -> None:
    """One mail that a page wrote."""
    mail.mail_text(subject=subject, body=body, to=to)


@shared_task
def send_password_reset(email: str, root: str, language: str) -> None:
    """The link for a new password, if the address has an account."""
    mail.mail_password_reset(email=email, root=root, language=language)
