"""`panelbench store_texts PLAN --name NAME`: store the texts of a generation plan as a dataset, however many they are.

Exit status: 0 stored; 2 there is no such plan, or nothing can be stored.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from judging.generation import storing
from judging.management.commands.run_judge import USAGE
from judging.models import GenerationPlan, PlanDataset


class Command(BaseCommand):
    help = "Store the texts of a generation plan as a dataset; those that were set aside stay out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("plan", type=int, metavar="PLAN", help="the plan's number, as in its address")
        parser.add_argument("--name", required=True, help="the name of the dataset")
        parser.add_argument("--only", choices=PlanDataset.Only.values, default="whole", help="which texts to store")

    def handle(self, **options: Any) -> None:
        plan = GenerationPlan.objects.select_related("project").filter(pk=options["plan"]).first()
        if plan is None:
            raise CommandError(f"There is no plan {options['plan']}.", returncode=USAGE)
        try:
            dataset = storing.store_dataset(plan=plan, name=options["name"], only=options["only"])
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        self.stdout.write(f"Dataset “{dataset.name}”: {dataset.items.count()} items")
