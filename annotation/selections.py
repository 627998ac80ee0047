"""Selections: a part of a campaign's items, chosen once by a rule or a list, for judges and panels to rate.

A rule is a JSON object, of one `kind`:

- ``draw``: ``n`` units from every stratum, at random without replacement. ``by`` names what makes the strata (language,
  generator, scenario, or ``attribute:KEY``); ``unit`` is ``item``, or ``scenario``: a drawn scenario has all its items.
- ``filter``: every item that matches.
- ``duty``: the items of a duty of the campaign, or of one of its ``waves``, with the probabilities of that draw.
- ``list``: the items with these ids.
- ``rule``: the items drawn by the sample of a taxonomy's rule; only `rule_plans` stores this kind.

``filter`` also limits a draw: by column, the allowed values. The probability of an item is the probability of its unit:
n / N in a stratum of N units, 1 without a draw. The same rule and seed give the same items.
"""

from __future__ import annotations

import json
import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.inputs import LARGEST_KEY, is_storable, storable
from accounts.models import User
from accounts.refusals import Refused
from annotation import bulk
from annotation.allocation import SEEDS
from annotation.models import Campaign, Duty, Item, ItemSelection, SelectedItem, Selection
from annotation.writers.tables import nested, number

PLAIN = ("language", "generator", "scenario")
ATTRIBUTE = "attribute:"
UNITS = ("item", "scenario")
FIELDS = {"draw": {"n", "by", "unit", "filter"}, "filter": {"filter"}, "duty": {"duty", "wave"}, "list": {"items"}}
RULE = "rule"
ALIGNMENT = "alignment"
"""The kind of rule of one side of an alignment: only an alignment stores it; people can't request it."""
MOST_NAMED = 5  # unknown ids and values that a refusal names
MOST_SHOWN = 100  # characters of a wrong name that a refusal repeats
STRATUM_LENGTH = 400
NOTHING = "—"  # the stratum of items without a value


class DrawnItem(NamedTuple):
    """An item that a rule chose, by primary key and external id. `unit` is the drawn unit: an id or a scenario."""

    item: int
    external_id: str
    probability: float
    stratum: str
    unit: str


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum of a selection: the number of its units, of the chosen units, and of the items of these."""

    name: str
    available: int
    chosen: int
    items: int

    @property
    def is_short(self) -> bool:
        """Whether all units of the stratum have been chosen."""
        return self.available == self.chosen


@dataclass(slots=True)
class RuleDraw:
    """The items that the sample of a rule draws. Rules with the same conditions and the same sample share one draw.

    ``rule`` is what its selection stores; ``stored``: that selection, if rules have been applied before.
    """

    name: str
    rule: dict[str, Any]
    seed: int
    drawn: list[DrawnItem]
    stored: ItemSelection | None

    @property
    def in_words(self) -> str:
        return draw_in_words(self.rule)

    @property
    def strata(self) -> list[Stratum]:
        """The number of units and of drawn units, by stratum."""
        return summarise(self.drawn)


def select(
    *, campaign: Campaign, name: str, rule: Mapping[str, Any], seed: int | None = None, actor: User | None = None
) -> ItemSelection:
    """Choose items of the campaign by a rule and store them under a name. Without a seed a random one is drawn.

    Refused: a rule with a mistake, a rule that no item matches, a name that exists already.
    """
    access.refuse_archived(campaign.project)
    stored_seed = new_seed() if seed is None else seed
    checked = checked_rule(campaign, rule)
    drawn = draw_items(campaign=campaign, rule=checked, seed=stored_seed)
    rows = [(row.item, row.probability, row.stratum) for row in drawn]
    return store_selection(campaign=campaign, name=name, rule=checked, seed=stored_seed, rows=rows, actor=actor)


def store_selection(
    *,
    campaign: Campaign,
    name: str,
    rule: Mapping[str, Any],
    seed: int,
    rows: Iterable[tuple[int, float, str]],
    actor: User | None = None,
) -> ItemSelection:
    """Store items that ``rule`` chose, each with its probability and stratum. Refused: a name that exists already."""
    try:
        with transaction.atomic():
            selection = ItemSelection.objects.create(
                campaign=campaign, name=name, rule=dict(rule), seed=seed, created_by=actor
            )
            bulk.insert(
                SelectedItem,
                ("selection_id", "item_id", "probability", "stratum"),
                ((selection.pk, *row) for row in rows),
            )
            audit.record(actor=actor, project=campaign.project, verb="select items", subject=selection)
    except IntegrityError:
        taken = _("This campaign already has a selection called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken}) from None
    return selection


def remove_selection(*, selection: ItemSelection, actor: User | None = None) -> None:
    """Remove a selection. Refused (code ``in_use``) if a run or a duty uses it."""
    sentence = _("“%(selection)s” is used by a run or a task, so it can't be removed.") % {"selection": selection}
    project = selection.campaign.project
    try:
        with transaction.atomic():
            audit.record(actor=actor, project=project, verb="remove selection", subject=selection)
            SelectedItem.objects.filter(selection=selection).delete()
            selection.delete()
    except IntegrityError:  # also ProtectedError
        raise Refused(sentence, code="in_use") from None


def new_seed() -> int:
    """A random seed for a draw."""
    return secrets.randbelow(SEEDS)


def selected_items(selection: ItemSelection) -> QuerySet[Item]:
    """The items of a selection in the dataset's order."""
    chosen = SelectedItem.objects.filter(selection=selection).values("item")
    return Item.objects.filter(pk__in=chosen).order_by("ordinal")


