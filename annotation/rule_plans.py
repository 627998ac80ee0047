"""What the rules of a taxonomy would add to the duties of a campaign: counts and warnings, before anything is stored.

For each panel the rules make one duty, in which an annotator rates all criteria of an item together. If criteria have
different overlaps, the first slots ask for all criteria and the last ones only for those with the larger overlap. So a
critical mark stops the rest, and nobody rates a criterion of an item twice. A rule with a sample makes a duty of its
own, so that all items of a duty have the probabilities of one draw. If a rule without a sample also gives an item this
criterion, the item has it only in the duty without a draw (probability 1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Count
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation import allocation
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Duty,
    Item,
    ItemSelection,
    Panel,
    ReferenceItem,
    Taxonomy,
)
from annotation.readers import RuleSample, TaxonomyDocument, TaxonomyRule, loose_key, names_in_items, taxonomy_from_dict
from annotation.selections import ATTRIBUTE, PLAIN, RULE, RuleDraw, draw_for_rule

Overlaps = Mapping[str, int]
"""Map each key of a criterion to how many annotators rate it."""
SECONDS_PER_RATING = 20.0
"""The assumed duration of one rating, in seconds, if the project has no ratings yet."""
FEWEST_TIMED = 10
MOST_TIMED = 500
LONGEST_NAME = 110  # of a duty, so that a number fits after it


@dataclass(slots=True)
class PlannedDuty:
    """What the rules add to one duty of a panel: a new one if ``duty`` is None.

    ``slots``: by item, the keys of the criteria of each new slot. ``new_items``: items that the duty does not have yet.
    """

    panel: Panel
    name: str
    duty: Duty | None
    criteria: tuple[str, ...]
    seats: int
    slots: dict[int, list[tuple[str, ...]]] = field(default_factory=dict)
    new_items: set[int] = field(default_factory=set)
    overlap: int = 0
    overlaps: dict[str, int] = field(default_factory=dict)
    seconds_per_rating: float = SECONDS_PER_RATING
    draw: RuleDraw | None = None

    @property
    def items(self) -> int:
        return len(self.slots)

    @property
    def assignments(self) -> int:
        return sum(map(len, self.slots.values()))

    @property
    def ratings(self) -> int:
        return sum(len(keys) for slots in self.slots.values() for keys in slots)

    @property
    def hours(self) -> float:
        """The expected hours of these ratings, all annotators together."""
        return self.ratings * self.seconds_per_rating / 3600

    @property
    def lacking(self) -> int:
        """How many more people the panel needs, so that an item can get all its annotators."""
        return max(0, self.overlap - self.seats)

    @property
    def overlaps_in_order(self) -> list[tuple[int, list[str]]]:
        """The criteria by their overlap, the largest first."""
        by_overlap: dict[int, list[str]] = defaultdict(list)
        for key in self.criteria:
            by_overlap[self.overlaps.get(key, 0)].append(key)
        return sorted(by_overlap.items(), reverse=True)


class RuleMatch(NamedTuple):
    """A rule, the number of items that match it, and the number of these in the language of one of its panels. With a
    sample, only the items of ``draw`` count for the second number."""

    rule: TaxonomyRule
    items: int
    with_panel: int
    draw: RuleDraw | None = None


@dataclass(slots=True)
class TaxonomyPlan:
    """What the rules of a taxonomy would add to a campaign, with warnings for the lead.

    ``twice``: by pair of rules that give one panel the same criterion of an item, the number of items; the larger
    overlap counts. ``already``: items with criteria that a panel rates in a duty without rules. ``beyond``: items that
    have more annotators than the rules now require; they keep them.
    """

    duties: list[PlannedDuty]
    matches: list[RuleMatch]
    items: int
    unmatched: int
    unmatched_examples: list[str]
    twice: dict[tuple[str, str], int]
    already: int
    beyond: int
    missing_panels: list[str]
    unknown_criteria: list[str]
    ungiven_criteria: list[str]
    unknown_tasks: list[tuple[str, int]]
    unknown_styles: list[tuple[str, int]]
    seconds_per_rating: float
    is_measured: bool

    @property
    def assignments(self) -> int:
        return sum(duty.assignments for duty in self.duties)

    @property
    def ratings(self) -> int:
        return sum(duty.ratings for duty in self.duties)

    @property
    def hours(self) -> float:
        return sum(duty.hours for duty in self.duties)

    @property
    def samples(self) -> list[RuleMatch]:
        """The rules with a sample."""
        return [match for match in self.matches if match.draw]

    @property
    def without_items(self) -> list[TaxonomyRule]:
        """The rules that no item matches."""
        return [match.rule for match in self.matches if not match.items]

    @property
    def without_panel(self) -> list[TaxonomyRule]:
        """The rules that items match, but only items that are not in the language of a panel."""
        return [match.rule for match in self.matches if match.items and not match.with_panel]


class _Cell(NamedTuple):
    """The values that rules compare: language, task, style, difficulty, and the other attributes in the rules."""

    language: str
    task: str
    style: str
    difficulty: str
    others: tuple[str, ...]


def plan_duties(
    *,
    campaign: Campaign,
    taxonomy: Taxonomy,
    panels: Mapping[str, Sequence[Panel]],
    selection: ItemSelection | None = None,
    seed: int | None = None,
) -> TaxonomyPlan:
    """Count what `apply_rules` would add; stores nothing.

    ``panels``: by name in the rules, the project's panels; each panel gets the items in its language. ``selection``:
    only its items are used. ``seed``: for samples without a seed of their own; a stored sample is not drawn again.
    Refused (code ``rule``): a sample by a column that no item has, or two samples that give a panel the same criteria.
    """
    allocation.require_own_selection(campaign, selection)
    return _Planning(campaign, taxonomy_from_dict(taxonomy.document), panels, selection, seed).plan()


class _Planning:
    """Computes one plan: applies the rules of a taxonomy to the campaign's items, without storing anything."""

    def __init__(
        self,
        campaign: Campaign,
        document: TaxonomyDocument,
        panels: Mapping[str, Sequence[Panel]],
        selection: ItemSelection | None,
        seed: int | None,
    ) -> None:
        self.campaign, self.document, self.panels, self.seed = campaign, document, panels, seed
        self.order = list(campaign.rubric_version.criteria.order_by("position").values_list("key", flat=True))
        known = set(self.order)
        self.given = {
            rule.name: [key for key in document.criteria_of_rule(rule) if key in known] for rule in document.rules
        }
        self.paths = {key: {node.key for node in path} for key, path in document.task_paths().items()}
        self.other_names = sorted({name for rule in document.rules for name in rule.attributes})
        self.selection = selection
        self.items = self._items_by_cell(selection)
        self.doubled: dict[tuple[str, str], set[int]] = defaultdict(set)
        self.draws: dict[str, RuleDraw] = {}

    def plan(self) -> TaxonomyPlan:
        """The whole plan."""
        rules = {cell: self._rules_of(cell) for cell in self.items}
        unmatched = [cell for cell, fitting in rules.items() if not fitting]
        self._draw_samples(rules)
        targets = self._targets(rules)
        duties = targets.planned()
        seconds, is_measured = _seconds_per_rating(self.campaign.project_id)
        for duty in duties:
            duty.seconds_per_rating = seconds
        given = {key for keys in self.given.values() for key in keys}
        named = {key for rule in self.document.rules for key in self.document.criteria_of_rule(rule)}
        return TaxonomyPlan(
            duties=duties,
            matches=self._matches(rules),
            items=sum(map(len, self.items.values())),
            unmatched=sum(len(self.items[cell]) for cell in unmatched),
            unmatched_examples=[" · ".join(filter(None, cell[:3])) for cell in unmatched[:5]],
            twice={pair: len(items) for pair, items in self.doubled.items()},
            already=targets.already,
            missing_panels=[name for name, chosen in self.panels.items() if not chosen],
            unknown_criteria=sorted(named - set(self.order)),
            ungiven_criteria=[key for key in self.order if key not in given],
            beyond=targets.beyond,
            unknown_tasks=self._unknown("task", set(self.paths), any(rule.tasks for rule in self.document.rules)),
            unknown_styles=self._unknown(
                "style", {style.key for style in self.document.styles}, any(rule.styles for rule in self.document.rules)
            ),
            seconds_per_rating=seconds,
            is_measured=is_measured,
        )

    def _items_by_cell(self, selection: ItemSelection | None) -> dict[_Cell, list[int]]:
        """The primary keys of the items that can be rated, in the dataset's order, by their cell."""
        items = Item.objects.of(self.campaign.dataset)
        items = items.exclude(pk__in=ReferenceItem.objects.filter(campaign=self.campaign).values("item"))
        if selection is not None:
            items = items.filter(pk__in=selection.selected.values("item"))
        task, style, level = (self.document.attributes[name] for name in ("task", "style", "difficulty"))
        tasks = names_in_items(self.document.tasks)
        styles = names_in_items(self.document.styles)
        found: dict[_Cell, list[int]] = defaultdict(list)
        for pk, language, attributes in items.values_list("pk", "language", "attributes").iterator():
            said = {name: _as_text(attributes.get(name)) for name in (task, style, level)}
            others = tuple(_as_text(attributes.get(name)) for name in self.other_names)
            known_task = tasks.get(loose_key(said[task]), said[task])
            known_style = styles.get(loose_key(said[style]), said[style])
            found[_Cell(language, known_task, known_style, said[level], others)].append(pk)
        return found

    def _rules_of(self, cell: _Cell) -> list[TaxonomyRule]:
        """The rules that match the items of a cell and give a criterion of the rubric."""
        return [rule for rule in self.document.rules if self._fits(rule, cell)]

    def _fits(self, rule: TaxonomyRule, cell: _Cell) -> bool:
        others = dict(zip(self.other_names, cell.others, strict=True))
        levels = {loose_key(level) for level in rule.difficulties}
        return (
            (not rule.tasks or not self.paths.get(cell.task, set()).isdisjoint(rule.tasks))
            and (not rule.styles or cell.style in rule.styles)
            and (not levels or loose_key(cell.difficulty) in levels)
            and (not rule.languages or any(_speaks(cell.language, tag) for tag in rule.languages))
            and all(others[name] in values for name, values in rule.attributes.items())
        )

    def _draw_samples(self, rules: Mapping[_Cell, Sequence[TaxonomyRule]]) -> None:
        """For each rule with a sample, draw from the items that match it."""
        by_draw: dict[str, RuleDraw] = {}
        for rule in self.document.rules:
            if rule.sample is None:
                continue
            stored_rule = self._stored_rule(rule, rule.sample)
            same = repr((stored_rule, rule.sample.seed))
            if same not in by_draw:
                among = [item for cell, fitting in rules.items() if rule in fitting for item in self.items[cell]]
                by_draw[same] = draw_for_rule(
                    campaign=self.campaign,
                    name=rule.name,
                    rule=stored_rule,
                    among=among,
                    selection=self.selection,
                    seeds=(rule.sample.seed, self.seed),
                )
            self.draws[rule.name] = by_draw[same]

    def _stored_rule(self, rule: TaxonomyRule, sample: RuleSample) -> dict[str, Any]:
        """The rule that the draw's selection stores; it shows whether the draw was made already."""
        named = {name: f"{ATTRIBUTE}{attribute}" for name, attribute in self.document.attributes.items()}
        by = [
            named.get(one) or (one if one in PLAIN else f"{ATTRIBUTE}{one.removeprefix(ATTRIBUTE)}")
            for one in sample.by
        ]
        return {
            "kind": RULE,
            "taxonomy": self.document.key,
            "conditions": {part: list(values) for part, values in rule.conditions},
            "n": sample.n,
            "unit": sample.unit,
            "by": by,
            "within": self.selection.name if self.selection else "",
        }

    def _matches(self, rules: Mapping[_Cell, Sequence[TaxonomyRule]]) -> list[RuleMatch]:
        fitting: Counter[str] = Counter()
        rated: Counter[str] = Counter()
        drawn = {name: {one.item for one in draw.drawn} for name, draw in self.draws.items()}
        for cell, of_cell in rules.items():
            for rule in of_cell:
                items = self.items[cell]
                fitting[rule.name] += len(items)
                if any(_rates(panel, cell.language) for panel in self.panels.get(rule.panel, ())):
                    taken = drawn.get(rule.name)
                    rated[rule.name] += len(items) if taken is None else sum(item in taken for item in items)
        return [
            RuleMatch(rule, fitting[rule.name], rated[rule.name], self.draws.get(rule.name))
            for rule in self.document.rules
        ]

    def _unknown(self, part: str, known: Collection[str], is_asked: bool) -> list[tuple[str, int]]:
        """The values of items that the taxonomy does not have, with the number of items; empty if no rule uses them."""
        counts: Counter[str] = Counter()
        for cell, items in self.items.items() if is_asked else ():
            if (value := getattr(cell, part)) not in known:
                counts[value] += len(items)
        return counts.most_common(5)

    def _wanted(
        self, cell: _Cell, items: Sequence[int], rules: Sequence[TaxonomyRule]
    ) -> dict[Panel, dict[_Queue, dict[str, int]]]:
        """Map each panel and queue of its duty to the overlap of each criterion for some items of a cell.

        Rules without a sample come first: their criteria are in a duty in which every item has the probability 1.
        """
        wanted: dict[Panel, dict[_Queue, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        givers: dict[tuple[int, str], tuple[_Queue, str]] = {}
        for rule in sorted(rules, key=lambda rule: rule.sample is not None):
            draw = self.draws.get(rule.name)
            own = _Queue(rule.duty or (draw.name if draw else ""), draw.name if draw else "")
            for panel in self.panels.get(rule.panel, ()):
                if not _rates(panel, cell.language):
                    continue
                for key in self.given[rule.name]:
                    queue, giver = givers.setdefault((panel.pk, key), (own, rule.name))
                    if giver != rule.name:
                        self.doubled[giver, rule.name].update(items)
                    overlaps = wanted[panel][queue]
                    overlaps[key] = max(overlaps.get(key, 0), rule.overlap)
        return wanted

    def _require_one_draw(self, rules: Sequence[TaxonomyRule]) -> None:
        """Refuse two samples that give one panel the same criterion of an item: it would be missing in one of them."""
        sampled = [rule for rule in rules if rule.sample]
        for rule, other in combinations(sampled, 2):
            is_same = self.draws[rule.name] is self.draws[other.name] and rule.duty == other.duty
            if not is_same and rule.panel == other.panel and {*self.given[rule.name]} & {*self.given[other.name]}:
                sentence = _(
                    "“%(first)s” and “%(second)s” draw different samples for the same criteria and panel. Give them "
                    "the same conditions, sample and task, or other criteria."
                )
                raise Refused(sentence % {"first": rule.name, "second": other.name}, code="rule")

    def _parts(
        self, cell: _Cell, rules: Sequence[TaxonomyRule]
    ) -> Iterator[tuple[Sequence[int], Sequence[TaxonomyRule]]]:
        """The items of a cell with the rules that give them criteria, grouped by the draws that contain them."""
        sampled = [rule for rule in rules if rule.sample]
        if not sampled:
            yield self.items[cell], rules
            return
        self._require_one_draw(sampled)
        drawn = {rule.name: {one.item for one in self.draws[rule.name].drawn} for rule in sampled}
        parts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for item in self.items[cell]:
            parts[tuple(name for name, items in drawn.items() if item in items)].append(item)
        for names, items in parts.items():
            yield items, [rule for rule in rules if rule.sample is None or rule.name in names]

    def _targets(self, rules: Mapping[_Cell, Sequence[TaxonomyRule]]) -> _Targets:
        """The duties of all panels, with what is added to them."""
        wanted = [
            (items, self._wanted(cell, items, giving))
            for cell, fitting in rules.items()
            for items, giving in self._parts(cell, fitting)
        ]
        panels = {panel for _items, by_panel in wanted for panel in by_panel}
        targets = _Targets(self.campaign, panels, self.order, self.selection, self.draws)
        for items, by_panel in wanted:
            for panel, by_queue in by_panel.items():
                for queue, overlaps in by_queue.items():
                    for item in items:
                        targets.add(panel, queue, item, overlaps)
        return targets


class _Queue(NamedTuple):
    """The key of a panel's duty: its name in the rules, and the rule with the sample that draws its items."""

    label: str
    draw: str


class _Targets:
    """The duties of some panels in a campaign, with their present slots and the added ones."""

    def __init__(
        self,
        campaign: Campaign,
        panels: Collection[Panel],
        order: Sequence[str],
        selection: ItemSelection | None,
        draws: Mapping[str, RuleDraw],
    ) -> None:
        self.order, self.selection, self.draws = order, selection, draws
        seats = Panel.objects.filter(pk__in=[panel.pk for panel in panels]).annotate(count=Count("seats"))
        self.seats = dict(seats.values_list("pk", "count"))
        duties = Duty.objects.filter(campaign=campaign, panel__in=panels).prefetch_related("criteria")
        self.duties = list(duties.select_related("panel").order_by("pk"))
        self.keys = {duty.pk: [criterion.key for criterion in duty.criteria.all()] for duty in self.duties}
        self.by_panel: dict[int, list[Duty]] = defaultdict(list)
        for duty in self.duties:
            self.by_panel[duty.panel_id].append(duty)
        self.slots: dict[tuple[int, int], int] = defaultdict(int)
        self.has = self._present()
        self.additions: dict[int, PlannedDuty] = {}
        self.new: dict[tuple[int, str, str], dict[int, Overlaps]] = defaultdict(dict)
        self.panels = {panel.pk: panel for panel in panels}
        self.already = self.beyond = 0

    def _present(self) -> dict[int, dict[int, Counter[str]]]:
        """Map each duty and item to how many slots ask for each criterion."""
        sets = {duty.pk: duty.criteria_sets for duty in self.duties}
        slots = Assignment.objects.filter(duty__in=self.duties).order_by().values("duty", "item", "criteria_set")
        has: dict[int, dict[int, Counter[str]]] = {duty.pk: defaultdict(Counter) for duty in self.duties}
        for row in slots.annotate(count=Count("pk")).iterator():
            number = row["criteria_set"]
            keys = sets[row["duty"]][number - 1] if number else self.keys[row["duty"]]
            has[row["duty"]][row["item"]].update(dict.fromkeys(keys, row["count"]))
            self.slots[row["duty"], row["item"]] += row["count"]
        return has

    def add(self, panel: Panel, queue: _Queue, item: int, wanted: Overlaps) -> None:
        """Add the missing slots for these criteria of an item to the panel's duties."""
        missing = dict(wanted)
        by_hand = beyond = False
        for duty in self.by_panel[panel.pk]:
            present: Overlaps = self.has[duty.pk].get(item, {})
            shared = [key for key in missing if key in present]
            lacking = {key: missing[key] - present[key] for key in shared if missing[key] > present[key]}
            beyond = beyond or any(missing[key] < present[key] for key in shared)
            if duty.taxonomy_id is None:
                by_hand = by_hand or bool(shared)
            elif lacking:
                self._grow(duty, item, lacking, present)
            for key in shared:
                del missing[key]
        self.already += by_hand
        self.beyond += beyond
        if not missing:
            return
        base = _base_name(panel, queue.label)
        draw = self.draws.get(queue.draw)
        chosen = (draw.stored if draw else self.selection) or None
        is_new_draw = draw is not None and draw.stored is None
        fitting = (duty for duty in self.by_panel[panel.pk] if self._takes(duty, base, item, missing, chosen))
        if is_new_draw or (duty_with_room := next(fitting, None)) is None:
            self.new[panel.pk, base, queue.draw][item] = missing
        else:
            self._grow(duty_with_room, item, missing, {})

    def _takes(self, duty: Duty, base: str, item: int, criteria: Overlaps, chosen: ItemSelection | None) -> bool:
        """Whether the item can be added to a duty. Items of another draw have a duty of their own, so that all items of
        one have the probabilities of one draw."""
        return (
            duty.taxonomy_id is not None
            and _is_called(duty.name, base)
            and duty.chosen_id == (chosen and chosen.pk)
            and item not in self.has[duty.pk]
            and criteria.keys() <= set(self.keys[duty.pk])
        )

    def _grow(self, duty: Duty, item: int, lacking: Overlaps, present: Overlaps) -> None:
        if duty.pk not in self.additions:
            criteria = tuple(self.keys[duty.pk])
            self.additions[duty.pk] = PlannedDuty(duty.panel, duty.name, duty, criteria, self.seats[duty.panel_id])
        self._put(self.additions[duty.pk], item, lacking, present)
        if not present:
            self.additions[duty.pk].new_items.add(item)

    def _put(self, planned: PlannedDuty, item: int, lacking: Overlaps, present: Overlaps) -> None:
        planned.slots[item] = list(_layers(lacking, self.order))
        for key, count in lacking.items():
            planned.overlaps[key] = max(planned.overlaps.get(key, 0), count + present.get(key, 0))
        before = self.slots[planned.duty.pk, item] if planned.duty else 0
        planned.overlap = max(planned.overlap, before + len(planned.slots[item]))

    def planned(self) -> list[PlannedDuty]:
        """The added slots by duty: existing duties first, then new ones in the order of their panels."""
        made = []
        for (panel, base, draw), items in self.new.items():
            keys = {key for overlaps in items.values() for key in overlaps}
            criteria = tuple(key for key in self.order if key in keys)
            duty = PlannedDuty(self.panels[panel], base, None, criteria, self.seats[panel], draw=self.draws.get(draw))
            for item, overlaps in items.items():
                self._put(duty, item, overlaps, {})
            duty.new_items = set(items)
            made.append(duty)
        return [*self.additions.values(), *sorted(made, key=lambda duty: duty.name)]


def _layers(overlaps: Overlaps, order: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The criteria of each slot: the first slots have all, the last ones those with the largest overlap."""
    for slot in range(1, max(overlaps.values()) + 1):
        yield tuple(key for key in order if overlaps.get(key, 0) >= slot)


def _base_name(panel: Panel, label: str) -> str:
    return f"{panel.name}: {label}"[:LONGEST_NAME] if label else panel.name[:LONGEST_NAME]


def _is_called(name: str, base: str) -> bool:
    """Whether a duty has this name, or this name and a number."""
    return name == base or (name.startswith(f"{base} ") and name.removeprefix(f"{base} ").isdigit())


def _speaks(language: str, tag: str) -> bool:
    return language == tag or language.startswith(f"{tag}-")


def _rates(panel: Panel, language: str) -> bool:
    """Whether the panel rates items in this language; one without a language rates all (`allocation.items_for`)."""
    return not panel.language or _speaks(language, panel.language)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _seconds_per_rating(project: int) -> tuple[float, bool]:
    """The seconds of a rating in this project: the median of its latest annotations, if there are enough."""
    timed = Annotation.objects.filter(campaign__project=project, seconds__gt=0, assignment__isnull=False)
    latest = timed.annotate(count=Count("ratings")).filter(count__gt=0).order_by("-pk")[:MOST_TIMED]
    timings: Any = latest.values_list("seconds", "count")
    seconds = [spent / ratings for spent, ratings in timings]
    return (median(seconds), True) if len(seconds) >= FEWEST_TIMED else (SECONDS_PER_RATING, False)
