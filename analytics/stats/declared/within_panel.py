"""Who and what makes a panel agree: classes, annotators left out, pairs, criteria, panels, rationales."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable
from analytics.stats.declared.variants import UNEQUAL, WEIGHTED_AC, WEIGHTED_KAPPA

_ABOUT_CLASSES = "methods/agreement.md#classes-of-agreement-criteria-panels-rationales"
_AGREEMENT_CLASSES = StatisticsReport(
    "agreement classes",
    "analytics.stats.judge.agreement_classes:agreement_class_report",
    group="panel",
    doc=_ABOUT_CLASSES,
    takes=("by",),
    verdicts="all",
)
_COMMONEST_SCORE = StatisticsReport(
    "commonest score",
    "analytics.stats.agreement.within_panel:commonest_report",
    group="panel",
    doc="methods/agreement.md#one-score-dominates-the-prevalence-warning",
)
_RATIONALES = StatisticsReport(
    "rationales",
    "analytics.stats.agreement.within_panel:rationale_length_report",
    group="panel",
    doc=_ABOUT_CLASSES,
    takes=("by", "confidence"),
    reads=("rationale_length",),
    verdicts="all",
)
_DIVIDED_ITEMS = StatisticsReport(
    "divided items",
    "analytics.stats.agreement.within_panel:spread_report",
    group="panel",
    doc="methods/agreement.md#the-items-that-divide-a-panel",
    is_whole=True,
    in_file_order=True,
)
_LEFT_OUT = StatisticsReport(
    "left out",
    "analytics.stats.agreement.within_panel:left_out_report",
    group="panel",
    doc="methods/agreement.md#the-influence-of-one-annotator",
    prefix="left_out.",
    takes=("by", "pool", "statistics", "confidence"),
)
_PAIRS_OF_RATERS = StatisticsReport(
    "pairs of raters",
    "analytics.stats.agreement.within_panel:pair_report",
    group="panel",
    doc="methods/agreement.md#pairs-of-annotators",
    prefix="pairs.",
    takes=("by", "pool", "statistics", "bootstrap", "confidence", "seed", "pairs"),
)
_PAIRS_OF_CRITERIA = StatisticsReport(
    "pairs of criteria",
    "analytics.stats.judge.differences:between_criteria",
    group="panel",
    doc=_ABOUT_CLASSES,
    takes=("by", "resamples", "seed"),
    across=("criterion",),
    is_whole=True,
    needs_means=True,
)
_MEANS_OF_PANELS = StatisticsReport(
    "means of panels",
    "analytics.stats.judge.differences:between_panels",
    group="panel",
    doc=_ABOUT_CLASSES,
    takes=("by", "resamples", "seed"),
    once_per=("pair of panels",),
    needs_means=True,
)
_MODES_OF_PANELS = StatisticsReport(
    "modes of panels",
    "analytics.stats.agreement.within_panel:same_mode_report",
    group="panel",
    doc=_ABOUT_CLASSES,
    takes=("by", "confidence"),
    once_per=("pair of panels",),
)
REPORTS = (
    _AGREEMENT_CLASSES,
    _COMMONEST_SCORE,
    _RATIONALES,
    _DIVIDED_ITEMS,
    _LEFT_OUT,
    _PAIRS_OF_RATERS,
    _PAIRS_OF_CRITERIA,
    _MEANS_OF_PANELS,
    _MODES_OF_PANELS,
)
STATISTICS = (
    Statistic(
        "class_share",
        _AGREEMENT_CLASSES,
        translatable("Share of agreement classes"),
        written="share",
        part="agreement_class",
    ),
    Statistic(
        "score_share",
        _AGREEMENT_CLASSES,
        translatable("Share of each score by agreement class"),
        items="this score",
        written="share",
        part="variant",
    ),
    Statistic("commonest_share", _COMMONEST_SCORE, translatable("Share of the most frequent score"), written="share"),
    Statistic("criteria_spearman", _PAIRS_OF_CRITERIA, translatable("Spearman’s ρ between two criteria")),
    Statistic(
        "panel_difference",
        _MEANS_OF_PANELS,
        translatable("Difference of two panels’ means"),
        written="signed",
        better="zero",
    ),
    Statistic("panel_spearman", _MEANS_OF_PANELS, translatable("Spearman’s ρ between two panels"), better="higher"),
    Statistic(
        "panel_same_mode",
        _MODES_OF_PANELS,
        translatable("Items on which two panels have the same mode"),
        written="share",
        better="higher",
    ),
    Statistic("rationale_share", _RATIONALES, translatable("Ratings with a rationale"), written="share"),
    Statistic("rationale_length", _RATIONALES, translatable("Length of a rationale, median of characters")),
    Statistic("label_spread", _DIVIDED_ITEMS, translatable("Items on which annotators differ most")),
    Statistic("label_share", _DIVIDED_ITEMS, translatable("Share of each score on these items"), written="share"),
    Statistic(
        "left_out.krippendorff_alpha",
        _LEFT_OUT,
        translatable("α without each annotator"),
        items="two scores",
        better="higher",
    ),
    Statistic(
        "left_out.krippendorff_alpha_change",
        _LEFT_OUT,
        translatable("Change of α without each annotator"),
        items="two scores",
        written="signed",
    ),
    Statistic(
        "left_out.fleiss_kappa",
        _LEFT_OUT,
        translatable("Fleiss’ κ without each annotator"),
        items="two scores",
        usual=UNEQUAL,
        better="higher",
    ),
    Statistic(
        "left_out.fleiss_kappa_change",
        _LEFT_OUT,
        translatable("Change of Fleiss’ κ without each annotator"),
        items="two scores",
        written="signed",
    ),
    Statistic(
        "left_out.gwet_ac",
        _LEFT_OUT,
        translatable("Gwet’s AC without each annotator"),
        items="two scores",
        usual=WEIGHTED_AC,
        better="higher",
    ),
    Statistic(
        "left_out.gwet_ac_change",
        _LEFT_OUT,
        translatable("Change of Gwet’s AC without each annotator"),
        items="two scores",
        written="signed",
    ),
    Statistic(
        "left_out.percent_agreement",
        _LEFT_OUT,
        translatable("Percent agreement without each annotator"),
        items="two scores",
        written="share",
        better="higher",
    ),
    Statistic(
        "left_out.percent_agreement_change",
        _LEFT_OUT,
        translatable("Change of percent agreement without each annotator"),
        items="two scores",
        written="signed",
    ),
    Statistic(
        "pairs.cohen_kappa",
        _PAIRS_OF_RATERS,
        translatable("Cohen’s κ of each pair of annotators"),
        items="two scores",
        usual=WEIGHTED_KAPPA,
        better="higher",
    ),
    Statistic(
        "pairs.percent_agreement",
        _PAIRS_OF_RATERS,
        translatable("Percent agreement of each pair of annotators"),
        items="two scores",
        written="share",
        better="higher",
    ),
)
