"""What the addresses of the desk do by GET, which takes no lease, and by POST, which does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership, Project, Role
from annotation.desk import service
from annotation.desk.leasing import LEASE
from annotation.models import Assignment, Draft, Skip
from tests.annotation import scene
from tests.annotation.scene import FULL, JSON
from tests.cast import Cast

pytestmark = pytest.mark.django_db

WRITES = ("INSERT", "UPDATE", "DELETE")


def rows() -> list[dict[str, Any]]:
    """Everything that tells who holds what."""
    return [row for model in (Assignment, Draft, Skip) for row in model.objects.order_by("pk").values()]


@contextmanager
def nothing_written() -> Iterator[None]:
    """No statement inside writes or locks, and no row is another one afterwards."""
    before = rows()
    with CaptureQueriesContext(connection) as queries:
        yield
    statements = [query["sql"] for query in queries if "django_session" not in query["sql"]]
    assert [sql for sql in statements if sql.lstrip().startswith(WRITES) or "FOR NO KEY UPDATE" in sql] == []
    assert rows() == before


def later() -> Any:
    """A time at which every lease of now has run out."""
    return time_machine.travel(timezone.now() + LEASE + timedelta(minutes=1), tick=False)


def browser_of(cast: Cast, user: Any) -> Client:
    client = cast.client("aino")
    client.force_login(user)
    return client


def test_a_get_takes_no_lease_and_changes_no_row(cast: Cast) -> None:
    work = scene.duty(cast, items=2)
    maarika = cast.client("maarika")

    with nothing_written():
        pages = [maarika.get(f"/desk/{work.pk}/") for _time in range(2)]

    assert [page.status_code for page in pages] == [200, 200]
    assert f'<form class="form-actions" action="/desk/{work.pk}/" method="post"' in pages[0].content.decode()
    assert not Assignment.objects.exclude(state=Assignment.State.OPEN).exists()


def test_a_browser_that_fetches_the_links_ahead_takes_no_lease(cast: Cast) -> None:
    work = scene.duty(cast, items=2)
    maarika = cast.client("maarika")

    with nothing_written():
        for address in ("/desk/", f"/desk/{work.pk}/"):
            maarika.get(address, headers={"Sec-Purpose": "prefetch"})
            maarika.head(address, headers={"Sec-Purpose": "prefetch"})


def test_a_post_takes_the_next_item_and_the_same_again_leads_to_it(cast: Cast) -> None:
    work = scene.duty(cast, items=2)
    maarika = cast.client("maarika")

    first, again = (maarika.post(f"/desk/{work.pk}/") for _time in range(2))

    assert first.status_code == 302
    assert first["Location"] == again["Location"]
    assert Assignment.objects.filter(state=Assignment.State.LEASED).count() == 1
    with nothing_written():
        assert maarika.get(f"/desk/{work.pk}/")["Location"] == first["Location"]
        assert maarika.get(first["Location"]).status_code == 200


def test_the_address_of_an_item_whose_time_ran_out_offers_to_take_it_again(cast: Cast) -> None:
    work = scene.duty(cast, items=2)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    with later():
        with nothing_written():
            offered = maarika.get(page)
            assert maarika.get(f"/desk/{work.pk}/")["Location"] == page
        assert offered.status_code == 200
        assert "Continue to reserve the item again" in offered.content.decode()
        assert f'action="{page}" method="post"' in offered.content.decode()
        assert 'id="sheet"' not in offered.content.decode()
        assert maarika.post(page)["Location"] == page
        assert 'id="sheet"' in maarika.get(page).content.decode()
        assert Assignment.objects.get(state=Assignment.State.LEASED).leased_until == timezone.now() + LEASE


def test_an_item_that_somebody_else_took_and_put_aside_can_be_taken_again_at_its_address(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=1, overlap=1, seated=[piret])
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}draft/", {"rationale-fluency": "Maarika mõte"}, headers=JSON)

    with later():
        other = scene.next_page(browser_of(cast, piret), work)
        with nothing_written():
            assert maarika.get(page, follow=True).redirect_chain == [("/desk/", 302)]
        assert maarika.post(page, follow=True).redirect_chain == [("/desk/", 302)]
        browser_of(cast, piret).post(f"{other}skip/", {"reason": "other"})
        with nothing_written():
            freed = maarika.get(page).content.decode()
        assert f'action="{page}" method="post"' in freed
        assert "Your time for this item ended" in freed and "next item" not in freed
        taken = maarika.post(page)["Location"]
        assert taken != page
        assert "Maarika mõte" in maarika.get(taken).content.decode()


def test_who_holds_an_item_is_led_to_it_and_never_holds_two(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=2, overlap=1, seated=[piret])
    maarika = cast.client("maarika")
    lost = scene.next_page(maarika, work)
    with later():
        browser_of(cast, piret).post(f"{scene.next_page(browser_of(cast, piret), work)}skip/", {"reason": "other"})
        other = scene.next_page(browser_of(cast, piret), work)
        held = scene.next_page(maarika, work)
        browser_of(cast, piret).post(f"{other}skip/", {"reason": "other"})

        assert maarika.get(lost)["Location"] == maarika.post(lost)["Location"] == held
    assert Assignment.objects.filter(state=Assignment.State.LEASED).count() == 1


def test_the_address_of_a_submitted_item_leads_to_its_duty(cast: Cast) -> None:
    work = scene.duty(cast, items=2)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}submit/", FULL)

    with nothing_written():
        assert maarika.get(page)["Location"] == f"/desk/{work.pk}/"
    assert maarika.post(page)["Location"] == f"/desk/{work.pk}/"


def test_without_a_script_submitting_and_skipping_go_on_to_the_next_item(cast: Cast) -> None:
    work = scene.duty(cast, items=3)
    maarika = cast.client("maarika")

    for action, form in (("submit", FULL), ("skip", {"reason": "other"})):
        sent = maarika.post(f"{scene.next_page(maarika, work)}{action}/", form)
        assert (sent.status_code, sent["Location"]) == (307, f"/desk/{work.pk}/")  # the browser posts there, too
        assert maarika.post(sent["Location"], form).status_code == 302


def test_where_nothing_is_left_no_item_is_offered(cast: Cast) -> None:
    work = scene.duty(cast, items=1)
    maarika = cast.client("maarika")
    maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)

    for page in (maarika.get(f"/desk/{work.pk}/"), maarika.post(f"/desk/{work.pk}/")):
        assert page.status_code == 200
        assert "All scored" in page.content.decode()


def test_a_paused_campaign_offers_no_item(cast: Cast) -> None:
    work = scene.duty(cast, items=1)
    maarika = cast.client("maarika")
    work.campaign.state = "paused"
    work.campaign.save()

    with nothing_written():
        assert maarika.get(f"/desk/{work.pk}/", follow=True).redirect_chain == [("/desk/", 302)]


def test_the_sql_that_looks_a_lease_up_shows_what_the_access_query_shows(cast: Cast) -> None:
    """Every role, project rule and second factor, for the annotator and for two others, leased and submitted."""
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=1)
    key = scene.taken(cast, work).key
    assert key
    members = Membership.objects.filter(user=cast.maarika, project=cast.kassa)
    seen = set()
    for role, asks, factor, state, archived in product(
        (*Role, None), (False, True), (None, *Authenticator.Type), ("leased", "submitted"), (None, timezone.now())
    ):
        members.delete()
        Authenticator.objects.all().delete()
        if role:
            Membership.objects.create(user=cast.maarika, project=cast.kassa, role=role)
        if factor:
            Authenticator.objects.create(user=cast.maarika, type=factor, data={})
        Project.objects.filter(pk=cast.kassa.pk).update(requires_second_factor=asks, archived_at=archived)
        Assignment.objects.filter(key=key).update(state=state)
        for user in (cast.maarika, piret, cast.aino):
            shown = Assignment.objects.visible_to(user).filter(key=key).first()
            found = service.find_by_key(user=user, key=key)
            assert (found is None) == (shown is None), (role, asks, factor, state, archived, user)
            seen.add((user == cast.maarika, shown is None))
            if found and shown:
                read = ("pk", "duty_id", "item_id", "state", "annotator_id", "revision", "key")
                assert [getattr(found, name) for name in read] == [getattr(shown, name) for name in read]
                assert found.holder_role == role
                assert found.duty.campaign.state == ("closed" if archived else "open")
    assert seen == {(True, True), (True, False), (False, True)}


def test_without_the_second_factor_that_the_project_asks_for_nothing_of_the_desk_is_there(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=2, overlap=1, seated=[piret])
    maarika = cast.client("maarika")
    submitted = scene.next_page(maarika, work)
    maarika.post(f"{submitted}submit/", FULL)
    lost = scene.next_page(maarika, work)
    with later():
        scene.next_page(browser_of(cast, piret), work)
        Project.objects.filter(pk=cast.kassa.pk).update(requires_second_factor=True)
        for page, action in [
            (f"/desk/{work.pk}/", ""),
            *product((submitted, lost), ("", "submit/", "undo/", "draft/")),
        ]:
            assert maarika.post(f"{page}{action}", FULL).status_code == 404, (page, action)
        assert maarika.get(submitted).status_code == maarika.get(lost).status_code == 404
