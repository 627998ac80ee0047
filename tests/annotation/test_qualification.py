"""Guidelines, training, exams and controls through the pages of the desk, and what must never show them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.core import mail
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import deletion
from accounts.models import AuditEntry, Project
from accounts.refusals import Refused
from annotation import allocation, campaigns, pay
from annotation.models import (
    Annotation,
    Assignment,
    ControlPause,
    Duty,
    ExamAttempt,
    MismatchReview,
    Rating,
    ReferenceItem,
    Skip,
)
from annotation.qualification import controls, guidelines, references, standings
from annotation.qualification.references import ReferenceRow
from tests import make
from tests.annotation import qualified, scene
from tests.annotation.qualified import RIGHT, WRONG
from tests.annotation.test_pairs import duty_of_pairs
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ODD_NAME = "Kassa “عربي” \"two\" 'words' e\u0301"
CONTROLS = {"control_rate": 0.5, "fewest_controls": 3}


def test_work_waits_until_the_newest_guidelines_are_confirmed(cast: Cast) -> None:
    work = qualified.qualified_duty(cast)
    first = guidelines.publish_guideline(
        campaign=work.campaign, language="et", text="# Juhend\n\n<script>alert(1)</script> [x](javascript:alert(1))"
    )
    maarika = cast.client("maarika")

    assert maarika.post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    assert maarika.get(f"/desk/{work.pk}/before/")["Location"] == f"/desk/{work.pk}/guidelines/"
    page = maarika.get(f"/desk/{work.pk}/guidelines/").content.decode()
    assert "<h2>Juhend</h2>" in page
    assert "&lt;script&gt;" in page
    assert 'href="javascript' not in page
    token = maarika.post(f"/api/v1/projects/kassa/desk/{work.pk}/take/")
    assert (token.status_code, token.json()["code"]) == (409, "qualification_guidelines")

    maarika.post(f"/desk/{work.pk}/guidelines/", {"version": first.pk})
    assert scene.next_page(maarika, work).startswith("/desk/at/")

    second = guidelines.publish_guideline(campaign=work.campaign, language="et", text="Uus")
    assert (second.number, guidelines.versions(work.campaign).get(pk=first.pk).text) == (2, first.text)
    assert maarika.post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    maarika.post(f"/desk/{work.pk}/guidelines/", {"version": first.pk})  # the page that she had open
    assert maarika.post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    maarika.post(f"/desk/{work.pk}/guidelines/", {"version": second.pk})
    assert scene.next_page(maarika, work).startswith("/desk/at/")
    assert [version.acknowledged for version in guidelines.versions(work.campaign)] == [1, 1]


def test_training_shows_feedback_at_once_and_can_be_repeated(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, training=[1, 2], exam_items=0)
    maarika = cast.client("maarika")

    assert maarika.post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    assert "0 of 2 training items" in maarika.get(f"/desk/{work.pk}/before/").content.decode()
    page = maarika.post(f"/desk/{work.pk}/training/")["Location"]
    assert "Why fluency" not in maarika.get(page).content.decode()
    told = qualified.submit_scores(maarika, page, WRONG)
    assert told == {"next": f"{page}feedback/", "opened_by": "view"}
    feedback = maarika.get(told["next"]).content.decode()
    assert "0 of 2 scores match" in feedback
    assert "Why fluency" in feedback
    first = Assignment.objects.get(key=scene.key_at(page)).item
    assert all(turn["text"].strip() in feedback for turn in first.turns), "the text that was scored"
    page = maarika.post(f"/desk/{work.pk}/training/")["Location"]
    assert "2 of 2 scores match" in maarika.get(qualified.submit_scores(maarika, page)["next"]).content.decode()

    assert scene.next_page(maarika, work).startswith("/desk/at/"), "training is done: items follow"
    again = maarika.post(f"/desk/{work.pk}/training/", {"again": "1"})["Location"]
    assert again.startswith("/desk/at/")
    shown = maarika.get(again).content.decode()
    assert "checked" not in shown.split('id="sheet"')[1].split("data-advances")[0], "no answers of the first round"
    qualified.submit_scores(maarika, again)
    assert Rating.objects.filter(annotation__campaign=work.campaign).count() == 0


def test_an_exam_is_silent_and_opens_the_duty_once_it_is_passed(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, exam=range(1, 7), exam_items=3, attempts=2, wait_hours=24)
    maarika = cast.client("maarika")

    assert maarika.post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    page = maarika.post(f"/desk/{work.pk}/exam/")["Location"]
    for number in range(3):
        shown = maarika.get(page).content.decode()
        assert "Why fluency" not in shown
        told = qualified.submit_scores(maarika, page, WRONG if number else RIGHT)
        if number < 2:
            assert told == {"next": f"/desk/{work.pk}/"}
            page = scene.next_page(maarika, work)
    assert told == {"next": f"/desk/{work.pk}/before/", "opened_by": "view"}
    result = maarika.get(told["next"]).content.decode()
    assert "did not pass" in result
    assert "1 of 3 (33 %)" in result
    assert maarika.post(f"/desk/{work.pk}/exam/")["Location"] == "/desk/", "refused: it is too early"
    assert maarika.get(f"{page}feedback/").status_code == 404

    with time_machine.travel(timezone.now() + timedelta(hours=25), tick=True):
        maarika = cast.client("maarika")
        page = maarika.post(f"/desk/{work.pk}/exam/")["Location"]
        for _number in range(3):
            told = qualified.submit_scores(maarika, page)
            if told == {"next": f"/desk/{work.pk}/"}:
                page = scene.next_page(maarika, work)
        assert "You passed" in maarika.get(told["next"]).content.decode()
        assert scene.next_page(maarika, work).startswith("/desk/at/")
    had = Assignment.objects.filter(duty__purpose=Duty.Purpose.EXAM).values_list("item", flat=True)
    assert len(had) == len(set(had)) == 6, "the second attempt has other items"
    assert Rating.objects.filter(annotation__campaign=work.campaign).count() == 0


def test_a_lead_may_accept_mismatches_of_an_exam(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, exam=[1, 2], exam_items=2)
    maarika = cast.client("maarika")
    page = maarika.post(f"/desk/{work.pk}/exam/")["Location"]
    qualified.submit_scores(maarika, page)
    qualified.submit_scores(maarika, scene.next_page(maarika, work), WRONG)
    attempt = ExamAttempt.objects.get()
    assert attempt.passed is False

    wrong = standings.mismatches(duty=work, annotator=attempt.annotator)
    assert len(wrong) == 2
    for one in wrong:
        standings.decide_mismatch(assignment=one.assignment, criterion=one.criterion, accept=True, actor=cast.aino)
    attempt.refresh_from_db()
    assert attempt.passed is True
    assert AuditEntry.objects.filter(verb="accept mismatch", actor=cast.aino).count() == 2
    assert scene.next_page(maarika, work).startswith("/desk/at/")


def test_a_passed_exam_expires(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, exam=[1, 2], exam_items=1, valid_days=30)
    maarika = cast.client("maarika")
    qualified.submit_scores(maarika, maarika.post(f"/desk/{work.pk}/exam/")["Location"])
    assert scene.next_page(maarika, work).startswith("/desk/at/")
    with time_machine.travel(timezone.now() + timedelta(days=31), tick=True):
        assert cast.client("maarika").post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"


def _work(cast: Cast, work: Duty, scores_of_controls: dict[str, str], items: int) -> list[str]:
    """Score so many items, controls with these scores; returns the purposes in order."""
    maarika, seen = cast.client("maarika"), []
    for _item in range(items):
        page = maarika.post(f"/desk/{work.pk}/")["Location"]
        if not page.startswith("/desk/at/"):
            break
        purpose = Assignment.objects.get(key=scene.key_at(page)).duty.purpose
        seen.append(purpose)
        qualified.submit_scores(maarika, page, scores_of_controls if purpose == "control" else RIGHT)
    return seen


def test_controls_come_at_the_rate_that_was_set_and_count_nowhere(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=80, control=range(1, 41), control_rate=0.3, repeat_rate=0.3)
    seen = _work(cast, work, RIGHT, 50)

    assert len(seen) == 50
    assert 3 <= seen.count("control") <= 30
    assert seen.count("repeat") >= 2
    rated = seen.count("rating")
    assert Annotation.objects.filter(campaign=work.campaign).count() == rated
    assert campaigns.progress(work.campaign)[0].submitted == rated
    home = cast.client("maarika").get("/desk/").content.decode()
    assert re.search(r"\b50\W+of\W+100\W+done", home), "for her, all are items"
    export = cast.client("aino").get(f"/p/kassa/campaigns/{work.campaign_id}/")
    assert f"{rated} of 40 assignments" in export.content.decode()
    history = cast.client("maarika").get(f"/desk/{work.pk}/scored/").content.decode()
    assert history.count('class="btn" href="/desk/at/') == 50


def _shape(page: str, assignment: Assignment) -> str:
    """A scoring page without its own text, its key, its counts and its tokens."""
    for text in (str(assignment.key), assignment.item.title, *(turn["text"] for turn in assignment.item.turns)):
        page = page.replace(text, "")
    page = re.sub(r'(csrfmiddlewaretoken" value|csrf[^"]*" content)="[^"]*"', "", page)
    page = re.sub(r"/desk/at/[0-9a-f-]+/undo/", "", page)
    return re.sub(r"\d+", "", page)


def test_a_control_looks_like_an_item(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=80, control=range(1, 41), control_rate=0.3, repeat_rate=0.3)
    maarika = cast.client("maarika")
    pages: dict[str, set[str]] = {}
    told: dict[str, set[str]] = {}
    for number in range(50):
        page = scene.next_page(maarika, work)
        assignment = Assignment.objects.select_related("duty", "item").get(key=scene.key_at(page))
        shown = _shape(maarika.get(page).content.decode(), assignment)
        said = str(qualified.submit_scores(maarika, page))
        if number > 5:  # the first page has no "Undo last"
            pages.setdefault(assignment.duty.purpose, set()).add(shown)
            told.setdefault(assignment.duty.purpose, set()).add(said)
    assert pages.keys() == {"rating", "control", "repeat"}
    assert pages["control"] <= pages["rating"]
    assert pages["repeat"] <= pages["rating"]
    assert told["rating"] == told["control"] == told["repeat"]
    history = maarika.get(f"/desk/{work.pk}/scored/").content.decode()
    assert not re.search("control|repeat|reference", history, re.IGNORECASE)


def _traced(client: Client, address: str, posted: dict[str, Any] | None = None) -> tuple[HttpResponse, str, int]:
    """The answer, what a script would see of it, and how often the database was asked."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address) if posted is None else client.post(address, posted, headers=scene.JSON)
    shown = f"{answer.status_code} {sorted(answer.headers)}"
    if "json" in answer.headers.get("Content-Type", ""):
        shown += re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d[\d.:T+-]+", "", answer.content.decode())
    return answer, shown, len(asked)


