"""The simulated sides of a conversation keep the rules by themselves, and break exactly what is planted."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from judging.generation.drawing import draw_parameters
from judging.generation.guard import guard_answer, guard_conversation, guard_utterance
from judging.generation.specs import preset
from judging.generation.user_agent import answer_messages, utterance_messages
from panelbench.provider.conversing import (
    TALK,
    TURN_BREAKS,
    compose_turn,
    planted_turn_break,
    read_turn_request,
)

SPEC = preset("simulated-users")
LANGUAGES = sorted(TALK)


_SAME = {"wrong_language": {"wrong_language", "wrong_script"}, "mixed_language": {"mixed_language", "mixed_script"}}
"""A language of another script is found by its script."""


def _drawn(number: int) -> dict[str, str | int]:
    return draw_parameters(SPEC, seed=5, number=number)


def _asked(language: str, turns: list[dict[str, str]], number: int = 1) -> dict[str, Any]:
    is_user = len(turns) % 2 == 0
    messages = (
        utterance_messages(SPEC, _drawn(number), language=language, turns=turns)
        if is_user
        else answer_messages(SPEC, language=language, turns=turns)
    )
    return {"model": "sim-steady", "messages": messages}


def _composed(body: dict[str, Any], rng: Random, broken: str = "") -> tuple[str, str]:
    asked = read_turn_request(body)
    assert asked is not None
    completion = compose_turn(asked, rng=rng, broken=broken)
    return completion.content, completion.finish_reason


def _held(language: str, number: int, turns: int = 20) -> list[dict[str, str]]:
    """A conversation without a planted break; every turn of it passes the guard."""
    said: list[dict[str, str]] = []
    rng = Random(f"{language}{number}")
    while len(said) < turns:
        text, ending = _composed(_asked(language, said, number), rng)
        text = text.removesuffix(" END_OF_DIALOGUE")
        if len(said) % 2 == 0:
            found = guard_utterance(
                SPEC, _drawn(number), language=language, turns=said, utterance=text, finish_reason=ending
            )
        else:
            found = guard_answer(SPEC, language=language, turns=said, answer=text, finish_reason=ending)
        assert found == [], (text, found)
        said.append({"speaker": SPEC.rules.roles[len(said) % 2], "text": text})
    return said


@pytest.mark.parametrize("language", LANGUAGES)
def test_whole_conversations_pass_the_guard(language: str) -> None:
    for number in range(1, 9):
        assert guard_conversation(SPEC, language=language, turns=_held(language, number)) == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", TURN_BREAKS["utterance"])
def test_every_planted_break_of_a_user_is_found(language: str, code: str) -> None:
    for number in (1, 2, 3):
        said = _held(language, number, 6)
        text, ending = _composed(_asked(language, said, number), Random(number), code)
        found = guard_utterance(
            SPEC, _drawn(number), language=language, turns=said, utterance=text, finish_reason=ending
        )
        assert _SAME.get(code, {code}) & {problem.code for problem in found}, text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", TURN_BREAKS["answer"])
def test_every_planted_break_of_a_chatbot_is_found(language: str, code: str) -> None:
    said = _held(language, 2, 5)
    text, ending = _composed(_asked(language, said, 2), Random(3), code)
    found = guard_answer(SPEC, language=language, turns=said, answer=text, finish_reason=ending)
    assert _SAME.get(code, {code}) & {problem.code for problem in found}, text


def test_breaks_come_at_their_rates_and_from_the_request_alone() -> None:
    rates = {"utterance": {"inverted_role": 0.1, "quoted": 0.2}, "answer": {"reasoning": 0.5}}
    bodies = [_asked("et", [], number) for number in range(1, 1_001)]
    planted = [planted_turn_break(body, rates, 7) for body in bodies]
    assert planted == [planted_turn_break(json.loads(json.dumps(body)), rates, 7) for body in bodies]
    for code, share in (("inverted_role", 0.1), ("quoted", 0.2), ("", 0.7)):
        assert abs(planted.count(("utterance", code)) / 1_000 - share) < 0.05
    assert planted != [planted_turn_break(body, rates, 7, again=1) for body in bodies]
    assert planted_turn_break({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, rates, 7) == ("", "")
