"""`panelbench up` and `panelbench demo`: prepare one instance on this machine and run its programs."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from panelbench import environment
from panelbench.probe import health
from panelbench.supervisor import Program, Supervisor, Warden

PATIENCE = 30.0  # seconds without a healthy answer before saying what is missing


class CannotStart(Exception):
    """The reason why the instance does not start, for the operator."""


def up(arguments: Sequence[str]) -> int:
    """Run web, workers and beat until Ctrl-C."""
    return _guarded(partial(_run, demo=False), _options("panelbench up", arguments))


def demo(arguments: Sequence[str]) -> int:
    """As `up`, with the demo project, and a simulated provider unless a real one is declared."""
    return _guarded(partial(_run, demo=True), _options("panelbench demo", arguments))


def _options(name: str, arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=name, description="Start web, worker and beat; Ctrl-C ends them.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--concurrency", type=int, default=2, help="tasks the worker runs at once (default: 2)")
    return parser.parse_args(arguments)


def _check_key() -> None:
    """Refuse a missing or weak key before a port is tried; unlike the settings, this creates no key."""
    variables = environment.Environment()
    environment.check_secret_key(
        variables.text("SECRET_KEY"),
        debug=variables.switch("DEBUG", default=False),
        embedded=environment.is_embedded(variables.text("DATABASE_URL")),
    )


def _guarded(run: Callable[[argparse.Namespace, Warden], None], options: argparse.Namespace) -> int:
    from django.core.exceptions import ImproperlyConfigured

    try:
        _check_key()
        for sentence in environment.misspelt_names(os.environ):
            say(sentence)
        with Warden() as warden:
            run(options, warden)
    except (CannotStart, ImproperlyConfigured) as error:
        say(f"cannot start: {error}")
        return 2
    return 0


def _run(options: argparse.Namespace, warden: Warden, *, demo: bool) -> None:
    # A terminal wants to see what went wrong, not every task; LOG_LEVEL=INFO shows those too.
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    with _bound(options.host, options.port) as listener:
        extra = _demo_programs() if demo else []
        if demo and options.host in {"127.0.0.1", "::1", "localhost"}:
            os.environ["PANELBENCH_DEMO"] = "on"  # on this machine alone: whoever sees the page can sign in as anybody
        from django.conf import settings

        if runs_as_root():
            say("runs as root; for real data, start it as a user that may do nothing else")
        with _locked(settings.DATA_DIR):
            _prepare(settings.DATA_DIR)
            others = [*worker_programs(options.concurrency), Program(name="beat", function=run_beat), *extra]
            chosen = [
                *web_programs(listener, threads=web_threads()),
                *(replace(program, closes=(listener,)) for program in others),
            ]
            Supervisor(chosen, warden=warden, say=say).run(_Announcement(options))
    say("stopped")


def web(arguments: Sequence[str]) -> int:
    """Run only the web processes until SIGTERM: for a separate container."""
    parser = argparse.ArgumentParser(prog="panelbench web", description="Start the web server; Ctrl-C ends it.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--application", default=APPLICATION, help=argparse.SUPPRESS)  # measurements
    return _guarded(_run_web, parser.parse_args(arguments))


def _run_web(options: argparse.Namespace, warden: Warden) -> None:
    with _bound(options.host, options.port) as listener:
        import django

        django.setup()
        preload()
        threads = web_threads()
        chosen = web_programs(listener, threads=threads, application=options.application)
        Supervisor(chosen, warden=warden, say=say).run()


def _demo_programs() -> list[Program]:
    """The programs that load the demo and then compute its first figures, for which "ready" does not wait; and the
    simulated provider, unless the operator declared one."""
    loading = Program(name="load_demo", function=command, arguments=("load_demo",), once=True)
    figures = replace(loading, name="first figures", arguments=("load_demo", "--figures"), after=loading.name)
    if environment.declared_providers(os.environ):
        return [loading, figures]
    port = _free_port()
    declared = {
        "name": "simulated",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "simulated": True,
        "prices": {"sim-steady": [0.25, 2], "sim-harsh": [1.25, 10]},  # invented; nobody is charged
        "batches": True,
        "batch_prices": {"sim-steady": [0.125, 1], "sim-harsh": [0.625, 5]},
    }
    os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])  # read by the settings, imported after this
    return [Program(name="provider", function=quiet_provider, arguments=(port,)), loading, figures]


def _prepare(data_dir: Path) -> None:
    """Migrate the database. Modules that are imported here are shared by the processes that are forked later."""
    import django
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from panelbench import assets

    django.setup()
    for folder in ("queue", "static", "uploads"):
        (data_dir / folder).mkdir(parents=True, exist_ok=True)
    for kept in data_dir.glob("panelbench.sqlite3*"):  # those of versions that left them for everybody to read
        kept.chmod(0o600)
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    assets.collect()
    preload()
    from panelbench.pulses import close_connections

    close_connections()


@contextlib.contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Lock the data directory, because two instances on one SQLite file and queue folder would take each other's
    tasks."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"another instance runs on {data_dir}. Stop it, or set PANELBENCH_DATA_DIR to another folder."
            ) from None
        yield


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket for the web processes, which listen on it when they start."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise CannotStart(f"{host} port {port}: {error.strerror}. Choose another with --port.") from None
    return listener


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Announcement:
    """Prints once that the instance is ready; if that takes long, what it is waiting for."""

    def __init__(self, options: argparse.Namespace) -> None:
        host = f"[{options.host}]" if ":" in options.host else options.host
        everywhere = options.host in {"0.0.0.0", "::"}  # noqa: S104 (compared, not bound)
        self.url = f"http://{'localhost' if everywhere else host}:{options.port}/"
        self.done = self.complained = False
        self.started = self.next = time.monotonic()

    def __call__(self, supervisor: Supervisor) -> None:
        now = time.monotonic()
        if self.done or now < self.next:
            return
        self.next = now + 0.3
        state = health(f"{self.url}healthz", timeout=1)
        if state.get("status") == "ok" and supervisor.finished():
            self.done = True
            say(f"ready at {self.url} (Ctrl-C stops it)")
        elif now - self.started > PATIENCE and not self.complained:
            self.complained = True
            say(f"not ready yet: {state or 'no answer from the web server'}")


def say(line: str) -> None:
    """Print one line for the operator."""
    print(f"panelbench: {line}", file=sys.stderr, flush=True)


# --- the programs, as functions that run until they get a signal (`panelbench.supervisor`) ---------------------------
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


def command(*arguments: str) -> None:
    """Run a management command."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["panelbench", *arguments])


def run_provider(*arguments: str) -> NoReturn:
    """Replace this process by the simulated provider, which is a separate program."""
    os.execv(sys.executable, [sys.executable, "-m", "panelbench.provider", *arguments])  # noqa: S606


def quiet_provider(port: int) -> NoReturn:
    """The simulated provider without output, for the demo."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    run_provider("--port", str(port), "--written-break", "no_greeting=0.05", "--written-break", "wrong_count=0.05")


def _celery(*arguments: str) -> None:
    from panelbench.celery import app

    # Celery returns the exit code of a worker that failed; a supervisor is to see it.
    sys.exit(app.start(["--quiet", *arguments, "--loglevel", "WARNING"]))
