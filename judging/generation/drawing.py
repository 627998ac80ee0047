"""The parameters of a family, drawn from a digest. Pure.

A draw depends on the spec, the seed and the number of the family, and on nothing else: it is the same in every
language, for every generator, and on every machine.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from judging.generation.specs import Spec


def draw_parameters(spec: Spec, *, seed: int, number: int) -> dict[str, str | int]:
    """A level of each parameter, with the probabilities that their weights give."""
    return draw_families(spec, seed=seed, numbers=[number])[0]


def draw_families(spec: Spec, *, seed: int, numbers: Iterable[int]) -> list[dict[str, str | int]]:
    """The same for each of these families."""
    digest = spec.digest
    tables = []
    for parameter in (parameter for parameter in spec.parameters if not parameter.source):
        possible = [level for level in parameter.levels if level.weight > 0]
        tables.append(
            (parameter.name, [level.value for level in possible], [*accumulate(level.weight for level in possible)])
        )
    return [
        {
            name: values[min(bisect_right(ends, _unit(digest, seed, number, name) * ends[-1]), len(values) - 1)]
            for name, values, ends in tables
        }
        for number in numbers
    ]


def _unit(digest: str, seed: int, number: int, name: str) -> float:
    """A number in [0, 1)."""
    hashed = hashlib.sha256(f"{digest}\x1f{seed}\x1f{number}\x1f{name}".encode()).digest()
    return int.from_bytes(hashed[:6]) / 2**48
