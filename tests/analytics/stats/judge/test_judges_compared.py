"""Judges side by side: values by hand and by other packages, effects by a regression, coverage by simulation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.scales import Scale
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import comparison

SCALE = {"clarity": Scale(points=(0.0, 1.0, 2.0, 3.0), level="ordinal")}
RULES = [(["clarity"], None, "exclude")]
STYLES, TEMPERATURES = ("name", "anchors", "reasons"), ("0", "0.7")
LEVELS = {f"{style} {t}": {"style": style, "temperature": t} for style, t in product(STYLES, TEMPERATURES)}
JUDGES = sorted(LEVELS)


def rows(seed: int = 1, scenarios: int = 20, repeats: int = 2, **bias: float) -> pd.DataFrame:
    """Three people, and a judge for each combination of levels, on scenarios with two items of each language."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    for scenario, language, copy in product(range(scenarios), ("en", "et"), range(2)):
        truth = rng.integers(0, 4)
        about = {"item": f"{scenario}-{language}-{copy}", "cluster": f"s{scenario}", "language": language}
        about |= {"criterion": "clarity"}
        for person in range(3):
            score = int(np.clip(truth + rng.choice([-1, 0, 0, 0, 1]), 0, 3))
            found.append({**about, "rater": f"p{person}", "rater_kind": "annotator", "score": score, "repeat": 1})
        for judge, levels in LEVELS.items():
            off = 0.3 + bias.get(levels["style"], 0.0)
            for repeat in range(1, repeats + 1):
                score = int(np.clip(truth + (rng.random() < off), 0, 3))
                own = {"rater": judge, "rater_kind": "judge", "score": score, "repeat": repeat}
                found.append({**about, **own})
    return pd.DataFrame(found)


def report(frame: pd.DataFrame, scales: dict[str, Scale] | None = None, **options: Any) -> list[CellEstimate]:
    table = ratings_table(frame, scales=scales or SCALE)
    options = {"judges": JUDGES, "rules": RULES, "levels": LEVELS, "bootstrap": 400, **options}
    return comparison.comparison_report(table, **options)


def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each common item, judge and repeat: x and the panel's mode y."""
    people = frame[frame["rater_kind"] == "annotator"]
    modes = people.groupby("item")["score"].agg(lambda scores: scores.mode().tolist())
    y = modes[modes.map(len) == 1].map(lambda each: each[0])
    judged = frame[(frame["rater_kind"] == "judge") & frame["item"].isin(y.index) & frame["score"].notna()]
    complete = judged.groupby("item")["rater"].nunique() == len(JUDGES)
    judged = judged[judged["item"].isin(complete.index[complete])]
    return judged.assign(y=judged["item"].map(y))


def values(found: list[CellEstimate], statistic: str, **cell: str | None) -> dict[str, float]:
    return {
        row.judge or row.estimate.variant or " - ".join(row.raters or ()): row.estimate.value
        for row in found
        if row.estimate.statistic == statistic and all(row.cell[name] == value for name, value in cell.items())
    }


