"""What an annotator sees: the item without its origin, and the duty's criteria in the item's language.

Blindness: generator, scenario, ids, attributes, judges and other people's ratings must never be added here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import languages
from annotation.blinding import CANDIDATES, heading_of, lay_out
from annotation.desk import pairs
from annotation.desk.answers import Answer
from annotation.desk.markup import MARKDOWN, formatted
from annotation.models import Criterion, Item
from annotation.readers import Span
from annotation.whole_item import WHOLE_ITEM_QUESTIONS, AskedAs, WholeItemAnswers

# The speakers who are usually not rated; their turns are shown on the opposite side.
ASKING = frozenset({"user", "customer", "client", "human", "caller", "patient", "student"})
ANYBODY = frozenset({"", "any"})
MOST_POINTS = 10
WORDED = ("name", "question", "definition", "mark_if", "dont_mark_if", "examples")
"""The parts of a criterion that are texts by language."""
KNOWN_NAMES = {
    "user": gettext_lazy("User"),
    "customer": gettext_lazy("Customer"),
    "client": gettext_lazy("Client"),
    "human": gettext_lazy("Person"),
    "agent": gettext_lazy("Agent"),
    "assistant": gettext_lazy("Assistant"),
    "system": gettext_lazy("System"),
    "context": gettext_lazy("Context"),
    "question": gettext_lazy("Question"),
    "source": gettext_lazy("Source"),
    "document": gettext_lazy("Document"),
    "passages": gettext_lazy("Passages"),
    "passage_a": gettext_lazy("Passage A"),
    "passage_b": gettext_lazy("Passage B"),
    "answer": gettext_lazy("Answer"),
    "reference": gettext_lazy("Reference"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnShown:
    number: int
    part: str
    returns: str
    speaker: str
    speaker_label: str
    side: Literal["start", "end"]
    rated: bool
    text: str
    formatted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShown:
    name: str
    label: str
    part: str
    returns: str
    text: str
    formatted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShown:
    title: str
    language: str
    language_name: str
    direction: str
    brief: str
    brief_part: str
    brief_returns: str
    content_warning: str
    turns: tuple[TurnShown, ...]
    fields: tuple[FieldShown, ...]
    pair: tuple[FieldShown, ...] = ()

    @property
    def all_fields(self) -> tuple[FieldShown, ...]:
        """The fields, and the two candidates in the order in which they are shown."""
        return self.fields + self.pair


@dataclass(frozen=True, slots=True, kw_only=True)
class PointShown:
    value: float
    digit: str
    label: str
    text: str
    reason: str
    label_tag: str = ""
    text_tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeShown:
    min: float
    max: float
    step: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RationaleShown:
    rule: str
    min_words: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleShown:
    text: str
    score: float | None
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanShown:
    """A marked text: ``written`` is what the form posts, ``where`` the turn or field as the page calls it, ``note`` the
    kind and severity of an imported error."""

    written: str
    where: str
    quote: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShown:
    score: float | None
    na: bool
    rationale: str
    evidence: tuple[SpanShown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionShown:
    key: str
    number: int
    name: str
    question: str
    definition: str
    allows_na: bool
    speaker_label: str
    points: tuple[PointShown, ...]
    numeric: RangeShown | None
    rationale: RationaleShown
    evidence: str
    best: float | None
    critical: bool
    pairwise: bool
    mark_if: tuple[str, ...]
    dont_mark_if: tuple[str, ...]
    examples: tuple[ExampleShown, ...]
    answer: AnswerShown
    tags: Mapping[str, str]
    """Map each part of the criterion to the language of its text: that of the source where there is no translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionShown:
    """An earlier version of the annotator's own scores: for each criterion its name, what was given, the rationale."""

    submitted_at: datetime
    scores: tuple[tuple[str, str, str], ...]


