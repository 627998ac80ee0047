"""What differs between two prompts: their lines, and in a line that was replaced the words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 2
"""Equal lines that are shown before and after a change."""
WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class PromptLine:
    """A line of one or both prompts in parts; a part is marked if its words are in this prompt alone.

    ``hidden`` is the number of equal lines that this one stands for; such a line has no parts.
    """

    kind: Literal["same", "removed", "added", "hidden"]
    parts: Sequence[tuple[str, bool]] = ()
    hidden: int = 0


def prompt_changes(before: str, after: str) -> list[PromptLine]:
    """The lines of two prompts in order, each changed block as its removed and then its added lines; nothing if the
    prompts are equal. Equal lines further than ``CONTEXT`` from a change are counted, not listed.

    >>> [line.parts for line in prompt_changes("Be fair.", "Be strict.")]
    [[('Be ', False), ('fair', True), ('.', False)], [('Be ', False), ('strict', True), ('.', False)]]
    """
    if before == after:
        return []
    first, second = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    lines: list[PromptLine] = []
    for number, (tag, start, end, other_start, other_end) in enumerate(blocks):
        if tag == "equal":
            lines += _equal(first[start:end], is_first=number == 0, is_last=number == len(blocks) - 1)
        else:
            lines += _changed(first[start:end], second[other_start:other_end])
    return lines


def _equal(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[PromptLine]:
    head, tail = (0 if is_first else CONTEXT), (0 if is_last else CONTEXT)
    hidden = len(lines) - head - tail
    if hidden <= 1:  # a line that says how many are hidden takes as much space
        head, hidden, tail = len(lines), 0, 0
    for line in lines[:head]:
        yield PromptLine("same", [(line, False)])
    if hidden:
        yield PromptLine("hidden", hidden=hidden)
    for line in lines[len(lines) - tail :] if tail else ():
        yield PromptLine("same", [(line, False)])


def _changed(removed: Sequence[str], added: Sequence[str]) -> list[PromptLine]:
    """A changed block; where it has as many lines on both sides, the words that differ are marked in each pair."""
    if len(removed) != len(added):
        return [
            *(PromptLine("removed", [(line, False)]) for line in removed),
            *(PromptLine("added", [(line, False)]) for line in added),
        ]
    pairs = [_marked(before, after) for before, after in zip(removed, added, strict=True)]
    return [
        *(PromptLine("removed", before) for before, _after in pairs),
        *(PromptLine("added", after) for _before, after in pairs),
    ]


def _marked(before: str, after: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    first, second = WORDS.findall(before), WORDS.findall(after)
    mine: list[tuple[str, bool]] = []
    theirs: list[tuple[str, bool]] = []
    for tag, start, end, other_start, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if end > start:
            mine.append(("".join(first[start:end]), tag != "equal"))
        if other_end > other_start:
            theirs.append(("".join(second[other_start:other_end]), tag != "equal"))
    return mine, theirs
