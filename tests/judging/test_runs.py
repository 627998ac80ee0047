"""Judge runs against the simulated provider, on a real database: nothing lost, nothing paid twice."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from accounts.refusals import Refused
from judging import calls, judges, runs, work_sessions
from judging.asking import leases
from judging.calls import CALLS
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def declared(cast: Cast, model: str = "sim-steady", parameters: dict[str, Any] | None = None, **variant: Any) -> Judge:
    return judges.declare(
        project=cast.kassa,
        name=f"{model} {variant} {parameters or ''}",
        provider="simulated",
        model=model,
        parameters=parameters,
        variant=variant,
        actor=cast.boris,
    )


def started(cast: Cast, judge: Judge, items: int = 6, **options: Any) -> JudgeRun:
    return runs.start_judge_run(
        judge=judge, dataset=make.dataset(cast.kassa, items), rubric_version=make.rubric(cast.kassa), **options
    )


def worked(run: JudgeRun) -> runs.RunProgress:
    for _shift in range(20):
        if not work_sessions.work_on_run(run.pk):
            break
    return runs.run_progress(run)


class TestPlanning:
    @pytest.mark.parametrize(("grouping", "calls"), [("compound", 12), ("single", 24)])
    def test_a_run_plans_every_call_beforehand(
        self, cast: Cast, provider: RunningProvider, grouping: str, calls: int
    ) -> None:
        run = started(cast, declared(cast, grouping=grouping), repeats=2)
        assert runs.run_progress(run) == runs.RunProgress(
            planned=calls, waiting=calls, in_flight=0, settled=0, failed=0
        )

    def test_the_same_configuration_is_the_same_judge(self, cast: Cast, provider: RunningProvider) -> None:
        assert declared(cast) == declared(cast)
        assert declared(cast, grouping="single") != declared(cast)

    def test_an_undeclared_provider_is_refused_in_words(self, cast: Cast, provider: RunningProvider) -> None:
        with pytest.raises(Refused, match="“openai” is not declared"):
            judges.declare(project=cast.kassa, name="J", provider="openai", model="m")

    def test_an_unknown_prompt_factor_is_refused(self, cast: Cast, provider: RunningProvider) -> None:
        with pytest.raises(Refused, match=r"is not a valid grouping\. Use one of: single, compound"):
            declared(cast, grouping="twice")

    def test_a_draft_rubric_is_refused(self, cast: Cast, provider: RunningProvider) -> None:
        version = make.rubric(cast.kassa)
        type(version).objects.filter(pk=version.pk).update(state="draft", published_at=None)
        version.refresh_from_db()
        with pytest.raises(Refused, match="published rubric"):
            runs.start_judge_run(judge=declared(cast), dataset=make.dataset(cast.kassa), rubric_version=version)


class TestWorking:
    @pytest.mark.parametrize("grouping", ["compound", "single"])
    def test_every_item_gets_one_verdict_per_criterion(
        self, cast: Cast, provider: RunningProvider, grouping: str
    ) -> None:
        run = started(cast, declared(cast, grouping=grouping), repeats=2)
        done = worked(run)
        assert done.finished
        counts = Counter(run.verdicts.values_list("item", "criterion", "repeat"))
        assert (len(counts), set(counts.values())) == (6 * 2 * 2, {1})
        assert done.verdicts == {"ok": 24}
        assert done.tokens_in > 0

    def test_prompt_and_reply_are_stored_as_they_were(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        worked(run)
        attempt = Attempt.objects.get()
        assert "Minu pakk number 1" in attempt.request["messages"][1]["content"]
        assert attempt.reply["choices"][0]["message"]["content"]
        assert attempt.served_model.startswith("sim-steady")
        assert attempt.verdicts.count() == 2

    def test_the_judge_is_not_told_who_wrote_the_item(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=2)
        worked(run)
        assert "atlas" not in str(list(Attempt.objects.values_list("request", flat=True)))

    def test_misbehaviour_ends_in_verdicts_with_reasons_and_retries(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast, "sim-broken"), items=30)
        for _round in range(12):
            Call.objects.update(not_before=None)
            worked(run)
        done = runs.run_progress(run)
        assert done.finished
        assert done.failed == 0
        assert sum(done.verdicts.values()) == 60
        assert {"ok", "unparsed", "refused"} <= done.verdicts.keys()
        assert Attempt.objects.filter(outcome="unavailable").exists()
        unread = Verdict.objects.filter(status="unparsed").select_related("attempt").first()
        assert unread.score is None
        assert unread.attempt.reply

    def test_prices_make_costs(self, cast: Cast, provider: RunningProvider, settings: Any) -> None:
        priced = settings.PROVIDERS["simulated"]
        object.__setattr__(priced, "prices", (("sim-steady", Decimal(2), Decimal(8)),))
        done = worked(started(cast, declared(cast), items=3))
        assert done.cost == sum(
            (Decimal(2) * into + Decimal(8) * out) / 1_000_000
            for into, out in Attempt.objects.values_list("tokens_in", "tokens_out")
        )

    def test_a_spent_budget_pauses_the_run_and_raising_it_goes_on(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
        run = started(cast, declared(cast, parameters={"max_tokens": 200}), items=3, budget=Decimal(0))
        worked(run)
        run.refresh_from_db()
        assert (run.state, runs.run_progress(run).attempts) == ("paused", 0)
        assert "budget" in run.reason
        runs.rebudget(run=run, budget=Decimal(1))
        assert runs.resume_run(run=run)
        assert worked(run).finished

    def test_a_missing_key_pauses_the_run_and_says_which(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        run = started(cast, declared(cast), items=2)
        object.__setattr__(settings.PROVIDERS["simulated"], "key_variable", "PANELBENCH_NO_SUCH_KEY")
        worked(run)
        run.refresh_from_db()
        assert run.state == "paused"
        assert "PANELBENCH_NO_SUCH_KEY" in run.reason
        assert runs.run_progress(run).waiting == 2

    def test_a_paused_run_sends_nothing(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=2)
        assert runs.pause_run(run=run)
        assert not runs.pause_run(run=run)
        assert worked(run).attempts == 0

    def test_a_cancelled_run_stays_cancelled(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=2)
        assert runs.cancel_run(run=run)
        assert not runs.resume_run(run=run)
        assert worked(run).attempts == 0


class TestLeases:
    def test_two_workers_never_hold_the_same_call(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=5)
        mine, theirs = (
            calls.take_calls(run=run, limit=3).requests,
            calls.take_calls(run=run, limit=3).requests,
        )
        assert [len(mine), len(theirs)] == [3, 2]
        assert not {each.call.pk for each in mine} & {each.call.pk for each in theirs}

    def test_a_dead_workers_calls_are_taken_up_again(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=5)
        calls.take_calls(run=run, limit=5)
        assert CALLS.sweep() == []
        assert CALLS.sweep(now=timezone.now() + leases.LEASE + timedelta(seconds=1)) == [run.pk]
        assert worked(run).settled == 5

    def test_a_lost_lease_keeps_the_reply_and_settles_nothing(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        taken = calls.take_calls(run=run, limit=1)
        [asked] = taken.requests
        CALLS.mark_sent(lease=taken.lease, attempts=[asked.attempt.pk])
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        assert worked(run).settled == 1
        late = calls.CallOutcome(
            call_request=asked,
            lease=taken.lease,
            attempt=Attempt(pk=asked.attempt.pk, call=asked.call, outcome="replied", tokens_in=5),
            readings=[calls.Reading(criterion="fluency", status="ok", score=0)],
        )
        assert CALLS.settle(outcomes=[late]) == 0
        assert list(asked.call.attempts.order_by("number").values_list("number", "outcome")) == [
            (1, "replied"),
            (2, "replied"),
        ]
        assert run.verdicts.count() == 2

    def test_unavailable_too_often_fails_and_can_be_rerun(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        for _try in range(judges.pace(run.judge).tries):
            taken = calls.take_calls(run=run, limit=1)
            [asked] = taken.requests
            CALLS.mark_sent(lease=taken.lease, attempts=[asked.attempt.pk])
            attempt = Attempt(pk=asked.attempt.pk, call=asked.call, outcome="unavailable", reason="503")
            missed = calls.CallOutcome(call_request=asked, lease=taken.lease, attempt=attempt, retry_at=timezone.now())
            CALLS.settle(outcomes=[missed])
        assert runs.run_progress(run).failed == 1
        assert runs.rerun_failed(run=run) == 1
        assert worked(run).settled == 1
