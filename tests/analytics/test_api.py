"""The numbers and the ratings table by API: the same figures from the CSV as from the JSON."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from django.test import Client

from analytics.answers import snapshots
from analytics.questions.question import Settings
from analytics.ratings.rating_rows import Row
from analytics.stats.agreement import rater_agreement
from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import agreement_classes, calibration, corrected_means
from annotation.models import Annotator, Campaign
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def make_scene(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made, {"fluency": [9, "unparsed", 2, 2.5, 2, 0, 2, 2, 1, 0, 2, 1], "coherence": 12 * [1]})
    snapshots.snapshot(campaign=made)
    return made


def base(campaign: Campaign) -> str:
    return f"/api/v1/projects/kassa/campaigns/{campaign.pk}"


def table(client: Client, campaign: Campaign, query: str = "") -> str:
    answer = client.get(f"{base(campaign)}/ratings.csv{query}", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    return b"".join(answer.streaming_content).decode()


def numbers(client: Client, campaign: Campaign, query: str = "") -> dict[str, Any]:
    answer = client.get(f"{base(campaign)}/numbers/{query}")
    assert answer.status_code == 200
    return dict(answer.json())


def figures_again(text: str, campaign: Campaign, settings: dict[str, Any]) -> dict[tuple[Any, ...], CellEstimate]:
    """Every figure computed anew from the CSV, by what it is about."""
    frame = pd.read_csv(io.StringIO(text))
    again = ratings_table(frame, scales=campaign.rubric_version.scales)
    how = {name: settings[name] for name in ("bootstrap", "confidence", "seed")}
    found: list[CellEstimate] = []
    for by in (("language", "criterion"), ("criterion",)):
        found += rater_agreement.agreement_report(again, by=by, **how)
        found += calibration.calibration_report(again, judge="Kohtunik", by=by, **how)
        found += [
            *agreement_classes.score_share_report(again, by=by),
            *agreement_classes.agreement_class_report(again.annotators(), by=by),
        ]
        inside = [
            row
            for row in agreement_classes.agreement_class_report(again, by=by)
            if row.estimate.statistic == "score_share"
        ]
        found += [replace(row, estimate=row.estimate.with_(statistic="class_score_share")) for row in inside]
    found += corrected_means.means_report(again, confidence=how["confidence"])
    return {_about(each.as_row()): each for each in found}


def _about(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("statistic", "variant", "criterion", "language", "judge", "generator", "agreement_class")
    return tuple(row.get(name) for name in names)


def test_the_csv_gives_the_figures_of_the_json(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    snapshot = numbers(client, campaign)["snapshot"]
    again = figures_again(table(client, campaign), campaign, snapshot["settings"])
    compared = [row for row in snapshot["estimates"] if row["value"] is not None]
    assert len(compared) > 40
    for row in snapshot["estimates"]:
        same = again[_about(row)].as_row()
        for name in ("value", "n_items", "n_raters", "n_ratings", "n_missing", "reason"):
            assert row[name] == same[name], (row, name)
    bias = next(row for row in compared if row["statistic"] == "bias" and row["language"] == "et")
    assert [bias["low"], bias["high"]] == [again[_about(bias)].estimate.low, again[_about(bias)].estimate.high]


def test_the_table_has_the_published_columns_and_one_line_per_score(cast: Cast, campaign: Campaign) -> None:
    header, *rows = csv.reader(io.StringIO(table(cast.client("boris"), campaign)))
    assert header == [*Row._fields, "panelbench_marks"]
    assert len(rows) == 60
    judge = dict(zip(header, rows[2], strict=True))
    assert (judge["rater"], judge["score"], judge["missing_reason"]) == ("Kohtunik", "9", "out_of_range")


def test_a_name_that_looks_like_a_formula_is_harmless_in_the_table(cast: Cast, campaign: Campaign) -> None:
    Annotator.objects.filter(pseudonym="mari").update(pseudonym='=HYPERLINK("http://x")')
    raters = {row["rater"] for row in csv.DictReader(io.StringIO(table(cast.client("boris"), campaign)))}
    assert '\'=HYPERLINK("http://x")' in raters


def test_provenance_comes_with_the_figures(cast: Cast, campaign: Campaign) -> None:
    found = numbers(cast.client("boris"), campaign)
    assert not found["stale"]
    stored = snapshots.newest([campaign])[campaign.pk]
    snapshot = found["snapshot"]
    assert (snapshot["id"], snapshot["inputs_digest"], snapshot["revision"]) == (
        stored.pk, stored.inputs_digest, stored.revision,
    )  # fmt: skip
    assert snapshot["settings"] == {
        "raters": [],
        "blind_only": False,
        "reference": "",
        "bootstrap": 2000,
        "confidence": 0.95,
        "seed": 20260101,
    }
    assert [(judge["name"], judge["simulated"]) for judge in snapshot["judges"]] == [("Kohtunik", True)]
    assert {"criterion", "language", "judge", "reasons"} <= snapshot["counts"][0].keys()


def test_a_subset_of_raters(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    assert numbers(client, campaign, "?raters=mari,jaan") == {"stale": True, "snapshot": None}
    snapshots.snapshot(campaign=campaign, settings=Settings(raters=("jaan", "mari")))
    assert numbers(client, campaign, "?raters=mari&raters=jaan")["snapshot"]["settings"]["raters"] == ["jaan", "mari"]
    lines = csv.DictReader(io.StringIO(table(client, campaign, "?raters=mari")))
    assert {row["rater"] for row in lines} == {"mari", "Kohtunik"}


@pytest.mark.parametrize("route", ["numbers/", "ratings.csv"])
def test_an_unknown_rater_is_refused(cast: Cast, campaign: Campaign, route: str) -> None:
    answer = cast.client("boris").get(f"{base(campaign)}/{route}?raters=keegi")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_rater")


@pytest.mark.parametrize(("who", "status"), [("aino", 200), ("boris", 200), ("maarika", 403), ("zoltan", 404)])
def test_numbers_are_for_leads_and_researchers(cast: Cast, campaign: Campaign, who: str, status: int) -> None:
    for route in ("numbers/", "ratings.csv"):
        answer = cast.client(who).get(f"{base(campaign)}/{route}")
        b"".join(getattr(answer, "streaming_content", []))  # read to its end, so that its file is closed
        assert answer.status_code == status


def test_the_routes_ask_few_questions(cast: Cast, campaign: Campaign, django_assert_num_queries: Any) -> None:
    client = cast.client("boris")
    with django_assert_num_queries(10):
        numbers(client, campaign)
    # One for the scales; the plan reads the criteria; three note who took labels; one transaction: here a savepoint,
    # and its release.
    with django_assert_num_queries(28):
        table(client, campaign)
