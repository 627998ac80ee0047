"""The path of a newcomer: what to do next, in which order, and whom to ask for what one may not do."""

from __future__ import annotations

import re

import pytest

from accounts import people
from accounts.models import Role, User
from analytics.judges import thresholds
from annotation import panels
from tests import make
from tests.analytics import scene
from tests.cast import Cast, person

pytestmark = pytest.mark.both_databases


def path_of(cast: Cast, name: str) -> dict[str, tuple[str, str]]:
    """Every step that is not done: its explanation, and where its button leads."""
    page = cast.client(name).get("/p/kassa/").content.decode()
    part = page.partition('id="way-title"')[2].partition("</section>")[0]
    found = {}
    for step in part.split("<li")[1:]:
        if "data-done" not in step.partition(">")[0]:
            title, why = re.findall(r"<b>(.*?)</b>.*?<p>(.*?)</p>", step, re.DOTALL)[0]
            found[title] = (why, next(iter(re.findall(r'<a class="btn[^"]*" href="([^"]+)"', step)), ""))
    return found


def test_thresholds_come_before_the_campaign_and_only_leads_declare_them(cast: Cast) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    panel = panels.create(project=cast.kassa, name="Eesti", language="et")
    assert path_of(cast, "aino")["Invite people to the panel"][1] == "/p/kassa/people/"
    assert path_of(cast, "boris")["Invite people to the panel"] == (
        "Native speakers who rate one language together. Only leads can do this. Ask Aino.",
        "",
    )
    panels.seat(panel=panel, user=cast.maarika)
    assert list(path_of(cast, "aino")) == [
        "Declare what a judge must reach",
        "Open a campaign",
        "Add a judge",
        "Collect ratings",
        "Read the study",
        "Write the report",
    ]
    assert path_of(cast, "aino")["Declare what a judge must reach"][1] == "/p/kassa/settings/thresholds/"
    assert path_of(cast, "boris")["Declare what a judge must reach"][1] == ""
    declared = thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)
    assert declared.figures_since is None
    assert next(iter(path_of(cast, "boris"))) == "Open a campaign"


def test_study_and_report_are_offered_once_something_is_rated(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    assert path_of(cast, "aino")["Read the study"][1] == path_of(cast, "aino")["Write the report"][1] == ""
    assert path_of(cast, "aino")["Collect ratings"][1] == f"/p/kassa/campaigns/{campaign.pk}/"
    make.rated(campaign, {"fluency": {"r1": [1, 2, 3, 0], "r2": [1, 2, 2, 0]}})
    assert path_of(cast, "boris")["Read the study"][1] == f"/p/kassa/numbers/{campaign.pk}/study/"
    assert path_of(cast, "boris")["Write the report"][1].endswith(f"/numbers/{campaign.pk}/report/")
    scene.compute(campaign)
    assert "Read the study" not in path_of(cast, "boris")


def test_who_may_not_create_projects_is_told_whom_to_ask(cast: Cast) -> None:
    page = cast.client("boris").get("/new/")
    assert page.status_code == 403
    assert "to create one and invite you:" in page.content.decode()
    assert "aino@panelbench.test" in page.content.decode()  # leads his project and may create one
    assert "zoltan" not in page.content.decode()
    User.objects.filter(pk=person("Olev").pk).update(is_superuser=True)
    for address in ("/new/", "/"):
        text = cast.client("boris").get(address).content.decode()
        assert "Ask the operator:" in text
        assert "olev@panelbench.test" in text
        assert "panelbench allow_founding boris@panelbench.test" in text
        assert "aino@" not in text
    assert "olev" not in cast.client("maarika").get("/new/").content.decode()  # annotators are told no names
    assert "Ask the operator:" not in cast.client("aino").get("/").content.decode()


def test_open_invitations_are_counted_on_the_path_and_where_items_are_assigned(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    panel = panels.create(project=cast.kassa, name="Eesti «1»", language="et")
    for name in ("Eve\u0301", "سارة"):
        people.invite(project=cast.kassa, created_by=cast.aino, role=Role.ANNOTATOR, name=name, panels=[panel.pk])
    assert path_of(cast, "aino")["Invite people to the panel"][0] == "2 invitations are open."
    address = f"/p/kassa/campaigns/{campaign.pk}/duties/new/"
    assert "2 people are invited and have not joined yet." in cast.client("aino").get(address).content.decode()
    seat = panels.seat(panel=panel, user=cast.maarika)
    page = cast.client("aino").get(address).content.decode()
    assert f"<bdi>{seat.annotator.pseudonym}</bdi>" in page and 'data-confirm="Assign these items?"' in page


def test_thresholds_say_which_dataset_is_too_small(cast: Cast) -> None:
    address = "/p/kassa/settings/thresholds/"
    assert "A judge needs" not in cast.client("aino").get(address).content.decode()
    make.campaign(cast.kassa)
    page = cast.client("aino").get(address).content.decode()
    assert "A judge needs 30 items in each language. Round 1 v1 has 4 in Estonian." in page
    assert "in each language: from 10, by default 30." in page
