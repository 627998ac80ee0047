"""How fast judges may ask: a budget per endpoint, shared between workers, and a lane that finds its own width.

The budget paces requests and tokens per minute as a queue of time slots (the generic cell rate algorithm): each
request books the next free slot and waits for it. A pause of ``BURST`` seconds may be caught up on at once, so in any
minute at most (60 + BURST) / 60 of the limit is spent. Shared through Redis when there is one; a Redis that cannot be
reached costs the sharing, not the run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from judging.client import Endpoint, Unavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

logger = logging.getLogger(__name__)

BURST: Final = 5.0
CONNECTIONS: Final = 4  # to Redis, of one worker: a booking takes less than a millisecond

# KEYS: requests, tokens. ARGV: seconds this request takes up of each, and the burst.
# Both clocks move in one step; the answer is the time to wait for the later of the two slots.
_BOOK: Final = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local burst, wait = tonumber(ARGV[3]), 0
for i = 1, 2 do
  local cost = tonumber(ARGV[i])
  if cost > 0 then
    local slot = math.max(tonumber(redis.call('GET', KEYS[i]) or 0), now - burst)
    local free = slot + cost
    redis.call('SET', KEYS[i], string.format('%.6f', free), 'PX', math.ceil((free - now + burst + 1) * 1000))
    wait = math.max(wait, slot - now)
  end
end
return string.format('%.6f', wait)
"""


class Budget(Protocol):
    """Requests and tokens per minute of one endpoint."""

    async def acquire(self, *, tokens: int) -> None:
        """Return when one request of about so many tokens (in and out) may be sent."""


class LocalBudget:
    """The budget of this process alone."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._free_at = [0.0, 0.0]

    async def acquire(self, *, tokens: int) -> None:
        """See ``Budget``."""
        await asyncio.sleep(self._book(_costs(self._endpoint, tokens)))

    def _book(self, costs: tuple[float, float]) -> float:
        now = time.monotonic()
        slots = [max(free_at, now - BURST) for free_at in self._free_at]
        self._free_at = [slot + cost for slot, cost in zip(slots, costs, strict=True)]
        return max(0.0, *(slot - now for slot in slots))


class SharedBudget:
    """The budget of every worker that shares this Redis. Falls back on a budget of its own while Redis is away."""

    def __init__(self, endpoint: Endpoint, redis: Redis) -> None:
        self._endpoint = endpoint
        self._local = LocalBudget(endpoint)
        self._book = redis.register_script(_BOOK)
        self._keys = [f"panelbench:budget:{endpoint.name}:{unit}" for unit in ("requests", "tokens")]

    async def acquire(self, *, tokens: int) -> None:
        """See ``Budget``."""
        wait = await self._ask(*_costs(self._endpoint, tokens))
        await (self._local.acquire(tokens=tokens) if wait is None else asyncio.sleep(wait))

    async def _ask(self, per_request: float, for_tokens: float) -> float | None:
        from redis.exceptions import RedisError

        try:
            return float(await self._book(keys=self._keys, args=[per_request, for_tokens, BURST]))
        except (RedisError, OSError) as error:
            logger.warning("The budget of %s is not shared for now: %s", self._endpoint.name, error)
            return None


@asynccontextmanager
async def budget(endpoint: Endpoint, redis_url: str | None) -> AsyncIterator[Budget]:
    """The endpoint's budget for as long as the running loop needs it.

    Of this process alone without a Redis, or where there is nothing to share: an endpoint without limits.
    """
    if not redis_url or not any(_costs(endpoint, tokens=1)):
        yield LocalBudget(endpoint)
        return
    from redis.asyncio import BlockingConnectionPool, Redis

    pool = BlockingConnectionPool.from_url(
        redis_url, max_connections=CONNECTIONS, socket_timeout=5, socket_connect_timeout=5
    )
    async with Redis.from_pool(pool) as redis:
        yield SharedBudget(endpoint, redis)


def _costs(endpoint: Endpoint, tokens: int) -> tuple[float, float]:
    """Seconds of the endpoint's minute that a request takes up; an endpoint without a limit costs nothing."""
    requests, limit = endpoint.requests_per_minute, endpoint.tokens_per_minute
    return 60 / requests if requests else 0.0, 60 * tokens / limit if limit else 0.0


class Lane:
    """How many requests are in flight at once: grows while clean, halves when the endpoint is overrun.

    Outcomes are judged a round at a time: as many as the lane is wide, ten at least. As soon as a fifth of a round was
    unavailable the width is halved and, if the endpoint named a time, nothing starts until then. Fewer failures are
    the weather of any provider: up to a twentieth the lane still grows, doubling until its first cut, by one after it.
    """

    def __init__(self, *, width: int = 8, ceiling: int = 64) -> None:
        self.width = min(width, ceiling)
        self.in_flight = 0
        self._ceiling = ceiling
        self._doubling = True
        self._rest_until = 0.0
        self._cut_at = 0.0
        self._replies = 0
        self._failures: list[Unavailable] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One place in the lane. ``Unavailable`` passing through is counted against the endpoint, and passes on."""
        await self._enter()
        started = time.monotonic()
        try:
            yield
        except Unavailable as outcome:
            self._note(started, outcome)
            raise
        else:
            self._note(started)
        finally:
            self.in_flight -= 1
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

    def _note(self, started: float, failure: Unavailable | None = None) -> None:
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
        self._rest_until = self._cut_at + max(each.retry_after or 0.0 for each in self._failures)
        self._start_round()

    def _start_round(self) -> None:
        self._replies = 0
        self._failures = []
