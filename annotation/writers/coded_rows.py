"""Rows as coded columns: each distinct value once, and for each row the place of its value.

A ratings table of a million rows has some thousand distinct values. As coded columns it takes a tenth of the memory of
tuples, becomes a DataFrame without a loop over its rows, and its CSV is joined from texts that are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AT_ONCE = 20_000  # rows
CodedCells = tuple[Any, ...]


class CodedColumn(NamedTuple):
    """`codes` (M,): the place of each row's value in `values`, in which a value may stand more than once."""

    codes: NDArray[np.intp]
    values: Sequence[Any]

    def distinct(self) -> CodedColumn:
        """The same column with each value once, in the order in which they first stand in `values`."""
        import numpy as np

        kinds = set(map(type, self.values)) - {type(None)}
        is_plain = len(kinds) == 1 and not kinds & {list, dict}  # else 1 and True, or 1 and 1.0, are one key
        keys = self.values if is_plain else [(type(value), hashable_cell(value)) for value in self.values]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        if len(places) == len(self.values):
            return self
        moved = list(map(places.__getitem__, keys))
        first = dict(zip(reversed(moved), reversed(self.values), strict=True))
        return CodedColumn(np.array(moved, dtype=np.intp)[self.codes], [first[place] for place in range(len(places))])


def hashable_cell(value: Any) -> Any:
    """A value that can be a key of a dictionary."""
    return repr(value) if isinstance(value, (list, dict)) else value


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """The values as objects, whatever they are: a list stays one value."""
    import numpy as np

    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


class CodedRows:
    """Rows that are stored as coded columns. Iterating yields tuples; it can be done again."""

    def __init__(self, columns: Sequence[CodedColumn]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0].codes)

    def __iter__(self) -> Iterator[CodedCells]:
        found = [objects(column.values) for column in self.columns]
        for start in range(0, len(self), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            parts = [values[column.codes[here]].tolist() for values, column in zip(found, self.columns, strict=True)]
            yield from zip(*parts, strict=True)

    def values(self, place: int) -> set[Any]:
        """The values that occur in a column."""
        import numpy as np

        column = self.columns[place]
        occurs = np.bincount(column.codes, minlength=len(column.values)) > 0
        return {value for value, is_there in zip(column.values, occurs.tolist(), strict=True) if is_there}

    def where(self, let_through: Mapping[int, Callable[[Any], bool]]) -> CodedRows:
        """The rows whose values in these columns are let through."""
        import numpy as np

        keep = np.ones(len(self), dtype=bool)
        for place, test in let_through.items():
            column = self.columns[place]
            keep &= np.array([test(value) for value in column.values], dtype=bool)[column.codes]
        return self.kept(keep)

    def kept(self, keep: NDArray[np.bool_]) -> CodedRows:
        """The rows (M,) that are True; columns that share their codes still do."""
        codes = {id(column.codes): column.codes for column in self.columns}
        parts = {key: each[keep] for key, each in codes.items()}
        return CodedRows([CodedColumn(parts[id(column.codes)], column.values) for column in self.columns])


def combined_codes(
    first: NDArray[np.intp], second: NDArray[np.intp], size: int
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """One code (M,) for two, and by code the pair that it stands for; `second` is below `size`."""
    import numpy as np

    pair = first * size + second
    most = int(pair.max()) + 1 if len(pair) else 0
    if most > 1 << 24:  # too many to mark
        occurring, codes = np.unique(pair, return_inverse=True)
    else:
        is_there = np.zeros(most, dtype=bool)
        is_there[pair] = True
        occurring = np.flatnonzero(is_there)
        places = np.zeros(most, dtype=np.intp)
        places[occurring] = np.arange(len(occurring))
        codes = places[pair]
    return codes, [divmod(number, size) for number in occurring.tolist()]
