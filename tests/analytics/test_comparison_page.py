"""The comparison of judges: its page, API, client-side JSON, and the items on which two of them differ."""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.http import QueryDict
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analytics.judges import compared_judges
from analytics.judges.compared_judges import FEWEST_COMMON, ChartAxis, cost_chart
from analytics.models import Snapshot
from analytics.stats.core.messages import approximate
from analytics.stats.judge.comparison import MIN_ITEMS
from analytics.views.comparison import ComparisonPage, chosen_comparison
from annotation.models import Campaign
from judging import known_replies
from judging.models import Attempt, Call, DesignCell, Judge, JudgeDesign, JudgeRun, Verdict
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
NAMES = ("cold", "warm")


def make_scene(cast: Cast) -> Campaign:
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


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def shown(client: Client, campaign: Campaign, query: str = "", *, status: int = 200) -> str:
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/comparison/?{query}")
    assert answer.status_code == status
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def test_a_design_is_compared_on_the_items_that_all_of_its_judges_scored(cast: Cast, campaign: Campaign) -> None:
    design = JudgeDesign.objects.get()
    page = shown(cast.client("boris"), campaign, f"design={design.pk}&measure=accuracy&first=cold&second=warm")
    assert "mean of cold, warm" in page
    assert re.search(r"warm: 1 without a score", page)
    assert "fewer than 10 common items: Fluency · " in page
    assert "both scored 11 pairs of item and criterion and differ on 2" in page
    assert page.index("As cold sees it.") < page.index("As warm sees it.")
    assert "needs two judges with a known cost, and an interval on 10 common items or more" in page
    assert "Cost in USD" not in page
    assert "No cost is known of these judges" in page


def test_while_figures_are_computed_no_cost_is_added_up_again(cast: Cast, campaign: Campaign) -> None:
    client, address = cast.client("boris"), f"/p/kassa/numbers/{campaign.pk}/comparison/?measure=accuracy"
    first = scene.answered(client, campaign, address)
    seen = f"figures-{first.context['snapshot'].pk}"
    Verdict.objects.filter(run__judge__name="warm").first().delete()
    with CaptureQueriesContext(connection) as of_page:
        page = client.get(address).content.decode()
    assert f"seen={seen}" in page
    polling: dict[str, Any] = {"headers": {"HX-Request": "true"}}
    with CaptureQueriesContext(connection) as of_poll:
        part = client.get(f"{address}&seen={seen}", **polling).content.decode()
    assert 'id="computation"' in part and "<table" not in part
    for queries in (of_page, of_poll):
        assert not [query for query in queries if "judging_attempt" in query["sql"]]
    changed = scene.answered(client, campaign, address)
    assert changed.context["snapshot"].pk != first.context["snapshot"].pk
    after = client.get(f"{address}&seen={seen}", **polling)
    assert after["HX-Retarget"] == "#answer"
    assert "<table" in after.content.decode()


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


def page_of(campaign: Campaign, rows: list[dict[str, Any]], query: str = "measure=accuracy") -> ComparisonPage:
    """The page of stored estimates."""
    plain = {"language": "et", "criterion": "fluency", "judge": None, "raters": None, "value": 0.5, "n_items": 40}
    stored = Snapshot(
        content={"estimates": [{**plain, "variant": None, "low": None, "high": None, **row} for row in rows]}
    )
    return ComparisonPage(chosen_comparison(campaign, QueryDict(query)), stored)


def text_of(page: ComparisonPage) -> str:
    """What the page says below its form."""
    context = {"page": page, "choice": page.choice, "project": page.choice.campaign.project}
    context |= {"campaign": page.choice.campaign, "snapshot": page.snapshot}
    text = render_to_string("analytics/_comparison_answer.html", context)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", text).split()))


ACCURACY = {"asked": "comparison.accuracy", "statistic": "accuracy", "low": 0.2, "high": 0.8}
WHOLE = {**ACCURACY, "criterion": None, "language": None}


class TestParetoLine:
    """Only judges with an interval on enough common items are on it."""

    @pytest.fixture(autouse=True)
    def _with_costs(self, campaign: Campaign) -> None:
        for place, run in enumerate(JudgeRun.objects.order_by("judge__name")):
            call = Call.objects.create(run=run, item=campaign.dataset.items.first(), repeat=1, state="settled")
            Attempt.objects.create(call=call, number=1, outcome="replied", cost=Decimal(place + 1))

    @pytest.mark.parametrize("weak", [{"low": None, "high": None}, {"n_items": 9}])
    def test_a_judge_without_interval_or_items_is_not_drawn_and_named(
        self, campaign: Campaign, weak: dict[str, Any]
    ) -> None:
        firm = page_of(campaign, [{**WHOLE, "judge": "cold"}, {**WHOLE, "judge": "warm", "value": 0.6}])
        assert [judge.is_efficient for judge in firm.judges] == [True, True]
        assert firm.chart and len(firm.chart["points"]) == 2
        page = page_of(campaign, [{**WHOLE, "judge": "cold"}, {**WHOLE, "judge": "warm", "value": 0.6, **weak}])
        assert [judge.is_efficient for judge in page.judges] == [False, False]
        assert page.chart is None
        assert page.not_drawn == ["warm"]

    def test_counts_stand_below_the_chart(self, campaign: Campaign) -> None:
        counts = {"note": "mean of 2 cells", "n_items": 40, "n_raters": 3, "n_ratings": 40, "n_clusters": 20}
        text = text_of(page_of(campaign, [{**WHOLE, "judge": name, **counts} for name in NAMES]))
        assert "mean of 2 cells · 40 items, 3 raters, 40 ratings, 20 clusters." in text
        assert "USD per 1,000 items" in text and "Cost in USD" in text


