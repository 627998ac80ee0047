"""Statistics of a question beyond one judge and the panel, by page, API and command, against other sources."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from scipy import stats

from accounts.refusals import Refused
from analytics.answers import snapshots
from analytics.questions.asked import asked_question, question_of
from analytics.questions.parameters import EACH_RUN
from analytics.ratings.additions import jury_score
from analytics.stats.declared.register import STATISTICS
from analytics.stats.judge.audits import jury_scores
from annotation import campaigns
from annotation.models import Annotation, Campaign
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ITEMS, LANGUAGES = 24, ("en", "et")
JUDGES = {"Anna": 0, "Bert, B": 1, "Cecil": 2}
TOPICS = ({"value": 0, "label": {"en": "bank"}}, {"value": 1, "label": {"en": "shop"}})


def panel_score(number: int, rater: int) -> int:
    return (number * 7 + (number % 3) * rater) % 4


def judge_score(number: int, judge: int) -> int:
    return (number * 7 + judge * (number % 5 == 0) + (judge == 2) * (number % 3 == 0)) % 4


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def make_scene(cast: Cast) -> Campaign:
    """Twelve scenarios in two languages by two generators; three people, three judges; a parameter to recover."""
    rows = [
        make.item_row(
            n,
            LANGUAGES[n // 12],
            scenario=f"s{n % 12}",
            generator=("atlas", "borea")[n % 2],
            external_id=f"d{n}",
            attributes={"industry": ("bank", "shop")[n % 2], "difficulty": n % 5},
        )
        for n in range(ITEMS)
    ]
    industry = {"key": "industry", "name": {"en": "Industry"}, "scale": {"level": "nominal", "points": list(TOPICS)}}
    version = make.rubric(cast.kassa, make.criterion("fluency"), make.criterion("sense"), industry)
    made = campaigns.open_campaign(
        project=cast.kassa, name="Study", dataset=make.dataset(cast.kassa, rows), rubric_version=version
    )
    names = ("mari", "jaan", "noor")
    people = {name: [panel_score(n, shift) for n in range(ITEMS)] for shift, name in enumerate(names)}
    make.rated(made, {"fluency": people, "sense": people})
    for annotation in Annotation.objects.filter(campaign=made).select_related("item"):
        Annotation.objects.filter(pk=annotation.pk).update(certainty=annotation.item.ordinal * 13 % 101)
    for name, shift in JUDGES.items():
        judge = Judge.objects.create(project=cast.kassa, name=name, digest=name, model="m")
        run = JudgeRun.objects.create(
            project=cast.kassa, judge=judge, dataset=made.dataset, rubric_version=version, repeats=2
        )
        for criterion in version.criteria.all():
            for n, item in enumerate(made.dataset.items.order_by("ordinal")):
                score = float(judge_score(n, shift)) if criterion.key != "industry" else float((n + (n < shift)) % 2)
                both = (score, min(score + (n < 6 and criterion.key != "industry"), 3.0))
                Verdict.objects.bulk_create(
                    Verdict(run=run, item=item, criterion=criterion, score=value, repeat=repeat, status="ok")
                    for repeat, value in enumerate(both)
                )
    return made


def answer(cast: Cast, campaign: Campaign, query: str) -> dict[str, Any]:
    snapshots.snapshot(campaign=campaign, settings=question_of(query))  # as a worker does
    told = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{query}")
    assert told.status_code == 200, told.content
    found: dict[str, Any] = told.json()["answer"]
    return found


def value(rows: list[dict[str, Any]], **about: Any) -> float:
    found = [row for row in rows if all(row.get(name) == wanted for name, wanted in about.items())]
    assert len(found) == 1, (about, found)
    return float(found[0]["value"])


def test_every_statistic_of_every_family_is_answered(
    cast: Cast, rated: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "&".join(["measure=difficulty", *(f"statistic={name}" for name in STATISTICS)])
    capsys.readouterr()
    call_command(
        "numbers", "--project", "kassa", "--columns", "", "--bootstrap", "0", "--format", "json",
        "--measure", "difficulty",
        *[part for name in STATISTICS for part in ("--statistic", name)],
    )  # fmt: skip
    rows = json.loads(capsys.readouterr().out)["estimates"]
    answered = {row["asked"] for row in rows}
    lacking = {name for name in STATISTICS if name.startswith("preference.")}  # no pairs of candidates here
    lacking |= {"leaderboard.macro_mean", "leaderboard.pooled_mean"}  # nor task types
    lacking |= {"panel_difference", "panel_spearman", "panel_same_mode"}  # nor a second panel
    lacking |= {"applicability_agreement", "applicability_ac"}  # nor N/A
    lacking |= {"stability.confirmed_inversions"}  # it needs resamples
    lacking |= {"survival.survival", "survival.survivals"}  # nor faulty dialogues and simulators
    assert answered == set(STATISTICS) - lacking
    client = cast.client("boris")
    page = client.get(f"/p/kassa/numbers/{rated.pk}/explore/?columns=&bootstrap=0&{asked}")
    assert page.status_code == 200 and "Equivalence of two judges" in page.content.decode()
    by_name = {row["asked"]: row for row in rows}
    addresses = {page.context["page"].items_address(row): name for name, row in by_name.items()}
    for address, name in addresses.items():
        assert client.get(address).status_code == 200, name

    judged = {name: [judge_score(n, shift) for n in range(ITEMS)] for name, shift in JUDGES.items()}
    for pair in (("Anna", "Bert, B"), ("Anna", "Cecil"), ("Bert, B", "Cecil")):
        about: Mapping[str, Any] = {"raters": list(pair), "criterion": "fluency"}
        first, second = (np.array(judged[name]) for name in pair)
        assert value(rows, asked="judges.spearman", **about) == pytest.approx(stats.spearmanr(first, second)[0])
        assert value(rows, asked="judges.pearson", **about) == pytest.approx(np.corrcoef(first, second)[0, 1])
        assert value(rows, asked="judges.accuracy", **about) == pytest.approx((first == second).mean())
        assert value(rows, asked="judges.mae", **about) == pytest.approx(abs(first - second).mean())
        assert value(rows, asked="judges.tost", **about) == pytest.approx((first - second).mean())
    means = [np.mean([panel_score(n, shift) for shift in range(3)]) for n in range(ITEMS)]
    of_atlas = value(rows, asked="means.classical_mean", criterion="fluency")
    assert of_atlas == pytest.approx(np.mean(means))
    assert value(rows, asked="means.judge_mean", criterion="fluency", judge="Cecil") == np.mean(judged["Cecil"])
    assert value(rows, asked="recovery.label_recovery", judge="Anna", variant="industry") == 1.0
    assert value(rows, asked="recovery.label_recovery", judge="Cecil", variant="industry") == 22 / 24
    assert value(rows, asked="audit.unreadable", judge="Anna", criterion="fluency") == 0
    flips = np.mean([n < 6 and judge_score(n, 0) < 3 for n in range(ITEMS)])
    assert value(rows, asked="audit.flip_rate", judge="Anna", criterion="fluency") == pytest.approx(flips)
    ens, low, less = (
        value(rows, asked="languages.ensemble_kappa", criterion="fluency", variant=v) for v in ("ens", "min", "ens-min")
    )
    assert less == pytest.approx(ens - low)
    assert value(rows, asked="languages.kappa_gap", variant="fluency - sense", judge="Anna") == 0
    shares = [row["value"] for row in rows if row["asked"] == "reference.label_share" and row["criterion"] == "fluency"]
    assert sum(shares) == pytest.approx(1)


def test_labels_and_pairs_of_judges_are_rows_and_columns(cast: Cast, rated: Campaign) -> None:
    address = f"/p/kassa/numbers/{rated.pk}/explore/"
    labels = "rows=variant&columns=judge&statistic=f1&where=criterion%3Dfluency&bootstrap=0"
    pairs = "rows=raters&columns=criterion&statistic=judges.spearman&bootstrap=0"
    for query in (labels, pairs):
        snapshots.snapshot(campaign=rated, settings=question_of(query))
    told = cast.client("boris").get(f"{address}?{labels}")
    page = told.content.decode()
    assert page.count('class="table table-compact explore"') == 1
    assert all(f'<th scope="row"><bdi>{point}</bdi></th>' in page for point in range(4))
    told = cast.client("boris").get(f"{address}?{pairs}")
    assert "Anna ~ Bert, B" in told.content.decode() and "Bert, B ~ Cecil" in told.content.decode()


def test_measures_of_the_items_are_set_beside_scores_and_ranked(cast: Cast, rated: Campaign) -> None:
    measures = "measure=difficulty&measure=text.words&measure=text.turns"
    asked = "&".join(f"statistic=measures.{name}" for name in ("pearson", "spearman", "kendall_tau_b"))
    rows = answer(cast, rated, f"columns=&bootstrap=0&{measures}&{asked}")["estimates"]
    difficulty = np.array([n % 5 for n in range(ITEMS)])
    items = {item.external_id: item for item in rated.dataset.items.all()}
    words = np.array([len(" ".join(t["text"] for t in items[f"d{n}"].turns).split()) for n in range(ITEMS)])
    means = np.array([np.mean([panel_score(n, shift) for shift in range(3)]) for n in range(ITEMS)])
    anna = np.array([judge_score(n, 0) for n in range(ITEMS)])
    for other, theirs in (("panel", means), ("Anna", anna), ("text.words", words)):
        about = {"raters": ["difficulty", other], "criterion": None if other == "text.words" else "fluency"}
        pearson = np.corrcoef(difficulty, theirs)[0, 1]
        assert value(rows, asked="measures.pearson", **about) == pytest.approx(pearson)
        rho, tau = stats.spearmanr(difficulty, theirs)[0], stats.kendalltau(difficulty, theirs)[0]
        assert value(rows, asked="measures.spearman", **about) == pytest.approx(rho)
        assert value(rows, asked="measures.kendall_tau_b", **about) == pytest.approx(tau)
    flat = [row for row in rows if "text.turns" in row["raters"]]
    assert flat and all(row["value"] is None and row["reason"] for row in flat)
    found = answer(cast, rated, f"bootstrap=0&{measures}&statistic=stability.mean&statistic=stability.kendall_tau_b")
    of_measure = [row for row in found["estimates"] if row["judge"] in ("difficulty", "text.words", "text.turns")]
    assert of_measure and {(row["n_raters"], row["n_ratings"]) for row in of_measure} == {(0, 0)}, "nobody rated them"
    mine = {"criterion": "text.words", "asked": "stability.mean", "language": "en", "generator": "atlas"}
    of_atlas = [words[n] for n in range(12) if n % 2 == 0]
    assert value(found["estimates"], **mine) == pytest.approx(np.mean(of_atlas))
    assert any(
        row["asked"] == "stability.kendall_tau_b" and row["criterion"] == "difficulty" for row in found["estimates"]
    )
    assert any(note.startswith("words of texts in et: ") for note in found["notes"])
    refused = cast.client("boris").get(
        f"/api/v1/projects/kassa/campaigns/{rated.pk}/estimates/?statistic=measures.pearson"
    )
    assert refused.status_code == 422 and "difficulty, text.characters" in refused.json()["detail"]


class TestJury:
    def test_a_jury_is_one_more_judge_of_the_table(self, cast: Cast, rated: Campaign) -> None:
        query = 'jury=Cecil,"Bert, B",Anna&statistic=accuracy&columns=&where=criterion%3Dfluency&bootstrap=0'
        found = answer(cast, rated, query)
        name = "majority of Anna, Bert, B, Cecil"
        assert {row["judge"] for row in found["estimates"]} == {*JUDGES, name}
        client = cast.client("boris")
        file = client.get(f"/api/v1/projects/kassa/campaigns/{rated.pk}/ratings.csv?{query}")
        table = list(csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode())))  # type: ignore[attr-defined]
        mine = {row["item"]: row for row in table if row["rater_kind"] == "jury"}
        scores = np.array([[judge_score(n, shift) for shift in JUDGES.values()] for n in range(ITEMS)], dtype=float)
        expected = jury_scores(scores, "majority")
        for n, wanted in enumerate(expected):
            row = mine[f"d{n}"]
            assert (
                (row["score"] == "" and row["missing_reason"] == "tied")
                if np.isnan(wanted)
                else (float(row["score"]) == wanted)
            )
        assert np.isnan(expected).any() and not np.isnan(expected).all()
        page = client.get(f"/p/kassa/numbers/{rated.pk}/explore/?{query}").content.decode()
        assert "the majority; a tie gives no score" in page and "3 judges" in page
        for rule in ("median", "mean"):
            for row, wanted in zip(scores, jury_scores(scores, rule), strict=True):
                assert jury_score(list(row), rule) == pytest.approx(wanted)
        assert jury_score([2.0, 1.0, 3.0], "minimum") == 1.0

    def test_a_jury_needs_more_than_half_of_its_members(self, cast: Cast, rated: Campaign) -> None:
        """d0: one of three has a score; d1: nobody; d2: two; d3: nobody was asked; d4: two say N/A."""
        here = Verdict.objects.filter(criterion__key="fluency")
        lost = {"Anna": ("d0", "d1"), "Bert, B": ("d0", "d1", "d2"), "Cecil": ("d1",)}
        for name, items in lost.items():
            mine = here.filter(run__judge__name=name, item__external_id__in=items)
            mine.update(status=Verdict.Status.UNPARSED, score=None)
        here.filter(item__external_id="d3").delete()
        here.filter(item__external_id="d4").exclude(run__judge__name="Cecil").update(applicable=False, score=None)
        for rule in ("majority", "mean"):
            query = f'jury=Cecil,"Bert, B",Anna&jury_rule={rule}&where=criterion%3Dfluency'
            file = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{rated.pk}/ratings.csv?{query}")
            lines = csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode()))  # type: ignore[attr-defined]
            mine = {row["item"]: row for row in lines if row["rater_kind"] == "jury"}
            shown = {item: (mine[item]["score"], mine[item]["missing_reason"]) for item in ("d0", "d1", "d4")}
            assert shown == {"d0": ("", "few_members"), "d1": ("", "few_members"), "d4": ("", "")}
            assert [mine[item]["applicable"] for item in ("d0", "d4")] == ["true", "false"]
            assert mine["d2"]["missing_reason"] in ("", "tied") and "d3" not in mine

    def test_a_jury_of_nobody_is_refused(self, rated: Campaign) -> None:
        for text, sentence in (
            ("Anna", "is no jury"),
            ("Anna,Nobody", "“Nobody” is not a valid choice for “jury”"),
            ('"Bert, B",', "is no jury"),
        ):
            with pytest.raises(Refused, match=sentence):
                asked_question(rated, [("jury", text)])
        assert asked_question(rated, [("jury", "Anna\x00,\nCecil,")]).jury_members == [("Anna", "Cecil")]
        assert question_of("jury=B,A&jury_rule=median").query == question_of("jury=A,B,A&jury_rule=median").query
        with pytest.raises(Refused, match="one run of each judge"):
            asked_question(rated, [("jury", "Anna,Cecil"), ("run", EACH_RUN)])
        with pytest.raises(Refused, match="Only one is chosen"):
            asked_question(rated, [("judge", "Anna"), ("statistic", "judges.mae")])

    def test_members_that_are_not_asked_about_have_no_figures(self, cast: Cast, rated: Campaign) -> None:
        found = answer(cast, rated, "jury=Anna,Cecil&judge=Anna&jury_rule=mean&statistic=mae&columns=&bootstrap=0")
        assert {row["judge"] for row in found["estimates"]} == {"Anna", "mean of Anna, Cecil"}
