"""The form of a rubric: a document as fields, the fields as a document, and the buttons that add, move and remove."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import languages
from annotation.models import Criterion
from annotation.readers import ParsedRubric, Problem, parse_rubric, plain_number
from annotation.views.import_words import shown_words
from annotation.whole_item import WHOLE_ITEM_COLUMNS, WHOLE_ITEM_QUESTIONS, asked_as

Texts = dict[str, str]  # language -> text
MOST_CRITERIA, MOST_POINTS, MOST_LANGUAGES = 200, 101, 60
RANGE = "range"
WORDING, GUIDANCE = ("name", "question", "definition"), ("mark_if", "dont_mark_if")
GROUPS = (
    ("general", gettext_lazy("General")),
    ("critical", gettext_lazy("Critical: a mark ends the rating of the item")),
    ("domain", gettext_lazy("Domain")),
    ("task", gettext_lazy("Task")),
    ("subjective", gettext_lazy("Subjective")),
)
STATES = (
    ("", gettext_lazy("Not given: counts as a draft")),
    ("draft", gettext_lazy("Draft")),
    ("reviewed", gettext_lazy("Reviewed")),
    ("stale", gettext_lazy("Out of date: the source has changed")),
)
PARTS = {
    "key": gettext_lazy("Key"),
    "name": gettext_lazy("Name"),
    "source_language": gettext_lazy("Source language"),
    **{question.name: gettext_lazy(question.title) for question in WHOLE_ITEM_QUESTIONS},
    "criteria": gettext_lazy("Criteria"),
    "question": gettext_lazy("Question"),
    "definition": gettext_lazy("Definition"),
    "scale": gettext_lazy("Scale"),
    "anchors": gettext_lazy("Anchors"),
    "mark_if": gettext_lazy("Mark if"),
    "dont_mark_if": gettext_lazy("Don't mark if"),
    "examples": gettext_lazy("Examples"),
    "rationale": gettext_lazy("Rationale"),
    "speaker": gettext_lazy("Speaker"),
    "panel": gettext_lazy("Panel"),
}
SENTENCES = {
    "no_source_text": gettext_lazy("Write the text in the source language too."),
    "scale_labels": gettext_lazy("Each point of a nominal scale needs a label, and no two points the same one."),
    "critical_scale": gettext_lazy("A critical criterion has the points 0 and 1."),
    "no_best_point": gettext_lazy(
        "Choose whether higher or lower is better: a rationale is asked for except at the best."
    ),
    "duplicate_criterion": gettext_lazy("Another criterion has this key."),
    "key": gettext_lazy("A key has at most 60 small letters, digits, - and _, such as fluency."),
}


@dataclass
class PointFields:
    """One point of a scale, or one value with an anchor on a range."""

    value: str = ""
    labels: Texts = field(default_factory=dict)
    anchors: Texts = field(default_factory=dict)
    reasons: Texts = field(default_factory=dict)


@dataclass
class CriterionFields:
    """One criterion as it stands in the form. ``examples`` are kept as they are: the form does not change them."""

    key: str = ""
    name: Texts = field(default_factory=dict)
    question: Texts = field(default_factory=dict)
    definition: Texts = field(default_factory=dict)
    mark_if: Texts = field(default_factory=dict)
    dont_mark_if: Texts = field(default_factory=dict)
    level: str = "ordinal"
    shape: str = "points"
    minimum: str = ""
    maximum: str = ""
    step: str = ""
    points: list[PointFields] = field(default_factory=list)
    examples: dict[str, Any] = field(default_factory=dict)
    speaker: str = ""
    not_applicable: bool = False
    rule: str = "optional"
    min_words: str = ""
    evidence: str = "optional"
    group: str = "general"
    panel: str = ""
    direction: str = "higher_is_better"
    translations: Texts = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The criterion's part of the document. A number that can't be read stays text, which the reader refuses."""
        words = {"min_words": _number(self.min_words)} if self.min_words.strip() and self.rule != "never" else {}
        anchors = {
            point.value.strip(): {
                tag: {"text": text, "reason": reason} if (reason := point.reasons.get(tag, "").strip()) else text
                for tag, text in _filled(point.anchors).items()
            }
            for point in self.points
        }
        texts = {
            "question": _filled(self.question),
            "definition": _filled(self.definition),
            "anchors": {value: by_language for value, by_language in anchors.items() if by_language},
            "mark_if": _lines(self.mark_if),
            "dont_mark_if": _lines(self.dont_mark_if),
            "examples": self.examples,
            "speaker": self.speaker.strip(),
            "panel": self.panel.strip(),
            "evidence": "" if self.evidence == "optional" else self.evidence,
            "translations": _filled(self.translations),
        }
        return {
            "key": self.key.strip() or None,
            "name": _filled(self.name) or None,
            "scale": self._scale(),
            **{part: text for part, text in texts.items() if text},
            "not_applicable": self.not_applicable,
            "rationale": {"rule": self.rule, **words},
            "group": self.group,
            "direction": self.direction,
        }

    def _scale(self) -> dict[str, Any]:
        if self.shape == RANGE:
            ends = {"min": self.minimum, "max": self.maximum, "step": self.step}
            return {"level": self.level, **{end: _number(text) for end, text in ends.items() if text.strip()}}
        return {
            "level": self.level,
            "points": [
                {"value": _number(point.value), **({"label": labels} if (labels := _filled(point.labels)) else {})}
                for point in self.points
            ],
        }


