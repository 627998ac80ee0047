"""Judges: declared, looked at, and what they would ask about an item."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, languages
from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Campaign, Criterion, Dataset, Item, RubricVersion
from annotation.rubrics import unsaved_criteria
from annotation.views.campaigns import show_refusal
from annotation.views.rubric_form import posted_fields
from judging import judges, providers, requests, runs, tasks, trials
from judging.asking import allowances, endpoints
from judging.asking.client import stored_answer
from judging.forms import JudgeForm, PreviewForm, TrialForm, audit_query, run_query
from judging.models import Attempt, Judge, JudgeRun, JudgeTrial
from judging.perturbation import change_of
from judging.prompts import PromptVariant
from judging.study_presets import STUDY_PRESETS, StudyPreset, presets_by_study
from judging.versions import examples

AUDIT_NAMES = {
    "repeats": gettext_lazy("Repeats"),
    "position": gettext_lazy("Position"),
    "prompt_language": gettext_lazy("Language of the prompt"),
    "perturbation": gettext_lazy("Changed texts"),
    "canaries": gettext_lazy("Canaries"),
}
"""The audits that need a run; the others are figures of the ratings that there are."""
MOST_UNKNOWN = 5
AnyForm = TypeVar("AnyForm", bound=forms.Form)
REPLY_FORMS = {
    "json_schema": gettext_lazy("JSON by a schema"),
    "response_schema": gettext_lazy("JSON by a schema"),
    "json_object": gettext_lazy("a JSON object"),
    "tool_call": gettext_lazy("a tool call"),
    "none": gettext_lazy("text"),
}


def find_judge(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Judge]]:
    """The project, and the judges in it."""
    current_project = access.require(user=request.user, slug=project)
    return current_project, Judge.objects.visible_to(request.user).filter(project=current_project)


def begun_form(
    request: HttpRequest, form_class: type[AnyForm], *, enough: Collection[str] = (), **options: Any
) -> AnyForm:
    """The form as it was sent, or begun by the address, whose parameters have the names of its fields.

    An address with all of ``enough`` counts as sent: fields that it does not name have their initial values. What
    names no field, or has a value that its field refuses, is left out with a message.
    """
    if request.method == "POST":
        return form_class(request.POST, **options)
    given = request.GET
    blank = form_class(**options)
    unknown = sorted(given.keys() - blank.fields.keys() - {"study", "like"})
    for name in unknown[:MOST_UNKNOWN]:
        messages.warning(request, _("The form has no field “%s”: this part of the address was left out.") % name[:40])
    if enough and all(given.get(name) for name in enough):
        filled = given.copy()
        for name, field in blank.fields.items():
            initial = blank.get_initial_for_field(field, name)
            if initial is not None and field.widget.value_omitted_from_data(given, {}, name):
                filled[name] = initial
        return form_class(filled, **options)
    for name in given.keys() & blank.fields.keys():
        field = blank.fields[name]
        try:
            blank.initial[name] = field.clean(field.widget.value_from_datadict(given, {}, name))
        except forms.ValidationError as error:
            why = " ".join(error.messages)
            messages.warning(request, _("“%(field)s” in the address: %(why)s") % {"field": field.label, "why": why})
    return blank


@require_safe
@login_required
def judges_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every judge of the project, with its runs and what they cost."""
    current_project, judges_of_project = find_judge(request, project)
    paid = Attempt.objects.filter(call__run__judge=OuterRef("pk")).order_by().values("call__run__judge")
    spent = Subquery(paid.annotate(total=Sum("cost")).values("total"))
    chosen = request.GET.get("campaign", "")
    campaigns = Campaign.objects.visible_to(request.user).filter(project=current_project)
    of_designs = Judge.objects.filter(project=current_project).only_in_designs()
    own = judges_of_project.exclude(pk__in=of_designs.values("pk"))
    with_designs = request.GET.get("designs") == "show" or not own.exists()
    context = {
        "title": _("Judges"),
        "project": current_project,
        "campaign": campaigns.filter(pk=chosen).first() if chosen.isdecimal() and len(chosen) < 10 else None,
        "judges": (judges_of_project if with_designs else own).annotate(runs_count=Count("runs"), spent=spent),
        "with_designs": with_designs,
        "hidden_judges": 0 if with_designs else of_designs.count(),
        "providers": endpoints.all_providers(),
        "allowed": allowances.allowed_providers(current_project),
        "failed": set(trials.failed_judges(judges_of_project).values_list("pk", flat=True)),
    }
    return render(request, "judging/judges.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_judge(request: HttpRequest, project: str) -> HttpResponse:
    """Declare a judge, after a test of one call; the same configuration again leads to the judge there is.

    `?like=` begins with the configuration of another judge, of which the new one is a version.
    """
    current_project, judges_of_project = find_judge(request, project)
    study = request.GET.get("study", "")
    preset = STUDY_PRESETS.get(study)
    like = judges_of_project.exclude(provider="").filter(pk=whole_number(request.GET.get("like"))).first()
    initial = _as_version(like) if like else _as_study(study, preset)
    form = begun_form(request, JudgeForm, project=current_project, initial=initial)
    material = {"project": current_project, "user": request.user}
    trial_form = TrialForm(request.POST if "try" in request.POST else None, initial=_usual_material(form), **material)
    tasks.list_models_later(allowances.allowed_names(current_project))
    context: dict[str, Any] = {
        "title": _("Add a judge"),
        "project": current_project,
        "form": form,
        "trial_form": trial_form,
        "like": like,
        "studies": presets_by_study(),
        "study": study,
        "preset": preset,
        "most_usd": trials.MOST_USD,
    }
    if form.is_valid():
        try:
            if "preview" in request.POST:
                context |= _prompts_of_form(current_project, form, study if preset else "", like or preset)
            elif "try" in request.POST:
                context |= _begun_test(request, form, trial_form, study if preset else "", like or preset)
            elif (answer := _saved(request, current_project, form, study, preset, like)) is not None:
                return answer
        except Refused as refused:
            show_refusal(form, refused)
    context["offered"] = providers.offered_models(current_project)
    return render(request, "judging/judge_new.html", context)


def _usual_material(form: JudgeForm) -> dict[str, Any]:
    """What a test begins with: dataset and rubric of the examples, if the judge has any."""
    selection = form.cleaned_data.get("examples_from") if form.is_bound and form.is_valid() else None
    if selection is None:
        return {}
    return {"dataset": selection.campaign.dataset_id, "rubric_version": selection.campaign.rubric_version_id}


def _begun_test(
    request: HttpRequest, form: JudgeForm, trial_form: TrialForm, study: str, begun: StudyPreset | Judge | None
) -> dict[str, Any]:
    """A test of the judge in the form, which a worker makes; what the page shows of it."""
    has_material = not trial_form.lacks
    if has_material and not trial_form.is_valid():
        return {}
    declared = _declared(form, begun)
    series = trials.begin_trials(
        project=trial_form.project,
        provider=declared["provider"],
        model=declared["model"],
        parameters=declared["parameters"],
        variant=declared["variant"],
        items=trial_form.chosen_items if has_material else (),
        rubric_version=trial_form.cleaned_data["rubric_version"] if has_material and not study else None,
        study=study if has_material else "",
        actor=request.user,
    )
    tasks.enqueue_trials(series)
    return _shown_trials(JudgeTrial.objects.filter(series=series))


def _shown_trials(series: QuerySet[JudgeTrial]) -> dict[str, Any]:
    calls = list(series)
    return {
        "trials": [(trial, _reply_text(trial)) for trial in calls],
        "series": calls[0].series,
        "is_waiting": any(trial.ended_at is None for trial in calls),
        "is_passed": any(trial.is_read for trial in calls),
        "cost": sum((trial.cost for trial in calls if trial.cost is not None), Decimal(0)),
        "has_price": all(trial.cost is not None or not (trial.ended_at and trial.sent_at) for trial in calls),
    }


def _reply_text(trial: JudgeTrial) -> str:
    """What the model wrote, as it came."""
    if trial.answer is None:
        return str(trial.reply.get("body", ""))
    return stored_answer(trial.reply, trial.answer).readable


@require_safe
@login_required
def judge_trials(request: HttpRequest, project: str, series: UUID) -> HttpResponse:
    """The calls of a test, prompt beside reply; the part asks for itself while a worker makes them."""
    current_project = access.require(user=request.user, slug=project)
    calls = JudgeTrial.objects.visible_to(request.user).filter(project=current_project, series=series)
    if not calls.exists():
        raise Http404
    context = {"title": _("Test of a judge"), "project": current_project, **_shown_trials(calls)}
    return render(request, "judging/_trials.html" if request.htmx else "judging/trials.html", context)  # type: ignore[attr-defined]


def _saved(
    request: HttpRequest, project: Project, form: JudgeForm, study: str, preset: StudyPreset | None, like: Judge | None
) -> HttpResponse | None:
    """Declare the judge in the form. None if nobody has tested it, nor said that it is saved without a test."""
    declared = _declared(form, like or preset)
    if not form.cleaned_data["untested"] and not judges.is_declared_or_tested(project, **declared):
        form.add_error(None, _("Test this judge with one call first, or tick “Save it without a test”."))
        return None
    judge = judges.declare(project=project, actor=request.user, parent=like, **declared)
    if judge.name != form.cleaned_data["name"]:
        messages.info(request, _("This judge exists already, as “%s”.") % judge.name)
    if preset:
        version = judges.study_rubric(project=project, study=study, actor=request.user)
        address = reverse("run_start", args=[project.slug, judge.pk])
        return redirect(f"{address}?rubric_version={version.pk}&repeats={preset.repeats}")
    return redirect("judge", project.slug, judge.pk)


def _as_version(judge: Judge) -> dict[str, Any]:
    """What the form begins with: the configuration of a judge, under a name that no other judge has."""
    taken = set(Judge.objects.filter(project=judge.project_id).values_list("name", flat=True))
    names = (f"{judge.name[:110]} ({number})" for number in count(2))
    about = {name: getattr(judge, name) for name in ("provider", "model", "parameters", *judges.PACES)}
    variant = {**PromptVariant().factors, **judge.variant}
    explanation = "yes" if variant.get("explanation", True) else "no"
    return {**variant, **about, "explanation": explanation, "name": next(name for name in names if name not in taken)}


def _as_study(key: str, preset: StudyPreset | None) -> dict[str, Any]:
    """What the form begins with: the configuration of a study, or nothing but the defaults."""
    if preset is None:
        return {}
    variant = {**PromptVariant().factors, **preset.variant}
    return {**variant, "explanation": "yes", "parameters": dict(preset.parameters), "name": key}


def _declared(form: JudgeForm, begun: StudyPreset | Judge | None) -> dict[str, Any]:
    """What the form declares, with the own texts of the study or judge that it was begun with, which it has no field
    for, where they can be shown."""
    declared = form.declared
    variant = declared["variant"]
    shows_texts = variant["anchor_detail"] == "reasons" and variant.get("rubric_text") != "general"
    if begun and shows_texts and "own_texts" in begun.variant:
        variant["own_texts"] = begun.variant["own_texts"]
    return declared


def _prompts_of_form(
    project: Project, form: JudgeForm, study: str, begun: StudyPreset | Judge | None
) -> dict[str, Any]:
    """The prompts of a judge that is not declared yet, about the first item that is no example of it: by the rubric
    and from the dataset that its examples were rated in; else by the rubric of the study or the newest of the project,
    from the newest dataset."""
    dataset = Dataset.objects.ready().filter(project=project).order_by("-pk").first()
    version = RubricVersion.objects.published().filter(rubric__project=project).order_by("-pk").first()
    if selection := form.cleaned_data["examples_from"]:
        dataset, version = selection.campaign.dataset, selection.campaign.rubric_version
        if study and judges.study_digest(study) != version.digest:
            sentence = _("The examples were rated by %s, not by the rubric of the study. Choose no examples.") % version
            raise Refused(sentence, code="examples", fields={"examples_from": sentence})
    if dataset is None or not (study or version):
        raise Refused(_("A preview needs a dataset and a published rubric."), code="nothing_to_show")
    factors = dict(_declared(form, begun)["variant"])
    factors["examples"] = examples.resolve_examples(project, factors.get("examples", []))
    of_project = Criterion.objects.filter(rubric_version=version).order_by("position")
    criteria = judges.study_criteria(study) if study else list(of_project)
    items = examples.without_items(
        Item.objects.of(dataset), {example["item"] for example in factors["examples"]}, project.pk
    )
    item = items.select_related("dataset").first()
    if item is None:
        raise Refused(_("Every item of “%s” is an example.") % dataset, code="nothing_to_show")
    prompts = requests.prompts_about(judges.variant_of(factors), criteria, item)
    named = STUDY_PRESETS[study].rubric["name"]["en"] if study else version
    return {"prompts": prompts, "item": item, "shown_rubric": named}


@dataclass(frozen=True, slots=True)
class JudgeAudit:
    """One audit of a judge: its newest run, the campaign with its figures, and where it is started; or none of them."""

    name: str
    row: runs.ListedRun | None
    campaign: Campaign | None
    address: str


def listed_audits(judge: Judge, listed: Sequence[runs.ListedRun], campaigns: QuerySet[Campaign]) -> list[JudgeAudit]:
    """The audits that need a run, with their newest one. A new one is started on the material of the newest run."""
    about = {(each.dataset_id, each.rubric_version_id): each for each in campaigns.order_by("pk")}
    newest = next((row.run for row in listed if not row.run.is_pilot), None)
    found = []
    for audit, name in AUDIT_NAMES.items():
        row = next((row for row in listed if audit in _audits_of(row.run)), None)
        material = (row.run if row else newest) if judge.provider else None
        address = _audit_address(judge, audit, material) if material else ""
        campaign = about.get((row.run.dataset_id, row.run.rubric_version_id)) if row else None
        found.append(JudgeAudit(str(name), row, campaign, address))
    return found


def _audits_of(run: JudgeRun) -> set[str]:
    """The audits that a run serves."""
    if run.perturbation is not None:
        return {change_of(key).audit for key in run.perturbation["changes"]}
    return {"repeats"} if run.repeats > 1 and not run.is_pilot else set()


def _audit_address(judge: Judge, audit: str, material: JudgeRun) -> str:
    about = (material.dataset_id, material.rubric_version_id)
    if audit == "repeats":
        return f"{reverse('run_start', args=[judge.project.slug, judge.pk])}?{run_query(*about, 3)}"
    return f"{reverse('audit_start', args=[judge.project.slug, judge.pk])}?{audit_query(judge, *about, audit)}"


def prompt_preview(request: HttpRequest, project: Project, judge: Judge) -> dict[str, Any]:
    """The prompts of a declared judge about the item of the address, or about the first of the newest dataset."""
    form = PreviewForm(request.GET if "dataset" in request.GET else None, project=project, user=request.user)
    if form.lacks or not judge.provider:
        return {"lacks": form.lacks}
    valid = form.is_valid()
    dataset = form.cleaned_data["dataset"] if valid else form.fields["dataset"].queryset.first()  # type: ignore[attr-defined]
    version = form.cleaned_data["rubric_version"] if valid else _usual_rubric(form, judge)
    items = Item.objects.visible_to(request.user).of(dataset)
    count = items.count()
    number = min(form.cleaned_data["number"] or 1, count) if valid else 1
    item = items.select_related("dataset")[number - 1 : number].get() if count else None
    shown = {"form": form, "dataset": dataset, "version": version, "item": item, "number": number, "count": count}
    try:
        prompts = requests.preview_prompts(judge=judge, item=item, rubric_version=version) if item else []
    except Refused as refused:
        return {**shown, "refusal": refused.sentence}
    return {**shown, "prompts": prompts}


def _usual_rubric(form: PreviewForm, judge: Judge) -> RubricVersion:
    """The rubric version that the judge's examples were rated by, or the first of the form."""
    versions = form.fields["rubric_version"].queryset  # type: ignore[attr-defined]
    rated_by = {example.get("rubric", "") for example in judge.variant.get("examples", ())}
    return versions.filter(digest__in=rated_by).first() or versions.first()


@require_POST
@login_required
def rubric_prompt(request: HttpRequest, project: str) -> HttpResponse:
    """A judge's instructions with the criteria of the rubric form; nothing is stored."""
    access.require(user=request.user, slug=project)
    fields = posted_fields(request.POST)
    documents = [parsed.document for parsed in fields.parsed_alone() if parsed.document]
    criteria = [unsaved_criteria(document)[0] for document in documents]
    shown: dict[str, str] = {}
    try:
        if criteria:
            text, language = requests.instructions(criteria, fields.preview_language)
            shown = {"text": text, "direction": languages.direction(language)}
    except Refused as refused:
        shown = {"refusal": refused.sentence}
    return render(request, "judging/_rubric_prompt.html", shown)
