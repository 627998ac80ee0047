"""Random, stratified and by-family samples of a dataset, with the inclusion probability of every item. Pure."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple


class SampleRow(NamedTuple):
    """One item of the pool. ``family``: the scenario that it shares with other languages, or its own id."""

    key: str
    language: str
    generator: str
    family: str
    stratum: str = ""


class DrawnRow(NamedTuple):
    """A chosen row, by its place in the pool. Without a ``probability`` it was chosen for balance."""

    place: int
    probability: float | None
    stratum: str


class MixedFamily(ValueError):
    """A family with items in several strata: it can't be drawn whole from one of them."""


def whole_families(rows: Sequence[SampleRow], languages: Collection[str]) -> set[str]:
    """The families that have an item by each of their generators in each of these languages, as often in each."""
    cells: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in rows:
        cells[row.family][row.language, row.generator] += 1
    whole = set()
    for family, counts in cells.items():
        by_language = {tag: {g: n for (other, g), n in counts.items() if other == tag} for tag in languages}
        first, *others = by_language.values()
        if first and all(other == first for other in others):
            whole.add(family)
    return whole


def draw_rows(rows: Sequence[SampleRow], *, n: int, by_family: bool, seed: int) -> list[DrawnRow]:
    """At most ``n`` rows of every language at random without replacement, as evenly over the strata as they allow.

    Row i of stratum h with N_h units has the probability E[n_h] / N_h. n_h differs by at most one between strata with
    enough units; which of them get one more is drawn too, so that E[n_h] need not be whole. ``by_family``: the units
    are families (all must be whole), of which n // (most items of a family in a language) are drawn. The draw depends
    on the keys and the seed, not on the order of the rows. Raises ``MixedFamily``.
    """
    units: dict[str, dict[str, dict[str, list[int]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    strata: dict[str, str] = {}
    for place in sorted(range(len(rows)), key=lambda place: rows[place].key):
        row = rows[place]
        if by_family and strata.setdefault(row.family, row.stratum) != row.stratum:
            raise MixedFamily(row.family)
        group, unit = ("", row.family) if by_family else (row.language, row.key)
        units[group][row.stratum][unit].append(place)
    drawn: list[DrawnRow] = []
    wanted = n // most_of_family(rows) if by_family and rows else n
    for group, by_stratum in sorted(units.items()):
        generator = random.Random(f"{seed}:{group}")
        names = sorted(by_stratum)
        numbers, expected = spread_evenly(wanted, [len(by_stratum[name]) for name in names], generator)
        for name, number, mean in zip(names, numbers, expected, strict=True):
            there = by_stratum[name]
            for unit in generator.sample(list(there), number):
                drawn += [DrawnRow(place, mean / len(there), name) for place in there[unit]]
    return sorted(drawn)


def most_of_family(rows: Sequence[SampleRow]) -> int:
    """The largest number of items that a family has in one language."""
    return max(Counter((row.family, row.language) for row in rows).values(), default=0)


def spread_evenly(n: int, sizes: Sequence[int], generator: random.Random) -> tuple[list[int], list[float]]:
    """Spread ``n`` over strata of these sizes: all get the same, as far as they go; then the number expected of each.

    What is left after equal shares goes to strata drawn at random, one each: with r left for m strata, the expected
    number of each is its share + r / m.
    """
    shares = [0] * len(sizes)
    left, going = min(n, sum(sizes)), [place for place, size in enumerate(sizes) if size]
    while going and left >= len(going):
        step = min(left // len(going), *(sizes[place] - shares[place] for place in going))
        for place in going:
            shares[place] += step
        left -= step * len(going)
        going = [place for place in going if shares[place] < sizes[place]]
    expected = [float(share) for share in shares]
    for place in going:
        expected[place] += left / len(going)
    for place in generator.sample(going, left):
        shares[place] += 1
    return shares, expected
