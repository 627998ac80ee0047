"""A supervisor: restarts programs that end, stops all together, and leaves no process behind.

Every program is the leader of its own process group. A warden process, forked first, has the other end of a pipe. When
the supervisor ends for any reason (SIGKILL too), the pipe closes and the warden ends all remaining groups.

Programs are functions. On Linux they are forked from the supervisor after it has loaded Django: an instance starts in
half the time and processes share most of their memory. On other systems they are spawned and load Django themselves.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Self

GRACE = 10.0  # seconds between asking a program to end and killing its group
STEADY = 60.0  # a program that lived this long starts again with the shortest delay
SHORTEST_DELAY, LONGEST_DELAY = 0.5, 30.0
TICK = 0.1

FORKED = sys.platform == "linux"
_Process = multiprocessing.get_context("fork").Process if FORKED else multiprocessing.get_context("spawn").Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A function to keep running, called with ``arguments``. ``once``: it is expected to return. ``after``: the name of
    a program with ``once``; this one is started when that one has ended.

    ``grace``: the seconds that it may take to stop, if it needs more than others. ``closes``: sockets of the
    supervisor that are closed in the new process. Otherwise their ports would stay in use after the supervisor and its
    web server have ended.
    """

    name: str
    function: Callable[..., object]
    arguments: tuple[object, ...] = ()
    once: bool = False
    after: str = ""
    grace: float = 0.0
    closes: tuple[socket.socket, ...] = ()


class Supervisor:
    """Runs programs until SIGINT or SIGTERM. ``say`` gets every line for the operator."""

    def __init__(self, programs: Iterable[Program], *, warden: Warden, say: Callable[[str], None]) -> None:
        self.warden = warden
        self.say = say
        self.stopping = self.hurried = False
        self.children = [Child(program, warden=warden, say=say) for program in programs]

    def run(self, on_tick: Callable[[Supervisor], None] = lambda _: None) -> None:
        """Start all programs, watch them until a signal comes, then stop them; ``on_tick`` is called ten times a
        second."""
        previous = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self.stopping:
                ended = {child.program.name for child in self.children if child.finished}
                for child in self.children:
                    if not child.program.after or child.program.after in ended:
                        child.tend()
                on_tick(self)
                time.sleep(TICK)
        finally:
            self._end()
            for number, action in previous.items():
                signal.signal(number, action)

    def finished(self) -> bool:
        """Whether every program with ``once`` has ended, without those that come ``after`` another."""
        return all(child.finished for child in self.children if child.program.once and not child.program.after)

    def _stop(self, *_signal: object) -> None:
        self.hurried, self.stopping = self.stopping, True  # a second signal ends the waiting

    def _end(self) -> None:
        programs = {child.process.pid: child.program for child in self.children if child.process and child.process.pid}
        graces = {group: max(program.grace, self.warden.grace) for group, program in programs.items()}
        for group in end_groups(graces, reap=self._reap, say=self._waits_for(programs)):
            waited = "at once" if self.hurried else f"in {graces[group]:g} s"
            self.say(f"{programs[group].name} did not end {waited} and was killed")
        for group in graces:
            self.warden.release(group)

    def _reap(self) -> bool:
        multiprocessing.active_children()
        return self.hurried

    def _waits_for(self, programs: Mapping[int, Program]) -> Callable[[int], None]:
        paid = "its running calls are paid for; press Ctrl-C again to drop them"
        return lambda group: self.say(f"waiting for {programs[group].name}: {paid}")


