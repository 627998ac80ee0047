"""Panels and their duties, questions of annotators and what they answered at the end; for leads and researchers.

Panels are shown under pseudonyms; leads say who sits on them, and remove people's data. A duty has its deadline,
priority, quota, pause, more annotators, and items in progress.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, audit, mail, refusals
from accounts.inputs import without_nul
from accounts.models import SIGHTED, Membership, Project, Role, User
from accounts.refusals import Refused
from annotation import allocation, duty_settings, panels, questionnaires
from annotation.desk import threads
from annotation.duty_settings import DutySettings
from annotation.models import Annotator, Campaign, Duty, DutyReminder, Panel, PanelSeat
from annotation.views import import_page
from annotation.views.campaigns import show_refusal
from annotation.writers.csv import csv_lines

MOST_QUESTIONS = 300
LEAD = (Role.LEAD,)


class PanelForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    language = forms.CharField(
        label=gettext_lazy("Language"),
        max_length=35,
        required=False,
        help_text=gettext_lazy(
            "A tag such as et, es-MX or zh-Hant; es includes every variety of Spanish. Leave empty for items in "
            "any language."
        ),
    )


class MemberChoice(forms.ModelChoiceField):
    def label_from_instance(self, member: Membership) -> str:
        known = [*member.user.languages, *([_("sees verdicts")] if member.role in SIGHTED else [])]
        return f"{member.user} ({', '.join(known)})" if known else str(member.user)


class SeatForm(forms.Form):
    """A member who does not sit on the panel yet."""

    member = MemberChoice(label=gettext_lazy("Member"), queryset=Membership.objects.none(), empty_label=None)
    confirmed = forms.BooleanField(
        label=gettext_lazy("Add them although they can see verdicts and other people's ratings"),
        required=False,
        widget=forms.HiddenInput,
    )

    def __init__(self, *args: Any, panel: Panel, user: User) -> None:
        super().__init__(*args)
        seated = panel.seats.filter(annotator__user__isnull=False).values("annotator__user")
        members = Membership.objects.visible_to(user).filter(project=panel.project_id).exclude(user__in=seated)
        self.fields["member"].queryset = members.select_related("user").order_by("user__name")  # type: ignore[attr-defined]


def _panel(request: HttpRequest, project: str, panel: int, roles: tuple[Role, ...]) -> tuple[Project, Panel]:
    current_project = access.require(user=request.user, slug=project, roles=roles)
    return current_project, get_object_or_404(Panel.objects.visible_to(request.user), project=current_project, pk=panel)


@require_http_methods(["GET", "POST"])
@login_required
def panels_page(request: HttpRequest, project: str) -> HttpResponse:
    """The project's panels, and a form to create one."""
    current_project = access.require(user=request.user, slug=project)
    form = PanelForm(request.POST or None)
    if form.is_valid():
        try:
            created_panel = panels.create(project=current_project, actor=request.user, **form.cleaned_data)
            return redirect("panel", current_project.slug, created_panel.pk)
        except Refused as refused:
            show_refusal(form, refused)
    listed = Panel.objects.visible_to(request.user).filter(project=current_project).annotate(seated=Count("seats"))
    context = {"title": _("Panels"), "project": current_project, "panels": listed, "form": form}
    return render(request, "annotation/panels.html", context)


@require_safe
@login_required
def panel_page(request: HttpRequest, project: str, panel: int) -> HttpResponse:
    """The annotators of a panel. Researchers see pseudonyms; leads see names too, and can add and remove annotators."""
    current_project = access.require(user=request.user, slug=project)
    shown = get_object_or_404(Panel.objects.visible_to(request.user), project=current_project, pk=panel)
    is_lead = access.holds(user=request.user, project=current_project, roles=LEAD)
    return _shown(request, current_project, shown, SeatForm(panel=shown, user=request.user) if is_lead else None)


def _shown(
    request: HttpRequest, project: Project, panel: Panel, form: SeatForm | None, status: int = 200
) -> HttpResponse:
    context = {
        "title": panel.name,
        "project": project,
        "panel": panel,
        "seats": panels.seats(panel),
        "is_lead": form is not None,
        "form": form,
    }
    return render(request, "annotation/panel.html", context, status=status)


@require_POST
@login_required
def seat_member(request: HttpRequest, project: str, panel: int) -> HttpResponse:
    """Add a member to the panel. A member who can see verdicts is added only after a confirmation."""
    current_project, current_panel = _panel(request, project, panel, LEAD)
    form = SeatForm(request.POST, panel=current_panel, user=request.user)
    if not form.is_valid():
        messages.error(request, _("Choose a member of the project who is not on the panel yet."))
        return redirect("panel", current_project.slug, current_panel.pk)
    chosen = form.cleaned_data
    try:
        panels.seat(
            panel=current_panel, user=chosen["member"].user, only_blind=not chosen["confirmed"], actor=request.user
        )
    except Refused as refused:
        form.fields["confirmed"].widget = forms.CheckboxInput()
        show_refusal(form, refused)
        return _shown(request, current_project, current_panel, form, status=422)
    return redirect("panel", current_project.slug, current_panel.pk)


