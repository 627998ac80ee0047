"""One work session on a judge run, a generator of a plan or a simulation, the `Asker`: keep a limited number of
requests in progress, and store each reply when it arrives.

A session has one event loop, a client for each endpoint, limits for each model that is asked, one thread for the
database, one for marking requests as sent, and one for reading what takes long. The loop runs in its own thread: a
signal that ends the worker raises an exception in the main thread, at any point; if the event loop were interrupted
there, it could not clean up, and unsent calls would not be released. The loop repeats two steps: it stores the replies
that arrived, and leases the same number of new rows. Replies that arrive together are stored in one transaction. Every
request is written and its worst case reserved before it is sent. When the session ends, unsent rows are released, and
the session waits for the calls in flight. If the database is not available, the session waits for it, because the
replies that arrived were paid for.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
LARGE = 20_000  # characters of a reply from which it is read in the thread for it, away from the event loop
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


def is_stopping() -> bool:
    """Whether this worker was asked to end."""
    return _stop_flag[0] == 1


# --- who asks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model of an endpoint, and the pace at which it is asked. ``width``: how many requests the last session kept in
    flight."""

    endpoint: Endpoint
    model: str
    pace: Pace
    width: int | None


ModelKey = tuple[str, str]
"""The names of a provider and of its model, as in a request."""


class Asker(ABC, Generic[RequestT, OutcomeT]):
    """What a work session asks for: a judge run, a generator of a plan, or a simulation, which asks several models."""

    name: str
    """For the log."""
    subject: Any
    """Its row: what `LeasedRows` calls the asker."""
    rows: LeasedRows[OutcomeT]
    models: Sequence[AskedModel]
    """Each provider and model once."""
    reads_apart: bool = False
    """Whether every reply is read in the thread for it: reading takes long."""

    @abstractmethod
    def is_running(self) -> bool:
        """Whether it may still ask."""

    @abstractmethod
    def take(self, *, free: Mapping[ModelKey, int], lease: UUID) -> TakenRequests[RequestT]:
        """Lease due rows, up to so many ``free`` ones of each model, and reserve what their requests may cost."""

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
    def save_widths(self, widths: Mapping[ModelKey, int]) -> None:
        """Save how many requests at a time the session reached; the next one starts with that."""


# --- a session --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ModelLimits:
    """What a session knows of one model: its limiter, what it refuses, and the reasons of its last refusals in a row.

    ``limited`` is the connection to its endpoint, which the models of that endpoint share.
    """

    asked: AskedModel
    refused: list[str]
    limiter: limits.ConcurrencyLimiter = field(init=False)
    limited: LimitedConnection = field(init=False)
    refusals: list[str] = field(default_factory=list)
    in_progress: int = 0

    def __post_init__(self) -> None:
        ceiling = self.asked.pace.concurrency
        width = self.asked.width or min(FIRST_WIDTH, ceiling)
        self.limiter = limits.ConcurrencyLimiter(width=width, ceiling=ceiling)

    @property
    def window(self) -> int:
        """How many rows to have leased for it: up to twice the limit or what the rate allows."""
        per_minute = self.asked.endpoint.requests_per_minute
        window = 2 * self.limiter.width
        return min(window, max(1, int(per_minute * PLACE / 60))) if per_minute else window


@dataclass(slots=True)
class WorkSession(Generic[RequestT, OutcomeT]):
    """The state of one work session: who asks, the requests in flight, and the outcomes to store."""

    asker: Asker[RequestT, OutcomeT]
    database: ThreadPoolExecutor
    marking: ThreadPoolExecutor
    reading: ThreadPoolExecutor
    models: Mapping[ModelKey, ModelLimits]
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
    stopped: bool = False
    makes_way: bool = False
    spent: str = ""
    held_up: bool = False
    reused: int = 0
    trouble: str = ""

    @property
    def over(self) -> bool:
        """Whether the session leases and sends no more requests."""
        return self.stopped or self.makes_way or self.left <= 0 or is_stopping()

    @property
    def left(self) -> float:
        """Seconds in which rows may still be leased. A session lasts at least 4 x the latency of a reply (up to
        LONGEST_SESSION), so that the limiter can find a suitable limit."""
        latency = max(model.limiter.latency for model in self.models.values())
        length = min(LONGEST_SESSION, max(SESSION, 4 * latency))
        return self.began + length - time.monotonic()

    @property
    def free(self) -> dict[ModelKey, int]:
        """How many more rows to lease of each model: its window, minus those in progress. Models of which these are few
        are left out, because every lease is a transaction."""
        places = {key: (model.window - model.in_progress, model.in_progress) for key, model in self.models.items()}
        return {key: free for key, (free, taken) in places.items() if free > taken // 4}

    async def query(self, verb: Callable[[], T], thread: ThreadPoolExecutor | None = None) -> T:
        """Run a database function in a thread of this session; wait if the database is not available."""
        timeout = max(model.asked.pace.timeout for model in self.models.values())
        gives_up = self.began + LONGEST_SESSION + timeout + LAST
        return await asyncio.get_running_loop().run_in_executor(thread or self.database, _retried, verb, gives_up)

    def stop(self, trouble: str = "", model: ModelLimits | None = None) -> None:
        """Send no more requests; wait for those in flight. With ``trouble``, the asker is paused for that reason, which
        names the ``model`` if several are asked."""
        if trouble and model is not None and len(self.models) > 1:
            trouble = f"{model.asked.model}: {trouble}"
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
        ThreadPoolExecutor(1, thread_name_prefix="reading") as reading,
    ):
        known = endpoints.refused_by_models()
        models = {
            key: ModelLimits(asked, known.get(key, []))
            for asked in asker.models
            if (key := (asked.endpoint.name, asked.model))
        }
        session = WorkSession(asker=asker, database=database, marking=marking, reading=reading, models=models)
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
        async with AsyncExitStack() as connections:
            await _connect(session, connections)
            async with asyncio.TaskGroup() as group:

                def send(asked: RequestT) -> None:
                    model = session.models[asked.provider, asked.model]
                    task = group.create_task(_put(session, model, asked))
                    session.tasks.add(task)
                    model.in_progress += 1

                    def done(_task: object) -> None:
                        session.tasks.discard(task)
                        model.in_progress -= 1
                        session.news.set()

                    task.add_done_callback(done)

                return await _go_round(session, send)
    except client.ProviderRefused as no:
        session.stop(no.reason)
        return False
    finally:
        # Even if the session is cancelled: store the outcomes, release unsent rows, and book the requests that were
        # sent without a reply.
        await _hand_in(session)
        await session.query(lambda: asker.rows.release(lease=session.lease, sent=session.record.noted))
        widths = {key: model.limiter.width for key, model in session.models.items()}
        await session.query(lambda: asker.save_widths(widths))
        for (provider, name), model in session.models.items():
            await session.query(partial(endpoints.learn, provider, name, model.refused))
        if session.trouble:
            await session.query(lambda: asker.pause(session.trouble))


