"""Damaged text: read in a wrong encoding, escaped twice, with marks that nobody sees."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem, TextPart, excerpt_around
from annotation.checkup.declared import Check, Hit
from annotation.checkup.written_languages import scripts_written

# Bytes of UTF-8 read as windows-1252: a lead byte (Ã, â, Ð ...), then what continues it.
_CP1252 = "".join(bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0))
# Not Ö, Ü, ß and other letters that a quotation mark may follow.
_WRONG_BYTES = regex.compile(
    rf"[ÂÃÄÅÎÏÐÑØÙ][\u0080-\u00bf{_CP1252}]|[\u00e0-\u00ef][\u0080-\u00bf{_CP1252}]{{2}}"
    rf"|[\u00f0-\u00f4][\u0080-\u00bf{_CP1252}]{{3}}"
)
# Undamaged words, too, may be followed by quotation marks, dots or a no-break space.
_NO_LETTER = regex.compile(r"[\p{P}\p{Z}]+")
# What is left of an emoji whose sign became a question mark: its joiner, variation selector or colour of skin.
_LOST = regex.compile("\N{REPLACEMENT CHARACTER}|\\?+(?=[\u200d\ufe0f\U0001f3fb-\U0001f3ff])")
_ESCAPES = regex.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[nrt](?![\w])|\\n(?=[A-Z\\])")
# An escape that lost its backslash, within a word: "Espau00f1a". Capital letters before it make a product's name.
_LEFT_OF_ESCAPE = regex.compile(r"(?<=[\p{L}--[A-Z]])u0[0-9a-f]{3}|u0[0-9a-f]{3}(?=[\p{L}--[A-Z]])", regex.V1)
_BIDI = regex.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNSEEN = regex.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u2060\ufeff\ue000-\uf8ff\ufff9-\ufffb]")


class _Damage(Check):
    subject = "damaged text"
    says = translatable("%(found)s in “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        for part in item.parts:
            if place := next(self.places(part, item.language), None):
                shown = excerpt_around(part.text, *place)
                yield Hit(item.ordinal, part.place, {"found": part.text[slice(*place)], "text": shown})

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        """The start and end of each damaged place."""
        raise NotImplementedError


class WrongEncoding(_Damage):
    name = "wrong_encoding"
    severity = "error"
    title = translatable("Text read in a wrong encoding")
    help = translatable("Letters became pairs of others, such as Ã¤ for ä. Save the file as UTF-8 and import it again.")

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        """Undamaged text can look like this by chance: « été », with a no-break space, or “AMANHÃ”. So a place counts
        if it is inside a word, or if its signs after the first are not only punctuation and spaces. Otherwise it counts
        only together with a different one."""
        expected = scripts_written(language)
        doubtful: dict[str, tuple[int, int]] = {}
        end = -1
        for match in _WRONG_BYTES.finditer(part.text):
            if not (letter := _decoded(match.group())):
                continue
            start, former = match.start(), end
            end = match.end()
            if start == former:  # two in a row
                yield match.span()
            elif not expected or _is_expected(letter, expected):
                before, after = part.text[max(0, start - 1) : start], part.text[end : end + 1]
                is_inside = before.islower() or (after.isalpha() and not match.group()[-1].isspace())
                if is_inside or not _NO_LETTER.fullmatch(match.group()[1:]):
                    yield match.span()
                else:
                    doubtful[letter] = match.span()
        if len(doubtful) > 1:
            yield from doubtful.values()


def _is_expected(letter: str, scripts: frozenset[str]) -> bool:
    """Whether a sign may be in a text of these scripts: Latin letters, punctuation and emoji may be in every one."""
    if regex.match(r"[\p{Common}\p{Inherited}\p{Latin}]", letter):
        return True
    return any(regex.match(rf"\p{{Script={script}}}", letter) for script in scripts)


def _decoded(signs: str) -> str:
    """The letter whose UTF-8 bytes were read as windows-1252; "" if the signs are not such bytes."""
    try:
        raw = b"".join(bytes([ord(sign)]) if 0x80 <= ord(sign) < 0x100 else sign.encode("cp1252") for sign in signs)
        letter = raw.decode("utf-8")
    except UnicodeError:
        return ""
    return letter if len(letter) < len(signs) else ""


class LostCharacter(_Damage):
    name = "lost_character"
    severity = "error"
    title = translatable("Character that was lost")
    help = translatable(
        "The sign � stands where a program could not read a character, and ? before the rest of an emoji."
    )

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        yield from (match.span() for match in _LOST.finditer(part.text))


class EscapedCharacter(_Damage):
    name = "escaped_character"
    severity = "warning"
    title = translatable("Escaped characters in the text")
    help = translatable("Such as \\n or \\u00e4: the text was escaped once more than it was read.")

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        if "\\" in part.text:
            yield from (match.span() for match in _ESCAPES.finditer(part.text))
        if "u0" in part.text:
            escapes = _LEFT_OF_ESCAPE.finditer(part.text)
            yield from (match.span() for match in escapes if chr(int(match.group()[1:], 16)).isalpha())


class _Marks(_Damage):
    says = translatable("%(found)s before “%(text)s”")
    pattern: regex.Pattern[str]

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        for part in item.parts:
            if match := self.pattern.search(part.text):
                after = excerpt_around(part.text, match.end(), match.end() + 10, around=0)
                yield Hit(item.ordinal, part.place, {"found": f"U+{ord(match.group()):04X}", "text": after})


class DirectionMark(_Marks):
    name = "direction_mark"
    severity = "notice"
    title = translatable("Mark of the direction of writing")
    help = translatable("These marks are not seen, and can change in which order words are shown.")
    pattern = _BIDI


class UnseenCharacter(_Marks):
    name = "unseen_character"
    severity = "notice"
    title = translatable("Character that is not seen")
    help = translatable(
        "Such as a space without width, a soft hyphen or a control character: comparisons fail on them."
    )
    pattern = _UNSEEN


CHECKS: tuple[type[Check], ...] = (WrongEncoding, LostCharacter, EscapedCharacter, DirectionMark, UnseenCharacter)
