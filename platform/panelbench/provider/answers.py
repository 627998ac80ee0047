"""What the simulated judges say.

``sim-steady`` scores follow the quality of the text with a little noise; ``sim-harsh`` is the same but stricter, and
in some languages more than in others; ``sim-chatty`` is steady and cannot keep to JSON; ``sim-broken`` is steady
underneath everything it does wrong.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from panelbench.provider.asked import Asked, Scale
from panelbench.provider.quality import latent, unit

MODELS: Final = ("sim-steady", "sim-harsh", "sim-chatty", "sim-broken")
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


def answer(asked: Asked, *, model: str, rng: Random, spoilt: str | None = None) -> Completion:
    """The reply of a model to what was asked, spoilt in the named way if one is named."""
    if not asked.scales:
        return Completion("Simulated reply: this server only pretends to be a model.")
    quality = _quality(asked, model)
    scores = {scale.key: _score(scale, asked, quality, rng) for scale in asked.scales}
    content = _written(asked, scores)
    if model == "sim-chatty":
        return Completion(_chatty(content, rng))
    return _spoil(spoilt, Completion(content), asked, scores) if spoilt else Completion(content)


def _quality(asked: Asked, model: str) -> float:
    quality = latent(asked.material)
    if model == "sim-harsh":
        return quality - 0.12 - 0.22 * unit("harsh", asked.language)
    return quality


def _score(scale: Scale, asked: Asked, quality: float, rng: Random) -> float | str:
    if scale.allows_na and unit("na", scale.key, asked.material) < _NA_SHARE:
        return "N/A"
    leaning = 0.2 * (unit("leaning", scale.key, asked.material) - 0.5)
    # Texts rarely look worse than .3 or better than .95: stretch that onto the whole scale.
    share = (quality + leaning - 0.3) / 0.65 + rng.gauss(0, _NOISE)
    share = min(1.0, max(0.0, share))
    if scale.values:
        return _plain(scale.values[math.floor(share * (len(scale.values) - 1) + 0.5)])
    return _plain(round(scale.low + share * (scale.high - scale.low)))


def _plain(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _written(asked: Asked, scores: dict[str, float | str]) -> str:
    answers = {scale.key: _one(asked, scale, scores[scale.key]) for scale in asked.scales}
    return json.dumps(answers if asked.compound else next(iter(answers.values())), ensure_ascii=False)


def _one(asked: Asked, scale: Scale, score: float | str) -> dict[str, Any]:
    if not asked.explanation:
        return {"score": score}
    words = _WORDS.get(asked.instruction_language, _WORDS["en"])
    band = 4 if isinstance(score, str) else min(3, int(4 * (score - scale.low) / (scale.high - scale.low)))
    return {"rationale": words[band], "score": score}


def _chatty(content: str, rng: Random) -> str:
    fenced = f"```json\n{content}\n```"
    openings = ("Happy to help! Here is my rating:", "I read the {simulated} dialogue twice.", "Sure.")
    return f"{rng.choice(openings)}\n\n{rng.choice((fenced, content))}\n\nLet me know if you need anything else."


def _spoil(kind: str, completion: Completion, asked: Asked, scores: dict[str, float | str]) -> Completion:
    match kind:
        case "unparsable":
            return Completion("Well. That depends on whom you ask, doesn't it?")
        case "out_of_range":
            return Completion(_written(asked, {scale.key: _plain(scale.high + 3) for scale in asked.scales}))
        case "truncated":
            return Completion(completion.content[: len(completion.content) // 2], "length")
        case "refusal":
            return Completion("", refusal="I'm sorry, I can't rate this. (simulated)")
        case "content_filter":
            return Completion("", "content_filter")
        case "empty":
            return Completion("", reasoning=completion.content)
        case "ratio":
            return Completion(_as_ratios(asked, scores))
        case "wrong_keys":
            return Completion(json.dumps({"verdict": "good", "stars": "many"}))
    return completion


def _as_ratios(asked: Asked, scores: dict[str, float | str]) -> str:
    """Each score over the top of its scale: "3/4"."""
    tops = {scale.key: _plain(scale.high) for scale in asked.scales}
    ratios = {key: score if isinstance(score, str) else f"{score}/{tops[key]}" for key, score in scores.items()}
    if not asked.compound:
        return f"Score: {next(iter(ratios.values()))}"
    return json.dumps({key: {"score": ratio} for key, ratio in ratios.items()})
