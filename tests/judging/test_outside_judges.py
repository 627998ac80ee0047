"""A judge that was run in another tool: its files are imported by page, API and command, and calibrated."""

from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from zeal import zeal_ignore

from analytics.ratings import ratings_tables
from annotation.models import Campaign, Import
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict
from tests import make
from tests.analytics.test_exports import lines
from tests.annotation.readers.test_tools import examples
from tests.cast import Cast
from tests.judging.test_equal_rows import digest_of_rows, stored_in_background, undo
from tests.judging.test_study_imports import API, uploads

CRITERIA = ("fluency", "coherence", "clarity", "Clarity [GEval]", "polite", "complete", "includes", "contains")
TOOLS = ("inspect-ai", "lm-eval", "promptfoo", "deepeval", "mlflow", "langfuse", "opentelemetry")
WITHOUT_REQUESTS = ("langfuse", "opentelemetry")


def make_scene(cast: Cast) -> Campaign:
    """Two items that a panel rated; the scales take what each of the tools gives."""
    scale = {"level": "interval", "min": 0, "max": 3}
    criteria = [
        {"key": f"c{number}", "name": {"en": name}, "scale": scale, "direction": "higher_is_better"}
        for number, name in enumerate(CRITERIA)
    ]
    made = make.campaign(cast.kassa, items=[make.item_row(n, "en", external_id=f"s{n}") for n in (1, 2)])
    version = make.rubric(cast.kassa, *criteria, key="outside")
    Campaign.objects.filter(pk=made.pk).update(rubric_version=version)
    made.refresh_from_db()
    make.rated(made, {"c0": {"mari": [2, 1], "jaan": [3, 2]}})
    return made


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def target(campaign: Campaign) -> dict[str, int]:
    return {"dataset": campaign.dataset_id, "rubric_version": campaign.rubric_version_id}


def by_page(client: Client, campaign: Campaign, files: dict[str, bytes], _folder: Path) -> Import:
    client.post("/p/kassa/imports/new/", {"files": uploads(files), "kind": "verdicts"})
    file_import = Import.objects.latest("pk")
    client.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "verdicts", **target(campaign)})
    client.post(f"{file_import.get_absolute_url()}store/")
    return stored_in_background(file_import)


def by_api(client: Client, campaign: Campaign, files: dict[str, bytes], _folder: Path) -> Import:
    sent = {"files": uploads(files), "kind": "verdicts", "target": json.dumps(target(campaign))}
    file_import = Import.objects.get(pk=client.post(f"{API}/imports/", sent).json()["id"])
    assert client.post(f"{API}/verdict-imports/{file_import.pk}/store/").status_code in (200, 202)
    return stored_in_background(file_import)


def by_command(_client: Client, campaign: Campaign, files: dict[str, bytes], folder: Path) -> Import:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    options: dict[str, Any] = {"dataset": str(campaign.dataset), "rubric": str(campaign.rubric_version)}
    call_command(
        "import_verdicts", *(str(folder / name) for name in files), project="kassa", stdout=StringIO(), **options
    )
    return Import.objects.latest("pk")


@pytest.mark.parametrize("tool", TOOLS)
def test_verdicts_on_items_that_are_here_are_equal_in_each_way(
    cast: Cast, rated: Campaign, tmp_path: Path, tool: str
) -> None:
    digests = []
    for way in (by_page, by_api, by_command):
        with zeal_ignore():  # every judge of a file is looked up or made, and locked, by itself
            file_import = way(cast.client("boris"), rated, examples(tool), tmp_path)
        digests.append(digest_of_rows(file_import))
        undo(file_import)
    assert digests[0] == digests[1] == digests[2]
    assert digests[0]["verdicts"][0] > 0
    assert (digests[0]["requests"][0] > 0) == (tool not in WITHOUT_REQUESTS)
    assert (Attempt.objects.count(), Call.objects.count(), Judge.objects.count()) == (0, 0, 0)


def test_the_request_is_shown_and_exported_and_its_cost_counts_once(
    cast: Cast, rated: Campaign, tmp_path: Path
) -> None:
    boris = cast.client("boris")
    by_api(boris, rated, examples("lm-eval"), tmp_path)
    rows = [
        json.dumps(
            {
                "item": "s1",
                "judge": "paid",
                "criterion": key,
                "score": 2,
                "judge_prompt": "Rate it.",
                "reply": "2 and 2",
                "cost_usd": 0.25,
                "tokens_in": 9,
                "tokens_out": 3,
                "latency_seconds": 1.5,
                "served_model": "m-1",
            }
        )
        for key in ("c0", "c1")
    ]
    by_api(boris, rated, {"verdicts.jsonl": "\n".join(rows).encode()}, tmp_path)
    run = JudgeRun.objects.get(judge__name="paid")
    attempt = Attempt.objects.get(call__run=run)
    assert (attempt.cost, attempt.tokens_in, attempt.tokens_out, attempt.latency) == (Decimal("0.25"), 9, 3, 1.5)
    assert Verdict.objects.filter(attempt=attempt).count() == 2

    page = boris.get(f"/p/kassa/runs/{run.pk}/calls/{attempt.call_id}/").content.decode()
    assert "Rate it." in page
    assert "2 and 2" in page
    assert "$0.25" in page
    exported = lines(boris, "verdicts", replies=True)
    first, second = [row for row in exported if row["judge"] == "paid"]
    assert (first["judge_prompt"], first["reply"], first["cost_usd"], first["served_model"]) == (
        "Rate it.",
        "2 and 2",
        0.25,
        "m-1",
    )
    assert first["call"] == second["call"]
    chat = next(row for row in lines(boris, "verdicts", replies=True) if row["judge"] == "judge-1")
    assert chat["judge_prompt"] == "Rate it from 0 to 3."


def test_exported_verdicts_come_back_with_what_they_cost(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    boris = cast.client("boris")
    first = by_api(boris, rated, examples("deepeval"), tmp_path)
    before = digest_of_rows(first)
    exported = "\n".join(json.dumps(row) for row in lines(boris, "verdicts", replies=True)).encode()
    undo(first)
    assert digest_of_rows(by_api(boris, rated, {"again.jsonl": exported}, tmp_path)) == before


def test_an_imported_judge_is_calibrated_beside_the_panel(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    with zeal_ignore():
        by_api(cast.client("boris"), rated, examples("inspect-ai"), tmp_path)
    rows = [row for row in ratings_tables.rows(campaign=rated) if row.criterion == "c0" and row.score is not None]
    assert {(row.rater, row.item): row.score for row in rows} == {
        ("mari", "s1"): 2,
        ("mari", "s2"): 1,
        ("jaan", "s1"): 3,
        ("jaan", "s2"): 2,
        ("openai/grader", "s1"): 2,
        ("grader-1", "s2"): 3,
    }


@pytest.mark.parametrize("cost", ["-1", "NaN", '"a lot"', "1e9"])
def test_a_cost_that_cannot_be_one_is_refused_and_nothing_stored(
    cast: Cast, rated: Campaign, tmp_path: Path, cost: str
) -> None:
    boris = cast.client("boris")
    text = '{"item": "s1", "judge": "x", "criterion": "c0", "score": 1, "cost_usd": ' + cost + "}"
    about = {"kind": "verdicts", "target": json.dumps(target(rated))}
    made = boris.post(f"{API}/imports/", {"files": uploads({"v.jsonl": text.encode()}), **about}).json()
    answer = boris.post(f"{API}/verdict-imports/{made['id']}/store/")
    assert answer.status_code == 422
    assert "line 1" in answer.content.decode()
    assert not Verdict.objects.exists()
