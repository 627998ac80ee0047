"""Which places survive without faulty dialogues and by each simulator: planted, and read from page and API."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from analytics.answers import revisions, snapshots
from analytics.questions.asked import question_of
from annotation import campaigns
from annotation.checkup import checkups
from annotation.models import Annotation, Campaign, Duty, Panel, RubricVersion, Skip
from tests import make
from tests.analytics.scene import answered
from tests.cast import Cast

pytestmark = pytest.mark.django_db
GENERATORS = ("atlas", "Bábel “2”", "أطلس")  # the second in NFD
SIMULATORS = ("Mehmet, user", "jüri")
SCENARIOS = 30
BASE = {"atlas": 3.0, GENERATORS[1]: 2.0, GENERATORS[2]: 1.0}
SURVIVAL = "survival.place&statistic=survival.survival&statistic=survival.survivals"


def planted_score(language: str, generator: str, simulator: str, number: int) -> float:
    """In Estonian every simulator sees the same order; in Arabic the second one turns the first and the third round."""
    score = BASE[generator]
    if language == "ar" and simulator == SIMULATORS[1]:
        score = 4.0 - score
    return min(4.0, max(0.0, score + random.Random(f"{language}{generator}{simulator}{number}").choice((-1, 0, 0, 0))))


def made_campaign(
    cast: Cast,
    *,
    faults: bool = True,
    never_met: tuple[str, str] = ("", ""),
    all_aside: Sequence[str] = (),
) -> tuple[Campaign, RubricVersion]:
    """Thirty scenarios, two languages, three generators, two simulators; the first five by atlas were set aside.

    A generator and a simulator may never have met; every dialogue of the generators ``all_aside`` was set aside.
    """
    rows, scores = [], []
    cells = [(s, t, g, u) for s in range(SCENARIOS) for t in ("ar", "et") for g in GENERATORS for u in SIMULATORS]
    cells = [cell for cell in cells if cell[2:] != never_met]
    for number, (scenario, tag, generator, simulator) in enumerate(cells):
        attributes: dict[str, Any] = {"simulator": simulator}
        if (faults and scenario < 5 and generator == "atlas") or generator in all_aside:
            attributes["set_aside"] = "role_confusion"
        rows.append(
            make.item_row(
                number,
                tag,
                generator,
                scenario=f"s{scenario}",
                attributes=attributes,
                turns=[
                    {"speaker": "user", "text": f"Tere {number}, {simulator} kirjutab siin."},
                    {"speaker": "assistant", "text": f"Vastus number {number} {generator} {tag}."},
                ],
            )
        )
        scores.append(planted_score(tag, generator, simulator, number))
    version = make.rubric(
        cast.kassa,
        make.criterion("quality", (0, 1, 2, 3, 4)),
        make.criterion("broken", (0, 1), group="critical", direction="lower_is_better"),
    )
    made = campaigns.open_campaign(
        project=cast.kassa, name="Bots", dataset=make.dataset(cast.kassa, rows), rubric_version=version
    )
    broken = [float(faults and number in (200, 201)) for number in range(len(rows))]
    make.rated(made, {"quality": {"mari": scores, "jaan": scores}, "broken": {"mari": broken}})
    return made, version


def estimates(cast: Cast, campaign: Campaign, query: str) -> list[dict[str, Any]]:
    snapshots.snapshot(campaign=campaign, settings=question_of(query))  # as a worker does
    told = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{query}")
    assert told.status_code == 200, told.content
    rows: list[dict[str, Any]] = told.json()["answer"]["estimates"]
    return rows


QUERY = f"columns=language&where=criterion%3Dquality&statistic={SURVIVAL}"


@pytest.mark.both_databases
def test_places_survive_in_one_language_and_change_with_the_simulator_in_the_other(cast: Cast) -> None:
    campaign, _version = made_campaign(cast)
    rows = estimates(cast, campaign, QUERY)
    outcomes = {
        (row["language"], row["generator"]): row["value"] for row in rows if row["asked"] == "survival.survival"
    }
    assert {key: value for key, value in outcomes.items() if key[0] == "et"} == dict.fromkeys(
        (("et", name) for name in GENERATORS), 1.0
    )
    assert (outcomes["ar", "atlas"], outcomes["ar", GENERATORS[2]]) == (0.0, 0.0)
    counted = {row["variant"]: row["value"] for row in rows if row["asked"] == "survival.survivals"}
    assert sum(counted.values()) == 6 and counted["survives"] >= 3 and counted["changes"] >= 2
    places = {
        (row["language"], row["generator"], row["variant"]): row for row in rows if row["asked"] == "survival.place"
    }
    of_all, sound = (places["et", "atlas", variant] for variant in ("all", "sound"))
    assert (of_all["low"], of_all["high"], of_all["n_items"]) == (1, 1, 60)
    assert (sound["low"], sound["high"], sound["n_items"]) == (1, 1, 50)
    first, second = (places["ar", "atlas", f"simulator: {name}"] for name in SIMULATORS)
    assert (first["high"], second["low"], first["n_items"]) == (1, 3, 30)

    page = answered(cast.client("boris"), campaign, f"/p/kassa/numbers/{campaign.pk}/results/survival/")
    text = page.content.decode()
    assert "survives" in text and "changes" in text
    assert "simulator Mehmet, user: 1; 3 generators, 30 items" in text
    assert "without faulty dialogues: 1; 3 generators, 50 items" in text
    assert "22 rated dialogues are faulty." in text  # twenty set aside, two marked by the panel


def test_a_skip_and_a_check_up_make_dialogues_faulty_and_the_figures_stale(cast: Cast) -> None:
    campaign, _version = made_campaign(cast, faults=False)
    question = question_of(QUERY)
    before = revisions.snapshot_revision(campaign, question)
    rows = estimates(cast, campaign, QUERY)
    assert "sound" not in {row["variant"] for row in rows}
    item = campaign.dataset.items.order_by("ordinal")[7]
    panel = Panel.objects.create(project=cast.kassa, name="Eesti", language="et")
    duty = Duty.objects.create(campaign=campaign, panel=panel, name="d", overlap=1, seed=1)
    person = Annotation.objects.filter(campaign=campaign).first()
    assert person is not None
    Skip.objects.create(duty=duty, item=item, annotator=person.annotator, reason=Skip.Reason.DAMAGED)
    skipped = revisions.snapshot_revision(campaign, question)
    assert skipped != before
    rows = estimates(cast, campaign, QUERY)
    assert sum(row["n_items"] for row in rows if row["variant"] == "sound") == len(GENERATORS) * 120 - 1
    checkups.check_now(dataset=campaign.dataset)  # the Arabic items are in Estonian
    assert revisions.snapshot_revision(campaign, question) != skipped
    rows = estimates(cast, campaign, QUERY)
    sound = {row["language"] for row in rows if row["variant"] == "sound"}
    assert sound <= {"et"}


def test_places_among_fewer_generators_are_compared_on_those_and_shown_with_their_number(cast: Cast) -> None:
    campaign, _version = made_campaign(cast, faults=False, never_met=("atlas", SIMULATORS[1]))
    rows = estimates(cast, campaign, QUERY)
    outcomes = {row["generator"]: row["value"] for row in rows if row["asked"] == "survival.survival"
                and row["language"] == "et"}  # fmt: skip
    assert outcomes == {"atlas": None, GENERATORS[1]: 1.0, GENERATORS[2]: 1.0}
    text = answered(
        cast.client("boris"), campaign, f"/p/kassa/numbers/{campaign.pk}/results/survival/"
    ).content.decode()
    assert "simulator Mehmet, user: 2; 3 generators, 30 items" in text
    assert "simulator jüri: 1; 2 generators, 30 items" in text and "of 3 generators; 60 items" in text
    assert "Two places are compared among the generators that both have." in text
    assert "No rated dialogue has a known fault." in text


def test_faulty_dialogues_are_counted_where_the_sound_ones_rank_nothing(cast: Cast) -> None:
    campaign, _version = made_campaign(cast, all_aside=GENERATORS[::2])
    rows = estimates(cast, campaign, f"{QUERY}&statistic=survival.faulty_dialogues")
    assert "sound" not in {row["variant"] for row in rows}
    counted = [(row["value"], row["n_items"]) for row in rows if row["asked"] == "survival.faulty_dialogues"]
    assert counted == [(242, 360)]  # those of two generators, and two of the third that the panel marked
    page = answered(cast.client("boris"), campaign, f"/p/kassa/numbers/{campaign.pk}/results/survival/")
    text = page.content.decode()
    assert "242 rated dialogues are faulty." in text and "No rated dialogue has a known fault." not in text


def test_without_faults_and_simulators_the_section_says_what_it_needs(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=[make.item_row(n, generator=("a", "b")[n % 2]) for n in range(8)])
    make.rated(campaign, {"fluency": {"mari": [0, 1, 2, 3, 0, 1, 2, 3]}})
    page = answered(cast.client("boris"), campaign, f"/p/kassa/numbers/{campaign.pk}/results/survival/")
    assert "no dialogue here has a known fault" in page.content.decode()
