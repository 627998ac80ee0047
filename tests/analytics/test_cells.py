"""Cells that are computed once: whatever changes, the figures are those of a computation that knows no stored cell."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connection

from analytics import answer_pages
from analytics.answers import revisions, snapshots, stored_cells
from analytics.answers.measured import report_cells
from analytics.answers.numbers_content import no_progress
from analytics.models import Snapshot, StoredCell, packed_rows, unpacked_rows
from analytics.questions.asked import question_of
from analytics.questions.question import Settings
from analytics.ratings import ratings_tables
from analytics.ratings.item_attributes import attribute_choices
from analytics.ratings.raters import campaign_annotators
from analytics.stats.declared.register import REPORTS, is_usual
from annotation.models import Annotation, Campaign, Criterion, Import, Item, Rating
from judging.models import JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.cast import Cast

FEW = "bootstrap=200&"
QUESTIONS = [
    Settings(bootstrap=200),
    Settings(bootstrap=200, reference="median", blind_only=True),
    question_of(FEW + "statistic=krippendorff_alpha&statistic=mae&statistic=cohen_kappa&reference=each"),
    question_of(FEW + "pool=on&rows=language&columns=judge&statistic=gwet_ac&statistic=spearman&statistic=accuracy"),
    question_of(FEW + "columns=languages&statistic=stability.kendall_tau_b&statistic=consistency.language_shift"),
    question_of(FEW + "rows=task&columns=&statistic=bias&statistic=ceiling_mae&statistic=class_share&min_seconds=5"),
    question_of(FEW + "statistic=fleiss_kappa&variant=paper_compat&variant=complete&where=language%3Det"),
    question_of(FEW + "statistic=mae&reference=dawid_skene&ties=lower&columns="),
    question_of(FEW + "statistic=left_out.gwet_ac&statistic=rationale_length&statistic=label_share&columns="),
    question_of(FEW + "statistic=criteria_spearman&statistic=commonest_share&columns=week&rows=language"),
]


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    on_scale(made, 4)
    Item.objects.filter(ordinal__lt=6).update(attributes={"task": "qa"}, generator="borealis")
    scene.with_verdicts(made)
    scene.with_verdicts(made, {"fluency": [2, 1, 0, 3, 2, 0, 1, 2, 1, 0, 2, 9]}, name="Teine")
    return made


def figures(campaign: Campaign, settings: Settings) -> Any:
    """What is stored for the campaign as it stands, computed with the cells that are stored."""
    Snapshot.objects.all().delete()
    content = snapshots.snapshot(campaign=campaign, settings=settings).content
    return json.loads(json.dumps(content, sort_keys=True))


def rated_anew(campaign: Campaign, rng: random.Random) -> None:
    scores: list[float | None] = [None] * 12
    scores[rng.randrange(12)] = float(rng.randrange(4))
    make.rated(campaign, {"fluency": {f"p{rng.random()}": scores}})


def superseded(_campaign: Campaign, rng: random.Random) -> None:
    row = rng.choice(list(Annotation.objects.filter(superseded_at=None)))
    Annotation.objects.filter(pk=row.pk).update(superseded_at=row.submitted_at)


def timed(_campaign: Campaign, rng: random.Random) -> None:
    row = rng.choice(list(Annotation.objects.filter(superseded_at=None)))
    Annotation.objects.filter(pk=row.pk).update(seconds=rng.choice((2, 30)), blind=rng.random() < 0.5)


def judged_anew(campaign: Campaign, rng: random.Random) -> None:
    scene.with_verdicts(campaign, {"fluency": [rng.randrange(4) for _item in range(12)]})


def repeated(_campaign: Campaign, rng: random.Random) -> None:
    one = rng.choice(list(Verdict.objects.filter(repeat=1)))
    again = {"run": one.run, "item": one.item, "criterion": one.criterion, "repeat": 2}
    Verdict.objects.get_or_create(**again, defaults={"status": "ok", "score": 1})


def corrected(_campaign: Campaign, rng: random.Random) -> None:
    """Somebody submits again: the former annotation is superseded."""
    row = rng.choice(list(Annotation.objects.filter(superseded_at=None)))
    old = list(Rating.objects.filter(annotation=row))
    Annotation.objects.filter(pk=row.pk).update(superseded_at=row.submitted_at)
    opened = Import.objects.create(project=row.campaign.project, kind=Import.Kind.RATINGS)
    again = {"campaign": row.campaign, "item": row.item, "annotator": row.annotator, "file_import": opened}
    new = Annotation.objects.create(**again, revision=row.revision + 1, seconds=row.seconds)
    Rating.objects.bulk_create(
        Rating(annotation=new, criterion=rating.criterion, status="scored", score=float(rng.randrange(4)))
        for rating in old
    )


def erased(campaign: Campaign, rng: random.Random) -> None:
    """Everything of one person is removed, or they get another name."""
    person = rng.choice(list(campaign_annotators(campaign)))
    if rng.random() < 0.5:
        type(person).objects.filter(pk=person.pk).update(pseudonym=f"r{rng.random()}", identified=False)
        return
    Rating.objects.filter(annotation__annotator=person).delete()
    Annotation.objects.filter(annotator=person).delete()


def undone(campaign: Campaign, rng: random.Random) -> None:
    """A judge's run is removed with its verdicts, and a verdict of another run becomes unreadable."""
    run = JudgeRun.objects.filter(project=campaign.project).order_by("pk").last()
    Verdict.objects.filter(run=run).delete()
    row = rng.choice(list(Verdict.objects.all()))
    Verdict.objects.filter(pk=row.pk).update(status="unparsed", score=None)