class Child:
    """A program and its current process."""

    def __init__(self, program: Program, *, warden: Warden, say: Callable[[str], None]) -> None:
        self.program = program
        self.warden = warden
        self.say = say
        self.process: BaseProcess | None = None
        self.delay = SHORTEST_DELAY
        self.started = self.due = 0.0
        self.finished = False

    def tend(self) -> None:
        """Start the program when it is due. If its process has ended, end the rest of its group and schedule the
        next start."""
        if self.finished or (self.process and self.process.is_alive()):
            return
        if self.process is not None:
            self._bury(self.process)
        elif time.monotonic() >= self.due:
            self._start()

    def _start(self) -> None:
        program = self.program
        closes = program.closes if FORKED else ()  # a spawned process has none of them
        arguments = (self.warden.writing, closes, program.function, program.arguments)
        self.process = _Process(target=_become, args=arguments, name=program.name)
        self.process.start()
        self.warden.guard(self._group, max(program.grace, self.warden.grace))
        self.started = time.monotonic()

    @property
    def _group(self) -> int:
        return self.process.pid or 0 if self.process else 0

    def _bury(self, dead: BaseProcess) -> None:
        end_groups({self._group: 1.0})
        self.warden.release(self._group)
        self.process, code = None, dead.exitcode
        if not self.program.once:
            self._postpone(code)
            return
        self.finished = True
        if code:
            self.say(f"{self.program.name} failed (exit code {code})")

    def _postpone(self, code: int | None) -> None:
        if time.monotonic() - self.started >= STEADY:
            self.delay = SHORTEST_DELAY
        self.due = time.monotonic() + self.delay
        self.say(f"{self.program.name} ended (exit code {code}); starting it again in {self.delay:g} s")
        self.delay = min(self.delay * 2, LONGEST_DELAY)


def _become(
    pipe: int, closes: tuple[socket.socket, ...], function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    """Runs in the new process: lead a group, close what belongs to the supervisor, call the program."""
    os.setsid()
    with contextlib.suppress(OSError):  # `ps -eo pid,comm` and `top` then say which program a process is
        Path("/proc/self/comm").write_text(multiprocessing.current_process().name, encoding="ascii")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if FORKED:
        os.close(pipe)  # held open here, the pipe would not close when the supervisor is gone
    for listener in closes:
        listener.close()
    function(*arguments)


class Warden:
    """A process that ends the process groups it guards as soon as its creator is gone.

    Create it first, while the creator is small and has no threads or connections.
    """

    def __init__(self, *, grace: float = GRACE) -> None:
        self.grace = grace
        reading, self.writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.writing)
            _watch(reading)
        os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.writing)
        os.waitpid(self.pid, 0)

    def guard(self, group: int, grace: float | None = None) -> None:
        os.write(self.writing, b"+%d %d\n" % (group, round(self.grace if grace is None else grace)))

    def release(self, group: int) -> None:
        os.write(self.writing, b"-%d 0\n" % group)


def _watch(reading: int) -> None:
    """The warden's main function; it never returns."""
    graces: dict[int, float] = {}
    try:
        os.setsid()  # Ctrl-C in the terminal is for the supervisor
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to every process at once; the closed pipe ends the warden
        with open(reading) as orders:
            for order in orders:
                group, grace = map(int, order[1:].split())
                graces.pop(group, None)
                if order[0] == "+":
                    graces[group] = grace
        end_groups(graces)
    finally:
        os._exit(0)


def end_groups(
    graces: Mapping[int, float], *, reap: Callable[[], bool] = lambda: False, say: Callable[[int], None] | None = None
) -> list[int]:
    """Ask the leaders of these process groups to end; after each group's own grace (in seconds), kill and return the
    rest.

    Only leaders get the signal: a Celery worker then finishes its running tasks, which a signal to its pool would
    interrupt. ``reap`` collects ended children of the caller, which would count as alive otherwise, and returns True to
    stop waiting. ``say`` is called for every group that needs more than the usual grace.
    """
    left = [group for group in graces if _reach(group, os.kill, signal.SIGTERM) or _reach(group, os.killpg, 0)]
    began = time.monotonic()
    killed: list[int] = []
    numbers: set[int] = set()
    while left:
        time.sleep(TICK / 2)
        hurried = reap()
        took = time.monotonic() - began
        left = [group for group in left if _reach(group, os.killpg, 0)]
        for group in [group for group in left if hurried or took >= graces[group]]:
            _reach(group, os.killpg, signal.SIGKILL)
            left.remove(group)
            killed.append(group)
        if say and took >= GRACE:
            for group in [group for group in left if group not in numbers]:
                numbers.add(group)
                say(group)
    return killed


def _reach(pid: int, send: Callable[[int, int], None], number: int) -> bool:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):  # macOS answers for a zombie's group with EPERM
        return False
    return True
