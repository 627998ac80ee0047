"""Small documents written by people (mappings, rubrics): YAML or JSON -> nodes that know their line and path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import yaml

from annotation.readers.encoding import whole_text
from annotation.readers.jsontext import parse_document, require_storable
from annotation.readers.problems import FormatError, Problem, Unfit, excerpt

LONGEST_DOCUMENT = 8 * 2**20
DEEPEST_NESTING = 50

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
# Only what JSON has too: `no` is Norwegian, and `Yes` is a label.
_PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document: a dict or list of nodes, or a scalar with the ``text`` it was written as."""

    value: Any
    text: str
    file: str
    line: int | None
    path: str

    def problem(self, expected: str, code: str, found: str | None = None) -> Problem:
        """What is wrong with this value."""
        return Problem(self.file, self.line, self.path or None, found or self.shown, expected, code)

    @property
    def shown(self) -> str:
        """The value in a sentence."""
        if isinstance(self.value, dict):
            return "an object"
        return "a list" if isinstance(self.value, list) else excerpt(self.text)

    def members(self) -> Iterator[tuple[str, Node]]:
        """The keys and values of an object."""
        yield from self.value.items()


def load_document(name: str, raw: bytes | BinaryIO) -> Node:
    """The whole document, told as JSON by its name or as YAML otherwise. Raises ``FormatError``."""
    text = whole_text(name, raw, LONGEST_DOCUMENT)
    if name.lower().endswith(".json"):
        return _from_json(name, parse_document(name, text), "")
    return _from_yaml(name, _composed(name, text), "")


def load_shipped(name: str, raw: bytes) -> Node:
    """A YAML file of this package, read by libyaml where PyYAML has it: a tenth of the time, but aliases and nesting
    are not bounded. What users send goes through `load_document`. Raises ``FormatError``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _from_yaml(name, _composed(name, raw.decode(), loader), "")


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which a small file stands for a huge one, and nesting that no person writes."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self._refuse("an alias (*name), which is not read here")
        if self.depth == DEEPEST_NESTING:
            self._refuse(f"more than {DEEPEST_NESTING} levels of lists and objects")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refuse(self, found: str) -> None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise yaml.MarkedYAMLError(problem=found, problem_mark=mark)


def as_document(value: Any) -> Node:
    """Plain values that did not come from a file, such as those kept in the database."""
    return _from_json("mapping", value, "")


def _composed(name: str, text: str, loader: type[yaml.SafeLoader] = _Loader) -> yaml.Node:
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        found = " ".join(part for part in (error.context, error.problem) if part)
        raise FormatError(Problem(name, line, None, found, "valid YAML", "yaml")) from None
    except (yaml.YAMLError, ValueError) as error:
        found = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(Problem(name, None, None, found, "valid YAML", "yaml")) from None
    if node is None:
        raise FormatError(Problem(name, None, None, "an empty document", "named values", "empty"))
    return node


def _from_yaml(name: str, node: yaml.Node, path: str) -> Node:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Node(_object(name, node, path), "", name, line, path)
    if isinstance(node, yaml.SequenceNode):
        children = [_from_yaml(name, child, f"{path}[{number}]") for number, child in enumerate(node.value, 1)]
        return Node(children, "", name, line, path)
    _require_storable(name, line, path, node.value)
    # A scalar in quotes or in a block is text, whatever it looks like. The style of others is None, of libyaml "".
    value = scalar(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else node.value
    return Node(value, node.value, name, line, path)


def _object(name: str, node: yaml.MappingNode, path: str) -> dict[str, Node]:
    members: dict[str, Node] = {}
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise FormatError(Problem(name, line, path or None, "a key that is no word", "a word", "yaml"))
        _require_storable(name, line, path, key.value)
        if key.value in members:
            found = f"the key {excerpt(key.value)} twice"
            raise FormatError(Problem(name, line, path or None, found, "each key once", "duplicate_key"))
        members[key.value] = _from_yaml(name, child, joined(path, key.value))
    return members


def _require_storable(name: str, line: int, path: str, text: str) -> None:
    # YAML can spell a NUL or half a surrogate pair as an escape.
    try:
        require_storable(text)
    except Unfit as fault:
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
        members = {key: _from_json(name, child, joined(path, key)) for key, child in value.items()}
        return Node(members, "", name, None, path)
    if isinstance(value, list):
        children = [_from_json(name, child, f"{path}[{number}]") for number, child in enumerate(value, 1)]
        return Node(children, "", name, None, path)
    text = value if isinstance(value, str) else "" if value is None else str(value).lower()
    return Node(value, text, name, None, path)


def joined(path: str, key: str) -> str:
    """The path of a member."""
    return f"{path}.{key}" if path else key


def words_of(node: Node) -> dict[str, str]:
    """An object of plain words, as written. Raises ``FormatError``."""
    if not isinstance(node.value, dict):
        raise FormatError(node.problem("an object of names and words", "shape"))
    for child in node.value.values():
        if isinstance(child.value, dict | list):
            raise FormatError(child.problem("a word", "shape"))
    return {key: child.text for key, child in node.members()}
