"""The loop of a check-up: every check looks at every item once; what they found becomes one JSON document.

Pure: items in, `Findings` out. ``RULES`` changes with every check, so that pages can say that a check-up is older.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import quantiles
from typing import Any

from annotation.checkup import damaged_text, duplicates, families, personal_data, placeholders, turns, written_languages
from annotation.checkup.checked_items import CheckedItem
from annotation.checkup.declared import Check, CheckScope, Hit, Severity

RULES = 4
CHECKS: dict[str, type[Check]] = {
    check.name: check
    for module in (families, turns, written_languages, duplicates, placeholders, personal_data, damaged_text)
    for check in module.CHECKS
}
MOST_EXAMPLES = 300  # of one check
MOST_EXAMPLES_OF_KIND = 15  # of those, in one language by one generator


@dataclass(slots=True)
class CheckFinding:
    """The result of one check: ``reason`` is the code of why it does not apply. ``ordinals``: every item, as ranges."""

    check: str
    severity: Severity
    reason: str = ""
    items: int = 0
    ordinals: str = ""
    examples: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> CheckFinding:
        return cls(**document)

    def held(self) -> list[int]:
        """The ordinals of the items in which it was found, in order."""
        return from_ranges(self.ordinals)


@dataclass(slots=True)
class CheckedDataset:
    """Everything that a check-up says, with how many items, turns and characters there are. ``natives``: a
    `native_flags.FlagComparison` of each language of which annotators have read items."""

    items: int = 0
    findings: list[CheckFinding] = field(default_factory=list)
    lengths: list[dict[str, Any]] = field(default_factory=list)
    families: dict[str, int] = field(default_factory=dict)
    natives: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> CheckedDataset:
        findings = [CheckFinding.from_json(finding) for finding in document["findings"]]
        return cls(document["items"], findings, document["lengths"], document["families"], document.get("natives", []))


def check_items(
    items: Iterable[CheckedItem], scope: CheckScope, *, progress: Callable[[int], None] = lambda _done: None
) -> CheckedDataset:
    """Run every check over the items, which are read once, in order."""
    checks = [check(scope) for check in CHECKS.values()]
    noted = {check.name: _Notes() for check in checks}
    overview = _Overview()
    kinds: dict[int, tuple[str, str]] = {}
    shared: dict[tuple[str, str], tuple[str, str]] = {}
    done = 0
    for done, item in enumerate(items, 1):
        kind = shared.setdefault((item.language, item.generator), (item.language, item.generator))
        kinds[item.ordinal] = kind
        overview.count(item)
        for check in checks:
            noted[check.name].take(check.look(item), kinds)
        progress(done)
    findings = []
    for check in checks:
        check.at_work = lambda: progress(done)
        noted[check.name].take(check.finish(), kinds)
        reason = check.why_not() if done else "no_items"
        findings.append(noted[check.name].finding(check, reason))
    natives = [
        row.as_json()
        for check in checks
        if isinstance(check, written_languages.OtherLanguage)
        for row in check.comparisons()
    ]
    return CheckedDataset(done, findings, overview.lengths(), overview.families(), natives)


class _Notes:
    """What one check has found so far: every item, and some examples of each language and generator."""

    def __init__(self) -> None:
        self.ordinals: set[int] = set()
        self.examples: list[dict[str, Any]] = []
        self.by_kind: Counter[tuple[str, str]] = Counter()

    def take(self, hits: Iterable[Hit], kinds: dict[int, tuple[str, str]]) -> None:
        for hit in hits:
            kind = kinds[hit.ordinal]
            is_new = hit.ordinal not in self.ordinals
            self.ordinals.add(hit.ordinal)
            if is_new and self.by_kind[kind] < MOST_EXAMPLES_OF_KIND and len(self.examples) < MOST_EXAMPLES:
                self.by_kind[kind] += 1
                self.examples.append({"ordinal": hit.ordinal, "place": hit.place, "values": hit.values})

    def finding(self, check: Check, reason: str) -> CheckFinding:
        if reason:
            return CheckFinding(check.name, check.severity, reason)
        examples = sorted(self.examples, key=lambda example: example["ordinal"])
        return CheckFinding(
            check.name, check.severity, "", len(self.ordinals), as_ranges(sorted(self.ordinals)), examples
        )


class _Overview:
    """How many items there are of which length in each language, and how many families are complete."""

    def __init__(self) -> None:
        self.turns: dict[str, list[int]] = defaultdict(list)
        self.characters: dict[str, list[int]] = defaultdict(list)
        self.scenarios: dict[str, set[tuple[str, str]]] = defaultdict(set)

    def count(self, item: CheckedItem) -> None:
        self.turns[item.language].append(len(item.roles))
        self.characters[item.language].append(item.characters)
        if item.scenario:
            self.scenarios[item.scenario].add((item.language, item.generator))

    def lengths(self) -> list[dict[str, Any]]:
        return [
            {
                "language": language,
                "items": len(counted),
                "turns": _five_numbers(counted),
                "characters": _five_numbers(self.characters[language]),
            }
            for language, counted in sorted(self.turns.items())
        ]

    def families(self) -> dict[str, int]:
        combinations = set().union(*self.scenarios.values())
        complete = sum(len(members) == len(combinations) for members in self.scenarios.values())
        return {"scenarios": len(self.scenarios), "complete": complete, "combinations": len(combinations)}


def _five_numbers(counted: Sequence[int]) -> list[float]:
    """Least, lower quartile, median, upper quartile, most."""
    if len(counted) == 1:
        return [float(counted[0])] * 5
    return [float(min(counted)), *quantiles(counted, n=4, method="inclusive"), float(max(counted))]


# --- sets of items, written short ------------------------------------------------------------------------------------
def as_ranges(ordinals: Sequence[int]) -> str:
    """Numbers in order as text: ``0-3,7``."""
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in _runs(ordinals))


def _runs(ordinals: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for ordinal in ordinals:
        if first is None or last is None:
            first = last = ordinal
        elif ordinal == last + 1:
            last = ordinal
        else:
            yield first, last
            first = last = ordinal
    if first is not None and last is not None:
        yield first, last


def from_ranges(ranges: str) -> list[int]:
    """The numbers that `as_ranges` wrote."""
    bounds = [part.partition("-") for part in ranges.split(",") if part]
    return [number for first, dash, last in bounds for number in range(int(first), int(last if dash else first) + 1)]