class TestValues:
    def test_accuracy_and_mae_are_those_computed_by_hand(self) -> None:
        frame = rows()
        found = report(frame)
        for language in ("en", "et"):
            expected = by_hand(frame[frame["language"] == language])
            right = (expected["score"] == expected["y"]).groupby(expected["rater"]).mean()
            off = (expected["score"] - expected["y"]).abs().groupby(expected["rater"]).mean()
            assert values(found, "accuracy", language=language) == pytest.approx(right.to_dict())
            assert values(found, "mae", language=language) == pytest.approx(off.to_dict())

    def test_kappa_is_that_of_scikit_learn_with_and_without_weights(self) -> None:
        from sklearn.metrics import cohen_kappa_score

        frame = rows()
        expected = by_hand(frame[frame["language"] == "et"])
        nominal = {"clarity": Scale(points=(0.0, 1.0, 2.0, 3.0), level="nominal")}
        for scales, weights in ((SCALE, "quadratic"), (nominal, None)):
            kappas = {
                judge: cohen_kappa_score(mine["score"], mine["y"], weights=weights, labels=[0, 1, 2, 3])
                for judge, mine in expected.groupby("rater")
            }
            assert values(report(frame, scales), "kappa", language="et") == pytest.approx(kappas)

    def test_items_that_one_judge_left_out_are_counted_and_compared_for_none(self) -> None:
        frame = rows(repeats=1)
        gone = (frame["rater"] == JUDGES[0]) & frame["item"].isin(["1-en-0", "2-en-0"])
        frame.loc[gone, "score"] = np.nan
        frame.loc[(frame["rater_kind"] == "annotator") & (frame["item"] == "3-en-0"), "score"] = [0, 1, 2]  # no mode
        found = report(frame)
        left_out = {
            row.judge: row.estimate.value
            for row in found
            if row.estimate.statistic == "left_out" and row.cell["language"] == "en"
        }
        common = by_hand(frame[frame["language"] == "en"])["item"].nunique()
        assert values(found, "common_items", language="en") == {"": common}
        assert {row.estimate.n_items for row in found if row.cell["language"] == "en"} == {common}
        assert left_out[JUDGES[0]] == 2 - sum(
            len(set(frame[(frame["item"] == item) & (frame["rater_kind"] == "annotator")]["score"])) == 3
            for item in ("1-en-0", "2-en-0")
        )
        assert left_out[None] >= 1
        assert {left_out[judge] for judge in JUDGES[1:]} == {0}

    def test_differences_are_paired_and_have_the_clusters_error(self) -> None:
        """Against the ratio estimator's linearised error over scenarios, which needs no resampling."""
        frame = rows(scenarios=60)
        found = report(frame, bootstrap=4000)
        expected = by_hand(frame[frame["language"] == "et"])
        right = expected.assign(right=expected["score"] == expected["y"])
        of_item = right.groupby(["cluster", "item", "rater"])["right"].mean().unstack()
        d = of_item[JUDGES[0]] - of_item[JUDGES[1]]
        sums, sizes = d.groupby("cluster").sum(), d.groupby("cluster").size()
        c = len(sums)
        se = np.sqrt(c / (c - 1) * ((sums - d.mean() * sizes) ** 2).sum()) / sizes.sum()
        pair = next(
            row.estimate
            for row in found
            if row.estimate.statistic == "accuracy_difference"
            and row.raters == (JUDGES[0], JUDGES[1])
            and row.cell["language"] == "et"
        )
        assert pair.value == pytest.approx(d.mean())
        assert pair.se == pytest.approx(se, rel=0.06)
        assert pair.n_clusters == c

    def test_more_judges_are_compared_with_the_one_that_is_asked_for(self) -> None:
        found = report(rows(), against=JUDGES[2], bootstrap=0)
        pairs = {row.raters for row in found if row.estimate.statistic == "mae_difference"}
        assert pairs == {(judge, JUDGES[2]) for judge in JUDGES if judge != JUDGES[2]}
        assert all(row.estimate.interval_reason for row in found)


class TestEffects:
    def test_main_effects_are_those_of_a_regression_on_effect_codes(self) -> None:
        import statsmodels.formula.api as smf

        found = report(rows(name=0.3), bootstrap=0)
        accuracy = values(found, "accuracy", language="en")
        frame = pd.DataFrame([{**LEVELS[judge], "value": accuracy[judge]} for judge in JUDGES])
        fit = smf.ols("value ~ C(style, Sum) + C(temperature, Sum)", frame).fit()
        effects = values(found, "accuracy_effect", language="en")
        for style in ("anchors", "name"):  # the last in the alphabet is the negative sum
            assert effects[f"style = {style}"] == pytest.approx(fit.params[f"C(style, Sum)[S.{style}]"])
        assert effects["temperature = 0"] == pytest.approx(fit.params["C(temperature, Sum)[S.0]"])
        assert sum(effects[f"style = {style}"] for style in STYLES) == pytest.approx(0, abs=1e-12)

    def test_interactions_are_what_main_effects_leave(self) -> None:
        levels = [LEVELS[judge] for judge in JUDGES]
        y = np.random.default_rng(3).normal(size=len(JUDGES))
        means = pd.DataFrame(levels).assign(y=y).pivot_table(index="style", columns="temperature", values="y")
        left = means.sub(means.mean(axis=1), axis=0).sub(means.mean(axis=0), axis=1) + y.mean()
        found = {contrast.name: float(y @ contrast.weights) for contrast in comparison.interactions(levels)}
        assert len(found) == 3  # of a factor with two levels one is told
        for name, value in found.items():
            style, t = (part.partition(" = ")[2] for part in name.split(" × "))
            assert value == pytest.approx(left.loc[style, t])

    def test_factors_that_go_together_are_undefined_in_words(self) -> None:
        levels = [{"style": "name", "temperature": "0"}, {"style": "anchors", "temperature": "0.7"}]
        assert [contrast.weights for contrast in comparison.main_effects(levels)] == [None] * 4

    def test_an_effect_that_is_there_is_found_on_the_mean_of_the_cells(self) -> None:
        found = report(rows(scenarios=40, name=0.4))
        effect = next(
            row.estimate
            for row in found
            if row.estimate.statistic == "accuracy_effect"
            and row.cell["language"] is None
            and row.estimate.variant == "style = name"
        )
        assert effect.high < 0
        assert (effect.note or "").startswith("mean of 2 cells; Holm p ")
        assert effect.family == 15
        interaction = next(row.estimate for row in found if row.estimate.statistic == "accuracy_interaction")
        assert interaction.method.endswith("Bonferroni over 3")


