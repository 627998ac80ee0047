"""Scores typed at the desk faster than anything there moves or loads: every key counts, in its order."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from operator import sub
from statistics import median

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Annotation, Assignment, Duty, Rating
from tests import make
from tests.annotation import qualified, scene
from tests.browser.conftest import TcpProxy, VisitAs
from tests.cast import Cast
from tests.workers import wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)

KEYS_A_SECOND = 8
ITEMS = 30
SUBMIT_AND_PRESS = """(field, keys) => {
    field.form.requestSubmit();
    for (const key of keys) {
        const pressed = {key, code: `Digit${key}`, bubbles: true, cancelable: true};
        field.dispatchEvent(new KeyboardEvent("keydown", pressed));
    }
}"""
NAMES = ("fluency", "coherence", "tone", "grammar")


def duty_of_four(cast: Cast, *, items: int = ITEMS) -> Duty:
    criteria = [make.criterion(name, (0, 1, 2, 3, 4), not_applicable=True) for name in NAMES]
    return scene.duty(cast, items=items, overlap=1, criteria=criteria)


def opened(visit_as: VisitAs, work: Duty) -> Page:
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    return page


def digits(number: int) -> str:
    """Four digits that tell the items apart, and neighbours within an item too."""
    return "".join(str((number * step + place) % 5) for place, step in enumerate((1, 2, 3, 7)))


def stored() -> Iterator[str]:
    for annotation in Annotation.objects.order_by("pk"):
        ratings = Rating.objects.filter(annotation=annotation).order_by("criterion__position")
        yield "".join("n" if one.score is None else f"{one.score:g}" for one in ratings)


def test_thirty_items_by_keyboard_alone_at_eight_keys_a_second(visit_as: VisitAs, cast: Cast) -> None:
    work = duty_of_four(cast)
    page = opened(visit_as, work)
    keys = [key for number in range(ITEMS) for key in (*digits(number), "Control+Enter")]
    typed(page, keys)
    wait_for_workers(lambda: Annotation.objects.count() == ITEMS, seconds=60)
    wrong = [pair for pair in zip(stored(), map(digits, range(ITEMS)), strict=True) if pair[0] != pair[1]]
    assert wrong == []
    places = Annotation.objects.order_by("pk").values_list("assignment__position", flat=True)
    assert list(places) == sorted(places), "item after item in the order of the queue"
    expect(page.get_by_role("heading", name="All scored")).to_be_visible()


def test_three_digits_within_a_moment_go_to_three_criteria(visit_as: VisitAs, cast: Cast) -> None:
    page = opened(visit_as, duty_of_four(cast, items=1))
    page.keyboard.type("312")
    for name, score in zip(NAMES, ("3", "1", "2"), strict=False):
        expect(page.locator(f"#criterion-{name} [data-given]")).to_have_text(score)
    expect(page.locator("#criterion-grammar")).to_have_attribute("open", "")
    page.keyboard.type("9")
    expect(page.locator("#criterion-grammar [data-error]")).to_contain_text("not on the scale")
    page.keyboard.press("n")
    page.keyboard.press("Control+Enter")
    wait_for_workers(Annotation.objects.exists)
    assert list(stored()) == ["312n"]


def test_how_sure_one_is_at_eight_keys_a_second(visit_as: VisitAs, cast: Cast) -> None:
    """After the last score the digits go into its field; Enter or Ctrl+Enter submits; keys ahead keep their order."""
    page = opened(visit_as, scene.duty(cast, items=10, overlap=1, certainty="required"))
    sure = (0, 17, 29, 35, 48, 52, 61, 74, 83, 100)
    given = [(f"{number % 4}", f"{number % 2}", f"{percent}") for number, percent in enumerate(sure)]
    keys = [key for one in given for key in (one[0], one[1], *one[2], ("Enter", "Control+Enter")[len(one[2]) % 2])]
    typed(page, keys)
    try:
        wait_for_workers(lambda: Annotation.objects.count() == len(given))
    except AssertionError as late:
        raise AssertionError(page.locator("body").inner_text()) from late
    assert scores_given("rating") == [one[0] + one[1] for one in given]
    assert list(Annotation.objects.order_by("pk").values_list("certainty", flat=True)) == [int(one[2]) for one in given]


def test_a_key_right_after_a_submission_waits_for_the_next_item_whatever_has_the_focus(
    visit_as: VisitAs, cast: Cast
) -> None:
    """The field that Enter submits keeps the focus for a moment: a digit typed then is not for it."""
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1, certainty="required"))
    page.keyboard.type("2190")
    page.locator("[data-whole-item]").evaluate(SUBMIT_AND_PRESS, [*"3050"])
    expect(page.locator("[data-whole-item]")).to_have_value("50")
    page.keyboard.press("Enter")
    wait_for_workers(lambda: Annotation.objects.count() == 2)
    assert scores_given("rating") == ["21", "30"]
    assert list(Annotation.objects.order_by("pk").values_list("certainty", flat=True)) == [90, 50]


def test_an_enter_that_no_button_waits_for_ends_the_keys_of_an_item_that_nobody_has_seen(
    visit_as: VisitAs, cast: Cast
) -> None:
    page = opened(visit_as, scene.duty(cast, items=2, overlap=1, certainty="required"))
    page.keyboard.type("2190")
    page.locator("[data-whole-item]").evaluate(SUBMIT_AND_PRESS, ["1", "Enter", "0", "0"])
    expect(page.locator("[data-alert]")).to_contain_text("Keys that you pressed ahead were left out")
    expect(page.locator("[data-count]")).to_have_text("1 of 2 scored")


def test_a_certainty_that_is_missing_is_asked_for_and_a_draft_keeps_it(visit_as: VisitAs, cast: Cast) -> None:
    page = opened(visit_as, scene.duty(cast, items=1, overlap=1, certainty="required"))
    page.keyboard.type("21")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Say how sure you are: a whole number from 0 to 100.")).to_be_visible()
    page.keyboard.type("70")
    page.keyboard.press("Control+s")
    expect(page.locator("[data-save-text]")).to_have_text("Draft saved")
    page.reload()
    expect(page.get_by_label("How sure are you of these scores")).to_have_value("70")
    page.keyboard.press("c")
    page.keyboard.type("100")
    page.keyboard.press("Control+Enter")
    wait_for_workers(Annotation.objects.exists)
    assert Annotation.objects.get().certainty == 100


def typed(page: Page, keys: list[str]) -> None:
    """Press the keys at the pace of a fast typist, whatever the page does. After a halt of the machine the next keys
    come faster, so that the pace is the median between two keys."""
    begun, pressed = time.monotonic(), []
    for number, key in enumerate(keys):
        time.sleep(max(0.0, begun + number / KEYS_A_SECOND - time.monotonic()))
        pressed.append(time.monotonic())
        page.keyboard.press(key)
    assert median(map(sub, pressed[1:], pressed)) < 1 / (KEYS_A_SECOND * 0.95)


def scores_given(purpose: str) -> list[str]:
    """What was submitted for a purpose, item after item."""
    given = Annotation.objects.filter(assignment__duty__purpose=purpose).order_by("pk")
    return ["".join(f"{one.score:g}" for one in each.ratings.order_by("criterion__position")) for each in given]


def test_training_exam_and_work_at_eight_keys_a_second(visit_as: VisitAs, cast: Cast) -> None:
    """Enter goes on from the feedback and from the result; what is typed meanwhile is for the item that comes."""
    rule = {"exam_items": 5, "wait_hours": 0, "threshold": 0.5}
    work = qualified.qualified_duty(cast, training=range(1, 9), exam=range(9, 14), **rule)
    page = visit_as("maarika", "/desk/")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Start the training").click()
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    pairs = [(f"{number % 4}", f"{number % 2}") for number in range(8)]
    typed(page, [key for pair in pairs for key in (*pair, "Control+Enter", "Enter")])
    expect(page.get_by_role("heading", name="Exam")).to_be_visible()
    assert scores_given("training") == ["".join(pair) for pair in pairs]

    page.get_by_role("button", name="Start the exam").click()
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    exam = [("2", "1")] * 5
    typed(page, [*(key for pair in exam for key in (*pair, "Control+Enter")), "Enter"] + [
        key for pair in pairs for key in (*pair, "Control+Enter")
    ])  # fmt: skip
    wait_for_workers(lambda: len(scores_given("rating")) == len(pairs), seconds=60)
    assert scores_given("exam") == ["21"] * 5
    assert scores_given("rating") == ["".join(pair) for pair in pairs]
    assert work.pk


def test_keys_that_nobody_meant_for_the_feedback_are_left_out_and_said(visit_as: VisitAs, cast: Cast) -> None:
    """Typed on without Enter: no score goes to an item that was not to be seen."""
    qualified.qualified_duty(cast, training=[1, 2, 3], exam_items=0)
    page = visit_as("maarika", "/desk/")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Start the training").click()
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    for key in ("2", "1", "Control+Enter", "3", "0", "Control+Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Feedback")).to_be_visible()
    expect(page.get_by_text("Keys that you pressed ahead were left out.")).to_be_visible()
    assert scores_given("training") == ["21"]
    page.get_by_role("button", name="Next training item").click()
    expect(page.locator("#criterion-fluency [data-given]")).to_be_empty()
    page.go_back()
    expect(page.get_by_role("heading", name="Feedback")).to_be_visible()


def test_a_finger_and_then_keys_at_once(visit_as: VisitAs, cast: Cast) -> None:
    page = opened(visit_as, duty_of_four(cast, items=1))
    page.locator("#criterion-fluency .point").nth(4).click()
    page.keyboard.type("123")
    page.keyboard.press("Control+Enter")
    wait_for_workers(Annotation.objects.exists)
    assert list(stored()) == ["4123"]


def test_keys_for_the_next_item_wait_for_it_with_a_rationale(
    visit_as: VisitAs, cast: Cast, tcp_proxy: TcpProxy
) -> None:
    """The server is away when the first item is submitted; all of the second one is typed meanwhile."""
    work = duty_of_four(cast, items=3)
    page = visit_as("maarika", "/desk/")
    page.goto(f"http://{tcp_proxy.host}:{tcp_proxy.port}/desk/{work.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    expect(page.locator("[data-count]")).not_to_be_empty()
    first = page.url
    tcp_proxy.cut()
    page.keyboard.type("4321")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert-text]")).to_contain_text("kept on this device")
    page.keyboard.type("0r")
    page.keyboard.type("Jama, n 1")
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    for key in ("j", "1", "2", "3", "Control+Enter", "4"):
        page.keyboard.press(key)
    assert not Annotation.objects.exists()
    tcp_proxy.restore()
    wait_for_workers(lambda: Annotation.objects.count() == 2, seconds=60)
    assert list(stored()) == ["4321", "0123"]
    assert Rating.objects.exclude(rationale="").values_list("criterion__key", "rationale").get() == (
        "fluency",
        "Jama, n",
    )
    page.wait_for_url(lambda address: address != first and "/desk/at/" in address)
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("4")
    assert Assignment.objects.filter(state="leased").count() == 1
