"""Rows of files written by other people's judges -> verdicts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation.formats.answers import AnswerReader, Cell, as_answer
from annotation.formats.fields import as_key, as_number, as_text, is_blank
from annotation.formats.mapping import Mapping
from annotation.formats.problems import Problems, Unfit, excerpt
from annotation.formats.reading import File


class VerdictRow(NamedTuple):
    """One judge's answer on one criterion of one item; the score may be a fraction or off the scale (intake flags it).

    ``generator`` is given where the id of an item is only unique together with it; ``reply`` is the judge's raw text.
    """

    item: str
    judge: str
    criterion: str
    score: float | None
    applicable: bool
    missing: bool
    rationale: str
    repeat: int
    reply: str
    generator: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedVerdicts:
    """``read = len(rows) + collapsed + refused``; ``rows`` holds the missing ones too, marked so."""

    rows: list[VerdictRow]
    read: int
    collapsed: int
    collapsed_blank: int
    missing: int
    refused: int
    problems: Problems


def parse_verdicts(files: Iterable[File], mapping: Mapping) -> ParsedVerdicts:
    """Read verdicts from all ``(name, content)`` files at once, long or with one column per criterion.

    Repetitions and contradictions are those of ``parse_ratings``, by (judge, item, generator, criterion, repeat).
    """
    reader = AnswerReader(mapping, "judge", _verdict)
    for name, raw in files:
        reader.read_file(name, raw)
    rows = reader.ledger.rows()
    return ParsedVerdicts(
        rows=rows,
        read=reader.read,
        collapsed=reader.ledger.collapsed,
        collapsed_blank=reader.ledger.collapsed_blank,
        missing=sum(row.missing for row in rows),
        refused=reader.problems.refused,
        problems=reader.problems,
    )


def _verdict(values: dict[str, Any], cell: Cell, file: str, line: int) -> tuple[Hashable, VerdictRow]:
    answer = as_answer(cell.score)
    row = VerdictRow(
        item=as_key(values.get("item"), "item"),
        judge=as_key(values.get("judge"), "judge"),
        criterion=as_key(cell.criterion, "criterion"),
        score=answer.score,
        applicable=answer.applicable,
        missing=answer.missing,
        rationale=cell.rationale,
        repeat=_repeat(values.get("repeat")),
        reply=as_text(values.get("reply"), "reply"),
        generator=None if is_blank(values.get("generator")) else as_key(values["generator"], "generator"),
        file=file,
        line=line,
    )
    return (row.judge, row.item, row.generator, row.criterion, row.repeat), row


def _repeat(value: Any) -> int:
    number = 0.0 if is_blank(value) else as_number(value, "repeat")
    if number < 0 or not number.is_integer():
        raise Unfit(excerpt(value), "a whole number from 0 for repeat", "repeat", field="repeat")
    return int(number)
