"""One work session on a judge run or a generator of a plan, the `Asker`: keep a limited number of requests in progress,
and store each reply when it arrives.

A session has one event loop, one client, one thread for the database and one for marking requests as sent. The loop
runs in its own thread: a signal that ends the worker raises an exception in the main thread, at any point; if the event
loop were interrupted there, it could not clean up, and unsent calls would not be released. The loop repeats two steps:
it stores the replies that arrived, and leases the same number of new rows. Replies that arrive together are stored in
one transaction. Every request is written and its worst case reserved before it is sent. When the session ends, unsent
rows are released, and the session waits for the calls in flight. If the database is not available, the session waits
for it, because the replies that arrived were paid for.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from judging.asking import client, endpoints, leases, limits, sharing
from judging.asking.client import Endpoint
from judging.asking.endpoints import Pace
from judging.asking.holders import SentRecord
from judging.asking.leases import LeasedRows, OutcomeT, RequestT, TakenRequests
from judging.asking.sending import LimitedConnection, limited_connection

logger = logging.getLogger(__name__)

FIRST_WIDTH = 16  # requests in flight of a first session, before anything is known of its endpoint
SESSION = 60.0  # seconds after which no more rows are leased, so that all work shares the workers
LONGEST_SESSION = 240.0  # maximum length of a session when replies are slow (it is extended to 4 x the latency)
PLACE = 30.0  # lease as many rows as the endpoint's rate limit allows in this many seconds
PATIENCE = 5.0  # seconds: a request is booked in the endpoint's limits at most this long before it may be sent
LAST = 60.0  # seconds to wait for an unavailable database after the session and its longest reply
TICK = 2.0  # seconds between two checks whether it is still to ask
GATHER = 0.05  # seconds to wait for more replies, so that they are stored together
UNHEARD = 10.0  # seconds without a reply after which a session ends if other work waits for a worker
SAME_REFUSALS = 5  # the asker is paused after this number of equal refusals in a row, with no reply between them
LARGE = 20_000  # characters of a reply from which it is read in a thread, away from the event loop
T = TypeVar("T")


# --- the end of a worker ----------------------------------------------------------------------------------------------
# Celery tells only the main process of a worker to end, and then waits for the tasks of its children. They read this
# flag, so that a work session leases no more rows and stores the replies that arrive. The flag is in memory that is
# shared with every child forked after `prepare_stop`.

_stop_flag = mmap.mmap(-1, 1)


def prepare_stop() -> None:
    """Create the flag that this process shares with the children it forks later; call it before the first fork."""
    global _stop_flag  # noqa: PLW0603 - one worker, one flag
    _stop_flag = mmap.mmap(-1, 1)


def ask_to_stop() -> None:
    """Ask this worker's sessions to end."""
    _stop_flag[0] = 1


def withdraw_stop() -> None:
    """Cancel the request to stop."""
    _stop_flag[0] = 0


def is_stopping() -> bool:
    """Whether this worker was asked to end."""
    return _stop_flag[0] == 1


# --- who asks ---------------------------------------------------------------------------------------------------------


class Asker(ABC, Generic[RequestT, OutcomeT]):
    """What a work session asks for: a judge run, or a generator of a plan. It has one model of one endpoint."""

    name: str
    """For the log."""
    subject: Any
    """Its row: what `LeasedRows` calls the asker."""
    rows: LeasedRows[OutcomeT]
    endpoint: Endpoint
    model: str
    pace: Pace
    width: int | None
    """How many requests its last session kept in flight."""

    @abstractmethod
    def is_running(self) -> bool:
        """Whether it may still ask."""

    @abstractmethod
    def take(self, *, limit: int, lease: UUID) -> TakenRequests[RequestT]:
        """Lease up to ``limit`` due rows, and reserve what their requests may cost."""

    @abstractmethod
    def read(self, asked: RequestT, answer: client.ProviderAnswer, lease: UUID) -> OutcomeT:
        """The outcome of a request with a reply; it may run in a thread, and makes no query."""

    @abstractmethod
    def unread(self, asked: RequestT, answer: client.ProviderAnswer, lease: UUID, fault: Exception) -> OutcomeT:
        """The outcome of a request whose reply `read` failed on: its bill, and the reason; it is not sent again."""

    @abstractmethod
    def unavailable(self, asked: RequestT, unavailable: client.ProviderUnavailable, lease: UUID) -> OutcomeT:
        """The outcome of a request without a reply."""

    @abstractmethod
    def refused(self, asked: RequestT, no: client.ProviderRefused, lease: UUID) -> OutcomeT:
        """The outcome of a request that the provider refused; it is not sent again."""

    @abstractmethod
    def unstorable(self, outcome: OutcomeT, fault: Exception) -> OutcomeT:
        """The replacement of an outcome that the database refuses: its cost, and the reason."""

    @abstractmethod
    def pause(self, reason: str) -> None:
        """Ask no more, until somebody resumes it."""

    @abstractmethod
    def save_width(self, width: int) -> None:
        """Save how many requests at a time the session reached; the next one starts with that."""


