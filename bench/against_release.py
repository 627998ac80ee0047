"""An earlier release against this checkout, in alternating runs: ``python -m bench.against_release --other CHECKOUT``.

CHECKOUT is a worktree of that release with an environment of its own in ``.venv``. Every bench that both have runs in
turn in the one and the other, each run in a process and a database (PostgreSQL) of its own and smaller than usual, so
that none takes a minute. The figures are processor seconds of the bench's whole process tree, servers and database
included, for the same work: what other jobs on the machine take away counts little in them. Given are medians of the
rounds. Where a bench also times something that is not ours (COPY, a bare view, a loop), that row shows how much the
machine itself varies between the two.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FILE = Path(__file__).resolve()
RESULTS = FILE.parent / "results" / "against_release.md"
RUN = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
TICKS = os.sysconf("SC_CLK_TCK")
SLOWER = 1.10
STARTING_SERVERS = {"submit", "next_item"}
Figures = dict[str, float]  # processor seconds by what was done


def tree_seconds() -> float:
    """Processor seconds so far of this process, of PostgreSQL, and of every process below them, ended ones included."""
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(folder)):
            pid, parent = int(folder.name), int(fields[1])
            parents.setdefault(parent, []).append(pid)
            used[pid] = sum(map(int, fields[11:15])) / TICKS
    below, waiting = 0.0, [pid for pid in (os.getpid(), *_postmaster()) if pid in used]
    while waiting:
        pid = waiting.pop()
        below += used[pid]
        waiting += parents.get(pid, [])
    return below


def _stat(folder: Path) -> list[str]:
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return []


def _postmaster() -> Iterator[int]:
    path = Path(os.environ.get("PANELBENCH_DATA_DIR", "/nowhere")) / "postgresql" / "postmaster.pid"
    if path.exists():
        yield int(path.read_text().split()[0])


class Clock:
    """Stands for `time.perf_counter` in a bench: processor seconds, every reading kept."""

    def __init__(self, read: Callable[[], float] = tree_seconds) -> None:
        self._read, self.readings = read, list[float]()
        time.perf_counter = self  # type: ignore[assignment]

    def __call__(self) -> float:
        self.readings.append(self._read())
        return self.readings[-1]

    def spans(self) -> list[float]:
        """The seconds between the first and second reading, the third and fourth, and so on."""
        return [end - start for start, end in zip(self.readings[::2], self.readings[1::2], strict=True)]


def _bench(name: str, **sizes: object) -> Any:
    module = importlib.import_module(f"bench.{name}")
    if name not in STARTING_SERVERS:
        _without_migrations()
    for constant, value in sizes.items():
        assert hasattr(module, constant), f"bench.{name} has no {constant}"
        setattr(module, constant, value)
    return module


def _without_migrations() -> None:
    """Tables made from the models: what is measured here starts no server, and the migrations would take longest."""
    from bench import server

    def set_up() -> None:
        import django

        django.setup()
        from django.apps import apps
        from django.conf import settings
        from django.core.management import call_command

        settings.MIGRATION_MODULES = {config.label: None for config in apps.get_app_configs()}
        call_command("migrate", run_syncdb=True, verbosity=0)

    server._set_up = set_up


def _columns(row: str) -> list[float]:
    """The numbers of a table's row: of `1,234 (5,678)` the one in parentheses."""
    cells = [cell.strip().replace(",", "") for cell in row.strip().strip("|").split("|")]
    return [float(cell.rpartition("(")[2].rstrip(")")) for cell in cells if cell.strip("().0123456789 ") == ""]


def _clients() -> list[float]:
    """Record what each run of several clients takes: processor seconds for one request."""
    from bench import clients

    together, recorded = clients.together, list[float]()

    def recording(jobs: Any) -> Any:
        started = tree_seconds()
        run = together(jobs)
        recorded.append((tree_seconds() - started) / len(run.seconds))
        return run

    clients.together = recording
    return recorded


def submit_seconds() -> Figures:
    recorded = _clients()
    _bench("submit", RUNS=3, REQUESTS={8: 320}).measure("postgresql")
    submitted, bare = (recorded[2], recorded[5], recorded[6]), (recorded[3], recorded[4], recorded[7])
    return {"1,000 submissions": 1000 * statistics.median(submitted), "(bare view)": 1000 * statistics.median(bare)}


def next_item_seconds() -> Figures:
    recorded = _clients()
    _bench("next_item", ITEMS=3000, RUNS=3, EACH=20).measure("postgresql")
    takes, waits = recorded[1:4], recorded[4:7]
    names = ("1,000 times take and submit", "1,000 times take, page and submit")
    return {name: 1000 * statistics.median(found) for name, found in zip(names, (takes, waits), strict=True)}


