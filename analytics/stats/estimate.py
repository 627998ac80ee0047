"""The one thing every statistic returns: a value with its interval and counts, or the reason there is none."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One figure about one cell (METHODS 0).

    ``value`` is ``None`` when the statistic is undefined, and then ``reason`` says why; an undefined figure is a
    result that is shown, never an exception and never 1.0. ``low`` and ``high`` bound the interval at
    ``confidence`` made by ``method``; they are ``None`` with ``interval_reason`` when no interval can be given.
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
        return asdict(self)
