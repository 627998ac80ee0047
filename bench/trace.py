"""How many modules each step of the walk enters: ``python -m bench.trace [--list STEP | --markdown FILE | --docs]``.

``--question QUERY`` follows one question instead, from its judge runs to the content of its snapshot, without cells
that are stored: the modules of analytics outside `stats` in the order in which control is in them. A part that follows
itself at once, as in a loop, counts once. *Stays* are the entries of that list, *returns* those that name a module
again.

An instance as `panelbench up` makes one: SQLite in a temporary folder, deleted at the end. A first process fills it by
commands and API. Then new processes, one for each way, walk: upload a CSV file of three items as the first request,
preview it, store it, submit an item on the desk, have the numbers computed (two imported raters and an annotator, an
imported judge), read them. A background task runs at once, inside the step that sends it; the snapshot is a step of
its own.

What counts:

- A *module* is a file of panelbench, accounts, annotation, judging or analytics. It is *entered* when one of its
  functions, methods, lambdas or comprehensions runs. Bodies of modules and classes don't count, nor does what runs
  while a module is imported, nor what a library generates, such as the ``__init__`` of a dataclass.
- *Modules* counts what the view function (or the method of the API's view) calls, itself included: without middleware,
  decorators, authentication and permissions; for the snapshot, the whole task. *Whole request* counts all.
- *Switches* is how often control goes from one module to another below the view, by a call or by a return; code of
  libraries in between is passed over. It grows with the number of rows.
- *Python calls* are the call events of `sys.setprofile` from sending the request to having its answer, in the code of
  any library: functions, generators that go on, bodies of classes and modules; no functions written in C. Before the
  first request the URLconf and the WSGI application are imported, as in a web process of `panelbench up`.

The numbers "before" in issue 10 were taken at another commit by another script. At commit 1200a08, the evening before,
this one finds by page / API: upload 30 / 29 (issue: 28), preview 53 / 36 (35), store 40 / 38 (43), submit 8 / 8 (8),
snapshot 27 / 27 (26), numbers 19 / 10 (15), and 210,786 calls of a first upload by page, kind chosen (205,000).

Modules may be renamed and moved: only addresses, commands, form fields and JSON fields are named here.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from uuid import UUID

from bench import server

ROOT = Path(__file__).resolve().parent.parent
OURS = {name: ROOT / folder for name, folder in (
    *(("panelbench", "platform/panelbench"), ("accounts", "platform/accounts")),
    *((name, name) for name in ("annotation", "judging", "analytics")),
)}  # fmt: skip
STEPS = ("upload", "preview", "store", "submit", "snapshot", "numbers")
FIRST, AGAIN = "upload", "upload again"
PAGE, API_WAY, UNSAID = WAYS = ("by page, kind chosen", "by API, kind chosen", "by page, kind guessed")
WALK = ROOT / "docs" / "walk.md"
MARKS = ("<!-- python -m bench.trace --docs -->", "<!-- end -->")

# Every address, the present one first; those after it are names that the address had or may get.
API = "/api/v1/projects/trace"
ADDRESSES = {
    "page upload": ("/p/trace/imports/new/",),
    "API imports": (f"{API}/imports/", f"{API}/imports/"),
    "API datasets": (f"{API}/datasets/",),
    "API rubric": (f"{API}/rubrics/trace/versions/1/",),
    "API campaigns": (f"{API}/campaigns/",),
    "API panels": (f"{API}/panels/",),
    "API take": (f"{API}/desk/{{duty}}/take/",),
    "page submit": ("/desk/at/{key}/submit/",),
    "API submit": (f"{API}/desk/at/{{key}}/",),
    "page numbers": ("/p/trace/numbers/{campaign}/",),
    "API numbers": (f"{API}/campaigns/{{campaign}}/numbers/",),
}


# --- recording ------------------------------------------------------------------------------------------------------
Events = list[tuple[str, CodeType | None]]  # call, return; without code: task, end


@dataclass(slots=True)
class Recorder:
    """What ran while it was switched on: calls and returns of our functions, and the number of all Python calls."""

    calls: int = 0
    events: Events = field(default_factory=list)
    _importing: int = 0
    _known: dict[CodeType, bool] = field(default_factory=dict)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        sys.setprofile(self._heard)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        self.calls += event == "call"
        if code.co_name == "<module>":
            self._importing += 1 if event == "call" else -1
        elif not self._importing:
            counts = self._known.get(code)
            if counts is None:
                counts = self._known[code] = bool(code.co_flags & inspect.CO_OPTIMIZED) and bool(module_of(code))
            if counts:
                self.events.append((event, code))


@cache
def module_of(code: CodeType) -> str:
    """The dotted name of the module of ours that the code was written in, or nothing."""
    path = Path(code.co_filename)
    for name, folder in OURS.items():
        if folder in path.parents:
            inside = path.relative_to(folder).with_suffix("").parts
            return ".".join((name, *(part for part in inside if part != "__init__")))
    return ""


@dataclass(frozen=True, slots=True)
class Trace:
    """The modules that a step entered, in order, and how often control went from one to another."""

    modules: tuple[str, ...]
    switches: int


def trace(events: Events, view: CodeType | None = None) -> Trace:
    """The trace of the events, or only of those from the first call of the view until it returns."""
    stack: list[CodeType] = []
    entered: dict[str, None] = {}
    last, switches = "", 0
    floor = 0 if view else 1  # the depth below which nothing counts; 0: the view has not been called yet
    for event, code in events:
        if code is None:
            continue
        if event == "call":
            stack.append(code)
            floor = floor or (len(stack) if code is view else 0)
        elif stack and stack[-1] is code:
            stack.pop()
        if view and floor and len(stack) < floor:
            break
        if floor and stack:
            module = module_of(stack[-1])
            entered[module] = None
            switches += bool(last) and module != last
            last = module
    return Trace(tuple(entered), switches)


# --- the walk -------------------------------------------------------------------------------------------------------
CRITERIA = ("fluency", "coherence")
ITEMS = range(1, 4)


def three_items_file() -> bytes:
    """A CSV file of three items."""
    rows = [f"d{n},et,Kus on minu pakk number {n}?,Vaatan kohe järele.,atlas,note {n}" for n in ITEMS]
    return "\n".join(["id,language,question,answer,model,note", *rows, ""]).encode()


def rubric_file() -> bytes:
    anchors = {str(point): {"en": {"text": f"Point {point}"}} for point in range(4)}
    scale = {"level": "ordinal", "points": list(range(4))}
    criteria = [{"key": key, "name": {"en": key.title()}, "scale": scale, "anchors": anchors} for key in CRITERIA]
    return json.dumps({"key": "trace", "name": {"en": "Trace"}, "source_language": "en", "criteria": criteria}).encode()


def scores_file(who: str, names: Sequence[str]) -> bytes:
    rows = [
        f"d{n},{name},{criterion},{(n + number + len(criterion)) % 4}"
        for n in ITEMS
        for number, name in enumerate(names)
        for criterion in CRITERIA
    ]
    return "\n".join([f"item,{who},criterion,score", *rows, ""]).encode()


@dataclass(slots=True)
class Prepared:
    """What the filled instance holds: the lead's session, the campaign, the duty that has items left for the lead."""

    session: str
    campaign: int
    duty: int
    addresses: dict[str, str]