@require_POST
@login_required
def unseat_view(request: HttpRequest, project: str, panel: int, seat: int) -> HttpResponse:
    """Remove an annotator from the panel."""
    current_project, current_panel = _panel(request, project, panel, LEAD)
    panels.unseat(seat=get_object_or_404(PanelSeat, panel=current_panel, pk=seat), actor=request.user)
    return redirect("panel", current_project.slug, current_panel.pk)


class PersonRemovalForm(forms.Form):
    """The pseudonym, typed as a confirmation, and what goes beside the texts."""

    with_ratings = forms.BooleanField(
        label=gettext_lazy("Delete their ratings, too"),
        required=False,
        help_text=gettext_lazy(
            "Otherwise scores and times stay under the pseudonym. If they are deleted, their items are free again and "
            "all figures of the campaigns are computed again."
        ),
    )
    with_account = forms.BooleanField(
        label=gettext_lazy("Erase their account, too"),
        required=False,
        help_text=gettext_lazy(
            "Name, e-mail address, profile with consent, sign-in methods and API tokens. No other project uses it."
        ),
    )
    typed = forms.CharField(label=gettext_lazy("The pseudonym, to confirm"), max_length=80)


@require_safe
@login_required
def removals_page(request: HttpRequest, project: str) -> HttpResponse:
    """Everybody of whom the project holds data as an annotator."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    members = set(Membership.objects.filter(project=current_project).values_list("user", flat=True))
    held = panels.people_held(current_project)
    context = {
        "title": _("Remove a person’s data"),
        "project": current_project,
        "people": [(annotator, annotator.user_id in members) for annotator in held],
        "removed": Annotator.objects.filter(project=current_project, removed_at__isnull=False).count(),
    }
    return render(request, "annotation/removals.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def removal_page(request: HttpRequest, project: str, annotator: int) -> HttpResponse:
    """What goes and what stays when a person's data are removed, and the form that removes them."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    person = get_object_or_404(panels.people_held(current_project).select_related("project"), pk=annotator)
    held = panels.person_held(annotator=person, actor=request.user)
    form = PersonRemovalForm(request.POST if request.method == "POST" else None)
    if not held.may_erase_account:
        del form.fields["with_account"]
    if form.is_valid():
        try:
            deleted = panels.remove_person(annotator=person, actor=request.user, **form.cleaned_data)
        except Refused as refused:
            show_refusal(form, refused)
        else:
            done = _("The data of %(name)s are removed.") % {"name": person.pseudonym}
            if deleted:
                more = _("%(deleted)d ratings are deleted. All figures of their campaigns are computed again.")
                done = f"{done} {more % {'deleted': deleted}}"
            messages.success(request, done)
            return redirect("person_removals", current_project.slug)
    context = {"title": _("Remove a person’s data"), "project": current_project, "held": held, "form": form}
    return render(request, "annotation/removal.html", context, status=422 if form.errors else 200)