async def _connect(session: WorkSession[RequestT, OutcomeT], connections: AsyncExitStack) -> None:
    """Connect to every endpoint once, for all its models."""
    by_endpoint: dict[str, list[ModelLimits]] = {}
    for (provider, _name), model in session.models.items():
        by_endpoint.setdefault(provider, []).append(model)
    for models in by_endpoint.values():
        refused = {model.asked.model: model.refused for model in models}
        limited = await connections.enter_async_context(limited_connection(models[0].asked.endpoint, refused=refused))
        for model in models:
            model.limited = limited


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
    """Lease as many rows as `free` allows."""
    free = {} if session.over else session.free
    if not free:
        return []
    try:
        taken = await session.query(lambda: session.asker.take(free=free, lease=session.lease))
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
        attempts = [asked.attempt.pk for asked in unsent]
        await session.query(lambda: session.asker.rows.release(lease=session.lease, attempts=attempts))
        del session.unsent[: len(unsent)]


async def _look(session: WorkSession[RequestT, OutcomeT]) -> None:
    """Renew the lease, adjust the limiter, release the rows of dead workers, and check whether the asker was paused or
    other work waits for this worker."""
    rows, subject = session.asker.rows, session.asker.subject
    for model in session.models.values():
        model.limiter.look()
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


async def _put(session: WorkSession[RequestT, OutcomeT], model: ModelLimits, asked: RequestT) -> None:
    """Send one request and keep its outcome. No exception leaves this function, so that others are not lost."""
    try:
        outcome = await _outcome_of(session, model, asked)
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


async def _outcome_of(session: WorkSession[RequestT, OutcomeT], model: ModelLimits, asked: RequestT) -> OutcomeT | None:
    """Wait for the limits, mark the request as sent, send it, and read its reply. None if it was not sent."""
    asker, lease, limited = session.asker, session.lease, model.limited
    try:
        async with AsyncExitStack() as place:
            if not await _placed(session, place, model, asked.tokens):
                return None
            if not await session.mark_sent(asked):
                await limited.budget.give_back(tokens=asked.tokens)
                return None
            leaving = partial(session.record.note, asked.attempt.pk)
            answer = await limited.ask(asked, seconds=model.asked.pace.timeout, leaving=leaving)
    except client.ProviderUnavailable as unavailable:
        if (unavailable.retry_after or 0) > leases.LONGEST_WAIT:
            session.stop(_retry_later_sentence(unavailable), model)
        return asker.unavailable(asked, unavailable, lease)
    except client.ProviderRefused as no:
        if no.fatal:
            session.stop(no.reason, model)
        _count_refusal(session, model, no.reason)
        return asker.refused(asked, no, lease)
    session.heard = time.monotonic()
    model.refusals.clear()
    try:
        if asker.reads_apart or len(answer.readable) > LARGE:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(session.reading, asker.read, asked, answer, lease)
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


def _count_refusal(session: WorkSession[RequestT, OutcomeT], model: ModelLimits, reason: str) -> None:
    """Pause after SAME_REFUSALS refusals for the same reason: the error is then in what asks, not in one request."""
    if model.refusals and model.refusals[-1] != reason:
        model.refusals.clear()
    model.refusals.append(reason)
    if len(model.refusals) >= SAME_REFUSALS:
        sentence = _("The provider refused %(count)d calls in a row for the same reason: %(reason)s")
        session.stop(sentence % {"count": SAME_REFUSALS, "reason": reason}, model)


async def _placed(
    session: WorkSession[RequestT, OutcomeT], place: AsyncExitStack, model: ModelLimits, tokens: int
) -> bool:
    """Wait for a slot in the limiter and in the endpoint's limits. Returns False if the session sends no more."""
    budget = model.limited.budget
    try:
        async with asyncio.timeout(max(1.0, session.left)):
            await place.enter_async_context(model.limiter.slot())
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
