"""Deadlines with reminders, priority, quota, pause, more annotators, and items that are returned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from accounts.models import User
from annotation import duty_settings
from annotation.duty_settings import DutySettings
from annotation.models import Assignment, Duty, DutyReminder
from tests.annotation import scene
from tests.cast import Cast


def address(cast: Cast, duty: Duty, below: str = "") -> str:
    return f"/p/{cast.kassa.slug}/campaigns/{duty.campaign_id}/duties/{duty.pk}/{below}"


@pytest.mark.django_db
class TestOneDuty:
    def test_a_pause_and_a_quota_end_new_items_but_not_the_one_in_progress(self, cast: Cast) -> None:
        duty = scene.duty(cast, items=3)
        lead, annotator = cast.client("aino"), cast.client("maarika")
        there = scene.next_page(annotator, duty)
        due = (timezone.now() + timedelta(days=9)).strftime("%Y-%m-%dT%H:%M")
        fields = {"priority": "5", "due_at": due, "quota": "1", "paused": "on"}
        assert lead.post(address(cast, duty), fields).status_code == 302
        assert annotator.get(there).status_code == 200
        assert annotator.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200
        assert "Paused by the lead" in annotator.get("/desk/").content.decode()
        refused = annotator.post(f"/desk/{duty.pk}/", headers=scene.JSON)
        assert (refused.status_code, refused.json()["code"]) == (409, "duty_paused")
        lead.post(address(cast, duty), {**fields, "paused": ""})
        refused = annotator.post(f"/desk/{duty.pk}/", headers=scene.JSON)
        assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
        wrong = lead.post(address(cast, duty), {"priority": "500"})
        assert wrong.status_code == 200 and "less than or equal to 100" in wrong.content.decode()

    def test_more_annotators_once_though_it_is_clicked_twice_and_items_are_returned(self, cast: Cast) -> None:
        duty = scene.duty(cast, items=2, overlap=1)
        lead = cast.client("aino")
        there = scene.next_page(cast.client("maarika"), duty)
        for _click in range(2):
            lead.post(address(cast, duty, "annotators/"), {"more": "2", "overlap": "1"})
        assert Assignment.objects.filter(duty=duty).count() == 2 * 3
        (pk, _pseudonym, count), *_none = duty_settings.people_with_items(duty)
        assert count == 1
        lead.post(address(cast, duty, "return/"), {"annotator": [str(pk), "x"]})
        assert not duty_settings.people_with_items(Duty.objects.get())
        late = cast.client("maarika").post(f"{there}submit/", scene.FULL, headers=scene.JSON)
        assert (late.status_code, late.json()["code"]) == (409, "lease_lost")

    def test_the_api_sets_and_grows(self, cast: Cast) -> None:
        duty = scene.duty(cast, items=2, overlap=1)
        browser = cast.client("boris")
        there = f"/api/v1/projects/{cast.kassa.slug}/campaigns/{duty.campaign_id}/duties/{duty.pk}/"
        set_now: Any = browser.put(there, {"quota": 4, "priority": 2}, content_type="application/json")
        assert set_now.json() == browser.get(there).json() == {
            "priority": 2, "due_at": None, "quota": 4, "paused": False,
        }  # fmt: skip
        grown = browser.post(f"{there}annotators/", {"overlap": 1, "more": 1}, content_type="application/json")
        assert grown.json() == {"assignments": 2}
        taken = scene.taken(cast, duty)
        body = {"annotators": [taken.annotator.pseudonym]}  # type: ignore[union-attr]
        assert browser.post(f"{there}return/", body, content_type="application/json").json() == {"items": 1}


@pytest.mark.django_db
def test_a_reminder_is_in_the_annotator_s_language(
    cast: Cast, mailed_at_once: None, django_capture_on_commit_callbacks: Any
) -> None:
    duty = scene.duty(cast, items=2)
    User.objects.filter(pk=cast.maarika.pk).update(ui_language="zh-hans")
    due = datetime(2030, 11, 24, 15, 30, tzinfo=UTC)
    duty_settings.change_duty(duty=duty, settings=DutySettings(due_at=due))
    with django_capture_on_commit_callbacks(execute=True):
        duty_settings.send_reminders(now=due - timedelta(hours=9))
    assert [(sent.to, sent.subject) for sent in mail.outbox] == [([cast.maarika.email], "有文本等待您评分")]
    assert "2030年11月24日 15:30" in mail.outbox[0].body


@pytest.mark.django_db
def test_one_reminder_for_each_deadline_and_person(cast: Cast) -> None:
    duty = scene.duty(cast, items=2)
    now = timezone.now()
    duty_settings.change_duty(duty=duty, settings=DutySettings(due_at=now + timedelta(hours=30)))
    assert [duty_settings.send_reminders(now=at) for at in (now - timedelta(days=1), now, now)] == [0, 1, 0]
    duty_settings.change_duty(duty=duty, settings=DutySettings(due_at=now + timedelta(hours=40)))
    assert duty_settings.send_reminders(now=now) == 1
    duty_settings.change_duty(duty=duty, settings=DutySettings(due_at=now + timedelta(hours=41), paused=True))
    assert duty_settings.send_reminders(now=now) == 0
    assert DutyReminder.objects.count() == 2
    assert "reminded of this deadline" not in cast.client("aino").get(address(cast, duty)).content.decode()
