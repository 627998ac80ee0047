"""The few ways from an edge to a project: what you may not see is not there (404), what you may not do is refused."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Q
from django.http import Http404
from django.utils.translation import gettext as _

from accounts.models import SIGHTED, Membership, Project, Role, User
from accounts.refusals import Refused

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


class SecondFactorNeeded(PermissionDenied):
    """The project asks for a second factor that this person has not set up."""


def has_second_factor(user: User) -> bool:
    """Whether somebody set up an authenticator app or a passkey; signing in then always asks for it."""
    return bool(Authenticator.objects.filter(user=user, type__in=FACTORS).exists())


def factor_met(user: User, *, project: str) -> Q:
    """Rows whose project (at this path of fields) asks for no second factor, or all if this person has one."""
    return Q(**{f"{project}__requires_second_factor": False}) | Q(
        Exists(Authenticator.objects.filter(user=user, type__in=FACTORS))
    )


def member_of(user: User, *, project: str) -> Q:
    """Rows whose project (at this path of fields) has this person as a member with the second factor it asks for."""
    return Q(**{f"{project}__memberships__user": user}) & factor_met(user, project=project)


def refuse_archived(project: Project) -> None:
    """An archived project takes nothing new."""
    if project.archived_at is not None:
        raise Refused(_("This project is archived: it can be read, not changed."), code="archived")


def membership(*, user: User, slug: str) -> Membership:
    """This person's role in the project at ``slug``; 404 for a stranger, as for a project that isn't there."""
    member = Membership.objects.select_related("project").filter(user=user, project__slug=slug).first()
    if member is None:
        raise Http404("No such project.")
    if member.project.requires_second_factor and not has_second_factor(user):
        raise SecondFactorNeeded(
            _("“%(project)s” requires two-factor authentication. Set up an authenticator app or a passkey first.")
            % {"project": member.project}
        )
    return member


def require(*, user: User, slug: str, roles: tuple[Role, ...] = SIGHTED) -> Project:
    """The project at ``slug`` if this person holds one of ``roles`` in it; 403 for another role, 404 for a stranger."""
    held = membership(user=user, slug=slug)
    if held.role not in roles:
        raise PermissionDenied(f"This needs the role {' or '.join(roles)}.")
    return held.project


def holds(*, user: User, project: Project, roles: tuple[Role, ...] = SIGHTED) -> bool:
    """Whether this person holds one of ``roles`` in ``project``."""
    return Membership.objects.filter(user=user, project=project, role__in=roles).exists()
