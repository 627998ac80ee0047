"""What a reply is booked at: the provider's own count where it can be true, else the most that the call can cost.

The tokens of a request are counted here too, as bounds that hold in every script: no token is shorter than a byte, and
a token of plain text is shorter than `LONGEST_TOKEN` bytes, once characters that are repeated are left out. A count
outside its bounds is not believed: the larger of both is booked, and `PaidRow.doubt` says why. A reply that bills more
than was declared, or that another model gave, which costs more or has no price, stops the run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.utils.translation import gettext as _

from judging.asking.client import ProviderRefused, ProviderUnavailable
from judging.asking.paid_requests import PaidRequest
from judging.asking.prices import MOST_COST, SMALLEST, Prices, cost_at, token_limit
from judging.asking.wire import UNREADABLE_COST, ModelReply, ProviderCount
from judging.models import PaidRow
from judging.prompts import Message

LONGEST_TOKEN = 16  # bytes of a token, on average over a text: English has about 4, Thai and Burmese up to 9
_MOST_TOKENS = 2**31 - 1  # what the column holds
_REPEATED = re.compile(r"(.)\1{3,}", re.DOTALL)  # a rule of hyphens or an indent is one token, however long
_VERSION = re.compile(
    r"[-@:](?:latest|\d{4}-\d{2}(?:-\d{2})?|\d{8}|\d{6}|\d{4}|\d{3}|v\d{1,2}(?:\.\d{1,2})*(?::\d+)?)$", re.IGNORECASE
)
"""How the name of a snapshot ends: a date, a number of three digits, `v2` or `latest`."""

Doubt = PaidRow.Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a reply is booked at; `stops` is the sentence with which its run pauses, empty where it does not."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: Decimal | None = None
    estimated: bool = False
    doubt: str = ""
    stops: str = ""


# --- tokens -----------------------------------------------------------------------------------------------------------


def fewest_tokens(text: str) -> int:
    """No text like this has fewer tokens, in whatever script; one at least where there is any text."""
    if not text.strip():
        return 0
    return max(1, len(_REPEATED.sub(r"\1\1\1", text).encode("utf-8", "replace")) // LONGEST_TOKEN)


# --- models -----------------------------------------------------------------------------------------------------------


def is_same_model(asked: str, served: str) -> bool:
    """Whether a reply named the model that was asked for.

    Letter case and what stands before the last slash do not count ("models/", an organisation). Neither does a version
    (a date, three digits, "latest") that only one of the two names has: a snapshot of the model is the model. Two
    different versions are two models, and so are "gpt-4o" and "gpt-4o-mini".
    """
    one, other = (name.strip().lower().rsplit("/", 1)[-1] for name in (asked, served))
    if one == other:
        return True
    bases = [_VERSION.sub("", name) for name in (one, other)]
    floating = [name == base or name.endswith("latest") for name, base in zip((one, other), bases, strict=True)]
    return bases[0] == bases[1] and any(floating)


def served_price(asked: str, served: str, prices: Prices) -> tuple[Decimal, Decimal] | None:
    """The price of the model that a reply names: declared for it, else that of the model of which it is a snapshot."""
    if not served or served == asked:
        return prices.get(asked)
    if served in prices:
        return prices[served]
    alike = [name for name in prices if is_same_model(name, served)]
    if is_same_model(asked, served):
        return prices.get(asked)
    return prices[max(alike, key=len)] if alike else None


# --- bills ------------------------------------------------------------------------------------------------------------


def bill_reply(request: PaidRequest, answer: ModelReply) -> Bill:
    """What a reply is booked at. Without a price, only its tokens are stored."""
    asked, price = request.prices.get(request.model), served_price(request.model, answer.served_model, request.prices)
    counted: dict[str, Any] = {"tokens_in": _stored(answer.tokens_in), "tokens_out": _stored(answer.tokens_out)}
    if asked is None:
        return Bill(**counted)
    # Where nothing has a price, as on a server of one's own, another name of the model is no other price.
    is_free = not any(any(known) for known in request.prices.values())
    if (is_free or not any((*asked, *(price or asked)))) and (answer.stated_cost or 0) <= 0 and (is_free or price):
        return Bill(**counted, cost=Decimal(0))
    stated = _stated(request, price or asked, answer.counted)
    larger = max((cost for cost in (stated, request.worst_case) if cost is not None), default=None)
    if excess := _excess(request, answer, price or asked):
        return Bill(**counted, cost=larger, doubt=Doubt.TOO_MANY, stops=excess)
    named = {"served": answer.served_model[:80], "asked": request.model[:80]}
    if price is None:
        sentence = _(
            "The provider answered with the model “%(served)s” instead of “%(asked)s”, and no price is declared for it."
        )
        remedy = _("Choose a model that the provider serves, or ask the operator to declare its price.")
        stops = f"{sentence % named} {remedy}"
        return Bill(**counted, cost=larger, estimated=True, doubt=Doubt.OTHER_MODEL, stops=stops)
    doubt = _shortfall(answer, request.messages)
    booked: dict[str, Any] = {**counted, "cost": larger if doubt else stated, "estimated": bool(doubt)}
    if any(of_served > of_asked for of_served, of_asked in zip(price, asked, strict=True)):
        sentence = _("The provider answered with the model “%(served)s”, which costs more than “%(asked)s”.")
        remedy = _("Its replies are booked at its own price. Choose that model itself, or another provider.")
        return Bill(**booked, doubt=Doubt.DEARER_MODEL, stops=f"{sentence % named} {remedy}")
    return Bill(**booked, doubt=doubt)


def bill_failure(request: PaidRequest, failure: ProviderUnavailable | ProviderRefused) -> Bill:
    """What a request without a usable reply is booked at: nothing for an error status.

    The worst case where it may have been paid, and what the body of the error counts, if that is more.
    """
    counted, worst_case = failure.counted, request.worst_case
    price = request.prices.get(request.model)
    if price is None or worst_case is None:
        return Bill(cost=None)
    served = served_price(request.model, counted.model, request.prices) or price
    stated = _stated(request, max(price, served, key=sum), counted)
    if stated is not None and stated > worst_case:
        excess = _("The provider bills more than was declared, for a request that it did not answer.")
        remedy = _("Check its bill before you resume the run.")
        return Bill(cost=stated, doubt=Doubt.TOO_MANY, stops=f"{excess} {remedy}")
    if failure.maybe_paid or counted:
        return Bill(cost=worst_case, estimated=True, doubt=Doubt.UNCOUNTED)
    return Bill(cost=Decimal(0), doubt=Doubt.FAILED if (failure.status or 0) >= 500 else Doubt.NONE)


def _stated(request: PaidRequest, price: tuple[Decimal, Decimal], counted: ProviderCount) -> Decimal | None:
    """What the provider's own count comes to: its tokens at the price, or the cost that it states if that is more; None
    without a count. Tokens beyond the bounds that are of neither the request nor the reply cost the higher price."""
    costs, into, out = [], counted.into, counted.out or 0
    if into is not None and counted.out is not None:
        costs.append(cost_at(price, into, out))
    into = request.most_tokens if into is None else into
    if counted.cost and counted.cost > 0:
        costs.append(min(MOST_COST, counted.cost).quantize(SMALLEST, rounding=ROUND_UP))
    limit = token_limit(request.parameters)
    if counted.most is not None and limit is not None and counted.most > max(into + out, request.most_tokens + limit):
        beyond = cost_at((max(price), max(price)), counted.most, 0)
        costs.append(min(MOST_COST, cost_at(price, into, 0) + beyond))
    elif limit is not None and out > limit:
        costs.append(cost_at(price, into, out))
    return max(costs, default=None)


def _excess(request: PaidRequest, answer: ModelReply, price: tuple[Decimal, Decimal]) -> str:
    """The sentence about a count or a cost that is larger than it can be; empty otherwise."""
    into, out, most, limit = answer.tokens_in, answer.tokens_out, request.most_tokens, token_limit(request.parameters)
    if answer.most_counted is not None and limit is not None and answer.most_counted > most + limit:
        out = max(out or 0, answer.most_counted - most)  # at least: the request can have no more
    sentence = ""
    if out is not None and limit is not None and out > limit:
        sentence = _(
            "The provider bills more than was declared: it counts %(counted)d tokens in a reply of %(most)d at most."
        ) % {"counted": out, "most": limit}
    elif into is not None and into > most:
        sentence = _(
            "The provider bills more than was declared: it counts %(counted)d tokens in a request of %(most)d at most."
        ) % {"counted": into, "most": most}
    elif answer.stated_cost and limit is not None and answer.stated_cost > cost_at(price, most, limit):
        sentence = _(
            "The provider bills more than was declared: it states a cost of $%(stated)s for a request of $%(most)s at "
            "most."
        ) % {"stated": f"{answer.stated_cost:f}"[:20], "most": f"{cost_at(price, most, limit).normalize():f}"}
    return f"{sentence} {_('Check its bill before you resume the run.')}" if sentence else ""


def _shortfall(answer: ModelReply, messages: Sequence[Message]) -> str:
    """Why a count is not believed that is missing or smaller than it can be, or has an unreadable cost; empty
    otherwise."""
    if answer.tokens_in is None or answer.tokens_out is None or answer.stated_cost == UNREADABLE_COST:
        return Doubt.UNCOUNTED
    sent = sum(fewest_tokens(message["content"]) for message in messages)
    is_short = answer.tokens_in < sent or answer.tokens_out < fewest_tokens(answer.text)
    return Doubt.TOO_FEW if is_short else Doubt.NONE


def _stored(tokens: int | None) -> int | None:
    return tokens if tokens is not None and tokens <= _MOST_TOKENS else None
