"""Files that come together, mappings that are kept, and what is downloaded from an import's page."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation import tasks
from annotation.imports import uploads
from annotation.models import Dataset, Import, Rating, SavedMapping, Upload
from tests import make
from tests.cast import Cast
from tests.judging import made_up

ITEMS = '{"id": "d1", "language": "et", "question": "Kus?"}\n{"id": "d2", "language": "et", "question": "Millal?"}\n'
LABELS = "item,rater,criterion,score\nd1,A1,fluency,3\nd2,A1,fluency,2\n"
BOTH = "".join(
    json.dumps({"id": f"d{n}", "language": "et", "question": "?", "ratings": [{"rater": "A1", "score": n}]}) + "\n"
    for n in (1, 2)
)
API = "/api/v1/projects/kassa"


def file(name: str, text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def arrived(cast: Cast, name: str, text: str) -> str:
    """A file that came in by chunks; its key."""
    begun = uploads.begin_upload(project=cast.kassa, name=name, size=len(text.encode()), actor=cast.boris)
    return str(uploads.append_part(upload=begun, offset=0, chunk=text.encode()).key)


def page(client: Client, file_import: Import) -> str:
    return client.get(f"/p/kassa/imports/{file_import.pk}/", follow=True).content.decode()


def test_items_and_labels_of_one_upload_become_two_imports_that_find_each_other(cast: Cast) -> None:
    make.rubric(cast.kassa)
    boris = cast.client("boris")
    keys = [arrived(cast, "labels.csv", LABELS), arrived(cast, "items.jsonl", ITEMS)]
    answer = boris.post("/p/kassa/imports/new/", {"upload": keys}, follow=True)
    dataset, ratings = Import.objects.order_by("pk")
    assert (dataset.kind, ratings.kind, ratings.target) == ("dataset", "ratings", {})
    assert answer.redirect_chain[-1][0] == f"/p/kassa/imports/{dataset.pk}/"
    assert "Uploaded together" in answer.content.decode() and "labels.csv" in answer.content.decode()
    assert not Upload.objects.exists()

    boris.post(f"/p/kassa/imports/{dataset.pk}/store/")
    ratings.refresh_from_db()
    assert ratings.target["dataset"] == Dataset.objects.get().pk
    assert "What would be stored" in page(boris, ratings)
    boris.post(f"/p/kassa/imports/{ratings.pk}/store/")
    assert Rating.objects.count() == 2


def test_uploaded_files_are_taken_over_once_and_only_whole(cast: Cast) -> None:
    boris = cast.client("boris")
    begun = uploads.begin_upload(project=cast.kassa, name="half.jsonl", size=100, actor=cast.boris)
    half = boris.post(f"{API}/imports/", {"uploads": [str(begun.key)]}, content_type="application/json")
    assert (half.status_code, half.json()["code"]) == (409, "not_whole")
    key = arrived(cast, "items.jsonl", ITEMS)
    foreign = cast.client("aino").post(f"{API}/imports/", {"uploads": [key]}, content_type="application/json")
    assert (foreign.status_code, foreign.json()["code"]) == (409, "gone")
    made = boris.post(f"{API}/imports/", {"uploads": [key], "kind": "dataset"}, content_type="application/json")
    assert (made.status_code, made.json()["files"][0]["size"]) == (201, len(ITEMS))
    again = boris.post(f"{API}/imports/", {"uploads": [key]}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "gone")
    assert boris.post("/p/kassa/imports/new/", {"upload": ["nonsense"]}).status_code == 200
    assert "Choose at least one file" in boris.post("/p/kassa/imports/new/", {"kind": "dataset"}).content.decode()


def test_ratings_inside_the_items_are_imported_of_the_same_file(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    make.rubric(cast.kassa, make.criterion("ratings"))
    boris = cast.client("boris")
    boris.post("/p/kassa/imports/new/", {"files": [file("both.jsonl", BOTH)], "kind": "dataset"})
    dataset = Import.objects.get()
    form = {"kind": "dataset", "column": ["id", "language", "question", "ratings"]}
    boris.post(
        f"/p/kassa/imports/{dataset.pk}/map/", {**form, "field": ["id", "language", "question", "ratings.ratings"]}
    )
    assert "This file also contains 2 ratings." in page(boris, dataset)
    boris.post(f"/p/kassa/imports/{dataset.pk}/also/", {"kind": "ratings"})
    ratings = Import.objects.get(kind="ratings")
    shared = ratings.files.get()
    assert shared.content.name == dataset.files.get().content.name
    assert "This file also contains" not in page(boris, dataset)
    assert (
        boris.post(f"{API}/imports/{dataset.pk}/also/", {"kind": "dataset"}, content_type="application/json").json()[
            "code"
        ]
        == "same_kind"
    )

    with django_capture_on_commit_callbacks(execute=True):
        boris.post(f"/p/kassa/imports/{dataset.pk}/discard/")
    assert default_storage.exists(str(shared.content.name)), "the other import has it too"
    with django_capture_on_commit_callbacks(execute=True):
        boris.post(f"/p/kassa/imports/{ratings.pk}/discard/")
    assert not default_storage.exists(str(shared.content.name))


def test_a_mapping_is_kept_under_a_name_and_used_again(cast: Cast) -> None:
    boris, aino = cast.client("boris"), cast.client("aino")
    odd = "nr,keel,tekst\n1,et,Tere!\n"
    boris.post("/p/kassa/imports/new/", {"files": [file("odd.csv", odd)]})
    first = Import.objects.get()
    form = {"kind": "dataset", "column": ["nr", "keel", "tekst"], "field": ["id", "language", "answer"]}
    boris.post(f"/p/kassa/imports/{first.pk}/map/", form)
    boris.post(f"/p/kassa/imports/{first.pk}/save-mapping/", {"name": "Odd ones"})
    taken = boris.post(f"/p/kassa/imports/{first.pk}/save-mapping/", {"name": "Odd ones"}, follow=True)
    assert "Choose another name" in taken.content.decode()

    aino.post("/p/kassa/imports/new/", {"files": [file("more.csv", odd)]})
    second = Import.objects.latest("pk")
    saved = SavedMapping.objects.get()
    assert "Odd ones" in aino.get(f"/p/kassa/imports/{second.pk}/mappings/").text
    aino.post(f"/p/kassa/imports/{second.pk}/map/", {"mapping_of": f"saved-{saved.pk}"})
    assert "What would be stored" in page(aino, second)

    written = aino.get(f"/p/kassa/mappings/{saved.pk}.yaml").content.decode()
    upload = {"name": "From elsewhere", "kind": "dataset", "file": file("m.yaml", written)}
    aino.post("/p/kassa/mappings/", upload)
    assert SavedMapping.objects.get(name="From elsewhere").mapping == saved.mapping
    wrong = aino.post("/p/kassa/mappings/", {**upload, "name": "Wrong", "file": file("m.yaml", "colums: {}")})
    assert "did you mean columns?" in wrong.content.decode()
    again = aino.post(f"/p/kassa/mappings/{saved.pk}/rename/", {"name": "From elsewhere"}, follow=True)
    assert "Choose another name" in again.content.decode()
    aino.post(f"/p/kassa/mappings/{saved.pk}/rename/", {"name": " Odd, but known "})
    assert SavedMapping.objects.get(pk=saved.pk).name == "Odd, but known"
    aino.post(f"/p/kassa/mappings/{saved.pk}/delete/")
    assert [each.name for each in SavedMapping.objects.all()] == ["From elsewhere"]


def test_mappings_are_kept_by_api_too(cast: Cast) -> None:
    boris = cast.client("boris")
    said = {"name": "Mine", "kind": "ratings", "mapping": {"columns": {"who": "rater"}}}
    made = boris.post(f"{API}/mappings/", said, content_type="application/json")
    assert made.status_code == 201
    assert boris.post(f"{API}/mappings/", said, content_type="application/json").status_code == 422
    assert boris.get(f"{API}/mappings/").json()["results"][0]["mapping"] == {"columns": {"who": "rater"}}
    wrong = boris.post(f"{API}/mappings/", {**said, "mapping": {"colums": {}}}, content_type="application/json")
    assert wrong.status_code == 400
    address = f"{API}/mappings/{made.json()['id']}/"
    assert boris.get(address).json()["name"] == "Mine"
    anew = {"name": "Yours", "kind": "verdicts", "mapping": {"columns": {"who": "judge"}}}
    assert boris.put(address, anew, content_type="application/json").json()["name"] == "Yours"
    assert boris.get(address).json()["mapping"] == {"columns": {"who": "judge"}}
    assert (boris.delete(address).status_code, boris.get(address).status_code) == (204, 404)


def test_problems_are_a_table_that_no_spreadsheet_runs(cast: Cast) -> None:
    make.campaign(cast.kassa)
    boris = cast.client("boris")
    text = LABELS.replace("d2,A1,fluency,2", "=1+1,A1,fluency,2") + "d1,A2,fluency,9\n"
    boris.post("/p/kassa/imports/new/", {"files": [file("=labels.csv", text)]})
    file_import = Import.objects.get()
    assert "Off the scale" in page(boris, file_import)
    answer = boris.get(f"/p/kassa/imports/{file_import.pk}/problems.csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["file"], row["line"], row["code"]) for row in rows] == [
        ("'=labels.csv", "3", "unknown_item"),
        ("'=labels.csv", "4", "off_scale"),
    ]


@pytest.mark.parametrize("who", ["maarika", "zoltan"])
def test_mappings_are_nobody_elses_business(cast: Cast, who: str) -> None:
    boris, other = cast.client("boris"), cast.client(who)
    boris.post(f"{API}/mappings/", {"name": "M", "kind": "ratings", "mapping": {}}, content_type="application/json")
    saved = SavedMapping.objects.get()
    pages = ["mappings/", f"mappings/{saved.pk}.yaml"]
    assert {other.get(f"/p/kassa/{each}").status_code for each in pages} == {{"maarika": 403, "zoltan": 404}[who]}
    assert other.post(f"/p/teine/mappings/{saved.pk}/delete/").status_code in (403, 404)
    assert SavedMapping.objects.exists()


def test_a_zip_of_several_kinds_of_files_is_no_one_import(cast: Cast) -> None:
    boris, packed = (
        cast.client("boris"),
        made_up.zip_archive({"items.jsonl": ITEMS.encode(), "labels.csv": LABELS.encode()}),
    )
    sent = {"files": SimpleUploadedFile("both.zip", packed)}
    unread = boris.post(f"{API}/imports/", sent).json()
    assert unread["state"] == "checking"
    tasks.open_packed(unread["id"])
    refused = boris.get(f"{API}/imports/{unread['id']}/").json()
    assert refused["state"] == "failed"
    assert "both.zip/study/items.jsonl (Dataset), both.zip/study/labels.csv (Ratings)" in refused["report"]["sentence"]
    assert "several kinds" in page(boris, Import.objects.get())
    told = boris.post(f"{API}/imports/", {"files": SimpleUploadedFile("both.zip", packed), "kind": "ratings"})
    assert told.status_code == 201
