"""Time and memory of one large import each of dialogues, ratings and verdicts: ``python -m bench.import_large``.

Each is looked at and then stored, as a worker does it, in a process of its own on PostgreSQL; memory is that process's
highest. Ratings and verdicts are about the dialogues of a file of the same size.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import large_files, server

KINDS = ("dataset", "ratings", "verdicts")
USUAL = 100  # MB
RESULTS = Path(__file__).parent / "results" / "import_large.md"
HEAD = "| file | MB | rows | looked at, s | stored, s | peak of the process, MB |\n|---|---|---|---|---|---|"


def measure(kind: str, size: int) -> str:
    """The table's row for one kind of file."""
    with server.database("postgresql"):
        folder = Path(os.environ["PANELBENCH_DATA_DIR"])
        scene = _Scene(folder)
        path, rows = scene.made(kind, size)
        file_import = scene.opened(kind, path)
        looked = _seconds(lambda: scene.look(file_import))
        stored = _seconds(lambda: scene.store(file_import))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        megabytes = path.stat().st_size / 1e6
        return f"| {kind} | {megabytes:,.0f} | {rows:,} | {looked:,.0f} | {stored:,.0f} | {peak} |"


def _seconds(way: Callable[[], object]) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


class _Scene:
    """A project with a rubric, and for ratings and verdicts a dataset to be about."""

    def __init__(self, folder: Path) -> None:
        from accounts import people
        from accounts.models import User
        from tests import make

        self.folder = folder
        self.lead = User.objects.create_user("lead@panelbench.test")
        self.project = people.found_project(name="Bench", slug="bench", founder=self.lead)
        criteria = [make.criterion(name, range(points)) for name, points in large_files.CRITERIA.items()]
        self.version = make.rubric(self.project, *criteria)
        self.target: dict[str, Any] = {}

    def made(self, kind: str, size: int) -> tuple[Path, int]:
        if kind == "dataset":
            path = self.folder / "dialogues.jsonl"
            return path, large_files.dialogues(path, size)
        if kind == "ratings":
            path = self.folder / "ratings.csv"
            rows = large_files.ratings(path, size, sys.maxsize)[0]
        else:
            path = self.folder / "verdicts.jsonl"
            rows = large_files.verdicts(path, size, sys.maxsize)
        self._items(-(-rows // len(large_files.CRITERIA) // 2))  # of two raters or judges each
        return path, rows

    def _items(self, count: int) -> None:
        from tests import make

        dataset = make.dataset(self.project, (make.item(number) for number in range(1, count + 1)))
        self.target = {"dataset": dataset.pk, "rubric_version": self.version.pk}

    def opened(self, kind: str, path: Path) -> Any:
        from annotation.imports import opening

        with path.open("rb") as file:
            return opening.open_import(
                project=self.project, kind=kind, files=[(path.name, file)], target=self.target, actor=self.lead
            )

    def look(self, file_import: Any) -> None:
        from annotation.imports import lifecycle
        from judging import tasks

        seen = tasks.preview(file_import) if file_import.kind == "verdicts" else lifecycle.preview(file_import)
        assert not seen.problems, seen.problems.sentences()

    def store(self, file_import: Any) -> None:
        from annotation.imports import lifecycle
        from judging.imports import verdicts

        (verdicts if file_import.kind == "verdicts" else lifecycle).carry_out(file_import=file_import, actor=self.lead)


def _alone(kind: str, size: str) -> str:
    command = [sys.executable, "-m", "bench.import_large", "--kind", kind, "--size", size]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default=f"{USUAL}MB", help="of each file, such as 500MB")
    parser.add_argument("--kind", choices=KINDS, help="only this one, printed and not written")
    asked = parser.parse_args()
    if asked.kind:
        print(measure(asked.kind, int(asked.size.upper().removesuffix("MB")) * 1_000_000))
        return
    table = "\n".join([HEAD, *(_alone(kind, asked.size) for kind in KINDS)])
    title = "# Large imports: time and memory"
    RESULTS.write_text(f"{title}\n\n`python -m bench.import_large`\n\n{table}\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
