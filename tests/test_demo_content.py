"""The demo holds what its README promises: a complete crossing, a rubric in five languages, ratings by the rules."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import krippendorff
import numpy as np
import pytest
import yaml

import panelbench
from analytics.judges import decisions
from annotation.desk.answers import count_words, words_needed
from annotation.models import Campaign
from annotation.readers.guessing import guess_mapping
from annotation.readers.items import parse_items
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import peek
from annotation.readers.rubric import parse_rubric
from judging.prompts import PromptVariant
from panelbench.demo import loading

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT = Path(panelbench.__file__).parent / "demo" / "content"
LANGUAGES = ("en", "et", "es-MX", "ar", "ja")
GENERATORS = ("atlas-1", "birch-2", "cedar-mini")
SCENARIOS = (
    "late-parcel",
    "double-charge",
    "hotel-change",
    "broken-kettle",
    "lost-password",
    "train-refund",
    "internet-outage",
    "wrong-size",
    "gym-cancel",
    "pharmacy-hours",
)
UNLABELLED = (
    "missing-part",
    "wrong-colour",
    "gift-card",
    "returned-jacket",
    "seat-change",
    "lost-luggage",
    "bus-ticket",
    "invoice-copy",
    "address-change",
    "phone-number",
)
"""What the judges score and nobody rates: the means on Results are corrected by the ratings of the others."""
LEFT_TO_DO = "hotel-change"


def _document(name: str) -> Any:
    return yaml.safe_load((CONTENT / name).read_text(encoding="utf-8"))


DIALOGUES: list[dict[str, Any]] = [
    json.loads(line)
    for language in LANGUAGES
    for line in (CONTENT / f"dialogues.{language}.jsonl").read_text(encoding="utf-8").splitlines()
]
RUBRIC: dict[str, Any] = _document("rubric.yaml")
CRITERIA: dict[str, dict[str, Any]] = {criterion["key"]: criterion for criterion in RUBRIC["criteria"]}
PANELS: dict[str, list[dict[str, Any]]] = {
    panel["language"]: panel["seats"] for panel in _document("panel.yaml")["panels"]
}
with (CONTENT / "ratings.csv").open(encoding="utf-8", newline="") as lines:
    RATINGS: list[dict[str, str]] = list(csv.DictReader(lines))
with (CONTENT / "verdicts.csv").open(encoding="utf-8", newline="") as lines:
    VERDICTS: list[dict[str, str]] = list(csv.DictReader(lines))


def _texts(dialogue: dict[str, Any]) -> Iterator[str]:
    yield dialogue["title"]
    for turn in dialogue["turns"]:
        yield turn["text"]
        if "name" in turn:
            yield turn["name"]


def _first_strong(text: str) -> str:
    """The bidirectional class that sets the direction of a line: ``L``, ``R`` or ``AL`` (``""``: figures only)."""
    classes = (unicodedata.bidirectional(character) for character in text)
    return next((each for each in classes if each in {"L", "R", "AL"}), "")


def _scores(criterion: str, language: str) -> np.ndarray:
    """Raters x items; NaN where missing or not applicable."""
    given = {(row["rater"], row["item"]): row["score"] for row in RATINGS if row["criterion"] == criterion}
    items = [dialogue["id"] for dialogue in DIALOGUES if dialogue["language"] == language]
    raters = [seat["pseudonym"] for seat in PANELS[language]]
    return np.array(
        [[float(given.get((rater, item), "nan").replace("N/A", "nan")) for item in items] for rater in raters]
    )


def test_every_scenario_is_told_by_every_generator_in_every_language() -> None:
    found = [(each["scenario"], each["generator"], each["language"]) for each in DIALOGUES]
    assert sorted(found) == sorted(product(SCENARIOS + UNLABELLED, GENERATORS, LANGUAGES))
    assert [each["id"] for each in DIALOGUES] == ["/".join(place) for place in found]


def test_dialogues_of_a_scenario_share_their_attributes() -> None:
    kinds = {(each["scenario"], *sorted(each["attributes"].items())) for each in DIALOGUES}
    assert len(kinds) == len(SCENARIOS + UNLABELLED)


def test_customer_and_agent_take_turns() -> None:
    for dialogue in DIALOGUES:
        speakers = [turn["speaker"] for turn in dialogue["turns"]]
        assert 4 <= len(speakers) <= 8, dialogue["id"]
        assert speakers == ["customer", "agent"] * (len(speakers) // 2), dialogue["id"]
        assert all(text == text.strip() != "" for text in _texts(dialogue)), dialogue["id"]


def test_no_text_names_its_generator() -> None:
    stems = re.compile("|".join(name.split("-")[0] for name in GENERATORS), re.IGNORECASE)
    assert not [text for each in DIALOGUES for text in _texts(each) if stems.search(text)]


def test_arabic_runs_from_right_to_left_and_nothing_else_does() -> None:
    directions = {(each["language"] == "ar", _first_strong(text)) for each in DIALOGUES for text in _texts(each)}
    assert directions - {(True, ""), (False, "")} == {(True, "AL"), (False, "L")}


def test_every_arabic_dialogue_that_names_an_order_turns_direction_inside_a_line() -> None:
    arabic = [each for each in DIALOGUES if each["language"] == "ar" and each["scenario"] != "double-charge"]
    assert all(re.search(r"\b[A-Z]{2}-\d+", each["turns"][0]["text"]) for each in arabic)


def test_the_rubric_speaks_every_language_in_every_place() -> None:
    incomplete: list[str] = []

    def look(node: Any, place: str) -> None:
        if isinstance(node, list):
            node = dict(enumerate(node))
        if isinstance(node, dict):
            if "en" in node and set(node) != set(LANGUAGES):
                incomplete.append(place)
            for key, inner in node.items():
                look(inner, f"{place}/{key}")
        elif node is None or node == "":
            incomplete.append(place)

    look(RUBRIC, "")
    assert incomplete == []


@pytest.mark.parametrize("key", CRITERIA)
def test_every_point_has_its_anchor_and_reason(key: str) -> None:
    criterion = CRITERIA[key]
    assert list(criterion["anchors"]) == criterion["scale"]["points"]
    for words in criterion["anchors"].values():
        assert all(set(anchor) == {"text", "reason"} for anchor in words.values())
    for examples in criterion.get("examples", {}).values():
        assert all(example["score"] in criterion["scale"]["points"] for example in examples)


def test_one_rationale_at_most_is_asked_for_while_scoring() -> None:
    rules = [criterion["rationale"]["rule"] for criterion in CRITERIA.values()]
    assert [rule for rule in rules if rule.startswith("required")] == ["required_except_best"]


def test_three_annotators_sit_on_each_panel() -> None:
    seats = [seat for each in PANELS.values() for seat in each]
    assert {language: len(each) for language, each in PANELS.items()} == dict.fromkeys(LANGUAGES, 3)
    assert len({seat["pseudonym"] for seat in seats}) == len({seat["email"] for seat in seats}) == len(seats)
    assert all(seat["languages"] == [language] for language, each in PANELS.items() for seat in each)
    assert all(seat["email"].endswith("@demo.panelbench.test") for seat in seats)


def test_only_the_first_annotator_of_each_panel_has_work_left() -> None:
    expected = [
        (seat["pseudonym"], each["id"], criterion)
        for language, seats in PANELS.items()
        for seat in seats
        for each in DIALOGUES
        for criterion in CRITERIA
        if each["language"] == language
        and each["scenario"] in SCENARIOS
        and not (seat is seats[0] and each["scenario"] == LEFT_TO_DO)
    ]
    assert sorted((row["rater"], row["item"], row["criterion"]) for row in RATINGS) == sorted(expected)


def test_every_score_is_on_its_scale() -> None:
    for row in RATINGS:
        criterion = CRITERIA[row["criterion"]]
        allowed = [str(point) for point in criterion["scale"]["points"]] + ["N/A"] * criterion["not_applicable"]
        assert row["score"] in allowed, row


def test_rationales_are_given_where_the_rule_asks_for_them() -> None:
    for row in RATINGS:
        criterion = CRITERIA[row["criterion"]]
        rule, minimum = criterion["rationale"]["rule"], criterion["rationale"]["min_words"]
        score = None if row["score"] == "N/A" else float(row["score"])
        needed = words_needed(rule=rule, minimum=minimum, score=score, best=criterion["scale"]["points"][-1])
        assert count_words(row["rationale"]) >= needed, row
        assert not (rule == "never" and row["rationale"]), row


def test_the_panels_agree_except_on_japanese_fluency() -> None:
    alphas = {
        (criterion, language): krippendorff.alpha(_scores(criterion, language), level_of_measurement="ordinal")
        for criterion, language in product(CRITERIA, LANGUAGES)
    }
    assert alphas.pop(("fluency", "ja")) < 0.25
    assert all(0.4 < alpha < 0.85 for alpha in alphas.values())


def test_stored_judges_score_every_dialogue_on_the_scale_and_say_that_they_are_simulated() -> None:
    repeats = {"Careful (simulated)": 2, "Uneven (simulated)": 2, "Coarse (simulated)": 1, "Steady (simulated)": 1}
    expected = [
        (judge, str(repeat), each["id"]) for judge in repeats for repeat in range(repeats[judge]) for each in DIALOGUES
    ]
    assert sorted((row["judge"], row["repeat"], row["item"]) for row in VERDICTS) == sorted(expected)
    for key, criterion in CRITERIA.items():
        assert {row[key] for row in VERDICTS} <= set(map(str, criterion["scale"]["points"]))


@pytest.mark.django_db
def test_the_stored_judges_have_the_decisions_that_are_planted(settings: Any) -> None:
    settings.PROVIDERS = {}
    loading.load_demo()
    campaign = Campaign.objects.get(project__slug=loading.SLUG)
    decided = decisions.decide_now(campaign)
    assert decided.thresholds.figures_since is None
    rows = {(row["judge"].split()[0], row["criterion"], row["language"]): row for row in (c.row for c in decided.cells)}
    uses = {key: row["decision"] for key, row in rows.items()}
    assert {use for (_judge, *cell), use in uses.items() if cell == ["fluency", "ja"]} == {"rubric_problem"}
    assert sum(use == "judge_alone" for (judge, *_cell), use in uses.items() if judge == "Careful") >= 16
    assert "judge_alone" not in {use for (judge, _key, tag), use in uses.items() if (judge, tag) == ("Uneven", "ar")}
    of_coarse = [use for (judge, *_cell), use in uses.items() if judge == "Coarse"]
    assert of_coarse.count("judge_with_correction") >= 14 and "ranking_only" in of_coarse
    failed = [name["name"] for name in rows["Careful", "grammar", "en"]["findings"] if not name["holds"]]
    assert "flip_rate" in failed
    assert "bias" not in failed


def test_both_judges_say_that_they_are_simulated() -> None:
    judges = _document("judges.yaml")["judges"]
    assert {judge["provider"] for judge in judges} == {"simulated"}
    assert all("simulated" in judge["name"] for judge in judges)
    assert {PromptVariant(**judge["variant"]).grouping for judge in judges} == {"compound", "single"}


def test_our_own_readers_take_every_file_as_it_is() -> None:
    dialogues = [(path.name, path.read_bytes()) for path in sorted(CONTENT.glob("dialogues.*.jsonl"))]
    items = parse_items(dialogues, guess_mapping("dataset", peek(*dialogues[0]).columns))
    assert (items.report.taken, list(items.problems)) == (len(DIALOGUES), [])

    answers = ("ratings.csv", (CONTENT / "ratings.csv").read_bytes())
    ratings = parse_ratings([answers], guess_mapping("ratings", peek(*answers).columns))
    assert (len(ratings.rows), ratings.missing, list(ratings.problems)) == (len(RATINGS), 0, [])

    rubric = parse_rubric("rubric.yaml", (CONTENT / "rubric.yaml").read_bytes())
    assert list(rubric.problems) == []
    assert rubric.document is not None
    assert [criterion.key for criterion in rubric.document.criteria] == list(CRITERIA)
