"""Two candidates side by side: the order is drawn and stored, the answer keeps the dataset's terms."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.workload import FEWEST_ITEMS, PositionPreference
from annotation import exports
from annotation.desk import pairs
from annotation.models import Annotation, Duty, Rating
from tests import make
from tests.annotation import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db

PREFERENCE: dict[str, Any] = {
    "direction": "none",
    "scale": {"level": "interval", "min": 1, "max": 2},
    "definition": {"en": "1 is the first, 2 the second"},
}
ONE, OTHER = "Esimene kandidaat", "Teine kandidaat"


def pair(number: int) -> Any:
    texts = {"question": "Kus on pakk?", "passage_a": f"{ONE} {number}", "passage_b": f"{OTHER} {number}"}
    models = {"model_a": "model-nobody-sees", "model_b": "other-nobody-sees"}
    return make.item_row(number, turns=[], fields=texts, attributes=models)


def duty_of_pairs(cast: Cast, items: int = 1, **more: Any) -> Duty:
    preference = make.criterion("preference", (1, 2), **{**PREFERENCE, "anchors": {}})
    rows = [pair(number) for number in range(1, items + 1)]
    return scene.duty(cast, items=rows, criteria=[preference], **more)


def test_the_candidates_are_shown_in_a_drawn_order_and_the_answer_is_in_the_terms_of_the_dataset(cast: Cast) -> None:
    work = duty_of_pairs(cast, items=12, overlap=1)
    client = cast.client("maarika")
    orders = set()
    for _item in range(12):
        address = scene.next_page(client, work)
        page = client.get(address).content.decode()
        assert "nobody-sees" not in page and "1 is the first" not in page and "Passage" not in page
        is_swapped = page.index(OTHER) < page.index(ONE)
        first, second = (2, 1) if is_swapped else (1, 2)
        assert f'value="{first}" data-digit="1"' in page and f'value="{second}" data-digit="2"' in page
        assert 'value="1.5" data-digit="0"' in page
        client.post(f"{address}submit/", {"score-preference": str(first), "seconds": "4"}, headers=scene.JSON)
        stored = Rating.objects.select_related("annotation").latest("pk")
        assert (stored.score, stored.annotation.swapped) == (first, is_swapped)
        orders.add(is_swapped)
    assert orders == {True, False}
    table = exports.ratings(work.campaign, names=exports.pseudonyms(cast.kassa))
    column = [name.name for name in table.columns].index("shown_first")
    assert {row[column] for row in table.rows} == {"passage_a", "passage_b"}

    page = cast.client("aino").get(f"/p/kassa/numbers/{work.campaign_id}/work/").content.decode()
    assert "12 of 12" in page and "1.00 [0.76, 1.00]" in page


def test_choices_on_one_item_do_not_count_as_so_many() -> None:
    """6 of 8 items by two questions that are answered alike: 12 of 16 choices say as much as 6 of 8, [0.41, 0.93]."""
    once, twice = PositionPreference("a"), PositionPreference("b")
    for item in range(8):
        once.count(item, first=int(item < 6), chosen=1)
        twice.count(item, first=2 * int(item < 6), chosen=2)
    assert (twice.first, twice.chosen, twice.items) == (12, 16, 8)
    assert (once.low, once.high) == pytest.approx((0.4093, 0.9285), abs=1e-4)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    for item in range(8, 24):
        twice.count(item, first=2 * int(item % 8 < 6), chosen=2)
    assert (twice.share, twice.is_flagged) == (0.75, twice.items >= FEWEST_ITEMS)


def test_of_two_annotators_of_an_item_each_sees_the_other_order_first(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = duty_of_pairs(cast, items=3, overlap=2, seated=[piret])
    for slot in work.assignments.filter(slot=1):
        other = work.assignments.get(item=slot.item_id, slot=2)
        assert {pairs.swapped_for(one, work.criteria.all()) for one in (slot, other)} == {True, False}


def test_without_a_preference_or_without_a_pair_nothing_changes_places(cast: Cast) -> None:
    work = scene.duty(cast, items=[pair(1)])
    client = cast.client("maarika")
    address = scene.next_page(client, work)
    page = client.get(address).content.decode()
    assert page.index(ONE) < page.index(OTHER) and "Passage A" in page
    client.post(f"{address}submit/", scene.FULL, headers=scene.JSON)
    assert Annotation.objects.get().swapped is None


@pytest.mark.parametrize(
    ("scale", "direction", "asks"),
    [
        ({"level": "interval", "min": 1, "max": 2}, "none", True),
        ({"level": "ordinal", "points": [1, 1.5, 2]}, "none", True),
        ({"level": "ordinal", "points": [1, 2]}, "none", True),
        ({"level": "ordinal", "points": [1, 2]}, "higher_is_better", False),
        ({"level": "ordinal", "points": [1, 2, 3]}, "none", False),
        ({"level": "interval", "min": 0, "max": 2}, "none", False),
    ],
)
def test_what_a_preference_is(cast: Cast, scale: dict[str, Any], direction: str, asks: bool) -> None:
    version = make.rubric(
        cast.kassa, make.criterion("preference", (1, 2), scale=scale, direction=direction, anchors={})
    )
    assert pairs.is_preference(version.criteria.get()) is asks
