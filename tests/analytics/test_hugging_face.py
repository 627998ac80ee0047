"""A campaign as a folder for the Hugging Face Hub: its metadata, its tables, and what its card tells and keeps."""

from __future__ import annotations

import re
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pytest
import yaml
from django.core.management import call_command

from accounts import people
from analytics.exporting import exports, hugging_face
from analytics.reports import methods
from annotation import panels
from annotation.desk import service
from annotation.models import Campaign, Dataset, EvidenceSpan, Rating, RubricVersion
from annotation.readers.rubric import parse_rubric
from annotation.readers.studies import recognise
from tests import make
from tests.analytics import scene
from tests.analytics.test_exports import downloaded, lines
from tests.annotation import scene as desks
from tests.cast import Cast

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def rated(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    Dataset.objects.filter(pk=campaign.dataset_id).update(licence="CC BY 4.0")
    scene.with_verdicts(campaign)
    return campaign


def folder(cast: Cast, **query: Any) -> dict[str, bytes]:
    with ZipFile(BytesIO(downloaded(cast.client("boris"), "hugging-face", **query))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def card(files: dict[str, bytes]) -> tuple[dict[str, Any], str]:
    """The metadata of the README, and its text."""
    found = re.fullmatch(r"---\n(.*?)\n---\n(.*)", files["README.md"].decode(), re.DOTALL)
    assert found is not None
    return yaml.safe_load(found[1]), found[2]


def test_the_metadata_says_what_the_hub_asks_for(cast: Cast, rated: Campaign) -> None:
    said, _text = card(folder(cast))
    assert (said["language"], said["license"], said["size_categories"]) == (["ar", "et"], "cc-by-4.0", ["n<1K"])
    assert (said["multilinguality"], said["task_categories"]) == (["multilingual"], ["text-classification"])
    assert said["annotations_creators"] == ["other", "machine-generated"]
    assert [each["config_name"] for each in said["configs"]] == ["items", "ratings", "verdicts"]


def test_card_and_report_say_which_translations_of_the_rubric_were_reviewed(cast: Cast, rated: Campaign) -> None:
    version = rated.rubric_version
    first, *rest = version.document["criteria"]
    texts = {**first, "name": {"en": "Fluency", "et": "Ladusus", "fi": "Sujuvuus"}, "translations": {"et": "reviewed"}}
    RubricVersion.objects.filter(pk=version.pk).update(document={**version.document, "criteria": [texts, *rest]})
    _said, text = card(folder(cast))
    assert "Its texts were written in English; criteria by their translation:" in text
    assert f"| Estonian | 1 | 0 | 0 | {len(rest)} |" in text and f"| Finnish | 0 | 1 | 0 | {len(rest)} |" in text
    shown = " ".join(methods.sentences_on_items(Campaign.objects.get(pk=rated.pk)))
    wanted = f"Estonian (1 reviewed, {len(rest)} without texts); Finnish (1 draft, {len(rest)} without texts)."
    assert shown.endswith(f"The rubric's texts were written in English and translated: {wanted}")


def test_every_configuration_is_a_table_with_the_rows_of_its_export(cast: Cast, rated: Campaign) -> None:
    files = folder(cast)
    said, _text = card(files)
    tables = {}
    for each in said["configs"]:
        (part,) = each["data_files"]
        tables[each["config_name"]] = parquet.read_table(BytesIO(files[part["path"]])).to_pylist()
    assert {name: len(rows) for name, rows in tables.items()} == {"items": 12, "ratings": 36, "verdicts": 24}
    for name in ("ratings", "verdicts"):
        rows = lines(cast.client("boris"), name)
        assert [row["score"] for row in tables[name]] == [row["score"] for row in rows]
    assert tables["items"][0]["turns"][0]["speaker"] == "customer"
    assert parse_rubric("rubric.yaml", files["rubric.yaml"]).problems.sentences() == []


def test_the_folder_is_imported_again_and_is_equal(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    target = people.create_project(name="Again", slug="again", founder=cast.aino)
    given = Rating.objects.filter(annotation__campaign=rated).order_by("pk").first()
    assert given is not None
    text = given.annotation.item.turns[0]["text"]
    EvidenceSpan.objects.create(rating=given, turn=0, start=1, end=5, quote=text[1:5])
    files = folder(cast)
    packed = downloaded(cast.client("boris"), "hugging-face")
    study = recognise([("study.zip", packed)])
    assert study is not None and study.name == "panelbench-hugging-face"
    with ZipFile(BytesIO(packed)) as archive:
        archive.extractall(tmp_path / "study")
    call_command("import_study", "again", str(tmp_path / "study"), stdout=StringIO())
    copied = Campaign.objects.get(project=target)
    assert copied.rubric_version.digest == rated.rubric_version.digest
    for kind in ("items", "ratings", "verdicts"):
        first, second = (exported(campaign, kind) for campaign in (rated, copied))
        assert first == second and len(first) == {"items": 12, "ratings": 36, "verdicts": 24}[kind], kind
    assert files["rubric.yaml"] == folder_of(copied)["rubric.yaml"]


KEPT = {
    "items": ("id", "language", "generator", "scenario", "title", "turns", "attributes"),
    "ratings": ("item", "rater", "criterion", "score", "status", "rationale", "evidence", "score_label"),
    "verdicts": ("item", "judge", "criterion", "score", "status", "repeat", "rationale"),
}


def exported(campaign: Campaign, kind: str) -> list[tuple[Any, ...]]:
    """What every instance says alike of a campaign's rows."""
    subject = campaign.dataset if kind == "items" else campaign
    table = exports.export_table(exports.checked_export(project=campaign.project, what=kind, subject=subject))
    places = [table.names.index(name) for name in KEPT[kind]]
    return sorted((tuple(row[place] for place in places) for row in table.rows), key=repr)


def folder_of(campaign: Campaign) -> dict[str, bytes]:
    export = exports.checked_export(project=campaign.project, what="hugging-face", subject=campaign)
    with ZipFile(BytesIO(b"".join(exports.export_pieces(export)))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_card_tells_of_agreement_with_its_interval_by_criterion_and_language(cast: Cast, rated: Campaign) -> None:
    _said, text = card(folder(cast))
    row = next(line for line in text.splitlines() if line.startswith("| fluency | et | krippendorff alpha"))
    assert re.search(r"\| 0\.\d\d \| \\\[.*, .*\\\] \| 6 items × 2 raters, 6 clusters \|", row)
    assert "| coherence | et | percent agreement | 83% |" in text
    for part in ("## Files", "## Languages", "## Licence", "CC BY 4.0", "@misc{kassa", "## Limitations", "### Fluency"):
        assert part in text
    assert "At least one judge is simulated" in text
    assert "Fewer than 30 items, or clusters of items, with more than one rater in: " in text


@pytest.fixture
def described(cast: Cast) -> Campaign:
    """Two people of a panel, of whom one lets the study say where her words come from."""
    other = desks.member(cast, "Liis")
    duty = desks.duty(cast, items=1, overlap=2, seated=[other])
    for user in (cast.maarika, other):
        taken = desks.taken(cast, duty, user)
        service.submit(assignment=taken, key=taken.key, answers=desks.ANSWERS, seconds=5)
    told = {"education": "MA in | linguistics", "experience": "ten years <b>", "grew_up_with": ["et", "vro"]}
    people.describe_self(user=cast.maarika, **told, consent=True)
    people.describe_self(user=other, education="secret school", experience="", grew_up_with=["ru"], consent=False)
    return duty.campaign


def test_the_panel_is_described_by_those_who_consented_alone(cast: Cast, described: Campaign) -> None:
    _said, text = card(folder(cast))
    assert "Of the 2 annotators of “Estonian”, fewer than 5 agreed to be described, so nothing is said of them." in text
    assert "| Estonian | et | 2 | 1 | 2 |" in text  # both rated the same item
    assert "secret" not in text and "linguistics" not in text
    for user in (cast.maarika, cast.aino, cast.boris):
        assert user.name not in text and user.email not in text


def test_a_large_panel_is_described_by_its_large_groups(cast: Cast) -> None:
    duty = desks.duty(cast, items=1, overlap=8)
    for number in range(8):
        user = desks.member(cast, f"Member {number}")
        panels.seat(panel=duty.panel, user=user)
        taken = desks.taken(cast, duty, user)
        service.submit(assignment=taken, key=taken.key, answers=desks.ANSWERS, seconds=5)
        school = "MA | linguistics" if number < 6 else "secret school"
        facts = {"education": school, "experience": "", "grew_up_with": ["et"], "age_band": "25–34"}
        people.describe_self(user=user, **facts, consent=True)
    _said, text = card(folder(cast))
    assert (
        "about 10 agreed to be described (counts to the nearest five). First languages: et (10). Ages: 25–34 (10)."
        in text
    )
    assert "linguistics" not in text and "secret" not in text  # 6 beside 2: the 2 could be told by subtraction


def test_a_table_without_rows_is_no_configuration(cast: Cast, described: Campaign) -> None:
    said, _text = card(folder(cast))
    assert [each["config_name"] for each in said["configs"]] == ["items", "ratings"]


def test_without_the_extra_for_parquet_the_tables_are_jsonl(
    cast: Cast, described: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.exporting.hugging_face.parquet_is_installed", lambda: False)
    files = folder(cast)
    rows = [orjson.loads(line) for line in files["data/items.jsonl"].splitlines()]
    assert [(row["id"], row["attributes"]) for row in rows] == [("d1", "{}")]
    assert card(files)[0]["configs"][0]["data_files"] == [{"split": "train", "path": "data/items.jsonl"}]


def test_a_campaign_that_nobody_rated_says_so(cast: Cast) -> None:
    make.campaign(cast.kassa)
    said, text = card(folder(cast))
    assert said["annotations_creators"] == ["no-annotation"]
    assert "Nobody has rated these items yet." in text


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("CC BY-SA 4.0", {"license": "cc-by-sa-4.0"}),
        ("MIT", {"license": "mit"}),
        ("", {"license": "unknown"}),
        (
            "Our terms, https://example.org/terms",
            {
                "license": "other",
                "license_name": "our-terms-https-example.org-terms",
                "license_link": "https://example.org/terms",
            },
        ),
    ],
)
def test_a_licence_is_one_that_the_hub_knows_or_other(said: str, meant: dict[str, str]) -> None:
    assert hugging_face.licence(said) == meant


@pytest.mark.parametrize(
    ("rows", "word"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (99_999_999, "10M<n<100M"), (10**8, "100M<n<1B")]
)
def test_a_size_is_said_in_the_words_of_the_hub(rows: int, word: str) -> None:
    assert hugging_face.size_in_words(rows) == word
