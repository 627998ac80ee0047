"""The few ways from an edge to a project: what you may not see is not there (404), what you may not do is refused."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404

from accounts.models import SIGHTED, Membership, Project, Role, User


def membership(*, user: User, slug: str) -> Membership:
    """This person's role in the project at ``slug``; 404 for a stranger, as for a project that isn't there."""
    found = Membership.objects.select_related("project").filter(user=user, project__slug=slug).first()
    if found is None:
        raise Http404("No such project.")
    return found


def require(*, user: User, slug: str, roles: tuple[Role, ...] = SIGHTED) -> Project:
    """The project at ``slug`` if this person holds one of ``roles`` in it; 403 for another role, 404 for a stranger."""
    held = membership(user=user, slug=slug)
    if held.role not in roles:
        raise PermissionDenied(f"This needs the role {' or '.join(roles)}.")
    return held.project


def holds(*, user: User, project: Project, roles: tuple[Role, ...] = SIGHTED) -> bool:
    """Whether this person holds one of ``roles`` in ``project``."""
    return Membership.objects.filter(user=user, project=project, role__in=roles).exists()
