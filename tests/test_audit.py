"""`make audit`: what it finds, and what it lets pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import audit

TAIL = "Zk3vQ9xW1mN7bT5rY8uP2sD4fG6hJ0lK3cV9aE1iO5q"


@pytest.mark.parametrize(
    "line",
    [
        f"OPENAI_API_KEY=sk-proj-{TAIL}",
        f'SECRET_KEY = "{TAIL}"',
        f"Authorization: Bearer pb_{TAIL}",
        "AKIA" + "IOSFODNN7EXAMPLF",
        "DATABASE_URL=postgres://panelbench:" + "hunter22x@db/panelbench",
        "-----BEGIN PRIVATE " + f"KEY-----\n{TAIL}\n{TAIL}",
    ],
)
def test_a_secret_is_found_with_its_file_and_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "settings.txt"
    file.write_text(f"first line\n{line}\n")
    (sentence,) = {found.rpartition(":")[0] for found in audit.in_files([file])}
    assert sentence == f"{file}:2"


@pytest.mark.parametrize(
    "line",
    [
        "postgres://user:password@host:5432/name",
        'SECRET_KEY = env.str("SECRET_KEY")',
        f'token = "{TAIL}"  # not a secret: made up for a test',
        "the task-oriented dialogues that sk-learn knows",
    ],
)
def test_what_only_looks_like_one_passes(line: str) -> None:
    assert audit.secrets_in(line) == []


def test_a_vulnerable_dependency_is_a_finding() -> None:
    report = {
        "dependencies": [
            {"name": "fine", "version": "1.0", "vulns": []},
            {"name": "weak", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]},
        ]
    }
    assert audit.vulnerabilities(json.dumps(report)) == ["weak 2.0: PYSEC-1, mended in 2.1"]
    with pytest.raises(ValueError, match=r"Expecting value"):
        audit.vulnerabilities("no report at all")


def test_a_database_that_does_not_answer_is_not_reachable() -> None:
    assert not audit.is_reachable("http://127.0.0.1:9/")
