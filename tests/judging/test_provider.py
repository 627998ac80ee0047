"""The simulated provider through a real socket: its replies, its misbehaviour and its counts."""

from __future__ import annotations

import json
import math
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from judging.prompts import CriterionBrief, ItemText, PromptVariant, Turn, render, response_schema
from judging.replies import Reading, parse
from tests.judging.briefs import CHANNEL, DIALOGUE, EMPATHY, GRAMMAR, LENGTH, SINGLE, point_briefs
from tests.provider_server import RunningProvider, running_provider

VARIANT = PromptVariant()
CRITERIA = [GRAMMAR, EMPATHY, LENGTH, CHANNEL]
FINE = CriterionBrief(key="fine", name="Fine", points=point_briefs(*range(11)))


@pytest.fixture(scope="module")
def server() -> Iterator[RunningProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(server: RunningProvider) -> RunningProvider:
    server.control(reset=True, latency=0.0, slowness=10.0, rates={}, required_key="")
    return server


def question(
    item: ItemText = DIALOGUE,
    criteria: list[CriterionBrief] = CRITERIA,
    variant: PromptVariant = VARIANT,
    *,
    schema: bool = False,
    **body: Any,
) -> dict[str, Any]:
    """A request body for one item."""
    wanted = {"model": "sim-steady", "messages": render(item=item, criteria=criteria, variant=variant), **body}
    if schema:
        answer = {"name": "verdicts", "strict": True, "schema": response_schema(criteria, variant)}
        wanted["response_format"] = {"type": "json_schema", "json_schema": answer}
    return wanted


def complete(provider: RunningProvider, **body: Any) -> dict[str, Any]:
    reply: dict[str, Any] = provider.post("/v1/chat/completions", **body)
    return reply


def readings(
    reply: dict[str, Any], criteria: list[CriterionBrief] = CRITERIA, variant: PromptVariant = VARIANT
) -> list[Reading]:
    choice = reply["choices"][0]
    message = choice["message"]
    text = message["content"] or message.get("reasoning_content", "")
    ending = choice["finish_reason"]
    return parse(text, criteria=criteria, variant=variant, finish_reason=ending, refusal=message["refusal"])


def error_of(provider: RunningProvider, **body: Any) -> tuple[int, dict[str, Any], Any]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        complete(provider, **body)
    with caught.value as error:
        return error.code, json.load(error)["error"], error.headers


def dialogue(*turns: str) -> ItemText:
    return ItemText(turns=tuple(Turn("AGENT" if n % 2 else "CUSTOMER", text) for n, text in enumerate(turns)))


# --- Replies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("language", ["en", "et"])
def test_scales_are_found_in_the_schema_and_in_the_words(
    provider: RunningProvider, schema: bool, language: str
) -> None:
    variant = PromptVariant(instruction_language=language)
    found = readings(complete(provider, **question(variant=variant, schema=schema)))
    assert [each.status for each in found] == ["ok"] * 4
    assert all(each.coerced is None and not each.fractional for each in found)
    assert {"en": "Simulated", "et": "Simuleeritud"}[language] in found[0].rationale


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("explanation", [True, False])
def test_a_single_question_gets_a_single_answer(provider: RunningProvider, schema: bool, explanation: bool) -> None:
    variant = PromptVariant(grouping="single", explanation=explanation)
    reply = complete(provider, **question(criteria=[GRAMMAR], variant=variant, schema=schema))
    said = json.loads(reply["choices"][0]["message"]["content"])
    assert list(said) == (["rationale", "score"] if explanation else ["score"])
    assert said["score"] in (0, 1, 2)


def test_every_reply_says_that_it_is_simulated(provider: RunningProvider) -> None:
    reply = complete(provider, **question())
    assert reply["system_fingerprint"] == "simulated"
    assert reply["model"] == "sim-steady-2026-01"
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
    assert 100 < reply["usage"]["prompt_tokens"] < 1_000
    assert provider.get("/healthz")["simulated"]
    assert {card["owned_by"] for card in provider.get("/v1/models")["data"]} == {"simulated"}


def test_the_same_request_gets_the_same_reply_and_temperature_lets_it_vary(provider: RunningProvider) -> None:
    item = dialogue(*(f"Line {n} of a long talk." for n in range(6)))
    ask = [FINE]
    assert complete(provider, **question(item, ask)) == complete(provider, **question(item, ask))
    seeded = [complete(provider, **question(item, ask, temperature=1.0, seed=seed)) for seed in (1, 1, 2, 3, 4, 5)]
    assert seeded[0] == seeded[1]
    scores = {readings(reply, ask)[0].score for reply in seeded}
    repeats = {readings(complete(provider, **question(item, ask, temperature=1.0)), ask)[0].score for _ in range(8)}
    assert len(scores) > 1 and len(repeats) > 1


def test_another_seed_is_another_judge() -> None:
    asked = [question(dialogue(f"Text number {n}, plain enough."), [FINE]) for n in range(12)]
    said = []
    for seed in ("1", "2"):
        with running_provider("--seed", seed) as provider:
            said.append([readings(complete(provider, **body), [FINE])[0].score for body in asked])
    assert said[0] != said[1]
    assert sum(abs(a - b) for a, b in zip(*said, strict=True)) / 12 < 2  # type: ignore[operator]


GOOD = "Thank you for waiting; your parcel left our warehouse this morning and arrives tomorrow, as number {} told me."
BAD = "yes yes parcel parcel , number {} is is gone gone !!"


def mean_score(provider: RunningProvider, model: str, template: str) -> float:
    items = [dialogue(f"Where is my order {n}?", template.format(n)) for n in range(30)]
    replies = [complete(provider, **question(item, [FINE], model=model)) for item in items]
    return math.fsum(readings(reply, [FINE])[0].score or 0 for reply in replies) / len(replies)


def test_steady_scores_follow_quality_and_harsh_ones_are_lower(provider: RunningProvider) -> None:
    good, bad = mean_score(provider, "sim-steady", GOOD), mean_score(provider, "sim-steady", BAD)
    assert good > bad + 1.5
    assert mean_score(provider, "sim-harsh", GOOD) < good - 1


def test_a_chatty_model_can_still_be_read(provider: RunningProvider) -> None:
    found = [
        reading
        for n in range(10)
        for reading in readings(complete(provider, **question(dialogue(f"Hello {n}."), model="sim-chatty")))
    ]
    assert {each.status for each in found} == {"ok"}
    assert {each.coerced for each in found} == {"prose"}


def test_a_token_limit_cuts_the_reply_off(provider: RunningProvider) -> None:
    reply = complete(provider, **question(max_tokens=10))
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] <= 10


