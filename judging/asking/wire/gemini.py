"""Gemini's generateContent (https://ai.google.dev/api/generate-content, v1beta)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import quote

from judging.asking.wire import (
    ErrorWords,
    ModelReply,
    Question,
    WrittenRequest,
    as_count,
    as_logprob,
    complaint_in,
    json_object,
    json_objects,
    most_counted,
)
from judging.probabilities import LoggedToken
from judging.replies import plain_text

_NAMES: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
}
_OWN: Final = frozenset({"thinkingConfig", "mediaResolution"})
_ENDINGS: Final = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"),
        "content_filter",
    ),
}
_SCHEMA_FIELDS: Final = frozenset(
    {"type", "format", "description", "enum", "properties", "required", "items", "anyOf", "minimum", "maximum"}
)
"""Those of `responseSchema` that ours has, a part of OpenAPI's."""
_FATAL: Final = frozenset({"UNAUTHENTICATED", "API_KEY_INVALID"})


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name)


def _form(form: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    if form in (None, "none"):
        return {}
    as_json = {"responseMimeType": "application/json"}
    if form == "json_schema":
        return {**as_json, "responseJsonSchema": dict(schema)}
    return {**as_json, "responseSchema": _openapi(schema)} if form == "response_schema" else as_json


def _openapi(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as `responseSchema` takes it: one type, null apart, and an enumeration of texts only."""
    kept = {name: value for name, value in schema.items() if name in _SCHEMA_FIELDS}
    types = schema.get("type")
    if isinstance(types, list):
        kept |= {"type": next(kind for kind in types if kind != "null"), "nullable": "null" in types}
    values = schema.get("enum")
    if values and not all(isinstance(value, str) for value in values):
        del kept["enum"]
        numbers = [value for value in values if isinstance(value, int | float)]
        kept |= {"minimum": min(numbers), "maximum": max(numbers)} if numbers else {}
    if "properties" in kept:
        kept["properties"] = {name: _openapi(part) for name, part in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = _openapi(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [_openapi(part) for part in kept["anyOf"]]
    return kept


def _usage(counts: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens in and out; thoughts are paid as output and counted apart. A blocked prompt has no output."""
    into, total = as_count(counts.get("promptTokenCount")), as_count(counts.get("totalTokenCount"))
    outputs = [as_count(counts.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    out = sum(count for count in outputs if count is not None) if any(c is not None for c in outputs) else None
    if into is not None and total is not None:
        out = max(out or 0, total - into)
    return into, out


def _logged_tokens(result: Mapping[str, Any]) -> tuple[LoggedToken, ...]:
    chosen, top = json_objects(result.get("chosenCandidates")), json_objects(result.get("topCandidates"))
    return tuple(
        LoggedToken(
            plain_text(token.get("token")),
            as_logprob(token.get("logProbability")),
            tuple(
                (plain_text(other.get("token")), as_logprob(other.get("logProbability")))
                for other in json_objects((others or {}).get("candidates"))
            ),
        )
        for token, others in zip_longest(chosen, top[: len(chosen)])
    )


class GeminiWire:
    """generateContent. See `wire.Wire`."""

    FORMS = ("json_schema", "response_schema", "json_object", "none")
    FORM_WORDS = (
        *("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema"),
        *("responseMimeType", "response_mime_type", "JSON mode"),
    )
    EXTRA_TOKENS = 0

    def headers(self, key: str) -> dict[str, str]:
        """The key; never in the address, which is logged."""
        return {"x-goog-api-key": key}

    def write(self, question: Question) -> WrittenRequest:
        """The request: the model is part of its path, and everything else about the reply is its configuration."""
        model = question.model if question.model.startswith(("models/", "tunedModels/")) else f"models/{question.model}"
        folder, _, name = model.partition("/")
        system = [message["content"] for message in question.messages if message["role"] == "system"]
        body: dict[str, Any] = {
            "contents": [
                {"role": "model" if message["role"] == "assistant" else "user", "parts": [{"text": message["content"]}]}
                for message in question.messages
                if message["role"] != "system"
            ]
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
        config, names, left_out = dict[str, Any](), dict[str, str](), list[str]()
        for parameter, value in question.parameters.items():
            if parameter == "reasoning_effort":
                config["thinkingConfig"] = {"thinkingLevel": value}
                names |= dict.fromkeys(("thinkingLevel", "thinking_level", "thinkingConfig"), parameter)
            elif parameter in _NAMES or parameter in _OWN:
                field = _NAMES.get(parameter, parameter)
                config[field] = [value] if parameter == "stop" and isinstance(value, str) else value
                if parameter == "top_logprobs":  # errors say "Logprobs" of the other, without which it means nothing
                    names[parameter] = parameter
                elif field != "maxOutputTokens":  # every model has this one
                    names |= dict.fromkeys((field, _snake(field), parameter), parameter)
            else:
                left_out.append(parameter)
        config |= _form(question.form, question.schema or {})
        if config:
            body["generationConfig"] = config
        path = f"/{folder}/{quote(name, safe='')}:generateContent"
        return WrittenRequest(path=path, body=body, names=names, left_out=tuple(left_out))

    def holds_reply(self, reply: Mapping[str, Any]) -> bool:
        """Whether it has a candidate, or says why it has none."""
        return bool(reply.get("candidates") or reply.get("promptFeedback"))

    def read(self, reply: Mapping[str, Any]) -> ModelReply:
        """The first candidate; without one, why the prompt was blocked."""
        candidate = next(iter(json_objects(reply.get("candidates"))), {})
        parts = json_objects(json_object(candidate.get("content")).get("parts"))
        text = "".join(plain_text(part.get("text")) for part in parts if part.get("thought") is not True)
        called = json_object(next((part["functionCall"] for part in parts if "functionCall" in part), None)).get("args")
        blocked = plain_text(json_object(reply.get("promptFeedback")).get("blockReason"))
        ending = plain_text(candidate.get("finishReason"))
        finish_reason = "content_filter" if blocked and not candidate else _ENDINGS.get(ending, ending.lower())
        counts = json_object(reply.get("usageMetadata"))
        into, out = _usage(counts)
        refusal = f"blockReason: {blocked}" if blocked and not candidate else ""
        if finish_reason == "content_filter" and not refusal:
            refusal = plain_text(candidate.get("finishMessage")) or f"finishReason: {ending}"
        return ModelReply(
            text=text if text.strip() or not called else json.dumps(called, ensure_ascii=False),
            finish_reason=finish_reason or None,
            refusal=refusal or None,
            reasoning="".join(plain_text(part.get("text")) for part in parts if part.get("thought") is True),
            tokens_in=into,
            tokens_out=out,
            served_model=plain_text(reply.get("modelVersion")),
            request_id=plain_text(reply.get("responseId"))[:200],
            most_counted=most_counted(counts),
            tokens=_logged_tokens(json_object(candidate.get("logprobsResult"))),
        )

    def read_error(self, stated: Any) -> ErrorWords:
        """The status and the message of an error, some of which come in a list; `RetryInfo` says how long to wait."""
        stated = stated[0] if isinstance(stated, list) and stated else stated
        words = json_object(json_object(stated).get("error"))
        details = json_objects(words.get("details"))
        reason = next((plain_text(detail["reason"]) for detail in details if "reason" in detail), "")
        delays = [re.fullmatch(r"(\d{1,7}(?:\.\d{1,9})?)s", plain_text(detail.get("retryDelay"))) for detail in details]
        code = reason if reason in _FATAL else plain_text(words.get("status")) or str(words.get("code") or "")
        return ErrorWords(
            code=code,
            message=complaint_in(words or stated),
            retry_after=next((float(delay[1]) for delay in delays if delay), None),
            is_fatal=code in _FATAL,
        )
