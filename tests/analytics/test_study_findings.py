"""The sentences of a study say what the intervals allow, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import translation

from analytics.figures import Figure
from analytics.judges.reasons import CellDecision
from analytics.models import GateThresholds
from analytics.stats.core.messages import approximate
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


def cell(
    judge: str,
    criterion: str,
    language: str,
    use: str,
    bias: tuple[float, float] | None = None,
    more: int | None = None,
    n: int = 60,
) -> CellDecision:
    figures = []
    if bias is not None:
        low, high = bias
        figures.append({"statistic": "bias", "value": (low + high) / 2, "low": low, "high": high, "n_items": n})
    finding = {
        "name": "bias", "holds": False, "measured": bool(figures), "more": more, "gap": 1.0, "figures": figures,
    }  # fmt: skip
    row = {
        "judge": judge, "judge_id": 1, "criterion": criterion, "language": language, "decision": use, "margin": 0.3,
        "findings": [finding], "n_items": n, "n_clusters": n, "n_raters": 3, "changes": [], "otherwise": use,
    }  # fmt: skip
    return CellDecision(row, THRESHOLDS)


def states_of(*alphas: Figure, acs: dict[tuple[str, str | None], Figure] | None = None) -> dict[Any, str]:
    found = {}
    for figure in alphas:
        key = (figure.criterion, figure.language)
        found[key] = findings.agreement_state(figure, (acs or {}).get(key), findings.Floors())
    return found


# --- people ---
def test_people_agree_where_the_whole_interval_lies_above_the_floor() -> None:
    alphas = [alpha("clear", "et", 0.8), alpha("polite", "et", 0.35)]
    assert str(findings.about_people(alphas, states_of(*alphas), NAMES)) == (
        "The panels agree more than by chance in 2 of 2 cells of criterion and language: α from 0.35 to 0.80. "
        "In 1 of them α is certainly above 0.667."
    )


def test_few_items_and_approximate_intervals_are_never_certain() -> None:
    few, rough = alpha("clear", "et", 0.9, n=29), replace(alpha("polite", "et", 0.9), method=approximate("bootstrap"))
    assert rough.is_approximate
    said = findings.about_people([few, rough], states_of(few, rough), NAMES)
    assert "in 2 of 2 cells" in str(said) and "certainly" not in str(said) and said.is_preliminary


def test_an_interval_over_the_floor_is_not_called_agreement() -> None:
    wide = alpha("clear", "ja", 0.25, half=0.3)
    said = str(findings.about_people([wide], states_of(wide), NAMES))
    assert "in 0 of 1 cells" in said and "α from" not in said
    assert "It is not certain on Clear in Japanese: the interval is too wide." in said
    assert "hardly" not in said


def test_two_raters_are_named_only_in_the_language_where_agreement_is_in_doubt() -> None:
    poor, good = alpha("polite", "ja", -0.2), alpha("polite", "et", 0.9)
    contradictions = [Contradiction("polite", "ja", ("ja-1", "ja-2")), Contradiction("polite", "et", ("et-1", "et-2"))]
    states = states_of(poor, good, acs=ac_of(poor))
    said = findings.about_people([poor, good], states, NAMES, contradictions=contradictions)
    assert "hardly more than by chance on Polite & kind in Japanese." in str(said)
    assert "On Polite & kind in Japanese ja-1 and ja-2 contradict each other." in str(said) and "et-1" not in str(said)
    assert "<strong><bdi>Polite &amp; kind in Japanese</bdi></strong>" in "".join(one.html for one in said.sentences)


def test_agreement_by_ac_alone_lends_its_alpha_to_no_range() -> None:
    """Of rare flags alpha is low although the raters agree: one of both above its floor is enough, as in the gate."""
    rare, good = alpha("clear", "et", 0.05, half=0.1), alpha("polite", "et", 0.5)
    high = Figure(statistic="gwet_ac", criterion="clear", language="et", value=0.9, low=0.85, high=0.95, n_items=60)
    states = states_of(rare, good, acs={("clear", "et"): high})
    said = str(findings.about_people([rare, good], states, NAMES))
    assert "in 2 of 2 cells of criterion and language: α from 0.50 to 0.50. In 1 of them only by Gwet’s AC." in said


def test_a_rubric_problem_is_what_the_decisions_say() -> None:
    poor, floors = alpha("clear", "et", 0.0), findings.Floors()
    ac = ac_of(poor)["clear", "et"]
    assert findings.agreement_state(poor, ac, floors) == "hardly"
    assert findings.agreement_state(poor, ac, floors, is_problem=False) == "not_certain"
    assert findings.agreement_state(alpha("clear", "et", 0.9), None, floors, is_problem=True) == "hardly"


def test_without_values_nothing_is_said_of_agreement() -> None:
    nothing = alpha("clear", "et", None)
    assert "Nobody knows yet" in str(findings.about_people([nothing], states_of(nothing), NAMES))


# --- judges ---
def test_the_chosen_judge_comes_first_and_each_use_is_counted() -> None:
    cells = [
        cell("Careful", "clear", "et", "judge_alone"),
        cell("Careful", "polite", "et", "judge_alone"),
        cell("Uneven", "clear", "et", "judge_with_correction"),
        cell("Uneven", "polite", "et", "humans_only", bias=(0.5, 1.0)),
    ]
    said = str(findings.about_judges(cells, "Uneven", NAMES))
    assert said.startswith("Uneven in 2 cells of criterion and language: With correction 1 and Humans only 1.")
    assert "It certainly gives more than the panel’s mean on Polite & kind in Estonian: 0.50 to 1.00 points." in said
    assert "Careful may score alone in all 2 cells of criterion and language." in said


def test_a_bias_is_claimed_only_beyond_the_margin() -> None:
    inside = [cell("J", "clear", "et", "humans_only", bias=(0.1, 0.9))]
    assert "points" not in str(findings.about_judges(inside, "J", NAMES))
    strict = [cell("J", "clear", tag, "humans_only", bias=(-0.9, -0.5)) for tag in ("et", "ar")]
    said = str(findings.about_judges(strict, "J", NAMES))
    assert "gives less than the panel’s mean on Clear in Estonian and Arabic: 0.50 to 0.90 points." in said


@pytest.mark.parametrize("use", ["rubric_problem", "insufficient", "stale"])
def test_no_bias_is_claimed_where_the_decision_compares_nothing(use: str) -> None:
    cells = [cell("J", "clear", "et", use, bias=(0.5, 1.0)), cell("J", "polite", "et", "judge_alone")]
    assert "points" not in str(findings.about_judges(cells, "J", NAMES))


def test_no_bias_is_claimed_against_people_who_do_not_agree() -> None:
    cells = [cell("J", "clear", tag, "humans_only", bias=(0.5, 1.0)) for tag in ("et", "ar")]
    said = str(findings.about_judges(cells, "J", NAMES, states={("clear", "et"): "agrees", ("clear", "ar"): "hardly"}))
    assert "on Clear in Estonian: 0.50 to 1.00 points." in said and "Arabic" not in said


def test_a_bias_on_few_items_is_so_far() -> None:
    few = cell("J", "clear", "et", "humans_only", bias=(0.5, 1.0), n=12)
    said = str(findings.about_judges([few], "J", NAMES))
    assert "So far it gives more than the panel’s mean on Clear in Estonian" in said and "certainly" not in said


def test_a_stale_judge_is_measured_again_and_nothing_else_is_said() -> None:
    stale = [cell("Old", "clear", "et", "stale", bias=(0.5, 1.0))]
    assert str(findings.about_judges(stale, "Old", NAMES)) == "Old must be measured again."


def test_judges_to_be_warned_of_are_named_and_only_others_counted() -> None:
    uses = {"A": "judge_alone", "B": "judge_alone", "C": "judge_alone", "D": "ranking_only", "Harsh": "humans_only"}
    cells = [cell(name, "clear", "et", use) for name, use in (*uses.items(), ("Steady", "stale"))]
    said = str(findings.about_judges(cells, "A", NAMES))
    assert "Harsh in 1 cells" in said and "Steady must be measured again." in said
    assert said.endswith("1 more judge is in the picture.")


# --- generators ---
def difference(first: str, second: str, low: float | None, high: float | None, n: int = 60) -> dict[str, Any]:
    return {
        "statistic": "leaderboard.corrected_difference", "criterion": "clear", "generator": first, "variant": second,
        "value": 0.3, "low": low, "high": high, "n_items": n,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "rows", "expected"),
    [
        (
            "higher_is_better",
            {"et": [("a", "b", 0.1, 0.5)], "ar": [("a", "b", 0.2, 0.6)]},
            "On Clear a is certainly first in every language (2).",
        ),
        (
            "higher_is_better",
            {"et": [("a", "b", 0.1, 0.5)], "ar": [("a", "b", None, None)]},
            "On Clear a is certainly first in Estonian. In Arabic no difference has an interval.",
        ),
        ("lower_is_better", {"et": [("a", "b", 0.1, 0.5)]}, "On Clear b is certainly first in Estonian."),
        ("higher_is_better", {"et": [("a", "b", 0.1, 0.5, 12)]}, "On Clear a is so far first in Estonian."),
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
        ("none", {"et": [("a", "b", 0.1, 0.5)]}, "The generators can’t be ordered on Clear yet: "),
    ],
)
def test_a_generator_is_first_where_every_difference_is_clear(
    direction: str, rows: dict[str, list[tuple[Any, ...]]], expected: str
) -> None:
    differences = {tag: [difference(*row) for row in given] for tag, given in rows.items()}
    said = findings.about_generators(differences, list(rows), NAMES, criterion="clear", direction=direction)
    assert str(said).startswith(expected) and (expected.endswith(" ") or str(said) == expected)


# --- how sure ---
def test_what_the_figures_are_based_on_and_what_more_items_cost() -> None:
    one = cell("J", "clear", "et", "humans_only", bias=(-0.1, 0.5), more=40)
    said = str(findings.about_certainty([20, 90], [one], "J", LabelCost(3, 90.0, 0.5)))
    assert said.startswith("1 of 2 figures is based on fewer than 30 independent items: preliminary.")
    assert "About 40 more items (120 assignments, about 3.0 hours, $60.00) would decide 1 open cell of J" in said
    assert "from ±0.30 to about ±0.23" in said  # 0.3 times the root of 60 / 100


def test_labels_decide_nothing_where_another_condition_fails_for_good() -> None:
    one = cell("J", "clear", "et", "humans_only", bias=(-0.1, 0.5), more=40)
    one.row["findings"].append({**one.row["findings"][0], "name": "readable", "more": None})
    said = str(findings.about_certainty([90], [one], "J", LabelCost()))
    assert "would decide" not in said
    assert "More labels alone are not known to change a decision about J." in said


def test_what_has_no_figure_is_neither_based_on_items_nor_promised_to_be_decided() -> None:
    one = cell("J", "clear", "et", "insufficient", bias=(-0.1, 0.5), more=40)
    one.row["n_items"] = one.row["n_clusters"] = 0
    said = str(findings.about_certainty([0, 0], [one], "J", LabelCost()))
    assert said == "There are no figures yet.", "nothing is said of labels: a cell without items lacks just these"
    assert str(findings.about_certainty([0, 6], [one], "J", LabelCost())).startswith(
        "Every figure is based on 6 independent items only: preliminary."
    )


def test_what_has_no_figure_makes_nothing_preliminary() -> None:
    assert not findings.about_certainty([45, 0], [], "J", LabelCost()).is_preliminary
    assert findings.about_certainty([45, 6, 0], [], "J", LabelCost()).is_preliminary
    said = [findings.preliminary_sentence(counts) for counts in ([45, 0], [0, 0], [45, 6, 0])]
    assert said == ["", "", "1 of 2 figures is based on fewer than 30 independent items: preliminary."]


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
