"""Judge runs: plan their calls, change their state by compare-and-set, and read their progress.

The money spent is the sum over attempts, and a query finds whether a run has finished: no counter is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import chain, product
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Avg, Count, Exists, Max, OuterRef, Q, QuerySet, Sum, TextChoices
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from accounts import access, audit, webhooks
from accounts.deletion import Content
from accounts.models import Event, Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.models import Dataset, Item, ItemSelection, RubricVersion, SelectedItem
from judging import judges, spending
from judging.asking import allowances, bills, endpoints, prices
from judging.asking.budgets import Committed, SentRequests
from judging.daily_spending import daily_spending, spending_total
from judging.known_replies import AskedTogether, UnusedReplies, known_calls, unused_replies
from judging.models import (
    Alignment,
    Attempt,
    Call,
    GenerationPlan,
    Judge,
    JudgeDesign,
    JudgeRun,
    Verdict,
)
from judging.prompts import check
from judging.requests import criterion_brief, prompts_about, refuse_without_pairs
from judging.versions import examples

MAX_REPEATS = 50
SAMPLE = 20
"""The number of items whose prompts are used to forecast tokens."""
TOKENS_PER_SCORE, TOKENS_PER_RATIONALE = 12, 40
DONE = (Call.State.SETTLED, Call.State.FAILED)
MOST_LISTED = 200
LIVE = (JudgeRun.State.RUNNING, JudgeRun.State.PAUSED)


def start_judge_run(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    repeats: int = 1,
    budget: Decimal | None = None,
    again: bool = False,
    by_batch: bool = False,
    key: str | None = None,
    selection: ItemSelection | None = None,
    design: JudgeDesign | None = None,
    alignment: Alignment | None = None,
    actor: User | None = None,
) -> JudgeRun:
    """Plan a run: one call per item, repeat and prompt. The caller enqueues `tasks.work` afterwards.

    With a ``selection`` it asks about its items only, and continues no other run. If the judge has a run on an earlier
    version of the dataset, the new run continues that one: it asks about the new items only. The same ``key`` again
    returns the same run. A second run on the same items and rubric uses the replies of the first, and is refused until
    that has finished; with ``again`` every call is asked and paid again. ``by_batch``: through the batch API.
    """
    access.refuse_archived(judge.project)
    plan: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    plan |= {"repeats": repeats, "budget": budget, "selection": selection}
    if key and (started := _started(judge, key, plan)):
        return started
    refuse_unfit(**plan, alignment=alignment, by_batch=by_batch)
    try:
        with transaction.atomic():
            list(Judge.objects.select_for_update(no_key=True).filter(pk=judge.pk))  # a second start waits here
            asked = {name: plan[name] for name in ("judge", "dataset", "rubric_version", "selection")}
            if not again and (before := open_run_warning(**asked)):
                raise Refused(before, code="already_planned", fields={"again": before})
            run = JudgeRun.objects.create(
                project=judge.project,
                **plan,
                continues=_run_to_continue(**plan),
                pays_again=again,
                by_batch=by_batch,
                prices=endpoints.prices_now(judge.provider),
                key=key or None,
                design=design,
                alignment=alignment,
                created_by=actor,
            )
            insert_calls(_plan(run))
            audit.record(actor=actor, project=judge.project, verb="start judge run", subject=run)
    except (IntegrityError, Refused):
        # Another request with the same key was faster.
        if key and (started := _started(judge, key, plan)):
            return started
        raise
    return run


def _started(judge: Judge, key: str, plan: Mapping[str, Any]) -> JudgeRun | None:
    """The run that was started with this key; refuses a key that was used for a run with another plan."""
    run = JudgeRun.objects.filter(project=judge.project_id, key=key).first()
    if run and (run.perturbation or any(getattr(run, name) != value for name, value in plan.items())):
        raise Refused(_("This key was already used for another run (%d). Use a new key.") % run.pk, code="key_used")
    return run


def open_run_warning(
    *, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, selection: ItemSelection | None = None
) -> str:
    """A sentence if a run of this judge on these items and rubric has calls left to ask; empty if there is none."""
    still_open = Call.objects.filter(run=OuterRef("pk")).exclude(state__in=DONE)
    if selection is not None:
        still_open = still_open.filter(item__in=SelectedItem.objects.filter(selection=selection).values("item"))
    live = JudgeRun.objects.ordinary().filter(judge=judge, dataset=dataset, state__in=LIVE)
    run = live.filter(Exists(still_open), rubric_version=rubric_version).order_by("-pk").first()
    if run is None:
        return ""
    done = run.calls.filter(state=Call.State.SETTLED).count()
    return _(
        "Run %(run)d already uses this judge on these items: %(done)d of %(planned)d calls are answered. Wait until it "
        "has finished, and its replies are used again; or confirm that you want to ask, and pay, again."
    ) % {"run": run.pk, "done": done, "planned": run.calls.count()}


def refuse_unfit(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    repeats: int = 1,
    budget: Decimal | None = None,
    selection: ItemSelection | None = None,
    alignment: Alignment | None = None,
    by_batch: bool = False,
) -> None:
    """Refuse a run that can't be started, with the reason: `refuse_unready`, and what depends on its items."""
    spending.refuse_batches(judge, by_batch)
    about: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    refuse_unready(**about, repeats=None if alignment else repeats, budget=budget)
    _refuse_foreign(dataset, selection)
    after = _run_to_continue(judge, dataset, rubric_version, repeats, selection)
    asked = items_to_ask(dataset=dataset, after=after, selection=selection, judge=judge)
    if not asked.exists():
        all_asked = _("This judge has already been asked about every item of this dataset.")
        of_examples = _("Every item here is one of the judge’s own examples, or of their scenarios. Choose others.")
        has_others = items_to_ask(dataset=dataset, after=after, selection=selection).exists()
        raise Refused(of_examples if has_others else all_asked, code="nothing_to_ask")
    examples.refuse_locked(judge, asked, within=alignment)


