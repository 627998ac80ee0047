"""What two backups hold, held against each other row by row."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

MADE_BY_MIGRATING = frozenset({"django_content_type", "auth_permission"})
RENAMED = {  # tables and columns that later versions call otherwise
    "annotation_intake": "annotation_import",
    "annotation_intakefile": "annotation_importfile",
    "intake_id": "file_import_id",
    "intake": "file_import",
}


def tables(archive: Path) -> dict[str, dict[Any, dict[str, Any]]]:
    """Every table by name: its rows by primary key, each by column; JSON as what it says, in whatever order of keys."""
    with ZipFile(archive) as opened:
        manifest = json.loads(opened.read("manifest.json"))
        return {
            name: {row[0]: dict(_columns(entry["columns"], row)) for row in map(json.loads, opened.open(_member(name)))}
            for name, entry in manifest["tables"].items()
        }


def _member(table: str) -> str:
    return f"tables/{table}.jsonl"


def _columns(kinds: dict[str, str], row: list[Any]) -> Iterator[tuple[str, Any]]:
    for (name, kind), value in zip(kinds.items(), row, strict=True):
        yield name, json.loads(value) if kind == "JSONField" and value is not None else value


def _renamed(held: dict[str, dict[Any, dict[str, Any]]]) -> dict[str, dict[Any, dict[str, Any]]]:
    """The same rows under today's names of tables and columns."""
    return {
        RENAMED.get(name, name): {
            key: {RENAMED.get(column, column): value for column, value in row.items()} for key, row in rows.items()
        }
        for name, rows in held.items()
    }


def files(archive: Path) -> dict[str, bytes]:
    """Every file by its name."""
    with ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name.startswith("files/")}


def differences(before: Path, after: Path, *, meant: Collection[str] = ()) -> list[str]:
    """What is not as it was: rows gone, rows that came, values changed, but for the columns and tables in ``meant``.

    Tables and columns that are new are no difference.
    """
    was, now = _renamed(tables(before)), tables(after)
    found = [f"table {name} is gone" for name in sorted(was.keys() - now.keys() - set(meant))]
    for name in sorted(was.keys() & now.keys() - set(meant)):
        gone, came = was[name].keys() - now[name].keys(), now[name].keys() - was[name].keys()
        found += [f"{name}: {len(gone)} rows are gone, such as {min(gone, key=str)}"] if gone else []
        found += [f"{name}: {len(came)} rows came"] if came and name not in MADE_BY_MIGRATING else []
        changed = {
            f"{name}.{column}"
            for key in was[name].keys() & now[name].keys()
            for column, value in was[name][key].items()
            if now[name][key].get(column, "no such column") != value
        }
        found += sorted(changed - set(meant))
    sent, got = files(before), files(after)
    return found + [f"{name} is not what it was" for name in sorted(sent) if got.get(name) != sent[name]]
