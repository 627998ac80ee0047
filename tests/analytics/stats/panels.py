"""Small ratings tables for the tests of judges and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analytics.stats.core.scales import Scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table

ZERO_TO_THREE = scale_of(range(4))


def panel_table(
    humans: Any, judge: Sequence[float | str | None], *, scale: Scale | None = ZERO_TO_THREE, **columns: Any
) -> RatingsTable:
    """A table of (N, J) human scores (NaN where missing) and one judge named ``gpt``; further columns by item."""
    humans = np.array(humans, dtype=object)
    rows: list[Mapping[str, Any]] = []
    for i, scores in enumerate(humans):
        of_item = {"item": f"i{i}", **{name: values[i] for name, values in columns.items()}}
        rows += [
            of_item | {"rater": f"h{j + 1}", "rater_kind": "annotator", "score": score}
            for j, score in enumerate(scores)
            if score == score
        ]
        if judge[i] is not None:
            rows.append(of_item | {"rater": "gpt", "rater_kind": "judge", "score": judge[i]})
    return ratings_table(pd.DataFrame(rows), scales={"*": scale} if scale else None)
