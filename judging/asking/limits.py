"""Rate limits for judges: a budget per endpoint that workers share, and an adaptive concurrency limiter.

The budget paces requests and tokens per minute as a queue of time slots (the generic cell rate algorithm): each
request books the next free slot and waits for it. A pause of ``BURST`` seconds may be caught up on at once, so in any
minute at most (60 + BURST) / 60 of the limit is spent. What is further away than a request will wait is not booked,
what is booked and not used is given back, and the tokens are corrected by what a reply took. An endpoint that says
that nothing is left of a limit is not asked before the limit is whole again, declared or not.

The clocks are shared through Redis, or through a locked file of this machine; a Redis that can't be reached costs the
sharing with other machines, not the run.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from judging.asking.client import Endpoint, ProviderUnavailable
from judging.asking.limit_headers import Quota

if TYPE_CHECKING:
    from redis.asyncio import Redis

logger = logging.getLogger(__name__)

BURST: Final = 5.0
CONNECTIONS: Final = 4  # to Redis, of one worker: a booking takes less than a millisecond
LONGEST_HOLD: Final = 600.0  # seconds that an endpoint's "nothing left" is believed

# KEYS: requests, tokens, hold. ARGV: seconds this request takes up of each, the burst, the patience (negative: book in
# any case), and seconds for which nothing is to be sent. All clocks move in one step; the answer is the time to wait.
_CHANGE: Final = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local burst, patience, hold = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local held = tonumber(redis.call('GET', KEYS[3]) or 0)
if hold > 0 and now + hold > held then
  held = now + hold
  redis.call('SET', KEYS[3], string.format('%.6f', held), 'PX', math.ceil(hold * 1000))
end
local wait, slots = math.max(0, held - now), {}
for i = 1, 2 do
  slots[i] = math.max(tonumber(redis.call('GET', KEYS[i]) or 0), now - burst)
  if tonumber(ARGV[i]) > 0 then wait = math.max(wait, slots[i] - now) end
end
if patience < 0 or wait <= patience then
  for i = 1, 2 do
    local cost = tonumber(ARGV[i])
    if cost ~= 0 then
      local free = slots[i] + cost
      local kept = math.max(1, math.ceil((free - now + burst + 1) * 1000))
      redis.call('SET', KEYS[i], string.format('%.6f', free), 'PX', kept)
    end
  end
end
return string.format('%.6f', wait)
"""
_IN_ANY_CASE: Final = -1.0


class Clocks(Protocol):
    """When the next request and the next token are free, and until when nothing is sent."""

    async def change(self, costs: tuple[float, float], *, patience: float, hold: float = 0.0) -> float:
        """Book ``costs`` unless the wait is longer than ``patience``; the seconds to wait."""


class FileClocks:
    """The clocks of every process that shares this file; without a file, of this process alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._own = [0.0, 0.0, 0.0]

    async def change(self, costs: tuple[float, float], *, patience: float, hold: float = 0.0) -> float:
        """See ``Clocks``. The file is locked for as long as it takes to read and write three numbers."""
        if self._path is None:
            return _changed(self._own, costs, patience, hold)
        with self._path.open("a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            clocks = _read(file.read())
            wait = _changed(clocks, costs, patience, hold)
            file.seek(0)
            file.truncate()
            json.dump(clocks, file)
        return wait


def _read(text: str) -> list[float]:
    """Three clocks; anything else, and a time that no booking of ours reaches, starts anew."""
    try:
        clocks = json.loads(text)
    except ValueError:
        return [0.0, 0.0, 0.0]
    if not isinstance(clocks, list) or len(clocks) != 3 or not all(isinstance(clock, int | float) for clock in clocks):
        return [0.0, 0.0, 0.0]
    return [float(clock) if clock < time.time() + 86_400 else 0.0 for clock in clocks]


def _changed(clocks: list[float], costs: tuple[float, float], patience: float, hold: float) -> float:
    """Change the clocks in place as the script does in Redis."""
    now = time.time()
    if hold > 0:
        clocks[2] = max(clocks[2], now + hold)
    slots = [max(clock, now - BURST) for clock in clocks[:2]]
    waits = [slot - now for slot, cost in zip(slots, costs, strict=True) if cost > 0]
    wait = max(0.0, clocks[2] - now, *waits)
    if patience < 0 or wait <= patience:
        clocks[:2] = [slot + cost if cost else clock for slot, cost, clock in zip(slots, costs, clocks, strict=False)]
    return wait


class RedisClocks:
    """The clocks of every worker that shares this Redis; while it is away, those of this machine."""

    def __init__(self, endpoint: Endpoint, redis: Redis, otherwise: Clocks) -> None:
        self._name = endpoint.name
        self._otherwise = otherwise
        self._script = redis.register_script(_CHANGE)
        self._keys = [f"panelbench:budget:{endpoint.name}:{unit}" for unit in ("requests", "tokens", "hold")]

    async def change(self, costs: tuple[float, float], *, patience: float, hold: float = 0.0) -> float:
        """See ``Clocks``."""
        from redis.exceptions import RedisError

        try:
            return float(await self._script(keys=self._keys, args=[*costs, BURST, patience, hold]))
        except (RedisError, OSError) as error:
            logger.warning("The budget of %s is not shared for now: %s", self._name, error)
            return await self._otherwise.change(costs, patience=patience, hold=hold)


class RequestBudget:
    """Requests and tokens per minute of one endpoint."""

    def __init__(self, endpoint: Endpoint, clocks: Clocks) -> None:
        self._endpoint = endpoint
        self._clocks = clocks

    async def acquire(self, *, tokens: int, patience: float = math.inf) -> bool:
        """Wait until one request of about so many tokens (in and out) may be sent.

        False, with nothing booked, where that is further away than ``patience`` seconds. Given up while it waits, the
        booking is given back.
        """
        costs = _costs(self._endpoint, tokens)
        wait = await self._clocks.change(costs, patience=min(patience, 1e9))
        if wait > patience:
            return False
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            await asyncio.shield(self.give_back(tokens=tokens))
            raise
        return True

    async def give_back(self, *, tokens: int) -> None:
        """A booked request is not sent."""
        requests, of_tokens = _costs(self._endpoint, tokens)
        await self._clocks.change((-requests, -of_tokens), patience=_IN_ANY_CASE)

    async def correct(self, *, booked: int, used: int) -> None:
        """A request took more or fewer tokens than were booked."""
        _requests, cost = _costs(self._endpoint, used - booked)
        if cost:
            await self._clocks.change((0.0, cost), patience=_IN_ANY_CASE)

    async def heed(self, quotas: Mapping[str, Quota], *, tokens: int) -> None:
        """Send nothing before a limit is whole again of which the endpoint says that too little is left."""
        needed = {"requests": 1, "tokens": tokens}
        waits = [quota.reset for unit, quota in quotas.items() if quota.remaining < needed[unit]]
        if waits and max(waits) > 0:
            await self._clocks.change((0.0, 0.0), patience=_IN_ANY_CASE, hold=min(LONGEST_HOLD, max(waits)))


@asynccontextmanager
async def budget(endpoint: Endpoint, redis_url: str | None, folder: Path | None = None) -> AsyncIterator[RequestBudget]:
    """The endpoint's budget for as long as the running loop needs it.

    Shared through Redis, or without one through a file in ``folder``; with neither, and without limits, of this process
    alone.
    """
    limited = any(_costs(endpoint, tokens=1))
    local = FileClocks(_file(folder, endpoint) if folder and limited else None)
    if not redis_url or not limited:
        yield RequestBudget(endpoint, local)
        return
    from redis.asyncio import BlockingConnectionPool, Redis

    pool = BlockingConnectionPool.from_url(
        redis_url, max_connections=CONNECTIONS, socket_timeout=5, socket_connect_timeout=5
    )
    async with Redis.from_pool(pool) as redis:
        yield RequestBudget(endpoint, RedisClocks(endpoint, redis, local))


def _file(folder: Path, endpoint: Endpoint) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(endpoint.name.encode()).hexdigest()[:32]}.json"


def _costs(endpoint: Endpoint, tokens: int) -> tuple[float, float]:
    """Seconds of the endpoint's minute that a request takes up; an endpoint without a limit costs nothing."""
    requests, limit = endpoint.requests_per_minute, endpoint.tokens_per_minute
    return 60 / requests if requests else 0.0, 60 * tokens / limit if limit else 0.0


