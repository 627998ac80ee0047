"""The rules of reference that read adjudications: page, API, command and a computation by hand in pandas agree."""

from __future__ import annotations

import html
import io
import json
from urllib.parse import urlencode
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from django.core.management import call_command

from analytics.answers import snapshots, stored_cells
from analytics.answers.measured import measured_answer
from analytics.exporting import bundles
from analytics.questions.asked import question_of
from analytics.questions.plan import planned
from analytics.questions.reference_rules import ADJUDICATED
from analytics.ratings.additions import question_table
from analytics.stats.core.validation import ratings_table
from analytics.stats.declared.register import STATISTICS
from analytics.stats.judge.reference import reference_labels
from annotation import adjudication, campaigns
from annotation.adjudication import CriterionDecision
from annotation.models import Campaign, Item, Rating
from tests import make
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
N = 12
RNG = np.random.default_rng(11)
RATERS = {name: [float(score) for score in RNG.integers(0, 4, N)] for name in ("mari", "jaan", "liis")}
JUDGE = [float(score) for score in RNG.integers(0, 4, N)]
DECIDED: dict[int, float | None] = {0: 3.0, 1: 0.0, 2: 2.0, 4: 1.0, 5: None, 7: 3.0, 8: 3.0}
"""By place of the item what is adjudicated; None is N/A."""


def make_scene(cast: Cast) -> Campaign:
    rubric = make.rubric(cast.kassa, make.criterion("fluency", not_applicable=True))
    made = campaigns.open_campaign(
        project=cast.kassa, name="Round 1", dataset=make.dataset(cast.kassa, N), rubric_version=rubric
    )
    make.rated(made, {"fluency": RATERS})
    scene.with_verdicts(made, {"fluency": JUDGE})
    for place, score in DECIDED.items():
        decide(cast, made, place, 1.0 if score is None else 3.0 - score)  # replaced by the one that counts
        decide(cast, made, place, score)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def decide(cast: Cast, campaign: Campaign, place: int, score: float | None) -> None:
    item = Item.objects.get(dataset=campaign.dataset, ordinal=place)
    criterion = campaign.rubric_version.criteria.get()
    seen = adjudication.seen_ratings(campaign, [item.pk])[item.pk, criterion.pk]
    decision = CriterionDecision(
        criterion=criterion,
        score=score,
        cause="slip",
        rationale="Read again.",
        seen=adjudication.digest_of(one.stored for one in seen),
    )
    adjudication.adjudicate(
        campaign=campaign, item=item, decisions=[decision], order="range", key=uuid4(), actor=cast.aino
    )


def by_hand(rule: str) -> tuple[float, float, int]:
    """MAE and bias of the judge against the reference, and how many items have one; nothing but pandas."""
    given = pd.DataFrame(RATERS)
    modes = given.mode(axis=1)
    mode = modes[0].where(modes.notna().sum(axis=1) == 1)
    decided = pd.Series({place: np.nan if score is None else score for place, score in DECIDED.items()})
    reference = decided.reindex(range(N))
    if rule == "adjudicated_first":
        is_decided = pd.Series(range(N)).isin(list(DECIDED))
        reference = reference.where(is_decided, mode)
    error = (pd.Series(JUDGE) - reference).dropna()
    return float(error.abs().mean()), float(error.mean()), len(error)


def asked(rule: str) -> str:
    return urlencode([("reference", rule), ("statistic", "mae"), ("statistic", "bias"), ("bootstrap", 0)])


def figures(estimates: list[dict[str, object]]) -> dict[str, tuple[float, int]]:
    return {str(row["statistic"]): (row["value"], row["n_items"]) for row in estimates}  # type: ignore[misc]


