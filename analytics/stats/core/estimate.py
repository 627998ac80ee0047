"""The one thing every statistic returns: a value with its interval and counts, or the reason there is none."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One figure about one cell (METHODS 0).

    ``value`` is ``None`` when the statistic is undefined, and then ``reason`` says why; an undefined figure is a
    result that is shown, never an exception and never 1.0. ``low`` and ``high`` bound the interval at
    ``confidence`` made by ``method``; they are ``None`` with ``interval_reason`` when no interval can be given.
    ``n_clusters`` counts the clusters of the ``n_items`` items, where they are known.
    ``speaks_for``: ``these raters``, or ``raters like these`` where raters are taken as a sample, too.
    """

    statistic: str
    value: float | None
    variant: str | None = None
    level: str | None = None
    se: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str | None = None
    n_items: int = 0
    n_raters: int = 0
    n_ratings: int = 0
    n_missing: int = 0
    seed: int | None = None
    undefined_share: float | None = None
    reason: str | None = None
    interval_reason: str | None = None
    note: str | None = None
    n_clusters: int | None = None
    speaks_for: str | None = None

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"{self.statistic}: an undefined estimate must say why")

    @property
    def is_defined(self) -> bool:
        """Whether there is a value at all."""
        return self.value is not None

    def with_(self, **changes: Any) -> Estimate:
        """The same estimate with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {column.name: getattr(self, column.name) for column in fields(self)}


COLUMNS = (
    "statistic",
    "variant",
    "level",
    "criterion",
    "language",
    "languages",
    "judge",
    "raters",
    "generator",
    "annotator",
    "reference",
    "weights",
    "value",
    "se",
    "p",
    "low",
    "high",
    "confidence",
    "method",
    "n_items",
    "n_raters",
    "n_ratings",
    "n_missing",
    "reason",
)
"""The published names of one estimate's columns, in order; ``CellEstimate.as_row`` only ever adds to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEstimate:
    """An estimate and the cell of the ratings table it speaks of.

    ``cell`` maps each grouping column (criterion, language, generator, any ``--by`` column) to its value. The other
    fields name what the figure is about when that is no grouping column: the judge, the pair of raters, the pair
    of languages, the annotator (compared, or left out), the rule of the reference label, the weighting, the scale.
    """

    estimate: Estimate
    cell: dict[str, str | None] = field(default_factory=dict)
    criterion: str | None = None
    language: str | None = None
    languages: tuple[str, ...] | None = None
    judge: str | None = None
    raters: tuple[str, ...] | None = None
    generator: str | None = None
    annotator: str | None = None
    reference: str | None = None
    weights: str | None = None
    scale: str | None = None

    def on_scale(self, scale: str | None) -> CellEstimate:
        """The same, with the scale its scores were given on, in words."""
        return replace(self, scale=scale)

    def remarked(self, min_items: int) -> CellEstimate:
        """The same, with a remark where a value rests on fewer items than that."""
        if self.estimate.value is None or self.estimate.n_items >= min_items:
            return self
        note = "; ".join(part for part in (f"fewer than {min_items} items", self.estimate.note) if part)
        return replace(self, estimate=self.estimate.with_(note=note))

    def as_row(self) -> dict[str, Any]:
        """One flat row: the published columns first, then seed, notes and the cell's other columns."""
        own = {
            name: self.cell.get(name, getattr(self, name)) if name in ("criterion", "language", "generator")
            else getattr(self, name)
            for name in ("criterion", "language", "languages", "judge", "raters", "generator", "annotator", "reference",
                         "weights")
        }  # fmt: skip
        row = self.estimate.as_dict() | {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}
        ordered = {name: row.pop(name) for name in COLUMNS} | row
        if self.scale is not None:
            ordered["scale"] = self.scale
        return ordered | {name: value for name, value in self.cell.items() if name not in ordered}
