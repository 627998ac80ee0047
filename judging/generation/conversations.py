"""Simulated conversations as people look at them: turn by turn with every try, and how many were set aside, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Count

from judging.generation.steps import REFUSED_BY_JUDGE
from judging.models import GenerationAttempt, GenerationPlan, Realisation

BY_READER = "set_aside_by_reader"
"""Used instead of a fault's code if a person set the conversation aside."""
Step = Realisation.Step


@dataclass(slots=True)
class UserTurnTry:
    """One request for a user turn, and the requests for the verdict on it."""

    attempt: GenerationAttempt
    verdicts: list[GenerationAttempt] = field(default_factory=list)

    @property
    def is_refused_by_guard(self) -> bool:
        return bool(self.attempt.problems)

    @property
    def refusal(self) -> GenerationAttempt | None:
        """The verdict that refused the turn."""
        refused = (each for each in self.verdicts if any(one["code"] == REFUSED_BY_JUDGE for one in each.problems))
        return next(refused, None)

    @property
    def feedback(self) -> str:
        """The judge's reasons for refusing the turn, as they are sent to the user model."""
        problems = self.refusal.problems if self.refusal else ()
        return " ".join(str(one["values"].get("feedback", "")) for one in problems if one["code"] == REFUSED_BY_JUDGE)

    @property
    def is_refused(self) -> bool:
        return self.is_refused_by_guard or self.refusal is not None


@dataclass(slots=True)
class ConversationTurn:
    """One turn of the user with the answer to it, and everything that was asked for them. ``is_shared``: the turn is
    that of the opening, which the conversations with all chatbots begin with."""

    number: int
    user: str = ""
    answer: str = ""
    is_shared: bool = False
    tries: list[UserTurnTry] = field(default_factory=list)
    answers: list[GenerationAttempt] = field(default_factory=list)

    @property
    def attempts(self) -> list[GenerationAttempt]:
        return [*(one for each in self.tries for one in (each.attempt, *each.verdicts)), *self.answers]

    @property
    def refused(self) -> int:
        """Tries of the user turn that were refused."""
        return sum(each.is_refused for each in self.tries)

    @property
    def cost(self) -> Decimal | None:
        costs = [each.cost for each in self.attempts if each.cost is not None]
        return sum(costs, Decimal(0)) if costs else None


def conversation_turns(text: Realisation) -> list[ConversationTurn]:
    """A conversation turn by turn. The requests for its first user turn are those of its opening."""
    own: Iterable[GenerationAttempt] = text.attempts.order_by("number")
    opening: Iterable[GenerationAttempt] = text.opening.attempts.order_by("number") if text.opening else ()
    turns: dict[int, ConversationTurn] = defaultdict(lambda: ConversationTurn(0))
    for attempt in (*opening, *own):
        turn = turns[attempt.turn]
        if attempt.step == Step.ANSWER:
            turn.answers.append(attempt)
        elif attempt.step == Step.VERDICT and turn.tries:
            turn.tries[-1].verdicts.append(attempt)
        else:
            turn.tries.append(UserTurnTry(attempt))
    for place, said in enumerate(text.turns):
        turn = turns[place // 2]
        if place % 2:
            turn.answer = said["text"]
        else:
            turn.user = said["text"]
    for number, turn in turns.items():
        turn.number, turn.is_shared = number + 1, number == 0 and text.opening is not None
    return [turns[number] for number in sorted(turns)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideCounts:
    """The conversations in one language by one generator: how many are written, and set aside by reason."""

    language: str
    generator: str
    written: int
    by_code: Mapping[str, int]

    @property
    def set_aside(self) -> int:
        return sum(self.by_code.values())


def set_aside_code(text: Realisation) -> str:
    """Why a text is set aside, as a code; empty if it is not."""
    if text.decision != Realisation.Decision.SET_ASIDE:
        return ""
    if text.ended == Realisation.Ended.SET_ASIDE and text.problems and text.decided_by_id is None:
        return str(text.problems[0]["code"])
    return BY_READER


def set_aside_counts(plan: GenerationPlan) -> Sequence[SetAsideCounts]:
    """Count the texts that are set aside, by reason, for each language and generator in the order of the plan."""
    written = plan.realisations.filter(state=Realisation.State.WRITTEN).order_by()
    cells = {
        (language, name): count
        for language, name, count in written.values_list("language", "generator__name").annotate(Count("pk"))
    }
    aside: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rows = written.filter(decision=Realisation.Decision.SET_ASIDE).select_related("generator")
    for text in rows.only("plan", "language", "generator__name", "decision", "decided_by", "ended", "problems"):
        aside[text.language, text.generator.name][set_aside_code(text)] += 1
    return [
        SetAsideCounts(
            language=language,
            generator=writer.name,
            written=cells[language, writer.name],
            by_code=dict(aside[language, writer.name]),
        )
        for language in plan.languages
        for writer in plan.writers
        if (language, writer.name) in cells
    ]
