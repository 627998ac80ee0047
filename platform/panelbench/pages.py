"""The frame of every page (navigation, notices), and the error pages."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import defaults

from accounts import outages
from accounts.models import SIGHTED, Heartbeat, Membership, Project, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    label: str
    url: str
    icon: str
    current: bool = False
    group: str = ""


# (label, URL name, icon, who sees it, group); every URL takes the project's slug.
_PROJECT_LINKS = (
    (gettext_lazy("Study"), "numbers", "agreement", SIGHTED, ""),
    (gettext_lazy("Items and datasets"), "datasets", "dataset", SIGHTED, ""),
    (gettext_lazy("Rubric"), "rubrics", "rubric", SIGHTED, ""),
    (gettext_lazy("People"), "people", "people", (Role.LEAD,), ""),
    (gettext_lazy("People"), "panels", "people", (Role.RESEARCHER,), ""),
    (gettext_lazy("Judges"), "judges", "judge", SIGHTED, ""),
    (gettext_lazy("Export"), "export", "download", SIGHTED, ""),
    (gettext_lazy("Overview"), "project", "overview", SIGHTED, gettext_lazy("Manage")),
    (gettext_lazy("Campaigns"), "campaigns", "campaign", SIGHTED, gettext_lazy("Manage")),
    (gettext_lazy("Generation"), "generation", "dialogue", SIGHTED, gettext_lazy("Manage")),
    (gettext_lazy("Background work"), "jobs", "clock", SIGHTED, gettext_lazy("Manage")),
    (gettext_lazy("Audit trail"), "audit", "audit", (Role.LEAD,), gettext_lazy("Manage")),
    (gettext_lazy("Settings"), "settings", "settings", (Role.LEAD,), gettext_lazy("Manage")),
)

# Pages that have no link of their own are under another one.
_BELOW = {
    "datasets": ("imports", "mappings", "verdict-imports", "study-imports"),
    "rubrics": ("taxonomies",),
    "people": ("panels",),
    "judges": ("runs", "designs", "spending"),
    "generation": ("prompts",),
}

_SILENT = {
    Heartbeat.WORKER: gettext_lazy(
        "No worker is running. Judge runs and figures wait until “panelbench up” starts one."
    ),
    Heartbeat.BEAT: gettext_lazy(
        "The scheduler is not running. Interrupted work does not continue until “panelbench up” starts it."
    ),
}


def shell(request: HttpRequest) -> dict[str, object]:
    """The template context of the frame: `shell` (project, role, is_lead, nav, silent, notices, version), and
    `interface_languages` (code, its own name) and `reviewed_languages`."""
    placeholder = getattr(request, "csrf_placeholder", "")  # of a page that is kept (analytics.page_cache)
    return {
        "shell": SimpleLazyObject(lambda: _shell(request)),
        "interface_languages": settings.LANGUAGES,
        "reviewed_languages": settings.REVIEWED_LANGUAGES,
        "demo": SimpleLazyObject(_demo),
        **({"csrf_token": placeholder} if placeholder else {}),
    }


def _demo() -> dict[str, object]:
    """The demo's accounts that the sign-in page offers, and their password."""
    if not settings.DEMO:
        return {}
    from panelbench.demo import loading

    return {"people": loading.logins(), "password": loading.PASSWORD}


def _shell(request: HttpRequest) -> dict[str, object]:
    held = _membership(request)
    is_operator = request.resolver_match is not None and request.resolver_match.url_name == "all_jobs"
    silent = Heartbeat.objects.silent() if is_operator or (held and held.role in SIGHTED) else []
    return {
        "project": held.project if held else None,
        "role": held.get_role_display() if held else "",
        "is_lead": held is not None and held.role == Role.LEAD,
        "nav": _links(request, held),
        "silent": silent,
        "notices": [_SILENT[kind] for kind in silent],
        "version": settings.VERSION,
    }


def _membership(request: HttpRequest) -> Membership | None:
    slug = request.resolver_match.kwargs.get("project") if request.resolver_match else None
    if not slug or not request.user.is_authenticated:
        return None
    return Membership.objects.select_related("project").filter(user=request.user, project__slug=slug).first()


def _links(request: HttpRequest, held: Membership | None) -> list[Link]:
    if held is None:
        return []
    return [
        Link(
            label=str(label),
            url=(url := _url(name, held.project)),
            icon=icon,
            group=str(group),
            current=_is_current(request.path, name, url, root=_url("project", held.project)),
        )
        for label, name, icon, roles, group in _PROJECT_LINKS
        if held.role in roles
    ]


def _is_current(path: str, name: str, url: str, *, root: str) -> bool:
    if name == "project":
        return path == url
    return path.startswith((url, *(f"{root}{part}/" for part in _BELOW.get(name, ()))))


def _url(name: str, project: Project) -> str:
    return reverse(name, args=[project.slug])


# --- errors ----------------------------------------------------------------------------------------------------------
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, as JSON for the API and as a page for others."""
    if request.path.startswith("/api/"):
        return JsonResponse({"code": "not_found", "detail": _("There is nothing here."), "fields": {}}, status=404)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """500; or 503 or 507 with the reason, if something that the server needs does not work (`accounts.outages`)."""
    error = sys.exc_info()[1]
    outage = outages.outage_of(error)
    return defaults.server_error(request) if outage is None else outages.unavailable(request, outage, error)
