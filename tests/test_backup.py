"""`panelbench backup` and `panelbench restore`: the whole instance as one file, and back on either database."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import psycopg
import pytest

from tests.releases import archives
from tests.releases.databases import copy_migrated, filled_instance, migrated_instance, once_in_a_run, release_database
from tests.releases.running import environment
from tests.releases.test_migrating import MEANT

RELEASE = max(MEANT)


def panelbench(*arguments: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "panelbench.cli", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def filled() -> dict[str, str]:
    """An instance of today's version that is filled, with work under way; its variables."""
    copy = once_in_a_run("filled", lambda folder: shutil.copytree(filled_instance(RELEASE), folder))
    return environment(copy, providers="")


@pytest.fixture(scope="module")
def kept(filled: dict[str, str]) -> Path:
    """Its backup."""

    def keep(folder: Path) -> None:
        folder.mkdir()
        made = panelbench("backup", str(folder / "kept.zip"), variables=filled)
        assert made.returncode == 0, made.stderr

    path = once_in_a_run("kept", keep) / "kept.zip"
    assert path.stat().st_mode & 0o777 == 0o600
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of an instance that was never started, on each kind of database."""
    with release_database(request.param) as url:
        address = {"DATABASE_URL": url} if url else {}
        yield environment(tmp_path / "restored", providers="", **address)


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated(request: pytest.FixtureRequest, django_db_setup: None, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of an instance that holds nothing yet, on each kind of database."""
    with migrated_instance(request.param, tmp_path / "migrated") as variables:
        yield variables


def test_what_is_restored_is_the_same_row_by_row(kept: Path, empty: dict[str, str], tmp_path: Path) -> None:
    restored = panelbench("restore", str(kept), variables=empty)
    require_same(kept, restored, empty, tmp_path)


def test_what_is_restored_into_an_instance_that_holds_nothing_is_the_same(
    kept: Path, migrated: dict[str, str], tmp_path: Path
) -> None:
    """Its tables are those of the backup, and stay."""
    restored = panelbench("restore", str(kept), variables=migrated)
    require_same(kept, restored, migrated, tmp_path)


def require_same(kept: Path, restored: subprocess.CompletedProcess[str], empty: dict[str, str], tmp_path: Path) -> None:
    assert restored.returncode == 0, restored.stderr
    again = tmp_path / "again.zip"
    assert panelbench("backup", str(again), variables=empty).returncode == 0
    assert archives.differences(kept, again) == []
    assert archives.tables(again).keys() == archives.tables(kept).keys()
    assert archives.files(again).keys() == archives.files(kept).keys() != set()
    assert new_project(empty) == last_project(kept) + 1  # what audit entries name is not given out again


def last_project(archive: Path) -> int:
    """The last primary key that a project got, be it there or deleted since."""
    with ZipFile(archive) as opened:
        return int(json.loads(opened.read("manifest.json"))["tables"]["accounts_project"]["last_key"])


def new_project(variables: dict[str, str]) -> int:
    """The primary key that a project gets now."""
    columns = "slug, name, description, requires_second_factor, created_at"
    statement = f"INSERT INTO accounts_project ({columns}) VALUES ('new', 'New', '', false, {{now}})"
    if url := variables.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            found = connection.execute(f"{statement.format(now='now()')} RETURNING id").fetchone()
    else:
        path = Path(variables["PANELBENCH_DATA_DIR"]) / "panelbench.sqlite3"
        with contextlib.closing(sqlite3.connect(path)) as file:
            found = file.execute(f"{statement.format(now='CURRENT_TIMESTAMP')} RETURNING id").fetchone()
    assert found
    return int(found[0])


def test_a_filled_instance_is_refused_unless_told_and_stays_as_it_is(
    kept: Path, migrated: dict[str, str], tmp_path: Path
) -> None:
    created = panelbench("create_user", "somebody@panelbench.test", variables=migrated)
    assert created.returncode == 0, created.stderr
    before, after = tmp_path / "before.zip", tmp_path / "after.zip"
    assert panelbench("backup", str(before), variables=migrated).returncode == 0
    refused = panelbench("restore", str(kept), variables=migrated)
    assert refused.returncode == 1
    assert "this instance is not empty: accounts_user has rows" in refused.stderr
    assert panelbench("backup", str(after), variables=migrated).returncode == 0
    assert archives.differences(before, after) == []

    told = panelbench("restore", str(kept), "--replace", variables=migrated)
    assert told.returncode == 0, told.stderr
    again = tmp_path / "again.zip"
    assert panelbench("backup", str(again), variables=migrated).returncode == 0
    assert archives.differences(kept, again) == []
    assert "somebody@panelbench.test" not in json.dumps(archives.tables(again)["accounts_user"])


def rewritten(path: Path, to: Path, **members: bytes) -> Path:
    """A copy of an archive with other content in some of its members; the manifest's digests stay as they are."""
    with ZipFile(path) as source, ZipFile(to, "w") as target:
        for name in source.namelist():
            target.writestr(name, members.get(name.partition(".")[0].replace("/", "_"), source.read(name)))
    return to


def newer(path: Path, to: Path) -> Path:
    """The backup as a later version would have made it."""
    with ZipFile(path) as opened:
        manifest = json.loads(opened.read("manifest.json"))
    manifest["panelbench"] = "99.0"
    manifest["migrations"].append(["annotation", "0999_of_tomorrow"])
    return rewritten(path, to, manifest=json.dumps(manifest).encode())


