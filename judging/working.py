"""A worker's share of a run: lease some calls, put them all at once, store each reply as it comes.

One event loop, one client, one thread for the database. Replies that arrive together are stored in one transaction. A
database that goes away is waited for: a reply in hand was paid for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from judging import client, judges, leases, limits, outcomes, runs
from judging.briefs import criterion_brief, item_text
from judging.leases import Outcome
from judging.models import Call, JudgeRun
from judging.prompts import CriterionBrief, Message, PromptVariant, render, response_schema

logger = logging.getLogger(__name__)

CHUNK = 64
TIMEOUT = 90.0  # seconds for one reply
SHIFT = 45.0  # seconds after which no more calls are leased, far below the broker's visibility timeout
PATIENCE = 120.0  # seconds to wait for a database that went away
T = TypeVar("T")


@dataclass(slots=True)
class Shift:
    """What one turn of work knows: the run, its prompt, and where to ask."""

    run: JudgeRun
    variant: PromptVariant
    criteria: dict[int, CriterionBrief]
    database: ThreadPoolExecutor
    lane: limits.Lane = field(default_factory=lambda: limits.Lane(width=16, ceiling=CHUNK))
    ends: float = field(default_factory=lambda: time.monotonic() + SHIFT)
    stop: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more is to be sent."""
        return self.stop or time.monotonic() > self.ends

    async def query(self, verb: Callable[[], T]) -> T:
        """Run a database verb in this shift's own thread, waiting for a database that is away."""
        return await asyncio.get_running_loop().run_in_executor(self.database, _patiently, verb)


def work(run_pk: int) -> bool:
    """Work on a run for one shift; True when due calls were left for the next."""
    run = JudgeRun.objects.select_related("judge", "rubric_version").filter(pk=run_pk).first()
    if run is None or run.state != JudgeRun.State.RUNNING:
        return False
    variant = judges.variant_of(run.judge.variant)
    criteria = {
        each.pk: criterion_brief(each, variant.instruction_language) for each in run.rubric_version.criteria.all()
    }
    with ThreadPoolExecutor(1, thread_name_prefix="database") as database:
        shift = Shift(run=run, variant=variant, criteria=criteria, database=database)
        try:
            return asyncio.run(_work(shift))
        finally:
            database.submit(lambda: connection.close()).result()  # the connection of that thread


async def _work(shift: Shift) -> bool:
    endpoint = judges.endpoint(shift.run.judge)
    try:
        async with (
            client.connect(endpoint) as line,
            limits.budget(endpoint, settings.REDIS_URL or None) as budget,
        ):
            while not shift.over:
                if not await _put_some(shift, line, budget) and not await _wait(shift):
                    return False
    except client.Refused as no:
        await _stop(shift, no.reason)
    return not shift.stop


async def _wait(shift: Shift) -> bool:
    """Sleep until the next call is due, if that is within this shift."""
    due = None if shift.stop else await shift.query(lambda: leases.next_due(shift.run))
    pause = (due - timezone.now()).total_seconds() if due else SHIFT
    if time.monotonic() + pause > shift.ends:
        return False
    await asyncio.sleep(max(pause, 0.05))
    return True


async def _put_some(shift: Shift, line: client.Connection, budget: limits.Budget) -> int:
    """Lease a chunk and see all of it through; returns how many calls that were."""
    if await shift.query(lambda: _is_spent(shift.run)):
        await _stop(shift, _("The budget is spent. Raise it and resume."))
        return 0
    lease, calls = await shift.query(lambda: leases.take(run=shift.run, limit=_chunk(shift, line)))
    done: asyncio.Queue[Outcome | None] = asyncio.Queue()
    keeping, storing = asyncio.create_task(_keep(shift, lease)), asyncio.create_task(_store(shift, done))
    try:
        puts = [_put(shift, line, budget, call, lease, done) for call in calls]
        # A fault of ours in one call must not drop the replies of the others, which were paid for.
        faults = [fault for fault in await asyncio.gather(*puts, return_exceptions=True) if fault]
    finally:
        keeping.cancel()
        await done.put(None)
        await storing
        await shift.query(lambda: leases.release(lease=lease))
    if faults:
        logger.error("Judge run %s stopped", shift.run.pk, exc_info=faults[0])
        await _stop(shift, _("Stopped by a fault of Panelbench: %r") % faults[0])
    return len(calls)


