"""Rationales of people and judges: how long, how varied, in the item's language? (METHODS 1: S2, Tables 6 and 7.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.core.resampling import Units, bootstrap, jackknife
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, cells
from analytics.stats.text.surface import mattr
from analytics.stats.text.words import tokeniser

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


def rationale_report(
    table: RatingsTable,
    *,
    column: str = "rationale",
    by: Sequence[str] = ("language", "criterion"),
    resamples: int = 2000,
    seed: int = 0,
) -> list[CellEstimate]:
    """Per cell, for the annotators together (``judge`` None) and for each judge; blank rationales are left out.

    ``rationale_words``: mean length. ``rationale_mattr``: moving-average type-token ratio (window 100) of all of them
    in the order of the table. ``rationale_in_language``: mean share of words that the dictionary of the cell's language
    knows; undefined for a language without one. ``n_missing`` counts ratings without a rationale.
    """
    return [row for cell in cells(table, by=by) for row in _of_cell(cell, column, resamples, seed)]


def _of_cell(cell: Cell, column: str, resamples: int, seed: int) -> Iterator[CellEstimate]:
    human = cell.frame["rater_kind"].isin(HUMAN_KINDS).to_numpy()
    is_judge = cell.frame["rater_kind"].isin(("judge", "jury")).to_numpy()
    yield from _of_rows(cell, cell.frame[human], None, column, resamples, seed)
    for judge in sorted(cell.frame["rater"][is_judge].unique()):
        rows = cell.frame[(cell.frame["rater"] == judge).to_numpy()]
        yield from _of_rows(cell, rows, judge, column, resamples, seed)


def _of_rows(
    cell: Cell, rows: pd.DataFrame, judge: str | None, column: str, resamples: int, seed: int
) -> Iterator[CellEstimate]:
    texts = rows[column].fillna("").astype(str).str.strip()
    written = (texts != "").to_numpy()
    kept = rows[written]
    counts = {
        "n_items": int(kept["item_key"].nunique()),
        "n_clusters": int(kept["cluster"].nunique()),
        "n_raters": int(kept["rater"].nunique()),
        "n_ratings": int(written.sum()),
        "n_missing": int((~written).sum()),
    }
    language = cell.key.get("language")
    split = tokeniser(language)[1]
    words = [split(text) for text in texts[written]]
    clusters = kept["cluster"].to_numpy(dtype=str)
    lengths = np.array([len(tokens) for tokens in words], dtype=np.float64)
    known, why = _known(list(texts[written]), language)
    variety = mattr([word for tokens in words for word in tokens])
    found = (
        _mean("rationale_words", lengths, clusters, resamples, seed, "nobody wrote one"),
        Estimate(statistic="rationale_mattr", value=variety, reason=None if variety else "nobody wrote one",
                 interval_reason="one figure of one long text"),
        _mean("rationale_in_language", known, clusters, resamples, seed, why),
    )  # fmt: skip
    yield from (CellEstimate(estimate=estimate.with_(**counts), cell=cell.key, judge=judge) for estimate in found)


def _known(texts: list[str], language: str | None) -> tuple[Floats, str]:
    """(N,) share of each text's words that the language's dictionary knows; empty, and why, where there is none."""
    from simplemma import in_target_language

    base = (language or "").split("-")[0]
    try:
        shares = [in_target_language(text, lang=base) for text in texts] if base else []
    except ValueError:
        return np.empty(0), f"no dictionary of {language}"
    return np.array(shares, dtype=np.float64), "nobody wrote one" if base else "the table names no language"


def _mean(statistic: str, values: Floats, clusters: NDArray[np.str_], resamples: int, seed: int, why: str) -> Estimate:
    """Mean of values (N,), resampled by cluster: a ratio of the clusters' sums and sizes."""
    if not values.size:
        return Estimate(statistic=statistic, value=None, reason=why)
    cluster = np.unique(clusters, return_inverse=True)[1]
    sums, sizes = np.bincount(cluster, weights=values), np.bincount(cluster)

    def ratio(weights: Floats) -> Floats:
        return np.asarray(weights @ sums / (weights @ sizes))

    units = Units.of(np.arange(len(sizes)))
    rng = np.random.default_rng(seed)
    interval = bootstrap(ratio, units, rng=rng, resamples=resamples) if resamples else jackknife(ratio, units)
    estimate = Estimate(statistic=statistic, value=float(values.mean()), seed=seed if resamples else None)
    return estimate.with_(**interval.as_changes())
