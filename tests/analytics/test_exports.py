"""What is taken out of a project: by whom, in which formats, and that it is what was put in."""

from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import openpyxl
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts import tokens
from accounts.models import AuditEntry, Scope
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Campaign
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desks
from tests.cast import Cast


def downloaded(client: Client, what: str, **query: Any) -> bytes:
    answer = client.get(f"/api/v1/projects/kassa/exports/{what}/", query)
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def lines(client: Client, what: str, **query: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in downloaded(client, what, format="jsonl", **query).splitlines()]


def make_scene(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    return campaign


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def test_ratings_are_one_row_per_item_rater_and_criterion(cast: Cast, rated: Campaign) -> None:
    rows = lines(cast.client("boris"), "ratings")
    assert len(rows) == 24 + 12
    first = rows[0]
    assert (first["item"], first["rater"], first["criterion"], first["score"]) == ("et-0", "mari", "fluency", 0.0)
    assert (first["dataset"], first["dataset_version"], first["rubric"], first["rubric_version"]) == (
        "Round 1", 1, "quality", 1,
    )  # fmt: skip
    assert (first["status"], first["not_applicable"], first["rater_kind"]) == ("scored", False, "annotator")
    assert (first["language"], first["generator"], first["scenario"]) == ("et", "atlas", "s0")
    assert (first["campaign"], first["duty"], first["inclusion_probability"]) == ("Round 1", "", 1.0)


def test_a_desks_ratings_say_duty_panel_seconds_and_revision(cast: Cast) -> None:
    duty = desks.duty(cast, items=1, overlap=1)
    taken = desks.taken(cast, duty)
    answers = {"fluency": Answer(score=2, rationale="=1+1"), "coherence": Answer(score=1)}
    service.submit(assignment=taken, key=taken.key, answers=answers, seconds=12)
    row = lines(cast.client("boris"), "ratings")[0]
    assert (row["duty"], row["panel"], row["seconds"]) == (duty.name, "Estonian", 12.0)
    assert (row["revision"], row["selection"], row["wave"], row["rationale"]) == (1, "all", 1, "=1+1")
    assert row["submitted_at"].endswith("Z")


def test_verdicts_name_their_judge_and_count_repeats_from_nought(cast: Cast, rated: Campaign) -> None:
    row = lines(cast.client("boris"), "verdicts")[0]
    assert (row["judge"], row["repeat"], row["status"], row["provider_model"]) == ("Kohtunik", 0, "ok", "m")
    assert "reply" not in row
    assert "reply" in lines(cast.client("boris"), "verdicts", replies=True)[0]


def test_people_and_judges_stand_in_one_table(cast: Cast, rated: Campaign) -> None:
    rows = lines(cast.client("boris"), "scores")
    kinds = [row["rater_kind"] for row in rows]
    assert (kinds.count("annotator"), kinds.count("judge")) == (36, 24)
    assert {len(row) for row in rows} == {len(rows[0])}


def test_every_format_says_the_same(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    said = lines(browser, "scores")
    cells = list(csv.DictReader(StringIO(downloaded(browser, "scores", format="csv").decode(), newline="")))
    book = openpyxl.load_workbook(BytesIO(downloaded(browser, "scores", format="xlsx")), read_only=True)
    head, *body = book.active.iter_rows(values_only=True)  # type: ignore[union-attr]
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = parquet.read_table(BytesIO(downloaded(browser, "scores", format="parquet"))).to_pylist()
    for name in ("item", "rater", "criterion", "score"):
        expected = [row[name] for row in said]
        assert [row[name] if name != "score" else float(row[name]) for row in cells] == expected
        assert [row[head.index(name)] for row in body] == expected
        assert [row[name] for row in columns] == expected


def test_other_pseudonyms_are_the_same_for_the_same_seed(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    once, again, other = ([row["rater"] for row in lines(browser, "ratings", renumbered=seed)] for seed in (1, 1, 2))
    assert once == again != other
    assert set(once) == {f"rater-0{number}" for number in range(1, 5)}


def test_rationales_can_be_left_out(cast: Cast) -> None:
    duty = desks.duty(cast, items=1, overlap=1)
    taken = desks.taken(cast, duty)
    answers = {"fluency": Answer(score=2, rationale="Maarika Tamm"), "coherence": Answer(score=1)}
    service.submit(assignment=taken, key=taken.key, answers=answers, seconds=12)
    assert b"Tamm" in downloaded(cast.client("boris"), "ratings")
    for kind in ("jsonl", "csv"):
        assert b"Tamm" not in downloaded(cast.client("boris"), "ratings", rationales=False, format=kind)


@pytest.mark.parametrize("what", ["items", "ratings", "verdicts", "scores", "rubric", "campaign"])
def test_nobody_is_named_by_name_or_address(cast: Cast, rated: Campaign, what: str) -> None:
    written = downloaded(cast.client("boris"), what)
    for user in (cast.aino, cast.boris, cast.maarika, cast.layla):
        assert user.email.encode() not in written
        assert user.name.encode() not in written


def test_a_lead_may_have_the_names_behind_the_pseudonyms_and_the_trail_says_so(cast: Cast) -> None:
    duty = desks.duty(cast, items=1, overlap=1)
    taken = desks.taken(cast, duty)
    service.submit(assignment=taken, key=taken.key, answers=desks.ANSWERS, seconds=12)
    make.rated(duty.campaign, {"fluency": {"mari": [1]}})
    rows = lines(cast.client("aino"), "ratings", names=True)
    assert {(row["rater"], row["rater_name"]) for row in rows} == {(taken.annotator.pseudonym, "Maarika"), ("mari", "")}
    assert AuditEntry.objects.get(verb="export ratings").fields == ["format=jsonl", "names"]
    judged = scene.with_verdicts(duty.campaign, {"fluency": [1]})
    kinds = {(row["rater"], row["rater_name"]) for row in lines(cast.client("aino"), "scores", names=True)}
    assert (judged.judge.name, None) in kinds


@pytest.mark.parametrize(
    ("who", "scope", "status"),
    [("aino", Scope.WRITE, 200), ("aino", Scope.READ, 403), ("boris", Scope.WRITE, 403)],
)
def test_names_are_for_leads_by_a_token_that_may_write(
    cast: Cast, rated: Campaign, who: str, scope: Scope, status: int
) -> None:
    _token, secret = tokens.issue(user=getattr(cast, who), name="script", scope=scope)
    script = Client(headers={"authorization": f"Bearer {secret}"})
    assert b"rater_name" not in downloaded(script, "ratings")
    if status == 200:
        assert b"rater_name" in downloaded(script, "ratings", names=True)
        return
    refused = script.get("/api/v1/projects/kassa/exports/ratings/", {"names": True})
    assert (refused.status_code, "names" in refused.json()["detail"].lower()) == (status, True)


def test_the_page_gives_names_to_leads_alone(cast: Cast, rated: Campaign) -> None:
    query = {"what": "ratings", "format": "jsonl", "names": "on"}
    assert cast.client("boris").get("/p/kassa/export/file/", query).status_code == 403
    assert b"rater_name" in b"".join(cast.client("aino").get("/p/kassa/export/file/", query).streaming_content)
    pages = [cast.client(who).get("/p/kassa/export/").content for who in ("aino", "boris")]
    assert [b'name="names"' in page for page in pages] == [True, False]


def test_an_export_leaves_a_line_in_the_audit_trail(cast: Cast, rated: Campaign) -> None:
    downloaded(cast.client("boris"), "ratings", format="csv", rationales=False)
    entry = AuditEntry.objects.get(verb="export ratings")
    assert (entry.actor, entry.subject_pk, entry.fields) == (cast.boris, rated.pk, ["format=csv", "rationales"])


@pytest.mark.parametrize(("who", "status"), [("maarika", 403), ("zoltan", 404)])
def test_annotators_and_strangers_take_nothing_out(cast: Cast, rated: Campaign, who: str, status: int) -> None:
    assert cast.client(who).get("/api/v1/projects/kassa/exports/ratings/").status_code == status


def test_what_there_is_not_is_refused_with_what_there_is(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    for address, said in (
        ("labels/", "ratings"),
        ("ratings/?format=yaml", "xlsx"),
        ("ratings/?campaign=Round 9", "Round 1"),
        ("hugging-face/?names=true", "Only these exports can contain names: ratings, scores."),
    ):
        answer = browser.get(f"/api/v1/projects/kassa/exports/{address}")
        assert answer.status_code in (404, 422), answer.content
        assert said in answer.json()["detail"]


def test_the_command_writes_a_file_whole_or_not_at_all(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    out = tmp_path / "ratings.csv"
    call_command("export", "kassa", "ratings", "--format", "csv", "--out", str(out), verbosity=0)
    assert out.read_bytes() == downloaded(cast.client("boris"), "ratings", format="csv")
    with pytest.raises(CommandError, match="Round 1"):
        call_command("export", "kassa", "ratings", "--campaign", "Round 9", "--out", str(tmp_path / "no.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.csv"]


def test_the_page_offers_what_there_is_and_sends_it(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    page = browser.get(f"/p/kassa/export/?campaign={rated.pk}").content.decode()
    assert '<option value="Round 1" selected>' in page
    query = {"what": "ratings", "campaign": "Round 1", "format": "csv", "renumbered": "", "without_rationales": "on"}
    answer = browser.get("/p/kassa/export/file/", query)
    assert answer["Content-Disposition"] == 'attachment; filename="round-1-ratings.csv"'
    sent = b"".join(answer.streaming_content)
    assert sent == downloaded(browser, "ratings", format="csv", rationales=False)


@pytest.mark.parametrize("query", [{"what": "labels"}, {"what": "ratings", "renumbered": "many"}, {}])
def test_the_page_says_why_there_is_no_file(cast: Cast, rated: Campaign, query: dict[str, str]) -> None:
    answer = cast.client("boris").get("/p/kassa/export/file/", query, follow=True)
    kept = urlencode({name: said for name, said in query.items() if said})
    assert answer.redirect_chain == [(f"/p/kassa/export/?{kept}" if kept else "/p/kassa/export/", 302)]
    assert "alert" in answer.content.decode() or "notice" in answer.content.decode()


def test_the_pages_of_what_there_is_lead_to_its_export(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("boris")
    version = rated.rubric_version
    for page, query in (
        (f"rubrics/{version.rubric.key}/v{version.number}/", f"rubric={version.pk}"),
        (f"campaigns/{rated.pk}/", f"campaign={rated.pk}"),
        (f"numbers/{rated.pk}/", f"campaign={rated.pk}"),
        ("judges/", "what=verdicts"),
        (f"datasets/{rated.dataset_id}/", f"dataset={rated.dataset_id}"),
    ):
        assert f'href="/p/kassa/export/?{query}"' in browser.get(f"/p/kassa/{page}").content.decode(), page
        assert " selected>" in browser.get(f"/p/kassa/export/?{query}").content.decode(), query


def test_a_refused_workbook_leaves_no_file(cast: Cast, tmp_path: Path) -> None:
    item = {"id": "d1", "language": "et", "answer": "pikk " * 10_000}  # beyond what a cell of a workbook takes
    boris = cast.client("boris")
    address = "/api/v1/projects/kassa/imports/"
    opened = boris.post(f"{address}?kind=dataset", json.dumps(item), content_type="application/x-ndjson").json()
    assert boris.post(f"{address}{opened['id']}/store/").status_code == 200
    with pytest.raises(CommandError, match="JSONL"):
        call_command("export", "kassa", "items", "--format", "xlsx", "--out", str(tmp_path / "items.xlsx"))
    assert list(tmp_path.iterdir()) == []


def test_verdicts_leave_without_a_campaign(cast: Cast, tmp_path: Path) -> None:
    """By page, API and command: a judge was run on a dataset that nobody rates."""
    dataset, version = make.dataset(cast.kassa, 3, name="Unrated"), make.rubric(cast.kassa)
    judge = Judge.objects.create(project=cast.kassa, name="Kohtunik", digest="k", model="m")
    run = JudgeRun.objects.create(project=cast.kassa, judge=judge, dataset=dataset, rubric_version=version)
    fluency = version.criteria.get(key="fluency")
    for number, item in enumerate(dataset.items.order_by("ordinal")):
        Verdict.objects.create(run=run, item=item, criterion=fluency, status="ok", score=number)
    client = cast.client("aino")
    shown = client.get("/p/kassa/export/").content.decode()
    assert "Verdicts on a dataset" in shown
    by_page = client.get("/p/kassa/export/file/?what=dataset-verdicts&format=jsonl&dataset=Unrated")
    written = b"".join(by_page.streaming_content)
    rows = [json.loads(line) for line in written.splitlines()]
    assert [(row["item"], row["judge"], row["rubric"], row["score"]) for row in rows] == [
        (f"d{number + 1}", "Kohtunik", "quality", float(number)) for number in range(3)
    ]
    assert downloaded(client, "dataset-verdicts", dataset="Unrated") == written
    call_command("export", "kassa", "dataset-verdicts", "--out", str(tmp_path / "verdicts.jsonl"), verbosity=0)
    assert (tmp_path / "verdicts.jsonl").read_bytes() == written
    size = client.get("/api/v1/projects/kassa/exports/dataset-verdicts/size/", {"dataset": "Unrated"}).json()
    assert size["rows"] == 3