def test_the_same_seed_gives_the_same_report_whatever_the_order_of_rows() -> None:
    frame = rows(scenarios=8)
    shuffled = frame.sample(frac=1, random_state=5)
    first, second = ([row.as_row() for row in report(each, bootstrap=200)] for each in (frame, shuffled))
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one["value"] == pytest.approx(other["value"])
        assert one["low"] == pytest.approx(other["low"])


def test_differences_and_effects_of_a_measure_are_each_one_family() -> None:
    """Holm's p of every difference is that of statsmodels over all differences of the measure, whatever the cell."""
    found = [row.estimate for row in report(rows(scenarios=8), bootstrap=200)]
    for statistic in ("accuracy_difference", "kappa_difference", "accuracy_effect"):
        tested = [estimate for estimate in found if estimate.statistic == statistic and estimate.p is not None]
        assert len(tested) > 1
        assert {estimate.family for estimate in tested} == {len(tested)}
        expected = multipletests([estimate.p for estimate in tested], method="holm")[1]
        assert [estimate.p_corrected for estimate in tested] == pytest.approx(list(expected))
        assert all(f"in a family of {len(tested)}" in estimate.note for estimate in tested)
    assert all(row.p is None for row in found if row.statistic in ("accuracy", "accuracy_interaction", "common_items"))


@pytest.mark.slow
def test_intervals_cover_in_twenty_scenarios() -> None:
    """100 small studies in which nothing differs: at least 88 of 100 intervals hold 0 (bench/ has the long run)."""
    held = dict.fromkeys(("accuracy_difference", "kappa_difference", "accuracy_effect"), 0)
    for seed in range(100):
        frame = rows(seed=1000 + seed, repeats=1)
        found = report(frame[frame["language"] == "en"], statistics=list(held), bootstrap=200)
        for statistic in held:
            estimate = next(row.estimate for row in found if row.estimate.statistic == statistic)
            held[statistic] += estimate.low is None or estimate.low <= 0 <= estimate.high
    assert min(held.values()) >= 88, held


