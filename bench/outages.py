"""Outages: annotators submit over HTTP while PostgreSQL, Redis and the data folder are taken away in turn.

``python -m bench.outages`` (10 s for each outage; ``--seconds 60 --write`` for the record) starts PostgreSQL, Redis and
the web server and lets people work. It ends by itself, uses only loopback and kills only what it started.
Each outage is followed by a quiet time. What was acknowledged is then looked for in the database, and every web thread
has to answer. Freezing and write-protecting a disk needs root; without, these outages are named as not tried.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.clients import CRITERIA
from bench.server import Postgresql, Redis, descendants, running
from bench.siege_clients import AnnotatorRecord, ClientProcess, SentRequest, read_records
from panelbench.pulses import close_connections
from panelbench.supervisor import Warden

PEOPLE, ITEMS, OVERLAP, CLIENTS = 50, 2000, 3, 5
PAUSE = (1.0, 3.0)  # seconds that a person thinks about an item
THREADS = 8  # of the web server
QUIET = 8.0  # seconds between two outages
RESULTS = Path(__file__).parent / "results" / "outages.md"
TABLE_HEAD = (
    "| what was away | s | requests | 503 | other 5xx | no answer | slowest, s | threads lost |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Blackout:
    what: str
    began: float
    ended: float
    lost_threads: int


def measure(seconds: float) -> str:
    """The table of all outages, and what became of the submissions."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panelbench-outages-")))
        folder.chmod(0o755)
        disk = stack.enter_context(_disk(folder))
        log = folder / "log"
        database, broker = Postgresql(folder / "postgresql", log), Redis(folder)
        database.start()
        stack.callback(database.stop)
        broker.start()
        stack.callback(broker.kill)
        data_dir = (disk or folder) / "data"
        data_dir.mkdir()
        os.environ |= {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "DEBUG": "off",
            "PANELBENCH_SECURE": "off",
            "PANELBENCH_DATA_DIR": str(data_dir),
            "DATABASE_URL": database.url,
            "REDIS_URL": broker.url,
            "DJANGO_SETTINGS_MODULE": "panelbench.settings",
        }
        duty, people = _scene()
        warden = stack.enter_context(Warden())
        site = stack.enter_context(running("postgresql", warden, log))
        clients = [ClientProcess(folder / f"client-{n}.jsonl", people[n::CLIENTS]) for n in range(CLIENTS)]
        for client in clients:
            client.prepare(port=int(site.address.rpartition(":")[2]), duty=duty, criteria=CRITERIA, pause=PAUSE)
            client.start()
        outages = _outages(database, broker, data_dir, disk)
        blackouts = []
        try:
            time.sleep(QUIET)
            for what, away in outages.items():
                began = time.monotonic()
                with away():
                    time.sleep(seconds)
                time.sleep(QUIET)
                blackouts.append(Blackout(what, began, time.monotonic(), _lost_threads(site.address, people)))
        finally:
            for client in clients:
                client.end()
            for client in clients:
                client.wait(90)
        records = [record for client in clients for record in read_records(client.path).values()]
        table = "\n".join(_row(blackout, seconds, records) for blackout in blackouts)
        return f"{TABLE_HEAD}\n{table}\n\n{_submissions(records)}"


def _scene() -> tuple[int, list[tuple[int, str, str]]]:
    """The duty that everybody works on, and the people: number, address on loopback, session."""
    import django

    django.setup()
    from django.core.management import call_command

    from bench import scene

    call_command("migrate", verbosity=0)
    made = scene.make_scene(items=ITEMS, annotators=PEOPLE)
    duty = made.duty("Everybody", PEOPLE, OVERLAP)
    close_connections()
    return duty.pk, [(n, f"127.0.1.{n + 1}", session) for n, (_user, _annotator, session) in enumerate(made.people)]