def present_addresses() -> dict[str, str]:
    """Of each address the first name that leads somewhere."""
    return {name: _present(name, written) for name, written in ADDRESSES.items()}


def _present(name: str, written: Sequence[str]) -> str:
    from django.urls import Resolver404, resolve

    for path in written:
        with contextlib.suppress(Resolver404):
            resolve(path.format(duty=1, campaign=1, key=UUID(int=1)))
            return path
    raise LookupError(f"no name of the address {name!r} leads anywhere: {', '.join(written)}")


def prepared(folder: Path) -> Prepared:
    """Fill the instance: dataset, rubric, ratings, verdicts by command; campaign, panel and duty by API."""
    (folder / "static").mkdir()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    def command(which: str, *given: str, **named: Any) -> None:
        call_command(which, *given, **named, stdout=io.StringIO())

    def kept(name: str, content: bytes) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    command("create_user", "lead@panelbench.test")
    command("create_project", "Trace", lead="lead@panelbench.test", slug="trace")
    command("import_rubric", kept("rubric.json", rubric_file()), project="trace", publish=True)
    command("import_dataset", kept("first.csv", three_items_file()), project="trace", name="First")
    client, user = Client(SERVER_NAME="localhost"), get_user_model().objects.get()
    client.force_login(user)
    addresses = present_addresses()

    def post(where: str, /, **content: Any) -> int:
        answer = client.post(where, content, content_type="application/json")
        assert answer.status_code == 201, answer.content
        return int(answer.json().get("id", 0))

    dataset = client.get(addresses["API datasets"]).json()["results"][0]["id"]
    version = client.get(addresses["API rubric"]).json()["id"]
    campaign = post(addresses["API campaigns"], name="Trace", dataset=dataset, rubric_version=version)
    panel = post(addresses["API panels"], name="Estonian", language="et")
    post(f"{addresses['API panels']}{panel}/seats/", user=user.pk, confirmed=True)
    duty = post(f"{addresses['API campaigns']}{campaign}/duties/", panel=panel, overlap=1)
    command("import_ratings", kept("ratings.csv", scores_file("rater", ("r1", "r2"))), project="trace")
    command("import_verdicts", kept("verdicts.csv", scores_file("judge", ("steady",))), project="trace")
    return Prepared(client.cookies["sessionid"].value, campaign, duty, addresses)


