"""`panelbench up` and `panelbench demo`: prepare and run one instance on this machine."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from panelbench import environment, programs
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

        if programs.runs_as_root():
            say("runs as root; for real data, start it as a user that may do nothing else")
        with _locked(settings.DATA_DIR):
            _prepare(settings.DATA_DIR)
            chosen = [
                *programs.web_programs(listener, threads=programs.web_threads()),
                *programs.worker_programs(options.concurrency),
                Program(name="beat", function=programs.run_beat),
                *extra,
            ]
            Supervisor(chosen, warden=warden, say=say).run(_Announcement(options))
    say("stopped")


def web(arguments: Sequence[str]) -> int:
    """Run only the web processes until SIGTERM: for a separate container."""
    parser = argparse.ArgumentParser(prog="panelbench web", description="Start the web server; Ctrl-C ends it.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--application", default=programs.APPLICATION, help=argparse.SUPPRESS)  # measurements
    return _guarded(_run_web, parser.parse_args(arguments))


def _run_web(options: argparse.Namespace, warden: Warden) -> None:
    with _bound(options.host, options.port) as listener:
        import django

        django.setup()
        programs.preload()
        threads = programs.web_threads()
        chosen = programs.web_programs(listener, threads=threads, application=options.application)
        Supervisor(chosen, warden=warden, say=say).run()


def _demo_programs() -> list[Program]:
    """The program that loads the demo and, unless the operator declared a provider, the simulated provider."""
    loading = Program(name="load_demo", function=programs.command, arguments=("load_demo",), once=True)
    if environment.declared_providers(os.environ):
        return [loading]
    port = _free_port()
    declared = {
        "name": "simulated",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "simulated": True,
        "prices": {"sim-steady": [0.25, 2], "sim-harsh": [1.25, 10]},  # invented; nobody is charged
    }
    os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])  # read by the settings, imported after this
    return [Program(name="provider", function=programs.quiet_provider, arguments=(port,)), loading]


def _prepare(data_dir: Path) -> None:
    """Migrate the database. Modules that are imported here are shared by the processes that are forked later."""
    import django
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from panelbench import assets, connections

    django.setup()
    for folder in ("queue", "static", "uploads"):
        (data_dir / folder).mkdir(parents=True, exist_ok=True)
    for kept in data_dir.glob("panelbench.sqlite3*"):  # those of versions that left them for everybody to read
        kept.chmod(0o600)
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    assets.collect()
    programs.preload()
    connections.close()


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
