"""Adjudication through HTTP: the queue, a decision beside the ratings, its history, meetings and files."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections import Counter
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.core.cache import caches
from django.test import Client

from accounts.models import AuditEntry
from analytics import disagreements
from annotation import adjudication
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Adjudication, Annotator, Campaign, Criterion, Item, MeetingDecision, Rating
from tests import make
from tests.analytics import scene
from tests.annotation import scene as panel_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
RATERS = {"mari": [0, 1, 2, 3, 2], "jaan": [3, 1, 1, 3, 1], "liis": [3, 1, 1, None, 1]}
"""d1 spreads over 3 of 3 points, d3 and d5 over 1, d2 and d4 not at all."""
COHERENCE = {"mari": [1, 0, 1, 1, 1], "jaan": [1, 1, 1, 1, 1]}


def make_scene(cast: Cast) -> Campaign:
    made = make.campaign(cast.kassa, items=5)
    make.rated(made, {"fluency": RATERS, "coherence": COHERENCE})
    scene.with_verdicts(made, {"fluency": [0, 1, 3, 3, 1]}, name="Hidden Judge")
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def read(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, answer.content
    return " ".join(html.unescape(answer.content.decode()).split())


def address(campaign: Campaign, name: str = "", **query: Any) -> str:
    item = f"{Item.objects.get(dataset=campaign.dataset, external_id=name).pk}/" if name else ""
    return f"/p/kassa/numbers/{campaign.pk}/adjudication/{item}?{urlencode(query)}"


def listed(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]+"><bdi>([^<]+)</bdi>', page)


def form(page: str, **chosen: Any) -> dict[str, Any]:
    """The hidden fields of the page's form, and what somebody chose."""
    hidden = dict(re.findall(r'<input type="hidden" name="((?:seen-|key)[^"]*)" value="([^"]*)"', page))
    return {**hidden, **{name.replace("_", "-"): value for name, value in chosen.items()}}


FLUENCY = {"score_fluency": "1.0", "cause_fluency": "standards", "rationale_fluency": "Point 1 fits the anchor."}


def decide(
    cast: Cast, campaign: Campaign, name: str = "d1", *, who: str = "aino", status: int = 302, **chosen: Any
) -> str:
    client = cast.client(who)
    here = address(campaign, name)
    answer = client.post(here, form(read(client, here), **(chosen or FLUENCY)))
    assert answer.status_code == status, answer.content
    return html.unescape(answer.content.decode()) if status != 302 else read(client, answer["Location"])


# --- the queue -------------------------------------------------------------------------------------------------------
def test_the_queue_is_ordered_by_the_measure_chosen_and_says_so(cast: Cast, campaign: Campaign) -> None:
    boris = cast.client("boris")
    page = read(boris, address(campaign, criterion="fluency"))
    assert listed(page)[0] == "d1" and sorted(listed(page)) == ["d1", "d3", "d5"]
    assert "5 items have two ratings or more" in page and "3 differ by this measure" in page
    assert "drawn with the seed 20260101" in page
    assert listed(read(boris, address(campaign, order="na"))) == []
    one = Rating.objects.filter(annotation__item__external_id="d2", annotation__annotator__pseudonym="liis")
    one.update(status=Rating.Status.NOT_APPLICABLE, score=None)
    caches["content"].clear()
    assert listed(read(boris, address(campaign, order="na"))) == ["d2"]
    assert listed(read(boris, address(campaign, order="critical"))) == []
    # Without a criterion d2 counts with coherence, where 0 and 1 are the whole width of the scale.
    assert set(listed(read(boris, address(campaign)))[:2]) == {"d1", "d2"}


def test_ties_are_drawn_with_the_seed(campaign: Campaign) -> None:
    options = disagreements.queue_options(campaign)
    orders = set()
    for seed in range(20):
        choice = disagreements.chosen_queue(options, {"criterion": "fluency", "seed": str(seed)})
        found = [one.external_id for one in disagreements.queue(campaign, choice).items]
        again = [one.external_id for one in disagreements.queue(campaign, choice).items]
        assert found == again and found[0] == "d1"
        orders.add(tuple(found))
    assert len(orders) == 2


