"""Subcommands about references, criteria, panels, audits, equivalence, severity, juries and the gate: small files
worked by hand, files that can't be used, and no public function that nothing reaches."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.stats.cli.commandline import SUBCOMMANDS, run_command

ROOT = Path(__file__).parents[4]
STATS = ROOT / "analytics" / "stats"

HEADER = "item,rater,rater_kind,score"
# Items w to z. Annotators a, b, c; the judge j scores twice; k is another judge, r an adjudicator.
PANEL = f"""{HEADER}
w,a,annotator,2
w,b,annotator,2
w,c,annotator,2
x,a,annotator,1
x,b,annotator,1
x,c,annotator,3
y,a,annotator,1
y,b,annotator,2
z,a,annotator,3
z,b,annotator,3
z,c,annotator,1
y,r,adjudicator,2
w,j,judge,2
x,j,judge,2
y,j,judge,3
z,j,judge,3
w,k,judge,2
x,k,judge,1
y,k,judge,3
z,k,judge,1
"""


def write(folder: Path, text: str, name: str = "ratings.csv") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def rows(capsys: pytest.CaptureFixture[str], *argv: object) -> list[dict[str, Any]]:
    status = run_command([*map(str, argv), "--format", "json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    estimates: list[dict[str, Any]] = json.loads(printed.out)["estimates"]
    return estimates


def values(found: list[dict[str, Any]], statistic: str) -> dict[Any, Any]:
    return {row["variant"]: row["value"] for row in found if row["statistic"] == statistic}


def test_reference_labels_by_the_mode_and_its_ties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # w 2, x 1, z 3; y is tied between 1 and 2.
    path = write(tmp_path, PANEL)
    found = rows(capsys, "reference", path)
    assert values(found, "reference_share") == {"mode, ties: exclude": 0.75}
    assert values(found, "reference_excluded") == {"tied": 1}
    assert values(found, "label_share") == pytest.approx({"1": 1 / 3, "2": 1 / 3, "3": 1 / 3})
    for options, label in ((["--ties", "upper"], 2), (["--ties", "lower"], 1), (["--ties", "median"], 1.5),
                           (["--rule", "adjudicated_first"], 2)):  # fmt: skip
        labels = values(rows(capsys, "reference", path, *options, "--statistic", "reference_label"), "reference_label")
        assert labels == {"w": 2, "x": 1, "y": label, "z": 3}


def test_dawid_skene_shows_annotators_and_their_confusions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i},{rater},annotator,{i % 2 if rater != 'c' else 1 - i % 2}" for i in range(12) for rater in "abc"]
    path = write(tmp_path, "\n".join([HEADER, *lines]))
    found = rows(capsys, "reference", path, "--rule", "dawid_skene", "--statistic", "annotator_accuracy,confusion")
    accuracy = {row["annotator"]: row["value"] for row in found if row["statistic"] == "annotator_accuracy"}
    assert accuracy == pytest.approx({"a": 1, "b": 1, "c": 0}, abs=0.01)
    turned = {
        row["variant"]: row["value"] for row in found if row["annotator"] == "c" and "~" in (row["variant"] or "")
    }
    assert turned["0 ~ 1"] == pytest.approx(1, abs=0.01)


def test_calibration_takes_ties_adjudication_and_exclusions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # |judge - label|: w 0, x 1, z 0; y counts 1 beside the adjudicator's 2 (or the upper of 1 and 2), 2 beside 1.
    path = write(tmp_path, PANEL)
    for options, mae, without in (
        (["--reference", "mode"], 1 / 3, 1), (["--ties", "lower"], 3 / 4, 0), (["--ties", "upper"], 2 / 4, 0),
        (["--reference", "adjudicated_first"], 2 / 4, 0),
    ):  # fmt: skip
        argv = ["calibration", path, "--judge", "j", "--bootstrap", 0, "--statistic", "mae,without_reference"]
        found = rows(capsys, *argv, *options)
        assert values(found, "mae") == {None: pytest.approx(mae)}
        assert values(found, "without_reference") == {None: without}
    header, *lines = PANEL.splitlines()
    broken, critical = "x,c,annotator,3", "z,a,annotator,3"
    flagged = [f"{line},{str(line == broken).lower()},{str(line == critical).lower()}" for line in lines]
    marked = "\n".join([f"{header},broken,critical", *flagged])
    path = write(tmp_path, marked, "marked.csv")
    options = "--bootstrap 0 --broken-rationale broken --critical critical --raters a,b,c --format json"
    status = run_command(["agreement", path, *options.split(), "--statistic", "percent_agreement_exact"])
    printed = capsys.readouterr()
    # Without c's 3 on x, and without z: w and x agree, y doesn't.
    assert status == 0
    assert values(json.loads(printed.out)["estimates"], "percent_agreement_exact") == {None: pytest.approx(2 / 3)}
    assert "1 ratings with a broken rationale, 5 of items with a critical mark" in printed.err


def test_audit_of_repeats_scale_and_changed_prompts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line + ("," if "judge" not in line else ",0") for line in PANEL.splitlines()[1:]]
    lines += ["w,j,judge,2,1", "x,j,judge,3,1", "y,j,judge,,1"]
    path = write(tmp_path, "\n".join([f"{HEADER},repeat", *lines]))
    found = rows(capsys, "audit", path, "--judge", "j", "--against", "k", "--family", "j=A", "--family", "k=B")
    assert values(found, "flip_rate") == {None: 0.5}  # w stays, x goes from 2 to 3; y and z have one readable score
    assert values(found, "unreadable") == {None: pytest.approx(1 / 7)}
    scale = values(found, "scale_use")
    assert (scale["top"], scale["middle"], scale["panel_top"]) == pytest.approx((3 / 6, 3 / 6, 3 / 11))
    shifts = values(found, "perturbation")  # k - j: 0, -1, 0, -2
    assert shifts == {"fall k": 0.5, "stay k": 0.5, "rise k": 0, "shift k": -0.75}
    assert values(found, "condition_shift") == {"k": -0.75}
    (reason,) = (row["reason"] for row in found if row["statistic"] == "self_preference")
    assert "families" in reason


def test_equivalence_within_a_margin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i},{rater},judge,{2 + (i % 2) * (rater == 'n') * 0.1}" for i in range(20) for rater in ("n", "e")]
    path = write(tmp_path, "\n".join([HEADER, *lines]))
    (wide,) = rows(capsys, "equivalence", path, "--raters", "n,e", "--margin", "0.2")
    (narrow,) = rows(capsys, "equivalence", path, "--raters", "n,e", "--margin", "0.05")
    assert (wide["value"], wide["n_items"], wide["n_raters"]) == (pytest.approx(0.05), 20, 2)
    assert wide["p"] < 0.001 < 0.05 < narrow["p"]
    assert (wide["confidence"], wide["low"] > -0.2, wide["high"] < 0.2) == (0.9, True, True)


def test_a_jury_settles_by_majority_and_ties_give_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    third = "".join(f"{item},m,judge,{score}\n" for item, score in (("w", 2), ("x", 1), ("y", 1), ("z", 2)))
    path = write(tmp_path, PANEL + third)  # verdicts: w 2, x 1, y 3, z tied (3, 1, 2)
    found = rows(capsys, "jury", path, "--judge", "j,k,m", "--statistic", "jury_unsettled,mae", "--bootstrap", 0)
    assert values(found, "jury_unsettled") == {"majority": 0.25}
    mae = {row["judge"]: row["value"] for row in found if row["statistic"] == "mae"}
    assert mae == pytest.approx({"jury": 0, "j": 1 / 3, "k": 2 / 3, "m": 1 / 3})
    median = rows(capsys, "jury", path, "--judge", "j,k,m", "--rule", "median", "--statistic", "mae", "--bootstrap", 0)
    assert {row["judge"]: row["value"] for row in median}["jury"] == pytest.approx(1 / 3)


def test_conformal_radius_is_the_worst_error_that_is_promised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Errors 0, 1, .., 8 tenths on nine items: the ceil(10 * .8) = 8th smallest is .7; the tenth item is the judge's.
    lines = [f"i{n},a,annotator,{1 + n / 10}\ni{n},j,judge,1.0" for n in range(9)] + ["new,j,judge,1.25"]
    path = write(tmp_path, "\n".join([HEADER, *lines]))
    argv = ["conformal", path, "--judge", "j", "--coverage", "0.8", "--level", "interval", "--widest", "0.9"]
    found = rows(capsys, *argv)
    assert values(found, "conformal_radius") == {None: pytest.approx(0.7)}
    assert values(found, "for_people") == {"wider than 0.9": 0}  # 1.0 to 1.8, cut at the ends of the scale
    (item,) = rows(capsys, *argv, "--statistic", "conformal_interval")
    assert (item["variant"], item["low"], item["high"]) == ("new", 1.0, pytest.approx(1.8))
    few = rows(capsys, "conformal", path, "--judge", "j", "--coverage", "0.95")
    assert "too few" in few[0]["reason"]


def test_criteria_panels_and_rationales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["item,rater,criterion,score,panel,rationale"]
    for i in range(6):
        for rater, panel in (("a", "crowd"), ("b", "experts")):
            lines.append(f"{i},{rater},flow,{i},{panel},two words")
            lines.append(f"{i},{rater},tone,{5 - i + (rater == 'b')},{panel},")
    path = write(tmp_path, "\n".join(lines))
    (pair,) = rows(capsys, "criteria", path)
    assert (pair["variant"], pair["value"], pair["n_items"], pair["n_raters"]) == (
        "flow ~ tone",
        pytest.approx(-1),
        6,
        2,
    )
    found = rows(capsys, "contrast", path, "--panels", "crowd,experts", "--statistic", "panel_difference")
    assert {row["criterion"]: row["value"] for row in found} == {"flow": 0, "tone": 1}
    words = [row for row in rows(capsys, "rationales", path) if row["statistic"] == "rationale_words"]
    assert {row["criterion"]: (row["value"], row["n_missing"]) for row in words} == {"flow": (2, 0), "tone": (None, 12)}


def test_label_recovery_by_parameter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "item,channel,judge_channel,mood,judge_mood\n1,mail,Mail ,sad,sad\n2,mail,phone,sad,\n3,chat,chat,glad,sad\n"
    found = rows(capsys, "recovery", write(tmp_path, text), "--parameters", "channel,mood")
    assert values(found, "label_recovery") == pytest.approx({"channel": 2 / 3, "mood": 1 / 2, "all": (1 + 0 + 0.5) / 3})


def lenient(shift: float, seed: int, *, gap: float = 0.0, n: int = 300, raters: int = 2) -> pd.DataFrame:
    """A judge that is ``shift`` points more lenient in Finnish, where answers are ``gap`` points better."""
    rng = np.random.default_rng(seed)
    finnish = np.arange(n) % 2
    truth = rng.normal(2.5, 1, n) + gap * finnish
    noise = rng.normal(0, 1, (n, raters + 1)) * np.array([1.0] * raters + [0.7])
    scores = np.clip(np.round(truth[:, None] + noise), 0, 5)
    scores[:, -1] = np.clip(np.round(truth + noise[:, -1] + shift * finnish), 0, 5)
    i, r = np.indices(scores.shape).reshape(2, -1)
    names = np.array([*"abcdef"[:raters], "j"])
    return pd.DataFrame({"item": i, "rater": names[r], "language": np.array(["en", "fi"])[finnish[i]],
                         "score": scores.ravel().astype(int)})  # fmt: skip


def test_severity_by_language_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "lenient.csv")
    lenient(0.8, 1).to_csv(path, index=False)
    found = rows(capsys, "severity", path, "--judge", "j", "--pivot", "en", "--statistic", "severity_shift")
    assert {row["variant"] for row in found} == {"corrected", "raw"}
    for row in found:
        assert row["language"] == "fi"
        assert 0 < row["low"] < row["value"]
        assert row["p"] < 0.01


def test_severity_is_not_made_up_by_few_annotators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Finnish answers are better and panels small: raw means find a leniency that is not there."""
    shifts: dict[str, list[float]] = {"corrected": [], "raw": []}
    for seed in range(6):
        path = str(tmp_path / f"{seed}.csv")
        lenient(0.0, seed, gap=1.2).to_csv(path, index=False)
        for row in rows(capsys, "severity", path, "--judge", "j", "--statistic", "severity_shift"):
            shifts[row["variant"]].append(row["value"])
    assert np.mean(shifts["raw"]) > 0.5
    assert abs(np.mean(shifts["corrected"])) < 0.35


