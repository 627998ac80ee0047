"""Items of a plan are exported, imported into another project, and are equal; what Croissant says of their files."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import override_settings

from accounts import people
from annotation.models import Campaign, CuratedItem, Dataset, Item
from annotation.writers.croissant import CROISSANT_NAME, licence_address
from judging.generation import curating, storing
from judging.generation.curating import CurationSettings
from judging.generation.plans import GeneratorChoice
from panelbench import environment
from tests import make
from tests.analytics import scene
from tests.cast import Cast
from tests.judging.generation.conversed import simulated_plan
from tests.judging.generation.test_twins import natives, twins
from tests.provider_server import RunningProvider

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.django_db(transaction=True)
WAYS = ("jsonl", "csv", "xlsx", "parquet", "croissant", "hugging-face")
HARD_ATTRIBUTES: dict[str, Any] = {
    "persona": 'Jüri “Õ” said "ja", أستاذ',
    "nõusolek": "e\u0301",
    "code": "0042",
    "like a number": "1e3",
    "empty": "",
    "count": 3,
    "negative": -2,
    "share": 0.1,
    "whole share": 2.0,
    "large": 2**53 + 1,
    "yes": True,
    "no": False,
    "tags": ["a", "“b”", "ج"],
    "no tags": [],
    "nested": {"seed": 7, "parts": [1, 2.5, None]},
    "formula": "=1+1",
    "spaces": "  two  ",
    "lines": "first\nsecond",
}


def simulated_dataset(cast: Cast) -> Dataset:
    """Conversations with their scenes, simulators and how they ended; the faulty ones with the reason."""
    plan = simulated_plan(cast)
    return storing.store_dataset(plan=plan, name="Vestlused “1” – محادثات", only="every", actor=cast.boris)


def sampled_dataset(cast: Cast) -> Dataset:
    """A random sample of them, each with the probability with which it was drawn."""
    settings = CurationSettings(n=5, method="random", by=["generator"], seed=11)
    return curating.curate(dataset=simulated_dataset(cast), name="Valim «5»", settings=settings).dataset


def hard_dataset(cast: Cast) -> Dataset:
    """Attributes of every type, of which some items have none; turns with names, lists of passages."""
    turns = [
        {"speaker": "user", "name": "Ãnna “Õ”", "text": "مرحبا\n\n=1+1"},
        {"speaker": "assistant", "text": " e\u0301 "},
    ]
    rows = [
        make.item_row(0, "ar", "أطلس", turns=turns, attributes=HARD_ATTRIBUTES),
        make.item_row(1, "et", "Bábel “2”", turns=turns[:1], attributes={"count": 4}),
        make.item_row(
            2, "et", "", turns=[], fields={"question": "Mis?", "passages": ['"üks"', "kaks, kolm"]}, attributes={}
        ),
    ]
    return make.dataset(cast.kassa, rows, name='Rasked "1" – صعب')


def translated_dataset(cast: Cast) -> Dataset:
    """Translations beside their sources, joined by attributes that are true or false, text and numbers."""
    address = "http://127.0.0.1:9/v1"  # nothing is sent
    entries = json.dumps([{"name": "simulated", "base_url": address, "simulated": True}])
    with override_settings(PROVIDERS=environment.declared_providers({"PANELBENCH_PROVIDERS": entries})):
        plan = twins(cast, natives(cast))
    for row in plan.realisations.select_related("family__source"):
        source = row.family.source
        assert source is not None
        row.turns, row.state = source.turns, "written"
        row.save()
    return storing.store_dataset(plan=plan, name="Kaksikud", only="all", actor=cast.boris, with_natives=True)


SOURCES = {
    "simulated": simulated_dataset,
    "sampled": sampled_dataset,
    "hard": hard_dataset,
    "translated": translated_dataset,
}


def taken_out(cast: Cast, dataset: Dataset, way: str) -> tuple[str, bytes]:
    """The file of an export by the API, with its name."""
    what, query = {
        "croissant": ("croissant", {"dataset": str(dataset)}),
        "hugging-face": ("hugging-face", {}),
    }.get(way, ("items", {"dataset": str(dataset), "format": way}))
    answer = cast.client("boris").get(f"/api/v1/projects/kassa/exports/{what}/", query)
    assert answer.status_code == 200, answer.content
    name = {"croissant": "items.zip", "hugging-face": "study.zip"}.get(what, f"items.{way}")
    return name, b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def brought_in(cast: Cast, folder: Path, name: str, content: bytes) -> Dataset:
    """The dataset that a file becomes in a new project: by the API, or by the command where a worker would read it."""
    target = people.create_project(name="Again", slug="again", founder=cast.aino)
    if name.endswith(("jsonl", "csv")):
        client = cast.client("aino")
        form = {"kind": "dataset", "files": [SimpleUploadedFile(name, content)]}
        answer = client.post("/api/v1/projects/again/imports/", form)
        assert answer.status_code == 201, answer.content
        answer = client.post(f"/api/v1/projects/again/imports/{answer.json()['id']}/store/")
        assert answer.status_code == 200, answer.content
    else:
        (folder / name).write_bytes(content)
        if name == "study.zip":
            call_command("import_study", "again", str(folder / name), stdout=StringIO())
        else:
            call_command("import_dataset", str(folder / name), project="again", stdout=StringIO())
    return Dataset.objects.ready().get(project=target)


def facts(dataset: Dataset) -> list[tuple[Any, ...]]:
    """What an item is, with the types of all values: 2.0 is not 2, and true is not 1."""
    read = ("external_id", "language", "generator", "scenario", "title", "content_warning")
    rows = Item.objects.of(dataset).order_by("ordinal")
    return [
        (
            *(getattr(row, name) for name in read),
            *(json.dumps(part, sort_keys=True) for part in (row.turns, row.fields)),
        )
        for row in rows
    ]


def attributes(dataset: Dataset) -> list[str]:
    rows = Item.objects.of(dataset).order_by("ordinal")
    return [json.dumps(row.attributes, sort_keys=True, ensure_ascii=False) for row in rows]


def with_draws(dataset: Dataset) -> list[str]:
    """The attributes of the items, and how they were drawn, as an import keeps it."""
    draws = {
        draw.item_id: {
            "inclusion_probability": draw.probability,
            **({"stratum": draw.stratum} if draw.stratum else {}),
        }
        for draw in CuratedItem.objects.filter(item__dataset=dataset)
    }
    rows = Item.objects.of(dataset).order_by("ordinal")
    return [json.dumps(row.attributes | draws.get(row.pk, {}), sort_keys=True, ensure_ascii=False) for row in rows]


@pytest.mark.both_databases
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", SOURCES)
def test_items_of_a_plan_come_back_equal(cast: Cast, source: str, way: str, tmp_path: Path) -> None:
    dataset = SOURCES[source](cast)
    if way == "hugging-face":
        Campaign.objects.create(
            project=cast.kassa,
            name="Round “1”",
            dataset=dataset,
            rubric_version=make.rubric(cast.kassa, make.criterion("fluency")),
        )
    name, content = taken_out(cast, dataset, way)
    again = brought_in(cast, tmp_path, name, content)
    assert facts(again) == facts(dataset)
    assert attributes(again) == with_draws(dataset)


def test_a_generator_is_named_in_the_form_that_imports_compare_names_in(cast: Cast, provider: RunningProvider) -> None:
    plan = twins(
        cast,
        natives(cast),
        generators=[GeneratorChoice(provider="simulated", model="sim-steady", name=" Ba\u0301bel “2” ")],
    )
    assert plan.generators.get().name == "B\u00e1bel “2”"


# --- Croissant --------------------------------------------------------------------------------------------------------
def folder_with_description(cast: Cast, what: str, **query: Any) -> tuple[dict[str, bytes], dict[str, Any]]:
    answer = cast.client("boris").get(f"/api/v1/projects/kassa/exports/{what}/", query)
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    with ZipFile(BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return files, json.loads(files.pop(CROISSANT_NAME))


def require_described(files: dict[str, bytes], said: dict[str, Any]) -> None:
    """Every file is described with its size and digest, and every column of a table by a field of its type."""
    assert {one["@id"] for one in said["distribution"]} == files.keys()
    for one in said["distribution"]:
        content = files[one["contentUrl"]]
        assert one["sha256"] == hashlib.sha256(content).hexdigest()
        assert one["contentSize"] == f"{len(content)} B" and one["encodingFormat"]
    identifiers = [one["@id"] for one in (*said["distribution"], *said["recordSet"])]
    for records in said["recordSet"]:
        sources = {part["source"]["fileObject"]["@id"] for field in records["field"] for part in leaves(field)}
        (path,) = sources
        table = parquet.read_table(BytesIO(files[path]))
        extracted = {part["source"]["extract"]["column"] for field in records["field"] for part in leaves(field)}
        assert extracted == set(table.column_names)
        for field in records["field"]:
            identifiers += [field["@id"], *(part["@id"] for part in leaves(field) if part is not field)]
            arrow = table.schema.field(field["name"]).type
            is_list = pyarrow.types.is_list(arrow)
            assert field.get("repeated", False) is is_list
            kind = arrow.value_type if is_list else arrow
            if pyarrow.types.is_struct(kind):
                assert [part["name"] for part in field["subField"]] == [part.name for part in kind]
            else:
                assert field["dataType"] == CROISSANT_OF_ARROW[str(kind)], field
    assert len(identifiers) == len(set(identifiers))


CROISSANT_OF_ARROW = {
    "string": "sc:Text",
    "double": "sc:Float",
    "int64": "sc:Integer",
    "bool": "sc:Boolean",
    "timestamp[us, tz=UTC]": "sc:DateTime",
}


def leaves(field: dict[str, Any]) -> list[dict[str, Any]]:
    return field.get("subField") or [field]


def test_croissant_describes_the_items_of_a_dataset(cast: Cast) -> None:
    dataset = hard_dataset(cast)
    Dataset.objects.update(licence="CC BY-SA 4.0", simulated=True)
    files, said = folder_with_description(cast, "croissant", dataset=str(dataset))
    require_described(files, said)
    assert said["@type"] == "sc:Dataset" and said["@context"]["cr"] == "http://mlcommons.org/croissant/"
    assert said["conformsTo"][0] == "http://mlcommons.org/croissant/1.0"
    assert said["name"] == 'Kassa: Rasked "1" – صعب v1' and said["version"] == "1.0.0"
    assert (said["license"], said["inLanguage"]) == ("https://spdx.org/licenses/CC-BY-SA-4.0.html", ["ar", "et"])
    assert said["rai:dataLimitations"] == ["The items were generated for this study; they are not real conversations."]
    (records,) = said["recordSet"]
    assert records["key"] == {"@id": "items/id"} and records["description"].endswith("3 rows")


def test_the_folder_for_the_hub_says_in_croissant_how_people_and_judges_rated(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    files, said = folder_with_description(cast, "hugging-face")
    require_described(files, said)
    assert [one["@id"] for one in said["recordSet"]] == ["items", "ratings", "verdicts"]
    for records in said["recordSet"][1:]:
        item = next(field for field in records["field"] if field["name"] == "item")
        assert item["references"] == {"field": {"@id": "items/id"}}
    assert said["rai:dataAnnotationPlatform"][0].startswith("Panelbench ")
    assert any("fluency, et: krippendorff alpha 0." in text for text in said["rai:dataAnnotationAnalysis"])
    assert said["rai:machineAnnotationTools"] == ["judge Kohtunik, model m"]
    assert said["rai:personalSensitiveInformation"][0].startswith("Raters have pseudonyms")
    assert said["license"] == "No licence was given: ask before you use the texts."
    people_named = json.dumps(said, ensure_ascii=False)
    assert all(user.name not in people_named and user.email not in people_named for user in (cast.aino, cast.boris))


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("CC BY 4.0", "https://spdx.org/licenses/CC-BY-4.0.html"),
        ("CC0 1.0", "https://spdx.org/licenses/CC0-1.0.html"),
        ("cc-by-nc-sa-3.0", "https://spdx.org/licenses/CC-BY-NC-SA-3.0.html"),
        ("MIT", "https://spdx.org/licenses/MIT.html"),
        ("CC BY, but ask us “أولا”", "CC BY, but ask us “أولا”"),
        ("Apache 2.0", "https://spdx.org/licenses/Apache-2.0.html"),
        (" ", "No licence was given: ask before you use the texts."),
    ],
)
def test_a_licence_is_the_address_that_spdx_has(name: str, address: str) -> None:
    assert licence_address(name) == address
