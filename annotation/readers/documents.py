"""Small documents written by people (mappings, rubrics): YAML or JSON -> nodes that know their line and path.

Plain values are read from nodes one by one, with a ``FormatError`` at the first fault, or by `MultilingualReader`,
which notes every fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, BinaryIO, TypeVar, cast

import yaml

from accounts.languages import canonical_language
from annotation.readers.encoding import whole_text
from annotation.readers.json import parse_document, require_storable
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt
from annotation.readers.words import Words, joined_words

LONGEST_DOCUMENT = 8 * 2**20
DEEPEST_NESTING = 50
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
# Only the words that JSON has too: `no` is the language Norwegian, and `Yes` is a label.
_PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document: a dict or list of nodes, or a scalar with the ``text`` it was written as."""

    value: Any
    text: str
    file: str
    line: int | None
    path: str

    def problem(self, expected: str, code: str, actual: str | None = None) -> Problem:
        """The problem of this value."""
        return Problem(self.file, self.line, self.path or None, actual or self.shown, expected, code)

    @property
    def shown(self) -> str:
        """The value in a sentence."""
        if isinstance(self.value, dict):
            return Words("an object")
        return Words("a list") if isinstance(self.value, list) else excerpt(self.text)

    def members(self) -> Iterator[tuple[str, Node]]:
        """The keys and values of an object."""
        yield from self.value.items()


def load_document(name: str, raw: bytes | BinaryIO) -> Node:
    """The whole document: JSON if its name ends in ``.json``, otherwise YAML. Raises ``FormatError``."""
    text = whole_text(name, raw, LONGEST_DOCUMENT)
    if name.lower().endswith(".json"):
        return _from_json(name, parse_document(name, text), "")
    return _from_yaml(name, _composed(name, text), "")


def plain_document(name: str, raw: bytes) -> Any:
    """The whole document as plain lists, dicts and scalars. Raises ``FormatError``."""
    return _plain(load_document(name, raw))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(member) for key, member in node.value.items()}
    return [_plain(member) for member in node.value] if isinstance(node.value, list) else node.value


def load_shipped(name: str, raw: bytes) -> Node:
    """A YAML file of this package, read from libyaml's events if PyYAML has libyaml: this needs a tenth of the time,
    but aliases, nesting and keys are not checked. Files of users are read by `load_document`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(raw.decode())
    try:
        loader.get_event()  # the stream begins,
        loader.get_event()  # and its document
        return _from_events(name, loader, loader.get_event(), "")
    finally:
        loader.dispose()


def _from_events(name: str, loader: Any, event: Any, path: str) -> Node:
    """The value that begins with an event."""
    value: Any
    text, line = "", event.start_mark.line + 1
    if isinstance(event, yaml.MappingStartEvent):
        value = {}
        while isinstance(key := loader.get_event(), yaml.ScalarEvent):
            inside = f"{path}.{key.value}" if path else key.value
            value[key.value] = _from_events(name, loader, loader.get_event(), inside)
    elif isinstance(event, yaml.SequenceStartEvent):
        value = []
        while not isinstance(child := loader.get_event(), yaml.SequenceEndEvent):
            value.append(_from_events(name, loader, child, f"{path}[{len(value) + 1}]"))
    else:
        text = event.value
        value = text if event.style else scalar(text)
    return Node(value, text, name, line, path)


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which a small file can expand to a huge document, and nesting that no person writes."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self._refuse(Words("an alias (*name), which is not read here"))
        if self.depth == DEEPEST_NESTING:
            self._refuse(Words("more than %(number)s levels of lists and objects", number=DEEPEST_NESTING))
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refuse(self, actual: str) -> None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise yaml.MarkedYAMLError(problem=actual, problem_mark=mark)


def as_document(value: Any) -> Node:
    """A node from plain values that did not come from a file, such as those in the database."""
    return _from_json("mapping", value, "")


def _composed(name: str, text: str) -> yaml.Node:
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        actual = joined_words([part for part in (error.context, error.problem) if part], " ")
        raise FormatError(Problem(name, line, None, actual, Words("valid YAML"), "yaml")) from None
    except (yaml.YAMLError, ValueError) as error:
        actual = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(Problem(name, None, None, actual, Words("valid YAML"), "yaml")) from None
    if node is None:
        raise FormatError(Problem(name, None, None, Words("an empty document"), Words("named values"), "empty"))
    return node


def _from_yaml(name: str, node: yaml.Node, path: str) -> Node:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Node(_object(name, node, path), "", name, line, path)
    if isinstance(node, yaml.SequenceNode):
        children = [_from_yaml(name, child, f"{path}[{number}]") for number, child in enumerate(node.value, 1)]
        return Node(children, "", name, line, path)
    _require_storable(name, line, path, node.value)
    # A scalar in quotes or in a block is text, whatever it looks like.
    value = scalar(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else node.value
    return Node(value, node.value, name, line, path)


def _object(name: str, node: yaml.MappingNode, path: str) -> dict[str, Node]:
    members: dict[str, Node] = {}
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise FormatError(
                Problem(name, line, path or None, Words("a key that is not a word"), Words("a word"), "yaml")
            )
        _require_storable(name, line, path, key.value)
        if key.value in members:
            actual = Words("the key %(key)s twice", key=excerpt(key.value))
            raise FormatError(Problem(name, line, path or None, actual, Words("each key once"), "duplicate_key"))
        members[key.value] = _from_yaml(name, child, member_path(path, key.value))
    return members


def _require_storable(name: str, line: int, path: str, text: str) -> None:
    # YAML can spell a NUL or half a surrogate pair as an escape.
    try:
        require_storable(text)
    except InvalidValue as fault:
        raise FormatError(fault.at(name, line, path or None)) from None


def scalar(text: str) -> Any:
    """The value of a bare word: a number, true, false, null, or the word itself."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _from_json(name: str, value: Any, path: str) -> Node:
    if isinstance(value, dict):
        members = {key: _from_json(name, child, member_path(path, key)) for key, child in value.items()}
        return Node(members, "", name, None, path)
    if isinstance(value, list):
        children = [_from_json(name, child, f"{path}[{number}]") for number, child in enumerate(value, 1)]
        return Node(children, "", name, None, path)
    text = value if isinstance(value, str) else "" if value is None else str(value).lower()
    return Node(value, text, name, None, path)


