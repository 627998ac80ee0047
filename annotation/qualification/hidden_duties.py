"""The hidden duties that hold training, exams, controls and repeats of a duty, in a hidden campaign of their own."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from uuid_utils.compat import uuid7

from annotation.models import Annotator, Assignment, Campaign, Duty, QualificationRule

TRIES = 5
UNSEEN = (Duty.Purpose.CONTROL, Duty.Purpose.REPEAT)
"""The purposes that annotators can't tell from ratings."""


def hidden_duty(*, duty: Duty, purpose: Duty.Purpose) -> Duty:
    """The hidden duty with this purpose; created when it is first needed."""
    found = Duty.with_hidden.filter(stands_for=duty, purpose=purpose).select_related("campaign").first()
    if found is not None:
        return found
    with transaction.atomic():
        visible = duty.campaign
        same = {name: getattr(visible, name) for name in ("project_id", "name", "dataset_id", "rubric_version_id")}
        campaign, _is_new = Campaign.with_hidden.get_or_create(
            qualification_of=visible, defaults={**same, "state": visible.state}
        )
        own = {"panel_id": duty.panel_id, "name": duty.name, "overlap": duty.overlap, "seed": duty.seed}
        made, _is_new = Duty.with_hidden.get_or_create(
            stands_for=duty, purpose=purpose, defaults={"campaign": campaign, **own}
        )
    return made


def as_seen(duty: int) -> Q:
    """Assignments of a duty as its annotators know it: with controls and repeats, without training and exams."""
    return Q(duty=duty) | Q(duty__stands_for=duty, duty__purpose__in=UNSEEN)


def rule_of(campaign: int) -> QualificationRule | None:
    """What a campaign asks of its annotators; None if nothing was set."""
    return QualificationRule.objects.filter(campaign=campaign).first()


def drawn_number(*parts: object) -> float:
    """A number in [0, 1) that depends only on ``parts``: neither order nor time shows what it decides."""
    digest = hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def lease_hidden(*, duty: Duty, item: int, annotator: Annotator, now: datetime, until: datetime) -> Assignment | None:
    """Lease an item in a hidden duty until ``until``; None if the annotator has had it there already."""
    own = Assignment.objects.filter(duty=duty, item=item)
    for _try in range(TRIES):
        if own.filter(annotator=annotator).exists():
            return None
        last = own.aggregate(last=Max("slot"))["last"] or 0
        try:
            with transaction.atomic():
                return Assignment.objects.create(
                    duty=duty,
                    item_id=item,
                    annotator=annotator,
                    slot=last + 1,
                    position=0,
                    state=Assignment.State.LEASED,
                    key=uuid7(),
                    leased_at=now,
                    leased_until=until,
                )
        except IntegrityError:
            continue  # somebody else has just taken this slot
    return None
