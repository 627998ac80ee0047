"""A siege: people submit, a judge runs under a money cap and a lead downloads, while everything is killed in turn.

``python -m bench.siege`` (PostgreSQL and Redis with 200 annotators, then SQLite with 32; blows for at most four minutes
each; it ends by itself) writes results/siege.md. ``--database`` runs one and only prints. `panelbench up` runs on a
small file system of its own. In an order that ``--seed`` draws, PostgreSQL, Redis, the web server, its processes, the
worker and a third of the clients die by SIGKILL, the disk is filled, connections send and read as slowly as they can.
What was acknowledged is then looked for, and what the provider counted is held against the cap.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.clients import CRITERIA
from bench.server import Instance, Postgresql, Redis, filled, small_disk
from bench.siege_clients import (
    PASSWORD,
    AnnotatorRecord,
    Attack,
    Browser,
    ClientProcess,
    SentRequest,
    Visitor,
    read_records,
    start_threads,
)
from panelbench.instance import WEB_PROCESSES
from panelbench.pulses import close_connections
from tests.provider_server import RunningProvider, running_provider

ANNOTATORS = {"postgresql": 200, "sqlite": 32}
CLIENTS = {"postgresql": 10, "sqlite": 8}  # processes that the annotators live in
LONGEST = 240.0  # seconds of blows; those that are left then are named
CLIENTS_BACK = (1.0, 4.0)  # seconds until killed clients are started again
PAUSE = {"postgresql": (5.0, 15.0), "sqlite": (1.0, 3.0)}  # seconds that a person thinks about an item
ITEMS, OVERLAP = 2000, 3
JUDGED = 300  # items, each with five calls
PRICE = (Decimal("2.00"), Decimal("8.00"))  # USD per million tokens in and out
CAP = Decimal("0.40")
PER_MINUTE, LATENCY = 300, 1.5
RESULTS = Path(__file__).parent / "results" / "siege.md"
JUDGE_ENDS_WITHIN = 150.0  # seconds after the last blow
SLOW = "25 slow bodies, 10 slow heads, 6 unread downloads for 20 s"
BACK_WITHIN = 90.0  # seconds until everything must answer again


@dataclass(slots=True)
class Blow:
    """Something that was done to the instance; ``back`` is when everything answered again."""

    what: str
    began: float
    back: float = 0.0
    alive: bool = False  # nothing died: every page must be answered all the time


@dataclass(slots=True)
class Siege:
    """One run on one database."""

    kind: str
    folder: Path
    is_disk: bool
    instance: Instance
    database: Postgresql | None
    broker: Redis | None
    blows: list[Blow] = field(default_factory=list)
    clients: list[ClientProcess] = field(default_factory=list)
    annotators: list[AnnotatorRecord] = field(default_factory=list)  # read from the clients' files when all is over
    not_struck: list[str] = field(default_factory=list)
    visitors: list[Visitor] = field(default_factory=list)
    lead: Visitor | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = 0.0
    run: int = 0  # the judge's
    random: random.Random = field(default_factory=random.Random)

    # --- blows ------------------------------------------------------------------------------------------------------
    def strike(self) -> None:
        """Every blow, those that kill people's work twice, in a drawn order, each with some quiet before it."""
        killing: list[tuple[str, Callable[[], None]]] = [
            ("SIGKILL of one web process", lambda: self.instance.kill("web", most=1)),
            ("SIGKILL of every web process", lambda: self.instance.kill("web")),
            ("SIGKILL of a third of the clients", self._kill_clients),
            ("SIGKILL of everything at once", self._kill_everything),
        ]
        other: list[tuple[str, Callable[[], None]]] = [("SIGKILL of the worker", lambda: self.instance.kill("worker"))]
        if self.database:
            killing.append(("SIGKILL of PostgreSQL, back after 3 s", self._kill_database))
            other.append(("PostgreSQL restarted in order", self._restart_database))
        if self.broker:
            other.append(("SIGKILL of Redis, back after 3 s", self._kill_broker))
        if self.is_disk:
            other.append(("a full disk for 8 s", self._fill_disk))
        blows = [*killing, *killing, *other, (SLOW, self._attack)]
        self.random.shuffle(blows)
        self._quiet(12)
        for what, strike in blows:
            if time.monotonic() - self.began > LONGEST:
                self.not_struck.append(what)
                continue
            self._blow(what, strike)
            self._quiet(self.random.uniform(3, 9))
        self._quiet(10)

    def _kill_clients(self) -> None:
        killed = self.random.sample(self.clients, round(len(self.clients) / 3))
        for client in killed:
            client.kill()
        time.sleep(self.random.uniform(*CLIENTS_BACK))
        for client in killed:
            client.start()

    def _quiet(self, seconds: float) -> None:
        time.sleep(seconds)

    def _blow(self, what: str, strike: Callable[[], None]) -> None:
        blow = Blow(what, time.monotonic(), alive=what == SLOW)
        self.blows.append(blow)
        _print_progress(f"{blow.began - self.began:5.0f} s  {what}")
        strike()
        self._until_back()
        blow.back = time.monotonic()
        _print_progress(f"         all answered again after {blow.back - blow.began:.1f} s")

    def _until_back(self) -> None:
        """Wait until both web processes run and the site says that database and broker are well."""
        deadline = time.monotonic() + BACK_WITHIN
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):
                state = health_answer(self.instance.port)
                fine = all(state[part] == "ok" for part in ("database", "migrations", "broker"))
                if fine and len(self.instance.programs("web")) == WEB_PROCESSES:
                    return
            time.sleep(0.2)
        _print_progress(f"         NOT BACK within {BACK_WITHIN:.0f} s")

    def _kill_database(self) -> None:
        assert self.database
        self.database.kill()
        time.sleep(3)
        self.database.start()

    def _restart_database(self) -> None:
        assert self.database
        self.database.stop()
        self.database.start()

    def _kill_broker(self) -> None:
        assert self.broker
        self.broker.kill()
        time.sleep(3)
        self.broker.start()

    def _fill_disk(self) -> None:
        with filled(self.folder):
            time.sleep(8)
        if self.database:
            self.database.start()

    def _kill_everything(self) -> None:
        self.instance.kill_everything()
        if self.database:
            self.database.kill()
        if self.broker:
            self.broker.kill()
        time.sleep(2)
        if self.database:
            self.database.start()
        if self.broker:
            self.broker.start()
        self.instance.start()

    def _attack(self) -> None:
        assert self.lead
        attack = Attack(self.instance.port, session=self.lead.browser.session, download=self.lead.paths[0])
        time.sleep(20)
        attack.end()

    # --- what came of it --------------------------------------------------------------------------------------------
    def requests(self) -> list[tuple[str, SentRequest]]:
        """Every request with who sent it."""
        found = [("annotator", each) for person in self.annotators for each in person.requests]
        found += [("visitor", each) for visitor in self.visitors for each in visitor.browser.requests]
        return found + ([("lead", each) for each in self.lead.browser.requests] if self.lead else [])


