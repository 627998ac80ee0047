"""Mappings that a project keeps under a name, so that the next file of the layout is read the same way."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.inputs import without_nul
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.imports.opening import storable_mapping
from annotation.models import Import, SavedMapping
from annotation.readers import (
    Mapping,
)

MAPPED_KINDS = (Import.Kind.DATASET, Import.Kind.RATINGS, Import.Kind.VERDICTS)


def store_mapping(
    *, project: Project, kind: str, name: str, mapping: Mapping, actor: User | None = None
) -> SavedMapping:
    """Store a mapping under a name that no other mapping of its kind has in the project."""
    saved = SavedMapping(project=project, created_by=actor)
    return _kept(saved, "save mapping", name=name, kind=kind, mapping=storable_mapping(mapping), actor=actor)


def revise_saved_mapping(
    *,
    saved: SavedMapping,
    name: str,
    kind: str | None = None,
    mapping: Mapping | None = None,
    actor: User | None = None,
) -> SavedMapping:
    """Change the name, the kind or the content of a mapping; imports that used it do not change."""
    fields = saved.mapping if mapping is None else storable_mapping(mapping)
    return _kept(saved, "change mapping", name=name, kind=kind or saved.kind, mapping=fields, actor=actor)


def _kept(
    saved: SavedMapping, verb: str, *, name: str, kind: str, mapping: dict[str, Any], actor: User | None
) -> SavedMapping:
    name = without_nul(name).strip()[:120]
    if not name:
        raise Refused(_("Give it a name."), code="no_name", fields={"name": _("Give it a name.")})
    if kind not in MAPPED_KINDS:
        raise Refused(_("Only datasets, ratings and verdicts have mappings."), code="wrong_kind")
    saved.name, saved.kind, saved.mapping = name, kind, mapping
    try:
        with transaction.atomic():
            saved.save()
            audit.record(actor=actor, project=saved.project, verb=verb, subject=saved, fields=["name", "mapping"])
    except IntegrityError:
        sentence = _("There is already a mapping “%s”. Choose another name, or delete the old mapping first.") % name
        raise Refused(sentence, code="name_taken", fields={"name": sentence}) from None
    return saved


def remove_mapping(*, saved: SavedMapping, actor: User | None = None) -> None:
    """Delete a mapping; imports that used it keep their own copy."""
    with transaction.atomic():
        audit.record(actor=actor, project=saved.project, verb="delete mapping", subject=saved)
        SavedMapping.objects.filter(pk=saved.pk).delete()