def strata_of(selection: ItemSelection) -> list[Stratum]:
    """The content of a stored selection, by stratum."""
    return summarise(items_as_drawn(selection))


def items_as_drawn(selection: ItemSelection) -> list[DrawnItem]:
    """The items of a stored selection, in the dataset's order."""
    by_scenario = selection.rule.get("unit") == "scenario"
    columns = ("item", "item__external_id", "probability", "stratum", "item__scenario")
    rows = SelectedItem.objects.filter(selection=selection).order_by("item__ordinal").values_list(*columns)
    return [
        DrawnItem(item, external, chance, stratum, (by_scenario and scenario) or external)
        for item, external, chance, stratum, scenario in rows
    ]


def summarise(drawn: Iterable[DrawnItem]) -> list[Stratum]:
    """The strata of these items, in the order of their first items. n units drawn with probability p are of n / p."""
    units: dict[str, dict[str, float]] = defaultdict(dict)
    items = Counter[str]()
    for row in drawn:
        units[row.stratum][row.unit] = row.probability
        items[row.stratum] += 1
    return [
        Stratum(name, available=round(sum(1 / chance for chance in own.values())), chosen=len(own), items=items[name])
        for name, own in units.items()
    ]


def selection_columns(campaign: Campaign) -> list[str]:
    """The columns by which a rule can choose items: the plain columns, and `attribute:KEY` for each attribute."""
    having = Item.objects.of(campaign.dataset).exclude(attributes={}).order_by().values_list("attributes", flat=True)
    keys = {key for attributes in having.iterator() for key in attributes}
    return [*PLAIN, *(f"{ATTRIBUTE}{key}" for key in sorted(keys))]


def rule_in_words(rule: Mapping[str, Any]) -> str:
    """A stored rule as a sentence for the page of its selection."""
    kind = rule.get("kind")
    if kind == ALIGNMENT:
        return _("The %(side)s side of the alignment “%(alignment)s”: whole scenarios, at random.") % rule
    if kind == RULE:
        within = _("Within “%s”.") % rule["within"] if rule.get("within") else ""
        fits = "; ".join(f"{part} = {', '.join(values)}" for part, values in rule["conditions"].items())
        drawn = draw_in_words(rule)
        return " ".join(filter(None, (drawn, _("Only items with %s.") % fits if fits else "", within)))
    if kind == "duty":
        sentence = _("The items of the task “%(duty)s”, wave %(wave)d.") if "wave" in rule else ""
        return (sentence or _("The items of the task “%(duty)s”.")) % rule
    if kind == "list":
        return _("A list of %d ids.") % len(rule["items"])
    fits = "; ".join(f"{column} = {', '.join(values)}" for column, values in rule["filter"].items())
    narrowed = _("Only items with %s.") % fits if fits else ""
    if kind == "filter":
        return narrowed or _("Every item.")
    return f"{draw_in_words(rule)} {narrowed}".strip()


