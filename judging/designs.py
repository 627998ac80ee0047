"""Designs: a factorial of judges, prompt factors and parameters over the same items, as one object.

Every combination of levels is a cell: a judge, and a run of it. The whole design has one forecast, one cap and one
progress. A pilot asks a few calls beforehand; the runs use its replies.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum, TextChoices, prefetch_related_objects
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Dataset, ItemSelection, RubricVersion
from judging import judges, runs, spending
from judging.asking import budgets, endpoints, prices
from judging.forecasts import PilotForecast, Range, ratio_forecast
from judging.known_replies import AskedTogether
from judging.models import Attempt, Call, DesignCell, Judge, JudgeDesign, JudgeRun, Verdict
from judging.versions import examples

MOST_CELLS = 60
MOST_NAME = 120
PILOT_CALLS = 20
JUDGES = "judge"
PARAMETERS = ("temperature", "top_p", "reasoning_effort")
"""Parameters of a judge that can be factors; the factors of a prompt are in `judges.FACTORS`."""


# --- creating a design ------------------------------------------------------------------------------------------------


def create_design(
    *,
    project: Project,
    name: str,
    judges_asked: Sequence[Judge],
    dataset: Dataset,
    rubric_version: RubricVersion,
    selection: ItemSelection | None = None,
    factors: Mapping[str, Sequence[Any]] | None = None,
    repeats: int = 1,
    budget: Decimal | None = None,
    jury: str = "",
    actor: User | None = None,
) -> JudgeDesign:
    """Create a design of these judges with every combination of ``factors``, and declare its judges; no call is sent.

    ``factors`` maps the name of a prompt factor or parameter to its levels. Refused if the design could not be started.
    """
    access.refuse_archived(project)
    name, given = name.strip(), factors or {}
    factors = {factor: [judges.as_whole(level) for level in levels] for factor, levels in given.items()}
    combinations = _combinations(judges_asked, factors)
    about: dict[str, Any] = {"dataset": dataset, "rubric_version": rubric_version, "selection": selection}
    about |= {"repeats": repeats, "budget": budget}
    prefetch_related_objects([rubric_version], "criteria", "rubric")
    if jury and len(combinations) < 2:
        raise _refusal("jury", _("A jury needs two judges or more. This design has one."))
    try:
        with transaction.atomic():
            shown = {JUDGES: [judge.name for judge in judges_asked], **factors}
            design = JudgeDesign.objects.create(
                project=project, name=name, factors=shown, jury=jury, created_by=actor, **about
            )
            cells = list(_declared_cells(design, combinations, actor))
            if len({cell.judge_id for cell in cells}) < len(cells):
                raise _refusal("factors", _("Two combinations of levels are the same judge. Remove one of the levels."))
            for cell in cells:
                runs.refuse_unfit(judge=cell.judge, **about)
            DesignCell.objects.bulk_create(cells)
            audit.record(actor=actor, project=project, verb="create design", subject=design)
    except IntegrityError:
        if not JudgeDesign.objects.filter(project=project, name=name).exists():
            raise
        sentence = _("Another design of this project is called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(sentence, code="name_taken", fields={"name": sentence}) from None
    return design


Combination = tuple[Judge, dict[str, Any]]


def _combinations(judges_asked: Sequence[Judge], factors: Mapping[str, Sequence[Any]]) -> list[Combination]:
    if not judges_asked:
        raise _refusal("judges", _("Choose at least one judge."))
    if len({judge.pk for judge in judges_asked}) < len(judges_asked):
        raise _refusal("judges", _("Each judge can be chosen once."))
    for factor, levels in factors.items():
        if factor not in judges.FACTORS and factor not in PARAMETERS:
            known = ", ".join((*judges.FACTORS, *PARAMETERS))
            sentence = _("“%(factor)s” is not a factor. Use one of: %(known)s.")
            raise _refusal("factors", sentence % {"factor": factor, "known": known})
        if not levels or any(level in levels[:place] for place, level in enumerate(levels)):
            sentence = _("“%(factor)s” needs levels, each of them once.") % {"factor": factor}
            raise _refusal("factors", sentence)
        if factor in PARAMETERS:
            judges.refuse_unsendable(factor, levels)
    cells = len(judges_asked) * math.prod(map(len, factors.values()))
    if cells > MOST_CELLS:
        sentence = _("A design can have at most %(most)d combinations of levels; this one has %(cells)d.")
        raise _refusal("factors", sentence % {"most": MOST_CELLS, "cells": cells})
    chosen = [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]
    return [(judge, levels) for judge in judges_asked for levels in chosen]


def _declared_cells(
    design: JudgeDesign, combinations: Sequence[Combination], actor: User | None
) -> Iterator[DesignCell]:
    several = len({base.pk for base, _levels in combinations}) > 1
    for position, (base, levels) in enumerate(combinations):
        judge = _declared(design.project, base, levels, actor)
        shown = {**({JUDGES: base.name} if several else {}), **levels}
        yield DesignCell(design=design, position=position, levels=shown, judge=judge)


def _declared(project: Project, base: Judge, levels: Mapping[str, Any], actor: User | None) -> Judge:
    """Declare the variant of ``base`` with these factor levels; its name gets a number if another judge has it."""
    if base.project_id != project.pk:
        raise _refusal("judges", _("“%s” is a judge of another project.") % base.name)
    variant = {**base.variant, **{name: level for name, level in levels.items() if name not in PARAMETERS}}
    parameters = {**base.parameters, **{name: level for name, level in levels.items() if name in PARAMETERS}}
    name = " · ".join([base.name, *(level_in_words(*level) for level in levels.items())])
    about: dict[str, Any] = {"project": project, "provider": base.provider, "model": base.model, "actor": actor}
    about |= {"parent": base, **{pace: getattr(base, pace) for pace in judges.PACES}}
    for ending in ("", *(f" ({number})" for number in range(2, 10))):
        own = f"{name[: MOST_NAME - len(ending)]}{ending}"
        try:
            return judges.declare(name=own, variant=variant, parameters=parameters, **about)
        except Refused as refused:
            if refused.code != "name_taken":
                raise
    raise _refusal("judges", _("Too many judges are called “%s”. Give the judge another name.") % name)


def judges_named(project: Project, names: Sequence[str]) -> list[Judge]:
    """The project's judges that have one of these names."""
    return list(Judge.objects.filter(project=project, name__in=names))