def health_answer(port: int) -> dict[str, str]:
    """What /healthz says, whether all is well or not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        return dict(json.load(error))


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# --- the scene ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SiegeScene:
    """What is worked on, by primary key, and who may sign in."""

    campaign: int
    dataset: int
    rubric_version: int
    duty: int
    run: int
    criteria: list[str]
    emails: list[str]


def make_siege_scene(annotators: int) -> SiegeScene:
    """A project of two thousand items on three annotators each, and a judge's run under a cap."""
    from django.contrib.auth.hashers import make_password

    from accounts.models import User
    from bench import scene
    from judging import judges, runs, tasks
    from tests import make

    made = scene.make_scene(items=ITEMS, annotators=annotators)
    User.objects.update(password=make_password(PASSWORD))
    duty = made.duty("Everybody", annotators, OVERLAP)
    version = made.campaign.rubric_version
    judge = judges.declare(
        project=made.project,
        name="Priced",
        provider="simulated",
        model="sim-steady",
        parameters={"max_tokens": 200},
        variant={"grouping": "single"},
    )
    dataset = make.dataset(made.project, JUDGED, name="Judged")
    run = runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=version, budget=CAP)
    tasks.enqueue_run(run.pk)
    return SiegeScene(
        campaign=made.campaign.pk,
        dataset=made.campaign.dataset_id,
        rubric_version=version.pk,
        duty=duty.pk,
        run=run.pk,
        criteria=list(CRITERIA),
        emails=["lead@panelbench.test", *(user.email for user, _annotator, _session in made.people)],
    )