def draw_in_words(draw: Mapping[str, Any]) -> str:
    """The number and kind of the units of a draw, and its strata, as a sentence."""
    unit = _("scenarios") if draw["unit"] == "scenario" else _("items")
    by = " x ".join(column.removeprefix(ATTRIBUTE) for column in draw["by"])
    drawn = _("%(n)d %(unit)s of every %(by)s, at random.") if by else _("%(n)d %(unit)s, at random.")
    return drawn % {"n": draw["n"], "unit": unit, "by": by}


# --- rules ------------------------------------------------------------------------------------------------------------
def checked_rule(campaign: Campaign, rule: Mapping[str, Any]) -> dict[str, Any]:
    """The rule with its defaults filled in and a duty by its name; refuses an invalid rule."""
    kind = rule.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise _wrong(_("A selection is one of: %(kinds)s.") % {"kinds": ", ".join(FIELDS)}, "kind")
    if unknown := sorted(map(str, rule.keys() - FIELDS[kind] - {"kind"})):
        sentence = _("A selection by %(kind)s has no “%(field)s”. It has: %(fields)s.")
        fields = ", ".join(sorted(FIELDS[kind]))
        raise _wrong(sentence % {"kind": kind, "field": unknown[0], "fields": fields}, "rule")
    if kind == "duty":
        return {"kind": kind, **_duty_rule(campaign, rule)}
    if kind == "list":
        return {"kind": kind, "items": _texts(rule.get("items"), "items")}
    known = selection_columns(campaign)
    checked: dict[str, Any] = {"kind": kind, "filter": _filter(rule.get("filter") or {}, known)}
    return checked | (_draw_rule(rule, known) if kind == "draw" else {})