def refuse_unready(
    *, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, repeats: int | None, budget: Decimal | None
) -> None:
    """Refuse a judge that can't be asked here about any item. Without ``repeats``, the run asks once."""
    judges.endpoint(judge)
    allowances.allowance(judge.project, judge.provider)
    if dataset.state != Dataset.State.READY or rubric_version.state != RubricVersion.State.PUBLISHED:
        raise Refused(_("A run needs a ready dataset and a published rubric version."), code="not_ready")
    if {dataset.project_id, rubric_version.rubric.project_id} != {judge.project_id}:
        raise Refused(_("Judge, dataset and rubric belong to different projects."), code="other_project")
    if repeats is not None and not 1 <= repeats <= MAX_REPEATS:
        sentence = _("Repeats must be from 1 to %d.") % MAX_REPEATS
        raise Refused(sentence, code="repeats", fields={"repeats": sentence})
    spending.refuse_cap(judge, budget=budget)
    _check_prompt(judge, rubric_version)
    refuse_without_pairs(judge, rubric_version, repeats)


def _refuse_foreign(dataset: Dataset, selection: ItemSelection | None) -> None:
    """Every item of a selection has to be in the dataset."""
    if selection is None:
        return
    parts = Dataset.objects.parts_of(dataset)
    if SelectedItem.objects.filter(selection=selection).exclude(item__dataset__in=parts).exists():
        names = {"dataset": dataset, "selection": selection}
        sentence = _("“%(dataset)s” does not have the items of the selection “%(selection)s”.") % names
        raise Refused(sentence, code="other_dataset", fields={"selection": sentence})


def _check_prompt(judge: Judge, rubric_version: RubricVersion) -> None:
    variant = judges.variant_of(judge.variant)
    examples.example_items(variant.examples, judge.project_id)
    examples.refuse_other_rubric(variant, rubric_version)
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in rubric_version.criteria.all()]
    try:
        check(briefs[:1] if variant.grouping == "single" else briefs, variant)
    except ValueError as error:
        raise Refused(_("This judge can't ask about this rubric: %s.") % error, code="prompt") from None


def insert_calls(planned_calls: Iterable[tuple[Any, ...]]) -> None:
    """Store the waiting calls of runs: rows of run, item, criterion, repeat, state, tries."""
    bulk.insert(Call, ("run_id", "item_id", "criterion_id", "repeat", "state", "tries"), planned_calls)


def _plan(run: JudgeRun) -> Iterator[tuple[Any, ...]]:
    asked = items_to_ask(dataset=run.dataset, after=run.continues, selection=run.selection, judge=run.judge)
    items = list(asked.values_list("pk", flat=True))
    single = run.judge.variant["grouping"] == "single"
    criteria = [criterion.pk for criterion in run.rubric_version.criteria.all()] if single else [None]
    for repeat, item, criterion in product(range(1, run.repeats + 1), items, criteria):
        yield run.pk, item, criterion, repeat, Call.State.WAITING.value, 0


