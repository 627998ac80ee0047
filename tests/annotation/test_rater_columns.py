"""Files with a column for each person: their scores are never stored with the items, and become ratings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Import, Item, Rating
from annotation.readers import Mapping, PersonScores, possible_rater_columns, propose_mapping, rater_columns
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.cast import Cast

NFD = "Eve\u0301 O’Neil"


def found(*columns: str, cells: Any = ("1", "3", ""), **known: Any) -> list[tuple[str, str]]:
    return [(one.rater, one.criterion) for one in rater_columns(dict.fromkeys(columns, cells), **known)]


@pytest.mark.parametrize(
    ("columns", "raters"),
    [
        (["rating_anna", "rating_boris"], [("anna", ""), ("boris", "")]),
        (["Anna Maria rating", f"{NFD} rating"], [("Anna Maria", ""), ("Evé O’Neil", "")]),
        (["Score (سارة)", "Score (علي)"], [("سارة", ""), ("علي", "")]),
        (["تقييم_سارة", "تقييم_علي"], [("سارة", ""), ("علي", "")]),
        (["anna's score", "bo's score"], [("anna", ""), ("bo", "")]),
        (["anna_fluency", "boris_fluency"], [("anna", "fluency"), ("boris", "fluency")]),
        (["fluency_anna", "coherence_boris"], [("anna", "fluency"), ("boris", "coherence")]),
        (["annotator1", "annotator2", "annotator3"], [(f"annotator{n}", "") for n in (1, 2, 3)]),
        (["Annotator A", "Annotator B"], [("Annotator A", ""), ("Annotator B", "")]),
        (["annotator_1_fluency", "annotator_2_fluency"], [("annotator_1", "fluency"), ("annotator_2", "fluency")]),
    ],
)
def test_columns_of_people_are_recognised(columns: list[str], raters: list[tuple[str, str]]) -> None:
    assert found(*columns) == raters


@pytest.mark.parametrize(
    "columns",
    [
        ["score_bleu", "score_comet"], ["rating_mean", "rating_std"], ["score_a", "score_b"], ["anna", "boris"],
        ["gpt-4_fluency", "claude_fluency"], ["fluency", "coherence"], ["rating_anna"], ["rating_anna", "score_count"],
        ["Dialogue 1 [Fluency]", "Dialogue 2 [Fluency]"], ["output1_fluency", "output2_fluency"],
    ],
)  # fmt: skip
def test_metrics_aggregates_judges_and_items_are_no_people(columns: list[str]) -> None:
    assert found(*columns) == []


@pytest.mark.parametrize(
    "columns",
    [
        ["fluency_score", "coherence_score"], ["score_fluency", "score_naturalness"],
        ["human_fluency", "human_coherence"],
        ["label_toxic", "label_insult"], ["score_easy", "score_hard"], ["points_home", "points_away"],
        ["label_en", "label_et"], ["rating_en", "rating_et"], ["label_fine", "label_coarse"], ["Grade 8", "Grade 9"],
        ["human_score", "human_label"], ["nota_lengua", "nota_mates"], ["audio_quality", "video_quality"],
        ["score_fluency", "score_zest", "score_flow"], ["rating_2023", "rating_2024"],
        ["annotator_age", "annotator_sex"],
        ["rating_anna", "score_anna", "rating_boris"], ["rating_Anna", "rating_anna"], ["anna_fluency", "ANNA_fluency"],
    ],
)  # fmt: skip
def test_criteria_classes_languages_and_numbers_are_no_people(columns: list[str]) -> None:
    assert found(*columns) == []
    assert found("score_tact", "score_zest", criteria={"tact"}) == []
    assert found("tact_score", "zest_score", criteria={"zest"}) == []


def test_a_person_has_one_spelling() -> None:
    columns = ("Anna_fluency", "anna_coherence", "Boris_fluency", "BORIS_coherence")
    assert {rater for rater, _criterion in found(*columns)} == {"Anna", "Boris"}


def test_columns_called_alike_are_decided_together_and_doubts_are_asked_about() -> None:
    cells: dict[str, Any] = {"rating_anna": ["1", "2"], "rating_boris": ["2", "5"], "rating_carla": ["", ""]}
    assert [one.rater for one in rater_columns(cells)] == ["anna", "boris", "carla"], "blank so far"
    odd = cells | {"rating_carla": ["3.7", "4/5"]}
    assert rater_columns(odd) == () and possible_rater_columns(odd) == tuple(odd)
    wide = {"rating_anna": ["0", "71", "100"], "rating_boris": [str(n) for n in range(0, 100, 2)]}
    assert [one.rater for one in rater_columns(wide)] == ["anna", "boris"]
    assert rater_columns({"rating_anna": ["1", "5"], "rating_boris": ["60", "100"]}) == ()
    asked = {"nota_ana": ["1"], "nota_luis": ["2"]}
    assert rater_columns(asked) == () and possible_rater_columns(asked) == tuple(asked)


def test_reasons_belong_to_the_score_on_their_criterion() -> None:
    columns = ("id", "anna_fluency", "anna_coherence", "anna_fluency_comment", "anna_coherence_comment", "anna_notes")
    text = ",".join((*columns, "bo_fluency")) + "\nd1,1,2,halting,no thread,short,1\nd2,1,2,,,,2\n"
    (step,) = propose_mapping("ratings", [("wide.csv", text.encode())], Mapping()).shape
    assert isinstance(step, PersonScores)
    record = dict(zip((*columns, "bo_fluency"), ("d1", "1", "2", "halting", "no thread", "short", "1"), strict=True))
    assert [(row["rater"], row["criterion"], row["rationale"]) for row in step.reshape(record)] == [
        ("anna", "fluency", "short\nhalting"),
        ("anna", "coherence", "short\nno thread"),
        ("bo", "fluency", ""),
    ]


def test_what_is_left_out_is_named_whatever_the_later_rows_have(cast: Cast) -> None:
    boris = cast.client("boris")
    rows = [f"d{n},et,Küsimus {n}?,Vastus.,{n % 5 if n < 5_100 else 3.7},1" for n in range(1, 5_102)]
    text = "\n".join(["id,language,question,answer,rating_anna,rating_boris", *rows, ""])
    number = boris.post("/api/v1/projects/kassa/imports/", {"files": [file("wide.csv", text)]}).json()["id"]
    report = boris.get(f"/api/v1/projects/kassa/imports/{number}/preview/").json()["report"]
    assert report["found"]["raters"] == {"anna": 5_101, "boris": 5_101}
    named = "not stored with the items: rating_anna (anna), rating_boris (boris)."
    assert any(named in note for note in report["notes"])


def test_cells_decide_and_labels_of_a_rubric_are_scores() -> None:
    assert found("rating_anna", "rating_bo", cells=("good", "bad")) == []
    assert found("rating_anna", "rating_bo", cells=("good", "bad"), labels={"good", "bad"}) == [
        ("anna", ""),
        ("bo", ""),
    ]
    assert found("rating_anna", "rating_bo", cells=("0.731", "0.22")) == []
    assert found("anna_tact", "bo_tact", criteria={"tact"}) == [("anna", "tact"), ("bo", "tact")]
    assert found("anna_tact", "bo_tact") == []


def table(*columns: str, rows: int = 4) -> str:
    head = ",".join(f'"{column}"' for column in ("id", "language", "question", "answer", "note", *columns))
    lines = [
        f"d{n},et,Küsimus {n}?,Vastus {n}.,n{n}," + ",".join(str((n + place) % 2) for place in range(len(columns)))
        for n in range(1, rows + 1)
    ]
    return "\n".join([head, *lines, ""])


@pytest.mark.both_databases
def test_one_file_gives_items_without_peoples_scores_and_then_their_ratings(cast: Cast) -> None:
    boris = cast.client("boris")
    make.rubric(cast.kassa)
    file_import = uploaded(boris, file("wide.csv", table(f"{NFD}_fluency", "سارة_fluency", f"{NFD}_coherence")))
    assert file_import.kind == "dataset"
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert "Scores by 2 people?" in shown and "<bdi>Evé O’Neil</bdi>, <bdi>سارة</bdi>" in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert list(Item.objects.values_list("attributes", flat=True)) == [{"note": f"n{n}"} for n in range(1, 5)]
    address = f"/p/kassa/imports/{file_import.pk}/"
    assert 'name="kind" value="ratings"' in page(boris, address)
    answer = boris.post(f"{address}also/", {"kind": "ratings"}, follow=True)
    ratings = Import.objects.latest("pk")
    text = answer.content.decode()
    assert "Columns with the scores of one person each" in text and 'value="Evé O’Neil"' in text
    assert ratings.column_mapping().columns == {
        "id": "item", "language": "language", "rater": "rater", "criterion": "criterion", "score": "score",
    }  # fmt: skip
    boris.post(f"/p/kassa/imports/{ratings.pk}/store/")
    stored = Rating.objects.values_list(
        "annotation__item__external_id", "annotation__annotator__pseudonym", "criterion__key", "score"
    )
    assert len(stored) == 12
    assert ("d1", "Evé O’Neil", "fluency", 1.0) in stored and ("d2", "سارة", "fluency", 1.0) in stored


@pytest.mark.both_databases
def test_a_column_that_names_no_criterion_asks_for_one_and_people_can_be_renamed(cast: Cast) -> None:
    boris = cast.client("boris")
    campaign = make.campaign(cast.kassa)
    text = "id,question,rating_anna,rating_boris\n" + "".join(f"d{n},Küsimus {n}?,{n % 3},1\n" for n in range(1, 5))
    file_import = uploaded(boris, file("wide.csv", text), kind="ratings")
    mapping = file_import.column_mapping()
    assert "question" not in mapping.columns, "a text that is asked is no criterion"
    address = f"/p/kassa/imports/{file_import.pk}/"
    assert "can't be stored yet" in page(boris, address)
    form = {
        "kind": "ratings", "campaign": campaign.pk, "column": ["id", "rater", "criterion", "score"],
        "field": ["item", "rater", "criterion", "score"], "person_column": ["rating_anna", "rating_boris", ""],
        "person_name": ['Anna "A." Tamm', "boris", ""], "person_criterion": ["fluency", "coherence", ""],
    }  # fmt: skip
    boris.post(f"{address}map/", form)
    assert "can't be stored yet" not in page(boris, address)
    boris.post(f"{address}store/")
    stored = Rating.objects.values_list("annotation__annotator__pseudonym", "criterion__key").distinct()
    assert set(stored) == {('Anna "A." Tamm', "fluency"), ("boris", "coherence")}


def test_a_column_can_be_taken_out_and_another_put_in(cast: Cast) -> None:
    boris = cast.client("boris")
    make.campaign(cast.kassa)
    text = "id,rating_anna,rating_boris,third\n" + "".join(f"d{n},1,0,1\n" for n in range(1, 5))
    file_import = uploaded(boris, file("wide.csv", text))
    assert file_import.kind == "ratings", "ids and scores of people, and no text"
    form = {
        "kind": "ratings", "column": ["id", "third", "rater", "criterion", "score"],
        "field": ["item", "", "rater", "criterion", "score"], "person_column": ["rating_anna", "", "third"],
        "person_name": ["anna", "", ""], "person_criterion": ["fluency", "", "fluency"],
    }  # fmt: skip
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    mapping = Import.objects.get(pk=file_import.pk).column_mapping()
    (step,) = (step.as_dict() for step in mapping.shape)
    assert step["scores"] == {"rating_anna": "anna", "third": "third"}
    assert "rating_boris" in mapping.unmapped and "third" not in mapping.unmapped
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | {"person_column": ["", "", ""]})
    mapping = Import.objects.get(pk=file_import.pk).column_mapping()
    assert not mapping.shape and not {"rater", "score"} & set(mapping.columns), "and it is not guessed again"


def test_a_lead_keeps_them_as_attributes_only_by_choosing_so(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("wide.csv", table("rating_anna", "rating_boris")))
    columns = ["id", "language", "question", "answer", "note", "rating_anna", "rating_boris"]
    fields = ["id", "language", "question", "answer", "", "", "ignore"]
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "dataset", "column": columns, "field": fields})
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert Item.objects.order_by("pk")[0].attributes == {"note": "n1", "rating_anna": "1"}


def test_the_api_and_the_command_leave_them_out_and_read_them_as_ratings(cast: Cast, tmp_path: Path) -> None:
    boris, path = cast.client("boris"), tmp_path / "wide.csv"
    make.rubric(cast.kassa)
    path.write_text(table("anna_fluency", "boris_fluency"), encoding="utf-8")
    sent = {"files": [file("wide.csv", table("anna_fluency", "boris_fluency"))]}
    number = boris.post("/api/v1/projects/kassa/imports/", sent).json()["id"]
    report = boris.get(f"/api/v1/projects/kassa/imports/{number}/preview/").json()["report"]
    assert (report["embedded_ratings"], report["found"]["raters"]) == (8, {"anna": 4, "boris": 4})
    named = "not stored with the items: anna_fluency (anna), boris_fluency (boris)"
    assert any(named in note for note in report["notes"])
    told = run("import_dataset", path, "--name", "Wide", "--dry-run")
    assert any(named in line for line in told.lines)
    told = run("import_dataset", path, "--name", "Wide")
    assert any("left out, as the mapping says: anna_fluency, boris_fluency" in line for line in told.lines)
    assert set(map(json.dumps, Item.objects.values_list("attributes", flat=True))) == {
        json.dumps({"note": f"n{n}"}) for n in range(1, 5)
    }
    run("import_ratings", path, "--dataset", "Wide", "--rubric", "quality")
    assert Rating.objects.count() == 8
