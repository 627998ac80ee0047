"""Questions about a whole item that a rubric may ask besides its criteria. Each is declared once, here. Pure.

The rubric's document and form, the desk with its drafts and revisions, the API, exports and changes of the rubric read
the declaration. The answer of each question is a column of `Draft` and `Annotation` that has the question's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from analytics.stats.declared.declaring import translatable

AskedAs = Literal["none", "optional", "required"]
WholeItemAnswers = Mapping[str, int | None]
"""The answers about one item, by the question's name; None: not asked, or nothing was said."""


@dataclass(frozen=True, slots=True)
class WholeItemQuestion:
    """A question whose answer is a whole number from ``lowest`` to ``highest``; its texts are keys of the catalogues.

    ``name``: the option of rubrics, the columns, and the field of forms, API and exports. ``title`` and ``hint`` are
    for those who write the rubric, the other texts for annotators. ``correction`` is said if the answer is wrong or
    missing, ``not_asked`` if one is sent although the rubric does not ask.
    """

    name: str
    title: str
    hint: str
    question: str
    shortcut: str
    correction: str
    not_asked: str
    lowest: int = 0
    highest: int = 100

    def allows(self, answer: int | None) -> bool:
        """Whether the answer is within the limits; no answer is."""
        return answer is None or self.lowest <= answer <= self.highest


WHOLE_ITEM_QUESTIONS = (
    WholeItemQuestion(
        name="certainty",
        title=translatable("How sure annotators are"),
        hint=translatable("asked for every item, 0 to 100"),
        question=translatable("How sure are you of these scores, from 0 to 100?"),
        shortcut=translatable("Say how sure you are"),
        correction=translatable("Say how sure you are: a whole number from 0 to 100."),
        not_asked=translatable("This rubric does not ask how sure you are."),
    ),
)
WHOLE_ITEM_COLUMNS = tuple(question.name for question in WHOLE_ITEM_QUESTIONS)
NO_ANSWERS: WholeItemAnswers = dict.fromkeys(WHOLE_ITEM_COLUMNS)


def item_answers(record: Mapping[str, Any] | object) -> dict[str, int | None]:
    """The answers about the item that a draft, an annotation or a mapping has."""
    read = record.get if isinstance(record, Mapping) else lambda name: getattr(record, name)
    return {name: read(name) for name in WHOLE_ITEM_COLUMNS}


def asked_as(document: Mapping[str, Any]) -> dict[str, AskedAs]:
    """How a rubric's document asks each question."""
    return {name: document.get(name, "none") for name in WHOLE_ITEM_COLUMNS}
