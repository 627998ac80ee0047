"""A campaign with reference items: what the tests of guidelines, training, exams and controls begin with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.test import Client

from annotation import allocation, campaigns, panels
from annotation.models import Campaign, Duty
from annotation.qualification import references
from annotation.qualification.references import ReferenceRow
from annotation.readers.items import ItemRow
from tests import make
from tests.annotation import scene
from tests.cast import Cast

RIGHT = {"score-fluency": "2", "score-coherence": "1", "seconds": "12"}
WRONG = {"score-fluency": "0", "score-coherence": "0", "seconds": "12"}


def reference_rows(purpose: str, numbers: Sequence[int], **more: Any) -> list[ReferenceRow]:
    """Reference rows of these items: fluency 2, coherence 1."""
    return [
        ReferenceRow(item=f"d{number}", purpose=purpose, criterion=key, score=score, explanation=f"Why {key}", **more)
        for number in numbers
        for key, score in (("fluency", "2"), ("coherence", "1"))
    ]


def qualified_duty(
    cast: Cast,
    *,
    items: int | Iterable[ItemRow] = 30,
    training: Sequence[int] = (),
    exam: Sequence[int] = (),
    control: Sequence[int] = (),
    **rule: Any,
) -> Duty:
    """A duty of one Estonian panel with Maarika, one annotator per item, and reference items of these numbers."""
    campaign = campaigns.open_campaign(
        project=cast.kassa,
        name="Round 1",
        dataset=make.dataset(cast.kassa, items),
        rubric_version=make.rubric(cast.kassa),
    )
    given = [*reference_rows("training", training), *reference_rows("exam", exam), *reference_rows("control", control)]
    if given:
        references.mark(campaign=campaign, rows=given)
    if rule:
        references.set_rule(campaign=campaign, seed=1, **rule)
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    return allocation.allocate(campaign=campaign, panel=panel, overlap=1, seed=3)


def submit_scores(client: Client, page: str, scores: dict[str, str] = RIGHT) -> dict[str, Any]:
    """Submit the item at this address; returns what the script is told."""
    response = client.post(f"{page}submit/", scores, headers=scene.JSON)
    assert response.status_code == 200, response.content
    return response.json()


def purposes(campaign: Campaign) -> list[str]:
    """The purpose of every hidden duty of a campaign."""
    return sorted(Duty.with_hidden.filter(stands_for__campaign=campaign).values_list("purpose", flat=True))
