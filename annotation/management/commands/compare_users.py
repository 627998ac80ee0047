"""`panelbench compare_users`: mix dialogues with simulated users and with people, and open a campaign on them.

Exit status: 0 opened, or with --preview counted; 2 asked for wrongly.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation import selections
from annotation.imports import targets
from annotation.models import Panel
from annotation.sampling import user_comparison
from annotation.sampling.user_comparison import UserComparisonSettings

USAGE = 2


class Command(BaseCommand):
    help = "Open a campaign in which annotators say which users are people and which are simulated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--simulated", required=True, metavar="D", help="the dataset with simulated users")
        parser.add_argument("--human", required=True, metavar="D", help="the dataset with people")
        parser.add_argument("--name", metavar="NAME", help="of the campaign and of the mixed dataset")
        parser.add_argument("--n", type=int, default=50, metavar="N", help="dialogues of each origin per language")
        parser.add_argument("--rated", choices=user_comparison.UNITS_RATED, default="turn")
        parser.add_argument("--simulated-user", default="", metavar="SPEAKER", help="default: found by its name")
        parser.add_argument("--human-user", default="", metavar="SPEAKER", help="default: found by its name")
        parser.add_argument("--seed", type=int, metavar="N", help="default: a random one, which is stored")
        parser.add_argument("--panel", action="append", default=[], metavar="NAME", help="a panel that rates it")
        parser.add_argument("--overlap", type=int, default=3, metavar="N", help="annotators per item")
        parser.add_argument("--keep-names", action="store_true", help="annotators may see generators' names")
        parser.add_argument("--preview", action="store_true", help="count the dialogues, and store nothing")

    def handle(self, **options: Any) -> None:
        try:
            project = Project.objects.filter(slug=options["project"]).first()
            if project is None:
                raise Refused(f"There is no project “{options['project']}”.")
            simulated, human = (
                targets.dataset_of(project=project, name=options[name]) for name in ("simulated", "human")
            )
            seed = selections.new_seed() if options["seed"] is None else options["seed"]
            same = {name: options[name] for name in ("n", "rated", "simulated_user", "human_user")}
            settings = UserComparisonSettings(seed=seed, **same)
            drawn = user_comparison.draw_comparison(simulated=simulated, human=human, settings=settings)
            for row in drawn.languages:
                there = f"{row.simulated} with simulated users, {row.human} with people"
                self.stdout.write(f"{row.language}: {there}, {row.pairs} of each chosen")
            self.stdout.write(f"{drawn.items} items, seed {seed}")
            if options["preview"]:
                return
            if not options["name"]:
                raise Refused("Name the campaign with --name, or use --preview.")
            campaign = user_comparison.start_user_comparison(
                project=project,
                simulated=simulated,
                human=human,
                name=options["name"],
                settings=settings,
                panels=[_panel(project, name) for name in options["panel"]],
                overlap=options["overlap"],
                keep_names=options["keep_names"],
            )
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Campaign {campaign.pk} “{campaign}”")


def _panel(project: Project, name: str) -> Panel:
    panel = Panel.objects.filter(project=project, name=name).first()
    if panel is None:
        raise Refused(f"There is no panel “{name}” in {project.slug}.")
    return panel
