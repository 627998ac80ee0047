"""Columns of the ratings table that audits of a judge read beside its scores: no row is added to it.

`length_of_text` is the characters of the item; `judge_family` the family of the judge's model; `changed_scores` what
the judge gave the same item before and after each change, in its audit runs (docs/decisions/0028).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics import ratings
from analytics.ratings import Row
from annotation.models import Campaign, Item
from annotation.writers.tables import Column, Table
from judging.models import JudgeRun

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable

LENGTH, FAMILY, CHANGED = "length_of_text", "judge_family", "changed_scores"
READ = {"audit.": (LENGTH, FAMILY), "perturbation.": (CHANGED,)}
"""By family of statistics, the columns that it reads."""


def asks_perturbation(question: Any) -> bool:
    """Whether a question is about changed texts."""
    return any(name.startswith("perturbation.") for name in getattr(question, "statistics", ()))


def with_audited(found: Table, campaign: Campaign, runs: Sequence[JudgeRun], columns: Sequence[str]) -> Table:
    """The table with these of the columns that audits read; verdicts of audit runs are in no row of their own."""
    names = ratings.rater_names(campaign, runs)
    judges = {names[run.pk]: run for run in runs}
    by_column: dict[str, Callable[[Row], Any]] = {}
    if LENGTH in columns:
        lengths = item_lengths(campaign)
        by_column[LENGTH] = lambda row: float(lengths.get(row.item, 0))
    if FAMILY in columns:
        families = {name: model_family(run.judge.model) for name, run in judges.items()}
        by_column[FAMILY] = lambda row: families.get(row.rater, "") if row.rater_kind == "judge" else ""
    if CHANGED in columns:
        changed = ratings.changed_scores(campaign, {run.judge_id: name for name, run in judges.items()})
        by_column[CHANGED] = lambda row: changed.get((row.rater, row.item, row.criterion), "")
    chosen, width = [name for name in columns if name in by_column], len(ratings.COLUMNS)

    def rows() -> Iterator[Sequence[Any]]:
        return ((*row, *(by_column[name](Row(*row[:width])) for name in chosen)) for row in found.rows)

    return replace(
        found,
        columns=(*found.columns, *(Column(name, "number" if name == LENGTH else "text") for name in chosen)),
        rows=rows(),
    )


def model_family(name: str) -> str:
    """The family of a model by its name: the letters that it begins with, after the publisher: gpt of openai/gpt-4o."""
    found = re.match(r"[^\W\d_]+", name.rpartition("/")[2].casefold())
    return found[0] if found else name.casefold()


def item_lengths(campaign: Campaign) -> dict[str, int]:
    """By item, the characters of its turns and fields."""
    texts = Item.objects.of(campaign.dataset).values_list("external_id", "turns", "fields")
    return {
        item: sum(len(turn.get("text") or "") for turn in turns)
        + sum(len(str(text)) for text in (fields or {}).values())
        for item, turns, fields in texts.iterator()
    }


def judge_families(table: RatingsTable) -> dict[str, str]:
    """By judge, the family of its model."""
    if FAMILY not in table.frame:
        return {}
    own = table.frame[table.frame["rater_kind"] == "judge"].drop_duplicates("rater")
    return dict(zip(own["rater"], own[FAMILY], strict=True))


def audit_rows(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    """The audits of one judge beside the panel; its preference for its own family beside all the other judges."""
    from analytics.stats.judge import soundness

    length = LENGTH if LENGTH in table.frame else None
    is_beside = (table.frame["rater_kind"] == "annotator") | (table.frame["rater"] == judge)
    beside = replace(table, frame=table.frame[is_beside.to_numpy()])
    own = soundness.audit_report(beside, judge=judge, length=length, **options)
    families = judge_families(table)
    if judge not in families:  # a jury has no family
        return own
    of_all = soundness.audit_report(table, judge=judge, families=families, **options)
    return [*own, *(row for row in of_all if row.estimate.statistic == "self_preference")]


def perturbation_rows(table: RatingsTable, *, judge: str, **options: Any) -> list[CellEstimate]:
    """What changed texts do to the scores of one judge."""
    from analytics.stats.judge import perturbed

    return perturbed.perturbation_report(table, judge=judge, **options)
