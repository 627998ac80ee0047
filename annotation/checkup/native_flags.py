"""The language identifier beside the annotators who read the same items: its errors, and a threshold corrected by them.

An annotator flags an item as not in their language when they skip it; who rates it, does not. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, log
from typing import Any

from analytics.stats.declared.declaring import translatable

FEWEST_FLAGS = 10
FEWEST_OTHERS = 20
"""Flagged items, and other items that were read, from which on the threshold of a language is corrected."""
LEAST_PROBABILITY = 1e-300
USUAL_BECAUSE: dict[str, str] = {
    "few_flags": translatable("too few items are flagged"),
    "few_others": translatable("too few other items were read"),
    "not_better": translatable("no other threshold makes fewer errors"),
}
"""Why a language keeps the usual threshold, by code."""


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item that annotators have read. ``declared``: the probability of its declared language beside a likelier one;
    1 if none is likelier, or the identifier did not judge it. ``is_usual``: it is a finding by the usual threshold."""

    declared: float
    is_usual: bool
    is_flagged: bool


@dataclass(frozen=True, slots=True)
class FlagComparison:
    """The identifier beside the annotators, in one language. ``found``: flagged items that it finds by the usual
    threshold, too. ``threshold``: of the declared language's probability, up to which an item is a finding now;
    ``reason``: why it is the usual one, "" if it is corrected; then ``corrected_...`` are its errors."""

    language: str
    read: int
    flagged: int
    found: int
    false_alarms: int
    missed: int
    threshold: float
    reason: str
    corrected_false_alarms: int | None = None
    corrected_missed: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_flags(language: str, items: Sequence[ReadItem], *, usual: float) -> FlagComparison:
    """The errors of the identifier in a language, and its threshold, which is corrected if that makes fewer errors."""
    flagged = [item for item in items if item.is_flagged]
    others = [item for item in items if not item.is_flagged]
    found = sum(item.is_usual for item in flagged)
    false_alarms, missed = sum(item.is_usual for item in others), len(flagged) - found
    reason, best = "", (false_alarms + missed, usual)
    if len(flagged) < FEWEST_FLAGS:
        reason = "few_flags"
    elif len(others) < FEWEST_OTHERS:
        reason = "few_others"
    else:
        options = [(sum(errors_at(items, option)), option) for option in _options(items)]
        nearest = min(options, key=lambda one: (one[0], abs(log(one[1] / usual))), default=best)
        reason = "" if nearest[0] < best[0] else "not_better"
        best = best if reason else nearest
    corrected = (None, None) if reason else errors_at(items, best[1])
    return FlagComparison(language, len(items), len(flagged), found, false_alarms, missed, best[1], reason, *corrected)


def errors_at(items: Iterable[ReadItem], threshold: float) -> tuple[int, int]:
    """False alarms and misses, if an item is a finding up to this probability of its declared language."""
    alarms = [(max(item.declared, LEAST_PROBABILITY) <= threshold, item.is_flagged) for item in items]
    return alarms.count((True, False)), alarms.count((False, True))


def _options(items: Iterable[ReadItem]) -> list[float]:
    """Thresholds between every two neighbouring probabilities (their geometric mean), and below the least."""
    values = sorted({max(item.declared, LEAST_PROBABILITY) for item in items if item.declared < 1})
    between = [exp((log(low) + log(high)) / 2) for low, high in pairwise([*values, 1.0])]
    return [values[0] / 2, *between] if values else []
