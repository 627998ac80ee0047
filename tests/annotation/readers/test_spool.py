"""More rows than memory holds: they come back as they went in, and each key once."""

import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.readers.answers import cached_conversion
from annotation.readers.spool import BATCH, DROPPED, KEPT, KeyedRows, PlainRow, Spool

values = st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5)
plain = st.tuples(values, st.dictionaries(st.text(max_size=3), values, max_size=2))


def itself(row: PlainRow) -> PlainRow:
    return row


@settings(deadline=None)
@given(st.lists(st.lists(plain, max_size=4), max_size=8), st.integers(0, 2))
def test_rows_come_back_as_they_went_in_any_number_of_times(pieces: list[list[PlainRow]], in_memory: int) -> None:
    spool: Spool[PlainRow] = Spool(itself, in_memory=in_memory)
    rows = []
    for piece in pieces:
        spool.extend(piece, weight=400_000)
        rows += piece
        assert (len(spool), list(spool)) == (len(rows), rows)
    assert (spool[:2], spool[1:3], spool[-1:]) == (rows[:2], rows[1:3], rows[-1:])
    first = iter(spool)
    assert list(zip(first, spool, strict=True)) == list(zip(rows, rows, strict=True)), "two readers at once"


def test_few_rows_stay_in_memory_and_many_go_to_disk() -> None:
    spool: Spool[PlainRow] = Spool(itself, in_memory=1)
    spool.extend([(number,) for number in range(BATCH)])
    assert not spool.is_on_disk
    spool.extend([(number,) for number in range(BATCH, 2 * BATCH)])
    assert spool.is_on_disk
    assert (spool[0], spool[-1], spool[BATCH]) == ((0,), (2 * BATCH - 1,), (BATCH,))
    with pytest.raises(IndexError):
        spool[2 * BATCH]
    spool.close()
    assert list(spool) == []
    del spool
    gc.collect()  # an open file left behind would be a warning, and so an error


def first_of_each(rows: list[PlainRow]) -> list[int]:
    """Keeps the first of the rows with one key, and lets the last say how many there were."""
    return [KEPT, *[DROPPED] * (len(rows) - 2), len(rows)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=40), st.integers(1, 50), st.integers(1, 6))
def test_a_ledger_settles_every_key_however_little_it_may_hold(keys: list[int], block: int, together: int) -> None:
    ledger: KeyedRows[PlainRow] = KeyedRows(itself, lambda row: row[0], block=block, together=together)
    for place, key in enumerate(keys):
        ledger.extend([(key, place)])
    settled = list(ledger.settle(first_of_each, lambda row, times: (*row, times)))
    expected: list[PlainRow] = []
    for place, key in enumerate(keys):
        if keys.index(key) == place:
            expected.append((key, place))
        elif place == len(keys) - 1 - keys[::-1].index(key):
            expected.append((key, place, keys.count(key)))
    assert settled == expected
    assert ledger.entered == len(keys)


class Alike(str):
    """Texts whose hashes are all the same."""

    def __hash__(self) -> int:
        return 7


def test_different_keys_with_one_hash_are_different() -> None:
    ledger: KeyedRows[PlainRow] = KeyedRows(itself, lambda row: Alike(row[0]), block=2)
    ledger.extend([("a",), ("b",), ("c",), ("b",)])
    assert list(ledger.settle(lambda rows: [KEPT, *[DROPPED] * (len(rows) - 1)])) == [("a",), ("b",), ("c",)]


def test_what_was_converted_is_remembered_as_text_only() -> None:
    seen: list[Any] = []

    def convert(value: Any) -> str:
        seen.append(value)
        return repr(value)

    look_up = cached_conversion(convert, most=2)
    assert [look_up(value) for value in ("a", "a", 1, True, 1.0, "b", "c", "a")] == [
        *("'a'", "'a'", "1", "True", "1.0", "'b'", "'c'", "'a'")
    ]
    assert seen == ["a", 1, True, 1.0, "b", "c", "a"]
    assert list(look_up.convert_all(["c", "c", "d"])) == ["'c'", "'c'", "'d'"]
    assert list(look_up.convert_all(["d", 2, ["e"]])) == ["'d'", "2", "['e']"]
    assert seen[7:] == ["d", 2, ["e"]]
