"""What a plain cell cannot say, said beside it, and read back: files that we wrote come in again as they went out.

Text that begins as a formula does gets an apostrophe in front (DESIGN 8.11; OWASP, CSV injection). The last column of a
CSV, `MARKS`, names the columns of the row where that was done, so that nobody has to guess which apostrophes are the
text's own: ``'rationale`` says that the rationale has one more than its text. ``-context`` says that there is no
context, which an empty cell can't say. In any file, a score that is blank beside a true `NOT_APPLICABLE` is N/A, and
attributes and passages may be JSON in a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from annotation.readers.jsontext import parse_document
from annotation.readers.problems import FormatError
from annotation.readers.rows import Row

MARKS = "panelbench_marks"
NOT_APPLICABLE = "not_applicable"
FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
ADDED, ABSENT = "'", "-"
_JSON = {"attributes": ("{", dict), "passages": ("[", list)}
_SPEAKING = {MARKS, NOT_APPLICABLE, *_JSON}


def meant(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows as they are meant. Only files whose first row has one of our columns are looked at any further."""
    first = next(rows, None)
    if first is None:
        return
    everything = chain([first], rows)
    if not speaks(first.fields):
        yield from everything
        return
    for row in everything:
        yield Row(row.line, restored(row.fields))


def speaks(columns: Iterable[str]) -> bool:
    """Whether one of the columns says something about others."""
    return not _SPEAKING.isdisjoint(columns)


def restored(fields: dict[str, Any]) -> dict[str, Any]:
    """One row as it was before it was written."""
    if MARKS in fields:
        fields = _unmarked(fields)
    if NOT_APPLICABLE in fields and "score" in fields and _is_not_applicable(fields):
        fields = {**fields, "score": "N/A"}
    for name, (start, kind) in _JSON.items():
        text = fields.get(name)
        if isinstance(text, str) and text.startswith(start):
            fields = {**fields, name: _opened(text, kind)}
    return fields


def _unmarked(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if name != MARKS}
    for mark in str(fields[MARKS] or "").split():
        kind, name = mark[:1], mark[1:]
        if kind == ABSENT and kept.get(name) == "":
            kept[name] = None
        elif kind == ADDED and str(kept.get(name, "")).startswith("'"):
            kept[name] = kept[name][1:]
    return kept


def _is_not_applicable(fields: dict[str, Any]) -> bool:
    return fields["score"] in (None, "") and str(fields[NOT_APPLICABLE]).lower() in {"true", "1"}


def _opened(text: str, kind: type) -> Any:
    """JSON in a cell; what is none stays text."""
    try:
        value = parse_document("cell", text)
    except FormatError:
        return text
    return value if isinstance(value, kind) else text
