"""A lead's page of share links."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import Project, User
from analytics import shares
from analytics.api.shares import LONGEST, found_in
from annotation.models import Campaign


class ShareForm(forms.Form):
    campaign = forms.ModelChoiceField(
        label=gettext_lazy("Campaign"), queryset=Campaign.objects.none(), empty_label=None
    )
    label = forms.CharField(
        label=gettext_lazy("For whom"),
        max_length=120,
        help_text=gettext_lazy("Only leads see this. It helps you to recognise the link."),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Valid for (days)"),
        required=False,
        min_value=1,
        max_value=LONGEST,
        help_text=gettext_lazy("Leave empty to keep the link until you revoke it."),
    )

    def __init__(self, *args: object, project: Project, user: User) -> None:
        super().__init__(*args)
        mine = Campaign.objects.visible_to(user).filter(project=project).select_related("project")
        self.fields["campaign"].queryset = mine  # type: ignore[attr-defined]


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def shares_page(request: HttpRequest, project: str) -> HttpResponse:
    """The links that work; a posted form makes one and shows its address once."""
    room, found = found_in(request.user, project)
    form, address = ShareForm(request.POST or None, project=room, user=request.user), ""
    status = 422 if form.errors else 200
    if form.is_valid():
        _share, secret = shares.make(actor=request.user, **form.cleaned_data)
        address = request.build_absolute_uri(reverse("shared", args=[secret]))
        form = ShareForm(project=room, user=request.user)
    context = {"title": _("Sharing"), "project": room, "shares": found, "form": form, "address": address}
    return render(request, "analytics/sharing.html", context, status=status)


@require_POST
@login_required
def revoke_share(request: HttpRequest, project: str, link: int) -> HttpResponse:
    room, found = found_in(request.user, project)
    shares.revoke(share=get_object_or_404(found, pk=link), actor=request.user)
    messages.success(request, _("Revoked. The link no longer works."))
    return redirect("shares", room.slug)
