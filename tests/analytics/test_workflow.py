"""The staged workflow by page, API and command: each step's state is that of its figures under the thresholds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from analytics.judges import thresholds
from annotation.models import Campaign
from tests import make
from tests.analytics import scene
from tests.analytics.test_judge_pages import judged_campaign, text_of
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(cast: Cast) -> Campaign:
    return judged_campaign(cast)


def of_command(capsys: pytest.CaptureFixture[str], campaign: Campaign, *more: str) -> tuple[int, dict[str, Any]]:
    """Its exit status and what it prints as JSON."""
    capsys.readouterr()
    try:
        call_command("workflow", "--campaign", str(campaign.pk), "--json", *more)
        status = 0
    except SystemExit as ended:
        status = int(str(ended.code))
    except CommandError as error:
        status = error.returncode
    return status, json.loads(capsys.readouterr().out or "{}")


def test_nothing_passes_before_thresholds_are_declared(
    cast: Cast, judged: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"/p/kassa/numbers/{judged.pk}/workflow/"
    page = cast.client("aino").get(address).content.decode()
    assert page.count('data-state="not_run"') == 4 and "/p/kassa/settings/thresholds/" in page
    assert "/p/kassa/settings/thresholds/" not in cast.client("boris").get(address).content.decode()
    status, found = of_command(capsys, judged)
    assert status == 2 and {step["state"] for step in found["steps"]} == {"not_run"}


def test_every_step_has_the_state_of_its_figures(
    cast: Cast, judged: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    """birch-2 and cedar-3 change places between the languages: rankings of three generators with one inversion."""
    thresholds.declare_thresholds(project=judged.project, preset="skilled", actor=None)
    status, found = of_command(capsys, judged, "--judge", "Anna")
    steps = {step["name"]: step for step in found["steps"]}
    assert status == 1 and found["state"] == "failed" and found["judge"] == "Anna" and found["language"] == "en"
    (carried,) = steps["languages"]["figures"]
    assert carried["value"] == pytest.approx(1 / 3) and carried["languages"] == ["en", "et"]
    assert steps["languages"]["state"] == "failed" and steps["languages"]["action"] == "calibrate"
    assert {each["languages"][0]: each["state"] for each in steps["panel"]["figures"]} == {
        "en": "passed",
        "et": "passed",
    }
    assert steps["judge"]["figures"][0]["decision"] and steps["surface"]["figures"]

    answered = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{judged.pk}/workflow/?judge=Anna").json()
    assert answered == {**found, "stale": False}
    page = text_of(
        scene.answered(
            cast.client("boris"), judged, f"/p/kassa/numbers/{judged.pk}/workflow/?judge=Anna"
        ).content.decode()
    )
    assert "The judge’s ranking changes with the language" in page and "Correct its means" in page
    assert "0.33" in page and "English – Estonian" in page and "10 clusters" in page


def test_thresholds_move_the_state(cast: Cast, judged: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {"tau_b": 0.3, "tau_b_low": -1.0, "fewest_items": 31}
    thresholds.declare_thresholds(project=judged.project, preset="skilled", changes=changes, actor=None)
    _status, found = of_command(capsys, judged)
    states = {step["name"]: step["state"] for step in found["steps"]}
    assert states["languages"] != "failed"  # 1/3 is enough now
    assert states["panel"] == "insufficient"  # 30 items in each language


def test_no_judge_one_language_and_wrong_names(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make.item_row(place, "et", external_id=f"i{place}") for place in range(4)]
    campaign = make.campaign(cast.kassa, items=rows)
    thresholds.declare_thresholds(project=campaign.project, preset="crowd", actor=None)
    status, found = of_command(capsys, campaign)
    assert status == 3 and found["judge"] == "" and found["language"] == "et"
    assert {step["name"]: step["state"] for step in found["steps"]}["judge"] == "not_run"
    assert of_command(capsys, campaign, "--judge", "Nobody")[0] == 2
    assert cast.client("layla").get(f"/p/kassa/numbers/{campaign.pk}/workflow/").status_code in (403, 404)
