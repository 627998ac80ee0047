"""Generation plans travel in the bundle of their project: what was written, decided and paid, and what is left."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import models

from accounts.refusals import Refused
from analytics.exporting import bundles
from annotation.models import Dataset
from judging.generation import decisions, plans, storing
from judging.models import GenerationAttempt, GenerationPlan, Realisation
from tests.analytics.test_bundles import loaded, replaced, rewritten, taken_out
from tests.cast import Cast
from tests.judging.generation.test_writing import begun, priced, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def half_written(cast: Cast, provider: RunningProvider) -> GenerationPlan:
    """Three of four families written, with a discarded reply, a decision, a dataset, and a request under way."""
    priced()
    provider.control(written_breaks={"stand_in": 0.2})
    plan = begun(cast, name="Jutud “e\u0301” – قصص", languages=["et", "ar"], families=4, models=("sim-steady",))
    Realisation.objects.filter(plan=plan, family__number=4).update(not_before="2999-01-01T00:00Z")
    written(plan)
    text = Realisation.objects.filter(plan=plan, state="written")[0]
    decisions.decide_realisation(realisation=text, decision="set_aside", reason="Kordab «end»", actor=cast.boris)
    storing.store_dataset(plan=plan, name="Jutud", only="all", actor=cast.boris)
    waiting = Realisation.objects.get(plan=plan, family__number=4, language="et")
    GenerationAttempt.objects.create(realisation=waiting, number=1, outcome="sent", reserved="0.01")
    plan.refresh_from_db()
    return plan


@pytest.mark.both_databases
def test_a_plan_is_resumed_where_its_bundle_was_loaded(
    cast: Cast, provider: RunningProvider, half_written: GenerationPlan
) -> None:
    content = taken_out(cast.kassa, replies=True)
    loaded(cast.teine, content)
    assert taken_out(cast.teine, replies=True) == content
    there = GenerationPlan.objects.get(project=cast.teine)
    before, now = plans.plan_progress(half_written), plans.plan_progress(there)
    assert (there.state, there.name, there.spec) == ("paused", half_written.name, half_written.spec)
    assert (now.written, now.planned, now.given_up) == (before.written, 8, before.given_up) == (4, 8, 2)
    assert now.discarded and now.problems == before.problems
    assert (now.lost, now.in_flight, now.attempts) == (1, 0, before.attempts)
    assert before.cost and now.cost == before.cost + Decimal("0.01")
    aside = Realisation.objects.get(plan=there, decision="set_aside")
    assert (aside.decision_reason, aside.decided_by) == ("Kordab «end»", None)
    stored = Dataset.objects.get(project=cast.teine, name="Jutud")
    assert there.datasets.get().dataset == stored
    assert set(Realisation.objects.filter(plan=there).exclude(item=None).values_list("item__dataset", flat=True)) == {
        stored.pk
    }
    asked = provider.control()["requests"]
    provider.control(written_breaks={"stand_in": 0.0})
    assert plans.resume_plan(plan=there)
    assert written(there).phase == "finished"
    assert provider.control()["requests"] == asked + 2, "what was written is not asked for again"


def test_without_replies_a_bundle_quotes_none(
    cast: Cast, provider: RunningProvider, half_written: GenerationPlan
) -> None:
    loaded(cast.teine, taken_out(cast.kassa))
    there = GenerationAttempt.objects.filter(realisation__plan__project=cast.teine)
    assert {(str(one.request), str(one.reply), one.text) for one in there} == {("{}", "{}", "")}
    quoted = [problem["values"]["text"] for one in there for problem in one.problems]
    assert quoted and set(quoted) == {"…"}
    client = cast.client("zoltan")
    for page in ("", "texts/", "reading/", f"texts/{Realisation.objects.filter(plan__project=cast.teine)[0].pk}/"):
        address = f"/p/teine/generation/{GenerationPlan.objects.get(project=cast.teine).pk}/{page}"
        assert client.get(address).status_code == 200, address


@pytest.mark.parametrize(
    ("member", "good", "bad", "sentence"),
    [
        ("plans", b'"key":"support-dialogues"', b'"key":"support dialogues"', "spec"),
        ("plans", b'"version":1', b'"version":2', "digest"),
        ("plan_generators", b'"max_tokens":4000', b'"max_tokens":true', "parameters"),
        ("plan_generators", b'"plan":0', b'"plan":7', "number of a row"),
        ("families", b'"channel":"', b'"channel":"x', "level"),
        ("realisations", b'"language":"et"', b'"language":"fi"', "languages"),
        ("realisations", b'"state":"written"', b'"state":"leased"', "leased"),
        ("realisations", b'"turns":[{', b'"turns":[7,{', "turns"),
        ("generation_attempts", b'"code":"stand_in"', b'"kode":"stand_in"', "problems"),
    ],
)
def test_a_plan_that_no_page_could_show_is_refused(
    cast: Cast,
    provider: RunningProvider,
    half_written: GenerationPlan,
    member: str,
    good: bytes,
    bad: bytes,
    sentence: str,
) -> None:
    content = rewritten(taken_out(cast.kassa, replies=True), replaced(f"{member}.jsonl", good, bad))
    with pytest.raises(Refused, match=sentence):
        loaded(cast.teine, content)
    assert not GenerationPlan.objects.filter(project=cast.teine).exists()


def test_every_reference_in_a_bundle_is_to_a_row_of_it() -> None:
    """A new foreign key of a model that travels names its member in `refers`, or is left out."""
    unknown = [
        (member.name, column.name)
        for member in bundles.MEMBERS
        for column in member.columns
        if isinstance(column, models.ForeignKey) and column.name not in member.refers
    ]
    assert unknown == []
