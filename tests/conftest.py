"""Fixtures for every test. The services themselves are started in tests/services.py."""

from __future__ import annotations

import copy
import gc
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from django.core.cache import caches
from django.db import connection, transaction
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings
from pytest_django.plugin import blocking_manager_key

from panelbench import environment
from tests import databases, study_data, tiers
from tests.cast import Cast, cast, make_cast  # noqa: F401
from tests.provider_server import RunningProvider, running_provider
from tests.services import CHROMIUM, LEFT_OUT, PLAYWRIGHTS

# How long a draw takes says nothing on a busy machine.
settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

TESTS = Path(__file__).parent
BROWSER_TESTS = TESTS / "browser"
COMMANDS_ON_FILES = TESTS / "analytics" / "stats" / "cli"
SLOW_FOLDERS = {BROWSER_TESTS, COMMANDS_ON_FILES, TESTS / "releases"}
NEEDED_BY_SLOW = frozenset({"db", "transactional_db", "live_server", "worker", "provider"})  # fixtures
STARTED_BY_SLOW = frozenset({"subprocess", "multiprocessing", "running_provider", "panelbench"})  # names in a module
ALWAYS_SLOW = re.compile(
    r"^(pytestmark = .*mark\.(django_db|slow)|    pytest\.mark\.django_db.*,|import (subprocess|multiprocessing)"
    r"|from \S+ import (.*, )?(running_provider|panelbench)(,.*)?)$",
    re.MULTILINE,
)


