"""``panelbench stats`` about judges and rankings, run as a reader runs it: a file in, JSON out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.stats.cli.commandline import run_command

LABELLED = 40


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two languages, three generators, 60 scenarios; three annotators on the first 40, the judge on all."""
    rng = np.random.default_rng(23)
    path = tmp_path_factory.mktemp("stats") / "ratings.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "rater", "rater_kind", "criterion", "score", "language", "generator", "cluster"])
        for i in range(60):
            for language in ("en", "et"):
                for g in range(3):
                    truth = int(np.clip(g + rng.integers(0, 2), 0, 3))
                    where = (f"s{i}", language, f"g{g}", f"s{i}")
                    given = {"gpt": ("judge", truth if rng.random() < 0.7 else int(rng.integers(0, 4)))}
                    if i < LABELLED:
                        given |= {
                            h: ("annotator", truth if rng.random() < 0.8 else int(rng.integers(0, 4))) for h in "abc"
                        }
                    for rater, (kind, score) in given.items():
                        rows.writerow([where[0], rater, kind, "fluency", score, *where[1:]])
    return path


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> list[dict[str, Any]]:
    status = run_command([str(word) for word in (*argv, "--format", "json", "--scale", "0,1,2,3")])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    estimates: list[dict[str, Any]] = json.loads(printed.out)["estimates"]
    return estimates


