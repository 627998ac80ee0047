"""The page that says what each judge may be used for, and the thresholds that a lead declares for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import access, languages
from accounts.models import Project, Role, User
from accounts.refusals import Refused
from analytics import page_cache, tasks
from analytics.answers import computing
from analytics.judges import decisions, thresholds
from analytics.judges.compared_judges import item_costs
from analytics.judges.decisions import CampaignDecisions, DecisionChange
from analytics.judges.reasons import CellDecision, Condition, Remedy
from analytics.models import GateThresholds
from analytics.views.audits import start_address
from analytics.views.items import criterion_name, shown_campaign
from annotation.models import Campaign, Item
from judging.models import Judge

MOST_COSTS = 5
"""Newest campaigns whose costs stand beside the presets."""
MOST_HISTORY = 12
"""Changes of one criterion that the page shows; the API has all."""


@dataclass(frozen=True, slots=True)
class DecisionCard:
    """One decision in full: its cell, in words what it is about, and how it came to be."""

    cell: CellDecision
    language: str
    anchor: str
    history: list[DecisionChange]

    judge: Judge
    campaign: Campaign

    @property
    def remedies(self) -> list[tuple[Remedy, str]]:
        """The remedies that would change the decision, each with the address that starts it, if there is one."""
        return [(remedy, self._start(remedy.action)) for remedy in self.cell.remedies]

    @property
    def conditions(self) -> list[tuple[Condition, str]]:
        """Every condition, with the address that starts it where it was not run."""
        return [(condition, self._start(condition.action)) for condition in self.cell.conditions]

    def _start(self, action: str) -> str:
        repeats = self.cell.row.get("repeats", 1)
        return start_address(self.campaign, self.judge, action, repeats) if action else ""


@dataclass(frozen=True)
class DecisionsPage:
    """The grid of one judge, and the cards of one criterion."""

    campaign: Campaign
    current: CampaignDecisions
    asked_judge: str
    asked_criterion: str

    @property
    def judge_names(self) -> list[str]:
        return self.current.judges

    @property
    def judge(self) -> str:
        """The judge that was asked for, else the first with scores to decide on, else the first."""
        compared = [cell.row["judge"] for cell in self.current.cells if cell.row["n_items"]]
        names = self.judge_names
        return self.asked_judge if self.asked_judge in names else next(iter([*compared, *names]), "")

    @cached_property
    def cells(self) -> dict[tuple[str, str], CellDecision]:
        """By criterion and language, the decisions of the chosen judge."""
        return {(cell.row["criterion"], cell.row["language"]): cell for cell in self.current.of_judge(self.judge)}

    @property
    def is_uncertain_somewhere(self) -> bool:
        return any(cell.state == "not_certain" for cell in self.cells.values())

    @cached_property
    def languages(self) -> list[str]:
        return languages.in_name_order({language for _criterion, language in self.cells}, get_language())

    @property
    def language_names(self) -> list[str]:
        return [languages.name_for(tag, get_language()) for tag in self.languages]

    @cached_property
    def criteria(self) -> list[tuple[str, str]]:
        """Key and name of every criterion that has a decision, in the rubric's order."""
        known = {criterion for criterion, _language in self.cells}
        everything = self.campaign.rubric_version.criteria.all()
        return [(each.key, criterion_name(each)) for each in everything if each.key in known]

    @property
    def rows(self) -> list[tuple[str, str, list[tuple[str, str, CellDecision | None]]]]:
        """Key and name of a criterion, then for each language the anchor of its card, its name and the decision."""
        named = list(zip(self.languages, self.language_names, strict=True))
        return [
            (key, name, [(f"in-{tag}", language, self.cells.get((key, tag))) for tag, language in named])
            for key, name in self.criteria
        ]

    @property
    def criterion(self) -> str:
        keys = [key for key, _name in self.criteria]
        return self.asked_criterion if self.asked_criterion in keys else next(iter(keys), "")

    @property
    def criterion_title(self) -> str:
        return dict(self.criteria).get(self.criterion, "")

    @property
    def cards(self) -> list[DecisionCard]:
        """The decisions of the chosen criterion, language by language."""
        shown = [
            (tag, self.cells[self.criterion, tag]) for tag in self.languages if (self.criterion, tag) in self.cells
        ]
        if not shown:
            return []
        judge = Judge.objects.get(pk=shown[0][1].row["judge_id"])
        changes = decisions.decision_history(self.campaign, judge.pk)
        of_criterion = [change for change in changes if change.kept.criterion == self.criterion]
        return [
            DecisionCard(
                cell,
                languages.name_for(tag, get_language()),
                f"in-{tag}",
                [change for change in of_criterion if change.kept.language == tag][:MOST_HISTORY],
                judge,
                self.campaign,
            )
            for tag, cell in shown
        ]

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """For every judge, the number of cells with each decision, and whether the judge is simulated."""
        simulated = {judge["name"]: judge["simulated"] for judge in self.current.snapshot.content["judges"]}  # type: ignore[union-attr]
        return [
            {"judge": judge, "counts": self.current.summary(judge), "simulated": simulated.get(judge, False)}
            for judge in self.current.judges
        ]


