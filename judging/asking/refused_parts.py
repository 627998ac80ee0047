"""Which part of a request an error of a provider complains of, so that the question can be put without it. Pure.

Servers name a part in many ways: as `param`, in the `loc` of a validation error, in quotation marks, after "Unsupported
parameter:", or by what their chat template or their constrained decoding can't do. Some name none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RESERVED: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "n", "response_format", "tools", "tool_choice"}
)
"""Parameters that are set by the wires, and none of a judge."""
TOKEN_LIMITS: Final = ("max_tokens", "max_completion_tokens")
"""The two names of the limit on a reply's tokens. It is renamed where a model wants the other, and never dropped."""
SYSTEM_ROLE: Final = "system_role"
"""Refused by models whose chat template has no system role: the rubric then opens the user's message."""
_NO_SYSTEM_ROLE: Final = re.compile(
    r"\bsystem\b.{0,20}\b(role|message|prompt)|\brole\b.{0,60}\bsystem\b|developer instruction|roles must alternate|"
    r"\bonly\b.{0,20}\buser\b.{0,20}\bassistant\b.{0,20}\broles?\b",
    re.IGNORECASE,
)
_TEMPLATE: Final = re.compile(
    r"roles must alternate|system role (?:is )?not supported|"
    r"\bonly\b.{0,20}\buser\b.{0,20}\bassistant\b.{0,20}\broles?\b",
    re.IGNORECASE,
)
"""What chat templates without a system role say, which some servers pass on as their own fault, a 500."""
_DECODING: Final = re.compile(
    r"guided.{0,3}decoding|guided_json|guided_grammar|xgrammar|outlines|llguidance|lm-format-enforcer|grammar|"
    r"structured.{0,3}outputs?|constrained.{0,3}(?:decoding|generation)|json.{0,2}schema|response_format",
    re.IGNORECASE,
)
_PARAMETER: Final = r"(?:parameters?|arguments?|fields?|propert(?:y|ies)|inputs?|keys?|options?|param)"
# What an unnamed refusal may be about, so that no other request would fare better.
_OTHER_CAUSE: Final = re.compile(
    r"context|too (?:long|large|many)|maximum|exceed|tokens?\b|content|policy|safety|moderat|filter|blocked|harm|"
    r"\bmodel\b|api.?key|auth|credential|billing|credit|balance|quota|payment|image|audio|language|surrogate|encod",
    re.IGNORECASE,
)
_FAULT_OF_FORM: Final = frozenset({500, 501, 502})


@dataclass(frozen=True, slots=True, kw_only=True)
class SentParts:
    """What of a request a model may refuse: the form of the reply, the system message, and parameters.

    ``names``: the parameters by what an error may call them; ``form_words``: what it may call the form.
    """

    form: str | None
    has_system: bool
    names: Mapping[str, str]
    form_words: Sequence[str]


def refused_part(*, status: int, stated: Any, message: str, sent: SentParts) -> str | None:
    """Which part of the request an error names, if the request can do without it; None for any other error.

    ``stated`` is the error as the server gave it, ``message`` its words.
    """
    form = sent.form if sent.form != "none" else None
    if status in _FAULT_OF_FORM and sent.has_system and _TEMPLATE.search(message):
        return SYSTEM_ROLE
    if status in _FAULT_OF_FORM:
        return form if form and _DECODING.search(message) else None
    if status not in (400, 422):
        return None
    if sent.has_system and _NO_SYSTEM_ROLE.search(message):
        return SYSTEM_ROLE
    named = [*_named(stated)]
    if form == "tool_call":
        if re.search(r"tool|function", message) or {"tools", "tool_choice"} & {*named}:
            return form
    elif form and ({*sent.form_words} & {*named} or _names_form(sent.form_words, message)):
        return form
    if told := next((name for name in named if name in sent.names), None):
        return sent.names[told]
    if quoted := next((name for name in sent.names if re.search(rf"['\"`]{re.escape(name)}['\"`]", message)), None):
        return sent.names[quoted]
    complained = next((name for name in sent.names if _is_complained_of(name, message)), None)
    return sent.names[complained] if complained else None


def _names_form(words: Sequence[str], message: str) -> bool:
    return re.search("|".join(map(re.escape, words)), message, re.IGNORECASE) is not None


def _named(stated: Any) -> Iterator[str]:
    """The names in `param`, and in the `loc` of each validation error: ["body", "response_format", "type"]."""
    if isinstance(stated, Mapping):
        if isinstance(stated.get("param"), str):
            yield stated["param"]
        if isinstance(place := stated.get("loc"), list | tuple):
            yield from (str(part) for part in place if isinstance(part, str) and part != "body")
        for name in ("detail", "error", "errors"):
            yield from _named(stated.get(name))
    elif isinstance(stated, list):
        for entry in stated[:20]:
            yield from _named(entry)


def _is_complained_of(name: str, message: str) -> bool:
    """Whether words without quotation marks say that this parameter is the matter."""
    word = rf"(?<![\w.-]){re.escape(name)}(?![\w-])"
    unsupported = r"(?:un(?:supported|known|recogni[sz]ed|expected)|not support(?:ed)?)"
    patterns = (
        rf"{_PARAMETER}(?: supplied| provided| name)?\s*[:=(]?\s*{word}",
        rf"{word}\s*(?:{_PARAMETER} )?(?:is|are)\s+(?:not\b|un\w+ed\b|deprecated)",
        rf"{unsupported}\W{{1,3}}{word}",
        rf"{word}: extra inputs",
    )
    return any(re.search(pattern, message, re.IGNORECASE) for pattern in patterns)


def names_no_cause(*, status: int, message: str) -> bool:
    """Whether an error says no more than that the request is bad, so that another form of it may be taken."""
    return status in (400, 422) and not _OTHER_CAUSE.search(message)


def next_guess(sent: SentParts, left_out: Sequence[str]) -> str | None:
    """What to leave out next of a request that is refused without a cause: forms of the reply, the system role, then
    the parameters one by one, and never the limit on tokens. None when there is nothing left."""
    if sent.form not in (None, "none", *left_out):
        return sent.form
    if sent.has_system and SYSTEM_ROLE not in left_out:
        return SYSTEM_ROLE
    return next((name for name in sent.names.values() if name not in (*TOKEN_LIMITS, *left_out)), None)
