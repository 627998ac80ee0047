"""Alignments: stated before, versions scored on tuning items, and looks at the locked ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, audit, jobs, refusals
from accounts.models import Project, Role, User
from accounts.refusals import Refused
from analytics.judges import alignments
from annotation.models import Campaign
from annotation.views.campaigns import show_refusal
from judging import judges, requests, runs, spending, tasks
from judging.asking import allowances
from judging.forms import BudgetForm
from judging.models import Alignment, AlignmentCandidate, AlignmentSearch, Judge
from judging.prompts import CriterionBrief
from judging.replies import reply_text
from judging.versions import alignment, proposals
from judging.versions.seen_labels import seen_labels

CONFUSIONS_SHOWN = 10  # on a page


class AlignmentForm(forms.Form):
    """What is stated before the first version is scored."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    campaign = forms.ModelChoiceField(
        label=gettext_lazy("Campaign"),
        queryset=Campaign.objects.none(),
        help_text=gettext_lazy("Its panel’s labels are split once, by whole scenarios within their languages."),
    )
    base = forms.ModelChoiceField(
        label=gettext_lazy("Judge"), queryset=Judge.objects.none(), help_text=gettext_lazy("It stays as it is.")
    )
    share = forms.FloatField(
        label=gettext_lazy("Locked share"),
        initial=0.4,
        min_value=alignment.LEAST_SHARE,
        max_value=alignment.MOST_SHARE,
        help_text=gettext_lazy("The share of scenarios that is locked for the test."),
    )
    looks = forms.IntegerField(
        label=gettext_lazy("Looks at the locked split"),
        initial=3,
        min_value=1,
        max_value=alignment.MOST_LOOKS,
        help_text=gettext_lazy("The more are allowed, the wider is each interval: the level is corrected for them."),
    )
    measure = forms.ChoiceField(
        label=gettext_lazy("Measure"), choices=Alignment.Measure.choices, widget=forms.RadioSelect, initial="accuracy"
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        required=False,
        min_value=-(2**63),
        max_value=2**63 - 1,
        help_text=gettext_lazy("Empty: a random one, which is stored."),
    )
    budget = BudgetForm.base_fields["budget"]

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        here = Campaign.objects.visible_to(user).filter(project=project)
        self.fields["campaign"].queryset = here.select_related("dataset", "rubric_version")  # type: ignore[attr-defined]
        askable = Judge.objects.visible_to(user).filter(project=project).exclude(provider="")
        self.fields["base"].queryset = askable  # type: ignore[attr-defined]

    @property
    def lacks(self) -> str:
        """The thing that the project lacks: `campaign`, `judge`, or an empty text."""
        for field, word in (("campaign", "campaign"), ("base", "judge")):
            if not self.fields[field].queryset.exists():  # type: ignore[attr-defined]
                return word
        return ""


class VersionForm(forms.Form):
    """A judge's own instructions, and its own words in the place of definitions and anchors."""

    name = forms.CharField(label=gettext_lazy("Name of the new version"), max_length=120)
    instructions = forms.CharField(
        label=gettext_lazy("Further instructions"),
        required=False,
        max_length=judges.TEXTS["instructions"],
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=gettext_lazy("They follow the criteria in the prompt. The panel’s rubric stays as it is."),
    )

    def __init__(self, *args: Any, briefs: list[CriterionBrief], parent: Judge, **options: Any) -> None:
        initial = {"instructions": parent.variant.get("instructions", ""), **options.pop("initial", {})}
        super().__init__(*args, initial=initial, **options)
        own = {(text["criterion"], text["point"]): text["text"] for text in parent.variant.get("own_texts", ())}
        self.places: dict[str, tuple[str, float | None, str]] = {}
        self.names: list[tuple[str, list[str]]] = []
        for number, brief in enumerate(briefs):
            texts: list[tuple[float | None, str, str]] = [(None, _("Definition"), brief.definition)]
            if not brief.is_range:
                texts += [(point.value, f"{point.value:g} {point.label}".strip(), point.text) for point in brief.points]
            fields = []
            for place, (point, label, text) in enumerate(texts):
                key = f"text-{number}-{place}"
                self.places[key] = (brief.key, point, text)
                self.fields[key] = forms.CharField(
                    label=label,
                    required=False,
                    max_length=judges.MOST_OWN_TEXT,
                    initial=own.get((brief.key, point), text),
                    widget=forms.Textarea(attrs={"rows": 2}),
                )
                fields.append(key)
            self.names.append((brief.name, fields))

    @property
    def plain(self) -> list[forms.BoundField]:
        return [self["name"], self["instructions"]]

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """By criterion, the fields of its texts."""
        return [(name, [self[field] for field in fields]) for name, fields in self.names]

    @property
    def own_texts(self) -> list[dict[str, Any]]:
        """The texts that differ from the rubric's; one that is emptied is the rubric's again."""
        found = []
        for field, (criterion, point, text) in self.places.items():
            written = self.cleaned_data[field].replace("\r\n", "\n").strip()
            if written and written != text.strip():
                found.append({"criterion": criterion, "point": point, "text": written})
        return found


