"""Erase people, and clear away old sessions and files that no row refers to.

A person's row is emptied and their ratings are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISREG

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import (
    AuditEntry,
    Invitation,
    Membership,
    Profile,
    Project,
    Role,
    SuspendedMembership,
    Token,
    User,
)
from accounts.refusals import Refused

ORPHAN_AGE = timedelta(days=1)
ORPHANS_EVERY = timedelta(hours=1)

# --- people ----------------------------------------------------------------------------------------------------------
# Functions of other apps that erase a person's texts, in one project or (None) in all; registered with the apps.
redactions: list[Callable[[User, Project | None], None]] = []
# Functions of other apps that delete what they have computed for these campaigns (primary keys).
computed: list[Callable[[list[int]], None]] = []


def led_alone(user: User) -> list[Project]:
    """The projects of which the user is the only lead."""
    others = Membership.objects.filter(role=Role.LEAD).exclude(user=user).values("project")
    led = Project.objects.filter(memberships__user=user, memberships__role=Role.LEAD)
    return list(led.exclude(pk__in=others).order_by("slug"))


def erase_user(*, user: User, actor: User | None, successor: User | None = None) -> None:
    """Erase a user permanently, in one transaction. `successor` becomes lead of the projects that only the user leads;
    without a successor these refuse it. Of those that are deleted, too, a successor can restore them then; without one
    only an operator can."""
    with transaction.atomic():
        account = User.objects.select_for_update().filter(pk=user.pk, erased_at=None).first()
        if account is None:
            raise Refused(_("This account was erased before."))
        _hand_over(account, successor, actor)
        _hand_over_deleted(account, successor)
        Membership.objects.filter(user=account).delete()
        SuspendedMembership.objects.filter(user=account).delete()
        for model in (EmailAddress, Authenticator, SocialAccount, UserSession, Profile):
            model.objects.filter(user=account).delete()
        Token.objects.live().filter(user=account).update(revoked_at=timezone.now())
        Token.objects.filter(user=account).update(name="")
        Invitation.objects.filter(accepted_by=account).update(email="", name="", note="")
        Invitation.objects.filter(email=account.email).update(email="", name="", note="", revoked_at=timezone.now())
        for redact in redactions:
            redact(account, None)
        _blank(account)
        audit.record(actor=actor, project=None, verb="erase", subject=account, fields=["email", "name", "languages"])


def may_erase_account(*, user: User, project: Project, actor: User) -> bool:
    """Whether a lead of ``project`` may erase the account of a person: it is in no other project, nor an operator's."""
    elsewhere = (
        Membership.objects.filter(user=user).exclude(project=project).exists()
        or SuspendedMembership.objects.filter(user=user).exists()  # of a project that may be restored
    )
    return not (elsewhere or user.is_staff or user.is_superuser or user.may_found_projects or user.pk == actor.pk)


def remove_from_project(*, user: User, project: Project, actor: User) -> None:
    """Erase a person's data in a project: membership, invitations, texts, their name in the audit trail.

    Their account stays, with name, e-mail address and profile: see `may_erase_account` and `erase_user`.
    """
    with transaction.atomic():
        leads = Membership.objects.select_for_update().filter(project=project, role=Role.LEAD)
        if list(leads.values_list("user", flat=True)) == [user.pk]:
            raise Refused(_("A project needs a lead. Make somebody else lead first."), code="last_lead")
        Token.objects.live().filter(user=user, project=project).update(revoked_at=timezone.now())
        invited = Invitation.objects.filter(project=project)
        invited.filter(accepted_by=user).update(email="", name="", note="")
        invited.filter(email=user.email, accepted_by=None).update(email="", name="", note="", revoked_at=timezone.now())
        for redact in redactions:
            redact(user, project)
        Membership.objects.filter(user=user, project=project).delete()
        AuditEntry.objects.filter(project=project, actor=user).update(actor=None)


def _hand_over(user: User, successor: User | None, actor: User | None) -> None:
    for project in led_alone(user):
        if successor is None or successor.pk == user.pk:
            raise Refused(
                _("“%(project)s” has no other lead. Make somebody else lead first.") % {"project": project},
                code="last_lead",
            )
        member, _is_new = Membership.objects.update_or_create(
            project=project, user=successor, defaults={"role": Role.LEAD}
        )
        audit.record(actor=actor, project=project, verb="change role", subject=member, fields=["role"])


def deleted_led_alone(user: User) -> models.QuerySet[SuspendedMembership]:
    """The memberships of the user in deleted projects of which they were the only lead."""
    others = SuspendedMembership.objects.filter(role=Role.LEAD).exclude(user=user).values("project")
    alone = SuspendedMembership.objects.filter(user=user, role=Role.LEAD).exclude(project__in=others)
    return alone.select_related("project").order_by("project__name", "pk")


def _hand_over_deleted(user: User, successor: User | None) -> None:
    """Let the successor restore the deleted projects that only the user led."""
    if successor is None or successor.pk == user.pk:
        return
    for held in list(deleted_led_alone(user)):
        if not SuspendedMembership.objects.filter(project=held.project_id, user=successor).update(role=Role.LEAD):
            SuspendedMembership.objects.filter(pk=held.pk).update(user=successor)


def _blank(user: User) -> None:
    """Empty the row: nothing in it identifies the person, and nobody can sign in with it."""
    user.email, user.name, user.languages, user.ui_language = f"erased-{user.pk}@erased.invalid", "", [], ""
    user.is_active = user.is_staff = user.is_superuser = user.may_found_projects = False
    user.last_login, user.erased_at = None, timezone.now()
    user.set_unusable_password()  # also ends every session, because its hash no longer matches
    user.save()
    user.groups.clear()
    user.user_permissions.clear()


def forget_sessions() -> None:
    """Delete expired sessions, and the records of their browsers."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()


# --- files ------------------------------------------------------------------------------------------------------------
def delete_orphan_files(*, now: datetime | None = None) -> int:
    """Delete stored files that no row refers to and nobody has changed for a day, at most once an hour; how many.

    They are left by processes that were killed: what a study's check had copied out of archives, an export half
    written. Looks only into the folders of file fields.
    """
    if now is None and not caches["content"].add("orphan-files-deleted", 1, ORPHANS_EVERY.total_seconds()):
        return 0
    before = ((now or timezone.now()) - ORPHAN_AGE).timestamp()
    deleted = 0
    for folder in {str(field.upload_to).split("/")[0] for field in _file_fields()}:
        old = [path for path in (Path(settings.MEDIA_ROOT) / folder).rglob("*") if _is_unchanged_since(path, before)]
        for start in range(0, len(old), 500):
            names = {path.relative_to(settings.MEDIA_ROOT).as_posix(): path for path in old[start : start + 500]}
            for name in names.keys() - _referred_to(names):
                names[name].unlink(missing_ok=True)
                deleted += 1
    return deleted


def _is_unchanged_since(path: Path, before: float) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return S_ISREG(status.st_mode) and max(status.st_mtime, status.st_ctime) < before


def _file_fields() -> list[models.FileField]:
    return [field for model in apps.get_models() for field in model._meta.fields if isinstance(field, models.FileField)]


def _referred_to(names: Iterable[str]) -> set[str]:
    """The names to which a row refers, in one statement, because a file may move between the rows of two tables."""
    rows = []
    for field in _file_fields():
        of_field = field.model._base_manager.filter(**{f"{field.name}__in": list(names)})
        rows.append(of_field.order_by().values_list(field.name, flat=True))
    return {str(name) for name in rows[0].union(*rows[1:])}