def level_in_words(factor: str, level: Any) -> str:
    """A level as part of a name: `temperature 0.7`, `no explanation`, `reasons`."""
    words = factor.replace("_", " ")
    if isinstance(level, bool):
        return words if level else f"no {words}"
    return f"{words} {level}" if factor in PARAMETERS or not isinstance(level, str) else level


def _refusal(field: str, sentence: str) -> Refused:
    return Refused(sentence, code=field, fields={field: sentence})


# --- the forecast -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignForecast:
    """The forecast for all runs of a design together, with the numbers of `runs.Forecast`.

    ``spent`` is what the runs of the design, its pilot included, have cost so far.
    """

    cells: Sequence[tuple[DesignCell, runs.Forecast]]
    pilot: PilotForecast | None
    spent: Decimal | None

    @property
    def calls(self) -> int:
        """All planned calls."""
        return sum(forecast.calls for _cell, forecast in self.cells)

    @property
    def answered(self) -> int:
        """Calls to which an earlier run, or the pilot, already has a reply."""
        return sum(forecast.answered for _cell, forecast in self.cells)

    @property
    def shared(self) -> int:
        """Further calls with the same request as a call of another judge of the design: the request is sent once."""
        return sum(forecast.shared for _cell, forecast in self.cells)

    @property
    def new_calls(self) -> int:
        """The number of calls that will be sent."""
        return self.calls - self.answered - self.shared

    @property
    def verdicts(self) -> int:
        """The verdicts of all calls."""
        return sum(forecast.verdicts for _cell, forecast in self.cells)

    @property
    def items(self) -> int:
        """The items that every cell asks about."""
        return max((forecast.items for _cell, forecast in self.cells), default=0)

    @property
    def tokens_in(self) -> int:
        """Tokens sent, from the prompts about a few items."""
        return sum(forecast.tokens_in for _cell, forecast in self.cells)

    @property
    def tokens_out(self) -> int:
        """Tokens received, by a rule of thumb."""
        return sum(forecast.tokens_out for _cell, forecast in self.cells)

    @property
    def cost(self) -> Decimal | None:
        """The cost in USD; None if a price is not known."""
        costs = [forecast.cost for _cell, forecast in self.cells]
        return None if any(cost is None for cost in costs) else sum((cost or Decimal(0) for cost in costs), Decimal(0))