def _chunk(shift: Shift, line: client.Connection) -> int:
    """As many calls as can be put within a shift: what the lane is likely to take, and the endpoint's limit allows."""
    per_minute = line.endpoint.requests_per_minute
    allowed = max(1, int(per_minute * SHIFT / 60)) if per_minute else CHUNK
    return min(CHUNK, 2 * shift.lane.width, allowed)


async def _put(
    shift: Shift,
    line: client.Connection,
    budget: limits.Budget,
    call: Call,
    lease: UUID,
    done: asyncio.Queue[Outcome | None],
) -> None:
    """One request: paced, sent, read, handed over for storing. After a fatal refusal the rest is not sent."""
    criteria = _criteria(shift, call)
    messages = render(item=item_text(call.item), criteria=criteria, variant=shift.variant)
    try:
        async with shift.lane.slot():
            await budget.acquire(tokens=_tokens(messages))
            if shift.over:
                return None
            answer = await client.ask(
                line,
                model=shift.run.judge.model,
                messages=messages,
                parameters=_parameters(shift.run, call),
                schema=response_schema(criteria, shift.variant),
                timeout=TIMEOUT,
            )
    except client.Unavailable as unavailable:
        await done.put(outcomes.later(call, lease, messages, unavailable))
    except client.Refused as no:
        if no.fatal:
            return await _stop(shift, no.reason)
        await done.put(outcomes.refused(call, lease, messages, criteria, no))
    else:
        await done.put(outcomes.read(shift.run, call, lease, messages, criteria, shift.variant, answer))


async def _keep(shift: Shift, lease: UUID) -> None:
    """Keep the lease alive for as long as the chunk takes."""
    while True:
        await asyncio.sleep(leases.LEASE.total_seconds() / 4)
        await shift.query(lambda: leases.extend(lease=lease))


async def _store(shift: Shift, done: asyncio.Queue[Outcome | None]) -> None:
    """Store outcomes until the end mark, everything that has arrived meanwhile in one transaction."""
    ended = False
    while not ended:
        taken = [await done.get()]
        with suppress(asyncio.QueueEmpty):
            while True:
                taken.append(done.get_nowait())
        ended = None in taken
        arrived = [outcome for outcome in taken if outcome is not None]
        if arrived:
            await shift.query(lambda batch=arrived: leases.settle(outcomes=batch))  # type: ignore[misc]


async def _stop(shift: Shift, reason: str) -> None:
    shift.stop = True
    await shift.query(lambda: runs.pause(run=shift.run, reason=reason))


def _criteria(shift: Shift, call: Call) -> list[CriterionBrief]:
    return [shift.criteria[call.criterion_id]] if call.criterion_id else list(shift.criteria.values())


def _parameters(run: JudgeRun, call: Call) -> dict[str, Any]:
    """The judge's parameters; a declared seed moves on with the repeat, so that repeats differ and can be had again."""
    parameters = dict(run.judge.parameters)
    if isinstance(parameters.get("seed"), int):
        parameters["seed"] += call.repeat - 1
    return parameters


def _tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a request takes, reply included: four bytes each, for pacing only."""
    return sum(len(message["content"].encode("utf-8", "replace")) for message in messages) // 4 + 200


def _is_spent(run: JudgeRun) -> bool:
    budget = JudgeRun.objects.values_list("budget", flat=True).get(pk=run.pk)
    return budget is not None and runs.spent(run) >= budget


def _patiently(verb: Callable[[], T]) -> T:
    """Call a verb again while the database is away; a verb is one transaction, so a lost one left nothing behind."""
    gives_up = time.monotonic() + PATIENCE
    while True:
        try:
            return verb()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() > gives_up:
                raise
            logger.warning("The database is away, waiting for it: %s", error)
            time.sleep(0.5)
