"""A project gets another name, and is removed when nothing in it must be kept, through HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts import tokens
from accounts.models import AuditEntry, Project, Scope, Token, Webhook
from annotation.desk import service
from annotation.models import Annotator, Dataset, Import, Item
from tests import access
from tests.annotation import scene
from tests.cast import Cast

SETTINGS = "/p/kassa/settings/project/"


def remove(cast: Cast, name: str = "Kassa") -> str:
    answer = cast.client("aino").post(f"{SETTINGS}remove/", {"name": name}, follow=True)
    return answer.content.decode()


def archive(cast: Cast) -> str:
    return cast.client("aino").post(SETTINGS, {"do": "archive"}, follow=True).content.decode()


def test_a_project_gets_another_name_and_keeps_its_address(cast: Cast) -> None:
    aino = cast.client("aino")
    assert 'value="Kassa"' in aino.get(SETTINGS).content.decode()
    page = aino.post(f"{SETTINGS}name/", {"name": "Kassa 2026", "description": "Receipts."}, follow=True)
    assert "Kassa 2026" in page.content.decode()
    assert Project.objects.get(slug="kassa").description == "Receipts."
    assert AuditEntry.objects.first().fields == ["description", "name"]
    assert aino.post(f"{SETTINGS}name/", {"name": " "}).status_code == 422
    assert cast.client("boris").post(f"{SETTINGS}name/", {"name": "Mine"}).status_code == 403
    assert Project.objects.get(slug="kassa").name == "Kassa 2026"


@pytest.mark.django_db(transaction=True)
def test_an_archived_project_without_ratings_is_removed_with_all_that_is_in_it(cast: Cast) -> None:
    scene.taken(cast, scene.duty(cast, items=2))
    Webhook.objects.create(project=cast.kassa, address="https://receiver.test/", events=["judge_run"], nonce="x")
    tokens.issue(user=cast.boris, name="bound", scope=Scope.READ, project=cast.kassa)
    cast.client("aino").post("/p/kassa/people/", {"role": "annotator", "days": 7, "name": "Sofia"})
    upload = SimpleUploadedFile("d.csv", b"id,text\n1,a\n")
    cast.client("boris").post("/p/kassa/imports/new/", {"files": [upload]})
    (kept,) = (Path(settings.MEDIA_ROOT) / file.content.name for file in Import.objects.get(part_of=None).files.all())
    assert kept.exists()

    assert "Archive the project first" in remove(cast)
    page = archive(cast)
    assert "1 campaign" in page
    assert "2 datasets" not in page
    assert "This is not the project&#x27;s name" in remove(cast, "kassa")
    assert "was removed" in remove(cast)
    assert not Project.objects.filter(slug="kassa").exists()
    left = [model for model in (Annotator, Dataset, Import, Item, Token) if model._base_manager.exists()]
    assert left == []
    assert not kept.exists()
    last = AuditEntry.objects.first()
    assert (last.verb, last.project, last.actor) == ("remove project", None, cast.aino)
    assert AuditEntry.objects.filter(verb="open campaign").exists()
    assert Project.objects.filter(slug="teine").exists()


def test_no_table_keeps_a_row_that_forbids_the_removal(cast: Cast) -> None:
    """A project with one of everything: only what must be kept stands in the way."""
    access.furnish(cast)
    archive(cast)
    page = remove(cast)
    assert "can&#x27;t be removed, because it has" in page
    assert Project.objects.filter(slug="kassa").exists()


def test_ratings_forbid_it(cast: Cast) -> None:
    taken = scene.taken(cast, scene.duty(cast, items=2))
    service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=3)
    assert "1 annotation" in archive(cast)
    assert "can&#x27;t be removed, because it has 1 annotation" in remove(cast)
    assert Item.objects.count() == 2


def test_every_model_with_a_project_is_known_to_the_removal() -> None:
    from accounts import removal
    from accounts.models import Project

    known = {model for model, _path in removal._belonging()}
    direct = {
        model
        for model in apps.get_models()
        for field in model._meta.fields
        if field.related_model is Project and not field.null
    }
    assert direct <= known
