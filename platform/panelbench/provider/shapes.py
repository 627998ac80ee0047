"""The simulated provider in the shapes of Anthropic's Messages API and Gemini's generateContent.

A request is converted to an equivalent chat completion, and the result to the API's own reply or error. Undocumented
parts of a request are refused with the error message of the real API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_ROLES: Final = {"user": "user", "model": "assistant"}
_MESSAGES: Final = frozenset(
    {
        *("model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences", "tools"),
        *("tool_choice", "output_config", "thinking", "metadata", "service_tier", "stream"),
    }
)
_GENERATE: Final = frozenset({"contents", "systemInstruction", "generationConfig", "safetySettings", "tools"})
_CONFIG: Final = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "responseMimeType"),
        *("responseSchema", "responseJsonSchema", "responseLogprobs", "logprobs", "thinkingConfig", "candidateCount"),
        *("presencePenalty", "frequencyPenalty"),
    }
)
_UNSUPPORTED: Final = ("minimum", "maximum", "multipleOf", "minLength", "maxLength")
_CACHED: Final = 3  # tokens of each request that were read from Anthropic's cache, and are counted apart
_ANTHROPIC_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GEMINI_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_ANTHROPIC_WORDS: Final = {
    "no_schema": "output_config.format: this model does not support structured outputs.",
    "no_format": "output_config.format: this model does not support structured outputs.",
    "no_temperature": "`temperature` is deprecated for this model.",
    "quota": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    "unauthorized": "invalid x-api-key",
}
_GEMINI_WORDS: Final = {
    "no_schema": "Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.",
    "no_format": "JSON mode is not enabled for models/gemma-3-27b-it",
    "no_system": "Developer instruction is not enabled for models/gemma-3-27b-it",
    "no_logprobs": "Logprobs is not enabled for models/gemini-2.0-flash",
    "no_seed": "Invalid JSON payload received. Unknown name \"seed\" at 'generation_config': Cannot find field.",
    "unauthorized": "API key not valid. Please pass a valid API key.",
}


class MalformedRequest(Exception):
    """The API's error message for a request that it refuses."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An API: converts its requests to chat completions, and the results to its own replies and errors."""

    key_header: str
    asked: Callable[[str, Mapping[str, str], Mapping[str, Any]], dict[str, Any]]
    replied: Callable[[Mapping[str, Any]], dict[str, Any]]
    refused: Callable[[int, str, str, str], tuple[int, dict[str, Any], dict[str, str]]]
    """Status, kind of misbehaviour, message and seconds to wait: the status, the body and headers."""


def shape_of(path: str) -> Shape | None:
    """The API that has this path; None for chat completions."""
    if path == "/v1/messages":
        return ANTHROPIC
    return GEMINI if path.startswith("/v1beta/") and path.endswith(":generateContent") else None


# --- Anthropic --------------------------------------------------------------------------------------------------------


