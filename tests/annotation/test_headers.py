"""Tables whose first row does not name their columns, and text in other encodings: brought in as they are, by page, API
and command."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation import tasks
from annotation.models import Import, Item
from annotation.readers.mapping import Mapping
from judging.models import Verdict
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.annotation.test_mapping_ways import by_command, by_page, by_patch, by_upload
from tests.cast import Cast

ROWS = "d1,en,One.\nd2,en,Two.\n"
# Name, content, and what has to be said.
TABLES: dict[str, tuple[bytes, dict[str, object]]] = {
    "index of pandas": (b",id,language,answer\n0,d1,en,One.\n1,d2,en,Two.\n", {}),
    "trailing separator": (b"id,language,answer,\nd1,en,One.,\nd2,en,Two.,\n", {}),
    "trailing separator of the rows alone": (b"id,language,answer\nd1,en,One.,\nd2,en,Two.,\n", {}),
    "title": (b"Results of 2024\nid,language,answer\n" + ROWS.encode(), {}),
    "title that a spreadsheet wrote": (b"Results of 2024,,\n,,\nid,language,answer\n" + ROWS.encode(), {}),
    "title of two cells": (b"Results,2024,\nid,language,answer\n" + ROWS.encode(), {"header_row": 2}),
    "other names": (b"a,b,c\n" + ROWS.encode(), {"header": ["id", "language", "answer"], "header_row": 1}),
    "the same names": (b"id,language,answer\n" + ROWS.encode(), {"header": ["id", "language", "answer"]}),
    "unnamed column": (b"id,language,\n" + ROWS.encode(), {"columns": {"(column 3)": "answer"}}),
    "short rows": (b"id,language,answer,note,more\n" + ROWS.encode(), {"short_rows": True, "ignore": ["note", "more"]}),
}
TABLES["legacy encoding"] = ("id,language,answer\nd1,es,¿Cómo está?\nd2,es,Mañana señor.\n".encode("cp1252"), {})


@pytest.mark.parametrize("case", TABLES)
def test_tables_without_names_in_their_first_row_come_in_by_every_way(cast: Cast, tmp_path: Path, case: str) -> None:
    raw, words = TABLES[case]
    boris, said = cast.client("boris"), Mapping.from_dict(words)
    found = [way(boris, "table.csv", raw, said) for way in (by_page, by_patch, by_upload)]
    found.append(by_command(tmp_path, "table.csv", raw, said))
    assert [name for name, _digest in found[0]] == ["d1", "d2"] and all(each == found[0] for each in found)
    item = Item.objects.get(external_id="d2")
    assert (item.fields["answer"], item.attributes) == ("Mañana señor." if case == "legacy encoding" else "Two.", {})


def test_the_row_of_the_names_is_chosen_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", "Results,2024,\nid,language,answer\n" + ROWS))
    assert '<option value="2" >2: id · language · answer</option>' in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "dataset", "name": "", "header_row": "2"})
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert '<option value="answer" selected>' in shown and "the header is row 2" in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert Item.objects.count() == 2


def test_a_column_without_a_name_is_mapped_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", "id,language,\n" + ROWS))
    assert 'name="column" value="(column 3)"' in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    form = {"kind": "dataset", "name": "", "column": ["(column 3)"], "field": ["answer"]}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert [item.fields for item in Item.objects.order_by("external_id")] == [{"answer": "One."}, {"answer": "Two."}]


def test_a_column_without_a_name_is_given_one_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", "id,language,answer,\nd1,en,One.,blue\nd2,en,Two.,red\n"))
    assert 'name="attribute-(column 4)"' in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    form = {"kind": "dataset", "name": "", "column": ["(column 4)"], "field": [""], "attribute-(column 4)": " colour "}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert 'name="attribute-(column 4)" value="colour"' in shown
    # Chosen as something else, it has no use for a name; and back.
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"field": ["title"]})
    assert Import.objects.get().mapping["columns"]["(column 4)"] == "title"
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"field": ["attributes.x"]})
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert [item.attributes for item in Item.objects.order_by("external_id")] == [{"colour": "blue"}, {"colour": "red"}]


def test_the_row_of_the_names_is_chosen_for_verdicts_too(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    boris = cast.client("boris")
    table = "Verdicts of 2024,,,x\nitem,judge,criterion,score\nd1,J,fluency,1\n"
    file_import = uploaded(boris, file("v.csv", table), kind="verdicts")
    address = f"/p/kassa/verdict-imports/{file_import.pk}/"
    assert '<option value="2" >2: item · judge · criterion · score</option>' in page(boris, address)
    target = {"dataset": campaign.dataset_id, "rubric_version": campaign.rubric_version_id}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "verdicts", "header_row": "2", **target})
    assert '<option value="2" selected>' in page(boris, address)
    boris.post(f"{address}store/")
    assert Verdict.objects.get().score == 1


def test_a_value_in_a_blank_column_without_a_name_is_refused(tmp_path: Path, cast: Cast) -> None:
    (tmp_path / "t.csv").write_text(
        "id,language,answer,\n" + "".join(f"d{n},en,x,\n" for n in range(9)) + "d9,en,x,y\n"
    )
    told = run("import_dataset", tmp_path / "t.csv")
    assert told.status == 1 and told.problems[0].startswith("t.csv, line 11, (column 4): found “y” in column 4")


def test_a_workbook_with_a_merged_title_is_read_from_its_header(cast: Cast) -> None:
    boris = cast.client("boris")
    rows = [["Results of 2024"], [], ["id", "language", "answer"], ["d1", "en", "One."], ["d2", "en", "Two."]]
    book = make.workbook({"Data": rows, "Notes": [["x"], ["y"]]})
    file_import = uploaded(boris, SimpleUploadedFile("book.xlsx", book))
    tasks.open_packed(file_import.pk)
    tasks.check_import(file_import.pk)
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert "<option >Data</option><option >Notes</option>" in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "dataset", "name": "", "sheet": "Data"})
    tasks.open_packed(file_import.pk)
    tasks.check_import(file_import.pk)
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert '<option value="3" selected>3: id · language · answer</option>' in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    tasks.store_import(file_import.pk, cast.boris.pk)
    assert Item.objects.count() == 2


def test_ids_that_look_rounded_are_vouched_for_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", "id,language,answer\n7e1,en,One.\n7e2,en,Two.\n"))
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert 'name="trust_ids"' in shown and "can't be stored yet" in shown
    form = {"kind": "dataset", "name": "", "trust_ids": "on", "column": ["id", "language", "answer"]}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"field": ["id", "language", "answer"]})
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert sorted(item.external_id for item in Item.objects.all()) == ["7e1", "7e2"]


def test_a_batch_of_mechanical_turk_before_its_review(cast: Cast, tmp_path: Path) -> None:
    head = '"HITId","AssignmentId","WorkerId","Input.item","Answer.fluency","Approve","Reject"\n'
    batch = head + "".join(f'"h{n}","a{n}","W{n}","d1","{n % 4}"\n' for n in range(34))
    (tmp_path / "Batch_1_batch_results.csv").write_text(batch, encoding="utf-8")
    make.campaign(cast.kassa)
    said = ("--map", "Input.item=item", "Answer.fluency=score.fluency", "--dry-run")
    told = run("import_ratings", tmp_path / "Batch_1_batch_results.csv", *said)
    assert "too_few" not in "".join(told.problems) and "read: 34" in told.lines
    assert any("34 rows lack their last cells" in line for line in told.lines)
