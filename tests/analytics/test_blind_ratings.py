"""Ratings by people who can see verdicts: said when they are seated, marked when they rate, left out on request."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry, Membership, Role, User
from analytics.answers import snapshots
from analytics.questions.question import Settings
from analytics.ratings import ratings_tables
from analytics.ratings.exclusions import not_blind
from annotation.desk import service
from annotation.models import Annotation, Duty, PanelSeat
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desks
from tests.cast import Cast

pytestmark = pytest.mark.django_db

JSON = "application/json"


@pytest.fixture
def work(cast: Cast) -> Duty:
    """Two items, each rated by Maarika, an annotator, and by Aino, the lead."""
    duty = desks.duty(cast, items=2, overlap=2, seated=[cast.aino])
    for user in (cast.maarika, cast.aino):
        for _item in range(2):
            submitted(cast, duty, user)
    return duty


def submitted(cast: Cast, duty: Duty, user: User) -> None:
    """By the form of the desk's page."""
    client = Client()
    client.force_login(user)
    page = desks.next_page(client, duty)
    assert client.post(f"{page}submit/", desks.FULL, headers=desks.JSON).status_code == 200


def pseudonym(cast: Cast, user: User) -> str:
    return desks.annotator(cast, user).pseudonym


class TestSeating:
    def test_the_page_says_what_a_lead_can_see_and_asks_before_it_seats_them(self, cast: Cast) -> None:
        panel = desks.panels.create(project=cast.kassa, name="Estonian", language="et")
        address, aino = f"/p/kassa/panels/{panel.pk}/", cast.client("aino")
        member = cast.kassa.memberships.get(user=cast.aino).pk
        assert "Aino (en, sees verdicts)" in aino.get(address).content.decode()

        asked = aino.post(f"{address}seats/", {"member": member})
        assert asked.status_code == 422
        assert "can see verdicts and other people" in asked.content.decode()
        assert '<input type="checkbox" name="confirmed"' in asked.content.decode()
        assert not PanelSeat.objects.exists()

        aino.post(f"{address}seats/", {"member": member, "confirmed": "on"})
        assert PanelSeat.objects.get().annotator.user == cast.aino
        assert AuditEntry.objects.get(verb="seat annotator").fields == ["sees_verdicts"]
        assert "sees verdicts</span>" in aino.get(address).content.decode()

    def test_an_annotator_is_seated_without_a_question(self, cast: Cast) -> None:
        panel = desks.panels.create(project=cast.kassa, name="Estonian", language="et")
        member = cast.kassa.memberships.get(user=cast.maarika).pk
        aino, address = cast.client("aino"), f"/p/kassa/panels/{panel.pk}/"
        assert aino.post(f"{address}seats/", {"member": member}).status_code == 302
        assert AuditEntry.objects.get(verb="seat annotator").fields == []
        assert "sees verdicts</span>" not in aino.get(address).content.decode()

    def test_the_api_says_it_of_each_seat_as_roles_are_now(self, cast: Cast) -> None:
        panel = desks.panels.create(project=cast.kassa, name="Estonian", language="et")
        aino, seats = cast.client("aino"), f"/api/v1/projects/kassa/panels/{panel.pk}/seats/"
        told = [
            aino.post(seats, {"user": user.pk}, content_type=JSON).json()["sees_verdicts"]
            for user in (cast.boris, cast.maarika)
        ]
        assert told == [True, False]
        Membership.objects.filter(user=cast.maarika).update(role=Role.RESEARCHER)
        with CaptureQueriesContext(
            connection,
        ) as before:
            assert [seat["sees_verdicts"] for seat in aino.get(seats).json()["results"]] == [True, True]
        desks.panels.seat(panel=panel, user=cast.layla)
        with CaptureQueriesContext(connection) as after:
            assert len(aino.get(seats).json()["results"]) == 3
        assert len(before) == len(after)


class TestSubmitting:
    @pytest.mark.parametrize(("role", "blind"), [(Role.LEAD, False), (Role.RESEARCHER, False), (Role.ANNOTATOR, True)])
    def test_the_role_at_that_time_is_what_counts(self, cast: Cast, role: Role, blind: bool) -> None:
        duty = desks.duty(cast, items=1)
        Membership.objects.filter(user=cast.maarika).update(role=role)
        submitted(cast, duty, cast.maarika)
        Membership.objects.filter(user=cast.maarika).update(
            role=Role.ANNOTATOR if role != Role.ANNOTATOR else Role.LEAD
        )
        assert Annotation.objects.get().blind is blind

    def test_by_api(self, cast: Cast) -> None:
        duty = desks.duty(cast, items=1, overlap=2, seated=[cast.boris])
        answers = [{"criterion": "fluency", "score": 2}, {"criterion": "coherence", "score": 1}]
        for name in ("boris", "maarika"):
            client = cast.client(name)
            taken = client.post(f"/api/v1/projects/kassa/desk/{duty.pk}/take/", content_type=JSON)
            address = f"/api/v1/projects/kassa/desk/at/{taken.json()['key']}/"
            assert client.post(address, {"answers": answers}, content_type=JSON).status_code == 200
        found = Annotation.objects.order_by("pk").values_list("annotator__user", "blind")
        assert list(found) == [(cast.boris.pk, False), (cast.maarika.pk, True)]

    def test_a_revision_is_marked_by_the_role_it_was_made_in(self, cast: Cast) -> None:
        duty = desks.duty(cast, items=1)
        submitted(cast, duty, cast.maarika)
        Membership.objects.filter(user=cast.maarika).update(role=Role.LEAD)
        service.undo_submission(assignment=Annotation.objects.get().assignment)
        submitted(cast, duty, cast.maarika)
        assert list(Annotation.objects.order_by("revision").values_list("blind", flat=True)) == [True, False]

    def test_no_query_more_asks_for_the_role(self, cast: Cast) -> None:
        duty = desks.duty(cast, items=1)
        taken = desks.taken(cast, duty)
        assert taken.key
        held = service.on_desk(user=cast.maarika, key=taken.key)
        with CaptureQueriesContext(connection) as asked:
            service.submit(assignment=held, key=taken.key, answers=desks.ANSWERS, seconds=1)
        assert not [query["sql"] for query in asked if "accounts_membership" in query["sql"]]
        assert Annotation.objects.get().blind is True

    def test_of_imported_ratings_nobody_knows(self, cast: Cast) -> None:
        campaign = make.campaign(cast.kassa, items=1)
        make.rated(campaign, {"fluency": {"mari": [2]}})
        assert Annotation.objects.get().blind is None