@dataclass
class RubricFields:
    """A whole rubric in the form. ``languages`` begins with the source language; ``shown`` is the one beside it."""

    key: str = ""
    name: Texts = field(default_factory=dict)
    languages: list[str] = field(default_factory=lambda: ["en"])
    shown: str = ""
    criteria: list[CriterionFields] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The document, complete or not."""
        return {
            "key": self.key.strip() or None,
            "name": _filled(self.name) or None,
            "source_language": self.languages[0],
            **self.asked,
            "criteria": [criterion.as_document() for criterion in self.criteria],
        }

    def parsed(self) -> ParsedRubric:
        """The document, or its problems."""
        return _parsed(self.as_document())

    def parsed_alone(self) -> Iterator[ParsedRubric]:
        """Each criterion as the only one of a rubric, so that one that is incomplete does not hide the others."""
        around = {"key": "preview", "name": {self.languages[0]: "Preview"}, "source_language": self.languages[0]}
        for criterion in self.criteria:
            yield _parsed({**around, "criteria": [criterion.as_document()]})

    @property
    def preview_language(self) -> str:
        """The language in which previews are shown."""
        return self.shown if self.shown in self.languages else self.languages[0]


def _parsed(document: dict[str, Any]) -> ParsedRubric:
    return parse_rubric("rubric.json", json.dumps(document).encode())


def _number(text: str) -> Any:
    try:
        return plain_number(float(text.strip().replace(",", ".").replace("\u2212", "-")))
    except (ValueError, OverflowError):
        return text


def _filled(texts: Mapping[str, str]) -> Texts:
    return {tag: text for tag, text in texts.items() if text.strip()}


def _lines(texts: Mapping[str, str]) -> dict[str, list[str]]:
    return {tag: [line.strip() for line in text.splitlines() if line.strip()] for tag, text in _filled(texts).items()}


# --- from a document ------------------------------------------------------------------------------------------------
def fields_of(document: Mapping[str, Any]) -> RubricFields:
    """The fields of a rubric's canonical document."""
    source = document["source_language"]
    criteria = [_criterion_fields(part) for part in document["criteria"]]
    tags = {*document["name"]}
    for criterion in criteria:
        tags.update(criterion.name, criterion.question, criterion.definition, criterion.mark_if, criterion.dont_mark_if)
        tags.update(criterion.examples, *(tag for point in criterion.points for tag in (point.labels, point.anchors)))
    spoken = [source, *sorted(tags - {source})]
    shown = spoken[1] if len(spoken) > 1 else ""
    asked = dict[str, str](asked_as(document))
    return RubricFields(document["key"], dict(document["name"]), spoken, shown, criteria, asked)


