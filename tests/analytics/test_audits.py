"""Audits of a judge: figures against other computations, and a judge with known flaws, through HTTP."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from io import StringIO
from random import Random
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from scipy import stats

from analytics import answer_pages
from analytics.answers import snapshots
from analytics.judges import decisions, thresholds
from analytics.stats.judge.audits import by_expectation, perturbed
from analytics.views import audits
from annotation import campaigns
from annotation.models import Campaign, Item
from annotation.readers.items import ItemRow
from judging import judges, runs
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import declared, worked
from tests.provider_server import RunningProvider

LONG = {
    "en": "delivery arrives tomorrow around courier telephones customer before arrival",
    "et": "saadetis saabub homme kella kaheks kuller helistab tellijale enne saabumist",
    "fi": "paketti saapuu huomenna kello kuljettaja soittaa vastaanottajalle ennen",
}
SHORT = {
    "en": "the box is here and it is late now",
    "et": "pakk on seal ja kell on kaks enne",
    "fi": "paketti on siellä ja kello on kaksi",
}
EACH = 40


class TestFigures:
    before = np.array([3.0, 3, 2, 1, 3, 2, 2, 3, 1, 0, 2, 3] * 6)
    after = np.array([2.0, 3, 2, 0, 1, 2, 3, 3, 1, 0, 1, 3] * 6)

    def test_shares_and_the_drop_by_hand_and_by_scipy(self) -> None:
        rows = {row.statistic: row for row in perturbed(self.before, self.after, np.arange(72), seed=3)}
        assert rows["score_drop"].value == pytest.approx((1 + 1 + 2 - 1 + 1) / 12)
        assert {name: rows[name].value for name in ("fall", "stay", "rise")} == {
            "fall": pytest.approx(4 / 12), "stay": pytest.approx(7 / 12), "rise": pytest.approx(1 / 12)
        }  # fmt: skip
        wilson = stats.binomtest(24, 72).proportion_ci(method="wilson")
        assert (rows["fall"].low, rows["fall"].high) == pytest.approx((wilson.low, wilson.high), abs=1e-9)
        resampled = stats.bootstrap(
            (self.before - self.after,), np.mean, method="percentile", rng=1
        ).confidence_interval
        assert (rows["score_drop"].low, rows["score_drop"].high) == pytest.approx(tuple(resampled), abs=0.04)
        assert rows["score_drop"].method == "bootstrap percentile"

    def test_clusters_widen_the_interval_and_few_are_said(self) -> None:
        free = perturbed(self.before, self.after, np.arange(72))[0]
        tied = perturbed(self.before, self.after, np.tile(np.arange(12), 6))[0]
        assert tied.n_clusters == 12
        assert tied.low is not None and tied.high is not None and free.low is not None and free.high is not None
        assert tied.high - tied.low > 1.8 * (free.high - free.low)
        assert tied.method == "bootstrap percentile (approximate: 12 clusters)"

    @pytest.mark.parametrize(("clusters", "low"), [(30, 0.0), (29, None)])
    def test_a_judge_that_never_reacts_is_known_from_thirty_clusters_on(self, clusters: int, low: float | None) -> None:
        drop, _fall, stay, _rise = perturbed(np.ones(clusters), np.ones(clusters), np.arange(clusters))
        assert (drop.value, drop.low, drop.high) == (0.0, low, low)
        assert stay.value == 1.0 and stay.low is not None and stay.low < 0.9

    def test_a_fall_with_what_must_only_not_raise_it_is_no_shift(self) -> None:
        drop = perturbed(self.before, self.after, np.arange(72))[0].with_(variant="instruction")
        falls, shifts = by_expectation([drop], {"instruction": "no_rise"})
        assert not falls
        assert [(row.statistic, row.value, row.low, row.high) for row in shifts] == [("perturbation", 0.0, 0.0, 0.0)]
        _falls, (shift,) = by_expectation([drop], {"instruction": "same"})
        assert shift.value == pytest.approx(-(drop.value or 0)) and shift.low == pytest.approx(-(drop.high or 0))


# --- a judge with known flaws ----------------------------------------------------------------------------------------
def dialogues() -> Iterator[ItemRow]:
    """Forty dialogues in each of three languages: of long or short words, and of one to four sentences a turn."""
    for language in LONG:
        for number in range(EACH):
            draw, pool = Random(f"{language}{number}"), (SHORT if number % 2 else LONG)[language].split()
            turns = [
                {"speaker": speaker, "text": " ".join(_sentence(draw, pool) for _ in range(1 + number // 2 % 4))}
                for speaker in ("customer", "agent")
            ]
            yield make.item_row(number, language, external_id=f"{language}{number:02}", turns=turns, title="")


def _sentence(draw: Random, pool: list[str]) -> str:
    return " ".join(draw.choice(pool) for _ in range(7)).capitalize() + "."


@pytest.fixture
def flawed(cast: Cast, provider: RunningProvider) -> Campaign:
    """Three people whose scores follow the words and not the length, and the judge with the flaws."""
    version = make.rubric(cast.kassa, make.criterion("fluency", range(7)), make.criterion("sense", range(7)))
    made = campaigns.open_campaign(
        project=cast.kassa, name="Round", dataset=make.dataset(cast.kassa, dialogues()), rubric_version=version
    )
    numbers = [int(name[2:]) for name in made.dataset.items.order_by("ordinal").values_list("external_id", flat=True)]
    panel = [(3.0 if number % 2 else 5.0) + (number // 8) % 2 for number in numbers]
    make.rated(made, {key: dict.fromkeys(("mari", "jaan", "noor"), panel) for key in ("fluency", "sense")})
    named = {"name": "Flawed", "provider": "simulated", "model": "sim-flawed"}
    judge = judges.declare(project=cast.kassa, variant={"explanation": False}, actor=cast.boris, **named)
    worked(runs.start_judge_run(judge=judge, dataset=made.dataset, rubric_version=version))
    return made


def shown(cast: Cast, campaign: Campaign) -> str:
    snapshots.snapshot(campaign=campaign, settings=audits.QUESTION)  # as a worker does
    page = cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/audits/")
    assert page.status_code == 200
    return html.unescape(page.content.decode())


def sections(campaign: Campaign) -> dict[str, audits.ShownAudit]:
    snapshot, is_stale = answer_pages.current_answer(campaign, audits.QUESTION)
    assert snapshot is not None and not is_stale
    return {section.part.name: section for section in audits.AuditsPage(campaign, snapshot, "").sections}


def flaws(section: audits.ShownAudit) -> set[tuple[str, str]]:
    return {(row.figure.language or "", row.what) for row in section.flaws}


CHANGES = ["shuffled_words_30", "whitespace", "criteria_reversed", "nonsense"]


@pytest.mark.django_db(transaction=True)
def test_the_audits_find_the_flaws_that_the_judge_has_and_no_others(
    cast: Cast, flawed: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    judge, client = Judge.objects.get(), cast.client("boris")
    first = shown(cast, flawed)
    assert "not run" in first and "Run this audit" in first
    assert {key for key, section in sections(flawed).items() if section.state == "not_run"} == {
        "self_preference", "rated_items", "repeats", "position", "prompt_language", "perturbation", "canaries"
    }  # fmt: skip
    button = sections(flawed)["perturbation"].url
    assert html.escape(button) in cast.client("boris").get(f"/p/kassa/numbers/{flawed.pk}/audits/").content.decode()
    assert "30 items are changed by it" not in (forecast := client.get(button).content.decode())
    assert "90 items are changed by it" in forecast
    chosen = {"dataset": flawed.dataset_id, "rubric_version": flawed.rubric_version_id, "changes": CHANGES}
    chosen |= {"per_language": 35, "seed": 4, "key": "k"}
    posted = client.post(f"/p/kassa/judges/{judge.pk}/audit/", chosen)
    run = JudgeRun.objects.perturbed().get()
    assert posted.headers["Location"] == f"/p/kassa/runs/{run.pk}/"
    assert worked(run).finished
    assert Item.objects.count() == 3 * EACH
    page = shown(cast, flawed)
    found = sections(flawed)
    assert {language for language, _what in flaws(found["scale_use"])} == {"et"}
    assert {("en", ""), ("fi", "")} <= flaws(found["length"])
    assert flaws(found["perturbation"]) == {("fi", "30% of the words in each other's places")}
    assert flaws(found["canaries"]) == {("fi", "Canary: all words in each other's places")}
    assert found["position"].state == "holds"
    assert found["prompt_language"].state == found["self_preference"].state == found["repeats"].state == "not_run"
    assert "Fluency, Finnish, 30% of the words in each other's places: it hardly reacts." in page
    _check_gate(cast, flawed)
    _check_links(cast, flawed, run)
    _check_other_ways(cast, flawed, capsys)


def _check_gate(cast: Cast, campaign: Campaign) -> None:
    """The gate asks for the audits that were run, and its page says what they found."""
    thresholds.declare_thresholds(
        project=cast.kassa, preset="skilled", changes={"audits": ["perturbation", "sensitivity"]}, actor=cast.aino
    )
    decisions.decide_now(campaign)
    told = (
        cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/decisions/?criterion=fluency").json()
    )
    states = {
        (row["language"], condition["name"]): condition["state"]
        for row in told["decisions"]
        for condition in row["conditions"]
    }
    assert {language: states[language, "sensitivity"] for language in LONG} == {
        "en": "holds",
        "et": "holds",
        "fi": "fails",
    }
    assert {states[language, "perturbation"] for language in LONG} == {"holds"}
    page = html.unescape(cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/judges/").content.decode())
    assert "With worse texts its scores fall by" in page


def _check_links(cast: Cast, campaign: Campaign, run: JudgeRun) -> None:
    """What was not run has a link to its form, filled in; the judge's page lists the audits; a stale one pays again."""
    client, about = cast.client("boris"), f"dataset={campaign.dataset_id}&rubric_version={campaign.rubric_version_id}"
    start = f"/p/kassa/judges/{run.judge_id}/runs/new/?{about}"
    decided = html.unescape(client.get(f"/p/kassa/numbers/{campaign.pk}/judges/").content.decode())
    assert f'href="{start}&repeats=3"' in decided
    repeats = client.get(f"{start}&repeats=3").content.decode()
    assert 'name="repeats" value="3"' in repeats and "Start:" in repeats
    page = html.unescape(client.get(f"/p/kassa/judges/{run.judge_id}/").content.decode())
    listed = page.partition('id="audits"')[2].partition("</section>")[0]
    rows = {row.partition("<")[0]: row for row in listed.split('<th scope="row">')[1:]}
    assert f'/runs/{run.pk}/"' in rows["Changed texts"] and f"/numbers/{campaign.pk}/audits/" in rows["Changed texts"]
    assert "not run" in rows["Repeats"] and f'href="{start}&repeats=3"' in rows["Repeats"]
    again = audits.start_address(campaign, run.judge, "again")
    assert again == f"{start}&repeats=1&again=yes"
    assert 'name="again" value="yes" checked' in client.get(again).content.decode()


