"""The page on which models are asked to answer the prompts of a dataset."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from accounts import access
from accounts.inputs import without_nul
from accounts.refusals import Refused
from annotation.models import Dataset, Item
from judging.asking import allowances, endpoints
from judging.generation import item_plans, plans
from judging.generation.specs import ANSWERS, from_yaml, preset
from judging.views.generation_forms import model_choices, named_models


class AnswersForm(forms.Form):
    """Which models answer the prompts of a dataset, how often, and for how much."""

    name = forms.CharField(label=_("Name"), max_length=plans.MOST_NAMED)
    generators = forms.MultipleChoiceField(label=_("Models"), required=False, widget=forms.CheckboxSelectMultiple)
    further_generators = forms.CharField(
        label=_("Further models"),
        required=False,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "dir": "ltr"}),
        help_text=_("One a line: the name of the provider, a slash, and the name that it gives the model."),
    )
    repeats = forms.IntegerField(label=_("Repeats"), min_value=1, max_value=plans.MOST_TIMES, initial=1)
    budget = forms.DecimalField(
        label=_("Budget in USD"), required=False, min_value=0, max_value=allowances.LARGEST_CAP, decimal_places=6
    )
    spec = forms.CharField(
        label=_("Spec"), required=False, strip=False, widget=forms.Textarea(attrs={"rows": 16, "class": "code"})
    )

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.fields["generators"].choices = self.models = model_choices()  # type: ignore[attr-defined]

    def clean_further_generators(self) -> list[tuple[str, str]]:
        """Providers and models."""
        return named_models(self.cleaned_data["further_generators"])

    @property
    def choices(self) -> list[plans.GeneratorChoice]:
        """The models that are to answer."""
        values = self.cleaned_data
        pairs = [tuple(value.split("\x1f", 1)) for value in values["generators"]] + values["further_generators"]
        return [plans.GeneratorChoice(provider=provider, model=model) for provider, model in pairs]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_answers(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """Plan the answers; the page of the plan then shows the price, and writes three examples first."""
    current_project = access.require(user=request.user, slug=project)
    visible = Dataset.objects.visible_to(request.user).filter(project=current_project).select_related("project")
    prompts = get_object_or_404(visible, pk=dataset)
    initial = {"name": f"{prompts.name[:100]}: answers", "spec": preset(ANSWERS).as_yaml}
    form = AnswersForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        values = form.cleaned_data
        try:
            plan = item_plans.plan_answers(
                dataset=prompts,
                name=without_nul(values["name"]),
                generators=form.choices,
                repeats=values["repeats"],
                budget=values["budget"],
                spec=from_yaml(values["spec"]) if values["spec"].strip() else None,
                actor=request.user,
            )
            return redirect("generation_plan", current_project.slug, plan.pk)
        except Refused as refused:
            named = next((name for name in refused.fields if name in form.fields), None)
            form.add_error(named, refused.sentence)
    context = {
        "title": _("Have models answer"),
        "project": current_project,
        "dataset": prompts,
        "form": form,
        "has_provider": bool(endpoints.all_providers()),
        "items": Item.objects.of(prompts).count(),
    }
    return render(request, "judging/generation/answers_new.html", context)
