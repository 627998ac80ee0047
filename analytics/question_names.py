"""What pages and reports call statistics, columns, rules and published questions."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics import families, questions
from analytics.questions import NumbersQuestion, QuestionChoices

STATISTIC_NAMES = {
    "krippendorff_alpha": gettext_lazy("Krippendorff’s α"),
    "fleiss_kappa": gettext_lazy("Fleiss’ κ"),
    "gwet_ac": gettext_lazy("Gwet’s AC"),
    "brennan_prediger": gettext_lazy("Brennan-Prediger κ"),
    "conger_kappa": gettext_lazy("Conger’s κ"),
    "percent_agreement": gettext_lazy("Percent agreement"),
    "percent_agreement_exact": gettext_lazy("Percent agreement, all raters"),
    "percent_agreement_adjacent": gettext_lazy("Percent agreement within one step"),
    "icc": gettext_lazy("Intraclass correlation"),
    "verdict_confidence": gettext_lazy("Verdict Confidence"),
    "applicability_agreement": gettext_lazy("Percent agreement on N/A"),
    "applicability_ac": gettext_lazy("Gwet’s AC1 on N/A"),
    "panel_reliability": gettext_lazy("Reliability of the mean of several raters"),
    "class_share": gettext_lazy("Share of agreement classes"),
    "score_share": gettext_lazy("Share of each score by agreement class"),
    "commonest_share": gettext_lazy("Share of the most frequent score"),
    "criteria_spearman": gettext_lazy("Spearman’s ρ between two criteria"),
    "panel_difference": gettext_lazy("Difference of two panels’ means"),
    "panel_spearman": gettext_lazy("Spearman’s ρ between two panels"),
    "panel_same_mode": gettext_lazy("Items on which two panels have the same mode"),
    "rationale_share": gettext_lazy("Ratings with a rationale"),
    "rationale_length": gettext_lazy("Length of a rationale, median of characters"),
    "label_spread": gettext_lazy("Items on which annotators differ most"),
    "label_share": gettext_lazy("Share of each score on these items"),
    "left_out.krippendorff_alpha": gettext_lazy("α without each annotator"),
    "left_out.krippendorff_alpha_change": gettext_lazy("Change of α without each annotator"),
    "left_out.fleiss_kappa": gettext_lazy("Fleiss’ κ without each annotator"),
    "left_out.fleiss_kappa_change": gettext_lazy("Change of Fleiss’ κ without each annotator"),
    "left_out.gwet_ac": gettext_lazy("Gwet’s AC without each annotator"),
    "left_out.gwet_ac_change": gettext_lazy("Change of Gwet’s AC without each annotator"),
    "left_out.percent_agreement": gettext_lazy("Percent agreement without each annotator"),
    "left_out.percent_agreement_change": gettext_lazy("Change of percent agreement without each annotator"),
    "pairs.cohen_kappa": gettext_lazy("Cohen’s κ of each pair of annotators"),
    "pairs.percent_agreement": gettext_lazy("Percent agreement of each pair of annotators"),
    "mae": gettext_lazy("MAE"),
    "bias": gettext_lazy("Bias (judge − panel)"),
    "rmse": gettext_lazy("RMSE"),
    "accuracy": gettext_lazy("Accuracy"),
    "accuracy_adjacent": gettext_lazy("Accuracy within one step"),
    "cohen_kappa": gettext_lazy("Cohen’s κ"),
    "f1": gettext_lazy("F1 of each label"),
    "f1_weighted": gettext_lazy("F1, weighted"),
    "f1_macro": gettext_lazy("F1, mean of labels (macro)"),
    "precision": gettext_lazy("Precision of each label"),
    "recall": gettext_lazy("Recall of each label"),
    "spearman": gettext_lazy("Spearman’s ρ"),
    "kendall_tau_b": gettext_lazy("Kendall’s τ-b"),
    "pearson": gettext_lazy("Pearson’s r"),
    "ceiling_accuracy": gettext_lazy("Accuracy beside a left-out annotator’s"),
    "ceiling_mae": gettext_lazy("MAE beside a left-out annotator’s"),
    "ceiling_pearson": gettext_lazy("Pearson’s r beside a left-out annotator’s"),
    "without_reference": gettext_lazy("Items without a reference label"),
    "out_of_range": gettext_lazy("Judge scores off the scale"),
    "stability.mean": gettext_lazy("Mean of each generator"),
    "stability.rank": gettext_lazy("Rank of each generator"),
    "stability.confirmed_inversions": gettext_lazy("Confirmed inversions between two languages"),
    "stability.kendall_tau_b": gettext_lazy("τ-b between the rankings of two languages"),
    "stability.spearman": gettext_lazy("ρ between the rankings of two languages"),
    "stability.inversions": gettext_lazy("Inversions between two languages"),
    "stability.tied_pairs": gettext_lazy("Tied pairs between two languages"),
    "consistency.fleiss_kappa": gettext_lazy("Fleiss’ κ with languages as raters"),
    "consistency.cohen_kappa": gettext_lazy("Cohen’s κ of each language with English"),
    "consistency.mean": gettext_lazy("Mean score of the judge"),
    "consistency.language_shift": gettext_lazy("Score less that in English"),
    "distribution.score_share": gettext_lazy("Share of each score"),
    "reference.reference_share": gettext_lazy("Items with a reference label"),
    "reference.reference_excluded": gettext_lazy("Items without a reference label, by reason"),
    "reference.label_share": gettext_lazy("Share of each reference label"),
    "means.classical_mean": gettext_lazy("Mean of the panel"),
    "means.judge_mean": gettext_lazy("Mean of each judge"),
    "audit.repeat_sd": gettext_lazy("Standard deviation over repeats"),
    "audit.flip_rate": gettext_lazy("Items that change over repeats"),
    "audit.scale_use": gettext_lazy("Use of the scale"),
    "audit.unreadable": gettext_lazy("Verdicts without a score"),
    "audit.verbosity": gettext_lazy("Error per doubling of the text’s length"),
    "audit.self_preference": gettext_lazy("Preference for the judge’s own family"),
    "audit.rated_difference": gettext_lazy("Rated items less those that only the judge scored"),
    "audit.bias_weighted": gettext_lazy("Bias over all items that the judge scored, weighted"),
    "perturbation.score_drop": gettext_lazy("Fall of the mean score with changed texts"),
    "perturbation.fall": gettext_lazy("Scores that fall with changed texts"),
    "perturbation.stay": gettext_lazy("Scores that stay with changed texts"),
    "perturbation.rise": gettext_lazy("Scores that rise with changed texts"),
    "correct.ppi_mean": gettext_lazy("Mean corrected by PPI"),
    "correct.ppi_plus_mean": gettext_lazy("Mean corrected by PPI++"),
    "correct.mean_of_these_items": gettext_lazy("Corrected mean of these very items"),
    "correct.ppi_gain": gettext_lazy("Gain of PPI++ over the labels alone"),
    "correct.calibration_gain": gettext_lazy("Gain of each calibrator"),
    "correct.rogan_gladen": gettext_lazy("Prevalence by Rogan-Gladen"),
    "leaderboard.panel_mean": gettext_lazy("Mean of each generator by the panel"),
    "leaderboard.judge_mean": gettext_lazy("Mean of each generator by the judge"),
    "leaderboard.corrected_mean": gettext_lazy("Corrected mean of each generator"),
    "leaderboard.pooled_mean": gettext_lazy("Corrected mean, calibrated with all languages"),
    "leaderboard.macro_mean": gettext_lazy("Mean in which every task type counts once"),
    "leaderboard.effective_labels": gettext_lazy("Labels that the correction is worth"),
    "leaderboard.corrected_difference": gettext_lazy("Corrected difference of two generators"),
    "preference.win": gettext_lazy("Comparisons of two generators won"),
    "preference.tie": gettext_lazy("Comparisons of two generators without a winner"),
    "preference.loss": gettext_lazy("Comparisons of two generators lost"),
    "preference.strength": gettext_lazy("Strength of each generator (Bradley-Terry)"),
    "alt_test.alt_test_omega": gettext_lazy("Annotators that the judge beats (ω)"),
    "alt_test.alt_test_rho": gettext_lazy("Mean advantage over annotators (ρ)"),
    "alt_test.alt_test_power": gettext_lazy("Power of the alternative annotator test"),
    "beside.confusion": gettext_lazy("Confusion matrix, row shares"),
    "beside.panel_given_judge": gettext_lazy("Mean of the panel behind each score of the judge"),
    "beside.verdict_confidence": gettext_lazy("Verdict Confidence with the judge in one annotator’s place"),
    "beside.f1": gettext_lazy("F1 of each label against every annotator"),
    "beside.human_f1": gettext_lazy("F1 of each label, annotators against each other"),
    "ranking.ranking_tau_b": gettext_lazy("τ-b between the judge’s and the panel’s ranking"),
    "severity.severity_shift": gettext_lazy("Leniency by language"),
    "severity.severity_uniform": gettext_lazy("Test of one difference everywhere"),
    "severity.severity_nonuniform": gettext_lazy("Test of a difference that changes along the scale"),
    "conformal.conformal_radius": gettext_lazy("Distance that covers 90% of new items"),
    "conformal.conformal_width": gettext_lazy("Mean width of these intervals"),
    "conformal.for_people": gettext_lazy("Items that people should rate"),
    "recovery.label_recovery": gettext_lazy("Generation parameters that the judge recovers"),
    "judges.spearman": gettext_lazy("Spearman’s ρ between judges"),
    "annotators.severity": gettext_lazy("Severity of each annotator"),
    "annotators.cohen_kappa": gettext_lazy("Cohen’s κ of each annotator with the others"),
    "annotators.accuracy": gettext_lazy("Equal scores of each annotator and the others"),
    "annotators.same_score": gettext_lazy("Share of each annotator’s most frequent score"),
    "annotators.same_score_of_others": gettext_lazy("The same share of the others on these items"),
    "raters.rasch_severity": gettext_lazy("Severity of each rater on one scale (Rasch)"),
    "raters.rasch_infit": gettext_lazy("Infit of each rater (Rasch)"),
    "raters.variance_share": gettext_lazy("Share of the variance by source"),
    "raters.dependability": gettext_lazy("Dependability of the mean of several raters (Φ)"),
    "raters.annotator_accuracy": gettext_lazy("Accuracy of each annotator (Dawid-Skene)"),
    "judges.kendall_tau_b": gettext_lazy("Kendall’s τ-b between judges"),
    "judges.pearson": gettext_lazy("Pearson’s r between judges"),
    "judges.accuracy": gettext_lazy("Equal scores of two judges"),
    "judges.cohen_kappa": gettext_lazy("Cohen’s κ between judges"),
    "judges.mae": gettext_lazy("Mean absolute difference of two judges"),
    "judges.tost": gettext_lazy("Equivalence of two judges (TOST, margin .05)"),
    "judges.mcnemar": gettext_lazy("McNemar’s test of two judges"),
    "languages.ensemble_kappa": gettext_lazy("Consistency of all judges together: Ens, Min, Ens − Min"),
    "languages.kappa_gap": gettext_lazy("Consistency on one criterion less that on another"),
    "languages.kappa_against_level": gettext_lazy("ρ over judges between consistency and mean"),
    "comparison.accuracy": gettext_lazy("Equal scores on the common items"),
    "comparison.accuracy_difference": gettext_lazy("Equal scores, difference of two judges"),
    "comparison.accuracy_effect": gettext_lazy("Equal scores, effect of each level"),
    "comparison.accuracy_interaction": gettext_lazy("Equal scores, largest interactions"),
    "comparison.mae": gettext_lazy("Mean absolute error on the common items"),
    "comparison.mae_difference": gettext_lazy("Mean absolute error, difference of two judges"),
    "comparison.mae_effect": gettext_lazy("Mean absolute error, effect of each level"),
    "comparison.mae_interaction": gettext_lazy("Mean absolute error, largest interactions"),
    "comparison.kappa": gettext_lazy("Cohen’s κ on the common items"),
    "comparison.kappa_difference": gettext_lazy("Cohen’s κ, difference of two judges"),
    "comparison.kappa_effect": gettext_lazy("Cohen’s κ, effect of each level"),
    "comparison.kappa_interaction": gettext_lazy("Cohen’s κ, largest interactions"),
    "comparison.common_items": gettext_lazy("Items that all judges scored"),
    "comparison.left_out": gettext_lazy("Items left out of a comparison"),
    "plan.labels_needed": gettext_lazy("Labels for a mean of that width"),
    "plan.items_needed": gettext_lazy("Items for an α of that width"),
    "plan.raters_needed": gettext_lazy("Raters per item for that reliability"),
    "plan.alt_test_power": gettext_lazy("Power of the alternative annotator test, with that ε"),
    "plan.sequence_mean": gettext_lazy("Mean with an interval that stays valid at every look"),
    "plan.labels_affordable": gettext_lazy("Labels that the budget pays for"),
    "measures.pearson": gettext_lazy("Pearson’s r of a measure"),
    "measures.spearman": gettext_lazy("Spearman’s ρ of a measure"),
    "measures.kendall_tau_b": gettext_lazy("Kendall’s τ-b of a measure"),
}


def _family(*names: str) -> tuple[str, ...]:
    return tuple(name for name in families.STATISTICS if name.partition(".")[0] in names)


GROUPS = (
    (gettext_lazy("Agreement among raters"), questions.AGREEMENT),
    (
        gettext_lazy("Who and what makes raters agree"),
        (*questions.WITHIN_PANEL, *questions.LEFT_OUT, *questions.PAIRS, *_family("annotators")),
    ),
    (gettext_lazy("Models of raters"), _family("raters")),
    (gettext_lazy("A judge beside the panel"), questions.CALIBRATION),
    (gettext_lazy("Rankings of generators across languages"), questions.STABILITY),
    (gettext_lazy("Languages as raters"), (*questions.CONSISTENCY, *_family("languages"))),
    (gettext_lazy("Scores, means and reference labels"), _family("distribution", "means", "reference")),
    (gettext_lazy("Beside the judge’s figures"), _family("beside", "ranking")),
    (gettext_lazy("Is the judge sound?"), _family("audit", "perturbation", "alt_test", "severity", "recovery")),
    (gettext_lazy("A judge corrected by few labels"), _family("correct", "leaderboard", "conformal")),
    (gettext_lazy("Preferences between two candidates"), _family("preference")),
    (gettext_lazy("Two judges"), _family("judges")),
    (gettext_lazy("Several judges on the same items"), _family("comparison")),
    (gettext_lazy("Measures of the items"), _family("measures")),
    (gettext_lazy("Planning"), _family("plan")),
)
COLUMN_NAMES = {
    "criterion": gettext_lazy("Criterion"),
    "language": gettext_lazy("Language"),
    "generator": gettext_lazy("Generator"),
    "scenario": gettext_lazy("Scenario"),
    "item": gettext_lazy("Item"),
    "dataset_version": gettext_lazy("Dataset version"),
    "judge": gettext_lazy("Judge"),
    "panel": gettext_lazy("Panel"),
    "languages": gettext_lazy("Pair of languages"),
    "week": gettext_lazy("Week of the last rating"),
    "hundred": gettext_lazy("Blocks of 100 items in the order of rating"),
    "raters": gettext_lazy("Pair of raters"),
    "annotator": gettext_lazy("Annotator"),
    "variant": gettext_lazy("Variant or label"),
    "agreement_class": gettext_lazy("Class of agreement"),
}
JURY_RULE_NAMES = {
    "majority": gettext_lazy("the majority; a tie gives no score"),
    "median": gettext_lazy("the median"),
    "mean": gettext_lazy("the mean"),
    "minimum": gettext_lazy("the minimum"),
}
REFERENCE_NAMES = {
    "": gettext_lazy("Mode; mean on interval scales"),
    "mode": gettext_lazy("Mode"),
    "mode_split": gettext_lazy("Mode; the median of a tie"),
    "median": gettext_lazy("Median"),
    "mean": gettext_lazy("Mean"),
    "minimum": gettext_lazy("Minimum"),
    "each": gettext_lazy("Each annotator in turn, averaged"),
    "dawid_skene": gettext_lazy("Dawid-Skene"),
    "adjudicated": gettext_lazy("adjudicated only"),
    "adjudicated_first": gettext_lazy("adjudicated, else the mode"),
}
EXCLUSION_NAMES = {
    "version": gettext_lazy("given under an earlier version of the rubric"),
    "controls": gettext_lazy("by annotators with control items that match too seldom"),
    "speed": gettext_lazy("item rated in less than a third of the median time"),
    "rationale": gettext_lazy("rationale breaks the rule of its criterion"),
    "language": gettext_lazy("rationale in another language than the item and its rubric"),
    "critical": gettext_lazy("a critical mark on the item and criterion"),
    "single": gettext_lazy("the only rating left of the item and criterion"),
}
"""What `exclusions.EXCLUSIONS` leave out."""
TIE_NAMES = {
    "exclude": gettext_lazy("left out"),
    "lower": gettext_lazy("the lower point"),
    "upper": gettext_lazy("the upper point"),
    "median": gettext_lazy("the median"),
}
S2_EXCLUSIONS = "exclude=rationale&exclude=critical&exclude=single"
PRESETS = (
    (
        "S0",
        gettext_lazy("Stability of rankings"),
        "columns=languages&statistic=stability.kendall_tau_b&statistic=stability.inversions",
    ),
    (
        "S0",
        gettext_lazy("Label recovery"),
        "rows=variant&columns=language&statistic=recovery.label_recovery",
    ),
    ("S1", gettext_lazy("Consistency of judges"), "rows=judge&columns=criterion&statistic=consistency.fleiss_kappa"),
    (
        "S2",
        gettext_lazy("Error by generator"),
        f"rows=generator&columns=criterion&statistic=mae&statistic=verdict_confidence&reference=mode&{S2_EXCLUSIONS}",
    ),
    ("S3", gettext_lazy("F1 against each annotator"), "statistic=f1&statistic=accuracy&reference=each"),
    (
        "S4",
        gettext_lazy("Sensitivity to shuffled words"),
        "rows=variant&columns=language&statistic=perturbation.score_drop&statistic=perturbation.stay",
    ),
    ("S4", gettext_lazy("Classes of agreement"), "statistic=percent_agreement_exact&statistic=class_share"),
)


def column_name(column: str) -> str:
    """A column of the ratings table as a reader knows it; an attribute by its own name."""
    return str(COLUMN_NAMES.get(column, column))


def study_questions(choices: QuestionChoices) -> list[tuple[str, str, NumbersQuestion]]:
    """Study, subject and question of `PRESETS` that this campaign can be asked, without exclusions that it has no data
    for.
    """
    asked = [(study, str(about), questions.question_of(query)) for study, about, query in PRESETS]
    return [
        (study, about, replace(question, exclude=tuple(sorted({*question.exclude} & {*choices.exclusions}))))
        for study, about, question in asked
        if choices.judges or not question.needs_judge
    ]


def _left_out(question: NumbersQuestion) -> list[str]:
    more = [_("by people who could see verdicts")] if question.blind_only else []
    more += [_("item rated in less than %g s") % question.min_seconds] if question.min_seconds else []
    return [*(str(EXCLUSION_NAMES[name]) for name in question.exclude), *more]


def question_in_words(question: NumbersQuestion) -> list[tuple[str, str]]:
    """Each thing that is chosen in a question, with its name."""
    juries = f"{'; '.join(question.juries)}: {JURY_RULE_NAMES[question.jury_rule]}" if question.juries else ""
    lines = [
        (_("Rows"), column_name(question.rows)),
        (_("Columns"), column_name(question.columns) if question.columns else _("none")),
        (_("Only"), "; ".join(f"{column_name(column)} = {value}" for column, value in question.where)),
        (_("Raters"), ", ".join(question.raters) or _("all")),
        (_("Panels"), ", ".join(question.panels)),
        (_("Judges"), ", ".join(question.judges) if question.needs_judge else ""),
        (_("Runs"), ", ".join(question.runs)),
        (_("Juries"), juries),
        (_("Measures"), ", ".join(question.measures)),
        (_("Goals"), "; ".join(f"{name} = {value}" for name, value in question.goals)),
        (_("Clusters"), _("none: items of one scenario are taken for independent") if question.cluster else ""),
        (_("Reference"), str(REFERENCE_NAMES[question.reference]) if question.needs_judge else ""),
        (_("Tied modes"), str(TIE_NAMES[question.ties]) if question.needs_judge else ""),
        (_("Left out"), "; ".join(_left_out(question))),
        (_("Variant"), ", ".join(question.variants)),
        (_("Compared with"), question.against),
        (_("Level"), question.level),
        (_("Criteria"), _("pooled") if question.pool else ""),
        (
            _("Interval"),
            _("%(share)s%%, %(count)s resamples, seed %(seed)s")
            % {"share": f"{100 * question.confidence:g}", "count": question.bootstrap, "seed": question.seed},
        ),
    ]
    return [(name, text) for name, text in lines if text]
