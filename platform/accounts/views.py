"""The pages of the accounts app: members, invitations, audit trail and project settings; home; the user's own account;
background work; webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import check_for_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, addresses, audit, jobs, people, refusals, removal, tokens, webhooks
from accounts.forms import (
    EraseForm,
    InvitationForm,
    ProfileForm,
    ProjectForm,
    ProjectNameForm,
    RemovalForm,
    RoleForm,
    SelfForm,
    TokenForm,
    TrailForm,
)
from accounts.inputs import whole_number
from accounts.models import (
    AuditEntry,
    Delivery,
    Invitation,
    Job,
    JobQuerySet,
    Membership,
    Profile,
    Project,
    Role,
    Token,
    User,
    Webhook,
)
from accounts.people import InvitationClosed
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
        _invitation, secret = people.invite(project=current_project, created_by=request.user, **form.cleaned_data)
        link = request.build_absolute_uri(reverse("join", args=[secret]))
        form = InvitationForm(project=current_project)
    return _people(request, current_project, form, link)


def _people(request: HttpRequest, project: Project, form: InvitationForm, link: str) -> HttpResponse:
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
    people.revoke_invitation(invitation=get_object_or_404(visible, pk=invitation), actor=request.user)
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
        invitation = people.find_invitation(secret)
    except InvitationClosed as closed:
        if request.user.is_authenticated and people.is_used_by(secret=secret, user=request.user):
            return redirect("home")
        return render(request, "accounts/join_closed.html", {"sentence": closed.sentence}, status=410)
    people.remember(request.session, secret)
    if request.method == "POST" and request.user.is_authenticated:
        _say(request, lambda: people.accept(secret=secret, user=request.user))
        return redirect("home")
    return render(request, "accounts/join.html", {"invitation": invitation, "page_url": request.path})


def _say(request: HttpRequest, verb: object) -> None:
    with refusals.refusals_as_messages(request):
        verb()  # type: ignore[operator]
        messages.success(request, _("Done."))


# --- home, and a new project -----------------------------------------------------------------------------------------
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


# --- the user's own pages: languages, profile with consent, API tokens, erasing the account --------------------------
A_YEAR = 31_536_000


@require_http_methods(["GET", "POST"])
@login_required
def me(request: HttpRequest) -> HttpResponse:
    form = SelfForm(request.POST or None, initial=_self(request.user))
    if form.is_valid():
        form.save(request.user)
        messages.success(request, _("Saved."))
        return redirect("me")
    return _page(request, form=form, profile_form=ProfileForm(initial=_profile_facts(request.user)))


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """Change the interface language: in the account, else in a cookie."""
    language = request.POST.get("language", "")
    following = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(following, allowed_hosts={request.get_host()})
    response = redirect(following if safe else "/")
    if check_for_language(language) and language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=A_YEAR,
            samesite="Lax",
            secure=settings.LANGUAGE_COOKIE_SECURE,
        )
        if request.user.is_authenticated:
            User.objects.filter(pk=request.user.pk).update(ui_language=language)
    return response


@require_POST
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    form = ProfileForm(request.POST)
    if form.is_valid():
        people.describe_self(user=request.user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("me")
    return _page(request, form=SelfForm(initial=_self(request.user)), profile_form=form, status=422)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def tokens_page(request: HttpRequest) -> HttpResponse:
    """The user's tokens, and a form to create one; its secret is shown once."""
    form = TokenForm(request.POST or None, user=request.user)
    secret = ""
    if form.is_valid():
        _token, secret = tokens.issue(user=request.user, **form.cleaned_data)
        _mail_about_token(request.user)
        form = TokenForm(user=request.user)
    live = Token.objects.visible_to(request.user).live().select_related("project")
    return render(request, "accounts/tokens.html", {"form": form, "secret": secret, "tokens": live})


@require_POST
@login_required
def revoke_token_view(request: HttpRequest, token: int) -> HttpResponse:
    own_token = get_object_or_404(Token.objects.visible_to(request.user), pk=token)
    tokens.revoke_token(token=own_token)
    return redirect("tokens")


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def erase(request: HttpRequest) -> HttpResponse:
    """Erase the user's own account, after they typed their address and password."""
    form = EraseForm(request.POST or None, user=request.user)
    if form.is_valid():
        try:
            removal.erase_user(user=request.user, actor=request.user)
        except Refused as refused:
            form.add_error(None, refused.sentence)
        else:
            logout(request)
            messages.success(request, _("Your account was erased."))
            return redirect("account_login")
    return render(request, "accounts/erase.html", {"form": form}, status=422 if form.errors else 200)