def forecast_design(design: JudgeDesign) -> DesignForecast:
    """Count the calls exactly, and estimate tokens and cost; with an interval if a pilot has enough replies."""
    prefetch_related_objects([design], "rubric_version__criteria")
    about = _material(design)
    del about["budget"]
    cells: list[tuple[DesignCell, runs.Forecast]] = []
    together = AskedTogether(design.rubric_version)
    for cell in _cells(design):
        cells.append((cell, runs.forecast(judge=cell.judge, **about, together=together)))
        together.judges.append(cell.judge)
    rough = DesignForecast(cells=cells, pilot=None, spent=None)
    own = Attempt.objects.filter(call__run__design=design)
    return DesignForecast(
        cells=cells, pilot=_pilot_forecast(design, rough), spent=own.aggregate(sum=Sum("cost"))["sum"]
    )


def _pilot_forecast(design: JudgeDesign, rough: DesignForecast) -> PilotForecast | None:
    replied = Q(outcome=Attempt.Outcome.REPLIED) | Q(outcome=Attempt.Outcome.REUSED)
    of_pilot = Attempt.objects.filter(replied, call__run__design=design, call__run__is_pilot=True, call__repairs=None)
    criteria = len(design.rubric_version.criteria.all())
    bases = {cell.judge_id: cell.levels.get(JUDGES, "") for cell in design.cells.all()}
    unanswered, tokens, costs = dict.fromkeys(bases.values()), [], []
    for attempt in of_pilot.select_related("call__run__judge", "reused_from"):
        judge, source = attempt.call.run.judge, attempt.reused_from or attempt
        into, out = _expected_tokens(attempt, criteria)
        if source.tokens_in is not None and source.tokens_out is not None:
            tokens.append((float(source.tokens_in + source.tokens_out), float(into + out)))
            unanswered.pop(bases[judge.pk], None)
        if source.cost is not None and (cost := prices.cost(judge, into, out)):
            costs.append((float(source.cost), float(cost)))
    if not tokens:
        return None
    total = ratio_forecast(tokens, expected=rough.tokens_in + rough.tokens_out, calls=rough.new_calls)
    money = None
    if costs and rough.cost is not None:
        money = ratio_forecast(costs, expected=float(rough.cost), calls=rough.new_calls)
    if unanswered:
        total, money = Range(total.value), Range(money.value) if money else None
    return PilotForecast(calls=len(tokens), tokens=total, cost=money, unanswered=[*unanswered])


def _expected_tokens(attempt: Attempt, criteria: int) -> tuple[int, int]:
    """The tokens sent and received that `runs.forecast` expects for this call."""
    judge = attempt.call.run.judge
    asked = 1 if attempt.call.criterion_id else criteria
    texts = attempt.request.get("messages", [])
    into = sum(len(message["content"].encode("utf-8", "replace")) for message in texts) // 4
    each = runs.TOKENS_PER_SCORE + (runs.TOKENS_PER_RATIONALE if judge.variant.get("explanation", True) else 0)
    return into, asked * each


# --- the pilot --------------------------------------------------------------------------------------------------------


