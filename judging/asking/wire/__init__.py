"""How a question is written for a provider's API, and how its replies and errors are read: a module for each API. Pure.

Parameters of judges have the names of OpenAI's API; a wire says which of them its API has, and what they are called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from judging.asking.declarations import API_NAMES
from judging.probabilities import LoggedToken
from judging.prompts import Message

_LONGEST_TEXT: Final = 200_000  # characters of a reply's text that are kept and read


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked; `form` is the one in which the reply is wanted, None without a schema."""

    model: str
    messages: Sequence[Message]
    parameters: Mapping[str, Any]
    schema: Mapping[str, Any] | None = None
    form: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest:
    """A question as the API takes it: where it goes below the provider's address, and its body.

    `names`: the parameters in it, by what an error of the API may call them. `left_out`: those that the API has not.
    """

    path: str
    body: dict[str, Any]
    names: Mapping[str, str]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCount:
    """What a provider counts of a request: tokens as it bills them, the largest number of tokens anywhere in its count
    (`most`), and the USD and the model that it states. ``cost`` may be `UNREADABLE_COST`."""

    into: int | None = None
    out: int | None = None
    most: int | None = None
    cost: Decimal | None = None
    model: str = ""

    def __bool__(self) -> bool:
        """Whether anything was billed."""
        return any((self.into, self.out, self.most, self.cost))


NOTHING_COUNTED: Final = ProviderCount()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model replied, whatever its API: this is stored, and read by everything after it.

    `finish_reason` is in OpenAI's words where the API's word means the same (stop, length, content_filter, tool_calls).
    `surcharge`: how many tokens more are billed than `tokens_in` counts, because some of them cost more than the price.
    `most_counted` and `stated_cost` are those of `ProviderCount`, and serve the bill only.
    """

    text: str
    finish_reason: str | None
    refusal: str | None
    reasoning: str
    tokens_in: int | None
    tokens_out: int | None
    served_model: str
    request_id: str = ""
    surcharge: int | None = None
    most_counted: int | None = field(default=None, compare=False)
    stated_cost: Decimal | None = field(default=None, compare=False)
    tokens: tuple[LoggedToken, ...] = field(default=(), repr=False)

    @property
    def billed_in(self) -> int | None:
        """Tokens of the request as they are billed; None without a count."""
        return None if self.tokens_in is None else self.tokens_in + (self.surcharge or 0)

    @property
    def counted(self) -> ProviderCount:
        """What the provider counts."""
        return ProviderCount(
            into=self.billed_in,
            out=self.tokens_out,
            most=self.most_counted,
            cost=self.stated_cost,
            model=self.served_model,
        )

    @property
    def stored(self) -> dict[str, Any]:
        """As it is stored, without what is empty."""
        kept = {name: getattr(self, name) for name in _PLAIN}
        tokens = [[token.token, token.logprob, [list(other) for other in token.others]] for token in self.tokens]
        return {name: value for name, value in {**kept, "tokens": tokens}.items() if value not in (None, "", [])}

    def shortened(self) -> ModelReply:
        """With at most `_LONGEST_TEXT` characters of each text, and without probabilities."""
        texts = {name: getattr(self, name)[:_LONGEST_TEXT] for name in ("text", "reasoning")}
        refusal = self.refusal[:_LONGEST_TEXT] if self.refusal else None
        return replace(self, **texts, refusal=refusal, tokens=())


_PLAIN: Final = tuple(
    name for name in ModelReply.__dataclass_fields__ if name not in ("tokens", "most_counted", "stated_cost")
)


def read_stored(stored: Mapping[str, Any]) -> ModelReply:
    """A reply from what `ModelReply.stored` gave."""
    tokens = tuple(
        LoggedToken(token, logprob, tuple((other, likely) for other, likely in others))
        for token, logprob, others in stored.get("tokens", ())
    )
    texts = {"text": "", "reasoning": "", "served_model": "", "request_id": ""}
    return ModelReply(**{name: stored.get(name, texts.get(name)) for name in _PLAIN}, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorWords:
    """What an error of a provider says, in its own words, and whether no other request would fare better."""

    code: str
    message: str
    retry_after: float | None = None
    is_fatal: bool = False


class Wire(Protocol):
    """What a module of this package has, as a class."""

    FORMS: tuple[str, ...]
    """The forms in which its API can be asked for a reply, the strictest first; `none` is the last."""
    FORM_WORDS: tuple[str, ...]
    """What its errors call such a form."""
    EXTRA_TOKENS: int
    """The most tokens that a provider adds to a request, for a tool or a schema."""

    def headers(self, key: str) -> dict[str, str]:
        """The headers with the key."""

    def write(self, question: Question) -> WrittenRequest:
        """The request."""

    def holds_reply(self, reply: Mapping[str, Any]) -> bool:
        """Whether the body of a 200 holds what a model replied, and not an error."""

    def read(self, reply: Mapping[str, Any]) -> ModelReply:
        """What a model replied, read leniently: whatever is left out or mistyped is missing, not an error."""

    def read_error(self, stated: Any) -> ErrorWords:
        """What the body of an error says: JSON, or a text."""


@cache
def wire_of(api: str) -> Wire:
    """The wire for this kind of API: the class in its module that ends with `Wire`."""
    if api not in API_NAMES:
        raise ValueError(f"no kind of API: {api!r}")
    module = import_module(f"judging.asking.wire.{api}")
    (wire,) = (value for name, value in vars(module).items() if name.endswith("Wire") and value is not Wire)
    made: Wire = wire()
    return made


def json_object(value: Any) -> dict[str, Any]:
    """A JSON object, empty for anything else."""
    return value if isinstance(value, dict) else {}


def json_objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list; none of anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


_WRITTEN: Final = re.compile(r"\d{1,3}(?:[,_\s]\d{3}){1,5}|\d{1,18}(?:\.\d{1,9})?", re.ASCII)
_WRITTEN_COST: Final = re.compile(r"(?:\$ ?)?(\d{1,18}(?:\.\d{0,40})?(?:e[+-]?\d{1,3})?)", re.ASCII | re.IGNORECASE)
_INFINITE: Final = ("inf", "infinity")
_NO_COUNT: Final = re.compile(r"cost|price|time|second|limit|remaining|context|per_|max", re.IGNORECASE)
_COSTS: Final = ("cost", "cost_usd", "total_cost", "total_cost_usd", "estimated_cost")
_TOTALS: Final = ("total", "total_cost")
_LARGEST_COUNT: Final = 10**18
UNREADABLE_COST: Final = Decimal(-1)
"""Stands for a stated cost that can't be one: negative, NaN, a truth value, or other words."""


