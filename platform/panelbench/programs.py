"""The programs of one instance, as functions that run until they are told to end (``panelbench.supervisor``)."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

WEB_PROCESSES = 2
QUEUES = "judging,analytics,default"
PRELOADED = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "granian",
    "panelbench.pulses",
    "panelbench.urls",
    "panelbench.wsgi",
)


def preload() -> None:
    """Import what the programs need, so that those forked from this process start with it."""
    for module in PRELOADED:
        import_module(module)


def web(host: str, port: int, threads: int) -> None:
    """The web server. SQLite has one writer at a time, so there each process gets one thread."""
    from granian import Granian
    from granian.constants import Interfaces
    from granian.log import LogLevels

    Granian(
        "panelbench.wsgi:application",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=WEB_PROCESSES,
        blocking_threads=threads,
        websockets=False,
        respawn_failed_workers=True,
        log_level=LogLevels.warning,
    ).serve()


def worker(concurrency: int) -> None:
    """A Celery worker for every queue. Alone on its broker, it needs no news of other workers."""
    _celery("worker", "-Q", QUEUES, "--concurrency", str(concurrency), "--without-gossip", "--without-mingle")


def beat() -> None:
    """Celery's clock."""
    _celery("beat", "--pidfile=")


def command(name: str) -> None:
    """A management command."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["panelbench", name])


def provider(*arguments: str) -> NoReturn:
    """The simulated provider; another program altogether, so it takes this process over."""
    os.execv(sys.executable, [sys.executable, "-m", "panelbench.provider", *arguments])  # noqa: S606


def quiet_provider(port: int) -> NoReturn:
    """The same, for the demo: nobody there needs the address that it prints."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    provider("--port", str(port))


def _celery(*arguments: str) -> None:
    from panelbench.celery import app

    app.start(["--quiet", *arguments, "--loglevel", "WARNING"])
