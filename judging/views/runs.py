"""Judge runs: started after their price was seen, watched, steered; their calls; and designs, which group runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from accounts import access, refusals
from accounts.inputs import whole_number, without_nul
from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Campaign, Dataset
from annotation.views.campaigns import show_refusal
from judging import designs, perturbed_runs, runs, spending, tasks
from judging.asking import prices
from judging.forms import CHANGES, AuditForm, BudgetForm, DesignForm, LogForm, RunForm
from judging.models import Attempt, Call, Judge, JudgeDesign, JudgeRun, Verdict
from judging.views.judges import begun_form
from judging.views.judges import find_judge as find_judges

MATERIAL = ("dataset", "rubric_version")


def _find(request: HttpRequest, project: str) -> tuple[Project, QuerySet[JudgeRun]]:
    current_project = access.require(user=request.user, slug=project)
    judge_runs = JudgeRun.objects.visible_to(request.user).filter(project=current_project)
    return current_project, judge_runs.select_related(
        "project", "judge", "dataset", "selection", "rubric_version__rubric", "created_by"
    )


@require_safe
@login_required
def runs_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every run of every judge, newest first."""
    current_project, judge_runs = _find(request, project)
    return render(
        request,
        "judging/runs.html",
        {"title": _("Runs"), "project": current_project, "runs": runs.list_runs(judge_runs)},
    )


