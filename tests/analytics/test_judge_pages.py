"""Calibration and Stability through HTTP: their figures are those of independent implementations and of their JSON."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from django.test import Client
from scipy.stats import norm, rankdata, spearmanr, ttest_rel
from scipy.stats import t as student
from sklearn.metrics import confusion_matrix, f1_score

from analytics.answers import snapshots
from analytics.judges import thresholds
from analytics.models import Snapshot, StoredCell
from analytics.questions.asked import check_question, question_choices, question_of
from analytics.questions.question import NumbersQuestion
from analytics.views.calibration import CALIBRATION
from analytics.views.generators import GENERATORS as GENERATORS_PAGE
from analytics.views.parts import judge_question
from analytics.views.planner import PLANNER
from analytics.views.rater_models import RATER_MODELS, rater_question
from annotation import campaigns
from annotation.models import Campaign
from tests import make
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
PAGES = {page.name: page.parts for page in (CALIBRATION, GENERATORS_PAGE, PLANNER, RATER_MODELS)}
RATERS = ("mari", "jaan", "noor")
LANGUAGES = ("en", "et")
GENERATORS = ("atlas-1", "birch-2", "cedar-3")
SCENARIOS = range(10)
ITEMS = [(tag, name, number) for tag in LANGUAGES for name in GENERATORS for number in SCENARIOS]
BEST = {"en": (3, 2, 1), "et": (3, 1, 2)}  # birch-2 and cedar-3 change places


def score_of(tag: str, name: str, number: int, shift: int) -> int:
    """A score from 0 to 3: the generator's in that language, moved here and there."""
    moved = (number * 7 + shift * 5) % 4 == 0
    return min(3, max(0, BEST[tag][GENERATORS.index(name)] + (moved * (-1) ** (number + shift))))


PANEL = {rater: [score_of(*item, shift) for item in ITEMS] for shift, rater in enumerate(RATERS)}
JUDGES = {"Anna": [score_of(*item, 4) for item in ITEMS], "Bert": [max(0, score_of(*item, 1) - 1) for item in ITEMS]}


def make_scene(cast: Cast) -> Campaign:
    return judged_campaign(cast)


@pytest.fixture
def judged(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def judged_campaign(cast: Cast) -> Campaign:
    """Sixty items in two languages by three generators, scored by three people and two judges."""
    rows = [
        make.item_row(place, tag, generator=name, scenario=f"s{number}", external_id=f"{name}-{number}-{tag}")
        for place, (tag, name, number) in enumerate(ITEMS)
    ]
    campaign = make.campaign(cast.kassa, items=rows)
    make.rated(campaign, {"fluency": PANEL})
    for name, scores in JUDGES.items():
        scene.with_verdicts(campaign, {"fluency": scores}, name=name)
    return campaign


def opened(client: Client, campaign: Campaign, page: str, part: str = "", query: str = "") -> str:
    """A section as its reader gets it, once a worker has computed what it asked for."""
    address = f"/p/kassa/numbers/{campaign.pk}/{page}/{part}{'/' if part else ''}?{query}"
    return str(scene.answered(client, campaign, address).content.decode())


def text_of(page: str) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))


def rows_of(client: Client, campaign: Campaign, page: str, part: str, query: str = "") -> list[dict[str, Any]]:
    """The figures of a section by its own JSON link."""
    (link,) = set(re.findall(r'href="([^"]*cells\.json[^"]*)"', opened(client, campaign, page, part, query)))
    found: list[dict[str, Any]] = client.get(html.unescape(link)).json()["estimates"]
    return found


def value(rows: list[dict[str, Any]], **about: Any) -> float:
    found = [row for row in rows if all(row.get(name) == wanted for name, wanted in about.items())]
    assert len(found) == 1, (about, found)
    return float(found[0]["value"])


