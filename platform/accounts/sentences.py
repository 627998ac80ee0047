"""Sentences that were composed in English, in the reader's language.

Statistics and readers of files import no Django, and a worker stores what it says in English. A list has such sentences
with placeholders, marked for translation: a text is found in it, and composed again with its values in the language of
the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.utils.translation import get_language, get_language_bidi, gettext, trans_real

_PLACEHOLDER = re.compile(r"%(?:\((\w+)\))?[sd]")
_SEPARATOR = "; "
_MOST_KEPT = 8192
_FEWEST_LETTERS = 6
"""A sentence of the catalogue with fewer letters outside its placeholders would be found in any text."""


COMMAS = {"ar": "، ", "ja": "、", "zh-hans": "、"}
"""What separates parts in languages that have a comma of their own."""


def with_commas(parts: Iterable[str]) -> str:
    """The parts in a row, with the commas of the reader's language."""
    return COMMAS.get(get_language() or "", ", ").join(parts)


SEMICOLONS = {"ar": "؛ ", "ja": "；", "zh-hans": "；"}


def with_semicolons(parts: Iterable[str]) -> str:
    """The parts in a row, which may have commas themselves, with the semicolons of the reader's language."""
    return SEMICOLONS.get(get_language() or "", "; ").join(parts)


def left_to_right(number: str) -> str:
    """A number or an interval that right-to-left text around it leaves in its order."""
    return f"\u2066{number}\u2069" if get_language_bidi() else number


class Sentences:
    """The sentences of a list, with `%(name)s` where values stand; a value may be one of them itself.

    Several in one text, with "; " between them, are translated one by one. What is on no list stays as it is.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        listed = tuple(listed)
        self._whole = {sentence for sentence in listed if not _PLACEHOLDER.search(sentence)}
        patterns = {sentence: _literals(sentence) for sentence in listed if sentence not in self._whole}
        self._patterns = [
            (max(literals, key=len), sentence)
            for sentence, literals in sorted(patterns.items(), key=lambda item: -sum(map(len, item[1])))
        ]
        self._kept = lru_cache(maxsize=_MOST_KEPT)(self._translated)
        self._compiled = lru_cache(maxsize=None)(self._pattern)

    def translated(self, text: str) -> str:
        """The text in the reader's language."""
        language = get_language()
        if not text or language is None or language == settings.LANGUAGE_CODE:
            return text
        return self._kept(text, language)

    def _translated(self, text: str, _language: str) -> str:
        parts = text.split(_SEPARATOR)
        return self._found(text) or _SEPARATOR.join(self._found(part) or part for part in parts)

    def _found(self, text: str) -> str:
        if text in self._whole:
            return gettext(text)
        if (match := self._match(text)) is None:
            return ""
        sentence, found = match
        values = [self._found(value) or value for value in found]
        names = [name or str(place) for place, name in enumerate(_PLACEHOLDER.findall(sentence))]
        return _with_values(gettext(sentence), dict(zip(names, values, strict=True)))

    def _match(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        for literal, sentence in self._patterns:
            if literal in text and (found := self._compiled(sentence).fullmatch(text)):
                return sentence, found.groups()
        return None

    def _pattern(self, sentence: str) -> re.Pattern[str]:
        """What finds the values of a sentence; they do not contain the separator."""
        value = f"((?:(?!{_SEPARATOR}).)+?)"
        return re.compile(value.join(map(re.escape, _literals(sentence))), re.DOTALL)


def _with_values(sentence: str, values: dict[str, str]) -> str:
    """A sentence with its placeholders replaced, those without a name by their place from 0."""
    place = iter(range(len(values)))
    text = _PLACEHOLDER.sub(lambda found: values.get(found[1] or str(next(place)), found[0]), sentence)
    return text.replace("%%", "%")


def _literals(sentence: str) -> list[str]:
    """What stands between the placeholders."""
    return [part.replace("%%", "%") for part in _PLACEHOLDER.split(sentence)[::2]]


def stored_sentence(text: str) -> str:
    """A sentence that a worker composed and stored in English, in the reader's language, if the catalogue has it."""
    language = get_language()
    if not text or language is None or language == settings.LANGUAGE_CODE:
        return text
    return _of_catalogue(language).translated(text)


@lru_cache(maxsize=8)
def _of_catalogue(language: str) -> Sentences:
    """All sentences of a language's catalogue."""
    known = trans_real.translation(language)._catalog  # type: ignore[attr-defined]
    ids = {key if isinstance(key, str) else key[0] for key in known.keys()}  # noqa: SIM118 (no mapping)
    return Sentences(
        text
        for text in ids
        if text and len("".join(re.findall("[A-Za-z]", _PLACEHOLDER.sub("", text)))) >= _FEWEST_LETTERS
    )
