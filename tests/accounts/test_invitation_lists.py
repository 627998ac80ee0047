"""Many invitations at once: a pasted list, its duplicates and members, links, mail, and the API."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail as outbox
from django.test import Client

from accounts.models import AuditEntry, Invitation, Role, User
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
