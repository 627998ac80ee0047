"""The questions of published studies that a campaign can be asked."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy

from analytics.questions.asked import QuestionChoices, question_of
from analytics.questions.question import NumbersQuestion

STUDY_NAMES = {
    "S0": gettext_lazy("Cross-lingual stability"),
    "S1": gettext_lazy("Multilingual judges"),
    "S2": "POLLUX",
    "S3": "MEDAL",
    "S4": gettext_lazy("Large models as evaluators"),
}
"""What pages call the studies; addresses, commands and the API have their codes."""
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
        "S3",
        gettext_lazy("Users judged to be people, by origin"),
        "rows=origin&columns=language&where=criterion%3Dperson&statistic=means.classical_mean",
    ),
    (
        "S3",
        gettext_lazy("Users judged to be people, by simulator"),
        "rows=generator&columns=language&where=criterion%3Dperson&statistic=means.classical_mean",
    ),
    (
        "S4",
        gettext_lazy("Sensitivity to shuffled words"),
        "rows=variant&columns=language&statistic=perturbation.score_drop&statistic=perturbation.stay",
    ),
    ("S4", gettext_lazy("Classes of agreement"), "statistic=percent_agreement_exact&statistic=class_share"),
)


def study_questions(choices: QuestionChoices) -> list[tuple[str, str, NumbersQuestion]]:
    """Study, subject and question of `PRESETS` that this campaign can be asked, without exclusions that it has no data
    for.
    """
    asked = [(study, str(about), question_of(query)) for study, about, query in PRESETS]
    return [
        (study, about, replace(question, exclude=tuple(sorted({*question.exclude} & {*choices.exclusions}))))
        for study, about, question in asked
        if (choices.judges or not question.needs_judge) and _is_about(question, choices)
    ]


def _is_about(question: NumbersQuestion, choices: QuestionChoices) -> bool:
    """Whether the campaign has the columns and the criterion that a question names.

    A criterion called `person` alone is no comparison of users: its items have an origin, too.
    """
    criterion = dict(question.where).get("criterion")
    if criterion is None:
        return set(question.dimensions) <= set(choices.columns)
    return criterion in choices.criteria and "origin" in choices.attributes
