"""How the columns of somebody's file become our fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["dataset", "ratings", "verdicts"]
KEY_COLUMN = "(key)"


@dataclass(frozen=True, slots=True)
class Mapping:
    """Columns to fields, constants, value maps, and how the file is laid out. Immutable; round-trips through YAML.

    ``columns``: column (or ``outer.inner`` path; ``(key)`` = the key a list of records stands under) -> field.
    Fields of a dataset: id language generator scenario title turns content_warning, the named fields, ``attributes``
    (an object, spread) and ``attributes.NAME``. Of ratings and verdicts: item rater | judge criterion score rationale
    seconds language scale_max | repeat reply generator, ``score.CRITERION`` and ``rationale.CRITERION`` for one column
    per criterion, ``ratings.CRITERION`` for a list of {rater, score} inside an item.
    ``constants``: field -> value where no column gives it. ``values``: field -> {found: meant}. ``ignore``: columns
    that are dropped. ``speakers``: prefix -> speaker, for turns written as one text.
    """

    columns: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    speakers: dict[str, str] = field(default_factory=dict)
    allow_empty: bool = False
    format: str | None = None
    records: str | None = None
    delimiter: str | None = None
    quoting: bool = True
    line_breaks: bool = False
    header: tuple[str, ...] = ()

    @classmethod
    def from_yaml(cls, name: str, text: str | bytes) -> Mapping:
        """Read a saved mapping. Raises ``FormatError`` naming the line that is wrong."""
        raise NotImplementedError

    @classmethod
    def from_pairs(cls, pairs: Iterable[str]) -> Mapping:
        """Read ``column=field`` pairs as typed on a command line. Raises ``FormatError``."""
        raise NotImplementedError

    def as_yaml(self) -> str:
        """The mapping as a file that ``from_yaml`` reads back to an equal one."""
        raise NotImplementedError

    def updated(self, other: Mapping) -> Mapping:
        """This mapping with everything that ``other`` says put over it."""
        raise NotImplementedError


def guess(kind: Kind, columns: Sequence[str], sample: Iterable[dict[str, Any]] = ()) -> Mapping:
    """The mapping that the names of the columns and a sample of their values suggest; to be shown, then saved."""
    raise NotImplementedError