def _page(request: HttpRequest, *, form: SelfForm, profile_form: ProfileForm, status: int = 200) -> HttpResponse:
    shown = {"form": form, "profile_form": profile_form, "activity": audit.recent_activity(user=request.user)}
    return render(request, "accounts/me.html", shown, status=status)


def _mail_about_token(user: User) -> None:
    get_adapter().send_mail("accounts/email/token_issued", user.email, {"user": user})


def _self(user: User) -> dict[str, object]:
    return {"name": user.name, "languages": user.languages, "ui_language": user.ui_language}


def _profile_facts(user: User) -> dict[str, object]:
    profile = Profile.objects.filter(user=user).first() or Profile()
    return {
        "grew_up_with": profile.grew_up_with,
        "education": profile.education,
        "experience": profile.experience,
        "dialect": profile.dialect,
        "age_band": profile.age_band,
        "consent": profile.consented_at is not None,
    }


# --- background work in a project, or for staff in all projects ------------------------------------------------------
MOST = 100


def _listed(request: HttpRequest, visible_jobs: JobQuerySet) -> dict[str, Any]:
    shown = jobs.list_jobs(visible_jobs.current().select_related("project", "owner")[:MOST], user=request.user)
    is_open = [listed_job for listed_job in shown if listed_job.job.is_open]
    return {"open_jobs": is_open, "stopped_jobs": [listed_job for listed_job in shown if not listed_job.job.is_open]}


def _jobs_of(request: HttpRequest, project: str) -> tuple[Project, JobQuerySet]:
    chosen_project = access.require(user=request.user, slug=project)
    return chosen_project, Job.objects.visible_to(request.user).filter(project=chosen_project)


@never_cache  # the page and its list, which reloads itself, have the same address
@require_safe
@login_required
def jobs_page(request: HttpRequest, project: str) -> HttpResponse:
    """Jobs that wait, run, or failed lately in a project. The list reloads itself while a job is open."""
    chosen_project, visible_jobs = _jobs_of(request, project)
    template = "accounts/_jobs.html" if "HX-Request" in request.headers else "accounts/jobs.html"
    context = {"title": _("Background work"), "project": chosen_project, "list_url": request.path}
    return render(request, template, {**context, **_listed(request, visible_jobs)})


@never_cache
@require_safe
@login_required
def all_jobs(request: HttpRequest) -> HttpResponse:
    """The same for all projects, for staff."""
    if not request.user.is_staff:
        raise PermissionDenied("This is for staff.")
    template = "accounts/_jobs.html" if "HX-Request" in request.headers else "accounts/jobs.html"
    context = {"title": _("Background work"), "list_url": request.path}
    return render(request, template, {**context, **_listed(request, Job.objects.all())})


@require_POST
@login_required
def cancel_any_job(request: HttpRequest, job: int) -> HttpResponse:
    """Stop a job of any project, by the operator of the instance."""
    if not request.user.is_staff:
        raise PermissionDenied("This is for staff.")
    chosen = get_object_or_404(Job, pk=job)
    with refusals.refusals_as_messages(request):
        jobs.cancel(job=chosen, actor=request.user)
        messages.success(request, _("Cancelled."))
    return redirect("all_jobs")


@require_POST
@login_required
def cancel_job(request: HttpRequest, project: str, job: int) -> HttpResponse:
    """Cancel a job: the user's own, or as a lead any of the project."""
    chosen_project, visible_jobs = _jobs_of(request, project)
    chosen = get_object_or_404(visible_jobs, pk=job)
    with refusals.refusals_as_messages(request):
        jobs.cancel(job=chosen, actor=request.user)
        messages.success(request, _("Cancelled."))
    return redirect("jobs", chosen_project.slug)


# --- settings: webhooks, for leads -----------------------------------------------------------------------------------
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
    return redirect("shares", access.require(user=request.user, slug=project, roles=LEAD).slug)


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
    _sent(request, lambda: webhooks.test(webhook=current_webhook, actor=request.user))
    return redirect("webhook", current_project.slug, current_webhook.pk)


@require_POST
@login_required
def send_again_view(request: HttpRequest, project: str, webhook: int, delivery: int) -> HttpResponse:
    current_project, current_webhook = _webhook(request, project, webhook)
    chosen = get_object_or_404(current_webhook.deliveries.select_related("webhook__project"), pk=delivery)
    _sent(request, lambda: webhooks.send_again(delivery=chosen, actor=request.user))
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
    current_project = access.require(user=request.user, slug=project, roles=LEAD)
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


def _sent(request: HttpRequest, verb: Any) -> None:
    with refusals.refusals_as_messages(request):
        verb()
        messages.success(request, _("It is being sent. Reload this page to see the result."))