@pytest.mark.parametrize("kind", ["dialogues", "pairs"])
def test_every_answer_of_the_desk_is_alike_at_an_item_a_control_and_a_repeat(cast: Cast, kind: str) -> None:
    """With evidence, a note and a question at each: the same bytes but for keys and times, and as many queries."""
    if kind == "pairs":
        work = duty_of_pairs(cast, items=60, overlap=1)
        rows = [ReferenceRow(item=f"d{n}", purpose="control", criterion="preference", score="1") for n in range(1, 31)]
        references.mark(campaign=work.campaign, rows=rows)
        references.set_rule(campaign=work.campaign, seed=1, control_rate=0.3, repeat_rate=0.3)
        scores, span = {"score-preference": "1"}, {"field": "passage_a", "start": 0, "end": 7, "quote": "Esimene"}
    else:
        work = qualified.qualified_duty(cast, items=60, control=range(1, 31), control_rate=0.3, repeat_rate=0.3)
        scores, span = dict(RIGHT), {"turn": 0, "start": 0, "end": 5, "quote": "Tere!"}
    posted = {**scores, "seconds": "12", "note": "Minu", f"evidence-{next(iter(scores))[6:]}": json.dumps(span)}
    maarika, seen = cast.client("maarika"), defaultdict(set)
    for number in range(45):
        taking, shown, queries = _traced(maarika, f"/desk/{work.pk}/", {})
        page, found = taking.json()["next"], [("take", shown, queries)]
        purpose = Assignment.objects.get(key=scene.key_at(page)).duty.purpose
        question = {"question": f"Küsimus {number}?"}
        for path, body in (("", None), ("draft/", posted), ("heartbeat/", {}), ("ask/", question), ("submit/", posted)):
            _answer, shown, queries = _traced(maarika, f"{page}{path}", body)
            found.append((path, shown, queries))
        if number > 5:  # the first page has no "Undo last", and repeats come after five
            seen[purpose].update(found)
    assert seen.keys() == {"rating", "control", "repeat"}
    assert seen["control"] <= seen["rating"], seen["control"] ^ seen["rating"]
    assert seen["repeat"] <= seen["rating"], seen["repeat"] ^ seen["rating"]


