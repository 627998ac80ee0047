"""Small things that tests are about, made by the product's own verbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import orjson
from openpyxl import Workbook

from accounts.models import Project
from annotation import campaigns, rubrics
from annotation.imports import storage
from annotation.models import Campaign, Dataset, Import, RubricVersion
from annotation.readers.items import ItemRow
from annotation.readers.ratings import RatingRow
from annotation.readers.rubric import parse_rubric


def criterion(key: str, points: Sequence[float] = (0, 1, 2, 3), **parts: Any) -> dict[str, Any]:
    """A criterion's part of a rubric document: ordinal, with an anchor at every point, unless told otherwise."""
    anchors = {str(point): {"en": {"text": f"{key} at {point:g}"}} for point in points}
    scale = {"level": "ordinal", "points": list(points)}
    return {"key": key, "name": {"en": key.title()}, "scale": scale, "anchors": anchors, **parts}


def rubric(project: Project, *criteria: dict[str, Any], key: str = "quality", **more: Any) -> RubricVersion:
    """A published rubric version; fluency 0-3 and coherence 0-1 when no criteria are given."""
    parts = list(criteria) or [criterion("fluency"), criterion("coherence", (0, 1))]
    document = {"key": key, "name": {"en": "Quality"}, "source_language": "en", "criteria": parts, **more}
    parsed = parse_rubric("rubric.json", orjson.dumps(document))
    assert parsed.document, parsed.problems.sentences()
    return rubrics.publish(version=rubrics.draft(project=project, document=parsed.document))


def item_row(number: int, language: str = "et", generator: str = "atlas", **parts: Any) -> ItemRow:
    """A short dialogue, told apart by its number."""
    turns = [
        {"speaker": "customer", "text": f"Tere! Minu pakk number {number} on kadunud."},
        {
            "speaker": "agent",
            "text": f"Vaatan kohe järele, kus pakk {number} on. " + "Palun oodake veidi. " * (number % 5),
        },
    ]
    given = {
        "external_id": f"d{number}",
        "language": language,
        "generator": generator,
        "scenario": None,
        "title": f"Pakk {number}",
        "turns": turns,
        "fields": {},
        "attributes": {},
        "content_warning": "",
        "line": number,
    }
    return ItemRow(**{**given, **parts})


def dataset(project: Project, items: int | Iterable[ItemRow] = 4, *, name: str = "Dialogues") -> Dataset:
    """A ready dataset of so many Estonian dialogues, or of the given items."""
    rows = [item_row(number) for number in range(1, items + 1)] if isinstance(items, int) else items
    return storage.store(project=project, name=name, items=rows)


def campaign(project: Project, *, items: int | Iterable[ItemRow] = 4, name: str = "Round 1") -> Campaign:
    """A campaign over a fresh dataset and rubric."""
    return campaigns.open_campaign(
        project=project, name=name, dataset=dataset(project, items, name=name), rubric_version=rubric(project)
    )


def rated(target: Campaign, scores: dict[str, dict[str, Sequence[float | None]]]) -> None:
    """Import ratings: criterion -> rater -> one score per item in order, None for missing."""
    names = list(target.dataset.items.order_by("ordinal").values_list("external_id", flat=True))
    rows = [
        RatingRow(name, rater, key, score, True, score is None, "", None, None, None, "ratings.csv", line)
        for key, by_rater in scores.items()
        for rater, given in by_rater.items()
        for line, (name, score) in enumerate(zip(names, given, strict=True), start=2)
    ]
    opened = Import.objects.create(project=target.project, kind=Import.Kind.RATINGS)
    storage.store_ratings(campaign=target, rows=rows, file_import=opened)


def workbook(sheets: dict[str, list[list[Any]]]) -> bytes:
    """An Excel workbook with these rows in these sheets."""
    book, stream = Workbook(), BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()