def member_path(path: str, key: str) -> str:
    """The path of a member."""
    return f"{path}.{key}" if path else key


def words_of(node: Node) -> dict[str, str]:
    """An object of plain words, as written. Raises ``FormatError``."""
    if not isinstance(node.value, dict):
        raise FormatError(node.problem(Words("an object of names and words"), "shape"))
    for child in node.value.values():
        if isinstance(child.value, dict | list):
            raise FormatError(child.problem(Words("a word"), "shape"))
    return {key: child.text for key, child in node.members()}


_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def names_of(node: Node) -> tuple[str, ...]:
    """A list of names; a single name becomes a list of one name."""
    if not isinstance(node.value, list):
        return (word_of(node),)
    if any(isinstance(child.value, dict | list) for child in node.value):
        raise FormatError(node.problem(Words("a list of names"), "shape"))
    return tuple(child.text for child in node.value)


def word_of(node: Node) -> str:
    """One word, as written."""
    if isinstance(node.value, dict | list) or not node.text:
        raise FormatError(node.problem(Words("a word"), "shape"))
    return node.text


def count_of(node: Node) -> int:
    """A whole number from 0."""
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
        raise FormatError(node.problem(Words("a whole number"), "shape"))
    return node.value


def switch_of(node: Node) -> bool:
    """on or off."""
    if node.text.lower() not in _SWITCHES:
        raise FormatError(node.problem(Words("on or off"), "shape"))
    return _SWITCHES[node.text.lower()]


T = TypeVar("T")
_KEY = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,58}[a-z0-9])?")


class MultilingualReader:
    """Reads values from nodes. A fault is noted and replaced by a harmless value, so that reading continues.

    A text that is given without a language is in ``source``.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.source = "en"

    def fail(self, node: Node, expected: str, code: str, actual: str | None = None) -> None:
        """Note what is wrong with a value."""
        self.problems.add(node.problem(expected, code, actual))

    def members(
        self, node: Node, known: tuple[str, ...] | None = None, required: tuple[str, ...] = ()
    ) -> dict[str, Node]:
        """The members of an object that are set; unknown and missing keys are noted."""
        if not isinstance(node.value, dict):
            self.fail(
                node, Words("an object with %(names)s", names=", ".join(required or known or ("values",))), "shape"
            )
            return {}
        for key, child in node.members():
            if known is not None and key not in known:
                self.fail(child, _suggestion(key, known), "unknown_key", Words("the key %(key)s", key=excerpt(key)))
        given = {key: child for key, child in node.members() if child.value is not None}
        for key in required:
            if key not in given:
                self.fail(node, Words("%(name)s to be given", name=key), "missing_key", Words("no %(name)s", name=key))
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
            self.fail(node, Words("text"), "text")
        return node.text

    def short(self, node: Node | None, longest: int) -> str:
        """An optional word or two."""
        text = self.text(node).strip()
        if node is not None and len(text) > longest:
            self.fail(node, Words("at most %(number)s characters", number=longest), "too_long")
        return text

    def key(self, node: Node | None) -> str:
        """A key: the name of a thing in files and addresses."""
        if node is None:
            return ""
        if not _KEY.fullmatch(node.text):
            self.fail(node, Words("at most 60 small letters, digits, - and _, such as fluency"), "key")
        return node.text

    def language(self, node: Node | None) -> str:
        """A language tag in its canonical spelling."""
        return self._canonical(node.text, node) if node is not None else ""

    def words(self, node: Node | None) -> dict[str, str]:
        """A text, or texts by language, which must include the source language."""
        if node is None:
            return {}
        words = self.by_language(node, self.text) if isinstance(node.value, dict) else {self.source: self.text(node)}
        if self.source not in words:
            self.fail(
                node,
                Words("the text in %(language)s, the source language", language=self.source),
                "no_source_text",
                Words("translations only"),
            )
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
        texts: dict[str, T] = {}
        for tag, child in node.members():
            # Empty values are checked too: in {en: one, two} with an unquoted comma, "two" is read as a key.
            language = self._canonical(tag, child)
            if child.value is None:
                continue
            if language in texts:
                self.fail(
                    child,
                    Words("each language once"),
                    "duplicate_language",
                    Words("%(language)s twice", language=language),
                )
            texts[language] = read(child)
        return texts

    def switch(self, node: Node | None) -> bool:
        """true or false."""
        if node is not None and not isinstance(node.value, bool):
            self.fail(node, Words("true or false"), "shape")
        return node is not None and node.value is True

    def number(self, node: Node | None) -> float:
        """A number."""
        if node is None:
            return 0
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.fail(node, Words("a number"), "not_a_number")
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
        return tuple(read(child) for child in self.list(node, Words("a list"), at_least=0))

    def _canonical(self, tag: str, node: Node) -> str:
        try:
            return canonical_language(tag)
        except ValueError as error:
            self.fail(node, Words("a language tag such as et or pt-BR"), "language", str(error))
            return tag


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(word, known, 1)
    return (
        Words("%(name)s (did you mean that?)", name=near[0])
        if near
        else Words("one of %(names)s", names=", ".join(known))
    )
