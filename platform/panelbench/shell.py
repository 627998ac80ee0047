"""What every page's frame needs: navigation, who is reading, what is not running. Lazy: the desk asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, Membership, Project, Role
from panelbench import heartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    label: str
    url: str
    icon: str
    current: bool = False
    group: str = ""


# (label, URL name, icon, who sees it, group); every URL takes the project's slug.
_PROJECT_LINKS = (
    (_("Overview"), "project", "overview", SIGHTED, ""),
    (_("Datasets"), "datasets", "dataset", SIGHTED, ""),
    (_("Rubrics"), "rubrics", "rubric", SIGHTED, ""),
    (_("Campaigns"), "campaigns", "campaign", SIGHTED, ""),
    (_("Judges"), "judges", "judge", SIGHTED, ""),
    (_("Numbers"), "numbers", "agreement", SIGHTED, ""),
    (_("Export"), "export", "download", SIGHTED, ""),
    (_("Panels"), "panels", "panel", SIGHTED, _("Manage")),
    (_("People"), "people", "people", (Role.LEAD,), _("Manage")),
    (_("Audit trail"), "audit", "audit", (Role.LEAD,), _("Manage")),
    (_("Settings"), "settings", "settings", (Role.LEAD,), _("Manage")),
)

# Pages that have no link of their own are under another one.
_BELOW = {"datasets": ("imports", "mappings", "verdict-imports", "study-imports"), "judges": ("runs",)}

_SILENT = {
    heartbeat.WORKER: _("No worker is running. Judge runs and figures wait until “panelbench up” starts one."),
    heartbeat.BEAT: _(
        "The scheduler is not running. Interrupted work does not continue until “panelbench up” starts it."
    ),
}


def shell(request: HttpRequest) -> dict[str, object]:
    """The frame's `shell` (project, role, nav, silent, notices, version), and `unreviewed_languages` for its menu."""
    return {
        "shell": SimpleLazyObject(lambda: _shell(request)),
        "unreviewed_languages": settings.UNREVIEWED_LANGUAGES,
        "demo": SimpleLazyObject(_demo),
    }


def _demo() -> dict[str, object]:
    """Whom the sign-in page of a demo offers to sign in as, and their password."""
    if not settings.DEMO:
        return {}
    from panelbench.demo import loading

    return {"people": loading.logins(), "password": loading.PASSWORD}


def _shell(request: HttpRequest) -> dict[str, object]:
    held = _membership(request)
    silent = heartbeat.silent() if held and held.role in SIGHTED else []
    return {
        "project": held.project if held else None,
        "role": held.get_role_display() if held else "",
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