def judged(steady: bool, n: int = 80) -> pd.DataFrame:
    """Five annotators and a judge that reads the truth better than each of them, twice."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 5, n)
    records = []
    for i in range(n):
        given = {rater: int(np.clip(truth[i] + rng.integers(-1, 2), 0, 4)) for rater in "abcde"}
        records += [(i, rater, "annotator", score, 0, f"g{i % 4}") for rater, score in given.items()]
        for repeat in range(2):
            score = truth[i] if steady else int(rng.integers(0, 5))
            records.append((i, "j", "judge", int(score), repeat, f"g{i % 4}"))
    frame = pd.DataFrame(records, columns=["item", "rater", "rater_kind", "score", "repeat", "generator"])
    return frame.assign(characters=100 + frame["item"] * 37 % 90)


def test_the_gate_lets_a_good_judge_through_and_says_what_a_bad_one_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steady, decision in ((True, "judge_alone"), (False, "humans_only")):
        path = str(tmp_path / f"{steady}.csv")
        judged(steady).to_csv(path, index=False)
        found = rows(
            capsys, "gate", path, "--judge", "j", "--preset", "crowd", "--readable", "0.95", "--length", "characters"
        )
        assert list(values(found, "gate_decision")) == [decision]
        findings = {row["variant"]: row for row in found if row["statistic"] == "gate_finding"}
        assert findings["flip_rate"]["value"] == float(steady)
    assert "would change it: a better judge" in findings["alt_test"]["note"]
    judged(True).to_csv(path, index=False)
    without_lengths = rows(capsys, "gate", path, "--judge", "j", "--preset", "crowd")
    assert "judge_alone" not in values(without_lengths, "gate_decision")
    notes = {row["variant"]: row["note"] for row in without_lengths if row["statistic"] == "gate_finding"}
    assert notes["verbosity"] == "does not hold: verbosity: not run; would change it: run the audit: verbosity"
    changed = rows(capsys, "gate", path, "--judge", "j", "--stale", "a new prompt")
    assert list(values(changed, "gate_decision")) == ["stale"]


def parallel(n: int = 40) -> pd.DataFrame:
    """n scenarios in two languages, answered by two generators; A is one point better. Half are labelled."""
    rng = np.random.default_rng(9)
    records = []
    for scenario in range(n):
        for language in ("en", "et"):
            truth = int(rng.integers(1, 4))
            for generator, shift in (("A", 1), ("B", 0)):
                item = f"{scenario}{language}{generator}"
                start = (item, f"s{scenario}", language, generator, "hard" if scenario % 4 == 0 else "easy")
                if scenario % 2 == 0:
                    records += [(*start, name, "annotator", truth + shift) for name in "ab"]
                for j, name in enumerate("jkl"):
                    near = truth + shift + int(rng.integers(0, 2)) * (j + 1) // 2
                    records.append((*start, name, "judge", min(near, 5)))
    columns = ["item", "cluster", "language", "generator", "kind", "rater", "rater_kind", "score"]
    return pd.DataFrame(records, columns=columns)


def test_strata_and_pairs_of_generators_are_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, frame = str(tmp_path / "parallel.csv"), parallel()
    frame.to_csv(path, index=False)
    asked = ["correct", path, "--judge", "j", "--scale", "1,2,3,4,5", "--by", "language"]
    found = rows(capsys, *asked, "--stratum", "kind", "--generators", "A,B")
    gaps = [row for row in found if row["statistic"] == "ppi_plus_difference"]
    assert [(row["variant"], row["n_items"], row["n_clusters"]) for row in gaps] == [("A - B", 20, 20)] * 2
    for row in gaps:
        assert row["low"] is None or row["low"] <= 1 <= row["high"]
        assert row["value"] == pytest.approx(1, abs=0.3)
    strata = [row for row in found if row["variant"] == "stratified"]
    assert [(row["note"], row["n_items"]) for row in strata] == [("2 strata by kind", 40)] * 2
    for row in strata:  # the labels' means by stratum, weighted as the items are, moved by what the judge saw elsewhere
        here = frame[(frame["language"] == row["language"]) & (frame["rater"] == "a")]
        means = here.groupby("kind")["score"].mean()
        assert row["value"] == pytest.approx(0.25 * means["hard"] + 0.75 * means["easy"], abs=0.35)
    twice = frame.assign(generator="A", item=frame["item"] + "x")
    pd.concat([frame, twice]).to_csv(path, index=False)
    (first, *_) = rows(capsys, *asked, "--generators", "A,B", "--statistic", "ppi_plus_difference")
    assert "several items of one generator" in first["reason"]


def test_juries_gaps_and_levels_beside_consistency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, frame = str(tmp_path / "parallel.csv"), parallel()
    tone = frame.assign(criterion="tone", score=frame["score"].where(frame["language"] == "en", 1))
    pd.concat([frame.assign(criterion="flow"), tone]).to_csv(path, index=False)
    asked = ["consistency", path, "--scale", "1,2,3,4,5", "--bootstrap", "0"]
    found = rows(capsys, *asked, "--jury", "j,k,l", "--gap", "flow,tone")
    own = {(row["judge"], row["criterion"]): row["value"] for row in found if row["variant"] == "unequal"}
    for criterion in ("flow", "tone"):
        beside = {row["variant"]: row["value"] for row in found
                  if row["judge"] == "j + k + l" and row["criterion"] == criterion}  # fmt: skip
        assert beside["min"] == min(own[judge, criterion] for judge in "jkl")
        assert beside["ens-min"] == pytest.approx(beside["ens"] - beside["min"])
    gaps = {row["judge"]: row["value"] for row in found if row["variant"] == "flow - tone"}
    assert gaps == {judge: pytest.approx(own[judge, "flow"] - own[judge, "tone"]) for judge in "jkl"}
    levels = rows(capsys, *asked, "--statistic", "kappa_against_level")
    assert [(row["criterion"], row["n_raters"]) for row in levels] == [("flow", 3), ("tone", 3)]
    means = frame.groupby("rater")["score"].mean()
    order = np.argsort([own[judge, "flow"] for judge in "jkl"]), np.argsort([means[judge] for judge in "jkl"])
    assert levels[0]["value"] == pytest.approx(np.corrcoef(*map(np.argsort, order))[0, 1])


def test_examples_for_a_prompt_are_drawn_per_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "parallel.csv")
    parallel().to_csv(path, index=False)
    asked = ["reference", path, "--by", "language", "--statistic", "few_shot_example", "--examples", "2"]
    found = rows(capsys, *asked)
    drawn = [(row["language"], row["value"]) for row in found]
    assert max(drawn.count(one) for one in drawn) == 2
    assert {value for _, value in drawn} == {1, 2, 3, 4}
    assert all("must not be judged" in row["note"] for row in found)
    assert found == rows(capsys, *asked)
    assert found != rows(capsys, *asked, "--seed", "5")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["correct", "--judge", "j", "--stratum", "kind"], "'kind' (given by --stratum) is missing"),
        (["correct", "--judge", "j", "--generators", "A"], "name two generators"),
        (["correct", "--judge", "j", "--generators", "A,B"], "no generator is called 'A'"),
        (["consistency", "--jury", "j"], "two judges or more"),
        (["consistency", "--jury", "j,nobody"], "no rater is called 'nobody'"),
        (["consistency", "--gap", "flow"], "name two criteria"),
        (["consistency", "--gap", "flow,none"], "no criterion is called"),
    ],
)
def test_what_a_further_option_lacks_is_said(
    argv: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = PANEL.splitlines()
    path = write(tmp_path, "\n".join([f"{lines[0]},language", *(f"{line},et" for line in lines[1:])]))
    assert run_command([argv[0], path, *argv[1:]]) == 2
    assert message in capsys.readouterr().err


# --- files and options that can't be used -----------------------------------------------------------------------------

OWN = {
    "reference": [], "criteria": [], "contrast": ["--panels", "p,q"], "rationales": [], "audit": ["--judge", "j"],
    "equivalence": ["--raters", "a,j"], "severity": ["--judge", "j"], "conformal": ["--judge", "j"],
    "jury": ["--judge", "j,k"], "recovery": ["--parameters", "channel"], "gate": ["--judge", "j"],
}  # fmt: skip


@pytest.mark.parametrize("subcommand", OWN)
@pytest.mark.parametrize("text", ["", f"{HEADER}\n", "thing,other\n1,2\n"])
def test_what_is_no_file_of_ratings_is_refused(
    subcommand: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([subcommand, write(tmp_path, text), *OWN[subcommand]]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert "ratings.csv:1: " in printed.err


@pytest.mark.parametrize(
    ("subcommand", "options", "message"),
    [
        ("criteria", [], "one criterion"),
        ("contrast", ["--panels", "p"], "name two panels"),
        ("rationales", [], "the column 'rationale' is missing"),
        ("equivalence", [], "name two raters"),
        ("equivalence", ["--raters", "a,nobody"], "no rater is called 'nobody'"),
        ("severity", ["--judge", "j"], "'language' is missing"),
        ("jury", ["--judge", "j"], "two judges or more"),
        ("audit", ["--judge", "j", "--length", "words"], "'words' (given by --length) is missing"),
        ("audit", ["--judge", "j", "--against", "nobody"], "no rater is called 'nobody'"),
        ("gate", ["--judge", "nobody"], "no rater is called 'nobody'"),
        ("gate", ["--judge", "j", "--pool"], "criterion by criterion"),
        ("reference", ["--critical", "mark"], "'mark' (given by --critical) is missing"),
        ("recovery", ["--parameters", "channel"], "'channel' is missing"),
    ],
)
def test_what_an_option_lacks_is_said(
    subcommand: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([subcommand, write(tmp_path, PANEL), *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, message in printed.err) == ("", True)


LANGUAGES = f"{HEADER},language,criterion,panel,rationale,channel,judge_channel\n"
ENDS = ["ms,flow,p,,mail,mail", "sw,tone,q,words here,chat,"]  # languages of small dictionaries
SMALL = {
    "one item, one rater": [f"1,a,annotator,1,{ENDS[0]}", f"2,j,judge,1,{ENDS[0]}", f"2,k,judge,1,{ENDS[1]}",
                            f"2,a,annotator,1,{ENDS[1]}"],
    "nothing but the judges": [f"{i},{r},judge,{i % 2},{ENDS[i % 2]}" for i in range(4) for r in "jk"]
    + [f"9,a,annotator,,{ENDS[0]}"],
    "huge and tiny": [f"{i},{r},{'judge' if r in 'jk' else 'annotator'},{[1e40, -1e-40, -1e40][i % 3]},{ENDS[i % 2]}"
                      for i in range(8) for r in "abjk"],
}  # fmt: skip
"""One score everywhere, words, and nothing that applies: test_edges.py."""


@pytest.mark.parametrize("subcommand", OWN)
@pytest.mark.parametrize("case", SMALL)
def test_hardly_any_data_gives_reasons(
    subcommand: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, LANGUAGES + "\n".join(SMALL[case]) + "\n")
    status = run_command([subcommand, path, *OWN[subcommand], "--bootstrap", "200", "--format", "json"])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert status in (0, 2), printed.err
    if status:
        assert printed.err.startswith(path)
        return
    for row in json.loads(printed.out)["estimates"]:
        assert row["value"] is not None or row["reason"]
        assert row["low"] is None or row["low"] <= row["high"]


@pytest.mark.parametrize("subcommand", OWN)
def test_help_has_an_example(subcommand: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run_command([subcommand, "--help"])
    assert left.value.code == 0
    assert f"panelbench stats {subcommand}" in " ".join(capsys.readouterr().out.split("Example:")[1].split())


# --- every public function is reached ---------------------------------------------------------------------------------

NOTEBOOKS = {
    "judge.reference.reference_labels": "labels as a frame; `reference --statistic reference_label` lists them",
    "judge.reference.ReferenceLabels": "what it returns",
    "judge.agreement_classes.agreement_class_report": "classes of a table; calibration has them of one judge",
    "judge.substitution.substituted": "the expectation of single items; calibration shows its mean",
    "judge.calibrators.pooled": "a calibrator for many languages at once, to apply to scores",
    "agreement.coefficient_estimates.patterns_of_codes": "alpha from an array at its fastest; the bench measures it",
}
"""What is called from a notebook only, and why."""
ROOTS = ("cli.commands.", "declared.", "analytics.", "judging.", "annotation.")
"""Modules whose names count as reached: subcommands, declared reports with the functions that they name, other apps."""


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(path for app in ("analytics", "judging", "annotation") for path in (ROOT / app).rglob("*.py")):
        name = ".".join(path.relative_to(STATS if path.is_relative_to(STATS) else ROOT).with_suffix("").parts)
        yield name, ast.parse(path.read_text())


def _names(node: ast.AST) -> set[str]:
    """Every name, attribute and import that a piece of code mentions."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.ImportFrom):
            found |= {alias.name for alias in part.names}
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and re.fullmatch(r"[\w.]+:\w+", part.value):
            found.add(part.value.partition(":")[2])  # a function of a declared report
    return found