def downloads(scene: SiegeScene) -> list[str]:
    """The address of every export in every format."""
    from analytics.exporting.exports import FORMATS, SUBJECTS

    subjects = {"dataset": scene.dataset, "rubric": scene.rubric_version, "campaign": scene.campaign}
    paths = []
    for what, formats in FORMATS.items():
        about = f"&{SUBJECTS[what]}={subjects[SUBJECTS[what]]}" if SUBJECTS[what] in subjects else ""
        paths += [f"/p/bench/export/file/?what={what}&format={kind}{about}" for kind in formats]
    return paths


def pages(scene: SiegeScene) -> list[str]:
    """Pages that a lead looks at."""
    return [
        "/p/bench/",
        f"/p/bench/campaigns/{scene.campaign}/",
        f"/p/bench/runs/{scene.run}/live/",
        "/p/bench/runs/",
        "/account/login/",
        "/p/bench/datasets/",
        "/p/bench/audit/",
    ]


# --- one run --------------------------------------------------------------------------------------------------------
def _measure(kind: str, keep: Path | None, seed: int) -> str:
    """Besiege one kind of database; what came of it, as Markdown."""
    with contextlib.ExitStack() as started:
        folder, is_disk = started.enter_context(small_disk())
        provider = started.enter_context(running_provider(latency=LATENCY))
        log = (keep or Path(os.environ.get("TMPDIR", "/tmp"))) / f"siege-{kind}.log"
        log.unlink(missing_ok=True)
        siege = _instance(started, kind, folder, is_disk, log, provider)
        with _django():
            scene = make_siege_scene(ANNOTATORS[kind])
            close_connections()  # they would not outlive their server
            siege.instance.start()
            started.callback(siege.instance.stop)
            siege._until_back()
            siege.run, siege.random = scene.run, random.Random(seed)
            files = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="siege-clients-")))
            _people(siege, scene, files)
            _besiege(siege)
            return _summary(siege, scene, provider)


def _instance(
    started: contextlib.ExitStack, kind: str, folder: Path, is_disk: bool, log: Path, provider: RunningProvider
) -> Siege:
    prices = {"sim-steady": [str(price) for price in PRICE]}
    declared = {"name": "simulated", "base_url": provider.base_url, "simulated": True, "prices": prices}
    declared["requests_per_minute"] = PER_MINUTE
    os.environ |= {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "DEBUG": "off",
        "PANELBENCH_SECURE": "off",
        "PANELBENCH_DATA_DIR": str(folder / "instance"),
        "PANELBENCH_PROVIDERS": json.dumps([declared]),
        "DJANGO_SETTINGS_MODULE": "panelbench.settings",
    }
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    database = broker = None
    if kind == "postgresql":
        database, broker = Postgresql(folder / "postgresql", log), Redis(folder)
        database.start()
        started.callback(database.stop)
        broker.start()
        started.callback(broker.kill)
        os.environ |= {"DATABASE_URL": database.url, "REDIS_URL": broker.url}
    return Siege(kind, folder, is_disk, Instance(log), database, broker)


@contextlib.contextmanager
def _django() -> Iterator[None]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    yield


