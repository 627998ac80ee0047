"""The whole life of one campaign in Chromium, from the rubric's form to the file that is exported.

Aino leads. Noor joins by a link, reads Arabic and works by keyboard alone; Yuki joins by a link, reads Japanese and
works on a dark phone. Layla is Noor's fellow annotator, whose scores differ. Every page on the way is audited with axe,
and a picture of it is kept in the test's folder.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Download, Page, expect

from accounts.models import Project
from annotation.models import Adjudication, Annotator, Assignment, Campaign, Duty, QualificationRule, Rating
from annotation.qualification.references import drawn_number
from tests import make
from tests.annotation import scene
from tests.browser.conftest import TcpProxy, VisitAs
from tests.cast import PASSWORD, Cast

pytestmark = pytest.mark.django_db(transaction=True)

ODD_NAME = "Kassa “عربي” \"two\" 'words' e\u0301"
WRONG, RIGHT = ("1", "1"), ("3", "3")
TURNS = {
    "ar": ("السلام عليكم، لم تصل الشحنة رقم {n} بعد.", "وعليكم السلام، سأتحقق من ذلك الآن. تصل غدًا إن شاء الله."),
    "ja": ("荷物{n}がまだ届いていません。", "ご不便をおかけしております。ただいま確認いたします。明日届きます。"),
}
CRITERIA = {
    "fluency": {"en": "Fluency", "ar": "الطلاقة", "ja": "流暢さ"},
    "coherence": {"en": "Coherence", "ar": "الترابط", "ja": "一貫性"},
}
NAMES = {"en": "Customer service", "ar": "خدمة العملاء", "ja": "顧客対応"}
ANCHORS = {
    "en": ("No native speaker would write this.", "Understandable, with slips.", "As a native speaker writes."),
    "ar": ("لا يكتب هكذا متحدث أصلي.", "مفهوم مع هفوات.", "كما يكتب المتحدث الأصلي."),
    "ja": ("母語話者はこう書きません。", "理解できるが、誤りがある。", "母語話者が書いたようです。"),
}
GUIDELINES = {
    "ar": "# الإرشادات\n\nاقرأ الحوار **كله** قبل أن تعطي درجة.\n\n- لا تعاقب اللهجة.\n- اكتب سببًا للدرجة الدنيا.",
    "ja": "# ガイドライン\n\n採点の前に対話を**すべて**読んでください。\n\n- 方言は減点しません。",
}
REFERENCES = {
    "ar": {"a1": "training", "a2": "exam", "a3": "exam", **dict.fromkeys((f"a{n}" for n in range(4, 12)), "control")},
    "ja": {"j1": "training", "j2": "exam", "j3": "exam"},
}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@dataclass(frozen=True, slots=True)
class Pictures:
    """Looks at pages: no violation of axe, nothing wider than the window; each picture under its number and name."""

    folder: Path
    numbers: Iterator[int]

    def look(self, page: Page, name: str) -> None:
        page.screenshot(path=self.folder / f"{next(self.numbers):02}-{name}.png", full_page=True)
        found = Axe().run(page)
        assert not found.violations_count, f"{name}: {found.generate_report()}"
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"), name


@pytest.fixture
def pictures(tmp_path: Path) -> Pictures:
    return Pictures(tmp_path, count(1))


@pytest.fixture
def windows(browser: Browser, visit_as: VisitAs) -> Iterator[Callable[..., Page]]:
    """Opens a new browser window with the given options; all are closed before the database is cleaned."""
    opened: list[BrowserContext] = []

    def open_window(**options: Any) -> Page:
        opened.append(browser.new_context(reduced_motion="reduce", **options))
        opened[-1].set_default_timeout(20_000)
        return opened[-1].new_page()

    yield open_window
    for context in opened:
        context.close()


# --- the lead sets everything up --------------------------------------------------------------------------------------
def write_rubric(page: Page, pictures: Pictures) -> None:
    """A rubric of two criteria with three points, worded in three languages, by form; then publish it."""
    page.get_by_role("link", name="New rubric").first.click()
    page.locator("#key").fill("service")
    for place in (4, 3):
        page.locator(f"button[value='remove-point:0:{place}']").click()
        expect(page.locator(f"#c0p{place}-value")).to_have_count(0)
    page.locator("#add-criterion").click()
    expect(page.locator("#c1-key")).to_be_visible()
    for language in ("en", "ar", "ja"):
        if language != "en":
            page.locator("#new_language").fill(language)
            page.get_by_role("button", name="Add", exact=True).click()
            expect(page.locator(f"#c1-name-{language}")).to_be_attached()
        write_wording(page, language)
    expect(page.locator("[aria-labelledby=desk-preview]")).to_contain_text(ANCHORS["ja"][2])
    expect(page.locator("[aria-labelledby=prompt-preview]")).to_contain_text(f"- 3: {ANCHORS['en'][2]}")
    pictures.look(page, "lead-rubric-form")
    page.locator(".rubric-foot").get_by_role("button", name="Save draft").click()
    page.get_by_role("button", name="Publish").click()
    page.locator("#confirm [data-confirm-yes]").click()
    expect(page.locator(".title .chip-accent")).to_have_text("Published")


def write_wording(page: Page, language: str) -> None:
    page.locator(f"#name-{language}").fill(NAMES[language])
    for number, (key, names) in enumerate(CRITERIA.items()):
        page.locator(f"#rubric-criterion-{number + 1}").evaluate("details => { details.open = true }")
        if language == "en":
            page.locator(f"#c{number}-key").fill(key)
        page.locator(f"#c{number}-name-{language}").fill(names[language])
        for point, text in enumerate(ANCHORS[language]):
            page.locator(f"#c{number}p{point}-anchor-{language}").fill(text)


def open_campaign(page: Page, cast: Cast) -> None:
    """A campaign on the new rubric, over dialogues in two languages that are there already."""
    rows = [
        make.item_row(
            n, language, external_id=f"{language[0]}{n}", title="",
            turns=[
                {"speaker": who, "text": text.format(n=n)}
                for who, text in zip(("customer", "agent"), TURNS[language], strict=True)
            ],
        )
        for language, items in (("ar", 20), ("ja", 6))
        for n in range(1, items + 1)
    ]  # fmt: skip
    make.dataset(cast.kassa, rows, name="Parcels")
    page.get_by_role("link", name="Campaigns").first.click()
    page.get_by_role("link", name="New campaign").first.click()
    page.locator("#id_name").fill("Autumn")
    page.locator("#id_dataset").select_option(index=1)
    page.locator("#id_rubric_version").select_option(index=1)
    page.get_by_role("button", name="Continue to the panels").click()
    page.wait_for_url(re.compile("/campaigns/"))


def invite(page: Page, name: str, panel: str) -> str:
    """The link that is shown once."""
    page.locator("#id_name").fill(name)
    page.locator("#id_panel").select_option(label=panel)
    page.get_by_role("button", name="Create the link").click()
    return page.locator("#invitation-link").inner_text()


def make_panels(page: Page, pictures: Pictures) -> list[str]:
    """Two panels; Layla has a seat; the links for Noor and Yuki."""
    for name, language in (("Arabic", "ar"), ("Japanese", "ja")):
        page.goto(f"{root_of(page)}/p/kassa/panels/")
        page.locator("#id_name").fill(name)
        page.locator("#id_language").fill(language)
        page.get_by_role("button", name="Create the panel").click()
        if name == "Arabic":
            member = page.locator("#id_member")
            names = member.locator("option").all_inner_texts()
            member.select_option(label=next(text for text in names if "Layla" in text))
            page.get_by_role("button", name="Add to the panel").click()
            expect(page.get_by_role("cell", name="Layla")).to_be_visible()
    page.goto(f"{root_of(page)}/p/kassa/people/")
    links = [invite(page, "Noor", "Arabic"), invite(page, "Yuki", "Japanese")]
    pictures.look(page, "lead-people")
    return links


def root_of(page: Page) -> str:
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}"


def ask_for_qualification(page: Page, there: str, pictures: Pictures) -> None:
    """Guidelines in two languages, reference items from a file, training, exam and controls."""
    for language, text in GUIDELINES.items():
        page.goto(f"{there}guidelines/new/")
        page.locator("#id_language").fill(language)
        page.locator("#id_text").fill(text)
        page.get_by_role("button", name="Publish").click()
    page.goto(f"{there}references/")
    rows = ["item,purpose,criterion,score,explanation"]
    rows += [
        f"{item},{purpose},{key},3,{ANCHORS[language][2]}"
        for language, items in REFERENCES.items()
        for item, purpose in items.items()
        for key in CRITERIA
    ]
    file = {"name": "references.csv", "mimeType": "text/csv", "buffer": "\n".join(rows).encode()}
    page.locator("#references-file").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Mark these items").click()
    expect(page.get_by_role("link", name="a11", exact=True)).to_be_visible()
    page.goto(f"{there}qualification/")
    page.locator("#id_training").check()
    wanted = {"exam_items": 1, "attempts": 3, "wait_hours": 0, "control_rate": 0.5, "fewest_controls": 2}
    for name, value in wanted.items():
        page.locator(f"#id_{name}").fill(str(value))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Draws of exams")).to_be_visible()
    pictures.look(page, "lead-qualification")


def assign_items(page: Page, there: str, pictures: Pictures) -> None:
    """One panel after the other: the second time the first one has no tick any more."""
    page.goto(f"{there}duties/new/")
    expect(page.get_by_label("Annotators per item").first).to_have_value("3")
    pictures.look(page, "lead-duties")
    for_two_annotators(page)
    page.get_by_role("checkbox", name="Japanese").uncheck()
    page.get_by_role("button", name="Assign the items").click()
    page.locator("#confirm [data-confirm-yes]").click()
    page.wait_for_url(there)
    page.goto(f"{there}duties/new/")
    expect(page.get_by_text("This panel rates these items already")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Arabic")).not_to_be_checked()
    for_two_annotators(page)
    page.get_by_role("button", name="Assign the items").click()
    page.locator("#confirm [data-confirm-yes]").click()
    page.wait_for_url(there)
    pictures.look(page, "lead-campaign")


def for_two_annotators(page: Page) -> None:
    for overlap in page.get_by_label("Annotators per item").all():
        overlap.fill("2")


def first_draws(duty: Duty, annotator: Annotator, *wanted: bool) -> None:
    """Set the seed with which the annotator's first items are controls where ``wanted`` says so."""
    seed = next(
        seed
        for seed in count(1)
        if [drawn_number(seed, "next", duty.pk, annotator.pk, n) < 0.5 for n in range(len(wanted))] == list(wanted)
    )
    QualificationRule.objects.filter(campaign=duty.campaign_id).update(seed=seed)


