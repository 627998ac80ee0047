"""Access to a project, for pages and the API: 404 for a project that the user is not a member of, 403 for an action
that their role does not allow."""

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
    """The project requires two-factor authentication, and the user has not set it up."""


def has_second_factor(user: User) -> bool:
    """Whether the user has an authenticator app or a passkey. Signing in then always requires it."""
    return bool(Authenticator.objects.filter(user=user, type__in=FACTORS).exists())


def factor_met(user: User, *, project: str) -> Q:
    """A filter: rows whose project (at this path of fields) does not require two-factor authentication, or all rows if
    the user has set it up."""
    return Q(**{f"{project}__requires_second_factor": False}) | Q(
        Exists(Authenticator.objects.filter(user=user, type__in=FACTORS))
    )


def member_of(user: User, *, project: str) -> Q:
    """A filter: rows whose project (at this path of fields) has the user as a member, with two-factor authentication if
    the project requires it."""
    return Q(**{f"{project}__memberships__user": user}) & factor_met(user, project=project)


def refuse_archived(project: Project) -> None:
    """Raise ``Refused`` if the project is archived, because it is then read-only."""
    if project.archived_at is not None:
        raise Refused(_("This project is archived: it can be read, not changed."), code="archived")


def membership(*, user: User, slug: str) -> Membership:
    """The user's membership in the project at ``slug``. 404 if there is none, as if there were no such project."""
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
    """The project at ``slug`` if the user has one of ``roles`` in it; 403 for another role, 404 for no membership."""
    held = membership(user=user, slug=slug)
    if held.role not in roles:
        raise PermissionDenied(f"This needs the role {' or '.join(roles)}.")
    return held.project


def require_sighted_somewhere(user: User) -> None:
    """403 for whom no project has made a lead or a researcher, unless they operate the instance."""
    if not (user.is_superuser or Membership.objects.filter(user=user, role__in=SIGHTED).exists()):
        raise PermissionDenied("This is for leads and researchers.")


def holds(*, user: User, project: Project, roles: tuple[Role, ...] = SIGHTED) -> bool:
    """Whether the user has one of ``roles`` in ``project``."""
    return Membership.objects.filter(user=user, project=project, role__in=roles).exists()
