"""Allocation: draw items for a panel, store their inclusion probabilities, and create the slots for annotators."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation import blinding, bulk
from annotation.campaigns import lock_campaign
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Criterion,
    Dataset,
    Draft,
    Duty,
    Item,
    ItemSelection,
    KeptDraft,
    Panel,
    ReferenceItem,
    SelectedItem,
    Selection,
    Skip,
)

MOST_OVERLAP = 50
SEEDS = 2**53  # whole numbers that every JSON reader keeps exact


@dataclass(frozen=True, slots=True)
class Size:
    """How much work a duty would be."""

    items: int
    assignments: int
    seats: int


@dataclass(frozen=True, slots=True)
class DutyShare:
    """The planned duty of one panel in a campaign."""

    panel: Panel
    overlap: int
    criteria: Sequence[Criterion]
    again: bool = False
    selection: ItemSelection | None = None


def items_for(
    *,
    dataset: Dataset,
    panel: Panel,
    languages: Sequence[str] | None = None,
    selection: ItemSelection | None = None,
    campaign: Campaign | None = None,
) -> QuerySet[Item]:
    """The dataset's items in the panel's language, its regional and script variants included (`es`: `es-MX` too).

    A panel without a language takes every item; with a ``selection``, only the items of that count. Reference items of
    the ``campaign`` are left out.
    """
    chosen = Q()
    for tag in languages or filter(None, [panel.language]):
        chosen |= Q(language=tag) | Q(language__startswith=f"{tag}-")
    items = Item.objects.of(dataset).filter(chosen)
    if campaign is not None:
        items = items.exclude(pk__in=ReferenceItem.objects.filter(campaign=campaign).values("item"))
    if selection is None:
        return items
    return items.filter(pk__in=SelectedItem.objects.filter(selection=selection).values("item"))


def size(
    *,
    dataset: Dataset,
    panel: Panel,
    overlap: int,
    selection: ItemSelection | None = None,
    campaign: Campaign | None = None,
) -> Size:
    """The size of the duty that `allocate` would create."""
    items = items_for(dataset=dataset, panel=panel, selection=selection, campaign=campaign).count()
    return Size(items=items, assignments=items * overlap, seats=panel.seats.count())


def assigned_already(*, campaign: Campaign, panel: Panel, items: QuerySet[Item]) -> int:
    """How many of these items are in a duty of the panel in this campaign already."""
    own = Selection.objects.filter(duty__campaign=campaign, duty__panel=panel, item__in=items.order_by())
    return own.values("item").distinct().count()


def allocate(
    *,
    campaign: Campaign,
    panel: Panel,
    overlap: int,
    criteria: Sequence[Criterion] | None = None,
    name: str | None = None,
    languages: Sequence[str] | None = None,
    seed: int | None = None,
    keep_names: bool = False,
    again: bool = False,
    selection: ItemSelection | None = None,
    actor: User | None = None,
) -> Duty:
    """Create a duty: ``panel`` rates every item in its language (or in ``languages``), with inclusion probability 1.

    Over a ``selection`` of the campaign it rates only the items of that, with their probabilities and strata.
    ``criteria`` defaults to the whole rubric. The order of the items depends only on ``seed``. Without one, a random
    seed is drawn and stored, so that the order does not reveal the order of the dataset, and so the generators.
    Items that show generators' names are refused, unless the names were kept on import or ``keep_names`` is set.
    Items that the panel already rates in this campaign on some of the same criteria are refused (code
    ``rated_already``) unless ``again``: usually the form was sent twice.
    """
    duty_criteria = _criteria_of_duty(campaign, criteria)
    require_not_closed(campaign)
    _require_sound(campaign, panel, overlap)
    knowingly = require_blind(campaign.dataset, keep_names)
    require_own_selection(campaign, selection)
    items = items_for(
        dataset=campaign.dataset, panel=panel, languages=languages, selection=selection, campaign=campaign
    )
    if not items.exists():
        raise Refused(
            _("%(dataset)s has no items in the language of %(panel)s.")
            % {"dataset": selection or campaign.dataset, "panel": panel.name},
            code="no_items",
        )
    with transaction.atomic():
        lock_campaign(campaign)  # one allocation at a time
        stored = secrets.randbelow(SEEDS) if seed is None else seed
        duty = _open_duty(campaign, panel, name or panel.name, overlap, stored, languages or (), selection)
        if not again:
            _require_new(campaign, panel, duty_criteria, items)
        duty.criteria.set(duty_criteria)
        criteria_of.cache_clear()  # after a rollback the same primary key can be used again
        pks = list(items.values_list("pk", flat=True))
        if selection is None:
            wave = insert_wave(duty, pks, 1.0, "", stored, "all")
        else:
            chances, strata = drawn_with(selection)
            wave = insert_wave(duty, pks, chances, strata, stored, "selection")
        fields = ["overlap", "seed", f"wave={wave}", *(["generator_names"] if knowingly else [])]
        audit.record(actor=actor, project=campaign.project, verb="allocate", subject=duty, fields=fields)
    return duty


def require_own_selection(campaign: Campaign, selection: ItemSelection | None) -> None:
    if selection is not None and selection.campaign_id != campaign.pk:
        wrong = _("This selection belongs to another campaign.")
        raise Refused(wrong, code="other_campaign", fields={"selection": wrong})


def drawn_with(selection: ItemSelection) -> tuple[dict[int, float], dict[int, str]]:
    """Map each item of a selection to its inclusion probability and its stratum, as long as a duty's may be."""
    rows = SelectedItem.objects.filter(selection=selection).values_list("item", "probability", "stratum")
    drawn = list(rows)
    longest = Selection._meta.get_field("stratum").max_length
    return {item: chance for item, chance, _name in drawn}, {item: name[:longest] for item, _chance, name in drawn}


