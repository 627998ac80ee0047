"""Jobs by page and API: listed for leads and researchers, cancelled, held by one worker, taken up again."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounts import deletion, jobs
from accounts.models import Job
from accounts.refusals import Refused
from analytics.models import Transfer
from analytics.tasks import ask_to_compute, refresh_stale
from annotation.imports import import_jobs, previews
from annotation.models import Dataset, Import, Item
from panelbench.celery import app
from tests import make
from tests.cast import Cast, person
from tests.workers import kill, locked_table, long_after, wait_for_workers, waits_for_a_lock, working

API = "/api/v1/projects/kassa/jobs/"
DIALOGUES = "id,language,question\n" + "".join(f"d{n},et,Kus on pakk {n}?\n" for n in range(80))


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)


def uploaded(client: Client, text: str = DIALOGUES) -> Import:
    client.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("d.csv", text.encode())]})
    return Import.objects.latest("pk")


def page(client: Client, address: str = "/p/kassa/jobs/") -> str:
    return client.get(address).content.decode()


def cancelled(client: Client, job: Job) -> Job:
    answer = client.post(f"/p/kassa/jobs/{job.pk}/cancel/", follow=True)
    assert answer.status_code == 200
    job.refresh_from_db()
    return job


def test_leads_and_researchers_see_what_waits_and_annotators_do_not(cast: Cast) -> None:
    uploaded(cast.client("boris"))
    for who in ("aino", "boris"):
        shown = page(cast.client(who))
        assert (
            "d.csv" in shown
            and "htmx" in shown
            and "No worker is running." in shown
            and 'hx-trigger="every 2s"' in shown
        )
        (told,) = cast.client(who).get(API).json()["results"]
        assert (told["kind"], told["state"], told["title"], told["owner"]) == ("check", "waiting", "d.csv", "Boris")
        assert (told["tries"], told["may_cancel"], told["is_sent"]) == (0, True, False)
    for who in ("maarika", "zoltan"):
        for address in ("/p/kassa/jobs/", API):
            assert cast.client(who).get(address).status_code in (403, 404)


def test_staff_see_the_work_of_every_project(cast: Cast) -> None:
    uploaded(cast.client("boris"))
    assert cast.client("aino").get("/jobs/").status_code == 403
    operator = person("Operator")
    operator.is_staff = True
    operator.save()
    browser = Client()
    browser.force_login(operator)
    shown = page(browser, "/jobs/")
    job = Job.objects.get()
    assert "d.csv" in shown and "Kassa" in shown and f'action="/jobs/{job.pk}/cancel/"' in shown
    assert cast.client("aino").post(f"/jobs/{job.pk}/cancel/").status_code == 403
    answer = browser.post(f"/jobs/{job.pk}/cancel/", follow=True)
    assert "This was cancelled by Operator." in answer.content.decode()
    assert (Job.objects.get().state, Import.objects.get().state) == ("cancelled", "failed")


def test_archiving_a_project_cancels_its_jobs(cast: Cast) -> None:
    file_import = uploaded(cast.client("boris"))
    campaign = make.campaign(cast.kassa)
    ask_to_compute(campaign=campaign)
    assert sorted(Job.objects.open().values_list("kind", flat=True)) == ["check", "numbers"]
    cast.client("aino").post("/p/kassa/settings/project/", {"do": "archive"})
    assert not Job.objects.open().exists()
    file_import.refresh_from_db()
    assert file_import.report["sentence"] == "This was cancelled because the project was archived."
    refresh_stale()
    assert not Job.objects.open().exists()
    aino = cast.client("aino")
    deleted = aino.post("/p/kassa/settings/delete/", {"name": "Kassa"}, follow=True).content.decode()
    assert "This project was deleted" in deleted
    assert deletion.purge_deleted(now=timezone.now() + timedelta(days=31)) == ["kassa"]
    assert not Job.objects.exists()


def test_a_check_that_waits_is_cancelled_and_says_by_whom(cast: Cast) -> None:
    file_import = uploaded(cast.client("boris"))
    job = cancelled(cast.client("aino"), Job.objects.get())
    file_import.refresh_from_db()
    assert (job.state, file_import.state) == ("cancelled", "failed")
    assert file_import.report["sentence"] == job.sentence == "This was cancelled by Aino."
    assert "This was cancelled by Aino." in page(cast.client("boris"))
    import_jobs.carry_out_check(import_pk=file_import.pk, look=previews.preview_import)  # its message arrives after all
    assert Import.objects.get().state == "failed"
    again = cast.client("aino").post(f"{API}{job.pk}/cancel/")
    assert (again.status_code, again.json()["code"]) == (409, "wrong_state")


def test_only_the_owner_and_leads_cancel(cast: Cast) -> None:
    file_import = uploaded(cast.client("aino"))
    answer = cast.client("boris").post(f"{API}{file_import.job_id}/cancel/")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_yours")
    assert "/cancel/" not in page(cast.client("boris"))
    assert cast.client("aino").post(f"{API}{file_import.job_id}/cancel/").json()["state"] == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_a_check_that_is_cancelled_while_it_runs_stops(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.05)
    file_import = uploaded(cast.client("boris"))

    def look(held: Import, progress: import_jobs.Progress) -> Any:
        cancelled(cast.client("boris"), Job.objects.get())
        with pytest.raises(Refused, match="cancelled"):
            wait_for_workers(lambda: progress(1, 2))
        return previews.preview_import(held)

    import_jobs.carry_out_check(import_pk=file_import.pk, look=look)
    assert (Import.objects.get().state, Job.objects.get().state) == ("failed", "cancelled")


@pytest.mark.django_db(transaction=True)
def test_storing_that_is_cancelled_while_a_worker_is_at_it_leaves_nothing(cast: Cast, settings: Any) -> None:
    if not settings.REDIS_URL or connection.vendor != "postgresql":
        pytest.skip("needs Redis and PostgreSQL")
    app.control.purge()
    boris = cast.client("boris")
    with working():
        file_import = uploaded(boris)
        wait_for_workers(lambda: Import.objects.get().state == "uploaded")
        with locked_table("annotation_item"):
            boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
            wait_for_workers(waits_for_a_lock)
            job = cancelled(boris, Job.objects.get(kind="store"))
        assert job.state == "cancelled"
        wait_for_workers(lambda: not Dataset.objects.filter(state="loading").exists())
    assert (Import.objects.get().state, Item.objects.count(), Dataset.objects.count()) == ("failed", 0, 0)


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_hold_one_job(cast: Cast) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("has one writer")
    file_import = uploaded(cast.client("boris"))
    taken: list[Job] = []
    ready = threading.Barrier(4)

    def take() -> None:
        mine = Import.objects.get(pk=file_import.pk)
        ready.wait()
        if (job := jobs.take_job(mine, Job.Kind.CHECK)) is not None:
            taken.append(job)
        connection.close()

    threads = [threading.Thread(target=take) for _number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [job.tries for job in taken] == [1]


@pytest.mark.django_db(transaction=True)
def test_an_export_whose_worker_is_killed_is_written_by_the_next_one(cast: Cast, settings: Any) -> None:
    if not settings.REDIS_URL or connection.vendor != "postgresql":
        pytest.skip("needs Redis and PostgreSQL")
    app.control.purge()
    make.dataset(cast.kassa, 3)
    boris = cast.client("boris")
    there = "/api/v1/projects/kassa/transfers/"
    key = boris.post(there, {"what": "items", "format": "csv"}, content_type="application/json").json()["key"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE annotation_item IN ACCESS EXCLUSIVE MODE")  # so that the export waits in the middle
        with working() as killed:
            wait_for_workers(waits_for_a_lock)
            kill(killed)
    doomed = Job.objects.get()
    assert (doomed.state, doomed.tries, jobs.sweep_jobs()) == ("running", 1, [])
    with working():
        assert jobs.sweep_jobs(now=long_after()) == [doomed]
        wait_for_workers(lambda: Transfer.objects.get().state == "done")
    assert not jobs.finish_job(doomed), "the dead worker's lease is worth nothing"
    assert (Job.objects.get().tries, Transfer.objects.get().done) == (2, 3)
    assert b"".join(boris.get(f"{there}{key}/content/").streaming_content).count(b"\n") == 4


def running_job(cast: Cast) -> Job:
    job = jobs.take_job(uploaded(cast.client("boris")), Job.Kind.CHECK)
    assert job is not None
    return job


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_connects_again_when_its_connection_is_lost(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connections that another process ends")
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    job = running_job(cast)
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    def ends_connections() -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(pg_terminate_backend(pid)) {others}")
            return int(cursor.fetchone()[0])

    with jobs.JobHeartbeat(job) as heartbeat:
        for done in (1, 2, 3):
            heartbeat.tell(done, 3)
            wait_for_workers(lambda: Job.objects.get().done == done)  # noqa: B023
            wait_for_workers(ends_connections)
        heartbeat.tell(4, 4)
        wait_for_workers(lambda: Job.objects.get().done == 4)
    assert not heartbeat.is_lost


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_ends_with_its_job_though_a_transaction_keeps_it_waiting(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    job = running_job(cast)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(unit="rows")  # the lock that the heartbeat waits for
        with jobs.JobHeartbeat(job) as heartbeat:
            (thread,) = (thread for thread in threading.enumerate() if thread.name == f"job {job.pk}")
            if connection.vendor == "postgresql":
                wait_for_workers(waits_for_a_lock)
            else:
                thread.join(0.2)
        assert not thread.is_alive()
    assert not heartbeat.is_lost
    assert (Job.objects.get().done, Job.objects.get().beat_at) == (job.done, job.beat_at)
