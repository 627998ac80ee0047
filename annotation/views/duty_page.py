"""One duty: deadline, priority, quota, pause, more annotators, items in progress; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from accounts import access, mail, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation import allocation, duty_settings
from annotation.duty_settings import DutySettings
from annotation.models import Duty, DutyReminder
from annotation.views import import_page
from annotation.views.campaigns import show_refusal


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
        help_text=gettext_lazy("Duties with a higher priority come first in the list of an annotator."),
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
            messages.success(request, _("The settings of “%s” are stored.") % shown)
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