def start_pilot(*, design: JudgeDesign, calls: int = PILOT_CALLS, actor: User | None = None) -> list[JudgeRun]:
    """Plan a pilot: a few calls of the design, spread over its cells. Returns the runs; the caller enqueues each.

    The calls are drawn at random, with the design's id as the seed. The design's runs use the replies of the pilot, and
    their cost counts towards its budget.
    """
    access.refuse_archived(design.project)
    if not 1 <= calls <= 10 * PILOT_CALLS:
        raise _refusal("calls", _("A pilot has from 1 to %d calls.") % (10 * PILOT_CALLS))
    cells = _cells(design)
    prefetch_related_objects([design], "rubric_version__criteria")
    with transaction.atomic():
        locked = JudgeDesign.objects.select_for_update(no_key=True).get(pk=design.pk)
        if locked.started_at or locked.runs.exists():
            raise Refused(_("This design has had its pilot, or has been started."), code="wrong_state")
        for cell in cells:
            runs.refuse_unfit(judge=cell.judge, **_material(design))
        draw = random.Random(design.pk)
        shares = _shares(cells, calls, draw)
        pilot = [
            _pilot_run(design, cell, share, draw, actor) for cell, share in zip(cells, shares, strict=True) if share
        ]
        audit.record(actor=actor, project=design.project, verb="start pilot", subject=design)
    return pilot


