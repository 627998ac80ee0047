"""The append-only trail: every verb that changes something others rely on writes one line here."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models

from accounts.models import AuditEntry, Project, User


def label(model: type[models.Model]) -> str:
    """How the trail names a table."""
    return str(model._meta.label)


def record(
    *, actor: User | None, project: Project | None, verb: str, subject: models.Model, fields: Iterable[str] = ()
) -> AuditEntry:
    """Append one entry; call it inside the verb's own transaction."""
    return AuditEntry.objects.create(
        actor=actor,
        project=project,
        verb=verb,
        subject=subject._meta.label,
        subject_pk=subject.pk,
        fields=sorted(fields),
    )