class ProposalForm(forms.Form):
    """Which model writes the next version."""

    prefix = "proposal"
    name = forms.CharField(label=gettext_lazy("Name of the new version"), max_length=120)
    provider = forms.ChoiceField(label=gettext_lazy("Provider"))
    model = forms.CharField(label=gettext_lazy("Model"), max_length=160)
    tokens = forms.IntegerField(
        label=gettext_lazy("Most tokens of its reply"),
        initial=proposals.TOKENS,
        min_value=1,
        max_value=proposals.MOST_TOKENS,
    )

    def __init__(self, *args: Any, project: Project, **options: Any) -> None:
        super().__init__(*args, **options)
        names = [allowed.provider for allowed in allowances.allowed_providers(project)]
        self.fields["provider"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


class SearchForm(forms.Form):
    """How versions with examples are searched for."""

    prefix = "search"
    method = forms.ChoiceField(
        label=gettext_lazy("Method"), choices=AlignmentSearch.Method.choices, widget=forms.RadioSelect, initial="random"
    )
    steps = forms.IntegerField(label=gettext_lazy("Steps"), initial=8, min_value=1, max_value=proposals.MOST_STEPS)


def find_alignments(user: User, project: str) -> tuple[Project, QuerySet[Alignment]]:
    """The project, and the alignments in it."""
    current_project = access.require(user=user, slug=project)
    found = Alignment.objects.visible_to(user).filter(project=current_project)
    related = ("project", "campaign__dataset", "campaign__rubric_version__rubric", "base", "tuning", "test")
    return current_project, found.select_related(*related).prefetch_related("campaign__rubric_version__criteria")


def _candidate(request: HttpRequest, project: str, alignment_pk: int, judge: int) -> AlignmentCandidate:
    current = get_object_or_404(find_alignments(request.user, project)[1], pk=alignment_pk)
    candidate = get_object_or_404(current.candidates.select_related("judge__project"), judge=judge)
    candidate.alignment = current
    return candidate


@require_safe
@login_required
def alignments_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every alignment of the project, newest first."""
    current_project, found = find_alignments(request.user, project)
    listed = found.annotate(versions=Count("candidates", distinct=True), taken=Count("looks", distinct=True))
    context = {"title": _("Alignments"), "project": current_project, "alignments": listed[: runs.MOST_LISTED]}
    return render(request, "analytics/alignments.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_alignment(request: HttpRequest, project: str) -> HttpResponse:
    """State what is aligned, and split the labels; nothing is sent."""
    current_project, _found = find_alignments(request.user, project)
    chosen = {"project": current_project, "user": request.user, "initial": request.GET.dict()}
    form = AlignmentForm(request.POST or None, **chosen)
    if form.is_valid():
        try:
            created = alignment.create_alignment(actor=request.user, **form.cleaned_data)
            return redirect("alignment", current_project.slug, created.pk)
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("Align a judge"), "project": current_project, "form": form}
    return render(request, "analytics/alignment_new.html", context)


@require_safe
@login_required
def alignment_page(request: HttpRequest, project: str, alignment_pk: int) -> HttpResponse:
    """The split, every version on the tuning items, and what the looks have shown."""
    current_project, found = find_alignments(request.user, project)
    current = get_object_or_404(found, pk=alignment_pk)
    looks, left = alignments.shown_looks(current), alignment.looks_left(current)
    context = {
        "title": current.name,
        "project": current_project,
        "alignment": current,
        "split": alignment.split_by_language(current),
        "versions": alignments.tuned_versions(current),
        "looks": looks,
        "proposals": current.proposals.select_related("job", "candidate", "parent__judge"),
        "searches": current.searches.select_related("job"),
        "search_form": SearchForm(),
        "left": left,
        "uncounted": alignment.uncounted_runs(current).values(),
        "seen_labels": [(entry, audit.action_in_words(entry.verb)) for entry in seen_labels(current)],
        "tested": {row.look.candidate_id for row in looks},
        "spent_sentence": "" if left else alignment.no_looks_left(current),
        "is_lead": access.holds(user=request.user, project=current_project, roles=(Role.LEAD,)),
        "spent": spending.committed_of_alignment(current),
        "forecast": _forecast(current),
        "budget_form": BudgetForm(initial={"budget": current.budget}),
        "simulated": current.base.simulated,
    }
    return render(request, "analytics/alignment.html", context)


def _forecast(current: Alignment) -> runs.Forecast | None:
    """What asking one version about the tuning items takes, by the judge as it was: a new version is paid in full, and
    so `cost_again`; that the judge itself was asked already makes no version cheaper."""
    about = {"dataset": current.campaign.dataset, "rubric_version": current.campaign.rubric_version}
    try:
        return runs.forecast(judge=current.base, selection=current.tuning, **about)
    except Refused:
        return None


@require_POST
@login_required
def run_version(request: HttpRequest, project: str, alignment_pk: int, judge: int) -> HttpResponse:
    """Ask a version about the tuning items; a paused run goes on."""
    candidate = _candidate(request, project, alignment_pk, judge)
    with refusals.refusals_as_messages(request):
        run = alignment.start_tuning(candidate=candidate, actor=request.user)
        tasks.enqueue_run(run.pk)
    return redirect("alignment", project, alignment_pk)


@require_http_methods(["GET", "POST"])
@login_required
def candidate_page(request: HttpRequest, project: str, alignment_pk: int, judge: int) -> HttpResponse:
    """Where a version differs from the panel on the tuning items, and the form that makes the next version of it."""
    candidate = _candidate(request, project, alignment_pk, judge)
    current, parent = candidate.alignment, candidate.judge
    briefs = _briefs(current, parent)
    suggested = _("%(judge)s, version %(number)d") % {
        "judge": current.base.name[:90],
        "number": current.candidates.count(),
    }
    form = VersionForm(request.POST or None, briefs=briefs, parent=parent, initial={"name": suggested})
    if form.is_valid():
        try:
            _add(request, candidate, form)
            return redirect("alignment", project, alignment_pk)
        except Refused as refused:
            show_refusal(form, refused)
    language, criterion = request.GET.get("language", ""), request.GET.get("criterion", "")
    run = alignment.run_of(current, parent, current.tuning)
    listed, count = alignments.confusions(current, run, language=language, criterion=criterion)
    page = Paginator(listed, CONFUSIONS_SHOWN).get_page(request.GET.get("page"))
    context = {
        "title": parent.name,
        "project": current.project,
        "alignment": current,
        "judge": parent,
        "form": form,
        "page_obj": page,
        "listed": len(listed),
        "count": count,
        "run": run,
        "proposal_form": ProposalForm(project=current.project, initial={"name": suggested}),
        "filters": list(_filters(current, {"language": language, "criterion": criterion})),
        "simulated": parent.simulated,
    }
    return render(request, "analytics/alignment_version.html", context)


def _briefs(current: Alignment, judge: Judge) -> list[CriterionBrief]:
    """The criteria as the judge reads them in the rubric; none where it is not shown definitions and anchors."""
    if judge.variant.get("anchor_detail") == "name" or judge.variant.get("rubric_text") == "general":
        return []
    language = judge.variant.get("instruction_language", "en")
    return [
        requests.criterion_brief(criterion, language) for criterion in current.campaign.rubric_version.criteria.all()
    ]


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice among the confusions: its parameter, the values there are, and the one that is chosen."""

    name: str
    label: str
    values: list[str]
    chosen: str


def _filters(current: Alignment, chosen: Mapping[str, str]) -> Iterator[Filter]:
    languages = [row.language for row in alignment.split_by_language(current) if row.tuning_items]
    yield Filter("language", _("Language"), languages, chosen["language"])
    keys = [criterion.key for criterion in current.campaign.rubric_version.criteria.all()]
    yield Filter("criterion", _("Criterion"), keys, chosen["criterion"])


def _add(request: HttpRequest, candidate: AlignmentCandidate, form: VersionForm) -> None:
    current, parent = candidate.alignment, candidate.judge
    variant = alignment.edited_variant(
        current, parent, instructions=form.cleaned_data["instructions"], own_texts=form.own_texts
    )
    added = alignment.add_candidate(
        alignment=current, parent=parent, variant=variant, name=form.cleaned_data["name"], actor=request.user
    )
    if added.pk == candidate.pk:
        raise Refused(_("Nothing was changed: this is the same version."), code="same")
    run = alignment.start_tuning(candidate=added, actor=request.user)
    tasks.enqueue_run(run.pk)


@require_POST
@login_required
def propose_version_view(request: HttpRequest, project: str, alignment_pk: int, judge: int) -> HttpResponse:
    """Have a model write the next version of this one, from its differences on the tuning items."""
    candidate = _candidate(request, project, alignment_pk, judge)
    current = candidate.alignment
    form = ProposalForm(request.POST, project=current.project)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect("alignment_version", project, alignment_pk, judge)
    with refusals.refusals_as_messages(request):
        cases = alignments.proposal_cases(current, alignment.run_of(current, candidate.judge, current.tuning))
        proposal = proposals.begin_proposal(candidate=candidate, cases=cases, actor=request.user, **form.cleaned_data)
        jobs.enqueue(proposal)
    return redirect("alignment", project, alignment_pk)


@require_POST
@login_required
def start_search(request: HttpRequest, project: str, alignment_pk: int) -> HttpResponse:
    """Search for versions with examples, as a job."""
    current = get_object_or_404(find_alignments(request.user, project)[1], pk=alignment_pk)
    form = SearchForm(request.POST)
    if form.is_valid():
        with refusals.refusals_as_messages(request):
            jobs.enqueue(proposals.begin_search(alignment_searched=current, actor=request.user, **form.cleaned_data))
    else:
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
    return redirect("alignment", project, alignment_pk)


@require_safe
@login_required
def proposal_page(request: HttpRequest, project: str, alignment_pk: int, proposal: int) -> HttpResponse:
    """Show the request to a model, its reply, and the cost."""
    current_project, found = find_alignments(request.user, project)
    current = get_object_or_404(found, pk=alignment_pk)
    shown = get_object_or_404(current.proposals.select_related("job", "candidate__judge", "parent__judge"), pk=proposal)
    context = {
        "title": shown.name,
        "project": current_project,
        "alignment": current,
        "proposal": shown,
        "reply": reply_text(shown.reply, shown.answer),
        "erased": "" if shown.request else proposals.erased_words(),
    }
    return render(request, "analytics/alignment_proposal.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def look_page(request: HttpRequest, project: str, alignment_pk: int, judge: int) -> HttpResponse:
    """GET explains a look; POST with `confirm` takes the look."""
    candidate = _candidate(request, project, alignment_pk, judge)
    current = candidate.alignment
    if request.method == "POST":
        if request.POST.get("confirm") != "yes":
            raise BadRequest("confirm")
        with refusals.refusals_as_messages(request):
            look = alignment.take_look(candidate=candidate, actor=request.user)
            tasks.enqueue_runs(alignment.look_runs(look))
            messages.success(
                request, _("Look %d is taken. Its figures appear when all calls are answered.") % look.number
            )
        return redirect("alignment", project, alignment_pk)
    if current.looks.filter(candidate=candidate).exists():
        messages.info(request, alignment.tested_sentence())
        return redirect("alignment", project, alignment_pk)
    context = {
        "title": _("Look at the locked split"),
        "project": current.project,
        "alignment": current,
        "judge": candidate.judge,
        "number": current.looks.count() + 1,
        "spent_sentence": "" if alignment.looks_left(current) else alignment.no_looks_left(current),
        "split": alignment.split_by_language(current),
    }
    return render(request, "analytics/alignment_look.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def close_page(request: HttpRequest, project: str, alignment_pk: int) -> HttpResponse:
    """GET explains closing; POST with `confirm` closes the alignment. Only for leads."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    current = get_object_or_404(find_alignments(request.user, project)[1], pk=alignment_pk)
    if request.method == "POST":
        if request.POST.get("confirm") != "yes":
            raise BadRequest("confirm")
        with refusals.refusals_as_messages(request):
            alignment.close_alignment(alignment=current, actor=request.user)
        return redirect("alignment", project, alignment_pk)
    left = alignment.looks_left(current)
    context = {
        "title": _("Close the alignment"),
        "project": current_project,
        "alignment": current,
        "left": left,
        "taken": current.looks.count(),
        "spent_sentence": "" if left else alignment.no_looks_left(current),
    }
    return render(request, "analytics/alignment_close.html", context)


@require_POST
@login_required
def set_alignment_budget(request: HttpRequest, project: str, alignment_pk: int) -> HttpResponse:
    """Raise, lower or remove the cap over everything an alignment asks."""
    current = get_object_or_404(find_alignments(request.user, project)[1], pk=alignment_pk)
    form = BudgetForm(request.POST)
    if form.is_valid():
        with refusals.refusals_as_messages(request):
            alignment.rebudget_alignment(alignment=current, actor=request.user, **form.cleaned_data)
    else:
        messages.error(request, " ".join(str(error) for error in form.errors["budget"]))
    return redirect("alignment", project, alignment_pk)
