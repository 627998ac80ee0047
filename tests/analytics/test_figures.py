"""Figures, heatmaps, sentences, charts and CSV text: everything about the page that needs no database."""

from __future__ import annotations

import csv
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.utils import translation

from analytics import charts, figures, score_views
from analytics.figures import Figure, Figures, HeatCell, Heatmap, Labelled, heatmap, spread
from analytics.stats.core.messages import approximate, conservative
from analytics.templatetags.figures import estimate
from annotation.writers.csv import csv_lines

NAMES = {"a": "Grammar", "b": "Fluency", "et": "Estonian", "ar": "Arabic", "ja": "Japanese"}


def figure(value: float | None = 0.71, low: float | None = 0.64, high: float | None = 0.77, **parts: Any) -> Figure:
    counts = {"n_items": 120, "n_raters": 3, "n_ratings": 360}
    given = {"statistic": "krippendorff_alpha", "criterion": "a", **counts, **parts}
    return Figure(value=value, low=low, high=high, reason="" if value is not None else "only one rater", **given)


class TestSpelling:
    def test_an_estimate_as_the_page_prints_it(self) -> None:
        assert str(figure()) == "0.71 [0.64, 0.77] · 120 items × 3 raters"

    @pytest.mark.parametrize(("said", "word"), [(approximate, "approximate"), (conservative, "conservative")])
    def test_the_word_beside_an_interval_and_its_reason(self, said: Any, word: str) -> None:
        marked = figure(method=said("Wilson t", "near 0"))
        assert marked.mark == word and marked.made == f"Wilson t ({word}: near 0)"
        assert f'</span> <span class="approximate">{word}</span>' in estimate(marked)
        without = figure(low=None, high=None, method=said("Wilson t", "near 0"))
        assert without.mark == "" and 'class="approximate"' not in estimate(figure(method="Wilson t"))

    def test_counts_are_told_apart_where_not_everyone_rated_everything(self) -> None:
        assert figure(n_ratings=359).basis == "120 items, 3 raters, 359 ratings"

    @pytest.mark.parametrize(
        ("statistic", "value", "number"),
        [
            ("krippendorff_alpha", -0.123, "−0.12"),
            ("krippendorff_alpha", -0.001, "0.00"),
            ("bias", 0.5, "+0.50"),
            ("bias", -0.004, "0.00"),
            ("percent_agreement", 0.666, "67%"),
        ],
    )
    def test_numbers(self, statistic: str, value: float, number: str) -> None:
        assert figure(value, statistic=statistic).number == number

    @pytest.mark.parametrize(
        ("value", "low", "high", "shown"),
        [
            (0.0005, 0.0002, 0.0009, "+0.0005 [+0.0002, +0.0009]"),
            (0.0, -0.0009, 0.0009, "0.00 [0.00, 0.00]"),
            (-0.1, -0.2, -0.004, "−0.100 [−0.200, −0.004]"),
            (0.1, 1e-9, 0.2, "+0.100000 [0.000000, +0.200000]"),
        ],
    )
    def test_a_difference_has_the_digits_that_show_its_sign(
        self, value: float, low: float, high: float, shown: str
    ) -> None:
        difference = figure(value, low, high, statistic="bias")
        assert f"{difference.number} {difference.interval}" == shown

    def test_numbers_and_intervals_keep_their_order_in_right_to_left_text(self) -> None:
        with translation.override("ar"):
            assert [figure(value).number for value in (-0.5, 0.5)] == ["\u2066−0.50\u2069", "\u20660.50\u2069"]
            shown = figure(0.5, low=0.4, high=0.6)
            assert (shown.interval[0], shown.interval[-1]) == (shown.span[0], shown.span[-1]) == ("\u2066", "\u2069")

    def test_shares_have_a_real_minus_and_no_minus_zero(self) -> None:
        shown = figure(-0.12, statistic="percent_agreement", low=-0.3, high=-0.001)
        assert (shown.number, shown.interval) == ("−12%", "[−30, 0]")

    @pytest.mark.parametrize(
        ("n_ratings", "basis"), [(300, "150 items × 2 repeats"), (301, "150 items, 301 scores"), (0, "150 items")]
    )
    def test_repeats_are_counted_as_repeats_of_one_judge(self, n_ratings: int, basis: str) -> None:
        assert figure(0.1, statistic="flip_rate", n_items=150, n_raters=1, n_ratings=n_ratings).basis == basis

    def test_where_nobody_rates_no_rater_is_named(self) -> None:
        assert figure(0.1, n_items=150, n_raters=0, n_ratings=0).basis == "150 items"

    def test_a_percentage_spells_its_interval_in_percent(self) -> None:
        assert figure(0.5, 0.25, 0.75, statistic="percent_agreement").interval == "[25, 75]"

    def test_an_undefined_figure_says_why(self) -> None:
        assert str(figure(None, None, None)) == "undefined: only one rater · 120 items × 3 raters"

    def test_a_figure_without_interval_says_why(self) -> None:
        told = str(figure(low=None, high=None, interval_reason="an interval needs two items"))
        assert told == "0.71 · 120 items × 3 raters · no interval: an interval needs two items"


