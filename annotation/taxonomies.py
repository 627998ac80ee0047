"""Taxonomies: store their versions, and create the duties that their rules ask for (`rule_plans` counts them).

Applying rules again only adds: new items, more annotators of an item, further criteria. Nothing that exists is changed
or removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import allocation, rubrics
from annotation.campaigns import lock_campaign
from annotation.models import (
    Assignment,
    Campaign,
    Criterion,
    Duty,
    Item,
    ItemSelection,
    Panel,
    RubricVersion,
    Taxonomy,
)
from annotation.readers import TaxonomyDocument, parse_rubric, parse_taxonomy
from annotation.rule_plans import PlannedDuty, TaxonomyPlan, plan_duties
from annotation.selections import RuleDraw, new_seed, store_selection

MOST_NAME = 110  # of a selection, so that a number fits after it


# --- versions --------------------------------------------------------------------------------------------------------
def store_taxonomy(*, project: Project, document: TaxonomyDocument, actor: User | None = None) -> Taxonomy:
    """Store the next version of the taxonomy with the document's key. The newest version is returned if it is equal."""
    access.refuse_archived(project)
    content = document.as_dict()
    digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    with transaction.atomic():
        # Two requests at the same time get different numbers.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        newest = Taxonomy.objects.filter(project=project, key=document.key).order_by("-number").first()
        if newest is not None and newest.digest == digest:
            return newest
        number = newest.number + 1 if newest else 1
        stored = Taxonomy.objects.create(
            project=project, key=document.key, number=number, document=content, digest=digest, created_by=actor
        )
        audit.record(actor=actor, project=project, verb="store taxonomy", subject=stored)
    return stored


def remove_taxonomy(*, taxonomy: Taxonomy, actor: User | None = None) -> None:
    """Remove a version whose rules made no duty. Refused (code ``in_use``) when a duty was made by them."""
    sentence = _("Rating tasks were made by the rules of “%(taxonomy)s”, so it can't be removed.") % {
        "taxonomy": taxonomy
    }
    try:
        with transaction.atomic():
            audit.record(actor=actor, project=taxonomy.project, verb="remove taxonomy", subject=taxonomy)
            taxonomy.delete()
    except IntegrityError:  # also ProtectedError
        raise Refused(sentence, code="in_use") from None


def panels_for(document: TaxonomyDocument, panels: Iterable[Panel]) -> dict[str, list[Panel]]:
    """Map each panel name in the rules to the panels with this name, or else to panels whose names begin with it."""
    known = [(panel.name.casefold(), panel) for panel in panels]
    chosen = {}
    for rule in document.rules:
        name = rule.panel.casefold()
        same = [panel for called, panel in known if called == name]
        chosen[rule.panel] = same or [panel for called, panel in known if called.startswith((f"{name} ", f"{name}:"))]
    return chosen


# --- creating duties -------------------------------------------------------------------------------------------------
def apply_rules(
    *,
    campaign: Campaign,
    taxonomy: Taxonomy,
    panels: Mapping[str, Sequence[Panel]],
    selection: ItemSelection | None = None,
    keep_names: bool = False,
    seed: int | None = None,
    actor: User | None = None,
) -> TaxonomyPlan:
    """Create or extend the duties of the plan, all or none, and return the plan. Adding nothing is no error.

    Refused: a closed campaign, items that show generators' names, rules that no panel can follow (``no_items``).
    """
    allocation.require_not_closed(campaign)
    if taxonomy.project_id != campaign.project_id or any(
        panel.project_id != campaign.project_id for chosen in panels.values() for panel in chosen
    ):
        raise Refused(_("This taxonomy or panel belongs to another project."), code="other_project")
    allocation.require_blind(campaign.dataset, keep_names)
    with transaction.atomic():
        lock_campaign(campaign)  # a second click sees what the first one made
        plan = plan_duties(campaign=campaign, taxonomy=taxonomy, panels=panels, selection=selection, seed=seed)
        if not any(match.with_panel for match in plan.matches):
            raise Refused(_("No item fits a rule with a panel. Look at the counts of the rules."), code="no_items")
        for planned in plan.duties:
            if draw := planned.draw:
                draw.stored = draw.stored or _store_draw(campaign, draw, actor)
            duty = _duty_of(campaign, taxonomy, planned, seed, planned.draw.stored if planned.draw else selection)
            sets = _numbered_sets(duty, planned)
            drawn = allocation.drawn_with(duty.chosen) if duty.chosen else (1.0, "")
            wave = _add_new_items(duty, planned, sets, drawn)
            _add_annotators(duty, planned, sets)
            fields = [f"items={len(planned.new_items)}", *([f"wave={wave}"] if wave else [])]
            audit.record(actor=actor, project=campaign.project, verb="apply taxonomy", subject=duty, fields=fields)
    allocation.criteria_of.cache_clear()  # after a rollback the same primary key can be used again
    return plan


