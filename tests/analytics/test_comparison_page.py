"""The comparison of judges: its page, API, client-side JSON, and the items on which two of them differ."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.core.management import call_command
from django.http import QueryDict
from django.template.loader import render_to_string
from django.test import Client

from analytics import compared_judges
from analytics.models import Snapshot
from analytics.views.comparison import ComparisonPage, chosen_comparison
from annotation.models import Campaign
from judging.models import DesignCell, Judge, JudgeDesign, Verdict
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
NAMES = ("cold", "warm")


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    """Two judges that differ in temperature; the second scores one item less, and one by a point higher."""
    made = scene.rated_campaign(cast)
    first = {key: [float(score) for score in scores] for key, scores in scene.VERDICTS.items() if key == "fluency"}
    first = {"fluency": [1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 3.0, 2.0, 1.0]}
    second = {"fluency": [1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 2.0, 1.0, 0.0, 3.0, "unparsed", 2.0]}
    design = JudgeDesign.objects.create(
        project=cast.kassa,
        name="Heat",
        dataset=made.dataset,
        rubric_version=made.rubric_version,
        factors={"temperature": [0, 1]},
        jury="mean",
        started_at=made.created_at,
    )
    for place, (name, scores) in enumerate(zip(NAMES, (first, second), strict=True)):
        run = scene.with_verdicts(made, scores, name=name)
        Judge.objects.filter(pk=run.judge_id).update(parameters={"temperature": place})
        DesignCell.objects.create(design=design, position=place, levels={"temperature": place}, judge=run.judge)
        run.design = design
        run.save()
        Verdict.objects.filter(run=run).update(rationale=f"As {name} sees it.")
    return made


def shown(client: Client, campaign: Campaign, query: str = "", *, status: int = 200) -> str:
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/comparison/?{query}")
    assert answer.status_code == status
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def test_a_design_is_compared_on_the_items_that_all_of_its_judges_scored(cast: Cast, campaign: Campaign) -> None:
    design = JudgeDesign.objects.get()
    page = shown(cast.client("boris"), campaign, f"design={design.pk}&measure=accuracy&first=cold&second=warm")
    assert "temperature = 0" in page
    assert "mean of cold, warm" in page
    assert re.search(r"warm : 1 without a score", page)
    assert "both scored 11 pairs of item and criterion and differ on 2" in page
    assert page.index("As cold sees it.") < page.index("As warm sees it.")
    assert "needs two judges with a known cost" in page


def test_the_api_and_the_command_give_the_figures_of_the_page(
    cast: Cast, campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    design, client = JudgeDesign.objects.get(), cast.client("boris")
    address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/comparison/?design={design.pk}&measure=accuracy"
    told = scene.answered(client, campaign, f"{address}&first=warm&second=cold").json()
    assert not told["stale"]
    assert {judge["name"] for judge in told["judges"]} == {*NAMES, "mean of cold, warm"}
    largest = told["disagreements"][0]
    assert (largest["first_score"] - largest["second_score"], largest["first_rationale"]) == (3.0, "As warm sees it.")
    capsys.readouterr()
    call_command(
        "numbers", "--project", "kassa", "--format", "json", "--statistic", "comparison.accuracy",
        "--jury", "cold,warm", "--jury-rule", "mean",
    )  # fmt: skip
    of_command = json.loads(capsys.readouterr().out)["estimates"]
    of_page = [row for row in told["answer"]["estimates"] if row["asked"] == "comparison.accuracy"]
    figures = ("judge", "criterion", "language", "value", "low", "high", "n_items")
    assert [[row[name] for name in figures] for row in of_command] == [
        [row[name] for name in figures] for row in of_page
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("design=99", "There is no started design 99"),
        ("measure=beauty", "“beauty” is not a measure"),
        ("judge=nobody", "“nobody” is not a valid choice"),
        ("first=cold&second=nobody", "“nobody” is not among the judges"),
        ("colour=red", "There is no parameter “colour”"),
    ],
)
def test_what_is_not_there_is_refused_in_words(cast: Cast, campaign: Campaign, query: str, words: str) -> None:
    assert words in shown(cast.client("boris"), campaign, query, status=422)


def test_without_judges_the_page_says_how_to_get_some(cast: Cast) -> None:
    made = scene.rated_campaign(cast)
    assert "No judge has rated these items" in shown(cast.client("boris"), made)


def test_who_is_cheaper_and_no_worse_is_on_the_line() -> None:
    points = {"dear": (3.0, 0.7), "cheap": (1.0, 0.6), "worse": (2.0, 0.5), "same": (1.0, 0.6), "double": (3.0, 0.6)}
    assert compared_judges.efficient(points) == {"dear", "cheap", "same"}
    assert compared_judges.efficient(points, lower_is_better=True) == {"cheap", "same", "worse"}


def test_the_largest_differences_are_shares_of_the_scales_width(cast: Cast) -> None:
    """Two of three points on fluency are less than the whole width of coherence."""
    made = scene.rated_campaign(cast)
    runs = [
        scene.with_verdicts(made, {"fluency": [fluency, *11 * [1.0]], "coherence": [coherence, *11 * [1.0]]}, name=name)
        for name, fluency, coherence in (("one", 0.0, 0.0), ("two", 2.0, 1.0))
    ]
    rows = compared_judges.disagreements(*runs)
    assert [(row.criterion.key, row.difference) for row in rows] == [("coherence", -1.0), ("fluency", -2.0)]


def page_of(campaign: Campaign, rows: list[dict[str, Any]]) -> ComparisonPage:
    """The page of stored estimates."""
    plain = {"language": "et", "criterion": "fluency", "judge": None, "raters": None, "value": 0.5, "n_items": 40}
    stored = Snapshot(content={"estimates": [{**plain, "low": None, "high": None, **row} for row in rows]})
    return ComparisonPage(chosen_comparison(campaign, QueryDict("measure=accuracy")), stored)


@pytest.mark.parametrize(
    ("criteria", "unit", "sd"), [(("fluency", "fluency"), "points", 0.45), (("fluency", "coherence"), "width", 0.35)]
)
def test_repeats_on_scales_of_several_widths_are_shares_of_them(
    campaign: Campaign, criteria: tuple[str, str], unit: str, sd: float
) -> None:
    """0.3 on a width of 3 is 0.1, 0.6 on a width of 1 stays: their mean is 0.35."""
    rows = [
        {"asked": "audit.repeat_sd", "statistic": "repeat_sd", "judge": "cold", "criterion": criterion, "value": value}
        for criterion, value in zip(criteria, (0.3, 0.6), strict=True)
    ]
    judge = next(each for each in page_of(campaign, rows).judges if each.cost.name == "cold")
    assert judge.repeat_sd == pytest.approx(sd)
    assert judge.repeat_sd_unit == unit


def test_differences_and_the_headline_say_approximate_or_why_there_is_no_interval(campaign: Campaign) -> None:
    interval = {"low": 0.2, "high": 0.8, "method": "t (approximate: 4 clusters)"}
    accuracy = {"asked": "comparison.accuracy", "statistic": "accuracy"}
    difference = {"asked": "comparison.accuracy_difference", "statistic": "accuracy_difference"}
    for told, words in ((interval, "approximate"), ({"n_items": 4}, "no interval: 4 items")):
        page = page_of(
            campaign,
            [
                {**accuracy, "judge": "cold", **told},
                {**accuracy, "judge": "warm", **told},
                {**difference, "raters": ("warm", "cold"), "value": 0.25, **told},
            ],
        )
        context = {"page": page, "choice": page.choice, "project": campaign.project, "campaign": campaign}
        text = render_to_string("analytics/_comparison_answer.html", {**context, "snapshot": page.snapshot})
        assert (
            re.sub(r"<[^>]*>", " ", text).count(words) == 5
        )  # two in the first table, two figures and a difference in the second