# --- versions of a dataset --------------------------------------------------------------------------------------------


def run_to_continue(
    *, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, repeats: int | None = None
) -> JudgeRun | None:
    """The run on an earlier version of the dataset that a new run continues; None if there is none.

    It has the same judge and rubric version, asks about all items of that version, and has as many ``repeats`` if they
    are given. The latest version is preferred, then the newest run. A run that is cancelled, or continues a cancelled
    one, does not qualify: it leaves items unasked.
    """
    earlier = Dataset.objects.parts_of(dataset).exclude(pk=dataset.pk)
    whole = JudgeRun.objects.ordinary().filter(selection=None)
    candidates = whole.filter(judge=judge, rubric_version=rubric_version, dataset__in=earlier)
    if repeats is not None:
        candidates = candidates.filter(repeats=repeats)
    newest_first = candidates.select_related("dataset").order_by("-dataset_id", "-pk")
    return next((run for run in newest_first if not _is_cut_short(run)), None)


def _run_to_continue(
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    repeats: int,
    selection: ItemSelection | None = None,
    budget: Decimal | None = None,
) -> JudgeRun | None:
    """The run that a new one with this plan continues; a run over a selection continues none."""
    if selection is not None:
        return None
    return run_to_continue(judge=judge, dataset=dataset, rubric_version=rubric_version, repeats=repeats)


def _is_cut_short(run: JudgeRun) -> bool:
    return any(judge_run.state == JudgeRun.State.CANCELLED for judge_run in whole_run([run]))


def items_to_ask(
    *, dataset: Dataset, after: JudgeRun | None, selection: ItemSelection | None = None, judge: Judge | None = None
) -> QuerySet[Item]:
    """The items that a run on ``dataset`` asks about, in order: those of a ``selection``, or those that were not asked
    by the run that it continues (``after``); without the examples in the ``judge``'s prompt."""
    items = Item.objects.of(dataset)
    if selection is not None:
        items = items.filter(pk__in=SelectedItem.objects.filter(selection=selection).values("item"))
    elif after:
        items = items.exclude(dataset__in=Dataset.objects.parts_of(after.dataset))
    return items if judge is None else examples.without_examples(items, judge)


def whole_run(runs: Iterable[JudgeRun]) -> list[JudgeRun]:
    """The runs and all runs that they continue: together they have the verdicts on all items."""
    by_key = {run.pk: run for run in runs}
    while missing := {run.continues_id for run in by_key.values() if run.continues_id} - {*by_key}:
        by_key |= {run.pk: run for run in JudgeRun.objects.filter(pk__in=missing).select_related("judge")}
    return list(by_key.values())


