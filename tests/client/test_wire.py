"""How the client asks: over real connections, with errors, pages, files and retries as they come."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import panelbench_client
from accounts import tokens
from accounts.models import Scope
from annotation.models import Dataset
from panelbench_client import Client, connection
from tests import make
from tests.accounts.receiver import receiver
from tests.analytics import scene
from tests.cast import Cast


@pytest.fixture
def secret(cast: Cast) -> str:
    _token, secret = tokens.issue(user=cast.aino, name="client", scope=Scope.WRITE, project=cast.kassa)
    return secret


@pytest.fixture
def bench(live_server: Any, secret: str) -> Iterator[Client]:
    with Client(live_server.url, secret, "kassa") as opened:
        yield opened


pytestmark = pytest.mark.django_db(transaction=True)


def test_a_study_goes_in_and_comes_out(cast: Cast, bench: Client, tmp_path: Path) -> None:
    dialogues = tmp_path / "dialogues.jsonl"
    dialogues.write_text(
        "".join(
            f'{{"id": "d{n}", "language": "et", "generator": "g", "question": "Küsimus {n}?"}}\n' for n in range(3)
        ),
        "utf-8",
    )
    opened = bench.open_import(dialogues, kind="dataset", target={"name": "Dialogues"})
    assert bench.preview_import(opened["id"])["report"]["stored"] == 3
    bench.store_import(opened["id"])
    assert bench.wait_for_import(opened["id"])["state"] == "stored"
    back = bench.save_import_file(opened["id"], opened["files"][0]["id"], tmp_path / "back.jsonl")
    assert back.read_bytes() == dialogues.read_bytes()
    (dataset,) = bench.datasets()
    assert [item["external_id"] for item in bench.items(dataset["id"])] == ["d0", "d1", "d2"]
    there = {"key": "quality", "name": {"en": "Quality"}, "source_language": "en"}
    version = bench.draft_rubric({**there, "criteria": [make.criterion("fluency")]})
    bench.publish_rubric(version["rubric"], version["number"])
    campaign = bench.open_campaign("Round 1", dataset=dataset["id"], rubric_version=version["id"])
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("item,rater,criterion,score\nd0,a,fluency,1\nd0,b,fluency,2\nd1,a,fluency,3\n", "utf-8")
    given = bench.open_import(ratings, kind="ratings", target={"campaign": campaign["id"]})
    bench.store_import(given["id"])
    bench.wait_for_import(given["id"])
    out = bench.export("ratings", tmp_path / "out.csv", format="csv", campaign=campaign["id"])
    assert len(out.read_text("utf-8").splitlines()) == 4
    with pytest.raises(panelbench_client.ApiError):
        bench.undo_import(opened["id"])


def test_a_question_is_answered_as_a_list_and_as_a_frame(cast: Cast, bench: Client, tmp_path: Path) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    asked = {"rows": "judge", "columns": "criterion", "statistic": ["mae", "accuracy"], "where": ["language=et"]}
    assert bench.estimates(campaign.pk, **asked)["stale"]
    scene.compute(campaign)  # all that was asked for, as a worker does
    answer = bench.fresh_estimates(campaign.pk, **asked)
    frame = bench.estimates_frame(campaign.pk, **asked)
    assert list(frame["value"]) == [row["value"] for row in answer["estimates"]] and len(frame) == 4
    table = bench.save_ratings_table(campaign.pk, tmp_path / "rows.csv", **asked)
    assert hashlib.sha256(table.read_bytes()).hexdigest() == answer["inputs_digest"]
    labels = json.loads(bench.save_soft_labels(campaign.pk, tmp_path / "soft.json").read_text("utf-8"))["labels"]
    soft = bench.save_soft_labels(campaign.pk, tmp_path / "soft.csv").read_text("utf-8").splitlines()
    assert len(soft) - 1 == sum(len(label["shares"]) for label in labels) > 0
    with pytest.raises(panelbench_client.Refused, match="Available: criterion"):
        bench.estimates(campaign.pk, rows="colour")


def test_a_large_file_goes_in_pieces_and_on_where_it_broke_off(
    bench: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from panelbench_client import files

    monkeypatch.setattr(files, "PIECE", 1000)
    monkeypatch.setattr(files, "AT_ONCE", 1000)
    file = tmp_path / "d.jsonl"
    row = '{{"id": "d{}", "language": "et", "generator": "g", "question": "?"}}\n'
    file.write_text("".join(row.format(n) for n in range(100)))
    begun = bench.begin_upload(file)
    bench._send_piece(begun["key"], 0, file.read_bytes()[:1000])
    done = bench.upload(file, key=begun["key"])
    assert done["received"] == done["size"] == file.stat().st_size
    bench.give_up_upload(done["key"])
    opened = bench.open_import(file, kind="dataset")
    bench.store_import(opened["id"])
    assert Dataset.objects.get().items.count() == 100


def test_a_refusal_says_what_and_where(bench: Client, tmp_path: Path) -> None:
    with pytest.raises(panelbench_client.NotFound) as missing:
        bench.dataset(10**9)
    assert (missing.value.status, missing.value.code) == (404, "not_found")
    with pytest.raises(panelbench_client.ApiError) as wrong:
        bench.make_panel("Estonian", language="not a language")
    assert wrong.value.fields or wrong.value.detail
    with Client(bench.address, "x") as nowhere, pytest.raises(ValueError, match="Name the project"):
        nowhere.dataset(1)


def test_the_token_is_neither_shown_nor_logged(bench: Client, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        bench.me()
    assert secret not in caplog.text + repr(bench)
    with Client(bench.address, "pb_wrong") as stranger, pytest.raises(panelbench_client.NotSignedIn) as refused:
        stranger.me()
    assert "pb_wrong" not in str(refused.value)
    with pytest.raises(ValueError, match="https"):
        Client("http://bench.example.org", secret)


def test_lists_are_followed_to_their_end(cast: Cast, bench: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAGE", 2)
    made = make.dataset(cast.kassa, 5)
    assert [item["ordinal"] for item in bench.items(made.pk)] == [0, 1, 2, 3, 4]


def test_a_post_into_trouble_is_not_sent_twice() -> None:
    with receiver() as there:
        there.status = 503
        with Client(there.address, "t", "kassa") as bench, pytest.raises(panelbench_client.Unavailable):
            bench.make_panel("Estonian")
    assert len(there.came) == 1