def _own_counts(client: Client) -> list[Decimal]:
    """What an annotator may read about their own work: done and left, items submitted and open, hours, pay."""
    (duty,) = client.get("/api/v1/projects/kassa/desk/").json()
    page = client.get("/desk/work/").content.decode()
    return [Decimal(one) for one in (duty["done"], duty["left"], *re.findall(r'<dd class="num">([\d.]+)', page))]


def test_her_own_counts_move_alike_after_an_item_a_control_and_a_repeat(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=80, control=range(1, 41), control_rate=0.3, repeat_rate=0.3)
    pay.set_pay_rate(duty=work, unit="item", amount=Decimal("0.5"), actor=cast.aino)
    maarika = cast.client("maarika")
    moved: dict[str, set[tuple[Decimal, ...]]] = {}
    before: list[Decimal] = []
    for _item in range(40):
        page = scene.next_page(maarika, work)
        opened = _own_counts(maarika)
        qualified.submit_scores(maarika, page, {**RIGHT, "seconds": "36"})
        after = _own_counts(maarika)
        if before:  # the page of her work begins with the first submission
            purpose = Assignment.objects.get(key=scene.key_at(page)).duty.purpose
            steps = zip(before, opened, after, strict=True)
            moved.setdefault(purpose, set()).add(tuple(step for a, b, c in steps for step in (b - a, c - b)))
        before = after
    assert moved.keys() == {"rating", "control", "repeat"}
    assert moved["rating"] == moved["control"] == moved["repeat"]
    assert moved["rating"] == {tuple(map(Decimal, ("0", "1", "0", "-1", "0", "1", "0", "-1", "0", ".01", "0", ".5")))}
    (sheet,) = pay.pay_rows(work.campaign)
    assert sheet[3] == 40, "she is paid for every item that she scored"


