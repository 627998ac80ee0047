"""Delete a project: its people lose it at once, its leads can restore it for 30 days, then a worker deletes its rows.

Every page, list and request finds a project through a membership. So the memberships of a deleted project are stored
as `SuspendedMembership` until it is restored: what forgets to ask whether a project is deleted shows nothing of it. The
project is archived, too, which stops its work. What needs no membership (links, tokens, webhooks, paid requests) asks
for a `ProjectDeletion`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import Any
from unicodedata import normalize

from django.apps import apps
from django.db import InterfaceError, OperationalError, models, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import access, audit, jobs, people
from accounts.models import (
    AuditEntry,
    Invitation,
    Membership,
    Project,
    ProjectDeletion,
    Role,
    SuspendedMembership,
    Token,
    User,
)
from accounts.refusals import Refused

logger = logging.getLogger(__name__)

BUNDLE_EXPORTED = "export bundle"
ROWS_AT_ONCE = 1000
PURGE_SECONDS = 60.0  # of one task; the next one goes on


# --- what a project has ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Content:
    """One kind of content of a project, with its number in words; `newest`: when ratings last came in."""

    words: str
    newest: datetime | None = None


# Functions of other apps that list the contents of a project; registered when the apps are loaded.
contents: list[Callable[[Project], Iterable[Content]]] = []


def contained(project: Project) -> list[Content]:
    """What deleting the project deletes."""
    members = Membership.objects.filter(project=project).count()
    links = Invitation.objects.open().filter(project=project).count()
    own = [Content(ngettext("%d membership", "%d memberships", members) % members)]
    if links:
        own.append(Content(ngettext("%d open invitation", "%d open invitations", links) % links))
    return own + [content for function in contents for content in function(project)]


def bundle_exported_at(project: Project) -> datetime | None:
    """When somebody last exported the project as a bundle; None if nobody has."""
    exported = AuditEntry.objects.filter(project=project, verb=BUNDLE_EXPORTED)
    return exported.order_by("-pk").values_list("at", flat=True).first()


# --- deleting and restoring ------------------------------------------------------------------------------------------
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»″", '"'))


def is_typed_name(typed: str, name: str) -> bool:
    """Whether a name was typed as it is shown: a page shows runs of spaces as one, and NFC and NFD look the same. A
    keyboard has straight quotes only, which stand for all double ones."""
    shown, written = (" ".join(normalize("NFC", text).translate(_QUOTES).split()) for text in (name, typed))
    return shown == written


def delete_project(*, project: Project, name: str, actor: User) -> ProjectDeletion:
    """Delete a project; it can be restored for `ProjectDeletion.GRACE`.

    `name` is the project's name, typed to confirm. Refused with code ``wrong_name`` if it differs, and ``deleted`` if
    another lead has just deleted the project.
    """
    if not is_typed_name(name, project.name):
        sentence = _("This is not the project's name. Type “%(name)s” to delete it.") % {"name": project.name}
        raise Refused(sentence, code="wrong_name", fields={"name": sentence})
    with transaction.atomic():
        held = Project.objects.select_for_update().get(pk=project.pk)
        if ProjectDeletion.objects.filter(project=held).exists():
            raise Refused(_("This project has just been deleted by another lead."), code="deleted")
        deletion = ProjectDeletion.objects.create(project=held, deleted_by=actor, archived_before=held.archived_at)
        Project.objects.filter(pk=held.pk, archived_at=None).update(archived_at=deletion.deleted_at)
        jobs.cancel_all(project=held, sentence=str(jobs.PROJECT_DELETED))
        for stop in people.stops:
            stop(held, _("The project was deleted."))
        members = list(Membership.objects.select_for_update().filter(project=held))
        SuspendedMembership.objects.bulk_create(
            SuspendedMembership(
                membership_pk=member.pk, project=held, user_id=member.user_id, role=member.role, since=member.since
            )
            for member in members
        )
        Membership.objects.filter(pk__in=[member.pk for member in members]).delete()
        audit.record(actor=actor, project=held, verb="delete project", subject=held)
    return deletion


def deleted_projects(user: User) -> models.QuerySet[ProjectDeletion]:
    """The deletions of the projects that the user led, newest first: only these people still see something of them.

    Of a project whose leads have all been erased, operators do. Each has ``has_lead``.
    """
    leads = SuspendedMembership.objects.filter(project=OuterRef("project"), role=Role.LEAD)
    deleted = ProjectDeletion.objects.annotate(has_lead=Exists(leads.filter(user__erased_at=None)))
    own = Q(Exists(leads.filter(user=user)))
    if user.is_superuser:
        own |= Q(has_lead=False)
    deleted = deleted.filter(access.factor_met(user, project="project"), own)
    return deleted.select_related("project", "deleted_by").order_by("-pk")


def restore_project(*, deletion: ProjectDeletion, actor: User) -> Project:
    """Bring a deleted project back as it was; paused runs and cancelled jobs are started again by hand.

    The actor becomes its lead if all who led it have been erased: an operator who restores it.

    Refused (code ``wrong_state``) if it was restored before, or its rows are being deleted for good.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update().filter(pk=deletion.project_id).first()
        current = ProjectDeletion.objects.filter(pk=deletion.pk).first()
        if project is None or current is None:
            raise Refused(_("This project is not deleted any more, or it was deleted permanently."), code="wrong_state")
        if current.purge_started_at is not None:
            raise Refused(_("The 30 days are over: this project is being deleted permanently."), code="wrong_state")
        suspended = SuspendedMembership.objects.filter(project=project)
        Membership.objects.bulk_create(
            [
                Membership(
                    pk=member.membership_pk,
                    project=project,
                    user_id=member.user_id,
                    role=member.role,
                    since=member.since,
                )
                for member in suspended
            ],
            ignore_conflicts=True,  # somebody became a member by a request that began before the deletion
        )
        suspended.delete()
        if not Membership.objects.filter(project=project, role=Role.LEAD, user__erased_at=None).exists():
            lead, _is_new = Membership.objects.update_or_create(
                project=project, user=actor, defaults={"role": Role.LEAD}
            )
            audit.record(actor=actor, project=project, verb="change role", subject=lead, fields=["role"])
        Project.objects.filter(pk=project.pk).update(archived_at=current.archived_before)
        current.delete()
        audit.record(actor=actor, project=project, verb="restore project", subject=project)
    project.refresh_from_db()
    return project


