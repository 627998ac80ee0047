"""The page of waves: what was drawn, by whom, what of it is rated, and the way back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from accounts.models import AuditEntry
from analytics import planning
from analytics.waves import entries_of_waves, waves, withdrawn_waves
from annotation import allocation, campaigns, pay, selections, taxonomies
from annotation.imports import storage
from annotation.models import Campaign, Duty, Selection
from tests import make
from tests.analytics import scene
from tests.analytics.test_sampling import make_scene, piloted  # noqa: F401  the scene and its fixture
from tests.annotation import test_taxonomies as rules
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_a_drawn_wave_is_listed_with_its_draw_until_it_is_withdrawn(
    cast: Cast,
    piloted: tuple[Campaign, Duty],  # noqa: F811
) -> None:
    campaign, duty = piloted
    lead, here = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}/waves/"
    (pilot,) = waves(campaign)
    assert (pilot.number, pilot.may_withdraw) == (1, False)
    assert pilot.submitted == pilot.assignments > 0, "the pilot is rated"
    drawn = planning.draw_next_items(
        duty=duty, judge="Kohtunik", criterion="fluency", wanted=12, seed=7, actor=cast.aino
    )
    newest, first = waves(campaign)
    assert (newest.number, newest.items, newest.seed, newest.submitted) == (2, drawn, 7, 0)
    assert newest.about == {"criterion": "fluency", "judge": "Kohtunik"}
    assert (newest.actor, newest.may_withdraw) == (cast.aino, True)
    assert 0 < newest.lowest <= newest.highest <= 1 and newest.hours is None
    assert first.number == 1 and first.hours is not None
    page = lead.get(here).content.decode()
    assert "2 waves" in page and "Withdraw" in page and "Kohtunik" in page
    posted = lead.post(f"/p/kassa/numbers/{campaign.pk}/planner/take-back/", {"duty": duty.pk, "back": "waves"})
    assert posted["Location"] == here
    assert [wave.number for wave in waves(campaign)] == [1]
    (gone,) = withdrawn_waves(campaign)
    assert (gone.wave, gone.items, gone.actor) == ("2", str(drawn), cast.aino)
    page = lead.get(here).content.decode()
    assert "1 withdrawn wave" in page


def test_each_wave_counts_what_is_rated_of_its_own_task(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:  # noqa: F811
    campaign, duty = piloted
    other = allocation.allocate(
        campaign=campaign, panel=duty.panel, overlap=2, name="Again", again=True, actor=cast.aino
    )
    pilot, again = waves(campaign)
    assert (pilot.duty, pilot.submitted, pilot.assignments) == (duty, 30, 30)
    assert (again.duty, again.submitted, again.assignments, again.items) == (other, 0, 120, 60)
    assert pilot.hours == pytest.approx(30 * 5 / 3600) and again.hours is None
    assert (again.actor, again.lowest, again.highest, again.strata) == (cast.aino, 1.0, 1.0, 1)


def test_a_campaign_without_a_wave_says_what_one_is(cast: Cast) -> None:
    campaign = scene.campaign_without_ratings(cast)
    Selection.objects.all().delete()
    page = cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/waves/").content.decode()
    assert "No wave yet" in page and "given at one time" in page


def test_the_seed_is_that_of_the_draw_and_a_small_probability_is_not_written_as_zero(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=rules.items(("letter", "plain"), ("poem", "high"), each=4))
    panel = rules.panel_of(cast, "Readers", 3)
    kinds: tuple[dict[str, Any], ...] = ({"kind": "draw", "n": 2}, {"kind": "list", "items": ["d1"]})
    for number, rule in enumerate(kinds, 1):
        chosen = selections.select(campaign=campaign, name=f"S {number}", rule=rule, seed=70 + number)
        allocation.allocate(campaign=campaign, panel=panel, overlap=1, name=f"T {number}", again=True, selection=chosen)
    allocation.allocate(campaign=campaign, panel=panel, overlap=1, name="All", again=True, seed=9)
    drawn, listed, every = waves(campaign)
    assert (drawn.seed, drawn.probability) == (71, "0.25")
    assert (listed.seed, listed.probability) == (None, "1")
    assert every.seed is None, "nothing was drawn: the number of the task is that of the order"
    first = Selection.objects.filter(duty=drawn.duty).first()
    Selection.objects.filter(pk=first.pk).update(probability=0.00004)  # type: ignore[union-attr]
    assert waves(campaign)[0].probability == "0.00004–0.25"


def test_hours_and_price_are_for_leads_only(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:  # noqa: F811
    campaign, duty = piloted
    pay.set_pay_rate(duty=duty, unit="item", amount=Decimal("0.50"), actor=cast.aino)
    here = f"/p/kassa/numbers/{campaign.pk}/waves/"
    lead, researcher = (cast.client(name).get(here).content.decode() for name in ("aino", "boris"))
    assert "USD 15.00" in lead and ">Hours<" in lead
    assert "30 / 30" in researcher and "USD" not in researcher and ">Hours<" not in researcher


def test_a_closed_campaign_offers_no_withdrawal(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:  # noqa: F811
    campaign, duty = piloted
    planning.draw_next_items(duty=duty, judge="Kohtunik", criterion="fluency", wanted=12, seed=7, actor=cast.aino)
    assert waves(campaign)[0].may_withdraw
    campaign.state = Campaign.State.CLOSED
    campaign.save()
    assert [wave.may_withdraw for wave in waves(campaign)] == [False, False]
    for page in ("waves/", "planner/"):
        shown = cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/{page}").content.decode()
        assert "planner/take-back/" not in shown


def test_a_wave_by_rules_has_the_entry_that_names_it(cast: Cast) -> None:
    """An application of rules that only adds annotators is no wave; older entries do not say which they are about."""
    campaign = make.campaign(cast.kassa, items=rules.items(("letter", "plain")))
    chosen: dict[str, Any] = {"campaign": campaign, "panels": {"Readers": [rules.panel_of(cast, "Readers", 4)]}}
    few = rules.SMALL.replace("overlap: 3", "overlap: 3, tasks: [letter]").split("- {name: Poems")[0]
    taxonomies.apply_rules(**chosen, taxonomy=rules.stored(cast, few), actor=cast.aino)
    more = few.replace("overlap: 3", "overlap: 4")
    taxonomies.apply_rules(**chosen, taxonomy=rules.stored(cast, more), actor=cast.maarika)
    more_items = [make.item_row(9, attributes={"task_type": "letter", "functional_style": "plain"})]
    later = storage.append_items(dataset=campaign.dataset, items=more_items)
    chosen["campaign"] = campaigns.extend_campaign(campaign=campaign, dataset=later)
    taxonomies.apply_rules(**chosen, taxonomy=rules.stored(cast, more), actor=cast.boris)
    found = [(wave.number, wave.items, wave.actor) for wave in waves(chosen["campaign"])]
    assert found == [(2, 1, cast.boris), (1, 2, cast.aino)]


def test_entries_from_before_waves_were_named_count_where_there_are_as_many() -> None:
    def known(*fields: list[str]) -> dict[int, int]:
        entries = [AuditEntry(verb="x", subject_pk=1, fields=each, pk=pk) for pk, each in enumerate(fields)]
        return {wave: entry.pk for (_duty, wave), entry in entries_of_waves(rows, entries).items()}

    rows = [{"duty": 1, "wave": wave, "origin": "all"} for wave in (1, 2, 3)]
    old = ["overlap", "seed"]
    assert known(old, [], []) == {1: 0, 2: 1, 3: 2}
    assert known(old, [], [], []) == {1: 0}, "one of them only added annotators, and which is not known"
    assert known(old, [], ["items=2", "wave=3"]) == {3: 2, 1: 0, 2: 1}
    assert known(old, ["items=0"], ["wave=2"]) == {2: 2, 1: 0}


def test_a_number_that_was_withdrawn_and_given_again_has_the_newer_entry(
    cast: Cast,
    piloted: tuple[Campaign, Duty],  # noqa: F811
) -> None:
    campaign, duty = piloted
    about: dict[str, Any] = {"duty": duty, "judge": "Kohtunik", "criterion": "fluency", "wanted": 12}
    planning.draw_next_items(**about, seed=7, actor=cast.aino)
    planning.take_back_draw(duty=duty, actor=cast.aino)
    planning.draw_next_items(**about, seed=8, actor=cast.boris)
    assert [(wave.actor, wave.seed) for wave in waves(campaign)] == [(cast.boris, 8), (None, None)]
    later = storage.append_items(dataset=campaign.dataset, items=[make.item_row(99, scenario="s99")])
    campaign = campaigns.extend_campaign(campaign=campaign, dataset=later)
    allocation.hand_out(campaign=campaign, actor=cast.aino)
    found = [(wave.number, wave.origin, wave.actor) for wave in waves(campaign)]
    assert found[0] == (3, "all", cast.aino) and found[1][2] == cast.boris
