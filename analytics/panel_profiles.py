"""What a study may print of its annotators: groups of consenting people, none so small that it points at somebody.

Groups of fewer than five are put together, and so is the smallest other group where subtraction would show them.
Counts are rounded to fives, so that two statements with one person between them are usually the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

FEWEST_IN_GROUP = 5
ROUNDED_TO = 5


def published_groups(counts: Mapping[str, int], people: int) -> tuple[list[tuple[str, int]], int]:
    """The groups of five people or more, largest first, and how many of `people` are in none of them.

    Both rounded to fives. Spellings that differ in case or spaces are one group. One person may be in several groups,
    as with languages. The rest is 0 or five at least: else the smallest group joins it.
    """
    spelled: dict[str, Counter[str]] = {}
    for value, count in counts.items():
        words = " ".join(value.split())
        spelled.setdefault(words.casefold(), Counter())[words] += count
    sizes = {spellings.most_common(1)[0][0]: sum(spellings.values()) for spellings in spelled.values()}
    large = sorted((name for name in sizes if sizes[name] >= FEWEST_IN_GROUP), key=lambda name: (-sizes[name], name))
    rest = max(people - sum(sizes[name] for name in large), sum(sizes.values()) - sum(sizes[name] for name in large))
    while 0 < rest < FEWEST_IN_GROUP and large:
        rest += sizes[large.pop()]
    return [(name, rounded_count(sizes[name])) for name in large], rounded_count(rest) if large else 0


def rounded_count(count: int) -> int:
    """To the nearest five, at least five if there is anybody."""
    return max(ROUNDED_TO, round(count / ROUNDED_TO) * ROUNDED_TO) if count else 0


def groups_in_words(counts: Mapping[str, int], people: int, rest_name: str) -> str:
    """``Estonian (10), Russian (5), other or not stated (5)``; "" if no group is large enough."""
    groups, rest = published_groups(counts, people)
    shown = [*groups, (rest_name, rest)] if rest else groups
    return ", ".join(f"{name} ({count})" for name, count in shown) if groups else ""