def as_count(value: Any) -> int | None:
    """A count of tokens, also as 12.0, 11.5 (rounded up), "12" or "12,000"; None of anything else."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in _INFINITE:
            value = _LARGEST_COUNT
        elif _WRITTEN.fullmatch(text):
            value = float(re.sub(r"[,_\s]", "", text)) if "." in text else int(re.sub(r"[,_\s]", "", text))
    if isinstance(value, float) and not math.isnan(value):
        value = math.ceil(min(value, _LARGEST_COUNT)) if value >= 0 else None
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, _LARGEST_COUNT) if is_count else None


def most_counted(usage: Any) -> int | None:
    """The largest number of tokens in a provider's count, under whatever name that speaks of tokens; None without any.

    An honest one is never larger than the request and the reply together.
    """
    return max(_token_counts(usage, 0), default=None)


def _token_counts(usage: Any, depth: int) -> Iterator[int]:
    for name, value in json_object(usage).items():
        if isinstance(value, dict | list) and depth < 3:
            for part in value[:100] if isinstance(value, list) else [value]:
                yield from _token_counts(part, depth + 1)
        elif "token" in name.lower() and not _NO_COUNT.search(name) and (count := as_count(value)) is not None:
            yield count


def stated_cost(usage: Any) -> Decimal | None:
    """The USD that a provider states beside its count, as OpenRouter, DeepInfra and Perplexity do; None without any.

    What OpenRouter's upstream provider bills to a key of one's own comes on top of OpenRouter's own fee.
    `UNREADABLE_COST` where what is stated can't be a cost.
    """
    counts = json_object(usage)
    stated = [counts.get(name) for name in _COSTS]
    stated += [part.get(name) for part in map(json_object, stated) for name in _TOTALS]
    costs = [cost for value in stated if (cost := _as_cost(value)) is not None]
    upstream = _as_cost(json_object(counts.get("cost_details")).get("upstream_inference_cost"))
    if upstream is not None:
        fee = max(costs, default=Decimal(0)) if counts.get("is_byok") is True else Decimal(0)
        costs.append(upstream + max(fee, Decimal(0)) if upstream >= 0 else upstream)
    return max(costs, default=None) or None


def _as_cost(value: Any) -> Decimal | None:
    """A cost as a number or a text, at most `_LARGEST_COUNT`; None of nothing, and of what has parts."""
    if value is None or isinstance(value, dict | list) or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        text = value.strip()
        written = _WRITTEN_COST.fullmatch(text)
        cost = Decimal("Infinity" if text.lower() in _INFINITE else written[1] if written else "NaN")
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        cost = Decimal(value if isinstance(value, int) else str(value)) if is_number else Decimal("NaN")
    return UNREADABLE_COST if cost.is_nan() or cost < 0 else min(cost, Decimal(_LARGEST_COUNT))


def as_logprob(value: Any) -> float | None:
    """A log-probability; None of anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def complaint_in(body: Any) -> str:
    """What an error says, in the words of whatever server: OpenAI's `message`, others' `detail` or `error`."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, map(complaint_in, body[:5])))
    words = json_object(body)
    candidates = (words.get(name) for name in ("message", "msg", "detail", "error", "error_description", "title"))
    return next((text for candidate in candidates if candidate and (text := complaint_in(candidate))), "")
