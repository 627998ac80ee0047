"""Which answers make a complete sheet: worked by hand on the smallest scales that show each rule."""

from __future__ import annotations

import math
from typing import Any

import pytest

from accounts.refusals import Refused
from annotation.desk.answers import LONGEST_RATIONALE, Answer, complete, count_words, words_needed
from annotation.models import Criterion


def criterion(key: str = "fluency", **parts: Any) -> Criterion:
    points = parts.pop("points", (0, 1, 2))
    whole = {
        "level": "ordinal",
        "points": [{"value": point} for point in points],
        "minimum": min(points, default=0),
        "maximum": max(points, default=100),
    }
    return Criterion(key=key, **{**whole, **parts})


def problems(criteria: list[Criterion], **answers: Answer) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        complete(criteria, answers)
    return refused.value.fields


def test_every_problem_is_told_at_once_by_criterion() -> None:
    criteria = [criterion("fluency"), criterion("grammar"), criterion("tone")]

    found = problems(criteria, fluency=Answer(3), grammar=Answer(status="na"), extra=Answer(1))

    assert set(found) == {"fluency", "grammar", "tone", "extra"}


@pytest.mark.parametrize("score", [-1, 0.5, 3, math.nan, math.inf])
def test_a_score_off_the_scale_is_refused(score: float) -> None:
    assert problems([criterion()], fluency=Answer(score)) == {"fluency": "The score is not on the scale."}


@pytest.mark.parametrize(("score", "fits"), [(0, True), (99.5, True), (100, True), (99.7, False), (100.5, False)])
def test_a_long_scale_takes_whole_steps_between_its_ends(score: float, fits: bool) -> None:
    long = criterion(points=(), level="interval", step=0.5)

    if fits:
        assert complete([long], {"fluency": Answer(score)})["fluency"].score == score
    else:
        assert "fluency" in problems([long], fluency=Answer(score))


def test_not_applicable_only_where_it_is_offered() -> None:
    assert complete([criterion(not_applicable=True)], {"fluency": Answer(status="na")})["fluency"].status == "na"
    assert "N/A is not available" in problems([criterion()], fluency=Answer(status="na"))["fluency"]


@pytest.mark.parametrize(("direction", "mark"), [("lower_is_better", 1), ("higher_is_better", 0)])
def test_a_critical_mark_stops_what_is_still_blank(direction: str, mark: float) -> None:
    critical = criterion("harm", points=(0, 1), group="critical", direction=direction)
    rest = [criterion("fluency", rationale_rule="required"), criterion("tone")]

    given = complete([critical, *rest], {"harm": Answer(mark), "tone": Answer(2)})

    assert {key: answer.status for key, answer in given.items()} == {
        "harm": "scored",
        "fluency": "stopped",
        "tone": "scored",
    }
    assert set(problems([critical, *rest], harm=Answer(1 - mark))) == {"fluency", "tone"}


def test_stopped_without_a_critical_mark_is_refused() -> None:
    assert "not stopped by a critical mark" in problems([criterion()], fluency=Answer(status="stopped"))["fluency"]


@pytest.mark.parametrize(
    ("rule", "score", "written", "fits"),
    [
        ("optional", 0, "", True),
        ("required", 0, "", False),
        ("required", 0, "two words", False),
        ("required", 0, "now three words", True),
        ("required", 2, "", False),
        ("required", 2, "best", True),
        ("required_except_best", 2, "", True),
        ("required_except_best", 1, "too short", False),
        ("required_except_best", 1, "it is enough", True),
        ("never", 1, "", True),
        ("never", 1, "something", False),
    ],
)
def test_the_rationale_rule(rule: str, score: float, written: str, fits: bool) -> None:
    ruled = criterion(rationale_rule=rule, rationale_words=3 if rule.startswith("required") else 0)
    answers = {"fluency": Answer(score, rationale=f"  {written} ")}

    if fits:
        assert complete([ruled], answers)["fluency"].rationale == written
    else:
        assert set(problems([ruled], **answers)) == {"fluency"}


def test_a_rationale_has_an_end() -> None:
    assert "Shorten" in problems([criterion()], fluency=Answer(1, rationale="a" * (LONGEST_RATIONALE + 1)))["fluency"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("  … — !", 0),
        ("Üks sõna, veel kaks.", 4),
        ("don't re-use it", 3),
        ("الموظف لم يعتذر", 3),
        ("文法は正しい", 3),  # six letters
        ("とても良い 5", 4),  # five letters make three words, and one number
        ("ภาษาไทย", 4),  # seven letters
        ("好 well done", 3),
        ("हिन्दी शब्द", 2),  # vowel signs belong to their word
        ("می\u200cخواهم بروم", 2),  # and so does the joiner inside one
    ],
)
def test_words_are_counted_in_scripts_with_and_without_spaces(text: str, words: int) -> None:
    assert count_words(text) == words


def test_nothing_to_write_beside_not_applicable() -> None:
    assert words_needed(rule="required", minimum=5, score=None, best=2) == 0
