"""A campaign as a folder that the Hugging Face Hub and `datasets.load_dataset` read: a zip with its data card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from django.conf import settings
from django.db.models import Count
from django.utils import translation

from accounts import languages
from analytics import data_cards, ratings, snapshots
from analytics.data_cards import Card, Described, File, Language, card_limits
from analytics.figures import Figure
from analytics.models import Snapshot
from annotation import exports as rated
from annotation.models import Annotation, Campaign, Item
from annotation.readers import parquet_is_installed, rubric_from_dict
from annotation.writers import tables
from annotation.writers.tables import Column, Table, dateless, nested
from judging import exports as judged
from judging.models import JudgeRun

SHOWN = ("percent_agreement", "krippendorff_alpha", "gwet_ac")
IMPORTED = "Imported ratings"
ABOUT = {
    "items": "an item",
    "ratings": "one annotator's answer on one criterion of one item",
    "verdicts": "one judge's answer on one criterion of one item",
}


class Study(NamedTuple):
    """What goes into the folder: its tables, of which those without rows are left out, and the judges' runs."""

    campaign: Campaign
    tables: dict[str, Callable[[], Table]]
    runs: Sequence[JudgeRun]


def write_hugging_face(study: Study, out: BinaryIO) -> None:
    """Write the folder. The numbers are computed first if they are stale."""
    snapshot = snapshots.snapshot(campaign=study.campaign)
    with rated.consistent(), ZipFile(out, "w", ZIP_DEFLATED) as archive, translation.override("en"):
        kept = [file for file in (_kept(archive, name, make()) for name, make in study.tables.items()) if file.rows]
        card = _card(study, kept, snapshot)
        archive.writestr(dateless("README.md"), card.as_markdown())
        archive.writestr(dateless("rubric.yaml"), card.rubric.as_yaml())


def _kept(archive: ZipFile, name: str, table: Table) -> File:
    """Write a table, if it has rows; returns what the card says of it."""
    kind = "parquet" if parquet_is_installed() else "jsonl"
    path = f"data/{name}.{tables.FORMATS[kind].ending}"
    rows = iter(table.rows)
    first = next(rows, None)
    if first is None:
        return File(name, path, ABOUT[name], 0)
    counted = _Counted(first, rows)
    with archive.open(dateless(path), "w", force_zip64=True) as member:
        tables.write(_flat(Table(table.name, table.columns, counted)), kind, member)
    return File(name, path, ABOUT[name], counted.count)


class _Counted:
    """Rows that are counted as they are gone through."""

    def __init__(self, first: Sequence[Any], rest: Iterator[Sequence[Any]]) -> None:
        self._first, self._rest = first, rest
        self.count = 0

    def __iter__(self) -> Iterator[Sequence[Any]]:
        self.count = 1
        yield self._first
        for row in self._rest:
            self.count += 1
            yield row


def _flat(table: Table) -> Table:
    """The table with attributes as JSON: their keys are anybody's, and a reader wants one type to a column."""
    places = {place for place, column in enumerate(table.columns) if column.kind == "object"}
    if not places:
        return table
    columns = tuple(Column(column.name) if column.kind == "object" else column for column in table.columns)
    rows = (tuple(nested(cell) if place in places else cell for place, cell in enumerate(row)) for row in table.rows)
    return Table(table.name, columns, rows)


# --- the card -------------------------------------------------------------------------------------------------------
def _card(study: Study, kept: Sequence[File], snapshot: Snapshot) -> Card:
    campaign = study.campaign
    figures = _figures(campaign, snapshot)
    spoken = _languages(campaign)
    return Card(
        title=f"{campaign.project.name}: {campaign.name}",
        summary=campaign.project.description.strip() or "Scores of people and of language models on the same items.",
        year=campaign.created_at.year,
        version=settings.VERSION,
        address=campaign.project.slug,
        licence=campaign.dataset.licence,
        files=kept,
        languages=spoken,
        panels=_panels(campaign),
        rubric=rubric_from_dict(campaign.rubric_version.document),
        design=rated.design(campaign),
        judges=[_judge(run) for run in study.runs],
        figures=figures,
        limitations=[*card_limits(figures, spoken), *_limits(study)],
    )


def _figures(campaign: Campaign, snapshot: Snapshot) -> list[Figure]:
    """What the panels agree on, criterion by criterion; over all languages only where there are several."""
    criteria = campaign.rubric_version.criteria.order_by("position").values_list("key", flat=True)
    places = {key: place for place, key in enumerate(criteria)}
    found = [Figure.of(row) for row in snapshot.content["estimates"] if row["statistic"] in SHOWN]
    return sorted(
        (figure for figure in found if figure.judge is None),
        key=lambda figure: (places[figure.criterion], figure.language or "", SHOWN.index(figure.statistic)),
    )


def _languages(campaign: Campaign) -> list[Language]:
    found = Item.objects.of(campaign.dataset).order_by().values_list("language").order_by("language")
    counted = found.annotate(items=Count("pk"), generators=Count("generator", distinct=True))
    return [Language(tag, languages.english_name(tag), items, generators) for tag, items, generators in counted]


def _panels(campaign: Campaign) -> list[Described]:
    return [replace(panel, panel=panel.panel or IMPORTED) for panel in data_cards.described_panels(campaign)]


def _judge(run: JudgeRun) -> dict[str, Any]:
    variant = judged.variant_name(run.judge)
    parameters = {name: run.judge.parameters.get(name) for name in ("temperature", "seed")}
    return {"judge": run.judge.name, "model": run.judge.model, "prompt_variant": variant, **parameters}


def _limits(study: Study) -> Iterator[str]:
    campaign = study.campaign
    yield "Raters have pseudonyms. Rationales are free text in which people may say who they are."
    if campaign.dataset.simulated:
        yield "The items were generated for this study; they are not real conversations."
    if any(run.judge.simulated for run in study.runs):
        yield "At least one judge is simulated: its verdicts are invented and only for tests."
    if ratings.not_blind(campaign):
        yield "Some ratings are by people who could see verdicts and other ratings: `blind` is false in their rows."
    if Annotation.objects.filter(campaign=campaign, annotator__identified=False).exists():
        yield "Some raters are positions in a file, not persons: the same name may stand for different people."
