"""What the texts of a plan will cost: before anything is sent by the length of its requests, later by its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest

from django.db.models import Avg, Count, Q

from judging.asking import endpoints, prices
from judging.asking.paid_requests import paid_request
from judging.generation.drawing import draw_families
from judging.generation.messages import turn_counts
from judging.generation.sources import source_of
from judging.generation.specs import Spec, parse_spec
from judging.generation.translations import SourceText, text_messages, text_schema
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation

SAMPLED = 12
"""Requests that are written to forecast those of a generator."""
TOKENS_PER_MESSAGE, TOKENS_PER_FIELD = 60, 300
"""About how long what is written will be, where nothing is known of it yet."""
CHARACTERS_PER_TOKEN, TRANSLATED = 4, 1.5
ENOUGH = 3
"""Replies of a generator from which its own lengths are used."""


DrawnSource = tuple[Mapping[str, str | int], SourceText | None]
"""What a request is written of: the parameters of a family, and the item that is translated."""


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
    sources: Sequence[SourceText] = (),
) -> GenerationForecast:
    """The forecast of a plan that need not be stored; its ``generators`` may be unsaved (`plans.plan_generator`).

    ``sources``: some of the items that are to be translated.
    """
    texts = families * len(languages) * repeats
    numbers = range(1, min(families, SAMPLED, len(sources) or SAMPLED) + 1)
    drawn = list(zip_longest(draw_families(spec, seed=seed, numbers=numbers), sources[: len(numbers)]))
    return GenerationForecast(
        generators=[_forecast(spec, languages, generator, texts, drawn, None) for generator in generators]
    )


def forecast_plan(plan: GenerationPlan) -> GenerationForecast:
    """The forecast of what is left of a plan: all texts that are not written, the examples' too."""
    spec = parse_spec(plan.spec)
    left = Realisation.objects.filter(plan=plan, state__in=[Realisation.State.WAITING, Realisation.State.LEASED])
    texts = dict(left.order_by().values_list("generator").annotate(Count("pk")))
    replies = _replies(plan)
    sampled = plan.families.select_related("source")[:SAMPLED]
    drawn = [(family.parameters, source_of(family)) for family in sampled]
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
    drawn: Sequence[DrawnSource],
    replies: _Replies | None,
) -> GeneratorForecast:
    price = prices.price(generator, run=generator)
    requests = [
        paid_request(
            provider=generator.provider,
            model=generator.model,
            messages=text_messages(spec, parameters, source, language=languages[place % len(languages)]),
            schema=text_schema(spec, source),
            parameters=generator.parameters,
            price=price,
            prices=prices.price_list(generator.provider, run=generator),
            api=endpoints.api_of(generator.provider),
        )
        for place, (parameters, source) in enumerate(drawn)
    ]
    sampled = max(1, len(requests))
    if replies is None:
        into = sum(request.tokens for request in requests) / sampled
        out = sum(_likely_tokens(spec, parameters, source) for parameters, source in drawn) / sampled
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


def _likely_tokens(spec: Spec, parameters: Mapping[str, str | int], source: SourceText | None) -> float:
    """About how many tokens a reply has. A translation is about as long as its source, in a language that most models
    write with more tokens than English."""
    if source is not None:
        return TRANSLATED * len(source.as_json) / CHARACTERS_PER_TOKEN
    if spec.kind == "dialogue":
        return TOKENS_PER_MESSAGE * sum(turn_counts(spec, parameters)) / 2
    return TOKENS_PER_FIELD * len(spec.asked_fields)
