"""A duty is taken back while it has no ratings, and refused when it has, through HTTP."""

from __future__ import annotations

from accounts.models import AuditEntry
from annotation.desk import service
from annotation.models import Assignment, Draft, Duty, Skip
from tests.annotation import scene
from tests.cast import Cast


def address(duty: Duty) -> str:
    return f"/p/kassa/campaigns/{duty.campaign_id}/duties/{duty.pk}/take-back/"


def test_a_duty_without_ratings_goes_with_its_drafts(cast: Cast) -> None:
    duty = scene.duty(cast)
    taken = scene.taken(cast, duty)
    cast.client("maarika").post(f"/desk/at/{taken.key}/draft/", {"key": taken.key, "score-fluency": 1, "seconds": 3})
    assert Draft.objects.exists()
    page = cast.client("aino").get(f"/p/kassa/campaigns/{duty.campaign_id}/").content.decode()
    assert address(duty) in page
    assert "data-confirm-danger" in page.partition(address(duty))[2][:600]
    answer = cast.client("aino").post(address(duty), follow=True)
    assert "was removed" in answer.content.decode()
    assert not any(model.objects.exists() for model in (Duty, Assignment, Draft, Skip))
    assert AuditEntry.objects.first().verb == "take back duty"


def test_a_duty_with_ratings_stays(cast: Cast) -> None:
    duty = scene.duty(cast)
    taken = scene.taken(cast, duty)
    service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=3)
    before = Assignment.objects.count()
    page = cast.client("aino").post(address(duty), follow=True).content.decode()
    assert "already has ratings" in page
    assert (Duty.objects.count(), Assignment.objects.count()) == (1, before)
