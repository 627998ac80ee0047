"""Panels: who sits on them, and who may know their names."""

from __future__ import annotations

import pytest

from accounts.refusals import Refused
from annotation import panels
from annotation.models import Annotator, Panel, PanelSeat
from tests import make
from tests.cast import Cast

pytestmark = pytest.mark.django_db

PAGES = "/p/kassa/panels/"
API = "/api/v1/projects/kassa/panels/"


def test_a_lead_makes_a_panel_and_seats_a_member_by_page(cast: Cast) -> None:
    aino = cast.client("aino")

    made = aino.post(PAGES, {"name": "Mexican Spanish", "language": "es_mx"})
    panel = Panel.objects.get()
    assert (made["Location"], panel.language) == (f"{PAGES}{panel.pk}/", "es-MX")

    member = cast.kassa.memberships.get(user=cast.layla)
    aino.post(f"{PAGES}{panel.pk}/seats/", {"member": member.pk})
    page = aino.get(f"{PAGES}{panel.pk}/").content.decode()
    assert "A01" in page
    assert "Layla" in page

    aino.post(f"{PAGES}{panel.pk}/seats/{PanelSeat.objects.get().pk}/remove/")
    assert not PanelSeat.objects.exists()
    assert Annotator.objects.get().user == cast.layla


def test_a_researcher_sees_pseudonyms_and_seats_nobody(cast: Cast) -> None:
    panel = panels.create(project=cast.kassa, name="Arabic", language="ar")
    seat = panels.seat(panel=panel, user=cast.layla)
    boris = cast.client("boris")

    page = boris.get(f"{PAGES}{panel.pk}/").content.decode()
    assert "A01" in page
    assert "Layla" not in page
    assert boris.post(f"{PAGES}{panel.pk}/seats/", {"member": 1}).status_code == 403
    assert boris.post(f"{PAGES}{panel.pk}/seats/{seat.pk}/remove/").status_code == 403
    assert boris.post(f"{API}{panel.pk}/seats/", {"user": 1}, content_type="application/json").status_code == 403
    assert boris.delete(f"{API}{panel.pk}/seats/{seat.pk}/").status_code == 403


def test_panels_and_seats_by_api(cast: Cast) -> None:
    aino = cast.client("aino")

    made = aino.post(API, {"name": "Estonian", "language": "et"}, content_type="application/json")
    assert made.status_code == 201
    seats = f"{API}{made.json()['id']}/seats/"
    seat = aino.post(seats, {"user": cast.maarika.pk}, content_type="application/json")
    assert (seat.status_code, seat.json()["pseudonym"]) == (201, "A01")
    assert aino.post(seats, {"user": cast.zoltan.pk}, content_type="application/json").status_code == 404
    assert aino.get(seats).json()["results"] == [seat.json()]
    assert aino.delete(f"{seats}{seat.json()['id']}/").status_code == 204
    assert aino.get(seats).json()["results"] == []


@pytest.mark.parametrize("form", [{"name": "Estonian", "language": "et"}, {"name": "New", "language": "klingon!"}])
def test_a_taken_name_or_an_unknown_language_is_said_at_the_field(cast: Cast, form: dict[str, str]) -> None:
    panels.create(project=cast.kassa, name="Estonian", language="et")

    shown = cast.client("aino").post(PAGES, form)
    told = cast.client("aino").post(API, form, content_type="application/json")

    assert 'class="errorlist"' in shown.content.decode()
    assert told.status_code == 422
    assert Panel.objects.count() == 1


def test_one_pseudonym_per_person_and_project_beside_imported_raters(cast: Cast) -> None:
    target = make.campaign(cast.kassa, items=1)
    make.rated(target, {"fluency": {"A02": [1]}})

    first = panels.annotator_for(project=cast.kassa, user=cast.maarika)
    second = panels.annotator_for(project=cast.kassa, user=cast.layla)

    assert panels.annotator_for(project=cast.kassa, user=cast.maarika) == first
    assert len({first.pseudonym, second.pseudonym, "A02"}) == 3


def test_only_members_sit_on_a_panel(cast: Cast) -> None:
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    stranger = panels.annotator_for(project=cast.teine, user=cast.zoltan)

    for who in ({"user": cast.zoltan}, {"annotator": stranger}):
        with pytest.raises(Refused):
            panels.seat(panel=panel, **who)
    assert panels.seat(panel=panel, user=cast.maarika) == panels.seat(panel=panel, user=cast.maarika)


@pytest.mark.parametrize(("name", "status"), [("maarika", 403), ("zoltan", 404)])
def test_annotators_and_strangers_see_no_panel(cast: Cast, name: str, status: int) -> None:
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    client = cast.client(name)

    addresses = [PAGES, f"{PAGES}{panel.pk}/", API, f"{API}{panel.pk}/seats/"]
    assert [client.get(address).status_code for address in addresses] == [status] * 4
