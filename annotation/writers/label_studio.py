"""Export a campaign for Label Studio: a labelling configuration, and tasks with annotations and predictions.

The server refuses annotators that it does not know, so ``completed_by`` is not used. The rater, and the other parts of
an answer besides its value, are in the ``meta`` of every result, which Label Studio keeps. The ready mapping
``panelbench-label-studio`` reads the tasks back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import orjson

from annotation.blinding import USUAL_ORDER
from annotation.readers import CriterionDocument, RubricDocument, TextByLanguage, plain_number

NOT_APPLICABLE = "N/A"
TURNS = "dialogue"


class LabelStudioAnswer(NamedTuple):
    """One rater's answer for one item on one criterion; ``score`` is None for N/A."""

    criterion: str
    rater: str
    score: float | None
    rationale: str = ""
    seconds: float | None = None
    repeat: int = 0

    @property
    def sitting(self) -> tuple[str, int]:
        """The key of the annotation or prediction that the answer belongs to: rater and repeat."""
        return self.rater, self.repeat


# --- the configuration ----------------------------------------------------------------------------------------------
class Interface:
    """The labelling interface: the parts that at least one item has, and a control per criterion."""

    def __init__(self, rubric: RubricDocument, *, parts: Iterable[str]) -> None:
        present = set(parts)
        self.has_turns = TURNS in present
        self.fields = [name for name in USUAL_ORDER if name in present]
        self._rubric = rubric
        self._criteria = {criterion.key: criterion for criterion in rubric.criteria}
        self.shown = TURNS if self.has_turns or not self.fields else self.fields[0]

    def as_xml(self) -> str:
        """The configuration, for Settings > Labeling Interface > Code."""
        shown = [line for name in self.fields for line in _field(name)]
        turns = _tag("Paragraphs", name=TURNS, value=f"${TURNS}", layout="dialogue", nameKey="speaker", textKey="text")
        controls = [line for criterion in self._rubric.criteria for line in self._control(criterion)]
        lines = [*shown, *([turns] if self.shown == TURNS else []), *controls]
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
    # Label Studio replaces $name by a field of the task.
    return _tag("Header", value=text.replace("$", "＄"))


def _tag(tag: str, **attributes: str) -> str:
    return f"{_opened(tag, **attributes)[:-1]}/>"


def _opened(tag: str, **attributes: str) -> str:
    text = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag} {text}>"


def _in(words: TextByLanguage, language: str) -> str:
    return words.get(language) or next(iter(words.values()), "")


def _beside(criterion: str, what: str) -> str:
    """The name of a further control of a criterion. It contains a colon, which no key of a criterion has."""
    return f"{criterion}:{what}"


# --- the tasks ------------------------------------------------------------------------------------------------------
def task(
    interface: Interface,
    item: Mapping[str, Any],
    *,
    people: Iterable[LabelStudioAnswer],
    judges: Iterable[LabelStudioAnswer],
) -> dict[str, Any]:
    """One item with the answers of people (``annotations``) and judges (``predictions``). The keys of ``item`` are the
    columns of the items export.
    """
    # Label Studio refuses a task that lacks a part of the configuration.
    texts = {name: _as_text(item.get(name)) for name in interface.fields}
    parts = {"item": item["id"], "language": item["language"], TURNS: item["turns"], **texts}
    beside = {name: item[name] for name in _BESIDE if item.get(name)}
    return {
        "data": parts,
        "meta": beside,
        "annotations": [_annotation(interface, sitting) for sitting in _sittings(people)],
        "predictions": [
            {"model_version": sitting[0].rater, "result": _results(interface, sitting)} for sitting in _sittings(judges)
        ],
    }


_BESIDE = ("generator", "scenario", "title", "content_warning", "attributes")


def _as_text(value: Any) -> str:
    return "\n\n".join(value) if isinstance(value, list) else value or ""


def _sittings(answers: Iterable[LabelStudioAnswer]) -> Iterator[list[LabelStudioAnswer]]:
    ordered = sorted(answers, key=lambda answer: answer.sitting)
    return (list(sitting) for _who, sitting in groupby(ordered, key=lambda answer: answer.sitting))


def _annotation(interface: Interface, sitting: Sequence[LabelStudioAnswer]) -> dict[str, Any]:
    # Without `ground_truth: false` Label Studio takes an annotation for a reference label.
    annotation = {"was_cancelled": False, "ground_truth": False, "result": _results(interface, sitting)}
    return annotation if sitting[0].seconds is None else {**annotation, "lead_time": sitting[0].seconds}


def _results(interface: Interface, sitting: Sequence[LabelStudioAnswer]) -> list[dict[str, Any]]:
    return [result for answer in sitting for result in interface.results(answer)]


def as_json(tasks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The file that Label Studio imports, one task per line."""
    lead = b"[\n"
    for labelling_task in tasks:
        yield lead + orjson.dumps(labelling_task)
        lead = b",\n"
    yield b"\n]\n" if lead != b"[\n" else b"[]\n"
