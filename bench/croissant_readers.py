"""Folders with a `croissant.json`, read by the reference library of Croissant.

``python bench/croissant_readers.py FOLDER...`` needs `mlcroissant` and `pyarrow` (it brings pandas and rdflib, so that
it is no requirement of ours: install it into an environment of its own) and nothing of ours. It says what the library
warns of, reads every table by its description, and holds each value against what pyarrow reads from the file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any


class _Warnings(logging.Handler):
    """Keeps what the library warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def _plain(value: Any) -> Any:
    """A value as both libraries give it alike: text for bytes and moments, None for what is not a number."""
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, dict):
        return {name.rpartition("/")[2]: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "ndarray":
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _read_folder(folder: Path, warned: _Warnings) -> list[tuple[str, int, int, int]]:
    """Of each table: its name, rows, values, and the values that differ."""
    import mlcroissant  # type: ignore[import-not-found]
    from pyarrow import parquet  # type: ignore[import-untyped]

    document = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    for file in document["distribution"]:
        content = (folder / file["contentUrl"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"], file["@id"]
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    warned.sentences += sorted(dataset.metadata.ctx.issues.warnings)
    results = []
    for records in document["recordSet"]:
        (path,) = {field["source"]["fileObject"]["@id"] for field in records["field"] if "source" in field}
        rows = parquet.read_table(folder / path).to_pylist()
        differing = values = 0
        for read, row in zip(dataset.records(records["@id"]), rows, strict=True):
            for name, value in row.items():
                values += 1
                differing += _plain(read[f"{records['@id']}/{name}"]) != _plain(value)
        results.append((records["@id"], len(rows), values, differing))
    return results


def _main() -> None:
    warned = _Warnings()
    logging.getLogger("absl").addHandler(warned)
    logging.getLogger().addHandler(warned)
    print(
        f"mlcroissant {version('mlcroissant')}\n\n| folder | table | rows | values | differing |\n|---|---|---|---|---|"
    )
    for folder in map(Path, sys.argv[1:]):
        for cells in _read_folder(folder, warned):
            print(f"| {folder.name} | " + " | ".join(map(str, cells)) + " |")
    print("\nWarnings: " + ("; ".join(dict.fromkeys(warned.sentences)) or "none"))


if __name__ == "__main__":
    _main()
