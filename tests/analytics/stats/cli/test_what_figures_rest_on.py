"""Every figure of every subcommand says what it rests on: items, clusters, raters, and for whom it speaks."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command

ITEMS, PER_CLUSTER = 96, 3


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """96 items in 32 clusters (scenarios), half of a cluster's in each language; five annotators, two judges."""
    return written_study(tmp_path_factory.mktemp("study"), "abcde")


@pytest.fixture(scope="module")
def study_of_many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with 20 annotators: enough to be a sample of raters."""
    return written_study(tmp_path_factory.mktemp("many"), "abcdefghilmnopqrstuv")


def written_study(folder: Path, names: str) -> Path:
    rng = np.random.default_rng(4)
    lines = [
        "item,cluster,language,generator,criterion,rater,rater_kind,repeat,score,panel,rationale,words,channel,judge_channel"
    ]
    for i in range(ITEMS):
        cluster, truth = i // PER_CLUSTER, rng.integers(1, 5)
        for criterion in ("flow", "tone"):
            end = f"some words here,{20 + i % 30},mail,{'mail' if i % 3 else 'chat'}"
            start = f"i{i},c{cluster},{('en', 'et')[i % 2]},g{i % 4},{criterion}"
            humans = names if i < 72 else ""
            for r, name in enumerate(humans):
                score = int(np.clip(truth + rng.integers(-1, 2), 1, 5))
                lines.append(f"{start},{name},annotator,0,{score},{'crowd' if r < 3 else 'experts'},{end}")
            for name, repeats in (("j", 2), ("k", 1)):
                for repeat in range(repeats):
                    score = int(np.clip(truth + rng.integers(-1, 2), 1, 5))
                    lines.append(f"{start},{name},judge,{repeat},{score},,{end}")
    path = folder / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


ALL: dict[str, list[list[str]]] = {
    "agreement": [["--leave-one-out"], ["--statistic", "icc,variance_component,panel_reliability"]],
    "calibration": [["--judge", "j", "--reference", "median"],
                    ["--judge", "j", "--reference", "mode", "--statistic", "confusion,class_share,score_share"]],
    "alt-test": [["--judge", "j"]],
    "stability": [[], ["--judge", "j"]],
    "consistency": [["--judge", "j"]],
    "correct": [["--judge", "j"]],
    "plan": [["--judge", "j", "--bootstrap", "200"]],
    "reference": [["--rule", "dawid_skene"], ["--statistic", "reference_label"]],
    "criteria": [[]],
    "contrast": [["--panels", "crowd,experts"]],
    "rationales": [["--bootstrap", "200"]],
    "recovery": [["--parameters", "channel"]],
    "audit": [["--judge", "j", "--against", "k", "--length", "words", "--family", "j=g1", "--family", "k=g2"]],
    "equivalence": [["--raters", "j,k"]],
    "severity": [["--judge", "j"]],
    "conformal": [["--judge", "j", "--coverage", "0.8"]],
    "jury": [["--judge", "j,k", "--statistic", "mae,accuracy,jury_unsettled", "--reference", "median"]],
    "gate": [["--judge", "j", "--bootstrap", "200"]],
    "compare": [["--raters", "j,k", "--truth", "mode"],
                ["--between", "judge=j,k", "--statistic", "mae,ppi_plus_mean", "--by", "criterion"],
                ["--between", "language=en,et", "--statistic", "krippendorff_alpha,cohen_kappa", "--by", "criterion"]],
}  # fmt: skip
"""Every subcommand about ratings, with options that bring out all it shows."""
OF_NO_ITEMS = {"labels_affordable", "confusion"}
CASES = [(name, options) for name, several in ALL.items() for options in several]


def rows(study: Path, capsys: pytest.CaptureFixture[str], *argv: str, form: str = "json") -> list[dict[str, Any]]:
    assert run_command([argv[0], str(study), *argv[1:], "--format", form]) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    found: list[dict[str, Any]]
    found = json.loads(printed)["estimates"] if form == "json" else list(csv.DictReader(io.StringIO(printed)))
    assert found
    return found


def test_all_subcommands_about_ratings_are_here() -> None:
    assert set(ALL) == set(SUBCOMMANDS) - {"surface"}


@pytest.mark.parametrize(("command", "options"), CASES)
def test_every_figure_counts_its_clusters(
    command: str, options: list[str], study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in rows(study, capsys, command, *options):
        if row["value"] is None or not row["n_items"]:
            assert row["value"] is None or row["statistic"] in OF_NO_ITEMS, row
            continue
        assert row["n_clusters"] is not None, row
        assert 0 < row["n_clusters"] <= row["n_items"], row
        assert row["n_clusters"] <= ITEMS // PER_CLUSTER, row
        assert row["n_raters"] > 0, row
        assert row["speaks_for"] in ("these raters", "this judge", "raters like these"), row


def test_the_table_shows_the_clusters(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, options, size in (("alt-test", ["--judge", "j"], "36 in 24 clusters x 5"),
                                   ("correct", ["--judge", "j"], "36 in 24 clusters x 5"),
                                   ("compare", ["--raters", "j,k", "--truth", "mode"], " clusters x 2"),
                                   ("stability", [], "72 in 24 clusters x 5")):  # fmt: skip
        assert run_command([command, str(study), *options]) == 0
        assert size in capsys.readouterr().out, command
        assert all(row["n_clusters"] for row in rows(study, capsys, command, *options, form="csv") if row["value"])


SAMPLED: dict[str, tuple[list[str], set[str]]] = {
    "alt-test": (["--judge", "j"], {"alt_test_rho"}),
    "stability": ([], {"mean"}),
    "correct": (["--judge", "j"], {"classical_mean", "ppi_mean", "ppi_plus_mean", "mean_of_these_items"}),
    "criteria": ([], {"criteria_spearman"}),
    "contrast": (["--panels", "crowd,experts"], set()),
    "jury": (["--judge", "j,k", "--statistic", "mae", "--reference", "mean"], {"mae"}),
    "compare": (["--between", "language=en,et", "--statistic", "krippendorff_alpha", "--by", "criterion"],
                {"krippendorff_alpha"}),
}  # fmt: skip


@pytest.mark.parametrize("command", SAMPLED)
def test_raters_as_a_sample_only_widen_and_say_so(
    command: str, study_of_many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, statistics = SAMPLED[command]
    these = rows(study_of_many, capsys, command, *options)
    sample = rows(study_of_many, capsys, command, *options, "--raters-as", "sample")
    assert len(these) == len(sample)
    widened = set()
    for one, other in zip(these, sample, strict=True):
        assert one["value"] == other["value"]
        if other["speaks_for"] != "raters like these":
            assert (one["low"], one["high"], one["speaks_for"]) == (other["low"], other["high"], other["speaks_for"])
        elif other["low"] is None:
            assert other["interval_reason"]
        else:
            assert other["low"] < one["low"] and one["high"] < other["high"], one
            assert "raters left out (approximate: 20 raters)" in other["method"]
            assert other["p"] is None
            widened.add(other["statistic"])
    assert widened == statistics


def test_panels_of_a_contrast_are_two_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty-one raters and twenty, each of whose means differs by an offset of its own: worked by hand."""
    crowd = {f"c{k}": float(k % 3) for k in range(21)}
    experts = {f"e{k}": [3.0, 3.0, 4.0, 6.0][k % 4] for k in range(20)}
    offsets = crowd | experts
    lines = ["item,rater,score,panel"]
    for i in range(30):
        lines += [f"{i},{name},{i + offset},{'crowd' if name < 'd' else 'experts'}" for name, offset in offsets.items()]
    path = tmp_path / "panels.csv"
    path.write_text("\n".join(lines) + "\n")
    asked = ["--panels", "crowd,experts", "--statistic", "panel_difference", "--level", "interval"]
    noisy = path.read_text().replace("\n0,c0,0.0", "\n0,c0,0.3")  # else no item changes the difference at all
    path.write_text(noisy)
    (these,) = rows(path, capsys, "contrast", *asked)
    (found,) = rows(path, capsys, "contrast", *asked, "--raters-as", "sample")
    variances = [np.var(list(own.values()), ddof=1) / len(own) for own in (crowd, experts)]
    df = sum(variances) ** 2 / (variances[0] ** 2 / 20 + variances[1] ** 2 / 19)
    half = float(stdtrit(df, 0.975)) * math.sqrt(sum(variances))
    assert found["value"] == pytest.approx(3, abs=0.01)
    assert found["high"] - found["value"] == pytest.approx(math.hypot(half, these["high"] - these["value"]), rel=0.01)
    assert "(approximate: 20 raters)" in found["method"]


NO_SAMPLE = [name for name in ALL if name not in SAMPLED and name not in ("agreement", "calibration")]


@pytest.mark.parametrize("command", NO_SAMPLE)
def test_elsewhere_a_sample_of_raters_is_refused_with_the_reason(
    command: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([command, str(study), *ALL[command][0], "--raters-as", "sample"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--raters-as sample: " in printed.err and len(printed.err) > 70


def test_named_raters_a_judges_ranking_and_slots_are_no_sample(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (
        ["compare", "--raters", "j,k"],
        ["stability", "--judge", "j"],
        ["correct", "--judge", "j", "--positional"],
    ):
        assert run_command([argv[0], str(study), *argv[1:], "--raters-as", "sample"]) == 2
        assert "--raters-as sample: " in capsys.readouterr().err
