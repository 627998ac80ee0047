"""Imagined judges, panels and dialogues whose figures are known: what the coverage studies draw from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.panel import Meeting

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Rng = np.random.Generator

GRADES = scale_of(range(4))


def graded(n: int, rng: Rng) -> tuple[Floats, Floats]:
    """Three annotators' and a judge's scores 0 to 3 of n items."""
    quality = rng.normal(size=(n, 1))
    humans = np.clip(np.round(1.5 + quality + 0.6 * rng.normal(size=(n, 3))), 0, 3)
    judge = np.clip(np.round(1.9 + 0.8 * quality[:, 0] + 0.6 * rng.normal(size=n)), 0, 3)
    return humans, judge


def two_criteria(n: int, rng: Rng) -> RatingsTable:
    """Two criteria that share a third of their variance, scored by two annotators of the crowd and an expert."""
    quality = rng.normal(size=(n, 2)) + 0.7 * rng.normal(size=(n, 1))
    scores = np.clip(np.round(1.5 + quality[:, None, :] + 0.6 * rng.normal(size=(n, 3, 2))), 0, 3)
    item, rater, criterion = (a.ravel() for a in np.indices(scores.shape))
    frame = pd.DataFrame(
        {
            "item": item,
            "rater": np.array([*"abc"])[rater],
            "criterion": np.array(["fluency", "tone"])[criterion],
            "panel": np.array(["crowd", "crowd", "experts"])[rater],
            "score": scores.ravel(),
        }
    )
    return ratings_table(frame, scales={"*": GRADES})


def met(humans: Floats, judge: Floats, scale: Scale, cluster: Codes | None = None) -> Meeting:
    """Panel and judge side by side, items alone unless clusters are given."""
    where = np.arange(len(judge)) if cluster is None else cluster
    return Meeting(judge, humans, where, tuple("abcde"[: humans.shape[1]]), scale, pd.DataFrame())


def panel(humans: Floats, judge: Floats) -> RatingsTable:
    """The same as a ratings table, items named by number."""
    n, j = humans.shape
    raters, kinds = [*"abcde"[:j], "gpt"], [*["annotator"] * j, "judge"]
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n), j + 1),
            "rater": np.tile(raters, n),
            "rater_kind": np.tile(kinds, n),
            "score": np.column_stack([humans, judge]).ravel(),
        }
    )
    return ratings_table(frame, scales={"*": GRADES})