def test_every_public_function_is_reached_by_a_command_or_another_app() -> None:
    """Names are followed from subcommands, other apps and what notebooks are given, through module after module."""
    defined: dict[str, list[str]] = {}
    mentions: dict[str, set[str]] = {}
    waiting: list[str] = ["cli.commandline"]
    for module, tree in _trees():
        is_root = module == "__init__" or module.startswith(
            ("cli.commands.", "declared.", "analytics.", "judging.", "annotation.")
        )
        rest = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        mentions[module] = set().union(*(_names(node) for node in rest if not isinstance(node, ast.ImportFrom)))
        if is_root:
            mentions[module] |= _names(tree)
            waiting.append(module)
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defined.setdefault(node.name, []).append(f"{module}.{node.name}")
                mentions[f"{module}.{node.name}"] = _names(node) | mentions[module]
    mentions["cli.commandline"] |= {"main"}
    reached: set[str] = set()
    while waiting:
        here = waiting.pop()
        for name in mentions[here]:
            for there in defined.get(name, ()):
                if there not in reached:
                    reached.add(there)
                    waiting.append(there)
    public = {full for name, places in defined.items() if not name.startswith("_") for full in places}
    assert sorted(public - reached - set(NOTEBOOKS)) == []
    assert set(OWN) < set(SUBCOMMANDS)
