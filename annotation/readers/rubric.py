"""A rubric as a document: its parts, its canonical form as plain values and as YAML, the reading of rubric files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, get_args

import yaml

from annotation.readers.documents import MultilingualReader, Node, as_document, load_document, scalar
from annotation.readers.problems import FormatError, Problems
from annotation.readers.words import Words
from annotation.whole_item import WHOLE_ITEM_COLUMNS, AskedAs, asked_as

Level = Literal["nominal", "ordinal", "interval"]
Group = Literal["critical", "general", "domain", "task", "subjective"]
Rule = Literal["never", "optional", "required", "required_except_best"]
Evidence = Literal["none", "optional", "required"]
Direction = Literal["higher_is_better", "lower_is_better", "none"]
TranslationState = Literal["draft", "reviewed", "stale"]
TextByLanguage = dict[str, str]  # language -> text


@dataclass(frozen=True, slots=True)
class PointDocument:
    """One point of a scale: its value, and its label by language (required on nominal scales)."""

    value: float
    label: TextByLanguage = field(default_factory=dict)


def is_on_scale(score: float, *, points: Collection[float], minimum: float, maximum: float, step: float | None) -> bool:
    """The one rule of what is on a scale: one of its points; else a whole step from ``minimum``, or without a step any
    number, up to ``maximum``.
    """
    if points:
        return score in points
    if not minimum <= score <= maximum:
        return False
    steps = (score - minimum) / step if step else 0.0
    return abs(steps - round(steps)) < 1e-9


@dataclass(frozen=True, slots=True)
class ScaleDocument:
    """Either its points, or a range from ``minimum`` to ``maximum`` by ``step`` (``None``: any number between)."""

    level: Level
    points: tuple[PointDocument, ...] = ()
    minimum: float = 0
    maximum: float = 0
    step: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a score is on the scale."""
        points = [point.value for point in self.points]
        return is_on_scale(value, points=points, minimum=self.minimum, maximum=self.maximum, step=self.step)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        if self.points:
            return {"level": self.level, "points": [_point(point) for point in self.points]}
        step = {} if self.step is None else {"step": plain_number(self.step)}
        return {"level": self.level, "min": plain_number(self.minimum), "max": plain_number(self.maximum), **step}


@dataclass(frozen=True, slots=True)
class AnchorDocument:
    """The words that fix one point in one language, and why they do."""

    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ExampleDocument:
    """A text with the score it deserves and a comment."""

    text: str
    score: float
    comment: str = ""


@dataclass(frozen=True, slots=True)
class RationaleRule:
    """When a rationale is asked for, and of how many words at least."""

    rule: Rule = "optional"
    min_words: int = 0


@dataclass(frozen=True, slots=True)
class CriterionDocument:
    """One criterion. Texts are by language; ``anchors`` by value, then language.

    ``translations``: the state of its texts by language; a translation without one is a draft.
    """

    key: str
    name: TextByLanguage
    scale: ScaleDocument
    question: TextByLanguage = field(default_factory=dict)
    definition: TextByLanguage = field(default_factory=dict)
    anchors: dict[float, dict[str, AnchorDocument]] = field(default_factory=dict)
    mark_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dont_mark_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    examples: dict[str, tuple[ExampleDocument, ...]] = field(default_factory=dict)
    speaker: str = "any"
    not_applicable: bool = False
    rationale: RationaleRule = RationaleRule()
    evidence: Evidence = "optional"
    group: Group = "general"
    panel: str = ""
    direction: Direction = "higher_is_better"
    translations: dict[str, TranslationState] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order; empty texts are left out, everything else is written."""
        texts = {
            "question": self.question,
            "definition": self.definition,
            "anchors": {str(plain_number(value)): _by_language(anchors) for value, anchors in self.anchors.items()},
            "mark_if": {language: list(lines) for language, lines in self.mark_if.items()},
            "dont_mark_if": {language: list(lines) for language, lines in self.dont_mark_if.items()},
            "examples": {language: [_example(example) for example in some] for language, some in self.examples.items()},
            "evidence": "" if self.evidence == "optional" else self.evidence,
            "panel": self.panel,
            "translations": dict(self.translations),
        }
        return {
            "key": self.key,
            "name": self.name,
            "scale": self.scale.as_dict(),
            **{name: text for name, text in texts.items() if text},
            "speaker": self.speaker,
            "not_applicable": self.not_applicable,
            "rationale": {"rule": self.rationale.rule, "min_words": self.rationale.min_words},
            "group": self.group,
            "direction": self.direction,
        }


@dataclass(frozen=True, slots=True)
class RubricDocument:
    """A whole rubric. ``as_dict`` is plain JSON; ``rubric.parse_rubric`` reads ``as_yaml`` back to an equal one.

    ``asked``: how it asks each question about the whole item (`annotation.whole_item`).
    """

    key: str
    name: TextByLanguage
    source_language: str
    criteria: tuple[CriterionDocument, ...]
    asked: Mapping[str, AskedAs] = field(default_factory=lambda: asked_as({}))

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order."""
        return {
            "key": self.key,
            "name": self.name,
            "source_language": self.source_language,
            **{name: how for name, how in self.asked.items() if how != "none"},
            "criteria": [criterion.as_dict() for criterion in self.criteria],
        }

    def as_yaml(self) -> str:
        """``as_dict`` as YAML."""
        return as_plain_yaml(self.as_dict())


