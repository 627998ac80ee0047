"""A provider that lies about money, in its own process: caps hold by its own count, or the run stops within two calls.

The lies are those of bench/lying_provider.py; every run is capped at $2 and has up to 64 calls in flight.
"""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from bench import lying_provider
from bench.lying_provider import CAP, DEARER, LIES, LIMIT, MODEL, UNDECLARED, asked_under_cap, own_count
from judging import calls, judges, runs, work_sessions
from judging.asking import allowances, bills, leases
from judging.calls import CALLS
from judging.models import Attempt, Call, JudgeRun
from panelbench import environment
from tests import make
from tests.cast import Cast
from tests.conftest import database_url
from tests.workers import wait_for_workers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

WITHIN_TWO_CALLS = 2
NAMES = ["Kõne “üks”", "محادثة ثانية", "e\u0301ta\u0301pe"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with lying_provider.lying_provider() as at:
        yield at


@pytest.fixture(autouse=True)
def own_providers(settings: Any) -> None:
    """What a run declares is withdrawn after the test."""
    settings.PROVIDERS = {}


def of_run(cast: Cast) -> tuple[JudgeRun, str, dict[str, Any]]:
    """The newest run, its page, and the API's answer about it."""
    run, boris = JudgeRun.objects.latest("pk"), cast.client("boris")
    page = boris.get(reverse("run", args=["kassa", run.pk])).content.decode()
    return run, html.unescape(page), boris.get(f"/api/v1/projects/kassa/runs/{run.pk}/").json()


def declared(address: str, settings: Any, lie: str, **changes: Any) -> str:
    """The provider with this lie, declared; returns its name."""
    entry = lying_provider.declaration(address, lie) | changes
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    return str(entry["name"])


def begun(cast: Cast, provider: str, items: Any = 12, **paces: int) -> JudgeRun:
    named: dict[str, Any] = {"name": "Kohtunik “A”", "provider": provider, "model": MODEL}
    judge = judges.declare(project=cast.kassa, **named, parameters={"max_tokens": LIMIT}, **paces)
    about = {"dataset": make.dataset(cast.kassa, items), "rubric_version": make.rubric(cast.kassa)}
    return runs.start_judge_run(judge=judge, **about)


class TestBills:
    @pytest.mark.parametrize("lie", ["x4", "x32", "total_only", "usage_text_x32", "huge", "batch_x32"])
    def test_sixty_four_in_flight_are_stopped_within_two_calls_that_bill_more(
        self, cast: Cast, address: str, lie: str
    ) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert (outcome.state, outcome.sent) == ("paused", WITHIN_TWO_CALLS)
        assert outcome.lies <= WITHIN_TWO_CALLS
        booked = Attempt.objects.filter(doubt="too_many")
        assert booked.count() == WITHIN_TWO_CALLS
        if lie != "huge":  # more than the column holds
            assert outcome.booked == outcome.due.quantize(Decimal("1e-8"))
        run, page, shown = of_run(cast)
        for reason in (run.reason, page, shown["reason"]):
            assert "The provider bills more than was declared" in reason
        assert "budget is spent" not in run.reason
        assert "2 bills not believed" in page
        assert (shown["state"], shown["progress"]["doubted"]) == ("paused", 2)

    @pytest.mark.parametrize(
        "lie", ["refusal_x32", "refused_form_x32", "refused_form_odd_x32", "batch_refused_form_x32"]
    )
    def test_a_refusal_that_bills_is_not_asked_about_in_another_form(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert (outcome.state, outcome.sent, outcome.lies) == ("paused", WITHIN_TWO_CALLS, WITHIN_TWO_CALLS)
        due = outcome.due.quantize(Decimal("1e-8"))
        # Where only the sum of the tokens is stated, all of them are booked at the price of replies.
        assert outcome.booked >= due if lie == "refused_form_odd_x32" else outcome.booked == due
        assert outcome.due <= CAP
        assert "for a request that it did not answer" in of_run(cast)[0].reason

    @pytest.mark.parametrize(
        "lie",
        [
            "usage_comma_x32",
            "usage_fraction_x32",
            "other_names_x32",
            "unknown_names_x32",
            "total_alone_x32",
            "reasoning_apart_x32",
            "stated_cost_x32",
        ],
    )
    def test_a_bill_counts_in_whatever_form_the_reply_states_it(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert (outcome.state, outcome.sent, outcome.is_kept) == ("paused", WITHIN_TWO_CALLS, True)
        assert outcome.due <= outcome.booked < outcome.due + Decimal("0.1")
        run, page, _shown = of_run(cast)
        for words in (run.reason, page):
            assert "The provider bills more than was declared" in words
        assert set(Attempt.objects.values_list("doubt", flat=True)) == {"too_many"}

    def test_an_error_that_names_a_dearer_model_is_booked_at_its_price(self, cast: Cast, address: str) -> None:
        outcome = asked_under_cap(address, "error_dearer", cast.kassa)
        assert (outcome.state, outcome.sent) == ("paused", WITHIN_TWO_CALLS)
        assert outcome.booked == outcome.due

    @pytest.mark.parametrize(
        ("prices", "ends"),
        [({MODEL: [0, 0]}, "finished"), ({MODEL: [0, 0], DEARER: [200, 6000]}, "paused")],
    )
    def test_a_free_model_is_replaced_by_none_without_a_price(
        self, cast: Cast, address: str, settings: Any, prices: dict[str, Any], ends: str
    ) -> None:
        """Where nothing has a price, as on a server of one's own, names do not matter."""
        run = begun(cast, declared(address, settings, "undeclared_organisation", prices=prices), 40)
        work_sessions.work_on_run(run.pk)
        run.refresh_from_db()
        assert ("paused" if run.state == "paused" else "finished" if runs.run_progress(run).finished else "") == ends
        if ends == "paused":
            assert f"“acme/{UNDECLARED}” instead of “{MODEL}”, and no price is declared for it" in run.reason

    @pytest.mark.parametrize("lie", ["x32_later", "batch_x32_later"])
    def test_a_provider_that_was_honest_first_keeps_the_cap_too(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert outcome.state == "paused"
        assert outcome.sent > lying_provider.HONEST_FIRST
        assert outcome.due == outcome.booked
        assert outcome.due <= CAP or outcome.lies <= WITHIN_TWO_CALLS

    @pytest.mark.parametrize("lie", ["usage_0", "usage_1", "usage_negative", "usage_missing", "usage_true"])
    def test_a_count_that_cannot_be_true_is_booked_at_the_worst_case(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert outcome.due <= outcome.booked <= CAP
        estimated = Attempt.objects.filter(outcome="replied")
        assert set(estimated.values_list("estimated", flat=True)) == {True}
        assert set(estimated.values_list("doubt", flat=True)) <= {"too_few", "uncounted"}
        _run, page, shown = of_run(cast)
        assert f"{estimated.count()} bills not believed" in page
        assert shown["progress"]["doubted"] == estimated.count()

    def test_what_failed_may_be_billed_and_counts_against_the_cap(self, cast: Cast, address: str) -> None:
        outcome = asked_under_cap(address, "storm_500", cast.kassa)
        assert outcome.booked == 0
        assert outcome.due <= CAP
        run, _page, _shown = of_run(cast)
        assert run.state == "paused"
        assert "If it bills these, the next call could exceed a limit." in run.reason
        assert runs.resume_run(run=run), "by a person who has looked at the bill"
        assert calls.take_calls(run=run, limit=5).requests

    def test_an_honest_provider_is_asked_faster_and_faster(self, cast: Cast, address: str, settings: Any) -> None:
        run = begun(cast, declared(address, settings, "honest"), 30)
        widths = []
        while taken := calls.take_calls(run=run, limit=100).requests:
            widths.append(len(taken))
            for each in taken:
                settled = {"outcome": "replied", "cost": each.worst_case, "tokens_in": 1, "tokens_out": 1}
                Attempt.objects.filter(pk=each.attempt.pk).update(**settled)
                Call.objects.filter(pk=each.call.pk).update(state="settled", lease=None, leased_until=None)
        assert widths == [2, 4, 8, 16]
        runs.pause_run(run=run)
        runs.resume_run(run=run)
        Call.objects.filter(run=run).update(state="waiting")
        assert len(calls.take_calls(run=run, limit=100).requests) == 2, "resumed, it begins again"

    def test_other_runs_of_the_model_are_stopped_with_it(self, cast: Cast, address: str, settings: Any) -> None:
        provider = declared(address, settings, "x8")
        first = begun(cast, provider)
        second = runs.start_judge_run(
            judge=judges.declare(project=cast.kassa, name="Another", provider=provider, model=MODEL),
            dataset=first.dataset,
            rubric_version=first.rubric_version,
        )
        work_sessions.work_on_run(first.pk)
        second.refresh_from_db()
        assert second.state == "paused"
        assert "bills more than was declared" in second.reason


class TestModels:
    def test_a_dearer_model_is_booked_at_its_price_and_stops_the_run(self, cast: Cast, address: str) -> None:
        outcome = asked_under_cap(address, "dearer_model", cast.kassa)
        assert (outcome.state, outcome.sent) == ("paused", WITHIN_TWO_CALLS)
        assert outcome.booked == outcome.due > Decimal("0.4")
        run, page, shown = of_run(cast)
        assert f"answered with the model “{DEARER}”, which costs more than “{MODEL}”" in run.reason
        assert "another model" in page
        assert shown["served_models"] == [{"model": DEARER, "replies": 2, "is_other": True}]

    def test_an_undeclared_model_stops_the_run(self, cast: Cast, address: str) -> None:
        outcome = asked_under_cap(address, "undeclared_model", cast.kassa)
        assert (outcome.state, outcome.sent) == ("paused", WITHIN_TWO_CALLS)
        run, page, shown = of_run(cast)
        assert f"“{UNDECLARED}” instead of “{MODEL}”, and no price is declared for it" in run.reason
        assert UNDECLARED in page
        assert shown["served_models"][0]["is_other"]
        assert set(Attempt.objects.values_list("doubt", "estimated")) == {("other_model", True)}

    @pytest.mark.parametrize("lie", ["cheaper_model", "snapshot", "no_name"])
    def test_a_cheaper_model_or_a_snapshot_is_booked_as_what_it_is(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert (outcome.state, outcome.sent) == ("finished", lying_provider.CALLS)
        assert outcome.booked == outcome.due
        _run, _page, shown = of_run(cast)
        assert shown["state"] == "finished", "not running, when it has finished"
        others = {"cheaper_model": [True], "snapshot": [False], "no_name": []}
        assert [served["is_other"] for served in shown["served_models"]] == others[lie]

    @pytest.mark.parametrize(
        ("asked", "served", "is_same"),
        [
            ("gpt-4o", "gpt-4o-2024-08-06", True),
            ("gpt-4o-2024-08-06", "gpt-4o", True),
            ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", False),
            ("gpt-4o", "gpt-4o-mini", False),
            ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
            ("gpt-4", "gpt-4-0613", True),
            ("gpt-4", "gpt-4-turbo", False),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
            ("gemini-1.5-pro", "models/gemini-1.5-pro-002", True),
            ("openai/gpt-4o", "GPT-4o", True),
            ("llama-3-8b", "llama-3-70b", False),
            ("m", "m:free", False),
        ],
    )
    def test_what_counts_as_the_model_that_was_asked_for(self, asked: str, served: str, is_same: bool) -> None:
        assert bills.is_same_model(asked, served) is is_same


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The parcel has not arrived, and nobody answers the telephone. " * 20, 285),
        ("طلبت الكتاب قبل أسبوعين ولم يصل بعد، فماذا أفعل الآن؟ " * 20, 300),
        ("แพ็กเกจของฉันยังไม่มาถึงและไม่มีใครรับโทรศัพท์เลย" * 20, 320),
        ("我的包裹还没有到，也没有人接电话。" * 20, 240),
        ("Pakk ei ole kohale jõudnud ja keegi ei vasta telefonile. " * 20, 320),
        (" " * 100_000 + "=" * 100_000, 2),
    ],
)
def test_our_fewest_tokens_are_never_more_than_a_tokenizer_finds(text: str, tokens: int) -> None:
    """``tokens``: no more than o200k_base, the tightest vocabulary in wide use, finds in the text."""
    assert 0 < bills.fewest_tokens(text) <= tokens
    if len(set(text)) > 2:
        assert bills.fewest_tokens(text) >= 40, "a count of 0 or 1 for a long text is noticed in every script"


class TestRedirects:
    @pytest.mark.parametrize("lie", ["redirect_302", "redirect_303", "redirect_307", "redirect_308"])
    def test_none_is_followed_and_the_run_pauses_with_the_host(self, cast: Cast, address: str, lie: str) -> None:
        outcome = asked_under_cap(address, lie, cast.kassa)
        assert (outcome.state, outcome.elsewhere, outcome.booked) == ("paused", 0, 0)
        run, page, _shown = of_run(cast)
        assert f"{lie[-3:]}: provider {lie} redirects to 127.0.0.1:" in run.reason
        assert "redirects are not followed" in page
        assert not run.verdicts.exists()
        assert set(run.calls.values_list("state", flat=True)) == {"waiting"}


class TestLostWorkers:
    def test_no_call_fails_for_workers_that_were_killed(self, cast: Cast, address: str, settings: Any) -> None:
        """SIGKILL to ten processes in a row, each with requests in flight; the judge allows two tries."""
        provider = declared(address, settings, "honest")
        items = [make.item_row(number, external_id=name) for number, name in enumerate(NAMES)]
        run = begun(cast, provider, items, tries=2)
        before = own_count(address, "silent")["asked"]
        for number in range(10):
            with subprocess.Popen(
                [sys.executable, "-c", HANGS, str(run.pk)], env=_environment(address), start_new_session=True
            ) as worker:
                # What has not left its machine is not lost.
                wait_for_workers(lambda: own_count(address, "silent")["asked"] - before == 2 * (number + 1))  # noqa: B023
                worker.kill()
            wait_for_workers(lambda: CALLS.release_dead() or not Attempt.objects.filter(outcome="sent").exists())
            assert Attempt.objects.filter(outcome="lost").count() == 2 * (number + 1)
        assert not Call.objects.filter(state="failed").exists()
        assert set(Call.objects.filter(losses__gt=0).values_list("tries", flat=True)) == {0}
        while work_sessions.work_on_run(run.pk):
            pass
        assert runs.run_progress(run).settled == len(NAMES)

    def test_a_call_that_kills_every_worker_fails_in_the_end(self, cast: Cast, address: str, settings: Any) -> None:
        run = begun(cast, declared(address, settings, "honest"), 1)
        for _loss in range(leases.MOST_LOSSES):
            taken = calls.take_calls(run=run, limit=1)
            CALLS.mark_sent(lease=taken.lease, attempts=[taken.requests[0].attempt.pk])
            CALLS.release(lease=taken.lease)
        assert Call.objects.get().state == "failed"
        assert runs.rerun_failed(run=run) == 1
        assert (Call.objects.get().state, Call.objects.get().losses) == ("waiting", 0)


HANGS = """
import sys, django
django.setup()
from django.conf import settings
from judging import work_sessions
from judging.asking import allowances
work_sessions.work_on_run(int(sys.argv[1]))
"""


def _environment(address: str) -> dict[str, str]:
    entry = lying_provider.declaration(address, "silent") | {"name": "provider honest"}
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "panelbench.settings",
        "PANELBENCH_PROVIDERS": json.dumps([entry]),
    }


def test_every_lie_has_words_and_there_are_forty() -> None:
    assert len(LIES) - 1 >= 40
    assert all(words for words, _lie in LIES.values())


def test_own_count_is_the_providers(address: str) -> None:
    assert own_count(address, "nobody")["asked"] == 0


class TestWords:
    """What was said wrongly about money and time."""

    def test_nobody_is_asked_to_leave_a_budget_empty_that_is_empty(
        self, cast: Cast, address: str, settings: Any
    ) -> None:
        provider = declared(address, settings, "honest", simulated=False)
        allowances.allow(project=cast.kassa, provider=provider, cap_total=Decimal(5))
        judge = judges.declare(project=cast.kassa, name="Õiglane", provider=provider, model=MODEL)
        about = {"judge": judge.pk, "dataset": make.dataset(cast.kassa, 1).pk}
        about["rubric_version"] = make.rubric(cast.kassa).pk
        boris, root = cast.client("boris"), "/api/v1/projects/kassa/runs/"
        said = boris.post(root, about, content_type="application/json").json()["detail"]
        assert "The operator has limited what this project can spend" in said
        assert "budget empty" not in said
        answer = boris.post(root, {**about, "budget": "1"}, content_type="application/json").json()
        assert "Or leave the budget empty." in answer["fields"]["budget"][0]

    def test_a_run_that_has_finished_is_not_running(self, cast: Cast, address: str, settings: Any) -> None:
        run = begun(cast, declared(address, settings, "honest"), 2)
        boris, root = cast.client("boris"), "/api/v1/projects/kassa/runs/"

        def states() -> tuple[str, str, list[str]]:
            rows = boris.get(root).json()["results"]
            filtered = [row["state"] for row in boris.get(f"{root}?state=finished").json()["results"]]
            return boris.get(f"{root}{run.pk}/").json()["state"], rows[0]["state"], filtered

        assert states() == ("running", "running", [])
        while not runs.run_progress(run).finished:
            work_sessions.work_on_run(run.pk)
        assert states() == ("finished", "finished", ["finished"])
        assert boris.get(f"{root}?state=running").json()["results"] == []

    def test_a_refused_connection_is_called_that(self, cast: Cast, settings: Any) -> None:
        entry = {"name": "nobody", "base_url": "http://127.0.0.1:1/v1", "simulated": True}
        settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
        run = begun(cast, "nobody", 1, tries=1)
        work_sessions.work_on_run(run.pk)
        [attempt] = Attempt.objects.all()
        assert attempt.reason == "No connection: Connection refused."

    def test_declaring_a_judge_changes_no_running_run(self, cast: Cast, address: str, settings: Any) -> None:
        provider = declared(address, settings, "honest")
        run = begun(cast, provider, 2, timeout=30)
        same = {"name": run.judge.name, "provider": provider, "model": MODEL, "parameters": {"max_tokens": LIMIT}}
        boris, root = cast.client("boris"), "/api/v1/projects/kassa/judges/"
        answer = boris.post(root, {**same, "timeout": 5}, content_type="application/json")
        assert answer.status_code == 422, answer.content
        assert f"Run {run.pk} of this judge is running" in answer.json()["detail"]
        assert boris.post(root, {**same, "timeout": 30}, content_type="application/json").status_code in (200, 201)
        runs.pause_run(run=run)
        boris.post(root, {**same, "timeout": 5}, content_type="application/json")
        run.judge.refresh_from_db()
        assert run.judge.timeout == 5
