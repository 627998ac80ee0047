"""The queue of an embedded instance: messages that appear whole, each taken once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from panelbench.celery import TRANSPORT, app, folder_options

PROGRAM = """
import sys
from pathlib import Path
from queue import Empty
from kombu import Connection
from panelbench.celery import TRANSPORT, folder_options

role, folder, count, name = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
channel = Connection("filesystem://localhost", transport=TRANSPORT, transport_options=folder_options(folder)).channel()
channel.queue_declare("work")
if role == "write":
    for number in range(count):
        channel._put("work", {"body": "x" * 200_000, "number": f"{name}-{number}"})
else:
    while not (folder / "stop").exists() or channel._size("work"):
        try:
            taken = channel._get("work")
        except Empty:
            continue
        assert len(taken["body"]) == 200_000
        print(taken["number"], flush=True)
"""


def channel(folder: Path) -> Any:
    options = folder_options(folder)
    return Connection("filesystem://localhost", transport=TRANSPORT, transport_options=options).channel()


class Late:
    """Content that is asked for while a message is being written; just then, somebody reads."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.seen: list[Any] = []

    def __json__(self) -> str:
        try:
            self.seen.append(self.reader._get("work"))
        except Empty:
            self.seen.append(None)
        return "written"


def test_who_reads_while_a_message_is_written_finds_no_half_of_it(tmp_path: Path) -> None:
    writer, reader = channel(tmp_path), channel(tmp_path)
    late = Late(reader)
    writer._put("work", {"body": late})
    assert late.seen == [None]
    assert reader._get("work") == {"body": "written"}


def test_of_messages_from_three_processes_each_is_taken_once_and_whole(tmp_path: Path) -> None:
    channel(tmp_path)

    def run(role: str, name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, role, str(tmp_path), "60", name]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(run, "read", name) for name in ("r1", "r2")]
        writers = [pool.submit(run, "write", name) for name in ("w1", "w2", "w3")]
        written = [writer.result() for writer in writers]
        (tmp_path / "stop").touch()
        read = [reader.result() for reader in readers]
    assert [process.stderr for process in (*written, *read) if process.returncode] == []
    taken = sorted(line for process in read for line in process.stdout.split())
    assert taken == sorted(f"{name}-{number}" for name in ("w1", "w2", "w3") for number in range(60))


def test_messages_are_taken_in_the_order_in_which_they_came_and_a_broken_one_is_left_out(tmp_path: Path) -> None:
    one = channel(tmp_path)
    for number in range(12):
        one._put("work", {"number": number})
    folder = tmp_path / "messages"
    (folder / "0_broken.work.msg").write_bytes(b'{"body": "cut of')
    assert [one._get("work")["number"] for _ in range(12)] == list(range(12))
    assert list(folder.iterdir()) == []
    with pytest.raises(Empty):
        one._get("work")


def test_queues_that_two_processes_bind_at_once_are_both_kept(tmp_path: Path) -> None:
    one, two = channel(tmp_path), channel(tmp_path)
    for number in range(20):
        (one, two)[number % 2]._queue_bind("celery", f"key{number}", "", f"queue{number}")
    assert len(one.get_table("celery")) == 20
    two._delete("queue3", "celery", "key3", "")
    assert "queue3" not in {entry.queue for entry in one.get_table("celery")}


def test_an_embedded_instance_queues_this_way(settings: Any) -> None:
    if settings.REDIS_URL:
        pytest.skip("this run has Redis")
    with app.connection_for_write() as connection:
        assert type(connection.channel()).__module__ == "panelbench.queues"


def test_every_process_that_sets_django_up_sends_tasks_by_our_application() -> None:
    """Without it a task has no `delay_on_commit`, and an import by page ends in a fault of the server."""
    program = (
        "import os; os.environ.update(DJANGO_SETTINGS_MODULE='panelbench.settings', DEBUG='on')\n"
        "import django; django.setup()\n"
        "from annotation.tasks import store_import\n"
        "print(store_import.app.main, hasattr(store_import, 'delay_on_commit'))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout == "panelbench True\n"


@pytest.mark.parametrize(("queues", "loaded"), [("analytics,default", "True"), ("judging", "False")])
def test_workers_of_figures_load_statistics_before_their_first_task(queues: str, loaded: str) -> None:
    program = (
        "import os, sys; os.environ.update(DJANGO_SETTINGS_MODULE='panelbench.settings', DEBUG='on')\n"
        "import django; django.setup()\n"
        "from celery import signals\n"
        "from panelbench.celery import app\n"
        f"app.amqp.queues.select({queues.split(',')})\n"
        "signals.worker_process_init.send(sender=None)\n"
        "print('pandas' in sys.modules, 'vl_convert' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [loaded, loaded]
