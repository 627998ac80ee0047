"""A file on its way in, past ten deaths: what is killed when, what can be seen then, and how it goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import psycopg
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEntry, Job
from annotation.models import Annotation, Annotator, Campaign, Dataset, Import, Item, Rating, Upload
from bench import import_large, server
from judging.models import JudgeRun, Verdict
from panelbench.celery import app
from panelbench_client import Client, Unreachable

# --- what anybody can see of a project from outside -------------------------------------------------------------------


PAGES = ("", "datasets/", "campaigns/", "campaigns/new/", "judges/", "runs/", "numbers/", "export/")
Seen = dict[str, Any]


@dataclass(slots=True)
class Outside:
    """A lead's browser and script, looking at one project. ``name`` is the dataset that is being imported."""

    client: Client
    token: str
    session: str
    name: str
    folder: Path
    looks: int = 0

    def seen(self) -> Seen:
        """Everything there is to see, the same as long as nothing more has become visible."""
        self.looks += 1
        with httpx.Client(base_url=self.client.address, cookies={"sessionid": self.session}, timeout=60) as browser:
            return {**self._pages(browser), **self._hidden(browser), **self._api(), **_rows()}

    @property
    def staged(self) -> int:
        """Rows of datasets that are not ready: they are in the database, and nowhere else."""
        return Item.objects.filter(dataset__state=Dataset.State.LOADING).count()

    def _pages(self, browser: httpx.Client) -> Seen:
        found = {page: browser.get(f"/p/{self.client.project}/{page}") for page in PAGES}
        return {f"page {page}": (answer.status_code, self.name in answer.text) for page, answer in found.items()}

    def _hidden(self, browser: httpx.Client) -> Seen:
        """What answers by the number of a dataset that is not ready; there should be nothing."""
        place, api = f"/p/{self.client.project}", f"{self.client.address}/api/v1/projects/{self.client.project}"
        token = {"Authorization": f"Bearer {self.token}"}
        answered = []
        for number in Dataset.objects.filter(state=Dataset.State.LOADING).values_list("pk", flat=True):
            routes = (f"datasets/{number}/", f"datasets/{number}/items/", f"exports/items/?dataset={number}")
            pages = [httpx.get(f"{api}/{route}", headers=token, timeout=60) for route in routes]
            pages.append(browser.get(f"{place}/datasets/{number}/"))
            answered += [str(page.url) for page in pages if page.status_code != 404]
        return {"answered for what is not ready": answered}

    def _api(self) -> Seen:
        datasets = [(each["name"], each["version"], each["items"]) for each in self.client.datasets()]
        campaigns = [each["id"] for each in self.client.campaigns()]
        exported = {f"ratings of campaign {each}": self._lines(each) for each in campaigns}
        return {"api datasets": datasets, "api campaigns": campaigns, **exported}

    def _lines(self, campaign: int) -> int:
        there = self.client.export("ratings", self.folder / "ratings.out.jsonl", format="jsonl", campaign=campaign)
        with there.open("rb") as lines:
            return sum(1 for _line in lines)


def _rows() -> Seen:
    ready = Dataset.objects.ready()
    models = (Annotation, Annotator, Campaign, JudgeRun, Rating, Verdict)
    counted = {f"{model.__name__} rows": model._default_manager.count() for model in models}
    return {"ready datasets": ready.count(), "items of them": Item.objects.filter(dataset__in=ready).count(), **counted}


# --- a moment held still ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def held_up(kind: str, folder: Path) -> Iterator[Callable[[], bool]]:
    """Hold up the next audit entry: the last row of a transaction that makes something visible. Says when it waits.

    SQLite has one lock for everything: there the transaction can't even begin.
    """
    yield from _locked_file(folder / "panelbench.sqlite3") if kind == "sqlite" else _locked_table()


def _locked_file(database: Path) -> Iterator[Callable[[], bool]]:
    mine = sqlite3.connect(database, isolation_level=None)
    mine.execute("BEGIN IMMEDIATE")
    until = time.monotonic() + 2
    yield lambda: time.monotonic() > until
    mine.execute("ROLLBACK")
    mine.close()


