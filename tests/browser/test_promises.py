"""What the desk's key sheet promises is so; tables and the tab bar on a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from annotation import allocation, campaigns, panels
from annotation.desk import service
from annotation.models import Duty
from tests import access, make
from tests.annotation import scene
from tests.browser import tour
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"width": 390, "height": 844}


def work(cast: Cast) -> Duty:
    """Two items on three criteria: points with N/A and a rationale, a number, and points without either."""
    points = make.criterion("fluency", rationale={"rule": "optional"}, not_applicable=True)
    number = make.criterion("effort", scale={"level": "interval", "min": 0, "max": 100}, anchors={})
    silent = make.criterion("tone", rationale={"rule": "never"})
    opened = campaigns.open_campaign(
        project=cast.kassa,
        name="Round 1",
        dataset=make.dataset(cast.kassa, 2),
        rubric_version=make.rubric(cast.kassa, points, number, silent),
    )
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    return allocation.allocate(campaign=opened, panel=panel, overlap=1)


def test_every_line_of_the_key_sheet_is_so(visit_as: VisitAs, cast: Cast) -> None:
    duty = work(cast)
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    is_open = "[...document.querySelectorAll('details.criterion')].findIndex((each) => each.open)"

    page.keyboard.press("?")
    sheet = page.locator("#shortcuts")
    expect(sheet).to_be_visible()
    expect(sheet).not_to_contain_text("None of them works while you type")
    expect(sheet).to_contain_text("While you type, only Esc, Ctrl + Enter and Ctrl + S work")
    page.keyboard.press("Escape")

    page.keyboard.press("2")
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("2")
    assert page.evaluate(is_open) == 1
    page.keyboard.press("ArrowUp")
    page.keyboard.press("n")
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("N/A")
    assert page.evaluate(is_open) == 1
    page.keyboard.press("ArrowUp")
    assert page.evaluate(is_open) == 0
    page.keyboard.press("ArrowDown")
    assert page.evaluate(is_open) == 1
    page.keyboard.press("ArrowUp")
    assert page.evaluate(is_open) == 0
    page.locator("#criterion-fluency input[value='1']").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(is_open) == 0, "with the focus on a point the arrows move between points"
    page.keyboard.press("j")
    assert page.evaluate(is_open) == 1

    page.keyboard.press("5")
    page.keyboard.press("6")
    field = page.locator("#score-effort")
    expect(field).to_have_value("56")
    page.keyboard.press("Escape")
    page.keyboard.press("7")
    expect(field).to_have_value("7")  # begun anew, not 567
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("n")
    expect(page.locator("#criterion-tone [data-given]")).to_have_text("")
    page.keyboard.press("r")
    page.keyboard.press("k")
    assert page.evaluate(is_open) == 1
    page.keyboard.press("k")
    page.keyboard.press("r")
    page.keyboard.type("j2n?")
    expect(page.locator("#rationale-fluency")).to_have_value("j2n?")
    with page.expect_response("**/draft/"):
        page.keyboard.press("Control+s")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("3")
    address = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda now: now != address and "/desk/at/" in now)
    page.keyboard.press("?")
    expect(sheet).to_contain_text("Undo the last submission")
    page.keyboard.press("Escape")
    second = page.url
    page.keyboard.press("u")
    page.wait_for_url(lambda now: now != second and "/desk/at/" in now)
    expect(page.locator("#criterion-tone [data-given]")).to_have_text("3")


def test_tables_on_a_phone_can_be_scrolled_by_keyboard(visit_as: VisitAs, cast: Cast) -> None:
    duty = scene.duty(cast, items=2)
    taken = scene.taken(cast, duty)
    service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=3)
    for address in (f"campaigns/{duty.campaign_id}/", "audit/", "people/", f"panels/{duty.panel_id}/"):
        page = visit_as("aino", f"/p/kassa/{address}")
        page.set_viewport_size(PHONE)
        audit = Axe().run(page)
        assert not audit.violations_count, audit.generate_report()


def test_the_tab_bar_has_the_same_four_places_on_every_page(visit_as: VisitAs, cast: Cast) -> None:
    scene.duty(cast, items=2)
    seen = set()
    for address in ("", "campaigns/", "judges/", "people/", "audit/"):
        page = visit_as("aino", f"/p/kassa/{address}")
        page.set_viewport_size(PHONE)
        seen.add(tuple(page.locator(".side nav a:visible span").all_inner_texts()))
    assert seen == {("Study", "Items and datasets", "Rubric", "People")}


def test_a_double_click_leaves_its_question_open(visit_as: VisitAs, cast: Cast) -> None:
    duty = scene.duty(cast, items=1, overlap=1)
    page = visit_as("aino", f"/p/kassa/campaigns/{duty.campaign_id}/duties/{duty.pk}/")
    page.get_by_role("button", name="Add").dblclick()
    expect(page.locator("[data-confirm-dialog]")).to_be_visible()


PAGES = {
    "aino": (
        *("taxonomies", "taxonomy", "duties_by_rules", "annotator_questions", "qualification", "standing"),
        *("references", "reference_form", "guideline_new", "duty", "workload", "adjudication", "workflow"),
        "rubric_new",
    ),
    "maarika": (
        *("desk", "desk_item", "desk_before", "desk_guidelines", "desk_questions", "desk_scored", "desk_work"),
    ),
}


@pytest.mark.parametrize("who", PAGES)
def test_pages_are_sound_light_dark_on_a_phone_and_right_to_left(visit_as: VisitAs, cast: Cast, who: str) -> None:
    parts, routes = access.furnish(cast), {route.name: route for route in access.routes()}
    page = visit_as(who, "/me/")
    audit, root, faults = tour.PageAudit(page), page.url.removesuffix("/me/"), {}
    for name in PAGES[who]:
        there = reverse(name, kwargs={part: parts[part] for part in routes[name].parts})
        faults[there] = audit.faults(f"{root}{there}", ("light rtl", "dark phone"))
    assert not any(faults.values()), {there: wrong for there, wrong in faults.items() if wrong}
