"""A server without pyarrow offers no Parquet and says how to get it; an export form keeps what was chosen."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.analytics import scene
from tests.cast import Cast

HOW = "panelbench[parquet]"


def test_what_make_demo_installs_has_what_the_pages_offer() -> None:
    pinned = (Path(__file__).parents[2] / "requirements" / "base.txt").read_text()
    assert re.search(r"^pyarrow==", pinned, re.MULTILINE)


def test_parquet_is_offered_only_where_it_can_be_had(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.rated_campaign(cast)
    boris = cast.client("boris")
    assert "PARQUET" in boris.get("/p/kassa/export/").content.decode()
    assert "XLSX or Parquet" in boris.get("/p/kassa/imports/new/").content.decode()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    shown = boris.get("/p/kassa/export/").content.decode()
    assert "PARQUET" not in shown and HOW in shown
    shown = boris.get("/p/kassa/imports/new/").content.decode()
    assert "XLSX or Parquet" not in shown and HOW in shown
    refused = boris.get("/api/v1/projects/kassa/exports/items/", {"format": "parquet"})
    assert (refused.status_code, refused.json()["code"]) == (422, "unwritable")
    assert HOW in refused.json()["fields"]["format"][0]


def test_a_refused_export_keeps_what_was_chosen(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    posted = {"what": "ratings", "campaign": str(campaign), "format": "xlsx", "renumbered": "seven"}
    posted |= {"without_rationales": "on", "revisions": "on"}
    for asked in (posted, {**posted, "renumbered": "7", "look": "on"}):
        answer = cast.client("boris").post("/p/kassa/export/file/", asked, follow=True)
        form = answer.content.decode().partition('id="export-scores"')[2].partition("</form>")[0]
        assert '<option value="ratings" selected>' in form
        assert '<option value="xlsx" selected>' in form
        assert f'value="{asked["renumbered"]}"' in form
        assert 'name="without_rationales" value="on" checked' in form and 'name="revisions" value="on" checked' in form
        assert 'name="replies" value="on">' in form