def _messages_asked(_path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    if not headers.get("anthropic-version"):
        raise MalformedRequest("anthropic-version: header is required")
    if unknown := [name for name in body if name not in _MESSAGES]:
        raise MalformedRequest(f"{unknown[0]}: Extra inputs are not permitted")
    if "max_tokens" not in body:
        raise MalformedRequest("max_tokens: Field required")
    roles = [message["role"] for message in body["messages"]]
    if not {*roles} <= {"user", "assistant"}:
        raise MalformedRequest(f'messages: Unexpected role "{roles[0]}". Use the top-level `system` parameter.')
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    asked: dict[str, Any] = {"model": body["model"], "messages": [*system, *body["messages"]]}
    asked |= {name: body[name] for name in ("max_tokens", "temperature", "top_p") if name in body}
    if form := (body.get("output_config") or {}).get("format"):
        text = json.dumps(form["schema"])
        if unsupported := [name for name in _UNSUPPORTED if f'"{name}":' in text]:
            words = f"output_config.format.schema: property '{unsupported[0]}' is not supported"
            raise MalformedRequest(words)
        asked["response_format"] = {"type": "json_schema", "json_schema": {"schema": form["schema"]}}
    if tools := body.get("tools"):
        function = {"name": tools[0]["name"], "parameters": tools[0]["input_schema"]}
        asked["tools"] = [{"type": "function", "function": function}]
    return asked


def _message(completion: Mapping[str, Any]) -> dict[str, Any]:
    choice, usage = completion["choices"][0], completion.get("usage")
    message, ending = choice["message"], choice["finish_reason"]
    content: list[dict[str, Any]] = []
    if thought := message.get("reasoning_content"):
        content.append({"type": "thinking", "thinking": thought, "signature": "simulated"})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        block = {"type": "tool_use", "id": "toolu_simulated", "name": function["name"]}
        content.append({**block, "input": json.loads(function["arguments"])})
    if message.get("content"):
        content.append({"type": "text", "text": message["content"]})
    refused = bool(message.get("refusal")) or ending == "content_filter"
    endings = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    fields: dict[str, Any] = {
        "id": completion["id"].replace("chatcmpl", "msg"),
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": content,
        "stop_reason": "refusal" if refused else endings[ending],
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": message.get("refusal")}
        if refused
        else None,
    }
    if usage:
        into = {"input_tokens": usage["prompt_tokens"] - _CACHED, "cache_read_input_tokens": _CACHED}
        out = {"cache_creation_input_tokens": 0, "output_tokens": usage["completion_tokens"]}
        fields["usage"] = {**into, **out, "service_tier": "standard"}
    return fields


def _anthropic_error(status: int, kind: str, message: str, wait: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    status = {"quota": 400, "overloaded": 529}.get(kind, 400 if status == 422 else status)
    words = {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": _ANTHROPIC_WORDS.get(kind, message)}
    headers = {"retry-after": wait} if status == 429 else {}
    return status, {"type": "error", "error": words, "request_id": "req_simulated"}, headers


ANTHROPIC: Final = Shape("x-api-key", _messages_asked, _message, _anthropic_error)


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _contents_asked(path: str, _headers: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    config = body.get("generationConfig") or {}
    for fields, known, place in ((body, _GENERATE, ""), (config, _CONFIG, " at 'generation_config'")):
        if unknown := [name for name in fields if name not in known]:
            raise MalformedRequest(
                f'Invalid JSON payload received. Unknown name "{unknown[0]}"{place}: Cannot find field.'
            )
    system = [
        {"role": "system", "content": part["text"]} for part in body.get("systemInstruction", {}).get("parts", ())
    ]
    turns = [
        {"role": _ROLES[content["role"]], "content": "".join(part["text"] for part in content["parts"])}
        for content in body["contents"]
    ]
    model = path.removesuffix(":generateContent").rpartition("models/")[2].replace("%3A", ":")
    asked: dict[str, Any] = {"model": model, "messages": [*system, *turns]}
    names = {"temperature": "temperature", "maxOutputTokens": "max_tokens", "seed": "seed", "topP": "top_p"}
    names |= {"responseLogprobs": "logprobs", "logprobs": "top_logprobs"}
    asked |= {names[name]: config[name] for name in names if name in config}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if "responseSchema" in config and (fault := _openapi_fault(config["responseSchema"])):
        raise MalformedRequest(fault)
    if schema and "responseJsonSchema" in config:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    elif config.get("responseMimeType") == "application/json":
        asked["response_format"] = {"type": "json_object"}
    return asked


def _openapi_fault(schema: Mapping[str, Any]) -> str:
    """The fault of a schema that `responseSchema` refuses: an enumeration has only texts, one type, no other fields."""
    if "additionalProperties" in schema:
        return 'Invalid JSON payload received. Unknown name "additionalProperties": Cannot find field.'
    if not all(isinstance(value, str) for value in schema.get("enum", ())):
        return "Invalid value at 'generation_config.response_schema.enum[0]' (TYPE_STRING)"
    if not isinstance(schema.get("type", ""), str):
        return "Invalid value at 'generation_config.response_schema.type'"
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    parts += [schema["items"]] if "items" in schema else []
    return next(filter(None, map(_openapi_fault, parts)), "")


def _candidate(completion: Mapping[str, Any]) -> dict[str, Any]:
    choice, usage = completion["choices"][0], completion.get("usage")
    message, ending = choice["message"], choice["finish_reason"]
    fields: dict[str, Any] = {"modelVersion": completion["model"], "responseId": completion["id"]}
    if ending == "content_filter":
        fields["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        if usage:
            fields["usageMetadata"] = {
                "promptTokenCount": usage["prompt_tokens"],
                "totalTokenCount": usage["prompt_tokens"],
            }
        return fields
    parts = [{"text": message["reasoning_content"], "thought": True}] if message.get("reasoning_content") else []
    parts += [{"text": message["content"]}] if message.get("content") else []
    candidate: dict[str, Any] = {
        "index": 0,
        "finishReason": {"stop": "STOP", "length": "MAX_TOKENS"}.get(ending, "OTHER"),
    }
    if message.get("refusal"):
        candidate |= {"finishReason": "SAFETY", "safetyRatings": []}
    else:
        candidate["content"] = {"role": "model", "parts": parts}
    if logged := (choice.get("logprobs") or {}).get("content"):
        candidate["logprobsResult"] = {
            "chosenCandidates": [_token(token) for token in logged],
            "topCandidates": [{"candidates": [_token(other) for other in token["top_logprobs"]]} for token in logged],
        }
    fields["candidates"] = [candidate]
    if usage:
        thoughts = len((message.get("reasoning_content") or "").encode()) // 4
        counts = {"promptTokenCount": usage["prompt_tokens"], "totalTokenCount": usage["total_tokens"]}
        counts["candidatesTokenCount"] = usage["completion_tokens"] - thoughts
        fields["usageMetadata"] = {**counts, **({"thoughtsTokenCount": thoughts} if thoughts else {})}
    return fields


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": token["token"], "tokenId": 7, "logProbability": token["logprob"]}


def _gemini_error(status: int, kind: str, message: str, wait: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    status = {"unauthorized": 400, "overloaded": 503}.get(kind, 400 if status == 422 else status)
    words: dict[str, Any] = {"code": status, "message": _GEMINI_WORDS.get(kind, message)}
    words["status"] = _GEMINI_STATUSES.get(status, "INTERNAL")
    if kind == "unauthorized":
        reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        words["details"] = [{**reason, "domain": "googleapis.com"}]
    if status == 429:
        words["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait}s"}]
    return status, {"error": words}, {}


GEMINI: Final = Shape("x-goog-api-key", _contents_asked, _candidate, _gemini_error)
