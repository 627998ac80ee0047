"""Turns: empty ones, dialogues without a message or without a role, repetitions, and unusual lengths."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import log
from statistics import median

import regex

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem, TextPart, excerpt_around
from annotation.checkup.declared import Check, CheckScope, Hit

COMMON_ROLE = 0.9  # the share of dialogues that have a role which the others lack
FEWEST_LENGTHS = 20  # items of a language, for what is an unusual length among them
UNUSUAL = 4.0  # robust standard deviations of the logarithm of the length
LEAST_SPREAD = 0.25  # of that logarithm, so that texts of nearly one length are not unusual by a few characters
SHORTEST_REPEATED = 20  # letters, digits and spaces of a sentence that comes twice in one turn
LONG_REPEATED = 60  # of one that comes again in another turn
TURN_REPEATED = 40  # of a whole turn that the same role says again: shorter ones are thanks and farewells
PHRASE = 5  # words
REPEATED_PHRASES = 0.3  # the share of a text's phrases that were said before in it
FEWEST_PHRASES = 20
_SENTENCES = regex.compile(r"(?<=[.!?…。！？؟।])\s+|\n+")
_QUOTED = regex.compile(r"^[ \t]{0,3}(?:>|&gt;).*", regex.MULTILINE)  # lines that quote somebody else
_SAID = regex.compile(r"[\p{L}\p{N}\p{So}\p{Sc}]")
_ADDRESSED = regex.compile(r"@\w+")  # the name of an account says nothing by itself
_WORDS = regex.compile(r"[\p{L}\p{M}\p{N}]+")


class NoText(Check):
    name = "no_text"
    subject = "turns"
    severity = "error"
    title = translatable("Item without any message or text")
    help = translatable("Nobody can rate what is not there.")
    says = translatable("It has no text.")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        if not item.cut and not any(part.text.strip() for part in item.parts):
            yield Hit(item.ordinal)


class EmptyTurn(Check):
    name = "empty_turn"
    subject = "turns"
    severity = "error"
    title = translatable("Turn without a word")
    help = translatable("The turn is empty, or has only spaces and punctuation. A part of the dialogue may be missing.")
    says = translatable("Turn %(turn)d: “%(text)s”")

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.turns = 0

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        self.turns += len(item.turns)
        unread = {place for place, _length in item.cut}
        for part in item.turns:
            if part.place not in unread and not _SAID.search(_ADDRESSED.sub(" ", part.text)):
                yield Hit(item.ordinal, part.place, {"turn": int(part.place) + 1, "text": part.text.strip()[:40]})

    def why_not(self) -> str:
        return "" if self.turns else "no_turns"


class Dialogues(Check):
    """A check of dialogues: it does not apply where most items have one turn or none."""

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.items = self.dialogues = 0

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        self.items += 1
        self.dialogues += len(item.roles) > 1
        return self.look_into(item)

    def look_into(self, item: CheckedItem) -> Iterable[Hit]:
        """What is wrong with one item, which may have any number of turns."""
        return ()

    def why_not(self) -> str:
        return "" if 2 * self.dialogues > self.items else "no_dialogues"


class OneMessage(Dialogues):
    name = "one_message"
    subject = "turns"
    severity = "warning"
    title = translatable("Dialogue of one message")
    help = translatable("Most items of this dataset have more turns; this one may be cut.")
    says = translatable("Only %(role)s speaks, once.")

    def look_into(self, item: CheckedItem) -> Iterator[Hit]:
        if len(item.roles) == 1:
            yield Hit(item.ordinal, 0, {"role": item.roles[0]})


class MissingRole(Dialogues):
    name = "missing_role"
    subject = "turns"
    severity = "warning"
    title = translatable("Dialogue without a role that the others have")
    help = translatable("At least 90 % of the dialogues have this role, such as the customer.")
    says = translatable("Nobody speaks as %(role)s.")

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.by_roles: dict[frozenset[str], list[int]] = defaultdict(list)

    def look_into(self, item: CheckedItem) -> Iterable[Hit]:
        if item.roles:
            self.by_roles[frozenset(item.roles)].append(item.ordinal)
        return ()

    def _frequent_roles(self) -> list[str]:
        speakers = Counter({role: 0 for roles in self.by_roles for role in roles})
        for roles, ordinals in self.by_roles.items():
            speakers.update(dict.fromkeys(roles, len(ordinals)))
        total = sum(map(len, self.by_roles.values()))
        return sorted(role for role, count in speakers.items() if count >= COMMON_ROLE * total)

    def finish(self) -> Iterator[Hit]:
        frequent = self._frequent_roles()
        for roles, ordinals in self.by_roles.items():
            if lacking := [role for role in frequent if role not in roles]:
                yield from (Hit(ordinal, None, {"role": ", ".join(lacking)}) for ordinal in ordinals)

    def why_not(self) -> str:
        return super().why_not() or ("" if self._frequent_roles() else "no_common_role")


class RoleInRow(Dialogues):
    name = "role_in_row"
    subject = "turns"
    severity = "notice"
    title = translatable("Turns of one role in a row")
    help = translatable("One side speaks twice before the other answers: a turn may be missing, or roles are confused.")
    says = translatable("%(role)s: turns %(turn)d to %(last)d")

    def look_into(self, item: CheckedItem) -> Iterator[Hit]:
        first = 0
        for role, turns in groupby(item.roles):
            length = sum(1 for _turn in turns)
            if length > 1 and len(item.roles) > 1:
                yield Hit(item.ordinal, first, {"role": role, "turn": first + 1, "last": first + length})
            first += length


class SelfRepetition(Check):
    name = "self_repetition"
    subject = "turns"
    severity = "warning"
    title = translatable("Text that repeats itself")
    help = translatable(
        "The same sentence comes twice in one item, or a phrase comes again and again: a model may have looped."
    )
    says = translatable("Again: “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        own = [TextPart(part.place, _QUOTED.sub("", part.text)) for part in item.parts]
        place, text = _repeated_sentence(own) or _repeated_turn(item) or _looped_phrase(own) or (None, "")
        if place is not None:
            yield Hit(item.ordinal, place, {"text": text.strip()[:120]})


def _repeated_sentence(parts: list[TextPart]) -> TextPart | None:
    """A sentence that comes twice in one turn, or a long one that comes twice in the item: short ones are greetings and
    signatures."""
    in_item: Counter[str] = Counter()
    words_of: dict[str, str] = {}  # short sentences come again and again
    for part in parts:
        in_part: Counter[str] = Counter()
        for sentence in _SENTENCES.split(part.text):
            if (words := words_of.get(sentence)) is None:
                words = words_of[sentence] = " ".join(_WORDS.findall(sentence.casefold()))
            in_part[words] += 1
            in_item[words] += 1
            if (in_part[words] > 1 and len(words) >= SHORTEST_REPEATED) or (
                in_item[words] > 1 and len(words) >= LONG_REPEATED
            ):
                return TextPart(part.place, sentence)
    return None


def _repeated_turn(item: CheckedItem) -> TextPart | None:
    known: set[tuple[str, str]] = set()
    for role, part in zip(item.roles, item.turns, strict=True):
        said = " ".join(part.text.casefold().split())
        if (role, said) in known:
            return part
        if len(said) >= TURN_REPEATED:
            known.add((role, said))
    return None


def _looped_phrase(parts: list[TextPart]) -> TextPart | None:
    for part in parts:
        words = _WORDS.findall(part.text.casefold())
        phrases = Counter(zip(*(words[shift:] for shift in range(PHRASE)), strict=False))
        total = max(0, len(words) - PHRASE + 1)
        if total >= FEWEST_PHRASES and total - len(phrases) > REPEATED_PHRASES * total:
            return TextPart(part.place, " ".join(phrases.most_common(1)[0][0]))
    return None


class UnusualLength(Check):
    name = "unusual_length"
    subject = "turns"
    severity = "notice"
    title = translatable("Unusually short or long for its language")
    help = translatable("Far from the median length of the items in its language.")
    says = translatable("%(characters)d characters; half of the items have %(median)d or more")

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.lengths: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        if item.characters:
            self.lengths[item.language].append((item.ordinal, item.characters))
        return ()

    def finish(self) -> Iterator[Hit]:
        for counted in self.lengths.values():
            if len(counted) < FEWEST_LENGTHS:
                continue
            logs = [log(length) for _ordinal, length in counted]
            middle = median(logs)
            spread = max(LEAST_SPREAD, 1.4826 * median(abs(value - middle) for value in logs))
            usual = round(median(length for _ordinal, length in counted))
            for (ordinal, length), value in zip(counted, logs, strict=True):
                if abs(value - middle) > UNUSUAL * spread:
                    yield Hit(ordinal, None, {"characters": length, "median": usual})

    def why_not(self) -> str:
        return "" if any(len(counted) >= FEWEST_LENGTHS for counted in self.lengths.values()) else "few_items"


class CutText(Check):
    name = "cut_text"
    subject = "turns"
    severity = "notice"
    title = translatable("Text too long to be checked as a whole")
    help = translatable("Of one turn or field, the first 100,000 characters are checked; of one item, 400,000.")
    says = translatable("%(characters)d characters; it begins “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        texts = dict(item.parts)
        for place, length in item.cut:
            yield Hit(item.ordinal, place, {"characters": length, "text": excerpt_around(texts[place], 0, 40)})


CHECKS: tuple[type[Check], ...] = (
    NoText,
    EmptyTurn,
    OneMessage,
    MissingRole,
    RoleInRow,
    SelfRepetition,
    UnusualLength,
    CutText,
)