def _shares(cells: Sequence[DesignCell], calls: int, draw: random.Random) -> list[int]:
    """How many calls each cell gets: an equal number, plus one of the remainder for some cells. These are drawn at
    random, in turn from each base judge."""
    by_base: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        by_base.setdefault(cell.levels.get(JUDGES, ""), []).append(place)
    drawn = [draw.sample(places, len(places)) for places in draw.sample([*by_base.values()], len(by_base))]
    # All base judges have the same number of cells.
    in_turn = [place for places in zip(*drawn, strict=True) for place in places]
    more = set(in_turn[: calls % len(cells)])
    return [calls // len(cells) + (place in more) for place in range(len(cells))]


def _pilot_run(design: JudgeDesign, cell: DesignCell, calls: int, draw: random.Random, actor: User | None) -> JudgeRun:
    run = JudgeRun.objects.create(
        project=design.project,
        judge=cell.judge,
        dataset=design.dataset,
        rubric_version=design.rubric_version,
        selection=design.selection,
        design=design,
        is_pilot=True,
        prices=endpoints.prices_now(cell.judge.provider),
        created_by=actor,
    )
    criteria: list[int | None] = [None]
    if cell.judge.variant["grouping"] == "single":
        criteria = [criterion.pk for criterion in design.rubric_version.criteria.all()]
    asked = runs.items_to_ask(dataset=design.dataset, after=None, selection=design.selection, judge=cell.judge)
    examples.refuse_locked(cell.judge, asked)
    pks = list(asked.values_list("pk", flat=True))
    items = draw.sample(pks, min(calls, len(pks)))
    runs.insert_calls((run.pk, item, draw.choice(criteria), 1, Call.State.WAITING.value, 0) for item in items)
    return run


# --- start, pause, resume, cancel -------------------------------------------------------------------------------------


def start_design(*, design: JudgeDesign, actor: User | None = None) -> list[JudgeRun]:
    """Plan a run for every cell, in one transaction. If the design was started before, returns the same runs. The
    caller enqueues each."""
    access.refuse_archived(design.project)
    cells = _cells(design)
    with transaction.atomic():
        locked = JudgeDesign.objects.select_for_update(no_key=True).get(pk=design.pk)
        if locked.started_at:
            return list(locked.runs.filter(is_pilot=False).order_by("pk"))
        _refuse_open_pilot(locked)
        prefetch_related_objects([design], "rubric_version__criteria")
        about = _material(design)
        for cell in cells:
            runs.refuse_unfit(judge=cell.judge, **about)
        del about["budget"]
        started = [runs.start_judge_run(judge=cell.judge, design=design, actor=actor, **about) for cell in cells]
        JudgeDesign.objects.filter(pk=design.pk).update(started_at=timezone.now())
        audit.record(actor=actor, project=design.project, verb="start design", subject=design)
    design.refresh_from_db()
    return started


def _refuse_open_pilot(design: JudgeDesign) -> None:
    """Refuse while the pilot, running or paused, has calls to ask, because the runs use its replies."""
    states = set(_unfinished(design).filter(is_pilot=True).values_list("state", flat=True))
    if JudgeRun.State.RUNNING in states:
        sentence = _("The pilot is still running: its replies are used. Wait until it has finished, or cancel it.")
        raise Refused(sentence, code="pilot_runs")
    if JudgeRun.State.PAUSED in states:
        sentence = _("The pilot is paused and has calls to ask. Resume the pilot or cancel it first.")
        raise Refused(sentence, code="pilot_paused")


def _material(design: JudgeDesign) -> dict[str, Any]:
    return {
        "dataset": design.dataset,
        "rubric_version": design.rubric_version,
        "selection": design.selection,
        "repeats": design.repeats,
        "budget": design.budget,
    }


def pause_design(*, design: JudgeDesign, actor: User | None = None) -> list[JudgeRun]:
    """Send no more calls; replies of calls in flight are still stored. Returns the runs that were paused."""
    paused = [run for run in _unfinished(design) if runs.pause_run(run=run, actor=actor)]
    return _noted(design, paused, "paused", actor)


def resume_design(*, design: JudgeDesign, actor: User | None = None) -> list[JudgeRun]:
    """Resume every paused run. Returns the resumed runs; the caller enqueues each."""
    resumed = [run for run in _unfinished(design) if runs.resume_run(run=run, actor=actor)]
    return _noted(design, resumed, "running", actor)


def cancel_design(*, design: JudgeDesign, actor: User | None = None) -> list[JudgeRun]:
    """End every run permanently; verdicts are kept."""
    cancelled = [run for run in _unfinished(design) if runs.cancel_run(run=run, actor=actor)]
    return _noted(design, cancelled, "cancelled", actor)


def rebudget_design(*, design: JudgeDesign, budget: Decimal | None, actor: User | None = None) -> None:
    """Raise, lower or lift the cap over all runs of a design."""
    for cell in _cells(design):
        spending.refuse_cap(cell.judge, budget=budget)
    with transaction.atomic():
        JudgeDesign.objects.filter(pk=design.pk).update(budget=budget)
        audit.record(actor=actor, project=design.project, verb="set design budget", subject=design, fields=["budget"])
    design.refresh_from_db()


def _unfinished(design: JudgeDesign) -> QuerySet[JudgeRun]:
    """The design's runs that have calls to ask; runs of the pilot are included only before the design is started."""
    open_calls = Call.objects.filter(run=OuterRef("pk")).exclude(state__in=runs.DONE)
    own = JudgeRun.objects.filter(Exists(open_calls), design=design)
    if design.started_at:
        own = own.filter(is_pilot=False)
    return own.select_related("project", "judge", "design").order_by("pk")


def _noted(design: JudgeDesign, moved: list[JudgeRun], state: str, actor: User | None) -> list[JudgeRun]:
    if moved:
        audit.record(actor=actor, project=design.project, verb=f"design {state}", subject=design, fields=["state"])
    return moved


# --- reading ----------------------------------------------------------------------------------------------------------


class DesignPhase(TextChoices):
    """The state of a design as a page shows it; it is derived from the runs and not stored."""

    PLANNED = "planned", gettext_lazy("Not started")
    PILOT = "pilot", gettext_lazy("Pilot")
    RUNNING = "running", gettext_lazy("Running")
    PAUSED = "paused", gettext_lazy("Paused")
    FINISHED = "finished", gettext_lazy("Finished")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")


def phase_of(design: JudgeDesign) -> DesignPhase:
    """The phase of a design: RUNNING while a run that is not paused has calls to ask, PAUSED while only paused runs
    have."""
    states = set(_unfinished(design).values_list("state", flat=True))
    live = states - {JudgeRun.State.CANCELLED.value}
    if JudgeRun.State.PAUSED in live and JudgeRun.State.RUNNING not in live:
        return DesignPhase.PAUSED
    if live:
        return DesignPhase.RUNNING if design.started_at else DesignPhase.PILOT
    if not design.started_at:
        return DesignPhase.PLANNED
    return DesignPhase.CANCELLED if states else DesignPhase.FINISHED


def pause_reasons(design: JudgeDesign) -> list[str]:
    """Why runs of a design are paused, each reason once."""
    paused = _unfinished(design).filter(state=JudgeRun.State.PAUSED)
    return list(dict.fromkeys(paused.values_list("reason", flat=True)))


def progress_of_design(design: JudgeDesign) -> runs.RunProgress:
    """The progress of all runs of a design together; before it is started, the progress of its pilot."""
    own = JudgeRun.objects.filter(design=design)
    return runs.progress_of(own.filter(is_pilot=False) if design.started_at else own)


def spent_on(design: JudgeDesign) -> budgets.Committed:
    """What all runs of a design, the pilot included, have cost, and what is reserved for requests in flight."""
    return spending.committed_to_calls(Attempt.objects.filter(call__run__design=design))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One row of a design's table: the progress of a cell's run, its cost and its verdicts.

    ``worth`` is what the replies cost when they were sent, including reused replies of earlier runs. ``paid`` is what
    this run paid, including requests without a reply.
    """

    cell: DesignCell
    run: JudgeRun | None
    planned: int = 0
    done: int = 0
    failed: int = 0
    sent: int = 0
    reused: int = 0
    paid: Decimal | None = None
    worth: Decimal | None = None
    tokens: int = 0
    verdicts: int = 0
    unreadable: int = 0


def cell_results(design: JudgeDesign) -> list[CellResult]:
    """One row for each cell, in order of position; this takes four queries and one for the cells."""
    own = JudgeRun.objects.filter(design=design, is_pilot=False).select_related("judge")
    by_judge = {run.judge_id: run for run in own}
    sums = run_results(by_judge.values())
    rows = [(cell, by_judge.get(cell.judge_id)) for cell in _cells(design)]
    return [CellResult(cell=cell, run=run, **(sums[run.pk] if run else {})) for cell, run in rows]


def run_results(judge_runs: Any) -> dict[int, dict[str, Any]]:
    """Calls, requests, cost and verdicts of each run, as in `CellResult`, by the run's key; three queries."""
    keys = [run.pk for run in judge_runs]
    found: dict[int, dict[str, Any]] = {key: {} for key in keys}
    own_calls = Call.objects.filter(run__in=keys).order_by().values(key=F("run"))
    requests = Attempt.objects.filter(call__run__in=keys).order_by().values(key=F("call__run"))
    read = Verdict.objects.filter(run__in=keys).order_by().values(key=F("run"))
    answered = [Attempt.Outcome.REPLIED, Attempt.Outcome.REUSED]
    counts: tuple[QuerySet[Any, Any], ...] = (
        own_calls.annotate(
            planned=Count("pk"),
            done=Count("pk", filter=Q(state__in=runs.DONE)),
            failed=Count("pk", filter=Q(state=Call.State.FAILED)),
        ),
        requests.annotate(
            sent=Count("pk", filter=~Q(outcome__in=Attempt.UNSENT)),
            reused=Count("pk", filter=Q(outcome=Attempt.Outcome.REUSED)),
            paid=Sum("cost"),
            worth=Sum(Coalesce("reused_from__cost", "cost"), filter=Q(outcome__in=answered)),
            tokens=Sum(Coalesce("tokens_in", 0) + Coalesce("tokens_out", 0)),
        ),
        read.annotate(verdicts=Count("pk"), unreadable=Count("pk", filter=~Q(status=Verdict.Status.OK))),
    )
    for rows in counts:
        for row in rows:
            found[row["key"]] |= {name: value for name, value in row.items() if name != "key"}
    return found


@dataclass(frozen=True, slots=True)
class ListedDesign:
    """A design in a list: its phase, cells, and how many of its calls are done."""

    design: JudgeDesign
    phase: DesignPhase
    cells: int
    planned: int
    done: int


def list_designs(designs: QuerySet[JudgeDesign]) -> list[ListedDesign]:
    """The newest designs first, at most `runs.MOST_LISTED`."""
    listed = []
    for design in designs.select_related("dataset", "rubric_version__rubric").order_by("-pk")[: runs.MOST_LISTED]:
        progress = progress_of_design(design)
        listed.append(ListedDesign(design, phase_of(design), design.cells.count(), progress.planned, progress.done))
    return listed


def _cells(design: JudgeDesign) -> list[DesignCell]:
    return list(design.cells.select_related("judge__project").order_by("position"))