class _Dumper(yaml.SafeDumper):
    """Writes a value that is used in two places twice: rubrics are read without aliases."""

    def ignore_aliases(self, value: Any) -> bool:
        return True


def as_plain_yaml(values: dict[str, Any]) -> str:
    """Plain values as YAML that `load_document` reads."""
    return yaml.dump(values, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)


def plain_number(value: float) -> float:
    """A number as people write it: 2 rather than 2.0."""
    return int(value) if float(value).is_integer() else value


def _point(point: PointDocument) -> Any:
    return {"value": plain_number(point.value), "label": point.label} if point.label else plain_number(point.value)


def _by_language(anchors: dict[str, AnchorDocument]) -> dict[str, Any]:
    return {
        language: {"text": anchor.text, "reason": anchor.reason} if anchor.reason else anchor.text
        for language, anchor in anchors.items()
    }


def _example(example: ExampleDocument) -> dict[str, Any]:
    comment = {"comment": example.comment} if example.comment else {}
    return {"text": example.text, "score": plain_number(example.score), **comment}


def scale_in_words(scale: ScaleDocument) -> str:
    """The scale as a sentence names it: ``No, Yes``, ``1, 2, 3`` or ``0 to 100``."""
    if scale.points:
        return ", ".join(next(iter(point.label.values()), f"{point.value:g}") for point in scale.points)
    return Words("%(low)s to %(high)s", low=f"{scale.minimum:g}", high=f"{scale.maximum:g}")


_RUBRIC_KEYS = ("key", "name", "source_language", "criteria")
_CRITERION_KEYS = (
    *("key", "name", "question", "definition", "scale", "anchors", "mark_if", "dont_mark_if", "examples"),
    *("speaker", "not_applicable", "rationale", "evidence", "group", "panel", "direction", "translations"),
)
_SCALE_KEYS = ("level", "points", "min", "max", "step")


@dataclass(frozen=True, slots=True)
class ParsedRubric:
    """The document, or ``None`` and the problems because of which there is none."""

    document: RubricDocument | None
    problems: Problems


def parse_rubric(name: str, raw: bytes | BinaryIO) -> ParsedRubric:
    """Read a rubric from YAML or JSON (by the file name) and check all of it. Never raises on bad input."""
    problems = Problems()
    try:
        document = _Reader(problems).rubric(load_document(name, raw))
    except FormatError as error:
        problems.add(error.problem)
    return ParsedRubric(None if problems else document, problems)


def rubric_from_dict(values: dict[str, Any]) -> RubricDocument:
    """The document that ``as_dict`` gave. Raises ``FormatError`` when it is none."""
    problems = Problems()
    document = _Reader(problems).rubric(as_document(values))
    if problems:
        raise FormatError(problems.shown[0])
    return document


