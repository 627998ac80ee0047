"""Campaigns and selections of their items, for leads and researchers.

Selections are drawn after their counts were seen, then handed to judges and panels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, languages, refusals
from accounts.models import Invitation, Project, User
from accounts.refusals import Refused
from accounts.sentences import with_commas, with_semicolons
from annotation import allocation, campaigns, rubric_changes, rubrics, selections
from annotation.models import (
    Assignment,
    Campaign,
    Criterion,
    Dataset,
    Duty,
    InvitedSeat,
    Item,
    ItemSelection,
    Panel,
    PanelSeat,
    RubricVersion,
)
from annotation.views import import_page

USUAL_OVERLAP = 3
"""Annotators per item in a new duty: the fewest with which one who differs can be named."""
MOST_SKIPS = 200  # of the newest, on the page of a campaign
MOST_SHOWN = 200  # items on the page of a selection
KINDS = [
    ("draw", gettext_lazy("Draw at random, so many of every stratum")),
    ("filter", gettext_lazy("Every item that fits the filter")),
    ("duty", gettext_lazy("The items of a task")),
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
"""Map each field of the form to the kinds that it is shown for."""


class CampaignForm(forms.Form):
    """Which dataset is rated on which rubric."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    dataset = forms.ModelChoiceField(
        label=gettext_lazy("Dataset"),
        queryset=Dataset.objects.none(),
        empty_label=gettext_lazy("Choose a dataset"),
    )
    rubric_version = forms.ModelChoiceField(
        label=gettext_lazy("Rubric"),
        queryset=RubricVersion.objects.none(),
        empty_label=gettext_lazy("Choose a rubric"),
        help_text=gettext_lazy("Only published versions, because a rubric must not change during a campaign."),
    )

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        datasets = Dataset.objects.visible_to(user).filter(project=project, allocatable=True)
        rubrics = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
        self.fields["dataset"].queryset = datasets  # type: ignore[attr-defined]
        self.fields["rubric_version"].queryset = rubrics.select_related("rubric")  # type: ignore[attr-defined]


class DutyForm(forms.Form):
    """The duty of one panel: whether it takes part, how many annotators rate an item, on which criteria."""

    takes_part = forms.BooleanField(required=False)
    overlap = forms.IntegerField(
        label=gettext_lazy("Annotators per item"), min_value=1, max_value=allocation.MOST_OVERLAP
    )
    criteria = forms.TypedMultipleChoiceField(label=gettext_lazy("Criteria"), widget=forms.CheckboxSelectMultiple)
    again = forms.BooleanField(label=gettext_lazy("The same people rate the same items again"), required=False)

    def __init__(
        self,
        posted: Any,
        *,
        campaign: Campaign,
        panel: Panel,
        criteria: Sequence[Criterion],
        selection: ItemSelection | None = None,
    ) -> None:
        self.panel, self.campaign, self.selection = panel, campaign, selection
        self.people: list[str] = []
        self.invited = 0
        self.size = allocation.size(
            dataset=campaign.dataset, panel=panel, overlap=1, selection=selection, campaign=campaign
        )
        items = allocation.items_for(dataset=campaign.dataset, panel=panel, selection=selection, campaign=campaign)
        self.duties = list(allocation.duties_on(campaign=campaign, panel=panel, items=items))
        self.assigned = allocation.assigned_already(campaign=campaign, panel=panel, items=items) if self.duties else 0
        self.new = self.size.items - self.assigned
        initial = {
            "takes_part": bool(self.size.items and (self.size.seats or panel.language) and not self.duties),
            "overlap": USUAL_OVERLAP,
            "criteria": [criterion.pk for criterion in criteria],
        }
        super().__init__(posted, prefix=f"panel-{panel.pk}", initial=initial)
        self.fields["takes_part"].label = _("%s takes part") % panel.name
        named = [(str(one.pk), one.says("name", get_language() or "en") or one.key) for one in criteria]
        self.fields["criteria"].choices = named  # type: ignore[attr-defined]
        self.fields["criteria"].coerce = {str(one.pk): one for one in criteria}.__getitem__  # type: ignore[attr-defined]
        if not self.duties:
            del self.fields["again"]

    @property
    def is_sound(self) -> bool:
        """Valid, or the panel does not take part."""
        return self.is_valid() or not self.cleaned_data["takes_part"]

    @property
    def share(self) -> allocation.DutyShare | None:
        """The choices of a valid form; None for a panel that does not take part."""
        chosen = self.cleaned_data
        if not chosen["takes_part"]:
            return None
        return allocation.DutyShare(
            panel=self.panel,
            overlap=chosen["overlap"],
            criteria=list(chosen["criteria"]),
            again=chosen.get("again", False),
            selection=self.selection,
        )

    @property
    def assignments(self) -> int:
        """How many assignments the form would create."""
        return self.size.items * self.annotators

    @property
    def annotators(self) -> int:
        """How many annotators the form gives each item; 0 for a panel that does not take part."""
        chosen = self.cleaned_data if self.is_bound else self.initial
        return chosen.get("overlap", 0) if chosen.get("takes_part") else 0


