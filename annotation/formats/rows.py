"""What every reader yields, whatever the kind of its file."""

from __future__ import annotations

from typing import Any, NamedTuple


class Row(NamedTuple):
    """One record: the physical line it starts on, and its values by column (text from CSV, any JSON from JSON)."""

    line: int
    fields: dict[str, Any]
