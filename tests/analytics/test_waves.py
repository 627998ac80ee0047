"""The page of waves: what was drawn, by whom, what of it is rated, and the way back."""

from __future__ import annotations

import pytest

from analytics import planning
from analytics.waves import waves, withdrawn_waves
from annotation import allocation
from annotation.models import Campaign, Duty, Selection
from tests.analytics import scene
from tests.analytics.test_sampling import piloted  # noqa: F401  a fixture
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
