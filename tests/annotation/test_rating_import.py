"""Ratings by the hundred thousand: one annotation for each rater and item, keys that hold, nothing half stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation import bulk
from annotation.imports import storage
from annotation.imports.rating_rows import ANNOTATION, RATING, fit_ratings
from annotation.imports.storage import FileRefused
from annotation.models import Annotation, Annotator, Campaign, Import, Rating
from annotation.readers.ratings import RatingRow
from annotation.readers.spool import PartitionedRows
from tests import make
from tests.cast import Cast


def row(item: str, rater: str, score: float | None, criterion: str = "fluency", **parts: Any) -> RatingRow:
    given = RatingRow(item, rater, criterion, score, True, score is None, "", None, None, None, "r.csv", 2, "points")
    return given._replace(**parts)


def store(campaign: Campaign, rows: list[RatingRow], **parts: Any) -> Any:
    opened = Import.objects.create(project=campaign.project, kind=Import.Kind.RATINGS)
    return storage.store_ratings(campaign=campaign, rows=rows, file_import=opened, **parts)


def test_what_belongs_together_is_on_one_shelf_in_its_order() -> None:
    shelves = PartitionedRows(lambda row: row[0], rows=1_000_000)
    rows = [(number % 7, number) for number in range(100)]
    shelves.extend(rows[:50])
    shelves.extend(rows[50:])
    assert len(shelves) == 100
    found = list(shelves)
    assert sorted(row for shelf in found for row in shelf) == sorted(rows)
    for key in range(7):
        (shelf,) = (shelf for shelf in found if any(row[0] == key for row in shelf))
        assert [row for row in shelf if row[0] == key] == [row for row in rows if row[0] == key]


def test_a_file_sorted_by_criterion_gives_one_annotation_per_rater_and_item(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    rows = [
        row(f"d{item}", rater, float(item % 2), criterion, rationale=f"{rater}{item}", seconds=float(item))
        for criterion in ("fluency", "coherence")
        for rater in ("A", "B")
        for item in range(1, 5)
    ]
    report = store(campaign, rows, identified=False)
    assert (report.stored, report.raters, Annotation.objects.count(), Rating.objects.count()) == (16, ["A", "B"], 8, 16)
    stored = Rating.objects.values_list(
        "annotation__item__external_id", "annotation__annotator__pseudonym", "criterion__key", "score", "rationale"
    )
    assert set(stored) == {(each.item, each.rater, each.criterion, each.score, each.rationale) for each in rows}
    assert set(Annotation.objects.values_list("item__external_id", "seconds")) == {
        (f"d{n}", float(n)) for n in range(1, 5)
    }
    assert not Annotator.objects.filter(identified=True, user=None).exists()
    again = store(campaign, rows)
    assert (again.stored, again.collapsed, Rating.objects.count()) == (0, 16, 16)


def test_faults_name_the_column_of_the_file_and_scores_off_the_scale_are_counted_by_it(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    rows = [row("d1", "A", 9.0), row("d2", "A", 9.0), row("d3", "A", 2.0), row("d4", "A", 7.0, column="more")]
    fit = fit_ratings(dataset=campaign.dataset, rubric_version=campaign.rubric_version, campaign=campaign, rows=rows)
    assert (fit.report.off_scale, fit.report.stored) == ({"points": 2, "more": 1}, 1)
    with pytest.raises(FileRefused) as refused:
        store(campaign, rows)
    assert [problem.column for problem in refused.value.problems] == ["points", "points", "more"]
    assert Annotation.objects.count() == 0


GOOD = [(0.0, True, {}), (1.0, True, {"rationale": "why", "seconds": 2.5}), (None, True, {}), (1.0, True, {})]
BAD = [(7.0, True, {"column": "more"}), (1.0, True, {"scale_max": 9.0}), (None, False, {})]
odd_rows = st.builds(
    lambda item, rater, criterion, answer: row(item, rater, answer[0], criterion, applicable=answer[1], **answer[2]),
    st.sampled_from([*("d1", "d2", "d3") * 5, "d9"]),
    st.sampled_from([*("A", "B") * 7, "B" * 81]),
    st.sampled_from([*("fluency", "coherence") * 7, "fluencie"]),
    st.sampled_from([*GOOD * 6, *BAD]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(odd_rows, min_size=1, max_size=6))
def test_rows_are_held_against_the_campaign_together_as_they_are_one_by_one(cast: Cast, rows: list[RatingRow]) -> None:
    campaign = Campaign.objects.filter(name="Held").first() or make.campaign(cast.kassa, name="Held")
    if not Annotation.objects.filter(campaign=campaign).exists():
        store(campaign, [row("d1", "A", 1.0)])
    one_by_one = [row("nowhere", "A", 1.0), *rows]  # a row that is refused: none is taken unseen
    together, apart = (
        fit_ratings(dataset=campaign.dataset, rubric_version=campaign.rubric_version, campaign=campaign, rows=given)
        for given in (rows, one_by_one)
    )
    assert list(together.rows) == list(apart.rows)
    assert together.problems.sentences() == apart.problems.sentences()[1:]
    assert replace(together.report, given=0) == replace(apart.report, given=0)


def test_text_and_numbers_are_stored_as_they_are(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    odd = ["\\", r"\N", r"\.", "a\tb\r\nc\\", "\u2028\x1b\u200f", "", "õ'\"", r"\\n"]
    rows = [row(f"d{number % 4 + 1}", f"A{number}", 1.0, rationale=text) for number, text in enumerate(odd)]
    store(campaign, [*rows, row("d1", "B", 0.0, seconds=0.1 + 0.2), row("d2", "B", 3.0, seconds=1e-7)])
    stored = Rating.objects.filter(annotation__annotator__pseudonym__startswith="A").order_by("pk")
    assert sorted(stored.values_list("rationale", flat=True)) == sorted(odd)
    seconds = Annotation.objects.exclude(seconds=None).values_list("seconds", flat=True)
    assert set(seconds) == {0.1 + 0.2, 1e-7}


def test_more_rows_than_a_statement_inserts_are_all_stored(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    count = 2 * bulk.OF_A_STATEMENT + 37
    rows = [row(f"d{n % 4 + 1}", f"A{n}", float(n % 4), rationale=f"{n}", seconds=n / 7) for n in range(count)]
    store(campaign, rows)
    stored = Rating.objects.values_list("annotation__annotator__pseudonym", "score", "rationale", "annotation__seconds")
    assert set(stored) == {(each.rater, each.score, each.rationale, each.seconds) for each in rows}
    assert len(stored) == count


def test_primary_keys_are_nobody_elses(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    store(campaign, [row("d1", "A", 1.0)])
    with transaction.atomic():
        reserved = bulk.reserve_keys(Annotation, 3)
        assert len({*reserved, *Annotation.objects.values_list("pk", flat=True)}) == 4
    store(campaign, [row("d2", "A", 1.0)])
    assert Annotation.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("field", ["item_id", "criterion_id"])
@pytest.mark.parametrize("may_suspend", [True, False])
def test_a_row_that_points_nowhere_is_found_however_the_keys_are_looked_up(
    cast: Cast, field: str, may_suspend: bool
) -> None:
    campaign = make.campaign(cast.kassa)
    store(campaign, [row("d1", "A", 1.0)])
    there = {"item_id": campaign.dataset.items.get(external_id="d2").pk, "criterion_id": _criterion(campaign)}
    if connection.vendor == "postgresql" and not may_suspend:
        _forbid()
    try:
        assert bulk.Load().suspends == (connection.vendor == "postgresql" and may_suspend)
        _load(campaign, **there)
        with pytest.raises(IntegrityError):
            _load(campaign, **{**there, field: 10**9})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE" if connection.vendor == "postgresql" else "SELECT 1")
    assert (Annotation.objects.count(), Rating.objects.count()) == (2, 2)


def _criterion(campaign: Campaign) -> int:
    return int(campaign.rubric_version.criteria.get(key="fluency").pk)


def _forbid() -> None:
    """Go on as a role that may write and no more, as in a database that somebody else administers."""
    with connection.cursor() as cursor:
        cursor.execute("DO $$ BEGIN CREATE ROLE plain; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        cursor.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
        cursor.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain")
        cursor.execute("SET ROLE plain")


def _load(campaign: Campaign, item_id: int, criterion_id: int) -> None:
    rater = Annotator.objects.get(pseudonym="A").pk
    opened = Import.objects.create(project=campaign.project, kind=Import.Kind.RATINGS)
    with transaction.atomic(), bulk.Load() as load:
        (number,) = bulk.reserve_keys(Annotation, 1)
        made = (number, campaign.pk, item_id, rater, opened.pk, 1, None, timezone.now())
        load.insert(Annotation, ANNOTATION, [made])
        load.insert(Rating, RATING, [(number, criterion_id, "scored", 1.0, "")])