# --- forecast ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Calls, tokens and cost of a run, if no call fails. Tokens and cost are estimates; no cost without a price.

    A run that `continues` an earlier one asks about new `items`. Calls that are `answered` by earlier runs, or `shared`
    with judges of the design that send the same, are not sent: `cost` is that of the others, `cost_again` of all."""

    calls: int
    answered: int
    shared: int = 0
    verdicts: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    tokens_in_again: int
    tokens_out_again: int
    cost_again: Decimal | None
    items: int
    continues: JudgeRun | None
    unused: Sequence[UnusedReplies] = ()

    @property
    def new_calls(self) -> int:
        """The number of calls that will be sent."""
        return self.calls - self.answered - self.shared


def forecast(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    repeats: int = 1,
    selection: ItemSelection | None = None,
    explains: bool = False,
    by_batch: bool = False,
    together: AskedTogether | None = None,
) -> Forecast:
    """Calls and verdicts are exact, tokens are estimated from the prompts of a few items. ``explains``: also the
    earlier replies that are not used. ``together``: the judges that are asked at the same time."""
    variant = judges.variant_of(judge.variant)
    criteria = sorted(rubric_version.criteria.all(), key=lambda criterion: criterion.position)
    after = _run_to_continue(judge, dataset, rubric_version, repeats, selection)
    asked = items_to_ask(dataset=dataset, after=after, selection=selection, judge=judge)
    pks = list(asked.values_list("pk", flat=True))
    sample = Item.objects.filter(pk__in=pks[:: max(1, len(pks) // SAMPLE)][:SAMPLE]).select_related("dataset")
    sampled_prompts = list(chain.from_iterable(prompts_about(variant, criteria, item) for item in sample))
    per_item = len(criteria) if variant.grouping == "single" else 1
    about: dict[str, Any] = {"judge": judge, "rubric_version": rubric_version, "asked": asked, "repeats": repeats}
    known = known_calls(**about, together=together)
    calls, verdicts = len(pks) * per_item * repeats, len(pks) * len(criteria) * repeats
    unused = unused_replies(**about) if explains and known.answered < calls else ()
    into = calls * sum(prompt.tokens for prompt in sampled_prompts) // max(1, len(sampled_prompts))
    out = verdicts * (TOKENS_PER_SCORE + (TOKENS_PER_RATIONALE if variant.explanation else 0))
    new = calls - known.answered - known.shared
    new_in, new_out = (tokens * new // max(1, calls) for tokens in (into, out))
    return Forecast(
        calls=calls,
        answered=known.answered,
        shared=known.shared,
        verdicts=verdicts,
        tokens_in=new_in,
        tokens_out=new_out,
        cost=prices.cost(judge, new_in, new_out, by_batch=by_batch),
        tokens_in_again=into,
        tokens_out_again=out,
        cost_again=prices.cost(judge, into, out, by_batch=by_batch),
        items=len(pks),
        continues=after,
        unused=unused,
    )


# --- changing the state of a run --------------------------------------------------------------------------------------


def pause_run(*, run: JudgeRun, actor: User | None = None, reason: str = "") -> bool:
    """Send no more calls; replies to those in flight are stored. False if the run was not running."""
    return _change_state(run, (JudgeRun.State.RUNNING,), JudgeRun.State.PAUSED, actor, reason or _("Paused by hand."))


class PaidCalls:
    """The calls of judges, as a kind of paid requests. The calls of an imported run were sent from elsewhere: booked is
    what its file says."""

    titles: ClassVar = {"runs": gettext_lazy("Runs"), "imported": gettext_lazy("Imported runs")}

    def spent(self, project: int, provider: str, since: datetime | None) -> Committed:
        """What the calls of a project's runs at a provider have cost, and what is reserved."""
        attempts = Attempt.objects.filter(call__run__project=project, call__run__judge__provider=provider)
        return spending.committed_to_calls(attempts if since is None else attempts.filter(at__gte=since))

    def stop(self, project: int, *, provider: str, model: str, reason: str) -> None:
        """Pause all runs of a project that ask this model, because its bills are wrong for all of them."""
        running = JudgeRun.objects.filter(project=project, state=JudgeRun.State.RUNNING)
        alike = running.filter(judge__provider=provider, judge__model=model)
        for judge_run in alike.select_related("project").order_by("pk"):
            pause_run(run=judge_run, reason=reason)

    def sent(self, project: Project, judge: Judge | None) -> Iterator[SentRequests]:
        """The attempts of runs, and those of imported runs."""
        attempts = Attempt.objects.filter(call__run__project=project).exclude(outcome__in=Attempt.UNSENT)
        if judge is not None:
            attempts = attempts.filter(call__run__judge=judge)
        person = "call__run__created_by"
        yield SentRequests("runs", attempts.filter(call__run__file_import=None), "at", person)
        yield SentRequests("imported", attempts.exclude(call__run__file_import=None), "at", person)


def pause_all(project: Project, reason: str) -> None:
    """Pause all running runs of a project, because it is archived or deleted."""
    for run in JudgeRun.objects.filter(project=project, state=JudgeRun.State.RUNNING).select_related("project"):
        pause_run(run=run, reason=reason)


def judging_contents(project: Project) -> list[Content]:
    """Counts of this app's rows in a project, and what it has paid."""
    booked = spending_total(daily_spending(project))
    counted = (
        (booked.requests, ngettext_lazy("%d request", "%d requests")),
        (Verdict.objects.filter(run__project=project).count(), ngettext_lazy("%d verdict", "%d verdicts")),
        (Judge.objects.filter(project=project).count(), ngettext_lazy("%d judge", "%d judges")),
        (
            GenerationPlan.objects.filter(project=project).count(),
            ngettext_lazy("%d generation plan", "%d generation plans"),
        ),
    )
    costs = [Content(_("costs of %s USD, as they were booked") % f"{booked.cost:.2f}")] if booked.cost else []
    return [Content(words % count) for count, words in counted if count] + costs


