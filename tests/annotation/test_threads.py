"""Questions about items, from the desk to the lead and back; and what the desk does not let a browser claim."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.utils import timezone

from accounts.mail import site_address
from annotation import panels
from annotation.desk import service, threads
from annotation.desk.leasing import LEASE
from annotation.models import Annotation, Assignment, Draft, ItemQuestion, QualificationRule, ReferenceItem
from annotation.qualification import references
from tests.annotation import qualified, scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_a_question_is_asked_answered_and_broadcast_without_names(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=1, overlap=2, seated=[piret])
    maarika, lead = cast.client("maarika"), cast.client("aino")
    item = scene.next_page(maarika, work)
    assert "open." not in lead.get("/p/kassa/").content.decode()
    for _twice in range(2):
        page = maarika.post(f"{item}ask/", {"question": "Kas see on nali?"}, follow=True).content.decode()
        assert "Kas see on nali?" in page and "No answer yet" in page
    asked = ItemQuestion.objects.get()

    assert "1 question of an annotator is open." in lead.get("/p/kassa/").content.decode()
    questions = f"/p/kassa/campaigns/{work.campaign_id}/questions/"
    assert "Kas see on nali?" in lead.get(questions).content.decode()
    assert "Write an answer." in lead.post(f"{questions}{asked.pk}/answer/", {}, follow=True).content.decode()
    lead.post(f"{questions}{asked.pk}/answer/", {"answer": "Ei ole.", "seen": ""})
    late = lead.post(f"{questions}{asked.pk}/answer/", {"answer": "On.", "seen": ""}, follow=True).content.decode()
    assert "Somebody else has answered" in late and ItemQuestion.objects.get().answer == "Ei ole."
    assert "Ei ole." in maarika.get(item).content.decode()
    client = cast.client("maarika")
    client.force_login(piret)
    theirs = scene.next_page(client, work)
    listed = f"/desk/{work.pk}/questions/"
    assert "nali" not in client.get(theirs).content.decode() + client.get(listed).content.decode()

    lead.post(f"{questions}{asked.pk}/answer/", {"answer": "Ei ole, loe juhendit.", "broadcast": "yes"})
    for page in (client.get(theirs), client.get(listed), maarika.get(listed)):
        text = page.content.decode()
        assert "Kas see on nali?" in text and "Ei ole, loe juhendit." in text
        assert page.wsgi_request.user == cast.maarika or "Maarika" not in text
    assert "Questions and answers" in client.get("/desk/").content.decode()
    assert "open." not in lead.get("/p/kassa/").content.decode()


def test_what_others_asked_does_not_show_that_an_item_is_a_control(cast: Cast) -> None:
    """With one annotator for each item nobody else can have asked at it: only a control has other people's threads."""
    piret = scene.member(cast, "Piret")
    work = qualified.qualified_duty(cast, items=8, control=range(1, 5), control_rate=0.5)
    panels.seat(panel=work.panel, user=piret)
    control = ReferenceItem.objects.get(item__external_id="d1")
    own = {"duty": work, "item": control.item, "annotator": scene.annotator(cast, piret)}
    ItemQuestion.objects.create(**own, text="Kas?", answer="Jah.", is_broadcast=True, answered_at=timezone.now())
    hidden = references.hidden_duties(work)["control"]
    now = timezone.now()
    taken = references.lease_hidden(
        duty=hidden, item=control.item_id, annotator=scene.annotator(cast, cast.maarika), now=now, until=now + LEASE
    )
    assert taken is not None
    maarika = cast.client("maarika")
    assert "Jah." not in maarika.get(f"/desk/at/{taken.key}/").content.decode()
    assert "Jah." in maarika.get(f"/desk/{work.pk}/questions/").content.decode()


def test_open_questions_come_first_and_then_the_latest_answers(cast: Cast) -> None:
    work = scene.duty(cast, items=1)
    own: dict[str, Any] = {"duty": work, "item": scene.taken(cast, work).item}
    own["annotator"] = scene.annotator(cast, cast.maarika)
    now = timezone.now()
    for text, age in (("older", 2), ("newer", 1)):
        ItemQuestion.objects.create(**own, text=text, answer="Yes.", answered_at=now - timedelta(hours=age))
    ItemQuestion.objects.create(**own, text="open")
    listed = threads.questions_in(work.campaign).values_list("text", flat=True)
    assert list(listed) == ["open", "newer", "older"]


