"""Many invitations at once: a pasted list, its duplicates and members, links, mail, and the API."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail as outbox
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.invitation_lists import (
    MOST_MAILED_INVITATIONS,
    InvitationOutcome,
    InvitedPerson,
    invite_many,
    read_list,
)
from accounts.models import AuditEntry, Invitation, Role, User
from accounts.refusals import Refused
from annotation import panels
from annotation.models import Panel, PanelSeat
from tests.cast import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

PAGE = "/p/kassa/people/invite/"
API = "/api/v1/projects/kassa/invitations/"


@pytest.fixture
def seats(cast: Cast) -> dict[str, Panel]:
    return {
        "et": panels.create(project=cast.kassa, name="Eesti lugejad", language="et"),
        "ar": panels.create(project=cast.kassa, name="قرّاء “عرب”", language="ar"),
    }


def invited(client: Client, addresses: str, **chosen: Any) -> str:
    answer = client.post(PAGE, {"role": "annotator", "days": 7, "addresses": addresses, **chosen})
    assert answer.status_code == 200
    return answer.content.decode()


def rows_of(page: str) -> dict[str, str]:
    """The outcome of every row, by address."""
    part = page.partition('id="invited"')[2].partition("</table>")[0]
    cells = re.findall(r'<th scope="row"><bdi>(.*?)</bdi></th>\s*<td>(.*?)</td>', part, re.DOTALL)
    return {email: re.sub(r"<[^>]+>", "", outcome) for email, outcome in cells}


def test_a_list_gives_everybody_a_link_and_names_members_and_duplicates(cast: Cast, seats: dict[str, Panel]) -> None:
    aino = cast.client("aino")
    text = (
        "Sofia@Panelbench.test\n\nOlev Ülem <olev@panelbench.test>; sofia@panelbench.test\n"
        f"{cast.maarika.email}\n{cast.boris.email}"
    )
    page = invited(aino, text, panels=[seats["et"].pk], spoken="et, en")
    assert rows_of(page) == {
        "sofia@panelbench.test": "Twice in the list: invited once",
        "olev@panelbench.test": "Invited",
        "maarika@panelbench.test": "Is a member already · joined: Eesti lugejad",
        "boris@panelbench.test": rows_of(page)["boris@panelbench.test"],
    }
    assert "can see verdicts" in rows_of(page)["boris@panelbench.test"]
    links = re.findall(r"http://testserver(/join/[\w-]+/)", page)
    assert len(set(links)) == 2
    assert "This server sends no e-mail" not in aino.get("/p/kassa/people/").content.decode() or not outbox.outbox
    assert PanelSeat.objects.get(panel=seats["et"]).annotator.user == cast.maarika
    browser = Client()
    browser.get(links[1])
    browser.post("/account/signup/", {"email": "olev@panelbench.test", "password1": "a long enough one"})
    olev = User.objects.get(email="olev@panelbench.test")
    assert (olev.name, olev.languages) == ("Olev Ülem", ["en", "et"])
    assert PanelSeat.objects.filter(panel=seats["et"], annotator__user=olev).exists()
    again = invited(aino, "sofia@panelbench.test")
    assert rows_of(again) == {"sofia@panelbench.test": "Has an open invitation already"}
    assert AuditEntry.objects.filter(verb="invite").count() == 2


def test_csv_rows_have_panels_and_languages_of_their_own(cast: Cast, seats: dict[str, Panel]) -> None:
    text = (
        "E-mail;Name;Panel;Languages\n"
        "sofia@panelbench.test;Sofia “S.” Kask;eesti lugejad | قرّاء “عرب”;et, ar-EG\n"
        "olev@panelbench.test;;;"
    )
    invited(cast.client("aino"), text, panels=[seats["ar"].pk], spoken="de")
    sofia, olev = (Invitation.objects.get(email=f"{name}@panelbench.test") for name in ("sofia", "olev"))
    assert (sofia.name, sofia.languages, olev.languages) == ("Sofia “S.” Kask", ["et", "ar-EG"], ["de"])
    assert panels.names_by_invitation([sofia, olev]) == {
        sofia.pk: "Eesti lugejad, قرّاء “عرب”",
        olev.pk: "قرّاء “عرب”",
    }


def test_a_wrong_row_is_named_and_nobody_is_invited(cast: Cast, seats: dict[str, Panel]) -> None:
    aino = cast.client("aino")
    for text, sentence in (
        ("sofia@panelbench.test\nnobody", "Row 2: “nobody” is not an e-mail address."),
        ("email,panel\nsofia@panelbench.test,Nowhere", "Row 2: There is no panel “Nowhere”."),
        ("email,languages\nsofia@panelbench.test,klingonish-xx-1", "Row 2:"),
        ("email,name\n", "Paste at least one address."),
    ):
        answer = aino.post(PAGE, {"role": "annotator", "days": 7, "addresses": text})
        assert answer.status_code == 422
        assert sentence in answer.content.decode()
    assert not Invitation.objects.exists()
    assert cast.client("boris").post(PAGE, {"addresses": "a@b.test"}).status_code == 403


def test_links_are_mailed_only_where_mail_is_configured(cast: Cast, settings: Any) -> None:
    aino = cast.client("aino")
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    page = invited(aino, "sofia@panelbench.test", send="on")
    assert "This server sends no e-mail. Send each person their link" in page
    assert "A worker sends" not in page and 'name="send"' not in page
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    page = invited(aino, "olev@panelbench.test")
    assert "No e-mail was sent. Send each person their link" in page
    assert 'name="send"' in page
    assert "A worker sends each link" in invited(aino, "uku@panelbench.test", send="on")


def test_the_api_invites_and_lists(cast: Cast, seats: dict[str, Panel]) -> None:
    aino = cast.client("aino")
    people = [
        {"email": "sofia@panelbench.test", "panels": [seats["et"].pk], "languages": ["et"]},
        {"email": "SOFIA@panelbench.test"},
        {"email": cast.layla.email},
    ]
    body = {"people": people, "panels": [seats["ar"].pk]}
    answered = aino.post(API, body, content_type="application/json")
    assert answered.status_code == 200, answered.content
    rows = answered.json()["rows"]
    assert [row["outcome"] for row in rows] == ["invited", "duplicate", "member"]
    assert rows[2]["seated"] == [seats["ar"].name]
    assert re.fullmatch(r"http://testserver/join/[\w-]+/", rows[0]["link"])
    (listed,) = aino.get(API).json()
    assert (listed["email"], listed["role"]) == ("sofia@panelbench.test", Role.ANNOTATOR)
    wrong = aino.post(API, {"people": [{"email": "x"}]}, content_type="application/json")
    assert wrong.status_code in (400, 409)
    assert cast.client("boris").get(API).status_code == 403
    foreign = panels.create(project=cast.teine, name="Theirs", language="hu")
    body = {"people": [{"email": "a@panelbench.test", "panels": [foreign.pk]}]}
    assert aino.post(API, body, content_type="application/json").status_code == 422
    assert Invitation.objects.count() == 1


def test_two_equal_lists_at_once_invite_everybody_once(cast: Cast) -> None:
    listed = [InvitedPerson(email=f"reader-{place}@panelbench.test") for place in range(60)]
    together = threading.Barrier(2, timeout=30)

    def invite() -> list[InvitationOutcome]:
        together.wait()
        try:
            rows = invite_many(project=cast.kassa, listed=listed, role=Role.ANNOTATOR, created_by=cast.aino)
        finally:
            connection.close()
        return [row.outcome for row in rows]

    if connection.vendor == "sqlite":  # one writer at a time, in one process
        rows = [invite_many(project=cast.kassa, listed=listed, role=Role.ANNOTATOR, created_by=cast.aino)] * 2
        assert len(rows[0]) == 60
        return
    with ThreadPoolExecutor(2) as pool:
        outcomes = [each.result() for each in [pool.submit(invite), pool.submit(invite)]]
    assert sorted(map(set, outcomes), key=str) == [{InvitationOutcome.INVITED}, {InvitationOutcome.OPEN}]
    assert Invitation.objects.count() == 60


def test_languages_for_everybody_are_tags(cast: Cast) -> None:
    aino, people = cast.client("aino"), [{"email": "sofia@panelbench.test"}]
    body = {"people": people, "languages": ["english please", "EN_us"]}
    wrong = aino.post(API, body, content_type="application/json")
    assert wrong.status_code == 422 and "languages" in wrong.json()["fields"]
    body["languages"] = ["EN_us", "iw"]
    assert aino.post(API, body, content_type="application/json").status_code == 200
    assert Invitation.objects.get().languages == ["en-US", "he"]


def test_a_long_row_of_spaces_is_read_at_once() -> None:
    started = time.process_time()
    for text in ("a" + " " * 90_000 + "b", "a" + "<" * 90_000 + ">", " <" * 40_000 + ">"):
        with pytest.raises(Refused):
            read_list(text, [])
    assert time.process_time() - started < 2
    list_of_a_mail_program = "\ufeffemail\nmari@panelbench.test"
    assert [person.email for person in read_list(list_of_a_mail_program, [])] == ["mari@panelbench.test"]
    both = read_list('"Doe, Jané" <jane@panelbench.test>, "أمل" <amal@panelbench.test>; mari@panelbench.test', [])
    assert [person.name for person in both] == ["Doe, Jané", "أمل", ""]
    (person,) = read_list('  "Olev  Ülem"   < olev@panelbench.test >', [])
    assert (person.name, person.email) == ("Olev  Ülem", "olev@panelbench.test")


def test_a_project_and_a_person_mail_so_many_invitations_a_day(cast: Cast, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    soon = timezone.now() + timedelta(days=1)
    Invitation.objects.bulk_create(
        Invitation(
            project=cast.kassa, role=Role.ANNOTATOR, email=f"{place}@panelbench.test", secret_digest=str(place),
            created_by=cast.aino, expires_at=soon, revoked_at=timezone.now(),
        )
        for place in range(MOST_MAILED_INVITATIONS - 1)
    )  # fmt: skip
    aino = cast.client("aino")
    invited(aino, "sofia@panelbench.test", send="on")
    answer = aino.post(PAGE, {"role": "annotator", "days": 7, "addresses": "olev@panelbench.test", "send": "on"})
    assert answer.status_code == 422 and "At most 1000 invitations a day" in answer.content.decode()
    assert not Invitation.objects.filter(email="olev@panelbench.test").exists()
    body = {"people": [{"email": "olev@panelbench.test"}], "send": True}
    assert aino.post(API, body, content_type="application/json").json()["code"] == "too_many"
    assert rows_of(invited(aino, "olev@panelbench.test")) == {"olev@panelbench.test": "Invited"}
    Invitation.objects.update(created_at=timezone.now() - timedelta(days=2))
    invited(aino, "uku@panelbench.test", send="on")


def test_an_address_gets_one_mail_a_day_from_a_project(cast: Cast, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    aino, address = cast.client("aino"), "sofia@panelbench.test"

    def invite_again() -> str:
        Invitation.objects.update(revoked_at=timezone.now())
        return rows_of(invited(aino, address, send="on"))[address]

    assert invite_again() == "Invited"
    first = Invitation.objects.get()
    assert first.mailed_at is not None
    second = invite_again()
    assert second == "Invited · This address got a mail in the last 24 hours. Send them the link yourself."
    newest = Invitation.objects.latest("pk")
    assert newest.mailed_at is None and newest.pk != first.pk
    Invitation.objects.update(revoked_at=timezone.now())
    answer = aino.post(API, {"people": [{"email": address}], "send": True}, content_type="application/json").json()
    assert answer["rows"][0]["link"] and "in the last 24 hours" in answer["rows"][0]["note"]
    Invitation.objects.update(revoked_at=timezone.now())
    assert rows_of(invited(aino, address)) == {address: "Invited"}, "without mail there is nothing to say"
    Invitation.objects.update(mailed_at=timezone.now() - timedelta(hours=25))
    assert invite_again() == "Invited"
    zoltan = cast.client("zoltan")
    body = {"people": [{"email": address}], "send": True}
    other = zoltan.post("/api/v1/projects/teine/invitations/", body, content_type="application/json").json()
    assert other["rows"][0]["note"] == "", "each project has its own count"
