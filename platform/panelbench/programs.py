"""The programs of one instance, as functions that run until they get a signal (``panelbench.supervisor``)."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import warnings
from importlib import import_module
from typing import NoReturn

from panelbench.supervisor import Program

APPLICATION = "panelbench.wsgi:application"
WEB_PROCESSES = 2
QUEUES = "analytics,default"
IMPORTS = "imports"
JUDGING = "judging"
JUDGING_SLOTS = 2  # work sessions of judge runs for each other task at once: they mostly wait for replies
PRELOADED = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "panelbench.pulses",
    "panelbench.server",
    "panelbench.urls",
    "panelbench.wsgi",
)


def preload() -> None:
    """Import the modules of the programs, so that forked processes share them."""
    for module in PRELOADED:
        import_module(module)


def serve_web(listener: socket.socket, threads: int, application: str = APPLICATION) -> None:
    """A web process on a bound socket that it shares with others. ``application`` is `module:name`."""
    from django.utils.module_loading import import_string

    from panelbench import server

    use_data_directory_for_temporary_files()
    server.serve(listener, threads, import_string(application.replace(":", ".")))


def web_programs(listener: socket.socket, *, threads: int, application: str = APPLICATION) -> list[Program]:
    """The web processes of one instance."""
    arguments = (listener, threads, application)
    return [
        Program(name=f"web {number}", function=serve_web, arguments=arguments) for number in range(1, WEB_PROCESSES + 1)
    ]


def web_threads() -> int:
    """Threads per web process: one on SQLite, which has one writer at a time."""
    from django.conf import settings

    return 1 if settings.EMBEDDED else 4


def use_data_directory_for_temporary_files() -> None:
    """Put temporary files into the data directory, because /tmp is often a small memory disk."""
    from django.conf import settings

    folder = settings.DATA_DIR / "temporary"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tempfile.tempdir = str(folder)


def worker_programs(concurrency: int) -> list[Program]:
    """The workers. The one for judge runs may take long to stop: it waits for replies to calls that are paid for."""
    from django.conf import settings

    judging = Program(
        name="judging worker",
        function=judging_worker,
        arguments=(JUDGING_SLOTS * concurrency,),
        grace=settings.DRAIN_SECONDS + 20,
    )
    return [
        Program(name="worker", function=run_worker, arguments=(concurrency,)),
        Program(name="imports worker", function=imports_worker),
        judging,
    ]


def run_worker(concurrency: int) -> None:
    """A Celery worker for numbers, exports and small tasks."""
    _worker("worker", QUEUES, concurrency)


def imports_worker() -> None:
    """A Celery worker for imports and their checks, one at a time, separate from computations."""
    _worker("imports", IMPORTS, 1)


def judging_worker(concurrency: int) -> None:
    """A Celery worker for judge runs only, so that they and other tasks do not wait for each other."""
    _worker("judging", JUDGING, concurrency)


def runs_as_root() -> bool:
    """Whether this process may do everything on its machine."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _worker(name: str, queues: str, concurrency: int) -> None:
    from celery.exceptions import SecurityWarning

    use_data_directory_for_temporary_files()
    if runs_as_root():  # `panelbench up` and `demo` say so once; Celery says it for each worker, with its own options
        warnings.filterwarnings("ignore", "You're running the worker with superuser", category=SecurityWarning)
    # All workers of an instance are on this machine: they need no news of each other.
    options = ("--without-gossip", "--without-mingle", "-n", f"{name}@%h")
    _celery("worker", "-Q", queues, "--concurrency", str(concurrency), *options)


def run_beat() -> None:
    """Celery beat, the scheduler."""
    _celery("beat", "--pidfile=")


def command(name: str) -> None:
    """Run a management command."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["panelbench", name])


def run_provider(*arguments: str) -> NoReturn:
    """Replace this process by the simulated provider, which is a separate program."""
    os.execv(sys.executable, [sys.executable, "-m", "panelbench.provider", *arguments])  # noqa: S606


def quiet_provider(port: int) -> NoReturn:
    """The simulated provider without output, for the demo."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    run_provider("--port", str(port))


def _celery(*arguments: str) -> None:
    from panelbench.celery import app

    # Celery returns the exit code of a worker that failed; a supervisor is to see it.
    sys.exit(app.start(["--quiet", *arguments, "--loglevel", "WARNING"]))
