"""`panelbench run_judge`: put a judge on a dataset, by workers or in this very process.

Exit status: 0 started, or with --wait and --here finished; 1 ended paused, cancelled or with failed calls; 2 asked for
wrongly.
"""

from __future__ import annotations

import json
import signal
import time
from argparse import ArgumentParser
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from accounts.models import Project
from accounts.refusals import Refused
from annotation.imports import targets
from annotation.models import Dataset, ItemSelection, RubricVersion
from judging import batches, judges, runs, tasks, work_sessions
from judging.calls import CALLS
from judging.models import CallBatch, Judge, JudgeRun
from judging.study_presets import STUDY_PRESETS

ENDED_BADLY, USAGE = 1, 2
LOOK = 1.0  # seconds between two looks at a run
PACES = {"timeout": "seconds for a reply", "tries": "tries of a call", "concurrency": "calls in flight"}
STILL = 20.0  # seconds without a reply before asking whether anybody works


class Command(BaseCommand):
    help = "Start a judge run; --wait for the workers to finish it, or do it --here without any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--dataset", required=True, metavar="D", help='a name (its newest version) or "name v2"')
        parser.add_argument("--rubric", metavar="R", help='a key (its newest version) or "key v2"')
        parser.add_argument("--selection", metavar="S", help="only the items of this selection of a campaign")
        parser.add_argument("--repeats", type=int, metavar="N")
        parser.add_argument("--budget", type=money, metavar="USD", help="pause before more than this is spent")
        again = "ask, and pay, again where an earlier run of the judge has a reply; otherwise that reply is used"
        parser.add_argument("--again", action="store_true", help=again)
        batch = "ask by the provider's batch API: replies within a day, at the price of batches"
        parser.add_argument("--batch", action="store_true", help=batch)
        _add_judge(parser.add_argument_group("the judge: a declared one, or the definition of a new one"))
        add_waiting(parser)

    def handle(self, **options: Any) -> None:
        try:
            answered, run = _started(options)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Run {run.pk}: {run.judge} on {run.dataset}, {runs.run_progress(run).planned} calls")
        if answered and not options["again"]:
            self.stdout.write(f"{answered} of them are answered by earlier runs and cost nothing (--again pays again)")
        self.carry_out(run, options)

    def carry_out(self, run: JudgeRun, options: dict[str, Any]) -> None:
        """Work on a run here, or leave it to the workers; then say how it ended, unless nobody waits for that."""
        if options["here"]:
            self.work_here(run)
        else:
            tasks.enqueue_run(run.pk)
            if not options["wait"]:
                return
            self._watch(run, lambda: runs.run_progress(run).finished)
        self.conclude(run)

    def work_here(self, run: JudgeRun) -> None:
        """Session after session in a thread, so that progress can be shown; Ctrl-C or SIGTERM pauses the run.

        What is in flight then comes in: it is paid for.
        """
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with ThreadPoolExecutor(1) as pool:
                while run.state == JudgeRun.State.RUNNING and not runs.run_progress(run).finished:
                    CALLS.sweep()  # there may be no beat
                    session: Future[None] = pool.submit(_session, run.pk)
                    self._watch(run, session.done)
                    session.result()
        finally:
            signal.signal(signal.SIGTERM, before)

    def _watch(self, run: JudgeRun, is_over: Callable[[], bool]) -> None:
        """Print progress as it changes, until it is over or the run is at rest."""
        shown, since = None, time.monotonic()
        try:
            while not is_over() and run.state == JudgeRun.State.RUNNING:
                if (line := _line(runs.run_progress(run))) != shown:
                    shown, since = line, time.monotonic()
                    self.stdout.write(line)
                elif time.monotonic() - since > STILL:
                    since = time.monotonic()
                    self.stdout.write("There is no progress. Is a worker running? Start one with: panelbench up")
                time.sleep(LOOK)
                run.refresh_from_db(fields=["state", "reason"])
        except KeyboardInterrupt:
            runs.pause_run(run=run, reason="Interrupted at the command line.")

    def conclude(self, run: JudgeRun) -> None:
        progress = runs.run_progress(run)
        run.refresh_from_db(fields=["state", "reason"])
        self.stdout.write(_line(progress))
        if not progress.finished:
            raise CommandError(f"{run.get_state_display()}: {run.reason}", returncode=ENDED_BADLY)
        if progress.failed:
            raise CommandError(f"{progress.failed} calls failed; their reasons are in the log.", returncode=ENDED_BADLY)


