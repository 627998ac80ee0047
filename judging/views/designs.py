"""Designs: made, forecast, confirmed, watched and steered as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Campaign, Dataset
from annotation.views.campaigns import show_refusal
from judging import designs, tasks
from judging.forms import BudgetForm, DesignForm
from judging.models import JudgeDesign, JudgeRun
from judging.views.judges import begun_form
from judging.views.runs import live_part


def find_designs(request: HttpRequest, project: str) -> tuple[Project, QuerySet[JudgeDesign]]:
    """The project, and the designs in it."""
    current_project = access.require(user=request.user, slug=project)
    found = JudgeDesign.objects.visible_to(request.user).filter(project=current_project)
    return current_project, found.select_related(
        "project", "dataset", "selection", "rubric_version__rubric", "created_by"
    )


@require_safe
@login_required
def designs_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every design of the project, newest first."""
    current_project, found = find_designs(request, project)
    context = {"title": _("Designs"), "project": current_project, "designs": designs.list_designs(found)}
    return render(request, "judging/designs.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_design(request: HttpRequest, project: str) -> HttpResponse:
    """Make a design; nothing is sent. `?like=` begins with another one's choices."""
    current_project, found = find_designs(request, project)
    number = request.GET.get("like", "")
    like = found.filter(pk=number).first() if number.isdecimal() and len(number) < 18 else None
    begins_with = _initial(like) if like else None
    form = begun_form(request, DesignForm, initial=begins_with, project=current_project, user=request.user)
    if form.is_valid():
        try:
            design = designs.create_design(project=current_project, actor=request.user, **form.asked)
            return redirect("design", current_project.slug, design.pk)
        except Refused as refused:
            show_refusal(form, refused)
    return render(
        request, "judging/design_new.html", {"title": _("New design"), "project": current_project, "form": form}
    )


def _initial(like: JudgeDesign) -> dict[str, Any]:
    """The choices of a design, for a longer one of the same kind."""
    factors = {name: [str(level) for level in levels] for name, levels in like.factors.items()}
    names = factors.pop(designs.JUDGES, [])
    initial: dict[str, Any] = {**factors, "judges_asked": designs.judges_named(like.project, names)}
    initial |= {"dataset": like.dataset_id, "rubric_version": like.rubric_version_id, "selection": like.selection_id}
    initial |= {"repeats": like.repeats, "budget": like.budget, "jury": like.jury}
    return initial | {"temperature": ", ".join(factors.get("temperature", []))}


@require_safe
@login_required
def design_page(request: HttpRequest, project: str, design: int) -> HttpResponse:
    """Forecast before the start; progress, money and a row for each cell after it."""
    current_project, found = find_designs(request, project)
    shown = get_object_or_404(found, pk=design)
    context = {
        "title": shown.name,
        "project": current_project,
        "budget_form": BudgetForm(initial={"budget": shown.budget}),
        **(standing := _standing(shown)),
    }
    if standing["phase"] in (designs.DesignPhase.PLANNED, designs.DesignPhase.PILOT):
        context |= {"forecast": designs.forecast_design(shown), "pilot_calls": designs.PILOT_CALLS}
    here = Campaign.objects.visible_to(request.user).filter(project=current_project)
    same = here.filter(rubric_version=shown.rubric_version_id, dataset__in=Dataset.objects.holding(shown.dataset))
    return render(request, "judging/design.html", {**context, "campaigns": same})


@require_safe
@login_required
def design_live(request: HttpRequest, project: str, design: int) -> HttpResponse:
    """The part of the page that is updated; the page reloads when the design has stopped."""
    current_project, found = find_designs(request, project)
    standing = _standing(get_object_or_404(found, pk=design))
    return live_part(request, "judging/_design_live.html", {"project": current_project, **standing})


def _standing(design: JudgeDesign) -> dict[str, Any]:
    phase, progress = designs.phase_of(design), designs.progress_of_design(design)
    rows, pilot = designs.cell_results(design), _pilot(design)
    listed = [{name: getattr(row, name) for name in (*_COUNTED, "paid")} for row in rows]
    total = _summed([*listed, *([pilot] if pilot else [])])
    return {
        "design": design,
        "phase": phase,
        "progress": progress,
        "spent": designs.spent_on(design),
        "reasons": designs.pause_reasons(design) if phase == designs.DesignPhase.PAUSED else [],
        "moving": phase in (designs.DesignPhase.RUNNING, designs.DesignPhase.PILOT) or progress.in_flight > 0,
        "rows": rows,
        "pilot_row": pilot,
        "total": total,
        "has_cost": total["paid"] is not None,
        "simulated": all(row.cell.judge.simulated for row in rows),
    }


_COUNTED = ("planned", "done", "failed", "sent", "reused", "verdicts", "unreadable")


def _pilot(design: JudgeDesign) -> dict[str, Any] | None:
    """What the runs of the pilot took together; None without a pilot."""
    sums = designs.run_results(JudgeRun.objects.filter(design=design, is_pilot=True))
    return _summed(sums.values()) if sums else None


def _summed(rows: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Calls, requests and money of several runs together; an amount is unknown where all of them are."""
    known = [row["paid"] for row in rows if row.get("paid") is not None]
    counts = {name: sum(row.get(name) or 0 for row in rows) for name in _COUNTED}
    return {**counts, "paid": sum(known) if known else None}


@require_POST
@login_required
def move_design(request: HttpRequest, project: str, design: int) -> HttpResponse:
    """Start the pilot or the design, pause, resume or cancel it."""
    current_project, found = find_designs(request, project)
    moved = get_object_or_404(found, pk=design)
    with refusals.refusals_as_messages(request):
        if move := MOVES.get(request.POST.get("to", "")):
            runs = move(design=moved, actor=request.user)
            tasks.enqueue_runs(run for run in runs if run.state == run.State.RUNNING)
            if not runs:
                messages.error(request, _("No run of this design could be moved; nothing was changed."))
    return redirect("design", current_project.slug, moved.pk)


MOVES = {
    "pilot": designs.start_pilot,
    "start": designs.start_design,
    "pause": designs.pause_design,
    "resume": designs.resume_design,
    "cancel": designs.cancel_design,
}


@require_POST
@login_required
def set_design_budget(request: HttpRequest, project: str, design: int) -> HttpResponse:
    """Raise, lower or remove the budget; with `resume`, continue the runs."""
    current_project, found = find_designs(request, project)
    capped = get_object_or_404(found, pk=design)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["budget"]))
        return redirect("design", current_project.slug, capped.pk)
    with refusals.refusals_as_messages(request):
        designs.rebudget_design(design=capped, actor=request.user, **form.cleaned_data)
        if "resume" in request.POST:
            resumed = designs.resume_design(design=capped, actor=request.user)
            tasks.enqueue_runs(resumed)
            count = len(resumed)
            messages.success(request, ngettext("%d run continues.", "%d runs continue.", count) % count)
    return redirect("design", current_project.slug, capped.pk)
