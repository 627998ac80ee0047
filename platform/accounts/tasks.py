"""What workers do for webhooks. A delivery may be sent twice, never lost: its row says what is left to do."""

import logging

from celery import shared_task
from kombu.exceptions import OperationalError

from accounts import deliveries

logger = logging.getLogger(__name__)

LULL = 30.0  # seconds; where no worker is free so soon, the next sweep asks again


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


def enqueue() -> None:
    """Have sent soon what a verb announced; a queue that is away loses nothing, for the sweep finds it later."""
    try:
        sweep.delay_on_commit()
    except OperationalError as error:
        logger.warning("The queue is away; webhooks wait for the next sweep: %s", error)