# --- annotators -------------------------------------------------------------------------------------------------------
def join(page: Page, link: str, email: str, pictures: Pictures) -> None:
    """Create an account from the link; by keyboard, as everything below."""
    page.goto(link)
    page.locator("a[href*='signup']").focus()
    page.keyboard.press("Enter")
    page.locator("#id_email").focus()
    page.keyboard.type(email)
    page.keyboard.press("Tab")
    page.locator("#id_password1").focus()
    page.keyboard.type(PASSWORD)
    pictures.look(page, f"{email[:4]}-sign-up")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/desk/"))


def press(page: Page, button: str) -> None:
    """Press a button or a link, found by its place in the page (its words are in the annotator's language)."""
    before = page.url
    page.locator(button).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: address != before)
    page.wait_for_url(re.compile("/desk/(at|[0-9]+/(before|guidelines))|/desk/$"))


def score_by_keys(page: Page, keys: Sequence[str]) -> None:
    before = page.url
    for key in keys:  # a score leads to the next criterion
        page.keyboard.press(key)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda address: address != before)
    settled(page)


def score_by_touch(page: Page, keys: Sequence[str]) -> None:
    before = page.url
    page.locator(".desk-switch [data-shows=rubric]").tap()
    for place, (key, criterion) in enumerate(zip(keys, CRITERIA, strict=True)):
        body = page.locator(f"#criterion-{criterion}")
        if place:  # a score leads to the next criterion
            expect(body).to_have_attribute("open", "")
        elif body.get_attribute("open") is None:
            body.locator("summary").first.tap()
        body.locator(f"label.point:has(input[value='{key}'])").tap()
    page.locator("[data-submit]").tap()
    page.wait_for_url(lambda address: address != before)
    settled(page)


