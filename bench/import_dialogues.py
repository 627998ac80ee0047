"""10,000 dialogues from parsed rows to commit, against COPY or executemany: ``python -m bench.import_dialogues``.

The other side writes the same columns into the same table, keys and indexes and all, in one transaction, from tuples
that are ready: JSON written out, digests computed. Five runs of each, alternating; medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import server

DIALOGUES = 10_000
TURNS = 8
RUNS = 5
RESULTS = Path(__file__).parent / "results" / "import.md"
HEAD = "| database | baseline | baseline, rows/s | store, rows/s | ratio |\n|---|---|---|---|---|"
SENTENCE = (
    "Tere päevast! Mõistan, et see on ebameeldiv; vaatan kohe järele ja annan teile teada. نص عربي، 日本語の文。 "
)


def measure(kind: str) -> str:
    """The table's row for one database."""
    with server.database(kind):
        from annotation.imports import storage

        project, rows = _project(), _rows()
        ready = [storage._item(0, number, row) for number, row in enumerate(rows)]
        ways: dict[str, Callable[[int], None]] = {
            "store": lambda turn: _store(project, turn, rows),
            "bare": lambda turn: _bare(kind, project, turn, ready),
        }
        for way in ways.values():  # caches, connection and code warm up outside the measurement
            way(-1)
        found: dict[str, list[float]] = {"store": [], "bare": []}
        for turn in range(RUNS):
            for name in sorted(ways, reverse=bool(turn % 2)):
                found[name].append(_timed(ways[name], turn))
        return _summary(kind, {name: statistics.median(seconds) for name, seconds in found.items()})


def _timed(way: Callable[[int], None], turn: int) -> float:
    started = time.perf_counter()
    way(turn)
    return time.perf_counter() - started


def _project() -> Any:
    from accounts import people
    from accounts.models import User

    return people.create_project(name="Bench", slug="bench", founder=User.objects.create_user("lead@panelbench.test"))


def _rows() -> list[Any]:
    from annotation.readers.items import ItemRow

    return [
        ItemRow(f"d{n}", "et", f"m{n % 6}", f"s{n % 100}", f"Pakk {n}", _turns(n), {}, {"channel": "chat"}, "", n)
        for n in range(DIALOGUES)
    ]


def _turns(number: int) -> list[dict[str, str]]:
    return [
        {"speaker": ("customer", "agent")[turn % 2], "text": f"{SENTENCE * 2}{number}.{turn}"} for turn in range(TURNS)
    ]


def _store(project: Any, turn: int, rows: list[Any]) -> None:
    from annotation.imports import storage

    storage.store(project=project, name=f"stored {turn}", items=rows)


def _bare(kind: str, project: Any, turn: int, ready: list[tuple[Any, ...]]) -> None:
    from django.db import connection, transaction

    from annotation.imports.storage import ITEM_FIELDS
    from annotation.models import Dataset

    dataset = Dataset.objects.create(project=project, name=f"bare {turn}")
    columns = ", ".join(f'"{name}"' for name in ITEM_FIELDS)
    own = ((dataset.pk, *row[1:]) for row in ready)
    with transaction.atomic(), connection.cursor() as cursor:
        if kind == "postgresql":
            with cursor.cursor.copy(f"COPY annotation_item ({columns}) FROM STDIN") as copy:
                for row in own:
                    copy.write_row(row)
        else:
            marks = ", ".join("?" * len(ITEM_FIELDS))
            cursor.connection.executemany(f"INSERT INTO annotation_item ({columns}) VALUES ({marks})", own)


def _summary(kind: str, seconds: dict[str, float]) -> str:
    per_second = {name: DIALOGUES / each for name, each in seconds.items()}
    baseline = {"postgresql": "COPY", "sqlite": "executemany"}[kind]
    ratio = per_second["store"] / per_second["bare"]
    return f"| {kind} | {baseline} | {per_second['bare']:,.0f} | {per_second['store']:,.0f} | {ratio:.2f} |"


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        title = f"# Import of {DIALOGUES:,} dialogues of {TURNS} turns, from parsed rows to commit"
        RESULTS.write_text(f"{title}\n\n`python -m bench.import_dialogues`\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
