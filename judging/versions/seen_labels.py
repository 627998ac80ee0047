"""Who has seen human labels of the items that an alignment has locked: as files, on pages and through the API.

A person who knows the labels can tune a judge on them. Every download of a whole campaign's labels is recorded, also
before the split. Showing labels of single items is recorded if an alignment with a look left has locked one of them. It
is recorded once per person, day, way and alignment, so that working with the pages does not fill the trail.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q

from accounts import audit
from accounts.models import AuditEntry, User
from annotation.models import Annotation, Campaign, Import, Item
from judging.models import Alignment
from judging.versions import examples

FILES_WITH_LABELS = tuple(
    f"export {what}"
    for what in (
        *("ratings", "scores", "adjudications", "training-set", "label-studio", "hugging-face"),
        *("recomputation", "bundle", "campaign"),
    )
)
"""Entries of the audit trail about files with the labels of a campaign or project."""
_READ, DOWNLOADED_SCORES, SHARED_SCORES = "read locked labels", "download item scores", "deliver shared scores"
MOST_LISTED = 50
AT_ONCE = 500


def record_seen_labels(*, campaign: Campaign, items: Collection[int], actor: User | None, verb: str = _READ) -> None:
    """Record that somebody is shown ratings of these items, for every open alignment that has locked one of them.

    Copies of a locked item and items of its scenario count, in whatever campaign of the project they were rated.
    """
    pks = list(items)
    for alignment in examples.with_looks_left(Alignment.objects.filter(project=campaign.project_id)):
        locked = Item.objects.filter(examples.is_locked(Alignment.objects.filter(pk=alignment.pk)))
        if any(locked.filter(pk__in=pks[at : at + AT_ONCE]).exists() for at in range(0, len(pks), AT_ONCE)):
            audit.record_once_a_day(actor=actor, project=campaign.project, verb=verb, subject=alignment)


def seen_labels(alignment: Alignment) -> list[AuditEntry]:
    """The entries about labels of the locked items, the newest first."""
    of_others = Q(subject=audit.label(Campaign)) & ~Q(subject_pk=alignment.campaign_id)
    files = Q(verb__in=FILES_WITH_LABELS) & ~of_others
    single = Q(
        verb__in=(_READ, DOWNLOADED_SCORES, SHARED_SCORES), subject=audit.label(Alignment), subject_pk=alignment.pk
    )
    imported = Q(verb=audit.READ_IMPORT, subject=audit.label(Import), subject_pk__in=_imports_with_labels(alignment))
    entries = AuditEntry.objects.filter(files | single | imported, project=alignment.project_id)
    return list(entries.select_related("actor").order_by("-pk")[:MOST_LISTED])


def _imports_with_labels(alignment: Alignment) -> list[int]:
    """The imports whose files have ratings of the campaign: the imports of these ratings, the imports that they are
    part of, and others of the same upload."""
    brought = Annotation.objects.filter(file_import=OuterRef("pk"), campaign=alignment.campaign_id)
    own = Import.objects.filter(Exists(brought), project=alignment.project_id)
    alike = Q(pk__in=own.values("pk")) | Q(pk__in=own.exclude(part_of=None).values("part_of"))
    alike |= Q(batch__in=own.exclude(batch=None).values("batch"))
    return list(Import.objects.filter(alike).values_list("pk", flat=True))
