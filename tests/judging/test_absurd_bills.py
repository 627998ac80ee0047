"""Replies and errors with absurd numbers are read, stored and booked: never for less than can be believed. Pure."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.asking.bills import bill_failure, bill_reply
from judging.asking.client import (
    ProviderAnswer,
    ProviderRefused,
    ProviderUnavailable,
    Unsupported,
    batch_answer,
    loaded,
    written_request,
)
from judging.asking.declarations import API_NAMES
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.asking.prices import MOST_COST
from judging.asking.wire import UNREADABLE_COST, Question, stated_cost, wire_of

MODEL, LIMIT = "sim-steady", 50
MESSAGES: Any = [{"role": "system", "content": "Hinda."}, {"role": "user", "content": "نص “Õhtu”"}]
OPENAI_NAMES = (
    *("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens", "other_tokens"),
    *("cost", "cost_usd", "total_cost", "estimated_cost", "cost_details", "is_byok", "completion_tokens_details"),
)
NAMES = {
    "openai": OPENAI_NAMES,
    "anthropic": ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation"),
    "gemini": ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"),
}
DIGITS = "9" * 400
ABSURD = (
    *(
        DIGITS,
        f"-{DIGITS}",
        f"{DIGITS}.5",
        "9" * 5_000,
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1",
        "-0.5",
        "1e-300",
    ),
    *("18446744073709551616", "-9223372036854775809", "true", "false", "null", "[]", "{}", f"[{DIGITS}]"),
    *(f'"{DIGITS}"', '"NaN"', '"inf"', '"-1"', '"1e999"', '"many"', '""', f'{{"total": {DIGITS}}}'),
    *('{"total": {"total": NaN}}', f'{{"upstream_inference_cost": {DIGITS}}}', '{"upstream_inference_cost": true}'),
)


def asked(api: str) -> PaidRequest:
    price = (Decimal(2), Decimal(8))
    bounds: Any = {"price": price, "prices": {MODEL: price}, "api": api}
    parameters = {"max_tokens": LIMIT}
    return paid_request(provider="sim", model=MODEL, messages=MESSAGES, schema=None, parameters=parameters, **bounds)


def reply_of(api: str, counts: str, logprob: str = "-0.1") -> bytes:
    logged = f'{{"token": "1", "logprob": {logprob}, "logProbability": {logprob}, "top_logprobs": [{logprob}]}}'
    return {
        "openai": f'''{{"model": "{MODEL}", "usage": {counts}, "choices": [{{"finish_reason": "stop",
            "message": {{"content": "7"}}, "logprobs": {{"content": [{logged}]}}}}]}}''',
        "anthropic": f'''{{"model": "{MODEL}", "usage": {counts}, "type": "message", "stop_reason": "end_turn",
            "content": [{{"type": "text", "text": "7"}}]}}''',
        "gemini": f'''{{"modelVersion": "{MODEL}", "usageMetadata": {counts}, "candidates": [{{"finishReason": "STOP",
            "content": {{"parts": [{{"text": "7"}}]}}, "logprobsResult": {{"chosenCandidates": [{logged}]}}}}]}}''',
    }[api].encode()


def counts_of(api: str, **stated: str) -> str:
    """What an honest provider counts, with these values instead, written in JSON."""
    honest = {
        "openai": {"prompt_tokens": "9", "completion_tokens": "3"},
        "anthropic": {"input_tokens": "9", "output_tokens": "3"},
        "gemini": {"promptTokenCount": "9", "candidatesTokenCount": "3"},
    }[api]
    return written({**honest, **stated})


def written(parts: dict[str, str]) -> str:
    members = ", ".join(f'"{name}": {value}' for name, value in parts.items())
    return f"{{{members}}}"


def is_booked(api: str, body: bytes) -> None:
    """The reply is read, stored and booked, and so is an error with the same count."""
    raw, request, wire = loaded(body), asked(api), wire_of(api)
    honest = bill_reply(request, wire.read(loaded(reply_of(api, counts_of(api))))).cost
    reply = wire.read(raw)
    assert reply.text == "7"
    orjson.dumps(raw)
    json.dumps(reply.stored, allow_nan=False)
    bill = bill_reply(request, reply)
    assert bill.cost is not None and request.worst_case and 0 <= bill.cost <= MOST_COST
    assert all(count is None or 0 <= count < 2**31 for count in (bill.tokens_in, bill.tokens_out))
    if bill.doubt:
        assert bill.cost >= request.worst_case
    else:
        assert honest and bill.cost <= request.worst_case
    failed = bill_failure(request, ProviderRefused("No.", status=400, counted=reply.counted))
    assert failed.cost is not None and failed.cost >= request.worst_case
    assert failed.cost <= MOST_COST


@pytest.mark.parametrize("api", API_NAMES)
def test_any_absurd_number_in_a_count_is_booked(api: str) -> None:
    for name in NAMES[api]:
        for value in ABSURD:
            is_booked(api, reply_of(api, counts_of(api, **{name: value})))
    for value in ABSURD:
        is_booked(api, reply_of(api, counts_of(api), logprob=value))
        is_booked(api, reply_of(api, counts_of(api, **dict.fromkeys(NAMES[api], value), some_tokens="1")))


WRITTEN = st.recursive(
    st.sampled_from([*ABSURD, "3", "0.5", '"3"', '"0.02"']),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(["total", "total_cost", "tokens", "reasoning_tokens", "upstream_inference_cost"]), inner
        ).map(written)
        | st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
    ),
    max_leaves=6,
)


@given(api=st.sampled_from([*API_NAMES]), data=st.data())
def test_any_absurd_count_is_booked(api: str, data: st.DataObject) -> None:
    stated = data.draw(st.dictionaries(st.sampled_from(NAMES[api]), WRITTEN, max_size=4))
    is_booked(api, reply_of(api, counts_of(api, **stated, some_tokens="1")))


@pytest.mark.parametrize("absurd", [DIGITS, "NaN", "-1", "true", '"many"', "Infinity", "-Infinity", f'"{DIGITS}"'])
def test_a_cost_that_can_not_be_one_is_booked_at_the_worst_case(absurd: str) -> None:
    request = asked("openai")
    bill = bill_reply(request, wire_of("openai").read(loaded(reply_of("openai", counts_of("openai", cost=absurd)))))
    assert bill.doubt and request.worst_case and bill.cost is not None and bill.cost >= request.worst_case
    assert bool(bill.stops) == (absurd in (DIGITS, "Infinity"))


@pytest.mark.parametrize(
    ("counts", "cost"),
    [
        ({"cost": 0.55}, "0.55"),
        ({"cost": "0.55"}, "0.55"),
        ({"cost": "$0.55"}, "0.55"),
        ({"cost": "5.5e-1"}, "0.55"),
        ({"cost": {"total": 2}}, "2"),
        ({"cost": {"total_cost": "2", "input_tokens_cost": 1}}, "2"),
        ({"cost_usd": 0.3}, "0.3"),
        ({"cost": 0, "cost_details": {"upstream_inference_cost": 0.4}, "is_byok": True}, "0.4"),
        ({"cost": 0.02, "cost_details": {"upstream_inference_cost": 0.4}, "is_byok": True}, "0.42"),
        ({"cost": 0.4, "cost_details": {"upstream_inference_cost": 0.4}, "is_byok": False}, "0.4"),
        ({"cost": 0.4, "cost_details": {"upstream_inference_cost": None}}, "0.4"),
        ({"cost": -1}, UNREADABLE_COST),
        ({"cost": -1, "total_cost": 0.1}, "0.1"),
        ({"cost": 0}, None),
        ({"cost": None}, None),
        ({"cost": ""}, None),
        ({"cost": {"input": 1}}, None),
        ([], None),
    ],
)
def test_a_stated_cost_is_read_however_it_is_written(counts: Any, cost: Any) -> None:
    assert stated_cost(counts) == (None if cost is None else Decimal(cost))


def line_of(usage: dict[str, Any]) -> Any:
    error = {"message": "Unsupported parameter: 'temperature'.", "param": "temperature"}
    return {"response": {"status_code": 400, "body": {"error": error, "usage": usage}}}


def test_a_refusal_in_a_batch_that_was_billed_is_final() -> None:
    parameters = {"max_tokens": LIMIT, "temperature": 0}
    sent = written_request(wire_of("openai"), Question(model=MODEL, messages=MESSAGES, parameters=parameters), [])
    for usage in ({}, {"prompt_tokens": 0, "total_tokens": 0}):
        with pytest.raises(Unsupported):
            batch_answer(line_of(usage), request=sent)
    for billed in ({"total_tokens": 90}, {"units_of_tokens": 90}, {"prompt_tokens": 90}, {"cost": "0.5"}):
        with pytest.raises(ProviderRefused) as caught:
            batch_answer(line_of(billed), request=sent)
        assert caught.value.counted


@pytest.mark.parametrize("status", ["NaN", DIGITS, "true", "null", "-1", "200"])
def test_a_reply_in_a_batch_is_read_whatever_its_status(status: str) -> None:
    sent = written_request(wire_of("openai"), Question(model=MODEL, messages=MESSAGES, parameters={}), [])
    body = reply_of("openai", counts_of("openai", cost=DIGITS)).decode()
    entry = loaded(f'{{"response": {{"status_code": {status}, "body": {body}}}}}'.encode())
    assert isinstance(answer := batch_answer(entry, request=sent), ProviderAnswer)
    assert bill_reply(asked("openai"), answer).stops


@pytest.mark.parametrize("status", ["NaN", DIGITS, "true", "null", "600"])
def test_an_error_in_a_batch_is_unavailable_whatever_its_status(status: str) -> None:
    sent = written_request(wire_of("openai"), Question(model=MODEL, messages=MESSAGES, parameters={}), [])
    entry = loaded(f'{{"response": {{"status_code": {status}, "body": {{"error": {DIGITS}}}}}}}'.encode())
    with pytest.raises(ProviderUnavailable):
        batch_answer(entry, request=sent)
