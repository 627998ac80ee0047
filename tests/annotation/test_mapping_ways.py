"""One file and one mapping give the same rows, whichever way they come: page, API or command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.imports import undoing
from annotation.models import Dataset, Import, Item
from annotation.readers.mapping import Mapping
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.cast import Cast

QUESTIONS = "id,language,question,answer,note\n" + "".join(f"d{n},et,Küsimus {n}?,Vastus {n}.,n{n}\n" for n in range(5))
CHATS = 'nr,lang,chat,who\n1,en,"User: Hi\nBot: Hello",m1\n2,en,"User: Bye\nBot: So long",m2\n'


def digests(dataset: Dataset) -> list[tuple[str, str]]:
    return list(Item.objects.of(dataset).order_by("external_id").values_list("external_id", "digest"))


def by_page(client: Client, name: str, raw: bytes, said: Mapping) -> list[tuple[str, str]]:
    file_import = uploaded(client, SimpleUploadedFile(name, raw), kind="dataset")
    client.post(f"/p/kassa/imports/{file_import.pk}/map/", {"yaml": said.as_yaml()})
    return stored(client, file_import)


def by_page_and_download(client: Client, name: str, raw: bytes, said: Mapping) -> list[tuple[str, str]]:
    """Said on the page's table, the mapping downloaded, and brought again with the file by another import."""
    file_import = uploaded(client, SimpleUploadedFile(name, raw), kind="dataset")
    client.post(f"/p/kassa/imports/{file_import.pk}/map/", {"yaml": said.as_yaml()})
    written = client.get(f"/p/kassa/imports/{file_import.pk}/mapping.yaml").content.decode()
    return by_page(client, name, raw, Mapping.from_yaml("mapping.yaml", written))


def by_patch(client: Client, name: str, raw: bytes, said: Mapping) -> list[tuple[str, str]]:
    sent = {"files": [SimpleUploadedFile(name, raw)], "kind": "dataset"}
    number = client.post("/api/v1/projects/kassa/imports/", sent).json()["id"]
    changed = json.dumps({"mapping": said.as_dict()})
    client.patch(f"/api/v1/projects/kassa/imports/{number}/", changed, content_type="application/json")
    return stored_by_api(client, number)


def by_upload(client: Client, name: str, raw: bytes, said: Mapping) -> list[tuple[str, str]]:
    sent = {"files": [SimpleUploadedFile(name, raw)], "kind": "dataset", "mapping": json.dumps(said.as_dict())}
    return stored_by_api(client, client.post("/api/v1/projects/kassa/imports/", sent).json()["id"])


def stored(client: Client, file_import: Import) -> list[tuple[str, str]]:
    client.post(f"/p/kassa/imports/{file_import.pk}/store/")
    found = digests(Dataset.objects.get(file_import=file_import))
    undoing.undo(file_import=Import.objects.get(pk=file_import.pk))
    return found


def stored_by_api(client: Client, number: int) -> list[tuple[str, str]]:
    answer = client.post(f"/api/v1/projects/kassa/imports/{number}/store/")
    assert answer.status_code == 200, answer.content
    found = digests(Dataset.objects.get(file_import=number))
    undoing.undo(file_import=Import.objects.get(pk=number))
    return found


def by_command(folder: Path, name: str, raw: bytes, said: Mapping) -> list[tuple[str, str]]:
    (folder / name).write_bytes(raw)
    (folder / "mapping.yaml").write_text(said.as_yaml(), encoding="utf-8")
    told = run("import_dataset", folder / name, "--mapping", folder / "mapping.yaml")
    assert told.status == 0, told.problems
    return digests(Dataset.objects.latest("pk"))


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "one column said": ("q.csv", QUESTIONS, {"columns": {"answer": "answer"}}),
    "another field said": ("q.csv", QUESTIONS, {"columns": {"note": "answer"}}),
    "a column left out": ("q.csv", QUESTIONS, {"ignore": ["note"]}),
    "a column kept as an attribute": ("q.csv", QUESTIONS, {"unmapped": ["question"]}),
    "turns in one text": ("c.csv", CHATS, {"columns": {"chat": "turns", "who": "generator"}}),
}


