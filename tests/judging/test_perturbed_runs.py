"""Audit runs through API and workers: items and figures stay as they were, unchanged texts are not paid again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from accounts.refusals import Refused
from analytics.ratings import ratings_tables
from analytics.ratings.raters import all_runs, newest_runs
from annotation import campaigns
from annotation.models import Item
from judging import perturbed_runs, runs
from judging.models import Attempt, Call, JudgeRun, Verdict
from tests import make
from tests.cast import Cast
from tests.judging.test_money import priced, until_at_rest  # noqa: F401 (a fixture)
from tests.judging.test_runs import declared, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

CHANGES = ["shuffled_words_30", "whitespace", "criteria_reversed", "instructions_et", "foreign_turn"]


def about(cast: Cast, items: int = 8, **options: Any) -> dict[str, Any]:
    rows = [
        make.item_row(number, language=("et", "fi")[number % 2], scenario=f"s{number // 2}") for number in range(items)
    ]
    return {
        "judge": declared(cast, **options),
        "dataset": make.dataset(cast.kassa, rows),
        "rubric_version": make.rubric(cast.kassa),
    }


def test_an_audit_asks_about_unchanged_and_changed_texts_and_stores_no_item(
    cast: Cast, provider: RunningProvider
) -> None:
    what = about(cast)
    worked(runs.start_judge_run(**what))
    forecast = perturbed_runs.forecast_audit(**what, changes=CHANGES, per_language=3, seed=5)
    audit = perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=3, seed=5, actor=cast.boris)
    done = worked(audit)
    assert (forecast.calls, forecast.answered, forecast.items) == (36, 6, 6)
    assert dict(forecast.perturbed) == dict.fromkeys(CHANGES, 6)
    assert (done.planned, done.reused, done.attempts) == (36, 6, 30)
    assert Item.objects.count() == 8
    sent = Attempt.objects.filter(call__run=audit).exclude(outcome="reused")
    assert sent.values("reply_key").distinct().count() == 30
    assert Verdict.objects.filter(run=audit).exclude(change="").count() == 60
    texts = {call.item_id: call for call in Call.objects.filter(run=audit, change="foreign_turn")}
    for call in texts.values():
        other = Item.objects.exclude(language=call.item.language).get(scenario=call.item.scenario)
        message = call.attempts.get().request["messages"][1]["content"]
        assert any(turn["text"] in message for turn in other.turns)


def test_an_audit_is_in_no_figure_export_or_list_of_verdicts(cast: Cast, provider: RunningProvider) -> None:
    what = about(cast)
    run = runs.start_judge_run(**what)
    worked(run)
    about_items = {"dataset": what["dataset"], "rubric_version": what["rubric_version"]}
    campaign = campaigns.open_campaign(project=cast.kassa, name="Round", **about_items)
    before = list(ratings_tables.rows(campaign=campaign))
    audit = perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=3)
    worked(audit)
    assert list(ratings_tables.rows(campaign=campaign)) == before
    assert list(newest_runs(campaign)) == list(all_runs(campaign)) == [run]
    client = cast.client("boris")
    listed = client.get("/api/v1/projects/kassa/verdicts/?page_size=500").json()["results"]
    assert {row["run"] for row in listed} == {run.pk}
    of_audit = client.get(f"/api/v1/projects/kassa/verdicts/?run={audit.pk}").json()["results"]
    assert {row["change"] for row in of_audit} <= {"", *CHANGES}
    assert runs.start_judge_run(**what).continues is None


def test_the_same_start_twice_is_one_run_and_another_is_refused(cast: Cast, provider: RunningProvider) -> None:
    what = about(cast)
    first = perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=3, key="k")
    assert perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=3, key="k") == first
    with pytest.raises(Refused, match="already used"):
        perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=2, key="k")
    with pytest.raises(Refused, match="already used"):
        runs.start_judge_run(**what, key="k")
    assert JudgeRun.objects.count() == 1


@pytest.mark.parametrize("is_pilot", [True, False])
def test_each_language_is_filled_up_from_items_that_were_not_asked(
    cast: Cast, provider: RunningProvider, is_pilot: bool
) -> None:
    """Two Estonian items have replies, of a pilot or of an ordinary run; three of each language are drawn."""
    what = about(cast)
    run = runs.start_judge_run(**what)
    known = list(Item.objects.filter(language="et").order_by("-pk").values_list("pk", flat=True)[:2])
    run.calls.exclude(item__in=known).delete()
    worked(run)
    JudgeRun.objects.filter(pk=run.pk).update(is_pilot=is_pilot)
    drawn = [perturbed_runs.drawn_items(**what, per_language=3, seed=seed) for seed in range(4)]
    assert [sorted(item.language for item in items) for items in drawn] == [["et"] * 3 + ["fi"] * 3] * 4
    assert all({*known} <= {item.pk for item in items} for items in drawn) is not is_pilot


def test_a_change_is_planned_of_what_the_judge_is_shown(cast: Cast, provider: RunningProvider) -> None:
    """The words of a reference answer that is hidden from the judge can't be shuffled."""
    rows = [make.item_row(1, turns=[], fields={"question": "Yes?", "reference": "The answer that was expected here"})]
    what = {"dataset": make.dataset(cast.kassa, rows), "rubric_version": make.rubric(cast.kassa)}
    plan = {"changes": ["shuffled_words_100"], "per_language": 3, "seed": 5, **what}
    seen = perturbed_runs.planned_texts(judge=declared(cast, reference_answer="shown"), **plan)
    hidden = perturbed_runs.planned_texts(judge=declared(cast, reference_answer="hidden"), **plan)
    assert [len(plan.perturbed["shuffled_words_100"]) for plan in (seen, hidden)] == [1, 0]


