"""What the texts of a plan will cost: before anything is sent by the length of its requests, later by its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Avg, Count, Q

from judging.asking import endpoints, prices
from judging.asking.paid_requests import paid_request
from judging.generation.drawing import draw_families
from judging.generation.messages import generation_messages, generation_schema, turn_counts
from judging.generation.specs import Spec, parse_spec
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation

SAMPLED = 12
"""Requests that are written to forecast those of a generator."""
TOKENS_PER_MESSAGE, TOKENS_PER_FIELD = 60, 300
"""About how long what is written will be, where nothing is known of it yet."""
ENOUGH = 3
"""Replies of a generator from which its own lengths are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorForecast:
    """The requests of one generator: about how many, their tokens, the cost, and about the most that it can be.

    `cost` and `worst` are None without a declared price. The worst case: every text is asked for as often as its spec
    allows, every reply is as long as it may be, and no request is longer than the longest of the sample. A budget, not
    this, holds for certain.
    """

    name: str
    texts: int
    requests: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    worst: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationForecast:
    """The forecast of a plan; `is_measured`: it rests on replies to every generator's own requests."""

    generators: Sequence[GeneratorForecast]
    is_measured: bool = False

    @property
    def texts(self) -> int:
        return sum(part.texts for part in self.generators)

    @property
    def requests(self) -> int:
        return sum(part.requests for part in self.generators)

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return sum(part.tokens_in + part.tokens_out for part in self.generators)

    @property
    def cost(self) -> Decimal | None:
        """The likely cost; None if a price is not declared."""
        return _sum([part.cost for part in self.generators])

    @property
    def worst(self) -> Decimal | None:
        """About the most that it can cost; None if a price is not declared."""
        return _sum([part.worst for part in self.generators])


def _sum(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


@dataclass(frozen=True, slots=True)
class _Replies:
    """What the replies of a generator to a plan were like: requests for each text, and mean tokens of a request."""

    requests_per_text: float
    tokens_in: float
    tokens_out: float


def forecast_generation(
    *,
    spec: Spec,
    languages: Sequence[str],
    generators: Sequence[PlanGenerator],
    families: int,
    repeats: int = 1,
    seed: int = 0,
) -> GenerationForecast:
    """The forecast of a plan that need not be stored; its ``generators`` may be unsaved (`plans.plan_generator`)."""
    texts = families * len(languages) * repeats
    drawn = draw_families(spec, seed=seed, numbers=range(1, min(families, SAMPLED) + 1))
    return GenerationForecast(
        generators=[_forecast(spec, languages, generator, texts, drawn, None) for generator in generators]
    )


def forecast_plan(plan: GenerationPlan) -> GenerationForecast:
    """The forecast of what is left of a plan: all texts that are not written, the examples' too."""
    spec = parse_spec(plan.spec)
    left = Realisation.objects.filter(plan=plan, state__in=[Realisation.State.WAITING, Realisation.State.LEASED])
    texts = dict(left.order_by().values_list("generator").annotate(Count("pk")))
    replies = _replies(plan)
    drawn = list(plan.families.values_list("parameters", flat=True)[:SAMPLED])
    generators = list(plan.generators.all())
    return GenerationForecast(
        generators=[
            _forecast(spec, plan.languages, generator, texts.get(generator.pk, 0), drawn, replies.get(generator.pk))
            for generator in generators
        ],
        is_measured=all(generator.pk in replies for generator in generators),
    )


def _replies(plan: GenerationPlan) -> dict[int, _Replies]:
    """By generator, what its replies were like, where there are enough of them."""
    replied = GenerationAttempt.objects.filter(
        realisation__plan=plan, outcome=GenerationAttempt.Outcome.REPLIED, tokens_out__isnull=False
    )
    ended = Q(realisation__state__in=[Realisation.State.WRITTEN, Realisation.State.GIVEN_UP])
    rows = (
        replied.order_by()
        .values_list("realisation__generator")
        .annotate(
            into=Avg("tokens_in"),
            out=Avg("tokens_out"),
            requests=Count("pk", filter=ended),
            texts=Count("realisation", filter=ended, distinct=True),
        )
    )
    return {
        generator: _Replies(requests / texts, into or 0.0, out or 0.0)
        for generator, into, out, requests, texts in rows
        if texts >= ENOUGH
    }


def _forecast(
    spec: Spec,
    languages: Sequence[str],
    generator: PlanGenerator,
    texts: int,
    drawn: Sequence[Mapping[str, str | int]],
    replies: _Replies | None,
) -> GeneratorForecast:
    schema, price = generation_schema(spec), prices.price(generator, run=generator)
    requests = [
        paid_request(
            provider=generator.provider,
            model=generator.model,
            messages=generation_messages(spec, parameters, language=languages[place % len(languages)]),
            schema=schema,
            parameters=generator.parameters,
            price=price,
            prices=prices.price_list(generator.provider, run=generator),
            api=endpoints.api_of(generator.provider),
        )
        for place, parameters in enumerate(drawn)
    ]
    sampled = max(1, len(requests))
    if replies is None:
        into = sum(request.tokens for request in requests) / sampled
        out = sum(_likely_tokens(spec, parameters) for parameters in drawn) / sampled
        replies = _Replies(1.0, into, out)
    asked = round(texts * replies.requests_per_text)
    tokens_in, tokens_out = round(asked * replies.tokens_in), round(asked * replies.tokens_out)
    worst = [request.worst_case for request in requests if request.worst_case is not None]
    return GeneratorForecast(
        name=generator.name,
        texts=texts,
        requests=asked,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=None if price is None else prices.cost_at(price, tokens_in, tokens_out),
        worst=max(worst) * texts * (1 + spec.retries) if len(worst) == len(requests) and worst else None,
    )


def _likely_tokens(spec: Spec, parameters: Mapping[str, str | int]) -> float:
    """About how many tokens a reply has."""
    if spec.kind == "dialogue":
        return TOKENS_PER_MESSAGE * sum(turn_counts(spec, parameters)) / 2
    return TOKENS_PER_FIELD * len(spec.asked_fields)
