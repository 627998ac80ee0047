"""How a simulated conversation goes on after a reply: the next step, or the end. Pure.

A user turn is written by the user model, looked at by the reply guard and then by the utterance judge, if there is one.
If either refuses it, the user model is told why and asked again, up to the limit of the spec. A chatbot's answer is
used unchanged: it is asked again only if it gave no answer, without a reason. Faults of an answer that a rater would
count against the simulation, and not against the chatbot, set the conversation aside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from accounts.inputs import storable, storable_value
from judging.generation.guard import SETS_ASIDE, guard_answer, guard_conversation, guard_utterance
from judging.generation.messages import WritingProblem
from judging.generation.specs import Spec
from judging.generation.user_agent import ends_conversation, without_stop
from judging.generation.utterance_judge import UtteranceVerdict
from judging.models import Realisation

LONGEST_DRAFT: Final = 20_000
"""Characters of an utterance that are kept; a longer one is refused."""
REFUSED_BY_JUDGE: Final = "refused_by_judge"
"""The code of a problem with the feedback of the utterance judge."""
NO_VERDICT: Final = "no_verdict"
State, Step, Ended = Realisation.State, Realisation.Step, Realisation.Ended
Turns = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """Where a conversation stands after a reply: the values of its row. ``is_discarded``: the reply was not used."""

    state: str = State.WAITING
    step: str
    turn: int
    turns: Turns
    draft: str = ""
    refused_tries: int = 0
    ended: str = Ended.NONE
    problems: Sequence[WritingProblem] = field(default_factory=tuple)
    reason: str = ""
    is_discarded: bool = False

    @property
    def stored_problems(self) -> list[dict[str, Any]]:
        """The problems as JSON that a database can store; they quote text of a model, which may contain any
        character."""
        return [storable_value(problem.stored) for problem in self.problems]


def first_step(*, has_opening: bool) -> str:
    """The step of a row that is planned: an opening is asked for at once, a conversation waits for its opening."""
    return Step.OPENING if has_opening else Step.UTTERANCE


def after_opening(opening: StepProgress) -> StepProgress:
    """A conversation begins with the turn of its opening. If the opening failed, the conversation ends for the same
    reason."""
    if opening.state == State.WRITTEN:
        return StepProgress(step=Step.ANSWER, turn=0, turns=opening.turns)
    return StepProgress(
        state=opening.state, step=Step.OPENING, turn=0, turns=(), ended=opening.ended, reason=opening.reason
    )


def after_utterance(
    spec: Spec, row: Realisation, *, utterance: str, finish_reason: str, has_judge: bool
) -> tuple[StepProgress, Sequence[WritingProblem]]:
    """After an utterance: what the reply guard lets pass is judged, if there is a judge. Also the guard's problems."""
    judged = _judged(row)
    problems = guard_utterance(
        spec,
        row.family.parameters,
        language=row.language,
        turns=row.turns,
        utterance=utterance,
        finish_reason=finish_reason,
        told=[str(problem.values["feedback"]) for problem in judged],
    )
    draft = storable(utterance.strip())[:LONGEST_DRAFT]
    if problems:
        return _refused(spec, row, draft, problems, judged), problems
    if not without_stop(spec, draft):  # only the stop mark: there is no text to judge
        return _ended(spec, row, row.turns, Ended.STOPPED), ()
    if has_judge:
        return (
            StepProgress(
                step=Step.VERDICT,
                turn=row.turn,
                turns=row.turns,
                draft=draft,
                refused_tries=row.refused_tries,
                problems=judged,
            ),
            (),
        )
    return _accepted(spec, row, draft), ()


def after_verdict(
    spec: Spec, row: Realisation, verdict: UtteranceVerdict
) -> tuple[StepProgress, Sequence[WritingProblem]]:
    """After a verdict on the draft; one that can't be read is asked for again. Also why it is not accepted."""
    if verdict.state == "accepted":
        return _accepted(spec, row, row.draft), ()
    if verdict.state == "refused":
        problems = [WritingProblem(REFUSED_BY_JUDGE, {"feedback": verdict.feedback})]
        return _refused(spec, row, row.draft, problems, _judged(row)), problems
    unread = WritingProblem(NO_VERDICT)
    so_far = [*(WritingProblem(problem["code"], problem["values"]) for problem in row.problems), unread]
    is_last = sum(problem.code == NO_VERDICT for problem in so_far) > spec.retries
    again = StepProgress(
        state=State.GIVEN_UP if is_last else State.WAITING,
        step=Step.VERDICT,
        turn=row.turn,
        turns=row.turns,
        draft=row.draft,
        refused_tries=row.refused_tries,
        problems=so_far,
        reason=NO_VERDICT if is_last else "",
        is_discarded=True,
    )
    return again, [unread]