def test_the_measures_are_those_of_the_definition() -> None:
    scale = Criterion(level="ordinal", minimum=0, maximum=3, group="critical", direction="higher_is_better")
    scores = [0.0, 0.0, 2.0, 3.0]
    answers = disagreements.Answers(dict(Counter(scores)), not_applicable=1, judge=3.0)
    shares = [scores.count(score) / 4 for score in set(scores)]
    assert disagreements.distance(answers, scale, "range") == 3 / 3
    assert disagreements.distance(answers, scale, "entropy") == pytest.approx(-sum(p * math.log2(p) for p in shares))
    assert disagreements.distance(answers, scale, "na") == 1 / 5
    assert disagreements.distance(answers, scale, "critical") == 2 / 4
    assert disagreements.distance(answers, scale, "judge") == pytest.approx((3 - 5 / 4) / 3)  # the mean is 5/4
    tied = disagreements.Answers({0.0: 2, 2.0: 2}, judge=3.0)
    assert disagreements.distance(tied, scale, "judge") == pytest.approx((3 - 1) / 3)
    labels = Criterion(level="nominal", minimum=0, maximum=3)
    assert disagreements.distance(tied, labels, "judge") == 0  # a tied mode settles nothing


@pytest.mark.parametrize("wrong", ["order=loudness", "criterion=tone", "language=xx", "seed=-1", "judge=Nobody"])
def test_what_there_is_not_is_refused(cast: Cast, campaign: Campaign, wrong: str) -> None:
    answer = cast.client("boris").get(f"{address(campaign)}{wrong}")
    assert answer.status_code == 422 and b"The usual queue is shown instead." in answer.content


# --- deciding --------------------------------------------------------------------------------------------------------
def test_a_decision_stands_beside_the_ratings_with_its_provenance(cast: Cast, campaign: Campaign) -> None:
    before = list(Rating.objects.order_by("pk").values())
    page = decide(cast, campaign)
    assert "The decision is saved" in page and "Different standards" in page and "Point 1 fits the anchor." in page
    stored = Adjudication.objects.get()
    assert (stored.score, stored.adjudicator, stored.rubric_version) == (1.0, cast.aino, campaign.rubric_version)
    assert sorted(each["score"] for each in stored.seen) == [0, 3, 3]
    assert stored.digest == adjudication.digest_of(stored.seen)
    assert list(Rating.objects.order_by("pk").values()) == before
    assert AuditEntry.objects.filter(verb="adjudicate", fields=["fluency"], actor=cast.aino).exists()
    queue = read(cast.client("aino"), address(campaign, criterion="fluency"))
    assert "d1" not in listed(queue) and "1 decided" in queue
    assert "d1" in listed(read(cast.client("aino"), address(campaign, criterion="fluency", state="decided")))


def test_an_item_says_how_many_of_its_criteria_are_decided(cast: Cast, campaign: Campaign) -> None:
    one = Rating.objects.filter(annotation__item__external_id="d1", criterion__key="coherence").first()
    assert one is not None
    Rating.objects.filter(pk=one.pk).update(score=1 - (one.score or 0))
    caches["content"].clear()
    assert "1 criterion of this item is left to decide." in decide(cast, campaign)
    queue = read(cast.client("aino"), address(campaign))
    assert "1 of 2 criteria decided" in queue and "0 decided" in queue
    coherence = {name.replace("fluency", "coherence"): value for name, value in FLUENCY.items()}
    assert "Every criterion of this item on which raters differ is decided." in decide(cast, campaign, **coherence)
    assert "1 decided" in read(cast.client("aino"), address(campaign))


