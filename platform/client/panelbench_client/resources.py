"""Methods for the objects of a project: members, datasets, rubrics, campaigns, panels, judges, runs, numbers.

Also webhooks and share links.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


# --- projects --------------------------------------------------------------------------------------------------------
class ProjectMethods(ServerConnection):
    @operation("GET", "/me/")
    def me(self) -> types.Me:
        """Who the token belongs to, and their role in each project."""
        return cast(types.Me, self.json("GET", "/me/"))

    @operation("GET", "/projects/")
    def projects(self) -> Iterator[types.Project]:
        """The projects in which I have a role."""
        return self.pages("/projects/")

    @operation("POST", "/projects/")
    def found_project(self, name: str, *, slug: str, description: str = "") -> types.Project:
        """Create a project and become its lead; ``slug`` is part of its address."""
        body = {"name": name, "slug": slug, "description": description}
        return cast(types.Project, self.json("POST", "/projects/", json=body))

    @operation("GET", "/projects/{project}/")
    def describe(self) -> types.Project:
        """This client's project."""
        return cast(types.Project, self.json("GET", self.at("")))

    @operation("GET", "/projects/{project}/members/")
    def members(self) -> Iterator[types.Membership]:
        """Who is in the project; for its leads."""
        return self.pages(self.at("members/"))


# --- datasets and rubrics --------------------------------------------------------------------------------------------
class DatasetMethods(ServerConnection):
    @operation("GET", "/projects/{project}/datasets/")
    def datasets(self) -> Iterator[types.Dataset]:
        """Every version of every dataset."""
        return self.pages(self.at("datasets/"))

    @operation("GET", "/projects/{project}/datasets/{dataset}/")
    def dataset(self, dataset: int) -> types.Dataset:
        """One version of a dataset."""
        return cast(types.Dataset, self.json("GET", self.at("datasets/{}/", dataset)))

    @operation("GET", "/projects/{project}/datasets/{dataset}/items/")
    def items(
        self,
        dataset: int,
        *,
        language: str | None = None,
        generator: str | None = None,
        scenario: str | None = None,
        q: str | None = None,
    ) -> Iterator[types.DatasetItem]:
        """The items in their order, byte for byte as they came; ``q`` is a text that they hold."""
        filters = {"language": language, "generator": generator, "scenario": scenario, "q": q}
        return self.pages(self.at("datasets/{}/items/", dataset), **filters)

    @operation("GET", "/projects/{project}/rubrics/")
    def rubrics(self) -> Iterator[types.Rubric]:
        """The rubrics by key."""
        return self.pages(self.at("rubrics/"))

    @operation("POST", "/projects/{project}/rubrics/", body="document")
    def draft_rubric(self, document: Mapping[str, Any]) -> types.RubricDocument:
        """Draft the next version of the rubric with the document's key; the same document again is the same version."""
        return cast(types.RubricDocument, self.json("POST", self.at("rubrics/"), json=dict(document), repeatable=True))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/")
    def rubric_versions(self, rubric: str) -> Iterator[types.RubricVersion]:
        """The versions of one rubric."""
        return self.pages(self.at("rubrics/{}/versions/", rubric))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/{number}/")
    def rubric_version(self, rubric: str, number: int) -> types.RubricDocument:
        """One version with its document."""
        there = self.at("rubrics/{}/versions/{}/", rubric, number)
        return cast(types.RubricDocument, self.json("GET", there))

    @operation("POST", "/projects/{project}/rubrics/{rubric}/versions/{number}/publish/")
    def publish_rubric(self, rubric: str, number: int) -> types.RubricDocument:
        """Publish a draft: it never changes again."""
        there = self.at("rubrics/{}/versions/{}/publish/", rubric, number)
        return cast(types.RubricDocument, self.json("POST", there))


