"""Drift of raters by page, API and command, from the moments at which ratings were submitted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.core.management import call_command

from analytics.answers import snapshots
from analytics.questions.asked import question_of
from annotation.models import Annotation, Assignment, Campaign, Duty, Panel
from tests import make
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
ITEMS, RATERS = 60, ("mari", "jaan", "noor")
ASKED = "statistic=raters.rasch_drift&rows=annotator&columns=criterion&bootstrap=0"
MOMENT = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def rated(cast: Cast) -> Campaign:
    """60 items in another order for each of three people; mari gives one point more in the later half."""
    rng = np.random.default_rng(26)
    campaign = make.campaign(cast.kassa, items=ITEMS, name='Two words, "quotes" ليلى')
    quality = rng.integers(0, 3, size=ITEMS)
    orders = {name: rng.permutation(ITEMS).tolist() for name in RATERS}
    scores = {
        name: [
            float(np.clip(quality[item] + rng.integers(0, 2) + (name == "mari" and order.index(item) >= 30), 0, 3))
            for item in range(ITEMS)
        ]
        for name, order in orders.items()
    }
    make.rated(campaign, {campaign.rubric_version.criteria.earliest("position").key: scores})
    places = dict(campaign.dataset.items.values_list("pk", "ordinal"))
    first = min(places.values())
    for annotation in Annotation.objects.filter(campaign=campaign).select_related("annotator"):
        place = orders[annotation.annotator.pseudonym].index(places[annotation.item_id] - first)
        Annotation.objects.filter(pk=annotation.pk).update(submitted_at=MOMENT + timedelta(minutes=7 * place))
    return campaign


def submit_here(campaign: Campaign) -> None:
    """The same ratings as if they had been given at the desk."""
    panel = Panel.objects.create(project=campaign.project, name="Tartu")
    duty = Duty.objects.create(campaign=campaign, panel=panel, name="Duty", overlap=len(RATERS), seed=1)
    for annotation in Annotation.objects.filter(campaign=campaign).select_related("annotator"):
        key, slot = uuid4(), RATERS.index(annotation.annotator.pseudonym) + 1
        assignment = Assignment.objects.create(
            duty=duty, item_id=annotation.item_id, slot=slot, position=1, state="submitted", key=key,
            annotator_id=annotation.annotator_id, leased_at=MOMENT, leased_until=MOMENT,
        )  # fmt: skip
        Annotation.objects.filter(pk=annotation.pk).update(file_import=None, assignment=assignment, key=key)


def answer(cast: Cast, campaign: Campaign) -> dict[str, dict[str, Any]]:
    snapshots.snapshot(campaign=campaign, settings=question_of(ASKED))  # as a worker does
    told = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{ASKED}")
    assert told.status_code == 200, told.content
    return {row["annotator"]: row for row in told.json()["answer"]["estimates"]}


def test_imported_ratings_have_no_times(cast: Cast, rated: Campaign) -> None:
    assert {row["reason"] for row in answer(cast, rated).values()} == {"no times of ratings are known"}


def test_drift_is_found_by_page_api_and_command(
    cast: Cast, rated: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    submit_here(rated)
    rows = answer(cast, rated)
    assert set(rows) == set(RATERS)
    assert rows["mari"]["low"] > 0 and rows["mari"]["p_corrected"] < 0.001 and rows["mari"]["family"] == 3
    assert all(rows[name]["p_corrected"] > 0.05 and rows[name]["low"] < 0 for name in RATERS[1:])
    page = cast.client("boris").get(f"/p/kassa/numbers/{rated.pk}/explore/?{ASKED}").content.decode()
    assert "Drift of each rater (Rasch)" in page and f"+{rows['mari']['value']:.2f}" in page
    capsys.readouterr()
    call_command(
        "numbers", "--project", "kassa", "--statistic", "raters.rasch_drift", "--rows", "annotator",
        "--columns", "criterion", "--bootstrap", "0", "--format", "json",
    )  # fmt: skip
    printed = {row["annotator"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    assert {name: row["value"] for name, row in printed.items()} == {name: row["value"] for name, row in rows.items()}
