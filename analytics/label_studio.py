"""A campaign for Label Studio: its items as tasks, people's ratings as annotations, judges' verdicts as predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from annotation import exports as rated
from annotation.models import Campaign, Item
from annotation.readers import rubric_from_dict
from annotation.writers import label_studio
from annotation.writers.label_studio import Answer, Interface
from annotation.writers.tables import Table

SAID = ("scored", "na", "ok")
"""Statuses that Label Studio has a place for: an answer, or N/A. It would refuse a number off the scale."""


def interface(campaign: Campaign) -> Interface:
    """The labelling configuration of the campaign's rubric and items."""
    there = [column.name for column in rated.items(campaign.dataset).columns]
    turns = [label_studio.TURNS] if Item.objects.of(campaign.dataset).exclude(turns=[]).exists() else []
    return Interface(rubric_from_dict(campaign.rubric_version.document), parts=[*there, *turns])


def tasks(campaign: Campaign, *, people: Table, judges: Table) -> Iterator[dict[str, Any]]:
    """Each item of the campaign, with its rows of the two tables, which come in the items' order."""
    shown, items = interface(campaign), rated.items(campaign.dataset)
    by_people, by_judges = _ByItem(people), _ByItem(judges)
    for row in items.rows:
        item = dict(zip(items.names, row, strict=True))
        yield label_studio.task(shown, item, people=by_people.of(item["id"]), judges=by_judges.of(item["id"]))


class _ByItem:
    """The answers of a table, asked for item by item in its own order; an item may have none."""

    def __init__(self, table: Table) -> None:
        self._read = {name: place for place, name in enumerate(table.names)}
        self._groups = groupby(table.rows, key=lambda row: row[self._read["item"]])
        self._next: tuple[str, Iterable[Sequence[Any]]] | None = next(self._groups, None)

    def of(self, item: str) -> list[Answer]:
        """The answers on this item that can be said."""
        if self._next is None or self._next[0] != item:
            return []
        found = [self._answer(row) for row in self._next[1] if row[self._read["status"]] in SAID]
        self._next = next(self._groups, None)
        return found

    def _answer(self, row: Sequence[Any]) -> Answer:
        rater = "judge" if "judge" in self._read else "rater"
        names = ("criterion", rater, "score", "rationale")
        criterion, said_by, score, rationale = (row[self._read[name]] for name in names)
        seconds = row[self._read["seconds"]] if "seconds" in self._read else None
        return Answer(criterion, said_by, score, rationale, seconds, row[self._read["repeat"]])