def test_a_figure_is_found_by_what_it_is_about() -> None:
    rows = [
        {"statistic": "mae", "criterion": "a", "language": "et", "judge": "j", "value": 1.0, "n_items": 3},
        {"statistic": "mae", "criterion": "a", "judge": "j", "value": 2.0, "seed": 5},
    ]
    found = Figures(rows)
    assert [found.get("mae", "a", tag, "j").value for tag in ("et", None)] == [1.0, 2.0]
    assert found.get("mae", "a", "et") is None


def test_the_spread_of_criteria_pools_nothing() -> None:
    found = spread([figure(0.2, criterion="b"), figure(0.9), figure(None, None, None, criterion="c"), figure(0.4)])
    assert (found.median_number, found.lowest.criterion, found.highest.value, found.count) == ("0.40", "b", 0.9, 3)
    assert spread([figure(None, None, None)]) is None


class TestHeatmap:
    @pytest.mark.parametrize(
        ("value", "ink"), [(-0.5, 1), (0.19, 1), (0.3, 2), (0.64, 5), (0.79, 6), (0.8, 7), (1.0, 7), (None, None)]
    )
    def test_bins(self, value: float | None, ink: int | None) -> None:
        assert HeatCell("a", "et", figure(value)).bin == ink

    def test_few_items_mute_a_cell_and_do_not_blank_it(self) -> None:
        few = HeatCell("a", "et", figure(n_items=29))
        assert (few.is_muted, few.bin, HeatCell("a", "et", figure(n_items=30)).is_muted) == (True, 6, False)

    def test_low_agreement_asks_for_a_look_unless_chance_is_in_it(self) -> None:
        assert HeatCell("a", "et", figure(0.39)).needs_attention
        assert not HeatCell("a", "et", figure(0.4)).needs_attention
        assert not HeatCell("a", "et", figure(0.1, statistic="percent_agreement")).needs_attention
        assert not HeatCell("a", "et", figure(None)).needs_attention

    def test_all_languages_stand_apart_and_only_beside_several(self) -> None:
        both = heatmap(Figures([]), statistic="gwet_ac", criteria=["a"], languages=["ar", "et"])
        assert (both.languages, len(both.cells), len(both.undefined)) == (("ar", "et", None), 2, 3)
        assert heatmap(Figures([]), statistic="gwet_ac", criteria=["a"], languages=["et"]).languages == ("et",)


def _heat(values: dict[tuple[str, str], float | None], n_items: int = 120) -> Heatmap:
    rows = [
        {"statistic": "gwet_ac", "criterion": key, "language": tag, "value": value, "n_items": n_items, "reason": "r"}
        for (key, tag), value in values.items()
    ]
    tags = sorted({tag for _key, tag in values})
    return heatmap(Figures(rows), statistic="gwet_ac", criteria=sorted({key for key, _tag in values}), languages=tags)


