"""Items drawn for people with known probabilities: ``inclusion_prob`` of each item, whichever row says it."""

from __future__ import annotations

import io
import json
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest

from analytics.stats.cli.commandline import run_command
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import corrected_means

# f = 1 on four items; i1 and i3 drawn with .5 and .25, labels 2 and 1:
# ((1 + (2 - 1)/.5) + 1 + (1 + 0) + 1)/4 = 1.5.
JUDGED = [f"i{k},gpt,judge,1,1" for k in range(1, 5)]
DRAWN = ["i1,ann,annotator,2,.5", "i3,ann,annotator,1,.25"]
BY_A_SECOND_PERSON = ["i1,ben,annotator,2,", "i3,ben,annotator,1,"]


def written(path: Path, rows: list[str], header: str = "item,rater,rater_kind,score,inclusion_prob") -> str:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("blocks", list(permutations([JUDGED, DRAWN, BY_A_SECOND_PERSON])))
def test_an_items_probability_is_found_on_whichever_row_states_it(
    blocks: tuple[list[str], ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "drawn.csv", [row for block in blocks for row in block])
    assert run_command(["correct", path, "--judge", "gpt", "--scale", "0,1,2", "--format", "json"]) == 0
    estimates = json.loads(capsys.readouterr().out)["estimates"]
    assert [e["value"] for e in estimates if e["variant"] == "active"] == [pytest.approx(1.5)]


def test_the_interval_has_the_confidence_that_is_asked_for() -> None:
    header = "item,rater,rater_kind,score,inclusion_prob"
    table = ratings_table(pd.read_csv(io.StringIO("\n".join([header, *JUDGED, *DRAWN]))))
    rows = corrected_means.correction_report(table, judge="gpt", by=(), confidence=0.8)
    (active,) = (row.as_row() for row in rows if row.estimate.variant == "active")
    assert active["low"] is not None and active["confidence"] == 0.8


def test_one_item_was_drawn_with_one_probability(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*JUDGED, "i1,ann,annotator,2,.5", "i1,ben,annotator,2,.25", "i1,ben,annotator,2,.2"]
    assert run_command(["correct", path := written(tmp_path / "drawn.csv", rows), "--judge", "gpt"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"{path}:7: inclusion_prob 0.25 contradicts 0.5 given earlier for the same item",
        f"{path}:8: inclusion_prob 0.2 contradicts 0.5 given earlier for the same item",
    ]


def test_an_item_drawn_for_two_panels_leaves_the_mean_undefined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["i1,gpt,judge,1,1,", "i2,gpt,judge,1,1,", "i1,ann,annotator,2,.5,crowd", "i1,ben,annotator,2,.25,experts"]
    path = written(tmp_path / "drawn.csv", rows, "item,rater,rater_kind,score,inclusion_prob,panel")
    assert run_command(["correct", path, "--judge", "gpt", "--format", "json"]) == 0
    (active,) = (e for e in json.loads(capsys.readouterr().out)["estimates"] if e["variant"] == "active")
    assert active["value"] is None
    assert "one probability" in active["reason"]
