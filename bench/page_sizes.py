"""Words, numbers, links and height of the pages that a lead opens: ``python -m bench.page_sizes``.

It signs in to a running demo (``panelbench demo``) and opens each page of a campaign's tabs at 1,280 px, scrolls to its
end and waits until no figure is being computed. Counted is what can be seen without opening a fold or a list of
choices, always in English: the profile is set to it first, and a page in another language ends the count. ``--keep
FILE`` keeps what it measured; ``--before FILE`` writes results/page_sizes.md with what was kept beside it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SIZES_FILE = Path(__file__).parent / "results" / "page_sizes.md"
LIMITS = {"words": 600, "numbers": 150, "px": 2500}
TABS = {
    "Study": "numbers/{}/study/",
    "People: agreement": "numbers/{}/agreement/",
    "People: annotators": "numbers/{}/annotators/",
    "People: work": "numbers/{}/work/",
    "People: rater models": "numbers/{}/raters/",
    "People: adjudication": "numbers/{}/adjudication/",
    "Judges: decisions": "numbers/{}/judges/",
    "Judges: calibration": "numbers/{}/calibration/",
    "Judges: comparison": "numbers/{}/comparison/",
    "Judges: audits": "numbers/{}/audits/",
    "Judges: all judges": "judges/?campaign={}",
    "Generators": "numbers/{}/results/",
    "Generators: stability": "numbers/{}/stability/",
    "Next: workflow": "numbers/{}/workflow/",
    "Next: planner": "numbers/{}/planner/",
    "Next: waves": "numbers/{}/waves/",
    "Items": "numbers/{}/items/",
    "Report": "numbers/{}/report/",
    "All statistics": "numbers/{}/all/",
    "All statistics: figures": "numbers/{}/",
    "All statistics: explore": "numbers/{}/explore/",
    "Settings": "campaigns/{}/",
}
WAITING = "[hx-trigger='every 1s'], [hx-trigger='every 2s'], [hx-trigger='revealed']"
MEASURED = """() => {
  const main = document.querySelector("main");
  for (const hidden of main.querySelectorAll(".vh, option:not(:checked)")) hidden.remove();
  return [main.innerText, main.querySelectorAll("a[href]").length, document.documentElement.scrollHeight];
}"""


def page_size(page: Page, address: str, seconds: float) -> dict[str, int] | None:
    """The sizes of one page; nothing where there is none."""
    answer = page.goto(address)
    if answer is None or answer.status != 200:
        return None
    if (language := page.locator("html").get_attribute("lang")) != "en":
        raise SystemExit(f"{address} is in {language}: sizes are counted in English")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_timeout(500)
        if not page.locator(
            "main :is([hx-trigger='every 1s'], [hx-trigger='every 2s'], [hx-trigger='revealed'])"
        ).count():
            break
    text, links, height = page.evaluate(MEASURED)
    words = re.findall(r"[^\W\d_][\w’'-]*", text)
    return {"words": len(words), "numbers": len(re.findall(r"\d+(?:[.,]\d+)*", text)), "links": links, "px": height}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="http://127.0.0.1:8000")
    parser.add_argument("--email", default="lead@demo.panelbench.test")
    parser.add_argument("--password", required=True)
    parser.add_argument("--project", default="demo")
    parser.add_argument("--campaign", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=90, help="at most, until the figures of a page are computed")
    parser.add_argument("--only", default="", help="pages whose name begins so")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(base_url=options.root, viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(60_000)
        page.goto("/account/login/")
        page.locator("#id_login").fill(options.email)
        page.locator("#id_password").fill(options.password)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda address: "/account/login/" not in address)
        page.goto("/me/")
        page.locator("#id_ui_language").select_option("en")
        page.locator("form", has=page.locator("#id_ui_language")).locator("button[type=submit]").click()
        page.wait_for_load_state()
        found = {}
        for name, address in TABS.items():
            if name.startswith(options.only):
                whole = f"/p/{options.project}/{address.format(options.campaign)}"
                found[name] = page_size(page, whole, options.seconds)
                print(name, found[name], flush=True)
        browser.close()
    if options.keep:
        options.keep.write_text(json.dumps(found))
    if options.before:
        SIZES_FILE.write_text(_table(json.loads(options.before.read_text()), found), encoding="utf-8")


def _table(before: dict[str, dict[str, int] | None], after: dict[str, dict[str, int] | None]) -> str:
    head = (
        "# Sizes of a campaign's pages\n\n"
        "`python -m bench.page_sizes` on the demo (300 dialogues, five languages, five judges), at 1,280 px, to the "
        "end of the page, folds closed: before issue 29 → after. No first page of a tab may have more than "
        f"{LIMITS['words']} words, {LIMITS['numbers']} numbers or {LIMITS['px']:,} px.\n\n"
        "| page | words | numbers | links | px |\n| --- | ---: | ---: | ---: | ---: |\n"
    )
    rows = []
    for name in TABS:
        old, new = before.get(name) or {}, after.get(name) or {}
        cells = [_cell(old.get(size), new.get(size), LIMITS.get(size)) for size in ("words", "numbers", "links", "px")]
        rows.append(f"| {name} | {' | '.join(cells)} |\n")
    return head + "".join(rows)


def _cell(old: int | None, new: int | None, most: int | None) -> str:
    texts = ["–" if size is None else f"{size:,}" for size in (old, new)]
    return f"{texts[0]} → {texts[1]}{' (over)' if new and most and new > most else ''}"


if __name__ == "__main__":
    _main()