def resume_run(*, run: JudgeRun, actor: User | None = None) -> bool:
    """Resume a paused run; the caller enqueues `tasks.work`. Refused if nothing may be spent or no budget can hold."""
    if run.state == JudgeRun.State.PAUSED:
        allowances.allowance(run.project, run.judge.provider)
        spending.refuse_cap(run.judge, budget=spending.budget_of(run), run=run)
    return _change_state(run, (JudgeRun.State.PAUSED,), JudgeRun.State.RUNNING, actor, "")


def cancel_run(*, run: JudgeRun, actor: User | None = None) -> bool:
    """End a run permanently; stored verdicts are kept."""
    return _change_state(run, LIVE, JudgeRun.State.CANCELLED, actor, _("Cancelled."))


def rebudget(*, run: JudgeRun, budget: Decimal | None, actor: User | None = None) -> None:
    """Change or remove a run's budget."""
    spending.refuse_cap(run.judge, budget=budget, run=run)
    with transaction.atomic():
        JudgeRun.objects.filter(pk=run.pk).update(budget=budget)
        audit.record(actor=actor, project=run.project, verb="set budget", subject=run, fields=["budget"])
    run.refresh_from_db(fields=["budget"])


RERUN = (
    Call.State.FAILED.value,
    *(status.value for status in Verdict.Status if status != Verdict.Status.OK),
)
"""Statuses with which a call may be asked again: failed, or that of a verdict without a valid score."""


def rerun_failed(*, run: JudgeRun, statuses: Sequence[str] = RERUN[:1], actor: User | None = None) -> int:
    """Ask calls of a run again, unless it was cancelled: failed ones, or those with a verdict of these ``statuses``.

    Returns how many; refused if there are none. Scores that were read stay; a verdict without a score is replaced by
    that of the new reply. Every new request is paid.
    """
    if not statuses:
        sentence = _("Choose which calls to repeat.")
        raise Refused(sentence, code="status", fields={"statuses": sentence})
    if unknown := [status for status in statuses if status not in RERUN]:
        sentence = _("“%(status)s” is not a status. Use one of: %(statuses)s.")
        sentence %= {"status": unknown[0], "statuses": ", ".join(RERUN)}
        raise Refused(sentence, code="status", fields={"statuses": sentence})
    repeatable = Verdict.objects.filter(run=run, attempt__call=OuterRef("pk"), status__in=statuses)
    wanted = Q(state=Call.State.SETTLED) & Q(Exists(repeatable))
    if Call.State.FAILED in statuses:
        wanted |= Q(state=Call.State.FAILED)
    with transaction.atomic():
        open_run = JudgeRun.objects.select_for_update(no_key=True).filter(pk=run.pk, state__in=LIVE).exists()
        again = Call.objects.filter(wanted, run=run)
        fresh = {"state": Call.State.WAITING, "tries": 0, "losses": 0, "not_before": None, "repairs": None}
        count = again.update(**fresh) if open_run else 0
        if not count:
            raise Refused(_("No call of this run can be repeated."), code="nothing_failed")
        JudgeRun.objects.filter(pk=run.pk).update(bills_from=timezone.now())
        audit.record(actor=actor, project=run.project, verb="rerun calls", subject=run, fields=sorted(statuses))
    return count


def calls_to_repeat(run: JudgeRun) -> dict[str, int]:
    """How many calls `rerun_failed` repeats for each status of `RERUN`; a call with several statuses counts in each."""
    settled = Verdict.objects.filter(run=run, attempt__call__state=Call.State.SETTLED).order_by()
    counts = dict(settled.values_list("status").annotate(calls=Count("attempt__call", distinct=True)))
    counts[Call.State.FAILED.value] = run.calls.filter(state=Call.State.FAILED).count()
    return {status: counts[status] for status in RERUN if counts.get(status)}


