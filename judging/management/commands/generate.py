"""`panelbench generate`: have models write parallel families of texts, and store them as a dataset.

Exit status: 0 started, or with --wait and --here finished; 1 ended paused, cancelled or with texts missing; 2 usage
error or refused.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Dataset
from judging import tasks
from judging.generation import conversing, item_plans, plan_forecasts, plans, storing, writing
from judging.generation.plans import GeneratorChoice, PlanPhase
from judging.generation.specs import ANSWERS, PRESETS, Spec, from_yaml, preset
from judging.management.commands.run_judge import ENDED_BADLY, LOOK, STILL, USAGE, add_waiting, money, named_project
from judging.models import GenerationPlan, PlanDataset


class Command(BaseCommand):
    help = "Have models write the same families of texts in several languages; --store makes a dataset of them."
    presets: Sequence[str] = PRESETS

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--spec", help=f"a YAML file, or one of our own: {', '.join(self.presets)}")
        parser.add_argument("--prompts", metavar="DATASET", help="have every prompt of this dataset answered")
        parser.add_argument("--languages", metavar="et,en", help="tags of the languages; without --prompts")
        parser.add_argument("--generators", required=True, metavar="PROVIDER/MODEL,...", help="the models that write")
        parser.add_argument("--families", type=int, metavar="N", help="how many; of translations at most so many items")
        parser.add_argument("--source", metavar="DATASET", help="the name of the dataset that is translated")
        parser.add_argument("--source-language", default="", metavar="TAG", help="the language to translate from")
        parser.add_argument("--repeats", type=int, default=1, metavar="N")
        parser.add_argument("--parameters", type=json.loads, default={}, metavar="JSON", help="of every generator")
        parser.add_argument("--budget", type=money, metavar="USD", help="pause before more than this is spent")
        parser.add_argument("--seed", type=int, metavar="N", help="draws the same parameters again")
        parser.add_argument("--name", help="the name of the plan (the spec's title, with a number)")
        parser.add_argument("--examples", action="store_true", help="have the first families written only")
        parser.add_argument("--store", metavar="NAME", help="store the texts as this dataset in the end")
        parser.add_argument("--with-natives", action="store_true", help="store translations beside their sources")
        parser.add_argument("--only", choices=PlanDataset.Only.values, default="whole", help="which texts to store")
        add_waiting(parser)

    def handle(self, **options: Any) -> None:
        try:
            plan = self._planned(options)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        forecast = plan_forecasts.forecast_plan(plan)
        likely = (
            "" if forecast.cost is None else f", about ${forecast.cost:.4f} and at most about ${forecast.worst:.4f}"
        )
        self.stdout.write(f"Plan {plan.pk}: “{plan}”, {forecast.texts} texts{likely}")
        started = plans.start_examples(plan=plan) if options["examples"] else plans.start_plan(plan=plan)
        if not started:
            raise CommandError("The plan could not be started.", returncode=ENDED_BADLY)
        if not options["here"]:
            tasks.enqueue_plan(plan)
        if options["here"] or options["wait"] or options["store"]:
            self._wait(plan, is_here=options["here"])
            self._conclude(plan, options)

    def _planned(self, options: dict[str, Any]) -> GenerationPlan:
        project, prompts = named_project(options["project"]), options["prompts"]
        if needed := [f"--{name}" for name in ("spec", "languages") if not (prompts or options[name])]:
            raise Refused(f"Give {' and '.join(needed)}, or --prompts.")
        spec = self._spec(options["spec"]) if options["spec"] else preset(ANSWERS)
        source = _source(project, options["source"]) if options["source"] else None
        if not (source or prompts) and options["families"] is None:
            raise Refused("Say how many families: --families N")
        taken = set(GenerationPlan.objects.filter(project=project).values_list("name", flat=True))
        names = (spec.title, *(f"{spec.title} ({number})" for number in range(2, len(taken) + 3)))
        planned = {
            "name": options["name"] or next(name for name in names if name not in taken),
            "spec": spec,
            "generators": [choice(text, options["parameters"]) for text in options["generators"].split(",")],
            "repeats": options["repeats"],
            "seed": options["seed"],
            "budget": options["budget"],
        }
        if prompts:
            return item_plans.plan_answers(dataset=_source(project, prompts), **planned)
        return plans.create_plan(
            project=project,
            languages=[tag.strip() for tag in options["languages"].split(",") if tag.strip()],
            families=options["families"] or plans.MOST_FAMILIES,
            source=source,
            source_language=options["source_language"],
            **planned,
            **self.roles({**options, "of_project": project}),
        )

    def roles(self, options: dict[str, Any]) -> dict[str, Any]:
        """The further models of a simulation; a subclass overrides it, other plans have none."""
        return {}

    def _spec(self, named: str) -> Spec:
        if named in self.presets:
            return preset(named)
        try:
            return from_yaml(Path(named).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            known = ", ".join(self.presets)
            raise Refused(f"{named} is no file that can be read ({error}), and none of: {known}.") from None

    def _wait(self, plan: GenerationPlan, *, is_here: bool) -> None:
        """Print progress when it changes, until the plan no longer runs; with ``is_here``, also do the work in this
        process. Ctrl-C pauses it."""
        shown, since = "", time.monotonic()
        try:
            while (progress := plans.plan_progress(plan)).phase == PlanPhase.RUNNING:
                if (line := _line(progress)) != shown:
                    shown, since = line, time.monotonic()
                    self.stdout.write(line)
                elif time.monotonic() - since > STILL:
                    since = time.monotonic()
                    self.stdout.write("There is no progress. Is a worker running? Start one with: panelbench up")
                if is_here:
                    writing.TEXTS.sweep()  # Celery beat, which usually calls this, may not be running
                    conversing.CONVERSATIONS.sweep()
                if not (is_here and conversing.work_on_plan(plan)):
                    time.sleep(LOOK)
                plan.refresh_from_db()
        except KeyboardInterrupt:
            plans.pause_plan(plan=plan, reason="Interrupted at the command line.")

    def _conclude(self, plan: GenerationPlan, options: dict[str, Any]) -> None:
        plan.refresh_from_db()
        progress = plans.plan_progress(plan)
        self.stdout.write(_line(progress))
        if progress.phase not in (PlanPhase.FINISHED, PlanPhase.EXAMPLES):
            raise CommandError(f"{progress.phase.label}: {plan.reason}", returncode=ENDED_BADLY)
        if options["store"]:
            try:
                dataset = storing.store_dataset(
                    plan=plan, name=options["store"], only=options["only"], with_natives=options["with_natives"]
                )
            except Refused as refused:
                raise CommandError(refused.sentence, returncode=ENDED_BADLY) from None
            self.stdout.write(f"Dataset “{dataset.name}”: {dataset.items.count()} items")
        if progress.given_up:
            message = f"{progress.given_up} texts are missing: {', '.join(progress.problems)}"
            raise CommandError(message, returncode=ENDED_BADLY)


def _source(project: Project, name: str) -> Dataset:
    """The newest version of a dataset."""
    found = Dataset.objects.ready().filter(project=project, name=name).order_by("-version").first()
    if found is None:
        raise Refused(f"The project has no dataset called “{name}”.")
    return found


def choice(text: str, parameters: dict[str, Any]) -> GeneratorChoice:
    """A model as it is named on the command line."""
    provider, _slash, model = text.strip().partition("/")
    return GeneratorChoice(provider=provider, model=model, parameters=parameters)


def _line(progress: plans.PlanProgress) -> str:
    cost = f", ${progress.cost:.4f}" if progress.cost is not None else ""
    broken = f", {progress.discarded} replies discarded" if progress.discarded else ""
    missing = f", {progress.given_up} without a text" if progress.given_up else ""
    return f"{progress.percent:3} %  {progress.written} of {progress.planned} texts written{missing}{broken}{cost}"
