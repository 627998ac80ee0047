"""One study, read in four ways: the page's snapshot and `panelbench stats` on each file that leaves the page agree."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.core.management import call_command
from django.test import Client

from analytics.answers import snapshots
from analytics.questions.question import Settings
from analytics.stats.cli.commandline import run_command
from analytics.stats.cli.files import RatingsFile
from analytics.stats.core.validation import ratings_table
from annotation import campaigns
from annotation.imports import storage
from annotation.models import Campaign, Import
from annotation.readers.ratings import RatingRow
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.cast import Cast, make_cast

ITEMS = 12
PEOPLE = {"mari": 0, "=jaan": 1, "noor": 2}
LABELS = {2: "Refund", 1: "Delivery", 0: "Other", 3: "Nothing"}
CRITERIA = (
    {
        "key": "topic",
        "name": {"en": "Topic"},
        "scale": {
            "level": "nominal",
            "points": [{"value": value, "label": {"en": label}} for value, label in LABELS.items()],
        },
        "not_applicable": True,
    },
    make.criterion("fluency", not_applicable=True),
    {"key": "share", "name": {"en": "Share"}, "scale": {"level": "interval", "min": 0, "max": 100}},
    {"key": "effort", "name": {"en": "Effort"}, "scale": {"level": "ordinal", "min": 0, "max": 10}},
)
STATISTICS = {
    "agreement": ("krippendorff_alpha", "percent_agreement", "gwet_ac"),
    "calibration": ("mae", "cohen_kappa"),
}
Found = Mapping[tuple[Any, ...], tuple[Any, ...]]


def score(rater: int, criterion: str, number: int) -> tuple[float | None, bool]:
    """A score and whether the criterion applies: people differ now and then, and say N/A now and then."""
    if criterion in ("share", "effort"):
        return (50.5 + number + rater if criterion == "share" else 4.4 + 0.3 * (number % 5 + rater // 2)), True
    if (number + rater) % 7 == 0:
        return None, False
    away = 2 * (number % 3 == 0) if rater == 3 else rater == 2 and number % 4 == 1
    return float((number + away) % 4), True


@pytest.fixture(scope="module")
def study(once_per_module: Any) -> tuple[Cast, Campaign, Found]:
    """The cast, a campaign, and the figures of its page."""

    def made() -> tuple[Cast, Campaign, Found]:
        cast = make_cast()
        campaign = rated_study(cast)
        return cast, campaign, found(snapshots.snapshot(campaign=campaign).content["estimates"])

    return once_per_module(made)


@pytest.fixture
def cast(study: tuple[Cast, Campaign, Found], db: None) -> Cast:
    return study[0]


@pytest.fixture
def rated(study: tuple[Cast, Campaign, Found], db: None) -> Campaign:
    return study[1]


@pytest.fixture
def page(study: tuple[Cast, Campaign, Found]) -> Found:
    return study[2]


def rated_study(cast: Cast) -> Campaign:
    """Four parallel scenarios in three languages; three people and a judge rate them on four kinds of scale."""
    rows = [
        make.item_row(
            number,
            ("et", "ar", "en")[number // 4],
            scenario=f"s{number % 4}",
            external_id=f"d{number}",
            attributes={"task type": ("qa", "=sum")[number % 2], "difficulty": number % 3, "score": 0.5},
        )
        for number in range(ITEMS)
    ]
    dataset = make.dataset(cast.kassa, rows, name="Study")
    version = make.rubric(cast.kassa, *CRITERIA)
    made = campaigns.open_campaign(project=cast.kassa, name="Study", dataset=dataset, rubric_version=version)
    keys = [criterion["key"] for criterion in CRITERIA]
    given = [
        RatingRow(f"d{n}", rater, key, *score(shift, key, n), False, "", None, None, None, "r.csv", n + 2)
        for key in keys
        for rater, shift in PEOPLE.items()
        for n in range(ITEMS)
    ]
    opened = Import.objects.create(project=cast.kassa, kind=Import.Kind.RATINGS)
    storage.store_ratings(campaign=made, rows=given, file_import=opened)
    judge = Judge.objects.create(project=cast.kassa, name="Kohtunik", digest="k", model="m")
    run = JudgeRun.objects.create(project=cast.kassa, judge=judge, dataset=dataset, rubric_version=version)
    for criterion in version.criteria.all():
        for number, item in enumerate(dataset.items.order_by("ordinal")):
            value, applies = score(3, criterion.key, number)
            Verdict.objects.create(
                status="ok", run=run, item=item, criterion=criterion, score=value, applicable=applies
            )
    return made


def found(estimates: list[dict[str, Any]]) -> Found:
    """What the figures are, by what they are about."""
    wanted = {name for names in STATISTICS.values() for name in names}
    numbers = ("value", "low", "high", "n_items", "n_raters", "n_ratings", "n_missing", "n_clusters")
    return {
        (row["statistic"], row.get("variant"), row.get("judge"), row.get("language"), row["criterion"]): tuple(
            round(row[name], 12) if isinstance(row.get(name), float) else row.get(name) for name in numbers
        )
        for row in estimates
        if row["statistic"] in wanted
    }


def of_stats(file: Path, capsys: pytest.CaptureFixture[str]) -> Found:
    """The same figures from a file, by language and over all languages."""
    seed = ["--seed", str(Settings().seed), "--format", "json"]
    estimates = []
    for command, names in STATISTICS.items():
        judge = ["--judge", "Kohtunik"] if command == "calibration" else []
        for by in ("language,criterion", "criterion"):
            capsys.readouterr()
            asked = [command, str(file), *judge, "--by", by, "--statistic", ",".join(names), *seed]
            assert run_command(asked) == 0, capsys.readouterr().err
            estimates += json.loads(capsys.readouterr().out)["estimates"]
    return found(estimates)


def written(client: Client, campaign: Campaign, way: str, folder: Path) -> Path:
    """A file of all scores as somebody gets it who goes this way."""
    addresses = {
        "numbers page": (f"/api/v1/projects/kassa/campaigns/{campaign.pk}/ratings.csv", "csv"),
        "export page": ("/p/kassa/export/file/?what=scores&format=csv", "csv"),
        "api, jsonl": ("/api/v1/projects/kassa/exports/scores/?format=jsonl", "jsonl"),
        "api, parquet": ("/api/v1/projects/kassa/exports/scores/?format=parquet", "parquet"),
    }
    if way.startswith("command"):
        kind = way.partition(", ")[2]
        call_command(
            "export", "kassa", "scores", "--format", kind, "--out", str(folder / f"scores.{kind}"), verbosity=0
        )
        return folder / f"scores.{kind}"
    address, kind = addresses[way]
    answer = client.get(address)
    assert answer.status_code == 200
    file = folder / f"scores.{kind}"
    file.write_bytes(b"".join(answer.streaming_content))  # type: ignore[attr-defined]
    return file


@pytest.mark.parametrize(
    "way", ["numbers page", "export page", "api, jsonl", "api, parquet", "command, csv", "command, jsonl"]
)
def test_stats_on_a_file_are_the_figures_of_the_page(
    cast: Cast, rated: Campaign, page: Found, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "parquet" in way:
        pytest.importorskip("pyarrow")
    file = of_stats(written(cast.client("aino"), rated, way, tmp_path), capsys)
    for criterion in ("topic", "fluency", "share", "effort"):
        there = {key: value for key, value in page.items() if key[-1] == criterion}
        assert there, criterion
        assert {key: file.get(key) for key in there} == there, criterion
    nominal, ordinal = (
        page["krippendorff_alpha", None, None, None, "topic"],
        page["mae", None, "Kohtunik", None, "fluency"],
    )
    assert nominal[0] is not None and ordinal[0] is not None
    assert page["krippendorff_alpha", None, None, None, "share"][0] is not None


def test_every_way_out_has_the_same_columns_and_rows(
    cast: Cast, rated: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The columns of the ratings table, cut out of any file, are the bytes whose digest the page prints."""
    snapshot = snapshots.snapshot(campaign=rated)
    table = written(cast.client("aino"), rated, "numbers page", tmp_path).read_bytes()
    assert hashlib.sha256(table).hexdigest() == snapshot.inputs_digest
    header, *lines = csv.reader(io.StringIO(table.decode(), newline=""))
    assert header[19:-1] == [
        *("scenario", "dataset", "dataset_version", "rubric_version", "duty", "seconds", "rationale_length"),
        "certainty",
        *("difficulty", "attribute_score", "task_type"),
    ]
    assert len(lines) == 192
    of_table = [dict(zip(header[:-1], line, strict=False)) for line in lines]
    (tmp_path / "other").mkdir()
    export = written(cast.client("aino"), rated, "command, csv", tmp_path / "other").read_bytes().decode()
    scores = csv.DictReader(io.StringIO(export, newline=""))
    assert [{name: row[name] for name in header[:-1]} for row in scores] == of_table
    assert {row["task_type"] for row in of_table} == {"qa", "'=sum"}
    capsys.readouterr()
    asked = ["agreement", str(tmp_path / "scores.csv"), "--by", "task_type,criterion", "--format", "json"]
    assert run_command(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["task_type"] for row in told["estimates"]} == {"qa", "=sum"}
    assert told["provenance"]["input_sha256"] == snapshot.inputs_digest


