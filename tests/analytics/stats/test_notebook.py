"""docs/statistics.ipynb runs, prints what is stored in it and states true figures; its names load nothing else.

``python -m tests.analytics.stats.test_notebook`` writes the outputs of its cells anew.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics import stats
from analytics.stats import alt_test, calibration, corrected_mean, gwet_ac, krippendorff_alpha, ranking_stability

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "statistics.ipynb"


def executed(notebook: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The names that the code cells leave, run in order in one namespace, and what each prints."""
    names: dict[str, Any] = {}
    printed = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with redirect_stdout(io.StringIO()) as output:
                exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
            printed.append(output.getvalue())
    return names, printed


def stored(cell: dict[str, Any]) -> str:
    return "".join(line for output in cell["outputs"] for line in output["text"])


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def names(notebook: dict[str, Any]) -> dict[str, Any]:
    return executed(notebook)[0]


def test_cells_print_what_the_notebook_shows(notebook: dict[str, Any]) -> None:
    shown = [stored(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert executed(notebook)[1] == shown
    assert len([text for text in shown if text]) >= 7


def test_agreement_is_what_is_worked_out_by_hand(names: dict[str, Any]) -> None:
    assert names["agree"].value == pytest.approx(3 / 4)
    assert names["alpha"].value == pytest.approx(1 - 7 * 2 / 30)
    assert names["kappa"].value == pytest.approx(1 / 2)
    assert names["all_the_same"].value is None
    assert "chance alone" in names["all_the_same"].reason


def test_reliability_is_that_of_shrout_and_fleiss(names: dict[str, Any]) -> None:
    published = {"1,1": 0.17, "2,1": 0.29, "3,1": 0.71, "1,k": 0.44, "2,k": 0.62, "3,k": 0.91}
    assert {form: round(estimate.value, 2) for form, estimate in names["reliability"].items()} == published


def test_calibration_is_what_is_worked_out_by_hand(names: dict[str, Any]) -> None:
    figures = names["figures"]
    assert [figures[name].value for name in ("accuracy", "mae", "bias")] == pytest.approx([4 / 6, 2 / 6, 0])


def test_a_judge_without_an_error_passes_and_one_two_off_fails(names: dict[str, Any]) -> None:
    assert (names["good"].omega, names["good"].rho, names["good"].passes) == (1, 1, True)
    assert (names["bad"].omega, names["bad"].rho, names["bad"].passes) == (0, 0, False)


def test_the_mean_is_corrected_by_lambda_times_the_judges_difference(names: dict[str, Any]) -> None:
    assert names["judge_scores"].mean() == 3.5
    assert names["of_labels"].value == 75 / 40
    n, rest = 40, 160
    y = np.repeat([1.0, 2, 3, 4], [20, 10, 5, 5])
    others = np.repeat([1.0, 2, 3, 4], [30, 40, 45, 45])
    lam = y.var() / ((1 + n / rest) * np.concatenate([y, others]).var(ddof=1))
    assert names["plain"].value == pytest.approx(y.mean() + lam * (others.mean() - y.mean()))
    assert abs(names["crossfit"].value - 2.5) < abs(names["of_labels"].value - 2.5)


def test_rankings_differ_in_one_pair_of_three(names: dict[str, Any]) -> None:
    compared = names["compared"]
    assert (compared.tau_b, compared.spearman, compared.inversions) == pytest.approx((1 / 3, 1 / 2, 1))
    found = {row.estimate.statistic: row.estimate for row in names["ranking"]}
    assert (found["kendall_tau_b"].value, found["inversions"].value) == pytest.approx((1 / 3, 1))


def test_every_name_is_there_once_and_documented() -> None:
    assert set(stats.__all__) == set(stats._PLACES) <= set(dir(stats))
    assert list(stats.__all__) == sorted(stats.__all__)
    assert [name for name in stats.__all__ if not getattr(stats, name).__doc__] == []
    with pytest.raises(AttributeError, match="no attribute 'kripendorff'"):
        _ = stats.kripendorff


def test_a_module_of_a_room_loads_no_other_room() -> None:
    code = (
        "import sys, analytics.stats.core.scales; "
        "print(sorted({'pandas', 'scipy', 'analytics.stats.arrays'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_texts_and_declared_points_are_scales() -> None:
    assert krippendorff_alpha([["a", "a"], ["b", None], ["b", "b"]], bootstrap=0).value == pytest.approx(1)
    two, three = (gwet_ac([[1, 1], [2, 2], [1, 2]], points=points, bootstrap=0).value for points in ([1, 2], [1, 2, 3]))
    assert two is not None
    assert three is not None
    assert three > two


def test_a_judge_beyond_the_scale_is_left_out_and_counted() -> None:
    figures = calibration([1, 2, 9], [[1, 1], [2, 2], [3, 3]], points=[1, 2, 3], bootstrap=0)
    assert (figures["accuracy"].value, figures["accuracy"].n_items, figures["out_of_range"].value) == (1, 2, 1)


def test_shapes_that_do_not_fit_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"array of \(items, raters\)"):
        krippendorff_alpha([1, 2, 3])
    with pytest.raises(ValueError, match=r"judge \(2,\), humans \(3, 1\)"):
        alt_test([1, 2], [[1], [2], [3]])
    with pytest.raises(ValueError, match="2 labels beside 3 scores"):
        corrected_mean([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="same length"):
        ranking_stability([1.0], ["A", "B"], ["en", "et"], [1, 2])


def write() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(cells, executed(document)[1], strict=True), 1):
        cell["execution_count"] = number
        output = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [output] if text else []
    NOTEBOOK.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
