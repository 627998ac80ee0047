"""`panelbench import_rubric`: store rubrics from YAML or JSON as drafts, or publish them directly."""

from argparse import ArgumentParser
from typing import Any

from annotation import rubrics
from annotation.management.importing import ImportCommand
from annotation.models import Import, RubricVersion


class Command(ImportCommand):
    help = "Draft the rubrics of some files; with --publish, publish them."
    kind = Import.Kind.RUBRIC

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--publish", action="store_true", help="publish at once: a published version never changes")

    def outcome(self, file_import: Import, options: dict[str, Any]) -> dict[str, str]:
        versions = RubricVersion.objects.filter(pk__in=file_import.report["versions"])
        for draft in versions.filter(state=RubricVersion.State.DRAFT) if options["publish"] else ():
            rubrics.publish(version=draft)
        return {"rubric": ", ".join(f"{version} ({version.state})" for version in versions.all())}