def test_the_page_has_the_limit_of_the_statistics() -> None:
    assert FEWEST_COMMON == MIN_ITEMS


@pytest.mark.parametrize(
    "values", [(0.701, 0.7013), (0.5, 0.5), (-0.2, 0.9), (0.0, 0.0), (1234.0, 9.0), (0.00001, 0.00002)]
)
def test_ticks_of_an_axis_are_round_and_never_repeated(values: tuple[float, float]) -> None:
    axis = ChartAxis.over(values)
    texts = [text for _at, text in axis.ticks]
    assert 2 <= len(texts) == len(set(texts)) <= 8
    assert all(-1e-9 <= axis.share(value) <= 1 + 1e-9 for value in values)
    assert [float(text.replace("−", "-")) for text in texts] == pytest.approx([at for at, _text in axis.ticks])
    chart = cost_chart([(1, "a", *values, True), (2, "b", *values[::-1], False)])
    assert all(0 <= point.x <= chart["width"] and 0 <= point.y <= chart["height"] for point in chart["points"])


def test_factors_and_levels_have_the_labels_of_the_form(campaign: Campaign) -> None:
    Judge.objects.filter(name="cold").update(variant={"explanation": True, "role_text": ""})
    Judge.objects.filter(name="warm").update(variant={"explanation": False, "role_text": "A teacher"})
    effect = {"asked": "comparison.accuracy_effect", "statistic": "accuracy_effect"}
    interaction = {"asked": "comparison.accuracy_interaction", "statistic": "accuracy_interaction"}
    JudgeRun.objects.update(design=None)
    page = page_of(
        campaign,
        [
            {**ACCURACY, "judge": "cold"},
            {**effect, "variant": "explanation = true"},
            {**effect, "variant": "role_text = A teacher"},
            {**interaction, "variant": "explanation = true × temperature = 0"},
        ],
    )
    text = text_of(page)
    assert "Rationale before each score: Yes" in text
    assert "Own role and task: A teacher" in text
    assert "Rationale before each score: Yes × Temperature: 0" in text
    assert "explanation = true" not in text


def test_columns_are_grouped_by_criterion_after_the_mean(campaign: Campaign) -> None:
    cells = [{"language": tag, "criterion": key} for key in ("fluency", "coherence") for tag in ("et", "ar")]
    page = page_of(campaign, [*({**ACCURACY, **cell, "judge": "cold"} for cell in cells), {**WHOLE, "judge": "cold"}])
    assert [(title, len(names)) for title, names in page.groups] == [("Mean", 1), ("Fluency", 2), ("Coherence", 2)]


def test_a_difference_has_its_own_number_of_items(campaign: Campaign) -> None:
    difference = {"asked": "comparison.accuracy_difference", "statistic": "accuracy_difference", "n_items": 33}
    rows = [{**ACCURACY, "judge": "cold"}, {**ACCURACY, "judge": "a jury", "n_items": 33}]
    page = page_of(campaign, [*rows, {**difference, "raters": ("cold", "a jury"), "low": 0.1, "high": 0.3}])
    assert "−0.50 [−0.30, −0.10] · 33 items" in text_of(page)


def test_sensitivity_is_on_the_page_where_an_audit_has_run(cast: Cast, campaign: Campaign) -> None:
    address = "measure=accuracy"
    assert "Sensitivity" not in shown(cast.client("boris"), campaign, address)
    first = JudgeRun.objects.get(judge__name="cold")
    audit = JudgeRun.objects.create(
        project=campaign.project,
        judge=first.judge,
        dataset=campaign.dataset,
        rubric_version=campaign.rubric_version,
        perturbation={"changes": ["truncated_50"], "per_language": 6, "seed": 0},
    )
    about = {"run": audit, "criterion": campaign.rubric_version.criteria.get(key="fluency"), "status": "ok"}
    for place, item in enumerate(campaign.dataset.items.filter(language="et").order_by("ordinal")):
        Verdict.objects.create(item=item, score=3, **about)
        Verdict.objects.create(item=item, score=3 - place % 2, change="truncated_50", **about)
    page = shown(cast.client("boris"), campaign, address)
    assert re.search(r"cold The last half of the text cut off should fall Fluency · Estonian 0.50 ", page)


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
    interval = {"low": 0.2, "high": 0.8, "method": approximate("t", "4 clusters")}
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
        # one in the sentence above, two in the first table, two figures and a difference in the second
        assert text_of(page).count(words) == 6