def test_a_repeat_shows_no_note_of_the_first_time_and_has_its_own(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=60, repeat_rate=0.5)
    maarika = cast.client("maarika")
    for _item in range(60):
        page = scene.next_page(maarika, work)
        taken = Assignment.objects.select_related("duty").get(key=scene.key_at(page))
        first, again = (f"{time} note {taken.item_id}." for time in ("First", "Second"))
        shown = maarika.get(page).content.decode()
        if taken.duty.purpose == Duty.Purpose.REPEAT:
            break
        qualified.submit_scores(maarika, page, {**RIGHT, "note": first})
    assert first not in shown, "it would show that the item comes again"
    maarika.post(f"{page}draft/", {**RIGHT, "note": ""}, headers=scene.JSON)
    history = f"/desk/{work.pk}/scored/"
    assert first in maarika.get(history).content.decode(), "an empty note of the repeat leaves the first one alone"
    qualified.submit_scores(maarika, page, {**RIGHT, "note": again})
    shown = maarika.get(history).content.decode()
    assert (shown.count(first), shown.count(again)) == (1, 1)


def test_nobody_gets_a_control_in_two_duties_of_a_campaign(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=60, control=range(1, 6), control_rate=0.5)
    other = allocation.allocate(campaign=work.campaign, panel=work.panel, overlap=1, seed=4, name="Again", again=True)
    _work(cast, work, RIGHT, 30)
    _work(cast, other, RIGHT, 15)
    had = Assignment.objects.filter(duty__purpose=Duty.Purpose.CONTROL).values_list("item", flat=True)
    assert len(had) == len(set(had)) == 5


