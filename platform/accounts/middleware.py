"""Middleware of every request: client address, session limits, language, rules of archived projects."""

import time
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.cache import patch_vary_headers

from accounts import access, addresses, deletion
from accounts.models import Membership, Project, Role
from accounts.refusals import refusals_as_messages


class ClientAddressMiddleware:
    """Sets REMOTE_ADDR to the client's address, behind any proxies, and adds it to every log line.

    `addresses.REQUESTED_SITE` is set during the request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        addresses.settle_client_address(request.META, settings.TRUSTED_PROXIES)
        site = addresses.REQUESTED_SITE.set(_requested_site(request))
        try:
            with structlog.contextvars.bound_contextvars(client=request.META.get("REMOTE_ADDR", "")):
                return self.get_response(request)
        finally:
            addresses.REQUESTED_SITE.reset(site)


def _requested_site(request: HttpRequest) -> str:
    """Scheme and host of the request; "" if its host is not one of ALLOWED_HOSTS."""
    try:
        return f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return ""


CHANGED, CHANGED_SECONDS = "changed", 5
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class PrivateAnswersMiddleware:
    """Forbids browsers and proxies to store responses to a signed-in user, unless the view sets its own header.

    A browser that changed something says so in a cookie for some seconds, so that no kept page hides the change.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if "HTTP_AUTHORIZATION" in request.META or request.user.is_authenticated:
            response.headers.setdefault("Cache-Control", "private, no-store")
        if request.method not in SAFE_METHODS and "HTTP_AUTHORIZATION" not in request.META:
            response.set_cookie(
                CHANGED,
                "1",
                max_age=CHANGED_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response


# Pages for leads, researchers and reviewers whose address does not contain a project.
LEADS_PAGES = {"project_new", "shared", "shared_rubric", "shared_chart", "shared_table"}
# Pages of a project that annotators see too: those who write and review prompts.
WRITERS_PAGES = {"prompt_collections", "prompt_collection", "prompt_write", "prompt", "prompt_review", "prompt_decide"}


class InterfaceLanguageMiddleware:
    """Selects the interface language: the signed-in user's `ui_language`, else Accept-Language.

    Pages of leads and researchers are in English unless the language's catalogue is complete, so that no page mixes two
    languages and two directions. Those that annotators see too are in an annotator's own language.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        language = _own_language(request) or translation.get_language_from_request(request)
        with translation.override(language):
            request.LANGUAGE_CODE = request.chosen_language = language  # type: ignore[attr-defined]
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response

    def process_view(
        self, request: HttpRequest, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        name = str(request.resolver_match.url_name) if request.resolver_match else ""
        is_for_leads = name in LEADS_PAGES or ("project" in kwargs and not name.startswith("api_"))
        if (
            is_for_leads
            and request.LANGUAGE_CODE not in settings.COMPLETE_LANGUAGES
            and not (name in WRITERS_PAGES and _is_annotator(request, kwargs["project"]))
        ):
            request.LANGUAGE_CODE = settings.LANGUAGE_CODE
            translation.activate(settings.LANGUAGE_CODE)  # until __call__ ends its override
        return None


def _is_annotator(request: HttpRequest, project: str) -> bool:
    """Whether the user is a member of this project, but neither a lead nor a researcher."""
    own = Membership.objects.filter(project__slug=project, role=Role.ANNOTATOR)
    return request.user.is_authenticated and own.filter(user=request.user).exists()


def _own_language(request: HttpRequest) -> str:
    chosen = request.user.ui_language if request.user.is_authenticated else ""
    return chosen if translation.check_for_language(chosen or "") else ""


# What is still possible in an archived project: restore it, remove people and links, export data.
WORK_ARCHIVED = {
    *("project_rules", "project_delete", "member_role", "member_remove", "invitation_revoke", "share_revoke"),
    *("webhook_turn", "webhook_remove", "transfers", "transfer_remove"),
}


class ProjectRulesMiddleware:
    """Refuses changes on pages of an archived project, and redirects users who lack the two-factor authentication that
    a project requires. Who led a deleted project is told so at all its addresses; for anybody else they do not exist.

    `accounts.api_requests` has the same rules for the API.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        matched, slug = request.resolver_match, kwargs.get("project")
        if slug is None or matched is None or request.method in SAFE_METHODS or not request.user.is_authenticated:
            return None
        if matched.url_name in WORK_ARCHIVED or str(matched.url_name).startswith("api_"):
            return None
        project = Project.objects.visible_to(request.user).filter(slug=slug, archived_at__isnull=False).first()
        if project is None:
            return None
        with refusals_as_messages(request):
            access.refuse_archived(project)
        return redirect("home")

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        matched = request.resolver_match
        if isinstance(error, Http404) and matched is not None and request.user.is_authenticated:
            is_of_project = "project" in matched.kwargs and not str(matched.url_name).startswith("api_")
            own = deletion.deleted_projects(request.user) if is_of_project else None
            if own is not None and (deleted := own.filter(project__slug=matched.kwargs["project"]).first()):
                return render(request, "accounts/project_deleted.html", {"deletion": deleted}, status=410)
        if not isinstance(error, access.SecondFactorNeeded):
            return None
        messages.warning(request, str(error))
        return redirect("mfa_index")


STARTED, SEEN = "signed_in_at", "seen_at"
SEEN_GRAIN = 300  # seconds; the time of last use is written at most this often


class SessionLimitsMiddleware:
    """Signs out after SESSION_IDLE_HOURS without a request, and SESSION_HOURS after signing in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        session, now = request.session, time.time()
        if SESSION_KEY in session:
            started, seen = session.get(STARTED), session.get(SEEN)
            if started is None or seen is None:
                start_session_limits(request=request)
            elif now - started > settings.SESSION_HOURS * 3600 or now - seen > settings.SESSION_IDLE_HOURS * 3600:
                logout(request)
            elif now - seen > SEEN_GRAIN:
                session[SEEN] = now
        return self.get_response(request)


def start_session_limits(*, request: HttpRequest, **signal: Any) -> None:
    """Start both limits at sign-in."""
    request.session[STARTED] = request.session[SEEN] = time.time()
