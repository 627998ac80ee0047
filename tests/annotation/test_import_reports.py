"""What the report on an import says: sums that add up, columns looked for in vain, and what may be done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotation.models import Criterion, Item
from annotation.readers.studies import recognise
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
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
    file_import = uploaded(cast.client("boris"), file("tangrams.csv", text), kind="ratings")
    assert "answers in words" in page(cast.client("boris"), f"/p/kassa/imports/{file_import.pk}/")


def test_words_are_given_a_meaning_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    text = 'id,language,chat\nd1,deutsch,"User: Hallo\nBot: Tag"\nd2,deutsch,"User: Ja\nBot: Nein"\n'
    file_import = uploaded(boris, file("d.csv", text))
    form = {"kind": "dataset", "name": "", "column": ["id", "language", "chat"], "field": ["id", "language", "turns"]}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert '<td class="num">2</td>' in shown and 'name="value_found" value="deutsch"' in shown
    assert 'name="speaker_prefix" value="User"' in shown
    meant = {"value_field": "language", "value_found": "deutsch", "value_means": "de"}
    split = {"speaker_prefix": ["User:", "Bot", ""], "speaker": ["customer", "agent", ""]}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form | meant | split)
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    item = Item.objects.get(external_id="d1")
    turns = [{"speaker": "customer", "text": "Hallo"}, {"speaker": "agent", "text": "Tag"}]
    assert (item.language, item.turns) == ("de", turns)


def test_percent_signs_and_labels_of_the_rubric_are_suggested_as_scores(cast: Cast) -> None:
    make.campaign(cast.kassa)
    criterion = Criterion.objects.get(key="fluency")
    Criterion.objects.filter(pk=criterion.pk).update(
        points=[{**point, "label": {"en": f"Level {point['value']}"}} for point in criterion.points]
    )
    boris = cast.client("boris")
    text = "item,rater,criterion,score\nd1,A1,fluency,2%\nd2,A1,fluency,level 1\n"
    file_import = uploaded(boris, file("r.csv", text), kind="ratings")
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    for number, (found, means) in enumerate((("2%", "2"), ("level 1", "1")), start=1):
        assert (
            f'name="value_found" value="{found}"><input id="means-{number}" name="value_means" value="{means}"' in shown
        )


@pytest.mark.parametrize("kind", ["dataset", "ratings", "verdicts"])
def test_the_sums_of_a_refused_command_add_up(kind: str, cast: Cast, tmp_path: Path) -> None:
    make.campaign(cast.kassa)
    if kind == "dataset":
        rows = "id,language,answer\n" + "".join(f"i{n},{'xx-bad' if n < 8 else 'et'},Jah {n}.\n" for n in range(100))
    else:
        who = "rater" if kind == "ratings" else "judge"
        scores = [f"d{1 + n % 4 if n >= 8 else n + 70},A{n},fluency,{'' if n == 50 else 1}\n" for n in range(100)]
        rows = f"item,{who},criterion,score\n" + "".join([*scores, scores[60]])
    (tmp_path / "table.csv").write_text(rows)
    command = {"dataset": "import_dataset", "ratings": "import_ratings", "verdicts": "import_verdicts"}[kind]
    report = json.loads(run(command, tmp_path / "table.csv", "--json").out.getvalue())["report"]
    parts = ("stored", "collapsed", "missing", "refused", "held_back")
    assert report["read"] == sum(report[part] for part in parts), report
    assert (report["stored"], report["refused"], report["read"]) == (0, 8, 100 if kind == "dataset" else 101)
    assert report["held_back"] == (92 if kind == "dataset" else 91)
    told = run(command, tmp_path / "table.csv")
    assert f"right, and not stored because others are refused: {report['held_back']}" in told.lines


def test_problems_of_a_file_on_one_line_give_the_path(cast: Cast, tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": f"Tere {n}"} for n in range(3)]
    items = [{"id": f"d{n}", "language": "et", "turns": turns} for n in range(20)]
    items[17] = {**items[17], "turns": [*turns[:2], {"speaker": "user", "text": None}]}
    items[18] = {**items[18], "language": "no language"}
    items[19] = {**items[18], "id": "d1"}
    (tmp_path / "items.json").write_text(json.dumps(items))
    seen = json.loads(run("import_dataset", tmp_path / "items.json", "--json").out.getvalue())
    assert [each["column"] for each in seen["problems"]] == ["[17].turns[2].text", "[18].language", "[19].language"]
    keyed = {"dialogues": items}
    (tmp_path / "items.json").write_text(json.dumps(keyed))
    told = run("import_dataset", tmp_path / "items.json")
    assert told.problems[0].startswith("items.json, line 1, [“dialogues”][17].turns[2].text: found nothing")
    boris = cast.client("boris")
    file_import = uploaded(boris, file("items.json", json.dumps(items)))
    shown = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/").json()
    assert [each["column"] for each in shown["problems"]] == ["[17].turns[2].text", "[18].language", "[19].language"]
    kinds = {(each["code"], each["column"]): each["count"] for each in shown["kinds_of_problems"]}
    assert kinds[("language", "language")] == 2, "faults alike are counted together, whatever the record"
    # One record to a line: the line says where.
    (tmp_path / "items.json").write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]")
    seen = json.loads(run("import_dataset", tmp_path / "items.json", "--json").out.getvalue())
    assert [(each["line"], each["column"]) for each in seen["problems"]][:2] == [(19, "turn 3"), (20, "language")]


@pytest.mark.parametrize("who", ["rater", "judge"])
def test_problems_of_answers_on_one_line_give_the_path(who: str, cast: Cast, tmp_path: Path) -> None:
    make.campaign(cast.kassa)
    answers = [{"item": "d1", who: f"A{n}", "criterion": "fluency", "score": 1} for n in range(6)]
    answers[3]["score"] = "much"
    command = "import_ratings" if who == "rater" else "import_verdicts"
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    seen = json.loads(run(command, tmp_path / "answers.json", "--json").out.getvalue())
    assert [(each["line"], each["column"]) for each in seen["problems"]] == [(1, "[3].score")]
    answers[3]["score"], answers[4]["criterion"] = 1, "warmth"
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    seen = json.loads(run(command, tmp_path / "answers.json", "--json").out.getvalue())
    assert [each["code"] for each in seen["problems"]] == ["unknown_criterion"]
