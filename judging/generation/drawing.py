"""The parameters of a family, drawn from a digest. Pure.

A draw depends on the spec, the seed and the number of the family, and on nothing else: it is the same in every
language, for every generator, and on every machine.
"""

from __future__ import annotations

import hashlib

from judging.generation.specs import Spec


def draw_parameters(spec: Spec, *, seed: int, number: int) -> dict[str, str | int]:
    """A level of each parameter, with the probabilities that their weights give."""
    digest = spec.digest
    drawn: dict[str, str | int] = {}
    for parameter in spec.parameters:
        left = _unit(digest, seed, number, parameter.name) * sum(level.weight for level in parameter.levels)
        possible = [level for level in parameter.levels if level.weight > 0]
        chosen = possible[-1]
        for level in possible:
            if left < level.weight:
                chosen = level
                break
            left -= level.weight
        drawn[parameter.name] = chosen.value
    return drawn


def _unit(digest: str, seed: int, number: int, name: str) -> float:
    """A number in [0, 1)."""
    hashed = hashlib.sha256(f"{digest}\x1f{seed}\x1f{number}\x1f{name}".encode()).digest()
    return int.from_bytes(hashed[:6]) / 2**48