def settled(page: Page) -> None:
    """After a submission the page leads on through addresses of its own."""
    page.wait_for_url(re.compile("/desk/at/|/before/|/desk/[0-9]+/$"))
    page.wait_for_load_state()


def qualify(page: Page, duty: Duty, score: Callable[[Page, Sequence[str]], None], look: Callable[[str], None]) -> None:
    """Guidelines, training, a failed exam, a passed one; then the first item is open."""
    look("duties")
    press(page, f"form[action='/desk/{duty.pk}/'] button")
    look("guidelines")
    press(page, "form[action$='/guidelines/'] button")
    look("training")
    press(page, "form[action$='/training/'] button")
    score(page, WRONG)
    look("feedback")
    press(page, "a.btn-primary[href$='/before/']")
    press(page, "form[action$='/exam/'] button")
    look("exam-item")
    score(page, WRONG)
    look("exam-failed")
    press(page, "form[action$='/exam/'] button")
    score(page, RIGHT)
    look("exam-passed")
    press(page, f"form[action='/desk/{duty.pk}/'] button")


def score_through_a_cut(page: Page, tcp_proxy: TcpProxy, look: Callable[[str], None]) -> None:
    """The server is gone while the item is scored and submitted; when it is back, everything arrives."""
    page.clock.install()
    page.reload()
    page.keyboard.press("3")
    expect(page.locator("[data-save-state=saved]")).to_be_attached()
    tcp_proxy.cut()
    page.keyboard.press("j")
    page.keyboard.press("3")
    page.keyboard.press("r")
    page.keyboard.type("كتبت هذا بلا شبكة")
    expect(page.locator("[data-save-state=offline]")).to_be_attached()
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-alert]")).to_be_visible()
    look("cut")
    before = page.url
    tcp_proxy.restore()
    page.clock.fast_forward(31_000)
    page.wait_for_url(lambda address: address != before and "/desk/at/" in address)


