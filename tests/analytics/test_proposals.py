"""Instructions that a model proposes have no words of a panel's reasons (docs/decisions/0036)."""

from __future__ import annotations

import pytest

from accounts.refusals import Refused
from annotation.models import Rating
from judging.versions import proposals
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
