"""The import commands, on files as people have them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import campaigns
from annotation.models import Annotation, Campaign, Dataset, Import, Item, Rating, RubricVersion
from judging.models import JudgeRun, Verdict
from tests import make
from tests.cast import Cast

DIALOGUES = "id,language,question,answer\n" + "".join(f"d{n},et,Küsimus {n}?,Vastus {n}.\n" for n in range(1, 4))
RATINGS = "item,rater,criterion,score\nd1,A1,fluency,3\nd1,A1,fluency,3\nd2,A1,fluency,\nd1,A1,coherence,1\n"


class Told:
    """A command's two streams and its exit status."""

    def __init__(self) -> None:
        self.out, self.err, self.status = StringIO(), StringIO(), 0

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def problems(self) -> list[str]:
        return self.err.getvalue().splitlines()


def run(command: str, *arguments: Any, **options: Any) -> Told:
    told = Told()
    try:
        call_command(command, *map(str, arguments), "--project", "kassa", stdout=told.out, stderr=told.err, **options)
    except SystemExit as ended:
        told.status = int(ended.code or 0)
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dialogues.csv").write_text(DIALOGUES, encoding="utf-8")
    (tmp_path / "ratings.csv").write_text(RATINGS, encoding="utf-8")
    return tmp_path


def test_items_are_added_to_a_dataset(cast: Cast, folder: Path) -> None:
    run("import_dataset", folder / "dialogues.csv", "--name", "Dialogues")
    more = folder / "more.csv"
    more.write_text(DIALOGUES + "d4,et,Veel?,Jah.\n", encoding="utf-8")
    looked = run("import_dataset", more, "--extends", "Dialogues", "--dry-run")
    assert "Nothing was stored." in looked.lines
    told = run("import_dataset", more, "--extends", "Dialogues", "--json")
    said = json.loads(told.out.getvalue())
    assert (said["dataset"], said["report"]["stored"], said["report"]["collapsed"]) == ("Dialogues v2", 1, 3)
    latest = Dataset.objects.get(version=2)
    assert (Item.objects.of(latest).count(), Item.objects.count()) == (4, 4)
    with pytest.raises(CommandError, match=r"There is no dataset “Other”.*: Dialogues v2"):
        run("import_dataset", more, "--extends", "Other")
    with pytest.raises(CommandError, match="leave out --name"):
        run("import_dataset", more, "--extends", "Dialogues", "--name", "Other")


def test_a_dataset_a_rubric_and_ratings_come_in_one_after_the_other(cast: Cast, folder: Path) -> None:
    assert "dataset: dialogues v1" in run("import_dataset", folder / "dialogues.csv").lines
    rubric = folder / "rubric.yaml"
    rubric.write_text(
        "{key: short, name: Short, source_language: en, criteria: [{key: fluency, name: Fluency, "
        "scale: {level: ordinal, points: [0, 1, 2, 3]}}, "
        "{key: coherence, name: Coherence, scale: {level: ordinal, points: [0, 1]}}]}"
    )
    assert "rubric: short v1 (draft)" in run("import_rubric", rubric).lines
    with pytest.raises(CommandError, match=r"no published rubric “short”.* Publish the draft first.*: short v1"):
        run("import_ratings", folder / "ratings.csv", "--rubric", "short")
    assert "rubric: short v1 (published)" in run("import_rubric", rubric, "--publish").lines
    assert RubricVersion.objects.count() == 1
    lines = run("import_ratings", folder / "ratings.csv").lines
    assert lines[:3] == ["read: 4", "stored: 2", "collapsed: 1 (of which blank: 0)"]
    assert "missing: 1" in lines
    assert (Annotation.objects.count(), Rating.objects.count()) == (1, 2)
    assert Campaign.objects.get().name == "dialogues v1 × short v1"


def test_a_dry_run_says_the_same_and_stores_nothing(cast: Cast, folder: Path) -> None:
    told = run("import_dataset", folder / "dialogues.csv", "--dry-run")
    assert "stored: 3" in told.lines and told.lines[-1] == "Nothing was stored."
    assert (Dataset.objects.count(), Item.objects.count(), Import.objects.count()) == (0, 0, 0)