class TestMeanOfCells:
    """What the mean over cells takes, on items whose truth is known."""

    @staticmethod
    def cell(language: str, criterion: str, right: dict[str, float]) -> list[dict[str, Any]]:
        """40 items of two points; each judge is right on the first share of each half."""
        found: list[dict[str, Any]] = []
        for number in range(40):
            about = {"item": f"{language}-{number}", "cluster": f"{language}{number}", "language": language}
            about |= {"criterion": criterion, "repeat": 1}
            truth = number % 2
            found.append({**about, "rater": "p", "rater_kind": "annotator", "score": truth})
            for judge, share in right.items():
                score = truth if number < 40 * share else 1 - truth
                found.append({**about, "rater": judge, "rater_kind": "judge", "score": score})
        return found

    def report(self, cells: list[list[dict[str, Any]]], levels: dict[str, str]) -> list[CellEstimate]:
        scales = {name: Scale(points=(0.0, 1.0), level=level) for name, level in levels.items()}
        frame = pd.DataFrame([row for cell in cells for row in cell])
        return report(frame, scales, judges=["A", "B", "C"], rules=[(list(levels), None, "exclude")], bootstrap=0)

    def test_cells_of_different_judges_have_no_mean(self) -> None:
        first = self.cell("en", "clarity", {"A": 0.5, "B": 1.0})
        second = self.cell("et", "clarity", {"A": 0.5, "C": 0.25})
        found = self.report([first, second], {"clarity": "ordinal"})
        assert values(found, "accuracy", language="en") == {"A": 0.5, "B": 1.0}
        assert values(found, "accuracy", language=None) == {}
        assert values(found, "accuracy_difference", language=None) == {}

    def test_cells_without_one_judge_are_left_out_and_counted(self) -> None:
        everyone = {"A": 0.5, "B": 1.0, "C": 0.25}
        cells = [self.cell(language, "clarity", everyone) for language in ("en", "et")]
        found = self.report([*cells, self.cell("ar", "clarity", {"A": 0.0, "B": 0.0})], {"clarity": "ordinal"})
        assert values(found, "accuracy", language=None) == everyone
        notes = {row.estimate.note for row in found if row.cell["language"] is None}
        assert notes == {"mean of 2 cells; left out without a value of every judge: 1"}

    def test_kappas_with_and_without_weights_are_not_averaged(self) -> None:
        everyone = {"A": 0.5, "B": 1.0, "C": 0.25}
        ordered = [self.cell(language, "clarity", everyone) for language in ("en", "et")]
        nominal = [self.cell("en", "kind", {"A": 1.0, "B": 0.0, "C": 0.0})]
        found = self.report([*ordered, *nominal], {"clarity": "ordinal", "kind": "nominal"})
        assert values(found, "kappa", language=None) == pytest.approx({"A": 0.0, "B": 1.0, "C": -0.5})
        whole = {row.estimate.note for row in found if row.cell["language"] is None and row.judge}
        assert "mean of 2 cells; left out on nominal scales: 1" in whole
        assert values(found, "accuracy", language=None)["A"] == pytest.approx(2 / 3)


def with_jury(frame: pd.DataFrame, name: str, members: list[str], tied: list[str]) -> pd.DataFrame:
    """The frame with the majority of these judges' first answers as one more rater, without a score on tied items."""
    first = frame[frame["rater"].isin(members) & (frame["repeat"] == 1)]
    jury = first.groupby("item").agg(
        {"cluster": "first", "language": "first", "criterion": "first", "score": lambda scores: scores.mode().iloc[0]}
    )
    jury = jury.reset_index().assign(rater=name, rater_kind="jury", repeat=0)
    jury["missing_reason"] = np.where(jury["item"].isin(tied), "tied", None)
    jury.loc[jury["item"].isin(tied), "score"] = np.nan
    return pd.concat([frame, jury])


