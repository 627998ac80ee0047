"""`panelbench import_dataset`: items from JSON, JSONL, CSV or TSV files become a dataset."""

from argparse import ArgumentParser
from typing import Any

from accounts.models import Project
from accounts.refusals import Refused
from annotation import tasks
from annotation.blinding import CHOICES
from annotation.imports import targets
from annotation.management.importing import ImportCommand
from annotation.models import Dataset, Import


class Command(ImportCommand):
    help = "Store the items of some files as the next version of a dataset."
    kind = Import.Kind.DATASET

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--name", default="", help="the dataset's name; by default that of the first file")
        parser.add_argument("--licence", default="", help="what the data may be used for")
        parser.add_argument(
            "--generator-names", choices=CHOICES, help="what to do with generators' names that annotators would see"
        )
        parser.add_argument("--extends", metavar="DATASET", help="add the new items to this dataset")

    def target(self, project: Project, options: dict[str, Any]) -> dict[str, Any]:
        choice = {"generator_names": options["generator_names"]} if options["generator_names"] else {}
        if not options["extends"]:
            return {"name": options["name"], "licence": options["licence"], **choice}
        if options["name"]:
            raise Refused("A version that adds items keeps the dataset's name: leave out --name, or --extends.")
        return {
            "extends": targets.dataset_of(project=project, name=options["extends"]).pk,
            "licence": options["licence"],
            **choice,
        }

    def carry_out(self, file_import: Import) -> None:
        super().carry_out(file_import)
        for dataset in Dataset.objects.filter(file_import=file_import):
            tasks.check_later(dataset, None)

    def outcome(self, file_import: Import, options: dict[str, Any]) -> dict[str, str]:
        return {"dataset": str(Dataset.objects.get(file_import=file_import))}