def after_answer(
    spec: Spec, row: Realisation, *, answer: str, finish_reason: str
) -> tuple[StepProgress, Sequence[WritingProblem]]:
    """After a chatbot's answer: the next user turn, or the end. Also the guard's problems."""
    text = storable(answer.strip())
    problems = guard_answer(spec, language=row.language, turns=row.turns, answer=answer, finish_reason=finish_reason)
    if problems and not any(problem.code in SETS_ASIDE for problem in problems):
        tries = row.refused_tries + 1
        is_last = tries > spec.retries
        again = StepProgress(
            state=State.GIVEN_UP if is_last else State.WAITING,
            step=Step.ANSWER,
            turn=row.turn,
            turns=row.turns,
            refused_tries=tries,
            problems=problems,
            reason=_codes(problems) if is_last else "",
            is_discarded=True,
        )
        return again, problems
    turns = [*row.turns, {"speaker": spec.chatbot_role, "text": text}]
    if problems:
        return _set_aside(row, turns, problems), problems
    if row.turn + 1 >= spec.simulation.user_turns:
        return _ended(spec, row, turns, Ended.USER_TURNS), ()
    return StepProgress(step=Step.UTTERANCE, turn=row.turn + 1, turns=turns), ()


def _judged(row: Realisation) -> list[WritingProblem]:
    """What the judge said about the tries of this turn so far, each sentence once. It is sent with every new try until
    one is accepted."""
    said = (str(one["values"].get("feedback", "")) for one in row.problems if one["code"] == REFUSED_BY_JUDGE)
    return [WritingProblem(REFUSED_BY_JUDGE, {"feedback": feedback}) for feedback in dict.fromkeys(said) if feedback]


def _refused(
    spec: Spec,
    row: Realisation,
    draft: str,
    problems: Sequence[WritingProblem],
    judged: Sequence[WritingProblem],
) -> StepProgress:
    """The utterance is asked for again, with what was wrong with it and what the judge said about earlier tries; after
    the last try the conversation ends."""
    tries = row.refused_tries + 1
    if tries < spec.simulation.most_tries(row.turn):
        return StepProgress(
            step=Step.UTTERANCE,
            turn=row.turn,
            turns=row.turns,
            draft=draft,
            refused_tries=tries,
            problems=[*judged, *problems],
            is_discarded=True,
        )
    if not row.is_opening and row.turn >= spec.simulation.least_user_turns:
        return _ended(spec, row, row.turns, Ended.TOO_MANY_REFUSALS, is_discarded=True)
    return StepProgress(
        state=State.GIVEN_UP,
        step=Step.UTTERANCE,
        turn=row.turn,
        turns=row.turns,
        draft=draft,
        refused_tries=tries,
        ended=Ended.TOO_MANY_REFUSALS,
        problems=problems,
        reason=_codes(problems),
        is_discarded=True,
    )


def _accepted(spec: Spec, row: Realisation, draft: str) -> StepProgress:
    """The draft is the next turn; the chatbot answers it, unless the user ends the conversation with it."""
    turns = [*row.turns, {"speaker": spec.user_role, "text": without_stop(spec, draft)}]
    if row.is_opening:
        return StepProgress(state=State.WRITTEN, step=row.step, turn=0, turns=turns)
    if ends_conversation(spec, draft):
        return _ended(spec, row, turns, Ended.STOPPED)
    return StepProgress(step=Step.ANSWER, turn=row.turn, turns=turns)


def _ended(spec: Spec, row: Realisation, turns: Turns, ended: str, *, is_discarded: bool = False) -> StepProgress:
    """The conversation has ended. It is set aside if a check of the whole conversation finds faults."""
    if problems := guard_conversation(spec, language=row.language, turns=turns):
        return _set_aside(row, turns, problems)
    return StepProgress(
        state=State.WRITTEN, step=row.step, turn=row.turn, turns=turns, ended=ended, is_discarded=is_discarded
    )


def _set_aside(row: Realisation, turns: Turns, problems: Sequence[WritingProblem]) -> StepProgress:
    return StepProgress(
        state=State.WRITTEN,
        step=row.step,
        turn=row.turn,
        turns=turns,
        ended=Ended.SET_ASIDE,
        problems=problems,
        reason=_codes(problems),
    )


def _codes(problems: Sequence[WritingProblem]) -> str:
    return ", ".join(dict.fromkeys(problem.code for problem in problems))[:400]
