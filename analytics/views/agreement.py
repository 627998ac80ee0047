"""The Agreement page: a matrix of one coefficient, and sections on who and what makes raters agree."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy

from analytics import agreement
from analytics.agreement import PARTS, AgreementPart
from analytics.answer_pages import AnswerPage
from analytics.questions import NumbersQuestion, QuestionChoices
from analytics.views.agreement_sections import COEFFICIENT_NAMES, TITLES, AgreementSection
from analytics.views.parts import PartsPage
from annotation.models import Campaign

SECTION_NOTES = {
    "matrix": gettext_lazy("Large: the coefficient, with its interval. Below: percent agreement and Gwet’s AC."),
    "annotators": gettext_lazy(
        "The coefficient without the annotator, and the change: without minus with. Above 0: the others agree better "
        "without this annotator."
    ),
    "pairs": gettext_lazy(
        "Cohen’s κ of two annotators on the items that both scored; on ordered scales with quadratic weights."
    ),
    "classes": gettext_lazy(
        "Of the items with two scores or more: all scores are the same, some are, no two are. With more raters fewer "
        "items are in the first class."
    ),
    "raters": gettext_lazy(
        "How reliable the mean score would be with 1 to 10 raters per item (Spearman-Brown formula). It is a "
        "projection, so it has no interval."
    ),
    "panels": gettext_lazy("Two panels on the items that both scored, by the panels’ means and modes of each item."),
    "criteria": gettext_lazy(
        "Spearman’s ρ of two criteria over the annotators’ means of the items. Criteria that always move together "
        "measure one thing."
    ),
    "applicability": gettext_lazy("Do annotators agree on where a criterion does not apply? N/A is never a score."),
    "rationales": gettext_lazy("Share of ratings with a rationale, and their median length. No text is shown."),
    "time": gettext_lazy("Each item counts in the time of its last rating, so that its ratings stay together."),
    "items": gettext_lazy(
        "Spread: mean distance of two annotators’ scores of the item, 0 to 1. The files contain every item."
    ),
}
EMPTY_SECTIONS = {
    "matrix": gettext_lazy("Agreement needs two annotators who score the same items."),
    "annotators": gettext_lazy("Leaving one annotator out needs three annotators who are known as persons."),
    "pairs": gettext_lazy("Pairs need two annotators, known as persons, who share items."),
    "classes": gettext_lazy("Classes need items with two scores or more."),
    "raters": gettext_lazy("The curve needs two annotators, two items and scores in order, or two labels."),
    "panels": gettext_lazy("This campaign has no two panels on the same items."),
    "criteria": gettext_lazy("Correlations need two criteria with scores in order on the same items."),
    "applicability": gettext_lazy("Nobody has answered “not applicable”."),
    "rationales": gettext_lazy("Nothing is rated yet."),
    "time": gettext_lazy("All items were rated in one period. Agreement over time needs two."),
    "items": gettext_lazy("Annotators do not differ on any item with two scores."),
}


def _asked(
    campaign: Campaign, part: AgreementPart, question: NumbersQuestion, choices: QuestionChoices
) -> NumbersQuestion:
    return agreement.part_question(part, question, choices.criteria, len(choices.raters))


def _section(part: AgreementPart, page: AnswerPage, asked: NumbersQuestion, coefficient: str) -> AgreementSection:
    return AgreementSection(part, page, asked, coefficient)


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    return {"coefficients": list(COEFFICIENT_NAMES.items())}


AGREEMENT = PartsPage(
    name="agreement",
    title=gettext_lazy("Agreement"),
    parts=PARTS,
    titles=TITLES,
    notes=SECTION_NOTES,
    empty=EMPTY_SECTIONS,
    asked=_asked,
    section=_section,
    offered=_offered,
    about=agreement.coefficient_of,
)
