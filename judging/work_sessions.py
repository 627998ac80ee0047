"""One work session of a run: keep a limited number of calls in progress, and store each reply when it arrives.

A session has one event loop, one client, one thread for the database and one for marking requests as sent. The loop
runs in its own thread: a signal that ends the worker raises an exception in the main thread, at any point; if the event
loop were interrupted there, it could not clean up, and unsent calls would not be released. The loop repeats two steps:
it stores the replies that arrived, and leases the same number of new calls. Replies that arrive together are stored in
one transaction. Every request is written and its worst case reserved before it is sent. When the session ends, unsent
calls are released, and the session waits for the calls in flight. If the database is not available, the session waits
for it, because the replies that arrived were paid for.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from judging import calls, judges, runs
from judging.asking import client, endpoints, limits
from judging.asking.client import Endpoint
from judging.asking.sending import LimitedConnection, limited_connection
from judging.calls import CallOutcome
from judging.models import JudgeRun
from judging.requests import CallRequest, CallRequestWriter

logger = logging.getLogger(__name__)

FIRST_WIDTH = 16  # calls in flight of a run's first session, before anything is known of its endpoint
SESSION = 60.0  # seconds after which no more calls are leased, so that runs share the workers
LONGEST_SESSION = 240.0  # maximum length of a session when replies are slow (it is extended to 4 x the latency)
PLACE = 30.0  # lease as many calls as the endpoint's rate limit allows in this many seconds
PATIENCE = 5.0  # seconds: a request is booked in the endpoint's limits at most this long before it may be sent
LAST = 60.0  # seconds to wait for an unavailable database after the session and its longest reply
TICK = 2.0  # seconds between two checks of the run's state
GATHER = 0.05  # seconds to wait for more replies, so that they are stored together
UNHEARD = 10.0  # seconds without a reply after which a session ends if another run waits for a worker
SAME_REFUSALS = 5  # a run is paused after this number of equal refusals in a row, with no reply between them
LARGE = 20_000  # characters of a reply from which it is read in a thread, away from the event loop
T = TypeVar("T")


# --- the end of a worker ----------------------------------------------------------------------------------------------
# Celery tells only the main process of a worker to end, and then waits for the tasks of its children. They read this
# flag, so that a work session leases no more calls and stores the replies that arrive. The flag is in memory that is
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


# --- a session --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WorkSession:
    """The state of one work session: its run, prompt and endpoint, the calls in flight, and the outcomes to store."""

    run: JudgeRun
    writer: CallRequestWriter
    endpoint: Endpoint
    pace: judges.Pace
    database: ThreadPoolExecutor
    marking: ThreadPoolExecutor
    limiter: limits.ConcurrencyLimiter = field(init=False)
    lease: UUID = field(default_factory=uuid4)
    began: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    arrived: list[CallOutcome] = field(default_factory=list)
    unsent: list[CallRequest] = field(default_factory=list)
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
        width = self.run.width or min(FIRST_WIDTH, self.pace.concurrency)
        self.limiter = limits.ConcurrencyLimiter(width=width, ceiling=self.pace.concurrency)

    @property
    def over(self) -> bool:
        """Whether the session leases and sends no more calls."""
        return self.stopped or self.makes_way or self.left <= 0 or is_stopping()

    @property
    def left(self) -> float:
        """Seconds in which calls may still be leased. A session lasts at least 4 x the latency of a reply (up to
        LONGEST_SESSION), so that the limiter can find a suitable limit."""
        length = min(LONGEST_SESSION, max(SESSION, 4 * self.limiter.latency))
        return self.began + length - time.monotonic()

    @property
    def free(self) -> int:
        """How many more calls to lease: up to twice the limit or what the rate allows, minus those in progress."""
        per_minute = self.endpoint.requests_per_minute
        window = 2 * self.limiter.width
        paced = max(1, int(per_minute * PLACE / 60)) if per_minute else window
        return min(window, paced) - len(self.tasks)

    async def query(self, verb: Callable[[], T], thread: ThreadPoolExecutor | None = None) -> T:
        """Run a database function in a thread of this session; wait if the database is not available."""
        gives_up = self.began + LONGEST_SESSION + self.pace.timeout + LAST
        return await asyncio.get_running_loop().run_in_executor(thread or self.database, _retried, verb, gives_up)

    def stop(self, trouble: str = "") -> None:
        """Send no more calls, and wait for those in flight. With ``trouble``, the run is paused for that reason."""
        self.stopped, self.trouble = True, self.trouble or trouble
        self.news.set()

    async def mark_sent(self, call_request: CallRequest) -> bool:
        """Mark this request as sent, in one statement with others. Returns False if it must not be sent."""
        marked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.to_mark[call_request.attempt.pk] = marked
        if self.marker is None or self.marker.done():
            self.marker = asyncio.create_task(self._mark())
        return await marked

    async def _mark(self) -> None:
        while self.to_mark:
            to_mark, self.to_mark = self.to_mark, {}
            try:
                mark = partial(calls.mark_sent, lease=self.lease, attempts=[*to_mark])
                sent = await self.query(mark, self.marking)
            except BaseException as error:
                for future in to_mark.values():
                    if not future.done():
                        future.set_exception(error)
                raise
            for pk, future in to_mark.items():
                if not future.done():
                    future.set_result(pk in sent)


def work_on_run(run_pk: int) -> bool:
    """Work on a run for one session. Returns True if due calls may remain for the next session."""
    run = JudgeRun.objects.select_related("judge", "rubric_version", "project").filter(pk=run_pk).first()
    if run is None or run.by_batch or run.state != JudgeRun.State.RUNNING or is_stopping():
        return False
    calls.release_dead()
    if calls.holders(run) >= calls.MOST_HOLDERS:
        return False
    try:
        endpoint, writer = judges.endpoint(run.judge), CallRequestWriter(run)
    except Refused as no:
        runs.pause_run(run=run, reason=no.sentence)
        return False
    with (
        ThreadPoolExecutor(1, thread_name_prefix="database") as database,
        ThreadPoolExecutor(1, thread_name_prefix="marking") as marking,
    ):
        session = WorkSession(
            run=run,
            writer=writer,
            endpoint=endpoint,
            pace=judges.pace(run.judge),
            database=database,
            marking=marking,
            refused=judges.refused_by_model(run.judge),
        )
        try:
            with calls.hold_lease(session.lease):
                return _worked_apart(session)
        finally:
            for thread in (database, marking):
                thread.submit(_close_connection).result()


def _worked_apart(session: WorkSession) -> bool:
    """Run the session in its own thread; an exception in the calling thread stops it in an orderly way.

    After the first exception, the session waits for the calls in flight. It is cancelled after a second exception, or
    after DRAIN_SECONDS.
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


