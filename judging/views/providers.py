"""The operator's pages about providers: their addresses, models, prices and limits, and a test of one call."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import audit
from accounts.models import AuditEntry
from accounts.refusals import Refused, refusals_as_messages
from annotation.views.campaigns import show_refusal
from judging import providers, tasks
from judging.asking import endpoints
from judging.asking.declarations import MOST, DeclaredProvider
from judging.forms import ProviderForm, models_as_text
from judging.models import ProviderTest, StoredProvider
from judging.views.judges import REPLY_FORMS


def _require_superuser(request: HttpRequest) -> None:
    if not request.user.is_superuser:
        raise PermissionDenied("This is for the operator of the instance.")


def _provider(request: HttpRequest, name: str) -> DeclaredProvider:
    _require_superuser(request)
    provider = endpoints.find_provider(name)
    if provider is None:
        raise Http404
    return provider


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def providers_page(request: HttpRequest) -> HttpResponse:
    """Every provider, what was changed about them by whom, and a form to add one."""
    _require_superuser(request)
    form = ProviderForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            row = providers.add_provider(actor=request.user, **form.declared)
            messages.success(request, _("Added. Allow projects to use it with: panelbench allow_provider"))
            return redirect("provider", row.name)
        except Refused as refused:
            show_refusal(form, refused)
    labels = [audit.label(StoredProvider), audit.label(ProviderTest)]
    trail = audit.trail_page(AuditEntry.objects.filter(project=None, subject__in=labels).order_by("-pk"))
    shown = [(provider, endpoints.is_of_environment(name)) for name, provider in endpoints.all_providers().items()]
    context = {"title": _("Providers"), "providers": shown, "form": form, "trail": trail.lines[:50]}
    return render(request, "judging/providers.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def provider_page(request: HttpRequest, provider: str) -> HttpResponse:
    """One provider: its settings, to be changed unless the environment declares it, and its tests."""
    declared = _provider(request, provider)
    is_of_environment = endpoints.is_of_environment(provider)
    form = ProviderForm(request.POST if request.method == "POST" else None, initial=_initial(declared), named=provider)
    if form.is_valid():
        try:
            providers.change_provider(name=provider, actor=request.user, **form.declared)
            messages.success(request, _("Saved. Runs that were started before keep their prices."))
            return redirect("provider", provider)
        except Refused as refused:
            show_refusal(form, refused)
    context = {
        "title": provider,
        "provider": declared,
        "of_environment": is_of_environment,
        "form": form,
        "tests": [
            (test, str(REPLY_FORMS.get(test.result.get("form", ""), ""))) for test in providers.latest_tests(provider)
        ],
    }
    return render(request, "judging/provider.html", context, status=422 if form.errors else 200)


def _initial(provider: DeclaredProvider) -> dict[str, Any]:
    plain = ("name", "base_url", "api", "key_variable", "batches", *MOST)
    return {"models": models_as_text(provider), **{name: getattr(provider, name) for name in plain}}


@require_POST
@login_required
def begin_provider_test(request: HttpRequest, provider: str) -> HttpResponse:
    """Let a worker make one call."""
    _provider(request, provider)
    with refusals_as_messages(request):
        model = request.POST.get("model", "")
        test = providers.begin_test(name=provider, model=model, actor=request.user)
        tasks.enqueue_test(test.pk)
        messages.success(request, _("A worker makes one call. Reload this page to see the result."))
    return redirect("provider", provider)


@require_POST
@login_required
def remove_provider_view(request: HttpRequest, provider: str) -> HttpResponse:
    """Remove a stored provider."""
    _provider(request, provider)
    try:
        providers.remove_provider(name=provider, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("provider", provider)
    messages.success(request, _("Removed. Its judges stay, and can't be run."))
    return redirect("providers")
