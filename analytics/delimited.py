"""Tables as CSV text that a spreadsheet opens without running what rated texts or names might say (DESIGN 8.11)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

# What spreadsheets take for the start of a formula, in both widths.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class _Line:
    """A file for csv.writer that hands each line back."""

    def write(self, line: str) -> str:
        return line


def lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The header and each row as one line of CSV, made when it is asked for."""
    writer = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow([cell(value) for value in row])


def cell(value: object) -> str:
    """One value as text: nothing for None, whole numbers without .0, text that looks like a formula behind a quote."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
