"""What is said of a figure: a text in English that keeps its template and values, also stored."""

from __future__ import annotations

import pickle

import pytest
from django.utils import timezone

from analytics.answers.stored_cells import CellStore
from analytics.models import Snapshot
from analytics.stats.core.messages import Message, approximate, conservative, is_approximate, is_conservative, joined
from annotation.models import Campaign
from tests.analytics import scene
from tests.cast import Cast

FEW = Message("%(number)s clusters", number=12)
METHOD = approximate(Message("%(method)s t", method=Message("jackknife")), FEW)
NOTE = joined((METHOD, None, Message("label %(label)s", label="“50 %” (ä)")))


def parts(text: str) -> object:
    """A message as nested templates and values; any other text as it is."""
    if not isinstance(text, Message):
        return text
    return text.template, {name: parts(value) for name, value in text.values.items()}


def test_a_message_is_its_english_text() -> None:
    assert METHOD == "jackknife t (approximate: 12 clusters)"
    assert NOTE == "jackknife t (approximate: 12 clusters); label “50 %” (ä)"
    assert joined((None, "")) == "" and joined((FEW,)) is FEW
    assert parts(pickle.loads(pickle.dumps(NOTE))) == parts(NOTE)


def test_approximate_is_said_once_and_known_by_its_template_and_not_by_a_word() -> None:
    cut = Message("%(method)s, cut at the ends of the scale", method=METHOD)
    assert is_approximate(cut) and is_approximate(NOTE)
    assert approximate(cut, "again") is cut
    assert not is_approximate(None) and not is_approximate("approximate")
    assert not is_approximate(Message("label %(label)s", label="approximate"))


def test_conservative_is_said_where_nothing_is_approximate_and_known_through_what_is_added() -> None:
    wide = conservative(Message("jackknife t"), FEW)
    assert wide == "jackknife t (conservative: 12 clusters)"
    added = Message("%(method)s, cut at the ends of the scale", method=wide)
    assert is_conservative(added) and not is_approximate(added)
    assert conservative(added, "again") is added and conservative(METHOD, FEW) is METHOD
    rough = approximate(wide, "few")
    assert rough == "jackknife t (approximate: few)" and is_approximate(rough) and not is_conservative(rough)
    assert not is_conservative(METHOD) and not is_conservative(None) and not is_conservative("conservative")


@pytest.mark.both_databases
@pytest.mark.django_db
def test_messages_are_stored_with_their_values(cast: Cast) -> None:
    campaign: Campaign = scene.rated_campaign(cast)
    rows = [{"value": place / 7, "method": METHOD, "note": NOTE if place % 2 else None} for place in range(5)]
    content = {"estimates": rows, "decisions": [{"figures": {"bias": {"method": METHOD}}}], "languages": ["et"]}
    about = {"revision": "r", "settings_digest": "d", "inputs_digest": "i", "code_version": "c", "seed": 1}
    pk = Snapshot.objects.create(campaign=campaign, content=content, created_at=timezone.now(), **about, seconds=1).pk
    stored = Snapshot.objects.get(pk=pk).content
    assert stored == content
    assert [parts(row["method"]) for row in stored["estimates"]] == [parts(METHOD)] * 5
    assert parts(stored["estimates"][1]["note"]) == parts(NOTE)
    assert parts(stored["decisions"][0]["figures"]["bias"]["method"]) == parts(METHOD)
    CellStore(campaign, "d", "c").contents(["cell"], lambda _place: rows)
    again = CellStore(campaign, "d", "c").contents(["cell"], lambda _place: [])
    assert again == [rows] and parts(again[0][3]["note"]) == parts(NOTE)