def test_a_judge_of_categories_is_tested_by_accuracy(
    cast: Cast, rated: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Codes of a nominal criterion have no distances: by RMSE this judge would lose where it wins by accuracy."""
    file = written(cast.client("aino"), rated, "command, csv", tmp_path)
    asked = ["alt-test", str(file), "--judge", "Kohtunik", "--by", "criterion", "--min-items", "1", "--format", "json"]
    found = {}
    for measure in ([], ["--score", "accuracy"], ["--score", "rmse"]):
        capsys.readouterr()
        assert run_command([*asked, *measure]) == 0
        output = capsys.readouterr()
        rows = [row for row in json.loads(output.out)["estimates"] if row["criterion"] == "topic"]
        found[" ".join(measure)] = [(row["statistic"], row["value"]) for row in rows]
    assert found[""] == found["--score accuracy"] != found["--score rmse"]
    assert "'scale' and 'level'" in output.err


def test_a_file_of_verdicts_is_read_by_name(rated: Campaign, tmp_path: Path) -> None:
    """The judge is the rater, an N/A is none of the missing scores, and a scenario is the cluster."""
    call_command("export", "kassa", "verdicts", "--out", str(tmp_path / "verdicts.jsonl"), verbosity=0)
    table = ratings_table(RatingsFile(str(tmp_path / "verdicts.jsonl")).frame()[0])
    assert set(table.frame["rater"]) == {"Kohtunik"}
    assert set(table.frame["cluster"]) == {"s0", "s1", "s2", "s3"}
    assert (int((~table.frame["applicable"]).sum()), int(table.frame["missing"].sum())) == (4, 0)
    assert table.scale_in_words("topic") == "0, 1, 2, 3 (nominal)"


def test_what_a_file_says_of_a_criterion_twice_must_agree(
    rated: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scores.csv"
    call_command("export", "kassa", "scores", "--format", "csv", "--out", str(file), verbosity=0)
    first, *lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([first, lines[0].replace("nominal", "ordinal"), *lines[1:]]))
    capsys.readouterr()
    assert run_command(["agreement", str(file)]) == 2
    assert (
        "scores.csv:3: level 'nominal' contradicts 'ordinal' given earlier for the criterion" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (
            "rows=task_type&columns=criterion&statistic=mae&judge=Kohtunik&reference=each&raters=%3Djaan&raters=mari",
            ["calibration", "--judge", "Kohtunik", "--by", "task_type,criterion", "--reference", "each"],
        ),
        ("statistic=krippendorff_alpha&statistic=gwet_ac&where=language%3Det&where=language%3Dar", ["agreement"]),
    ],
)
def test_one_question_asked_in_four_ways(
    cast: Cast, rated: Campaign, query: str, asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's CSV, the API, the command, and `panelbench stats` on the table of the question."""
    client = cast.client("aino")
    page = scene.answered(client, rated, f"/p/kassa/numbers/{rated.pk}/explore/cells.csv?{query}")
    lines = csv.DictReader(io.StringIO(b"".join(page.streaming_content).decode()))  # type: ignore[attr-defined]
    answer = client.get(f"/api/v1/projects/kassa/campaigns/{rated.pk}/estimates/?{query}").json()["answer"]
    capsys.readouterr()
    given = [part for name, text in parse_qsl(query) for part in (f"--{name}", text)]
    call_command("numbers", "--project", "kassa", "--format", "json", *given)
    command = json.loads(capsys.readouterr().out)
    table = client.get(f"/api/v1/projects/kassa/campaigns/{rated.pk}/ratings.csv?{query}")
    file = tmp_path / "ratings.csv"
    file.write_bytes(b"".join(table.streaming_content))  # type: ignore[attr-defined]
    wanted = [text for name, text in parse_qsl(query) if name == "statistic"]
    options = ["--statistic", ",".join(wanted), "--seed", str(Settings().seed), "--format", "json"]
    assert run_command([asked[0], str(file), *asked[1:], *options]) == 0
    stats = json.loads(capsys.readouterr().out)

    def by_cell(rows: Iterable[Mapping[str, Any]]) -> Found:
        about = ("statistic", "variant", "criterion", "language", "task_type", "judge")
        numbers = ("value", "low", "high", "n_items", "n_raters", "n_ratings", "n_missing")
        return {
            tuple((row.get(name) or "").lstrip("'") for name in about): tuple(  # in CSV a formula begins with one
                None if row[name] in (None, "") else round(float(row[name]), 12) for name in numbers
            )
            for row in rows
        }

    through_api = by_cell(answer["estimates"])
    assert len(through_api) >= 6 and any(numbers[1] is not None for numbers in through_api.values())
    assert by_cell(lines) == through_api == by_cell(command["estimates"])
    of_file = by_cell(stats["estimates"])
    assert {cell: of_file[cell] for cell in through_api} == through_api
    assert stats["provenance"]["input_sha256"] == answer["inputs_digest"] == command["provenance"]["inputs_digest"]
