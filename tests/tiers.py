"""Which tests are run when: the nightly tier, and what has to change for it to be run the same day.

`make test` leaves the modules of NIGHTLY out, `make test-all` runs them, and `.ci/run` runs those that are *due*: the
ones that cover a file which differs from the commit before. That commit is the one that PANELBENCH_BASE names, else
where this branch left main. If none is known (main itself, an unpacked archive, a clone without history), all of them
are due. What is named on pytest's command line is always run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "PANELBENCH_BASE"
MAINS = ("origin/HEAD", "origin/main", "main")

# Whatever these change may change every test: what is installed, and how tests are run.
COVERED_BY_ALL = ("requirements/*", "pyproject.toml", "Makefile", ".ci/*")
STATISTICS = ("analytics/stats/*", "bench/*")
IMPORTS = ("annotation/imports/*", "annotation/readers/*", "annotation/models/*", "judging/imports/*", "examples/*")
STORED = ("*/migrations/*", "*/models.py", "*/models/*", "*/backup*", "*/bundle*", "platform/panelbench/*")
SERVED = ("platform/*", "*/api/*", "*/api.py", "*/urls.py", "docker-compose.yml", "Dockerfile", ".env.example")
NUMBERS = ("analytics/[!s]*", "analytics/s[!t]*", "analytics/study/*")  # without `analytics/stats`
PAGES = ("templates/*", "static/*", "locale/*", "platform/*", "annotation/*", "judging/*", *NUMBERS)
INSTALLED = ("platform/*", "static/*", "locale/*", "templates/*", "*/migrations/*")

NIGHTLY: Mapping[str, tuple[str, ...]] = {
    "tests/releases": (*STORED, "judging/*", "annotation/*"),
    "tests/test_backup.py": (*STORED, "annotation/bulk.py", "annotation/exports.py", "annotation/writers/archives.py"),
    "tests/test_wheel.py": INSTALLED,
    "tests/test_supervisor.py": ("platform/panelbench/*",),
    "tests/test_outages.py": ("platform/*", "*/desk/*", "*/urls.py", "*/settings.py"),
    "tests/client/test_alone.py": ("platform/client/*",),
    "tests/test_schema.py": (*SERVED, "annotation/*", "judging/*", *NUMBERS),
    "tests/test_estonian.py": (*IMPORTS, *STATISTICS, "docs/estonian-study.md"),
    "tests/judging/test_equal_rows.py": (*IMPORTS, "annotation/*", "judging/*"),
    "tests/annotation/test_kill.py": (*IMPORTS, "annotation/*", "platform/accounts/*", "platform/panelbench/*"),
    "tests/judging/test_lying_provider.py": ("judging/*", "platform/*", "annotation/models/*", "bench/*"),
    "tests/judging/test_kill.py": ("judging/*", "annotation/models/*", "platform/accounts/*", "platform/panelbench/*"),
    "tests/browser/test_campaign_life.py": PAGES,
    "tests/browser/test_demo.py": PAGES,
    "tests/browser/test_promises.py": PAGES,
    "tests/browser/test_qualification_life.py": PAGES,
    "tests/browser/test_upload.py": PAGES,
    "tests/annotation/test_mutants_stored.py": (*IMPORTS, "annotation/*", "bench/*"),
    "tests/analytics/test_published_figures.py": (*IMPORTS, "analytics/*"),
    "tests/analytics/stats/test_reproductions.py": (*STATISTICS, "docs/reproductions.md"),
    "tests/analytics/stats/test_fuzz.py": STATISTICS,
    "tests/analytics/stats/test_notebook.py": (*STATISTICS, "docs/*"),
}
"""By module or folder, what it covers: patterns of paths from the root, in which `*` also stands for slashes."""


def nightly_of(path: Path) -> str | None:
    """The entry of NIGHTLY that this file belongs to."""
    inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
    return next((entry for entry in NIGHTLY if inside == entry or inside.startswith(f"{entry}/")), None)


def nightly_left_out(tier: str) -> frozenset[str]:
    """The entries of NIGHTLY that a run does not need: of tier `none` all, of `all` none, of `due` those not due."""
    if tier == "due":
        return frozenset(NIGHTLY) - nightly_due(changed_files(ROOT))
    return frozenset() if tier == "all" else frozenset(NIGHTLY)


def nightly_due(changed: Iterable[str] | None) -> frozenset[str]:
    """The entries that cover one of the changed files; all where nobody knows what changed."""
    if changed is None:
        return frozenset(NIGHTLY)
    paths = tuple(changed)
    return frozenset(
        entry
        for entry, covered in NIGHTLY.items()
        if any(
            path.startswith(entry)
            or _is_shared_by_tests(path)
            or any(fnmatchcase(path, pattern) for pattern in (*covered, *COVERED_BY_ALL))
            for path in paths
        )
    )


def _is_shared_by_tests(path: str) -> bool:
    return path.startswith("tests/") and not path.rpartition("/")[2].startswith("test_")


def changed_files(root: Path) -> frozenset[str] | None:
    """The files that differ from the commit before, committed or not, also under their earlier names; None if that
    commit is not known.
    """
    try:
        if not (base := os.environ.get(BASE) or _commit_before(root)):
            return None
        committed = _git(root, "diff", "--name-only", "--no-renames", "-z", base, "--")
        added = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    except (OSError, subprocess.CalledProcessError):
        return None
    return frozenset(path for path in (committed + added).split("\0") if path)


def _commit_before(root: Path) -> str:
    """Where this branch left main; empty on main itself: several commits may have come since it was tested last."""
    head = _git(root, "rev-parse", "HEAD").strip()
    for main in MAINS:
        try:
            base = _git(root, "merge-base", "HEAD", main).strip()
        except subprocess.CalledProcessError:
            continue
        if base != head:
            return base
    return ""


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
