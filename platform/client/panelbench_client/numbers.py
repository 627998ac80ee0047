"""Methods for numbers and items of a campaign, what judges may be used for, and audits of judges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from panelbench_client import types
from panelbench_client.connection import operation
from panelbench_client.methods import PlainMethods

if TYPE_CHECKING:
    import pandas as pd


class NumberMethods(PlainMethods):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/numbers/", blind="blind_only")
    def numbers(
        self, campaign: int, *, raters: Sequence[str] = (), blind_only: bool = False, reference: str = ""
    ) -> types.Numbers:
        """The newest figures, for the annotators with these pseudonyms or for all. If they are outdated, new ones are
        computed.

        `blind_only` leaves out ratings by people who could see verdicts.
        """
        there = self.at("campaigns/{}/numbers/", campaign)
        rule = {"reference": reference} if reference else {}
        return cast(types.Numbers, self.json("GET", there, params={**_chosen(raters, blind_only), **rule}))

    def fresh_numbers(
        self,
        campaign: int,
        *,
        raters: Sequence[str] = (),
        blind_only: bool = False,
        reference: str = "",
        timeout: float = 300.0,
    ) -> types.Snapshot:
        """Wait for figures that include all present ratings, and return them. Raises `TimedOut`."""

        def fresh() -> types.Snapshot | None:
            current_numbers = self.numbers(campaign, raters=raters, blind_only=blind_only, reference=reference)
            return None if current_numbers["stale"] else current_numbers["snapshot"]

        return cast(types.Snapshot, self.wait(fresh, timeout=timeout, what=f"The numbers of campaign {campaign}"))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/estimates/")
    def estimates(self, campaign: int, **question: str | float | Sequence[str]) -> types.Estimates:
        """The answer to a question, as the page Explore computes it: `rows`, `columns`, `statistic`, `judge`,
        `raters`, `panel`, `where=["language=et"]`, `reference` and so on; lists for several. Asking has a stale answer
        computed anew.
        """
        there = self.at("campaigns/{}/estimates/", campaign)
        return cast(types.Estimates, self.json("GET", there, params=question))

    def fresh_estimates(
        self, campaign: int, *, timeout: float = 300.0, **question: str | float | Sequence[str]
    ) -> types.QuestionAnswer:
        """The answer once it is that of everything rated so far; raises `TimedOut`."""

        def fresh() -> types.QuestionAnswer | None:
            found = self.estimates(campaign, **question)
            return None if found["stale"] else found["answer"]

        return cast(
            types.QuestionAnswer, self.wait(fresh, timeout=timeout, what=f"The estimates of campaign {campaign}")
        )

    def estimates_frame(
        self, campaign: int, *, timeout: float = 300.0, **question: str | float | Sequence[str]
    ) -> pd.DataFrame:
        """The estimates of `fresh_estimates` as a DataFrame, one a row; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.fresh_estimates(campaign, timeout=timeout, **question)["estimates"])

    @operation("GET", "/projects/{project}/campaigns/{campaign}/comparison/")
    def comparison(self, campaign: int, **chosen: str | int | Sequence[str]) -> types.Comparison:
        """Judges side by side on the items that all of them scored: `design`, or `judge=[...]`; `measure`, `against`,
        `jury`; with `first` and `second` also the items on which two judges differ most.
        """
        there = self.at("campaigns/{}/comparison/", campaign)
        return cast(types.Comparison, self.json("GET", there, params=chosen))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/ratings.csv", blind="blind_only")
    def save_ratings_table(
        self,
        campaign: int,
        to: str | os.PathLike[str],
        *,
        raters: Sequence[str] = (),
        blind_only: bool = False,
        **question: str | float | Sequence[str],
    ) -> Path:
        """Download the table from which the figures are computed, as CSV, unchanged; of a question only its rows."""
        there = self.at("campaigns/{}/ratings.csv", campaign)
        return self.save(there, to, params={**question, **_chosen(raters, blind_only)})

    @operation("GET", "/projects/{project}/campaigns/{campaign}/soft-labels.{kind}", kind="")
    def save_soft_labels(
        self, campaign: int, to: str | os.PathLike[str], **question: str | float | Sequence[str]
    ) -> Path:
        """Download how the annotators' scores of every item and criterion of a question are distributed.

        CSV, a row for every score with its count and share; JSON, with `shares` by score, where the name ends so.
        """
        kind = "json" if os.fspath(to).lower().endswith(".json") else "csv"
        return self.save(self.at(f"campaigns/{{}}/soft-labels.{kind}", campaign), to, params=question)

    @operation(
        "GET", "/projects/{project}/campaigns/{campaign}/items/",
        rater="raters", panel="panels", blind="blind_only", exclude="",
    )  # fmt: skip
    def campaign_items(
        self,
        campaign: int,
        *,
        criterion: str | None = None,
        language: str | None = None,
        generator: str | None = None,
        attributes: Mapping[str, str] | None = None,
        judge: str | None = None,
        raters: Sequence[str] = (),
        panels: Sequence[str] = (),
        blind_only: bool = False,
        where: Sequence[str] = (),
        min_seconds: float | None = None,
        scored: float | None = None,
        settled: float | None = None,
        judged: float | None = None,
        agreement: str | None = None,
        scores: int | None = None,
        compared: bool = False,
        by: Sequence[str] = (),
        without: Sequence[str] = (),
        q: str | None = None,
        sort: str | None = None,
        reference: str | None = None,
    ) -> Iterator[types.ListedItem]:
        """Items with their scores on one criterion, those that disagree most first.

        ``where``: COLUMN=VALUE, as in a question. ``sort`` is disagreement, judge_error, judge_above,
        judge_below, id or n; ``reference`` is mode, mode_split, mode_lower, mode_upper, median, mean, minimum,
        adjudicated or adjudicated_first; a figure's each or dawid_skene settle no single item: the default rule stands
        for them. ``agreement``: full, partial or
        none; ``scores``: with so many or more; ``compared``: with a reference and a score of the judge.
        """
        filters: dict[str, Any] = {"criterion": criterion, "language": language, "generator": generator, "q": q}
        filters |= {"judge": judge, "where": tuple(where), "min_seconds": min_seconds}
        filters |= {"scored": scored, "settled": settled, "judged": judged, "agreement": agreement, "scores": scores}
        filters |= {"compared": "only" if compared else None, "by": tuple(by), "without": tuple(without)}
        filters |= {f"attribute.{key}": value for key, value in (attributes or {}).items()}
        people = {"rater": tuple(raters), "panel": tuple(panels), "blind": "only" if blind_only else None}
        return self.pages(self.at("campaigns/{}/items/", campaign), **filters, **people, sort=sort, reference=reference)

    @operation(
        "GET", "/projects/{project}/campaigns/{campaign}/items/{item}/",
        language="", generator="", q="", sort="", judge="", where="", exclude="", min_seconds="",
        scored="", settled="", judged="", agreement="", scores="", compared="", by="", without="",
        rater="raters", panel="panels", blind="blind_only",
    )  # fmt: skip
    def campaign_item(
        self,
        campaign: int,
        item: int,
        *,
        criterion: str | None = None,
        raters: Sequence[str] = (),
        panels: Sequence[str] = (),
        blind_only: bool = False,
        reference: str | None = None,
    ) -> types.ItemDetail:
        """One item by ``id``: its text, every rating by pseudonym and every verdict, the chosen criterion first."""
        filters = {"criterion": criterion, "rater": tuple(raters), "panel": tuple(panels), "reference": reference}
        there = self.at("campaigns/{}/items/{}/", campaign, item)
        filters["blind"] = "only" if blind_only else None
        return cast(types.ItemDetail, self.json("GET", there, params=filters))


