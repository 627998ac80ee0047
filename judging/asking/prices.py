"""What requests to models cost: at the price that a run keeps or the operator declares, at most and by count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_UP, Decimal
from typing import Any

import orjson

from judging.asking import endpoints
from judging.asking.refused_parts import TOKEN_LIMITS
from judging.models import Judge, JudgeRun
from judging.prompts import Message
from judging.provider_declarations import price_table

MOST_COST = Decimal(9_999)  # what the column holds
SMALLEST = Decimal("0.00000001")
PER_MESSAGE = 16  # tokens of the frame that a provider puts around a message


def price(judge: Judge, *, by_batch: bool = False, run: JudgeRun | None = None) -> tuple[Decimal, Decimal] | None:
    """USD per million tokens in and out: what it was when the ``run`` was started, else what the operator declares now;
    None when it is not declared."""
    if run is not None and (kept := endpoints.kept_price(run.prices, judge.model, by_batch=by_batch)) is not None:
        return kept
    provider = endpoints.find_provider(judge.provider)
    return provider.price(judge.model, by_batch=by_batch) if provider else None


def price_list(
    judge: Judge, *, by_batch: bool = False, run: JudgeRun | None = None
) -> dict[str, tuple[Decimal, Decimal]]:
    """The prices of every model of the judge's provider: those that the ``run`` keeps before those of now."""
    provider = endpoints.find_provider(judge.provider)
    tables: list[Mapping[str, Any]] = []
    for name in ("prices", "batch_prices") if by_batch else ("prices",):
        tables.append(price_table(getattr(provider, name)) if provider else {})
        tables.append(run.prices.get(name, {}) if run else {})
    # Those of batches come last, and those that were kept after those of now.
    return {model: (Decimal(into), Decimal(out)) for table in tables for model, (into, out) in table.items()}


def token_limit(parameters: Mapping[str, Any]) -> int | None:
    """How many tokens a reply has at most by a judge's parameters; None when they don't say."""
    limits = [parameters[name] for name in TOKEN_LIMITS if name in parameters]
    known = [limit for limit in limits if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
    return max(known) if known and len(known) == len(limits) else None


def cost(
    judge: Judge, tokens_in: int, tokens_out: int, *, by_batch: bool = False, run: JudgeRun | None = None
) -> Decimal | None:
    """What so many tokens cost, in USD; None without a price."""
    paid = price(judge, by_batch=by_batch, run=run)
    return None if paid is None else cost_at(paid, tokens_in, tokens_out)


def cost_at(paid: tuple[Decimal, Decimal], tokens_in: int, tokens_out: int) -> Decimal:
    """What so many tokens cost at a price, at most what the column holds."""
    exact = (paid[0] * tokens_in + paid[1] * tokens_out) / 1_000_000
    return min(MOST_COST, exact).quantize(SMALLEST, rounding=ROUND_UP)


def worst_case(
    judge: Judge,
    *,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    parameters: Mapping[str, Any],
    by_batch: bool = False,
    run: JudgeRun | None = None,
) -> Decimal | None:
    """The most that a request can cost: no token is shorter than a byte, and no reply longer than its limit.

    None where no price is known, or where the reply has no limit and costs something.
    """
    paid, limit = price(judge, by_batch=by_batch, run=run), token_limit(parameters)
    if paid is None or (limit is None and paid[1]):
        return None
    return cost(judge, most_tokens(messages, schema), limit or 0, by_batch=by_batch, run=run)


def most_tokens(messages: Sequence[Message], schema: Mapping[str, Any]) -> int:
    """No request of these messages has more tokens: one a byte, and the frame around each message."""
    texts = sum(len(message["content"].encode("utf-8", "replace")) + PER_MESSAGE for message in messages)
    return texts + len(orjson.dumps(schema)) + PER_MESSAGE