def duties_on(*, campaign: Campaign, panel: Panel, items: QuerySet[Item]) -> QuerySet[Duty]:
    """The duties of this campaign in which the panel rates some of these items."""
    drawn = Selection.objects.filter(item__in=items).values("duty")
    return Duty.objects.filter(campaign=campaign, panel=panel, pk__in=drawn).order_by("pk")


def _require_new(campaign: Campaign, panel: Panel, criteria: Sequence[Criterion], items: QuerySet[Item]) -> None:
    same = duties_on(campaign=campaign, panel=panel, items=items).filter(criteria__in=criteria).first()
    if same:
        raise Refused(
            _(
                "%(panel)s rates these items on some of these criteria already, in the task “%(duty)s”. Choose other "
                "criteria, or ask the same people to rate the same items again."
            )
            % {"panel": panel.name, "duty": same.name},
            code="rated_already",
        )


def take_back_duty(*, duty: Duty, actor: User | None = None) -> None:
    """Remove a duty that has no ratings, with its assignments and skips. What annotators have entered is kept for them.

    Refused (code ``has_ratings``) if somebody has submitted ratings in it.
    """
    sentence = _(
        "“%(duty)s” already has ratings, so it can't be removed. To stop the work, pause or close the campaign."
    ) % {"duty": duty}
    try:
        with transaction.atomic():
            assignments = Assignment.objects.select_for_update().filter(duty=duty)
            own = Q(assignment__duty=duty) | Q(assignment__duty__stands_for=duty)
            list(assignments)
            if Annotation.objects.filter(own).exists():
                raise Refused(sentence, code="has_ratings")
            audit.record(actor=actor, project=duty.campaign.project, verb="take back duty", subject=duty)
            _keep_entered(duty, Q(duty=duty) | Q(duty__stands_for=duty))
            for model in (Draft, Skip, Assignment, Selection):
                model.objects.filter(Q(duty=duty) | Q(duty__stands_for=duty)).delete()
            duty.delete()
    except IntegrityError:  # somebody submitted at the same time
        raise Refused(sentence, code="has_ratings") from None


