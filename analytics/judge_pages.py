"""What the pages Calibration, Stability, Results and Planner ask: one question for each of their sections.

A section is a question like any other (`questions`): its address, its cells as CSV and JSON, the API and `panelbench
numbers` give the same figures.
"""

from __future__ import annotations

from dataclasses import replace

from analytics.agreement import AgreementPart, chosen_criterion
from analytics.questions import NumbersQuestion, QuestionChoices
from annotation.models import Campaign

SURFACE = ("text.characters", "text.mattr", "text.turns", "text.words")
"""The measures of the texts that stand for the first stage of S0; in order, as an address has them."""
CALIBRATION_PARTS = {
    part.name: part
    for part in (
        AgreementPart("bias", ("bias",), columns="language"),
        AgreementPart("confusion", ("beside.confusion",), columns="language", one_criterion=True),
        AgreementPart("reliability", ("beside.panel_given_judge",), columns="language", one_criterion=True),
        AgreementPart("classes", ("score_share",), columns="language", one_criterion=True),
        AgreementPart("f1", ("beside.f1", "beside.human_f1"), columns="language", one_criterion=True),
        AgreementPart("correlation", ("spearman", "kendall_tau_b", "pearson"), columns="language"),
        AgreementPart("pooled", ("spearman",), rows="generator", columns="language"),
        AgreementPart("confidence", ("beside.verdict_confidence",), columns="language"),
        AgreementPart("alt-test", ("alt_test.alt_test_omega", "alt_test.alt_test_rho"), columns="language"),
        AgreementPart("power", ("alt_test.alt_test_power",), columns="language", one_criterion=True),
        AgreementPart("ceiling", ("ceiling_accuracy", "ceiling_pearson"), columns="language"),
        AgreementPart("judges", ("judges.spearman", "judges.accuracy"), one_criterion=True),
    )
}
STABILITY_PARTS = {
    part.name: part
    for part in (
        AgreementPart("ranks", ("stability.rank", "stability.mean"), columns="language", one_criterion=True),
        AgreementPart(
            "rankings",
            tuple(
                f"stability.{name}" for name in ("kendall_tau_b", "inversions", "confirmed_inversions", "tied_pairs")
            ),
            columns="languages",
            one_criterion=True,
        ),
        AgreementPart("judge", ("ranking.ranking_tau_b",), columns="language"),
        AgreementPart("surface", ("stability.kendall_tau_b", "stability.inversions"), columns="languages"),
        AgreementPart("parallel", ("consistency.fleiss_kappa", "consistency.mean"), rows="judge", columns="criterion"),
        AgreementPart("pivot", ("consistency.cohen_kappa",), columns="languages"),
        AgreementPart("juries", ("languages.ensemble_kappa", "languages.kappa_against_level")),
    )
}
LEADERBOARD = tuple(
    f"leaderboard.{name}"
    for name in ("panel_mean", "judge_mean", "corrected_mean", "effective_labels", "corrected_difference")
)
RESULTS_PARTS = {
    part.name: part
    for part in (
        AgreementPart("board", LEADERBOARD, rows="generator", one_criterion=True),
        AgreementPart("languages", LEADERBOARD, rows="generator", columns="language", one_criterion=True),
        AgreementPart("criteria", LEADERBOARD, rows="generator", columns="criterion"),
        AgreementPart("differences", LEADERBOARD[-1:], columns="language", one_criterion=True),
    )
}
PLANNER_PARTS = {
    part.name: part
    for part in (
        AgreementPart("labels", ("plan.labels_needed",), columns="language"),
        AgreementPart("budget", ("plan.labels_affordable",), columns="language"),
        AgreementPart("items", ("plan.items_needed",), columns="language"),
        AgreementPart("raters", ("plan.raters_needed",), columns="language"),
        AgreementPart("test", ("plan.alt_test_power",), columns="language", one_criterion=True),
    )
}
EVERY_JUDGE = frozenset({"judges", "parallel", "juries"})
"""Sections on all judges, not on the chosen one."""


def chosen_judge(question: NumbersQuestion, choices: QuestionChoices) -> str:
    """The judge that a page is about: the first that its question names, or the first that there is; "" for none."""
    return next(iter((*question.judges, *choices.listed_judges(question))), "")


def judge_question(
    campaign: Campaign, part: AgreementPart, question: NumbersQuestion, choices: QuestionChoices
) -> NumbersQuestion:
    """The question of a section, from that of the page: the same judge, filters, raters, exclusions and intervals.

    Columns by language are those of the page's question, where it names others. A section about one criterion takes the
    first one that the page's question leaves; one that pools criteria takes those on the scale of that one.
    Where the page's question has no reference, the bias is against the panel's mean, as in decisions about judges.
    """
    columns = part.columns
    if columns == "language" and question.columns not in ("", part.rows, "judge") and part.name not in STABILITY_PARTS:
        columns = question.columns
    where = question.where
    chosen = chosen_criterion(question, choices.criteria)
    if chosen and (part.one_criterion or part.name == "pooled"):
        keys = [chosen] if part.one_criterion else _on_one_scale(campaign, question, chosen)
        where = (*(pair for pair in where if pair[0] != "criterion"), *(("criterion", key) for key in keys))
    judge = chosen_judge(question, choices)
    return replace(
        question,
        rows=part.rows,
        columns=columns,
        statistics=part.statistics,
        where=tuple(sorted(where)),
        judges=() if part.name in EVERY_JUDGE or not judge else (judge,),
        pool=part.name == "pooled",
        measures=SURFACE if part.name == "surface" else (),
        variants=(),
        reference=question.reference or ("mean" if part.name == "bias" else ""),
    )


def _on_one_scale(campaign: Campaign, question: NumbersQuestion, chosen: str) -> list[str]:
    """Of the criteria that a question's filters leave, those on the scale of the chosen one."""
    named = [value for name, value in question.where if name == "criterion"]
    scales = {
        each.key: (each.level, each.minimum, each.maximum, [point["value"] for point in each.points])
        for each in campaign.rubric_version.criteria.all()
    }
    return [key for key in scales if scales[key] == scales[chosen] and (not named or key in named)]
