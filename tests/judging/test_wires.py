"""Anthropic's and Gemini's own APIs, and local servers: requests, replies, errors, limits and money as documented.

The simulated provider speaks the shapes of both (`panelbench.provider.shapes`), and refuses what they do not document.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import User
from judging import judges, providers, runs
from judging.asking.bills import bill_reply
from judging.asking.client import (
    Endpoint,
    ProviderAnswer,
    ProviderRefused,
    ProviderUnavailable,
    ask,
    connect,
    written_request,
)
from judging.asking.declarations import API_NAMES, read_declaration
from judging.asking.paid_requests import paid_request
from judging.asking.refused_parts import refused_part
from judging.asking.wire import Question, read_stored, wire_of
from judging.models import Attempt, ModelCapability, ProviderTest, StoredProvider, Verdict
from judging.prompts import PromptVariant, render, repair_turn, response_schema
from judging.replies import parse, reply_text
from panelbench import environment
from tests import make
from tests.cast import Cast
from tests.judging.briefs import DIALOGUE, EMPATHY, GRAMMAR
from tests.judging.test_client import against
from tests.judging.test_runs import worked
from tests.provider_server import RunningProvider, running_provider

CRITERIA = [GRAMMAR, EMPATHY]
VARIANT = PromptVariant()
MESSAGES = render(item=DIALOGUE, criteria=CRITERIA, variant=VARIANT)
SCHEMA = response_schema(CRITERIA, VARIANT)
KEY = "sk-ant-verysecret0123456789"  # not a secret
OWN_APIS = ["anthropic", "gemini"]
FOLDERS = {"openai": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(server: RunningProvider, monkeypatch: pytest.MonkeyPatch) -> RunningProvider:
    server.control(reset=True, latency=0.0, slowness=10.0, rates={}, required_key="", limits={}, retry_after="1")
    monkeypatch.setenv("BENCH_KEY", KEY)
    return server


def at(provider: RunningProvider, api: str) -> Endpoint:
    return Endpoint("sim", provider.root + FOLDERS[api], "BENCH_KEY", api=api)


def answers(endpoint: Endpoint, *models: str, **parameters: Any) -> list[ProviderAnswer]:
    async def scenario() -> list[ProviderAnswer]:
        about = {"messages": MESSAGES, "schema": SCHEMA, "timeout": 5}
        async with connect(endpoint) as connection:
            return [await ask(connection, model=model, parameters=parameters, **about) for model in models]

    return asyncio.run(scenario())


def failure(endpoint: Endpoint, model: str) -> ProviderUnavailable | ProviderRefused:
    with pytest.raises((ProviderUnavailable, ProviderRefused)) as caught:
        answers(endpoint, model)
    assert isinstance(caught.value, ProviderUnavailable | ProviderRefused)
    return caught.value


def statuses(answer: ProviderAnswer) -> list[str]:
    readings = parse(
        answer.readable,
        criteria=CRITERIA,
        variant=VARIANT,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    return [reading.status for reading in readings]


# --- replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", API_NAMES)
def test_a_reply_is_stored_in_our_form_whatever_the_api(provider: RunningProvider, api: str) -> None:
    provider.control(required_key=KEY)
    (answer,) = answers(at(provider, api), "sim-steady", temperature=0.0, max_tokens=500)
    (as_openai,) = answers(at(provider, "openai"), "sim-steady", temperature=0.0, max_tokens=500)
    assert statuses(answer) == ["ok", "ok"]
    assert json.loads(answer.text).keys() == {"grammar", "empathy"}
    assert (answer.finish_reason, answer.refusal, answer.reasoning) == ("stop", None, "")
    assert (answer.tokens_in, answer.served_model) == (as_openai.tokens_in, "sim-steady-2026-01")
    assert answer.tokens_out and answer.request_id and answer.dropped == ()
    stored = json.loads(json.dumps(answer.stored))
    assert read_stored(stored).stored == answer.stored
    assert reply_text(answer.raw, stored) == answer.text


@pytest.mark.parametrize("api", API_NAMES)
def test_a_refusal_a_filter_a_cut_and_misplaced_reasoning_are_answers(provider: RunningProvider, api: str) -> None:
    kinds = ("refusal", "content_filter", "truncated", "empty")
    refused, filtered, cut, thought = answers(at(provider, api), *(f"sim-broken:{kind}" for kind in kinds))
    assert refused.refusal and statuses(refused) == statuses(filtered) == ["refused", "refused"]
    assert filtered.finish_reason == "content_filter"
    assert cut.finish_reason == "length" and set(statuses(cut)) <= {"truncated", "ok"}
    assert thought.text == "" and thought.readable == thought.reasoning and statuses(thought) == ["ok", "ok"]
    assert filtered.tokens_in and filtered.tokens_out is not None


def test_probabilities_of_gemini_are_read_as_openai_s(provider: RunningProvider) -> None:
    asked = {"logprobs": True, "top_logprobs": 3}
    ours, theirs = (answers(at(provider, api), "sim-steady", **asked)[0] for api in ("openai", "gemini"))
    assert ours.tokens and [token.token for token in ours.tokens] == [token.token for token in theirs.tokens]
    (scored,) = [token for token in theirs.tokens if token.others[0][0].isdecimal()][:1]
    assert scored.logprob == pytest.approx(math.log(0.6)) and len(scored.others) == 3


def test_parameters_that_an_api_has_not_are_left_out_and_named(provider: RunningProvider) -> None:
    asked = {"temperature": 0.5, "seed": 3, "logprobs": True, "max_completion_tokens": 300, "own": 1}
    (anthropic,) = answers(at(provider, "anthropic"), "sim-steady", **asked)
    assert anthropic.dropped == ("seed", "logprobs", "own") and statuses(anthropic) == ["ok", "ok"]
    (gemini,) = answers(at(provider, "gemini"), "sim-steady", **asked)
    assert gemini.dropped == ("own",) and statuses(gemini) == ["ok", "ok"]


@pytest.mark.parametrize("api", OWN_APIS)
def test_a_limit_on_the_reply_is_kept_by_whatever_name(provider: RunningProvider, api: str) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        (answer,) = answers(at(provider, api), "sim-steady", **{name: 5})
        assert (answer.finish_reason, answer.tokens_out) == ("length", 5)


# --- requests ---------------------------------------------------------------------------------------------------------


def written(api: str, form: str, messages: Any = MESSAGES, **parameters: Any) -> Any:
    asked = Question(model="m", messages=messages, parameters=parameters, schema=SCHEMA, form=form)
    return wire_of(api).write(asked)


def test_the_system_message_stands_apart_and_turns_keep_their_order() -> None:
    turns = repair_turn(MESSAGES, "¿Qué?", VARIANT)
    system, user, said, again = (message["content"] for message in turns)
    anthropic = written("anthropic", "none", turns).body
    assert anthropic["system"] == system
    assert [(turn["role"], turn["content"]) for turn in anthropic["messages"]] == [
        ("user", user),
        ("assistant", said),
        ("user", again),
    ]
    gemini = written("gemini", "none", turns).body
    assert gemini["systemInstruction"] == {"parts": [{"text": system}]}
    assert [(turn["role"], turn["parts"][0]["text"]) for turn in gemini["contents"]] == [
        ("user", user),
        ("model", said),
        ("user", again),
    ]


def test_forms_of_a_reply_are_asked_for_as_documented() -> None:
    schema = written("anthropic", "json_schema").body["output_config"]["format"]
    assert schema["type"] == "json_schema" and schema["schema"]["properties"].keys() == {"grammar", "empathy"}
    assert '"minimum"' not in json.dumps(schema)
    tool = written("anthropic", "tool_call").body
    assert tool["tools"][0]["input_schema"] == SCHEMA and tool["tool_choice"] == {"type": "tool", "name": "verdicts"}
    config = written("gemini", "json_schema").body["generationConfig"]
    assert config == {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    config = written("gemini", "response_schema").body["generationConfig"]
    assert "additionalProperties" not in json.dumps(config["responseSchema"])


def test_a_model_of_any_name_asks_below_its_own_path() -> None:
    """A researcher writes the name of the model: it leads nowhere else with the key."""
    for model, path in [
        ("gemini-2.5-flash", "/models/gemini-2.5-flash:generateContent"),
        ("tunedModels/kõne", "/tunedModels/k%C3%B5ne:generateContent"),
        ("../../v1/files?x=", "/models/..%2F..%2Fv1%2Ffiles%3Fx%3D:generateContent"),
    ]:
        asked = Question(model=model, messages=MESSAGES, parameters={})
        assert wire_of("gemini").write(asked).path == path


@pytest.mark.parametrize(
    ("api", "kind", "dropped"),
    [
        ("anthropic", "no_schema", ("json_schema",)),
        ("anthropic", "no_temperature", ("temperature",)),
        ("gemini", "no_schema", ("json_schema",)),
        ("gemini", "no_format", ("json_schema", "response_schema", "json_object")),
        ("gemini", "no_system", ("system_role",)),
        ("gemini", "no_seed", ("seed",)),
        ("gemini", "no_logprobs", ("logprobs", "top_logprobs")),
    ],
)
def test_what_a_model_refuses_is_learnt_in_the_words_of_its_api(
    provider: RunningProvider, api: str, kind: str, dropped: tuple[str, ...]
) -> None:
    needed = {"no_temperature": {"temperature": 0.1}, "no_seed": {"seed": 1}}
    asked: dict[str, Any] = needed.get(kind, {"logprobs": True, "top_logprobs": 2} if kind == "no_logprobs" else {})
    first, second = answers(at(provider, api), *[f"sim-steady:{kind}"] * 2, **asked)
    assert first.dropped == second.dropped == dropped
    assert statuses(second) == ["ok", "ok"]
    refusals = 1 if len(dropped) == 1 or kind == "no_logprobs" else len(dropped)
    assert provider.control()["statuses"] == {"400": refusals, "200": 2}


# --- errors, limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "kind", "reason", "retry_after"),
    [
        ("anthropic", "rate_limit", "429 rate_limit_error", 7.0),
        ("anthropic", "overloaded", "529 overloaded_error", None),
        ("anthropic", "server_error", "500 api_error", None),
        ("anthropic", "error_in_reply", "503", None),
        ("gemini", "rate_limit", "429 RESOURCE_EXHAUSTED", 7.0),  # by RetryInfo: it sends no header
        ("gemini", "overloaded", "503 UNAVAILABLE", None),
        ("gemini", "server_error", "500 INTERNAL", None),
        ("gemini", "not_json", "not a JSON object", None),
    ],
)
def test_what_may_pass_is_unavailable(
    provider: RunningProvider, api: str, kind: str, reason: str, retry_after: float | None
) -> None:
    provider.control(retry_after="7")
    error = failure(at(provider, api), f"sim-steady:{kind}")
    assert isinstance(error, ProviderUnavailable)
    assert reason in error.reason and error.retry_after == retry_after
    assert provider.control()["requests"] == 1


@pytest.mark.parametrize(
    ("api", "kind", "status"),
    [("anthropic", "unauthorized", 401), ("anthropic", "quota", 400), ("gemini", "unauthorized", 400)],
)
def test_no_money_and_a_wrong_key_stop_the_run(provider: RunningProvider, api: str, kind: str, status: int) -> None:
    error = failure(at(provider, api), f"sim-steady:{kind}")
    assert isinstance(error, ProviderRefused) and error.fatal and error.status == status
    assert KEY not in error.reason


def test_what_anthropic_says_of_its_limits_is_heeded(provider: RunningProvider) -> None:
    limits = {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z",
        "anthropic-ratelimit-input-tokens-remaining": "5000",
        "anthropic-ratelimit-input-tokens-reset": "2030-01-01T00:00:00Z",
        "anthropic-ratelimit-output-tokens-remaining": "800",
        "anthropic-ratelimit-output-tokens-reset": "2030-01-01T00:00:00Z",
    }
    provider.control(limits=limits)
    (answer,) = answers(at(provider, "anthropic"), "sim-steady")
    assert {unit: quota.remaining for unit, quota in answer.quotas.items()} == {"requests": 49, "tokens": 800}


@pytest.mark.parametrize("api", OWN_APIS)
@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"content": None, "candidates": None},
        {"content": [None, "x", {"type": "text", "text": 7}], "usage": [], "model": 3, "stop_reason": 5},
        {"candidates": [{"content": {"parts": [None, {"text": {}}]}, "finishReason": 3}], "usageMetadata": "many"},
        {"candidates": [{"content": "x", "logprobsResult": {"chosenCandidates": [{}], "topCandidates": [{}, 4]}}]},
        {"promptFeedback": 3, "candidates": ["x"], "stop_details": 4, "content": [{"type": "tool_use", "input": 3}]},
    ],
)
def test_whatever_a_reply_leaves_out_is_missing(api: str, reply: dict[str, Any]) -> None:
    read = wire_of(api).read(reply)
    assert (read.text, read.tokens_in, read.tokens_out) == ("", None, None)
    assert read_stored(read.stored) == read
    for stated in ("", [], [3], {"error": None}, {"error": {"details": 3, "message": {}}}, reply):
        assert isinstance(wire_of(api).read_error(stated).message, str)


# --- local servers ----------------------------------------------------------------------------------------------------


LOCAL = {
    # vLLM: no `refusal`, empty tool_calls, its own fields; the model as it was served.
    "vllm": {
        "id": "chatcmpl-1",
        "model": "Qwen/Qwen3-8B",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": '{"grammar": 1}', "tool_calls": [], "reasoning": None},
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": None},
        "prompt_logprobs": None,
        "kv_transfer_params": None,
    },
    # Ollama repeats the name that was asked for, with its tag, and puts thoughts into `reasoning`.
    "ollama": {
        "id": "chatcmpl-2",
        "model": "qwen3:latest",
        "system_fingerprint": "fp_ollama",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": '{"grammar": 1}', "reasoning": "Hm."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    },
    # llama.cpp names the file, or OpenAI's model where none was given; older ones count nothing.
    "llama.cpp": {
        "choices": [
            {"finish_reason": "stop", "index": 0, "message": {"content": '{"grammar": 1}', "role": "assistant"}}
        ],
        "created": 1,
        "id": "chatcmpl-3",
        "model": "/models/qwen3-8b-q4_k_m.gguf",
        "object": "chat.completion",
        "timings": {"prompt_n": 9, "predicted_n": 3},
    },
}


@pytest.mark.parametrize(
    ("usage", "as_billed"),
    [
        ({"input_tokens": 400}, 400),
        # Reading costs a tenth: booked at the price, so that no declared cap is passed where a gateway bills it whole.
        ({"input_tokens": 100, "cache_read_input_tokens": 300}, 400),
        # Writing costs 1.25 times the price for five minutes, and 2 times for an hour.
        ({"input_tokens": 100, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 100}, 450),
        (
            {"input_tokens": 100, "cache_creation_input_tokens": 301}
            | {"cache_creation": {"ephemeral_5m_input_tokens": 101, "ephemeral_1h_input_tokens": 200}},
            100 + 127 + 400,
        ),
        ({"input_tokens": 400, "cache_creation_input_tokens": "many", "cache_creation": []}, 400),
    ],
)
def test_what_anthropic_writes_to_its_cache_is_booked_at_what_it_costs(usage: dict[str, Any], as_billed: int) -> None:
    price = (Decimal(3), Decimal(15))
    message = {"type": "message", "model": "claude-x", "content": [{"type": "text", "text": '{"grammar": 1}'}]}
    answer = wire_of("anthropic").read({**message, "usage": {**usage, "output_tokens": 20}})
    sent: dict[str, Any] = {
        "provider": "claude",
        "model": "claude-x",
        "messages": [{"role": "user", "content": "Rate."}],
    }
    request = paid_request(
        **sent, schema=SCHEMA, parameters={"max_tokens": 50}, price=price, prices={"claude-x": price}, api="anthropic"
    )
    bill = bill_reply(request, answer)
    assert (bill.cost, bill.doubt) == ((3 * as_billed + 15 * 20) / Decimal(1_000_000), "")
    assert bill.tokens_in == sum(count for count in usage.values() if isinstance(count, int))
    assert read_stored(answer.stored) == answer


@pytest.mark.parametrize(("name", "counted"), [("vllm", (9, 3)), ("ollama", (9, 3)), ("llama.cpp", (None, None))])
def test_replies_of_local_servers_are_read(name: str, counted: tuple[int | None, int | None]) -> None:
    _, answer = against(json.dumps(LOCAL[name]).encode())
    assert isinstance(answer, ProviderAnswer) and answer.text == '{"grammar": 1}'
    assert (answer.tokens_in, answer.tokens_out) == counted
    assert (answer.finish_reason, answer.refusal, answer.tokens) == ("stop", None, ())
    assert answer.served_model == LOCAL[name]["model"]


@pytest.mark.parametrize(
    ("status", "body", "dropped"),
    [
        # vLLM of before 0.6: FastAPI's validation, by `loc`, and the words of its enumeration
        (
            "400 Bad Request",
            {
                "object": "error",
                "message": "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input "
                "should be 'text' or 'json_object'\"}]",
                "type": "BadRequestError",
                "code": 400,
            },
            "json_schema",
        ),
        # llama.cpp: a schema that its grammars can't express
        (
            "400 Bad Request",
            {"error": {"code": 400, "message": "failed to parse grammar", "type": "invalid_request_error"}},
            None,
        ),
        (
            "500 Internal Server Error",
            {"error": {"message": "json schema conversion failed", "code": 500}},
            "json_schema",
        ),
        # Ollama: a model without tools, and one that is not there
        ("404 Not Found", {"error": {"message": 'model "qwen9" not found, try pulling it first'}}, None),
    ],
)
def test_errors_of_local_servers_name_what_is_refused(status: str, body: dict[str, Any], dropped: str | None) -> None:
    """The server gives this error to every request: what was found out of the first is seen in what is sent next."""
    _, outcome = against(json.dumps(body).encode(), status=status)
    assert isinstance(outcome, ProviderRefused | ProviderUnavailable)
    words = wire_of("openai").read_error(body)
    asked = Question(model="m", messages=MESSAGES, parameters={}, schema=SCHEMA)
    sent = written_request(wire_of("openai"), asked, []).sent
    assert refused_part(status=int(status[:3]), stated=body, message=words.message, sent=sent) == dropped


# --- an operator declares them, judges are asked ----------------------------------------------------------------------


@pytest.fixture
def operator(cast: Cast) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ops@panelbench.test", "correct horse battery", name="Ops"))
    return client


def test_a_declaration_says_which_api_it_has() -> None:
    entry = {"name": "claude", "base_url": "https://api.anthropic.com/v1", "api": "anthropic"}
    assert read_declaration(entry).api == "anthropic"
    for wrong, words in (({"api": "soap"}, "api of claude must be"), ({"batches": True}, "only OpenAI's API")):
        with pytest.raises(ValueError, match=words):
            read_declaration(entry | wrong)


@pytest.mark.django_db(transaction=True)
def test_page_api_and_command_declare_an_api_and_test_it(operator: Client, provider: RunningProvider) -> None:
    settings = {"name": "claude", "base_url": f"{provider.root}/v1", "api": "anthropic", "models": "sim-steady 3 15"}
    assert operator.post("/providers/", settings).status_code == 302
    body = {"name": "gemini", "base_url": f"{provider.root}/v1beta", "api": "gemini", "models": ["sim-steady"]}
    made = operator.post("/api/v1/providers/", body, content_type="application/json")
    assert (made.status_code, made.json()["api"]) == (201, "gemini")
    call_command("providers", "add", "third", f"{provider.root}/v1", "--api", "anthropic", "--model", "sim-steady 1 1")
    assert dict(StoredProvider.objects.values_list("name", "api")) == {
        "claude": "anthropic",
        "gemini": "gemini",
        "third": "anthropic",
    }
    for name in ("claude", "gemini"):
        test = providers.begin_test(name=name, model="sim-steady:no_schema")
        providers.carry_out_test(test.pk)
        result = ProviderTest.objects.get(pk=test.pk).result
        assert (result["read"], result["refused"]) == ("ok", ["json_schema"])
        assert result["form"] == {"claude": "tool_call", "gemini": "response_schema"}[name]
        assert "JSON by a schema" in operator.get(f"/providers/{name}/").content.decode() or name == "claude"
    batches = operator.patch("/api/v1/providers/gemini/", {"batches": True}, content_type="application/json")
    assert batches.status_code == 422 and "asked in batches" in str(batches.json())
    assert not StoredProvider.objects.get(name="gemini").batches


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
@pytest.mark.parametrize("api", OWN_APIS)
def test_a_run_is_judged_and_booked_to_the_token(
    cast: Cast, provider: RunningProvider, settings: Any, api: str
) -> None:
    """Through HTTP of its own API, under a cap: verdicts as OpenAI's shape gives them, and money by its own count."""
    entries = [
        {"name": f"sim {shape}", "base_url": provider.root + FOLDERS[shape], "simulated": True, "api": shape}
        | {"prices": {"sim-steady": ["3", "15"]}}
        for shape in ("openai", api)
    ]
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps(entries)})
    material = {"dataset": make.dataset(cast.kassa, 6), "rubric_version": make.rubric(cast.kassa)}
    scores = {}
    for shape in ("openai", api):
        provider.control(reset=True)
        named = {"name": f"Kohtunik “{shape}”", "provider": f"sim {shape}", "model": "sim-steady"}
        judge = judges.declare(project=cast.kassa, **named, parameters={"max_tokens": 300})
        run = runs.start_judge_run(judge=judge, **material, budget=Decimal(2))
        worked(run)
        counts = provider.control()
        attempts = Attempt.objects.filter(call__run=run)
        assert counts["requests"] == attempts.count() == counts["answered"]
        due = (3 * counts["tokens_in"] + 15 * counts["tokens_out"]) / Decimal(1_000_000)
        assert sum(attempt.cost or 0 for attempt in attempts) == due
        assert not attempts.exclude(doubt="").exists() and not attempts.filter(answer=None).exists()
        verdicts = Verdict.objects.filter(run=run, status="ok")
        scores[shape] = dict(verdicts.values_list("item__external_id", "score").order_by("criterion__position"))
        assert reply_text(attempts[0].reply, attempts[0].answer)
    assert scores["openai"] == scores[api] and len(scores[api]) == 6
    assert not ModelCapability.objects.filter(provider=f"sim {api}").exists()
