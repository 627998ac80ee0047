"""The Agreement page through HTTP: its figures are those of independent implementations and of its JSON."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zlib
from collections import Counter
from datetime import timedelta
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pytest
from django.test import Client
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from analytics import agreement, answer_pages
from analytics.agreement import is_dominated
from analytics.answer_pages import ShownCell
from analytics.figures import Figure
from analytics.questions.asked import question_of
from analytics.ratings.rating_times import iso_week
from analytics.views.agreement import AGREEMENT, part_question
from annotation import allocation, campaigns, panels
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Campaign
from tests import make
from tests.analytics import scene, studies
from tests.annotation import scene as desks
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ADDRESS = "/p/kassa/numbers/{}/agreement/"


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made)
    return made


def read(client: Client, campaign: Campaign, part: str = "", query: str = "", *, status: int = 200) -> str:
    answer = opened(client, campaign, part, query)
    assert answer.status_code == status, (part, query)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def opened(client: Client, campaign: Campaign, part: str = "", query: str = "") -> Any:
    """A section, once a worker has computed what it asked for."""
    return scene.answered(client, campaign, f"{ADDRESS.format(campaign.pk)}{part}{'/' if part else ''}?{query}")


def rows_of(client: Client, campaign: Campaign, part: str, query: str = "") -> list[dict[str, Any]]:
    """The figures of a section by its own JSON link."""
    page = opened(client, campaign, part, query).content.decode()
    link = html.unescape(re.findall(r'href="([^"]*cells\.json[^"]*)"', page)[0])
    found: list[dict[str, Any]] = []
    while link:
        document = client.get(link).json()
        found, link = [*found, *document["estimates"]], document["next"]
    return found


def test_every_section_stands_alone_and_names_its_files(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    page = opened(client, campaign).content.decode()
    folded = client.get(ADDRESS.format(campaign.pk)).content.count(b'hx-trigger="toggle from:closest details once"')
    assert folded == sum(not section.is_catalogue for section in AGREEMENT.sections) - 1
    catalogue = client.get(f"/p/kassa/numbers/{campaign.pk}/all/").content.decode()
    for part in AGREEMENT.parts:
        alone = f"{ADDRESS.format(campaign.pk)}{part}/"
        assert part == "matrix" or AGREEMENT.parts[part].is_catalogue or alone in page
        assert f'href="{alone}"' in catalogue
        text = opened(client, campaign, part).content.decode()
        assert "<html" in text and "<html" not in client.get(alone, headers={"HX-Request": "true"}).content.decode()
        for link in re.findall(r'href="([^"]*(?:cells\.(?:csv|json)|/explore/|/estimates/|soft-labels)[^"]*)"', text):
            linked = client.get(html.unescape(link))
            assert linked.status_code == 200 and b"".join(linked), link
    assert client.get(f"{ADDRESS.format(campaign.pk)}beauty/").status_code == 404
    numbers = client.get(f"/p/kassa/numbers/{campaign.pk}/").content.decode()
    assert ADDRESS.format(campaign.pk) in numbers


def test_the_matrix_beside_independent_figures(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    expected = krippendorff.alpha(
        reliability_data=[scene.FLUENCY["mari"][:6], scene.FLUENCY["jaan"][:6]],
        level_of_measurement="ordinal",
        value_domain=[0, 1, 2, 3],
    )
    page = read(client, campaign, "", "columns=language")
    assert f"{expected:.2f}" in page and "83% equal" in page and "6 items × 2 raters" in page
    assert "fewer than 30 items" in page and "approximate" in page
    (row,) = (
        row
        for row in rows_of(client, campaign, "matrix")
        if (row["asked"], row["criterion"], row["language"]) == ("krippendorff_alpha", "fluency", "et")
    )
    assert row["value"] == pytest.approx(expected) and row["n_clusters"] == 6


def tables_of(client: Client, campaign: Campaign, part: str, query: str) -> list[tuple[str, str]]:
    """The heading and the text of every table of a section; the heading is empty where a table has none."""
    page = opened(client, campaign, part, query).content.decode()
    found = re.findall(
        r"(?:<h3[^>]*>((?:(?!</h3>).)*)</h3>)?\s*<div class=\"table-scroll.*?<tbody>(.*?)</tbody>", page, re.DOTALL
    )
    return [(re.sub(r"<[^>]*>", "", title).strip(), re.sub(r"<[^>]*>", " ", text)) for title, text in found]


@pytest.mark.parametrize(
    "query", ["rows=language&columns=", "rows=generator&columns=", "rows=language&columns=generator"]
)
def test_a_table_for_each_criterion_that_is_on_no_axis(cast: Cast, campaign: Campaign, query: str) -> None:
    client = cast.client("boris")
    tables = tables_of(client, campaign, "matrix", query)
    assert [title for title, _text in tables] == ["Fluency", "Coherence"]
    values = {
        key: {f"{row['value']:.2f}".replace("-", "−") for row in rows if row["value"] is not None}
        for key in ("fluency", "coherence")
        if (rows := [row for row in rows_of(client, campaign, "matrix", query)
                     if (row["asked"], row["criterion"]) == ("krippendorff_alpha", key)])
    }  # fmt: skip
    for (_title, text), shown in zip(tables, values.values(), strict=True):
        assert shown and all(number in text for number in shown)
    assert [title for title, _text in tables_of(client, campaign, "matrix", "columns=language")] == [""]


def test_counts_names_and_notes_of_the_sections(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    page = opened(client, campaign, "criteria").content.decode()
    assert re.search(r"means of \d+ items, \d+ raters?", page) and "How each value was computed" in page
    link = html.unescape(re.findall(r'href="([^"]*cells\.csv[^"]*)"', page)[0])
    answer = client.get(link)
    assert b"".join(answer) and 'filename="round-1-agreement-criteria.csv"' in answer.headers["Content-Disposition"]
    page = opened(client, campaign, "raters").content.decode()
    assert "It is a projection" in page and "data-bin" not in page
    assert "are shown without intervals" in read(client, campaign, "pairs")
    assert "Intervals from fewer than 30 items or clusters are approximate." in read(client, campaign, "criteria")


def test_a_change_on_few_clusters_and_pairs_without_common_items(cast: Cast) -> None:
    client = cast.client("boris")
    made = make.campaign(cast.kassa, items=20)
    good = [float(place % 4) for place in range(20)]
    noise = [float((place * 7 + 3) // 3 % 4) for place in range(20)]
    make.rated(made, {"fluency": {"mari": good, "jaan": good, "noor": good, "epp": noise}})
    page = read(client, made, "annotators")
    assert "too few items to say" in page and "The others agree better without" not in page
    rows = make.dataset(made.project, 20, name="Apart")
    apart = campaigns.open_campaign(
        project=made.project, name="Apart", dataset=rows, rubric_version=made.rubric_version
    )
    halves: dict[str, list[float | None]] = {}
    for place, name in enumerate(("a", "b", "c", "d", "e", "f")):
        start = 6 * (place // 2)
        halves[name] = [score if start <= at < start + 6 else None for at, score in enumerate(good)]
    make.rated(apart, {"fluency": halves})
    page = read(client, apart, "pairs")
    assert "a ~ b" in page and "c ~ d" in page and "a ~ c" not in page


def test_one_dominant_score_is_warned_of(cast: Cast) -> None:
    made = make.campaign(cast.kassa, items=40)
    rare = [1.0] * 38 + [0.0, 1.0]
    make.rated(made, {"coherence": {"mari": rare, "jaan": [*rare[:38], 1.0, 0.0]}})
    page = read(cast.client("boris"), made)
    assert "98% of the scores are “1”: read percent and AC" in page and "95% equal" in page
    assert is_dominated(0.1, 0.9, 0.9) and not is_dominated(0.7, 0.9, 0.9) and not is_dominated(None, 0.9, 0.9)


def test_few_clusters_are_said_and_not_few_items() -> None:
    figure = Figure(statistic="icc", criterion="c", value=0.5, n_items=45, n_clusters=3)
    assert ShownCell("", "", figure).few == "only 3 clusters"
    assert ShownCell("", "", figure).counts.count("clusters") == 1


@pytest.fixture
def panel_of_four(cast: Cast) -> tuple[Campaign, np.ndarray[Any, Any]]:
    """40 items, four annotators with gaps, two criteria."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 40)
    scores = np.clip(truth[:, None] + rng.integers(-1, 2, (40, 4)), 0, 3).astype(float)
    scores[:, 3] = rng.integers(0, 4, 40)
    scores[rng.random((40, 4)) < 0.1] = np.nan
    made = make.campaign(cast.kassa, items=40)
    names = ("mari", "jaan", "noor", "Tamm, A")
    given = {name: [None if np.isnan(v) else float(v) for v in scores[:, k]] for k, name in enumerate(names)}
    flags = {name: [None if v is None else float(v > 1) for v in values] for name, values in given.items()}
    make.rated(made, {"fluency": given, "coherence": flags})
    return made, scores


