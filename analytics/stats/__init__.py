"""Statistics of panels and judges; numpy, scipy and pandas only. What a notebook needs is here by name.

``from analytics.stats import krippendorff_alpha, alt_test`` loads the module of each name on first use and no other, so
that a worker that needs ``analytics.stats.core.scales`` loads neither pandas nor scipy. ``docs/statistics.ipynb`` shows
each at work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.stats.agreement.rater_agreement import agreement_report, measure
    from analytics.stats.agreement.reliability import icc, reliability_curve, variance_components
    from analytics.stats.arrays import (
        alt_test,
        calibration,
        cohen_kappa,
        corrected_mean,
        fleiss_kappa,
        gwet_ac,
        krippendorff_alpha,
        percent_agreement,
        ranking_stability,
    )
    from analytics.stats.core.estimates import CellEstimate, Estimate, benjamini_yekutieli, holm
    from analytics.stats.core.scales import Scale, scale_of
    from analytics.stats.core.tables import RatingsTable, TableError
    from analytics.stats.core.validation import ratings_table
    from analytics.stats.judge.alt_test import alt_test_report
    from analytics.stats.judge.calibration import calibration_report
    from analytics.stats.judge.corrected_means import correction_report
    from analytics.stats.judge.ppi import Flags, classical_mean, rogan_gladen
    from analytics.stats.planning.pilot import labels_for_mean, labels_with_judge
    from analytics.stats.ranking.concordance import compare_rankings
    from analytics.stats.ranking.stability import stability_report

__all__ = [
    "CellEstimate",
    "Estimate",
    "Flags",
    "RatingsTable",
    "Scale",
    "TableError",
    "agreement_report",
    "alt_test",
    "alt_test_report",
    "benjamini_yekutieli",
    "calibration",
    "calibration_report",
    "classical_mean",
    "cohen_kappa",
    "compare_rankings",
    "corrected_mean",
    "correction_report",
    "fleiss_kappa",
    "gwet_ac",
    "holm",
    "icc",
    "krippendorff_alpha",
    "labels_for_mean",
    "labels_with_judge",
    "measure",
    "percent_agreement",
    "ranking_stability",
    "ratings_table",
    "reliability_curve",
    "rogan_gladen",
    "scale_of",
    "stability_report",
    "variance_components",
]

_ARRAYS = "arrays"
_PLACES = {
    "CellEstimate": "core.estimates",
    "Estimate": "core.estimates",
    "Flags": "judge.ppi",
    "RatingsTable": "core.tables",
    "Scale": "core.scales",
    "TableError": "core.tables",
    "agreement_report": "agreement.rater_agreement",
    "alt_test": _ARRAYS,
    "alt_test_report": "judge.alt_test",
    "benjamini_yekutieli": "core.estimates",
    "calibration": _ARRAYS,
    "calibration_report": "judge.calibration",
    "classical_mean": "judge.ppi",
    "cohen_kappa": _ARRAYS,
    "compare_rankings": "ranking.concordance",
    "corrected_mean": _ARRAYS,
    "correction_report": "judge.corrected_means",
    "fleiss_kappa": _ARRAYS,
    "gwet_ac": _ARRAYS,
    "holm": "core.estimates",
    "icc": "agreement.reliability",
    "krippendorff_alpha": _ARRAYS,
    "labels_for_mean": "planning.pilot",
    "labels_with_judge": "planning.pilot",
    "measure": "agreement.rater_agreement",
    "percent_agreement": _ARRAYS,
    "ranking_stability": _ARRAYS,
    "ratings_table": "core.validation",
    "reliability_curve": "agreement.reliability",
    "rogan_gladen": "judge.ppi",
    "scale_of": "core.scales",
    "stability_report": "ranking.stability",
    "variance_components": "agreement.reliability",
}
"""Module of each name in this package, and its name there where it is another one."""


def __getattr__(name: str) -> Any:
    """One of ``__all__``, its module loaded on first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, inside = _PLACES[name].partition(":")
    attribute = getattr(import_module(f"{__name__}.{module}"), inside or name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
