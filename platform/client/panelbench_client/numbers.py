"""Methods for numbers and items of a campaign, what judges may be used for, and audits of judges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation

if TYPE_CHECKING:
    import pandas as pd


class NumberMethods(ServerConnection):
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

        ``where``: COLUMN=VALUE, as in a question. ``sort`` is disagreement, judge_error, id or n; ``reference`` is
        mode, mode_split, mode_lower, mode_upper, median, mean, minimum, adjudicated or adjudicated_first; a figure's
        each or dawid_skene settle no single item: the default rule stands for them. ``agreement``: full, partial or
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
class AdjudicationMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/adjudication/")
    def adjudication_queue(
        self,
        campaign: int,
        *,
        order: str | None = None,
        criterion: str | None = None,
        language: str | None = None,
        judge: str | None = None,
        state: str | None = None,
        seed: int | None = None,
    ) -> Iterator[types.QueuedItem]:
        """The items on which raters differ, those that differ most first; without those that you have rated.

        ``order`` is range, entropy, na, critical or judge; ``state`` is open, stale, decided or all.
        """
        filters = {"order": order, "criterion": criterion, "language": language, "judge": judge, "state": state}
        return self.pages(self.at("campaigns/{}/adjudication/", campaign), **filters, seed=seed)

    @operation("GET", "/projects/{project}/campaigns/{campaign}/items/{item}/adjudications/")
    def item_adjudications(self, campaign: int, item: int) -> list[types.DisputedCriterion]:
        """The rated criteria of an item (by ``id``) with their ratings, names hidden, and what was decided."""
        there = self.at("campaigns/{}/items/{}/adjudications/", campaign, item)
        return cast(list[types.DisputedCriterion], self.json("GET", there))

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

    @operation("GET", "/projects/{project}/campaigns/{campaign}/meeting-decisions/")
    def meeting_decisions(self, campaign: int) -> list[types.MeetingDecision]:
        """The decisions of a campaign's calibration meetings, the newest meeting first."""
        there = self.at("campaigns/{}/meeting-decisions/", campaign)
        return cast(list[types.MeetingDecision], self.json("GET", there))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/meeting-decisions/")
    def record_meeting_decision(
        self,
        campaign: int,
        *,
        held_on: str,
        decision: str,
        guideline_change: str = "",
        criterion: str = "",
        item: str = "",
    ) -> types.MeetingDecision:
        """Record what a meeting decided, on a criterion (its key) and an item (its external id) or in general."""
        body = {"held_on": held_on, "decision": decision, "guideline_change": guideline_change}
        body |= {"criterion": criterion, "item": item}
        there = self.at("campaigns/{}/meeting-decisions/", campaign)
        return cast(types.MeetingDecision, self.json("POST", there, json=body))