def import_dialogues() -> Figures:
    Clock()
    row = _bench("import_dialogues", DIALOGUES=20_000, RUNS=3).measure("postgresql")
    bare, stored, _ratio = _columns(row)
    return {"20,000 dialogues stored": 20_000 / stored, "(COPY)": 20_000 / bare}


def import_ratings() -> Figures:
    row = _bench("import_ratings", RATINGS=100_000).measure("postgresql")
    bare, stored, _ratio, whole, read = _columns(row)[:5]
    names = ("(COPY)", "100,000 ratings stored", "100,000 ratings from CSV", "100,000 ratings read")
    return {name: 100_000 / rate for name, rate in zip(names, (bare, stored, whole, read), strict=True)}


def _large(kind: str) -> Figures:
    clock = Clock()
    bench = _bench("import_large")
    bench.sys = SimpleNamespace(maxsize=1_000_000)  # 1200a08 makes a list of that many items of ratings
    bench.measure(kind, 15_000_000)
    looked, stored = clock.spans()
    return {f"15 MB of {kind} looked at": looked, f"15 MB of {kind} stored": stored}


def export() -> Figures:
    Clock()
    rows = _bench("export", RATINGS=50_000, RUNS=3).measure("postgresql").splitlines()
    figures = {}
    for name, row in zip(("CSV", "JSONL"), rows, strict=True):
        _rows, raw, exported = _columns(row)[:3]
        figures |= {f"50,000 ratings to {name}": exported, f"(COPY, before {name})": raw}
    return figures


def stats_agreement() -> Figures:
    Clock(time.process_time)
    bench = _bench("stats_agreement")
    random_codes = getattr(bench, "random_codes", None) or bench.ratings  # as releases before it called it
    large, small = random_codes(333_334), random_codes(1000)
    figures = {}
    for level in ("nominal", "ordinal"):
        figures[f"alpha {level}, 1 M ratings"] = bench.best(lambda: bench.ours_alpha(large, level), 9)  # noqa: B023 called at once
        figures[f"1,500 resamples, {level}"] = bench.best(lambda: bench.ours_bootstrap(small, level), 9)  # noqa: B023 called at once
    started = time.process_time()
    bench.campaign_row()
    return {**figures, "68 criteria, 490,000 ratings": time.process_time() - started}


def stats_judges() -> Figures:
    Clock(time.process_time)
    rows = [line for line in _bench("stats_judges").speed(None) if "|---" not in line]
    return {row.split("|")[1].strip(): float(row.split("|")[2]) for row in rows}


def stats_sliders() -> Figures:
    """The files are made here, with the seeds and shapes of this checkout's bench, which the release may not have."""
    figures = {}
    for name, path, subcommand, options in json.loads(os.environ["SLIDERS"]):
        before = os.times()
        command = [sys.executable, "-m", "panelbench.cli", "stats", subcommand, path, *options]
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        figures[f"stats {subcommand}, {name}"] = used
    return figures


def judge_run() -> Figures:
    row = _bench("judge_run", ITEMS=250, REPEATS=2, CALLS=500).measure("postgresql")
    *_speeds, loop, run, _missing = _columns(row)
    return {"1,000 calls run and stored": run, "(1,000 calls in a loop)": loop}


