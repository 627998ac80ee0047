"""What an annotator answered, criterion by criterion, held against the rubric. Reads nothing from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.refusals import Refused
from annotation.models import Criterion
from annotation.rationales import count_words, words_needed

Status = Literal["scored", "na", "stopped"]
LONGEST_RATIONALE = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """One criterion's answer; ``scored`` without a score is one not given yet."""

    score: float | None = None
    status: Status = "scored"
    rationale: str = ""

    @property
    def is_given(self) -> bool:
        return self.score is not None or self.status != "scored"


def complete(criteria: Sequence[Criterion], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """One answer per criterion, by key: what is blank behind a critical mark becomes ``stopped``.

    Raises ``Refused`` with every problem at once, by the criterion's key.
    """
    given = {criterion.key: answers.get(criterion.key, Answer()) for criterion in criteria}
    stopped = any(is_stop(criterion, given[criterion.key]) for criterion in criteria)
    if stopped:
        given = {key: answer if answer.is_given else Answer(status="stopped") for key, answer in given.items()}
    problems = {criterion.key: problem(criterion, given[criterion.key], stopped) for criterion in criteria}
    problems |= {key: _("This criterion is not part of this duty.") for key in answers.keys() - given.keys()}
    wrong = {key: sentence for key, sentence in problems.items() if sentence}
    if wrong:
        raise Refused(_("Some criteria need a correction."), code="invalid", fields=wrong)
    return {key: replace(answer, rationale=answer.rationale.strip()) for key, answer in given.items()}


def worst(criterion: Criterion) -> float | None:
    """The end of the scale away from the best, or None where neither end is better."""
    return {"higher_is_better": criterion.minimum, "lower_is_better": criterion.maximum}.get(criterion.direction)


def is_stop(criterion: Criterion, answer: Answer) -> bool:
    """Whether this answer is a critical mark, which stops the rest of the assignment."""
    return criterion.is_critical and answer.score is not None and answer.score == worst(criterion)


def problem(criterion: Criterion, answer: Answer, stopped: bool) -> str:
    """What is wrong with one answer, as a sentence that says what to do; empty when nothing is."""
    return _score_problem(criterion, answer, stopped) or _rationale_problem(criterion, answer)


def _score_problem(criterion: Criterion, answer: Answer, stopped: bool) -> str:
    if answer.status == "stopped":
        return "" if stopped else _("Give a score: this item was not stopped by a critical mark.")
    if answer.status == "na":
        return "" if criterion.not_applicable else _("N/A is not available for this criterion. Give a score.")
    if answer.score is None:
        return _("Give a score, or N/A.") if criterion.not_applicable else _("Give a score.")
    return "" if criterion.is_on_scale(answer.score) else _("The score is not on the scale.")


def _rationale_problem(criterion: Criterion, answer: Answer) -> str:
    if len(answer.rationale) > LONGEST_RATIONALE:
        return _("Shorten the rationale to %(most)d characters.") % {"most": LONGEST_RATIONALE}
    if criterion.rationale_rule == Criterion.RationaleRule.NEVER:
        return _("This criterion has no rationale. Leave it empty.") if answer.rationale.strip() else ""
    return _length_problem(criterion, answer)


def _length_problem(criterion: Criterion, answer: Answer) -> str:
    needed = words_needed(
        rule=criterion.rationale_rule, minimum=criterion.rationale_words, score=answer.score, best=criterion.best
    )
    written = count_words(answer.rationale)
    if written >= needed:
        return ""
    sentence = ngettext(
        "Write the rationale: at least %(needed)d word. So far: %(written)d.",
        "Write the rationale: at least %(needed)d words. So far: %(written)d.",
        needed,
    )
    return sentence % {"needed": needed, "written": written}
