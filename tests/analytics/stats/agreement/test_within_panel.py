"""Annotators left out, pairs, panels, rationales and the items that divide, against independent implementations."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from analytics.stats.agreement import coefficients, within_panel
from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.scales import range_scale, scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table

POINTS = {"flu": scale_of([0, 1, 2, 3], "ordinal"), "topic": scale_of([0, 1, 2], "nominal")}
BY = ("criterion",)


def panel(raters: int = 5, items: int = 40, *, share: float = 0.8, seed: int = 3, **columns: Any) -> RatingsTable:
    """Ordinal and nominal scores of a panel; a fifth is missing; two items make a cluster."""
    rng, rows = np.random.default_rng(seed), []
    for item in range(items):
        truth = rng.random()
        for rater in range(raters):
            scores = {"flu": np.clip(round(3 * truth + rng.normal() * 0.7), 0, 3), "topic": rng.integers(0, 3)}
            for criterion, score in scores.items():
                if rng.random() < share:
                    rows.append((f"i{item:03}", f"c{item // 2}", f"r{rater}", criterion, float(score)))
    frame = pd.DataFrame(rows, columns=["item", "cluster", "rater", "criterion", "score"])
    return ratings_table(frame.assign(**columns), scales=POINTS)


def wide(table: RatingsTable, criterion: str) -> pd.DataFrame:
    frame = table.frame[table.frame["criterion"] == criterion]
    return frame.pivot(index="item", columns="rater", values="score")


def alpha(scores: pd.DataFrame, level: str) -> float:
    return float(
        krippendorff.alpha(
            reliability_data=scores.to_numpy().T,
            level_of_measurement=level,
            value_domain=[0, 1, 2, 3] if level == "ordinal" else [0, 1, 2],
        )
    )


def of(rows: list[CellEstimate], statistic: str, **about: Any) -> list[CellEstimate]:
    return [
        row
        for row in rows
        if row.estimate.statistic == statistic
        and all(row.cell.get(key, getattr(row, key, None)) == value for key, value in about.items())
    ]


def kappa_of(first: Any, second: Any, weights: str | None) -> float:
    """On the whole scale: scikit-learn else closes the gap of a point that nobody used."""
    return float(cohen_kappa_score(first, second, weights=weights, labels=[0, 1, 2, 3]))


class TestAnnotatorsLeftOut:
    @pytest.mark.parametrize(("criterion", "level"), [("flu", "ordinal"), ("topic", "nominal")])
    def test_alpha_without_each_annotator_and_its_change(self, criterion: str, level: str) -> None:
        table = panel()
        scores = wide(table, criterion)
        names = ("krippendorff_alpha", "krippendorff_alpha_change")
        rows = within_panel.left_out_report(table, by=BY, statistics=names)
        for annotator in scores.columns:
            (without,) = of(rows, names[0], criterion=criterion, annotator=annotator)
            (change,) = of(rows, names[1], criterion=criterion, annotator=annotator)
            expected = alpha(scores.drop(columns=annotator), level)
            assert without.estimate.value == pytest.approx(expected, abs=1e-12)
            assert change.estimate.value == pytest.approx(expected - alpha(scores, level), abs=1e-12)

    def test_the_interval_of_the_change_is_the_jackknife_over_clusters(self) -> None:
        table = panel(items=24)
        scores = wide(table, "flu")
        cluster = np.arange(len(scores)) // 2
        rows = within_panel.left_out_report(table, by=BY, statistics=["krippendorff_alpha_change"])
        (change,) = of(rows, "krippendorff_alpha_change", criterion="flu", annotator="r2")

        def difference(part: pd.DataFrame) -> float:
            return alpha(part.drop(columns="r2"), "ordinal") - alpha(part, "ordinal")

        without = np.array([difference(scores[cluster != c]) for c in np.unique(cluster)])
        n = len(without)
        se = float(np.sqrt((n - 1) / n * ((without - difference(scores)) ** 2).sum()))
        assert change.estimate.se == pytest.approx(se, rel=1e-6)
        assert change.estimate.n_clusters == 12 and change.estimate.low is not None
        assert change.estimate.low < (change.estimate.value or 0) < (change.estimate.high or 0)

    def test_what_cannot_be_said_is_said_why(self) -> None:
        names = ["krippendorff_alpha", "krippendorff_alpha_change"]
        (pair, other, *_rest) = within_panel.left_out_report(panel(2), by=BY, statistics=names)
        assert "two raters" in str(pair.estimate.reason) and other.estimate.reason == pair.estimate.reason
        (alone, *_rest) = within_panel.left_out_report(panel(1), by=BY, statistics=names)
        assert alone.estimate.reason == within_panel.ONE_RATER
        (slots, *_rest) = within_panel.left_out_report(panel(rater_identified=False), by=BY, statistics=names)
        assert "anonymous" in str(slots.estimate.reason)


class TestPairs:
    @pytest.mark.parametrize(("criterion", "weights"), [("flu", "quadratic"), ("topic", None)])
    def test_kappa_and_percent_of_every_pair(self, criterion: str, weights: str | None) -> None:
        table = panel(7)
        scores = wide(table, criterion)
        rows = within_panel.pair_report(table, by=BY, bootstrap=0)
        for pair in combinations(scores.columns, 2):
            both = scores[list(pair)].dropna()
            kappa = kappa_of(both[pair[0]], both[pair[1]], weights)
            (row,) = of(rows, "cohen_kappa", criterion=criterion, raters=pair)
            (share,) = of(rows, "percent_agreement", criterion=criterion, raters=pair)
            assert row.estimate.value == pytest.approx(kappa, abs=1e-12)
            assert row.estimate.n_items == share.estimate.n_items == len(both)
            assert share.estimate.value == pytest.approx(float((both[pair[0]] == both[pair[1]]).mean()))
        kappas = [
            row.estimate.value for row in of(rows, "cohen_kappa", criterion=criterion) if "r3" in (row.raters or ())
        ]
        (mean,) = of(rows, "cohen_kappa", criterion=criterion, annotator="r3")
        assert mean.estimate.value == pytest.approx(np.mean([value for value in kappas if value is not None]))

    @pytest.mark.slow
    @pytest.mark.parametrize(("criterion", "weights"), [("flu", "quadratic"), ("topic", None)])
    def test_the_matrix_of_a_large_panel_is_the_same(self, criterion: str, weights: str | None) -> None:
        scores = wide(panel(30, 25), criterion)
        codes = scores.fillna(-1).to_numpy().astype(int)
        kappa, _share, n = within_panel.pair_matrices(codes, np.arange(4.0), ordered=weights is not None)
        for a, b in combinations(range(30), 2):
            both = scores.iloc[:, [a, b]].dropna().to_numpy()
            assert n[a, b] == len(both)
            assert kappa[a, b] == pytest.approx(kappa_of(both[:, 0], both[:, 1], weights), abs=1e-12)

    def test_one_category_and_no_common_item_have_no_kappa(self) -> None:
        codes = np.array([[1, 1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 2]])
        for ordered in (True, False):
            kappa, share, n = within_panel.pair_matrices(codes, np.array([0.1, 0.2, 0.7]), ordered=ordered)
            assert np.isnan(kappa[0, 1]) and share[0, 1] == 1 and n[0, 1] == 2
            assert n[0, 2] == 0 and np.isnan(share[0, 2])

    def test_anonymous_raters_have_no_pairs(self) -> None:
        rows = within_panel.pair_report(panel(rater_identified=False), by=BY)
        assert rows and all("anonymous" in str(row.estimate.reason) for row in rows)


class TestPanels:
    def test_the_share_of_items_with_the_same_mode(self) -> None:
        rows = [
            ("a", "p", 1), ("a", "p", 1), ("a", "q", 1), ("b", "p", 0), ("b", "q", 2),
            ("c", "p", 0), ("c", "p", 1), ("c", "q", 1), ("d", "p", 1), ("e", "p", 2), ("e", "q", 2),
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=["item", "panel", "score"])
        frame["rater"] = [f"{panel}{place}" for place, panel in enumerate(frame["panel"])]
        table = ratings_table(frame.assign(criterion="topic"), scales=POINTS)
        (row,) = within_panel.same_mode_report(table, "p", "q", by=BY)
        # a and e the same, b not; the mode of p ties on c; q has no score of d
        assert row.estimate.value == pytest.approx(2 / 3)
        assert (row.estimate.n_items, row.estimate.n_missing, row.estimate.n_ratings) == (3, 1, 7)
        (none,) = within_panel.same_mode_report(table, "p", "nobody", by=BY)
        assert none.estimate.reason == "no item was scored by both"


class TestItems:
    def test_spread_is_the_mean_distance_of_pairs(self) -> None:
        table = panel(6)
        for criterion, scale in POINTS.items():
            scores = wide(table, criterion)
            expected = {}
            for item, row in scores.iterrows():
                given = row.dropna().to_numpy()
                pairs = [abs(a - b) / 3 if criterion == "flu" else float(a != b) for a, b in combinations(given, 2)]
                expected[item] = float(np.mean(pairs)) if pairs else 0.0
            rows = within_panel.spread_report(table.only(criterion=[criterion]), by=BY, most=5)
            spreads = of(rows, "label_spread")
            best = sorted(expected.values(), reverse=True)[:5]
            assert [row.estimate.value for row in spreads] == pytest.approx(best)
            top = spreads[0].cell["item"]
            assert spreads[0].estimate.value == pytest.approx(expected[top])
            shares = {row.estimate.variant: row.estimate.value for row in of(rows, "label_share", item=top)}
            given = scores.loc[top].dropna()
            assert shares == pytest.approx({f"{p:g}": float((given == p).mean()) for p in scale.values})

    def test_scores_on_any_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [("a", "x", 10.0), ("a", "y", 60.0), ("a", "z", 35.0), ("b", "x", 5.0), ("b", "y", 5.0)]
        frame = pd.DataFrame(rows, columns=["item", "rater", "score"]).assign(criterion="slider")
        table = ratings_table(frame, scales={"slider": range_scale(0, 100, None, "interval")})
        for most in (coefficients.MOST_COUNTS, -1):  # by a table of items by points, and by sorted scores
            monkeypatch.setattr(coefficients, "MOST_COUNTS", most)
            (row,) = within_panel.spread_report(table, by=BY)  # no shares: there are no points
            assert row.estimate.value == pytest.approx((50 + 25 + 25) / 3 / 100)

    def test_the_commonest_score(self) -> None:
        table = panel()
        given = wide(table, "flu").stack()
        (row,) = within_panel.commonest_report(table.only(criterion=["flu"]), by=BY)
        assert row.estimate.value == pytest.approx(given.value_counts(normalize=True).iloc[0])
        assert row.estimate.variant == f"{given.mode()[0]:g}"


def test_rationales_of_people_and_judges() -> None:
    table = panel(3)
    lengths = np.where(np.arange(len(table.frame)) % 3 == 0, 0, 10 + np.arange(len(table.frame)))
    judged = table.frame.assign(rationale_length=lengths)
    judged.loc[judged["rater"] == "r2", "rater_kind"] = "judge"
    rows = within_panel.rationale_length_report(RatingsTable(judged, table.scales), by=BY)
    for judge, names in ((None, ["r0", "r1"]), ("r2", ["r2"])):
        own = judged[judged["rater"].isin(names) & (judged["criterion"] == "flu")]["rationale_length"]
        share, length = (row.estimate for row in rows if row.judge == judge and row.cell["criterion"] == "flu")
        assert share.value == pytest.approx(float((own > 0).mean()))
        assert length.value == pytest.approx(float(own[own > 0].median()))
        assert share.low is not None and share.low < (share.value or 0) < (share.high or 0)
        assert length.n_missing == int((own == 0).sum())