def _people(siege: Siege, scene: SiegeScene, files: Path) -> None:
    """Everybody signs in, a few at a time; annotators then go into their clients' files."""
    port, (lead, *emails) = siege.instance.port, scene.emails
    annotators = [Browser(port, f"127.0.1.{number + 1}") for number in range(len(emails))]
    siege.lead = Visitor(Browser(port, "127.0.2.1"), downloads(scene), 0.5, siege.stop)
    siege.visitors = [Visitor(Browser(port, f"127.0.2.{n}"), pages(scene), 0.4, siege.stop) for n in (2, 3)]
    waiting = list(zip(annotators, emails, strict=True))
    waiting += [(visitor.browser, lead) for visitor in (siege.lead, *siege.visitors)]
    _sign_in(waiting)
    people = [(number, browser.address, browser.session) for number, browser in enumerate(annotators)]
    for browser in annotators:
        browser.hang_up()
    siege.clients = [
        ClientProcess(files / f"client-{place}.jsonl", people[place :: CLIENTS[siege.kind]])
        for place in range(CLIENTS[siege.kind])
    ]
    for client in siege.clients:
        client.prepare(port=port, duty=scene.duty, criteria=scene.criteria, pause=PAUSE[siege.kind])


def _sign_in(waiting: list[tuple[Browser, str]]) -> None:
    people = len(waiting)
    lock = threading.Lock()
    failures: list[BaseException] = []

    def sign_in() -> None:
        while True:
            with lock:
                if not waiting or failures:
                    return
                browser, email = waiting.pop()
            try:
                browser.sign_in(email)
            except Exception as failure:  # noqa: BLE001 raised again below, in the thread that waits
                failures.append(failure)

    began = time.monotonic()
    for thread in start_threads([sign_in] * 4):
        thread.join()
    if failures:
        raise failures[0]
    _print_progress(f"{people} people signed in within {time.monotonic() - began:.0f} s")


def _besiege(siege: Siege) -> None:
    assert siege.lead
    siege.began = time.monotonic()
    for client in siege.clients:
        client.start()
    others = start_threads([visitor.work for visitor in (siege.lead, *siege.visitors)])
    try:
        siege.strike()
    finally:
        siege.stop.set()
        for client in siege.clients:
            client.end()
        for client in siege.clients:
            client.wait(90)
    for thread in others:
        thread.join(60)
    siege.annotators = [record for client in siege.clients for record in read_records(client.path).values()]
    _let_the_judge_end(siege.run)
    _print_progress(f"{time.monotonic() - siege.began:5.0f} s  over")


def _let_the_judge_end(run: int) -> None:
    """Wait until the cap stops the run, or nothing is left to ask; calls of killed workers first have to be freed."""
    from judging import runs
    from judging.models import JudgeRun

    deadline = time.monotonic() + JUDGE_ENDS_WITHIN
    while time.monotonic() < deadline:
        found = JudgeRun.objects.get(pk=run)
        if found.state == JudgeRun.State.PAUSED or runs.run_progress(found).finished:
            return
        time.sleep(1)


# --- counting -------------------------------------------------------------------------------------------------------
def _summary(siege: Siege, scene: SiegeScene, provider: RunningProvider) -> str:
    lines = [
        f"## {siege.kind}: {ANNOTATORS[siege.kind]} annotators in {CLIENTS[siege.kind]} client processes",
        "",
        *_blow_table(siege),
        "",
    ]
    lines += [
        f"- {line}" if line[0] != " " else f"  - {line.strip()}"
        for line in (*_submissions(siege, scene), *_answers(siege), *_money(scene, provider))
    ]
    if not siege.is_disk:
        lines.append("- NOT TRIED: a full disk (no file system could be mounted; run as root)")
    if siege.not_struck:
        lines.append(f"- not struck within {LONGEST:.0f} s: {', '.join(siege.not_struck)}")
    return "\n".join(lines)


