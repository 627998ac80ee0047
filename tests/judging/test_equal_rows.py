"""The same files and the same mapping store equal rows by page, by API and by command, for every ready mapping."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import call_command
from django.test import Client
from zeal import zeal_ignore

from annotation import tasks as tasks_of_imports
from annotation.imports import targets, undoing
from annotation.models import Annotator, EvidenceSpan, Import, Item, Rating
from annotation.readers import known_studies
from judging import tasks
from judging.imports import studies, verdicts
from judging.models import Verdict
from tests.annotation.readers.test_tools import examples
from tests.cast import Cast
from tests.judging import made_up
from tests.judging.test_studies import Told
from tests.judging.test_study_imports import API, checked, opened, page, stored, uploads
from tests.study_data import FOLDER

Files = dict[str, bytes]
Kind = Import.Kind


def zipped(files: Files) -> bytes:
    """A zip of the files in a folder."""
    raw = BytesIO()
    with ZipFile(raw, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"annotation_output/{name}", content)
    return raw.getvalue()


CHAT = "USER: Tere\nLAMDA: Tere! Kuidas läheb?\nUSER: Hästi."
ESTONIAN = {
    "conversation_id": "c1",
    "subject": "Arve",
    "messages": [{"from_type": "customer", "message": "Tere!"}, {"from_type": "agent", "message": "Tere, kuulen."}],
    "_metadata": {
        "language": "et",
        "fluency_annotations": [{"annotator": "Annotator1", "value": 2}],
        "coherence_annotations": [{"annotator": "Annotator1", "value": 1}],
    },
}
RATED = {"type": "number", "value": {"number": 2}}
TASKS = [
    {
        "id": number,
        "data": {"item": f"d{number}", "language": "et", "dialogue": [{"speaker": "user", "text": f"Tere {number}"}]},
        "meta": {"generator": "atlas"},
        "annotations": [
            {
                "lead_time": 4,
                "result": [{**RATED, "meta": {"rater": "r1", "criterion": "fluency", "rationale": "ladus"}}],
            }
        ],
        "predictions": [
            {"model_version": "steady", "result": [{**RATED, "meta": {"criterion": "fluency", "repeat": 1}}]}
        ],
    }
    for number in (1, 2)
]
DICES = {
    "id": 173,
    "instance": {"user_prompt": CHAT, "response": "Tore."},
    "annotations": {"safety": {"majority_human": "Yes", "individual_human_scores": ["Yes", "No", "Unsure"]}},
}
HUB_RATING = {"item": "d1", "rater": "r1", "criterion": "fluency", "score": 2.0, "not_applicable": False}
HUB_VERDICT = {"item": "d1", "judge": "steady", "criterion": "fluency", "score": 1.0, "not_applicable": False}
HUB_SPANS = '[{"turn": 0, "start": 0, "end": 4, "quote": "Tere"}]'
HUB_TURNS = [{"speaker": "user", "text": "Tere"}]
HUB = {
    "items.jsonl": {"id": "d1", "language": "et", "turns": HUB_TURNS, "attributes": '{"a": 1}'},
    "ratings.jsonl": {**HUB_RATING, "rationale": "ladus", "inclusion_probability": 1.0, "evidence": HUB_SPANS},
    "verdicts.jsonl": {**HUB_VERDICT, "repeat": 0, "rationale": "", "inclusion_probability": 1.0},
}
HUB_RUBRIC = """
key: hub
name: Quality
source_language: en
criteria:
  - {key: fluency, name: Fluency, scale: {level: ordinal, points: [0, 1, 2]}}