def _criterion_fields(part: Mapping[str, Any]) -> CriterionFields:
    scale, rationale, anchors = part["scale"], part["rationale"], part.get("anchors", {})
    given = [point if isinstance(point, dict) else {"value": point} for point in scale.get("points", ())]
    points = [PointFields(_written(point["value"]), dict(point.get("label", {}))) for point in given]
    if not points:
        points = [PointFields(value) for value in anchors]
    for point in points:
        for tag, anchor in anchors.get(point.value, {}).items():
            point.anchors[tag] = anchor["text"] if isinstance(anchor, dict) else anchor
            if isinstance(anchor, dict):
                point.reasons[tag] = anchor.get("reason", "")
    return CriterionFields(
        key=part["key"],
        name=dict(part["name"]),
        question=dict(part.get("question", {})),
        definition=dict(part.get("definition", {})),
        mark_if=_one_a_line(part.get("mark_if", {})),
        dont_mark_if=_one_a_line(part.get("dont_mark_if", {})),
        level=scale["level"],
        shape="points" if given else RANGE,
        minimum=_written(scale.get("min")),
        maximum=_written(scale.get("max")),
        step=_written(scale.get("step")),
        points=points,
        examples=dict(part.get("examples", {})),
        speaker="" if part["speaker"] == "any" else part["speaker"],
        not_applicable=part["not_applicable"],
        rule=rationale["rule"],
        min_words=_written(rationale["min_words"] or None),
        evidence=part.get("evidence", "optional"),
        group=part["group"],
        panel=part.get("panel", ""),
        direction=part["direction"],
        translations=dict(part.get("translations", {})),
    )


def _one_a_line(texts: Mapping[str, list[str]]) -> Texts:
    return {tag: "\n".join(" ".join(text.split()) for text in some) for tag, some in texts.items()}


def _written(value: float | None) -> str:
    return "" if value is None else str(plain_number(value))


# --- from a request -------------------------------------------------------------------------------------------------
def posted_fields(posted: QueryDict) -> RubricFields:
    """What a request holds, as it was typed."""
    tags = dict.fromkeys(tag for tag in posted.getlist("language") if _is_language(tag))
    spoken = list(tags)[:MOST_LANGUAGES] or ["en"]
    hidden = _json_object(posted.get("hidden_texts", ""))

    def texts(name: str) -> Texts:
        written = {tag: posted.get(f"{name}-{tag}", hidden.get(f"{name}-{tag}", "")) for tag in spoken}
        return {tag: str(text).replace("\r\n", "\n") for tag, text in written.items()}

    def point(prefix: str) -> PointFields:
        return PointFields(
            posted.get(f"{prefix}-value", ""),
            texts(f"{prefix}-label"),
            texts(f"{prefix}-anchor"),
            texts(f"{prefix}-reason"),
        )

    def criterion(prefix: str) -> CriterionFields:
        plain = (
            *("key", "level", "shape", "minimum", "maximum", "step", "speaker"),
            *("rule", "min_words", "evidence", "group", "panel", "direction"),
        )
        return CriterionFields(
            **{name: posted.get(f"{prefix}-{name}", "") for name in plain},
            **{name: texts(f"{prefix}-{name}") for name in (*WORDING, *GUIDANCE)},
            points=[point(f"{prefix}p{number}") for number in _count(posted, f"{prefix}-points", MOST_POINTS)],
            examples=_json_object(posted.get(f"{prefix}-examples", "")),
            not_applicable=f"{prefix}-not_applicable" in posted,
            translations={tag: state for tag, state in texts(f"{prefix}-state").items() if tag != spoken[0]},
        )

    criteria = [criterion(f"c{number}") for number in _count(posted, "criteria", MOST_CRITERIA)]
    return RubricFields(
        key=posted.get("key", ""),
        name=texts("name"),
        languages=spoken,
        shown=posted.get("shown", ""),
        criteria=criteria,
        asked={name: posted.get(name) or "none" for name in WHOLE_ITEM_COLUMNS},
    )


def _count(posted: QueryDict, name: str, most: int) -> range:
    text = posted.get(name, "")
    return range(min(int(text), most) if re.fullmatch("[0-9]{1,3}", text) else 0)


