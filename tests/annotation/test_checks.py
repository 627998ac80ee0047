"""Large imports are read by a worker: its report on the page, its death, and what is corrected while it reads."""

from __future__ import annotations

import gzip
import resource
import subprocess
import zipfile
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.template.defaultfilters import filesizeformat
from django.test import Client

from accounts import jobs
from accounts.models import Heartbeat, Job
from accounts.refusals import Refused
from annotation import tasks
from annotation.imports import import_jobs, lifecycle, previews
from annotation.models import Dataset, DryRun, Import, Item
from annotation.readers.mapping import Mapping
from judging.models import Verdict
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.judging import made_up
from tests.workers import absent_broker, kill, locked_table, long_after, wait_for_workers, working

DIALOGUES = "id,language,question,model\n" + "".join(f"d{n},et,Kus on pakk {n}?,m{n % 2}\n" for n in range(1, 81))


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)


def uploaded(client: Client, text: str = DIALOGUES, name: str = "dialogues.csv", **form: str) -> Import:
    answer = client.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile(name, text.encode())], **form})
    assert answer.status_code == 302, answer.content.decode()
    return Import.objects.latest("pk")


def page(client: Client, file_import: Import) -> str:
    answer = client.get(f"/p/kassa/imports/{file_import.pk}/", follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def state(file_import: Import) -> str:
    return Import.objects.get(pk=file_import.pk).state


def carried_out(file_import: Import) -> None:
    """What a worker does when the message reaches it."""
    import_jobs.carry_out_check(import_pk=file_import.pk, look=previews.preview_import)


def test_a_worker_reads_the_file_and_the_page_shows_what_it_saw(worker: subprocess.Popen[bytes], cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris)
    wait_for_workers(lambda: "HX-Refresh" in boris.get(f"/p/kassa/imports/{file_import.pk}/progress/"))
    # Nothing is read again for the page: it shows what was seen even where the file is away.
    kept = file_import.files.get()
    with kept.content.open() as opened:
        content = opened.read()
    default_storage.delete(str(kept.content.name))
    shown = page(boris, file_import)
    assert "What would be stored" in shown and "The first 50 items" in shown
    assert "Kus on pakk 50?" in shown and "Kus on pakk 51?" not in shown
    seen = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/").json()
    assert (seen["report"]["stored"], len(seen["rows"]), seen["problems"]) == (80, 50, [])
    model = next(column for column in seen["columns"] if column["name"] == "model")
    assert model["most"] == [{"value": "m1", "count": 40}, {"value": "m0", "count": 40}]
    assert (model["distinct"], model["target"], Item.objects.count()) == (2, "generator", 0)

    default_storage.save(str(kept.content.name), SimpleUploadedFile("x", content))
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    wait_for_workers(lambda: state(file_import) == "stored")
    assert (Dataset.objects.get().items.count(), Import.objects.get().report["stored"]) == (80, 80)


@pytest.mark.django_db(transaction=True)
def test_a_check_whose_worker_is_killed_is_taken_up_again(cast: Cast, settings: Any) -> None:
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    app.control.purge()
    boris = cast.client("boris")
    with locked_table("annotation_dryrun"), working() as doomed:  # it reads, and can't store what it saw
        file_import = uploaded(boris)
        wait_for_workers(lambda: Job.objects.get().lease)
        kill(doomed)
    assert state(file_import) == "checking" and not DryRun.objects.exists()
    assert "being checked" in page(boris, file_import)
    assert jobs.sweep_jobs() == [], "the dead worker's lease still runs"
    app.control.purge()
    assert jobs.sweep_jobs(now=long_after()) == [Job.objects.get()]
    with working():
        wait_for_workers(lambda: state(file_import) == "uploaded")
    assert DryRun.objects.get().seen["report"]["stored"] == 80


def test_a_file_that_kills_every_worker_is_given_up(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris)
    for _try in range(jobs.MOST_TRIES):
        # A worker takes it and is never heard of again.
        import_jobs._take_check(file_import.pk)
        freed = jobs.sweep_jobs(now=long_after())
    assert (freed, state(file_import)) == ([], "failed")
    assert "interrupted 3 times" in page(boris, file_import)
    boris.post(f"/p/kassa/imports/{file_import.pk}/check/")
    carried_out(file_import)
    assert "What would be stored" in page(boris, file_import)


@pytest.mark.django_db(transaction=True)
def test_what_is_corrected_while_a_worker_reads_is_not_overwritten(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.05)
    boris = cast.client("boris")
    file_import = uploaded(boris)

    def look(held: Import, progress: import_jobs.Progress) -> Any:
        seen = previews.preview_import(held)
        mapping = {**held.mapping, "columns": {"id": "id", "language": "language", "question": "answer"}}
        lifecycle.revise(file_import=Import.objects.get(pk=held.pk), mapping=Mapping.from_dict(mapping))
        import_jobs.start_check(file_import=Import.objects.get(pk=held.pk))
        with pytest.raises(Refused, match="deleted while it was running"):
            wait_for_workers(lambda: progress(1, 2))
        return seen

    import_jobs.carry_out_check(import_pk=file_import.pk, look=look)
    assert (state(file_import), DryRun.objects.count()) == ("checking", 0)
    carried_out(file_import)
    assert DryRun.objects.get().seen["rows"][0]["fields"] == {"answer": "Kus on pakk 1?"}


def test_a_check_that_nobody_can_do_is_said_plainly(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris)
    assert "No worker is running, so the files are not being read." in page(boris, file_import)
    waiting = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/")
    assert (waiting.status_code, waiting.json()["state"]) == (202, "checking")
    boris.post(f"/p/kassa/imports/{file_import.pk}/discard/")
    assert not Import.objects.exists()
    carried_out(file_import)  # the message arrives after all


def test_a_full_disk_is_told_by_name(cast: Cast) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("the limit would hold for the database's file too")
    head = DIALOGUES.partition("\n")[0]
    file_import = uploaded(cast.client("boris"), head + "\n" + "".join(f"d{n},et,Kus?,m\n" for n in range(20_000)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # what spills over into temporary files is more
    try:
        for attempt in (carried_out, lifecycle.carry_out):
            with pytest.raises(OSError, match="too large"):
                attempt(file_import=file_import)
            found = Import.objects.get()
            assert found.state == "failed" and "disk is full" in found.report["sentence"]
            file_import.refresh_from_db()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not Item.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_progress_is_shown_in_per_cent(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.05)
    boris = cast.client("boris")
    file_import = uploaded(boris)

    def look(held: Import, progress: import_jobs.Progress) -> Any:
        progress(30 * 2**20, 120 * 2**20)
        wait_for_workers(lambda: Import.objects.get(pk=file_import.pk).done)
        shown = boris.get(f"/p/kassa/imports/{file_import.pk}/progress/").content.decode()
        assert "25 %" in shown and 'value="25"' in shown and shown.count(filesizeformat(len(DIALOGUES))) == 2
        return previews.preview_import(held)

    import_jobs.carry_out_check(import_pk=file_import.pk, look=look)
    told = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/").json()
    assert (told["state"], told["done"], told["total"]) == ("uploaded", 30 * 2**20, 120 * 2**20)


def test_a_changed_mapping_makes_the_check_out_of_date(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris)
    carried_out(file_import)
    boris.patch(
        f"/api/v1/projects/kassa/imports/{file_import.pk}/",
        {"target": {"name": "Other"}},
        content_type="application/json",
    )
    assert state(file_import) == "checking"
    carried_out(file_import)
    assert 'value="Other"' in page(boris, file_import)


def test_large_verdicts_are_checked_by_judging(worker: subprocess.Popen[bytes], cast: Cast) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    boris = cast.client("boris")
    file_import = uploaded(boris, "item,judge,criterion,score\nd1,x,fluency,2\nd2,x,fluency,9\n", "v.csv")
    wait_for_workers(lambda: state(file_import) == "uploaded")
    shown = page(boris, file_import)
    assert "The first 2 verdicts" in shown and "0, 1, 2, 3" in shown
    boris.post(f"/p/kassa/verdict-imports/{file_import.pk}/store/")
    wait_for_workers(lambda: state(file_import) == "stored")
    assert Verdict.objects.count() == 2


def test_a_large_file_is_stored_while_its_check_still_runs(worker: subprocess.Popen[bytes], cast: Cast) -> None:
    """The client opens, stores and waits without ever asking for a preview."""
    boris = cast.client("boris")
    file_import = uploaded(boris)
    import_jobs.start_check(file_import=file_import)
    assert jobs.take_job(file_import, Job.Kind.CHECK), "its worker has only begun"
    answer = boris.post(f"/api/v1/projects/kassa/imports/{file_import.pk}/store/")
    assert (answer.status_code, answer.json()["state"]) == (202, "storing"), answer.content.decode()
    wait_for_workers(lambda: state(file_import) == "stored")
    assert Dataset.objects.get().items.count() == 80


@pytest.mark.django_db(transaction=True)
def test_without_a_queue_nothing_large_is_stored_inside_a_request(cast: Cast, settings: Any) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris)
    carried_out(file_import)
    with absent_broker():
        assert boris.post(f"/p/kassa/imports/{file_import.pk}/store/").status_code == 302
    assert (state(file_import), Item.objects.count()) == ("storing", 0)
    Heartbeat.objects.pulse(Heartbeat.WORKER, "a worker that the queue does not reach")
    shown = page(boris, file_import)
    is_away = bool(settings.REDIS_URL)  # the folder that is the queue without Redis can't be away
    assert "Being stored" in shown and ("The queue can't be reached." in shown) == is_away
    assert jobs.sweep_jobs(now=None if is_away else long_after()) == [Job.objects.get(kind="store")], (
        "sent by the next sweep"
    )
    tasks.store_import(file_import.pk)
    assert state(file_import) == "stored"


@pytest.mark.parametrize("name", ["items.xlsx", "items.csv.gz", "items.zip"])
def test_workbooks_and_archives_are_opened_by_workers_only(
    cast: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 2**20)
    table = b"id,language,answer\nd1,et,Tere\n"
    raw = {
        "items.xlsx": make.workbook({"Data": [["id", "language", "answer"], ["d1", "et", "Tere"]]}),
        "items.csv.gz": gzip.compress(table),
        "items.zip": made_up.zip_archive({"items.csv": table}),
    }[name]
    boris = cast.client("boris")

    def in_a_web_request(*_given: Any, **_said: Any) -> Any:
        raise AssertionError("opened in a web request")

    with monkeypatch.context() as web:
        web.setattr(zipfile.ZipFile, "__init__", in_a_web_request)
        web.setattr(gzip.GzipFile, "read", in_a_web_request)
        answer = boris.post("/p/kassa/imports/new/", {"files": SimpleUploadedFile(name, raw)}, follow=True)
        file_import = Import.objects.get()
        assert answer.status_code == 200 and file_import.state == Import.State.CHECKING
    tasks.open_packed(file_import.pk)
    with monkeypatch.context() as web:
        web.setattr(zipfile.ZipFile, "__init__", in_a_web_request)
        file_import.refresh_from_db()
        assert (file_import.kind, file_import.state, file_import.unread) == ("dataset", "checking", None)
        assert file_import.mapping["columns"] == {"id": "id", "language": "language", "answer": "answer"}
    tasks.check_import(file_import.pk)
    with monkeypatch.context() as web:
        web.setattr(zipfile.ZipFile, "__init__", in_a_web_request)
        assert "What would be stored" in boris.get(f"/p/kassa/imports/{file_import.pk}/").content.decode()
        boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    tasks.store_import(file_import.pk, cast.boris.pk)
    assert Item.objects.get().fields == {"answer": "Tere"}


def test_a_workbook_is_stored_by_the_clients_flow_without_a_preview(
    worker: subprocess.Popen[bytes], cast: Cast
) -> None:
    raw = make.workbook({"Data": [["id", "language", "answer"], ["d1", "et", "Tere"]]})
    boris = cast.client("boris")
    sent = {"files": SimpleUploadedFile("items.xlsx", raw), "kind": "dataset", "target": '{"name": "Items"}'}
    opened = boris.post("/api/v1/projects/kassa/imports/", sent).json()
    answer = boris.post(f"/api/v1/projects/kassa/imports/{opened['id']}/store/")
    assert answer.status_code == 202, answer.content.decode()
    wait_for_workers(lambda: Import.objects.get().state not in ("checking", "storing"))
    assert (state(Import.objects.get()), Dataset.objects.get().name) == ("stored", "Items")
    assert Item.objects.get().fields == {"answer": "Tere"}


def test_a_workbook_that_is_to_be_stored_before_it_is_open_is_stored_as_it_is_read_then(cast: Cast) -> None:
    raw = make.workbook({"Data": [["id", "language", "answer"], ["d1", "et", "Tere"]]})
    boris = cast.client("boris")
    opened = boris.post("/api/v1/projects/kassa/imports/", {"files": SimpleUploadedFile("items.xlsx", raw)}).json()
    answer = boris.post(f"/api/v1/projects/kassa/imports/{opened['id']}/store/")
    assert (answer.status_code, answer.json()["state"]) == (202, "checking")
    tasks.open_packed(opened["id"])
    tasks.store_import(opened["id"], cast.boris.pk)
    assert (state(Import.objects.get()), Item.objects.get().fields) == ("stored", {"answer": "Tere"})


def test_storing_what_is_checked_stored_or_gone_answers_with_its_own_sentence(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, kind="dataset")
    assert state(file_import) == "checking"
    address = f"/api/v1/projects/kassa/imports/{file_import.pk}/store/"
    assert boris.post(address).status_code == 202, "the check is given up, and the import is stored"
    again = boris.post(address)
    assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
    assert again.json()["detail"] == "This import is being stored. Reload the page."
    tasks.store_import(file_import.pk, cast.boris.pk)
    assert state(file_import) == "stored"
    assert boris.post(address).json()["detail"] == "This import is already stored. Reload the page."