def show_item(
    item: Item, criteria: Sequence[Criterion], layout: Mapping[str, Any] | None = None, swapped: bool | None = None
) -> ItemShown:
    """The item as its dataset's layout shows it; turns that ``criteria`` rate are marked (``rated``).

    ``swapped``: two candidates are compared, and the second one is shown first (`pairs.swapped_for`).
    """
    parts = lay_out(fields=item.fields, turns=item.turns, layout=layout)
    is_markdown = (layout or {}).get("markup") == MARKDOWN
    texts = dict(parts.fields)
    compared = () if swapped is None else CANDIDATES
    return ItemShown(
        title=heading_of(item.title, parts),
        language=item.language,
        language_name=languages.endonym(item.language),
        direction=languages.direction(item.language),
        brief=parts.brief,
        brief_part=f"field:{(layout or {}).get('brief', '')}",
        brief_returns=_returns(parts.brief),
        content_warning=item.content_warning,
        turns=_turns(parts.turns, criteria, is_markdown),
        fields=tuple(
            _field(name, called(name), text, is_markdown) for name, text in parts.fields if name not in compared
        ),
        pair=tuple(
            _field(name, label, texts[name], is_markdown)
            for name, label in zip(reversed(compared) if swapped else compared, candidate_labels(), strict=False)
        ),
    )


def candidate_labels() -> tuple[str, str]:
    """The names of the candidates shown first and second; the names must not depend on the order in the dataset."""
    return _("Text 1"), _("Text 2")


def _field(name: str, label: str, text: str, is_markdown: bool) -> FieldShown:
    return FieldShown(
        name=name,
        label=label,
        part=f"field:{name}",
        returns=_returns(text),
        text=text,
        formatted=formatted(text) if is_markdown else "",
    )


def _turns(
    turns: Sequence[Mapping[str, str]], criteria: Sequence[Criterion], is_markdown: bool
) -> tuple[TurnShown, ...]:
    opposite = ASKING & {turn["speaker"].lower() for turn in turns} or {turn["speaker"].lower() for turn in turns[:1]}
    rated = {criterion.speaker for criterion in criteria}
    return tuple(
        TurnShown(
            number=number,
            part=f"turn:{number - 1}",
            returns=_returns(turn["text"]),
            speaker=turn["speaker"],
            speaker_label=" · ".join(filter(None, (called(turn["speaker"]), turn.get("name")))),
            side="end" if turn["speaker"].lower() in opposite else "start",
            rated=bool(rated & ANYBODY) or turn["speaker"] in rated,
            text=turn["text"],
            formatted=formatted(turn["text"]) if is_markdown else "",
        )
        for number, turn in enumerate(turns, 1)
    )


def _returns(text: str) -> str:
    """The positions of the line ends of two characters (CR LF), in code points of the text with one character for each
    line end. The browser has that text, but offsets of evidence count in the stored text."""
    return " ".join(str(found.start() - place) for place, found in enumerate(re.finditer("\r\n", text)))


def called(name: str) -> str:
    """The name of a speaker or a field as the page shows it: translated if it is known."""
    known = KNOWN_NAMES.get(name.lower())
    return str(known) if known else name.replace("_", " ").strip().capitalize()


def text_language(criteria: Sequence[Criterion], language: str) -> str:
    """The language of the criteria for an item in ``language``: that language if they have it, else a variant of it,
    else the rubric's source language."""
    written = {tag for criterion in criteria for tag in criterion.text.get("name", {})}
    base = language.split("-", maxsplit=1)[0]
    near = sorted(tag for tag in written if tag.split("-")[0] == base)
    source = criteria[0].text.get("source_language", "en") if criteria else "en"
    return next((tag for tag in (language, base, *near) if tag in written), source)


def show_criteria(
    criteria: Sequence[Criterion], language: str, answers: Mapping[str, Answer], swapped: bool | None = None
) -> tuple[CriterionShown, ...]:
    """The criteria in ``language``, in order, with the answers so far (by criterion); ``swapped`` as in `show_item`."""
    return tuple(
        _criterion(criterion, number, language, answers.get(criterion.key, Answer()), swapped)
        for number, criterion in enumerate(criteria, 1)
    )