class DutySettingsForm(forms.Form):
    """What a lead may change while the duty is rated."""

    paused = forms.BooleanField(
        label=gettext_lazy("Paused"),
        required=False,
        help_text=gettext_lazy("Nobody gets new items. Items in progress can be submitted."),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        min_value=-duty_settings.HIGHEST_PRIORITY,
        max_value=duty_settings.HIGHEST_PRIORITY,
        help_text=gettext_lazy("Tasks with a higher priority come first in the list of an annotator."),
    )
    due_at = forms.DateTimeField(
        label=gettext_lazy("Deadline (UTC)"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("Two days before it, everybody who has items left gets one mail."),
    )
    quota = forms.IntegerField(
        label=gettext_lazy("Quota"),
        min_value=1,
        max_value=duty_settings.LARGEST_QUOTA,
        required=False,
        help_text=gettext_lazy("The most items that one annotator scores. Empty: no limit."),
    )


def _duty(request: HttpRequest, project: str, campaign: int, duty: int) -> tuple[Project, Duty]:
    current_project = access.require(user=request.user, slug=project)
    visible = Duty.objects.visible_to(request.user).filter(campaign__project=current_project, campaign=campaign)
    return current_project, get_object_or_404(visible.select_related("campaign__project", "panel", "taxonomy"), pk=duty)


@require_http_methods(["GET", "POST"])
@login_required
def duty_page(request: HttpRequest, project: str, campaign: int, duty: int) -> HttpResponse:
    """The settings of a duty, and who has items in progress."""
    current_project, shown = _duty(request, project, campaign, duty)
    initial = {name: getattr(shown, name) for name in DutySettingsForm.base_fields}
    form = DutySettingsForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        try:
            settings = DutySettings(**form.cleaned_data)
            duty_settings.change_duty(duty=shown, settings=settings, actor=request.user)
            messages.success(request, _("The settings of “%s” are saved.") % shown)
            return redirect("duty", current_project.slug, campaign, duty)
        except Refused as refused:
            show_refusal(form, refused)
    context: dict[str, Any] = {
        "title": shown.name,
        "project": current_project,
        "campaign": shown.campaign,
        "duty": shown,
        "form": form,
        "holders": duty_settings.people_with_items(shown),
        "most_more": allocation.MOST_OVERLAP - shown.overlap,
        "reminded": DutyReminder.objects.filter(duty=shown, due_at=shown.due_at).count() if shown.due_at else 0,
        "sends_mail": mail.is_sent(),
    }
    return render(request, "annotation/duty.html", context)


@require_POST
@login_required
def add_annotators_view(request: HttpRequest, project: str, campaign: int, duty: int) -> HttpResponse:
    """More annotators for each item; `overlap` is what the page showed."""
    current_project, grown = _duty(request, project, campaign, duty)
    with refusals.refusals_as_messages(request):
        more, overlap = (import_page.key(request.POST.get(name, "")) or 0 for name in ("more", "overlap"))
        count = duty_settings.add_annotators(duty=grown, more=more, overlap=overlap, actor=request.user)
        done = ngettext("%d assignment was created.", "%d assignments were created.", count) % count
        messages.success(request, done)
    return redirect("duty", current_project.slug, campaign, duty)


@require_POST
@login_required
def return_items_view(request: HttpRequest, project: str, campaign: int, duty: int) -> HttpResponse:
    """Give the items that the chosen annotators have in progress to others."""
    current_project, shown = _duty(request, project, campaign, duty)
    chosen = [key for posted in request.POST.getlist("annotator") if (key := import_page.key(posted))]
    with refusals.refusals_as_messages(request):
        count = duty_settings.return_items(duty=shown, annotators=chosen, actor=request.user)
        done = ngettext("%d item was returned to the queue.", "%d items were returned to the queue.", count) % count
        messages.success(request, done)
    return redirect("duty", current_project.slug, campaign, duty)


def _led(request: HttpRequest, project: str, campaign: int) -> Campaign:
    current = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    return get_object_or_404(Campaign.objects.visible_to(request.user).filter(project=current), pk=campaign)


@require_safe
@login_required
def questions_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The questions of a campaign's annotators: those without an answer first."""
    current = _led(request, project, campaign)
    found = list(threads.questions_in(current)[: MOST_QUESTIONS + 1])
    context = {
        "title": _("Questions of annotators"),
        "project": current.project,
        "campaign": current,
        "unanswered": [one for one in found[:MOST_QUESTIONS] if one.answered_at is None],
        "answered": [one for one in found[:MOST_QUESTIONS] if one.answered_at],
        "most": MOST_QUESTIONS if len(found) > MOST_QUESTIONS else None,
    }
    return render(request, "annotation/questions.html", context)


@require_POST
@login_required
def answer_question(request: HttpRequest, project: str, campaign: int, question: int) -> HttpResponse:
    """Answer a question, or change its answer."""
    current = _led(request, project, campaign)
    asked = get_object_or_404(threads.questions_in(current), pk=question)
    text, broadcast = without_nul(request.POST.get("answer", "")), "broadcast" in request.POST
    seen = request.POST.get("seen")
    try:
        threads.answer_item_question(question=asked, text=text, broadcast=broadcast, seen=seen, actor=request.user)
        messages.success(request, _("Annotators see your answer now."))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect("annotator_questions", project=project, campaign=campaign)


@require_http_methods(["GET", "POST"])
@login_required
def questionnaire_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """GET: what annotators answered, in groups. POST: switch the questionnaire on or off (`asked`)."""
    current = _led(request, project, campaign)
    if request.method == "POST":
        asked = request.POST.get("asked") == "yes"
        questionnaires.switch_questionnaire(campaign=current, asked=asked, actor=request.user)
        return redirect("questionnaire", project=project, campaign=campaign)
    results = questionnaires.closing_results(current)
    language = get_language() or "en"
    context = {
        "title": _("Closing questionnaire"),
        "project": current.project,
        "campaign": current,
        "results": results,
        "rows": [(questionnaires.name_of_criterion(row.criterion, language), row) for row in results.rows],
        "fewest": questionnaires.FEWEST_PEOPLE,
    }
    return render(request, "annotation/questionnaire.html", context)


@require_safe
@login_required
def questionnaire_csv(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The same as CSV, without the comments: a row for each criterion and language."""
    current = _led(request, project, campaign)
    audit.record(actor=request.user, project=current.project, verb="export questionnaire", subject=current)
    name = f"{slugify(current.name) or f'campaign-{current.pk}'}-questionnaire.csv"
    lines = csv_lines(questionnaires.SHEET, questionnaires.closing_rows(questionnaires.closing_results(current)))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