def only(estimates: list[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    (found,) = (e for e in estimates if all(e.get(name) == value for name, value in wanted.items()))
    return found


def test_calibration_prints_every_published_statistic(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "calibration", ratings, "--judge", "gpt", "--bootstrap", 200)
    published = {"mae", "rmse", "bias", "accuracy", "f1", "f1_weighted", "f1_macro", "precision", "recall",
                 "pearson", "spearman", "kendall_tau_b", "cohen_kappa", "out_of_range"}  # fmt: skip
    assert published <= {e["statistic"] for e in found}
    mae = only(found, statistic="mae", language="et")
    assert (mae["judge"], mae["reference"], mae["criterion"], mae["n_raters"]) == ("gpt", "mode", "fluency", 3)
    assert mae["low"] < mae["value"] < mae["high"]
    assert {e["variant"] for e in found if e["statistic"] == "f1"} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("reference", ["mode", "median", "mean", "each"])
def test_calibration_takes_every_reference(ratings: Path, capsys: pytest.CaptureFixture[str], reference: str) -> None:
    found = run(
        capsys,
        "calibration",
        ratings,
        "--judge",
        "gpt",
        "--reference",
        reference,
        "--statistic",
        "mae",
        "--bootstrap",
        0,
    )
    assert [e["reference"] for e in found] == [reference] * 2
    assert all(0 < e["value"] < 1.5 for e in found)


def test_alt_test_takes_its_score_and_lists_annotators(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "alt-test", ratings, "--judge", "gpt", "--score", "accuracy", "--epsilon", ".2")
    omega = only(found, statistic="alt_test_omega", language="en")
    assert omega["value"] in (0, 1 / 3, 2 / 3, 1)
    assert "accuracy, epsilon 0.2" in omega["note"]
    annotators = [e["annotator"] for e in found if e["statistic"] == "alt_test_rho" and e["language"] == "en"]
    assert annotators == [None, "a", "b", "c"]


def test_alt_test_still_finds_a_renamed_score_column(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = ratings.with_name("renamed.csv")
    renamed.write_text(ratings.read_text().replace("criterion,score,", "criterion,points,", 1))
    found = run(capsys, "alt-test", renamed, "--judge", "gpt", "--score", "points", "--bootstrap", 0)
    assert "rmse" in found[0]["note"]


def test_alt_test_refuses_anonymous_slots(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["alt-test", str(ratings), "--judge", "gpt", "--positional"]) == 2
    assert "anonymous" in capsys.readouterr().err


def test_stability_ranks_in_every_language(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "stability", ratings, "--judge", "gpt", "--bootstrap", 200)
    tau = only(found, statistic="kendall_tau_b", variant=None)
    assert (tau["languages"], tau["value"], tau["judge"]) == (["en", "et"], 1.0, "gpt")
    assert only(found, statistic="inversions", variant=None)["p"] == 1
    assert len([e for e in found if e["statistic"] == "mean"]) == 6


def test_consistency_takes_languages_as_raters(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "consistency", ratings, "--judge", "gpt", "--pivot", "et", "--bootstrap", 200)
    fleiss = only(found, statistic="fleiss_kappa", variant="unequal")
    assert (fleiss["n_items"], fleiss["n_raters"], fleiss["judge"]) == (180, 2, "gpt")
    assert only(found, statistic="language_shift")["languages"] == ["et", "en"]


def test_correct_gives_every_corrected_mean(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "correct", ratings, "--judge", "gpt")
    et = {(e["statistic"], e["variant"]): e for e in found if e["language"] == "et"}
    expected = {
        ("classical_mean", None),
        ("ppi_mean", "plain"),
        ("ppi_plus_mean", "plain"),
        ("ppi_plus_mean", "crossfit"),
    }
    assert expected <= set(et)
    assert et["ppi_plus_mean", "plain"]["n_items"] == LABELLED * 3
    assert et["ppi_plus_mean", "crossfit"]["method"] == "cross-fitted t"
    gains = (et["ppi_gain", "crossfit"], et["calibration_gain", "isotonic"])
    assert [gain["method"] for gain in gains] == ["bootstrap percentile"] * 2
    assert "approximate" in et["calibration_gain", "cell_means"]["method"]
    classical = et["classical_mean", None]
    assert all(classical["low"] < et[key]["value"] < classical["high"] for key in expected)


def test_correct_estimates_the_prevalence_of_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 10 labelled positives (9 found), 10 negatives (9 left alone), 20 unlabelled of which 8 are flagged:
    # Se = Sp = .9, apparent .4: (.4 + .9 - 1) / .8 = .375.
    rows = ["item,rater,score"]
    rows += [f"p{i},a,1\np{i},gpt,{int(i < 9)}" for i in range(10)] + [
        f"n{i},a,0\nn{i},gpt,{int(i >= 9)}" for i in range(10)
    ]
    rows += [f"u{i},gpt,{int(i < 8)}" for i in range(20)]
    path = tmp_path / "flags.csv"
    path.write_text("\n".join(rows))
    assert run_command(["correct", str(path), "--judge", "gpt", "--statistic", "rogan_gladen", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["estimates"]
    assert found["value"] == pytest.approx(0.375)
    assert found["low"] < 0.375 < found["high"]


def test_compare_is_mcnemar_in_four_variants(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "compare", ratings, "--raters", "a,gpt")
    assert [e["variant"] for e in found if e["language"] == "en"] == ["exact", "midp", "chi2", "chi2_corrected"]
    assert all(e["raters"] == ["a", "gpt"] and 0 <= e["value"] <= 1 for e in found)


def test_compare_flags_of_two_labels_worked_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # a alone flags item 1, b alone items 2 to 8: b = 1, c = 7, exact p .0703.
    path = tmp_path / "two.csv"
    pairs = [(1, 0), *[(0, 1)] * 7, (1, 1), (0, 0)]
    path.write_text("item,rater,score\n" + "".join(f"{i},a,{x}\n{i},b,{y}\n" for i, (x, y) in enumerate(pairs)))
    assert run_command(["compare", str(path), "--raters", "a,b", "--format", "json"]) == 0
    exact, *_ = json.loads(capsys.readouterr().out)["estimates"]
    assert exact["value"] == pytest.approx(0.0703125)
    assert "a alone 1, b alone 7" in exact["note"]


def test_compare_needs_two_raters(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", str(ratings), "--raters", "a"]) == 2
    assert "name two raters" in capsys.readouterr().err


def test_plan_says_what_is_still_needed(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(
        capsys,
        "plan",
        ratings,
        "--judge",
        "gpt",
        "--half-width",
        ".1",
        "--budget",
        300,
        "--price",
        "et=2",
        "--bootstrap",
        200,
    )
    humans, judge = (only(found, statistic="labels_needed", variant=v, language="et") for v in ("humans", "judge"))
    assert judge["value"] < humans["value"]
    shares = {e["language"]: e["value"] for e in found if e["statistic"] == "labels_affordable"}
    assert shares["en"] + 2 * shares["et"] <= 300
    assert {"items_needed", "raters_needed", "alt_test_power"} <= {e["statistic"] for e in found}


def test_plan_refuses_a_budget_below_the_floor(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", str(ratings), "--budget", "10", "--bootstrap", "0"]) == 2
    assert "more than the budget" in capsys.readouterr().err


def test_surface_reads_turns_and_names_its_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dialogues.jsonl"
    dialogue = {"language": "et", "generator": "g1"}
    texts = ["Tere päevast, kuidas läheb?", "Tere päevast, mis uudist?"]
    path.write_text(
        "\n".join(
            json.dumps(
                dialogue
                | {"item": i, "turns": [{"speaker": "agent", "text": t}, {"speaker": "client", "text": "Hästi."}]}
            )
            for i, t in enumerate(texts)
        )
    )
    assert run_command(["surface", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    assert {"ttr", "mattr", "self_bleu", "self_repetition", "characters", "words", "sentences", "turns"} <= {
        e["statistic"] for e in found
    }
    assert {e["variant"] for e in found if e["statistic"] == "self_bleu"} == {"whole", "agent", "client"}
    assert only(found, statistic="turns")["value"] == 2
    notes = {name: only(found, statistic=name)["note"] for name in ("ttr", "mattr", "mtld", "self_repetition")}
    assert all("lemmas: simplemma" in note for note in notes.values())
    removed = {name for name, note in notes.items() if "stop words removed" in note}
    assert removed == {"ttr", "mattr"} and "stop words kept" in notes["self_repetition"]


def test_surface_refuses_broken_turns_with_their_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dialogues.csv"
    path.write_text('item,turns\n1,"not json"\n')
    assert run_command(["surface", str(path)]) == 2
    assert "JSON list of {speaker, text}" in capsys.readouterr().err


def test_a_judge_nobody_knows_is_refused(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["calibration", str(ratings), "--judge", "nobody"]) == 2
    assert "no rater is called 'nobody'" in capsys.readouterr().err


def test_columns_of_numbers_are_set_beside_each_other_and_beside_the_panel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One number for each item, however many rows it has; the first beside the second, or beside the panel's means."""
    file, rng = tmp_path / "ratings.csv", np.random.default_rng(3)
    length, depth = rng.normal(size=12), rng.normal(size=12)
    scores = rng.integers(1, 6, size=(12, 2))
    lines = ["item,rater,criterion,score,length,depth"]
    lines += [f"i{n},r{r},fluency,{scores[n, r]},{length[n]!r},{depth[n]!r}" for n in range(12) for r in range(2)]
    file.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")

    def value(measure: str) -> dict[str, float]:
        asked = ["calibration", str(file), "--measure", measure, "--bootstrap", "0", "--format", "json"]
        assert run_command([*asked, "--statistic", "pearson,kendall_tau_b"]) == 0
        return {row["statistic"]: row["value"] for row in json.loads(capsys.readouterr().out)["estimates"]}

    assert value("length,depth")["pearson"] == pytest.approx(np.corrcoef(length, depth)[0, 1], abs=1e-12)
    assert value("length")["pearson"] == pytest.approx(np.corrcoef(length, scores.mean(axis=1))[0, 1], abs=1e-12)
    assert set(value("length")) == {"pearson", "kendall_tau_b"}
    assert run_command(["calibration", str(file), "--measure", "width"]) == 2
    assert "the file has no column 'width'" in capsys.readouterr().err
    assert run_command(["calibration", str(file), "--measure", "length", "--statistic", "mae"]) == 2
    assert "mae is not a correlation" in capsys.readouterr().err
    shares = ["reference", str(file), "--statistic", "score_share", "--format", "json"]
    assert run_command(shares) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert {row["variant"]: row["value"] for row in rows}["3"] == pytest.approx((scores == 3).mean())
