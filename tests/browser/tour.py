"""The demo as its first visitor meets it: score by keyboard, then see the numbers move.

`python -m tests.browser.tour http://127.0.0.1:8000 --out pictures` walks a running demo and keeps pictures of it, wide
and narrow, light and dark; tests/browser/test_demo.py takes the same steps on a server of its own.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

PASSWORD = "panelbench demo"
LEAD = "lead@demo.panelbench.test"
ARABIC, SPANISH = "noor.ar@demo.panelbench.test", "lucia.es@demo.panelbench.test"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
# Grammar, readability, coherence, fluency: by digit and J, a reason for the last, and into the next dialogue.
SCORES = (("4", "4", "3", "3"), ("2", "1", "2", "1"), ("0", "1", "0", "0"))
REASON = {ARABIC: "صياغة غير طبيعية", SPANISH: "suena a traducción"}


@contextmanager
def sign_in(browser: Browser, root: str, email: str, *, size: str = "wide", scheme: str = "light") -> Iterator[Page]:
    """A page on which this person has signed in with the keyboard."""
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=root, viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=size == "narrow"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto("/account/login/")
    page.locator("#id_login").fill(email)
    page.locator("#id_password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "/account/login/" not in address)
    try:
        yield page
    finally:
        context.close()


def score_three(page: Page, email: str) -> None:
    """Score the three dialogues the demo leaves open, by keyboard alone."""
    page.locator("form[action^='/desk/'] button").locator("visible=true").last.focus()
    page.keyboard.press("Enter")
    for number, scores in enumerate(SCORES):
        page.wait_for_url(re.compile("/desk/at/"))
        before = page.url
        for place, score in enumerate(scores):
            page.keyboard.press(score)
            if place < len(scores) - 1:
                page.keyboard.press("j")
        if scores[-1] != "3":
            page.keyboard.press("r")
            page.keyboard.type(REASON[email])
        page.keyboard.press("Control+Enter")
        if number < len(SCORES) - 1:
            page.wait_for_url(lambda address, before=before: "/desk/at/" in address and address != before)  # type: ignore[misc]
    page.wait_for_url(lambda address: "/desk/at/" not in address)


def draw_heatmap(page: Page) -> list[str]:
    """The cells of the heatmap, as they stand when nothing newer is being computed."""
    page.goto("/p/demo/numbers/")
    expect(page.locator(".heat:not(.shares)")).to_be_visible(timeout=60_000)
    expect(page.locator("#freshness [data-stale]")).to_have_count(0, timeout=60_000)
    return page.locator(".heat:not(.shares) tbody td").all_inner_texts()


def tour(browser: Browser, root: str, out: Path) -> None:
    """The whole visit, with pictures."""
    with sign_in(browser, root, LEAD) as lead:
        before = draw_heatmap(lead)
    for email in (ARABIC, SPANISH):
        with sign_in(browser, root, email) as page:
            score_three(page, email)
            page.screenshot(path=out / f"done-{email[:4]}.png")
    with sign_in(browser, root, LEAD) as lead:
        after = draw_heatmap(lead)
        moved = sum(old != new for old, new in zip(before, after, strict=True))
        print(f"heatmap cells that moved: {moved} of {len(after)}")
        assert moved
    for size in SIZES:
        for scheme in ("light", "dark"):
            _pictures(browser, root, out, size, scheme)


def _pictures(browser: Browser, root: str, out: Path, size: str, scheme: str) -> None:
    for email, name, addresses in (
        (LEAD, "lead", _LEADS_PAGES),
        ("noor.ar@demo.panelbench.test", "arabic", {"desk-home": "/desk/"}),
        ("yuki.ja@demo.panelbench.test", "japanese", {"desk-home": "/desk/"}),
    ):
        with sign_in(browser, root, email, size=size, scheme=scheme) as page:
            for label, address in addresses.items():
                page.goto(address)
                page.wait_for_load_state("networkidle" if "numbers" not in address else "load")
                page.screenshot(path=out / f"{name}-{label}-{size}-{scheme}.png", full_page=name == "lead")
    with sign_in(browser, root, "yuki.ja@demo.panelbench.test", size=size, scheme=scheme) as page:
        page.locator("form[action^='/desk/'] button").locator("visible=true").last.click()
        page.wait_for_url(re.compile("/desk/at/"))
        page.screenshot(path=out / f"japanese-desk-{size}-{scheme}.png")


_LEADS_PAGES = {
    "project": "/p/demo/",
    "numbers": "/p/demo/numbers/",
    "datasets": "/p/demo/datasets/",
    "import": "/p/demo/imports/new/",
    "imports": "/p/demo/imports/",
    "mappings": "/p/demo/mappings/",
    "export": "/p/demo/export/",
    "bundle": "/p/demo/import-bundle/",
    "sharing": "/p/demo/settings/sharing/",
    "webhooks": "/p/demo/settings/webhooks/",
    "rubrics": "/p/demo/rubrics/",
    "campaigns": "/p/demo/campaigns/",
    "judges": "/p/demo/judges/",
    "panels": "/p/demo/panels/",
    "people": "/p/demo/people/",
    "audit": "/p/demo/audit/",
    "me": "/me/",
}


def _main() -> None:
    """Walk the demo that runs at the given address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="where the demo answers, such as http://127.0.0.1:8000")
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox", "--disable-gpu"])
        tour(browser, options.root, options.out)


if __name__ == "__main__":
    _main()