def test_the_question_of_every_section_is_the_one_of_its_address(cast: Cast, judged: Campaign) -> None:
    """Else its answer is stored under another digest, and computed again and again."""
    choices = question_choices(judged)
    for page, parts in PAGES.items():
        for part in parts.values():
            asked = (rater_question if page == RATER_MODELS.name else judge_question)(
                judged, part, NumbersQuestion(where=(("language", "et"),)), choices
            )
            assert question_of(asked.query) == asked, part.name
            check_question(asked, choices)


def of(tag: str, scores: list[int]) -> list[int]:
    return [score for item, score in zip(ITEMS, scores, strict=True) if item[0] == tag]


@pytest.mark.parametrize("which", PAGES)
def test_every_section_stands_alone_with_its_files_and_methods(cast: Cast, judged: Campaign, which: str) -> None:
    client = cast.client("boris")
    whole = opened(client, judged, which)
    assert whole.count('hx-trigger="toggle from:closest details once"') == (
        sum(not section.is_catalogue for section in PAGES[which].values()) - 1
    )
    for part in PAGES[which]:
        more = "&budget=300" if which == "planner" else ""
        text = opened(client, judged, which, part, f"reference=mean&bootstrap=200{more}")
        # These items have no task type, show no two candidates, and none is flagged or has a simulated user.
        has_table = part not in ("tasks", "preferences", "survival")
        assert "<html" in text and ("<table" in text) == has_table, (part, text_of(text.partition("<main")[2])[:1500])
        assert re.search(r"\b[126]0 items", text) and "CSV" in text, part
        assert ("&amp;agreement=full" in text) == (part == "classes"), part
        for link in re.findall(r'href="([^"]*(?:cells\.(?:csv|json)|/explore/|/estimates/)[^"]*)"', text):
            linked = client.get(html.unescape(link))
            assert linked.status_code == 200 and b"".join(linked), link
    assert client.get(f"/p/kassa/numbers/{judged.pk}/{which}/beauty/").status_code == 404