# --- campaigns, panels and duties ------------------------------------------------------------------------------------
class CampaignMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/")
    def campaigns(self) -> Iterator[types.Campaign]:
        """The project's campaigns."""
        return self.pages(self.at("campaigns/"))

    @operation("POST", "/projects/{project}/campaigns/")
    def open_campaign(self, name: str, *, dataset: int, rubric_version: int) -> types.Campaign:
        """Open a campaign on a dataset and a published rubric version, each by its ``id``."""
        body = {"name": name, "dataset": dataset, "rubric_version": rubric_version}
        return cast(types.Campaign, self.json("POST", self.at("campaigns/"), json=body))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/")
    def campaign(self, campaign: int) -> types.Campaign:
        """One campaign."""
        return cast(types.Campaign, self.json("GET", self.at("campaigns/{}/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/state/")
    def move_campaign(self, campaign: int, state: types.CampaignState) -> types.Campaign:
        """Pause a campaign, open it again, or close it permanently."""
        there = self.at("campaigns/{}/state/", campaign)
        return cast(types.Campaign, self.json("POST", there, json={"state": state}))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/progress/")
    def progress(self, campaign: int) -> list[types.DutyProgress]:
        """How far each duty is, and each annotator in it, by pseudonym."""
        there = self.at("campaigns/{}/progress/", campaign)
        return cast(list[types.DutyProgress], self.json("GET", there))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/dataset/")
    def extend_campaign(self, campaign: int, dataset: int) -> types.Campaign:
        """Go on with a later version of the dataset; every rating stays."""
        there = self.at("campaigns/{}/dataset/", campaign)
        return cast(types.Campaign, self.json("POST", there, json={"dataset": dataset}))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/hand-out/")
    def hand_out(self, campaign: int) -> types.HandedOut:
        """Give every duty the items that a later version of the dataset added."""
        return cast(types.HandedOut, self.json("POST", self.at("campaigns/{}/hand-out/", campaign)))

    # --- panels and duties ------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/panels/")
    def panels(self) -> Iterator[types.Panel]:
        """The project's panels."""
        return self.pages(self.at("panels/"))

    @operation("POST", "/projects/{project}/panels/")
    def make_panel(self, name: str, *, language: str = "") -> types.Panel:
        """Make a panel, usually of native speakers of one language."""
        body = {"name": name, "language": language}
        return cast(types.Panel, self.json("POST", self.at("panels/"), json=body))

    @operation("GET", "/projects/{project}/panels/{panel}/seats/")
    def seats(self, panel: int) -> Iterator[types.Seat]:
        """Who sits on a panel, by pseudonym."""
        return self.pages(self.at("panels/{}/seats/", panel))

    @operation("POST", "/projects/{project}/panels/{panel}/seats/")
    def seat(self, panel: int, user: int) -> types.Seat:
        """Put a member on a panel, by their user id; for leads."""
        return cast(types.Seat, self.json("POST", self.at("panels/{}/seats/", panel), json={"user": user}))

    @operation("DELETE", "/projects/{project}/panels/{panel}/seats/{seat}/")
    def unseat(self, panel: int, seat: int) -> None:
        """Take somebody off a panel; their ratings stay. For leads."""
        self.send("DELETE", self.at("panels/{}/seats/{}/", panel, seat))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/duties/")
    def duties(self, campaign: int) -> Iterator[types.Duty]:
        """The duties of a campaign."""
        return self.pages(self.at("campaigns/{}/duties/", campaign))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/")
    def add_duty(
        self,
        campaign: int,
        *,
        panel: int,
        overlap: int,
        name: str | None = None,
        criteria: Sequence[str] | None = None,
        languages: Sequence[str] | None = None,
        seed: int | None = None,
        keep_names: bool | None = None,
        again: bool | None = None,
    ) -> types.Duty:
        """Give a panel its share: so many annotators per item, on some or all criteria."""
        fields = {
            "panel": panel,
            "overlap": overlap,
            "name": name,
            "seed": seed,
            "keep_names": keep_names,
            "again": again,
        }
        lists = {"criteria": criteria and list(criteria), "languages": languages and list(languages)}
        there = self.at("campaigns/{}/duties/", campaign)
        return cast(types.Duty, self.json("POST", there, json=_not_none(fields | lists)))

    # --- the desk ---------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/desk/")
    def desk(self) -> list[types.DeskDuty]:
        """What the token's owner can rate."""
        return cast(list[types.DeskDuty], self.json("GET", self.at("desk/")))

    @operation("POST", "/projects/{project}/desk/{duty}/take/")
    def take(self, duty: int) -> types.Assignment | None:
        """The item on the owner's desk, else the next one; None when nothing is left."""
        return cast("types.Assignment | None", self.json("POST", self.at("desk/{}/take/", duty), repeatable=True))

    @operation("POST", "/projects/{project}/desk/at/{key}/")
    def submit(self, key: str, answers: Sequence[types.Answer], *, seconds: float = 0.0) -> types.Annotation:
        """Hand an item in. The same key again returns what was stored."""
        body = {"answers": list(answers), "seconds": seconds}
        return cast(types.Annotation, self.json("POST", self.at("desk/at/{}/", key), json=body, repeatable=True))


def _not_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- judges ----------------------------------------------------------------------------------------------------------
class JudgeMethods(ServerConnection):
    @operation("GET", "/projects/{project}/judges/")
    def judges(self) -> Iterator[types.DeclaredJudge]:
        """The project's judges, run here or imported."""
        return self.pages(self.at("judges/"))

    @operation("POST", "/projects/{project}/judges/")
    def declare_judge(
        self,
        name: str,
        *,
        provider: str,
        model: str,
        parameters: Mapping[str, Any] | None = None,
        variant: types.Variant | None = None,
        timeout: int | None = None,
        tries: int | None = None,
        concurrency: int | None = None,
    ) -> types.DeclaredJudge:
        """Declare a judge; the same configuration again is the judge there is.

        ``timeout`` (seconds for a reply), ``tries`` of a call and ``concurrency`` (calls in flight) change no verdict:
        given for a judge that there is, they are set anew.
        """
        body: dict[str, Any] = {"name": name, "provider": provider, "model": model}
        paced = {"timeout": timeout, "tries": tries, "concurrency": concurrency}
        body |= {name: number for name, number in paced.items() if number is not None}
        chosen = {"parameters": dict(parameters or {}), "variant": dict(variant or {})}
        return cast(types.DeclaredJudge, self.json("POST", self.at("judges/"), json=body | chosen, repeatable=True))

    @operation("GET", "/projects/{project}/judges/{judge}/")
    def judge(self, judge: int) -> types.DeclaredJudge:
        """One judge."""
        return cast(types.DeclaredJudge, self.json("GET", self.at("judges/{}/", judge)))

    @operation("GET", "/projects/{project}/judges/{judge}/preview/")
    def prompts(self, judge: int, *, item: int, rubric_version: int) -> list[types.Prompt]:
        """The exact messages this judge would send about one item."""
        params = {"item": item, "rubric_version": rubric_version}
        return cast(list[types.Prompt], self.json("GET", self.at("judges/{}/preview/", judge), params=params))

    # --- runs -------------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/runs/")
    def runs(
        self, *, judge: int | None = None, dataset: int | None = None, state: types.JudgeRunState | None = None
    ) -> Iterator[types.Run]:
        """The project's runs."""
        return self.pages(self.at("runs/"), judge=judge, dataset=dataset, state=state)

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
    ) -> types.RunDetail:
        """Start a run. ``budget`` is a cap in USD, written out: ``"2.50"``.

        Asking the judge ``again`` about items that it was asked about has to be meant. Called twice with one ``key``
        (one is made where none is given, for a request that has to be repeated), it starts one run.
        """
        body = _run(judge, dataset, rubric_version, repeats, budget)
        body |= {"again": again, "key": key or uuid4().hex}
        return cast(types.RunDetail, self.json("POST", self.at("runs/"), json=body, repeatable=True))

    @operation("POST", "/projects/{project}/runs/forecast/")
    def forecast_run(
        self, *, judge: int, dataset: int, rubric_version: int, repeats: int = 1, budget: str | None = None
    ) -> types.Forecast:
        """Calls, and roughly tokens and USD, of a run that is not started."""
        body = _run(judge, dataset, rubric_version, repeats, budget)
        return cast(types.Forecast, self.json("POST", self.at("runs/forecast/"), json=body, repeatable=True))

    @operation("GET", "/projects/{project}/runs/{run}/")
    def run(self, run: int) -> types.RunDetail:
        """One run and how far it is."""
        return cast(types.RunDetail, self.json("GET", self.at("runs/{}/", run)))

    def wait_for_run(self, run: int, *, timeout: float = 3600.0) -> types.RunDetail:
        """The run once nothing is left to ask; raises `TimedOut`, also for one that stands still meanwhile."""

        def finished() -> types.RunDetail | None:
            current_run = self.run(run)
            return current_run if current_run["progress"]["finished"] else None

        return cast(types.RunDetail, self.wait(finished, timeout=timeout, what=f"Run {run}"))

    @operation("POST", "/projects/{project}/runs/{run}/pause/")
    def pause_run(self, run: int) -> types.RunDetail:
        """Send nothing more; calls in flight come in."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/pause/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/resume/")
    def resume_run(self, run: int) -> types.RunDetail:
        """Go on with a paused run."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/resume/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/cancel/")
    def cancel_run(self, run: int) -> types.RunDetail:
        """End a run permanently; stored verdicts are kept."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/cancel/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/rerun-failed/")
    def rerun_failed(self, run: int) -> types.RunDetail:
        """Let the failed calls be asked again."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun-failed/", run)))

    @operation("PUT", "/projects/{project}/runs/{run}/budget/")
    def set_budget(self, run: int, budget: str | None) -> types.RunDetail:
        """Raise, lower or lift the cap in USD."""
        there = self.at("runs/{}/budget/", run)
        return cast(types.RunDetail, self.json("PUT", there, json={"budget": budget}))

    @operation("GET", "/projects/{project}/runs/{run}/calls/")
    def calls(
        self, run: int, *, state: types.CallState | None = None, language: str | None = None, item: str | None = None
    ) -> Iterator[types.Call]:
        """A run's calls."""
        return self.pages(self.at("runs/{}/calls/", run), state=state, language=language, item=item)

    @operation("GET", "/projects/{project}/runs/{run}/calls/{call}/")
    def call(self, run: int, call: int) -> types.CallDetail:
        """One call with every attempt at it, as it was sent and as it came back."""
        return cast(types.CallDetail, self.json("GET", self.at("runs/{}/calls/{}/", run, call)))

    @operation("GET", "/projects/{project}/verdicts/")
    def verdicts(
        self,
        *,
        run: int | None = None,
        judge: int | None = None,
        status: types.VerdictStatusEnum | None = None,
        criterion: str | None = None,
        language: str | None = None,
        item: str | None = None,
    ) -> Iterator[types.Verdict]:
        """Verdicts: scores, or the reasons there are none."""
        filters = {"run": run, "judge": judge, "status": status, "criterion": criterion}
        return self.pages(self.at("verdicts/"), language=language, item=item, **filters)


