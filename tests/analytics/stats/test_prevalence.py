"""Rogan-Gladen and Lang-Reiczigel: worked by hand, edge rulings."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.stats.prevalence import Flags, lang_reiczigel, rogan_gladen


def flags(**changes: Any) -> Flags:
    return Flags(**({"flagged": 30, "judged": 100, "true_positives": 18, "positives": 20, "true_negatives": 72,
                     "negatives": 80} | changes))  # fmt: skip


def test_point_estimate_worked_by_hand() -> None:
    # Se = .9, Sp = .9, apparent .3: (.3 + .9 - 1) / .8 = .25.
    estimate = rogan_gladen(flags())
    assert estimate.value == pytest.approx(0.25)
    assert estimate.low < 0.25 < estimate.high


def test_interval_with_a_certain_judge_is_agresti_coull() -> None:
    # With huge validation samples that never err only the binomial part is left:
    # p = (30 + z^2/2)/(100 + z^2) = .30740, se = sqrt(p(1-p)/(n + z^2)) = .04528; bounds .2187, .3961.
    sure = flags(true_positives=10**9, positives=10**9, true_negatives=10**9, negatives=10**9)
    assert lang_reiczigel(sure) == pytest.approx((0.2187, 0.3961), abs=2e-4)


def test_a_judge_no_better_than_chance_is_undefined() -> None:
    estimate = rogan_gladen(flags(true_positives=10, true_negatives=40))
    assert estimate.value is None
    assert "tells nothing" in estimate.reason


def test_a_judge_worse_than_chance_is_flagged_and_clipping_said() -> None:
    assert "wrong way" in rogan_gladen(flags(true_positives=4, true_negatives=20)).note
    clipped = rogan_gladen(flags(flagged=2))
    assert clipped.value == 0
    assert "clipped from -0.100" in clipped.note


def test_no_labelled_positive_is_undefined() -> None:
    assert rogan_gladen(flags(true_positives=0, positives=0)).value is None
