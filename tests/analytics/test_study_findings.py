"""The sentences of a study say what the intervals allow, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from analytics.figures import Figure
from analytics.judges.reasons import CellDecision
from analytics.models import GateThresholds
from analytics.study import findings, pictures
from analytics.study.findings import Contradiction, LabelCost, Names
from analytics.study.sentences import Emphasised, worded

NAMES = Names(
    {"clear": "Clear", "polite": "Polite & kind"}.__getitem__,
    {"et": "Estonian", "ar": "Arabic", "ja": "Japanese", "en": "English"}.__getitem__,
)
THRESHOLDS = GateThresholds(
    preset="skilled", omega=0.5, readable=0.99, flip_rate=0.08, fewest_items=30, tau_b=0.8, tau_b_low=0.5
)


@pytest.fixture(autouse=True)
def in_english() -> Any:
    with translation.override("en"):
        yield


def alpha(criterion: str, language: str, value: float | None, half: float = 0.1, n: int = 60) -> Figure:
    low, high = (None, None) if value is None else (value - half, value + half)
    about: dict[str, Any] = {"criterion": criterion, "language": language, "n_items": n}
    return Figure(statistic="krippendorff_alpha", value=value, low=low, high=high, **about)


def ac_of(figure: Figure) -> dict[tuple[str, str | None], Figure]:
    low = Figure(statistic="gwet_ac", criterion=figure.criterion, language=figure.language, value=0.1, low=0, high=0.2)
    return {(figure.criterion, figure.language): low}


def cell(judge: str, criterion: str, language: str, use: str, bias: tuple[float, float] | None = None) -> CellDecision:
    figures = []
    if bias is not None:
        low, high = bias
        figures.append({"statistic": "bias", "value": (low + high) / 2, "low": low, "high": high, "n_items": 60})
    finding = {
        "name": "bias", "holds": False, "measured": bool(figures), "more": None, "gap": 1.0, "figures": figures,
    }  # fmt: skip
    row = {
        "judge": judge, "judge_id": 1, "criterion": criterion, "language": language, "decision": use, "margin": 0.3,
        "findings": [finding], "n_items": 60, "n_clusters": 60, "n_raters": 3, "changes": [], "otherwise": use,
    }  # fmt: skip
    return CellDecision(row, THRESHOLDS)


# --- people ---
def test_people_agree_where_the_whole_interval_lies_above_the_floor() -> None:
    alphas = [alpha("clear", "et", 0.8), alpha("polite", "et", 0.35)]
    said = str(findings.about_people(alphas, {}, NAMES))
    assert said == (
        "The panels agree on all 2 pairs of criterion and language: α from 0.35 to 0.80, in 1 certainly above 0.667."
    )


def test_an_interval_over_the_floor_is_not_called_agreement() -> None:
    wide = alpha("clear", "ja", 0.25, half=0.3)
    said = str(findings.about_people([wide], {}, NAMES))
    assert "agree on none of 1 pairs" in said
    assert "It is not certain on Clear in Japanese: the interval is too wide." in said
    assert "hardly" not in said


def test_two_raters_are_named_only_where_agreement_is_poor() -> None:
    poor = alpha("polite", "ja", -0.2)
    contradictions = [Contradiction("polite", ("ja-1", "ja-2")), Contradiction("clear", ("et-1", "et-2"))]
    said = findings.about_people([poor, alpha("clear", "et", 0.9)], ac_of(poor), NAMES, contradictions=contradictions)
    assert "hardly more than by chance on Polite & kind in Japanese." in str(said)
    assert "On Polite & kind ja-1 and ja-2 contradict each other." in str(said) and "et-1" not in str(said)
    assert "<strong><bdi>Polite &amp; kind in Japanese</bdi></strong>" in "".join(one.html for one in said.sentences)


def test_high_agreement_by_ac_outweighs_a_low_alpha() -> None:
    """Of rare flags alpha is low although the raters agree: one of both above its floor is enough, as in the gate."""
    rare = alpha("clear", "et", 0.05, half=0.1)
    high = Figure(statistic="gwet_ac", criterion="clear", language="et", value=0.9, low=0.85, high=0.95, n_items=60)
    said = str(findings.about_people([rare], {("clear", "et"): high}, NAMES))
    assert "agree on all 1" in said and "hardly" not in said


def test_without_values_nothing_is_said_of_agreement() -> None:
    assert "Nobody knows yet" in str(findings.about_people([alpha("clear", "et", None)], {}, NAMES))


def test_few_items_are_preliminary() -> None:
    assert findings.about_people([alpha("clear", "et", 0.8, n=10)], {}, NAMES).is_preliminary
    assert not findings.about_people([alpha("clear", "et", 0.8, n=60)], {}, NAMES).is_preliminary


# --- judges ---
def test_the_chosen_judge_comes_first_and_each_use_is_counted() -> None:
    cells = [
        cell("Careful", "clear", "et", "judge_alone"),
        cell("Careful", "polite", "et", "judge_alone"),
        cell("Uneven", "clear", "et", "judge_with_correction"),
        cell("Uneven", "polite", "et", "humans_only", bias=(0.5, 1.0)),
    ]
    said = str(findings.about_judges(cells, "Uneven", NAMES))
    assert said.startswith("Uneven may be used with correction in 1 of 2. It certainly gives too much on Polite & kind")
    assert "0.50 to 1.00 points" in said
    assert "Careful may score alone everywhere (2 of 2)." in said


def test_a_bias_is_claimed_only_beyond_the_margin() -> None:
    inside = [cell("J", "clear", "et", "humans_only", bias=(0.1, 0.9))]
    assert "certainly" not in str(findings.about_judges(inside, "J", NAMES))
    strict = [cell("J", "clear", tag, "humans_only", bias=(-0.9, -0.5)) for tag in ("et", "ar")]
    said = str(findings.about_judges(strict, "J", NAMES))
    assert "It certainly gives too little on Clear in Estonian and Arabic: 0.50 to 0.90 points." in said
    assert "may be used nowhere yet (0 of 2)" in said


def test_a_stale_judge_is_measured_again_and_nothing_else_is_said() -> None:
    stale = [cell("Old", "clear", "et", "stale", bias=(0.5, 1.0))]
    assert str(findings.about_judges(stale, "Old", NAMES)) == "Old must be measured again."


# --- generators ---
def difference(first: str, second: str, low: float, high: float) -> dict[str, Any]:
    return {
        "statistic": "leaderboard.corrected_difference", "criterion": "clear", "generator": first, "variant": second,
        "value": (low + high) / 2, "low": low, "high": high, "n_items": 60,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "rows", "expected"),
    [
        (
            "higher_is_better",
            {"et": [("a", "b", 0.1, 0.5)], "ar": [("a", "b", 0.2, 0.6)]},
            "On Clear a is certainly first in every language (2).",
        ),
        ("lower_is_better", {"et": [("a", "b", 0.1, 0.5)]}, "On Clear b is certainly first in Estonian."),
        (
            "higher_is_better",
            {"et": [("a", "b", -0.1, 0.5)]},
            "On Clear it is not decided which generator is first: a or b.",
        ),
        (
            "higher_is_better",
            {"et": [("a", "b", 0.1, 0.5)], "ar": [("a", "b", -0.2, 0.6)]},
            "On Clear a is certainly first in Estonian. In Arabic it is not decided which one is first: a or b.",
        ),
    ],
)
def test_a_generator_is_first_where_every_difference_is_clear(
    direction: str, rows: dict[str, list[tuple[str, str, float, float]]], expected: str
) -> None:
    differences = {tag: [difference(*row) for row in given] for tag, given in rows.items()}
    said = findings.about_generators(differences, ["a", "b"], NAMES, criterion="clear", direction=direction)
    assert str(said) == expected


def test_a_criterion_without_a_better_end_orders_nobody() -> None:
    differences = {"et": [difference("a", "b", 0.1, 0.5)]}
    said = findings.about_generators(differences, ["a", "b"], NAMES, criterion="clear", direction="")
    assert "can’t be ordered on Clear yet" in str(said)


# --- how sure ---
def test_what_the_figures_rest_on_and_what_more_items_cost() -> None:
    one = cell("J", "clear", "et", "humans_only", bias=(-0.1, 0.5))
    one.row["findings"][0]["more"] = 40
    figures = [alpha("clear", "et", 0.8, n=20), alpha("polite", "et", 0.8, n=90)]
    said = str(findings.about_certainty(figures, [one], "J", NAMES, LabelCost(3, 90.0, 0.5)))
    assert said.startswith("1 of 2 figures is based on fewer than 30 independent items: preliminary.")
    assert "About 40 more items (120 ratings, about 3.0 hours, $60.00) would decide 1 open cell of J" in said
    assert "from ±0.30 to about ±0.23" in said  # 0.3 times the root of 60 / 100


# --- parts ---
def test_everything_in_a_sentence_is_escaped() -> None:
    one = worded("%(judge)s < %(n)d & “x”", judge=Emphasised("<b>%s</b>"), n=3)
    assert str(one) == "<b>%s</b> < 3 & “x”"
    assert one.html == "<strong><bdi>&lt;b&gt;%s&lt;/b&gt;</bdi></strong> &lt; 3 &amp; “x”"


def test_letters_tell_criteria_apart() -> None:
    assert pictures.initials({"a": "Grammar", "b": "Fluency"}) == {"a": "G", "b": "F"}
    assert pictures.initials({"a": "Fluency", "b": "Form"}) == {"a": "Fl", "b": "Fo"}
    assert pictures.initials({"a": "Good one", "b": "Good two"}) == {"a": "1", "b": "2"}
    assert pictures.initials({"a": "القواعد", "b": "السلاسة"}) == {"a": "ق", "b": "س"}


@pytest.mark.parametrize(("low", "high"), [(-0.31, 0.42), (0, 4), (-1200, 3), (0.001, 0.0011)])
def test_an_axis_has_a_few_round_ticks_within_it(low: float, high: float) -> None:
    axis = pictures.Axis.around([low, high])
    assert 2 <= len(axis.ticks) <= 8
    assert all(0 <= at <= 100 for at, _text in axis.ticks)
    assert axis.at(low) < axis.at(high)