def test_a_question_that_cannot_be_asked_is_refused_with_a_sentence(cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1)
    maarika = cast.client("maarika")
    item = scene.next_page(maarika, work)
    assert maarika.post(f"{item}ask/", {"question": "  \0"}, headers=scene.JSON).json()["fields"]
    held = Assignment.objects.get()
    own = {"duty": work, "item": held.item, "annotator": held.annotator}
    ItemQuestion.objects.bulk_create(ItemQuestion(**own, text=str(number)) for number in range(50))
    answer = maarika.post(f"{item}ask/", {"question": "Veel?"}, headers=scene.JSON)
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many")
    assert cast.client("boris").get(f"/p/kassa/campaigns/{work.campaign_id}/questions/").status_code == 403


def test_where_repeats_may_come_the_list_of_own_items_has_no_titles(cast: Cast) -> None:
    work = scene.duty(cast, items=2, overlap=1)
    maarika = cast.client("maarika")
    maarika.post(f"{scene.next_page(maarika, work)}submit/", scene.FULL, headers=scene.JSON)
    scored = f"/desk/{work.pk}/scored/"
    assert "Pakk" in maarika.get(scored).content.decode()
    QualificationRule.objects.create(campaign=work.campaign, repeat_rate=0.2, seed=1)
    assert "Pakk" not in maarika.get(scored).content.decode()


def test_a_browser_claims_no_more_seconds_than_the_server_has_seen_pass(cast: Cast) -> None:
    work = scene.duty(cast, items=2, overlap=1)
    maarika = cast.client("maarika")
    item = scene.next_page(maarika, work)
    maarika.post(f"{item}draft/", {**scene.FULL, "seconds": "86400"}, headers=scene.JSON)
    maarika.post(f"{item}submit/", {**scene.FULL, "seconds": "86400"}, headers=scene.JSON)
    day = Annotation.objects.get().seconds
    assert day is not None and day < 200

    item = scene.next_page(maarika, work)
    for claimed in range(60, 1200, 60):  # every draft claims a minute more than the last one
        maarika.post(f"{item}draft/", {**scene.FULL, "seconds": str(claimed)}, headers=scene.JSON)
    assert Draft.objects.get().seconds < 120
    with time_machine.travel(timezone.now() + timedelta(minutes=50), tick=False):
        maarika.post(f"{item}draft/", {**scene.FULL, "seconds": "2400"}, headers=scene.JSON)
    with time_machine.travel(timezone.now() + timedelta(minutes=60), tick=False):
        maarika.post(f"{item}submit/", {**scene.FULL, "seconds": "2900"}, headers=scene.JSON)
    assert Annotation.objects.latest("pk").seconds == 2900
    later = service.own_submission(user=cast.maarika, key=Annotation.objects.latest("pk").key)
    with time_machine.travel(timezone.now() + timedelta(days=3), tick=False):
        service.revise_scores(assignment=later, shown=later.key, key=uuid4(), answers=scene.ANSWERS, seconds=80_000)
    revised = Annotation.objects.latest("pk").seconds
    assert revised is not None and 2900 < revised <= 2900 + 2 * 3600 + 60


def test_a_draft_counts_no_days_away(cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1)
    maarika = cast.client("maarika")
    item = scene.next_page(maarika, work)
    maarika.post(f"{item}draft/", {**scene.FULL, "seconds": "50"}, headers=scene.JSON)
    for days, most in ((3, 2 * 3600 + 120), (6, 4 * 3600 + 120)):
        with time_machine.travel(timezone.now() + timedelta(days=days), tick=False):
            service.save_draft(assignment=Assignment.objects.get(), answers=scene.ANSWERS, seconds=200_000)
        assert 2 * 3600 <= Draft.objects.get().seconds <= most


def test_a_page_in_a_mail_has_a_host(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*", ".bench.test"]
    assert site_address("/p/") == "http://bench.test/p/"
    settings.ALLOWED_HOSTS = ["*"]
    assert site_address("/p/") == "/p/"
