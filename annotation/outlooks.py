"""What storing would come to, in plain values: one shape for the page, the API and what a worker leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from accounts.storable import storable_value
from annotation.formats.answers import as_answer
from annotation.formats.columns import ColumnFacts
from annotation.formats.fields import as_language, folded, written
from annotation.formats.items import ItemRow
from annotation.formats.problems import Problems, Unfit
from annotation.models import Criterion
from annotation.previews import Preview
from annotation.rating_fitting import scale_words
from annotation.targets import Target

Outlook = dict[str, Any]
MOST_KINDS, FIRST_PLACES = 50, 5
MOST_UNREAD = 30  # values of a column
LONGEST_CELL, LONGEST_LINE = 40, 120
MOST_SHOWN = 4 * 2**20  # bytes of first rows: fifty long documents are more than a page can show


def outlook(preview: Preview, target: Target | None) -> Outlook:
    """The preview as JSON can hold it. Keys: kind, mapping, columns, rows, report, criteria, scales, problems,
    more_problems, documents, first_lines, sheets,
    kinds_of_problems.
    """
    criteria = {each.key: each for each in target.rubric_version.criteria.all()} if target else {}
    shown = {
        "kind": str(preview.kind),
        "mapping": preview.mapping.as_dict(),
        "columns": [_column(each, preview.mapping.values, criteria) for each in preview.columns],
        "rows": _few([_row(row) for row in preview.rows]),
        "report": preview.report.as_dict(),
        "criteria": preview.criteria,
        "scales": {key: scale_words(each) for key, each in criteria.items()},
        "problems": [problem.as_dict() for problem in preview.problems],
        "more_problems": preview.problems.more,
        "kinds_of_problems": _kinds(preview.problems),
        "documents": [document.as_yaml() for document in preview.documents],
        "first_lines": [{"number": number, "text": _line(cells)} for number, cells in preview.first_lines],
        "sheets": list(preview.sheets),
    }
    return plain(shown)


def plain(shown: Mapping[str, Any]) -> Outlook:
    """What is shown as JSON that the database can keep."""
    kept: Outlook = storable_value(json.loads(_text(shown)))
    return kept


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _row(row: Any) -> dict[str, Any]:
    return asdict(row) if isinstance(row, ItemRow) else dict(row._asdict())


def _kinds(problems: Problems) -> list[dict[str, Any]]:
    """The problems by kind, the most frequent first: how many, where the first of them are, and one that was found."""
    kinds = []
    for (code, column, expected), count in problems.alike.most_common(MOST_KINDS):
        alike = [one for one in problems if (one.code, one.column or "", one.expected) == (code, column, expected)]
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


# --- columns --------------------------------------------------------------------------------------------------------
def _column(facts: ColumnFacts, values: Mapping[str, Mapping[str, str]], criteria: Mapping[str, Criterion]) -> Outlook:
    return {
        "name": facts.name,
        "target": facts.target,
        "filled": facts.filled,
        "blank": facts.blank,
        "distinct": facts.distinct,
        "is_many": facts.is_many,
        "examples": facts.examples,
        "most": [{"value": value, "count": count} for value, count in facts.most],
        "off_scale": _off_scale(facts, values, criteria),
        "unread": _unread(facts, values, criteria),
    }


def _unread(
    facts: ColumnFacts, values: Mapping[str, Mapping[str, str]], criteria: Mapping[str, Criterion]
) -> list[dict[str, Any]]:
    """The values of a column of languages or scores that mean nothing by themselves: how often each occurs, what the
    mapping says that it means, and what it may mean."""
    field, _dot, key = facts.target.partition(".")
    if field not in ("language", "score"):
        return []
    said = {**values.get(field, {}), **values.get(facts.target, {})}
    labels = _labels([criteria[key]] if key in criteria else criteria.values())
    found = []
    for value, count in facts.counts.most_common():
        try:
            (as_language if field == "language" else as_answer)(value)
        except Unfit:
            likely = labels.get(folded(value), value.rstrip("% ") if field == "score" and value.endswith("%") else "")
            found.append({"value": value, "count": count, "means": said.get(value, ""), "likely": likely})
    return found[:MOST_UNREAD]


def _labels(criteria: Iterable[Criterion]) -> dict[str, str]:
    """The value of each label that stands for one and the same value on all scales that have it."""
    called: dict[str, set[str]] = {}
    for criterion in criteria:
        for point in criterion.points:
            for label in (point.get("label") or {}).values():
                called.setdefault(folded(label), set()).add(written(point["value"]))
    return {label: next(iter(meant)) for label, meant in called.items() if len(meant) == 1}


def _off_scale(
    facts: ColumnFacts, values: Mapping[str, Mapping[str, str]], criteria: Mapping[str, Criterion]
) -> int | None:
    """How many cells of a column of scores hold none that its criterion (or, in a long file, any) has room for."""
    field, _dot, key = facts.target.partition(".")
    if field != "score" or not criteria:
        return None
    scales = [criteria[key]] if key in criteria else list(criteria.values())
    meant = {**values.get("score", {}), **values.get(facts.target, {})}
    is_off = _misses(scales)
    return sum(count for value, count in facts.counts.items() if is_off(meant.get(value, value)))


def _misses(scales: Iterable[Criterion]) -> Callable[[str], bool]:
    def misses(text: str) -> bool:
        with suppress(Unfit):
            score = as_answer(text).score
            return score is not None and not any(each.is_on_scale(score) for each in scales)
        return True

    return misses
