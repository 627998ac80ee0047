"""Selections: what a rule chooses, with what probability, and what uses it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from accounts.refusals import Refused
from annotation import allocation, panels, selections
from annotation.imports import storage
from annotation.models import Campaign, ItemSelection, SelectedItem, Selection
from tests import make
from tests.cast import Cast

LANGUAGES = ("et", "fi", "hu")
EVERY = 10  # scenarios, every one in three languages by two generators


def make_scene(cast: Cast) -> Campaign:
    """Ten scenarios x three languages x two generators; scenarios 1 to 4 are about health."""
    rows = [
        make.item_row(
            number,
            language=language,
            generator=generator,
            external_id=f"{scenario}-{language}-{generator}",
            scenario=f"s{scenario}",
            attributes={"domain": "health" if scenario <= 4 else "post", "turns": 2.0},
        )
        for number, (scenario, language, generator) in enumerate(
            (s, lang, g) for s in range(1, EVERY + 1) for lang in LANGUAGES for g in ("atlas", "babel")
        )
    ]
    return make.campaign(cast.kassa, items=rows)


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def chosen(campaign: Campaign, rule: dict[str, Any], seed: int = 1, name: str = "S") -> list[SelectedItem]:
    selection = selections.select(campaign=campaign, name=name, rule=rule, seed=seed)
    return list(selection.selected.select_related("item").order_by("item__ordinal"))


@pytest.mark.django_db
class TestDrawing:
    def test_n_of_every_stratum_with_its_probability(self, campaign: Campaign) -> None:
        by = ["language", "generator", "attribute:domain"]
        drawn = chosen(campaign, {"kind": "draw", "n": 3, "by": by})
        counts = Counter((row.item.language, row.item.generator, row.item.attributes["domain"]) for row in drawn)
        assert set(counts.values()) == {3}
        assert len(counts) == 12
        of = {"health": 3 / 4, "post": 3 / 6}
        assert all(row.probability == of[row.item.attributes["domain"]] for row in drawn)
        assert drawn[0].stratum.count(" · ") == 2

    def test_scenarios_are_drawn_whole(self, campaign: Campaign) -> None:
        drawn = chosen(campaign, {"kind": "draw", "n": 2, "by": ["attribute:domain"], "unit": "scenario"})
        by_scenario = Counter(row.item.scenario for row in drawn)
        assert set(by_scenario.values()) == {6}
        assert len(by_scenario) == 4
        assert {row.probability for row in drawn} == {2 / 4, 2 / 6}
        with pytest.raises(Refused, match="differ in language"):
            chosen(campaign, {"kind": "draw", "n": 2, "by": ["language"], "unit": "scenario"})

    def test_the_seed_gives_the_draw_again_and_another_gives_another(self, campaign: Campaign) -> None:
        rule = {"kind": "draw", "n": 2, "by": ["language"]}
        draws = [[row.item_id for row in chosen(campaign, rule, seed, f"{n}")] for n, seed in enumerate((7, 7, 8))]
        assert draws[0] == draws[1] != draws[2]

    def test_a_stratum_with_fewer_is_taken_whole(self, campaign: Campaign) -> None:
        rule = {"kind": "draw", "n": 15, "by": ["attribute:domain"], "filter": {"generator": "atlas"}}
        selection = selections.select(campaign=campaign, name="S", rule=rule)
        health, post = selections.strata_of(selection)
        assert (health.name, health.available, health.chosen, health.is_short) == ("health", 12, 12, True)
        assert (post.available, post.chosen, post.items, post.is_short) == (18, 15, 15, False)

    def test_every_item_is_drawn_as_often_as_its_probability_says(self, campaign: Campaign) -> None:
        rule = selections.checked_rule(campaign, {"kind": "draw", "n": 4, "by": ["language"]})
        times = Counter(
            row.item for seed in range(400) for row in selections.draw_items(campaign=campaign, rule=rule, seed=seed)
        )
        assert len(times) == 60
        spread = (400 * 0.2 * 0.8) ** 0.5
        assert all(abs(count - 80) < 4.5 * spread for count in times.values())


@pytest.mark.django_db
class TestOtherRules:
    def test_a_filter_takes_what_fits(self, campaign: Campaign) -> None:
        drawn = chosen(campaign, {"kind": "filter", "filter": {"language": ["et", "fi"], "attribute:turns": "2"}})
        assert (len(drawn), {row.probability for row in drawn}) == (40, {1.0})

    def test_a_list_takes_its_items_in_the_datasets_order(self, campaign: Campaign) -> None:
        drawn = chosen(campaign, {"kind": "list", "items": ["2-et-atlas", "1-et-atlas", "2-et-atlas"]})
        assert [row.item.external_id for row in drawn] == ["1-et-atlas", "2-et-atlas"]
        with pytest.raises(Refused, match=r"no item “9-xx” \(1 of the ids"):
            chosen(campaign, {"kind": "list", "items": ["1-et-atlas", "9-xx"]}, name="T")

    def test_the_items_of_a_duty_keep_its_probabilities(self, cast: Cast, campaign: Campaign) -> None:
        panel = panels.create(project=cast.kassa, name="Estonian", language="et")
        drawn = chosen(campaign, {"kind": "draw", "n": 5, "by": ["language"]})
        duty = allocation.allocate(
            campaign=campaign, panel=panel, overlap=2, selection=ItemSelection.objects.get(), name="First"
        )
        assert set(duty.selections.values_list("item", "probability", "stratum", "origin")) == {
            (row.item_id, 0.25, "et", "selection") for row in drawn if row.item.language == "et"
        }
        copied = chosen(campaign, {"kind": "duty", "duty": duty.pk, "wave": 1}, name="Copy")
        assert {(row.item_id, row.probability) for row in copied} == set(
            Selection.objects.filter(duty=duty).values_list("item", "probability")
        )
        assert ItemSelection.objects.get(name="Copy").rule == {"kind": "duty", "duty": "First", "wave": 1}

    def test_a_duty_over_a_selection_gets_nothing_of_a_later_version(self, cast: Cast, campaign: Campaign) -> None:
        panel = panels.create(project=cast.kassa, name="Everyone")
        selection = selections.select(campaign=campaign, name="S", rule={"kind": "list", "items": ["1-et-atlas"]})
        duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1, selection=selection)
        later = storage.append_items(dataset=campaign.dataset, items=[make.item_row(99)])
        campaign.dataset = later
        campaign.save()
        assert allocation.hand_out(campaign=campaign) == 0
        assert duty.selections.count() == 1


@pytest.mark.django_db
class TestRefusals:
    @pytest.mark.parametrize(
        ("rule", "sentence"),
        [
            ({"kind": "guess"}, "one of: draw, filter, duty, list"),
            ({"kind": "draw", "n": 0}, "1 or more"),
            ({"kind": "draw", "n": True}, "1 or more"),
            ({"kind": "draw", "n": 2, "by": ["colour"]}, "have no “colour”. They have: language"),
            ({"kind": "draw", "n": 2, "share": 0.5}, "has no “share”"),
            ({"kind": "draw", "n": 2, "unit": "turn"}, "one of: item, scenario"),
            ({"kind": "filter", "filter": {"language": ["xx"]}}, "No item of"),
            ({"kind": "filter", "filter": ["et"]}, "names columns"),
            ({"kind": "filter", "filter": {"language": [3]}}, "list of texts"),
            ({"kind": "duty", "duty": "None such"}, r"there are: none"),
            ({"kind": "list", "items": []}, "list of texts"),
        ],
    )
    def test_a_rule_with_a_mistake(self, campaign: Campaign, rule: dict[str, Any], sentence: str) -> None:
        with pytest.raises(Refused, match=sentence):
            selections.select(campaign=campaign, name="S", rule=rule)
        assert not ItemSelection.objects.exists()

    def test_a_name_twice_and_another_campaigns_selection(self, cast: Cast, campaign: Campaign) -> None:
        rule = {"kind": "draw", "n": 1}
        selection = selections.select(campaign=campaign, name="S", rule=rule)
        with pytest.raises(Refused, match="already has a selection called “S”"):
            selections.select(campaign=campaign, name="S", rule=rule)
        other = make.campaign(cast.teine, name="Other")
        panel = panels.create(project=cast.teine, name="Everyone")
        with pytest.raises(Refused, match="another campaign"):
            allocation.allocate(campaign=other, panel=panel, overlap=1, selection=selection)

    def test_a_selection_in_use_stays(self, cast: Cast, campaign: Campaign) -> None:
        selection = selections.select(campaign=campaign, name="S", rule={"kind": "draw", "n": 1})
        panel = panels.create(project=cast.kassa, name="Everyone")
        duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1, selection=selection)
        with pytest.raises(Refused, match="is used by a run or a task"):
            selections.remove_selection(selection=selection)
        assert selection.selected.exists()
        allocation.take_back_duty(duty=duty)
        selections.remove_selection(selection=selection)
        assert not SelectedItem.objects.exists()


@pytest.mark.django_db
class TestThroughHTTP:
    def test_the_page_counts_and_then_stores_what_it_counted(self, cast: Cast, campaign: Campaign) -> None:
        browser = cast.client("boris")
        address = f"/p/{cast.kassa.slug}/campaigns/{campaign.pk}/selections/new/"
        fields = {"name": "Twenty", "kind": "draw", "n": "3", "by": ["language", "attribute:domain"], "unit": "item"}
        counted = browser.post(address, {**fields, "filter": "generator = atlas", "preview": "1"})
        assert not ItemSelection.objects.exists()
        assert [stratum.available for stratum in counted.context["strata"]] == [4, 4, 4, 6, 6, 6]
        seed = counted.context["form"].data["seed"]
        stored = browser.post(address, {**fields, "filter": "generator = atlas", "seed": seed})
        selection = ItemSelection.objects.get()
        assert (stored["Location"], selection.seed) == (f"/p/{cast.kassa.slug}/selections/{selection.pk}/", int(seed))
        page = browser.get(stored["Location"])
        assert "3 items of every language x domain" in page.content.decode()
        refused = browser.post(address, {**fields, "filter": "colour = red", "name": "Other"})
        assert "have no “colour”" in refused.content.decode()
        shown = browser.get(address).content.decode()
        assert "Choose a task" in shown and "---------" not in shown
        parts = re.findall(r'data-kinds="([^"]+)">.*?name="(\w+)"', shown, re.DOTALL)
        assert {name: kinds for kinds, name in parts}["filter"] == "draw filter" and len(parts) == 8

    def test_the_api_draws_lists_and_removes(self, cast: Cast, campaign: Campaign) -> None:
        browser = cast.client("boris")
        base = f"/api/v1/projects/{cast.kassa.slug}"
        body = {"name": "Ten", "rule": {"kind": "draw", "n": 5, "by": ["generator"]}, "seed": 4}
        made = browser.post(f"{base}/campaigns/{campaign.pk}/selections/", body, content_type="application/json")
        assert made.status_code == 201
        assert made.json()["strata"][0] == {"name": "atlas", "available": 30, "chosen": 5, "items": 5}
        there = f"{base}/selections/{made.json()['id']}/"
        items = browser.get(f"{there}items/").json()["results"]
        assert (len(items), {item["probability"] for item in items}) == (10, {5 / 30})
        panel = panels.create(project=cast.kassa, name="Everyone")
        share = {"panel": panel.pk, "overlap": 1, "selection": made.json()["id"]}
        duty = browser.post(f"{base}/campaigns/{campaign.pk}/duties/", share, content_type="application/json")
        assert (duty.status_code, duty.json()["selection"]) == (201, made.json()["id"])
        assert browser.delete(there).status_code == 409
        assert Selection.objects.filter(duty=duty.json()["id"]).count() == 10
        wrong = browser.post(
            f"{base}/campaigns/{campaign.pk}/selections/",
            {"name": "X", "rule": {"kind": "draw"}},
            content_type="application/json",
        )
        assert (wrong.status_code in (409, 422), set(wrong.json()["fields"])) == (True, {"n"})

    @pytest.mark.parametrize(
        "rule",
        [
            '{"kind": ["draw"]}',
            '{"kind": {}}',
            r'{"kind": "list", "items": ["\ud800"]}',
            r'{"kind": "filter", "filter": {"language": ["\ud800"]}}',
            r'{"kind": "filter", "filter": {"\ud800": ["et"]}}',
            r'{"kind": "draw", "n": 1, "by": ["\ud800"]}',
            r'{"kind": "duty", "duty": "\ud800"}',
            r'{"kind": "duty", "duty": "\u0000"}',
            '{"kind": "duty", "duty": %s}' % 10**30,
            r'{"\ud800": 1, "kind": "list"}',
        ],
    )
    def test_a_rule_that_cannot_be_stored_is_refused(self, cast: Cast, campaign: Campaign, rule: str) -> None:
        address = f"/api/v1/projects/{cast.kassa.slug}/campaigns/{campaign.pk}/selections/"
        body = f'{{"name": "X", "rule": {rule}}}'
        answer = cast.client("boris").post(address, body, content_type="application/json")
        assert answer.status_code in (400, 409, 422), answer.content
        assert not ItemSelection.objects.exists()
