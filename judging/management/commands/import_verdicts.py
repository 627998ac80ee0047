"""`panelbench import_verdicts`: verdicts that judges gave elsewhere join the numbers."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from accounts.models import Project
from annotation.imports import targets
from annotation.imports.previews import Preview
from annotation.management.importing import ImportCommand
from annotation.models import Import
from annotation.readers import File, Mapping
from judging.imports import verdicts
from judging.models import JudgeRun


class Command(ImportCommand):
    help = "Store judges' verdicts on a dataset and a rubric; all files of one judge in one call."
    kind = Import.Kind.VERDICTS

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dataset", default="", help="its name, or one version: “Dialogues v2”")
        parser.add_argument("--rubric", default="", help="its key, or one version: “support v2”")

    def target(self, project: Project, options: dict[str, Any]) -> dict[str, Any]:
        chosen = targets.only(project=project, dataset=options["dataset"], rubric=options["rubric"])
        return {"dataset": chosen.dataset.pk, "rubric_version": chosen.rubric_version.pk}

    def preview(self, project: Project, files: Sequence[File], mapping: Mapping, target: dict[str, Any]) -> Preview:
        return verdicts.preview_verdicts(project=project, files=files, mapping=mapping, target_fields=target)

    def carry_out(self, file_import: Import) -> None:
        verdicts.carry_out_verdicts(file_import=file_import)

    def outcome(self, file_import: Import, options: dict[str, Any]) -> dict[str, str]:
        runs = JudgeRun.objects.filter(file_import=file_import).select_related("judge")
        return {"runs": ", ".join(map(str, runs)) or "none: every verdict was there already"}
