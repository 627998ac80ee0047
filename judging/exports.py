"""What leaves a project of judging: verdicts as a table, and the tables of judging in a bundle.

An exported table of verdicts has a row per item x judge x criterion x repeat, with the columns of a rating first. A
bundle carries judges, their runs, and the cost and reply of each call.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length

from accounts.refusals import Refused
from annotation.bundle import Incoming, Member, Outgoing, Row
from annotation.exports import SHARED, dataset_versions, on_scales
from annotation.models import Dataset, SelectedItem
from annotation.writers.tables import BATCH, Column, Table
from judging import judges, spending
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict
from judging.reading_reasons import READ_AS, SENTENCES, reason_sentence
from judging.replies import reply_text
from judging.versions import examples

OWN = (
    Column("judge_run", "integer"),
    Column("provider", "word"),
    Column("provider_model"),
    Column("prompt_variant"),
    Column("instruction_language", "word"),
    Column("temperature", "number"),
    Column("seed", "number"),
    Column("fractional", "switch"),
    Column("coerced"),
    Column("reason_code"),
    Column("read_as"),
    Column("why_no_score"),
    Column("call", "integer"),
    Column("served_model"),
    Column("tokens_in", "integer"),
    Column("tokens_out", "integer"),
    Column("cost_usd", "number"),
    Column("latency_seconds", "number"),
    Column("judge_prompt"),
    Column("reply"),
)
"""What only a verdict has; the last two only where they are asked for."""
_ATTEMPT = ("call", "served_model", "tokens_in", "tokens_out", "cost", "latency")
_READ = (
    *(f"item__{column}" for column in ("external_id", "language", "generator", "scenario")),
    *("criterion", "run", "repeat", "status", "score", "applicable", "fractional", "coerced"),
    *(f"attempt__{column}" for column in _ATTEMPT),
    "written",
    "item__dataset",
    "item",
    "reason",
)


def exported_verdicts(
    runs: Collection[JudgeRun], *, names: Mapping[int, str], rationales: bool = True, replies: bool = False
) -> Table:
    """Every verdict of some runs by item, criterion, run and repeat; ``names`` are the judges', by run."""
    rows = _verdicts(runs, names, rationales=rationales, replies=replies)
    columns = SHARED + (OWN if replies else OWN[:-2])
    judge = tuple(Column("judge") if column.name == "rater" else column for column in columns)
    return Table("verdicts", judge, rows)


def _verdicts(
    runs: Collection[JudgeRun], names: Mapping[int, str], *, rationales: bool, replies: bool
) -> Iterator[tuple[Any, ...]]:
    place = ("item__ordinal", "criterion__position", "run", "repeat")
    ordered = Verdict.objects.filter(run__in=runs).annotate(written=Length("rationale")).order_by(*place)
    described = list(_described(runs))
    rubrics = {run.pk: _rubric(run) for run in described}
    datasets = Dataset.objects.filter(wholes__in=[run.dataset_id for run in runs])
    studies = dataset_versions(Dataset.objects.filter(pk__in=[run.dataset_id for run in runs]) | datasets)
    judges = {run.pk: _judge(run) for run in described}
    versions = {run.rubric_version_id for run in runs}
    criteria = on_scales(versions)
    drawn = _drawn_with(described)
    bodies = ("attempt__request", "attempt__reply", "attempt__answer") if replies else ()
    extra = (*(("rationale",) if rationales else ()), *bodies)
    for row in ordered.values_list(*_READ, *extra).iterator(BATCH):
        (external, language, generator, scenario, criterion, run, repeat, status, score, applicable) = row[:10]
        fractional, coerced, call, served, into, out, cost, latency, written, brought, item, reason = row[10:22]
        rubric, file_import = rubrics[run]
        criterion_scale = criteria[criterion]
        # Repeats count from 0 in files, as our importer reads them.
        yield (
            *studies[brought], external, language, generator, scenario, *rubric, criterion_scale.key,
            names[run], "judge", repeat - 1, status, score, status == "ok" and not applicable,
            row[22] if rationales else "", drawn.get((run, item), 1.0), file_import,
            scenario or external, criterion_scale.level, criterion_scale.scale, criterion_scale.labels.get(score, ""),
            written,
            run, *judges[run], fractional, coerced, *_why(reason), call, served or "", into, out,
            None if cost is None else float(cost), latency,
            *((_prompt(row[-3]), _reply(row[-2], row[-1])) if replies else ()),
        )  # fmt: skip