# --- a session --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WorkSession(Generic[RequestT, OutcomeT]):
    """The state of one work session: who asks, the requests in flight, and the outcomes to store."""

    asker: Asker[RequestT, OutcomeT]
    database: ThreadPoolExecutor
    marking: ThreadPoolExecutor
    limiter: limits.ConcurrencyLimiter = field(init=False)
    record: SentRecord = field(default_factory=SentRecord)
    lease: UUID = field(default_factory=uuid4)
    began: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    arrived: list[OutcomeT] = field(default_factory=list)
    unsent: list[RequestT] = field(default_factory=list)
    to_mark: dict[int, asyncio.Future[bool]] = field(default_factory=dict)
    marker: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    refusals: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stopped: bool = False
    makes_way: bool = False
    spent: str = ""
    held_up: bool = False
    reused: int = 0
    trouble: str = ""

    def __post_init__(self) -> None:
        ceiling = self.asker.pace.concurrency
        width = self.asker.width or min(FIRST_WIDTH, ceiling)
        self.limiter = limits.ConcurrencyLimiter(width=width, ceiling=ceiling)

    @property
    def over(self) -> bool:
        """Whether the session leases and sends no more requests."""
        return self.stopped or self.makes_way or self.left <= 0 or is_stopping()

    @property
    def left(self) -> float:
        """Seconds in which rows may still be leased. A session lasts at least 4 x the latency of a reply (up to
        LONGEST_SESSION), so that the limiter can find a suitable limit."""
        length = min(LONGEST_SESSION, max(SESSION, 4 * self.limiter.latency))
        return self.began + length - time.monotonic()

    @property
    def free(self) -> int:
        """How many more rows to lease: up to twice the limit or what the rate allows, minus those in progress."""
        per_minute = self.asker.endpoint.requests_per_minute
        window = 2 * self.limiter.width
        paced = max(1, int(per_minute * PLACE / 60)) if per_minute else window
        return min(window, paced) - len(self.tasks)

    async def query(self, verb: Callable[[], T], thread: ThreadPoolExecutor | None = None) -> T:
        """Run a database function in a thread of this session; wait if the database is not available."""
        gives_up = self.began + LONGEST_SESSION + self.asker.pace.timeout + LAST
        return await asyncio.get_running_loop().run_in_executor(thread or self.database, _retried, verb, gives_up)

    def stop(self, trouble: str = "") -> None:
        """Send no more requests; wait for those in flight. With ``trouble``, the asker is paused for that reason."""
        self.stopped, self.trouble = True, self.trouble or trouble
        self.news.set()

    async def mark_sent(self, asked: RequestT) -> bool:
        """Mark this request as sent, in one statement with others. Returns False if it must not be sent."""
        marked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.to_mark[asked.attempt.pk] = marked
        if self.marker is None or self.marker.done():
            self.marker = asyncio.create_task(self._mark())
        return await marked

    async def _mark(self) -> None:
        while self.to_mark:
            to_mark, self.to_mark = self.to_mark, {}
            try:
                mark = partial(self.asker.rows.mark_sent, lease=self.lease, attempts=[*to_mark])
                sent = await self.query(mark, self.marking)
            except BaseException as error:
                for future in to_mark.values():
                    if not future.done():
                        future.set_exception(error)
                raise
            for pk, future in to_mark.items():
                if not future.done():
                    future.set_result(pk in sent)


