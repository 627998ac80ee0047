"""Choose items that are balanced over issues, scores, generators and lengths (S3 5.1). Pure: rows in, places out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

TIED = 1e-9  # costs that differ by less, relative to the cost, are equal


class BalanceRow(NamedTuple):
    """One item of the pool: its values by facet, in a fixed order of the facets.

    An item may have several values of a facet (several issues), each of which counts 1/k. ``pair``: the user model and
    the chatbot. ``is_clean``: no issue, and the best overall score.
    """

    key: str
    language: str
    family: str
    facets: tuple[tuple[str, ...], ...]
    pair: tuple[str, str] = ("", "")
    is_clean: bool = False


Column = tuple[str, int, str]  # language, facet, value


@dataclass(slots=True)
class _Unit:
    """What is taken or left as a whole: an item, or a family."""

    places: list[int] = field(default_factory=list)
    sizes: Counter[str] = field(default_factory=Counter)
    weights: dict[Column, float] = field(default_factory=lambda: defaultdict(float))
    clean_pairs: set[tuple[str, str]] = field(default_factory=set)

    def add(self, place: int, row: BalanceRow) -> None:
        self.places.append(place)
        self.sizes[row.language] += 1
        for facet, values in enumerate(row.facets):
            for value in values:
                self.weights[row.language, facet, value] += 1 / len(values)
        if row.is_clean:
            self.clean_pairs.add(row.pair)


def balanced_rows(rows: Sequence[BalanceRow], *, n: int, clean_first: bool, by_family: bool, seed: int) -> list[int]:
    """The places of at most ``n`` rows of every language, in order.

    1. With ``clean_first``, one random clean item for every pair of user and chatbot, the pairs in random order.
    2. Then, one at a time, the item that keeps the set most even, random among equals. With c_v the count of value v of
       a facet and K the number of its values in the language's pool, the cost of a set is the sum over the facets of
       K sum_v c_v^2, which is least when all values of each facet are equally frequent.

    ``by_family``: whole families are chosen, as long as no language gets more than ``n``; the cost is that per item.
    The same rows and seed give the same places; the order of the rows does not matter. Source: S3 5.1, whose rule
    (rarest issue first, then what helps balance scores and chatbots) has no formula.
    """
    groups: dict[str, dict[str, _Unit]] = defaultdict(dict)
    for place in sorted(range(len(rows)), key=lambda place: rows[place].key):
        row = rows[place]
        group, unit = ("", row.family) if by_family else (row.language, row.key)
        groups[group].setdefault(unit, _Unit()).add(place, row)
    chosen: list[int] = []
    for group, units in sorted(groups.items()):
        generator = random.Random(f"{seed}:{group}")
        for taken in _Selection(list(units.values()), n, generator).taken(clean_first):
            chosen += taken.places
    return sorted(chosen)


class _Selection:
    """The units of one language, or all families. Units with the same values are one row of the arrays (a profile)."""

    def __init__(self, units: Sequence[_Unit], n: int, generator: random.Random) -> None:
        import numpy as np  # pages that show a stored set start without it

        self.generator = generator
        profiles: dict[tuple[object, ...], list[_Unit]] = defaultdict(list)
        for unit in units:
            profiles[tuple(sorted(unit.weights.items())), tuple(sorted(unit.sizes.items()))].append(unit)
        self.units = list(profiles.values())
        for alike in self.units:
            generator.shuffle(alike)
        columns = sorted({column for alike in self.units for column in alike[0].weights})
        languages = sorted({language for alike in self.units for language in alike[0].sizes})
        place_of = {column: place for place, column in enumerate(columns)}
        values_of_facet = Counter((language, facet) for language, facet, _value in columns)
        self.scale = np.array([values_of_facet[language, facet] for language, facet, _value in columns], float)
        self.weights = np.zeros((len(self.units), len(columns)), order="F")
        self.sizes = np.zeros((len(self.units), len(languages)), int)
        for row, (first, *_others) in enumerate(self.units):
            for column, weight in first.weights.items():
                self.weights[row, place_of[column]] = weight
            self.sizes[row] = [first.sizes[language] for language in languages]
        self.left = np.array([len(alike) for alike in self.units])
        self.free = np.full(len(languages), n)
        self.fixed = (self.weights**2) @ self.scale
        self.linear = np.zeros(len(self.units))

    def taken(self, clean_first: bool) -> list[_Unit]:
        """The units in the order in which they are chosen."""
        import numpy as np

        chosen = self._clean_units() if clean_first else []
        clean = {id(unit) for unit in chosen}
        items = self.sizes.sum(axis=1)
        while True:
            open_rows = np.flatnonzero((self.left > 0) & (self.sizes <= self.free).all(axis=1))
            if not open_rows.size:
                return chosen
            cost = (self.linear[open_rows] + self.fixed[open_rows]) / items[open_rows]
            least = cost.min()
            equal = open_rows[cost <= least + TIED * (1 + abs(least))]
            upto = self.left[equal].cumsum()
            place = int(equal[np.searchsorted(upto, self.generator.randrange(int(upto[-1])), side="right")])
            unit = self.units[place].pop()
            while id(unit) in clean:
                unit = self.units[place].pop()
            chosen.append(self._take(place, unit))

    def _clean_units(self) -> list[_Unit]:
        there: dict[tuple[str, str], list[tuple[int, _Unit]]] = defaultdict(list)
        for row, alike in enumerate(self.units):
            for unit in alike:
                for pair in unit.clean_pairs:
                    there[pair].append((row, unit))
        pairs = sorted(there)
        self.generator.shuffle(pairs)
        chosen: list[_Unit] = []
        covered: set[tuple[str, str]] = set()
        for pair in pairs:
            fitting = [(row, unit) for row, unit in there[pair] if (self.sizes[row] <= self.free).all()]
            if pair in covered or not fitting:
                continue
            chosen.append(self._take(*self.generator.choice(fitting)))
            covered |= chosen[-1].clean_pairs
        return chosen

    def _take(self, row: int, unit: _Unit) -> _Unit:
        self.left[row] -= 1
        self.free -= self.sizes[row]
        added = self.weights[row].nonzero()[0]
        self.linear += 2 * self.weights[:, added] @ (self.scale[added] * self.weights[row, added])
        return unit
