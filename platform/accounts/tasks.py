"""What workers do for webhooks and mails. A delivery may be sent twice, never lost: its row says what is left to do."""

from celery import shared_task

from accounts import deliveries, mail, removal
from accounts.webhooks import LULL


@shared_task
def deliver(webhook_pk: int) -> None:
    """One turn of sending to one webhook, and the next queued behind it while things get through."""
    if deliveries.send_due(webhook_pk=webhook_pk) and webhook_pk in deliveries.due():
        deliver.delay(webhook_pk)


@shared_task
def sweep() -> None:
    """Have sent what is due, and forget what is old."""
    deliveries.sweep()
    removal.forget_sessions()
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
