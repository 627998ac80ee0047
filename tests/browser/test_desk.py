"""The desk in Chromium, by keyboard alone: left to right, right to left, and through a cut of the network."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from accounts.models import User
from annotation import allocation, campaigns, panels
from annotation.models import Annotation, Campaign, Draft, Duty, Rating
from tests import make
from tests.annotation import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

ARABIC = [
    {"speaker": "customer", "text": "السلام عليكم، لم تصل الشحنة رقم 5013 بعد."},
    {"speaker": "agent", "text": "وعليكم السلام، سأتحقق من ذلك الآن."},
]


def campaign(cast: Cast, language: str, user: User, *, items: int = 2) -> Duty:
    """A duty of one annotator: fluency 0-3 with N/A, coherence 0-1 with a reason below its best."""
    turns: dict[str, Any] = {"turns": ARABIC} if language == "ar" else {}
    anchors = {
        str(point): {"en": {"text": f"fluency at {point}"}, "ar": {"text": f"الطلاقة {point}"}} for point in range(4)
    }
    fluency = make.criterion("fluency", name={"en": "Fluency", "ar": "الطلاقة"}, anchors=anchors, not_applicable=True)
    coherence = make.criterion("coherence", (0, 1), rationale={"rule": "required_except_best", "min_words": 2})
    opened = campaigns.open_campaign(
        project=cast.kassa,
        name="Round 1",
        dataset=make.dataset(cast.kassa, [make.item_row(n, language, **turns) for n in range(1, items + 1)]),
        rubric_version=make.rubric(cast.kassa, fluency, coherence),
    )
    panel = panels.create(project=cast.kassa, name=language, language=language)
    panels.seat(panel=panel, user=user)
    return allocation.allocate(campaign=opened, panel=panel, overlap=1)


def test_two_dialogues_are_scored_by_keyboard_alone(visit_as: VisitAs, cast: Cast) -> None:
    campaign(cast, "et", cast.maarika)
    page = visit_as("maarika", "/desk/")
    start = page.get_by_role("button", name="Start")
    start.focus()
    page.keyboard.press("Enter")

    # First item: digits move on by J, the reason is asked for and written, Ctrl+Enter submits from the text.
    page.wait_for_url(re.compile("/desk/at/"))
    first = page.url
    page.keyboard.press("3")
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("3")
    page.keyboard.press("j")
    page.keyboard.press("0")
    page.keyboard.press("r")
    page.keyboard.type("Jutt hüppab 3 korda")
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("3")
    page.keyboard.press("Control+Enter")

    # Second item: N/A, and the best point, which needs no reason.
    page.wait_for_url(lambda address: "/desk/at/" in address and address != first)
    page.keyboard.press("n")
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="All scored")).to_be_visible()

    ratings = Rating.objects.order_by("annotation", "criterion__position").values_list("status", "score", "rationale")
    assert list(ratings) == [
        ("scored", 3, ""),
        ("scored", 0, "Jutt hüppab 3 korda"),
        ("na", None, ""),
        ("scored", 1, ""),
    ]


def test_a_right_to_left_dialogue_is_scored_by_keyboard_alone(visit_as: VisitAs, cast: Cast) -> None:
    duty = campaign(cast, "ar", cast.layla, items=1)
    page = visit_as("layla", f"/desk/{duty.pk}/")

    bubble = page.locator(".bubble").first
    assert bubble.get_attribute("lang") == "ar"
    assert bubble.evaluate("node => getComputedStyle(node).direction") == "rtl"
    expect(page.locator("#criterion-fluency .criterion-name")).to_have_text("الطلاقة")
    page.keyboard.press("2")
    page.keyboard.press("j")
    page.keyboard.press("0")
    page.keyboard.press("r")
    page.keyboard.type("الحوار غير مترابط")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="All scored")).to_be_visible()

    assert Rating.objects.get(criterion__key="coherence").rationale == "الحوار غير مترابط"


def test_the_server_says_what_the_page_let_through(visit_as: VisitAs, cast: Cast) -> None:
    duty = campaign(cast, "et", cast.maarika, items=1)
    page = visit_as("maarika", f"/desk/{duty.pk}/")

    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")

    expect(page.locator("#criterion-coherence [data-error]")).to_be_visible()
    assert not Annotation.objects.exists()


def test_a_cut_of_the_network_loses_nothing(visit_as: VisitAs, context: BrowserContext, cast: Cast) -> None:
    duty = campaign(cast, "et", cast.maarika, items=1)
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    page.keyboard.press("1")
    expect(page.locator("[data-save-state=saved]")).to_be_attached()

    context.set_offline(True)
    page.keyboard.press("j")
    page.keyboard.press("0")
    page.keyboard.press("r")
    page.keyboard.type("Ilma võrguta kirjutatud")
    expect(page.locator("[data-save-state=offline]")).to_be_attached()
    assert "coherence" not in _entered()

    context.set_offline(False)
    expect(page.locator("[data-save-state=saved]")).to_be_attached()
    assert _entered()["coherence"] == {"score": 0.0, "status": "scored", "rationale": "Ilma võrguta kirjutatud"}

    page.reload()
    expect(page.locator("#rationale-coherence")).to_have_value("Ilma võrguta kirjutatud")


def _entered() -> dict[str, Any]:
    return {key: entered for key, entered in Draft.objects.get().answers.items() if entered["score"] is not None}


def test_a_paused_campaign_is_said_on_the_page_and_the_text_stays(visit_as: VisitAs, cast: Cast) -> None:
    duty = campaign(cast, "et", cast.maarika, items=1)
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    page.keyboard.press("1")
    page.keyboard.press("j")
    page.keyboard.press("1")
    campaigns.move(campaign=duty.campaign, to=Campaign.State.PAUSED)

    page.keyboard.press("Control+Enter")

    expect(page.get_by_role("heading", name="You can't submit anything here now")).to_be_visible()
    expect(page.get_by_text("This campaign is paused")).to_be_visible()
    expect(page.locator("#criterion-fluency [data-given]")).to_have_text("1")


def test_the_desk_asks_for_few_and_small_files(visit_as: VisitAs, cast: Cast) -> None:
    campaign(cast, "et", cast.maarika)
    page = visit_as("maarika", "/desk/")
    sizes: dict[str, int] = {}
    page.on(
        "requestfinished", lambda request: sizes.update({request.url: len(gzip.compress(request.response().body()))})
    )
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("/desk/at/"))
    page.wait_for_load_state("networkidle")
    assert len(sizes) <= 15, sizes
    assert sum(sizes.values()) <= 100_000, sizes


def test_a_critical_mark_stops_what_has_no_score_and_drops_no_score(visit_as: VisitAs, cast: Cast) -> None:
    critical = {"group": "critical", "direction": "lower_is_better"}
    keys = ("harm", "leak", "fluency", "coherence")
    criteria = [make.criterion(key, (0, 1), **(critical if key in keys[:2] else {})) for key in keys]
    duty = scene.duty(cast, items=2, overlap=1, criteria=criteria)
    page = visit_as("maarika", f"/desk/{duty.pk}/")
    page.wait_for_url(re.compile("/desk/at/"))
    for digit, key in (("0", "harm"), ("1", "fluency"), ("1", "leak")):
        page.locator(f"#criterion-{key} input[value='{digit}']").evaluate("input => input.click()")
        expect(page.locator(f"#criterion-{key} [data-given]")).to_have_text(digit)
    stopped = page.locator("[data-stopped]")
    expect(stopped).to_have_count(1)
    expect(stopped).to_have_attribute("data-criterion", "coherence")
    before = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda address: address != before)
    stored = dict(Rating.objects.values_list("criterion__key", "score"))
    assert stored == {"harm": 0, "leak": 1, "fluency": 1, "coherence": None}


@pytest.mark.parametrize("hand", ["left", "right"])
def test_one_hand_keeps_the_name_of_a_long_criterion_in_sight(visit_as: VisitAs, cast: Cast, hand: str) -> None:
    points = tuple(range(10))
    anchors = {str(point): {"en": {"text": f"At {point} " + "a long anchor " * 9}} for point in points}
    long = [make.criterion(key, points, anchors=anchors) for key in ("fluency", "coherence")]
    work = scene.duty(cast, items=1, overlap=1, criteria=long)
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".desk-switch [data-shows=rubric]").click()
    page.locator("[data-hands]").select_option(hand)
    for key in ("coherence", "fluency"):
        page.locator(f"[data-steps='{1 if key == 'coherence' else -1}']").click()
        expect(page.locator(f"[data-criterion={key}]")).to_have_attribute("open", "")
        expect(page.locator(f"[data-criterion={key}] .point").last).to_be_in_viewport()
        expect(page.locator(f"[data-criterion={key}] .criterion-name")).to_be_in_viewport(ratio=1)


def test_one_hand_shows_one_criterion_with_its_scores_at_the_lower_end(visit_as: VisitAs, cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1)
    page = visit_as("maarika", f"/desk/{work.pk}/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".desk-switch [data-shows=rubric]").click()
    shown = page.locator(".criteria > li:visible")
    expect(shown).to_have_count(2)
    page.locator("[data-hands]").select_option("left")
    page.reload()
    page.locator(".desk-switch [data-shows=rubric]").click()
    expect(shown).to_have_count(1)
    box = page.locator("[data-submit]").bounding_box()
    assert box is not None and box["x"] < 40 and box["height"] >= 48
    page.locator("[data-criterion=fluency] .point").nth(2).click()
    expect(page.locator("[data-criterion=coherence]")).to_have_attribute("open", "")
    expect(page.locator("[data-criterion=coherence] .point").last).to_be_in_viewport()
    page.locator("[data-steps='-1']").click()
    expect(page.locator("[data-criterion=fluency]")).to_have_attribute("open", "")
    page.keyboard.press("j")
    page.keyboard.press("1")
    assert Draft.objects.count() <= 1
    page.locator("[data-submit]").click()
    page.wait_for_url(re.compile(rf"/desk/{work.pk}/"))
    assert sorted(Rating.objects.values_list("score", flat=True)) == [1, 2]