TESTS_AND_FIXTURES = re.compile(r"^( *@pytest\.fixture.*\n(?: *@.*\n)*)? *def (\w+)\(([^)]*)\)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what this run leaves out: modules of the nightly tier, and those whose text shows that none of
    their tests is chosen.
    """
    if tiers.nightly_of(collection_path) in os.environ[LEFT_OUT].split(","):
        return True
    if not collection_path.name.startswith("test_"):
        return None
    chosen, text = str(config.option.markexpr), collection_path.read_text("utf-8")
    if chosen == "walk or both_databases":
        return None if re.search(r"mark\.(walk|both_databases)", text) else True
    if "not slow" in chosen:
        return True if "mark.walk" not in text and (ALWAYS_SLOW.search(text) or all_tests_are_slow(text)) else None
    return None


def all_tests_are_slow(text: str) -> bool:
    """Whether every test asks for a fixture that needs the database, itself or by other fixtures of its module."""
    parameters = {name: set(re.findall(r"\w+(?=:)", given)) for _, name, given in TESTS_AND_FIXTURES.findall(text)}
    fixtures = {name for decorated, name, _ in TESTS_AND_FIXTURES.findall(text) if decorated}
    slow = {"cast", *NEEDED_BY_SLOW}
    while more := {name for name in fixtures - slow if parameters[name] & slow}:
        slow |= more
    tests = [given for name, given in parameters.items() if name.startswith("test_")]
    return bool(tests) and all(given & slow for given in tests)


def pytest_collection_finish() -> None:
    """What is there now stays: the garbage collector need not go through it. It comes seldom: else it takes a tenth of
    a test's time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()  # tests/services.py disabled it


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Mark what is slow, before `-m` chooses, and leave out what needs study files that are missing.

    The longest go first, and single tests fill the gaps at the end: the walk, the nightly tier, then the modules that
    make something once for all of their tests, which stay in one process (`--dist loadgroup`). Browser tests go last:
    Playwright's event loop, once running, would refuse the ORM to the tests after it. Of these the long ones go first.
    """
    for item in items:
        if tiers.nightly_of(item.path):
            item.add_marker(pytest.mark.nightly)
        if made_once(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
        if needs_services(item):
            item.add_marker(pytest.mark.slow)
        if BROWSER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not os.environ[CHROMIUM]:
                item.add_marker(pytest.mark.skip(reason="no Chromium"))
    if not study_data.FOLDER.is_dir():  # the summary says so in one line
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("study_data")])
        items[:] = [item for item in items if not item.get_closest_marker("study_data")]
    yield
    tests_of = Counter(item.path for item in items)
    items.sort(key=lambda item: _turn(item, tests_of[item.path]))


def _turn(item: pytest.Item, tests_of_its_module: int) -> tuple[bool, bool, bool, int, str, bool]:
    """The sort key of a test. The only test of a browser module is a long one."""
    is_browser, is_walk, is_nightly, is_grouped = (
        item.get_closest_marker(name) is not None for name in ("browser", "walk", "nightly", "xdist_group")
    )
    many_first = tests_of_its_module if is_browser else -tests_of_its_module if is_grouped else 0
    module = item.nodeid.partition("::")[0] if is_grouped else ""  # its tests stay together
    return is_browser, not is_walk, not (is_nightly or is_grouped), many_first, module, uses_rows_made_once(item)


def made_once(item: pytest.Item) -> bool:
    """Whether a test uses what is made once for its module: rows, a server, an installed package."""
    if uses_rows_made_once(item):
        return True
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs.values() if fixtures else ()
    return any(
        found[-1].scope == "module" and found[-1].baseid == item.nodeid.partition("::")[0] for found in definitions
    )


def needs_services(item: pytest.Item) -> bool:
    """Whether a test needs a database, a server, a browser or another process; `make test-quick` runs all others."""
    fixtures, names = getattr(item, "fixturenames", ()), vars(getattr(item, "module", None) or object)
    uses_database = item.get_closest_marker("django_db") or not NEEDED_BY_SLOW.isdisjoint(fixtures)
    starts_process = not SLOW_FOLDERS.isdisjoint(item.path.parents) or not STARTED_BY_SLOW.isdisjoint(names)
    return bool(uses_database or starts_process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("browser"):
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's loop runs in the thread of the test
        result = yield
        if time.monotonic() - began > 0.5:  # in less, few rows are written
            with item.config.stash[blocking_manager_key].unblock():
                databases.drop_dead_rows()
        return result


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """A worker and the live server are other processes and threads: SQLite has to be a file for them."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(Path(os.environ["PANELBENCH_DATA_DIR"]) / "test.sqlite3")


@pytest.fixture(scope="session")
def django_db_keepdb(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_use_migrations: bool,
    django_db_blocker: Any,
) -> Iterator[bool]:
    """Whether pytest-django is to take the test database as it is: it is a copy of one that was migrated already."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        is_copied = django_db_use_migrations and databases.copy_template()
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: databases.empty_tables())
        yield is_copied


Made = TypeVar("Made")


@pytest.fixture(scope="module")
def once_per_module(django_db_setup: None, django_db_blocker: Any) -> Iterator[Callable[[Callable[[], Made]], Made]]:
    """Makes rows once for a module: each of its tests begins with them, and is rolled back to them.

    What a test changes in the objects themselves is not rolled back: give each test a copy (`copy.deepcopy`). Not for
    tests that commit: they would commit inside this transaction.
    """

    def make(rows: Callable[[], Made]) -> Made:
        with django_db_blocker.unblock():
            return rows()

    around = transaction.atomic()
    make(around.__enter__)
    yield make
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        around.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """End the rows that are made once for a module before a test of it that does not ask for them; whoever asks again
    has them made anew. So every test begins with the rows that it names, in whatever order tests are run.
    """
    result = yield
    if nextitem and uses_rows_made_once(item) and not uses_rows_made_once(nextitem):
        ended: Any = item
        ended._fixtureinfo.name2fixturedefs["once_per_module"][-1].finish(ended._request)
    return result


def uses_rows_made_once(item: pytest.Item) -> bool:
    return "once_per_module" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="module")
def scene_once(request: pytest.FixtureRequest, once_per_module: Any) -> tuple[Cast, Any]:
    """The cast, and what `make_scene(cast)` of the test's module made."""

    def made() -> tuple[Cast, Any]:
        people = make_cast()
        return people, request.module.make_scene(people)

    found: tuple[Cast, Any] = once_per_module(made)
    return found


@pytest.fixture
def module_scene(request: pytest.FixtureRequest, scene_once: tuple[Cast, Any], db: None) -> tuple[Cast, Any]:
    """For one test, a copy of the cast and the scene that are made once for its module (`make_scene`). The fixture
    `cast` is of the same scene, for a test that uses both. The rows are rolled back to what they were.
    """
    assert "transactional_db" not in request.fixturenames, "a test that commits makes its own rows"
    return copy.deepcopy(scene_once)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Rate limits and cached pages of one test are no business of the next."""
    for cache in caches.all():
        cache.clear()


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningProvider]:
    """The simulated provider, declared under the name `simulated` here and in a worker started after it.

    A call without a reply is tried again soon in this process; a worker waits as long as in production.
    """
    monkeypatch.setattr("judging.asking.leases.FIRST_PAUSE", 0.01)
    with running_provider() as running:
        declared = [{"name": "simulated", "base_url": running.base_url, "simulated": True}]
        monkeypatch.setenv("PANELBENCH_PROVIDERS", json.dumps(declared))
        settings.PROVIDERS = environment.declared_providers(os.environ)
        yield running


@pytest.fixture
def worker(transactional_db: None) -> Iterator[subprocess.Popen[bytes]]:
    """A real Celery worker for every queue, on the test's database and broker."""
    from panelbench.celery import QUEUES, app

    app.control.purge()
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench", "worker", "-Q", ",".join(QUEUES)]
    environment = {**os.environ, "DATABASE_URL": database_url()}
    started = subprocess.Popen([*command, "--concurrency", "2", "-l", "WARNING"], env=environment)
    try:
        _wait_until_heard()
        yield started
    finally:
        started.terminate()
        started.wait()


def database_url() -> str:
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def _wait_until_heard() -> None:
    from accounts.models import Heartbeat

    deadline = time.monotonic() + 180
    while Heartbeat.WORKER in Heartbeat.objects.silent():
        assert time.monotonic() < deadline, "the worker did not start"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Launch the Chromium that was found, without the errands it would run on a closed network."""
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync"]
    if os.geteuid() == 0:
        quiet.append("--no-sandbox")  # Chromium refuses to run as root with it
    found = os.environ[CHROMIUM]
    return {"args": quiet} if found == PLAYWRIGHTS else {"args": quiet, "executable_path": found}


@pytest.fixture
def mailed_at_once() -> Iterator[None]:
    """Mails that a worker would send are sent by this process."""
    from panelbench.celery import app

    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False
