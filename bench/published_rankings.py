"""Recompute what two papers' tables imply: ``python -m bench.published_rankings ../shared/seeds``.

Cross-lingual stability (S0): tau-b, Spearman's rho and inversions of the generator means of its Tables 1 and 8, beside
its Table 11. Multilingual judges (S1): Spearman's rho of kappa and level from its Table 2, beside its Table 3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analytics.stats.judge import consistency
from analytics.stats.ranking import concordance

CRITERIA = ("Grammar", "Readability", "Coherence", "Fluency", "LRA")
GENERATORS = {  # its name in Table 1, in Table 8
    "gpt-4.1-mini": "gpt-4.1-mini",
    "Llama3.3-70B-Inst.": "llama3-70b-instruct",
    "Mixtral-8x7B-Inst.": "mixtral-8x7b-instruct",
    "Command-R": "command-r",
    "Llama3.1-8B-Inst.": "llama3-8b-instruct",
    "claude-sonnet-4": "claude-sonnet-4",
}
DATASETS = ("XQuAD", "MGSM", "WMT23", "XDailyDialog", "WikiLingua")
PRINTED_RHO = {"Yes/No": (0, 0.6, -0.5, -0.3, 0.7), "Grade": (-0.2, -0.5, 0, 0.5, 0.4)}


def _main(seeds: Path) -> None:
    """Both tables, as Markdown."""
    stability = (seeds / "000_6c401da552dc32de.txt").read_text(encoding="utf-8")
    judges = (seeds / "001_8c06343c58a2986d.txt").read_text(encoding="utf-8")
    sys.stdout.write("\n".join([*_stability(_cells(stability)), "", *_level(_cells(judges))]) + "\n")


def _cells(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


def _stability(rows: list[list[str]]) -> Iterator[str]:
    means = _means(rows)
    printed = {(row[0], row[1]): row[2:] for row in rows if len(row) == 5 and row[0] in CRITERIA}
    yield "| criterion | pair | tau-b | printed | rho | printed | inversions | tied pairs | printed | possible? |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for (criterion, pair), (tau, rho, counted) in printed.items():
        first, second = re.split(r"\W", pair)
        found = concordance.compare_rankings(means[criterion, first], means[criterion, second])
        inversions, theirs = found.inversions or 0, int(counted.split(",")[0])
        # Means printed alike may differ either way beyond the second decimal; no other pair can turn round.
        is_possible = inversions <= theirs <= inversions + found.tied_pairs
        shown = (f"{found.tau_b:.2f}", tau.split()[0], f"{found.spearman:.2f}", rho.split()[0])
        cells = (criterion, pair, *shown, inversions, found.tied_pairs, theirs, "yes" if is_possible else "**no**")
        yield f"| {' | '.join(map(str, cells))} |"


def _means(rows: list[list[str]]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Generator means of each criterion and language: Table 1 has 15 columns, Table 8 five."""
    by_name = {(row[0], len(row)): [_first_number(cell) for cell in row[1:]] for row in rows if "pm" in row[-1]}
    found = {}
    for c, criterion in enumerate(CRITERIA):
        for k, language in enumerate(("et", "fi", "hu")):
            found[criterion, language] = np.array([by_name[name, 16][3 * c + k] for name in GENERATORS])
        found[criterion, "en"] = np.array([by_name[name, 6][c] for name in GENERATORS.values()])
    return found


def _first_number(cell: str) -> float:
    match = re.search(r"\d*\.\d+", cell)
    return float(match.group()) if match else float("nan")


def _level(rows: list[list[str]]) -> Iterator[str]:
    numbers = [[float(cell) for cell in row if re.fullmatch(r"\d+\.\d+", cell)] for row in rows]
    judges = [row for row in numbers if len(row) == 2 * len(DATASETS)]
    yield "| setting | dataset | printed | from Table 2 |"
    yield "|---|---|---|---|"
    for setting, of_setting in zip(PRINTED_RHO, (judges[:5], judges[5:10]), strict=True):
        for k, dataset in enumerate(DATASETS):
            level, kappa = [row[2 * k] for row in of_setting], [row[2 * k + 1] for row in of_setting]
            rho = consistency.kappa_against_level(kappa, level).value
            yield f"| {setting} | {dataset} | {PRINTED_RHO[setting][k]} | {rho:.2f} |"


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