def test_a_change_that_cannot_be_made_fails_its_call_and_the_others_go_on(
    cast: Cast, provider: RunningProvider
) -> None:
    what = about(cast) | {"dataset": make.dataset(cast.kassa, [make.item_row(n) for n in (1, 2)])}
    audit = perturbed_runs.start_perturbed_run(**what, changes=["whitespace"])
    first = audit.calls.order_by("pk").first()
    impossible = Call.objects.create(run=audit, item=first.item, change="foreign_turn")
    Call.objects.create(run=audit, item=audit.calls.last().item, change="criteria_reversed")
    done = worked(audit)
    assert (done.settled, done.failed, done.finished) == (5, 1, True)
    impossible.refresh_from_db()
    audit.refresh_from_db()
    assert (impossible.state, audit.state, audit.reason) == ("failed", "running", "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"changes": []}, "Choose at least one"),
        ({"changes": ["upside_down"]}, "There is no change “upside_down”"),
        ({"changes": ["shuffled_words_0"]}, "shares from 1 to 100"),
        ({"changes": ["whitespace"], "per_language": 0}, "from 1 to 500"),
        ({"changes": ["instructions_en"]}, "None of the chosen changes"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    cast: Cast, provider: RunningProvider, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        perturbed_runs.start_perturbed_run(**about(cast), **options)
    assert not Call.objects.exists()


def test_a_cap_holds_for_an_audit(cast: Cast, priced: RunningProvider) -> None:  # noqa: F811
    priced.control(dearer=60)
    what = about(cast, parameters={"max_tokens": 2000})
    audit = perturbed_runs.start_perturbed_run(**what, changes=CHANGES, per_language=4, budget=Decimal("1.00"))
    done = until_at_rest(audit)
    assert audit.state == "paused"
    assert done.cost is not None
    assert done.cost <= Decimal("1.00")
    assert 0 < done.settled < done.planned


def test_an_audit_from_before_goes_on_by_its_rule_and_a_new_one_shuffles_words(
    cast: Cast, provider: RunningProvider
) -> None:
    text = "注文した荷物がまだ届いていません。昨日の午後に届く予定でした。"
    rows = [make.item_row(1, language="ja", turns=[{"speaker": "customer", "text": text}])]
    what = {**about(cast), "dataset": make.dataset(cast.kassa, rows, name="Japanese")}
    plan = {"changes": ["nonsense"], "per_language": 1, "seed": 3}
    sent = {}
    for rule in (2, 1):
        audit = perturbed_runs.start_perturbed_run(**what, **plan, key="k" if rule == 2 else None)
        assert audit.perturbation == {**plan, "rule": 2}
        if rule == 1:
            JudgeRun.objects.filter(pk=audit.pk).update(perturbation=plan)
        worked(audit)
        request = Attempt.objects.get(call__run=audit, call__change="nonsense").request
        sent[rule] = request["messages"][1]["content"]
    assert all(word in sent[2] for word in ("注文", "荷物", "まだ", "昨日", "午後", "予定"))
    assert not all(word in sent[1] for word in ("注文", "荷物", "まだ", "昨日", "午後", "予定"))
    again = perturbed_runs.start_perturbed_run(**what, **plan, key="k")
    assert again.perturbation == {**plan, "rule": 2}, "the same key is the same run, also for one from before"
