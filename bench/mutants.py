"""Damaged files, by the thousand: ``python -m bench.mutants [--store] [--count N] [--seed N] FILES...``

Every file is taken in all its forms (as it is, gzip, zip, JSON Lines, Excel, Parquet), damaged, and read. It counts
as a **crash** when anything but a problem comes of it; as a **silent loss** when no problem is said and yet there are
fewer rows than lenient readers find in the same bytes, or than the whole file had where the damage only added bytes, or
when read = taken + collapsed + refused does not hold.

With ``--store`` each goes through the import into a database besides, half of them on SQLite and half on PostgreSQL
(`mutant_imports`), and a quarter of them are files of rows that Hypothesis thought up (`mutations`). It counts as
**half-loaded** when a refused one leaves a row behind, or one that was stored and undone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from annotation.readers.guessing import guess_kind, propose_mapping
from annotation.readers.items import parse_items
from annotation.readers.problems import Problems
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.reading import read_rows
from bench import server
from bench.mutations import MUTATIONS, Mutation, Original, forms, found_by_others, original, thought_up

DATABASES = server.DATABASES
MOST_BYTES = 60_000
RESULTS = Path(__file__).parent / "results" / "mutants.md"
STORED = Path(__file__).parent / "results" / "mutants_stored.md"
STORE_BYTES = 8_000
COLUMNS = ("mutants", "crashes", "silent losses", "half-loaded", "refused", "clean", "stored", "slowest, processor s")


@dataclass(slots=True)
class MutantOutcome:
    """What became of one mutant: whether something was raised, lost or left behind, and whether a problem was said."""

    crash: str = ""
    loss: str = ""
    half: str = ""
    refused: bool = False
    stored: bool = False
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


def examine(mutant: Mutant) -> MutantOutcome:
    """Read a mutant in every way in which an import would."""
    outcome, started = MutantOutcome(), time.process_time()
    try:
        outcome.refused, outcome.loss = _read(mutant)
        outcome.loss = outcome.loss or _parsed(mutant)
    except Exception:  # noqa: BLE001 - what is counted here
        outcome.crash = traceback.format_exc()
    outcome.seconds = time.process_time() - started
    return outcome


def _read(mutant: Mutant) -> tuple[bool, str]:
    whole, problems = mutant.whole, Problems()
    rows = sum(1 for _ in read_rows(whole.name, mutant.raw, layout=whole.layout, problems=problems))
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
        parsed: Any = parse([file], propose_mapping(kind, [file], mutant.whole.layout))  # type: ignore[arg-type]
        read_rows, rows = _counts(parsed)
        if read_rows != rows:
            return f"{kind}: {read_rows} read, {rows} accounted for"
    return ""


def _counts(parsed: Any) -> tuple[int, int]:
    report = getattr(parsed, "report", parsed)
    kept = parsed.items if hasattr(parsed, "items") else parsed.rows
    return report.read, len(kept) + report.collapsed + report.refused


class MutantTally:
    """Counts outcomes by kind of file and by kind of damage."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.slowest: dict[str, float] = defaultdict(float)
        self.faults: list[str] = []

    def enter(self, kind: str, damage: str, outcome: MutantOutcome) -> None:
        fault = outcome.crash or outcome.loss or outcome.half
        for key in (f"file: {kind}", f"damage: {damage}", "**all**"):
            counts = self.counts[key]
            counts["mutants"] += 1
            counts["crashes"] += bool(outcome.crash)
            counts["silent losses"] += bool(outcome.loss)
            counts["half-loaded"] += bool(outcome.half)
            counts["refused"] += outcome.refused
            counts["stored"] += outcome.stored
            counts["clean"] += not (outcome.refused or fault)
            self.slowest[key] = max(self.slowest[key], outcome.seconds)
        if fault:
            self.faults.append(f"{kind}, {damage}: {fault}")

    def add(self, counted: dict[str, Any]) -> None:
        """Add what another process counted, as its ``as_dict`` says it."""
        for key, counts in counted["counts"].items():
            self.counts[key].update(counts)
            self.slowest[key] = max(self.slowest[key], counted["slowest"][key])
        self.faults += counted["faults"]

    def as_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "slowest": self.slowest, "faults": self.faults}

    def table(self) -> str:
        head = f"| | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}"
        return "\n".join([head, *(self._line(key) for key in sorted(self.counts, reverse=True))])

    def _line(self, key: str) -> str:
        counts = [f"{self.counts[key][column]:,}" for column in COLUMNS[:-1]]
        return f"| {key} | {' | '.join(counts)} | {self.slowest[key]:.2f} |"


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


