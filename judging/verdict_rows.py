"""Imported verdicts as rows. A judge's raw reply, where a file has it, is kept as the reply of a settled call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from django.utils import timezone

from annotation import bulk
from judging.models import Attempt, Call, JudgeRun, Verdict
from judging.verdict_fitting import Fitting

CallKey = tuple[int, int | None, int]  # item, criterion (None: one reply for all of them), repeat
CHUNK = 20_000
VERDICT = ("run_id", "item_id", "criterion_id", "repeat", "status", "score", "applicable", "fractional", "coerced")


def write(run: JudgeRun, rows: Sequence[Fitting]) -> None:
    """Insert the verdicts of one run, in the caller's transaction."""
    keys = _call_keys(rows)
    attempts = _attempts(run, {keys[place]: each.row.reply for place, each in enumerate(rows) if each.row.reply})
    bulk.insert(
        Verdict,
        (*VERDICT, "rationale", "attempt_id"),
        (_verdict(run, each, attempts.get(keys[place])) for place, each in enumerate(rows)),
    )


def _verdict(run: JudgeRun, each: Fitting, attempt: int | None) -> tuple[Any, ...]:
    return (
        run.pk,
        each.item,
        each.criterion.pk,
        each.row.repeat + 1,  # files count from 0
        str(each.status),
        each.score,
        each.applicable,
        each.fractional,
        "",
        each.row.rationale,
        attempt,
    )


def _call_keys(rows: Sequence[Fitting]) -> list[CallKey]:
    """The call behind each row: one for all criteria of an item where they share one reply, else one each."""
    replies: dict[tuple[int, int], list[str]] = defaultdict(list)
    for each in rows:
        replies[each.item, each.row.repeat].append(each.row.reply)
    shared = {place for place, given in replies.items() if len(given) > 1 and len(set(given)) == 1}
    return [
        (each.item, None if (each.item, each.row.repeat) in shared else each.criterion.pk, each.row.repeat + 1)
        for each in rows
    ]


def _attempts(run: JudgeRun, replies: dict[CallKey, str]) -> dict[CallKey, int]:
    """Store the replies; returns the attempt that holds each."""
    bulk.insert(
        Call,
        ("run_id", "item_id", "criterion_id", "repeat", "state", "tries"),
        ((run.pk, *key, Call.State.SETTLED.value, 1) for key in replies),
    )
    made = Call.objects.filter(run=run).values_list("item_id", "criterion_id", "repeat", "pk")
    calls: dict[CallKey, int] = {(item, criterion, repeat): pk for item, criterion, repeat, pk in made.iterator(CHUNK)}
    bulk.insert(
        Attempt,
        ("call_id", "number", "outcome", "request", "reply", "reason", "served_model", "at"),
        _attempt_rows(calls, replies),
    )
    stored = Attempt.objects.filter(call__run=run).values_list(
        "call__item_id", "call__criterion_id", "call__repeat", "pk"
    )
    return {(item, criterion, repeat): pk for item, criterion, repeat, pk in stored.iterator(CHUNK)}


def _attempt_rows(calls: dict[CallKey, int], replies: dict[CallKey, str]) -> Iterator[tuple[Any, ...]]:
    now = timezone.now()
    for key, reply in replies.items():
        yield (
            calls[key],
            1,
            Attempt.Outcome.REPLIED.value,
            "{}",
            orjson.dumps({"imported": reply}).decode(),
            "",
            "",
            now,
        )
