"""A preview in plain values: one form for the page, the API and the report that a worker stores."""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from accounts.inputs import storable_value
from annotation.imports.criterion_names import score_labels
from annotation.imports.previews import Preview
from annotation.imports.rating_rows import scale_words
from annotation.imports.targets import Target
from annotation.models import Criterion
from annotation.readers import (
    ColumnFacts,
    InvalidValue,
    ItemRow,
    Mapping,
    Problems,
    as_answer,
    as_language,
    case_folded,
    is_with_decimal_comma,
    kind_of_problem,
    likely_score,
    words_by_text,
)

PreviewReport = dict[str, Any]
MOST_KINDS, FIRST_PLACES = 50, 5
MOST_UNREAD = 30  # values of a column
LONGEST_CELL, LONGEST_LINE = 40, 120
MOST_SHOWN = 4 * 2**20  # bytes of the first rows: a page can't show fifty long documents


def preview_report(preview: Preview, target: Target | None) -> PreviewReport:
    """The preview as values for JSON. Keys: kind, mapping, columns, rows, report, criteria, scales, problems,
    more_problems, kinds_of_problems, documents, first_lines, sheets, and words (of problems and notes, by text).
    """
    criteria = {criterion.key: criterion for criterion in target.rubric_version.criteria.all()} if target else {}
    shown = {
        "kind": str(preview.kind),
        "mapping": preview.mapping.as_dict(),
        "columns": [_column(column, preview.mapping, criteria) for column in preview.columns],
        "rows": _few([asdict(row) if isinstance(row, ItemRow) else dict(row._asdict()) for row in preview.rows]),
        "report": preview.report.as_dict(),
        "criteria": preview.criteria,
        "scales": {key: scale_words(criterion) for key, criterion in criteria.items()},
        "problems": [problem.as_dict() for problem in preview.problems],
        "more_problems": preview.problems.more,
        "kinds_of_problems": _kinds(preview.problems),
        "documents": [document.as_yaml() for document in preview.documents],
        "first_lines": [{"number": number, "text": _line(cells)} for number, cells in preview.first_lines],
        "sheets": list(preview.sheets),
        "words": words_by_text(
            [
                *preview.report.notes,
                *(text for problem in preview.problems for text in (problem.found, problem.expected)),
                *(expected for _code, _column, expected in preview.problems.alike),
            ]
        ),
    }
    return plain(shown)


def plain(shown: abc.Mapping[str, Any]) -> PreviewReport:
    """The shown values as JSON that the database can store."""
    kept: PreviewReport = storable_value(json.loads(_text(shown)))
    return kept


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _kinds(problems: Problems) -> list[dict[str, Any]]:
    """The problems by kind, the most frequent first: the count, the first places, and one example value."""
    kinds = []
    for (code, column, expected), count in problems.alike.most_common(MOST_KINDS):
        alike = [one for one in problems if kind_of_problem(one) == (code, column, expected)]
        places = [{"file": one.file, "line": one.line} for one in alike[:FIRST_PLACES]]
        kind = {"code": code, "column": column, "expected": expected, "count": count, "places": places}
        kinds.append({**kind, "found": alike[0].found if alike else ""})
    return kinds


def _line(cells: Sequence[str]) -> str:
    """A row of a table as one short line."""
    return " · ".join(cell.strip()[:LONGEST_CELL] for cell in cells)[:LONGEST_LINE]


def _few(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    sizes = accumulate(len(_text(row)) for row in rows)
    return [row for row, size in zip(rows, sizes, strict=True) if size <= MOST_SHOWN]


def _column(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> PreviewReport:
    return {
        "name": facts.name,
        "target": facts.target,
        "filled": facts.filled,
        "blank": facts.blank,
        "distinct": facts.distinct,
        "is_many": facts.is_many,
        "examples": facts.examples,
        "most": [{"value": value, "count": count} for value, count in facts.most],
        "off_scale": _off_scale(facts, mapping, criteria),
        "unread": _unread(facts, mapping, criteria),
    }


def _unread(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> list[dict[str, Any]]:
    """The values of a column of languages or scores that are neither a language nor a score: the count of each, its
    meaning in the mapping, and a suggested meaning."""
    field, _dot, key = facts.target.partition(".")
    if field not in ("language", "score"):
        return []
    meanings = {**mapping.values.get(field, {}), **mapping.values.get(facts.target, {})}
    labels = score_labels([criteria[key]] if key in criteria else criteria.values())
    unread_values = []
    for value, count in facts.counts.most_common():
        try:
            as_language(value) if field == "language" else as_answer(value, decimal_comma=mapping.decimal_comma)
        except InvalidValue:
            if field == "score" and is_with_decimal_comma(value):  # the mapping has one setting for all of these
                continue
            likely = labels.get(case_folded(value), likely_score(value) if field == "score" else "")
            unread_values.append({"value": value, "count": count, "means": meanings.get(value, ""), "likely": likely})
    return unread_values[:MOST_UNREAD]


def _off_scale(facts: ColumnFacts, mapping: Mapping, criteria: abc.Mapping[str, Criterion]) -> int | None:
    """The number of cells of a score column that are not on its criterion's scale (in a long file: on no scale)."""
    field, _dot, key = facts.target.partition(".")
    if field != "score" or not criteria:
        return None
    scales = [criteria[key]] if key in criteria else list(criteria.values())
    meant = {**mapping.values.get("score", {}), **mapping.values.get(facts.target, {})}
    is_off = _misses(scales, mapping.decimal_comma)
    return sum(count for value, count in facts.counts.items() if is_off(meant.get(value, value)))


def _misses(scales: Iterable[Criterion], decimal_comma: bool) -> Callable[[str], bool]:
    def misses(text: str) -> bool:
        with suppress(InvalidValue):
            score = as_answer(text, decimal_comma=decimal_comma).score
            return score is not None and not any(scale.is_on_scale(score) for scale in scales)
        return True

    return misses
