"""Single paid requests that are stored each in a row of its own: tests of judges, and proposals of their versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from judging import judges
from judging.asking import budgets, prices
from judging.asking.bills import Bill
from judging.asking.client import ProviderAnswer, ProviderRefused, ProviderUnavailable
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.asking.sending import ask_once
from judging.models import AlignmentProposal, Judge, JudgeTrial


def ask_of_row(
    stored: JudgeTrial | AlignmentProposal,
    *,
    asker: Judge,
    schema: dict[str, Any],
    reserve: Callable[[PaidRequest], None],
) -> ProviderAnswer:
    """Send the request of a row, with the endpoint and the pace of ``asker``, and store the bill and the reply.

    ``reserve`` reserves the cost of the request and marks the row as sent, or refuses it. Raises ``Refused`` if no
    reply came, or if the bill says that asking must stop.
    """
    rows: Any = type(stored)._default_manager.filter(pk=stored.pk)
    endpoint = judges.endpoint(asker)
    request = paid_request(
        provider=stored.provider,
        model=stored.model,
        messages=stored.request["messages"],
        schema=schema,
        parameters=stored.parameters,
        price=prices.price(asker),
        prices=prices.price_list(stored.provider),
        api=endpoint.api,
    )

    def book(bill: Bill, came: ProviderAnswer | ProviderUnavailable | ProviderRefused) -> None:
        with transaction.atomic():
            rows.update(cost=bill.cost, estimated=bill.estimated, doubt=bill.doubt)
            kept = rows.exclude(request={})  # the request may have been deleted while it was in flight
            if isinstance(came, ProviderAnswer):
                kept.update(reply=came.raw, answer=came.stored)
            elif isinstance(came, ProviderUnavailable):
                kept.update(reply={"body": came.body})
            if bill.stops:
                about = {"provider": stored.provider, "model": stored.model}
                budgets.stop_asking(asker.project_id, **about, reason=bill.stops)

    return ask_once(
        request,
        endpoint=endpoint,
        refused=judges.refused_by_model(asker),
        seconds=judges.pace(asker).timeout,
        reserve=lambda: reserve(request),
        give_back=lambda: rows.update(reserved=None, sent_at=None),
        book=book,
    )
