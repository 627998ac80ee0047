"""What every reader yields, whatever the kind of its file."""

from __future__ import annotations

from typing import Any, NamedTuple

KEY_COLUMN = "(key)"
"""The column of the key that a record, or the list it is in, stands under."""


class Row(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]