def _run(judge: int, dataset: int, rubric_version: int, repeats: int, budget: str | None) -> dict[str, Any]:
    about = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    return {**about, "repeats": repeats, "budget": budget}


# --- numbers ---------------------------------------------------------------------------------------------------------
class NumberMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/numbers/", blind="blind_only")
    def numbers(
        self, campaign: int, *, raters: Sequence[str] = (), blind_only: bool = False, reference: str = ""
    ) -> types.Numbers:
        """The newest figures, over the annotators of these pseudonyms or over all. Asking has stale ones computed.

        `blind_only` leaves out ratings by people who could see verdicts. `reference`: what judges are compared with
        (mode, mode_split, median, mean, minimum or each); by default the mode, on interval scales the mean.
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
        """The figures once they are those of everything rated so far; raises `TimedOut`."""

        def fresh() -> types.Snapshot | None:
            current_numbers = self.numbers(campaign, raters=raters, blind_only=blind_only, reference=reference)
            return None if current_numbers["stale"] else current_numbers["snapshot"]

        return cast(types.Snapshot, self.wait(fresh, timeout=timeout, what=f"The numbers of campaign {campaign}"))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/ratings.csv", blind="blind_only")
    def save_ratings_table(
        self, campaign: int, to: str | os.PathLike[str], *, raters: Sequence[str] = (), blind_only: bool = False
    ) -> Path:
        """Write the table that the figures are computed from, byte for byte, to a CSV file."""
        there = self.at("campaigns/{}/ratings.csv", campaign)
        return self.save(there, to, params=_chosen(raters, blind_only))

    @operation(
        "GET", "/projects/{project}/campaigns/{campaign}/items/", rater="raters", panel="panels", blind="blind_only"
    )
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
        q: str | None = None,
        sort: str | None = None,
        reference: str | None = None,
    ) -> Iterator[types.ListedItem]:
        """Items with their scores on one criterion, those that disagree most first.

        ``sort`` is disagreement, judge_error, id or n; ``reference`` is mode, median or mean.
        """
        wanted = {"criterion": criterion, "language": language, "generator": generator, "judge": judge, "q": q}
        wanted |= {f"attribute.{key}": value for key, value in (attributes or {}).items()}
        people = {"rater": tuple(raters), "panel": tuple(panels), "blind": "only" if blind_only else None}
        return self.pages(self.at("campaigns/{}/items/", campaign), **wanted, **people, sort=sort, reference=reference)

    @operation(
        "GET", "/projects/{project}/campaigns/{campaign}/items/{item}/",
        language="", generator="", q="", sort="", judge="", rater="raters", panel="panels", blind="blind_only",
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
        wanted = {"criterion": criterion, "rater": tuple(raters), "panel": tuple(panels), "reference": reference}
        there = self.at("campaigns/{}/items/{}/", campaign, item)
        wanted["blind"] = "only" if blind_only else None
        return cast(types.ItemDetail, self.json("GET", there, params=wanted))


def _chosen(raters: Sequence[str], blind_only: bool) -> dict[str, object]:
    return {"raters": tuple(raters), **({"blind": "only"} if blind_only else {})}


# --- webhooks and share links ----------------------------------------------------------------------------------------
class NoticeMethods(ServerConnection):
    @operation("GET", "/projects/{project}/jobs/")
    def jobs(self) -> Iterator[types.Job]:
        """What waits and runs in the project, and what failed or was cancelled in the last seven days."""
        return self.pages(self.at("jobs/"))

    @operation("POST", "/projects/{project}/jobs/{job}/cancel/")
    def cancel_job(self, job: int) -> types.Job:
        """Stop a job for good: one's own, or as a lead any of the project. What it has done so far is deleted."""
        return cast(types.Job, self.json("POST", self.at("jobs/{}/cancel/", job)))

    @operation("GET", "/projects/{project}/webhooks/")
    def webhooks(self) -> Iterator[types.Webhook]:
        """The project's webhooks."""
        return self.pages(self.at("webhooks/"))

    @operation("POST", "/projects/{project}/webhooks/")
    def add_webhook(self, address: str, events: Sequence[types.EventsEnum]) -> types.Secret:
        """Have an address told of events. The answer alone holds the secret that signatures are made with."""
        body = {"address": address, "events": list(events)}
        return cast(types.Secret, self.json("POST", self.at("webhooks/"), json=body))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/")
    def webhook(self, webhook: int) -> types.Webhook:
        """One webhook."""
        return cast(types.Webhook, self.json("GET", self.at("webhooks/{}/", webhook)))

    @operation("PATCH", "/projects/{project}/webhooks/{webhook}/")
    def change_webhook(
        self, webhook: int, *, events: Sequence[types.EventsEnum] | None = None, on: bool | None = None
    ) -> types.Webhook:
        """Choose other events, turn it off or on again."""
        body: dict[str, Any] = {} if events is None else {"events": list(events)}
        body |= {} if on is None else {"on": on}
        return cast(types.Webhook, self.json("PATCH", self.at("webhooks/{}/", webhook), json=body))

    @operation("DELETE", "/projects/{project}/webhooks/{webhook}/")
    def remove_webhook(self, webhook: int) -> None:
        """Forget it, and what was sent to it."""
        self.send("DELETE", self.at("webhooks/{}/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/secret/")
    def renew_secret(self, webhook: int) -> types.Secret:
        """Another secret; the one before signs nothing more."""
        return cast(types.Secret, self.json("POST", self.at("webhooks/{}/secret/", webhook)))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/test/")
    def test_webhook(self, webhook: int) -> types.Delivery:
        """Send a test; the deliveries show its result."""
        return cast(types.Delivery, self.json("POST", self.at("webhooks/{}/test/", webhook)))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/deliveries/")
    def deliveries(self, webhook: int) -> Iterator[types.Delivery]:
        """What was sent in the last thirty days, and what is to be."""
        return self.pages(self.at("webhooks/{}/deliveries/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/again/")
    def send_again(self, webhook: int, delivery: int) -> types.Delivery:
        """Have one sent once more, under the id it has."""
        there = self.at("webhooks/{}/deliveries/{}/again/", webhook, delivery)
        return cast(types.Delivery, self.json("POST", there))

    # --- share links ------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/shares/")
    def shares(self) -> Iterator[types.Share]:
        """The links that work."""
        return self.pages(self.at("shares/"))

    @operation("POST", "/projects/{project}/shares/")
    def share(self, campaign: int, label: str, *, days: int | None = None) -> types.ShareAddress:
        """Make a link to one campaign's numbers. The answer alone holds its address."""
        body = {"campaign": campaign, "label": label, "days": days}
        return cast(types.ShareAddress, self.json("POST", self.at("shares/"), json=body))

    @operation("DELETE", "/projects/{project}/shares/{link}/")
    def revoke_share(self, link: int) -> None:
        """Revoke a link: it stops working immediately."""
        self.send("DELETE", self.at("shares/{}/", link))
