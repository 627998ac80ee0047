"""The active seconds of an item: what the browser counted, and never more than the server has seen pass."""

from __future__ import annotations

import math
from datetime import datetime

from django.utils import timezone

from annotation.desk.leasing import LEASE
from annotation.models import Annotation, Assignment, Draft

GRACE = 60.0
"""Seconds above the time that passed: for a page that was open before its lease was renewed, and for clocks."""


def possible_seconds(assignment: Assignment, claimed: float, now: datetime | None = None) -> float:
    """The claimed seconds, at most those stored for the item so far and the time since then.

    Before anything is stored the time counts from the lease. A revision of submitted scores adds at most `LEASE`, the
    longest time for which the server knows that a page was open.
    """
    if not math.isfinite(claimed) or claimed <= GRACE:
        return max(claimed, 0.0) if math.isfinite(claimed) else 0.0
    now = now or timezone.now()
    stored, since, most = _known(assignment)
    passed = (now - since).total_seconds() if since else 0.0
    return min(claimed, stored + min(max(passed, 0.0), most) + GRACE)


def _known(assignment: Assignment) -> tuple[float, datetime | None, float]:
    """The seconds that are stored, since when more may have passed, and how many at most."""
    own = Draft.objects.filter(duty=assignment.duty_id, item=assignment.item_id, annotator=assignment.annotator_id)
    if draft := own.values_list("seconds", "saved_at").first():
        return *draft, math.inf
    revisions = Annotation.objects.filter(assignment=assignment).order_by("-revision")
    if submitted := revisions.values_list("seconds", "submitted_at").first():
        return submitted[0] or 0.0, submitted[1], LEASE.total_seconds()
    leased = Assignment.objects.filter(pk=assignment.pk).values_list("leased_at", flat=True).first()
    return 0.0, leased, math.inf
