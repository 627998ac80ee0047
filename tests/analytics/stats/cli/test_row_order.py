"""No figure depends on the order of the file's rows: neither values nor intervals nor what is drawn at random."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.stats.cli.commandline import run_command

HEADER = ["item", "rater", "rater_kind", "criterion", "score", "language", "generator", "cluster"]
COMMANDS = {
    "agreement": ["agreement", "--leave-one-out"],
    "calibration": ["calibration", "--judge", "gpt", "--reference", "each"],
    "alt-test": ["alt-test", "--judge", "gpt"],
    "stability": ["stability"],
    "consistency": ["consistency", "--judge", "gpt"],
    "correct": ["correct", "--judge", "gpt"],
    "compare": ["compare", "--raters", "a,gpt"],
    "plan": ["plan", "--judge", "gpt"],
}


def study() -> list[list[Any]]:
    rng = np.random.default_rng(5)
    rows = []
    for i in range(45):
        for language in ("en", "et"):
            for generator in ("g0", "g1"):
                where = ["fluency", language, generator, f"scenario {i % 20}"]
                given = {"gpt": ("judge", rng.integers(0, 7) / 2)}
                if i < 30:
                    given |= {name: ("annotator", int(rng.integers(0, 4))) for name in "abc" if rng.random() < 0.8}
                rows += [
                    [f"item {i}", rater, kind, where[0], score, *where[1:]] for rater, (kind, score) in given.items()
                ]
    return rows


@pytest.mark.parametrize("name", COMMANDS)
def test_a_shuffled_file_prints_the_same_figures(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = study()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    printed = []
    for order in (rows, shuffled):
        with (tmp_path / "ratings.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([HEADER, *order])
        subcommand, *options = COMMANDS[name]
        argv = [subcommand, str(tmp_path / "ratings.csv"), *options, "--bootstrap", "200", "--format", "json"]
        assert run_command([*argv, "--scale", "0,1,2,3"]) == 0
        estimates = json.loads(capsys.readouterr().out)["estimates"]
        # S0's script reads the number of raters off the first row: that one figure goes by the file's order.
        printed.append([e for e in estimates if (e["statistic"], e["variant"]) != ("fleiss_kappa", "paper_compat")])
    assert printed[0] == printed[1]
    assert any(row["low"] is not None for row in printed[0]) or name in ("compare", "plan")
