"""Methods for the objects of a project: members, datasets, rubrics, campaigns, panels, judges, runs.

Also webhooks and share links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


# --- projects --------------------------------------------------------------------------------------------------------
class ProjectMethods(ServerConnection):
    @operation("GET", "/me/")
    def me(self) -> types.Me:
        """The owner of the token, and their role in every project."""
        return cast(types.Me, self.json("GET", "/me/"))

    @operation("GET", "/projects/")
    def projects(self) -> Iterator[types.Project]:
        """The projects of the token's owner."""
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
        """The members of the project; for its leads."""
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
        """The items in order, texts unchanged; ``q`` is a text that they contain."""
        filters = {"language": language, "generator": generator, "scenario": scenario, "q": q}
        return self.pages(self.at("datasets/{}/items/", dataset), **filters)

    @operation("GET", "/projects/{project}/rubrics/")
    def rubrics(self) -> Iterator[types.Rubric]:
        """The rubrics by key."""
        return self.pages(self.at("rubrics/"))

    @operation("POST", "/projects/{project}/rubrics/", body="document")
    def draft_rubric(self, document: Mapping[str, Any]) -> types.RubricDocument:
        """Create a draft version of the rubric with the document's key; if its newest version is equal, return that
        one."""
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
        """Publish a draft. A published version can't be changed."""
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
        """Open a campaign for a dataset and a published rubric version (their ``id``)."""
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
        """The progress of every duty and of every annotator in it, by pseudonym."""
        there = self.at("campaigns/{}/progress/", campaign)
        return cast(list[types.DutyProgress], self.json("GET", there))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/dataset/")
    def extend_campaign(self, campaign: int, dataset: int) -> types.Campaign:
        """Continue with a later version of the dataset. All ratings are kept."""
        there = self.at("campaigns/{}/dataset/", campaign)
        return cast(types.Campaign, self.json("POST", there, json={"dataset": dataset}))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/hand-out/")
    def hand_out(self, campaign: int) -> types.HandedOut:
        """Assign the items that a later version of the dataset added."""
        return cast(types.HandedOut, self.json("POST", self.at("campaigns/{}/hand-out/", campaign)))

    # --- selections -------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/campaigns/{campaign}/selections/")
    def selections(self, campaign: int) -> Iterator[types.Selection]:
        """The selections of a campaign's items."""
        return self.pages(self.at("campaigns/{}/selections/", campaign))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/selections/")
    def select_items(
        self, campaign: int, name: str, rule: Mapping[str, Any], *, seed: int | None = None
    ) -> types.SelectionDetail:
        """Draw a selection, such as ``{"kind": "draw", "n": 20, "by": ["language", "generator"]}``."""
        there, body = self.at("campaigns/{}/selections/", campaign), {"name": name, "rule": dict(rule), "seed": seed}
        return cast(types.SelectionDetail, self.json("POST", there, json=_not_none(body)))

    @operation("GET", "/projects/{project}/selections/{selection}/")
    def selection(self, selection: int) -> types.SelectionDetail:
        """One selection with its strata."""
        return cast(types.SelectionDetail, self.json("GET", self.at("selections/{}/", selection)))

    @operation("DELETE", "/projects/{project}/selections/{selection}/")
    def remove_selection(self, selection: int) -> None:
        """Remove a selection that no run and no duty uses."""
        self.send("DELETE", self.at("selections/{}/", selection))

    @operation("GET", "/projects/{project}/selections/{selection}/items/")
    def selected_items(self, selection: int) -> Iterator[types.SelectedItem]:
        """The items of a selection, each with its probability and stratum."""
        return self.pages(self.at("selections/{}/items/", selection))

    # --- panels and duties ------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/panels/")
    def panels(self) -> Iterator[types.Panel]:
        """The project's panels."""
        return self.pages(self.at("panels/"))

    @operation("POST", "/projects/{project}/panels/")
    def make_panel(self, name: str, *, language: str = "") -> types.Panel:
        """Create a panel, usually of native speakers of one language."""
        body = {"name": name, "language": language}
        return cast(types.Panel, self.json("POST", self.at("panels/"), json=body))

    @operation("GET", "/projects/{project}/panels/{panel}/seats/")
    def seats(self, panel: int) -> Iterator[types.Seat]:
        """The annotators of a panel, by pseudonym."""
        return self.pages(self.at("panels/{}/seats/", panel))

    @operation("POST", "/projects/{project}/panels/{panel}/seats/")
    def seat(self, panel: int, user: int) -> types.Seat:
        """Add a member to a panel, by user id; for leads."""
        return cast(types.Seat, self.json("POST", self.at("panels/{}/seats/", panel), json={"user": user}))

    @operation("DELETE", "/projects/{project}/panels/{panel}/seats/{seat}/")
    def unseat(self, panel: int, seat: int) -> None:
        """Remove an annotator from a panel; their ratings are kept. For leads."""
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
        selection: int | None = None,
    ) -> types.Duty:
        """Create a duty for a panel: ``overlap`` annotators per item, on some or all criteria, and on all items or
        those of a ``selection``."""
        fields = {
            "panel": panel,
            "overlap": overlap,
            "name": name,
            "seed": seed,
            "keep_names": keep_names,
            "again": again,
            "selection": selection,
        }
        lists = {"criteria": criteria and list(criteria), "languages": languages and list(languages)}
        there = self.at("campaigns/{}/duties/", campaign)
        return cast(types.Duty, self.json("POST", there, json=_not_none(fields | lists)))

    # --- the desk ---------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/desk/")
    def desk(self) -> list[types.DeskDuty]:
        """The duties of the token's owner."""
        return cast(list[types.DeskDuty], self.json("GET", self.at("desk/")))

    @operation("POST", "/projects/{project}/desk/{duty}/take/")
    def take(self, duty: int) -> types.Assignment | None:
        """The item that the owner has leased, else the next free item; None if no item is left."""
        return cast("types.Assignment | None", self.json("POST", self.at("desk/{}/take/", duty), repeatable=True))

    @operation("POST", "/projects/{project}/desk/at/{key}/")
    def submit(self, key: str, answers: Sequence[types.Answer], *, seconds: float = 0.0) -> types.Annotation:
        """Submit an item. The same key again returns the stored annotation."""
        body = {"answers": list(answers), "seconds": seconds}
        return cast(types.Annotation, self.json("POST", self.at("desk/at/{}/", key), json=body, repeatable=True))


