"""The client against the simulated provider, and against servers that reply in ways no server should."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import orjson
import pytest

from judging.asking.client import (
    Connection,
    Endpoint,
    ProviderAnswer,
    ProviderRefused,
    ProviderUnavailable,
    ask,
    connect,
    stored_answer,
    written_request,
)
from judging.asking.wire import Question, wire_of
from judging.prompts import Message, PromptVariant, render, response_schema
from judging.replies import parse, reply_text
from tests.judging.briefs import DIALOGUE, EMPATHY, GRAMMAR
from tests.provider_server import RunningProvider, running_provider

CRITERIA = [GRAMMAR, EMPATHY]
VARIANT = PromptVariant()
MESSAGES = render(item=DIALOGUE, criteria=CRITERIA, variant=VARIANT)
SCHEMA = response_schema(CRITERIA, VARIANT)
KEY = "sk-proj-verysecret0123456789"  # not a secret
DAY, TESTING = 86_400, 6000
"""Seconds; a run of all tests may take 90 minutes after this module is read."""


@pytest.fixture(scope="module")
def server() -> Iterator[RunningProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(server: RunningProvider) -> RunningProvider:
    server.control(reset=True, latency=0.0, slowness=10.0, rates={}, required_key="")
    return server


@pytest.fixture
def endpoint(provider: RunningProvider, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("BENCH_KEY", KEY)
    return Endpoint("sim", provider.base_url, "BENCH_KEY")


async def put(
    connection: Connection,
    model: str = "sim-steady",
    messages: Sequence[Message] = MESSAGES,
    schema: dict[str, Any] | None = SCHEMA,
    timeout: float = 5,  # noqa: ASYNC109 - handed on
    **parameters: Any,
) -> ProviderAnswer:
    return await ask(connection, model=model, messages=messages, parameters=parameters, schema=schema, timeout=timeout)


def answers(endpoint: Endpoint, *models: str, **options: Any) -> list[ProviderAnswer]:
    """One question after the other over one connection."""

    async def scenario() -> list[ProviderAnswer]:
        async with connect(endpoint) as connection:
            return [await put(connection, model, **options) for model in models]

    return asyncio.run(scenario())


def failure(endpoint: Endpoint, model: str = "sim-steady", **options: Any) -> ProviderUnavailable | ProviderRefused:
    with pytest.raises((ProviderUnavailable, ProviderRefused)) as caught:
        answers(endpoint, model, **options)
    assert isinstance(caught.value, ProviderUnavailable | ProviderRefused)
    return caught.value


# --- A reply ------------------------------------------------------------------------------------------------------


def test_an_answer_carries_all_that_is_worth_keeping(endpoint: Endpoint, provider: RunningProvider) -> None:
    (answer,) = answers(endpoint, "sim-steady", temperature=0.0)
    assert [each.status for each in parse(answer.readable, criteria=CRITERIA, variant=VARIANT)] == ["ok", "ok"]
    assert answer.finish_reason == "stop" and answer.refusal is None and answer.reasoning == ""
    assert answer.served_model == "sim-steady-2026-01"
    assert answer.tokens_in and answer.tokens_out and answer.raw["usage"]["prompt_tokens"] == answer.tokens_in
    assert 0 < answer.latency < 5 and answer.dropped == ()
    assert provider.control()["statuses"] == {"200": 1}


def test_text_where_the_reasoning_belongs_is_readable(endpoint: Endpoint) -> None:
    (answer,) = answers(endpoint, "sim-broken:empty")
    assert answer.text == "" and answer.reasoning == answer.readable
    assert parse(answer.readable, criteria=CRITERIA, variant=VARIANT)[0].status == "ok"


def test_a_refusal_a_filter_and_a_cut_are_answers(endpoint: Endpoint) -> None:
    refusal, filtered, cut = answers(
        endpoint, "sim-broken:refusal", "sim-broken:content_filter", "sim-broken:truncated"
    )
    assert refusal.refusal and "can't" in refusal.refusal
    assert filtered.finish_reason == "content_filter"
    assert cut.finish_reason == "length"


def test_many_questions_share_one_connection(endpoint: Endpoint, provider: RunningProvider) -> None:
    provider.control(latency=0.2)

    async def scenario() -> float:
        async with connect(endpoint) as connection:
            started = time.perf_counter()
            await asyncio.gather(*(put(connection) for _ in range(64)))
            return time.perf_counter() - started

    assert asyncio.run(scenario()) < 10  # one after the other they take 13 s
    assert provider.control()["peak_in_flight"] > 32


def test_a_reserved_parameter_is_the_callers_mistake(endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match="n, stream"):
        answers(endpoint, "sim-steady", stream=True, n=3)


# --- Unavailable --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "reason", "retry_after"),
    [
        ("rate_limit", "429 rate_limit_exceeded", 1.0),
        ("server_error", "500 server_error", None),
        ("dropped", "No connection", None),
        ("not_json", "not a JSON object", None),
        ("error_in_reply", "503", None),
    ],
)
def test_what_may_pass_is_unavailable(endpoint: Endpoint, kind: str, reason: str, retry_after: float | None) -> None:
    error = failure(endpoint, f"sim-steady:{kind}")
    assert isinstance(error, ProviderUnavailable)
    assert reason in error.reason
    assert error.retry_after == retry_after


def test_a_slow_reply_is_given_up_at_the_deadline(endpoint: Endpoint) -> None:
    started = time.perf_counter()
    error = failure(endpoint, "sim-steady:slow", timeout=0.3)
    assert isinstance(error, ProviderUnavailable) and "0.3 seconds" in error.reason
    assert time.perf_counter() - started < 8  # the reply comes after ten


def test_a_server_that_is_not_there_is_unavailable() -> None:
    error = failure(Endpoint("gone", "http://127.0.0.1:1/v1"))
    assert isinstance(error, ProviderUnavailable) and "No connection" in error.reason


def test_one_attempt_is_one_request(endpoint: Endpoint, provider: RunningProvider) -> None:
    failure(endpoint, "sim-steady:server_error")
    assert provider.control()["requests"] == 1


# --- Refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "status", "fatal"),
    [
        ("sim-steady:quota", 429, True),
        ("sim-steady:unauthorized", 401, True),
        ("sim-steady:forbidden", 403, False),
        ("no-such-model", 404, False),
    ],
)
def test_what_will_not_pass_is_refused(endpoint: Endpoint, model: str, status: int, fatal: bool) -> None:
    error = failure(endpoint, model)
    assert isinstance(error, ProviderRefused)
    assert (error.status, error.fatal) == (status, fatal)


def test_a_bad_request_is_refused_with_its_reason(endpoint: Endpoint) -> None:
    error = failure(endpoint, messages=[{"role": "user", "content": 7}], schema={"properties": 7})  # type: ignore[dict-item]
    assert isinstance(error, ProviderRefused)
    assert error.status == 400 and not error.fatal


def test_half_a_character_cannot_be_sent(endpoint: Endpoint) -> None:
    error = failure(endpoint, messages=[{"role": "user", "content": "\ud800"}])
    assert isinstance(error, ProviderRefused) and "half a surrogate pair" in error.reason


@pytest.mark.parametrize("value", ["", "  ", "sk-schlüssel"])
def test_a_key_that_is_missing_or_no_key_stops_the_run(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_KEY", value)
    error = failure(Endpoint("sim", "http://127.0.0.1:1/v1", "BENCH_KEY"))
    assert isinstance(error, ProviderRefused) and error.fatal
    assert "BENCH_KEY" in error.reason and (not value.strip() or value not in error.reason)


# --- Stepping down --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "dropped"),
    [
        ("no_schema", ("json_schema",)),
        ("no_format", ("json_schema", "json_object")),
        ("no_temperature", ("temperature",)),
        ("no_max_tokens", ("max_tokens",)),
    ],
)
def test_what_a_model_will_not_take_is_left_out_and_named(
    endpoint: Endpoint, provider: RunningProvider, kind: str, dropped: tuple[str, ...]
) -> None:
    first, second = answers(endpoint, *[f"sim-steady:{kind}"] * 2, temperature=0.0, max_tokens=500)
    assert first.dropped == second.dropped == dropped
    assert parse(first.readable, criteria=CRITERIA, variant=VARIANT)[0].status == "ok"
    # Learnt once: the second question goes out without it at once.
    assert provider.control()["statuses"] == {"400": len(dropped), "200": 2}


@pytest.mark.parametrize("kind", ["no_max_tokens", "no_max_completion_tokens"])
def test_a_limit_on_tokens_is_renamed_and_still_holds(endpoint: Endpoint, kind: str) -> None:
    name = kind.removeprefix("no_")
    (answer,) = answers(endpoint, f"sim-steady:{kind}", **{name: 5})
    assert answer.finish_reason == "length" and answer.tokens_out == 5 and answer.dropped == (name,)


@pytest.mark.parametrize(
    ("kind", "parameters", "dropped", "status"),
    [
        ("no_temperature", {"temperature": 0}, ("temperature",), "400"),
        ("no_seed", {"seed": 3}, ("seed",), "400"),
        ("no_logprobs", {"logprobs": True, "top_logprobs": 5}, ("logprobs", "top_logprobs"), "400"),
        ("no_max_tokens", {"max_tokens": 500}, ("max_tokens",), "400"),
        ("no_max_completion_tokens", {"max_completion_tokens": 500}, ("max_completion_tokens",), "422"),
        ("no_system", {}, ("system_role",), "400"),
        ("no_structure", {}, ("json_schema", "json_object", "tool_call"), "400"),
    ],
)
def test_each_refused_parameter_is_learnt_once_and_the_verdict_still_read(
    endpoint: Endpoint,
    provider: RunningProvider,
    kind: str,
    parameters: dict[str, Any],
    dropped: tuple[str, ...],
    status: str,
) -> None:
    first, second = answers(endpoint, *[f"sim-steady:{kind}"] * 2, **parameters)
    assert first.dropped == second.dropped == dropped
    refusals = 3 if kind == "no_structure" else 1
    assert provider.control()["statuses"] == {status: refusals, "200": 2}
    assert [each.status for each in parse(second.readable, criteria=CRITERIA, variant=VARIANT)] == ["ok", "ok"]


def test_without_a_system_role_the_user_says_the_same_words(endpoint: Endpoint) -> None:
    messages = [*MESSAGES, {"role": "assistant", "content": "-"}]
    asked = Question(model="m", messages=messages, parameters={}, schema=SCHEMA)
    body = written_request(wire_of("openai"), asked, ["system_role"]).body
    system, user = (message["content"] for message in MESSAGES)
    assert body["messages"] == [
        {"role": "user", "content": f"{system}\n\n{user}"},
        {"role": "assistant", "content": "-"},
    ]
    # An item that talks about system messages, in an answer or in an error about something else, changes nothing.
    alone = [{"role": "user", "content": "The system role is not supported?"}]
    assert answers(endpoint, "sim-steady:no_system", messages=alone, schema=None)[0].dropped == ()


# --- Secrets --------------------------------------------------------------------------------------------------------


def test_the_key_is_sent_and_shows_nowhere(
    endpoint: Endpoint, provider: RunningProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.control(required_key=KEY)

    async def scenario() -> str:
        async with connect(endpoint) as connection:
            answer = await put(connection)
            return repr((endpoint, connection, answer, asdict(endpoint)))

    shown = asyncio.run(scenario())
    provider.control(required_key="another")
    error = failure(endpoint)  # the provider repeats the key it was given
    assert isinstance(error, ProviderRefused) and error.fatal and "[key]" in error.reason
    assert KEY not in shown + repr(error) + str(error) + repr(error.__cause__) + caplog.text
    assert error.__cause__ is None and error.__suppress_context__


def test_openai_is_imported_only_when_something_is_asked() -> None:
    code = "import sys, judging.asking.client, judging.asking.limits; "
    code += "sys.exit('openai' in sys.modules or 'redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_organisation_of_the_environment_is_not_told_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    request, _ = against(b"{}")
    assert b"org-private" not in request and b"proj-private" not in request
    assert b"POST /v1/chat/completions" in request


# --- Servers that reply oddly ---------------------------------------------------------------------------------------


def against(
    body: bytes, *, status: str = "200 OK", headers: str = ""
) -> tuple[bytes, ProviderAnswer | ProviderUnavailable | ProviderRefused]:
    """Ask a server that gives this one reply to anything; the request it saw and what became of it."""

    async def scenario() -> tuple[bytes, ProviderAnswer | ProviderUnavailable | ProviderRefused]:
        seen = bytearray()

        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.extend(await reader.readuntil(b"\r\n\r\n"))
            head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{headers}\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(converse, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, connect(Endpoint("odd", f"http://127.0.0.1:{port}/v1")) as connection:
            try:
                outcome: ProviderAnswer | ProviderUnavailable | ProviderRefused = await put(connection)
            except (ProviderUnavailable, ProviderRefused) as error:
                outcome = error
            return bytes(seen), outcome

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "usage",
    [
        '{"total_tokens": 90}',
        '{"tokens_of_all": 90}',
        '{"prompt_tokens": 9}',
        '{"cost": "0.5"}',
        f'{{"cost": {"9" * 400}}}',
    ],
)
def test_a_refusal_that_was_billed_under_any_name_is_final(usage: str) -> None:
    stated = f'{{"error": {{"message": "No response_format here.", "param": "response_format"}}, "usage": {usage}}}'
    seen, outcome = against(stated.encode(), status="400 Bad Request")
    assert seen.count(b"POST ") == 1
    assert isinstance(outcome, ProviderRefused) and outcome.counted


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"choices": []},
        {"choices": None, "usage": None, "model": 7},
        {"choices": [None]},
        {"choices": ["text"]},
        {"choices": [{"message": None, "finish_reason": 3}]},
        {"choices": [{"message": {"content": None, "refusal": "", "reasoning_content": 5}}], "usage": []},
        {"choices": {"0": {}}, "usage": {"prompt_tokens": "many", "completion_tokens": -1}},
    ],
)
def test_whatever_a_reply_leaves_out_is_missing(reply: dict[str, Any]) -> None:
    _, answer = against(orjson.dumps(reply))
    assert isinstance(answer, ProviderAnswer)
    assert (answer.text, answer.refusal, answer.finish_reason, answer.tokens_in) == ("", None, None, None)
    assert answer.raw == reply


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": '{"gram'}, {"type": "text", "text": 'mar": 1}'}, {"type": "image"}]
    _, answer = against(orjson.dumps({"choices": [{"message": {"content": parts}}]}))
    assert isinstance(answer, ProviderAnswer) and answer.text == '{"grammar": 1}'


@pytest.mark.parametrize(
    ("content", "tool", "arguments", "text"),
    [
        ("I will now record the verdict.", "verdicts", '{"score": 4}', '{"score": 4}'),
        ("Score: 2 would be too low." + " " * 2**19, "verdicts", '{"score": 4}', '{"score": 4}'),
        ([{"type": "text", "text": "Score: 2?"}], "verdicts", {"score": 4}, '{"score": 4}'),
        ('{"score": 2}', "verdicts", "{}", '{"score": 2}'),
        ('{"score": 2}', "web_search", '{"score": 4}', '{"score": 2}'),
        (" ", "record", '{"score": 4}', '{"score": 4}'),
    ],
)
def test_a_call_of_our_tool_is_the_answer_and_not_the_words_beside_it(
    content: Any, tool: str, arguments: Any, text: str
) -> None:
    called = [{"type": "function", "function": {"name": tool, "arguments": arguments}}]
    reply = {"choices": [{"message": {"content": content, "tool_calls": called}, "finish_reason": "tool_calls"}]}
    _, answer = against(orjson.dumps(reply))
    assert isinstance(answer, ProviderAnswer) and answer.text == text
    assert stored_answer(answer.raw, answer.stored).text == reply_text(answer.raw, answer.stored) == text
    if "shortened_from_bytes" not in answer.raw:  # a row of before the answer was stored
        assert stored_answer(answer.raw).text == reply_text(answer.raw) == text


def test_what_no_database_can_hold_is_replaced() -> None:
    body = rb'{"choices": [{"message": {"content": "a\u0000b\ud800c"}}], "odd\u0000": [NaN, 1e999, 2.5]}'
    _, answer = against(body)
    assert isinstance(answer, ProviderAnswer) and answer.text == "a\ufffdb\ufffdc"
    assert answer.raw["odd\ufffd"] == ["nan", "inf", 2.5]
    orjson.dumps(answer.raw)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"<html>", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 600 + b"1" + b"}" * 600]
)
def test_a_body_that_is_no_object_is_unavailable(body: bytes) -> None:
    assert isinstance(against(body)[1], ProviderUnavailable)


@pytest.mark.parametrize("headers", ["not a header\r\n", f"x-long: {'x' * 100_000}\r\n", "content-length: many\r\n"])
def test_a_reply_that_is_not_http_is_unavailable_and_may_be_paid(headers: str) -> None:
    outcome = against(b"{}", headers=headers)[1]
    assert isinstance(outcome, ProviderUnavailable)
    assert outcome.maybe_paid and outcome.reason.startswith("No connection")


@pytest.mark.parametrize(
    ("status", "body", "fatal"),
    [
        ("402 Payment Required", b"", True),
        ("400 Bad Request", b'{"error": {"code": "content_filter", "message": "filtered"}}', False),
        ("400 Bad Request", b'{"error": "just text"}', False),
        ("413 Payload Too Large", b"<html>", False),
        ("200 OK", b'{"error": {"code": 401, "message": "who are you"}}', True),
    ],
)
def test_errors_in_any_shape_are_refused(status: str, body: bytes, fatal: bool) -> None:
    _, error = against(body, status=status)
    assert isinstance(error, ProviderRefused) and error.fatal is fatal


def test_an_endpoint_needs_a_web_address() -> None:
    with pytest.raises(ValueError, match="must start with http"):
        Endpoint("x", "file:///etc/passwd")


def test_a_body_without_end_is_read_to_its_limit_and_may_be_paid() -> None:
    _, error = against(b'{"choices": "' + b"x" * (9 * 2**20) + b'"}')
    assert isinstance(error, ProviderUnavailable) and "longer than 8 MB" in error.reason
    assert error.maybe_paid and error.body.startswith('{"choices": "xxx') and len(error.body) == 20_000


def test_a_large_reply_is_kept_shortened_with_its_counts() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    reply = {"choices": [{"message": {"content": "y" * 2**20}, "finish_reason": "stop"}], "usage": usage}
    _, answer = against(orjson.dumps(reply))
    assert isinstance(answer, ProviderAnswer) and (answer.tokens_in, answer.tokens_out) == (3, 4)
    assert len(answer.text) == 200_000 and answer.raw["shortened_from_bytes"] > 2**20


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"detail": "model `x` not found"}', "model `x` not found"),
        (b'{"detail": [{"loc": ["body"], "msg": "no system role"}]}', "no system role"),
        (b"The template has no system role", "The template has no system role"),
    ],
)
def test_other_servers_words_are_kept(body: bytes, words: str) -> None:
    _, error = against(body, status="422 Unprocessable Entity")
    assert isinstance(error, ProviderRefused) and words in error.reason


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "1.5"}, 1.5, 1.5),
        ({"retry-after": formatdate(4_102_444_800, usegmt=True)}, 7 * 86_400, 7 * 86_400),
        ({"retry-after": formatdate(time.time() + DAY, usegmt=True)}, DAY - TESTING, DAY + 1),
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5, 1.5),
        ({"retry-after": "1e20"}, 7 * 86_400, 7 * 86_400),
        ({"retry-after": "-5"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "soon"}, None, None),
    ],
)
def test_the_server_asks_to_wait_in_each_way(
    endpoint: Endpoint, provider: RunningProvider, headers: dict[str, str], least: float | None, most: float | None
) -> None:
    provider.control(limits=headers)
    error = failure(endpoint, "sim-steady:rate_limit")
    provider.control(limits={})
    assert isinstance(error, ProviderUnavailable)
    if least is None or most is None:
        assert error.retry_after is None
    else:
        assert error.retry_after is not None and least <= error.retry_after <= most


def in_a_day() -> str:
    return datetime.fromtimestamp(time.time() + DAY, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("headers", "unit", "remaining", "least", "most"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, "requests", 0, 1, 1),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "2m59.56s"}, "tokens", 12, 179.56, 179.56),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "1d2h"}, "tokens", 12, 93_600, 93_600),
        ({"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "58"}, "tokens", 7, 58, 58),
        (
            {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": in_a_day()},
            *("requests", 0, DAY - TESTING, DAY + 1),
        ),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "900",
                "anthropic-ratelimit-tokens-reset": in_a_day(),
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": in_a_day(),
            },
            *("tokens", 0, DAY - TESTING, DAY + 1),
        ),
        (
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int((time.time() + DAY) * 1000))},
            *("requests", 0, DAY - TESTING, DAY + 1),
        ),
        (
            {"x-ratelimit-remaining": "3", "x-ratelimit-reset": str(int(time.time()) + DAY)},
            *("requests", 3, DAY - TESTING, DAY + 1),
        ),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, "requests", 0, 30, 30),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "9999999999999"}, "requests", 0, 604_800, 604_800),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "2020-01-01T00:00:00Z"}, "requests", 0, 0, 0),
    ],
)  # fmt: skip
def test_what_is_left_is_read_from_the_headers_of_several_providers(
    endpoint: Endpoint, provider: RunningProvider, headers: dict[str, str], unit: str, remaining: int, least: float,
    most: float,
) -> None:  # fmt: skip
    provider.control(limits=headers)
    (answer,) = answers(endpoint, "sim-steady")
    error = failure(endpoint, "sim-steady:rate_limit")
    provider.control(limits={})
    assert isinstance(error, ProviderUnavailable)
    for quotas in (answer.quotas, error.quotas):
        assert [*quotas] == [unit] and quotas[unit].remaining == remaining
        assert least <= quotas[unit].reset <= most


@pytest.mark.parametrize(
    ("remaining", "reset"),
    [("-1", "1s"), ("1e3", "1s"), ("9" * 20, "1s"), ("0", "soon"), ("0", "1s1"), ("0", "9" * 400), ("0", "2026-99-99")],
)
def test_absurd_limits_are_no_limits(endpoint: Endpoint, provider: RunningProvider, remaining: str, reset: str) -> None:
    provider.control(limits={"x-ratelimit-remaining-requests": remaining, "x-ratelimit-reset-requests": reset})
    (answer,) = answers(endpoint, "sim-steady")
    provider.control(limits={})
    assert answer.quotas == {}