def sorted_anew(_campaign: Campaign, rng: random.Random) -> None:
    Item.objects.filter(ordinal=rng.randrange(1, 13)).update(attributes={"task": rng.choice(("qa", "sum"))})


def rescaled(campaign: Campaign, rng: random.Random) -> None:
    on_scale(campaign, rng.choice((4, 5)))


def on_scale(campaign: Campaign, points: int) -> None:
    """One scale for all criteria, so that they can be pooled."""
    criteria = Criterion.objects.filter(rubric_version=campaign.rubric_version)
    criteria.update(points=[{"value": value} for value in range(points)], maximum=points - 1)


CHANGES: tuple[Callable[[Campaign, random.Random], None], ...] = (
    rated_anew, superseded, timed, judged_anew, repeated, sorted_anew, rescaled, corrected, erased, undone
)  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_stored_cells_give_the_figures_of_a_full_computation(campaign: Campaign, seed: int) -> None:
    rng = random.Random(seed)
    for settings in QUESTIONS:
        figures(campaign, settings)
    for number, change in enumerate(CHANGES[seed::2]):
        change(campaign, rng)
        current = Campaign.objects.get(pk=campaign.pk)
        for settings in QUESTIONS[number % 2 :: 2]:
            incremental = figures(current, settings)
            StoredCell.objects.filter(settings_digest=settings.digest).delete()
            assert incremental == figures(current, settings), (change, settings)


def test_one_submission_computes_the_cells_it_touches(campaign: Campaign) -> None:
    settings = Settings(bootstrap=200)
    first = figures(campaign, settings)
    before = set(StoredCell.objects.values_list("digest", flat=True))
    assert figures(campaign, settings) == first
    make.rated(campaign, {"coherence": {"uus": [1, *11 * [None]]}})
    second = figures(campaign, settings)
    after = set(StoredCell.objects.values_list("digest", flat=True))
    assert len(before & after) >= len(before) // 2 > len(after - before)
    changed = [
        key for key in ("fluency", "coherence")
        if [row for row in first["estimates"] if row["criterion"] == key]
        != [row for row in second["estimates"] if row["criterion"] == key]
    ]  # fmt: skip
    assert changed == ["coherence"]


def test_figures_of_rationales_are_stale_once_some_are_emptied(campaign: Campaign) -> None:
    question = question_of(FEW + "statistic=rationale_length&columns=")
    rows = Rating.objects.filter(annotation__campaign=campaign)
    rows.update(rationale="Sujuv.")
    before = snapshots.snapshot(campaign=campaign, settings=question)
    rows.filter(annotation__annotator=Annotation.objects.earliest("pk").annotator).update(rationale="")  # as `redact`
    assert snapshots.current_snapshot(campaign=campaign, settings=question) == (before, True)
    after = snapshots.snapshot(campaign=campaign, settings=question)
    assert before.content["estimates"] != after.content["estimates"]


