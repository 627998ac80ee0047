"""Members and invitations of a project, and the page behind an invitation's link."""

from __future__ import annotations

import csv
import io
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import access, invitation_lists, mail, people
from accounts.forms import (
    InvitationForm,
    InvitationListForm,
    RoleForm,
)
from accounts.models import (
    Invitation,
    Membership,
    Project,
    Role,
)
from accounts.people import InvitationClosed
from accounts.refusals import Refused, refusals_as_messages


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def people_page(request: HttpRequest, project: str) -> HttpResponse:
    """Members and open invitations, and a form to invite somebody; the link is shown once."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form = InvitationForm(request.POST or None, project=current_project)
    link = ""
    if form.is_valid():
        chosen = dict(form.cleaned_data)
        panels = [panel] if (panel := chosen.pop("panel")) else []
        _invitation, secret = people.invite(project=current_project, created_by=request.user, panels=panels, **chosen)
        link = request.build_absolute_uri(reverse("join", args=[secret]))
        form = InvitationForm(project=current_project)
    return _people(request, current_project, form, link)


@require_POST
@never_cache
@login_required
def invite_list_view(request: HttpRequest, project: str) -> HttpResponse:
    """Invite everybody in a pasted list. The page shows what came of each row, with the links, once."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form, rows = InvitationListForm(request.POST, project=current_project), []
    if form.is_valid():
        chosen = dict(form.cleaned_data)
        try:
            listed = invitation_lists.read_list(chosen.pop("addresses"), form.offered)
            rows = invitation_lists.invite_many(
                project=current_project, listed=listed, created_by=request.user, **chosen
            )
        except Refused as refused:
            form.add_error("addresses", refused.sentence)
    links = [(row, request.build_absolute_uri(row.link) if row.link else "") for row in rows]
    shown = {
        "list_form": InvitationListForm(project=current_project) if rows else form,
        "rows": links,
        "links_csv": _links_csv([(row.email, address) for row, address in links if address]),
        "is_mailed": bool(rows) and bool(form.cleaned_data.get("send")) and mail.is_sent(),
    }
    blank = InvitationForm(project=current_project)
    return _people(request, current_project, blank, "", status=422 if form.errors else 200, **shown)


def _links_csv(links: list[tuple[str, str]]) -> str:
    """Addresses and links as CSV; no spreadsheet takes an address for a formula."""
    written = io.StringIO()
    safe = [(f"'{email}" if email[:1] in "=+-@" else email, link) for email, link in links]
    csv.writer(written, lineterminator="\n").writerows([("email", "link"), *safe])
    return written.getvalue()


def _people(
    request: HttpRequest, project: Project, form: InvitationForm, link: str, status: int = 200, **shown: Any
) -> HttpResponse:
    members = Membership.objects.visible_to(request.user).filter(project=project).select_related("user")
    waiting = list(Invitation.objects.visible_to(request.user).filter(project=project).open())
    panels = people.panel_names(waiting)
    context = {
        "project": project,
        "members": members.order_by("user__email"),
        "invitations": [(invitation, panels.get(invitation.pk, "")) for invitation in waiting],
        "form": form,
        "link": link,
        "roles": Role.choices,
        "list_form": InvitationListForm(project=project),
        "sends_mail": mail.is_sent(),
        **shown,
    }
    return render(request, "accounts/people.html", context, status=status)


@require_POST
@login_required
def change_role_view(request: HttpRequest, project: str, member: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    membership = get_object_or_404(Membership.objects.visible_to(request.user), project=current_project, pk=member)
    form = RoleForm(request.POST)
    if form.is_valid():
        with refusals_as_messages(request, done=_("Done.")):
            people.change_role(member=membership, role=form.cleaned_data["role"], actor=request.user)
    return redirect("people", current_project.slug)


@require_POST
@login_required
def remove_member_view(request: HttpRequest, project: str, member: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    membership = get_object_or_404(Membership.objects.visible_to(request.user), project=current_project, pk=member)
    with refusals_as_messages(request, done=_("Done.")):
        people.remove_member(member=membership, actor=request.user)
    return redirect("people", current_project.slug)


@require_POST
@login_required
def revoke_invitation_view(request: HttpRequest, project: str, invitation: int) -> HttpResponse:
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    visible = Invitation.objects.visible_to(request.user).filter(project=current_project)
    people.revoke_invitation(invitation=get_object_or_404(visible, pk=invitation), actor=request.user)
    return redirect("people", current_project.slug)


@require_http_methods(["GET", "POST"])
@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """The page behind an invitation link: sign in or sign up, then accept."""
    try:
        invitation = people.find_invitation(secret)
    except InvitationClosed as closed:
        if request.user.is_authenticated and people.is_used_by(secret=secret, user=request.user):
            return redirect("home")
        return render(request, "accounts/join_closed.html", {"sentence": closed.sentence}, status=410)
    people.remember(request.session, secret)
    if request.method == "POST" and request.user.is_authenticated:
        with refusals_as_messages(request, done=_("Done.")):
            people.accept(secret=secret, user=request.user)
        return redirect("home")
    return render(request, "accounts/join.html", {"invitation": invitation, "page_url": request.path})