def _change_state(run: JudgeRun, before: Sequence[str], after: str, actor: User | None, reason: str) -> bool:
    with transaction.atomic():
        changes: dict[str, Any] = {"state": after, "reason": reason[:400]}
        if after == JudgeRun.State.RUNNING:
            changes["bills_from"] = timezone.now()  # what was billed before says nothing of what is billed now
        done = JudgeRun.objects.filter(pk=run.pk, state__in=before).update(**changes)
        if done:
            audit.record(actor=actor, project=run.project, verb=f"judge run {after}", subject=run, fields=["state"])
    run.refresh_from_db(fields=["state", "reason"])
    return bool(done)


# --- progress ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is, from its rows; tokens, cost and seconds per reply over every attempt that was sent.

    ``estimated`` is the part of ``cost`` that is the worst case of requests whose cost is unknown. ``reserved`` is what
    requests in flight may cost, beside ``cost``. ``lost`` counts requests whose reply never arrived, ``reused`` calls
    that a reply to an earlier run settled. ``verdicts`` by status, and those without a score on the scale by the code
    of their reason, the most frequent first.
    """

    planned: int
    waiting: int
    in_flight: int
    settled: int
    failed: int
    verdicts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal | None = None
    estimated: Decimal | None = None
    reserved: Decimal | None = None
    doubted: int = 0
    lost: int = 0
    reused: int = 0
    latency: float | None = None

    @property
    def done(self) -> int:
        """Calls that are settled or have failed."""
        return self.settled + self.failed

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return self.tokens_in + self.tokens_out

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.planned == self.done

    @property
    def percent(self) -> int:
        """Whole percent done, 100 only when finished."""
        return 100 if self.finished else 100 * self.done // self.planned


def run_progress(run: JudgeRun) -> RunProgress:
    """The progress of one run; three aggregate queries."""
    return progress_of([run])


def progress_of(judge_runs: Iterable[JudgeRun] | QuerySet[JudgeRun]) -> RunProgress:
    """The progress of several runs, added up."""
    planned_calls = Call.objects.filter(run__in=judge_runs).order_by()
    by_state = dict(planned_calls.values_list("state").annotate(count=Count("pk")))
    sums = Attempt.objects.filter(call__run__in=judge_runs).aggregate(
        attempts=Count("pk", filter=~Q(outcome__in=Attempt.UNSENT)),
        reused=Count("pk", filter=Q(outcome=Attempt.Outcome.REUSED)),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        estimated=Sum("cost", filter=Q(estimated=True)),
        cost=Sum("cost"),
        reserved=Sum("reserved", filter=Q(outcome__in=Attempt.OPEN)),
        doubted=Count("pk", filter=Q(outcome=Attempt.Outcome.REPLIED) & ~Q(doubt="")),
        lost=Count("pk", filter=Q(outcome=Attempt.Outcome.LOST)),
        latency=Avg("latency"),
    )
    verdicts, reasons = _by_status(judge_runs)
    return RunProgress(
        planned=sum(by_state.values()),
        waiting=by_state.get(Call.State.WAITING, 0),
        in_flight=by_state.get(Call.State.LEASED, 0),
        settled=by_state.get(Call.State.SETTLED, 0),
        failed=by_state.get(Call.State.FAILED, 0),
        verdicts=verdicts,
        reasons=reasons,
        attempts=sums["attempts"],
        tokens_in=sums["tokens_in"] or 0,
        tokens_out=sums["tokens_out"] or 0,
        cost=sums["cost"],
        estimated=sums["estimated"],
        reserved=sums["reserved"],
        doubted=sums["doubted"],
        lost=sums["lost"],
        reused=sums["reused"],
        latency=sums["latency"],
    )


def _by_status(judge_runs: Iterable[JudgeRun] | QuerySet[JudgeRun]) -> tuple[dict[str, int], dict[str, int]]:
    by_status, by_reason = Counter[str](), Counter[str]()
    verdicts = Verdict.objects.filter(run__in=judge_runs).order_by()
    for status, reason, count in verdicts.values_list("status", "reason__code").annotate(count=Count("pk")):
        by_status[status] += count
        if reason:
            by_reason[reason] += count
    return dict(by_status), dict(by_reason.most_common())


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model name in the replies of a run, the number of these replies, and whether it differs from the model that
    was asked."""

    model: str
    replies: int
    is_other: bool


def served_models(judge_runs: Iterable[JudgeRun]) -> list[ServedModel]:
    """The model names in the replies of these runs, most replies first."""
    asked = {run.judge.model for run in judge_runs}
    attempts = Attempt.objects.filter(call__run__in=judge_runs).exclude(served_model="").order_by()
    counts = sorted(attempts.values_list("served_model").annotate(Count("pk")), key=lambda row: (-row[1], row[0]))
    return [
        ServedModel(served, count, not any(bills.is_same_model(model, served) for model in asked))
        for served, count in counts
    ]