async def _work(session: WorkSession) -> bool:
    try:
        async with (
            limited_connection(session.endpoint, refused={session.run.judge.model: session.refused}) as limited,
            asyncio.TaskGroup() as group,
        ):

            def send(call_request: CallRequest) -> None:
                task = group.create_task(_put(session, limited, call_request))
                session.tasks.add(task)
                task.add_done_callback(session.tasks.discard)
                task.add_done_callback(lambda _task: session.news.set())

            return await _go_round(session, send)
    except client.ProviderRefused as no:
        session.stop(no.reason)
        return False
    finally:
        # Even if the session is cancelled: store the outcomes, release unsent calls, and book the requests that were
        # sent without a reply.
        await _hand_in(session)
        await session.query(lambda: calls.release_calls(lease=session.lease))
        await session.query(lambda: runs.save_concurrency(run=session.run, width=session.limiter.width))
        await session.query(
            lambda: endpoints.learn(session.run.judge.provider, session.run.judge.model, session.refused)
        )
        if session.trouble:
            await session.query(lambda: runs.pause_run(run=session.run, reason=session.trouble))


async def _go_round(session: WorkSession, send: Callable[[CallRequest], None]) -> bool:
    """Store outcomes and lease new calls until the session is over and every reply has arrived.

    Returns True if due calls may remain for another session.
    """
    looks_at = ends_at = 0.0
    while True:
        await _hand_in(session)
        if time.monotonic() > looks_at:
            looks_at = time.monotonic() + TICK
            await _look(session)
        for call_request in await _take(session):
            send(call_request)
        if is_stopping():
            ends_at = ends_at or time.monotonic() + settings.DRAIN_SECONDS
            if time.monotonic() > ends_at:
                for task in session.tasks:
                    task.cancel()
        if session.tasks:
            await _gather(session)
        elif session.over or not await _wait(session):
            return not session.stopped and not is_stopping() and (session.left <= 0 or session.makes_way)


async def _take(session: WorkSession) -> list[CallRequest]:
    """Lease as many calls as `free` allows, but not one by one, because every lease is a transaction."""
    free = session.free
    if session.over or free <= len(session.tasks) // 4:
        return []
    take = partial(calls.take_calls, run=session.run, limit=free, lease=session.lease, writer=session.writer)
    try:
        taken = await session.query(take)
    except Refused as no:
        session.stop(no.sentence)
        return []
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        logger.exception("Judge run %s: the request of a call can't be built", session.run.pk)
        session.stop(_("Stopped by an error in Panelbench: %r") % fault)
        return []
    session.spent, session.held_up, session.reused = taken.spent, taken.held_up, taken.reused
    return taken.call_requests


async def _hand_in(session: WorkSession) -> None:
    """Store the outcomes that arrived and release unsent calls. It can be interrupted and run again: nothing is stored
    twice."""
    if arrived := list(session.arrived):
        await session.query(lambda: store_outcomes(arrived))
        del session.arrived[: len(arrived)]
    if unsent := list(session.unsent):
        unsent_calls = [call_request.call for call_request in unsent]
        await session.query(lambda: calls.release_calls(lease=session.lease, calls=unsent_calls))
        del session.unsent[: len(unsent)]