def test_every_bad_row_is_one_line_and_the_status_is_1(cast: Cast, folder: Path) -> None:
    make.campaign(cast.kassa)
    bad = folder / "bad.csv"
    bad.write_text("item,rater,criterion,score\nd1,A1,fluency,7\nd9,A1,fluency,1\nd1,A1,tone,1\nd2,A1,fluency,2\n")
    told = run("import_ratings", bad)
    assert told.status == 1
    assert [line.split(":")[0] for line in told.problems] == [
        "bad.csv, line 2, score",
        "bad.csv, line 3, item",
        "bad.csv, line 4, criterion",
    ]
    assert told.lines[-1] == "Nothing was stored."
    assert (Rating.objects.count(), Import.objects.filter(kind="ratings").count()) == (0, 0)


def test_what_is_asked_for_wrongly_has_status_2(cast: Cast, folder: Path) -> None:
    with pytest.raises(CommandError, match="There is no project") as error:
        call_command("import_dataset", str(folder / "dialogues.csv"), "--project", "nowhere")
    assert error.value.returncode == 2
    for arguments in ([folder / "missing.csv"], [folder / "dialogues.csv", "--map", "nonsense"]):
        with pytest.raises(CommandError) as error:
            run("import_dataset", *arguments)
        assert error.value.returncode == 2


def test_ratings_without_an_obvious_campaign_are_told_which_there_are(cast: Cast, folder: Path) -> None:
    first = make.campaign(cast.kassa)
    campaigns.open_campaign(
        project=cast.kassa, name="Round 2", dataset=first.dataset, rubric_version=first.rubric_version
    )
    with pytest.raises(CommandError, match="Available: Round 2; Round 1") as error:
        run("import_ratings", folder / "ratings.csv")
    assert error.value.returncode == 2
    assert run("import_ratings", folder / "ratings.csv", "--campaign", "Round 2").status == 0
    assert set(Annotation.objects.values_list("campaign__name", flat=True)) == {"Round 2"}


def test_a_campaign_is_opened_under_the_name_it_is_given(cast: Cast, folder: Path) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    arguments = ("--dataset", "Dialogues", "--rubric", "quality", "--campaign", "From the files")
    assert "campaign: From the files" in run("import_ratings", folder / "ratings.csv", *arguments).lines
    again = run("import_ratings", folder / "ratings.csv", *arguments)
    assert "collapsed: 3 (of which blank: 0)" in again.lines
    assert Campaign.objects.get().name == "From the files"


def test_columns_of_any_name_are_mapped_on_the_line_or_in_a_file(cast: Cast, folder: Path) -> None:
    make.campaign(cast.kassa)
    odd = folder / "odd.csv"
    odd.write_text("who;what;mark;aspect\nA1;d1;fine;fluency\nA2;d1;3;fluency\n")
    mapping = folder / "mapping.yaml"
    mapping.write_text("columns: {what: item, mark: score}\nvalues: {score: {fine: 2}}\n")
    told = run("import_ratings", odd, "--mapping", mapping, "--map", "who=rater", "aspect=criterion", "--json")
    report = json.loads(told.out.getvalue())
    assert (report["is_stored"], report["report"]["stored"]) == (True, 2)
    assert set(Rating.objects.values_list("score", flat=True)) == {2, 3}


def test_verdicts_of_two_judges_become_two_runs(cast: Cast, folder: Path) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    verdicts = folder / "verdicts.jsonl"
    verdicts.write_text(
        '{"item": "d1", "judge": "one", "criterion": "fluency", "score": 2.5}\n'
        '{"item": "d1", "judge": "two", "criterion": "fluency", "score": 9}\n'
    )
    told = run("import_verdicts", verdicts, "--dataset", "Dialogues")
    assert {"stored: 2", "flagged: 2"} <= set(told.lines)
    assert JudgeRun.objects.count() == 2
    assert set(Verdict.objects.values_list("status", "fractional")) == {("ok", True), ("out_of_range", False)}