def test_names_are_hidden_and_codes_hold_for_one_item(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    pages = {name: read(client, address(campaign, name)) for name in ("d1", "d3")}
    codes = {name: set(re.findall(r"rater ([A-Z]{2}\d)", page)) for name, page in pages.items()}
    assert all(len(found) == 3 for found in codes.values()) and codes["d1"] != codes["d3"]
    assert codes["d1"] == set(re.findall(r"rater ([A-Z]{2}\d)", read(client, address(campaign, "d1"))))
    for page in (*pages.values(), read(client, f"/p/kassa/numbers/{campaign.pk}/meeting/")):
        assert not any(name in page for name in RATERS)
        assert "Hidden Judge" not in page


def test_a_verdict_is_shown_only_in_a_queue_by_judge_and_after_the_decision(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("aino")
    by_judge = address(campaign, "d1", order="judge")
    queue = read(client, address(campaign, order="judge"))
    assert listed(queue)[0] == "d1" and "from the panel's mean (labels: mode)" in queue
    assert "gave: 0" not in read(client, by_judge)
    assert "value in this queue" not in read(client, by_judge), "with the panel's score it gives the verdict"
    assert re.findall(r'</th><td class="num">([^<]+)<', read(client, address(campaign, order="judge")))[0] == "–"
    meeting = f"/p/kassa/numbers/{campaign.pk}/meeting/?order=judge"
    assert "value –" in read(client, meeting) and '<small class="quiet num"></small>' in read(client, meeting)
    assert client.post(by_judge, form(read(client, by_judge), **FLUENCY)).status_code == 302
    assert "Hidden Judge gave: 0." in read(client, by_judge) and "value in this queue" in read(client, by_judge)
    assert "Hidden Judge" not in read(client, address(campaign, "d1"))
    assert Adjudication.objects.get().order == "judge"


def test_a_later_decision_counts_and_the_earlier_one_stays(cast: Cast, campaign: Campaign) -> None:
    decide(cast, campaign)
    page = decide(cast, campaign, who="boris", **{**FLUENCY, "score_fluency": "2.0"})
    assert "adjudicator 1" in page and "adjudicator 2" in page and "replaced" in page
    rows = rows_of(cast, campaign)
    assert [(row["score"], row["adjudicator"], row["counts"]) for row in rows] == [
        ("1", "adjudicator 1", "false"),
        ("2", "adjudicator 2", "true"),
    ]
    assert {row["cause"] for row in rows} == {"standards"} and {row["ratings_seen"] for row in rows} == {"3"}


def rows_of(cast: Cast, campaign: Campaign) -> list[dict[str, str]]:
    """The export of adjudications."""
    query = urlencode({"what": "adjudications", "format": "csv", "campaign": campaign.pk})
    answer = cast.client("aino").get(f"/p/kassa/export/file/?{query}")
    assert answer.status_code == 200, answer.content
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return list(csv.DictReader(io.StringIO(text.decode())))


def test_a_decision_is_stale_once_a_rating_that_it_saw_changes(cast: Cast, campaign: Campaign) -> None:
    decide(cast, campaign)
    assert [row["stale"] for row in rows_of(cast, campaign)] == ["false"]
    make.rated(campaign, {"fluency": {"newcomer": [2, None, None, None, None]}})
    page = read(cast.client("boris"), address(campaign, "d1"))
    assert "A rating has been added, changed or undone since." in page
    assert listed(read(cast.client("boris"), address(campaign, criterion="fluency", state="stale"))) == ["d1"]
    assert [row["stale"] for row in rows_of(cast, campaign)] == ["true"]


def test_ratings_that_changed_under_the_form_are_refused_and_nothing_written_is_lost(
    cast: Cast, campaign: Campaign
) -> None:
    client, here = cast.client("aino"), address(campaign, "d1")
    filled = form(read(client, here), **FLUENCY)
    make.rated(campaign, {"fluency": {"newcomer": [2, None, None, None, None]}})
    answer = client.post(here, filled)
    assert answer.status_code == 422 and not Adjudication.objects.exists()
    page = html.unescape(answer.content.decode())
    assert "have changed since you saw them" in page and "Point 1 fits the anchor." in page


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"score_fluency": "7"}, "on the scale of “fluency”"),
        ({"score_fluency": "na"}, "“fluency” has no N/A"),
        ({"score_fluency": "nan"}, "on the scale of “fluency”"),
        ({"score_fluency": ""}, "Choose a score for one criterion at least."),
        ({"cause_fluency": ""}, "Choose why the raters disagree on “fluency”."),
        ({"cause_fluency": "mood"}, "Choose why the raters disagree on “fluency”."),
        ({"cause_fluency": "other"}, "Say in a few words what else"),
        ({"rationale_fluency": " "}, "Write why you decided so on “fluency”."),
        ({"rationale_fluency": "x" * 5001}, "Write less about “fluency”."),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    cast: Cast, campaign: Campaign, changed: dict[str, str], sentence: str
) -> None:
    assert sentence in decide(cast, campaign, status=422, **{**FLUENCY, **changed})
    assert not Adjudication.objects.exists()


