"""Text that no database keeps is refused in one place, and text that only looks like it is kept as it is."""

from __future__ import annotations

import json

from annotation import panels
from annotation.models import Dataset, Import
from judging.models import Judge
from tests import make
from tests.annotation.test_import_pages import file, page, uploaded
from tests.cast import Cast
from tests.provider_server import RunningProvider

LOOKS_LIKE_NUL = "C writes \\u0000 so"  # a backslash, u and four zeros: six characters like any other
COLUMN = "\\u0000 count"
BASE = "/api/v1/projects/kassa"


def test_six_characters_that_spell_a_nul_are_shown_and_stored_as_they_are(cast: Cast) -> None:
    boris = cast.client("boris")
    record = {"id": "d1", "language": "en", "answer": LOOKS_LIKE_NUL, COLUMN: "1"}
    file_import = uploaded(boris, file("escapes.jsonl", json.dumps(record) + "\n"), kind="dataset")
    seen = boris.get(f"{BASE}/imports/{file_import.pk}/preview/").json()
    assert seen["rows"][0]["fields"] == {"answer": LOOKS_LIKE_NUL}
    assert COLUMN in [column["name"] for column in seen["columns"]]
    assert LOOKS_LIKE_NUL in page(boris, f"/p/kassa/imports/{file_import.pk}/")

    said = {"mapping": {"columns": {"id": "id", "language": "language", "answer": "answer", COLUMN: "title"}}}
    said |= {"target": {"name": "Escapes \\u0000"}}
    revised = boris.patch(f"{BASE}/imports/{file_import.pk}/", said, content_type="application/json")
    assert revised.status_code == 200, revised.json()
    assert boris.post(f"{BASE}/imports/{file_import.pk}/store/").status_code == 200
    stored = Dataset.objects.get()
    item = stored.items.get()
    assert (stored.name, item.title, item.fields["answer"]) == ("Escapes \\u0000", "1", LOOKS_LIKE_NUL)


def test_a_nul_in_a_file_is_one_error_with_its_line(cast: Cast) -> None:
    boris = cast.client("boris")
    for name, text, line in (
        ("nul.csv", "id,language,answer\n1,en,a\n2,en,b\0c\n", 3),
        (
            "nul.jsonl",
            '{"id": "1", "language": "en", "answer": "a"}\n{"id": "2", "language": "en", "answer": "\\u0000"}\n',
            2,
        ),
    ):
        file_import = uploaded(boris, file(name, text), kind="dataset")
        answer = boris.post(f"{BASE}/imports/{file_import.pk}/store/")
        assert answer.status_code == 422
        (problem,) = answer.json()["problems"]
        assert (problem["code"], problem["line"]) == ("nul", line)
        assert "U+0000" in problem["sentence"]
        assert Import.objects.get(pk=file_import.pk).state == "failed"
    assert not Dataset.objects.exists()


def test_a_parameter_of_a_judge_may_spell_a_nul(cast: Cast, provider: RunningProvider) -> None:
    asked = {"name": "J", "provider": "simulated", "model": "sim-steady", "parameters": {"stop": LOOKS_LIKE_NUL}}
    answer = cast.client("boris").post(f"{BASE}/judges/", data=asked, content_type="application/json")
    assert answer.status_code == 201, answer.json()
    assert Judge.objects.get().parameters == {"stop": LOOKS_LIKE_NUL}


def test_a_nul_in_the_key_of_a_criterion_is_an_error_of_its_field(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=[make.item_row(1)])
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    asked = {"panel": panel.pk, "overlap": 1, "criteria": ["flu\0ency"]}
    answer = cast.client("aino").post(f"{BASE}/campaigns/{campaign.pk}/duties/", asked, "application/json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["criteria"])
