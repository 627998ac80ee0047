"""The plain methods of the client, written by `manage.py client_types` from the API's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import quote

from panelbench_client import types
from panelbench_client.connection import ServerConnection, given, operation


class PlainMethods(ServerConnection):
    @operation("GET", "/me/")
    def me(self) -> types.Me:
        """The owner of the token, and their role in every project."""
        return cast(types.Me, self.json("GET", "/me/"))

    @operation("GET", "/projects/")
    def projects(self) -> Iterator[types.Project]:
        """The projects of the token's owner."""
        return self.pages("/projects/")

    @operation("POST", "/projects/")
    def found_project(self, name: str, slug: str, *, description: str | None = None) -> types.Project:
        """Create a project and become its lead; ``slug`` is part of its address."""
        sent: dict[str, Any] = {"name": name, "slug": slug}
        sent |= given(description=description)
        return cast(types.Project, self.json("POST", "/projects/", json=sent))

    @operation("GET", "/projects/{project}/")
    def describe(self) -> types.Project:
        """This client's project."""
        return cast(types.Project, self.json("GET", self.at("")))

    @operation("DELETE", "/projects/{project}/")
    def delete_project(self, *, name: str | None = None) -> types.ProjectDeletion:
        """Delete this client's project; ``name`` is its name, to confirm. For 30 days ``restore_project`` undoes it."""
        asked = given(name=name)
        return cast(types.ProjectDeletion, self.json("DELETE", self.at(""), params=asked))

    @operation("POST", "/projects/{project}/restore/")
    def restore_project(self) -> types.Project:
        """Restore this client's deleted project; for those who led it."""
        return cast(types.Project, self.json("POST", self.at("restore/")))

    @operation("GET", "/projects/{project}/members/")
    def members(self) -> Iterator[types.Membership]:
        """The members of the project; for its leads."""
        return self.pages(self.at("members/"))

    @operation("GET", "/projects/{project}/invitations/")
    def invitations(self) -> list[types.OpenInvitation]:
        """The open invitations; for leads."""
        return cast(list[types.OpenInvitation], self.json("GET", self.at("invitations/")))

    @operation("POST", "/projects/{project}/invitations/")
    def invite(
        self,
        people: Sequence[types.InvitedPerson],
        *,
        role: types.RoleEnum | None = None,
        panels: Sequence[int] | None = None,
        languages: Sequence[str] | None = None,
        days: int | None = None,
        send: bool | None = None,
    ) -> types.InvitedPeople:
        """Invite many people at once: ``people`` are ``{"email": ..., "panels": [...], "languages": [...]}``. The links
        are answered once; members and duplicates are named and not invited."""
        sent: dict[str, Any] = {"people": people}
        sent |= given(role=role, panels=panels, languages=languages, days=days, send=send)
        return cast(types.InvitedPeople, self.json("POST", self.at("invitations/"), json=sent))

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
        generator: str | None = None,
        language: str | None = None,
        q: str | None = None,
        scenario: str | None = None,
    ) -> Iterator[types.DatasetItem]:
        """The items in order, texts unchanged; ``q`` is a text that they contain."""
        return self.pages(
            self.at("datasets/{}/items/", dataset),
            generator=generator,
            language=language,
            q=q,
            scenario=scenario,
        )

    @operation("GET", "/projects/{project}/datasets/{dataset}/checkup/")
    def dataset_checkup(self, dataset: int) -> types.DatasetCheckup:
        """What the newest check-up of a dataset found, by check, with the items; `checked_at` is None without one."""
        return cast(types.DatasetCheckup, self.json("GET", self.at("datasets/{}/checkup/", dataset)))

    @operation("POST", "/projects/{project}/datasets/{dataset}/checkup/")
    def check_dataset(self, dataset: int) -> types.DatasetCheckup:
        """Let a worker check a dataset; look at `is_under_way` of `dataset_checkup`."""
        return cast(types.DatasetCheckup, self.json("POST", self.at("datasets/{}/checkup/", dataset)))

    @operation("POST", "/projects/{project}/datasets/{dataset}/checkup/leave-out/")
    def leave_out(
        self,
        dataset: int,
        checks: Sequence[str],
        *,
        name: str | None = None,
        families: bool | None = None,
    ) -> types.DerivedDataset:
        """Make a dataset without the items in which these checks found something; ``families``: without the other items
        of their scenarios, too. Nothing of this dataset changes."""
        sent: dict[str, Any] = {"checks": checks}
        sent |= given(name=name, families=families)
        address = self.at("datasets/{}/checkup/leave-out/", dataset)
        return cast(types.DerivedDataset, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/rubrics/")
    def rubrics(self) -> Iterator[types.Rubric]:
        """The rubrics by key."""
        return self.pages(self.at("rubrics/"))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/")
    def rubric_versions(self, rubric: str) -> Iterator[types.RubricVersion]:
        """The versions of one rubric."""
        return self.pages(self.at("rubrics/{}/versions/", rubric))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/{number}/")
    def rubric_version(self, rubric: str, number: int) -> types.RubricDocument:
        """One version with its document."""
        return cast(types.RubricDocument, self.json("GET", self.at("rubrics/{}/versions/{}/", rubric, number)))

    @operation("POST", "/projects/{project}/rubrics/{rubric}/versions/{number}/publish/")
    def publish_rubric(self, rubric: str, number: int) -> types.RubricDocument:
        """Publish a draft. A published version can't be changed."""
        return cast(types.RubricDocument, self.json("POST", self.at("rubrics/{}/versions/{}/publish/", rubric, number)))

    @operation("GET", "/projects/{project}/campaigns/")
    def campaigns(self) -> Iterator[types.Campaign]:
        """The project's campaigns."""
        return self.pages(self.at("campaigns/"))

    @operation("POST", "/projects/{project}/campaigns/")
    def open_campaign(self, name: str, dataset: int, rubric_version: int) -> types.Campaign:
        """Open a campaign for a dataset and a published rubric version (their ``id``)."""
        sent: dict[str, Any] = {"name": name, "dataset": dataset, "rubric_version": rubric_version}
        return cast(types.Campaign, self.json("POST", self.at("campaigns/"), json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/")
    def campaign(self, campaign: int) -> types.Campaign:
        """One campaign."""
        return cast(types.Campaign, self.json("GET", self.at("campaigns/{}/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/state/")
    def move_campaign(self, campaign: int, state: types.CampaignState) -> types.Campaign:
        """Pause a campaign, open it again, or close it permanently."""
        sent: dict[str, Any] = {"state": state}
        return cast(types.Campaign, self.json("POST", self.at("campaigns/{}/state/", campaign), json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/progress/")
    def progress(self, campaign: int) -> list[types.DutyProgress]:
        """The progress of every duty and of every annotator in it, by pseudonym."""
        return cast(list[types.DutyProgress], self.json("GET", self.at("campaigns/{}/progress/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/dataset/")
    def extend_campaign(self, campaign: int, dataset: int) -> types.Campaign:
        """Continue with a later version of the dataset. All ratings are kept."""
        sent: dict[str, Any] = {"dataset": dataset}
        return cast(types.Campaign, self.json("POST", self.at("campaigns/{}/dataset/", campaign), json=sent))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/hand-out/")
    def hand_out(self, campaign: int) -> types.HandedOut:
        """Assign the items that a later version of the dataset added."""
        return cast(types.HandedOut, self.json("POST", self.at("campaigns/{}/hand-out/", campaign)))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/selections/")
    def selections(self, campaign: int) -> Iterator[types.Selection]:
        """The selections of a campaign's items."""
        return self.pages(self.at("campaigns/{}/selections/", campaign))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/selections/")
    def select_items(self, campaign: int, name: str, rule: types.Json, *, seed: int | None = None) -> types.Selection:
        """Draw a selection, such as ``{"kind": "draw", "n": 20, "by": ["language", "generator"]}``."""
        sent: dict[str, Any] = {"name": name, "rule": rule}
        sent |= given(seed=seed)
        return cast(types.Selection, self.json("POST", self.at("campaigns/{}/selections/", campaign), json=sent))

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

    @operation("GET", "/projects/{project}/panels/")
    def panels(self) -> Iterator[types.Panel]:
        """The project's panels."""
        return self.pages(self.at("panels/"))

    @operation("POST", "/projects/{project}/panels/")
    def make_panel(self, name: str, *, language: str | None = None) -> types.Panel:
        """Create a panel, usually of native speakers of one language."""
        sent: dict[str, Any] = {"name": name}
        sent |= given(language=language)
        return cast(types.Panel, self.json("POST", self.at("panels/"), json=sent))

    @operation("GET", "/projects/{project}/panels/{panel}/seats/")
    def seats(self, panel: int) -> Iterator[types.Seat]:
        """The annotators of a panel, by pseudonym."""
        return self.pages(self.at("panels/{}/seats/", panel))

    @operation("POST", "/projects/{project}/panels/{panel}/seats/")
    def seat(self, panel: int, user: int) -> types.Seat:
        """Add a member to a panel, by user id; for leads."""
        sent: dict[str, Any] = {"user": user}
        return cast(types.Seat, self.json("POST", self.at("panels/{}/seats/", panel), json=sent))

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
        panel: int,
        overlap: int,
        *,
        name: str | None = None,
        criteria: Sequence[str] | None = None,
        languages: Sequence[str] | None = None,
        seed: int | None = None,
        keep_names: bool | None = None,
        selection: int | None = None,
        again: bool | None = None,
    ) -> types.Duty:
        """Create a duty for a panel: ``overlap`` annotators per item, on some or all criteria, and on all items or
        those of a ``selection``."""
        sent: dict[str, Any] = {"panel": panel, "overlap": overlap}
        sent |= given(
            name=name,
            criteria=criteria,
            languages=languages,
            seed=seed,
            keep_names=keep_names,
            selection=selection,
            again=again,
        )
        return cast(types.Duty, self.json("POST", self.at("campaigns/{}/duties/", campaign), json=sent))

    @operation("GET", "/projects/{project}/desk/")
    def desk(self) -> list[types.DeskDuty]:
        """The duties of the token's owner."""
        return cast(list[types.DeskDuty], self.json("GET", self.at("desk/")))

    @operation("POST", "/projects/{project}/desk/{duty}/take/")
    def take(self, duty: int) -> types.Assignment | None:
        """The item that the owner has leased, else the next free item; None if no item is left."""
        return cast(types.Assignment | None, self.json("POST", self.at("desk/{}/take/", duty), repeatable=True))

    @operation("POST", "/projects/{project}/desk/at/{key}/")
    def submit(
        self,
        key: str,
        answers: Sequence[types.Answer],
        *,
        seconds: float | None = None,
        certainty: int | None = None,
    ) -> types.Annotation:
        """Submit an item. The same key again returns the stored annotation."""
        sent: dict[str, Any] = {"answers": answers}
        sent |= given(seconds=seconds, certainty=certainty)
        return cast(types.Annotation, self.json("POST", self.at("desk/at/{}/", key), json=sent, repeatable=True))

    @operation("GET", "/providers/")
    def providers(self) -> list[types.ListedProvider]:
        """The names and models of the providers of the server; for leads and researchers."""
        return cast(list[types.ListedProvider], self.json("GET", "/providers/"))

    @operation("POST", "/providers/")
    def add_provider(
        self,
        name: str,
        base_url: str,
        *,
        api: types.ApiEnum | None = None,
        key_variable: str | None = None,
        models: Sequence[str] | None = None,
        prices: Mapping[str, Sequence[types.Decimal]] | None = None,
        batch_prices: Mapping[str, Sequence[types.Decimal]] | None = None,
        batches: bool | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        timeout: int | None = None,
        tries: int | None = None,
        concurrency: int | None = None,
    ) -> types.Provider:
        """Declare an endpoint. ``key_variable`` names the environment variable with its key."""
        sent: dict[str, Any] = {"name": name, "base_url": base_url}
        sent |= given(
            api=api,
            key_variable=key_variable,
            models=models,
            prices=prices,
            batch_prices=batch_prices,
            batches=batches,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            timeout=timeout,
            tries=tries,
            concurrency=concurrency,
        )
        return cast(types.Provider, self.json("POST", "/providers/", json=sent))

    @operation("GET", "/providers/{provider}/")
    def provider(self, provider: str) -> types.Provider:
        """One provider with its address, prices and limits."""
        return cast(types.Provider, self.json("GET", f"/providers/{quote(str(provider), safe='')}/"))

    @operation("PATCH", "/providers/{provider}/")
    def change_provider(
        self,
        provider: str,
        *,
        base_url: str | None = None,
        api: types.ApiEnum | None = None,
        key_variable: str | None = None,
        models: Sequence[str] | None = None,
        prices: Mapping[str, Sequence[types.Decimal]] | None = None,
        batch_prices: Mapping[str, Sequence[types.Decimal]] | None = None,
        batches: bool | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        timeout: int | None = None,
        tries: int | None = None,
        concurrency: int | None = None,
    ) -> types.Provider:
        """Change settings of a provider. Runs that were started before keep their prices."""
        sent = given(
            base_url=base_url,
            api=api,
            key_variable=key_variable,
            models=models,
            prices=prices,
            batch_prices=batch_prices,
            batches=batches,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            timeout=timeout,
            tries=tries,
            concurrency=concurrency,
        )
        return cast(types.Provider, self.json("PATCH", f"/providers/{quote(str(provider), safe='')}/", json=sent))

    @operation("DELETE", "/providers/{provider}/")
    def remove_provider(self, provider: str) -> None:
        """Remove a provider that no run asks now."""
        self.send("DELETE", f"/providers/{quote(str(provider), safe='')}/")

    @operation("POST", "/providers/{provider}/tests/")
    def test_provider(self, provider: str, *, model: str | None = None) -> types.ProviderTest:
        """Let a worker make one call; ``provider_tests`` has the result."""
        sent = given(model=model)
        address = f"/providers/{quote(str(provider), safe='')}/tests/"
        return cast(types.ProviderTest, self.json("POST", address, json=sent))

    @operation("GET", "/providers/{provider}/tests/")
    def provider_tests(self, provider: str) -> list[types.ProviderTest]:
        """The newest tests of a provider, at most five."""
        return cast(list[types.ProviderTest], self.json("GET", f"/providers/{quote(str(provider), safe='')}/tests/"))

    @operation("GET", "/projects/{project}/generation/specs/")
    def generation_specs(self) -> list[types.Spec]:
        """The specs that are ready to use."""
        return cast(list[types.Spec], self.json("GET", self.at("generation/specs/")))

    @operation("GET", "/projects/{project}/generation/")
    def generation_plans(self) -> Iterator[types.GenerationPlan]:
        """The project's generation plans, newest first."""
        return self.pages(self.at("generation/"))

    @operation("POST", "/projects/{project}/generation/")
    def create_generation_plan(
        self,
        name: str,
        spec: types.Json,
        languages: Sequence[str],
        families: int,
        generators: Sequence[types.PlanGenerator],
        *,
        user_models: Sequence[types.PlanGenerator] | None = None,
        utterance_judge: int | None = None,
        utterance_rubric: int | None = None,
        source_dataset: int | None = None,
        source_language: str | None = None,
        repeats: int | None = None,
        seed: int | None = None,
        budget: types.Decimal | None = None,
    ) -> types.GenerationPlanDetail:
        """Plan texts; nothing is sent yet."""
        sent: dict[str, Any] = {
            "name": name,
            "spec": spec,
            "languages": languages,
            "families": families,
            "generators": generators,
        }
        sent |= given(
            user_models=user_models,
            utterance_judge=utterance_judge,
            utterance_rubric=utterance_rubric,
            source_dataset=source_dataset,
            source_language=source_language,
            repeats=repeats,
            seed=seed,
            budget=budget,
        )
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/"), json=sent))

    @operation("GET", "/projects/{project}/generation/{plan}/")
    def generation_plan(self, plan: int) -> types.GenerationPlanDetail:
        """One generation plan and how far it is."""
        return cast(types.GenerationPlanDetail, self.json("GET", self.at("generation/{}/", plan)))

    @operation("GET", "/projects/{project}/generation/{plan}/forecast/")
    def generation_forecast(self, plan: int) -> types.GenerationForecast:
        """What the texts that are still to be written take."""
        return cast(types.GenerationForecast, self.json("GET", self.at("generation/{}/forecast/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/examples/")
    def write_examples(self, plan: int) -> types.GenerationPlanDetail:
        """Have the first three families written."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/examples/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/start/")
    def start_generation(self, plan: int) -> types.GenerationPlanDetail:
        """Have all families written."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/start/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/pause/")
    def pause_generation(self, plan: int) -> types.GenerationPlanDetail:
        """Send no more requests of a plan."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/pause/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/resume/")
    def resume_generation(self, plan: int) -> types.GenerationPlanDetail:
        """Continue a paused plan."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/resume/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/cancel/")
    def cancel_generation(self, plan: int) -> types.GenerationPlanDetail:
        """End a plan permanently; what is written is kept."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/cancel/", plan)))

    @operation("POST", "/projects/{project}/generation/{plan}/again/")
    def ask_for_texts_again(self, plan: int) -> types.GenerationPlanDetail:
        """Ask again for the texts that were given up."""
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("generation/{}/again/", plan)))

    @operation("PUT", "/projects/{project}/generation/{plan}/budget/")
    def set_generation_budget(self, plan: int, budget: types.Decimal | None) -> types.GenerationPlanDetail:
        """Change or lift the budget of a plan."""
        sent: dict[str, Any] = {"budget": budget}
        return cast(types.GenerationPlanDetail, self.json("PUT", self.at("generation/{}/budget/", plan), json=sent))

    @operation("POST", "/projects/{project}/generation/{plan}/store/")
    def store_generated(
        self,
        plan: int,
        name: str,
        *,
        only: types.OnlyEnum | None = None,
        with_natives: bool | None = None,
    ) -> types.StoredPlan:
        """Store the written texts as a dataset."""
        sent: dict[str, Any] = {"name": name}
        sent |= given(only=only, with_natives=with_natives)
        return cast(types.StoredPlan, self.json("POST", self.at("generation/{}/store/", plan), json=sent))

    @operation("POST", "/projects/{project}/generation/{plan}/utterances/")
    def store_utterances(
        self,
        plan: int,
        name: str,
        *,
        most: int | None = None,
        seed: int | None = None,
    ) -> types.StoredUtterances:
        """Store the judged turns of a simulation's users as a dataset, for native speakers."""
        sent: dict[str, Any] = {"name": name}
        sent |= given(most=most, seed=seed)
        return cast(types.StoredUtterances, self.json("POST", self.at("generation/{}/utterances/", plan), json=sent))

    @operation("GET", "/projects/{project}/generation/{plan}/texts/")
    def generated_texts(
        self,
        plan: int,
        *,
        decision: Literal["keep", "set_aside"] | None = None,
        family: int | None = None,
        generator: str | None = None,
        language: str | None = None,
        simulator: str | None = None,
        state: Literal["given_up", "leased", "waiting", "written"] | None = None,
    ) -> Iterator[types.WrittenText]:
        """The texts of a plan, family by family."""
        return self.pages(
            self.at("generation/{}/texts/", plan),
            decision=decision,
            family=family,
            generator=generator,
            language=language,
            simulator=simulator,
            state=state,
        )

    @operation("GET", "/projects/{project}/generation/{plan}/texts/{text}/")
    def generated_text(self, plan: int, text: int) -> types.WrittenTextDetail:
        """One text with every request that was paid for it."""
        return cast(types.WrittenTextDetail, self.json("GET", self.at("generation/{}/texts/{}/", plan, text)))

    @operation("PUT", "/projects/{project}/generation/{plan}/texts/{text}/decision/")
    def decide_on_text(
        self,
        plan: int,
        text: int,
        decision: types.RealisationDecision | types.BlankEnum,
        *,
        reason: str | None = None,
    ) -> types.WrittenText:
        """Keep a text, set it aside, or take that back."""
        sent: dict[str, Any] = {"decision": decision}
        sent |= given(reason=reason)
        address = self.at("generation/{}/texts/{}/decision/", plan, text)
        return cast(types.WrittenText, self.json("PUT", address, json=sent))

    @operation("GET", "/projects/{project}/judges/")
    def judges(self) -> Iterator[types.DeclaredJudge]:
        """The project's judges, run here or imported."""
        return self.pages(self.at("judges/"))

    @operation("POST", "/projects/{project}/judges/")
    def declare_judge(
        self,
        name: str,
        provider: str,
        model: str,
        *,
        parameters: Mapping[str, types.Json] | None = None,
        variant: types.Variant | None = None,
        timeout: int | None = None,
        tries: int | None = None,
        concurrency: int | None = None,
    ) -> types.DeclaredJudge:
        """Add a judge; the same configuration again returns the existing judge. ``timeout`` (seconds for a reply),
        ``tries`` (of a call) and ``concurrency`` (calls in flight) change no verdict: for an existing judge they
        replace the old values."""
        sent: dict[str, Any] = {"name": name, "provider": provider, "model": model}
        sent |= given(parameters=parameters, variant=variant, timeout=timeout, tries=tries, concurrency=concurrency)
        return cast(types.DeclaredJudge, self.json("POST", self.at("judges/"), json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/judges/studies/")
    def judge_studies(self) -> list[types.Preset]:
        """The ready configurations of the five studies."""
        return cast(list[types.Preset], self.json("GET", self.at("judges/studies/")))

    @operation("POST", "/projects/{project}/judges/studies/")
    def declare_as_study(
        self,
        study: types.StudyEnum,
        provider: str,
        model: str,
        *,
        name: str | None = None,
    ) -> types.StudyJudge:
        """Add a judge as a study had it, such as ``"s3"``; its rubric is published in the project."""
        sent: dict[str, Any] = {"study": study, "provider": provider, "model": model}
        sent |= given(name=name)
        return cast(types.StudyJudge, self.json("POST", self.at("judges/studies/"), json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/judges/{judge}/")
    def judge(self, judge: int) -> types.DeclaredJudge:
        """One judge."""
        return cast(types.DeclaredJudge, self.json("GET", self.at("judges/{}/", judge)))

    @operation("GET", "/projects/{project}/spending/")
    def spending(self, *, judge: int | None = None) -> list[types.DailySpending]:
        """What requests to models have cost, by day, person and kind; of one ``judge`` where it is given."""
        asked = given(judge=judge)
        return cast(list[types.DailySpending], self.json("GET", self.at("spending/"), params=asked))

    @operation("GET", "/projects/{project}/judges/{judge}/preview/")
    def prompts(self, judge: int, item: int, rubric_version: int) -> list[types.Prompt]:
        """The exact messages that this judge would send for one item."""
        asked: dict[str, Any] = {"item": item, "rubric_version": rubric_version}
        return cast(list[types.Prompt], self.json("GET", self.at("judges/{}/preview/", judge), params=asked))

    @operation("GET", "/projects/{project}/writing/")
    def writing_duties(self) -> Iterator[types.WritingDuty]:
        """The project's duties to write."""
        return self.pages(self.at("writing/"))

    @operation("POST", "/projects/{project}/writing/")
    def open_writing_duty(
        self,
        name: str,
        dataset: int,
        panel: int,
        *,
        kind: types.WritingDutyKind | None = None,
        part: str | None = None,
        most_turns: int | None = None,
        shortest: int | None = None,
        longest: int | None = None,
        per_prompt: int | None = None,
        generator: str | None = None,
        instructions: str | None = None,
        seed: int | None = None,
    ) -> types.WritingDutyDetail:
        """Have a panel write answers, or the turns of one role, for the prompts of a dataset."""
        sent: dict[str, Any] = {"name": name, "dataset": dataset, "panel": panel}
        sent |= given(
            kind=kind,
            part=part,
            most_turns=most_turns,
            shortest=shortest,
            longest=longest,
            per_prompt=per_prompt,
            generator=generator,
            instructions=instructions,
            seed=seed,
        )
        return cast(types.WritingDutyDetail, self.json("POST", self.at("writing/"), json=sent))

    @operation("GET", "/projects/{project}/writing/{writing}/")
    def writing_duty(self, writing: int) -> types.WritingDutyDetail:
        """One duty to write, and how far it is."""
        return cast(types.WritingDutyDetail, self.json("GET", self.at("writing/{}/", writing)))

    @operation("PUT", "/projects/{project}/writing/{writing}/state/")
    def set_writing_state(self, writing: int, state: types.CampaignState) -> types.WritingDutyDetail:
        """Open, pause or close a duty to write."""
        sent: dict[str, Any] = {"state": state}
        address = self.at("writing/{}/state/", writing)
        return cast(types.WritingDutyDetail, self.json("PUT", address, json=sent, repeatable=True))

    @operation("POST", "/projects/{project}/writing/{writing}/store/")
    def store_writing(self, writing: int, *, name: str | None = None) -> types.StoredWriting:
        """Store accepted texts of people as items, among the models' texts or as a dataset of a name."""
        sent = given(name=name)
        return cast(types.StoredWriting, self.json("POST", self.at("writing/{}/store/", writing), json=sent))

    @operation("GET", "/projects/{project}/writing/{writing}/texts/")
    def human_texts(
        self,
        writing: int,
        *,
        state: Literal["accepted", "released", "returned", "skipped", "submitted", "writing"] | None = None,
    ) -> Iterator[types.HumanText]:
        """The texts of a duty to write."""
        return self.pages(self.at("writing/{}/texts/", writing), state=state)

    @operation("PUT", "/projects/{project}/writing/{writing}/texts/{human_text}/decision/")
    def decide_writing(
        self,
        writing: int,
        human_text: int,
        decision: types.WritingDecisionDecisionEnum,
        *,
        number: int | None = None,
        comment: str | None = None,
    ) -> types.HumanText:
        """Accept a text of a person, or send it back with a comment."""
        sent: dict[str, Any] = {"decision": decision}
        sent |= given(number=number, comment=comment)
        address = self.at("writing/{}/texts/{}/decision/", writing, human_text)
        return cast(types.HumanText, self.json("PUT", address, json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/desk/writing/")
    def own_writing_duties(self) -> list[types.OwnWritingDuty]:
        """Your duties to write."""
        return cast(list[types.OwnWritingDuty], self.json("GET", self.at("desk/writing/")))

    @operation("POST", "/projects/{project}/desk/writing/{writing}/take/")
    def take_prompt(self, writing: int) -> types.WritingPrompt | None:
        """The prompt that you are writing for, else the next one."""
        address = self.at("desk/writing/{}/take/", writing)
        return cast(types.WritingPrompt | None, self.json("POST", address, repeatable=True))

    @operation("POST", "/projects/{project}/desk/writing/at/{writing_key}/")
    def submit_writing(
        self,
        writing_key: str,
        texts: Sequence[str],
        *,
        seconds: float | None = None,
        pasted: int | None = None,
        confirmed: str | None = None,
    ) -> types.WritingPrompt:
        """Submit a text; the same key and texts again are stored once."""
        sent: dict[str, Any] = {"texts": texts}
        sent |= given(seconds=seconds, pasted=pasted, confirmed=confirmed)
        address = self.at("desk/writing/at/{}/", writing_key)
        return cast(types.WritingPrompt, self.json("POST", address, json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/runs/")
    def runs(
        self,
        *,
        dataset: int | None = None,
        judge: int | None = None,
        state: Literal["cancelled", "finished", "imported", "paused", "running"] | None = None,
    ) -> Iterator[types.Run]:
        """The project's runs."""
        return self.pages(self.at("runs/"), dataset=dataset, judge=judge, state=state)

    @operation("POST", "/projects/{project}/runs/forecast/")
    def forecast_run(
        self,
        judge: int,
        dataset: int,
        rubric_version: int,
        *,
        selection: int | None = None,
        repeats: int | None = None,
        budget: types.Decimal | None = None,
        by_batch: bool | None = None,
    ) -> types.Forecast:
        """The number of calls, and estimates of tokens and USD, of a run that is not started."""
        sent: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
        sent |= given(selection=selection, repeats=repeats, budget=budget, by_batch=by_batch)
        return cast(types.Forecast, self.json("POST", self.at("runs/forecast/"), json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/runs/{run}/")
    def run(self, run: int) -> types.RunDetail:
        """One run with its progress."""
        return cast(types.RunDetail, self.json("GET", self.at("runs/{}/", run)))

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
    def rerun(self, run: int, *, statuses: Sequence[types.StatusesEnum] | None = None) -> types.RunDetail:
        """Repeat the calls that failed, or whose verdicts have one of these ``statuses``; every new request is paid.
        Statuses: failed, unparsed, out_of_range, refused, truncated, error. Scores that were read stay."""
        sent = given(statuses=statuses)
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun/", run), json=sent))

    @operation("POST", "/projects/{project}/runs/{run}/rerun-failed/")
    def rerun_failed(self, run: int) -> types.RunDetail:
        """Send the failed calls again."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun-failed/", run)))

    @operation("PUT", "/projects/{project}/runs/{run}/budget/")
    def set_budget(self, run: int, budget: types.Decimal | None) -> types.RunDetail:
        """Raise, lower or lift the cap in USD."""
        sent: dict[str, Any] = {"budget": budget}
        return cast(types.RunDetail, self.json("PUT", self.at("runs/{}/budget/", run), json=sent))

    @operation("GET", "/projects/{project}/curations/")
    def curations(self) -> Iterator[types.Curation]:
        """The project's curated datasets, newest first."""
        return self.pages(self.at("curations/"))

    @operation("POST", "/projects/{project}/curations/")
    def curate(
        self,
        name: str,
        dataset: int,
        n: int,
        *,
        run: int | None = None,
        method: types.CurationMethod | None = None,
        languages: Sequence[str] | None = None,
        issues: Sequence[str] | None = None,
        overall: str | None = None,
        unreadable: str | None = None,
        words: Sequence[str] | None = None,
        user: str | None = None,
        clean_first: bool | None = None,
        balance: Sequence[types.CurationFacet] | None = None,
        by: Sequence[str] | None = None,
        by_family: bool | None = None,
        seed: int | None = None,
    ) -> types.Curation:
        """Choose ``n`` items per language out of a dataset and store them as a new one called ``name``;
        docs/curation.md explains the other parts."""
        sent: dict[str, Any] = {"name": name, "dataset": dataset, "n": n}
        sent |= given(
            run=run,
            method=method,
            languages=languages,
            issues=issues,
            overall=overall,
            unreadable=unreadable,
            words=words,
            user=user,
            clean_first=clean_first,
            balance=balance,
            by=by,
            by_family=by_family,
            seed=seed,
        )
        return cast(types.Curation, self.json("POST", self.at("curations/"), json=sent))

    @operation("POST", "/projects/{project}/curations/preview/")
    def preview_curation(
        self,
        dataset: int,
        n: int,
        *,
        run: int | None = None,
        method: types.CurationMethod | None = None,
        languages: Sequence[str] | None = None,
        issues: Sequence[str] | None = None,
        overall: str | None = None,
        unreadable: str | None = None,
        words: Sequence[str] | None = None,
        user: str | None = None,
        clean_first: bool | None = None,
        balance: Sequence[types.CurationFacet] | None = None,
        by: Sequence[str] | None = None,
        by_family: bool | None = None,
        seed: int | None = None,
    ) -> types.CurationPreview:
        """The certificate that a curated dataset would have; stores nothing."""
        sent: dict[str, Any] = {"dataset": dataset, "n": n}
        sent |= given(
            run=run,
            method=method,
            languages=languages,
            issues=issues,
            overall=overall,
            unreadable=unreadable,
            words=words,
            user=user,
            clean_first=clean_first,
            balance=balance,
            by=by,
            by_family=by_family,
            seed=seed,
        )
        return cast(types.CurationPreview, self.json("POST", self.at("curations/preview/"), json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/curations/{curation}/")
    def curation(self, curation: int) -> types.Curation:
        """One curated dataset: what was asked for, its certificate, and what may not be concluded."""
        return cast(types.Curation, self.json("GET", self.at("curations/{}/", curation)))

    @operation("GET", "/projects/{project}/curations/{curation}/items/")
    def curated_items(self, curation: int) -> Iterator[types.CuratedItem]:
        """The items of a curated dataset, each with its inclusion probability if it has one."""
        return self.pages(self.at("curations/{}/items/", curation))

    @operation("GET", "/projects/{project}/judges/{judge}/errors/")
    def judge_errors(self, judge: int) -> list[types.TagCount]:
        """Why verdicts of a judge are wrong: the reasons that people wrote, with their counts."""
        return cast(list[types.TagCount], self.json("GET", self.at("judges/{}/errors/", judge)))

    @operation("GET", "/projects/{project}/error-tags/")
    def error_tags(self) -> Iterator[types.ErrorTag]:
        """The reasons that people wrote for wrong verdicts, newest first."""
        return self.pages(self.at("error-tags/"))

    @operation("POST", "/projects/{project}/error-tags/")
    def tag_error(self, verdict: int, text: str) -> types.ErrorTag:
        """Write why a verdict is wrong; the same reason again changes nothing."""
        sent: dict[str, Any] = {"verdict": verdict, "text": text}
        return cast(types.ErrorTag, self.json("POST", self.at("error-tags/"), json=sent, repeatable=True))

    @operation("DELETE", "/projects/{project}/error-tags/{tag}/")
    def remove_error_tag(self, tag: int) -> None:
        """Take a reason from its verdict."""
        self.send("DELETE", self.at("error-tags/{}/", tag))

    @operation("POST", "/projects/{project}/user-comparisons/")
    def compare_users(
        self,
        name: str,
        simulated: int,
        human: int,
        *,
        n: int | None = None,
        rated: types.RatedEnum | None = None,
        simulated_user: str | None = None,
        human_user: str | None = None,
        seed: int | None = None,
        panels: Sequence[int] | None = None,
        overlap: int | None = None,
        keep_names: bool | None = None,
    ) -> types.Campaign:
        """Mix dialogues with simulated users and with people into one dataset, and open a campaign on it in which
        annotators say who is a person; docs/simulation.md explains it."""
        sent: dict[str, Any] = {"name": name, "simulated": simulated, "human": human}
        sent |= given(
            n=n,
            rated=rated,
            simulated_user=simulated_user,
            human_user=human_user,
            seed=seed,
            panels=panels,
            overlap=overlap,
            keep_names=keep_names,
        )
        return cast(types.Campaign, self.json("POST", self.at("user-comparisons/"), json=sent))

    @operation("POST", "/projects/{project}/user-comparisons/preview/")
    def preview_user_comparison(
        self,
        simulated: int,
        human: int,
        *,
        n: int | None = None,
        rated: types.RatedEnum | None = None,
        simulated_user: str | None = None,
        human_user: str | None = None,
        seed: int | None = None,
    ) -> types.DrawnComparison:
        """How many dialogues a comparison would have; stores nothing."""
        sent: dict[str, Any] = {"simulated": simulated, "human": human}
        sent |= given(n=n, rated=rated, simulated_user=simulated_user, human_user=human_user, seed=seed)
        address = self.at("user-comparisons/preview/")
        return cast(types.DrawnComparison, self.json("POST", address, json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/designs/")
    def designs(self) -> Iterator[types.Design]:
        """The project's designs, newest first."""
        return self.pages(self.at("designs/"))

    @operation("POST", "/projects/{project}/designs/")
    def make_design(
        self,
        name: str,
        judges: Sequence[int],
        dataset: int,
        rubric_version: int,
        *,
        factors: Mapping[str, Sequence[types.Json]] | None = None,
        selection: int | None = None,
        repeats: int | None = None,
        budget: types.Decimal | None = None,
        jury: types.JuryEnum | types.BlankEnum | None = None,
    ) -> types.DesignDetail:
        """Make a design of these judges at every combination of levels; nothing is sent. ``factors``:
        ``{"anchor_detail": ["name", "reasons"], "temperature": [0, 0.7]}``. ``budget`` caps all runs."""
        sent: dict[str, Any] = {"name": name, "judges": judges, "dataset": dataset, "rubric_version": rubric_version}
        sent |= given(factors=factors, selection=selection, repeats=repeats, budget=budget, jury=jury)
        return cast(types.DesignDetail, self.json("POST", self.at("designs/"), json=sent))

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
    def set_design_budget(self, design: int, budget: types.Decimal | None) -> types.DesignDetail:
        """Raise, lower or lift the cap over all runs; runs that paused for money have to be resumed besides."""
        sent: dict[str, Any] = {"budget": budget}
        return cast(types.DesignDetail, self.json("PUT", self.at("designs/{}/budget/", design), json=sent))

    @operation("GET", "/projects/{project}/runs/{run}/calls/")
    def calls(
        self,
        run: int,
        *,
        item: str | None = None,
        language: str | None = None,
        state: Literal["failed", "leased", "settled", "waiting"] | None = None,
    ) -> Iterator[types.Call]:
        """A run's calls."""
        return self.pages(self.at("runs/{}/calls/", run), item=item, language=language, state=state)

    @operation("GET", "/projects/{project}/runs/{run}/calls/{call}/")
    def call(self, run: int, call: int) -> types.CallDetail:
        """One call with all its attempts: the messages sent and the replies received."""
        return cast(types.CallDetail, self.json("GET", self.at("runs/{}/calls/{}/", run, call)))

    @operation("GET", "/projects/{project}/verdicts/")
    def verdicts(
        self,
        *,
        criterion: str | None = None,
        item: str | None = None,
        judge: int | None = None,
        language: str | None = None,
        run: int | None = None,
        status: Literal["error", "ok", "out_of_range", "refused", "truncated", "unparsed"] | None = None,
    ) -> Iterator[types.Verdict]:
        """Verdicts: scores, or the reason why there is none."""
        return self.pages(
            self.at("verdicts/"),
            criterion=criterion,
            item=item,
            judge=judge,
            language=language,
            run=run,
            status=status,
        )

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
        sent: dict[str, Any] = {"address": address, "events": events}
        return cast(types.Secret, self.json("POST", self.at("webhooks/"), json=sent))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/")
    def webhook(self, webhook: int) -> types.Webhook:
        """One webhook."""
        return cast(types.Webhook, self.json("GET", self.at("webhooks/{}/", webhook)))

    @operation("PATCH", "/projects/{project}/webhooks/{webhook}/")
    def change_webhook(
        self,
        webhook: int,
        *,
        events: Sequence[types.EventsEnum] | None = None,
        on: bool | None = None,
    ) -> types.Webhook:
        """Change the events of a webhook, or turn it off or on."""
        sent = given(events=events, on=on)
        return cast(types.Webhook, self.json("PATCH", self.at("webhooks/{}/", webhook), json=sent))

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
        return cast(types.Delivery, self.json("POST", self.at("webhooks/{}/deliveries/{}/again/", webhook, delivery)))

    @operation("GET", "/projects/{project}/shares/")
    def shares(self) -> Iterator[types.Share]:
        """The valid share links."""
        return self.pages(self.at("shares/"))

    @operation("POST", "/projects/{project}/shares/")
    def share(
        self,
        campaign: int,
        label: str,
        *,
        days: int | None = None,
        shows_generators: bool | None = None,
    ) -> types.ShareAddress:
        """Create a link to one campaign's numbers, without how items were made unless it ``shows_generators``. Only
        this response contains its address."""
        sent: dict[str, Any] = {"campaign": campaign, "label": label}
        sent |= given(days=days, shows_generators=shows_generators)
        return cast(types.ShareAddress, self.json("POST", self.at("shares/"), json=sent))

    @operation("DELETE", "/projects/{project}/shares/{link}/")
    def revoke_share(self, link: int) -> None:
        """Revoke a link: it stops working immediately."""
        self.send("DELETE", self.at("shares/{}/", link))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/duties/{duty}/")
    def duty_settings(self, campaign: int, duty: int) -> types.DutySettings:
        """Priority, deadline, quota and pause of a duty."""
        return cast(types.DutySettings, self.json("GET", self.at("campaigns/{}/duties/{}/", campaign, duty)))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/duties/{duty}/")
    def change_duty(
        self,
        campaign: int,
        duty: int,
        *,
        priority: int | None = None,
        due_at: types.Moment | None = None,
        quota: int | None = None,
        paused: bool | None = None,
    ) -> types.DutySettings:
        """Set all of them; ``due_at`` by ISO 8601. People with items left are reminded two days before."""
        sent = given(priority=priority, due_at=due_at, quota=quota, paused=paused)
        return cast(types.DutySettings, self.json("PUT", self.at("campaigns/{}/duties/{}/", campaign, duty), json=sent))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/return/")
    def return_items(self, campaign: int, duty: int, annotators: Sequence[str]) -> types.Returned:
        """Return the items that these annotators (pseudonyms) have in progress to the queue."""
        sent: dict[str, Any] = {"annotators": annotators}
        address = self.at("campaigns/{}/duties/{}/return/", campaign, duty)
        return cast(types.Returned, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/people/")
    def people(self) -> Iterator[types.Person]:
        """The people whose data the project has, by pseudonym; for leads."""
        return self.pages(self.at("people/"))

    @operation("POST", "/projects/{project}/people/{annotator}/removal/")
    def remove_person(
        self,
        annotator: int,
        typed: str,
        *,
        with_ratings: bool | None = None,
        with_account: bool | None = None,
    ) -> types.Removed:
        """Remove a person's data; ``typed`` is their pseudonym, as a confirmation. It can't be undone. For leads."""
        sent: dict[str, Any] = {"typed": typed}
        sent |= given(with_ratings=with_ratings, with_account=with_account)
        return cast(types.Removed, self.json("POST", self.at("people/{}/removal/", annotator), json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/questionnaire/")
    def closing_questionnaire(self, campaign: int) -> types.ClosingResults:
        """What annotators found hard, in groups of five people or more; for leads."""
        return cast(types.ClosingResults, self.json("GET", self.at("campaigns/{}/questionnaire/", campaign)))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/questionnaire/")
    def switch_questionnaire(self, campaign: int, asked: bool) -> types.ClosingResults:
        """Ask annotators the closing questions when they have finished, or no longer; answers are kept."""
        sent: dict[str, Any] = {"asked": asked}
        return cast(types.ClosingResults, self.json("PUT", self.at("campaigns/{}/questionnaire/", campaign), json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/rubric-changes/")
    def rubric_differences(self, campaign: int, version: int) -> list[types.ChangedCriterion]:
        """What differs between the campaign's version of the rubric and another one, with the ratings it touches."""
        asked: dict[str, Any] = {"version": version}
        address = self.at("campaigns/{}/rubric-changes/", campaign)
        return cast(list[types.ChangedCriterion], self.json("GET", address, params=asked))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/rubric-changes/")
    def change_rubric(
        self,
        campaign: int,
        from_version: int,
        version: int,
        *,
        decisions: Mapping[str, types.RatingDecision] | None = None,
        qualify_again: bool | None = None,
    ) -> types.RubricChange:
        """Use a newer version, such as ``{"fluency": {"decision": "map", "scores": {"1": 2}}}``; for leads.
        ``qualify_again``: training and exam count only from now on. A large campaign is changed by a worker: its
        `finished_at` is None until then, and `job` is the job to look at."""
        sent: dict[str, Any] = {"from_version": from_version, "version": version}
        sent |= given(decisions=decisions, qualify_again=qualify_again)
        return cast(types.RubricChange, self.json("POST", self.at("campaigns/{}/rubric-changes/", campaign), json=sent))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/rubric-changes/{change}/undo/")
    def undo_rubric_change(self, campaign: int, change: int) -> types.RubricChange:
        """Go back to the former version, as long as nothing was rated under the new one; for leads."""
        address = self.at("campaigns/{}/rubric-changes/{}/undo/", campaign, change)
        return cast(types.RubricChange, self.json("POST", address))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/qualification/")
    def qualification(self, campaign: int) -> types.QualificationRule:
        """What a campaign asks of its annotators. Raises `NotFound` where nothing was set."""
        return cast(types.QualificationRule, self.json("GET", self.at("campaigns/{}/qualification/", campaign)))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/qualification/")
    def set_qualification(
        self,
        campaign: int,
        *,
        training: bool | None = None,
        exam_items: int | None = None,
        matching: types.MatchingEnum | None = None,
        tolerance: float | None = None,
        threshold: float | None = None,
        attempts: int | None = None,
        wait_hours: int | None = None,
        valid_days: int | None = None,
        control_rate: float | None = None,
        repeat_rate: float | None = None,
        control_threshold: float | None = None,
        fewest_controls: int | None = None,
        seed: int | None = None,
    ) -> types.QualificationRule:
        """Set what a campaign asks of its annotators: ``exam_items=10, threshold=0.7, control_rate=0.1`` and so on."""
        sent = given(
            training=training,
            exam_items=exam_items,
            matching=matching,
            tolerance=tolerance,
            threshold=threshold,
            attempts=attempts,
            wait_hours=wait_hours,
            valid_days=valid_days,
            control_rate=control_rate,
            repeat_rate=repeat_rate,
            control_threshold=control_threshold,
            fewest_controls=fewest_controls,
            seed=seed,
        )
        address = self.at("campaigns/{}/qualification/", campaign)
        return cast(types.QualificationRule, self.json("PUT", address, json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/guidelines/")
    def guidelines(self, campaign: int) -> list[types.Guideline]:
        """Every version of a campaign's guidelines, by language, newest first."""
        return cast(list[types.Guideline], self.json("GET", self.at("campaigns/{}/guidelines/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/guidelines/")
    def publish_guideline(
        self,
        campaign: int,
        language: str,
        text: str,
        *,
        examples: Sequence[types.WorkedExample] | None = None,
    ) -> types.Guideline:
        """Publish the next version in a language; annotators confirm it before their next item."""
        sent: dict[str, Any] = {"language": language, "text": text}
        sent |= given(examples=examples)
        return cast(types.Guideline, self.json("POST", self.at("campaigns/{}/guidelines/", campaign), json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/references/")
    def references(self, campaign: int) -> list[types.ReferenceItem]:
        """The reference items of a campaign with their scores."""
        return cast(list[types.ReferenceItem], self.json("GET", self.at("campaigns/{}/references/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/references/")
    def mark_references(self, campaign: int, references: Sequence[types.ReferenceItem]) -> types.Marked:
        """Mark items for training, exams or controls: ``[{"item": "d1", "purpose": "exam", "scores": [...]}]``."""
        sent: dict[str, Any] = {"references": references}
        return cast(types.Marked, self.json("POST", self.at("campaigns/{}/references/", campaign), json=sent))

    @operation("DELETE", "/projects/{project}/campaigns/{campaign}/references/{reference}/")
    def remove_reference(self, campaign: int, reference: int) -> None:
        """Unmark an item that nobody has answered."""
        self.send("DELETE", self.at("campaigns/{}/references/{}/", campaign, reference))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/standings/")
    def standings(self, campaign: int) -> list[types.Standing]:
        """How every annotator stands in every duty, by pseudonym."""
        return cast(list[types.Standing], self.json("GET", self.at("campaigns/{}/standings/", campaign)))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/")
    def mismatches(self, campaign: int, duty: int, annotator: int) -> list[types.Mismatch]:
        """An annotator's answers to exams and controls that differ from their references, newest first."""
        address = self.at("campaigns/{}/standings/{}/{}/mismatches/", campaign, duty, annotator)
        return cast(list[types.Mismatch], self.json("GET", address))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/")
    def decide_mismatch(
        self,
        campaign: int,
        duty: int,
        annotator: int,
        assignment: int,
        criterion: str,
        accept: bool,
        *,
        note: str | None = None,
    ) -> list[types.Mismatch]:
        """Accept a score that differs from its reference, or not; leads only."""
        sent: dict[str, Any] = {"assignment": assignment, "criterion": criterion, "accept": accept}
        sent |= given(note=note)
        address = self.at("campaigns/{}/standings/{}/{}/mismatches/", campaign, duty, annotator)
        return cast(list[types.Mismatch], self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/reinstate/")
    def reinstate(self, campaign: int, duty: int, annotator: int, *, note: str | None = None) -> types.Standing:
        """Let a paused annotator work again; leads only."""
        sent = given(note=note)
        address = self.at("campaigns/{}/standings/{}/{}/reinstate/", campaign, duty, annotator)
        return cast(types.Standing, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/prompt-collections/")
    def prompt_collections(self) -> Iterator[types.PromptCollection]:
        """The prompt collections that you see."""
        return self.pages(self.at("prompt-collections/"))

    @operation("POST", "/projects/{project}/prompt-collections/")
    def create_prompt_collection(
        self,
        name: str,
        *,
        guidelines: types.Json | None = None,
        due_on: str | None = None,
        slots: Sequence[types.WantedPrompts] | None = None,
    ) -> types.PromptCollectionDetail:
        """Make a prompt collection."""
        sent: dict[str, Any] = {"name": name}
        sent |= given(guidelines=guidelines, due_on=due_on, slots=slots)
        return cast(types.PromptCollectionDetail, self.json("POST", self.at("prompt-collections/"), json=sent))

    @operation("GET", "/projects/{project}/prompt-collections/{collection}/")
    def prompt_collection(self, collection: int) -> types.PromptCollectionDetail:
        """One collection with its kinds of prompts and their counts."""
        return cast(types.PromptCollectionDetail, self.json("GET", self.at("prompt-collections/{}/", collection)))

    @operation("PUT", "/projects/{project}/prompt-collections/{collection}/")
    def change_prompt_collection(
        self,
        collection: int,
        *,
        name: str | None = None,
        guidelines: types.Json | None = None,
        due_on: str | None = None,
        slots: Sequence[types.WantedPrompts] | None = None,
    ) -> types.PromptCollectionDetail:
        """Change name, guidelines and deadline."""
        sent = given(name=name, guidelines=guidelines, due_on=due_on, slots=slots)
        address = self.at("prompt-collections/{}/", collection)
        return cast(types.PromptCollectionDetail, self.json("PUT", address, json=sent))

    @operation("GET", "/projects/{project}/prompt-collections/{collection}/progress/")
    def prompt_progress(self, collection: int) -> types.CollectionProgress:
        """Totals and people's counts of a collection."""
        return cast(types.CollectionProgress, self.json("GET", self.at("prompt-collections/{}/progress/", collection)))

    @operation("PUT", "/projects/{project}/prompt-collections/{collection}/slots/")
    def set_prompt_slots(self, collection: int, slots: Sequence[types.WantedPrompts]) -> types.PromptCollectionDetail:
        """Add kinds of prompts, or change how many are wanted."""
        sent: dict[str, Any] = {"slots": slots}
        address = self.at("prompt-collections/{}/slots/", collection)
        return cast(types.PromptCollectionDetail, self.json("PUT", address, json=sent))

    @operation("PUT", "/projects/{project}/prompt-collections/{collection}/people/")
    def set_prompt_member(
        self,
        collection: int,
        email: str,
        *,
        writes: bool | None = None,
        reviews: bool | None = None,
    ) -> types.CollectionMember:
        """Let a member of the project write, review, or both."""
        sent: dict[str, Any] = {"email": email}
        sent |= given(writes=writes, reviews=reviews)
        address = self.at("prompt-collections/{}/people/", collection)
        return cast(types.CollectionMember, self.json("PUT", address, json=sent))

    @operation("POST", "/projects/{project}/prompt-collections/{collection}/state/")
    def set_prompt_collection_state(
        self,
        collection: int,
        state: types.PromptCollectionState,
    ) -> types.PromptCollectionDetail:
        """Close a collection, or open it again."""
        sent: dict[str, Any] = {"state": state}
        address = self.at("prompt-collections/{}/state/", collection)
        return cast(types.PromptCollectionDetail, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/prompt-collections/{collection}/store/")
    def store_prompts(self, collection: int, name: str) -> types.StorePrompts:
        """Store the accepted prompts as a dataset."""
        sent: dict[str, Any] = {"name": name}
        address = self.at("prompt-collections/{}/store/", collection)
        return cast(types.StorePrompts, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/prompt-collections/{collection}/prompts/")
    def collected_prompts(self, collection: int) -> Iterator[types.CollectedPrompt]:
        """Submitted prompts with their versions and reviews."""
        return self.pages(self.at("prompt-collections/{}/prompts/", collection))

    @operation("POST", "/projects/{project}/prompt-collections/{collection}/prompts/")
    def submit_prompt(
        self,
        collection: int,
        text: str,
        *,
        slot: int | None = None,
        prompt: int | None = None,
        key: str | None = None,
        confirmed: str | None = None,
    ) -> types.CollectedPrompt:
        """Submit a prompt, or the next version of one that was sent back."""
        sent: dict[str, Any] = {"text": text}
        sent |= given(slot=slot, prompt=prompt, key=key, confirmed=confirmed)
        address = self.at("prompt-collections/{}/prompts/", collection)
        return cast(types.CollectedPrompt, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/prompt-collections/{collection}/check/")
    def check_prompt(
        self,
        collection: int,
        text: str,
        *,
        slot: int | None = None,
        prompt: int | None = None,
        key: str | None = None,
        confirmed: str | None = None,
    ) -> types.CheckedPrompt:
        """Similar prompts, and whether the language looks right; nothing is stored."""
        sent: dict[str, Any] = {"text": text}
        sent |= given(slot=slot, prompt=prompt, key=key, confirmed=confirmed)
        address = self.at("prompt-collections/{}/check/", collection)
        return cast(types.CheckedPrompt, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/prompt-collections/{collection}/prompts/{prompt}/review/")
    def review_prompt(
        self,
        collection: int,
        prompt: int,
        version: int,
        decision: types.PromptReviewDecisionEnum,
        *,
        comment: str | None = None,
    ) -> types.CollectedPrompt:
        """Accept a prompt, send it back, or reject it."""
        sent: dict[str, Any] = {"version": version, "decision": decision}
        sent |= given(comment=comment)
        address = self.at("prompt-collections/{}/prompts/{}/review/", collection, prompt)
        return cast(types.CollectedPrompt, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/datasets/{dataset}/answers/")
    def plan_answers(
        self,
        dataset: int,
        name: str,
        generators: Sequence[types.PlanGenerator],
        *,
        repeats: int | None = None,
        seed: int | None = None,
        budget: types.Decimal | None = None,
        spec: types.Json | None = None,
    ) -> types.GenerationPlanDetail:
        """Plan an answer of each model to each prompt of a dataset; nothing is sent yet."""
        sent: dict[str, Any] = {"name": name, "generators": generators}
        sent |= given(repeats=repeats, seed=seed, budget=budget, spec=spec)
        return cast(types.GenerationPlanDetail, self.json("POST", self.at("datasets/{}/answers/", dataset), json=sent))

    @operation("GET", "/projects/{project}/taxonomies/")
    def taxonomies(self) -> Iterator[types.Taxonomy]:
        """Every version of the project's taxonomies."""
        return self.pages(self.at("taxonomies/"))

    @operation("POST", "/projects/{project}/taxonomies/")
    def store_taxonomy(self, yaml: str) -> types.Taxonomy:
        """Store a taxonomy, the text of its file; an equal newest version is returned as it is."""
        sent: dict[str, Any] = {"yaml": yaml}
        return cast(types.Taxonomy, self.json("POST", self.at("taxonomies/"), json=sent))

    @operation("GET", "/projects/{project}/taxonomies/{taxonomy}/")
    def taxonomy(self, taxonomy: int) -> types.TaxonomyDetail:
        """One version with its document as YAML."""
        return cast(types.TaxonomyDetail, self.json("GET", self.at("taxonomies/{}/", taxonomy)))

    @operation("DELETE", "/projects/{project}/taxonomies/{taxonomy}/")
    def remove_taxonomy(self, taxonomy: int) -> None:
        """Remove a version whose rules made no duty."""
        self.send("DELETE", self.at("taxonomies/{}/", taxonomy))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/by-rules/")
    def add_duties_by_rules(
        self,
        campaign: int,
        taxonomy: int,
        *,
        panels: Mapping[str, Sequence[int]] | None = None,
        selection: int | None = None,
        seed: int | None = None,
        keep_names: bool | None = None,
        preview: bool | None = None,
    ) -> types.TaxonomyPlan:
        """Create the duties that the rules ask for, or add what they lack; ``preview`` only counts. ``panels``: by name
        in the rules, the ids of the panels that rate; by default those that are called so."""
        sent: dict[str, Any] = {"taxonomy": taxonomy}
        sent |= given(panels=panels, selection=selection, seed=seed, keep_names=keep_names, preview=preview)
        address = self.at("campaigns/{}/duties/by-rules/", campaign)
        return cast(types.TaxonomyPlan, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/adjudication/")
    def adjudication_queue(
        self,
        campaign: int,
        *,
        criterion: str | None = None,
        judge: str | None = None,
        language: str | None = None,
        order: Literal["range", "entropy", "na", "critical", "judge"] | None = None,
        seed: int | None = None,
        state: Literal["open", "stale", "decided", "all"] | None = None,
    ) -> Iterator[types.QueuedItem]:
        """The items on which raters differ, those that differ most first; without those that you have rated. ``order``
        is range, entropy, na, critical or judge; ``state`` is open, stale, decided or all."""
        return self.pages(
            self.at("campaigns/{}/adjudication/", campaign),
            criterion=criterion,
            judge=judge,
            language=language,
            order=order,
            seed=seed,
            state=state,
        )

    @operation("GET", "/projects/{project}/campaigns/{campaign}/items/{item}/adjudications/")
    def item_adjudications(self, campaign: int, item: int) -> list[types.DisputedCriterion]:
        """The rated criteria of an item (by ``id``) with their ratings, names hidden, and what was decided."""
        address = self.at("campaigns/{}/items/{}/adjudications/", campaign, item)
        return cast(list[types.DisputedCriterion], self.json("GET", address))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/meeting-decisions/")
    def meeting_decisions(self, campaign: int) -> list[types.MeetingDecision]:
        """The decisions of a campaign's calibration meetings, the newest meeting first."""
        return cast(list[types.MeetingDecision], self.json("GET", self.at("campaigns/{}/meeting-decisions/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/meeting-decisions/")
    def record_meeting_decision(
        self,
        campaign: int,
        held_on: str,
        decision: str,
        *,
        guideline_change: str | None = None,
        criterion: str | None = None,
        item: str | None = None,
    ) -> types.MeetingDecision:
        """Record what a meeting decided, on a criterion (its key) and an item (its external id) or in general."""
        sent: dict[str, Any] = {"held_on": held_on, "decision": decision}
        sent |= given(guideline_change=guideline_change, criterion=criterion, item=item)
        address = self.at("campaigns/{}/meeting-decisions/", campaign)
        return cast(types.MeetingDecision, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/")
    def preview_next_items(
        self,
        campaign: int,
        duty: int,
        criterion: str,
        judge: str,
        wanted: int,
        *,
        digest: str | None = None,
        seed: int | None = None,
    ) -> types.DrawPreview:
        """What `draw_next_items` would give out with the ``seed`` of the answer; stores nothing."""
        asked: dict[str, Any] = {"criterion": criterion, "judge": judge, "wanted": wanted}
        asked |= given(digest=digest, seed=seed)
        address = self.at("campaigns/{}/duties/{}/next-items/", campaign, duty)
        return cast(types.DrawPreview, self.json("GET", address, params=asked))

    @operation("DELETE", "/projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/")
    def take_back_next_items(self, campaign: int, duty: int) -> types.Drawn:
        """Take back the items that were drawn last, while nobody has rated one of them."""
        return cast(types.Drawn, self.json("DELETE", self.at("campaigns/{}/duties/{}/next-items/", campaign, duty)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/")
    def draw_next_items(
        self,
        campaign: int,
        duty: int,
        judge: str,
        criterion: str,
        wanted: int,
        *,
        seed: int | None = None,
        digest: str | None = None,
    ) -> types.Drawn:
        """Draw about ``wanted`` more items into a duty, more often where the ``judge`` may be wrong."""
        sent: dict[str, Any] = {"judge": judge, "criterion": criterion, "wanted": wanted}
        sent |= given(seed=seed, digest=digest)
        address = self.at("campaigns/{}/duties/{}/next-items/", campaign, duty)
        return cast(types.Drawn, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/")
    def decisions(
        self,
        campaign: int,
        *,
        criterion: str | None = None,
        decision: str | None = None,
        judge: str | None = None,
        language: str | None = None,
    ) -> types.Decisions:
        """What each judge may be used for in each criterion and language, with reasons and figures."""
        asked = given(criterion=criterion, decision=decision, judge=judge, language=language)
        return cast(types.Decisions, self.json("GET", self.at("campaigns/{}/decisions/", campaign), params=asked))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/study/")
    def study(
        self,
        campaign: int,
        *,
        criterion: str | None = None,
        judge: str | None = None,
        language: str | None = None,
        reference: Literal["mean", "median", "mode", "mode_split", "each"] | None = None,
    ) -> types.StudyFindings:
        """What was found, in sentences: people, judges, generators, how sure that is, and what is open."""
        asked = given(criterion=criterion, judge=judge, language=language, reference=reference)
        return cast(types.StudyFindings, self.json("GET", self.at("campaigns/{}/study/", campaign), params=asked))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/workflow/")
    def workflow(self, campaign: int, *, judge: str | None = None, language: str | None = None) -> types.Workflow:
        """The four steps before a judge is used across languages, each passed, failed, insufficient or not_run."""
        asked = given(judge=judge, language=language)
        return cast(types.Workflow, self.json("GET", self.at("campaigns/{}/workflow/", campaign), params=asked))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/history/")
    def decision_history(self, campaign: int) -> list[types.DecisionChange]:
        """The changes of a campaign's decisions, newest first, each with why."""
        return cast(list[types.DecisionChange], self.json("GET", self.at("campaigns/{}/decisions/history/", campaign)))

    @operation("GET", "/projects/{project}/thresholds/")
    def thresholds(self) -> list[types.Thresholds]:
        """Every version of the project's thresholds, the one that holds first."""
        return cast(list[types.Thresholds], self.json("GET", self.at("thresholds/")))

    @operation("POST", "/projects/{project}/audits/forecast/")
    def forecast_audit(
        self,
        judge: int,
        dataset: int,
        rubric_version: int,
        *,
        changes: Sequence[str] | None = None,
        per_language: int | None = None,
        seed: int | None = None,
        budget: types.Decimal | None = None,
    ) -> types.PerturbationForecast:
        """What an audit takes: calls exactly, tokens and cost roughly, and how many items each change changes."""
        sent: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
        sent |= given(changes=changes, per_language=per_language, seed=seed, budget=budget)
        address = self.at("audits/forecast/")
        return cast(types.PerturbationForecast, self.json("POST", address, json=sent, repeatable=True))

    @operation("GET", "/projects/{project}/alignments/")
    def alignments(self) -> Iterator[types.Alignment]:
        """The project's alignments, newest first."""
        return self.pages(self.at("alignments/"))

    @operation("POST", "/projects/{project}/alignments/")
    def create_alignment(
        self,
        name: str,
        campaign: int,
        base: int,
        *,
        share: float | None = None,
        looks: int | None = None,
        measure: types.MeasureEnum | None = None,
        confidence: float | None = None,
        seed: int | None = None,
        budget: types.Decimal | None = None,
    ) -> types.AlignmentDetail:
        """Split the labels of a campaign once, to align the judge ``base`` with them; nothing is sent."""
        sent: dict[str, Any] = {"name": name, "campaign": campaign, "base": base}
        sent |= given(share=share, looks=looks, measure=measure, confidence=confidence, seed=seed, budget=budget)
        return cast(types.AlignmentDetail, self.json("POST", self.at("alignments/"), json=sent))

    @operation("GET", "/projects/{project}/alignments/{alignment_pk}/")
    def alignment(self, alignment_pk: int) -> types.AlignmentDetail:
        """The split, every version on the tuning items, and what the looks have shown."""
        return cast(types.AlignmentDetail, self.json("GET", self.at("alignments/{}/", alignment_pk)))

    @operation("PUT", "/projects/{project}/alignments/{alignment_pk}/budget/")
    def set_alignment_budget(self, alignment_pk: int, budget: types.Decimal | None) -> types.AlignmentDetail:
        """Raise or lower the cap in USD over everything that an alignment asks; None removes it."""
        sent: dict[str, Any] = {"budget": budget}
        return cast(types.AlignmentDetail, self.json("PUT", self.at("alignments/{}/budget/", alignment_pk), json=sent))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/close/")
    def close_alignment(self, alignment_pk: int, confirm: bool) -> types.AlignmentDetail:
        """Give up the looks that are left, for good. Without a look so far, what was locked is free again."""
        sent: dict[str, Any] = {"confirm": confirm}
        return cast(types.AlignmentDetail, self.json("POST", self.at("alignments/{}/close/", alignment_pk), json=sent))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/")
    def add_version(
        self,
        alignment_pk: int,
        name: str,
        made_from: int,
        *,
        instructions: str | None = None,
        own_texts: Sequence[types.OwnText] | None = None,
    ) -> types.AlignmentDetail:
        """Make a version with these instructions and texts, and ask it about the tuning items. ``own_texts``:
        ``[{"criterion": "fluency", "point": 3, "text": "..."}]``; ``point`` None is the definition."""
        sent: dict[str, Any] = {"name": name, "made_from": made_from}
        sent |= given(instructions=instructions, own_texts=own_texts)
        address = self.at("alignments/{}/versions/", alignment_pk)
        return cast(types.AlignmentDetail, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/run/")
    def run_version(self, alignment_pk: int, judge: int) -> types.AlignmentDetail:
        """Ask a version about the tuning items. Started again, it is the same run."""
        address = self.at("alignments/{}/versions/{}/run/", alignment_pk, judge)
        return cast(types.AlignmentDetail, self.json("POST", address, repeatable=True))

    @operation("GET", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/confusions/")
    def confusions(
        self,
        alignment_pk: int,
        judge: int,
        *,
        criterion: str | None = None,
        language: str | None = None,
    ) -> list[types.Confusion]:
        """The tuning items on which a version differs most from the panel, with the words of both."""
        asked = given(criterion=criterion, language=language)
        address = self.at("alignments/{}/versions/{}/confusions/", alignment_pk, judge)
        return cast(list[types.Confusion], self.json("GET", address, params=asked))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/proposals/")
    def propose_version(
        self,
        alignment_pk: int,
        judge: int,
        name: str,
        provider: str,
        model: str,
        *,
        tokens: int | None = None,
    ) -> types.Proposal:
        """Have a model write the next version from this one's differences on the tuning items. `alignment` shows it."""
        sent: dict[str, Any] = {"name": name, "provider": provider, "model": model}
        sent |= given(tokens=tokens)
        address = self.at("alignments/{}/versions/{}/proposals/", alignment_pk, judge)
        return cast(types.Proposal, self.json("POST", address, json=sent))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/searches/")
    def start_search(
        self,
        alignment_pk: int,
        method: types.MethodEnum,
        steps: int,
        *,
        seed: int | None = None,
    ) -> types.VersionSearch:
        """Search for versions with examples: ``random`` or ``greedy``. The alignment's budget caps it."""
        sent: dict[str, Any] = {"method": method, "steps": steps}
        sent |= given(seed=seed)
        return cast(types.VersionSearch, self.json("POST", self.at("alignments/{}/searches/", alignment_pk), json=sent))

    @operation("POST", "/projects/{project}/alignments/{alignment_pk}/versions/{judge}/look/")
    def take_look(self, alignment_pk: int, judge: int, confirm: bool) -> types.AlignmentDetail:
        """Test a version on the locked items. It is counted, written to the audit trail, and can't be taken back."""
        sent: dict[str, Any] = {"confirm": confirm}
        address = self.at("alignments/{}/versions/{}/look/", alignment_pk, judge)
        return cast(types.AlignmentDetail, self.json("POST", address, json=sent))

    @operation("GET", "/projects/{project}/imports/")
    def imports(self) -> Iterator[types.Import]:
        """The project's imports."""
        return self.pages(self.at("imports/"))

    @operation("GET", "/projects/{project}/imports/{file_import}/")
    def get_import(self, file_import: int) -> types.Import:
        """State and report of an import."""
        return cast(types.Import, self.json("GET", self.at("imports/{}/", file_import)))

    @operation("PATCH", "/projects/{project}/imports/{file_import}/")
    def revise_import(
        self,
        file_import: int,
        *,
        kind: types.ImportKind | None = None,
        mapping: Mapping[str, types.Json] | None = None,
        target: types.Target | None = None,
    ) -> types.Import:
        """Change an import that is not stored yet: its kind, its mapping, its target."""
        sent = given(kind=kind, mapping=mapping, target=target)
        return cast(types.Import, self.json("PATCH", self.at("imports/{}/", file_import), json=sent))

    @operation("DELETE", "/projects/{project}/imports/{file_import}/")
    def discard_import(self, file_import: int) -> None:
        """Delete an import that stored nothing, with its files."""
        self.send("DELETE", self.at("imports/{}/", file_import))

    @operation("POST", "/projects/{project}/imports/{file_import}/also/")
    def import_also(self, file_import: int, kind: types.ImportKind) -> types.Import:
        """Open another import of the same files, as another kind."""
        sent: dict[str, Any] = {"kind": kind}
        return cast(types.Import, self.json("POST", self.at("imports/{}/also/", file_import), json=sent))

    @operation("POST", "/projects/{project}/imports/{file_import}/check/")
    def check_import(self, file_import: int) -> types.Import:
        """Check a large import again, in the background."""
        return cast(types.Import, self.json("POST", self.at("imports/{}/check/", file_import)))

    @operation("POST", "/projects/{project}/imports/{file_import}/apart/")
    def take_apart(self, file_import: int) -> types.Import:
        """Replace the import of a study by separate imports, one per kind. Returns the first."""
        return cast(types.Import, self.json("POST", self.at("imports/{}/apart/", file_import)))

    @operation("GET", "/projects/{project}/studies/")
    def studies(self) -> list[types.Study]:
        """The known studies and tools, and how their files are read."""
        return cast(list[types.Study], self.json("GET", self.at("studies/")))

    @operation("GET", "/projects/{project}/mappings/")
    def mappings(self) -> Iterator[types.SavedMapping]:
        """The saved mappings of the project."""
        return self.pages(self.at("mappings/"))

    @operation("POST", "/projects/{project}/mappings/")
    def save_mapping(
        self,
        name: str,
        kind: types.SavedMappingKindEnum,
        mapping: Mapping[str, types.Json],
    ) -> types.SavedMapping:
        """Save a mapping under a name."""
        sent: dict[str, Any] = {"name": name, "kind": kind, "mapping": mapping}
        return cast(types.SavedMapping, self.json("POST", self.at("mappings/"), json=sent))

    @operation("GET", "/projects/{project}/mappings/{mapping}/")
    def mapping(self, mapping: int) -> types.SavedMapping:
        """One saved mapping."""
        return cast(types.SavedMapping, self.json("GET", self.at("mappings/{}/", mapping)))

    @operation("DELETE", "/projects/{project}/mappings/{mapping}/")
    def delete_mapping(self, mapping: int) -> None:
        """Delete a saved mapping."""
        self.send("DELETE", self.at("mappings/{}/", mapping))

    @operation("GET", "/projects/{project}/uploads/{upload}/")
    def upload_state(self, upload: str) -> types.UploadState:
        """How many bytes of a file the server has."""
        return cast(types.UploadState, self.json("GET", self.at("uploads/{}/", upload)))

    @operation("GET", "/projects/{project}/transfers/")
    def transfers(self) -> Iterator[types.Transfer]:
        """The user's own transfers, newest first."""
        return self.pages(self.at("transfers/"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/")
    def transfer(self, transfer: str) -> types.Transfer:
        """The progress and the result of a transfer."""
        return cast(types.Transfer, self.json("GET", self.at("transfers/{}/", transfer)))

    @operation("DELETE", "/projects/{project}/transfers/{transfer}/")
    def remove_transfer(self, transfer: str) -> None:
        """Delete a transfer and its file on the server."""
        self.send("DELETE", self.at("transfers/{}/", transfer))
