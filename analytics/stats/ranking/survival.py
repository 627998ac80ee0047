"""Which places of generators survive when faulty dialogues are dropped, or another simulator asked the questions.

A simulated dialogue has two authors: the generator that answers, and the simulator that plays the user. Two columns of
the ratings table tell them apart: ``simulator``, and ``dialogue_fault``, which is empty for a sound dialogue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.messages import Message
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.judge_against_panel import cell_key
from analytics.stats.ranking.stability import ranks_in_cell

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

SIMULATOR_COLUMN, FAULT_COLUMN = "simulator", "dialogue_fault"
ALL_DIALOGUES, SOUND_DIALOGUES, BY_SIMULATOR = "all", "sound", "simulator: "
"""Variants of ``place``: of all dialogues, of those without a fault, and of one simulator's, with its name."""
PLACE_SURVIVES, PLACE_CHANGES, PLACE_OPEN = "survives", "changes", "undecided"
Places = tuple[float, float] | None
"""The first and the last place that a generator may have; None where nothing is resampled."""


def survival_report(
    table: RatingsTable,
    *,
    judge: str | None = None,
    by: Sequence[str] = ("criterion",),
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Each generator's place in each language with all dialogues, without the faulty ones, and by each simulator alone.

    Returns, per cell: ``place`` (variant ``all``, ``sound`` or ``simulator: NAME``; generator, language), the rank and
    the set of ranks of `stability.ranks_in_cell`, and ``survival`` (generator, language): 1 where the place survives, 0
    where it changes, undefined where that is not decided (`survival_outcome`). ``survivals`` counts them over all
    generators and languages (variants ``survives``, ``changes``, ``undecided``). The sets of one variant and language
    hold together at the confidence level. Source: sets of ranks as in METHODS 4 (Mogstad et al. 2024,
    doi:10.1093/restud/rdad006).
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=[column for column in by if column not in ("language", "generator")], pool=pool):
        kept = dict(_kept(cell.frame))
        if len(kept) == 1:
            reason = Message("no dialogue here has a known fault, and there are not two simulators")
            report.append(CellEstimate(estimate=_nothing(cell, reason), cell=cell_key(cell), judge=judge))
            continue
        found: dict[tuple[str, str], dict[str, CellEstimate]] = defaultdict(dict)
        for variant, keep in kept.items():
            part = replace(cell, frame=cell.frame[keep])
            for one in ranks_in_cell(part, table, judge=judge, bootstrap=bootstrap, confidence=confidence, seed=seed):
                place = replace(one, estimate=one.estimate.with_(statistic="place", variant=variant))
                found[one.language or "", one.generator or ""][variant] = place
                report.append(place)
        report += _outcomes(cell, judge, found, tuple(kept))
    return report


def survival_outcome(places: Mapping[str, Places], expected: Sequence[str], n_generators: int) -> str:
    """Whether the place of a generator survives, by the sets of places that the variants leave it.

    It changes if two of the sets have no place in common. It survives if the set of all dialogues says something (it
    is not every place), and the set of each other variant lies within it. Else that is not decided: a smaller part of
    the dialogues says less, so that a wider set does not contradict the place.
    """
    sets = [own for own in places.values() if own is not None]
    if any(one[1] < other[0] for one in sets for other in sets):
        return PLACE_CHANGES
    of_all = places.get(ALL_DIALOGUES)
    if of_all is None or of_all == (1, n_generators) or len(sets) < len(expected):
        return PLACE_OPEN
    return PLACE_SURVIVES if all(of_all[0] <= low and high <= of_all[1] for low, high in sets) else PLACE_OPEN


def _kept(frame: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The variants of a cell with the rows (M,) that count in each."""
    yield ALL_DIALOGUES, frame["item"].notna().to_numpy()
    if FAULT_COLUMN in frame:
        is_faulty = frame[FAULT_COLUMN].fillna("").astype(str) != ""
        if is_faulty.any():
            yield SOUND_DIALOGUES, (~is_faulty).to_numpy()
    if SIMULATOR_COLUMN in frame:
        named = frame[SIMULATOR_COLUMN].fillna("").astype(str)
        names = sorted({*named} - {""})
        if len(names) > 1:
            for name in names:
                yield f"{BY_SIMULATOR}{name}", (named == name).to_numpy()


def _outcomes(
    cell: Cell,
    judge: str | None,
    found: Mapping[tuple[str, str], Mapping[str, CellEstimate]],
    expected: Sequence[str],
) -> Iterator[CellEstimate]:
    counted: Counter[str] = Counter()
    in_language = Counter(language for language, _generator in found)
    for (language, generator), by_variant in sorted(found.items()):
        places = {variant: _places(one.estimate) for variant, one in by_variant.items()}
        came_out = survival_outcome(places, expected, in_language[language])
        counted[came_out] += 1
        first = next(iter(by_variant.values())).estimate
        value = {PLACE_SURVIVES: 1.0, PLACE_CHANGES: 0.0}.get(came_out)
        estimate = first.with_(
            statistic="survival", variant=None, value=value, low=None, high=None, confidence=None, method=None,
            note=None,
            reason=Message("not decided: the places overlap, or say too little") if came_out == PLACE_OPEN else None,
        )  # fmt: skip
        yield CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge, generator=generator, language=language)
    for name in (PLACE_SURVIVES, PLACE_CHANGES, PLACE_OPEN):
        estimate = Estimate(
            statistic="survivals", variant=name, value=float(counted[name]), level=cell.scale.level,
            n_items=int(cell.frame["item_key"].nunique()),
        )  # fmt: skip
        yield CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge)


def _places(estimate: Estimate) -> Places:
    return None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high)


def _nothing(cell: Cell, reason: Message) -> Estimate:
    return Estimate(statistic="place", value=None, reason=reason, level=cell.scale.level)