def show_whole_item_questions(
    asked: Mapping[str, AskedAs], about_item: WholeItemAnswers, errors: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The questions about the whole item that the rubric asks, each with its answer and what is wrong with it."""
    return [
        {
            "name": question.name,
            "question": question.question,
            "shortcut": question.shortcut,
            "correction": question.correction,
            "lowest": question.lowest,
            "highest": question.highest,
            "is_required": asked[question.name] == "required",
            "value": about_item[question.name],
            "error": errors.get(question.name, ""),
        }
        for question in WHOLE_ITEM_QUESTIONS
        if asked[question.name] != "none"
    ]


def show_version(
    submitted_at: datetime,
    criteria: Sequence[Criterion],
    language: str,
    answers: Mapping[str, Answer],
    swapped: bool | None,
) -> VersionShown:
    """Submitted scores in words; what a critical mark stopped is left out."""
    shown = show_criteria([one for one in criteria if one.key in answers], language, answers, swapped)
    return VersionShown(
        submitted_at=submitted_at, scores=tuple((one.name, _given(one), one.answer.rationale) for one in shown)
    )


def answers_beside(
    criteria: Sequence[Criterion],
    language: str,
    stored: Mapping[str, Answer],
    sent: Mapping[str, Answer],
    swapped: bool | None,
) -> list[dict[str, str]]:
    """Map each criterion to what is stored and what was sent, in words with the rationale."""
    sides = (show_criteria(criteria, language, answers, swapped) for answers in (stored, sent))
    return [
        {
            "name": one.name,
            "lang": one.tags["name"],
            "dir": languages.direction(one.tags["name"]),
            "stored": _in_words(one),
            "sent": _in_words(other),
        }
        for one, other in zip(*sides, strict=True)
    ]


def _in_words(shown: CriterionShown) -> str:
    given = _given(shown) if shown.answer.na or shown.answer.score is not None else ""
    quotes = (f"“{span.quote}”" for span in shown.answer.evidence)
    return "\n".join(filter(None, (given, shown.answer.rationale.strip(), *quotes))) or "–"


def _given(shown: CriterionShown) -> str:
    if shown.answer.na or shown.answer.score is None:
        return _("not applicable")
    score = f"{shown.answer.score:g}"
    label = next((point.label for point in shown.points if point.value == shown.answer.score), score)
    return label if shown.pairwise or label == score else f"{score} · {label}"


def _criterion(
    criterion: Criterion, number: int, language: str, answer: Answer, swapped: bool | None
) -> CriterionShown:
    is_pairwise = swapped is not None and pairs.is_preference(criterion)
    points = _candidates(criterion, bool(swapped)) if is_pairwise else _points(criterion, language)
    return CriterionShown(
        key=criterion.key,
        number=number,
        name=criterion.says("name", language) or criterion.key,
        question=criterion.says("question", language) or (_("Which text is better?") if is_pairwise else ""),
        # The definition of a preference says which score means which candidate, in the dataset's order.
        definition="" if is_pairwise else criterion.says("definition", language) or "",
        allows_na=criterion.not_applicable,
        speaker_label="" if criterion.speaker in ANYBODY else called(criterion.speaker),
        points=points,
        numeric=None if points else _range(criterion),
        rationale=RationaleShown(
            rule=criterion.rationale_rule, min_words=criterion.rationale_words, note=_note(criterion, points)
        ),
        evidence=criterion.evidence_rule,
        best=plain_item(criterion.best),
        critical=criterion.is_critical,
        pairwise=is_pairwise,
        mark_if=tuple(criterion.says("mark_if", language) or ()),
        dont_mark_if=tuple(criterion.says("dont_mark_if", language) or ()),
        examples=tuple(
            ExampleShown(
                text=example.get("text", ""), score=plain_item(example.get("score")), comment=example.get("comment", "")
            )
            for example in criterion.says("examples", language) or ()
        ),
        answer=AnswerShown(
            score=plain_item(answer.score),
            na=answer.status == "na",
            rationale=answer.rationale,
            evidence=tuple(show_span(span, swapped) for span in answer.evidence),
        ),
        tags={part: criterion.tag_of(part, language) for part in WORDED},
    )


def _candidates(criterion: Criterion, swapped: bool) -> tuple[PointShown, ...]:
    """The points of a preference in the order of the screen, each with the score that it means in the dataset."""
    first, second = candidate_labels()
    words = {
        pairs.FIRST: ("1", first, _("Text 1 is better")),
        pairs.TIE: ("0", _("Tie"), _("Both are equally good or bad")),
        pairs.SECOND: ("2", second, _("Text 2 is better")),
    }
    ends = pairs.FIRST + pairs.SECOND
    return tuple(
        PointShown(value=whole_item(ends - place if swapped else place), digit=digit, label=label, text=text, reason="")
        for place, (digit, label, text) in words.items()
        if place in pairs.preference_scores(criterion)
    )


def chosen_label(criterion: Criterion, score: float, swapped: bool) -> str:
    """The label of the choice that ``score`` means, as the page shows it; "" if it means no choice."""
    return next((point.label for point in _candidates(criterion, swapped) if point.value == score), "")


def show_span(span: Span, swapped: bool | None = None) -> SpanShown:
    """A marked text as pages show it; ``swapped`` as in `show_item`."""
    compared = dict(zip(reversed(CANDIDATES) if swapped else CANDIDATES, candidate_labels(), strict=True))
    field = compared.get(span.field, "") if swapped is not None else ""
    turn = _("turn %(number)s") % {"number": span.turn + 1} if span.turn is not None else field or called(span.field)
    note = " · ".join(filter(None, (span.label, span.severity)))
    return SpanShown(written=orjson.dumps(span.as_dict()).decode(), where=turn, quote=span.quote, note=note)


def _points(criterion: Criterion, language: str) -> tuple[PointShown, ...]:
    """The points with their anchors; none if the scale has more than ``MOST_POINTS`` and gets a number field."""
    if not 0 < len(criterion.points) <= MOST_POINTS:
        return ()
    return tuple(_point(criterion, value, language) for value in criterion.values)


def _point(criterion: Criterion, value: float, language: str) -> PointShown:
    written = f"{value:g}"
    label_tag, text_tag = criterion.tags_of_point(value, language)
    return PointShown(
        value=whole_item(value),
        digit=written if len(written) == 1 else "",
        label=criterion.label(value, language) or written,
        label_tag=label_tag,
        text_tag=text_tag,
        **criterion.anchor(value, language),
    )


def _range(criterion: Criterion) -> RangeShown:
    first, *others = criterion.values or (criterion.minimum,)
    step = others[0] - first if others else criterion.step
    return RangeShown(min=whole_item(criterion.minimum), max=whole_item(criterion.maximum), step=plain_item(step))


def _note(criterion: Criterion, points: Sequence[PointShown]) -> str:
    """The note beside the rationale's label, such as "required, at least 5 words"."""
    if criterion.rationale_rule == Criterion.RationaleRule.OPTIONAL:
        return _("optional")
    if criterion.rationale_rule == Criterion.RationaleRule.NEVER:
        return ""
    least = max(1, criterion.rationale_words)
    words = ngettext("required, at least %(least)d word", "required, at least %(least)d words", least) % {
        "least": least
    }
    if criterion.rationale_rule == Criterion.RationaleRule.REQUIRED or criterion.best is None:
        return words
    best = next((point.label for point in points if point.value == criterion.best), f"{criterion.best:g}")
    return _("%(required)s, except for %(best)s") % {"required": words, "best": best}


def plain_item(value: float | None) -> float | None:
    """As `whole_item`; None stays None."""
    return None if value is None else whole_item(value)


def whole_item(value: float) -> float:
    """A whole number as ``int``, so that pages show 3 and not 3.0."""
    return int(value) if float(value).is_integer() else value
