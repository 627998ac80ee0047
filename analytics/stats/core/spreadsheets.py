"""The guard against formulas: text in a CSV file that a spreadsheet would run gets a quote before it (DESIGN 8.11)."""

from __future__ import annotations

FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
"""Characters that spreadsheets read as the start of a formula, in both widths."""


def harmless(text: str) -> str:
    """The text, with a quote before it if a spreadsheet would run it as a formula."""
    return f"'{text}" if text[:1] in FORMULA_STARTS else text