class TracedWalk:
    """The steps by one way, each recorded, in a process that has answered nothing yet."""

    def __init__(self, way: str, given: Prepared) -> None:
        from django.test import Client

        self.by_page, self.kind, self.given = way != API_WAY, "" if way == UNSAID else "dataset", given
        self.client = Client(SERVER_NAME="localhost")
        self.client.cookies["sessionid"] = given.session
        self.client.handler.load_middleware()
        self.recorders: dict[str, Recorder] = {}
        self.views: dict[str, CodeType] = {}

    def run(self) -> None:
        """Each step once; where the kind of the file is guessed, only the upload."""
        imported = self._uploaded(FIRST)
        if self.kind:
            self.asked("preview", imported if self.by_page else f"{imported}preview/")
            self.asked("store", f"{imported}store/", {})
            taken = self.client.post(self.at("API take"), {}, content_type="application/json").json()
            self._submitted(taken["key"])
            numbers = self.at("page numbers" if self.by_page else "API numbers")
            self.asked("snapshot", numbers)
            self.asked("numbers", numbers)
        self._uploaded(AGAIN)

    def at(self, name: str, **parts: Any) -> str:
        given = self.given
        return given.addresses[name].format(duty=given.duty, campaign=given.campaign, **parts)

    def _uploaded(self, step: str) -> str:
        """The address of the import that the file became."""
        from django.core.files.uploadedfile import SimpleUploadedFile

        if self.by_page:
            form = {"files": [SimpleUploadedFile("second.csv", three_items_file())], "kind": self.kind}
            return str(self.asked(step, self.at("page upload"), form)["Location"])
        where, body = self.at("API imports"), {"content_type": "application/octet-stream"}
        answer = self.asked(step, f"{where}?name=second.csv&kind={self.kind}", three_items_file(), **body)
        return f"{where}{answer.json()['id']}/"

    def _submitted(self, key: str) -> None:
        if self.by_page:
            scores = {f"score-{criterion}": "1" for criterion in CRITERIA}
            self.asked("submit", self.at("page submit", key=key), {"key": key, "seconds": "9", **scores})
        else:
            answers = [{"criterion": criterion, "score": 1} for criterion in CRITERIA]
            body = {"answers": answers, "seconds": 9}
            self.asked("submit", self.at("API submit", key=key), body, content_type="application/json")

    def asked(self, step: str, where: str, sent: Any = None, **more: Any) -> Any:
        """Ask, by POST where something is sent, and record what runs for it."""
        recorder = self.recorders[step] = Recorder()
        _recorders.append(recorder)
        with recorder.on():
            answer = self.client.get(where) if sent is None else self.client.post(where, sent, **more)
        assert answer.status_code < 400, (step, where, answer.status_code, answer.content[:2000])
        self.views[step] = _view(where.partition("?")[0], "get" if sent is None else "post")
        return answer


