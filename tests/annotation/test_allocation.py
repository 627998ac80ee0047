"""Slots, order and probabilities of a panel's share."""

from __future__ import annotations

import pytest

from accounts.refusals import Refused
from annotation import allocation, campaigns, panels
from annotation.imports import storage
from annotation.models import Assignment, Item, Selection
from tests import make
from tests.annotation import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_every_item_gets_as_many_slots_as_the_overlap_side_by_side(cast: Cast) -> None:
    work = scene.duty(cast, items=5, overlap=3)

    slots = list(Assignment.objects.filter(duty=work).order_by("position", "slot").values_list("item", "slot"))

    assert [slot for _item, slot in slots] == [1, 2, 3] * 5
    assert all(len({item for item, _slot in slots[first : first + 3]}) == 1 for first in range(0, 15, 3))
    assert set(Selection.objects.filter(duty=work).values_list("probability", "wave", "origin")) == {(1.0, 1, "all")}


def test_the_order_depends_on_the_seed_alone_and_mixes_the_generators(cast: Cast) -> None:
    rows = [make.item_row(n, generator="atlas" if n <= 20 else "birch") for n in range(1, 41)]
    campaign = make.campaign(cast.kassa, items=rows)
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")

    orders = []
    for seed in (1, 1, 2):
        made = allocation.allocate(
            campaign=campaign, panel=panel, overlap=1, name=f"{len(orders)}", seed=seed, again=True
        )
        queue = Assignment.objects.filter(duty=made).order_by("position")
        orders.append(list(queue.values_list("item__external_id", "item__generator")))

    assert orders[0] == orders[1] != orders[2]
    first_half = [generator for _id, generator in orders[0][:20]]
    assert 5 <= first_half.count("atlas") <= 15


def test_a_panel_takes_its_language_and_the_varieties_of_it(cast: Cast) -> None:
    rows = [make.item_row(n, language) for n, language in enumerate(("es", "es-MX", "et"), 1)]
    dataset = make.dataset(cast.kassa, rows)
    spanish = panels.create(project=cast.kassa, name="Spanish", language="es")
    anyone = panels.create(project=cast.kassa, name="Anyone")

    def languages(panel: object) -> list[str]:
        return [item.language for item in allocation.items_for(dataset=dataset, panel=panel)]  # type: ignore[arg-type]

    assert languages(spanish) == ["es", "es-MX"]
    assert languages(anyone) == ["es", "es-MX", "et"]
    assert allocation.size(dataset=dataset, panel=spanish, overlap=3) == allocation.Size(
        items=2, assignments=6, seats=0
    )


def test_a_wave_brings_new_items_only_with_their_probabilities(cast: Cast) -> None:
    dataset = make.dataset(
        cast.kassa, [make.item_row(1), make.item_row(2), make.item_row(3, "es"), make.item_row(4, "es")]
    )
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Round", dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    work = allocation.allocate(campaign=campaign, panel=panel, overlap=2)
    known, *new = list(Item.objects.filter(dataset=dataset).order_by("ordinal"))[1:]

    drawn = allocation.draw(
        duty=work, items=[known, *new], probabilities=[0.9, 0.5, 0.25], stratum="hard", seed=3, origin="active"
    )

    assert drawn == 2
    wave = Selection.objects.filter(duty=work, wave=2).order_by("probability")
    assert list(wave.values_list("item", "probability", "stratum", "origin")) == [
        (new[1].pk, 0.25, "hard", "active"),
        (new[0].pk, 0.5, "hard", "active"),
    ]
    assert Selection.objects.get(duty=work, item=known).probability == 1.0
    assert Assignment.objects.filter(duty=work, position__gt=2).count() == 4


@pytest.mark.parametrize(("chances", "why"), [([0.5], "one"), ([0.0, 1.0], "above 0"), ([1.5, 1.0], "at most 1")])
def test_a_wave_without_sound_probabilities_is_a_programming_error(cast: Cast, chances: list[float], why: str) -> None:
    work = scene.duty(cast, items=2)

    with pytest.raises(ValueError, match=why):
        allocation.draw(duty=work, items=list(Item.objects.all()), probabilities=chances, origin="active")