def test_judges_that_rest_on_the_same_replies_are_named_and_not_taken_for_two(cast: Cast, campaign: Campaign) -> None:
    design, client = JudgeDesign.objects.get(), cast.client("boris")
    cold, warm = (JudgeRun.objects.get(judge__name=name) for name in NAMES)
    sources: list[Attempt] = []
    for item in campaign.dataset.items.order_by("ordinal"):
        first, second = (
            Call.objects.create(run=run, item=item, repeat=1, state=Call.State.SETTLED) for run in (cold, warm)
        )
        sources.append(Attempt.objects.create(call=first, number=1, outcome="replied"))
        Attempt.objects.create(call=second, number=1, outcome="reused", reused_from=sources[-1])
    page = shown(client, campaign, f"design={design.pk}&measure=accuracy")
    assert f"cold and warm send the same requests and share {len(sources)} replies" in page
    assert "0: the same replies" in page
    assert "items of equal text" not in page
    Attempt.objects.filter(call__run=warm, reused_from=sources[0]).update(reused_from=sources[1])
    shared = {(cold.pk, warm.pk): len(sources) - 1, (warm.pk, warm.pk): 1}
    assert known_replies.common_replies([cold, warm]) == shared


DIFFERENCE = {**WHOLE, "asked": "comparison.accuracy_difference", "statistic": "accuracy_difference"}
COUNTS = {"n_items": 40, "n_raters": 3, "n_ratings": 40, "n_clusters": 40}


def test_the_best_judge_is_said_with_counts_and_with_those_that_may_be_as_good(campaign: Campaign) -> None:
    """`warm` is highest by chance alone; only `قاضٍ 'x'` is below it for certain; the jury is on other cells."""
    values = {"cold": 0.6, "warm": 0.62, "قاضٍ 'x'": 0.3}
    rows = [{**WHOLE, **COUNTS, "judge": name, "value": value} for name, value in values.items()]
    rows += [{**WHOLE, **COUNTS, "n_items": 33, "judge": "a jury", "value": 0.9}]
    unclear = {**DIFFERENCE, **COUNTS, "raters": ("cold", "warm"), "value": -0.02, "low": -0.1, "high": 0.06}
    clear = {**DIFFERENCE, **COUNTS, "raters": ("warm", "قاضٍ 'x'"), "value": 0.32, "low": 0.2, "high": 0.4}
    answers = page_of(campaign, [*rows, unclear, clear]).answers
    assert answers[0].startswith("Highest on the whole: warm, 0.62 [0.20, 0.80] (40 items")
    assert answers[0].endswith("40 clusters).")
    assert answers[1:] == ["Not certainly below it: cold.", "On other items, so left out here: a jury."]
    without = page_of(campaign, [*rows, unclear]).answers
    assert without[1:3] == ["Not certainly below it: cold.", "Not compared with it: قاضٍ 'x'."]


@pytest.mark.parametrize(("clusters", "words"), [(40, "Certainly worse than cold: warm."), (29, "")])
def test_nothing_is_certain_below_30_scenarios(campaign: Campaign, clusters: int, words: str) -> None:
    counts = {**COUNTS, "n_clusters": clusters}
    rows = [{**WHOLE, **counts, "judge": "cold"}, {**WHOLE, **counts, "judge": "warm", "value": 0.4}]
    difference = {**DIFFERENCE, **counts, "raters": ("warm", "cold"), "value": -0.1, "low": -0.2, "high": -0.05}
    answers = page_of(campaign, [*rows, difference]).answers
    assert answers[0].startswith("Highest on the whole: cold, 0.50")
    assert answers[1:] == [words or "Not certainly below it: warm."]


def test_of_errors_the_lowest_is_said(campaign: Campaign) -> None:
    about = {"asked": "comparison.mae", "statistic": "mae"}
    rows = [{**WHOLE, **COUNTS, **about, "judge": name, "value": n} for name, n in (("cold", 0.5), ("warm", 0.4))]
    difference = {**DIFFERENCE, **COUNTS, "asked": "comparison.mae_difference", "statistic": "mae_difference"}
    difference |= {"raters": ("cold", "warm"), "value": 0.1, "low": -0.05, "high": 0.2}
    answers = page_of(campaign, [*rows, difference], "measure=mae").answers
    assert answers[0].startswith("Lowest on the whole: warm, 0.40")
    assert answers[1:] == ["Not certainly above it: cold."]