def test_sent_twice_it_is_stored_once(cast: Cast, campaign: Campaign) -> None:
    client, here = cast.client("aino"), address(campaign, "d1")
    filled = form(read(client, here), **FLUENCY)
    assert [client.post(here, filled).status_code for _time in range(2)] == [302, 302]
    assert Adjudication.objects.count() == 1


def test_nobody_adjudicates_what_they_rated(cast: Cast, campaign: Campaign) -> None:
    Annotator.objects.filter(pseudonym="mari").update(user=cast.boris)
    page = read(cast.client("boris"), address(campaign, "d1"))
    assert "somebody else has to adjudicate it" in page and "Save the decision" not in page
    answer = cast.client("boris").post(address(campaign, "d1"), {"score-fluency": "1", "key": str(uuid4())})
    assert answer.status_code == 422 and not Adjudication.objects.exists()
    assert "5 items that you have rated are left out" not in read(cast.client("aino"), address(campaign))
    assert "that you have rated" in read(cast.client("boris"), address(campaign))


def test_annotators_and_strangers_reach_none_of_it(cast: Cast, campaign: Campaign) -> None:
    addresses = (address(campaign), address(campaign, "d1"), f"/p/kassa/numbers/{campaign.pk}/meeting/")
    for who, status in (("maarika", 403), ("zoltan", 404)):
        for here in addresses:
            assert cast.client(who).get(here).status_code == status
            assert cast.client(who).post(here, {}).status_code in (status, 405)
    assert not Adjudication.objects.exists()


def test_a_revision_at_the_desk_makes_it_stale(cast: Cast) -> None:
    other = panel_scene.member(cast, "Jaan")
    duty = panel_scene.duty(cast, items=1, seated=[other])
    taken = [panel_scene.taken(cast, duty), panel_scene.taken(cast, duty, other)]
    for one, score in zip(taken, (0, 3), strict=True):
        given = {"fluency": Answer(score=score, rationale="Sest."), "coherence": Answer(score=1)}
        service.submit(assignment=one, key=one.key, answers=given, seconds=9)
    decide(cast, duty.campaign)
    assert "Sest." in read(cast.client("boris"), address(duty.campaign, "d1"))
    shown, again = taken[0], {"fluency": Answer(score=2), "coherence": Answer(score=1)}
    shown.refresh_from_db()
    service.revise_scores(assignment=shown, shown=shown.key, key=uuid4(), answers=again, seconds=12)
    assert [row["stale"] for row in rows_of(cast, duty.campaign)] == ["true"]


# --- the API ---------------------------------------------------------------------------------------------------------
def test_the_api_gives_the_same_queue_and_decides(cast: Cast, campaign: Campaign) -> None:
    boris, base = cast.client("boris"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}"
    first = boris.get(f"{base}/adjudication/?criterion=fluency&limit=2").json()["results"][0]
    assert (first["item"], first["value"], first["state"]) == ("d1", 1.0, "open")
    there = f"{base}/items/{first['id']}/adjudications/"
    (fluency, _coherence) = boris.get(there).json()
    assert {one["score"] for one in fluency["ratings"]} == {0, 3} and "mari" not in str(fluency)
    decision = {"criterion": "fluency", "score": 2, "cause": "slip", "rationale": "Clear.", "seen": fluency["seen"]}
    sent = {"decisions": [decision], "key": str(uuid4())}
    for _time in range(2):
        answer = boris.post(there, sent, content_type="application/json")
        assert answer.status_code == 201, answer.content
    (stored,) = answer.json()[0]["adjudications"]
    assert (stored["score"], stored["counts"], stored["adjudicator"]) == (2, True, "adjudicator 1")
    item = boris.get(f"{base}/items/{first['id']}/?criterion=fluency").json()
    assert item["criteria"][0]["adjudications"][0]["rationale"] == "Clear."
    assert "Clear." in read(boris, f"/p/kassa/numbers/{campaign.pk}/items/{first['id']}/?criterion=fluency")
    late = {**decision, "seen": "0" * 64}
    assert boris.post(there, {"decisions": [late]}, content_type="application/json").json()["code"] == "ratings_changed"
    meeting = {"held_on": "2026-05-04", "decision": "Agreed.", "item": "d1"}
    assert boris.post(f"{base}/meeting-decisions/", meeting, content_type="application/json").status_code == 201
    assert boris.get(f"{base}/meeting-decisions/").json()[0]["item"] == "d1"
    for route in ("adjudication/", f"items/{first['id']}/adjudications/", "meeting-decisions/"):
        assert cast.client("maarika").get(f"{base}/{route}").status_code == 403