def numbers_seconds() -> Figures:
    from bench import server

    _without_migrations()
    with server.database("postgresql"):
        from django.test import Client
        from django.test.utils import setup_test_environment

        from tests import make
        from tests.analytics import scene
        from tests.cast import make_cast

        setup_test_environment()
        cast, count = make_cast(), 300
        # What 1200a08 calls by other names.
        item_row = getattr(make, "item_row", None) or make.item
        with_verdicts = getattr(scene, "with_verdicts", None) or scene.judged
        items = [item_row(n, ("et", "ar")[n % 2], scenario=f"s{n // 2}", external_id=f"d{n}") for n in range(count)]
        campaign = make.campaign(cast.kassa, items=items, name="Round 1")
        scores = {
            criterion: {rater: [(n * step + n // 7) % top for n in range(count)] for rater, step in raters.items()}
            for criterion, top, raters in (
                ("fluency", 4, {"mari": 1, "jaan": 1, "noor": 3}),
                ("coherence", 2, {"mari": 1, "jaan": 3}),
            )
        }
        make.rated(campaign, scores)
        with_verdicts(campaign, {"fluency": [n % 4 for n in range(count)], "coherence": [n % 2 for n in range(count)]})
        return _numbers(campaign, Client, cast.aino)


def _module_or_none(name: str) -> Any:
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return None


def _numbers(campaign: Any, client: Callable[[], Any], lead: Any) -> Figures:
    names = ("analytics.answers.snapshots", "analytics.snapshots", "analytics.dashboards")  # the last in 1200a08
    snapshots: Any = next(filter(None, (_module_or_none(name) for name in names)))

    address = f"/p/{campaign.project.slug}/numbers/{campaign.pk}/"

    def page(times: int) -> None:
        for _time in range(times):
            assert browser.get(address).status_code == 200

    def computed_and_drawn() -> None:
        """1200a08 draws a chart when its picture is first asked for, wide and narrow."""
        made = snapshots.snapshot(campaign=campaign, settings=snapshots.Settings(seed=1))
        for width in ("wide", "narrow"):
            browser.get(f"{address}{made.pk}/bias.svg?width={width}")

    browser = client()
    browser.force_login(lead)
    snapshots.snapshot(campaign=campaign)
    page(3)
    clock = Clock()
    clock()
    computed_and_drawn()
    clock()
    clock()
    page(40)
    clock()
    computed, shown = clock.spans()
    return {"a snapshot of 300 items with its charts": computed, "its page, 40 times": shown}


BENCHES: dict[str, Callable[[], Figures]] = {
    "submit": submit_seconds,
    "next_item": next_item_seconds,
    "import_dialogues": import_dialogues,
    "import_ratings": import_ratings,
    "import_large dataset": lambda: _large("dataset"),
    "import_large ratings": lambda: _large("ratings"),
    "import_large verdicts": lambda: _large("verdicts"),
    "export": export,
    "stats_agreement": stats_agreement,
    "stats_judges": stats_judges,
    "stats_sliders": stats_sliders,
    "judge_run": judge_run,
    "numbers": numbers_seconds,
}


def _run(checkout: Path, name: str, variables: dict[str, str]) -> Figures:
    command = [str(checkout / ".venv" / "bin" / "python"), "-c", RUN, str(FILE), "--measure", name]
    one_thread = {"OPENBLAS_NUM_THREADS": "1"}  # a second one waits busily, which counts as processor time
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, **one_thread, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"bench {name} in {checkout}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _sliders(folder: Path) -> str:
    from bench import stats_sliders

    asked = []
    for name, shape in stats_sliders.FILES.items():
        path = folder / f"{len(asked)}.csv"
        stats_sliders.slider(60_000, **shape).to_csv(path, index=False)
        asked += [(name, str(path), subcommand, options) for subcommand, options in stats_sliders.SUBCOMMANDS.items()]
    return json.dumps(asked)


def _compared(name: str, checkouts: tuple[Path, Path], rounds: int, variables: dict[str, str]) -> Iterator[str]:
    found: tuple[list[Figures], list[Figures]] = ([], [])
    for _round in range(rounds):
        for runs, checkout in zip(found, checkouts, strict=True):
            runs.append(_run(checkout, name, variables))
    for what in found[0][0]:
        before, after = (statistics.median(run[what] for run in runs) for runs in found)
        spread = " / ".join(f"{run[what]:.3f} {other[what]:.3f}" for run, other in zip(*found, strict=True))
        mark = " **slower**" if after > SLOWER * before and not what.startswith("(") else ""
        yield f"| {name} | {what} | {before:.3f} | {after:.3f} | {after / before:.2f}{mark} | {spread} |"


def _main() -> None:
    """Rows of a table to standard output; all benches together are kept in results/."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=BENCHES, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(BENCHES[asked.measure]()))
        return
    this, other = FILE.parents[1], asked.other.resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        variables = {"SLIDERS": _sliders(Path(folder))}
        for name in asked.names or BENCHES:
            for row in _compared(name, (other, this), asked.rounds, variables):
                print(row, flush=True)
                rows.append(row)
    if not asked.names:
        _keep(rows, this, other)


def _keep(rows: list[str], this: Path, other: Path) -> None:
    name = ("git", "rev-parse", "--short", "HEAD")
    before, after = (subprocess.check_output(name, cwd=path, text=True).strip() for path in (other, this))
    head = f"| bench | processor seconds for | {before} | {after} | ratio | each round |\n|---|---|---|---|---|---|"
    title = f"# {after} against {before}, alternating\n\n`python -m bench.against_release --other CHECKOUT`"
    RESULTS.write_text("\n".join([f"{title}\n\n{head}", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
