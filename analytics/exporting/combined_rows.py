"""Rows of the exports of ratings and of verdicts as rows of the ratings table."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from analytics.ratings.rating_rows import Row
from annotation.models import Campaign, Item, Rating
from annotation.whole_item import WHOLE_ITEM_COLUMNS
from annotation.writers.tables import Table
from judging.models import Verdict


def combined(
    campaign: Campaign, people: Table, judges: Table
) -> Iterator[tuple[Row, Sequence[Any] | None, Sequence[Any] | None]]:
    """The rows of an export of ratings and of one of verdicts as rows of the ratings table, each with the row that it
    is of; in the order of the items, then of the criteria, people first.
    """
    places = dict(Item.objects.of(campaign.dataset).values_list("external_id", "ordinal"))
    positions = {criterion.key: criterion.position for criterion in campaign.rubric_version.criteria.all()}

    def place(found: tuple[Row, Any, Any]) -> tuple[int, int]:
        return places[found[0].item], positions.get(found[0].criterion, len(positions))  # a version had more

    ours, theirs = _person_reader(people), _judge_reader(judges)
    return heapq.merge(
        ((ours(row), row, None) for row in people.rows), ((theirs(row), None, row) for row in judges.rows), key=place
    )


_ALIKE = (
    *("item", "cluster", "criterion", "language", "generator", "score", "level", "scale", "score_label", "scenario"),
    *("dataset", "dataset_version", "rubric_version", "repeat", "rationale_length"),
)
"""Columns that both exports have under the table's own names."""
_OR_NONE = ("generator", "scenario", "panel", "duty")
"""Columns in which nothing is None in the table, and an empty text in exports."""


def _person_reader(people: Table) -> Callable[[Sequence[Any]], Row]:
    """What makes a row of the ratings table of one of the export of ratings."""
    own = ("rater", "rater_identified", "panel", "blind", "duty", "seconds", *WHOLE_ITEM_COLUMNS)
    values, others = _values_of(people, (*_ALIKE, *own)), _values_of(people, ("status", "inclusion_probability"))

    def read(row: Sequence[Any]) -> Row:
        status, drawn_with = others(row).values()
        return Row(
            **values(row),
            rater_kind="annotator",
            applicable=status != Rating.Status.NOT_APPLICABLE,
            missing_reason=status if status == Rating.Status.STOPPED else None,
            inclusion_prob=drawn_with,
            weight=1 / drawn_with,
        )

    return read


def _judge_reader(judges: Table) -> Callable[[Sequence[Any]], Row]:
    """What makes a row of the ratings table of one of the export of verdicts."""
    own = ("judge", "status", "not_applicable", "inclusion_probability")
    values, others = _values_of(judges, _ALIKE), _values_of(judges, own)

    def read(row: Sequence[Any]) -> Row:
        rater, status, not_applicable, drawn_with = others(row).values()
        return Row(
            **values(row),
            rater=rater,
            rater_kind="judge",
            rater_identified=True,
            panel=None,
            applicable=not not_applicable,
            missing_reason=None if status == Verdict.Status.OK else status,
            inclusion_prob=drawn_with,
            weight=1 / drawn_with,
            blind=None,
            duty=None,
            seconds=None,
        )

    return read


def _values_of(table: Table, names: Sequence[str]) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """What gives the values of these columns of a row, by name."""
    pick, or_none = itemgetter(*map(table.names.index, names)), [name for name in _OR_NONE if name in names]

    def read(row: Sequence[Any]) -> dict[str, Any]:
        values = dict(zip(names, pick(row), strict=True))
        for name in or_none:
            values[name] = values[name] or None
        return values

    return read
