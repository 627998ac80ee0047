"""Numbers in addresses: whatever somebody writes there, the answer is never a fault of the server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.inputs import LARGEST_KEY, whole_number
from tests import make
from tests.cast import Cast

ODD = ["9" * 5000, "٣", "-1", "1e9", " 7", "", "1\x00", str(2**63), "0x10"]


@given(st.integers(0, 2**80))
def test_a_whole_number_is_read_up_to_the_largest_key(number: int) -> None:
    assert whole_number(str(number)) == (number if number <= LARGEST_KEY else None)


@pytest.mark.parametrize("text", [odd for odd in ODD if odd])
def test_what_is_no_number_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd[:8]))
def test_no_number_in_an_address_breaks_a_page(cast: Cast, odd: str) -> None:
    dataset = make.dataset(cast.kassa, 2)
    aino = cast.client("aino")
    page, api = "/p/kassa/export/file/", "/api/v1/projects/kassa/exports/items/"
    asked = [
        *((page, {"what": "items", "format": "csv", name: odd}) for name in ("dataset", "campaign", "renumbered")),
        *((api, {"format": "csv", name: odd}) for name in ("dataset", "renumbered")),
        ("/p/kassa/export/", {"dataset": odd, "campaign": odd, "rubric": odd}),
        (f"/p/kassa/datasets/{dataset.pk}/", {"after": odd}),
        ("/p/kassa/audit/", {"before": odd}),
        ("/p/kassa/imports/new/", {"extends": odd}),
        ("/api/v1/projects/kassa/datasets/", {"limit": odd}),
    ]
    answers = []
    for address, query in asked:
        answer = aino.get(address, query)
        answer.getvalue()  # a file is closed once it is read
        answers.append((address, list(query), answer.status_code))
    assert [answer for answer in answers if answer[-1] >= 500] == []
