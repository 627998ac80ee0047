"""The answer to one criterion and its rules: when answers are complete, and what a rationale must be. Only
`note_rules_kept` uses the database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Criterion, Rating
from annotation.readers import MOST_SPANS, InvalidValue, Span, as_spans
from annotation.whole_item import WHOLE_ITEM_QUESTIONS, AskedAs, WholeItemAnswers

Status = Literal["scored", "na", "stopped"]
LONGEST_RATIONALE = 10_000
UPDATED_TOGETHER = 500
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han. A word has about two letters there.
_UNSPACED_LETTER = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_SPACED_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one criterion; status ``scored`` without a score means that there is no answer yet."""

    score: float | None = None
    status: Status = "scored"
    rationale: str = ""
    evidence: tuple[Span, ...] = ()

    @property
    def is_given(self) -> bool:
        return self.score is not None or self.status != "scored"


def complete(criteria: Sequence[Criterion], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Check the answers, and return one per criterion, by key; after a critical mark, missing ones are ``stopped``.

    Raises ``Refused`` with all problems, by the criterion's key.
    """
    completed = {criterion.key: answers.get(criterion.key, Answer()) for criterion in criteria}
    stopped = any(is_stop(criterion, completed[criterion.key]) for criterion in criteria)
    if stopped:
        completed = {key: answer if answer.is_given else Answer(status="stopped") for key, answer in completed.items()}
    problems = {criterion.key: problem(criterion, completed[criterion.key], stopped) for criterion in criteria}
    problems |= {key: _("This criterion is not part of this task.") for key in answers.keys() - completed.keys()}
    wrong = {key: sentence for key, sentence in problems.items() if sentence}
    if wrong:
        raise Refused(_("Some criteria need a correction."), code="invalid", fields=wrong)
    return {key: replace(answer, rationale=answer.rationale.strip()) for key, answer in completed.items()}


def check_about_item(asked: Mapping[str, AskedAs], about_item: WholeItemAnswers) -> None:
    """Refuse answers about the item that are out of their limits, missing though required, or not asked for."""
    wrong = {}
    for question in WHOLE_ITEM_QUESTIONS:
        how, answer = asked[question.name], about_item.get(question.name)
        if answer is not None and how == "none":
            wrong[question.name] = _(question.not_asked)
        elif (answer is None and how == "required") or not question.allows(answer):
            wrong[question.name] = _(question.correction)
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)


def worst(criterion: Criterion) -> float | None:
    """The worst point of the scale; None if neither direction is better."""
    return {"higher_is_better": criterion.minimum, "lower_is_better": criterion.maximum}.get(criterion.direction)


def is_stop(criterion: Criterion, answer: Answer) -> bool:
    """Whether the answer is a critical mark: it stops the rest of the assignment."""
    return criterion.is_critical and answer.score is not None and answer.score == worst(criterion)


def problem(criterion: Criterion, answer: Answer, stopped: bool) -> str:
    """The problem of one answer, as a sentence that says what to do; "" if there is none."""
    return (
        _score_problem(criterion, answer, stopped)
        or rationale_problem(criterion, answer)
        or evidence_problem(criterion, answer)
    )


def _score_problem(criterion: Criterion, answer: Answer, stopped: bool) -> str:
    if answer.status == "stopped":
        return "" if stopped else _("Give a score: this item was not stopped by a critical mark.")
    if answer.status == "na":
        return "" if criterion.not_applicable else _("N/A is not available for this criterion. Give a score.")
    if answer.score is None:
        return _("Give a score, or N/A.") if criterion.not_applicable else _("Give a score.")
    return "" if criterion.is_on_scale(answer.score) else _("The score is not on the scale.")


def rationale_problem(criterion: Criterion, answer: Answer) -> str:
    """How the answer's rationale breaks the rule of its criterion, as a sentence; "" if it follows the rule."""
    if len(answer.rationale) > LONGEST_RATIONALE:
        return _("Shorten the rationale to %(most)d characters.") % {"most": LONGEST_RATIONALE}
    if criterion.rationale_rule == Criterion.RationaleRule.NEVER:
        return _("This criterion has no rationale. Leave it empty.") if answer.rationale.strip() else ""
    return _length_problem(criterion, answer)


def note_rules_kept(user: User, project: Project | None = None) -> None:
    """For every rationale of a person, store whether it follows its rule, before `panels.redact` erases it."""
    own = Rating.objects.filter(annotation__annotator__user=user, score__isnull=False).exclude(rationale="")
    if project is not None:
        own = own.filter(annotation__annotator__project=project)
    kept: dict[bool, list[int]] = {True: [], False: []}
    for rating in own.select_related("criterion").iterator():
        problem = rationale_problem(rating.criterion, Answer(score=rating.score, rationale=rating.rationale))
        kept[not problem].append(rating.pk)
    for rule_kept, keys in kept.items():
        for start in range(0, len(keys), UPDATED_TOGETHER):
            Rating.objects.filter(pk__in=keys[start : start + UPDATED_TOGETHER]).update(rule_kept=rule_kept)


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


def count_words(text: str) -> int:
    """The number of words; in scripts without spaces, half the number of letters, rounded up."""
    unspaced = len(_UNSPACED_LETTER.findall(text))
    spaced = _SPACED_WORD.findall(_UNSPACED_LETTER.sub(" ", _bare(text)))
    return len(spaced) + -(-unspaced // 2)


def _bare(text: str) -> str:
    """The text without vowel signs, accents and joiners: they are parts of words, but `re` does not see letters."""
    return "".join(char for char in text if unicodedata.category(char) not in ("Mn", "Mc", "Me", "Cf"))


def words_needed(*, rule: str, minimum: int, score: float | None, best: float | None) -> int:
    """The number of words that ``rule`` requires for ``score``: 0 for N/A, at most 1 for the best point."""
    if score is None or rule not in ("required", "required_except_best"):
        return 0
    if score == best:
        return 1 if rule == "required" else 0
    return max(1, minimum)


def evidence_problem(criterion: Criterion, answer: Answer) -> str:
    """How the answer's evidence breaks the rule of its criterion, as a sentence; "" if it follows the rule."""
    if criterion.evidence_rule == Criterion.EvidenceRule.NONE:
        return _("This criterion takes no evidence. Remove the marked text.") if answer.evidence else ""
    if len(answer.evidence) > MOST_SPANS:
        return _("Mark at most %(most)d passages for one criterion.") % {"most": MOST_SPANS}
    needs_one = criterion.evidence_rule == Criterion.EvidenceRule.REQUIRED
    if needs_one and not answer.evidence and answer.score is not None and answer.score != criterion.best:
        return _("Mark the text that explains this score.")
    return ""


def posted_spans(key: str, given: Iterable[Any]) -> tuple[Span, ...]:
    """The spans of a form or a request for one criterion. Raises ``Refused`` for an invalid span."""
    try:
        return tuple(dict.fromkeys(span for entry in given for span in as_spans(entry)))
    except InvalidValue:
        sentence = _("The marked text can't be read. Remove it and mark the text again.")
        raise Refused(sentence, code="invalid", fields={key: sentence}) from None
