"""`panelbench import_ratings`: people's ratings from files join a campaign."""

from argparse import ArgumentParser
from typing import Any

from accounts.models import Project
from annotation.imports import targets
from annotation.management.importing import ImportCommand
from annotation.models import Campaign, Import


class Command(ImportCommand):
    help = "Store people's ratings in a campaign; all files of one study in one call."
    kind = Import.Kind.RATINGS

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--campaign", default="", help="by name; opened on --dataset and --rubric if there is none")
        parser.add_argument("--dataset", default="", help="its name, or one version: “Dialogues v2”")
        parser.add_argument("--rubric", default="", help="its key, or one version: “support v2”")

    def target(self, project: Project, options: dict[str, Any]) -> dict[str, Any]:
        named = {name: options[name] for name in ("campaign", "dataset", "rubric")}
        return targets.find_target(project=project, **named).as_dict()

    def outcome(self, file_import: Import, options: dict[str, Any]) -> dict[str, str]:
        return {"campaign": Campaign.objects.get(pk=file_import.report["campaign"]).name}
