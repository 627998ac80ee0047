"""Celery components that write the heartbeats of workers and beat (`Heartbeat`); see ``panelbench.celery``."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

from celery.beat import Scheduler
from celery.bootsteps import StartStopStep
from celery.worker.consumer import Connection
from django.db import DatabaseError, connections

logger = logging.getLogger(__name__)


class WorkerPulse(StartStopStep):
    """Writes a worker's heartbeat from its own timer, so that a stopped or disconnected worker writes none.

    It is a step of the consumer, so it is stopped and started with every reconnection to the broker.
    """

    requires = (Connection,)

    def start(self, parent: Any) -> None:
        from accounts.models import Heartbeat

        beating = (Heartbeat.WORKER, f"{Heartbeat.WORKER}:{parent.hostname}")
        _pulse_alone(*beating)
        self.repeated = parent.timer.call_repeatedly(Heartbeat.INTERVAL, _pulse_alone, beating)

    def stop(self, parent: Any) -> None:
        self.repeated.cancel()


class PulsingScheduler(Scheduler):
    """The static schedule of ``panelbench.celery``, kept in memory, with a heartbeat of beat itself."""

    _next_pulse = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        from accounts.models import Heartbeat

        if time.monotonic() >= self._next_pulse:
            _pulse_alone(Heartbeat.BEAT, f"{Heartbeat.BEAT}@{socket.gethostname()}")
            self._next_pulse = time.monotonic() + Heartbeat.INTERVAL
        return min(float(super().tick(*args, **kwargs)), Heartbeat.INTERVAL)


def _pulse_alone(kind: str, name: str) -> None:
    """Write a heartbeat. A database that is not reachable is logged, and no connection stays open."""
    from accounts.models import Heartbeat

    try:
        Heartbeat.objects.pulse(kind, name)
    except DatabaseError as error:
        logger.warning("heartbeat not written: %s", error)
    finally:
        close_connections()  # the pool's next child is forked from this process


def close_connections() -> None:
    """Close this process's database connections and pools before a fork: two processes must not share one."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()
