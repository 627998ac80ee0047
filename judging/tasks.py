"""What workers do for judges. Every task may be delivered twice, or die halfway: rows say what is left to do."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from celery import shared_task, signals
from django.utils.translation import gettext as _

from accounts import jobs
from accounts.models import User
from accounts.refusals import Refused
from annotation.imports import import_jobs, lifecycle, undoing
from annotation.models import Dataset, Import
from annotation.tasks import LONGEST, check_later, undo_here_or_later
from judging import batches, judges, providers, trials, work_sessions
from judging.asking import leases, sessions
from judging.calls import CALLS
from judging.generation import conversing, storing, writing
from judging.imports import studies, verdicts
from judging.models import GenerationPlan, JudgeRun
from judging.versions import proposals

LULL = 30.0  # seconds; where no worker is free so soon, the next sweep asks again


SOFT_LIMIT = int(sessions.LONGEST_SESSION + judges.PACES["timeout"][2] + sessions.LAST)  # seconds
HARD_LIMIT = SOFT_LIMIT + 300  # far below the broker's visibility timeout

signals.worker_init.connect(lambda **_worker: sessions.prepare_stop(), weak=False)
signals.worker_ready.connect(lambda sender, **_worker: sweep_at_start(sender), weak=False)
signals.worker_shutting_down.connect(lambda **_worker: sessions.ask_to_stop(), weak=False)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def work(run_pk: int) -> None:
    """One work session on a run, and the next one queued behind it when due calls are left; or its next batch."""
    if (batch := batches.begin_batch(run_pk=run_pk)) is not None:
        jobs.enqueue(batch)
    elif work_sessions.work_on_run(run_pk):
        jobs.enqueue_task(work.name, run_pk)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def write_texts(generator_pk: int) -> None:
    """One work session on a generator of a plan, and the next one queued behind it when texts are due."""
    if writing.work_on_generator(generator_pk):
        jobs.enqueue_task(write_texts.name, generator_pk)


@shared_task(**LONGEST)
def store_texts(plan_pk: int) -> None:
    """Store many texts of a plan as a dataset, which is then checked."""
    if dataset := storing.carry_out_storing(plan_pk):
        check_later(dataset, dataset.created_by)


def store_texts_here_or_later(plan: GenerationPlan, actor: User, **asked: Any) -> Dataset | None:
    """Store the texts of a plan as a dataset, which is then checked. None if they are many: a worker stores them."""
    if dataset := storing.begin_text_storing(plan=plan, actor=actor, **asked):
        check_later(dataset, actor)
    else:
        jobs.enqueue(plan)
    return dataset


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def simulate(plan_pk: int) -> None:
    """One work session on the conversations of a plan, and the next one queued behind it when steps are due."""
    if conversing.work_on_conversations(plan_pk):
        jobs.enqueue_task(simulate.name, plan_pk)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def test_provider(test_pk: int) -> None:
    """Make the one call of a test of a provider, in a process that has the keys."""
    providers.carry_out_test(test_pk)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def ask_trials(series: str) -> None:
    """Make the calls of a judge's test, in a process that has the keys."""
    trials.carry_out_trials(UUID(series))


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def list_provider_models(provider: str) -> None:
    """Read the endpoint's own list of its models."""
    providers.read_listing(provider)


def list_models_later(names: Iterable[str]) -> None:
    """Enqueue the reading of the lists of models that are old or were never read."""
    for name in providers.outdated_listings(names):
        jobs.enqueue_task(list_provider_models.name, name)


def store_judge_import(file_import: Import, actor: User) -> bool:
    """Store an import of verdicts, or of a whole study; whether that is done, or else begun: a worker stores what is
    large."""
    if file_import.unread is not None:
        sentence = _("The files are still being opened. Store the import when the check is finished.")
        raise Refused(sentence, code="not_checked")
    if file_import.is_large():
        lifecycle.start(file_import=file_import, actor=actor)
        jobs.enqueue(file_import)
        return False
    verdicts.carry_out_verdicts(file_import=file_import, actor=actor)
    return True


@shared_task(**LONGEST)
def check_verdicts(import_pk: int) -> None:
    """Look at a large import of verdicts, and keep what was seen."""
    import_jobs.carry_out_check(import_pk=import_pk, look=verdicts.preview_verdict_import)


@shared_task(**LONGEST)
def store_verdicts(import_pk: int, actor_pk: int | None = None) -> None:
    """Store a started import of verdicts. A refusal is on the import itself, for its page."""
    _finish(verdicts.finish_verdicts, import_pk)


@shared_task(**LONGEST)
def check_study(import_pk: int) -> None:
    """Store a whole study, keep what was seen, and roll it back."""
    import_jobs.carry_out_check(import_pk=import_pk, look=studies.study_preview_report)


