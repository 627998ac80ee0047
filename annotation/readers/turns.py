"""Turns, however a file writes them -> ``{"speaker", "name"?, "text"}``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from annotation.readers.fields import is_blank
from annotation.readers.jsontext import parse_document
from annotation.readers.problems import FormatError, Unfit, excerpt

Turn = dict[str, str]

SPEAKER_KEYS = ("speaker", "role", "from_type", "author", "from", "sender")
_PREFIX = re.compile(r"^([^\W\d_][^:\n]{0,24}):(?=\s|$)", re.MULTILINE)
TEXT_KEYS = ("text", "content", "message", "utterance", "value")
NAME_KEYS = ("name", "from_name", "speaker_name")


def as_turns(value: Any, speakers: dict[str, str], dropped: Counter[str]) -> list[Turn]:
    """A list of objects, such a list as JSON in a cell, or, where ``speakers`` gives the prefixes, one text.

    Speakers keep the word of the source, in lower case. Keys that are not kept are counted into ``dropped``.
    """
    if is_blank(value):
        return []
    if isinstance(value, str):
        value = _split(value, speakers) if speakers else _from_json(value)
    if not isinstance(value, list):
        raise Unfit(excerpt(value), "a list of turns", "turns", field="turns")
    return [_turn(number, turn, dropped) for number, turn in enumerate(value, start=1)]


class _Keys(NamedTuple):
    """Under which of its keys a turn says what."""

    speaker: str | None
    text: str | None
    name: str | None
    dropped: tuple[str, ...]


@lru_cache(maxsize=1024)
def _keys(keys: tuple[str, ...]) -> _Keys:
    """Turns of one file have the same few sets of keys; each is looked at once."""
    speaker, text, name = (
        next((key for key in names if key in keys), None) for names in (SPEAKER_KEYS, TEXT_KEYS, NAME_KEYS)
    )
    return _Keys(speaker, text, name, tuple(key for key in keys if key not in {speaker, text, name}))


def _turn(number: int, turn: Any, dropped: Counter[str]) -> Turn:
    if not isinstance(turn, dict):
        raise Unfit(excerpt(turn), "an object with speaker and text", "turns", f"turn {number}")
    keys = _keys(tuple(turn))
    speaker = _said(turn, keys.speaker, SPEAKER_KEYS, number).strip().lower()
    text = _said(turn, keys.text, TEXT_KEYS, number)
    if not speaker:
        raise Unfit("nothing", f"who speaks, under {keys.speaker}", "turns", f"turn {number}")
    if keys.dropped:
        dropped.update(keys.dropped)
    if keys.name is None or is_blank(turn[keys.name]):
        return {"speaker": speaker, "text": text}
    return {"speaker": speaker, "name": _said(turn, keys.name, NAME_KEYS, number), "text": text}


def _said(turn: dict[str, Any], key: str | None, names: tuple[str, ...], number: int) -> str:
    said = turn.get(key) if key else None
    if not isinstance(said, str):
        found = excerpt(said) if said is not None else "nothing"
        raise Unfit(found, f"text under {key or ' or '.join(names)}", "turns", f"turn {number}")
    return said


def _from_json(text: str) -> Any:
    try:
        return parse_document("turns", text)
    except FormatError as error:
        expected = f"turns as a JSON list, or speakers: in the mapping to split the text ({error.problem.expected})"
        raise Unfit(excerpt(text), expected, "turns", field="turns") from None


def speakers_of(texts: Sequence[str]) -> dict[str, str]:
    """The prefixes by which several texts seem to say who speaks: at the start of lines in at least half of them."""
    inside = Counter(prefix for text in texts for prefix in {found[1] for found in _PREFIX.finditer(text)})
    speakers = {prefix: prefix.lower() for prefix, count in inside.items() if 2 * count >= len(texts)}
    begin = all((found := _PREFIX.match(text)) and found[1] in speakers for text in texts)
    return speakers if begin and len(speakers) > 1 and len(texts) > 1 else {}


def _split(text: str, speakers: dict[str, str]) -> list[Turn]:
    """``USER: hello\\nBOT: hi`` -> two turns. A prefix counts at the start of a line only."""
    first, *pieces = _prefixes(tuple(speakers)).split(text)
    if first.strip() or not pieces:
        raise Unfit(excerpt(first), f"one of {', '.join(speakers)} at the start", "turns", field="turns")
    said = zip(pieces[::2], pieces[1::2], strict=True)
    turns = [{"speaker": speakers[prefix], "text": words.removeprefix(" ")} for prefix, words in said]
    for turn in turns[:-1]:
        # The line end before the next prefix separates turns; it belongs to neither.
        turn["text"] = turn["text"].removesuffix("\n").removesuffix("\r")
    return turns


@lru_cache(maxsize=64)
def _prefixes(speakers: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(speakers, key=len, reverse=True)
    return re.compile(rf"^({'|'.join(re.escape(speaker) for speaker in longest_first)}):", re.MULTILINE)
