"""Published files beside the checkout; their tests are skipped, saying so, where the folder is missing."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("PANELBENCH_SHARED", Path(__file__).resolve().parents[4] / "shared"))


def shared(path: str) -> tuple[str, bytes]:
    """The name and content of one file of the shared data."""
    place = SHARED / "data" / path
    if not place.exists():
        pytest.skip(f"no {path} in {SHARED}/data: set PANELBENCH_SHARED to the folder that holds data/")
    return place.name, place.read_bytes()
