"""The menu of a project's pages, through HTTP."""

from __future__ import annotations

import re

import pytest

from tests.cast import Cast


@pytest.mark.parametrize(
    ("address", "label"),
    [("runs/", "Judges"), ("imports/", "Datasets"), ("mappings/", "Datasets"), ("judges/", "Judges"), ("", "Overview")],
)
def test_the_menu_marks_the_link_that_a_page_is_below(cast: Cast, address: str, label: str) -> None:
    page = cast.client("aino").get(f"/p/kassa/{address}").content.decode()
    marked = re.findall(r'<a href="[^"]*" aria-current="page">(.*?)</a>', page, re.DOTALL)
    assert marked and all(label in re.sub(r"<[^>]+>", "", link) for link in marked)
