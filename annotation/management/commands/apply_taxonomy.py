"""`panelbench apply_taxonomy`: create the duties that the rules of a taxonomy ask for, or count them.

Exit status: 0 created (or counted, with --dry-run), 2 usage error or refused.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from annotation import rule_plans, taxonomies
from annotation.management.importing import USAGE
from annotation.models import Campaign, ItemSelection, Panel, Taxonomy
from annotation.readers import taxonomy_from_dict


class Command(BaseCommand):
    help = "Create the duties of a campaign by the rules of a taxonomy. Applied again, it only adds what is missing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("taxonomy", metavar="KEY", help="the taxonomy's key; its newest version is taken")
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--campaign", required=True, metavar="C", help="the campaign's name")
        panels = "which panels a name in the rules means, such as “Crowd=Crowd et,Crowd fi”"
        parser.add_argument("--panel", action="append", default=[], metavar="NAME=PANELS", help=panels)
        parser.add_argument("--selection", metavar="NAME", help="only the items of this selection of the campaign")
        parser.add_argument("--seed", type=int, metavar="N", help="gives the order of the items")
        parser.add_argument("--keep-names", action="store_true", help="annotators may see generators' names")
        parser.add_argument("--dry-run", action="store_true", help="count only, and create nothing")

    def handle(self, **options: Any) -> None:
        try:
            chosen = _chosen(options)
            if options["dry_run"]:
                plan = rule_plans.plan_duties(**chosen)
            else:
                plan = taxonomies.apply_rules(**chosen, keep_names=options["keep_names"], seed=options["seed"])
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        for duty in plan.duties:
            lacking = f", {duty.lacking} more people needed" if duty.lacking else ""
            self.stdout.write(
                f"{duty.name}: {duty.items} items, {duty.assignments} assignments, {duty.hours:.1f} hours{lacking}"
            )
        self.stdout.write(f"{plan.assignments} assignments, {plan.ratings} ratings, {plan.hours:.1f} hours")
        for name in plan.missing_panels:
            self.stderr.write(f"No panel is called {name!r}: its rules make no duties.")
        for rule in plan.without_items:
            self.stderr.write(f"No item fits the rule {rule.name!r}.")
        if plan.unmatched:
            self.stderr.write(f"No rule fits {plan.unmatched} items, such as {'; '.join(plan.unmatched_examples)}")


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """What the options name, as `rule_plans.plan_duties` takes it."""
    campaigns = Campaign.objects.filter(project__slug=options["project"], name=options["campaign"])
    campaign = campaigns.select_related("dataset", "rubric_version", "project").first()
    if campaign is None:
        raise Refused(f"There is no campaign {options['campaign']!r} in {options['project']}.")
    taxonomy = Taxonomy.objects.filter(project=campaign.project, key=options["taxonomy"]).first()
    if taxonomy is None:
        raise Refused(f"There is no taxonomy {options['taxonomy']!r} in {options['project']}.")
    named = options["selection"]
    selection = ItemSelection.objects.filter(campaign=campaign, name=named).first() if named else None
    if named and selection is None:
        raise Refused(f"The campaign has no selection {named!r}.")
    mine = {panel.name: panel for panel in Panel.objects.filter(project=campaign.project)}
    panels = taxonomies.panels_for(taxonomy_from_dict(taxonomy.document), mine.values())
    for name, _sign, meant in (pair.partition("=") for pair in options["panel"]):
        unknown = [panel for panel in meant.split(",") if panel.strip() not in mine]
        if unknown or name not in panels:
            raise Refused(f"There is no panel {(unknown or [name])[0]!r}.")
        panels[name] = [mine[panel.strip()] for panel in meant.split(",")]
    return {"campaign": campaign, "taxonomy": taxonomy, "panels": panels, "selection": selection}
