"""The training set: the panel's labels as distributions, and splits that share no scenario."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

import pytest

from annotation import selections
from annotation.models import Campaign, Item, ItemSelection, Rating
from judging.models import Alignment, Judge
from judging.versions import alignment
from tests import make
from tests.analytics import scene
from tests.analytics.test_exports import downloaded, lines
from tests.cast import Cast


def make_scene(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    return campaign


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def sides(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["split"], set()).add(row["scenario"])
    return found


def test_a_row_holds_text_rubric_label_and_its_distribution(cast: Cast, rated: Campaign) -> None:
    rows = lines(cast.client("boris"), "training-set")
    assert len(rows) == 12 + 6
    by_place = {(row["item"], row["criterion"]): row for row in rows}
    first, divided = by_place["et-0", "fluency"], by_place["et-4", "fluency"]
    assert (first["score"], first["score_rule"], first["n_raters"]) == (0, "mode", 2)
    assert first["soft_label"] == {"0": 1.0, "1": 0, "2": 0, "3": 0}
    # mari gave 3, jaan 2: two modes, and so no score
    assert (divided["score"], divided["soft_label"]) == (None, {"0": 0, "1": 0, "2": 0.5, "3": 0.5})
    assert "customer: Tere! Minu pakk" in first["answer"]
    assert (first["instruction"], first["reference"]) == ("", "")
    assert first["rubric"].splitlines()[0] == "Fluency"
    assert "3 = fluency at 3" in first["rubric"]
    assert (first["level"], first["scale"]) == ("ordinal", [0, 1, 2, 3])


def test_it_holds_neither_judges_nor_raters(cast: Cast, rated: Campaign) -> None:
    text = downloaded(cast.client("boris"), "training-set", format="jsonl").decode()
    for name in ("Kohtunik", "mari", "jaan", "noor"):
        assert name not in text


def test_fields_are_told_apart_and_rationales_are_those_of_the_score(cast: Cast) -> None:
    fields = {"question": "Kus pakk on?", "answer": "Teel.", "reference": "Homme.", "context": "Kauplus"}
    items = [make.item_row(1, fields=fields)]
    campaign = make.campaign(cast.kassa, items=items)
    make.rated(campaign, {"fluency": {"a": [2], "b": [2], "c": [0]}})
    for number, rating in enumerate(Rating.objects.order_by("pk")):
        Rating.objects.filter(pk=rating.pk).update(rationale=f"Reason {number}")
    (row,) = lines(cast.client("boris"), "training-set")
    assert (row["answer"], row["reference"]) == ("Teel.", "Homme.")
    assert "question: Kus pakk on?" in row["instruction"]
    assert "context: Kauplus" in row["instruction"]
    assert "customer:" in row["instruction"]
    assert row["rationale"] == "Reason 0\nReason 1"
    (bare,) = lines(cast.client("boris"), "training-set", rationales=False)
    assert bare["rationale"] == ""


def test_not_applicable_is_counted_and_is_no_point(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=[make.item_row(1), make.item_row(2)])
    make.rated(campaign, {"fluency": {"a": [1, 1], "b": [3, 3]}})
    first = Rating.objects.filter(annotation__item__ordinal=campaign.dataset.items.order_by("ordinal")[0].ordinal)
    first.update(status="na", score=None)
    rows = lines(cast.client("boris"), "training-set")
    assert [(row["n_raters"], row["n_not_applicable"], row["soft_label"], row["score"]) for row in rows] == [
        (0, 2, None, None),
        (2, 0, {"0": 0, "1": 0.5, "2": 0, "3": 0.5}, None),
    ]


def test_no_scenario_is_on_two_sides_and_the_seed_decides(cast: Cast, rated: Campaign) -> None:
    boris = cast.client("boris")
    splits = [sides(lines(boris, "training-set", split_seed=seed, test_share=0.5)) for seed in (1, 1, 2, 3, 4)]
    assert splits[0] == splits[1]
    assert any(split != splits[0] for split in splits[2:])
    for split in splits:
        assert not split.get("train", set()) & split.get("test", set())
    assert set(sides(lines(boris, "training-set", test_share=0))) == {"train"}


def test_the_share_of_scenarios_is_about_what_was_asked() -> None:
    from analytics.exporting.training_sets import ScenarioSplit

    split = ScenarioSplit(seed=3, share=0.3, locked=frozenset())
    tested = sum(split.of(f"scenario {number}") == "test" for number in range(4000))
    assert abs(tested / 4000 - 0.3) < 4 * (0.3 * 0.7 / 4000) ** 0.5


def test_what_an_alignment_locked_is_never_trained_on(cast: Cast, rated: Campaign) -> None:
    item = Item.objects.get(external_id="et-2")
    chosen = [selections_of(rated, [item]), selections_of(rated, [])]
    judge = Judge.objects.get(name="Kohtunik")
    Alignment.objects.create(
        project=rated.project, name="A", campaign=rated, base=judge, seed=1, share=0.5, looks_allowed=1,
        test=chosen[0], tuning=chosen[1],
    )  # fmt: skip
    rows = lines(cast.client("boris"), "training-set", test_share=0)
    assert sides(rows)["test"] == {"s2"}
    assert {row["item"] for row in rows if row["split"] == "test"} == {"et-2", "ar-2"}


def test_a_copy_of_a_locked_text_is_never_trained_on(cast: Cast, rated: Campaign) -> None:
    """Its scenario has another name in this dataset; what shares that scenario or, in turn, its content goes along."""
    locked, *copies, apart = Item.objects.filter(external_id__in=["et-0", "et-2", "et-3", "et-5"]).order_by("pk")
    other = make.dataset(cast.kassa, [make.item_row(90, scenario="s90")], name="Earlier").items.get()
    Item.objects.filter(pk=other.pk).update(digest=copies[0].digest)
    Item.objects.filter(pk=copies[1].pk).update(scenario="")
    beside = make.dataset(cast.kassa, [make.item_row(91, scenario="s90")], name="Beside").items.get()
    Item.objects.filter(pk=beside.pk).update(digest=copies[1].digest)
    Alignment.objects.create(
        project=rated.project, name="A", campaign=rated, base=Judge.objects.get(name="Kohtunik"), seed=1, share=0.5,
        looks_allowed=1, test=selections_of(rated, [other]), tuning=selections_of(rated, []),
    )  # fmt: skip
    tested = {
        row["item"] for row in lines(cast.client("boris"), "training-set", test_share=0) if row["split"] == "test"
    }
    assert tested == {"et-2", "ar-2", "et-3"}
    assert alignment.used_units(rated) == {"s90", "s2", copies[1].digest}
    assert {locked.external_id, apart.external_id}.isdisjoint(tested)


def selections_of(campaign: Campaign, items: list[Item]) -> ItemSelection:
    """A selection that holds these items."""
    rows = [(item.pk, 1.0, "") for item in items]
    return selections.store_selection(campaign=campaign, name=f"{len(items)} items", rule={}, seed=1, rows=rows)


def test_csv_says_the_same_and_a_share_that_is_none_is_refused(cast: Cast, rated: Campaign) -> None:
    boris = cast.client("boris")
    rows = lines(boris, "training-set")
    cells = list(csv.DictReader(StringIO(downloaded(boris, "training-set", format="csv").decode(), newline="")))
    assert [json.loads(cell["soft_label"]) for cell in cells] == [row["soft_label"] for row in rows]
    answer = boris.get("/api/v1/projects/kassa/exports/training-set/", {"test_share": 1})
    assert answer.status_code in (400, 409, 422)
    assert boris.get("/api/v1/projects/kassa/exports/training-set/size/").json()["rows"] == 18


def test_the_page_offers_it_and_keeps_what_was_filled_in(cast: Cast, rated: Campaign) -> None:
    boris = cast.client("boris")
    assert "training-set" in boris.get("/p/kassa/export/").content.decode()
    sent = {"what": "training-set", "campaign": str(rated), "format": "jsonl", "test_share": "0,5", "split_seed": "7"}
    answer = boris.post("/p/kassa/export/file/", sent)
    assert answer.status_code == 200
    assert sides([json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]).keys() == {
        "train",
        "test",
    }
    wrong = boris.post("/p/kassa/export/file/", {**sent, "test_share": "half"}, follow=True).content.decode()
    assert "from 0 to less than 1" in wrong
    assert 'value="7"' in wrong
    assert cast.client("maarika").post("/p/kassa/export/file/", sent).status_code in (403, 404)