class TestSentences:
    def test_the_weakest_criterion_is_named_when_it_is_so_in_most_languages(self) -> None:
        heat = _heat(
            {("a", "et"): 0.8, ("b", "et"): 0.2, ("a", "ar"): 0.7, ("b", "ar"): 0.3, ("a", "ja"): 0.1, ("b", "ja"): 0.2}
        )
        told = figures.on_agreement(heat, NAMES.__getitem__)
        assert told.startswith("Fluency has the lowest agreement in 2 of 3 languages.")

    def test_no_criterion_is_blamed_without_a_majority(self) -> None:
        heat = _heat({("a", "et"): 0.8, ("b", "et"): 0.2, ("a", "ar"): 0.1, ("b", "ar"): 0.3})
        assert figures.on_agreement(heat, NAMES.__getitem__).startswith("No criterion has the lowest agreement")

    def test_of_one_criterion_languages_are_compared(self) -> None:
        heat = _heat({("a", "et"): 0.81, ("a", "ar"): 0.1, ("a", "ja"): 0.3})
        told = figures.on_agreement(heat, NAMES.__getitem__, str.upper)
        assert "lowest in AR (0.10) and highest in ET (0.81)" in told
        assert "nothing to compare" in figures.on_agreement(_heat({("a", "et"): 0.8}), NAMES.__getitem__)

    def test_few_items_of_single_languages_are_not_said_of_all_of_them(self) -> None:
        heat = _heat({("a", "et"): 0.8, ("a", "ar"): 0.2}, n_items=9)
        firm = {"statistic": "gwet_ac", "criterion": "a", "language": None, "value": 0.5, "n_items": 40, "reason": "r"}
        cells = (*heat.rows[0][1][:-1], HeatCell("a", None, Figure.of(firm)))
        told = figures.on_agreement(Heatmap("gwet_ac", heat.languages, (("a", cells),)), NAMES.__getitem__)
        assert told.startswith("Single languages: Every cell is based on fewer than 30 items (9 at most)")

    def test_few_items_are_said_before_anything_else(self) -> None:
        heat = _heat({("a", "et"): 0.8, ("b", "et"): 0.2}, n_items=9)
        assert "fewer than 30 items (9 at most)" in figures.on_agreement(heat, NAMES.__getitem__)

    def test_nothing_defined_is_said_too(self) -> None:
        assert "No cell has a value yet" in figures.on_agreement(_heat({("a", "et"): None}), NAMES.__getitem__)

    def test_bias_is_named_only_where_the_interval_excludes_zero(self) -> None:
        found = [
            figure(-0.4, -0.6, -0.2, statistic="bias", language="ar"),
            figure(-0.3, -0.5, -0.1, statistic="bias", language="ja"),
            figure(0.1, -0.1, 0.3, statistic="bias", language="et"),
        ]
        told = figures.on_bias(found, NAMES.__getitem__)
        assert told == "The judge scores lower than the panel in Arabic and Japanese."
        few = figure(-0.9, -1.2, -0.6, statistic="bias", language="ja", n_items=25)
        sentence = "No interval with at least 30 items and clusters excludes zero."
        assert figures.on_bias([*found[2:], few], NAMES.__getitem__).startswith(sentence)
        assert "No language has an interval" in figures.on_bias([], NAMES.__getitem__)

    def test_lower_and_higher_scores_are_both_named(self) -> None:
        found = [
            figure(-0.4, -0.6, -0.2, statistic="bias", language="ar"),
            figure(0.4, 0.2, 0.6, statistic="bias", language="et"),
        ]
        told = figures.on_bias(found, NAMES.__getitem__)
        assert told == "The judge scores lower than the panel in Arabic and higher in Estonian."

    def test_nearest_and_farthest_criterion(self) -> None:
        kappas = [figure(0.6, statistic="cohen_kappa"), figure(-0.1, statistic="cohen_kappa", criterion="b")]
        told = figures.on_calibration(kappas, NAMES.__getitem__)
        assert told.endswith("the judge is closest to the panel on Grammar (0.60) and farthest on Fluency (−0.10).")
        assert "a κ of 0.60" in figures.on_calibration(kappas[:1], NAMES.__getitem__)
        assert "κ has no value yet" in figures.on_calibration([], NAMES.__getitem__)


