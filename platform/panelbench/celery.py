"""The Celery application. The broker is Redis if REDIS_URL is set, else a folder of the data directory.

There is no result backend: results are rows of our own tables. Judge runs, numbers and imports have separate queues, so
that a worker can serve one queue only (`celery -A panelbench worker -Q judging`) and long tasks do not delay others.
"""

import logging
import os
import signal
from pathlib import Path
from typing import Any

from celery import Celery, signals
from django.conf import settings

logger = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

QUEUES = ("judging", "analytics", "imports", "default")
ROUTES = {
    "judging.tasks.work": {"queue": "judging"},
    "judging.tasks.write_texts": {"queue": "judging"},
    "judging.tasks.simulate": {"queue": "judging"},
    "analytics.tasks.compute_numbers": {"queue": "analytics"},
    # Checks and imports wait for no numbers, whatever those cost.
    "annotation.tasks.*": {"queue": "imports"},
    "judging.tasks.check_*": {"queue": "imports"},
    "judging.tasks.store_*": {"queue": "imports"},
    "judging.tasks.undo_*": {"queue": "imports"},
}
SWEEP = 30.0  # seconds; a sweep that no worker took up by the next one is dropped
TRANSPORT = "panelbench.queues:FolderTransport"  # where there is no Redis
REDIS_TRANSPORT = "panelbench.queues:RedisTransport"
# A run whose worker died waits for the first one.
SWEEPS = {
    "judging.tasks.sweep_runs": 10.0,
    "annotation.tasks.remind_annotators": 600.0,
    "accounts.tasks.purge_projects": 90.0,
    "analytics.tasks.prepare_studies": 20.0,
}
SWEEPERS = (
    "judging.tasks.sweep_runs",
    "accounts.tasks.sweep_all",
    "accounts.tasks.purge_projects",
    "analytics.tasks.refresh_stale",
    "analytics.tasks.settle_looks",
    "analytics.tasks.prepare_studies",
    "annotation.tasks.remind_annotators",
)


def _transport_options() -> dict[str, object]:
    if settings.REDIS_URL:
        # A message not acknowledged for this long is delivered again: far above every time limit below.
        # A Redis that hangs keeps no web request waiting that sends a message, and no worker without its heartbeat.
        return {"visibility_timeout": 3600, "socket_connect_timeout": 2, "socket_timeout": 10}
    return folder_options(settings.CELERY_BROKER_DIR)


def folder_options(folder: Path) -> dict[str, object]:
    """The options of TRANSPORT for a queue in this folder; creates the folder."""
    for name in ("messages", "control"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.05,  # the default of 1 s made 300 short tasks take 75 s
    }


app = Celery("panelbench")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_transport=REDIS_TRANSPORT if settings.REDIS_URL else TRANSPORT,
    broker_transport_options=_transport_options(),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # however long Redis is away
    task_ignore_result=True,
    result_expires=None,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_soft_time_limit=240,
    task_time_limit=300,
    task_default_queue="default",
    task_routes=ROUTES,
    worker_prefetch_multiplier=1,
    worker_proc_alive_timeout=120,  # a child that loads statistics on a busy machine is not killed at its 4th second
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_hijack_root_logger=False,
    timezone="UTC",
    beat_scheduler="panelbench.pulses:PulsingScheduler",
    beat_max_loop_interval=5,
    beat_schedule={
        task: {"task": task, "schedule": SWEEPS.get(task, SWEEP), "options": {"expires": SWEEP}} for task in SWEEPERS
    },
)
app.autodiscover_tasks()
app.steps["consumer"].add("panelbench.pulses:WorkerPulse")


# --- the end of a worker --------------------------------------------------------------------------------------------
# systemd and others may send SIGTERM to every process of a service at once. With the queue in a folder, the children of
# a worker share one pipe and its lock. A child that dies of the signal keeps the lock, and its worker waits for it
# until it is killed. So a child ignores the signal: it finishes its task and ends when its worker says so. With Redis
# each child has a pipe of its own, and Celery sends the signal itself to cancel a task when the connection is lost.
def _ignore_sigterm(**_child: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if not settings.REDIS_URL:
    signals.worker_process_init.connect(_ignore_sigterm)


# --- the start of a worker ------------------------------------------------------------------------------------------
def _load_statistics(**_child: Any) -> None:
    """A child that computes figures loads statistics before its first task, which would otherwise wait 2 s for them."""
    if ROUTES["analytics.tasks.compute_numbers"]["queue"] not in app.amqp.queues.consume_from:
        return
    from analytics.answers.computing import load_statistics

    try:
        load_statistics()
    except Exception:  # a child that fails here would be started again for ever
        logger.exception("statistics are loaded by the first task that needs them")


signals.worker_process_init.connect(_load_statistics)
