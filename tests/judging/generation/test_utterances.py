"""User turns of a simulation as a dataset: what the judge saw, and a judge run about them that pays nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from accounts.refusals import Refused
from annotation.models import Item
from judging import calls, runs
from judging.generation.specs import parse_spec
from judging.generation.utterance_judge import UtteranceJudge, declare_utterance_judge, utterance_rubric
from judging.generation.utterances import judged_tries, store_utterances
from judging.models import Attempt, Call, GenerationAttempt, GenerationPlan, Realisation, Verdict
from tests.cast import Cast
from tests.judging.generation.conversed import BOTS, SIMULATED_USERS, simulated_plan
from tests.judging.test_runs import declared, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def _judged(cast: Cast) -> tuple[GenerationPlan, UtteranceJudge]:
    """A simulation whose verdicts have the keys and replies that the engine stores."""
    plan = simulated_plan(cast, families=2)
    judge = UtteranceJudge(
        declare_utterance_judge(project=cast.kassa, provider="simulated", model="sim-steady"),
        utterance_rubric(project=cast.kassa),
    )
    plan.utterance_judge, plan.utterance_rubric = judge.judge, utterance_rubric(project=cast.kassa)
    plan.save()
    spec = parse_spec(plan.spec)
    for attempt in GenerationAttempt.objects.filter(pk__in=judged_tries(plan)).select_related("realisation__family"):
        row = attempt.realisation
        messages = judge.messages(
            spec,
            row.family.parameters,
            language=row.language,
            turns=row.turns[: 2 * attempt.turn],
            utterance=attempt.text,
        )
        score = 0 if attempt.problems else 1
        content = json.dumps({brief.key: {"rationale": "ok", "score": score} for brief in judge.criteria})
        attempt.reply_key = judge.reply_key(messages)
        attempt.reply = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
        attempt.served_model = "sim-steady-2026-01"
        attempt.save()
    return plan, judge


def test_a_run_of_the_same_judge_about_the_stored_turns_pays_nothing(cast: Cast, provider: RunningProvider) -> None:
    plan, judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Vooru “1” – أدوار", actor=cast.boris)
    tries = judged_tries(plan)
    # 2 families x 2 languages x 2 user models: two tries of each opening, and a later turn with each of two chatbots.
    assert dataset.items.count() == len(tries) == 8 * 2 + 8 * 2
    before = provider.control()["requests"]
    run = runs.start_judge_run(judge=judge.judge, dataset=dataset, rubric_version=utterance_rubric(project=cast.kassa))
    progress = worked(run)
    assert (progress.planned, progress.settled) == (32, 32)
    assert provider.control()["requests"] == before
    reused = Attempt.objects.filter(call__run=run)
    assert {(one.outcome, one.reused_from_id, one.cost) for one in reused} == {("reused", None, None)}
    assert {one.served_model for one in reused} == {"sim-steady-2026-01"}
    refused = {item.pk for item in dataset.items.all() if not item.attributes["accepted"]}
    assert len(refused) == 8
    scores = Verdict.objects.filter(run=run).values_list("item", "score")
    assert len(scores) == 32 * 4 and all(score == (0 if item in refused else 1) for item, score in scores)


def test_a_verdict_that_could_not_be_read_is_no_verdict(cast: Cast, provider: RunningProvider) -> None:
    plan, judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Turns", actor=cast.boris)
    tries = judged_tries(plan)
    unread = GenerationAttempt.objects.filter(pk__in=tries, realisation__is_opening=False)
    count = unread.update(problems=[{"code": "no_verdict", "values": {}}])
    assert len(judged_tries(plan)) == len(tries) - count == 16
    stored = store_utterances(plan=plan, name="Those that were read", actor=cast.boris)
    assert stored.items.count() == 16
    run = runs.start_judge_run(judge=judge.judge, dataset=dataset, rubric_version=utterance_rubric(project=cast.kassa))
    assert worked(run).settled == 32
    asked = Attempt.objects.filter(call__run=run, outcome="replied").count()
    assert asked == provider.control()["requests"] > 0, "the judge is asked, the cut off reply is not used"


def test_another_judge_is_asked(cast: Cast, provider: RunningProvider) -> None:
    plan, _judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Turns", most=5, seed=3)
    other = declared(cast, "sim-harsh")
    run = runs.start_judge_run(judge=other, dataset=dataset, rubric_version=utterance_rubric(project=cast.kassa))
    assert worked(run).settled == 5
    assert provider.control()["requests"] == 5


def test_what_is_stored_is_what_the_judge_saw(cast: Cast, provider: RunningProvider) -> None:
    plan, _judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Turns")
    first = Item.objects.filter(dataset=dataset, attributes__turn=1, language="ar").first()
    later = Item.objects.filter(dataset=dataset, attributes__turn=2, language="et").first()
    assert first and later
    assert len(first.turns) == 1 and first.attributes["chatbot"] == ""
    assert [turn["speaker"] for turn in later.turns] == ["user", "assistant", "user"]
    assert later.turns[-1]["text"] == "Ei, ei iial!" and later.attributes["chatbot"]
    assert later.generator in ("Mängija", "لاعب") and later.scenario == "family-0001"
    assert {"scene", "persona", "family"} <= set(later.attributes) and later.attributes["plan"] == plan.name
    assert dataset.simulated
    sample = store_utterances(plan=plan, name="Sample", most=7, seed=5)
    again = store_utterances(plan=plan, name="Sample again", most=7, seed=5)
    keys = [[*one.items.order_by("pk").values_list("external_id", flat=True)] for one in (sample, again)]
    assert keys[0] == keys[1] and len(keys[0]) == 7


def test_nothing_judged_or_a_name_twice_is_refused(cast: Cast, provider: RunningProvider) -> None:
    plan, _judge = _judged(cast)
    store_utterances(plan=plan, name="Turns")
    for name, code in (("Turns", "name_taken"), (" ", "invalid")):
        with pytest.raises(Refused) as refused:
            store_utterances(plan=plan, name=name)
        assert refused.value.code == code
    GenerationAttempt.objects.filter(step="verdict").update(outcome="lost")
    with pytest.raises(Refused) as refused:
        store_utterances(plan=plan, name="None")
    assert refused.value.code == "wrong_state"


def test_a_forecast_counts_the_verdicts_of_simulations(cast: Cast, provider: RunningProvider) -> None:
    plan, judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Vooru “1” – أدوار")
    about: dict[str, Any] = {"dataset": dataset, "rubric_version": utterance_rubric(project=cast.kassa)}
    likely = runs.forecast(judge=judge.judge, **about)
    assert (likely.calls, likely.answered, likely.new_calls, likely.tokens_in) == (32, 32, 0, 0)
    twice = runs.forecast(judge=judge.judge, repeats=2, **about)
    assert (twice.calls, twice.answered) == (64, 32), "a second repeat is asked for"
    GenerationAttempt.objects.filter(step="verdict", realisation__is_opening=False).update(reply_key="")
    assert runs.forecast(judge=judge.judge, **about).new_calls == 16
    assert runs.forecast(judge=declared(cast, "sim-harsh"), **about).answered == 0


@pytest.mark.both_databases
def test_a_run_waits_for_the_verdicts_that_a_simulation_has_in_flight(cast: Cast, provider: RunningProvider) -> None:
    plan, judge = _judged(cast)
    dataset = store_utterances(plan=plan, name="Turns")
    later = GenerationAttempt.objects.filter(step="verdict", realisation__is_opening=False)
    asking = {"state": "leased", "lease": uuid4(), "leased_until": timezone.now() + timedelta(minutes=5)}
    Realisation.objects.filter(pk__in=later.values("realisation")).update(**asking)
    assert later.update(outcome="sent") == 16
    run = runs.start_judge_run(judge=judge.judge, dataset=dataset, rubric_version=utterance_rubric(project=cast.kassa))
    taken = calls.take_calls(run=run, limit=100)
    assert (taken.requests, taken.reused) == ([], 32)
    waiting = Call.objects.filter(run=run, state="waiting")
    assert waiting.count() == waiting.filter(not_before__gt=timezone.now() - timedelta(seconds=1)).count() == 16
    Realisation.objects.filter(pk__in=later.values("realisation")).update(
        state="written", lease=None, leased_until=None
    )
    later.update(outcome="replied")
    assert worked(run).settled == 32
    assert provider.control()["requests"] == 0


def test_no_id_of_a_turn_names_a_model_or_is_that_of_another(cast: Cast, provider: RunningProvider) -> None:
    plan, _judge = _judged(cast)
    plan.generators.filter(name=BOTS[0]).update(name="opening")
    dataset = store_utterances(plan=plan, name="Turns")
    assert dataset.items.count() == len(judged_tries(plan)) == 32
    keys = [*dataset.items.values_list("external_id", flat=True)]
    assert not [key for key in keys if any(name in key for name in ("opening", BOTS[1], *SIMULATED_USERS))]
    assert set(dataset.items.values_list("attributes__chatbot", flat=True)) == {"", "opening", BOTS[1]}


@pytest.mark.both_databases
def test_only_verdicts_take_up_the_index_of_replies(cast: Cast) -> None:
    definition = "SELECT indexdef FROM pg_indexes WHERE indexname = %s"
    if connection.vendor == "sqlite":
        definition = "SELECT sql FROM sqlite_master WHERE name = %s"
    with connection.cursor() as cursor:
        cursor.execute(definition, ["generation_verdict_key"])
        [written] = cursor.fetchone()
    assert "WHERE" in written and "reply_key" in written.split("WHERE")[1]