def _store_draw(campaign: Campaign, draw: RuleDraw, actor: User | None) -> ItemSelection:
    """Store what a sample drew, with seed and probabilities, as a selection of the campaign."""
    base = (_("Sample of “%s”") % draw.name)[:MOST_NAME]
    taken = set(ItemSelection.objects.filter(campaign=campaign, name__startswith=base).values_list("name", flat=True))
    name = next(one for one in chain([base], (f"{base} {number}" for number in count(2))) if one not in taken)
    rows = [(one.item, one.probability, one.stratum) for one in draw.drawn]
    return store_selection(campaign=campaign, name=name, rule=draw.rule, seed=draw.seed, rows=rows, actor=actor)


def _duty_of(
    campaign: Campaign, taxonomy: Taxonomy, planned: PlannedDuty, seed: int | None, selection: ItemSelection | None
) -> Duty:
    """The duty that a plan extends, locked for this transaction; or a new duty."""
    if planned.duty is not None:
        duty = Duty.objects.select_for_update().get(pk=planned.duty.pk)
        duty.taxonomy = taxonomy
        return duty
    duty = Duty.objects.create(
        campaign=campaign,
        panel=planned.panel,
        name=allocation.free_name(campaign, planned.name),
        overlap=planned.overlap,
        seed=new_seed() if seed is None else seed,
        chosen=selection,
        taxonomy=taxonomy,
    )
    asked = Criterion.objects.filter(rubric_version=campaign.rubric_version_id, key__in=planned.criteria)
    rated = Duty.criteria.through._default_manager
    rated.bulk_create([rated.model(duty=duty, criterion=criterion) for criterion in asked])
    return duty


def _numbered_sets(duty: Duty, planned: PlannedDuty) -> dict[tuple[str, ...], int]:
    """Map each set of criteria to its number in the duty; new sets are added after those that it has."""
    numbers = {tuple(keys): number for number, keys in enumerate(duty.criteria_sets, 1)}
    for slots in planned.slots.values():
        for keys in slots:
            numbers.setdefault(keys, len(numbers) + 1)
    duty.criteria_sets = [list(keys) for keys in numbers]
    duty.overlap = max(duty.overlap, planned.overlap)
    duty.save(update_fields=["criteria_sets", "overlap", "taxonomy"])
    Duty.with_hidden.filter(stands_for=duty).update(overlap=duty.overlap)
    return numbers


def _add_new_items(
    duty: Duty,
    planned: PlannedDuty,
    sets: Mapping[tuple[str, ...], int],
    drawn: tuple[Mapping[int, float] | float, Mapping[int, str] | str],
) -> int | None:
    """Give the duty its new items as one more wave, whose number is returned; None without new items."""
    if not planned.new_items:
        return None
    chance, stratum = drawn
    in_order = Item.objects.filter(pk__in=planned.new_items).order_by("ordinal").values_list("pk", flat=True)
    numbered = {item: [sets[keys] for keys in planned.slots[item]] for item in planned.new_items}
    origin = "all" if isinstance(chance, float) else "selection"
    return allocation.insert_wave(duty, list(in_order), chance, stratum, duty.seed, origin, numbered)


def _add_annotators(duty: Duty, planned: PlannedDuty, sets: Mapping[tuple[str, ...], int]) -> None:
    """Add slots to items that the duty already has."""
    grown = {item: slots for item, slots in planned.slots.items() if item not in planned.new_items}
    if not grown:
        return
    rows: Any = Assignment.objects.filter(duty=duty, item__in=grown).order_by().values_list("item")
    last = {item: (slot, position) for item, slot, position in rows.annotate(slot=Max("slot"), at=Max("position"))}
    allocation.insert_slots(
        duty,
        (
            (item, last[item][0] + number, last[item][1], sets[keys])
            for item, slots in grown.items()
            for number, keys in enumerate(slots, 1)
        ),
    )


# --- the example that ships ------------------------------------------------------------------------------------------
EXAMPLES = Path(__file__).parent / "examples"


def example_text(name: str) -> bytes:
    """The file of the example: its taxonomy or its rubric, as YAML."""
    return (EXAMPLES / f"{name}.yaml").read_bytes()


def store_example(*, project: Project, actor: User | None = None) -> tuple[Taxonomy, RubricVersion]:
    """Store the taxonomy of the example, and the rubric that has its criteria as a draft."""
    document, problems = parse_taxonomy("taxonomy.yaml", example_text("taxonomy"))
    parsed = parse_rubric("rubric.yaml", example_text("rubric"))
    if document is None or parsed.document is None:
        raise RuntimeError("; ".join([*problems.sentences(), *parsed.problems.sentences()]))
    with transaction.atomic():
        rubric = rubrics.draft(project=project, document=parsed.document, actor=actor)
        return store_taxonomy(project=project, document=document, actor=actor), rubric
