"""Numbers of a large campaign: ``python -m bench.large_numbers`` writes results/large_numbers.md.

PostgreSQL; 11,500 answers of 7 generators to 35 kinds of tasks, 68 criteria of which 16 fit a task, 490,000 ratings by
50 people, 180,000 verdicts of one judge; once. Wall and processor seconds stand side by side, as the machine may be
busy; memory is what the process held at most. Then the pages of this campaign, their figures stored, through the web
server as `panelbench up` starts it: one client on a kept connection, then eight without a pause. With
``PANELBENCH_SHARED`` also HANNA's stories with 20 judge columns. ``--at FOLDER`` keeps the database there for the next
run, which then only measures one submission and pages; ``--parts`` measures what one request of each page costs, in
this process; ``--pages`` names the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from threading import Barrier
from time import perf_counter, process_time
from typing import Any

from bench import server

ANSWERS, GENERATORS, TASKS, CRITERIA, FITTING, PEOPLE = 11_500, 7, 35, 68, 16, 50
RATINGS, VERDICTS = 490_000, 180_000
RESULTS = Path(__file__).parent / "results" / "large_numbers.md"
HEAD = "| what | wall, s | processor, s | most memory, MB | of at most | note |\n|---|---|---|---|---|---|"


def measure_large_numbers() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the results")
    parser.add_argument("--at", type=Path, help="the folder of a database that is kept")
    parser.add_argument("--parts", action="store_true", help="what one request costs")
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=PAGES, help="only these pages")
    parser.add_argument("--only-pages", action="store_true", help="no submission before the pages of a kept database")
    options = parser.parse_args()
    with server.database("postgresql", options.at):
        from annotation.models import Campaign

        known = Campaign.objects.select_related("project", "dataset", "rubric_version").first()
        campaign = known or _campaign()
        figures = (_after_submission(campaign),) if known else (_hanna(), _figures(campaign))
        measured = () if options.only_pages else figures
        rows = [_shown(row) for part in measured for row in part]
        _pages_of = _parts if options.parts else _pages
        pages = [_shown(row) for row in _pages_of(campaign, options.pages)]
    if options.keep:
        parts = ["# Numbers of a large campaign", "", HEAD, *rows, "", "## Pages", "", PAGE_HEAD, *pages, ""]
        RESULTS.write_text("\n".join(parts))


def _shown(row: str) -> str:
    print(row, flush=True)
    return row


# --- the campaign ----------------------------------------------------------------------------------------------------
def _campaign() -> Any:
    from django.db import connection, transaction

    from accounts import people
    from accounts.models import User
    from annotation import campaigns, rubrics
    from annotation.imports import storage
    from annotation.models import Annotator
    from annotation.readers.rubric import parse_rubric

    lead = User.objects.create_user("lead@panelbench.test", name="Lead")
    project = people.create_project(name="Bench", slug="bench", founder=lead)
    dataset = storage.store(project=project, name="Answers", items=map(_answer, range(ANSWERS)))
    scale = {"level": "ordinal", "points": [0, 1, 2]}
    anchors = {str(point): {"en": {"text": f"Anchor {point}"}} for point in range(3)}
    criteria = [
        {"key": f"c{n:02}", "name": {"en": f"Criterion {n}"}, "scale": scale, "anchors": anchors}
        for n in range(CRITERIA)
    ]
    document = {"key": "bench", "name": {"en": "Bench"}, "source_language": "en", "criteria": criteria}
    import orjson

    parsed = parse_rubric("rubric.json", orjson.dumps(document)).document
    version = rubrics.publish(version=rubrics.draft(project=project, document=parsed or {}))
    campaign = campaigns.open_campaign(project=project, name="Round", dataset=dataset, rubric_version=version)
    Annotator.objects.bulk_create(Annotator(project=project, pseudonym=f"r{n:02}") for n in range(PEOPLE))
    with transaction.atomic():
        _rate(campaign)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return campaign


def _answer(number: int) -> Any:
    from annotation.readers.items import ItemRow

    attributes = {"task_type": f"task {number % TASKS}", "style": f"style {number % 5}", "difficulty": number % 3}
    turns = [{"speaker": "user", "text": f"Question {number // GENERATORS}"}]
    turns.append({"speaker": "assistant", "text": f"Answer {number}"})
    scenario = f"q{number // GENERATORS}"
    return ItemRow(
        f"a{number:05}", "ru", f"model {number % GENERATORS}", scenario, "", turns, {}, attributes, "", number + 1
    )


def _rate(campaign: Any) -> None:
    """Two or three people rate each answer on the criteria of its task; one judge does, too."""
    from django.utils import timezone

    from annotation import bulk
    from annotation.models import Annotation, Annotator, Criterion, Import, Rating
    from judging.models import Judge, JudgeRun, Verdict

    rng, now = random.Random(1), timezone.now()
    items = list(campaign.dataset.items.order_by("ordinal").values_list("pk", flat=True))
    people = list(Annotator.objects.values_list("pk", flat=True))
    criteria = list(Criterion.objects.order_by("position").values_list("pk", flat=True))
    opened = Import.objects.create(project=campaign.project, kind=Import.Kind.RATINGS)
    fields = ("campaign_id", "item_id", "annotator_id", "file_import_id", "revision", "seconds", "submitted_at")
    panels = [rng.sample(people, 3 if rng.random() < 0.663 else 2) for _item in items]
    bulk.insert(
        Annotation,
        fields,
        [
            (campaign.pk, item, person, opened.pk, 1, 31.5, now)
            for item, panel in zip(items, panels, strict=True)
            for person in panel
        ],
    )
    place = {item: number for number, item in enumerate(items)}
    quality = [rng.gauss(1.1, 0.6) for _item in items]

    def fitting(item: int) -> Iterator[int]:
        return (criteria[(place[item] % TASKS * 7 + step * 5) % CRITERIA] for step in range(FITTING))

    def score(item: int) -> float:
        return float(min(2, max(0, round(quality[place[item]] + rng.gauss(0, 0.5)))))

    stored = Annotation.objects.order_by("pk").values_list("pk", "item")
    rows = [(pk, criterion, "scored", score(item), "") for pk, item in stored for criterion in fitting(item)]
    bulk.insert(Rating, ("annotation_id", "criterion_id", "status", "score", "rationale"), rows[:RATINGS])
    about = {"project": campaign.project, "dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    judge = Judge.objects.create(project=campaign.project, name="Judge", digest="j", model="m")
    run = JudgeRun.objects.create(judge=judge, **about)
    verdicts = [(run.pk, item, criterion, 1, "ok", score(item)) for item in items for criterion in fitting(item)]
    constants = (True, False, "", "")
    names = ("run_id", "item_id", "criterion_id", "repeat", "status", "score")
    names += ("applicable", "fractional", "coerced", "rationale")
    bulk.insert(Verdict, names, [(*row, *constants) for row in verdicts[:VERDICTS]])


# --- figures ---------------------------------------------------------------------------------------------------------
def _figures(campaign: Any) -> Iterator[str]:
    from analytics.answers import snapshots
    from analytics.ratings import ratings_tables
    from annotation.models import Rating

    counted = f"{Rating.objects.count():,} ratings"
    _, *raw = _measured(lambda: _copied(campaign))
    yield _row("raw COPY of the same columns into a DataFrame", raw, "", counted)
    _, *loaded = _measured(lambda: ratings_tables.load(campaign=campaign))
    yield _row("the ratings table as a DataFrame", loaded, f"{1.5 * raw[0]:.1f} s", f"{loaded[0] / raw[0]:.1f} x raw")
    content, *cold = _measured(lambda: snapshots.snapshot(campaign=campaign).content)
    yield _row("default cells, cold", cold, "20 s, 1,500 MB", f"{len(content['estimates']):,} estimates")
    yield from _after_submission(campaign)


def _after_submission(campaign: Any) -> Iterator[str]:
    """Figures of the whole campaign again, when one person more has rated one item."""
    from analytics.answers import snapshots
    from annotation.models import Annotation, Criterion, Rating

    snapshots.snapshot(campaign=campaign)
    first = Annotation.objects.order_by("pk").first()
    assert first is not None
    about = {"campaign": campaign, "item": first.item, "file_import": first.file_import}
    one = Annotation.objects.create(annotator=_newcomer(first), seconds=20, revision=1, **about)
    keys = Rating.objects.filter(annotation=first).values_list("criterion", flat=True)
    criteria = Criterion.objects.filter(pk__in=keys)
    Rating.objects.bulk_create(
        Rating(annotation=one, criterion=criterion, status="scored", score=1) for criterion in criteria
    )
    _, *again = _measured(lambda: snapshots.snapshot(campaign=campaign))
    yield _row("after one submission", again, "2 s", f"{len(criteria)} of {CRITERIA} criteria touched")


def _newcomer(annotation: Any) -> Any:
    """Somebody who has not rated this item."""
    from annotation.models import Annotation, Annotator

    here = Annotation.objects.filter(item=annotation.item).values("annotator")
    return Annotator.objects.exclude(pk__in=here).first()


def _copied(campaign: Any) -> Any:
    import pandas as pd
    from django.db import connection

    from bench.export import RAW

    statement = RAW.format(campaign=campaign.pk)
    verdicts = """SELECT i.external_id, i.language, i.generator, i.scenario, c.key, v.run_id, v.repeat, v.status,
        v.score, v.applicable FROM judging_verdict v JOIN annotation_item i ON i.id = v.item_id
        JOIN annotation_criterion c ON c.id = v.criterion_id ORDER BY i.ordinal, c.position"""
    frames = []
    for each in (statement, verdicts):
        content = io.BytesIO()
        with connection.cursor() as cursor, cursor.cursor.copy(f"COPY ({each}) TO STDOUT (FORMAT csv)") as copy:
            content.writelines(copy)
        content.seek(0)
        frames.append(pd.read_csv(content, header=None))
    return frames


def _hanna() -> Iterator[str]:
    if not (shared := os.environ.get("PANELBENCH_SHARED")):
        return
    import pandas as pd

    from analytics.answers import numbers_content
    from analytics.questions.question import Settings
    from analytics.stats.core.scales import scale_of
    from annotation.writers.coded_rows import CodedColumn, CodedRows
    from annotation.writers.tables import Column, Table
    from bench.long_form import hanna_stories

    frame = hanna_stories(Path(shared) / "data/hanna/hanna_metric_scores_llm.csv")
    people = frame[~frame["rater_kind"].eq("judge")]
    judges = [str(name) for name in frame.loc[frame["rater_kind"].eq("judge"), "rater"].unique()]
    parts = [people]
    for number in range(20):
        own = frame[frame["rater"].eq(judges[number % len(judges)])]
        parts.append(own.assign(rater=f"judge {number:02}"))
    wide = pd.concat(parts, ignore_index=True)
    wide = wide.assign(language=wide.get("language", "en"), missing_reason=None, applicable=True)
    scales = {"*": scale_of(range(1, 6))}
    rows = CodedRows([CodedColumn(*_factorized(wide[name])) for name in wide])
    table = Table("HANNA", tuple(map(Column, wide.columns)), rows)
    content, *taken = _measured(lambda: numbers_content.measured_content(table, Settings(), scales=scales))
    yield _row(
        "HANNA with 20 judge columns", taken, "8 s", f"{len(wide):,} rows, {len(content['estimates']):,} estimates"
    )


def _factorized(column: Any) -> tuple[Any, list[Any]]:
    """The codes and the values of a column; nothing is None."""
    import pandas as pd

    codes, values = pd.factorize(column)
    return codes % (len(values) + 1), [*values.tolist(), None]


def _measured(job: Callable[[], Any]) -> tuple[Any, float, float, float]:
    """What a job gives; its wall and processor seconds, and the most megabytes that the process held."""
    Path("/proc/self/clear_refs").write_text("5")
    before, started = _processor(), perf_counter()
    result = job()
    taken = perf_counter() - started, _processor() - before
    lines = Path("/proc/self/status").read_text().splitlines()
    return result, *taken, next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _processor() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def _row(what: str, taken: list[float], most: str, note: str) -> str:
    wall, processor, memory = taken
    return f"| {what} | {wall:.2f} | {processor:.2f} | {memory:,.0f} | {most} | {note} |"


# --- pages -----------------------------------------------------------------------------------------------------------
PAGE_HEAD = (
    "| page | alone p50, ms | alone p95, ms | 8 clients p95, ms | of at most | web processor a request, ms "
    "| PostgreSQL's, ms | compressed, kB | of at most | plain, kB |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
PAGES = (
    "",
    *(
        f"numbers/{{0}}/{page}"
        for page in (
            "",
            "study/",
            "explore/",
            "agreement/",
            "annotators/",
            "work/",
            "raters/",
            "adjudication/",
            "items/",
            "judges/",
            "calibration/",
            "comparison/",
            "audits/",
            "results/",
            "workflow/",
            "planner/",
            "waves/",
            "report/",
            "all/",
        )
    ),
    "judges/?campaign={0}",
    "campaigns/{0}/",
)
CLIENTS, EACH, MOST_SECONDS = 8, 40, 30.0


def _pages(campaign: Any, pages: Sequence[str]) -> Iterator[str]:
    """Every page with its figures stored, asked for by one client, then by several at once without a pause."""
    from accounts.models import User
    from bench.scene import session_key

    lead = User.objects.get()
    session = session_key(lead)
    postmaster = _postmaster()
    with server.serving() as port:
        web_process = server.descendants(os.getpid())[0]
        for page in pages:
            path = f"/p/{campaign.project.slug}/{page.format(campaign.pk)}"
            _compute_all(port, session, path)
            alone, size, packed = _asked(port, session, path, EACH)
            start = Barrier(CLIENTS)
            before = _ticks(web_process), _ticks(postmaster)
            with ThreadPoolExecutor(CLIENTS) as pool:
                every = list(pool.map(lambda _client: _asked(port, session, path, EACH, start)[0], range(CLIENTS)))  # noqa: B023
            together = [seconds for one in every for seconds in one]
            spent = _ticks(web_process) - before[0], _ticks(postmaster) - before[1]
            web, database = (1000 * seconds / len(together) for seconds in spent)
            yield (
                f"| {path} | {1000 * statistics.median(alone):.0f} | {_p95(alone):.0f} | {_p95(together):.0f} | 50 "
                f"| {web:.1f} | {database:.1f} | {packed / 1000:.0f} | 200 | {size / 1000:.0f} |"
            )


def _postmaster() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = Path(f"/proc/{cursor.fetchone()[0]}/stat").read_text()
    return int(backend.rpartition(")")[2].split()[1])


PARTS_HEAD = (
    "| page | requests | wall, ms | processor of the web process, ms | of PostgreSQL, ms | statements | plain, kB |"
)


def _parts(campaign: Any, pages: Sequence[str]) -> Iterator[str]:
    """What one request of each page costs in this process, and PostgreSQL: medians of `TIMES`."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from accounts.models import User
    from analytics import page_cache

    client = Client(headers={"Accept-Encoding": "gzip"})
    client.force_login(User.objects.get())
    settings.ALLOWED_HOSTS = ["testserver"]
    postmaster = _postmaster()
    yield PARTS_HEAD
    for page in pages:
        path = f"/p/{campaign.project.slug}/{page.format(campaign.pk)}"
        _settle(lambda: client.get(path))  # noqa: B023
        for name, size, forgets in (("rendered", 0, False), ("kept", 32, False), ("project changed", 32, True)):
            settings.PAGE_CACHE_MB, taken = size, []
            for _time in range(TIMES):
                if forgets:
                    page_cache.PAGES.clear()
                before, web, database = perf_counter(), process_time(), _ticks(postmaster)
                body = client.get(path).content
                now = perf_counter(), process_time(), _ticks(postmaster)
                taken.append((now[0] - before, now[1] - web, now[2] - database))
            with CaptureQueriesContext(connection) as captured:
                client.get(path)
            wall, web, _database = (1000 * statistics.median(each) for each in zip(*taken, strict=True))
            database = 1000 * statistics.mean(each[2] for each in taken)
            yield (
                f"| {path} | {name} | {wall:.1f} | {web:.1f} | {database:.1f} | {len(captured)} "
                f"| {len(body) / 1000:.0f} |"
            )


