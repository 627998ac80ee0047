"""Plain values out of a document's nodes: names, words, counts, switches; or a ``FormatError`` with its line."""

from __future__ import annotations

from annotation.readers.documents import Node
from annotation.readers.problems import FormatError

_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def names_of(node: Node) -> tuple[str, ...]:
    """A list of names; one name alone is a list of it."""
    if not isinstance(node.value, list):
        return (word_of(node),)
    if any(isinstance(child.value, dict | list) for child in node.value):
        raise FormatError(node.problem("a list of names", "shape"))
    return tuple(child.text for child in node.value)


def word_of(node: Node) -> str:
    """One word, as written."""
    if isinstance(node.value, dict | list) or not node.text:
        raise FormatError(node.problem("a word", "shape"))
    return node.text


def count_of(node: Node) -> int:
    """A whole number from 0."""
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
        raise FormatError(node.problem("a whole number", "shape"))
    return node.value


def switch_of(node: Node) -> bool:
    """on or off."""
    if node.text.lower() not in _SWITCHES:
        raise FormatError(node.problem("on or off", "shape"))
    return _SWITCHES[node.text.lower()]