def work_as(asker: Asker[RequestT, OutcomeT]) -> bool:
    """Ask for one session. Returns True if due rows may remain for the next session."""
    with (
        ThreadPoolExecutor(1, thread_name_prefix="database") as database,
        ThreadPoolExecutor(1, thread_name_prefix="marking") as marking,
    ):
        session = WorkSession(
            asker=asker,
            database=database,
            marking=marking,
            refused=endpoints.refused_by(asker.endpoint.name, asker.model),
        )
        try:
            with asker.rows.hold(session.lease) as session.record:
                return _worked_apart(session)
        finally:
            for thread in (database, marking):
                thread.submit(_close_connection).result()


def _worked_apart(session: WorkSession[RequestT, OutcomeT]) -> bool:
    """Run the session in its own thread; an exception in the calling thread stops it in an orderly way.

    After the first exception, the session waits for the requests in flight. It is cancelled after a second exception,
    or after DRAIN_SECONDS.
    """
    with asyncio.Runner() as runner, ThreadPoolExecutor(1, thread_name_prefix="session") as thread:
        loop = runner.get_loop()
        task = loop.create_task(_work(session))
        worked = thread.submit(loop.run_until_complete, task)
        try:
            return worked.result()
        except BaseException:
            if not worked.done():
                loop.call_soon_threadsafe(session.stop)
                _await_the_rest(worked, lambda: loop.call_soon_threadsafe(task.cancel))
            raise


def _await_the_rest(worked: Future[bool], give_up: Callable[[], object]) -> None:
    try:
        worked.exception(timeout=settings.DRAIN_SECONDS)
    except BaseException:  # noqa: BLE001 - the caller re-raises the exception that ends the worker: it caught it first
        give_up()


async def _work(session: WorkSession[RequestT, OutcomeT]) -> bool:
    asker = session.asker
    try:
        async with (
            limited_connection(asker.endpoint, refused={asker.model: session.refused}) as limited,
            asyncio.TaskGroup() as group,
        ):

            def send(asked: RequestT) -> None:
                task = group.create_task(_put(session, limited, asked))
                session.tasks.add(task)
                task.add_done_callback(session.tasks.discard)
                task.add_done_callback(lambda _task: session.news.set())

            return await _go_round(session, send)
    except client.ProviderRefused as no:
        session.stop(no.reason)
        return False
    finally:
        # Even if the session is cancelled: store the outcomes, release unsent rows, and book the requests that were
        # sent without a reply.
        await _hand_in(session)
        await session.query(lambda: asker.rows.release(lease=session.lease, sent=session.record.noted))
        await session.query(lambda: asker.save_width(session.limiter.width))
        await session.query(lambda: endpoints.learn(asker.endpoint.name, asker.model, session.refused))
        if session.trouble:
            await session.query(lambda: asker.pause(session.trouble))


async def _go_round(session: WorkSession[RequestT, OutcomeT], send: Callable[[RequestT], None]) -> bool:
    """Store outcomes and lease new rows until the session is over and every reply has arrived.

    Returns True if due rows may remain for another session.
    """
    looks_at = ends_at = 0.0
    while True:
        await _hand_in(session)
        if time.monotonic() > looks_at:
            looks_at = time.monotonic() + TICK
            await _look(session)
        for asked in await _take(session):
            send(asked)
        if is_stopping():
            ends_at = ends_at or time.monotonic() + settings.DRAIN_SECONDS
            if time.monotonic() > ends_at:
                for task in session.tasks:
                    task.cancel()
        if session.tasks:
            await _gather(session)
        elif session.over or not await _wait(session):
            return not session.stopped and not is_stopping() and (session.left <= 0 or session.makes_way)