class _Reader(MultilingualReader):
    """Reads the nodes of a rubric, part by part."""

    def rubric(self, node: Node) -> RubricDocument:
        """The whole document."""
        parts = self.members(node, (*_RUBRIC_KEYS, *WHOLE_ITEM_COLUMNS), required=_RUBRIC_KEYS)
        self.source = self.language(parts.get("source_language")) or "en"
        return RubricDocument(
            key=self.key(parts.get("key")),
            name=self.words(parts.get("name")),
            source_language=self.source,
            criteria=self.criteria(parts.get("criteria")),
            asked={name: self.one_of(parts.get(name), get_args(AskedAs), "none") for name in WHOLE_ITEM_COLUMNS},
        )

    def criteria(self, node: Node | None) -> tuple[CriterionDocument, ...]:
        """All criteria, each key once."""
        nodes = self.list(node, Words("a list of criteria, at least one"))
        criteria = tuple(self.criterion(node) for node in nodes)
        seen: set[str] = set()
        for node, criterion in zip(nodes, criteria, strict=True):
            if criterion.key and criterion.key in seen:
                self.fail(
                    node,
                    Words("a key of its own"),
                    "duplicate_criterion",
                    Words("the criterion %(name)s twice", name=criterion.key),
                )
            seen.add(criterion.key)
        return criteria

    def criterion(self, node: Node) -> CriterionDocument:
        """One criterion with everything in it."""
        parts = self.members(node, _CRITERION_KEYS, required=("key", "name", "scale"))
        scale = self.scale(parts.get("scale"))
        criterion = CriterionDocument(
            key=self.key(parts.get("key")),
            name=self.words(parts.get("name")),
            scale=scale,
            question=self.words(parts.get("question")),
            definition=self.words(parts.get("definition")),
            anchors=self.anchors(parts.get("anchors"), scale),
            mark_if=self.lists(parts.get("mark_if"), self.text),
            dont_mark_if=self.lists(parts.get("dont_mark_if"), self.text),
            examples=self.lists(parts.get("examples"), lambda child: self.example(child, scale)),
            speaker=self.short(parts.get("speaker"), 60).lower() or "any",
            not_applicable=self.switch(parts.get("not_applicable")),
            rationale=self.rationale(parts.get("rationale")),
            evidence=self.one_of(parts.get("evidence"), get_args(Evidence), "optional"),
            group=self.one_of(parts.get("group"), get_args(Group), "general"),
            panel=self.short(parts.get("panel"), 120),
            direction=self.one_of(
                parts.get("direction"), get_args(Direction), "none" if scale.level == "nominal" else "higher_is_better"
            ),
            translations=self.translations(parts.get("translations")),
        )
        self.check_together(node, criterion)
        return criterion

    def check_together(self, node: Node, criterion: CriterionDocument) -> None:
        """What only shows when the parts of a criterion are seen side by side."""
        values = [point.value for point in criterion.scale.points]
        if criterion.group == "critical" and sorted(values) != [0, 1]:
            self.fail(
                node, Words("the points 0 and 1"), "critical_scale", Words("a critical criterion with another scale")
            )
        if criterion.rationale.rule == "required_except_best" and criterion.direction == "none":
            text = Words("a rationale required except for the best point, and no direction that says which is best")
            self.fail(node, Words("direction: higher_is_better or lower_is_better"), "no_best_point", text)

    def scale(self, node: Node | None) -> ScaleDocument:
        """A scale by its points or by its ends."""
        if node is None:
            return ScaleDocument("ordinal", (PointDocument(0), PointDocument(1)), 0, 1)
        parts = self.members(node, _SCALE_KEYS, required=("level",))
        level: Level = self.one_of(parts.get("level"), get_args(Level), "ordinal")
        if "points" in parts:
            if extra := sorted(parts.keys() & {"min", "max", "step"}):
                self.fail(
                    node, Words("either points, or min and max"), "scale", Words("points and %(name)s", name=extra[0])
                )
            return self.scale_of_points(parts["points"], level)
        return self.scale_of_ends(node, parts, level)

    def scale_of_points(self, node: Node, level: Level) -> ScaleDocument:
        """Two points or more, each value once and rising, each label once; nominal points have labels."""
        points = tuple(
            self.point(point) for point in self.list(node, Words("a list of points, at least two"), at_least=2)
        )
        values = [point.value for point in points]
        if len(set(values)) != len(values):
            self.fail(node, Words("each value once"), "scale_points", Words("a value twice"))
        elif level != "nominal" and values != sorted(values):
            self.fail(
                node,
                Words("values in ascending order"),
                "scale_points",
                Words("the values %(values)s", values=", ".join(f"{v:g}" for v in values)),
            )
        if level == "nominal" and not all(point.label for point in points):
            self.fail(
                node,
                Words("{value, label} for each point of a nominal scale"),
                "scale_labels",
                Words("a point without a label"),
            )
        for language in {language for point in points for language in point.label}:
            labels = [point.label[language] for point in points if language in point.label]
            if len(set(labels)) != len(labels):
                self.fail(
                    node,
                    Words("each label once"),
                    "scale_labels",
                    Words("a label twice in %(language)s", language=language),
                )
        return ScaleDocument(level, points, min(values, default=0), max(values, default=1))

    def point(self, node: Node) -> PointDocument:
        """A bare number, or a value with its label."""
        if not isinstance(node.value, dict):
            return PointDocument(self.number(node))
        parts = self.members(node, ("value", "label"), required=("value",))
        return PointDocument(self.number(parts.get("value")), self.words(parts.get("label")))

    def scale_of_ends(self, node: Node, parts: dict[str, Node], level: Level) -> ScaleDocument:
        """``min`` to ``max``, any number between or whole steps."""
        if level == "nominal" or not {"min", "max"} <= parts.keys():
            expected = "points" if level == "nominal" else Words("points, or min and max")
            self.fail(node, expected, "scale", Words("a scale without them"))
            return ScaleDocument(level, (), 0, 1)
        low, high = self.number(parts["min"]), self.number(parts["max"])
        step = self.number(parts["step"]) if "step" in parts else None
        if low >= high:
            self.fail(parts["max"], Words("more than the min of %(number)s", number=f"{low:g}"), "scale")
        elif step is not None and (step <= 0 or not ScaleDocument(level, (), low, high, step).holds(high)):
            self.fail(
                parts["step"],
                Words("a step that leads from %(low)s to %(high)s", low=f"{low:g}", high=f"{high:g}"),
                "scale",
            )
        return ScaleDocument(level, (), low, high, step)

    def anchors(self, node: Node | None, scale: ScaleDocument) -> dict[float, dict[str, AnchorDocument]]:
        """Anchors by point; each is a text, {text, reason}, or one of them by language."""
        anchors: dict[float, dict[str, AnchorDocument]] = {}
        for key, child in self.members(node).items() if node is not None else ():
            # The number that the key of an anchor spells.
            number = scalar(key)
            value = number if isinstance(number, int | float) and not isinstance(number, bool) else None
            if value is None or not scale.holds(value):
                self.fail(
                    child,
                    Words("a point of the scale (%(scale)s)", scale=_shown(scale)),
                    "anchor_off_scale",
                    Words("the anchor %(key)s", key=key),
                )
                continue
            by_language = isinstance(child.value, dict) and not child.value.keys() & {"text", "reason"}
            anchors[value] = self.by_language(child, self.anchor) if by_language else {self.source: self.anchor(child)}
        return dict(sorted(anchors.items()))

    def anchor(self, node: Node) -> AnchorDocument:
        """A text, or a text with its reason."""
        if not isinstance(node.value, dict):
            return AnchorDocument(self.text(node))
        parts = self.members(node, ("text", "reason"), required=("text",))
        return AnchorDocument(self.text(parts.get("text")), self.text(parts["reason"]) if "reason" in parts else "")

    def translations(self, node: Node | None) -> dict[str, TranslationState]:
        """The state of a criterion's texts by language; the source language has none."""
        if node is None:
            return {}
        states: dict[str, TranslationState] = self.by_language(
            node, lambda child: self.one_of(child, get_args(TranslationState), "draft")
        )
        if self.source in states:
            self.fail(
                node,
                Words("languages other than the source language"),
                "source_state",
                Words("a state of %(language)s", language=self.source),
            )
        return dict(sorted(states.items()))

    def example(self, node: Node, scale: ScaleDocument) -> ExampleDocument:
        """A text, the score it deserves, and why."""
        parts = self.members(node, ("text", "score", "comment"), required=("text", "score"))
        score = self.number(parts.get("score"))
        if "score" in parts and not scale.holds(score):
            self.fail(
                parts["score"], Words("a score on the scale (%(scale)s)", scale=_shown(scale)), "example_off_scale"
            )
        return ExampleDocument(
            self.text(parts.get("text")), score, self.text(parts["comment"]) if "comment" in parts else ""
        )

    def rationale(self, node: Node | None) -> RationaleRule:
        """A rule, or a rule with the least number of words."""
        if node is None or not isinstance(node.value, dict):
            return RationaleRule(self.one_of(node, get_args(Rule), "optional"))
        parts = self.members(node, ("rule", "min_words"), required=("rule",))
        rule: Rule = self.one_of(parts.get("rule"), get_args(Rule), "optional")
        words = self.number(parts["min_words"]) if "min_words" in parts else 0
        if words < 0 or words > 1000 or words != int(words) or (words and rule == "never"):
            self.fail(
                parts["min_words"], Words("a whole number up to 1,000, and 0 where the rule is never"), "rationale"
            )
        return RationaleRule(rule, int(words))


def _shown(scale: ScaleDocument) -> str:
    if scale.points:
        return ", ".join(f"{point.value:g}" for point in scale.points)
    return Words("%(low)s to %(high)s", low=f"{scale.minimum:g}", high=f"{scale.maximum:g}")
