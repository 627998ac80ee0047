"""What the coverage studies draw from: judges, panels and dialogues whose figures are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.judge_against_panel import JudgeAgainstPanel

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


def against_panel(humans: Floats, judge: Floats, scale: Scale, cluster: Codes | None = None) -> JudgeAgainstPanel:
    """Panel and judge side by side, items alone unless clusters are given."""
    where = np.arange(len(judge)) if cluster is None else cluster
    return JudgeAgainstPanel(judge, humans, where, tuple("abcde"[: humans.shape[1]]), scale, pd.DataFrame())


def panel(humans: Floats, judge: Floats) -> RatingsTable:
    """The same as a ratings table, items named by number."""
    n, j = humans.shape
    names = [*"abcdefghij"] if j <= 10 else [f"r{number:02}" for number in range(j)]
    raters, kinds = [*names[:j], "gpt"], [*["annotator"] * j, "judge"]
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n), j + 1),
            "rater": np.tile(raters, n),
            "rater_kind": np.tile(kinds, n),
            "score": np.column_stack([humans, judge]).ravel(),
        }
    )
    return ratings_table(frame, scales={"*": GRADES})


# --- processes that the intervals do not assume -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PopulationSample:
    """``humans`` (N, R) and ``judge`` (N,) scores of N items, NaN where missing, and each item's ``cluster`` (N,)."""

    humans: Floats
    judge: Floats
    cluster: Codes


def clustered_effects(n_clusters: int, sizes: Codes, rng: Rng, *, spread: float = 1.0) -> tuple[Floats, Floats, Codes]:
    """Latent scores of three raters and a judge: half of the quality, and a part of each rater's error, by cluster.

    ``sizes`` (n_clusters,) items in each cluster. A rater reads a dialogue in one mood: errors share it, too.
    ``spread``: standard deviation of the quality, which is all that raters have in common.
    """
    cluster = np.repeat(np.arange(n_clusters), sizes)
    n = len(cluster)
    quality = spread * np.sqrt(0.5) * (rng.normal(size=n_clusters)[cluster] + rng.normal(size=n))
    mood = 0.5 * rng.normal(size=(n_clusters, 4))[cluster]
    seen = quality[:, None] * [1, 1, 1, 0.8] + mood + 0.6 * rng.normal(size=(n, 4))
    return seen[:, :3], seen[:, 3], cluster


def dialogue_sample(n_clusters: int, rng: Rng, *, size: int = 10, unequal: bool = False) -> PopulationSample:
    """Grades 0 to 3 of n_clusters dialogues of ``size`` turns each, or of 1 to 2 size - 1 turns."""
    sizes = rng.integers(1, 2 * size, size=n_clusters) if unequal else np.full(n_clusters, size)
    humans, judge, cluster = clustered_effects(n_clusters, sizes, rng)
    grades = [np.clip(np.round(x + shift), 0, 3) for x, shift in ((humans, 1.5), (judge, 1.9))]
    return PopulationSample(grades[0], grades[1], cluster)


def clustered_flags(n_clusters: int, rng: Rng, *, size: int = 10, spread: float = 1.0) -> PopulationSample:
    """A flag on every fourth turn, by dialogue. Raters' kappa is .40, of a ``spread`` of .37 .10, of 0 0."""
    humans, judge, cluster = clustered_effects(n_clusters, np.full(n_clusters, size), rng, spread=spread)
    shared, alone = spread**2, 0.25 + 0.36
    limits = 0.85 * np.sqrt((shared + alone) / (1 + alone)), 0.8 * np.sqrt((0.64 * shared + alone) / (0.64 + alone))
    return PopulationSample((humans > limits[0]).astype(float), (judge > limits[1]).astype(float), cluster)


def dirichlet_multinomial(n: int, rng: Rng) -> PopulationSample:
    """Every item has its own shares of four labels; three raters draw from them, the judge from sharpened ones."""
    shares = rng.dirichlet([1.2, 0.5, 0.2, 0.1], size=n)
    labels = [_drawn(shares, rng) for _ in range(3)]
    sharp = shares**2 / (shares**2).sum(axis=1, keepdims=True)
    return PopulationSample(np.column_stack(labels), _drawn(sharp, rng), np.arange(n))


def ceiling(n: int, rng: Rng) -> PopulationSample:
    """Four grades of which nine in ten are the best."""
    quality = rng.normal(size=(n, 1))
    seen = quality + 0.7 * rng.normal(size=(n, 4))
    grades = np.digitize(seen, [-2.6, -2.1, -1.56]).astype(float)
    return PopulationSample(grades[:, :3], grades[:, 3], np.arange(n))