@shared_task(**LONGEST)
def store_study(import_pk: int, actor_pk: int | None = None) -> None:
    """Store a started study. A refusal is on the import itself, for its page."""
    _finish(studies.finish_study, import_pk)


def _finish(finish: Callable[..., Import], import_pk: int) -> None:
    if (started := lifecycle.started(import_pk)) is None:
        return
    with suppress(Refused):
        finish(file_import=started, actor=started.job.owner if started.job else None)


def undo_or_enqueue(file_import: Import, actor: User) -> bool:
    """Undo a small import of verdicts or of a whole study, and return True; start to undo a large one, else."""
    undo_kind = studies.remove_study if file_import.kind == Import.Kind.STUDY else verdicts.remove_verdicts
    return undo_here_or_later(file_import, actor, undo=undo_kind)


@shared_task(**LONGEST)
def undo_verdicts(import_pk: int) -> None:
    """Delete what an import of verdicts stored. A refusal is saved in its job, for its page."""
    undoing.carry_out_undo(import_pk=import_pk, undo=verdicts.remove_verdicts)


@shared_task(**LONGEST)
def undo_study(import_pk: int) -> None:
    """Delete what a whole study stored. A refusal is saved in its job, for its page."""
    undoing.carry_out_undo(import_pk=import_pk, undo=studies.remove_study)


@shared_task(**LONGEST)
def propose_version(proposal_pk: int) -> None:
    """Have a model write a version of a judge, and ask that about the tuning items."""
    run = proposals.carry_out_proposal(proposal_pk=proposal_pk)
    if run is not None:
        enqueue_run(run.pk)


@shared_task(**LONGEST)
def step_batch(batch_pk: int) -> None:
    """The next steps of a batch of calls; when it has ended, the next batch of its run, if calls are left."""
    run_pk = batches.carry_out_batch(batch_pk=batch_pk)
    if run_pk is not None and (following := batches.begin_batch(run_pk=run_pk)) is not None:
        jobs.enqueue(following)


@shared_task
def sweep_runs() -> None:
    """Release what dead workers hold, and enqueue the runs, generators of plans and simulations that have work due and
    no worker."""
    for run_pk in CALLS.sweep():
        enqueue_run(run_pk, expires=LULL)
    for generator_pk in writing.TEXTS.sweep():
        enqueue_generator(generator_pk, expires=LULL)
    for plan_pk in conversing.CONVERSATIONS.sweep():
        enqueue_simulation(plan_pk, expires=LULL)
    trials.sweep_trials()


def sweep_at_start(consumer: Any) -> None:
    """When a worker for judge runs starts, sweep without delay for what the worker before it did not finish."""
    queue = consumer.app.conf.task_routes[work.name]["queue"]
    if queue in consumer.app.amqp.queues.consume_from:
        with suppress(*jobs.ABSENT_BROKER):  # the next sweep comes anyway
            sweep_runs.apply_async(queue=queue, expires=LULL)


def enqueue_runs(judge_runs: Iterable[JudgeRun]) -> None:
    """Enqueue each of these runs for the workers."""
    for run in judge_runs:
        enqueue_run(run.pk)


def enqueue_test(test_pk: int) -> None:
    """Enqueue a test of a provider. Without a broker, the test stays without a result."""
    jobs.enqueue_task(test_provider.name, test_pk)


def enqueue_trials(series: UUID) -> None:
    """Enqueue a test of a judge. Without a broker, it stays without a result."""
    jobs.enqueue_task(ask_trials.name, str(series))


def enqueue_run(run_pk: int, *, expires: float | None = None) -> None:
    """Enqueue a run for as many workers as may share it; workers that are not needed find no calls to lease.

    Without a broker the run waits for the sweep.
    """
    for _worker in range(leases.MOST_HOLDERS):
        jobs.enqueue_task(work.name, run_pk, expires=expires)


def enqueue_plan(plan: GenerationPlan) -> None:
    """Enqueue every generator of a plan, or a simulation as a whole."""
    if plan.is_simulation:
        enqueue_simulation(plan.pk)
        return
    for generator in plan.generators.all():
        enqueue_generator(generator.pk)


def enqueue_simulation(plan_pk: int, *, expires: float | None = None) -> None:
    """Enqueue a simulation for as many workers as may share it; without a broker it waits for the sweep."""
    for _worker in range(leases.MOST_HOLDERS):
        jobs.enqueue_task(simulate.name, plan_pk, expires=expires)


def enqueue_generator(generator_pk: int, *, expires: float | None = None) -> None:
    """Enqueue a generator of a plan for as many workers as may share it; without a broker it waits for the sweep."""
    for _worker in range(leases.MOST_HOLDERS):
        jobs.enqueue_task(write_texts.name, generator_pk, expires=expires)
