"""The probabilities of the tokens of a reply: the expected score and the confidence beside the score that was given.
Pure."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from judging.prompts import CriterionBrief
from judging.replies import NUMBER, Reading

LEAST_MASS: Final = 0.5  # of the probability that must lie on points of the scale
MOST_OPEN_MASS: Final = 0.01  # of the probability that may lie on tokens that can be the beginning of a longer score
_MOST_POINTS: Final = 10_001  # of a stepped scale that are looked at


@dataclass(frozen=True, slots=True)
class LoggedToken:
    """A token of a reply with its log-probability, and the tokens that could have stood there with theirs."""

    token: str
    logprob: float | None
    others: tuple[tuple[str, float | None], ...] = ()


def weighed(
    readings: Sequence[Reading], *, tokens: Sequence[LoggedToken], criteria: Sequence[CriterionBrief]
) -> list[Reading]:
    """The readings with expected score and confidence, where the reply's ``tokens`` have probabilities.

    The token must be the whole score; the alternatives to it that are points of the scale are weighed by their
    probability. Without them, or with less than half of the probability on the scale, a reading stays as it is; so it
    does where the token or an alternative may be the beginning of a longer score ("1" of "10", "3" of "3.5").
    """
    if not tokens:
        return list(readings)
    text = "".join(token.token for token in tokens)
    briefs = {criterion.key: criterion for criterion in criteria}
    return [_weighed(reading, tokens, text, briefs[reading.criterion], len(briefs) == 1) for reading in readings]


def _weighed(
    reading: Reading, tokens: Sequence[LoggedToken], text: str, criterion: CriterionBrief, alone: bool
) -> Reading:
    key = "" if alone else rf"{re.escape(json.dumps(criterion.key, ensure_ascii=False))}\s*:\s*\{{[^{{}}]{{0,20000}}?"
    places = list(re.finditer(rf'{key}"score"\s*:\s*"?', text))
    if reading.status != "ok" or reading.score is None or len(places) != 1:
        return reading
    starts = list(accumulate((len(token.token) for token in tokens), initial=0))
    number = bisect_right(starts, places[0].end()) - 1  # the token that begins the score
    if number >= len(tokens):
        return reading
    following = text[starts[number + 1] : starts[number + 1] + 1]
    token = tokens[number]
    written = token.token.strip(' "')
    if not re.fullmatch(NUMBER, written) or float(written) != reading.score or re.match(r"[\d.]", following):
        return reading
    alternatives = _alternatives(token)
    beginnings = _beginnings(alternatives, criterion)
    if sum(mass for other, mass in alternatives if other in beginnings) > MOST_OPEN_MASS:
        return reading
    masses: dict[float, float] = {}
    for other, mass in alternatives:
        if other not in beginnings and re.fullmatch(NUMBER, other) and criterion.is_on_scale(float(other)):
            masses[float(other)] = masses.get(float(other), 0.0) + mass
    on_scale = sum(masses.values())
    if reading.score not in masses or on_scale < LEAST_MASS:
        return reading
    expected = sum(point * mass for point, mass in masses.items()) / on_scale
    return replace(reading, expected=expected, confidence=min(1.0, masses[reading.score] / on_scale))


def _alternatives(token: LoggedToken) -> list[tuple[str, float]]:
    """A token and its alternatives, without spaces and quotation marks, and the probability of each."""
    others = list(token.others)
    if not any(other == token.token for other, _logprob in others):
        others.append((token.token, token.logprob))
    return [(other.strip(' "'), math.exp(logprob)) for other, logprob in others if logprob is not None and logprob <= 0]


def _beginnings(alternatives: Sequence[tuple[str, float]], criterion: CriterionBrief) -> set[str]:
    """Those of the alternatives that may be the beginning of a longer score.

    Where a token of several digits is listed, whole numbers of as many digits are one token, and no other begins them.
    On a scale that takes any number between its ends, every number may go on.
    """
    texts = {other for other, _mass in alternatives if other}
    if not criterion.step and (criterion.is_range or criterion.level == "interval"):
        return {text for text in texts if re.fullmatch(NUMBER, text)}
    digits = max((len(text) for text in texts if text.isdecimal()), default=1)
    longer = [point for point in _written_points(criterion) if not point.isdecimal() or len(point) > digits]
    return {text for text in texts if any(point.startswith(text) and point != text for point in longer)}


def _written_points(criterion: CriterionBrief) -> list[str]:
    """The points of a scale as they are written: "10" and "2.5"."""
    if criterion.is_range and criterion.step:
        count = min(_MOST_POINTS, round((criterion.high - criterion.low) / criterion.step) + 1)
        values = [round(criterion.low + number * criterion.step, 9) for number in range(count)]
    else:
        values = [point.value for point in criterion.points]
    return [str(int(value)) if float(value).is_integer() else repr(float(value)) for value in values]
