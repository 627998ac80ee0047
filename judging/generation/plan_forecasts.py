"""What the texts of a plan will cost: before anything is sent by the length of its requests, later by its replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product, zip_longest

from django.db.models import Avg, Count, F, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from judging.asking import endpoints, prices
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.generation.drawing import draw_families
from judging.generation.messages import MOST_TOLD, WritingProblem, turn_counts
from judging.generation.plans import sampled_parameters
from judging.generation.sources import source_of
from judging.generation.specs import Spec, parse_spec
from judging.generation.translations import SourceText, text_messages, text_schema
from judging.generation.user_agent import LONGEST_TOLD, UTTERANCE_TOLD, answer_messages, utterance_messages
from judging.generation.utterance_judge import UtteranceJudge
from judging.models import GenerationAttempt, GenerationPlan, PlanGenerator, Realisation
from judging.prompts import Message

SAMPLED = 12
"""Requests that are written to forecast those of a generator."""
TOKENS_PER_MESSAGE, TOKENS_PER_FIELD = 60, 300
"""About how long what is written will be, where nothing is known of it yet."""
CHARACTERS_PER_TOKEN, TRANSLATED = 4, 1.5
ENOUGH = 3
"""Replies of a generator from which its own lengths are used."""
TRIES_OF_A_TURN = 1.5
"""About how often a user turn is written until it is accepted, where nothing is known of it yet."""
BYTES_PER_TOKEN = 4
WIDEST_CHARACTER = "\U00020000"
"""One of those that take the most bytes, four: a reply has its limit in characters."""
_TOLD: Mapping[str, str | int] = {"text": 60 * WIDEST_CHARACTER, "longest": 1_000_000, "before": 1_000}
LONGEST_PROBLEMS = sorted(
    (WritingProblem(code, _TOLD) for code in UTTERANCE_TOLD),
    key=lambda problem: len((UTTERANCE_TOLD[problem.code] % problem.values).encode()),
)[-MOST_TOLD:]
"""What a request for a user turn tells of the last try, if that is as long as it may be."""
Role, Step = PlanGenerator.Role, Realisation.Step
STEPS_OF: dict[str, tuple[str, ...]] = {
    Role.GENERATOR: (Step.ANSWER,),
    Role.USER_MODEL: (Step.OPENING, Step.UTTERANCE),
    Role.UTTERANCE_JUDGE: (Step.VERDICT,),
}


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
    role: str
    texts: int
    requests: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    worst: Decimal | None

    @property
    def role_label(self) -> str:
        """What the model does in a conversation, in words; the same model may do several things."""
        return {
            Role.GENERATOR: _("Chatbot"),
            Role.USER_MODEL: _("User model"),
            Role.UTTERANCE_JUDGE: _("Judge of the user’s turns"),
        }[Role(self.role)]


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
    def has_roles(self) -> bool:
        """Whether its models have different parts, as in a simulation."""
        return len({part.role for part in self.generators}) > 1

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
    judge: UtteranceJudge | None = None,
) -> GenerationForecast:
    """The forecast of a plan that need not be stored; its ``generators`` may be unsaved (`plans.plan_generator`,
    `plans.judge_row`).

    ``sources``: some of the items that are to be translated. The ``generators`` of a simulation have all roles, and its
    utterance ``judge`` writes the requests of one.
    """
    texts = families * len(languages) * repeats
    numbers = range(1, min(families, SAMPLED, len(sources) or SAMPLED) + 1)
    parameters = draw_families(spec, seed=seed, numbers=numbers)
    if spec.conversation is not None:
        counts = Counter(one.role for one in generators)
        conversations = {
            Role.GENERATOR: texts * counts[Role.USER_MODEL],
            Role.USER_MODEL: texts * counts[Role.GENERATOR],
            Role.UTTERANCE_JUDGE: texts * counts[Role.GENERATOR] * counts[Role.USER_MODEL],
        }
        sample = _Sample(spec, languages, parameters, judge)
        return GenerationForecast(
            generators=[
                _forecast_role(
                    sample,
                    one,
                    texts=conversations[Role.GENERATOR] if one.role == Role.GENERATOR else 0,
                    turns=conversations[Role(one.role)] * spec.conversation.user_turns,
                    replies=None,
                )
                for one in generators
            ]
        )
    drawn = list(zip_longest(parameters, sources[: len(numbers)]))
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
    if spec.conversation is not None:
        return _forecast_simulation(plan, spec, generators, [parameters for parameters, _source in drawn])
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
        role=generator.role,
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


# --- simulations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the requests of a simulation are written from, to know their lengths: its languages, and the parameters of
    some families."""

    spec: Spec
    languages: Sequence[str]
    drawn: Sequence[Mapping[str, str | int]]
    judge: UtteranceJudge | None

    def usual(self, generator: PlanGenerator) -> PaidRequest:
        """A request in the middle of a conversation whose turns are as long as they usually are."""
        turn, length = self.spec.simulation.user_turns // 2, TOKENS_PER_MESSAGE * BYTES_PER_TOKEN
        pair = self._pair("x" * length, "x" * length)
        return self._paid(generator, self._messages(generator, self.languages[0], self.drawn[0], pair * turn, pair[0]))

    def longest(self, generator: PlanGenerator) -> PaidRequest:
        """The longest request of a model: for the last user turn, all turns as long as they may be, in the language and
        for the family of which it is longest; that of a user model also tells what was wrong with its last try."""
        spec, wide = self.spec, WIDEST_CHARACTER
        pair = self._pair(wide * spec.simulation.longest_utterance, wide * spec.rules.longest)
        # Turns are equally long in all of these: they are written once, for the longest of the rest.
        short = self._pair("x", "x")
        language, drawn = max(
            product(self.languages, self.drawn),
            key=lambda at: self._paid(generator, self._messages(generator, at[0], at[1], short, short[0])).most_tokens,
        )
        turns = pair * (spec.simulation.user_turns - 1)
        messages = self._messages(generator, language, drawn, turns, pair[0], tells=True)
        steps = (self._paid(generator, messages, step) for step in STEPS_OF[generator.role])
        return max(steps, key=lambda paid: paid.worst_case or 0)

    def _pair(self, utterance: str, answer: str) -> list[dict[str, str]]:
        spec = self.spec
        return [{"speaker": spec.user_role, "text": utterance}, {"speaker": spec.chatbot_role, "text": answer}]

    def _messages(
        self,
        generator: PlanGenerator,
        language: str,
        drawn: Mapping[str, str | int],
        turns: Sequence[Mapping[str, str]],
        utterance: Mapping[str, str],
        *,
        tells: bool = False,
    ) -> Sequence[Message]:
        """The request of a model after these turns: for the next user turn, or for the verdict on it or the answer to
        it, which is this ``utterance``."""
        spec = self.spec
        if generator.role == Role.GENERATOR:
            return answer_messages(spec, language=language, turns=[*turns, utterance])
        if generator.role == Role.UTTERANCE_JUDGE and self.judge is not None:
            said = utterance["text"]
            return self.judge.messages(spec, drawn, language=language, turns=turns, utterance=said)
        told = WIDEST_CHARACTER * LONGEST_TOLD if tells else ""
        problems = LONGEST_PROBLEMS if tells else ()
        return utterance_messages(
            spec, drawn, language=language, turns=turns, utterance=told, problems=problems, feedback=told
        )

    def _paid(self, generator: PlanGenerator, messages: Sequence[Message], step: str = "") -> PaidRequest:
        step, schema = step or STEPS_OF[generator.role][-1], None
        parameters = sampled_parameters(self.spec, step, generator.parameters)
        if generator.role == Role.UTTERANCE_JUDGE and self.judge is not None:
            schema, parameters = self.judge.schema, self.judge.parameters
        return paid_request(
            provider=generator.provider,
            model=generator.model,
            messages=messages,
            schema=schema,
            parameters=parameters,
            price=prices.price(generator, run=generator),
            prices=prices.price_list(generator.provider, run=generator),
            api=endpoints.api_of(generator.provider),
        )


