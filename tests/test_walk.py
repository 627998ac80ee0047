"""The whole job, end to end, as docs/walk.md tells it: on PostgreSQL with Redis, and on the embedded default."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from accounts.models import Membership, Role
from annotation.models import Campaign, Dataset, Rating, RubricVersion
from judging import judges, runs, tasks
from tests import make
from tests.cast import Cast, person
from tests.provider_server import RunningProvider

pytestmark = [pytest.mark.walk, pytest.mark.django_db(transaction=True)]

API = "/api/v1/projects/kassa"
ITEMS = 6


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
    assert runs.progress(run).verdicts == {"ok": ITEMS * 2}

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
    """Dataset and rubric by command, campaign by API."""
    dialogues, rubric = folder / "dialogues.jsonl", folder / "rubric.yaml"
    rows = [make.item(number) for number in range(1, ITEMS + 1)]
    lines = [
        {
            "id": row.external_id,
            "language": row.language,
            "generator": row.generator,
            "title": row.title,
            "turns": row.turns,
        }
        for row in rows
    ]
    dialogues.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    criteria = [make.criterion("fluency"), make.criterion("coherence", (0, 1))]
    document = {"key": "quality", "name": {"en": "Quality"}, "source_language": "en", "criteria": criteria}
    rubric.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
    call_command("import_dataset", str(dialogues), project="kassa", name="Walk", stdout=io.StringIO())
    call_command("import_rubric", str(rubric), project="kassa", publish=True, stdout=io.StringIO())
    chosen = {"dataset": Dataset.objects.get().pk, "rubric_version": RubricVersion.objects.get().pk}
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
    run = runs.start(judge=judge, dataset=campaign.dataset, rubric_version=campaign.rubric_version)
    tasks.enqueue(run.pk)
    _until(lambda: runs.progress(run).finished)
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


def _until(found: Callable[[], Any], *, seconds: float = 60) -> Any:
    """What `found` gives once it gives something."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.3)
    return value