def test_what_can_not_be_allocated_is_refused_with_a_sentence_and_changes_nothing(cast: Cast) -> None:
    work = scene.duty(cast)
    campaign, panel = work.campaign, work.panel
    finnish = panels.create(project=cast.kassa, name="Finnish", language="fi")
    foreign = panels.create(project=cast.teine, name="Foreign", language="et")

    refusals = {
        "no_items": {"panel": finnish, "overlap": 1},
        "other_project": {"panel": foreign, "overlap": 1},
        "name_taken": {"panel": panel, "overlap": 1},
        "invalid": {"panel": panel, "overlap": 0},
    }
    for code, asked in refusals.items():
        with pytest.raises(Refused) as refused:
            allocation.allocate(campaign=campaign, **asked)
        assert refused.value.code == code
    assert campaign.duties.count() == 1


def test_without_a_seed_a_random_one_is_drawn_stored_and_shown_to_leads_alone(cast: Cast) -> None:
    rows = [
        make.item_row(n, generator="atlas" if n <= 30 else "birch") for n in range(1, 61)
    ]  # a file sorted by generator
    campaign = make.campaign(cast.kassa, items=rows)
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    address, lead = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/duties/", cast.client("aino")

    def made(**asked: object) -> tuple[int, list[str]]:
        posted = {"panel": panel.pk, "overlap": 1, "name": f"Duty {campaign.duties.count()}", "again": True, **asked}
        duty = lead.post(address, posted, "application/json").json()
        queue = Assignment.objects.filter(duty=duty["id"]).order_by("position")
        return duty["seed"], list(queue.values_list("item__external_id", flat=True))

    (seed, order), (other, another) = made(), made()

    assert seed and other and seed != other and order != another
    assert made(seed=seed)[1] == order, "the stored seed gives the order again"
    assert f"seed {seed}" in lead.get(f"/p/kassa/campaigns/{campaign.pk}/").content.decode()
    annotator = cast.client("maarika")
    assert annotator.get(address).status_code in (403, 404)
    for seen in (annotator.get("/api/v1/projects/kassa/desk/"), annotator.get("/desk/")):
        assert str(seed) not in seen.content.decode()


def test_the_order_depends_on_the_places_in_the_dataset_and_not_on_primary_keys(cast: Cast) -> None:
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    rubric, orders = make.rubric(cast.kassa), []
    for name in ("First", "Second"):
        campaign = campaigns.open_campaign(
            project=cast.kassa, name=name, dataset=make.dataset(cast.kassa, 40, name=name), rubric_version=rubric
        )
        if orders:  # the same items again, whose primary keys run against their places
            backwards = reversed(Item.objects.filter(dataset=campaign.dataset).order_by("ordinal"))
            for place, item in enumerate(backwards):
                Item.objects.filter(pk=item.pk).update(ordinal=1_000 + place, external_id=f"new-d{place + 1}")
        duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1, seed=7)
        queue = Assignment.objects.filter(duty=duty).order_by("position")
        orders.append([name.removeprefix("new-") for name in queue.values_list("item__external_id", flat=True)])

    assert orders[0] == orders[1]


def test_a_later_wave_has_an_order_of_its_own(cast: Cast) -> None:
    rows = [make.item_row(n) for n in range(1, 41)]
    work = scene.duty(cast, items=rows[:20])
    whole = storage.append_items(dataset=work.campaign.dataset, items=rows)
    campaigns.extend_campaign(campaign=work.campaign, dataset=whole)

    allocation.hand_out(campaign=work.campaign)

    queue = list(
        Assignment.objects.filter(duty=work, slot=1).order_by("position").values_list("item__ordinal", flat=True)
    )
    assert sorted(queue[20:]) == list(range(20, 40))
    assert [place - 20 for place in queue[20:]] != queue[:20], "one wave would give the other away"
