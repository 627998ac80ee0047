"""Judges that are only cells of designs: hidden where nobody asked for them, counted, and shown on demand."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from analytics.judges import decisions, thresholds
from annotation.models import Campaign
from judging.models import DesignCell, JudgeDesign, JudgeRun, Verdict
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
USUAL, CELLS = "Kohtunik", ("cold", "warm")


def make_scene(cast: Cast) -> Campaign:
    """One judge that was run by itself, and two cells of a design."""
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made, name=USUAL)
    design = JudgeDesign.objects.create(
        project=cast.kassa, name="Heat", dataset=made.dataset, rubric_version=made.rubric_version, factors={}
    )
    for place, name in enumerate(CELLS):
        run = scene.with_verdicts(made, name=name)
        DesignCell.objects.create(design=design, position=place, levels={}, judge=run.judge)
        JudgeRun.objects.filter(pk=run.pk).update(design=design)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def shown(client: Client, campaign: Campaign, page: str, query: str = "") -> tuple[set[str], str]:
    """The judges that a page offers to choose from, and its text."""
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/{page}?{query}")
    assert answer.status_code == 200
    content = html.unescape(answer.content.decode())
    lists = re.findall(r'<select[^>]* name="judge">.*?</select>|<select name="judge">.*?</select>', content, re.DOTALL)
    offered = {name for part in lists for name in re.findall(r'value="([^"]*)"', part)}
    offered |= set(re.findall(r'type="checkbox" name="judge" value="([^"]*)"', content))
    return offered, " ".join(re.sub(r"<[^>]*>", " ", content).split())


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("", ""),
        ("items/", ""),
        ("explore/", "statistic=mae"),
        ("calibration/", ""),
        ("comparison/", "measure=accuracy"),
    ],
)
def test_a_page_hides_them_and_says_how_many(cast: Cast, campaign: Campaign, path: str, query: str) -> None:
    client = cast.client("boris")
    offered, text = shown(client, campaign, path, query)
    assert offered == {USUAL} or (path == "items/" and not offered)
    assert re.search(r"Show 2 (hidden judges of designs|judges that are only cells of designs, hidden now)", text)
    assert "cold" not in text
    assert shown(client, campaign, path, f"{query}&designs=show")[0] == {USUAL, *CELLS}


@pytest.mark.parametrize("path", ["", "items/", "explore/", "calibration/", "comparison/"])
def test_one_that_is_named_is_always_shown(cast: Cast, campaign: Campaign, path: str) -> None:
    query = "judge=cold" + ("&statistic=mae" if path == "explore/" else "")
    offered, _text = shown(cast.client("boris"), campaign, path, query)
    assert "cold" in offered and "warm" not in offered


def test_a_question_that_names_no_judge_leaves_them_out(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")

    def judged(query: str) -> set[str]:
        address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?statistic=mae&{query}"
        return {row["judge"] for row in scene.answered(client, campaign, address).json()["answer"]["estimates"]}

    assert judged("") == {USUAL}
    assert judged("designs=show") == {USUAL, *CELLS}
    assert judged("judge=warm") == {"warm"}
    assert "mean of cold, warm" in judged("jury=cold,warm&jury_rule=mean")


def test_where_every_judge_is_of_a_design_all_count(cast: Cast, campaign: Campaign) -> None:
    Verdict.objects.filter(run__judge__name=USUAL).delete()
    JudgeRun.objects.filter(judge__name=USUAL).delete()
    offered, text = shown(cast.client("boris"), campaign, "explore/", "statistic=mae")
    assert offered == {*CELLS}
    assert "hidden now" not in text


def test_the_list_of_judges_hides_them(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    page = client.get("/p/kassa/judges/").content.decode()
    assert USUAL in page and ">cold<" not in page
    assert "Show 2 judges that are only cells of designs" in page
    assert ">cold<" in client.get("/p/kassa/judges/?designs=show").content.decode()
    JudgeRun.objects.filter(judge__name="cold").update(design=None)
    page = client.get("/p/kassa/judges/").content.decode()
    assert ">cold<" in page and ">warm<" not in page  # run by itself as well


def test_the_decisions_page_lists_them_like_any_other(cast: Cast, campaign: Campaign) -> None:
    """Whether a judge may be used does not depend on how it was declared."""
    thresholds.declare_thresholds(project=cast.kassa, preset="crowd", actor=cast.aino)
    assert {*decisions.decide_now(campaign).judges} == {USUAL, *CELLS}
    page = cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/judges/?judge=warm").content.decode()
    assert set(re.findall(r'<a href="\?judge=[^"]*"[^>]*><bdi>([^<]*)</bdi>', page)) == {USUAL, *CELLS}
    assert '<h2 id="grid-title"><bdi>warm</bdi></h2>' in page
