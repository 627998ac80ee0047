"""The active seconds of an item: what the browser counted, and never more than the server has seen pass."""

from __future__ import annotations

import math
from datetime import datetime

from django.utils import timezone

from annotation.desk.leasing import LEASE
from annotation.models import Annotation, Assignment, Draft

GRACE = 60.0
"""Seconds above the time that passed since the lease, once for an item: every draft would add them again."""


def possible_seconds(assignment: Assignment, claimed: float, now: datetime | None = None) -> float:
    """The claimed seconds, at most those stored for the item so far and the time since then, or the time of the lease.

    Before anything is stored the time counts from the lease. A draft, a submission and a revision each add at most
    `LEASE`, the longest time for which the server knows that a page was open.
    """
    if not math.isfinite(claimed) or claimed <= GRACE:
        return max(claimed, 0.0) if math.isfinite(claimed) else 0.0
    return min(claimed, _most_seconds(assignment, now or timezone.now()))


def _most_seconds(assignment: Assignment, now: datetime) -> float:
    own = Draft.objects.filter(duty=assignment.duty_id, item=assignment.item_id, annotator=assignment.annotator_id)
    draft = own.values_list("seconds", "saved_at").first()
    revisions = Annotation.objects.filter(assignment=assignment).order_by("-revision")
    if not draft and (submitted := revisions.values_list("seconds", "submitted_at").first()):
        return (submitted[0] or 0.0) + _passed(submitted[1], now)
    leased = _passed(Assignment.objects.filter(pk=assignment.pk).values_list("leased_at", flat=True).first(), now)
    return max(leased, draft[0] + _passed(draft[1], now)) if draft else leased + GRACE


def _passed(since: datetime | None, now: datetime) -> float:
    """The seconds that may have been worked since then: no more than `LEASE`, whoever was away for longer."""
    return min(max((now - since).total_seconds(), 0.0), LEASE.total_seconds()) if since else 0.0
