"""What a ratings table holds, counted."""

from __future__ import annotations

import operator

from analytics.ratings.rating_rows import COLUMNS, Row
from annotation.writers.coded_rows import CodedRows
from annotation.writers.tables import Table


def counted_table(found: Table) -> dict[str, int]:
    """How many items, clusters, annotators, ratings and verdicts a table holds."""
    if isinstance(found.rows, CodedRows):
        return _counted_columns(found, found.rows)
    counted = [Row(*row[: len(COLUMNS)]) for row in found.rows]
    people = [row for row in counted if row.rater_kind == "annotator"]
    return {
        "items": len({row.item for row in counted}),
        "clusters": len({row.cluster for row in counted}),
        "raters": len({row.rater for row in people}),
        "ratings": len(people),
        "scores": sum(row.score is not None for row in people),
        "not_applicable": sum(not row.applicable for row in people),
        "stopped": sum(row.missing_reason is not None for row in people),
        "judges": len({row.rater for row in counted if row.rater_kind == "judge"}),
        "verdicts": sum(row.rater_kind == "judge" for row in counted),
    }


def _counted_columns(found: Table, coded: CodedRows) -> dict[str, int]:
    place = {name: number for number, name in enumerate(found.names)}
    people, judges = (coded.where({place["rater_kind"]: kind.__eq__}) for kind in ("annotator", "judge"))
    return {
        "items": len(coded.values(place["item"])),
        "clusters": len(coded.values(place["cluster"])),
        "raters": len(people.values(place["rater"])),
        "ratings": len(people),
        "scores": len(people.where({place["score"]: lambda score: score is not None})),
        "not_applicable": len(people.where({place["applicable"]: operator.not_})),
        "stopped": len(people.where({place["missing_reason"]: lambda reason: reason is not None})),
        "judges": len(judges.values(place["rater"])),
        "verdicts": len(judges),
    }