def test_bias_and_correlation_beside_independent_figures(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    means = np.mean([of("et", PANEL[rater]) for rater in RATERS], axis=0)
    query = "judge=Bert&reference=mean"
    bias = value(rows_of(client, judged, "calibration", "bias", query), asked="bias", language="et")
    assert bias == pytest.approx(np.mean(of("et", JUDGES["Bert"]) - means))
    page = opened(client, judged, "calibration", "", query)
    assert "No thresholds are declared" in page and "approximate" in page
    rho = value(rows_of(client, judged, "calibration", "correlation", query), asked="spearman", language="et")
    assert rho == pytest.approx(spearmanr(of("et", JUDGES["Bert"]), means)[0])
    between = value(rows_of(client, judged, "calibration", "judges"), asked="judges.spearman")
    assert between == pytest.approx(spearmanr(JUDGES["Anna"], JUDGES["Bert"])[0])
    thresholds.declare_thresholds(project=judged.project, preset="skilled", actor=None)
    with_margin = opened(client, judged, "calibration", "", query)
    assert 'data-class="margin"' in with_margin and "reaches beyond the margin of ±0.225" in with_margin


def test_models_of_raters_say_who_is_severe_and_where_differences_come_from(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    page = text_of(opened(client, judged, "raters"))
    assert "Bert (judge)" in page and "scores lower" in page and "for these raters" in page
    severity = rows_of(client, judged, "raters", "severity")
    people = [row["value"] for row in severity if row["asked"] == "raters.rasch_severity" and not row["judge"]]
    assert len(people) == 3 and sum(people) == pytest.approx(0)
    assert value(severity, asked="raters.rasch_severity", judge="Bert") < min(people)
    shares = rows_of(client, judged, "raters", "variance")
    assert sum(row["value"] for row in shares) == pytest.approx(1)
    assert {row["variant"] for row in shares} >= {"item", "rater", "residual"}
    study = text_of(opened(client, judged, "raters", "study"))
    assert "1 rater " in study and "10 raters" in study
    tested = text_of(opened(client, judged, "raters", "languages", "judge=Anna"))
    assert "against English" not in tested and "a difference everywhere: p" in tested and "approximate" in tested


def test_confusion_has_the_counts_of_sklearn(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    votes = [
        Counter(scores).most_common() for scores in zip(*(of("en", PANEL[rater]) for rater in RATERS), strict=True)
    ]
    settled = [most[0][0] if len(most) == 1 or most[0][1] > most[1][1] else None for most in votes]
    pairs = [(mode, own) for mode, own in zip(settled, of("en", JUDGES["Anna"]), strict=True) if mode is not None]
    expected = confusion_matrix(*zip(*pairs, strict=True), labels=[0, 1, 2, 3])
    rows = rows_of(client, judged, "calibration", "confusion", "judge=Anna")
    for reference in range(4):
        for own in range(4):
            found = next(r for r in rows if (r["language"], r["variant"]) == ("en", f"{reference} ~ {own}"))
            assert found["n_items"] == expected[reference, own]
    text = text_of(opened(client, judged, "calibration", "confusion", "judge=Anna"))
    assert f"{expected[3, 3]} of {expected[3].sum()}" in text


def test_f1_of_the_annotators_is_the_mean_over_pairs_of_them(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    rows = rows_of(client, judged, "calibration", "f1", "judge=Anna")
    for label in (1, 2, 3):
        # Every annotator against each other one, averaged over the others, then over the annotators.
        pairs = [
            f1_score(of("et", PANEL[other]), of("et", PANEL[one]), labels=[label], average="macro")
            for one, other in permutations(RATERS, 2)
        ]
        about = {"language": "et", "variant": str(label)}
        assert value(rows, asked="beside.human_f1", **about) == pytest.approx(np.mean(pairs))
        own = [
            f1_score(of("et", PANEL[rater]), of("et", JUDGES["Anna"]), labels=[label], average="macro")
            for rater in RATERS
        ]
        assert value(rows, asked="beside.f1", **about) == pytest.approx(np.mean(own))


def test_reliability_confidence_and_power_beside_figures_by_hand(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    means = np.mean([of("en", PANEL[rater]) for rater in RATERS], axis=0)
    own = np.array(of("en", JUDGES["Anna"]))
    rows = rows_of(client, judged, "calibration", "reliability", "judge=Anna")
    for score in np.unique(own):
        found = value(rows, language="en", variant=str(score))
        assert found == pytest.approx(means[own == score].mean())
    votes = list(zip(*(of("en", PANEL[rater]) for rater in RATERS), strict=True))
    confidence = rows_of(client, judged, "calibration", "confidence", "judge=Anna")
    observed = np.mean([max(Counter(each).values()) / 3 for each in votes])
    assert value(confidence, language="en", variant="observed") == pytest.approx(observed)
    replaced = [
        max(Counter([*each[:place], mine, *each[place + 1 :]]).values()) / 3
        for each, mine in zip(votes, own.tolist(), strict=True)
        for place in range(3)
    ]
    assert value(confidence, language="en", variant="substituted") == pytest.approx(np.mean(replaced))
    power = rows_of(client, judged, "calibration", "power", "judge=Anna")
    assert {row["variant"] for row in power} == {"30 items", "100 items"}
    assert all(0 <= row["value"] <= 1 and row["interval_reason"] for row in power if row["value"] is not None)


def test_rankings_inversions_and_the_judges_ranking(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    ranks = rows_of(client, judged, "results", "ranks", "judge=Bert")
    for tag in LANGUAGES:
        means = [
            np.mean([PANEL[r][k] for r in RATERS for k, item in enumerate(ITEMS) if item[:2] == (tag, name)])
            for name in GENERATORS
        ]
        expected = dict(zip(GENERATORS, rankdata([-mean for mean in means]), strict=True))
        for name in GENERATORS:
            about = {"language": tag, "generator": name, "judge": None}
            assert value(ranks, asked="stability.rank", **about) == expected[name]
    page = opened(client, judged, "results", "ranks", "judge=Bert")
    assert page.count('class="bump"') == 2 and "birch-2: English 2, Estonian 3." in page
    pair = rows_of(client, judged, "results", "rankings")
    assert value(pair, asked="stability.kendall_tau_b", judge=None) == pytest.approx(1 / 3)
    assert value(pair, asked="stability.inversions", judge=None) == 1
    assert value(pair, asked="stability.confirmed_inversions", judge=None) == 1
    assert "1 confirmed" in text_of(opened(client, judged, "results", "rankings"))
    of_judge = rows_of(client, judged, "results", "judge", "judge=Bert")
    assert {row["value"] for row in of_judge} == {1.0}


def test_results_say_places_and_what_they_rest_on(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    rows = rows_of(client, judged, "results", "languages", "judge=Bert")
    own = {
        name: [np.mean([PANEL[r][k] for r in RATERS]) for k, item in enumerate(ITEMS) if item[:2] == ("et", name)]
        for name in GENERATORS
    }
    means = {name: float(np.mean(scores)) for name, scores in own.items()}
    for name in GENERATORS:
        about = {"language": "et", "generator": name}
        assert value(rows, asked="leaderboard.panel_mean", **about) == pytest.approx(means[name])
    test = ttest_rel(own["atlas-1"], own["birch-2"]).confidence_interval(1 - 0.05 / 3)
    pair = next(
        row
        for row in rows
        if (row["asked"], row["language"], row["variant"]) == ("leaderboard.corrected_difference", "et", "birch-2")
    )
    assert pair["value"] == pytest.approx(means["atlas-1"] - means["birch-2"]) and pair["generator"] == "atlas-1"
    assert (pair["low"], pair["high"]) == (pytest.approx(test.low), pytest.approx(test.high))
    assert "approximate: few labels differ" in pair["method"]  # two of ten differences are not 1.67
    text = text_of(opened(client, judged, "results", "languages", "judge=Bert"))
    # birch-2 and cedar-3 differ by the same on every scenario: nothing tells how far that may be off.
    assert "place 1 of 3" in text and "place 2 to 3 of 3" in text and "panel alone, not corrected" in text
    assert "the panel labelled every item that the judge scored" in text
    criterion = judged.rubric_version.criteria.get(key="fluency")
    type(criterion).objects.filter(pk=criterion.pk).update(direction="lower_is_better")
    turned = opened(client, judged, "results", "languages", "judge=Bert&where=language%3Det")
    line = next(row for row in turned.split("<tr") if "birch-2" in row)
    assert "place 1 to 2 of 3" in text_of(line)


def test_a_judge_of_more_items_than_the_panel_corrects_the_means(cast: Cast) -> None:
    rows = [
        make.item_row(n, "et", generator=GENERATORS[n % 2], scenario=f"s{n // 2}", external_id=f"i{n}")
        for n in range(160)
    ]
    campaign = make.campaign(cast.kassa, items=rows)
    scores = [(n * 7 // 3 + n % 2) % 4 for n in range(160)]
    labels = [score if n < 60 else None for n, score in enumerate(scores)]
    make.rated(campaign, {"fluency": {"mari": labels, "jaan": labels}})
    scene.with_verdicts(campaign, {"fluency": [max(0, score - (n % 5 == 0)) for n, score in enumerate(scores)]})
    client = cast.client("boris")
    found = rows_of(client, campaign, "results", "board")
    corrected = [row for row in found if row["asked"] == "leaderboard.corrected_mean"]
    assert [row["n_items"] for row in corrected] == [30, 30] and all(row["low"] is not None for row in corrected)
    text = text_of(opened(client, campaign, "results", "board"))
    assert "30 labels are worth" in text and "cross-fitted t, approximate: fewer than 50 labels" in text


def test_a_plan_counts_labels_from_the_spread_and_splits_a_budget(cast: Cast, judged: Campaign) -> None:
    client = cast.client("boris")
    goals = "half_width=0.2&budget=300&prices=et 2, en 1&judge=Anna"
    rows = rows_of(client, judged, "planner", "labels", goals)
    means = {tag: np.mean([of(tag, PANEL[rater]) for rater in RATERS], axis=0) for tag in LANGUAGES}
    sd, needed = {}, {}
    for tag in LANGUAGES:  # residuals added up by cluster; then the fewest labels for t of as many clusters each
        clusters = [item.cluster for item in judged.dataset.items.filter(language=tag).order_by("ordinal")]
        residuals, names = means[tag] - means[tag].mean(), sorted(set(clusters))
        sums = [residuals[[cluster == name for cluster in clusters]].sum() for name in names]
        n, c = len(clusters), len(names)
        sd[tag] = float(np.sqrt(c / (c - 1) * np.sum(np.square(sums)) / n))
        needed[tag] = next(
            k for k in range(1, 1000)
            if k >= (norm.ppf(0.975) * sd[tag] / 0.2) ** 2
            and student.ppf(0.975, max(1, k * c / n - 1)) * sd[tag] / np.sqrt(k) <= 0.2
        )  # fmt: skip
        about = {"language": tag, "criterion": "fluency", "variant": "humans"}
        assert value(rows, **about) == needed[tag]
    budget = rows_of(client, judged, "planner", "budget", goals)
    spent = sum(row["value"] * {"et": 2, "en": 1}[row["language"]] for row in budget)
    assert 298 <= spent <= 300 and {row["language"] for row in budget} == {"en", "et"}
    by_language = {row["language"]: row["value"] for row in budget}
    # Neyman: n ~ sd / sqrt(price), 30 at least
    assert by_language["en"] / by_language["et"] == pytest.approx(sd["en"] / sd["et"] * np.sqrt(2), rel=0.05)
    text = text_of(opened(client, judged, "planner", "", goals))
    assert "with the judge:" in text and "pilot: 30 items × 3 raters" in text
    for tag in LANGUAGES:
        more = f"{needed[tag] - 30} more" if needed[tag] > 30 else "enough"
        assert f"{more} 30 of {needed[tag]} so far" in text
    assert "AMOUNT" not in text and "goal=" not in text_of(opened(client, judged, "planner", "budget"))
    early = text_of(opened(client, judged, "planner", "stop"))
    assert "[0.00, 3.00]" not in early, "the whole scale is no answer"
    page = opened(client, judged, "planner", "", goals)
    assert 'name="prices" value="en 1, et 2"' in page and 'name="half_width" inputmode="decimal" value="0.2"' in page
    without = text_of(opened(client, judged, "planner", "budget"))
    assert "Give a budget above." in without
    poor = text_of(opened(client, judged, "planner", "budget", "budget=20"))
    assert "30 labels in every language cost 60, more than the budget of 20" in poor


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("budget=300&prices=fi 2", "There are no items in “fi”"),
        ("half_width=0", "“half_width” is a number from 0.001 to 1000"),
        ("half_width=nan", "“half_width” is a number"),
        ("prices=et", "“price.et” is a number"),
        ("goal=beauty=3", "“beauty=3” is not a goal"),
    ],
)
def test_goals_that_can_not_be_are_refused(cast: Cast, judged: Campaign, query: str, sentence: str) -> None:
    response = cast.client("boris").get(f"/p/kassa/numbers/{judged.pk}/planner/?{query}")
    assert response.status_code == 422 and sentence in response.content.decode()


def test_a_plan_needs_no_judge(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=8)
    make.rated(campaign, {"fluency": {"mari": [0, 1, 2, 3, 0, 1, 2, 3], "jaan": [0, 1, 2, 3, 1, 1, 2, 2]}})
    client = cast.client("boris")
    assert "pilot: 8 items × 2 raters" in text_of(opened(client, campaign, "planner"))
    assert "The power needs a judge" in text_of(opened(client, campaign, "planner", "test"))


def test_measures_of_texts_are_not_called_the_panels(cast: Cast, judged: Campaign) -> None:
    text = text_of(opened(cast.client("boris"), judged, "results", "surface"))
    first, _sign, second = text.partition("Second stage: scores of the panel")
    assert "First stage: measures of the texts" in first and "Variety of words (MATTR)" in first
    assert "Fluency" in second and "MATTR" not in second.partition("How each value")[0]


def test_what_is_missing_is_said(cast: Cast) -> None:
    client = cast.client("boris")
    unrated = scene.campaign_without_ratings(cast, name="Without a panel")
    assert "No judge has scored these items" in opened(client, unrated, "calibration")
    assert "There is nothing to rank" in opened(client, unrated, "results")  # one generator
    scene.with_verdicts(unrated)
    page = opened(client, unrated, "calibration")
    assert "Nobody has rated these items" in page and "hx-get" not in page.partition("<main")[2]
    refused = client.get(f"/p/kassa/numbers/{unrated.pk}/calibration/?judge=nobody")
    assert refused.status_code == 422 and "nobody" in refused.content.decode()


def test_one_language_ranks_and_says_why_nothing_is_compared(cast: Cast) -> None:
    rows = [make.item_row(n, "et", generator=GENERATORS[n % 2], scenario=f"s{n // 2}") for n in range(12)]
    campaign = make.campaign(cast.kassa, items=rows)
    make.rated(campaign, {"fluency": {"mari": [3, 1] * 6, "jaan": [2, 1] * 6}})
    scene.with_verdicts(campaign, {"fluency": [3, 2] * 6})
    client = cast.client("boris")
    assert "The items are in one language" in opened(client, campaign, "results")
    assert "Rankings are compared where two languages" in opened(client, campaign, "results", "rankings")
    assert 'class="bump"' in opened(client, campaign, "results", "ranks")


def test_strangers_and_annotators_see_neither(cast: Cast, judged: Campaign) -> None:
    for page, parts in PAGES.items():
        for address in (f"{page}/", f"{page}/{next(reversed(parts))}/"):
            for who in ("maarika", "zoltan"):
                assert cast.client(who).get(f"/p/kassa/numbers/{judged.pk}/{address}").status_code in (403, 404)


def test_the_command_gives_the_same_figures(cast: Cast, judged: Campaign) -> None:
    query = "judge=Anna&rows=criterion&columns=language&statistic=ranking.ranking_tau_b"
    stored = snapshots.snapshot(campaign=judged, settings=question_of(query)).content["estimates"]
    own = rows_of(cast.client("boris"), judged, "results", "judge", "judge=Anna")
    assert [row["value"] for row in stored] == [row["value"] for row in own]


def test_rank_one_is_the_lowest_mean_where_lower_is_better(cast: Cast, judged: Campaign) -> None:
    first = opened(cast.client("boris"), judged, "results", "ranks")
    assert "Rank 1 has the highest mean: the rubric says that higher is better." in text_of(first)
    rows = rows_of(cast.client("boris"), judged, "results", "ranks")
    highest = [row for row in rows if row["asked"] == "stability.rank"]
    assert all("approximate: 10 clusters" in row["method"] for row in rows if row["method"])
    judged.rubric_version.criteria.update(direction="lower_is_better")
    Snapshot.objects.all().delete()
    StoredCell.objects.all().delete()
    turned = opened(cast.client("boris"), judged, "results", "ranks")
    assert "Rank 1 has the lowest mean: the rubric says that lower is better." in text_of(turned)
    rows = rows_of(cast.client("boris"), judged, "results", "ranks")
    lowest = {
        (row["judge"], row["generator"], row["language"]): row["value"]
        for row in rows
        if row["asked"] == "stability.rank"
    }
    for row in highest:
        assert lowest[row["judge"], row["generator"], row["language"]] == 4 - row["value"]


def test_task_types_and_preferences_are_sections_of_results(cast: Cast) -> None:
    """Two task types of unequal size; pairs of three models, of which the panel prefers atlas-1 in 3 of 4."""
    rows = [
        make.item_row(
            n, "et", generator=GENERATORS[n % 2], scenario=f"s{n // 2}", external_id=f"i{n}",
            attributes={"task_type": "poem" if n < 24 else "chat"},
        )
        for n in range(120)
    ]  # fmt: skip
    campaign = make.campaign(cast.kassa, items=rows)
    scores = [(n * 7 // 3 + n % 2) % 3 + (n >= 24) for n in range(120)]
    make.rated(campaign, {"fluency": {"mari": scores, "jaan": scores}})
    scene.with_verdicts(campaign, {"fluency": scores})
    client = cast.client("boris")
    found = [row for row in rows_of(client, campaign, "results", "tasks") if row["asked"] == "leaderboard.macro_mean"]
    for place, row in enumerate(found):
        own = [np.mean(scores[start + place : end : 2]) for start, end in ((0, 24), (24, 120))]
        assert row["generator"] == GENERATORS[place] and row["value"] == pytest.approx(np.mean(own))
        assert row["low"] < row["value"] < row["high"]
    text = text_of(opened(client, campaign, "results", "tasks"))
    assert "rank 1 by all items" in text and "all items:" in text
    assert "compares two candidates" in text_of(opened(client, campaign, "results", "preferences"))


def test_preferences_of_a_panel_and_a_judge_stand_side_by_side(cast: Cast) -> None:
    pairs = (("atlas-1", "birch-2"), ("cedar-3", "atlas-1"), ("birch-2", "cedar-3"))
    texts = {"question": "Kus?", "passage_a": "Siin", "passage_b": "Seal"}
    rows = [
        make.item_row(
            n, "et", turns=[], fields=texts, scenario=f"s{n}", external_id=f"p{n}",
            attributes=dict(zip(("model_a", "model_b"), pairs[n % 3], strict=True)),
        )
        for n in range(60)
    ]  # fmt: skip
    scale = {"level": "interval", "min": 1, "max": 2}
    words = {"en": "1 is the first, 2 the second"}
    preference = make.criterion("preference", (1, 2), direction="none", scale=scale, definition=words, anchors={})
    brevity = {**preference, "key": "brevity", "name": {"en": "Brevity"}}
    about = {"dataset": make.dataset(cast.kassa, rows), "rubric_version": make.rubric(cast.kassa, preference, brevity)}
    campaign = campaigns.open_campaign(project=cast.kassa, name="Pairs", **about)
    mari = [(1.0, 2.0, 1.5)[n % 3] if n % 4 else (2.0, 1.0, 1.5)[n % 3] for n in range(60)]
    always = [(1.0, 2.0, 1.5)[n % 3] for n in range(60)]  # atlas-1 is never beaten: no strengths, but shares
    make.rated(campaign, {"preference": {"mari": mari, "jaan": mari}, "brevity": {"mari": always}})
    scene.with_verdicts(campaign, {"preference": [1.0] * 60})
    client = cast.client("boris")
    every = rows_of(client, campaign, "results", "preferences")
    found = [row for row in every if row["criterion"] == "preference"]
    assert value([row for row in found if not row["judge"]], asked="preference.win", generator="atlas-1",
                 variant="birch-2") == pytest.approx(0.75)  # fmt: skip
    of_panel = [row for row in found if row["asked"] == "preference.strength" and not row["judge"]]
    strengths = {row["generator"]: row["value"] for row in of_panel}
    # birch-2 and cedar-3 tie, atlas-1 beats both in 3 of 4: log odds of 3
    assert strengths["atlas-1"] - strengths["birch-2"] == pytest.approx(math.log(3), abs=1e-6)
    of_judge = [row for row in found if row["judge"] and row["asked"] == "preference.strength"]
    assert [row["value"] for row in of_judge] == pytest.approx([0, 0, 0], abs=1e-9)
    page = text_of(opened(client, campaign, "results", "preferences"))
    assert "Kohtunik" in page and "75%" in page and "lost: 25%" in page
    assert "Brevity" in page and "100%" in page and "wins or loses every comparison" in page
    assert client.get(f"/p/kassa/numbers/{campaign.pk}/results/").status_code == 200