def test_a_falling_match_pauses_and_can_be_contested_and_ended(
    cast: Cast, mailed_at_once: None, django_capture_on_commit_callbacks: Any
) -> None:
    work = qualified.qualified_duty(cast, items=60, control=range(1, 31), **CONTROLS)
    with django_capture_on_commit_callbacks(execute=True):
        seen = _work(cast, work, WRONG, 40)
    pause = ControlPause.objects.get()
    assert (seen.count("control"), pause.controls, pause.matched) == (3, 3, 0.0)
    assert pause.upper < 0.7
    assert [sent.to for sent in mail.outbox] == [[cast.aino.email]]

    maarika = cast.client("maarika")
    page = maarika.get(f"/desk/{work.pk}/before/").content.decode()
    assert "is paused" in page
    assert page.count(">Contest<") == 6
    contested = Assignment.objects.filter(duty__purpose="control").select_related("item").order_by("leased_at")
    for number, one in enumerate(contested, 1):
        assert page.count(f"Item {number}: <bdi") == 1
        assert all(turn["text"].strip() in page for turn in one.item.turns), "the text that is contested"
    control = Assignment.objects.filter(duty__purpose="control").first()
    said = {"criterion": "fluency", "objection": "See turn 2."}
    maarika.post(f"/desk/at/{control.key}/contest/", said)
    review = MismatchReview.objects.get()
    assert (review.assignment, review.objection) == (control, "See turn 2.")
    changed = maarika.post(f"/desk/at/{control.key}/scores/", {**RIGHT, "key": str(uuid4())}, headers=scene.JSON)
    assert (changed.status_code, changed.json()["code"]) == (409, "compared")
    assert Annotation.objects.filter(assignment=control).count() == 1, "what was compared can't be changed"

    standings.decide_mismatch(assignment=control, criterion=review.criterion, accept=True, actor=cast.aino)
    controls.reinstate(pause=pause, note="A hard one", actor=cast.aino)
    assert scene.next_page(maarika, work).startswith("/desk/at/")
    assert AuditEntry.objects.filter(verb="reinstate annotator", actor=cast.aino).exists()


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("configured", "hosts", "leads_to"),
    [
        ("https://bench.example.org", ["localhost"], "https://bench.example.org"),
        ("", ["localhost", "testserver"], "http://testserver"),
        ("", ["testserver", "bench.example.org"], "http://testserver"),
    ],
)
def test_a_pause_names_project_and_public_address_whatever_the_project_is_called(
    cast: Cast,
    settings: Any,
    mailed_at_once: None,
    django_capture_on_commit_callbacks: Any,
    configured: str,
    hosts: list[str],
    leads_to: str,
) -> None:
    settings.SITE_ADDRESS, settings.ALLOWED_HOSTS = configured, [*hosts, "testserver"]
    Project.objects.filter(pk=cast.kassa.pk).update(name=ODD_NAME)
    work = qualified.qualified_duty(cast, items=60, control=range(1, 31), **CONTROLS)
    with django_capture_on_commit_callbacks(execute=True):
        _work(cast, work, WRONG, 40)
    pause = ControlPause.objects.get()
    (sent,) = mail.outbox
    assert f"The work of {pause.annotator.pseudonym} in “Estonian”" in sent.body
    assert f"in the project “{ODD_NAME}” is paused" in sent.body
    path = f"/p/kassa/campaigns/{work.campaign_id}/qualification/"
    assert sent.body.endswith(f"Look at the answers and decide: {leads_to}{path}")
    assert cast.client("aino").get(path).status_code == 200
    assert cast.client("maarika").post(f"/desk/{work.pk}/")["Location"] == f"/desk/{work.pk}/before/"
    taking = cast.client("maarika").post(f"/api/v1/projects/kassa/desk/{work.pk}/take/")
    assert (taking.status_code, taking.json()["code"]) == (409, "qualification_paused")


def _skipped(cast: Cast, work: Duty, purposes: set[str], most: int = 80) -> tuple[list[int], list[int]]:
    """Skip what has one of these purposes at its first time, score the rest: items skipped, and items in order."""
    maarika, skipped, order = cast.client("maarika"), [], []
    for _item in range(most):
        page = maarika.post(f"/desk/{work.pk}/")
        if page.status_code != 302:
            return skipped, order
        taken = Assignment.objects.select_related("duty").get(key=scene.key_at(page["Location"]))
        order.append(taken.item_id)
        if taken.duty.purpose in purposes and taken.item_id not in skipped:
            skipped.append(taken.item_id)
            maarika.post(f"{page['Location']}skip/", {"reason": "other"}, headers=scene.JSON)
        else:
            qualified.submit_scores(maarika, page["Location"])
    raise AssertionError("it never ends")


@pytest.mark.both_databases
def test_skipped_controls_come_back_as_skipped_items_do(cast: Cast) -> None:
    # Draws depend on primary keys: of 30 items, fewer than two are controls once in thirty million times.
    work = qualified.qualified_duty(cast, items=30, control=range(1, 9), control_rate=0.5)
    skipped, order = _skipped(cast, work, {"control"})
    assert len(skipped) >= 2
    assert order[-len(skipped) :] == skipped, "last, in the order of skipping"
    answered = Assignment.objects.filter(duty__purpose="control", state="submitted").values_list("item", flat=True)
    assert {*skipped} <= {*answered}
    home = cast.client("maarika").get("/desk/").content.decode()
    assert "All done" in home or "Nothing left to score" in home


def test_skipping_everything_tells_nothing_about_what_is_a_control(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=16, control=range(1, 7), control_rate=0.4)
    skipped, order = _skipped(cast, work, {"rating", "control"})
    assert order == skipped * 2, "every one comes back once, in the same order, whatever it is"
    kinds = set(Assignment.objects.filter(item__in=skipped).values_list("duty__purpose", flat=True))
    assert kinds == {"rating", "control"}


