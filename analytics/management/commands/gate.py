"""`panelbench gate`: may the judge be used? Its decisions, and an exit status for a pipeline.

Exit status 0: no decision is one that the command fails on. 1: at least one is. 2: nothing could be decided: wrong
usage, no thresholds, no such judge, or ratings that can't be used.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from analytics.api.decisions import DecisionSerializer
from analytics.judges import decisions
from analytics.judges.decisions import CampaignDecisions
from analytics.judges.reasons import CellDecision, Condition, Remedy
from analytics.models import GateDecision
from annotation.models import Campaign

FAILING, UNDECIDED = 1, 2  # exit statuses
FAILS_ON = "HUMANS_ONLY,INSUFFICIENT,RUBRIC_PROBLEM,STALE"


class Command(BaseCommand):
    help = "Print what the judges of a campaign may be used for. Exit status 1 where a decision is one of --fail-on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--campaign", required=True, metavar="CAMPAIGN", help="its number, as in its address")
        for name, metavar in (("judge", "NAME"), ("criterion", "KEY"), ("language", "TAG")):
            more = f"only this {name}, may be repeated (default: all)"
            parser.add_argument(f"--{name}", action="append", default=[], metavar=metavar, help=more)
        parser.add_argument(
            "--fail-on",
            default=FAILS_ON,
            metavar="DECISIONS",
            help=f"decisions that fail, with commas, or `none` (default: {FAILS_ON})",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="as the API gives them")

    def handle(self, *, campaign: str, fail_on: str, as_json: bool, **asked: Any) -> None:
        target, failing = numbered_campaign(campaign), _failing(fail_on)
        try:
            current = decisions.decide_now(target)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=UNDECIDED) from None
        cells = [*current.cells, *_without_scores(current)]
        chosen = _chosen(cells, {name: asked[name] for name in ("judge", "criterion", "language")})
        if as_json:
            self.stdout.write(json.dumps([DecisionSerializer(cell).data for cell in chosen], default=str))
        else:
            self.stdout.write("\n".join(map(_written, chosen)))
        failed = [cell for cell in chosen if cell.use in failing]
        self.stderr.write(f"{len(failed)} of {len(chosen)} decisions fail, by thresholds {current.thresholds}.")
        if failed:
            raise SystemExit(FAILING)


def numbered_campaign(number: str) -> Campaign:
    """The campaign of that number; the command ends where there is none."""
    found = Campaign.objects.select_related("project", "dataset", "rubric_version").filter(
        pk=int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    )
    if (target := found.first()) is None:
        raise CommandError(f"There is no campaign {number}.", returncode=UNDECIDED)
    return target


def _failing(written: str) -> set[str]:
    names = {name.strip().casefold() for name in written.split(",") if name.strip()}
    if not names:
        raise CommandError("--fail-on names no decision. For none, write --fail-on none.", returncode=UNDECIDED)
    names -= {"none"}
    if unknown := sorted(names - set(GateDecision.Use.values)):
        known = ", ".join(use.upper() for use in GateDecision.Use.values)
        raise CommandError(f"There is no decision {unknown[0]}. There are: {known}.", returncode=UNDECIDED)
    return names


def _without_scores(current: CampaignDecisions) -> list[CellDecision]:
    """A decision for each judge whose run gave no score, so that a pipeline does not pass over it: INSUFFICIENT."""
    judges = current.snapshot.content["judges"] if current.snapshot else []
    nothing = {
        "decision": GateDecision.Use.INSUFFICIENT.value, "criterion": "", "language": "",
        "n_items": 0, "n_clusters": 0, "n_raters": 0,
    }  # fmt: skip
    rows = [{**nothing, "judge": each["name"], "judge_id": each["judge"], "run": each["run"]} for each in judges]
    return [_NoScores(row, current.thresholds) for row in rows if row["judge"] not in current.judges]


class _NoScores(CellDecision):
    """The decision about a judge whose run gave no verdict; without criterion and language."""

    @cached_property
    def conditions(self) -> list[Condition]:
        return []

    @property
    def reasons(self) -> list[str]:
        return [f"Its run {self.row['run']} has no verdict: its calls failed, or are still to be made."]

    @property
    def remedies(self) -> list[Remedy]:
        return [Remedy("judge", "Repeat the failed calls on the page of the run, or run the judge again.")]


def _chosen(cells: Iterable[CellDecision], wanted: dict[str, list[str]]) -> list[CellDecision]:
    """The decisions that were asked for; judges without a verdict are left out by their name only."""
    chosen = list(cells)
    for name, texts in wanted.items():
        named = [cell for cell in chosen if name == "judge" or not isinstance(cell, _NoScores)]
        known = sorted({cell.row[name] for cell in named})
        if known and (unknown := [text for text in texts if text not in known]):
            sentence = f"No decision has the {name} {unknown[0]}. There are: {', '.join(known)}."
            raise CommandError(sentence, returncode=UNDECIDED)
        chosen = [cell for cell in chosen if not texts or cell.row[name] in texts or cell not in named]
    if not chosen:
        raise CommandError("Nothing is decided: no judge has been run on the campaign's items.", returncode=UNDECIDED)
    return chosen


def _written(cell: CellDecision) -> str:
    about = filter(None, (cell.row["judge"], cell.row["criterion"], cell.row["language"], cell.basis))
    head = f"{cell.use.value.upper():<22} {' · '.join(about)}"
    reasons = [f"    {reason}" for reason in cell.reasons]
    return "\n".join((head, *reasons, *(f"    → {remedy.sentence}" for remedy in cell.remedies)))