def _submissions(siege: Siege, scene: SiegeScene) -> list[str]:
    from django.db.models import Count, F

    from annotation.models import Annotation, Assignment, EvidenceSpan, Rating

    acknowledged = {key: scores for person in siege.annotators for key, (_at, scores) in person.acknowledged.items()}
    stored: dict[str, dict[str, float]] = {}
    rows = Rating.objects.filter(annotation__campaign=scene.campaign, annotation__superseded_at=None)
    for key, name, score in rows.values_list("annotation__key", "criterion__key", "score"):
        stored.setdefault(str(key), {})[name] = score
    lost = [key for key, scores in acknowledged.items() if stored.get(key) != scores]
    current = Annotation.objects.filter(campaign=scene.campaign, superseded_at=None)
    doubled = sum(
        current.values(*fields).annotate(count=Count("pk")).filter(count__gt=1).count()
        for fields in (("assignment",), ("key",), ("item", "annotator"))
    )
    over = current.values("item").annotate(count=Count("pk")).filter(count__gt=OVERLAP).count()
    slots = Assignment.objects.filter(duty=scene.duty)
    over += slots.values("item").annotate(count=Count("pk")).filter(count__gt=OVERLAP).count()
    torn = slots.filter(state="submitted").exclude(pk__in=current.values("assignment")).count()
    torn += current.exclude(assignment__state="submitted").count()
    unacknowledged = sum(len(person.not_acknowledged) for person in siege.annotators)
    refused = sum(person.taken_away for person in siege.annotators)
    changed = sum(person.changed_answer for person in siege.annotators)
    assert current.filter(annotator=F("annotator")).count() == len(stored), "annotations without ratings"
    silent = len(set(stored) - set(acknowledged))
    drafts = {key: scores for person in siege.annotators for key, scores in person.drafts.items()}
    changed += sum(scores != drafts[key] for key, scores in stored.items() if key not in acknowledged)
    marked = {key for person in siege.annotators for key in person.marked}
    spans = Counter(map(str, EvidenceSpan.objects.values_list("rating__annotation__key", flat=True)))
    wrong = sum(spans[key] != (key in marked) for key in stored)
    killed, resent = sum(client.kills for client in siege.clients), sum(person.resent for person in siege.annotators)
    locked = sum(person.locked for person in siege.annotators)
    locked += sum(visitor.browser.locked for visitor in siege.visitors)
    return [
        f"acknowledged submissions: {len(acknowledged)}; lost or changed: **{len(lost)}**; doubled: **{doubled}**",
        f"over-assigned items: **{over}**; slots and annotations that disagree: **{torn}**",
        f"stored without an acknowledgement that arrived: {silent}; never acknowledged: {unacknowledged}",
        f"submissions refused: {refused}; repeated, or of a killed client, and stored otherwise: {changed}",
        f"annotations without the marked text that was sent, or with another: **{wrong}** of {len(stored)}",
        f"annotators whose client died by SIGKILL: {killed}; submissions that clients then sent again: {resent}",
        f"answers that showed a locked database: **{locked}**",
    ]


def _answers(siege: Siege) -> list[str]:
    requests = siege.requests()
    quiet = [(who, each) for who, each in requests if not _disturbed(siege, each)]
    failed = [(who, each) for who, each in quiet if each.failed]
    stuck = [(who, each) for who, each in quiet if each.answered - each.sent > 20]
    lines = [
        f"requests: {len(requests)}, of them {len(quiet)} while nothing was dead",
        f"of these failed (5xx or no answer): **{len(failed)}**; answered after more than 20 s: **{len(stuck)}**",
    ]
    alike = Counter((who, each.plain, each.status, each.note) for who, each in failed)
    for (who, what, status, note), count in alike.most_common(8):
        at = ", ".join(f"{each.sent - siege.began:.0f}" for _who, each in failed if each.plain == what)
        lines.append(f"  failed while nothing was dead: {count} x {who} {what}: {status} {note} (at {at} s)")
    assert siege.lead
    downloads = [each for each in siege.lead.browser.requests if each.what.startswith("GET ")]
    done = Counter(each.status for each in downloads)
    lines.append(f"downloads by the lead: {dict(done)} (status: count), {siege.lead.downloaded / 1e6:.1f} MB")
    for each in downloads:
        if each.status >= 500:
            blow = next((b.what for b in siege.blows if each.sent < b.back and each.answered > b.began), "quiet")
            lines.append(f"  {each.status} at {each.sent - siege.began:.0f} s: {each.what.partition('?')[2]} ({blow})")
    refused = sorted({each.what.partition("?")[2] for each in downloads if each.status == 302})
    lines += [f"  refused with a sentence: {what}" for what in refused]
    return lines


