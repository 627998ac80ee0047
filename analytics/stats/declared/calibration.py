"""One judge beside the panel."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import WEIGHTED_KAPPA

_ABOUT_REFERENCE = "methods/calibration.md#the-reference"
_ABOUT_CORRELATIONS = "methods/calibration.md#correlations-pearson-spearman-kendall_tau_b"
_ABOUT_ERRORS = "methods/calibration.md#errors-mae-rmse-bias"
_CALIBRATION = StatisticsReport(
    "calibration",
    "analytics.stats.judge.calibration:calibration_report",
    group="judge",
    needs=("judge",),
    doc="methods/calibration.md#labels-accuracy-accuracy_adjacent-f1-f1_weighted-f1_macro-precision-recall-cohen_kappa",
    takes=("by", "pool", "statistics", "keeps", "bootstrap", "confidence", "seed"),
    once_per=("judge", "rule"),
    verdicts="one",
)
_HUMAN_CEILING = StatisticsReport(
    "human ceiling",
    "analytics.stats.judge.calibration:beside_humans",
    group="judge",
    needs=("judge",),
    doc="methods/calibration.md#the-human-ceiling-ceiling_accuracy-ceiling_mae-ceiling_pearson",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed"),
    once_per=("judge",),
    verdicts="one",
)
REPORTS = (
    _CALIBRATION,
    _HUMAN_CEILING,
)
STATISTICS = (
    Statistic("mae", _CALIBRATION, translatable("MAE"), better="lower", doc=_ABOUT_ERRORS),
    Statistic(
        "bias",
        _CALIBRATION,
        translatable("Bias (judge − panel)"),
        short_title=translatable("Bias"),
        written="signed",
        better="zero",
        doc=_ABOUT_ERRORS,
    ),
    Statistic("rmse", _CALIBRATION, translatable("RMSE"), better="lower", doc=_ABOUT_ERRORS),
    Statistic("accuracy", _CALIBRATION, translatable("Accuracy"), better="higher"),
    Statistic("accuracy_adjacent", _CALIBRATION, translatable("Accuracy within one step"), better="higher"),
    Statistic(
        "cohen_kappa",
        _CALIBRATION,
        translatable("Cohen’s κ"),
        short_title=translatable("Weighted κ"),
        usual=WEIGHTED_KAPPA,
        better="higher",
        prefers_bca=True,
    ),
    Statistic("f1", _CALIBRATION, translatable("F1 of each label"), better="higher", part="variant"),
    Statistic("f1_weighted", _CALIBRATION, translatable("F1, weighted"), better="higher"),
    Statistic("f1_macro", _CALIBRATION, translatable("F1, mean of labels (macro)"), better="higher"),
    Statistic("precision", _CALIBRATION, translatable("Precision of each label"), better="higher", part="variant"),
    Statistic("recall", _CALIBRATION, translatable("Recall of each label"), better="higher", part="variant"),
    Statistic(
        "spearman",
        _CALIBRATION,
        translatable("Spearman’s ρ"),
        short_title=translatable("Spearman ρ"),
        better="higher",
        doc=_ABOUT_CORRELATIONS,
    ),
    Statistic("kendall_tau_b", _CALIBRATION, translatable("Kendall’s τ-b"), better="higher", doc=_ABOUT_CORRELATIONS),
    Statistic("pearson", _CALIBRATION, translatable("Pearson’s r"), better="higher", doc=_ABOUT_CORRELATIONS),
    Statistic(
        "ceiling_accuracy", _HUMAN_CEILING, translatable("Accuracy beside a left-out annotator’s"), better="higher"
    ),
    Statistic("ceiling_mae", _HUMAN_CEILING, translatable("MAE beside a left-out annotator’s"), better="lower"),
    Statistic(
        "ceiling_pearson", _HUMAN_CEILING, translatable("Pearson’s r beside a left-out annotator’s"), better="higher"
    ),
    Statistic(
        "without_reference",
        _CALIBRATION,
        translatable("Items without a reference label"),
        items="not compared",
        better="lower",
        doc=_ABOUT_REFERENCE,
    ),
    Statistic(
        "out_of_range",
        _CALIBRATION,
        translatable("Judge scores off the scale"),
        items="not compared",
        better="lower",
        doc=_ABOUT_REFERENCE,
    ),
)
