"""The statistics of a leaderboard, and the places that the clear differences between generators leave open.

Place 1 is the best score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from annotation.models import Criterion

LEADERBOARD = (PANEL, JUDGE, CORRECTED, LABELS, DIFFERENCE) = tuple(
    f"leaderboard.{name}"
    for name in ("panel_mean", "judge_mean", "corrected_mean", "effective_labels", "corrected_difference")
)
POOLED = "leaderboard.pooled_mean"
Direction = Criterion.Direction


def place_range(
    generator: str, differences: Iterable[Mapping[str, Any]], direction: str
) -> tuple[int, int, int] | None:
    """The first and the last place that are open to a generator, and the number of generators.

    `differences`: rows of `leaderboard.corrected_difference` of one criterion and column: `generator` less `variant`.
    A difference counts if its whole interval lies on one side of 0. None without differences, or if the criterion has
    no better end.
    """
    better = worse = others = 0
    for row in differences:
        if generator not in (row["generator"], row["variant"]):
            continue
        others += 1
        if row.get("low") is None or row.get("high") is None or row["low"] <= 0 <= row["high"]:
            continue
        is_above = (row["low"] > 0) == (row["generator"] == generator)
        if is_above == (direction != Direction.LOWER):
            worse += 1  # the other one is worse
        else:
            better += 1
    if not others or direction not in (Direction.LOWER, Direction.HIGHER):
        return None
    return 1 + better, 1 + others - worse, others + 1
