"""`panelbench up` and `panelbench demo`: one instance on this machine, from an empty folder to a page that answers."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from panelbench.probe import health
from panelbench.supervisor import Program, Supervisor, Warden

PATIENCE = 30.0  # seconds without a healthy answer before saying what is missing


class CannotStart(Exception):
    """Why the instance does not start, in words for the operator."""


def up(arguments: Sequence[str]) -> int:
    """Run web, worker and beat until Ctrl-C."""
    return _start(_options("panelbench up", arguments), demo=False)


def demo(arguments: Sequence[str]) -> int:
    """The same with a demo project, and a simulated provider unless a real one is declared."""
    return _start(_options("panelbench demo", arguments), demo=True)


def _options(name: str, arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=name, description="Start web, worker and beat; Ctrl-C ends them.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--concurrency", type=int, default=2, help="tasks the worker runs at once (default: 2)")
    return parser.parse_args(arguments)


def _start(options: argparse.Namespace, *, demo: bool) -> int:
    from django.core.exceptions import ImproperlyConfigured

    try:
        with Warden() as warden:
            _run(options, warden, demo=demo)
    except (CannotStart, ImproperlyConfigured) as error:
        say(f"cannot start: {error}")
        return 2
    return 0


def _run(options: argparse.Namespace, warden: Warden, *, demo: bool) -> None:
    # A terminal wants to see what went wrong, not every task; LOG_LEVEL=INFO shows those too.
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    _refuse_used_port(options.host, options.port)
    from django.conf import settings

    with _locked(settings.DATA_DIR):
        provider = _simulated_provider() if demo and not settings.PROVIDERS else []
        _prepare(settings.DATA_DIR)
        programs = [*provider, *_programs(options, web_threads=1 if settings.EMBEDDED else 4)]
        if demo:
            programs.append(Program(name="load_demo", command=_own("load_demo"), once=True))
        announce = _Announcement(options)
        Supervisor(programs, warden=warden, say=say).run(announce)
    say("stopped")


def _programs(options: argparse.Namespace, *, web_threads: int) -> list[Program]:
    """Web, worker and beat. SQLite has one writer at a time, so its web workers have one thread each."""
    celery = (sys.executable, "-m", "celery", "--quiet", "-A", "panelbench")
    web = (sys.executable, "-m", "granian", "--interface", "wsgi", "--host", options.host, "--port", str(options.port))
    web += ("--workers", "2", "--blocking-threads", str(web_threads), "--no-ws", "--log-level", "warning")
    worker = (*celery, "worker", "-Q", "judging,analytics,default", "--concurrency", str(options.concurrency))
    return [
        Program(name="web", command=(*web, "panelbench.wsgi:application")),
        Program(name="worker", command=(*worker, "--without-gossip", "--without-mingle", "-l", "WARNING")),
        Program(name="beat", command=(*celery, "beat", "--pidfile=", "-l", "WARNING")),
    ]


def _simulated_provider() -> list[Program]:
    """The provider's program; the other programs, started from this process, learn of it by the environment."""
    port = _free_port()
    declared = {"name": "simulated", "base_url": f"http://127.0.0.1:{port}/v1", "simulated": True}
    os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])
    return [Program(name="provider", command=(sys.executable, "-m", "panelbench.provider", "--port", str(port)))]


def _own(*command: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "panelbench.cli", *command)


def _prepare(data_dir: Path) -> None:
    """Bring the database and the collected static files to this version."""
    import django
    from django.core.management import call_command
    from django.db import connections

    (data_dir / "queue").mkdir(parents=True, exist_ok=True)
    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    connections.close_all()


@contextlib.contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Hold the data directory: two instances on one SQLite file and one queue folder would take each other's tasks."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"another instance runs on {data_dir}. Stop it, or set PANELBENCH_DATA_DIR to another folder."
            ) from None
        yield


def _refuse_used_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CannotStart(f"{host} port {port}: {error.strerror}. Choose another with --port.") from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Announcement:
    """Says once that the instance is ready, or, when that takes long, what it waits for."""

    def __init__(self, options: argparse.Namespace):
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
    """One line for the operator."""
    print(f"panelbench: {line}", file=sys.stderr, flush=True)
