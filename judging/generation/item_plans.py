"""Plans whose families are the items of a dataset: every prompt is answered by each model in its own language.

The texts get the scenario and the attributes of their item, so that the answers of several models, and those of people
to the same dataset, stand beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.refusals import Refused
from annotation.models import Dataset, Item
from judging.generation import plans
from judging.generation.plans import GeneratorChoice, ItemFamily
from judging.generation.specs import ANSWERS, RESERVED, Spec, preset
from judging.models import GenerationPlan

LONGEST_VALUE = 50_000  # characters of an item's field that a request has


def plan_answers(
    *,
    dataset: Dataset,
    name: str,
    generators: Sequence[GeneratorChoice],
    repeats: int = 1,
    budget: Decimal | None = None,
    spec: Spec | None = None,
    seed: int | None = None,
    actor: User | None = None,
) -> GenerationPlan:
    """A plan with a family for each prompt of a dataset; nothing is sent. Refused as `plans.create_plan` does, and for
    an item that lacks what the spec takes from it."""
    spec = spec or preset(ANSWERS)
    if not spec.sources:
        sentence = _("This spec takes nothing from a dataset. Give a parameter a source, such as question.")
        raise Refused(sentence, code="invalid", fields={"spec": sentence})
    families = item_families(dataset, spec)
    return plans.create_plan(
        project=dataset.project,
        name=name,
        spec=spec,
        languages=list(dict.fromkeys(family.language for family in families)),
        families=len(families),
        generators=generators,
        repeats=repeats,
        seed=seed,
        budget=budget,
        answers_to=dataset,
        prompts=families,
        actor=actor,
    )


def item_families(dataset: Dataset, spec: Spec) -> list[ItemFamily]:
    """A family for each prompt. Of several items of one scenario in one language, which answer the same prompt, the
    first is taken."""
    families: dict[tuple[str, str], ItemFamily] = {}
    for item in Item.objects.of(dataset).iterator(1_000):
        scenario = item.scenario or item.external_id
        if (scenario, item.language) not in families:
            families[scenario, item.language] = ItemFamily(
                scenario=scenario, language=item.language, parameters=_parameters(item, spec)
            )
        if len(families) > plans.MOST_FAMILIES:
            sentence = _("A plan has from 1 to %d families.") % plans.MOST_FAMILIES
            raise Refused(sentence, code="invalid", fields={"families": sentence})
    return list(families.values())


def _parameters(item: Item, spec: Spec) -> dict[str, Any]:
    """What the spec takes from an item, after the item's plain attributes."""
    taken = {name: item.fields.get(source) for name, source in spec.sources.items()}
    for name, value in taken.items():
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_VALUE:
            sentence = _("The item “%(item)s” has no “%(field)s” of up to %(most)d characters.")
            sentence %= {"item": item.external_id, "field": spec.sources[name], "most": LONGEST_VALUE}
            raise Refused(sentence, code="invalid", fields={"dataset": sentence})
    drawn = {parameter.name for parameter in spec.parameters}
    plain = {
        name: value
        for name, value in item.attributes.items()
        if type(value) in (str, int) and name not in RESERVED and name not in drawn
    }
    return {**plain, **taken}
