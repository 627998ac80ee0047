"""Imagined judges, panels and dialogues whose figures are known: what the coverage studies draw from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.meeting import Meeting
from analytics.stats.scales import Scale, scale_of
from analytics.stats.tables import RatingsTable, ratings_table

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Rng = np.random.Generator

GRADES = scale_of(range(4))
FLAG = scale_of([0, 1], "nominal")


def graded(n: int, rng: Rng) -> tuple[Floats, Floats]:
    """Three annotators' and a judge's scores 0 to 3 of n items."""
    quality = rng.normal(size=(n, 1))
    humans = np.clip(np.round(1.5 + quality + 0.6 * rng.normal(size=(n, 3))), 0, 3)
    judge = np.clip(np.round(1.9 + 0.8 * quality[:, 0] + 0.6 * rng.normal(size=n)), 0, 3)
    return humans, judge


def flagged(n: int, rng: Rng) -> tuple[Floats, Floats]:
    """A flag on one item in six: annotators find .8 of them, the judge .7, both raise 5 % wrongly."""
    present = rng.random((n, 1)) < 1 / 6
    humans = np.where(present, rng.random((n, 3)) < 0.8, rng.random((n, 3)) < 0.05)
    judge = np.where(present[:, 0], rng.random(n) < 0.7, rng.random(n) < 0.05)
    return humans.astype(np.float64), judge.astype(np.float64)


def dialogues(n: int, rng: Rng) -> tuple[Floats, Floats, Codes]:
    """The same of n dialogues of 2 to 5 turns that share half of their quality, and each turn's dialogue."""
    cluster = np.repeat(np.arange(n), rng.integers(2, 6, size=n))
    quality = np.sqrt(0.5) * (rng.normal(size=n)[cluster] + rng.normal(size=len(cluster)))
    humans = np.clip(np.round(1.5 + quality[:, None] + 0.6 * rng.normal(size=(len(cluster), 3))), 0, 3)
    judge = np.clip(np.round(1.9 + 0.8 * quality + 0.6 * rng.normal(size=len(cluster))), 0, 3)
    return humans, judge, cluster


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