class ConcurrencyLimiter:
    """Adaptive concurrency limiter: grows while requests succeed, halves when the endpoint is overloaded.

    Outcomes are judged a round at a time: as many as the limit, ten at least. As soon as a fifth of a round was
    unavailable the width is halved and, if the endpoint named a time, nothing starts until then. Every provider
    fails now and then: up to a twentieth the width still grows, doubling until its first cut, by one after it. Slow
    replies are no reason against a larger width: `look`, called now and then, doubles it too while all places are taken
    and nothing has failed.
    """

    def __init__(self, *, width: int = 8, ceiling: int = 64) -> None:
        self.width = min(width, ceiling)
        self.in_flight = 0
        self.latency = 0.0  # seconds from sending to the end, lately
        self._ceiling = ceiling
        self._doubling = True
        self._rest_until = 0.0
        self._cut_at = 0.0
        self._replies = 0
        self._failures: list[ProviderUnavailable] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One slot of the limiter. ``Unavailable`` passing through is counted against the endpoint, and passes on."""
        await self._enter()
        started = time.monotonic()
        try:
            yield
        except ProviderUnavailable as outcome:
            self._note(started, outcome)
            raise
        else:
            self._note(started)
        finally:
            self.in_flight -= 1
            took = time.monotonic() - started
            self.latency = took if not self.latency else 0.9 * self.latency + 0.1 * took
            self._admit()

    def look(self) -> None:
        """Double the limit while it is reached, was never cut and no request of this round has failed."""
        if self._doubling and not self._failures and self.in_flight >= self.width and self._waiting:
            self.width = min(self._ceiling, 2 * self.width)
            self._admit()

    async def _enter(self) -> None:
        if self.in_flight < self.width and not self._waiting:
            self.in_flight += 1
        else:
            await self._queue()
        try:
            while (rest := self._rest_until - time.monotonic()) > 0:  # noqa: ASYNC110 - a clock, no event, ends it
                await asyncio.sleep(rest)
        except asyncio.CancelledError:
            self.in_flight -= 1
            self._admit()
            raise

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.in_flight < self.width:
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)

    def _note(self, started: float, failure: ProviderUnavailable | None = None) -> None:
        if started < self._cut_at:
            return  # sent at the old width, and so no witness against the new one
        self._replies += failure is None
        self._failures += [failure] if failure else []
        of_round = max(10, self.width)
        if 5 * len(self._failures) >= of_round:
            self._cut()
        elif self._replies + len(self._failures) >= of_round:
            self._grow()

    def _grow(self) -> None:
        if 20 * len(self._failures) <= max(10, self.width):
            self.width = min(self._ceiling, 2 * self.width if self._doubling else self.width + 1)
        self._start_round()

    def _cut(self) -> None:
        self._doubling = False
        self.width = max(1, self.width // 2)
        self._cut_at = time.monotonic()
        self._rest_until = self._cut_at + max(failure.retry_after or 0.0 for failure in self._failures)
        self._start_round()

    def _start_round(self) -> None:
        self._replies = 0
        self._failures = []
