"""The words of the import page: labels of fields, also in what problems and notes of files say.

Readers name the keys of a mapping, which people write for the command and the API; on the page they see labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.desk import presentation
from annotation.readers import NAMED_FIELDS, Field, Report, Setting, Words, read_words, with_words

IGNORE = "ignore"
FIELD_LABELS = {
    "id": gettext_lazy("Item id"),
    "item": gettext_lazy("Item id"),
    "language": gettext_lazy("Language"),
    "generator": gettext_lazy("Generator"),
    "scenario": gettext_lazy("Scenario"),
    "title": gettext_lazy("Title"),
    "turns": gettext_lazy("All turns of the dialogue"),
    "turn.speaker": gettext_lazy("Turn: speaker"),
    "turn.name": gettext_lazy("Turn: name of the speaker"),
    "turn.text": gettext_lazy("Turn: text"),
    "turn.number": gettext_lazy("Turn: number"),
    "content_warning": gettext_lazy("Content warning"),
    "attributes": gettext_lazy("Several attributes (an object)"),
    IGNORE: gettext_lazy("Not stored"),
    "rater": gettext_lazy("Rater"),
    "judge": gettext_lazy("Judge"),
    "variant": gettext_lazy("Prompt variant"),
    "criterion": gettext_lazy("Criterion"),
    "score": gettext_lazy("Score"),
    "rationale": gettext_lazy("Rationale"),
    "ratings": gettext_lazy("List of ratings"),
    "evidence": gettext_lazy("Evidence spans"),
    "seconds": gettext_lazy("Seconds"),
    "scale_max": gettext_lazy("Highest point of the scale"),
    "repeat": gettext_lazy("Repeat"),
    "repeat_number": gettext_lazy("Repeat, counted from 1"),
    "reply": gettext_lazy("Whole reply of the judge"),
    "prompt": gettext_lazy("Prompt that the judge got"),
    "served_model": gettext_lazy("Model that answered"),
    "tokens_in": gettext_lazy("Tokens of the prompt"),
    "tokens_out": gettext_lazy("Tokens of the reply"),
    "cost": gettext_lazy("Cost in USD"),
    "latency": gettext_lazy("Seconds until the reply"),
}
SETTINGS = {
    "header_row": gettext_lazy("Row with the names of the columns"),
    "short_rows": gettext_lazy("Rows that end before the last column"),
    "trust_ids": gettext_lazy("Ids like 7e1, or like a date"),
    "decimal_comma": gettext_lazy("Numbers like 3,5"),
    "encoding": gettext_lazy("Encoding of the text"),
    "sheet": gettext_lazy("Sheet of the workbook"),
    "speakers": gettext_lazy("Several turns in one text"),
    "replace": gettext_lazy("Text to replace or remove"),
}
"""The settings of a mapping that have a field of their own on the page, by key."""


LABELLED_PARTS = ("turn", "score", "rationale", "ratings", "attributes")


def field_label(field: str) -> str:
    """A field of a mapping in words: ``score.fluency`` -> "Score: fluency"."""
    if field in FIELD_LABELS:
        return str(FIELD_LABELS[field])
    part, _dot, name = field.partition(".")
    if name:
        return f"{_('Attribute') if part == 'attributes' else FIELD_LABELS.get(part, part)}: {name}"
    return presentation.called(field)


def shown_words(text: str) -> str:
    """What a reader said, in the language of the page, with labels in place of a mapping's keys."""
    if isinstance(text, Words):
        values = {name: _value(name, value) for name, value in text.values.items()}
        return _(text.template) % values
    if isinstance(text, Setting):
        return _("another choice under “%s”") % SETTINGS[text.key]
    return f"“{field_label(text)}”" if isinstance(text, Field) else text


def _value(name: str, value: str) -> str:
    """A value in a sentence. Keys that are words of everyday language stay as they are."""
    part, dot, _name = value.partition(".")
    is_key = (dot and part in LABELLED_PARTS) or ("_" in value and (value in FIELD_LABELS or part in NAMED_FIELDS))
    return f"“{field_label(value)}”" if name in ("field", "key") and is_key else shown_words(value)


def problem_on_page(problem: dict[str, Any], columns: Collection[str], words: Mapping[str, Any]) -> dict[str, Any]:
    """A problem, or a kind of problem, as the page shows it; ``columns`` are those of the files, ``words`` those of the
    check (`words_by_text`)."""
    texts = {name: shown_words(read_words(words.get(problem[name], problem[name]))) for name in ("found", "expected")}
    column = problem["column"]
    if column in FIELD_LABELS and column not in columns:
        texts["column"] = field_label(column)
    return {**problem, **texts}


def report_on_page(report: Report, words: Mapping[str, Any]) -> Report:
    """A report with its notes as the page shows them."""
    return replace(report, notes=list(map(shown_words, with_words(report.notes, words))))
