"""How long to wait, and what is left of a limit, by the headers of a reply: OpenAI's, Anthropic's and others'. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_RETRY_AFTER: Final = 7 * 86_400.0
_UNITS: Final = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_FIRST_EPOCH: Final = 1e9  # a larger number is a time: seconds since 1970, or
_FIRST_MILLISECONDS: Final = 1e12  # thousandths of them
_PAIRS: Final = {
    "requests": (
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),  # OpenAI, Azure, Groq, Fireworks
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),  # OpenRouter, Together
        ("ratelimit-remaining", "ratelimit-reset"),  # the IETF draft
    ),
    "tokens": (
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ),
}
"""By unit, the names of the headers that say what remains of a limit, and when it is whole again."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What an endpoint says is left of a limit, and in how many seconds the limit is whole again."""

    remaining: int
    reset: float


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, a week at most, from retry-after-ms or retry-after (seconds or an HTTP date); else ``None``."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return _bounded_wait(float(milliseconds) / 1000)
        stated = headers.get("retry-after")
        if stated is None:
            return None
        if re.fullmatch(r"\s*\d+(\.\d+)?(e\+?\d+)?\s*", stated, re.IGNORECASE):
            return _bounded_wait(float(stated))
        return _bounded_wait(parsedate_to_datetime(stated).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def read_quotas(headers: Mapping[str, str]) -> dict[str, Quota]:
    """What is left of the limits on `requests` and `tokens`, as far as the endpoint says so; the least where it says
    so twice."""
    stated_here = {name: value for name, value in headers.items() if "ratelimit" in name}  # a pass: look-ups are dear
    quotas: dict[str, Quota] = {}
    for unit, pairs in _PAIRS.items() if stated_here else ():
        for remaining_name, reset_name in pairs:
            remaining = stated_here.get(remaining_name, "").strip()
            reset = _seconds(stated_here.get(reset_name, ""))
            if remaining.isascii() and remaining.isdecimal() and len(remaining) < 16 and reset is not None:
                stated = Quota(int(remaining), reset)
                quotas[unit] = min(quotas.get(unit, stated), stated, key=lambda quota: quota.remaining)
    return quotas


def _seconds(text: str) -> float | None:
    """12.5 of "12.5", "12.5s" and "12s500ms", or the seconds until a time (RFC 3339, or since 1970); None of others."""
    text = text.strip()
    if re.fullmatch(r"\d{1,13}(\.\d{1,9})?", text):
        number = float(text)
        if number < _FIRST_EPOCH:
            return _bounded_wait(number)
        return _bounded_wait(number / (1000 if number >= _FIRST_MILLISECONDS else 1) - time.time())
    if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        try:
            stated = datetime.fromisoformat(text)
            return _bounded_wait((stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    parts = re.findall(r"(\d{1,9}(?:\.\d{1,9})?)(ms|d|h|m|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return _bounded_wait(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _bounded_wait(seconds: float) -> float | None:
    return None if seconds != seconds else min(LONGEST_RETRY_AFTER, max(0.0, seconds))