# --- thresholds and decisions ----------------------------------------------------------------------------------------
class DecisionMethods(ServerConnection):
    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/")
    def draw_next_items(
        self, campaign: int, duty: int, *, judge: str, criterion: str, wanted: int, seed: int | None = None
    ) -> types.Drawn:
        """Draw about ``wanted`` more items into a duty, more often where the ``judge`` may be wrong."""
        fields = {"judge": judge, "criterion": criterion, "wanted": wanted}
        fields |= {} if seed is None else {"seed": seed}
        there = self.at("campaigns/{}/duties/{}/next-items/", campaign, duty)
        return cast(types.Drawn, self.json("POST", there, json=fields))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/")
    def decisions(
        self,
        campaign: int,
        *,
        judge: str | None = None,
        criterion: str | None = None,
        language: str | None = None,
        decision: str | None = None,
    ) -> types.Decisions:
        """What each judge may be used for in each criterion and language, with reasons and figures."""
        asked = {"judge": judge, "criterion": criterion, "language": language, "decision": decision}
        there = self.at("campaigns/{}/decisions/", campaign)
        return cast(
            types.Decisions,
            self.json("GET", there, params={name: text for name, text in asked.items() if text is not None}),
        )

    @operation("GET", "/projects/{project}/campaigns/{campaign}/workflow/")
    def workflow(self, campaign: int, *, judge: str | None = None, language: str | None = None) -> types.Workflow:
        """The four steps before a judge is used across languages, each passed, failed, insufficient or not_run."""
        asked = {"judge": judge, "language": language}
        there = self.at("campaigns/{}/workflow/", campaign)
        found = self.json("GET", there, params={name: text for name, text in asked.items() if text is not None})
        return cast(types.Workflow, found)

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

    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/history/")
    def decision_history(self, campaign: int) -> list[types.DecisionChange]:
        """The changes of a campaign's decisions, newest first, each with why."""
        there = self.at("campaigns/{}/decisions/history/", campaign)
        return cast(list[types.DecisionChange], self.json("GET", there))

    @operation("GET", "/projects/{project}/thresholds/")
    def thresholds(self) -> list[types.Thresholds]:
        """Every version of the project's thresholds, the one that holds first."""
        return cast(list[types.Thresholds], self.json("GET", self.at("thresholds/")))

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

    @operation("POST", "/projects/{project}/audits/forecast/")
    def forecast_audit(
        self,
        *,
        judge: int,
        dataset: int,
        rubric_version: int,
        changes: Sequence[str],
        per_language: int = 30,
        seed: int = 0,
        budget: str | None = None,
    ) -> types.PerturbationForecast:
        """What an audit takes: calls exactly, tokens and cost roughly, and how many items each change changes."""
        body = _audit(judge, dataset, rubric_version, changes, per_language, seed, budget)
        found = self.json("POST", self.at("audits/forecast/"), json=body, repeatable=True)
        return cast(types.PerturbationForecast, found)

    # --- alignments -------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/alignments/")
    def alignments(self) -> Iterator[types.Alignment]:
        """The project's alignments, newest first."""
        return self.pages(self.at("alignments/"))

    @operation("POST", "/projects/{project}/alignments/")
    def create_alignment(
        self,
        name: str,
        *,
        campaign: int,
        base: int,
        share: float = 0.4,
        looks: int = 3,
        measure: str = "accuracy",
        confidence: float = 0.95,
        seed: int | None = None,
        budget: str | None = None,
    ) -> types.AlignmentDetail:
        """Split the labels of a campaign once, to align the judge ``base`` with them; nothing is sent."""
        body = {"name": name, "campaign": campaign, "base": base, "share": share, "looks": looks, "budget": budget}
        body |= {"measure": measure, "confidence": confidence, **({} if seed is None else {"seed": seed})}
        return cast(types.AlignmentDetail, self.json("POST", self.at("alignments/"), json=body))

    @operation("GET", "/projects/{project}/alignments/{alignment_pk}/")
    def alignment(self, alignment_pk: int) -> types.AlignmentDetail:
        """The split, every version on the tuning items, and what the looks have shown."""
        return cast(types.AlignmentDetail, self.json("GET", self.at("alignments/{}/", alignment_pk)))

    @operation("PUT", "/projects/{project}/alignments/{alignment_pk}/budget/")
    def set_alignment_budget(self, alignment_pk: int, budget: str | None) -> types.AlignmentDetail:
        """Raise or lower the cap in USD over everything that an alignment asks; None removes it."""
        there = self.at("alignments/{}/budget/", alignment_pk)
        return cast(types.AlignmentDetail, self.json("PUT", there, json={"budget": budget}, repeatable=True))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/close/")
    def close_alignment(self, alignment_pk: int, *, confirm: bool) -> types.AlignmentDetail:
        """Give up the looks that are left, for good. Without a look so far, what was locked is free again."""
        there = self.at("alignments/{}/close/", alignment_pk)
        return cast(types.AlignmentDetail, self.json("POST", there, json={"confirm": confirm}))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/")
    def add_version(
        self,
        alignment_pk: int,
        name: str,
        *,
        made_from: int,
        instructions: str = "",
        own_texts: Sequence[Mapping[str, Any]] = (),
    ) -> types.AlignmentDetail:
        """Make a version with these instructions and texts, and ask it about the tuning items.

        ``own_texts``: ``[{"criterion": "fluency", "point": 3, "text": "..."}]``; ``point`` None is the definition.
        """
        body = {"name": name, "made_from": made_from, "instructions": instructions, "own_texts": [*own_texts]}
        there = self.at("alignments/{}/versions/", alignment_pk)
        return cast(types.AlignmentDetail, self.json("POST", there, json=body))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/run/")
    def run_version(self, alignment_pk: int, judge: int) -> types.AlignmentDetail:
        """Ask a version about the tuning items. Started again, it is the same run."""
        there = self.at("alignments/{}/versions/{}/run/", alignment_pk, judge)
        return cast(types.AlignmentDetail, self.json("POST", there, repeatable=True))

    @operation("GET", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/confusions/")
    def confusions(
        self, alignment_pk: int, judge: int, *, language: str = "", criterion: str = ""
    ) -> list[types.Confusion]:
        """The tuning items on which a version differs most from the panel, with the words of both."""
        there = self.at("alignments/{}/versions/{}/confusions/", alignment_pk, judge)
        return cast(
            list[types.Confusion], self.json("GET", there, params={"language": language, "criterion": criterion})
        )

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/proposals/")
    def propose_version(
        self, alignment_pk: int, judge: int, name: str, *, provider: str, model: str, tokens: int = 2000
    ) -> types.Proposal:
        """Have a model write the next version from this one's differences on the tuning items. `alignment` shows it."""
        there = self.at("alignments/{}/versions/{}/proposals/", alignment_pk, judge)
        body = {"name": name, "provider": provider, "model": model, "tokens": tokens}
        return cast(types.Proposal, self.json("POST", there, json=body))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/searches/")
    def start_search(
        self, alignment_pk: int, method: str, *, steps: int, seed: int | None = None
    ) -> types.VersionSearch:
        """Search for versions with examples: ``random`` or ``greedy``. The alignment's budget caps it."""
        body = {"method": method, "steps": steps, **({} if seed is None else {"seed": seed})}
        there = self.at("alignments/{}/searches/", alignment_pk)
        return cast(types.VersionSearch, self.json("POST", there, json=body))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/look/")
    def take_look(self, alignment_pk: int, judge: int, *, confirm: bool) -> types.AlignmentDetail:
        """Test a version on the locked items. It is counted, written to the audit trail, and can't be taken back."""
        there = self.at("alignments/{}/versions/{}/look/", alignment_pk, judge)
        return cast(types.AlignmentDetail, self.json("POST", there, json={"confirm": confirm}))


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
