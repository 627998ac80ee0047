"""What the desk's measurements work on: one project, one dataset, a rubric of five criteria, signed-in annotators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import people
from accounts.models import Membership, Project, Role, User
from annotation import allocation, campaigns, panels, rubrics
from annotation.imports import storage
from annotation.models import Annotator, Assignment, Campaign, Duty
from annotation.readers.items import ItemRow
from annotation.readers.rubric import parse_rubric
from bench.clients import CRITERIA


@dataclass(frozen=True, slots=True)
class Slot:
    """An assignment that lies on a client's desk."""

    pk: int
    key: UUID
    item: int
    annotator: int


@dataclass(frozen=True, slots=True)
class Scene:
    project: Project
    campaign: Campaign
    people: list[tuple[User, Annotator, str]]  # with the session's key

    def duty(self, name: str, clients: int, overlap: int) -> Duty:
        """A duty over every item, with a panel of the first ``clients`` people."""
        panel = panels.create(project=self.project, name=name, language="et")
        for _user, annotator, _session in self.people[:clients]:
            panels.seat(panel=panel, annotator=annotator)
        return allocation.allocate(campaign=self.campaign, panel=panel, overlap=overlap, name=name)

    def lease(self, duty: Duty, clients: int, each: int) -> list[list[Slot]]:
        """Put slot n of the first ``each`` items on the desk of client n."""
        slots = self.fill(Assignment.objects.filter(duty=duty, position__lte=each), Assignment.State.LEASED)
        return [[slot for number, slot in slots if number == client + 1] for client in range(clients)]

    def fill(self, free: QuerySet[Assignment], state: str, first: int = 0) -> list[tuple[int, Slot]]:
        """Give slot n of every item to person ``first`` + n, all at once; the slots with their numbers."""
        people = [annotator.pk for _user, annotator, _session in self.people]
        rows = free.order_by("position", "slot").values_list("slot", "pk", "item")
        filled = [(number, Slot(pk, uuid7(), item, people[first + number - 1])) for number, pk, item in rows]
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        until = connection.ops.adapt_datetimefield_value(timezone.now() + timedelta(hours=2))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(_FILL, [(state, _key(slot), slot.annotator, now, until, slot.pk) for _n, slot in filled])
        return filled


_FILL = (
    "UPDATE annotation_assignment "
    "SET state = %s, key = %s, annotator_id = %s, leased_at = %s, leased_until = %s WHERE id = %s"
)


def _key(slot: Slot) -> object:
    return Assignment._meta.get_field("key").get_db_prep_value(slot.key, connection)


def make_scene(*, items: int, annotators: int) -> Scene:
    founder = User.objects.create_user("lead@panelbench.test")
    project = people.create_project(name="Bench", slug="bench", founder=founder)
    dataset = storage.store(project=project, name="Dialogues", items=(_item(n) for n in range(1, items + 1)))
    campaign = campaigns.open_campaign(project=project, name="Round", dataset=dataset, rubric_version=_rubric(project))
    return Scene(project, campaign, [_person(project, n) for n in range(annotators)])


def _item(number: int) -> ItemRow:
    says = ("Tere! Minu pakk on kadunud.", "Vaatan kohe järele, kus see on.", "Aitäh!", "Pakk jõuab kohale homme.")
    turns = [
        {"speaker": who, "text": f"{text} {number}"} for who, text in zip(("customer", "agent") * 2, says, strict=True)
    ]
    return ItemRow(f"d{number}", "et", "atlas", None, f"Pakk {number}", turns, {}, {}, "", number)


def _rubric(project: Project) -> Any:
    points = {str(point): {"en": {"text": f"Anchor {point}"}} for point in range(5)}
    criteria = [
        {"key": key, "name": {"en": key}, "scale": {"level": "ordinal", "points": list(range(5))}, "anchors": points}
        for key in CRITERIA
    ]
    document = {"key": "bench", "name": {"en": "Bench"}, "source_language": "en", "criteria": criteria}
    parsed = parse_rubric("rubric.json", orjson.dumps(document)).document
    assert parsed
    return rubrics.publish(version=rubrics.draft(project=project, document=parsed))


def _person(project: Project, number: int) -> tuple[User, Annotator, str]:
    user = User.objects.create_user(f"annotator{number}@panelbench.test", ui_language="en")
    Membership.objects.create(project=project, user=user, role=Role.ANNOTATOR)
    return user, panels.annotator_for(project=project, user=user), session_key(user)


def session_key(user: User) -> str:
    """The key of a new session of this person."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    assert session.session_key
    return session.session_key
