"""Our modules against libraries that do the same: ``python -m bench.libraries --others OTHER/bin/python``.

``OTHER`` is an environment with ``langcodes language-data babel standardwebhooks honcho``; none of it is needed to run
Panelbench. Decision 0024 holds the table and what follows from it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import library_answers
from bench.server import descendants, free_port

# What is written, and what it means.
TAGS = {tag: tag for tag in ("et", "yue", "es-419", "de-1996", "qaa", "sr-XK", "vro", "nb")} | dict(
    pair.split(" = ")
    for pair in """
    zh-hant-tw = zh-Hant-TW; ZH-HANT-hk-x-Taxi = zh-Hant-HK-x-taxi; zh-yue = yue; zh-cmn-Hans = zh-Hans; ET = et;
    sl-ROZAJ-biske = sl-rozaj-biske; ar-u-nu-latn-a-bc = ar-a-bc-u-nu-latn; iw = he; in-ID = id-ID; eng = en; ekk = et;
    sh = sr-Latn; sh-Cyrl = sr-Cyrl; en-UK = en-GB; arb = ar; swh = sw; mo = ro; tl = fil; cmn-Hans = zh-Hans;
    uz-uzn = uz; en_us = en-US""".replace("\n    ", " ").strip().split("; ")
)  # fmt: skip
NO_TAGS = [
    *("", "und", "x-klingon", "english", "e", "en-", "en--US", "en US", "en-Xxxx", "en-ABC", "en-QA1", "xx", "en-OO"),
    *("en-XYZA-US", "de-1996-1996", "en-u-aa-u-bb", "eesti keel", "éé", "en\n-US", "١٢", "jp", "Estonian"),
]
SCRIPTS = dict.fromkeys(("ar", "fa-AF", "ur", "ps", "ckb", "pa-PK", "az-Arab", "uz-AF"), "Arab") | {
    **dict.fromkeys(("et", "ar-Latn", "he-Latn-IL", "sr-Latn"), "Latn"),
    "he": "Hebr",
    "yi": "Hebr",
    "dv": "Thaa",
    "pa": "Guru",
    "hi": "Deva",
    "ru": "Cyrl",
    "ja": "Jpan",
    "zh": "Hans",
    "zh-TW": "Hant",
}
NAMES = {
    "et": "eesti / Estonian",
    "pt-BR": "português (Brasil) / Portuguese (Brazil)",
    "tlh": "Klingon / Klingon",
    "ar-EG": "العربية (مصر) / Arabic (Egypt)",
    "qaa-x-elvish": "qaa (x-elvish) / qaa (x-elvish)",
    "vro": "Võro / Võro",
}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


# --- languages and signatures -----------------------------------------------------------------------------------------
def our_function(question: str) -> Callable[[Any], str]:
    from accounts import addresses, languages
    from panelbench.client import Forged, received

    def names(tag: str) -> str:
        return f"{languages.endonym(tag)} / {languages.english_name(tag)}"

    def is_received(case: dict[str, Any]) -> str:
        with contextlib.suppress(Forged):
            received(case["secret"], case["headers"], base64.b64decode(case["body"]))
            return "ok"
        return "forged"

    def signed(case: dict[str, Any]) -> str:
        key, now, body = case["key"], case["now"], base64.b64decode(case["body"])
        secret = base64.b64decode(case["secret"].removeprefix("whsec_"))
        return addresses.signed(secret=secret, key=key, body=body, now=now)["webhook-signature"]

    functions: dict[str, Callable[[Any], str]] = {
        "canonical": languages.canonical_language,
        "script": languages.script,
        "names": names,
        "received": is_received,
        "signed": signed,
    }
    return functions[question]


def requests() -> tuple[list[dict[str, Any]], list[str | None]]:
    """Signed requests as a stranger may send them, and what is to become of each."""
    now, sign = time.time(), our_function("signed")

    def case(body: bytes = BODY, *, key: str = "msg_1", at: float = now, **headers: str) -> dict[str, Any]:
        plain = {"secret": SECRET, "key": key, "now": at, "body": base64.b64encode(body).decode()}
        own = {"webhook-id": key, "webhook-timestamp": str(int(at)), "webhook-signature": sign(plain)}
        return {**plain, "headers": {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}}

    good = case()["headers"]["webhook-signature"]
    wanted: list[tuple[dict[str, Any], str]] = [
        (case(), "ok"),
        (case(webhook_signature=f"v1a,AAAA {good}"), "ok"),
        ({**case(), "headers": {name.title(): value for name, value in case()["headers"].items()}}, "ok"),
        (case(at=now - 900), "forged"),
        (case(at=now + 900), "forged"),
        ({**case(), "headers": {}}, "forged"),
        (case(webhook_id="msg_2"), "forged"),
        (case(webhook_timestamp=str(int(now) - 1)), "forged"),
        ({**case(), "body": base64.b64encode(b"{}").decode()}, "forged"),
        *(
            (case(webhook_signature=text), "forged")
            for text in ("v1", "v1,", "v1,%%%", "v1,a,b", ",", "v1,é", "nonsense")
        ),
        *((case(webhook_timestamp=text), "forged") for text in ("nan", "inf", "1e400", "١٢", "0x10", "")),
        ({**case(), "body": base64.b64encode(b"\xff\xfe").decode()}, "forged"),
    ]
    return [request for request, _ in wanted], [answer for _, answer in wanted]


def questions() -> dict[str, tuple[list[Any], list[str | None]]]:
    """Cases and right answers of each question."""
    signed = [
        {
            "secret": SECRET,
            "key": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "now": 1614265330,
            "body": base64.b64encode(BODY).decode(),
        }
    ]
    return {
        "canonical": ([*TAGS, *NO_TAGS], [*TAGS.values(), *(None for _ in NO_TAGS)]),
        "script": (list(SCRIPTS), list(SCRIPTS.values())),
        "names": (list(NAMES), list(NAMES.values())),
        "received": requests(),
        "signed": (signed, ["v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="]),
    }


def compare_answers(others: str) -> Iterator[str]:
    yield "| question | by | right of | wrong | first answers, CPU ms | memory, MB | each later, us |"
    yield "|---|---|---|---|---|---|---|"
    for question, (cases, right) in questions().items():
        for package in ("ours", *library_answers.FUNCTIONS[question]):
            measured = _measured(others, question, package, cases)
            rows = zip(cases, right, measured["answers"], strict=True)
            wrong = [f"`{_named(case)}` {answer or 'refused'}" for case, wanted, answer in rows if answer != wanted]
            figures = f"{measured['first_ms']:.0f} | {measured['memory_mb']:.1f} | {measured['later_us']:.0f}"
            by = f"{package} {measured['version']}".strip()
            yield f"| {question} | {by} | {len(cases) - len(wrong)} of {len(cases)} | {'; '.join(wrong)} | {figures} |"


def _measured(others: str, question: str, package: str, cases: list[Any]) -> dict[str, Any]:
    code = [others, "bench/library_answers.py", question, package]
    if package == "ours":
        code = [sys.executable, "-m", "bench.libraries", "--ours", question]
    ended = subprocess.run(code, input=json.dumps(cases), capture_output=True, text=True, check=True)
    return dict(json.loads(ended.stdout))


def _named(case: Any) -> str:
    if isinstance(case, str):
        return case.replace("\n", "\\n")
    return " ".join(f"{name[8:]}: {value}" for name, value in case["headers"].items()) or "no headers"


# --- the supervisor ---------------------------------------------------------------------------------------------------
SMALL = """
import os, signal, subprocess, sys, time
from pathlib import Path
name, folder = sys.argv[1], Path(sys.argv[2])
def note(word, pid):
    with (folder / word).open("a") as file: file.write(f"{pid}\\n")
