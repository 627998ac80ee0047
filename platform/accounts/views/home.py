"""The home page, and the page to create a project."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import access, people
from accounts.forms import ProjectForm
from accounts.models import Membership, Role
from accounts.refusals import Refused


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The user's projects; a user who is only an annotator is redirected to their duties."""
    every = Membership.objects.filter(user=request.user).select_related("project").order_by("project__name")
    held = [membership for membership in every if membership.project.archived_at is None]
    archived = [membership for membership in every if membership.project.archived_at is not None]
    if any(membership.project.requires_second_factor for membership in held) and not access.has_second_factor(
        request.user
    ):
        messages.warning(request, _("One of your projects requires two-factor authentication. Set it up here first."))
        return redirect("mfa_index")
    if held and all(membership.role == Role.ANNOTATOR for membership in held):
        return redirect("desk")
    return render(request, "accounts/home.html", {"memberships": held, "archived": archived})


@require_http_methods(["GET", "POST"])
@login_required
def new_project(request: HttpRequest) -> HttpResponse:
    """A form to create a project, for users who may."""
    if not people.may_found(request.user):
        return render(request, "accounts/project_forbidden.html", {"sentence": people.MAY_NOT_FOUND}, status=403)
    form = ProjectForm(request.POST or None)
    if form.is_valid():
        try:
            project = people.found_project(founder=request.user, **form.cleaned_data)
            return redirect("project", project.slug)
        except Refused as refused:
            form.add_error("slug", refused.sentence)
    return render(request, "accounts/project_new.html", {"form": form})