def _draw_rule(rule: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    n, unit = rule.get("n"), rule.get("unit", "item")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 1_000_000:
        raise _wrong(_("Give the number to draw from every stratum, 1 or more."), "n")
    if unit not in UNITS:
        raise _wrong(_("What is drawn is one of: %(units)s.") % {"units": ", ".join(UNITS)}, "unit")
    by = list(dict.fromkeys(_texts(rule.get("by", ()), "by", needed=False)))
    for column in by:
        _require_known(column, known, "by")
    return {"n": n, "unit": unit, "by": by}


def _filter(given: Any, known: Sequence[str]) -> dict[str, list[str]]:
    if not isinstance(given, Mapping):
        raise _wrong(_("A filter names columns and, for each, the values that fit."), "filter")
    for column in given:
        _require_known(column, known, "filter")
    return {str(column): _texts(values, "filter") for column, values in given.items()}


def _require_known(column: Any, known: Sequence[str], field: str) -> None:
    if column not in known:
        shown = storable(str(column))[:MOST_SHOWN]
        sentence = _("These items have no “%(column)s”. They have: %(columns)s.")
        raise _wrong(sentence % {"column": shown, "columns": ", ".join(known)}, field)


def _texts(given: Any, field: str, *, needed: bool = True) -> list[str]:
    """A list of different texts; a single text becomes a list of one text."""
    texts = [given] if isinstance(given, str) else given
    whole = isinstance(texts, list | tuple) and all(isinstance(text, str) and is_storable(text) for text in texts)
    if not whole or (needed and not texts):
        raise _wrong(_("“%(field)s” must be a list of texts.") % {"field": field}, field)
    return list(dict.fromkeys(texts))


def _duty_rule(campaign: Campaign, rule: Mapping[str, Any]) -> dict[str, Any]:
    named, wave = rule.get("duty"), rule.get("wave")
    duties = Duty.objects.filter(campaign=campaign)
    pk = named if type(named) is int and abs(named) <= LARGEST_KEY else None
    named_so = duties.filter(name=named) if isinstance(named, str) and is_storable(named) else duties.none()
    duty = (named_so if pk is None else duties.filter(pk=pk)).first()
    if duty is None:
        shown = storable(str(named))[:MOST_SHOWN]
        there_are = ", ".join(duties.values_list("name", flat=True)) or _("none")
        sentence = _("This campaign has no task “%(duty)s” (there are: %(duties)s).")
        raise _wrong(sentence % {"duty": shown, "duties": there_are}, "duty")
    if wave is not None and (not isinstance(wave, int) or isinstance(wave, bool) or wave < 1):
        raise _wrong(_("A wave is a number, 1 or more."), "wave")
    return {"duty": duty.name, **({} if wave is None else {"wave": wave})}


def _wrong(sentence: str, field: str) -> Refused:
    return Refused(sentence, code="rule", fields={field: sentence})


# --- drawing ----------------------------------------------------------------------------------------------------------
class _Candidate(NamedTuple):
    item: int
    external_id: str
    values: tuple[str, ...]
    scenario: str


def draw_items(*, campaign: Campaign, rule: Mapping[str, Any], seed: int) -> list[DrawnItem]:
    """The items that a checked rule chooses, in the dataset's order; stores nothing. Refuses to choose none."""
    kind = rule["kind"]
    if kind == "duty":
        drawn = _of_duty(campaign, rule)
    elif kind == "list":
        drawn = _of_list(campaign, rule["items"])
    else:
        by = rule.get("by", ())
        candidates = _candidates(campaign, by, rule["filter"])
        drawn = _drawn(candidates, rule, seed) if kind == "draw" else [_whole(candidate) for candidate in candidates]
    if not drawn:
        raise _wrong(_("No item of “%(dataset)s” fits.") % {"dataset": campaign.dataset}, "rule")
    return drawn


def draw_among(*, campaign: Campaign, among: Collection[int], draw: Mapping[str, Any], seed: int) -> list[DrawnItem]:
    """``n`` units of every stratum of these items (primary keys), in the dataset's order; stores nothing.

    ``draw``: its ``n``, ``by`` and ``unit`` as in a rule. Refused: a column that no item of the campaign has.
    """
    for column in draw["by"]:
        if column not in PLAIN:
            _require_known(column, selection_columns(campaign), "by")
    inside = set(among)
    return _drawn([one for one in _candidates(campaign, draw["by"], {}) if one.item in inside], draw, seed)


def draw_for_rule(
    *,
    campaign: Campaign,
    name: str,
    rule: dict[str, Any],
    among: Collection[int],
    selection: ItemSelection | None,
    seeds: tuple[int | None, int | None],
) -> RuleDraw:
    """Draw from these items by the sample of a taxonomy's rule; if its draw is stored already, that draw is used.

    ``selection``: the selection that the items are from; the probabilities are multiplied. ``seeds``: the rule's own
    seed, and the seed to use if the rule has none; without both, a random seed.
    """
    for one in ItemSelection.objects.filter(campaign=campaign, rule__kind=RULE).order_by("-pk"):
        if one.rule == rule and seeds[0] in (None, one.seed):
            return RuleDraw(name, rule, one.seed, items_as_drawn(one), one)
    seed = next((given for given in seeds if given is not None), None)
    seed = new_seed() if seed is None else seed
    drawn = draw_among(campaign=campaign, among=among, draw=rule, seed=seed)
    if selection is not None:
        rows: Any = selection.selected.values_list("item", "probability", "stratum")
        before = {item: (probability, stratum) for item, probability, stratum in rows}
        drawn = [_within(one, *before[one.item]) for one in drawn]
    return RuleDraw(name, rule, seed, drawn, None)


def _within(drawn: DrawnItem, probability: float, stratum: str) -> DrawnItem:
    """An item that was drawn twice, from the dataset and then from that selection; the probabilities multiply."""
    both = " · ".join(filter(None, (stratum, drawn.stratum)))[:STRATUM_LENGTH]
    return drawn._replace(probability=drawn.probability * probability, stratum=both)


def _candidates(campaign: Campaign, by: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> list[_Candidate]:
    items = Item.objects.of(campaign.dataset)
    for column in PLAIN:
        if column in wanted:
            items = items.filter(**{f"{column}__in": wanted[column]})
    inside = {column: set(values) for column, values in wanted.items() if column.startswith(ATTRIBUTE)}
    found = []
    for pk, external, language, generator, scenario, attributes in items.values_list(
        "pk", "external_id", *PLAIN, "attributes"
    ).iterator():
        plain = {"language": language, "generator": generator, "scenario": scenario}
        if all(column_value(column, plain, attributes) in values for column, values in inside.items()):
            values = tuple(column_value(column, plain, attributes) or NOTHING for column in by)
            found.append(_Candidate(pk, external, values, scenario or external))
    return found


def column_value(column: str, plain: Mapping[str, str], attributes: Mapping[str, Any]) -> str:
    """The value of an item in a column, as text."""
    if not column.startswith(ATTRIBUTE):
        return plain[column]
    value = attributes.get(column.removeprefix(ATTRIBUTE))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return value if isinstance(value, str) else nested(value)


def _whole(candidate: _Candidate) -> DrawnItem:
    return DrawnItem(candidate.item, candidate.external_id, 1.0, "", candidate.external_id)


def _drawn(candidates: Sequence[_Candidate], rule: Mapping[str, Any], seed: int) -> list[DrawnItem]:
    """``n`` units of every stratum; if a stratum has at most ``n`` units, all of them, with probability 1."""
    by_scenario = rule["unit"] == "scenario"
    strata: dict[tuple[str, ...], dict[str, list[_Candidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        unit = candidate.scenario if by_scenario else candidate.external_id
        strata[candidate.values][unit].append(candidate)
    if by_scenario:
        _require_undivided(strata, rule["by"])
    chosen: dict[int, DrawnItem] = {}
    for values, units in strata.items():
        n = min(rule["n"], len(units))
        stratum = " · ".join(values)[:STRATUM_LENGTH]
        generator = random.Random(f"{seed}:{json.dumps(values, ensure_ascii=False)}")
        for unit in generator.sample(list(units), n):
            for candidate in units[unit]:
                row = DrawnItem(candidate.item, candidate.external_id, n / len(units), stratum, unit)
                chosen[candidate.item] = row
    return [chosen[candidate.item] for candidate in candidates if candidate.item in chosen]


def _require_undivided(strata: Mapping[tuple[str, ...], Mapping[str, Any]], by: Sequence[str]) -> None:
    """Refuse a scenario with items in several strata, because a scenario is drawn with all its items."""
    home: dict[str, tuple[str, ...]] = {}
    for values, units in strata.items():
        for unit in units:
            if home.setdefault(unit, values) != values:
                differing = [column for column, one, other in zip(by, home[unit], values, strict=True) if one != other]
                sentence = _(
                    "Items of the scenario “%(scenario)s” differ in %(columns)s. Leave this out: a drawn scenario "
                    "has all its items."
                )
                raise _wrong(sentence % {"scenario": unit, "columns": ", ".join(differing)}, "by")


def _of_duty(campaign: Campaign, rule: Mapping[str, Any]) -> list[DrawnItem]:
    rows = Selection.objects.filter(duty__campaign=campaign, duty__name=rule["duty"])
    if "wave" in rule:
        rows = rows.filter(wave=rule["wave"])
    columns = ("item", "item__external_id", "probability", "stratum")
    ordered = rows.order_by("item__ordinal").values_list(*columns)
    return [DrawnItem(item, external, chance, stratum, external) for item, external, chance, stratum in ordered]


def _of_list(campaign: Campaign, ids: Sequence[str]) -> list[DrawnItem]:
    wanted = set(ids)
    pairs = Item.objects.of(campaign.dataset).values_list("pk", "external_id")
    drawn = [DrawnItem(pk, external, 1.0, "", external) for pk, external in pairs.iterator() if external in wanted]
    known = {row.external_id for row in drawn}
    if missing := [named for named in ids if named not in known]:
        sentence = _("“%(dataset)s” has no item %(items)s (%(count)d of the ids are unknown).")
        named = ", ".join(f"“{external}”" for external in missing[:MOST_NAMED])
        about = {"dataset": campaign.dataset, "items": named, "count": len(missing)}
        raise _wrong(sentence % about, "items")
    return drawn
