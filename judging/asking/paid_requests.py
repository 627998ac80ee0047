"""A request that may cost money, whoever sends it, with the most that it can cost.

Who asks writes one (`paid_request`), reserves its worst case under the caps (`budgets`), sends it within the limits of
the endpoint (`sending`), and books what it came to (`bills`). `sending.ask_once` does all of it for a single request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from judging.asking.prices import Prices, cost_at, token_limit
from judging.asking.wire import wire_of
from judging.prompts import Message

PER_MESSAGE = 16  # tokens of the frame that a provider puts around a message


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidRequest:
    """What is sent to a model of a provider; without a `schema` its reply is plain text. `worst_case` is None where no
    price is known, or the reply has no limit.

    `prices` are those of every model of the provider: a reply may name another one than was asked for.
    """

    provider: str
    model: str
    messages: Sequence[Message]
    schema: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    prices: Prices
    most_tokens: int
    worst_case: Decimal | None

    @property
    def tokens(self) -> int:
        """About how many tokens it takes of a limit, reply included: four bytes each; corrected once it is known."""
        return sum(len(message["content"].encode("utf-8", "replace")) for message in self.messages) // 4 + 200


def paid_request(
    *,
    provider: str,
    model: str,
    messages: Sequence[Message],
    schema: Mapping[str, Any] | None,
    parameters: Mapping[str, Any],
    price: tuple[Decimal, Decimal] | None,
    prices: Prices,
    api: str,
) -> PaidRequest:
    """The request with its bounds: no token is shorter than a byte, and no reply longer than its limit.

    ``price``: that of the model, by which its worst case is reserved; ``api``: the kind of API that it is written for.
    """
    texts = sum(len(message["content"].encode("utf-8", "replace")) + PER_MESSAGE for message in messages)
    most = texts + (len(orjson.dumps(schema)) if schema else 0) + PER_MESSAGE + wire_of(api).EXTRA_TOKENS
    limit = token_limit(parameters)
    return PaidRequest(
        provider=provider,
        model=model,
        messages=messages,
        schema=schema,
        parameters=parameters,
        prices=prices,
        most_tokens=most,
        worst_case=None if price is None or (limit is None and price[1]) else cost_at(price, most, limit or 0),
    )
