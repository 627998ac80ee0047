"""A taxonomy as a document: tasks, styles, groups of criteria, and the rules that give criteria to panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, BinaryIO

from annotation.readers.documents import MultilingualReader, Node, as_document, load_document
from annotation.readers.problems import FormatError, Problems, loose_key
from annotation.readers.rubric import TextByLanguage, as_plain_yaml
from annotation.readers.words import Words, joined_words

MOST_TASKS = 2000
MOST_RULES = 500
MOST_ANNOTATORS = 50
"""The largest overlap of a rule."""
LONGEST_NAME = 120
ATTRIBUTE_NAMES = {"task": "task_type", "style": "functional_style", "difficulty": "difficulty"}
"""The attribute of items for each condition of rules, unless a taxonomy names another attribute."""


@dataclass(frozen=True, slots=True)
class TaxonomyNode:
    """A task, a style or a group of criteria: its key, its texts by language, and what is below it.

    ``difficulties``: by key, what this difficulty means for the task. ``criteria``: the keys of a group's criteria.
    """

    key: str
    name: TextByLanguage
    definition: TextByLanguage = field(default_factory=dict)
    difficulties: dict[str, TextByLanguage] = field(default_factory=dict)
    children: tuple[TaxonomyNode, ...] = ()
    criteria: tuple[str, ...] = ()

    def walk(self, above: tuple[TaxonomyNode, ...] = ()) -> Iterator[tuple[TaxonomyNode, ...]]:
        """Every path that ends at this node or at one of its descendants, parents before children."""
        path = (*above, self)
        yield path
        for child in self.children:
            yield from child.walk(path)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is empty is left out."""
        below = [child.as_dict() for child in self.children]
        parts = {"definition": self.definition, "difficulties": self.difficulties, "criteria": list(self.criteria)}
        set_parts = {name: part for name, part in parts.items() if part}
        return {"key": self.key, "name": self.name, **set_parts, **({"tasks": below} if below else {})}


@dataclass(frozen=True, slots=True)
class RuleSample:
    """Of the items that fit a rule, ``n`` units of every stratum at random, as `annotation/selections.py` draws them.

    ``by`` names what makes the strata: task, style, difficulty, language, generator, scenario, or an attribute.
    ``unit``: item, or scenario with all its items. ``seed``: None: a random one, stored with the draw.
    """

    n: int
    by: tuple[str, ...] = ()
    unit: str = "item"
    seed: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without those that are equal to their defaults."""
        given: dict[str, Any] = {"n": self.n}
        given |= {"by": list(self.by)} if self.by else {}
        given |= {"unit": self.unit} if self.unit != "item" else {}
        return given | ({} if self.seed is None else {"seed": self.seed})


@dataclass(frozen=True, slots=True)
class TaxonomyRule:
    """Items that fit are rated on these criteria by this panel, each by ``overlap`` of its annotators.

    ``criteria`` are keys of groups and of single criteria. What is empty fits every item. Rules of one panel with the
    same ``duty`` make one queue. ``sample``: only items that this draws.
    """

    name: str
    criteria: tuple[str, ...]
    panel: str
    overlap: int
    tasks: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    duty: str = ""
    sample: RuleSample | None = None

    @property
    def conditions(self) -> list[tuple[str, tuple[str, ...]]]:
        """The conditions on an item, each with the allowed values; without conditions every item matches."""
        given = [(part, getattr(self, part)) for part in _CONDITIONS]
        return [(part, values) for part, values in (*given, *self.attributes.items()) if values]

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is empty is left out."""
        lists = {part: list(getattr(self, part)) for part in _CONDITIONS}
        fits = {name: part for name, part in lists.items() if part}
        if self.attributes:
            fits["attributes"] = {name: list(values) for name, values in self.attributes.items()}  # type: ignore[assignment]
        named: dict[str, Any] = {"duty": self.duty} if self.duty else {}
        named |= {"sample": self.sample.as_dict()} if self.sample else {}
        given = {"criteria": list(self.criteria), "panel": self.panel, "overlap": self.overlap}
        return {"name": self.name, **fits, **given, **named}


