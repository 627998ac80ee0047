"""Written texts become a dataset: an item for each, with the drawn parameters of its family as attributes.

The family is the scenario of its items, so that they are parallel across languages and generators. A family is whole if
every text of it is written and none was set aside: whole families alone keep languages and generators balanced.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Count, F, Q
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation import bulk
from annotation.imports import storage
from annotation.models import Dataset, Item
from annotation.readers import ItemRow
from judging.asking import endpoints
from judging.generation.specs import parse_spec
from judging.models import GenerationFamily, GenerationPlan, PlanDataset, Realisation

USABLE = Q(realisations__state=Realisation.State.WRITTEN) & ~Q(realisations__decision=Realisation.Decision.SET_ASIDE)
LONGEST_NAME = 200


def usable_families(plan: GenerationPlan) -> set[int]:
    """The keys of the families of which every text is written, and none set aside; one query."""
    counted = plan.families.annotate(texts=Count("realisations"), usable=Count("realisations", filter=USABLE))
    return set(counted.filter(texts=F("usable")).values_list("pk", flat=True))


def store_dataset(
    *, plan: GenerationPlan, name: str, only: str = PlanDataset.Only.WHOLE, actor: User | None = None
) -> Dataset:
    """Store what is written, and not set aside, as a dataset: of ``whole`` families only, or ``all`` of it.

    One transaction: the dataset, and which item each text became. Refused if the project has a dataset of this name, or
    nothing can be stored.
    """
    access.refuse_archived(plan.project)
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or only not in PlanDataset.Only.values:
        sentence = _("Give the dataset a name, and store whole families or all texts.")
        raise Refused(sentence, code="invalid", fields={"name": sentence})
    with transaction.atomic():
        GenerationPlan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        if Dataset.objects.filter(project=plan.project, name=name).exists():
            taken = _("Another dataset of this project is called “%(name)s”. Choose another name.") % {"name": name}
            raise Refused(taken, code="name_taken", fields={"name": taken})
        whole = usable_families(plan)
        written = Realisation.objects.filter(plan=plan, state=Realisation.State.WRITTEN)
        written = written.exclude(decision=Realisation.Decision.SET_ASIDE).order_by("pk")
        if only == PlanDataset.Only.WHOLE:
            written = written.filter(family__in=whole)
        if not written.exists():
            raise Refused(
                _("No text can be stored yet: no family is whole, or nothing is written."), code="wrong_state"
            )
        providers = set(plan.generators.values_list("provider", flat=True))
        declared = [endpoints.find_provider(provider) for provider in providers]
        rows = list(written.select_related("family", "generator"))
        dataset = storage.store(
            project=plan.project,
            name=name,
            items=_items(plan, rows, whole),
            actor=actor,
            simulated=any(provider is not None and provider.simulated for provider in declared),
        )
        items = dict(Item.objects.filter(dataset=dataset).values_list("external_id", "pk"))
        bulk.update(Realisation, ("item",), [(row.pk, items[item_key(row)]) for row in rows])
        PlanDataset.objects.create(plan=plan, dataset=dataset, only=only)
        audit.record(actor=actor, project=plan.project, verb="store texts", subject=plan)
    return dataset


def item_key(realisation: Realisation) -> str:
    """The key of the item that a text becomes: family, language, generator, and its repeat if there are several."""
    key = f"{family_scenario(realisation.family)}/{realisation.language}/{realisation.generator.name}"
    return key if realisation.repeat == 1 else f"{key}/{realisation.repeat}"


def family_scenario(family: GenerationFamily) -> str:
    """The scenario of the items of a family."""
    return f"family-{family.number:04d}"


def _items(plan: GenerationPlan, rows: list[Realisation], whole: set[int]) -> Iterator[ItemRow]:
    spec = parse_spec(plan.spec)
    for row in rows:
        family = row.family
        yield ItemRow(
            external_id=item_key(row),
            language=row.language,
            generator=row.generator.name,
            scenario=family_scenario(family),
            title="",
            turns=row.turns,
            fields=row.fields,
            attributes={
                **family.parameters,
                "family": family.number,
                "family_is_whole": family.pk in whole,
                "repeat": row.repeat,
                "plan": plan.name,
                "spec": f"{spec.key} {spec.version}",
            },
            content_warning="",
            line=0,
        )