def _locked_table() -> Iterator[Callable[[], bool]]:
    table = AuditEntry._meta.db_table

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [table])
            return cursor.fetchone() is not None

    with psycopg.connect(os.environ["DATABASE_URL"]) as mine:
        mine.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield waits
        mine.rollback()


# --- a file on its way in ---------------------------------------------------------------------------------------------


NAME = "Never half seen"
LONGEST = 1800.0  # seconds that any one step may take


@dataclass(slots=True)
class Point:
    """One kill: what was under way, who died, what lay about unseen, what anybody could see, and how it went on."""

    during: str
    far: str
    killed: str
    staged: int
    seen: str
    then: str = ""

    def row(self, number: int) -> str:
        return (
            f"| {number} | {self.during} | {self.far} | {self.killed} | {self.staged:,} | {self.seen} | {self.then} |"
        )


@dataclass(slots=True)
class KillWalk:
    """A file on its way in: a dataset, then ratings of its items."""

    kind: str
    programs: server.Stack
    client: Client
    outside: Outside
    folder: Path
    rubric_version: int
    points: list[Point] = field(default_factory=list)
    before: Seen = field(default_factory=dict)

    # --- the dataset ------------------------------------------------------------------------------------------------
    def dataset(self, size: int) -> int:
        """Bring a dataset in past eight deaths; how many items there are."""
        path = self.folder / "dialogues.jsonl"
        count = import_large.write_dialogues_file(path, size)
        print_progress(f"{path.stat().st_size / 1e6:,.0f} MB, {count:,} dialogues")
        self.before = self.outside.seen()
        key = self._upload_and_die(path)
        file_import = self._open_and_die(key)
        everything = (self.programs.web, self.programs.worker)
        self._die(
            file_import, "the worker checks the file", lambda: self._share(file_import) >= 0.25, self.programs.worker
        )
        self._resume(file_import)
        self._die(
            file_import, "the worker checks the file, again", lambda: self._share(file_import) >= 0.8, *everything
        )
        self._resume(file_import)
        self._until(lambda: state(file_import) != "checking", "the check to end")
        stored = self.client.preview_import(file_import)["report"]["stored"]
        assert stored == count, f"the check promises {stored} of {count}"

        self.client.store_import(file_import)
        self._die(
            file_import, "the worker reads the file to store it", lambda: self._share(file_import) >= 0.2, everything[1]
        )
        self._resume(file_import)
        self._die(file_import, "the first rows are staged", lambda: self.outside.staged > 0, everything[1])
        self._resume_by_the_clock(file_import)
        self._die(file_import, "most rows are staged", lambda: self.outside.staged >= 0.8 * count, *everything)
        self._give_up(file_import)
        self.client.store_import(file_import)
        self._die_publishing(file_import, "the dataset is being made ready", lambda: self.outside.staged > 0)
        self._resume(file_import)
        self._until(lambda: state(file_import) != "storing", "the import to end")
        self._compare(path, count)
        return count

    def _upload_and_die(self, path: Path) -> str:
        begun = self.client.begin_upload(path)
        with self._meanwhile(lambda: self.client.upload(path, key=begun["key"])):
            self._until(lambda: self._received() >= 0.35 * begun["size"], "a third of the upload")
            self._kill(self.programs.web)
            far = f"{self._received() / begun['size']:.0%} received"
            self._note("the file is being uploaded", far, self.programs.web)
        self._until(self._is_whole, "the upload", lambda: self.client.upload(path, key=begun["key"]))
        sha256 = self.client.upload_state(begun["key"])["sha256"]
        with path.open("rb") as file:
            assert sha256 == hashlib.file_digest(file, "sha256").hexdigest(), "the upload is not the file"
        self.points[-1].then = "went on where it ended; SHA-256 as sent"
        return begun["key"]

    def _open_and_die(self, key: str) -> int:
        def opening() -> Any:
            body = {"uploads": [key], "kind": "dataset", "target": {"name": NAME}}
            return self.client.json("POST", self.client.at("imports/"), json=body)

        with held_up(self.kind, self.folder) as waits, self._meanwhile(opening):
            self._until(waits, "the request to wait")
            self._kill(self.programs.web)
        self._note("the upload is made an import", "before its commit", self.programs.web)
        assert not Import.objects.exists(), "half an import is there"
        assert self.client.upload_state(key)["sha256"], "the upload is gone"
        file_import = int(opening()["id"])
        self.points[-1].then = "the upload was there, and was asked for again"
        return file_import

    def _compare(self, path: Path, count: int) -> None:
        """Take the dataset out again, and hold it against the file line by line."""
        (found,) = self.client.datasets()
        assert (found["name"], found["items"]) == (NAME, count), found
        there = self.client.export("items", self.folder / "items.jsonl", dataset=found["id"], format="jsonl")
        same = 0
        with path.open("rb") as sent, there.open("rb") as back:
            for one, other in zip(map(orjson.loads, sent), map(orjson.loads, back), strict=True):
                same += (one["id"], one["turns"]) == (other["id"], other["turns"])
        assert same == count, f"{count - same} items are not what they were"
        self.points[-1].then += f"; {same:,} items exported, equal to the file's"

    # --- ratings ----------------------------------------------------------------------------------------------------
    def ratings(self, size: int, items: int) -> None:
        """Bring ratings in past two deaths."""
        path = self.folder / "ratings.csv"
        count, scores = import_large.write_ratings_file(path, size, items)
        print_progress(f"{path.stat().st_size / 1e6:,.0f} MB, {count:,} ratings, {scores:,} with a score")
        (dataset,) = self.client.datasets()
        campaign = self.client.open_campaign("Round", dataset=dataset["id"], rubric_version=self.rubric_version)["id"]
        key = self.client.upload(path)["key"]
        body = {"uploads": [key], "kind": "ratings", "target": {"campaign": campaign}}
        file_import = int(self.client.json("POST", self.client.at("imports/"), json=body)["id"])
        self._until(lambda: state(file_import) != "checking", "the check to end")
        assert self.client.preview_import(file_import)["report"]["stored"] == scores
        self.before = self.outside.seen()
        self.client.store_import(file_import)
        everything = (self.programs.web, self.programs.worker)
        self._die(file_import, "ratings are written", lambda: self._share(file_import) >= 0.7, *everything)
        self._resume(file_import)
        self._die_publishing(
            file_import, "ratings are written, all but the commit", lambda: self._share(file_import) > 0
        )
        self._resume(file_import)
        self._until(lambda: state(file_import) != "storing", "the import to end")
        after = self.outside.seen()
        there = (after["Rating rows"], after[f"ratings of campaign {campaign}"])
        assert there == (scores, scores), f"{there} ratings instead of {scores}"
        self.points[-1].then += f"; {scores:,} ratings exported, as many as the file has"

    # --- dying ------------------------------------------------------------------------------------------------------
    def _die(self, file_import: int, during: str, now: Callable[[], bool], *doomed: server.ChildProgram) -> None:
        """Kill when it is time, and look around."""
        self._until(now, during)
        self._kill(*doomed)
        self._note(during, f"{self._share(file_import):.0%}", *doomed)

    def _die_publishing(self, file_import: int, during: str, almost: Callable[[], bool]) -> None:
        """Kill the worker inside the transaction that makes all of it visible, before its commit."""
        if self.kind == "sqlite":  # its one writer can't be held up from outside without keeping all others out
            self._die(file_import, during, almost, self.programs.worker)
            return
        self._until(almost, during)
        with held_up(self.kind, self.folder) as waits:
            self._until(waits, "the last transaction to wait")
            self._kill(self.programs.worker)
        self._note(during, "before the commit", self.programs.worker)

    def _kill(self, *doomed: server.ChildProgram) -> None:
        for child in doomed:
            child.kill()

    def _note(self, during: str, far: str, *doomed: server.ChildProgram) -> None:
        """Look from outside, with the web server back and nobody else: is there anything that was not there before?"""
        if self.programs.web in doomed:
            self.programs.web.start()
            self.programs.wait_for_web()
        staged, now = self.outside.staged, self.outside.seen()
        changed = [what for what, was in self.before.items() if now[what] != was]
        assert not changed, f"visible after the kill: {changed}: {[now[what] for what in changed]}"
        killed = " and ".join(child.name for child in doomed)
        self.points.append(Point(during, far, killed, staged, "nothing new"))
        print_progress(
            f"{len(self.points)}. {during}, {far}: {killed} killed; {staged:,} rows staged, nothing to be seen"
        )

    # --- going on ---------------------------------------------------------------------------------------------------
    def _resume(self, file_import: int) -> None:
        """Start what is dead, let the dead holder's time run out, sweep; the import is held again."""
        tried = tries(file_import)
        silent_since(file_import, long_ago())
        self._back_to_work()
        started = time.monotonic()
        self._until(lambda: tries(file_import) > tried, "somebody to take the import up", ask_for_sweep)
        self.points[-1].then = f"taken up by the next sweep, try {tried + 1}"
        print_progress(f"   taken up again {time.monotonic() - started:.1f} s after the worker's start")

    def _resume_by_the_clock(self, file_import: int) -> None:
        """The same in real time: the clock runs, and nobody dates anything back."""
        tried = tries(file_import)
        started = time.monotonic()
        self._back_to_work()
        self.programs.beat.start()
        self._until(lambda: tries(file_import) > tried, "the clock to have the import taken up")
        self.programs.beat.kill()
        waited = time.monotonic() - started
        self.points[-1].then = f"left to the clock: taken up {waited:.0f} s later, try {tried + 1}"
        print_progress(f"   {self.points[-1].then}")

    def _give_up(self, file_import: int) -> None:
        """The third death: the sweep gives the import up, and clears what it had staged."""
        silent_since(file_import, long_ago())
        Dataset.objects.filter(state=Dataset.State.LOADING).update(staged_at=long_ago())
        self._back_to_work()
        self._until(
            lambda: not Item.objects.exists() and state(file_import) == "failed", "the sweep to clear", ask_for_sweep
        )
        assert not Dataset.objects.exists(), "an empty dataset is left"
        sentence = self.client.get_import(file_import)["report"]["sentence"]
        assert "interrupted" in str(sentence), sentence
        self.points[-1].then = "third try: given up and said so; swept, 0 rows left; stored again on request"

    def _back_to_work(self) -> None:
        if not self.programs.worker.is_running:
            self.programs.worker.start()

    # --- how far it is ----------------------------------------------------------------------------------------------
    def _until(self, condition: Callable[[], bool], what: str, meanwhile: Callable[[], object] | None = None) -> None:
        """Wait for a condition, noting memory; ``meanwhile`` is done every few seconds."""
        started = last = time.monotonic()
        while not condition():
            now = time.monotonic()
            if now - started > LONGEST:
                raise TimeoutError(f"waited in vain for {what}")
            if meanwhile is not None and (last == started or now - last > 5):
                last = now
                meanwhile()
            self.programs.weigh()
            time.sleep(0.02)

    def _share(self, file_import: int) -> float:
        lease, done, total = Import.objects.values_list("job__lease", "job__done", "job__total").get(pk=file_import)
        return done / total if lease and total else 0.0

    def _received(self) -> int:
        return int(Upload.objects.values_list("received", flat=True).get())

    def _is_whole(self) -> bool:
        return all(each.received == each.size for each in Upload.objects.all())

    @contextlib.contextmanager
    def _meanwhile(self, call: Callable[[], Any]) -> Iterator[None]:
        """A request that may lose its server."""

        def request() -> None:
            with contextlib.suppress(Unreachable):
                call()

        thread = threading.Thread(target=request)
        thread.start()
        yield
        thread.join()


def state(file_import: int) -> str:
    return str(Import.objects.values_list("state", flat=True).get(pk=file_import))


def tries(file_import: int) -> int:
    return int(Import.objects.values_list("report", flat=True).get(pk=file_import).get("tries", 0))


def silent_since(file_import: int, then: datetime) -> None:
    """As if its holder had not been heard of since."""
    job = Job.objects.filter(pk__in=Import.objects.filter(pk=file_import).values("job"))
    job.filter(lease__isnull=False).update(lease_until=then)
    job.update(due_at=then)


def long_ago() -> datetime:
    return timezone.now() - timedelta(hours=1)


def ask_for_sweep() -> None:
    """What the clock asks for twice a minute."""
    app.send_task("accounts.tasks.sweep_all", expires=30)


def print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
