"""The menu of a project's pages, through HTTP."""

from __future__ import annotations

import re

import pytest

from tests.cast import Cast


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("runs/", "Judges"),
        ("imports/", "Items and datasets"),
        ("mappings/", "Items and datasets"),
        ("judges/", "Judges"),
        ("", "Overview"),
    ],
)
def test_the_menu_marks_the_link_that_a_page_is_below(cast: Cast, address: str, label: str) -> None:
    page = cast.client("aino").get(f"/p/kassa/{address}").content.decode()
    marked = re.findall(r'<a href="[^"]*" aria-current="page">(.*?)</a>', page, re.DOTALL)
    assert marked and all(label in re.sub(r"<[^>]+>", "", link) for link in marked)


@pytest.mark.parametrize("who", ["aino", "boris"])
def test_panels_are_under_people_for_leads_and_for_researchers(cast: Cast, who: str) -> None:
    page = cast.client(who).get("/p/kassa/panels/").content.decode()
    menu = page.partition('<aside class="side"')[2].partition("</aside>")[0]
    (marked,) = re.findall(r'<a href="[^"]*" aria-current="page">(.*?)</a>', menu, re.DOTALL)
    assert "People" in marked
