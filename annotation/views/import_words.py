"""The words of the import page: labels of fields, also in what problems and notes of files say.

Readers name the keys of a mapping, which people write for the command and the API; on the page they see labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.desk import presentation
from annotation.readers import Report
from annotation.views.file_words import FILE_SENTENCES

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
_VALUE = r"(?: (?:on|off|NAME|NUMBER|[\w-]+(?= in the mapping)|\[\.\.\.\]))?"
_SETTING = re.compile(rf"\b(?:set )?({'|'.join(SETTINGS)}):{_VALUE},?(?: in the mapping)?")
_SHEETS = re.compile(r' or sheet: "\*" for all of them')
_KEY = re.compile(r"(?<![\w.“])((?:turn|score|rationale|ratings|attributes)\.[\w*]+|[a-z]+_[a-z_]+)(?![\w.”(])")


def field_label(field: str) -> str:
    """A field of a mapping in words: ``score.fluency`` -> "Score: fluency"."""
    if field in FIELD_LABELS:
        return str(FIELD_LABELS[field])
    part, _dot, name = field.partition(".")
    if name:
        return f"{_('Attribute') if part == 'attributes' else FIELD_LABELS.get(part, part)}: {name}"
    return presentation.called(field)


def on_page(sentence: str) -> str:
    """What a problem says, with the labels of the page in place of a mapping's keys."""
    return _KEY.sub(_labelled, _with_settings(sentence))


def _with_settings(sentence: str) -> str:
    sentence = _SHEETS.sub("", sentence)
    sentence = _SETTING.sub(lambda found: _quoted(str(SETTINGS[found[1]])), sentence)
    sentence = re.sub(r"\b(?:its name|one of the two columns) under ignore in the mapping", _chosen, sentence)
    return sentence.replace("in the mapping", _("under “Mapping (YAML)”"))


def _quoted(label: str) -> str:
    return _("another choice under “%s”") % label


def _chosen(_found: re.Match[str]) -> str:
    return _("“%s” for the column") % FIELD_LABELS[IGNORE]


def _labelled(found: re.Match[str]) -> str:
    key = found[1]
    is_field = key in FIELD_LABELS or "." in key or key.startswith("passage_")
    return f"“{field_label(key)}”" if is_field else key


def problem_on_page(problem: dict[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """A problem, or a kind of problem, as the page shows it; ``columns`` are those of the files."""
    with translation.override(settings.LANGUAGE_CODE):  # the words of files are listed as they are in English
        texts = {name: _outside_quotes(problem[name], on_page) for name in ("found", "expected")}
        if problem["code"] == "no_column":
            texts["found"] = re.sub(r"(?<=^no )(\w+)$|(?<=give the )(\w+)$", _missing, texts["found"])
    texts = {name: FILE_SENTENCES.translated(text) for name, text in texts.items()}
    column = problem["column"]
    if column in FIELD_LABELS and column not in columns:
        texts["column"] = field_label(column)
    return {**problem, **texts}


def _missing(found: re.Match[str]) -> str:
    return f"“{field_label(found[0])}”"


def _outside_quotes(sentence: str, change: Callable[[str], str]) -> str:
    """The sentence changed outside of what it quotes from the files."""
    return "".join(part if part.startswith("“") else change(part) for part in re.split(r"(“[^”]*”)", sentence))


def report_on_page(report: Report) -> Report:
    """A report with its notes as the page shows them."""
    with translation.override(settings.LANGUAGE_CODE):
        notes = [_outside_quotes(note, _with_settings) for note in report.notes]
    return replace(report, notes=list(map(FILE_SENTENCES.translated, notes)))