def _forecast_simulation(
    plan: GenerationPlan,
    spec: Spec,
    generators: Sequence[PlanGenerator],
    drawn: Sequence[Mapping[str, str | int]],
) -> GenerationForecast:
    """The forecast of what is left of a simulation: the turns that its conversations may still have."""
    judge = None
    if plan.utterance_judge is not None and plan.utterance_rubric is not None:
        judge = UtteranceJudge(plan.utterance_judge, plan.utterance_rubric)
    sample = _Sample(spec, plan.languages, drawn, judge)
    left = plan.realisations.filter(state__in=[Realisation.State.WAITING, Realisation.State.LEASED]).order_by()
    turns_left = Sum(spec.simulation.user_turns - F("turn"))
    counted = left.values_list("generator").annotate(texts=Count("pk"), turns=turns_left)
    by_writer = {pk: (texts, turns) for pk, texts, turns in counted}
    by_user = dict(left.values_list("simulator").annotate(turns=turns_left))
    accepted = _accepted_turns(plan)
    parts, measured = [], []
    for one in generators:
        texts, turns = by_writer.get(one.pk, (0, 0))
        if one.role != Role.GENERATOR:
            texts, turns = 0, by_user.get(one.pk, 0) if one.role == Role.USER_MODEL else sum(by_user.values())
        replies = _replies_of_role(plan, one, accepted)
        measured.append(replies is not None)
        parts.append(_forecast_role(sample, one, texts=texts, turns=turns, replies=replies))
    return GenerationForecast(generators=parts, is_measured=all(measured))


