"""Items added to a dataset make a new version: the same rows and more, the earlier version as it was."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.refusals import Refused
from annotation.imports import storage, undoing
from annotation.imports.storage import FileRefused
from annotation.models import Dataset, Import, Item
from tests import make
from tests.cast import Cast


def names(dataset: Dataset) -> list[str]:
    return list(Item.objects.of(dataset).values_list("external_id", flat=True))


def rows(*numbers: int) -> list[Any]:
    return [make.item_row(number) for number in numbers]


def test_a_version_has_the_rows_of_the_one_before_and_its_own(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 2)
    before = list(Item.objects.of(first).values())
    second = storage.append_items(dataset=first, items=rows(3, 1, 4))
    third = storage.append_items(dataset=second, items=rows(5))
    assert (str(second), second.extends, str(third)) == ("Dialogues v2", first, "Dialogues v3")
    assert (names(first), names(second)) == (["d1", "d2"], ["d1", "d2", "d3", "d4"])
    assert names(third) == ["d1", "d2", "d3", "d4", "d5"]
    assert [item.ordinal for item in Item.objects.of(third)] == [0, 1, 2, 3, 4]
    assert (Item.objects.count(), list(Item.objects.of(first).values())) == (5, before)
    sized = {each.version: (each.items_count, each.added) for each in Dataset.objects.sized()}
    assert sized == {1: (2, 2), 2: (4, 2), 3: (5, 1)}


def test_another_item_of_a_known_id_is_refused_by_id_and_version(cast: Cast) -> None:
    second = storage.append_items(dataset=make.dataset(cast.kassa, 1), items=rows(2))
    with pytest.raises(FileRefused) as refused:
        storage.append_items(
            dataset=second, items=[make.item_row(3), make.item_row(2, title="Teine"), make.item_row(1, title="?")]
        )
    assert [problem.found for problem in refused.value.problems] == [
        "“d2”, which is another item in Dialogues v2",
        "“d1”, which is another item in Dialogues v1",
    ]
    assert (Dataset.objects.count(), Item.objects.count()) == (2, 2)


def test_nothing_new_and_an_older_version_are_refused(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 2)
    with pytest.raises(Refused, match="All items are already in “Dialogues v1”"):
        storage.append_items(dataset=first, items=rows(1, 2))
    storage.append_items(dataset=first, items=rows(3))
    with pytest.raises(Refused, match="Add the items to “Dialogues v2”"):
        storage.append_items(dataset=first, items=rows(4))
    assert Dataset.objects.count() == 2


def test_of_two_appends_at_once_one_is_stored_and_the_other_can_start_again(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 1)

    def meanwhile() -> Any:
        yield make.item_row(2)
        storage.append_items(dataset=first, items=rows(3))

    with pytest.raises(Refused, match="at the same time") as refused:
        storage.append_items(dataset=first, items=meanwhile())
    assert refused.value.code == "extended_meanwhile"
    newest = Dataset.objects.holding(first).get(extends=first)
    assert (names(newest), Dataset.objects.filter(state="loading").count()) == (["d1", "d3"], 0)
    assert names(storage.append_items(dataset=newest, items=rows(2, 3))) == ["d1", "d3", "d2"]


def test_an_append_under_way_is_seen_nowhere(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 1)

    def looking() -> Any:
        yield make.item_row(2)
        assert names(first) == ["d1"]
        assert Dataset.objects.visible_to(cast.aino).get() == first == Dataset.objects.holding(first).get()
        assert b"v2" not in cast.client("aino").get("/p/kassa/datasets/").content

    assert names(storage.append_items(dataset=first, items=looking())) == ["d1", "d2"]


def test_a_dataset_of_one_part_is_read_by_one_plain_query(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 2)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        names(Dataset.objects.get(pk=first.pk))
    assert len(asked) == 2
    assert "JOIN" not in asked[1]["sql"]
    assert "SELECT" not in asked[1]["sql"].partition("WHERE")[2]


def stored_by_api(cast: Cast, lines: list[dict[str, Any]], **target: Any) -> tuple[Any, Any]:
    """An import by API: the answers of looking and of storing."""
    client = cast.client("boris")
    body = b"\n".join(orjson.dumps(line) for line in lines)
    address = f"/api/v1/projects/kassa/imports/?name=d.jsonl&kind=dataset&target={orjson.dumps(target).decode()}"
    opened = client.post(address, body, content_type="application/octet-stream").json()
    there = f"/api/v1/projects/kassa/imports/{opened['id']}/"
    return client.get(f"{there}preview/").json(), client.post(f"{there}store/")


def line(number: int, question: str = "Kas?") -> dict[str, Any]:
    return {"id": f"q{number}", "language": "et", "question": question}


def test_items_are_added_by_api_looked_at_before_and_taken_back(cast: Cast) -> None:
    stored_by_api(cast, [line(1), line(2)], name="Küsimused", licence="CC BY 4.0")
    first = Dataset.objects.get()
    seen, refused = stored_by_api(cast, [line(1), line(2, "Miks?"), line(3)], extends=first.pk)
    assert (seen["report"]["stored"], seen["report"]["collapsed"], seen["report"]["refused"]) == (1, 1, 1)
    (problem,) = seen["problems"]
    assert (problem["line"], problem["column"]) == (2, "id")
    assert problem["found"] == "“q2”, which is another item in Küsimused v1"
    assert (refused.status_code, Dataset.objects.count()) == (422, 1)
    seen, stored = stored_by_api(cast, [line(2), line(3)], extends=first.pk)
    assert (seen["report"]["stored"], seen["report"]["collapsed"], seen["problems"]) == (1, 1, [])
    assert stored.status_code == 200
    second = Dataset.objects.get(extends=first)
    assert (str(second), second.licence, names(second)) == ("Küsimused v2", "CC BY 4.0", ["q1", "q2", "q3"])
    # Whoever still says the first version adds to the newest.
    _seen, stored = stored_by_api(cast, [line(3), line(4)], extends=first.pk)
    third = Dataset.objects.get(extends=second)
    assert names(third) == ["q1", "q2", "q3", "q4"]
    address = f"/api/v1/projects/kassa/imports/{second.file_import_id}/undo/"
    in_the_way = cast.client("boris").post(address)
    assert in_the_way.status_code == 409
    assert "Küsimused v2” is in use by 1 dataset" in in_the_way.json()["detail"]
    for version in (third, second):
        undoing.undo(file_import=Import.objects.get(pk=version.file_import_id))
    assert (Dataset.objects.get(), names(first)) == (first, ["q1", "q2"])


def test_a_target_that_was_taken_back_meanwhile_stores_nothing(cast: Cast) -> None:
    _seen, refused = stored_by_api(cast, [line(1)], extends=4711)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_target")
    assert not Dataset.objects.exists()


def test_items_are_added_from_the_page_of_the_dataset(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 1)
    client = cast.client("boris")
    page = client.get(f"/p/kassa/datasets/{first.pk}/").content.decode()
    there = f"/p/kassa/imports/new/?kind=dataset&extends={first.pk}"
    assert there.replace("&", "&amp;") in page
    file = SimpleUploadedFile("more.jsonl", orjson.dumps(line(2)))
    opened = client.post(there, {"files": file, "kind": "dataset"})["Location"]
    assert client.post(f"{opened}store/").status_code == 302
    second = Dataset.objects.get(extends=first)
    assert names(second) == ["d1", "q2"]
    assert "1 item more than v1" in client.get(f"/p/kassa/datasets/{second.pk}/").content.decode()


def test_the_pages_of_a_version_show_all_its_items_and_the_sweep_clears_an_abandoned_one(cast: Cast) -> None:
    first = make.dataset(cast.kassa, 2)
    second = storage.append_items(dataset=first, items=[make.item_row(3, "es")])
    client = cast.client("boris")
    page = client.get(f"/p/kassa/datasets/{second.pk}/").content.decode()
    assert all(f">{name}<" in page for name in ("d1", "d2", "d3"))
    items = client.get(f"/api/v1/projects/kassa/datasets/{second.pk}/items/").json()["results"]
    assert [item["external_id"] for item in items] == ["d1", "d2", "d3"]
    assert client.get(f"/p/kassa/datasets/{second.pk}/items/{items[0]['id']}/").status_code == 200
    assert client.get(f"/p/kassa/datasets/{first.pk}/items/{items[2]['id']}/").status_code == 404
    told = client.get(f"/api/v1/projects/kassa/datasets/{second.pk}/").json()
    assert (told["extends"], told["items"], told["added"]) == (first.pk, 3, 1)
    abandoned = Dataset.objects.create(project=cast.kassa, name="Dialogues", version=3, extends=second)
    Dataset.objects.filter(pk=abandoned.pk).update(staged_at="2020-01-01T00:00Z")
    assert (storage.sweep(), names(second)) == (1, ["d1", "d2", "d3"])
