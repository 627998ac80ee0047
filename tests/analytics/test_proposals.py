"""Instructions that a model proposes have no words of a panel's reasons (docs/decisions/0036)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from accounts.refusals import Refused
from analytics.judges import alignments
from annotation.models import Rating
from bench import lying_provider
from judging import judges, runs, work_sessions
from judging import tasks as judging_tasks
from judging.asking import endpoints
from judging.asking.sending import limited_connection
from judging.models import Alignment, AlignmentProposal, Attempt
from judging.versions import alignment, proposals
from panelbench import environment
from tests import make
from tests.analytics.test_alignment import aligned, proposed, scored, study
from tests.cast import Cast
from tests.judging.test_money import priced
from tests.provider_server import RunningProvider

__all__ = ["priced"]


@pytest.mark.django_db(transaction=True)
def test_a_version_never_has_the_words_of_a_panels_reason(cast: Cast, priced: RunningProvider) -> None:
    """The simulated model always writes this sentence; here a rater wrote it first, so that it is a quote."""
    campaign, _brief = study(cast, scenarios=20)
    given = Rating.objects.filter(annotation__campaign=campaign)
    given.update(rationale="Minu meelest: let the LENGTH of a text count, for nothing.")
    current = aligned(cast, campaign)
    scored(current.candidates.get())
    proposal = proposed(cast, current, "sim-steady")
    assert proposal.candidate is None and "repeats words" in proposal.reason and "nothing" not in proposal.reason
    assert current.candidates.count() == 1
    assert proposal.reply, "paid for, and kept until somebody whom it quotes is erased"


@pytest.mark.parametrize(
    ("reason", "written", "quotes"),
    [
        ("The agent is rude to the old customer", "Mark: the agent is RUDE to the old.", True),
        ("The agent is rude to the old customer", "An agent who is rude to customers gets 0.", False),
        ("客服对老年客户非常粗鲁而且没有道歉", "注意客服对老年客户非常粗鲁而且没有", True),
        ("Names of criteria and points only, please", "Say names of criteria and points only.", False),
        ("Vastus on hea", "Vastus on hea", False),
    ],
)
def test_what_counts_as_a_quote(reason: str, written: str, quotes: bool) -> None:
    asked = (
        f"# The judge's instructions\n\nNames of criteria and points only.\n\n# Cases\n\n## Case 1\n\nPanel: {reason}"
    )
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": f"{asked}\n\nPanel: Teine."}]
    for edit in ({"instructions": written, "own_texts": []}, {"instructions": "", "own_texts": [{"text": written}]}):
        if quotes:
            with pytest.raises(Refused, match="repeats words"):
                proposals.refuse_quotes(edit, messages)
        else:
            proposals.refuse_quotes(edit, messages)


# --- what a proposal may spend, as every paid request ----------------------------------------------------------------


def asked_for(cast: Cast, current: Alignment, name: str, **about: Any) -> AlignmentProposal:
    """A proposal whose job waits for a worker."""
    base = current.candidates.get(judge=current.base)
    cases = alignments.proposal_cases(current, alignment.run_of(current, current.base, current.tuning))
    sent = {"provider": "simulated", "model": "sim-steady", **about}
    return proposals.begin_proposal(candidate=base, cases=cases, actor=cast.boris, name=name, **sent)


def carried_out(proposal: AlignmentProposal) -> AlignmentProposal:
    judging_tasks.propose_version(proposal.pk)
    proposal.refresh_from_db()
    return proposal


@pytest.fixture
def current(cast: Cast, priced: RunningProvider) -> Alignment:
    campaign, _brief = study(cast, scenarios=20)
    made = aligned(cast, campaign)
    scored(made.candidates.get())
    return made


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_a_reply_is_stored_in_our_form_beside_its_json(cast: Cast, current: Alignment) -> None:
    proposal = carried_out(asked_for(cast, current, "Teine “versioon”"))
    assert proposal.candidate is not None, proposal.reason
    assert proposal.answer and proposal.answer["text"] == proposal.reply["choices"][0]["message"]["content"]
    assert proposal.answer["served_model"] == "sim-steady-2026-01"
    assert (proposal.doubt, proposal.estimated) == ("", False) and proposal.cost and proposal.cost < proposal.reserved


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_a_proposal_that_was_sent_is_among_what_deleting_its_project_deletes(cast: Cast, current: Alignment) -> None:
    """It was paid for like a judge's request. One that only waits is not counted."""
    of_judges = Attempt.objects.filter(call__run__project=cast.kassa).count()
    assert of_judges and carried_out(asked_for(cast, current, "Teine “versioon”")).sent_at is not None
    assert asked_for(cast, current, "النسخة").sent_at is None
    page = cast.client("aino").get("/p/kassa/settings/delete/").content.decode()
    assert f"{of_judges + 1} requests" in page


