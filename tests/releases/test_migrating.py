"""Databases of earlier releases, filled and with work under way: migrated, all is there, and the work goes on.

`tests/releases/make.py` says how an archive is made and what it holds.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.provider_server import running_provider
from tests.releases import archives, schema
from tests.releases.databases import filled_instance, migrated_instance, release_database, unpack_release
from tests.releases.make import DIALOGUES, LEAD
from tests.releases.partly import FIRST_SQUASH
from tests.releases.running import Person, environment, running_release, wait_for

ROOT = Path(__file__).resolve().parents[2]
IN_JOBS = ("beat_at", "done", "lease", "total")  # of an import: `carried_to_jobs`
MEANT: dict[str, frozenset[str]] = {
    "0.1.0": frozenset(
        {"django_content_type.model", "accounts_auditentry.subject", *(f"annotation_import.{name}" for name in IN_JOBS)}
    )
}
"""By release, the tables and columns (`table`, `table.column`) that later versions change on purpose."""

HALF_WAY = {
    "accounts": "0020_project_deletion",  # all of it: its squashed migration stands for them, those of others do not
    "annotation": "0034_certainty",
    "judging": "0022_generation_plans",
    "analytics": "0013_share_shows_generators",
}
"""The last migration of each app in a database that was made between the first squash and the second."""


@pytest.fixture
def declared() -> Iterator[str]:
    """The simulated provider under the name that the archives know, in good health."""
    with running_provider() as provider:
        yield json.dumps([{"name": "simulated", "base_url": provider.base_url, "simulated": True}])


def panelbench(*arguments: str, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "panelbench.cli", *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("release", sorted(MEANT))
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_everything_of_a_release_is_there_and_its_work_goes_on(
    release: str, kind: str, declared: str, django_db_setup: None, tmp_path: Path
) -> None:
    before, after = tmp_path / "before.zip", tmp_path / "after.zip"
    old = environment(unpack_release(release, tmp_path / "old"), providers=declared)
    panelbench("backup", str(before), variables=old)  # as that release left it
    with release_database(kind) as url:
        if kind == "sqlite":
            shutil.copytree(filled_instance(release), tmp_path / "new")
            new = environment(tmp_path / "new", providers=declared)
        else:
            new = environment(tmp_path / "new", providers=declared, DATABASE_URL=url)
            panelbench("restore", str(before), variables=new)
        panelbench("backup", str(after), variables=new)
        assert archives.differences(before, after, meant=MEANT[release]) == []
        assert carried_to_jobs(before, after)
        with migrated_instance(kind, tmp_path / "empty") as empty:
            assert schema.of(new) == schema.of(empty), "squashed migrations make other tables than the old ones"
        with running_release(new, "--concurrency", "4", log=tmp_path / "log") as address:
            work_goes_on(address, tmp_path / "log")


@pytest.mark.parametrize(("kind", "last"), [("sqlite", FIRST_SQUASH), ("postgresql", HALF_WAY)])
def test_a_database_from_between_two_squashes_gets_the_same_tables(
    kind: str, last: dict[str, str], django_db_setup: None, tmp_path: Path
) -> None:
    with release_database(kind) as url, migrated_instance(kind, tmp_path / "empty") as empty:
        half = migrated_partly(tmp_path / "half", last, **({"DATABASE_URL": url} if url else {}))
        assert schema.of(half) != schema.of(empty)
        panelbench("migrate", variables=half)
        panelbench("migrate", "--check", variables=half)
        assert schema.of(half) == schema.of(empty)


def test_a_backup_from_between_two_squashes_is_restored(django_db_setup: None, tmp_path: Path) -> None:
    half, backup = migrated_partly(tmp_path / "half", HALF_WAY), str(tmp_path / "half.zip")
    panelbench("backup", backup, variables=half)
    with migrated_instance("sqlite", tmp_path / "new") as new:
        whole = schema.of(new)
        panelbench("restore", backup, variables=new)
        panelbench("migrate", "--check", variables=new)
        assert schema.of(new) == whole


def migrated_partly(folder: Path, last: dict[str, str], **variables: str) -> dict[str, str]:
    """The variables of an empty instance with the migrations up to these."""
    folder.mkdir()
    instance = environment(folder, providers="", **variables)
    nodes = [f"{app}.{name}" for app, name in last.items()]
    subprocess.run([sys.executable, "-m", "tests.releases.partly", *nodes], env=instance, cwd=ROOT, check=True)
    return instance


def carried_to_jobs(before: Path, after: Path) -> bool:
    """Whether every import that was under way has its lease, heartbeat and progress in a job."""
    was, now = archives.tables(before)["annotation_intake"], archives.tables(after)
    told = {key: [row[name] for name in IN_JOBS] for key, row in was.items() if row["state"] in ("checking", "storing")}
    jobs = {key: now["accounts_job"].get(now["annotation_import"][key]["job_id"], {}) for key in told}
    return bool(told) and told == {key: [job.get(name) for name in IN_JOBS] for key, job in jobs.items()}


def work_goes_on(address: str, log: Path) -> None:
    """Everything that `tests.releases.make` left half done is done."""
    with Person(address, LEAD) as lead, Person(address, second_annotator()) as annotator:
        _submit_the_draft(annotator)
        _store_what_waits(lead)

        def runs_are_done() -> bool:
            runs = lead.progress("demo")
            return all(run["planned"] == run["settled"] for run in runs) and len(runs) == 2

        wait_for(runs_are_done, "the judges' runs to be finished", log=log)

        def is_stored() -> bool:
            return "Being stored" in {each["name"] for each in lead.api("GET", "projects/demo/datasets/")["results"]}

        wait_for(is_stored, "the import to be stored", log=log)
        page = lead.api("GET", "projects/demo/datasets/")["results"]
        assert {each["name"]: each["items"] for each in page}["Being stored"] == DIALOGUES


def second_annotator() -> str:
    import yaml

    from panelbench.demo import loading

    panels = yaml.safe_load((loading.CONTENT / "panel.yaml").read_text("utf-8"))["panels"]
    return str(panels[1]["seats"][0]["email"])


def _submit_the_draft(annotator: Person) -> None:
    key, scores = annotator.take()
    page = annotator.get(f"/desk/at/{key}/").text
    assert re.search(r"<input[^>]*\schecked", page), "the draft is not on the desk"
    answer = annotator.post(f"/desk/at/{key}/submit/", key=key, seconds="9", **scores)
    assert answer.status_code == 307, answer.text[-800:]
    assert annotator.take()[0] != key


def _store_what_waits(lead: Person) -> None:
    imports = lead.api("GET", "projects/demo/imports/")["results"]
    waiting = next(each for each in imports if each["target"].get("name") == "Waiting to be stored")
    lead.api("POST", f"projects/demo/imports/{waiting['id']}/store/")
    assert lead.api("GET", f"projects/demo/imports/{waiting['id']}/")["state"] == "stored"
