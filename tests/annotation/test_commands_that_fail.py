"""A full disk, a locked database, a reader that goes away: a command says so and leaves nothing behind."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from accounts import jobs
from annotation.imports import lifecycle, opening
from annotation.models import Dataset
from tests.cast import Cast
from tests.releases.databases import copy_migrated
from tests.workers import long_after

ROOT = Path(__file__).parents[2]
ITEMS = "id,language,answer\n" + "".join(f"d{n},et,Vastus {n} {'pikk ' * 40}\n" for n in range(400))


class Machine:
    """A machine of its own, on the embedded default, with one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "panelbench.sqlite3"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {**kept, "DEBUG": "on", "PANELBENCH_DATA_DIR": str(folder), "PYTHONWARNINGS": "ignore"}
        self.environment["PYTHONPATH"] = str(folder)
        copy_migrated(folder)
        assert (
            self.run("create_user", "aino@example.org", "--password-stdin", told="six-words-in-a-row-here").returncode
            == 0
        )
        made = self.run("create_project", "Kassa", "--lead", "aino@example.org")
        assert made.returncode == 0, made.stderr

    def run(
        self, *arguments: str, largest: int = 0, shell: str = "", told: str = "", settings: str = "panelbench.settings"
    ) -> subprocess.CompletedProcess[str]:
        """One command; ``largest`` is the most bytes that a file may have, as if the disk were full then."""

        def limit() -> None:
            if largest:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        piped = f"{' '.join(command)} {shell}"
        environment = {**self.environment, "DJANGO_SETTINGS_MODULE": settings}
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", piped] if shell else command,
            cwd=ROOT, env=environment, capture_output=True, text=True, input=told, preexec_fn=limit, check=False,
        )  # fmt: skip

    def imports(self) -> list[tuple[str, str]]:
        with sqlite3.connect(self.database) as database:
            return list(database.execute("SELECT kind, state FROM annotation_import"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture
def items(tmp_path: Path) -> Path:
    (tmp_path / "items.csv").write_text(ITEMS, encoding="utf-8")
    return tmp_path / "items.csv"


def kept_files(machine: Machine) -> list[Path]:
    return [path for path in machine.folder.rglob("*") if path.is_file() and path.name.startswith("file-")]


def test_a_full_disk(machine: Machine, items: Path) -> None:
    told = machine.run("import_dataset", str(items), "--project", "kassa", largest=64 * 1024)
    assert (told.returncode, told.stdout) == (3, ""), told.stderr
    assert told.stderr.splitlines() == ["The disk is full. Free some space, then run the command again."]
    assert (machine.imports(), kept_files(machine)) == ([], [])


def test_a_locked_database(machine: Machine, items: Path) -> None:
    waits_briefly = 'from panelbench.settings import *\nDATABASES["default"]["OPTIONS"]["timeout"] = 1\n'
    (machine.folder / "waits_briefly.py").write_text(waits_briefly, encoding="utf-8")
    with sqlite3.connect(machine.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        told = machine.run("import_dataset", str(items), "--project", "kassa", settings="waits_briefly")
        other.execute("ROLLBACK")
    sentence = "The database is locked: another process is writing to it. Run the command again when that has ended."
    assert (told.returncode, told.stderr.splitlines()) == (3, [sentence])
    assert (machine.imports(), kept_files(machine)) == ([], [])


def test_a_reader_that_goes_away(machine: Machine) -> None:
    told = machine.run("help", "--commands", shell="| true")
    assert (told.returncode, told.stderr.splitlines()) == (3, ["The output was closed before its end."])


@pytest.mark.django_db(transaction=True)
def test_what_a_killed_command_began_is_stored_by_nobody(cast: Cast) -> None:
    file_import = opening.open_import(project=cast.kassa, kind="dataset", files=[("d.csv", ITEMS.encode())])
    lifecycle.start(file_import=file_import)
    assert jobs.sweep_jobs(now=long_after()) == []
    file_import.refresh_from_db()
    assert (file_import.state, Dataset.objects.count()) == ("failed", 0)
    assert "Run it again" in file_import.report["sentence"]