def _why(reason: Mapping[str, str] | None) -> tuple[str, str, str]:
    """Why a verdict has no score on the scale: its code, the rung it was read on, and the sentence."""
    return (reason or {}).get("code", ""), (reason or {}).get("rung", ""), reason_sentence(reason)


def _drawn_with(runs: Collection[JudgeRun]) -> dict[tuple[int, int], float]:
    """By run over a selection and item, the probability that the draw had of choosing it."""
    by_selection = dict[int, list[tuple[int, float]]]()
    selections = {run.selection_id for run in runs if run.selection_id}
    rows = SelectedItem.objects.filter(selection__in=selections, probability__lt=1)
    for selection, item, probability in rows.values_list("selection", "item", "probability"):
        by_selection.setdefault(selection, []).append((item, probability))
    return {(run.pk, item): p for run in runs for item, p in by_selection.get(run.selection_id or 0, ())}


def _described(runs: Collection[JudgeRun]) -> QuerySet[JudgeRun]:
    judge_runs = JudgeRun.objects.filter(pk__in=[run.pk for run in runs])
    return judge_runs.select_related("judge", "dataset", "rubric_version__rubric")


def _rubric(run: JudgeRun) -> tuple[tuple[str, int], int | None]:
    version = run.rubric_version
    return (version.rubric.key, version.number), run.file_import_id


def _judge(run: JudgeRun) -> tuple[Any, ...]:
    judge: Judge = run.judge
    return (
        judge.provider,
        judge.model,
        variant_name(judge),
        judge.variant.get("instruction_language", ""),
        _number(judge.parameters.get("temperature")),
        _number(judge.parameters.get("seed")),
    )


def _number(parameter: Any) -> float | None:
    """A parameter that is a number; what a provider also takes has no place in a column of numbers."""
    return parameter if isinstance(parameter, int | float) and not isinstance(parameter, bool) else None


def variant_name(judge: Judge) -> str:
    """A prompt variant in one cell: the name it was imported under, or its factors."""
    factors = judge.variant
    if name := factors.get("name"):
        return str(name)
    shown = {key: level for key, level in sorted(factors.items()) if key != "instruction_language"}
    return " ".join(f"{key}={_level(level)}" for key, level in shown.items())


LONGEST_LEVEL = 40  # characters of an own text that a cell shows


def _level(level: Any) -> str:
    """A level in a cell: of examples their number, of a long text its beginning."""
    if isinstance(level, list):
        return str(len(level))
    text = str(level).lower()
    return text if len(text) <= LONGEST_LEVEL else f"{text[:LONGEST_LEVEL]}…"


def _prompt(request: Mapping[str, Any] | None) -> str:
    """What the judge was sent: the text of its only message, or all messages as JSON."""
    messages = (request or {}).get("messages") or []
    if len(messages) == 1 and isinstance(text := messages[0].get("content"), str):
        return text
    return json.dumps(messages, ensure_ascii=False) if messages else ""


def _reply(reply: Mapping[str, Any] | None, answer: Mapping[str, Any] | None) -> str:
    """A stored reply as the text that was said."""
    return reply_text(reply, answer) if reply else ""


# --- bundles ----------------------------------------------------------------------------------------------------------

_OURS = ("project", "created_by")
_UNDER_WAY = (Call.State.WAITING, Call.State.LEASED)


def _halted(row: Row, outgoing: Outgoing) -> None:
    """A run is paid for where it was started: elsewhere what is left of it waits until somebody resumes it.

    A bundle holds no designs: a run of one gets a budget of its own, its share of the design's cap.
    """
    is_running = row["state"] == JudgeRun.State.RUNNING
    if is_running and Call.objects.filter(run=row["id"], state__in=_UNDER_WAY).exists():
        row["state"] = JudgeRun.State.PAUSED.value
    run = JudgeRun.objects.select_related("design").get(pk=row["id"])
    if run.design is not None and run.design.budget is not None:
        share = spending.share_of_design(run, run.design)
        row["budget"] = share if run.budget is None else min(share, run.budget)


