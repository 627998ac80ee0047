"""Rogan-Gladen and Lang-Reiczigel: worked by hand, edge rulings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from analytics.stats.judge.ppi import Flags, lang_reiczigel, rogan_gladen


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


def counted(*rows: Any) -> tuple[Flags, Any]:
    """Flags, and the counts (C, 6) of their clusters, from each item's (6, n) marks and clusters (n,)."""
    marks, cluster = rows
    by_cluster = np.stack([np.bincount(cluster, weights=row) for row in marks], axis=1)
    names = ("flagged", "judged", "true_positives", "positives", "true_negatives", "negatives")
    return Flags(**dict(zip(names, marks.sum(axis=1).tolist(), strict=True))), by_cluster


def flags_in_clusters(rng: np.random.Generator, size: int, clusters: int) -> tuple[Flags, Any]:
    """A flag on about every fourth item, by cluster; the judge's mistakes come by cluster, too; half are labelled."""
    cluster = np.repeat(np.arange(clusters), size)
    truth = rng.normal(size=clusters)[cluster] + rng.normal(size=len(cluster)) > 0.95
    flag = truth * 2.0 - 1 + 0.8 * rng.normal(size=clusters)[cluster] + 0.8 * rng.normal(size=len(cluster)) > 0
    known = cluster < clusters // 2
    rows = (flag & ~known, ~known, flag & truth & known, truth & known, ~flag & ~truth & known, ~truth & known)
    return counted(np.stack(rows), cluster)


def test_clusters_of_one_item_have_a_design_effect_of_one() -> None:
    counts, by_cluster = flags_in_clusters(np.random.default_rng(1), 1, 3000)
    plain, clustered = rogan_gladen(counts), rogan_gladen(counts, by_cluster=by_cluster)
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=2e-3)


def test_prevalence_in_forty_clusters_is_held_in_nineteen_samples_of_twenty() -> None:
    truth = norm.sf(0.95 / np.sqrt(2))
    rng, held, ignoring = np.random.default_rng(2), 0, 0
    for _ in range(400):
        counts, by_cluster = flags_in_clusters(rng, 12, 60)
        robust, alone = rogan_gladen(counts, by_cluster=by_cluster), rogan_gladen(counts)
        held += robust.low <= truth <= robust.high
        ignoring += alone.low <= truth <= alone.high
    assert ignoring / 400 < 0.85
    assert 0.92 <= held / 400 <= 0.985
