"""Two judges beside each other: what is set differently, the words of the prompt, and the items on which they part."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from annotation.models import Campaign
from judging import judges
from judging.models import Judge
from tests.analytics import scene
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("provider")]

STRICT = "Hinda rangelt.\nالحكم بصرامة “تمامًا”."
KIND = "Hinda leebelt.\nالحكم بصرامة “تمامًا”."
SCORES = {"fluency": [3.0, 2.0, 2.0, 1.0, 0.0, 2.0] * 2}
OTHER_SCORES = {"fluency": [3.0, 2.0, 2.0, 1.0, 3.0, 1.0, 3.0, 2.0, 2.0, 1.0, 0.0, 2.0]}


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    return scene.rated_campaign(cast)


def declared(cast: Cast, name: str, instructions: str, **options: Any) -> Judge:
    return judges.declare(
        project=cast.kassa,
        provider="simulated",
        name=name,
        model="sim-steady",
        parameters={"max_tokens": 300, **options},
        variant={"instructions": instructions},
        actor=cast.boris,
    )


def opened(cast: Cast, judge: Judge, query: str = "") -> str:
    response = cast.client("boris").get(f"/p/kassa/judges/{judge.pk}/beside/{query}")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(response.content.decode()).partition("<main")[2])


def test_settings_prompt_and_items_of_two_judges(cast: Cast, campaign: Campaign) -> None:
    kind, strict = declared(cast, "Leebe “A”", KIND), declared(cast, "قاضٍ صارم", STRICT, temperature=0)
    scene.with_verdicts(campaign, SCORES, name=kind.name)
    scene.with_verdicts(campaign, OTHER_SCORES, name=strict.name)
    page = opened(cast, strict)
    assert '<td dir="auto">none</td><td dir="auto">0</td>' in page  # the temperature
    assert "<del>leebelt</del>" in page and "<mark>rangelt</mark>" in page
    assert "equal lines" in page  # those far from the difference are counted, not shown
    assert "Both scored 12 pairs of item and criterion; 2 have different scores." in page
    shown = re.findall(r"<bdi>((?:et|ar)-\d)</bdi> <span[^>]*>[^<]*</span></span><b[^>]*>([^<]*)</b>", page)
    assert shown == [("et-4", "0 → 3"), ("et-5", "2 → 1")]  # the largest difference first
    assert f"/p/kassa/numbers/{campaign.pk}/items/" in page
    second = campaign.dataset.items.get(external_id="et-5")
    assert 'aria-current="true"><span><bdi>et-5</bdi>' in opened(cast, strict, f"?other={kind.pk}&item={second.pk}")


def test_a_version_stands_beside_the_judge_that_it_was_made_from(cast: Cast, campaign: Campaign) -> None:
    parent, child = declared(cast, "Esimene", KIND), declared(cast, "Teine", STRICT)
    declared(cast, "Kolmas", STRICT, temperature=1)
    Judge.objects.filter(pk=child.pk).update(parent=parent)
    page = opened(cast, child)
    assert f'<option value="{parent.pk}" selected>' in page
    assert "have not scored the same dataset by the same rubric yet" in page


def test_a_judge_alone_and_addresses_of_nothing(cast: Cast, campaign: Campaign) -> None:
    alone = declared(cast, "Üksik", KIND)
    assert "There is no other judge yet" in opened(cast, alone)
    other = declared(cast, "Muu", STRICT)
    client = cast.client("boris")
    for query in ("other=x", "other=99999999999999999999", f"other={alone.pk}"):
        assert client.get(f"/p/kassa/judges/{alone.pk}/beside/?{query}").status_code == 404
    scene.with_verdicts(campaign, SCORES, name=alone.name)
    scene.with_verdicts(campaign, SCORES, name=other.name)
    for query in ("item=x", "item=99999999999999999999", "item=0"):
        assert client.get(f"/p/kassa/judges/{alone.pk}/beside/?{query}").status_code == 404
    assert "They agree on every item that both scored." in opened(cast, alone)