# --- deleting the rows -----------------------------------------------------------------------------------------------
def purge_deleted(*, now: datetime | None = None, seconds: float = PURGE_SECONDS) -> list[str]:
    """Delete the rows and files of projects whose grace has ended, for about so many ``seconds``; slugs of those done.

    Each batch of rows is a transaction of its own, so a process that is killed leaves the rest to the next one.
    """
    now, ends = now or timezone.now(), time.monotonic() + seconds
    done: list[str] = []
    over = ProjectDeletion.objects.filter(deleted_at__lte=now - ProjectDeletion.GRACE).order_by("pk")
    for deletion in over.select_related("project"):
        with transaction.atomic():  # whoever restores the project holds this lock
            Project.objects.select_for_update().filter(pk=deletion.project_id).first()
            ProjectDeletion.objects.filter(pk=deletion.pk, purge_started_at=None).update(purge_started_at=now)
        if not ProjectDeletion.objects.filter(pk=deletion.pk).exists():
            continue
        try:
            while _delete_batch(deletion.project):
                if time.monotonic() > ends:
                    return done
        except (OperationalError, InterfaceError):  # the database is away
            raise
        except Exception:  # the next sweep tries it again; it keeps no other project from being deleted
            logger.exception("The rows of the deleted project %s can't be deleted", deletion.project_id)
            continue
        done.append(deletion.project.slug)
    return done


