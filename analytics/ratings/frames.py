"""A ratings table as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from annotation.writers.coded_rows import CodedColumn, CodedRows
from annotation.writers.tables import Table, nested

if TYPE_CHECKING:
    import pandas as pd


def frame(found: Table, only: Collection[str] | None = None, coded: Collection[str] = ()) -> pd.DataFrame:
    """A ratings table, or ``only`` some of its columns, as a DataFrame: missing scores are NaN, a scale is JSON.

    The columns ``coded`` of coded rows become categories, which need not be found among the rows again.
    """
    import pandas as pd

    chosen = {name: place for place, name in enumerate(found.names) if only is None or name in only}
    if isinstance(found.rows, CodedRows):
        made = {name: categories if name in coded else series for name in chosen}
        columns = {name: made[name](found.rows.columns[place], name) for name, place in chosen.items()}
    else:
        rows = list(found.rows)
        columns = {name: [row[place] for row in rows] for name, place in chosen.items()}
        if "scale" in columns:
            columns["scale"] = list(map(nested, columns["scale"]))
    kinds = {"score": float, "rater_identified": bool, "applicable": bool, "repeat": int, "inclusion_prob": float}
    kinds |= {"weight": float, "seconds": float, "rationale_length": int, "scale": object}
    return pd.DataFrame(columns).astype({name: kind for name, kind in kinds.items() if name in columns})


def series(column: CodedColumn, name: str) -> Any:
    """A column of a DataFrame: each value is converted once."""
    import pandas as pd

    values = list(map(nested, column.values)) if name == "scale" else column.values
    return pd.Series(values, dtype=None if len(values) else object).array.take(column.codes)


def categories(column: CodedColumn, name: str) -> Any:
    """A column of names as categories of a DataFrame, nothing as no category; as `series` where a name is no text."""
    import numpy as np
    import pandas as pd

    codes, values = column.distinct()
    if {*map(type, values)} - {str, type(None)}:
        return series(column, name)
    is_name = np.array([value is not None for value in values], dtype=bool)
    places = np.where(is_name, is_name.cumsum() - 1, -1)
    names = pd.Index([value for value in values if value is not None], dtype=object)
    return pd.Categorical.from_codes(places[codes], categories=names)