@pytest.mark.parametrize("case", CASES)
def test_page_api_and_command_store_equal_rows(cast: Cast, tmp_path: Path, case: str) -> None:
    name, text, words = CASES[case]
    boris, raw, said = cast.client("boris"), text.encode(), Mapping.from_dict(words)
    ways = (by_page, by_page_and_download, by_patch, by_upload)
    found = [way(boris, name, raw, said) for way in ways]
    found.append(by_command(tmp_path, name, raw, said))
    assert len(found[0]) in (2, 5) and all(each == found[0] for each in found)


def test_the_table_of_a_page_and_its_download_store_equal_rows(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("q.csv", QUESTIONS))
    form = {"kind": "dataset", "name": "", "column": ["id", "language", "question", "answer", "note"]}
    boris.post(
        f"/p/kassa/imports/{file_import.pk}/map/", form | {"field": ["id", "language", "", "question", "ignore"]}
    )
    written = boris.get(f"/p/kassa/imports/{file_import.pk}/mapping.yaml").content.decode()
    said = Mapping.from_yaml("mapping.yaml", written)
    found = stored(boris, file_import)
    assert found == by_command(tmp_path, "q.csv", QUESTIONS.encode(), said)
    item = Item.objects.get(external_id="d1")
    assert (item.fields, item.attributes) == ({"question": "Vastus 1."}, {"question": "Küsimus 1?"})


def test_the_guess_is_shown_by_every_way(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    number = boris.post("/api/v1/projects/kassa/imports/", {"files": [file("q.csv", QUESTIONS)]}).json()["id"]
    said = json.dumps({"mapping": {"columns": {"answer": "answer"}}})
    boris.patch(f"/api/v1/projects/kassa/imports/{number}/", said, content_type="application/json")
    seen = boris.get(f"/api/v1/projects/kassa/imports/{number}/preview/").json()
    assert seen["mapping"]["columns"] == {name: name for name in ("id", "language", "question", "answer")}
    assert '<option value="question" selected>' in page(boris, f"/p/kassa/imports/{number}/")
    (tmp_path / "q.csv").write_text(QUESTIONS, encoding="utf-8")
    told = run("import_dataset", tmp_path / "q.csv", "--map", "answer=answer", "--dry-run")
    assert "guessed: {columns: {id: id, language: language, question: question}}" in told.lines


def test_ready_mappings_are_laid_over_the_guess_too(cast: Cast) -> None:
    boris = cast.client("boris")
    make.campaign(cast.kassa)
    file_import = uploaded(boris, file("scores.csv", "item,rater,criterion,value,why\nd1,A1,fluency,3,x\n"))
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"yaml": "columns: {why: rationale}"})
    columns = Import.objects.get(pk=file_import.pk).mapping["columns"]
    assert columns == {"item": "item", "rater": "rater", "criterion": "criterion", "value": "score", "why": "rationale"}


# --- choices that survive -------------------------------------------------------------------------------------------
TURNS = "chat,nr,who,said\na,1,user,Hi\na,2,bot,Hello\nb,1,user,Bye\n"


def test_choices_survive_any_order(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("turns.csv", TURNS))
    address = f"/p/kassa/imports/{file_import.pk}/map/"
    form: dict[str, Any] = {"kind": "dataset", "name": "", "column": ["chat", "nr", "who", "said"]}
    boris.post(address, form | {"field": ["", "", "turn.speaker", "turn.text"], "constant-language": "en"})
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert "turns without an id of their dialogue" in shown
    for column in form["column"]:
        assert f'name="column" value="{column}"' in shown
    assert '<option value="turn.text" selected>' in shown
    boris.post(address, form | {"field": ["id", "turn.number", "turn.speaker", "turn.text"]})
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert sorted(len(item.turns) for item in Item.objects.all()) == [1, 2]


