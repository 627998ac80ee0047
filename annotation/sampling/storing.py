"""Read the pool that a set is chosen from, and store the chosen items as a dataset with its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation import bulk
from annotation.imports import storage
from annotation.models import CuratedItem, Curation, Dataset, Item
from annotation.sampling.draws import DrawnRow

MOST_ITEMS = storage.STAGE


class PoolItem(NamedTuple):
    """An item that can be chosen. ``length``: characters of its turns and fields."""

    pk: int
    external_id: str
    language: str
    generator: str
    family: str
    length: int
    attributes: Mapping[str, Any]


def read_pool(dataset: Dataset) -> list[PoolItem]:
    """The items of a dataset, in order."""
    columns = ("pk", "external_id", "language", "generator", "scenario", "turns", "fields", "attributes")
    rows = Item.objects.of(dataset).values_list(*columns)
    return [
        PoolItem(pk, external, language, generator, scenario or external, _length(turns, fields), attributes)
        for pk, external, language, generator, scenario, turns, fields, attributes in rows.iterator(5_000)
    ]


def _length(turns: Sequence[Mapping[str, str]], fields: Mapping[str, Any]) -> int:
    texts = [turn.get("text", "") for turn in turns]
    for value in fields.values():
        texts += value if isinstance(value, list) else [value]
    return sum(len(text) for text in texts if isinstance(text, str))


def refuse_too_many(count: int) -> None:
    """Refuse more items than are stored in one transaction."""
    if count > MOST_ITEMS:
        sentence = _("A curated dataset has at most %(most)d items; these are %(count)d. Ask for fewer per language.")
        sentence %= {"most": MOST_ITEMS, "count": count}
        raise Refused(sentence, code="too_many", fields={"n": sentence})


def store_curation(
    *,
    dataset: Dataset,
    name: str,
    chosen: Sequence[tuple[int, DrawnRow]],
    rule: Mapping[str, Any],
    seed: int,
    certificate: Mapping[str, Any],
    simulated: bool = False,
    actor: User | None = None,
) -> Curation:
    """Store the chosen items (each with its primary key) as a new dataset derived from ``dataset``, all or nothing.

    The items are copies with the same ids, in the order of the dataset, which says nothing of why they were chosen.
    Refused: a name that a dataset of the project has already, no items, more than fit in one transaction.
    """
    project = dataset.project
    access.refuse_archived(project)
    if not chosen:
        raise Refused(_("No item can be chosen. The certificate says what was left out."), code="empty")
    refuse_too_many(len(chosen))
    if Dataset.objects.filter(project=project, name=name).exists():
        raise storage.name_taken(name)
    drawn_by_item = dict(chosen)
    kept = Item.objects.of(dataset).filter(pk__in=drawn_by_item)
    try:
        with transaction.atomic():
            stored = storage.store(
                project=project,
                name=name,
                items=(storage.copied_row(item) for item in kept.iterator(2_000)),
                actor=actor,
                layout=dataset.layout,
                licence=dataset.licence,
                derived_from=dataset,
                allocatable=dataset.allocatable,
                simulated=dataset.simulated or simulated,
            )
            curation = Curation.objects.create(
                dataset=stored,
                source=dataset,
                rule=dict(rule),
                seed=seed,
                certificate=dict(certificate),
                created_by=actor,
            )
            copies = dict(Item.objects.of(stored).values_list("external_id", "pk"))
            originals = dict(Item.objects.of(dataset).filter(pk__in=drawn_by_item).values_list("pk", "external_id"))
            bulk.insert(
                CuratedItem,
                ("curation_id", "item_id", "probability", "stratum"),
                [
                    (curation.pk, copies[originals[pk]], drawn.probability, drawn.stratum)
                    for pk, drawn in drawn_by_item.items()
                ],
            )
            audit.record(actor=actor, project=project, verb="curate dataset", subject=stored, fields=["items"])
    except IntegrityError:  # a dataset of that name was stored at the same time
        raise storage.name_taken(name) from None
    return curation