@require_http_methods(["GET", "POST"])
@login_required
def start_run(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """Choose what is rated (GET), see what that takes, and start exactly that (POST). An address may fill in the form:
    its parameters are the names of the form's fields."""
    current_project, judges_of_project = find_judges(request, project)
    chosen_judge = get_object_or_404(judges_of_project, pk=judge)
    about_form = {"user": request.user, "has_batches": spending.has_batches(chosen_judge)}
    form = begun_form(request, RunForm, enough=MATERIAL, project=current_project, **about_form)
    context: dict[str, Any] = {
        "title": _("Start a run"),
        "project": current_project,
        "judge": chosen_judge,
        "form": form,
    }
    if form.is_valid():
        try:
            if request.method == "POST":
                return redirect("run", current_project.slug, _started(request, chosen_judge, form).pk)
            context["forecast"] = _forecast(chosen_judge, form)
        except Refused as refused:
            if refused.code == "already_planned":
                context["forecast"] = _forecast(chosen_judge, form)
            else:
                show_refusal(form, refused)
    if "forecast" in context:
        about = {name: form.cleaned_data[name] for name in ("dataset", "rubric_version", "selection")}
        context |= {"open_run_warning": runs.open_run_warning(judge=chosen_judge, **about), "key": uuid4().hex}
        context["asks_again"] = form.cleaned_data["again"]
    context |= {"price": prices.price(chosen_judge), "simulated": chosen_judge.simulated}
    return render(request, "judging/run_start.html", context)


def _started(request: HttpRequest, judge: Judge, form: RunForm) -> JudgeRun:
    key = without_nul(request.POST.get("key", "")[:100])
    run = runs.start_judge_run(judge=judge, actor=request.user, key=key or None, **form.cleaned_data)
    tasks.enqueue_run(run.pk)
    return run


def _forecast(judge: Judge, form: RunForm) -> runs.Forecast:
    chosen = {name: value for name, value in form.cleaned_data.items() if name != "again"}
    runs.refuse_unfit(judge=judge, **chosen)
    del chosen["budget"]
    return runs.forecast(judge=judge, explains=True, **chosen)


@require_http_methods(["GET", "POST"])
@login_required
def start_audit(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """Choose what an audit changes (GET), see what that takes, and start exactly that (POST)."""
    current_project, judges_of_project = find_judges(request, project)
    audited = get_object_or_404(judges_of_project, pk=judge)
    form = begun_form(request, AuditForm, enough=MATERIAL, project=current_project, user=request.user)
    context: dict[str, Any] = {"title": _("Audit a judge"), "project": current_project, "judge": audited, "form": form}
    if form.is_valid():
        chosen = dict(form.cleaned_data)
        try:
            if request.method == "POST":
                key = without_nul(request.POST.get("key", "")[:100]) or None
                run = perturbed_runs.start_perturbed_run(judge=audited, actor=request.user, key=key, **chosen)
                tasks.enqueue_run(run.pk)
                return redirect("run", current_project.slug, run.pk)
            budget = chosen.pop("budget")
            fit = {name: value for name, value in chosen.items() if name != "seed"}
            perturbed_runs.refuse_unfit_audit(judge=audited, budget=budget, **fit)
            context["forecast"] = forecast = perturbed_runs.forecast_audit(judge=audited, **chosen)
            names = dict(CHANGES)
            context["perturbed"] = [(names.get(key, key), items) for key, items in forecast.perturbed.items()]
            context["key"] = uuid4().hex
        except Refused as refused:
            show_refusal(form, refused)
    context |= {"price": prices.price(audited), "simulated": audited.simulated}
    return render(request, "judging/audit_start.html", context)


@require_safe
@login_required
def run_page(request: HttpRequest, project: str, run: int) -> HttpResponse:
    """Progress, money, verdicts by status, and the log of calls."""
    current_project, judge_runs = _find(request, project)
    shown = get_object_or_404(judge_runs, pk=run)
    context = {
        "title": str(shown),
        "project": current_project,
        "budget_form": BudgetForm(initial={"budget": shown.budget}),
        **(standing := _standing(shown)),
        "rerun_statuses": _rerun_choices(shown, standing["phase"]),
        **log(request, shown),
    }
    return render(request, "judging/run.html", context)


@require_safe
@login_required
def run_live(request: HttpRequest, project: str, run: int) -> HttpResponse:
    """The part of the run's page that is updated; the page reloads when the run has stopped."""
    current_project, judge_runs = _find(request, project)
    standing = _standing(get_object_or_404(judge_runs, pk=run))
    return live_part(request, "judging/_run_live.html", {"project": current_project, **standing})


def live_part(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """The part of a page that asks for itself while something is `moving`; then the whole page is loaded again."""
    return render(request, template, context) if context["moving"] else HttpResponseClientRefresh()


def _standing(run: JudgeRun) -> dict[str, Any]:
    """The run, how far it is, and what can be done with it now."""
    progress = runs.run_progress(run)
    phase = runs.phase(run, finished=progress.finished)
    statuses = [(status, progress.verdicts.get(status.value, 0)) for status in Verdict.Status]
    return {
        "run": run,
        "simulated": run.judge.simulated,
        "progress": progress,
        "batches": run.batches.all() if run.by_batch else (),
        "served_models": runs.served_models([run]),
        "phase": phase,
        "moving": phase == runs.Phase.RUNNING or progress.in_flight > 0,
        "statuses": [(status, count) for status, count in statuses if count],
        "verdicts": sum(progress.verdicts.values()),
        "can_rerun": bool(progress.failed) and phase != runs.Phase.CANCELLED,
    }


def _rerun_choices(run: JudgeRun, phase: runs.Phase) -> list[tuple[str, str, int]]:
    """Why calls of this run may be repeated: the reason, its name, and how many calls have it."""
    if phase in (runs.Phase.CANCELLED, runs.Phase.IMPORTED):
        return []
    labels = {**dict(Call.State.choices), **dict(Verdict.Status.choices)}
    return [(reason, str(labels[reason]), calls) for reason, calls in runs.calls_to_repeat(run).items()]


@require_POST
@login_required
def move_run(request: HttpRequest, project: str, run: int) -> HttpResponse:
    """Pause, resume, cancel, or ask the calls with the chosen statuses again."""
    current_project, judge_runs = _find(request, project)
    moved = get_object_or_404(judge_runs, pk=run)
    with refusals.refusals_as_messages(request):
        _move(request, moved, request.POST.get("to", ""))
    return redirect("run", current_project.slug, moved.pk)


def _move(request: HttpRequest, run: JudgeRun, to: str) -> None:
    if to == "rerun":
        again = runs.rerun_failed(run=run, statuses=request.POST.getlist("status"), actor=request.user)
        tasks.enqueue_run(run.pk)
        messages.success(request, ngettext("%d call will be repeated.", "%d calls will be repeated.", again) % again)
    elif to in MOVES:
        if not MOVES[to](run=run, actor=request.user):
            messages.error(request, _("The run is %s; nothing was changed.") % run.get_state_display().lower())
        elif to == "resume":
            tasks.enqueue_run(run.pk)


MOVES = {"pause": runs.pause_run, "resume": runs.resume_run, "cancel": runs.cancel_run}


@require_POST
@login_required
def set_budget(request: HttpRequest, project: str, run: int) -> HttpResponse:
    """Raise, lower or remove the budget; with `resume`, continue the run."""
    current_project, judge_runs = _find(request, project)
    capped = get_object_or_404(judge_runs, pk=run)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["budget"]))
        return redirect("run", current_project.slug, capped.pk)
    with refusals.refusals_as_messages(request):
        runs.rebudget(run=capped, actor=request.user, **form.cleaned_data)
        if "resume" in request.POST and runs.resume_run(run=capped, actor=request.user):
            tasks.enqueue_run(capped.pk)
    return redirect("run", current_project.slug, capped.pk)


# --- calls: the request, the reply, and the parsed verdicts ----------------------------------------------------------
PAGE = 50


def log(request: HttpRequest, run: JudgeRun) -> dict[str, Any]:
    """One page of a run's calls under the filters of the address: those after call `after`."""
    spoken = run.calls.order_by("item__language").values_list("item__language", flat=True).distinct()
    form = LogForm(request.GET or None, spoken=list(spoken))
    calls = form.narrow(run.calls.all()) if form.is_bound else run.calls.all()
    start = whole_number(request.GET.get("after")) or 0
    page = list(_with_replies(calls.filter(pk__gt=start))[: PAGE + 1])
    return {
        "log": page[:PAGE],
        "log_form": form,
        "next_after": page[PAGE - 1].pk if len(page) > PAGE else None,
        "is_first_page": not start,
    }


def _with_replies(calls: QuerySet[Call]) -> QuerySet[Call]:
    attempts = Attempt.objects.defer("request").order_by("number").prefetch_related("verdicts__criterion")
    narrow = calls.select_related("item", "criterion").defer("item__turns", "item__fields", "item__attributes")
    return narrow.order_by("pk").prefetch_related(Prefetch("attempts", attempts))


@require_safe
@login_required
def call_page(request: HttpRequest, project: str, run: int, call: int) -> HttpResponse:
    """One call: the prompt as it was sent, every attempt, the reply as it came, and the reading."""
    current_project = access.require(user=request.user, slug=project)
    runs = JudgeRun.objects.visible_to(request.user).filter(project=current_project).select_related("judge", "dataset")
    its_run = get_object_or_404(runs, pk=run)
    calls = its_run.calls.select_related("item", "criterion")
    shown = get_object_or_404(calls, pk=call)
    attempts = list(shown.attempts.order_by("number").prefetch_related("verdicts__criterion"))
    context = {
        "title": shown.item.title or shown.item.external_id,
        "simulated": its_run.judge.simulated,
        "project": current_project,
        "run": its_run,
        "call": shown,
        "attempts": attempts,
        "verdicts": [verdict for attempt in attempts for verdict in attempt.verdicts.all()],
        "before": calls.filter(pk__lt=shown.pk).order_by("-pk").first(),
        "after": calls.filter(pk__gt=shown.pk).order_by("pk").first(),
    }
    return render(request, "judging/call.html", {**context, "subtitle": _subtitle(shown)})


def _subtitle(call: Call) -> str:
    about = call.criterion.says("name", "en") if call.criterion else _("all criteria")
    return _("%(criteria)s, repeat %(repeat)d") % {"criteria": about, "repeat": call.repeat}


# --- designs: made, forecast, confirmed, watched and steered as one --------------------------------------------------
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
        **(standing := _design_standing(shown)),
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
    standing = _design_standing(get_object_or_404(found, pk=design))
    return live_part(request, "judging/_design_live.html", {"project": current_project, **standing})


def _design_standing(design: JudgeDesign) -> dict[str, Any]:
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
        if move := DESIGN_MOVES.get(request.POST.get("to", "")):
            runs = move(design=moved, actor=request.user)
            tasks.enqueue_runs(run for run in runs if run.state == run.State.RUNNING)
            if not runs:
                messages.error(request, _("No run of this design could be moved; nothing was changed."))
    return redirect("design", current_project.slug, moved.pk)


DESIGN_MOVES = {
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
