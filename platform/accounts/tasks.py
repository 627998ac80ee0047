"""Celery tasks for webhooks and mails, and the sweep. A delivery may be sent twice, never lost."""

import logging
from collections.abc import Callable

from celery import shared_task

from accounts import deletion, jobs, mail, removal, webhooks

logger = logging.getLogger(__name__)


@shared_task
def deliver(webhook_pk: int) -> None:
    """Send the due deliveries of one webhook."""
    webhooks.deliver_due(webhook_pk=webhook_pk)


@shared_task
def sweep_all() -> None:
    """Restart the jobs of dead workers, send waiting jobs, delete old rows and files, and send due deliveries.

    If one cleaning function fails, the others are still called.
    """
    clearing: list[Callable[[], object]] = [
        jobs.sweep_jobs,
        webhooks.sweep_deliveries,
        removal.forget_sessions,
        removal.delete_orphan_files,
        *jobs.cleanings,
    ]
    for clear in clearing:
        try:
            clear()
        except Exception:
            logger.exception("%s could not be cleared away; the next sweep tries again", clear.__module__)
    for webhook_pk in webhooks.due():
        webhooks.ask_to_send(webhook_pk)


@shared_task
def purge_projects() -> None:
    """Delete for good what was deleted 30 days ago, for a minute at most; the next sweep goes on."""
    deletion.purge_deleted()


@shared_task
def send_mail(subject: str, body: str, to: list[str]) -> None:
    """One mail that a page wrote."""
    mail.mail_text(subject=subject, body=body, to=to)


@shared_task
def send_password_reset(email: str, root: str, language: str) -> None:
    """The link for a new password, if the address has an account."""
    mail.mail_password_reset(email=email, root=root, language=language)