class TestMode:
    def test_a_language_half_of_which_is_lost_is_named_however_small_its_share_of_all(self) -> None:
        """2 of 4 Thai items are lost; of all 104 that is under a tenth."""
        counts = [figure(n, statistic="without_reference", language=tag, n_items=kept)
                  for tag, n, kept in (("et", 4, 96), ("th", 2, 2))]  # fmt: skip
        assert score_views.on_mode(counts).startswith(
            "The judge’s figures leave out 6 of 104 cells: the annotators are"
        )
        worst = score_views.mode_cells(counts, NAMES.__getitem__, {"et": "Estonian", "th": "Thai"}.__getitem__)
        assert worst == "2 of 4 items (Grammar, Thai)"
        assert score_views.on_mode(counts[:1]) == ""

    def test_of_many_cells_the_worst_are_named(self) -> None:
        counts = [figure(n, statistic="without_reference", language="et", n_items=10 - n, criterion=criterion)
                  for n, criterion in ((2, "a"), (5, "b"), (3, "c"), (4, "d"))]  # fmt: skip
        worst = score_views.mode_cells(counts, str, lambda tag: "Estonian")
        assert worst == (
            "5 of 10 items (b, Estonian), 4 of 10 items (d, Estonian), 3 of 10 items (c, Estonian) and 1 more"
        )


class TestForest:
    ROWS = (
        Labelled("Estonian", figure(0.02, -0.2, 0.3, statistic="bias")),
        Labelled("Arabic", figure(-0.45, -0.66, -0.2, statistic="bias", n_items=9)),
        Labelled("Japanese", figure(None, None, None, statistic="bias")),
    )

    def test_the_spec_orders_by_value_and_leaves_out_the_undefined(self) -> None:
        spec = charts.forest(self.ROWS, longest_name=8)
        points = spec["layer"][2]["encoding"]
        assert points["y"]["sort"] == ["Arabic", "Estonian"]
        assert [value["is_clear"] for value in spec["data"]["values"]] == [False, True]
        low, high = points["x"]["scale"]["domain"]
        assert low < -0.66 < 0.3 < high

    def test_it_takes_the_pages_colours_and_nothing_that_could_meet_its_styles(self) -> None:
        drawn = charts.svg(charts.forest(self.ROWS, longest_name=8))
        assert drawn.startswith("<svg")
        assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', drawn)) <= {*charts.COLOURS.values(), "none"}
        assert {"var(--brass)", "var(--accent)", "var(--ink)"} <= set(re.findall(r"var\([^)]+\)", drawn))
        assert not re.search(r" (?:id|class|style|role|on\w+)=|<script|<style|href|url\(", drawn)
        assert "Estonian" in drawn
        assert "Japanese" not in drawn

    @pytest.mark.parametrize("theme", figures.THEMES)
    def test_a_file_of_its_own_has_the_themes_plain_colours(self, theme: str) -> None:
        drawn = charts.svg(charts.forest(self.ROWS, longest_name=8))
        file = figures.alone(drawn, {}, title="Fluency & more", theme=theme)
        assert figures.THEMES[theme]["brass"] in file
        assert "var(" not in file
        assert ET.fromstring(file)[0].text == "Fluency & more"

    @pytest.mark.parametrize("width", charts.WIDTHS)
    def test_words_are_filled_in_for_the_reader_and_escaped(self, width: str) -> None:
        marked = figure(0.1, -0.1, 0.3, statistic="bias", method=approximate("t", "heavy"))
        rows = (*self.ROWS, Labelled(figures.stands_for("2"), marked))
        drawn = charts.svg(charts.forest(rows, longest_name=8, width=width))
        words = {"2": "<b onload=x>\x00{axis:}</b>", "approximate": "ligikaudne", "axis": "← vähem · rohkem →"}
        shown = figures.inline(drawn, words)
        texts = ["".join(each.itertext()) for each in ET.fromstring(shown).iter() if each.text]
        assert texts.count("ligikaudne") == 1
        assert texts.count("← vähem · rohkem →") == 1
        assert texts.count("<b onload=x>{axis:}</b>") == 1

    @pytest.mark.parametrize("width", charts.WIDTHS)
    def test_the_picture_keeps_its_width_whatever_the_names_and_values(self, width: str) -> None:
        found = [
            re.search(r' width="(\d+)"', charts.svg(charts.forest(self.ROWS, longest_name=letters, width=width)))
            for letters in (3, 24)
        ]
        assert all(each and int(each[1]) <= charts.WIDTHS[width] + 90 for each in found), found

    def test_nothing_to_draw_is_still_a_picture(self) -> None:
        assert charts.svg(charts.forest([], longest_name=0)).startswith("<svg")


