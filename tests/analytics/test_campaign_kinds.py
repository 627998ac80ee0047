"""Pages show what a campaign has: flags, judges alone, panels alone, many criteria, many languages; nothing empty."""

from __future__ import annotations

import html
import re
from typing import Any

import pandas as pd
import pytest
from django.test import Client

from analytics.answers import numbers_content, snapshots
from annotation import campaigns
from annotation.models import Campaign, Rating
from judging.models import JudgeRun
from tests import make
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
POINTS = [{"value": value, "label": {"en": name}} for value, name in enumerate(("no", "yes"))]
FLAG = {"key": "toxic", "name": {"en": "Toxic"}, "scale": {"level": "nominal", "points": POINTS}}
PLACES = [(language, generator) for language in ("et", "ar") for generator in ("atlas", "borealis") for _n in range(3)]
MARI = [0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1]
JAAN = [0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0]
JUDGE = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]


def opened(cast: Cast, *criteria: dict[str, Any], places: list[tuple[str, str]] = PLACES) -> Campaign:
    items = [make.item_row(n, *place, external_id=f"i{n}") for n, place in enumerate(places)]
    return campaigns.open_campaign(
        project=cast.kassa,
        name="Kinds",
        dataset=make.dataset(cast.kassa, items),
        rubric_version=make.rubric(cast.kassa, *criteria),
    )


def page_of(client: Client, campaign: Campaign, page: str = "") -> str:
    """The text of a page, each cell after the other."""
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/{page}")
    assert answer.status_code == 200
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def test_flags_have_prevalence_and_scores_by_class_of_agreement(cast: Cast) -> None:
    made = opened(cast, FLAG)
    make.rated(made, {"toxic": {"mari": list(map(float, MARI)), "jaan": list(map(float, JAAN))}})
    scene.with_verdicts(made, {"toxic": list(map(float, JUDGE))}, simulated=False)
    frame = pd.DataFrame(PLACES, columns=["language", "generator"]).assign(mari=MARI, jaan=JAAN, judge=JUDGE)
    content = snapshots.snapshot(campaign=made).content["estimates"]
    shares = {
        (row["generator"], row["language"], row.get("judge")): row
        for row in content
        if row["statistic"] == "prevalence"
    }
    for place, part in frame.groupby(["generator", "language"]):
        assert shares[(*place, None)]["value"] == pytest.approx(part[["mari", "jaan"]].to_numpy().mean())
        assert shares[(*place, "Kohtunik")]["value"] == pytest.approx(part["judge"].mean())
        assert (shares[(*place, None)]["n_ratings"], shares[(*place, None)]["n_raters"]) == (6, 2)
    inside = {
        (row["agreement_class"], row.get("judge"), row["variant"]): row["value"]
        for row in content
        if row["statistic"] == "class_score_share" and not row.get("language")
    }
    alike = frame["mari"] == frame["jaan"]
    assert inside["full", None, "1"] == pytest.approx(frame[alike]["mari"].mean())
    assert inside["full", "Kohtunik", "1"] == pytest.approx(frame[alike]["judge"].mean())
    assert inside["none", "Kohtunik", "1"] == pytest.approx(frame[~alike]["judge"].mean())
    text = page_of(cast.client("boris"), made)
    assert "Prevalence by generator and language" in text and "Toxic: yes" in text
    assert text.index("leave out 3 of 12 cells") < text.index("Computed") < text.index("Agreement between raters")
    assert "Scores by agreement of the raters" in text and "Bias" not in text
    rules = text.partition("Rules that keep these cells:")[2].partition("Computed")[0]
    assert rules.strip() == "Each annotator", "other rules need an order, which flags do not have"
    answer = page_of(cast.client("boris"), made, "explore/?statistic=cohen_kappa&bootstrap=200")
    kept = answer.partition("Rules that keep them:")[2].lstrip()
    assert kept.startswith("Each annotator in turn, averaged") and "Median" not in text
    for page in ("results/", "results/ranks/", "calibration/", "calibration/pooled/", "planner/", "raters/"):
        why = page_of(cast.client("boris"), made, page)
        assert "The labels of these criteria have none: their scale is nominal." in why, page
        assert not re.search("needs? two generators", why), "there are two"


