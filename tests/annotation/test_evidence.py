"""Evidence spans: marked on the desk and by the API, checked, kept through undo and revision, exported and imported."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from analytics.exporting import bundles, exports
from annotation import campaigns
from annotation.desk import service
from annotation.imports import lifecycle, opening, storage, undoing
from annotation.models import Annotation, Draft, EvidenceSpan, Rating
from annotation.readers import InvalidValue, Span, as_spans, item_texts, located_span, span_fault
from tests import make
from tests.annotation import scene
from tests.annotation.scene import FULL, JSON
from tests.cast import Cast

pytestmark = pytest.mark.django_db
TEXT = "Tere! 👩‍🔬 مرحبًا بالعالم\r\nكيف الحال؟ Läks hästi."


def item_of(cast: Cast, *criteria: dict[str, Any]) -> tuple[Any, Client, str]:
    """A duty over one item with TEXT as its first turn; the address of the item on Maarika's desk."""
    row = make.item_row(1, turns=({"speaker": "user", "text": TEXT}, {"speaker": "agent", "text": "Aitäh."}))
    work = scene.duty(cast, items=[row], overlap=2, criteria=criteria)
    client = cast.client("maarika")
    return work, client, scene.next_page(client, work)


def span(text: str, *, turn: int = 0, **parts: Any) -> dict[str, Any]:
    start = TEXT.index(text)
    return {"turn": turn, "start": start, "end": start + len(text), "quote": text, **parts}


def posted(*spans: dict[str, Any], criterion: str = "fluency") -> dict[str, Any]:
    return {**FULL, f"evidence-{criterion}": [json.dumps(each) for each in spans]}


def test_spans_are_kept_in_the_draft_submitted_undone_and_revised(cast: Cast) -> None:
    _work, client, page = item_of(cast)
    woman, arabic = span("👩‍🔬"), span("مرحبًا بالعالم\r\nكيف")
    arabic["quote"] = arabic["quote"].replace("\r\n", "\n")  # as a browser shows it
    client.post(f"{page}draft/", posted(woman, arabic), headers=JSON)
    shown = client.get(page).content.decode()
    assert shown.count('name="evidence-fluency"') == 2 and "data-returns=" in shown
    assert client.post(f"{page}submit/", posted(woman, arabic, woman), headers=JSON).status_code == 200
    stored = list(EvidenceSpan.objects.values_list("turn", "start", "end", "quote"))
    assert stored == [(0, 6, 9, "👩‍🔬"), (0, 10, 29, "مرحبًا بالعالم\r\nكيف")]
    assert not Draft.objects.exists()

    undone = client.post(f"{page}undo/", headers=JSON).json()["next"]
    assert client.get(undone).content.decode().count('name="evidence-fluency"') == 2
    client.post(f"{undone}submit/", posted(woman), headers=JSON)
    current = Annotation.objects.get(superseded_at=None)
    assert [each.quote for each in service.answers_of(current)["fluency"].evidence] == ["👩‍🔬"]
    scores = f"/desk/at/{scene.key_at(undone)}/scores/"
    assert client.get(scores).content.decode().count('name="evidence-fluency"') == 1
    changed = {**posted(span("Tere"), arabic), "key": str(uuid4())}
    assert client.post(scores, changed, headers=JSON).status_code == 200
    assert EvidenceSpan.objects.filter(rating__annotation__revision=3).count() == 2
    # What the first submission marked stays with it: revisions are append-only.
    assert EvidenceSpan.objects.filter(rating__annotation__revision=1).count() == 2
    assert EvidenceSpan.objects.filter(rating__annotation__revision=2).count() == 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"turn": 7, "start": 0, "end": 2, "quote": "Te"}, "does not show"),
        ({"field": "answer", "start": 0, "end": 2, "quote": "Te"}, "does not show"),
        ({"turn": 0, "start": 0, "end": 2, "quote": "Ma"}, "not what the item says"),
        ({"turn": 0, "start": 2, "end": 2, "quote": ""}, "not what the item says"),
        ({"turn": 0, "start": 0, "end": 5_000, "quote": TEXT}, "not what the item says"),
        ({"turn": 0, "start": -1, "end": 2, "quote": "Te"}, "be read"),
        ({"start": "x"}, "be read"),
    ],
)
def test_a_span_that_is_not_in_the_text_is_refused_and_the_draft_stays(
    cast: Cast, wrong: dict[str, Any], sentence: str
) -> None:
    _work, client, page = item_of(cast)
    client.post(f"{page}draft/", posted(span("Tere")), headers=JSON)
    answer = client.post(f"{page}submit/", posted(wrong), headers=JSON)
    assert answer.status_code == 422 and sentence in answer.json()["fields"]["fluency"]
    assert Draft.objects.get().answers["fluency"]["evidence"] == [span("Tere")]
    assert not Annotation.objects.exists()


