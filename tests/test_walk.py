"""The whole job, end to end, as docs/walk.md tells it: on PostgreSQL with Redis, and on the embedded default."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from accounts.models import Membership, Role
from annotation.imports import check_reports, storage, uploads
from annotation.models import Campaign, Dataset, Rating, RubricVersion
from annotation.models.content import AT_ONCE as LARGEST_READ_AT_ONCE
from judging import judges, runs, tasks
from tests import make
from tests.cast import Cast, person
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

API = "/api/v1/projects/kassa"
ITEMS = 6
CHUNK = 8 * 2**20


@pytest.mark.walk
def test_one_dialogue_from_a_file_to_a_figure(
    cast: Cast, provider: RunningProvider, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    helin = person("Helin", languages=("et",))
    Membership.objects.create(project=cast.kassa, user=helin, role=Role.ANNOTATOR)
    lead = cast.client("aino")
    campaign = _prepared(lead, tmp_path)
    _panel(lead, campaign, [cast.maarika.pk, helin.pk])

    for annotator, scores in ((cast.maarika, (3, 2, 1, 0, 3, 2)), (helin, (3, 2, 1, 1, 3, 2))):
        browser = Client()
        browser.force_login(annotator)
        _score_everything(browser, campaign, scores)
    assert Rating.objects.count() == ITEMS * 2 * 2

    run = _judged(cast, campaign)
    assert runs.run_progress(run).verdicts == {"ok": ITEMS * 2}

    numbers = _until(lambda: _fresh_numbers(lead, campaign, judged=True))
    alpha = _figure(numbers, statistic="krippendorff_alpha", criterion="fluency", language="et")
    assert 0.8 < alpha["value"] < 1
    assert (alpha["n_items"], alpha["n_raters"]) == (ITEMS, 2)
    mae = _figure(numbers, statistic="mae", criterion="fluency", language="et", judge="Steady")
    assert mae["value"] is not None
    # Everybody gave coherence 1: no coefficient is invented for it, and the reason is told.
    flat = _figure(numbers, statistic="krippendorff_alpha", criterion="coherence", language="et")
    assert flat["value"] is None
    assert flat["reason"]

    table = _table(lead, campaign)
    assert {row["rater_kind"] for row in table} == {"annotator", "judge"}
    assert len(table) == ITEMS * 2 * 3
    page = lead.get(f"/p/kassa/numbers/{campaign.pk}/").content.decode()
    assert f"{alpha['value']:.2f}" in page


def _prepared(lead: Client, folder: Path) -> Campaign:
    """Dataset by page and, as another, by command; rubric by API, published by page; campaign by API."""
    rows = [make.item_row(number) for number in range(1, ITEMS + 1)]
    names = ("language", "generator", "title", "turns")
    lines = [{"id": row.external_id, **{name: getattr(row, name) for name in names}} for row in rows]
    content = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    imported = lead.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("Walk.jsonl", content)]})
    assert lead.post(f"{imported['Location']}store/").status_code == 302
    dialogues = folder / "dialogues.jsonl"
    dialogues.write_bytes(content)
    call_command("import_dataset", str(dialogues), project="kassa", name="By command", stdout=io.StringIO())
    by_page, by_command = (Dataset.objects.get(name=name).items for name in ("Walk", "By command"))
    digests = [list(items.order_by("pk").values_list("digest", flat=True)) for items in (by_page, by_command)]
    assert digests[0] == digests[1] and len(digests[0]) == ITEMS

    criteria = [make.criterion("fluency"), make.criterion("coherence", (0, 1))]
    document = {"key": "quality", "name": {"en": "Quality"}, "source_language": "en", "criteria": criteria}
    rubric = yaml.safe_dump(document, allow_unicode=True).encode()
    sent = lead.post(f"{API}/imports/?kind=rubric&name=rubric.yaml", rubric, "application/yaml")
    assert sent.status_code == 201, sent.content
    assert lead.post(f"{API}/imports/{sent.json()['id']}/store/").status_code == 200
    assert lead.post("/p/kassa/rubrics/quality/v1/publish/").status_code == 302
    chosen = {"dataset": Dataset.objects.get(name="Walk").pk, "rubric_version": RubricVersion.objects.get().pk}
    made = lead.post(f"{API}/campaigns/", {"name": "Walk", **chosen}, "application/json")
    assert made.status_code == 201, made.content
    return Campaign.objects.get()


def _panel(lead: Client, campaign: Campaign, users: list[int]) -> None:
    """A panel of two, and a duty in which both see every item."""
    panel = lead.post(f"{API}/panels/", {"name": "Estonian", "language": "et"}, "application/json").json()["id"]
    for user in users:
        assert lead.post(f"{API}/panels/{panel}/seats/", {"user": user}, "application/json").status_code == 201
    share = {"panel": panel, "overlap": 2}
    made = lead.post(f"{API}/campaigns/{campaign.pk}/duties/", share, "application/json")
    assert made.status_code == 201, made.content


def _score_everything(browser: Client, campaign: Campaign, scores: tuple[int, ...]) -> None:
    """Work through the desk's pages; the fluency of an item depends on the item."""
    duty = campaign.duties.get().pk
    while (found := browser.post(f"/desk/{duty}/")).status_code == 302:
        place = found["Location"]
        page = browser.get(place).content.decode()
        assert "atlas" not in page
        number = int(re.search(r"pakk number (\d+)", page).group(1))  # type: ignore[union-attr]
        form = {"key": place.strip("/").split("/")[-1], "seconds": "9", "score-coherence": "1"}
        answer = browser.post(f"{place}submit/", {**form, "score-fluency": str(scores[number - 1])})
        assert answer.status_code == 307, answer.content


