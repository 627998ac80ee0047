"""Juries: several judges as one more rater, named in a question as a row of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

JURY_RULES = ("majority", "median", "mean", "minimum")
"""On nominal criteria the last three have no meaning, and the majority is taken."""


def jury_name(members: Sequence[str], rule: str) -> str:
    """What the ratings table calls a jury as a rater."""
    return f"{rule} of {', '.join(members)}"


def jury_members(text: str) -> tuple[str, ...]:
    row = next(csv.reader([text.replace("\n", " ").replace("\r", " ")], skipinitialspace=True), [])
    return tuple(name.strip() for name in row if name.strip())


def jury_text(text: str) -> str:
    """The members of a jury in order, each once, as a row of CSV: `A,B,"Tamm, Jaan"`."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(sorted(set(jury_members(text))))
    return row.getvalue()