def _unleased(row: Row, outgoing: Outgoing) -> None:
    if row["state"] == Call.State.LEASED:
        row["state"] = Call.State.WAITING.value


def _without_bodies(row: Row, outgoing: Outgoing) -> None:
    if not outgoing.replies:
        row["request"], row["reply"], row["answer"] = {}, {}, None


def _without_quote(row: Row, outgoing: Outgoing) -> None:
    """Why there is no score goes with a verdict; the words of the reply in it only where replies do."""
    if row["reason"] and not outgoing.replies:
        row["reason"] = {**row["reason"], "found": "…" if row["reason"].get("found") else ""}


def _known_reason(row: Row, incoming: Incoming) -> None:
    reason = row.get("reason")
    if reason is None:
        return
    if not isinstance(reason, dict) or reason.keys() != {"code", "rung", "found"} or reason["code"] not in SENTENCES:
        raise ValueError(f"why there is no score: code (one of {', '.join(SENTENCES)}), rung and found")
    if reason["rung"] not in {"", *READ_AS} or not isinstance(reason["found"], str):
        raise ValueError(f"a rung of {', '.join(READ_AS)}, and what was found as text")


_TAKEN: dict[str, Any] = {"is_pilot": False, "alignment": None}
"""Which runs a bundle holds: designs and alignments are not in it, and so neither are pilots and runs of alignments."""
_TAKEN_OF = {f"run__{name}": value for name, value in _TAKEN.items()}
_TAKEN_OF_CALL = {f"call__{name}": value for name, value in _TAKEN_OF.items()}


def _askable(row: Row, incoming: Incoming) -> None:
    """Refuse a prompt variant that no judge can have; one that was imported with its verdicts has only a name.

    A judge can only be made from one that comes before it.
    """
    if (parent := row.get("parent")) is not None and parent >= row["id"]:
        raise ValueError("a parent that comes before the judge")
    if not isinstance(row["variant"], dict):
        raise ValueError("a variant as an object")
    if not row["provider"]:
        return
    try:
        examples.checked_examples(row["variant"].get("examples", []))
        judges.variant_of(row["variant"])
    except Refused as refused:
        raise ValueError(f"a prompt variant ({refused.sentence})") from None


BUNDLE_MEMBERS = (
    Member(
        name="judges",
        model=Judge,
        rows=lambda project: Judge.objects.filter(project=project),
        refers={"parent": "judges"},
        leaves=_OURS,
        since={"concurrency": 2, "parent": 4, "timeout": 2, "tries": 2},
        on_read=_askable,
    ),
    Member(
        name="runs",
        model=JudgeRun,
        rows=lambda project: JudgeRun.objects.filter(project=project, **_TAKEN),
        refers={
            "judge": "judges",
            "dataset": "datasets",
            "rubric_version": "rubric_versions",
            "continues": "runs",
            "selection": "item_selections",
            "file_import": "intakes",
        },
        written={"file_import": "intake"},
        leaves=(*_OURS, "pays_again", "design", "is_pilot", "by_batch", "alignment"),
        since={"bills_from": 7, "key": 2, "width": 2, "perturbation": 3, "selection": 3},
        on_write=_halted,
    ),
    Member(
        name="calls",
        model=Call,
        rows=lambda project: Call.objects.filter(run__project=project, **_TAKEN_OF),
        refers={"run": "runs", "item": "items", "criterion": "criteria"},
        leaves=("lease", "leased_until", "not_before", "repairs"),
        since={"change": 3, "losses": 7},
        on_write=_unleased,
    ),
    Member(
        name="attempts",
        model=Attempt,
        rows=lambda project: Attempt.objects.filter(call__run__project=project, **_TAKEN_OF_CALL),
        refers={"call": "calls"},
        leaves=("reply_key", "reused_from"),
        since={"answer": 7, "doubt": 7, "estimated": 2, "reserved": 2},
        on_write=_without_bodies,
    ),
    Member(
        name="verdicts",
        model=Verdict,
        rows=lambda project: Verdict.objects.filter(run__project=project, **_TAKEN_OF),
        refers={"run": "runs", "item": "items", "criterion": "criteria", "attempt": "attempts"},
        since={"change": 3, "confidence": 7, "expected": 7, "reason": 7},
        on_write=_without_quote,
        on_read=_known_reason,
    ),
)
