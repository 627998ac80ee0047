"""Dialogues with simulated users and with people, paired by language and by the place of the user's turn. Pure."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

SYSTEM_SPEAKER = "system"
USER_SPEAKER, ANSWERING_SPEAKER = "user", "assistant"
"""The only speakers of a paired dialogue: other names could tell where it comes from."""


class PooledDialogue(NamedTuple):
    """A dialogue that may be chosen. ``place``: in its dataset; ``simulator``: who played the user, "" for a person."""

    place: int
    language: str
    simulator: str
    turns: Sequence[Mapping[str, str]]


class DialoguePair(NamedTuple):
    """A dialogue of each origin in one language; ``turn``: which of the user's turns is the last, None for all."""

    language: str
    simulated: PooledDialogue
    human: PooledDialogue
    turn: int | None


def neutral_turns(turns: Sequence[Mapping[str, str]], user: str) -> list[dict[str, str]]:
    """The turns with the two neutral speakers, without names, and without instructions to a system."""
    return [
        {"speaker": USER_SPEAKER if turn.get("speaker") == user else ANSWERING_SPEAKER, "text": turn.get("text", "")}
        for turn in turns
        if turn.get("speaker") != SYSTEM_SPEAKER or user == SYSTEM_SPEAKER
    ]


def up_to(turns: Sequence[Mapping[str, str]], turn: int | None) -> Sequence[Mapping[str, str]]:
    """The turns up to the user's turn of this number, from 0; all for None."""
    if turn is None:
        return turns
    places = [place for place, each in enumerate(turns) if each["speaker"] == USER_SPEAKER]
    return turns[: places[turn] + 1]


def pair_dialogues(
    simulated: Sequence[PooledDialogue], human: Sequence[PooledDialogue], *, n: int, whole: bool, seed: int
) -> Iterator[DialoguePair]:
    """At most ``n`` pairs in each language that both sides have, at random by ``seed``; no dialogue is used twice.

    Turns are those of `neutral_turns`. Simulators take turns, so that each has as many dialogues as the others. Of a
    pair, both dialogues end with the user's turn of the same number, drawn among those that both have: first turns are
    compared with first turns. No two items are equal: chatbots share a first turn, so that its dialogues begin alike.
    """
    pools: list[dict[str, list[PooledDialogue]]] = [defaultdict(list), defaultdict(list)]
    for pool, dialogues in zip(pools, (simulated, human), strict=True):
        for dialogue in dialogues:
            if any(turn["speaker"] == USER_SPEAKER for turn in dialogue.turns):
                pool[dialogue.language].append(dialogue)
    for language in sorted({*pools[0]} & {*pools[1]}):
        rng = random.Random(f"{seed}:{language}")
        first, second = (sorted(pool[language], key=lambda each: each.place) for pool in pools)
        rng.shuffle(first)
        rng.shuffle(second)
        seen: set[tuple[str, ...]] = set()
        made = 0
        waiting = list(second)
        for one in _by_turns(first):
            if made == n or not waiting:
                break
            for place, other in enumerate(waiting):
                turn = _free_turn(one, other, seen, rng, whole=whole)
                if turn is not False:
                    yield DialoguePair(language, one, other, turn)
                    made += 1
                    del waiting[place]
                    break


def _by_turns(dialogues: Sequence[PooledDialogue]) -> list[PooledDialogue]:
    """One dialogue of each simulator after the other; among those of one simulator the order stays."""
    before: Counter[str] = Counter()
    numbered = []
    for dialogue in dialogues:
        numbered.append((before[dialogue.simulator], dialogue))
        before[dialogue.simulator] += 1
    return [dialogue for _number, dialogue in sorted(numbered, key=lambda each: each[0])]


def _free_turn(
    one: PooledDialogue, other: PooledDialogue, seen: set[tuple[str, ...]], rng: random.Random, *, whole: bool
) -> int | bool | None:
    """A user's turn that both have, at random; False where each choice would repeat an item."""
    fewest = min(sum(turn["speaker"] == USER_SPEAKER for turn in dialogue.turns) for dialogue in (one, other))
    choices: list[int | None] = [None] if whole else [*range(fewest)]
    rng.shuffle(choices)
    for turn in choices:
        texts = [tuple(each["text"] for each in up_to(dialogue.turns, turn)) for dialogue in (one, other)]
        if texts[0] != texts[1] and not seen & {*texts}:
            seen.update(texts)
            return turn
    return False
