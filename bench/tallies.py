"""How often intervals hold the truth: counts that can be stored, taken up again, and set in a table with a verdict."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from analytics.stats.core.estimates import Estimate

SEEN = 0.05
"""Where fewer of the samples have an interval that is not marked, its coverage says nothing: the row is marked."""
HEADS = ("process", "n", "figure", "coverage", "samples", "MC error", "width", "none", "approximate", "of the others",
         "verdict", "method")  # fmt: skip


@dataclass(slots=True)
class Tally:
    """Of one figure: samples, intervals given, those that hold the truth, and the same of those not marked."""

    samples: int = 0
    given: int = 0
    held: int = 0
    marked: int = 0
    plain_held: int = 0
    width: float = 0.0
    is_test: bool = False
    methods: list[str] = field(default_factory=list)

    def count(self, e: Estimate, truth: float) -> None:
        """One more sample; a p value counts as held when it rejects."""
        self.samples += 1
        if e.p is not None:
            self.given, self.held, self.is_test = self.given + 1, self.held + (e.p < 0.05), True
            return
        if e.low is None or e.high is None:
            return
        holds, is_marked = e.low - 1e-9 <= truth <= e.high + 1e-9, "approximate" in (e.method or "")
        self.given, self.held, self.marked = self.given + 1, self.held + holds, self.marked + is_marked
        self.plain_held += holds and not is_marked
        self.width += e.high - e.low
        method = re.sub(r" \(approx.*?\)|, (approx|design effect).*", "", e.method or "")
        if method not in self.methods:
            self.methods.append(method)

    def add(self, other: Tally) -> None:
        """The counts of further samples."""
        for name in ("samples", "given", "held", "marked", "plain_held", "width"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.is_test |= other.is_test
        self.methods += [method for method in other.methods if method not in self.methods]

    def verdict(self, low: float, high: float) -> str:
        """Whether intervals hold the truth in a share of ``low`` to ``high`` of the samples, or say they may not.

        ``inside``; ``marked``: nearly all say that they are approximate; ``limit``: beyond a limit by less than two
        Monte Carlo errors; ``wide``: above; ``OUTSIDE``: below. Judged are the intervals that are not marked. Of a
        test: rejections up to 1 - ``low``.
        """
        plain, held = self.given - self.marked, self.plain_held
        if self.is_test:
            plain, held, high = self.given, self.given - self.held, 1.0
        if plain < SEEN * self.samples:
            return "marked"
        share = held / plain
        error = max(share * (1 - share), low * (1 - low)) ** 0.5 / plain**0.5
        if low <= share <= high:
            return "inside"
        if max(low - share, share - high) < 2 * error:
            return "limit"
        return "wide" if share > high else "OUTSIDE"


class Store:
    """A file with one line for each block of samples of a process, so that a run can stop and go on.

    A line belongs to the code that made it (``code``, a commit): start a new file when intervals have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: dict[tuple[str, int], dict[int, dict[str, Any]]] = defaultdict(dict)
        for line in path.read_text().splitlines() if path.exists() else ():
            block = json.loads(line)
            self.blocks[block["process"], block["n"]][block["start"]] = block

    def has(self, population: str, n: int, start: int) -> bool:
        """Whether this block has been counted."""
        return start in self.blocks[population, n]

    def keep(self, population: str, n: int, start: int, code: str, tallies: dict[str, Tally]) -> None:
        """Store a block."""
        figures = {figure: asdict(tally) for figure, tally in tallies.items()}
        block = {"process": population, "n": n, "start": start, "code": code, "figures": figures}
        with self.path.open("a") as lines:
            lines.write(json.dumps(block) + "\n")
        self.blocks[population, n][start] = block

    def tallies(self, population: str, n: int) -> dict[str, Tally]:
        """The figures of all blocks of a process."""
        found: dict[str, Tally] = {}
        for block in self.blocks[population, n].values():
            for figure, counts in block["figures"].items():
                found.setdefault(figure, Tally()).add(Tally(**counts))
        return found

    def codes(self) -> list[str]:
        """The commits that the blocks were made with."""
        return sorted({block["code"] for blocks in self.blocks.values() for block in blocks.values()})


def rows(population: str, n: int, tallies: dict[str, Tally], limits: tuple[float, float] | None) -> Iterator[str]:
    """Lines of the table; ``limits`` None: coverage of something that the intervals do not claim, without a verdict."""
    for figure, t in tallies.items():
        if not t.given:
            continue
        share, plain = t.held / t.given, t.given - t.marked
        others = f"{t.plain_held / plain:.3f}" if plain >= SEEN * t.samples and not t.is_test else ""
        verdict = t.verdict(*limits) if limits and not figure.endswith(", these") else ""
        cells = (
            population, n, figure, f"{share:.3f}", f"{t.samples:,}", f"{(share * (1 - share) / t.given) ** 0.5:.3f}",
            "" if t.is_test else f"{t.width / t.given:.3g}", f"{1 - t.given / t.samples:.2f}",
            "" if t.is_test else f"{t.marked / t.given:.2f}", others, verdict, "; ".join(sorted(t.methods)),
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
