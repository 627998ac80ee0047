"""Erasing a person: their row is blanked and kept, what they wrote goes, their ratings stay under a pseudonym."""

from __future__ import annotations

from collections.abc import Callable

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Invitation, Membership, Profile, Project, Role, Token, User
from accounts.refusals import Refused

# What the apps above keep in somebody's own words; each adds its function when it is loaded.
redactions: list[Callable[[User], None]] = []


def led_alone(user: User) -> list[Project]:
    """The projects that nobody else leads."""
    others = Membership.objects.filter(role=Role.LEAD).exclude(user=user).values("project")
    led = Project.objects.filter(memberships__user=user, memberships__role=Role.LEAD)
    return list(led.exclude(pk__in=others).order_by("slug"))


def erase(*, user: User, actor: User | None, successor: User | None = None) -> None:
    """Blank a person for good, in one transaction. `successor` becomes lead of what they led alone; without one that
    is refused.
    """
    with transaction.atomic():
        found = User.objects.select_for_update().filter(pk=user.pk, erased_at=None).first()
        if found is None:
            raise Refused(_("This account was erased before."))
        _hand_over(found, successor, actor)
        Membership.objects.filter(user=found).delete()
        for model in (EmailAddress, Authenticator, SocialAccount, UserSession, Profile):
            model.objects.filter(user=found).delete()
        Token.objects.live().filter(user=found).update(revoked_at=timezone.now())
        Token.objects.filter(user=found).update(name="")
        Invitation.objects.filter(accepted_by=found).update(email="", name="", note="")
        Invitation.objects.filter(email=found.email).update(email="", name="", note="", revoked_at=timezone.now())
        for redact in redactions:
            redact(found)
        _blank(found)
        audit.record(actor=actor, project=None, verb="erase", subject=found, fields=["email", "name", "languages"])


def _hand_over(user: User, successor: User | None, actor: User | None) -> None:
    for project in led_alone(user):
        if successor is None or successor.pk == user.pk:
            raise Refused(
                _("“%(project)s” has no other lead. Make somebody else lead first.") % {"project": project},
                code="last_lead",
            )
        member, _made = Membership.objects.update_or_create(
            project=project, user=successor, defaults={"role": Role.LEAD}
        )
        audit.record(actor=actor, project=project, verb="change role", subject=member, fields=["role"])


def _blank(user: User) -> None:
    """Nothing that is left tells who this was, and nobody can sign in with it."""
    user.email, user.name, user.languages, user.ui_language = f"erased-{user.pk}@erased.invalid", "", [], ""
    user.is_active = user.is_staff = user.is_superuser = user.may_found_projects = False
    user.last_login, user.erased_at = None, timezone.now()
    user.set_unusable_password()  # also ends every session: its hash no longer fits
    user.save()
    user.groups.clear()
    user.user_permissions.clear()


def forget_sessions() -> None:
    """Delete the sessions whose time is up, and what is known of their browsers."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
