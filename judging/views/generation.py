"""Generation plans: made in four steps, watched and steered; their texts, read and decided on; and their specs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from annotation.desk import presentation
from annotation.models import Item
from annotation.views.campaigns import show_refusal
from judging import tasks
from judging.asking import endpoints
from judging.forms import BudgetForm
from judging.generation import conversations, decisions, plans, utterances
from judging.generation.drawing import draw_parameters
from judging.generation.messages import generation_messages
from judging.generation.plan_forecasts import forecast_generation, forecast_plan
from judging.generation.preset_words import translated_title
from judging.generation.problem_words import PROBLEM_SENTENCES
from judging.generation.specs import PRESETS, Spec, parse_spec, preset
from judging.generation.translations import EXAMPLE_SOURCE, text_messages
from judging.generation.user_agent import answer_messages, utterance_messages
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation
from judging.views.generation_forms import (
    A_JUDGE,
    OFFERED_SPECS,
    STEPS,
    DecisionForm,
    PlanForm,
    StoreForm,
    TextsForm,
    UtterancesForm,
    specs_of_plans,
)
from judging.views.runs import live_part

PLANS_PER_PAGE = 50
TEXTS_PER_PAGE = 50
MOST_PLACES = 600
"""Families that have a place on the page of a plan."""


def find_plans(request: HttpRequest, project: str) -> tuple[Project, QuerySet[GenerationPlan]]:
    """The project, and the generation plans in it."""
    current_project = access.require(user=request.user, slug=project)
    found = GenerationPlan.objects.visible_to(request.user).filter(project=current_project)
    return current_project, found.select_related("project", "created_by")


@require_safe
@login_required
def generation_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every plan of the project, newest first."""
    current_project, found = find_plans(request, project)
    listed = found.defer("spec").annotate(spec_title=KT("spec__title")).order_by("-pk")
    page = Paginator(listed, PLANS_PER_PAGE).get_page(request.GET.get("page"))
    counts = plans.counts_of_plans(list(page))
    rows = [
        {**counts[plan.pk], "plan": plan, "phase": plans.plan_phase(plan, is_open=counts[plan.pk]["open"] > 0)}
        for plan in page
    ]
    context = {"title": _("Generation"), "project": current_project, "rows": rows, "page_obj": page}
    return render(request, "judging/generation/plans.html", context)


# --- a new plan -------------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
@login_required
def new_plan(request: HttpRequest, project: str) -> HttpResponse:
    """Make a plan in four steps; nothing is sent. `?like=` begins with another plan's choices, `?spec=` with a spec."""
    current_project, found = find_plans(request, project)
    form = PlanForm(current_project, request.POST or None, begins_with=_begins_with(request, found))
    step = min(whole_number(request.POST.get("step")) or 0, len(STEPS) - 1)
    go = request.POST.get("go", "")
    if form.is_bound:
        form.visited = max(form.visited, step + 1)
        step = _moved(form, step, go)
        if go == "make" and form.is_valid() and (plan := _made(request, current_project, form)):
            return redirect("generation_plan", current_project.slug, plan.pk)
        form.without_later_errors(step)
        step = form.first_wrong_step(step) if go == "make" else step
    context = {"title": _("New plan"), "project": current_project, "form": form, "step": step, **_told(form, step, go)}
    return render(request, "judging/generation/plan_new.html", context)


def _begins_with(request: HttpRequest, found: QuerySet[GenerationPlan]) -> dict[str, Any]:
    """What the address says: a preset, a spec of a plan, or everything of a plan."""
    like = found.filter(pk=whole_number(request.GET.get("like"))).first()
    if like is None:
        return {"spec": request.GET.get("spec", PRESETS[0]), "source": whole_number(request.GET.get("source"))}
    spec = parse_spec(like.spec)
    key = next((key for key in OFFERED_SPECS if preset(key).digest == spec.digest), None)
    if key is None:  # the newest plan with the same spec stands for it
        alike = GenerationPlan.objects.filter(project=like.project, spec_digest=like.spec_digest)
        key = f"plan-{alike.values_list('pk', flat=True).latest('pk')}"
    writers, users = like.writers, like.user_models
    limits = [writer.parameters.get("max_tokens", plans.LONGEST_REPLY) for writer in writers]
    return {
        "spec": key,
        "source": like.source_id,
        "source_language": like.source_language,
        "languages": like.languages,
        "generators": [f"{writer.provider}\x1f{writer.model}" for writer in writers],
        "user_models": [f"{user.provider}\x1f{user.model}" for user in users],
        "utterance_judge": f"{A_JUDGE}{like.utterance_judge_id}" if like.utterance_judge_id else "",
        "utterance_rubric": str(like.utterance_rubric_id or ""),
        "families": like.families_planned,
        "repeats": like.repeats,
        "budget": like.budget,
        "max_tokens": max(limits, default=plans.LONGEST_REPLY),
    }


