"""Heartbeats: every worker and the scheduler overwrites its own row every few seconds; pages read the rows' age.

The heartbeat of a killed process becomes old, so no counter of processes can become wrong.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

INTERVAL = 10.0  # seconds between two signs of life
SILENCE = timedelta(seconds=35)  # three missed signs and some slack
WORKER, BEAT = "worker", "beat"


def pulse(kind: str, name: str) -> None:
    """Write the heartbeat of the process ``name`` of this ``kind``."""
    from accounts.models import Heartbeat

    Heartbeat.objects.update_or_create(name=name, defaults={"kind": kind, "seen_at": timezone.now()})


def silent() -> list[str]:
    """The kinds of process (worker, beat) without a recent heartbeat; one query."""
    from accounts.models import Heartbeat

    recent = Heartbeat.objects.filter(seen_at__gte=timezone.now() - SILENCE)
    heard = set(recent.values_list("kind", flat=True))
    return [kind for kind in (WORKER, BEAT) if kind not in heard]
