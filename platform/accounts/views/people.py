"""Pages of members, invitations, audit trail and project settings for leads, and the page behind an invitation link."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, audit, invitations, people, refusals, removal
from accounts.forms import InvitationForm, ProjectNameForm, RemovalForm, RoleForm, TrailForm
from accounts.inputs import whole_number
from accounts.invitations import InvitationClosed
from accounts.models import AuditEntry, Invitation, Membership, Project, Role
from accounts.refusals import Refused

LEAD = (Role.LEAD,)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def people_page(request: HttpRequest, project: str) -> HttpResponse:
    """Members and open invitations, and a form to invite somebody; the link is shown once."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    form = InvitationForm(request.POST or None, project=current_project)
    link = ""
    if form.is_valid():
        _invitation, secret = invitations.invite(project=current_project, created_by=request.user, **form.cleaned_data)
        link = request.build_absolute_uri(reverse("join", args=[secret]))
        form = InvitationForm(project=current_project)
    return _people(request, current_project, form, link)


def _people(request: HttpRequest, project: Project, form: InvitationForm, link: str) -> HttpResponse:
    members = Membership.objects.visible_to(request.user).filter(project=project).select_related("user")
    waiting = list(Invitation.objects.visible_to(request.user).filter(project=project).open())
    panels = invitations.panel_names(waiting)
    context = {
        "project": project,
        "members": members.order_by("user__email"),
        "invitations": [(invitation, panels.get(invitation.pk, "")) for invitation in waiting],
        "form": form,
        "link": link,
        "roles": Role.choices,
    }
    return render(request, "accounts/people.html", context)


@require_POST
@login_required
def change_role_view(request: HttpRequest, project: str, member: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    membership = get_object_or_404(Membership.objects.visible_to(request.user), project=current_project, pk=member)
    form = RoleForm(request.POST)
    if form.is_valid():
        _say(request, lambda: people.change_role(member=membership, role=form.cleaned_data["role"], actor=request.user))
    return redirect("people", current_project.slug)


@require_POST
@login_required
def remove_member_view(request: HttpRequest, project: str, member: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    membership = get_object_or_404(Membership.objects.visible_to(request.user), project=current_project, pk=member)
    _say(request, lambda: people.remove_member(member=membership, actor=request.user))
    return redirect("people", current_project.slug)


@require_POST
@login_required
def revoke_invitation_view(request: HttpRequest, project: str, invitation: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    visible = Invitation.objects.visible_to(request.user).filter(project=current_project)
    invitations.revoke_invitation(invitation=get_object_or_404(visible, pk=invitation), actor=request.user)
    return redirect("people", current_project.slug)


@require_safe
@login_required
def audit_page(request: HttpRequest, project: str) -> HttpResponse:
    """The newest entries of the project's audit trail that match the filters; `before` leads to older ones."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    entries = AuditEntry.objects.visible_to(request.user).filter(project=current_project)
    form = TrailForm(request.GET, choices=audit.trail_choices(entries))
    chosen = form.cleaned_data if form.is_valid() else {}
    page = audit.trail_page(entries, before=whole_number(request.GET.get("before")), **chosen)
    kept = urlencode({name: value for name, value in request.GET.items() if name in form.fields and value})
    context = {"project": current_project, "form": form, "entries": page.lines, "older": page.older, "kept": kept}
    return render(request, "accounts/audit.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def project_rules(request: HttpRequest, project: str) -> HttpResponse:
    """The rules of a project: archived or not, and whether members need two-factor authentication."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    verbs: dict[str, Callable[[], object]] = {
        "archive": lambda: people.archive(project=current_project, actor=request.user),
        "unarchive": lambda: people.unarchive(project=current_project, actor=request.user),
        "require": lambda: people.require_second_factor(project=current_project, required=True, actor=request.user),
        "release": lambda: people.require_second_factor(project=current_project, required=False, actor=request.user),
    }
    if request.method == "POST":
        if verb := verbs.get(request.POST.get("do", "")):
            _say(request, verb)
        return redirect("project_rules", current_project.slug)
    return _rules(request, current_project)


def _rules(request: HttpRequest, project: Project, status: int = 200, **forms: Form) -> HttpResponse:
    about = {"name": project.name, "description": project.description}
    context = {
        "project": project,
        "current_tab": "rules",
        "about": ProjectNameForm(initial=about, auto_id="about_%s"),
        "removal": RemovalForm(),
        "contents": removal.contained(project) if project.archived_at else [],
        **forms,
    }
    return render(request, "accounts/project_rules.html", context, status=status)


@require_POST
@login_required
def rename_project(request: HttpRequest, project: str) -> HttpResponse:
    """Change the name or the description; the address stays."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    form = ProjectNameForm(request.POST, auto_id="about_%s")
    if not form.is_valid():
        return _rules(request, current_project, 422, about=form)
    _say(request, lambda: people.describe_project(project=current_project, actor=request.user, **form.cleaned_data))
    return redirect("project_rules", current_project.slug)


@require_POST
@login_required
def remove_project_view(request: HttpRequest, project: str) -> HttpResponse:
    """Delete an archived project permanently, after its name was typed."""
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
    form = RemovalForm(request.POST)
    if form.is_valid():
        try:
            removal.remove_project(project=current_project, name=form.cleaned_data["name"], actor=request.user)
        except Refused as refused:
            form.add_error("name" if refused.fields else None, refused.sentence)
        else:
            messages.success(request, _("“%s” was removed.") % current_project)
            return redirect("home")
    return _rules(request, current_project, 422, removal=form)


@require_http_methods(["GET", "POST"])
@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """The page behind an invitation link: sign in or sign up, then accept."""
    try:
        invitation = invitations.find_invitation(secret)
    except InvitationClosed as closed:
        if request.user.is_authenticated and invitations.is_used_by(secret=secret, user=request.user):
            return redirect("home")
        return render(request, "accounts/join_closed.html", {"sentence": closed.sentence}, status=410)
    invitations.remember(request.session, secret)
    if request.method == "POST" and request.user.is_authenticated:
        _say(request, lambda: invitations.accept(secret=secret, user=request.user))
        return redirect("home")
    return render(request, "accounts/join.html", {"invitation": invitation, "page_url": request.path})


def _say(request: HttpRequest, verb: object) -> None:
    with refusals.refusals_as_messages(request):
        verb()  # type: ignore[operator]
        messages.success(request, _("Done."))
