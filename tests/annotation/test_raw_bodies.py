"""A file as the body of a request, under the type that its program gives it."""

from __future__ import annotations

import io
import json

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.models import Import, Item
from tests.cast import Cast

ADDRESS = "/api/v1/projects/kassa/imports/"
ROWS = [{"id": "d1", "language": "et", "answer": "Tere!", "scenario": " pakk "}]
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def workbook() -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in (list(ROWS[0]), list(ROWS[0].values())):
        book.active.append(row)  # type: ignore[union-attr]
    book.save(stream)
    return stream.getvalue()


def table() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), stream)
    return stream.getvalue()


CSV = ",".join(ROWS[0]) + "\n" + ",".join(ROWS[0].values()) + "\n"


@pytest.mark.parametrize(
    ("media_type", "query", "body", "name"),
    [
        ("text/csv", "", CSV.encode(), "file.csv"),
        ("text/csv; charset=utf-8", "?name=a.csv", CSV.encode(), "a.csv"),
        ("text/tab-separated-values", "", CSV.replace(",", "\t").encode(), "file.tsv"),
        ("application/json", "?name=a.json", json.dumps(ROWS).encode(), "a.json"),
        ("application/x-ndjson", "", json.dumps(ROWS[0]).encode(), "file.jsonl"),
        ("application/octet-stream", "?name=a.csv", CSV.encode(), "a.csv"),
        ("application/x-www-form-urlencoded", "?name=a.csv", CSV.encode(), "a.csv"),  # curl says so of any body
        (XLSX, "?name=a.xlsx", workbook(), "a.xlsx"),
        ("application/vnd.apache.parquet", "", table(), "file.parquet"),
    ],
)
def test_the_body_is_the_file(cast: Cast, media_type: str, query: str, body: bytes, name: str) -> None:
    boris = cast.client("boris")
    answer = boris.post(f"{ADDRESS}{query}", body, content_type=media_type)
    assert answer.status_code == 201, answer.content
    (kept,) = Import.objects.get(pk=answer.json()["id"]).files.all()
    with kept.content.open("rb") as content:
        assert (kept.name, content.read()) == (name, body)


def test_what_is_neither_a_file_nor_json_is_refused(cast: Cast) -> None:
    boris = cast.client("boris")
    assert boris.post(ADDRESS, b"<a/>", content_type="text/xml").status_code == 415
    assert boris.post(ADDRESS, {"uploads": []}, content_type="application/json").status_code == 400


def test_a_scenario_is_kept_without_outer_spaces(cast: Cast) -> None:
    boris = cast.client("boris")
    answer = boris.post(f"{ADDRESS}?kind=dataset", CSV.encode(), content_type="text/csv")
    assert boris.post(f"{ADDRESS}{answer.json()['id']}/store/").status_code == 200
    assert Item.objects.get().scenario == "pakk"


def test_of_raters_only_email_addresses_are_pointed_out(cast: Cast) -> None:
    boris = cast.client("boris")
    raters = ["A1ERICK9KIM2", "5f1ada20bea71c", "Marta González", "anna_k"]
    rows = "".join(f"d1,{rater},fluency,2\n" for rater in (*raters, "anna@ut.ee"))
    answer = boris.post(
        f"{ADDRESS}?kind=ratings", f"item,rater,criterion,score\n{rows}".encode(), content_type="text/csv"
    )
    notes = " ".join(boris.get(f"{ADDRESS}{answer.json()['id']}/preview/").json()["report"]["notes"])
    assert "called by e-mail addresses: “anna@ut.ee”." in notes