@require_safe
@login_required
@page_cache.cached_page
def judge_decisions(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Show where judges may be used. The page reloads itself while decisions are computed."""
    found = shown_campaign(request.user, project, campaign)
    current = decisions.current_decisions(found)
    context: dict[str, Any] = {
        "project": found.project,
        "campaign": found,
        "current": current,
        "is_lead": access.holds(user=request.user, project=found.project, roles=(Role.LEAD,)),
    }
    if current is not None:
        settings = decisions.settings_of(current.thresholds)
        if current.is_stale:
            tasks.ask_to_compute(campaign=found, settings=settings)
            context["job"] = decisions.open_decision_job(found, current.thresholds)
            context["failed"] = computing.failed(campaign=found, settings=settings)
        asked = (request.GET.get("judge", ""), request.GET.get("criterion", ""))
        if current.snapshot is not None:
            context["page"] = DecisionsPage(found, current, *asked)
    subtitle = _("One decision for each judge, criterion and language, from thresholds that the project declared.")
    return render(
        request, "analytics/decisions.html", {"title": _("Where to use judges"), "subtitle": subtitle, **context}
    )


# --- thresholds ------------------------------------------------------------------------------------------------------
class ThresholdsForm(forms.Form):
    """A preset, and what differs from it: empty fields take the preset's value."""

    preset = forms.ChoiceField(
        label=gettext_lazy("Who the annotators are"),
        choices=GateThresholds.Preset.choices,
        widget=forms.RadioSelect,
        help_text=gettext_lazy("Fills the three values of the table above. The other defaults are the same for all."),
    )
    epsilon = forms.FloatField(
        label=gettext_lazy("How much worse than an annotator the judge may be (ε)"),
        help_text=gettext_lazy(
            "A judge saves work, so it may be a little worse than one annotator beside the others. "
            "Default: experts 0.20, skilled annotators 0.15, crowd 0.10."
        ),
    )
    bias_margin = forms.FloatField(
        label=gettext_lazy("Margin of the bias"),
        help_text=gettext_lazy(
            "A share of the scale’s width; the whole interval of the bias has to lie within it. "
            "Default: experts 0.05, skilled annotators 0.075, crowd 0.10."
        ),
    )
    flip_rate = forms.FloatField(
        label=gettext_lazy("Changed scores when asked again"),
        help_text=gettext_lazy(
            "The whole interval has to lie at or below this share of the items. "
            "Default: experts 0.05, skilled annotators 0.08, crowd 0.10."
        ),
    )
    fewest_items = forms.IntegerField(
        label=gettext_lazy("Fewest items"),
        help_text=gettext_lazy("Items with two raters and a score by the judge, in each language: 30."),
    )
    omega = forms.FloatField(
        label=gettext_lazy("Annotators to match"),
        help_text=gettext_lazy(
            "The share of annotators that the judge has to be as good as, by a test for each: 0.5. "
            "It fails only where the whole interval lies below."
        ),
    )
    readable = forms.FloatField(
        label=gettext_lazy("Readable replies"),
        help_text=gettext_lazy("The whole interval has to lie at or above this share: 0.99."),
    )
    tau_b = forms.FloatField(
        label=gettext_lazy("Ranking (tau-b)"), help_text=gettext_lazy("The figure itself has to reach it: 0.8.")
    )
    tau_b_low = forms.FloatField(
        label=gettext_lazy("Lower bound of tau-b"),
        help_text=gettext_lazy("The whole interval has to lie above this value: 0.5."),
    )
    alpha_ceiling = forms.FloatField(
        label=gettext_lazy("Rubric problem below (α)"),
        help_text=gettext_lazy(
            "Default 0.2. If the whole interval of α is below this value, "
            "and that of AC below the next one, the rubric is the problem."
        ),
    )
    ac_ceiling = forms.FloatField(
        label=gettext_lazy("Rubric problem below (AC)"),
        help_text=gettext_lazy("See the value for α: both have to be below. Default 0.4."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, (low, high) in thresholds.LIMITS.items():
            field = self.fields[name]
            field.required = False
            field.widget.attrs |= {"min": low, "max": high, "step": "1" if name == "fewest_items" else "any"}
        low, high = thresholds.LIMITS["fewest_items"]
        self.fields["fewest_items"].help_text = _(
            "Items with two raters and a score by the judge, in each language: from %(low)s, by default 30."
        ) % {"low": low}


@require_http_methods(["GET", "POST"])
@login_required
def thresholds_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every version of the thresholds; a posted form declares another one."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    newest = thresholds.current_thresholds(current_project)
    form = ThresholdsForm(request.POST or None, initial={"preset": newest.preset if newest else "skilled"})
    if form.is_valid() and (declared := _declared(form, current_project, request.user)) is not None:
        is_new = newest is None or declared.pk != newest.pk
        sentence = _("Thresholds %s are declared.") if is_new else _("Thresholds %s already say this. Nothing changed.")
        messages.success(request, sentence % declared)
        return redirect("thresholds", current_project.slug)
    versions = GateThresholds.objects.filter(project=current_project).select_related("declared_by")
    campaigns = Campaign.objects.visible_to(request.user).filter(project=current_project)
    context = {
        "title": _("Thresholds"),
        "project": current_project,
        "costs": [
            costs
            for each in campaigns.order_by("-pk")[:MOST_COSTS]
            if (costs := item_costs(each)).n_items or costs.n_judges
        ],
        "form": form,
        "versions": versions,
        "newest": newest,
        "presets": [(preset.label, thresholds.preset_values(preset.value)) for preset in GateThresholds.Preset],
        "figures_since": thresholds.figures_since(current_project),
        "too_small": _too_small(current_project, newest),
        "campaigns": campaigns,
    }
    return render(request, "analytics/thresholds.html", context, status=422 if form.errors else 200)


def _too_small(project: Project, newest: GateThresholds | None) -> str:
    """A warning if the newest campaign has fewer items in a language than a judge needs; empty if it has enough."""
    campaign = Campaign.objects.filter(project=project).select_related("dataset").order_by("-pk").first()
    fewest = newest.fewest_items if newest else thresholds.preset_values("skilled")["fewest_items"]
    if campaign is None:
        return ""
    counted = Item.objects.of(campaign.dataset).order_by().values_list("language").annotate(n=Count("pk"))
    few = sorted((n, language) for language, n in counted if n < fewest)
    if not few:
        return ""
    sentence = _("A judge needs %(fewest)d items in each language. %(dataset)s has %(n)d in %(language)s.")
    language = languages.name_for(few[0][1], get_language())
    return sentence % {"dataset": campaign.dataset, "n": few[0][0], "language": language, "fewest": fewest}


def _declared(form: ThresholdsForm, project: Project, actor: User) -> GateThresholds | None:
    """The thresholds that a form declares; a refusal stands at its field."""
    given = {name: value for name, value in form.cleaned_data.items() if value is not None}
    try:
        return thresholds.declare_thresholds(project=project, preset=given.pop("preset"), changes=given, actor=actor)
    except Refused as refused:
        if not refused.fields:
            form.add_error(None, refused.sentence)
        for name, sentence in refused.fields.items():
            form.add_error(name if name in form.fields else None, sentence)
        return None
