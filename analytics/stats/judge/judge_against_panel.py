"""A judge and the panel on the items of one cell, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.number_arrays import Codes, Floats
from analytics.stats.core.scales import Scale
from analytics.stats.core.tables import HUMAN_KINDS, Cell

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class JudgeAgainstPanel:
    """Scores of one judge and of a panel on N items, NaN where missing.

    ``judge`` (N,): its first repeat, fractions kept, values beyond the scale left out and counted in
    ``n_out_of_range``. ``humans`` (N, J): one column per name in ``annotators``. ``cluster`` (N,): what is resampled.
    ``probability`` (N,): with which the item was drawn for people, NaN where none or more than one is given; None where
    the file gives none at all. ``labels`` (N,): reference labels settled by a rule that sees more than the annotators'
    scores of the item (adjudication, Dawid-Skene, ties); None: the scores settle it. Text points stand as their place
    on the scale.
    """

    judge: Floats
    humans: Floats
    cluster: Codes
    annotators: tuple[str, ...]
    scale: Scale
    rows: pd.DataFrame
    n_out_of_range: int = 0
    probability: Floats | None = None
    labels: Floats | None = None

    @classmethod
    def of(cls, cell: Cell, judge: str, *, raters: Sequence[str] | None = None) -> JudgeAgainstPanel:
        """The judge and the annotators (or those of ``raters``) on every item of the cell that either scored."""
        import pandas as pd

        frame = cell.frame[(cell.frame["repeat"] == cell.frame["first_repeat"]).to_numpy()]
        is_judge = (frame["rater"] == judge).to_numpy()
        is_human = frame["rater_kind"].isin(HUMAN_KINDS).to_numpy() & ~is_judge
        if raters is not None:
            is_human &= frame["rater"].isin(list(raters)).to_numpy()
        is_here = is_judge | is_human
        frame, is_judge, is_human = frame if is_here.all() else frame[is_here], is_judge[is_here], is_human[is_here]
        criterion, names_of_criteria = pd.factorize(frame["criterion"])
        item, _ = pd.factorize(frame["item_key"].to_numpy() * max(len(names_of_criteria), 1) + criterion)
        n = int(item.max()) + 1 if item.size else 0
        first = np.zeros(n, dtype=np.intp)
        first[item[::-1]] = np.arange(len(item))[::-1]
        score = numbers(frame, cell.scale)
        judge_score = np.full(n, np.nan)
        judge_score[item[is_judge]] = score[is_judge]
        rater, names = pd.factorize(frame["rater"].to_numpy()[is_human], sort=True)
        humans = np.full((n, len(names)), np.nan)
        humans[item[is_human], rater] = score[is_human]
        cluster, _ = pd.factorize(frame["cluster"].to_numpy()[first])
        beyond = int((frame["out_of_range"].to_numpy() & is_judge).sum())
        rows = frame.iloc[first].set_axis(range(n))
        probability = _probability(frame, item, is_human)
        return cls(judge_score, humans, cluster, tuple(map(str, names)), cell.scale, rows, beyond, probability)

    @property
    def n_human(self) -> Codes:
        """(N,) how many annotators scored each item."""
        return np.asarray((~np.isnan(self.humans)).sum(axis=1), dtype=np.intp)


def _probability(frame: pd.DataFrame, item: Codes, is_human: NDArray[np.bool_]) -> Floats | None:
    """(N,) of each item from all of its rows: people's, or, where they say nothing, the judge's."""
    import pandas as pd

    if "inclusion_prob" not in frame:
        return None
    stated = pd.to_numeric(frame["inclusion_prob"], errors="coerce").to_numpy(dtype=np.float64)
    has_value = ~np.isnan(stated)
    if not has_value.any():
        return None
    n = int(item.max()) + 1
    by_people = np.bincount(item[has_value & is_human], minlength=n) > 0
    counts = has_value & (is_human | ~by_people[item])
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, item[counts], stated[counts])
    np.maximum.at(high, item[counts], stated[counts])
    return np.where(low == high, low, np.nan)


def cell_key(cell: Cell) -> dict[str, str | None]:
    """The cell's key as estimates carry it: a criterion without a name is None."""
    return {column: value or None for column, value in cell.key.items()}


def numbers(frame: pd.DataFrame, scale: Scale) -> Floats:
    """Each row's score as a number on the scale, NaN when missing, not applicable or out of range."""
    score = frame["score"].to_numpy() if scale.is_numeric else frame["code"].to_numpy().astype(np.float64)
    is_number = ~frame["out_of_range"].to_numpy() & ~frame["missing"].to_numpy() & frame["applicable"].to_numpy()
    return np.where(is_number, score, np.nan)
