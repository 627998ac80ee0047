"""Judges and runs in a researcher's browser."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from judging import requests, runs
from judging.models import Attempt, Call, Judge, JudgeRun
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import declared, started, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def page(client: Client, name: str, /, *parts: Any, **query: Any) -> str:
    answer = client.get(reverse(name, args=["kassa", *parts]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def post(client: Client, name: str, /, *parts: Any, **sent: Any) -> str:
    answer = client.post(reverse(name, args=["kassa", *parts]), sent, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def boris(cast: Cast) -> Client:
    return cast.client("boris")


DECLARATION = {
    "provider": "simulated",
    "model": "sim-steady",
    "name": "Steady, terse",
    "grouping": "single",
    "anchor_detail": "name",
    "explanation": "no",
    "instruction_language": "et",
    "parameters": '{"temperature": 0}',
    "timeout": "240",
    "untested": "on",
}


class TestJudges:
    def test_without_a_provider_the_page_says_what_the_operator_sets(self, boris: Client, settings: Any) -> None:
        settings.PROVIDERS = {}
        assert "PANELBENCH_PROVIDERS=" in page(boris, "judges")
        assert "OPENAI_API_KEY=" in page(boris, "judge_new")

    def test_a_judge_is_declared_with_its_prompt_and_parameters(self, boris: Client, provider: RunningProvider) -> None:
        assert "Add a judge" in page(boris, "judges")
        shown = post(boris, "judge_new", **DECLARATION)
        judge = Judge.objects.get()
        assert (judge.parameters, judge.simulated) == ({"temperature": 0}, True)
        assert (judge.timeout, judge.tries, judge.concurrency) == (240, None, None)
        assert "at most 240 s for a reply, 8 tries of a call, 64 calls" in shown
        assert judge.variant["explanation"] is False
        for chip in ("One criterion per call", "Only the score", "Instructions: eesti", "Simulated provider"):
            assert chip in shown
        assert "Steady, terse" in page(boris, "judges")

    def test_the_same_judge_under_another_name_leads_to_the_one_there_is(
        self, boris: Client, provider: RunningProvider
    ) -> None:
        post(boris, "judge_new", **DECLARATION)
        assert "exists already, as “Steady, terse”" in post(boris, "judge_new", **{**DECLARATION, "name": "Again"})
        assert Judge.objects.count() == 1

    def test_the_fold_names_what_differs_from_the_defaults(self, boris: Client, provider: RunningProvider) -> None:
        assert "Everything is at its default." in page(boris, "judge_new")
        shown = page(boris, "judge_new", study="s2")
        assert "Role and task: POLLUX: evaluator with a reference answer · Reference answer: Shown" in shown
        assert "How Reliable is Multilingual LLM-as-a-Judge?" in shown
        refused = post(boris, "judge_new", **{**DECLARATION, "tries": "0", "repair": "on"})
        assert re.search(r'<details[^>]* id="advanced" open>', refused), "an error inside is seen"
        assert "Ask once more when a reply can&#x27;t be read · Seconds for a reply: 240" in refused

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"parameters": "[1]"}, "Parameters are a JSON object"),
            ({"parameters": '{"model": "x"}'}, "Not a parameter of a judge: model"),
            ({"parameters": '{"temperature": NaN}'}, "JSON does not allow"),
            ({"parameters": '{"stop": "\\u0000"}'}, "JSON does not allow"),
            ({"provider": "nobody"}, "Select a valid choice"),
        ],
    )
    def test_what_cannot_be_sent_is_refused_beside_its_field(
        self, boris: Client, provider: RunningProvider, wrong: dict[str, str], sentence: str
    ) -> None:
        assert sentence in post(boris, "judge_new", **{**DECLARATION, **wrong})
        assert not Judge.objects.exists()

    def test_the_preview_is_what_is_sent(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        judge = declared(cast, grouping="single")
        run = started(cast, judge, items=2)
        item = run.dataset.items.get(external_id="d2")
        shown = page(boris, "judge", judge.pk, dataset=run.dataset_id, rubric_version=run.rubric_version_id, number=2)
        assert "Minu pakk number 2 on kadunud." in shown
        worked(run)
        sent = [attempt.request["messages"] for attempt in Attempt.objects.filter(call__item=item).order_by("call")]
        prompts = requests.preview_prompts(judge=judge, item=item, rubric_version=run.rubric_version)
        assert [prompt.messages for prompt in prompts] == sent


class TestStarting:
    def test_the_forecast_comes_first_and_starts_nothing(
        self, cast: Cast, boris: Client, provider: RunningProvider, settings: Any
    ) -> None:
        object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
        judge = declared(cast, grouping="single", parameters={"max_tokens": 200})
        chosen = {
            "dataset": make.dataset(cast.kassa, 6).pk,
            "rubric_version": make.rubric(cast.kassa).pk,
            "repeats": 2,
            "budget": "0.5",
        }
        shown = page(boris, "run_start", judge.pk, **chosen)
        assert "Start: 24 calls" in shown
        assert "about $0.0" in shown
        assert not JudgeRun.objects.exists()
        assert "24 waiting" in post(boris, "run_start", judge.pk, **chosen)
        assert JudgeRun.objects.get().budget == Decimal("0.5")

    def test_the_forecast_is_that_of_the_chosen_judges_model(
        self, cast: Cast, boris: Client, provider: RunningProvider, settings: Any
    ) -> None:
        object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
        about = {"dataset": make.dataset(cast.kassa, 6).pk, "rubric_version": make.rubric(cast.kassa).pk}
        free, priced = declared(cast, "sim-harsh"), declared(cast, parameters={"max_tokens": 200})
        for judge in (priced, free, priced):
            cost = page(boris, "run_start", judge.pk, **about).partition("<dt>Cost</dt>")[2].partition("</dd>")[0]
            assert ("about $0.0" in cost, "free" in cost) == (judge == priced, judge == free), cost

    def test_the_forecast_is_near_what_the_run_takes(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=8)
        forecast = runs.forecast(judge=run.judge, dataset=run.dataset, rubric_version=run.rubric_version)
        done = worked(run)
        assert (forecast.calls, forecast.verdicts) == (done.planned, sum(done.verdicts.values()))
        assert forecast.tokens_in == pytest.approx(done.tokens_in, rel=0.1)

    def test_a_budget_without_a_price_is_refused_where_it_is_typed(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        chosen = {"dataset": make.dataset(cast.kassa, 1).pk, "rubric_version": make.rubric(cast.kassa).pk}
        shown = page(boris, "run_start", declared(cast).pk, **chosen, repeats=1, budget="5")
        assert "so a budget can&#x27;t be guaranteed" in shown
        assert "Start: " not in shown

    def test_an_address_fills_in_the_form_and_says_what_it_could_not_use(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        judge, dataset, rubric = declared(cast), make.dataset(cast.kassa, 6), make.rubric(cast.kassa)
        shown = page(boris, "run_start", judge.pk, repeats=4, budget="x", again=1, temperature=2)
        assert 'name="repeats" value="4"' in shown and 'name="again" value="True"' in shown
        assert "The form has no field “temperature”" in shown and "“Budget in USD” in the address: Enter a num" in shown
        about = {"dataset": dataset.pk, "rubric_version": rubric.pk}
        assert "Start: 6 calls" in page(boris, "run_start", judge.pk, **about), "repeats keep their initial value"
        assert "Select a valid choice" in page(boris, "run_start", judge.pk, **about, selection=10**30)
        post(boris, "run_start", judge.pk, **about, repeats=1)
        again = page(boris, "run_start", judge.pk, **about, again=1)
        assert 'value="yes" required checked' in again and again.count('name="again"') == 2
        assert 'value="yes" required>' in page(boris, "run_start", judge.pk, **about)
        assert "12 waiting" in post(boris, "run_start", judge.pk, **about, repeats=2, again="yes")

    def test_an_address_fills_in_audits_judges_and_designs(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        judge, dataset, rubric = declared(cast), make.dataset(cast.kassa, 2), make.rubric(cast.kassa)
        audit = page(boris, "audit_start", judge.pk, changes=["typos_10", "nonsense"], seed=7)
        assert audit.count(" checked") == 2 and 'name="seed" value="7"' in audit
        about = {"dataset": dataset.pk, "rubric_version": rubric.pk}
        assert "This field is required" in page(boris, "audit_start", judge.pk, **about), "no change is chosen"
        assert "Select a valid choice" in page(boris, "audit_start", judge.pk, changes="typos_999")
        new = page(
            boris, "judge_new", model="sim-harsh", grouping="single", parameters='{"temperature": 0}', tries="no"
        )
        assert 'value="sim-harsh"' in new and "“Tries of a call” in the address: Enter a whole number." in new
        assert re.search(r'name="grouping" value="single"[^>]* checked', new) and "{&quot;temperature&quot;: 0}" in new
        assert 'name="temperature" value="0, 0.7"' in page(boris, "design_new", temperature="0, 0.7")

    def test_the_estimate_says_why_earlier_replies_are_not_used(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        asked = started(cast, declared(cast, parameters={"temperature": 0}), items=3)
        worked(asked)
        warm = declared(cast, parameters={"temperature": 1})
        about = {"dataset": asked.dataset_id, "rubric_version": asked.rubric_version_id}
        shown = " ".join(unescape(page(boris, "run_start", warm.pk, **about)).split())
        assert f"3 calls by <bdi>{asked.judge}</bdi> on quality v1: other parameters (temperature)" in shown
        single = declared(cast, "sim-harsh", grouping="single", parameters={"temperature": 0})
        later = make.rubric(cast.kassa, make.criterion("fluency"))
        body = {"judge": single.pk, "dataset": asked.dataset_id, "rubric_version": later.pk}
        found = boris.post("/api/v1/projects/kassa/runs/forecast/", body, content_type="application/json").json()
        why = "another model (sim-steady); other messages (grouping); another rubric"
        earlier = {"judge": asked.judge_id, "rubric_version": asked.rubric_version_id}
        assert found["unused"] == [{**earlier, "calls": 3, "why": why}]
        same = page(boris, "run_start", asked.judge_id, **about)
        assert "3 of 3" in same and "Replies not used" not in same

    def test_an_empty_project_is_told_what_it_lacks(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        judge = declared(cast)
        assert "no dataset yet" in page(boris, "run_start", judge.pk)
        make.dataset(cast.kassa, 1)
        assert "no published rubric yet" in page(boris, "judge", judge.pk)


class TestRun:
    def test_progress_moves_and_stops_asking_when_the_run_is_done(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast), items=2)
        assert 'hx-trigger="every 2s"' in page(boris, "run", run.pk)
        assert "0 of 2 calls" in page(boris, "run_live", run.pk)
        worked(run)
        assert boris.get(reverse("run_live", args=["kassa", run.pk])).headers["HX-Refresh"] == "true"
        shown = page(boris, "run", run.pk)
        assert "100 % done" in shown
        assert "hx-trigger" not in shown

    def test_without_a_worker_the_page_says_so(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        assert "No worker is running" in page(boris, "run", run.pk)
        live = boris.get(reverse("run_live", args=["kassa", run.pk]), headers={"HX-Request": "true"})
        assert "No worker is running" in live.content.decode()

    def test_pause_resume_and_cancel(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        assert "Paused by hand." in post(boris, "run_move", run.pk, to="pause")
        assert "Running" in post(boris, "run_move", run.pk, to="resume")
        assert "Cancelled" in post(boris, "run_move", run.pk, to="cancel")
        assert "nothing was changed" in post(boris, "run_move", run.pk, to="resume")

    def test_a_spent_budget_is_raised_and_the_run_goes_on(
        self, cast: Cast, boris: Client, provider: RunningProvider, settings: Any
    ) -> None:
        object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
        run = started(cast, declared(cast, parameters={"max_tokens": 200}), items=2, budget=Decimal(0))
        worked(run)
        assert "The budget is spent" in page(boris, "run", run.pk)
        assert "Running" in post(boris, "run_budget", run.pk, budget="1", resume="yes")
        assert worked(run).finished

    def test_failed_calls_are_asked_again(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        Call.objects.filter(run=run).update(state="failed", tries=8)
        assert "Repeat 1 failed call" in page(boris, "run", run.pk)
        assert "Choose which calls to repeat." in post(boris, "run_move", run.pk, to="rerun")
        assert run.calls.get().state == "failed", "nothing chosen, nothing repeated"
        assert "1 call will be repeated." in post(boris, "run_move", run.pk, to="rerun", status="failed")
        refused = post(boris, "run_move", run.pk, to="rerun", status="failed")
        assert "No call of this run can be repeated." in refused and "0 calls will be repeated" not in refused
        assert worked(run).settled == 1

    def test_an_unreadable_reply_is_shown_with_its_text(
        self, cast: Cast, boris: Client, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast, "sim-steady:unparsable"), items=1)
        worked(run)
        shown = page(boris, "run", run.pk)
        assert "fluency <b> Unreadable" in shown
        assert run.verdicts.count() == 2 and "Unreadable · 1 call<" in shown, "one reply about two criteria is one call"
        assert "no price is" not in shown and ">free<" in shown and "the provider is simulated" in shown
        about = {"dataset": run.dataset_id, "rubric_version": run.rubric_version_id, "repeats": 1}
        start = boris.get(reverse("run_start", args=["kassa", run.judge_id]), about).content.decode()
        assert "no price is" not in start.lower() and "<dt>Cost</dt><dd>free</dd>" in start
        assert "depends on whom you ask" in shown
        call = page(boris, "call", run.pk, run.calls.get().pk)
        assert "depends on whom you ask" in call
        assert "Minu pakk number 1 on kadunud." in call
        assert "chatcmpl-simulated" in call

    def test_the_log_is_filtered_searched_and_paged(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        items = [make.item_row(number, language="en" if number == 3 else "et") for number in range(1, 61)]
        provider.control(next=["refusal"])
        run = runs.start_judge_run(
            judge=declared(cast), dataset=make.dataset(cast.kassa, items), rubric_version=make.rubric(cast.kassa)
        )
        worked(run)

        def items_shown(**query: Any) -> list[str]:
            shown = boris.get(reverse("run", args=["kassa", run.pk]), query)
            return [call.item.external_id for call in shown.context["log"]]

        assert len(items_shown(status="refused")) == 1
        assert items_shown(language="en") == ["d3"]
        assert items_shown(q="Pakk 17") == ["d17"]
        assert len(items_shown(q="Simulated:")) == 50
        first = boris.get(reverse("run", args=["kassa", run.pk])).context
        assert items_shown(after=first["next_after"]) == [f"d{number}" for number in range(51, 61)]

    def test_runs_are_listed_with_how_far_they_are(self, cast: Cast, boris: Client, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=3)
        worked(run)
        for name, parts in (("runs", ()), ("judge", (run.judge_id,))):
            shown = page(boris, name, *parts)
            assert "3 of 3" in shown
            assert "Finished" in shown
