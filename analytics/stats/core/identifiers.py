"""Names of items, raters, criteria and clusters as they are compared: in one Unicode form, without outer spaces.

The same letter can be written in two ways: é as one character (NFC), or as e with an accent (NFD). Files made on
different systems differ in that and look alike, so that one item would count as two. Source: Unicode Standard Annex 15
(unicode.org/reports/tr15); METHODS 0; docs/decisions/0042.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple
from unicodedata import category, is_normalized, normalize

_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")
_MOST_EXAMPLES = 3


def normal_identifier(text: str) -> str:
    """The text in Unicode normal form C, without white space around it."""
    text = text.strip()
    return text if text.isascii() or is_normalized("NFC", text) else normalize("NFC", text)


def loose_identifier(text: str) -> str:
    """A key that is equal for identifiers that differ only in case, in zero-width characters or in leading zeros."""
    if not text.isascii():
        text = "".join(character for character in normalize("NFKC", text) if category(character) != "Cf")
    return _ZEROS.sub("", text.casefold()) if "0" in text else text.casefold()


def near_identifiers(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of different identifiers that are probably meant to be one (``loose_identifier``), in sorted order."""
    distinct = set(names)
    loose = {name: loose_identifier(name) for name in distinct}
    if len(set(loose.values())) == len(distinct):
        return []
    groups: dict[str, set[str]] = {}
    for name, key in loose.items():
        groups.setdefault(key, set()).add(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


class IdentifierDoubt(NamedTuple):
    """A note on identifiers for the reader: ``changed`` or ``near``, how many, and examples."""

    code: str
    number: int
    examples: str


def identifier_doubts(changed: Collection[str], names: Iterable[str]) -> Iterator[IdentifierDoubt]:
    """How many of the given identifiers were ``changed``, and which of the compared ``names`` look like one."""
    if changed:
        yield IdentifierDoubt("changed", len(changed), ", ".join(map(_shown, sorted(changed)[:_MOST_EXAMPLES])))
    if near := near_identifiers(names):
        pairs = "; ".join(" and ".join(map(_shown, group)) for group in near[:_MOST_EXAMPLES])
        yield IdentifierDoubt("near", len(near), pairs)


def identifier_notes(kind: str, changed: Collection[str], names: Iterable[str]) -> Iterator[str]:
    """The doubts about the identifiers of one kind (``Items``) as sentences."""
    for doubt in identifier_doubts(changed, names):
        if doubt.code == "changed":
            yield (
                f"{kind} named in another Unicode form than NFC, or with outer spaces: {doubt.number}, "
                f"such as {doubt.examples}. They are compared in NFC, without these spaces"
            )
        else:
            yield (
                f"{kind} with names that differ only in case, characters without width or leading zeros: groups of "
                f"names: {doubt.number}, such as {doubt.examples}. They count as different"
            )


def _shown(name: str) -> str:
    """The identifier in quotes; invisible characters are written as their codes."""
    visible = "".join(
        c if category(c) not in ("Cf", "Cc", "Mn", "Zs") or c == " " else f"\\u{ord(c):04x}" for c in name
    )
    return f"'{visible}'"


def spellings_of(names: Iterable[str]) -> set[str]:
    """Normal identifiers, and each in NFD: what older rows of a database may hold."""
    return {spelling for name in names for spelling in (name, name if name.isascii() else normalize("NFD", name))}
