"""The heatmap of one coefficient, criterion by language: how deep each cell is inked, and what asks for a look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.figures import Figure, Figures

COEFFICIENTS = ("krippendorff_alpha", "fleiss_kappa", "gwet_ac", "percent_agreement")
FAINTEST, STEP, DEEPEST = 0.2, 0.1, 7
"""The first bin ends at FAINTEST + STEP; each of the seven bins is a STEP wide but the outermost, which are open."""
ATTENTION = 0.4
CHANCE_CORRECTED = COEFFICIENTS[:3]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell; without a figure nobody rated it."""

    criterion: str
    language: str | None
    figure: Figure | None

    @property
    def bin(self) -> int | None:
        """1 to 7, or None for an undefined cell."""
        if self.figure is None or self.figure.value is None:
            return None
        steps = int((self.figure.value - FAINTEST) / STEP + 1e-9) if self.figure.value >= FAINTEST else 0
        return min(steps, DEEPEST - 1) + 1

    @property
    def is_muted(self) -> bool:
        return self.figure is not None and self.figure.is_defined and self.figure.is_small

    @property
    def needs_attention(self) -> bool:
        """Whether chance-corrected agreement is below ATTENTION."""
        figure = self.figure
        if figure is None or figure.value is None or figure.statistic not in CHANCE_CORRECTED:
            return False
        return figure.value < ATTENTION


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Rows are criteria, columns are `languages`; None stands for all languages together."""

    statistic: str
    languages: tuple[str | None, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]

    @property
    def cells(self) -> list[HeatCell]:
        """Every cell of a single language, criterion by criterion."""
        return [cell for _criterion, row in self.rows for cell in row if cell.language is not None]

    @property
    def undefined(self) -> list[HeatCell]:
        """Every cell without a value, those over all languages included."""
        return [cell for _criterion, row in self.rows for cell in row if cell.bin is None]


def heatmap(figures: Figures, *, statistic: str, criteria: Sequence[str], languages: Sequence[str]) -> Heatmap:
    """The cells of every criterion in every language, and over all languages where there are several."""
    columns: tuple[str | None, ...] = (*languages, None) if len(languages) > 1 else tuple(languages)
    rows = tuple(
        (criterion, tuple(HeatCell(criterion, tag, figures.get(statistic, criterion, tag)) for tag in columns))
        for criterion in criteria
    )
    return Heatmap(statistic, columns, rows)