"""
CSV_MULTIPICO = "item_id,lang,language_variety,source,level,post,reply\nm1,et,et,made up,1,Sajab.,Tore ilm!\n"
MLQE = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"
RATINGS_ESTONIAN = "reviewer_name,conversation_external_id,rating_category_name,rating_value,rating_max\n"
MADE: dict[str, Files] = {
    **{name: examples(name) for name in ("alt-test", "doccano", "judge-bench", "lewidi", "medal")},
    **{name: examples(name) for name in ("inspect-ai", "lm-eval", "promptfoo", "deepeval", "ragas", "mlflow")},
    **{name: examples(name) for name in ("llmbar", "chatbot-arena", "wmt-mqm", "dices")},
    "alpaca-eval": {"annotations.json": examples("alpaca-eval")["annotations.json"]},
    "mturk": {"batch.csv": examples("mturk")["batch.csv"]},
    "prodigy": {"choices.jsonl": examples("prodigy")["choices.jsonl"]},
    "potato": {"annotation_output.zip": zipped(examples("potato"))},
    "argilla": {"records.jsonl": examples("argilla")["records.jsonl"]},
    "label-studio": {"export.json": examples("label-studio")["export.json"]},
    "panelbench-label-studio": {"export.json": json.dumps(TASKS).encode()},
    "panelbench-hugging-face": {
        **{name: json.dumps(row).encode() for name, row in HUB.items()},
        "rubric.yaml": HUB_RUBRIC.encode(),
    },
    "dices-350": {"dices_350.json": json.dumps({"instances": [DICES]}).encode()},
    "hanna": made_up.folder(),
    "mlqe-pe": {
        "test20.eten.df.short.tsv": (MLQE + "0\tTere.\tHello.\t[50, 60]\t55\t[0.1, 0.2]\t0.15\t-0.5\n").encode(),
        "dev.roen.df.short.tsv": (MLQE + "0\tSalut.\tHello.\t[70, 60]\t65\t[0.1, 0.2]\t0.15\t-0.5\n").encode(),
        "encs_majority_dev.tsv": b"7\tHello.\tAhoj.\t[0, 1, 0]\tNOT\n8\tBye.\tAhoj.\t[2, 1, 0]\tERR\n",
    },
    "multipico-dev": {
        "items.csv": CSV_MULTIPICO.encode(),
        "labels.csv": b"item_id,annotator_id,label\nm1,Ann0,0\nm1,Ann7,1\n",
    },
    "xls-estonian": {
        "combined_et_with_annotations.json": json.dumps({"atlas": [ESTONIAN]}).encode(),
        "manual.csv": (RATINGS_ESTONIAN + 'Annotator2,c1,"Is this fluent, human-written Estonian?",3.0,3\n').encode(),
    },
}


# --- what is stored --------------------------------------------------------------------------------------------------
Digest = dict[str, tuple[int, str]]


def digest_of_rows(file_import: Import) -> Digest:
    """Number and SHA-256 of the items, ratings and verdicts that an import, or its parts, stored."""
    own = [file_import.pk, *file_import.parts.values_list("pk", flat=True)]
    items = Item.objects.filter(dataset__file_import__in=own).values_list("ordinal", "external_id", "digest")
    ratings = Rating.objects.filter(annotation__file_import__in=own).values_list(
        *("annotation__item__external_id", "annotation__annotator__pseudonym", "annotation__annotator__identified"),
        *("criterion__key", "status", "score", "rationale", "annotation__seconds"),
    )
    given = Verdict.objects.filter(run__file_import__in=own).values_list(
        *("run__judge__name", "item__external_id", "criterion__key", "repeat"),
        *("status", "score", "applicable", "fractional", "coerced", "rationale"),
    )
    asked = Verdict.objects.filter(run__file_import__in=own, attempt__isnull=False).values_list(
        *("item__external_id", "criterion__key", "repeat", "attempt__request", "attempt__reply"),
        *("attempt__served_model", "attempt__tokens_in", "attempt__tokens_out", "attempt__cost", "attempt__latency"),
    )
    spans = EvidenceSpan.objects.filter(rating__annotation__file_import__in=own).values_list(
        *("rating__annotation__item__external_id", "rating__annotation__annotator__pseudonym"),
        *("turn", "field", "start", "end", "quote", "label", "severity"),
    )
    parts = (("items", items), ("ratings", ratings), ("verdicts", given), ("requests", asked), ("evidence", spans))
    return {name: _digest(rows) for name, rows in parts}


def _digest(rows: Iterable[Any]) -> tuple[int, str]:
    lines = sorted(json.dumps(row, default=str) for row in rows)
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()


def content(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- a whole study ---------------------------------------------------------------------------------------------------
def constants_of(name: str) -> dict[str, str]:
    """Tools' exports rarely say the language of their texts."""
    return {"language": "et"} if known_studies()[name].tool else {}


def open_in_background(file_import: Import, folder: Path) -> None:
    """What a worker does with archives before anybody maps them."""
    if any(name.endswith(".zip") for name in content(folder)):
        tasks_of_imports.open_packed(file_import.pk)


def check_in_background(file_import: Import) -> None:
    """What a worker does with a large file, or an archive, that was mapped."""
    file_import.refresh_from_db()
    if file_import.state == Import.State.CHECKING:
        tasks_of_imports.check_import(file_import.pk)


