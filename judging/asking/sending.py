"""Send paid requests within the limits of their endpoint, which all workers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from judging.asking import client, limits
from judging.asking.bills import Bill, bill_failure, bill_reply
from judging.asking.client import Endpoint, ProviderAnswer, ProviderRefused, ProviderUnavailable
from judging.asking.paid_requests import PaidRequest


@dataclass(frozen=True, slots=True)
class LimitedConnection:
    """An open connection to an endpoint, and what is left of its limits."""

    connection: client.Connection
    budget: limits.RequestBudget

    async def ask(
        self, request: PaidRequest, *, seconds: float, leaving: Callable[[], None] | None = None
    ) -> ProviderAnswer:
        """Send a request that is booked in the limits (`budget.acquire`); correct the booking by the tokens used.

        ``leaving`` is called before the first byte goes out.
        """
        try:
            answer = await client.ask(
                self.connection,
                model=request.model,
                messages=request.messages,
                parameters=request.parameters,
                schema=request.schema,
                timeout=seconds,
                leaving=leaving,
            )
        except ProviderUnavailable as unavailable:
            await self.budget.heed(unavailable.quotas, tokens=request.tokens)
            raise
        await self.budget.heed(answer.quotas, tokens=request.tokens)
        if answer.tokens_in is not None and answer.tokens_out is not None:
            await self.budget.correct(booked=request.tokens, used=answer.tokens_in + answer.tokens_out)
        return answer


@asynccontextmanager
async def limited_connection(
    endpoint: Endpoint, *, refused: Mapping[str, list[str]] | None = None
) -> AsyncIterator[LimitedConnection]:
    """Connect to an endpoint; ``refused`` is the same as in `client.connect`."""
    async with (
        client.connect(endpoint, refused=refused) as connection,
        limits.budget(endpoint, settings.REDIS_URL or None, settings.DATA_DIR / "limits") as budget,
    ):
        yield LimitedConnection(connection, budget)


Booked = Callable[[Bill, ProviderAnswer | ProviderUnavailable | ProviderRefused], None]


def ask_once(
    request: PaidRequest,
    *,
    endpoint: Endpoint,
    refused: list[str],
    seconds: float,
    reserve: Callable[[], None],
    give_back: Callable[[], None],
    book: Booked,
) -> ProviderAnswer:
    """Reserve what a request can cost, send it, and book its bill; no database query is made while it is in flight.

    ``reserve`` reserves the cost and marks the request as sent, or refuses it. ``give_back`` cancels the reservation if
    the limits do not allow the request now; nothing was sent then. ``book`` stores the bill with the reply or error.
    Raises ``Refused`` if no reply came, or if the bill of the reply says that asking must stop.
    """
    reserve()
    answer: ProviderAnswer | None
    try:
        answer = asyncio.run(_asked(request, endpoint, refused, seconds))
    except (ProviderUnavailable, ProviderRefused) as failure:
        book(bill_failure(request, failure), failure)
        is_refusal = isinstance(failure, ProviderRefused)
        raise Refused(failure.reason, code="provider_refused" if is_refusal else "unavailable") from None
    if answer is None:
        give_back()
        sentence = _("The limits of the provider leave no place for this request now. Try again in some minutes.")
        raise Refused(sentence, code="unavailable")
    bill = bill_reply(request, answer)
    book(bill, answer)
    if bill.stops:
        raise Refused(bill.stops, code="bill")
    return answer


async def _asked(request: PaidRequest, endpoint: Endpoint, refused: list[str], seconds: float) -> ProviderAnswer | None:
    async with limited_connection(endpoint, refused={request.model: refused}) as limited:
        if not await limited.budget.acquire(tokens=request.tokens, patience=seconds):
            return None
        return await limited.ask(request, seconds=seconds)