def _moved(form: PlanForm, step: int, go: str) -> int:
    """The step to show next. An edit puts the chosen spec, as YAML, into the field of the own one."""
    form.full_clean()
    if go == "back":
        return max(0, step - 1)
    if go == "edit":
        form.edit()
        return 0
    if go.isdecimal() and int(go) <= min(form.visited, len(STEPS) - 1):
        return step if int(go) > step and form.has_errors(step) else int(go)
    return step + 1 if go == "next" and not form.has_errors(step) else step


def _told(form: PlanForm, step: int, go: str) -> dict[str, Any]:
    """What a step shows beside its fields: an example of the spec, or the forecast."""
    spec = form.chosen_spec if form.is_bound else _begun_spec(form)
    if step == 0 and spec is not None:
        number = (whole_number(form.data.get("example")) or 1) + (go == "example") if form.is_bound else 1
        language = next((tag for tag in spec.templates if tag), "en")
        return {"spec": spec, **_example(spec, number, language)}
    if step == len(STEPS) - 1 and spec is not None and form.tags and not form.has_errors(2):
        values = form.cleaned_data
        families, repeats = values.get("families") or 1, values.get("repeats") or 1
        families = len(form.sources) if form.is_translation else families
        size = {"languages": form.tags, "families": families, "repeats": repeats}
        try:
            rows, judge = form.planned_models(spec)
            forecast = forecast_generation(spec=spec, generators=rows, sources=form.sources, judge=judge, **size)
            return {"spec": spec, **size, "forecast": forecast}
        except Refused as refused:
            show_refusal(form, refused)
            return {"spec": spec, **size}
    return {"spec": spec}


def _begun_spec(form: PlanForm) -> Spec | None:
    key = str(form.initial.get("spec", PRESETS[0]))
    known = {f"plan-{plan.pk}": spec for plan, spec in form.own_specs}
    return preset(key) if key in OFFERED_SPECS else known.get(key, preset(PRESETS[0]))


def _example(spec: Spec, number: int, language: str) -> dict[str, Any]:
    if spec.kind == "translation":
        asked = text_messages(spec, {}, EXAMPLE_SOURCE, language="et")
        return {"example": number, "drawn": [], "request_messages": asked}
    drawn = draw_parameters(spec, seed=1, number=number)
    about = {"example": number, "drawn": _drawn(spec, drawn, language)}
    if spec.conversation is not None:
        said = [{"speaker": spec.user_role, "text": "…"}]
        return {
            **about,
            "request_messages": utterance_messages(spec, drawn, language=language, turns=[]),
            "chatbot_messages": answer_messages(spec, language=language, turns=said),
        }
    return {
        **about,
        "request_messages": generation_messages(spec, drawn, language=language),
    }


def _drawn(spec: Spec, parameters: dict[str, str | int], language: str) -> list[tuple[str, str | int, str]]:
    """Each drawn parameter with its title, its value, and what the template says for it."""
    rows = []
    for parameter in spec.parameters:
        if parameter.name in parameters:
            value = parameters[parameter.name]
            levels = [level for level in parameter.levels if level.value == value]
            text = levels[0].text(language) if levels else str(value)
            rows.append((translated_title(parameter.title), value, text if text != str(value) else ""))
    return rows


def _made(request: HttpRequest, project: Project, form: PlanForm) -> GenerationPlan | None:
    try:
        with transaction.atomic():  # a judge is declared for a plan that is made
            judging = form.utterance_judging(request.user)
            return plans.create_plan(project=project, actor=request.user, **form.asked, **judging)
    except Refused as refused:
        show_refusal(form, refused)
        return None


# --- one plan ---------------------------------------------------------------------------------------------------------


