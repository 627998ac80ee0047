"""The ratings table: every score that counts, once, with what it is about."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from django.utils import timezone

from analytics.exporting import combined_rows
from analytics.ratings import ratings_tables
from analytics.ratings.item_attributes import ItemAttributes
from analytics.ratings.raters import campaign_annotators, newest_runs, rater_names, ratings_condition
from analytics.ratings.rating_rows import Row
from analytics.ratings.ratings_tables import _distinct_numbers
from annotation import exports as rated
from annotation import selections
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Annotator, Campaign, Criterion, Item, Rating, Selection
from annotation.writers.coded_rows import CodedColumn, CodedRows
from annotation.writers.csv import joined_lines
from annotation.writers.formats import pieces
from annotation.writers.tables import Column, Table
from judging import exports as judged
from judging.models import Call, JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.annotation import scene as panel_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_one_row_per_score_in_a_stable_order(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    table = list(ratings_tables.rows(campaign=campaign))
    assert len(table) == 24 + 12 + 24
    assert table == list(ratings_tables.rows(campaign=campaign))
    assert [(row.item, row.criterion, row.rater, row.score) for row in table[:6]] == [
        ("et-0", "fluency", "mari", 0.0),
        ("et-0", "fluency", "jaan", 0.0),
        ("et-0", "fluency", "Kohtunik", 1.0),
        ("et-0", "coherence", "mari", 1.0),
        ("et-0", "coherence", "jaan", 1.0),
        ("et-0", "coherence", "Kohtunik", 1.0),
    ]
    assert (table[0].cluster, table[0].language, table[0].generator) == ("s0", "et", "atlas")


def test_an_item_without_scenario_is_its_own_cluster(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=1)
    make.rated(campaign, {"fluency": {"mari": [2]}})
    assert next(ratings_tables.rows(campaign=campaign)).cluster == "d1"


def test_the_desks_ratings_carry_panel_and_probability(cast: Cast) -> None:
    duty = panel_scene.duty(cast, items=1)
    taken = panel_scene.taken(cast, duty)
    Selection.objects.filter(duty=duty).update(probability=0.25)
    service.submit(assignment=taken, key=taken.key, answers=panel_scene.ANSWERS, seconds=1)
    row = next(ratings_tables.rows(campaign=duty.campaign))
    assert (row.panel, row.inclusion_prob, row.weight) == ("Estonian", 0.25, 4.0)


def test_a_superseded_annotation_does_not_count(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    Annotation.objects.filter(annotator__pseudonym="mari").update(superseded_at=timezone.now())
    assert {row.rater for row in ratings_tables.rows(campaign=campaign)} == {"jaan", "noor", "hala"}
    assert [each.pseudonym for each in campaign_annotators(campaign)] == ["hala", "jaan", "noor"]


def test_not_applicable_and_stopped_have_no_score_and_say_which(cast: Cast) -> None:
    criteria = [make.criterion("tone", not_applicable=True), make.criterion("safety", (0, 1), group="critical")]
    duty = panel_scene.duty(cast, items=1, criteria=[criteria[1], criteria[0]])
    taken = panel_scene.taken(cast, duty)
    answers = {"safety": Answer(score=0), "tone": Answer(status=Rating.Status.STOPPED)}
    service.submit(assignment=taken, key=taken.key, answers=answers, seconds=1)
    rows = {row.criterion: row for row in ratings_tables.rows(campaign=duty.campaign)}
    assert (rows["tone"].score, rows["tone"].applicable, rows["tone"].missing_reason) == (None, True, "stopped")
    Rating.objects.filter(criterion__key="tone").update(status="na")
    rows = {row.criterion: row for row in ratings_tables.rows(campaign=duty.campaign)}
    assert (rows["tone"].score, rows["tone"].applicable, rows["tone"].missing_reason) == (None, False, None)


def test_a_verdict_off_the_scale_keeps_its_number_and_says_so(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    run = scene.with_verdicts(campaign, {"fluency": [9, "unparsed", *10 * [1]]})
    rows = [row for row in ratings_tables.rows(campaign=campaign, runs=[run]) if row.rater == "Kohtunik"][:2]
    assert [(row.score, row.missing_reason) for row in rows] == [(9.0, "out_of_range"), (None, "unparsed")]


def test_a_judge_with_an_annotators_name_is_told_apart(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign, name="mari")
    kinds = {row.rater: row.rater_kind for row in ratings_tables.rows(campaign=campaign)}
    assert (kinds["mari"], kinds["mari (judge)"]) == ("annotator", "judge")


def test_only_the_raters_asked_for(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    chosen = {row.rater for row in ratings_tables.rows(campaign=campaign, raters=["mari", "noor"])}
    assert chosen == {"mari", "noor", "Kohtunik"}


class TestNewestRuns:
    def test_the_newest_run_of_each_judge(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        scene.with_verdicts(campaign)
        newer, other = scene.with_verdicts(campaign), scene.with_verdicts(campaign, name="Teine")
        assert set(newest_runs(campaign)) == {newer, other}

    def test_a_run_under_way_replaces_no_finished_one(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        finished, under_way = (
            scene.with_verdicts(campaign),
            scene.with_verdicts(campaign, {"fluency": [1, *11 * [None]]}),
        )
        call = Call.objects.create(run=under_way, item=campaign.dataset.items.first())
        assert list(newest_runs(campaign)) == [finished]
        Call.objects.filter(pk=call.pk).update(state=Call.State.SETTLED)
        assert list(newest_runs(campaign)) == [under_way]

    def test_a_whole_run_under_way_replaces_no_finished_one_over_a_selection(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        of_part = scene.with_verdicts(campaign)
        whole = scene.with_verdicts(campaign, {"fluency": [1, *11 * [None]]})
        chosen = selections.select(campaign=campaign, name="Some", rule={"kind": "list", "items": ["et-0"]})
        JudgeRun.objects.filter(pk=of_part.pk).update(selection=chosen)
        call = Call.objects.create(run=whole, item=campaign.dataset.items.first())
        assert list(newest_runs(campaign)) == [of_part]
        Call.objects.filter(pk=call.pk).update(state=Call.State.SETTLED)
        assert list(newest_runs(campaign)) == [whole]

    def test_a_run_cancelled_before_it_said_anything_does_not_count(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        spoke = scene.with_verdicts(campaign)
        silent = scene.with_verdicts(campaign, {})
        JudgeRun.objects.filter(pk=silent.pk).update(state=JudgeRun.State.CANCELLED)
        assert list(newest_runs(campaign)) == [spoke]

    def test_a_run_on_other_items_does_not_count(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        others = make.dataset(cast.kassa, 2, name="Others")
        scene.with_verdicts(Campaign(project=cast.kassa, dataset=others, rubric_version=campaign.rubric_version), {})
        assert not newest_runs(campaign)


def test_the_frame_has_the_published_columns_also_when_empty(cast: Cast) -> None:
    frame = ratings_tables.load(campaign=make.campaign(cast.kassa))
    assert (tuple(frame.columns), len(frame), str(frame["score"].dtype)) == (Row._fields, 0, "float64")


def test_a_long_scale_is_spelt_out(cast: Cast) -> None:
    long = make.criterion("quality", scale={"level": "interval", "min": 0, "max": 100, "step": 5}, anchors={})
    version = make.rubric(cast.kassa, long)
    scale = version.criteria.get().declared_scale
    assert (scale.q, scale.points[:3], scale.level) == (21, (0.0, 5.0, 10.0), "interval")


def test_coded_columns_are_the_rows_of_the_exports(cast: Cast) -> None:
    """Against the rows that the exports read one by one: text that looks like a formula, N/A, repeats, selections."""
    campaign = scene.rated_campaign(cast)
    Item.objects.filter(ordinal=3).update(external_id="=1+1", scenario="", generator="", attributes={"task": "@a, b"})
    Item.objects.filter(ordinal=5).update(attributes={"task": 'say "no"', "n": [1, 2]}, external_id="a\nb")
    Annotator.objects.filter(pseudonym="noor").update(pseudonym="-noor", identified=False)
    Annotation.objects.filter(item__ordinal=2).update(seconds=2.25, blind=False)
    Rating.objects.filter(annotation__item__ordinal=4).update(status="na", score=None, rationale="not about this")
    first = scene.with_verdicts(campaign, {"fluency": ["refused", 1.5, 9, 3, *8 * [1]]})
    Verdict.objects.create(run=first, item=campaign.dataset.items.all()[0], criterion_id=_fluency(campaign), repeat=2,
                           status="ok", applicable=False)  # fmt: skip
    scene.with_verdicts(campaign, name="mari")
    heads = list(newest_runs(campaign))
    for blind_only in (False, True):
        only = ratings_condition((), blind_only=blind_only)
        people = rated.ratings(campaign, names=rated.pseudonyms(campaign.project), rationales=False, only=only)
        judges = judged.exported_verdicts(heads, names=rater_names(campaign, heads), rationales=False)
        attributes = ItemAttributes(campaign.dataset)
        rows = [(*row, *attributes.of(row.item)) for row, *_rest in combined_rows.combined(campaign, people, judges)]
        coded = ratings_tables.table(campaign=campaign, blind_only=blind_only)
        assert list(coded.rows) == rows
        written = b"".join(pieces(coded, "csv"))
        assert written == b"".join(pieces(replace(coded, rows=rows), "csv"))
        assert b"'=1+1" in written and b"'item" in written and b"'-noor" in written
    nobody = ratings_tables.table(campaign=campaign, runs=[], raters=["nobody"])
    assert list(nobody.rows) == [] and b"".join(pieces(nobody, "csv")).count(b"\n") == 1


def _fluency(campaign: Campaign) -> int:
    return Criterion.objects.get(rubric_version=campaign.rubric_version, key="fluency").pk


@pytest.mark.parametrize(("size", "longest"), [(3, "õ"), (3, "õ" * 600), (700, "\U0001f642")])
def test_csv_of_coded_columns_is_that_of_rows(size: int, longest: str) -> None:
    rng = random.Random(size)
    values = [
        longest,
        "",
        None,
        "=a",
        "+ b",
        "a,b",
        'q"',
        "line\nbreak",
        "@",
        " x ",
        *(f"v{number}" for number in range(size)),
    ]
    columns = (*(Column(f"k{place}", optional=place == 1) for place in range(6)), Column("n", "number"))
    shared = [rng.randrange(len(values)) for _row in range(500)]
    codes = [shared, shared, *([rng.randrange(len(values)) for _row in range(500)] for _column in range(4))]
    coded = [CodedColumn(np.array(shared if each is shared else each), values) for each in codes]
    coded[1] = coded[1]._replace(codes=coded[0].codes)
    coded.append(CodedColumn(np.array([row % 3 for row in range(500)]), [1.0, None, 0.25]))
    table = Table("t", columns, CodedRows(coded))
    assert b"".join(pieces(table, "csv")) == b"".join(pieces(replace(table, rows=list(table.rows)), "csv"))
    no_rows = CodedRows(coded).kept(np.zeros(500, dtype=bool))
    assert b"".join(joined_lines(no_rows.columns, "\r\n")) == b""


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_distinct_numbers_are_those_of_a_sort(kind: type) -> None:
    rng = np.random.default_rng(0)
    columns = [[], [5], [-1, 7, -1], rng.integers(-3, 4, 50), [0, 2**40, 2**40], rng.integers(10**7, 10**7 + 9, 30)]
    if kind is np.float64:
        columns += [[np.nan, np.nan], [2, np.nan, -1, 2], [0.5, np.nan, 0.25, 0.5], [1e12, -1e12], [np.inf, 1]]
    for column in columns:
        numbers = np.array(column, dtype=kind)
        expected, places = np.unique(numbers, return_inverse=True)
        codes, values = _distinct_numbers(numbers)
        assert repr(values) == repr(expected.tolist())
        assert codes.tolist() == places.tolist()