def test_choices_survive_a_fault(cast: Cast) -> None:
    """A file that can't be read to its first row, because of what was said of it, keeps its table."""
    boris = cast.client("boris")
    file_import = uploaded(boris, file("turns.csv", TURNS))
    form: dict[str, Any] = {"kind": "dataset", "name": "", "column": ["chat", "nr", "who", "said"]}
    form["field"] = ["id", "turn.number", "turn.speaker", "turn.text"]
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"constant-language": "en"})
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"encoding": "utf_16"})
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert 'name="column" value="said"' in shown and '<option value="turn.text" selected>' in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"encoding": ""})
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert Item.objects.count() == 2


DOUBTFUL = "id,language,answer,annotator_id,severity\n" + "".join(
    f"Mis on minu pakk number {number}?,et,Vastus {number}.,a{number},2\n" for number in range(3)
)


def test_columns_that_seem_mapped_wrongly_are_named_by_page_api_and_command(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("doubtful.csv", DOUBTFUL), kind="dataset")
    (tmp_path / "doubtful.csv").write_text(DOUBTFUL, encoding="utf-8")
    seen = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/").json()
    by_command = run("import_dataset", tmp_path / "doubtful.csv", "--dry-run")
    reports = [
        page(boris, f"/p/kassa/imports/{file_import.pk}/"),
        *map(" ".join, (seen["report"]["notes"], by_command.lines)),
    ]
    for report in reports:
        assert "The column id gives the id, but its values are sentences" in report
        assert "look like ratings become attributes of the items: annotator_id, severity" in report
    sound = uploaded(boris, file("sound.csv", QUESTIONS))
    notes = boris.get(f"/api/v1/projects/kassa/imports/{sound.pk}/preview/").json()["report"]["notes"]
    assert not any("sentences" in note or "look like" in note for note in notes)


PAIRS = "id,language,prompt,output_1,output_2\nq1,et,Küsimus?,Vastus üks.,Vastus kaks.\nq2,et,Miks?,Sest nii.,Ei tea.\n"


def test_two_outputs_side_by_side_are_offered_as_a_pair_or_as_items(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("pairs.csv", PAIRS), kind="dataset")
    address = f"/p/kassa/imports/{file_import.pk}/"
    notes = boris.get(f"/api/v1/projects/kassa{address.removeprefix('/p/kassa')}preview/").json()["report"]["notes"]
    (note,) = [note for note in notes if "look like two outputs" in note]
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    assert note in "\n".join(run("import_dataset", tmp_path / "pairs.csv", "--dry-run").lines)
    assert "The columns output_1 and output_2 look like two outputs" in page(boris, address)
    # As a pair, chosen in the table of the page.
    form = {"kind": "dataset", "name": "", "column": ["output_1", "output_2"], "field": ["passage_a", "passage_b"]}
    boris.post(f"{address}map/", form)
    assert "look like two outputs" not in page(boris, address)
    boris.post(f"{address}store/")
    pair = Item.objects.get(external_id="q1").fields
    assert pair == {"question": "Küsimus?", "passage_a": "Vastus üks.", "passage_b": "Vastus kaks."}
    undoing.undo(file_import=Import.objects.get(pk=file_import.pk))
    # As items, by the mapping that the note gives.
    offered = Mapping.from_yaml("mapping.yaml", note.partition("add to the mapping: ")[2])
    by_command(tmp_path, "pairs.csv", PAIRS.encode(), offered)
    items = {item.external_id: (item.generator, item.fields) for item in Item.objects.all()}
    assert items["q1-2"] == ("2", {"question": "Küsimus?", "answer": "Vastus kaks."}) and len(items) == 4