def _campaigns(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Campaign]]:
    current_project = access.require(user=request.user, slug=project)
    visible_campaigns = Campaign.objects.visible_to(request.user).filter(project=current_project)
    return current_project, visible_campaigns.select_related("dataset", "rubric_version__rubric")


@require_safe
@login_required
def campaigns_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every campaign of the project with its progress, newest first."""
    current_project, visible_campaigns = _campaigns(request, project)
    submitted = Count("duties__assignments", filter=Q(duties__assignments__state=Assignment.State.SUBMITTED))
    listed = visible_campaigns.annotate(slots=Count("duties__assignments"), submitted=submitted)
    return render(
        request, "annotation/campaigns.html", {"title": _("Campaigns"), "project": current_project, "campaigns": listed}
    )


@require_http_methods(["GET", "POST"])
@login_required
def new_campaign(request: HttpRequest, project: str) -> HttpResponse:
    """Choose the dataset and the rubric. The duties of the panels follow on the next page."""
    current_project, _visible = _campaigns(request, project)
    initial = {"dataset": request.GET.get("dataset", "")}
    form = CampaignForm(request.POST or None, project=current_project, user=request.user, initial=initial)
    if form.is_valid():
        try:
            opened = campaigns.open_campaign(project=current_project, actor=request.user, **form.cleaned_data)
            return redirect("duty_new", current_project.slug, opened.pk)
        except Refused as refused:
            show_refusal(form, refused)
    return render(
        request, "annotation/campaign_new.html", {"title": _("New campaign"), "project": current_project, "form": form}
    )


def show_refusal(form: forms.Form, refused: Refused) -> None:
    """Add the sentences of a refusal to the fields of the form that they are about."""
    for field, sentence in (refused.fields or {"": refused.sentence}).items():
        form.add_error(field if field in form.fields else None, sentence)


@require_safe
@login_required
def campaign_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Progress by duty and annotator, the skipped items, and the buttons to pause or close the campaign."""
    current_project, visible_campaigns = _campaigns(request, project)
    shown = get_object_or_404(visible_campaigns, pk=campaign)
    skips, progress = campaigns.skips(shown), campaigns.progress(shown)
    context = {
        "title": shown.name,
        "project": current_project,
        "campaign": shown,
        "progress": progress,
        "skips": skips[:MOST_SKIPS],
        "unresolved": skips.filter(resolved_at=None).count(),
        "selections": ItemSelection.objects.filter(campaign=shown).annotate(items_count=Count("selected")),
        "moves": campaigns.MOVES[Campaign.State(shown.state)],
        "unreviewed": unreviewed_sentence(shown.rubric_version, {row.duty.panel.language for row in progress}),
        "newer_rubric": rubric_changes.newer_versions(shown).first(),
        "rubric_change": rubric_changes.last_change(shown),
        **_new_items(shown),
    }
    return render(request, "annotation/campaign.html", context)


def unreviewed_sentence(version: RubricVersion, panel_languages: Iterable[str]) -> str:
    """The rubric's translations that people of these languages read and nobody has reviewed; else ""."""
    found = rubrics.unreviewed(version, panel_languages)
    reader = get_language()
    names = {"draft": _("%d draft"), "stale": _("%d out of date")}
    counted = with_semicolons(
        f"{languages.both_names(tag, reader)}: {with_commas(names[state] % count for state, count in states.items())}"
        for tag, states in found.items()
    )
    return _("Criteria without a reviewed translation: %s.") % counted if counted else ""


def _new_items(campaign: Campaign) -> dict[str, Any]:
    """The newer version of the campaign's dataset, the number of items that it adds, and the number of items in the
    campaign that no panel has been assigned yet."""
    newer = Dataset.objects.holding(campaign.dataset).exclude(pk=campaign.dataset_id).first()
    added = Item.objects.of(newer).count() - Item.objects.of(campaign.dataset).count() if newer else 0
    duties = campaign.duties.select_related("panel", "campaign__dataset") if campaign.dataset.extends_id else ()
    return {"newer": newer, "added": added, "left": sum(allocation.left(duty).count() for duty in duties)}