@dataclass(frozen=True, slots=True)
class TaxonomyDocument:
    """A whole taxonomy. ``attributes``: the attributes of items that hold task, style and difficulty."""

    key: str
    name: TextByLanguage
    source_language: str
    tasks: tuple[TaxonomyNode, ...]
    styles: tuple[TaxonomyNode, ...]
    groups: tuple[TaxonomyNode, ...]
    rules: tuple[TaxonomyRule, ...]
    attributes: dict[str, str] = field(default_factory=lambda: dict(ATTRIBUTE_NAMES))

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order."""
        return {
            "key": self.key,
            "name": self.name,
            "source_language": self.source_language,
            "attributes": self.attributes,
            "tasks": [task.as_dict() for task in self.tasks],
            "styles": [style.as_dict() for style in self.styles],
            "criteria": [group.as_dict() for group in self.groups],
            "rules": [rule.as_dict() for rule in self.rules],
        }

    def as_yaml(self) -> str:
        """``as_dict`` as YAML; `parse_taxonomy` reads it back to an equal document."""
        return as_plain_yaml(self.as_dict())

    def task_paths(self) -> dict[str, tuple[TaxonomyNode, ...]]:
        """Map each key of a task to the tasks from the top of the tree down to it."""
        return {path[-1].key: path for top in self.tasks for path in top.walk()}

    def criteria_of_rule(self, rule: TaxonomyRule) -> list[str]:
        """The keys of the single criteria that a rule gives, each once."""
        groups = {group.key: group.criteria for group in self.groups}
        return list(dict.fromkeys(key for named in rule.criteria for key in groups.get(named, (named,))))


def names_in_items(nodes: Sequence[TaxonomyNode]) -> dict[str, str]:
    """Map each possible name of a task or a style in items (its key, or its name in any language) to the key."""
    called: dict[str, str] = {}
    for top in nodes:
        for path in top.walk():
            for word in (path[-1].key, *path[-1].name.values()):
                called.setdefault(loose_key(word), path[-1].key)
    return called


_CONDITIONS = ("tasks", "styles", "difficulties", "languages")
_KEYS = ("key", "name", "source_language", "attributes", "tasks", "styles", "criteria", "rules")
_TASK_KEYS = ("key", "name", "definition", "difficulties", "tasks")
_STYLE_KEYS = ("key", "name", "definition")
_GROUP_KEYS = ("key", "name", "definition", "criteria")
_RULE_KEYS = ("name", *_CONDITIONS, "attributes", "criteria", "panel", "overlap", "duty", "sample")
SAMPLE_UNITS = ("item", "scenario")
MOST_SAMPLED = 1_000_000
LARGEST_SEED = 2**53 - 1


def parse_taxonomy(name: str, raw: bytes | BinaryIO) -> tuple[TaxonomyDocument | None, Problems]:
    """Read a taxonomy from YAML or JSON (by the file name) and check all of it. Never raises on bad input."""
    problems = Problems()
    try:
        document = _TaxonomyReader(problems).taxonomy(load_document(name, raw))
    except FormatError as error:
        problems.add(error.problem)
    return (None if problems else document), problems


def taxonomy_from_dict(values: dict[str, Any]) -> TaxonomyDocument:
    """The document that ``as_dict`` gave. Raises ``FormatError`` when it is none."""
    problems = Problems()
    document = _TaxonomyReader(problems).taxonomy(as_document(values))
    if problems:
        raise FormatError(problems.shown[0])
    return document


class _TaxonomyReader(MultilingualReader):
    """Reads the nodes of a taxonomy, part by part."""

    def taxonomy(self, node: Node) -> TaxonomyDocument:
        """The whole document."""
        parts = self.members(node, _KEYS, required=("key", "name", "source_language", "criteria", "rules"))
        self.source = self.language(parts.get("source_language")) or "en"
        self.tasks: dict[str, Node] = {}
        self.levels: set[str] = set()
        tasks = self.nodes(parts.get("tasks"), _TASK_KEYS, self.tasks)
        if len(self.tasks) > MOST_TASKS:
            self.fail(
                parts["tasks"],
                Words("at most %(number)s tasks", number=f"{MOST_TASKS:,}"),
                "too_many",
                Words("%(number)s tasks", number=f"{len(self.tasks):,}"),
            )
        styles: dict[str, Node] = {}
        groups: dict[str, Node] = {}
        read_styles = self.nodes(parts.get("styles"), _STYLE_KEYS, styles)
        read_groups = self.nodes(parts.get("criteria"), _GROUP_KEYS, groups)
        self.named = {
            "tasks": set(self.tasks),
            "styles": set(styles),
            "criteria": self.criteria_keys(parts.get("criteria"), read_groups),
        }
        return TaxonomyDocument(
            key=self.key(parts.get("key")),
            name=self.words(parts.get("name")),
            source_language=self.source,
            attributes=self.attribute_names(parts.get("attributes")),
            tasks=tasks,
            styles=read_styles,
            groups=read_groups,
            rules=self.rules(parts.get("rules")),
        )

    def attribute_names(self, node: Node | None) -> dict[str, str]:
        """The attributes of items that hold task, style and difficulty."""
        parts = self.members(node, tuple(ATTRIBUTE_NAMES)) if node is not None else {}
        given = {name: self.short(child, LONGEST_NAME) for name, child in parts.items() if name in ATTRIBUTE_NAMES}
        return {**ATTRIBUTE_NAMES, **given}

    def nodes(self, node: Node | None, known: tuple[str, ...], seen: dict[str, Node]) -> tuple[TaxonomyNode, ...]:
        """Tasks with those below them, styles or groups; each key once in the whole tree."""
        return tuple(self.node(child, known, seen) for child in self.list(node, Words("a list"), at_least=0))

    def node(self, node: Node, known: tuple[str, ...], seen: dict[str, Node]) -> TaxonomyNode:
        """One of them."""
        parts = self.members(node, known, required=("key", "name"))
        key = self.key(parts.get("key"))
        if key and key in seen:
            self.fail(node, Words("a key of its own"), "duplicate_key", Words("the key %(key)s twice", key=key))
        seen.setdefault(key, node)
        levels = parts.get("difficulties")
        difficulties = self.members(levels) if levels is not None else {}
        self.levels |= difficulties.keys()
        return TaxonomyNode(
            key=key,
            name=self.words(parts.get("name")),
            definition=self.words(parts.get("definition")),
            difficulties={level: self.words(child) for level, child in difficulties.items()},
            children=self.nodes(parts["tasks"], known, seen) if "tasks" in known and "tasks" in parts else (),
            criteria=self.names(parts.get("criteria")) if "criteria" in known else (),
        )

    def criteria_keys(self, node: Node | None, groups: tuple[TaxonomyNode, ...]) -> set[str]:
        """The keys of groups and criteria, which rules may name; each criterion is in one group."""
        keys = {group.key for group in groups}
        for group in groups:
            for criterion in group.criteria:
                if criterion in keys and node is not None:
                    actual = Words("%(criterion)s in more than one group, or as a group too", criterion=criterion)
                    self.fail(node, Words("each criterion in one group"), "duplicate_criterion", actual)
                keys.add(criterion)
        return keys

    def names(self, node: Node | None) -> tuple[str, ...]:
        """A list of words, each once; one word is a list of it."""
        if node is None:
            return ()
        nodes = node.value if isinstance(node.value, list) else [node]
        return tuple(dict.fromkeys(self.short(child, LONGEST_NAME) for child in nodes))

    def rules(self, node: Node | None) -> tuple[TaxonomyRule, ...]:
        """All rules, each name once."""
        nodes = self.list(node, Words("a list of rules, at least one"))
        if len(nodes) > MOST_RULES and node is not None:
            self.fail(
                node,
                Words("at most %(number)s rules", number=MOST_RULES),
                "too_many",
                Words("%(number)s rules", number=f"{len(nodes):,}"),
            )
            return ()
        rules = tuple(self.rule(child, number) for number, child in enumerate(nodes, 1))
        seen: set[str] = set()
        for child, rule in zip(nodes, rules, strict=True):
            if rule.name in seen:
                self.fail(
                    child,
                    Words("a name of its own"),
                    "duplicate_rule",
                    Words("the rule %(name)s twice", name=rule.name),
                )
            seen.add(rule.name)
        return rules

    def rule(self, node: Node, number: int) -> TaxonomyRule:
        """One rule; what it names must be in the taxonomy."""
        parts = self.members(node, _RULE_KEYS, required=("criteria", "panel", "overlap"))
        overlap = self.number(parts.get("overlap"))
        if "overlap" in parts and overlap not in range(1, MOST_ANNOTATORS + 1):
            overlap = 1
            self.fail(parts["overlap"], Words("a whole number from 1 to %(number)s", number=MOST_ANNOTATORS), "overlap")
        chosen = {part: self.known_names(parts.get(part), part) for part in ("criteria", "tasks", "styles")}
        if "criteria" in parts and not chosen["criteria"]:
            self.fail(parts["criteria"], Words("at least one group or criterion"), "shape")
        levels = self.names(parts.get("difficulties"))
        for level in levels:
            if level not in self.levels and "difficulties" in parts:
                expected = Words(
                    "one of %(names)s", names=", ".join(sorted(self.levels)) or "the difficulties of a task"
                )
                self.fail(parts["difficulties"], expected, "unknown_difficulty", level)
        attributes = self.members(parts["attributes"]) if "attributes" in parts else {}
        return TaxonomyRule(
            name=self.short(parts.get("name"), LONGEST_NAME) or f"Rule {number}",
            **chosen,
            panel=self.short(parts.get("panel"), LONGEST_NAME),
            overlap=int(overlap),
            difficulties=levels,
            languages=tuple(self.language(child) for child in self.languages(parts.get("languages"))),
            attributes={name: self.names(child) for name, child in attributes.items()},
            duty=self.short(parts.get("duty"), LONGEST_NAME),
            sample=self.sample(parts["sample"]) if "sample" in parts else None,
        )

    def sample(self, node: Node) -> RuleSample:
        """The draw of a rule."""
        parts = self.members(node, ("n", "by", "unit", "seed"), required=("n",))
        n = self.whole(parts.get("n"), 1, MOST_SAMPLED, "the number to draw from every stratum, 1 or more")
        unit = self.short(parts["unit"], LONGEST_NAME) if "unit" in parts else "item"
        if unit not in SAMPLE_UNITS:
            self.fail(parts["unit"], Words("one of %(names)s", names=", ".join(SAMPLE_UNITS)), "unit", unit)
        seed = self.whole(parts["seed"], 0, LARGEST_SEED, "a whole number, 0 or more") if "seed" in parts else None
        return RuleSample(n=n, by=self.names(parts.get("by")), unit=unit, seed=seed)

    def whole(self, node: Node | None, lowest: int, highest: int, expected: str) -> int:
        """A whole number in a range; the lowest one where it is none."""
        if node is None:
            return lowest
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            self.fail(node, expected, "number", str(value)[:LONGEST_NAME])
            return lowest
        return value

    def languages(self, node: Node | None) -> list[Node]:
        """The nodes of language tags."""
        if node is None:
            return []
        return node.value if isinstance(node.value, list) else [node]

    def known_names(self, node: Node | None, part: str) -> tuple[str, ...]:
        """Keys of this taxonomy's tasks, styles, or groups and criteria."""
        names = self.names(node)
        for name in names:
            if node is not None and name not in self.named[part]:
                self.fail(node, _expected(part, name, self.named[part]), f"unknown_{part}", name)
        return names


def _expected(part: str, name: str, known: set[str]) -> str:
    what = (
        Words("a group of criteria or a criterion of a group")
        if part == "criteria"
        else Words("one of the %(part)s", part=part)
    )
    near = get_close_matches(name, sorted(known), 1)
    return joined_words([what, f" ({near[0]}?)"], "") if near else what