async def _take(session: WorkSession[RequestT, OutcomeT]) -> Sequence[RequestT]:
    """Lease as many rows as `free` allows, but not one by one, because every lease is a transaction."""
    free = session.free
    if session.over or free <= len(session.tasks) // 4:
        return []
    try:
        taken = await session.query(lambda: session.asker.take(limit=free, lease=session.lease))
    except Refused as no:
        session.stop(no.sentence)
        return []
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        logger.exception("%s: a request can't be built", session.asker.name)
        session.stop(_("Stopped by an error in Panelbench: %r") % fault)
        return []
    session.spent, session.held_up, session.reused = taken.spent, taken.held_up, taken.reused
    return taken.requests


async def _hand_in(session: WorkSession[RequestT, OutcomeT]) -> None:
    """Store the outcomes that arrived and release unsent rows. It can be interrupted and run again: nothing is stored
    twice."""
    if arrived := list(session.arrived):
        await session.query(lambda: store_outcomes(session.asker.rows, arrived, session.asker.unstorable))
        del session.arrived[: len(arrived)]
    if unsent := list(session.unsent):
        rows = [asked.row for asked in unsent]
        await session.query(lambda: session.asker.rows.release(lease=session.lease, rows=rows))
        del session.unsent[: len(unsent)]


async def _look(session: WorkSession[RequestT, OutcomeT]) -> None:
    """Renew the lease, adjust the limiter, release the rows of dead workers, and check whether the asker was paused or
    other work waits for this worker."""
    rows, subject = session.asker.rows, session.asker.subject
    session.limiter.look()
    await session.query(lambda: rows.extend(lease=session.lease))
    await session.query(rows.release_dead)
    if not await session.query(session.asker.is_running):
        session.stop()
    unheard = time.monotonic() - session.heard > UNHEARD
    others = await session.query(lambda: rows.holders(subject, besides=session.lease))
    if unheard or others:
        session.makes_way = await session.query(lambda: sharing.other_work_waits(rows, subject))


async def _gather(session: WorkSession[RequestT, OutcomeT]) -> None:
    """Wait at most TICK seconds for an outcome, and then GATHER seconds for others that arrive with it."""
    try:
        async with asyncio.timeout(TICK):
            await session.news.wait()
            await asyncio.sleep(GATHER)
    except TimeoutError:
        pass
    session.news.clear()


async def _wait(session: WorkSession[RequestT, OutcomeT]) -> bool:
    """With no request in flight: sleep until the next one is due. Returns False if the session should end instead."""
    rows, subject = session.asker.rows, session.asker.subject
    due = await session.query(lambda: rows.next_due(subject))
    if due is None:
        return False
    if session.reused:
        return True
    pause = (due - timezone.now()).total_seconds()
    if pause > session.left:
        return False
    if pause <= 0 and session.spent:
        session.stop(session.spent)
        return False
    if (pause > 0 or session.held_up) and await session.query(lambda: sharing.other_work_waits(rows, subject)):
        return False  # the sweep enqueues it again
    await asyncio.sleep(min(max(pause, 0.25), TICK))
    return True


async def _put(session: WorkSession[RequestT, OutcomeT], limited: LimitedConnection, asked: RequestT) -> None:
    """Send one request and keep its outcome. No exception leaves this function, so that others are not lost."""
    try:
        outcome = await _outcome_of(session, limited, asked)
    except Exception as fault:
        # An error in our code must not drop the replies to others, which were paid for.
        logger.exception("%s: row %s", session.asker.name, asked.row.pk)
        session.stop(_("Stopped by an error in Panelbench: %r") % fault)
    else:
        if outcome is None:
            session.unsent.append(asked)
        else:
            session.arrived.append(outcome)
            if outcome.stops:
                session.stop()  # the asker is paused when the bill is stored


