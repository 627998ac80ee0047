"""Files by script: how large, made in the background, fetched, and a whole project carried elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accounts import tokens
from accounts.models import Membership, Project, Role, Scope
from analytics.exporting import transfers
from analytics.models import Transfer
from annotation.models import Item
from panelbench_client import Client, Conflict, Forbidden, TransferFailed
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def bench(live_server: Any, cast: Cast, project: str, scope: Scope = Scope.WRITE) -> Client:
    _token, secret = tokens.issue(user=cast.aino, name="client", scope=scope)
    return Client(live_server.url, secret, project)


def carried(key: str) -> None:
    """What a worker does."""
    transfers.carry_out_transfer(transfer_pk=Transfer.objects.get(key=key).pk)


def test_a_large_export_is_made_in_the_background(live_server: Any, cast: Cast, tmp_path: Path) -> None:
    campaign = scene.rated_campaign(cast)
    with bench(live_server, cast, "kassa") as here:
        assert here.export_size("ratings", format="csv")["rows"] == 36
        asked = here.prepare_export("ratings", format="csv", campaign=campaign.pk, rationales=False)
        carried(asked["key"])
        done = here.wait_for_transfer(asked["key"])
        there = here.save_transfer(asked["key"], tmp_path / "there.csv")
        at_once = here.export("ratings", tmp_path / "at-once.csv", format="csv", rationales=False)
        assert there.read_bytes() == at_once.read_bytes()
        assert (done["size"], [each["key"] for each in here.transfers()]) == (there.stat().st_size, [asked["key"]])
        here.remove_transfer(asked["key"])
        assert list(here.transfers()) == []
    with bench(live_server, cast, "kassa", Scope.READ) as reader, pytest.raises(Forbidden):
        reader.prepare_export("ratings")


def test_a_project_is_carried_elsewhere(live_server: Any, cast: Cast, tmp_path: Path) -> None:
    scene.rated_campaign(cast)
    empty = Project.objects.create(slug="elsewhere", name="Elsewhere")
    Membership.objects.create(project=empty, user=cast.aino, role=Role.LEAD)
    with bench(live_server, cast, "kassa") as here, bench(live_server, cast, "elsewhere") as there:
        bundle = here.export("bundle", tmp_path / "kassa.zip")
        asked = there.load_bundle(bundle)
        carried(asked["key"])
        assert "12 items" in there.wait_for_transfer(asked["key"])["sentence"]
        assert Item.objects.filter(dataset__project=empty).count() == 12
        with pytest.raises(Conflict, match="empty project"):
            there.load_bundle(bundle)


def test_what_failed_says_why(live_server: Any, cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    with bench(live_server, cast, "kassa") as here:
        key = here.prepare_export("ratings", campaign=campaign.pk)["key"]
        Transfer.objects.update(asked={**Transfer.objects.get().asked, "subject": 0})
        carried(key)
        with pytest.raises(TransferFailed, match="Name the campaign"):
            here.wait_for_transfer(key)
