"""The request for one realisation: its messages, and the schema of its reply. Pure.

What the rules ask for is always written out, in fixed English sentences, so that specs of other people need no
sentence about them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from accounts.languages import english_name
from judging.generation.specs import Spec, filled_text, in_language
from judging.prompts import Message

FORM_HEADING: Final = "# Form of the reply"
DISCARDED_HEADING: Final = "# Earlier reply"
REPLY_WITH: Final = "Reply with one JSON object and nothing else. Its form:"


@dataclass(frozen=True, slots=True)
class WritingProblem:
    """Why a reply was discarded: a code of `turn_rules.SENTENCES`, and what stands in its sentence."""

    code: str
    values: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON."""
        return {"code": self.code, "values": dict(self.values)}


def generation_messages(
    spec: Spec, parameters: Mapping[str, str | int], *, language: str, problems: Sequence[WritingProblem] = ()
) -> list[Message]:
    """The system message, if the spec has one, and the request. ``problems`` of the reply before are told."""
    system = brief_texts(spec, parameters, language)[0]
    return [
        *([{"role": "system", "content": system}] if system else []),
        {"role": "user", "content": _request(spec, parameters, language, problems)},
    ]


def brief_texts(spec: Spec, parameters: Mapping[str, str | int], language: str) -> tuple[str, str]:
    """The system text and the template, filled in."""
    name = english_name(language)
    template = in_language(spec.templates, language) or next(iter(spec.templates.values()))
    return filled_text(spec, spec.system, parameters, language, name), filled_text(
        spec, template, parameters, language, name
    )


def given_fields(spec: Spec, parameters: Mapping[str, str | int], language: str) -> dict[str, str]:
    """The fields that the spec gives, filled in."""
    return {
        one.name: filled_text(spec, in_language(one.texts, language), parameters, language, english_name(language))
        for one in spec.fields
        if one.texts
    }


def turn_counts(spec: Spec, parameters: Mapping[str, str | int]) -> tuple[int, int]:
    """The least and the most turns of a dialogue."""
    if spec.rules.count:
        count = int(parameters[spec.rules.count])
        return count, count
    return spec.rules.least, spec.rules.most


def generation_schema(spec: Spec) -> dict[str, Any]:
    """The JSON schema of the reply: every property required, and no other."""
    if spec.kind == "dialogue":
        speaker = {"type": "string", "enum": list(spec.rules.roles)}
        turn = object_schema({"speaker": speaker, "text": {"type": "string"}})
        return object_schema({"turns": {"type": "array", "items": turn}})
    return object_schema({one.name: {"type": "string"} for one in spec.asked_fields})


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has all of these properties, and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _request(spec: Spec, parameters: Mapping[str, str | int], language: str, problems: Sequence[WritingProblem]) -> str:
    lines = [brief_texts(spec, parameters, language)[1], "", FORM_HEADING, *_rules_told(spec, parameters, language)]
    lines += [REPLY_WITH, _form(spec)]
    if problems:
        lines += ["", DISCARDED_HEADING, *problem_lines(problems)]
    return "\n".join(lines)


def problem_lines(problems: Sequence[WritingProblem]) -> list[str]:
    """What a request says of the reply before it, which was discarded."""
    lines = [f"- {TOLD[problem.code] % problem.values}" for problem in problems[:MOST_TOLD]]
    return ["A reply to this request could not be used. Avoid this:", *lines]


def _rules_told(spec: Spec, parameters: Mapping[str, str | int], language: str) -> list[str]:
    rules = spec.rules
    lines = [f"- Language: {english_name(language)} ({language}), from the first word to the last."]
    if spec.kind == "dialogue":
        least, most = turn_counts(spec, parameters)
        count = f"exactly {least}" if least == most else f"from {least} to {most}"
        lines += [f"- Messages: {count}.", f"- Speakers: {', '.join(rules.roles)}."]
        lines += ["- Nobody writes two messages in a row."] if rules.alternate else []
        lines += [f"- The first message is by: {rules.starts}."] if rules.starts else []
        lines += [f"- The last message is by: {rules.ends}."] if rules.ends else []
        lines += (
            [f"- The first message of this speaker begins with a greeting: {rules.greets}."] if rules.greets else []
        )
    lines.append("- Names, dates and numbers are written out; no brackets stand in for them.")
    return lines


def _form(spec: Spec) -> str:
    """The form of the reply in words; no valid JSON, so that a copy of it reads as nothing."""
    if spec.kind == "dialogue":
        return f'{{"turns": [{{"speaker": <{" | ".join(spec.rules.roles)}>, "text": <the message>}}, ...]}}'
    return "{" + ", ".join(f"{json.dumps(one.name)}: <{one.title or 'text'}>" for one in spec.asked_fields) + "}"


MOST_TOLD: Final = 6
TOLD: Final = {
    "unreadable": "It was not one JSON object of the form above.",
    "refusal": "It was a refusal. The request is for made-up text, and harmless.",
    "cut_off": "It was cut off. Be shorter.",
    "too_long": "It was far too long.",
    "reasoning": "It had your reasoning in it. Write only the text.",
    "hidden_characters": "It had control characters in it.",
    "no_text": "It had no text.",
    "empty_turn": "Message %(turn)s was empty.",
    "unknown_role": "Message %(turn)s had an unknown speaker.",
    "same_role": "Messages %(before)s and %(turn)s were by the same speaker.",
    "wrong_start": "The first message was by the wrong speaker.",
    "wrong_end": "The last message was by the wrong speaker.",
    "wrong_count": "It had %(count)s messages.",
    "no_greeting": "The first message of the speaker %(role)s had no greeting.",
    "long_turn": "Part %(turn)s was longer than %(longest)s characters.",
    "wrong_script": "It was written in the wrong script.",
    "mixed_script": "Part %(turn)s was written in another script.",
    "wrong_language": "It was written in the wrong language.",
    "mixed_language": "Part %(turn)s was written in another language.",
    "stand_in": "It had “%(text)s” in the place of a name or a number.",
    "copied_brief": "It repeated a sentence of this request.",
    "repeated_turn": "Message %(turn)s was the same as message %(before)s.",
    "same_texts": "Both texts were the same.",
    "changed_role": "Message %(turn)s had another speaker than the text: %(role)s.",
    "missing_part": "Part %(turn)s of the text was not translated: it was empty.",
    "added_part": "It had a part that the text does not have: %(turn)s.",
    "untranslated": "Part %(turn)s was copied instead of translated.",
    "lost_placeholder": "Part %(turn)s must keep this as it is: %(text)s",
    "lost_number": "Part %(turn)s must keep this number in digits: %(text)s",
    "wrong_length": "It had %(percent)s percent of the length of the text: nothing may be added or left out.",
    "wrong_length_of": "Part %(turn)s had %(percent)s percent of its length in the text: add and leave out nothing.",
}
"""For each code of a problem, what the generator is told."""
