"""Designs: one object with one forecast, one cap and one progress; nothing is paid twice."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from scipy import stats

from accounts.models import AuditEntry, Project
from accounts.refusals import Refused
from annotation.models import RubricVersion
from judging import calls, designs, forecasts, judges, runs, work_sessions
from judging.asking import client
from judging.calls import CALLS
from judging.designs import DesignPhase
from judging.models import Attempt, Call, Judge, JudgeDesign, JudgeRun, Verdict
from tests import make
from tests.analytics.test_bundles import loaded, taken_out
from tests.cast import Cast
from tests.judging.test_money import billed, limited, priced
from tests.provider_server import RunningProvider
from tests.workers import long_after

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["priced"]

FACTORS = {"anchor_detail": ["name", "anchors", "reasons"], "temperature": [0, 0.7]}


def with_reasons(project: Project) -> RubricVersion:
    """Two criteria whose anchors have reasons, so that all three styles of a prompt differ."""
    criteria = [make.criterion("fluency"), make.criterion("coherence", (0, 1))]
    for criterion in criteria:
        for anchor in criterion["anchors"].values():
            anchor["en"]["reason"] = "because of what it does to the reader"
    return make.rubric(project, *criteria)


def made(cast: Cast, judge: Judge | None = None, *, items: int = 4, **options: Any) -> JudgeDesign:
    """Three prompt styles by two temperatures by two repeats over a few dialogues."""
    plan = {"name": "Styles", "factors": FACTORS, "repeats": 2, **options}
    if "dataset" not in plan:
        plan |= {"dataset": make.dataset(cast.kassa, items), "rubric_version": with_reasons(cast.kassa)}
    judges_asked = [judge or limited(cast)]
    return designs.create_design(project=cast.kassa, judges_asked=judges_asked, actor=cast.boris, **plan)


def longer(design: JudgeDesign, name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "dataset": design.dataset, "rubric_version": design.rubric_version, **options}


def worked(judge_runs: list[JudgeRun]) -> None:
    """Work sessions until nothing more can be asked."""
    for _round in range(30):
        Call.objects.filter(run__in=judge_runs).update(not_before=None)
        more = [work_sessions.work_on_run(run.pk) for run in judge_runs]
        running = JudgeRun.objects.filter(pk__in=[run.pk for run in judge_runs], state="running")
        if not any(more) and not Call.objects.filter(run__in=running, state=Call.State.WAITING).exists():
            return


def test_a_temperature_is_the_same_however_it_is_written(cast: Cast, priced: RunningProvider) -> None:
    """A form gives 0.0, a command 0: it is one judge, and the second design pays nothing."""
    first = made(cast, name="A", factors={"temperature": [0.0, 0.7]})
    second = made(cast, **longer(first, "B", factors={"temperature": [0, 0.7]}))
    judges_of = [set(design.cells.values_list("judge", flat=True)) for design in (first, second)]
    assert judges_of[0] == judges_of[1]
    assert first.factors["temperature"] == [0, 0.7]


class TestMaking:
    def test_every_combination_of_levels_is_a_judge(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast)
        cells = list(design.cells.select_related("judge"))
        assert len({cell.judge_id for cell in cells}) == 6
        assert {(cell.judge.variant["anchor_detail"], cell.judge.parameters["temperature"]) for cell in cells} == {
            (style, t) for style in FACTORS["anchor_detail"] for t in FACTORS["temperature"]
        }
        assert cells[1].levels == {"anchor_detail": "name", "temperature": 0.7}
        assert cells[1].judge.name.endswith("name · temperature 0.7")
        assert priced.control()["requests"] == 0

    @pytest.mark.parametrize(
        ("factors", "words"),
        [
            ({"few": [1]}, "is not a factor"),
            ({"anchor_detail": ["much"]}, "is not a valid anchor_detail"),
            ({"temperature": [0, 0]}, "each of them once"),
            ({"temperature": []}, "needs levels"),
            ({"temperature": [n / 100 for n in range(61)]}, "at most 60"),
        ],
    )
    def test_what_makes_no_design_is_refused_and_stores_nothing(
        self, cast: Cast, priced: RunningProvider, factors: dict[str, Any], words: str
    ) -> None:
        judge = limited(cast)
        with pytest.raises(Refused, match=words):
            made(cast, judge, factors=factors)
        assert list(Judge.objects.all()) == [judge]
        assert not JudgeDesign.objects.exists()

    def test_a_cap_that_could_not_be_kept_is_refused(self, cast: Cast, priced: RunningProvider) -> None:
        judge = limited(cast, "sim-harsh")
        with pytest.raises(Refused, match="No price is declared"):
            made(cast, judge, budget=Decimal(1))


class TestForecast:
    def test_a_pilot_gives_an_interval_and_its_replies_are_used(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast, items=20)
        before = designs.forecast_design(design)
        assert (before.calls, before.answered, before.pilot) == (240, 0, None)
        pilot = designs.start_pilot(design=design, actor=cast.boris)
        assert designs.phase_of(design) == DesignPhase.PILOT
        with pytest.raises(Refused, match="pilot is still running"):
            designs.start_design(design=design)
        worked(pilot)
        after = designs.forecast_design(design)
        assert (after.calls, after.answered) == (240, 20)
        assert after.pilot is not None
        assert after.pilot.calls == 20
        assert after.spent == billed(priced)
        worked(designs.start_design(design=design, actor=cast.boris))
        assert priced.control()["requests"] == 240
        assert designs.phase_of(design) == DesignPhase.FINISHED
        rest = designs.spent_on(design).paid - after.spent
        assert after.pilot.cost.low <= rest <= after.pilot.cost.high
        assert Verdict.objects.filter(run__is_pilot=False).count() == 240 * 2

    def test_a_paused_pilot_is_resumed_or_cancelled_before_the_start(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast)
        designs.start_pilot(design=design)
        designs.pause_design(design=design)
        with pytest.raises(Refused, match="Resume the pilot or cancel it first"):
            designs.start_design(design=design)
        shown = cast.client("boris").get(reverse("design", args=["kassa", design.pk])).content.decode()
        assert 'value="cancel"' in shown
        assert len(designs.cancel_design(design=design)) == 6
        worked(designs.start_design(design=design))
        assert designs.phase_of(design) == DesignPhase.FINISHED
        assert designs.cancel_design(design=design) == []

    def test_verdicts_of_a_pilot_are_listed_only_where_its_run_is_asked_for(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        pilot = designs.start_pilot(design=made(cast))
        worked(pilot)
        boris, there = cast.client("boris"), "/api/v1/projects/kassa/verdicts/"
        assert boris.get(there).json()["results"] == []
        assert boris.get(f"{there}?run=").json()["results"] == []
        assert {row["run"] for row in boris.get(f"{there}?run={pilot[0].pk}").json()["results"]} == {pilot[0].pk}

    def test_a_pilot_asks_every_judge_and_has_no_interval_without_a_reply_from_each(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        """Ten calls for two judges of fifteen cells each: five each, in cells that are drawn."""
        several = [limited(cast), limited(cast, tokens=1500, concurrency=5)]
        factors = {"anchor_detail": FACTORS["anchor_detail"], "temperature": [0, 0.1, 0.2, 0.3, 0.4]}
        material = {"dataset": make.dataset(cast.kassa, 3), "rubric_version": with_reasons(cast.kassa)}
        design = designs.create_design(
            project=cast.kassa, name="Two", judges_asked=several, factors=factors, repeats=2, **material
        )
        pilot = designs.start_pilot(design=design, calls=10)
        places = {cell.judge_id: (cell.levels["judge"], cell.position) for cell in design.cells.all()}
        asked = [places[run.judge_id] for run in pilot]
        assert sorted(name for name, _place in asked) == sorted([several[0].name, several[1].name] * 5)
        assert [place for _name, place in asked] != [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]
        worked([run for run in pilot if places[run.judge_id][0] == several[0].name])
        found = designs.forecast_design(design).pilot
        assert (found.calls, found.unanswered, found.tokens.low, found.cost.low) == (5, [several[1].name], None, None)
        page = cast.client("boris").get(reverse("design", args=["kassa", design.pk])).content.decode()
        assert "No interval: the pilot has no reply from" in page
        worked(pilot)
        found = designs.forecast_design(design).pilot
        assert (found.calls, found.unanswered) == (10, [])
        assert found.tokens.low is not None

    def test_the_ratio_estimator_is_that_of_the_textbook(self) -> None:
        rng = np.random.default_rng(4)
        expected = rng.uniform(50, 150, 20)
        actual = 1.7 * expected + rng.normal(0, 10, 20)
        found = forecasts.ratio_forecast(list(zip(actual, expected, strict=True)), expected=30_000, calls=300)
        ratio = actual.sum() / expected.sum()
        residuals = actual - ratio * expected
        error = math.sqrt((30_000 / expected.sum()) ** 2 * 20 * residuals.var(ddof=1) + 300 * residuals.var(ddof=1))
        half = stats.t.ppf(0.975, 19) * error * math.sqrt((residuals**2).sum() / 19 / residuals.var(ddof=1))
        assert float(found.value) == pytest.approx(ratio * 30_000)
        assert float(found.high - found.low) / 2 == pytest.approx(half, rel=1e-3)

    def test_students_t_is_that_of_scipy(self) -> None:
        assert tuple(pytest.approx(stats.t.ppf(0.975, df), abs=6e-4) for df in range(1, 21)) == forecasts.STUDENT

    def test_too_few_replies_give_no_interval(self) -> None:
        found = forecasts.ratio_forecast([(2.0, 1.0)] * 4, expected=10, calls=10)
        assert (found.value, found.low, found.high) == (20, None, None)


class TestSteering:
    def test_one_cap_holds_over_all_runs_and_is_raised_and_resumed(self, cast: Cast, priced: RunningProvider) -> None:
        priced.control(dearer=60)
        design = made(cast, items=10, budget=Decimal(1))
        started = designs.start_design(design=design, actor=cast.boris)
        worked(started)
        assert designs.phase_of(design) == DesignPhase.PAUSED
        assert any("budget of the design is spent" in reason for reason in designs.pause_reasons(design))
        spent = designs.spent_on(design).paid
        assert spent == billed(priced)
        assert Decimal("0.7") < spent <= Decimal(1)
        done = designs.progress_of_design(design).done
        assert 0 < done < 120
        designs.rebudget_design(design=design, budget=Decimal(40), actor=cast.boris)
        worked(designs.resume_design(design=design, actor=cast.boris))
        assert designs.phase_of(design) == DesignPhase.FINISHED
        assert priced.control()["requests"] == 120
        assert AuditEntry.objects.filter(verb="set design budget").count() == 1

    def test_runs_in_a_bundle_keep_what_is_left_of_the_cap(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast, budget=Decimal(40))
        worked(designs.start_design(design=design)[:1])
        loaded(cast.teine, taken_out(cast.kassa))
        there = JudgeRun.objects.filter(project=cast.teine).order_by("pk")
        done, *others = [run.budget for run in there]
        spent = designs.spent_on(design).paid
        assert 0 < spent < 40
        assert done == pytest.approx(spent)
        assert others == [pytest.approx((40 - spent) / 5)] * 5
        assert sum([done, *others]) <= 40

    def test_started_twice_it_is_the_same_runs(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast)
        first = designs.start_design(design=design)
        assert [run.pk for run in designs.start_design(design=design)] == [run.pk for run in first]
        assert JudgeRun.objects.count() == 6

    def test_pause_resume_and_cancel_move_every_run(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast)
        designs.start_design(design=design)
        assert len(designs.pause_design(design=design)) == 6
        assert designs.phase_of(design) == DesignPhase.PAUSED
        assert len(designs.resume_design(design=design)) == 6
        assert designs.phase_of(design) == DesignPhase.RUNNING
        assert len(designs.cancel_design(design=design, actor=cast.boris)) == 6
        assert designs.phase_of(design) == DesignPhase.CANCELLED
        assert designs.cancel_design(design=design) == []

    def test_a_longer_design_pays_only_for_what_is_new(self, cast: Cast, priced: RunningProvider) -> None:
        design = made(cast)
        worked(designs.start_design(design=design))
        sent = priced.control()["requests"]
        assert sent == 48
        again = made(cast, design.cells.first().judge.__class__.objects.first(), **longer(design, "Again"))
        assert designs.forecast_design(again).answered == 48
        worked(designs.start_design(design=again))
        assert priced.control()["requests"] == sent
        assert designs.spent_on(again).paid == 0
        rows = designs.cell_results(again)
        assert sum(row.reused for row in rows) == 48
        assert sum(row.worth for row in rows) == designs.spent_on(design).paid
        three = made(cast, Judge.objects.order_by("pk").first(), **longer(design, "Three", repeats=3))
        forecast = designs.forecast_design(three)
        assert (forecast.calls, forecast.answered) == (72, 48)
        worked(designs.start_design(design=three))
        assert priced.control()["requests"] == 72


class TestEqualRequests:
    """Of criteria without reasons, "anchors" and "reasons" say the same: two judges, one request."""

    STYLES: ClassVar = {"factors": {"anchor_detail": ["name", "anchors", "reasons"]}, "repeats": 2}

    def test_a_request_of_two_cells_is_forecast_sent_and_paid_once(self, cast: Cast, priced: RunningProvider) -> None:
        about = {"dataset": make.dataset(cast.kassa), "rubric_version": make.rubric(cast.kassa)}
        design = made(cast, **self.STYLES, **about)
        forecast = designs.forecast_design(design)
        assert (forecast.calls, forecast.answered, forecast.shared, forecast.new_calls) == (24, 0, 8, 16)
        assert [(cell.shared, cell.cost == 0) for _cell, cell in forecast.cells] == [(0, False), (0, False), (8, True)]
        page = cast.client("boris").get(reverse("design", args=["kassa", design.pk])).content.decode()
        assert "Start: 16 new calls" in page
        assert "<b>8</b> calls have the same messages" in page
        answer = cast.client("boris").get(f"/api/v1/projects/kassa/designs/{design.pk}/forecast/")
        assert answer.json()["shared"] == 8
        worked(designs.start_design(design=design))
        assert priced.control()["requests"] == 16
        assert set(priced.control()["prompts"].values()) == {2}, "two repeats of each request"
        assert designs.spent_on(design).paid == billed(priced)
        assert Verdict.objects.count() == 24 * 2
        rows = designs.cell_results(design)
        assert [(row.sent, row.reused, row.planned) for row in rows] == [(8, 0, 8), (8, 0, 8), (0, 8, 8)]
        once_more = designs.forecast_design(made(cast, limited(cast), **longer(design, "More", **self.STYLES)))
        assert (once_more.answered, once_more.shared) == (24, 0)

    def test_what_is_in_flight_elsewhere_is_waited_for_also_when_that_worker_dies(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        """The second takes nothing, then sends what the dead one had; the first uses its replies when it goes on."""
        about = {"dataset": make.dataset(cast.kassa), "rubric_version": make.rubric(cast.kassa)}
        about |= {"factors": {"anchor_detail": ["anchors", "reasons"]}, "repeats": 1}
        first, second = designs.start_design(design=made(cast, **about))
        doomed = calls.take_calls(run=first, limit=2)  # a run begins with two
        CALLS.mark_sent(lease=doomed.lease, attempts=[sent.attempt.pk for sent in doomed.requests])
        taken = calls.take_calls(run=second, limit=4)
        others = list(first.calls.order_by("pk").values_list("item", flat=True))[2:]
        assert [request.call.item_id for request in taken.requests] == others
        assert second.calls.exclude(not_before=None).count() == 2
        CALLS.release(lease=taken.lease)
        CALLS.sweep(now=long_after())
        worked([second])
        assert priced.control()["requests"] == 4
        worked([first])
        assert priced.control()["requests"] == 4
        outcomes = Attempt.objects.filter(call__run=first).values_list("outcome", flat=True)
        assert sorted(outcomes) == ["lost"] * 2 + ["reused"] * 4
        assert Verdict.objects.filter(run=first).count() == Verdict.objects.filter(run=second).count() == 8

    def test_a_reply_that_arrives_while_another_run_looks_for_it_is_not_paid_twice(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        about = {"dataset": make.dataset(cast.kassa, 1), "rubric_version": make.rubric(cast.kassa)}
        about |= {"factors": {"anchor_detail": ["anchors", "reasons"]}, "repeats": 1}
        first, second = designs.start_design(design=made(cast, **about))
        taken = calls.take_calls(run=first, limit=1)
        (request,) = taken.requests
        CALLS.mark_sent(lease=taken.lease, attempts=[request.attempt.pk])
        scores = {one.key: {"rationale": "So.", "score": one.choices[0]} for one in request.criteria}
        answer = client.stored_answer({"choices": [{"message": {"content": json.dumps(scores)}}]})
        variant = judges.variant_of(first.judge.variant)
        outcome = calls.answered_outcome(request, lease=taken.lease, variant=variant, answer=answer)
        looked: list[str] = []

        def settled_meanwhile(execute: Any, sql: str, *rest: Any) -> Any:
            if sql.startswith("SELECT") and '"reply_key" IN' in sql:
                looked.append(sql)
                if len(looked) == 2:
                    assert CALLS.settle(outcomes=[outcome]) == 1
            return execute(sql, *rest)

        with connection.execute_wrapper(settled_meanwhile):
            assert calls.take_calls(run=second, limit=1).requests == []
        worked([second])
        assert Attempt.objects.get(call__run=second).outcome == Attempt.Outcome.REUSED
        assert priced.control()["requests"] == 0

    def test_a_reference_answer_makes_requests_differ_only_where_an_item_has_one(
        self, cast: Cast, priced: RunningProvider
    ) -> None:
        plain, given = make.item_row(0), make.item_row(1, fields={"reference": "Jah."})
        dataset = make.dataset(cast.kassa, [plain, given])
        factors = {"reference_answer": ["hidden", "shown"]}
        about = {"dataset": dataset, "rubric_version": make.rubric(cast.kassa)}
        design = made(cast, factors=factors, repeats=1, **about)
        assert designs.forecast_design(design).shared == 1
        worked(designs.start_design(design=design))
        assert priced.control()["requests"] == 3


class TestPages:
    def test_a_temperature_that_is_no_number_is_refused_as_such(self, cast: Cast, priced: RunningProvider) -> None:
        asked = {"name": "D", "judges_asked": [limited(cast).pk], "dataset": make.dataset(cast.kassa, 1).pk}
        asked |= {"rubric_version": make.rubric(cast.kassa).pk, "repeats": 1}
        for temperature in ("nan", "0, inf", "1e999"):
            address = reverse("design_new", args=["kassa"])
            page = cast.client("boris").post(address, {**asked, "temperature": temperature}).content.decode()
            assert "Temperatures are numbers with a comma between" in page
            assert "Another design" not in page

    @pytest.mark.parametrize(
        "factors",
        [
            '{"temperature": [{"a": 1}]}',
            '{"temperature": [%s]}' % ("9" * 401),
            '{"temperature": [true]}',
            '{"top_p": ["0.5"]}',
            '{"reasoning_effort": [1]}',
            r'{"reasoning_effort": ["\ud800"]}',
        ],
    )
    def test_a_level_that_is_none_is_refused(self, cast: Cast, priced: RunningProvider, factors: str) -> None:
        about: dict[str, Any] = {"name": "D", "judges": [limited(cast).pk], "dataset": make.dataset(cast.kassa, 1).pk}
        about["rubric_version"] = make.rubric(cast.kassa).pk
        body = f'{json.dumps(about)[:-1]}, "factors": {factors}}}'
        there = "/api/v1/projects/kassa/designs/"
        answer = cast.client("boris").post(there, body, content_type="application/json")
        assert answer.status_code in (400, 409, 422), answer.content
        assert "factors" in answer.json()["fields"]
        assert not JudgeDesign.objects.exists()

    def test_the_rows_of_its_page_add_up_to_what_was_sent_and_paid(
        self, cast: Cast, priced: RunningProvider, client: Client
    ) -> None:
        client.force_login(cast.boris)
        design = made(cast, repeats=1)
        worked(designs.start_pilot(design=design))
        worked(designs.start_design(design=design))
        page = client.get(reverse("design", args=["kassa", design.pk]))
        total, pilot = page.context["total"], page.context["pilot_row"]
        sent, rows = priced.control()["requests"], page.context["rows"]
        assert pilot["sent"] > 0
        assert total["sent"] == sent == pilot["sent"] + sum(row.sent for row in rows)
        assert total["paid"] == page.context["spent"].paid == pilot["paid"] + sum(row.paid or 0 for row in rows)
        text = " ".join(re.sub(r"<[^>]*>", " ", page.content.decode()).split())
        assert f"{sent} requests sent ({pilot['sent']} by the pilot)" in text
        assert "How much of the rubric: Names of criteria and points only" in text
        assert "Pilot Its replies are used by the runs." in text

    def test_a_design_is_made_confirmed_and_watched(
        self, cast: Cast, priced: RunningProvider, client: Client, settings: Any
    ) -> None:
        client.force_login(cast.boris)
        judge, dataset, version = limited(cast), make.dataset(cast.kassa, 3), make.rubric(cast.kassa)
        asked = {"name": "Styles", "judges_asked": [judge.pk], "dataset": dataset.pk, "rubric_version": version.pk}
        asked |= {"anchor_detail": ["name", "reasons"], "temperature": "0, 0.7", "repeats": 1, "jury": "majority"}
        made_page = client.post(reverse("design_new", args=["kassa"]), {**asked, "budget": "5"}, follow=True)
        design = JudgeDesign.objects.get()
        assert design.factors == {
            "judge": [judge.name],
            "anchor_detail": ["name", "reasons"],
            "temperature": [0.0, 0.7],
        }
        text = made_page.content.decode()
        assert "Start: 12 new calls, 0 replies used" in text
        client.post(reverse("design_move", args=["kassa", design.pk]), {"to": "start"})
        worked(list(design.runs.all()))
        page = client.get(reverse("design", args=["kassa", design.pk])).content.decode()
        assert "100 % done" in page
        assert "12 of 12 calls" in page
        assert "Styles" in client.get(reverse("designs", args=["kassa"])).content.decode()
        like = client.get(reverse("design_new", args=["kassa"]) + f"?like={design.pk}").content.decode()
        assert "0, 0.7" in like

    def test_the_api_makes_starts_and_shows_a_design(self, cast: Cast, priced: RunningProvider, client: Client) -> None:
        client.force_login(cast.boris)
        there = "/api/v1/projects/kassa/designs/"
        body = {"name": "D", "judges": [limited(cast).pk], "factors": {"explanation": [True, False]}}
        body |= {"dataset": make.dataset(cast.kassa, 2).pk, "rubric_version": make.rubric(cast.kassa).pk}
        assert client.post(there, {**body, "bugdet": 1}, content_type="application/json").status_code == 400
        posted = client.post(there, body, content_type="application/json")
        assert posted.status_code == 201, posted.json()
        number = posted.json()["id"]
        assert posted.json()["phase"] == "planned"
        assert client.get(f"{there}{number}/forecast/").json()["calls"] == 4
        started = client.post(f"{there}{number}/start/")
        assert started.json()["phase"] == "running"
        worked(list(JudgeRun.objects.all()))
        shown = client.get(f"{there}{number}/").json()
        assert (shown["phase"], shown["progress"]["settled"]) == ("finished", 4)
        assert [cell["levels"] for cell in shown["cells"]] == [{"explanation": True}, {"explanation": False}]
        assert client.post(f"{there}{number}/pause/").status_code == 409


def test_the_command_makes_forecasts_and_refuses(cast: Cast, priced: RunningProvider, capsys: Any) -> None:
    make.dataset(cast.kassa, 2, name="Dialogues")
    version = make.rubric(cast.kassa)
    judge = limited(cast)
    plan = ["--project", "kassa", "--name", "Cli", "--judge", judge.name, "--factor", "explanation=true,false"]
    call_command("run_design", *plan, "--dataset", "Dialogues", "--rubric", version.rubric.key, "--forecast")
    assert "2 cells, 2 items, 4 calls, 0 of them already answered; 4 new calls, about $" in capsys.readouterr().out
    with pytest.raises(CommandError, match="leave out --judge"):
        call_command("run_design", *plan)
    with pytest.raises(CommandError, match="There is no judge"):
        call_command("run_design", "--project", "kassa", "--name", "X", "--judge", "gone", "--dataset", "Dialogues",
                     "--rubric", version.rubric.key)  # fmt: skip
    assert Attempt.objects.count() == 0
    assert runs.list_runs(JudgeRun.objects.all()) == []


@pytest.mark.parametrize("levels", ["True,False", "true,false", "yes,no", "on,off", "TRUE, no"])
def test_a_factor_that_is_on_or_off_is_read_however_it_is_written(
    cast: Cast, provider: RunningProvider, capsys: pytest.CaptureFixture[str], levels: str
) -> None:
    make.dataset(cast.kassa, 2)
    version, judge = make.rubric(cast.kassa), limited(cast)
    about = ["--project", "kassa", "--judge", judge.name, "--dataset", "Dialogues", "--rubric", version.rubric.key]
    call_command("run_design", *about, "--name", "D", "--factor", f"explanation={levels}", "--forecast")
    assert "2 cells" in capsys.readouterr().out
    assert JudgeDesign.objects.get().factors["explanation"] == [True, False]
    with pytest.raises(CommandError, match=re.escape("“maybe” is not a valid explanation. Use one of: true, false.")):
        call_command("run_design", *about, "--name", "E", "--factor", "explanation=maybe,true")