def stop(*_):
    note("asked", os.getpid())
    if name == "slow": time.sleep(8); note("finished", os.getpid())
    if name != "deaf": sys.exit()
signal.signal(signal.SIGTERM, stop)
child = subprocess.Popen([sys.executable, "-c",
    "import signal,time,pathlib,sys\\n"
    "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1], 'child-asked').touch())\\n"
    "end = time.time() + 60\\nwhile time.time() < end: time.sleep(1)", str(folder)])
note("children", child.pid)
note(name, os.getpid())
if name == "once": child.kill(); sys.exit()
while True: time.sleep(1)
"""
OURS = """
import subprocess, sys
from panelbench.supervisor import Program, Supervisor, Warden
folder, script, names = sys.argv[1], sys.argv[2], sys.argv[3:]
def run(name):
    import os; os.execv(sys.executable, [sys.executable, script, name, folder])
chosen = [Program(name=name, function=run, arguments=(name,), once=name == "once", grace=10 if name == "slow" else 2)
          for name in names]
with Warden(grace=2) as warden: Supervisor(chosen, warden=warden, say=print).run()
"""
HONCHO = """
import sys
from honcho.manager import Manager
folder, script, names = sys.argv[1], sys.argv[2], sys.argv[3:]
manager = Manager()
for name in names: manager.add_process(name, f"exec {sys.executable} {script} {name} {folder}")
manager.loop()
"""


class Supervised:
    """A supervisor over small programs that note their process ids, signals and ends in a folder."""

    def __init__(self, command: Sequence[str], *names: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="panelbench-libraries-"))
        script = self.folder / "program.py"
        script.write_text(SMALL)
        arguments = [*command, str(self.folder), str(script), *names]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in names:
            self.wait(lambda name=name: self.noted(name))  # type: ignore[misc]

    def noted(self, word: str) -> list[int]:
        file = self.folder / word
        return [int(text) for text in file.read_text().split()] if file.exists() else []

    def wait(self, is_so: Callable[[], Any], seconds: float = 15) -> bool:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if is_so():
                return True
            time.sleep(0.05)
        return False

    def end(self, number: int, seconds: float = 25) -> float:
        began = time.monotonic()
        self.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return time.monotonic() - began

    def left(self) -> list[int]:
        """Its programs and their children that still run."""
        pids = [pid for word in ("steady", "slow", "deaf", "children") for pid in self.noted(word)]
        return [pid for pid in pids if _runs(pid)]

    def clear(self) -> None:
        for pid in [self.process.pid, *self.left()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def starts_again(command: Sequence[str]) -> str:
    running = Supervised(command, "steady", "deaf")
    os.kill(running.noted("steady")[0], signal.SIGKILL)
    again = running.wait(lambda: len(running.noted("steady")) > 1, 4)
    others = _runs(running.noted("deaf")[0]) and not running.noted("asked")
    running.clear()
    return f"{'started again' if again else 'not started again'}; the others {'go on' if others else 'are ended too'}"


def one_program_ends(command: Sequence[str]) -> str:
    running = Supervised(command, "steady", "once")
    time.sleep(1)
    goes_on = not running.noted("asked") and any(map(_runs, running.noted("steady")))
    running.clear()
    return "the others go on" if goes_on else "the others are ended too"


def asked_to_end(command: Sequence[str]) -> str:
    running = Supervised(command, "steady", "slow")
    took = running.end(signal.SIGTERM)
    finished, child = running.noted("finished"), (running.folder / "child-asked").exists()
    left = len(running.left())
    running.clear()
    done = "finished its 8 s of work" if finished else "was killed before its 8 s of work were done"
    signalled = "its children are signalled too" if child else "only leaders are signalled"
    return f"the slow one {done}; {signalled}; {took:.1f} s, {left} left"


def refuses_to_end(command: Sequence[str]) -> str:
    running = Supervised(command, "deaf")
    took, left = running.end(signal.SIGTERM), len(running.left())
    running.clear()
    return f"killed after {took:.1f} s, {left} left"


def killed(command: Sequence[str]) -> str:
    running = Supervised(command, "steady", "deaf")
    running.end(signal.SIGKILL)
    running.wait(lambda: not running.left(), 8)
    left = len(running.left())
    running.clear()
    return f"{left} of 4 processes left 8 s later"


BEHAVIOURS: dict[str, Callable[[Sequence[str]], str]] = {
    "a program is killed": starts_again,
    "a program that runs once (the demo's loading) ends": one_program_ends,
    "SIGTERM while a worker waits for replies": asked_to_end,
    "SIGTERM to a program that ignores it": refuses_to_end,
    "the supervisor is killed with SIGKILL": killed,
}


def compare_supervisors(others: str) -> Iterator[str]:
    yield "| what happens | ours | honcho |"
    yield "|---|---|---|"
    for name, look in BEHAVIOURS.items():
        yield f"| {name} | {look([sys.executable, '-c', OURS])} | {look([others, '-c', HONCHO])} |"


# --- the start of an instance -----------------------------------------------------------------------------------------
CELERY = f"exec {sys.executable} -m celery --quiet -A panelbench"
QUIET = "--without-gossip --without-mingle -l WARNING"


def commands(port: int, *, embedded_beat: bool) -> dict[str, str]:
    """An instance as a Procfile has it; the web processes by our own command, as in docker-compose.yml."""
    beat = {} if embedded_beat else {"beat": f"{CELERY} beat --pidfile="}
    return {
        "web": f"exec {sys.executable} -m panelbench.cli web --port {port}",
        "worker": f"{CELERY} worker {'-B' if embedded_beat else ''} -Q analytics,default -c 2 -n worker@%h {QUIET}",
        "imports": f"{CELERY} worker -Q imports -c 1 -n imports@%h {QUIET}",
        "judging": f"{CELERY} worker -Q judging -c 4 -n judging@%h {QUIET}",
        **beat,
    }


def compare_starts(others: str, repeats: int) -> Iterator[str]:
    yield "| an instance started | seconds to a healthy answer | CPU s | memory (PSS), MB | processes |"
    yield "|---|---|---|---|---|"
    ways: dict[str, Callable[[int], list[str]]] = {
        "ours": lambda port: [sys.executable, "-m", "panelbench.cli", "up", "--port", str(port)],
        "honcho": lambda port: [others, "-c", _procfile(commands(port, embedded_beat=False))],
        "honcho, worker -B": lambda port: [others, "-c", _procfile(commands(port, embedded_beat=True))],
    }
    with tempfile.TemporaryDirectory(prefix="panelbench-libraries-") as folder:
        _started(ways["ours"](free_port()), Path(folder))  # makes the database
        taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
        for _ in range(repeats):
            for name, way in ways.items():
                port = free_port()
                taken[name].append(_started(way(port), Path(folder), port))
    for name, figures in taken.items():
        middle = sorted(figures)[len(figures) // 2]
        yield f"| {name} | {middle[0]:.1f} | {middle[1]:.1f} | {middle[2]:.0f} | {middle[3]:.0f} |"


def _procfile(programs: dict[str, str]) -> str:
    return (
        f"from honcho.manager import Manager\nmanager = Manager()\n"
        f"for name, command in {programs!r}.items(): manager.add_process(name, command)\nmanager.loop()"
    )


def _started(command: list[str], folder: Path, port: int | None = None) -> tuple[float, ...]:
    from panelbench.probe import health

    port = port or int(command[-1])
    environment = {**os.environ, "PANELBENCH_DATA_DIR": str(folder), "LOG_LEVEL": "ERROR"}
    began = time.monotonic()
    program = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while health(f"http://127.0.0.1:{port}/healthz", timeout=1).get("status") != "ok":
            if time.monotonic() - began > 90 or program.poll() is not None:
                raise RuntimeError(f"not healthy: {command}")
            time.sleep(0.05)
        took = time.monotonic() - began
        time.sleep(3)
        pids = [program.pid, *descendants(program.pid)]
        return took, sum(map(_cpu, pids)), sum(map(_pss, pids)), float(len(pids))
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(60)


def _cpu(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _pss(pid: int) -> float:
    with contextlib.suppress(OSError):
        for text in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if text.startswith("Pss:"):
                return int(text.split()[1]) / 1024
    return 0.0


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries", description=__doc__)
    parser.add_argument("--others", help="an interpreter with the libraries")
    parser.add_argument("--only", choices=["answers", "supervisor", "start"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ours", choices=list(library_answers.FUNCTIONS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        function, cases = our_function(options.ours), json.load(sys.stdin)
        measured = library_answers.measured_cost(function, cases)
        print(json.dumps({"version": "", "answers": library_answers.answers(function, cases), **measured}))
        return
    tables = {
        "answers": lambda: compare_answers(options.others),
        "supervisor": lambda: compare_supervisors(options.others),
        "start": lambda: compare_starts(options.others, options.repeats),
    }
    for name, table in tables.items():
        if options.only in (None, name):
            print(*table(), "", sep="\n", flush=True)


if __name__ == "__main__":
    _main()
