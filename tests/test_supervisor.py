"""The supervisor with small programs, in a process of its own, judged by the processes it leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GRACE = 2.0  # longer than a program needs to end, on a busy machine too

SCRIPT = """
import os, signal, subprocess, sys, time
from pathlib import Path
from panelbench.supervisor import Program, Supervisor, Warden

folder = Path(sys.argv[1])

def note(name):
    with (folder / name).open("a") as file:
        file.write(f"{os.getpid()}\\n")

def steady():
    note("steady")
    time.sleep(600)

def brief():
    note("brief")
    sys.exit(3)

def once():
    note("once")

def follower():
    note("follower" if (folder / "once").exists() else "too-early")

def deaf():
    "Ignores the polite signal and has a child in its group that does the same."
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"], preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    (folder / "deaf-child").write_text(f"{child.pid}\\n")
    note("deaf")
    time.sleep(600)

if __name__ == "__main__":
    after = {"follower": "once"}
    chosen = [
        Program(name=name, function=globals()[name], once=name in ("once", "follower"), after=after.get(name, ""))
        for name in sys.argv[2:]
    ]
    with Warden(grace=%s) as warden:
        Supervisor(chosen, warden=warden, say=lambda line: print(line, flush=True)).run()
"""


class Running:
    """A supervisor over some of the script's programs, which note the number of each of their processes."""

    def __init__(self, folder: Path, programs: tuple[str, ...]) -> None:
        self.folder = folder
        script = folder / "script.py"
        script.write_text(SCRIPT % GRACE)
        command = [sys.executable, str(script), str(folder), *programs]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def pids(self, name: str, *, at_least: int = 1) -> list[int]:
        """The numbers it noted so far, once there are enough."""
        wait_until(lambda: len(self._noted(name)) >= at_least)
        return self._noted(name)

    def _noted(self, name: str) -> list[int]:
        file = self.folder / name
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal; how many seconds the supervisor took to end."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(60)
        return time.monotonic() - started

    @property
    def said(self) -> str:
        return self.process.stdout.read() if self.process.stdout else ""


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(*programs: str) -> Running:
        running.append(Running(tmp_path, programs))
        return running[0]

    yield start
    for supervisor in running:
        supervisor.process.kill()
        supervisor.process.communicate()


def wait_until(true: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process still runs; one that ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def test_a_killed_program_starts_again(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("steady")
    first = supervisor.pids("steady")[0]
    os.kill(first, signal.SIGKILL)
    assert supervisor.pids("steady", at_least=2)[1] != first
    supervisor.stop()
    assert "steady ended (exit code -9); starting it again in 0.5 s" in supervisor.said


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_the_system_shows_which_program_a_process_is(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("steady")
    pid = supervisor.pids("steady")[0]
    assert Path(f"/proc/{pid}/comm").read_text().strip() == "steady"
    supervisor.stop()


def test_a_program_that_keeps_failing_is_started_less_and_less_often(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("brief")
    supervisor.pids("brief", at_least=3)
    supervisor.stop()
    delays = [line.split()[-2] for line in supervisor.said.splitlines()]
    assert delays[:2] == ["0.5", "1"]


def test_a_program_that_runs_once_is_not_started_again(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("once", "steady")
    supervisor.pids("steady")
    supervisor.pids("once")
    time.sleep(1)
    assert len(supervisor.pids("once")) == 1
    supervisor.stop()
    assert supervisor.said == "", "nothing had to be killed"


def test_a_program_waits_for_the_one_that_it_comes_after(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("follower", "once")
    supervisor.pids("follower")
    assert not (supervisor.folder / "too-early").exists()
    supervisor.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_program(supervise: Callable[..., Running], number: int) -> None:
    supervisor = supervise("steady")
    pid = supervisor.pids("steady")[0]
    supervisor.stop(number)
    assert supervisor.process.returncode == 0
    assert not alive(pid)
    assert supervisor.said == "", "nothing had to be killed"


def test_what_does_not_end_when_asked_is_killed_with_its_whole_group(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("deaf")
    pids = supervisor.pids("deaf") + supervisor.pids("deaf-child")
    assert GRACE <= supervisor.stop() < GRACE + 20
    wait_until(lambda: not any(map(alive, pids)), seconds=60)  # killed: the kernel ends them when it comes to it
    assert supervisor.said == "deaf did not end in 2 s and was killed\n"


def test_a_killed_supervisor_leaves_no_orphan(supervise: Callable[..., Running]) -> None:
    supervisor = supervise("steady", "deaf")
    pids = supervisor.pids("steady") + supervisor.pids("deaf") + supervisor.pids("deaf-child")
    supervisor.stop(signal.SIGKILL)
    wait_until(lambda: not any(map(alive, pids)), seconds=60)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_signal_to_every_process_at_once_ends_all_in_order(supervise: Callable[..., Running]) -> None:
    """As systemd sends it with `KillMode=control-group`: to the supervisor, its programs and its warden."""
    supervisor = supervise("steady")
    program = supervisor.pids("steady")[0]
    (warden,) = set(children(supervisor.process.pid)) - {program}
    for pid in (program, warden, supervisor.process.pid):
        os.kill(pid, signal.SIGTERM)
    assert supervisor.process.wait(60) == 0
    assert not any(map(alive, (program, warden)))


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ignores_sigterm(pid: int) -> bool:
    """Whether a child of a worker's pool has got as far as that."""
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_worker_ends_when_its_pool_gets_the_signal_too(tmp_path: Path, number: int) -> None:
    """SIGQUIT goes to the worker alone, which then ends its pool by SIGTERM."""
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench", "worker", "-Q", "judging"]
    worker = subprocess.Popen(
        [*command, "--concurrency", "2", "-l", "ERROR"],
        env=keep | {"PANELBENCH_DATA_DIR": str(tmp_path), "DEBUG": "on"},
        start_new_session=True,
    )
    try:
        wait_until(lambda: len(children(worker.pid)) == 2, seconds=180)
        pool = children(worker.pid)
        wait_until(lambda: all(map(ignores_sigterm, pool)), seconds=180)
        time.sleep(2)  # the pool waits for its first task
        for pid in pool if number == signal.SIGTERM else []:
            os.kill(pid, signal.SIGTERM)
        os.kill(worker.pid, number)
        worker.wait(60)
        assert not any(map(alive, pool))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def test_a_program_keeps_no_socket_of_the_supervisor_that_is_not_for_it(tmp_path: Path) -> None:
    """The judges' worker may take two minutes to end: a supervisor that was killed alone could not start again."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import signal, socket, sys, time
from pathlib import Path
from panelbench.supervisor import Program, Supervisor, Warden

def slow():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (Path(sys.argv[1]) / "slow").touch()
    time.sleep(600)

if __name__ == "__main__":
    with Warden(grace=8) as warden, socket.create_server(("127.0.0.1", int(sys.argv[2]))) as listener:
        chosen = [Program(name="slow", function=slow, closes=(listener,))]
        Supervisor(chosen, warden=warden, say=print).run()
"""
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    started = subprocess.Popen([sys.executable, str(script), str(tmp_path), str(port)], start_new_session=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "slow").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started.kill()
    started.wait()
    with socket.create_server(("127.0.0.1", port)):
        pass
