"""The probabilities of the tokens of a reply: the expected score and the confidence beside the score that was given.
Pure."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from judging.prompts import CriterionBrief
from judging.replies import NUMBER, Reading

LEAST_MASS: Final = 0.5  # of the probability that must lie on points of the scale


def weighed(
    readings: Sequence[Reading], *, reply: Mapping[str, Any], criteria: Sequence[CriterionBrief]
) -> list[Reading]:
    """The readings with expected score and confidence, where the reply has the probabilities of a score's token.

    The token must be the whole score; the alternatives to it that are points of the scale are weighed by their
    probability. Without them, or with less than half of the probability on the scale, a reading stays as it is.
    """
    tokens = _tokens(reply)
    if not tokens:
        return list(readings)
    text = "".join(str(token.get("token")) for token in tokens)
    briefs = {criterion.key: criterion for criterion in criteria}
    return [_weighed(reading, tokens, text, briefs[reading.criterion], len(briefs) == 1) for reading in readings]


def _tokens(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    try:
        tokens = reply["choices"][0]["logprobs"]["content"]
    except (LookupError, TypeError):
        return []
    return tokens if isinstance(tokens, list) and all(isinstance(token, dict) for token in tokens) else []


def _weighed(
    reading: Reading, tokens: Sequence[Mapping[str, Any]], text: str, criterion: CriterionBrief, alone: bool
) -> Reading:
    key = "" if alone else rf"{re.escape(json.dumps(criterion.key, ensure_ascii=False))}\s*:\s*\{{[^{{}}]{{0,20000}}?"
    places = list(re.finditer(rf'{key}"score"\s*:\s*"?', text))
    if reading.status != "ok" or reading.score is None or len(places) != 1:
        return reading
    starts = list(accumulate((len(str(token.get("token"))) for token in tokens), initial=0))
    number = bisect_right(starts, places[0].end()) - 1  # the token that begins the score
    if number >= len(tokens):
        return reading
    following = text[starts[number + 1] : starts[number + 1] + 1]
    token = tokens[number]
    written = str(token.get("token")).strip(' "')
    if not re.fullmatch(NUMBER, written) or float(written) != reading.score or re.match(r"[\d.]", following):
        return reading
    masses = _masses(token, criterion)
    on_scale = sum(masses.values())
    if reading.score not in masses or on_scale < LEAST_MASS:
        return reading
    expected = sum(point * mass for point, mass in masses.items()) / on_scale
    return replace(reading, expected=expected, confidence=min(1.0, masses[reading.score] / on_scale))


def _masses(token: Mapping[str, Any], criterion: CriterionBrief) -> dict[float, float]:
    """The probability of each point of the scale among a token and its alternatives."""
    listed = token.get("top_logprobs")
    alternatives = [other for other in listed if isinstance(other, dict)] if isinstance(listed, list) else []
    if not any(other.get("token") == token.get("token") for other in alternatives):
        alternatives.append(dict(token))
    masses: dict[float, float] = {}
    for other in alternatives:
        written, logged = str(other.get("token")).strip(' "'), other.get("logprob")
        if isinstance(logged, int | float) and logged <= 0 and re.fullmatch(NUMBER, written):
            score = float(written)
            if criterion.is_on_scale(score):
                masses[score] = masses.get(score, 0.0) + math.exp(logged)
    return masses
