"""A worker killed while it stores an import: nothing of it shows, and the next worker stores all of it, once."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts import jobs
from accounts.models import Job
from annotation import tasks
from annotation.imports import opening
from annotation.models import Campaign, Dataset, Import, Item, Rating
from panelbench.celery import app
from tests import make
from tests.cast import Cast
from tests.workers import kill, long_after, until, working

ITEMS = 50_000  # more than one transaction stages
DIALOGUES = "id,language,question\n" + "".join(f"d{n},et,Kus on minu pakk {n}? {'Ootan. ' * 8}\n" for n in range(ITEMS))
RATINGS = "item,rater,criterion,score\n" + "".join(f"d{n},A,fluency,{n % 4}\n" for n in range(ITEMS))


def started(cast: Cast, kind: str, text: str, target: dict[str, object]) -> Import:
    file_import = opening.open_import(
        project=cast.kassa, kind=kind, files=[(f"{kind}.csv", text.encode())], target=target, actor=cast.boris
    )
    assert not tasks.store(file_import, cast.boris), "it was stored at once"
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
    jobs.sweep(now=long_after())


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_an_import_survives_the_deaths_of_its_workers(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotation.models.imports.AT_ONCE", 10)
    app.control.purge()
    boris = cast.client("boris")
    nothing = shown(boris)
    file_import = started(cast, "dataset", DIALOGUES, {"name": "Parcels"})
    with working() as doomed:
        until(lambda: held(file_import))
        kill(doomed)
    assert shown(boris) == nothing
    left_to_the_sweep(file_import)
    with working() as doomed:
        until(lambda: staged() > 0)
        kill(doomed)
    assert 0 < staged() < ITEMS and shown(boris) == nothing
    left_to_the_sweep(file_import)
    with working() as doomed:
        until(lambda: Import.objects.get(pk=file_import.pk).state == "stored")
        dataset = Dataset.objects.get(file_import=file_import)
        assert (dataset.items.count(), Item.objects.filter(dataset__file_import=file_import).count()) == (ITEMS, ITEMS)
        assert shown(boris) != nothing

        target = {"dataset": dataset.pk, "rubric_version": make.rubric(cast.kassa).pk}
        ratings = started(cast, "ratings", RATINGS, target)
        until(lambda: held(ratings))
        kill(doomed)
    assert not Rating.objects.exists() and not Campaign.objects.filter(dataset=dataset).exists()
    left_to_the_sweep(ratings)
    with working():
        until(lambda: Import.objects.get(pk=ratings.pk).state == "stored")
    assert (Rating.objects.count(), Campaign.objects.filter(dataset=dataset).count()) == (ITEMS, 1)
    assert Import.objects.get(pk=ratings.pk).report["tries"] == 2