def alpha(scores: np.ndarray[Any, Any]) -> float:
    domain = [0, 1, 2, 3]
    return float(krippendorff.alpha(reliability_data=scores.T, level_of_measurement="ordinal", value_domain=domain))


def test_annotators_and_pairs(cast: Cast, panel_of_four: tuple[Campaign, np.ndarray[Any, Any]]) -> None:
    (made, scores), client = panel_of_four, cast.client("boris")
    names = ("mari", "jaan", "noor", "Tamm, A")
    page = read(client, made, "annotators", "where=criterion%3Dfluency")
    found = {
        row["annotator"]: row["value"]
        for row in rows_of(client, made, "annotators", "where=criterion%3Dfluency")
        if row["asked"].endswith("_change")
    }
    for place, name in enumerate(names):
        expected = alpha(np.delete(scores, place, axis=1)) - alpha(scores)
        assert found[name] == pytest.approx(expected)
        assert f"{expected:+.2f}".replace("-", "−").replace("+0.00", "0.00") in page
    assert f"With all annotators: {alpha(scores):.2f}" in page and "The others agree better without" in page
    rows = rows_of(client, made, "pairs", "where=criterion%3Dfluency")
    for first, second in combinations(range(4), 2):
        both = scores[:, [first, second]][~np.isnan(scores[:, [first, second]]).any(axis=1)]
        kappa = cohen_kappa_score(both[:, 0], both[:, 1], weights="quadratic", labels=[0, 1, 2, 3])
        (row,) = (
            row
            for row in rows
            if row["asked"] == "pairs.cohen_kappa" and set(row["raters"] or ()) == {names[first], names[second]}
        )
        assert row["value"] == pytest.approx(kappa) and row["n_items"] == len(both)
    text = read(client, made, "pairs", "where=criterion%3Dfluency")
    assert "Tamm, A" in text and "Mean κ with the others" in text
    assert "κ" in read(client, made, "pairs", "where=criterion%3Dcoherence")


