"""A server killed with SIGKILL at ten points of a large import: nothing half-visible, resumed or swept.

``python -m bench.kill_import [--size 500MB] [--database sqlite]``. The product's own web server and worker run as
children of this process. After each kill somebody looks from outside; then the time for which a silent holder is
waited for is let pass (its last sign of life is dated back), and the sweep is asked for as the clock does. Once the
clock itself does it, in real time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import import_large, server
from panelbench.supervisor import Warden
from panelbench_client import Client

if TYPE_CHECKING:
    from bench.killing import KillWalk

RESULTS = Path(__file__).parent / "results" / "kill_import.md"
SMALLEST, USUAL = 64, 100  # MB
HEAD = "| # | killed while | how far | killed | staged rows | seen from outside | then |\n|---|---|---|---|---|---|---|"


def _measure(kind: str, size: int) -> str:
    """Walk a file of so many bytes through; what happened, as Markdown."""
    with contextlib.ExitStack() as started:
        warden = started.enter_context(Warden(grace=3))
        if kind == "postgresql":
            started.enter_context(server.redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        started.enter_context(server.database(kind))
        folder = Path(os.environ["PANELBENCH_DATA_DIR"])
        os.environ["TMPDIR"] = started.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix="tmp-"))
        programs = started.enter_context(server.running(kind, warden, folder / "programs.log"))
        walk = _walk(kind, programs, folder)
        begun = time.monotonic()
        items = walk.dataset(size)
        walk.ratings(size // 5, items)
        programs.weigh()
        left = sum(1 for path in Path(os.environ["TMPDIR"]).rglob("*") if path.is_file()), _orphans(folder)
        return _summary(walk, size, time.monotonic() - begun, left)


def _walk(kind: str, programs: server.Stack, folder: Path) -> KillWalk:
    from accounts import people, tokens
    from accounts.models import Scope, User
    from bench import scene
    from bench.killing import NAME, KillWalk, Outside
    from tests import make

    lead = User.objects.create_user("lead@panelbench.test", ui_language="en")
    project = people.create_project(name="Bench", slug="bench", founder=lead)
    criteria = [make.criterion(name, range(points)) for name, points in import_large.CRITERIA.items()]
    _token, secret = tokens.issue(user=lead, name="bench", scope=Scope.WRITE, project=project)
    client = Client(programs.address, secret, "bench")
    outside = Outside(client, secret, scene.session_key(lead), NAME, folder)
    return KillWalk(kind, programs, client, outside, folder, make.rubric(project, *criteria).pk)


def _orphans(folder: Path) -> int:
    """Files in the media directory that no row names."""
    from annotation.models import ImportFile, Upload

    named = {*ImportFile.objects.values_list("content", flat=True), *Upload.objects.values_list("content", flat=True)}
    media = folder / "uploads"
    return sum(1 for path in media.rglob("*") if path.is_file() and str(path.relative_to(media)) not in named)


def _summary(walk: KillWalk, size: int, seconds: float, left: tuple[int, int]) -> str:
    rows = [point.row(number) for number, point in enumerate(walk.points, start=1)]
    peaks = f"web {walk.programs.web.peak} MB, worker {walk.programs.worker.peak} MB"
    after = f"Left over: {left[0]} temporary files, {left[1]} files that no row names."
    looked = f"{walk.outside.looks} looks from outside, {seconds / 60:.0f} minutes. Peak of any one process: {peaks}."
    title = f"## {walk.kind}: {size / 1e6:,.0f} MB of dialogues, then {size / 5e6:,.0f} MB of ratings"
    return "\n".join([title, "", HEAD, *rows, "", looked, after])


def _bytes(text: str) -> int:
    megabytes = int(text.upper().removesuffix("MB"))
    if megabytes < SMALLEST:
        raise argparse.ArgumentTypeError(f"at least {SMALLEST}MB: a smaller file is in before it can be killed")
    return megabytes * 1_000_000


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=_bytes, default=_bytes(f"{USUAL}MB"), help="of the dialogues, such as 500MB")
    parser.add_argument("--database", choices=server.DATABASES, default="postgresql")
    parser.add_argument("--keep", action="store_true", help=f"write what comes out to {RESULTS.name}")
    asked = parser.parse_args()
    table = _measure(asked.database, asked.size)
    print(table)
    if asked.keep:
        RESULTS.write_text(f"# Killed with SIGKILL at ten points of an import\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