def test_a_chat_that_asks_for_no_scores_gets_words(provider: RunningProvider) -> None:
    reply = complete(provider, model="sim-steady", messages=[{"role": "user", "content": "Hello"}])
    assert "Simulated" in reply["choices"][0]["message"]["content"]


def test_embeddings_are_fixed_unit_vectors_and_alike_for_texts_that_are_alike(provider: RunningProvider) -> None:
    texts = ["my parcel is late", "my parcel is very late", "quarterly figures"]
    data = provider.post("/v1/embeddings", model="sim-embedding", input=texts)["data"]
    one, alike, other = (row["embedding"] for row in data)
    assert math.isclose(math.hypot(*one), 1)
    assert sum(map(float.__mul__, one, alike)) > sum(map(float.__mul__, one, other)) + 0.3


# --- Misbehaviour ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "score"),
    [
        ("unparsable", "unparsed", False),
        ("out_of_range", "out_of_range", True),
        ("truncated", "truncated", False),
        ("refusal", "refused", False),
        ("content_filter", "refused", False),
        ("empty", "ok", True),
        ("ratio", "ok", True),
        ("wrong_keys", "unparsed", False),
    ],
)
@pytest.mark.parametrize("variant", [SINGLE, VARIANT])
def test_each_spoilt_reply_ends_in_its_status(
    provider: RunningProvider, kind: str, status: str, score: bool, variant: PromptVariant
) -> None:
    criteria = [GRAMMAR] if variant is SINGLE else [GRAMMAR, LENGTH]
    found = readings(
        complete(provider, **question(criteria=criteria, variant=variant, model=f"sim-broken:{kind}")),
        criteria,
        variant,
    )
    assert found[-1].status == status
    assert (found[-1].score is not None) == score
    assert provider.control()["misbehaviours"] == {kind: 1}


