"""The simulated provider writes dialogues and texts in the language asked for, and breaks rules as planted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from judging.generation.drawing import draw_parameters
from judging.generation.messages import generation_messages, generation_schema
from judging.generation.specs import PRESETS, preset
from judging.generation.turn_rules import Written, read_written
from panelbench.provider.writing import BREAKS, PHRASES, TRANSLATION_BREAKS, planted_break
from tests.provider_server import RunningProvider, running_provider

WRITTEN_FROM_A_BRIEF = [key for key in PRESETS if preset(key).kind != "translation"]


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with running_provider() as running:
        yield running


def _body(key: str, language: str, number: int, *, schema: bool = True, model: str = "sim-steady") -> dict[str, Any]:
    spec = preset(key)
    drawn = draw_parameters(spec, seed=5, number=number)
    form = {"type": "json_schema", "json_schema": {"name": "written", "schema": generation_schema(spec)}}
    messages = generation_messages(spec, drawn, language=language)
    return {"model": model, "messages": messages, **({"response_format": form} if schema else {})}


def _read(provider: RunningProvider, body: dict[str, Any], key: str, language: str, number: int) -> set[str]:
    choice = provider.post("/v1/chat/completions", **body)["choices"][0]
    drawn = draw_parameters(preset(key), seed=5, number=number)
    read = read_written(
        preset(key),
        drawn,
        language=language,
        reply=choice["message"]["content"],
        finish_reason=choice["finish_reason"],
    )
    return set() if isinstance(read, Written) else {problem.code for problem in read}


@pytest.mark.parametrize("language", PHRASES)
def test_what_it_writes_keeps_to_the_rules_of_every_preset(provider: RunningProvider, language: str) -> None:
    """But translations, which have a source: tests/judging/generation/test_twins.py."""
    for key in WRITTEN_FROM_A_BRIEF:
        for number in range(1, 9):
            model = ("sim-steady", "sim-flawed", "sim-chatty")[number % 3]
            body = _body(key, language, number, schema=number % 2 == 0, model=model)
            assert _read(provider, body, key, language, number) == set(), (key, number, model)


@pytest.mark.parametrize("language", ["et", "en", "ar", "ja"])
def test_a_planted_break_is_found_and_told_by_the_request(provider: RunningProvider, language: str) -> None:
    codes = {*BREAKS} - {*TRANSLATION_BREAKS} - ({"wrong_language"} if language in ("ar", "ja") else set())
    rates = {code: 0.9 / len(codes) for code in BREAKS if code in codes}
    provider.control(reset=True, written_breaks=rates)
    planted: Counter[str] = Counter()
    for number in range(1, 121):
        body = _body("support-dialogues", language, number)
        code = planted_break(body, rates, 7)
        found = _read(provider, body, "support-dialogues", language, number)
        assert (code in found) if code else not found, (number, code, found)
        planted[code] += 1
    assert provider.control()["written_breaks"] == {code: count for code, count in planted.items() if code}
    assert len(planted) > 10
    provider.control(written_breaks={})


def test_a_break_of_another_rule_is_refused(provider: RunningProvider) -> None:
    with pytest.raises(HTTPError, match="400"):
        provider.control(written_breaks={"nothing": 0.5})
