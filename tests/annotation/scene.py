"""One panel at work: what the desk's tests begin with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.test import Client

from accounts.models import Membership, Role, User
from annotation import allocation, campaigns, panels
from annotation.desk import leasing
from annotation.desk.answers import Answer
from annotation.models import Annotator, Assignment, Duty
from annotation.readers.items import ItemRow
from tests import make
from tests.cast import Cast, person

FULL = {"score-fluency": "2", "score-coherence": "1", "seconds": "12"}
ANSWERS = {"fluency": Answer(score=2), "coherence": Answer(score=1)}
JSON = {"accept": "application/json"}


def duty(
    cast: Cast,
    *,
    items: int | Iterable[ItemRow] = 3,
    overlap: int = 2,
    criteria: Sequence[dict[str, Any]] = (),
    seated: Sequence[User] = (),
    language: str = "et",
    **rubric: Any,
) -> Duty:
    """A duty of an Estonian panel, on which Maarika sits and whoever else is named."""
    campaign = campaigns.open_campaign(
        project=cast.kassa,
        name="Round 1",
        dataset=make.dataset(cast.kassa, items),
        rubric_version=make.rubric(cast.kassa, *criteria, **rubric),
    )
    panel = panels.create(project=cast.kassa, name="Estonian", language=language)
    for user in (cast.maarika, *seated):
        panels.seat(panel=panel, user=user)
    return allocation.allocate(campaign=campaign, panel=panel, overlap=overlap)


def member(cast: Cast, name: str) -> User:
    """One more annotator in the project."""
    user = person(name, languages=("et",))
    Membership.objects.create(project=cast.kassa, user=user, role=Role.ANNOTATOR)
    return user


def annotator(cast: Cast, user: User) -> Annotator:
    return panels.annotator_for(project=cast.kassa, user=user)


def taken(cast: Cast, work: Duty, user: User | None = None) -> Assignment:
    """What the desk gives this person (Maarika) next; there has to be something."""
    found = leasing.take(duty=work, annotator=annotator(cast, user or cast.maarika))
    assert found is not None
    return found


def key_at(address: str) -> UUID:
    return UUID(address.strip("/").split("/")[2])


def next_page(client: Client, work: Duty) -> str:
    """The address of the item that the desk leads to."""
    answer = client.post(f"/desk/{work.pk}/")
    assert answer.status_code == 302, answer.content
    return answer["Location"]
