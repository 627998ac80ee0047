"""`panelbench align_judge`: split a campaign's labels, score versions of a judge, and look at the locked labels.

Exit status: 0 done; 1 a run ended paused, cancelled or with failed calls; 2 usage error, or no look is left.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts import jobs
from accounts.models import Job, Project
from accounts.refusals import Refused
from analytics.api.alignment import AlignmentDetailSerializer
from analytics.judges import alignments
from annotation.models import Campaign
from judging import tasks
from judging.management.commands.run_judge import ENDED_BADLY, LOOK, USAGE, money
from judging.models import (
    Alignment,
    AlignmentCandidate,
    AlignmentLook,
    AlignmentProposal,
    AlignmentSearch,
    Judge,
    JudgeRun,
)
from judging.versions import alignment, proposals


class Command(BaseCommand):
    help = "Align a judge with a campaign's panel: tune versions of it on some labels, test them on locked ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument("--name", required=True, metavar="NAME", help="of the alignment; one of it is used again")
        new = parser.add_argument_group("a new alignment")
        new.add_argument("--campaign", metavar="C", help="the name of the campaign that has the labels")
        new.add_argument("--judge", metavar="J", help="the judge that is aligned")
        new.add_argument("--share", type=float, default=0.4, help="of the scenarios, locked (default: 0.4)")
        new.add_argument("--looks", type=int, default=3, help="allowed at the locked split (default: 3)")
        new.add_argument("--measure", choices=Alignment.Measure.values, default="accuracy")
        new.add_argument("--seed", type=int)
        new.add_argument("--budget", type=money, metavar="USD", help="cap over everything the alignment asks")
        version = parser.add_argument_group("a version")
        version.add_argument("--version-name", metavar="V", help="make a version of this name, and score it")
        version.add_argument("--from", dest="made_from", metavar="V", help="the version it is made from")
        version.add_argument("--instructions", default="", metavar="FILE", help="a text file of further instructions")
        texts = "a JSON file: a list of {criterion, point, text}; point null is the definition"
        version.add_argument("--own-texts", default="", metavar="FILE", help=texts)
        proposed = ("PROVIDER", "MODEL")
        version.add_argument("--propose", nargs=2, metavar=proposed, help="have this model write --version-name")
        version.add_argument("--search", choices=AlignmentSearch.Method.values, help="versions with examples")
        version.add_argument("--steps", type=int, default=8, help="of the search (default: 8)")
        version.add_argument("--look", metavar="V", help="test this version on the locked labels: it is counted")
        closing = "give up the looks that are left; without a look so far, what is locked is free again"
        parser.add_argument("--close", action="store_true", help=closing)
        parser.add_argument("--wait", action="store_true", help="wait until what was asked is answered")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print it as the API gives it")

    def handle(self, **options: Any) -> None:
        try:
            current = _alignment(options)
            if options["close"]:
                alignment.close_alignment(alignment=current)
                self.stdout.write("\n".join(_lines(current)))
                return
            if options["propose"]:
                self._propose(current, options)
                return
            if options["search"]:
                self._search(current, options)
                return
            judge_runs = list(self._asked(current, options))
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        except (OSError, ValueError) as error:
            raise CommandError(f"A file can't be read: {error}", returncode=USAGE) from None
        tasks.enqueue_runs(judge_runs)
        if options["wait"]:
            for run in judge_runs:
                self._watch(run)
            alignments.settle_open_looks()
        if options["as_json"]:
            self.stdout.write(json.dumps(AlignmentDetailSerializer(current).data, default=str))
        else:
            self.stdout.write("\n".join(_lines(current)))

    def _asked(self, current: Alignment, options: dict[str, Any]) -> list[JudgeRun]:
        base = current.candidates.get(judge=current.base_id)
        started = [alignment.start_tuning(candidate=base)]
        if name := options["version_name"]:
            parent = _version(current, options["made_from"]) if options["made_from"] else base
            variant = alignment.edited_variant(
                current,
                parent.judge,
                instructions=_text(options["instructions"]),
                own_texts=json.loads(_text(options["own_texts"]) or "[]"),
            )
            made = alignment.add_candidate(alignment=current, parent=parent.judge, variant=variant, name=name)
            started.append(alignment.start_tuning(candidate=made))
        if options["look"]:
            look: AlignmentLook = alignment.take_look(candidate=_version(current, options["look"]))
            started += alignment.look_runs(look)
        return started

    def _propose(self, current: Alignment, options: dict[str, Any]) -> None:
        """Ask a model for the next version; with --wait, until it and its score are there."""
        parent = _version(current, options["made_from"] or current.base.name)
        cases = alignments.proposal_cases(current, alignment.run_of(current, parent.judge, current.tuning))
        provider, model = options["propose"]
        name = options["version_name"] or ""
        about = {"candidate": parent, "cases": cases, "provider": provider, "model": model}
        proposal = proposals.begin_proposal(name=name, **about)
        jobs.enqueue(proposal)
        while options["wait"]:
            proposal = AlignmentProposal.objects.select_related("job", "candidate__alignment").get(pk=proposal.pk)
            if proposal.reason:
                raise CommandError(proposal.reason, returncode=ENDED_BADLY)
            if proposal.candidate:
                self._watch(alignment.start_tuning(candidate=proposal.candidate))
                break
            time.sleep(LOOK)
        self.stdout.write("\n".join(_lines(current)))

    def _search(self, current: Alignment, options: dict[str, Any]) -> None:
        begun = proposals.begin_search(alignment_searched=current, method=options["search"], steps=options["steps"])
        jobs.enqueue(begun)
        while options["wait"] and AlignmentSearch.objects.filter(pk=begun.pk, job__state__in=Job.OPEN).exists():
            time.sleep(LOOK)
        begun.refresh_from_db()
        self.stdout.write("\n".join(_lines(current)))
        if begun.reason:
            raise CommandError(begun.reason, returncode=ENDED_BADLY)

    def _watch(self, run: JudgeRun) -> None:
        while not alignment.is_answered(run):
            time.sleep(LOOK)
            run.refresh_from_db()
            if run.state != JudgeRun.State.RUNNING and not alignment.is_answered(run):
                raise CommandError(f"{run}: {run.reason or run.get_state_display()}", returncode=ENDED_BADLY)


def _text(path: str) -> str:
    return Path(path).read_text("utf-8") if path else ""


def _alignment(options: dict[str, Any]) -> Alignment:
    """The alignment of that name, or a new one."""
    project = Project.objects.filter(slug=options["project"]).first()
    if project is None:
        raise Refused(f"There is no project at /p/{options['project']}/.")
    there = Alignment.objects.filter(project=project, name=options["name"]).first()
    if there is not None:
        if options["campaign"] or options["judge"]:
            raise Refused(f"There is an alignment {options['name']!r}: leave out --campaign and --judge.")
        return there
    if not (options["campaign"] and options["judge"]):
        raise Refused("A new alignment needs --campaign and --judge.")
    campaign = Campaign.objects.filter(project=project, name=options["campaign"]).first()
    judge = Judge.objects.filter(project=project, name=options["judge"]).first()
    for found, what in ((campaign, "campaign"), (judge, "judge")):
        if found is None:
            raise Refused(f"There is no {what} {options[what]!r}.")
    chosen = {name: options[name] for name in ("name", "share", "looks", "measure", "seed", "budget")}
    return alignment.create_alignment(campaign=campaign, base=judge, **chosen)  # type: ignore[arg-type]


def _version(current: Alignment, name: str) -> AlignmentCandidate:
    found = current.candidates.select_related("judge", "alignment").filter(judge__name=name).first()
    if found is None:
        known = ", ".join(current.candidates.values_list("judge__name", flat=True))
        raise Refused(f"There is no version {name!r} (there are: {known}).")
    return found


def _lines(current: Alignment) -> list[str]:
    lines = [f"{current.name}: {current.looks.count()} of {current.looks_allowed} looks taken"]
    if current.closed_at:
        lines.append(f"  {alignment.no_looks_left(current)}")
    for row in alignment.split_by_language(current):
        short = "; too few scenarios" if row.is_short else ""
        lines.append(
            f"  {row.language}: {row.tuning_items} tuning items ({row.tuning_scenarios} scenarios), "
            f"{row.test_items} locked ({row.test_scenarios} scenarios){short}"
        )
    for version in alignments.tuned_versions(current):
        gain = f"; gain {version.gain}" if version.gain else ""
        lines.append(f"  {version.candidate.judge.name}: {version.score or 'not scored yet'}{gain}")
    for shown in alignments.shown_looks(current):
        lines.append(f"  look {shown.look.number} at {shown.look.candidate.judge.name}, intervals at {shown.level} %:")
        lines += [f"    {part}: {figure}" for part, figure in shown.figures.items()] or ["    not answered yet"]
        for language, own in shown.languages.items():
            lines.append(f"    {language} overfit: {own['overfit']}")
    return lines
