"""What the report on an import says: sums that add up, columns looked for in vain, and what may be done."""

from __future__ import annotations

import json
from pathlib import Path

from annotation.formats.studies import recognise
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_intake_pages import file, page, uploaded
from tests.cast import Cast


def test_the_sums_of_a_report_add_up_where_names_are_too_long(cast: Cast, tmp_path: Path) -> None:
    rows = [f"{'x' * 300 if n < 8 else ''}d{n},en,One." for n in range(1000)]
    (tmp_path / "d.csv").write_text("id,language,answer\n" + "\n".join(rows) + "\n")
    told = run("import_dataset", tmp_path / "d.csv", "--dry-run", "--json")
    report = json.loads(told.out.getvalue())["report"]
    parts = [report[name] for name in ("stored", "collapsed", "missing", "refused")]
    assert (report["read"], parts) == (1000, [992, 0, 0, 8])


def test_a_column_inside_an_object_that_no_row_has_is_reported(cast: Cast, tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"d{n}", "answer": "One.", "meta": {"language": "en", "model": "m"}}) for n in range(3)]
    (tmp_path / "d.jsonl").write_text("\n".join(lines) + "\n")
    told = run("import_dataset", tmp_path / "d.jsonl", "--map", "meta.modle=generator", "--dry-run")
    assert "Columns that the mapping names and no file has: meta.modle (did you mean meta.model?)." in told.lines
    right = run("import_dataset", tmp_path / "d.jsonl", "--map", "meta.model=generator", "--dry-run")
    assert not any("no file has" in line for line in right.lines)


def test_the_larger_study_of_dices_is_not_taken_for_the_smaller() -> None:
    record = {
        "id": 1,
        "instance": {"user_prompt": "USER: Hi", "response": "Hello"},
        "annotations": {"safety": {"individual_human_scores": ["Yes", "No"], "majority_human": "Yes"}},
    }
    raw = json.dumps({"dataset": "DICES", "instances": [record]}).encode()
    names = {
        name: study and study.name
        for name in ("dices_350_expert.json", "dices_990.json")
        if [study := recognise([(name, raw)])]
    }
    assert names["dices_350_expert.json"] == "dices-350" and names["dices_990.json"] != "dices-350"


def test_a_study_of_free_texts_is_told_what_it_may_become(cast: Cast, tmp_path: Path) -> None:
    make.campaign(cast.kassa)
    shapes = ["a bird that looks left", "somebody kneeling", "a dancer", "two houses side by side"]
    text = "item,rater,criterion,score\n" + "".join(
        f"d{n % 2 + 1},W{n},fluency,{shape}\n" for n, shape in enumerate(shapes)
    )
    (tmp_path / "tangrams.csv").write_text(text)
    told = run("import_ratings", tmp_path / "tangrams.csv", "--dry-run")
    assert told.status == 1 and len(told.problems) == 1
    assert "answers in words, such as “a bird that looks left”" in told.problems[0]
    assert "are the items of a dataset" in told.problems[0]
    intake = uploaded(cast.client("boris"), file("tangrams.csv", text), kind="ratings")
    assert "answers in words" in page(cast.client("boris"), f"/p/kassa/imports/{intake.pk}/")
