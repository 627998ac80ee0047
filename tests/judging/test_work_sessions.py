"""What can go wrong while a run is worked on: nothing is lost, paid for twice, or sent that must not be."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts.refusals import Refused
from judging import calls, replies, runs, work_sessions
from judging.asking import leases, sessions
from judging.calls import CALLS, CallOutcome
from judging.models import Attempt, Call, JudgeRun
from judging.replies import Reading
from judging.requests import CallRequest
from tests.cast import Cast
from tests.judging.test_runs import declared, started, worked
from tests.provider_server import RunningProvider
from tests.workers import wait_for_workers

pytestmark = pytest.mark.django_db(transaction=True)


def sent(run: JudgeRun, limit: int) -> tuple[UUID, list[CallRequest]]:
    """Calls that are leased, and whose requests are out."""
    taken = calls.take_calls(run=run, limit=limit)
    keys = [call_request.attempt.pk for call_request in taken.requests]
    assert CALLS.mark_sent(lease=taken.lease, attempts=keys) == set(keys)
    return taken.lease, taken.requests


def run_attempts(run: JudgeRun) -> Any:
    """The attempts of a run, as key, outcome, and whether the cost is estimated."""
    return Attempt.objects.filter(call__run=run).order_by("pk").values_list("pk", "outcome", "estimated")


def reply(call_request: CallRequest, lease: UUID, **parts: Any) -> CallOutcome:
    readings = [Reading(criterion=key, status="ok", score=0) for key in ("fluency", "coherence")]
    attempt = Attempt(pk=call_request.attempt.pk, call=call_request.call, outcome="replied", **parts)
    return CallOutcome(call_request=call_request, lease=lease, attempt=attempt, readings=readings)


@contextmanager
def at_work(run: JudgeRun) -> Iterator[None]:
    """A worker at the run in a thread of its own, joined in the end."""

    def shift() -> None:
        work_sessions.work_on_run(run.pk)
        connection.close()

    worker = threading.Thread(target=shift)
    worker.start()
    try:
        yield
    finally:
        worker.join()


def priced(settings: Any) -> None:
    object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))


class TestReplies:
    def test_a_reply_settles_a_call_whose_lease_was_lost_but_nobody_took_up(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast), items=1)
        lease, [asked] = sent(run, 1)
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        assert CALLS.settle(outcomes=[reply(asked, lease)]) == 1
        assert worked(run).finished
        assert provider.control()["requests"] == 0

    def test_the_first_of_two_replies_counts_and_both_are_kept(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        mine, [first] = sent(run, 1)
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        theirs, [second] = sent(run, 1)
        assert CALLS.settle(outcomes=[reply(first, mine)]) == 1
        assert CALLS.settle(outcomes=[reply(second, theirs)]) == 0
        assert (first.call.attempts.filter(outcome="replied").count(), run.verdicts.count()) == (2, 2)

    @pytest.mark.both_databases
    @pytest.mark.parametrize("is_sent", [False, True])
    def test_a_reply_ends_the_request_of_whoever_has_the_lease_now(
        self, cast: Cast, provider: RunningProvider, is_sent: bool
    ) -> None:
        run = started(cast, declared(cast), items=1)
        mine, [first] = sent(run, 1)
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        taken = calls.take_calls(run=run, limit=1)
        [again] = taken.requests
        if is_sent:
            assert CALLS.mark_sent(lease=taken.lease, attempts=[again.attempt.pk])
        unread = replace(
            reply(first, mine), readings=[Reading(criterion=key, status="error") for key in ("fluency", "coherence")]
        )
        sessions.store_outcomes(CALLS, [unread], calls.unstorable_outcome)
        assert CALLS.mark_sent(lease=taken.lease, attempts=[again.attempt.pk]) == set()
        assert not Attempt.objects.filter(outcome__in=["pending", "sent"]).exists()
        assert runs.rerun_failed(run=run, statuses=["error"])
        assert worked(run).finished
        assert runs.run_progress(run).verdicts == {"ok": 2}

    @pytest.mark.both_databases
    def test_a_request_that_never_left_its_machine_is_not_booked(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        run = started(cast, declared(cast), items=3)
        lease, requests = sent(run, 3)
        folder = settings.DATA_DIR / CALLS.folder
        with CALLS.hold(lease) as record:
            record.note(requests[1].attempt.pk)
            left = (folder / str(lease)).read_bytes()
        (folder / str(lease)).write_bytes(left)  # as a session leaves it that is killed
        assert CALLS.release_dead() == 1
        assert [*run_attempts(run)] == [(requests[1].attempt.pk, "lost", True)]
        assert worked(run).finished
        assert run_attempts(run).filter(outcome="replied").count() == provider.control()["requests"] == 3

    @pytest.mark.both_databases
    def test_every_request_at_the_provider_is_in_the_record_of_its_session(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        provider.control(latency=1.5)
        run = started(cast, declared(cast), items=5)
        with at_work(run):
            deadline = time.monotonic() + 20
            while provider.control()["in_flight"] < 5 and time.monotonic() < deadline:
                time.sleep(0.02)
            [file] = (settings.DATA_DIR / CALLS.folder).iterdir()
            noted = sorted(map(int, file.read_text().split()[1:]))
        assert noted == [pk for pk, _outcome, _estimated in run_attempts(run)]
        assert runs.run_progress(run).finished

    def test_a_failure_under_a_lost_lease_moves_nothing(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        mine, [asked] = sent(run, 1)
        CALLS.sweep(now=timezone.now() + leases.LEASE * 2)
        sent(run, 1)
        attempt = Attempt(pk=asked.attempt.pk, call=asked.call, outcome="unavailable", reason="503")
        CALLS.settle(outcomes=[CallOutcome(call_request=asked, lease=mine, attempt=attempt, retry_at=timezone.now())])
        asked.call.refresh_from_db()
        counts = (asked.call.state, asked.call.tries, asked.call.losses)
        assert counts == ("leased", 0, 1), "a lost request is no try of the provider's"

    def test_settling_again_after_a_lost_commit_stores_nothing_twice(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast), items=2)
        lease, asked = sent(run, 2)
        outcomes = [reply(call_request, lease) for call_request in asked]
        assert [CALLS.settle(outcomes=outcomes), CALLS.settle(outcomes=outcomes)] == [2, 0]
        assert (Attempt.objects.count(), run.verdicts.count()) == (2, 4)

    def test_a_reply_that_cannot_be_stored_takes_no_other_with_it(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=3)
        lease, asked = sent(run, 3)
        scoreless = replace(
            reply(asked[1], lease), readings=[Reading(criterion=key, status="ok") for key in ("fluency", "coherence")]
        )
        arrived = [reply(asked[0], lease), scoreless, reply(asked[2], lease)]
        sessions.store_outcomes(CALLS, arrived, calls.unstorable_outcome)
        assert runs.run_progress(run).verdicts == {"ok": 4, "error": 2}
        assert "could not be stored" in asked[1].call.attempts.get().reason

    @pytest.mark.both_databases
    def test_a_reply_that_our_code_fails_on_is_booked_and_not_asked_for_again(
        self, cast: Cast, provider: RunningProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        priced(settings)
        run = started(cast, declared(cast), items=1)
        monkeypatch.setattr(replies, "CUT_OFF", None)
        worked(run)
        run.refresh_from_db()
        assert run.state == "paused"
        assert "error in Panelbench" in run.reason
        attempt = Attempt.objects.get()
        assert (attempt.outcome, attempt.estimated, provider.control()["requests"]) == ("replied", False, 1)
        assert runs.run_progress(run).verdicts == {"error": 2}


class TestStopping:
    def test_a_pause_is_heard_while_calls_are_in_flight(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(latency=0.5)
        run = started(cast, declared(cast), items=60, repeats=10)
        with at_work(run):
            wait_for_workers(lambda: provider.control()["answered"] > 16)
            runs.pause_run(run=run)
        done = runs.run_progress(run)
        assert (done.in_flight, done.failed) == (0, 0)
        assert 16 < done.settled < 400
        assert provider.control()["answered"] == Attempt.objects.count() == done.settled

    def test_a_provider_no_longer_declared_pauses_the_run(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        run = started(cast, declared(cast), items=2)
        settings.PROVIDERS = {}
        assert not work_sessions.work_on_run(run.pk)
        run.refresh_from_db()
        assert run.state == "paused"
        assert "“simulated” is not declared" in run.reason

    def test_a_key_refused_midway_pauses_the_run_and_keeps_the_replies(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast), items=40)
        provider.control(latency=0.1, next=["none"] * 10 + ["unauthorized"])
        worked(run)
        run.refresh_from_db()
        done = runs.run_progress(run)
        assert (run.state, done.in_flight) == ("paused", 0)
        assert "401" in run.reason
        assert done.settled == provider.control()["answered"] > 0

    def test_a_call_that_cannot_be_put_stops_the_run_and_keeps_the_other_replies(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast), items=3)
        run.dataset.items.filter(ordinal=1).update(turns=[{"text": "spoken by nobody"}])
        worked(run)
        run.refresh_from_db()
        assert run.state == "paused"
        assert "error in Panelbench" in run.reason
        assert runs.run_progress(run).settled == provider.control()["answered"]

    def test_a_third_worker_finds_no_room(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=3)
        for _worker in range(leases.MOST_HOLDERS):
            calls.take_calls(run=run, limit=1)
        assert not work_sessions.work_on_run(run.pk)
        assert runs.run_progress(run).waiting == 1

    def test_a_shift_cut_short_stores_what_came_and_gives_back_the_rest(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        provider.control(latency=0.5)
        run = started(cast, declared(cast), items=60, repeats=10)
        with pytest.raises(SystemExit), _ended_when(lambda: provider.control()["answered"] > 16):
            work_sessions.work_on_run(run.pk)
        done = runs.run_progress(run)
        assert done.in_flight == 0
        assert 0 < done.settled < 600
        replied = Attempt.objects.filter(outcome="replied").count()
        assert provider.control()["answered"] == replied == Attempt.objects.count(), "what was in flight came in"


class TestLongReplies:
    def test_a_reply_longer_than_a_lease_is_sent_once_and_the_session_ends_with_it(
        self, cast: Cast, provider: RunningProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A lease that is given anew again and again, beyond the end of the session too, outlives itself."""
        monkeypatch.setattr(sessions, "TICK", 0.1)
        provider.control(latency=600)
        run = started(cast, declared(cast), items=1)
        began = time.monotonic()
        with at_work(run):
            wait_for_workers(lambda: provider.control()["in_flight"] == 1)
            monkeypatch.setattr(sessions, "SESSION", 0.0)  # it is over, but for the reply
            for _look in range(4):
                (ends,) = Call.objects.values_list("leased_until", flat=True)
                time.sleep(0.8)
                wait_for_workers(lambda: Call.objects.get().leased_until > ends)  # noqa: B023
                assert CALLS.sweep(now=ends) == [], "the lease is kept alive"
            provider.control(latency=0)
        done = runs.run_progress(run)
        assert (done.settled, done.attempts, provider.control()["requests"]) == (1, 1, 1)
        assert time.monotonic() - began < 20, "nothing is left to ask, so the worker is free"