@require_safe
@login_required
def plan_page(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """How far a plan is, what it costs, and what can be done with it."""
    current_project, found = find_plans(request, project)
    related = ("source", "job", "utterance_judge", "utterance_rubric__rubric")
    shown = get_object_or_404(found.select_related(*related), pk=plan)
    store_form = StoreForm(initial={"name": shown.name, "only": "whole"})
    if shown.source is None:
        del store_form.fields["with_natives"]
    context = {
        "title": shown.name,
        "project": current_project,
        "spec": parse_spec(shown.spec),
        "budget_form": BudgetForm(initial={"budget": shown.budget}),
        "store_form": store_form,
        "utterances_form": _utterances_form(shown),
        "stored": shown.datasets.select_related("dataset"),
        "forecast": forecast_plan(shown),
        **_standing(shown),
    }
    return render(request, "judging/generation/plan.html", context)


def _utterances_form(plan: GenerationPlan) -> UtterancesForm | None:
    """The form that stores the judged turns of users; none where nothing was judged."""
    if plan.utterance_judge is None or not utterances.judged_tries(plan):
        return None
    return UtterancesForm(initial={"name": _("%s: turns of users") % plan.name[:100]}, auto_id="utterances_%s")


@require_safe
@login_required
def plan_live(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """The part of the page that is updated; the page reloads when the plan has stopped. Nothing if it is as it was when
    the page showed the `revision`."""
    current_project, found = find_plans(request, project)
    shown = get_object_or_404(found, pk=plan)
    if request.GET.get("revision") == plans.plan_revision(shown):
        return HttpResponse(status=204)
    standing = _standing(shown)
    return live_part(request, "judging/generation/_plan_live.html", {"project": current_project, **standing})


def _standing(plan: GenerationPlan) -> dict[str, Any]:
    revision = plans.plan_revision(plan)  # read first: what changes meanwhile is shown the next time
    progress = plans.plan_progress(plan)
    moving = progress.phase == plans.PlanPhase.RUNNING or progress.in_flight > 0
    models, known = list(plan.generators.all()), endpoints.all_providers()
    undecided = plan.realisations.filter(state=Realisation.State.WRITTEN, decision="")
    return {
        "plan": plan,
        "revision": revision,
        "progress": progress,
        "phase": progress.phase,
        "moving": moving,
        "places": progress.families[:MOST_PLACES],
        "further_places": max(0, len(progress.families) - MOST_PLACES),
        "cells": plans.progress_by_cell(plan),
        **_set_aside(plan),
        "undecided": undecided.count(),
        "writers": [model for model in models if model.role == PlanGenerator.Role.GENERATOR],
        "user_models": [model for model in models if model.role == PlanGenerator.Role.USER_MODEL],
        "simulated": all((declared := known.get(writer.provider)) and declared.simulated for writer in models),
    }


def _set_aside(plan: GenerationPlan) -> dict[str, Any]:
    """How many texts are set aside, by language and generator: a column for each reason, the most frequent first."""
    counted = conversations.set_aside_counts(plan)
    total = sum((Counter(row.by_code) for row in counted), Counter[str]())
    codes = [code for code, _count in total.most_common()]
    rows = [(row, [row.by_code.get(code, 0) for code in codes]) for row in counted]
    return {"aside_codes": codes, "aside_rows": rows if codes else [], "aside_total": total.total()}


@require_POST
@login_required
def move_plan(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """Write the examples, start the whole, pause, resume or cancel."""
    current_project, found = find_plans(request, project)
    moved = get_object_or_404(found, pk=plan)
    with refusals.refusals_as_messages(request):
        if move := PLAN_MOVES.get(request.POST.get("to", "")):
            if not move(plan=moved, actor=request.user):
                messages.error(request, _("The plan is in another state now; nothing was changed."))
            elif moved.state == GenerationPlan.State.RUNNING:
                tasks.enqueue_plan(moved)
    return redirect("generation_plan", current_project.slug, moved.pk)


PLAN_MOVES = {
    "examples": plans.start_examples,
    "start": plans.start_plan,
    "pause": plans.pause_plan,
    "resume": plans.resume_plan,
    "cancel": plans.cancel_plan,
    "again": plans.ask_again,
}


@require_POST
@login_required
def set_plan_budget_view(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """Raise, lower or remove the budget; with `resume`, continue the plan."""
    current_project, found = find_plans(request, project)
    capped = get_object_or_404(found, pk=plan)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["budget"]))
        return redirect("generation_plan", current_project.slug, capped.pk)
    with refusals.refusals_as_messages(request):
        plans.set_plan_budget(plan=capped, actor=request.user, **form.cleaned_data)
        if "resume" in request.POST and plans.resume_plan(plan=capped, actor=request.user):
            tasks.enqueue_plan(capped)
    return redirect("generation_plan", current_project.slug, capped.pk)


@require_POST
@login_required
def store_plan(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """Store the texts as a dataset."""
    current_project, found = find_plans(request, project)
    kept = get_object_or_404(found, pk=plan)
    form = StoreForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect("generation_plan", current_project.slug, kept.pk)
    try:
        dataset = tasks.store_texts_here_or_later(kept, request.user, **form.cleaned_data)
        if dataset is not None:
            return redirect("dataset", current_project.slug, dataset.pk)
        return redirect("generation_plan", current_project.slug, kept.pk)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("generation_plan", current_project.slug, kept.pk)


@require_POST
@login_required
def store_utterances_view(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """Store the judged turns of users as a dataset, for native speakers."""
    current_project, found = find_plans(request, project)
    judged = get_object_or_404(found, pk=plan)
    form = UtterancesForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect("generation_plan", current_project.slug, judged.pk)
    try:
        dataset = utterances.store_utterances(plan=judged, actor=request.user, **form.cleaned_data)
        return redirect("dataset", current_project.slug, dataset.pk)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("generation_plan", current_project.slug, judged.pk)


# --- texts ------------------------------------------------------------------------------------------------------------


def _texts(plan: GenerationPlan) -> QuerySet[Realisation]:
    """In the order in which they were planned and are read: family by family, language by language."""
    related = ("family__source", "generator", "simulator", "opening", "decided_by", "plan__project")
    found = Realisation.objects.filter(plan=plan).select_related(*related)
    return found.order_by("pk")


@require_safe
@login_required
def texts_page(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """The texts of a plan, by language, generator, state, decision, family, and the reason why one was discarded."""
    current_project, found = find_plans(request, project)
    its_plan = get_object_or_404(found, pk=plan)
    form = TextsForm(its_plan, request.GET or None)
    texts = _texts(its_plan).filter(**form.filters)
    if code := (form.cleaned_data.get("problem") if form.is_bound and form.is_valid() else ""):
        discarded = _with_problem(its_plan, code)
        texts = texts.filter(Q(pk__in=discarded) | Q(opening__in=discarded))
    number = form.filters.get("family__number")
    family = its_plan.families.filter(number=number).first() if number else None
    context = {
        "title": _("Family %d") % family.number if family else _("Texts"),
        "project": current_project,
        "plan": its_plan,
        "form": form,
        "problem": code,
        "family": family,
        "drawn": _drawn(parse_spec(its_plan.spec), family.parameters, "en") if family else (),
        "page_obj": Paginator(texts, TEXTS_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "judging/generation/texts.html", context)


def _with_problem(plan: GenerationPlan, code: str) -> QuerySet[GenerationAttempt, int]:
    """Texts of which a reply was discarded for this reason: in the JSON, a quotation mark of a value is escaped."""
    attempts = (
        GenerationAttempt.objects.filter(realisation__plan=plan)
        if code in PROBLEM_SENTENCES
        else GenerationAttempt.objects.none()
    )
    named = attempts.annotate(told=Cast("problems", TextField())).filter(told__regex=f'"code": ?"{code}"')
    return named.values_list("realisation_id", flat=True)


def _find_text(request: HttpRequest, project: str, plan: int, text: int) -> tuple[Project, Realisation]:
    current_project, found = find_plans(request, project)
    return current_project, get_object_or_404(_texts(get_object_or_404(found, pk=plan)), pk=text)


def shown_text(text: Realisation) -> presentation.ItemShown:
    """A text as annotators would see it."""
    item = Item(turns=text.turns, fields=text.fields, language=text.language, title="")
    return presentation.show_item(item, ())


def _beside(text: Realisation) -> dict[str, Realisation | None]:
    """The texts before and after it, in the order of reading."""
    texts = Realisation.objects.filter(plan=text.plan_id)
    return {
        "before": texts.filter(pk__lt=text.pk).order_by("-pk").first(),
        "after": texts.filter(pk__gt=text.pk).order_by("pk").first(),
    }


def _about(text: Realisation) -> dict[str, Any]:
    """What every page of one text shows."""
    return {
        "plan": text.plan,
        "text": text,
        "item": shown_text(text),
        "original": text.family.source and presentation.show_item(text.family.source, ()),
        "drawn": _drawn(parse_spec(text.plan.spec), text.family.parameters, text.language),
    }


@require_safe
@login_required
def text_page(request: HttpRequest, project: str, plan: int, text: int) -> HttpResponse:
    """One text as annotators would see it, its parameters, and every request that was paid for it."""
    current_project, shown = _find_text(request, project, plan, text)
    is_conversation = shown.simulator is not None
    context = {
        "title": _("Family %d") % shown.family.number,
        "project": current_project,
        "conversation": conversations.conversation_turns(shown) if is_conversation else None,
        "attempts": () if is_conversation else shown.attempts.order_by("number"),
        **_about(shown),
        **_beside(shown),
    }
    return render(request, "judging/generation/text.html", context)


@require_POST
@login_required
def decide_text(request: HttpRequest, project: str, plan: int, text: int) -> HttpResponse:
    """Keep a text, set it aside, or take that back; then the next one of the queue, or the same page."""
    current_project, decided = _find_text(request, project, plan, text)
    form = DecisionForm(request.POST)
    with refusals.refusals_as_messages(request):
        if form.is_valid():
            decisions.decide_realisation(realisation=decided, actor=request.user, **form.cleaned_data)
    if "reading" not in request.POST:
        return redirect("generation_text", current_project.slug, plan, decided.pk)
    language = request.POST.get("language", "")
    query = {"language": language, **({"decided": decided.pk} if decided.decision else {"text": decided.pk})}
    return redirect(reverse("generation_reading", args=[current_project.slug, plan], query=query))


@require_safe
@login_required
def reading_page(request: HttpRequest, project: str, plan: int) -> HttpResponse:
    """The next text that nobody decided on: keep it, or set it aside. `after` skips, `text` shows a certain one."""
    current_project, found = find_plans(request, project)
    its_plan = get_object_or_404(found, pk=plan)
    texts = _texts(its_plan).filter(state=Realisation.State.WRITTEN)
    language = request.GET.get("language", "")
    if language in its_plan.languages:
        texts = texts.filter(language=language)
    queue = texts.filter(decision="")
    shown = _next(request, texts, queue)
    context = {
        "title": _("Reading"),
        "project": current_project,
        "plan": its_plan,
        "chosen_language": language if language in its_plan.languages else "",
        "left": queue.count(),
        "read": texts.exclude(decision="").count(),
        "decided": texts.filter(pk=whole_number(request.GET.get("decided"))).exclude(decision="").first(),
        **(_about(shown) if shown else {}),
    }
    return render(request, "judging/generation/reading.html", context)


def _next(request: HttpRequest, texts: QuerySet[Realisation], queue: QuerySet[Realisation]) -> Realisation | None:
    """A certain text, else the first undecided one behind the one that is skipped, else the first of all."""
    chosen = whole_number(request.GET.get("text"))
    skipped = whole_number(request.GET.get("after")) or 0
    return texts.filter(pk=chosen).first() or queue.filter(pk__gt=skipped).first() or queue.first()


# --- specs ------------------------------------------------------------------------------------------------------------


@require_safe
@login_required
def specs_page(request: HttpRequest, project: str) -> HttpResponse:
    """The presets, and the specs of the project's plans."""
    current_project, found = find_plans(request, project)
    own = [(spec, plan, f"plan-{plan.pk}") for plan, spec in specs_of_plans(current_project)]
    context = {
        "title": _("Specs"),
        "project": current_project,
        "presets": [preset(key) for key in OFFERED_SPECS],
        "own": own,
        "has_plans": found.exists(),
    }
    return render(request, "judging/generation/specs.html", context)


@require_safe
@login_required
def spec_page(request: HttpRequest, project: str, spec: str) -> HttpResponse:
    """One spec: its templates, parameters and rules, an example, and its YAML."""
    current_project, _found = find_plans(request, project)
    known = {f"plan-{plan.pk}": of_plan for plan, of_plan in specs_of_plans(current_project)}
    if spec not in OFFERED_SPECS and spec not in known:
        raise Http404
    shown = known.get(spec) or preset(spec)
    number = whole_number(request.GET.get("example"), largest=10_000) or 1
    language = next((tag for tag in shown.templates if tag), "en")
    context = {"title": translated_title(shown.title), "project": current_project, "spec": shown, "key": spec}
    return render(request, "judging/generation/spec.html", {**context, **_example(shown, number, language)})