def test_soft_labels_of_every_item(cast: Cast, panel_of_four: tuple[Campaign, np.ndarray[Any, Any]]) -> None:
    (made, scores), client = panel_of_four, cast.client("boris")
    base = f"/api/v1/projects/kassa/campaigns/{made.pk}/soft-labels"
    labels = json.loads(b"".join(client.get(f"{base}.json")))["labels"]
    of_item = {label["item"]: label for label in labels if label["criterion"] == "fluency"}
    for place, item in enumerate(made.dataset.items.order_by("ordinal")):
        given = scores[place][~np.isnan(scores[place])]
        shares = {f"{score:g}": n / len(given) for score, n in Counter(given.tolist()).items()}
        assert of_item[item.external_id]["shares"] == pytest.approx(shares)
        assert of_item[item.external_id]["n"] == len(given)
    rows = list(csv.DictReader(io.StringIO(b"".join(client.get(f"{base}.csv?where=criterion%3Dfluency")).decode())))
    assert {row["criterion"] for row in rows} == {"fluency"}
    assert sum(int(row["count"]) for row in rows) == int((~np.isnan(scores)).sum())
    page = opened(client, made, "items").content.decode()
    assert page.count(f"/p/kassa/numbers/{made.pk}/items/") >= 5 and "soft-labels.csv" in page
    assert client.get(f"{base}.xlsx").status_code == 404