def _disturbed(siege: Siege, request: SentRequest) -> bool:
    """Whether something was dead at any moment of the request."""
    return any(request.sent < blow.back and request.answered > blow.began for blow in siege.blows if not blow.alive)


def _blow_table(siege: Siege) -> list[str]:
    requests = siege.requests()
    head = ("at, s", "what", "answered again after, s", "requests meanwhile", "failed (5xx or none)", "slowest, s")
    rows = [f"| {' | '.join(head)} | acknowledged until the next |", "|---|---|---|---|---|---|---|"]
    marks = [Blow("quiet", siege.began, siege.began), *siege.blows]
    ends = [*(blow.began for blow in siege.blows), time.monotonic()]
    acknowledged = [at for person in siege.annotators for at, _scores in person.acknowledged.values()]
    for blow, end in zip(marks, ends, strict=True):
        until = blow.back if blow is not marks[0] else end
        meanwhile = [each for _who, each in requests if each.sent < until and each.answered > blow.began]
        failed = sum(each.failed for each in meanwhile)
        share = f"{failed} ({failed / len(meanwhile):.0%})" if meanwhile else "0"
        slowest = max((each.answered - each.sent for each in meanwhile), default=0.0)
        done = sum(blow.began <= at < end for at in acknowledged)
        after = f"{blow.back - blow.began:.1f}" if blow is not marks[0] and not blow.alive else "-"
        rows.append(
            f"| {blow.began - siege.began:.0f} | {blow.what} | {after} | {len(meanwhile)} | {share} | {slowest:.1f} "
            f"| {done} |"
        )
    return rows


def _money(scene: SiegeScene, provider: RunningProvider) -> list[str]:
    from judging import runs
    from judging.models import Attempt, JudgeRun

    run = JudgeRun.objects.get(pk=scene.run)
    counts = provider.control()
    spent = (counts["tokens_in"] * PRICE[0] + counts["tokens_out"] * PRICE[1]) / 1_000_000
    progress = runs.run_progress(run)
    replied = Attempt.objects.filter(call__run=run, outcome=Attempt.Outcome.REPLIED)
    twice = replied.values("call").annotate(count=_count()).filter(count__gt=1).count()
    kept = "kept" if spent <= CAP else "**BROKEN**"
    calls = f"{progress.settled} of {progress.planned} calls settled, {progress.failed} failed"
    return [
        f"the judge's cap of {CAP} USD is {kept}: {spent:.6f} by the provider's own count",
        f"{counts['requests']} requests; by Panelbench {progress.cost or 0:.6f} USD for {progress.attempts} attempts",
        f"the run: {calls}, {progress.in_flight} in flight, {twice} with two stored replies; {run.state} {run.reason}",
    ]


def _count() -> Any:
    from django.db.models import Count

    return Count("pk")


# --- the command ----------------------------------------------------------------------------------------------------
def _main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=tuple(ANNOTATORS), help="only this one, printed and not written")
    parser.add_argument("--seed", type=int, default=13, help="of the order of the blows")
    parser.add_argument("--logs", type=Path, help="a folder for the programs' logs")
    asked = parser.parse_args(arguments)
    if asked.logs:
        asked.logs.mkdir(parents=True, exist_ok=True)
    if asked.database:
        print(_measure(asked.database, asked.logs, asked.seed))
        return
    tables = [_alone(kind, asked.logs, asked.seed) for kind in ANNOTATORS]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    load = f"{os.cpu_count()} cores under a load of {os.getloadavg()[1]:.1f}"
    head = f"# A siege\n\n`python -m bench.siege` at commit {commit.stdout.strip()}, {load}."
    RESULTS.write_text("\n\n".join([head, *tables]) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def _alone(kind: str, logs: Path | None, seed: int) -> str:
    """Each in a process of its own: Django knows one database in its life."""
    command = [sys.executable, "-m", "bench.siege", "--database", kind, "--seed", str(seed)]
    command += ["--logs", str(logs)] if logs else []
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    _main()
