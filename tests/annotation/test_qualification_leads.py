"""What leads do about qualification through pages and the API, how answers are compared, and what stays outside."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry
from analytics import answer_pages
from analytics.exporting import bundles
from analytics.questions.question import NumbersQuestion
from analytics.ratings import exclusions, ratings_tables
from analytics.stats.core.estimates import wilson_interval
from analytics.stats.core.shares import wilson_of_share
from annotation import panels
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Criterion,
    Duty,
    ExamAttempt,
    Guideline,
    QualificationRule,
    Rating,
    ReferenceItem,
    ReferenceScore,
    Skip,
)
from annotation.qualification import references, standings
from annotation.qualification.matching import MatchedShare, agrees
from tests import make
from tests.annotation import qualified, scene
from tests.cast import Cast

CSV = """item,purpose,criterion,score,lowest,highest,explanation
d1,exam,fluency,2,1,3,Clear
d1,exam,coherence,1,,,
d2,training,fluency,0,,,"Rough, but readable"
"""


def _rating(score: float | None, status: str = "scored") -> Rating:
    return Rating(score=score, status=status)


def test_an_answer_matches_by_the_rule() -> None:
    ordinal = Criterion(level="ordinal", points=[{"value": value} for value in (1, 2, 4, 8)], minimum=1, maximum=8)
    nominal = Criterion(level="nominal", points=[{"value": 0}, {"value": 1}], minimum=0, maximum=1)
    exact, near = QualificationRule(matching="exact"), QualificationRule(matching="tolerance", tolerance=1)
    four, none = ReferenceScore(score=4), ReferenceScore(score=None)
    ranged = ReferenceScore(score=4, lowest=1, highest=4)

    def matches(criterion: Criterion, given: Rating, reference: ReferenceScore, rule: QualificationRule) -> bool:
        return agrees(criterion=criterion, given=given, reference=reference, rule=rule)

    assert matches(ordinal, _rating(4), four, exact)
    assert not matches(ordinal, _rating(8), four, exact)
    assert matches(ordinal, _rating(8), four, near), "8 is the point after 4: one step, not four"
    assert not matches(ordinal, _rating(1), four, near)
    assert matches(ordinal, _rating(1), ranged, exact)
    assert not matches(ordinal, _rating(None, "na"), four, near)
    assert matches(ordinal, _rating(None, "na"), none, exact)
    assert not matches(ordinal, _rating(None, "stopped"), none, exact)
    assert not matches(ordinal, _rating(4), none, near)
    for level in ("interval", "ordinal"):
        tenths = Criterion(level=level, minimum=0, maximum=1, step=0.1)
        for number in range(10):
            reference = ReferenceScore(score=number / 10)
            assert matches(tenths, _rating((number + 1) / 10), reference, near), (
                "one step, also where it is .1 and a bit"
            )
            assert not matches(tenths, _rating((number + 2) / 10), reference, near)
    assert not matches(nominal, _rating(0), ReferenceScore(score=1), near), "nominal points have no steps"


def test_a_share_is_not_shown_as_reached_before_it_is() -> None:
    criterion = Criterion(key="fluency")
    assert MatchedShare(criterion, "et", 16, 23).percent == 69, "it is below .7, although it rounds to 70 %"
    assert [MatchedShare(criterion, "et", n, 10 * k).percent for n, k in ((7, 1), (21, 3), (0, 1), (10, 1))] == [
        *(70, 70, 0, 100)
    ]


@pytest.mark.parametrize(("share", "n"), [(0.0, 3), (1.0, 5), (0.7, 10), (0.25, 40), (0.6, 1)])
def test_the_quick_interval_is_that_of_the_statistics(share: float, n: int) -> None:
    full = wilson_interval(share, (share * (1 - share) / n) ** 0.5, n)
    assert wilson_of_share(share, n) == pytest.approx((full.low, full.high))


@pytest.mark.django_db
def test_a_lead_sets_everything_up_on_the_pages(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    lead, there = cast.client("aino"), f"/p/kassa/campaigns/{campaign.pk}"
    rule = {"training": "on", "exam_items": 1, "matching": "exact", "tolerance": 1, "threshold": 0.7, "attempts": 2}
    rule |= {"wait_hours": 24, "control_rate": 0.1, "repeat_rate": 0, "control_threshold": 0.7, "fewest_controls": 5}

    assert lead.post(f"{there}/qualification/", {**rule, "control_rate": 0.9}).status_code == 400
    assert lead.post(f"{there}/qualification/", rule).status_code == 302
    assert campaign.qualification_rule.control_rate == 0.1
    written = {"language": "et", "text": "# Juhend", "examples-TOTAL_FORMS": 1, "examples-INITIAL_FORMS": 0}
    written |= {"examples-0-text": "Tere", "examples-0-criterion": "fluency", "examples-0-score": "3"}
    assert lead.post(f"{there}/guidelines/new/", written).status_code == 302
    made = Guideline.objects.get()
    assert made.examples == [{"text": "Tere", "criterion": "fluency", "score": 3.0, "explanation": ""}]
    assert "Fluency" in lead.get(f"{there}/guidelines/{made.pk}/").content.decode()
    assert "# Juhend" in lead.get(f"{there}/guidelines/new/?language=et").content.decode()

    lead.post(f"{there}/references/", {"file": SimpleUploadedFile("r.csv", CSV.encode())})
    assert list(ReferenceItem.objects.values_list("item__external_id", "purpose")) == [
        ("d1", "exam"),
        ("d2", "training"),
    ]
    page = lead.get(f"{there}/references/edit/?item=d2").content.decode()
    assert "Rough, but readable" in page
    bad = CSV.replace("d2,training,fluency,0", "d9,training,fluency,0").replace(
        "d1,exam,fluency,2", "d1,exam,fluency,9"
    )
    refused = lead.post(f"{there}/references/", {"file": SimpleUploadedFile("r.csv", bad.encode())}, follow=True)
    said = refused.content.decode()
    assert "Line 2" in said
    assert "Line 4" in said
    assert ReferenceItem.objects.count() == 2
    changed = {"item": "d3", "purpose": "control", "score-fluency": "3", "lowest-fluency": "2"}
    assert lead.post(f"{there}/references/edit/", changed).status_code == 302
    stored = ReferenceScore.objects.get(reference__item__external_id="d3")
    assert (stored.score, stored.lowest, stored.highest) == (3, 2, 3)
    lead.post(f"{there}/references/{stored.reference_id}/remove/")
    assert ReferenceItem.objects.count() == 2
    assert "0 / 1" not in lead.get(f"{there}/qualification/").content.decode()
    verbs = set(AuditEntry.objects.filter(actor=cast.aino).values_list("verb", flat=True))
    assert {"set qualification rule", "publish guidelines", "mark reference items", "unmark reference item"} <= verbs


@pytest.mark.django_db
def test_the_note_of_a_skipped_control_reaches_the_lead(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=40, control=range(1, 11), control_rate=0.5)
    maarika, aino = cast.client("maarika"), cast.client("aino")
    for _item in range(30):
        page = scene.next_page(maarika, work)
        if Assignment.objects.get(key=scene.key_at(page)).duty.purpose == Duty.Purpose.CONTROL:
            break
        qualified.submit_scores(maarika, page)
    maarika.post(f"{page}skip/", {"reason": "damaged", "note": "Cut off in turn 2"}, headers=scene.JSON)
    skipped = Skip.objects.get()
    assert skipped.duty.purpose == Duty.Purpose.CONTROL
    here = f"/p/kassa/campaigns/{work.campaign_id}/"
    assert f'<li><a href="{here}">1 item was skipped with a note.' in aino.get("/p/kassa/").content.decode()
    assert "Cut off in turn 2" in aino.get(here).content.decode()
    aino.post(f"{here}skips/{skipped.pk}/", {"resolved": "1"})
    skipped.refresh_from_db()
    assert skipped.resolved_at


def test_only_a_lead_decides_about_an_annotator(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, exam=[1], exam_items=1)
    maarika = cast.client("maarika")
    qualified.submit_scores(maarika, maarika.post(f"/desk/{work.pk}/exam/")["Location"], qualified.WRONG)
    attempt = ExamAttempt.objects.get()
    there = f"/p/kassa/campaigns/{work.campaign_id}/qualification/{work.pk}/{attempt.annotator_id}/"
    api = f"/api/v1/projects/kassa/campaigns/{work.campaign_id}/standings/{work.pk}/{attempt.annotator_id}/"
    found = cast.client("boris").get(f"{api}mismatches/").json()
    assert [(row["criterion"], row["score"], row["reference"]) for row in found] == [
        ("fluency", 0, 2),
        ("coherence", 0, 1),
    ]
    decided = {"assignment": found[0]["assignment"], "criterion": "fluency", "accept": True}
    assert cast.client("boris").post(there, {**decided, "accept": "1"}).status_code == 403
    assert cast.client("boris").post(f"{api}mismatches/", decided, "application/json").status_code == 403
    lead = cast.client("aino")
    assert lead.get(there).status_code == 200
    assert lead.post(f"{api}mismatches/", decided, "application/json").status_code == 200
    assert (
        lead.post(there, {"assignment": found[1]["assignment"], "criterion": "coherence", "accept": "1"}).status_code
        == 302
    )
    attempt.refresh_from_db()
    assert attempt.passed is True
    assert lead.post(f"{api}reinstate/", {}, "application/json").status_code == 404


@pytest.mark.django_db
def test_the_api_sets_everything_up(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    lead, there = cast.client("aino"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/"
    assert lead.get(f"{there}qualification/").status_code == 404
    rule = lead.put(f"{there}qualification/", {"exam_items": 3, "seed": 7}, "application/json").json()
    assert (rule["exam_items"], rule["threshold"], rule["seed"]) == (3, 0.7, 7)
    score = {"criterion": "fluency", "score": 2, "lowest": 1, "explanation": "So."}
    marked = {"references": [{"item": "d1", "purpose": "exam", "scores": [score]}]}
    assert lead.post(f"{there}references/", marked, "application/json").json() == {"marked": 1}
    stored = lead.get(f"{there}references/").json()[0]
    assert stored["scores"] == [{**score, "score": 2.0, "lowest": 1.0, "highest": 2.0}]
    guideline = {"language": "et", "text": "Loe.", "examples": [{"text": "Tere", "criterion": "nothing"}]}
    assert lead.post(f"{there}guidelines/", guideline, "application/json").status_code == 422
    guideline["examples"] = []
    assert lead.post(f"{there}guidelines/", guideline, "application/json").json()["number"] == 1
    assert lead.get(f"{there}standings/").json() == []
    assert lead.delete(f"{there}references/{stored['id']}/").status_code == 204


def _read(cast: Cast, campaign: Campaign) -> dict[str, object]:
    """Everything that could show an answer which is no rating."""
    lead, there = cast.client("aino"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}"
    exported = lead.get(f"/p/kassa/export/file/?what=ratings&campaign={campaign.pk}&kind=csv")
    return {
        "rows": list(ratings_tables.rows(campaign=campaign)),
        "progress": lead.get(f"{there}/progress/").json(),
        "campaigns": lead.get("/api/v1/projects/kassa/campaigns/").json(),
        "duties": lead.get(f"{there}/duties/").json(),
        "export": (
            exported.status_code,
            b"".join(exported.streaming_content) if exported.streaming else exported.content,
        ),
        "bundle": {member.name: member.rows(campaign.project).count() for member in bundles.MEMBERS},
    }


@pytest.mark.django_db
def test_answers_that_are_no_ratings_show_nowhere(cast: Cast) -> None:
    work = qualified.qualified_duty(
        cast, items=40, training=[1], exam=[2], control=range(3, 20), exam_items=1, control_rate=0.5
    )
    maarika = cast.client("maarika")
    campaign = Campaign.objects.get(pk=work.campaign_id)
    before = _read(cast, campaign)
    qualified.submit_scores(maarika, maarika.post(f"/desk/{work.pk}/training/")["Location"])
    qualified.submit_scores(maarika, maarika.post(f"/desk/{work.pk}/exam/")["Location"])
    for _item in range(12):
        page = scene.next_page(maarika, work)
        if Assignment.objects.get(key=scene.key_at(page)).duty.purpose != "control":
            break
        qualified.submit_scores(maarika, page)
    hidden = Annotation.objects.filter(campaign__qualification_of=campaign)
    assert hidden.filter(assignment__duty__purpose="exam").exists()
    after = _read(cast, campaign)
    on_desk = after["progress"][0].pop("on_desk"), after["progress"][0]["annotators"][0].pop("on_desk")
    assert on_desk == (1, 1), "the ordinary item that she has open"
    before["progress"][0].pop("on_desk"), before["progress"][0]["annotators"][0].pop("on_desk")
    assert after == before
    assert Duty.objects.filter(campaign__project=cast.kassa).count() == 1
    assert Campaign.objects.filter(project=cast.kassa).count() == 1


@pytest.mark.django_db
def test_a_question_leaves_out_ratings_by_failed_controls(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=40, control=range(1, 20), control_rate=0.5, fewest_controls=3)
    maarika, rated = cast.client("maarika"), 0
    first = [work.pk, panels.annotator_for(project=cast.kassa, user=cast.maarika).pk, 0]
    seed = next(seed for seed in count() if references.drawn_number(seed, "next", *first) >= 0.5)
    QualificationRule.objects.update(seed=seed)  # the first item is an ordinary one: three controls end the work
    for _item in range(30):
        page = maarika.post(f"/desk/{work.pk}/")["Location"]
        if not page.startswith("/desk/at/"):
            break
        is_control = Assignment.objects.get(key=scene.key_at(page)).duty.purpose == "control"
        qualified.submit_scores(maarika, page, qualified.WRONG if is_control else qualified.RIGHT)
        rated += not is_control
    campaign = Campaign.objects.get(pk=work.campaign_id)
    assert exclusions.available_exclusions(campaign)[0] == "controls"
    question = NumbersQuestion(exclude=("controls",))
    found = ratings_tables.table(campaign=campaign, runs=[])
    assert rated
    assert len(list(found.rows)) == 2 * rated
    left_out = Counter[str]()
    assert list(exclusions.without_excluded(found, campaign, question, left_out).rows) == []
    assert left_out["controls"] == 2 * rated
    Duty.objects.filter(pk=work.pk).update(name="Hinnang " * 15)
    answer = answer_pages.answer_now(campaign, question)  # stored under a revision, whatever the duty is called
    assert (answer.content["left_out"]["controls"], len(answer.revision) <= 120) == (2 * rated, True)
    assert standings.standings(campaign)[0].pause is not None
    assert references.count_references(campaign)[0]["items"] == 19


@pytest.mark.django_db
def test_the_page_of_annotators_asks_the_database_as_often_for_ten_as_for_two(cast: Cast) -> None:
    work = qualified.qualified_duty(
        cast, training=[1], exam=[2], control=[3, 4], exam_items=1, control_rate=0.2, repeat_rate=0.2
    )
    lead, address = cast.client("aino"), f"/p/kassa/campaigns/{work.campaign_id}/qualification/"

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert lead.get(address).status_code == 200
        return len(asked)

    panels.seat(panel=work.panel, user=scene.member(cast, "First"))
    lead.get(address)
    few = queries()
    for number in range(8):
        panels.seat(panel=work.panel, user=scene.member(cast, f"Member {number}"))
    assert queries() <= few
