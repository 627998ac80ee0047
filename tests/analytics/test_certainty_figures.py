"""How sure annotators are, from the database to the ratings table, its exports and the figures that rest on it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from analytics.answers import snapshots
from analytics.questions.asked import question_of
from analytics.ratings import ratings_tables
from annotation.models import Annotation, Campaign
from tests.analytics import scene
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SURE = {"mari": (90, 80, 70, 20, 10, 40), "jaan": (50, 50, 50, 50, 50, None)}


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made)
    for name, values in SURE.items():
        here = Annotation.objects.filter(annotator__pseudonym=name).order_by("item__ordinal")
        for annotation, certainty in zip(here, values, strict=True):
            Annotation.objects.filter(pk=annotation.pk).update(certainty=certainty)
    return made


def test_the_table_and_its_files_have_the_certainty_of_each_annotation(cast: Cast, campaign: Campaign) -> None:
    rows = [
        row for row in ratings_tables.rows(campaign=campaign) if row.criterion == "fluency" and row.language == "et"
    ]
    assert [row.certainty for row in rows if row.rater == "mari"] == list(SURE["mari"])
    assert [row.certainty for row in rows if row.rater == "jaan"] == list(SURE["jaan"])
    assert {row.certainty for row in rows if row.rater_kind == "judge"} == {None}
    assert {row.certainty for row in ratings_tables.rows(campaign=campaign) if row.language == "ar"} == {None}
    client = cast.client("boris")
    for address in (
        f"/api/v1/projects/kassa/campaigns/{campaign.pk}/ratings.csv",
        "/api/v1/projects/kassa/exports/scores/?format=csv",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.content[:200])
        lines = list(csv.DictReader(io.StringIO(b"".join(answer).decode(), newline="")))
        own = [line["certainty"] for line in lines if line["rater"] == "mari" and line["criterion"] == "fluency"]
        assert own == [str(value) for value in SURE["mari"]], address


def test_its_figures_are_answered_by_name(cast: Cast, campaign: Campaign) -> None:
    query = "statistic=certainty.mean_certainty&statistic=certainty.certainty_rho&bootstrap=0"
    snapshots.snapshot(campaign=campaign, settings=question_of(query))
    told = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{query}").json()
    rows: list[dict[str, Any]] = told["answer"]["estimates"]
    means = {(row["criterion"], row["language"]): row["value"] for row in rows if row["asked"].endswith("n_certainty")}
    expected = [(90 + 50) / 2, (80 + 50) / 2, (70 + 50) / 2, (20 + 50) / 2, (10 + 50) / 2, 40]
    assert means["fluency", "et"] == pytest.approx(sum(expected) / 6)
    assert {language for _criterion, language in means} == {"et"}  # nobody said it in Arabic
    people = {row["annotator"] for row in rows if row["asked"] == "certainty.certainty_rho"}
    assert people == {"mari", "jaan"}


def test_a_certainty_that_changes_is_another_digest_and_leaves_other_figures_alone(campaign: Campaign) -> None:
    """Cells of other statistics do not depend on it: they are the stored ones."""
    asked = question_of("statistic=krippendorff_alpha&bootstrap=0")
    before = snapshots.snapshot(campaign=campaign, settings=asked)
    cells = set(campaign_cells(campaign))
    Annotation.objects.filter(annotator__pseudonym="mari").update(certainty=55)
    before.delete()
    after = snapshots.snapshot(campaign=campaign, settings=asked)
    assert after.inputs_digest != before.inputs_digest and set(campaign_cells(campaign)) == cells
    assert after.content["estimates"] == before.content["estimates"]


def campaign_cells(campaign: Campaign) -> list[str]:
    from analytics.models import StoredCell

    return list(StoredCell.objects.filter(campaign=campaign).values_list("digest", flat=True))