def contest(page: Page, look: Callable[[str], None]) -> None:
    expect(page.locator("form[action*='contest']").first).to_be_visible()
    look("paused")
    page.locator("textarea[name=objection]").first.focus()
    page.keyboard.type("اقرأ الرد الثاني مرة أخرى.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".notice-success")).to_be_visible()


def rate_differently(cast: Cast, duty: Duty, items: int) -> None:
    """Layla's share, as a browser sends it: she qualifies, and gives other scores to so many items."""
    layla = cast.client("layla")
    right, other = ({f"score-{key}": score for key in CRITERIA} | {"seconds": "20"} for score in ("3", "1"))
    layla.post(f"/desk/{duty.pk}/guidelines/", {"version": duty.campaign.guidelines.get(language="ar").pk})
    for stage in ("training", "exam"):
        layla.post(f"{layla.post(f'/desk/{duty.pk}/{stage}/')['Location']}submit/", right, headers=scene.JSON)
    rated = 0
    while rated < items:
        page = scene.next_page(layla, duty)
        is_control = Assignment.objects.get(key=scene.key_at(page)).duty.purpose == Duty.Purpose.CONTROL
        assert layla.post(f"{page}submit/", right if is_control else other, headers=scene.JSON).status_code == 200
        rated += not is_control


# --- the lead decides -------------------------------------------------------------------------------------------------
def decide_about_noor(page: Page, there: str, pseudonym: str, pictures: Pictures) -> None:
    page.goto(f"{there}qualification/")
    expect(page.get_by_text("1 contested score")).to_be_visible()
    page.get_by_role("link", name=pseudonym, exact=True).click()
    expect(page.get_by_text("اقرأ الرد الثاني مرة أخرى.")).to_be_visible()
    first = page.locator("h2:has-text('Scores that differ') + .panel")
    expect(first, "what waits for a decision comes first").to_contain_text("Waiting for a decision")
    pictures.look(page, "lead-standing")
    page.get_by_role("button", name="Accept as a match").first.click()
    page.get_by_role("button", name="Let them work again").click()
    expect(page.get_by_role("button", name="Let them work again")).to_have_count(0)


def adjudicate(page: Page, there: str, pictures: Pictures) -> None:
    page.goto(f"{there.replace('/campaigns/', '/numbers/')}adjudication/")
    pictures.look(page, "lead-adjudication")
    page.get_by_role("link", name="Start with the first").click()
    pictures.look(page, "lead-adjudicate-item")
    for key in CRITERIA:
        part = page.locator(f"section[aria-labelledby=criterion-{key}]")
        part.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true })")
        part.locator(f"input[name=score-{key}][value^='2']").check()
        part.locator(f"#cause-{key}").select_option(index=1)
        part.locator(f"#rationale-{key}").fill("Between the two: slips, but understandable.")
    page.get_by_role("button", name="Save the decision").click()
    expect(page.get_by_text("Adjudicated").first).to_be_attached()


def rows_of(download: Download, folder: Path) -> list[dict[str, str]]:
    file = folder / download.suggested_filename
    download.save_as(file)
    return list(csv.DictReader(file.read_text("utf-8-sig").splitlines()))