def test_broken_plays_everything_in_turn(provider: RunningProvider) -> None:
    provider.control(slowness=0.0)
    for _ in range(12):
        try:
            complete(provider, **question(model="sim-broken"))
        except (urllib.error.HTTPError, ConnectionError) as error:
            getattr(error, "close", lambda: None)()
    assert set(provider.control()["misbehaviours"].values()) == {1}
    assert len(provider.control()["misbehaviours"]) == 12


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("quota", 429, "insufficient_quota"),
        ("server_error", 500, "server_error"),
        ("unauthorized", 401, "invalid_api_key"),
        ("forbidden", 403, "forbidden"),
    ],
)
def test_errors_come_in_the_shape_of_the_real_thing(
    provider: RunningProvider, kind: str, status: int, code: str
) -> None:
    got, words, headers = error_of(provider, **question(model=f"sim-steady:{kind}"))
    assert (got, words["code"]) == (status, code)
    assert headers["Retry-After"] == ("1" if kind == "rate_limit" else None)


def test_requests_that_make_no_sense_are_told_so(provider: RunningProvider) -> None:
    assert error_of(provider, **question(model="gpt-x"))[0] == 404
    assert error_of(provider, **question(model="sim-broken:nonsense"))[0] == 404
    assert error_of(provider, **question(stream=True))[0] == 400
    assert error_of(provider, model="sim-steady", messages=7)[0] == 400
    assert error_of(provider, messages=[])[0] == 400
    with pytest.raises(urllib.error.HTTPError) as caught:
        provider.control(next=["no such thing"])
    assert caught.value.code == 400
    caught.value.close()


def test_fault_rates_hold_over_many_requests() -> None:
    with running_provider("--fault-rate", "rate_limit=0.2", "--fault-rate", "server_error=0.1") as provider:
        for n in range(200):
            try:
                complete(provider, **question(dialogue(f"Hello {n}.")))
            except urllib.error.HTTPError as error:
                error.close()
        statuses = provider.control()["statuses"]
    assert 20 < statuses["429"] < 60 and 8 < statuses["500"] < 35


def test_scripted_misbehaviour_is_played_once_and_in_order(provider: RunningProvider) -> None:
    provider.control(next=["server_error", "none", "rate_limit"])
    assert error_of(provider, **question())[0] == 500
    assert complete(provider, **question())["object"] == "chat.completion"
    assert error_of(provider, **question())[0] == 429
    assert complete(provider, **question())["object"] == "chat.completion"


# --- Counts ---------------------------------------------------------------------------------------------------------


def test_counts_tell_what_was_answered_and_what_twice(provider: RunningProvider) -> None:
    complete(provider, **question())
    complete(provider, **question())
    complete(provider, **question(model="sim-harsh"))
    error_of(provider, **question(model="sim-steady:server_error"))
    counts = provider.control()
    assert (counts["requests"], counts["answered"]) == (4, 3)
    assert sorted(counts["prompts"].values()) == [1, 2]
    assert counts["statuses"] == {"200": 3, "500": 1}


def test_many_requests_are_in_flight_at_once(provider: RunningProvider) -> None:
    provider.control(latency=0.2)
    with ThreadPoolExecutor(48) as pool:
        list(pool.map(lambda n: complete(provider, **question(dialogue(f"Hello {n}."))), range(48)))
    counts = provider.control()
    assert counts["answered"] == 48 and counts["in_flight"] == 0
    assert counts["peak_in_flight"] > 24
