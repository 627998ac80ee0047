"""`panelbench collection`: make a collection of prompts or change it, read how far it is, export and store its prompts.

Exit status: 0 done, 2 usage error or refused.
"""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.collection import prompt_collections, prompt_exports
from annotation.management.importing import USAGE
from annotation.models import PromptCollection


class Command(BaseCommand):
    help = "Make a collection of prompts, or change the one of this name; print how far it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="of the collection")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--slots", type=Path, metavar="FILE.csv", help="task, style, difficulty, language, wanted")
        parser.add_argument("--guidelines", action="append", default=[], metavar="LANGUAGE=FILE.md")
        parser.add_argument("--due", type=date.fromisoformat, metavar="YYYY-MM-DD")
        parser.add_argument("--writer", action="append", default=[], metavar="EMAIL", help="a member who writes")
        parser.add_argument("--reviewer", action="append", default=[], metavar="EMAIL", help="a member who reviews")
        parser.add_argument("--close", action="store_true", help="nobody writes any more")
        parser.add_argument("--csv", type=Path, metavar="FILE", help="write the prompts and their reviews to this file")
        parser.add_argument("--store", metavar="DATASET", help="store the accepted prompts as this dataset")

    def handle(self, **options: Any) -> None:
        try:
            collection = _collection(options)
            _people(collection, options)
            if options["close"]:
                prompt_collections.set_state(collection=collection, state=PromptCollection.State.CLOSED)
            if options["csv"]:
                with options["csv"].open("w", encoding="utf-8", newline="") as file:
                    file.writelines(prompt_exports.prompts_csv(collection))
            progress = prompt_collections.collection_progress(collection)
            self.stdout.write(
                f"{collection}: {progress.accepted} of {progress.wanted} accepted, {progress.in_review} in review, "
                f"{progress.returned} sent back, {progress.left} to write"
            )
            if options["store"]:
                dataset = prompt_exports.store_prompts(collection=collection, name=options["store"])
                self.stdout.write(f"Dataset “{dataset.name}”: {dataset.items.count()} prompts")
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None


def _collection(options: dict[str, Any]) -> PromptCollection:
    """The collection of this name, as the options want it; made if there is none."""
    project = Project.objects.filter(slug=options["project"]).first()
    if project is None:
        raise Refused(f"There is no project {options['project']!r}.")
    slots = prompt_collections.slots_from_csv(_read(options["slots"])) if options["slots"] else []
    texts = {}
    for given in options["guidelines"]:
        tag, sign, path = given.partition("=")
        if not sign:
            raise Refused(f"Write the guidelines as LANGUAGE=FILE, not {given!r}.")
        texts[tag] = _read(Path(path))
    found = PromptCollection.objects.filter(project=project, name=options["name"]).select_related("project").first()
    if found is None:
        return prompt_collections.create_collection(
            project=project, name=options["name"], slots=slots, guidelines=texts, due_on=options["due"]
        )
    if texts or options["due"]:
        prompt_collections.change_collection(
            collection=found,
            name=found.name,
            guidelines={**found.guidelines, **texts},
            due_on=options["due"] or found.due_on,
        )
    if slots:
        prompt_collections.set_slots(collection=found, slots=slots, actor=None)
    return found


def _people(collection: PromptCollection, options: dict[str, Any]) -> None:
    emails = dict.fromkeys([*options["writer"], *options["reviewer"]])
    for email in emails:
        user = User.objects.filter(email=email.lower()).first()
        if user is None:
            raise Refused(f"Nobody has the address {email!r}.")
        prompt_collections.set_member(
            collection=collection, user=user, writes=email in options["writer"], reviews=email in options["reviewer"]
        )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} can't be read: {error}.") from None