def paid(page: Page, there: str, pictures: Pictures) -> list[dict[str, str]]:
    """Pay half a dollar an item in the Arabic duty, and download the sheet."""
    page.goto(f"{there.replace('/campaigns/', '/numbers/')}work/")
    form = page.locator("form[action$='/rate/']").first
    form.locator("input[name=amount]").fill("0.5")
    form.locator("select[name=unit]").select_option("item")
    form.get_by_role("button", name="Set").click()
    expect(page.locator("form[action$='/rate/'] input[name=amount]").first).to_have_value(re.compile("0.50*"))
    pictures.look(page, "lead-work")
    with page.expect_download() as download:
        page.get_by_role("link", name="Pay sheet (CSV)").click()
    return rows_of(download.value, pictures.folder)


def exported(page: Page, pictures: Pictures) -> list[dict[str, str]]:
    page.goto(f"{root_of(page)}/p/kassa/export/")
    pictures.look(page, "lead-export")
    form = page.locator("form:has(input[name=what][value=ratings], select[name=what] option[value=ratings])")
    form.locator("select[name=format]").select_option("csv")
    with page.expect_download() as download:
        form.get_by_role("button", name="Download").click()
    return rows_of(download.value, pictures.folder)


def test_a_campaign_from_its_rubric_to_the_exported_file(
    visit_as: VisitAs, windows: Callable[..., Page], cast: Cast, tcp_proxy: TcpProxy, pictures: Pictures
) -> None:
    Project.objects.filter(pk=cast.kassa.pk).update(name=ODD_NAME)  # no slug, and of two directions
    lead = visit_as("aino", "/p/kassa/rubrics/")
    write_rubric(lead, pictures)
    open_campaign(lead, cast)
    campaign = Campaign.objects.get()
    there = f"{root_of(lead)}/p/kassa/campaigns/{campaign.pk}/"
    links = make_panels(lead, pictures)
    ask_for_qualification(lead, there, pictures)

    noor, yuki = windows(locale="ar"), windows(locale="ja-JP", color_scheme="dark", **PHONE)
    through_the_proxy = links[0].replace(urlsplit(links[0]).netloc, f"{tcp_proxy.host}:{tcp_proxy.port}")
    join(noor, through_the_proxy, "noor@panelbench.test", pictures)
    join(yuki, links[1], "yuki@panelbench.test", pictures)
    expect(noor.locator("html")).to_have_attribute("dir", "rtl")
    expect(yuki.locator("html")).to_have_attribute("lang", "ja")
    assign_items(lead, there, pictures)
    arabic, japanese = Duty.objects.order_by("panel__language")
    annotator = Annotator.objects.get(user__email="noor@panelbench.test")
    first_draws(arabic, annotator, False, False, True, True)

    def noors(name: str) -> None:
        pictures.look(noor, f"noor-{name}")

    noor.reload()
    qualify(noor, arabic, score_by_keys, noors)
    noors("item")
    score_through_a_cut(noor, tcp_proxy, noors)
    score_by_keys(noor, RIGHT)
    score_by_keys(noor, WRONG)
    score_by_keys(noor, WRONG)
    contest(noor, noors)
    decide_about_noor(lead, there, annotator.pseudonym, pictures)
    noor.goto(f"{root_of(noor)}/desk/")
    press(noor, f"form[action='/desk/{arabic.pk}/'] button")
    noors("works-again")

    yuki.reload()
    qualify(yuki, japanese, score_by_touch, lambda name: pictures.look(yuki, f"yuki-{name}"))
    for _item in range(2):
        score_by_touch(yuki, RIGHT)
    pictures.look(yuki, "yuki-item")

    rate_differently(cast, arabic, items=2)
    adjudicate(lead, there, pictures)
    assert Adjudication.objects.count() == len(CRITERIA)
    sheet = paid(lead, there, pictures)
    rows = exported(lead, pictures)
    stored = Rating.objects.filter(annotation__campaign=campaign)
    assert len(rows) == stored.count() == 2 * (2 + 2 + 2)
    assert {row["rationale"] for row in rows} == {"", "كتبت هذا بلا شبكة"}
    assert {(row["item"][0], row["score"]) for row in rows} == {("a", "3"), ("a", "1"), ("j", "3")}
    assert not {row["item"] for row in rows} & {item for items in REFERENCES.values() for item in items}
    items = {row["annotator"]: int(row["items"]) for row in sheet}
    assert items[annotator.pseudonym] == 2 + 2, "controls are paid as items"
    assert {float(row["amount_usd"]) - 0.5 * int(row["items"]) for row in sheet if row["rate_usd"]} == {0}
    assert len([row for row in sheet if row["rate_usd"]]) == 2