def _delete_batch(project: Project) -> bool:
    """Delete some rows of the project, dependent rows first, then the project itself; False when nothing is left."""
    for table in _tables():
        if _delete_rows(table, project):
            return True
    entries = AuditEntry.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)
    if keys := list(entries[:ROWS_AT_ONCE]):
        AuditEntry.objects.filter(pk__in=keys).update(project=None)
        return True
    with transaction.atomic():
        deletion = ProjectDeletion.objects.select_for_update().filter(project=project).first()
        if deletion is not None:
            audit.record(actor=None, project=None, verb="purge project", subject=project)
            Token.objects.filter(project=project).delete()
            SuspendedMembership.objects.filter(project=project).delete()
            deletion.delete()
            Project.objects.filter(pk=project.pk).delete()
    return False


@dataclass(frozen=True, slots=True)
class _Table:
    """A model whose rows belong to one project, through the foreign keys of ``path``.

    ``own``: its keys to its own rows; ``referring``: optional keys of other models that are emptied before its rows
    are deleted, because two models refer to each other.
    """

    model: type[models.Model]
    path: str
    own: tuple[str, ...]
    referring: tuple[tuple[type[models.Model], str], ...]


def _delete_rows(table: _Table, project: Project) -> bool:
    """Delete a batch of rows to which no row of their own table refers; False if there is none."""
    rows = table.model._base_manager.filter(**{table.path: project})
    for name in table.own:
        rows = rows.filter(~Exists(table.model._base_manager.filter(**{name: OuterRef("pk")})))
    with transaction.atomic():
        keys = list(rows.order_by().values_list("pk", flat=True)[:ROWS_AT_ONCE])
        if not keys:
            return False
        for model, name in table.referring:
            model._base_manager.filter(**{f"{name}__in": keys}).update(**{name: None})
        batch = table.model._base_manager.filter(pk__in=keys)
        for field in table.model._meta.fields:
            if isinstance(field, models.FileField):
                names = [str(name) for name in batch.values_list(field.name, flat=True) if name]
                transaction.on_commit(partial(_delete_files, field, names))
        batch._raw_delete(batch.db)
    return True


def _delete_files(field: models.FileField, names: Iterable[str]) -> None:
    for name in names:
        if not field.model._base_manager.filter(**{field.name: name}).exists():
            field.storage.delete(name)


@cache
def _tables() -> tuple[_Table, ...]:
    """All models whose rows belong to one project, dependent models first. A deletion's own rows are left out."""
    paths: dict[type[models.Model], str] = {}
    waiting: list[tuple[type[models.Model], str]] = [(Project, "")]
    every = [model for model in apps.get_models(include_auto_created=True) if model not in _LAST]
    while waiting:
        owner, path = waiting.pop(0)
        for model in every:
            for field in _foreign_keys(model):
                if field.related_model is owner and not field.null and model not in paths:
                    paths[model] = f"{field.name}__{path}".removesuffix("__")
                    waiting.append((model, paths[model]))
    keys = [(model, key) for model in paths for key in _foreign_keys(model) if key.related_model in paths]
    edges = {(key.related_model, model) for model, key in keys if not key.null and key.related_model is not model}
    referring: dict[Any, list[tuple[type[models.Model], str]]] = {model: [] for model in paths}
    for model, key in keys:
        edge = (key.related_model, model)
        if not key.null or key.related_model is model or edge in edges:
            continue
        if _sorted(paths, edges | {edge}):
            edges.add(edge)
        else:
            referring[key.related_model].append((model, key.name))
    return tuple(
        _Table(
            model=model,
            path=paths[model],
            own=tuple(key.name for owner, key in keys if owner is model and key.related_model is model),
            referring=tuple(referring[model]),
        )
        for model in _sorted(paths, edges)
    )


_LAST = (SuspendedMembership, ProjectDeletion)


def _sorted(every: Iterable[type[models.Model]], edges: Iterable[tuple[Any, type[models.Model]]]) -> list[Any]:
    """The models in an order in which the second of each edge comes before the first; empty if there is none."""
    order = TopologicalSorter[Any](dict.fromkeys(every, ()))
    for first, second in edges:
        order.add(first, second)
    try:
        return list(order.static_order())
    except CycleError:
        return []


def _foreign_keys(model: type[models.Model]) -> list[models.ForeignKey[Any, Any]]:
    return [field for field in model._meta.fields if isinstance(field, models.ForeignKey)]
