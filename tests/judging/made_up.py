"""A small study nobody ever made, in files that look like HANNA's: stories, people, judges under four prompts."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator

CRITERIA = ("RE", "CH", "EM", "SU", "EG", "CX")
NAMES = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
JUDGES = ("Beluga-13B", "OrcaPlatypus", "Mistral-7B", "Llama-13B", "ChatGPT")
MODELS = ("Quill", "Inkwell")
PROMPTS = 3
STORIES = len(MODELS) * PROMPTS
RATINGS = STORIES * 3 * len(CRITERIA)
VERDICTS = STORIES * len(JUDGES) * 4 * len(CRITERIA)


def scores(*, off: float | None = None) -> str:
    """The table of scores; ``off`` takes the place of one judge's first score."""
    columns = ["Model", *NAMES, *(f"Human {who} {key}" for who in (1, 2, 3) for key in CRITERIA)]
    columns += [f"{judge} {key} {prompt}" for judge in JUDGES for key in CRITERIA for prompt in (1, 2, 3, 4)]
    table = io.StringIO()
    writer = csv.DictWriter(table, columns)
    writer.writeheader()
    for number, model in enumerate(MODELS):
        cells = {name: list(_points(number + place)) for place, name in enumerate(columns[1:])}
        if off is not None and number == 0:
            cells["ChatGPT CX 4"][0] = off
        writer.writerow({"Model": model, **{name: json.dumps(cell) for name, cell in cells.items()}})
    return table.getvalue()


def _points(seed: int) -> Iterator[float]:
    return (float(1 + (seed + 2 * place) % 5) for place in range(PROMPTS))


def folder() -> dict[str, bytes]:
    """The files of its folder by name, a licence and a note beside the data."""
    return {"scores.csv": scores().encode(), "LICENSE": b"Do as you like.", "README.md": b"# Made up"}


def zip_archive(files: dict[str, bytes]) -> bytes:
    """A zip of such a folder."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(f"study/{name}", content)
    return packed.getvalue()