def test_many_cells_have_no_stored_scores_by_class_and_language(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(cast, FLAG)
    make.rated(made, {"toxic": {"mari": list(map(float, MARI)), "jaan": list(map(float, JAAN))}})
    few = {row.get("language") for row in by_class(made)}
    monkeypatch.setattr(numbers_content, "MOST_CELLS", 1)
    snapshots.Snapshot.objects.all().delete()
    assert few > {row.get("language") for row in by_class(made)} == {None}
    client = cast.client("boris")
    assert "Explore has the scores by class" in page_of(client, made, f"?part={min(few - {None})}")
    assert "Explore has the scores by class" not in page_of(client, made)


def by_class(campaign: Campaign) -> list[dict[str, Any]]:
    content = snapshots.snapshot(campaign=campaign).content["estimates"]
    return [row for row in content if row["statistic"] == "class_score_share"]


def test_a_campaign_of_judges_alone(cast: Cast) -> None:
    made = opened(cast, make.criterion("fluency"), FLAG)
    scores = [float(n % 4) for n in range(12)]
    scene.with_verdicts(made, {"fluency": scores, "toxic": list(map(float, JUDGE))})
    text = page_of(cast.client("boris"), made)
    assert "Verdicts 24" in text and "Judged items 12 of 12" in text
    assert "Agreement between raters" not in text and "Cells to check" not in text and "Panel —" not in text
    assert "Rankings are per language" in text and "rank 1" not in text and "Toxic: yes" in text


def test_generators_are_ranked_where_there_is_one_language(cast: Cast) -> None:
    made = opened(cast, make.criterion("fluency"), places=[("et", generator) for _language, generator in PLACES])
    scene.with_verdicts(made, {"fluency": [float(n // 3 % 2 + n % 3) for n in range(12)]})
    text = page_of(cast.client("boris"), made).partition("rank 1: the highest mean")[2]
    assert text.index("rank 2") < text.index("borealis") < text.index("rank 1")  # atlas 1.0, borealis 2.0


def test_a_campaign_of_a_panel_alone(cast: Cast) -> None:
    made = opened(cast, make.criterion("fluency"))
    make.rated(
        made, {"fluency": {"mari": [float(n % 4) for n in range(12)], "jaan": [float(n % 3) for n in range(12)]}}
    )
    text = page_of(cast.client("boris"), made)
    assert "Judge agrees with panel" not in text and "against the panel" not in text
    assert "no judge yet · Add a judge" in text and "Mean score by generator" in text and "corrected by" not in text


def many_criteria(cast: Cast) -> Campaign:
    """Fourteen criteria in two groups, rated by two people and a judge."""
    groups = ["general"] * 8 + ["task"] * 6
    criteria = [make.criterion(f"c{n}", group=group) for n, group in enumerate(groups)]
    made = opened(cast, *criteria)
    given = [float(n % 4) for n in range(12)]
    make.rated(made, {f"c{n}": {"mari": given, "jaan": given[::-1]} for n in range(14)})
    scene.with_verdicts(made, {f"c{n}": given for n in range(14)})
    return made


def test_many_criteria_are_in_groups_with_a_search(cast: Cast) -> None:
    made = many_criteria(cast)
    client = cast.client("boris")
    for address, tables in (("", ("heatmap", "calibration")), ("agreement/", ("grid-matrix-1",))):
        page_of(client, made, address)
        page = client.get(f"/p/kassa/numbers/{made.pk}/{address}").content.decode()
        for table in tables:
            assert f'data-filters="{table}"' in page
            part = page[page.index(f'id="{table}"') :].split("</table>")[0]
            heads = re.findall(r"data-folds>(\w+) <span[^>]*>(\d+) rows", part)
            assert heads == [("General", "8"), ("Task", "6")] and part.count("<tbody>") == 2 and "data-sorts" in part
    few = page_of(client, scene.rated_campaign(cast, name="Few"))
    assert "Find a row" not in few


def test_many_cells_of_a_comparison_stand_below_one_another(cast: Cast) -> None:
    made = opened(cast, *(make.criterion(f"c{n}") for n in range(5)))
    given = [float(n % 4) for n in range(12)]
    make.rated(made, {f"c{n}": {"mari": given, "jaan": given} for n in range(5)})
    scene.with_verdicts(made, {f"c{n}": [*given[1:], given[0]] for n in range(5)})
    compared = page_of(cast.client("boris"), made, "comparison/")
    assert "Criterion and language Kohtunik" in compared, "cells are the rows"
    assert compared.count("No effect can be computed: these judges differ in no factor that is known.") == 1


def test_a_long_page_holds_the_rows_of_a_fold_where_its_address_opens_it(cast: Cast) -> None:
    made = many_criteria(cast)
    client, path = cast.client("boris"), f"/p/kassa/numbers/{made.pk}/"
    page_of(client, made)
    closed = client.get(f"{path}?coefficient=gwet_ac&seen=1").content.decode()
    heat_link = html.unescape(re.findall(r'<td data-bin="\d" [^>]*><a href="([^"]+)"', closed)[0])
    asked = {html.unescape(link) for link in re.findall(r'hx-get="([^"]+open=[^"]+)"', closed)}
    query = "coefficient=gwet_ac&open="
    assert asked == {f"{path}?{query}{fold}" for fold in ("agreement", "distributions", "generators")}
    assert {f"?{query}{fold}#{rows}" for fold, rows in ROWS.items()} <= set(
        re.findall(r'href="([^"]+)"', html.unescape(closed))
    )
    for fold, rows in ROWS.items():
        opened_page = client.get(f"{path}?{query}{fold}").content.decode()
        part = opened_page[opened_page.index(f'id="{rows}"') :]
        assert part.index(" open>") < part.index("fold-rows") < part.index("</details>")
        assert opened_page.count('class="fold-rows') == 1
        assert len(opened_page) > len(closed)
    address, _, row = heat_link.partition("#")
    assert address == f"?{query}agreement"
    assert f'<tr id="{row}">' not in closed
    assert f'<tr id="{row}">' in client.get(path + address).content.decode()
    few = client.get(f"/p/kassa/numbers/{scene.rated_campaign(cast, name='Few').pk}/").content.decode()
    assert "open=" not in few


ROWS = {"agreement": "agreement-table", "distributions": "distributions-rows", "generators": "generators-rows"}


def test_ratings_are_told_from_scores(cast: Cast) -> None:
    made = opened(cast, make.criterion("fluency", not_applicable=True), places=PLACES[:10])
    make.rated(made, {"fluency": {"mari": [1.0] * 5 + [2.0] * 5, "jaan": [1.0] * 6 + [2.0] * 4}})
    Rating.objects.filter(annotation__item__external_id="i3").update(status="na", score=None)
    client = cast.client("boris")
    for address in ("", "agreement/", "explore/"):
        assert "20 ratings (18 scores, 2 N/A)" in page_of(client, made, address), address


def test_the_form_keeps_several_runs(cast: Cast) -> None:
    made = scene.rated_campaign(cast)
    runs = [scene.with_verdicts(made).pk for _time in range(3)]
    query = "&".join(f"run={pk}" for pk in runs[:2])
    page = cast.client("boris").get(f"/p/kassa/numbers/{made.pk}/explore/?statistic=mae&{query}").content.decode()
    chosen = dict(re.findall(r'name="run" value="(\w+)"( checked)?', page))
    assert chosen == {"each": "", **{str(pk): " checked" for pk in runs[:2]}, str(runs[2]): ""}
    assert JudgeRun.objects.count() == 3


def test_languages_have_one_name_and_one_order(cast: Cast) -> None:
    """German is de, Estonian et, Spanish es: by their tags the order would be another."""
    places = [(tag, "atlas") for tag in ("et", "de", "es") for _n in range(4)]
    made = opened(cast, make.criterion("fluency"), places=places)
    given = [float(n % 4) for n in range(12)]
    make.rated(made, {"fluency": {"mari": given, "jaan": given}})
    client, names = cast.client("boris"), ["Estonian", "German", "Spanish"]
    for address in ("", "agreement/", "explore/", "items/"):
        page_of(client, made, address)
        page = client.get(f"/p/kassa/numbers/{made.pk}/{address}").content.decode()
        body = page[page.index("<main") : page.index("</main>")]  # the menu of languages comes after it
        found = list(dict.fromkeys(re.findall(r"Estonian|German|Spanish|eesti|Deutsch|español", body)))
        assert found == names, address
    datasets = client.get(f"/p/kassa/datasets/{made.dataset_id}/").content.decode()
    table = datasets[datasets.index("<table") : datasets.index("</main>")]
    assert list(dict.fromkeys(re.findall(r"Estonian|German|Spanish|eesti|Deutsch", table))) == names
