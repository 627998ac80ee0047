"""The published Estonian study, in by command and out as its known figures (docs/estonian-study.md walks it)."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from analytics.ratings import ratings_tables
from analytics.stats.agreement import rater_agreement
from analytics.stats.core.validation import ratings_table
from annotation.models import Campaign, Dataset, Rating
from tests.cast import Cast
from tests.study_data import FOLDER

STUDY = FOLDER / "xls-estonian"
RATED = STUDY / "human_annotated_data_et"
DIALOGUES = RATED / "combined_et_with_annotations.json"
RATINGS = (RATED / "calibration_query_result_anonymized.csv", RATED / "manual_query_result_anonymized.csv")
RUBRIC = Path(__file__).resolve().parent.parent / "examples" / "estonian-rubric.yaml"
KEY_RATERS = ("Annotator1", "Annotator2", "Annotator4")
EVERYBODY = (*KEY_RATERS, "Annotator3", "Annotator5")

pytestmark = pytest.mark.study_data


def told(command: str, *arguments: object) -> list[str]:
    out = StringIO()
    call_command(command, *map(str, arguments), "--project", "kassa", stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def study(cast: Cast) -> Campaign:
    """The 120 dialogues and the ratings of both files."""
    told("import_dataset", DIALOGUES, "--name", "Estonian dialogues")
    told("import_rubric", RUBRIC, "--publish")
    told("import_ratings", *RATINGS)
    return Campaign.objects.get()


def alpha(campaign: Campaign, raters: tuple[str, ...], **level: Any) -> dict[str, float]:
    """Krippendorff's alpha by criterion, at the rubric's level or another one, to three decimals."""
    scales = {key: replace(scale, **level) for key, scale in campaign.rubric_version.scales.items()}
    table = ratings_table(ratings_tables.load(campaign=campaign), scales=scales)
    found = rater_agreement.agreement_report(table, raters=raters, statistics=["krippendorff_alpha"], bootstrap=0)
    return {each.cell["criterion"]: round(each.estimate.value, 3) for each in found}  # type: ignore[misc, arg-type]


def test_the_files_come_in_with_the_counts_of_their_source(cast: Cast) -> None:
    assert "stored: 120" in told("import_dataset", DIALOGUES, "--name", "Estonian dialogues")
    told("import_rubric", RUBRIC, "--publish")
    lines = told("import_ratings", *RATINGS)
    assert lines[:5] == ["read: 1268", "stored: 1016", "collapsed: 248 (of which blank: 1)", "missing: 4", "refused: 0"]
    assert "“Is this fluent, human-written Estonian?” was taken as the criterion fluency." in lines
    inside = told("import_ratings", DIALOGUES)
    assert inside[:3] == ["read: 1016", "stored: 0", "collapsed: 1016 (of which blank: 0)"]
    assert Rating.objects.count() == 1016


@pytest.mark.parametrize(("language", "dialogues"), [("en", 692), ("et", 697), ("fi", 692), ("hu", 684)])
def test_the_dialogues_of_the_paper_come_in(cast: Cast, language: str, dialogues: int) -> None:
    told("import_dataset", STUDY / "paper_data" / f"combined_{language}.json")
    stored = Dataset.objects.get()
    assert stored.items.count() == dialogues
    assert stored.items.exclude(language=language).count() == 0
    assert stored.items.order_by().values("generator").distinct().count() == 6


def test_its_known_figures_come_out(study: Campaign) -> None:
    assert alpha(study, KEY_RATERS) == {"fluency": 0.489, "coherence": 0.415}
    assert alpha(study, KEY_RATERS, level="nominal") == {"fluency": 0.338, "coherence": 0.415}
    assert alpha(study, EVERYBODY, level="nominal") == {"fluency": 0.116, "coherence": 0.228}