def test_criteria_reliability_and_classes(cast: Cast, panel_of_four: tuple[Campaign, np.ndarray[Any, Any]]) -> None:
    (made, scores), client = panel_of_four, cast.client("boris")
    flags = np.where(np.isnan(scores), np.nan, scores > 1)
    rho = spearmanr(np.nanmean(scores, axis=1), np.nanmean(flags, axis=1)).statistic
    (row,) = rows_of(client, made, "criteria")
    assert row["value"] == pytest.approx(rho) and row["n_items"] == 40
    assert f"{rho:.2f}" in read(client, made, "criteria")
    classes = {
        row["agreement_class"]: row["value"]
        for row in rows_of(client, made, "classes")
        if row["criterion"] == "fluency" and row["asked"] == "class_share"
    }
    given = [row[~np.isnan(row)] for row in scores]
    counted = [sorted(Counter(row.tolist()).values(), reverse=True) for row in given if len(row) > 1]
    assert classes["full"] == pytest.approx(np.mean([len(n) == 1 for n in counted]))
    assert classes["none"] == pytest.approx(np.mean([max(n) == 1 for n in counted]))
    curve = {
        int(row["variant"]): row["value"] for row in rows_of(client, made, "raters") if row["criterion"] == "fluency"
    }
    assert curve[4] == pytest.approx(4 * curve[1] / (1 + 3 * curve[1]))  # Spearman-Brown
    page = read(client, made, "raters")
    assert "Spearman-Brown" in page and f"{curve[4]:.2f}" in page


def test_weeks_hundreds_and_published_versions(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    now = campaign.rubric_version.published_at
    assert now is not None
    late = campaign.dataset.items.order_by("ordinal")[:3]
    Annotation.objects.filter(campaign=campaign).update(submitted_at=now)
    Annotation.objects.filter(campaign=campaign, item__in=late).update(submitted_at=now + timedelta(days=7))
    page = read(client, campaign, "time")
    first, second = iso_week(now), iso_week(now + timedelta(days=7))
    assert first in page and second in page
    assert f"Version 1 of the rubric was published in the week {first}." in page
    items = {row["week"]: row["n_items"] for row in rows_of(client, campaign, "time") if row["criterion"] == "fluency"}
    assert items == {first: 9, second: 3}
    assert "All items were rated in one period" in read(client, campaign, "time", "columns=hundred")
    assert {row["hundred"] for row in rows_of(client, campaign, "time", "columns=hundred")} == {"1"}


def test_rationales_of_people_and_judges_and_not_applicable(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    page = read(client, campaign, "rationales")
    assert "Annotators" in page and "Kohtunik" in page and "Nobody has written a rationale." in page
    assert "Nobody has answered “not applicable”." in read(client, campaign, "applicability")


def three_items(other: Campaign, name: str) -> Campaign:
    """A campaign over three items with the rubric of another one."""
    rows = make.dataset(other.project, 3, name=name)
    return campaigns.open_campaign(project=other.project, name=name, dataset=rows, rubric_version=other.rubric_version)


class TestEmpty:
    def test_a_judge_alone_one_rater_and_two_raters(self, cast: Cast) -> None:
        client = cast.client("boris")
        alone = scene.campaign_without_ratings(cast, name="Judge alone")
        scene.with_verdicts(alone)
        one = three_items(alone, "One rater")
        make.rated(one, {"fluency": {"mari": [1.0, 2.0, 3.0]}})
        for made in (alone, one):
            for part in AGREEMENT.parts:
                read(client, made, part)
        assert "Agreement needs two annotators" in read(client, alone)
        assert "only one rater" in read(client, one)
        assert "Kohtunik" in read(client, alone, "rationales")
        two = three_items(alone, "Two raters")
        make.rated(two, {"fluency": {"mari": [1.0, 2.0, 3.0], "jaan": [1.0, 2.0, 2.0]}})
        page = read(client, two, "annotators")
        assert "Leaving one annotator out needs three annotators" in page and "two raters" in page
        assert "3 items" in read(client, two, "pairs")
        assert "All items were rated in one period" in read(client, two, "time")
        assert "This campaign has no two panels" in read(client, two, "panels")

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("statistic=mae", "This page shows one coefficient"),
            ("statistic=gwet_ac&statistic=icc", "This page shows one coefficient"),
            ("rows=colour", "“colour” is not a valid choice for “rows”"),
            ("where=criterion%3Dbeauty", "Available: criterion=fluency"),
            ("raters=%00x", "“x” is not a valid choice for “raters”"),
        ],
    )
    def test_a_wrong_address_is_answered(self, cast: Cast, campaign: Campaign, query: str, sentence: str) -> None:
        assert sentence in read(cast.client("boris"), campaign, "", query, status=422)
        assert sentence in read(cast.client("boris"), campaign, "pairs", query, status=422)


