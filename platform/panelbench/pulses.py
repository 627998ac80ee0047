"""Where Celery's own processes write their signs of life (``panelbench.heartbeat``). Named in ``panelbench.celery``."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

from celery.beat import Scheduler
from celery.bootsteps import StartStopStep
from celery.worker.consumer import Connection
from django.db import DatabaseError

from panelbench import connections
from panelbench.heartbeat import BEAT, INTERVAL, WORKER, pulse

logger = logging.getLogger(__name__)


class WorkerPulse(StartStopStep):
    """A worker's heartbeat, from its own timer: a stopped or disconnected worker sends none.

    A step of the consumer, so it is stopped and started again with every reconnection to the broker.
    """

    requires = (Connection,)

    def start(self, parent: Any) -> None:
        name = f"{WORKER}:{parent.hostname}"
        _pulse_alone(WORKER, name)
        self.repeated = parent.timer.call_repeatedly(INTERVAL, _pulse_alone, (WORKER, name))

    def stop(self, parent: Any) -> None:
        self.repeated.cancel()


class PulsingScheduler(Scheduler):
    """The static schedule of ``panelbench.celery``, kept in memory, with a sign of life from the beat itself."""

    _next_pulse = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if time.monotonic() >= self._next_pulse:
            _pulse_alone(BEAT, f"{BEAT}@{socket.gethostname()}")
            self._next_pulse = time.monotonic() + INTERVAL
        return min(float(super().tick(*args, **kwargs)), INTERVAL)


def _pulse_alone(kind: str, name: str) -> None:
    """Pulse from a process whose main loop must outlive a database that is away, and leave no connection behind."""
    try:
        pulse(kind, name)
    except DatabaseError as error:
        logger.warning("heartbeat not written: %s", error)
    finally:
        connections.close()  # the pool's next child is forked from this process