class TestJuries:
    """A jury's ties are its own: they take no item from the judges."""

    TIED = ("0-en-0", "1-en-0", "2-en-1", "3-en-0", "4-en-1")

    def both(self, **options: Any) -> tuple[list[CellEstimate], list[CellEstimate], pd.DataFrame]:
        frame = rows(scenarios=25)
        table = with_jury(frame, "jury", JUDGES[:3], list(self.TIED))
        table = with_jury(table, "other jury", JUDGES[2:5], ["5-en-0", "4-en-1"])
        options = {"bootstrap": 200, **options}
        return report(frame, **options), report(table, judges=[*JUDGES, "jury", "other jury"], **options), frame

    def test_judges_have_the_same_figures_with_and_without_it(self) -> None:
        alone, found, _frame = self.both()
        juries = {"jury", "other jury"}
        about_judges = [row for row in found if row.judge not in juries and not juries & set(row.raters or ())]
        assert [row.as_row() for row in about_judges] == [row.as_row() for row in alone]

    def test_it_is_compared_on_the_items_on_which_it_has_a_score(self) -> None:
        _alone, found, frame = self.both()
        common = by_hand(frame[frame["language"] == "en"])
        mine = common[(common["rater"] == JUDGES[0]) & ~common["item"].isin(self.TIED)]
        scores = frame[frame["rater"].isin(JUDGES[:3]) & (frame["repeat"] == 1)].groupby("item")["score"]
        jury = scores.agg(lambda scores: scores.mode().iloc[0])
        of_items = (mine["score"] == mine["y"]).groupby(mine["item"]).mean()
        y = mine.groupby("item")["y"].first()
        expected = of_items.mean() - (jury[y.index] == y).mean()
        here = [row for row in found if row.cell["language"] == "en" and row.raters == (JUDGES[0], "jury")]
        difference = next(row.estimate for row in here if row.estimate.statistic == "accuracy_difference")
        assert difference.value == pytest.approx(expected)
        assert difference.n_items == len(y)
        pair = next(row for row in found if row.raters == ("jury", "other jury") and row.cell["language"] == "en")
        union = {*self.TIED, "5-en-0"}
        assert pair.estimate.n_items == common[~common["item"].isin(union)]["item"].nunique()

    def test_its_tied_items_are_left_out_by_that_name(self) -> None:
        _alone, found, frame = self.both()
        common = set(by_hand(frame[frame["language"] == "en"])["item"])
        left_out = {
            row.estimate.variant: row.estimate.value
            for row in found
            if row.estimate.statistic == "left_out" and row.judge == "jury" and row.cell["language"] == "en"
        }
        assert left_out == {"a tied jury": len(common & set(self.TIED)), "without a score on the scale": 0}

    def test_against_a_jury_every_judge_and_jury_has_one_difference(self) -> None:
        _alone, found, _frame = self.both(against="jury", bootstrap=0)
        pairs = [row.raters for row in found if row.estimate.statistic == "mae_difference" and row.cell["language"]]
        assert set(pairs) == {(name, "jury") for name in [*JUDGES, "other jury"]}
        assert len(pairs) == 2 * len(set(pairs))


class TestSmallCells:
    """Kappa of two items says nothing: it is in no mean and has no effect."""

    @staticmethod
    def small(items: int, language: str) -> list[dict[str, Any]]:
        found = TestMeanOfCells.cell(language, "clarity", {"A": 0.5, "B": 1.0, "C": 0.25})
        return [row for row in found if int(row["item"].partition("-")[2]) < items]

    def figures(self, *cells: list[dict[str, Any]]) -> list[CellEstimate]:
        frame = pd.DataFrame([row for cell in cells for row in cell])
        levels = {"A": {"t": "0"}, "B": {"t": "1"}, "C": {"t": "1"}}
        scales = {"clarity": Scale(points=(0.0, 1.0), level="ordinal")}
        return report(frame, scales, judges=["A", "B", "C"], levels=levels, bootstrap=0)

    def test_the_mean_leaves_them_out_and_counts_them(self) -> None:
        found = self.figures(self.small(40, "en"), self.small(40, "et"), self.small(2, "ar"))
        whole = [row.estimate for row in found if row.cell["language"] is None and row.judge == "C"]
        accuracy = next(estimate for estimate in whole if estimate.statistic == "accuracy")
        assert accuracy.value == 0.25  # with the two items of ar, all of them right, it was 0.5
        assert accuracy.note == "mean of 2 cells; left out with fewer than 10 common items: 1"

    def test_they_have_no_effects(self) -> None:
        found = self.figures(self.small(40, "en"), self.small(9, "ar"))
        effects = {row.cell["language"]: row.estimate for row in found if row.estimate.statistic == "accuracy_effect"}
        assert effects["en"].is_defined
        assert effects["ar"].reason == "fewer than 10 common items"

    def test_without_a_mean_of_several_cells_there_are_no_interactions(self) -> None:
        """They were those of the last cell, whichever it was."""
        frame = rows()
        frame.loc[(frame["language"] == "et") & ~frame["cluster"].isin(["s0", "s1", "s2"]), "score"] = np.nan
        found = [row for row in report(frame, bootstrap=0) if row.estimate.statistic == "accuracy_interaction"]
        assert [(row.cell, row.estimate.reason) for row in found] == [
            ({"language": None, "criterion": None}, comparison.NO_MEAN)
        ]
        alone = report(frame[frame["language"] == "en"], bootstrap=0)
        only = [row for row in alone if row.estimate.statistic == "accuracy_interaction"]
        assert {row.cell["language"] for row in only} == {"en"}
        assert len(only) == 3
