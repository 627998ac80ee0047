"""The pages on which data comes in and goes out, in Chromium: for everybody, on every width, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.files.uploadedfile import SimpleUploadedFile
from playwright.sync_api import BrowserContext, Page, expect

from accounts import webhooks
from analytics.answers import snapshots
from analytics.exporting import shares
from analytics.questions.question import Settings
from annotation.checkup import checkups
from annotation.imports import saved_mappings
from annotation.models import Dataset, Import
from annotation.readers.mapping import Mapping
from tests import make
from tests.accounts.receiver import receiver
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

GREETINGS = "nr,keel,tekst,autor\n" + "".join(f"g{n},et,Tere {n}! مرحبا,m{n % 2}\n" for n in range(60))
FAULTY = "id,language,answer\n2.9E+15,et,Tere\nb,xx-not-a-tag,Tere\nc,et,\n"
RATINGS = "item,rater,criterion,score\nd1,A1,fluency,3\nd1,A1,fluency,9\n"
WIDTHS = (320, 390, 720)  # 720: a window of 1440 at 200 %
Open = Callable[[str], Page]


@pytest.fixture
def visit(visit_as: VisitAs) -> Open:
    """Opens an address of the project for Aino, who leads it."""
    return partial(visit_as, "aino")


def uploaded(cast: Cast, name: str, text: str) -> str:
    """The address of the import that a file became."""
    file = SimpleUploadedFile(name, text.encode())
    answer = cast.client("aino").post("/p/kassa/imports/new/", {"files": [file]})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"])


@pytest.fixture
def addresses(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every page of data in and out, with something on it."""
    settings.DEBUG = True  # or no webhook may point to this machine
    campaign = make.campaign(cast.kassa, name="Round 1")
    make.rated(campaign, {"fluency": {"A1": [0, 1, 2, 3], "A2": [0, 1, 2, 2]}})
    snapshots.snapshot(campaign=campaign, settings=Settings())
    saved_mappings.store_mapping(project=cast.kassa, kind="dataset", name="Ours", mapping=Mapping(), actor=cast.aino)
    _share, secret = shares.make(campaign=campaign, label="Reviewer 2", actor=cast.aino)
    with receiver() as there:
        webhook = webhooks.add(project=cast.kassa, address=there.address, events=["import.finished"], actor=cast.aino)
    texts = [
        "[nimi] ja https://example.org/" + "a" * 300,
        "Tere <br> مرحبا",
        "Hello, where is the parcel that I ordered?",
    ]
    items = [
        make.item_row(n, scenario=f"s {n % 2}", turns=[{"speaker": "customer", "text": text}] * 3)
        for n, text in enumerate(texts)
    ]
    checked = make.dataset(cast.kassa, items, name="Leidudega «andmekogu»")
    checkups.check_now(dataset=checked)
    places = ["datasets", f"datasets/{campaign.dataset_id}", "imports", "imports/new", "mappings", "export"]
    places += ["import-bundle", "settings/sharing", "settings/webhooks", f"settings/webhooks/{webhook.pk}"]
    places += [f"datasets/{campaign.dataset_id}/checkup", f"datasets/{checked.pk}/checkup"]
    export = {"what": "items", "dataset": str(campaign.dataset), "format": "csv", "later": "on"}
    assert cast.client("aino").post("/p/kassa/export/file/", export).status_code == 302
    files = {"greetings.csv": GREETINGS, "faulty.csv": FAULTY, "ratings.csv": RATINGS}
    small = [uploaded(cast, name, text) for name, text in files.items()]
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)
    return [
        *(f"/p/kassa/{place}/" for place in places),
        *small,
        uploaded(cast, "large.csv", GREETINGS),  # which waits for a worker
        f"/p/kassa/datasets/{checked.pk}/checkup/?check=placeholder&language=et",
        f"/shared/{secret}/",
        f"/shared/{secret}/rubric/",
    ]


def test_every_page_is_for_everybody(visit: Open, addresses: list[str]) -> None:
    """Axe finds nothing, light or dark; nothing has to be scrolled sideways; no page breaks its own policy."""
    found: dict[str, Any] = {}
    said: list[str] = []
    page = visit(addresses[0])
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    for address in addresses:
        visit(address)
        found |= {(address, scheme): told for scheme in ("light", "dark") if (told := violations(page, scheme))}
        found |= {(address, width): over for width in WIDTHS if (over := overflow(page, width))}
    assert found == {}
    assert said == []


def violations(page: Page, scheme: Any) -> str:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme=scheme)
    audit = Axe().run(page)
    return str(audit.generate_report()) if audit.violations_count else ""


def overflow(page: Page, width: int) -> int:
    """By how many pixels a page is wider than its window, in either direction; tables scroll on their own."""
    page.set_viewport_size({"width": width, "height": 844})
    measure = """() => Math.max(...["rtl", "ltr"].map((direction) => {
        document.documentElement.dir = direction;
        return document.documentElement.scrollWidth - document.documentElement.clientWidth;
    }))"""
    return int(page.evaluate(measure))