def damaged(path: Path, to: Path) -> Path:
    """The backup with one rating more than was written."""
    with ZipFile(path) as opened:
        ratings = opened.read("tables/annotation_rating.jsonl")
    return rewritten(path, to, tables_annotation_rating=ratings + ratings.splitlines(keepends=True)[-1])


def torn(path: Path, to: Path) -> Path:
    """The first half of the file, as a full disk leaves it."""
    to.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return to


REFUSED = {
    newer: "made by version 99.0, which is newer than this one",
    damaged: "this backup is damaged: tables/annotation_rating.jsonl is not what was written",
    torn: "this is not a backup, or it is damaged",
}


def test_what_cannot_be_trusted_is_refused_before_anything_is_touched(kept: Path, tmp_path: Path) -> None:
    copy_migrated(tmp_path / "untouched")
    variables = environment(tmp_path / "untouched", providers="")
    assert panelbench("create_user", "somebody@panelbench.test", variables=variables).returncode == 0
    before, after = tmp_path / "before.zip", tmp_path / "after.zip"
    assert panelbench("backup", str(before), variables=variables).returncode == 0
    for spoil, sentence in REFUSED.items():
        refused = panelbench("restore", str(spoil(kept, tmp_path / "spoilt.zip")), "--replace", variables=variables)
        assert (refused.returncode, sentence in refused.stderr) == (1, True), refused.stderr
        assert "Traceback" not in refused.stderr
    assert panelbench("backup", str(after), variables=variables).returncode == 0
    assert archives.differences(before, after) == []


def test_a_running_instance_is_not_restored_over(kept: Path, tmp_path: Path) -> None:
    variables = environment(tmp_path / "running", providers="")
    (tmp_path / "running").mkdir()
    with (tmp_path / "running" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = panelbench("restore", str(kept), variables=variables)
    assert refused.returncode == 1
    assert "an instance runs on" in refused.stderr


def test_the_signing_key_goes_with_it_unless_it_is_kept_apart(tmp_path: Path) -> None:
    own = environment(tmp_path / "own", providers="")
    del own["SECRET_KEY"]
    other = own | {"PANELBENCH_DATA_DIR": str(tmp_path / "other")}
    third = own | {"PANELBENCH_DATA_DIR": str(tmp_path / "third")}
    for name in ("own", "other", "third"):
        copy_migrated(tmp_path / name)
    assert panelbench("backup", str(tmp_path / "with.zip"), variables=own).returncode == 0
    key = (tmp_path / "own" / "secret_key").read_text()
    assert panelbench("restore", str(tmp_path / "with.zip"), variables=other).returncode == 0
    assert (tmp_path / "other" / "secret_key").read_text() == key

    assert panelbench("backup", str(tmp_path / "without.zip"), "--without-key", variables=own).returncode == 0
    assert "secret_key" not in ZipFile(tmp_path / "without.zip").namelist()
    restored = panelbench("restore", str(tmp_path / "without.zip"), variables=third)
    assert "SECRET_KEY is not the one of the backup" in restored.stderr


def test_a_backup_by_way_of_pipes(kept: Path, filled: dict[str, str], tmp_path: Path) -> None:
    copy_migrated(tmp_path / "restored")
    variables = environment(tmp_path / "restored", providers="")
    run = [sys.executable, "-m", "panelbench.cli"]
    made = subprocess.run([*run, "backup", "-"], env=filled, capture_output=True, check=True)
    subprocess.run([*run, "restore", "-"], env=variables, input=made.stdout, capture_output=True, check=True)
    again = tmp_path / "again.zip"
    assert panelbench("backup", str(again), variables=variables).returncode == 0
    assert archives.differences(kept, again) == []


PAIR = (
    "INSERT INTO accounts_heartbeat (name, kind, seen_at) VALUES ('{key}', 'none', '2026-01-01 00:00:00+00:00')",
    "INSERT INTO django_session (session_key, session_data, expire_date) VALUES ('{key}', '', '2026-01-01 00:00:00')",
)
"""One row in the first table that is read, one in the last but few; both or neither."""


def write_pairs(variables: dict[str, str], ended: threading.Event) -> None:
    url = variables.get("DATABASE_URL")
    path = Path(variables["PANELBENCH_DATA_DIR"]) / "panelbench.sqlite3"
    connection: Any = psycopg.connect(url) if url else sqlite3.connect(path, timeout=30)
    with contextlib.closing(connection):
        while not ended.wait(0.001):  # else it would take the time of the backup that it is to disturb
            for statement in PAIR:
                connection.execute(statement.format(key=uuid4().hex))
            connection.commit()


def test_a_backup_is_of_one_moment_while_others_write(migrated: dict[str, str], tmp_path: Path) -> None:
    ended = threading.Event()
    writer = threading.Thread(target=write_pairs, args=(migrated, ended))
    writer.start()
    try:
        made = panelbench("backup", str(tmp_path / "moment.zip"), variables=migrated)
    finally:
        ended.set()
        writer.join()
    assert made.returncode == 0, made.stderr
    found = archives.tables(tmp_path / "moment.zip")
    assert len(found["accounts_heartbeat"]) == len(found["django_session"]) > 0


def test_no_half_backup_is_left_and_none_is_written_over(kept: Path, filled: dict[str, str], tmp_path: Path) -> None:
    there = panelbench("backup", str(kept), variables=filled)
    assert (there.returncode, "is there already" in there.stderr) == (1, True)
    if Path("/dev/full").exists():
        (tmp_path / "full.zip.part").symlink_to("/dev/full")
        full = panelbench("backup", str(tmp_path / "full.zip"), variables=filled)
        assert full.returncode == 1
        assert "No space left on device" in full.stderr
        assert list(tmp_path.iterdir()) == []
