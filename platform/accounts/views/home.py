"""The first page after signing in, and starting a project."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts import people
from accounts.forms import ProjectForm
from accounts.models import Membership, Role
from accounts.refusals import Refused


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Somebody who only annotates goes to their desk; everyone else sees their projects."""
    held = list(Membership.objects.filter(user=request.user).select_related("project").order_by("project__name"))
    if held and all(membership.role == Role.ANNOTATOR for membership in held):
        return redirect("desk")
    return render(request, "accounts/home.html", {"memberships": held})


@require_http_methods(["GET", "POST"])
@login_required
def new_project(request: HttpRequest) -> HttpResponse:
    """A form that starts a project and leads to it, for those who may."""
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
