"""Groups of people in a data statement: none so small that it points at somebody, not by subtraction either."""

from __future__ import annotations

import pytest

from analytics.exporting.hugging_face import groups_in_words, published_groups


@pytest.mark.parametrize(
    ("counts", "people", "expected"),
    [
        ({"MA": 12, "BA": 8}, 20, ([("MA", 10), ("BA", 10)], 0)),
        ({"MA": 12, "ma ": 3, "BA": 5}, 20, ([("MA", 15), ("BA", 5)], 0)),
        # Three with a PhD would be 20 - 12 - 5: the smallest group joins them, 8 are left, printed as 10.
        ({"MA": 12, "BA": 5, "PhD": 3}, 20, ([("MA", 10)], 10)),
        # One person gave no answer: 20 - 19 would show it.
        ({"MA": 12, "BA": 7}, 20, ([("MA", 10)], 10)),
        ({"MA": 4, "BA": 3}, 7, ([], 0)),
        ({"MA": 19}, 20, ([], 0)),
        ({}, 20, ([], 0)),
    ],
)
def test_small_groups_are_not_printed(
    counts: dict[str, int], people: int, expected: tuple[list[tuple[str, int]], int]
) -> None:
    assert published_groups(counts, people) == expected


def test_words() -> None:
    assert groups_in_words({"MA": 12, "BA": 5, "PhD": 3}, 20, "other") == "MA (10), other (10)"
    assert groups_in_words({"MA": 2}, 3, "other") == ""
