"""The same people get the same items a second time only when somebody asks for it, through HTTP."""

from __future__ import annotations

from django.utils.html import escape

from annotation.models import Assignment, Duty
from tests.annotation import scene
from tests.cast import Cast


def form(duty: Duty, *criteria: str, **more: str) -> dict[str, object]:
    """The page's form, filled in for the panel of ``duty``."""
    panel = f"panel-{duty.panel_id}"
    keys = duty.campaign.rubric_version.criteria.filter(key__in=criteria or ("fluency", "coherence"))
    chosen = [str(pk) for pk in keys.values_list("pk", flat=True)]
    return {f"{panel}-takes_part": "on", f"{panel}-overlap": "2", f"{panel}-criteria": chosen} | {
        f"{panel}-{name}": text for name, text in more.items()
    }


def test_a_panel_that_rates_these_items_is_not_ticked_again_and_the_form_sent_twice_is_refused(cast: Cast) -> None:
    duty = scene.duty(cast)
    aino, address = cast.client("aino"), f"/p/kassa/campaigns/{duty.campaign_id}/duties/new/"
    page = aino.get(address).content.decode()
    assert "This panel rates these items already" in page
    assert "0 assignments in all" in page
    assert "0 new for this panel, 3 assigned to it already" in " ".join(page.split())
    counted = aino.post(address, {**form(duty, again="on"), "preview": "1"}).content.decode()
    assert "3 × 2 = 6 assignments" in counted

    before = Assignment.objects.count()
    answer = aino.post(address, form(duty))
    assert escape("Estonian rates these items on some of these criteria already") in answer.content.decode()
    assert (Duty.objects.count(), Assignment.objects.count()) == (1, before)

    assert aino.post(address, form(duty, again="on")).status_code == 302
    assert Assignment.objects.count() == 2 * before


def test_the_first_duty_of_a_form_sent_twice_is_made_once(cast: Cast) -> None:
    duty = scene.duty(cast)
    filled, address = form(duty), f"/p/kassa/campaigns/{duty.campaign_id}/duties/new/"
    campaign = duty.campaign
    cast.client("aino").post(f"/p/kassa/campaigns/{campaign.pk}/duties/{duty.pk}/take-back/")
    assert cast.client("aino").post(address, filled).status_code == 302
    assert cast.client("aino").post(address, filled).status_code == 200
    assert campaign.duties.count() == 1


def test_the_api_refuses_a_second_duty_until_it_is_asked_for(cast: Cast) -> None:
    duty = scene.duty(cast)
    address = f"/api/v1/projects/kassa/campaigns/{duty.campaign_id}/duties/"
    asked = {"name": "Second", "panel": duty.panel_id, "overlap": 1}
    refused = cast.client("aino").post(address, asked, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "rated_already")
    made = cast.client("aino").post(address, asked | {"again": True}, content_type="application/json")
    assert made.status_code == 201