def announce_finish(run_pk: int) -> None:
    """Notify the project's webhooks once nothing is left to ask. Call it after settling, in the same transaction.

    The run is locked first: if two workers settle the last calls at the same time, the second sees the first's changes.
    """
    run = JudgeRun.objects.filter(pk=run_pk, state__in=LIVE, project__webhooks__off="").first()
    if run is None:
        return
    JudgeRun.objects.select_for_update(no_key=True).get(pk=run_pk)
    if Call.objects.filter(run=run, state__in=[Call.State.WAITING, Call.State.LEASED]).exists():
        return
    counted = Call.objects.filter(run=run).aggregate(
        calls=Count("pk"), failed=Count("pk", filter=Q(state=Call.State.FAILED))
    )
    about = {"run": run.pk, "judge": run.judge_id, "dataset": run.dataset_id, "rubric_version": run.rubric_version_id}
    webhooks.announce(project=run.project_id, event=Event.RUN, subject=run.pk, payload={**about, **counted})


class Phase(TextChoices):
    """The state of a run as a page shows it: finished when nothing is left to ask, unless cancelled or imported."""

    RUNNING = "running", gettext_lazy("Running")
    PAUSED = "paused", gettext_lazy("Paused")
    FINISHED = "finished", gettext_lazy("Finished")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")
    IMPORTED = "imported", gettext_lazy("Imported")


def phase(run: JudgeRun, *, finished: bool) -> Phase:
    """The phase of a run; ``finished``: whether all its calls are settled or have failed."""
    if run.file_import_id:
        return Phase.IMPORTED
    if finished and run.state != JudgeRun.State.CANCELLED:
        return Phase.FINISHED
    return Phase(run.state)


def _has_open_calls() -> Exists:
    return Exists(Call.objects.filter(run=OuterRef("pk")).exclude(state__in=DONE))


def with_open_calls(judge_runs: QuerySet[JudgeRun]) -> QuerySet[JudgeRun]:
    """The runs, each annotated with `has_open_calls`; imported runs have no open calls."""
    return judge_runs.annotate(has_open_calls=_has_open_calls())


def has_open_calls(run: JudgeRun) -> bool:
    """Whether the run has calls that wait or are in flight."""
    return run.calls.exclude(state__in=DONE).exists()


def in_phase(judge_runs: QuerySet[JudgeRun], wanted: Phase) -> QuerySet[JudgeRun]:
    """The runs that are in this phase."""
    if wanted == Phase.IMPORTED:
        return judge_runs.exclude(file_import=None)
    ours = judge_runs.filter(file_import=None)
    if wanted == Phase.CANCELLED:
        return ours.filter(state=JudgeRun.State.CANCELLED)
    if wanted == Phase.FINISHED:
        return ours.filter(~_has_open_calls(), state__in=LIVE)
    return ours.filter(_has_open_calls(), state=wanted.value)


def run_revision(runs: Iterable[JudgeRun] | QuerySet[JudgeRun]) -> str:
    """A text that changes whenever a verdict of these runs is added or replaced; stored verdicts are never edited."""
    verdicts = Verdict.objects.filter(run__in=runs).aggregate(count=Count("pk"), newest=Max("pk"))
    return f"{verdicts['count']}:{verdicts['newest'] or 0}"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One row: the run, and how many of its calls are done."""

    run: JudgeRun
    planned: int
    done: int
    failed: int

    @property
    def phase(self) -> Phase:
        return phase(self.run, finished=self.planned == self.done)


def list_runs(runs: QuerySet[JudgeRun]) -> list[ListedRun]:
    """The newest runs first, at most ``MOST_LISTED``, with their counts of calls; one query."""
    counted = runs.select_related("judge", "dataset", "selection", "rubric_version__rubric").annotate(
        planned=Count("calls"),
        done=Count("calls", filter=Q(calls__state__in=DONE)),
        failed=Count("calls", filter=Q(calls__state=Call.State.FAILED)),
    )
    return [ListedRun(run, run.planned, run.done, run.failed) for run in counted.order_by("-pk")[:MOST_LISTED]]
