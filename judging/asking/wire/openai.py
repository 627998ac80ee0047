"""Chat completions: OpenAI, and every server that is compatible with it (vLLM, Ollama, llama.cpp, gateways).

Servers differ in what they leave out: some count no tokens, give no probabilities, repeat another name of the model, or
put all of a reply where the reasoning belongs. What they refuse of a request is found out (`refused_parts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
    stated_cost,
)
from judging.probabilities import LoggedToken
from judging.replies import VERDICTS_TOOL, answer_text, plain_text

_OUT_OF_MONEY: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def _logged_tokens(content: Any) -> tuple[LoggedToken, ...]:
    if not isinstance(content, list) or not all(isinstance(token, dict) for token in content):
        return ()
    return tuple(
        LoggedToken(
            str(token.get("token")),
            as_logprob(token.get("logprob")),
            tuple(
                (str(other.get("token")), as_logprob(other.get("logprob")))
                for other in json_objects(token.get("top_logprobs"))
            ),
        )
        for token in content
    )


_INTO: Final = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens")
_OUT: Final = ("completion_tokens", "output_tokens", "completionTokens", "outputTokens")


def _usage(counts: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens in and out that a provider counts, by the names of several servers. Some leave reasoning out of the
    reply's, and count it in total or in the details."""
    into, out = (
        max((count for name in names if (count := as_count(counts.get(name))) is not None), default=None)
        for names in (_INTO, _OUT)
    )
    total = as_count(counts.get("total_tokens"))
    if out is not None:
        details = (json_object(counts.get(f"{name}_details")) for name in _OUT[:2])
        reasoning = max(as_count(detail.get("reasoning_tokens")) or 0 for detail in details)
        out = out + reasoning if reasoning > out else out
    if into is not None and out is not None and total is not None:
        out = max(out, total - into)
    return into, out


class OpenAIWire:
    """Chat completions. See `wire.Wire`."""

    FORMS = ("json_schema", "json_object", "tool_call", "none")
    FORM_WORDS = ("response_format", "json_schema", "json_object")
    EXTRA_TOKENS = 0

    def headers(self, key: str) -> dict[str, str]:
        """The key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def write(self, question: Question) -> WrittenRequest:
        """The request; all parameters keep their names."""
        body: dict[str, Any] = {"model": question.model, "messages": list(question.messages), **question.parameters}
        schema = dict(question.schema or {})
        if question.form == "tool_call":
            function = {"name": VERDICTS_TOOL, "description": "The verdicts on the material.", "parameters": schema}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": VERDICTS_TOOL}}
        elif question.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif question.form == "json_schema":
            strict = {"name": "verdicts", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": strict}
        return WrittenRequest(path="/chat/completions", body=body, names={name: name for name in question.parameters})

    def holds_reply(self, reply: Mapping[str, Any]) -> bool:
        """Whether it has choices."""
        return bool(reply.get("choices"))

    def read(self, reply: Mapping[str, Any]) -> ModelReply:
        """The first choice."""
        choices = reply.get("choices")
        choice = json_object(choices[0] if isinstance(choices, list) and choices else None)
        message, counts = json_object(choice.get("message")), json_object(reply.get("usage"))
        into, out = _usage(counts)
        return ModelReply(
            text=answer_text(message),
            finish_reason=plain_text(choice.get("finish_reason")) or None,
            refusal=plain_text(message.get("refusal")) or None,
            reasoning=plain_text(message.get("reasoning_content") or message.get("reasoning")),
            tokens_in=into,
            tokens_out=out,
            served_model=plain_text(reply.get("model")),
            request_id=plain_text(reply.get("id"))[:200],
            most_counted=most_counted(counts),
            stated_cost=stated_cost(counts),
            tokens=_logged_tokens(json_object(choice.get("logprobs")).get("content")),
        )

    def read_error(self, stated: Any) -> ErrorWords:
        """OpenAI's `error`, or whatever another server says."""
        stated = (stated.get("error") or stated) if isinstance(stated, dict) else stated
        words = json_object(stated)
        code = str(words.get("code") or words.get("type") or "")
        return ErrorWords(code=code, message=complaint_in(stated), is_fatal=code in _OUT_OF_MONEY)
