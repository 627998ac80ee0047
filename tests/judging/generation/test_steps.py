"""How a simulated conversation goes on after a reply: what the judge said holds until a try is accepted."""

from __future__ import annotations

from judging.generation import steps
from judging.generation.drawing import draw_parameters
from judging.generation.specs import preset
from judging.generation.steps import NO_VERDICT, REFUSED_BY_JUDGE, StepProgress
from judging.generation.utterance_judge import UtteranceVerdict
from judging.models import GenerationFamily, GenerationPlan, Realisation

SPEC = preset("simulated-users")
SAID = "The message sounds like an advertisement, and it gives advice."
ALSO = "The person would hardly thank for an answer that has not come."
DRAFT = "My phone fell into the sink and won't turn on."


def _row(progress: StepProgress | None = None) -> Realisation:
    plan = GenerationPlan(spec=SPEC.stored)
    family = GenerationFamily(plan=plan, number=1, parameters=draw_parameters(SPEC, seed=3, number=1))
    row = Realisation(plan=plan, family=family, language="en", is_opening=True, step="utterance")
    if progress:
        row.step, row.draft, row.refused_tries = progress.step, progress.draft, progress.refused_tries
        row.problems = progress.stored_problems
    return row


def _uttered(row: Realisation, utterance: str) -> tuple[StepProgress, list[str]]:
    progress, problems = steps.after_utterance(SPEC, row, utterance=utterance, finish_reason="stop", has_judge=True)
    return progress, [problem.code for problem in problems]


def _refused(row: Realisation, feedback: str) -> StepProgress:
    verdict = UtteranceVerdict("refused", feedback=feedback)
    return steps.after_verdict(SPEC, row, verdict)[0]


def test_feedback_stays_after_the_guard_refuses_the_next_try() -> None:
    judged, _codes = _uttered(_row(), DRAFT)
    refused = _refused(_row(judged), SAID)
    stopped, codes = _uttered(_row(refused), "Assistant: Dry it.")
    assert "inverted_role" in codes
    assert [problem.code for problem in stopped.problems] == [REFUSED_BY_JUDGE, *codes]
    assert _uttered(_row(stopped), f"Well. {SAID}")[1] == ["leaked_rubric"]


def test_feedback_of_every_try_stays_until_one_is_accepted() -> None:
    first = _refused(_row(_uttered(_row(), DRAFT)[0]), SAID)
    second = _refused(_row(_uttered(_row(first), DRAFT)[0]), ALSO)
    assert [problem.values["feedback"] for problem in second.problems] == [SAID, ALSO]
    assert _uttered(_row(second), f"Well. {SAID}")[1] == _uttered(_row(second), f"Well. {ALSO}")[1] == ["leaked_rubric"]
    judged, _codes = _uttered(_row(second), DRAFT)
    unread = [steps.after_verdict(SPEC, _row(judged), UtteranceVerdict("unread"))[0]]
    for _number in range(SPEC.retries):
        unread.append(steps.after_verdict(SPEC, _row(unread[-1]), UtteranceVerdict("unread"))[0])
    assert [one.state for one in unread] == [*["waiting"] * SPEC.retries, "given_up"], "feedback is no unread verdict"
    assert [problem.code for problem in unread[0].problems] == [REFUSED_BY_JUDGE, REFUSED_BY_JUDGE, NO_VERDICT]
    accepted = steps.after_verdict(SPEC, _row(unread[0]), UtteranceVerdict("accepted"))[0]
    assert (accepted.state, list(accepted.problems)) == ("written", [])
