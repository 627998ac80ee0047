"""The choice itself and its certificate, without a database: by hand, and what must not matter."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from annotation.sampling import certificates
from annotation.sampling.draws import MixedFamily, SampleRow, draw_rows, spread_evenly, whole_families
from judging.generation.curation import BalanceRow, balanced_rows
from judging.generation.judge_errors import ComparedFlags, FlagsInSet, error_bounds

ISSUES = ("empathy", "réponse “x”", "تكرار")


def pool(size: int, *, languages: tuple[str, ...] = ("et",), share: float = 0.05, seed: int = 1) -> list[BalanceRow]:
    """A pool with rare issues, top-heavy scores and one generator that wrote most of it."""
    chance = random.Random(seed)
    rows = []
    for number in range(size):
        issues = tuple(issue for issue in ISSUES if chance.random() < share)
        score = "5" if chance.random() < 0.7 else str(chance.randint(1, 5))
        generator = "atlas" if chance.random() < 0.8 else chance.choice(("babel", "cedar"))
        facets = (issues or ("",), (score,), (generator,), (chance.choice(certificates.LENGTHS),))
        rows.append(
            BalanceRow(
                key=f"d{number:05}",
                language=languages[number % len(languages)],
                family=f"s{number // len(languages):05}",
                facets=facets,
                pair=(f"user {number % 2}", generator),
                is_clean=not issues and score == "5",
            )
        )
    return rows


def uneven(rows: list[BalanceRow], places: list[int], facet: int) -> float:
    values = {value for row in rows for value in row.facets[facet]}
    return certificates.unevenness([rows[place].facets[facet] for place in places], values) or 0.0


class TestBalance:
    def test_worked_by_hand(self) -> None:
        """Two of each of three values: after one of each, the next are again one of each."""
        rows = [
            BalanceRow(f"{value}{number}", "et", f"f{value}{number}", ((value,),))
            for value, count in (("a", 10), ("b", 3), ("c", 2))
            for number in range(count)
        ]
        chosen = balanced_rows(rows, n=6, clean_first=False, by_family=False, seed=3)
        assert Counter(rows[place].facets[0][0] for place in chosen) == {"a": 2, "b": 2, "c": 2}
        more = balanced_rows(rows, n=9, clean_first=False, by_family=False, seed=3)
        assert Counter(rows[place].facets[0][0] for place in more) == {"a": 4, "b": 3, "c": 2}

    def test_one_clean_item_for_every_pair_comes_first(self) -> None:
        rows = pool(600)
        chosen = balanced_rows(rows, n=6, clean_first=True, by_family=False, seed=1)
        pairs = {row.pair for row in rows if row.is_clean}
        assert len(pairs) == 6
        assert Counter(rows[place].pair for place in chosen) == dict.fromkeys(pairs, 1)
        assert all(rows[place].is_clean for place in chosen)

    @pytest.mark.parametrize("by_family", [False, True])
    def test_the_seed_decides_and_the_order_of_rows_does_not(self, by_family: bool) -> None:
        rows = pool(900, languages=("ar", "et", "ja"))
        shuffled = random.Random(5).sample(rows, len(rows))
        picks = [
            {given[place].key for place in balanced_rows(given, n=40, clean_first=True, by_family=by_family, seed=seed)}
            for given, seed in ((rows, 7), (shuffled, 7), (rows, 8))
        ]
        assert picks[0] == picks[1] != picks[2]
        assert len(picks[0]) == 120

    def test_another_language_changes_nothing_in_this_one(self) -> None:
        rows = pool(600, languages=("et", "ja"))
        both = balanced_rows(rows, n=30, clean_first=True, by_family=False, seed=2)
        alone = [row for row in rows if row.language == "et"]
        assert {rows[place].key for place in both if rows[place].language == "et"} == {
            alone[place].key for place in balanced_rows(alone, n=30, clean_first=True, by_family=False, seed=2)
        }

    @pytest.mark.parametrize("seed", range(10))
    def test_it_is_more_even_than_a_random_draw(self, seed: int) -> None:
        rows = pool(800, seed=seed)
        chosen = balanced_rows(rows, n=60, clean_first=seed % 2 == 0, by_family=False, seed=seed)
        drawn = random.Random(seed).sample(range(len(rows)), 60)
        for facet in range(3):
            assert uneven(rows, chosen, facet) < uneven(rows, drawn, facet)
        assert uneven(rows, chosen, 3) <= uneven(rows, drawn, 3) + 1 / 60

    def test_families_are_chosen_whole(self) -> None:
        rows = pool(900, languages=("ar", "et", "ja"))
        chosen = balanced_rows(rows, n=50, clean_first=True, by_family=True, seed=1)
        families = Counter(rows[place].family for place in chosen)
        assert len(families) == 50
        assert set(families.values()) == {3}
        assert Counter(rows[place].language for place in chosen) == {"ar": 50, "et": 50, "ja": 50}

    def test_no_language_gets_more_than_asked_for(self) -> None:
        """Families of four items a language do not fit into the last two places."""
        rows = [BalanceRow(f"{f}-{n}", "et", f"{f}", (("x",),)) for f in range(5) for n in range(4)]
        assert len(balanced_rows(rows, n=10, clean_first=False, by_family=True, seed=1)) == 8

    def test_nothing_one_and_all(self) -> None:
        assert balanced_rows([], n=5, clean_first=True, by_family=False, seed=1) == []
        one = pool(1)
        assert balanced_rows(one, n=5, clean_first=True, by_family=False, seed=1) == [0]
        flagged = [row._replace(facets=(("empathy",),), is_clean=False) for row in pool(20)]
        assert len(balanced_rows(flagged, n=8, clean_first=True, by_family=False, seed=1)) == 8

    def test_fifty_thousand_rows_take_ten_seconds_at_most(self) -> None:
        rows = pool(50_000, languages=("ar", "en", "es", "et", "fr", "ja"))
        begun = time.monotonic()
        assert len(balanced_rows(rows, n=100, clean_first=True, by_family=False, seed=1)) == 600
        assert time.monotonic() - begun < 10

    def test_many_equal_rows_are_taken_quickly(self) -> None:
        """All of a pool of one value, also if each item has a simulated user of its own."""
        rows = [
            BalanceRow(f"d{n:06}", "et", f"f{n}", (("x",),), pair=(f"user {n}", "atlas"), is_clean=n % 2 == 0)
            for n in range(20_000)
        ]
        begun = time.process_time()
        for clean_first in (False, True):
            assert len(balanced_rows(rows, n=20_000, clean_first=clean_first, by_family=False, seed=1)) == 20_000
        assert time.process_time() - begun < 20


class TestDraws:
    def test_equal_shares_as_far_as_they_go(self) -> None:
        shares, expected = spread_evenly(11, [2, 9, 9], random.Random(1))
        assert sorted(shares) == [2, 4, 5]
        assert expected == [2, 4.5, 4.5]
        assert spread_evenly(5, [1, 1], random.Random(1)) == ([1, 1], [1, 1])
        assert spread_evenly(5, [], random.Random(1)) == ([], [])

    def test_items_come_as_often_as_their_probability_says(self) -> None:
        rows = [SampleRow(f"d{n}", "et", "g", f"d{n}", "a" if n < 3 else "b") for n in range(12)]
        times: Counter[int] = Counter()
        chances = {}
        for seed in range(600):
            for drawn in draw_rows(rows, n=5, by_family=False, seed=seed):
                times[drawn.place] += 1
                chances[drawn.place] = drawn.probability
        assert {place: round(chance or 0, 4) for place, chance in chances.items()} == {
            place: round(2.5 / 3, 4) if place < 3 else round(2.5 / 9, 4) for place in range(12)
        }
        assert all(abs(times[place] / 600 - (chances[place] or 0)) < 0.08 for place in range(12))

    def test_whole_families_in_all_languages(self) -> None:
        cells = [("s1", "et", "a"), ("s1", "ar", "a"), ("s1", "et", "b"), ("s1", "ar", "b")]
        cells += [("s2", "et", "a"), ("s2", "ar", "a"), ("s2", "et", "b"), ("s3", "et", "a")]
        rows = [
            SampleRow(f"d{n}", language, generator, family) for n, (family, language, generator) in enumerate(cells)
        ]
        assert whole_families(rows, ("ar", "et")) == {"s1"}
        assert whole_families(rows, ("et",)) == {"s1", "s2", "s3"}
        whole = rows[:4]
        drawn = draw_rows(whole, n=3, by_family=True, seed=1)
        assert [row.place for row in drawn] == [0, 1, 2, 3]
        assert {row.probability for row in drawn} == {1.0}
        with pytest.raises(MixedFamily):
            draw_rows([row._replace(stratum=row.generator) for row in whole], n=3, by_family=True, seed=1)

    def test_the_order_of_rows_does_not_matter(self) -> None:
        rows = [SampleRow(f"d{n}", "et", "g", f"d{n}") for n in range(50)]
        turned = rows[::-1]
        keys = {rows[drawn.place].key for drawn in draw_rows(rows, n=10, by_family=False, seed=4)}
        assert keys == {turned[drawn.place].key for drawn in draw_rows(turned, n=10, by_family=False, seed=4)}


class TestCertificate:
    def test_counts_and_unevenness_by_hand(self) -> None:
        rows = [certificates.PoolRow("et", f"s{n}", {"issue": values}) for n, values in enumerate([("a",)] * 6)]
        rows += [
            certificates.PoolRow("et", "s7", {"issue": ("a", "b")}),
            certificates.PoolRow("et", "s8", {"issue": ("b",)}),
        ]
        about = {"n": 3, "languages": ["ar", "et"], "facets": ["issue"], "left_out": {"unread": 2}, "by_family": True}
        made = certificates.certify(rows, [0, 6, 7], **about)  # type: ignore[arg-type]
        assert made["languages"] == [
            {"language": "ar", "asked": 3, "available": 0, "chosen": 0, "missing": 3},
            {"language": "et", "asked": 3, "available": 8, "chosen": 3, "missing": 0},
        ]
        assert made["families"] == {"available": 8, "chosen": 3}
        table = made["tables"][1]
        assert table["values"] == [["a", 7, 2], ["b", 2, 2]]
        # a has 6.5 of 8 before, 1.5 of 3 after
        assert table["uneven"] == [pytest.approx(6.5 / 8 - 0.5), pytest.approx(0.0)]

    def test_lengths_are_thirds_of_their_language(self) -> None:
        bands, bounds = certificates.length_bands([("et", n) for n in range(9)] + [("ja", 5)] * 3)
        assert [bands.count(name) for name in certificates.LENGTHS[:2]] == [3, 3]
        assert bounds == {"et": [3, 6], "ja": [5, 5]}


def in_set(flagged: int, other: int) -> dict[tuple[str, str], FlagsInSet]:
    """A set whose items are all of one score and generator."""
    return {("et", "a"): FlagsInSet({("", ""): flagged}, {("", ""): other})}


class TestErrors:
    def test_bounds_by_hand(self) -> None:
        """40 of 50 flagged and 5 of 100 others have the issue; of the set, 20 are flagged and 80 are not."""
        labelled = [ComparedFlags("et", "a", f"f{n}", True, n < 40) for n in range(50)]
        labelled += [ComparedFlags("et", "a", f"u{n}", False, n < 5) for n in range(100)]
        (row,) = error_bounds(labelled, in_set(20, 80))
        assert (row["sensitivity"]["hits"], row["sensitivity"]["items"]) == (40, 45)
        assert row["specificity"]["value"] == pytest.approx(95 / 105)
        # Wilson at 97.5 %: 40 of 50 [.645, .898], 5 of 100 [.019, .124]; 20 x .645 + 80 x .019 = 14.4
        assert row["bounds"] == [14, 28]

    def test_nothing_labelled_is_unknown_and_one_side_alone_is_wide(self) -> None:
        (unknown,) = error_bounds([], in_set(5, 5))
        assert (unknown["bounds"], unknown["labelled"], unknown["sensitivity"]) == (None, 0, None)
        only = [ComparedFlags("et", "a", f"u{n}", False, False) for n in range(30)]
        (wide,) = error_bounds(only, in_set(5, 5))
        assert wide["bounds"][0] == 0
        assert wide["bounds"][1] >= 5

    def test_items_of_one_family_count_as_one_answer(self) -> None:
        apart = [ComparedFlags("et", "a", f"f{n}", True, n % 2 == 0) for n in range(40)]
        together = [row._replace(family="one") for row in apart]
        bounds = [error_bounds(rows, in_set(100, 0))[0]["bounds"] for rows in (apart, together)]
        assert bounds[1][0] < bounds[0][0] <= 50 <= bounds[0][1] < bounds[1][1]

    def test_labelled_items_count_by_the_sets_scores_and_generators(self) -> None:
        """Flags are right at the worst score and wrong at the best; the set has more of the best than was labelled."""
        worst, best, unseen = ("1", "atlas"), ("5", "atlas"), ("5", 'Bábel "2"')
        labelled = [ComparedFlags("et", "a", f"w{n}", True, n < 80, worst) for n in range(80)]
        labelled += [ComparedFlags("et", "a", f"b{n}", True, n < 2, best) for n in range(20)]
        (row,) = error_bounds(labelled, {("et", "a"): FlagsInSet({worst: 20, best: 80}, {})})
        # (20 x 1 + 80 x .1) / 100 = .28, not .82 of the labelled items; n = 100^2 / (80 x .25^2 + 20 x 4^2) = 30.8;
        # Wilson at 97.5 %: [.1399, .4819]
        assert row["bounds"] == [13, 49]
        (row,) = error_bounds(labelled, {("et", "a"): FlagsInSet({worst: 20, best: 70, unseen: 10}, {})})
        assert (row["uncovered"], row["flagged"], row["items"]) == (10, 100, 100)
        (covered,) = error_bounds(labelled, {("et", "a"): FlagsInSet({worst: 20, best: 70}, {})})
        assert row["bounds"] == [covered["bounds"][0], covered["bounds"][1] + 10], "ten items are unknown"
        (nothing,) = error_bounds(labelled, {("et", "a"): FlagsInSet({unseen: 10}, {worst: 5})})
        assert (nothing["bounds"], nothing["uncovered"]) == ([0, 15], 15)

    def test_one_large_family_makes_the_interval_wider(self) -> None:
        """31 families, of which one has 70 of the 100 items: 100^2 / (70^2 + 30) = 2.03 independent answers."""
        even = [ComparedFlags("et", "a", f"f{n}", True, n % 2 == 0) for n in range(100)]
        large = [row._replace(family="large" if n < 70 else row.family) for n, row in enumerate(even)]
        few = [ComparedFlags("et", "a", f"f{n}", True, n % 2 == 0) for n in range(2)]
        bounds = [error_bounds(rows, in_set(1_000, 0))[0]["bounds"] for rows in (even, large, few)]
        assert bounds[2][0] <= bounds[1][0] < 110 < bounds[0][0]
        assert error_bounds(large, in_set(1, 0))[0]["sensitivity"]["families"] == 16

    def test_bounds_hold_where_errors_depend_on_the_score(self) -> None:
        """A judge whose flags are right more often at bad scores; the set is even over scores, the labelled are not."""
        chance, held = random.Random(11), 0
        truth = {"1": 0.9, "3": 0.6, "5": 0.2}
        for _trial in range(200):
            labelled = [
                ComparedFlags("et", "a", f"f{n}", True, chance.random() < truth[score], (score, "atlas"))
                for n, score in enumerate(["1"] * 60 + ["3"] * 30 + ["5"] * 10)
            ]
            cells = {(score, "atlas"): 30 for score in truth}
            low, high = error_bounds(labelled, {("et", "a"): FlagsInSet(cells, {})})[0]["bounds"]
            held += low <= 30 * sum(truth.values()) <= high
        assert held >= 190
