"""Computing a campaign's numbers: one computation at a time per campaign, and later after each that fails."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from analytics import snapshots
from analytics.models import Computation
from analytics.snapshots import Settings
from annotation.models import Campaign

LONGEST = 3000  # seconds; millions of rows on a busy machine
LEASE = timedelta(seconds=LONGEST + 120)
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=6)
MOST_DETAIL = 400


def begin_computation(*, campaign: Campaign, settings: Settings) -> UUID | None:
    """A lease on computing these numbers; None while the campaign's are being computed or have to wait.

    The try is counted at once and the next one put off, so that it counts where the worker dies.
    """
    now = timezone.now()
    with transaction.atomic():
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # of two that begin the second waits
        if not may_begin(campaign_pk=campaign.pk, settings=settings):
            return None
        row, _is_new = Computation.objects.get_or_create(campaign=campaign, **_identity(settings))
        row.tries += 1
        row.lease, row.lease_ends_at, row.next_at = uuid4(), now + LEASE, now + pause(row.tries)
        row.reason, row.detail = Computation.Reason.ENDED, ""
        row.save()
    return row.lease


def finish_computation(*, lease: UUID) -> None:
    """The numbers are stored: nothing is left to be said."""
    Computation.objects.filter(lease=lease).delete()


def fail_computation(*, lease: UUID, reason: Computation.Reason, detail: str) -> None:
    """Give the lease back, say why, and put off the next try."""
    row = Computation.objects.filter(lease=lease).first()
    if row is not None:
        again = timezone.now() + pause(row.tries)
        changes = {"lease": None, "lease_ends_at": None, "next_at": again}
        Computation.objects.filter(lease=lease).update(**changes, reason=reason, detail=detail[:MOST_DETAIL])


def pause(tries: int) -> timedelta:
    """How long to wait after so many tries: twice as long after each, six hours at most."""
    return min(LONGEST_PAUSE, SHORTEST_PAUSE * (1 << min(tries - 1, 20)))


def may_begin(*, campaign_pk: int, settings: Settings) -> bool:
    """Whether nothing of the campaign is being computed, and these numbers need not wait."""
    now = timezone.now()
    waits = Q(**_identity(settings), next_at__gt=now)
    return not Computation.objects.filter(_under_way(now) | waits, campaign=campaign_pk).exists()


def failed(*, campaign: Campaign, settings: Settings) -> Computation | None:
    """The last try at these numbers where it came to nothing."""
    computations = Computation.objects.filter(campaign=campaign, **_identity(settings))
    return computations.exclude(_under_way(timezone.now())).first()


def _under_way(now: datetime) -> Q:
    return Q(lease__isnull=False, lease_ends_at__gt=now)


def _identity(settings: Settings) -> dict[str, Any]:
    return {"settings_digest": settings.digest, "code_version": snapshots.code_version()}