# --- adjudication ----------------------------------------------------------------------------------------------------
class AdjudicationMethods(PlainMethods):
    @operation(
        "POST", "/projects/{project}/campaigns/{campaign}/items/{item}/adjudications/", decisions="decisions", key="key"
    )
    def adjudicate(
        self,
        campaign: int,
        item: int,
        decisions: Sequence[types.AdjudicationDecision],
        *,
        order: types.OrderEnum = "range",
        key: str | None = None,
    ) -> list[types.DisputedCriterion]:
        """Decide criteria of an item; ratings stay as they are. The same ``key`` again stores nothing."""
        body = {"decisions": list(decisions), "order": order, **({"key": key} if key else {})}
        there = self.at("campaigns/{}/items/{}/adjudications/", campaign, item)
        return cast(list[types.DisputedCriterion], self.json("POST", there, json=body))


# --- thresholds and decisions ----------------------------------------------------------------------------------------
class DecisionMethods(PlainMethods):
    def wait_for_decisions(
        self, campaign: int, *, judge: str | None = None, timeout: float = 3600.0
    ) -> list[types.Decision]:
        """The decisions as things stand, once a worker has computed them. Raises `TimedOut`; `ValueError` without
        thresholds."""

        def fresh() -> types.Decisions | None:
            found = self.decisions(campaign, judge=judge)
            if found["thresholds"] is None:
                raise ValueError("No thresholds are declared: a lead declares them in the project's settings.")
            return None if found["stale"] else found

        found = self.wait(fresh, timeout=timeout, what=f"The decisions of campaign {campaign}")
        return cast(types.Decisions, found)["decisions"]

    @operation("POST", "/projects/{project}/thresholds/")
    def declare_thresholds(self, preset: types.PresetEnum, **changes: Any) -> types.Thresholds:
        """Declare a new version: ``experts``, ``skilled`` or ``crowd``, and what differs from it; for leads."""
        body = {"preset": preset, **changes}
        return cast(types.Thresholds, self.json("POST", self.at("thresholds/"), json=body, repeatable=True))

    @operation("POST", "/projects/{project}/audits/")
    def start_audit(
        self,
        *,
        judge: int,
        dataset: int,
        rubric_version: int,
        changes: Sequence[str],
        per_language: int = 30,
        seed: int = 0,
        budget: str | None = None,
        key: str | None = None,
    ) -> types.RunDetail:
        """Ask a judge about some items as they are and changed. Under one key it starts once."""
        about = _audit(judge, dataset, rubric_version, changes, per_language, seed, budget)
        body = {**about, "key": key or uuid4().hex}
        return cast(types.RunDetail, self.json("POST", self.at("audits/"), json=body, repeatable=True))

    # --- alignments -------------------------------------------------------------------------------------------------


def _audit(
    judge: int,
    dataset: int,
    rubric_version: int,
    changes: Sequence[str],
    per_language: int,
    seed: int,
    budget: str | None,
) -> dict[str, Any]:
    about = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version, "budget": budget}
    return {**about, "changes": list(changes), "per_language": per_language, "seed": seed}


def _chosen(raters: Sequence[str], blind_only: bool) -> dict[str, object]:
    return {"raters": tuple(raters), **({"blind": "only"} if blind_only else {})}
