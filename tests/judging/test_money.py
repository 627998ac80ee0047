"""Money: caps hold whatever the provider does, every request is booked before it is sent, and nothing is paid twice."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Project
from accounts.refusals import Refused
from judging import calls, judges, runs, work_sessions
from judging.asking import leases
from judging.calls import CALLS
from judging.models import Attempt, Call, Judge, JudgeRun, ProviderAllowance
from judging.templatetags.judging import usd
from panelbench import environment
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import declared, started
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

PRICE_IN, PRICE_OUT = Decimal(2), Decimal(80)
ROOT = "/api/v1/projects/kassa"


@pytest.fixture
def priced(provider: RunningProvider, settings: Any) -> RunningProvider:
    """The simulated provider with prices; `paid` has the same server declared as one that is not simulated."""
    prices = {"sim-steady": [str(PRICE_IN), str(PRICE_OUT)], "sim-steady:no_usage": ["2", "80"]}
    prices |= {f"sim-steady:{kind}": ["2", "80"] for kind in ("slow", "dropped", "not_json")}
    entry = {"base_url": provider.base_url, "prices": prices}
    entries = [{"name": "simulated", "simulated": True, **entry}, {"name": "paid", **entry}]
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps(entries)})
    return provider


def limited(cast: Cast, model: str = "sim-steady", tokens: int = 2000, **options: Any) -> Judge:
    """A judge whose replies have a limit, so that a cap can be kept."""
    options = {"provider": "simulated", **options}
    name, parameters = f"{model} {options}", {"max_tokens": tokens}
    return judges.declare(project=cast.kassa, name=name, model=model, parameters=parameters, **options)


def started_again(run: JudgeRun, judge: Judge | None = None, **options: Any) -> JudgeRun:
    about = {"dataset": run.dataset, "rubric_version": run.rubric_version}
    return runs.start_judge_run(judge=judge or run.judge, **about, again=True, **options)


def billed(provider: RunningProvider) -> Decimal:
    """What the provider would ask for."""
    counts = provider.control()
    return (PRICE_IN * counts["tokens_in"] + PRICE_OUT * counts["tokens_out"]) / 1_000_000


def until_at_rest(run: JudgeRun) -> runs.RunProgress:
    for _round in range(40):
        Call.objects.filter(run=run).update(not_before=None)
        if not work_sessions.work_on_run(run.pk) and (
            runs.run_progress(run).finished or JudgeRun.objects.get(pk=run.pk).state != "running"
        ):
            break
    run.refresh_from_db()
    return runs.run_progress(run)


class TestCaps:
    def test_replies_that_grow_dearer_never_overspend(self, cast: Cast, priced: RunningProvider) -> None:
        priced.control(dearer=60)
        run = started(cast, limited(cast), items=40, budget=Decimal("1.00"))
        done = until_at_rest(run)
        assert run.state == "paused"
        assert "budget is spent" in run.reason
        assert done.cost == billed(priced).quantize(Decimal("1e-8"))
        assert Decimal("0.7") < done.cost <= Decimal("1.00")

    @pytest.mark.parametrize(
        ("kind", "outcome"), [("no_usage", "replied"), ("dropped", "unavailable"), ("not_json", "unavailable")]
    )
    def test_what_nobody_counts_is_booked_at_its_worst_case(
        self, cast: Cast, priced: RunningProvider, kind: str, outcome: str
    ) -> None:
        run = started(cast, limited(cast, f"sim-steady:{kind}", tokens=500), items=30, budget=Decimal("0.5"))
        done = until_at_rest(run)
        assert run.state == "paused"
        assert "budget is spent" in run.reason
        assert billed(priced) <= done.cost <= Decimal("0.5")
        assert done.cost == done.estimated
        assert set(Attempt.objects.values_list("outcome", "estimated")) == {(outcome, True)}

    def test_a_timeout_is_booked_at_its_worst_case(self, cast: Cast, priced: RunningProvider) -> None:
        priced.control(slowness=30)
        judge = limited(cast, "sim-steady:slow", tokens=500, provider="simulated", timeout=1, tries=2)
        run = started(cast, judge, items=1, budget=Decimal(1))
        done = until_at_rest(run)
        assert (done.failed, done.attempts) == (1, 2)
        assert done.cost == done.estimated == sum(Attempt.objects.values_list("reserved", flat=True))

    def test_what_cannot_be_sent_or_is_refused_costs_nothing(self, cast: Cast, priced: RunningProvider) -> None:
        priced.control(next=["rate_limit", "server_error", "forbidden"])
        run = started(cast, limited(cast), items=1, budget=Decimal(1))
        assert until_at_rest(run).cost == 0

    @pytest.mark.parametrize(
        ("parameters", "words"), [({}, "sets no limit on the tokens"), ({"max_tokens": "400"}, "sets no limit")]
    )
    def test_a_cap_without_a_token_limit_is_refused_everywhere(
        self, cast: Cast, priced: RunningProvider, parameters: dict[str, Any], words: str
    ) -> None:
        judge = declared(cast, parameters=parameters)
        about = {"dataset": make.dataset(cast.kassa, 1).pk, "rubric_version": make.rubric(cast.kassa).pk}
        boris = cast.client("boris")
        asked = {"judge": judge.pk, **about, "budget": "1"}
        answer = boris.post(f"{ROOT}/runs/", asked, content_type="application/json")
        assert answer.status_code == 422
        assert words in answer.json()["fields"]["budget"][0]
        page = boris.get(reverse("run_start", args=["kassa", judge.pk]), {**about, "repeats": 1, "budget": "1"})
        assert words in page.content.decode()
        names = ["--project", "kassa", "--judge", judge.name, "--dataset", "Dialogues", "--rubric", "quality"]
        with pytest.raises(CommandError, match=words):
            call_command("run_judge", *names, "--budget", "1", stdout=StringIO())
        run = boris.post(f"{ROOT}/runs/", {"judge": judge.pk, **about}, content_type="application/json").json()
        answer = boris.put(f"{ROOT}/runs/{run['id']}/budget/", {"budget": "2"}, content_type="application/json")
        assert words in answer.json()["fields"]["budget"][0]

    def test_two_workers_cannot_reserve_the_same_money(self, cast: Cast, priced: RunningProvider) -> None:
        run = started(cast, limited(cast), items=9)
        [first] = calls.take_calls(run=run, limit=1).requests
        worst = max(call_request.worst_case for call_request in calls.take_calls(run=run, limit=8).requests)
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        for budget, expected in ((worst * 3, [2, 0]), (worst * Decimal("1.5"), [1, 0])):
            runs.rebudget(run=run, budget=budget)
            taken = [calls.take_calls(run=run, limit=2), calls.take_calls(run=run, limit=2)]
            assert [len(each.requests) for each in taken] == expected, "two at most before a bill is known"
            assert taken[1].held_up
            assert not taken[1].spent, "requests in flight may turn out cheaper: not spent yet"
            for each in taken:
                CALLS.release(lease=each.lease)
        assert first.worst_case

    def test_a_token_limit_is_never_dropped(self, cast: Cast, priced: RunningProvider) -> None:
        run = started(cast, limited(cast), items=1)
        priced.control(next=["no_max_tokens"])
        assert until_at_rest(run).finished
        attempt = Attempt.objects.get()
        assert attempt.request["dropped"] == ["max_tokens"]


class TestAttempts:
    def test_a_row_is_written_before_the_request_is_sent(self, cast: Cast, priced: RunningProvider) -> None:
        run = started(cast, limited(cast), items=2)
        taken = calls.take_calls(run=run, limit=2)
        rows = Attempt.objects.order_by("pk")
        assert [(each.outcome, each.reserved > 0, each.cost) for each in rows] == [("pending", True, None)] * 2
        first, second = (call_request.attempt.pk for call_request in taken.requests)
        assert CALLS.mark_sent(lease=taken.lease, attempts=[first]) == {first}
        assert CALLS.release(lease=taken.lease) == 2
        assert list(rows.values_list("pk", "outcome", "estimated")) == [(first, "lost", True)], "never sent, never paid"
        assert runs.run_progress(run).cost == rows.get().reserved
        assert not CALLS.mark_sent(lease=taken.lease, attempts=[second])

    def test_nothing_goes_out_of_a_run_that_was_paused_meanwhile(self, cast: Cast, priced: RunningProvider) -> None:
        run = started(cast, limited(cast), items=1)
        taken = calls.take_calls(run=run, limit=1)
        runs.pause_run(run=run)
        assert not CALLS.mark_sent(lease=taken.lease, attempts=[taken.requests[0].attempt.pk])

    def test_a_request_lost_with_its_worker_counts_and_is_tried_again(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        run = started(cast, limited(cast), items=1)
        taken = calls.take_calls(run=run, limit=1)
        CALLS.mark_sent(lease=taken.lease, attempts=[taken.requests[0].attempt.pk])
        assert CALLS.sweep(now=timezone.now() + leases.LEASE * 2) == [run.pk]
        done = until_at_rest(run)
        assert (done.settled, done.lost, done.attempts) == (1, 1, 2)
        assert done.estimated == Attempt.objects.get(outcome="lost").reserved

    def test_the_dead_are_no_holders(self, cast: Cast, priced: RunningProvider) -> None:
        run = started(cast, limited(cast), items=6)
        for _worker in range(leases.MOST_HOLDERS):
            calls.take_calls(run=run, limit=1)
        assert calls.take_calls(run=run, limit=1).requests == []
        Call.objects.filter(run=run, state="leased").update(leased_until=timezone.now())
        assert calls.take_calls(run=run, limit=1).requests


def allow(*arguments: str) -> str:
    out = StringIO()
    call_command("allow_provider", *arguments, stdout=out)
    return out.getvalue()


class TestAllowances:
    def test_a_provider_that_is_not_allowed_is_refused_everywhere_in_one_sentence(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        sentence = "This project may not use the provider “paid”"
        boris = cast.client("boris")
        asked = {"name": "J", "provider": "paid", "model": "sim-steady"}
        answer = boris.post(f"{ROOT}/judges/", asked, content_type="application/json")
        assert answer.status_code == 409
        assert sentence in answer.json()["detail"]
        form = {**asked, "grouping": "single", "anchor_detail": "name", "explanation": "no"}
        form |= {"instruction_language": "en", "untested": "on"}
        page = boris.post(reverse("judge_new", args=["kassa"]), form)
        assert sentence in page.content.decode()
        make.dataset(cast.kassa, 1)
        make.rubric(cast.kassa)
        names = ["--project", "kassa", "--dataset", "Dialogues", "--rubric", "quality"]
        with pytest.raises(CommandError, match=sentence):
            call_command("run_judge", *names, "--judge", "J", "--provider", "paid", "--model", "sim-steady")
        assert not Judge.objects.exists()

    def test_starting_resuming_and_sending_refuse_what_was_revoked(self, cast: Cast, priced: RunningProvider) -> None:
        assert allow("kassa", "paid", "--cap", "1", "--cap-per-day", "0.5") == (
            "kassa: paid, spent $0.0000 of $1.00, today $0.0000 of $0.50\n"
        )
        judge = limited(cast, provider="paid")
        run = started(cast, judge, items=2)
        assert allow("kassa", "paid", "--revoke") == "kassa may not use paid any more.\n"
        assert until_at_rest(run).attempts == 0
        assert run.state == "paused"
        assert "may not use the provider “paid”" in run.reason
        with pytest.raises(Refused, match="may not use"):
            runs.resume_run(run=run)
        with pytest.raises(Refused, match="may not use"):
            started_again(run)
        boris = cast.client("boris")
        answer = boris.post(f"{ROOT}/runs/{run.pk}/resume/", content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (409, "provider_not_allowed")
        moved = boris.post(reverse("run_move", args=["kassa", run.pk]), {"to": "resume"}, follow=True)
        assert "may not use the provider" in moved.content.decode()

    @pytest.mark.parametrize(("cap", "words"), [("--cap", "Ask the operator"), ("--cap-per-day", "midnight UTC")])
    def test_the_projects_cap_holds_over_all_its_runs(
        self, cast: Cast, priced: RunningProvider, cap: str, words: str
    ) -> None:
        allow("kassa", "paid", cap, "0.6")
        priced.control(dearer=40)
        judge = limited(cast, provider="paid", tokens=1000)
        first = started(cast, judge, items=20)
        for run in (first, started_again(first)):
            until_at_rest(run)
            assert run.state == "paused"
            assert words in run.reason
        assert Decimal("0.4") < billed(priced) <= Decimal("0.6")
        page = cast.client("boris").get(reverse("judges", args=["kassa"])).content.decode()
        assert "of $0.60" in page

    def test_yesterdays_money_is_not_todays(self, cast: Cast, priced: RunningProvider) -> None:
        allow("kassa", "paid", "--cap-per-day", "0.2")
        priced.control(dearer=100)
        run = started(cast, limited(cast, provider="paid", tokens=1000), items=30)
        until_at_rest(run)
        assert run.state == "paused"
        Attempt.objects.update(at=timezone.now() - timedelta(days=1))
        assert runs.resume_run(run=run)
        assert until_at_rest(run).attempts > 0

    def test_a_projects_cap_needs_a_price_and_a_token_limit(self, cast: Cast, priced: RunningProvider) -> None:
        allow("kassa", "paid", "--cap", "1")
        run = started(cast, limited(cast))
        judge = judges.declare(project=cast.kassa, name="J", provider="paid", model="sim-steady")
        with pytest.raises(Refused, match=r"limited what this project can spend at paid\. This judge sets no limit"):
            started_again(run, judge)
        unknown = judges.declare(project=cast.kassa, name="K", provider="paid", model="sim-harsh")
        with pytest.raises(Refused, match="No price is declared for sim-harsh"):
            started_again(run, unknown)

    def test_a_project_is_made_with_what_it_may_use(self, cast: Cast, priced: RunningProvider) -> None:
        out = StringIO()
        make_one = ["create_project", "Uus", "--lead", cast.aino.email, "--slug", "uus"]
        call_command(*make_one, "--allow-provider", "paid", "--cap", "3", stdout=out)
        allowed = ProviderAllowance.objects.get()
        assert (allowed.project.slug, allowed.provider, allowed.cap_total) == ("uus", "paid", 3)
        assert "uus: paid, spent $0.0000 of $3.00" in allow()
        with pytest.raises(CommandError, match="not declared"):
            call_command("create_project", "Veel", "--lead", cast.aino.email, "--allow-provider", "nobody")
        assert not Project.objects.filter(name="Veel").exists()

    def test_the_names_of_what_is_not_there_are_said(self, cast: Cast, priced: RunningProvider) -> None:
        wrong: Sequence[tuple[list[str], str]] = [
            (["nowhere", "paid"], "no project"),
            (["kassa", "nobody"], "not declared"),
            (["kassa", "paid", "--cap", "-1"], "must be from 0"),
        ]
        for arguments, words in wrong:
            with pytest.raises(CommandError, match=words):
                allow(*arguments)


class TestTwice:
    @pytest.fixture
    def asked(self, cast: Cast, provider: RunningProvider) -> dict[str, int]:
        about = {"dataset": make.dataset(cast.kassa, 3).pk, "rubric_version": make.rubric(cast.kassa).pk}
        return {"judge": declared(cast).pk, **about}

    def post(self, client: Client, path: str, body: Any, **headers: str) -> Any:
        return client.post(f"{ROOT}/{path}", body, content_type="application/json", headers=headers)

    def test_the_same_key_starts_one_run(self, cast: Cast, asked: dict[str, int]) -> None:
        boris = cast.client("boris")
        first, second = (self.post(boris, "runs/", asked, **{"Idempotency-Key": "abc"}) for _time in range(2))
        third = self.post(boris, "runs/", {**asked, "key": "abc"})
        assert first.status_code == second.status_code == third.status_code == 201
        assert first.json()["id"] == second.json()["id"] == third.json()["id"]
        other = self.post(boris, "runs/", {**asked, "repeats": 2, "key": "abc"})
        assert (other.status_code, other.json()["code"]) == (409, "key_used")

    def test_the_same_items_again_have_to_be_meant(self, cast: Cast, asked: dict[str, int]) -> None:
        boris = cast.client("boris")
        run = self.post(boris, "runs/", asked).json()
        again = self.post(boris, "runs/", asked)
        assert again.status_code == 422
        assert f"Run {run['id']} already uses this judge on these items: 0 of 3 calls" in again.json()["detail"]
        assert self.post(boris, "runs/", {**asked, "again": True}).status_code == 201

    def test_a_form_sent_twice_starts_one_run(self, cast: Cast, asked: dict[str, int]) -> None:
        boris, at = cast.client("boris"), reverse("run_start", args=["kassa", asked["judge"]])
        chosen = {**asked, "repeats": "1", "budget": ""}
        key = boris.get(at, chosen).context["key"]
        first, second = (boris.post(at, {**chosen, "key": key}) for _time in range(2))
        assert first.url == second.url
        assert JudgeRun.objects.count() == 1
        shown = boris.post(at, chosen).content.decode()
        assert "already uses this judge on these items" in shown
        assert 'name="again"' in shown
        assert JudgeRun.objects.count() == 1
        boris.post(at, {**chosen, "again": "yes"})
        assert JudgeRun.objects.count() == 2

    def test_replies_of_an_earlier_run_are_used_and_a_longer_run_pays_for_what_is_new(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        boris = cast.client("boris")
        items = [make.item_row(1, external_id=name) for name in ("one", "its double")] + [make.item_row(2)]
        judge = limited(cast, "sim-steady", provider="simulated")
        about: dict[str, Any] = {"judge": judge.pk, "dataset": make.dataset(cast.kassa, items).pk}
        about["rubric_version"] = make.rubric(cast.kassa).pk

        def finished(**options: Any) -> tuple[int, dict[str, Any]]:
            run = self.post(boris, "runs/", {**about, **options})
            assert run.status_code == 201, run.content
            until_at_rest(JudgeRun.objects.get(pk=run.json()["id"]))
            seen = boris.get(f"{ROOT}/runs/{run.json()['id']}/").json()
            assert seen["progress"]["finished"]
            return seen["id"], seen["progress"]

        def scores(run: int) -> list[Any]:
            rows = JudgeRun.objects.get(pk=run).verdicts.order_by("item", "criterion", "repeat")
            return list(rows.values_list("item", "criterion", "repeat", "status", "score", "rationale"))

        priced.control(next=["none", "unparsable"])
        first, done = finished()
        assert (done["reused"], priced.control()["requests"]) == (0, 3)
        paid = Decimal(done["cost"])

        forecast = self.post(boris, "runs/forecast/", about).json()
        assert (forecast["calls"], forecast["answered"], Decimal(forecast["cost"])) == (3, 3, 0)
        cost_again, tokens_again = Decimal(forecast["cost_again"]), forecast["tokens_in_again"]
        assert cost_again > 0 == forecast["tokens_in"] < tokens_again
        at = reverse("run_start", args=["kassa", judge.pk])
        shown = html.unescape(boris.get(at, {**about, "repeats": "1"}).content.decode())
        assert "<b>3 of 3</b> calls, by earlier runs of this judge" in shown and 'name="again"' in shown
        assert f"(3 calls, about {tokens_again:,} tokens sent, about {usd(cost_again)})" in shown
        assert "Start: 0 new calls, 3 replies used" in shown
        second, done = finished(budget="0")
        assert (done["reused"], done["attempts"], Decimal(done["cost"]), done["tokens_in"]) == (3, 0, 0, 0)
        page = boris.get(reverse("run", args=["kassa", second])).content.decode()
        assert "3 by replies of earlier runs, at no cost" in page
        call = JudgeRun.objects.get(pk=second).calls.first()
        assert "Reply of an earlier run" in boris.get(reverse("call", args=["kassa", second, call.pk])).content.decode()

        longer, done = finished(repeats=3)
        assert (done["reused"], done["attempts"], priced.control()["requests"]) == (3, 6, 9)
        _again, done = finished(again=True)
        assert (done["reused"], done["attempts"], priced.control()["requests"]) == (0, 3, 12)
        assert Decimal(done["cost"]) > 0 and paid > 0
        assert billed(priced).quantize(Decimal("1e-8")) == sum(Attempt.objects.values_list("cost", flat=True))
        assert [row for row in scores(longer) if row[2] == 1] == scores(second)
        assert scores(second) == scores(first), "what it said, readable or not"

        out = StringIO()
        named = {"judge": judge.name, "dataset": JudgeRun.objects.get(pk=first).dataset.name, "rubric": "quality"}
        named["rubric"] = JudgeRun.objects.get(pk=first).rubric_version.rubric.key
        call_command("run_judge", project="kassa", repeats=4, here=True, stdout=out, **named)
        assert "9 of them are answered by earlier runs and cost nothing" in out.getvalue()
        assert priced.control()["requests"] == 15
        runs.rebudget(run=JudgeRun.objects.get(pk=second), budget=Decimal(1))
        runs.rerun_failed(run=JudgeRun.objects.get(pk=second), statuses=["unparsed"])
        until_at_rest(JudgeRun.objects.get(pk=second))
        assert {row[3] for row in scores(second)} == {"ok"}, "asked again, an earlier reply is no answer"

    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            ("judges/", {"name": "K", "provider": "simulated", "model": "m", "few_shot": 2}, "few_shot"),
            ("judges/", {"name": "K", "provider": "simulated", "model": "m", "variant": {"few_shot": 2}}, "variant"),
            ("runs/", {"temperatur": 1}, "temperatur"),
            ("runs/forecast/", {"few_shot": 2}, "few_shot"),
        ],
    )
    def test_an_unknown_field_is_refused(
        self, cast: Cast, asked: dict[str, int], path: str, body: dict[str, Any], field: str
    ) -> None:
        body = body if path == "judges/" else {**asked, **body}
        answer = self.post(cast.client("boris"), path, body)
        assert answer.status_code == 400
        assert field in answer.json()["fields"]
        assert (Judge.objects.count(), JudgeRun.objects.count()) == (1, 0)
