"""A file is read once: what the preview read is kept beside it, checked, and stored; it is gone with the import."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.imports import import_jobs, lifecycle, opening, parsed_files, parsing, previews
from annotation.models import Campaign, Dataset, Import, Item, Rating
from annotation.readers import Mapping, propose_mapping
from annotation.readers.encoding import PIECE
from judging.models import Verdict
from tests import make
from tests.cast import Cast
from tests.judging import made_up, test_study_imports

IMPORTS = "/api/v1/projects/kassa/imports/"
ITEMS = "id,language,question,answer,model,note\n" + "".join(
    f"d{n},et,Kus on minu pakk {n}?,Vaatan kohe järele.,atlas{n % 2},note {n}\n" for n in range(1, 5)
)
RATINGS = "item,rater,criterion,score,comment\n" + "".join(
    f"d{n},{rater},{criterion},{n % 2},\n"
    for n in range(1, 5)
    for rater in ("r1", "r2")
    for criterion in ("Fluency", "coherence")
)
VERDICTS = "".join(
    line for line in RATINGS.replace("rater", "judge", 1).splitlines(keepends=True) if ",r2," not in line
)
FILES = {"dataset": ITEMS, "ratings": RATINGS, "verdicts": VERDICTS}

_counting: list[list[str]] = []  # the list to add to, while a test counts: an audit hook can't be removed


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event == "open" and isinstance(arguments[0], str | bytes | Path):
        _counting[0].append(os.fsdecode(arguments[0]))


sys.addaudithook(_heard)


@pytest.fixture
def opened_files() -> Iterator[list[str]]:
    """The path of every file that is opened while the test runs, as often as it is."""
    _counting.append([])
    yield _counting[0]
    _counting.clear()


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "uploads"


@pytest.fixture
def scene(cast: Cast) -> Campaign:
    return make.campaign(cast.kassa)


def uploaded(client: Client, kind: str, text: str = "", **target: Any) -> Import:
    sent = {"files": SimpleUploadedFile(f"{kind}.csv", (text or FILES[kind]).encode()), "kind": kind}
    answer = client.post(IMPORTS, {**sent, **({"target": str(target).replace("'", '"')} if target else {})})
    assert answer.status_code == 201, answer.content
    return Import.objects.get(pk=answer.json()["id"])


def about(kind: str, scene: Campaign) -> dict[str, Any]:
    if kind == "dataset":
        return {"name": "Parcels"}
    return {"dataset": scene.dataset_id, "rubric_version": scene.rubric_version_id}


def address(file_import: Import) -> str:
    folder = "verdict-imports" if file_import.kind == "verdicts" else "imports"
    return f"/api/v1/projects/kassa/{folder}/{file_import.pk}/"


def previewed(client: Client, file_import: Import) -> dict[str, Any]:
    answer = client.get(f"{address(file_import)}preview/")
    assert answer.status_code == 200, answer.content
    seen: dict[str, Any] = answer.json()
    return seen


def stored(client: Client, file_import: Import) -> dict[str, Any]:
    answer = client.post(f"{address(file_import)}store/")
    assert answer.status_code == 200, answer.content
    report: dict[str, Any] = answer.json()["report"]
    return report


def rows_of(file_import: Import) -> list[Any]:
    """What an import stored, without what is new each time."""
    if file_import.kind == "dataset":
        columns = ("external_id", "ordinal", "language", "generator", "turns", "fields", "attributes", "digest")
        return list(Item.objects.filter(dataset__file_import=file_import).values_list(*columns).order_by("ordinal"))
    if file_import.kind == "ratings":
        given = Rating.objects.filter(annotation__file_import=file_import)
        columns = ("annotation__item", "annotation__annotator__pseudonym", "criterion", "status", "score", "rationale")
    else:
        given = Verdict.objects.filter(run__file_import=file_import)
        columns = ("item", "run__judge__name", "criterion", "repeat", "status", "score", "rationale")
    return sorted(given.values_list(*columns), key=repr)


def undone(client: Client, file_import: Import) -> None:
    assert client.post(f"{address(file_import)}undo/").status_code == 200


def kept(file_import: Import) -> list[Path]:
    return sorted(path for path in (settings.MEDIA_ROOT / "parsed" / str(file_import.pk)).rglob("*") if path.is_file())


@pytest.mark.django_db
@pytest.mark.parametrize("kind", FILES)
def test_preview_and_store_open_the_file_once(kind: str, cast: Cast, scene: Campaign, opened_files: list[str]) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, kind, **about(kind, scene))
    content = file_import.files.get().content.path
    opened_files.clear()
    seen = previewed(boris, file_import)
    assert opened_files.count(content) == 1
    assert previewed(boris, file_import) == seen, "what was kept is shown in another way than what was read"
    report = stored(boris, file_import)
    assert opened_files.count(content) == 1, "storing read the file again"
    assert (report["read"], report["stored"]) == (seen["report"]["read"], seen["report"]["stored"])
    assert report["notes"] == seen["report"]["notes"]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", FILES)
def test_the_same_is_stored_from_what_was_kept_as_from_the_file(kind: str, cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, kind, **about(kind, scene))
    from_file = stored(boris, file_import)
    rows = rows_of(file_import)
    assert rows
    undone(boris, file_import)
    previewed(boris, file_import)
    assert len(kept(file_import)) == 1
    report = stored(boris, file_import)
    assert rows_of(file_import) == rows
    assert {**report, "campaign": 0, "opened_campaign": 0} == {**from_file, "campaign": 0, "opened_campaign": 0}


@pytest.mark.django_db
@pytest.mark.parametrize("damage", ["cut", "one byte", "another import's", "empty", "gone", "a folder"])
def test_what_was_kept_and_is_damaged_is_read_again(
    damage: str, cast: Cast, scene: Campaign, opened_files: list[str]
) -> None:
    boris = cast.client("boris")
    other = uploaded(boris, "dataset", ITEMS.replace("minu", "sinu"), name="Other")
    previewed(boris, other)
    file_import = uploaded(boris, "dataset", name="Parcels")
    previewed(boris, file_import)
    (file,) = kept(file_import)
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "one byte":
        place = len(whole) * 2 // 3
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    elif damage == "another import's":
        file.write_bytes(kept(other)[0].read_bytes())
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        if damage == "a folder":
            file.mkdir()
    opened_files.clear()
    stored(boris, file_import)
    assert opened_files.count(file_import.files.get().content.path) == 1
    assert [row[5]["question"] for row in rows_of(file_import)] == [f"Kus on minu pakk {n}?" for n in range(1, 5)]


@pytest.mark.django_db
def test_a_mapping_changed_after_the_preview_is_what_is_stored(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", name="Parcels")
    previewed(boris, file_import)
    mapping = {"columns": {"note": "title"}}
    answer = boris.patch(address(file_import), {"mapping": mapping}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    stored(boris, file_import)
    assert list(Item.objects.filter(dataset__name="Parcels").values_list("title", flat=True).order_by("ordinal")) == [
        f"note {n}" for n in range(1, 5)
    ]


@pytest.mark.django_db
def test_one_result_is_kept_however_often_the_mapping_changes(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", name="Parcels")
    for field in ("title", "scenario", "context"):
        mapping = {"columns": {"note": field}}
        boris.patch(address(file_import), {"mapping": mapping}, content_type="application/json")
        previewed(boris, file_import)
    assert len(kept(file_import)) == 1


def test_the_code_is_part_of_what_a_result_answers(tmp_path: Path) -> None:
    (tmp_path / "reading.py").write_text("ROWS = 1")
    before = parsed_files.code_digest(tmp_path)
    assert parsed_files.code_digest(tmp_path) == before
    (tmp_path / "reading.py").write_text("ROWS = 2")
    assert parsed_files.code_digest(tmp_path) != before


@pytest.mark.django_db
def test_a_result_of_other_code_is_not_used(cast: Cast, scene: Campaign, opened_files: list[str]) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", name="Parcels")
    previewed(boris, file_import)
    (file,) = kept(file_import)
    file.rename(file.with_name("0" * 64))  # the digest that another release would have asked for
    opened_files.clear()
    stored(boris, file_import)
    assert opened_files.count(file_import.files.get().content.path) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("verdicts", [False, True])
def test_ratings_on_another_rubric_are_read_again(verdicts: bool, cast: Cast, scene: Campaign) -> None:
    boris, kind = cast.client("boris"), "verdicts" if verdicts else "ratings"
    file_import = uploaded(boris, kind, **about(kind, scene))
    assert previewed(boris, file_import)["criteria"] == {"fluency": "fluency", "coherence": "coherence"}
    other = make.rubric(
        cast.kassa, make.criterion("coherence"), make.criterion("flow", name={"en": "Fluency"}), key="b"
    )
    target = {"dataset": scene.dataset_id, "rubric_version": other.pk}
    boris.patch(f"{IMPORTS}{file_import.pk}/", {"target": target}, content_type="application/json")
    stored(boris, file_import)
    model = Verdict if verdicts else Rating
    assert set(model.objects.values_list("criterion__key", flat=True)) == {"coherence", "flow"}


@pytest.mark.django_db
def test_a_file_with_problems_is_not_kept(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", ITEMS + "d9,et,,,,\n", name="Parcels")
    assert previewed(boris, file_import)["problems"]
    assert kept(file_import) == []


@pytest.mark.django_db
def test_masked_names_are_masked_in_what_was_kept_too(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    named = ITEMS.replace("atlas1", "gpt-4o").replace("Kus on minu pakk 1?", "GPT-4o: kus on minu pakk?")
    file_import = uploaded(boris, "dataset", named, name="Parcels")
    assert previewed(boris, file_import)["problems"], "a generator's name is shown, and nothing is said of it"
    target = {"name": "Parcels", "generator_names": "mask"}
    boris.patch(address(file_import), {"target": target}, content_type="application/json")
    seen = previewed(boris, file_import)
    assert seen["problems"] == []
    stored(boris, file_import)
    questions = [row[5]["question"] for row in rows_of(file_import)]
    assert questions[0] == seen["rows"][0]["fields"]["question"] and "gpt" not in str(questions).casefold()


@pytest.mark.django_db(transaction=True)
def test_what_was_kept_goes_with_the_import_and_once_it_is_stored(cast: Cast) -> None:
    boris = cast.client("boris")
    first, second = (uploaded(boris, "dataset", name=name) for name in ("Parcels", "More"))
    for each in (first, second):
        previewed(boris, each)
        assert kept(each)
    stored(boris, first)
    assert not (settings.MEDIA_ROOT / "parsed" / str(first.pk)).exists()
    assert boris.delete(address(second)).status_code == 204
    assert not (settings.MEDIA_ROOT / "parsed" / str(second.pk)).exists()


@pytest.mark.django_db
def test_the_sweep_deletes_what_belongs_to_no_import_and_what_is_old(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    fresh, old, gone = (uploaded(boris, "dataset", name=name) for name in ("A", "B", "C"))
    for each in (fresh, old, gone):
        previewed(boris, each)
    folder = settings.MEDIA_ROOT / "parsed"
    half = folder / str(fresh.pk) / "half-written.part"  # of a process that was killed
    half.write_bytes(b"half")
    long_ago = time.time() - timedelta(days=30).total_seconds()
    for path in (half, *kept(old)):
        os.utime(path, (long_ago, long_ago))
    Import.objects.filter(pk=gone.pk).delete()  # its process died before the files went
    parsed_files.sweep_parsed()
    assert [len(kept(each)) for each in (fresh, old, gone)] == [1, 0, 0]
    assert not (folder / str(gone.pk)).exists() and not half.exists()
    stored(boris, old)
    assert Dataset.objects.filter(name="B").exists()


@pytest.mark.django_db(transaction=True)
def test_a_check_by_a_worker_is_what_storing_stores(
    cast: Cast, opened_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a large file: checked, the worker dies before it stores, the next one stores what was kept."""
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", name="Parcels")
    content = file_import.files.get().content.path
    monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)
    import_jobs.start_check(file_import=file_import)
    opened_files.clear()
    import_jobs.carry_out_check(import_pk=file_import.pk, look=previews.preview_import)
    assert opened_files.count(content) == 1
    file_import.refresh_from_db()
    lifecycle.start(file_import=file_import)
    file_import.refresh_from_db()
    with pytest.raises(KeyboardInterrupt), lifecycle.hold_for_storing(file_import):
        raise KeyboardInterrupt  # the process is told to end
    assert len(kept(file_import)) == 1, "a try that failed took what was kept with it"
    lifecycle.start(file_import=file_import)
    lifecycle.finish(file_import=file_import)
    assert opened_files.count(content) == 1
    assert len(rows_of(file_import)) == 4