def _not_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- providers, for the operator of the instance ----------------------------------------------------------------------
class ProviderMethods(ServerConnection):
    @operation("GET", "/providers/")
    def providers(self) -> list[types.ListedProvider]:
        """The names and models of the providers of the server; for leads and researchers."""
        return cast(list[types.ListedProvider], self.json("GET", "/providers/"))

    @operation("POST", "/providers/")
    def add_provider(self, name: str, *, base_url: str, **settings: Any) -> types.Provider:
        """Declare an endpoint. ``key_variable`` among the ``settings`` names the environment variable with its key."""
        body = {"name": name, "base_url": base_url, **settings}
        return cast(types.Provider, self.json("POST", "/providers/", json=body))

    @operation("GET", "/providers/{provider}/")
    def provider(self, provider: str) -> types.Provider:
        """One provider with its address, prices and limits."""
        return cast(types.Provider, self.json("GET", f"/providers/{quote(provider, safe='')}/"))

    @operation("PATCH", "/providers/{provider}/")
    def change_provider(self, provider: str, **settings: Any) -> types.Provider:
        """Change settings of a provider. Runs that were started before keep their prices."""
        return cast(types.Provider, self.json("PATCH", f"/providers/{quote(provider, safe='')}/", json=settings))

    @operation("DELETE", "/providers/{provider}/")
    def remove_provider(self, provider: str) -> None:
        """Remove a provider that no run asks now."""
        self.send("DELETE", f"/providers/{quote(provider, safe='')}/")

    @operation("POST", "/providers/{provider}/tests/")
    def test_provider(self, provider: str, *, model: str = "") -> types.ProviderTest:
        """Let a worker make one call; ``provider_tests`` has the result."""
        address = f"/providers/{quote(provider, safe='')}/tests/"
        return cast(types.ProviderTest, self.json("POST", address, json={"model": model}))

    @operation("GET", "/providers/{provider}/tests/")
    def provider_tests(self, provider: str) -> list[types.ProviderTest]:
        """The newest tests of a provider, at most five."""
        return cast(list[types.ProviderTest], self.json("GET", f"/providers/{quote(provider, safe='')}/tests/"))


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
        """Declare a judge; the same configuration again returns the existing judge.

        ``timeout`` (seconds for a reply), ``tries`` (of a call) and ``concurrency`` (calls in flight) change no
        verdict: for an existing judge they replace the old values.
        """
        body: dict[str, Any] = {"name": name, "provider": provider, "model": model}
        paced = {"timeout": timeout, "tries": tries, "concurrency": concurrency}
        body |= {name: number for name, number in paced.items() if number is not None}
        chosen = {"parameters": dict(parameters or {}), "variant": dict(variant or {})}
        return cast(types.DeclaredJudge, self.json("POST", self.at("judges/"), json=body | chosen, repeatable=True))

    @operation("GET", "/projects/{project}/judges/studies/")
    def judge_studies(self) -> list[types.Preset]:
        """The ready configurations of the five studies."""
        return cast(list[types.Preset], self.json("GET", self.at("judges/studies/")))

    @operation("POST", "/projects/{project}/judges/studies/")
    def declare_as_study(self, study: str, *, provider: str, model: str, name: str | None = None) -> types.StudyJudge:
        """Declare a judge as a study had it, such as ``"s3"``; its rubric is published in the project."""
        body = _not_none({"study": study, "provider": provider, "model": model, "name": name})
        return cast(types.StudyJudge, self.json("POST", self.at("judges/studies/"), json=body, repeatable=True))

    @operation("GET", "/projects/{project}/judges/{judge}/")
    def judge(self, judge: int) -> types.DeclaredJudge:
        """One judge."""
        return cast(types.DeclaredJudge, self.json("GET", self.at("judges/{}/", judge)))

    @operation("GET", "/projects/{project}/judges/{judge}/preview/")
    def prompts(self, judge: int, *, item: int, rubric_version: int) -> list[types.Prompt]:
        """The exact messages that this judge would send for one item."""
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
        selection: int | None = None,
        by_batch: bool = False,
    ) -> types.RunDetail:
        """Start a run, over all items or those of a ``selection``. ``budget`` is a cap in USD, as text: ``"2.50"``.

        Replies of earlier runs of the judge are used; ``again`` asks and pays again. The same ``key`` twice starts only
        one run; without a key the method creates one, so that its own retries are safe. ``by_batch`` asks by the
        provider's batch API: replies within a day, at the price of batches.
        """
        body = _run(judge, dataset, rubric_version, repeats, budget, selection) | {"by_batch": by_batch}
        body |= {"again": again, "key": key or uuid4().hex}
        return cast(types.RunDetail, self.json("POST", self.at("runs/"), json=body, repeatable=True))

    @operation("POST", "/projects/{project}/runs/forecast/")
    def forecast_run(
        self,
        *,
        judge: int,
        dataset: int,
        rubric_version: int,
        repeats: int = 1,
        budget: str | None = None,
        selection: int | None = None,
        by_batch: bool = False,
    ) -> types.Forecast:
        """The number of calls, and estimates of tokens and USD, of a run that is not started."""
        body = _run(judge, dataset, rubric_version, repeats, budget, selection) | {"by_batch": by_batch}
        return cast(types.Forecast, self.json("POST", self.at("runs/forecast/"), json=body, repeatable=True))

    @operation("GET", "/projects/{project}/runs/{run}/")
    def run(self, run: int) -> types.RunDetail:
        """One run with its progress."""
        return cast(types.RunDetail, self.json("GET", self.at("runs/{}/", run)))

    def wait_for_run(self, run: int, *, timeout: float = 3600.0) -> types.RunDetail:
        """Wait until a run has no open calls. Raises `TimedOut`, also if the run is paused."""

        def finished() -> types.RunDetail | None:
            current_run = self.run(run)
            return current_run if current_run["progress"]["finished"] else None

        return cast(types.RunDetail, self.wait(finished, timeout=timeout, what=f"Run {run}"))

    @operation("POST", "/projects/{project}/runs/{run}/pause/")
    def pause_run(self, run: int) -> types.RunDetail:
        """Send no more calls; replies to calls in flight are still stored."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/pause/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/resume/")
    def resume_run(self, run: int) -> types.RunDetail:
        """Resume a paused run."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/resume/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/cancel/")
    def cancel_run(self, run: int) -> types.RunDetail:
        """End a run permanently; stored verdicts are kept."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/cancel/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/rerun/")
    def rerun(self, run: int, *, statuses: Sequence[str] = ("failed",)) -> types.RunDetail:
        """Repeat the calls that failed, or whose verdicts have one of these ``statuses``; every new request is paid.

        Statuses: failed, unparsed, out_of_range, refused, truncated, error. Scores that were read stay.
        """
        body = {"statuses": [*statuses]}
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun/", run), json=body))

    @operation("POST", "/projects/{project}/runs/{run}/rerun-failed/")
    def rerun_failed(self, run: int) -> types.RunDetail:
        """Send the failed calls again."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun-failed/", run)))

    @operation("PUT", "/projects/{project}/runs/{run}/budget/")
    def set_budget(self, run: int, budget: str | None) -> types.RunDetail:
        """Raise, lower or lift the cap in USD."""
        there = self.at("runs/{}/budget/", run)
        return cast(types.RunDetail, self.json("PUT", there, json={"budget": budget}))

    # --- designs ----------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/designs/")
    def designs(self) -> Iterator[types.Design]:
        """The project's designs, newest first."""
        return self.pages(self.at("designs/"))

    @operation("POST", "/projects/{project}/designs/")
    def make_design(
        self,
        name: str,
        *,
        judges: Sequence[int],
        dataset: int,
        rubric_version: int,
        selection: int | None = None,
        factors: Mapping[str, Sequence[Any]] | None = None,
        repeats: int = 1,
        budget: str | None = None,
        jury: str = "",
    ) -> types.DesignDetail:
        """Make a design of these judges at every combination of levels; nothing is sent.

        ``factors``: ``{"anchor_detail": ["name", "reasons"], "temperature": [0, 0.7]}``. ``budget`` caps all runs.
        """
        body: dict[str, Any] = {"name": name, "judges": [*judges], "jury": jury, "budget": budget, "repeats": repeats}
        body |= {"factors": {factor: [*levels] for factor, levels in (factors or {}).items()}}
        body |= {"dataset": dataset, "rubric_version": rubric_version, "selection": selection}
        return cast(types.DesignDetail, self.json("POST", self.at("designs/"), json=body))

    @operation("GET", "/projects/{project}/designs/{design}/")
    def design(self, design: int) -> types.DesignDetail:
        """One design with its progress and a row for each cell."""
        return cast(types.DesignDetail, self.json("GET", self.at("designs/{}/", design)))

    @operation("GET", "/projects/{project}/designs/{design}/forecast/")
    def forecast_design(self, design: int) -> types.DesignForecast:
        """Calls, tokens and USD of all runs; with an interval once a pilot has replies."""
        return cast(types.DesignForecast, self.json("GET", self.at("designs/{}/forecast/", design)))

    @operation("POST", "/projects/{project}/designs/{design}/pilot/")
    def start_pilot(self, design: int) -> types.DesignDetail:
        """Ask twenty calls beforehand; the design's runs use their replies."""
        return cast(types.DesignDetail, self.json("POST", self.at("designs/{}/pilot/", design)))

    @operation("POST", "/projects/{project}/designs/{design}/start/")
    def start_design(self, design: int) -> types.DesignDetail:
        """Start a run for every cell. Started again, it is the same runs."""
        return cast(types.DesignDetail, self.json("POST", self.at("designs/{}/start/", design), repeatable=True))

    def wait_for_design(self, design: int, *, timeout: float = 3600.0) -> types.DesignDetail:
        """Wait until a design has no open calls. Raises `TimedOut`, also if it is paused."""

        def finished() -> types.DesignDetail | None:
            current_design = self.design(design)
            return current_design if current_design["phase"] in ("planned", "finished") else None

        return cast(types.DesignDetail, self.wait(finished, timeout=timeout, what=f"Design {design}"))

    @operation("POST", "/projects/{project}/designs/{design}/pause/")
    def pause_design(self, design: int) -> types.DesignDetail:
        """Send nothing more; calls in flight come in."""
        return cast(types.DesignDetail, self.json("POST", self.at("designs/{}/pause/", design)))

    @operation("POST", "/projects/{project}/designs/{design}/resume/")
    def resume_design(self, design: int) -> types.DesignDetail:
        """Go on with the paused runs."""
        return cast(types.DesignDetail, self.json("POST", self.at("designs/{}/resume/", design)))

    @operation("POST", "/projects/{project}/designs/{design}/cancel/")
    def cancel_design(self, design: int) -> types.DesignDetail:
        """End the runs permanently; stored verdicts are kept."""
        return cast(types.DesignDetail, self.json("POST", self.at("designs/{}/cancel/", design)))

    @operation("PUT", "/projects/{project}/designs/{design}/budget/")
    def set_design_budget(self, design: int, budget: str | None) -> types.DesignDetail:
        """Raise, lower or lift the cap over all runs; runs that paused for money have to be resumed besides."""
        there = self.at("designs/{}/budget/", design)
        return cast(types.DesignDetail, self.json("PUT", there, json={"budget": budget}, repeatable=True))

    @operation("GET", "/projects/{project}/runs/{run}/calls/")
    def calls(
        self, run: int, *, state: types.CallState | None = None, language: str | None = None, item: str | None = None
    ) -> Iterator[types.Call]:
        """A run's calls."""
        return self.pages(self.at("runs/{}/calls/", run), state=state, language=language, item=item)

    @operation("GET", "/projects/{project}/runs/{run}/calls/{call}/")
    def call(self, run: int, call: int) -> types.CallDetail:
        """One call with all its attempts: the messages sent and the replies received."""
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
        """Verdicts: scores, or the reason why there is none."""
        filters = {"run": run, "judge": judge, "status": status, "criterion": criterion}
        return self.pages(self.at("verdicts/"), language=language, item=item, **filters)