def test_a_criterion_may_require_evidence_or_take_none(cast: Cast) -> None:
    errors = make.criterion("errors", evidence="required", direction="lower_is_better")
    style = make.criterion("style", evidence="none")
    _work, client, page = item_of(cast, errors, style)
    scores = {"score-errors": "2", "score-style": "1", "seconds": "3"}
    refused = client.post(f"{page}submit/", scores, headers=JSON).json()["fields"]
    assert refused == {"errors": "Mark the text that explains this score."}
    marked = {**scores, "evidence-errors": json.dumps(span("hästi")), "evidence-style": json.dumps(span("Tere"))}
    refused = client.post(f"{page}submit/", marked, headers=JSON).json()["fields"]
    assert refused == {"style": "This criterion takes no evidence. Remove the marked text."}
    shown = client.get(page).content.decode()
    assert 'data-evidence-rule="required"' in shown and shown.count("data-evidence aria-label") == 1
    del marked["evidence-style"]
    assert client.post(f"{page}submit/", marked, headers=JSON).status_code == 200
    best = {"score-errors": "0", "score-style": "1", "seconds": "3"}  # nothing to mark at the best point
    assert client.post(f"{page}undo/", headers=JSON).status_code == 200
    again = scene.next_page(client, _work)
    assert client.post(f"{again}submit/", best, headers=JSON).status_code == 200


def test_an_optional_rule_leaves_digests_of_rubrics_alone(cast: Cast) -> None:
    plain = make.rubric(cast.kassa, make.criterion("tone"), key="plain")
    said = make.rubric(cast.teine, make.criterion("tone", evidence="optional"), key="plain")
    assert said.digest == plain.digest and "evidence" not in plain.document["criteria"][0]
    other = make.rubric(cast.kassa, make.criterion("tone", evidence="none"), key="plain")
    assert other.digest != plain.digest and other.criteria.get().evidence_rule == "none"


def test_the_api_takes_spans_and_refuses_wrong_ones(cast: Cast) -> None:
    work, client, _page = item_of(cast)
    base = f"/api/v1/projects/{cast.kassa.slug}/desk"
    taken = client.post(f"{base}/{work.pk}/take/").json()
    assert {each["evidence"] for each in taken["criteria"]} == {"optional"}

    def submit(*spans: dict[str, Any]) -> Any:
        fluency = {"criterion": "fluency", "score": 1, "evidence": list(spans)}
        answers = [fluency, {"criterion": "coherence", "score": 1}]
        return client.post(f"{base}/at/{taken['key']}/", {"answers": answers}, content_type="application/json")

    refused = submit({"turn": 0, "start": 0, "end": 3, "quote": "abc"})
    assert refused.status_code == 422 and "fluency" in refused.json()["fields"]
    thanks = {"turn": 1, "start": 0, "end": 6, "quote": "Aitäh."}
    assert submit(thanks, {**thanks, "field": "answer"}).status_code == 200  # a turn has no field
    assert list(EvidenceSpan.objects.values_list("turn", "field", "quote")) == [(1, "", "Aitäh.")]


def test_spans_leave_with_the_ratings_and_come_back_equal(cast: Cast) -> None:
    work, client, page = item_of(cast)
    client.post(f"{page}submit/", posted(span("👩‍🔬"), span("بالعالم")), headers=JSON)
    for kind in ("csv", "jsonl", "parquet", "xlsx"):
        export = exports.checked_export(project=cast.kassa, what="ratings", kind=kind, subject=work.campaign)
        content = b"".join(exports.export_pieces(export))
        target = campaigns.open_campaign(
            project=cast.kassa,
            name=f"From {kind}",
            dataset=work.campaign.dataset,
            rubric_version=work.campaign.rubric_version,
        )
        imported(cast, target, f"ratings.{kind}", content)
        spans = EvidenceSpan.objects.filter(rating__annotation__campaign=target)
        assert list(spans.values_list("turn", "field", "start", "end", "quote")) == [
            (0, "", 6, 9, "👩‍🔬"),
            (0, "", 17, 24, "بالعالم"),
        ], kind
    # An import that is undone takes its spans along.
    undoing.undo(file_import=Annotation.objects.filter(campaign=target).first().file_import)  # type: ignore[union-attr, arg-type]
    assert not EvidenceSpan.objects.filter(rating__annotation__campaign=target).exists()


