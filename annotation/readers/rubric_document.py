"""A rubric as a document: its parts, and its canonical form as plain values and as YAML."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

Level = Literal["nominal", "ordinal", "interval"]
Group = Literal["critical", "general", "domain", "task", "subjective"]
Rule = Literal["never", "optional", "required", "required_except_best"]
Direction = Literal["higher_is_better", "lower_is_better", "none"]
Words = dict[str, str]  # language -> text


@dataclass(frozen=True, slots=True)
class PointDocument:
    """One point of a scale: its value, and its label by language (required on nominal scales)."""

    value: float
    label: Words = field(default_factory=dict)


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
        step = {} if self.step is None else {"step": plain(self.step)}
        return {"level": self.level, "min": plain(self.minimum), "max": plain(self.maximum), **step}


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
    """One criterion. Texts are by language; ``anchors`` by value, then language."""

    key: str
    name: Words
    scale: ScaleDocument
    question: Words = field(default_factory=dict)
    definition: Words = field(default_factory=dict)
    anchors: dict[float, dict[str, AnchorDocument]] = field(default_factory=dict)
    mark_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dont_mark_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    examples: dict[str, tuple[ExampleDocument, ...]] = field(default_factory=dict)
    speaker: str = "any"
    not_applicable: bool = False
    rationale: RationaleRule = RationaleRule()
    group: Group = "general"
    panel: str = ""
    direction: Direction = "higher_is_better"

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order; empty texts are left out, everything else is said."""
        texts = {
            "question": self.question,
            "definition": self.definition,
            "anchors": {str(plain(value)): _by_language(anchors) for value, anchors in self.anchors.items()},
            "mark_if": {language: list(lines) for language, lines in self.mark_if.items()},
            "dont_mark_if": {language: list(lines) for language, lines in self.dont_mark_if.items()},
            "examples": {language: [_example(each) for each in some] for language, some in self.examples.items()},
            "panel": self.panel,
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
    """A whole rubric. ``as_dict`` is plain JSON; ``rubric.parse_rubric`` reads ``as_yaml`` back to an equal one."""

    key: str
    name: Words
    source_language: str
    criteria: tuple[CriterionDocument, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order."""
        return {
            "key": self.key,
            "name": self.name,
            "source_language": self.source_language,
            "criteria": [criterion.as_dict() for criterion in self.criteria],
        }

    def as_yaml(self) -> str:
        """``as_dict`` as YAML."""
        return yaml.dump(self.as_dict(), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes a value that stands in two places twice: rubrics are read without aliases."""

    def ignore_aliases(self, value: Any) -> bool:
        return True


def plain(value: float) -> float:
    """A number as people write it: 2 rather than 2.0."""
    return int(value) if float(value).is_integer() else value


def _point(point: PointDocument) -> Any:
    return {"value": plain(point.value), "label": point.label} if point.label else plain(point.value)


def _by_language(anchors: dict[str, AnchorDocument]) -> dict[str, Any]:
    return {
        language: {"text": anchor.text, "reason": anchor.reason} if anchor.reason else anchor.text
        for language, anchor in anchors.items()
    }


def _example(example: ExampleDocument) -> dict[str, Any]:
    comment = {"comment": example.comment} if example.comment else {}
    return {"text": example.text, "score": plain(example.score), **comment}
