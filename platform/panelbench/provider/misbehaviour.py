"""Every way a provider can go wrong, by name, so that each can be asked for and counted."""

from __future__ import annotations

from typing import Final

from panelbench.provider.wire import Response

# What `sim-broken` plays in turn: replies that came back and are no good ...
SPOILT_REPLIES: Final = (
    "unparsable",
    "out_of_range",
    "truncated",
    "refusal",
    "content_filter",
    "empty",
    "ratio",
    "wrong_keys",
)
# ... and replies that did not come.
OUTAGES: Final = ("rate_limit", "server_error", "dropped", "slow")
IN_TURN: Final = (*SPOILT_REPLIES, *OUTAGES)

# All but the first two stop a run or change the next request, so they are played only when asked for by name.
_ERRORS: Final = {
    "rate_limit": (429, "rate_limit_exceeded", "Rate limit reached; try again in a second."),
    "server_error": (500, "server_error", "The simulated server had an error."),
    "quota": (429, "insufficient_quota", "You exceeded your current quota."),
    "unauthorized": (401, "invalid_api_key", "Incorrect API key provided: {key}."),
    "forbidden": (403, "forbidden", "This project may not use the model."),
    "no_schema": (400, "unsupported_value", "Invalid parameter: 'response_format' of type 'json_schema'."),
    "no_format": (400, "unsupported_value", "'response_format' is not supported with this model."),
    "no_temperature": (400, "unsupported_value", "Unsupported value: 'temperature' does not support 0 here."),
    "no_max_tokens": (
        400,
        "unsupported_parameter",
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    ),
}
_PARAMETERS: Final = {
    "no_schema": "response_format",
    "no_format": "response_format",
    "no_temperature": "temperature",
    "no_max_tokens": "max_tokens",
}
KINDS: Final = tuple(dict.fromkeys((*IN_TURN, *_ERRORS, "not_json", "error_in_reply", "no_usage")))


def applies(kind: str, body: dict[str, object]) -> bool:
    """Whether this misbehaviour has anything to refuse in this request."""
    if kind == "no_schema":
        wanted = body.get("response_format")
        return isinstance(wanted, dict) and wanted.get("type") == "json_schema"
    return _PARAMETERS.get(kind, "model") in body


def error(kind: str, *, key: str = "", retry_after: str = "1") -> Response | None:
    """The error response of this kind, or ``None`` when it is not one. An unauthorized reply repeats the key."""
    if kind not in _ERRORS:
        return None
    status, code, message = _ERRORS[kind]
    headers = {"retry-after": retry_after} if kind == "rate_limit" else {}
    return refusal(status, code, message.format(key=key), parameter=_PARAMETERS.get(kind), headers=headers)


def refusal(
    status: int, code: str, message: str, *, parameter: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """An error in OpenAI's shape."""
    words = {"message": f"{message} (simulated)", "type": code, "param": parameter, "code": code}
    return Response({"error": words}, status, headers or {})