@pytest.mark.parametrize("rule", ADJUDICATED)
def test_page_api_and_command_give_what_pandas_gives(
    cast: Cast, campaign: Campaign, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mae, bias, n = by_hand(rule)
    wanted = {"mae": (pytest.approx(mae), n), "bias": (pytest.approx(bias), n)}
    client = cast.client("boris")
    page = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{asked(rule)}")
    text = " ".join(html.unescape(page.content.decode()).split())
    assert "Adjudicated: 7 of 12 pairs of item and criterion." in text
    assert "1 were found not applicable" in text
    assert ("The other 5 are left out." in text) is (rule == "adjudicated")
    document = client.get(f"/p/kassa/numbers/{campaign.pk}/explore/cells.json?{asked(rule)}").json()
    assert figures(document["estimates"]) == wanted
    assert document["adjudicated"]["adjudicated"] == 7
    api = client.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{asked(rule)}").json()["answer"]
    assert figures(api["estimates"]) == wanted and api["adjudicated"]["pairs"] == N
    capsys.readouterr()
    call_command(
        "numbers", "--project=kassa", f"--reference={rule}", "--statistic=mae", "--statistic=bias",
        "--bootstrap=0", "--format=json",
    )  # fmt: skip
    assert figures(json.loads(capsys.readouterr().out)["estimates"]) == wanted


def test_the_table_of_the_question_gives_the_same_labels_to_the_command_line(campaign: Campaign) -> None:
    table = question_table(campaign, planned(campaign, question_of("reference=adjudicated")))
    frame = pd.DataFrame([dict(zip(table.names, row, strict=True)) for row in table.rows])
    read = ratings_table(frame.assign(scale=frame["scale"].map(json.dumps)))
    labels = reference_labels(read, rule="adjudicated")
    scored = {f"d{place + 1}": score for place, score in DECIDED.items() if score is not None}
    assert dict(zip(labels.frame["item"], labels.frame["score"], strict=True)) == scored
    assert labels.excluded == {"not adjudicated": 5, "adjudicated as not applicable": 1}


def test_a_decision_makes_only_these_answers_stale_and_says_when_a_rating_changed(
    cast: Cast, campaign: Campaign
) -> None:
    client, here = cast.client("boris"), f"/p/kassa/numbers/{campaign.pk}/explore/?{asked('adjudicated')}"
    usual = f"/p/kassa/numbers/{campaign.pk}/explore/?statistic=mae&bootstrap=0"
    before = [scene.answered(client, campaign, address) for address in (here, usual)]
    assert all(answer.status_code == 200 for answer in before)
    asked_here, asked_usual = question_of(asked("adjudicated")), question_of("statistic=mae&bootstrap=0")
    decide(cast, campaign, 3, 2.0)
    assert snapshots.current_snapshot(campaign=campaign, settings=asked_here)[1]
    assert not snapshots.current_snapshot(campaign=campaign, settings=asked_usual)[1]
    one = Rating.objects.filter(annotation__item__external_id="d1").first()
    Rating.objects.filter(pk=one.pk).update(score=2.0 if one.score != 2.0 else 1.0)
    text = html.unescape(scene.answered(client, campaign, here).content.decode())
    assert "1 were decided before a rating changed; they count." in " ".join(text.split())


def test_adjudications_enter_no_figure_of_the_panel(campaign: Campaign) -> None:
    """Every statistic among raters is the same whether or not the table holds adjudications."""
    among = [name for name, statistic in STATISTICS.items() if statistic.report.group in ("agreement", "panel")]
    names = [*among, "means.classical_mean"]
    found = []
    for rule in ("mode", "adjudicated"):
        query = urlencode([("reference", rule), *(("statistic", name) for name in names), ("bootstrap", 0)])
        question = question_of(query)
        plan = planned(campaign, question)
        table = question_table(campaign, plan).settled()
        store = stored_cells.CellStore(None, "", "")
        content = measured_answer(table, plan, store=store, progress=lambda done, total: None)
        found.append(content["estimates"])
    assert found[0] == found[1] and len(found[0]) > 20


def test_the_confusion_of_a_judge_is_with_the_adjudications(campaign: Campaign) -> None:
    """Row shares over the items that have a decision with a score, counted by hand."""
    plan = planned(campaign, question_of("reference=adjudicated&statistic=beside.confusion&bootstrap=0"))
    table = question_table(campaign, plan).settled()
    store = stored_cells.CellStore(None, "", "")
    content = measured_answer(table, plan, store=store, progress=lambda done, total: None)
    pairs = [(score, JUDGE[place]) for place, score in DECIDED.items() if score is not None]
    shares = pd.Series(pairs).value_counts()
    of_rows = pd.Series([row for row, _column in pairs]).value_counts()
    wanted = {f"{row:g} ~ {column:g}": count / of_rows[row] for (row, column), count in shares.items()}
    found = {row["variant"]: row["value"] for row in content["estimates"] if row["value"]}
    assert found == pytest.approx(wanted)


def test_a_bundle_keeps_decisions_under_other_pseudonyms(cast: Cast, campaign: Campaign) -> None:
    make.rated(campaign, {"fluency": {"late": [2.0, *[None] * (N - 1)]}})  # the decision on d1 is stale
    content = b"".join(bundles.bundle_pieces(cast.kassa, renumbered=7))
    bundles.load_bundle(project=cast.teine, name="study.zip", content=io.BytesIO(content))
    copy = Campaign.objects.get(project=cast.teine)
    newest = adjudication.current(copy)
    scores = {Item.objects.get(pk=item).ordinal: row.score for (item, _criterion), row in newest.items()}
    assert scores == DECIDED
    assert [Item.objects.get(pk=item).external_id for item, _criterion in adjudication.stale(copy, newest)] == ["d1"]
    assert not {each["rater"] for row in newest.values() for each in row.seen} & {*RATERS, "late"}


def test_the_export_of_decisions_counts_the_newest(cast: Cast, campaign: Campaign) -> None:
    query = urlencode({"what": "adjudications", "format": "csv", "campaign": campaign.pk})
    answer = cast.client("aino").get(f"/p/kassa/export/file/?{query}")
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    frame = pd.read_csv(io.BytesIO(text))
    counting = frame[frame["counts"]].set_index("item")["score"]
    assert len(frame) == 2 * len(DECIDED)
    scored = {f"d{place + 1}": score for place, score in DECIDED.items() if score is not None}
    assert counting.dropna().to_dict() == scored