def add_waiting(parser: ArgumentParser) -> None:
    """Who does the work, and whether the command waits for it."""
    after = parser.add_mutually_exclusive_group()
    after.add_argument("--wait", action="store_true", help="show progress until the workers have finished")
    after.add_argument("--here", action="store_true", help="do the work in this process, without a queue")


def _add_judge(group: Any) -> None:
    group.add_argument("--judge", metavar="NAME", help="its name; with --model the name of the judge to declare")
    group.add_argument("--provider", help="a declared provider")
    group.add_argument("--model", help="the model, as the provider calls it")
    group.add_argument("--parameters", type=json.loads, default={}, metavar="JSON", help='such as {"temperature": 0}')
    studies = "as a study had it: sets the prompt, the parameters, the rubric and the repeats"
    group.add_argument("--as", dest="study", choices=list(STUDY_PRESETS), help=studies)
    for factor in (name for name in judges.FACTORS if name not in ("explanation", "repair")):
        levels = [str(level) for level in judges.FACTORS[factor]]
        group.add_argument(f"--{factor.replace('_', '-')}", choices=levels)
    for name, (default, least, most) in judges.PACES.items():
        meaning = f"{PACES[name]}, {least} to {most} (the provider's, or {default})"
        group.add_argument(f"--{name}", type=int, metavar="N", help=meaning)
    again = "show the model a reply that can't be read, and ask once more"
    group.add_argument("--repair", action="store_const", const=True, help=again)
    for factor, most in judges.TEXTS.items():
        group.add_argument(f"--{factor.replace('_', '-')}", metavar="TEXT", help=f"at most {most} characters")
    where = 'drawn from a selection, such as {"selection": 12, "per_class": 2, "seed": 1}'
    group.add_argument("--examples", type=json.loads, metavar="JSON", help=where)
    group.add_argument("--no-explanation", action="store_const", const=False, dest="explanation")


def _started(options: dict[str, Any]) -> tuple[int, JudgeRun]:
    """How many calls earlier runs have replies to, and the run."""
    project = named_project(options["project"])
    dataset = chosen_dataset(project, options["dataset"])
    about: dict[str, Any] = {"dataset": dataset}
    if options["study"]:
        made = _as_study(project, options)
        options["repeats"] = options["repeats"] or made.repeats
        about |= {"judge": made.judge, "rubric_version": made.rubric_version}
    else:
        about |= {"judge": _judge(project, options), "rubric_version": chosen_rubric(project, options["rubric"])}
    options["repeats"] = options["repeats"] or 1
    about |= {"repeats": options["repeats"], "selection": _selection(project, dataset, options["selection"])}
    about["by_batch"] = options["batch"]
    runs.refuse_unfit(**about, budget=options["budget"])
    answered = runs.forecast(**about).answered
    return answered, runs.start_judge_run(**about, budget=options["budget"], again=options["again"])


def _as_study(project: Project, options: dict[str, Any]) -> judges.StudyJudge:
    """The judge and the rubric of a study; the options that it sets are refused."""
    factors = (*judges.FACTORS, *judges.TEXTS, "examples", "rubric", "parameters")
    if set_too := sorted(name for name in factors if options[name] not in (None, {})):
        raise Refused(f"--as sets these itself: {', '.join(set_too)}. Leave them out, or leave out --as.")
    named = {"provider": options["provider"] or "", "model": options["model"] or "", "name": options["judge"] or ""}
    return judges.declare_as_study(project=project, study=options["study"], actor=None, **named)