@require_POST
@login_required
def extend_campaign_view(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Continue the campaign with a later version of the dataset."""
    current_project, visible_campaigns = _campaigns(request, project)
    extended = get_object_or_404(visible_campaigns, pk=campaign)
    mine = Dataset.objects.visible_to(request.user).filter(project=current_project)
    chosen = mine.filter(pk=import_page.key(request.POST.get("dataset", ""))).first()
    with refusals.refusals_as_messages(request):
        if chosen is None:
            raise Refused(_("Choose a version of the dataset."), code="no_dataset")
        campaigns.extend_campaign(campaign=extended, dataset=chosen, actor=request.user)
        messages.success(request, _("The campaign continues with “%s”. All ratings are kept.") % chosen)
    return redirect("campaign", current_project.slug, extended.pk)


@require_POST
@login_required
def hand_out_view(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Assign the items that a later version of the dataset added."""
    current_project, visible_campaigns = _campaigns(request, project)
    handed = get_object_or_404(visible_campaigns, pk=campaign)
    with refusals.refusals_as_messages(request):
        created = allocation.hand_out(campaign=handed, actor=request.user)
        messages.success(
            request, ngettext("%d assignment was created.", "%d assignments were created.", created) % created
        )
    return redirect("campaign", current_project.slug, handed.pk)


@require_POST
@login_required
def move_campaign(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Pause, resume or close."""
    current_project, visible_campaigns = _campaigns(request, project)
    moved = get_object_or_404(visible_campaigns, pk=campaign)
    to = request.POST.get("to")
    with refusals.refusals_as_messages(request):
        if to in Campaign.State.values:
            campaigns.move(campaign=moved, to=Campaign.State(to), actor=request.user)
    return redirect("campaign", current_project.slug, moved.pk)


@require_POST
@login_required
def take_back_duty_view(request: HttpRequest, project: str, campaign: int, duty: int) -> HttpResponse:
    """Remove a duty that has no ratings yet."""
    current_project, visible_campaigns = _campaigns(request, project)
    opened = get_object_or_404(visible_campaigns, pk=campaign)
    taken = get_object_or_404(Duty.objects.visible_to(request.user), campaign=opened, pk=duty)
    with refusals.refusals_as_messages(request):
        allocation.take_back_duty(duty=taken, actor=request.user)
        messages.success(request, _("The task “%s” was removed.") % taken)
    return redirect("campaign", current_project.slug, opened.pk)


@require_POST
@login_required
def resolve_skip_view(request: HttpRequest, project: str, campaign: int, skip: int) -> HttpResponse:
    """Mark a skipped item as resolved (`resolved`), or as unresolved again."""
    current_project, visible_campaigns = _campaigns(request, project)
    opened = get_object_or_404(visible_campaigns, pk=campaign)
    skipped = get_object_or_404(campaigns.skips(opened), pk=skip)
    campaigns.resolve_skip(skip=skipped, resolved="resolved" in request.POST, actor=request.user)
    return redirect(f"{reverse('campaign', args=[current_project.slug, opened.pk])}#skips-head")


@require_http_methods(["GET", "POST"])
@login_required
def new_duty(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """For every panel: overlap, criteria and the number of assignments. `preview` counts and does not allocate."""
    current_project, visible_campaigns = _campaigns(request, project)
    opened = get_object_or_404(visible_campaigns, pk=campaign)
    posted = request.POST if request.method == "POST" else None
    own = ItemSelection.objects.filter(campaign=opened)
    wanted = request.GET.get("selection", "")
    selection = get_object_or_404(own, pk=import_page.key(wanted)) if wanted else None
    criteria = list(opened.rubric_version.criteria.order_by("position"))
    shares = [
        DutyForm(posted, campaign=opened, panel=panel, criteria=criteria, selection=selection)
        for panel in Panel.objects.visible_to(request.user).filter(project=current_project)
    ]
    _name_people(shares)
    is_sound = request.method == "POST" and all(form.is_sound for form in shares)
    if is_sound and "preview" not in request.POST and _allocated(request, opened, shares):
        return redirect("campaign", current_project.slug, opened.pk)
    shown = allocation.names_shown(opened.dataset)
    context = {
        "title": _("Who rates what"),
        "project": current_project,
        "campaign": opened,
        "selection": selection,
        "selections": own,
        "shares": shares,
        "names_shown": shown,
        "unreviewed": unreviewed_sentence(opened.rubric_version, {share.panel.language for share in shares}),
        "keeps_names": bool(shown) and allocation.keeps_names(opened.dataset),
    }
    return render(request, "annotation/duty_new.html", {**context, "total": sum(form.assignments for form in shares)})


def _name_people(shares: list[DutyForm]) -> None:
    """Name the annotators of each form's panel, and count those invited to it who have not joined yet."""
    by_panel = {form.panel.pk: form for form in shares}
    seats = PanelSeat.objects.filter(panel__in=by_panel).order_by("pk")
    for panel, name in seats.values_list("panel", "annotator__pseudonym"):
        by_panel[panel].people.append(name)
    waiting = InvitedSeat.objects.filter(panel__in=by_panel, invitation__in=Invitation.objects.open())
    for panel, count in waiting.order_by().values_list("panel").annotate(Count("pk")):
        by_panel[panel].invited = count


def _allocated(request: HttpRequest, campaign: Campaign, forms_: list[DutyForm]) -> bool:
    chosen = [form.share for form in forms_ if form.share]
    try:
        knowingly = "keep_names" in request.POST
        allocation.allocate_all(campaign=campaign, shares=chosen, keep_names=knowingly, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return False
    return True


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
        label=gettext_lazy("Rating task"),
        queryset=Duty.objects.none(),
        required=False,
        empty_label=gettext_lazy("Choose a task"),
    )
    wave = forms.IntegerField(
        label=gettext_lazy("Wave"), min_value=1, required=False, help_text=gettext_lazy("Empty: all waves of the task.")
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
