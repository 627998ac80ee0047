"""Nothing that an annotator entered is lost without a word: two tabs, a duty that is removed, a person who is."""

from __future__ import annotations

import html
from uuid import uuid4

import pytest

from accounts.models import Membership
from annotation import allocation, panels
from annotation.models import Annotation, Assignment, Draft, Duty, KeptDraft, Rating
from tests import make
from tests.annotation import qualified, scene
from tests.annotation.scene import FULL, JSON
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
OTHER = {"score-fluency": "0", "score-coherence": "1", "rationale-fluency": "Teine arvamus “آخر”", "seconds": "20"}


def test_a_second_tab_with_other_scores_shows_both_and_stores_neither_twice(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    assert maarika.post(f"{page}submit/", FULL, headers=JSON).status_code == 200

    refused = maarika.post(f"{page}submit/", OTHER, headers=JSON)
    assert (refused.status_code, refused.json()["code"]) == (409, "submitted_already")
    fluency, coherence = refused.json()["rows"]
    assert (fluency["name"], fluency["stored"], fluency["sent"]) == ("Fluency", "2", "0\nTeine arvamus “آخر”")
    assert coherence["stored"] == coherence["sent"] == "1"
    assert refused.json()["change"] == f"{page}scores/"
    assert maarika.get(refused.json()["change"]).status_code == 200
    drafted = maarika.post(f"{page}draft/", OTHER, headers=JSON)
    assert (drafted.status_code, drafted.json()["code"]) == (409, "submitted_already")
    plain = maarika.post(f"{page}submit/", OTHER)
    assert plain.status_code == 409
    shown = html.unescape(plain.content.decode())
    assert "You submitted this item already" in shown and "Teine arvamus “آخر”" in shown
    assert set(Rating.objects.values_list("score", flat=True)) == {2.0, 1.0}
    again = maarika.post(f"{page}submit/", {**FULL, "seconds": "99"}, headers=JSON)
    assert again.status_code == 200, "the same scores again are an answer that was lost"
    assert Annotation.objects.count() == 1


def test_the_api_says_the_same_of_other_scores(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika, there = cast.client("maarika"), "/api/v1/projects/kassa/desk"
    key = maarika.post(f"{there}/{work.pk}/take/").json()["key"]
    first = [{"criterion": "fluency", "score": 2}, {"criterion": "coherence", "score": 1}]
    other = [{"criterion": "fluency", "score": 2}, {"criterion": "coherence", "status": "na"}]

    def submit(answers: list[dict[str, object]]) -> tuple[int, dict[str, object]]:
        response = maarika.post(f"{there}/at/{key}/", {"answers": answers}, content_type="application/json")
        return response.status_code, response.json()

    assert submit(first)[0] == 200
    status, body = submit(other)
    assert (status, body["code"]) == (409, "submitted_already")
    assert [one["score"] for one in body["stored"]] == [2.0, 1.0]  # type: ignore[attr-defined]
    assert [one["status"] for one in body["sent"]] == ["scored", "na"]  # type: ignore[attr-defined]
    assert submit(first)[0] == 200
    assert Annotation.objects.count() == 1


def test_the_same_stopped_item_again_is_the_same(cast: Cast) -> None:
    harm = make.criterion("harm", (0, 1), group="critical", direction="lower_is_better")
    work = scene.duty(cast, criteria=[make.criterion("fluency"), harm])
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    stopped = {"score-harm": "1", "rationale-harm": " Ohtlik ", "seconds": "3"}
    for _time in range(2):
        assert maarika.post(f"{page}submit/", stopped, headers=JSON).status_code == 200
    other = maarika.post(f"{page}submit/", {**stopped, "score-fluency": "2"}, headers=JSON)
    assert other.json()["code"] == "submitted_already"


def test_scores_changed_in_another_tab_are_shown_beside_those_of_this_one(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}submit/", FULL)
    changed = {**OTHER, "key": str(uuid4())}
    assert maarika.post(f"{page}scores/", changed, headers=JSON).status_code == 200
    late = maarika.post(f"{page}scores/", {**FULL, "score-fluency": "3", "key": str(uuid4())}, headers=JSON)
    assert (late.status_code, late.json()["code"]) == (409, "submitted_already")
    assert [row["sent"] for row in late.json()["rows"]] == ["3", "1"]
    assert late.json()["rows"][0]["stored"].startswith("0")
    assert set(Annotation.objects.filter(superseded_at=None).values_list("revision", flat=True)) == {2}


@pytest.mark.parametrize("hidden", [False, True])
def test_a_removed_duty_keeps_what_was_entered_and_says_so(cast: Cast, hidden: bool) -> None:
    rule = {"control_rate": 0.5} if hidden else {}
    work = qualified.qualified_duty(cast, items=20, control=range(1, 11), **rule)
    Duty.objects.filter(pk=work.pk).update(name="Eesti “جزء” 1")
    work.refresh_from_db()
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    while hidden and Assignment.objects.get(key=scene.key_at(page)).duty.purpose != "control":
        maarika.post(f"{page}skip/", {"reason": "other"}, headers=JSON)
        page = scene.next_page(maarika, work)
    maarika.post(f"{page}draft/", {**OTHER, "rationale-fluency": "Mustand"}, headers=JSON)
    address = f"/desk/{work.pk}/"
    allocation.take_back_duty(duty=work, actor=cast.aino)

    assert not Draft.objects.exists()
    kept = maarika.get(page)
    assert kept.status_code == 410
    shown = html.unescape(kept.content.decode())
    assert "This task was removed" in shown and "Eesti “جزء” 1" in shown and "Mustand" in shown
    home = html.unescape(maarika.get("/desk/").content.decode())
    assert "removed the task" in home and f'href="{page}"' in home
    for action in ("submit", "draft"):
        sent = maarika.post(f"{page}{action}/", OTHER, headers=JSON)
        assert (sent.status_code, sent.json()["code"]) == (409, "duty_removed")
        assert "Eesti “جزء” 1" in sent.json()["detail"]
    assert KeptDraft.objects.get().answers["fluency"]["rationale"] == OTHER["rationale-fluency"]
    assert OTHER["rationale-fluency"] in html.unescape(maarika.get(page).content.decode())
    key = scene.key_at(page)
    answers = {"answers": [{"criterion": "fluency", "score": 2}]}
    api = maarika.post(f"/api/v1/projects/kassa/desk/at/{key}/", answers, content_type="application/json")
    assert (api.status_code, api.json()["code"]) == (409, "duty_removed")
    gone = maarika.get(address)
    assert gone.status_code == 404
    assert "The project lead removed the task" in html.unescape(gone.content.decode())
    for stranger in ("layla", "aino", "zoltan"):
        assert cast.client(stranger).get(page).status_code == 404
        assert "Mustand" not in cast.client(stranger).get("/desk/").content.decode()
    panels.redact(cast.maarika)
    assert not KeptDraft.objects.exists()


def test_who_is_removed_in_the_middle_reads_what_happened(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    Membership.objects.filter(user=cast.maarika).delete()
    for path in (page, f"/desk/{work.pk}/"):
        answer = maarika.get(path)
        assert answer.status_code == 404
        assert "no longer on its panel or in its project" in answer.content.decode()
    refused = maarika.post(f"{page}submit/", FULL, headers=JSON)
    assert refused.status_code == 404
    assert "no longer on its panel" in refused.json()["detail"]
