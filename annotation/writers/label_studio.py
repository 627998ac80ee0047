"""Export a campaign for Label Studio: a labelling configuration, and tasks with annotations and predictions.

The server refuses annotators it does not know, so that nobody is named in ``completed_by``: raters, and what an answer
says besides its value, stand in the ``meta`` of each result, which Label Studio keeps. The ready mapping
``panelbench-label-studio`` reads the tasks back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import orjson

from annotation.layouts import USUAL_ORDER
from annotation.readers import CriterionDocument, RubricDocument, TextByLanguage, plain_number

NOT_APPLICABLE = "N/A"
TURNS = "dialogue"


class LabelStudioAnswer(NamedTuple):
    """What one rater said of one item on one criterion; ``score`` is None for N/A."""

    criterion: str
    rater: str
    score: float | None
    rationale: str = ""
    seconds: float | None = None
    repeat: int = 0

    @property
    def sitting(self) -> tuple[str, int]:
        """What is one annotation, or one prediction."""
        return self.rater, self.repeat


# --- the configuration ----------------------------------------------------------------------------------------------
class Interface:
    """What annotators see in Label Studio: the parts of an item that some item has, and a control per criterion."""

    def __init__(self, rubric: RubricDocument, *, parts: Iterable[str]) -> None:
        there = set(parts)
        self.has_turns = TURNS in there
        self.fields = [name for name in USUAL_ORDER if name in there]
        self._rubric = rubric
        self._criteria = {criterion.key: criterion for criterion in rubric.criteria}
        self.shown = TURNS if self.has_turns or not self.fields else self.fields[0]

    def as_xml(self) -> str:
        """The configuration, for Settings > Labeling Interface > Code."""
        shown = [line for name in self.fields for line in _field(name)]
        turns = _tag("Paragraphs", name=TURNS, value=f"${TURNS}", layout="dialogue", nameKey="speaker", textKey="text")
        asked = [line for criterion in self._rubric.criteria for line in self._control(criterion)]
        lines = [*shown, *([turns] if self.shown == TURNS else []), *asked]
        return "<View>\n" + "".join(f"  {line}\n" for line in lines) + "</View>\n"

    def results(self, answer: LabelStudioAnswer) -> Iterator[dict[str, Any]]:
        """An answer as results of the criterion's controls."""
        criterion = self._criteria[answer.criterion]
        meta = {"rater": answer.rater, "criterion": answer.criterion, "repeat": answer.repeat}
        meta |= {"rationale": answer.rationale} if answer.rationale else {}
        if criterion.scale.points or answer.score is None:
            text = NOT_APPLICABLE if answer.score is None else str(plain_number(answer.score))
            name = criterion.key if criterion.scale.points else _beside(criterion.key, "na")
            yield {**self._result(name, "choices", {"choices": [text]}), "meta": meta}
        else:
            yield {**self._result(criterion.key, "number", {"number": plain_number(answer.score)}), "meta": meta}
        if answer.rationale and criterion.rationale.rule != "never":
            yield self._result(_beside(criterion.key, "rationale"), "textarea", {"text": [answer.rationale]})

    def _result(self, name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"id": name, "from_name": name, "to_name": self.shown, "type": kind, "value": value}

    def _control(self, criterion: CriterionDocument) -> Iterator[str]:
        spoken = criterion.question or criterion.name
        yield _header(_in(spoken, self._rubric.source_language) or criterion.key)
        places = {"name": criterion.key, "toName": self.shown}
        scale = criterion.scale
        if scale.points:
            yield _opened("Choices", **places, choice="single", showInline="true")
            for point in scale.points:
                number = str(plain_number(point.value))
                label = _in(point.label, self._rubric.source_language)
                yield "  " + _tag("Choice", alias=number, value=f"{number} · {label}" if label else number)
            if criterion.not_applicable:
                yield "  " + _tag("Choice", value=NOT_APPLICABLE)
            yield "</Choices>"
        else:
            step = str(plain_number(scale.step)) if scale.step else "any"
            yield _tag(
                "Number",
                **places,
                min=str(plain_number(scale.minimum)),
                max=str(plain_number(scale.maximum)),
                step=step,
            )
            if criterion.not_applicable:
                yield _opened("Choices", name=_beside(criterion.key, "na"), toName=self.shown)
                yield "  " + _tag("Choice", value=NOT_APPLICABLE)
                yield "</Choices>"
        if criterion.rationale.rule != "never":
            name = _beside(criterion.key, "rationale")
            yield _tag("TextArea", name=name, toName=self.shown, rows="2", maxSubmissions="1")


