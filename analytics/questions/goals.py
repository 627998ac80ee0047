"""Goals of a plan of labels (METHODS 8): the precision that a study should reach, and its budget."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation.writers.tables import number

NUMBERS: dict[str, tuple[float, float]] = {
    "half_width": (0.001, 1000.0),
    "difference": (0.001, 1000.0),
    "reliability": (0.5, 0.99),
    "epsilon": (0.0, 1.0),
    "budget": (1.0, 1e9),
}
"""By goal, its lowest and its highest value; each language has the additional goal `price.LANGUAGE`."""
PRICE = "price."
PRICES = (0.001, 1e6)
SPLITS = ("neyman", "minimax")
USUAL = {"half_width": 0.25, "difference": 0.25, "reliability": 0.8, "epsilon": 0.15}
Goal = tuple[str, str]


def parsed_goal(text: str) -> Goal:
    """The name and the value of `NAME=VALUE`, the value in its canonical spelling; a refusal lists the possible
    values.
    """
    name, sign, value = (part.strip() for part in text.partition("="))
    if name == "split" and value in SPLITS:
        return name, value
    limits = PRICES if name.startswith(PRICE) and name != PRICE else NUMBERS.get(name)
    if not sign or limits is None:
        known = ", ".join((*NUMBERS, "price.LANGUAGE", "split"))
        raise _refusal(
            _("“%(text)s” is not a goal. Write NAME=VALUE with one of: %(all)s.") % {"text": text, "all": known}
        )
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if not limits[0] <= found <= limits[1]:
        low, high = (number(limit) for limit in limits)
        sentence = _("“%(name)s” is a number from %(low)s to %(high)s.")
        raise _refusal(sentence % {"name": name, "low": low, "high": high})
    return name, number(found)


def goals_of_form(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """The `goal` parameters of a form with a field for each number, and prices as “et 1.5, ar 2”."""
    pairs = [("goal", f"{name}={text}") for name in (*NUMBERS, "split") if (text := fields.get(name, "").strip())]
    for part in re.split(r"[,;\n]", fields.get("prices", "")):
        language, _space, price = part.strip().replace("=", " ").partition(" ")
        if language:
            pairs.append(("goal", f"{PRICE}{language}={price.strip()}"))
    return pairs


def prices_text(goals: Iterable[Goal]) -> str:
    """The prices among these goals in the spelling of the form."""
    return ", ".join(f"{name.removeprefix(PRICE)} {value}" for name, value in goals if name.startswith(PRICE))


def check_goals(goals: Iterable[Goal], languages: Sequence[str]) -> None:
    """Refuse a price for a language that the campaign does not have."""
    for name, _value in goals:
        if name.startswith(PRICE) and name.removeprefix(PRICE) not in languages:
            sentence = _("There are no items in “%(language)s”, so that it has no price. Languages: %(all)s.")
            raise _refusal(sentence % {"language": name.removeprefix(PRICE), "all": ", ".join(languages)})


def goal_values(goals: Iterable[Goal]) -> dict[str, Any]:
    """Goals as the fields of `analytics.stats.planning.pilot.Goals`."""
    found = dict(goals)
    values: dict[str, Any] = {**USUAL, **{name: float(found[name]) for name in NUMBERS if name in found}}
    values["price"] = {name.removeprefix(PRICE): float(text) for name, text in found.items() if name.startswith(PRICE)}
    return {**values, "minimax": found.get("split") == "minimax"}


def _refusal(sentence: str) -> Refused:
    return Refused(sentence, code="unknown_choice", fields={"goal": sentence})