def study_by_page(client: Client, name: str, folder: Path) -> Import:
    answer = client.post("/p/kassa/imports/new/", {"files": uploads(content(folder)), "kind": "study"})
    file_import = Import.objects.filter(part_of=None).latest("pk")
    assert answer["Location"] == file_import.get_absolute_url()
    open_in_background(file_import, folder)
    constants = {f"constant-{field}": value for field, value in constants_of(name).items()}
    client.post(f"/p/kassa/imports/{file_import.pk}/map/", {"study": name, **constants})
    client.post(f"{file_import.get_absolute_url()}store/")
    tasks.store_study(file_import.pk)
    return file_import


def study_by_api(client: Client, name: str, folder: Path) -> Import:
    target = json.dumps({"study": name, "constants": constants_of(name)})
    sent = {"files": uploads(content(folder)), "kind": "study", "target": target}
    file_import = Import.objects.get(pk=client.post(f"{API}/imports/", sent).json()["id"])
    open_in_background(file_import, folder)
    assert client.post(f"{API}/study-imports/{file_import.pk}/store/").status_code == 202
    tasks.store_study(file_import.pk)
    return file_import


def study_by_command(_client: Client, name: str, folder: Path) -> Import:
    constants = [f"{field}={value}" for field, value in constants_of(name).items()]
    options = {"name": name, "constants": constants, "stdout": StringIO(), "stderr": StringIO()}
    call_command("import_study", "kassa", str(folder), **options)
    return Import.objects.filter(part_of=None).latest("pk")


# --- a file with its mapping ----------------------------------------------------------------------------------------
def part_by_page(client: Client, part: Import, folder: Path) -> Import:
    client.post("/p/kassa/imports/new/", {"files": uploads(content(folder)), "kind": part.kind})
    file_import = Import.objects.latest("pk")
    open_in_background(file_import, folder)
    to_map = f"/p/kassa/imports/{file_import.pk}/map/"
    client.post(to_map, {"kind": part.kind, **part.target})
    client.post(to_map, {"yaml": part.column_mapping().as_yaml()})
    check_in_background(file_import)
    client.post(f"{file_import.get_absolute_url()}store/")
    return stored_in_background(file_import)


def part_by_api(client: Client, part: Import, folder: Path) -> Import:
    about = {"mapping": json.dumps(part.mapping), "target": json.dumps(part.target)}
    made = client.post(f"{API}/imports/", {"files": uploads(content(folder)), "kind": part.kind, **about})
    file_import = Import.objects.get(pk=made.json()["id"])
    open_in_background(file_import, folder)
    check_in_background(file_import)
    which = "verdict-imports" if part.kind == Kind.VERDICTS else "imports"
    assert client.post(f"{API}/{which}/{file_import.pk}/store/").status_code in (200, 202)
    return stored_in_background(file_import)


def part_by_command(_client: Client, part: Import, folder: Path) -> Import:
    mapping = folder.with_suffix(".yaml")
    mapping.write_text(part.column_mapping().as_yaml(), encoding="utf-8")
    options: dict[str, Any] = {"project": "kassa", "mapping": mapping, "stdout": StringIO()}
    if part.kind == Kind.DATASET:
        options["name"] = "Alone"
    else:
        target = targets.resolve(project=part.project, target_fields=part.target)
        assert target is not None
        options |= {"dataset": str(target.dataset), "rubric": str(target.rubric_version)}
    call_command(f"import_{part.kind}", *map(str, sorted(folder.iterdir())), **options)
    return Import.objects.latest("pk")


def target_of(part: Import) -> dict[str, Any]:
    """The dataset and rubric of a part, by which its campaign is found or opened again; a name for a dataset alone."""
    if part.kind == Kind.DATASET:
        return {"name": "Alone"}
    target = targets.resolve(project=part.project, target_fields=part.target)
    assert target is not None
    return {"dataset": target.dataset.pk, "rubric_version": target.rubric_version.pk}


def stored_in_background(file_import: Import) -> Import:
    """The import once a worker has stored it, where it is too large for a request."""
    file_import.refresh_from_db()
    if file_import.state == Import.State.STORING:
        store = tasks.store_verdicts if file_import.kind == Kind.VERDICTS else tasks_of_imports.store_import
        store(file_import.pk)
        file_import.refresh_from_db()
    assert file_import.state == Import.State.STORED, file_import.report
    return file_import


def undo(file_import: Import) -> None:
    ways = {Kind.VERDICTS: verdicts.remove_verdicts, Kind.STUDY: studies.remove_study}
    ways.get(Kind(file_import.kind), undoing.undo)(file_import=Import.objects.get(pk=file_import.pk))