def _outages(
    database: Postgresql, broker: Redis, data_dir: Path, disk: Path | None
) -> dict[str, Callable[[], contextlib.AbstractContextManager[None]]]:
    @contextlib.contextmanager
    def killed(program: Postgresql | Redis) -> Iterator[None]:
        program.kill()
        try:
            yield
        finally:
            program.start()

    @contextlib.contextmanager
    def stopped(program: Postgresql | Redis) -> Iterator[None]:
        assert program._running
        pids = [program._running.pid, *descendants(program._running.pid)]
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(pids, signal.SIGCONT)

    @contextlib.contextmanager
    def vanished() -> Iterator[None]:
        data_dir.rename(away := data_dir.with_name("away"))
        try:
            yield
        finally:
            subprocess.run(["rm", "-rf", str(data_dir)], check=True)
            away.rename(data_dir)

    @contextlib.contextmanager
    def changed(to: list[str], back: list[str]) -> Iterator[None]:
        subprocess.run([*to, str(disk)], check=True)
        timer = threading.Timer(180, subprocess.run, ([*back, str(disk)],))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            subprocess.run([*back, str(disk)], check=True)

    outages: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "PostgreSQL, killed": lambda: killed(database),
        "PostgreSQL, stopped (SIGSTOP)": lambda: stopped(database),
        "Redis, killed": lambda: killed(broker),
        "Redis, stopped (SIGSTOP)": lambda: stopped(broker),
        "the data folder, vanished": vanished,
    }
    if disk:
        outages["the data folder, frozen"] = lambda: changed(["fsfreeze", "--freeze"], ["fsfreeze", "--unfreeze"])
        mount = ["mount", "-o"]
        outages["the data folder, read-only"] = lambda: changed([*mount, "remount,ro"], [*mount, "remount,rw"])
    return outages


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[Path | None]:
    """A file system of its own for the data folder; None where none can be mounted."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(600 * 2**20)
    commands = (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)])
    if os.geteuid() or any(
        subprocess.run(command, check=False, capture_output=True).returncode for command in commands
    ):
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def _lost_threads(address: str, people: list[tuple[int, str, str]]) -> int:
    """Of as many requests at the same time as there are threads, those without an answer within 20 s."""
    answers: list[int] = []

    def ask() -> None:
        with contextlib.suppress(httpx.TransportError):
            cookie = {"Cookie": f"sessionid={people[0][2]}"}
            answers.append(httpx.get(f"{address}/account/login/", headers=cookie, timeout=20).status_code)

    threads = [threading.Thread(target=ask) for _thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return THREADS - len(answers)


def _row(blackout: Blackout, seconds: float, records: list[AnnotatorRecord]) -> str:
    sent: list[SentRequest] = [
        each for record in records for each in record.requests if blackout.began <= each.sent < blackout.ended
    ]
    unavailable = sum(each.status in (503, 507) for each in sent)
    failed = sum(each.status >= 500 for each in sent) - unavailable
    silent = sum(each.status == 0 for each in sent)
    slowest = max((each.answered - each.sent for each in sent), default=0.0)
    return (
        f"| {blackout.what} | {seconds:g} | {len(sent)} | {unavailable} | {failed} | {silent} | {slowest:.1f} "
        f"| {blackout.lost_threads} |"
    )


def _submissions(records: list[AnnotatorRecord]) -> str:
    from annotation.models import Rating

    stored: dict[str, dict[str, float]] = {}
    rows = Rating.objects.filter(annotation__superseded_at=None)
    for key, name, score in rows.values_list("annotation__key", "criterion__key", "score"):
        stored.setdefault(str(key), {})[name] = score
    acknowledged = {key: scores for record in records for key, (_at, scores) in record.acknowledged.items()}
    lost = sum(stored.get(key) != scores for key, scores in acknowledged.items())
    return f"Submissions of {PEOPLE} annotators acknowledged: {len(acknowledged)}; acknowledged and lost: **{lost}**."


def measure_outages() -> None:
    """Measure, print, and write the record if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each outage")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    table = measure(options.seconds)
    print(table)
    if options.write:
        title = "# Outages while 50 annotators work over HTTP"
        note = (
            "`python -m bench.outages`: PostgreSQL, Redis, two web processes with four threads each. Requests are "
            f"those sent during the outage and {QUIET:g} s after it; each submission is sent until acknowledged."
        )
        RESULTS.write_text(f"{title}\n\n{note}\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    measure_outages()