@pytest.mark.django_db
def test_a_disk_without_room_shows_the_preview_all_the_same(cast: Cast, scene: Campaign) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, "dataset", name="Parcels")
    folder = settings.MEDIA_ROOT / "parsed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(file_import.pk)).write_bytes(b"")  # no folder can be made here
    assert previewed(boris, file_import)["report"]["stored"] == 4
    assert stored(boris, file_import)["stored"] == 4


@pytest.mark.django_db
def test_rows_of_every_sort_come_back_as_they_were(cast: Cast) -> None:
    """Numbers, lists, nothing, emoji, and what JSON has no word for in names."""
    text = (
        '{"id": "a", "language": "et", "turns": [{"speaker": "user", "text": "Tere \\ud83d\\ude00\\u2028"}],'
        ' "n": 1, "x": 1.0, "deep": {"list": [null, true, 1e300, "\\u0001"]}}\n'
        '{"language": "ar", "question": "كيف؟", "n": -0.0}\n{"language": "ar", "question": "كيف؟", "n": -0.0}\n'
    )
    boris = cast.client("boris")
    sent = {"files": SimpleUploadedFile("items.jsonl", text.encode()), "kind": "dataset"}
    file_import = Import.objects.get(pk=boris.post(IMPORTS, sent).json()["id"])
    stored(boris, file_import)
    rows = rows_of(file_import)
    undone(boris, file_import)
    previewed(boris, file_import)
    assert len(kept(file_import)) == 1
    stored(boris, file_import)
    assert rows_of(file_import) == rows and len(rows) == 3


