"""While a dataset is loading, no page, route, command or verb of any room sees it or anything in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.refusals import Refused
from annotation import campaigns
from annotation.imports import storage as storing
from annotation.imports import targets
from annotation.models import Dataset, Item
from annotation.readers.items import ItemRow
from judging import judges, runs
from judging.models import Judge
from tests import make
from tests.cast import Cast
from tests.provider_server import RunningProvider

NAME = "Half a dataset"
PAGES = (
    "",
    "datasets/",
    "campaigns/new/",
    "judges/{judge}/runs/new/",
    "export/",
    "imports/new/",
    "numbers/",
    "imports/",
)
LISTS = ("datasets/", "campaigns/", "runs/", "verdicts/", "imports/")


@pytest.fixture
def judge(cast: Cast, provider: RunningProvider) -> Judge:
    return judges.declare(project=cast.kassa, name="Steady", provider="simulated", model="sim-steady", actor=cast.boris)


@pytest.fixture
def loading(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Dataset], None]], Dataset]:
    """Looks at a dataset of which a hundred items are stored and one is still to come, and then lets it end."""
    monkeypatch.setattr(storing, "STAGE", 100)

    def looked_at(look: Callable[[Dataset], None]) -> Dataset:
        def rows() -> Iterator[ItemRow]:
            for number in range(storing.STAGE + 1):
                if number == storing.STAGE:
                    found = Dataset.objects.get(name=NAME)
                    assert (found.state, found.items.count()) == (Dataset.State.LOADING, storing.STAGE)
                    look(found)
                yield make.item_row(number)

        return storing.store(project=cast.kassa, name=NAME, items=rows())

    return looked_at


def test_pages_and_lists_do_not_name_it(cast: Cast, judge: Judge, loading: Any) -> None:
    make.rubric(cast.kassa)
    boris = cast.client("boris")

    def look(_dataset: Dataset) -> None:
        for page in PAGES:
            answer = boris.get(f"/p/kassa/{page.format(judge=judge.pk)}")
            assert (answer.status_code, NAME in answer.content.decode()) == (200, False), page
        for rows in LISTS:
            assert NAME not in boris.get(f"/api/v1/projects/kassa/{rows}").content.decode()
        assert not Item.objects.visible_to(cast.boris).exists()

    stored = loading(look)
    assert NAME in boris.get("/p/kassa/datasets/").content.decode()
    assert Item.objects.visible_to(cast.boris).count() == stored.items.count()


def test_no_route_takes_it(cast: Cast, judge: Judge, loading: Any) -> None:
    version = make.rubric(cast.kassa)
    boris = cast.client("boris")

    def look(dataset: Dataset) -> None:
        item = dataset.items.latest("pk").pk
        about = {"dataset": dataset.pk, "rubric_version": version.pk}
        for address in (f"/p/kassa/datasets/{dataset.pk}/", f"/p/kassa/datasets/{dataset.pk}/items/{item}/"):
            assert boris.get(address).status_code == 404
        api = "/api/v1/projects/kassa/"
        for address in (f"datasets/{dataset.pk}/", f"datasets/{dataset.pk}/items/"):
            assert boris.get(f"{api}{address}").status_code == 404
        asked = {"campaigns/": {"name": "x", **about}, "runs/": {"judge": judge.pk, **about}}
        asked["runs/forecast/"] = asked["runs/"]
        for address, body in asked.items():
            answer = boris.post(f"{api}{address}", json.dumps(body), "application/json")
            assert answer.status_code == 404, (address, answer.content)
        preview = boris.get(f"{api}judges/{judge.pk}/preview/?item={item}&rubric_version={version.pk}")
        assert preview.status_code == 404
        named = boris.get(f"{api}exports/items/?format=jsonl&dataset={NAME}")
        assert named.status_code in (404, 409, 422)

    loading(look)


def test_no_verb_or_command_takes_it(cast: Cast, judge: Judge, loading: Any) -> None:
    version = make.rubric(cast.kassa)

    def look(dataset: Dataset) -> None:
        with pytest.raises(Refused):
            campaigns.open_campaign(project=cast.kassa, name="x", dataset=dataset, rubric_version=version)
        with pytest.raises(Refused):
            runs.start_judge_run(judge=judge, dataset=dataset, rubric_version=version)
        with pytest.raises(Refused, match="no dataset"):
            targets.dataset_of(project=cast.kassa, name=NAME)
        named = {"project": "kassa", "judge": "Steady", "dataset": NAME, "rubric": version.rubric.key}
        with pytest.raises(CommandError, match=NAME):
            call_command("run_judge", **named, stdout=StringIO())

    loading(look)