def _is_language(tag: str) -> bool:
    try:
        return languages.canonical_language(tag) == tag
    except ValueError:
        return False


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# --- what the buttons change ----------------------------------------------------------------------------------------
def change(fields: RubricFields, action: str, new_language: str) -> str:
    """Carry out one button, such as ``add-point:2``. Returns the name of the field to go to, or "". Raises
    ``ValueError`` with a sentence where the button can't be carried out."""
    verb, _colon, place = action.partition(":")
    numbers = [int(number) for number in place.split(":") if number.isdecimal()]
    if verb == "add-language":
        return _add_language(fields, new_language)
    if verb == "remove-language":
        fields.languages = [tag for tag in fields.languages if tag != place or tag == fields.languages[0]]
    elif verb == "add-criterion" and len(fields.criteria) < MOST_CRITERIA:
        fields.criteria.append(_next_criterion(fields.criteria))
        return f"c{len(fields.criteria) - 1}-key"
    elif numbers and numbers[0] < len(fields.criteria):
        return _change_criterion(fields.criteria, verb, *numbers[:2])
    return ""


def _next_criterion(criteria: list[CriterionFields]) -> CriterionFields:
    """A new criterion with the scale values of the last one, or 1 to 5."""
    last = criteria[-1] if criteria else None
    values = [point.value for point in last.points] if last and last.shape == "points" else ["1", "2", "3", "4", "5"]
    level = last.level if last and last.shape == "points" else "ordinal"
    direction = "none" if level == "nominal" else "higher_is_better"
    return CriterionFields(level=level, points=[PointFields(value) for value in values], direction=direction)


def _change_criterion(criteria: list[CriterionFields], verb: str, number: int, point: int = -1) -> str:
    criterion = criteria[number]
    if verb == "add-point" and len(criterion.points) < MOST_POINTS:
        values = [_number(one.value) for one in criterion.points]
        following = values[-1] + 1 if values and isinstance(values[-1], int | float) else ""
        criterion.points.append(PointFields(str(following)))
        return f"c{number}p{len(criterion.points) - 1}-value"
    if verb == "remove-point" and 0 <= point < len(criterion.points):
        del criterion.points[point]
        return f"c{number}-add-point"
    if verb == "remove":
        del criteria[number]
        return "add-criterion"
    if verb in ("up", "down") and 0 <= (other := number + (1 if verb == "down" else -1)) < len(criteria):
        criteria[number], criteria[other] = criteria[other], criteria[number]
        return f"c{other}-{verb}"
    return ""


def _add_language(fields: RubricFields, new_language: str) -> str:
    tag = languages.canonical_language(new_language)
    if tag not in fields.languages and len(fields.languages) < MOST_LANGUAGES:
        fields.languages.append(tag)
    fields.shown = tag
    return f"name-{tag}"


# --- for the page ---------------------------------------------------------------------------------------------------
_CRITERION = re.compile(r"criteria\[([0-9]+)\]\.?(.*)")


def sentence(problem: Problem) -> str:
    """A problem in the words of the form, with the part that it is about."""
    place = _CRITERION.sub(r"\2", problem.column or "")
    key = re.split(r"[.\[]", place)[0]
    if problem.code == "missing_key":
        key = problem.found.removeprefix("no ")
        return _("Fill in: %s.") % PARTS.get(key, key)
    words = SENTENCES.get(problem.code) or _("found %(found)s; expected %(expected)s.") % {
        "found": shown_words(problem.found),
        "expected": shown_words(problem.expected),
    }
    return f"{PARTS[key]}: {words}" if key in PARTS and problem.code not in SENTENCES else str(words)


def problems_by_criterion(parsed: ParsedRubric) -> dict[int, list[str]]:
    """The sentences about each criterion by its number from 1; 0 has those about the whole rubric."""
    sentences: dict[int, list[str]] = {}
    for problem in parsed.problems:
        match = _CRITERION.match(problem.column or "")
        sentences.setdefault(int(match[1]) if match else 0, []).append(sentence(problem))
    return sentences


