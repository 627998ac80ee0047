"""A rubric as a document: what a YAML or JSON file says, complete and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from annotation.formats.problems import Problems

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
        raise NotImplementedError


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


@dataclass(frozen=True, slots=True)
class RubricDocument:
    """A whole rubric. ``as_dict`` is plain JSON; ``parse_rubric`` reads ``as_yaml`` back to an equal document."""

    key: str
    name: Words
    source_language: str
    criteria: tuple[CriterionDocument, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values in canonical order, defaults left out."""
        raise NotImplementedError

    def as_yaml(self) -> str:
        """``as_dict`` as YAML."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ParsedRubric:
    """The document, or ``None`` and the problems because of which there is none."""

    document: RubricDocument | None
    problems: Problems


def parse_rubric(name: str, raw: bytes | BinaryIO) -> ParsedRubric:
    """Read a rubric from YAML or JSON (told by the name) and check all of it. Never raises on bad input."""
    raise NotImplementedError
