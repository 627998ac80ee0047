"""`panelbench select_items`: draw a selection of a campaign's items, for judge runs and panels.

Exit status: 0 stored, 2 usage error.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from annotation import selections
from annotation.models import Campaign

USAGE = 2


class Command(BaseCommand):
    help = "Draw a selection of a campaign's items and store it under a name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the selection is called")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--campaign", required=True, metavar="C", help="the campaign's name")
        parser.add_argument("--per", type=int, metavar="N", help="draw so many of every stratum")
        parser.add_argument("--by", action="append", default=[], metavar="COLUMN", help="language, attribute:KEY ...")
        parser.add_argument("--unit", choices=selections.UNITS, help="what is drawn; a scenario has all its items")
        filters = "values that fit, such as language=et,fi; may be given for several columns"
        parser.add_argument("--filter", action="append", default=[], metavar="COLUMN=VALUES", help=filters)
        parser.add_argument("--duty", metavar="NAME", help="the items of this task")
        parser.add_argument("--wave", type=int, metavar="N", help="only those of its wave N")
        parser.add_argument("--items", metavar="FILE", help="the ids in this file, one on each line")
        parser.add_argument("--rule", type=json.loads, metavar="JSON", help="the rule itself, in place of all these")
        parser.add_argument("--seed", type=int, metavar="N")

    def handle(self, **options: Any) -> None:
        try:
            campaign = Campaign.objects.filter(project__slug=options["project"], name=options["campaign"]).first()
            if campaign is None:
                raise Refused(f"There is no campaign {options['campaign']!r} in {options['project']}.")
            selection = selections.select(
                campaign=campaign, name=options["name"], rule=_rule(options), seed=options["seed"]
            )
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        strata = selections.strata_of(selection)
        items = sum(stratum.items for stratum in strata)
        self.stdout.write(f"Selection {selection.pk} “{selection}”: {items} items, seed {selection.seed}")
        for stratum in strata:
            self.stdout.write(f"  {stratum.name or 'all'}: {stratum.chosen} of {stratum.available}")


def _rule(options: dict[str, Any]) -> dict[str, Any]:
    """The rule that the options describe."""
    if options["rule"] is not None:
        if not isinstance(options["rule"], dict):
            raise Refused("A rule is a JSON object.")
        return dict(options["rule"])
    if options["duty"] is not None:
        return {"kind": "duty", "duty": options["duty"], **({"wave": options["wave"]} if options["wave"] else {})}
    if options["items"] is not None:
        return {"kind": "list", "items": _ids(options["items"])}
    pairs = (pair.partition("=") for pair in options["filter"])
    fits = {column.strip(): [value.strip() for value in values.split(",")] for column, _sign, values in pairs}
    if options["per"] is None:
        return {"kind": "filter", "filter": fits}
    unit = {"unit": options["unit"]} if options["unit"] else {}
    return {"kind": "draw", "n": options["per"], "by": options["by"], "filter": fits, **unit}


def _ids(path: str) -> list[str]:
    try:
        return [line.strip() for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as fault:
        raise Refused(f"{path} can't be read: {fault}.") from None