class TestNumbers:
    def test_the_table_says_it_and_can_leave_them_out(self, cast: Cast, work: Duty) -> None:
        campaign = work.campaign
        make.rated(campaign, {"fluency": {"mari": [2, 1]}})
        scene.with_verdicts(campaign, {"fluency": [1, 2]})
        aino, maarika = pseudonym(cast, cast.aino), pseudonym(cast, cast.maarika)
        everything = list(ratings_tables.rows(campaign=campaign))
        known = {aino: False, maarika: True, "mari": None, "Kohtunik": None}
        assert {row.rater: row.blind for row in everything} == known
        blind = list(ratings_tables.rows(campaign=campaign, blind_only=True))
        assert blind == [row for row in everything if row.rater != aino]
        assert list(ratings_tables.load(campaign=campaign, blind_only=True)["rater"]) == [row.rater for row in blind]
        assert (not_blind(campaign), not_blind(campaign, [maarika])) == (4, 0)

    def test_the_page_counts_them_and_leaves_them_out_by_its_address(self, cast: Cast, work: Duty) -> None:
        snapshots.snapshot(campaign=work.campaign)
        boris, address = cast.client("boris"), f"/p/kassa/numbers/{work.campaign.pk}/"
        page = boris.get(address).content.decode()
        assert "8 ratings · 2 raters" in page
        assert "Among them 4 ratings by people who could see verdicts." in page
        assert 'href="?blind=only"' in page

        scene.compute(work.campaign, Settings(blind_only=True))
        page = boris.get(f"{address}?blind=only").content.decode()
        assert "4 ratings · 1 rater" in page
        assert "4 ratings by people who could see verdicts are left out." in page
        assert '<input type="hidden" name="blind" value="only">' in page
        assert "ratings.csv?blind=only" in page
        assert "“blind” can only be “only”" in boris.get(f"{address}?blind=yes").content.decode()

    def test_the_page_asks_for_its_own_figures(
        self, cast: Cast, work: Duty, django_capture_on_commit_callbacks: Any
    ) -> None:
        snapshots.snapshot(campaign=work.campaign)
        address = f"/p/kassa/numbers/{work.campaign.pk}/?blind=only"
        with django_capture_on_commit_callbacks() as asked:
            cast.client("boris").get(address)
        assert len(asked) == 1

    def test_the_api_takes_the_same_parameter(self, cast: Cast, work: Duty) -> None:
        boris, campaign = cast.client("boris"), work.campaign
        address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}"
        assert boris.get(f"{address}/numbers/?blind=only").json() == {"stale": True, "snapshot": None}
        snapshots.snapshot(campaign=campaign, settings=Settings(blind_only=True))
        snapshots.snapshot(campaign=campaign)
        told = [boris.get(f"{address}/numbers/{query}").json()["snapshot"] for query in ("", "?blind=only")]
        assert [(each["settings"]["blind_only"], each["not_blind"]) for each in told] == [(False, 4), (True, 4)]
        raters = [{row["raters"] for row in each["counts"]} for each in told]
        assert raters == [{2}, {1}]
        for query, marks in (("", {"true", "false"}), ("?blind=only", {"true"})):
            table = b"".join(boris.get(f"{address}/ratings.csv{query}").streaming_content).decode()
            assert {row["blind"] for row in csv.DictReader(io.StringIO(table))} == marks
        refused = boris.get(f"{address}/numbers/?blind=no")
        assert (refused.status_code, list(refused.json()["fields"])) == (422, ["blind"])

    @pytest.mark.parametrize("what", ["ratings", "scores"])
    def test_exports_carry_the_mark(self, cast: Cast, work: Duty, what: str) -> None:
        scene.with_verdicts(work.campaign, {"fluency": [1, 2]})
        answer = cast.client("boris").get(f"/api/v1/projects/kassa/exports/{what}/", {"format": "csv"})
        rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
        marks = {row["rater"]: row["blind"] for row in rows if row["rater_kind"] == "annotator"}
        assert marks == {pseudonym(cast, cast.aino): "false", pseudonym(cast, cast.maarika): "true"}
        assert {row["blind"] for row in rows if row["rater_kind"] != "annotator"} <= {""}
