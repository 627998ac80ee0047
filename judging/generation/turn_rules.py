"""What a reply must keep to: read it, and either take it as it is or say why it is discarded. Pure.

A reply is never edited. It is read leniently (an object, a fenced one, one with words around it, or a transcript with
names of speakers), and checked strictly. Hostile replies cost no more time than long ones.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from accounts.inputs import is_storable
from judging.generation.languages import (
    FEWEST_LETTERS,
    IN_A_TURN,
    MOSTLY,
    has_greeting,
    identified_language,
    letter_counts,
    likely_language,
)
from judging.generation.messages import WritingProblem, brief_texts, given_fields, turn_counts
from judging.generation.specs import Spec
from judging.replies import CUT_OFF
from judging.reply_words import refusal_in

LONGEST_REPLY: Final = 400_000
MOST_NAMED: Final = 20
"""Problems of one reply that are kept."""
_STARTS_TRIED: Final = 40
REASONING_MARKS: Final = re.compile(
    r"</?\s?(?:think|thinking|reasoning|thought|analysis|scratchpad)\s?>|\|\s?(?:think|analysis|final)\s?\|",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"\s*```\w{0,10}[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL)
# What a model writes where it should have made up a name: [Name], [Your Company], {order_number}, <date>.
STAND_IN: Final = re.compile(
    r"\[(?!\d)[^\W\d_][^\[\]\n]{1,40}\]|\{\{?[^\W\d_][^{}\n]{1,40}\}\}?|<(?!/?(?:b|i|u|br|p|em|strong)\b)[^\W\d_][^<>\n]{1,40}>"
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202d\u202e\ufffe\uffff]")
_DIRECTION_ENDS: Final = {"\u202a": "\u202c", "\u202b": "\u202c"} | dict.fromkeys("\u2066\u2067\u2068", "\u2069")
"""Marks around words of another direction, as a name in Latin letters in Arabic, with the mark that ends each."""
SENTENCE_ENDS: Final = re.compile(r"[.!?\n。！？؟।:]")
_LONG_SENTENCE: Final = 45
_SHORT_TURN: Final = 25


@dataclass(frozen=True, slots=True)
class Written:
    """A reply that keeps to the rules. ``fields`` has those that the spec gives, too, in the order of the spec."""

    turns: tuple[dict[str, str], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


def read_written(
    spec: Spec, parameters: Mapping[str, str | int], *, language: str, reply: str, finish_reason: str = ""
) -> Written | list[WritingProblem]:
    """The text of a reply, or every reason why it is discarded. Never raises on any text."""
    if unusable := unusable_reply(reply, finish_reason):
        return [unusable]
    wanted = ("turns",) if spec.kind == "dialogue" else tuple(one.name for one in spec.asked_fields)
    members = reply_members(reply, wanted)
    turns = _turns(members["turns"]) if members and "turns" in wanted else None
    if members is None and spec.kind == "dialogue":
        turns = _transcript(reply, spec.rules.roles)
    if members is None and turns is None:
        return [WritingProblem("refusal" if refusal_in(reply) else "unreadable")]
    if spec.kind == "dialogue":
        problems = list(islice(_wrong_dialogue(spec, parameters, language, turns), MOST_NAMED))
        return problems or Written(tuple(turns or ()), given_fields(spec, parameters, language))
    texts = {name: (members or {}).get(name) for name in wanted}
    problems = list(islice(_wrong_fields(spec, parameters, language, texts), MOST_NAMED))
    if problems:
        return problems
    given = given_fields(spec, parameters, language)
    return Written((), {one.name: given[one.name] if one.texts else str(texts[one.name]) for one in spec.fields})


def unusable_reply(reply: str, finish_reason: str) -> WritingProblem | None:
    """Why a reply is not read at all; None if it is."""
    if finish_reason == "content_filter":
        return WritingProblem("refusal")
    if finish_reason in CUT_OFF:
        return WritingProblem("cut_off")
    if len(reply) > LONGEST_REPLY:
        return WritingProblem("too_long", {"longest": LONGEST_REPLY})
    if not reply.strip():
        return WritingProblem("no_text")
    return WritingProblem("reasoning") if REASONING_MARKS.search(reply) else None


# --- Reading ----------------------------------------------------------------------------------------------------------


def reply_members(reply: str, wanted: Sequence[str]) -> dict[str, Any] | None:
    """The object with the wanted members: the whole reply, what stands in its fence, or the first one in its words."""
    text = reply.strip().removeprefix("\ufeff")
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1]
    if (whole := _decoded(text, 0)) is not None:
        members, end = whole
        return members if set(wanted) <= set(members) and not text[end:].strip() else None
    for opening in islice(re.finditer(r"\{", text), _STARTS_TRIED):
        if (decoded := _decoded(text, opening.start())) and set(wanted) <= set(decoded[0]):
            return decoded[0]
    return None


def _decoded(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) else None


def _turns(listed: Any) -> list[dict[str, str]] | None:
    """The turns as they are stored; None if this is no list of speakers and texts."""
    if not isinstance(listed, list):
        return None
    turns = []
    for turn in listed:
        if (
            not isinstance(turn, dict)
            or not isinstance(turn.get("text"), str)
            or not isinstance(turn.get("speaker"), str)
        ):
            return None
        turns.append({"speaker": turn["speaker"].strip().casefold()[:100], "text": turn["text"].strip()})
    return turns


def _transcript(reply: str, roles: Sequence[str]) -> list[dict[str, str]] | None:
    """The turns of a text whose lines begin with the name of a speaker."""
    opening = re.compile(rf"[ \t*_#>-]{{0,6}}({'|'.join(map(re.escape, roles))})[*_ \t]{{0,4}}[:：]", re.IGNORECASE)
    turns: list[dict[str, str]] = []
    for line in reply.strip().splitlines():
        if opened := opening.match(line):
            turns.append({"speaker": opened[1].casefold(), "text": line[opened.end() :].strip(" \t*_")})
        elif turns:
            turns[-1]["text"] = f"{turns[-1]['text']}\n{line}".strip()
        elif line.strip():
            return None
    return turns if len(turns) > 1 else None


# --- The rules --------------------------------------------------------------------------------------------------------


def _wrong_dialogue(
    spec: Spec, parameters: Mapping[str, str | int], language: str, turns: Sequence[dict[str, str]] | None
) -> Iterator[WritingProblem]:
    rules = spec.rules
    if turns is None:
        yield WritingProblem("unreadable")
        return
    if not turns:
        yield WritingProblem("no_text")
        return
    least, most = turn_counts(spec, parameters)
    if not least <= len(turns) <= most:
        yield WritingProblem("wrong_count", {"count": len(turns), "least": least, "most": most})
    if rules.starts and turns[0]["speaker"] != rules.starts:
        yield WritingProblem("wrong_start", {"role": rules.starts})
    if rules.ends and turns[-1]["speaker"] != rules.ends:
        yield WritingProblem("wrong_end", {"role": rules.ends})
    yield from _wrong_turns(spec, turns)
    first = next((turn["text"] for turn in turns if turn["speaker"] == rules.greets), None)
    if rules.greets and first is not None and not has_greeting(first, language):
        yield WritingProblem("no_greeting", {"role": rules.greets})
    yield from _wrong_texts(spec, parameters, language, [turn["text"] for turn in turns])


def _wrong_turns(spec: Spec, turns: Sequence[dict[str, str]]) -> Iterator[WritingProblem]:
    before: dict[str, int] = {}
    for number, turn in enumerate(turns, 1):
        if turn["speaker"] not in spec.rules.roles:
            yield WritingProblem("unknown_role", {"turn": number, "role": turn["speaker"][:40]})
        if spec.rules.alternate and number > 1 and turns[number - 2]["speaker"] == turn["speaker"]:
            yield WritingProblem("same_role", {"before": number - 1, "turn": number})
        if not turn["text"]:
            yield WritingProblem("empty_turn", {"turn": number})
        same = folded_text(turn["text"])
        if shown_width(same) >= _SHORT_TURN and same in before:
            yield WritingProblem("repeated_turn", {"turn": number, "before": before[same]})
        before.setdefault(same, number)


def _wrong_fields(
    spec: Spec, parameters: Mapping[str, str | int], language: str, texts: Mapping[str, Any]
) -> Iterator[WritingProblem]:
    if not all(isinstance(text, str) for text in texts.values()):
        yield WritingProblem("unreadable")
        return
    if not all(text.strip() for text in texts.values()):
        yield WritingProblem("no_text")
        return
    if spec.kind == "pair" and folded_text(texts["passage_a"]) == folded_text(texts["passage_b"]):
        yield WritingProblem("same_texts")
    yield from _wrong_texts(spec, parameters, language, list(texts.values()))


def _wrong_texts(
    spec: Spec, parameters: Mapping[str, str | int], language: str, texts: Sequence[str]
) -> Iterator[WritingProblem]:
    whole = "\n".join(texts)
    if has_hidden_characters(whole):
        yield WritingProblem("hidden_characters")
    for number, text in enumerate(texts, 1):
        if len(text) > spec.rules.longest:
            yield WritingProblem("long_turn", {"turn": number, "longest": spec.rules.longest})
    if stand_in := STAND_IN.search(whole):
        yield WritingProblem("stand_in", {"text": stand_in[0][:60]})
    if copied := _copied(spec, parameters, language, whole):
        yield WritingProblem("copied_brief", {"text": copied[:100]})
    yield from wrong_language(language, texts, whole)


def wrong_language(language: str, texts: Sequence[str], whole: str) -> Iterator[WritingProblem]:
    """The first of: another script or language throughout, another script or language in one turn."""
    counts = [(number, *letter_counts(text, language)) for number, text in enumerate(texts, 1)]
    long = [(number, own / letters) for number, own, letters in counts if letters >= FEWEST_LETTERS]
    strange = [number for number, share in long if share < IN_A_TURN]
    own, letters = (sum(count[place] for count in counts) for place in (1, 2))
    if len(strange) * 2 > len(long) or (letters >= FEWEST_LETTERS and own < MOSTLY * letters and not strange):
        yield WritingProblem("wrong_script")
    elif strange:
        yield WritingProblem("mixed_script", {"turn": strange[0]})
    elif other := likely_language(whole, language) or identified_language(whole, language):
        yield WritingProblem("wrong_language", {"language": other})
    else:
        for number, text in enumerate(texts, 1):
            if other := likely_language(text, language):
                yield WritingProblem("mixed_language", {"turn": number, "language": other})
                return


def _copied(spec: Spec, parameters: Mapping[str, str | int], language: str, whole: str) -> str:
    """A long sentence of the brief that stands in the text; what a field of the item says may be repeated."""
    given = " ".join(given_fields(spec, parameters, language).values())
    return copied_sentence(whole, brief_texts(spec, parameters, language), given=given)


def copied_sentence(whole: str, told: Iterable[str], *, given: str = "", shortest: int = _LONG_SENTENCE) -> str:
    """A sentence of ``shortest`` shown width that stands in the text and in one of the texts that a model was told; not
    one that is ``given`` to everybody."""
    text, given = folded_text(whole), folded_text(given)
    for part in told:
        for sentence in SENTENCE_ENDS.split(part):
            folded = folded_text(sentence.strip(" \t-*•–"))  # of a list, too
            if shown_width(folded) >= shortest and folded in text and folded not in given:
                return sentence.strip()
    return ""


def has_hidden_characters(text: str) -> bool:
    """Whether a text has control characters, marks that turn the order of letters around, marks of direction that do
    not end in their line, or what can't be stored."""
    if _CONTROLS.search(text) or not is_storable(text):
        return True
    for line in text.splitlines():
        awaited: list[str] = []
        for character in line:
            if end := _DIRECTION_ENDS.get(character):
                awaited.append(end)
            elif character in "\u202c\u2069" and (not awaited or awaited.pop() != character):
                return True
        if awaited:
            return True
    return False


def shown_width(text: str) -> int:
    """Characters; wide ones, as of Chinese, Japanese and Korean, count twice."""
    return len(text) if text.isascii() else sum(map(_WIDTHS.__getitem__, text))


class _Widths(dict[str, int]):
    """By character, looked up once."""

    def __missing__(self, character: str) -> int:
        self[character] = width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        return width


_WIDTHS: Final = _Widths()


def folded_text(text: str) -> str:
    """A text as it is compared: composed, without case, with one space between words."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
