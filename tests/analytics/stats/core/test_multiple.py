"""Corrections for families of tests, against statsmodels."""

from __future__ import annotations

import pytest
from statsmodels.stats.multitest import multipletests

from analytics.stats.core import estimates

P = [0.041, 0.001, 0.27, 0.008, 0.6, 0.039]


def test_holm_matches_statsmodels() -> None:
    assert estimates.holm(P) == pytest.approx(multipletests(P, method="holm")[1])
    assert estimates.holm([]) == []


def test_benjamini_yekutieli_matches_statsmodels() -> None:
    assert estimates.benjamini_yekutieli(P, 0.05) == list(multipletests(P, 0.05, method="fdr_by")[0])
    assert estimates.benjamini_yekutieli([0.9, 0.8], 0.05) == [False, False]


def test_tests_of_a_family_are_corrected_together() -> None:
    """Two families, a row without a p, and one that belongs to no family."""
    rows = [estimates.CellEstimate(estimate=estimates.Estimate(statistic="a", value=1.0, p=p, note="kept")) for p in P]
    rows.append(estimates.CellEstimate(estimate=estimates.Estimate(statistic="b", value=1.0, p=0.03)))
    rows.append(estimates.CellEstimate(estimate=estimates.Estimate(statistic="a", value=None, reason="none")))
    rows.append(estimates.CellEstimate(estimate=estimates.Estimate(statistic="c", value=1.0, p=0.5)))
    names: dict[str, object] = {"a": "first", "b": "second", "c": estimates.NO_FAMILY}
    found = [row.estimate for row in estimates.corrected_together(rows, lambda row: names[row.estimate.statistic])]
    assert [row.p_corrected for row in found[:6]] == pytest.approx(list(multipletests(P, method="holm")[1]))
    assert {row.family for row in found[:6]} == {6}
    assert found[1].note == "kept; Holm p 0.006 in a family of 6"
    assert (found[6].p_corrected, found[6].family, found[6].note) == (0.03, 1, None)
    assert [(row.p_corrected, row.family) for row in found[7:]] == [(None, None), (None, None)]
