"""What leaves a project of judging: verdicts as a table, and the tables of judging in a bundle.

An exported table of verdicts has a row per item x judge x criterion x repeat, with the columns of a rating first. A
bundle carries judges, their runs, and the cost and reply of each call; and generation plans with all that was written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Length

from accounts.languages import canonical_language
from accounts.models import Project
from accounts.refusals import Refused
from annotation.bundle import Incoming, Member, Outgoing, Row
from annotation.exports import SHARED, dataset_versions, on_scales
from annotation.models import Dataset, SelectedItem
from annotation.readers import FormatError, Problem, excerpt
from annotation.writers.tables import BATCH, Column, Table
from judging import judges, spending
from judging.generation import plans
from judging.generation.specs import parse_spec
from judging.models import (
    Attempt,
    Call,
    GenerationAttempt,
    GenerationFamily,
    GenerationPlan,
    Judge,
    JudgeRun,
    PlanDataset,
    PlanGenerator,
    Realisation,
    Verdict,
)
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


_LONGEST_LEVEL = 40  # characters of an own text that a cell shows


def _level(level: Any) -> str:
    """A level in a cell: of examples their number, of a long text its beginning."""
    if isinstance(level, list):
        return str(len(level))
    text = str(level).lower()
    return text if len(text) <= _LONGEST_LEVEL else f"{text[:_LONGEST_LEVEL]}…"


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


def _paused_plan(row: Row, outgoing: Outgoing) -> None:
    """As a run, a plan is paid for where it was started."""
    under_way = [Realisation.State.WAITING, Realisation.State.LEASED]
    is_running = row["state"] == GenerationPlan.State.RUNNING
    if is_running and Realisation.everything.filter(plan=row["id"], state__in=under_way).exists():
        row["state"] = GenerationPlan.State.PAUSED.value


def _usable_spec(row: Row, incoming: Incoming) -> None:
    """Refuse a spec that no request could be written from, or that is not the one it was frozen as."""
    try:
        is_frozen = parse_spec(row["spec"]).digest == row["spec_digest"]
        tags = [canonical_language(str(tag)) for tag in row["languages"]]
    except (Refused, ValueError) as refused:
        raise ValueError(f"a spec and languages of a plan ({refused})") from None
    if not is_frozen or tags != row["languages"] or not tags or len(set(tags)) < len(tags):
        raise ValueError("a spec with its own digest, and each language of the plan once")


def _asking_parameters(row: Row, incoming: Incoming) -> None:
    """Refuse parameters that no model can be asked with, or by which no limit of a reply is known."""
    try:
        judges.checked_parameters(row["parameters"])
        if row["role"] != PlanGenerator.Role.UTTERANCE_JUDGE:  # it has those of the judge
            plans.refuse_unlimited(row["parameters"])
    except Refused as refused:
        raise ValueError(f"parameters of a generator ({refused.sentence})") from None


def _drawn(row: Row, incoming: Incoming) -> None:
    drawn = row["parameters"]
    if not isinstance(drawn, dict) or not all(type(value) in (str, int) for value in drawn.values()):
        raise ValueError("parameters, each a text or a whole number")


def _unheld_text(row: Row, outgoing: Outgoing) -> None:
    if row["state"] == Realisation.State.LEASED:
        row["state"] = Realisation.State.WAITING.value
    _without_quotes(row, outgoing)
    if row["draft"] and not outgoing.replies:  # a model's words that no reader has accepted: the turn is asked anew
        row["draft"] = ""
        if row["step"] == Realisation.Step.VERDICT:
            row["step"] = Realisation.Step.UTTERANCE.value
        if row["state"] == Realisation.State.WAITING:
            row["problems"] = []


def _without_quotes(row: Row, outgoing: Outgoing) -> None:
    """Why a reply was discarded quotes it: its words only where replies go with it."""
    if not outgoing.replies:
        row["problems"] = [
            {**problem, "values": {name: "…" if isinstance(value, str) else value for name, value in values.items()}}
            for problem in row["problems"]
            if (values := problem["values"]) is not None
        ]


def _lost_elsewhere(row: Row, outgoing: Outgoing) -> None:
    """A request under way is answered where it was sent; elsewhere it is lost, at its worst case."""
    if row["outcome"] == GenerationAttempt.Outcome.SENT:
        row["outcome"], row["cost"] = GenerationAttempt.Outcome.LOST.value, row["reserved"]
        row["estimated"], row["reason"] = True, "No reply was received."
    _without_bodies(row, outgoing)
    _without_quotes(row, outgoing)
    if not outgoing.replies:
        row["text"] = ""


def _known_problems(row: Row, incoming: Incoming) -> None:
    for problem in row["problems"]:
        named = isinstance(problem, dict) and problem.keys() == {"code", "values"} and isinstance(problem["code"], str)
        if not named or not isinstance(problem["values"], dict):
            raise ValueError("problems, each with code and values")


def _shown_text(row: Row, incoming: Incoming) -> None:
    """Refuse turns and fields that no page could show."""
    _known_problems(row, incoming)
    said = isinstance(row["turns"], list) and all(
        isinstance(turn, dict)
        and {"speaker", "text"} <= turn.keys()
        and all(type(part) is str for part in turn.values())
        for turn in row["turns"]
    )
    if not said or not isinstance(row["fields"], dict) or not all(type(one) is str for one in row["fields"].values()):
        raise ValueError("turns, each with speaker and text, and fields as texts")
    if row["state"] == Realisation.State.LEASED:
        raise ValueError("a state that is not leased")


GENERATION_MEMBERS = (
    Member(
        name="plans",
        model=GenerationPlan,
        rows=lambda project: GenerationPlan.objects.filter(project=project),
        refers={
            "utterance_judge": "judges",
            "utterance_rubric": "rubric_versions",
            "source": "datasets",
            "answers_to": "datasets",
        },
        leaves=(*_OURS, "job", "storing"),
        first=9,
        on_write=_paused_plan,
        on_read=_usable_spec,
    ),
    Member(
        name="plan_generators",
        model=PlanGenerator,
        rows=lambda project: PlanGenerator.objects.filter(plan__project=project),
        refers={"plan": "plans"},
        leaves=("prices", "width"),  # those of the instance
        first=9,
        on_read=_asking_parameters,
    ),
    Member(
        name="families",
        model=GenerationFamily,
        rows=lambda project: GenerationFamily.objects.filter(plan__project=project),
        refers={"plan": "plans", "source": "items"},
        first=9,
        on_read=_drawn,
    ),
    Member(
        name="realisations",
        model=Realisation,
        rows=lambda project: Realisation.everything.filter(plan__project=project),
        refers={
            "plan": "plans",
            "family": "families",
            "generator": "plan_generators",
            "simulator": "plan_generators",
            "opening": "realisations",
            "item": "items",
        },
        leaves=("lease", "leased_until", "not_before", "decided_by"),
        first=9,
        on_write=_unheld_text,
        on_read=_shown_text,
    ),
    Member(
        name="generation_attempts",
        model=GenerationAttempt,
        rows=lambda project: GenerationAttempt.objects.filter(realisation__plan__project=project).exclude(
            outcome=GenerationAttempt.Outcome.PENDING
        ),
        refers={"realisation": "realisations"},
        leaves=("reply_key",),
        first=9,
        on_write=_lost_elsewhere,
        on_read=_known_problems,
    ),
    Member(
        name="plan_datasets",
        model=PlanDataset,
        rows=lambda project: PlanDataset.objects.filter(plan__project=project),
        refers={"plan": "plans", "dataset": "datasets"},
        first=9,
    ),
)
"""Generation plans with what was written, decided and paid. Who decided stays behind, as all people do."""


def require_own_texts(project: Project) -> None:
    """Refuse texts whose family, generator or language is not of their plan, and families that its spec can't draw.

    For a project that was just loaded, before its transaction ends: raises ``FormatError``.
    """
    texts = Realisation.everything.filter(plan__project=project)
    strangers = texts.exclude(family__plan=F("plan"), generator__plan=F("plan"))
    strangers |= texts.exclude(simulator=None).exclude(simulator__plan=F("plan"))
    if (stranger := strangers.first()) is not None:
        expected = "a family and generators of the text’s plan"
        raise FormatError(
            Problem("realisations.jsonl", None, "plan", excerpt(stranger.language), expected, "foreign_id")
        )
    for plan in GenerationPlan.objects.filter(project=project).select_related("utterance_judge"):
        _require_conversations(plan, texts.filter(plan=plan))
        used = set(texts.filter(plan=plan).order_by().values_list("language", flat=True).distinct())
        if foreign := used - set(plan.languages):
            expected = "languages of the text’s plan"
            text = excerpt(", ".join(sorted(foreign)))
            raise FormatError(Problem("realisations.jsonl", None, "language", text, expected, "value"))
        spec = parse_spec(plan.spec)
        is_translation = spec.kind == "translation"
        if is_translation != (plan.source is not None) or plan.families.filter(source=None).exists() == is_translation:
            expected = "a source for each family of a plan of translations, and for no other"
            raise FormatError(Problem("families.jsonl", None, "source", excerpt(plan.name), expected, "value"))
        levels = {one.name: {level.value for level in one.levels} for one in spec.parameters}
        for drawn in plan.families.values_list("parameters", flat=True):
            # A plan of answers has in its families the prompts, with their attributes.
            values = {name: drawn.get(name) for name in levels} if spec.sources else drawn
            known = {name: values.get(name) in levels[name] or name in spec.sources for name in levels}
            if values.keys() != levels.keys() or not all(known.values()):
                expected = "a level of each parameter of the plan’s spec"
                raise FormatError(Problem("families.jsonl", None, "parameters", excerpt(str(drawn)), expected, "value"))


def _require_conversations(plan: GenerationPlan, texts: QuerySet[Realisation]) -> None:
    """Refuse a simulation whose rows could not go on: openings of others, a step or turns that do not agree, a verdict
    without a judge; and such rows in another plan."""

    def refuse(name: str, about: object, expected: str) -> None:
        raise FormatError(Problem("realisations.jsonl", None, name, excerpt(str(about)), expected, "value"))

    if not plan.is_simulation:
        if texts.exclude(step="", opening=None, simulator=None, is_opening=False).exists():
            refuse("step", plan.name, "conversations only in a simulation")
        return
    conversations, openings = texts.filter(is_opening=False), texts.filter(is_opening=True)
    its_own = {
        "opening__is_opening": True,
        "opening__plan": F("plan"),
        "opening__family": F("family"),
        "opening__language": F("language"),
        "opening__generator": F("simulator"),
        "opening__repeat": F("repeat"),
    }
    if conversations.exclude(pk__in=conversations.filter(**its_own).values("pk")).exists():
        refuse("opening", plan.name, "an opening of the conversation’s own family, language and user model")
    role = PlanGenerator.Role
    users = conversations.exclude(generator__role=role.GENERATOR, simulator__role=role.USER_MODEL).exists()
    if users or openings.exclude(generator__role=role.USER_MODEL, opening=None, simulator=None).exists():
        refuse("generator", plan.name, "chatbots and user models in their roles")
    judge, asked = plan.utterance_judge, plan.generators.filter(role=role.UTTERANCE_JUDGE)
    to = [(judge.provider, judge.model, judge.parameters)] if judge else []
    if list(asked.values_list("provider", "model", "parameters")) != to:
        raise FormatError(
            Problem("plan_generators.jsonl", None, "role", excerpt(plan.name), "the judge of user turns", "value")
        )
    roles = parse_spec(plan.spec).rules.roles
    left = texts.exclude(state=Realisation.State.WRITTEN).values_list("is_opening", "step", "turn", "turns")
    for is_opening, step, turn, turns in left.iterator(chunk_size=BATCH):
        speakers = [said["speaker"] for said in turns]
        begun = step == Realisation.Step.ANSWER
        is_known = step in ("utterance", "verdict") or (step in ("answer", "opening") and not is_opening)
        if not is_known or (step == Realisation.Step.VERDICT and judge is None) or (is_opening and turn):
            refuse("step", step, "a step of the conversation")
        if speakers != [roles[place % 2] for place in range(2 * turn + begun)]:
            refuse("turns", ", ".join(speakers), "turns by user and chatbot, up to the step")


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
    *GENERATION_MEMBERS,
)
