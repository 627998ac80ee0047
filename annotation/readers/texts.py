"""Texts of items and rationales: replacing markup, and notes on texts that look wrongly decoded or are not in NFC."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from annotation.readers.problems import excerpt, shortened_list

LONGEST_GAP = 1_000  # characters that a `*` in a text to replace stands for
_UNKNOWN = "\ufffd"


# --- replacing --------------------------------------------------------------------------------------------------------
def _pieces(text: str) -> list[str]:
    return [piece.replace("\\*", "*") for piece in re.split(r"(?<!\\)\*", text)]


def replaced_pattern(text: str) -> re.Pattern[str]:
    """What a text to replace matches: itself, where one ``*`` inside stands for up to `LONGEST_GAP` characters but its
    first one, as in ``<span*>``; ``\\*`` is an asterisk. Raises ``ValueError`` with what is expected instead."""
    pieces = _pieces(text)
    if len(pieces) > 2 or not all(pieces):
        raise ValueError(r"a text with at most one * inside it, as in <span*>; \* for an asterisk")
    # Without the first character in the gap, a text of many such characters still takes linear time.
    gap = rf"[^{re.escape(pieces[0][0])}]{{0,{LONGEST_GAP}}}?"
    return re.compile(gap.join(map(re.escape, pieces)))


class TextReplacement:
    """Replaces texts by others, one after the other, and remembers which of them occurred.

    Texts without an asterisk come first, of several the longest: a mapping that was stored has no order of its own.
    """

    def __init__(self, replace: Mapping[str, str]) -> None:
        ordered = sorted(replace, key=lambda text: (len(_pieces(text)), -len(text), text))
        self._patterns = [(text, replaced_pattern(text), replace[text]) for text in ordered]
        self._occurred: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __call__(self, text: str) -> str:
        for name, pattern, words in self._patterns:
            # A function, because a backslash in a template would have a meaning.
            text, count = pattern.subn(lambda _match, words=words: words, text)  # type: ignore[misc]
            if count:
                self._occurred.add(name)
        return text

    def inside(self, value: Any) -> Any:
        """The value with its texts replaced: a text, a list of texts, or something else, which stays as it is."""
        if isinstance(value, list):
            return [self.inside(part) for part in value]
        return self(value) if isinstance(value, str) else value

    def notes(self, where: str) -> list[str]:
        """Sentences on what was replaced, and on what does not occur; ``where``: in which texts."""
        names = [name for name, _pattern, _words in self._patterns]
        done = [excerpt(name) for name in names if name in self._occurred]
        absent = [excerpt(name) for name in names if name not in self._occurred]
        notes = [f"Replaced in {where}, as set in the mapping: {shortened_list(done)}."] if done else []
        return [*notes, *([f"To be replaced, but not found in {where}: {shortened_list(absent)}."] if absent else [])]


# --- doubts -----------------------------------------------------------------------------------------------------------
_CONTINUATION = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
# Bytes of UTF-8 read as Windows-1252. Two-byte sequences of scripts other than Latin-1 letters come in runs.
_MISREAD = re.compile(
    rf"[ð-ô][{_CONTINUATION}]{{3}}|[à-ï][{_CONTINUATION}]{{2}}|[ÂÃ][{_CONTINUATION}]"
    rf"|(?:[ÄÅÎÏÐÑ×ØÙ][{_CONTINUATION}]){{2,}}"
)
_ANY_CONTINUATION = re.compile(rf"[{_CONTINUATION}]")  # in few ordinary texts, and found faster
_CLOSING_QUOTES = "»’”“›"


def misread_utf8(text: str) -> tuple[str, str] | None:
    """The first part of a text that seems to be UTF-8 read as Windows-1252, with what it should be: ``("Ã¼", "ü")``."""
    if not _ANY_CONTINUATION.search(text):
        return None
    for match in _MISREAD.finditer(text):
        part, after = match[0], text[match.end() : match.end() + 1]
        if len(part) == 2 and part[-1] in _CLOSING_QUOTES and not after.isalnum():
            continue  # a capital letter before a closing quote
        try:
            meant = b"".join(map(_byte, part)).decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            continue
        if meant.isprintable() or meant == "\xa0":
            return part, meant
    return None


def _byte(character: str) -> bytes:
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1")


class TextDoubts:
    """Counts the items with texts that look wrongly decoded, or are not in Unicode normal form C; they are stored as
    they are."""

    def __init__(self) -> None:
        self._misread: list[str] = []
        self._lost: list[str] = []
        self._other_form: list[str] = []
        self._example = ("", "")
        self._counts: Counter[str] = Counter()

    def see(self, texts: Iterable[str], file: str, line: int) -> None:
        """Look at the texts of one item."""
        text = "\n".join([part for part in texts if not part.isascii()])
        if not text:
            return
        place = (file, line)
        if misread := misread_utf8(text):
            self._example = self._example if self._misread else misread
            self._note(self._misread, "misread", place)
        if _UNKNOWN in text:
            self._note(self._lost, "lost", place)
        if not unicodedata.is_normalized("NFC", text):
            self._note(self._other_form, "form", place)

    def _note(self, places: list[str], kind: str, place: tuple[str, int]) -> None:
        self._counts[kind] += 1
        if len(places) < 3:
            places.append(f"{place[0]}, line {place[1]}")

    def notes(self) -> list[str]:
        """A sentence on each doubt, with its number of items and the first places."""
        notes = []
        if self._misread:
            wrong, right = self._example
            notes.append(
                f"Items with text that looks wrongly decoded, such as {excerpt(wrong)} for {excerpt(right)}: "
                f"{self._listed(self._misread, 'misread')}. It is stored as it is; correct the file if it is wrong."
            )
        if self._lost:
            notes.append(
                f"Items with the character U+FFFD, which replaces lost characters: {self._listed(self._lost, 'lost')}."
            )
        if self._other_form:
            notes.append(
                "Items with text that is not in Unicode normal form C (NFC), which is stored as it is: "
                f"{self._listed(self._other_form, 'form')}. The same word in another form counts as a different word."
            )
        return notes

    def _listed(self, places: list[str], kind: str) -> str:
        count = self._counts[kind]
        return f"{count:,} ({', '.join(places)}{', ...' if count > len(places) else ''})"
