"""Cells that a spreadsheet would run, made harmless, and back again (DESIGN 8.11; OWASP, CSV injection).

Text that begins as a formula does gets an apostrophe in front. The last column, `MARKS`, names the columns of the row
where that was done, so that nobody has to guess which apostrophes are the text's own: ``'rationale`` says that the
rationale has one more than its text. ``-context`` says that there is no context, which an empty cell can't say.
"""

from __future__ import annotations

from typing import Any

MARKS = "panelbench_marks"
FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
ADDED, ABSENT = "'", "-"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet might take this text for something to run."""
    return text[:1] in FORMULA_STARTS and text != ""


def restored(fields: dict[str, Any]) -> dict[str, Any]:
    """The row as it was before it was made harmless; a row that nobody marked comes back as it is."""
    if MARKS not in fields:
        return fields
    kept = {name: value for name, value in fields.items() if name != MARKS}
    for mark in str(fields[MARKS] or "").split():
        kind, name = mark[:1], mark[1:]
        if kind == ABSENT and kept.get(name) == "":
            kept[name] = None
        elif kind == ADDED and str(kept.get(name, "")).startswith("'"):
            kept[name] = kept[name][1:]
    return kept