def take_back_wave(*, duty: Duty, wave: int) -> int:
    """Remove a wave that has no ratings from a duty, as `take_back_duty` does; returns how many items it had.

    That somebody has put an item aside stays, with the reason: a flag of another language is a finding of its own.
    """
    sentence = _("Somebody has rated one of these items, so they can't be withdrawn.")
    drawn = Selection.objects.filter(duty=duty, wave=wave).values_list("item", flat=True)
    try:
        with transaction.atomic():
            items = list(drawn)
            of_wave = Q(duty=duty, item__in=items)
            list(Assignment.objects.select_for_update().filter(of_wave))
            if Annotation.objects.filter(assignment__duty=duty, item__in=items).exists():
                raise Refused(sentence, code="has_ratings")
            _keep_entered(duty, of_wave)
            for model in (Draft, Assignment, Selection):
                model.objects.filter(of_wave).delete()
    except IntegrityError:  # somebody submitted at the same time
        raise Refused(sentence, code="has_ratings") from None
    return len(items)


def _keep_entered(duty: Duty, own: Q) -> None:
    """Keep drafts of a duty, and the keys of its items in progress, as `KeptDraft`; ``own``: which of them."""
    leased = Assignment.objects.filter(own, key__isnull=False, annotator__isnull=False).values(
        "key", "item", "annotator"
    )
    entered = Draft.objects.select_for_update().filter(own).values("key", "item", "annotator", "answers")
    kept: dict[Any, dict[str, Any]] = {row["key"]: dict(row) for row in (*leased, *entered)}
    KeptDraft.objects.bulk_create(
        [
            KeptDraft(
                campaign_id=duty.campaign_id,
                item_id=row["item"],
                annotator_id=row["annotator"],
                duty_name=duty.name,
                key=key,
                answers=row.get("answers", {}),
            )
            for key, row in kept.items()
        ],
        batch_size=500,
    )


def names_shown(dataset: Dataset) -> list[dict[str, Any]]:
    """The generators' names that annotators and judges would see in a dataset. Searched once, because items never
    change."""
    if dataset.names_shown is None:
        items = Item.objects.of(dataset)
        generators = items.order_by().values_list("generator", flat=True).distinct()
        shown = blinding.find_generator_names(items.iterator(), dataset.layout, generators=generators)
        dataset.names_shown = [finding.as_dict() for finding in shown]
        Dataset.objects.filter(pk=dataset.pk).update(names_shown=dataset.names_shown)
    return list(dataset.names_shown)


def keeps_names(dataset: Dataset) -> bool:
    """Whether the import of the dataset, or of a part of it, has the choice to keep generators' names."""
    kept = Q(file_import__target__generator_names=blinding.KEEP)
    return Dataset.objects.parts_of(dataset).filter(kept).exists()


def require_blind(dataset: Dataset, keep_names: bool) -> bool:
    """Refuse items that show generators' names; True if they do and ``keep_names`` allows it now."""
    shown = names_shown(dataset)
    if not shown or keeps_names(dataset):
        return False
    if not keep_names:
        places = ", ".join(f"“{name['generator']}” ({name['place']}, {name['items']})" for name in shown[:5])
        sentence = _(
            "Annotators would see which model wrote the text: %(places)s. Import the dataset again with these names "
            "masked, or confirm that annotators may see them."
        )
        raise Refused(sentence % {"places": places}, code="generator_names")
    return True


def allocate_all(
    *, campaign: Campaign, shares: Sequence[DutyShare], keep_names: bool = False, actor: User | None = None
) -> list[Duty]:
    """Create a duty for every share, all or none."""
    if not shares:
        raise Refused(_("Choose at least one panel."), code="invalid", fields={"panel": _("Choose at least one.")})
    with transaction.atomic():
        return [
            allocate(
                campaign=campaign,
                panel=share.panel,
                overlap=share.overlap,
                criteria=share.criteria,
                name=free_name(campaign, share.panel.name),
                keep_names=keep_names,
                again=share.again,
                selection=share.selection,
                actor=actor,
            )
            for share in shares
        ]


def free_name(campaign: Campaign, name: str) -> str:
    """``name``, or ``name 2`` and so on when the campaign has a duty of that name."""
    taken = set(campaign.duties.values_list("name", flat=True))
    return next(free for n in count(1) if (free := name if n == 1 else f"{name} {n}") not in taken)


