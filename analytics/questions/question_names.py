"""The names of statistics, columns, rules and settings of a question on pages and in reports."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics.questions.question import NumbersQuestion
from analytics.stats.declared.register import STATISTICS

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
ITEM_RULE_NAMES = {
    "mode": gettext_lazy("mode"),
    "mode_split": gettext_lazy("mode, the median of a tie"),
    "mode_lower": gettext_lazy("mode, the lower point of a tie"),
    "mode_upper": gettext_lazy("mode, the upper point of a tie"),
    "median": gettext_lazy("median"),
    "mean": gettext_lazy("mean"),
    "minimum": gettext_lazy("minimum"),
    "adjudicated": REFERENCE_NAMES["adjudicated"],
    "adjudicated_first": REFERENCE_NAMES["adjudicated_first"],
}
"""Rules that settle the score of one item, within a sentence."""
EXCLUSION_NAMES = {
    "version": gettext_lazy("given under an earlier version of the rubric"),
    "controls": gettext_lazy("by annotators with control items that match too seldom"),
    "speed": gettext_lazy("item rated in less than a third of the median time"),
    "rationale": gettext_lazy("rationale breaks the rule of its criterion"),
    "language": gettext_lazy("rationale in another language than the item and its rubric"),
    "critical": gettext_lazy("a critical mark on the item and criterion"),
    "single": gettext_lazy("the only rating left of the item and criterion"),
}
"""The ratings that each of `exclusions.EXCLUSIONS` leaves out."""
TIE_NAMES = {
    "exclude": gettext_lazy("left out"),
    "lower": gettext_lazy("the lower point"),
    "upper": gettext_lazy("the upper point"),
    "median": gettext_lazy("the median"),
}


def statistic_name(statistic: str) -> str:
    """The name of a statistic for readers; a statistic that is not declared has its own name."""
    return _(STATISTICS[statistic].title) if statistic in STATISTICS else statistic


def column_name(column: str) -> str:
    """The name of a column of the ratings table for readers; an attribute has its own name."""
    return str(COLUMN_NAMES.get(column, column))


def _left_out(question: NumbersQuestion) -> list[str]:
    more = [_("by people who could see verdicts")] if question.blind_only else []
    more += [_("item rated in less than %g s") % question.min_seconds] if question.min_seconds else []
    return [*(str(EXCLUSION_NAMES[name]) for name in question.exclude), *more]


def question_in_words(question: NumbersQuestion) -> list[tuple[str, str]]:
    """Each setting that is chosen in a question, with its name."""
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