class TestDelimited:
    def test_what_looks_like_a_formula_is_quoted_and_numbers_are_not(self) -> None:
        row = ["=1+1", "@x", "-a", "\tb", "＝c", "plain", -1.0, 2.0, 0.1, True, None, 3]
        header, line = csv_lines(["x"] * 12, [row])
        assert header == ",".join(["x"] * 12) + "\n"
        assert next(csv.reader([line])) == [
            "'=1+1", "'@x", "'-a", "'\tb", "'＝c", "plain", "-1", "2", "0.1", "true", "", "3",
        ]  # fmt: skip

    def test_a_line_is_made_when_it_is_asked_for(self) -> None:
        def rows() -> Any:
            yield ["first"]
            raise AssertionError("asked for the second row")

        made = csv_lines(["x"], rows())
        assert [next(made), next(made)] == ["x\n", "first\n"]


class TestFewClusters:
    """120 items of 3 scenarios tell no more than 3 items would."""

    FEW = figure(-0.5, -0.7, -0.3, statistic="bias", language="et", n_items=120, n_clusters=3)

    def test_its_clusters_are_counted_and_it_is_muted(self) -> None:
        assert "3 clusters" in self.FEW.basis
        assert self.FEW.is_small
        assert "50 clusters" in figure(0.5, n_items=50, n_clusters=50).basis

    def test_no_sentence_concludes_from_it(self) -> None:
        preliminary = "Every cell is based on fewer than 30 clusters (3 at most): treat these figures as preliminary."
        assert figures.on_bias([self.FEW], NAMES.__getitem__) == preliminary
        assert figures.on_calibration([self.FEW], NAMES.__getitem__) == preliminary

    def test_without_an_interval_it_says_how_many_items_it_rests_on(self) -> None:
        alone = figure(-2.0, None, None, statistic="bias", n_items=3, interval_reason="no unit differs")
        assert alone.no_interval == "no interval: 3 items"
        many = figure(0.0, None, None, n_items=26, interval_reason="no unit differs")
        assert many.no_interval == "no interval: no unit differs"


def test_what_is_printed_as_the_threshold_is_not_marked_as_below_it() -> None:
    def marked(value: float) -> bool:
        return figures.HeatCell("a", "et", figure(value, statistic="krippendorff_alpha")).needs_attention

    assert [marked(value) for value in (0.394, 0.396, 0.4)] == [True, False, False]


def test_of_one_language_no_share_of_languages_is_given() -> None:
    rows = [
        {"statistic": "krippendorff_alpha", "criterion": key, "language": "et", "value": value, "n_items": 90}
        for key, value in (("a", 0.3), ("b", 0.7))
    ]
    heat = figures.heatmap(Figures(rows), statistic="krippendorff_alpha", criteria=["a", "b"], languages=["et"])
    sentence = "Grammar has the lowest agreement of the criteria with at least 30 items and clusters."
    assert figures.on_agreement(heat, NAMES.__getitem__) == sentence


@pytest.mark.parametrize(("low", "high"), [(-0.08, 0.06), (-0.4, 0.3), (-2.6, 1.0), (-60.0, 75.0)])
@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_no_two_ticks_of_the_axis_bear_the_same_number(low: float, high: float, width: str) -> None:
    rows = [Labelled("Estonian", figure((low + high) / 2, low, high, statistic="bias"))]
    labels = re.findall(r">([+−]?[\d.]+)<", charts.svg(charts.forest(rows, longest_name=8, width=width)))
    assert len(labels) >= 2
    assert len(set(labels)) == len(labels)
    assert "0" in labels
