"""How sure an annotator is of an item's scores: asked by the rubric, stored with the annotation, in every way out."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.http import QueryDict

from accounts.refusals import Refused
from analytics.exporting import bundles
from annotation import rubrics
from annotation.desk import service
from annotation.models import Annotation, Assignment, Draft, Duty, RubricVersion
from annotation.readers import parse_rubric
from annotation.views.rubric_form import fields_of, posted_fields
from tests import make
from tests.annotation import scene
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SCORES = {"score-fluency": "2", "score-coherence": "1", "seconds": "3"}
ASKED = "Say how sure you are: a whole number from 0 to 100."


def taken(cast: Cast, work: Duty) -> str:
    return f"/desk/at/{scene.taken(cast, work).key}/"


@pytest.mark.parametrize(
    ("rule", "sent", "stored"),
    [
        ("required", "", ASKED),
        ("required", "101", ASKED),
        ("required", "-1", ASKED),
        ("required", "80,5", ASKED),
        ("required", "٨٠", ASKED),
        ("required", "80", 80),
        ("required", " 0 ", 0),
        ("optional", "", None),
        ("optional", "100", 100),
        ("optional", "x", ASKED),
        ("none", "", None),
        ("none", "50", "This rubric does not ask how sure you are."),
    ],
)
def test_what_the_rubric_asks_for_is_stored_or_refused_with_a_sentence(
    cast: Cast, rule: str, sent: str, stored: Any
) -> None:
    page, maarika = taken(cast, scene.duty(cast, certainty=rule)), cast.client("maarika")
    shown = maarika.get(page).content.decode()
    assert ("How sure are you of these scores" in shown) == (rule != "none")
    answer = maarika.post(f"{page}submit/", {**SCORES, "certainty": sent}, headers=scene.JSON)
    if isinstance(stored, str):
        assert (answer.status_code, answer.json()["fields"]) == (422, {"certainty": stored})
        assert not Annotation.objects.exists()
        without_script = maarika.post(f"{page}submit/", {**SCORES, "certainty": sent})
        assert without_script.status_code == 422
        if rule != "none":
            assert stored in without_script.content.decode()
    else:
        assert answer.status_code == 200, answer.json()
        assert Annotation.objects.get().certainty == stored


def test_it_comes_back_with_a_draft_an_undo_and_a_revision_and_another_one_is_not_as_if_stored(cast: Cast) -> None:
    page, maarika = taken(cast, scene.duty(cast, items=1, certainty="optional")), cast.client("maarika")
    assert maarika.post(f"{page}draft/", {**SCORES, "certainty": "35"}, headers=scene.JSON).status_code == 200
    assert Draft.objects.get().certainty == 35
    assert 'value="35"' in maarika.get(page).content.decode()
    assert maarika.post(f"{page}draft/", {**SCORES, "certainty": "350"}, headers=scene.JSON).status_code == 200
    assert Draft.objects.get().certainty is None
    sent = {**SCORES, "certainty": "40"}
    for _again in range(2):
        assert maarika.post(f"{page}submit/", sent, headers=scene.JSON).status_code == 200
    other = maarika.post(f"{page}submit/", {**sent, "certainty": "41"}, headers=scene.JSON)
    assert (other.status_code, other.json()["code"]) == (409, "submitted_already")
    revise = f"{page}scores/"
    assert 'value="40"' in maarika.get(revise).content.decode()
    changed = maarika.post(revise, {**sent, "certainty": "90", "key": str(uuid4())}, headers=scene.JSON)
    assert changed.status_code == 200, changed.json()
    again = Assignment.objects.get(state=Assignment.State.SUBMITTED)
    assert maarika.post(f"/desk/at/{again.key}/undo/", headers=scene.JSON).status_code == 200
    assert Draft.objects.get().certainty == 90
    assert list(Annotation.objects.order_by("pk").values_list("certainty", flat=True)) == [40, 90]


def test_the_api_of_the_desk_takes_and_asks_for_it(cast: Cast) -> None:
    work, maarika = scene.duty(cast, certainty="required"), cast.client("maarika")
    item = maarika.post(f"/api/v1/projects/kassa/desk/{work.pk}/take/").json()
    assert item["certainty"] == "required"
    answers = [{"criterion": "fluency", "score": 2}, {"criterion": "coherence", "score": 1}]
    address = f"/api/v1/projects/kassa/desk/at/{item['key']}/"
    for certainty, status in ((None, 422), (101, 400), (66, 200)):
        sent = {"answers": answers, "certainty": certainty}
        answer = maarika.post(address, sent, content_type="application/json")
        assert answer.status_code == status, answer.json()
    assert Annotation.objects.get().certainty == 66


def test_it_is_in_the_table_the_api_of_items_and_the_bundle(cast: Cast) -> None:
    work, maarika, boris = scene.duty(cast, certainty="optional"), cast.client("maarika"), cast.client("boris")
    maarika.post(f"{taken(cast, work)}submit/", {**SCORES, "certainty": "73"}, headers=scene.JSON)
    maarika.post(f"{taken(cast, work)}submit/", SCORES, headers=scene.JSON)
    exported = boris.get(f"/p/kassa/export/file/?what=ratings&format=csv&campaign={work.campaign_id}").getvalue()
    rows = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))
    assert sorted(row["certainty"] for row in rows) == ["", "", "73", "73"]
    item = Annotation.objects.get(certainty=73).item_id
    found = boris.get(f"/api/v1/projects/kassa/campaigns/{work.campaign_id}/items/{item}/").json()
    assert {rating["certainty"] for part in found["criteria"] for rating in part["ratings"]} == {73}
    content = b"".join(bundles.bundle_pieces(cast.kassa))
    bundles.load_bundle(project=cast.teine, name="b.zip", content=io.BytesIO(content))
    assert b"".join(bundles.bundle_pieces(cast.teine)) == content
    there = Annotation.objects.filter(campaign__project=cast.teine).order_by("pk")
    assert list(there.values_list("certainty", flat=True)) == [73, None]


def test_the_rubric_says_it_as_a_file_and_in_the_form(cast: Cast) -> None:
    version: RubricVersion = make.rubric(cast.kassa, certainty="optional")
    assert version.asked == {"certainty": "optional"}
    written = cast.client("boris").get(f"/p/kassa/rubrics/{version.rubric.key}/v1.yaml").content
    read = parse_rubric("rubric.yaml", written)
    assert read.document
    assert (read.document.asked["certainty"], read.document.as_dict()) == ("optional", version.document)
    assert fields_of(version.document).as_document()["certainty"] == "optional"
    without = make.rubric(cast.kassa, key="other")
    assert (without.asked["certainty"], "certainty" in without.document) == ("none", False)
    wrong = parse_rubric("rubric.json", json.dumps({**version.document, "certainty": "always"}).encode())
    assert "certainty" in wrong.problems.sentences()[0]
    posted = QueryDict("key=quality&language=en&certainty=required")
    assert posted_fields(posted).as_document()["certainty"] == "required"
    assert rubrics.document_digest(read.document) == version.digest


def test_whoever_never_opened_the_item_says_nothing_of_it(cast: Cast) -> None:
    work = scene.duty(cast, certainty="required")
    assignment = scene.taken(cast, work)
    with pytest.raises(Refused, match="how sure"):
        service.submit(
            assignment=assignment,
            key=assignment.key,
            answers={"fluency": service.Answer(2), "coherence": service.Answer(1)},
            seconds=1,
        )
