"""Runs by the provider's batch API: calls are uploaded as one file, answered within a day, and paid at its price.

The calls of a batch are under the batch's lease until it has ended, and their worst cases are reserved; replies of
earlier runs are reused first. A job does the steps: write the file, upload it, begin the batch, ask for its status,
fetch and store the results, delete the files at the provider. Each step is stored before the next. If the worker was
killed, the file of a batch that was not begun is written again. To find out whether a batch was begun, the provider is
asked: the batch's metadata contain our lease. So nothing is paid twice. Results are matched by the number of their
attempt (`custom_id`), in any order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

import orjson
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import jobs
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Job
from accounts.refusals import Refused
from judging import calls, judges, runs
from judging.asking import client, endpoints, prices, sessions
from judging.asking.client import Connection, ProviderRefused, ProviderUnavailable
from judging.asking.declarations import OPENAI
from judging.asking.wire import Question, wire_of
from judging.calls import CALLS, CallOutcome
from judging.models import Attempt, Call, CallBatch, Judge, JudgeRun
from judging.requests import CallRequest, CallRequestWriter

logger = logging.getLogger(__name__)

T = TypeVar("T")
MOST_CALLS = 5_000
_MOST_BYTES = 90 * 2**20  # of a file; OpenAI takes 200 MB
BYTES_PER_REPLY, _BYTES_PER_TOKEN, BYTES_PER_PROBABILITY = 2_000, 8, 120  # of the results, at most
UNLIMITED_TOKENS = 4_000  # of a reply for which the judge sets no limit
CHUNK = 250  # calls that are leased, or stored, in one transaction
KEPT = timedelta(days=31)  # a lease longer than any batch, and than the provider keeps its results
POLL, POLL_SIMULATED, POLL_TROUBLE = timedelta(minutes=1), timedelta(seconds=5), timedelta(minutes=5)
SECONDS, SECONDS_OF_A_FILE = 60.0, 600.0
COMPLETED, UNPAID = "completed", ("failed", "expired", "cancelled")
"""The final states of a batch. A request without a result may have been paid if the batch is COMPLETED; in an UNPAID
state it was not carried out."""
MOST_LISTED = 100
CHAT = "/v1/chat/completions"


def begin_batch(*, run_pk: int) -> CallBatch | None:
    """Create the next batch of a run, with its waiting job; the task enqueues the job. None if no batch can begin."""
    if not JudgeRun.objects.filter(pk=run_pk, by_batch=True, state=JudgeRun.State.RUNNING).exists():
        return None
    with transaction.atomic():
        run = JudgeRun.objects.select_for_update(no_key=True, of=("self",)).select_related("project").get(pk=run_pk)
        due = Q(not_before=None) | Q(not_before__lte=timezone.now())
        has_due = run.calls.filter(due, state=Call.State.WAITING).exists()
        if not has_due or run.batches.filter(ended_at=None).exists() or run.state != JudgeRun.State.RUNNING:
            return None
        batch = CallBatch.objects.create(run=run, lease=uuid4())
        jobs.begin(kind=Job.Kind.CALLS, subject=batch, project=run.project, owner=run.created_by)
    return batch


def carry_out_batch(*, batch_pk: int) -> int | None:
    """Do the next steps of a batch, unless another worker has its job. Returns the key of its run if the batch has
    ended, so that the next batch can begin."""
    related = ("run__judge__project", "run__rubric_version", "run__project")
    batch = CallBatch.objects.select_related(*related).filter(pk=batch_pk).first()
    if batch is None or (job := jobs.take_job(batch, Job.Kind.CALLS)) is None:
        return None
    with JobHeartbeat(job):
        later = None if batch.ended_at else _stepped(batch)
        if batch.ended_at:
            later = _without_files(batch)
    if later is None:
        jobs.finish_job(job, done=batch.answered, total=batch.calls)
    else:
        jobs.release(job, due_at=later, done=batch.answered, total=batch.calls)
    return batch.run_id if batch.ended_at else None


def _stepped(batch: CallBatch) -> datetime | None:
    """Do the next steps; returns when to check the batch again, or None if it has ended.

    After an error, a batch that the provider may have begun stays open, because its replies are paid."""
    now, status = timezone.now(), None
    try:
        if _step(batch):
            return None
        return now + (POLL_SIMULATED if batch.run.judge.simulated else POLL)
    except ProviderUnavailable as unavailable:
        CallBatch.objects.filter(pk=batch.pk).update(reason=unavailable.reason)
        pause = POLL_SIMULATED if batch.run.judge.simulated else POLL
        return now + max(pause, timedelta(seconds=unavailable.retry_after or 0))
    except ProviderRefused as no:
        reason, status = no.reason, no.status
    except Refused as no:
        reason = no.sentence
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        logger.exception("Judge run %s: batch %s", batch.run_id, batch.pk)
        reason = _("Stopped by an error in Panelbench: %r") % fault
    runs.pause_run(run=batch.run, reason=reason)
    sent = Attempt.objects.filter(call__lease=batch.lease, outcome=Attempt.Outcome.SENT)
    if (batch.provider_batch or sent.exists()) and status != 404:
        CallBatch.objects.filter(pk=batch.pk).update(reason=reason)
        return now + POLL_TROUBLE
    _end(batch, reason)
    return None


def _step(batch: CallBatch) -> bool:
    """Do the steps until the batch has to wait for the provider. Returns True if the batch has ended."""
    if not batch.input_file and not _upload(batch):
        return batch.ended_at is not None
    if not batch.provider_batch and not _create(batch):
        return True
    batch.run.refresh_from_db(fields=["state"])
    remote = _talk(batch, lambda line: _json(line, f"/batches/{batch.provider_batch}"))
    status = str(remote.get("status") or "")
    if batch.run.state == JudgeRun.State.CANCELLED and status in ("validating", "in_progress"):
        remote = _talk(batch, lambda line: _json(line, f"/batches/{batch.provider_batch}/cancel", {}))
        status = str(remote.get("status") or "")
    counts = remote.get("request_counts")
    batch.status = status[:40]
    batch.answered = _whole(counts.get("completed")) if isinstance(counts, dict) else batch.answered
    _store(batch, "status", "answered")
    Call.objects.filter(lease=batch.lease, state=Call.State.LEASED).update(leased_until=timezone.now() + KEPT)
    if status != COMPLETED and status not in UNPAID:
        return False
    _collect(batch, remote)
    return True


def _whole(count: Any) -> int:
    return count if type(count) is int and 0 <= count < 2**31 else 0


def _store(batch: CallBatch, *names: str) -> None:
    CallBatch.objects.filter(pk=batch.pk).update(**{name: getattr(batch, name) for name in names})


def _talk(batch: CallBatch, say: Callable[[Connection], Awaitable[T]]) -> T:
    """One conversation with the provider, in an event loop of its own: no query may be made in it."""

    async def talk() -> T:
        async with client.connect(endpoint) as line:
            return await say(line)

    endpoint = judges.endpoint(batch.run.judge)
    return asyncio.run(talk())


async def _json(line: Connection, path: str, body: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    response = await client.exchange(line, path, body=body, seconds=SECONDS_OF_A_FILE if more else SECONDS, **more)
    try:
        reply = orjson.loads(response.content)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        raise ProviderUnavailable("The reply is not a JSON object.")
    return reply


# --- out --------------------------------------------------------------------------------------------------------------


def _upload(batch: CallBatch) -> bool:
    """Lease the calls, write them as one file, and upload it; False when there is nothing to ask, or no money left: the
    batch has ended then, or waits while the requests of others fill a cap.

    An interrupted try has sent nothing: what it had leased is given back first.
    """
    CALLS.release(lease=batch.lease)
    refused, spent = judges.refused_by_model(batch.run.judge), ""
    writer, size, most = CallRequestWriter(batch.run), 0, _most_calls(batch.run.judge)
    lines: list[bytes] = []
    while len(lines) < most and size < _MOST_BYTES:
        limit = min(CHUNK, most - len(lines))
        taken = calls.take_calls(run=batch.run, limit=limit, lease=batch.lease, writer=writer)
        Call.objects.filter(lease=batch.lease, state=Call.State.LEASED).update(leased_until=timezone.now() + KEPT)
        for call_request in taken.requests:
            lines.append(_line(batch.run.judge, call_request, refused))
            size += len(lines[-1])
        if not taken.requests and not taken.reused:
            spent = taken.spent
            break
    if not lines:
        if taken.held_up and not spent:
            return False
        if spent:
            runs.pause_run(run=batch.run, reason=spent)
        _end(batch, spent)
        return False
    file = (f"panelbench-{batch.lease}.jsonl", b"\n".join(lines))
    uploaded = _talk(batch, lambda line: _json(line, "/files", {"purpose": "batch"}, file=file))
    batch.input_file, batch.calls, batch.leaves_out = _name(uploaded), len(lines), refused
    _store(batch, "input_file", "calls", "leaves_out")
    return True


def _most_calls(judge: Judge) -> int:
    """Of a batch: so many that their results fit into a file that is read, also with the probabilities of tokens."""
    parameters = judge.parameters
    listed = parameters.get("top_logprobs")
    listed = 1 + (listed if isinstance(listed, int) else 0) if parameters.get("logprobs") else 0
    tokens = prices.token_limit(parameters) or UNLIMITED_TOKENS
    of_reply = BYTES_PER_REPLY + tokens * (_BYTES_PER_TOKEN + listed * BYTES_PER_PROBABILITY)
    return max(1, min(MOST_CALLS, client.LARGEST_FILE // of_reply))


def _name(reply: Mapping[str, Any]) -> str:
    name = reply.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise ProviderUnavailable("The reply has no “id”.")
    return name


def _line(judge: Judge, call_request: CallRequest, refused: Sequence[str]) -> bytes:
    body = _written(judge, call_request, refused).body
    return orjson.dumps({"custom_id": f"{call_request.attempt.pk}", "method": "POST", "url": CHAT, "body": body})


def _written(judge: Judge, call_request: CallRequest, refused: Sequence[str]) -> client.OutgoingRequest:
    asked = Question(
        model=judge.model,
        messages=call_request.messages,
        parameters=call_request.parameters,
        schema=call_request.schema,
    )
    return client.written_request(wire_of(OPENAI), asked, refused)


def _create(batch: CallBatch) -> bool:
    """Begin the batch once; False when its run was paused or its calls are not all there any more."""
    marked = _mark_sent(batch)
    if not marked:
        _end(batch, "")
        return False
    begun = _find(batch) if marked == "before" else None
    if begun is None and not JudgeRun.objects.filter(pk=batch.run_id, state=JudgeRun.State.RUNNING).exists():
        _take_back(batch)  # an earlier try has begun nothing, and its run was paused, cancelled or deleted since
        _end(batch, "")
        return False
    if begun is None:
        wanted = {"input_file_id": batch.input_file, "endpoint": CHAT, "completion_window": "24h"}
        wanted["metadata"] = {"panelbench": str(batch.lease)}  # type: ignore[assignment]
        try:
            begun = _talk(batch, lambda line: _json(line, "/batches", wanted))
        except ProviderRefused:
            _take_back(batch)
            raise
    batch.provider_batch, batch.sent_at = _name(begun), timezone.now()
    _store(batch, "provider_batch", "sent_at")
    return True


def _mark_sent(batch: CallBatch) -> str:
    """Mark all requests as sent. Returns `now`, or `before` if an earlier try has marked them; empty if they must not
    be sent."""
    with transaction.atomic():
        run = JudgeRun.objects.select_for_update(no_key=True).get(pk=batch.run_id)
        held = Attempt.objects.filter(call__lease=batch.lease, call__state=Call.State.LEASED)
        if held.filter(outcome=Attempt.Outcome.SENT).exists():
            return "before"
        pending = held.filter(outcome=Attempt.Outcome.PENDING)
        if run.state != JudgeRun.State.RUNNING or pending.count() != batch.calls:
            return ""
        pending.update(outcome=Attempt.Outcome.SENT)
    return "now"


def _find(batch: CallBatch) -> dict[str, Any] | None:
    """The batch that an interrupted try has begun, found by our lease or its file; None if there is no such batch."""

    async def look(line: Connection) -> dict[str, Any] | None:
        after = ""
        while True:
            page = await _json(line, f"/batches?limit={MOST_LISTED}{after}")
            listed = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            for entry in listed:
                metadata = entry.get("metadata")
                is_ours = isinstance(metadata, dict) and metadata.get("panelbench") == str(batch.lease)
                if is_ours or entry.get("input_file_id") == batch.input_file:
                    return entry
            if not page.get("has_more") or not listed:
                return None
            after = f"&after={listed[-1].get('id')}"

    return _talk(batch, look)


def _take_back(batch: CallBatch) -> None:
    """Mark the requests as unsent again, because the provider has not begun the batch."""
    marked = Attempt.objects.filter(call__lease=batch.lease, outcome=Attempt.Outcome.SENT)
    marked.update(outcome=Attempt.Outcome.PENDING)


def _end(batch: CallBatch, reason: str) -> None:
    """End the batch and release its calls. Sent requests without a result are booked at their worst case."""
    CALLS.release(lease=batch.lease, unanswered=True)
    batch.reason, batch.ended_at = reason, timezone.now()
    _store(batch, "reason", "ended_at")


# --- in ---------------------------------------------------------------------------------------------------------------


def _collect(batch: CallBatch, remote: Mapping[str, Any]) -> None:
    """Store the results of a batch that has ended; a call without a result is asked again or fails."""
    refused = list(batch.leaves_out)
    for name in ("output_file_id", "error_file_id"):
        if file := remote.get(name):
            content = _talk(batch, lambda line, file=file: _content(line, str(file)))  # type: ignore[misc]
            entries = _entries(content)
            del content
            while lines := list(islice(entries, CHUNK)):
                _settle(batch, lines, refused)
    endpoints.learn(batch.run.judge.provider, batch.run.judge.model, refused)
    errors = remote.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    words = [str(error.get("message") or error.get("code")) for error in listed or () if isinstance(error, dict)]
    reason = "; ".join(words)[:400]
    if batch.status in UNPAID:
        _settle_unanswered(batch, reason or _("The batch ended without it: %s.") % batch.status)
    if batch.status == "failed":
        runs.pause_run(run=batch.run, reason=reason or _("The provider refused the batch."))
    _end(batch, reason)


async def _content(line: Connection, file: str) -> bytes:
    return (await client.exchange(line, f"/files/{file}/content", seconds=SECONDS_OF_A_FILE)).content


def _entries(content: bytes) -> Iterator[dict[str, Any]]:
    """The lines that are objects; of a damaged one nobody can say which request it answers."""
    for line in BytesIO(content):  # shares the bytes: they are many
        try:
            entry = client.loaded(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _settle(batch: CallBatch, lines: Iterable[Mapping[str, Any]], refused: list[str]) -> None:
    """Store the results in these lines; a second line for a request changes nothing."""
    by_attempt: dict[int, Mapping[str, Any]] = {}
    for entry in lines:
        name = str(entry.get("custom_id"))
        if name.isascii() and name.isdecimal() and len(name) < 19:
            by_attempt.setdefault(int(name), entry)
    related = ("call__item__dataset", "call__repairs", "call__run__judge")
    rows = Attempt.objects.filter(pk__in=[*by_attempt], call__run=batch.run_id).select_related(*related)
    waited_for = rows.filter(outcome__in=[Attempt.Outcome.SENT, Attempt.Outcome.LOST])
    writer = CallRequestWriter(batch.run)
    outcomes = [_outcome(batch, writer, each, by_attempt[each.pk], refused) for each in waited_for]
    sessions.store_outcomes(CALLS, outcomes, calls.unstorable_outcome)


def _outcome(
    batch: CallBatch, writer: CallRequestWriter, attempt: Attempt, entry: Mapping[str, Any], refused: list[str]
) -> CallOutcome:
    call_request = writer.write(attempt.call)
    call_request.attempt.pk, call_request.attempt.number = attempt.pk, attempt.number
    judge = batch.run.judge
    try:
        answer = client.batch_answer(entry, request=_written(judge, call_request, batch.leaves_out))
    except client.Unsupported as unsupported:
        if unsupported.what not in refused:
            refused.append(unsupported.what)
        try:
            client.keep_token_limit(call_request.parameters, refused)
        except ProviderRefused as no:
            return calls.refused_outcome(call_request, no, lease=batch.lease)
        no_reply = ProviderUnavailable(f"The model refuses {unsupported.what}.")
        return calls.unavailable_outcome(call_request, no_reply, lease=batch.lease)
    except ProviderUnavailable as unavailable:
        return calls.unavailable_outcome(call_request, unavailable, lease=batch.lease)
    except ProviderRefused as no:
        if no.fatal:
            runs.pause_run(run=batch.run, reason=no.reason)
        return calls.refused_outcome(call_request, no, lease=batch.lease)
    outcome = calls.answered_outcome(call_request, lease=batch.lease, variant=writer.variant, answer=answer)
    outcome.attempt.latency = None
    return outcome


def _settle_unanswered(batch: CallBatch, reason: str) -> None:
    """Requests that the provider has not carried out: they cost nothing, and wait to be asked again."""
    related = ("call__item__dataset", "call__repairs", "call__run__judge")
    left = Attempt.objects.filter(call__lease=batch.lease, outcome=Attempt.Outcome.SENT).select_related(*related)
    writer = CallRequestWriter(batch.run)
    while rows := list(left.order_by("pk")[:CHUNK]):
        outcomes = []
        for attempt in rows:
            call_request = writer.write(attempt.call)
            call_request.attempt.pk, call_request.attempt.number = attempt.pk, attempt.number
            outcomes.append(calls.unavailable_outcome(call_request, ProviderUnavailable(reason), lease=batch.lease))
        sessions.store_outcomes(CALLS, outcomes, calls.unstorable_outcome)


def _without_files(batch: CallBatch) -> datetime | None:
    """Delete at the provider what was uploaded, and the results; when to try again where it is not available."""
    if not batch.input_file:
        return None

    async def delete(line: Connection) -> None:
        remote = await _json(line, f"/batches/{batch.provider_batch}") if batch.provider_batch else {}
        for name in (remote.get("output_file_id"), remote.get("error_file_id"), batch.input_file):
            if name:
                try:
                    await client.exchange(line, f"/files/{name}", seconds=SECONDS, remove=True)
                except ProviderRefused as no:
                    if no.status != 404:
                        raise

    try:
        _talk(batch, delete)
    except ProviderUnavailable:
        return timezone.now() + POLL_TROUBLE
    except (ProviderRefused, Refused) as no:
        why = no.reason if isinstance(no, ProviderRefused) else no.sentence
        kept = _("The provider still has the files of this batch: %s") % why
        batch.reason = "; ".join(filter(None, (batch.reason, kept)))
        _store(batch, "reason")
    return None


def _given_up(batch: CallBatch, sentence: str) -> bool:
    """Somebody cancelled the job: nobody fetches the results any more, and the run pauses."""
    if batch.ended_at is not None:
        return False
    runs.pause_run(run=batch.run, reason=sentence)
    _end(batch, sentence)
    return True


KIND = JobKind(
    model=CallBatch,
    task=lambda _batch: "judging.tasks.step_batch",
    fail=_given_up,
    title=lambda batch: str(batch.run),
    address=lambda batch: reverse("run", args=[batch.run.project.slug, batch.run_id]),
    related=("run__project", "run__judge"),
    most_tries=None,
    loses=gettext_lazy("Replies that the provider gives are not fetched, and may be paid. Better: cancel the run."),
)
