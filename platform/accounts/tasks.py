"""What workers do for webhooks. A delivery may be sent twice, never lost: its row says what is left to do."""

from celery import shared_task

from accounts import deliveries
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
    for webhook_pk in deliveries.due():
        deliver.apply_async((webhook_pk,), expires=LULL)
