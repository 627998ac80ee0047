"""Which steps of a simulation are taken, and what a late, lost or unreadable reply does to its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from accounts.refusals import Refused
from annotation.models import RubricVersion
from judging.asking import leases
from judging.asking.client import ProviderUnavailable
from judging.generation import conversations, plan_forecasts, plans, storing
from judging.generation.conversing import CONVERSATIONS, PlanAsker, StepOutcome, StepRequest, StepRequestWriter
from judging.generation.plans import GeneratorChoice
from judging.generation.specs import parse_spec
from judging.generation.steps import StepProgress
from judging.generation.utterance_judge import declare_utterance_judge, utterance_rubric
from judging.models import GenerationAttempt, GenerationPlan, ProviderAllowance, Realisation
from tests.analytics.test_bundles import loaded, taken_out
from tests.cast import Cast
from tests.judging.generation.conversed import BOTS, SIMULATED_USERS, simulated_plan
from tests.judging.generation.test_conversations import USER, begun, places, priced, replied, short_spec, simulated
from tests.judging.generation.test_conversations import planned as planned_simulation
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
TWO_USERS = [GeneratorChoice(provider="simulated", model=USER), GeneratorChoice(provider="simulated", model="sim-mild")]


def asker_of(plan: GenerationPlan) -> PlanAsker:
    return PlanAsker(
        GenerationPlan.objects.select_related("project", "utterance_judge", "utterance_rubric").get(pk=plan.pk)
    )


def sent_by(asker: PlanAsker, lease: UUID, limit: int = 100) -> list[StepRequest]:
    requests = list(asker.take(free=places(asker, limit), lease=lease).requests)
    CONVERSATIONS.mark_sent(lease=lease, attempts=[request.attempt.pk for request in requests])
    return requests


def freed_by_the_sweep() -> None:
    CONVERSATIONS.sweep(now=timezone.now() + leases.LEASE * 2)


TO_VERDICT = StepProgress(step="verdict", turn=0, turns=[], draft="Ma kaotasin võtme.")


@pytest.mark.both_databases
def test_a_model_without_free_places_leaves_those_of_others(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=6, models=("sim-steady",), user_models=TWO_USERS)
    asker = asker_of(plan)
    for free, expected in (({USER: 0, "sim-mild": 3}, ["sim-mild"] * 3), ({USER: 2, "sim-mild": 2}, 2 * [USER])):
        taken = asker.take(free={("simulated", model): count for model, count in free.items()}, lease=uuid4())
        models = sorted(request.model for request in taken.requests)
        assert models == sorted([*expected, *([] if free[USER] == 0 else ["sim-mild"] * 2)])


def test_a_spent_cap_of_one_provider_lets_the_others_go_on(
    cast: Cast, provider: RunningProvider, settings: Any
) -> None:
    priced(settings)
    settings.PROVIDERS = {
        **settings.PROVIDERS, "paid": replace(settings.PROVIDERS["simulated"], name="paid", simulated=False)
    }  # fmt: skip
    ProviderAllowance.objects.create(project=cast.kassa, provider="paid", cap_total=Decimal("0.000001"))
    users = [GeneratorChoice(provider="paid", model=USER), GeneratorChoice(provider="simulated", model="sim-steady")]
    plan = begun(cast, families=3, models=("sim-chatty",), user_models=users, judged=False)
    rows = Realisation.everything.filter(plan=plan, generator__provider="simulated", is_opening=True)
    rows.update(not_before=timezone.now() + leases.LEASE)
    asker = asker_of(plan)
    taken = asker.take(free=places(asker, 2), lease=uuid4())
    assert (taken.requests, taken.spent, taken.held_up) == ([], "", True), "others wait for their next try"
    rows.update(not_before=None)
    simulated(plan)
    assert plan.state == "paused" and "paid" in plan.reason
    of_others = plan.realisations.filter(simulator__provider="simulated")
    assert not of_others.filter(state__in=plans.OPEN_STATES).exists()
    assert set(plan.realisations.exclude(pk__in=of_others).values_list("state", flat=True)) == {"waiting"}


@pytest.mark.both_databases
def test_a_session_that_retakes_a_row_has_one_attempt_open(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, models=("sim-steady",))
    asker, lease = asker_of(plan), uuid4()
    [first] = sent_by(asker, lease)
    freed_by_the_sweep()
    [second] = sent_by(asker, lease)
    assert second.row.pk == first.row.pk
    assert CONVERSATIONS.settle(outcomes=[replied(first, lease, TO_VERDICT)]) == 1
    [verdict] = sent_by(asker, lease)
    assert verdict.attempt.step == "verdict"
    open_ones = GenerationAttempt.objects.filter(outcome__in=GenerationAttempt.OPEN)
    assert list(open_ones.values_list("pk", flat=True)) == [verdict.attempt.pk]
    assert GenerationAttempt.objects.get(pk=second.attempt.pk).outcome == "lost"


@pytest.mark.both_databases
def test_a_discarded_reply_does_not_move_a_row_that_is_asked_for_anew(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, models=("sim-steady",))
    asker, lease = asker_of(plan), uuid4()
    [first] = sent_by(asker, lease)
    freed_by_the_sweep()
    [second] = sent_by(asker, lease)
    discarded = StepProgress(step="utterance", turn=0, turns=[], refused_tries=1, is_discarded=True)
    CONVERSATIONS.settle(outcomes=[replied(first, lease, discarded)])
    row = Realisation.everything.get(pk=first.row.pk)
    assert (row.state, row.lease, row.refused_tries) == ("leased", lease, 0)
    assert CONVERSATIONS.settle(outcomes=[replied(second, lease, TO_VERDICT)]) == 1


@pytest.mark.both_databases
def test_an_unsent_request_does_not_free_a_later_one_of_its_row(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, models=("sim-steady",))
    asker, theirs, mine = asker_of(plan), uuid4(), uuid4()
    [first] = sent_by(asker, theirs)
    freed_by_the_sweep()
    [unsent] = asker.take(free=places(asker, 1), lease=mine).requests
    CONVERSATIONS.settle(outcomes=[replied(first, theirs, TO_VERDICT)])
    [verdict] = sent_by(asker, mine)
    assert verdict.row.pk == unsent.row.pk
    assert CONVERSATIONS.mark_sent(lease=mine, attempts=[unsent.attempt.pk]) == set()
    assert CONVERSATIONS.release(lease=mine, attempts=[unsent.attempt.pk]) == 0
    assert GenerationAttempt.objects.get(pk=verdict.attempt.pk).outcome == "sent"
    assert CONVERSATIONS.release(lease=mine, attempts=[verdict.attempt.pk]) == 1


def refused(asked: StepRequest, lease: UUID) -> StepOutcome:
    attempt = GenerationAttempt(pk=asked.attempt.pk, realisation=asked.row, outcome="refused", reason="No.")
    return StepOutcome(step_request=asked, lease=lease, attempt=attempt, refusal="No.")


@pytest.mark.skipif(connection.vendor == "sqlite", reason="two transactions at once need PostgreSQL")
def test_an_opening_given_up_while_texts_are_asked_for_again_is_asked_for_too(
    cast: Cast, provider: RunningProvider
) -> None:
    plan = begun(cast, families=2)
    asker, lease = asker_of(plan), uuid4()
    one, other = sent_by(asker, lease)
    CONVERSATIONS.settle(outcomes=[refused(one, lease)])
    workers: list[Thread] = []

    def settles_before(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('UPDATE "judging_realisation"') and not workers:
            workers.append(Thread(target=_settled_apart, args=(refused(other, lease),)))
            workers[0].start()
            workers[0].join()
        return execute(sql, *rest)

    with connection.execute_wrapper(settles_before):
        plans.ask_again(plan=plan)
    assert workers
    stuck = plan.realisations.filter(state="waiting", step="opening", opening__state="given_up")
    assert not stuck.exists()
    assert set(Realisation.everything.filter(plan=plan).values_list("state", flat=True)) == {"waiting"}


def _settled_apart(outcome: StepOutcome) -> None:
    try:
        CONVERSATIONS.settle(outcomes=[outcome])
    finally:
        connection.close()


@pytest.mark.both_databases
def test_a_conversation_that_waits_for_a_given_up_opening_can_be_asked_for_again(
    cast: Cast, provider: RunningProvider
) -> None:
    plan = begun(cast, families=1)
    Realisation.everything.filter(plan=plan, is_opening=True).update(state="given_up")
    assert plans.ask_again(plan=plan) == 0
    assert Realisation.everything.get(plan=plan, is_opening=True).state == "waiting"


@pytest.mark.parametrize("sampling", [{"answer": {"n": 2}}, {"utterance": {"stream": 1}}])
def test_a_parameter_that_panelbench_sets_is_no_sampling(sampling: dict[str, Any]) -> None:
    stored = short_spec().stored
    with pytest.raises(Refused) as no:
        parse_spec({**stored, "conversation": {**stored["conversation"], "sampling": sampling}})
    assert "sampling" in str(no.value.fields)


@pytest.mark.parametrize("limit", [0, 512.5])
def test_a_limit_of_tokens_that_is_none_is_no_sampling(cast: Cast, provider: RunningProvider, limit: float) -> None:
    for step in ("answer", "utterance", "opening"):
        with pytest.raises(Refused) as no:
            planned_simulation(cast, spec=short_spec(sampling={step: {"max_completion_tokens": limit}}))
        assert list(no.value.fields) == ["spec"]
    assert planned_simulation(cast, spec=short_spec(sampling={"answer": {"max_completion_tokens": 512.0}}))


def test_a_seed_of_the_spec_differs_from_try_to_try(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, spec=short_spec(sampling={"opening": {"seed": 7}}))
    writer = asker_of(plan).writer
    row = Realisation.everything.select_related("family").get(plan=plan, is_opening=True)
    assert writer.has_seed
    seeds = [writer.write(row, asked=asked).parameters["seed"] for asked in (0, 1, 0)]
    assert seeds[0] == seeds[2] != seeds[1]


UNREADABLE = ProviderUnavailable("No JSON.", body="<html>", maybe_paid=True)


@pytest.mark.both_databases
def test_unreadable_bodies_count_by_step_and_anew_when_it_is_asked_for_again(
    cast: Cast, provider: RunningProvider
) -> None:
    plan = begun(cast, families=1, models=("sim-steady",))
    asker, lease = asker_of(plan), uuid4()

    def unreadable(times: int) -> str:
        for _time in range(times):
            Realisation.everything.filter(plan=plan).update(not_before=None)
            [asked] = sent_by(asker, lease)
            CONVERSATIONS.settle(outcomes=[asker.unavailable(asked, UNREADABLE, lease)])
        return Realisation.everything.get(plan=plan, is_opening=True).state

    assert unreadable(2) == "waiting"
    Realisation.everything.filter(plan=plan).update(not_before=None, losses=7)
    [asked] = sent_by(asker, lease)
    CONVERSATIONS.settle(outcomes=[replied(asked, lease, TO_VERDICT)])
    assert Realisation.everything.get(plan=plan, is_opening=True).losses == 0
    assert unreadable(2) == "waiting", "those about the opening do not count against its verdict"
    assert unreadable(1) == "given_up"
    plans.ask_again(plan=plan)
    assert unreadable(2) == "waiting"
    assert unreadable(1) == "given_up"


@pytest.mark.both_databases
def test_a_family_is_finished_before_the_next_begins(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=3, judged=False)
    asker, lease = asker_of(plan), uuid4()
    [first] = asker.take(free={("simulated", USER): 1}, lease=lease).requests
    CONVERSATIONS.mark_sent(lease=lease, attempts=[first.attempt.pk])
    turns = [{"speaker": short_spec().user_role, "text": "Tere!"}]
    written = StepProgress(state="written", step="utterance", turn=0, turns=turns)
    CONVERSATIONS.settle(outcomes=[replied(first, lease, written)])
    taken = sent_by(asker, lease, 1)
    assert [(one.row.family.number, one.attempt.step) for one in taken] == [
        (1, "answer"),
        (1, "answer"),
        (2, "opening"),
    ]


def corrupted(cast: Cast, rows: str, **values: Any) -> bytes:
    plan = begun(cast, families=2, languages=["et", "en"])
    found = Realisation.everything.filter(plan=plan, is_opening=rows == "openings")
    if "opening" in values:
        values["opening"] = Realisation.everything.filter(plan=plan, is_opening=True).latest("pk")
        found = found.filter(family__number=1)
    found.update(**values)
    return taken_out(cast.kassa, replies=True)


@pytest.mark.parametrize(
    ("rows", "values", "sentence"),
    [
        ("conversations", {"opening": "of another family"}, "opening"),
        ("openings", {"turns": [{"speaker": "narrator", "text": "x"}], "turn": 0, "step": "answer"}, "step"),
        ("conversations", {"turns": [{"speaker": "narrator", "text": "x"}], "step": "answer"}, "turns"),
        ("conversations", {"turn": 3}, "turns"),
    ],
)
def test_a_bundle_of_a_conversation_that_could_not_go_on_is_refused(
    cast: Cast, provider: RunningProvider, rows: str, values: dict[str, Any], sentence: str
) -> None:
    content = corrupted(cast, rows, **values)
    with pytest.raises(Refused, match=sentence):
        loaded(cast.teine, content)
    assert not GenerationPlan.objects.filter(project=cast.teine).exists()


def test_a_bundle_of_a_verdict_without_a_judge_is_refused(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, judged=False)
    Realisation.everything.filter(plan=plan, is_opening=True).update(step="verdict", draft="Tere!")
    content = taken_out(cast.kassa, replies=True)
    with pytest.raises(Refused, match="step"):
        loaded(cast.teine, content)


@pytest.mark.both_databases
def test_a_bundle_without_replies_has_no_draft(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1)
    found = Realisation.everything.filter(plan=plan, is_opening=True)
    found.update(step="verdict", draft="Võtmed «kadusid»", problems=[{"code": "no_verdict", "values": {}}])
    content = taken_out(cast.kassa)
    loaded(cast.teine, content)
    there = Realisation.everything.get(plan__project=cast.teine, is_opening=True)
    assert (there.draft, there.step, there.state, there.problems) == ("", "utterance", "waiting", [])
    loaded_plan = there.plan
    assert plans.resume_plan(plan=loaded_plan)
    assert simulated(loaded_plan).done == 2


def test_the_page_moves_and_finds_reasons_while_openings_are_written(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1)
    before = plans.plan_revision(plan)
    asker, lease = asker_of(plan), uuid4()
    [opening] = sent_by(asker, lease)
    assert plans.plan_revision(plan) != before
    assert plans.plan_progress(plan).in_flight == 1
    GenerationAttempt.objects.filter(pk=opening.attempt.pk).update(problems=[{"code": "comment", "values": {}}])
    page = cast.client("boris").get(f"/p/kassa/generation/{plan.pk}/texts/?problem=comment")
    assert len(page.context["page_obj"].object_list) == 2


def test_a_forecast_is_measured_only_by_conversations_that_have_ended(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=4)
    for opening in Realisation.everything.filter(plan=plan, is_opening=True):
        for number, step in enumerate(("opening", "verdict"), 1):
            GenerationAttempt.objects.create(
                realisation=opening, number=number, step=step, outcome="replied", provider="simulated",
                model=USER if step == "opening" else "sim-steady", tokens_in=5, tokens_out=5, text="Tere!",
            )  # fmt: skip
    assert plan_forecasts.forecast_plan(plan).requests > 0
    parts = plan_forecasts.forecast_plan(plan).generators
    assert all(part.tokens_in > 20 * part.requests for part in parts), "not by the short requests of first turns"


def test_what_a_reader_sets_aside_is_not_the_engines_fault(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1)
    row = plan.realisations.all()[0]
    row.ended, row.decision, row.problems = "set_aside", "set_aside", [{"code": "mixed_language", "values": {}}]
    assert conversations.set_aside_code(row) == "mixed_language"
    row.decided_by = cast.boris
    assert conversations.set_aside_code(row) == conversations.BY_READER


def test_a_rubric_without_a_judge_is_refused_by_api(cast: Cast, provider: RunningProvider) -> None:
    about: dict[str, Any] = {
        "name": "Vestlused", "spec": "simulated-users", "languages": ["et"], "families": 2,
        "generators": [{"provider": "simulated", "model": "sim-steady"}],
        "user_models": [{"provider": "simulated", "model": "sim-user"}],
    }  # fmt: skip
    judge = declare_utterance_judge(project=cast.kassa, provider="simulated", model="sim-steady")
    boris, at = cast.client("boris"), "/api/v1/projects/kassa/generation/"
    many = {**about, "families": 10_000, "languages": ["et", "en", "ar"], "repeats": 20, "utterance_judge": judge.pk}
    refused_late = boris.post(at, many, content_type="application/json")
    assert refused_late.status_code == 422
    count = RubricVersion.objects.count()
    version = utterance_rubric(project=cast.kassa)
    assert RubricVersion.objects.count() == count + 1, "a refused plan publishes no rubric"
    alone = boris.post(at, {**about, "utterance_rubric": version.pk}, content_type="application/json")
    assert alone.status_code == 422 and b"utterance_judge" in alone.content


WIDE = "\U00020000"
"""Of the characters that take the most bytes."""


def test_no_request_costs_more_than_the_worst_case_of_the_forecast(
    cast: Cast, provider: RunningProvider, settings: Any
) -> None:
    """The longest are in the second language, for any family, and tell what was wrong with a long try."""
    priced(settings)
    spec = replace(short_spec(), templates={"en": "{scene}", "et": f"{{scene}} {'õ' * 3000}"})
    plan = planned_simulation(cast, spec=spec, languages=["en", "et"], families=6, models=("sim-steady",))
    rules = spec.simulation
    said = {"speaker": spec.user_role, "text": WIDE * rules.longest_utterance}
    turns = [said, {"speaker": spec.chatbot_role, "text": WIDE * spec.rules.longest}] * (rules.user_turns - 1)
    feedback = {"code": "refused_by_judge", "values": {"feedback": WIDE * 3000}}
    problems = [feedback, {"code": "stand_in", "values": {"text": WIDE * 60}}, {"code": "inverted_role", "values": {}}]
    asker = asker_of(plan)
    longest: dict[str, Decimal] = {}
    for row in plan.realisations.select_related("family"):
        row.turn, row.draft, row.problems = rules.user_turns - 1, said["text"], problems
        for step, so_far in (("utterance", turns), ("verdict", turns), ("answer", [*turns, said])):
            row.step, row.turns = step, so_far
            worst = asker.writer.write(row).worst_case
            assert worst is not None
            longest[step] = max(worst, longest.get(step, Decimal(0)))
    count = plan.realisations.count() * rules.user_turns
    tries = {"utterance": rules.first_tries, "answer": 1 + spec.retries}
    tries["verdict"] = rules.first_tries * (1 + spec.retries)
    forecast = plan_forecasts.forecast_plan(plan)
    for part, step in zip(forecast.generators, ("answer", "utterance", "verdict"), strict=True):
        assert part.worst is not None
        assert part.worst >= longest[step] * count * tries[step], step
        assert part.worst < 2 * longest[step] * count * tries[step], step


@pytest.mark.both_databases
def test_no_more_requests_are_written_than_may_be_in_flight(
    cast: Cast, provider: RunningProvider, settings: Any
) -> None:
    priced(settings)
    plan = begun(cast, families=20)
    asker, written = asker_of(plan), []

    class CountingWriter(StepRequestWriter):
        def write(self, row: Realisation, *, asked: int = 0) -> StepRequest:
            written.append(row.pk)
            return super().write(row, asked=asked)

    asker.writer = CountingWriter(asker.subject)
    taken = asker.take(free=places(asker, 64), lease=uuid4())
    assert (len(taken.requests), taken.held_up, taken.spent) == (2, True, ""), "no bill has come yet"
    assert len(written) == 3, "and one that shows that more are due"


def test_replies_that_were_discarded_for_a_first_turn_are_counted(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1)
    asker, lease = asker_of(plan), uuid4()
    [opening] = sent_by(asker, lease)
    refused = StepProgress(step="utterance", turn=0, turns=[], refused_tries=1, is_discarded=True)
    CONVERSATIONS.settle(outcomes=[replied(opening, lease, refused)])
    client, at = cast.client("boris"), f"/p/kassa/generation/{plan.pk}/"
    assert client.get(f"{at}texts/").content.decode().count("1 reply discarded") == 2
    assert [cell.discarded for cell in plans.progress_by_cell(plan)] == [1, 1]
    texts = client.get(f"/api/v1/projects/kassa/generation/{plan.pk}/texts/").json()["results"]
    assert [text["discarded"] for text in texts] == [1, 1]


def test_names_with_slashes_make_no_item_that_of_another(cast: Cast) -> None:
    plan = simulated_plan(cast, families=2)
    for names in (("a/b", "a"), ("c", "b/c")):
        for was, name in zip(BOTS if names[0] == "a/b" else SIMULATED_USERS, names, strict=True):
            plan.generators.filter(name=was).update(name=name)
    dataset = storing.store_dataset(plan=plan, name="Kõik", only="every")
    assert dataset.items.count() == plan.realisations.count() == 16
    again = storing.store_dataset(plan=plan, name="Kõik veel kord", only="every")
    keys = [[*one.items.order_by("ordinal").values_list("external_id", flat=True)] for one in (dataset, again)]
    assert keys[0] == keys[1]
