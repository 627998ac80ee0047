"""A provider as its operator declares it, in a variable or on a page: fields, their limits, and prices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

# The most that a provider may declare of each.
MOST = {
    "requests_per_minute": 10_000_000,
    "tokens_per_minute": 10_000_000_000,
    "timeout": 1800,
    "tries": 50,
    "concurrency": 256,
}
OPENAI = "openai"
API_NAMES = {
    OPENAI: "OpenAI: chat completions",
    "anthropic": "Anthropic: messages",
    "gemini": "Gemini: generateContent",
}
"""The kinds of API that a provider can have, as people read them: each is a module of `judging/asking/wire/`."""
LARGEST_PRICE = Decimal(1_000_000)
"""USD for a million tokens."""
PriceRow = tuple[str, Decimal, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredProvider:
    """One endpoint declared by the operator. Its key is read only when a call is made.

    ``prices``: model, USD per million input tokens, USD per million output tokens. ``timeout`` (seconds for a reply),
    ``tries`` (of a call) and ``concurrency`` (calls of a run in flight) are the defaults for its judges. ``batches``:
    it has OpenAI's batch API, at ``batch_prices`` where they are declared, else at ``prices``. ``api``: the kind of its
    API.
    """

    name: str
    base_url: str
    key_variable: str = ""
    simulated: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: int | None = None
    tries: int | None = None
    concurrency: int | None = None
    prices: tuple[PriceRow, ...] = ()
    batch_prices: tuple[PriceRow, ...] = ()
    models: tuple[str, ...] = ()
    batches: bool = False
    api: str = OPENAI

    def price(self, model: str, *, by_batch: bool = False) -> tuple[Decimal, Decimal] | None:
        """USD per million tokens, input and output, of a single call or in a batch; None if no price is declared."""
        prices = (*self.batch_prices, *self.prices) if by_batch else self.prices
        return next(((into, out) for name, into, out in prices if name == model), None)


def read_declaration(entry: Mapping[str, Any]) -> DeclaredProvider:
    """The provider in a JSON object. Raises ValueError with a sentence."""
    known = set(DeclaredProvider.__dataclass_fields__)
    if unknown := set(entry) - known:
        raise ValueError(f"unknown {sorted(unknown)}; known are {sorted(known)}.")
    tables: dict[str, Any] = {name: entry.get(name) or {} for name in ("prices", "batch_prices")}
    models = entry.get("models") or []
    if not all(isinstance(table, dict) for table in tables.values()) or not isinstance(models, list):
        raise ValueError('prices is {"model": [in, out]} and models is a list.')
    if not isinstance(entry.get("batches", False), bool):
        raise ValueError("batches is true or false.")
    try:
        rows = {name: price_rows(table) for name, table in tables.items()}
        provider = DeclaredProvider(**{**entry, **rows, "models": tuple(map(str, models))})
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{entry.get('name', entry)}: {error}") from None
    for name, most in MOST.items():
        number = getattr(provider, name)
        if number is not None and not (type(number) is int and 1 <= number <= most):
            raise ValueError(f"{name} of {provider.name} must be a whole number from 1 to {most}.")
    if provider.api not in API_NAMES:
        raise ValueError(f"api of {provider.name} must be one of {', '.join(API_NAMES)}.")
    if provider.batches and provider.api != OPENAI:
        raise ValueError(f"{provider.name}: only OpenAI's API is asked in batches.")
    if urlsplit(provider.base_url).scheme not in {"http", "https"}:
        raise ValueError(f"base_url of {provider.name} must start with http(s)://")
    return provider


def price_rows(table: Mapping[str, Iterable[Any]]) -> tuple[PriceRow, ...]:
    """The rows of prices of a JSON object; ValueError or ArithmeticError for a price that is none."""
    rows = tuple((model, Decimal(str(into)), Decimal(str(out))) for model, (into, out) in table.items())
    for model, into, out in rows:
        if not (0 <= into <= LARGEST_PRICE and 0 <= out <= LARGEST_PRICE):
            raise ValueError(f"a price of {model} is below 0 or above {LARGEST_PRICE}")
    return rows


def price_table(rows: Iterable[PriceRow]) -> dict[str, list[str]]:
    """Rows of prices as a JSON object."""
    return {model: [str(into), str(out)] for model, into, out in rows}