def heavy_tails(n: int, rng: Rng) -> PopulationSample:
    """Continuous scores; quality and every error have Student's t with three degrees of freedom."""
    quality = rng.standard_t(3, size=(n, 1))
    seen = quality + 0.5 * rng.standard_t(3, size=(n, 4))
    return PopulationSample(seen[:, :3], 0.8 * seen[:, 3] + 0.2, np.arange(n))


def skewed(n: int, rng: Rng) -> PopulationSample:
    """Continuous scores such as seconds or prices: log-normal quality and errors."""
    seen = np.exp(0.6 * rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4)))
    return PopulationSample(seen[:, :3], seen[:, 3], np.arange(n))


def rare_flag(n: int, rng: Rng, *, share: float = 0.08) -> PopulationSample:
    """A flag on 8 % of the items: annotators find .85 of them, the judge .75, both raise 2 % wrongly."""
    present = rng.random((n, 1)) < share
    found = np.where(present, rng.random((n, 4)) < [0.85, 0.85, 0.85, 0.75], rng.random((n, 4)) < 0.02)
    return PopulationSample(found[:, :3].astype(float), found[:, 3].astype(float), np.arange(n))


def near_one(n: int, rng: Rng) -> PopulationSample:
    """Three raters who agree on 97 % of the pairs."""
    present = rng.random((n, 1)) < 0.3
    found = present ^ (rng.random((n, 4)) < 0.015)
    return PopulationSample(found[:, :3].astype(float), found[:, 3].astype(float), np.arange(n))


def grades_with_gaps(n: int, rng: Rng) -> PopulationSample:
    """Four grades by three raters of different severity, a fifth of their scores missing."""
    quality = rng.normal(0.4, 1, (n, 1))
    seen = quality + np.array([-0.2, 0.0, 0.3, 0.2]) + rng.normal(0, 0.8, (n, 4))
    grades = np.digitize(seen, [-1.0, 0.0, 1.2]).astype(float)
    return PopulationSample(_with_gaps(grades[:, :3], rng), grades[:, 3], np.arange(n))


def flags_with_gaps(n: int, rng: Rng) -> PopulationSample:
    """A flag on one item in six: found with sensitivity .7, raised wrongly on 4 %; a fifth of the scores missing."""
    present = rng.random((n, 1)) < 1 / 6
    raised = np.where(present, rng.random((n, 4)) < 0.7, rng.random((n, 4)) < 0.04).astype(float)
    return PopulationSample(_with_gaps(raised[:, :3], rng), raised[:, 3], np.arange(n))


def fresh_raters(n: int, n_raters: int, rng: Rng) -> PopulationSample:
    """Grades by raters drawn anew each time, who differ in severity and in how far they agree with anybody."""
    quality = rng.normal(size=(n, 1))
    severity, noise = 0.5 * rng.normal(size=n_raters), 0.5 + 0.3 * rng.exponential(size=n_raters)
    seen = quality + severity + noise * rng.normal(size=(n, n_raters))
    judge = np.clip(np.round(1.9 + 0.8 * quality[:, 0] + 0.6 * rng.normal(size=n)), 0, 3)
    return PopulationSample(np.clip(np.round(1.5 + seen), 0, 3), judge, np.arange(n))


def _with_gaps(scores: Floats, rng: Rng) -> Floats:
    return np.where(rng.random(scores.shape) < 0.2, np.nan, scores)


def _drawn(shares: Floats, rng: Rng) -> Floats:
    """(N,) a label of each row of shares (N, q)."""
    below = (shares.cumsum(axis=1) < rng.random((len(shares), 1))).sum(axis=1)
    return below.clip(max=shares.shape[1] - 1).astype(np.float64)


def careless_raters(n: int, n_raters: int, rng: Rng, *, share: float = 0.2) -> PopulationSample:
    """Grades by raters drawn anew each time, of whom a share gives any grade to anything."""
    quality = rng.normal(size=(n, 1))
    seen = np.clip(np.round(1.5 + quality + 0.6 * rng.normal(size=(n, n_raters))), 0, 3)
    careless = rng.random(n_raters) < share
    scores = np.where(careless, rng.integers(0, 4, size=(n, n_raters)), seen)
    judge = np.clip(np.round(1.9 + 0.8 * quality[:, 0] + 0.6 * rng.normal(size=n)), 0, 3)
    return PopulationSample(scores.astype(np.float64), judge, np.arange(n))