def _judged(cast: Cast, campaign: Campaign) -> Any:
    """A judge on the same items through a real worker."""
    judge = judges.declare(project=cast.kassa, name="Steady", provider="simulated", model="sim-steady")
    run = runs.start_judge_run(judge=judge, dataset=campaign.dataset, rubric_version=campaign.rubric_version)
    tasks.enqueue_run(run.pk)
    _until(lambda: runs.run_progress(run).finished)
    return run


def _fresh_numbers(lead: Client, campaign: Campaign, *, judged: bool) -> dict[str, Any] | None:
    told = lead.get(f"{API}/campaigns/{campaign.pk}/numbers/").json()
    if told["stale"] or told["snapshot"] is None:
        return None
    has_judge = any(each["judge"] for each in told["snapshot"]["estimates"])
    return told["snapshot"] if has_judge == judged else None


def _figure(numbers: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    keys = {"judge": None, **wanted}
    return next(each for each in numbers["estimates"] if all(each[name] == value for name, value in keys.items()))


def _table(lead: Client, campaign: Campaign) -> list[dict[str, str]]:
    answer = lead.get(f"{API}/campaigns/{campaign.pk}/ratings.csv")
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))


def _until(found: Callable[[], Any], *, seconds: float = 180) -> Any:
    """What `found` gives once it gives something."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return value


@pytest.mark.both_databases
def test_files_above_every_threshold_come_in_by_page_and_by_api(cast: Cast, worker: subprocess.Popen[bytes]) -> None:
    """By page more rows than one transaction stores; by API, in chunks, more bytes than one request may bring."""
    browser = cast.client("boris")
    rows = b"id,language,question,answer\n" + b"".join(
        b"d%d,et,%b?,%b.\n" % (n, b"Kus on minu pakk " * 6, b"Pakk on teel " * 8) for n in range(storage.STAGE + 1)
    )
    assert len(rows) > LARGEST_READ_AT_ONCE
    imported = browser.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("Rows.csv", rows)]})["Location"]
    _until(lambda: "What would be stored" in browser.get(imported).content.decode(), seconds=300)
    browser.post(f"{imported}store/")
    _until(lambda: Dataset.objects.filter(name="Rows", state=Dataset.State.READY).exists(), seconds=300)
    assert Dataset.objects.get(name="Rows").items.count() == storage.STAGE + 1

    text = "Kus on minu pakk? " * 300_000
    lines = [json.dumps({"id": f"d{n}", "language": "et", "question": text}).encode() for n in range(20)]
    content = b"\n".join(lines)
    assert len(content) > uploads.AT_ONCE and len(lines[0]) > check_reports.MOST_SHOWN
    key = _uploaded(browser, "Bytes.jsonl", content)
    sent = browser.post(f"{API}/imports/", {"uploads": [key], "kind": "dataset"}, "application/json")
    assert sent.status_code == 201, sent.content
    imported = f"{API}/imports/{sent.json()['id']}/"
    _until(lambda: browser.get(f"{imported}preview/").status_code == 200, seconds=300)
    assert browser.post(f"{imported}store/").status_code == 202
    _until(lambda: browser.get(imported).json()["state"] == "stored", seconds=300)
    stored = Dataset.objects.get(name="Bytes")
    assert stored.items.count() == len(lines)
    assert stored.items.order_by("pk").last().fields == {"question": text}


def _uploaded(browser: Client, name: str, content: bytes) -> str:
    """Bring a file in by chunks (tus); the key of the upload."""
    told = {"Upload-Length": str(len(content)), "Upload-Metadata": f"filename {b64encode(name.encode()).decode()}"}
    begun = browser.post(f"{API}/uploads/", headers={"Tus-Resumable": "1.0.0", **told})
    assert begun.status_code == 201, begun.content
    for offset in range(0, len(content), CHUNK):
        headers = {"Tus-Resumable": "1.0.0", "Upload-Offset": str(offset)}
        chunk = content[offset : offset + CHUNK]
        answer = browser.patch(
            begun["Location"], chunk, content_type="application/offset+octet-stream", headers=headers
        )
        assert answer.status_code == 204, answer.content
    return str(begun["Location"]).strip("/").split("/")[-1]