def test_a_duty_with_a_skipped_control_says_that_something_is_left(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=12, control=range(1, 7), control_rate=0.5)
    maarika = cast.client("maarika")
    while Assignment.objects.filter(duty=work, state="open").exists():
        page = scene.next_page(maarika, work)
        if Assignment.objects.get(key=scene.key_at(page)).duty.purpose == "control":
            maarika.post(f"{page}skip/", {"reason": "other"}, headers=scene.JSON)
        else:
            qualified.submit_scores(maarika, page)
    assert Skip.objects.exists()
    home = maarika.get("/desk/").content.decode()
    assert "Continue" in home and "All done" not in home
    assert "data-submits-itself" in maarika.get(f"/desk/{work.pk}/").content.decode()
    assert scene.next_page(maarika, work).startswith("/desk/at/")


def test_a_project_with_everything_but_answers_can_be_deleted(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, training=[1], exam=[2], control=[3], exam_items=1)
    guideline = guidelines.publish_guideline(campaign=work.campaign, language="et", text="Loe.")
    maarika = cast.client("maarika")
    maarika.post(f"/desk/{work.pk}/guidelines/", {"version": guideline.pk})
    maarika.post(f"/desk/{work.pk}/training/")
    assert qualified.purposes(work.campaign) == ["control", "exam", "repeat", "training"]
    deletion.delete_project(project=cast.kassa, name="Kassa", actor=cast.aino)
    assert deletion.purge_deleted(now=timezone.now() + timedelta(days=31)) == ["kassa"]
    assert not Duty.with_hidden.exists()
    assert not ReferenceItem.objects.exists()


def test_several_controls_of_one_title_are_told_apart(cast: Cast) -> None:
    same = [make.item_row(n, title="Pakk “طرد”") for n in range(1, 61)]
    work = qualified.qualified_duty(cast, items=same, control=range(1, 31), **CONTROLS)
    _work(cast, work, WRONG, 40)
    page = cast.client("maarika").get(f"/desk/{work.pk}/before/").content.decode()
    headings = re.findall(r"<h3[^>]*>(.*?)</h3>", page)
    assert len(headings) == len(set(headings)) == 3
    assert all("Pakk “طرد”" in one for one in headings)


def test_contesting_needs_a_control_that_was_shown(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=60, control=range(1, 31), **CONTROLS)
    _work(cast, work, RIGHT, 12)
    control = Assignment.objects.filter(duty__purpose="control").first()
    with pytest.raises(Refused, match="can't be contested"):
        standings.contest(assignment=control, criterion=work.criteria.first(), objection="Why?")


def test_reference_items_are_for_one_purpose_and_leave_the_queue(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=6)
    assert work.assignments.count() == 6
    references.mark(campaign=work.campaign, rows=qualified.reference_rows("exam", [1, 2]))
    assert work.assignments.count() == 4
    assert references.mark(campaign=work.campaign, rows=qualified.reference_rows("control", [1])) == 1
    assert ReferenceItem.objects.get(item__external_id="d1").purpose == "control"
    mixed = [*qualified.reference_rows("exam", [3])[:1], *qualified.reference_rows("control", [3])[1:]]
    with pytest.raises(Refused, match="two purposes"):
        references.mark(campaign=work.campaign, rows=mixed)

    page = scene.next_page(cast.client("maarika"), work)
    opened = Assignment.objects.get(key=scene.key_at(page)).item.external_id
    with pytest.raises(Refused, match="worked on"):
        references.mark(campaign=work.campaign, rows=qualified.reference_rows("control", [int(opened[1:])]))


@pytest.mark.django_db(transaction=True)
def test_an_item_that_is_opened_while_it_is_marked_stays_an_item(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=1)
    held, refusals = Event(), []

    def mark() -> None:
        try:
            held.wait(10)
            references.mark(campaign=work.campaign, rows=qualified.reference_rows("control", [1]))
        except Refused as refused:
            refusals.append(refused.code)
        finally:
            connection.close()

    marking = Thread(target=mark)
    marking.start()
    with transaction.atomic():
        assert scene.taken(cast, work).item.external_id == "d1"
        held.set()
        marking.join(1)  # it reads that nobody has the item, and then waits for the lease that is not committed yet
    marking.join(20)
    assert refusals == ["item_in_work"]
    assert not ReferenceItem.objects.exists()