def _judge(project: Project, options: dict[str, Any]) -> Judge:
    """The judge of that name, or one declared from the options."""
    if options["model"]:
        factors = (*judges.FACTORS, *judges.TEXTS, "examples")
        variant = {factor: options[factor] for factor in factors if options[factor] is not None}
        levels = (str(variant[factor]) for factor in judges.FACTORS if factor in variant)
        name = options["judge"] or " ".join([options["model"], *levels])
        plain = {key: options[key] for key in ("model", "parameters", *judges.PACES)}
        return judges.declare(project=project, name=name, provider=options["provider"] or "", variant=variant, **plain)
    return named_judge(project, options["judge"])


def named_judge(project: Project, name: str | None) -> Judge:
    judge = Judge.objects.filter(project=project, name=name).first()
    if judge is None:
        there_are = ", ".join(Judge.objects.filter(project=project).values_list("name", flat=True)) or "none"
        raise Refused(
            f"Name a judge with --judge (there are: {there_are}), or declare one with --provider and --model."
        )
    return judge


def named_project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise Refused(f"There is no project at /p/{slug}/.")
    return project


def chosen_dataset(project: Project, named: str) -> Dataset:
    """The dataset that a command names: its newest version, or the one after ` v`."""
    name, version = _versioned(named)
    datasets = Dataset.objects.ready().filter(project=project, name__in=(name, named)).order_by("-version")
    dataset = datasets.filter(version=version).first() if version else datasets.first()
    if dataset is None:
        raise Refused(f"There is no dataset {named!r} in {project.slug}.")
    return dataset


def _selection(project: Project, dataset: Dataset, name: str | None) -> ItemSelection | None:
    """The newest selection of that name of a campaign on the dataset."""
    if name is None:
        return None
    parts = Dataset.objects.parts_of(dataset)
    there = ItemSelection.objects.filter(campaign__project=project, campaign__dataset__in=parts)
    selection = there.filter(name=name).order_by("-pk").first()
    if selection is None:
        there_are = ", ".join(there.values_list("name", flat=True)) or "none"
        raise Refused(f"No campaign on {dataset} has a selection {name!r} (there are: {there_are}).")
    return selection


def chosen_rubric(project: Project, named: str | None) -> RubricVersion:
    """The published rubric version that a command names."""
    if named is None:
        raise Refused("Name a rubric with --rubric, or a study with --as.")
    key, number = _versioned(named)
    published = RubricVersion.objects.published().filter(rubric__project=project).select_related("rubric")
    versions = published.filter(rubric__key__in=(key, named))
    version = versions.filter(number=number).first() if number else versions.order_by("-number").first()
    version = version or next((row for row in published.order_by("-number") if targets.is_called(row, named)), None)
    if version is None:
        raise Refused(f"There is no published rubric {named!r} in {project.slug}.")
    return version


def _versioned(named: str) -> tuple[str, int | None]:
    """("Dialogues", 2) of "Dialogues v2"."""
    name, _, version = named.rpartition(" v")
    return (name, int(version)) if name and version.isdecimal() else (named, None)


def money(text: str) -> Decimal:
    """An amount of USD as the command line has it."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not amount.is_finite():
        raise ValueError(text)
    return amount


def _session(run_pk: int) -> None:
    """One work session, or the next step of a batch, or a moment's rest when nothing is due."""
    try:
        batches.begin_batch(run_pk=run_pk)
        due = Q(job__started_at=None) | Q(job__due_at__lte=timezone.now())
        for batch in CallBatch.objects.filter(due, run=run_pk, ended_at=None):
            batches.carry_out_batch(batch_pk=batch.pk)
        if not work_sessions.work_on_run(run_pk):
            time.sleep(LOOK)
    finally:
        connection.close()  # this thread's own


def _line(progress: runs.RunProgress) -> str:
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(progress.verdicts.items())) or "no verdict yet"
    cost = f", ${progress.cost:.4f}" if progress.cost is not None else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    failed += f", {progress.reused} by earlier replies" if progress.reused else ""
    return f"{progress.percent:3} %  {progress.done} of {progress.planned} calls{failed}; {statuses}{cost}"