def test_a_guess_is_corrected_by_keyboard_and_nothing_jumps(visit: Open, cast: Cast) -> None:
    page = visit(uploaded(cast, "greetings.csv", GREETINGS))
    expect(page.get_by_role("heading", name="This can't be stored yet")).to_be_visible()
    for column, field in (("keel", "language"), ("tekst", "answer")):
        choice = page.get_by_label(f"Use of {column}")
        choice.focus()
        before = choice.evaluate("node => node.getBoundingClientRect().top")
        page.keyboard.type(field)  # as a list is searched; it stays until the list is left
        with page.expect_navigation():
            page.keyboard.press("Tab")
        choice = page.get_by_label(f"Use of {column}")
        expect(choice).to_have_value(field)
        assert page.evaluate("document.activeElement.id"), "the focus is where Tab took it"
        assert abs(choice.evaluate("node => node.getBoundingClientRect().top") - before) < 60
    expect(page.get_by_role("heading", name="The first 50 items")).to_be_visible()
    page.get_by_role("button", name="Store", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Everything is stored.")).to_be_visible()
    assert Dataset.objects.get().items.count() == 60

    page.get_by_role("button", name="Undo", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Undo this whole import?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_focused()
    assert Dataset.objects.exists()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Undo the import").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert not Dataset.objects.exists()


def test_a_check_again_keeps_the_focus_and_parts_no_pair(visit: Open, cast: Cast) -> None:
    text = ",id,language,answer\n" + "".join(f"7{n},g{n},et,Tere <br> مرحبا\n" for n in range(9))
    page = visit(uploaded(cast, "unnamed.csv", text))
    focused = "document.activeElement.id"

    use = page.locator("#column-1")
    use.focus()
    page.keyboard.type("Scenario")
    with page.expect_navigation():
        page.keyboard.press("Tab")
    expect(use).to_have_value("scenario")
    assert page.evaluate(focused) == "attribute-1", "the focus is where Tab took it"
    use.focus()
    page.keyboard.type("Attribute")
    with page.expect_navigation():
        page.keyboard.press("Tab")
    expect(use).to_have_value("")
    assert page.evaluate(focused) == "attribute-1"
    page.keyboard.type("vana nr")
    with page.expect_navigation():
        page.keyboard.press("Tab")
    expect(page.locator("#attribute-1")).to_have_value("vana nr")
    assert page.evaluate(focused) == "column-2", "the focus is where Tab took it"

    page.get_by_text("Text to replace or remove").click()
    first, second = page.locator("#replaced-1"), page.locator("#replacement-1")
    first.focus()
    page.keyboard.type("<br>")
    page.keyboard.press("Tab")
    page.wait_for_timeout(300)  # nothing is to happen
    expect(second).to_be_focused()
    page.keyboard.type("\\n")
    with page.expect_navigation():
        page.keyboard.press("Tab")
    expect(first).to_have_value("<br>")
    expect(second).to_have_value("\\n")
    assert page.evaluate(focused) not in ("", "replaced-1"), "the focus is where Tab took it"

    page.locator("#kind").focus()
    page.keyboard.type("Ratings")
    with page.expect_navigation():
        page.keyboard.press("Tab")  # to the name of the dataset, which ratings do not have
    expect(page.locator("#kind")).to_have_value("ratings")
    expect(page.locator("#name")).to_have_count(0)
    assert page.evaluate(focused) == "kind", "what was changed has the focus where the next control has gone"


def test_two_tabs_store_it_once_and_the_way_back_is_safe(visit: Open, context: BrowserContext, cast: Cast) -> None:
    make.dataset(cast.kassa, name="greetings")
    address = uploaded(cast, "greetings.csv", GREETINGS.replace("nr,keel,tekst", "id,language,answer"))
    first = visit(address)
    second = context.new_page()
    second.goto(first.url)
    first.get_by_role("button", name="Store", exact=True).click()
    expect(first.get_by_text("Everything is stored.")).to_be_visible()
    second.get_by_role("button", name="Store", exact=True).click()
    expect(second.get_by_text("This import is already stored.")).to_be_visible()
    first.go_back()
    first.reload()
    expect(first.get_by_role("button", name="Store", exact=True)).to_have_count(0)
    assert Dataset.objects.filter(name="greetings").count() == 2


def test_files_are_added_and_taken_out_before_they_go(visit: Open, tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("id,language,answer\n1,et,Tere\n")
    page = visit("/p/kassa/imports/new/")
    page.locator("input[type=file]").set_input_files(tmp_path / "one.csv")
    expect(page.locator("[data-chosen] li")).to_have_count(1)
    page.locator("input[type=file]").set_input_files(tmp_path / "two.csv")
    expect(page.locator("[data-chosen] li")).to_have_count(2)
    page.get_by_role("button", name="Remove one.csv").click()
    expect(page.get_by_role("button", name="Remove two.csv")).to_be_focused()
    page.get_by_role("button", name="Check the files").click()
    page.wait_for_url(re.compile(r"/imports/\d+/"))
    assert [file.name for file in Import.objects.get().files.all()] == ["two.csv"]


def test_the_network_is_cut_during_an_upload(visit: Open, context: BrowserContext, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,language,answer\n" + "".join(f"{n},et,{'Tere! ' * 20}{n}\n" for n in range(40_000)))
    page = visit("/p/kassa/imports/new/")
    page.locator("input[type=file]").set_input_files(path)
    context.set_offline(True)
    page.get_by_role("button", name="Check the files").click()
    expect(page.get_by_text("Connection lost. The upload continues when it is back.")).to_be_visible()
    context.set_offline(False)
    page.wait_for_url(re.compile(r"/imports/\d+/"))
    assert Import.objects.get().files.get().size == path.stat().st_size