class TestRepeating:
    def test_a_body_that_nobody_can_read_is_paid_three_times_at_most(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        run = started(cast, declared(cast, "sim-steady:not_json"), items=1)
        for _round in range(6):
            Call.objects.update(not_before=None)
            worked(run)
        done = runs.run_progress(run)
        assert (done.failed, done.attempts) == (1, leases.MOST_UNREADABLE)
        assert all("gateway page" in body for body in Attempt.objects.values_list("reply__body", flat=True))

    def test_calls_are_repeated_by_status_and_scores_that_were_read_stay(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        boris = cast.client("boris")
        provider.control(next=["refusal", "forbidden", "unparsable", "truncated", "none", "none"])
        run = started(cast, declared(cast), items=6)
        worked(run)
        before = dict(run.verdicts.filter(status="ok").values_list("pk", "score"))
        assert {"refused", "unparsed", "truncated"} <= {*run.verdicts.values_list("status", flat=True)}
        address = f"/api/v1/projects/kassa/runs/{run.pk}/rerun/"
        for sent, code in (({"statuses": ["ok"]}, 400), ({"statuses": []}, 400), ({"status": "refused"}, 400)):
            assert boris.post(address, sent, content_type="application/json").status_code == code
        assert boris.post(address, {}, content_type="application/json").json()["code"] == "nothing_failed"
        answer = boris.post(address, {"statuses": ["refused"]}, content_type="application/json")
        assert answer.json()["progress"]["waiting"] == 2
        assert worked(run).finished
        assert "refused" not in runs.run_progress(run).verdicts
        page = reverse("run", args=["kassa", run.pk])
        assert "Repeat calls" in boris.get(page).content.decode()
        move = {"to": "rerun", "status": ["unparsed"]}
        assert "1 call will be" in boris.post(f"{page}state/", move, follow=True).content.decode()
        call_command("rerun_calls", str(run.pk), "--status", "truncated", "--here", stdout=StringIO())
        assert runs.run_progress(run).verdicts == {"ok": 12}
        assert before.items() <= dict(run.verdicts.values_list("pk", "score")).items()
        assert provider.control()["requests"] == Attempt.objects.count() == 6 + 4
        with pytest.raises(CommandError, match="No call of this run"):
            call_command("rerun_calls", str(run.pk), "--status", "error", stdout=StringIO())

    def test_a_run_that_was_cancelled_repeats_nothing(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast, "sim-steady:refusal"), items=1)
        worked(run)
        runs.cancel_run(run=run)
        with pytest.raises(Refused, match="No call"):
            runs.rerun_failed(run=run, statuses=["refused"])


@contextmanager
def _ended_when(condition: Any) -> Iterator[None]:
    """SystemExit in this thread, as Celery's children raise it when they are told to end."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(1)

    def tell() -> None:
        wait_for_workers(condition)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, leave)
    teller = threading.Thread(target=tell)
    teller.start()
    try:
        yield
    finally:
        teller.join()
        signal.signal(signal.SIGALRM, before)


class TestMoney:
    def test_two_workers_do_not_spend_more_than_the_budget(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        priced(settings)
        provider.control(latency=0.05)
        judge = declared(cast, parameters={"max_tokens": 200})
        run = started(cast, judge, items=5, repeats=12, budget=Decimal("0.05"))
        with at_work(run):
            worked(run)
        run.refresh_from_db()
        done = runs.run_progress(run)
        assert run.state == "paused"
        assert "budget" in run.reason
        assert Decimal("0.04") < done.cost <= Decimal("0.05")
        assert 0 < done.settled < done.planned

    def test_a_budget_nobody_can_keep_is_refused(self, cast: Cast, provider: RunningProvider) -> None:
        with pytest.raises(Refused, match="No price is declared for sim-steady at simulated"):
            started(cast, declared(cast), items=1, budget=Decimal(5))

    def test_a_free_model_spends_nothing_of_its_budget(
        self, cast: Cast, provider: RunningProvider, settings: Any
    ) -> None:
        object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(0), Decimal(0)),))
        run = started(cast, declared(cast), items=20, budget=Decimal(1))
        assert worked(run).finished


class TestSteering:
    def test_failed_calls_of_a_cancelled_run_stay_failed(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        Call.objects.filter(run=run).update(state="failed")
        runs.cancel_run(run=run)
        with pytest.raises(Refused):
            runs.rerun_failed(run=run)
        assert set(Call.objects.filter(run=run).values_list("state", flat=True)) == {"failed"}

    def test_a_paused_run_can_be_cancelled(self, cast: Cast, provider: RunningProvider) -> None:
        run = started(cast, declared(cast), items=1)
        runs.pause_run(run=run)
        assert runs.cancel_run(run=run)
        assert run.state == "cancelled"
