"""Why verdicts are wrong: written by people on the page of an item or by API, counted by judge, taken back."""

from __future__ import annotations

import html
import re

import pytest

from annotation.models import Campaign
from judging.models import ErrorTag, JudgeRun, Verdict
from tests.analytics import scene
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

SCORES: dict[str, list[float | str | None]] = {
    "fluency": [3.0, 2.0, 2.0, 1.0, 0.0, 2.0] * 2,
    "coherence": [1.0] * 6 + [None] * 6,
}


@pytest.fixture
def run(cast: Cast) -> JudgeRun:
    return scene.with_verdicts(scene.rated_campaign(cast, name="Ring “üks”"), SCORES, name="قاضٍ")


def verdict_on(run: JudgeRun, item: str, criterion: str = "fluency") -> Verdict:
    return run.verdicts.get(item__external_id=item, criterion__key=criterion)


def shown(page: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html.unescape(page.decode()).partition("<main")[2]))


def test_reasons_are_written_at_the_item_and_counted_at_the_judge(cast: Cast, run: JudgeRun) -> None:
    client, campaign = cast.client("boris"), Campaign.objects.get()
    written = [("et-0", "misses “politeness”"), ("et-4", "Misses “Politeness” "), ("ar-1", "لا يفهم اللهجة")]
    for item, text in written:
        verdict = verdict_on(run, item)
        address = f"/p/kassa/verdicts/{verdict.pk}/tags/"
        response = client.post(address, {"text": text, "campaign": campaign.pk})
        page = f"/p/kassa/numbers/{campaign.pk}/items/{verdict.item_id}/"
        assert response["Location"] == f"{page}#verdict-{verdict.pk}"
        assert text.strip().lower() in shown(client.get(page).content).lower()
    counted = shown(client.get(f"/p/kassa/judges/{run.judge_id}/errors/").content)
    assert re.search(r"misses “politeness” 2 2 fluency 2 Estonian 2", counted)
    assert re.search(r"لا يفهم اللهجة 1 1 fluency 1 Arabic 1", counted)
    chosen = client.get(f"/p/kassa/judges/{run.judge_id}/errors/?tag=لا يفهم اللهجة").content
    assert "ar-1" in shown(chosen) and "et-4" not in shown(chosen)
    rows = client.get(f"/p/kassa/judges/{run.judge_id}/errors.csv").content.decode().splitlines()
    assert len(rows) == 4 and rows[1].startswith(f"لا يفهم اللهجة,قاضٍ,{run.pk},ar-1,ar,fluency,1,2,Boris,")


def test_a_reason_is_written_once_and_taken_back(cast: Cast, run: JudgeRun) -> None:
    client, verdict = cast.client("boris"), verdict_on(run, "et-3")
    for text in ("too  strict", "Too strict", "cafe\u0301", "café"):
        client.post(f"/p/kassa/verdicts/{verdict.pk}/tags/", {"text": text})
    assert sorted(tag.text for tag in ErrorTag.objects.all()) == ["café", "too strict"]
    for text in ("", "  ", "x" * 61):
        client.post(f"/p/kassa/verdicts/{verdict.pk}/tags/", {"text": text})
    assert ErrorTag.objects.count() == 2
    client.post(f"/p/kassa/verdict-tags/{ErrorTag.objects.get(text='café').pk}/remove/")
    assert ErrorTag.objects.get().text == "too strict"
    for number in range(20):
        client.post(f"/p/kassa/verdicts/{verdict.pk}/tags/", {"text": f"reason {number}"})
    assert ErrorTag.objects.count() == 10


def test_nul_is_left_out(cast: Cast, run: JudgeRun) -> None:
    client, verdict = cast.client("boris"), verdict_on(run, "et-3")
    client.post(f"/p/kassa/verdicts/{verdict.pk}/tags/", {"text": "too\0 strict"})
    assert ErrorTag.objects.get().text == "too strict"
    assert "et-3" in shown(client.get(f"/p/kassa/judges/{run.judge_id}/errors/?tag=too%00 strict").content)


def test_the_same_by_api(cast: Cast, run: JudgeRun) -> None:
    client, verdict = cast.client("boris"), verdict_on(run, "et-2", "coherence")
    address = "/api/v1/projects/kassa/error-tags/"
    body = {"verdict": verdict.pk, "text": "=2+2 läheb “valesti”"}
    made = client.post(address, body, content_type="application/json")
    assert made.status_code == 201 and made.json()["item"] == "et-2"
    assert client.post(address, body, content_type="application/json").json()["id"] == made.json()["id"]
    assert client.post(address, {**body, "text": " "}, content_type="application/json").status_code == 400
    assert client.post(address, {**body, "verdict": 10**9}, content_type="application/json").status_code == 404
    assert [row["text"] for row in client.get(address).json()["results"]] == ["=2+2 läheb “valesti”"]
    counts = client.get(f"/api/v1/projects/kassa/judges/{run.judge_id}/errors/").json()
    assert counts == [
        {
            "text": "=2+2 läheb “valesti”",
            "verdicts": 1,
            "items": 1,
            "criteria": {"coherence": 1},
            "languages": {"et": 1},
        }
    ]
    assert "'=2+2" in client.get(f"/p/kassa/judges/{run.judge_id}/errors.csv").content.decode()
    assert client.delete(f"{address}{made.json()['id']}/").status_code == 204
    assert not ErrorTag.objects.exists()


def test_other_people_read_and_write_no_reason(cast: Cast, run: JudgeRun) -> None:
    verdict = verdict_on(run, "et-1")
    tag = ErrorTag.objects.create(verdict=verdict, text="private")
    for name, status in (("maarika", 403), ("zoltan", 404)):
        client = cast.client(name)
        assert client.post(f"/p/kassa/verdicts/{verdict.pk}/tags/", {"text": "mine"}).status_code == status
        assert client.post(f"/p/kassa/verdict-tags/{tag.pk}/remove/").status_code == status
        assert client.get(f"/p/kassa/judges/{run.judge_id}/errors/").status_code == status
        assert client.get("/api/v1/projects/kassa/error-tags/").status_code == status
    elsewhere = cast.client("aino").post(f"/p/teine/verdicts/{verdict.pk}/tags/", {"text": "mine"})
    assert elsewhere.status_code in (403, 404)
    assert [tag.text for tag in ErrorTag.objects.all()] == ["private"]
