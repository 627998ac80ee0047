"""Verdicts that judges gave elsewhere: every row stored or accounted for, and all of it or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.refusals import Refused
from analytics.ratings import ratings_tables
from annotation import campaigns
from annotation.imports import lifecycle, opening
from annotation.imports.storage import FileRefused
from annotation.models import Dataset, Import, RubricVersion
from annotation.readers import spool
from annotation.readers.ratings import VerdictRow
from judging import error_tags, judges, tasks
from judging.imports import verdicts
from judging.imports.verdicts import VerdictsReport
from judging.models import Attempt, Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast

CRITERIA = (
    make.criterion("fluency"),
    make.criterion("coherence", (0, 1), not_applicable=True),
    {
        "key": "topic",
        "name": {"en": "Topic"},
        "scale": {
            "level": "nominal",
            "points": [{"value": 1, "label": {"en": "parcel"}}, {"value": 3, "label": {"en": "bill"}}],
        },
    },
)


def make_scene(cast: Cast) -> tuple[Dataset, RubricVersion]:
    return make.dataset(cast.kassa), make.rubric(cast.kassa, *CRITERIA)


@pytest.fixture
def rated(module_scene: tuple[Cast, tuple[Dataset, RubricVersion]]) -> tuple[Dataset, RubricVersion]:
    return module_scene[1]


def row(item: str, score: float | None, criterion: str = "fluency", **parts: Any) -> VerdictRow:
    given = {
        "item": item,
        "judge": "judge-x",
        "criterion": criterion,
        "score": score,
        "applicable": True,
        "missing": score is None,
        "rationale": "",
        "repeat": 0,
        "reply": "",
        "generator": None,
        "file": "verdicts.jsonl",
        "line": 1,
    }
    return VerdictRow(**{**given, **parts})


def stored(cast: Cast, rated: tuple[Dataset, RubricVersion], *rows: VerdictRow, **more: Any) -> VerdictsReport:
    file_import = Import.objects.create(project=cast.kassa, kind=Import.Kind.VERDICTS)
    dataset, version = rated
    return verdicts.store_verdict_rows(
        project=cast.kassa, dataset=dataset, rubric_version=version, rows=rows, file_import=file_import, **more
    )


def test_each_number_is_held_against_its_scale(cast: Cast, rated: tuple[Dataset, RubricVersion]) -> None:
    report = stored(
        cast,
        rated,
        row("d1", 3),
        row("d2", 2.5),
        row("d3", 4),
        row("d4", -0.1),
        row("d1", None, "coherence", applicable=False, missing=False),
        row("d2", None, "coherence"),
        row("d1", 2, "topic"),
        row("d1", None, "topic", applicable=False, missing=False, judge="judge-y"),
    )
    found = Verdict.objects.values_list(
        "item__external_id", "criterion__key", "status", "score", "applicable", "fractional"
    )
    assert set(found) == {
        ("d1", "fluency", "ok", 3, True, False),
        ("d2", "fluency", "ok", 2.5, True, True),
        ("d3", "fluency", "out_of_range", 4, True, False),
        ("d4", "fluency", "out_of_range", -0.1, True, False),
        ("d1", "coherence", "ok", None, False, False),
        ("d1", "topic", "out_of_range", 2, True, False),
        ("d1", "topic", "unparsed", None, True, False),
    }
    counts = (report.given, report.stored, report.missing, report.out_of_range, report.fractional, report.unparsed)
    assert counts == (8, 7, 1, 3, 1, 1)
    assert {judge.name: judge.provider for judge in Judge.objects.all()} == {"judge-x": "", "judge-y": ""}


def test_repeats_count_from_one_here(cast: Cast, rated: tuple[Dataset, RubricVersion]) -> None:
    stored(cast, rated, row("d1", 1), row("d1", 2, repeat=1), row("d1", 3, repeat=2))
    assert list(Verdict.objects.order_by("repeat").values_list("repeat", "score")) == [(1, 1), (2, 2), (3, 3)]
    assert JudgeRun.objects.get().repeats == 3


def test_raw_replies_are_kept_once_however_many_criteria_they_answer(
    cast: Cast, rated: tuple[Dataset, RubricVersion]
) -> None:
    stored(
        cast,
        rated,
        row("d1", 1, reply="both"),
        row("d1", 1, "coherence", reply="both"),
        row("d2", 2, reply="one"),
        row("d2", 0, "coherence", reply="other"),
        row("d3", 3),
    )
    assert sorted(each["imported"] for each in Attempt.objects.values_list("reply", flat=True)) == [
        "both",
        "one",
        "other",
    ]
    said = {
        (verdict.item.external_id, verdict.criterion.key): verdict.attempt and verdict.attempt.reply["imported"]
        for verdict in Verdict.objects.select_related("item", "criterion", "attempt")
    }
    assert said == {
        ("d1", "fluency"): "both",
        ("d1", "coherence"): "both",
        ("d2", "fluency"): "one",
        ("d2", "coherence"): "other",
        ("d3", "fluency"): None,
    }


def test_a_chat_prompt_with_escaped_nul_characters_is_stored(cast: Cast, rated: tuple[Dataset, RubricVersion]) -> None:
    """The text of the file has no NUL; the messages that are decoded from it do, which PostgreSQL does not store."""
    prompt = r'[{"role": "us\u0000er", "content": "Rate \u0000 this."}, {"content": [{"text": "a\u0000b"}]}]'
    stored(cast, rated, row("d1", 1, reply="1", prompt=prompt))
    first, second = Attempt.objects.get().request["messages"]
    assert first == {"role": "us\ufffder", "content": "Rate \ufffd this."}
    assert second["content"] == "a\ufffdb"


def test_a_judge_that_was_put_several_prompts_is_a_judge_for_each(
    cast: Cast, rated: tuple[Dataset, RubricVersion]
) -> None:
    stored(cast, rated, row("d1", 1, variant="terse"), row("d1", 3, variant="verbose"), row("d1", 2))
    found = Verdict.objects.order_by("score").values_list("run__judge__name", "run__judge__variant", "score")
    assert list(found) == [
        ("judge-x (terse)", {"name": "terse"}, 1),
        ("judge-x", {}, 2),
        ("judge-x (verbose)", {"name": "verbose"}, 3),
    ]
    again = stored(cast, rated, row("d1", 3, variant="verbose"))
    assert (again.collapsed, again.stored, Judge.objects.count()) == (1, 0, 3)


def test_more_rows_than_a_shelf_holds_are_stored_alike(
    cast: Cast, rated: tuple[Dataset, RubricVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "PARTITION_ROWS", 3)
    items, both = ("d1", "d2", "d3", "d4"), ("fluency", "coherence")
    rows = [
        row(item, 1, criterion, judge=judge, reply=f"{judge} on {item}")
        for criterion in both
        for judge in ("judge-x", "judge-y")
        for item in items
    ]
    shares: list[float] = []
    stored(cast, rated, *rows, progress=shares.append)
    said = Verdict.objects.values_list("run__judge__name", "item__external_id", "attempt__reply__imported")
    assert sorted(said) == sorted((each.judge, each.item, each.reply) for each in rows)
    assert Attempt.objects.count() == 8, "a reply on both criteria is one"
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) > 3


def test_a_column_that_names_no_judges_is_refused(
    cast: Cast, rated: tuple[Dataset, RubricVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "MOST_JUDGES", 2)
    with pytest.raises(FileRefused) as refused:
        stored(cast, rated, *(row("d1", 1, judge=f"because {number}") for number in range(3)))
    assert dict(refused.value.problems.codes) == {"judges": 1}
    assert not Judge.objects.exists()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (row("d9", 1), "unknown_item"),
        (row("d1", 1, "tone"), "unknown_criterion"),
        (row("d1", 1, generator="somebody else"), "other_generator"),
        (row("d1", 1, judge="j" * 121), "too_long"),
        (row("d1", 1, repeat=1000), "repeat"),
    ],
)
def test_a_row_that_does_not_fit_keeps_all_others_out(
    cast: Cast, rated: tuple[Dataset, RubricVersion], bad: VerdictRow, code: str
) -> None:
    with pytest.raises(FileRefused) as refused:
        stored(cast, rated, row("d2", 1), bad)
    assert dict(refused.value.problems.codes) == {code: 1}
    assert (Verdict.objects.count(), JudgeRun.objects.count()) == (0, 0)


def test_what_was_imported_before_collapses_or_contradicts_and_the_rest_goes_on(
    cast: Cast, rated: tuple[Dataset, RubricVersion]
) -> None:
    stored(cast, rated, row("d1", 1), row("d2", 2))
    again = stored(cast, rated, row("d1", 1), row("d2", 2))
    assert (again.collapsed, again.stored, JudgeRun.objects.count()) == (2, 0, 1)
    with pytest.raises(FileRefused) as refused:
        stored(cast, rated, row("d1", 3))
    assert dict(refused.value.problems.codes) == {"conflict": 1}
    more = stored(cast, rated, row("d1", 1), row("d3", 3), row("d1", 1, "coherence"))
    assert (more.collapsed, more.stored) == (1, 2)
    first, second = JudgeRun.objects.order_by("pk")
    assert (second.judge, second.continues) == (first.judge, first)
    dataset, version = rated
    campaign = campaigns.open_campaign(project=cast.kassa, name="Both", dataset=dataset, rubric_version=version)
    assert len(ratings_tables.load(campaign=campaign)) == 4, "numbers read both as one"
    with pytest.raises(Refused, match="in use by 1 judge run"):
        verdicts.remove_verdicts(file_import=first.file_import)
    verdicts.remove_verdicts(file_import=second.file_import)
    assert Verdict.objects.count() == 2


def test_of_two_imports_of_a_judge_at_once_the_later_tries_again(
    cast: Cast, rated: tuple[Dataset, RubricVersion]
) -> None:
    def overtake(_share: float) -> None:
        if not JudgeRun.objects.exists():
            stored(cast, rated, row("d1", 1))

    with pytest.raises(Refused, match="Store this one again"):
        stored(cast, rated, row("d1", 2), progress=overtake)
    assert list(Verdict.objects.values_list("score", flat=True)) == [1]


def test_a_judge_that_is_run_here_is_not_taken_for_an_imported_one(
    cast: Cast, rated: tuple[Dataset, RubricVersion], settings: Any
) -> None:
    Judge.objects.create(project=cast.kassa, name="judge-x", provider="simulated", model="m", digest="d")
    with pytest.raises(Refused, match="Give the imported judge another name"):
        stored(cast, rated, row("d1", 1))


def test_an_import_undone_leaves_its_files_and_nothing_else(cast: Cast, rated: tuple[Dataset, RubricVersion]) -> None:
    dataset, version = rated
    file_import = opening.open_import(
        project=cast.kassa,
        kind=Import.Kind.VERDICTS,
        files=[
            ("v.csv", b"item,judge,criterion,score,reply\nd1,x,Fluency,3,three\nd1,x,Fluency,3,three\nd2,x,fluency,,\n")
        ],
        target={"dataset": dataset.pk, "rubric_version": version.pk},
    )
    verdicts.carry_out_verdicts(file_import=file_import)
    report = file_import.report
    assert [report[name] for name in ("read", "stored", "collapsed", "missing")] == [3, 1, 1, 1]
    tag = error_tags.tag_verdict(verdict=Verdict.objects.get(score=3), text="zu “streng”", actor=cast.boris)
    with pytest.raises(Refused, match="in use by 1 error tag"):
        verdicts.remove_verdicts(file_import=file_import)
    assert Verdict.objects.filter(pk=tag.verdict_id).exists()
    error_tags.remove_tag(tag=tag, actor=cast.boris)
    verdicts.remove_verdicts(file_import=file_import)
    for model in (Verdict, Attempt, JudgeRun, Judge):
        assert model.objects.count() == 0  # type: ignore[attr-defined]
    assert (file_import.state, file_import.files.count()) == ("uploaded", 1)
    assert judges.imported(project=cast.kassa, name="x").runs.count() == 0


def test_a_task_delivered_twice_stores_once(cast: Cast, rated: tuple[Dataset, RubricVersion]) -> None:
    dataset, version = rated
    file_import = opening.open_import(
        project=cast.kassa,
        kind=Import.Kind.VERDICTS,
        files=[("v.csv", b"item,judge,criterion,score\nd1,x,fluency,3\n")],
        target={"dataset": dataset.pk, "rubric_version": version.pk},
    )
    lifecycle.start(file_import=file_import)
    for _delivery in range(2):
        tasks.store_verdicts(file_import.pk)
    file_import.refresh_from_db()
    assert (file_import.state, Verdict.objects.count(), JudgeRun.objects.count()) == ("stored", 1, 1)


def test_an_exported_judge_and_its_prompt_come_back_as_the_same(
    cast: Cast, rated: tuple[Dataset, RubricVersion]
) -> None:
    stored(cast, rated, row("d1", 1, variant="terse"), row("d1", 3, variant="verbose"), row("d1", 2))
    dataset, version = rated
    campaigns.open_campaign(project=cast.kassa, name="Both", dataset=dataset, rubric_version=version)
    boris = cast.client("boris")
    answer = boris.get("/api/v1/projects/kassa/exports/verdicts/", {"format": "csv"})
    table = b"".join(answer.streaming_content)
    assert b"judge-x (terse)" in table and b",terse," in table
    said = {"dataset": dataset.pk, "rubric_version": version.pk}
    file_import = opening.open_import(
        project=cast.kassa, kind=Import.Kind.VERDICTS, files=[("verdicts.csv", table)], target=said
    )
    verdicts.carry_out_verdicts(file_import=file_import)
    assert (file_import.report["collapsed"], file_import.report["stored"]) == (3, 0)
    assert Judge.objects.count() == 3