_recorders: list[Recorder] = []


def _view(path: str, method: str) -> CodeType:
    """The view at an address, without its decorators."""
    from django.urls import resolve

    view: Any = resolve(path).func
    code: CodeType = inspect.unwrap(getattr(view.view_class, method) if hasattr(view, "view_class") else view).__code__
    return code


def tasks_at_once() -> None:
    """What is sent to the queue runs here and now; the recorder is told where a task begins and ends."""
    from celery import current_app

    def send_task(name: str, args: Any = None, kwargs: Any = None, **_options: Any) -> Any:
        events = _recorders[-1].events
        events.append(("task", None))
        try:
            return current_app.tasks[name].apply(args=args, kwargs=kwargs, throw=True)
        finally:
            events.append(("end", None))

    current_app.send_task = send_task


def _in_tasks(events: Events) -> Events:
    """The events from the begin of the first task of a step to the end of the last."""
    kinds = [event for event, _code in events]
    assert "task" in kinds, "asking for the numbers sent no task that computes them"
    return events[kinds.index("task") : len(kinds) - kinds[::-1].index("end")]


def walked(way: str, given: Prepared) -> dict[str, Any]:
    """The measured steps of one way, as JSON can hold them; called once in a process."""
    import django
    from django.conf import settings
    from django.utils.module_loading import import_string

    django.setup()
    importlib.import_module(settings.ROOT_URLCONF)
    import_string(settings.WSGI_APPLICATION)
    tasks_at_once()
    walk = TracedWalk(way, given)
    walk.run()
    measured: dict[str, Any] = {}
    for step, recorder in walk.recorders.items():
        if step == "snapshot":
            whole = below = trace(_in_tasks(recorder.events))
        else:
            whole, below = trace(recorder.events), trace(recorder.events, walk.views[step])
        assert below.modules, f"the view of {step} was not called"
        measured[step] = {
            "modules": below.modules,
            "whole": whole.modules,
            "switches": below.switches,
            "calls": recorder.calls,
        }
    return measured


# --- one question ----------------------------------------------------------------------------------------------------
def question_walk(query: str) -> tuple[list[str], int]:
    """The stays of a question, and how often control went from one module to another before loops were folded."""
    from analytics.answers import snapshots
    from analytics.answers.revisions import settings_identity
    from analytics.answers.stored_cells import CellStore
    from analytics.models import StoredCell
    from analytics.questions.asked import question_of
    from analytics.questions.plan import chosen_runs
    from annotation.models import Campaign

    campaign, question = Campaign.objects.get(), question_of(query)
    runs, identity = chosen_runs(campaign, question), settings_identity(question)
    for _time in range(2):  # the first loads libraries and our statistics
        StoredCell.objects.all().delete()
        store, recorder = CellStore(campaign, **identity), Recorder()
        with recorder.on():
            snapshots._question_fields(campaign, question, runs, store, lambda _done, _total: None)
    stack: list[CodeType] = []
    entered: list[str] = []
    for event, code in recorder.events:
        if event == "call" and code:
            stack.append(code)
        elif stack and stack[-1] is code:
            stack.pop()
        name = module_of(stack[-1]) if stack else ""
        if name.startswith("analytics.") and not name.startswith("analytics.stats") and name != (entered or [""])[-1]:
            entered.append(name)
    return folded(entered), len(entered) - 1