def require_equal_studies(boris: Client, name: str, folder: Path) -> Import:
    """Store the study of a folder in each way; the last of its imports stays stored."""
    digests = []
    for study_way in (study_by_page, study_by_api, study_by_command):
        file_import = study_way(boris, name, folder)
        file_import.refresh_from_db()
        assert file_import.state == Import.State.STORED, (study_way.__name__, file_import.report)
        digests.append(digest_of_rows(file_import))
        if study_way is not study_by_command:
            undo(file_import)
    assert digests[0] == digests[1] == digests[2]
    assert any(count for count, _digest in digests[0].values())
    return file_import


def require_equal_parts(boris: Client, file_import: Import, alone: Path) -> None:
    """Store each dataset, and the ratings and verdicts, of a stored study by itself in each way, by its mapping."""
    parts = list(file_import.parts.select_related("project").exclude(kind=Kind.RUBRIC).order_by("pk"))
    for part in parts:
        part.target = target_of(part)
    for part in reversed(parts):
        if part.kind != Kind.DATASET:
            undo(part)
    for number, part in enumerate(parts):
        own = alone / str(number)
        own.mkdir()
        with part.opened() as files:
            read = {file_name: raw if isinstance(raw, bytes) else raw.read() for file_name, raw in files}
        if any("/" in file_name for file_name in read):
            read = {"folder.zip": zipped(read)}
        for file_name, raw in read.items():
            (own / file_name).write_bytes(raw)
        rows = []
        for way in (part_by_page, part_by_api, part_by_command):
            with zeal_ignore():  # every judge of a file is looked up or made, and locked, by itself
                part_import = way(boris, part, own)
            rows.append(digest_of_rows(part_import))
            undo(part_import)
        assert rows[0] == rows[1] == rows[2], (part.kind, part.mapping)
        assert any(count for count, _digest in rows[0].values()), part.mapping


def test_there_is_a_made_study_for_every_ready_mapping() -> None:
    assert set(MADE) == set(known_studies())


@pytest.mark.parametrize("name", MADE)
def test_page_api_and_command_store_equal_rows_of_a_made_study(cast: Cast, tmp_path: Path, name: str) -> None:
    (folder := tmp_path / "study").mkdir()
    (alone := tmp_path / "alone").mkdir()
    for file_name, raw in MADE[name].items():
        (folder / file_name).write_bytes(raw)
    boris = cast.client("boris")
    require_equal_parts(boris, require_equal_studies(boris, name, folder), alone)


# --- the shared folders ----------------------------------------------------------------------------------------------
# Folder -> what is read, stored, collapsed, missing and flagged by each import, in order.
COUNTS: dict[str, list[tuple[str, dict[str, int]]]] = {
    "dices-350": [
        ("dataset DICES-350 v1", {"read": 350, "stored": 350}),
        ("rubric dices-safety v1", {"stored": 1}),
        ("ratings DICES-350 v1 × dices-safety v1", {"read": 43_050, "stored": 43_050}),
    ],
    "hanna": [
        ("dataset HANNA stories v1", {"read": 1056, "stored": 1056, "flagged": 1056}),
        ("rubric hanna-stories v1", {"stored": 1}),
        ("ratings HANNA stories v1 × hanna-stories v1", {"read": 19_008, "stored": 19_008}),
        ("verdicts 20 runs", {"read": 126_720, "stored": 126_720}),
        ("dataset HANNA explanations v1", {"read": 300, "stored": 100, "collapsed": 200}),
        ("rubric hanna-explanations v1", {"stored": 1}),
        ("ratings HANNA explanations v1 × hanna-explanations v1", {"read": 1800, "stored": 1800}),
    ],
    "mlqe-pe": [
        ("dataset MLQE-PE direct assessments v1", {"read": 5000, "stored": 5000}),
        ("rubric mlqe-quality v1", {"stored": 1}),
        ("ratings MLQE-PE direct assessments v1 × mlqe-quality v1", {"read": 27_000, "stored": 27_000}),
        ("dataset MLQE-PE critical errors v1", {"read": 4000, "stored": 4000}),
        ("rubric mlqe-critical-errors v1", {"stored": 1}),
        ("ratings MLQE-PE critical errors v1 × mlqe-critical-errors v1", {"read": 12_000, "stored": 12_000}),
        ("rubric mlqe-rating-codes v1", {"stored": 1}),
        ("ratings MLQE-PE critical errors v1 × mlqe-rating-codes v1", {"read": 12_000, "stored": 12_000}),
        ("dataset MLQE-PE Pashto to English v1", {"read": 1000, "stored": 1000}),
    ],
    "multipico-dev": [
        ("dataset MultiPICo v1", {"read": 3005, "stored": 3005}),
        ("rubric multipico-irony v1", {"stored": 1}),
        ("ratings MultiPICo v1 × multipico-irony v1", {"read": 15_178, "stored": 15_178}),
    ],
    "xls-estonian": [
        ("dataset Estonian dialogues v1", {"read": 120, "stored": 120}),
        ("rubric estonian v1", {"stored": 1}),
        (
            "ratings Estonian dialogues v1 × estonian v1",
            {"read": 1268, "stored": 1016, "collapsed": 248, "collapsed_blank": 1, "missing": 4},
        ),
        ("ratings Estonian dialogues v1 × estonian v1", {"read": 1016, "stored": 0, "collapsed": 1016}),
        ("dataset Dialogues of the paper v1", {"read": 2765, "stored": 2765, "flagged": 1}),
    ],
}


