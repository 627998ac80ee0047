"""An invitation with a name and a panel, and the initials that stand for a person, through HTTP."""

from __future__ import annotations

import re

from django.test import Client

from accounts.models import Invitation, User
from annotation import panels
from annotation.models import PanelSeat
from tests.cast import Cast

PEOPLE = "/p/kassa/people/"


def test_who_follows_an_invitation_has_its_name_and_a_seat_on_its_panel(cast: Cast) -> None:
    panel = panels.create(project=cast.kassa, name="Estonian readers", language="et")
    form = {"role": "annotator", "days": 7, "name": "Sofia Kask", "panel": panel.pk}
    page = cast.client("aino").post(PEOPLE, form).content.decode()
    link = re.search(r"/join/[\w-]+/", page).group()
    assert re.search(r'<button[^>]* data-copies="invitation-link"', page)
    listed = cast.client("aino").get(PEOPLE).content.decode().partition("open-invitations")[2]
    assert "Sofia Kask" in listed
    assert "Estonian readers" in listed

    browser = Client()
    browser.get(link)
    browser.post("/account/signup/", {"email": "sofia@panelbench.test", "password1": "a long enough one"})
    sofia = User.objects.get(email="sofia@panelbench.test")
    assert sofia.name == "Sofia Kask"
    assert PanelSeat.objects.get(panel=panel).annotator.user == sofia


def test_somebody_who_has_a_name_keeps_it(cast: Cast) -> None:
    page = cast.client("aino").post(PEOPLE, {"role": "annotator", "days": 7, "name": "Somebody"}).content.decode()
    cast.client("zoltan").post(re.search(r"/join/[\w-]+/", page).group())
    cast.zoltan.refresh_from_db()
    assert cast.zoltan.name == "Zoltan"
    assert cast.kassa.memberships.filter(user=cast.zoltan).exists()


def test_only_an_annotator_is_invited_to_a_panel_and_only_of_this_project(cast: Cast) -> None:
    panel = panels.create(project=cast.kassa, name="Estonian readers", language="et")
    other = panels.create(project=cast.teine, name="Theirs", language="hu")
    for role, chosen, sentence in (
        ("researcher", panel.pk, "leads and researchers see verdicts"),
        ("annotator", other.pk, "Select a valid choice"),
    ):
        page = cast.client("aino").post(PEOPLE, {"role": role, "days": 7, "panel": chosen}).content.decode()
        assert sentence in page
    assert not Invitation.objects.exists()


def test_an_avatar_is_made_of_the_name_and_never_of_the_address(cast: Cast) -> None:
    def avatar() -> str:
        page = cast.client("layla").get("/me/").content.decode()
        return re.search(r'<span class="avatar"[^>]*>(.*?)</span>', page, re.DOTALL).group(1)

    User.objects.filter(pk=cast.layla.pk).update(name="Layla al-Amin", email="zx@panelbench.test")
    assert avatar() == "LA"
    User.objects.filter(pk=cast.layla.pk).update(name="")
    assert "zx" not in avatar().lower()
    assert "#person" in avatar()