def _check_other_ways(cast: Cast, campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    """Explore, the API and the command give the figures of the page; by hand from the verdicts."""
    run = JudgeRun.objects.perturbed().get()
    scores: dict[str, dict[Any, float]] = {"": {}, "shuffled_words_30": {}}
    about = {"run": run, "criterion__key": "fluency", "item__language": "en", "change__in": scores}
    for change, item, score in Verdict.objects.filter(**about).values_list("change", "item", "score"):
        scores[change][item] = score
    drop = np.mean([scores[""][item] - scores["shuffled_words_30"][item] for item in scores[""]])
    capsys.readouterr()
    call_command("numbers", "--project", "kassa", "--statistic", "perturbation.score_drop", "--format", "json")
    rows = json.loads(capsys.readouterr().out)["estimates"]
    (row,) = [
        each for each in rows
        if (each["criterion"], each["language"], each["variant"]) == ("fluency", "en", "shuffled_words_30")
    ]  # fmt: skip
    assert row["value"] == pytest.approx(drop) and (row["n_items"], row["n_clusters"]) == (35, 35)
    told = cast.client("boris").get(
        f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{audits.QUESTION.query}"
    )
    assert {each["asked"] for each in told.json()["answer"]["estimates"]} >= {"perturbation.score_drop"}


@pytest.mark.django_db(transaction=True)
def test_the_command_and_the_api_start_audits(cast: Cast, provider: RunningProvider) -> None:
    make.campaign(cast.kassa, items=3, name="Round")
    judge, out = declared(cast), StringIO()
    named = {"project": "kassa", "judge": judge.name, "dataset": "Round", "rubric": "quality"}
    call_command("perturb", **named, changes=["typos_20", "whitespace"], here=True, per_language=2, stdout=out)
    assert "2 items, 6 calls, 0 answered already" in out.getvalue()
    assert "typos_20: changes 2 of 2 items" in out.getvalue() and "6 of 6 calls" in out.getvalue()
    run, client = JudgeRun.objects.get(), cast.client("boris")
    body = {
        "judge": judge.pk,
        "dataset": run.dataset_id,
        "rubric_version": run.rubric_version_id,
        "changes": ["nonsense"],
    }
    told = client.post("/api/v1/projects/kassa/audits/forecast/", body, content_type="application/json").json()
    assert (told["calls"], told["answered"], told["perturbed"]) == (6, 2, {"nonsense": 3})
    made = client.post("/api/v1/projects/kassa/audits/", {**body, "seed": 7}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["perturbation"] == {"changes": ["nonsense"], "per_language": 30, "seed": 7}
    wrong = client.post("/api/v1/projects/kassa/audits/", {**body, "changes": ["x"]}, content_type="application/json")
    assert wrong.status_code == 422 and "There is no change" in wrong.json()["detail"]