async def _outcome_of(
    session: WorkSession[RequestT, OutcomeT], limited: LimitedConnection, asked: RequestT
) -> OutcomeT | None:
    """Wait for the limits, mark the request as sent, send it, and read its reply. None if it was not sent."""
    asker, lease, tokens = session.asker, session.lease, asked.tokens
    try:
        async with AsyncExitStack() as place:
            if not await _placed(session, place, limited.budget, tokens):
                return None
            if not await session.mark_sent(asked):
                await limited.budget.give_back(tokens=tokens)
                return None
            leaving = partial(session.record.note, asked.attempt.pk)
            answer = await limited.ask(asked, seconds=asker.pace.timeout, leaving=leaving)
    except client.ProviderUnavailable as unavailable:
        if (unavailable.retry_after or 0) > leases.LONGEST_WAIT:
            session.stop(_retry_later_sentence(unavailable))
        return asker.unavailable(asked, unavailable, lease)
    except client.ProviderRefused as no:
        if no.fatal:
            session.stop(no.reason)
        _count_refusal(session, no.reason)
        return asker.refused(asked, no, lease)
    session.heard = time.monotonic()
    session.refusals.clear()
    try:
        if len(answer.readable) > LARGE:
            return await asyncio.to_thread(asker.read, asked, answer, lease)
        return asker.read(asked, answer, lease)
    except Exception as fault:
        # The reply was paid for: without an outcome, its request would count as lost, and be paid again.
        logger.exception("%s: the reply to row %s", asker.name, asked.row.pk)
        session.stop(_("Stopped by an error in Panelbench: %r") % fault)
        return asker.unread(asked, answer, lease, fault)


def _retry_later_sentence(unavailable: client.ProviderUnavailable) -> str:
    """The reason for the pause if an endpoint asks to wait longer than is waited."""
    when = timezone.now() + timedelta(seconds=unavailable.retry_after or 0)
    return _("The provider accepts no calls until %(when)s UTC: %(reason)s. Resume after that time.") % {
        "when": f"{when:%Y-%m-%d %H:%M}",
        "reason": unavailable.reason,
    }


def _count_refusal(session: WorkSession[RequestT, OutcomeT], reason: str) -> None:
    """Pause after SAME_REFUSALS refusals for the same reason: the error is then in what asks, not in one request."""
    if session.refusals and session.refusals[-1] != reason:
        session.refusals.clear()
    session.refusals.append(reason)
    if len(session.refusals) >= SAME_REFUSALS:
        session.stop(
            _("The provider refused %(count)d calls in a row for the same reason: %(reason)s")
            % {"count": SAME_REFUSALS, "reason": reason}
        )


async def _placed(
    session: WorkSession[RequestT, OutcomeT], place: AsyncExitStack, budget: limits.RequestBudget, tokens: int
) -> bool:
    """Wait for a slot in the limiter and in the endpoint's limits. Returns False if the session sends no more."""
    try:
        async with asyncio.timeout(max(1.0, session.left)):
            await place.enter_async_context(session.limiter.slot())
    except TimeoutError:
        return False
    booked = False
    while not booked and not session.over:
        booked = await budget.acquire(tokens=tokens, patience=PATIENCE)
        if not booked:
            await asyncio.sleep(random.uniform(0.5, 1.5))
    if booked and session.over:
        await budget.give_back(tokens=tokens)
        return False
    return booked


def store_outcomes(
    rows: LeasedRows[OutcomeT], arrived: Sequence[OutcomeT], unstorable: Callable[[OutcomeT, Exception], OutcomeT]
) -> None:
    """Store the outcomes in one transaction. If this fails, store each in its own transaction, so that an outcome that
    can't be stored does not prevent storing the others; ``unstorable`` makes what is stored in its place."""
    try:
        rows.settle(outcomes=arrived)
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        if len(arrived) > 1:
            for outcome in arrived:
                store_outcomes(rows, [outcome], unstorable)
        else:
            logger.exception("The outcome of row %s can't be stored", arrived[0].asked.row.pk)
            rows.settle(outcomes=[unstorable(arrived[0], fault)])


def _close_connection() -> None:
    connection.close()  # this thread's own


def _retried(verb: Callable[[], T], gives_up: float) -> T:
    """Call ``verb`` again until the database is available; it must be safe to run it twice."""
    while True:
        try:
            return verb()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() > gives_up:
                raise
            logger.warning("The database is not available; waiting for it: %s", error)
            time.sleep(0.5)
