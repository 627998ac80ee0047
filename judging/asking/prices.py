"""What requests to models cost: at the price that a run keeps or the operator declares, at most and by count."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_UP, Decimal
from typing import Any

from judging.asking import endpoints
from judging.asking.declarations import price_table
from judging.asking.refused_parts import TOKEN_LIMITS
from judging.models import Judge, JudgeRun, PlanGenerator

MOST_COST = Decimal(9_999)  # what the column holds
SMALLEST = Decimal("0.00000001")
Prices = Mapping[str, tuple[Decimal, Decimal]]
"""By model, USD per million tokens in and out."""


def price(
    judge: Judge | PlanGenerator, *, by_batch: bool = False, run: JudgeRun | PlanGenerator | None = None
) -> tuple[Decimal, Decimal] | None:
    """USD per million tokens in and out: what it was when the ``run`` or the plan was started, else what the operator
    declares now; None when it is not declared."""
    if run is not None and (kept := endpoints.kept_price(run.prices, judge.model, by_batch=by_batch)) is not None:
        return kept
    provider = endpoints.find_provider(judge.provider)
    return provider.price(judge.model, by_batch=by_batch) if provider else None


def price_list(
    name: str, *, by_batch: bool = False, run: JudgeRun | PlanGenerator | None = None
) -> dict[str, tuple[Decimal, Decimal]]:
    """The prices of every model of a provider: those that the ``run`` keeps before those of now."""
    provider = endpoints.find_provider(name)
    tables: list[Mapping[str, Any]] = []
    for table_name in ("prices", "batch_prices") if by_batch else ("prices",):
        tables.append(price_table(getattr(provider, table_name)) if provider else {})
        tables.append(run.prices.get(table_name, {}) if run else {})
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