def shared_by_page(client: Client, name: str) -> Import:
    """The files one by one: recognised, looked at, stored."""
    file_import = stored(client, opened(client, content(FOLDER / name)))
    assert "Ignored: not part" not in page(client, file_import)
    return file_import


def shared_by_api(client: Client, name: str) -> Import:
    """An archive of the files: recognised, looked at, stored."""
    archive = {f"{name}.zip": made_up.zip_archive(content(FOLDER / name))}
    number = client.post(f"{API}/imports/", {"files": uploads(archive)}).json()["id"]
    tasks_of_imports.open_packed(number)
    assert client.get(f"{API}/imports/{number}/").json()["target"] == {"study": name}
    file_import = checked(Import.objects.get(pk=number))
    address = f"{API}/study-imports/{file_import.pk}"
    assert client.get(f"{address}/preview/").json()["sentence"] == ""
    assert client.post(f"{address}/store/").status_code == 202
    tasks.store_study(file_import.pk, file_import.created_by_id)
    file_import.refresh_from_db()
    return file_import


def require_counts(name: str, outcomes: list[dict[str, Any]], *, rubrics_are_new: bool) -> None:
    """Each part stored what SOURCE.md says, and refused nothing. A rubric stays published when a study is undone."""
    assert [f"{part['kind']} {part['made']}" for part in outcomes] == [made for made, _counts in COUNTS[name]]
    for part, (made, counts) in zip(outcomes, COUNTS[name], strict=True):
        report = part["report"]
        expected = {"stored": int(rubrics_are_new)} if part["kind"] == "rubric" else counts
        assert {key: report[key] for key in expected} == expected, made
        assert report["refused"] == 0
        assert report["read"] == report["stored"] + report["collapsed"] + report["missing"]


def shared_by_command(_client: Client, name: str) -> Import:
    command = Told("kassa", FOLDER / name, "--json")
    assert command.status == 0, command.err
    file_import = Import.objects.filter(part_of=None).latest("pk")
    assert command.outcomes == file_import.report["parts"]
    return file_import


# The three largest folders are stored once; made studies of their mappings go every way above.
WAYS = {"hanna": (shared_by_api,), "mlqe-pe": (shared_by_page,), "dices-350": (shared_by_command,)}


@pytest.mark.study_data
@pytest.mark.parametrize("name", COUNTS)
def test_a_shared_folder_comes_in_by_each_way_with_the_counts_of_its_source(cast: Cast, name: str) -> None:
    boris, rows = cast.client("boris"), []
    *former, last = WAYS.get(name, (shared_by_page, shared_by_api, shared_by_command))
    for way in (*former, last):
        file_import = way(boris, name)
        assert file_import.state == "stored", file_import.report
        require_counts(name, file_import.report["parts"], rubrics_are_new=not rows)
        rows.append(digest_of_rows(file_import))
        if way is not last:
            undo(file_import)
    assert all(digest == rows[0] for digest in rows)

    ratings = sum(part["report"]["stored"] for part in file_import.report["parts"] if part["kind"] == "ratings")
    assert Rating.objects.count() == ratings
    persons = set(Annotator.objects.values_list("identified", flat=True))
    assert persons == {name in {"multipico-dev", "xls-estonian"}}, "raters by position are slots, not persons"
    if name == "hanna":
        assert Verdict.objects.filter(status=Verdict.Status.OUT_OF_RANGE, score__lt=1).count() == 1051
    again = Told("kassa", FOLDER / name, "--json")
    assert {part["report"]["stored"] for part in again.outcomes} == {0}
    assert Rating.objects.count() == ratings
