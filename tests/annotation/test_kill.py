"""A worker killed while it stores or undoes an import: nothing of it shows, and the next one does all of it, once."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from accounts import jobs
from accounts.models import AuditEntry, Job
from annotation import campaigns, tasks
from annotation.imports import lifecycle, opening
from annotation.models import Campaign, Dataset, Import, Item, Rating
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.workers import kill, locked_table, long_after, wait_for_workers, waits_for_a_lock, working

ITEMS = 50_000  # more than one transaction stages
DIALOGUES = "id,language,question\n" + "".join(f"d{n},et,Kus on minu pakk {n}? {'Ootan. ' * 8}\n" for n in range(ITEMS))
RATINGS = "item,rater,criterion,score\n" + "".join(f"d{n},A,fluency,{n % 4}\n" for n in range(ITEMS))


def started(cast: Cast, kind: str, text: str, target: dict[str, object]) -> Import:
    file_import = opening.open_import(
        project=cast.kassa, kind=kind, files=[(f"{kind}.csv", text.encode())], target=target, actor=cast.boris
    )
    assert not tasks.store_here_or_later(file_import, cast.boris), "it was stored at once"
    return file_import


def staged() -> int:
    return Item.objects.filter(dataset__state=Dataset.State.LOADING).count()


def shown(boris: Client) -> tuple[object, ...]:
    """What a researcher can see of datasets: by API, on the pages, and by the number of one that is not ready."""
    api = boris.get("/api/v1/projects/kassa/datasets/").json()["results"]
    pages = [boris.get(f"/p/kassa/{page}").content.decode() for page in ("datasets/", "campaigns/new/", "export/")]
    hidden = Dataset.objects.filter(state=Dataset.State.LOADING).values_list("pk", flat=True)
    reached = [pk for pk in hidden if boris.get(f"/p/kassa/datasets/{pk}/").status_code != 404]
    return [each["name"] for each in api], ["Parcels" in page for page in pages], reached


def held(file_import: Import) -> bool:
    return Job.objects.filter(pk=Import.objects.get(pk=file_import.pk).job_id, lease__isnull=False).exists()


def left_to_the_sweep(file_import: Import) -> None:
    """The patience with the dead holder runs out, and the clock asks for the sweep."""
    assert Import.objects.get(pk=file_import.pk).state == "storing"
    jobs.sweep_jobs(now=long_after())


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_an_import_survives_the_deaths_of_its_workers(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)
    app.control.purge()
    boris = cast.client("boris")
    nothing = shown(boris)
    file_import = started(cast, "dataset", DIALOGUES, {"name": "Parcels"})
    with locked_table("annotation_item"), working() as doomed:
        wait_for_workers(lambda: held(file_import))
        kill(doomed)
    assert shown(boris) == nothing
    left_to_the_sweep(file_import)
    with locked_table("accounts_auditentry"), working() as doomed:  # written when all items are there
        wait_for_workers(lambda: staged() > 0)
        kill(doomed)
    assert 0 < staged() <= ITEMS and shown(boris) == nothing
    left_to_the_sweep(file_import)
    with working() as doomed, ExitStack() as held_up:
        wait_for_workers(lambda: Import.objects.get(pk=file_import.pk).state == "stored")
        dataset = Dataset.objects.get(file_import=file_import)
        assert (dataset.items.count(), Item.objects.filter(dataset__file_import=file_import).count()) == (ITEMS, ITEMS)
        assert shown(boris) != nothing

        target = {"dataset": dataset.pk, "rubric_version": make.rubric(cast.kassa).pk}
        held_up.enter_context(locked_table("annotation_rating"))
        ratings = started(cast, "ratings", RATINGS, target)
        wait_for_workers(lambda: held(ratings))
        kill(doomed)
    assert not Rating.objects.exists() and not Campaign.objects.filter(dataset=dataset).exists()
    left_to_the_sweep(ratings)
    with working():
        wait_for_workers(lambda: Import.objects.get(pk=ratings.pk).state == "stored")
    assert (Rating.objects.count(), Campaign.objects.filter(dataset=dataset).count()) == (ITEMS, 1)
    assert Import.objects.get(pk=ratings.pk).report["tries"] == 2


def stored(cast: Cast) -> Import:
    """An import of more rows than a request undoes, stored."""
    text = "".join(DIALOGUES.splitlines(keepends=True)[:81]).encode()
    opened = opening.open_import(
        project=cast.kassa, kind="dataset", files=[("d.csv", text)], target={"name": "Parcels"}, actor=cast.boris
    )
    return lifecycle.carry_out(file_import=opened, actor=cast.boris)


def asked_to_undo(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Import:
    monkeypatch.setattr(tasks, "ROWS_AT_ONCE", 10)
    file_import = stored(cast)
    answer = cast.client("boris").post(f"/api/v1/projects/kassa/imports/{file_import.pk}/undo/")
    assert (answer.status_code, answer.json()["state"]) == (202, "undoing")
    return file_import


def import_page(cast: Cast, file_import: Import) -> str:
    return cast.client("boris").get(f"/p/kassa/imports/{file_import.pk}/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_an_undo_whose_worker_is_killed_is_carried_out_by_the_next_one(
    cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not settings.REDIS_URL or connection.vendor != "postgresql":
        pytest.skip("needs Redis and PostgreSQL")
    app.control.purge()
    file_import = asked_to_undo(cast, monkeypatch)
    with transaction.atomic():
        assert Item.objects.select_for_update().first()  # so that the worker has to wait in the middle of it
        with working() as doomed:
            wait_for_workers(waits_for_a_lock)
            kill(doomed)
    assert (Item.objects.count(), Import.objects.get().state, Job.objects.get(kind="undo").tries) == (80, "undoing", 1)
    assert "Being undone" in import_page(cast, file_import)
    assert cast.client("boris").post(f"/api/v1/projects/kassa/imports/{file_import.pk}/undo/").status_code == 409
    with working():
        assert [job.kind for job in jobs.sweep_jobs(now=long_after())] == ["undo"]
        wait_for_workers(lambda: Import.objects.get().state == "uploaded")
    assert (Item.objects.count(), Dataset.objects.count()) == (0, 0)
    job = Job.objects.get(kind="undo")
    assert (job.state, job.tries) == ("finished", 2)
    assert AuditEntry.objects.filter(verb="undo import").count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_import_in_use_by_then_stays_stored_and_says_why(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    file_import = asked_to_undo(cast, monkeypatch)
    parcels, rubric = Dataset.objects.get(), make.rubric(cast.kassa)
    campaigns.open_campaign(project=cast.kassa, name="Round 1", dataset=parcels, rubric_version=rubric)
    tasks.undo_large_import(file_import.pk)
    assert (Import.objects.get(pk=file_import.pk).state, Item.objects.count()) == ("stored", 80)
    assert "is in use by 1 campaign" in import_page(cast, file_import)
    Campaign.objects.all().delete()
    assert cast.client("boris").post(f"/p/kassa/imports/{file_import.pk}/undo/").status_code == 302
    tasks.undo_large_import(file_import.pk)
    assert (Import.objects.get(pk=file_import.pk).state, Item.objects.count()) == ("uploaded", 0)


@pytest.mark.django_db(transaction=True)
def test_an_undo_that_is_cancelled_leaves_the_import_stored(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    file_import = asked_to_undo(cast, monkeypatch)
    job = Job.objects.get(kind="undo")
    assert cast.client("boris").post(f"/api/v1/projects/kassa/jobs/{job.pk}/cancel/").json()["state"] == "cancelled"
    tasks.undo_large_import(file_import.pk)  # its message arrives after all
    assert (Import.objects.get().state, Item.objects.count()) == ("stored", 80)
    assert "This was cancelled by Boris." in import_page(cast, file_import)
