"""The demo as its first visitor meets it: score by keyboard, then see the numbers move.

`python -m tests.browser.tour http://127.0.0.1:8000 --out pictures` walks a running demo and keeps pictures of it, wide
and narrow, light and dark; tests/browser/test_demo.py takes the same steps on a server of its own. With `--every-page`
it follows every link instead, and prints what axe, the console or the eye would find wrong, light, dark, on a phone,
right to left, and in forced colours.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
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
        for score in scores:  # a score leads to the next criterion
            page.keyboard.press(score)
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
    page.get_by_role("link", name="All statistics", exact=True).first.click()
    page.get_by_role("link", name="Figures", exact=True).first.click()
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


# --- every page, in six modes -----------------------------------------------------------------------------------------
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
MODES = ("light", "dark", "phone", "rtl", "forced", "forced dark phone")
NUMBERS = re.compile(r"(?<=[/=v])\d+|[0-9a-f]{8}-[0-9a-f-]{27}")
NO_PAGE = re.compile(
    r"\.(csv|tsv|yaml|json|jsonl|zip|svg|png|pdf|xlsx|parquet|html)$|/file/|/files/\d+/|/download|/logout|/transfers/|^/api/"
)
# What a page must not have: text that its box cuts off, and a sentence that it says twice outside lists and tables.
CUT_OFF = """
() => [...document.querySelectorAll('main *, header *')].filter((node) => {
  const style = getComputedStyle(node), box = node.getBoundingClientRect();
  const hides = style.overflowX === 'hidden' || style.overflowX === 'clip';
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  return own && hides && !node.closest('.vh') && style.clipPath === 'none' && box.width > 4
    && node.scrollWidth > node.clientWidth + 1 && !node.title;
}).map((node) => node.textContent.trim().slice(0, 60))
"""
REPEATED = """
() => {
  const seen = new Map();
  for (const node of document.querySelectorAll('main p, main .notice, main .field-help')) {
    if (node.querySelector('p') || node.closest('li, td, th, details:not([open])') || !node.checkVisibility()) continue;
    const text = node.textContent.trim().replace(/\\s+/g, ' ');
    const isLink = node.querySelector('a')?.textContent.trim() === node.textContent.trim();
    if (text.length > 30 && !isLink) seen.set(text, (seen.get(text) ?? 0) + 1);
  }
  return [...seen].filter(([, count]) => count > 1).map(([text, count]) => `${count} x ${text.slice(0, 90)}`);
}
"""
DIRECTION = "window.panelbenchDirection ??= document.documentElement.dir || 'ltr'"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class PageAudit:
    """What is wrong on the pages that this browser tab opens: by axe, the console, the server, and by the eye."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._heard: list[str] = []
        page.on("console", lambda said: self._heard.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: self._heard.append(f"script: {error}"))
        page.on("response", lambda got: self._heard.append(f"{got.status} {got.url}") if got.status >= 400 else None)

    def faults(self, address: str, modes: Sequence[str]) -> list[str]:
        """Open the address and look at it in every mode; a line for each fault."""
        self._heard.clear()
        self.page.emulate_media(color_scheme="light", forced_colors="none")
        self.page.set_viewport_size(DESKTOP)
        self.page.goto(address)
        self.page.wait_for_load_state("networkidle")
        found = [f"repeated: {text}" for text in self.page.evaluate(REPEATED)]
        found += [fault for mode in modes for fault in faults_in_mode(self.page, mode)]
        return [*self._heard, *found]


def audit_every_page(page: Page, root: str, *, modes: Sequence[str], most: int) -> Iterator[str]:
    """What is wrong on every kind of page that links lead to from this one: a line for each fault, then the count."""
    waiting, audited = [urlsplit(page.url).path, *_opened_item(page)], 0
    known, audit = {_kind(address) for address in waiting}, PageAudit(page)
    while waiting and audited < most:
        address = waiting.pop(0)
        audited += 1
        yield from (f"{address}  {fault}" for fault in audit.faults(f"{root}{address}", modes))
        for link in page.locator("a[href^='/']").evaluate_all("all => all.map((each) => each.getAttribute('href'))"):
            there = link.partition("#")[0]
            if there and _kind(there) not in known and not NO_PAGE.search(there.partition("?")[0]):
                known.add(_kind(there))
                waiting.append(there)
    yield f"{audited} pages in {', '.join(modes)}; {len(waiting)} left"


def _opened_item(page: Page) -> list[str]:
    """The address of an item of the annotator's first duty: a button opens it, no link."""
    button = page.locator("form[action^='/desk/'] button.btn-primary").locator("visible=true")
    if not button.count():
        return []
    button.last.click()
    page.wait_for_url(re.compile("/desk/at/|/before/"))
    return [urlsplit(page.url).path]


def _kind(address: str) -> str:
    """One example of each kind of page: numbers are alike, and so are the values of a query."""
    path, _mark, query = address.partition("?")
    return NUMBERS.sub("N", path) + "?" + "&".join(sorted(part.partition("=")[0] for part in query.split("&")))


def faults_in_mode(page: Page, mode: str) -> list[str]:
    page.emulate_media(
        color_scheme="dark" if "dark" in mode else "light", forced_colors="active" if "forced" in mode else "none"
    )
    page.set_viewport_size(PHONE if "phone" in mode else DESKTOP)
    direction = page.evaluate(DIRECTION)
    page.evaluate("(dir) => { document.documentElement.dir = dir }", "rtl" if "rtl" in mode else direction)
    found = [
        f"{mode} axe: {one['id']} {one['nodes'][0]['html'][:160]}" for one in Axe().run(page).response["violations"]
    ]
    if (wider := page.evaluate(WIDER)) > 0:
        found.append(f"{mode}: {wider} pixels wider than the window")
    return found + [f"{mode} cut off: {text}" for text in page.evaluate(CUT_OFF)]


def _main() -> None:
    """Walk the demo that runs at the given address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="where the demo answers, such as http://127.0.0.1:8000")
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--every-page", metavar="EMAIL", nargs="+", help="audit every page that these accounts reach")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--most", type=int, default=400, help="pages of one account at most")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox", "--disable-gpu"])
        for email in options.every_page or ():
            with sign_in(browser, options.root, email) as page:
                for line in audit_every_page(page, options.root, modes=options.modes, most=options.most):
                    print(f"{email.partition('@')[0]}: {line}", flush=True)
        if not options.every_page:
            tour(browser, options.root, options.out)


if __name__ == "__main__":
    _main()