def _criteria_of_duty(campaign: Campaign, criteria: Sequence[Criterion] | None) -> list[Criterion]:
    if criteria is None:
        return list(campaign.rubric_version.criteria.all())
    if not criteria or {criterion.rubric_version_id for criterion in criteria} != {campaign.rubric_version_id}:
        wrong = _("Choose at least one criterion of this campaign's rubric.")
        raise Refused(wrong, code="invalid", fields={"criteria": wrong})
    return list(criteria)


def require_not_closed(campaign: Campaign) -> None:
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed. Open a new campaign."), code="campaign_closed")


def _require_sound(campaign: Campaign, panel: Panel, overlap: int) -> None:
    if panel.project_id != campaign.project_id:
        raise Refused(_("This panel belongs to another project."), code="other_project")
    if not 1 <= overlap <= MOST_OVERLAP:
        wrong = _("Give a number of annotators per item from 1 to %(most)d.") % {"most": MOST_OVERLAP}
        raise Refused(wrong, code="invalid", fields={"overlap": wrong})


def _open_duty(
    campaign: Campaign,
    panel: Panel,
    name: str,
    overlap: int,
    seed: int,
    languages: Sequence[str],
    selection: ItemSelection | None,
) -> Duty:
    try:
        with transaction.atomic():
            return Duty.objects.create(
                campaign=campaign,
                panel=panel,
                name=name,
                overlap=overlap,
                seed=seed,
                languages=list(languages),
                chosen=selection,
            )
    except IntegrityError:
        taken = _("This campaign already has a task called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken}) from None


@lru_cache(maxsize=2048)
def criteria_of(duty: int, rubric_version: int, criteria_set: int = 0) -> tuple[Criterion, ...]:
    """A duty's criteria, or those of one of its sets, in the rubric's order.

    Under one version of the rubric they never change, so every server process keeps them in a cache. Raises
    ``Refused`` (code ``rubric_changed``) under a version that the campaign no longer has.
    """
    own = Duty.criteria.through.objects.filter(duty=duty).values("criterion")
    asked = Criterion.objects.filter(pk__in=own, rubric_version=rubric_version)
    criteria = list(asked.select_related("rubric_version"))
    if not criteria:
        raise Refused(_("The rubric has just changed. Reload the page."), code="rubric_changed")
    if not criteria_set:
        return tuple(criteria)
    sets = Duty.with_hidden.values_list("criteria_sets", flat=True).get(pk=duty)
    return tuple(criterion for criterion in criteria if criterion.key in sets[criteria_set - 1])


def left(duty: Duty) -> QuerySet[Item]:
    """The items in the duty's languages from parts of the dataset that the duty has drawn no item from yet.

    A duty over a selection has none: what a later version adds was not there when the selection was drawn. Nor has a
    duty of a taxonomy, whose rules are applied again instead.
    """
    if duty.chosen_id or duty.taxonomy_id:
        return Item.objects.none()
    drawn = Selection.objects.filter(duty=duty).values("item__dataset")
    dataset = duty.campaign.dataset
    items = items_for(dataset=dataset, panel=duty.panel, languages=duty.languages, campaign=duty.campaign)
    return items.exclude(dataset__in=drawn)


def hand_out(*, campaign: Campaign, actor: User | None = None) -> int:
    """Assign the items that a later version of the dataset added: one more wave in every duty, with probability 1.

    Overlap and seed are those of the duty. Returns the number of new assignments, 0 if no item was left.
    """
    require_not_closed(campaign)
    with transaction.atomic():
        duties = list(Duty.objects.select_for_update().filter(campaign=campaign).order_by("pk"))
        return sum(_hand_out(duty, campaign, actor) for duty in duties)


def _hand_out(duty: Duty, campaign: Campaign, actor: User | None) -> int:
    duty.campaign = campaign
    new = list(left(duty).values_list("pk", flat=True))
    if new:
        fields = [f"wave={insert_wave(duty, new, 1.0, '', duty.seed, 'all')}"]
        audit.record(actor=actor, project=campaign.project, verb="hand out items", subject=duty, fields=fields)
    return len(new) * duty.overlap


def draw(
    *,
    duty: Duty,
    items: Sequence[Item],
    probabilities: Sequence[float],
    stratum: str = "",
    seed: int | None = None,
    origin: str,
) -> int:
    """Add one wave to a duty: the ``items`` that it does not have yet, without reference items of the campaign.

    ``probabilities``: the inclusion probability of every item, in the same order, each in (0, 1]. The order of the new
    items depends on ``seed`` (default: the duty's) and on the number of the wave. ``origin``: what chose the items;
    ``stratum``: the part of the dataset they were drawn from. Returns the number of new items. Raises ``ValueError``
    for other probabilities, and for items that are not in the campaign's dataset.
    """
    if duty.taxonomy_id:
        sentence = _("“%(duty)s” was made by the rules of a taxonomy. Draw a selection, and apply the rules to that.")
        raise Refused(sentence % {"duty": duty.name}, code="by_rules")
    if len(items) != len(probabilities) or not all(0 < chance <= 1 for chance in probabilities):
        raise ValueError("one inclusion probability above 0 and at most 1 per item")
    parts = set(Dataset.objects.parts_of(duty.campaign.dataset).values_list("pk", flat=True))
    if any(item.dataset_id not in parts for item in items):
        raise ValueError("a duty's items come from its campaign's dataset")
    in_order = sorted(zip(items, probabilities, strict=True), key=lambda drawn: drawn[0].ordinal)
    chances = {item.pk: chance for item, chance in in_order}
    with transaction.atomic():
        Duty.objects.select_for_update().get(pk=duty.pk)  # one wave at a time
        known = set(Selection.objects.filter(duty=duty, item__in=list(chances)).values_list("item", flat=True))
        known |= set(ReferenceItem.objects.filter(campaign=duty.campaign_id).values_list("item", flat=True))
        new = [pk for pk in chances if pk not in known]
        insert_wave(duty, new, chances, stratum, duty.seed if seed is None else seed, origin)
    return len(new)


def insert_wave(
    duty: Duty,
    items: list[int],
    chance: Mapping[int, float] | float,
    stratum: Mapping[int, str] | str,
    seed: int,
    origin: str,
    sets: Mapping[int, Sequence[int]] | None = None,
) -> int:
    """Store selections and slots for ``items`` (primary keys in the dataset's order), shuffled; returns the wave.

    The new order depends on the seed, the wave and the positions of the items in the dataset, not on primary keys.
    ``sets``: by item, the set of criteria of each of its slots; by default every slot has all criteria.
    """
    wave = (Selection.objects.filter(duty=duty).aggregate(last=Max("wave"))["last"] or 0) + 1
    shuffled = list(items)
    random.Random(seed if wave == 1 else f"{seed}:{wave}").shuffle(shuffled)
    start = (Assignment.objects.filter(duty=duty).aggregate(last=Max("position"))["last"] or 0) + 1
    bulk.insert(
        Selection,
        ("duty_id", "item_id", "wave", "probability", "stratum", "origin"),
        ((duty.pk, item, wave, _of(chance, item), _of(stratum, item), origin) for item in shuffled),
    )
    insert_slots(duty, _slots(duty, shuffled, start, sets))
    return wave


def _of(values: Mapping[int, Any] | float | str, item: int) -> Any:
    return values[item] if isinstance(values, Mapping) else values


def _slots(
    duty: Duty, items: list[int], start: int, sets: Mapping[int, Sequence[int]] | None
) -> Iterator[tuple[int, int, int, int]]:
    """Item, slot, position and set of criteria of all slots. Slots of one item share a position, so that items are
    completed one after the other."""
    whole = (0,) * duty.overlap
    for position, item in enumerate(items, start):
        for slot, criteria_set in enumerate(whole if sets is None else sets[item], 1):
            yield item, slot, position, criteria_set


def insert_slots(duty: Duty, slots: Iterable[tuple[int, int, int, int]]) -> None:
    """Store open slots of a duty: of each its item, number, position and set of criteria."""
    bulk.insert(
        Assignment,
        ("duty_id", "item_id", "slot", "position", "state", "revision", "criteria_set"),
        (
            (duty.pk, item, slot, position, Assignment.State.OPEN.value, 1, criteria_set)
            for item, slot, position, criteria_set in slots
        ),
    )
