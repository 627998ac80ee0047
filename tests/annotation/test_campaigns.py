"""Campaigns as a lead sets them up, follows and ends them: by page and by API."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from accounts.models import AuditEntry
from annotation import allocation, campaigns, panels, rubrics
from annotation.desk import service
from annotation.models import Campaign, Dataset, Duty
from annotation.readers.rubric import RubricDocument, parse_rubric
from tests import make
from tests.annotation import scene
from tests.annotation.scene import ANSWERS
from tests.cast import Cast

pytestmark = pytest.mark.django_db

PAGES = "/p/kassa/campaigns/"
API = "/api/v1/projects/kassa/campaigns/"


def test_a_campaign_from_dataset_and_rubric_to_duties_by_page(cast: Cast) -> None:
    rows = [make.item_row(1), make.item_row(2), make.item_row(3, "ar")]
    dataset, rubric = make.dataset(cast.kassa, rows), make.rubric(cast.kassa)
    estonian = panels.create(project=cast.kassa, name="Estonian", language="et")
    arabic = panels.create(project=cast.kassa, name="Arabic", language="ar")
    panels.seat(panel=estonian, user=cast.maarika)
    fluency, coherence = rubric.criteria.order_by("position")
    boris = cast.client("boris")

    address = f"{PAGES}new/?dataset={dataset.pk}"
    assert address in boris.get(f"/p/kassa/datasets/{dataset.pk}/").content.decode()
    assert f'<option value="{dataset.pk}" selected>' in boris.get(address).content.decode()
    assert "selected>" in boris.get(f"{PAGES}new/?dataset=0x“ج”").content.decode(), "no dataset: the empty choice"
    made = boris.post(f"{PAGES}new/", {"name": "Round 1", "dataset": dataset.pk, "rubric_version": rubric.pk})
    campaign = Campaign.objects.get()
    assert made["Location"] == f"{PAGES}{campaign.pk}/duties/new/"

    chosen = {
        f"panel-{estonian.pk}-takes_part": "on",
        f"panel-{estonian.pk}-overlap": "2",
        f"panel-{estonian.pk}-criteria": [fluency.pk],
        f"panel-{arabic.pk}-overlap": "",
    }
    counted = boris.post(made["Location"], {**chosen, "preview": "1"}).content.decode()
    assert "4 assignments in all" in counted
    assert "fewer annotators" in counted
    assert not Duty.objects.exists()

    done = boris.post(made["Location"], chosen)
    assert done["Location"] == f"{PAGES}{campaign.pk}/"
    duty = Duty.objects.get()
    assert (duty.panel, duty.overlap, list(duty.criteria.all())) == (estonian, 2, [fluency])
    assert duty.assignments.count() == 4
    assert coherence not in allocation.criteria_of(duty.pk, campaign.rubric_version_id)
    assert "0 of 2 items complete" in boris.get(done["Location"]).content.decode()
    assert list(AuditEntry.objects.filter(actor=cast.boris).order_by("pk").values_list("verb", flat=True)) == [
        "open campaign",
        "allocate",
    ]


def test_only_ready_datasets_and_published_rubrics_are_offered(cast: Cast) -> None:
    rubric = make.rubric(cast.kassa)
    loading = make.dataset(cast.kassa, name="Loading")
    Dataset.objects.filter(pk=loading.pk).update(state=Dataset.State.LOADING)
    perturbed = make.dataset(cast.kassa, name="Perturbed")
    Dataset.objects.filter(pk=perturbed.pk).update(allocatable=False)
    foreign = make.dataset(cast.teine, name="Foreign")
    aino = cast.client("aino")

    for dataset in (loading, perturbed, foreign):
        form = {"name": "Round", "dataset": dataset.pk, "rubric_version": rubric.pk}
        assert aino.post(f"{PAGES}new/", form).status_code == 200
        assert aino.post(API, form, content_type="application/json").status_code in (404, 422)
    assert not Campaign.objects.exists()


def test_progress_by_duty_and_pseudonym(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=2, overlap=2, seated=[piret])
    for user in (cast.maarika, piret, piret):
        assignment = scene.taken(cast, work, user)
        assert assignment.key
        service.submit(assignment=assignment, key=assignment.key, answers=ANSWERS, seconds=5)
    service.undo_submission(assignment=service.on_desk(user=piret, key=assignment.key))

    (row,) = campaigns.progress(work.campaign)

    assert (row.items, row.complete, row.slots, row.submitted, row.on_desk) == (2, 1, 4, 2, 1)
    assert [(each.pseudonym, each.submitted, each.on_desk) for each in row.annotators] == [("A01", 1, 0), ("A02", 1, 1)]
    told = cast.client("boris").get(f"{API}{work.campaign_id}/progress/").json()
    assert told[0]["annotators"][0]["pseudonym"] == "A01"
    assert "Piret" not in str(told)


def test_progress_costs_the_same_queries_for_any_number_of_duties(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    work = scene.duty(cast)
    for number in range(6):
        allocation.allocate(campaign=work.campaign, panel=work.panel, overlap=1, name=f"Duty {number}", again=True)

    with django_assert_max_num_queries(5):
        assert len(campaigns.progress(work.campaign)) == 7


def test_pausing_resuming_and_closing_for_good(cast: Cast) -> None:
    work = scene.duty(cast)
    aino = cast.client("aino")
    page = f"{PAGES}{work.campaign_id}/"

    states = []
    for to in ("paused", "open", "closed", "open", "nonsense"):
        aino.post(f"{page}state/", {"to": to})
        states.append(Campaign.objects.get().state)

    assert states == ["paused", "open", "closed", "closed", "closed"]
    assert "Add rating tasks" not in aino.get(page).content.decode()
    refused = aino.post(f"{API}{work.campaign_id}/state/", {"state": "open"}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")


def test_the_same_by_api(cast: Cast) -> None:
    dataset, rubric = make.dataset(cast.kassa), make.rubric(cast.kassa)
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    aino = cast.client("aino")

    made = aino.post(
        API, {"name": "Round", "dataset": dataset.pk, "rubric_version": rubric.pk}, content_type="application/json"
    )
    assert made.status_code == 201
    address = f"{API}{made.json()['id']}/duties/"
    asked = {"panel": panel.pk, "overlap": 3, "criteria": ["coherence"], "seed": 7}
    duty = aino.post(address, asked, content_type="application/json")
    assert duty.status_code == 201
    assert (duty.json()["criteria"], duty.json()["seed"]) == (["coherence"], 7)
    assert aino.get(address).json()["results"] == [duty.json()]

    again = aino.post(address, asked, content_type="application/json")
    assert (again.status_code, list(again.json()["fields"])) == (422, ["name"])
    unknown = aino.post(address, {**asked, "criteria": ["charm"]}, content_type="application/json")
    assert unknown.status_code == 400


def test_a_draft_rubric_carries_no_campaign(cast: Cast) -> None:
    published = make.rubric(cast.kassa)
    document = _renamed(published.document)
    assert document
    draft = rubrics.draft(project=cast.kassa, document=document)
    form = {"name": "Round", "dataset": make.dataset(cast.kassa).pk, "rubric_version": draft.pk}

    answer = cast.client("aino").post(API, form, content_type="application/json")

    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["rubric_version"])


def _renamed(document: dict[str, Any]) -> RubricDocument | None:
    return parse_rubric("rubric.json", orjson.dumps({**document, "key": "another"})).document


@pytest.mark.parametrize(("name", "status"), [("maarika", 403), ("zoltan", 404)])
def test_annotators_and_strangers_see_no_campaign(cast: Cast, name: str, status: int) -> None:
    work = scene.duty(cast)
    client = cast.client(name)
    pages = [PAGES, f"{PAGES}new/", f"{PAGES}{work.campaign_id}/", f"{PAGES}{work.campaign_id}/duties/new/"]
    routes = [API, *(f"{API}{work.campaign_id}/{part}" for part in ("", "duties/", "progress/"))]

    assert [client.get(address).status_code for address in [*pages, *routes]] == [status] * 8
    assert client.post(f"{PAGES}{work.campaign_id}/state/", {"to": "closed"}).status_code == status
