"""Places of generators by simulator and without faults, where a part of the dialogues lacks a generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analytics.stats.core.estimates import Estimate
from analytics.stats.core.validation import ratings_table
from analytics.stats.ranking.survival import survival_report

LEVEL = {"atlas": 4.0, "Bábel “2”": 2.5, "جيم": 1.0}
ATLAS, BABEL, JEEM = LEVEL
SIMULATORS = ("Mehmet, user", "jüri")
Played = Callable[[str, str, int], bool]


def figures(
    played: Played = lambda *_: True,
    is_faulty: Played = lambda *_: False,
    reversed_by: str | None = None,
) -> dict[tuple[str, str | None, str | None], Estimate]:
    """40 scenarios in Estonian; scores of both simulators are drawn alike, but for one that turns the order round."""
    rng = np.random.default_rng(29)
    rows = []
    for number in range(40):
        for simulator in SIMULATORS:
            for generator, level in LEVEL.items():
                score = (5 - level if simulator == reversed_by else level) + rng.choice([-0.5, 0, 0.5])
                if played(generator, simulator, number):
                    fault = "panel" if is_faulty(generator, simulator, number) else ""
                    rows.append(
                        {"item": f"{number} {simulator} {generator}", "cluster": f"s{number}", "language": "et",
                         "generator": generator, "rater": "mari", "rater_kind": "annotator", "score": score,
                         "simulator": simulator, "dialogue_fault": fault}
                    )  # fmt: skip
    report = survival_report(ratings_table(pd.DataFrame(rows)), bootstrap=400)
    return {(row.estimate.statistic, row.estimate.variant, row.generator): row.estimate for row in report}


def places(found: dict[tuple[str, str | None, str | None], Estimate], variant: str) -> list[tuple[float, float] | None]:
    rows = [found.get(("place", variant, generator)) for generator in LEVEL]
    return [None if row is None or row.low is None or row.high is None else (row.low, row.high) for row in rows]


def outcomes(found: dict[tuple[str, str | None, str | None], Estimate]) -> list[float | None]:
    return [found["survival", None, generator].value for generator in LEVEL]


def test_a_place_does_not_change_because_the_best_generator_never_met_one_simulator() -> None:
    found = figures(played=lambda generator, simulator, _: (generator, simulator) != (ATLAS, SIMULATORS[1]))
    assert places(found, "all") == places(found, f"simulator: {SIMULATORS[0]}") == [(1, 1), (2, 2), (3, 3)]
    assert places(found, f"simulator: {SIMULATORS[1]}") == [None, (1, 1), (2, 2)]
    assert outcomes(found) == [None, 1, 1]  # the second and the third keep their order; of the first nobody knows
    counted = {name: found["survivals", name, None].value for name in ("survives", "changes", "undecided")}
    assert counted == {"survives": 2, "changes": 0, "undecided": 1}


def test_a_place_does_not_change_because_all_dialogues_of_the_best_generator_are_faulty() -> None:
    found = figures(is_faulty=lambda generator, *_: generator == ATLAS)
    assert places(found, "sound") == [None, (1, 1), (2, 2)]
    assert outcomes(found) == [None, 1, 1]
    faulty = found["faulty_dialogues", None, None]
    assert (faulty.value, faulty.n_items) == (80, 240)


def test_a_place_changes_where_the_shared_generators_turn_round() -> None:
    found = figures(
        played=lambda generator, simulator, _: (generator, simulator) != (ATLAS, SIMULATORS[1]),
        reversed_by=SIMULATORS[1],
    )
    assert places(found, f"simulator: {SIMULATORS[1]}") == [None, (2, 2), (1, 1)]
    assert outcomes(found) == [None, 0, 0]


@pytest.mark.parametrize("kept", [ATLAS, JEEM])
def test_one_shared_generator_decides_nothing(kept: str) -> None:
    """The second simulator met one generator alone: it ranks nothing, and no place is said to change or to survive."""
    found = figures(played=lambda generator, simulator, _: simulator == SIMULATORS[0] or generator == kept)
    assert outcomes(found) == [None, None, None]


def test_faulty_dialogues_are_counted_where_the_sound_ones_rank_nothing() -> None:
    found = figures(is_faulty=lambda generator, _simulator, number: generator != JEEM or number < 3)
    assert places(found, "sound") == [None, None, None]
    assert (found["faulty_dialogues", None, None].value, found["faulty_dialogues", None, None].n_items) == (166, 240)
