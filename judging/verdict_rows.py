"""Imported verdicts as rows. A judge's raw reply, where a file has it, is kept as the reply of a settled call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import orjson
from django.utils import timezone

from annotation import bulk
from annotation.formats.progress import Told
from annotation.formats.shelves import Shelves
from annotation.formats.spool import Plain
from judging.models import Attempt, Call, Verdict
from judging.verdict_fitting import JudgeKey

CallKey = tuple[int, int, int | None, int]  # run, item, criterion (None: one reply for all of them), repeat
CALL = ("id", "run_id", "item_id", "criterion_id", "repeat", "state", "tries")
ATTEMPT = ("id", "call_id", "number", "outcome", "request", "reply", "reason", "served_model", "at")
VERDICT = ("run_id", "item_id", "criterion_id", "repeat", "status", "score", "applicable", "fractional", "coerced")


def write(*, runs: Mapping[JudgeKey, int], rows: Shelves, told: Told | None = None) -> None:
    """Insert fitted verdicts in the caller's transaction, shelf by shelf; ``runs`` are the keys of the judges' runs."""
    with bulk.Load() as load:
        for shelf in rows.told(told):
            _write_shelf(load, runs, shelf)


def _write_shelf(load: bulk.Load, runs: Mapping[JudgeKey, int], shelf: list[Plain]) -> None:
    keys = _call_keys(runs, shelf)
    replies = {key: row[-1] for key, row in zip(keys, shelf, strict=True) if row[-1]}
    attempts = _write_replies(load, replies)
    load.insert(
        Verdict,
        (*VERDICT, "rationale", "attempt_id"),
        [
            (runs[judge], *answer, "", rationale, attempts.get(key))
            for key, (judge, *answer, rationale, _reply) in zip(keys, shelf, strict=True)
        ],
    )


def _call_keys(runs: Mapping[JudgeKey, int], shelf: list[Plain]) -> list[CallKey]:
    """The call behind each row: one for all criteria of an item where they share one reply, else one each."""
    replies: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for judge, item, _criterion, repeat, *_answer, reply in shelf:
        replies[judge, item, repeat].append(reply)
    shared = {place for place, given in replies.items() if len(given) > 1 and len(set(given)) == 1}
    return [
        (runs[judge], item, None if (judge, item, repeat) in shared else criterion, repeat)
        for judge, item, criterion, repeat, *_answer in shelf
    ]


def _write_replies(load: bulk.Load, replies: Mapping[CallKey, str]) -> dict[CallKey, int]:
    """Store the replies; returns the attempt that holds each."""
    now = timezone.now()
    calls = bulk.reserve(Call, len(replies))
    settled = (Call.State.SETTLED.value, 1)
    load.insert(Call, CALL, [(number, *key, *settled) for number, key in zip(calls, replies, strict=True)])
    attempts = bulk.reserve(Attempt, len(replies))
    load.insert(
        Attempt,
        ATTEMPT,
        [
            (number, call, 1, Attempt.Outcome.REPLIED.value, "{}", _kept(reply), "", "", now)
            for number, call, reply in zip(attempts, calls, replies.values(), strict=True)
        ],
    )
    return dict(zip(replies, attempts, strict=True))


def _kept(reply: str) -> str:
    return orjson.dumps({"imported": reply}).decode()
