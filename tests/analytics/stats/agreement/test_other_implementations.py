"""Two tables as other people's programs have them: irrCAC 0.4.4 (values and standard errors), pingouin 0.6.1 (ICC).

Both were run once, outside this repository, on 300 random tables with and without missing scores; these two are kept.
"""

from __future__ import annotations

import numpy as np
import pytest

from analytics.stats.agreement import reliability
from analytics.stats.agreement.rater_agreement import measure
from analytics.stats.core.scales import scale_of

GAPS = "33033 1.344 1.310 01114 1030. 2.222 43444 43.24 03000 34403 3.21. .3123 32333"
WHOLE = "202 010 122 332 123 321 212 302 121 222 221 002 311"
POINTS = {GAPS: 5, WHOLE: 4}
WEIGHTED = {
    (GAPS, "gwet_ac"): "0.2101015855 0.0985322619  0.3004650500 0.0974468697"
                       "  0.3771848388 0.1225018194  0.3558204077 0.1139191957",
    (GAPS, "brennan_prediger"): "0.2051282051 0.0993503580  0.2740384615 0.0971128282"
                                "  0.3301282051 0.1200536237  0.3141025641 0.1116239891",
    (GAPS, "conger_kappa"): "0.1848131947 0.1056848884  0.2507267685 0.0864226082"
                            "  0.3038923289 0.1034485224  0.2886281573 0.0962651786",
    (WHOLE, "gwet_ac"): "0.0982015415 0.1010183903  0.2907959802 0.1380951286"
                        "  0.4629451396 0.1645106983  0.4083737864 0.1568783071",
    (WHOLE, "brennan_prediger"): "0.0769230769 0.0936277876  0.2205128205 0.1148229444"
                                 "  0.3641025641 0.1464908396  0.3162393162 0.1348008942",
    (WHOLE, "conger_kappa"): "0.0250000000 0.0822544014  0.0463320463 0.1144916060"
                             "  0.0861678005 0.1722628670  0.0714285714 0.1495473294",
}  # fmt: skip
"""Value and standard error under identity, linear, quadratic and ordinal weights."""
FLEISS = {GAPS: (0.1845922329, 0.1059069978), WHOLE: (0.0066037736, 0.0848534932)}
ALPHA = {GAPS: (0.2191382501, 0.3029914530), WHOLE: (0.0320754717, 0.0966257669)}
"""Nominal and interval."""
ICC = {
    GAPS: "0.3980738363 0.3943472409 0.3825065274 0.7678018576 0.7650130548 0.7559339525",
    WHOLE: "0.1014492754 0.0926829268 0.0900473934 0.2530120482 0.2345679012 0.2289156627",
}
"""(1,1) (2,1) (3,1) (1,k) (2,k) (3,k), from the rows without a gap."""


def scores(table: str) -> list[list[float]]:
    return [[np.nan if mark == "." else float(mark) for mark in row] for row in table.split()]


@pytest.mark.parametrize(("table", "statistic"), WEIGHTED)
def test_weighted_coefficients_and_their_standard_errors(table: str, statistic: str) -> None:
    scale = scale_of(range(POINTS[table]))
    found = [
        measure(scores(table), statistic, scale=scale, variant=variant, bootstrap=0)
        for variant in ("identity", "linear", "quadratic", "ordinal")
    ]
    expected = list(map(float, WEIGHTED[table, statistic].split()))
    assert [number for one in found for number in (one.value, one.se)] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("table", POINTS)
def test_fleiss_and_alpha(table: str) -> None:
    scale = scale_of(range(POINTS[table]))
    fleiss = measure(scores(table), "fleiss_kappa", scale=scale, variant="unequal", bootstrap=0)
    assert (fleiss.value, fleiss.se) == pytest.approx(FLEISS[table], abs=1e-9)
    alphas = [
        measure(scores(table), "krippendorff_alpha", scale=scale_of(range(POINTS[table]), level), bootstrap=0).value
        for level in ("nominal", "interval")
    ]
    assert alphas == pytest.approx(ALPHA[table], abs=1e-9)


@pytest.mark.parametrize("table", POINTS)
def test_intraclass_correlations(table: str) -> None:
    forms: tuple[reliability.Form, ...] = ("1,1", "2,1", "3,1", "1,k", "2,k", "3,k")
    found = [reliability.icc(np.array(scores(table)), form).value for form in forms]
    assert found == pytest.approx(list(map(float, ICC[table].split())), abs=1e-9)
