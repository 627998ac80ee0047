"""Share links: what they show without an account, and that they open nothing else."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import people
from accounts.models import AuditEntry
from analytics.answers import snapshots
from analytics.exporting import shares
from analytics.models import Share
from analytics.questions.question import NumbersQuestion, Settings
from annotation.desk import service
from annotation.models import Annotation, Annotator, Campaign
from tests import access, make
from tests.annotation import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    """Two raters whose names must not come out, and their numbers."""
    rated = make.campaign(cast.kassa, items=4, name="Shared round")
    scores = {"Mari Maasikas": [0, 1, 2, 3], "Jaan Tamm": [0, 1, 2, 2]}
    make.rated(rated, {"fluency": scores})
    snapshots.snapshot(campaign=rated, settings=Settings())
    return rated


@pytest.fixture
def link(cast: Cast, campaign: Campaign) -> str:
    _share, secret = shares.make(campaign=campaign, label="Reviewer 2", actor=cast.aino)
    return f"/shared/{secret}/"


def text(answer: Any) -> str:
    return b"".join(answer).decode()


def test_a_link_is_made_on_the_page_and_shown_once(cast: Cast, campaign: Campaign) -> None:
    lead = cast.client("aino")
    form = {"campaign": campaign.pk, "label": "Reviewer 2", "days": "30"}
    page = lead.post("/p/kassa/settings/sharing/", form).content.decode()
    address = re.search(r"http://testserver(/shared/[\w-]{43}/)", page).group(1)  # type: ignore[union-attr]
    assert Client().get(address).status_code == 200
    assert address not in lead.get("/p/kassa/settings/sharing/").content.decode()
    stored = Share.objects.values().get()
    assert address.split("/")[2] not in str(stored)
    assert stored["last_used_at"] is not None


def test_it_shows_the_numbers_the_rubric_and_no_name(link: str, campaign: Campaign) -> None:
    page = Client().get(link).content.decode()
    assert "Shared round" in page and "Krippendorff" in page
    rubric = Client().get(f"{link}rubric/").content.decode()
    assert "fluency at 3" in rubric
    for seen in (page, rubric, text(Client().get(f"{link}scores.csv")), text(Client().get(f"{link}items.csv"))):
        assert not re.search("Mari|Maasikas|Jaan|Tamm|aino|@panelbench.test", seen)


def test_panels_are_described_by_those_who_consented_alone(cast: Cast) -> None:
    other = scene.member(cast, "Liis")
    duty = scene.duty(cast, items=2, seated=[other])
    for user in (cast.maarika, other, other):
        taken = scene.taken(cast, duty, user)
        service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)
    told = {"education": "MA <b>", "experience": "", "grew_up_with": ["et", "ru"]}
    people.describe_self(user=cast.maarika, **told, consent=True)
    people.describe_self(user=other, education="secret school", experience="", grew_up_with=["fi"], consent=False)
    snapshots.snapshot(campaign=duty.campaign)
    _share, secret = shares.make(campaign=duty.campaign, label="x", actor=cast.aino)
    few = "Fewer than five people on this panel have agreed to be described"
    page = Client().get(f"/shared/{secret}/").content.decode()
    assert few in page
    assert not re.search(r"secret school|MA &lt;b&gt;|Finnish|Maarika|Liis", page)


def test_its_tables_hold_the_ratings_under_other_pseudonyms(link: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text(Client().get(f"{link}scores.csv")))))
    assert sorted(row["score"] for row in rows) == sorted(["0", "1", "2", "3", "0", "1", "2", "2"])
    assert len({row["rater"] for row in rows}) == 2


def test_its_pages_lead_nowhere_else(link: str) -> None:
    for address in (link, f"{link}rubric/"):
        page = Client().get(address).content.decode()
        leads = set(re.findall(r'(?:href|src|srcset|action)="(/[^"]*)"', page))
        elsewhere = {each for each in leads if not each.startswith((link, "/static/"))}
        assert elsewhere <= {"/", "/language/", "/account/login/"}, elsewhere


def test_its_headers_keep_the_link_secret(link: str) -> None:
    answers = [Client().get(address) for address in (link, f"{link}rubric/", f"{link}scores.csv", "/shared/nothing/")]
    for answer in answers:
        answer.close()
        assert answer["Referrer-Policy"] == "no-referrer"
        assert "noindex" in answer["X-Robots-Tag"]
        assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("end", ["revoked", "expired", "mistyped"])
def test_a_link_that_ended_says_so_kindly(cast: Cast, link: str, end: str) -> None:
    share = Share.objects.get()
    if end == "revoked":
        cast.client("aino").post(f"/p/kassa/settings/sharing/{share.pk}/revoke/")
    elif end == "expired":
        Share.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        link = link[:-2] + "/"
    for address in (link, f"{link}rubric/", f"{link}scores.csv"):
        answer = Client().get(address)
        assert answer.status_code == 404
        assert "This link does not work" in answer.content.decode()


def test_a_link_opens_no_other_campaign_and_nothing_by_its_secret(cast: Cast, link: str) -> None:
    other = make.campaign(cast.teine, name="Other")
    make.rated(other, {"fluency": {"A": [0, 1, 2, 3]}})
    foreign = snapshots.snapshot(campaign=other)
    assert Client().get(f"{link}{foreign.pk}/bias.svg").status_code == 404
    secret = link.split("/")[2]
    bearer = Client(headers={"authorization": f"Bearer {secret}"})
    for address in ("/api/v1/me/", "/api/v1/projects/kassa/", "/api/v1/projects/kassa/datasets/"):
        assert bearer.get(address).status_code == 401
    assert Client().get(f"/join/{secret}/").status_code == 410
    assert Client().post(link).status_code == 405


def test_an_answer_to_a_question_has_no_chart(cast: Cast, campaign: Campaign, link: str) -> None:
    answer = snapshots.snapshot(campaign=campaign, settings=NumbersQuestion())
    assert Client().get(f"{link}{answer.pk}/bias.svg").status_code == 404
    address = f"/p/kassa/numbers/{campaign.pk}/{answer.pk}/bias.svg"
    assert cast.client("aino").get(address).status_code == 404


def test_a_visitor_of_a_link_reaches_nothing_more_than_a_stranger(cast: Cast) -> None:
    parts = access.furnish(cast)
    browser = Client()
    assert browser.get(f"/shared/{parts['share']}/").status_code == 200
    assert set(browser.cookies) <= {"csrftoken"}
    from tests.test_access import address

    for route in access.routes():
        if "nobody" not in route.allowed:
            there = address(route, parts)
            assert all(answer.is_denied for answer in access.answers_to_every_method(browser, there)), there


def test_the_study_s_own_annotators_are_turned_away(cast: Cast, link: str) -> None:
    answer = cast.client("maarika").get(link)
    assert (answer.status_code, "Krippendorff" in answer.content.decode()) == (403, False)


def test_a_campaign_without_figures_yet_says_so(cast: Cast) -> None:
    empty = make.campaign(cast.kassa, name="Empty")
    _share, secret = shares.make(campaign=empty, label="x", actor=cast.aino)
    assert "being computed" in Client().get(f"/shared/{secret}/").content.decode()
    assert Annotation.objects.count() == 0


def test_readers_who_ask_too_often_are_told_when_to_come_back(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from analytics.views.shares import SharedRate

    monkeypatch.setitem(SharedRate.THROTTLE_RATES, "shared", "2/min")
    monkeypatch.setattr(SharedRate, "timer", staticmethod(lambda: 1_000_000.0))  # one window throughout
    codes = [Client().get(link).status_code for _turn in range(3)]
    assert codes == [200, 200, 429]
    assert 1 <= int(Client().get(link)["Retry-After"]) <= 61


def test_leads_alone_make_and_end_links_and_the_trail_says_so(cast: Cast, campaign: Campaign) -> None:
    there = "/api/v1/projects/kassa/shares/"
    asked = {"campaign": campaign.pk, "label": "Reviewer 2"}
    assert cast.client("boris").post(there, asked, "application/json").status_code == 403
    made = cast.client("aino").post(there, asked, "application/json").json()
    assert Client().get(made["address"].removeprefix("http://testserver")).status_code == 200
    assert "address" not in cast.client("aino").get(there).json()["results"][0]
    assert cast.client("aino").delete(f"{there}{made['id']}/").status_code == 204
    assert Client().get(made["address"].removeprefix("http://testserver")).status_code == 404
    told = set(AuditEntry.objects.filter(subject="analytics.Share").values_list("verb", flat=True))
    assert told == {"share campaign", "revoke share"}


def test_every_link_of_the_page_leads_somewhere(link: str, campaign: Campaign) -> None:
    Share.objects.update(shows_generators=True)
    page = Client().get(link).content.decode()
    offered = re.findall(r'class="btn btn-s" href="([^"]*)"', page)
    assert {f"{link}scores.csv", f"{link}figures.json"} <= set(offered)
    figures = Client().get(f"{link}figures.json").json()
    stored = snapshots.newest([campaign])[campaign.pk]
    assert (figures["inputs_digest"], figures["estimates"]) == (stored.inputs_digest, stored.content["estimates"])
    assert not re.search("Mari|Maasikas|Jaan|Tamm", str(figures))


def test_the_digest_of_the_page_is_that_of_the_file_that_it_links_to(
    link: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests(page: str) -> list[str]:
        return re.findall(r"\b[0-9a-f]{64}\b", page)

    def downloaded(page: str) -> str:
        address = next(each for each in re.findall(r'href="([^"]*)"', page) if each.endswith("scores.csv"))
        return hashlib.sha256(b"".join(Client().get(address))).hexdigest()

    page = Client().get(link).content.decode()
    assert digests(page) == [downloaded(page)]
    Annotator.objects.create(project=campaign.project, pseudonym="Aadu")  # the pseudonyms of the link move
    make.rated(campaign, {"fluency": {"Leena": [3, 2, 1, 0]}})
    page = Client().get(link).content.decode()
    assert digests(page) == [downloaded(page)]
    monkeypatch.setattr(shares, "MOST_DIGESTED", 1)
    page = Client().get(link).content.decode()
    assert digests(page) == []
    address = next(each for each in re.findall(r'href="([^"]*)"', page) if each.endswith(".sha256"))
    assert digests(Client().get(address).content.decode()) == [downloaded(page)]
    assert Client().get(f"{link}people.csv.sha256").status_code == 404


@pytest.fixture
def by_generators(cast: Cast) -> Campaign:
    """Items of generators, scenarios and attributes with telling names, rated and flagged, with their figures."""
    made = {"scenario": "Tellimus «kolm»", "attributes": {"model": "claude النموذج", "prompt": "p"}}
    rows = [make.item_row(n, generator=("gpt «neli»", "llama")[n % 2], **made) for n in range(1, 7)]
    rated = make.campaign(cast.kassa, items=rows, name="Two words")
    make.rated(rated, {"fluency": {"Mari": [0, 1, 2, 3, 1, 2], "Jaan": [0, 1, 2, 2, 1, 3]}})
    snapshots.snapshot(campaign=rated, settings=Settings())
    return rated


ORIGINS = re.compile("gpt|neli|llama|Tellimus|kolm|claude|النموذج")


def everything_shown(address: str) -> dict[str, str]:
    """Each page and file of a link."""
    names = ("", "rubric/", "figures.json", "scores.csv", "items.csv")
    answers = {name: Client().get(f"{address}{name}") for name in names}
    return {
        name: (answer.getvalue() if answer.streaming else answer.content).decode()  # type: ignore[attr-defined]
        for name, answer in answers.items()
    }


@pytest.mark.both_databases
def test_a_link_shows_how_items_were_made_only_where_its_lead_chose_it(cast: Cast, by_generators: Campaign) -> None:
    lead, form = cast.client("aino"), {"campaign": by_generators.pk, "label": "Reviewer «2»"}
    for chosen in (False, True):
        page = lead.post("/p/kassa/settings/sharing/", form | ({"shows_generators": "on"} if chosen else {}))
        address = re.search(r"http://testserver(/shared/[\w-]{43}/)", page.content.decode()).group(1)  # type: ignore[union-attr]
        shown = everything_shown(address)
        told = {name for name, content in shown.items() if ORIGINS.search(content)}
        assert told == ({"", "figures.json", "scores.csv", "items.csv"} if chosen else set())
        assert "Krippendorff" in shown[""]
        assert len(shown["scores.csv"].splitlines()) == 13
        digest = Client().get(f"{address}scores.csv.sha256").content.decode().split()[0]
        assert digest == hashlib.sha256(shown["scores.csv"].encode()).hexdigest()


def test_links_made_before_the_choice_and_by_the_api_show_none(cast: Cast, by_generators: Campaign) -> None:
    there, asked = "/api/v1/projects/kassa/shares/", {"campaign": by_generators.pk, "label": "x"}
    without = cast.client("aino").post(there, asked, "application/json").json()
    chosen = cast.client("aino").post(there, {**asked, "shows_generators": True}, "application/json").json()
    assert (without["shows_generators"], chosen["shows_generators"]) == (False, True)
    assert Share._meta.get_field("shows_generators").default is False
    assert not ORIGINS.search(everything_shown(without["address"].removeprefix("http://testserver"))["scores.csv"])
    assert ORIGINS.search(everything_shown(chosen["address"].removeprefix("http://testserver"))["scores.csv"])