def _only_item() -> Any:
    return make.item_row(1, turns=({"speaker": "user", "text": TEXT}, {"speaker": "agent", "text": "Aitäh."}))


def imported(cast: Cast, target: Any, name: str, content: bytes) -> None:
    file_import = opening.open_import(
        project=cast.kassa, kind="ratings", files=[(name, content)], target={"campaign": target.pk}
    )
    lifecycle.carry_out(file_import=file_import)


def test_a_bundle_has_the_spans(cast: Cast) -> None:
    _work, client, page = item_of(cast)
    client.post(f"{page}submit/", posted(span("Tere")), headers=JSON)
    export = exports.checked_export(project=cast.kassa, what="bundle", subject=cast.kassa)
    content = b"".join(exports.export_pieces(export))
    bundles.load_bundle(project=cast.teine, name="kassa.zip", content=io.BytesIO(content))
    copied = EvidenceSpan.objects.get(rating__annotation__campaign__project=cast.teine)
    assert (copied.turn, copied.start, copied.end, copied.quote) == (0, 0, 4, "Tere")


def test_imported_spans_are_checked_against_the_stored_text(cast: Cast) -> None:
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(["item", "rater", "criterion", "score", "evidence"])
    writer.writerow(["d1", "mari", "fluency", 1, json.dumps([{"start": 0, "end": 4, "text": "Aitä"}])])
    writer.writerow(["d1", "jüri", "fluency", 1, json.dumps([{"turn": 0, "start": 0, "end": 4, "quote": "Aitä"}])])
    target = make.campaign(cast.kassa, items=[_only_item()])
    with pytest.raises(storage.FileRefused) as refused:
        imported(cast, target, "ratings.csv", rows.getvalue().encode())
    (sentence,) = refused.value.problems.sentences()
    assert "line 3, evidence" in sentence and "turn 0 (from 0) from 0 to 4" in sentence
    fixed = "\n".join(rows.getvalue().splitlines()[:2])
    imported(cast, target, "ratings.csv", fixed.encode())
    assert EvidenceSpan.objects.get().turn == 1  # found by its quote


def test_tables_defend_themselves(cast: Cast) -> None:
    _work, client, page = item_of(cast)
    client.post(f"{page}submit/", posted(span("Tere")), headers=JSON)
    rating = Rating.objects.first()
    for wrong in (
        {"turn": 0, "field": "answer", "start": 0, "end": 1},
        {"turn": None, "field": "", "start": 0, "end": 1},
        {"turn": 0, "start": 3, "end": 3},
        {"turn": 0, "start": 0, "end": 4},
    ):
        first = EvidenceSpan.objects.get().rating if wrong == {"turn": 0, "start": 0, "end": 4} else rating
        with pytest.raises(IntegrityError), transaction.atomic():
            EvidenceSpan.objects.create(rating=first, quote="x", **wrong)


# --- pure ------------------------------------------------------------------------------------------------------------
def test_offsets_are_code_points_of_the_stored_text() -> None:
    texts = item_texts([{"speaker": "user", "text": TEXT}], {"passages": ["one", "two"]})
    assert texts["passages"] == "one\n\ntwo"
    assert span_fault(Span(5, 8, field="passages", quote="two"), texts) == ""
    assert span_fault(Span(6, 9, turn=0, quote="👩‍🔬"), texts) == ""
    assert span_fault(Span(6, 8, turn=0, quote="👩‍🔬"), texts) == "quote"


def test_spans_of_other_tools_are_read_and_placed() -> None:
    texts = item_texts([], {"source": "a b", "answer": "c d"})
    (found,) = as_spans('[{"start_offset": 0, "end_offset": 1, "labels": ["Accuracy"], "text": "c"}]')
    assert located_span(found, texts) == Span(0, 1, None, "answer", "c", "Accuracy")
    with pytest.raises(InvalidValue, match="the turn or the field"):
        located_span(Span(0, 1), texts)
    with pytest.raises(InvalidValue):
        as_spans('[{"start": 1.5, "end": 2}]')
