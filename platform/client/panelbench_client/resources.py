"""Methods that do more than send what they are given: a whole document, keys of their own, waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from uuid import uuid4

from panelbench_client import types
from panelbench_client.connection import operation
from panelbench_client.methods import PlainMethods


class ProjectMethods(PlainMethods):
    @operation("POST", "/projects/{project}/rubrics/", body="document")
    def draft_rubric(self, document: Mapping[str, Any]) -> types.RubricDocument:
        """Create a draft version of the rubric with the document's key; if its newest version is equal, return that
        one."""
        return cast(types.RubricDocument, self.json("POST", self.at("rubrics/"), json=dict(document), repeatable=True))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/annotators/")
    def add_annotators(self, campaign: int, duty: int, *, overlap: int, more: int = 1) -> types.HandedOut:
        """Let ``more`` annotators score each item; ``overlap`` is the number now, else it is refused."""
        there = self.at("campaigns/{}/duties/{}/annotators/", campaign, duty)
        return cast(types.HandedOut, self.json("POST", there, json={"overlap": overlap, "more": more}))


class JudgeMethods(PlainMethods):
    @operation("POST", "/projects/{project}/runs/")
    def start_run(
        self,
        *,
        judge: int,
        dataset: int,
        rubric_version: int,
        repeats: int = 1,
        budget: str | None = None,
        again: bool = False,
        key: str | None = None,
        selection: int | None = None,
        by_batch: bool = False,
    ) -> types.RunDetail:
        """Start a run, over all items or those of a ``selection``. ``budget`` is a cap in USD, as text: ``"2.50"``.

        Replies of earlier runs of the judge are used; ``again`` asks and pays again. The same ``key`` twice starts only
        one run; without a key the method creates one, so that its own retries are safe. ``by_batch`` asks by the
        provider's batch API: replies within a day, at the price of batches.
        """
        body: dict[str, Any] = {
            "judge": judge,
            "dataset": dataset,
            "rubric_version": rubric_version,
            "selection": selection,
        }
        body |= {"repeats": repeats, "budget": budget, "by_batch": by_batch, "again": again, "key": key or uuid4().hex}
        return cast(types.RunDetail, self.json("POST", self.at("runs/"), json=body, repeatable=True))

    def wait_for_run(self, run: int, *, timeout: float = 3600.0) -> types.RunDetail:
        """Wait until a run has no open calls. Raises `TimedOut`, also if the run is paused."""

        def finished() -> types.RunDetail | None:
            current_run = self.run(run)
            return current_run if current_run["progress"]["finished"] else None

        return cast(types.RunDetail, self.wait(finished, timeout=timeout, what=f"Run {run}"))

    def wait_for_design(self, design: int, *, timeout: float = 3600.0) -> types.DesignDetail:
        """Wait until a design has no open calls. Raises `TimedOut`, also if it is paused."""

        def finished() -> types.DesignDetail | None:
            current_design = self.design(design)
            return current_design if current_design["phase"] in ("planned", "finished") else None

        return cast(types.DesignDetail, self.wait(finished, timeout=timeout, what=f"Design {design}"))
