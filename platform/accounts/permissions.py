"""What a token may do: its scope, on top of its owner's roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission

from accounts import access
from accounts.models import SIGHTED, Scope, Token

if TYPE_CHECKING:  # rest_framework.views imports this module, by name, while it is being imported itself
    from rest_framework.request import Request
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """A read token only reads; a token bound to one project reaches no other, and founds none."""

    message = "This token's scope does not allow that."

    def has_permission(self, request: Request, view: APIView) -> bool:
        token = request.auth
        if not isinstance(token, Token):
            return True
        reads, slug = request.method in SAFE_METHODS, view.kwargs.get("project")
        if token.project is not None and (slug != token.project.slug if slug else not reads):
            return False
        return reads or token.scope == Scope.WRITE


class InProject(BasePermission):
    """Below a project only its leads and researchers, unless the view's `roles` says otherwise: for all methods, or by
    method (``{"POST": (Role.LEAD,)}``, SIGHTED for those not named). Held before a body is read.

    An archived project is only read, but for views that say `works_archived`.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        slug = view.kwargs.get("project")
        if slug is None:
            return True
        roles = getattr(view, "roles", SIGHTED)
        if isinstance(roles, dict):
            roles = roles.get(request.method, SIGHTED)
        # IsAuthenticated came first, so this is a user.
        project = access.require(user=request.user, slug=slug, roles=roles)  # type: ignore[arg-type]
        if request.method not in SAFE_METHODS and not getattr(view, "works_archived", False):
            access.refuse_archived(project)
        return True
