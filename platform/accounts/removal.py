"""Erase people, delete projects, and clear away old sessions and files that no row refers to.

A person's row is emptied and their ratings are kept. An archived project is deleted with its content; one with ratings,
verdicts or paid requests is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from stat import S_ISREG
from typing import Any

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
from django.utils.translation import ngettext

from accounts import audit
from accounts.models import AuditEntry, Invitation, Membership, Profile, Project, Role, Token, User
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
    without a successor these refuse it."""
    with transaction.atomic():
        account = User.objects.select_for_update().filter(pk=user.pk, erased_at=None).first()
        if account is None:
            raise Refused(_("This account was erased before."))
        _hand_over(account, successor, actor)
        Membership.objects.filter(user=account).delete()
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
    elsewhere = Membership.objects.filter(user=user).exclude(project=project).exists()
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


# --- projects --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Content:
    """One kind of content of a project, with its number in words; `forbids`: it must be kept, so the project can't be
    removed."""

    words: str
    forbids: bool = False


# Functions of other apps that list the contents of a project; registered when the apps are loaded.
contents: list[Callable[[Project], Iterable[Content]]] = []


def contained(project: Project) -> list[Content]:
    """What removing the project would delete, and what forbids removing it."""
    people = Membership.objects.filter(project=project).count()
    links = Invitation.objects.open().filter(project=project).count()
    own = [Content(ngettext("%d membership", "%d memberships", people) % people)]
    if links:
        own.append(Content(ngettext("%d open invitation", "%d open invitations", links) % links))
    return own + [content for function in contents for content in function(project)]


def remove_project(*, project: Project, name: str, actor: User) -> None:
    """Delete an archived project with all its rows and files. Its audit trail is kept, for the operator only.

    `name` must be the project's name, typed as a confirmation. Refused with code ``wrong_name`` if it differs,
    ``not_archived`` if the project is not archived, ``has_ratings`` if it has content that must be kept.
    """
    if name.strip() != project.name:
        sentence = _("This is not the project's name. Type “%(name)s” to remove it.") % {"name": project.name}
        raise Refused(sentence, code="wrong_name", fields={"name": sentence})
    with transaction.atomic():
        held = Project.objects.select_for_update().get(pk=project.pk)
        if held.archived_at is None:
            raise Refused(_("Archive the project first. This stops its running work."), code="not_archived")
        if kept := [content.words for content in contained(held) if content.forbids]:
            sentence = _("The project can't be removed, because it has %(contents)s. It stays archived.")
            raise Refused(sentence % {"contents": ", ".join(kept)}, code="has_ratings")
        files = _delete_rows(held)
        audit.record(actor=actor, project=None, verb="remove project", subject=held)
        AuditEntry.objects.filter(project=held).update(project=None)
        Token.objects.filter(project=held).delete()
        Project.objects.filter(pk=held.pk).delete()
        transaction.on_commit(lambda: _delete_files(files))


def _delete_rows(project: Project) -> list[tuple[models.FileField, str]]:
    """Delete all rows of the project, dependent rows first. Returns the files that they referred to."""
    files = []
    for model, path in _belonging():
        rows = model._base_manager.filter(**{path: project})
        for field in model._meta.fields:
            if isinstance(field, models.FileField):
                files += [(field, str(name)) for name in rows.values_list(field.name, flat=True) if name]
        rows._raw_delete(rows.db)
    return files


def _delete_files(files: list[tuple[models.FileField, str]]) -> None:
    for field, name in files:
        if not field.model._base_manager.filter(**{field.name: name}).exists():
            field.storage.delete(name)


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


@cache
def _belonging() -> tuple[tuple[type[models.Model], str], ...]:
    """All models whose rows belong to one project, dependent models first, with their path of required foreign keys."""
    every = apps.get_models(include_auto_created=True)
    paths: dict[type[models.Model], str] = {}
    waiting: list[tuple[type[models.Model], str]] = [(Project, "")]
    while waiting:
        owner, path = waiting.pop(0)
        for model in every:
            for field in _foreign_keys(model):
                if field.related_model is owner and not field.null and model not in paths:
                    paths[model] = f"{field.name}__{path}".removesuffix("__")
                    waiting.append((model, paths[model]))
    order = TopologicalSorter[type[models.Model]](dict.fromkeys(paths, ()))
    for model in paths:
        for field in _foreign_keys(model):
            # Optional keys may form a circle (a call repairs an attempt of a call): they are checked at the commit.
            if field.related_model in paths and field.related_model is not model and not field.null:
                order.add(field.related_model, model)
    return tuple((model, paths[model]) for model in order.static_order())


def _foreign_keys(model: type[models.Model]) -> list[models.ForeignKey[Any, Any]]:
    return [field for field in model._meta.fields if isinstance(field, models.ForeignKey)]