def _field(name: str) -> Iterator[str]:
    yield _header(name.replace("_", " ").capitalize())
    yield _tag("Text", name=name, value=f"${name}")


def _header(text: str) -> str:
    # A dollar would stand for a part of the task.
    return _tag("Header", value=text.replace("$", "＄"))


def _tag(tag: str, **attributes: str) -> str:
    return f"{_opened(tag, **attributes)[:-1]}/>"


def _opened(tag: str, **attributes: str) -> str:
    text = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag} {text}>"


def _in(words: TextByLanguage, language: str) -> str:
    return words.get(language) or next(iter(words.values()), "")


def _beside(criterion: str, what: str) -> str:
    """The name of a second control of a criterion; no key holds a colon."""
    return f"{criterion}:{what}"


# --- the tasks ------------------------------------------------------------------------------------------------------
def task(
    interface: Interface,
    item: Mapping[str, Any],
    *,
    people: Iterable[LabelStudioAnswer],
    judges: Iterable[LabelStudioAnswer],
) -> dict[str, Any]:
    """One item with what people (annotations) and judges (predictions) said. ``item`` is named as in its export;
    answers come by rater.
    """
    # Label Studio refuses a task without a part that the configuration shows.
    texts = {name: _told(item.get(name)) for name in interface.fields}
    said = {"item": item["id"], "language": item["language"], TURNS: item["turns"], **texts}
    beside = {name: item[name] for name in _BESIDE if item.get(name)}
    return {
        "data": said,
        "meta": beside,
        "annotations": [_annotation(interface, sitting) for sitting in _sittings(people)],
        "predictions": [_prediction(interface, sitting) for sitting in _sittings(judges)],
    }


_BESIDE = ("generator", "scenario", "title", "content_warning", "attributes")


def _told(value: Any) -> str:
    return "\n\n".join(value) if isinstance(value, list) else value or ""


def _sittings(answers: Iterable[LabelStudioAnswer]) -> Iterator[list[LabelStudioAnswer]]:
    ordered = sorted(answers, key=lambda answer: answer.sitting)
    return (list(sitting) for _who, sitting in groupby(ordered, key=lambda answer: answer.sitting))


def _annotation(interface: Interface, sitting: Sequence[LabelStudioAnswer]) -> dict[str, Any]:
    # What is not said to be otherwise is taken for a reference.
    said = {"was_cancelled": False, "ground_truth": False, "result": _results(interface, sitting)}
    return said if sitting[0].seconds is None else {**said, "lead_time": sitting[0].seconds}


def _prediction(interface: Interface, sitting: Sequence[LabelStudioAnswer]) -> dict[str, Any]:
    return {"model_version": sitting[0].rater, "result": _results(interface, sitting)}


def _results(interface: Interface, sitting: Sequence[LabelStudioAnswer]) -> list[dict[str, Any]]:
    return [result for answer in sitting for result in interface.results(answer)]


def as_json(tasks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The file that Label Studio imports, a task to a line."""
    lead = b"[\n"
    for each in tasks:
        yield lead + orjson.dumps(each)
        lead = b",\n"
    yield b"\n]\n" if lead != b"[\n" else b"[]\n"
