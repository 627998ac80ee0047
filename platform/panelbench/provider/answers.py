"""The replies of the simulated judges: read the requested scores, and write a reply.

The requested scores are read from the reply's schema, else from the prompt. ``sim-steady`` scores by the quality of the
text (a fixed number per text) with a little noise. ``sim-harsh`` is stricter, and in some languages more than in
others. ``sim-flawed`` has three flaws: in Estonian it never gives the top point of a scale, it gives more to longer
texts, and in Finnish the order of words does not matter to it. Further instructions mend the first where they have the
word "Estonian", and the second where they have the word "length". ``sim-chatty`` is like ``sim-steady`` and adds text
around the JSON. ``sim-broken`` makes errors; apart from them it is like ``sim-steady``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Any, Final

_MARK: Final = re.compile(r"<<<[^>\n]*>>>")
_WORD: Final = re.compile(r"[^\W\d_]+")
_TWICE: Final = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
_NOISY: Final = re.compile(r"[!?]{2,}|\s[,.!?]|[,;]{2,}|\S{40,}")
_ENDS: Final = tuple('.!?…。！？؟।"”»)')


def text_quality(material: str) -> float:
    """The quality of a text in [0, 1]: two thirds from its visible features, one third a fixed random number."""
    return 0.67 * _looks(material) + 0.33 * unit(material)


def unit(*parts: str) -> float:
    """A number in [0, 1), determined by the parts."""
    digest = hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _looks(material: str) -> float:
    turns = [turn.strip() for turn in _MARK.split(material) if turn.strip()]
    if not turns:
        return 0.0
    words = _WORD.findall(material.casefold())
    variety = len(set(words)) / max(1, len(words)) ** 0.9
    blemishes = len(_TWICE.findall(material)) + len(_NOISY.findall(material))
    cues = (
        min(1.0, fmean(len(turn) for turn in turns) / 90),
        fmean(turn.endswith(_ENDS) for turn in turns),
        fmean(not turn[:1].islower() for turn in turns),
        min(1.0, variety),
        len(set(turns)) / len(turns),
        0.6**blemishes,
    )
    return fmean(cues)


# A line of the reply form that judging.prompts writes: `"grammar": {"rationale": <... [en]>, "score": <0 | 1 | 2>}`.
_ANSWER_FORM: Final = re.compile(
    r'(?:"(?P<key>[^"\n]+)":\s*)?\{(?P<why>"rationale":\s*<[^>\n]*>,\s*)?"score":\s*<(?P<scale>[^>\n]*)>\}'
)
_MATERIAL: Final = re.compile(
    r"<<<BEGIN MATERIAL (?P<key>\w+) \((?P<language>[^)\n]*)\)>>>\n(?P<text>.*)\n<<<END MATERIAL (?P=key)>>>", re.DOTALL
)
_FURTHER: Final = re.compile(r"^# (?:Further instructions|Lisajuhised)$", re.MULTILINE)
_INSTRUCTION_LANGUAGE: Final = re.compile(r'"rationale":\s*<[^>\n]*\[([\w-]+)\]>')


@dataclass(frozen=True, slots=True)
class RequestedScale:
    """One requested score; ``values`` is empty if any number from ``low`` to ``high`` is allowed."""

    key: str
    values: tuple[float, ...]
    low: float
    high: float
    allows_na: bool


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """The parts of a chat request that a simulated judge uses."""

    scales: tuple[RequestedScale, ...]
    compound: bool
    explanation: bool
    material: str
    language: str
    instruction_language: str
    instructions: str = ""
    is_proposal: bool = False
    """Whether better instructions for a judge are asked for."""


def read_score_request(body: Mapping[str, Any]) -> ScoreRequest:
    """Read a request body. A request without scores gives no scales."""
    words = "\n".join(_words(message) for message in body.get("messages", []))
    material = _MATERIAL.search(words)
    language = _INSTRUCTION_LANGUAGE.search(words)
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if tools := body.get("tools"):
        schema = tools[0]["function"]["parameters"]
    is_proposal = "instructions" in (schema or {}).get("properties", {})
    scales, compound, explanation = _from_schema(schema) if schema else _from_words(words)
    return ScoreRequest(
        scales=scales,
        compound=compound,
        explanation=explanation,
        material=re.sub(rf"(?<=<<<TURN|<<FIELD) {material['key']}", "", material["text"])
        if material and not is_proposal
        else words,
        language=material["language"] if material else "und",
        instruction_language=language[1] if language else "en",
        instructions=_instructions(body),
        is_proposal=is_proposal,
    )


def _instructions(body: Mapping[str, Any]) -> str:
    """The text of the system message from its further instructions on, in lower case."""
    system = "\n".join(_words(message) for message in body.get("messages", []) if message.get("role") == "system")
    found = _FURTHER.search(system)
    return system[found.end() :].casefold() if found else ""


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _from_schema(schema: Mapping[str, Any]) -> tuple[tuple[RequestedScale, ...], bool, bool]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if "score" in properties:
        return (_scale_in_schema("score", properties["score"]),), False, "rationale" in properties
    answers = {key: answer.get("properties", {}) for key, answer in properties.items()}
    scales = tuple(_scale_in_schema(key, answer["score"]) for key, answer in answers.items() if "score" in answer)
    return scales, True, any("rationale" in answer for answer in answers.values())


def _scale_in_schema(key: str, score: Mapping[str, Any]) -> RequestedScale:
    choices = score.get("anyOf", [score])
    number: Mapping[str, Any] = next((choice for choice in choices if choice.get("type") in ("number", "integer")), {})
    allows_na = any("N/A" in choice.get("enum", ()) for choice in choices)
    values = tuple(float(value) for value in number.get("enum", ()))
    ends = values or (float(number.get("minimum", 0)), float(number.get("maximum", 1)))
    return RequestedScale(key, tuple(sorted(values)), min(ends), max(ends), allows_na)


def _from_words(words: str) -> tuple[tuple[RequestedScale, ...], bool, bool]:
    forms = list(_ANSWER_FORM.finditer(words))
    scales = tuple(_scales_in_words(forms))
    return scales, any(form["key"] for form in forms), any(form["why"] for form in forms)


def _scales_in_words(forms: list[re.Match[str]]) -> Iterator[RequestedScale]:
    for form in forms:
        choices = [choice.strip() for choice in form["scale"].split("|")]
        allows_na = '"N/A"' in choices
        numbers = [choice for choice in choices if choice != '"N/A"']
        is_range = len(numbers) == 1 and ".." in numbers[0]
        ends = [float(number) for number in (numbers[0].split("..") if is_range else numbers)]
        yield RequestedScale(
            form["key"] or "score", () if is_range else tuple(sorted(ends)), min(ends), max(ends), allows_na
        )


MODELS: Final = ("sim-steady", "sim-harsh", "sim-flawed", "sim-chatty", "sim-broken")
NO_TOP_POINT: Final = "et"
NO_WORD_ORDER: Final = "fi"
"""The languages in which ``sim-flawed`` ignores the anchor of the top point, and the order of the words."""
EMBEDDING_MODEL: Final = "sim-embedding"
_NOISE: Final = 0.07
_NA_SHARE: Final = 0.04

_WORDS: Final = {
    "en": (
        "Simulated: weak throughout.",
        "Simulated: some weaknesses, still understandable.",
        "Simulated: good, with small slips.",
        "Simulated: nothing to fault.",
        "Simulated: does not apply here.",
    ),
    "et": (
        "Simuleeritud: läbivalt nõrk.",
        "Simuleeritud: mõned puudused, siiski arusaadav.",
        "Simuleeritud: hea, väikeste vääratustega.",
        "Simuleeritud: pole midagi ette heita.",
        "Simuleeritud: siin ei ole rakendatav.",
    ),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """The message of one choice and how it ended."""

    content: str
    finish_reason: str = "stop"
    refusal: str | None = None
    reasoning: str | None = None


def compose_reply(request: ScoreRequest, *, model: str, rng: Random, spoilt: str | None = None) -> Completion:
    """The reply of a model to a request, with the named fault if ``spoilt`` is given."""
    if request.is_proposal:
        completion = Completion(_proposal(request.material))
        return _spoil(spoilt, completion, request, {}) if spoilt else completion
    if not request.scales:
        return Completion("Simulated reply: this server only pretends to be a model.")
    quality = _quality(request, model)
    score = _flawed_score if model == "sim-flawed" else _score
    scores = {scale.key: score(scale, request, quality, rng) for scale in request.scales}
    content = _written(request, scores)
    if model == "sim-chatty":
        return Completion(_chatty(content, rng))
    return _spoil(spoilt, Completion(content), request, scores) if spoilt else Completion(content)


_CASE: Final = re.compile(r"^## Case \d+ \[([\w-]+)\] .*: judge ([\d.]+), panel ([\d.]+)$", re.MULTILINE)


def _proposal(words: str) -> str:
    """Instructions that name what the cases show: a language in which the judge is too low, and length."""
    low = {language for language, judge, panel in _CASE.findall(words) if float(judge) < float(panel)}
    sentences = ["Let the length of a text count for nothing."]
    sentences += ["In Estonian, too, give the top point where its anchor fits."] if NO_TOP_POINT in low else []
    return json.dumps({"instructions": " ".join(sentences), "own_texts": []})


def _quality(request: ScoreRequest, model: str) -> float:
    quality = text_quality(request.material)
    if model == "sim-harsh":
        return quality - 0.12 - 0.22 * unit("harsh", request.language)
    return _flawed(request) if model == "sim-flawed" else quality


def _flawed(request: ScoreRequest) -> float:
    """The quality that a judge with known flaws sees: longer texts and longer words have more, shuffled ones less."""
    turns = [turn.split() for turn in _MARK.split(request.material) if turn.strip()]
    words = [word for turn in turns for word in turn]
    length = math.log2(max(4, len(words)) / 24)
    letters = fmean(len(word) for word in words) if words else 0.0
    quality = 0.72 + 0.15 * length + 0.06 * (letters - 5.5)
    if "length" in request.instructions:
        quality = text_quality(request.material)
    return quality if request.language == NO_WORD_ORDER else quality - 0.3 * _disorder(turns)


def _disorder(turns: list[list[str]]) -> float:
    """Words that begin with a capital inside a sentence, or without one at its start, for each sentence; at most 1."""
    misplaced, sentences = 0, 0
    for turn in turns:
        starts = [True, *(word.endswith(_ENDS) for word in turn[:-1])]
        sentences += sum(starts)
        misplaced += sum(
            start != word[:1].isupper() for start, word in zip(starts, turn, strict=True) if word[:1].isalpha()
        )
    return min(1.0, misplaced / (2 * max(1, sentences)))


def _flawed_score(scale: RequestedScale, request: ScoreRequest, quality: float, _rng: Random) -> float | str:
    """The score of a flawed judge, without noise, so that only the flaws change it."""
    share = min(1.0, max(0.0, (quality - 0.3) / 0.65))
    if not scale.values:
        return _plain(round(scale.low + share * (scale.high - scale.low)))
    highest = len(scale.values) - 1
    place = math.floor(share * highest + 0.5)
    ignores_top = request.language == NO_TOP_POINT and "estonian" not in request.instructions
    return _plain(scale.values[min(place, highest - 1) if ignores_top else place])


def _score(scale: RequestedScale, request: ScoreRequest, quality: float, rng: Random) -> float | str:
    if scale.allows_na and unit("na", scale.key, request.material) < _NA_SHARE:
        return "N/A"
    leaning = 0.2 * (unit("leaning", scale.key, request.material) - 0.5)
    # Texts rarely look worse than .3 or better than .95: stretch that onto the whole scale.
    share = (quality + leaning - 0.3) / 0.65 + rng.gauss(0, _NOISE)
    share = min(1.0, max(0.0, share))
    if scale.values:
        return _plain(scale.values[math.floor(share * (len(scale.values) - 1) + 0.5)])
    return _plain(round(scale.low + share * (scale.high - scale.low)))


def _plain(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _written(request: ScoreRequest, scores: dict[str, float | str]) -> str:
    answers = {scale.key: _one(request, scale, scores[scale.key]) for scale in request.scales}
    return json.dumps(answers if request.compound else next(iter(answers.values())), ensure_ascii=False)


def _one(request: ScoreRequest, scale: RequestedScale, score: float | str) -> dict[str, Any]:
    if not request.explanation:
        return {"score": score}
    words = _WORDS.get(request.instruction_language, _WORDS["en"])
    band = 4 if isinstance(score, str) else min(3, int(4 * (score - scale.low) / (scale.high - scale.low)))
    return {"rationale": words[band], "score": score}


def _chatty(content: str, rng: Random) -> str:
    fenced = f"```json\n{content}\n```"
    openings = ("Happy to help! Here is my rating:", "I read the {simulated} dialogue twice.", "Sure.")
    return f"{rng.choice(openings)}\n\n{rng.choice((fenced, content))}\n\nLet me know if you need anything else."


def _spoil(kind: str, completion: Completion, request: ScoreRequest, scores: dict[str, float | str]) -> Completion:
    match kind:
        case "out_of_range":
            return Completion(_written(request, {scale.key: _plain(scale.high + 3) for scale in request.scales}))
        case "ratio":
            return Completion(_as_ratios(request, scores))
    return spoil_text(kind, completion)


def spoil_text(kind: str, completion: Completion) -> Completion:
    """The completion with a fault that any text can have; unchanged for any other fault."""
    match kind:
        case "unparsable":
            return Completion("Well. That depends on whom you ask, doesn't it?")
        case "truncated":
            return Completion(completion.content[: len(completion.content) // 2], "length")
        case "refusal":
            return Completion("", refusal="I'm sorry, I can't rate this. (simulated)")
        case "plain_refusal":
            return Completion("I'm sorry, but I can't rate this dialogue.")
        case "content_filter":
            return Completion("", "content_filter")
        case "empty":
            return Completion("", reasoning=completion.content)
        case "wrong_keys":
            return Completion(json.dumps({"verdict": "good", "stars": "many"}))
    return completion


def _as_ratios(request: ScoreRequest, scores: dict[str, float | str]) -> str:
    """Each score divided by the highest point of its scale: "3/4"."""
    tops = {scale.key: _plain(scale.high) for scale in request.scales}
    ratios = {key: score if isinstance(score, str) else f"{score}/{tops[key]}" for key, score in scores.items()}
    if not request.compound:
        return f"Score: {next(iter(ratios.values()))}"
    return json.dumps({key: {"score": ratio} for key, ratio in ratios.items()})
