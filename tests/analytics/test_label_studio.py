"""A campaign taken out for Label Studio: as its importer wants it, and back to the same answers."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command

from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Campaign, Item, Rating
from annotation.readers.items import content_digest, parse_items
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.studies import StudyImport, recognise
from judging.models import Verdict
from tests import make
from tests.analytics import scene
from tests.analytics.test_exports import downloaded
from tests.annotation import scene as desks
from tests.cast import Cast


@pytest.fixture
def rated(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign, {"fluency": [1, "unparsed", 7, 2, 2, 0, 2, 2, 1, 0, 2, 1]})
    return campaign


@pytest.fixture
def tasks(cast: Cast, rated: Campaign) -> list[dict[str, Any]]:
    return json.loads(downloaded(cast.client("boris"), "label-studio"))


@pytest.fixture
def interface(cast: Cast, rated: Campaign) -> ET.Element:
    return ET.fromstring(downloaded(cast.client("boris"), "label-studio", format="xml"))


def test_a_task_has_what_people_and_judges_said_of_its_item(tasks: list[dict[str, Any]]) -> None:
    first = tasks[0]
    assert (first["data"]["item"], first["data"]["language"], first["meta"]["generator"]) == ("et-0", "et", "atlas")
    jaan, mari = first["annotations"]
    assert mari["result"][0] == {
        "id": "fluency", "from_name": "fluency", "to_name": "dialogue", "type": "choices", "value": {"choices": ["0"]},
        "meta": {"rater": "mari", "criterion": "fluency", "repeat": 0},
    }  # fmt: skip
    assert (jaan["ground_truth"], jaan["was_cancelled"], len(jaan["result"])) == (False, False, 2)
    assert [(each["model_version"], len(each["result"])) for each in first["predictions"]] == [("Kohtunik", 1)]
    assert [len(each["predictions"]) for each in tasks[:4]] == [1, 0, 0, 1]


def test_nobody_is_named_as_an_account_of_label_studio(tasks: list[dict[str, Any]]) -> None:
    assert not any("completed_by" in annotation for task in tasks for annotation in task["annotations"])


def test_every_result_fits_a_control_of_the_interface(tasks: list[dict[str, Any]], interface: ET.Element) -> None:
    shown = {each.attrib["name"]: each.attrib["value"] for each in interface.iter() if "toName" not in each.attrib
             and "name" in each.attrib}  # fmt: skip
    assert all(value.removeprefix("$") in task["data"] for value in shown.values() for task in tasks)
    controls = {each.attrib["name"]: each for each in interface.iter() if "toName" in each.attrib}
    for task in tasks:
        for said in (*task["annotations"], *task["predictions"]):
            for result in said["result"]:
                control = controls[result["from_name"]]
                assert control.attrib["toName"] == result["to_name"] in shown
                assert control.tag.lower() == result["type"]
                offered = {choice.get("alias") or choice.get("value") for choice in control}
                assert set(result["value"]["choices"]) <= offered


def parts(content: bytes) -> dict[str, StudyImport]:
    study = recognise([("export.json", content)])
    assert study is not None and study.name == "panelbench-label-studio"
    return {each.kind: each for each in study.imports}


def test_what_went_out_comes_back_with_equal_scores(cast: Cast, rated: Campaign) -> None:
    content = downloaded(cast.client("boris"), "label-studio")
    study, files = parts(content), [("export.json", content)]
    items = parse_items(files, study["dataset"].mapping)
    ratings = parse_ratings(files, study["ratings"].mapping)
    verdicts = parse_verdicts(files, study["verdicts"].mapping)
    assert [each.problems.sentences() for each in (items, ratings, verdicts)] == [[], [], []]
    assert [content_digest(row) for row in items.items] == list(
        Item.objects.of(rated.dataset).values_list("digest", flat=True)
    )
    stored = Rating.objects.filter(annotation__campaign=rated).values_list(
        "annotation__item__external_id", "annotation__annotator__pseudonym", "criterion__key", "score", "rationale"
    )
    assert sorted((row.item, row.rater, row.criterion, row.score, row.rationale) for row in ratings.rows) == sorted(
        stored
    )
    told = Verdict.objects.filter(status="ok").values_list("item__external_id", "run__judge__name", "score")
    assert sorted((row.item, row.judge, row.score) for row in verdicts.rows) == sorted(told)


NASTY = "=1+1\r\n\u202eabc\u200d👩‍🔬 e\u0301 ـ $5"
RANGE = {"key": "polish", "name": {"en": "Worth $5?"}, "scale": {"level": "interval", "min": 0, "max": 100}}


@pytest.fixture
def answered(cast: Cast) -> bytes:
    """One person's work on points and on ranges, with a rationale, seconds, and N/A on both."""
    points, ranges = make.criterion("fluency", not_applicable=True), {**RANGE, "not_applicable": True}
    criteria = [points, {**points, "key": "tone"}, ranges, {**ranges, "key": "grace"}]
    duty = desks.duty(cast, items=[make.item_row(1, fields={"context": NASTY})], overlap=1, criteria=criteria)
    taken = desks.taken(cast, duty)
    na, said = Answer(status="na"), Answer(score=2, rationale=NASTY)
    answers = {"fluency": said, "tone": na, "polish": Answer(score=62), "grace": na}
    service.submit(assignment=taken, key=taken.key, answers=answers, seconds=12.5)
    return downloaded(cast.client("boris"), "label-studio")


