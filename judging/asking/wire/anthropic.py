"""Anthropic's Messages API (https://docs.claude.com/en/api/messages, version 2023-06-01)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from judging.asking.wire import (
    ErrorWords,
    ModelReply,
    Question,
    WrittenRequest,
    as_count,
    complaint_in,
    json_object,
    json_objects,
    most_counted,
)
from judging.replies import VERDICTS_TOOL, plain_text

DEFAULT_TOKENS: Final = 4_096
"""The API takes no request without a limit on the reply."""
_VERSION: Final = "2023-06-01"
_NAMES: Final = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop": "stop_sequences"}
_OWN: Final = frozenset({"thinking", "metadata", "service_tier"})
_ENDINGS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}
_UNCHECKED: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"}
)
"""Constraints that the API refuses in the schema of a reply; they are checked when the reply is read."""
_OUT_OF_MONEY: Final = re.compile(r"credit balance is too low", re.IGNORECASE)
_FATAL: Final = frozenset({"authentication_error", "billing_error"})


def _plain_schema(schema: Any) -> Any:
    """The schema without the constraints that the API refuses; properties may have their names."""
    if isinstance(schema, list):
        return [_plain_schema(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: {key: _plain_schema(part) for key, part in value.items()}
        if name == "properties"
        else _plain_schema(value)
        for name, value in schema.items()
        if name not in _UNCHECKED
    }


_CACHED: Final = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""Tokens of the request that `input_tokens` leaves out."""


def _surcharge(counts: Mapping[str, Any]) -> int | None:
    """What writing to the cache costs beyond the price, in tokens: a quarter more for five minutes, twice for an hour
    (https://docs.claude.com/en/docs/build-with-claude/prompt-caching). Reading costs less, and is booked at the price.
    """
    written = as_count(counts.get(_CACHED[0])) or 0
    for_an_hour = as_count(json_object(counts.get("cache_creation")).get("ephemeral_1h_input_tokens")) or 0
    return -(-max(written - for_an_hour, 0) // 4) + for_an_hour or None


class AnthropicWire:
    """The Messages API. See `wire.Wire`."""

    FORMS = ("json_schema", "tool_call", "none")
    FORM_WORDS = ("output_config", "output_format", "json_schema", "structured output")
    EXTRA_TOKENS = 1_000
    """A tool's system prompt has 313 to 530 tokens by the documentation; a schema's has none that is published."""

    def headers(self, key: str) -> dict[str, str]:
        """The key, and the version of the API."""
        return {"x-api-key": key, "anthropic-version": _VERSION}

    def write(self, question: Question) -> WrittenRequest:
        """The request: the system message stands apart, and the reply always has a limit."""
        given = dict(question.parameters)
        limits = [given.pop(name) for name in ("max_completion_tokens", "max_tokens") if name in given]
        body: dict[str, Any] = {"model": question.model, "max_tokens": min(limits) if limits else DEFAULT_TOKENS}
        system = [message["content"] for message in question.messages if message["role"] == "system"]
        body["messages"] = [dict(message) for message in question.messages if message["role"] != "system"]
        if system:
            body["system"] = "\n\n".join(system)
        config: dict[str, Any] = {}
        names, left_out = dict[str, str](), list[str]()
        for name, value in given.items():
            if name == "reasoning_effort":
                config["effort"], names["effort"] = value, name
            elif name in _NAMES or name in _OWN:
                field = _NAMES.get(name, name)
                body[field], names[field] = [value] if name == "stop" and isinstance(value, str) else value, name
            else:
                left_out.append(name)
        if question.form == "json_schema":
            config["format"] = {"type": "json_schema", "schema": _plain_schema(question.schema or {})}
        elif question.form == "tool_call":
            tool = {"name": VERDICTS_TOOL, "description": "The verdicts on the material."}
            body["tools"] = [{**tool, "input_schema": dict(question.schema or {})}]
            body["tool_choice"] = {"type": "tool", "name": VERDICTS_TOOL}
        if config:
            body["output_config"] = config
        return WrittenRequest(path="/messages", body=body, names=names, left_out=tuple(left_out))

    def holds_reply(self, reply: Mapping[str, Any]) -> bool:
        """Whether it is a message."""
        return reply.get("type") != "error" and isinstance(reply.get("content"), list)

    def read(self, reply: Mapping[str, Any]) -> ModelReply:
        """What a message calls our tool with, else its texts, else what it calls another tool with."""
        blocks = json_objects(reply.get("content"))
        text = "".join(plain_text(block.get("text")) for block in blocks if block.get("type") == "text")
        tool = next((block for block in blocks if block.get("type") == "tool_use"), {})
        called = json.dumps(tool["input"], ensure_ascii=False) if json_object(tool.get("input")) else ""
        ending, details = plain_text(reply.get("stop_reason")), json_object(reply.get("stop_details"))
        counts = json_object(reply.get("usage"))
        into = [as_count(counts.get(name)) for name in ("input_tokens", *_CACHED)]
        refusal = (plain_text(details.get("explanation")) or text) if ending == "refusal" else ""
        return ModelReply(
            text=called if called and (tool.get("name") == VERDICTS_TOOL or not text.strip()) else text,
            finish_reason=_ENDINGS.get(ending, ending) or None,
            refusal=refusal or None,
            reasoning="".join(plain_text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"),
            tokens_in=None if into[0] is None else sum(count or 0 for count in into),
            tokens_out=as_count(counts.get("output_tokens")),
            surcharge=_surcharge(counts),
            served_model=plain_text(reply.get("model")),
            request_id=plain_text(reply.get("id"))[:200],
            most_counted=most_counted(counts),
        )

    def read_error(self, stated: Any) -> ErrorWords:
        """The type and the message of an error; an empty account answers 400."""
        words = json_object(json_object(stated).get("error"))
        code, message = plain_text(words.get("type")), complaint_in(words or stated)
        return ErrorWords(code=code, message=message, is_fatal=code in _FATAL or bool(_OUT_OF_MONEY.search(message)))
