"""Dialogues of a plain file, for surface metrics: a dialogue a row with ``text`` or ``turns``, or a turn a row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics.stats.core.tables import Problem, TableError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One text: its turns as (speaker, text), a plain text one turn of no speaker; other columns in ``labels``."""

    item: str
    turns: tuple[tuple[str, str], ...]
    language: str | None = None
    generator: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def text(self, speaker: str | None = None) -> str:
        """All turns, or those of one speaker, a line each."""
        return "\n".join(text for who, text in self.turns if speaker is None or who == speaker)

    def value(self, column: str) -> str | None:
        """The dialogue's value of a grouping column."""
        if column in ("language", "generator"):
            return self.language if column == "language" else self.generator
        return self.labels.get(column)


def dialogues(frame: pd.DataFrame) -> list[Dialogue]:
    """The dialogues of a frame with ``item`` and ``turns`` (JSON list of {speaker, text}) or ``text``.

    Rows that share an item (and language and generator) and have a ``speaker`` are turns of one dialogue, in their
    order. Raises ``TableError`` naming every bad row.
    """
    if "item" not in frame or not ({"text", "turns"} & set(frame.columns)):
        raise TableError([Problem(None, "a file of dialogues needs the column 'item' and 'text' or 'turns'")])
    problems: list[Problem] = []
    held: dict[tuple[str, str | None, str | None], list[tuple[str, str]]] = {}
    labels: dict[tuple[str, str | None, str | None], dict[str, str]] = {}
    for row, record in enumerate(_records(frame)):
        key = (str(record["item"]), _known(record.get("language")), _known(record.get("generator")))
        turns = list(_turns(record, row, problems))
        if key in held and "speaker" not in record:
            problems.append(Problem(row, f"the item {key[0]!r} occurs twice"))
        held.setdefault(key, []).extend(turns)
        labels.setdefault(key, {name: str(v) for name, v in record.items() if name not in _TEXT and _known(v)})
    if problems:
        raise TableError(problems)
    return [Dialogue(key[0], tuple(turns), key[1], key[2], labels[key]) for key, turns in held.items()]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(map(str, frame.columns), row, strict=True)) for row in frame.itertuples(index=False, name=None)]


_TEXT = frozenset({"item", "text", "turns", "speaker", "language", "generator"})


def _turns(record: Mapping[str, Any], row: int, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    if not _known(record.get("turns")):
        yield str(record.get("speaker") or ""), str(record.get("text") or "")
        return
    try:
        turns = json.loads(record["turns"]) if isinstance(record["turns"], str) else record["turns"]
        yield from [(_word(turn.get("speaker")), _word(turn["text"])) for turn in turns]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        problems.append(Problem(row, "turns is not a JSON list of {speaker, text}"))


def _word(value: Any) -> str:
    """A text or a number as text, null as none; ``TypeError`` for anything else."""
    if isinstance(value, (list, dict)):
        raise TypeError(value)
    return "" if value is None else str(value)


def _known(value: Any) -> str | None:
    return None if value is None or value != value or value == "" else str(value)