def test_half_of_the_cells_or_cells_of_older_code_change_nothing(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(bootstrap=200)
    first = figures(campaign, settings)
    half = list(StoredCell.objects.values_list("pk", flat=True))[::2]
    StoredCell.objects.filter(pk__in=half).delete()  # a worker was killed
    assert figures(campaign, settings) == first
    monkeypatch.setattr(revisions, "LAYOUT", revisions.LAYOUT + 1)
    StoredCell.objects.update(content='[{"statistic": "of older code"}]')
    assert figures(campaign, settings) == first


def test_cells_one_by_one_are_the_cells_of_a_report_on_the_whole_table(campaign: Campaign) -> None:
    from analytics.stats.agreement import rater_agreement
    from analytics.stats.core.validation import ratings_table
    from analytics.stats.judge import calibration

    scales = campaign.rubric_version.scales
    table = ratings_table(ratings_tables.load(campaign=campaign), scales=scales)
    coded = stored_cells.CodedTable(ratings_tables.table(campaign=campaign), scales, stored_cells.READ)
    settings, by = Settings(bootstrap=200), ("language", "criterion")
    how = {"by": by, "bootstrap": 200, "seed": settings.seed}

    def computed(report: stored_cells.CellReport) -> list[dict[str, Any]]:
        wanted, store = replace(report, row=lambda row: row.as_row()), stored_cells.CellStore(None, "", "")
        (rows,) = stored_cells.computed_cells(coded, [wanted], store=store, progress=no_progress)
        return rows

    def usual(rows: list[Any]) -> list[dict[str, Any]]:
        kept = [row for row in rows if is_usual(row.estimate.statistic, row.estimate.variant, row.estimate.level)]
        return [row.as_row() for row in kept]

    names = ("krippendorff_alpha", "fleiss_kappa", "gwet_ac", "percent_agreement")
    whole = usual(rater_agreement.agreement_report(table, statistics=names, **how))
    agreement = report_cells(REPORTS["agreement"], settings, by, names, arguments={})
    assert computed(agreement) == whole
    statistics = ("mae", "cohen_kappa", "spearman", "out_of_range")
    for judge in ("Kohtunik", "Teine"):
        whole = usual(calibration.calibration_report(table, judge=judge, statistics=statistics, **how))
        both = table.frame[table.frame["rater_kind"].eq("annotator") | table.frame["rater"].eq(judge)]
        there = {*zip(both["language"], both["criterion"], strict=True)}
        whole = [row for row in whole if (row["language"], row["criterion"]) in there]
        compared = {"judge": judge, "reference": None, "ties": "exclude"}
        report = report_cells(REPORTS["calibration"], settings, by, statistics, arguments=compared)
        assert computed(report) == whole


def test_counts_of_cells_are_those_of_their_rows(campaign: Campaign) -> None:
    repeated(campaign, random.Random(1))
    rated_anew(campaign, random.Random(1))
    Verdict.objects.filter(item__ordinal__in=(1, 8)).update(status="unparsed", score=None)
    Rating.objects.filter(annotation__item__ordinal=2).update(status="na", score=None)
    content = figures(campaign, Settings(bootstrap=200))
    off_scale = 9.0  # of the second judge
    for count in content["counts"]:
        rows = [
            row for row in ratings_tables.rows(campaign=campaign)
            if (row.rater_kind, row.rater if row.rater_kind == "judge" else "")
            == ("judge" if count["judge"] else "annotator", count["judge"])
            and row.criterion == count["criterion"] and row.language == count.get("language", row.language)
            and row.repeat == 0
        ]  # fmt: skip
        given = [row for row in rows if row.score not in (None, off_scale) and row.applicable]
        assert count["ratings"] == len(given)
        assert (count["items"], count["raters"]) == (len({r.item for r in given}), len({r.rater for r in given}))
        assert count["not_applicable"] == sum(not row.applicable for row in rows)
        reasons = [row.missing_reason for row in rows if row.missing_reason]
        assert count["reasons"] == {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    assert {count["judge"] for count in content["counts"]} == {"", "Kohtunik", "Teine"}
    assert any(count["not_applicable"] for count in content["counts"])


def test_a_busy_database_costs_a_command_no_answer(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(snapshots, "PAUSES", (0,))

    def busy(execute: Any, sql: str, *more: Any) -> Any:
        if sql.startswith(("INSERT", "DELETE")) and ("analytics_snapshot" in sql or "analytics_storedcell" in sql):
            tried.append(sql)
            raise OperationalError("database is locked")
        return execute(sql, *more)

    asked = replace(question_of("statistic=mae"), bootstrap=200)
    with connection.execute_wrapper(busy):
        answer = answer_pages.answer_now(campaign, asked)
        assert answer.pk is None and answer.content["estimates"]
        assert not Snapshot.objects.exists()
        with pytest.raises(OperationalError):
            snapshots.snapshot(campaign=campaign, settings=asked)
    assert sum("analytics_snapshot" in sql for sql in tried) == 3
    assert snapshots.snapshot(campaign=campaign, settings=asked).pk


def test_attributes_are_read_once(cast: Cast, campaign: Campaign, django_assert_max_num_queries: Any) -> None:
    attribute_choices(campaign.dataset)
    with django_assert_max_num_queries(0):
        assert attribute_choices(campaign.dataset).values == {"task": ("qa",)}


def test_files_of_answers_are_written_without_pandas() -> None:
    look = (
        "import django, sys; django.setup(); import panelbench.urls\n"
        "from analytics import answer_pages\n"
        "from analytics.models import Snapshot\n"
        "list(answer_pages.answer_csv(Snapshot(content={'estimates': [{'statistic': 'mae', 'value': 1.0}]})))\n"
        "print({'pandas', 'scipy'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_rows_stored_by_columns_are_the_same_rows_in_the_same_order_of_fields() -> None:
    few = [{"a": 1, "b": None, "c": ["x", "y"]}, {"b": "x", "a": 1.0}, {"a": True, "z": 0.0}, {"z": -0.0, "a": 0}]
    rows = [*few * 50, *({"n": n, "a": "text that stands in every row"} for n in range(100))]
    packed = json.dumps(packed_rows(rows))
    assert json.dumps(list(unpacked_rows(json.loads(packed)))) == json.dumps(rows)
    assert packed.count("text that") == 1 and len(packed) < len(json.dumps(rows)) / 3
    assert list(unpacked_rows(packed_rows([]))) == []