async def _look(session: WorkSession) -> None:
    """Renew the lease, adjust the limiter, release the calls of dead workers, and check whether the run was paused or
    another run waits for this worker."""
    session.limiter.look()
    await session.query(lambda: calls.extend_leases(lease=session.lease))
    await session.query(calls.release_dead)
    running = JudgeRun.objects.filter(pk=session.run.pk, state=JudgeRun.State.RUNNING)
    if not await session.query(running.exists):
        session.stop()
    unheard = time.monotonic() - session.heard > UNHEARD
    others = await session.query(lambda: calls.holders(session.run, besides=session.lease))
    if unheard or others:
        session.makes_way = await session.query(lambda: calls.other_runs_wait(session.run))


async def _gather(session: WorkSession) -> None:
    """Wait at most TICK seconds for an outcome, and then GATHER seconds for others that arrive with it."""
    try:
        async with asyncio.timeout(TICK):
            await session.news.wait()
            await asyncio.sleep(GATHER)
    except TimeoutError:
        pass
    session.news.clear()


async def _wait(session: WorkSession) -> bool:
    """With no call in flight: sleep until the next call is due. Returns False if the session should end instead."""
    due = await session.query(lambda: calls.next_due(session.run))
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
    if (pause > 0 or session.held_up) and await session.query(lambda: calls.other_runs_wait(session.run)):
        return False  # the sweep enqueues the run again
    await asyncio.sleep(min(max(pause, 0.25), TICK))
    return True


async def _put(session: WorkSession, limited: LimitedConnection, call_request: CallRequest) -> None:
    """Send one call and keep its outcome. No exception leaves this function, so that other calls are not lost."""
    try:
        outcome = await _outcome_of(session, limited, call_request)
    except Exception as fault:
        # An error in our code must not drop the replies of other calls, which were paid for.
        logger.exception("Judge run %s: call %s", session.run.pk, call_request.call.pk)
        session.stop(_("Stopped by an error in Panelbench: %r") % fault)
    else:
        if outcome is None:
            session.unsent.append(call_request)
        else:
            session.arrived.append(outcome)
            if outcome.stops:
                session.stop()  # the run is paused when the bill is stored


async def _outcome_of(
    session: WorkSession, limited: LimitedConnection, call_request: CallRequest
) -> CallOutcome | None:
    """Wait for the limits, mark the request as sent, send it, and read its reply. None if it was not sent."""
    lease, tokens = session.lease, call_request.tokens
    try:
        async with AsyncExitStack() as place:
            if not await _placed(session, place, limited.budget, tokens):
                return None
            if not await session.mark_sent(call_request):
                await limited.budget.give_back(tokens=tokens)
                return None
            answer = await limited.ask(call_request, seconds=session.pace.timeout)
    except client.ProviderUnavailable as unavailable:
        if (unavailable.retry_after or 0) > calls.LONGEST_WAIT:
            session.stop(_retry_later_sentence(unavailable))
        return calls.unavailable_outcome(call_request, unavailable, lease=lease)
    except client.ProviderRefused as no:
        if no.fatal:
            session.stop(no.reason)
        _count_refusal(session, no.reason)
        return calls.refused_outcome(call_request, no, lease=lease)
    session.heard = time.monotonic()
    session.refusals.clear()
    return await _read(session, call_request, answer)


async def _read(session: WorkSession, call_request: CallRequest, answer: client.ProviderAnswer) -> CallOutcome:
    def read() -> CallOutcome:
        variant = session.writer.variant
        return calls.answered_outcome(call_request, lease=session.lease, variant=variant, answer=answer)

    return await asyncio.to_thread(read) if len(answer.readable) > LARGE else read()


def _retry_later_sentence(unavailable: client.ProviderUnavailable) -> str:
    """The reason for the pause if an endpoint asks to wait longer than a run waits."""
    when = timezone.now() + timedelta(seconds=unavailable.retry_after or 0)
    return _("The provider accepts no calls until %(when)s UTC: %(reason)s. Resume after that time.") % {
        "when": f"{when:%Y-%m-%d %H:%M}",
        "reason": unavailable.reason,
    }


def _count_refusal(session: WorkSession, reason: str) -> None:
    """Pause a run after SAME_REFUSALS refusals for the same reason: the error is then in the judge, not in an item."""
    if session.refusals and session.refusals[-1] != reason:
        session.refusals.clear()
    session.refusals.append(reason)
    if len(session.refusals) >= SAME_REFUSALS:
        session.stop(
            _("The provider refused %(count)d calls in a row for the same reason: %(reason)s")
            % {"count": SAME_REFUSALS, "reason": reason}
        )


async def _placed(session: WorkSession, place: AsyncExitStack, budget: limits.RequestBudget, tokens: int) -> bool:
    """Wait for a slot in the limiter and in the endpoint's limits. Returns False if the session sends no more calls."""
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


def store_outcomes(arrived: Sequence[CallOutcome]) -> None:
    """Store the outcomes in one transaction. If this fails, store each in its own transaction, so that an outcome that
    can't be stored does not prevent storing the others."""
    try:
        calls.settle_call(outcomes=arrived)
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        if len(arrived) > 1:
            for outcome in arrived:
                store_outcomes([outcome])
        else:
            logger.exception("The outcome of call %s can't be stored", arrived[0].call.pk)
            calls.settle_call(outcomes=[calls.unstorable_outcome(arrived[0], fault)])


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
