"""Guidelines, reference items, and how annotators stand: for leads and researchers; leads decide about people."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.inputs import without_nul
from accounts.models import Project, Role
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation.desk import stage_pages
from annotation.models import (
    Annotator,
    Assignment,
    Campaign,
    ControlPause,
    Criterion,
    Duty,
    Guideline,
    MismatchReview,
    QualificationRule,
    ReferenceItem,
)
from annotation.qualification import controls, exams, guidelines, references, standings
from annotation.qualification.matching import ReferenceComparison
from annotation.qualification.references import ReferenceRow, rule_of
from annotation.views.campaigns import show_refusal

LEAD = (Role.LEAD,)
MOST_BYTES = 5_000_000
BLANK_EXAMPLES = 2
TEXT_ROWS = {"rows": 3}


class RuleForm(forms.ModelForm):
    """What the campaign asks of its annotators; shares are typed as fractions, such as 0.7."""

    class Meta:
        model = QualificationRule
        fields = (
            "training",
            "exam_items",
            "matching",
            "tolerance",
            "threshold",
            "attempts",
            "wait_hours",
            "valid_days",
            "control_rate",
            "repeat_rate",
            "control_threshold",
            "fewest_controls",
        )
        labels = {
            "training": gettext_lazy("Annotators finish the training first"),
            "exam_items": gettext_lazy("Items in an exam"),
            "matching": gettext_lazy("What counts as a match"),
            "tolerance": gettext_lazy("Tolerance in steps of the scale"),
            "threshold": gettext_lazy("Share of matches needed to pass"),
            "attempts": gettext_lazy("Attempts"),
            "wait_hours": gettext_lazy("Hours before another attempt"),
            "valid_days": gettext_lazy("Days that a passed exam counts"),
            "control_rate": gettext_lazy("Share of control items"),
            "repeat_rate": gettext_lazy("Share of repeated items"),
            "control_threshold": gettext_lazy("Match that controls must reach"),
            "fewest_controls": gettext_lazy("Controls before anything is decided"),
        }
        help_texts = {
            "exam_items": gettext_lazy("0: there is no exam."),
            "threshold": gettext_lazy("On every criterion and in every language. POLLUX used 0.7."),
            "valid_days": gettext_lazy("Empty: for ever."),
            "control_rate": gettext_lazy("From 0 to 0.5. Annotators can't tell them from other items."),
            "repeat_rate": gettext_lazy("Of the annotator's own items, from 0 to 0.5."),
            "control_threshold": gettext_lazy(
                "The work is paused when the whole 95 % interval of the match lies below it."
            ),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["valid_days"].required = False
        for name in ("exam_items", "attempts", "fewest_controls"):
            self.fields[name].max_value = 1000  # type: ignore[attr-defined]
        for name, least, most in (
            ("threshold", 0, 1),
            ("control_threshold", 0, 1),
            ("control_rate", 0, 0.5),
            ("repeat_rate", 0, 0.5),
        ):
            self.fields[name].min_value, self.fields[name].max_value = least, most  # type: ignore[attr-defined]
            self.fields[name].widget.attrs |= {"min": least, "max": most, "step": 0.01}

    def clean(self) -> dict[str, Any]:
        """Refuse numbers that the table refuses, with words."""
        chosen = super().clean() or {}
        for name in ("control_rate", "repeat_rate"):
            if chosen.get(name, 0) > 0.5:
                self.add_error(name, _("Give a share from 0 to 0.5."))
        for name in ("attempts", "fewest_controls"):
            if chosen.get(name) == 0:
                self.add_error(name, _("Give 1 or more."))
        return chosen


class GuidelineForm(forms.Form):
    language = forms.CharField(
        label=gettext_lazy("Language"), max_length=35, help_text=gettext_lazy("A tag such as et or ar.")
    )
    text = forms.CharField(
        label=gettext_lazy("Guidelines"),
        widget=forms.Textarea({"rows": 20, "dir": "auto"}),
        help_text=gettext_lazy("Markdown. HTML is shown as text."),
    )


class ExampleForm(forms.Form):
    """One worked example; without a text it is left out."""

    text = forms.CharField(
        label=gettext_lazy("Text"), required=False, widget=forms.Textarea({**TEXT_ROWS, "dir": "auto"})
    )
    criterion = forms.ChoiceField(label=gettext_lazy("Criterion"), required=False)
    score = forms.FloatField(label=gettext_lazy("Score"), required=False)
    explanation = forms.CharField(
        label=gettext_lazy("Explanation"), required=False, widget=forms.Textarea({**TEXT_ROWS, "dir": "auto"})
    )

    def __init__(self, *args: Any, criteria: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["criterion"].choices = [("", "—"), *criteria]  # type: ignore[attr-defined]


class ReferenceForm(forms.Form):
    """One reference item: its purpose, and for every criterion a score, an accepted range and an explanation."""

    item = forms.CharField(label=gettext_lazy("Id of the item"), max_length=200)
    purpose = forms.ChoiceField(label=gettext_lazy("Purpose"), choices=ReferenceItem.Purpose.choices)

    def __init__(self, *args: Any, criteria: list[Criterion], **options: Any) -> None:
        super().__init__(*args, **options)
        self.criteria = criteria
        for criterion in criteria:
            name = criterion.says("name", "en") or criterion.key
            words = {
                "score": _("%(name)s: reference score") % {"name": name},
                "lowest": _("%(name)s: lowest accepted score") % {"name": name},
                "highest": _("%(name)s: highest accepted score") % {"name": name},
            }
            for part, label in words.items():
                self.fields[f"{part}-{criterion.key}"] = forms.CharField(label=label, max_length=30, required=False)
            self.fields[f"score-{criterion.key}"].help_text = _("%(scale)s. NA if it does not apply.") % {
                "scale": ", ".join(f"{value:g}" for value in criterion.values)
                or f"{criterion.minimum:g} - {criterion.maximum:g}"
            }
            self.fields[f"explanation-{criterion.key}"] = forms.CharField(
                label=_("%(name)s: explanation") % {"name": name},
                max_length=references.LONGEST_EXPLANATION,
                required=False,
                widget=forms.Textarea({**TEXT_ROWS, "dir": "auto"}),
            )

    @property
    def rows(self) -> list[ReferenceRow]:
        """The rows of the criteria that have a score."""
        chosen = self.cleaned_data
        parts = ("score", "lowest", "highest", "explanation")
        return [
            ReferenceRow(
                item=chosen["item"],
                purpose=chosen["purpose"],
                criterion=criterion.key,
                **{part: chosen[f"{part}-{criterion.key}"] for part in parts},
            )
            for criterion in self.criteria
            if chosen[f"score-{criterion.key}"].strip()
        ]


def _campaign(
    request: HttpRequest, project: str, campaign: int, roles: tuple[Role, ...] = ()
) -> tuple[Project, Campaign]:
    current_project = access.require(user=request.user, slug=project, **({"roles": roles} if roles else {}))
    visible = Campaign.objects.visible_to(request.user).filter(project=current_project)
    return current_project, get_object_or_404(visible.select_related("dataset", "rubric_version__rubric"), pk=campaign)


@require_http_methods(["GET", "POST"])
@login_required
def qualification_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The rule of a campaign, its guidelines and reference items in counts, and how every annotator stands."""
    current_project, shown = _campaign(request, project, campaign)
    rule = rule_of(shown.pk)
    form = RuleForm(request.POST or None, instance=rule)
    if request.method == "POST" and form.is_valid():
        with refusals.refusals_as_messages(request):
            access.refuse_archived(current_project)
            references.set_rule(campaign=shown, actor=request.user, **form.cleaned_data)
            messages.success(request, _("The rule was saved."))
        return redirect("qualification", current_project.slug, shown.pk)
    context = {
        "title": _("Qualification"),
        "project": current_project,
        "campaign": shown,
        "form": form,
        "rule": rule,
        "guidelines": guidelines.versions(shown),
        "reference_counts": references.count_references(shown),
        "standings": standings.standings(shown),
        "waiting": standings.waiting(shown.pk),
        "is_lead": access.holds(user=request.user, project=current_project, roles=LEAD),
    }
    return render(request, "annotation/qualification.html", context, status=400 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@login_required
def new_guideline(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Write a new version; the form begins with the newest one in the language."""
    current_project, target = _campaign(request, project, campaign)
    criteria = [(one.key, one.says("name", "en") or one.key) for one in target.rubric_version.criteria.all()]
    latest = guidelines.versions(target).filter(language=request.GET.get("language", "")).first()
    known = latest.examples if latest else []
    initial = {"language": latest.language, "text": latest.text} if latest else {}
    posted = request.POST if request.method == "POST" else None
    form = GuidelineForm(posted, initial=initial)
    formset_class = forms.formset_factory(ExampleForm, extra=BLANK_EXAMPLES, max_num=guidelines.MOST_EXAMPLES)
    examples = formset_class(posted, initial=known, prefix="examples", form_kwargs={"criteria": criteria})
    if posted is not None and form.is_valid() and examples.is_valid():
        given = [one for one in examples.cleaned_data if (one.get("text") or "").strip()]
        try:
            access.refuse_archived(current_project)
            made = guidelines.publish_guideline(
                campaign=target, examples=given, actor=request.user, **form.cleaned_data
            )
            messages.success(request, _("Version %(number)d was published.") % {"number": made.number})
            return redirect("qualification", current_project.slug, target.pk)
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("New version of the guidelines"), "project": current_project, "campaign": target}
    return render(request, "annotation/guideline_new.html", {**context, "form": form, "examples": examples})


@require_safe
@login_required
def guideline_page(request: HttpRequest, project: str, campaign: int, guideline: int) -> HttpResponse:
    """One version of the guidelines, as annotators read it."""
    current_project, target = _campaign(request, project, campaign)
    shown = get_object_or_404(Guideline, campaign=target, pk=guideline)
    parts = stage_pages.guideline_parts(shown, list(target.rubric_version.criteria.all()))
    context = {"title": _("Guidelines"), "project": current_project, "campaign": target, **parts}
    return render(request, "annotation/guideline.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def references_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The reference items with their scores; a CSV file marks more."""
    current_project, target = _campaign(request, project, campaign)
    if request.method == "POST":
        with refusals.refusals_as_messages(request):
            access.refuse_archived(current_project)
            marked = references.mark(campaign=target, rows=_uploaded_rows(request), actor=request.user)
            sentence = ngettext("%d reference item was stored.", "%d reference items were stored.", marked)
            messages.success(request, sentence % marked)
        return redirect("references", current_project.slug, target.pk)
    found = ReferenceItem.objects.filter(campaign=target).select_related("item").prefetch_related("scores__criterion")
    context = {
        "title": _("Reference items"),
        "project": current_project,
        "campaign": target,
        "references": found,
        "columns": ", ".join(references.COLUMNS),
    }
    return render(request, "annotation/references.html", context)


def _uploaded_rows(request: HttpRequest) -> list[ReferenceRow]:
    uploaded = request.FILES.get("file")
    if uploaded is None or (uploaded.size or 0) > MOST_BYTES:
        raise Refused(_("Choose a CSV file of at most 5 MB."), code="invalid")
    return references.read_reference_rows(uploaded.read())


@require_http_methods(["GET", "POST"])
@login_required
def reference_form(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Mark one item, or change its reference scores (`?item=` its id)."""
    current_project, target = _campaign(request, project, campaign)
    criteria = list(target.rubric_version.criteria.all())
    form = ReferenceForm(
        request.POST or None, criteria=criteria, initial=_stored_reference(target, request.GET.get("item", ""))
    )
    if request.method == "POST" and form.is_valid():
        try:
            access.refuse_archived(current_project)
            references.mark(campaign=target, rows=form.rows, actor=request.user)
            return redirect("references", current_project.slug, target.pk)
        except Refused as refused:
            form.add_error(None, refused.sentence)
    context = {"title": _("Reference item"), "project": current_project, "campaign": target, "form": form}
    return render(request, "annotation/reference_form.html", context)


def _stored_reference(campaign: Campaign, item: str) -> dict[str, str]:
    name = normal_identifier(without_nul(item))
    found = ReferenceItem.objects.filter(campaign=campaign, item__external_id__in=spellings_of([name])).first()
    if found is None:
        return {"item": name}
    shown = {"item": name, "purpose": found.purpose}
    for score in found.scores.select_related("criterion"):
        values = {"lowest": score.lowest, "highest": score.highest}
        shown |= {f"{part}-{score.criterion.key}": f"{value:g}" for part, value in values.items() if value is not None}
        shown[f"score-{score.criterion.key}"] = "NA" if score.score is None else f"{score.score:g}"
        shown[f"explanation-{score.criterion.key}"] = score.explanation
    return shown


@require_POST
@login_required
def remove_reference_view(request: HttpRequest, project: str, campaign: int, reference: int) -> HttpResponse:
    """Unmark an item that nobody has answered."""
    current_project, target = _campaign(request, project, campaign)
    marked = get_object_or_404(ReferenceItem.objects.select_related("campaign__project"), campaign=target, pk=reference)
    with refusals.refusals_as_messages(request):
        access.refuse_archived(current_project)
        references.remove_reference(reference=marked, actor=request.user)
    return redirect("references", current_project.slug, target.pk)


def _is_settled(one: ReferenceComparison) -> bool:
    """Whether nobody waits for a decision about it: what the annotator contests comes first."""
    return one.review is None or one.review.state != MismatchReview.State.CONTESTED


@require_http_methods(["GET", "POST"])
@login_required
def standing_page(request: HttpRequest, project: str, campaign: int, duty: int, annotator: int) -> HttpResponse:
    """One annotator in one duty: their exams and controls, and what differs from the references. A lead decides."""
    current_project, target = _campaign(request, project, campaign)
    own_duty = get_object_or_404(Duty.objects.select_related("panel", "campaign__project"), campaign=target, pk=duty)
    person = get_object_or_404(Annotator.objects.select_related("user"), project=current_project, pk=annotator)
    is_lead = access.holds(user=request.user, project=current_project, roles=LEAD)
    if request.method == "POST":
        if not is_lead:
            raise PermissionDenied("This needs the role lead.")
        with refusals.refusals_as_messages(request):
            access.refuse_archived(current_project)
            _decide(request, own_duty, person)
        return redirect("standing", current_project.slug, target.pk, own_duty.pk, person.pk)
    attempts = own_duty.exam_attempts.filter(annotator=person).order_by("-number")
    context = {
        "title": person.pseudonym,
        "project": current_project,
        "campaign": target,
        "duty": own_duty,
        "annotator": person,
        "standing": standings.standing_in(own_duty, person, rule_of(target.pk)),
        "attempts": [(attempt, exams.exam_result(attempt)) for attempt in attempts],
        "mismatches": sorted(standings.mismatches(duty=own_duty, annotator=person), key=_is_settled),
        "is_lead": is_lead,
    }
    return render(request, "annotation/standing.html", context)


def _decide(request: HttpRequest, duty: Duty, annotator: Annotator) -> None:
    """Accept or reject one mismatch (`assignment`, `criterion`), or end the pause (`reinstate`)."""
    note = without_nul(request.POST.get("note", ""))
    if "reinstate" in request.POST:
        pause = ControlPause.objects.filter(duty=duty, annotator=annotator, reinstated_at=None).first()
        if pause is None:
            raise Refused(_("This pause has ended already."), code="wrong_state")
        controls.reinstate(pause=pause, note=note, actor=request.user)
        return
    own = Assignment.objects.filter(duty__stands_for=duty, annotator=annotator, state=Assignment.State.SUBMITTED)
    wanted = request.POST.get("assignment", "")
    assignment = own.select_related("duty__campaign__project").filter(pk=int(wanted) if wanted.isdecimal() else 0)
    criterion = Criterion.objects.filter(
        rubric_version=duty.campaign.rubric_version_id, key=without_nul(request.POST.get("criterion", ""))
    ).first()
    if not (found := assignment.first()) or criterion is None:
        raise Http404("There is no such answer.")
    standings.decide_mismatch(
        assignment=found, criterion=criterion, accept="accept" in request.POST, note=note, actor=request.user
    )