def folded(names: Sequence[str]) -> list[str]:
    """The names without parts that repeat what stands right before them."""
    found, before = list(names), 0
    while before != len(found):
        before = len(found)
        for size in range(1, 9):
            start = 0
            while start + 2 * size <= len(found):
                if found[start : start + size] == found[start + size : start + 2 * size]:
                    del found[start + size : start + 2 * size]
                else:
                    start += 1
    return found


# --- the tables -----------------------------------------------------------------------------------------------------
Measured = dict[str, dict[str, Any]]  # by way, by step


def _measure() -> Measured:
    """Every way, each in a process of its own, on one instance."""
    os.environ.pop("REDIS_URL", None)
    with server.database("sqlite"):
        given = json.dumps(asdict(prepared(Path(os.environ["PANELBENCH_DATA_DIR"]))))
        command = [sys.executable, "-m", "bench.trace", "--walk"]
        return {
            way: json.loads(
                subprocess.run([*command, way], input=given, check=True, stdout=subprocess.PIPE, text=True).stdout
            )
            for way in WAYS
        }


def trace_tables(measured: Measured) -> str:
    """Modules and switches by step, then Python calls of an upload."""
    page, api = measured[PAGE], measured[API_WAY]
    rows = [
        f"| {step} | {_counts(page[step])} | {len(page[step]['whole'])} "
        f"| {_counts(api[step])} | {len(api[step]['whole'])} |"
        for step in STEPS
    ]
    calls = [f"| {way} | {steps[FIRST]['calls']:,} | {steps[AGAIN]['calls']:,} |" for way, steps in measured.items()]
    unsaid = measured[UNSAID][FIRST]
    rows.insert(1, f"| upload, kind guessed | {_counts(unsaid)} | {len(unsaid['whole'])} | | |")
    return "\n".join(
        [
            "| step | by page: modules / switches | whole request | by API: modules / switches | whole request |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "| upload of a CSV file | Python calls, first request of a process | the same again |",
            "|---|---|---|",
            *calls,
        ]
    )


def _counts(step: dict[str, Any]) -> str:
    return f"{len(step['modules'])} / {step['switches']:,}"


def entered_modules(measured: Measured, step: str) -> str:
    """The modules of a step in the order in which they are entered; + marks what only the whole request enters."""
    lines = []
    for way, steps in measured.items():
        if step in steps:
            inner = set(steps[step]["modules"])
            lines += [f"{step}, {way}: {len(inner)}"]
            lines += [f"  {' ' if name in inner else '+'} {name}" for name in steps[step]["whole"]]
    return "\n".join(lines)


def write_docs(table: str) -> None:
    """Put the tables between the marks of docs/walk.md."""
    text = WALK.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _old, after = rest.split(MARKS[1])
    WALK.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", encoding="utf-8")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=STEPS, metavar="STEP", help=f"the modules of one step: {', '.join(STEPS)}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to a file, too")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/walk.md")
    parser.add_argument("--question", metavar="QUERY", help="follow a question through the modules of analytics")
    parser.add_argument("--walk", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.walk:
        print(json.dumps(walked(asked.walk, Prepared(**json.load(sys.stdin)))))
        return
    if asked.question is not None:
        os.environ.pop("REDIS_URL", None)
        with server.database("sqlite"):
            prepared(Path(os.environ["PANELBENCH_DATA_DIR"]))
            stays, switches = question_walk(asked.question)
        print(*stays, sep="\n")
        print(f"{switches} switches, {len(stays)} stays, {len(stays) - len(set(stays))} returns")
        return
    measured = _measure()
    table = trace_tables(measured)
    print(entered_modules(measured, asked.list) if asked.list else table)
    if asked.markdown:
        asked.markdown.write_text(f"{table}\n", encoding="utf-8")
    if asked.docs:
        write_docs(table)


if __name__ == "__main__":
    _main()
