"""Whole studies through pages and API: recognised, looked at, stored in the background, and taken back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounts import jobs, removal
from accounts.models import Job
from accounts.tasks import sweep_all
from annotation import tasks as tasks_of_imports
from annotation.models import Dataset, Import, ImportFile, Rating
from judging import tasks
from judging.imports import studies
from judging.models import Judge, Verdict
from panelbench.celery import app
from tests.cast import Cast
from tests.judging import made_up
from tests.workers import kill, long_after, wait_for_workers, waits_for_a_lock, working

API = "/api/v1/projects/kassa"


def uploads(files: dict[str, bytes]) -> list[SimpleUploadedFile]:
    return [SimpleUploadedFile(name, content) for name, content in files.items()]


def checked(file_import: Import) -> Import:
    """The import after a worker has looked at it."""
    assert file_import.state == Import.State.CHECKING
    tasks.check_study(file_import.pk)
    file_import.refresh_from_db()
    return file_import


def opened(client: Client, files: dict[str, bytes]) -> Import:
    """The import that the upload page opens for these files, checked."""
    answer = client.post("/p/kassa/imports/new/", {"files": uploads(files)})
    assert answer.status_code == 302, answer.content.decode()
    file_import = Import.objects.get(part_of=None)
    if any(name.endswith(".zip") for name in files):
        tasks_of_imports.open_packed(file_import.pk)
        file_import.refresh_from_db()
        answer = client.get(answer["Location"])
    assert answer["Location"] == f"/p/kassa/study-imports/{file_import.pk}/"
    return checked(file_import)


def stored(client: Client, file_import: Import) -> Import:
    client.post(f"/p/kassa/study-imports/{file_import.pk}/store/")
    tasks.store_study(file_import.pk, file_import.created_by_id)
    file_import.refresh_from_db()
    return file_import


def page(client: Client, file_import: Import) -> str:
    answer = client.get(f"/p/kassa/study-imports/{file_import.pk}/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def counts() -> tuple[int, int, int, int]:
    return Dataset.objects.count(), Rating.objects.count(), Verdict.objects.count(), Judge.objects.count()


WHOLE = (1, made_up.RATINGS, made_up.VERDICTS, 20)


@pytest.mark.parametrize("how", ["files", "zip"])
def test_a_folder_is_recognised_looked_at_stored_and_taken_back(cast: Cast, how: str) -> None:
    boris = cast.client("boris")
    files = made_up.folder() if how == "files" else {"study.zip": made_up.zip_archive(made_up.folder())}
    file_import = opened(boris, files)
    kept = set(ImportFile.objects.values_list("content", flat=True))
    shown = page(boris, file_import)
    assert "These are the files of: HANNA" in shown and "Store the whole study" in shown
    assert f"<b>{made_up.VERDICTS}</b>" in shown and "scores.csv" in shown
    assert counts() == (0, 0, 0, 0), "a look leaves nothing behind"
    assert kept == {file.content.name for file in file_import.files.all()}

    file_import = stored(boris, file_import)
    assert file_import.state == "stored", file_import.report
    assert counts() == WHOLE
    parts = Import.objects.filter(part_of=file_import)
    assert [each.kind for each in parts.order_by("pk")] == ["dataset", "ratings", "verdicts"]
    assert [part["kind"] for part in file_import.report["parts"]] == ["dataset", "rubric", "ratings", "verdicts"]
    assert file_import.report["stored"] == made_up.STORIES + made_up.RATINGS + made_up.VERDICTS
    assert f"/p/kassa/imports/{parts[0].pk}/" in page(boris, file_import)
    assert f"Part of import {file_import.pk}" in boris.get(f"/p/kassa/verdict-imports/{parts[0].pk}/").content.decode()

    boris.post(f"/p/kassa/study-imports/{file_import.pk}/undo/")
    assert counts() == (0, 0, 0, 0)
    assert list(Import.objects.values_list("pk", "state")) == [(file_import.pk, "uploaded")]
    assert all(default_storage.exists(str(file.content.name)) for file in file_import.files.all())


def test_what_uses_a_study_keeps_it(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = stored(boris, opened(boris, made_up.folder()))
    Dataset.objects.create(project=cast.kassa, name="Mutants", derived_from=Dataset.objects.get())
    answer = boris.post(f"/p/kassa/study-imports/{file_import.pk}/undo/", follow=True)
    assert "is in use by 1 dataset" in answer.content.decode()
    assert counts()[1:] == WHOLE[1:]
    assert "Undo it first" in boris.post(f"/p/kassa/imports/{file_import.pk}/discard/", follow=True).content.decode()


def test_a_refused_part_takes_the_whole_study_back(cast: Cast) -> None:
    boris = cast.client("boris")
    broken = made_up.folder()["scores.csv"].decode().replace('"[1.0', '"[7.0', 1).encode()
    file_import = opened(boris, {"scores.csv": broken.replace(b'"[2.0', b'"[many', 1)})
    assert "many" in page(boris, file_import) and "Store the whole study" not in page(boris, file_import)
    problems = boris.get(f"/p/kassa/study-imports/{file_import.pk}/problems.csv").content.decode()
    assert "scores.csv" in problems
    file_import = stored(boris, file_import)
    assert file_import.state == "failed" and counts() == (0, 0, 0, 0)
    assert Import.objects.count() == 1
    assert "Nothing was stored" in page(boris, file_import)


def test_a_check_that_ends_halfway_leaves_no_files(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    boris = cast.client("boris")
    file_import = opened(boris, {"study.zip": made_up.zip_archive(made_up.folder())})
    before = {path for path in tmp_path.rglob("*") if path.is_file() and "parsed" not in path.parts}

    def full(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(studies.verdicts, "finish_verdicts", full)
        with pytest.raises(OSError, match="No space"):
            studies.study_preview_report(file_import)
    assert {path for path in tmp_path.rglob("*") if path.is_file() and "parsed" not in path.parts} == before


@pytest.mark.django_db(transaction=True)
def test_the_files_of_a_check_whose_worker_is_killed_are_deleted_a_day_later(cast: Cast, settings: Any) -> None:
    if not settings.REDIS_URL or connection.vendor != "postgresql":
        pytest.skip("needs Redis and PostgreSQL")
    boris = cast.client("boris")

    def files() -> set[Path]:
        return {path for path in (Path(settings.MEDIA_ROOT) / "imports").rglob("*") if path.is_file()}

    file_import = opened(boris, {"study.zip": made_up.zip_archive(made_up.folder())})
    removal.delete_orphan_files(now=timezone.now() + timedelta(days=2))  # of other tests
    before = files()
    app.control.purge()
    assert boris.post(f"{API}/imports/{file_import.pk}/check/").status_code == 202
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE annotation_item IN EXCLUSIVE MODE")  # so that the check waits in the middle of it
        with working() as doomed:
            wait_for_workers(waits_for_a_lock)
            kill(doomed)
    copies = files() - before
    assert copies and Job.objects.latest("pk").state == "running"
    assert removal.delete_orphan_files(now=timezone.now() + timedelta(hours=23)) == 0
    assert removal.delete_orphan_files(now=timezone.now() + timedelta(hours=25)) == len(copies)
    assert files() == before
    jobs.sweep_jobs(now=long_after())
    app.control.purge()
    tasks.check_study(file_import.pk)
    assert Import.objects.get(pk=file_import.pk).state == "uploaded"


def half_stored(file_import: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store all parts but the verdicts, and die."""

    class Killed(BaseException):
        pass

    def die(*_args: Any, **_kwargs: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(studies.verdicts, "finish_verdicts", die)
        # What a killed process can't do either.
        patch.setattr("annotation.imports.import_jobs.fail_import", lambda *_args, **_kwargs: None)
        with pytest.raises(Killed):
            studies.finish_study(file_import=file_import)
    assert counts() == (1, made_up.RATINGS, 0, 0)


def test_a_study_cancelled_after_its_worker_died_leaves_nothing(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    boris = cast.client("boris")
    file_import = opened(boris, made_up.folder())
    boris.post(f"/p/kassa/study-imports/{file_import.pk}/store/")
    file_import.refresh_from_db()
    half_stored(file_import, monkeypatch)
    assert boris.post(f"{API}/jobs/{file_import.job_id}/cancel/").status_code == 200
    sweep_all()
    file_import.refresh_from_db()
    assert file_import.state == "failed" and counts() == (0, 0, 0, 0)
    assert "cancelled" in page(boris, file_import)
    assert boris.post(f"/p/kassa/imports/{file_import.pk}/discard/").status_code == 302
    assert not Import.objects.exists()


def test_a_study_whose_worker_died_is_ended_by_another(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    boris = cast.client("boris")
    file_import = opened(boris, made_up.folder())
    boris.post(f"/p/kassa/study-imports/{file_import.pk}/store/")
    file_import.refresh_from_db()

    half_stored(file_import, monkeypatch)
    assert jobs.sweep_jobs(now=long_after()) == [file_import.job]
    tasks.store_study(file_import.pk, cast.boris.pk)
    file_import.refresh_from_db()
    assert file_import.state == "stored" and counts() == WHOLE
    assert file_import.report["stored"] == made_up.STORIES + made_up.RATINGS + made_up.VERDICTS


def test_the_files_of_a_study_are_imported_one_by_one_after_all(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = opened(boris, made_up.folder())
    answer = boris.post(f"/p/kassa/imports/{file_import.pk}/apart/")
    one = Import.objects.get()
    assert answer["Location"].endswith(f"imports/{one.pk}/") and one.kind != "study"
    assert [file.name for file in one.files.all()] == ["scores.csv"]
    assert default_storage.exists(str(one.files.get().content.name))


def test_another_study_and_what_the_files_do_not_say_are_said_on_the_page(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    by = [{"completed_by": 5, "result": [{"from_name": "stars", "type": "rating", "value": {"rating": 4}}]}]
    tasks_ = [{"id": number, "data": {"text": f"Tere {number}"}, "annotations": by} for number in (1, 2)]
    file_import = opened(boris, {"export.json": json.dumps(tasks_).encode()})
    assert "expected a language tag" in page(boris, file_import) or "a language tag such as" in page(boris, file_import)
    said = {"study": "label-studio", "constant-language": "et"}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", said)
    file_import.refresh_from_db()
    assert file_import.target == {"study": "label-studio", "constants": {"language": "et"}}
    assert "Store the whole study" in page(boris, checked(file_import))
    nul = {"target": {"study": "label-studio", "constants": {"language\x00": "et"}}}
    refused = boris.patch(f"{API}/imports/{file_import.pk}/", nul, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), refused.json()
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"study": "multipico-dev"})
    file_import.refresh_from_db()
    assert "none of these files belongs to MultiPICo" in page(boris, checked(file_import))


def test_a_study_comes_in_by_the_api(cast: Cast) -> None:
    boris = cast.client("boris")
    known = {each["name"]: each for each in boris.get(f"{API}/studies/").json()}
    assert known["hanna"]["imports"][0]["mapping"]["constants"] == {"language": "en"}
    made = boris.post(f"{API}/imports/", {"files": uploads(made_up.folder())})
    assert (made.status_code, made.json()["kind"]) == (201, "study")
    assert made.json()["target"] == {"study": "hanna"}
    at = f"{API}/study-imports/{made.json()['id']}"
    assert boris.get(f"{at}/preview/").status_code == 202
    file_import = checked(Import.objects.get())
    seen = boris.get(f"{at}/preview/").json()
    assert seen["report"]["stored"] == made_up.STORIES + made_up.RATINGS + made_up.VERDICTS
    assert (seen["sentence"], seen["left_alone"]) == ("", [])
    assert boris.post(f"{API}/imports/{file_import.pk}/store/").json()["code"] == "wrong_kind"
    assert boris.post(f"{at}/store/").status_code == 202
    tasks.store_study(file_import.pk, cast.boris.pk)
    assert boris.get(f"{API}/imports/{file_import.pk}/").json()["state"] == "stored"
    assert counts() == WHOLE
    assert boris.post(f"{at}/undo/").json()["state"] == "uploaded"
    assert counts() == (0, 0, 0, 0)
    apart = boris.post(f"{API}/imports/{file_import.pk}/apart/")
    assert apart.status_code == 201 and apart.json()["kind"] != "study"


def test_a_ready_mapping_is_picked_by_name_for_any_upload(cast: Cast) -> None:
    boris = cast.client("boris")
    text = "item_id,lang,language_variety,source,level,post,reply\nm1,et,et,made up,1,Sajab.,Tore ilm!\n"
    boris.post("/p/kassa/imports/new/", {"files": uploads({"odd.csv": text.encode()}), "kind": "dataset"})
    file_import = Import.objects.get()
    assert f"/p/kassa/imports/{file_import.pk}/mappings/" in boris.get(f"/p/kassa/imports/{file_import.pk}/").text
    shown = boris.get(f"/p/kassa/imports/{file_import.pk}/mappings/").text
    assert "Ready mappings" in shown and 'value="ready-multipico-dev.0"' in shown and "ready-hanna.3" not in shown
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"mapping_of": "ready-multipico-dev.0"})
    file_import.refresh_from_db()
    assert file_import.mapping["columns"]["post"] == "context"
    for wrong in ("ready-multipico-dev.9", "ready-hanna.3", "ready-"):
        assert boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"mapping_of": wrong}).status_code == 404
