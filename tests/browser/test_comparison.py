"""The comparison of judges and the page of a design, from a phone to a wide screen, dark and right to left.

`PANELBENCH_PICTURES=FOLDER` keeps a picture of each.
"""

from __future__ import annotations

import os
import random
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Page

from annotation.models import Campaign
from judging.models import Attempt, Call, DesignCell, Judge, JudgeDesign
from tests import make
from tests.analytics import scene
from tests.browser.conftest import VisitAs
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
LANGUAGES, SCENARIOS = ("ar", "es", "et", "ja", "th"), 32
LEVELS = [{"anchor_detail": style, "temperature": t} for style in ("name", "anchors", "reasons") for t in (0, 0.7)]
SCREENS = [(390, "light", "ltr"), (1024, "dark", "ltr"), (1920, "light", "ltr"), (390, "dark", "rtl")]
CUT = """() => [...document.querySelectorAll('main th, main td, main figcaption, main .btn, main label')]
    .filter(each => each.offsetWidth && each.scrollWidth > each.clientWidth + 1)
    .map(each => each.textContent.trim().slice(0, 60))"""
CUT_IN_CHART = """() => { const svg = document.querySelector('.scatter svg'); if (!svg) return [];
    const all = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(text => { const box = text.getBoundingClientRect();
        return box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1
            || box.bottom > all.bottom + 1; }).map(text => text.textContent); }"""


def designed(cast: Cast) -> tuple[Campaign, JudgeDesign]:
    """Six cells of a design on 160 items of five languages, with costs, a pilot and a jury of all."""
    draw = random.Random(5)
    items = [
        make.item_row(place * SCENARIOS + n, tag, scenario=f"s{n}", external_id=f"{tag}-{n}")
        for place, tag in enumerate(LANGUAGES)
        for n in range(SCENARIOS)
    ]
    campaign = make.campaign(cast.kassa, items=items)
    truth = {key: [draw.randint(0, top) for _item in items] for key, top in (("fluency", 3), ("coherence", 1))}
    people = {
        key: {name: [float(score) for score in scores] for name in ("mari", "jaan")} for key, scores in truth.items()
    }
    make.rated(campaign, people)  # type: ignore[arg-type]
    design = JudgeDesign.objects.create(
        project=cast.kassa,
        name="Styles",
        dataset=campaign.dataset,
        rubric_version=campaign.rubric_version,
        factors={"anchor_detail": ["name", "anchors", "reasons"], "temperature": [0, 0.7]},
        jury="majority",
        started_at=campaign.created_at,
    )
    for place, levels in enumerate(LEVELS):
        off = 0.15 + 0.07 * place
        scores = {
            key: [score if draw.random() > off else draw.randint(0, max(given)) for score in given]
            for key, given in truth.items()
        }
        run = scene.with_verdicts(campaign, scores, name=f"A model · {' · '.join(map(str, levels.values()))}")
        Judge.objects.filter(pk=run.judge_id).update(variant={"anchor_detail": levels["anchor_detail"]})
        DesignCell.objects.create(design=design, position=place, levels=levels, judge=run.judge)
        run.design = design
        run.save()
        call = Call.objects.create(run=run, item=campaign.dataset.items.first(), repeat=1, state="settled")
        Attempt.objects.create(call=call, number=1, outcome="replied", cost=Decimal("0.003") * (6 - place))
    return campaign, design


def looked_at(page: Page, name: str) -> None:
    """Nothing is cut off on any screen, and the page does not scroll sideways; only its tables do."""
    for width, scheme, direction in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.locator("html").evaluate("(element, dir) => (element.dir = dir)", direction)
        where = f"{name}-{width}-{scheme}-{direction}"
        if folder := os.environ.get("PANELBENCH_PICTURES"):
            page.screenshot(path=Path(folder, f"{where}.png"), full_page=True)
        assert page.evaluate(CUT) == [], where
        assert page.evaluate(CUT_IN_CHART) == [], where
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where


def test_the_comparison_and_the_design_fit_every_screen(cast: Cast, visit_as: VisitAs) -> None:
    campaign, design = designed(cast)
    address = f"/p/kassa/numbers/{campaign.pk}/comparison/?design={design.pk}&measure=accuracy"
    scene.answered(cast.client("boris"), campaign, address)
    page = visit_as("boris", address)
    assert page.locator(".scatter circle").count() == 7
    assert page.locator("text=How much of the rubric: Names of criteria and points only").count() > 0
    looked_at(page, "comparison")
    page.set_viewport_size({"width": 390, "height": 900})
    page.locator("html").evaluate("element => (element.dir = 'ltr')")
    name, table = page.locator(".comparison tbody th").last, page.locator(".table-scroll:has(.explore)").last
    before = name.bounding_box()
    table.evaluate("element => element.scrollTo(600, 0)")
    after = name.bounding_box()
    assert before and after and abs(after["x"] - before["x"]) < 30, "the name of a judge scrolls away"
    page = visit_as("boris", f"/p/kassa/designs/{design.pk}/")
    looked_at(page, "design")
