"""A road between a client and a server that breaks where it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Proxy:
    """Each new connection takes the next of ``requests`` and of ``answers``: after how many bytes that way it is cut.

    While it ``is_silent`` nothing comes through, and nobody is told.
    """

    address: str = ""
    requests: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    cut: int = 0
    is_silent: bool = False


@contextmanager
def proxy(target: str) -> Iterator[Proxy]:
    """A running proxy in front of the server at ``target``."""
    place, road = urlsplit(target), Proxy()
    listening = socket.create_server(("127.0.0.1", 0))
    road.address = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def accept() -> None:
        with suppress(OSError), ExitStack() as lines:
            while True:
                lines.callback(_carry(road, listening.accept()[0], (str(place.hostname), place.port or 80)))

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield road
    finally:
        _shut(listening)
        accepting.join()
        listening.close()


def _carry(road: Proxy, here: socket.socket, address: tuple[str, int]) -> Callable[[], None]:
    """Carry one connection both ways; what ends it is returned."""
    there = socket.create_connection(address)
    ends = [each.pop(0) if each else None for each in (road.requests, road.answers)]
    pairs = ((here, there), (there, here))
    ways = [threading.Thread(target=_pump, args=(road, *pair, end)) for pair, end in zip(pairs, ends, strict=True)]
    for way in ways:
        way.start()

    def end() -> None:
        _shut(here, there)
        for way in ways:
            way.join()
        here.close()
        there.close()

    return end


def _pump(road: Proxy, source: socket.socket, sink: socket.socket, end: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while chunk := source.recv(4096):
            if road.is_silent:
                continue
            if end is not None and passed + len(chunk) >= end:
                sink.sendall(chunk[: end - passed])
                road.cut += 1
                break
            sink.sendall(chunk)
            passed += len(chunk)
    _shut(source, sink)


def _shut(*ends: socket.socket) -> None:
    for each in ends:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
