"""Selections of a campaign's items: drawn after their counts were seen, then handed to judges and panels."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation import selections
from annotation.models import Campaign, Duty, ItemSelection
from annotation.views.campaigns import show_refusal

MOST_SHOWN = 200  # items on the page of a selection
KINDS = [
    ("draw", gettext_lazy("Draw at random, so many of every stratum")),
    ("filter", gettext_lazy("Every item that fits the filter")),
    ("duty", gettext_lazy("The items of a duty")),
    ("list", gettext_lazy("These items")),
]
UNITS = [
    ("item", gettext_lazy("Items")),
    ("scenario", gettext_lazy("Scenarios, with all their items")),
]

FOR_KINDS = {
    **dict.fromkeys(("n", "by", "unit", "seed"), "draw"),
    "filter": "draw filter",
    **dict.fromkeys(("duty", "wave"), "duty"),
    "items": "list",
}
"""By field of the form, the kinds that it is shown for."""


class SelectionForm(forms.Form):
    """A rule in fields; those that its kind does not use stay empty."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    kind = forms.ChoiceField(label=gettext_lazy("Which items"), choices=KINDS, widget=forms.RadioSelect, initial="draw")
    n = forms.IntegerField(
        label=gettext_lazy("Number from every stratum"), min_value=1, max_value=1_000_000, required=False, initial=20
    )
    by = forms.MultipleChoiceField(
        label=gettext_lazy("Strata"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Every combination of these is a stratum. None: the dataset is one stratum."),
    )
    unit = forms.ChoiceField(
        label=gettext_lazy("What is drawn"), choices=UNITS, widget=forms.RadioSelect, initial="item"
    )
    filter = forms.CharField(
        label=gettext_lazy("Filter"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "code"}),
        help_text=gettext_lazy("A line for each column, with the values that fit: language = et, fi"),
    )
    duty = forms.ModelChoiceField(
        label=gettext_lazy("Duty"),
        queryset=Duty.objects.none(),
        required=False,
        empty_label=gettext_lazy("Choose a duty"),
    )
    wave = forms.IntegerField(
        label=gettext_lazy("Wave"), min_value=1, required=False, help_text=gettext_lazy("Empty: all waves of the duty.")
    )
    items = forms.CharField(
        label=gettext_lazy("Ids of the items"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "code"}),
        help_text=gettext_lazy("One on each line."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=-(2**63),
        max_value=2**63 - 1,
        required=False,
        help_text=gettext_lazy("The same seed gives the same items. Empty: a random one, which is stored."),
    )

    def __init__(self, *args: Any, campaign: Campaign, **options: Any) -> None:
        super().__init__(*args, **options)
        columns = selections.selection_columns(campaign)
        self.fields["by"].choices = [(column, column.removeprefix(selections.ATTRIBUTE)) for column in columns]  # type: ignore[attr-defined]
        self.fields["duty"].queryset = Duty.objects.filter(campaign=campaign)  # type: ignore[attr-defined]

    @property
    def fields_with_kinds(self) -> list[tuple[forms.BoundField, str]]:
        """Each field, and the kinds of selection that it is for; empty for all kinds."""
        return [(field, FOR_KINDS.get(field.name, "")) for field in self.visible_fields()]

    def clean_filter(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in filter(str.strip, self.cleaned_data["filter"].splitlines()):
            column, sign, values = line.partition("=")
            if not sign:
                raise forms.ValidationError(_("Write “column = value, value”."))
            found[column.strip()] = [value.strip() for value in values.split(",") if value.strip()]
        return found

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that a valid form describes."""
        chosen, kind = self.cleaned_data, self.cleaned_data["kind"]
        if kind == "duty":
            wave = {} if chosen["wave"] is None else {"wave": chosen["wave"]}
            return {"kind": kind, "duty": chosen["duty"].pk if chosen["duty"] else "", **wave}
        if kind == "list":
            return {"kind": kind, "items": [line.strip() for line in chosen["items"].splitlines() if line.strip()]}
        rule = {"kind": kind, "filter": chosen["filter"]}
        return rule if kind == "filter" else {**rule, "n": chosen["n"], "by": chosen["by"], "unit": chosen["unit"]}


def _campaign(request: HttpRequest, project: str, campaign: int) -> tuple[Project, Campaign]:
    current_project = access.require(user=request.user, slug=project)
    visible = Campaign.objects.visible_to(request.user).filter(project=current_project)
    return current_project, get_object_or_404(visible.select_related("dataset", "project"), pk=campaign)


def _selection(request: HttpRequest, project: str, selection: int) -> tuple[Project, ItemSelection]:
    current_project = access.require(user=request.user, slug=project)
    visible = ItemSelection.objects.visible_to(request.user).filter(campaign__project=current_project)
    return current_project, get_object_or_404(visible.select_related("campaign__dataset"), pk=selection)


@require_http_methods(["GET", "POST"])
@login_required
def new_selection(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Describe the items, see how many of which stratum these are (`preview`), and store them."""
    current_project, target = _campaign(request, project, campaign)
    posted = request.POST.copy() if request.method == "POST" else None
    if posted is not None and not posted.get("seed"):
        posted["seed"] = str(selections.new_seed())  # so that what was counted is what is stored
    form = SelectionForm(posted, campaign=target)
    context: dict[str, Any] = {"title": _("Select items"), "project": current_project, "campaign": target, "form": form}
    if form.is_valid():
        seed, rule = form.cleaned_data["seed"], form.rule
        try:
            if "preview" not in request.POST:
                stored = selections.select(
                    campaign=target, name=form.cleaned_data["name"], rule=rule, seed=seed, actor=request.user
                )
                return redirect("selection", current_project.slug, stored.pk)
            checked = selections.checked_rule(target, rule)
            context["strata"] = selections.summarise(selections.draw_items(campaign=target, rule=checked, seed=seed))
        except Refused as refused:
            show_refusal(form, refused)
    context["total"] = sum(stratum.items for stratum in context.get("strata", ()))
    return render(request, "annotation/selection_new.html", context)


@require_safe
@login_required
def selection_page(request: HttpRequest, project: str, selection: int) -> HttpResponse:
    """How the items were chosen, how many of each stratum, and the items."""
    current_project, shown = _selection(request, project, selection)
    strata = selections.strata_of(shown)
    context = {
        "title": shown.name,
        "project": current_project,
        "selection": shown,
        "campaign": shown.campaign,
        "rule": selections.rule_in_words(shown.rule),
        "strata": strata,
        "total": sum(stratum.items for stratum in strata),
        "items": shown.selected.select_related("item").order_by("item__ordinal")[:MOST_SHOWN],
        "duties": shown.duties.order_by("pk"),
        "most_shown": MOST_SHOWN,
    }
    return render(request, "annotation/selection.html", context)


@require_POST
@login_required
def remove_selection_view(request: HttpRequest, project: str, selection: int) -> HttpResponse:
    """Remove a selection that nothing uses."""
    current_project, removed = _selection(request, project, selection)
    campaign = removed.campaign_id
    with refusals.refusals_as_messages(request):
        selections.remove_selection(selection=removed, actor=request.user)
        messages.success(request, _("The selection “%s” was removed.") % removed)
    return redirect("campaign", current_project.slug, campaign)
