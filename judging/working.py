"""A worker's share of a run: keep a window of calls in flight, and store each reply as it comes.

One event loop, one client, one thread for the database. The loop has a thread of its own: a signal that ends the
worker raises in the main thread, wherever that is, and an event loop interrupted there is torn and gives nothing back.
The loop goes round: store what came back, take as many calls anew. Replies that arrive together are stored in one
transaction. Little more is leased than is in flight, and what was not sent when the run is paused goes back. A database
that goes away is waited for: a reply in hand was paid for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from judging import client, judges, leases, limits, outcomes, runs
from judging.briefs import criterion_brief, item_text
from judging.client import Endpoint
from judging.leases import Outcome
from judging.models import Call, JudgeRun
from judging.outcomes import Question
from judging.prompts import CriterionBrief, Message, PromptVariant, render, response_schema

logger = logging.getLogger(__name__)

MOST_IN_FLIGHT = 64
TIMEOUT = 90.0  # seconds for one reply
SHIFT = 60.0  # seconds after which no more calls are leased
PLACE = 30.0  # seconds a leased call waits for its place: the lane's, the endpoint's limit, a pause it asked for
LAST = 220.0  # seconds after which a database that is away is waited for no longer; Celery's limit is 240
TICK = 2.0  # seconds between two looks at the run itself
GATHER = 0.02  # seconds in which replies gather to be stored together
T = TypeVar("T")


@dataclass(slots=True)
class Shift:
    """One turn of work: the run, its prompt, where to ask, what is in flight and what has come back."""

    run: JudgeRun
    variant: PromptVariant
    criteria: dict[int, CriterionBrief]
    endpoint: Endpoint
    database: ThreadPoolExecutor
    lane: limits.Lane = field(default_factory=lambda: limits.Lane(width=16, ceiling=MOST_IN_FLIGHT))
    lease: UUID = field(default_factory=uuid4)
    began: float = field(default_factory=time.monotonic)
    in_flight: int = 0
    arrived: list[Outcome] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False
    trouble: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing more is to be taken."""
        return self.stopped or self.left <= 0

    @property
    def left(self) -> float:
        """Seconds in which more may be taken."""
        return self.began + SHIFT - time.monotonic()

    @property
    def room(self) -> int:
        """How many more calls to take: twice what the lane is wide, so that no place waits for the store."""
        per_minute = self.endpoint.requests_per_minute
        window = 2 * self.lane.width
        paced = max(1, int(per_minute * PLACE / 60)) if per_minute else window
        return min(window, paced) - self.in_flight

    async def query(self, verb: Callable[[], T]) -> T:
        """Run a database verb in this shift's own thread, waiting for a database that is away."""
        gives_up = self.began + LAST
        return await asyncio.get_running_loop().run_in_executor(self.database, _patiently, verb, gives_up)

    def stop(self, trouble: str = "") -> None:
        """Send nothing more; calls in flight come in. With ``trouble`` the run is paused for that reason."""
        self.stopped, self.trouble = True, self.trouble or trouble
        self.news.set()


def work(run_pk: int) -> bool:
    """Work on a run for one shift; True when due calls were left for the next."""
    run = JudgeRun.objects.select_related("judge", "rubric_version").filter(pk=run_pk).first()
    if run is None or run.state != JudgeRun.State.RUNNING or leases.holders(run) >= leases.MOST_HOLDERS:
        return False
    try:
        endpoint, variant = judges.endpoint(run.judge), judges.variant_of(run.judge.variant)
    except Refused as no:
        runs.pause(run=run, reason=no.sentence)
        return False
    criteria = {
        each.pk: criterion_brief(each, variant.instruction_language) for each in run.rubric_version.criteria.all()
    }
    with ThreadPoolExecutor(1, thread_name_prefix="database") as database:
        shift = Shift(run=run, variant=variant, criteria=criteria, endpoint=endpoint, database=database)
        try:
            return _worked_apart(shift)
        finally:
            database.submit(_let_go).result()


def _worked_apart(shift: Shift) -> bool:
    """Work the shift in a thread of its own; whatever is raised in this one meanwhile cuts it short in good order."""
    with asyncio.Runner() as runner, ThreadPoolExecutor(1, thread_name_prefix="shift") as thread:
        loop = runner.get_loop()
        task = loop.create_task(_work(shift))
        try:
            return thread.submit(loop.run_until_complete, task).result()
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)
            raise


async def _work(shift: Shift) -> bool:
    try:
        async with (
            client.connect(shift.endpoint) as line,
            limits.budget(shift.endpoint, settings.REDIS_URL or None) as budget,
            asyncio.TaskGroup() as calls,
        ):
            return await _go_round(shift, lambda call: calls.create_task(_put(shift, line, budget, call)))
    except client.Refused as no:
        shift.stop(no.reason)
        return False
    finally:
        # Cancelled or not: what came back is stored, what was not sent is given back.
        await _hand_in(shift)
        await shift.query(lambda: leases.release(lease=shift.lease))
        if shift.trouble:
            await shift.query(lambda: runs.pause(run=shift.run, reason=shift.trouble))


async def _go_round(shift: Shift, send: Callable[[Call], object]) -> bool:
    """Store what came back, take as many anew; until the shift is over and everything in flight is in."""
    looks_at = 0.0
    while True:
        await _hand_in(shift)
        if time.monotonic() > looks_at:
            looks_at = time.monotonic() + TICK
            await _look(shift)
        for call in await _take(shift):
            shift.in_flight += 1
            send(call)
        if shift.in_flight:
            await _gather(shift)
        elif shift.over or not await _wait(shift):
            return shift.left <= 0 and not shift.stopped