TIMES = 15


def _ticks(root: int) -> float:
    """The processor seconds of a program: of its processes, and of those that have ended."""
    ticks = 0
    for pid in (root, *server.descendants(root)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11 : 15 if pid == root else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _settle(ask: Callable[[], Any]) -> None:
    """Ask, and compute what was asked for, until nothing is asked for any more."""
    from analytics.answers import computing
    from analytics.models import Computation

    for _turn in range(4):
        ask()
        for computation in Computation.objects.all():
            computing.carry_out_computation(computation_pk=computation.pk)


def _compute_all(port: int, session: str, path: str) -> None:
    """Ask for a page, and compute what it has asked for, until it asks for nothing more."""
    _settle(lambda: _asked(port, session, path, 1))


def _asked(
    port: int, session: str, path: str, times: int, start: Barrier | None = None
) -> tuple[list[float], int, int]:
    """The seconds of each request on one kept connection, and the page's bytes, plain and compressed."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Cookie": f"sessionid={session}", "Accept-Encoding": "gzip", "Accept": "text/html"}
    taken: list[float] = []
    if start:
        start.wait()
    deadline = perf_counter() + MOST_SECONDS
    while len(taken) < times and perf_counter() < deadline:
        started = perf_counter()
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        taken.append(perf_counter() - started)
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status}")
    plain = gzip.decompress(body) if reply.headers.get("Content-Encoding") == "gzip" else body
    return taken, len(plain), len(body) if plain is not body else len(gzip.compress(body, 6))


def _p95(seconds: list[float]) -> float:
    return 1000 * statistics.quantiles(seconds, n=20)[-1]


if __name__ == "__main__":
    measure_large_numbers()
