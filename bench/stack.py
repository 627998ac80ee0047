"""An instance as its operator runs it: web server, worker and clock, each a process group that can be killed alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.server import free_port
from panelbench.supervisor import Warden

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
class Child:
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
    web: Child
    worker: Child
    beat: Child

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
        web=Child("web", web, warden, log),
        worker=Child("worker", [*CELERY, *WORKER, "-l", "CRITICAL"], warden, log),
        beat=Child("beat", [*CELERY, "beat", "-l", "CRITICAL", "--pidfile="], warden, log),
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