@pytest.mark.django_db
def test_what_the_check_of_a_study_read_is_what_its_parts_store(cast: Cast, opened_files: list[str]) -> None:
    boris = cast.client("boris")
    file_import = test_study_imports.opened(boris, made_up.folder())
    assert len(kept(file_import)) == 3, "dataset, ratings and verdicts"
    contents = [file.content.path for file in file_import.files.all()]
    opened_files.clear()
    assert test_study_imports.stored(boris, file_import).state == "stored"
    assert {path: opened_files.count(path) for path in contents} == dict.fromkeys(contents, 1), (
        "to tell the parts apart"
    )
    assert test_study_imports.counts() == test_study_imports.WHOLE


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["ratings", "verdicts"])
def test_answers_are_read_once_however_their_criteria_are_called(kind: str, scene: Campaign) -> None:
    told: list[int] = []
    files = [(f"{kind}.csv", FILES[kind].encode())]
    mapping = propose_mapping(kind, files, Mapping())  # type: ignore[arg-type]
    parsed = parsing.parse_files(kind, files, mapping, scene.rubric_version, lambda done, _total: told.append(done))
    assert {row.criterion for row in parsed.rows} == {"fluency", "coherence"}
    assert parsed.report.notes[0] == "“Fluency” was taken as the criterion fluency."
    assert parsed.mapping.values["criterion"] == {"Fluency": "fluency"}
    assert told == sorted(told), "reading began again"


class Counted(BytesIO):
    """A file that counts the bytes that are read of it."""

    total = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.total += len(content)
        return content


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["", "dataset"])
def test_an_upload_reads_the_first_page_of_a_file_and_copies_it(kind: str, cast: Cast) -> None:
    rows = "".join(f"d{n},et,Kus on minu pakk {n}? {'Ootan. ' * 8},Vaatan järele,atlas,-\n" for n in range(40_000))
    file = Counted((ITEMS.partition("\n")[0] + "\n" + rows).encode())
    size = len(file.getvalue())
    assert size > 3 * PIECE
    (file_import,) = opening.open_imports(project=cast.kassa, files=[("items.csv", file)], kind=kind, actor=cast.boris)
    assert file_import.mapping["columns"]["question"] == "question"
    assert file.total <= size + PIECE, "more than the first page was read, beside the copy"