def test_a_key_of_another_decision_is_refused_with_what_to_do(cast: Cast, campaign: Campaign) -> None:
    boris, base = cast.client("boris"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/items"
    key, answers = str(uuid4()), []
    for name in ("d1", "d3"):
        there = f"{base}/{Item.objects.get(dataset=campaign.dataset, external_id=name).pk}/adjudications/"
        seen = boris.get(there).json()[0]["seen"]
        decision = {"criterion": "fluency", "score": 2, "cause": "slip", "rationale": "Clear.", "seen": seen}
        answers.append(boris.post(there, {"decisions": [decision], "key": key}, content_type="application/json"))
    assert [answer.status_code for answer in answers] == [201, 422]
    assert answers[1].json()["code"] == "key_used"
    assert Adjudication.objects.count() == 1


def test_no_two_raters_of_an_item_have_the_same_code() -> None:
    raters = range(1, 301)
    codes = {item: adjudication.rater_codes(item, raters) for item in (7, 8)}
    for of_item in codes.values():
        assert len(set(of_item.values())) == 300 and {len(code) for code in of_item.values()} == {3}
    assert sum(codes[7][rater] == codes[8][rater] for rater in raters) < 10, "a code says nothing on another item"
    assert adjudication.rater_codes(7, reversed(raters)) == codes[7]
    assert len(set(adjudication.rater_codes(7, range(6000)).values())) == 6000, "there are 4,608 of three characters"


# --- calibration meetings --------------------------------------------------------------------------------------------
def test_a_meeting_sees_all_rationales_and_its_decisions_are_listed(cast: Cast, campaign: Campaign) -> None:
    boris, here = cast.client("boris"), f"/p/kassa/numbers/{campaign.pk}/meeting/"
    page = read(boris, f"{here}?criterion=fluency")
    assert re.findall(r'<h2 id="item-\d+">\d+\. <bdi>(.+?)</bdi>', page)[0] == Item.objects.get(external_id="d1").title
    assert "fluency at 3" in page and "Tere! Minu pakk number 1 on kadunud." in page
    filled = {"held_on": "2026-05-04", "criterion": "fluency", "item": "d1", "decision": "Typos count once."}
    assert boris.post(here, {**filled, "guideline_change": "=Add: count a typo once."}).status_code == 302
    stored = MeetingDecision.objects.get()
    assert (stored.criterion.key, stored.item.external_id, stored.recorded_by) == ("fluency", "d1", cast.boris)
    assert "Typos count once." in read(boris, here)
    file = b"".join(boris.get(f"{here}decisions.csv").streaming_content).decode()
    row = next(csv.DictReader(io.StringIO(file)))
    assert (row["held_on"], row["item"], row["guideline_change"]) == ("2026-05-04", "d1", "'=Add: count a typo once.")
    assert AuditEntry.objects.filter(verb="record decision").count() == 1


@pytest.mark.parametrize("wrong", [{"held_on": "soon"}, {"held_on": "2999-01-01"}, {"decision": ""}, {"item": "d99"}])
def test_a_decision_needs_a_day_and_a_text(cast: Cast, campaign: Campaign, wrong: dict[str, str]) -> None:
    filled = {"held_on": "2026-05-04", "decision": "Kept text.", "guideline_change": "Also kept.", **wrong}
    answer = cast.client("boris").post(f"/p/kassa/numbers/{campaign.pk}/meeting/", filled)
    assert answer.status_code == 422 and b"Also kept." in answer.content
    assert not MeetingDecision.objects.exists()
