"""A TCP proxy before a server, through which that server is away or hangs for those behind it, and for nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

Address = tuple[str, int] | str  # a host and port, or the path of a Unix socket


class OutageProxy:
    """Forwards to ``target``. ``away``: connections are refused and cut; ``hanging``: nothing is forwarded."""

    def __init__(self, target: Address) -> None:
        self.target = target
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._forwards = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._loop.call_soon_threadsafe(self._forwards.set)
        self._run(self._listen())

    def stop(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        self._run(self._close())
        try:
            yield
        finally:
            self._run(self._listen())

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        self._loop.call_soon_threadsafe(self._forwards.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._forwards.set)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._forwards.wait()
        try:
            beyond = await (
                asyncio.open_unix_connection(self.target)
                if isinstance(self.target, str)
                else asyncio.open_connection(*self.target)
            )
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, beyond[1]}
        try:
            await asyncio.gather(self._forward(reader, beyond[1]), self._forward(beyond[0], writer))
        finally:
            self._writers -= {writer, beyond[1]}

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(2**16):
                await self._forwards.wait()
                writer.write(content)
                await writer.drain()
        writer.transport.abort()


@contextlib.contextmanager
def proxied(target: Address) -> Iterator[OutageProxy]:
    """A running proxy."""
    proxy = OutageProxy(target)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def at_once(count: int, job: Callable[[int], Any]) -> list[Any]:
    """What ``count`` calls return that all run at the same time, each in a thread."""
    results: list[Any] = [None] * count

    def work(place: int) -> None:
        results[place] = job(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