@pytest.mark.django_db(transaction=True)
def test_proposals_keep_the_limits_that_judges_share(
    cast: Cast, current: Alignment, priced: RunningProvider, settings: Any
) -> None:
    """One request a minute: a judge has just sent it, so the proposal is not sent, and nothing stays reserved."""
    declared = settings.PROVIDERS["simulated"]
    limited = replace(declared, name="kõik korraga", requests_per_minute=1, timeout=2)
    settings.PROVIDERS = {**settings.PROVIDERS, "kõik korraga": limited}
    endpoint = endpoints.endpoint_of(limited)

    async def send_another() -> bool:
        async with limited_connection(endpoint) as connection:
            return await connection.budget.acquire(tokens=10)

    assert asyncio.run(send_another())
    before = priced.control()["requests"]
    proposal = carried_out(asked_for(cast, current, "Late", provider="kõik korraga"))
    assert "leave no place" in proposal.reason and proposal.job and proposal.job.state == "failed"
    assert (proposal.sent_at, proposal.reserved, proposal.cost) == (None, None, None)
    assert priced.control()["requests"] == before


@pytest.mark.django_db(transaction=True)
def test_two_proposals_are_in_flight_before_any_bill_is_known(
    cast: Cast, current: Alignment, priced: RunningProvider
) -> None:
    first, second, third, fourth = (asked_for(cast, current, f"محاولة {number}") for number in range(4))
    in_flight = AlignmentProposal.objects.filter(pk__in=[first.pk, second.pk])
    in_flight.update(sent_at=timezone.now(), reserved=Decimal("0.01"))
    before = priced.control()["requests"]
    assert "have to be answered first" in carried_out(third).reason
    assert priced.control()["requests"] == before and third.sent_at is None
    AlignmentProposal.objects.filter(pk=first.pk).update(cost=Decimal("0.005"))
    assert carried_out(fourth).candidate is not None, fourth.reason


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_the_first_dearer_bill_stops_what_waits_whoever_asks(cast: Cast, current: Alignment, settings: Any) -> None:
    """A proposal that was billed 32 times as much ends the others that wait, and pauses the runs that ask the model."""
    with lying_provider.lying_provider() as address:
        entries = [lying_provider.declaration(address, "x32")]
        lying = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps(entries)})
        settings.PROVIDERS = {**settings.PROVIDERS, **lying}
        about = {"provider": entries[0]["name"], "model": lying_provider.MODEL, "tokens": 400}
        named = {"project": cast.kassa, "name": "Kohtunik “A”", "parameters": {"max_tokens": 400}}
        judge = judges.declare(**named, provider=about["provider"], model=about["model"])
        material = {"dataset": make.dataset(cast.kassa, 3), "rubric_version": make.rubric(cast.kassa)}
        run = runs.start_judge_run(judge=judge, **material)
        first, waiting = (asked_for(cast, current, name, **about) for name in ("Esimene", "Teine"))
        assert "bills more than was declared" in carried_out(first).reason
        assert first.doubt == "too_many" and first.cost and first.reserved and first.cost > first.reserved
        run.refresh_from_db()
        assert (run.state, run.reason) == ("paused", first.reason)
        carried_out(waiting)
        assert waiting.reason == first.reason and waiting.sent_at is None
        assert waiting.job and waiting.job.state == "failed"
        assert not work_sessions.work_on_run(run.pk)
        counts = lying_provider.own_count(address, "x32")
        assert counts["asked"] == 1 and counts["due"].quantize(first.cost) == first.cost
