"""Families: the items of one scenario in every language by every generator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem
from annotation.checkup.declared import Check, CheckScope, Hit, Values

MOST_NAMED = 3  # gaps of a family that are written out


class IncompleteFamily(Check):
    name = "incomplete_family"
    subject = "families"
    severity = "warning"
    title = translatable("Scenario without an item in some language or by some generator")
    help = translatable(
        "Comparisons of languages and generators need the same scenarios everywhere. Leaving these items out keeps "
        "complete families only."
    )
    says = translatable("“%(scenario)s”: %(gaps)d missing, such as %(text)s")

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.families: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
        self.combinations: set[tuple[str, str]] = set()

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        if item.scenario:
            self.families[item.scenario][item.language, item.generator].append(item.ordinal)
            self.combinations.add((item.language, item.generator))
        return ()

    def finish(self) -> Iterable[Hit]:
        for scenario, members in self.families.items():
            if gaps := sorted(self.combinations - members.keys()):
                named = ", ".join(" · ".join(filter(None, gap)) for gap in gaps[:MOST_NAMED])
                values: Values = {"scenario": scenario, "gaps": len(gaps), "text": named}
                yield from (Hit(ordinal, None, values) for held in members.values() for ordinal in held)

    def why_not(self) -> str:
        if all(sum(map(len, members.values())) < 2 for members in self.families.values()):
            return "no_families"
        return "one_combination" if len(self.combinations) == 1 else ""


CHECKS: tuple[type[Check], ...] = (IncompleteFamily,)
