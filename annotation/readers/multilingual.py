"""The values that a document in several languages is made of, read from its nodes so that every fault is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from accounts.languages import canonical
from annotation.readers.documents import Node
from annotation.readers.problems import Problems, excerpt

T = TypeVar("T")

_KEY = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,58}[a-z0-9])?")


class MultilingualReader:
    """Takes values from nodes. A fault is noted and a harmless value stands in, so that reading goes on.

    A text that is given without a language is in ``source``.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.source = "en"

    def fail(self, node: Node, expected: str, code: str, found: str | None = None) -> None:
        """Note what is wrong with a value."""
        self.problems.add(node.problem(expected, code, found))

    def members(
        self, node: Node, known: tuple[str, ...] | None = None, required: tuple[str, ...] = ()
    ) -> dict[str, Node]:
        """The members of an object that are set; unknown and missing keys are noted."""
        if not isinstance(node.value, dict):
            self.fail(node, f"an object with {', '.join(required or known or ('values',))}", "shape")
            return {}
        for key, child in node.members():
            if known is not None and key not in known:
                self.fail(child, _suggestion(key, known), "unknown_key", f"the key {excerpt(key)}")
        given = {key: child for key, child in node.members() if child.value is not None}
        for key in required:
            if key not in given:
                self.fail(node, f"{key} to be given", "missing_key", f"no {key}")
        return given

    def list(self, node: Node | None, expected: str, at_least: int = 1) -> list[Node]:
        """The members of a list. A missing one has been noted by whoever requires it."""
        if node is None:
            return []
        if not isinstance(node.value, list) or len(node.value) < at_least:
            self.fail(node, expected, "shape")
            return []
        return cast("list[Node]", node.value)

    def text(self, node: Node | None) -> str:
        """Text that says something; a number or a word such as true counts as written."""
        if node is None:
            return ""
        if isinstance(node.value, dict | list) or not node.text.strip():
            self.fail(node, "text", "text")
        return node.text

    def short(self, node: Node | None, longest: int) -> str:
        """An optional word or two."""
        text = self.text(node).strip()
        if node is not None and len(text) > longest:
            self.fail(node, f"at most {longest} characters", "too_long")
        return text

    def key(self, node: Node | None) -> str:
        """What the thing is called in files and addresses."""
        if node is None:
            return ""
        if not _KEY.fullmatch(node.text):
            self.fail(node, "at most 60 small letters, digits, - and _, such as fluency", "key")
        return node.text

    def language(self, node: Node | None) -> str:
        """A language tag in its one spelling."""
        return self._canonical(node.text, node) if node is not None else ""

    def words(self, node: Node | None) -> dict[str, str]:
        """A text, or texts by language, that of the source language among them."""
        if node is None:
            return {}
        words = self.by_language(node, self.text) if isinstance(node.value, dict) else {self.source: self.text(node)}
        if self.source not in words:
            self.fail(node, f"the text in {self.source}, the source language", "no_source_text", "translations only")
        return words

    def lists(self, node: Node | None, read: Callable[[Node], T]) -> dict[str, tuple[T, ...]]:
        """A list, or lists by language."""
        if node is None:
            return {}
        if isinstance(node.value, dict):
            return self.by_language(node, lambda child: self._all(child, read))
        return {self.source: self._all(node, read)}

    def by_language(self, node: Node, read: Callable[[Node], T]) -> dict[str, T]:
        """An object whose keys are language tags, each language once; a language may still be empty."""
        found: dict[str, T] = {}
        for tag, child in node.members():
            # Also where nothing is set: after an unquoted comma in {en: one, two} the rest of the text is such a key.
            language = self._canonical(tag, child)
            if child.value is None:
                continue
            if language in found:
                self.fail(child, "each language once", "duplicate_language", f"{language} twice")
            found[language] = read(child)
        return found

    def switch(self, node: Node | None) -> bool:
        """true or false."""
        if node is not None and not isinstance(node.value, bool):
            self.fail(node, "true or false", "shape")
        return node is not None and node.value is True

    def number(self, node: Node | None) -> float:
        """A number."""
        if node is None:
            return 0
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.fail(node, "a number", "not_a_number")
            return 0
        return node.value

    def one_of(self, node: Node | None, choices: tuple[str, ...], default: str) -> Any:
        """One of a few words; ``Any`` because the words are a ``Literal`` of the caller."""
        if node is None:
            return default
        if node.text not in choices:
            self.fail(node, _suggestion(node.text, choices), "choice")
            return default
        return node.text

    def _all(self, node: Node, read: Callable[[Node], T]) -> tuple[T, ...]:
        return tuple(read(child) for child in self.list(node, "a list", at_least=0))

    def _canonical(self, tag: str, node: Node) -> str:
        try:
            return canonical(tag)
        except ValueError as error:
            self.fail(node, "a language tag such as et or pt-BR", "language", str(error))
            return tag


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(word, known, 1)
    return f"{near[0]} (did you mean that?)" if near else f"one of {', '.join(known)}"
