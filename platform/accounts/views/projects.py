"""Home, a new project, and a project's rules, name, deletion and restoring."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, deletion, people
from accounts.forms import DeletionForm, ProjectForm, ProjectNameForm
from accounts.models import Membership, Project, ProjectDeletion, Role, SuspendedMembership
from accounts.refusals import Refused, refusals_as_messages


@require_http_methods(["GET", "POST"])
@login_required
def project_rules(request: HttpRequest, project: str) -> HttpResponse:
    """The rules of a project: archived or not, and whether members need two-factor authentication."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    verbs: dict[str, Callable[[], object]] = {
        "archive": lambda: people.archive(project=current_project, actor=request.user),
        "unarchive": lambda: people.unarchive(project=current_project, actor=request.user),
        "require": lambda: people.require_second_factor(project=current_project, required=True, actor=request.user),
        "release": lambda: people.require_second_factor(project=current_project, required=False, actor=request.user),
    }
    if request.method == "POST":
        if verb := verbs.get(request.POST.get("do", "")):
            with refusals_as_messages(request, done=_("Done.")):
                verb()
        return redirect("project_rules", current_project.slug)
    return _rules(request, current_project)


def _rules(request: HttpRequest, project: Project, status: int = 200, **forms: Form) -> HttpResponse:
    about = {"name": project.name, "description": project.description}
    context = {
        "project": project,
        "current_tab": "rules",
        "about": ProjectNameForm(initial=about, auto_id="about_%s"),
        **forms,
    }
    return render(request, "accounts/project_rules.html", context, status=status)


@require_POST
@login_required
def rename_project(request: HttpRequest, project: str) -> HttpResponse:
    """Change the name or the description; the address stays."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form = ProjectNameForm(request.POST, auto_id="about_%s")
    if not form.is_valid():
        return _rules(request, current_project, 422, about=form)
    with refusals_as_messages(request, done=_("Done.")):
        people.describe_project(project=current_project, actor=request.user, **form.cleaned_data)
    return redirect("project_rules", current_project.slug)


@require_http_methods(["GET", "POST"])
@login_required
def delete_project_view(request: HttpRequest, project: str) -> HttpResponse:
    """What deleting the project deletes, and the form that does it once its name was typed."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form = DeletionForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            deletion.delete_project(project=current_project, name=form.cleaned_data["name"], actor=request.user)
            return redirect("project", current_project.slug)
        except Refused as refused:
            form.add_error("name", refused.sentence)
    contents = deletion.contained(current_project)
    context = {
        "project": current_project,
        "current_tab": "rules",
        "form": form,
        "contents": contents,
        "exported_at": deletion.bundle_exported_at(current_project),
        "rated_at": max((content.newest for content in contents if content.newest), default=None),
        "days": ProjectDeletion.GRACE.days,
    }
    return render(request, "accounts/project_delete.html", context, status=422 if form.errors else 200)


@require_POST
@login_required
def restore_project_view(request: HttpRequest, project: str) -> HttpResponse:
    """Restore a deleted project, for those who led it; 404 for anybody else."""
    own = get_object_or_404(deletion.deleted_projects(request.user), project__slug=project)
    done = _("The project is restored. Judge runs stay paused until you resume them.")
    with refusals_as_messages(request, done=done):
        deletion.restore_project(deletion=own, actor=request.user)
    return redirect("project", own.project.slug)


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The user's projects; a user who is only an annotator is redirected to their duties, unless they led a deleted
    project: they find it here until it is deleted for good."""
    every = Membership.objects.filter(user=request.user).select_related("project").order_by("project__name")
    held = [membership for membership in every if membership.project.archived_at is None]
    archived = [membership for membership in every if membership.project.archived_at is not None]
    if any(membership.project.requires_second_factor for membership in held) and not access.has_second_factor(
        request.user
    ):
        messages.warning(request, _("One of your projects requires two-factor authentication. Set it up here first."))
        return redirect("mfa_index")
    deleted = deletion.deleted_projects(request.user)
    suspended = SuspendedMembership.objects.filter(user=request.user).values_list("role", flat=True)
    roles = {membership.role for membership in held} or set(suspended)
    if roles == {Role.ANNOTATOR} and not deleted.exists():
        return redirect("desk")
    whom = [] if people.may_found(request.user) else people.ask_for_founding(request.user)
    context = {"memberships": held, "archived": archived, "deleted": deleted, "whom": whom}
    return render(request, "accounts/home.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_project(request: HttpRequest) -> HttpResponse:
    """A form to create a project, for users who may."""
    if not people.may_found(request.user):
        whom = {"sentence": people.MAY_NOT_FOUND, "whom": people.ask_for_founding(request.user)}
        return render(request, "accounts/project_forbidden.html", whom, status=403)
    form = ProjectForm(request.POST or None)
    if form.is_valid():
        try:
            project = people.create_project(founder=request.user, **form.cleaned_data)
            return redirect("project", project.slug)
        except Refused as refused:
            form.add_error("slug", refused.sentence)
    return render(request, "accounts/project_new.html", {"form": form})
