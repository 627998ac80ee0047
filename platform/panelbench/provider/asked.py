"""What a chat request asks for, found the way a model would: in the reply's schema, else in the words of the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

# A line of the reply form that judging.prompts writes: `"grammar": {"rationale": <... [en]>, "score": <0 | 1 | 2>}`.
_ANSWER_FORM: Final = re.compile(
    r'(?:"(?P<key>[^"\n]+)":\s*)?\{(?P<why>"rationale":\s*<[^>\n]*>,\s*)?"score":\s*<(?P<scale>[^>\n]*)>\}'
)
_MATERIAL: Final = re.compile(
    r"<<<BEGIN MATERIAL (?P<key>\w+) \((?P<language>[^)\n]*)\)>>>\n(?P<text>.*)\n<<<END MATERIAL (?P=key)>>>", re.DOTALL
)
_INSTRUCTION_LANGUAGE: Final = re.compile(r'"rationale":\s*<[^>\n]*\[([\w-]+)\]>')


@dataclass(frozen=True, slots=True)
class Scale:
    """One score that is asked for; ``values`` is empty where any number from ``low`` to ``high`` will do."""

    key: str
    values: tuple[float, ...]
    low: float
    high: float
    allows_na: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """One chat request as far as a simulated judge cares."""

    scales: tuple[Scale, ...]
    compound: bool
    explanation: bool
    material: str
    language: str
    instruction_language: str


def read(body: Mapping[str, Any]) -> Asked:
    """Read a request body; a request that asks for no scores has no scales."""
    words = "\n".join(_words(message) for message in body.get("messages", []))
    material = _MATERIAL.search(words)
    language = _INSTRUCTION_LANGUAGE.search(words)
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    scales, compound, explanation = _from_schema(schema) if schema else _from_words(words)
    return Asked(
        scales=scales,
        compound=compound,
        explanation=explanation,
        material=re.sub(rf"(?<=<<<TURN|<<FIELD) {material['key']}", "", material["text"]) if material else words,
        language=material["language"] if material else "und",
        instruction_language=language[1] if language else "en",
    )


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _from_schema(schema: Mapping[str, Any]) -> tuple[tuple[Scale, ...], bool, bool]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if "score" in properties:
        return (_scale_in_schema("score", properties["score"]),), False, "rationale" in properties
    answers = {key: answer.get("properties", {}) for key, answer in properties.items()}
    scales = tuple(_scale_in_schema(key, answer["score"]) for key, answer in answers.items() if "score" in answer)
    return scales, True, any("rationale" in answer for answer in answers.values())


def _scale_in_schema(key: str, score: Mapping[str, Any]) -> Scale:
    choices = score.get("anyOf", [score])
    number: Mapping[str, Any] = next((each for each in choices if each.get("type") in ("number", "integer")), {})
    allows_na = any("N/A" in each.get("enum", ()) for each in choices)
    values = tuple(float(each) for each in number.get("enum", ()))
    ends = values or (float(number.get("minimum", 0)), float(number.get("maximum", 1)))
    return Scale(key, tuple(sorted(values)), min(ends), max(ends), allows_na)


def _from_words(words: str) -> tuple[tuple[Scale, ...], bool, bool]:
    forms = list(_ANSWER_FORM.finditer(words))
    scales = tuple(_scales_in_words(forms))
    return scales, any(form["key"] for form in forms), any(form["why"] for form in forms)


def _scales_in_words(forms: list[re.Match[str]]) -> Iterator[Scale]:
    for form in forms:
        choices = [choice.strip() for choice in form["scale"].split("|")]
        allows_na = '"N/A"' in choices
        numbers = [choice for choice in choices if choice != '"N/A"']
        is_range = len(numbers) == 1 and ".." in numbers[0]
        ends = [float(number) for number in (numbers[0].split("..") if is_range else numbers)]
        yield Scale(form["key"] or "score", () if is_range else tuple(sorted(ends)), min(ends), max(ends), allows_na)