def test_rationales_n_a_and_seconds_come_back(answered: bytes) -> None:
    parsed = parse_ratings([("export.json", answered)], parts(answered)["ratings"].mapping)
    assert parsed.problems.sentences() == []
    assert [(row.criterion, row.score, row.applicable, row.rationale, row.seconds) for row in parsed.rows] == [
        ("fluency", 2.0, True, NASTY, 12.5),
        ("tone", None, False, "", 12.5),
        ("polish", 62.0, True, "", 12.5),
        ("grace", None, False, "", 12.5),
    ]
    (annotation,) = json.loads(answered)[0]["annotations"]
    assert [(result["from_name"], result["type"]) for result in annotation["result"]] == [
        ("fluency", "choices"),
        ("fluency:rationale", "textarea"),
        ("tone", "choices"),
        ("polish", "number"),
        ("grace:na", "choices"),
    ]


def test_rationales_can_be_left_out(cast: Cast, answered: bytes) -> None:
    without = json.loads(downloaded(cast.client("boris"), "label-studio", rationales=False))
    assert "textarea" not in json.dumps(without)
    assert NASTY not in json.dumps(without[0]["annotations"], ensure_ascii=False)


def test_no_text_of_ours_is_taken_for_a_part_of_the_task(cast: Cast, answered: bytes) -> None:
    root = ET.fromstring(downloaded(cast.client("boris"), "label-studio", format="xml"))
    values = [each.attrib["value"] for each in root.iter() if "$" in each.get("value", "")]
    assert values == ["$context", "$dialogue"]


def test_the_whole_study_comes_back_by_command(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_bytes(downloaded(cast.client("boris"), "label-studio"))
    call_command("import_study", "teine", str(tmp_path / "tasks.json"), stdout=StringIO())
    there = Rating.objects.filter(annotation__campaign__project=cast.teine)
    read = ("annotation__item__external_id", "annotation__annotator__pseudonym", "criterion__key", "score")
    mine = Rating.objects.filter(annotation__campaign=rated)
    assert sorted(there.values_list(*read)) == sorted(mine.values_list(*read))
    told = Verdict.objects.filter(status="ok").values_list("item__external_id", "criterion__key", "repeat", "score")
    assert sorted(told.filter(run__project=cast.teine)) == sorted(told.filter(run__project=cast.kassa))
