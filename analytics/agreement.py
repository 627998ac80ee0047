"""What the Agreement page asks about: its coefficient, its warnings, and soft labels as files.

A section is a question like any other (`questions`): its address, its cells as CSV and JSON, the API and `panelbench
numbers` give the same figures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics.questions.plan import planned
from analytics.questions.question import NumbersQuestion
from analytics.ratings.additions import question_table
from analytics.ratings.rating_rows import COLUMNS, Row
from analytics.ratings.rating_times import iso_week
from analytics.stats.declared.agreement import GWET_AC, PERCENT_AGREEMENT
from analytics.stats.declared.register import COEFFICIENTS
from annotation.models import Campaign, RubricVersion
from annotation.writers.tables import Column, Kind, Table, number

BESIDE = (PERCENT_AGREEMENT, GWET_AC, "commonest_share")
"""The statistics that every cell of the matrix shows beside its coefficient, or uses for warnings."""
MUCH_AGREEMENT, LOW_COEFFICIENT, DOMINANT = 0.8, 0.6, 0.8
"""The prevalence warning (docs/methods/agreement.md): much percent agreement, a low coefficient, one dominant score."""
LARGE_PANEL = 24
"""Above so many annotators pairs are listed on request (`pairs=all`), in small cells without counts."""
ENOUGH = 0.8
"""Reliability of the mean of several raters that the page reads as enough."""


def coefficient_of(question: NumbersQuestion) -> str:
    """The one coefficient that a page is about; refused where its address names another statistic, or several."""
    if len(question.statistics) != 1 or question.statistics[0] not in COEFFICIENTS:
        sentence = _("This page shows one coefficient. Choose one of: %s.") % ", ".join(COEFFICIENTS)
        raise Refused(sentence, code="unknown_choice", fields={"statistic": sentence})
    return question.statistics[0]


def chosen_criterion(question: NumbersQuestion, criteria: Sequence[str]) -> str:
    """The first criterion that a question's filters leave."""
    named = [value for name, value in question.where if name == "criterion"]
    return next((key for key in criteria if not named or key in named), "")


def is_dominated(coefficient: float | None, percent: float | None, commonest: float | None) -> bool:
    """Whether a low coefficient may come from one score that takes nearly all ratings (the kappa paradox)."""
    if coefficient is None or percent is None or commonest is None:
        return False
    return coefficient < LOW_COEFFICIENT and percent >= MUCH_AGREEMENT and commonest >= DOMINANT


def published_versions(campaign: Campaign) -> dict[str, int]:
    """By ISO week (as in the column `week`) the newest version of the campaign's rubric that was published in it."""
    versions = RubricVersion.objects.filter(rubric=campaign.rubric_version.rubric_id).exclude(published_at=None)
    found = versions.order_by("number").values_list("published_at", "number")
    return {iso_week(moment): number for moment, number in found if moment is not None}


# --- soft labels -----------------------------------------------------------------------------------------------------
_KINDS: dict[str, Kind] = {
    "criterion": "word",
    "score": "number",
    "count": "integer",
    "n": "integer",
    "share": "number",
}
SOFT_COLUMNS = tuple(
    Column(name, _KINDS.get(name, "text"))
    for name in ("item", "language", "generator", "criterion", "score", "score_label", "count", "n", "share")
)


def soft_labels(campaign: Campaign, question: NumbersQuestion) -> Table:
    """One row for each score that annotators gave an item on a criterion: how many did, and the share of all scores.

    Of the ratings that a question is about. N/A and missing scores do not count. Read as it is asked for.
    """
    found = question_table(campaign, planned(campaign, question))
    rows = (Row(*row[: len(COLUMNS)]) for row in found.rows)
    given = (row for row in rows if row.rater_kind == "annotator" and row.score is not None and row.applicable)
    return Table(f"{campaign.name} soft labels", SOFT_COLUMNS, _labelled(given))


def _labelled(given: Iterator[Row]) -> Iterator[tuple[object, ...]]:
    """Rows come in the order of the items, then of the criteria."""
    for (_item, _criterion), together in groupby(given, key=attrgetter("item", "criterion")):
        scores = list(together)
        counts = Counter(row.score for row in scores)
        labels = {row.score: row.score_label for row in scores}
        first = scores[0]
        for score, count in sorted(counts.items(), key=lambda pair: pair[0] or 0.0):
            about = (first.item, first.language, first.generator, first.criterion)
            yield (*about, score, labels[score], count, len(scores), count / len(scores))


def soft_labels_json(table: Table) -> Generator[bytes]:
    """`{"labels": [{item, language, generator, criterion, n, shares}]}`, piece by piece; `shares` by score."""
    yield b'{"labels": ['
    between = b"\n"
    for (item, language, generator, criterion), together in groupby(table.rows, key=lambda row: row[:4]):
        rows = list(together)
        label = {"item": item, "language": language, "generator": generator, "criterion": criterion, "n": rows[0][7]}
        shares = {number(row[4]): row[8] for row in rows}
        yield between + json.dumps({**label, "shares": shares}, ensure_ascii=False).encode()
        between = b",\n"
    yield b"\n]}\n"
