"""`panelbench checkup`: what is wrong with a dataset, or with files before they are imported.

Exit status: 0 nothing found that is severer than a notice, 1 errors or warnings, 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from accounts.models import Project
from accounts.refusals import Refused
from annotation.checkup import checkups
from annotation.checkup.checked_items import CheckedItem, checked_item
from annotation.checkup.checking import CHECKS, CheckedDataset, check_items
from annotation.checkup.checkups import LeftOut
from annotation.checkup.declared import REASONS, CheckScope
from annotation.checkup.native_flags import USUAL_BECAUSE
from annotation.imports import targets
from annotation.models import Dataset
from annotation.readers import FormatError, Mapping, parse_items, propose_mapping

FOUND, USAGE = 1, 2
EXAMPLES = 3


class Command(BaseCommand):
    help = "Check a dataset by name, or files before they are imported: languages, duplicates, placeholders and more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", nargs="+", metavar="DATASET|FILE", help="one dataset of --project, else files")
        parser.add_argument("--project", metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--mapping", type=Path, metavar="FILE.yaml", help="of files: a saved mapping")
        parser.add_argument("--map", nargs="+", action="extend", default=[], metavar="column=field", dest="columns")
        parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="field=value", dest="constants")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print everything as JSON")
        parser.add_argument(
            "--leave-out", nargs="+", action="extend", default=[], choices=sorted(CHECKS), metavar="CHECK",
            help="then store a dataset without the items of these findings",
        )  # fmt: skip
        parser.add_argument("--families", action="store_true", help="leave out the other items of their scenarios, too")
        parser.add_argument("--name", default="", help="the name of the dataset that is stored")

    def handle(self, **options: Any) -> None:
        try:
            if options["project"]:
                self._check_dataset(options)
            else:
                self._check_files(options)
        except FormatError as error:
            raise CommandError(str(error.problem), returncode=USAGE) from None
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}", returncode=USAGE) from None

    def _check_dataset(self, options: dict[str, Any]) -> None:
        if len(options["what"]) > 1:
            raise Refused("Give one dataset.")
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise Refused(f"There is no project “{options['project']}”.")
        dataset = targets.dataset_of(project=project, name=options["what"][0])
        checkup = checkups.check_now(dataset=dataset)
        result = CheckedDataset.from_json(checkup.result or {})
        names = dict(dataset_ids(dataset, result))
        left: Dataset | None = None
        if options["leave_out"]:
            left_out = LeftOut(tuple(sorted(set(options["leave_out"]))), options["families"], options["name"])
            left = checkups.make_without(checkup=checkup, left_out=left_out)
        self._tell(result, names, options["as_json"])
        if left is not None:
            self.stderr.write(f"dataset: {left}")
        self._end(result)

    def _check_files(self, options: dict[str, Any]) -> None:
        if options["leave_out"]:
            raise Refused("Import the files first: --leave-out makes a dataset of a project from another one.")
        mapping = (
            Mapping.from_yaml(options["mapping"].name, options["mapping"].read_bytes())
            if options["mapping"]
            else Mapping()
        )
        given = mapping.updated(Mapping.from_pairs(options["columns"], options["constants"]))
        with ExitStack() as stack:
            files = [(Path(name).name, stack.enter_context(Path(name).open("rb"))) for name in options["what"]]
            parsed = parse_items(files, propose_mapping("dataset", files, given, ()))
        for sentence in parsed.problems.grouped_sentences():
            self.stderr.write(sentence)
        names: dict[int, str] = {}

        def rows() -> Iterator[CheckedItem]:
            for ordinal, row in enumerate(parsed.items):
                names[ordinal] = row.external_id
                yield checked_item(
                    ordinal=ordinal,
                    language=row.language,
                    generator=row.generator or "",
                    scenario=row.scenario or "",
                    turns=row.turns,
                    fields=row.fields,
                )

        result = check_items(rows(), CheckScope(frozenset(row.language for row in parsed.items)))
        self._tell(result, names, options["as_json"])
        self._end(result)

    def _tell(self, result: CheckedDataset, names: dict[int, str], as_json: bool) -> None:
        if as_json:
            document = result.as_json()
            for finding in document["findings"]:
                for example in finding["examples"]:
                    example["external_id"] = names[example["ordinal"]]
            self.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))
            return
        self.stdout.write(f"{result.items} items")
        for finding in result.findings:
            check = CHECKS[finding.check]
            if finding.reason:
                self.stdout.write(f"-        {_(check.title)}: does not apply, because {_(REASONS[finding.reason])}")
                continue
            self.stdout.write(f"{finding.severity if finding.items else 'ok':8} {_(check.title)}: {finding.items}")
            for example in finding.examples[:EXAMPLES]:
                turn = f" turn {example['place'] + 1}" if isinstance(example["place"], int) else ""
                self.stdout.write(f"           {names[example['ordinal']]}{turn}: {_(check.says) % example['values']}")

        for row in result.natives:
            threshold = (
                f"usual, because {_(USUAL_BECAUSE[row['reason']])}" if row["reason"] else f"{row['threshold']:.2g}"
            )
            self.stdout.write(
                f"annotators, {row['language']}: {row['flagged']} of {row['read']} flagged, {row['found']} found, "
                f"{row['missed']} missed, {row['false_alarms']} false alarms; threshold {threshold}"
            )

    def _end(self, result: CheckedDataset) -> None:
        if any(finding.items and finding.severity != "notice" for finding in result.findings):
            sys.exit(FOUND)


def dataset_ids(dataset: Dataset, result: CheckedDataset) -> Iterator[tuple[int, str]]:
    """The ids of the items that examples are about, by ordinal."""
    listed = sorted({example["ordinal"] for finding in result.findings for example in finding.examples})
    yield from ((ordinal, key[1]) for ordinal, key in checkups.item_keys(dataset, listed).items())
