"""`panelbench run_design`: make a design, or take one that there is, forecast it, start it, and wait for its end.

Exit status: 0 made, started, or with --wait finished; 1 ended paused, cancelled or with failed calls; 2 asked for
wrongly.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import ItemSelection
from judging import designs, judges, tasks
from judging.designs import DesignPhase
from judging.management.commands.run_judge import ENDED_BADLY, LOOK, USAGE, chosen_dataset, chosen_rubric, money
from judging.models import Judge, JudgeDesign


class Command(BaseCommand):
    help = "Make a design (judges x factors x repeats over the same items), forecast it and start it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="P", help="the project's address, as in /p/ADDRESS/")
        parser.add_argument(
            "--name", required=True, metavar="NAME", help="of the design; one of this name is used again"
        )
        parser.add_argument("--judge", action="append", default=[], metavar="NAME", help="a judge; repeatable")
        levels = "levels of a factor, in JSON or plain: --factor temperature=0,0.7 --factor explanation=true,false"
        parser.add_argument("--factor", action="append", default=[], type=factor, metavar="F=A,B", help=levels)
        parser.add_argument("--dataset", metavar="D", help='a name (its newest version) or "name v2"')
        parser.add_argument("--rubric", metavar="R", help='a key (its newest version) or "key v2"')
        parser.add_argument("--selection", metavar="S", help="only the items of this selection of a campaign")
        parser.add_argument("--repeats", type=int, default=1, metavar="N")
        parser.add_argument("--budget", type=money, metavar="USD", help="cap over all runs; of a design there is, anew")
        parser.add_argument("--jury", default="", choices=["", *JudgeDesign.Jury.values])
        after = parser.add_mutually_exclusive_group()
        after.add_argument("--forecast", action="store_true", help="show what it takes, and start nothing")
        after.add_argument(
            "--pilot", action="store_true", help=f"ask {designs.PILOT_CALLS} calls first, start nothing more"
        )
        parser.add_argument("--wait", action="store_true", help="show progress until it has finished or paused")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print the forecast and the cells as JSON"
        )

    def handle(self, **options: Any) -> None:
        try:
            design = _design(options)
            self._show(designs.forecast_design(design), design, as_json=options["as_json"])
            if options["forecast"]:
                return
            if options["pilot"]:
                tasks.enqueue_runs(designs.start_pilot(design=design))
            elif design.started_at:
                tasks.enqueue_runs(designs.resume_design(design=design))
            else:
                tasks.enqueue_runs(designs.start_design(design=design))
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=USAGE) from None
        if options["wait"]:
            self._watch(design)

    def _show(self, forecast: designs.DesignForecast, design: JudgeDesign, *, as_json: bool) -> None:
        pilot = forecast.pilot
        if as_json:
            plain: dict[str, Any] = {"design": design.pk, "cells": len(forecast.cells), "calls": forecast.calls}
            plain |= {
                "answered": forecast.answered,
                "shared": forecast.shared,
                "verdicts": forecast.verdicts,
                "cost": forecast.cost,
                "pilot": None,
            }
            if pilot:
                ranges = {"tokens": pilot.tokens, "cost": pilot.cost}
                plain["pilot"] = {"calls": pilot.calls} | {
                    name: each and [each.value, each.low, each.high] for name, each in ranges.items()
                }
            self.stdout.write(json.dumps(plain, default=str))
            return
        cost = "cost not known" if forecast.cost is None else f"about ${forecast.cost:.4f}"
        self.stdout.write(
            f"Design {design.pk}: {len(forecast.cells)} cells, {forecast.items} items, {forecast.calls} calls, "
            f"{forecast.answered} of them already answered; {forecast.new_calls} new calls, {cost}"
        )
        if forecast.shared:
            self.stdout.write(f"{forecast.shared} calls send what another judge of the design sends: paid once")
        if pilot and pilot.cost:
            bounds = f" [{pilot.cost.low:.4f}, {pilot.cost.high:.4f}]" if pilot.cost.low is not None else ""
            self.stdout.write(f"By {pilot.calls} replies of the pilot: ${pilot.cost.value:.4f}{bounds} (approximate)")

    def _watch(self, design: JudgeDesign) -> None:
        shown = ""
        while (phase := designs.phase_of(design)) in (DesignPhase.RUNNING, DesignPhase.PILOT):
            if (line := _line(design)) != shown:
                shown = line
                self.stdout.write(line)
            time.sleep(LOOK)
            design.refresh_from_db()
        self.stdout.write(_line(design))
        if phase in (DesignPhase.PAUSED, DesignPhase.CANCELLED):
            reasons = " ".join(designs.pause_reasons(design))
            raise CommandError(f"{phase.label}: {reasons}".strip(": "), returncode=ENDED_BADLY)
        if failed := designs.progress_of_design(design).failed:
            raise CommandError(f"{failed} calls failed; their reasons are in the logs.", returncode=ENDED_BADLY)


def _design(options: dict[str, Any]) -> JudgeDesign:
    """The design of that name, or a new one."""
    project = Project.objects.filter(slug=options["project"]).first()
    if project is None:
        raise Refused(f"There is no project at /p/{options['project']}/.")
    there = JudgeDesign.objects.filter(project=project, name=options["name"]).first()
    if there is not None:
        if options["judge"] or options["factor"]:
            raise Refused(
                f"There is a design {options['name']!r}: leave out --judge and --factor, or choose another name."
            )
        if options["budget"] is not None:
            designs.rebudget_design(design=there, budget=options["budget"])
        return there
    if not (options["dataset"] and options["rubric"]):
        raise Refused("A new design needs --dataset and --rubric.")
    return designs.create_design(
        project=project,
        name=options["name"],
        judges_asked=[_judge(project, name) for name in options["judge"]],
        dataset=chosen_dataset(project, options["dataset"]),
        rubric_version=chosen_rubric(project, options["rubric"]),
        selection=_selection(project, options["selection"]) if options["selection"] else None,
        factors=dict(options["factor"]),
        repeats=options["repeats"],
        budget=options["budget"],
        jury=options["jury"],
    )


def _selection(project: Project, name: str) -> ItemSelection:
    here = ItemSelection.objects.filter(campaign__project=project)
    selection = here.filter(name=name).order_by("-pk").first()
    if selection is None:
        known = ", ".join(here.values_list("name", flat=True)) or "none"
        raise Refused(f"There is no selection {name!r} (there are: {known}).")
    return selection


def _judge(project: Project, name: str) -> Judge:
    judge = Judge.objects.filter(project=project, name=name).first()
    if judge is None:
        known = ", ".join(Judge.objects.filter(project=project).values_list("name", flat=True)) or "none"
        raise Refused(f"There is no judge {name!r} (there are: {known}).")
    return judge


def factor(text: str) -> tuple[str, list[Any]]:
    """("temperature", [0, 0.7]) of "temperature=0,0.7"; levels that are no JSON are words.

    Of a factor that is on or off, these are read however they are written: true, True, yes, on.
    """
    name, sign, levels = (part.strip() for part in text.partition("="))
    if not (sign and name and levels):
        raise ArgumentTypeError(f"{text!r} is not FACTOR=LEVEL,LEVEL")
    return name, [_level(name, level.strip()) for level in levels.split(",")]


_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _level(factor: str, text: str) -> Any:
    if judges.FACTORS.get(factor) == (True, False) and text.casefold() in _SWITCH:
        return _SWITCH[text.casefold()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _line(design: JudgeDesign) -> str:
    progress, spent = designs.progress_of_design(design), designs.spent_on(design)
    reused = f", {progress.reused} by earlier replies" if progress.reused else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    calls = f"{progress.done} of {progress.planned} calls{reused}{failed}, {progress.attempts} requests sent"
    return f"{progress.percent:3} %  {calls}, ${spent.paid:.4f} spent"
