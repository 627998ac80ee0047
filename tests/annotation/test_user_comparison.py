"""Simulated users and people in one blind campaign: by page, API and command; nothing tells annotators the origin."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import panels
from annotation.models import Assignment, Campaign, Dataset, Duty, Item, Panel, RubricVersion
from annotation.readers import ItemRow
from tests import make
from tests.analytics.scene import answered
from tests.cast import Cast

pytestmark = pytest.mark.django_db
SIMULATOR_NAMES = ("Simulaator “A”", "محاكي")


def dialogue(number: int, language: str, users: int, *, user: str, bot: str, **parts: Any) -> ItemRow:
    turns = []
    for turn in range(users):
        turns.append({"speaker": user, "name": f"Kasutaja {user}", "text": f"{language} küsimus {number}.{turn}"})
        turns.append({"speaker": bot, "text": f"{language} vastus {number}.{turn}"})
    return make.item_row(number, language, turns=turns, title=f"Pealkiri {user}", **parts)


def simulated_rows() -> list[ItemRow]:
    """Ten scenarios in each of two languages by two chatbots and two simulators; chatbots share the first turn."""
    rows = []
    for language in ("ar", "et"):
        for number in range(10):
            for simulator in SIMULATOR_NAMES:
                for bot in ("atlas", "borea"):
                    row = dialogue(
                        number, language, 3, user="user", bot="assistant", generator=bot,
                        scenario=f"family-{number:04}", external_id=f"family-{number}/{language}/{bot}/{simulator}",
                        attributes={"simulator": simulator},
                    )  # fmt: skip
                    row.turns[0]["text"] = f"{language} esimene {number} {SIMULATOR_NAMES.index(simulator)}"
                    for turn in row.turns[1:]:
                        turn["text"] += f" {len(rows)}"
                    rows.append(row)
    rows[0].attributes["set_aside"] = "role_confusion"
    return rows


def human_rows() -> list[ItemRow]:
    return [
        dialogue(
            100 + number, language, 1 + number % 4, user="Klient “Õhtu”", bot="klienditeenindaja", generator="",
            external_id=f"päris {language} {number}", fields={"context": "tõeline vestlus"},
        )
        for language in ("et", "ar", "fi")
        for number in range(12)
    ]  # fmt: skip


@pytest.fixture
def sources(cast: Cast) -> tuple[Dataset, Dataset]:
    return make.dataset(cast.kassa, simulated_rows(), name="Simuleeritud"), make.dataset(
        cast.kassa, human_rows(), name="Päris “kliendid”"
    )


@pytest.fixture
def panel(cast: Cast) -> Panel:
    made = panels.create(project=cast.kassa, name="Eesti “paneel”", language="et")
    panels.seat(panel=made, user=cast.maarika)
    return made


def asked(sources: tuple[Dataset, Dataset], **changes: Any) -> dict[str, Any]:
    given = {"simulated": sources[0].pk, "human": sources[1].pk, "name": "Kes kirjutab?", "n": 8, "rated": "turn"}
    return {**given, "human_user": "Klient “Õhtu”", "seed": 7, **changes}


@pytest.mark.both_databases
def test_from_the_form_to_the_desk_and_the_figures(cast: Cast, sources: tuple[Dataset, Dataset], panel: Panel) -> None:
    boris = cast.client("boris")
    at = "/p/kassa/campaigns/compare-users/"
    assert f"{at}?simulated={sources[0].pk}" in boris.get(f"/p/kassa/datasets/{sources[0].pk}/").content.decode()
    assert at not in boris.get(f"/p/kassa/datasets/{sources[1].pk}/").content.decode()
    assert at in boris.get("/p/kassa/campaigns/new/").content.decode()
    assert f'value="{sources[0].pk}" selected' in boris.get(f"{at}?simulated={sources[0].pk}").content.decode()
    unnamed = boris.post(at, asked(sources, human_user="", preview="1")).content.decode()
    assert "is the user? Available: " in unnamed and "klienditeenindaja" in unnamed
    preview = boris.post(at, asked(sources, preview="1")).content.decode()
    assert "32 items would be rated; nothing is stored yet" in preview
    assert not Campaign.objects.exists() and Dataset.objects.count() == 2

    answer = boris.post(at, asked(sources))
    assert answer.status_code == 302, answer.content.decode()
    campaign = Campaign.objects.get()
    assert answer["Location"] == f"/p/kassa/campaigns/{campaign.pk}/duties/new/"
    assert (campaign.name, campaign.dataset.name, campaign.dataset.derived_from) == (
        "Kes kirjutab?", "Kes kirjutab?", sources[0],
    )  # fmt: skip
    assert str(campaign.rubric_version) == "user-or-program v1"
    items = list(Item.objects.of(campaign.dataset))
    counted = Counter((item.language, item.attributes["origin"]) for item in items)
    assert counted == {(tag, origin): 8 for tag in ("ar", "et") for origin in ("simulated", "human")}
    _check_pairs(items)

    # One panel gets its items, and rates what it sees; nothing on its pages tells the origin.
    duties = boris.post(
        answer["Location"],
        {
            f"panel-{panel.pk}-takes_part": "on",
            f"panel-{panel.pk}-overlap": 1,
            f"panel-{panel.pk}-criteria": [each.pk for each in campaign.rubric_version.criteria.all()],
        },
    )
    assert duties.status_code == 302, duties.content.decode()
    duty = Duty.objects.get(campaign=campaign)
    maarika = cast.client("maarika")
    by_item = {item.pk: item for item in items}
    for _number in range(16):
        _rate_next(maarika, duty, by_item)
    assert Assignment.objects.filter(duty=duty, state=Assignment.State.SUBMITTED).count() == 16

    explore = boris.get(f"/p/kassa/numbers/{campaign.pk}/explore/").content.decode()
    assert "Users judged to be people, by origin" in explore
    query = "rows=origin&where=criterion%3Dperson&statistic=means.classical_mean"
    assert query.replace("&", "&amp;") in explore
    shown = answered(boris, campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{query}")
    rows = {row["origin"]: row for row in shown.context["page"].content["estimates"]}
    assert (rows["simulated"]["value"], rows["simulated"]["n_items"]) == (0.25, 8)
    assert (rows["human"]["value"], rows["human"]["n_items"]) == (1.0, 8)
    for row in rows.values():
        assert row["low"] <= row["value"] <= row["high"] and 0 <= row["low"] < row["high"] <= 1


def _check_pairs(items: list[Item]) -> None:
    """Both origins end with user turns of the same numbers; each simulator has half; ids are neutral."""
    for tag in ("ar", "et"):
        own = [item for item in items if item.language == tag]
        turns = {
            origin: sorted(item.attributes["user_turn"] for item in own if item.attributes["origin"] == origin)
            for origin in ("simulated", "human")
        }
        assert turns["simulated"] == turns["human"]
        assert Counter(item.generator for item in own) == {"human": 8, SIMULATOR_NAMES[0]: 4, SIMULATOR_NAMES[1]: 4}
    assert len({str(item.turns) for item in items}) == len(items)
    set_aside = f"family-0/ar/atlas/{SIMULATOR_NAMES[0]}"
    assert set_aside not in {item.attributes["source_item"] for item in items}
    for item in items:
        assert {turn["speaker"] for turn in item.turns} <= {"user", "assistant"}
        assert item.turns[-1]["speaker"] == "user" and all(set(turn) == {"speaker", "text"} for turn in item.turns)
        assert (item.title, item.fields) == ("", {}) and item.external_id[0] == "u" and item.external_id[1:].isdecimal()
    order = [item.attributes["origin"] for item in sorted(items, key=lambda each: each.external_id)]
    assert order != sorted(order) and order != sorted(order, reverse=True)


def _rate_next(client: Any, duty: Duty, by_item: dict[int, Item]) -> None:
    """Take the next item, see that nothing tells its origin, and rate it: every person and two simulated users pass."""
    address = client.post(f"/desk/{duty.pk}/")["Location"]
    page = client.get(address).content.decode()
    item = by_item[Assignment.objects.get(duty=duty, state=Assignment.State.LEASED).item_id]
    assert item.turns[-1]["text"].split(" ")[0] in page
    secrets = ("Simulaator", "محاكي", "family-", "päris", "Päris", "Klient “Õhtu”", "klienditeenindaja", "tõeline")
    for word in (*secrets, "Pealkiri", "source_item", item.external_id, "atlas”"):
        assert word not in page.replace(item.turns[-1]["text"], ""), word
    simulated = [
        each.pk for each in by_item.values() if (each.language, each.attributes["origin"]) == ("et", "simulated")
    ]
    person = item.attributes["origin"] == "human" or item.pk in sorted(simulated)[:2]
    scores = {"person": int(person), "sounds-like-a-person": 1, "goal-of-user": 2, "native-language": 2}
    done = client.post(f"{address}submit/", {"seconds": "20", **{f"score-{key}": str(n) for key, n in scores.items()}})
    assert done.status_code == 307, done.content.decode()


def test_by_api_with_panels_and_the_same_seed(cast: Cast, sources: tuple[Dataset, Dataset], panel: Panel) -> None:
    boris = cast.client("boris")
    at = "/api/v1/projects/kassa/user-comparisons/"
    json = {"content_type": "application/json"}
    plain = {key: value for key, value in asked(sources).items() if key != "name"}
    preview = boris.post(f"{at}preview/", plain, **json).json()
    assert (preview["items"], preview["seed"], preview["simulated_user"]) == (32, 7, "user")
    assert preview["languages"] == [
        {"language": "ar", "simulated": 39, "human": 12, "pairs": 8},  # one was set aside when it was made
        {"language": "et", "simulated": 40, "human": 12, "pairs": 8},
        {"language": "fi", "simulated": 0, "human": 12, "pairs": 0},
    ]
    made = boris.post(at, asked(sources, panels=[panel.pk], overlap=1), **json)
    assert made.status_code == 201, made.content
    campaign = Campaign.objects.get(pk=made.json()["id"])
    duty = Duty.objects.get(campaign=campaign)
    assert (duty.overlap, duty.criteria.count(), Assignment.objects.filter(duty=duty).count()) == (1, 4, 16)
    again = boris.post(at, asked(sources, name="Teine"), **json)
    assert again.status_code == 201, again.content
    mixed = Dataset.objects.get(name="Teine")
    digests = list(Item.objects.of(mixed).values_list("digest", flat=True))
    assert digests == list(Item.objects.of(campaign.dataset).values_list("digest", flat=True))
    assert RubricVersion.objects.count() == 1
    other = boris.post(at, asked(sources, name="Kolmas", seed=8), **json)
    third = Dataset.objects.get(pk=other.json()["dataset"])
    assert list(Item.objects.of(third).values_list("digest", flat=True)) != digests

    for wrong, code in (
        (asked(sources), "name_taken"),
        (asked(sources, human=sources[0].pk, name="x"), "invalid"),
        (asked(sources, human_user="keegi", name="x"), "no_items"),
        (asked(sources, name="   "), "invalid"),
    ):
        refused = boris.post(at, wrong, **json)
        assert refused.status_code in (400, 409, 422) and refused.json()["code"] == code, refused.content
    assert Campaign.objects.count() == 3
    assert boris.post(at, asked(sources, human=10**9), **json).status_code == 404
    assert cast.client("maarika").post(at, asked(sources), **json).status_code in (403, 404)
    assert cast.client("zoltan").post(at, asked(sources), **json).status_code == 404


@pytest.mark.both_databases
def test_scenarios_with_long_names_stay_apart(cast: Cast, sources: tuple[Dataset, Dataset]) -> None:
    beginning = f"مشهد “{'õ' * 180}” "
    rows = [replace(row, scenario=beginning + str(row.scenario)[-4:]) for row in simulated_rows()]
    assert {len(str(row.scenario)) for row in rows} == {192}
    long = make.dataset(cast.kassa, rows, name="Pikad nimed")
    at = "/api/v1/projects/kassa/user-comparisons/"
    started = cast.client("boris").post(at, asked((long, sources[1])), content_type="application/json")
    assert started.status_code == 201, started.content
    mixed = Item.objects.of(Campaign.objects.get(pk=started.json()["id"]).dataset)
    scenario_of = {item.external_id: item.scenario for item in Item.objects.of(long)}
    pairs = {
        (scenario_of[item.attributes["source_item"]], item.scenario)
        for item in mixed
        if item.attributes["origin"] == "simulated"
    }
    assert len(pairs) == len({before for before, _ in pairs}) == len({after for _, after in pairs}) > 1
    assert all(after.startswith("simulated/مشهد") and len(after) <= 200 for _, after in pairs)


def test_texts_that_name_their_simulator_are_refused_unless_the_lead_allows_it(
    cast: Cast, sources: tuple[Dataset, Dataset], panel: Panel
) -> None:
    named = simulated_rows()
    for row in named:
        row.turns[0]["text"] += f" {row.attributes['simulator']}"
        row.turns[2]["text"] += f" {row.attributes['simulator']}"
        row.turns[4]["text"] += f" {row.attributes['simulator']}"
    shown = make.dataset(cast.kassa, named, name="Nimega")
    boris, at = cast.client("boris"), "/api/v1/projects/kassa/user-comparisons/"
    given = asked((shown, sources[1]), panels=[panel.pk], overlap=1)
    refused = boris.post(at, given, content_type="application/json")
    assert refused.status_code == 409 and refused.json()["code"] == "generator_names"
    assert not Campaign.objects.exists() and not Dataset.objects.filter(name="Kes kirjutab?").exists()
    assert boris.post(at, {**given, "keep_names": True}, content_type="application/json").status_code == 201


def test_whole_dialogues_by_command(cast: Cast, sources: tuple[Dataset, Dataset], panel: Panel) -> None:
    said = StringIO()
    common = ["compare_users", "kassa", "--simulated", "Simuleeritud", "--human", "Päris “kliendid”"]
    common += ["--human-user", "Klient “Õhtu”", "--rated", "dialogue", "--seed", "3", "--n", "5"]
    call_command(*common, "--preview", stdout=said)
    assert "et: 40 with simulated users, 12 with people, 5 of each chosen" in said.getvalue()
    assert "20 items, seed 3" in said.getvalue() and not Campaign.objects.exists()
    with pytest.raises(CommandError, match="Name the campaign"):
        call_command(*common, stdout=said)
    with pytest.raises(CommandError, match="There is no panel"):
        call_command(*common, "--name", "Terved", "--panel", "Soome", stdout=said)
    call_command(*common, "--name", "Terved", "--panel", "Eesti “paneel”", "--overlap", "1", stdout=said)
    campaign = Campaign.objects.get()
    assert f"Campaign {campaign.pk} “Terved”" in said.getvalue()
    items = list(Item.objects.of(campaign.dataset))
    assert len(items) == 20 and not any("user_turn" in item.attributes for item in items)
    assert {len(item.turns) for item in items if item.attributes["origin"] == "simulated"} == {6}
    assert Assignment.objects.filter(duty__campaign=campaign).count() == 10
