"""A small simulation as rows: what tests of its pages begin with, without a provider."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from judging.generation.drawing import draw_parameters
from judging.generation.specs import preset
from judging.models import GenerationAttempt, GenerationFamily, GenerationPlan, PlanGenerator, Realisation
from tests.cast import Cast

BOTS, SIMULATED_USERS = ("atlas “1”", "Bábel"), ("Mängija", "لاعب")
LANGUAGES = ("et", "ar")
TURN_TEXTS = {
    "et": ["Mu koer jooksis eile minema ja ma ei maganud.", "Kas ta on varem ära jooksnud?", "Ei, ei iial!", "Loodan."],
    "ar": ["هرب كلبي أمس ولم أنم أبدا.", "هل هرب من قبل؟", "لا، أبدا!", "أتمنى ذلك."],
}  # fmt: skip
FAULTS = {0: "mixed_language", 1: "role_confusion"}
"""By number of family: the fault for which the engine set the conversations of the first chatbot aside."""


def simulated_plan(cast: Cast, *, families: int = 4, name: str = "Vestlused “1” – محادثات") -> GenerationPlan:
    """Conversations of two user models with two chatbots in two languages, all written; in the first two families those
    of the first chatbot are set aside. Every opening was refused once by the guard and once by the judge."""
    spec = preset("simulated-users")
    plan = GenerationPlan.objects.create(
        project=cast.kassa, name=name, spec=spec.stored, spec_digest=spec.digest, languages=list(LANGUAGES),
        families_planned=families, seed=3, state=GenerationPlan.State.RUNNING, only_examples=False,
    )  # fmt: skip
    roles = [*((bot, "generator") for bot in BOTS), *((user, "user_model") for user in SIMULATED_USERS)]
    models = [
        PlanGenerator.objects.create(
            plan=plan, position=position, name=called, role=role, provider="simulated", model=called
        )
        for position, (called, role) in enumerate(roles)
    ]
    for number in range(1, families + 1):
        drawn = draw_parameters(spec, seed=plan.seed, number=number)
        family = GenerationFamily.objects.create(plan=plan, number=number, parameters=drawn)
        for language in LANGUAGES:
            for user in models[2:]:
                opening = Realisation.everything.create(
                    plan=plan, family=family, language=language, generator=user, is_opening=True, state="written",
                    turns=_turns(language, 1),
                )  # fmt: skip
                _opening_attempts(opening, language)
                for bot in models[:2]:
                    _conversation(plan, family, language, bot, user, opening)
    return plan


def _turns(language: str, count: int) -> list[dict[str, str]]:
    return [
        {"speaker": ("user", "assistant")[place % 2], "text": text}
        for place, text in enumerate(TURN_TEXTS[language][:count])
    ]


def _attempt(row: Realisation, number: int, step: str, turn: int, text: str, **more: Any) -> None:
    GenerationAttempt.objects.create(
        realisation=row, number=number, step=step, turn=turn, text=text, outcome="replied", provider="simulated",
        model="m", cost=Decimal("0.0010"), tokens_in=10, tokens_out=5, latency=0.2,
        request={"messages": [{"role": "user", "content": f"Request {step} {number}"}]}, **more,
    )  # fmt: skip


def _opening_attempts(opening: Realisation, language: str) -> None:
    first = TURN_TEXTS[language][0]
    guard = [{"code": "stop_mark", "values": {}}]
    judge = [{"code": "refused_by_judge", "values": {"feedback": "Nobody writes “Dear chatbot” <b>."}}]
    _attempt(opening, 1, "opening", 0, "<think>Ma olen kasutaja</think>", problems=guard)
    _attempt(opening, 2, "opening", 0, "Kallis juturobot!")
    _attempt(opening, 3, "verdict", 0, "Kallis juturobot!", problems=judge)
    _attempt(opening, 4, "opening", 0, first)
    _attempt(opening, 5, "verdict", 0, first)


def _conversation(
    plan: GenerationPlan, family: GenerationFamily, language: str, bot: PlanGenerator, user: PlanGenerator,
    opening: Realisation,
) -> None:  # fmt: skip
    fault = FAULTS.get(family.number - 1) if bot.position == 0 else None
    aside = {
        "ended": "set_aside", "decision": "set_aside", "decision_reason": fault,
        "problems": [{"code": fault, "values": {}}],
    } if fault else {"ended": "stopped"}  # fmt: skip
    row = Realisation.objects.create(
        plan=plan, family=family, language=language, generator=bot, simulator=user, opening=opening, state="written",
        step="answer", turn=1, turns=_turns(language, 4), **aside,
    )  # fmt: skip
    _attempt(row, 1, "answer", 0, "")
    _attempt(row, 2, "utterance", 1, TURN_TEXTS[language][2])
    _attempt(row, 3, "verdict", 1, TURN_TEXTS[language][2])
    _attempt(row, 4, "answer", 1, "")
