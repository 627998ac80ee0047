"""What an instance says of itself, with a real worker, a beat and the broker of the run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from kombu import Connection, Producer, Queue
from kombu.common import ignore_errors
from pytest_django.live_server_helper import LiveServer

from accounts.models import Heartbeat
from panelbench import probe
from panelbench.celery import REDIS_TRANSPORT, SWEEPERS, app
from tests.conftest import database_url
from tests.programs import redis_program

ALL_OK = dict.fromkeys(("status", "database", "migrations", "disk", "broker", "worker", "beat"), "ok")


def wait_until(true: Callable[[], bool], *, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


@pytest.fixture
def beat(transactional_db: None) -> Iterator[None]:
    """A real Celery beat on the test's database and broker."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench", "beat", "--pidfile=", "-l", "WARNING"]
    started = subprocess.Popen(command, env={**os.environ, "DATABASE_URL": database_url()})
    try:
        yield
    finally:
        started.terminate()
        started.wait()


@pytest.mark.django_db
def test_without_worker_and_beat_it_is_not_well(client: Client) -> None:
    reply = client.get("/healthz")
    assert reply.status_code == 503
    missing = {"status": "failing", "worker": "no worker is running", "beat": "no beat is running"}
    assert reply.json() == ALL_OK | missing


@pytest.mark.django_db
def test_it_answers_anyone_and_is_not_kept(client: Client) -> None:
    for kind in (Heartbeat.WORKER, Heartbeat.BEAT):
        Heartbeat.objects.pulse(kind, f"{kind}@here")
    reply = client.get("/healthz")
    assert (reply.status_code, reply.json()) == (200, ALL_OK)
    assert "no-store" in reply["Cache-Control"]


@pytest.mark.django_db
def test_a_process_that_fell_silent_is_gone(client: Client) -> None:
    Heartbeat.objects.pulse(Heartbeat.WORKER, "worker:one@here")
    Heartbeat.objects.update(seen_at=timezone.now() - Heartbeat.SILENCE - timedelta(seconds=1))
    assert Heartbeat.objects.silent() == [Heartbeat.WORKER, Heartbeat.BEAT]
    Heartbeat.objects.pulse(Heartbeat.WORKER, "worker:two@here")
    assert Heartbeat.objects.silent() == [Heartbeat.BEAT]


def test_a_worker_and_a_beat_make_it_well(worker: subprocess.Popen[bytes], beat: None, live_server: LiveServer) -> None:
    wait_until(lambda: probe.health(f"{live_server.url}/healthz") == ALL_OK)
    assert probe.run_probe([f"{live_server.url}/healthz"]) == 0


def test_the_probe_tells_parts_apart(transactional_db: None, live_server: LiveServer) -> None:
    url = f"{live_server.url}/healthz"
    assert probe.run_probe([url, "database", "migrations", "broker"]) == 0
    assert probe.run_probe([url, "worker"]) == 1
    assert probe.run_probe([url]) == 1
    assert probe.run_probe(["http://127.0.0.1:9/healthz"]) == 1


@pytest.mark.skipif("not os.environ.get('REDIS_URL')", reason="no Redis to reconnect to")
def test_a_worker_goes_on_after_its_broker_dropped_it(worker: subprocess.Popen[bytes]) -> None:
    """Only connections to this process's Redis database: the others belong to tests that run beside this one."""
    import redis

    own = redis.Redis.from_url(os.environ["REDIS_URL"], single_connection_client=True)
    beside = redis.Redis.from_url(os.environ["REDIS_URL"].rpartition("/")[0] + "/15", single_connection_client=True)
    id_beside, own_id = beside.client_id(), own.client_id()
    connections = own.client_list(_type="normal")
    dropped = [each["id"] for each in connections if each["db"] == str(own.connection.db) and each["id"] != str(own_id)]
    assert dropped
    for connection_id in dropped:
        own.client_kill_filter(_id=connection_id)
    assert beside.client_id() == id_beside
    Heartbeat.objects.all().delete()
    wait_until(lambda: Heartbeat.WORKER not in Heartbeat.objects.silent())
    assert worker.poll() is None


@pytest.mark.skipif(redis_program() is None, reason="no Redis to restart")
def test_a_worker_connects_again_to_a_redis_that_was_killed(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(tmp_path)]
    redis_server = [str(redis_program()), *options]
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "panelbench", "worker", "-c", "1", "-l", "CRITICAL"]
    environment = {**os.environ, "DATABASE_URL": database_url(), "REDIS_URL": f"redis://127.0.0.1:{port}/0"}
    server = subprocess.Popen(redis_server, stdout=subprocess.DEVNULL)
    started = subprocess.Popen(command, env=environment)
    try:
        wait_until(lambda: Heartbeat.WORKER not in Heartbeat.objects.silent())
        server.kill()
        server.wait()
        server = subprocess.Popen(redis_server, stdout=subprocess.DEVNULL)
        Heartbeat.objects.all().delete()
        wait_until(lambda: Heartbeat.WORKER not in Heartbeat.objects.silent())
        assert started.poll() is None
    finally:
        started.terminate()
        started.wait()
        server.kill()
        server.wait()


@pytest.mark.skipif("not os.environ.get('REDIS_URL')", reason="no Redis")
def test_a_broken_connection_that_holds_messages_closes_without_an_error() -> None:
    """Kombu's own transport raises an AttributeError here, with which a Celery worker ended."""
    with Connection(os.environ["REDIS_URL"], transport=REDIS_TRANSPORT) as connection_to_broker:
        channel = connection_to_broker.default_channel
        queue = Queue("broken", channel=channel)
        queue.declare()
        Producer(channel).publish({"held": True}, routing_key="broken")
        assert queue.get() is not None
        channel._disconnect_pools()
        channel._pool = channel._async_pool = None
        connection_to_broker._transport.client = None
        ignore_errors(connection_to_broker, connection_to_broker.close)


def test_what_beat_asks_for_exists() -> None:
    app.loader.import_default_modules()
    assert set(SWEEPERS) <= set(app.tasks)


def test_a_task_goes_to_the_queue_of_its_kind() -> None:
    wanted = {
        "judging.tasks.work": "judging",
        "judging.tasks.store_verdicts": "imports",
        "annotation.tasks.store_import": "imports",
        "analytics.tasks.compute_numbers": "analytics",
        "accounts.tasks.sweep_all": "default",
    }
    assert wanted.keys() <= app.tasks.keys()
    assert {name: app.amqp.router.route({}, name)["queue"].name for name in wanted} == wanted


@pytest.mark.django_db
def test_the_connection_of_a_request_survives_the_check(client: Client) -> None:
    client.get("/healthz")
    assert connection.is_usable()