def test_a_section_asks_for_itself_until_a_worker_has_computed_it(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    page = client.get(f"{ADDRESS.format(campaign.pk)}criteria/", headers={"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' in page
    asked = part_question(AGREEMENT.parts["criteria"], question_of(""), ("fluency", "coherence"))
    scene.compute(campaign, asked)
    page = client.get(f"{ADDRESS.format(campaign.pk)}criteria/", headers={"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' not in page and "cells.csv" in page


@pytest.mark.study_data
def test_dices_with_123_raters(cast: Cast) -> None:
    made, given = studies.dices_campaign(cast.kassa, items=40)
    scores = np.array([given["safety"][name] for name in sorted(given["safety"])], dtype=float).T
    client = cast.client("boris")
    for part, query in (("matrix", ""), ("pairs", ""), ("pairs", "pairs=all"), ("annotators", "")):
        asked = part_question(AGREEMENT.parts[part], question_of(query), ("safety",), 123)
        answer_pages.answer_now(made, asked)
    expected = krippendorff.alpha(reliability_data=scores.T, level_of_measurement="nominal")
    assert f"{expected:.2f}" in read(client, made)
    means = rows_of(client, made, "pairs")
    assert len(means) == 123 and not any(row["raters"] for row in means)
    assert all("pairs of more than 24 raters are left out: pairs=all lists them" in row["note"] for row in means)
    few = read(client, made, "pairs")
    assert "Pairs of more than 24 annotators are left out." in few and "add pairs=all to the address" in few
    rows = {tuple(row["raters"]): row for row in rows_of(client, made, "pairs", "pairs=all") if row["raters"]}
    assert len(rows) == 123 * 122 // 2
    for first, second in ((0, 1), (5, 90), (121, 122)):
        kappa = cohen_kappa_score(scores[:, first], scores[:, second])
        assert rows[f"r{first + 1:03}", f"r{second + 1:03}"]["value"] == pytest.approx(kappa)
    answer = client.get(f"{ADDRESS.format(made.pk)}pairs/?pairs=all", headers={"Accept-Encoding": "gzip"})
    assert answer.content.count(b"<td") > 123 * 122 and len(zlib.compress(answer.content)) < 200_000
    changes = [row for row in rows_of(client, made, "annotators") if row["asked"].endswith("_change")]
    without = alpha_nominal(np.delete(scores, 7, axis=1)) - expected
    assert next(row for row in changes if row["annotator"] == "r008")["value"] == pytest.approx(without)


def alpha_nominal(scores: np.ndarray[Any, Any]) -> float:
    return float(krippendorff.alpha(reliability_data=scores.T, level_of_measurement="nominal"))


@pytest.mark.study_data
def test_hanna_by_system(cast: Cast) -> None:
    made, given = studies.hanna_campaign(cast.kassa, stories=12)
    client = cast.client("boris")
    systems = made.dataset.items.order_by("ordinal").values_list("generator", flat=True)
    human = [place for place, name in enumerate(systems) if name == "Human"]
    scores = [[row[place] for place in human] for row in given["re"].values()]
    domain = [1, 2, 3, 4, 5]
    expected = krippendorff.alpha(reliability_data=scores, level_of_measurement="ordinal", value_domain=domain)
    page = read(client, made, "", "columns=generator&where=generator%3DHuman")
    assert f"{expected:.2f}".replace("-", "−") in page and "12 items × 3 raters, 12 clusters" in page


def test_two_panels_on_the_same_items(cast: Cast) -> None:
    people = {name: desks.member(cast, name) for name in ("Anu", "Epp", "Ott")}
    crowd = desks.duty(cast, items=4, seated=[people["Anu"]])
    experts = panels.create(project=cast.kassa, name="Experts", language="et")
    for name in ("Epp", "Ott"):
        panels.seat(panel=experts, user=people[name])
    second = allocation.allocate(campaign=crowd.campaign, panel=experts, name="Again", overlap=2, seed=1)
    given = {
        cast.maarika: (crowd, [0, 1, 2, 3]), people["Anu"]: (crowd, [0, 1, 2, 2]),
        people["Epp"]: (second, [0, 3, 2, 1]), people["Ott"]: (second, [0, 3, 2, 1]),
    }  # fmt: skip
    items = list(crowd.campaign.dataset.items.order_by("ordinal").values_list("pk", flat=True))
    for user, (duty, scores) in given.items():
        for _turn in items:
            taken = desks.taken(cast, duty, user)
            score = scores[items.index(taken.item_id)]
            service.submit(
                assignment=taken, key=taken.key, seconds=5,
                answers={"fluency": Answer(score=score, rationale="Jah"), "coherence": Answer(score=score > 1)},
            )  # fmt: skip
    client, made = cast.client("boris"), crowd.campaign
    found = {row["asked"]: row for row in rows_of(client, made, "panels") if row["criterion"] == "fluency"}
    names = found["panel_difference"]["variant"]
    sign = 1 if names.endswith("Experts") else -1
    # Means of the crowd 0, 1, 2, 2.5 and of the experts 0, 3, 2, 1; the crowd's mode ties on the last item.
    assert found["panel_difference"]["value"] == pytest.approx(sign * (0 + 2 + 0 - 1.5) / 4)
    assert found["panel_spearman"]["value"] == pytest.approx(spearmanr([0, 1, 2, 2.5], [0, 3, 2, 1]).statistic)
    assert found["panel_same_mode"]["value"] == pytest.approx(2 / 3) and found["panel_same_mode"]["n_missing"] == 1
    page = read(client, made, "panels")
    assert "67%" in page and "compared with" in page and "Experts" in page
    assert "4 items, 4 raters" in page and "ratings, 4 clusters" not in page, "means, not ratings, are compared"
    rationales = read(client, made, "rationales")
    assert "100%" in rationales and "median 3 characters" in rationales and "Jah" not in rationales


def test_a_matrix_of_many_annotators_leads_to_the_items_of_any_two(cast: Cast) -> None:
    made = make.campaign(cast.kassa, items=6)
    names = [f"r{number:02}" for number in range(agreement.LARGE_PANEL + 2)]
    make.rated(made, {"fluency": {name: [(place + item) % 4 for item in range(6)] for place, name in enumerate(names)}})
    page = opened(cast.client("boris"), made, "pairs", "bootstrap=200&pairs=all").content.decode()
    form = page.partition("data-pairs")[2].partition("</form>")[0]
    asked = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert (asked["criterion"], asked["scores"], form.count("<option")) == ("fluency", "2", 2 * len(names))
    answer = cast.client("boris").get(f"/p/kassa/numbers/{made.pk}/items/", {**asked, "rater": ["r01", "r07"]})
    assert "6 items" in " ".join(answer.content.decode().split())