def _run(
    judge: int, dataset: int, rubric_version: int, repeats: int, budget: str | None, selection: int | None
) -> dict[str, Any]:
    about = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version, "selection": selection}
    return {**about, "repeats": repeats, "budget": budget}


# --- webhooks and share links ----------------------------------------------------------------------------------------
class NoticeMethods(ServerConnection):
    @operation("GET", "/projects/{project}/jobs/")
    def jobs(self) -> Iterator[types.Job]:
        """The waiting and running jobs of the project, and those that failed or were cancelled in the last seven
        days."""
        return self.pages(self.at("jobs/"))

    @operation("POST", "/projects/{project}/jobs/{job}/cancel/")
    def cancel_job(self, job: int) -> types.Job:
        """Cancel a job: one's own, or as a lead any of the project. What it has stored so far is deleted."""
        return cast(types.Job, self.json("POST", self.at("jobs/{}/cancel/", job)))

    @operation("GET", "/projects/{project}/webhooks/")
    def webhooks(self) -> Iterator[types.Webhook]:
        """The project's webhooks."""
        return self.pages(self.at("webhooks/"))

    @operation("POST", "/projects/{project}/webhooks/")
    def add_webhook(self, address: str, events: Sequence[types.EventsEnum]) -> types.Secret:
        """Send events to an address. Only this response contains the secret for checking signatures."""
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
        """Change the events of a webhook, or turn it off or on."""
        body: dict[str, Any] = {} if events is None else {"events": list(events)}
        body |= {} if on is None else {"on": on}
        return cast(types.Webhook, self.json("PATCH", self.at("webhooks/{}/", webhook), json=body))

    @operation("DELETE", "/projects/{project}/webhooks/{webhook}/")
    def remove_webhook(self, webhook: int) -> None:
        """Delete a webhook and its deliveries."""
        self.send("DELETE", self.at("webhooks/{}/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/secret/")
    def renew_secret(self, webhook: int) -> types.Secret:
        """Replace the secret; the old one is no longer used."""
        return cast(types.Secret, self.json("POST", self.at("webhooks/{}/secret/", webhook)))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/test/")
    def test_webhook(self, webhook: int) -> types.Delivery:
        """Send a test; the deliveries show its result."""
        return cast(types.Delivery, self.json("POST", self.at("webhooks/{}/test/", webhook)))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/deliveries/")
    def deliveries(self, webhook: int) -> Iterator[types.Delivery]:
        """The deliveries of the last thirty days, sent and waiting."""
        return self.pages(self.at("webhooks/{}/deliveries/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/again/")
    def send_again(self, webhook: int, delivery: int) -> types.Delivery:
        """Send a delivery again, with the same id."""
        there = self.at("webhooks/{}/deliveries/{}/again/", webhook, delivery)
        return cast(types.Delivery, self.json("POST", there))

    # --- share links ------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/shares/")
    def shares(self) -> Iterator[types.Share]:
        """The valid share links."""
        return self.pages(self.at("shares/"))

    @operation("POST", "/projects/{project}/shares/")
    def share(
        self, campaign: int, label: str, *, days: int | None = None, shows_generators: bool = False
    ) -> types.ShareAddress:
        """Create a link to one campaign's numbers, without how items were made unless it ``shows_generators``.

        Only this response contains its address.
        """
        body = {"campaign": campaign, "label": label, "days": days, "shows_generators": shows_generators}
        return cast(types.ShareAddress, self.json("POST", self.at("shares/"), json=body))

    @operation("DELETE", "/projects/{project}/shares/{link}/")
    def revoke_share(self, link: int) -> None:
        """Revoke a link: it stops working immediately."""
        self.send("DELETE", self.at("shares/{}/", link))