def shown_fields(fields: RubricFields, problems: Mapping[int, list[str]], focus: str = "") -> dict[str, Any]:
    """What the template shows: each text in the source language and in the language beside it. ``hidden_texts`` are
    those of the other languages, by field name, as JSON."""
    writer = _FieldWriter(fields)
    criteria = [
        {
            **writer.criterion(f"c{number}", one),
            "number": number + 1,
            "problems": problems.get(number + 1, []),
            "is_open": number + 1 in problems or re.match(rf"c{number}(p|-)", focus) or len(fields.criteria) == 1,
        }
        for number, one in enumerate(fields.criteria)
    ]
    return {
        "fields": fields,
        "focus": focus,
        "name_texts": writer.texts("name", PARTS["name"], fields.name),
        "whole_item_questions": [
            (question, fields.asked.get(question.name, "none")) for question in WHOLE_ITEM_QUESTIONS
        ],
        "languages": [{**_language(tag), "missing": _missing(fields, tag)} for tag in fields.languages],
        "criteria": criteria,
        "hidden_texts": json.dumps(writer.hidden, ensure_ascii=False),
        "problems": problems.get(0, []),
        "with_problems": sorted(number for number in problems if number),
        "levels": Criterion.Level.choices,
        "groups": GROUPS,
        "rules": Criterion.RationaleRule.choices,
        "evidence_rules": Criterion.EvidenceRule.choices,
        "directions": Criterion.Direction.choices,
        "translation_states": STATES,
    }


class _FieldWriter:
    """Fields as the template shows them; collects the texts of the languages that are not shown."""

    def __init__(self, fields: RubricFields) -> None:
        self.fields = fields
        self.shown = [fields.languages[0], *([fields.shown] if fields.shown in fields.languages[1:] else [])]
        self.hidden: dict[str, str] = {}

    def texts(self, name: str, label: Any, values: Texts) -> dict[str, Any]:
        """One text in the languages that are shown."""
        others = (tag for tag in self.fields.languages if tag not in self.shown)
        self.hidden.update({f"{name}-{tag}": values[tag] for tag in others if values.get(tag)})
        boxes = [{"name": f"{name}-{tag}", "value": values.get(tag, ""), **_language(tag)} for tag in self.shown]
        return {"label": label, "boxes": boxes}

    def criterion(self, prefix: str, one: CriterionFields) -> dict[str, Any]:
        """One criterion with its points."""
        return {
            "fields": one,
            "prefix": prefix,
            "title": one.name.get(self.fields.languages[0]) or one.key or _("New criterion"),
            "wording": [self.texts(f"{prefix}-{part}", PARTS[part], getattr(one, part)) for part in WORDING],
            "guidance": [self.texts(f"{prefix}-{part}", PARTS[part], getattr(one, part)) for part in GUIDANCE],
            "points": [
                {
                    "prefix": f"{prefix}p{place}",
                    "number": place,
                    "value": point.value,
                    "labels": self.texts(f"{prefix}p{place}-label", _("Label"), point.labels),
                    "anchors": self.texts(f"{prefix}p{place}-anchor", _("Anchor"), point.anchors),
                    "reasons": self.texts(f"{prefix}p{place}-reason", _("Reason for the anchor"), point.reasons),
                }
                for place, point in enumerate(one.points)
            ],
            "states": self.texts(f"{prefix}-state", _("State of the translation"), one.translations)["boxes"][1:],
            "examples": json.dumps(one.examples, ensure_ascii=False) if one.examples else "",
            "example_count": sum(len(some) for some in one.examples.values() if isinstance(some, list)),
        }


def _language(tag: str) -> dict[str, str]:
    return {"tag": tag, "language_name": languages.endonym(tag), "direction": languages.direction(tag)}


def _missing(fields: RubricFields, tag: str) -> int:
    """How many texts the source language has and this one lacks."""
    source = fields.languages[0]
    in_criteria = sum(len(missing_parts(one, source, tag)) for one in fields.criteria)
    return in_criteria + _lacks(fields.name, source, tag)


def missing_parts(one: CriterionFields, source: str, tag: str) -> list[str]:
    """The parts of a criterion whose text ``source`` has and the language ``tag`` lacks, as the form labels them."""
    pairs: list[tuple[Any, Texts]] = [(PARTS[part], getattr(one, part)) for part in (*WORDING, *GUIDANCE)]
    for point in one.points:
        pairs += [(f"{_('Label')} {point.value}", point.labels), (f"{_('Anchor')} {point.value}", point.anchors)]
    return [str(label) for label, texts in pairs if _lacks(texts, source, tag)]


def _lacks(texts: Texts, source: str, tag: str) -> bool:
    return bool(texts.get(source, "").strip()) and not texts.get(tag, "").strip()


def missing_texts(document: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The languages of a rubric in which texts are missing that its source language has, by tag, and how many."""
    fields = fields_of(document)
    return [(tag, count) for tag in fields.languages if (count := _missing(fields, tag))]
