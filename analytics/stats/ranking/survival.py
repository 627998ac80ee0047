"""Which places of generators survive when faulty dialogues are dropped, or another simulator asked the questions.

A simulated dialogue has two authors: the generator that answers, and the simulator that plays the user. Two columns of
the ratings table tell them apart: ``simulator``, and ``dialogue_fault``, which is empty for a sound dialogue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.messages import Message
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.judge_against_panel import cell_key
from analytics.stats.ranking.concordance import Standing
from analytics.stats.ranking.stability import ranking_rows, ranks_in_cell

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

SIMULATOR_COLUMN, FAULT_COLUMN = "simulator", "dialogue_fault"
ALL_DIALOGUES, SOUND_DIALOGUES, BY_SIMULATOR = "all", "sound", "simulator: "
"""Variants of ``place``: of all dialogues, of those without a fault, and of one simulator's, with its name."""
PLACE_SURVIVES, PLACE_CHANGES, PLACE_OPEN = "survives", "changes", "undecided"


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
    generators and languages (variants ``survives``, ``changes``, ``undecided``). ``faulty_dialogues`` counts those of
    the scored dialogues, ``n_items``, that have a fault, where the table tells faults. The sets of one variant and
    language hold together at the confidence level. Source: sets of ranks as in METHODS 4 (Mogstad et al. 2024,
    doi:10.1093/restud/rdad006).
    """
    report: list[CellEstimate] = []
    for cell in cells(table, by=[column for column in by if column not in ("language", "generator")], pool=pool):
        kept = dict(_kept(cell.frame))
        if FAULT_COLUMN in cell.frame:
            report.append(_faulty_dialogues(cell, judge))
        if len(kept) == 1:
            reason = Message("no dialogue here has a known fault, and there are not two simulators")
            report.append(CellEstimate(estimate=_nothing(cell, reason), cell=cell_key(cell), judge=judge))
            continue
        standings: dict[tuple[str, str], dict[str, Standing | None]] = defaultdict(dict)
        of_all: dict[tuple[str, str], Estimate] = {}
        for variant, keep in kept.items():
            part = replace(cell, frame=cell.frame[keep])
            for row, standing in ranks_in_cell(
                part, table, judge=judge, bootstrap=bootstrap, confidence=confidence, seed=seed
            ):
                place = row.estimate.with_(statistic="place", variant=variant)
                generator_in_language = row.language or "", row.generator or ""
                standings[generator_in_language][variant] = standing
                of_all.setdefault(generator_in_language, place)  # the variant of all dialogues comes first
                report.append(replace(row, estimate=place))
        report += _outcomes(cell, judge, of_all, standings, tuple(kept))
    return report


def survival_outcome(standings: Mapping[str, Standing | None], expected: Sequence[str]) -> str:
    """Whether the place of a generator survives, by how it stands in each variant; None where nothing is resampled.

    Two variants are compared by the sets of places that they leave it among the rivals that both have. It changes if
    two of the sets have no place in common. It survives if all ``expected`` variants have it, the set of all dialogues
    says something (it is not every place), and the set of each other variant lies within it. Else that is not decided:
    a smaller part of the dialogues says less, so that a wider set does not contradict the place.
    """
    known = [own for own in standings.values() if own is not None]
    for one, other in combinations(known, 2):
        shared = one.rivals & other.rivals
        (first, last), (other_first, other_last) = one.places(shared), other.places(shared)
        if last < other_first or other_last < first:
            return PLACE_CHANGES
    of_all = standings.get(ALL_DIALOGUES)
    if of_all is None or len(known) < len(expected):
        return PLACE_OPEN
    for own in known:
        shared = of_all.rivals & own.rivals
        (first, last), (own_first, own_last) = of_all.places(shared), own.places(shared)
        if (first, last) == (1, 1 + len(shared)) or own_first < first or own_last > last:
            return PLACE_OPEN
    return PLACE_SURVIVES


def _faulty_dialogues(cell: Cell, judge: str | None) -> CellEstimate:
    """How many of the dialogues that rank the generators have a known fault."""
    rows = ranking_rows(cell, judge)
    scored = rows[rows["number"].notna()].drop_duplicates("item_key")
    n_faulty = int(_is_faulty(scored).sum())
    estimate = Estimate(
        statistic="faulty_dialogues", value=float(n_faulty), level=cell.scale.level, n_items=len(scored)
    )
    return CellEstimate(estimate=estimate, cell=cell_key(cell), judge=judge)


def _is_faulty(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame[FAULT_COLUMN].fillna("").astype(str) != ""


def _kept(frame: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The variants of a cell with the rows (M,) that count in each."""
    yield ALL_DIALOGUES, frame["item"].notna().to_numpy()
    if FAULT_COLUMN in frame:
        is_faulty = _is_faulty(frame)
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
    of_all: Mapping[tuple[str, str], Estimate],
    standings: Mapping[tuple[str, str], Mapping[str, Standing | None]],
    expected: Sequence[str],
) -> Iterator[CellEstimate]:
    counted: Counter[str] = Counter()
    for (language, generator), by_variant in sorted(standings.items()):
        came_out = survival_outcome(by_variant, expected)
        counted[came_out] += 1
        value = {PLACE_SURVIVES: 1.0, PLACE_CHANGES: 0.0}.get(came_out)
        estimate = of_all[language, generator].with_(
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


def _nothing(cell: Cell, reason: Message) -> Estimate:
    return Estimate(statistic="place", value=None, reason=reason, level=cell.scale.level)
