"""The active seconds of an item: the browser's count, limited to the time that passed on the server."""

from __future__ import annotations

import math
from datetime import datetime

from django.utils import timezone

from annotation.desk.leasing import LEASE
from annotation.models import Annotation, Assignment, Draft

GRACE = 60.0
"""Seconds allowed above the time since the lease. They are allowed once per item, because otherwise every draft would
add them again."""


def possible_seconds(assignment: Assignment, claimed: float, now: datetime | None = None) -> float:
    """The claimed seconds, limited to the stored seconds plus the time since they were stored.

    For a draft, the limit is at least the time since the lease. If nothing is stored, it is that time plus `GRACE`.
    A draft, a submission and a revision each add at most `LEASE`, the longest time for which the server knows that a
    page was open.
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
    """The seconds since then, at most `LEASE`: after a longer time, nobody knows whether the page was open."""
    return min(max((now - since).total_seconds(), 0.0), LEASE.total_seconds()) if since else 0.0
