"""`panelbench curate`: choose items of a dataset for balance or at random, and store them with their certificate.

Exit status: 0 stored, or with --preview shown; 1 stored, but a language has fewer items than asked for; 2 asked for
wrongly.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from annotation import selections
from annotation.models import Dataset
from annotation.sampling.limits import limits_of
from judging.generation import curating
from judging.generation.curating import CurationSettings
from judging.management.commands.run_judge import ENDED_BADLY, USAGE, chosen_dataset, named_project
from judging.models import JudgeRun


class Command(BaseCommand):
    help = "Choose n items per language out of a dataset, and store them as a new dataset with a certificate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--dataset", required=True, metavar="D", help='a name (its newest version) or "name v2"')
        parser.add_argument("--name", metavar="NAME", help="of the new dataset")
        parser.add_argument("--n", required=True, type=int, metavar="N", help="items per language")
        parser.add_argument("--run", type=int, metavar="ID", help="the judge run with the verdicts; without: none")
        parser.add_argument("--method", default="balanced", choices=curating.METHODS)
        parser.add_argument("--languages", type=_names, default=(), metavar="A,B", help="default: all")
        parser.add_argument("--issues", type=_names, metavar="A,B", help="criteria (default: those with two points)")
        parser.add_argument("--overall", metavar="KEY", help="the criterion with the overall score; '' for none")
        parser.add_argument("--exclude", metavar="KEY", help="exclude items flagged on this criterion; '' for none")
        parser.add_argument("--words", type=_names, default=(), metavar="A,B", help="only if the rationale has one")
        parser.add_argument("--user", default="", metavar="ATTRIBUTE", help="the attribute with the simulated user")
        parser.add_argument("--balance", type=_names, default=curating.FACETS, metavar="A,B")
        parser.add_argument("--by", type=_names, default=(), metavar="A,B", help="strata of a random draw")
        parser.add_argument("--no-clean-first", action="store_true", help="do not start with items without issues")
        parser.add_argument("--families", action="store_true", help="keep or drop whole families")
        parser.add_argument("--seed", type=int, metavar="N", help="default: a random one, which is stored")
        parser.add_argument("--preview", action="store_true", help="show the certificate, and store nothing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print the certificate as JSON")

    def handle(self, **options: Any) -> None:
        try:
            dataset = chosen_dataset(named_project(options["project"]), options["dataset"])
            asked = _settings(dataset, options)
            if options["preview"]:
                drawn = curating.draw_curation(dataset=dataset, settings=asked)
                rule, certificate = drawn.rule, drawn.certificate
            else:
                if not options["name"]:
                    raise Refused("Name the new dataset with --name, or use --preview.")
                stored = curating.curate(dataset=dataset, name=options["name"], settings=asked)
                rule, certificate = stored.rule, stored.certificate
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        if options["as_json"]:
            self.stdout.write(json.dumps({"rule": rule, "seed": asked.seed, "certificate": certificate}))
        else:
            self._show(rule, certificate, asked.seed)
        short = [row["language"] for row in certificate["languages"] if row["missing"]]
        if short and not options["preview"]:
            raise CommandError(f"Fewer items than asked for in: {', '.join(short)}.", returncode=ENDED_BADLY)

    def _show(self, rule: dict[str, Any], certificate: dict[str, Any], seed: int) -> None:
        for row in certificate["languages"]:
            self.stdout.write(
                f"{row['language']}: {row['chosen']} of {row['asked']} asked for, {row['available']} there"
            )
        for table in certificate["tables"]:
            values = ", ".join(f"{value or 'none'} {before}>{after}" for value, before, after in table["values"])
            before, after = (f"{share:.2f}" if share is not None else "-" for share in table["uneven"])
            self.stdout.write(f"{table['language']} {table['facet']}: {values}; unevenness {before} > {after}")
        for row in certificate["errors"] or ():
            bounds = "unknown" if row["bounds"] is None else f"{row['bounds'][0]} to {row['bounds'][1]}"
            self.stdout.write(f"{row['language']} {row['issue']}: {row['flagged']} flagged, by a panel {bounds}")
        for sentence in limits_of(rule, certificate):
            self.stdout.write(sentence)
        self.stdout.write(f"Seed {seed}")


def _settings(dataset: Dataset, options: dict[str, Any]) -> CurationSettings:
    run = None
    if options["run"] is not None:
        run = curating.source_runs(dataset, JudgeRun.objects.all()).filter(pk=options["run"]).first()
        if run is None:
            raise Refused(f"There is no run {options['run']} with verdicts on {dataset}.")
    same = ("n", "method", "languages", "issues", "overall", "words", "user", "balance", "by")
    return CurationSettings(
        run=run,
        unreadable=options["exclude"],
        clean_first=not options["no_clean_first"],
        by_family=options["families"],
        seed=selections.new_seed() if options["seed"] is None else options["seed"],
        **{name: options[name] for name in same},
    )


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
