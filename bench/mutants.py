"""Damaged files, by the thousand: ``python -m bench.mutants --count 10000 [--seed N] FILES...``

Every file is taken in all its forms (as it is, gzip, zip, JSON Lines, Excel, Parquet), damaged, and read. It counts
as a **crash** when anything but a problem comes of it; as a **silent loss** when no problem is said and yet there are
fewer rows than lenient readers find in the same bytes, or than the whole file had where the damage only added bytes, or
when read = taken + collapsed + refused does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from annotation.formats.items import parse_items
from annotation.formats.problems import Problems
from annotation.formats.proposing import guess_kind, propose
from annotation.formats.ratings import parse_ratings
from annotation.formats.reading import read
from annotation.formats.verdicts import parse_verdicts
from bench.mutations import MUTATIONS, Mutation, Original, forms, found_by_others, original

MOST_BYTES = 60_000
RESULTS = Path(__file__).parent / "results" / "mutants.md"
COLUMNS = ("mutants", "crashes", "silent losses", "refused", "clean", "slowest, s")


@dataclass(slots=True)
class Outcome:
    """What became of one mutant: nothing raised, nothing lost, and whether any problem was said."""

    crash: str = ""
    loss: str = ""
    refused: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged file, and what was done to which whole one."""

    whole: Original
    mutation: Mutation
    raw: bytes


def mutants(wholes: Sequence[Original], count: int, seed: int) -> Iterator[Mutant]:
    """``count`` mutants, by turns of every file; the same for the same seed."""
    random = Random(seed)
    for number in range(count):
        whole, mutation = wholes[number % len(wholes)], random.choice(MUTATIONS)
        other = random.choice(wholes)
        yield Mutant(whole, mutation, mutation.happen(random, whole.raw, other.raw) or b"\n")


def examine(mutant: Mutant) -> Outcome:
    """Read a mutant in every way in which an import would."""
    outcome, started = Outcome(), time.perf_counter()
    try:
        outcome.refused, outcome.loss = _read(mutant)
        outcome.loss = outcome.loss or _parsed(mutant)
    except Exception:  # noqa: BLE001 - what is counted here
        outcome.crash = traceback.format_exc()
    outcome.seconds = time.perf_counter() - started
    return outcome


def _read(mutant: Mutant) -> tuple[bool, str]:
    whole, problems = mutant.whole, Problems()
    rows = sum(1 for _ in read(whole.name, mutant.raw, layout=whole.layout, problems=problems))
    assert all(str(problem) for problem in problems)
    if len(problems) > problems.refused:
        return True, ""  # something ended the reading, and it was said
    accounted = rows + problems.refused
    others = found_by_others(whole.name, mutant.raw, whole.layout) or 0
    if others > accounted:
        return bool(problems), f"{accounted} rows accounted for where others find {others}"
    if mutant.mutation.only_adds and accounted < whole.records and not _is_packed(whole):
        return bool(problems), f"{accounted} rows accounted for where {whole.records} were written"
    return bool(problems), ""


def _is_packed(whole: Original) -> bool:
    """Bytes put into a packed file may mean anything."""
    return whole.kind.rpartition(".")[2] in {"gz", "zip", "xlsx", "parquet"}


def _parsed(mutant: Mutant) -> str:
    """Whether the counts of every kind of import add up."""
    file = (mutant.whole.name, mutant.raw)
    guess_kind([file], mutant.whole.layout)
    for kind, parse in (("dataset", parse_items), ("ratings", parse_ratings), ("verdicts", parse_verdicts)):
        parsed: Any = parse([file], propose(kind, [file], mutant.whole.layout))  # type: ignore[arg-type]
        read_rows, rows = _counts(parsed)
        if read_rows != rows:
            return f"{kind}: {read_rows} read, {rows} accounted for"
    return ""


def _counts(parsed: Any) -> tuple[int, int]:
    report = getattr(parsed, "report", parsed)
    kept = parsed.items if hasattr(parsed, "items") else parsed.rows
    return report.read, len(kept) + report.collapsed + report.refused


class Tally:
    """Counts outcomes by kind of file and by kind of damage."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._slowest: dict[str, float] = defaultdict(float)
        self.faults: list[str] = []

    def enter(self, mutant: Mutant, outcome: Outcome) -> None:
        for key in (f"file: {mutant.whole.kind}", f"damage: {mutant.mutation.name}", "**all**"):
            counts = self._counts[key]
            counts["mutants"] += 1
            counts["crashes"] += bool(outcome.crash)
            counts["silent losses"] += bool(outcome.loss)
            counts["refused"] += outcome.refused
            counts["clean"] += not (outcome.refused or outcome.crash or outcome.loss)
            self._slowest[key] = max(self._slowest[key], outcome.seconds)
        if outcome.crash or outcome.loss:
            self.faults.append(f"{mutant.whole.name}, {mutant.mutation.name}: {outcome.loss or outcome.crash}")

    def table(self) -> str:
        head = f"| | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}"
        return "\n".join([head, *(self._line(key) for key in sorted(self._counts, reverse=True))])

    def _line(self, key: str) -> str:
        counts = [f"{self._counts[key][column]:,}" for column in COLUMNS[:-1]]
        return f"| {key} | {' | '.join(counts)} | {self._slowest[key]:.2f} |"


def wholes_of(paths: Iterable[Path], most: int = MOST_BYTES) -> list[Original]:
    """Every form of every file that can be read; each is shortened to about ``most`` bytes."""
    found: list[Original] = []
    for path in paths:
        plain = original(path.name, path.read_bytes(), most)
        if plain is None:
            print(f"{path.name}: left out, because it is not read whole in any usual layout", file=sys.stderr)
        else:
            found.extend(forms(plain))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=MOST_BYTES, help="shorten each file to about so many")
    parser.add_argument("--keep", action="store_true", help=f"write the table to {RESULTS.name}")
    said = parser.parse_args(arguments)
    wholes, tally = wholes_of(said.files, said.bytes), Tally()
    for mutant in mutants(wholes, said.count, said.seed):
        tally.enter(mutant, examine(mutant))
    for fault in tally.faults[:20]:
        print(fault, file=sys.stderr)
    print(tally.table())
    if said.keep:
        RESULTS.write_text(f"{said.count:,} mutants of {len(wholes)} files, seed {said.seed}\n\n{tally.table()}\n")
    return bool(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
