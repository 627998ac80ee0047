"""Published study files beside the checkout; where they are missing, tests marked `study_data` are left out."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("PANELBENCH_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"


def study_file(path: str) -> tuple[str, bytes]:
    """The name and content of one of the files."""
    place = FOLDER / path
    return place.name, place.read_bytes()
