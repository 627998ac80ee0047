"""Settings: webhooks, for leads."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, addresses, webhooks
from accounts.models import (
    Delivery,
    Project,
    Role,
    Webhook,
)
from accounts.refusals import Refused, refusals_as_messages

PAGE = 50


class EventsForm(forms.Form):
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(event.value, event.label) for event in webhooks.OFFERED],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one event.")},
    )


class WebhookForm(EventsForm):
    address = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=addresses.LONGEST_ADDRESS,
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
        help_text=gettext_lazy("The address where your program receives the requests. It must start with https://."),
    )
    field_order = ("address", "events")


@require_safe
@login_required
def settings_page(request: HttpRequest, project: str) -> HttpResponse:
    """The first page of the project settings."""
    return redirect("shares", access.require(user=request.user, slug=project, roles=(Role.LEAD,)).slug)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def webhooks_page(request: HttpRequest, project: str) -> HttpResponse:
    """The project's webhooks, and a form to add one; its secret is shown once."""
    current_project, visible_webhooks = _webhooks_of(request, project)
    form = WebhookForm(_posted(request))
    added = _added(current_project, form, request) if form.is_valid() else None
    context = {
        "title": _("Webhooks"),
        "project": current_project,
        "webhooks": visible_webhooks,
        "form": WebhookForm() if added else form,
    }
    status = 422 if form.errors else 200
    return render(request, "accounts/webhooks.html", {**context, **_shown(added)}, status=status)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def webhook_page(request: HttpRequest, project: str, webhook: int) -> HttpResponse:
    """One webhook with its deliveries, and a form to choose its events."""
    current_project, current_webhook = _webhook(request, project, webhook)
    form = EventsForm(_posted(request), initial={"events": current_webhook.events})
    if form.is_valid():
        webhooks.listen(webhook=current_webhook, events=form.cleaned_data["events"], actor=request.user)
        messages.success(request, _("Saved."))
        return redirect("webhook", current_project.slug, current_webhook.pk)
    context = _context(request, current_project, current_webhook, form)
    return render(request, "accounts/webhook.html", context, status=422 if form.errors else 200)


@require_POST
@login_required
def turn_webhook(request: HttpRequest, project: str, webhook: int) -> HttpResponse:
    current_project, current_webhook = _webhook(request, project, webhook)
    turn = webhooks.turn_on if request.POST.get("to") == "on" else webhooks.turn_off
    turn(webhook=current_webhook, actor=request.user)
    return redirect("webhook", current_project.slug, current_webhook.pk)


@require_POST
@never_cache
@login_required
def renew_webhook(request: HttpRequest, project: str, webhook: int) -> HttpResponse:
    """Create a new secret, and show it once."""
    current_project, current_webhook = _webhook(request, project, webhook)
    webhooks.renew(webhook=current_webhook, actor=request.user)
    form = EventsForm(initial={"events": current_webhook.events})
    context = _context(request, current_project, current_webhook, form)
    return render(request, "accounts/webhook.html", {**context, **_shown(current_webhook)})


@require_POST
@login_required
def test_webhook(request: HttpRequest, project: str, webhook: int) -> HttpResponse:
    current_project, current_webhook = _webhook(request, project, webhook)
    with refusals_as_messages(request, done=_("It is being sent. Reload this page to see the result.")):
        webhooks.test(webhook=current_webhook, actor=request.user)
    return redirect("webhook", current_project.slug, current_webhook.pk)


@require_POST
@login_required
def send_again_view(request: HttpRequest, project: str, webhook: int, delivery: int) -> HttpResponse:
    current_project, current_webhook = _webhook(request, project, webhook)
    chosen = get_object_or_404(current_webhook.deliveries.select_related("webhook__project"), pk=delivery)
    with refusals_as_messages(request, done=_("It is being sent. Reload this page to see the result.")):
        webhooks.send_again(delivery=chosen, actor=request.user)
    return redirect("webhook", current_project.slug, current_webhook.pk)


@require_POST
@login_required
def remove_webhook_view(request: HttpRequest, project: str, webhook: int) -> HttpResponse:
    current_project, current_webhook = _webhook(request, project, webhook)
    webhooks.remove_webhook(webhook=current_webhook, actor=request.user)
    messages.success(request, _("Removed. Nothing more is sent to %s.") % current_webhook.address)
    return redirect("webhooks", current_project.slug)


def _posted(request: HttpRequest) -> Any:
    return request.POST if request.method == "POST" else None


def _webhooks_of(request: HttpRequest, project: str) -> tuple[Project, Any]:
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    return current_project, Webhook.objects.visible_to(request.user).filter(project=current_project).select_related(
        "project"
    )


def _webhook(request: HttpRequest, project: str, pk: int) -> tuple[Project, Webhook]:
    current_project, visible_webhooks = _webhooks_of(request, project)
    return current_project, get_object_or_404(visible_webhooks, pk=pk)


def _added(project: Project, form: WebhookForm, request: HttpRequest) -> Webhook | None:
    try:
        return webhooks.add(project=project, actor=request.user, **form.cleaned_data)
    except Refused as refused:
        for field, sentence in (refused.fields or {"__all__": refused.sentence}).items():
            form.add_error(None if field == "__all__" else field, sentence)
        return None


def _shown(webhook: Webhook | None) -> dict[str, str]:
    return {"secret": webhooks.secret(webhook)} if webhook else {}


def _context(request: HttpRequest, project: Project, current_webhook: Webhook, form: EventsForm) -> dict[str, Any]:
    page = Paginator(Delivery.objects.filter(webhook=current_webhook), PAGE).get_page(request.GET.get("page"))
    return {"title": _("Webhook"), "project": project, "webhook": current_webhook, "form": form, "page_obj": page}