def _replies_in_ended(plan: GenerationPlan) -> QuerySet[GenerationAttempt]:
    """The replies in conversations that have ended, and in their openings: requests grow with every turn."""
    ended = plan.realisations.filter(state__in=[Realisation.State.WRITTEN, Realisation.State.GIVEN_UP])
    in_ended = Q(realisation__in=ended.values("pk")) | Q(realisation__in=ended.values("opening"))
    return GenerationAttempt.objects.filter(in_ended, outcome=GenerationAttempt.Outcome.REPLIED)


def _accepted_turns(plan: GenerationPlan) -> int:
    """How many user turns were accepted: by the utterance judge, where there is one."""
    steps = (Step.VERDICT,) if plan.utterance_judge_id else STEPS_OF[Role.USER_MODEL]
    return _replies_in_ended(plan).filter(step__in=steps, problems=[]).count()


def _replies_of_role(plan: GenerationPlan, generator: PlanGenerator, accepted: int) -> _Replies | None:
    """What the replies of a model were like in its role; its requests are those for a turn. None if there are few."""
    about = {"provider": generator.provider, "model": generator.model, "step__in": STEPS_OF[generator.role]}
    replied = _replies_in_ended(plan).filter(tokens_out__isnull=False, **about)
    found = replied.aggregate(into=Avg("tokens_in"), out=Avg("tokens_out"), requests=Count("pk"))
    used = accepted if generator.role != Role.GENERATOR else replied.filter(problems=[]).count()
    if found["requests"] < ENOUGH or used < ENOUGH:
        return None
    alike = 1.0
    if generator.role == Role.USER_MODEL:  # each writes its share of the accepted turns
        alike = _replies_in_ended(plan).filter(step__in=STEPS_OF[Role.USER_MODEL]).count() / found["requests"]
    return _Replies(found["requests"] * alike / used, found["into"] or 0.0, found["out"] or 0.0)


def _forecast_role(
    sample: _Sample, generator: PlanGenerator, *, texts: int, turns: int, replies: _Replies | None
) -> GeneratorForecast:
    """The requests of one model of a simulation for so many user turns."""
    rules, is_answer = sample.spec.simulation, generator.role == Role.GENERATOR
    if replies is None:
        into = sample.usual(generator).tokens
        replies = _Replies(1.0 if is_answer else TRIES_OF_A_TURN, into, TOKENS_PER_MESSAGE)
    asked = round(turns * replies.requests_per_text)
    tokens_in, tokens_out = round(asked * replies.tokens_in), round(asked * replies.tokens_out)
    price = prices.price(generator, run=generator)
    worst = sample.longest(generator).worst_case
    most_tries = 1 + sample.spec.retries if is_answer else max(rules.first_tries, rules.later_tries)
    if generator.role == Role.UTTERANCE_JUDGE:  # a verdict that can't be read is asked for again
        most_tries *= 1 + sample.spec.retries
    return GeneratorForecast(
        name=generator.name,
        role=generator.role,
        texts=texts,
        requests=asked,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=None if price is None else prices.cost_at(price, tokens_in, tokens_out),
        worst=None if worst is None else worst * turns * most_tries,
    )