async def _take(shift: Shift) -> list[Call]:
    """As many calls as there is room for; not one by one, for each taking is a transaction."""
    room = shift.room
    if shift.over or room <= shift.in_flight // 4:
        return []
    _lease, calls = await shift.query(lambda: leases.take(run=shift.run, limit=room, lease=shift.lease))
    return calls


async def _hand_in(shift: Shift) -> None:
    """Store what came back. Cut short, it is handed in again, and nothing of it is stored twice."""
    if arrived := list(shift.arrived):
        await shift.query(lambda: _store(arrived))
        del shift.arrived[: len(arrived)]


async def _look(shift: Shift) -> None:
    """Keep the lease alive, and see whether the run was paused or cancelled meanwhile."""
    await shift.query(lambda: leases.extend(lease=shift.lease))
    running = JudgeRun.objects.filter(pk=shift.run.pk, state=JudgeRun.State.RUNNING)
    if not await shift.query(running.exists):
        shift.stop()


async def _gather(shift: Shift) -> None:
    """Wait until something comes back, at most a tick, and a moment more for what comes with it."""
    try:
        async with asyncio.timeout(TICK):
            await shift.news.wait()
            await asyncio.sleep(GATHER)
    except TimeoutError:
        pass
    shift.news.clear()


async def _wait(shift: Shift) -> bool:
    """With nothing in flight: sleep until the next call is due, if that is within this shift."""
    due = await shift.query(lambda: leases.next_due(shift.run))
    pause = (due - timezone.now()).total_seconds() if due else SHIFT
    if pause > shift.left:
        return False
    if pause <= 0 and await shift.query(lambda: runs.is_spent(shift.run)):
        shift.stop(_("The budget is spent, or what is left of it does not pay another call. Raise it and resume."))
        return False
    await asyncio.sleep(min(max(pause, 0.25), TICK))
    return True


async def _put(shift: Shift, line: client.Connection, budget: limits.Budget, call: Call) -> None:
    """See one call through. Whatever comes of it, the round hears that its place is free."""
    try:
        if outcome := await _asked(shift, line, budget, call):
            shift.arrived.append(outcome)
    except client.Refused as fatal:
        shift.stop(fatal.reason)
    except Exception as fault:
        # A fault of ours must not drop the replies of other calls, which were paid for.
        logger.exception("Judge run %s: call %s", shift.run.pk, call.pk)
        shift.stop(_("Stopped by a fault of Panelbench: %r") % fault)
    finally:
        shift.in_flight -= 1
        shift.news.set()


async def _asked(shift: Shift, line: client.Connection, budget: limits.Budget, call: Call) -> Outcome | None:
    """One request: paced, sent, read. None when it was not sent; a fatal refusal passes through."""
    question = _question(shift, call)
    try:
        async with AsyncExitStack() as place:
            if not await _placed(shift, place, budget, question.messages):
                return None
            answer = await client.ask(
                line,
                model=shift.run.judge.model,
                messages=question.messages,
                parameters=question.parameters,
                schema=response_schema(question.criteria, shift.variant),
                timeout=TIMEOUT,
            )
    except client.Unavailable as unavailable:
        return outcomes.later(question, unavailable)
    except client.Refused as no:
        if no.fatal:
            raise
        return outcomes.refused(question, no)
    return outcomes.read(question, judge=shift.run.judge, variant=shift.variant, answer=answer)


async def _placed(shift: Shift, place: AsyncExitStack, budget: limits.Budget, messages: Sequence[Message]) -> bool:
    """Wait for a place in the lane and in the endpoint's limits; False when it took too long or the shift stopped."""
    try:
        async with asyncio.timeout(PLACE):
            await place.enter_async_context(shift.lane.slot())
            await budget.acquire(tokens=_tokens(messages))
    except TimeoutError:
        return False
    return not shift.stopped


def _question(shift: Shift, call: Call) -> Question:
    criteria = [shift.criteria[call.criterion_id]] if call.criterion_id else list(shift.criteria.values())
    messages = render(item=item_text(call.item), criteria=criteria, variant=shift.variant)
    return Question(
        call=call, lease=shift.lease, criteria=criteria, messages=messages, parameters=_parameters(shift.run, call)
    )


def _parameters(run: JudgeRun, call: Call) -> dict[str, Any]:
    """The judge's parameters; a declared seed moves on with the repeat, so that repeats differ and can be had again."""
    parameters = dict(run.judge.parameters)
    if isinstance(parameters.get("seed"), int):
        parameters["seed"] += call.repeat - 1
    return parameters


def _tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a request takes, reply included: four bytes each, for pacing only."""
    return sum(len(message["content"].encode("utf-8", "replace")) for message in messages) // 4 + 200


def _store(arrived: Sequence[Outcome]) -> None:
    """Store what arrived in one transaction; when something in it can't be stored, each alone, so that it takes no
    other reply with it."""
    try:
        leases.settle(outcomes=arrived)
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        if len(arrived) > 1:
            for outcome in arrived:
                _store([outcome])
        else:
            logger.exception("The outcome of call %s can't be stored", arrived[0].call.pk)
            leases.settle(outcomes=[outcomes.unstorable(arrived[0], fault)])


def _let_go() -> None:
    connection.close()  # this thread's own


def _patiently(verb: Callable[[], T], gives_up: float) -> T:
    """Call a verb again while the database is away; a verb run twice does what it does once."""
    while True:
        try:
            return verb()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() > gives_up:
                raise
            logger.warning("The database is away, waiting for it: %s", error)
            time.sleep(0.5)
