"""The console script, as its own process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from panelbench import cli


def panelbench(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    command = [sys.executable, "-m", "panelbench.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=keep | variables, capture_output=True, text=True, check=False)


def test_help_lists_its_own_commands_and_djangos(tmp_path: Path) -> None:
    shown = panelbench("help", cwd=tmp_path)
    assert shown.returncode == 0
    assert {"panelbench demo", "panelbench stats"} <= {line[:16].rstrip() for line in shown.stdout.splitlines()}
    assert "migrate" in shown.stdout


def test_statistics_wait_for_no_django(tmp_path: Path) -> None:
    program = (
        "import sys; from panelbench import cli\n"
        "try: cli.main(['stats', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'django', 'celery', 'pandas', 'scipy'} & set(sys.modules), 'slow to start'"
    )
    shown = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "agreement" in shown.stdout


def test_tasks_find_their_broker_in_every_process(tmp_path: Path) -> None:
    program = (
        "import django; django.setup()\n"
        "from analytics.tasks import compute_numbers\n"
        "assert compute_numbers.app.main == 'panelbench', compute_numbers.app\n"
        "assert compute_numbers.delay_on_commit"
    )
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    own = {"DJANGO_SETTINGS_MODULE": "panelbench.settings", "PANELBENCH_DATA_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=keep | own, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_used_port_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shown = panelbench("up", "--port", port, cwd=tmp_path)
    assert shown.returncode == 2
    assert f"port {port}: Address already in use. Choose another with --port." in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_belongs_to_one_instance(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        shown = panelbench("up", "--port", "0", cwd=tmp_path, PANELBENCH_DATA_DIR=str(tmp_path))
    assert shown.returncode == 2
    assert "another instance runs on" in shown.stderr


@pytest.mark.parametrize("key", ["", "short", "django-insecure-" + "x" * 60])
@pytest.mark.parametrize("command", ["up", "web"])
def test_a_server_refuses_to_start_without_a_strong_key(tmp_path: Path, command: str, key: str) -> None:
    variables = {"SECRET_KEY": key, "DATABASE_URL": "postgres://nobody@127.0.0.1:9/none"}
    with socket.create_server(("127.0.0.1", 0)) as taken:  # the key is looked at before the port
        shown = panelbench(command, "--port", str(taken.getsockname()[1]), cwd=tmp_path, **variables)
    assert shown.returncode == 2
    assert "cannot start: SECRET_KEY" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_an_embedded_instance_makes_a_key_of_its_own_that_nobody_else_reads(tmp_path: Path) -> None:
    assert panelbench("check", cwd=tmp_path).returncode == 0
    key = tmp_path / ".panelbench" / "secret_key"
    assert key.stat().st_mode & 0o777 == 0o600
    first = key.read_text()
    assert panelbench("check", cwd=tmp_path).returncode == 0
    assert key.read_text() == first


@pytest.mark.parametrize("standard_input", ["</dev/null", "<&-"], ids=["nothing to read", "no standard input"])
def test_a_question_without_a_terminal_ends_with_what_to_give(tmp_path: Path, standard_input: str) -> None:
    asks = f'exec "{sys.executable}" -m panelbench.cli flush {standard_input}'
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    shown = subprocess.run(["sh", "-c", asks], cwd=tmp_path, env=keep, capture_output=True, text=True, check=False)
    assert shown.returncode == cli.UNANSWERED
    assert "no terminal to answer it. Give --yes" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_database_without_tables_says_how_to_make_them(tmp_path: Path) -> None:
    shown = panelbench("judge_status", "1", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (cli.FAILED, "")
    assert shown.stderr == "The database has no tables of this version yet. Run `panelbench migrate` first.\n"
