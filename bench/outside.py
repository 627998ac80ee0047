"""What anybody can see of a project from outside: its pages, its API, its exports, and the rows that are committed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from annotation.models import Annotation, Annotator, Campaign, Dataset, Item, Rating
from judging.models import JudgeRun, Verdict
from panelbench_client import Client

PAGES = ("", "datasets/", "campaigns/", "campaigns/new/", "judges/", "runs/", "numbers/", "export/")
Seen = dict[str, Any]


@dataclass(slots=True)
class Outside:
    """A lead's browser and script, looking at one project. ``name`` is the dataset that is being imported."""

    client: Client
    token: str
    session: str
    name: str
    folder: Path
    looks: int = 0

    def seen(self) -> Seen:
        """Everything there is to see, the same as long as nothing more has become visible."""
        self.looks += 1
        with httpx.Client(base_url=self.client.address, cookies={"sessionid": self.session}, timeout=60) as browser:
            return {**self._pages(browser), **self._hidden(browser), **self._api(), **_rows()}

    @property
    def staged(self) -> int:
        """Rows of datasets that are not ready: they are in the database, and nowhere else."""
        return Item.objects.filter(dataset__state=Dataset.State.LOADING).count()

    def _pages(self, browser: httpx.Client) -> Seen:
        found = {page: browser.get(f"/p/{self.client.project}/{page}") for page in PAGES}
        return {f"page {page}": (answer.status_code, self.name in answer.text) for page, answer in found.items()}

    def _hidden(self, browser: httpx.Client) -> Seen:
        """What answers by the number of a dataset that is not ready; there should be nothing."""
        place, api = f"/p/{self.client.project}", f"{self.client.address}/api/v1/projects/{self.client.project}"
        token = {"Authorization": f"Bearer {self.token}"}
        answered = []
        for number in Dataset.objects.filter(state=Dataset.State.LOADING).values_list("pk", flat=True):
            routes = (f"datasets/{number}/", f"datasets/{number}/items/", f"exports/items/?dataset={number}")
            pages = [httpx.get(f"{api}/{route}", headers=token, timeout=60) for route in routes]
            pages.append(browser.get(f"{place}/datasets/{number}/"))
            answered += [str(page.url) for page in pages if page.status_code != 404]
        return {"answered for what is not ready": answered}

    def _api(self) -> Seen:
        datasets = [(each["name"], each["version"], each["items"]) for each in self.client.datasets()]
        campaigns = [each["id"] for each in self.client.campaigns()]
        exported = {f"ratings of campaign {each}": self._lines(each) for each in campaigns}
        return {"api datasets": datasets, "api campaigns": campaigns, **exported}

    def _lines(self, campaign: int) -> int:
        there = self.client.export("ratings", self.folder / "ratings.out.jsonl", format="jsonl", campaign=campaign)
        with there.open("rb") as lines:
            return sum(1 for _line in lines)


def _rows() -> Seen:
    ready = Dataset.objects.ready()
    models = (Annotation, Annotator, Campaign, JudgeRun, Rating, Verdict)
    counted = {f"{model.__name__} rows": model._default_manager.count() for model in models}
    return {"ready datasets": ready.count(), "items of them": Item.objects.filter(dataset__in=ready).count(), **counted}
