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
