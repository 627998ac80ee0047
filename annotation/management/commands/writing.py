"""`panelbench writing`: open a duty to write, show how far the duties of a project are, store accepted texts.

Exit status: 0 done, 2 asked for wrongly.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.collection import texts, texts_read
from annotation.models import Dataset, Panel, WritingDuty

USAGE = 2


class Command(BaseCommand):
    help = "Texts written by people: open a duty (--open), store accepted texts (--store), or show the progress."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--open", metavar="NAME", help="open a writing task of this name")
        parser.add_argument("--dataset", metavar="NAME", help="the dataset of the prompts")
        parser.add_argument("--panel", metavar="NAME", help="the panel that writes")
        parser.add_argument("--kind", choices=WritingDuty.Kind.values, default="answer")
        parser.add_argument("--part", default="answer", help="the field, or the role whose turns are written")
        parser.add_argument("--turns", type=int, default=1, metavar="N", help="turns at most")
        parser.add_argument("--shortest", type=int, default=1, metavar="N", help="fewest characters")
        parser.add_argument("--longest", type=int, default=8_000, metavar="N", help="most characters")
        parser.add_argument("--per-prompt", type=int, default=1, metavar="N", help="people per prompt")
        parser.add_argument("--generator", default="", help="one name for all texts (a code of each person)")
        parser.add_argument("--store", metavar="DUTY", help="store the accepted texts of this writing task")
        parser.add_argument("--name", default="", help="as a dataset of this name; else in the dataset of the prompts")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        try:
            if project is None:
                raise Refused(f"There is no project {options['project']!r}.")
            if options["open"]:
                self._open(project, options)
            if options["store"]:
                duty = _named(WritingDuty.objects.filter(project=project), options["store"], "writing task")
                dataset = texts_read.store_writing(duty=duty, name=options["name"])
                self.stdout.write(f"Dataset “{dataset.name}” v{dataset.version}")
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        for duty in WritingDuty.objects.filter(project=project).select_related("dataset", "panel"):
            progress = texts_read.writing_progress(duty)
            counts = f"{progress.accepted} of {progress.wanted} accepted, {progress.submitted} to read"
            self.stdout.write(f"{progress.percent:3} %  “{duty.name}” ({duty.state}): {counts}")

    def _open(self, project: Project, options: dict[str, Any]) -> None:
        datasets = Dataset.objects.ready().filter(project=project).order_by("-version")
        texts.open_writing_duty(
            project=project,
            name=options["open"],
            dataset=_named(datasets, options["dataset"], "dataset"),
            panel=_named(Panel.objects.filter(project=project), options["panel"], "panel"),
            kind=options["kind"],
            part=options["part"],
            most_turns=options["turns"],
            shortest=options["shortest"],
            longest=options["longest"],
            per_prompt=options["per_prompt"],
            generator=options["generator"],
        )


def _named(rows: Any, name: str | None, what: str) -> Any:
    found = rows.filter(name=name).first()
    if found is None:
        raise Refused(f"The project has no {what} called “{name}”.")
    return found