def _main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, help="shorten each file to about so many")
    parser.add_argument("--keep", action="store_true", help="write the table to bench/results")
    parser.add_argument("--store", action="store_true", help="store them too, on both databases")
    parser.add_argument("--database", choices=DATABASES, help="store one half, and print what was counted as JSON")
    options = parser.parse_args(arguments)
    if options.database:
        print(json.dumps(stored_here(options).as_dict()))
        return 0
    tally, place = (stored_everywhere(options), STORED) if options.store else (only_read(options), RESULTS)
    for fault in tally.faults[:20]:
        print(fault, file=sys.stderr)
    print(tally.table())
    if options.keep:
        count, files = tally.counts["**all**"]["mutants"], len(options.files)
        place.write_text(
            f"{count:,} mutants of {files} files in all their forms, seed {options.seed}\n\n{tally.table()}\n"
        )
    return bool(tally.faults)


def only_read(options: argparse.Namespace) -> MutantTally:
    """Damage the files and read them."""
    tally = MutantTally()
    for mutant in mutants(wholes_of(options.files, options.bytes or MOST_BYTES), options.count, options.seed):
        tally.enter(mutant.whole.kind, mutant.mutation.name, examine(mutant))
    return tally


def stored_everywhere(options: argparse.Namespace) -> MutantTally:
    """Half of the mutants on each database, both at once."""
    asked = ["--count", str(options.count), "--seed", str(options.seed), "--bytes", str(options.bytes or STORE_BYTES)]
    command = [sys.executable, "-m", "bench.mutants", *map(str, options.files), *asked]
    halves = [subprocess.Popen([*command, "--database", kind], stdout=subprocess.PIPE, text=True) for kind in DATABASES]
    tally = MutantTally()
    for half in halves:
        tally.add(json.loads(half.communicate()[0].splitlines()[-1]))
    return tally


def stored_here(options: argparse.Namespace) -> MutantTally:
    """This database's half of the mutants: three quarters damaged, one quarter imagined."""
    with server.database(options.database):
        from accounts import people
        from accounts.models import User
        from bench.mutant_imports import Rooms

        founder = User.objects.create_user("lead@panelbench.test")
        rooms, tally = Rooms(people.create_project(name="Mutants", slug="mutants", founder=founder)), MutantTally()
        wholes = rooms.wholes(options.files, options.bytes)
        place, imagined_count = DATABASES.index(options.database), options.count // 8
        with suppress(KeyboardInterrupt):  # what was counted until then is told
            for number, mutant in enumerate(mutants(wholes, options.count - 2 * imagined_count, options.seed)):
                if number % len(DATABASES) == place:
                    outcome = _stored(rooms, mutant.whole, mutant.raw, number)
                    tally.enter(mutant.whole.kind, mutant.mutation.name, outcome)
            for number, file in enumerate(thought_up(wholes, imagined_count, options.seed + place)):
                outcome = _stored(rooms, file.whole, file.raw, number, file.records)
                tally.enter(file.whole.kind, "rows thought up by Hypothesis", outcome)
        return tally


def _stored(rooms: Any, whole: Original, raw: bytes, turn: int, records: int | None = None) -> MutantOutcome:
    """Store a mutant; ``turn`` chooses among the ways in which its whole file is imported."""
    outcome, started = MutantOutcome(), time.process_time()
    try:
        fate = rooms.examine(whole, raw, turn // len(DATABASES), records)
    except Exception:  # noqa: BLE001 - what is counted here
        outcome.crash = traceback.format_exc()
    else:
        outcome.stored, outcome.refused = fate.stored, not fate.stored
        outcome.half = fate.fault if fate.fault.startswith("left behind") else ""
        outcome.loss = "" if outcome.half else fate.fault
    outcome.seconds = time.process_time() - started
    return outcome


if __name__ == "__main__":
    sys.exit(_main())
