"""What is left to the nightly tier, and when it is due: on small repositories of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import tiers


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Aino", "-c", "user.email=aino@panelbench.test", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, name: str) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(name, "utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(tiers.BASE, raising=False)
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_every_entry_is_there_and_covers_files_that_are_there() -> None:
    files = [path.relative_to(tiers.ROOT).as_posix() for path in tiers.ROOT.rglob("*") if ".venv" not in path.parts]
    for entry, covered in tiers.NIGHTLY.items():
        assert (tiers.ROOT / entry).exists(), entry
        for pattern in (*covered, *tiers.COVERED_BY_ALL):
            assert any(tiers.fnmatchcase(path, pattern) for path in files), (entry, pattern)


def test_what_changed_since_the_commit_before(repository: Path) -> None:
    first = commit(repository, "first.py")
    assert tiers.changed_files(repository) is None, "no commit before it: all may have changed"
    commit(repository, 'õun ja "pirn".py')
    (repository / "not added.py").touch()
    assert tiers.changed_files(repository) is None, "on main itself, nobody knows what was tested last"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tiers.BASE, first)
        assert tiers.changed_files(repository) == {'õun ja "pirn".py', "not added.py"}
    git(repository, "checkout", "-b", "branch")
    git(repository, "mv", "first.py", "renamed.py")
    commit(repository, "second.py")
    commit(repository, "third.py")
    since_main = {"first.py", "renamed.py", "second.py", "third.py", "not added.py"}
    assert tiers.changed_files(repository) == since_main
    git(repository, "checkout", "main")
    git(repository, "merge", "branch")
    assert tiers.changed_files(repository) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tiers.BASE, first)
        assert tiers.changed_files(repository) == since_main | {'õun ja "pirn".py'}


def test_where_nobody_knows_what_changed_everything_is_due(repository: Path, tmp_path: Path) -> None:
    commit(repository, "first.py")
    commit(repository, "second.py")
    shallow, unpacked = tmp_path / "shallow", tmp_path.parent / "unpacked"
    git(tmp_path, "clone", "--depth", "1", f"file://{repository}", str(shallow))
    unpacked.mkdir()
    assert tiers.changed_files(shallow) is None and tiers.changed_files(unpacked) is None
    assert tiers.nightly_due(None) == frozenset(tiers.NIGHTLY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tiers.BASE, "no such commit")
        assert tiers.changed_files(repository) is None


def test_what_is_due() -> None:
    assert tiers.nightly_due([]) == tiers.nightly_due(["docs/glossary.md", "CHANGELOG.md"]) - {
        "tests/analytics/stats/test_notebook.py"
    }
    assert tiers.nightly_due(["CHANGELOG.md"]) == frozenset()
    for shared in ("requirements/dev.txt", "tests/conftest.py", "tests/annotation/scene.py"):
        assert tiers.nightly_due([shared]) == frozenset(tiers.NIGHTLY)
    assert tiers.nightly_due(["tests/releases/test_migrating.py"]) == {"tests/releases"}
    assert "tests/releases" in tiers.nightly_due(["annotation/migrations/0099_new.py"])
    assert "tests/test_backup.py" in tiers.nightly_due(["platform/panelbench/backup.py"])
    assert "tests/browser/test_campaign_life.py" in tiers.nightly_due(["templates/annotation/_rubric.html"])
    of_statistics = tiers.nightly_due(["analytics/stats/core/rows.py"])
    assert (
        "tests/analytics/stats/test_reproductions.py" in of_statistics and "tests/test_backup.py" not in of_statistics
    )


def test_a_file_belongs_to_its_entry_and_no_other() -> None:
    assert tiers.nightly_of(tiers.ROOT / "tests/releases/test_migrating.py") == "tests/releases"
    assert tiers.nightly_of(tiers.ROOT / "tests/test_backup.py") == "tests/test_backup.py"
    assert tiers.nightly_of(tiers.ROOT / "tests/test_walk.py") is None
