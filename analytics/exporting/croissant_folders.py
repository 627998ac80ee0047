"""A dataset as a folder that readers of Croissant load: its items as one table, and the document that describes it."""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

from django.utils import translation

from analytics.exporting.hugging_face import dataset_limits, written_table
from annotation import exports as rated
from annotation.models import Dataset, Item
from annotation.writers.archives import dateless
from annotation.writers.croissant import CROISSANT_NAME, CroissantDataset


def write_croissant(dataset: Dataset, out: BinaryIO, *, without: Collection[str] = ()) -> None:
    """Write the folder as a zip, without these attributes. Ratings are in the folder of a campaign (`hugging_face`)."""
    languages = Item.objects.of(dataset).order_by("language").values_list("language", flat=True).distinct()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive, translation.override("en"):
        file = written_table(archive, "items", rated.items(dataset, without=without))
        title = f"{dataset.project.name}: {dataset}"
        description = CroissantDataset(
            name=title,
            description=dataset.project.description.strip() or "Texts to be rated by people and by language models.",
            creator=dataset.project.name,
            licence=dataset.licence,
            version=dataset.version,
            published=dataset.created_at.date(),
            languages=list(languages),
            cite_as=f"{title} ({dataset.created_at.year})",
            keywords=("panelbench",),
            files=[file.described()] if file.rows else [],
            responsible={"dataLimitations": list(dataset_limits(dataset))},
        )
        archive.writestr(dateless(CROISSANT_NAME), description.as_json())
